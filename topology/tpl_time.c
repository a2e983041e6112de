/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

/* Lower costs count as this one, so that no rate exceeds what the solver takes. */
#define LEAST 1e-80

void tpl_time_rates(uint32_t n, const double *cost, double *ret_rate)
{
	size_t links = (size_t)n * n;
	double lowest = INFINITY;

	for (size_t k = 0; k < links; k++)
		if (k % (n + 1) != 0 && cost[k] > 0)
			lowest = fmin(lowest, fmax(cost[k], LEAST));
	for (size_t k = 0; k < links; k++) {
		ret_rate[k] = 0;
		if (k % (n + 1) == 0)
			continue;
		if (cost[k] > 0)
			ret_rate[k] = 1 / fmax(cost[k], LEAST);
		else
			ret_rate[k] = lowest < INFINITY ? 1 / (lowest * TPL_NO_TIME) : 1;
	}
}

/* Returns the highest cost of a link of the ring. */
static double highest_cost(uint32_t n, const double *cost, const uint32_t *ring)
{
	double highest = 0;

	for (uint32_t i = 0; i < n; i++)
		highest = fmax(highest, cost[(size_t)ring[i] * n + ring[i + 1 < n ? i + 1 : 0]]);
	return highest;
}

void tpl_time_bottleneck(uint32_t n, const double *cost, const double *rate, struct tpl_best *best)
{
	double bound = INFINITY;

	/* Each ring has a link that is not faster than the bound of the rates. */
	for (size_t k = 0; k < (size_t)n * n; k++)
		if (k % (n + 1) != 0 && rate[k] <= best->bound)
			bound = fmin(bound, cost[k]);
	best->value = best->n_rings > 0 ? highest_cost(n, cost, best->ring[0]) : INFINITY;
	best->bound = bound;
	best->gap = best->value != bound ? (best->value - bound) / bound : 0;
}
