# SPDX-License-Identifier: MIT
"""Hosts with a high round trip between them."""

import re
import subprocess

import lib

LONGWAY = lib.BUILD / "tests/lab/high_rtt"


class Hosts(lib.Namespaces):
    """Network namespaces. Some of them are connected by long cables.

    ways: the options of high_rtt for these hosts, by name, for example {1: {"delay": 10, "loss":
    0.001}}: 10 ms in each direction. Between two such hosts all values are doubled. After close(),
    `told` contains the counts of packets from and to each host: told[1]["from"] == {"forwarded": 1,
    "lost": 0, "overrun": 0, "refused": 0}."""

    def __init__(self, n_hosts, ways):
        if not LONGWAY.exists():
            raise lib.Failed(f"not built: {LONGWAY}")
        self.ways, self.programs, self.told = ways, {}, {}
        super().__init__(n_hosts)

    def _cable(self, host):
        if host not in self.ways:
            super()._cable(host)
            return
        program = subprocess.Popen(
            [LONGWAY, *(f"--{name}={value}" for name, value in self.ways[host].items()),
             f"/run/netns/{self.name(host)}", "eth0",
             f"/run/netns/{self.name(self.middle)}", f"to-{host}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = program.stdout.readline()
        if line != "ready\n":
            program.wait()
            raise OSError(line.strip())
        self.programs[host] = program

    def close(self):
        for host, program in self.programs.items():
            program.terminate()
            rest = program.communicate(timeout=lib.WAIT)[0]
            if program.returncode != 0:
                lib.check(False, f"high_rtt ended with status {program.returncode}", rest)
            counts = [{k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)}
                      for line in rest.splitlines()]
            self.told[host] = dict(zip(("from", "to"), counts))
        self.programs = {}
        super().close()
