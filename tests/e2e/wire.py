# SPDX-License-Identifier: MIT
"""The parts of the protocols with which a test builds wrong messages: protobuf fields, frames,
hellos, queue pairs.

PROTOCOL.md and the headers of proto/ define all of this.
"""

import collections
import itertools
import mmap
import os
import socket
import struct

from seal import Identity, Seal

FRAME_MASTER, FRAME_ADMIN, FRAME_SEALED = 1, 2, 3

# wire_link.h
P2P, SHARED_STATE, BENCHMARK = 1, 2, 3
STREAM_PROBE = 0xfffe
HELLO_SIZE, ACK_SIZE, TEXT_AT, TEXT_MAX = 128, 256, 32, 176

# ccoip.proto, Message
HELLO, JOIN, LEAVE, BALLOT_VOTE = range(1, 5)
OP_VOTE, OP_REPORT, ROUND_REPORT = range(6, 9)
HEARTBEAT, RESUME, PROBED, KNOCK = 9, 10, 16, 17
HELLO_ACK, REFUSE, ROUND, COMMIT, KICK, PROBE, KNOCK_ACK = 32, 33, 34, 35, 41, 47, 48

# local.proto, Request
GREET, CREATE, CONNECT, DESTROY, VOTE, ALLOC, FREE, MAP = range(1, 9)

# shm_queue.h
SLOTS, SQ_OFF, SQE_OFF, SLOT_OFF = 64, 256, 1024, 1024 + 64 * 128
SLOT_SIZE, SLOT_CODE = 448, 152
QUEUE_SIZE = SLOT_OFF + SLOTS * SLOT_SIZE
IN_REGISTERED, OUT_REGISTERED = 1, 2


# --------------------------------------------------------------------------- protobuf


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    """Encodes a field of bytes, a text or a message."""
    if isinstance(value, str):
        value = value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def parse(message):
    """Returns the fields of a message. If a number occurs twice, the last field counts."""
    fields, at = {}, 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = take()
        if key & 7 == 0:
            fields[key >> 3] = take()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or take()
            fields[key >> 3] = message[at:at + size]
            at += size
    return fields


# ----------------------------------------------------------------------------- frames


def frame(kind, payload, length=None, magic=b"PCCF", version=1):
    return struct.pack("<4sHHI", magic, version, kind,
                       len(payload) if length is None else length) + payload


def master_message(kind, body=b""):
    return frame(FRAME_MASTER, data(kind, body))


def master_knock(versions=(3, 3), share=None):
    return master_message(KNOCK, number(1, versions[0]) + number(2, versions[1])
                          + data(3, share or os.urandom(32)))


class Agent:
    """The test in the role of an agent, with a connection to a master. identity: the identity of
    the agent. claims: fields of its hello that replace the usual fields, or None for no hello."""

    def __init__(self, address, identity=None, claims=b"", timeout=10):
        host, port = address.rsplit(":", 1)
        self.identity = identity or Identity()
        self.seal = Seal()
        self.sock = socket.create_connection((host, int(port)), timeout)
        self.sock.sendall(master_knock(share=self.seal.share))
        self.seal.agree(parse(self.expect(KNOCK_ACK))[1])
        if claims is not None:
            self.say(HELLO, self.hello() + claims)

    def hello(self):
        """Returns the usual hello. The last value of a field counts, so appended fields replace
        those of this hello."""
        return (number(1, 3) + number(2, 3) + data(4, self.identity.id) + data(5, "stranger")
                + number(8, 48150) + number(9, 48149) + data(14, self.identity.share)
                + data(15, self.identity.prove(self.seal)))

    def sealed(self, kind, body=b""):
        return frame(FRAME_SEALED, self.seal.put(data(kind, body)))

    def say(self, kind, body=b""):
        secret = kind in (HELLO, JOIN)
        self.sock.sendall(self.sealed(kind, body) if secret else master_message(kind, body))

    def join(self, peer=None, token=None, group=0, phase=0):
        peer = peer or os.urandom(16)
        self.say(JOIN, data(1, peer) + number(2, group) + number(3, 1) + data(5, "stranger")
                 + data(6, token or os.urandom(16)) + number(7, phase))
        return peer

    def take(self, size):
        got = b""
        while len(got) < size:
            more = self.sock.recv(size - len(got))
            if not more:
                raise ConnectionResetError("the master has hung up")
            got += more
        return got

    def next(self):
        """Returns kind and body of the next message."""
        header = self.take(12)
        _, _, kind, size = struct.unpack("<4sHHI", header)
        payload = self.take(size)
        if kind == FRAME_SEALED:
            payload = self.seal.get(payload)
        return next(iter(parse(payload).items()))

    def expect(self, wanted):
        """Returns the body of the next message of this kind."""
        while True:
            kind, body = self.next()
            if kind == wanted:
                return body
            if kind == REFUSE:
                raise ConnectionRefusedError(parse(body).get(4, b"").decode())

    def close(self):
        self.sock.close()


