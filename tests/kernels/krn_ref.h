/* SPDX-License-Identifier: MIT */
#ifndef KRN_REF_H
#define KRN_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/krn.h"

/*
 * A second implementation of krn.h, which shares only the enums with the kernels. Integers are
 * computed in 128 bits, and floats with wider floats, frexp and ldexp. An element is represented by
 * its bits in the low end of a uint64_t.
 */

bool ref_is_float(enum krn_dtype t);

/* Read and write one element of an array of type t. */
uint64_t ref_get(enum krn_dtype t, const void *array, size_t i);
void ref_set(enum krn_dtype t, void *array, size_t i, uint64_t bits);

/* Compute one element of krn_reduce with n >= 2 sources, and of krn_divide with a divisor >= 2. */
uint64_t ref_reduce(enum krn_dtype t, enum krn_op op, const uint64_t *elements, unsigned n);
uint64_t ref_divide(enum krn_dtype t, uint64_t element, uint32_t divisor);

/* Convert floats of type t to doubles and back. Encoding rounds to nearest even, and handles NaN as
 * krn.h defines. */
double ref_decode(enum krn_dtype t, uint64_t bits);
uint64_t ref_encode(enum krn_dtype t, double value);

/* Writes the values at which the behaviour of type t changes, at most REF_MAX_SPECIALS. Returns
 * their number. */
#define REF_MAX_SPECIALS 24
unsigned ref_specials(enum krn_dtype t, uint64_t *elements);

/* Returns 64 random bits from a seeded generator. */
uint64_t ref_random(uint64_t *state);

/* Checks a condition that is tested very often. ck_assert would report each success to the parent
 * process, which is too slow. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

#endif
