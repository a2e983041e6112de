# SPDX-License-Identifier: MIT
"""Whole systems for the tests: masters, agents and peers, each a process with files in a private
folder.

A Lab starts these processes. Its hosts are agents on loopback, or network namespaces joined by a
bridge. The Lab ends all processes, however the test ends. Every wait has a bound. Only processes
that a Lab started are killed.
"""

import ctypes
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import netns  # pylint: disable=wrong-import-position

SUCCESS = 0
INTERNAL_ERROR = 2
INVALID_ARGUMENT = 3
INVALID_USAGE = 4
TOO_FEW_PEERS = 5
MASTER_CONNECTION_FAILED = 6
RANK_CONNECTION_FAILED = 7
RANK_CONNECTION_LOST = 8
PENDING_ASYNC_OPS = 10
UPDATE_TOPOLOGY_FAILED = 11
TOPOLOGY_OPTIMIZATION_FAILED = 12
AGENT_UNAVAILABLE = 64
OUT_OF_MEMORY = 68
INTERRUPTED = 69

# The words of quantized operations, as peer.c takes them, and the largest relative errors.
QUANTIZED = {"int8": "quant=64 qtype=1", "int4": "quant=64 qtype=64", "minmax": "quant=1 qtype=0"}
QUANTIZED_ERROR = 0.3

PREFIX = "pccle2e"  # in the names of folders and network namespaces
USUAL_WAIT = 30
# The longest wait, in seconds, for an event that should happen at once.
WAIT = float(os.environ.get("E2E_WAIT", USUAL_WAIT))
SLOWER = max(1, WAIT / USUAL_WAIT)  # the time limit of each test is multiplied by SLOWER

BUILD = pathlib.Path(os.environ.get("abs_top_builddir") or "build/gcc").resolve()
MASTERD = BUILD / "ccoip-masterd/ccoip-masterd"
AGENTD = BUILD / "pcclagentd/pcclagentd"
CTL = BUILD / "pcclctl/pcclctl"
PEER = BUILD / "tests/e2e/peer"
# With E2E_MEMORY (device.h) the peers find the double of the driver of CUDA, or, with E2E_GPU, the
# driver.
if os.environ.get("E2E_MEMORY") and not os.environ.get("E2E_GPU"):
    os.environ["LD_LIBRARY_PATH"] = str(BUILD / "tests/cuda/.libs")


def sanitized():
    """Returns whether the programs are built with a sanitizer. Such programs keep freed memory for
    a while and are slow."""
    return b"__asan_init" in AGENTD.read_bytes()


def forget_leaks():
    """Turns off the sanitizer's search for leaks, because the search needs descriptors and the test
    takes them away."""
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


class Failed(Exception):
    """Something that the test needs did not happen. The text says what is missing."""


class Skipped(Exception):
    """The test cannot run here. The text says why."""


# ---------------------------------------------------------------------------- results


