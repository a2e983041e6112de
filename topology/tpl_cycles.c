/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

uint32_t tpl_cycles(uint32_t n, const uint32_t *next, uint32_t *ret_cycle_of)
{
	uint32_t cycles = 0;

	for (uint32_t i = 0; i < n; i++)
		ret_cycle_of[i] = TPL_NONE;
	for (uint32_t i = 0; i < n; i++) {
		if (ret_cycle_of[i] != TPL_NONE)
			continue;
		for (uint32_t k = i; ret_cycle_of[k] == TPL_NONE; k = next[k])
			ret_cycle_of[k] = cycles;
		cycles++;
	}
	return cycles;
}

void tpl_cycles_patch(uint32_t n, const double *cost, uint32_t *next, uint32_t *cycle_of)
{
	uint32_t first = TPL_NONE, second = TPL_NONE, from, to, swap;
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		const double *row = cost + (size_t)i * n;

		for (uint32_t k = i + 1; k < n; k++) {
			const double *other = cost + (size_t)k * n;
			double more = row[next[k]] + other[next[i]] - row[next[i]] - other[next[k]];

			if (more < least && cycle_of[i] != cycle_of[k]) {
				least = more;
				first = i;
				second = k;
			}
		}
	}
	swap = next[first];
	next[first] = next[second];
	next[second] = swap;
	from = cycle_of[second];
	to = cycle_of[first];
	for (uint32_t i = 0; i < n; i++)
		if (cycle_of[i] == from)
			cycle_of[i] = to;
}

void tpl_cycle_order(uint32_t n, const uint32_t *next, uint32_t *ret)
{
	for (uint32_t i = 0, at = 0; i < n; i++, at = next[at])
		ret[i] = at;
}
