#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The n-th call of each kind fails, once or from then on, in a trainer, an agent or the master,
while two peers (on one host or two) or three peers (on three hosts) connect, reduce and synchronize.
Every call of all peers ends in time, with success or with the code and the words of the failure, the
same for all peers unless one leaves the run (truth.py). All peers that report success have equal bits. Peers whose call fails have their old
bits, or are told that tensors were written in part if the agent was lost while it wrote. No process
dies of a signal. Afterwards the remaining daemons serve the next peers.

A daemon that cannot start logs the reason, and its exit status is not 0.

INJECT_ALL=1: every row of the table; otherwise some rows of each kind. INJECT_ONLY=agent:work:mmap:
only rows whose name begins with this text."""

import concurrent.futures
import errno
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import lib  # pylint: disable=wrong-import-position
import truth  # pylint: disable=wrong-import-position
from lib import SUCCESS, Failed, check  # pylint: disable=wrong-import-position

LIBRARY = lib.BUILD / "tests/inject/.libs/inject.so"
ALL = bool(os.environ.get("INJECT_ALL"))
ONLY = os.environ.get("INJECT_ONLY", "")
JOBS = 4
FAULTS_MAX = 20  # no further rows after this number of faults
FIRED_MIN = 400 if ALL and not ONLY else 1
BOUND = 10 * lib.SLOWER  # seconds, for each call
DOCUMENTED = {*range(0, 13), *range(64, 69)}
MIB = 262144  # floats of 1 MiB

# Same order as enum call in inject.c. The errors of each call. "+": all later calls fail, too.
CALLS = (
    ("memfd_create", "EMFILE", "ENOMEM", "EPERM+", "ENOSYS+", "EMFILE+"),
    ("ftruncate", "ENOSPC", "EFBIG"), ("fallocate", "ENOSPC", "EFBIG"),
    ("mmap", "ENOMEM", "ENOMEM+"), ("socket", "EMFILE", "ENFILE", "ENOMEM"),
    ("socketpair", "ENFILE", "EMFILE"), ("accept4", "EMFILE", "ENFILE", "ENOMEM"),
    ("connect", "EAGAIN", "ECONNREFUSED", "EADDRNOTAVAIL"), ("bind", "EADDRINUSE"),
    ("listen", "EADDRINUSE"), ("eventfd", "EMFILE", "ENFILE", "ENOMEM"),
    ("epoll_create1", "EMFILE", "ENFILE", "ENOMEM"), ("epoll_ctl", "ENOSPC", "ENOMEM"),
    ("timerfd_create", "EMFILE", "ENFILE", "ENOMEM"), ("pthread_create", "EAGAIN", "EAGAIN+"),
    ("pipe2", "ENFILE", "EMFILE"), ("open", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC"),
    ("write", "ENOSPC", "EFBIG", "ENOSPC+"), ("fsync", "EIO", "ENOSPC"), ("rename", "ENOSPC"),
    ("alloc", "ENOMEM"), ("sendmsg", "ENOBUFS", "ECONNRESET", "ETOOMANYREFS", "ENOBUFS+"),
    ("recvmsg", "ECONNRESET", "ENOMEM", "ENOMEM+"), ("posix_spawn", "EAGAIN", "ENOMEM", "EMFILE"),
    ("fork", "EAGAIN", "ENOMEM"), ("fcntl", "EMFILE"), ("mkdir", "ENOSPC", "EMFILE", "EROFS"),
    ("flock", "ENOLCK"), ("pidfd_open", "EMFILE", "ENFILE", "ENOSYS"), ("writev", "ENOBUFS", "ENOMEM"),
    ("send", "ENOBUFS", "ENOMEM"), ("recv", "ENOMEM"), ("readv", "ENOMEM"),
    ("getifaddrs", "ENOMEM", "EMFILE"), ("proc", "EMFILE", "ENOENT+"),
)
NUMBERS = {name: number for number, (name, *_) in enumerate(CALLS, start=1)}
# Calls that have more rows than USUAL.
MANY = {"alloc": 60, "mmap": 14, "sendmsg": 10, "recvmsg": 10, "writev": 10, "send": 10, "recv": 10, "readv": 10}
USUAL = 5
# An agent that can send nothing is as good as dead, so only trainers have these rows.
OF_TRAINERS = {("sendmsg", "ENOBUFS+"), ("recvmsg", "ENOMEM+")}
PROGRAMS = {"trainer": "peer", "agent": "pcclagentd", "master": "ccoip-masterd",
            "spawner": "peer", "private": "pcclagentd"}
# A spawner is a trainer that starts a private agent. The other trainer uses this agent, too.
PHASES = {"trainer": ("connect", "work"), "agent": ("start", "connect", "work"),
          "master": ("start", "connect", "work"), "spawner": ("connect",), "private": ("connect", "work")}
SECONDS = 1  # the time that a private agent stays without processes

# Between three hosts, all these operations take the direct exchange.
WORK = (
    "reduce type=f32 op=sum count=4 place=out verify=1 retry=3",
    f"reduce type=f32 op=sum count={MIB} place=out verify=1 retry=3",
    f"reduce type=f32 op=sum count={MIB} place=in mem=shared verify=1 retry=3",
    f"reduce type=f32 op=sum count={MIB} place=out retry=3 {lib.QUANTIZED['int4']}",
    "several n=1 window=1 type=f32 op=sum count=4 place=out verify=1",
)
# Used on one host. The operand is so large that it is still copied while the result is computed.
LARGE = f"reduce type=f32 op=sum count={17 * MIB} place=out verify=1 retry=3"


class Fault(Exception):
    """A row had a forbidden result. The text describes it."""


class Control:
    """The file that a process with the injecting library reads: struct control of inject.c."""

    def __init__(self, path, kind):
        program, spare = PROGRAMS[kind], kind in ("trainer", "spawner")
        path.write_bytes(bytes(mmap.PAGESIZE))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.env = {"LD_PRELOAD": str(LIBRARY), "INJECT_CONTROL": str(path),
                    "INJECT_PROGRAM": program, **({"INJECT_SPARE": "1"} if spare else {})}

    def arm(self, call, n, error):
        self.map[4:20] = struct.pack("iiiI", n, getattr(errno, error.rstrip("+")),
                                     2**31 - 1 if error.endswith("+") else 1, 0)
        self.map[0:4] = struct.pack("I", NUMBERS[call])

    def count(self):
        self.map[20:24] = struct.pack("I", 1)

    def counts(self):
        """Returns how many calls of each kind were made since count()."""
        self.map[20:24] = struct.pack("I", 0)
        made = struct.unpack_from(f"{len(CALLS) + 1}I", self.map, 24)
        return {name: made[number] for name, number in NUMBERS.items()}

    def disarm(self):
        """Ends the injection. Returns whether the failure was injected."""
        self.map[0:4] = struct.pack("I", 0)
        return self.map[16:20] != bytes(4)


class InjectLab(lib.Lab):
    """A lab in which one process has the injecting library: peer 0, the agent of host 0, the
    private agent or the master."""

    def __init__(self, kind, n_hosts):
        super().__init__(n_hosts)
        self.faults = 0
        self.group = 0
        self.row = None  # the row of the table that is running
        self.left = set()  # numbers of peers that are no longer in the run
        self.thread = threading.get_ident()
        self.control = Control(self.folder / "control", kind)
        self.marked = {"trainer": "peer-0", "spawner": "peer-0", "agent": "agent-0", "master": "master",
                       "private": "agentd"}[kind]
        self.spawning = kind in ("spawner", "private")
        if self.spawning:
            program = self.folder / "agentd"
            given = self.control.env if kind == "private" else {}
            program.write_text("#!/bin/sh\n"
                               + "".join(f'export {k}="{v}"\n' for k, v in given.items())
                               + f'exec "{lib.AGENTD}" "$@" --idle-exit {SECONDS}\n', "ascii")
            program.chmod(0o755)

    def spawn(self, name, host, args, env=None, **streams):
        env = dict(env or {})
        if name == self.marked:
            env.update(self.control.env)
        if self.spawning:
            env["PCCL_AGENTD"] = str(self.folder / "agentd")
        return super().spawn(name, host, args, env=env, **streams)

    def private_agents(self):
        return lib.processes(lib.AGENTD, str(self.folder)) if self.spawning else []

    def end_private(self):
        """Ends the private agent, so that the next peers start another one. A signal is quicker
        than waiting until it ends by itself."""
        for pid in self.private_agents():
            os.kill(pid, signal.SIGTERM)
        lib.until(lambda: not self.private_agents(), "the private agent does not end")

    def __exit__(self, kind, error, trace):
        for pid in self.private_agents():
            os.kill(pid, signal.SIGKILL)
        super().__exit__(kind, error, trace)

    def states(self):
        """Describes all processes: a line for each thread, and what daemons wait for."""
        lines = []
        processes = [(d.name, d.pid) for d in self.daemons] + [
            (f"peer {p.number}", p.pid) for p in self.peers] + [
            ("private agent", pid) for pid in self.private_agents()]
        for name, pid in processes:
            lines += [f"{name}, pid {pid}: {text}" for text in threads_of(pid)]
        for daemon in self.daemons:
            option = "--master" if daemon.name == "ccoip-masterd" else "--agent"
            for verb in ("status", "peers", "ops"):
                try:
                    done = lib.ctl(option, daemon.admin, verb, seconds=2)
                    lines += [f"{daemon.name}: {line}" for line in done.stdout.splitlines()]
                except subprocess.TimeoutExpired:
                    lines.append(f"{daemon.name}: pcclctl {verb} has no answer")
        return "".join(f"\n# {line}" for line in lines)

    def spoilt(self):
        return self.faults

    def places(self):
        """Returns the host of each peer."""
        return range(self.hosts.n_hosts) if self.hosts.n_hosts > 1 else (0, 0)

    def start_marked(self):
        if self.marked == "master":
            self.start_master(port=self.master.port if self.master else 0,
                              options=("--state-dir", self.folder))
        else:
            old = self.agents.get(0)
            self.start_agent(0, path=old and old.socket, admin=old and old.admin)

    def start_all(self):
        self.start_master(options=("--state-dir", self.folder))
        for host in range(0 if self.spawning else self.hosts.n_hosts):
            self.start_agent(host)

    def tend(self):
        """Only the lab's own thread starts daemons, because processes die with the thread that has
        started them."""
        if threading.get_ident() == self.thread:
            self.bury()

    def note_ends(self):
        """Waits for a moment and notes which daemons have ended. A process that ends closes its
        sockets before its end can be observed."""
        until = time.monotonic() + 0.5
        while time.monotonic() < until and all(d.alive() for d in list(self.daemons)):
            time.sleep(0.01)
        self.row.ended.update("master" if d.name == "ccoip-masterd" else "agent"
                              for d in list(self.daemons) if not d.alive())

    def bury(self):
        """Restarts the daemon that ended because of the failure. No other daemon may have ended."""
        for daemon in list(self.daemons):
            if daemon.alive():
                continue
            status = daemon.process.returncode
            self.daemons.remove(daemon)
            is_master = daemon.name == "ccoip-masterd"
            if self.row:
                self.row.ended.add("master" if is_master else "agent")
            mine = self.marked == ("master" if is_master else f"agent-{daemon.host}")
            if mine:
                self.start_marked()
            elif is_master:
                self.start_master(port=daemon.port)
            else:
                self.start_agent(daemon.host, path=daemon.socket, admin=daemon.admin)
            if not mine or status <= 0:
                raise Fault(f"{daemon.name} ended with status {status}: "
                            + " / ".join(daemon.log_lines()[-2:]))


def threads_of(pid):
    """Describes what each thread of a process is doing, as far as the system shows it."""
    lines = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            words = [(task / file).read_text("ascii", "replace").strip()
                     for file in ("comm", "stat", "wchan", "syscall")]
        except OSError:
            continue
        words[1] = words[1].rpartition(")")[2].split()[0]
        lines.append(" ".join(words))
    return lines or ["is gone"]


class Ended(Exception):
    """A peer has ended because pcclMemAlloc or a similar call failed, which counts as an answer."""


def next_answer(peer):
    """Returns the next answer of a peer. Meanwhile daemons that have ended are restarted, as a
    supervisor would do on a real host."""
    deadline = time.monotonic() + BOUND
    while True:
        try:
            return peer.read(0.1)
        except Failed:
            if peer.process.poll() is not None or time.monotonic() > deadline:
                raise
        peer.lab.tend()


def answer(peer, what):
    """Returns the next answer of a peer after checks that need no other answer."""
    try:
        a = next_answer(peer)
    except Failed as error:
        status = peer.process.poll()
        if status is None:
            raise Fault(f"HANG: {what}: {error}{peer.lab.states()}") from None
        text = peer.log.read_text("utf-8", "replace")
        if status == 2 and "peer: pccl" in text:
            raise Ended(text) from None
        raise Fault(f"{what}: peer {peer.number} ended, status {status}: {text[-300:]}") from None
    if "code" in a and (a["code"] not in DOCUMENTED or (a["code"] and not a["text"])):
        raise Fault(f"{what}: {a}")
    if a.get("check", "ok") != "ok":
        raise Fault(f"{what}: {a}")
    return a


def hold_to_truth(peer, what, a):
    """Compares the answer of a peer, or None if the peer has ended, with the injected failure."""
    lab = peer.lab
    if truth.leaves(a):
        lab.left.add(peer.number)
    if a and lab.row:
        said = (a["code"], a["text"], a.get("losses", 0), lab.left - {peer.number})
        wrong = lab.row.wrong(*said)
        if wrong:
            lab.note_ends()
            wrong = lab.row.wrong(*said)
        if wrong:
            raise Fault(f"{what}: {wrong}: {a}")


def ask(peer, line):
    peer.send(line)
    a = answer(peer, line)
    if "code" in a:
        hold_to_truth(peer, line, a)
    return a


def all_told(peers, line, answers):
    """Checks all answers to one operation. Answers of peers that leave are checked first, because
    they justify answers of the others."""
    for peer, a in sorted(zip(peers, answers), key=lambda x: not truth.leaves(x[1])):
        hold_to_truth(peer, line, a)
    wrong = truth.divided(answers)
    if wrong:
        raise Fault(f"DIVIDED: {line}: {wrong}: {answers}")


def all_do(peers, line):
    """Sends a command to all peers and returns the answers, None for a peer that has ended. If
    one peer ends, the daemons end the call of the other peer."""
    for peer in peers:
        peer.send(line)
    answers = []
    for peer in peers:
        try:
            answers.append(answer(peer, line))
        except Ended:
            answers.append(None)
    all_told(peers, line, answers)
    hashes = {a["hash"] for a in answers if a and a.get("code") == SUCCESS and "hash" in a}
    if len(hashes) > 1:
        raise Fault(f"DIVERGED: {line}: {answers}")
    return answers


def succeeded(answers):
    return all(a and a["code"] == SUCCESS for a in answers)


class Entry:
    """Peers that join one run. A member votes while another peer connects, because pcclConnect
    waits for a vote. A member also votes while another member votes, because a vote waits for all
    members."""

    def __init__(self, peers):
        self.connecting = set(peers)
        self.voting = 0
        self.change = threading.Condition()
        self.hopeless = False

    def has(self, peer):
        with self.change:
            self.connecting.discard(peer)
            self.change.notify_all()

    def give_up(self):
        with self.change:
            self.hopeless = True
            self.change.notify_all()

    def begin_vote(self):
        """Returns false if there is no peer to vote for."""
        with self.change:
            self.change.wait_for(lambda: self.hopeless or not (self.connecting or self.voting), 0.03)
            if self.hopeless or not (self.connecting or self.voting):
                return False
            self.voting += 1
            return True

    def end_vote(self):
        with self.change:
            self.voting -= 1
            self.change.notify_all()


def vote(peer, entry):
    good = True
    while good and entry.begin_vote():
        try:
            good = ask(peer, "update")["code"] == SUCCESS
        finally:
            entry.end_vote()
    return good and not entry.hopeless


def enter(peer, world, entry):
    """Returns whether the peer has joined a run of this size."""
    good = joined = False
    try:
        good = ask(peer, "create")["code"] == SUCCESS and ask(peer, "connect")["code"] == SUCCESS
        if good:
            joined = True
            entry.has(peer)
            good = vote(peer, entry) and ask(peer, "attr")["global"] == world
    except Ended:
        good = False
    finally:
        if not good:
            entry.give_up()
    if joined and not good:
        ask(peer, "destroy")  # others may be in pcclConnect, which waits for the vote of this peer
    return good


def connect(lab, peers):
    """Returns whether all peers have joined; all try twice. A connect waits for the votes of
    members, so each peer has a thread."""
    with concurrent.futures.ThreadPoolExecutor(len(peers)) as pool:
        for again in (True, False):
            entry = Entry(peers)
            entering = [pool.submit(enter, peer, len(peers), entry) for peer in peers]
            while concurrent.futures.wait(entering, 0.05).not_done:
                lab.tend()
            if all([e.result() for e in entering]):
                return True
            if any(p.process.poll() is not None for p in peers):
                return False
            if again:
                for peer in peers:
                    peer.call("destroy", BOUND)  # harmless if no communicator could be created
    return False


def give_state(peers):
    for peer in peers:
        peer.send("state revision=1", f"tensors name=t count={MIB // 4} seed=1 like={peer.number}",
                  "digest")
    return [[answer(p, "state") for _ in range(3)][2]["hash"] for p in peers]


def work(peers):
    """Repeats calls that fail with a loss. Stops at any other failure."""
    ids = "ids=0,1" if len(peers) == 2 else "ids=0,1,2 or=1,2"  # peer 0 may be lost
    for line in WORK + ((LARGE,) if len({p.host for p in peers}) == 1 else ()):
        if not succeeded(all_do(peers, f"{line} {ids}")):
            return False
    for peer in peers:
        peer.send(f"sync strategy={'receive' if peer.number else 'send'} retry=3")
    answers = [answer(p, "sync") for p in peers]
    all_told(peers, "sync", answers)
    if len({a["hash"] for a in answers if a["code"] == SUCCESS}) > 1:
        raise Fault(f"DIVERGED: sync: {answers}")
    for a, old in zip(answers, peers[0].old):
        if a["code"] != SUCCESS and a["hash"] != old and "written in part" not in a["text"]:
            raise Fault(f"sync failed, but changed tensors and did not say so: {a}")
    return succeeded(answers)


def peers_work(lab, armed):
    """Runs two or three peers. Returns whether all calls succeeded. armed(phase) is called where failures
    may begin."""
    lab.group += 1  # a new group, because the revision of a group outlives its master
    peers = [lab.start_peer(k, host, lab.group, ready=False)
             for k, host in enumerate(lab.places())]
    try:
        for peer in peers:
            peer.lab = lab
            answer(peer, "start")
        peers[0].old = give_state(peers)
        armed("connect")
        if not connect(lab, peers):
            return False
        armed("work")
        good = work(peers)
        all_do([p for p in peers if p.process.poll() is None], "destroy")
        return good
    except Failed as error:  # a command was sent to a peer that is gone
        raise Fault(str(error)) from None
    finally:
        for peer in peers:
            lab.drop_peer(peer)


class Toll:
    """The results of all rows."""

    def __init__(self):
        self.lock = threading.Lock()
        self.injected = self.fired = self.hangs = self.unharmed = self.faults = 0
        self.slowest = (0, "")

    def add(self, name, fired, fault, good, seconds):
        with self.lock:
            self.injected += 1
            self.fired += fired
            self.unharmed += bool(fired and good)
            self.slowest = max(self.slowest, (seconds, name))
            if not fault:
                return
            self.hangs += fault.startswith("HANG")
            self.faults += 1
            check(False, name, fault)


def start_again(lab, kind):
    """Restarts a daemon with the injection active from its start."""
    lab.drop(lab.master if kind == "master" else lab.agents[0])
    try:
        lab.start_marked()
    except Failed as failure:
        if "ended at once" not in str(failure):
            raise Fault(f"HANG: {failure}{lab.states()}") from None
        if not any("]: err: " in line for line in lab.daemons[-1].log_lines()):
            raise Fault(f"the daemon did not log why it ended: {failure}") from None


def row(lab, kind, phase, call, n, error):
    """Runs one row. Returns whether the failure was injected, the fault or None, and whether all
    calls succeeded."""
    def armed(now):
        if now == phase:
            lab.control.arm(call, n, error)

    lab.row, lab.left = truth.Row(kind, call, error), set()
    fault, good = None, False
    try:
        if phase == "start":
            armed("start")
            start_again(lab, kind)
        if all(d.alive() for d in lab.daemons):
            good = peers_work(lab, armed)
    except Fault as seen:
        fault = str(seen)
    fired = lab.control.disarm()
    lab.row = None
    try:
        lab.bury()
        lab.end_private()
    except (Fault, Failed) as seen:
        fault = fault or str(seen)
    if not fired and not good:
        fault = fault or "failed though nothing was injected"
    return fired, fault, good


def census(kind, phase, hosts):
    """Returns how many calls of each kind are made if none fails. Each of them could fail."""
    def armed(now):
        if now == phase:
            lab.control.count()

    with InjectLab(kind, hosts) as lab:
        lab.start_all()
        if phase == "start":
            armed("start")
            start_again(lab, kind)
        try:
            peers_work(lab, armed)
        except Fault as fault:
            raise Failed(f"{kind}:{phase}, without a failure: {fault}") from None
        return lab.control.counts()


def numbers_of(name, call, error, made):
    """Returns the numbers of the calls that are to fail: each number gives one row."""
    numbers = range(1, MANY.get(call, USUAL) + 1) if ALL else \
        sorted({1, 2, *((7, 23) if call in MANY else ())})
    return [n for n in numbers if n <= made and in_question(f"{name}:{n}:{error}")]


def group(toll, numbers, kind, phase, call, error, hosts):
    """Runs the rows of one call in one lab. After each row without success, peers run without a
    failure."""
    name = f"{kind}:{phase}:{call}:{hosts}"
    with InjectLab(kind, hosts) as lab:
        lab.start_all()
        for n in numbers:
            if toll.faults >= FAULTS_MAX:
                return
            began = time.monotonic()
            fired, fault, good = row(lab, kind, phase, call, n, error)
            if fired and not fault and not good:
                try:
                    # a daemon may be about to end while the first peers begin
                    if not any(peers_work(lab, lambda _: None) for _ in range(2)):
                        fault = "the next peers do not succeed"
                except Fault as seen:
                    fault = f"the next peers: {seen}"
            lab.tend()
            toll.add(f"{name}:{n}:{error}", fired, fault, good, time.monotonic() - began)
            lab.faults += bool(fault)
            if not fired or fault:
                break


def in_question(name):
    """Returns whether rows with this name were selected. name: the name of a row, or the beginning
    of names of rows."""
    return name.startswith(ONLY) or ONLY.startswith(name + ":")


def groups():
    """Yields the groups of rows to run. By default each call is tested with only its first error,
    on either one, two or three hosts; with INJECT_ALL, with all errors, on one, two and three."""
    k = 0
    for kind, phase in ((kind, phase) for kind, phases in PHASES.items() for phase in phases):
        for call, *errors in CALLS:
            k += 1
            n_hosts = (1,) if kind in ("spawner", "private") else (1, 2, 3) if ALL else (1 + k % 3,)
            for hosts in n_hosts:
                for error in errors if ALL else errors[:1]:
                    if (call, error) in OF_TRAINERS and kind != "trainer":
                        continue
                    if in_question(f"{kind}:{phase}:{call}:{hosts}"):
                        yield kind, phase, call, error, hosts


def test():
    if lib.sanitized():
        raise lib.Skipped("the sanitizer has its own malloc")
    toll, table = Toll(), list(groups())
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        places = {(kind, phase, hosts) for kind, phase, _, _, hosts in table}
        counts = {place: pool.submit(census, *place) for place in sorted(places)}
        done = []
        for kind, phase, call, error, hosts in table:
            made = counts[kind, phase, hosts].result()[call]
            numbers = numbers_of(f"{kind}:{phase}:{call}:{hosts}", call, error, made)
            if numbers:
                done.append(pool.submit(group, toll, numbers, kind, phase, call, error, hosts))
        for future in done:
            try:
                future.result()
            except Failed as error:
                check(False, str(error))
    check(toll.fired >= FIRED_MIN, f"{toll.injected} injected, {toll.fired} fired, {toll.hangs} hangs")
    print(f"# {toll.unharmed} failures affected no call; the slowest row took "
          f"{toll.slowest[0]:.1f} s: {toll.slowest[1]}")


if __name__ == "__main__":
    lib.run(test, 2000 if ALL else 600)
