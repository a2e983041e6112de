/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

void tpl_neckap_init(struct tpl_neckap *a, uint32_t n, const double *rate)
{
	*a = (struct tpl_neckap){
		.n = n,
		.rate = rate,
		.next = cc_must_zalloc(n, sizeof *a->next),
		.prev = cc_must_zalloc(n, sizeof *a->prev),
		.from = cc_must_zalloc(n, sizeof *a->from),
		.wide = cc_must_zalloc(n, sizeof *a->wide),
		.done = cc_must_zalloc(n, sizeof *a->done),
		.bound = INFINITY,
	};
	for (uint32_t i = 0; i < n; i++)
		a->next[i] = a->prev[i] = TPL_NONE;
}

void tpl_neckap_clear(struct tpl_neckap *a)
{
	free(a->next);
	free(a->prev);
	free(a->from);
	free(a->wide);
	free(a->done);
}

static double rate_between(const struct tpl_neckap *a, uint32_t i, uint32_t j, bool backwards)
{
	if (i == j)
		return 0;
	return backwards ? a->rate[(size_t)j * a->n + i] : a->rate[(size_t)i * a->n + j];
}

/* Widens the paths by those that lead to host i, of this width, and continue from there. Returns
 * the host with the widest path among the others; of equal ones, one that is not assigned. */
static uint32_t widen(struct tpl_neckap *a, uint32_t i, double width, bool backwards)
{
	uint32_t widest = TPL_NONE;

	for (uint32_t j = 0; j < a->n; j++) {
		double w = fmin(width, rate_between(a, i, j, backwards));

		if (a->done[j])
			continue;
		if (w > a->wide[j]) {
			a->wide[j] = w;
			a->from[j] = i;
		}
		if (widest == TPL_NONE || a->wide[j] > a->wide[widest] ||
			(a->wide[j] == a->wide[widest] && a->prev[j] == TPL_NONE))
			widest = j;
	}
	return widest;
}

static void begin_paths(struct tpl_neckap *a)
{
	memset(a->done, 0, a->n * sizeof *a->done);
	memset(a->wide, 0, a->n * sizeof *a->wide);
}

/* Lowers the bound so that host 0 reaches all hosts, or backwards, all hosts reach host 0 (Prim's
 * tree, with directions). */
static void connect(struct tpl_neckap *a, bool backwards)
{
	uint32_t at = 0;

	begin_paths(a);
	for (uint32_t k = 1; k < a->n; k++) {
		a->done[at] = true;
		at = widen(a, at, INFINITY, backwards);
		a->bound = fmin(a->bound, a->wide[at]);
	}
}

static void assign(struct tpl_neckap *a, uint32_t i)
{
	uint32_t at = i, j;

	begin_paths(a);
	for (;;) {
		j = widen(a, at, a->bound, false);
		if (j == TPL_NONE || a->wide[j] <= 0) {
			a->bound = 0;
			return;
		}
		a->bound = fmin(a->bound, a->wide[j]);
		if (a->prev[j] == TPL_NONE)
			break;
		a->done[j] = true;
		at = a->prev[j];
	}
	tpl_ap_follow(a->next, a->prev, a->from, i, j);
}

bool tpl_neckap_step(struct tpl_neckap *a)
{
	if (a->at == 0) {
		connect(a, false);
		connect(a, true);
	}
	if (a->bound > 0 && a->at < a->n)
		assign(a, a->at);
	a->at++;
	return a->bound <= 0 || a->at >= a->n;
}
