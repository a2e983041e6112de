/* SPDX-License-Identifier: MIT */
#ifndef HSH_H
#define HSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * `simplehash`: a 64-bit hash of bytes that tells equal contents from different ones at the speed
 * of memory. It is no cryptographic hash: who knows it can make contents that collide.
 *
 * Pure code: no I/O, no allocation, no locks, no writable state. Every function may be called from
 * any thread; the caller sees to it that nobody writes to the bytes meanwhile. What threads and
 * other libraries add is in hsh_run.h.
 *
 * The result depends on the bytes, their number and the seed alone, never on their alignment, and
 * is the same by all instruction sets of all (little-endian) architectures. It may be stored and
 * sent: the definition below does not change.
 *
 * Definition
 *
 * Words are 64 bits, little endian, arithmetic is modulo 2^64 unless another modulus is named;
 * lo(x) and hi(x) are the lower and the upper 32 bits of x, and x # y adds lo and hi of two words
 * separately, modulo 2^32. The constants are the first 64 bits (P: 32) of the fractional part of
 * the square roots of small primes, with the last bit set:
 *
 *   M1 = 0xbb67ae8584caa73b (3)    M2 = 0x6a09e667f3bcc909 (2)    G = 0x3c6ef372fe94f82b (5)
 *   S  = 0x510e527fade682d1 (11)   P  = 0x9b05688d (13)
 *
 *   mix(x): x ^= x >> 32; x *= M1; x ^= x >> 28; x *= M2; x ^= x >> 29
 *   key(i) = mix((i + 1) * G), for i = 0 ... 335
 *   s = mix(seed + S)
 *
 *  1. There are 16 lanes l, each with two words, which start as a[l] = key(272 + l) and
 *     b[l] = key(288 + l).
 *  2. The input is padded with zero bytes, none if it is empty, to whole stripes of 128 bytes: one
 *     word for each lane. 16 stripes are a block of 2 KiB; the last block may be shorter. For each
 *     block first scramble all words of all lanes: x = (x ^ x >> 31) * P. Then for each stripe t
 *     of it (0 ... 15) and each lane l, with w the lane's word of the stripe:
 *
 *       f = w # s # key(16 * t + l);        a[l] += lo(f) * hi(f)
 *       g = w # s # key(16 * (t + 1) + l);  b[l] += lo(g) * hi(g)
 *
 *  3. T = the sum over all lanes of (a[l] + key(304 + l)) * (b[l] + key(320 + l)), factors modulo
 *     2^64, products and sum modulo 2^128.
 *  4. The hash is h after h = mix(s + length in bytes); h = mix(h ^ upper half of T);
 *     h = mix(h ^ lower half of T).
 *
 * Where it comes from: that lanes add up products of 32 bits, with a scrambling step after each
 * block, is the construction known from XXH3 (Collet). The sum of products is that of NH from UMAC
 * (Black, Halevi, Krawczyk, Krovetz, Rogaway), run twice with keys that are shifted by one stripe
 * (Toeplitz), and step 3 is NH again with words of 64 bits: were the keys random, two given
 * different contents of a block would give a lane the same a and b with a chance of 2^-64. The
 * keys being constants, this holds for contents that were not chosen with a view to them.
 *
 * For a GPU: lanes are independent, blocks are so but for the scrambling (the sums of all blocks
 * can be had at once, and be chained afterwards), and nothing reaches beyond a leaf.
 */

/* Bytes that a leaf hash covers; a tensor's last leaf may be shorter. */
#define HSH_LEAF ((size_t)65536)

/* What a leaf hash is made by. The numbers are those of the wire. */
enum hsh_type {
	HSH_SIMPLE = 1, /* hsh_leaf */
	HSH_CRC32C = 2, /* hsh_crc32c_load in hsh_run.h */
};

/* SCALAR is the reference and is supported everywhere. */
enum hsh_isa {
	HSH_ISA_SCALAR,
	HSH_ISA_AVX2,
	HSH_ISA_AVX512, /* F */
	HSH_ISA_NEON,
	HSH_ISA_COUNT
};

/* data may be NULL if bytes is 0, and needs no alignment; nothing beyond it is read. */
uint64_t hsh_hash(const void *data, size_t bytes, uint64_t seed);

/* 128 bits: ret_digest[i] is hsh_hash with the seed i + 1. */
void hsh_digest(const void *data, size_t bytes, uint64_t ret_digest[2]);

/* The hash of a leaf, 1 to HSH_LEAF bytes; index is its number within its tensor. */
typedef uint64_t hsh_leaf_fn(const void *data, size_t bytes, uint64_t index);

/* That of HSH_SIMPLE: hsh_hash with the index as seed. */
hsh_leaf_fn hsh_leaf;

/* Leaves of a tensor of so many bytes: 0 if it is empty. */
uint64_t hsh_leaf_count(uint64_t bytes);

/*
 * Hashes n leaves, from number first on, of the tensor of so many bytes at data into ret_leaves[0]
 * to ret_leaves[n - 1]. Leaves that are not there are left out. Different ranges may be hashed by
 * different threads.
 */
void hsh_leaves(hsh_leaf_fn *leaf, const void *data, uint64_t bytes, uint64_t first, uint64_t n,
	uint64_t *ret_leaves);

/*
 * The hash of a tensor of so many bytes from the hashes of all its leaves: hsh_hash of the array,
 * whatever the leaves were hashed by, with the length of the tensor as seed.
 */
uint64_t hsh_tensor(const uint64_t *leaves, uint64_t bytes);

/* Whether this build has the variant and this CPU can run it. False for a value out of range. */
bool hsh_isa_supported(enum hsh_isa isa);

/* Lower-case name, for logs and status; "unknown" for a value out of range. */
const char *hsh_isa_name(enum hsh_isa isa);

/* The variant that all functions use: the best that is supported. */
enum hsh_isa hsh_isa_current(void);

/* As hsh_hash, by the given variant, which must be supported. */
uint64_t hsh_hash_isa(enum hsh_isa isa, const void *data, size_t bytes, uint64_t seed);

#endif
