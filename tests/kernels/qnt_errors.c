/* SPDX-License-Identifier: MIT */
/*
 * Tests what follows from the definition of quantization: how large errors are, and that noise is
 * random. qnt.c tests that all variants do the same as the reference, so one of them is enough
 * here.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/qnt.h"
#include "tests/kernels/krn_ref.h"
#include "tests/kernels/qnt_ref.h"
#include "tests/kernels/qnt_sample.h"
#include "tests/kernels/suites.h"

/* Errors. */

/* Encodes with the chosen variant, and replaces each number by its decoded value. */
static void adopt(const struct qnt_format *f, void *acc, size_t n, const struct qnt_noise *noise)
{
	unsigned char *wire = allocate(qnt_wire_size(f, n));

	qnt_encode(f, wire, acc, n, true, noise);
	free(wire);
}

START_TEST(decoded_numbers_are_encoded_to_themselves)
{
	static const enum flavour flavours[] = {NORMAL, BITS, LARGE, SUBNORMAL, EQUAL, SPARSE};
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 5000 + (uint64_t)_i;
	enum { COUNT = 500 };

	if (families[_i].scheme != QNT_CAST && families[_i].scheme != QNT_MIN_MAX)
		return;
	for (unsigned k = 0; k < count * COUNT_OF(flavours); k++) {
		const struct qnt_format *f = &formats[k / COUNT_OF(flavours)];
		struct sample sample;
		void *again;

		if (f->stochastic)
			continue;
		sample_init(&sample, f, COUNT);
		again = allocate(COUNT * acc_size(f));
		sample_fill(&sample, flavours[k % COUNT_OF(flavours)], &seed);
		memcpy(again, sample.decoded, COUNT * acc_size(f));
		adopt(f, again, COUNT, NULL);
		REQUIRE(memcmp(again, sample.decoded, COUNT * acc_size(f)) == 0);
		free(again);
		sample_free(&sample);
	}
}
END_TEST

/* Returns the largest possible error of x in a segment of QNT_MIN_MAX or QNT_ZERO_POINT. Half a
 * step is for the code. The operations add errors in the last places. */
static double linear_error(const struct sample *s)
{
	double lo = (double)INFINITY, hi = (double)-INFINITY;
	double step, most = s->f.code == QNT_U8 || s->f.code == QNT_I8 ? 255 : 65535;
	double last = s->f.dtype == KRN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
	double least = s->f.dtype == KRN_F64 ? DBL_MIN : (double)FLT_MIN;
	bool zero_point = s->f.scheme == QNT_ZERO_POINT;

	for (size_t i = 0; i < s->n; i++) {
		lo = fmin(lo, number(&s->f, s->acc, i));
		hi = fmax(hi, number(&s->f, s->acc, i));
	}
	lo = zero_point ? fmin(lo, 0) : lo;
	hi = zero_point ? fmax(hi, 0) : hi;
	most -= zero_point ? 1 : 0;
	step = hi / most - lo / most;
	if (zero_point)
		step = fmax(step, least);
	/* Near the largest number, the last code of QNT_ZERO_POINT may be infinite. */
	if (zero_point && hi / 2 - lo / 2 > (s->f.dtype == KRN_F64 ? DBL_MAX : (double)FLT_MAX) / 4)
		step *= 2;
	return step / 2 + 2 * last * most * step + 2 * last * fmax(fabs(lo), fabs(hi)) +
	       least * last;
}

START_TEST(errors_are_half_a_step)
{
	static const enum flavour flavours[] = {
		NORMAL, OFFSET, BITS, LARGE, SUBNORMAL, EQUAL, SPARSE};
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 6000 + (uint64_t)_i;

	if (families[_i].scheme != QNT_MIN_MAX && families[_i].scheme != QNT_ZERO_POINT)
		return;
	for (unsigned k = 0; k < count * COUNT_OF(flavours); k++) {
		struct sample sample;
		double error;

		sample_init(&sample, &formats[k / COUNT_OF(flavours)], 501);
		sample_fill(&sample, flavours[k % COUNT_OF(flavours)], &seed);
		error = linear_error(&sample) * (sample.f.stochastic ? 2 : 1);
		for (size_t i = 0; i < sample.n; i++) {
			double x = number(&sample.f, sample.acc, i);
			double got = number(&sample.f, sample.decoded, i);

			/* Compares halves, because the difference itself may be infinite. */
			if (!(fabs(x / 2 - got / 2) <= error / 2))
				ck_abort_msg("%g became %g, %g too far", x, got, error);
			if (x == 0 && sample.f.scheme == QNT_ZERO_POINT)
				REQUIRE(got == 0 && !signbit(got));
		}
		sample_free(&sample);
	}
}
END_TEST

