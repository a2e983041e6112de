#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ways on which signs of life take their time. A slow one has a queue that holds what it carries in four
seconds: what the members themselves send fills it, and everything else waits in it. On a far one the
round trip takes longer than half a second. Nobody is taken for gone, and every operation succeeds at the
first attempt."""

import subprocess

import lib
import high_rtt
from lib import check, ids_of, judge

RATE, QUEUE_SECONDS = 10, 4  # Mbit/s
QUEUE = QUEUE_SECONDS * RATE * 1000000 // 8 // 1514  # packets
SLOW = {"delay": 5, "rate": RATE, "queue": QUEUE}  # ms each way
FAR = {"delay": 300}
SMALL, BIG = 64, 2 << 20  # of f32: 8 MiB, of which each host sends half and half again
PLAIN = "reno"  # a congestion control that fills queues, which every kernel has


def make(way):
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: way})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    for host in range(2):
        subprocess.run(hosts.command(host, [
            "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={PLAIN}"]), check=True,
            timeout=lib.WAIT)
    return hosts


def scene(way, name, counts):
    with lib.Lab(hosts=make(way)) as lab:
        lab.start()
        peers = lab.start_peers(range(2))
        for tag, count in enumerate(counts):
            answers = lib.together(
                peers, f"reduce type=f32 op=sum count={count} tag={tag} seed={tag} "
                f"ids={ids_of(peers)} verify=1", 4 * lib.WAIT)
            check(not judge(answers), f"{name}: {count} numbers", judge(answers))
        lab.check_alive()


def test():
    scene(SLOW, "a slow path", (SMALL, BIG, SMALL, BIG, BIG))
    scene(FAR, "a far way", (SMALL, BIG // 8, SMALL))


lib.run(test, 300)
