#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""If a daemon gets the signal to end while it starts, it completes its start, and then ends in
order."""

import os
import signal
import subprocess
import tempfile

import lib
from lib import AGENTD, MASTERD, check

TRIES = 10  # several tries, because the time between the first line and readiness is short


def told_while_it_starts(folder, args, files):
    """The daemon writes its first line after it has created its sockets."""
    ends = []
    for _ in range(TRIES):
        with subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE,
                              env={**os.environ, "XDG_RUNTIME_DIR": folder}) as process:
            first = process.stderr.read(1)
            process.send_signal(signal.SIGTERM)
            text = (first + process.stderr.read()).decode()
            ends.append((process.wait(lib.WAIT), [f for f in files if os.path.lexists(f)], text))
    wrong = [end for end in ends if end[0] != 0 or end[1]]
    check(not wrong, f"{args[0].name}, ended by a signal during its start, ends in order", wrong)


def test():
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX + "-") as folder:
        files = [f"{folder}/agent.sock", f"{folder}/agent.admin"]
        told_while_it_starts(folder, [AGENTD, "--socket", files[0], "--admin-socket", files[1],
                                      *lib.Loopback.agent_options], files)
        files = [f"{folder}/master.admin"]
        told_while_it_starts(folder, [MASTERD, "--listen", f"127.0.0.1:{lib.free_port()}",
                                      "--admin-socket", files[0]], files)


lib.run(test, 60)
