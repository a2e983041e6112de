#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Daemons that are told to end while they start: they end in order as soon as they have started.

What a daemon says is a pipe that is full: so it stands still at its first line, which it writes
once it has made its sockets."""

import fcntl
import os
import pathlib
import signal
import subprocess
import tempfile

import lib
from lib import AGENTD, MASTERD, check

PAGE = 4096
WRITE = {"x86_64": 1, "aarch64": 64}[os.uname().machine]  # the number of the system call


def stands_still(process):
    """Whether it waits to write a line of its log, or has ended."""
    words = pathlib.Path(f"/proc/{process.pid}/syscall").read_text("ascii").split()
    return words[:2] == [str(WRITE), "0x2"] or process.poll() is not None


def told_while_it_starts(folder, args, files):
    log, end = os.pipe()
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PAGE)
    os.write(end, b"." * PAGE)
    process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=end,
                               stderr=end, env={**os.environ, "XDG_RUNTIME_DIR": folder})
    os.close(end)
    with os.fdopen(log, "rb") as said:
        try:
            lib.until(lambda: stands_still(process), "the daemon says nothing")
            process.send_signal(signal.SIGTERM)
            said.read(PAGE)
            text = said.read().decode()
            status = process.wait(lib.WAIT)
        finally:
            process.kill()
    left = [f for f in files if os.path.lexists(f)]
    check(status == 0 and not left, f"{args[0].name}, told to end while it starts, ends in order",
          f"status {status}, left {left}, said: {text}")


def test():
    with tempfile.TemporaryDirectory(prefix=lib.PREFIX + "-") as folder:
        files = [f"{folder}/agent.sock", f"{folder}/agent.admin"]
        told_while_it_starts(folder, [AGENTD, "--socket", files[0], "--admin-socket", files[1],
                                      *lib.Loopback.agent_options], files)
        files = [f"{folder}/master.admin"]
        told_while_it_starts(folder, [MASTERD, "--listen", f"127.0.0.1:{lib.free_port()}",
                                      "--admin-socket", files[0]], files)


lib.run(test, 60)
