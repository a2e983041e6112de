/* SPDX-License-Identifier: MIT */
/* Measures the speed of quantization on one thread, in GB/s of numbers of the accumulator type, for
 * one segment of normal numbers. Usage: qnt_bench [Ki elements [variant]]. Without an argument it
 * measures segments of 64 Ki elements.
 *
 * "adopt" is encoding that also replaces each number by its decoded value. "reduce" is decoding and
 * adding.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/qnt.h"

#define NS_PER_CELL UINT64_C(20000000)

static const struct {
	const char *name;
	struct qnt_format format;
} rows[] = {
	{"cast f16", {.dtype = KRN_F32, .scheme = QNT_CAST, .code = QNT_F16}},
	{"cast bf16", {.dtype = KRN_F32, .scheme = QNT_CAST, .code = QNT_BF16}},
	{"min-max u8", {.dtype = KRN_F32, .scheme = QNT_MIN_MAX, .code = QNT_U8}},
	{"min-max i16", {.dtype = KRN_F32, .scheme = QNT_MIN_MAX, .code = QNT_I16}},
	{"min-max u8 stochastic",
		{.dtype = KRN_F32, .scheme = QNT_MIN_MAX, .code = QNT_U8, .stochastic = true}},
	{"zero-point u8", {.dtype = KRN_F32, .scheme = QNT_ZERO_POINT, .code = QNT_U8}},
	{"zero-point i16", {.dtype = KRN_F32, .scheme = QNT_ZERO_POINT, .code = QNT_I16}},
	{"int8/256", {KRN_F32, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NONE, false}},
	{"int8/32", {KRN_F32, QNT_BLOCK, QNT_I8, 32, false, QNT_HINT_NONE, false}},
	{"int8/256 stochastic", {KRN_F32, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NONE, true}},
	{"int4/32", {KRN_F32, QNT_BLOCK, QNT_I4, 32, false, QNT_HINT_NONE, false}},
	{"int4/32 bf16 normal", {KRN_F32, QNT_BLOCK, QNT_I4, 32, true, QNT_HINT_NORMAL, false}},
	{"int4/256", {KRN_F32, QNT_BLOCK, QNT_I4, 256, false, QNT_HINT_NONE, false}},
	{"int4/32 stochastic", {KRN_F32, QNT_BLOCK, QNT_I4, 32, false, QNT_HINT_NONE, true}},
	{"N4/32 normal", {KRN_F32, QNT_BLOCK, QNT_N4, 32, false, QNT_HINT_NORMAL, false}},
	{"E4M3/256", {KRN_F32, QNT_BLOCK, QNT_E4M3, 256, false, QNT_HINT_NONE, false}},
	{"E5M2/256", {KRN_F32, QNT_BLOCK, QNT_E5M2, 256, false, QNT_HINT_NONE, false}},
	{"fp64 min-max u8", {.dtype = KRN_F64, .scheme = QNT_MIN_MAX, .code = QNT_U8}},
	{"fp64 int8/256", {KRN_F64, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NONE, false}},
};

enum column { ENCODE, ADOPT, DECODE, REDUCE, COLUMN_COUNT };
static const char *const columns[COLUMN_COUNT] = {"encode", "adopt", "decode", "reduce"};

struct arrays {
	size_t n;
	void *numbers, *acc; /* of fp32 or fp64 */
	unsigned char *wire;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Returns a random number: a sum of uniform numbers is nearly normal. */
static double number(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		sum += (double)(*state >> 32) * 0x1p-32;
	}
	return sum;
}

static void fill(const struct arrays *arrays, const struct qnt_format *f)
{
	size_t size = arrays->n * krn_dtype_size(qnt_acc_dtype(f));
	uint64_t state = 1;

	for (size_t i = 0; i < arrays->n; i++) {
		if (f->dtype == KRN_F64)
			((double *)arrays->numbers)[i] = number(&state);
		else
			((float *)arrays->numbers)[i] = (float)number(&state);
	}
	qnt_encode(f, arrays->wire, arrays->numbers, arrays->n, false, &(struct qnt_noise){1, 0});
	memset(arrays->acc, 0, size);
}

static void run_once(const struct arrays *arrays, enum krn_isa isa, const struct qnt_format *f,
	enum column column)
{
	const struct qnt_noise noise = {1, 0};

	if (column == ENCODE || column == ADOPT)
		qnt_encode_isa(
			isa, f, arrays->wire, arrays->numbers, arrays->n, column == ADOPT, &noise);
	else if (column == DECODE)
		qnt_decode_isa(isa, f, arrays->acc, arrays->wire, arrays->n);
	else
		qnt_decode_reduce_isa(isa, f, KRN_SUM, arrays->acc, arrays->wire, arrays->n);
}

/* Returns the speed of the fastest of many runs: disturbances only make a run slower. */
static double measure(const struct arrays *arrays, enum krn_isa isa, const struct qnt_format *f,
	enum column column)
{
	size_t bytes = arrays->n * krn_dtype_size(qnt_acc_dtype(f));
	uint64_t best = UINT64_MAX;
	uint64_t end = now_ns() + NS_PER_CELL;
	uint64_t after;

	fill(arrays, f);
	run_once(arrays, isa, f, column);
	do {
		uint64_t before = now_ns();

		run_once(arrays, isa, f, column);
		after = now_ns();
		if (after - before < best)
			best = after - before;
	} while (after < end);
	return (double)bytes / (double)(best > 0 ? best : 1);
}

static void print_variant(const struct arrays *arrays, enum krn_isa isa)
{
	printf("%-22s", krn_isa_name(isa));
	for (int c = 0; c < COLUMN_COUNT; c++)
		printf(" %7s", columns[c]);
	printf("\n");
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		printf("%-22s", rows[r].name);
		for (int c = 0; c < COLUMN_COUNT; c++)
			printf(" %7.2f", measure(arrays, isa, &rows[r].format, (enum column)c));
		printf("\n");
	}
}

/* only: the variant to measure, or NULL for all that this CPU supports. */
static int bench(size_t n, const char *only)
{
	struct arrays arrays = {.n = n,
		.numbers = malloc(n * sizeof(double)),
		.acc = malloc(n * sizeof(double)),
		.wire = malloc(8 * n)}; /* no format needs more */
	int rc = -1;

	if (!arrays.numbers || !arrays.acc || !arrays.wire) {
		fprintf(stderr, "qnt_bench: no memory for %zu elements\n", n);
		goto err_free;
	}
	printf("%zu elements, GB/s\n", n);
	for (int isa = 0; isa < KRN_ISA_COUNT; isa++) {
		if (!krn_isa_supported((enum krn_isa)isa))
			continue;
		if (!only || strcmp(only, krn_isa_name((enum krn_isa)isa)) == 0)
			print_variant(&arrays, (enum krn_isa)isa);
	}
	rc = 0;
err_free:
	free(arrays.numbers);
	free(arrays.acc);
	free(arrays.wire);
	return rc;
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : NULL;
	size_t ki;
	char *end;

	if (argc < 2)
		return bench(65536, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
	ki = strtoul(argv[1], &end, 10);
	if (*end || ki == 0 || ki > 1048576) {
		fprintf(stderr, "usage: qnt_bench [Ki elements [variant]]\n");
		return EXIT_FAILURE;
	}
	return bench(ki * 1024, only) ? EXIT_FAILURE : EXIT_SUCCESS;
}
