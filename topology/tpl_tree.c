/* SPDX-License-Identifier: MIT
 *
 * A ring is a spanning arborescence from host 0 with a link back to host 0, and each of its hosts
 * has one next host. Without the second condition, the cheapest such set of links is found by
 * contraction (Chu and Liu 1965; Edmonds 1967). The second condition is put into the costs: a host
 * with more next hosts than one gets a penalty for each of its links, a host without one a reward
 * (Held and Karp: The traveling-salesman problem and minimum spanning trees, 1970 and 1971). Any
 * penalties give a lower bound.
 *
 * The first penalties are the dual values of the assignment, so the bound is never worse than that
 * of the assignment.
 */
#include "topology/tpl_internal.h"

#define FACTOR_MIN 1e-3 /* smaller changes of penalties raise the bound no more */
#define PATIENCE   100u /* steps without a better bound until the changes become smaller */

void tpl_tree_init(struct tpl_tree *t, const struct tpl_costs *c, const struct tpl_ap *a)
{
	size_t n = c->n, links = n * n;

	*t = (struct tpl_tree){
		.n = c->n,
		.costs = c,
		.factor = 2,
		.bound = -INFINITY,
		.penalty = cc_must_zalloc(n, sizeof *t->penalty),
		.change = cc_must_zalloc(n, sizeof *t->change),
		.w = cc_must_zalloc(links, sizeof *t->w),
		.next_w = cc_must_zalloc(links, sizeof *t->next_w),
		.link = cc_must_zalloc(links, sizeof *t->link),
		.next_link = cc_must_zalloc(links, sizeof *t->next_link),
		.in = cc_must_zalloc(n, sizeof *t->in),
		.pick = cc_must_zalloc(links, sizeof *t->pick),
		.at = cc_must_zalloc(links, sizeof *t->at),
		.nodes = cc_must_zalloc(n, sizeof *t->nodes),
		.part = cc_must_zalloc(n, sizeof *t->part),
		.seen = cc_must_zalloc(n, sizeof *t->seen),
		.out = cc_must_zalloc(n, sizeof *t->out),
	};
	for (uint32_t i = 0; i < n; i++)
		t->penalty[i] = -a->u[i];
}

void tpl_tree_clear(struct tpl_tree *t)
{
	free(t->penalty);
	free(t->change);
	free(t->w);
	free(t->next_w);
	free(t->link);
	free(t->next_link);
	free(t->in);
	free(t->pick);
	free(t->at);
	free(t->nodes);
	free(t->part);
	free(t->seen);
	free(t->out);
}

/* Fills the matrix of the first level: one node for each host. */
static void begin_level(struct tpl_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		t->at[i] = i;
		for (uint32_t j = 0; j < t->n; j++) {
			size_t k = (size_t)i * t->n + j;

			t->w[k] = i == j ? INFINITY : t->costs->c[k] + t->penalty[i];
			t->link[k] = (uint32_t)k;
		}
	}
}

/* Picks the cheapest link into each of the m nodes, except for node 0. Returns the sum. */
static double pick_links(struct tpl_tree *t, uint32_t m, uint32_t *pick)
{
	double sum = 0;

	for (uint32_t j = 1; j < m; j++) {
		uint32_t least = 0;

		for (uint32_t i = 1; i < m; i++)
			if (t->w[(size_t)i * m + j] < t->w[(size_t)least * m + j])
				least = i;
		t->in[j] = least;
		pick[j] = t->link[(size_t)least * m + j];
		sum += t->w[(size_t)least * m + j];
	}
	return sum;
}

/* Gives all nodes of a cycle of picked links the same number, and every other node its own; node 0
 * keeps its number. Returns how many numbers there are. */
