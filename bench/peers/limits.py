# SPDX-License-Identifier: MIT
"""The limits of the machine: its memory, and TCP between the hosts of the contenders."""

import json
import os
import shutil
import statistics

from . import base

IPERF_LEAST = base.MIB  # smaller transfers end before TCP has opened its window


class Memory(base.Contender):
    """Runs one thread for each peer, with its own arrays, but at most one for each processor."""

    limit = True
    tcp = False
    verb = None

    def __init__(self):
        self.threads = None

    def start(self, setting, network):
        n = min(setting.peers, len(os.sched_getaffinity(0)))
        self.threads = base.Answering(self.name, [str(base.BUILD / "bench/limits"), self.verb,
                                                  str(n)], base.work_folder() / "limits.log")

    def measure(self, size, warm_ups, n):
        self.threads.send(f"{size} {warm_ups} {n}")
        return statistics.median(self.threads.times())

    def stop(self):
        if self.threads:
            self.threads.stop()
            self.threads = None


class Copy(Memory):
    name = "memcpy"
    verb = "copy"


class Sum(Memory):
    name = "sum of two arrays"
    verb = "sum"


class Tcp(base.Contender):
    """Measures how long iperf3 takes, in one direction, for the bytes that each end of an ideal
    ring sends."""

    limit = True
    streams = None

    def __init__(self):
        self.setting = self.network = None

    def available(self, setting):
        return None if shutil.which("iperf3") else "no iperf3 (./dev deps)"

    def start(self, setting, network):
        self.setting, self.network = setting, network

    def measure(self, size, warm_ups, n):
        if size < IPERF_LEAST:
            return None
        env = base.environment(self.setting)
        far, port = self.setting.hosts - 1, str(base.free_port())
        server = base.Answering("iperf3", self.network.command(
            far, ["iperf3", "-s", "-1", "--forceflush", "-p", port]),
            base.work_folder() / "iperf3.log", env=env)
        try:
            while "listening" not in server.read():
                pass
            said = json.loads(base.run(self.network.command(
                0, ["iperf3", "-J", "-t", "1", "-P", str(self.streams), "-p", port, "-c",
                    self.network.address(far)]), "iperf3", 60, env=env))
        finally:
            server.stop()
        return self.setting.sent(size) * 8 / said["end"]["sum_received"]["bits_per_second"]


class Tcp1(Tcp):
    name = "TCP, 1 stream"
    streams = 1


class Tcp4(Tcp):
    name = "TCP, 4 streams"
    streams = 4
