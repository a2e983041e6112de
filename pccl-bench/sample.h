/* SPDX-License-Identifier: MIT
 *
 * Numbers with known distributions, for the errors of quantization. A number depends only on its
 * seed and its index. Pure.
 */
#ifndef BCH_SAMPLE_H
#define BCH_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "pccl-bench/data.h"

enum bch_distribution {
	BCH_NORMAL,    /* mean 0, variance 1 */
	BCH_UNIFORM,   /* from -1 to 1 */
	BCH_STUDENT_T, /* with 3 degrees of freedom: few numbers are much larger than the others */
};

void bch_sample(float *ret, size_t n, enum bch_distribution d, uint64_t seed);

/* Patterns for quantized all-reduces, like the patterns of data.h. The operand is the normal
 * numbers that peer `rank` contributes to operation number `round`. The result is their sum or
 * average in binary64. */
void bch_normal_operand(float ret[BCH_PATTERN_COUNT], uint32_t rank, uint64_t round);
void bch_normal_result(
	double ret[BCH_PATTERN_COUNT], pcclRedOp_t op, uint32_t n_peers, uint64_t round);
/* Returns the relative L2 error of a buffer that should repeat the pattern. */
double bch_normal_error(const float *buf, size_t count, const double pattern[BCH_PATTERN_COUNT]);

#endif
