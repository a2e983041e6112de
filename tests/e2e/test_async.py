#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sixteen operations in flight all end with the right result, although each peer starts them in a
different order. The agents' memory does not grow with time, nor when one peer is late."""

import random
import time

import lib
from lib import await_all, check, ids_of, judge, submit_all

IN_FLIGHT = 16
ROUNDS = 40
WARM_UP = 12
MIB = 1024  # KiB
GROWTH = 16 * MIB
FILES = 2 * IN_FLIGHT  # by which the open files may grow, because agents keep results for a while
LATE_SECONDS = 0.3
TYPES = ("f32", "i8", "bf16", "u64", "f64", "f16")
OPS = ("sum", "avg", "max", "prod", "min")
COUNTS = (1, 3, 250, 4099, 65536, 99991, 200003)
MEMORY = ("place=in mem=own", "place=in mem=shared", "place=out mem=own", "place=out mem=shared",
          "place=out mem=send", "place=out mem=recv")


def operations(rng, count=None):
    return [f"type={rng.choice(TYPES)} op={rng.choice(OPS)} count={count or rng.choice(COUNTS)} "
            f"{rng.choice(MEMORY)}" for _ in range(IN_FLIGHT)]


def one_round(peers, rng, number, verify):
    """Runs one round. Returns the fault, or None."""
    submit_all(peers, operations(rng), rng, seed=number, ids=ids_of(peers), verify=int(verify))
    for slot, answers in enumerate(await_all(peers, IN_FLIGHT, rng)):
        wrong = judge(answers)
        if wrong:
            return f"operation {slot}: {wrong}"
    return None


def rounds(lab, places, rng):
    peers = lab.start_peers(places, streams=3)
    hosts = len(set(places))
    memory, files, wrong = [], [], None
    for number in range(ROUNDS):
        wrong = wrong or one_round(peers, rng, number, number % 8 == 0)
        if number == WARM_UP:
            memory = [a.status("VmRSS") for a in lab.agents.values()]
            files = [a.open_files() for a in lab.agents.values()]
    check(not wrong, f"{ROUNDS} times {IN_FLIGHT} operations of {len(places)} peers on {hosts} hosts succeed",
          wrong)
    for k, agent in enumerate(lab.agents.values()):
        grown = agent.status("VmRSS") - memory[k]
        check(grown < GROWTH or lib.sanitized(), f"memory of agent {k} grows by {grown} of at most {GROWTH} KiB "
              f"after the first {WARM_UP} of {ROUNDS} rounds", f"from {memory[k]} KiB")
        now = agent.open_files()
        check(now <= files[k] + FILES, f"agent {k} had {files[k]} open files and has {now}, at most {FILES} more")
    return peers


def late_peer(lab, peers, rng):
    """All peers except one have submitted many operations. The agent of the late peer must not
    collect their data."""
    late = peers[-1]
    ops = [f"type=f32 op=sum count=1000003 {MEMORY[0]}"] * IN_FLIGHT
    agent = lab.agents[late.host]
    before = agent.status("VmRSS")
    ids = ids_of(peers)
    submit_all(peers[:-1], ops, rng, ids=ids)
    deadline = time.monotonic() + LATE_SECONDS
    grown = 0
    while time.monotonic() < deadline:
        grown = max(grown, agent.status("VmRSS") - before)
        time.sleep(0.01)
    check(grown < GROWTH, f"an agent's memory grows by {grown} of at most {GROWTH} KiB while "
          "other hosts wait for a late peer")
    submit_all([late], ops, rng, ids=ids)
    wrong = [judge(a) for a in await_all(peers, IN_FLIGHT, rng)]
    check(not any(wrong), "operations succeed when the late peer has called", wrong)


def test():
    rng = random.Random(2)
    for places in ([0, 0, 0], [0, 1], [0, 0, 1, 1], [0, 1, 2, 0, 1]):
        with lib.Lab(max(places) + 1) as lab:
            lab.start()
            peers = rounds(lab, places, rng)
            if max(places) > 0:
                late_peer(lab, peers, rng)
            lab.check_alive()


lib.run(test, 240)
