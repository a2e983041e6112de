/* SPDX-License-Identifier: MIT */
#include "pccl-bench/sample.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586

/* Returns a number in (0, 1). */
static double unit(uint64_t seed, uint64_t index)
{
	uint64_t r = bch_mix(bch_mix(seed + 1) + index * UINT64_C(0x9e3779b97f4a7c15));

	return ((double)(r >> 12) + 0.5) * 0x1p-52;
}

/* The method of Box and Muller. */
static double normal(uint64_t seed, uint64_t index)
{
	double radius = sqrt(-2 * log(unit(seed, 2 * index)));

	return radius * cos(TWO_PI * unit(seed, 2 * index + 1));
}

static double student_t(uint64_t seed, uint64_t index)
{
	double squares = 0;

	for (uint64_t k = 1; k <= 3; k++)
		squares += pow(normal(seed, 4 * index + k), 2);
	return normal(seed, 4 * index) / sqrt(squares / 3);
}

void bch_sample(float *ret, size_t n, enum bch_distribution d, uint64_t seed)
{
	for (size_t i = 0; i < n; i++) {
		switch (d) {
		case BCH_NORMAL:
			ret[i] = (float)normal(seed, i);
			break;
		case BCH_UNIFORM:
			ret[i] = (float)(2 * unit(seed, i) - 1);
			break;
		case BCH_STUDENT_T:
			ret[i] = (float)student_t(seed, i);
			break;
		}
	}
}

void bch_normal_operand(float ret[BCH_PATTERN_COUNT], uint32_t rank, uint64_t round)
{
	bch_sample(ret, BCH_PATTERN_COUNT, BCH_NORMAL, bch_mix(round) + rank);
}

void bch_normal_result(
	double ret[BCH_PATTERN_COUNT], pcclRedOp_t op, uint32_t n_peers, uint64_t round)
{
	float operand[BCH_PATTERN_COUNT];

	memset(ret, 0, BCH_PATTERN_COUNT * sizeof *ret);
	for (uint32_t rank = 0; rank < n_peers; rank++) {
		bch_normal_operand(operand, rank, round);
		for (size_t i = 0; i < BCH_PATTERN_COUNT; i++)
			ret[i] += (double)operand[i];
	}
	for (size_t i = 0; op == pcclAvg && i < BCH_PATTERN_COUNT; i++)
		ret[i] /= n_peers;
}

double bch_normal_error(const float *buf, size_t count, const double pattern[BCH_PATTERN_COUNT])
{
	double error = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		double exact = pattern[i % BCH_PATTERN_COUNT];

		error += pow((double)buf[i] - exact, 2);
		all += pow(exact, 2);
	}
	return sqrt(error / all);
}
