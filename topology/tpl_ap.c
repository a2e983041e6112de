/* SPDX-License-Identifier: MIT
 *
 * The assignment problem, by shortest augmenting paths (Tomizawa 1971; Jonker and Volgenant: A
 * shortest augmenting path algorithm for dense and sparse linear assignment problems, 1987).
 */
#include "topology/tpl_internal.h"

void tpl_ap_init(struct tpl_ap *a, uint32_t n)
{
	*a = (struct tpl_ap){
		.n = n,
		.next = cc_must_zalloc(n, sizeof *a->next),
		.prev = cc_must_zalloc(n, sizeof *a->prev),
		.u = cc_must_zalloc(n, sizeof *a->u),
		.v = cc_must_zalloc(n, sizeof *a->v),
		.dist = cc_must_zalloc(n, sizeof *a->dist),
		.from = cc_must_zalloc(n, sizeof *a->from),
		.queue = cc_must_zalloc(n, sizeof *a->queue),
		.fixed = cc_must_zalloc(n, sizeof *a->fixed),
	};
}

void tpl_ap_clear(struct tpl_ap *a)
{
	free(a->next);
	free(a->prev);
	free(a->u);
	free(a->v);
	free(a->dist);
	free(a->from);
	free(a->queue);
	free(a->fixed);
}

/* Sets each v to the lowest cost of its column, then each u to the lowest rest of its row. */
static void begin_duals(struct tpl_ap *a, const double *cost)
{
	uint32_t n = a->n;

	for (uint32_t j = 0; j < n; j++)
		a->v[j] = INFINITY;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			a->v[j] = fmin(a->v[j], cost[(size_t)i * n + j]);
	for (uint32_t i = 0; i < n; i++) {
		a->u[i] = INFINITY;
		for (uint32_t j = 0; j < n; j++)
			a->u[i] = fmin(a->u[i], cost[(size_t)i * n + j] - a->v[j]);
	}
}

void tpl_ap_begin(struct tpl_ap *a, const double *cost)
{
	uint32_t n = a->n;

	begin_duals(a, cost);
	memset(a->fixed, 0, n * sizeof *a->fixed);
	for (uint32_t i = 0; i < n; i++)
		a->next[i] = a->prev[i] = TPL_NONE;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n && a->next[i] == TPL_NONE; j++)
			if (a->prev[j] == TPL_NONE &&
				cost[(size_t)i * n + j] - a->v[j] <= a->u[i]) {
				a->next[i] = j;
				a->prev[j] = i;
			}
}

/* Shortens the paths to all hosts in the queue after `reached` that begin with the path to host i,
 * of the length `len`. Returns the index in the queue of the shortest path; among equal ones, of a
 * path that needs no other path after it. */
static uint32_t relax(
	struct tpl_ap *a, const double *cost, uint32_t i, double len, uint32_t reached)
{
	const double *row = cost + (size_t)i * a->n;
	uint32_t at = reached;

	for (uint32_t q = reached; q < a->n; q++) {
		uint32_t j = a->queue[q];
		double d = len + (row[j] - a->u[i] - a->v[j]);

		if (d < a->dist[j]) {
			a->dist[j] = d;
			a->from[j] = i;
		}
		if (a->dist[j] < a->dist[a->queue[at]] ||
			(a->dist[j] == a->dist[a->queue[at]] && a->prev[j] == TPL_NONE))
			at = q;
	}
	return at;
}

/* Fills the queue with all hosts whose previous host may change. Returns the index of the first
 * one. Fixed hosts come before them and count as reached. */
static uint32_t fill_queue(struct tpl_ap *a)
{
	uint32_t fixed = 0, free_at = a->n;

	for (uint32_t j = 0; j < a->n; j++) {
		a->dist[j] = INFINITY;
		if (a->fixed[j])
			a->queue[fixed++] = j;
		else
			a->queue[--free_at] = j;
	}
	return fixed;
}

void tpl_ap_follow(uint32_t *next, uint32_t *prev, const uint32_t *from, uint32_t i, uint32_t j)
{
	for (;;) {
		uint32_t k = from[j], after = next[k];

		next[k] = j;
		prev[j] = k;
		if (k == i)
			return;
		j = after;
	}
}

double tpl_ap_augment(struct tpl_ap *a, const double *cost, uint32_t i, double limit)
{
	uint32_t first = fill_queue(a), reached = first, row = i, j;
	double len = 0;

	for (;;) {
		uint32_t at;

		if (reached == a->n)
			return INFINITY;
		at = relax(a, cost, row, len, reached);
		j = a->queue[at];
		a->queue[at] = a->queue[reached];
		a->queue[reached++] = j;
		len = a->dist[j];
		if (len >= limit)
			return len;
		if (a->prev[j] == TPL_NONE)
			break;
		row = a->prev[j];
	}
	a->u[i] += len;
	for (uint32_t q = first; q + 1 < reached; q++) {
		double d = len - a->dist[a->queue[q]];

		a->v[a->queue[q]] -= d;
		a->u[a->prev[a->queue[q]]] += d;
	}
	tpl_ap_follow(a->next, a->prev, a->from, i, j);
	return len;
}

double tpl_ap_bound(const struct tpl_ap *a)
{
	double sum = 0;

	for (uint32_t i = 0; i < a->n; i++)
		sum += a->u[i] + a->v[i];
	return sum;
}