class Results:
    """Prints the ok and FAIL lines, and counts them for the summary."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, text, detail=""):
        """Counts and prints a result. If `detail` is a list of peers' answers, their texts come
        first, because a report of many tests cuts long lines."""
        if isinstance(detail, list) and any(isinstance(a, dict) and a.get("text") for a in detail):
            detail = f"{[a.get('text') for a in detail if isinstance(a, dict)]} of {detail}"
        if good:
            self.passed += 1
        else:
            self.failed += 1
        print(f"{'ok' if good else 'FAIL'} - {text}{f': {detail}' if detail and not good else ''}",
              flush=True)
        return good


results = Results()
check = results.check


def spread(values, unit=1e6):
    """Formats the minimum, median, 90th percentile and maximum of times in nanoseconds, as
    milliseconds."""
    v = sorted(values)
    if not v:
        return "none"
    picked = (v[0], v[len(v) // 2], v[len(v) * 9 // 10], v[-1])
    return "min {:.1f}, median {:.1f}, 90 % {:.1f}, max {:.1f} ms".format(
        *(x / unit for x in picked))


def _on_alarm(_number, _frame):
    raise Failed("not done within the time limit of the test")


def _on_end(number, _frame):
    raise SystemExit(128 + number)


def _places(error):
    """Names the functions and lines that the error passed through, the outermost first."""
    return ", ".join(f"{f.name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[1:])


def run(test, limit):
    """Runs test(), which creates its Labs with `with`. limit: the time limit in seconds; it is
    multiplied by SLOWER."""
    signal.signal(signal.SIGALRM, _on_alarm)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _on_end)
    signal.alarm(round(limit * SLOWER))
    began = time.monotonic()
    try:
        test()
    except Failed as error:
        check(False, f"{error} ({_places(error)})")
    except Skipped as reason:
        print(f"# skipped: {reason}")
        sys.exit(77)
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stdout)
        check(False, f"the test itself raised {type(error).__name__}: {error} ({_places(error)})")
    print(f"# {time.monotonic() - began:.1f} s")
    print(f"{results.passed} passed, {results.failed} failed")
    sys.stdout.flush()
    sys.exit(1 if results.failed or not results.passed else 0)


# ------------------------------------------------------------------------------ hosts


def _die_with_parent():
    """Runs in a child: asks the kernel to kill the child when the test is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def free_port():
    """Returns a port below the range of ports of outgoing connections, so that no such connection
    takes it."""
    for _ in range(200):
        port = random.randrange(20000, 32000)
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::", port))
            except OSError:
                continue
            return port
    raise Failed("no free port")


class Loopback:
    """All hosts are this machine: several agents, on ports that the system chooses."""

    agent_options = ["--p2p-port", "0", "--shared-state-port", "0", "--benchmark-port", "0"]
    separate = False

    def __init__(self, n_hosts):
        self.n_hosts = n_hosts

    def command(self, _host, args):
        return args

    def address(self, _host):
        return "127.0.0.1"

    def close(self):
        pass


class Namespaces(netns.Namespaces):
    """Each host is a network namespace. One more namespace contains the bridge between them."""

    agent_options = []
    separate = True

    def __init__(self, n_hosts):
        self.n_hosts = n_hosts
        super().__init__(PREFIX, {host: f"10.84.0.{host + 1}" for host in range(n_hosts)}, "net")

    def deafen(self, host, other, deaf):
        """Drops all packets from `host` to `other` without an error, or stops doing so."""
        netns.ip("-n", self.name(host), "neigh", "replace" if deaf else "del", self.address(other),
                 *(("lladdr", "02:00:00:00:00:01", "nud", "permanent") if deaf else ()),
                 "dev", "eth0")

    def reject(self, host, other, on):
        """Makes connections from `host` to `other` fail at once with "unreachable", or stops doing
        so."""
        netns.ip("-n", self.name(host), "route", "add" if on else "del", "unreachable",
                 self.address(other) + "/32")

    def link(self, host, up):
        """Disconnects the host's cable, or connects it again. Neither side gets an error."""
        netns.ip("-n", self.name("net"), "link", "set", f"to-{host}", "up" if up else "down")

    def narrow(self, host, size):
        """Gives the host its own bridge. A cable joins the two bridges, and each bridge drops
        packets that are too large for this cable. The senders themselves divide their data into
        packets (gso_max_segs 1)."""
        def middle(*args):
            netns.ip("-n", self.name("net"), "link", *args)

        for each in range(self.n_hosts):
            netns.ip("-n", self.name(each), "link", "set", "eth0", "gso_max_segs", "1")
        middle("add", "remote", "type", "bridge")
        middle("set", "remote", "up")
        middle("add", "near", "type", "veth", "peer", "name", "far")
        for end, bridge in (("near", "bridge"), ("far", "remote")):
            middle("set", end, "master", bridge)
        self.cable(size)
        middle("set", f"to-{host}", "master", "remote")

    def cable(self, size):
        """Sets the size in bytes of the largest packet that passes between the two bridges."""
        for end in ("near", "far"):
            netns.ip("-n", self.name("net"), "link", "set", end, "mtu", str(size), "up")


