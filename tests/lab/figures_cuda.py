#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures all-reduces of memory of CUDA devices beside those of ordinary memory, between two hosts
whose link has a limited rate (matrix.py). ./dev gpu runs it.

usage: figures_cuda.py [--rate GBIT] [--size SIZE] [--pairs N] [--iterations N]

Default: 10 Gbit/s, 256M, 7 pairs, 5 iterations. Both kinds of memory are measured in pairs, with the
order changed from pair to pair, and each measurement has new processes and a new network. A time is
the median of the iterations; the figures are the medians of all pairs. If ordinary memory does not
reach the rate of the link, the ratio is one of processors rather than of the link. With E2E_MEMORY=cuda the driver
is the test double. Exit status 77: the link cannot be limited here."""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib
import matrix
from lib import Failed, Skipped, netns

BENCH = lib.BUILD / "pccl-bench/pccl-bench"
MATRIX = pathlib.Path(matrix.__file__)
PORT = 48148
KINDS = ("staged", "cuda")
GOAL = 1.05
LONGEST = 300  # seconds of a measurement
UNAVAILABLE = 77


def on_hosts(file, command, *options):
    """Runs a command of the shell on both hosts. Returns what each has printed."""
    done = subprocess.run([MATRIX, *options, file, "--", "sh", "-c", command], capture_output=True, text=True,
                          timeout=LONGEST, check=False)
    printed = ["".join(line[len(host):] + "\n" for line in done.stdout.splitlines() if line.startswith(host))
               for host in ("a: ", "b: ")]
    if done.returncode:
        raise Failed("\n".join(text.strip() for text in (done.stderr, *printed)))
    return printed


def require(file):
    """Raises Skipped if such a network cannot be built here."""
    if not netns.possible():
        raise Skipped("only root can limit a link, and it needs ip")
    if not shutil.which("tc"):
        raise Skipped("tc is not installed")
    try:
        on_hosts(file, "true")
    except Failed as error:
        raise Skipped(f"the kernel cannot limit a link: {error}") from None


def measure(args, file, memory):
    """Returns the time of an all-reduce in ms, that of the slower host, and the bits that each host sends."""
    outputs = on_hosts(
        file, f"exec {BENCH} allreduce -b {args.size} -e {args.size} -n {args.iterations} -w 2 --peers 1 "
        f"--world 2 --first-rank $LAB_INDEX --master $LAB_NET:{PORT} --memory {memory} --json",
        "--net", f"exec {lib.MASTERD} --listen 0.0.0.0:{PORT}")
    times = []
    for text in outputs:
        row = json.loads(text[text.index("{"):text.rindex("}") + 1])["rows"][0]
        if row["errors"]:
            raise Failed(f"an all-reduce of memory {memory} has failed: {text}")
        times.append(row["time_median_ns"] / 1e6)
    return max(times), 8 * row["size"]


def figures(args, file):
    times, ratios = {kind: [] for kind in KINDS}, []
    for pair in range(args.pairs):
        for kind in KINDS if pair % 2 == 0 else reversed(KINDS):
            time, bits = measure(args, file, kind)
            times[kind].append(time)
        ratios.append(times["cuda"][-1] / times["staged"][-1])
        print(f"# pair {pair + 1}: staged {times['staged'][-1]:.1f} ms, cuda {times['cuda'][-1]:.1f} ms", flush=True)
    ratio, cuda, staged = map(statistics.median, (ratios, times["cuda"], times["staged"]))
    print(f"all-reduce of {args.size} over {args.rate:g} Gbit/s: cuda {cuda:.1f} ms, staged {staged:.1f} ms "
          f"({bits / staged / 1e6:.2f} Gbit/s), {args.pairs} pairs, ratio {ratio:.3f} "
          f"({min(ratios):.3f}-{max(ratios):.3f}), goal at most {GOAL:.2f}: {'met' if ratio <= GOAL else 'missed'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=10, help=argparse.SUPPRESS)
    parser.add_argument("--size", default="256M", help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=7, help=argparse.SUPPRESS)
    parser.add_argument("--iterations", type=int, default=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", prefix="pccl-link-", encoding="ascii") as file:
        file.write(f"hosts a b\nrates Gbit/s\n- {args.rate:g}\n{args.rate:g} -\n")
        file.flush()
        try:
            require(file.name)
            figures(args, file.name)
        except Skipped as reason:
            print(f"# skipped: {reason}")
            return UNAVAILABLE
        except (Failed, subprocess.TimeoutExpired) as error:
            print(f"figures_cuda.py: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
