#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `pcclctl topology solve` without any daemon: answers for people and for programs, wrong files and
wrong options."""

import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import lib  # pylint: disable=wrong-import-position
from lib import check  # pylint: disable=wrong-import-position

CTL = lib.BUILD / "pcclctl/pcclctl"
USAGE, DATA_ERROR, NO_INPUT, UNAVAILABLE = 64, 65, 66, 69
# The ring a b c d is fast; every other one has a link of 10 Mbit/s.
FAST = """hosts a b c d
rates Mbit/s
-   100 10  10
10  -   90  10
10  10  -   80
70  10  10  -
"""
# Both directions of three hosts, which can send more than one link takes.
BOTH = """hosts 3
rates Mbit/s
- 100 100
100 - 100
100 100 -
caps Mbit/s
500 500
500 500
500 150
"""
NO_RING = "hosts a b c\nrates bit/s\n- 1 1\n0 - 0\n1 1 -\n"


def tsplib(costs):
    """Returns the text of a TSPLIB file with this matrix."""
    rows = "\n".join(" ".join(map(str, row)) for row in costs)
    return (f"NAME: test\nTYPE: ATSP\nDIMENSION: {len(costs)}\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
            f"EDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n{rows}\nEOF\n")


TSPLIB = tsplib([[9999, 5, 1], [1, 9999, 5], [5, 1, 9999]])


class Files:
    """Solves texts, which are written to a file in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def solve(self, text, *options):
        """Returns the exit status, the output and the errors for a file with this text."""
        path = self.folder / "matrix"
        path.write_text(text, "utf-8")
        return run("topology", "solve", "--matrix", path, *options)

    def answer(self, text, *options):
        """Returns the JSON object of the answer."""
        code, out, err = self.solve(text, "--json", *options)
        check(code == 0, f"{options}: an answer", (code, err))
        return json.loads(out)


def run(*args):
    done = subprocess.run([CTL, *args], capture_output=True, text=True, timeout=lib.WAIT, check=False)
    return done.returncode, done.stdout, done.stderr


def test_answers(files):
    ring = files.answer(FAST)
    check(ring["objective"] == "plan" and ring["hosts"] == 4, "the objective is a plan by default", ring)
    check(ring["rings"][0]["hosts"] == ["a", "b", "c", "d"] and ring["rings"][0]["weight"] > 0.5,
          "the fast ring has most of the operand", ring)
    ring = files.answer(FAST, "--objective", "bottleneck")
    check(ring["rate"] == ring["upper_bound"] == 70e6 and ring["optimal"], "the slowest link is the rate", ring)
    check(ring["rings"] == [{"hosts": ["a", "b", "c", "d"], "weight": 1.0}], "one ring has all", ring)
    check(abs(ring["allreduce_rate"] - 70e6 * 4 / 6) < 1, "an all-reduce sends 1.5 bytes per byte", ring)
    ring = files.answer(FAST, "--objective", "sum")
    check(abs(ring["cost"] - (1 / 100 + 1 / 90 + 1 / 80 + 1 / 70)) < 1e-9, "costs are 1/rate", ring)
    plan = files.answer(BOTH)
    check(len(plan["rings"]) == 2 and plan["optimal"], "two rings use both directions", plan)
    check(abs(plan["rate"] - 150e6) < 100, "the lowest cap bounds the plan", plan)
    check(abs(sum(ring["weight"] for ring in plan["rings"]) - 1) < 1e-9, "the rings share the operand", plan)


def test_tsplib(files):
    ring = files.answer(TSPLIB)
    check(ring["objective"] == "sum" and ring["cost"] == ring["lower_bound"] == 3, "the cheapest ring", ring)
    check(ring["rings"][0]["hosts"] == ["1", "3", "2"], "the hosts are numbered from 1", ring)
    ring = files.answer(TSPLIB, "--objective", "bottleneck")
    check(ring["cost"] == ring["lower_bound"] == 1 and ring["gap"] == 0 and "rate" not in ring,
          "the lowest highest cost", ring)
    check(ring["rings"] == [{"hosts": ["1", "3", "2"], "weight": 1.0}] and "allreduce_rate" not in ring,
          "the ring with this cost", ring)
    plan = files.answer(TSPLIB, "--objective", "plan")
    check(abs(plan["rate"] - 1.2) < 1e-6 and abs(plan["upper_bound"] - 1.2) < 1e-6 and plan["optimal"],
          "both directions: 1/1 and 1/5", plan)
    check([round(ring["weight"] * 6, 6) for ring in plan["rings"]] == [5, 1], "the faster ring has more", plan)
    check(abs(plan["allreduce_rate"] - 1.2 * 3 / 4) < 1e-6 and "cost" not in plan, "a plan has a rate", plan)


