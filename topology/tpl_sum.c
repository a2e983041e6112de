/* SPDX-License-Identifier: MIT
 *
 * Up to `exact` hosts: dynamic programming. Else an assignment, patched to a ring and improved,
 * is the beginning of a local search. Beside it, trees and branch and bound raise the lower bound,
 * and branch and bound may find better rings or prove that there are none.
 */
#include "topology/tpl_internal.h"

#define KICKABLE 8u /* hosts that a perturbation needs */
/* Links per perturbation: so the local search takes about two thirds of the time. */
#define LINKS_PER_KICK 2000u
#define KICKS_MAX      200u
#define TREE_MAX       256u /* hosts for which a tree is computed within some milliseconds */

void tpl_sum_init(struct tpl_sum *s, uint32_t n, uint32_t exact, uint64_t seed)
{
	*s = (struct tpl_sum){
		.n = n,
		.exact = exact,
		.phase = TPL_SUM_DONE,
		.cost = cc_must_zalloc((size_t)n * n, sizeof *s->cost),
		.next = cc_must_zalloc(n, sizeof *s->next),
		.cycle_of = cc_must_zalloc(n, sizeof *s->cycle_of),
		.ring = cc_must_zalloc(n, sizeof *s->ring),
	};
	if (n <= exact) {
		tpl_dp_init(&s->dp, n);
		return;
	}
	tpl_ap_init(&s->ap, n);
	tpl_search_init(&s->search, n, seed);
}

/* Frees what belongs to the present costs. */
static void clear_run(struct tpl_sum *s)
{
	if (s->branching) {
		tpl_branch_clear(&s->branch);
		tpl_tree_clear(&s->tree);
	}
	s->branching = false;
	tpl_costs_clear(&s->costs);
	s->costs.c = NULL;
}

void tpl_sum_clear(struct tpl_sum *s)
{
	clear_run(s);
	free(s->cost);
	free(s->next);
	free(s->cycle_of);
	free(s->ring);
	if (s->n <= s->exact) {
		tpl_dp_clear(&s->dp);
		return;
	}
	tpl_ap_clear(&s->ap);
	tpl_search_clear(&s->search);
}

void tpl_sum_begin(struct tpl_sum *s, const double *cost)
{
	clear_run(s);
	memcpy(s->cost, cost, (size_t)s->n * s->n * sizeof *cost);
	s->best = INFINITY;
	s->bound = 0;
	s->at = 0;
	if (s->n <= s->exact) {
		s->phase = TPL_SUM_EXACT;
		tpl_dp_begin(&s->dp, s->cost);
		return;
	}
	s->phase = TPL_SUM_ASSIGN;
	tpl_costs_init(&s->costs, s->n, cost);
	tpl_ap_begin(&s->ap, s->costs.c);
	tpl_search_begin(&s->search, &s->costs);
}

/* Takes a ring over if it is the best one and all its links exist. */
static void take(struct tpl_sum *s, double sum, const uint32_t *ring)
{
	if (sum >= s->best || !tpl_costs_possible(&s->costs, sum))
		return;
	s->best = sum;
	memmove(s->ring, ring, s->n * sizeof *ring);
}

/* Returns whether the best ring costs as little as the bound. */
static bool is_proven(struct tpl_sum *s)
{
	if (s->best > s->bound + s->costs.eps)
		return false;
	s->bound = s->best;
	return true;
}

static enum tpl_sum_phase exact_step(struct tpl_sum *s)
{
	if (!tpl_dp_step(&s->dp))
		return TPL_SUM_EXACT;
	s->best = s->bound = tpl_dp_ring(&s->dp, s->ring);
	return TPL_SUM_DONE;
}

