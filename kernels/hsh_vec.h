/* SPDX-License-Identifier: MIT */
/*
 * The SIMD variants of the hash, written once in the compilers' vector extensions: hsh_avx2.c,
 * hsh_avx512.c and hsh_neon.c include this file after defining
 *
 *   HSH_VEC_ABSORB         the name of the hsh_absorb_fn to define
 *   HSH_VEC_BYTES          the width of a vector
 *   HSH_VEC_UPPER(x) for each word: its upper half in the place of the lower half; the other bits
 *   are not used
 *   HSH_VEC_MULTIPLY(x, y) for each word: the product of the lower halves
 */
#include <string.h>

#include "kernels/hsh_impl.h"

#define INLINE  static inline __attribute__((always_inline))
#define VECTORS ((size_t)(HSH_STRIPE / HSH_VEC_BYTES))

/*
 * The prefetch distance in bytes. The hardware's own prefetch ends at the end of a page. A prefetch
 * beyond the end of the input does no harm.
 */
#define AHEAD 2048

typedef uint32_t v32 __attribute__((vector_size(HSH_VEC_BYTES)));
typedef uint64_t v64 __attribute__((vector_size(HSH_VEC_BYTES)));

INLINE v32 load(const void *p)
{
	v32 x;

	memcpy(&x, p, sizeof(x));
	return x;
}

INLINE v64 product(v32 f)
{
	return (v64)HSH_VEC_MULTIPLY(f, HSH_VEC_UPPER(f));
}

INLINE v64 scramble(v64 x)
{
	const v64 p = (v64){0} + HSH_P;

	x ^= x >> HSH_SCRAMBLE;
	return (v64)HSH_VEC_MULTIPLY(x, p) + ((v64)HSH_VEC_MULTIPLY(HSH_VEC_UPPER(x), p) << 32);
}

INLINE void scramble_all(v64 *a, v64 *b)
{
#pragma GCC unroll 8
	for (size_t i = 0; i < VECTORS; i++) {
		a[i] = scramble(a[i]);
		b[i] = scramble(b[i]);
	}
}

/* Absorbs n stripes of one block. `key` is the first key of these stripes. */
INLINE void absorb_stripes(
	v64 *a, v64 *b, const unsigned char *data, const uint64_t *key, size_t n, v32 seed)
{
	for (; n > 0; n--, data += HSH_STRIPE, key += HSH_LANES) {
		__builtin_prefetch(data + AHEAD);
		__builtin_prefetch(data + AHEAD + 64);
#pragma GCC unroll 8
		for (size_t i = 0; i < VECTORS; i++) {
			const size_t lane = i * HSH_VEC_BYTES / 8;
			v32 w = load(data + i * HSH_VEC_BYTES) + seed;

			a[i] += product(w + load(key + lane));
			b[i] += product(w + load(key + HSH_LANES + lane));
		}
	}
}

void HSH_VEC_ABSORB(struct hsh_state *state, const unsigned char *data, size_t first,
	size_t stripes, uint64_t s)
{
	const v32 seed = (v32)((v64){0} + s);
	v64 a[VECTORS], b[VECTORS];

	memcpy(a, state->a, sizeof(a));
	memcpy(b, state->b, sizeof(b));
	while (stripes > 0) {
		size_t t = first % HSH_BLOCK_STRIPES;
		size_t n = HSH_BLOCK_STRIPES - t < stripes ? HSH_BLOCK_STRIPES - t : stripes;

		if (t == 0)
			scramble_all(a, b);
		absorb_stripes(a, b, data, hsh_keys + t * HSH_LANES, n, seed);
		data += n * HSH_STRIPE;
		first += n;
		stripes -= n;
	}
	memcpy(state->a, a, sizeof(a));
	memcpy(state->b, b, sizeof(b));
}
