# SPDX-License-Identifier: MIT
"""Starts attacker.py against the daemons of a Lab, and ends it."""

import pathlib
import subprocess
import sys

import lib
from lib import Failed

ATTACKER = pathlib.Path(__file__).with_name("attacker.py")
WITHOUT_END = 1 << 60


def addresses(lab, only):
    return [lab.master.address,
            *(f"{lab.hosts.address(host)}:{port}" for host, agent in lab.agents.items()
              for port in agent.tcp_ports() if only in (None, port))]


class Attack:
    """Runs the attacker on `host` for the duration of the `with` block. only: the port of agents
    that it knows, or None for all ports. rate: attacks per second, set at the end of the block."""

    def __init__(self, lab, name, host, times=WITHOUT_END, only=None):
        args = [sys.executable, ATTACKER, name, times, *addresses(lab, only)]
        self.process, self.log = lab.spawn(f"attacker-{name}", host, args, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE)
        self.rate = None

    def __enter__(self):
        if self.process.stdout.readline() != b"ready\n":
            raise Failed(f"the attacker is not ready: {self.log.read_text('utf-8')}")
        return self

    def wait(self):
        """Waits until the attacker has ended by itself."""
        line = self.process.stdout.readline().decode()
        if not line:
            raise Failed(f"the attacker has ended without a result: {self.log.read_text('utf-8')}")
        words = dict(word.split("=") for word in line.split())
        self.rate = int(words["done"]) / max(float(words["seconds"]), 0.01)

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.rate is None:
            self.wait()
        self.process.stdout.close()
        self.process.wait(lib.WAIT)
