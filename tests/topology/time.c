/* SPDX-License-Identifier: MIT
 *
 * Files of costs: bottlenecks and plans whose rates are 1/cost.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

#define TEXT_MAX 8192u

/* Fills costs: integers, of which many are equal or 0 if `most` is small. */
static void fill(struct tl_rng *r, struct brute *b, uint32_t n, uint32_t most)
{
	memset(b, 0, sizeof *b);
	b->n = n;
	for (uint32_t k = 0; k < n * n; k++)
		b->cost[k] = k % (n + 1) == 0 ? 9999 : (double)tl_range(r, 0, most);
}

/* Writes the costs as a TSPLIB file, and parses it. */
static struct tpl_matrix parse(const struct brute *b)
{
	static char text[TEXT_MAX];
	char why[TPL_WHY_SIZE];
	struct tpl_matrix m;
	size_t len;

	len = (size_t)snprintf(text, sizeof text,
		"TYPE: ATSP\nDIMENSION: %u\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
		"EDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n",
		b->n);
	for (uint32_t k = 0; k < b->n * b->n; k++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%.17g ", b->cost[k]);
	ck_assert_uint_lt(len, sizeof text);
	ck_assert_msg(tpl_matrix_parse(text, len, &m, why) == 0, "%s", why);
	return m;
}

/* Finds the best answer. The caller frees the solver. */
static struct tpl_best solve(const struct brute *b, enum tpl_objective objective, struct tpl **ret)
{
	struct tpl_matrix m = parse(b);
	double rate[BRUTE_MAX * BRUTE_MAX];
	struct tpl_problem p = {.n = m.n, .rate = rate};
	struct tpl_best best;

