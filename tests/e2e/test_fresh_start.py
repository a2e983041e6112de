#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""New masters, agents and peers begin at once, with eight operations in flight from the start."""

import random
import time

import lib
from lib import await_all, check, judge, submit_all

STARTS = 30
IN_FLIGHT = 8
BOUND_NS = 5 * 10**9  # bound for a busy machine; most starts need a hundredth of it


def start(world, rng, seed):
    """Returns two times in ns. Both end with the last result; one begins with the first
    pcclConnect, the other with the first submission."""
    with lib.Lab(2) as lab:
        lab.start()
        peers = [lab.start_peer(k, k % 2, ready=False) for k in range(world)]
        for peer in peers:
            peer.read()
        began = time.monotonic_ns()
        lib.form_run(peers, streams=2)
        formed = time.monotonic_ns()
        submit_all(peers, ["type=f32 op=avg count=20011 place=in"] * IN_FLIGHT, rng, seed=seed,
                   ids=lib.ids_of(peers), verify=1)
        answers = await_all(peers, IN_FLIGHT, rng)
        wrong = [w for w in map(judge, answers) if w]
        if wrong:
            raise lib.Failed(f"start {seed} of {world} peers: {wrong[0]}")
        done = max(a["end"] for of_slot in answers for a in of_slot)
        lab.check_alive()
        return done - began, done - formed


def test():
    rng = random.Random(5)
    for world in (2, 4):
        times = [start(world, rng, seed) for seed in range(STARTS)]
        whole, operations = zip(*times)
        print(f"# {world} peers, pcclConnect to the last result: {lib.spread(whole)}")
        print(f"# {world} peers, submission to the last result: {lib.spread(operations)}")
        check(max(whole) < BOUND_NS,
              f"{STARTS} fresh starts of {world} peers: each takes less than {BOUND_NS // 10**9} s",
              f"{max(whole) / 1e9:.1f} s")


lib.run(test, 300)
