#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hosts in network namespaces. The rates and round trips between them, and the caps of each host,
come from a matrix: a text file (README.md describes it; matrices/ has examples).

usage: matrix.py FILE                                  checks the file and prints the hosts
       matrix.py [--net COMMAND] FILE -- COMMAND...    runs a command on each host, as root

All hosts run the command at the same time. It finds its host in LAB_HOST (the name), LAB_INDEX (from
0) and LAB_ADDRESS, the names of all hosts in LAB_HOSTS, and in LAB_NET an address that all hosts reach
without a limit. XDG_RUNTIME_DIR is a folder of the host, PCCL_AGENTD the agent of the build; other
variables PCCL_* are not passed on. Each line of output begins with the name of the host. The exit
status is 0 if the command has succeeded on all hosts. Then all processes that are left are killed,
and the network goes.

--net COMMAND   run this command of the shell at LAB_NET, for example a master. The hosts begin when
                it listens on a TCP port.
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import lib
from lib import Failed, Skipped, netns
from measure import PAYLOAD

HOSTS_MAX = 32
NET = "net"  # the namespace that every host reaches without a limit

# ------------------------------------------------------------------------------ the matrix

RATES = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
TIMES = {"us": 1e-6, "ms": 1e-3}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


class Wrong(Exception):
    """A matrix is not valid. The text names the file, the line and the field."""


class Matrix:
    """What a file says. Hosts have numbers from 0, in the order of the file.

    names: the names of the hosts. rates[a][b]: bits of TCP payload per second from a to b; 0: no link.
    trips[a][b]: the round trip in seconds; 0 if the file has none. caps[a]: the rates at which a sends
    and receives, together with all other hosts; 0: no cap."""

    def __init__(self, text, source="matrix"):
        self._source = source
        self._lines = [(number, words) for number, line in enumerate(text.splitlines(), 1)
                       if (words := line.partition("#")[0].split())]
        self._done = 0
        self.names = self._hosts()
        size = len(self.names)
        sections = {"rates": None, "round-trips": None, "caps": None}
        while self._done < len(self._lines):
            number, words = self._lines[self._done]
            name = words[0]
            if name not in sections:
                raise self._wrong(number, f"a section must be rates, round-trips or caps, not {name}", 1)
            if sections[name]:
                raise self._wrong(number, f"there are two sections {name}", 1)
            sections[name] = self._section(name, 2 if name == "caps" else size)
        if not sections["rates"]:
            raise Wrong(f"{source}: there is no section rates")
        self.rates = self._links(sections["rates"])
        self.trips = self._values(sections["round-trips"]) or [[0] * size for _ in range(size)]
        self.caps = self._values(sections["caps"]) or [[0, 0] for _ in range(size)]

    def _wrong(self, number, what, field=None):
        return Wrong(f"{self._source}:{number}: {f'field {field}: ' if field else ''}{what}")

    def _hosts(self):
        if not self._lines:
            raise Wrong(f"{self._source}: there is no section hosts")
        number, words = self._lines[0]
        self._done = 1
        if words[0] != "hosts":
            raise self._wrong(number, f"the first section must be hosts, not {words[0]}", 1)
        names = words[1:]
        if len(names) == 1 and names[0].isdecimal():
            names = [f"host-{k}" for k in range(min(int(names[0]), HOSTS_MAX + 1))]
        for field, name in enumerate(names, 2):
            if not NAME.fullmatch(name):
                raise self._wrong(number, f"a name may contain letters, digits, '.', '_' and '-': {name}", field)
            if name in names[:field - 2]:
                raise self._wrong(number, f"two hosts have the name {name}", field)
        if not 2 <= len(names) <= HOSTS_MAX:
            raise self._wrong(number, f"there must be 2 to {HOSTS_MAX} hosts")
        return names

    def _section(self, name, width):
        """Reads a section. Returns its rows, each with the number of its line."""
        number, words = self._lines[self._done]
        units = TIMES if name == "round-trips" else RATES
        if len(words) != 2 or words[1] not in units:
            raise self._wrong(number, f"{name} needs one of the units {', '.join(units)}", 2)
        self._done += 1
        rows = self._lines[self._done:self._done + len(self.names)]
        self._done += len(rows)
        for row in range(len(self.names)):
            if row == len(rows) or rows[row][1][0] in ("rates", "round-trips", "caps"):
                raise self._wrong(number, f"{name} needs {len(self.names)} rows, not {row}")
            rows[row] = (rows[row][0], self._row(name, width, row, *rows[row], units[words[1]]))
        return rows

    def _row(self, name, width, row, number, words, unit):
        if len(words) != width:
            raise self._wrong(number, f"a row of {name} needs {width} fields, not {len(words)}",
                              min(len(words), width) + 1)
        values = []
        for field, word in enumerate(words):
            diagonal = name != "caps" and field == row
            if diagonal != (word == "-"):
                raise self._wrong(number, f"only the diagonal must be '-', and not {word}", field + 1)
            if not diagonal and not NUMBER.fullmatch(word):
                raise self._wrong(number, f"not a number: {word}", field + 1)
            values.append(0 if diagonal else float(word) * unit)
        return values

    @staticmethod
    def _values(rows):
        return rows and [values for _, values in rows]

    def _links(self, rows):
        """Returns the rates. TCP needs packets in both directions, so a lone 0 can have no effect
        that agrees with the other number."""
        rates = self._values(rows)
        for a, (number, values) in enumerate(rows):
            for b, rate in enumerate(values):
                if a != b and not rate and rates[b][a]:
                    raise self._wrong(number, f"the rate from {self.names[a]} to {self.names[b]} is 0, and the "
                                      "rate of the other direction is not: set both or none to 0", b + 1)
        return rates


