/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

double tpl_ring_cost(uint32_t n, const double *cost, const uint32_t *ring)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += cost[(size_t)ring[i] * n + ring[i + 1 < n ? i + 1 : 0]];
	return sum;
}

double tpl_ring_bottleneck(uint32_t n, const double *rate, const uint32_t *ring)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = fmin(least, rate[(size_t)ring[i] * n + ring[i + 1 < n ? i + 1 : 0]]);
	return least;
}

void tpl_ring_turn(uint32_t n, const uint32_t *ring, uint32_t *ret)
{
	uint32_t at = 0;

	while (ring[at] != 0)
		at++;
	for (uint32_t i = 0; i < n; i++)
		ret[i] = ring[(at + i) % n];
}

double tpl_cap(uint32_t n, const double *out, const double *in)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++) {
		if (out && out[i] > 0)
			least = fmin(least, out[i]);
		if (in && in[i] > 0)
			least = fmin(least, in[i]);
	}
	return least;
}

/* Returns the sum of the weights of the rings in which host `to` follows host `from`. */
static double share(
	uint32_t n, uint32_t n_rings, const uint32_t *next, const double *weight, uint32_t link[2])
{
	double sum = 0;

	for (uint32_t r = 0; r < n_rings; r++)
		if (next[(size_t)r * n + link[0]] == link[1])
			sum += weight[r];
	return sum;
}

double tpl_plan_rate(const struct tpl_problem *p, uint32_t n_rings, const uint32_t *const *ring,
	const double *weight)
{
	uint32_t *next = cc_must_zalloc((size_t)n_rings * p->n, sizeof *next);
	double least = tpl_cap(p->n, p->out, p->in);

	for (uint32_t r = 0; r < n_rings; r++)
		for (uint32_t i = 0; i < p->n; i++)
			next[(size_t)r * p->n + ring[r][i]] = ring[r][i + 1 < p->n ? i + 1 : 0];
	for (uint32_t r = 0; r < n_rings; r++)
		for (uint32_t i = 0; i < p->n; i++) {
			uint32_t link[2] = {i, next[(size_t)r * p->n + i]};
			double rate = p->rate[(size_t)link[0] * p->n + link[1]];
			double load = share(p->n, n_rings, next, weight, link);

			if (load > 0)
				least = fmin(least, rate / load);
		}
	free(next);
	return least;
}

double tpl_allreduce_rate(uint32_t n, double rate)
{
	return rate * n / (2 * ((double)n - 1));
}