def make_namespaces(n_hosts, kind=Namespaces, **words):
    """Creates namespaces. Returns None if this is not possible here."""
    if not netns.possible():
        return None
    try:
        return kind(n_hosts, **words)
    except OSError as error:
        print(f"# no network namespaces: {error}")
        return None


# -------------------------------------------------------------------------- processes


def until(found, complaint):
    """Calls found() again and again until it returns true, for at most WAIT seconds. This is how a
    test waits for files of daemons and of /proc, because nothing reports their changes."""
    deadline = time.monotonic() + WAIT
    while not found():
        if time.monotonic() > deadline:
            raise Failed(complaint)
        time.sleep(0.002)


def processes(program, mark):
    """Returns the pids of the program's processes that have `mark` in their command line or
    environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if pathlib.Path(os.readlink(entry / "exe")) != program.resolve():
                continue
            if (mark.encode() in (entry / "cmdline").read_bytes()
                    or mark.encode() in (entry / "environ").read_bytes()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Daemon:
    """A master or an agent. The file `log` is its log."""

    def __init__(self, process, name, host, log, **paths):
        self.process, self.name, self.host, self.log = process, name, host, log
        self.__dict__.update(paths)

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def log_lines(self):
        return self.log.read_text("utf-8", "replace").splitlines()

    def await_log(self, words):
        until(lambda: any(words in line for line in self.log_lines()),
              f"the log of {self.name} has no line with: {words}")

    def status(self, key):
        """Returns a number from /proc/PID/status: VmRSS in KiB, Threads, ..."""
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def sockets(self, state):
        """Yields the lines of /proc about the daemon's TCP sockets in this state, each as a list of
        words."""
        inodes = set()
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{self.pid}/fd/{fd}")
            except OSError:
                continue
            found = re.fullmatch(r"socket:\[(\d+)\]", target)
            if found:
                inodes.add(found[1])
        for file in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{self.pid}/net/{file}").read_text("ascii").splitlines():
                words = line.split()
                if words[3] == state and words[9] in inodes:
                    yield words

    def tcp_ports(self):
        """Returns the ports on which the daemon listens."""
        return sorted({int(words[1].rsplit(":", 1)[1], 16) for words in self.sockets("0A")})

    def connections(self):
        """Returns the daemon's connections, also those that only the other side has closed: both
        addresses, and the inode, which is unique."""
        return {(words[1], words[2], words[9])
                for state in ("01", "08") for words in self.sockets(state)}

    def ended(self):
        """Waits for the end of the process after SIGTERM, and kills it after WAIT seconds. Returns
        the exit status."""
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode


class Peer:
    """A peer process (peer.c). It reads commands and prints answers, each in one line."""

    def __init__(self, process, number, host, log):
        self.process, self.number, self.host, self.log = process, number, host, log
        self.rest = b""

    @property
    def pid(self):
        return self.process.pid

    def send(self, *lines):
        try:
            os.write(self.process.stdin.fileno(), "".join(f"{x}\n" for x in lines).encode())
        except BrokenPipeError:
            raise Failed(f"peer {self.number} is gone, status {self.process.wait(5)}") from None

    def read(self, seconds=None):
        """Returns the next answer as a dictionary. Its name is under the key "what", and numbers
        are integers."""
        deadline = time.monotonic() + (WAIT if seconds is None else seconds)
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"peer {self.number} (pid {self.pid}) does not answer")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failed(f"peer {self.number} ended, status {self.process.wait(5)}")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return parse_answer(line.decode())

    def call(self, line, seconds=None):
        self.send(line)
        return self.read(seconds)

    def expect(self, line, code=SUCCESS, seconds=None):
        """Sends a command and returns its answer. The answer must have this result code."""
        answer = self.call(line, seconds)
        if answer.get("code", code) != code:
            raise Failed(f"peer {self.number}: {line}: code {answer['code']}, not {code}: "
                         f"{answer['text']}")
        return answer

    def kill(self):
        self.process.kill()

    def gone(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def parse_answer(line):
    head, _, text = line.partition(" text=")
    words = head.split()
    answer = {"what": words[0], "text": text}
    for word in words[1:]:
        key, _, value = word.partition("=")
        answer[key] = int(value) if re.fullmatch(r"-?\d+", value) and key != "hash" else value
    return answer


class Lab:
    """A folder, hosts, and the processes on them. `with Lab(2) as lab:` removes everything at the
    end."""

    def __init__(self, n_hosts=1, hosts=None):
        self.hosts = hosts or Loopback(n_hosts)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX + "-"))
        self.daemons, self.peers = [], []
        self.count = 0
        self.master = None
        self.agents = {}  # host -> Daemon

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _trace):
        for peer in self.peers:
            peer.gone()
        for daemon in self.daemons:
            daemon.process.terminate()
        for daemon in self.daemons:
            status = daemon.ended()
            if status != 0:  # the status also shows errors that a sanitizer found
                check(False, f"{daemon.name} ended with status {status}")
        self.hosts.close()
        if self.spoilt() or (kind and kind not in (SystemExit, Skipped)):
            self.print_logs()
        if self.spoilt() or kind not in (None, SystemExit, Skipped) or "E2E_KEEP" in os.environ:
            print(f"# logs are kept in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def spoilt(self):
        """Returns whether the logs are worth keeping."""
        return results.failed

    def print_logs(self):
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text("utf-8", "replace").splitlines()
            if lines:
                print(f"--- the end of {log.name}", *lines[-12:], sep="\n")

    def spawn(self, name, host, args, stdin=subprocess.DEVNULL, stdout=None, stderr=None, env=None):
        self.count += 1
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PCCL_")}
        log = self.folder / f"{self.count:03}-{name}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                self.hosts.command(host, [str(a) for a in args]), stdin=stdin,
                stdout=stdout or out, stderr=stderr or out, preexec_fn=_die_with_parent,
                env={**inherited, "XDG_RUNTIME_DIR": str(self.folder), **(env or {})})
        return process, log

    def await_socket(self, daemon, files, found):
        """Waits until found(text of a file in /proc) says that the daemon listens. Opens no
        connection, which would disturb the daemon."""
        def listens():
            if not daemon.alive():
                raise Failed(f"{daemon.name} ended at once, with status "
                             f"{daemon.process.returncode}: "
                             + " / ".join(daemon.log_lines()[-2:]))
            for file in files:
                try:
                    text = pathlib.Path(f"/proc/{daemon.pid}/net/{file}").read_text("ascii")
                except OSError:
                    continue
                if found(text):
                    return True
            return False

        until(listens, f"{daemon.name} does not listen")

    def await_path(self, daemon, path):
        """Waits until the daemon listens on this Unix socket."""
        self.await_socket(daemon, ("unix",),
                          re.compile(rf" 00010000 .* {re.escape(str(path))}$", re.M).search)

    def start_master(self, host=0, listen=None, port=0, options=(), admin=None):
        port = port or free_port()
        listen = listen or self.hosts.address(host)
        self.count += 1
        admin = admin or self.folder / f"master-{self.count}.admin"
        process, log = self.spawn("master", host, [
            MASTERD, "--listen", f"{listen}:{port}", "--admin-socket", admin, *options])
        address = self.hosts.address(host) if listen in ("0.0.0.0", "[::]") else listen
        daemon = Daemon(process, "ccoip-masterd", host, log, admin=admin, port=port,
                        address=f"{address}:{port}")
        self.daemons.append(daemon)
        self.await_socket(daemon, ("tcp", "tcp6"),
                          re.compile(rf":{port:04X} [0-9A-F]+:0000 0A ").search)
        self.await_path(daemon, admin)
        self.master = daemon
        return daemon

    def start_agent(self, host=0, path=None, admin=None, options=()):
        self.count += 1
        path = path or self.folder / f"agent-{self.count}.sock"
        admin = admin or self.folder / f"agent-{self.count}.admin"
        process, log = self.spawn(f"agent-{host}", host, [
            AGENTD, "--socket", path, "--admin-socket", admin, "--name", f"host-{host}",
            *self.hosts.agent_options, *options])
        daemon = Daemon(process, f"pcclagentd of host {host}", host, log, admin=admin, socket=path)
        self.daemons.append(daemon)
        self.await_path(daemon, path)
        self.await_path(daemon, admin)
        self.agents[host] = daemon
        return daemon

    def start(self, master_options=(), agent_options=()):
        """Starts a master on the first host and an agent on each host."""
        self.start_master(options=master_options)
        for host in range(self.hosts.n_hosts):
            self.start_agent(host, options=agent_options)
        return self

    def drop(self, daemon):
        """Kills the daemon with SIGKILL."""
        daemon.process.kill()
        daemon.process.wait()
        self.daemons.remove(daemon)

    def end(self, daemon, number=signal.SIGTERM):
        """Ends the daemon with a signal, as an operator or systemd does. Its exit status must be 0."""
        daemon.process.send_signal(number)
        self.daemons.remove(daemon)
        status = daemon.ended()
        if status != 0:
            raise Failed(f"{daemon.name} ended with status {status}")

    def start_peer(self, number, host=0, group=0, master=None, env=None, ready=True, stderr=None):
        environment = {}
        if host in self.agents:
            environment["PCCL_AGENT_SOCKET"] = str(self.agents[host].socket)
        process, log = self.spawn(f"peer-{number}", host, [
            PEER, f"id={number}", f"master={master or self.master.address}", f"group={group}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            env={**environment, **(env or {})})
        peer = Peer(process, number, host, log)
        self.peers.append(peer)
        if ready:
            peer.read()
        return peer

    def drop_peer(self, peer):
        peer.gone()
        self.peers.remove(peer)

    def start_peers(self, places, streams=1, group=0, first=0, master=None, form=None):
        """Starts peers first, first + 1, ... on the hosts in `places`. `form` (by default form_run)
        makes them one run."""
        peers = [self.start_peer(first + k, host, group, master, ready=False)
                 for k, host in enumerate(places)]
        for peer in peers:
            peer.read()
        (form or form_run)(peers, streams)
        return peers

    def check_alive(self):
        for daemon in self.daemons:
            if not daemon.alive():
                raise Failed(f"{daemon.name} has ended, with status {daemon.process.returncode}")


def ctl(*args, seconds=WAIT):
    return subprocess.run([str(a) for a in (CTL, *args)], capture_output=True, text=True,
                          timeout=seconds, check=False)


def measure_again(master):
    """Makes the master measure all links in the next optimization."""
    done = ctl("--master", master.admin, "topology", "measure")
    if done.returncode != 0:
        raise Failed(f"pcclctl topology measure: {done.stderr}")


def tables(option, daemon, verb):
    """Returns the output of pcclctl --json: rows by the names of tables."""
    done = ctl("--json", option, daemon.admin, verb)
    if done.returncode != 0:
        raise Failed(f"pcclctl {verb}: {done.stderr}")
    answer = json.loads(done.stdout)
    if answer["daemon"] != {"--master": "ccoip-masterd", "--agent": "pcclagentd"}[option]:
        raise Failed(f"pcclctl {verb}: {answer}")
    return answer


def ask(option, daemon, verb):
    """Returns the rows of the table that has the verb's name."""
    return tables(option, daemon, verb)[verb]


