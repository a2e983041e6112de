/* SPDX-License-Identifier: MIT
 *
 * Random numbers for tests.
 */
#ifndef TESTS_CUDA_RANDOM_H
#define TESTS_CUDA_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns 64 random bits from a seeded generator. */
static inline uint64_t random_bits(uint64_t *seed)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline void random_bytes(unsigned char *p, size_t bytes, uint64_t *seed)
{
	uint64_t x;

	for (size_t i = 0; i < bytes; i += sizeof(x)) {
		x = random_bits(seed);
		memcpy(p + i, &x, bytes - i < sizeof(x) ? bytes - i : sizeof(x));
	}
}

#endif
