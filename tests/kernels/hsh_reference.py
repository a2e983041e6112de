#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second implementation of the hash of kernels/hsh.h: plain, slow, and written only from its
definition.

Without an argument this program computes the hashes and tests that tests/kernels/hsh_vectors.h
has the same ones. With --write this program writes hsh_vectors.h again.
"""
import os
import sys

MASK32 = 2**32 - 1
MASK64 = 2**64 - 1
MASK128 = 2**128 - 1

M1 = 0xBB67AE8584CAA73B
M2 = 0x6A09E667F3BCC909
G = 0x3C6EF372FE94F82B
S = 0x510E527FADE682D1
P = 0x9B05688D

LEAF = 65536
LENGTHS = (
    list(range(0, 18)) + [31, 32, 33, 63, 64, 65, 120, 127, 128, 129, 136, 255, 256, 257, 1000]
    + [1024, 1920, 2047, 2048, 2049, 2176, 4095, 4096, 4097, 6143, 10000, 65535, 65536]
    + [65537, 200003]
)
SEEDS = [0, 1, 0x0123456789ABCDEF, MASK64]


def mix(x):
    x ^= x >> 32
    x = x * M1 & MASK64
    x ^= x >> 28
    x = x * M2 & MASK64
    return x ^ x >> 29


KEY = [mix((i + 1) * G & MASK64) for i in range(336)]


def add_halves(x, y):
    lower = (x + y) & MASK32
    upper = ((x >> 32) + (y >> 32)) & MASK32
    return upper << 32 | lower


def product(x):
    return (x & MASK32) * (x >> 32)


def simplehash(data, seed):
    s = mix((seed + S) & MASK64)
    a = [KEY[272 + lane] for lane in range(16)]
    b = [KEY[288 + lane] for lane in range(16)]
    padded = data + bytes(-len(data) % 128)
    for block in range(0, len(padded), 2048):
        a = [(x ^ x >> 31) * P & MASK64 for x in a]
        b = [(x ^ x >> 31) * P & MASK64 for x in b]
        for t in range(len(padded[block:block + 2048]) // 128):
            for lane in range(16):
                at = block + 128 * t + 8 * lane
                w = int.from_bytes(padded[at:at + 8], "little")
                f = add_halves(add_halves(w, s), KEY[16 * t + lane])
                g = add_halves(add_halves(w, s), KEY[16 * (t + 1) + lane])
                a[lane] = a[lane] + product(f) & MASK64
                b[lane] = b[lane] + product(g) & MASK64
    total = 0
    for lane in range(16):
        total += (a[lane] + KEY[304 + lane] & MASK64) * (b[lane] + KEY[320 + lane] & MASK64)
    total &= MASK128
    h = mix(s + len(data) & MASK64)
    h = mix(h ^ total >> 64)
    return mix(h ^ total & MASK64)


def tensor_hash(data):
    leaves = [simplehash(data[at:at + LEAF], at // LEAF) for at in range(0, len(data), LEAF)]
    return simplehash(b"".join(h.to_bytes(8, "little") for h in leaves), len(data))


def pattern(n):
    """Returns the input of the vectors: byte i is the upper byte of i * 0x9e3779b1 modulo 2^32."""
    return bytes((i * 0x9E3779B1 & MASK32) >> 24 for i in range(n))


def vectors():
    data = pattern(max(LENGTHS))
    yield "/* SPDX-License-Identifier: MIT */"
    yield "/* Written by hsh_reference.py --write; the input is what its pattern() gives. */"
    yield "#ifndef HSH_VECTORS_H"
    yield "#define HSH_VECTORS_H"
    yield ""
    yield "#include <stddef.h>"
    yield "#include <stdint.h>"
    yield ""
    yield "/* clang-format off */"
    yield "static const struct {"
    yield "\tsize_t bytes;"
    yield "\tuint64_t seed, hash;"
    yield "} hsh_vectors[] = {"
    for n in LENGTHS:
        for seed in SEEDS:
            h = simplehash(data[:n], seed)
            yield f"\t{{{n}, UINT64_C(0x{seed:x}), UINT64_C(0x{h:016x})}},"
    yield "};"
    yield ""
    yield "static const struct {"
    yield "\tsize_t bytes;"
    yield "\tuint64_t hash; /* of a tensor */"
    yield "} hsh_tensor_vectors[] = {"
    for n in [0, 1, 65535, 65536, 65537, 131072, 200003]:
        yield f"\t{{{n}, UINT64_C(0x{tensor_hash(data[:n]):016x})}},"
    yield "};"
    yield "/* clang-format on */"
    yield ""
    yield "#endif"


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hsh_vectors.h")
    text = "".join(line + "\n" for line in vectors())
    if sys.argv[1:] == ["--write"]:
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        return 0
    with open(path, encoding="ascii") as f:
        same = f.read() == text
    print("1 passed, 0 failed" if same else "hsh_vectors.h differs\n0 passed, 1 failed")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