	tpl_time_rates(m.n, m.cost, rate);
	ck_assert_int_eq(tpl_new(&p, objective, 1, ret), 0);
	ck_assert(tpl_work(*ret, 1000000));
	best = tpl_best(*ret);
	if (objective == TPL_BOTTLENECK)
		tpl_time_bottleneck(m.n, m.cost, rate, &best);
	tpl_matrix_clear(&m);
	brute_check_rings(b->n, &best);
	return best;
}

/* ---- bottlenecks ---- */

static double highest(const struct brute *b, const uint32_t *ring)
{
	double most = 0;

	for (uint32_t i = 0; i < b->n; i++)
		most = fmax(most, b->cost[ring[i] * b->n + ring[(i + 1) % b->n]]);
	return most;
}

struct walk {
	const struct brute *b;
	double bottleneck, sum; /* of all rings */
};

static void compare_ring(void *arg, const uint32_t *ring)
{
	struct walk *w = arg;
	double most = highest(w->b, ring), sum = brute_cost(w->b, ring);

	if (most < w->bottleneck || (most == w->bottleneck && sum < w->sum))
		w->sum = sum;
	w->bottleneck = fmin(w->bottleneck, most);
}

START_TEST(bottlenecks_equal_all_rings)
{
	static const uint32_t most[] = {1, 5, 1000, 100000};
	struct tl_rng r = tl_rng_new(1);
	unsigned zeros = 0;

	for (uint32_t i = 0; i < 600; i++) {
		struct brute b;
		struct walk w = {&b, INFINITY, INFINITY};
		struct tpl_best best;
		struct tpl *t;

		fill(&r, &b, 2 + i % 7, most[i / 7 % 4]);
		brute_rings(b.n, compare_ring, &w);
		best = solve(&b, TPL_BOTTLENECK, &t);
		ck_assert(best.optimal && best.n_rings == 1 && best.gap == 0);
		ck_assert(best.value == w.bottleneck && best.bound == w.bottleneck);
		ck_assert(highest(&b, best.ring[0]) == w.bottleneck);
		ck_assert(brute_cost(&b, best.ring[0]) == w.sum);
		zeros += w.bottleneck == 0;
		tpl_free(t);
	}
	ck_assert_uint_ge(zeros, 5);
}
END_TEST

/* An answer that is not proven has a bound in costs, and the distance to it. */
START_TEST(bounds_and_gaps_are_costs)
{
	static const double cost[] = {0, 2, 8, 4, 0, 8, 8, 5, 0}, inf[] = {0, 3, INFINITY, 0};
	static const uint32_t ring[] = {0, 1, 2};
	struct tpl_best best = {.n_rings = 1, .ring = {ring}, .bound = 0.25};
	double rate[9];

	tpl_time_rates(3, cost, rate);
	ck_assert(rate[1] == 0.5 && rate[2] == 0.125 && rate[7] == 0.2);
	tpl_time_bottleneck(3, cost, rate, &best);
	ck_assert(best.value == 8 && best.bound == 4 && best.gap == 1);
	best = (struct tpl_best){.bound = INFINITY}; /* before the first step */
	tpl_time_bottleneck(3, cost, rate, &best);
	ck_assert(best.value == INFINITY && best.bound == 2 && best.gap == INFINITY);
	tpl_time_rates(2, inf, rate);
	ck_assert(rate[1] == 1.0 / 3 && rate[2] == 0);
	best = (struct tpl_best){.bound = 0, .impossible = true};
	tpl_time_bottleneck(2, inf, rate, &best);
	ck_assert(best.value == INFINITY && best.bound == INFINITY && best.gap == 0);
}
END_TEST

/* ---- plans ---- */

/* Sets the rates: 1/cost, and `fast` for a cost of 0. Returns the rate of the slowest link of the
 * best ring. */
static double set_rates(struct brute *b, double fast)
{
	for (uint32_t k = 0; k < b->n * b->n; k++)
		b->rate[k] = k % (b->n + 1) == 0 ? NAN : b->cost[k] > 0 ? 1 / b->cost[k] : fast;
	return brute_best(b).bottleneck;
}

/* Returns whether all rates are alike, so that they are taken for those of the hosts. */
static bool are_alike(const struct brute *b)
{
	double least = INFINITY, most = 0;

	for (uint32_t k = 0; k < b->n * b->n; k++)
		if (k % (b->n + 1) != 0) {
			least = fmin(least, b->rate[k]);
			most = fmax(most, b->rate[k]);
		}
	return least * 1.05 >= most;
}

START_TEST(plans_equal_the_optimum_over_all_rings)
{
	static const uint32_t most[] = {4, 30, 1000};
	struct tl_rng r = tl_rng_new(2);
	unsigned several = 0, zeros = 0;

	for (uint32_t i = 0; i < 200; i++) {
		struct brute b;
		struct tpl_best best;
		double one, optimum;
		uint32_t n_rings;
		struct tpl *t;

		fill(&r, &b, 3 + i / 3 % 4, most[i % 3]);
		/* The lowest cost is at least 1, and rings are slower than a link of the cost 0. */
		one = set_rates(&b, 1e4);
		if (one == 1e4 || are_alike(&b))
			continue;
		optimum = brute_plan(&b, INFINITY, &n_rings);
		best = solve(&b, TPL_PLAN, &t);
		ck_assert_double_eq_tol(best.bound, optimum, 1e-6 * optimum);
		ck_assert(best.value <= optimum * (1 + 1e-6));
		ck_assert(best.value >= one * (1 - 1e-9));
		ck_assert_double_eq_tol(best.gap, (best.bound - best.value) / best.bound, 1e-12);
		if (n_rings <= TPL_RINGS_MAX && optimum >= one * TPL_PLAN_GAIN * (1 + 1e-6))
			ck_assert_double_eq_tol(best.value, optimum, 1e-6 * optimum);
		several += best.n_rings > 1;
		for (uint32_t k = 0; k < b.n * b.n; k++)
			zeros += b.cost[k] == 0;
		tpl_free(t);
	}
	ck_assert_uint_ge(several, 50);
	ck_assert_uint_ge(zeros, 50);
}
END_TEST

/* Rings of links of the cost 0 are a million times as fast as the fastest other link. */
START_TEST(rings_without_cost_have_finite_rates)
{
	struct brute b = {.n = 3, .cost = {0, 0, 5, 5, 0, 0, 0, 5, 0}};
	struct tpl_best best;
	struct tpl *t;

	best = solve(&b, TPL_PLAN, &t);
	ck_assert(best.optimal && best.n_rings == 1);
	ck_assert_double_eq_tol(best.value, 1e6 / 5, 1e-3);
	tpl_free(t);
	memset(b.cost, 0, sizeof b.cost);
	best = solve(&b, TPL_PLAN, &t);
	ck_assert(best.n_rings == 1 && best.value == 1);
	tpl_free(t);
}
END_TEST

/* All costs that a file can contain have rates that the solver takes. */
START_TEST(very_different_costs_are_solved)
{
	struct brute b = {.n = 3, .cost = {0, 1e12, 1e-300, 0, 0, 1e12, 1e-200, 7, 0}};
	struct tpl_best best;
	struct tpl *t;

	best = solve(&b, TPL_BOTTLENECK, &t);
	ck_assert(best.value == 7 && best.bound == 7 && best.optimal);
	tpl_free(t);
	best = solve(&b, TPL_PLAN, &t);
	ck_assert(best.n_rings >= 1 && best.value >= 1.0 / 7 && best.value < INFINITY);
	tpl_free(t);
}
END_TEST

Suite *time_suite(void)
{
	const TTest *const tests[] = {bottlenecks_equal_all_rings, bounds_and_gaps_are_costs,
		plans_equal_the_optimum_over_all_rings, rings_without_cost_have_finite_rates,
		very_different_costs_are_solved};
	Suite *s = suite_create("time");
	TCase *c = tcase_create("time");

	tcase_set_timeout(c, 60);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