START_TEST(errors_of_blocks_are_half_of_the_distance_of_values)
{
	/* Half of the greatest distance between neighbouring values, relative to the largest value.
	 */
	static const double errors[QNT_CODE_COUNT] = {[QNT_I8] = 0.5 / 127,
		[QNT_I4] = 0.5 / 7,
		[QNT_N4] = 0.12,
		[QNT_E4M3] = 16.0 / 448,
		[QNT_E5M2] = 4096.0 / 57344};
	static const enum flavour flavours[] = {NORMAL, OFFSET, EQUAL, SPARSE, LARGE};
	uint64_t seed = 7000 + (uint64_t)_i;
	enum { COUNT = 320 };

	for (unsigned k = 0; k < 4 * COUNT_OF(flavours); k++) {
		struct qnt_format f = block_format(families[_i].code, 32, QNT_HINT_NONE);
		/* The scale is rounded up, by up to one part in 2^10 or 2^7. */
		double rounding = k % 2 > 0 ? 0x1p-7 : 0x1p-10;
		double most = errors[f.code] * (1.0001 + rounding);
		struct sample sample;

		if (families[_i].scheme != QNT_BLOCK)
			return;
		f.bf16_scale = k % 2 > 0;
		f.dtype = k / 2 % 2 > 0 ? KRN_F64 : KRN_F32;
		if (flavours[k / 4] == LARGE)
			most += rounding;
		sample_init(&sample, &f, COUNT);
		sample_fill(&sample, flavours[k / 4], &seed);
		for (size_t i = 0; i < COUNT; i++) {
			double largest = 0;
			double error = number(&f, sample.acc, i) - number(&f, sample.decoded, i);

			for (size_t j = i - i % 32; j < i - i % 32 + 32; j++)
				largest = fmax(largest, fabs(number(&f, sample.acc, j)));
			REQUIRE(fabs(error / 2) <= most * largest / 2);
		}
		sample_free(&sample);
	}
}
END_TEST

/* Numbers of any magnitude keep their relative accuracy. */
START_TEST(magnitudes_do_not_matter)
{
	static const double errors[QNT_CODE_COUNT] = {[QNT_I8] = 0.0069,
		[QNT_I4] = 0.125,
		[QNT_N4] = 0.103,
		[QNT_E4M3] = 0.0275,
		[QNT_E5M2] = 0.055};
	enum { COUNT = 8192 };
	static float x[COUNT], got[COUNT];
	uint64_t seed = 8000;

	for (int e = -115; e < 126; e += 20) {
		struct qnt_format f = block_format(families[_i].code, 128, QNT_HINT_NONE);
		double error = 0, all = 0;

		if (families[_i].scheme != QNT_BLOCK)
			return;
		for (size_t i = 0; i < COUNT; i++)
			x[i] = (float)ldexp(random_normal(&seed), e);
		memcpy(got, x, sizeof(x));
		adopt(&f, got, COUNT, NULL);
		for (size_t i = 0; i < COUNT; i++) {
			error += pow(ldexp((double)got[i] - (double)x[i], -e), 2);
			all += pow(ldexp((double)x[i], -e), 2);
		}
		REQUIRE(sqrt(error / all) < errors[f.code]);
	}
}
END_TEST

/* One number of 1e4 among normal ones spoils the accuracy of its block only. */
START_TEST(outlier_affects_its_block_only)
{
	enum { COUNT = 4096, BLOCK = 256, OUTLIER = 1000 };
	static float x[COUNT], got[COUNT], without[COUNT];
	const struct qnt_format f = block_format(QNT_I8, BLOCK, QNT_HINT_NONE);
	uint64_t seed = 9000;
	double error = 0, error_without = 0, lost = 0;

	for (size_t i = 0; i < COUNT; i++)
		x[i] = (float)random_normal(&seed);
	memcpy(without, x, sizeof(x));
	adopt(&f, without, COUNT, NULL);
	x[OUTLIER] = 1e4f;
	memcpy(got, x, sizeof(x));
	adopt(&f, got, COUNT, NULL);
	for (size_t i = 0; i < COUNT; i++) {
		bool apart = i / BLOCK != OUTLIER / BLOCK;

		if (apart) {
			error += pow((double)(got[i] - x[i]), 2);
			error_without += pow((double)(without[i] - x[i]), 2);
		} else if (i != OUTLIER) {
			lost += pow((double)(got[i] - x[i]), 2);
		}
	}
	ck_assert(fabs(sqrt(error) - sqrt(error_without)) < 1e-3 * sqrt(error_without));
	ck_assert(lost > 100 * error);
	ck_assert(fabsf(got[OUTLIER] - 1e4f) < 20);
}
END_TEST