def _port_of(address):
    return int(address.rsplit(":", 1)[1], 16)


def links(lab):
    """Returns the links as pairs of hosts, and the ports of their streams at the host that has opened
    them. All hosts are agents on loopback."""
    found = {}
    ends = {ask("--agent", daemon, "status")[0]["p2p_port"]: host
            for host, daemon in lab.agents.items()}
    for host, daemon in lab.agents.items():
        for local, remote, _ in daemon.connections():
            if _port_of(local) not in ends and _port_of(remote) in ends:
                found.setdefault((host, ends[_port_of(remote)]), []).append(_port_of(local))
    return found


def await_mesh(lab, hosts, old=()):
    """Waits for links between all these hosts, without these old streams."""
    wanted = {(a, b) for a in hosts for b in hosts if a != b}

    def is_whole():
        now = links(lab)
        return wanted <= set(now) and not any(port in old for ports in now.values() for port in ports)

    until(is_whole, "there are no links between all hosts")


def form_ring(peers, streams=1):
    """Forms a fresh run. The peers join one after the other, so the ring has their order."""
    for n, peer in enumerate(peers, start=1):
        peer.send(f"create streams={streams}", "connect")
        together(peers[:n - 1], f"until world={n}")
        for what in ("create", "connect"):
            answer = peer.read()
            if answer["what"] != what or answer["code"] != SUCCESS:
                raise Failed(f"peer {peer.number}: {what}: {answer}")


