/* SPDX-License-Identifier: MIT
 *
 * Column generation (Gilmore and Gomory 1961): the linear program begins with the best single ring.
 * Its dual values are prices of links. A ring whose links and cap cost less than 1 raises the sum,
 * so it is added; if there is none, the program has its optimum over all rings, although most of
 * them were never written down.
 *
 * Most links cost nothing, so many rings are equally cheap, and some of them have slow links, with
 * which they gain little. So rings are first looked for with *blurred* prices, to which a part of
 * 1/rate is added. When this finds nothing, the true prices decide.
 *
 * The linear program uses many rings, each for a little, so the best four of its rings need not be
 * a good plan. So a plan is also built and refined in another way: one of its rings at a time is
 * taken out, and the best single ring for the rates that the others leave takes its place.
 *
 * Any prices give an upper bound of all plans: if no ring costs less than c, it is the sum of all
 * prices, multiplied by the rates and the cap, divided by c.
 */
#include "topology/tpl_internal.h"

#define GUESS_EXACT   10u /* hosts for which the search of a ring is exact at once */
#define GUESS_STEPS   20u /* of the search for one ring */
#define PRICE_STEPS   4000u
#define TOLERANCE     1e-7 /* of prices */
#define BLUR          0.5 /* of all prices, at first, if the links are as fast as the best single ring */
#define BLUR_MIN      1e-3
#define SLOWEST       1e-3 /* slower links are blurred like links with this rate */
#define ALIKE         1.05
#define BETTER        (1 + 1e-6) /* smaller improvements of a set do not count */
#define LOWERED       1e-7       /* of rates in the linear program */
#define COLUMNS       400u
#define COLUMNS_EXACT 2000u /* up to TPL_EXACT_HOSTS: the linear program is solved to its end */
#define REFINED_MAX   64u   /* rings that refinements add */

/* ---- problems ---- */

static void copy_rates(struct tpl_plan *p, const double *rate)
{
	for (size_t k = 0; k < (size_t)p->n * p->n; k++)
		if (k % (p->n + 1) != 0)
			p->rate[k] = rate[k];
}

/* If no cap is known, and all links have the same rate, this is probably what a host can send and
 * receive, not what each of its links has for itself. */
static void guess_cap(struct tpl_plan *p)
{
	double least = INFINITY, most = 0;

	for (size_t k = 0; k < (size_t)p->n * p->n; k++)
		if (k % (p->n + 1) != 0) {
			least = fmin(least, p->rate[k]);
			most = fmax(most, p->rate[k]);
		}
	if (least > 0 && least * ALIKE >= most)
		p->cap = most;
}

/* Returns the lowest sum of the rates with which a host sends, or receives. */
static double host_bound(const struct tpl_plan *p)
{
	double least = p->cap;

	for (uint32_t i = 0; i < p->n; i++) {
		double out = 0, in = 0;

		for (uint32_t j = 0; j < p->n; j++) {
			out += p->rate[(size_t)i * p->n + j];
			in += p->rate[(size_t)j * p->n + i];
		}
		least = fmin(least, fmin(out, in));
	}
	return least;
}

void tpl_plan_init(struct tpl_plan *p, const struct tpl_problem *problem, uint64_t seed)
{
	uint32_t n = problem->n, most = n <= TPL_EXACT_HOSTS ? COLUMNS_EXACT : COLUMNS;
	size_t links = (size_t)n * n;

	*p = (struct tpl_plan){
		.n = n,
		.most = most,
		.rate = cc_must_zalloc(links, sizeof *p->rate),
		.rings = cc_must_zalloc((size_t)n * most, sizeof *p->rings),
		.x = cc_must_zalloc(most, sizeof *p->x),
		.dual = cc_must_zalloc(links, sizeof *p->dual),
		.cost = cc_must_zalloc(links, sizeof *p->cost),
		.rest = cc_must_zalloc(links, sizeof *p->rest),
		.scale = 1,
		.blur = BLUR,
		.next_subset = 8,
		.seed = seed,
	};
	copy_rates(p, problem->rate);
	p->cap = tpl_cap(n, problem->out, problem->in);
	if (p->cap == INFINITY)
		guess_cap(p);
	p->bound = host_bound(p);
	tpl_neck_init(&p->neck, n, p->rate, problem->trip, seed);
	tpl_lp_init(&p->lp, n, p->rate, most, LOWERED);
	tpl_sum_init(&p->guess, n, GUESS_EXACT, seed + 1);
	tpl_sum_init(&p->price, n, TPL_EXACT_HOSTS, seed + 2);
	tpl_subset_init(&p->subset, n, p->rate);
}

void tpl_plan_clear(struct tpl_plan *p)
{
	free(p->rate);
	free(p->rings);
	free(p->x);
	free(p->dual);
	free(p->cost);
	free(p->rest);
	if (p->refining)
		tpl_neck_clear(&p->refine);
	tpl_neck_clear(&p->neck);
	tpl_lp_clear(&p->lp);
	tpl_sum_clear(&p->guess);
	tpl_sum_clear(&p->price);
	tpl_subset_clear(&p->subset);
}

