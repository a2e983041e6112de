/* SPDX-License-Identifier: MIT
 *
 * A target is a rate for which a ring of links that are at least as fast is looked for. Up to
 * TPL_EXACT_HOSTS hosts, bisection over the rates finds the highest possible one, by dynamic
 * programming. With more hosts, a ring of links that are fast enough is a ring with the lowest sum
 * whose other links do not exist, so tpl_sum looks for it. It may find one, prove that there is
 * none, or be given up; when all targets were tried, they are tried again with more patience.
 */
#include "topology/tpl_internal.h"

#define PATIENCE 100u /* steps of a search */
/* The weight of round trips. So they decide only between rings whose other costs are equal. */
#define TRIP_WEIGHT 1e-4

static void make_costs(struct tpl_neck *k, const double *trip)
{
	size_t links = (size_t)k->n * k->n;
	double highest = 0, longest = 0;

	for (size_t q = 0; q < links; q++) {
		if (q % (k->n + 1) == 0)
			continue;
		highest = fmax(highest, k->rate[q]);
		if (trip)
			longest = fmax(longest, trip[q]);
	}
	for (size_t q = 0; q < links; q++) {
		k->cost[q] = INFINITY;
		if (q % (k->n + 1) == 0 || k->rate[q] <= 0)
			continue;
		k->cost[q] = highest / k->rate[q];
		if (trip && longest > 0)
			k->cost[q] += TRIP_WEIGHT * trip[q] / longest;
	}
}

void tpl_neck_init(
	struct tpl_neck *k, uint32_t n, const double *rate, const double *trip, uint64_t seed)
{
	*k = (struct tpl_neck){
		.n = n,
		.rate = rate,
		.cost = cc_must_zalloc((size_t)n * n, sizeof *k->cost),
		.part = cc_must_zalloc((size_t)n * n, sizeof *k->part),
		.ring = cc_must_zalloc(n, sizeof *k->ring),
		.high = INFINITY,
		.patience = PATIENCE,
		.best_cost = INFINITY,
		.bound = INFINITY,
	};
	make_costs(k, trip);
	tpl_neckap_init(&k->ap, n, rate);
	tpl_sum_init(&k->sum, n, TPL_EXACT_HOSTS, seed);
}

void tpl_neck_clear(struct tpl_neck *k)
{
	free(k->cost);
	free(k->part);
	free(k->ring);
	tpl_neckap_clear(&k->ap);
	tpl_sum_clear(&k->sum);
}

/* ---- targets ---- */

/* Returns the lowest rate that is at least `least`, or INFINITY. */
static double rate_from(const struct tpl_neck *k, double least)
{
	double found = INFINITY;

	for (size_t q = 0; q < (size_t)k->n * k->n; q++)
		if (q % (k->n + 1) != 0 && k->rate[q] >= least && k->rate[q] > 0)
			found = fmin(found, k->rate[q]);
	return found;
}

/* Returns the highest rate below `most`, or 0. */
static double rate_below(const struct tpl_neck *k, double most)
{
	double found = 0;

	for (size_t q = 0; q < (size_t)k->n * k->n; q++)
		if (q % (k->n + 1) != 0 && k->rate[q] < most)
			found = fmax(found, k->rate[q]);
	return found;
}

/* Chooses a rate between `low` and `high` as the target. Returns whether there is one. */
static bool choose_target(struct tpl_neck *k)
{
	if (k->high == INFINITY)
		k->target = k->bound; /* often possible */
	else
		k->target = rate_from(k, sqrt(k->low * k->high));
	if (k->target >= k->high)
		k->target = rate_below(k, k->high);
	return k->target > k->low;
}

/* There is no ring with this target. */
static void exclude(struct tpl_neck *k, double target)
{
	k->high = target;
	k->bound = fmin(k->bound, rate_below(k, target));
}

/* ---- steps ---- */

static enum tpl_neck_phase bound_step(struct tpl_neck *k)
{
	if (!tpl_neckap_step(&k->ap))
		return TPL_NECK_BOUND;
	k->bound = k->ap.bound;
	if (k->bound <= 0)
		return TPL_NECK_DONE;
	(void)choose_target(k);
	return k->n <= TPL_EXACT_HOSTS ? TPL_NECK_EXISTS : TPL_NECK_BEGIN;
}

