#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many more peers than a host has processors: in one group on one host, and in one process."""

import subprocess

import lib
from lib import check

CROWD = lib.BUILD / "tests/e2e/crowd"
SECONDS = 150


class Crowd:
    """Many peers in one process (crowd.c)."""

    def __init__(self, lab, host, **words):
        self.process, self.log = lab.spawn(
            # A daemon of systemd has a share of the processors of its own. Without one, a thread
            # among 1,024 others can wait for longer than the master waits for an agent.
            "crowd", host, ["nice", "-n", "10", CROWD, f"master={lab.master.address}",
                            *(f"{k}={v}" for k, v in words.items())],
            stdout=subprocess.PIPE,
            env={"PCCL_AGENT_SOCKET": str(lab.agents[host].socket)})

    def answer(self):
        try:
            out, _ = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"not done after {SECONDS} s"
        return out.decode().strip() or f"status {self.process.returncode}"


def together(what, crowds):
    for number, crowd in enumerate(crowds):
        answer = crowd.answer()
        check(answer == "ok", f"{what}: all peers of process {number} get the right results", answer)


def on_two_hosts():
    with lib.Lab(2) as lab:
        lab.start_master()
        lab.start_agent(0)
        lab.start_agent(1)
        together("130 peers of one group on each of two hosts", [
            Crowd(lab, host, n=65, world=260, state=1, first=int(k == 0))
            for k, host in enumerate((0, 0, 1, 1))])
        lab.check_alive()


def in_one_process():
    n = 200 if lib.sanitized() else 1024
    with lib.Lab(1) as lab:
        lab.start_master()
        lab.start_agent(0)
        together(f"{n} peers in one process", [Crowd(lab, 0, n=n, world=n)])
        lab.check_alive()


def test():
    on_two_hosts()
    in_one_process()


lib.run(test, 400)