/* ---- rings ---- */

static void add_ring(struct tpl_plan *p, const uint32_t *ring)
{
	memcpy(p->rings + (size_t)p->n_rings * p->n, ring, p->n * sizeof *ring);
	p->n_rings++;
	tpl_lp_add(&p->lp, ring);
}

/* Returns whether the linear program gets no more rings. */
static bool is_full(const struct tpl_plan *p)
{
	return p->n_rings >= p->most - REFINED_MAX;
}

/* Returns the sum of all prices, multiplied by the rates and the cap. */
static double dual_sum(const struct tpl_plan *p)
{
	double sum = p->cap < INFINITY ? p->cap * p->cap_dual : 0;

	for (size_t k = 0; k < (size_t)p->n * p->n; k++)
		sum += p->rate[k] * p->dual[k];
	return sum;
}

/* Returns how much the links and the cap cost that a ring uses. */
static double price_of(const struct tpl_plan *p, const uint32_t *ring)
{
	return tpl_ring_cost(p->n, p->dual, ring) + p->cap_dual;
}

/* Sets the costs of links to their prices, with the blur. */
static void set_costs(struct tpl_plan *p, double blur)
{
	for (size_t k = 0; k < (size_t)p->n * p->n; k++) {
		p->cost[k] = INFINITY;
		if (p->rate[k] > 0)
			p->cost[k] = p->dual[k] + blur / p->n / fmax(p->rate[k], SLOWEST);
	}
}

static enum tpl_plan_phase begin_subset(struct tpl_plan *p, bool last)
{
	p->last = last;
	tpl_lp_rates(&p->lp, p->x);
	tpl_subset_begin(&p->subset, p->rings, p->n_rings, p->x);
	return TPL_PLAN_SUBSET;
}

static enum tpl_plan_phase begin_guess(struct tpl_plan *p)
{
	set_costs(p, p->blur);
	p->left = GUESS_STEPS;
	tpl_sum_begin(&p->guess, p->cost);
	return TPL_PLAN_GUESS;
}

static enum tpl_plan_phase begin_price(struct tpl_plan *p)
{
	set_costs(p, 0);
	p->left = PRICE_STEPS;
	tpl_sum_begin(&p->price, p->cost);
	return TPL_PLAN_PRICE;
}

/* ---- refinement ---- */

/* Takes the set as the answer, if it is the best one and worth it. */
static void take_set(struct tpl_plan *p, const struct tpl_set *set)
{
	if (set->n > 1 && set->sum >= p->one * TPL_PLAN_GAIN && set->sum > p->best.sum)
		p->best = *set;
}

/* Computes the rates that the set leaves, without the ring that is to be replaced. */
static void compute_rest(struct tpl_plan *p)
{
	memcpy(p->rest, p->rate, (size_t)p->n * p->n * sizeof *p->rest);
	for (uint32_t r = 0; r < p->set.n; r++) {
		const uint32_t *ring = p->rings + (size_t)p->set.column[r] * p->n;

		for (uint32_t i = 0; r != p->place && i < p->n; i++) {
			double *rest =
				&p->rest[(size_t)ring[i] * p->n + ring[i + 1 < p->n ? i + 1 : 0]];

			*rest = *rest - p->set.x[r] > TOLERANCE ? *rest - p->set.x[r] : 0;
		}
	}
}

/* Returns the number of places for rings: those of the set, and a free one if it may grow. */
static uint32_t places(const struct tpl_plan *p)
{
	return p->set.n < TPL_RINGS_MAX ? p->set.n + 1 : TPL_RINGS_MAX;
}

static enum tpl_plan_phase next_refinement(struct tpl_plan *p)
{
	take_set(p, &p->set);
	if (p->set.sum >= p->bound * (1 - TOLERANCE))
		return TPL_PLAN_DONE;
	if (p->failures >= places(p) || p->n_rings == p->most)
		return p->last ? TPL_PLAN_DONE : TPL_PLAN_LP;
	p->place = p->place < places(p) ? p->place : 0;
	compute_rest(p);
	tpl_neck_init(&p->refine, p->n, p->rest, NULL, p->seed);
	p->refining = true;
	return TPL_PLAN_REFINE;
}

static enum tpl_plan_phase begin_refinement(struct tpl_plan *p, const struct tpl_set *set)
{
	p->set = *set;
	p->place = set->n;
	p->failures = 0;
	return next_refinement(p);
}

