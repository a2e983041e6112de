/* SPDX-License-Identifier: MIT
 *
 * An all-reduce of many hosts in one process: the routes of the agents (common/cc_route.h) with
 * their kernels (kernels/qnt.h). The result has the bits that the engines of real hosts compute;
 * tests/engine/quant.c compares them. Pure.
 */
#ifndef BCH_SIMULATE_H
#define BCH_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_route.h"
#include "kernels/qnt.h"

/* What a host encodes. The noise of these encodings must differ. */
enum bch_sim_use { BCH_SIM_OPERAND = 0, BCH_SIM_SUM = 1, BCH_SIM_RESULT = 2 };

struct bch_sim {
	struct cc_route route;
	enum krn_op op;
	uint32_t world_size; /* divides the sum of KRN_AVG */
	bool quantized;      /* false: nothing is encoded, and the format only names the type */
	struct qnt_format sum, result; /* of partial sums and of results */
	/* Writes n numbers of the accumulator type from element `first` on: the operand of the host
	 * at `pos`. */
	void (*operand)(const void *arg, uint32_t pos, uint64_t first, void *acc, size_t n);
	/* Returns the key of the noise of one host. */
	uint64_t (*noise_key)(const void *arg, uint32_t pos, enum bch_sim_use use);
	/* NULL, or a function that is called after a host has encoded n numbers. before: these
	 * numbers. after: the numbers as they are decoded. */
	void (*encoded)(const void *arg, uint32_t pos, enum bch_sim_use use, uint64_t first,
		const void *before, const void *after, size_t n);
	const void *arg;
};

/*
 * Computes one segment of a chunk: n elements from element `first` on. Writes the result, in the
 * accumulator type, to `acc`. Returns 0 or CC_ERR_NOMEM.
 */
int bch_sim_segment(const struct bch_sim *s, uint32_t chunk, uint64_t first, void *acc, size_t n);

/* Returns the bytes of a segment of n elements on the network, with this format of the simulation.
 */
size_t bch_sim_bytes(const struct bch_sim *s, const struct qnt_format *f, size_t n);

#endif
