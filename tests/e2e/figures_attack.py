#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What somebody who is no member costs the members: the time of operations with one attacker, beside that
without, in alternation. Prints a table for bench/RESULTS.md.

A row for each attack of attacker.py, which runs in a network namespace of its own, as one process that goes
on without pause. Two hosts with a peer each; fp32 sum, in place, memory from pcclMemAlloc. Each repetition measures a
small and a large operation without, with, and again without the attacker; a figure is the ratio of the
median with to the mean of the two without. The attacker has a processor of the same machine: beside each
ratio stands the one of a program that takes as much of the processor and sends nothing.
"""

import sys
import time

import lib
from attack import Attack
from attacker import ATTACKS
from lib import Failed
from measure import main, median, note

SMALL_SECONDS, BIG_SECONDS = 0.6, 0.6  # of operations, each time
BIG = 4 << 20


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


def both(peers):
    return [measure(peers, 4, SMALL_SECONDS), measure(peers, BIG, BIG_SECONDS)]


def row(name, repeat):
    hosts = lib.make_namespaces(3)
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master()
        for host in (0, 1):
            lab.start_agent(host)
        peers = lab.start_peers((0, 1))
        both(peers)
        ratios, rate = ([], []), 0
        before = both(peers)
        for _ in range(repeat):
            with Attack(lab, name, 2) as attack:
                time.sleep(0.2)
                during = both(peers)
            rate = attack.rate
            after = both(peers)
            for k in (0, 1):
                ratios[k].append(2 * during[k] / (before[k] + after[k]))
            before = after
        lab.check_alive()
        for k, what in enumerate(("4 bytes", f"{BIG >> 20} MiB")):
            note(name, what, ratios[k], 2, "", f"{rate:.0f} attempts/s", "")


ROWS = {name: lambda _size, repeat, name=name: row(name, repeat) for name in ATTACKS}


if __name__ == "__main__":
    sys.exit(main(__doc__, ROWS, 4))
