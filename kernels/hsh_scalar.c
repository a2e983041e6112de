/* SPDX-License-Identifier: MIT */
/*
 * The reference, with the names of hsh.h. Within a block it handles one lane after the other, so
 * that the words of the lane stay in registers.
 */
#include <string.h>

#include "kernels/hsh_impl.h"

static uint64_t scramble(uint64_t x)
{
	return (x ^ x >> HSH_SCRAMBLE) * HSH_P;
}

/* lo(f) * hi(f), f = lo and hi # key */
static uint64_t product(uint32_t lo, uint32_t hi, uint64_t key)
{
	return (uint64_t)(lo + (uint32_t)key) * (hi + (uint32_t)(key >> 32));
}

void hsh_absorb_scalar(struct hsh_state *state, const unsigned char *data, size_t first,
	size_t stripes, uint64_t s)
{
	while (stripes > 0) {
		size_t t = first % HSH_BLOCK_STRIPES;
		size_t n = HSH_BLOCK_STRIPES - t < stripes ? HSH_BLOCK_STRIPES - t : stripes;

		for (size_t l = 0; l < HSH_LANES; l++) {
			const uint64_t *key = hsh_keys + t * HSH_LANES + l;
			uint64_t a = t > 0 ? state->a[l] : scramble(state->a[l]);
			uint64_t b = t > 0 ? state->b[l] : scramble(state->b[l]);

			for (size_t i = 0; i < n; i++) {
				uint64_t w;
				uint32_t lo, hi;

				memcpy(&w, data + i * HSH_STRIPE + l * sizeof(w), sizeof(w));
				lo = (uint32_t)w + (uint32_t)s;
				hi = (uint32_t)(w >> 32) + (uint32_t)(s >> 32);
				a += product(lo, hi, key[i * HSH_LANES]);
				b += product(lo, hi, key[(i + 1) * HSH_LANES]);
			}
			state->a[l] = a;
			state->b[l] = b;
		}
		data += n * HSH_STRIPE;
		first += n;
		stripes -= n;
	}
}
