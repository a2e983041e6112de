#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws networks of hosts with unequal links, and prints those for which several rings are good.

usage: draw.py [--hosts N] [--first SEED] [--last SEED] [--write FOLDER]

The rates of links are drawn from 100 to 1,000 Mbit/s, with equal chances for 100 to 200 and for 500
to 1,000 Mbit/s, each direction by itself. What a host sends and receives is drawn from 400 to 1,000
Mbit/s in the same way. Each seed is one network. A line is printed for each network whose plan of at
most four rings is predicted to have at least 1.6 times the rate of the best single ring, and 97 % of
the bound for any number of rings. --write also writes these matrices into the folder.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib

GAIN, REACHED = 1.6, 0.97


def drawn(random_, least, most):
    """Returns a rate in Mbit/s, a multiple of 10."""
    return round(least * (most / least) ** random_.random(), -1)


def text_of(seed, hosts):
    random_ = random.Random(seed)
    rows = [["-" if a == b else f"{drawn(random_, 100, 1000):.0f}" for b in range(hosts)] for a in range(hosts)]
    caps = [[f"{drawn(random_, 400, 1000):.0f}" for _ in range(2)] for _ in range(hosts)]
    lines = [f"hosts {' '.join('abcdefghijklmnop'[:hosts])}", "rates Mbit/s",
             *("".join(f"{each:<5}" for each in row).rstrip() for row in rows), "caps Mbit/s",
             *("".join(f"{each:<5}" for each in row).rstrip() for row in caps)]
    return "\n".join(lines) + "\n"


def solved(path, objective):
    done = lib.ctl("--json", "topology", "solve", "--matrix", path, "--objective", objective)
    if done.returncode:
        raise lib.Failed(done.stderr)
    return json.loads(done.stdout)


def main():
    words = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    words.add_argument("--hosts", type=int, default=6, choices=range(3, 17))
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--last", type=int, default=200)
    words.add_argument("--write", type=pathlib.Path)
    args = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "matrix"
        for seed in range(args.first, args.last + 1):
            text = text_of(seed, args.hosts)
            path.write_text(text, "ascii")
            one, many = solved(path, "bottleneck"), solved(path, "plan")
            if many["rate"] < GAIN * one["rate"] or many["rate"] < REACHED * many["upper_bound"]:
                continue
            print(f"seed {seed}: {len(many['rings'])} rings with {many['rate'] / 1e6:.0f} of at most "
                  f"{many['upper_bound'] / 1e6:.0f} Mbit/s, one ring {one['rate'] / 1e6:.0f}", flush=True)
            if args.write:
                (args.write / f"drawn-{args.hosts}-{seed}").write_text(
                    f"# SPDX-License-Identifier: MIT\n#\n# Seed {seed} of draw.py.\n{text}", "ascii")


if __name__ == "__main__":
    main()
