# SPDX-License-Identifier: MIT
"""Measures the rates and round trips between hosts of a matrix with TCP connections."""

import contextlib
import socket
import struct
import threading
import time

from lib import WAIT

CHUNK = 1 << 18
# The receiver discards data in the kernel.
DISCARD = socket.MSG_TRUNC


def connect(hosts, pair, congestion=None):
    """Connects one host of the pair to the other. Returns both sockets. congestion: the congestion
    control; default: that of the kernel."""
    with hosts.inside(pair[1]):
        listener = socket.socket()
    with listener:
        if congestion:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        listener.bind((hosts.address(pair[1]), 0))
        listener.listen()
        with hosts.inside(pair[0]):
            near = socket.socket()
        if congestion:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        near.settimeout(WAIT)
        near.connect(listener.getsockname())
        listener.settimeout(WAIT)
        far, _ = listener.accept()
    for end in (near, far):
        end.settimeout(None)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What is still queued must not disturb the next measurement.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return near, far


class Flow:
    """Data from one host to the other, as fast as the network takes it. `received` counts bytes."""

    def __init__(self, hosts, pair, congestion=None):
        self.received = 0
        self.near, self.far = connect(hosts, pair, congestion)
        self.threads = [threading.Thread(target=each, daemon=True) for each in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        data = bytes(CHUNK)
        with contextlib.suppress(OSError):
            while True:
                self.near.send(data)

    def _receive(self):
        room = bytearray(CHUNK)
        with contextlib.suppress(OSError):
            while n := self.far.recv_into(room, CHUNK, DISCARD):
                self.received += n

    def end(self):
        for each in (self.near, self.far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(WAIT)
        self.near.close()
        self.far.close()


@contextlib.contextmanager
def flows(hosts, pairs, congestion=None):
    """Sends over all pairs at the same time."""
    running = []
    try:
        for pair in pairs:
            running.append(Flow(hosts, pair, congestion))
        yield running
    finally:
        for flow in running:
            flow.end()


def goodputs(hosts, pairs, seconds, warm_up=0.5, congestion=None):
    """Sends over all pairs at the same time. Returns what arrived over each one, in bits of payload
    per second, in a window that begins after warm_up seconds."""
    with flows(hosts, pairs, congestion) as running:
        time.sleep(warm_up)
        begin, before = time.monotonic(), [flow.received for flow in running]
        time.sleep(seconds)
        end, after = time.monotonic(), [flow.received for flow in running]
    return [(b - a) * 8 / (end - begin) for a, b in zip(before, after)]


def round_trips(hosts, pair, count, pause=0, congestion=None):
    """Returns the times of `count` round trips of one byte in seconds, the shortest first."""
    near, far = connect(hosts, pair, congestion)

    def echo():
        with contextlib.suppress(OSError):
            while byte := far.recv(1):
                far.send(byte)

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    times = []
    near.settimeout(WAIT)
    for _ in range(count):
        begin = time.monotonic()
        near.send(b"x")
        near.recv(1)
        times.append(time.monotonic() - begin)
        time.sleep(pause)
    near.shutdown(socket.SHUT_RDWR)
    thread.join(WAIT)
    near.close()
    far.close()
    return sorted(times)
