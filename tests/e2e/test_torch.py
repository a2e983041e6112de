#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/torch_train.py: two processes train with tensors of PyTorch, and end with equal weights.
Skipped if Python finds no PyTorch."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import lib
from lib import check

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/torch_train.py"
LIBRARY = lib.BUILD / "libpccl-shim/.libs/libpccl-shim.so.1"
SECONDS = 120 * lib.SLOWER


def test():
    if not importlib.util.find_spec("torch"):
        raise lib.Skipped("no PyTorch")
    if lib.sanitized():
        raise lib.Skipped("Python has no sanitizer")
    with lib.Lab(1) as lab:
        master = lab.start_master()
        agent = lab.start_agent()
        trainers = [lab.spawn(f"torch-{k}", 0,
                              [sys.executable, EXAMPLE, f"127.0.0.1:{master.port}", "--library", LIBRARY,
                               "--steps", 20, "--device", "cpu"],
                              env={"PCCL_AGENT_SOCKET": agent.socket, "OMP_NUM_THREADS": "1"},
                              stdout=subprocess.PIPE)[0] for k in range(2)]
        said = [trainer.communicate(timeout=SECONDS)[0].decode() for trainer in trainers]
        check(all(t.returncode == 0 for t in trainers), "both processes end with success", said)
        weights = [re.findall(r"20 steps, .*weights (\S+)$", text, re.M) for text in said]
        check(weights[0] and weights[0] == weights[1], "both processes have the same weights", said)


if __name__ == "__main__":
    lib.run(test, 300)
