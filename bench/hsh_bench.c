/* SPDX-License-Identifier: MIT */
/* Measures the speed of the hash over memory that no cache holds, in GB/s, compared with a sum that
 * only reads the same memory. Usage: hsh_bench [MiB [most threads]]; 1024 MiB and 2 threads if
 * there is no argument.
 *
 * All variants take turns, several times. For each variant the output shows its best rate, the
 * ratio of this rate to the best rate of the sum, and the median of the ratios in each round.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/hsh_run.h"

#define ROUNDS      9
#define MAX_THREADS 16
#define SUM         HSH_ISA_COUNT
#define CRC32C      (HSH_ISA_COUNT + 1)
#define COLUMNS     (HSH_ISA_COUNT + 2)

typedef uint64_t vector __attribute__((vector_size(64)));

struct part {
	const unsigned char *data;
	size_t bytes;
	int column;
	hsh_leaf_fn *crc32c; /* NULL: not available */
	uint64_t result;     /* keeps the compiler from removing the work */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint64_t sum(const unsigned char *data, size_t bytes)
{
	vector x[4] = {{0}}, v;
	uint64_t total = 0;

	for (size_t i = 0; i < bytes; i += sizeof(x))
		for (size_t k = 0; k < 4; k++) {
			/* The hash prefetches, too. Without prefetching in the sum, memory would
			 * look slower than it is. */
			__builtin_prefetch(data + i + k * sizeof(v) + 2048);
			memcpy(&v, data + i + k * sizeof(v), sizeof(v));
			x[k] += v;
		}
	x[0] += x[1] + x[2] + x[3];
	for (size_t i = 0; i < 8; i++)
		total += x[0][i];
	return total;
}

/* Hashes like hsh_leaves, with the variant of the column. */
static void *run_part(void *arg)
{
	struct part *part = arg;

	part->result = 0;
	if (part->column == SUM)
		part->result = sum(part->data, part->bytes);
	for (size_t at = 0; at < part->bytes && part->column != SUM; at += HSH_LEAF) {
		if (part->column == CRC32C)
			part->result ^= part->crc32c(part->data + at, HSH_LEAF, 0);
		else
			part->result ^= hsh_hash_isa((enum hsh_isa)part->column, part->data + at,
				HSH_LEAF, at / HSH_LEAF);
	}
	return NULL;
}

/* Returns GB/s. Each thread has its own part. */
static double run(const struct part *whole, unsigned threads)
{
	struct part parts[MAX_THREADS];
	pthread_t ids[MAX_THREADS];
	unsigned started = 0;
	size_t each = whole->bytes / threads / HSH_LEAF * HSH_LEAF;
	uint64_t before = now_ns();

	for (unsigned i = 0; i < threads; i++) {
		parts[i] = *whole;
		parts[i].data += i * each;
		parts[i].bytes = each;
	}
	while (started + 1 < threads &&
		pthread_create(&ids[started], NULL, run_part, &parts[started]) == 0)
		started++;
	for (unsigned i = started; i < threads; i++)
		run_part(&parts[i]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	return (double)(each * threads) / (double)(now_ns() - before);
}

static bool can(const struct part *whole, int column)
{
	if (column == CRC32C)
		return whole->crc32c != NULL;
	return column == SUM || hsh_isa_supported((enum hsh_isa)column);
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static void bench(struct part *whole, unsigned threads)
{
	double best[COLUMNS] = {0}, ratios[COLUMNS][ROUNDS] = {{0}};

	for (unsigned round = 0; round < ROUNDS; round++) {
		double now[COLUMNS] = {0};

		for (int i = 0; i < COLUMNS; i++) {
			whole->column = i;
			if (can(whole, i))
				now[i] = run(whole, threads);
			if (now[i] > best[i])
				best[i] = now[i];
		}
		for (int i = 0; i < COLUMNS; i++)
			ratios[i][round] = now[i] / now[SUM];
	}
	printf("%zu MiB, threads: %u\n%-8s %8s %8s %8s\n", whole->bytes >> 20, threads, "", "GB/s",
		"of sum", "median");
	for (int i = 0; i < COLUMNS; i++) {
		const char *name = i == SUM ? "sum" : "crc32c";

		if (!can(whole, i))
			continue;
		qsort(ratios[i], ROUNDS, sizeof(ratios[i][0]), compare);
		printf("%-8s %8.2f %8.2f %8.2f\n",
			i < HSH_ISA_COUNT ? hsh_isa_name((enum hsh_isa)i) : name, best[i],
			best[i] / best[SUM], ratios[i][ROUNDS / 2]);
	}
}

int main(int argc, char **argv)
{
	unsigned long mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
	unsigned long most = argc > 2 ? strtoul(argv[2], NULL, 10) : 2;
	struct part whole = {.bytes = mib << 20};
	unsigned char *data;
	char error[200];

	if (mib == 0 || mib > SIZE_MAX >> 20 || most == 0 || most > MAX_THREADS) {
		fprintf(stderr, "usage: hsh_bench [MiB [most threads, up to %d]]\n", MAX_THREADS);
		return EXIT_FAILURE;
	}
	data = malloc(whole.bytes);
	if (!data) {
		fprintf(stderr, "hsh_bench: no memory for %lu MiB\n", mib);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < whole.bytes; i++)
		data[i] = (unsigned char)(i * 131 >> 7);
	whole.data = data;
	if (!hsh_crc32c_load(&whole.crc32c, error, sizeof(error)))
		fprintf(stderr, "hsh_bench: %s\n", error);
	for (unsigned threads = 1; threads <= most; threads *= 2)
		bench(&whole, threads);
	free(data);
	return EXIT_SUCCESS;
}
