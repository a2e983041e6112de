/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

#define INTEGER_MAX 9007199254740992.0 /* 2^53: integers below are exact */

void tpl_costs_init(struct tpl_costs *c, uint32_t n, const double *cost)
{
	size_t links = (size_t)n * n;
	double highest = 0;

	*c = (struct tpl_costs){
		.n = n, .c = cc_must_copy(cost, links, sizeof *cost), .integral = true};
	for (size_t k = 0; k < links; k++) {
		if (k % (n + 1) == 0 || cost[k] == INFINITY)
			continue;
		highest = fmax(highest, cost[k]);
		c->integral = c->integral && cost[k] == floor(cost[k]);
	}
	/* Sums of n costs, of which each may be `never`, are exact, too. */
	c->never = 2 * n * (highest > 0 ? highest : 1) + 2;
	c->integral = c->integral && c->never < INTEGER_MAX / n;
	if (!c->integral)
		c->never = 2 * n * highest;
	c->eps = c->integral ? 0.25 : c->never * 1e-11;
	for (size_t k = 0; k < links; k++)
		if (k % (n + 1) == 0 || cost[k] == INFINITY)
			c->c[k] = c->never;
}

void tpl_costs_clear(struct tpl_costs *c)
{
	free(c->c);
}

double tpl_costs_round(const struct tpl_costs *c, double bound)
{
	return c->integral ? ceil(bound - c->eps) : bound;
}

/* Counts the hosts that host 0 reaches, or backwards, the hosts that reach it. */
static uint32_t reached(const struct tpl_costs *c, bool backwards)
{
	uint32_t *queue = cc_must_zalloc(c->n, sizeof *queue), n = 1;
	bool *seen = cc_must_zalloc(c->n, sizeof *seen);

	seen[0] = true;
	for (uint32_t at = 0; at < n; at++)
		for (uint32_t j = 0; j < c->n; j++) {
			size_t from = backwards ? j : queue[at], to = backwards ? queue[at] : j;

			if (seen[j] || c->c[from * c->n + to] == c->never)
				continue;
			seen[j] = true;
			queue[n++] = j;
		}
	free(queue);
	free(seen);
	return n;
}

bool tpl_costs_connected(const struct tpl_costs *c)
{
	return reached(c, false) == c->n && reached(c, true) == c->n;
}
