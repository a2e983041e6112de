# SPDX-License-Identifier: MIT
"""The seal of a connection between an agent and a master, as PROTOCOL.md defines it: X25519 (RFC
7748), HKDF and HMAC with SHA-256 (RFC 5869), ChaCha20-Poly1305 (RFC 8439). This code is slow and
only for tests."""

import hashlib
import hmac
import os
import struct

P = (1 << 255) - 19
BASE = (9).to_bytes(32, "little")


def x25519(scalar, point):
    k = int.from_bytes(scalar, "little") & ~7 & (1 << 255) - 1 | 1 << 254
    u = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for bit in range(254, -1, -1):
        b = k >> bit & 1
        if swap ^ b:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = b
        s, d = (x2 + z2) % P, (x2 - z2) % P
        ss, dd = s * s % P, d * d % P
        e = ss - dd
        cross_1, cross_2 = (x3 - z3) * s % P, (x3 + z3) * d % P
        x3, z3 = (cross_1 + cross_2) ** 2 % P, u * (cross_1 - cross_2) ** 2 % P
        x2, z2 = ss * dd % P, e * (ss + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def chacha20(key, nonce, counter, size):
    def rotate(v, n):
        return (v << n | v >> 32 - n) & 0xffffffff

    rounds = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
              (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)) * 10
    out = bytearray()
    while len(out) < size:
        start = struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce)
        v = list(start)
        for a, b, c, d in rounds:
            for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                v[x] = (v[x] + v[y]) & 0xffffffff
                v[z] = rotate(v[z] ^ v[x], n)
        out += struct.pack("<16I", *((p + q) & 0xffffffff for p, q in zip(v, start)))
        counter += 1
    return bytes(out[:size])


def poly1305(key, data):
    r = int.from_bytes(key[:16], "little") & 0x0ffffffc0ffffffc0ffffffc0fffffff
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(key[16:], "little")) & (1 << 128) - 1).to_bytes(16, "little")


def tag_of(key, nonce, sealed):
    text = sealed + bytes(-len(sealed) % 16) + struct.pack("<QQ", 0, len(sealed))
    return poly1305(chacha20(key, nonce, 0, 32), text)


def xor(data, stream):
    return bytes(a ^ b for a, b in zip(data, stream))


class Seal:
    """The seal at the end that connects."""

    def __init__(self):
        self.secret = os.urandom(32)
        self.share = x25519(self.secret, BASE)
        self.other = self.agent_key = None
        self.sent = self.taken = 0

    def agree(self, other):
        self.other = other
        first = mac(bytes(32), x25519(self.secret, other), self.share, other)
        self.out = mac(first, b"pccl seal\0", b"\1")
        self.into = mac(first, self.out, b"pccl seal\0", b"\2")
        self.agent_key = mac(first, self.into, b"pccl seal\0", b"\3")

    def put(self, text):
        nonce = struct.pack("<Q4x", self.sent)
        self.sent += 1
        sealed = xor(text, chacha20(self.out, nonce, 1, len(text)))
        return sealed + tag_of(self.out, nonce, sealed)

    def get(self, sealed):
        nonce = struct.pack("<Q4x", self.taken)
        self.taken += 1
        sealed, tag = sealed[:-16], sealed[-16:]
        if tag != tag_of(self.into, nonce, sealed):
            raise ValueError("not under the seal")
        return xor(sealed, chacha20(self.into, nonce, 1, len(sealed)))


class Identity:
    """The identity of an agent."""

    def __init__(self):
        self.secret = os.urandom(32)
        self.share = x25519(self.secret, BASE)
        self.id = mac(self.share, b"pccl agent\0")[:16]

    def prove(self, seal):
        return mac(x25519(self.secret, seal.other), b"pccl proof\0", seal.agent_key)