def form_run(peers, streams=1):
    """Makes the peers create communicators and connect them to a fresh run. The order of the ring
    is random."""
    for peer in peers:
        peer.send(f"create streams={streams}", "connect", f"until world={len(peers)}")
    for peer in peers:
        for what in ("create", "connect", "until"):
            answer = peer.read()
            if answer["what"] != what or answer["code"] != SUCCESS:
                raise Failed(f"peer {peer.number}: {what}: {answer}")
        if answer["world"] != len(peers):
            raise Failed(f"peer {peer.number} is in a run of {answer['world']} peers")


def restart_agent(lab, host, options=(), number=signal.SIGKILL):
    """Ends the host's agent and starts the next one at the same socket."""
    old = lab.agents[host]
    if number == signal.SIGKILL:
        lab.drop(old)
    else:
        lab.end(old, number)
    return lab.start_agent(host, path=old.socket, admin=old.admin, options=options)


def await_stop(peer):
    """Waits until the process has stopped itself. Only the time limit of the test bounds the
    wait."""
    if not os.waitid(os.P_PID, peer.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_status \
            == signal.SIGSTOP:
        raise Failed(f"peer {peer.number} did not stop")


def wake(peer):
    peer.process.send_signal(signal.SIGCONT)


def submit_all(peers, operations, rng, **words):
    """Makes each peer submit all operations (each given by its words) in a random order. The slot
    and the tag of an operation are its index. Returns when all operations are submitted."""
    common = " ".join(f"{k}={v}" for k, v in words.items())
    for peer in peers:
        order = rng.sample(range(len(operations)), len(operations))
        peer.send(*(f"submit slot={k} tag={k} {operations[k]} {common}" for k in order))
    for peer in peers:
        for _ in operations:
            answer = peer.read()
            if answer["code"] != SUCCESS:
                raise Failed(f"peer {peer.number}: submit: {answer}")


def await_all(peers, count, rng, seconds=None):
    """Makes each peer await slots 0 .. count - 1 in a random order. Returns the answers as
    [slot][peer]."""
    orders = [rng.sample(range(count), count) for _ in peers]
    for peer, order in zip(peers, orders):
        peer.send(*(f"await slot={k}" for k in order))
    answers = [[None] * len(peers) for _ in range(count)]
    for number, (peer, order) in enumerate(zip(peers, orders)):
        for k in order:
            answers[k][number] = peer.read(seconds)
    return answers


def ids_of(peers):
    return ",".join(str(p.number) for p in peers)


def together(peers, line, seconds=None):
    """Sends the same command to all peers and returns their answers in order."""
    for peer in peers:
        peer.send(line)
    return [peer.read(seconds) for peer in peers]


def judge(answers):
    """Checks the answers of all peers to one operation that should have succeeded. Returns the
    fault, or None."""
    for number, answer in enumerate(answers):
        if answer["code"] != SUCCESS:
            return f"{number}: code {answer['code']}: {answer['text']}"
        if answer["check"] != "ok":
            return f"{number}: {answer['text']}"
    if len({a["hash"] for a in answers}) != 1:
        return "results differ: " + " ".join(a["hash"] for a in answers)
    return None