/* Noise. */

START_TEST(noise_has_its_values)
{
	static const struct {
		uint64_t key, index;
		int32_t units; /* of 2^-25 */
	} noise[] = {
		{0, 0, 5400485},
		{0, 1, -15427397},
		{0, UINT64_C(0xffffffff), -14358035},
		{0, UINT64_C(0x100000000), 11751825},
		{1, 0, -1051893},
		{UINT64_C(0x0123456789abcdef), UINT64_C(0x123456789), 7034279},
		{UINT64_MAX, UINT64_MAX, 9623899},
	};
	uint64_t seed = 12000;

	for (size_t i = 0; i < COUNT_OF(noise); i++)
		ck_assert_float_eq(qnt_noise_at(noise[i].key, noise[i].index),
			(float)noise[i].units * 0x1p-25f);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t key = ref_random(&seed);
		uint64_t index = ref_random(&seed) >> ref_random(&seed) % 64;

		REQUIRE((double)qnt_noise_at(key, index) == ref_qnt_noise(key, index));
	}
}
END_TEST

/* Tests pairs of indexes, or of keys, that differ in one bit. Each of 16 ranges of the two noise
 * values must contain its part of the pairs. */
START_TEST(noise_is_uniform)
{
	for (unsigned bit = 0; bit < 128; bit++) {
		const uint64_t flip = UINT64_C(1) << bit % 64;
		unsigned parts[16] = {0};
		double n = 0, chi2 = 0;

		for (uint64_t i = 0; i < 1 << 17; i++) {
			uint64_t key = bit < 64 ? 7 : i, index = bit < 64 ? i : 3;
			float u = qnt_noise_at(key, index);
			float v = bit < 64 ? qnt_noise_at(key, index ^ flip)
					   : qnt_noise_at(key ^ flip, index);

			if (i & flip)
				continue;
			parts[(unsigned)((u + 0.5f) * 4) * 4 + (unsigned)((v + 0.5f) * 4)]++;
			n++;
		}
		for (size_t i = 0; i < 16; i++)
			chi2 += pow(parts[i] - n / 16, 2) / (n / 16);
		/* With 15 degrees of freedom, chi2 exceeds 60 in one of three million cases. */
		if (chi2 > 60)
			ck_abort_msg("bit %u: %g", bit, chi2);
	}
}
END_TEST

/* Rounds the same segment with many keys. The mean must be the original number. */
START_TEST(stochastic_rounding_has_no_bias)
{
	enum { COUNT = 65, ROUNDS = 2000 };
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 13000 + (uint64_t)_i;

	for (unsigned k = 0; k < count; k++) {
		struct sample sample;
		double sum[COUNT] = {0}, squares[COUNT] = {0};
		void *acc;

		if (!formats[k].stochastic || formats[k].block > 32 ||
			formats[k].hint != QNT_HINT_NONE || formats[k].dtype < KRN_F32)
			continue;
		sample_init(&sample, &formats[k], COUNT);
		sample_fill(&sample, NORMAL, &seed);
		acc = allocate(COUNT * acc_size(&sample.f));
		for (unsigned round = 0; round < ROUNDS; round++) {
			const struct qnt_noise noise = {ref_random(&seed), round};

			memcpy(acc, sample.acc, COUNT * acc_size(&sample.f));
			adopt(&sample.f, acc, COUNT, &noise);
			for (size_t i = 0; i < COUNT; i++) {
				double error = number(&sample.f, acc, i) -
					       number(&sample.f, sample.acc, i);

				sum[i] += error;
				squares[i] += error * error;
			}
		}
		for (size_t i = 0; i < COUNT; i++) {
			/* The standard deviation of the mean. The rounding of fp32 adds up to 1e-6.
			 */
			double sigma = sqrt(squares[i]) / ROUNDS;

			if (!(fabs(sum[i] / ROUNDS) <= 5 * sigma + 1e-6))
				ck_abort_msg("element %zu: bias %g, sigma %g", i, sum[i] / ROUNDS,
					sigma);
		}
		free(acc);
		sample_free(&sample);
	}
}
END_TEST

