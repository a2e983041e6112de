#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how much somebody who is no member slows the members down: the time of operations with
one attacker and without, in alternation. Prints a table for bench/RESULTS.md.

The table has a row for each attack of attacker.py, which runs in its own network namespace as one
process without pauses. Two hosts have one peer each; the operation is an fp32 sum, in place, with
memory from pcclMemAlloc. Each repetition measures a small operation, a large operation, and the
mean of steps with a vote: without the attacker, with the attacker, and again without. A figure is
the ratio of the median with the attacker to the mean of the two medians without. The next column
shows how often the attack was made, and how much it costs the master and an agent while there is no
operation, as a share of one processor.

A real attacker has its own machine. Here half of the processors run the members and their agents.
The other half runs the master and the attacker, and the attacker gets only the time that the master
leaves, because the master runs with real-time priority. The row "nothing" is for a program
that does as much work and sends nothing to anybody. Its cost is the measurement error of the other
rows.
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

SMALL_SECONDS, BIG_SECONDS = 0.6, 0.6  # duration of the operations of each measurement
VOTE_SECONDS = 3  # duration of the steps with a vote
BIG = 4 << 20
IDLE_SECONDS = 0.5
PROCESSORS = sorted(os.sched_getaffinity(0))
MEMBERS, OTHERS = PROCESSORS[:len(PROCESSORS) // 2], PROCESSORS[len(PROCESSORS) // 2:]


def measure(peers, size, seconds):
    """Returns the median time of an operation in ns, at the peer with the longer times."""
    done, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        answers = lib.together(peers, f"bench type=f32 op=sum count={size // 4} tag=1 "
                               f"n={200 if size < 4096 else 10} place=in mem=shared")
        if any(a["code"] != lib.SUCCESS for a in answers):
            raise Failed(f"{size} bytes: {answers}")
        done.append(max(a["median"] for a in answers))
    return median(done)


def measure_votes(peers):
    """Returns the mean time of a step in ns. A step is a vote and a small operation. A median would
    not show spoiled rounds, which are rare and long."""
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
    """Returns the shares of a processor in percent: of the master, and of the agent with the larger
    share."""
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
