/* SPDX-License-Identifier: MIT
 *
 * Host 0 begins every ring. A set is a mask of the other hosts: bit i - 1 is host i.
 */
#include "topology/tpl_internal.h"

#define SETS_PER_STEP 256u

void tpl_dp_init(struct tpl_dp *d, uint32_t n)
{
	uint32_t others = n - 1;

	*d = (struct tpl_dp){
		.n = n, .best = cc_must_zalloc((size_t)others << others, sizeof *d->best)};
}

void tpl_dp_clear(struct tpl_dp *d)
{
	free(d->best);
}

void tpl_dp_begin(struct tpl_dp *d, const double *cost)
{
	d->cost = cost;
	d->at = 1;
}

/* Returns the host before `last` on the shortest path from host 0 through the set to `last`, as its
 * bit, and the length of this path. */
static uint32_t before(const struct tpl_dp *d, uint32_t set, uint32_t last, double *ret_len)
{
	uint32_t others = d->n - 1, rest = set & ~(1u << last), least = 0;
	const double *best = d->best + (size_t)rest * others;
	const double *cost = d->cost + last + 1;

	*ret_len = INFINITY;
	if (rest == 0) {
		*ret_len = cost[0];
		return TPL_NONE;
	}
	for (uint32_t left = rest; left; left &= left - 1) {
		uint32_t k = (uint32_t)__builtin_ctz(left);
		double len = best[k] + cost[(size_t)(k + 1) * d->n];

		if (len < *ret_len) {
			*ret_len = len;
			least = k;
		}
	}
	return least;
}

bool tpl_dp_step(struct tpl_dp *d)
{
	uint32_t others = d->n - 1, end = 1u << others;

	for (uint32_t i = 0; i < SETS_PER_STEP && d->at < end; i++, d->at++)
		for (uint32_t left = d->at; left; left &= left - 1) {
			uint32_t last = (uint32_t)__builtin_ctz(left);

			(void)before(d, d->at, last, &d->best[(size_t)d->at * others + last]);
		}
	return d->at >= end;
}

double tpl_dp_ring(const struct tpl_dp *d, uint32_t *ret_ring)
{
	uint32_t others = d->n - 1, set = (1u << others) - 1, last = 0;
	double sum = INFINITY, len;

	for (uint32_t k = 0; k < others; k++) {
		len = d->best[(size_t)set * others + k] + d->cost[(size_t)(k + 1) * d->n];
		if (len < sum) {
			sum = len;
			last = k;
		}
	}
	if (sum == INFINITY)
		return sum;
	ret_ring[0] = 0;
	for (uint32_t i = others; i > 0; i--) {
		uint32_t k = before(d, set, last, &len);

		ret_ring[i] = last + 1;
		set &= ~(1u << last);
		last = k;
	}
	return sum;
}

bool tpl_dp_exists(uint32_t n, const double *rate, double least)
{
	uint32_t others = n - 1, end = 1u << others, into[TPL_EXACT_HOSTS] = {0}, back = 0;
	/* for each set, the hosts at which a path from host 0 through the set can end */
	uint16_t *ends = cc_must_zalloc(end, sizeof *ends);
	bool found;

	for (uint32_t k = 0; k < others; k++) {
		for (uint32_t i = 0; i < others; i++)
			if (i != k && rate[(size_t)(i + 1) * n + k + 1] >= least)
				into[k] |= 1u << i;
		if (rate[k + 1] >= least)
			ends[1u << k] = (uint16_t)(1u << k);
		if (rate[(size_t)(k + 1) * n] >= least)
			back |= 1u << k;
	}
	for (uint32_t set = 1; set < end; set++)
		for (uint32_t left = ~set & (end - 1); ends[set] && left; left &= left - 1) {
			uint32_t k = (uint32_t)__builtin_ctz(left);

			if (ends[set] & into[k])
				ends[set | 1u << k] |= (uint16_t)(1u << k);
		}
	found = (ends[end - 1] & back) != 0;
	free(ends);
	return found;
}
