/* SPDX-License-Identifier: MIT */
/* Measures the speed of the reduction kernels on one thread, in GB/s of memory traffic (bytes read
 * plus bytes written), compared with memcpy. Usage: krn_bench [KiB per array [variant]]. Without an
 * argument it measures both relevant sizes: a segment in the cache, and an array in memory.
 *
 * The reductions are in place: dst is the first source. "avg" is krn_divide.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/krn.h"

#define MAX_SOURCES 4
#define NS_PER_CELL UINT64_C(20000000)

static const char *const type_names[KRN_DTYPE_COUNT] = {
	"u8", "i8", "i16", "u16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"};

struct arrays {
	unsigned char *data[MAX_SOURCES];
	size_t bytes; /* of each array */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Runs one kernel. op < 0: krn_divide; isa < 0: memcpy. */
static void run_once(struct arrays *arrays, int isa, enum krn_dtype t, int op, unsigned nsrc)
{
	const void *srcs[MAX_SOURCES];
	size_t count = arrays->bytes / krn_dtype_size(t);

	for (unsigned i = 0; i < MAX_SOURCES; i++)
		srcs[i] = arrays->data[i];
	if (isa < 0)
		memcpy(arrays->data[0], arrays->data[1], arrays->bytes);
	else if (op < 0)
		krn_divide_isa((enum krn_isa)isa, t, arrays->data[0], count, 3);
	else
		krn_reduce_isa(
			(enum krn_isa)isa, t, (enum krn_op)op, arrays->data[0], srcs, nsrc, count);
}

/* Returns the speed of the fastest of many runs: disturbances only make a run slower. */
static double measure(struct arrays *arrays, int isa, enum krn_dtype t, int op, unsigned nsrc)
{
	unsigned streams = isa < 0 || op < 0 ? 2 : nsrc + 1;
	uint64_t best = UINT64_MAX;
	uint64_t end = now_ns() + NS_PER_CELL;
	uint64_t after;

	/* Values that stay ordinary numbers, however often they are combined. */
	for (unsigned i = 0; i < MAX_SOURCES; i++)
		memset(arrays->data[i], 0, arrays->bytes);
	run_once(arrays, isa, t, op, nsrc);
	do {
		uint64_t before = now_ns();

		run_once(arrays, isa, t, op, nsrc);
		after = now_ns();
		if (after - before < best)
			best = after - before;
	} while (after < end);
	return (double)arrays->bytes * streams / (double)(best > 0 ? best : 1);
}

static void print_variant(struct arrays *arrays, enum krn_isa isa)
{
	static const struct {
		const char *name;
		int op;
		unsigned nsrc;
	} columns[] = {
		{"sum 2", KRN_SUM, 2},
		{"sum 4", KRN_SUM, 4},
		{"prod 2", KRN_PROD, 2},
		{"prod 4", KRN_PROD, 4},
		{"max 2", KRN_MAX, 2},
		{"max 4", KRN_MAX, 4},
		{"min 2", KRN_MIN, 2},
		{"min 4", KRN_MIN, 4},
		{"avg", -1, 1},
	};
	const size_t n = sizeof(columns) / sizeof(columns[0]);

	printf("%-8s", krn_isa_name(isa));
	for (size_t c = 0; c < n; c++)
		printf(" %7s", columns[c].name);
	printf("\n");
	for (int t = 0; t < KRN_DTYPE_COUNT; t++) {
		printf("%-8s", type_names[t]);
		for (size_t c = 0; c < n; c++)
			printf(" %7.2f", measure(arrays, (int)isa, (enum krn_dtype)t, columns[c].op,
						 columns[c].nsrc));
		printf("\n");
	}
}

/* only: the variant to measure, or NULL for all that this CPU supports. */
static int bench(size_t kib, const char *only)
{
	struct arrays arrays = {.bytes = kib * 1024};
	int rc = -1;

	for (unsigned i = 0; i < MAX_SOURCES; i++) {
		arrays.data[i] = malloc(arrays.bytes);
		if (!arrays.data[i])
			goto err_free;
	}
	printf("%zu KiB per array, GB/s; memcpy %.2f\n", kib,
		measure(&arrays, -1, KRN_U8, KRN_SUM, 1));
	for (int isa = 0; isa < KRN_ISA_COUNT; isa++) {
		if (!krn_isa_supported((enum krn_isa)isa))
			continue;
		if (!only || strcmp(only, krn_isa_name((enum krn_isa)isa)) == 0)
			print_variant(&arrays, (enum krn_isa)isa);
	}
	rc = 0;
err_free:
	if (rc)
		fprintf(stderr, "krn_bench: no memory for arrays of %zu KiB\n", kib);
	for (unsigned i = 0; i < MAX_SOURCES; i++)
		free(arrays.data[i]);
	return rc;
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : NULL;
	size_t kib;
	char *end;

	if (argc < 2)
		return bench(64, NULL) || bench(65536, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
	kib = strtoul(argv[1], &end, 10);
	if (*end || kib == 0 || kib > SIZE_MAX / 1024) {
		fprintf(stderr, "usage: krn_bench [KiB per array [variant]]\n");
		return EXIT_FAILURE;
	}
	return bench(kib, only) ? EXIT_FAILURE : EXIT_SUCCESS;
}
