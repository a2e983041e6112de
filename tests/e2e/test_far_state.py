#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shared state over paths with a high round trip or high packet loss arrives, and no agent counts a
source as gone or as silent. If a host loses an address meanwhile, the streams of this address end
at once."""

import select
import time

import lib
import high_rtt
from lib import check

FAR = {"delay": 750}  # ms in each direction
LOSSY = {"delay": 5, "loss": 0.2}
JOIN = 60  # seconds
MIB = 1 << 18  # of f32


def start(lab, count):
    """Peer 0 has the newest state, and peer 1 has none of it."""
    for host in range(2):
        lab.start_agent(host)
    peers = [lab.start_peer(host, host) for host in range(2)]
    for peer in peers:
        peer.expect("create")
    peers[0].expect("connect")
    for attempts in range(3, 0, -1):  # the attempts are the subject of test_far_newcomer.py
        peers[1].send("connect")
        while not select.select([peers[1].process.stdout], [], [], 0.05)[0]:
            if (peers[0].expect("pending", seconds=JOIN)["pending"]
                    and peers[0].expect("update", seconds=JOIN)["world"] == 2):
                break
        if peers[1].read(JOIN)["code"] == lib.SUCCESS:
            break
        if attempts == 1:
            raise lib.Failed("the newcomer was not admitted")
    for k, peer in enumerate(peers):
        peer.expect(f"state revision={1 - k}")
        peer.expect(f"tensors name=big type=f32 count={count} seed=1 like={k}")
    return peers


def scene(way, name, count):
    hosts = lib.make_namespaces(2, high_rtt.Hosts, ways={1: way})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    with lib.Lab(hosts=hosts) as lab:
        # A heartbeat may be lost five times in a row. This test is about streams, not about silent
        # hosts, so the timeout is long.
        lab.start_master(options=("--host-timeout", 30))
        peers = start(lab, count)
        began = time.monotonic()
        answers = lib.together(peers, "sync", 100)
        print(f"# {time.monotonic() - began:.1f} s")
        check({a["code"] for a in answers} == {0} and len({a["hash"] for a in answers}) == 1,
              f"{name}: shared state of {count // MIB} MiB arrives", answers)
        said = [x for a in lab.agents.values() for x in a.log_lines()
                if "shared state" in x and "warning" in x]
        check(not said, f"{name}: no agent warns about the source", said)
        lab.check_alive()


def moves():
    """The receiver's streams use an address that the receiver's host loses."""
    hosts = lib.make_namespaces(3, high_rtt.Hosts, ways={1: {"rate": 100}})
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and TAP devices")
    extra, host = "10.84.0.102", hosts.name(1)
    with lib.Lab(hosts=hosts) as lab:
        lib.netns.ip("-n", host, "addr", "add", f"{extra}/32", "dev", "eth0")
        lib.netns.ip("-n", host, "route", "add", hosts.address(0), "dev", "eth0", "src", extra)
        lab.start_master(2)
        peers = start(lab, 24 * MIB)
        for peer in peers:
            peer.send("sync")
        time.sleep(1)
        lib.netns.ip("-n", host, "addr", "del", f"{extra}/32", "dev", "eth0")
        began = time.monotonic()
        answers = [p.read(100) for p in peers]
        took = time.monotonic() - began
        print(f"# {took:.1f} s")
        check({a["code"] for a in answers} == {0} and len({a["hash"] for a in answers}) == 1,
              "shared state arrives although its host loses the stream's address", answers)
        check(took < 3.2 * lib.SLOWER, "the receiver does not wait for a stream whose address is gone", took)
        lab.check_alive()


def test():
    scene(FAR, "a round trip of 1.5 s", 8 * MIB)
    scene(LOSSY, "a fifth of all packets lost", 4 * MIB)
    moves()


lib.run(test, 300)