/* Replaces one ring of the set, or adds one. */
static void try_ring(struct tpl_plan *p, const uint32_t *ring)
{
	struct tpl_set trial = p->set;

	memcpy(p->rings + (size_t)p->n_rings * p->n, ring, p->n * sizeof *ring);
	trial.n += p->place == trial.n;
	trial.column[p->place] = p->n_rings;
	tpl_subset_solve(&p->subset, p->rings, &trial);
	p->failures++;
	if (trial.sum <= p->set.sum * BETTER)
		return;
	add_ring(p, ring);
	p->set = trial;
	p->failures = 0;
}

static enum tpl_plan_phase refine_step(struct tpl_plan *p)
{
	(void)tpl_neck_step(&p->refine);
	if (!tpl_neck_settled(&p->refine) && p->refine.patience == p->neck.patience)
		return TPL_PLAN_REFINE;
	if (p->refine.best > 0)
		try_ring(p, p->refine.ring);
	else
		p->failures++;
	tpl_neck_clear(&p->refine);
	p->refining = false;
	p->place++;
	return next_refinement(p);
}

/* ---- steps ---- */

/* Divides all rates by that of the best single ring: so rounding errors are small beside the rates
 * of rings, even if some links are much faster. No link transports more than the whole plan does.
 */
static void rescale(struct tpl_plan *p)
{
	p->scale = p->one;
	p->one = 1;
	p->cap /= p->scale;
	p->bound /= p->scale;
	for (size_t k = 0; k < (size_t)p->n * p->n; k++)
		p->rate[k] = fmin(p->rate[k] / p->scale, p->bound);
}

static enum tpl_plan_phase neck_step(struct tpl_plan *p)
{
	(void)tpl_neck_step(&p->neck);
	p->one = fmin(p->neck.best, p->cap);
	if (!tpl_neck_settled(&p->neck))
		return TPL_PLAN_NECK;
	if (p->one <= 0) {
		p->bound = 0;
		return TPL_PLAN_DONE;
	}
	if (p->one >= p->bound * (1 - TOLERANCE))
		return TPL_PLAN_DONE;
	rescale(p);
	tpl_lp_reset(&p->lp, p->cap);
	p->subset.cap = p->cap;
	add_ring(p, p->neck.ring);
	return begin_refinement(p, &(struct tpl_set){.n = 1, .x = {1}, .sum = 1});
}

static enum tpl_plan_phase lp_step(struct tpl_plan *p)
{
	if (!tpl_lp_step(&p->lp))
		return TPL_PLAN_LP;
	p->cap_dual = tpl_lp_duals(&p->lp, p->dual);
	if (is_full(p))
		return begin_price(p);
	if (p->n_rings < p->next_subset)
		return begin_guess(p);
	while (p->next_subset <= p->n_rings)
		p->next_subset *= 2;
	return begin_subset(p, false);
}

static enum tpl_plan_phase guess_step(struct tpl_plan *p)
{
	bool finished = tpl_sum_step(&p->guess);

	if (!finished && (!tpl_sum_begun(&p->guess) || p->left-- > 0))
		return TPL_PLAN_GUESS;
	if (p->guess.best < INFINITY && price_of(p, p->guess.ring) < 1 - TOLERANCE) {
		add_ring(p, p->guess.ring);
		return TPL_PLAN_LP;
	}
	if (p->blur == 0)
		return begin_price(p);
	p->blur = p->blur > BLUR_MIN ? p->blur / 4 : 0;
	return begin_guess(p);
}

static enum tpl_plan_phase price_step(struct tpl_plan *p)
{
	bool finished = tpl_sum_step(&p->price);
	double least;

	if (!is_full(p) && p->price.best < INFINITY && price_of(p, p->price.ring) < 1 - TOLERANCE) {
		add_ring(p, p->price.ring);
		return TPL_PLAN_LP;
	}
	if (!finished && (!tpl_sum_begun(&p->price) || p->left-- > 0))
		return TPL_PLAN_PRICE;
	least = p->price.bound + p->cap_dual;
	if (least > 0)
		p->bound = fmin(p->bound, dual_sum(p) / least);
	return begin_subset(p, true);
}

static enum tpl_plan_phase subset_step(struct tpl_plan *p)
{
	if (!tpl_subset_step(&p->subset))
		return TPL_PLAN_SUBSET;
	take_set(p, &p->subset.best);
	if (!p->last)
		return begin_guess(p);
	return begin_refinement(p, p->best.n > 0 ? &p->best : &p->subset.best);
}

bool tpl_plan_step(struct tpl_plan *p)
{
	static enum tpl_plan_phase (*const step[])(struct tpl_plan *) = {
		[TPL_PLAN_NECK] = neck_step,
		[TPL_PLAN_REFINE] = refine_step,
		[TPL_PLAN_LP] = lp_step,
		[TPL_PLAN_GUESS] = guess_step,
		[TPL_PLAN_PRICE] = price_step,
		[TPL_PLAN_SUBSET] = subset_step,
	};

	if (p->phase != TPL_PLAN_DONE)
		p->phase = step[p->phase](p);
	return p->phase == TPL_PLAN_DONE;
}
