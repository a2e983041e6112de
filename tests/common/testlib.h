/* SPDX-License-Identifier: MIT
 *
 * Code that the unit tests share: a seeded generator, so that every failure can be repeated. The
 * seed is 1, or the number in the environment variable TEST_SEED.
 */
#ifndef TESTLIB_H
#define TESTLIB_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

struct tl_rng {
	uint64_t s;
};

static inline struct tl_rng tl_rng_new(uint64_t salt)
{
	const char *text = getenv("TEST_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;

	return (struct tl_rng){.s = seed * UINT64_C(0x9e3779b97f4a7c15) + salt};
}

static inline uint64_t tl_u64(struct tl_rng *r) /* splitmix64 */
{
	uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Returns a random number from lo to hi. */
static inline uint64_t tl_range(struct tl_rng *r, uint64_t lo, uint64_t hi)
{
	uint64_t n = hi - lo + 1;

	return n == 0 ? tl_u64(r) : lo + tl_u64(r) % n;
}

/* Returns a random number whose length in bits is uniform, so that small and large numbers are
 * equally frequent. */
static inline uint64_t tl_magnitude(struct tl_rng *r, unsigned max_bits)
{
	unsigned bits = (unsigned)tl_range(r, 0, max_bits);

	return bits == 0 ? 0 : tl_u64(r) >> (64 - bits);
}

static inline int tl_run(Suite *s)
{
	SRunner *sr = srunner_create(s);
	int failed;

	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
