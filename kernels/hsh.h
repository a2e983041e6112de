/* SPDX-License-Identifier: MIT */
#ifndef HSH_H
#define HSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * `simplehash` is a 64-bit hash of bytes. It distinguishes different contents at the speed of
 * memory. It is not a cryptographic hash: a person who knows it can construct contents with the
 * same hash.
 *
 * Pure code: no I/O, no allocation, no locks, no writable state. Every function may be called from
 * any thread. The caller must ensure that nobody writes to the bytes during the call. Functions
 * that use threads or other libraries are in hsh_run.h.
 *
 * The result depends only on the bytes, their number and the seed, and not on the alignment. All
 * instruction sets of all (little-endian) architectures give the same result. It may be stored and
 * sent, because the definition below does not change.
 *
 * Definition
 *
 * Words have 64 bits and are little-endian. Arithmetic is modulo 2^64 unless another modulus is
 * named. lo(x) and hi(x) are the lower and the upper 32 bits of x. x # y adds the lower halves and
 * the upper halves of two words separately, modulo 2^32. The constants are the first 64 bits (P:
 * 32) of the fractional part of the square roots of small primes, with the last bit set:
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
 *  2. The input is padded with zero bytes to whole stripes of 128 bytes: one word for each lane. An
 *     empty input has no stripe. 16 stripes are a block of 2 KiB; the last block may be shorter.
 *     For each block first scramble all words of all lanes: x = (x ^ x >> 31) * P. Then for each
 *     stripe t of the block (0 ... 15) and each lane l, where w is the lane's word of the stripe:
 *
 *       f = w # s # key(16 * t + l);        a[l] += lo(f) * hi(f)
 *       g = w # s # key(16 * (t + 1) + l);  b[l] += lo(g) * hi(g)
 *
 *  3. T = the sum over all lanes of (a[l] + key(304 + l)) * (b[l] + key(320 + l)), factors modulo
 *     2^64, products and sum modulo 2^128.
 *  4. The hash is h after h = mix(s + length in bytes); h = mix(h ^ upper half of T);
 *     h = mix(h ^ lower half of T).
 *
 * Origin: as in XXH3 (Collet), each lane adds up products of 32 bits, and a scrambling step follows
 * each block. The sum of products is NH from UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway). It
 * is computed twice, with keys that are shifted by one stripe (Toeplitz). Step 3 is NH with words
 * of 64 bits. With random keys, two different contents of a block give a lane the same a and b with
 * a probability of 2^-64. The keys here are constants, so this holds only for contents that were
 * not chosen with knowledge of the keys.
 *
 * For a GPU: lanes are independent. Blocks are independent except for the scrambling, so the sums
 * of all blocks can be computed at once and combined afterwards. Leaves are independent.
 */

/* Bytes of a leaf. The last leaf of a tensor may be shorter. */
#define HSH_LEAF ((size_t)65536)

/* The algorithm of leaf hashes. The wires use the same numbers. */
enum hsh_type {
	HSH_SIMPLE = 1, /* hsh_leaf */
	HSH_CRC32C = 2, /* hsh_crc32c_load in hsh_run.h */
};

/* Instruction sets. SCALAR is the reference, and every CPU supports it. */
enum hsh_isa {
	HSH_ISA_SCALAR,
	HSH_ISA_AVX2,
	HSH_ISA_AVX512, /* F */
	HSH_ISA_NEON,
	HSH_ISA_COUNT
};

/* Hashes `bytes` bytes. data may be NULL if bytes is 0, and needs no alignment. No other bytes are
 * read. */
uint64_t hsh_hash(const void *data, size_t bytes, uint64_t seed);

/* Computes a hash of 128 bits. ret_digest[i] is hsh_hash with the seed i + 1. */
void hsh_digest(const void *data, size_t bytes, uint64_t ret_digest[2]);

/* A function that hashes a leaf of 1 to HSH_LEAF bytes. `index` is the number of the leaf in its
 * tensor. */
typedef uint64_t hsh_leaf_fn(const void *data, size_t bytes, uint64_t index);

/* The leaf function of HSH_SIMPLE: hsh_hash with the index as seed. */
hsh_leaf_fn hsh_leaf;

/* Returns the number of leaves of a tensor of `bytes` bytes, which is 0 if the tensor is empty. */
uint64_t hsh_leaf_count(uint64_t bytes);

/*
 * Hashes the leaves `first` to `first` + n - 1 of a tensor of `bytes` bytes into ret_leaves[0] to
 * ret_leaves[n - 1]. Leaves beyond the end of the tensor are skipped. Different threads may hash
 * different ranges.
 */
void hsh_leaves(hsh_leaf_fn *leaf, const void *data, uint64_t bytes, uint64_t first, uint64_t n,
	uint64_t *ret_leaves);

/*
 * Returns the hash of a tensor of `bytes` bytes from its leaf hashes. It is the hsh_hash of the
 * array, with the length of the tensor as seed, for every algorithm of leaf hashes.
 */
uint64_t hsh_tensor(const uint64_t *leaves, uint64_t bytes);

/* Does this build contain the variant, and can this CPU run it? Returns false for a value out of
 * range. */
bool hsh_isa_supported(enum hsh_isa isa);

/* Returns the lower-case name for logs and status, or "unknown" for a value out of range. */
const char *hsh_isa_name(enum hsh_isa isa);

/* Returns the variant that all functions use, which is the best supported one. */
enum hsh_isa hsh_isa_current(void);

/* Does the same as hsh_hash with the given variant, which must be supported. */
uint64_t hsh_hash_isa(enum hsh_isa isa, const void *data, size_t bytes, uint64_t seed);

#endif
