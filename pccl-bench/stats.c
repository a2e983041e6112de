/* SPDX-License-Identifier: MIT */
#include "pccl-bench/stats.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

size_t bch_times_merge(uint64_t *times, uint32_t n_peers, size_t n)
{
	size_t good = 0;

	for (uint32_t peer = 1; peer < n_peers; peer++)
		for (size_t k = 0; k < n; k++)
			if (times[peer * n + k] > times[k])
				times[k] = times[peer * n + k];
	qsort(times, n, sizeof *times, ascending);
	while (good < n && times[good] != BCH_FAILED)
		good++;
	return good;
}

void bch_times_of(const uint64_t *sorted, size_t n, struct bch_times *ret)
{
	size_t rank = (n * 99 + 99) / 100;

	ret->min = sorted[0];
	ret->median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
	ret->p99 = sorted[rank - 1];
}

double bch_algbw(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes * 1e9 / (double)ns : 0;
}

double bch_busbw(double algbw, uint32_t n_peers)
{
	return algbw * 2 * (n_peers - 1) / n_peers;
}
