#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Paths on which signs of life arrive late. A slow path has a queue of four seconds. The data of
the members fills it, and all other packets wait in it. On a far path the round trip is longer than
half a second. No host is counted as gone, and every operation succeeds at the first attempt."""

import subprocess

import lib
import high_rtt
from lib import check, ids_of, judge

RATE, QUEUE_SECONDS = 10, 4  # Mbit/s
QUEUE = QUEUE_SECONDS * RATE * 1000000 // 8 // 1514  # packets
SLOW = {"delay": 5, "rate": RATE, "queue": QUEUE}  # ms in each direction
FAR = {"delay": 300}
SMALL, BIG = 64, 2 << 20  # f32 elements; each host sends half of the 8 MiB, then the other half
PLAIN = "reno"  # a congestion control that fills queues and that every kernel has


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
            check(not judge(answers), f"{name}: {count} numbers are reduced", judge(answers))
        lab.check_alive()


def test():
    scene(SLOW, "a slow path", (SMALL, BIG, SMALL, BIG, BIG))
    scene(FAR, "a far path", (SMALL, BIG // 8, SMALL))


lib.run(test, 300)
