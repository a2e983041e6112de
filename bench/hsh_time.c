/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of hashing a shared state: tests/e2e/figures_state.py runs this program for
 * comparison with its peers' times. For each line of standard input it prints one time in ns.
 * Usage: hsh_time BYTES TENSORS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/hsh_run.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static void *take(size_t n, size_t size)
{
	void *p = malloc(n * size + 1);

	if (!p) {
		fputs("hsh_time: no memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return p;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	size_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, each = n ? bytes / n : 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct hsh_tensor_work *work;
	unsigned char *data;
	char line[64];

	if (each == 0) {
		fputs("usage: hsh_time BYTES TENSORS\n", stderr);
		return EXIT_FAILURE;
	}
	data = take(bytes, 1);
	memset(data, 1, bytes);
	work = take(n, sizeof *work);
	for (size_t i = 0; i < n; i++)
		work[i] = (struct hsh_tensor_work){.data = data + i * each,
			.bytes = each,
			.leaves = take(hsh_leaf_count(each), sizeof(uint64_t))};
	while (fgets(line, sizeof line, stdin)) {
		uint64_t before = now_ns();

		hsh_tensors(hsh_leaf, work, n, cpus > 0 ? (unsigned)cpus : 1);
		printf("%" PRIu64 "\n", now_ns() - before);
		fflush(stdout);
	}
	for (size_t i = 0; i < n; i++)
		free(work[i].leaves);
	free(work);
	free(data);
	return EXIT_SUCCESS;
}
