#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What somebody who is no member costs the members: the time of operations with one attacker, beside that
without, in alternation. Prints a table for bench/RESULTS.md.

A row for each attack of attacker.py, which runs in a network namespace of its own, as one process that goes
on without pause. Two hosts with a peer each; fp32 sum, in place, memory from pcclMemAlloc. Each repetition
measures a small and a large operation, and steps with a vote (their mean), without, with, and again without the
attacker; a figure is the ratio of the median with to the mean of the two without. Beside it: how often the
attack was made, and what it costs the master and an agent while there is no operation, as a share of one
processor.

A real attacker has a machine of its own. Here half of the processors are for the members and their agents, the
other half for the master and the attacker, which has what the master
leaves (a real-time process does not wait for others). The row "nothing" is of a
program that does as much, and sends nothing to anybody: what it costs is the error of the others.
"""

import os
import sys
import time

import lib
from attack import Attack
from attacker import ATTACKS
from figures import cpu_ns
from lib import Failed
from measure import main, median, note

SMALL_SECONDS, BIG_SECONDS = 0.6, 0.6  # of operations, each time
VOTE_SECONDS = 3  # of steps with a vote
BIG = 4 << 20
IDLE_SECONDS = 0.5
PROCESSORS = sorted(os.sched_getaffinity(0))
MEMBERS, OTHERS = PROCESSORS[:len(PROCESSORS) // 2], PROCESSORS[len(PROCESSORS) // 2:]


def measure(peers, size, seconds):
    """Median time of an operation in ns, as the peers had it that had to wait longer."""
    done, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        answers = lib.together(peers, f"bench type=f32 op=sum count={size // 4} tag=1 "
                               f"n={200 if size < 4096 else 10} place=in mem=shared")
        if any(a["code"] != lib.SUCCESS for a in answers):
            raise Failed(f"{size} bytes: {answers}")
        done.append(max(a["median"] for a in answers))
    return median(done)


def measure_votes(peers):
    """Mean time of a step in ns: a vote, and a small operation. A round that is spoilt is rare and long."""
    steps, began = 0, time.monotonic_ns()
    while time.monotonic_ns() - began < VOTE_SECONDS * 1e9:
        for line in ("update", "reduce type=f32 op=sum count=1 tag=1 place=in mem=shared"):
            answers = lib.together(peers, line)
            if any(a["code"] != lib.SUCCESS for a in answers):
                raise Failed(f"{line}: {answers}")
        steps += 1
    return (time.monotonic_ns() - began) / steps


def each_kind(peers):
    return [measure(peers, 4, SMALL_SECONDS), measure(peers, BIG, BIG_SECONDS), measure_votes(peers)]


def shares(lab):
    """Of a processor, in percent: the master, and the agent that has more."""
    before, began = [cpu_ns(d.pid) for d in lab.daemons], time.monotonic_ns()
    time.sleep(IDLE_SECONDS)
    took = time.monotonic_ns() - began
    used = [100 * (cpu_ns(d.pid) - b) / took for d, b in zip(lab.daemons, before)]
    return used[0], max(used[1:])


def row(name, repeat):
    hosts = lib.make_namespaces(3)
    with lib.Lab(hosts=hosts) as lab:
        os.sched_setaffinity(0, OTHERS)
        os.sched_setscheduler(lab.start_master().pid, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setaffinity(0, MEMBERS)
        for host in (0, 1):
            lab.start_agent(host)
        peers = lab.start_peers((0, 1))
        each_kind(peers)
        ratios, rates, used = ([], [], []), [], []
        before = each_kind(peers)
        for _ in range(repeat):
            with Attack(lab, name, 2) as attack:
                os.sched_setaffinity(attack.process.pid, OTHERS)
                used.append(shares(lab))
                during = each_kind(peers)
            rates.append(attack.rate)
            after = each_kind(peers)
            for k in range(len(ratios)):
                ratios[k].append(2 * during[k] / (before[k] + after[k]))
            before = after
        lab.check_alive()
        beside = (f"{median(rates):.0f} a second; master {median(u[0] for u in used):.1f} %, agent "
                  f"{median(u[1] for u in used):.1f} %")
        for k, what in enumerate(("4 bytes", f"{BIG >> 20} MiB", "a step with a vote")):
            note(name, what, ratios[k], 2, "", beside)


def chosen(name):
    def measured(_size, repeat):
        if not MEMBERS:
            raise Failed("two processors are needed")
        row(name, repeat)
    return measured


ROWS = {name: chosen(name) for name in ATTACKS}


if __name__ == "__main__":
    sys.exit(main(__doc__, ROWS, 4))