#define HOSTS ((size_t)16)
#define PART  ((size_t)1 << 18)

/* Returns the error of a sum over hosts that exchange directly: the contributions x are encoded
 * with `in`, added in fp32, and the result is encoded with `out`. */
static double sum_error(const struct qnt_format *in, const struct qnt_format *out, float *x)
{
	float *sum = allocate(PART * sizeof(float));
	unsigned char *wire = allocate(qnt_wire_size(in, PART));
	double error = 0, all = 0;

	memset(sum, 0, PART * sizeof(float));
	for (size_t host = 0; host < HOSTS; host++) {
		qnt_encode(in, wire, x + host * PART, PART, false, NULL);
		qnt_decode_reduce(in, KRN_SUM, sum, wire, PART);
	}
	adopt(out, sum, PART, NULL);
	for (size_t i = 0; i < PART; i++) {
		double exact = 0;

		for (size_t host = 0; host < HOSTS; host++)
			exact += (double)x[host * PART + i];
		error += pow((double)sum[i] - exact, 2);
		all += exact * exact;
	}
	free(wire);
	free(sum);
	return sqrt(error / all);
}

START_TEST(sums_are_accurate)
{
	const struct qnt_format i8 = block_format(QNT_I8, 256, QNT_HINT_NONE);
	const struct qnt_format i4 = block_format(QNT_I4, 32, QNT_HINT_NONE);
	const struct qnt_format i4_hint = block_format(QNT_I4, 32, QNT_HINT_NORMAL);
	const struct qnt_format n4 = block_format(QNT_N4, 32, QNT_HINT_NORMAL);
	const struct qnt_format n4_long = block_format(QNT_N4, 1024, QNT_HINT_NORMAL);
	const struct qnt_format i4_long = block_format(QNT_I4, 1024, QNT_HINT_NONE);
	const struct {
		const char *name;
		const struct qnt_format *in, *out;
		double most;
	} rows[] = {
		{"int8/256", &i8, &i8, 0.0100},
		{"int4/32, no hint", &i4, &i4, 0.138},
		{"int4/32, normal", &i4_hint, &i4_hint, 0.1345},
		{"N4/32, normal", &n4, &n4, 0.1165},
		{"N4/32 in, int8/256 out", &n4, &i8, 0.0830},
		{"N4/1024, normal", &n4_long, &n4_long, 0.141},
		{"int4/1024, no hint", &i4_long, &i4_long, 0.204},
	};

	float *x = allocate(HOSTS * PART * sizeof(float));
	uint64_t seed = 14000;

	for (size_t i = 0; i < HOSTS * PART; i++)
		x[i] = (float)random_normal(&seed);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		double error = sum_error(rows[i].in, rows[i].out, x);

		printf("qnt: error of a sum, %s: %.5f\n", rows[i].name, error);
		ck_assert(error <= rows[i].most);
	}
	free(x);
}
END_TEST

Suite *qnt_errors_suite(void)
{
	Suite *suite = suite_create("qnt_errors");
	TCase *error = tcase_create("error");
	TCase *noise = tcase_create("noise");

	tcase_set_timeout(error, 120);
	tcase_add_loop_test(error, decoded_numbers_are_encoded_to_themselves, 0, FAMILIES);
	tcase_add_loop_test(error, errors_are_half_a_step, 0, FAMILIES);
	tcase_add_loop_test(
		error, errors_of_blocks_are_half_of_the_distance_of_values, 0, FAMILIES);
	tcase_add_loop_test(error, magnitudes_do_not_matter, 0, FAMILIES);
	tcase_add_test(error, outlier_affects_its_block_only);
	tcase_add_test(error, sums_are_accurate);
	suite_add_tcase(suite, error);

	tcase_set_timeout(noise, 120);
	tcase_add_test(noise, noise_has_its_values);
	tcase_add_test(noise, noise_is_uniform);
	tcase_add_loop_test(noise, stochastic_rounding_has_no_bias, 0, FAMILIES);
	suite_add_tcase(suite, noise);
	return suite;
}