def pairs(ring):
    return zip(ring, ring[1:] + ring[:1])


def test_bottlenecks(files):
    """Compares the highest cost of a link with that of all rings."""
    rng = random.Random(1)
    for n, most in ((2, 9), (4, 5), (5, 3), (6, 50), (7, 1000), (8, 100), (8, 100000)):
        costs = [[rng.randint(0, most) for _ in range(n)] for _ in range(n)]
        rings = [[0, *others] for others in itertools.permutations(range(1, n))]
        best = min((max(costs[i][j] for i, j in pairs(ring)), sum(costs[i][j] for i, j in pairs(ring)))
                   for ring in rings)
        answer = files.answer(tsplib(costs), "--objective", "bottleneck")
        ring = [int(name) - 1 for name in answer["rings"][0]["hosts"]]
        found = [costs[i][j] for i, j in pairs(ring)]
        check(sorted(ring) == list(range(n)) and answer["optimal"] and (max(found), sum(found)) == best and
              answer["cost"] == answer["lower_bound"] == best[0],
              f"{n} hosts, costs up to {most}: the lowest highest cost is {best[0]}", (costs, best, answer))


def test_text(files):
    code, out, _ = files.solve(FAST, "--objective", "bottleneck")
    check(code == 0, "an answer for people", code)
    for line in ("rate:        70 Mbit/s", "upper bound: 70 Mbit/s", "gap:         0.00 %",
                 "optimal:     yes, proven", "ring 1, 100.00 %: a b c d"):
        check(line in out.splitlines(), f"the line {line!r}", out)
    for objective, lines in (
            ("sum", ("cost:        3", "lower bound: 3")),
            ("bottleneck", ("objective:   bottleneck", "cost:        1", "lower bound: 1", "gap:         0.00 %")),
            ("plan", ("rate:        1.2", "optimal:     yes, proven", "all-reduce:  0.9"))):
        code, out, _ = files.solve(TSPLIB, "--objective", objective)
        check(code == 0 and set(lines) <= set(out.splitlines()), f"a TSPLIB file, {objective}", out)


def test_errors(files):
    code, out, err = files.solve(NO_RING)
    check(code == UNAVAILABLE and "there is no ring" in err and not out, "no ring", (code, out, err))
    code, _, err = files.solve(FAST.replace("90", "x"))
    check(code == DATA_ERROR and "line 4: row 2 of rates" in err and "matrix" in err,
          "a wrong file is named with the line", (code, err))
    many = "hosts 129\nrates bit/s\n" + ("1 " * 129 + "\n") * 129
    code, _, err = files.solve(many)
    check(code == DATA_ERROR and "at most 128" in err, "too many hosts for a plan", (code, err))
    code, _, err = files.solve(tsplib([[1] * 129] * 129), "--objective", "plan")
    check(code == DATA_ERROR and "at most 128" in err, "too many hosts of a TSPLIB file", (code, err))
    code, _, err = run("topology", "solve", "--matrix", files.folder / "missing")
    check(code == NO_INPUT and "missing" in err, "a missing file", (code, err))
    code, _, err = run("topology", "solve", "--matrix", files.folder)
    check(code == NO_INPUT, "a folder", (code, err))
    for words in (("topology", "--matrix", "x"), ("topology", "solve"), ("topology", "nonsense", "--matrix", "x"),
                  ("topology", "solve", "--matrix", "x", "--objective", "best"),
                  ("topology", "solve", "--matrix", "x", "--budget", "0"),
                  ("topology", "solve", "--matrix", "x", "--agent", "y"),
                  ("topology", "solve", "--matrix", "x", "--yes"),
                  ("topology", "solve", "more", "--matrix", "x"), ("status", "--matrix", "x"),
                  ("status", "--budget", "3"), ("status", "--objective", "sum")):
        code, _, err = run(*words)
        check(code == USAGE and err, f"wrong usage: {' '.join(words)}", (code, err))


def test():
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder)
        for part in (test_answers, test_tsplib, test_bottlenecks, test_text, test_errors):
            part(files)


lib.run(test, 60)