static enum tpl_sum_phase assign_step(struct tpl_sum *s)
{
	while (s->at < s->n && s->ap.next[s->at] != TPL_NONE)
		s->at++;
	if (s->at < s->n) {
		(void)tpl_ap_augment(&s->ap, s->costs.c, s->at, INFINITY);
		return TPL_SUM_ASSIGN;
	}
	s->bound = tpl_costs_round(&s->costs, tpl_ap_bound(&s->ap));
	if (!tpl_costs_possible(&s->costs, s->bound) || !tpl_costs_connected(&s->costs)) {
		s->bound = INFINITY;
		return TPL_SUM_DONE;
	}
	memcpy(s->next, s->ap.next, s->n * sizeof *s->next);
	s->n_cycles = tpl_cycles(s->n, s->next, s->cycle_of);
	return TPL_SUM_PATCH;
}

static enum tpl_sum_phase patch_step(struct tpl_sum *s)
{
	if (s->n_cycles > 1) {
		tpl_cycles_patch(s->n, s->costs.c, s->next, s->cycle_of);
		s->n_cycles--;
		return TPL_SUM_PATCH;
	}
	tpl_cycle_order(s->n, s->next, s->cycle_of);
	take(s, tpl_ring_cost(s->n, s->costs.c, s->cycle_of), s->cycle_of);
	s->at = 0;
	return is_proven(s) ? TPL_SUM_DONE : TPL_SUM_NEAR;
}

static enum tpl_sum_phase near_step(struct tpl_sum *s)
{
	tpl_search_near(&s->search, &s->ap, s->at++);
	if (s->at < s->n)
		return TPL_SUM_NEAR;
	tpl_search_set(&s->search, s->cycle_of);
	return TPL_SUM_IMPROVE;
}

static enum tpl_sum_phase improve_step(struct tpl_sum *s)
{
	if (!tpl_search_improve(&s->search, s->n))
		return TPL_SUM_IMPROVE;
	take(s, s->search.best_cost, s->search.best);
	if (is_proven(s))
		return TPL_SUM_DONE;
	tpl_branch_init(&s->branch, &s->costs);
	tpl_branch_begin(&s->branch, &s->ap);
	tpl_tree_init(&s->tree, &s->costs, &s->ap);
	s->branching = true;
	s->bounded = s->n > TREE_MAX;
	return TPL_SUM_SEARCH;
}

/* Raises the bound by a tree, if a ring is known. */
static void raise_bound(struct tpl_sum *s)
{
	if (s->bounded || s->best == INFINITY)
		return;
	s->bounded = tpl_tree_step(&s->tree, s->best);
	s->bound = fmax(s->bound, fmin(s->best, tpl_costs_round(&s->costs, s->tree.bound)));
}

static enum tpl_sum_phase search_step(struct tpl_sum *s)
{
	uint32_t kicks = 1 + s->n * s->n / LINKS_PER_KICK;
	double before = s->best;

	if (tpl_branch_step(&s->branch, &s->best, s->ring) && !s->branch.full) {
		s->bound = s->best;
		return TPL_SUM_DONE;
	}
	s->bound = fmax(s->bound, s->branch.bound);
	if (s->best < before)
		tpl_search_set(&s->search, s->ring);
	for (uint32_t i = 0; i < kicks && i < KICKS_MAX && s->n >= KICKABLE; i++)
		tpl_search_kick(&s->search);
	take(s, s->search.best_cost, s->search.best);
	raise_bound(s);
	return is_proven(s) ? TPL_SUM_DONE : TPL_SUM_SEARCH;
}

bool tpl_sum_step(struct tpl_sum *s)
{
	static enum tpl_sum_phase (*const step[])(struct tpl_sum *) = {
		[TPL_SUM_EXACT] = exact_step,
		[TPL_SUM_ASSIGN] = assign_step,
		[TPL_SUM_PATCH] = patch_step,
		[TPL_SUM_NEAR] = near_step,
		[TPL_SUM_IMPROVE] = improve_step,
		[TPL_SUM_SEARCH] = search_step,
	};

	if (s->phase != TPL_SUM_DONE)
		s->phase = step[s->phase](s);
	return s->phase == TPL_SUM_DONE;
}
