# SPDX-License-Identifier: MIT
"""Gloo, through PyTorch's distributed package: CPU tensors, TCP.

Uses Debian's torch, because PyPI's torch for x86-64 cannot be imported without gigabytes of CUDA
libraries. Gloo is equally fast in both."""

import importlib.util
import statistics
import sys

from . import base


class Gloo(base.Contender):
    name = "Gloo"

    def __init__(self):
        self.ranks = []

    def available(self, setting):
        if importlib.util.find_spec("torch") is None:
            return f"{sys.executable} finds no torch (./dev deps bench: python3-torch)"
        return None

    def start(self, setting, network):
        port = base.free_port()
        script = str(base.BENCH / "peers/gloo_rank.py")
        log = base.work_folder() / "gloo.log"
        log.unlink(missing_ok=True)
        for rank in range(setting.peers):
            args = [sys.executable, "-B", script, str(rank), str(setting.peers),
                    network.address(0), str(port)]
            self.ranks.append(base.Answering(
                f"Gloo's rank {rank}", network.command(setting.host_of(rank), args), log,
                env=base.environment(setting, GLOO_SOCKET_IFNAME=network.device)))
        for rank in self.ranks:
            rank.read()

    def measure(self, size, warm_ups, n):
        for rank in self.ranks:
            rank.send(f"{size} {warm_ups} {n}")
        times = [rank.times() for rank in self.ranks]
        return statistics.median(max(of_all) for of_all in zip(*times))

    def stop(self):
        for rank in self.ranks:
            rank.stop()
        self.ranks = []
