# SPDX-License-Identifier: MIT
"""The common parts of all contenders, the hosts that they run on, and processes that answer each
line with a line."""

import collections
import ctypes
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parents[1]
TOP = BENCH.parent
BUILD = pathlib.Path(os.environ.get("abs_top_builddir") or TOP / "build/gcc").resolve()
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "pccl-bench")

sys.path.insert(0, str(TOP / "examples"))
import netns  # noqa: E402 pylint: disable=wrong-import-position

WAIT = 300  # seconds, the bound of every answer
MIB = 1 << 20
HOSTS = {1: "one host", 2: "two hosts", 4: "four hosts", 8: "eight hosts"}


class Failed(Exception):
    """A contender cannot go on. The text says why."""


class Setting(collections.namedtuple("Setting", "hosts peers cubic", defaults=[False])):
    """The number of hosts and peers. The peers of a host have consecutive ranks. cubic: all
    contenders use this congestion control, whatever the host's default is."""

    @property
    def key(self):
        return f"{self.hosts}x{self.peers // self.hosts}{'-cubic' * self.cubic}"

    def __str__(self):
        each = self.peers // self.hosts
        peers = f"{each} peer{'s' * (each > 1)}"
        hosts = HOSTS.get(self.hosts, f"{self.hosts} hosts")
        place = f"{hosts}, {peers}{' each' * (self.hosts > 1)}"
        return place + ", all with cubic" * self.cubic

    def host_of(self, rank):
        return rank * self.hosts // self.peers

    def sent(self, size):
        """Returns the bytes that each end of a link sends when an ideal ring reduces `size` bytes."""
        ends = self.hosts if self.hosts > 1 else self.peers
        return 2 * (ends - 1) * size / ends


class Contender:
    """One column of the tables. start() and measure() may raise Failed; stop() is called after
    both."""

    name = ""
    limit = False  # true for a limit of the machine, which is no library
    tcp = True  # takes part in settings with one congestion control for all
    attempts = 1  # tries of a measurement before the contender is left out

    def available(self, setting):  # pylint: disable=unused-argument
        """Returns None, or why the contender does not take part."""
        return None

    def start(self, setting, network):
        pass

    def measure(self, size, warm_ups, n):
        """Returns the median of n all-reduces of `size` bytes, in place, fp32 sum, in seconds. The
        time of an all-reduce is its time at the slowest rank. Returns None if there is no figure
        for this size."""
        raise NotImplementedError

    def stop(self):
        pass


# ------------------------------------------------------------------------------ hosts


class Loopback:
    """One host, which is this machine."""

    device = "lo"

    @staticmethod
    def command(_host, args):
        return args

    @staticmethod
    def address(_host):
        return "127.0.0.1"

    def close(self):
        pass


def cpus_of(host, n_hosts):
    """Returns a host's share of the CPUs, as pccl-bench assigns them: separate CPUs, if there are
    enough."""
    cpus = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, cpus[host::n_hosts] if len(cpus) >= n_hosts else cpus))


class Hosts(netns.Namespaces):
    """Several hosts on this machine, joined by a bridge."""

    device = "eth0"

    def __init__(self, n_hosts):
        super().__init__("pcclcmp", {host: f"10.85.0.{host + 1}" for host in range(n_hosts)}, "net")
        self.cpus = [cpus_of(host, n_hosts) for host in range(n_hosts)]

    def command(self, host, args):
        return super().command(host, ["taskset", "-c", self.cpus[host], *args])


def cubic_refusal():
    """Returns None, or why a setting with cubic would measure nothing new."""
    with socket.socket() as probe:
        try:
            default = probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        except OSError as error:
            return f"cubic is not available: {error.strerror}"
    return "cubic is the default here" if default.split(b"\0")[0] == b"cubic" else None


def make_network(setting):
    """Creates the hosts of the setting. Raises Failed if this is not possible."""
    refusal = cubic_refusal() if setting.cubic else None
    if refusal:
        raise Failed(refusal)
    if setting.hosts == 1:
        return Loopback()
    if not netns.possible():
        raise Failed("network namespaces need root and ip")
    try:
        return Hosts(setting.hosts)
    except OSError as error:
        raise Failed(f"no network namespaces: {error}") from None


def free_port():
    """Returns a port that is free on this host. It is also free in the namespaces, because only the
    contenders use those."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


# -------------------------------------------------------------------------- processes


def compiled(program, source, *command):
    """Returns the path of the program. The command compiles it again if its source is newer."""
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        run([*command, "-o", str(program), str(source)], command[0])
    return str(program)


def environment(setting, **more):
    """Returns the environment for all processes of a contender."""
    env = dict(os.environ, **more)
    if setting.cubic:
        env["LD_PRELOAD"] = cubic_sockets()
    return env


def cubic_sockets():
    """Returns the path of the library that cubic.c is compiled to."""
    return compiled(work_folder() / "cubic.so", BENCH / "peers/cubic.c",
                    "cc", "-shared", "-fPIC", "-O2")


def _die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def spawn(args, log, **more):
    """Starts a process that ends with this process, with pipes for its input and output. log: a
    path."""
    with open(log, "ab") as errors:
        return subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn,consider-using-with
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            preexec_fn=_die_with_parent, start_new_session=True, **more)


def end(process):
    """Asks a process to end, and kills it if it has not ended after 10 s."""
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def run(args, what, seconds=WAIT, **more):
    """Runs a program and returns its standard output. Raises Failed with its messages if it does
    not succeed."""
    try:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        out, errors = process.communicate(timeout=seconds)
    except OSError as error:
        raise Failed(f"{what}: {error}") from None
    except BaseException as reason:
        end(process)
        if isinstance(reason, subprocess.TimeoutExpired):
            raise Failed(f"{what} takes longer than {seconds} s") from None
        raise
    if process.returncode != 0:
        said = "; ".join(line.strip() for line in (errors.strip() or out.strip()).splitlines())
        raise Failed(f"{what}: {said[:300] or f'status {process.returncode}'}")
    return out


class Answering:
    """A process that answers each line with a line. An answer that begins with "error" raises
    Failed."""

    def __init__(self, what, args, log, **more):
        self.what, self.log, self.rest = what, log, b""
        self.process = spawn(args, log, **more)

    def send(self, line):
        try:
            os.write(self.process.stdin.fileno(), f"{line}\n".encode())
        except BrokenPipeError:
            raise Failed(self._ended()) from None

    def read(self):
        deadline = time.monotonic() + WAIT
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"{self.what} does not answer for {WAIT} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failed(self._ended())
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        text = line.decode("utf-8", "replace")
        if text.startswith("error"):
            raise Failed(f"{self.what}: {text}")
        return text

    def times(self):
        """Returns an answer that consists of numbers."""
        try:
            return [float(word) for word in self.read().split()]
        except ValueError:
            raise Failed(f"{self.what} answers with something other than times") from None

    def stop(self):
        """Closes the input of the process, so that it ends. Kills it if it has not ended after
        10 s."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()

    def _ended(self):
        """Describes the end of the process, with the last line of its log."""
        status = self.process.wait(10)
        lines = pathlib.Path(self.log).read_text("utf-8", "replace").strip().splitlines()
        return f"{self.what} ended with status {status}{': ' + lines[-1] if lines else ''}"


def work_folder():
    """Returns the folder in this build for compiled programs and logs."""
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
