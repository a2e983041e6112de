#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs pcclctl gpu-check with the test double of the driver. The double emulates a GPU, so only the
functions with 65,536 arguments are fast enough."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("abs_top_builddir", TOP / "build/gcc"))
DOUBLE = BUILD / "tests/cuda/.libs"
KNOWN = (TOP / "kernels/cuda/known.txt").read_text("utf-8")
PASSED, FAILED = [], []


def check(ok, what):
    (PASSED if ok else FAILED).append(what)
    print("ok  " if ok else "FAIL", what, flush=True)


def run(*args, double=True):
    """Runs gpu-check and returns the exit status, the output and the messages."""
    env = dict(os.environ, LC_ALL="C")
    if double:
        env["LD_LIBRARY_PATH"] = str(DOUBLE)
    done = subprocess.run([BUILD / "pcclctl/pcclctl", *args], env=env, text=True, capture_output=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def known(name):
    return re.search(rf"^{name} +\* +([0-9a-f]{{16}})$", KNOWN, re.M)[1]


def cuda_in_build():
    return "#define HAVE_CUDA 1" in (BUILD / "config.h").read_text("utf-8")


def test_without_cuda():
    code, _, err = run("gpu-check")
    check(code == 69 and "--with-cuda" in err, "a build without CUDA names the option of configure")


def test_refusals():
    code, out, err = run("gpu-check", "--function", "exp")
    check(code == 64 and not out and "expf" in err, "the names of functions are listed")
    code, _, err = run("gpu-check", "--device", "7")
    check(code == 69 and "no CUDA device 7" in err, "a device that does not exist is refused")
    code, _, err = run("gpu-check", "--matrix", "x")
    check(code == 64 and "topology solve" in err, "options of other commands are refused")
    code, _, err = run("status", "--device", "1")
    check(code == 64 and "gpu-check" in err, "other commands refuse options of gpu-check")
    code, _, err = run("gpu-check", "--compare", "/nonexistent")
    check(code == 66 and "/nonexistent" in err, "a file that does not exist is named")
    if pathlib.Path("/dev/nvidiactl").exists():
        return
    code, _, err = run("gpu-check", double=False)
    check(code == 69 and "libcuda.so.1" in err, "without a driver, the message names the library")


def test_values(folder):
    code, text, err = run("gpu-check", "--function", "f16_to_f32")
    line = text.splitlines()[-1].split()
    check(code == 0 and not err and line[0] == "f16_to_f32", "one function is evaluated")
    check(line[2] == known("f16_to_f32"), "the hash is the known one")
    check(line[3:] == ["equal", known("f16_to_f32"), "equal"], "the CPU has the same hash")
    code, both, _ = run("--json", "gpu-check", "--function", "bf16_to_f32")
    function = json.loads(both)["functions"][0]
    check(code == 0 and function["hash"] == known("bf16_to_f32") and function["known"] == "equal",
          "JSON has the hash and the comparison")
    for name, output in (("text", text), ("json", both)):
        file = folder / name
        file.write_text(output, "utf-8")
        wanted = "f16_to_f32" if name == "text" else "bf16_to_f32"
        code, out, _ = run("gpu-check", "--function", wanted, "--compare", file)
        check(code == 0 and out.splitlines()[-1].endswith(" equal"), f"an equal hash in {name}")
        file.write_text(output.replace(known(wanted), "0123456789abcdef"), "utf-8")
        code, out, err = run("gpu-check", "--function", wanted, "--compare", file)
        check(code == 1 and out.splitlines()[-1].endswith(" differs") and "differs" in err,
              f"another hash in {name}")
    for name, output, wanted in (("texts", text, "f16_to_f32"), ("jsons", both, "bf16_to_f32")):
        other = output.replace(known(wanted), "0123456789abcdef")
        for hosts, order in ((output + other, "last"), (other + output, "first")):
            (folder / name).write_text(hosts, "utf-8")
            code, out, _ = run("gpu-check", "--function", wanted, "--compare", folder / name)
            check(code == 1 and out.splitlines()[-1].endswith(" differs"), f"another hash in the {order} of two {name}")
    (folder / "empty").write_text("# no hash\n", "utf-8")
    code, _, err = run("gpu-check", "--compare", folder / "empty")
    check(code == 65 and "no hash" in err, "a file without hashes is refused")
    (folder / "wrong").write_text(both + "{", "utf-8")
    code, _, err = run("gpu-check", "--compare", folder / "wrong")
    check(code == 65 and "--json" in err, "JSON that is cut off is refused")
    (folder / "wrong").write_text("expf sm_90 0123456789abcdef\nlogf sm_90 12\n", "utf-8")
    code, _, err = run("gpu-check", "--compare", folder / "wrong")
    check(code == 65 and "line 2" in err, "a wrong line of the file is named")
    (folder / "wrong").write_text("{}", "utf-8")
    code, _, err = run("gpu-check", "--compare", folder / "wrong")
    check(code == 65 and "--json" in err, "wrong JSON is refused")


def main():
    if not cuda_in_build():
        test_without_cuda()
    else:
        test_refusals()
        with tempfile.TemporaryDirectory() as folder:
            test_values(pathlib.Path(folder))
    print(f"{len(PASSED)} passed, {len(FAILED)} failed")
    sys.exit(1 if FAILED else 0)


main()
