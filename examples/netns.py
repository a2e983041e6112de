# SPDX-License-Identifier: MIT
"""Hosts as network namespaces joined by a bridge, for the demonstration and for tests. Needs root."""

import os
import pathlib
import re
import shutil
import subprocess


def possible():
    return os.geteuid() == 0 and shutil.which("ip") is not None


def ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(args)}: {done.stderr.strip()}")


class Namespaces:
    """The namespace of a host is called PREFIX-PID-HOST. The bridge is in another namespace,
    `middle`.

    addresses: the address of each host, and of the bridge if `middle` is among them. Raises OSError
    if the namespaces cannot be created; then nothing is left over."""

    def __init__(self, prefix, addresses, middle):
        self.prefix, self.addresses, self.middle = prefix, addresses, middle
        self._remove_left_over()
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def name(self, host):
        return f"{self.prefix}-{os.getpid()}-{host}"

    def address(self, host):
        return self.addresses[host]

    def command(self, host, args):
        return ["ip", "netns", "exec", self.name(host), *args]

    def close(self):
        for host in {self.middle, *self.addresses}:
            if os.path.exists(f"/run/netns/{self.name(host)}"):
                ip("netns", "del", self.name(host))

    def _build(self):
        for host in {self.middle, *self.addresses}:
            ip("netns", "add", self.name(host))
            ip("-n", self.name(host), "link", "set", "lo", "up")
        middle = self.name(self.middle)
        ip("-n", middle, "link", "add", "bridge", "type", "bridge")
        ip("-n", middle, "link", "set", "bridge", "up")
        for host, address in self.addresses.items():
            device = "bridge"
            if host != self.middle:
                device = "eth0"
                self._cable(host)
                ip("-n", middle, "link", "set", f"to-{host}", "master", "bridge", "up")
            ip("-n", self.name(host), "addr", "add", address + "/24", "dev", device)
            ip("-n", self.name(host), "link", "set", device, "up")

    def _cable(self, host):
        """Creates the cable: a veth pair of eth0 in the host's namespace and to-HOST in the
        namespace `middle`."""
        ip("-n", self.name(self.middle), "link", "add", f"to-{host}", "type", "veth",
           "peer", "name", "eth0", "netns", self.name(host))

    def _remove_left_over(self):
        """Removes namespaces of earlier runs that were killed before they could clean up."""
        folder = pathlib.Path("/run/netns")
        for path in folder.glob(f"{self.prefix}-*") if folder.is_dir() else ():
            owner = re.fullmatch(self.prefix + r"-(\d+)-\w+", path.name)
            if owner and not os.path.exists(f"/proc/{owner[1]}"):
                ip("netns", "del", path.name)
