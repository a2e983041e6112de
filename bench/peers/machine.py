# SPDX-License-Identifier: MIT
"""The properties of this machine that are printed next to the figures."""

import os
import pathlib
import platform
import re
import subprocess

from . import base


def _first_line(*args):
    try:
        said = subprocess.run(args, capture_output=True, text=True, timeout=10, check=True,
                              cwd=base.TOP)
        return said.stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def _found(path, pattern, default="unknown"):
    found = re.search(pattern, pathlib.Path(path).read_text("utf-8", "replace"), re.M)
    return found[1] if found else default


def available_memory():
    return int(_found("/proc/meminfo", r"^MemAvailable:\s+(\d+)")) << 10


def facts():
    cores = len(os.sched_getaffinity(0))
    gib = int(_found("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / (1 << 20)
    congestion = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text("ascii")
    return ", ".join((
        _found("/proc/cpuinfo", r"^model name\s*:\s*(.*)", platform.machine()),
        f"{cores} core{'s' * (cores > 1)}", f"{gib:.0f} GiB", f"Linux {platform.release()}",
        _found("/etc/os-release", r'^PRETTY_NAME="(.*)"'), _first_line("gcc", "--version"),
        f"TCP {congestion.strip()}", f"load {os.getloadavg()[0]:.1f} at the start"))


def commit():
    return _first_line("git", "describe", "--always", "--dirty")
