#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Agents and masters whose limits are so low that they hardly start: they say so and end, or they
say so to each process that comes. None looks stopped, or away."""

import pathlib
import re

import lib
from lib import OUT_OF_MEMORY, SUCCESS, check

SOON = 5  # seconds; nothing here waits for anybody
OS_ERROR = 71


class Short(lib.Loopback):
    """What has this name is started with a limit."""

    name, limit = None, None

    def command(self, host, args):
        short = self.name and pathlib.Path(args[0]).name == self.name
        return ["prlimit", self.limit, *args] if short else args


def serves(daemon):
    """False when it has ended. What has no descriptor for pcclctl says so."""
    option, said = "--master" if "master" in daemon.name else "--agent", None

    def is_known():
        nonlocal said
        if not daemon.alive():
            return True
        said = lib.ctl(option, daemon.admin, "status")
        return said.returncode == 0 or "RLIMIT_NOFILE" in said.stderr

    lib.until(is_known, f"{daemon.name} neither ends nor answers")
    return daemon.alive()


def start_daemon(lab, start):
    """Without waiting for anything."""
    lab.await_socket = lambda *_: None
    try:
        return start()
    finally:
        del lab.await_socket


def until_it_serves(program, start, ask):
    """One descriptor more each time. start(lab) may fail, ask(lab) is what a process is told."""
    ended, refused, served = [], [], False
    for n in range(4, 40):
        with lib.Lab(hosts=Short(1)) as lab:
            lab.hosts.name, lab.hosts.limit = program.name, f"--nofile={n}:{n}"
            daemon = start(lab)
            if not serves(daemon):
                said = daemon.log.read_text("utf-8")
                lab.daemons.remove(daemon)
                if "shared libraries" in said:
                    continue
                ended.append(n)
                check(daemon.ended() == OS_ERROR and
                      re.search(rf"err: .*RLIMIT_NOFILE\) of {program.name} .* is {n}\n", said),
                      f"{program.name} does not start with {n} descriptors: "
                      f"{''.join(said.splitlines()[-1:])}", (daemon.process.returncode, said))
                continue
            answer = ask(lab)
            served = answer["code"] == SUCCESS
            if served:
                break
            refused.append(n)
            check(answer["code"] == OUT_OF_MEMORY and "RLIMIT_NOFILE" in answer["text"]
                  and f"{program.name}" in answer["text"] and answer["text"].endswith(f" is {n}"),
                  f"{program.name} with {n} descriptors: {answer['text']}", answer)
            check(daemon.alive(), "and it goes on")
    check(served and ended and refused, f"{program.name} with {n} descriptors serves",
          (ended, refused))


def join(lab):
    peer = lab.start_peer(0)
    answer = peer.call("create", SOON)
    return answer if answer["code"] != SUCCESS else peer.call("connect", SOON)


def agents():
    def start(lab):
        lab.start_master()
        return start_daemon(lab, lab.start_agent)

    until_it_serves(lib.AGENTD, start, join)


def masters():
    def ask(lab):
        lab.start_agent()
        return join(lab)

    until_it_serves(lib.MASTERD, lambda lab: start_daemon(lab, lab.start_master), ask)


def test():
    lib.forget_leaks()
    agents()
    masters()


lib.run(test, 120)
