#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `pcclctl topology solve` on all TSPLIB files (*.atsp) of a folder, and prints a table.

usage: topology.py [--pcclctl PATH] [--budget S] [--check] FOLDER

If the folder has a README.md with the best known costs, as "NAME COST", the table also has the gap to
them. --check ends with an error if a cost is too high: up to 16 hosts it must be the best known one;
the mean gap may be 0.5 %, the largest one 3 %; and rings whose cost equals the bound of the
assignment (rbg*) must be proven.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

MEAN, WORST = 0.005, 0.03
EXACT_HOSTS = 16


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pcclctl", default="pcclctl", metavar="PATH", help="default: %(default)s")
    parser.add_argument("--budget", default="5", metavar="S", help="of each file; default: %(default)s")
    parser.add_argument("--check", action="store_true", help="fail if a cost is too high")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    return parser.parse_args()


def known_costs(folder):
    """Returns the best known cost of each file, by its name."""
    notes = folder / "README.md"
    text = notes.read_text("utf-8") if notes.exists() else ""
    return {name: float(cost) for name, cost in re.findall(r"\b([a-z]+\d+\w*) (\d+)\b", text)}


def solve(options, path):
    command = [options.pcclctl, "--json", "topology", "solve", "--objective", "sum",
               "--budget", options.budget, "--matrix", str(path)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def show(name, answer, gap):
    print(f"| {name} | {answer['hosts']} | {answer['cost']:.0f} | {answer['lower_bound']:.0f} | "
          f"{'-' if gap is None else format(gap, '.2%')} | {'yes' if answer['optimal'] else 'no'} | "
          f"{answer['seconds']:.2f} s |", flush=True)


def faults(rows):
    """Yields what is wrong with the answers."""
    gaps = [gap for _, _, gap in rows if gap is not None]
    if not gaps:
        yield "no best known costs"
        return
    if sum(gaps) / len(gaps) > MEAN:
        yield f"the mean gap is {sum(gaps) / len(gaps):.2%}"
    if max(gaps) > WORST:
        yield f"the largest gap is {max(gaps):.2%}"
    for name, answer, gap in rows:
        if gap and answer["hosts"] <= EXACT_HOSTS:
            yield f"{name}: not the best known cost"
        if gap is not None and gap < 0 or answer["lower_bound"] > answer["cost"]:
            yield f"{name}: the cost or the bound is wrong"
        if name.startswith("rbg") and not answer["optimal"]:
            yield f"{name}: not proven"


def main():
    options = parse_options()
    known, rows = known_costs(options.folder), []
    paths = sorted(options.folder.glob("*.atsp"))
    if not paths:
        print(f"{options.folder} has no files *.atsp", file=sys.stderr)
        return 66
    print("| file | hosts | cost | lower bound | gap to best known | proven | time |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for path in paths:
        answer = solve(options, path)
        best = known.get(path.stem)
        gap = answer["cost"] / best - 1 if best else None
        rows.append((path.stem, answer, gap))
        show(path.stem, answer, gap)
    gaps = [gap for _, _, gap in rows if gap is not None]
    if gaps:
        print(f"\nmean gap {sum(gaps) / len(gaps):.3%}, largest gap {max(gaps):.3%}")
    wrong = list(faults(rows)) if options.check else []
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