def read(path):
    """Returns the matrix in this file."""
    try:
        return Matrix(pathlib.Path(path).read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"{path}: {error.strerror if isinstance(error, OSError) else 'this is no text'}") from None


# ----------------------------------------------------------------------------- the network

SWITCH = lib.BUILD / "tests/lab/high_rtt"
BURST = 0.002  # seconds of a rate: how late a timer may be without a loss of rate
QUEUE = 0.05   # seconds of a rate: how long a packet waits in a full queue
PACKET = 1514
PACKET_MAX = 1 << 16  # bytes of a packet that stands for many segments
IN, ALL = 1, 1        # numbers of classes
FIRST = 0x10          # the class of the first host


def _wire(rate):
    """Returns the rate of the bytes that a class of tc counts: full packets with their headers."""
    return rate / PAYLOAD


def _limit(device, parent, number, rate, assured=None):
    """Returns the command of tc for a class. assured: the rate that the class gets even if others
    use the rest of the parent's rate."""
    assured = assured or rate
    return (f"class add dev {device} parent 1:{parent} classid 1:{number:x} htb "
            f"rate {_wire(assured):.0f}bit ceil {_wire(rate):.0f}bit "
            f"burst {_bytes(assured, BURST, PACKET)}b cburst {_bytes(rate, BURST, PACKET)}b "
            f"quantum {PACKET_MAX}")


def _queue(device, number, rate):
    return (f"qdisc add dev {device} parent 1:{number:x} bfifo "
            f"limit {_bytes(rate, QUEUE, 2 * PACKET_MAX)}b")


def _bytes(rate, seconds, least):
    return max(least, round(_wire(rate) * seconds / 8))


