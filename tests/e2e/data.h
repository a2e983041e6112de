/* SPDX-License-Identifier: MIT
 *
 * The contributions of the peers in the whole-system tests, and the expected results. Element i of
 * peer `id` follows from the seed alone, so each peer can compute the contributions of all others.
 */
#ifndef TESTS_E2E_DATA_H
#define TESTS_E2E_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pccl.h"

#define DATA_IDS_MAX 64u

/* An operand. Floating-point values are +-[0.5, 2), so that neither sums nor products of a few
 * values leave the range of any type. Integers may have any value. */
struct data_spec {
	pcclDataType_t type;
	size_t count;
	uint64_t seed;
	bool special; /* a quarter of floating-point values: NaN, infinities, zeros, subnormals,
			 limits */
};

/* Parses "f32" and so on. Returns -1 if there is no such type or operation. */
int data_type_parse(const char *name);
int data_op_parse(const char *name);
/* Returns the size of an element in bytes. */
size_t data_type_size(pcclDataType_t type);

/* Writes the contribution of peer `id`. */
void data_fill(void *buf, const struct data_spec *s, uint32_t id);
/* Returns the index of the first element that differs from what data_fill writes, or -1. */
int64_t data_differs(const void *buf, const struct data_spec *s, uint32_t id);

/* Returns the index of the first element of a result that cannot come from the contributions of
 * these peers, or -1. Integers, minima and maxima must be exact. Sums, averages and products must
 * be within the total error that a rounding after each contribution can cause. Special
 * floating-point values are not checked. */
int64_t data_wrong(const void *result, const struct data_spec *s, pcclRedOp_t op,
	const uint32_t *ids, uint32_t n_ids);

/* Returns the relative error of a floating-point result, in the L2 norm. */
double data_error(const void *result, const struct data_spec *s, pcclRedOp_t op,
	const uint32_t *ids, uint32_t n_ids);

/* Returns a hash: equal bytes give equal numbers. */
uint64_t data_hash(const void *buf, size_t len);

#endif
