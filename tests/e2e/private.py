# SPDX-License-Identifier: MIT
"""Private agents of programs that find no other agent."""

import os
import pathlib
import signal
import time

import lib

SYSTEM_SOCKET = "/run/pccl/agent.sock"
IDLE_SECONDS = 1
MASTER_LEASE_MS = 1500


def skip_beside_system_agent():
    if os.path.exists(SYSTEM_SOCKET):
        raise lib.Skipped(f"a system agent runs at {SYSTEM_SOCKET}")


def until(good, seconds):
    """Waits until good() is true. Polls, because a process that is no child of the test cannot be
    awaited."""
    deadline = time.monotonic() + seconds
    while not good():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class PrivateAgents:
    """The environment of processes that have no agent. Agents that they start end with the
    test."""

    def __init__(self, lab):
        self.lab = lab
        # the agent with shorter times: by default it ends 30 s after its last process, and waits
        # 60 s for a master
        program = lab.folder / "agentd"
        program.write_text(f'#!/bin/sh\nexec "{lib.AGENTD}" "$@" --idle-exit {IDLE_SECONDS}'
                           f' --master-lease-ms {MASTER_LEASE_MS}\n', encoding="ascii")
        program.chmod(0o755)
        self.env = {"PCCL_AGENTD": str(program), "PCCL_MASTERD": str(lib.MASTERD)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)

    def running(self):
        return [pid for pid in lib.processes(lib.AGENTD, str(self.lab.folder))
                if b"--private" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