static enum tpl_neck_phase exists_step(struct tpl_neck *k)
{
	if (tpl_dp_exists(k->n, k->rate, k->target))
		k->low = k->target;
	else
		exclude(k, k->target);
	if (k->low < k->bound && choose_target(k))
		return TPL_NECK_EXISTS;
	k->bound = k->target = k->low;
	return k->low > 0 ? TPL_NECK_BEGIN : TPL_NECK_DONE;
}

static enum tpl_neck_phase begin_step(struct tpl_neck *k)
{
	for (size_t q = 0; q < (size_t)k->n * k->n; q++)
		k->part[q] = k->rate[q] >= k->target ? k->cost[q] : INFINITY;
	k->left = k->patience;
	tpl_sum_begin(&k->sum, k->part);
	return TPL_NECK_TRY;
}

/* Takes the ring over if it is the best one. */
static void take(struct tpl_neck *k, const uint32_t *ring)
{
	double slowest = tpl_ring_bottleneck(k->n, k->rate, ring);
	double cost = tpl_ring_cost(k->n, k->cost, ring);

	if (slowest < k->best || slowest <= 0 || (slowest == k->best && cost >= k->best_cost))
		return;
	k->best = slowest;
	k->best_cost = cost;
	k->low = fmax(k->low, slowest);
	memcpy(k->ring, ring, k->n * sizeof *ring);
}

/* Goes on to the next target. Without one, lowers the cost of the best ring for a while, and then
 * tries all targets again. */
static enum tpl_neck_phase next_target(struct tpl_neck *k)
{
	if (!k->polishing && choose_target(k))
		return TPL_NECK_BEGIN;
	if (!k->polishing && k->low > 0) {
		k->polishing = true;
		k->target = k->low;
		return TPL_NECK_BEGIN;
	}
	k->polishing = false;
	k->high = INFINITY;
	if (k->patience < UINT32_MAX / 2)
		k->patience *= 2;
	(void)choose_target(k);
	return TPL_NECK_BEGIN;
}

/* The slowest link of the best ring is proven to be as fast as possible. */
static enum tpl_neck_phase last_step(struct tpl_neck *k, bool finished)
{
	if (k->target == k->bound) {
		k->left -= k->left > 0 && tpl_sum_begun(&k->sum);
		return finished ? TPL_NECK_DONE : TPL_NECK_TRY;
	}
	k->target = k->bound;
	return TPL_NECK_BEGIN;
}

static enum tpl_neck_phase try_step(struct tpl_neck *k)
{
	bool finished = tpl_sum_step(&k->sum);

	if (k->sum.best < INFINITY)
		take(k, k->sum.ring);
	else if (!finished && tpl_sum_begun(&k->sum))
		take(k, k->sum.search.best);
	if (finished && k->sum.best == INFINITY)
		exclude(k, k->target);
	if (k->bound <= 0)
		return TPL_NECK_DONE;
	if (k->low >= k->bound)
		return last_step(k, finished);
	if (finished || (!k->polishing && k->low >= k->target))
		return next_target(k);
	k->left -= k->left > 0 && tpl_sum_begun(&k->sum);
	if (k->left > 0)
		return TPL_NECK_TRY;
	if (!k->polishing)
		k->high = k->target;
	return next_target(k);
}

bool tpl_neck_step(struct tpl_neck *k)
{
	static enum tpl_neck_phase (*const step[])(struct tpl_neck *) = {
		[TPL_NECK_BOUND] = bound_step,
		[TPL_NECK_EXISTS] = exists_step,
		[TPL_NECK_BEGIN] = begin_step,
		[TPL_NECK_TRY] = try_step,
	};

	if (k->phase != TPL_NECK_DONE)
		k->phase = step[k->phase](k);
	return k->phase == TPL_NECK_DONE;
}

bool tpl_neck_settled(const struct tpl_neck *k)
{
	return k->phase == TPL_NECK_DONE || k->polishing || (k->best >= k->bound && k->left == 0);
}
