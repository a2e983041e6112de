/* SPDX-License-Identifier: MIT */
#ifndef KRN_REF_H
#define KRN_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/krn.h"

/*
 * A second implementation of what krn.h promises, which shares nothing with the kernels but the
 * enums: integers in 128 bits, floats by way of wider ones and of frexp and ldexp. An element is
 * handled as its bits, in the low end of a uint64_t.
 */

bool ref_is_float(enum krn_dtype t);

/* One element of an array of type t. */
uint64_t ref_get(enum krn_dtype t, const void *array, size_t i);
void ref_set(enum krn_dtype t, void *array, size_t i, uint64_t bits);

/* What krn_reduce, with n >= 2 sources, and krn_divide, by 2 or more, make of one element. */
uint64_t ref_reduce(enum krn_dtype t, enum krn_op op, const uint64_t *elements, unsigned n);
uint64_t ref_divide(enum krn_dtype t, uint64_t element, uint32_t divisor);

/* Between floats of type t and doubles. Rounds to nearest even; NaN as krn.h says. */
double ref_decode(enum krn_dtype t, uint64_t bits);
uint64_t ref_encode(enum krn_dtype t, double value);

/* Values where the behaviour of type t changes: at most REF_MAX_SPECIALS; returns how many. */
#define REF_MAX_SPECIALS 24
unsigned ref_specials(enum krn_dtype t, uint64_t *elements);

/* A seeded generator of 64 random bits. */
uint64_t ref_random(uint64_t *state);

/* ck_assert tells the parent process of each success: too slow for what is asked so often. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s", #condition);                                            \
	} while (0)

#endif
