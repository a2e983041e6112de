#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tests/cuda/figures with the test double of the driver: it prints all figures, whatever they
are, and an error of the driver ends it with a sentence."""

import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("abs_top_builddir", TOP / "build/gcc"))
NAMES = ("device to host", "host to device", "hash", "hash with its call")
RATE = r"(\d[\d.e+-]*) GB/s [a-z ]+"
LINE = re.compile(rf"([a-z ]+): {RATE}, {RATE}, ratio (\d+\.\d+) \((\d+\.\d+)-(\d+\.\d+)\), "
                  r"(?:goal (\d\.\d\d): (met|missed)|no goal)")
# Functions whose failure must end the program.
NEEDED = ("cuDeviceGet", "cuDeviceGetName", "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuMemAlloc",
          "cuPointerGetAttributes", "cuMemHostRegister", "cuModuleLoadData", "cuModuleGetFunction",
          "cuEventRecord", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuLaunchKernel",
          "cuStreamSynchronize")
PASSED, FAILED = [], []


def check(ok, what, detail=""):
    (PASSED if ok else FAILED).append(what)
    print("ok  " if ok else "FAIL", what, "" if ok else detail, flush=True)


def run(*args, **env):
    """Returns the exit status, the output and the messages."""
    env = {**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": str(BUILD / "tests/cuda/.libs"), **env}
    done = subprocess.run([BUILD / "tests/cuda/figures", *args], env=env, text=True, capture_output=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def is_sane(found):
    ours, other, ratio, least, most = (float(found[k]) for k in range(2, 7))
    goal = found[7] and float(found[7])
    if not goal:
        judged = found[1] == "hash with its call"
    else:  # the ratio is rounded
        judged = (ratio >= goal) == (found[8] == "met") or abs(ratio - goal) < 0.001
    # An emulated kernel may take more than a thousand times as long as a copy.
    positive = min(ours, other) > 0 and (ratio > 0 or found[1].startswith("hash"))
    return positive and least <= ratio <= most and judged


def test_figures():
    code, out, err = run("3")
    first, *lines = out.splitlines() or [""]
    check(code == 0 and not err, "the program ends well, whatever it has measured", (code, err))
    check(first.startswith("test double 0 (sm_90), driver of CUDA 13.0, 3 MiB"), "the device is named", first)
    found = [LINE.fullmatch(line) for line in lines]
    check(all(found) and tuple(f[1] for f in found) == NAMES, "each figure has a line", out)
    check(all(f and is_sane(f) for f in found), "rates and ratios are numbers, and goals are judged", out)


def test_errors():
    for function in NEEDED:
        code, _, err = run("1", DOUBLE_FAIL=function)
        check(code == 1 and re.fullmatch(rf"figures: [^\n]*\b{function}\b failed[^\n]*\n", err),
              f"{function} fails", (code, err))
    code, out, err = run("4", DOUBLE_REGISTER_LIMIT=str(2 << 20))
    check(code == 1 and "cannot be registered" in err, "memory that cannot be registered", (code, out, err))
    for args in (("0",), ("x",), ("1", "2")):
        code, _, err = run(*args)
        check(code == 64 and err.startswith("usage: "), f"arguments {' '.join(args)}", (code, err))
    if not pathlib.Path("/dev/nvidiactl").exists():
        code, _, err = run(LD_LIBRARY_PATH="")
        check(code == 1 and "libcuda.so.1" in err, "no driver", (code, err))


def main():
    test_figures()
    test_errors()
    print(f"{len(PASSED)} passed, {len(FAILED)} failed")
    sys.exit(1 if FAILED else 0)


main()
