#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data-parallel training with PyTorch tensors, on a CUDA device if there is one, else on the CPU.

usage: torch_train.py MASTER [--library FILE] [--peers N] [--steps N] [--device cpu|cuda|cuda:1]

MASTER is the address of ccoip-masterd, such as 127.0.0.1:48148. Start it once for each peer. The
library gets the addresses of tensors (data_ptr), wherever they are: gradients are summed in place,
and the weights of a newcomer come from the others. Peers with and without a GPU work together."""

import argparse
import ctypes
import ipaddress
import os
import sys

import torch

SUCCESS, TOO_FEW_PEERS, CONNECTION_LOST = 0, 5, 8
FLOAT, AVERAGE, ENFORCE_POPULAR, GROUP_WORLD_SIZE = 10, 1, 0, 2


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


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("datatype", ctypes.c_int), ("device_type", ctypes.c_int),
                ("allow_content_inequality", ctypes.c_bool)]


class SharedState(ctypes.Structure):
    _fields_ = [("revision", ctypes.c_uint64), ("count", ctypes.c_size_t),
                ("infos", ctypes.POINTER(TensorInfo))]


class Peer:
    """A communicator."""

    def __init__(self, library, master):
        self.lib = ctypes.CDLL(library)
        self.lib.pcclGetLastError.restype = ctypes.c_char_p
        host, port = master.rsplit(":", 1)
        params = CommParams()
        params.master.ipv4[:] = ipaddress.IPv4Address(host).packed
        params.master.port = int(port)
        self.comm = ctypes.c_void_p()
        self.must(self.lib.pcclInit())
        self.must(self.lib.pcclCreateCommunicator(ctypes.byref(params), ctypes.byref(self.comm)))
        self.must(self.lib.pcclConnect(self.comm))

    def must(self, result):
        if result != SUCCESS:
            sys.exit(f"torch_train.py: {self.lib.pcclGetLastError().decode()}")

    def let_newcomers_in(self):
        """Returns the number of peers."""
        self.must(self.lib.pcclUpdateTopology(self.comm))
        size = ctypes.c_int()
        self.must(self.lib.pcclGetAttribute(self.comm, GROUP_WORLD_SIZE, ctypes.byref(size)))
        return size.value

    def follow(self, tensor):
        """Lets the next calls come after the work that PyTorch has queued for the tensor."""
        if tensor.is_cuda:
            stream = torch.cuda.current_stream(tensor.device).cuda_stream
            self.must(self.lib.pcclSetStream(self.comm, ctypes.c_void_p(stream)))

    def average(self, tensor):
        """Averages a tensor over all peers, in place. Returns whether all have the average."""
        descriptor = ReduceDescriptor(count=tensor.numel(), op=AVERAGE, datatype=FLOAT)
        data = ctypes.c_void_p(tensor.data_ptr())
        self.follow(tensor)
        result = CONNECTION_LOST
        while result == CONNECTION_LOST:  # a peer was lost: the tensor is as before
            result = self.lib.pcclAllReduce(data, data, ctypes.byref(descriptor), self.comm, None)
        if result != TOO_FEW_PEERS:
            self.must(result)
        return result == SUCCESS

    def synchronize(self, tensors, revision):
        """Makes tensors equal on all peers. Returns the revision of the group."""
        infos = (TensorInfo * len(tensors))(*(
            TensorInfo(name.encode(), t.data_ptr(), t.numel(), FLOAT, int(t.is_cuda))
            for name, t in tensors.items()))
        state = SharedState(revision, len(infos), infos)
        self.follow(next(iter(tensors.values())))
        result = CONNECTION_LOST
        while result == CONNECTION_LOST:
            result = self.lib.pcclSynchronizeSharedState(
                self.comm, ctypes.byref(state), ENFORCE_POPULAR, None)
        self.must(result)
        return state.revision

    def close(self):
        self.must(self.lib.pcclDestroyCommunicator(self.comm))


def train(peer, options, device):
    torch.manual_seed(1)  # the first peers have the same weights
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    rate, revision = 0.05, 0
    generator = torch.Generator().manual_seed(os.getpid())  # each peer has other data
    loss = torch.zeros(())
    while peer.let_newcomers_in() < options.peers:
        pass
    for _ in range(options.steps):
        peer.let_newcomers_in()
        weights = {name: p.data for name, p in model.named_parameters()}
        revision = peer.synchronize(weights, revision + 1)
        x = torch.randn(256, 16, generator=generator).to(device)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        model.zero_grad()
        loss.backward()
        gradients = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        if not peer.average(gradients):
            print("alone: the step uses this peer's gradients")
        offset = 0
        for p in model.parameters():
            p.data -= rate * gradients[offset:offset + p.numel()].reshape(p.shape)
            offset += p.numel()
    digest = sum(float(p.detach().double().sum()) for p in model.parameters())
    print(f"device {device}, {options.steps} steps, loss {float(loss):.6f}, weights {digest:.12f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("master", help="address of ccoip-masterd, ADDRESS:PORT")
    parser.add_argument("--library", default="libpccl-shim.so.1")
    parser.add_argument("--peers", type=int, default=2, help="begin when so many have joined")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    peer = Peer(options.library, options.master)
    train(peer, options, torch.device(options.device))
    peer.close()


if __name__ == "__main__":
    main()
