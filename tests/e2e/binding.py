#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trainer over a binding that was written for PCCL 1.0. It knows only the names, structures and
codes of that release, and calls no function that PCCL 1.0 does not have.

usage: binding.py LIBRARY MASTER NUMBER

Like other programs for that release it polls and sleeps, because PCCL 1.0 has no call that waits
for a peer. Each step prints a line. Commands on standard input: "collect" lets the
garbage collector's thread destroy the communicator; "connect" creates a new one; "end" ends the
interpreter, which then destroys the communicator."""

import array
import ctypes
import gc
import ipaddress
import os
import select
import sys
import threading
import time
import zlib

# ---------------------------------------------------------------------------- the binding

CODES = dict(enumerate((
    "Success", "NotInitialized", "InternalError", "InvalidArgument", "InvalidUsage", "TooFewPeers",
    "MasterConnectionFailed", "RankConnectionFailed", "RankConnectionLost",
    "NoSharedStateAvailable", "PendingAsyncOps", "UpdateTopologyFailed",
    "TopologyOptimizationFailed")))
FLOAT, AVERAGE, CPU, ENFORCE_POPULAR = 10, 1, 0, 0
GLOBAL_WORLD_SIZE, GROUP_WORLD_SIZE = 1, 2


class Address(ctypes.Structure):
    _fields_ = [("protocol", ctypes.c_int), ("ipv4", ctypes.c_uint8 * 4),
                ("ipv6", ctypes.c_uint8 * 16), ("port", ctypes.c_uint16)]


class CommParams(ctypes.Structure):
    _fields_ = [("master", Address), ("peer_group", ctypes.c_uint32),
                ("pool_size", ctypes.c_uint32)]


class ReduceDescriptor(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("op", ctypes.c_int), ("tag", ctypes.c_uint64),
                ("datatype", ctypes.c_int), ("hint", ctypes.c_int),
                ("quantized_datatype", ctypes.c_int), ("algorithm", ctypes.c_int)]


class ReduceInfo(ctypes.Structure):
    _fields_ = [("world", ctypes.c_uint32), ("tx", ctypes.c_uint64), ("rx", ctypes.c_uint64)]


class AsyncOp(ctypes.Structure):
    _fields_ = [("comm", ctypes.c_void_p), ("tag", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("datatype", ctypes.c_int), ("device", ctypes.c_int), ("any", ctypes.c_bool)]


class SharedState(ctypes.Structure):
    _fields_ = [("revision", ctypes.c_uint64), ("count", ctypes.c_size_t),
                ("infos", ctypes.POINTER(TensorInfo))]


class SyncInfo(ctypes.Structure):
    _fields_ = [("tx", ctypes.c_uint64), ("rx", ctypes.c_uint64)]


SIZES = {Address: 28, CommParams: 36, ReduceDescriptor: 40, ReduceInfo: 24, AsyncOp: 16,
         TensorInfo: 40, SharedState: 24, SyncInfo: 16}
assert all(ctypes.sizeof(kind) == size for kind, size in SIZES.items())

lib = ctypes.CDLL(sys.argv[1])
lib.pcclDestroyCommunicator.argtypes = [ctypes.c_void_p]


class PCCLError(Exception):
    def __init__(self, code):
        if code not in CODES:
            sys.exit(f"PCCL 1.0 has no code {code}")
        super().__init__(CODES[code])


def must(code):
    if code != 0:
        raise PCCLError(code)


def pointer(values):
    return values.buffer_info()[0]


class Communicator:
    def __init__(self, ip, port):
        address = Address(port=port)
        address.ipv4[:] = ipaddress.ip_address(ip).packed
        self.handle = ctypes.c_void_p()
        must(lib.pcclCreateCommunicator(ctypes.byref(CommParams(address, 0, 1)),
                                        ctypes.byref(self.handle)))
        # a reference cycle, so that the garbage collector destroys the object, at a time and in a
        # thread of its choice
        self.itself = self

    def __del__(self):
        if self.handle:
            code = lib.pcclDestroyCommunicator(self.handle)
            where = "main" if threading.current_thread() is threading.main_thread() else "other"
            os.write(1, f"destroyed code={code} thread={where}\n".encode())
            self.handle = None

    def connect(self):
        must(lib.pcclConnect(self.handle))

    def attribute(self, which):
        value = ctypes.c_int()
        must(lib.pcclGetAttribute(self.handle, which, ctypes.byref(value)))
        return value.value

    def are_peers_pending(self):
        pending = ctypes.c_bool()
        must(lib.pcclArePeersPending(self.handle, ctypes.byref(pending)))
        return pending.value

    def update_topology(self):
        must(lib.pcclUpdateTopology(self.handle))

    def optimize_topology(self):
        must(lib.pcclOptimizeTopology(self.handle))

    def synchronize(self, state):
        info = SyncInfo()
        must(lib.pcclSynchronizeSharedState(self.handle, ctypes.byref(state), ENFORCE_POPULAR,
                                            ctypes.byref(info)))
        return info

    def average(self, send, receive, tag):
        """Starts an all-reduce and awaits it. Returns the code and the information about the
        reduction."""
        what = ReduceDescriptor(count=len(send), op=AVERAGE, tag=tag, datatype=FLOAT,
                                quantized_datatype=FLOAT)
        op, info = AsyncOp(), ReduceInfo()
        code = lib.pcclAllReduceAsync(ctypes.c_void_p(pointer(send)),
                                      ctypes.c_void_p(pointer(receive)), ctypes.byref(what),
                                      self.handle, ctypes.byref(op))
        if code == 0:
            code = lib.pcclAwaitAsyncReduce(ctypes.byref(op), ctypes.byref(info))
        if code != 0:
            PCCLError(code)
        return CODES[code], info


# ---------------------------------------------------------------------------- the trainer

COUNT = 5000
must(lib.pcclInit())


class Trainer:
    def __init__(self, master, number):
        self.master, self.number = master.split(":"), number
        self.weights = array.array("f", [number] * COUNT)
        self.tensor = TensorInfo(b"weights", pointer(self.weights), COUNT, FLOAT, CPU, False)
        self.state = SharedState(0, 1, ctypes.pointer(self.tensor))
        self.comm = None
        self.fresh = True

    def connect(self):
        self.comm = Communicator(self.master[0], int(self.master[1]))
        for _ in range(10):
            try:
                self.comm.connect()
                break
            except PCCLError:
                time.sleep(0.1)
        self.fresh = True

    def admit(self):
        while self.comm.are_peers_pending():
            try:
                self.comm.update_topology()
            except PCCLError:
                print("update again", flush=True)

    def optimize(self):
        while True:
            try:
                self.comm.optimize_topology()
                return
            except PCCLError:
                self.comm.update_topology()
                if self.comm.attribute(GLOBAL_WORLD_SIZE) < 2:
                    return

    def reduce(self):
        """Returns the average of the peers' gradients, or its own gradients if no other peer is
        left."""
        own = array.array("f", [(self.number + self.state.revision) % 1000] * COUNT)
        mean = array.array("f", bytes(4 * COUNT))
        while self.comm.attribute(GROUP_WORLD_SIZE) > 1:
            code, info = self.comm.average(own, mean, tag=1)
            if code == "Success":
                return mean, info.world
        return own, 1

    def step(self):
        if not self.fresh:
            self.admit()
        self.fresh = False
        world = self.comm.attribute(GLOBAL_WORLD_SIZE)
        if world < 2:
            time.sleep(0.02)
            return
        if self.state.revision % 8 == 0:
            self.optimize()
        received = self.comm.synchronize(self.state).rx
        mean, world = self.reduce()
        for k in range(0, COUNT, 50):
            self.weights[k] += mean[k]
        self.state.revision += 1
        print(f"step world={world} revision={self.state.revision} received={received} "
              f"weights={zlib.crc32(self.weights)}", flush=True)


def collect():
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()


def main(master, number):
    trainer = Trainer(master, int(number))
    gc.disable()
    trainer.connect()
    while True:
        while not trainer.comm or select.select([0], [], [], 0)[0]:
            command = sys.stdin.readline().strip()
            if command == "collect":
                trainer.comm = None
                collect()
            elif command == "connect":
                trainer.connect()
            else:
                return trainer
        trainer.step()


if __name__ == "__main__":
    kept = main(*sys.argv[2:])  # until the interpreter ends