static uint32_t number_parts(struct tpl_tree *t, uint32_t m)
{
	uint32_t parts = 1, *part = t->part, *seen = t->seen;

	for (uint32_t j = 0; j < m; j++)
		part[j] = seen[j] = TPL_NONE;
	part[0] = seen[0] = 0;
	for (uint32_t j = 1; j < m; j++) {
		uint32_t k = j;

		while (seen[k] == TPL_NONE) {
			seen[k] = j;
			k = t->in[k];
		}
		if (seen[k] == j && part[k] == TPL_NONE) { /* a new cycle */
			for (; part[k] == TPL_NONE; k = t->in[k])
				part[k] = parts;
			parts++;
		}
		for (k = j; part[k] == TPL_NONE; k = t->in[k])
			part[k] = parts++;
	}
	return parts;
}

/* Makes one node of each part. The cost of a link is what it adds if it replaces the picked link
 * into its host. */
static void contract(struct tpl_tree *t, uint32_t m, uint32_t parts)
{
	const uint32_t *part = t->part;
	double *w = t->next_w;
	uint32_t *link = t->next_link;

	for (size_t k = 0; k < (size_t)parts * parts; k++)
		w[k] = INFINITY;
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 1; j < m; j++) {
			size_t to = (size_t)part[i] * parts + part[j];
			double more = t->w[(size_t)i * m + j] - t->w[(size_t)t->in[j] * m + j];

			if (part[i] == part[j] || more >= w[to])
				continue;
			w[to] = more;
			link[to] = t->link[(size_t)i * m + j];
		}
	t->next_w = t->w;
	t->next_link = t->link;
	t->w = w;
	t->link = link;
}

/* Replaces the picks of the first level by the links of the arborescence. `level` is the one that
 * has no cycle. */
static void expand(struct tpl_tree *t, uint32_t level)
{
	uint32_t n = t->n;

	/* A node keeps its pick, unless the link into the part that contains it enters here. */
	for (; level > 0; level--) {
		const uint32_t *pick = t->pick + (size_t)level * n;
		const uint32_t *at = t->at + (size_t)(level - 1) * n;
		uint32_t *below = t->pick + (size_t)(level - 1) * n;

		for (uint32_t part = 1; part < t->nodes[level]; part++)
			below[at[pick[part] % n]] = pick[part];
	}
}

/* Finds the cheapest arborescence, whose links are then the picks of the first level. Returns its
 * cost. */
static double find_tree(struct tpl_tree *t)
{
	uint32_t level = 0, m = t->n;
	double sum = 0;

	begin_level(t);
	for (;; level++) {
		uint32_t *at = t->at + (size_t)level * t->n, parts;

		t->nodes[level] = m;
		sum += pick_links(t, m, t->pick + (size_t)level * t->n);
		parts = number_parts(t, m);
		if (parts == m)
			break;
		for (uint32_t i = 0; i < t->n; i++)
			at[t->n + i] = t->part[at[i]];
		contract(t, m, parts);
		m = parts;
	}
	expand(t, level);
	return sum;
}

/* Counts the next hosts of each host, with the cheapest link to host 0. Returns the cost of this
 * link. */
static double count_next(struct tpl_tree *t)
{
	double least = INFINITY;
	uint32_t last = 1;

	memset(t->out, 0, t->n * sizeof *t->out);
	for (uint32_t j = 1; j < t->n; j++) {
		double back = t->costs->c[(size_t)j * t->n] + t->penalty[j];

		t->out[t->pick[j] / t->n]++;
		if (back < least) {
			least = back;
			last = j;
		}
	}
	t->out[last]++;
	return least;
}

bool tpl_tree_step(struct tpl_tree *t, double best)
{
	double sum = find_tree(t), norm = 0, step;

	sum += count_next(t);
	for (uint32_t i = 0; i < t->n; i++) {
		double more = (double)t->out[i] - 1;

		sum -= t->penalty[i];
		norm += more * more;
		t->change[i] = 0.7 * more + 0.3 * t->change[i];
	}
	t->idle++;
	if (sum > t->bound) {
		t->bound = sum;
		t->idle = 0;
	}
	if (t->idle > PATIENCE) {
		t->factor /= 2;
		t->idle = 0;
	}
	if (norm <= 0 || t->factor < FACTOR_MIN)
		return true;
	step = t->factor * (best - sum) / norm;
	for (uint32_t i = 0; i < t->n; i++)
		t->penalty[i] += step * t->change[i];
	return false;
}