def _batch(tool, name, lines):
    """Runs commands of ip or tc in a namespace."""
    done = subprocess.run([tool, "-n", name, "-batch", "-"], input="".join(f"{x}\n" for x in lines),
                          capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise OSError(f"{tool} in {name}: {done.stderr.strip()}")


class Hosts(netns.Namespaces):
    """The network of a matrix, to be used as a context or as the hosts of a lib.Lab.

    A host is a namespace with the device eth0. Its address is address(0), address(1), ...; NET is a
    host without limits. Hosts without a link get "No route to host". Raises OSError if the network
    cannot be built; then nothing is left over."""

    agent_options = []
    separate = True

    def __init__(self, matrix):
        self.matrix, self.n_hosts = matrix, len(matrix.names)
        self.switch, self.processes = None, []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pcclmatrix-"))
        # The filter of the in caps needs an address of NET that is not among those of the hosts.
        super().__init__("pcclmatrix", {**{k: f"10.86.0.{k + 1}" for k in range(self.n_hosts)},
                                        NET: "10.86.0.254"}, NET)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def close(self):
        for process in [*self.processes, *([self.switch] if self.switch else [])]:
            process.kill()
            process.wait()
        self.processes, self.switch = [], None
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- building

    def _build(self):
        if any(map(any, self.matrix.trips)):
            self._build_delayed()
        else:
            super()._build()
        for host in range(self.n_hosts):
            self._shape(host)

    def _build_delayed(self):
        """Joins the hosts with a program that delays packets, instead of a bridge."""
        if not SWITCH.exists():
            raise Failed(f"round trips need {SWITCH}: build it with 'make check-programs FOLDERS=lab'")
        ends = []
        for host in self.addresses:
            netns.ip("netns", "add", self.name(host))
            netns.ip("-n", self.name(host), "link", "set", "lo", "up")
            ends += [f"/run/netns/{self.name(host)}", "eth0"]
        none = [0] * self.n_hosts
        delays = [each / 2 * 1e3 for row in (*self.matrix.trips, none) for each in (*row, 0)]
        self.switch = subprocess.Popen(
            [SWITCH, "--delays", ",".join(f"{each:.6f}" for each in delays), *ends],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.switch.stdout.readline()
        if line != "ready\n":
            raise OSError(line.strip())
        for host, address in self.addresses.items():
            _batch("ip", self.name(host), [f"addr add {address}/24 dev eth0", "link set eth0 up"])

    def _shape(self, host):
        out, into = self.matrix.caps[host]
        others = [k for k in range(self.n_hosts) if k != host]
        links = [k for k in others if self.matrix.rates[host][k]]
        # An address of IPv6 would be a path without limits.
        setup = ["link set eth0 addrgenmode none", "addr flush dev eth0 scope link"]
        setup += [f"route add unreachable {self.address(k)}/32" for k in others if k not in links]
        # Packets to NET have no class, so htb lets them pass at once.
        tc = ["qdisc add dev eth0 root handle 1: htb"]
        if out:
            tc.append(_limit("eth0", "", ALL, out))
        for k in links:
            rate = self.matrix.rates[host][k]
            tc += [_limit("eth0", ALL if out else "", FIRST + k, rate,
                          min(rate, out / len(links)) if out else rate),
                   _queue("eth0", FIRST + k, rate),
                   f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {self.address(k)}/32 "
                   f"flowid 1:{FIRST + k:x}"]
        if into:
            # Packets that have arrived wait at the exit of another device before the host gets them.
            setup += ["link add in0 type ifb", "link set in0 addrgenmode none up"]
            tc += [f"qdisc add dev in0 root handle 1: htb default {IN}",
                   _limit("in0", "", IN, into), _queue("in0", IN, into),
                   "qdisc add dev eth0 handle ffff: ingress",
                   "filter add dev eth0 parent ffff: protocol ip u32 match ip src 10.86.0.0/25 "
                   "action mirred egress redirect dev in0"]
        _batch("ip", self.name(host), setup)
        _batch("tc", self.name(host), tc)

    # ---- use

    def set_rate(self, host, other, rate):
        """Changes the rate from `host` to `other`, which had a link. The queue keeps its size."""
        out, _ = self.matrix.caps[host]
        limit = _limit("eth0", ALL if out else "", FIRST + other, rate)
        _batch("tc", self.name(host), [limit.replace("class add", "class change", 1)])

    def label(self, host):
        return NET if host == NET else self.matrix.names[host]

    def environment(self, host):
        """Returns the environment for processes of the host: a run folder of its own, the agent of
        this build, and no other settings of the programs."""
        folder = self.folder / self.label(host)
        folder.mkdir(mode=0o700, exist_ok=True)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PCCL_")}
        place = {} if host == NET else {"LAB_INDEX": str(host)}
        return {**inherited, **place, "XDG_RUNTIME_DIR": str(folder), "PCCL_AGENTD": str(lib.AGENTD),
                "LAB_HOST": self.label(host), "LAB_ADDRESS": self.address(host),
                "LAB_NET": self.address(NET), "LAB_HOSTS": " ".join(self.matrix.names)}

    def spawn(self, host, args, **words):
        """Starts a process on the host. It is killed when the network goes or this process ends."""
        process = subprocess.Popen(
            self.command(host, [str(a) for a in args]), stdin=subprocess.DEVNULL,
            env=self.environment(host), preexec_fn=lib._die_with_parent, **words)
        self.processes.append(process)
        return process

    @contextlib.contextmanager
    def inside(self, host):
        """Sockets that this thread creates in this context are those of the host."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{self.name(host)}", "rb") as away:
            def enter(namespace):
                if libc.setns(namespace.fileno(), 0) < 0:
                    raise OSError(ctypes.get_errno(), f"setns to {host}")

            enter(away)
            try:
                yield
            finally:
                enter(home)


# ----------------------------------------------------------------------------- the command


def _copy(label, process):
    for line in process.stdout:
        print(f"{label}: {line}", end="" if line.endswith("\n") else "\n", flush=True)


def _listens(hosts, process):
    """Returns whether there is a TCP port on which a process at NET listens."""
    if process.poll() is not None:
        raise Failed(f"the command of --net has ended with status {process.returncode}")
    with hosts.inside(NET):
        return any(" 0A " in pathlib.Path(f"/proc/thread-self/net/{file}").read_text("ascii")
                   for file in ("tcp", "tcp6"))


def run_on_all(matrix, command, server=None):
    """Runs the command on all hosts of a new network. Returns the exit status."""
    with Hosts(matrix) as hosts:
        def start(host, args):
            process = hosts.spawn(host, args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace")
            thread = threading.Thread(target=_copy, args=(hosts.label(host), process), daemon=True)
            thread.start()
            return process, thread

        if server:
            process, _ = start(NET, ["sh", "-c", server])
            lib.until(lambda: _listens(hosts, process), "the command of --net does not listen on a TCP port")
        started = [start(host, command) for host in range(hosts.n_hosts)]
        good = True
        for name, (process, thread) in zip(matrix.names, started):
            status = process.wait()
            if status:
                good = False
                how = f"was killed by signal {-status}" if status < 0 else f"has ended with status {status}"
                print(f"matrix.py: the command on {name} {how}", file=sys.stderr)
            # A process that the command has left behind may keep the output open for ever.
            thread.join(1)
        return 0 if good else 1


def _enclosed():
    """Runs this program again as the first process of its own PID namespace. If one of the two is
    killed, the kernel kills all processes in this namespace. With them go the mounts, and so the
    network."""
    with subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                           sys.executable, __file__, "--inside", *sys.argv[1:]],
                          preexec_fn=lib._die_with_parent) as process:
        return process.wait()


def _inside(matrix, command, server):
    # The mount is private. It hides the sockets of the machine's daemons.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "matrix", "/run"], check=True, timeout=20)
    os.mkdir("/run/netns")
    tempfile.tempdir = "/run"
    # The first process of a PID namespace gets only those signals that it handles.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    return run_on_all(matrix, command, server)


def _show(matrix):
    def rate(value):
        return f"{value / 1e6:g} Mbit/s" if value else "no cap"

    for number, (name, (out, into)) in enumerate(zip(matrix.names, matrix.caps)):
        links = sum(map(bool, matrix.rates[number]))
        print(f"{name}: 10.86.0.{number + 1}, links to {links} hosts, out {rate(out)}, in {rate(into)}")


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("file", metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args(words[:at])
    command = words[at + 1:]
    try:
        matrix = read(args.file)
        if not command:
            _show(matrix)
            return 0
        if not netns.possible():
            raise Skipped("network namespaces need root and ip")
        return _inside(matrix, command, args.net) if args.inside else _enclosed()
    except Wrong as error:
        print(f"matrix.py: {error}", file=sys.stderr)
        return 2
    except (Failed, Skipped, OSError) as error:
        print(f"matrix.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
