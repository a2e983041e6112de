#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of all-reduces and of shared state, run again with memory of CUDA devices (E2E_MEMORY=cuda, with the
double of the driver).

`./dev test memory` runs all of them (DEVICE_MEMORY=all). Otherwise those run that take little processor time."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

import lib
from lib import check

# They take about 60 s of a processor, and the others about 420 s.
FEW = ("async", "parity", "far_state", "backlog", "refusals", "threads", "deaths")
OTHERS = ("membership", "kill", "newcomers", "state", "restart", "links", "mesh", "quant", "long", "interrupt", "breaks",
          "masters", "view")
EVERYTHING = os.environ.get("DEVICE_MEMORY") == "all"
TESTS = FEW + (OTHERS if EVERYTHING else ())
LIMIT = 600  # seconds for one test


def run(name):
    here = pathlib.Path(__file__).resolve().parent
    try:
        done = subprocess.run([here.parent / "apart", sys.executable, here / f"test_{name}.py"], text=True,
                              env={**os.environ, "E2E_MEMORY": "cuda"}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=LIMIT * lib.SLOWER)
    except subprocess.TimeoutExpired as e:
        return name, 1, [f"took longer than {e.timeout} s"]
    return name, done.returncode, done.stdout.splitlines()


def test():
    if not (lib.BUILD / "tests/cuda/.libs/libcuda.so.1").exists():
        raise lib.Skipped("the build has no CUDA")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # they wait most of the time
        for name, status, lines in pool.map(run, TESTS):
            passed = [line for line in lines if line.endswith(" 0 failed")]
            if not check(status == 0 and passed, f"test_{name}.py with memory of devices"):
                print("\n".join(f"# {line}" for line in lines if not line.startswith("ok - ")))
            for line in lines[-1:] + passed:
                print(f"# {line.lstrip('# ')}")


if __name__ == "__main__":
    lib.run(test, LIMIT * len(TESTS))
