#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Newcomers on paths with a round trip above the bounds of near paths, or with a high packet loss.
They are admitted at the first attempt or after a few, and the logs contain nothing untrue about
their paths."""

import select
import sys
import time

import lib
import high_rtt
from lib import SUCCESS, check, ids_of, judge

FAR = {"delay": 750}  # ms in each direction
LOSSY = {"delay": 5, "loss": 0.2}  # values for each direction
SMALL = 64  # of f32
UNTRUE = "MTU"


def comes_in(name, way, seconds, attempts):
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: way})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    with lib.Lab(hosts=hosts) as lab:
        lab.start()
        member, newcomer = (lab.start_peer(host, host) for host in (0, 1))
        for peer in (member, newcomer):
            peer.expect("create")
        member.expect("connect")
        began = time.monotonic()
        newcomer.send("connect")
        answer = None
        while answer is None:
            check_time(name, began, seconds)
            if select.select([newcomer.process.stdout], [], [], 0.05)[0]:
                answer = newcomer.read()
                attempts -= 1
                if answer["code"] != SUCCESS and attempts > 0:
                    print(f"# {answer['text']}")
                    newcomer.send("connect")
                    answer = None
            elif member.expect("pending", seconds=seconds)["pending"]:
                world = member.expect("update", seconds=seconds)["world"]
                answer = newcomer.read(seconds) if world == 2 else None
        print(f"# {name}: {time.monotonic() - began:.1f} s")
        check(answer["code"] == SUCCESS, f"{name}: a newcomer gets in", answer)
        told = [x for d in lab.daemons for x in d.log_lines() if UNTRUE in x]
        check(not told, f"{name}: the logs do not name the MTU as a cause", told)
        if answer["code"] == SUCCESS:
            peers = [member, newcomer]
            answers = lib.together(
                peers, f"reduce type=f32 op=sum count={SMALL} tag=1 seed=1 retry=10 "
                f"ids={ids_of(peers)} verify=1", 2 * lib.WAIT)
            check(not judge(answers), f"{name}: an operation with the newcomer succeeds", judge(answers))
        lab.check_alive()


def check_time(name, began, seconds):
    if time.monotonic() - began > seconds:
        raise lib.Failed(f"{name}: the newcomer did not get in within {seconds} s")


def test():
    if "lossy" not in sys.argv[1:]:
        comes_in("a round trip of 1.5 s", FAR, 45, 1)
    if "far" not in sys.argv[1:]:
        comes_in("a path that loses 20 % of the packets in each direction", LOSSY, 50, 3)


lib.run(test, 120)