def admin_request(verb=1, versions=(1, 1)):
    return frame(FRAME_ADMIN, number(1, versions[0]) + number(2, versions[1]) + number(3, verb))


def link_hello(versions=(2, 2), service=1, stream=0, streams=1, run=None, sender=None, to=None,
               round_no=1):
    """Returns a hello with a random proof and a new nonce, so it repeats no earlier hello. Unless
    `run` is given, the hello names a run that nobody knows."""
    return struct.pack("<4sHHHHHxxQ16s16s16s16sQ32s", b"PCLK", *versions, service, stream, streams,
                       0, run or os.urandom(16), struct.pack("<Q", next(NUMBERS)) + os.urandom(8),
                       sender or os.urandom(16), to or os.urandom(16), round_no, os.urandom(32))


NUMBERS = itertools.count(1 << 62)  # higher than the numbers of real hellos


def link_answer(address, hello):
    """Sends a hello to `address`, a pair (host, port). Returns code and text of the answer, or None
    if the connection ends without an answer."""
    with socket.create_connection(address, 10) as sock:
        sock.sendall(hello)
        answer = b""
        try:
            while len(answer) < ACK_SIZE:
                more = sock.recv(ACK_SIZE - len(answer))
                if not more:
                    return None
                answer += more
        except ConnectionResetError:
            return None
    code, = struct.unpack_from("<H", answer, 10)
    return code, answer[TEXT_AT:TEXT_AT + TEXT_MAX].split(b"\0")[0].decode()


def ids_of_run(address):
    """Returns the ids of two neighbours among the agents of the run. A newcomer that never becomes
    a member learns them: it is asked to probe one agent, and the other agent probes it."""
    with socket.create_server(("0.0.0.0", 0)) as port:
        port.settimeout(10)
        agent = Agent(address, claims=number(8, port.getsockname()[1]))
        agent.join()
        ids = {parse(parse(agent.expect(PROBE))[2])[1]}
        with port.accept()[0] as sock:
            hello = sock.recv(HELLO_SIZE, socket.MSG_WAITALL)
        ids.add(hello[56:72])
        agent.close()
    return ids


# A port, its purpose, the id of its agent, and the id of the neighbour that would open links to it.
Place = collections.namedtuple("Place", "address service agent neighbour")


def places_of(master, addresses):
    """Returns a Place for each port of an agent. The test can find the agent of a port, because an
    agent tells anybody whether a hello names the right agent. The port for benchmarks answers no
    probe; it belongs to the agent of the other ports of its host."""
    ids = ids_of_run(master)
    places = [Place(address, service, agent, neighbour)
              for address in addresses for service in (P2P, SHARED_STATE)
              for agent, neighbour in itertools.permutations(ids, 2)
              if (link_answer(address, link_hello(service=service, stream=STREAM_PROBE, to=agent))
                  or (None,))[0] == 0]
    known = {p.address for p in places}
    hosts = {p.address[0]: p for p in places}
    return places + [hosts[a[0]]._replace(address=a, service=BENCHMARK)
                     for a in addresses if a not in known and a[0] in hosts]


# ----------------------------------------------------------------- processes and agents


