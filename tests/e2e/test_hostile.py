#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends garbage, truncated, forged, joined, abandoned and far too many messages to every socket of
every daemon. Peers that work meanwhile see no effect, and a daemon logs at most one line for each
message."""

import os
import random
import resource
import socket
import struct
import threading
import time

import lib
import wire
from lib import check

RNG = random.Random(4)
LENGTHS = range(301)
FLOOD = 300
SLACK = 20  # log lines that are not about an offence
MASTER_PORT = "the master's port"
AT_LEAST = 3  # operations that the peers must complete during each attack
CONNECT_S = 10  # connect_timeout_ms: how long connections without an answer are tried again


class Pair:
    """Two peers on two hosts that reduce without pause. Only the thread of this object talks to
    them."""

    def __init__(self, peers):
        self.peers = peers
        self.count, self.wrong, self.slowest = 0, None, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            while not self.stop.is_set() and not self.wrong:
                size = (1, 1009, 65537)[self.count % 3]
                answers = lib.together(self.peers, f"reduce type=f32 op=sum count={size} ids=0,1 "
                                       f"tag={self.count % 5} seed={self.count} verify=1")
                self.wrong = lib.judge(answers)
                self.slowest = max([self.slowest, *(a["end"] - a["begin"] for a in answers)])
                self.count += 1
        except lib.Failed as error:
            self.wrong = str(error)

    def end(self):
        self.stop.set()
        self.thread.join(lib.WAIT)


class Target:
    """A socket of a daemon. hello: a valid first message."""

    def __init__(self, name, daemon, hello, port=None, path=None, kind=socket.SOCK_STREAM):
        self.name, self.daemon, self.hello = name, daemon, hello
        self.port, self.path, self.kind = port, path, kind

    def connect(self):
        sock = socket.socket(socket.AF_UNIX if self.path else socket.AF_INET, self.kind)
        if self.path:  # with a time limit, connect() fails at once if the queue is full
            sock.connect(str(self.path))
        sock.settimeout(10)
        if not self.path:
            sock.connect(("127.0.0.1", self.port))
        return sock

    def throw(self, *messages, reset=False, wait=False):
        """Sends messages on a new connection. wait: until the daemon closes the connection or
        answers. Returns the answer."""
        answer = b""
        sock = self.connect()
        try:
            for message in messages:
                sock.send(message)
            if wait:
                answer = sock.recv(65536)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        finally:
            if reset and not self.path:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        return answer


class Siege:
    """The daemons under attack, and the pair of peers that must not notice the attack."""

    def __init__(self, lab, pair, targets):
        self.lab, self.pair, self.targets = lab, pair, targets
        self.files = [d.open_files() for d in lab.daemons]
        self.offences = 0

    def lines(self):
        """Counts the lines of the logs. Lines about runs that the attackers form do not count."""
        return sum(not ("]: info: pid " in line or "]: notice: master " in line)
                   for d in (self.lab.master, *self.lab.agents.values()) for line in d.log_lines())

    def attack(self, name, fn, *args):
        """Runs fn, which returns how many offences it committed."""
        count = self.pair.count
        began = time.monotonic()
        offences = fn(*args)
        took = time.monotonic() - began
        deadline = time.monotonic() + lib.WAIT
        while (self.pair.count < count + AT_LEAST and not self.pair.wrong
               and time.monotonic() < deadline):
            time.sleep(0.002)
        self.lab.check_alive()
        good = not self.pair.wrong and self.pair.count >= count + AT_LEAST
        check(good, f"{name}: {offences} offences in {took:.1f} s, meanwhile "
              f"{self.pair.count - count} operations", self.pair.wrong)
        self.offences += offences

    def calm(self):
        """Checks that the daemons have closed all connections of the attacks, and that the logs are
        short."""
        deadline = time.monotonic() + lib.WAIT
        left = True
        while left and time.monotonic() < deadline:
            left = [(d.name, f, d.open_files()) for d, f in zip(self.lab.daemons, self.files)
                    if d.open_files() > f + 4]
            time.sleep(0.05)
        check(not left, "the daemons have closed all connections of the attacks", left)
        lines = self.lines()
        check(lines <= self.offences + SLACK, f"{lines} lines of the logs for {self.offences} "
              "offences")


# ------------------------------------------------------------------ bytes on any socket


def garbage(target):
    """Sends messages of every length: noise, zeros, and noise after a valid start."""
    for n in LENGTHS:
        noise = RNG.randbytes(n)
        if n or target.kind == socket.SOCK_STREAM:
            target.throw(noise)
            target.throw(bytes(n))
        target.throw(target.hello[:12][:n] + noise[12:], wait=n > 128 and n % 50 == 0)
    return 3 * len(LENGTHS)


def cut(target):
    """Sends a valid message that is cut at every byte, by the end of the stream or by a reset."""
    for n in range(len(target.hello)):
        target.throw(target.hello[:n])
        target.throw(target.hello[:n], reset=True)
    return 2 * len(target.hello)


def glued(target):
    """Sends a valid message followed by noise, and valid messages twice."""
    for n in range(0, 301, 7):
        target.throw(target.hello + RNG.randbytes(n), wait=n % 70 == 0)
        target.throw(target.hello + target.hello, reset=n % 14 == 0)
    # the master also logs a line for each agent that has sent its hello
    return 2 * len(range(0, 301, 7)) * (2 if target.name == MASTER_PORT else 1)


def flood(target):
    """Opens many connections at once that send nothing, and closes them together."""
    socks = []
    try:
        for _ in range(FLOOD):
            socks.append(target.connect())
        for sock in socks[::3]:
            sock.send(target.hello[:1])
    except OSError:
        pass  # the daemon may refuse further connections
    for sock in socks:
        sock.close()
    for _ in range(FLOOD):
        target.throw(reset=True)
    return 2 * FLOOD


# ------------------------------------------------------------------ frames, the master


def bad_frames(target, kind):
    """Sends valid headers with payloads of noise, and headers with wrong fields."""
    n = 0
    for length in LENGTHS:
        payload = RNG.randbytes(length)
        for thrown in (wire.frame(kind, payload), wire.frame(kind, payload, length=length + 1),
                       wire.frame(kind, payload, length=max(0, length - 1)),
                       target.hello + wire.frame(kind, payload)):
            target.throw(thrown)
            n += 1
    for thrown in (wire.frame(kind, b"", length=0xffffffff), wire.frame(kind, b"", length=1 << 20),
                   wire.frame(kind, b"", length=(1 << 20) + 1), wire.frame(0, b""),
                   wire.frame(kind, b"", version=2), wire.frame(kind, bytes(1 << 20))):
        target.throw(thrown, wait=thrown[8:12] != struct.pack("<I", 1 << 20))
        n += 1
    return n


def say(target, *said):
    """Sends messages as an agent that has sent its hello. said: the kind and the body of the first
    message, those of the second, and so on."""
    agent = wire.Agent(f"127.0.0.1:{target.port}")
    try:
        for kind, body in zip(said[::2], said[1::2]):
            agent.say(kind, body)
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        agent.close()


def bad_agents(target):
    """Sends messages that an agent must not send to the master."""
    stranger = os.urandom(16)
    op = wire.data(3, wire.number(1, 10) + wire.number(2, 10))
    known = wire.data(1, stranger) + wire.data(6, stranger)
    bodies = [
        (wire.JOIN, b""), (wire.JOIN, wire.data(1, bytes(16))),
        (wire.JOIN, wire.data(1, stranger) + wire.number(3, 1)),
        (wire.JOIN, known + wire.number(3, 0)), (wire.JOIN, known + wire.number(3, 65)),
        (wire.JOIN, known + wire.number(3, 1) + wire.data(5, "x" * 64)),
        (wire.LEAVE, wire.data(1, stranger)), (wire.LEAVE, wire.number(2, 7)),
        (wire.BALLOT_VOTE, wire.data(1, stranger)),
        (wire.BALLOT_VOTE, wire.data(1, stranger) + wire.number(2, 3)),
        (wire.OP_VOTE, wire.number(2, 1) + op + wire.data(4, stranger)),
        (wire.OP_VOTE, wire.number(2, 1) + wire.data(4, stranger)),
        (wire.OP_VOTE, wire.number(2, 1) + op),
        (wire.OP_VOTE, wire.number(2, 1) + op + wire.data(4, stranger) * 1025),
        (wire.OP_REPORT, wire.number(1, 1) + wire.number(2, 1)),
        (wire.OP_REPORT, wire.number(1, (1 << 64) - 1)),
        (wire.ROUND_REPORT, wire.number(1, 1)), (wire.ROUND_REPORT, wire.number(1, 1 << 63)),
        *((kind, RNG.randbytes(40)) for kind in range(wire.HELLO_ACK, wire.KICK + 1)),
        *((kind, b"") for kind in range(wire.HELLO, wire.KICK + 1)),
    ]
    for kind, body in bodies:
        target.throw(wire.master_message(kind, body), wait=kind == wire.OP_VOTE)
        target.throw(target.hello, wire.master_message(kind, body))
        say(target, kind, body)
    say(target, *[wire.HEARTBEAT, b""] * 2000)
    # newcomers that do not wait for an answer
    for _ in range(50):
        join = wire.data(1, os.urandom(16)) + wire.number(3, 1) + wire.data(5, "stranger") + \
            wire.data(6, os.urandom(16))
        say(target, wire.JOIN, join)
    return 4 * len(bodies) + 3 * 50 + 2


def byte_by_byte(target):
    """Checks that a valid message is understood when it arrives byte by byte."""
    with target.connect() as sock:
        if not target.path:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in target.hello:
            sock.send(bytes([byte]))
        answer = sock.recv(65536)
    whole = target.throw(target.hello, wait=True)
    check(len(answer) == len(whole) > 12 and answer[:8] == whole[:8],
          f"{target.name}: a message that arrives byte by byte is answered like a whole message",
          (answer, whole))


def two_answers(target):
    sock = target.connect()
    sock.sendall(target.hello * 3)
    got = b""
    while got.count(b"PCCF") < 3:
        more = sock.recv(65536)
        if not more:
            break
        got += more
    sock.close()
    check(got.count(b"PCCF") == 3, f"{target.name}: requests in one packet are all answered", got[:80])


def versions(siege):
    """Checks that a refusal of another version names the supported versions."""
    for target in siege.targets:
        if target.kind == socket.SOCK_SEQPACKET:
            hello = wire.local_hello((7, 9))
        elif target.name.endswith("admin socket"):
            hello = wire.admin_request(versions=(7, 9))
        elif target.name == MASTER_PORT:
            hello = wire.master_knock((7, 9))
        else:
            hello = wire.link_hello((7, 9))
        answer = target.throw(hello, wait=True)
        check(b"7" in answer and b"9" in answer and b"version" in answer,
              f"{target.name}: the refusal of another version names the versions", answer)


# ------------------------------------------------------------------- sessions, queue pairs


def bad_sessions(target):
    """Sends packets that no library sends."""
    n = 0
    for first in (b"", target.hello):
        for kind in range(1, 12):
            for body in (b"", RNG.randbytes(30), wire.number(1, 99), wire.number(2, 1 << 63)):
                with wire.Session(target.path, greet=False) as session:
                    try:
                        if first:
                            session.send_raw(first)
                        session.send_raw(wire.local_request(kind, body))
                        session.send_raw(wire.local_request(kind, body, 0))
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    n += 1
    for size in (4095, 4096, 4097, 10000, 100000):
        target.throw(RNG.randbytes(size))
        target.throw(target.hello, bytes(size))
        n += 2
    fds = [os.dup(0) for _ in range(60)]
    for _ in range(30):  # descriptors that the agent did not expect
        with wire.Session(target.path, greet=False) as session:
            session.send_raw(target.hello, fds)
            session.recv()
        n += 1
    for fd in fds:
        os.close(fd)
    return n


def greedy_sessions(target):
    """Opens a session that never reads, one that requests all the memory, and more sessions than a
    user may have."""
    with wire.Session(target.path) as session:
        session.sock.settimeout(1)
        try:
            for k in range(20000):
                session.send_raw(wire.local_request(wire.ALLOC, wire.number(2, 1 << 40), k + 2))
        except OSError:
            pass
    with wire.Session(target.path) as session:
        for size in (1 << 63, 1 << 48, 1 << 40, (1 << 48) + 1):
            reply = session.request(wire.ALLOC, wire.number(2, size) + wire.number(3, 1))
            if reply and not reply.get(2):
                raise lib.Failed(f"{size} bytes of memory were granted to one session")
            if not reply:
                break
    with wire.Session(target.path) as session:
        reply, n = {1: 1}, 0
        while reply and not reply.get(2) and n < 10000:
            reply = session.request(wire.ALLOC, wire.number(2, 4096) + wire.number(3, 1))
            for fd in session.fds:
                os.close(fd)
            n += 1
        check(n < 10000, f"regions of a user are limited: {n}")
    sessions = []
    try:
        for _ in range(1100):
            sessions.append(wire.Session(target.path, timeout=1))
    except OSError:
        pass
    check(len(sessions) < 1100, f"sessions of a user are limited: {len(sessions)}")
    for session in sessions:
        session.close()
    deadline = time.monotonic() + lib.WAIT
    while True:  # until the agent has noticed that the sessions are gone
        try:
            wire.Session(target.path).close()
            return 4 + 1
        except OSError:
            if time.monotonic() > deadline:
                raise lib.Failed("the agent no longer accepts sessions") from None


FORGERIES = (
    {"count": 0}, {"count": 1 << 62}, {"count": (1 << 64) - 1}, {"count": 1025},
    {"dtype": 12}, {"dtype": 255}, {"dtype": 0xffffffff}, {"op": 5}, {"op": 0xffffffff},
    {"reserved": 1}, {"flags": 0xffffffff}, {"flags": 4},
    {"in_region": 0}, {"in_region": 1 << 40}, {"in_off": 4093}, {"in_off": (1 << 64) - 4},
    {"in_off": 1 << 63}, {"in_start": 5, "flags": 0}, {"in_start": (1 << 64) - 1, "flags": 0},
    {"flags": 3, "out_region": 0}, {"flags": 3, "out_region": 1 << 40},
    {"flags": 3, "out_off": 1 << 63}, {"flags": 3, "out_off": 4093}, {"slot": 64},
    {"slot": 0xffffffff},
)


def forged_entries(target, master):
    """Submits entries that name things that do not exist. Each entry is refused or ends the
    session."""
    kept = []
    for forgery in FORGERIES:
        with wire.Session(target.path) as session:
            comm = wire.Communicator(session, master.address)
            session.request(wire.CONNECT, comm.connect_body())
            region = comm.region(4096)
            comm.submit(**{"in_region": region, "out_region": region, **forgery})
            # the agent has one thread: it answers this request after the submission, or has closed
            # the session
            if session.request(wire.CREATE) and comm.outcome(0) != lib.INVALID_ARGUMENT:
                kept.append((forgery, comm.outcome(0)))
            comm.close()
    for tail in (65, 1 << 31, 0xffffffff):
        with wire.Session(target.path) as session:
            comm = wire.Communicator(session, master.address)
            comm.set_tail(tail)
            comm.ring()
            if session.request(wire.CREATE):
                kept.append(f"tail {tail}")
            comm.close()
    # memory of another process
    with wire.Session(target.path) as one, wire.Session(target.path) as other:
        region = wire.Communicator(one, master.address).region(4096)
        comm = wire.Communicator(other, master.address)
        other.request(wire.CONNECT, comm.connect_body())
        comm.submit(in_region=region)
        other.request(wire.CREATE)
        if comm.outcome(0) != lib.INVALID_ARGUMENT:
            kept.append("submission with the region of another process")
    check(not kept, "the agent executes no forged submission", kept)
    return len(FORGERIES) + 4


def join_run(target, master, n):
    """Creates peers without the library, in a run of their own."""
    members = []
    for k in range(n):
        session = wire.Session(target.path)
        comm = wire.Communicator(session, master.address)
        session.send_raw(wire.local_request(wire.CONNECT, comm.connect_body(), 1000))
        for other in members:
            other.session.send_raw(wire.local_request(wire.VOTE, other.body(), 1001))
        members.append(comm)
        if k == 0:
            session.recv()
    for comm in members[1:]:
        comm.session.recv()
    return members


def vandals(target, master):
    """Creates peers of a real run. During operations, they write noise over the memory that they
    share with the agent. They leave without a message."""
    for k in range(30):
        try:
            members = join_run(target, master, 2)
        except (OSError, ValueError) as error:
            raise lib.Failed(f"strangers could not form a run: {error}") from None
        for comm in members:
            region = comm.region(1 << 20)
            staged = comm.region(1 << 20, use=2)
            for slot in range(4):
                comm.submit(slot=slot, tag=slot, count=65536, in_region=staged if slot % 2 else
                            region, flags=0 if slot % 2 else 3, out_region=region, in_start=0)
                at = wire.SLOT_OFF + slot * wire.SLOT_SIZE
                struct.pack_into("<Q", comm.queue, at, RNG.choice((1 << 18, 1 << 63, 3, 1 << 19)))
                comm.ring()
        for comm in members:
            for _ in range(20):
                at = RNG.randrange(wire.QUEUE_SIZE - 64)
                comm.queue[at:at + 64] = RNG.randbytes(64)
                comm.ring()
            comm.set_tail(RNG.randrange(1 << 32) if k % 2 else comm.tail)
            comm.ring()
        for comm in members:
            comm.session.close()
            comm.close()
    return 30 * 2 * 4


def not_a_master(target, siege):
    """Opens sessions that name a master address without a master: ports of agents, a port that
    closes each connection, and a port that does not answer."""
    mute = socket.create_server(("127.0.0.1", 0))
    rude = socket.create_server(("127.0.0.1", 0))

    def hang_up():
        while True:
            try:
                rude.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=hang_up, daemon=True).start()
    ports = [t.port for t in siege.targets if t.port and t.name != MASTER_PORT]
    sessions = []
    for port in [*ports, mute.getsockname()[1], rude.getsockname()[1]]:
        session = wire.Session(target.path)
        session.sock.settimeout(CONNECT_S + lib.WAIT)
        comm = wire.Communicator(session, f"127.0.0.1:{port}")
        session.send_raw(wire.local_request(wire.CONNECT, comm.connect_body(), 5))
        sessions.append((port, session))
    wrong = []
    for port, session in sessions:
        if port != mute.getsockname()[1]:
            reply = session.recv()
            if reply.get(2) != lib.MASTER_CONNECTION_FAILED:
                wrong.append((port, reply))
        session.close()
    check(not wrong, "a connection to a port that is no master fails with a master error", wrong)
    mute.close()
    rude.shutdown(socket.SHUT_RDWR)
    rude.close()
    return 3 * len(sessions)


# -------------------------------------------------------------------------------- all


def targets_of(master, agent):
    status_ports = agent.tcp_ports()
    return [
        Target(MASTER_PORT, master, wire.master_knock(), port=master.port),
        Target("the master's admin socket", master, wire.admin_request(), path=master.admin),
        *(Target(f"port {k} of the agent", agent, wire.link_hello(), port=port)
          for k, port in enumerate(status_ports)),
        Target("the agent's admin socket", agent, wire.admin_request(), path=agent.admin),
        Target("the agent's session socket", agent, wire.local_hello(), path=agent.socket,
               kind=socket.SOCK_SEQPACKET),
    ]


def besiege(siege, other_master):
    for target in siege.targets:
        for fn in (garbage, cut, glued, flood):
            siege.attack(f"{target.name}, {fn.__name__}", fn, target)
    port, admin, session = siege.targets[0], siege.targets[1], siege.targets[-1]
    agent_admin = siege.targets[-2]
    siege.attack(f"{MASTER_PORT}, bad frames", bad_frames, port, wire.FRAME_MASTER)
    for target in (admin, agent_admin):
        siege.attack(f"{target.name}, bad frames", bad_frames, target, wire.FRAME_ADMIN)
        two_answers(target)
    for target in siege.targets:
        if target is not session:
            byte_by_byte(target)
    siege.attack(f"{MASTER_PORT}, bad agents", bad_agents, port)
    siege.attack("bad sessions", bad_sessions, session)
    siege.attack("greedy sessions", greedy_sessions, session)
    siege.attack("forged submissions", forged_entries, session, other_master)
    siege.attack("vandals", vandals, session, other_master)
    siege.attack("false masters", not_a_master, session, siege)
    versions(siege)


def test():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    with lib.Lab(2) as lab:
        other_master = lab.start_master()
        lab.start()
        pair = Pair(lab.start_peers((0, 1), streams=2))
        try:
            siege = Siege(lab, pair, targets_of(lab.master, lab.agents[0]))
            besiege(siege, other_master)
            siege.calm()
        finally:
            pair.end()
        check(not pair.wrong, f"{pair.count} operations succeed during all attacks, the slowest took "
              f"{pair.slowest / 1e6:.0f} ms", pair.wrong)
        newcomer = lab.start_peers((0, 1), first=10, master=other_master.address)
        wrong = lib.judge(lib.together(newcomer, "reduce type=f32 op=sum count=9 ids=10,11"))
        check(not wrong, "newcomers join and reduce after the attacks", wrong)
        lab.check_alive()


lib.run(test, 240)
