/* SPDX-License-Identifier: MIT */
#include "topology/tpl_internal.h"

#define BETTER     (1 + 1e-9)
#define PASSES_MAX 3u

void tpl_subset_init(struct tpl_subset *s, uint32_t n, const double *rate)
{
	*s = (struct tpl_subset){.n = n, .cap = INFINITY, .phase = TPL_SUBSET_DONE};
	tpl_lp_init(&s->lp, n, rate, TPL_DROPPED_MAX, 0);
}

void tpl_subset_clear(struct tpl_subset *s)
{
	tpl_lp_clear(&s->lp);
}

/* Computes the rates of rings that share the links. Returns their sum. */
static double solve(struct tpl_subset *s, const uint32_t *column, uint32_t n, double *ret_x)
{
	tpl_lp_reset(&s->lp, s->cap);
	for (uint32_t i = 0; i < n; i++)
		tpl_lp_add(&s->lp, s->rings + (size_t)column[i] * s->n);
	while (!tpl_lp_step(&s->lp))
		;
	tpl_lp_rates(&s->lp, ret_x);
	return s->lp.sum;
}

void tpl_subset_solve(struct tpl_subset *s, const uint32_t *rings, struct tpl_set *set)
{
	s->rings = rings;
	set->sum = solve(s, set->column, set->n, set->x);
}

/* Inserts a column into the candidates, which are sorted by their rates. */
static void insert(struct tpl_subset *s, uint32_t column, const double *x)
{
	uint32_t at = s->n_candidates;

	if (at == TPL_CANDIDATES_MAX && x[column] <= x[s->candidate[at - 1]])
		return;
	if (at == TPL_CANDIDATES_MAX)
		at--;
	else
		s->n_candidates++;
	for (; at > 0 && x[s->candidate[at - 1]] < x[column]; at--)
		s->candidate[at] = s->candidate[at - 1];
	s->candidate[at] = column;
}

void tpl_subset_begin(
	struct tpl_subset *s, const uint32_t *rings, uint32_t n_rings, const double *x)
{
	s->phase = TPL_SUBSET_DROP;
	s->rings = rings;
	s->n_candidates = s->n_many = 0;
	s->set = s->trial_best = s->best = (struct tpl_set){.n = 0};
	for (uint32_t i = n_rings; i > 0; i--) /* the latest ones first: they are the best */
		insert(s, i - 1, x);
	while (s->n_many < TPL_DROPPED_MAX && s->n_many < s->n_candidates &&
		x[s->candidate[s->n_many]] > 0) {
		s->many[s->n_many] = s->candidate[s->n_many];
		s->n_many++;
	}
}

/* Keeps the set if it is the best one, without rings that it hardly uses. */
static void keep_best(struct tpl_subset *s)
{
	struct tpl_set used = {.n = 0};

	if (s->set.sum <= s->best.sum * BETTER)
		return;
	for (uint32_t i = 0; i < s->set.n; i++)
		if (s->set.x[i] > TPL_USED * s->set.sum)
			used.column[used.n++] = s->set.column[i];
	used.sum = solve(s, used.column, used.n, used.x);
	s->best = used;
}

static enum tpl_subset_phase drop_step(struct tpl_subset *s)
{
	double x[TPL_DROPPED_MAX];
	uint32_t least = 0;

	s->set.sum = solve(s, s->many, s->n_many, x);
	if (s->n_many > TPL_RINGS_MAX) {
		for (uint32_t i = 1; i < s->n_many; i++)
			if (x[i] < x[least])
				least = i;
		s->many[least] = s->many[--s->n_many];
		return TPL_SUBSET_DROP;
	}
	s->set.n = s->n_many;
	memcpy(s->set.column, s->many, s->n_many * sizeof *s->many);
	memcpy(s->set.x, x, s->n_many * sizeof *x);
	s->at = s->passes = 0;
	s->improved = false;
	return TPL_SUBSET_SWAP_DROPPED;
}

/* Ends the exchanges of a set. */
static enum tpl_subset_phase end_swaps(struct tpl_subset *s)
{
	keep_best(s);
	s->at = 0;
	if (s->phase == TPL_SUBSET_SWAP_ADDED)
		return TPL_SUBSET_DONE;
	s->set = s->trial_best = (struct tpl_set){.n = 0};
	return TPL_SUBSET_ADD;
}

static bool contains(const struct tpl_set *set, uint32_t column)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->column[i] == column)
			return true;
	return false;
}

/* Exchanges one ring of the set for one candidate, if this makes the set better. */
static enum tpl_subset_phase swap_step(struct tpl_subset *s)
{
	struct tpl_set trial = s->set;
	uint32_t column;

	if (s->at == s->set.n * s->n_candidates) {
		if (!s->improved || ++s->passes == PASSES_MAX)
			return end_swaps(s);
		s->at = 0;
		s->improved = false;
	}
	column = s->candidate[s->at / s->set.n];
	if (!contains(&s->set, column)) {
		trial.column[s->at % s->set.n] = column;
		trial.sum = solve(s, trial.column, trial.n, trial.x);
		if (trial.sum > s->set.sum * BETTER) {
			s->set = trial;
			s->improved = true;
		}
	}
	s->at++;
	return s->phase;
}

/* Tries one candidate as an additional ring. */
static enum tpl_subset_phase add_step(struct tpl_subset *s)
{
	struct tpl_set trial = s->set;

	if (s->at < s->n_candidates) {
		uint32_t column = s->candidate[s->at++];

		if (contains(&s->set, column))
			return TPL_SUBSET_ADD;
		trial.column[trial.n++] = column;
		trial.sum = solve(s, trial.column, trial.n, trial.x);
		if (trial.sum > s->trial_best.sum)
			s->trial_best = trial;
		return TPL_SUBSET_ADD;
	}
	s->at = 0;
	if (s->trial_best.sum > s->set.sum * BETTER) {
		s->set = s->trial_best;
		if (s->set.n < TPL_RINGS_MAX)
			return TPL_SUBSET_ADD;
	}
	s->passes = 0;
	s->improved = false;
	return TPL_SUBSET_SWAP_ADDED;
}

bool tpl_subset_step(struct tpl_subset *s)
{
	static enum tpl_subset_phase (*const step[])(struct tpl_subset *) = {
		[TPL_SUBSET_DROP] = drop_step,
		[TPL_SUBSET_SWAP_DROPPED] = swap_step,
		[TPL_SUBSET_ADD] = add_step,
		[TPL_SUBSET_SWAP_ADDED] = swap_step,
	};

	if (s->phase != TPL_SUBSET_DONE)
		s->phase = step[s->phase](s);
	return s->phase == TPL_SUBSET_DONE;
}