def local_request(kind, body=b"", req_id=1):
    return data(kind, body) + number(15, req_id)


def local_hello(versions=(2, 2)):
    return local_request(GREET, number(1, versions[0]) + number(2, versions[1]) + data(4, "stranger"))


class Session:
    """The test in the role of a process, with a session of an agent."""

    def __init__(self, path, greet=True, timeout=10):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.connect(str(path))  # with a time limit, connect() fails if the queue is full
        self.sock.settimeout(timeout)
        self.req_id = 0
        self.fds = []
        if greet:
            self.send_raw(local_hello())
            reply = self.recv()
            if not reply or reply.get(2):
                raise ConnectionRefusedError("the agent refuses this session")

    def send_raw(self, packet, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))]
        self.sock.sendmsg([packet], ancillary if fds else [])

    def recv(self):
        """Returns the fields of a reply, or {} if the session has ended."""
        try:
            packet, ancillary, _, _ = self.sock.recvmsg(8192, socket.CMSG_SPACE(16))
        except ConnectionResetError:
            return {}
        self.fds = []
        for _, _, content in ancillary:
            self.fds += struct.unpack(f"{len(content) // 4}i", content)
        return parse(packet)

    def request(self, kind, body=b""):
        """Returns the reply, or {} if the session has ended."""
        self.req_id += 1
        try:
            self.send_raw(local_request(kind, body, self.req_id))
        except (BrokenPipeError, ConnectionResetError):
            return {}
        reply = {0: 0}
        while reply and reply.get(1) != self.req_id:
            reply = self.recv()
        return reply

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Communicator:
    """A communicator of a session. The test can write anything into its queue pair."""

    def __init__(self, session, address, group=0):
        host, port = address.rsplit(":", 1)
        self.session = session
        reply = session.request(CREATE, data(1, data(1, socket.inet_aton(host)) + number(2, int(port)))
                                + number(2, group) + number(3, 1))
        self.comm = reply[8]
        memory, self.bell, self.data_bell = session.fds
        self.queue = mmap.mmap(memory, QUEUE_SIZE)
        os.close(memory)
        self.tail = 0

    def body(self):
        return number(1, self.comm)

    def connect_body(self):
        """Returns the body of CONNECT, with a new peer in each call."""
        return self.body() + data(2, os.urandom(16)) + data(3, os.urandom(16))

    def region(self, size, use=1):
        """Returns the number of a new region, or None. Its memory is not mapped here."""
        reply = self.session.request(ALLOC, number(1, self.comm) + number(2, size) + number(3, use))
        for fd in self.session.fds:
            os.close(fd)
        return reply.get(9) if not reply.get(2) else None

    def ring(self):
        os.eventfd_write(self.bell, 1)
        os.eventfd_write(self.data_bell, 1)

    def set_tail(self, tail):
        struct.pack_into("<I", self.queue, SQ_OFF, tail & 0xffffffff)

    def submit(self, slot=0, flags=IN_REGISTERED, tag=0, count=1, dtype=10, op=0, quant=0,
               reserved=0, in_region=0, in_off=0, in_start=0, out_region=0, out_off=0):
        entry = struct.pack("<IIQQ6I5Q40x", slot & 0xffffffff, flags, tag, count, dtype, op, 0,
                            quant, 0, reserved, in_region, in_off, in_start, out_region, out_off)
        at = SQE_OFF + self.tail % SLOTS * 128
        self.queue[at:at + 128] = entry
        if slot < SLOTS:
            struct.pack_into("<I", self.queue, SLOT_OFF + slot * SLOT_SIZE + 64, 1)
        self.tail += 1
        self.set_tail(self.tail)
        self.ring()

    def outcome(self, slot):
        """Returns the code of the operation in a slot, or None if it has not ended."""
        at = SLOT_OFF + slot * SLOT_SIZE
        done, = struct.unpack_from("<I", self.queue, at + 64)
        return struct.unpack_from("<I", self.queue, at + SLOT_CODE)[0] if done == 2 else None

    def close(self):
        self.queue.close()
        os.close(self.bell)
        os.close(self.data_bell)
