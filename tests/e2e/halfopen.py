# SPDX-License-Identifier: MIT
"""Connections that one end has lost and the other end still has. ss -K closes the sockets at one
end, while the FIN and RST of this host, or all its packets, are dropped."""

import shutil
import socket
import subprocess

import lib
import netns

ENDS, ALL = "ends", "all"  # the packets that are dropped
SHARED_STATE, P2P = 48149, 48150  # ports
MASTER_SIDE, AGENT_SIDE = "of the master", "with the master"
INBOUND, OUTBOUND, STATE = "p2p in", "p2p out", "of shared state"


def run(hosts, host, *words):
    """Runs a command in the host's namespace and returns its output."""
    done = subprocess.run(hosts.command(host, [str(w) for w in words]), check=False,
                          capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def missing():
    """Returns why these tests cannot run here, or None."""
    tools = [tool for tool in ("ss", "tc") if not shutil.which(tool)]
    if tools:
        return f"needs {' and '.join(tools)}"
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()):
        done = subprocess.run(["ss", "-KHt", "dport", "=", f":{server.getsockname()[1]}"],
                              check=False, capture_output=True, text=True, timeout=30)
    return None if done.stdout else f"ss -K closes nothing: {done.stderr.strip()}"


class Hosts(lib.Namespaces):
    """Hosts whose FIN and RST can be dropped: these packets are redirected to an interface without
    a receiver."""

    def __init__(self, n_hosts):
        super().__init__(n_hosts)
        try:
            for host in range(n_hosts):
                netns.ip("-n", self.name(host), "link", "add", "nowhere", "type", "veth", "peer",
                         "name", "sink")
                netns.ip("-n", self.name(host), "link", "set", "nowhere", "up")
                self.tc(host, "qdisc", "add", "dev", "eth0", "clsact")
            self.lose_ends(0, True)
            self.lose_ends(0, False)
        except BaseException:
            self.close()
            raise

    def tc(self, host, *words):
        run(self, host, "tc", *words)

    def shut(self, host):
        """Makes the p2p port of the host unreachable."""
        self.tc(host, "filter", "add", "dev", "eth0", "ingress", "protocol", "ip", "u32", "match",
                "ip", "protocol", "6", "0xff", "match", "ip", "dport", P2P, "0xffff", "action",
                "mirred", "egress", "redirect", "dev", "nowhere")

    def lose_ends(self, host, on):
        if not on:
            self.tc(host, "filter", "del", "dev", "eth0", "egress")
            return
        for number, flag in ((1, "0x01"), (2, "0x04")):
            self.tc(host, "filter", "add", "dev", "eth0", "egress", "protocol", "ip", "pref", number,
                    "u32", "match", "ip", "protocol", "6", "0xff", "match", "u8", flag, flag, "at",
                    "33", "action", "mirred", "egress", "redirect", "dev", "nowhere")

    def lose(self, host, what, on):
        if what == ENDS:
            self.lose_ends(host, on)
        elif what == ALL:
            for other in range(self.n_hosts):
                if other != host:
                    self.deafen(host, other, on)


class Sockets:
    """The sockets of a host's daemons, by purpose. Agents of separate hosts have the usual ports."""

    def __init__(self, lab):
        self.lab = lab

    def rules(self, target):
        master = self.lab.master.port
        return {MASTER_SIDE: f"sport = :{master}", AGENT_SIDE: f"dport = :{master}",
                INBOUND: f"sport = :{P2P}", OUTBOUND: f"dport = :{P2P}",
                STATE: f"sport = :{SHARED_STATE} or dport = :{SHARED_STATE}"}[target]

    def chosen(self, host, target, some=None):
        """Returns a filter for all sockets of the target. If `some` is given, it chooses one of
        these sockets, and the filter selects only this one. Returns None if there is no socket."""
        rule = self.rules(target)
        if not some:
            return rule
        pairs = [line.split()[2:4] for line in run(
            self.lab.hosts, host, "ss", "-Htn", "state", "established", rule).splitlines()]
        if not pairs:
            return None
        local, remote = (x.rsplit(":", 1)[1] for x in some(pairs))
        return f"sport = :{local} and dport = :{remote}"

    def wait(self, host, target, is_over):
        """Waits until such a socket exists. Returns false if is_over() becomes true first."""
        while not run(self.lab.hosts, host, "ss", "-Htn", "state", "established",
                      self.rules(target)):
            if is_over():
                return False
        return True

    def close(self, host, rule):
        """Closes the sockets at this end. Returns their number."""
        return len(run(self.lab.hosts, host, "ss", "-KHtn", "state", "established",
                       rule).splitlines()) if rule else 0
