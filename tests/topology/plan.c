/* SPDX-License-Identifier: MIT
 *
 * Plans of several rings.
 */
#include <math.h>
#include <string.h>

#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

static struct brute b;

static double cap_of(const struct brute *x)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < x->n; i++) {
		least = x->out[i] > 0 ? fmin(least, x->out[i]) : least;
		least = x->in[i] > 0 ? fmin(least, x->in[i]) : least;
	}
	return least;
}

static struct tpl *begin(bool caps)
{
	struct tpl_problem p = {
		.n = b.n, .rate = b.rate, .out = caps ? b.out : NULL, .in = caps ? b.in : NULL};
	struct tpl *t;

	ck_assert_int_eq(tpl_new(&p, TPL_PLAN, 1, &t), 0);
	return t;
}

/* Checks that no link and no host has more to do than it can. */
static void check_feasible(const struct tpl_best *best, double cap)
{
	double load[BRUTE_MAX * BRUTE_MAX] = {0};

	brute_check_rings(b.n, best);
	for (uint32_t r = 0; r < best->n_rings; r++)
		for (uint32_t i = 0; i < b.n; i++)
			load[best->ring[r][i] * b.n + best->ring[r][(i + 1) % b.n]] +=
				best->weight[r] * best->value;
	for (uint32_t k = 0; k < b.n * b.n; k++)
		ck_assert(load[k] == 0 || load[k] <= b.rate[k] * (1 + 1e-9));
	ck_assert(best->value <= cap * (1 + 1e-9));
	ck_assert(best->value <= best->bound * (1 + 1e-9));
}

/* Checks the choice between one ring and several. one: the rate of the best ring. */
static void check_gain(const struct tpl_best *best, double one)
{
	if (best->n_rings == 1)
		ck_assert_double_eq_tol(best->value, one, 1e-9 * one);
	else
		ck_assert(best->value >= one * TPL_PLAN_GAIN * (1 - 1e-9));
}

/* Four rings are enough for the optimum, so the plan must have its rate, unless this is hardly more
 * than that of one ring. */
static void check_optimal(const struct tpl_best *best, double optimum, double one)
{
	if (optimum >= one * TPL_PLAN_GAIN * (1 + 1e-6))
		ck_assert_double_eq_tol(best->value, optimum, 1e-6 * optimum);
}

START_TEST(plan_and_bound_are_the_optimum_over_all_rings)
{
	struct tl_rng r = tl_rng_new(1);
	unsigned several = 0, optimal = 0;

	for (uint32_t i = 0; i < 200; i++) {
		bool caps = i % 2 == 1;
		struct tpl_best best;
		double cap, optimum, one;
		uint32_t n_rings;
		struct tpl *t;

		brute_fill(&r, &b, 3 + i / 8 % 4, i / 2 % BRUTE_KINDS);
		if (caps)
			brute_fill_caps(&r, &b);
		if (i % 5 == 0)
			b.rate[1] = 1e10; /* a link that is much faster than all others */
		cap = cap_of(&b);
		optimum = brute_plan(&b, cap, &n_rings);
		one = fmin(cap, brute_best(&b).bottleneck);
		t = begin(caps);
		ck_assert(tpl_work(t, 1000000));
		best = tpl_best(t);
		ck_assert(best.impossible == (optimum < 1e-9));
		if (!best.impossible) {
			ck_assert_double_eq_tol(best.bound, optimum, 1e-6 * optimum);
			check_feasible(&best, cap);
			check_gain(&best, one);
		}
		if (!best.impossible && n_rings <= TPL_RINGS_MAX) {
			check_optimal(&best, optimum, one);
			optimal += n_rings > 1;
		}
		several += best.n_rings > 1;
		tpl_free(t);
	}
	/* Many of these problems need several rings, and for many of them four are enough. */
	ck_assert_uint_ge(several, 50);
	ck_assert_msg(optimal >= 50, "%u of %u", optimal, several);
}
END_TEST

static struct tpl_best solve(bool caps, struct tpl **ret)
{
	*ret = begin(caps);
	ck_assert(tpl_work(*ret, 1000000));
	return tpl_best(*ret);
}

START_TEST(two_directions_double_the_rate)
{
	struct tpl_best best;
	struct tpl *t;

	b.n = 3;
	for (int k = 0; k < 9; k++)
		b.rate[k] = 100;
	for (int i = 0; i < 3; i++)
		b.out[i] = b.in[i] = 1000;
	best = solve(true, &t);
	ck_assert_uint_eq(best.n_rings, 2);
	ck_assert(best.optimal && fabs(best.value - 200) < 1e-6 && fabs(best.bound - 200) < 1e-3);
	ck_assert_double_eq_tol(best.weight[0], 0.5, 1e-9);
	ck_assert_uint_ne(best.ring[0][1], best.ring[1][1]);
	tpl_free(t);
}
END_TEST

START_TEST(gain_below_five_percent_is_not_taken)
{
	struct tpl_best best;
	struct tpl *t;

	b.n = 3;
	for (int k = 0; k < 9; k++)
		b.rate[k] = 100;
	memset(b.in, 0, sizeof b.in);
	for (int i = 0; i < 3; i++)
		b.out[i] = 104;
	best = solve(true, &t);
	ck_assert(best.n_rings == 1 && best.value == 100 && !best.optimal);
	ck_assert_double_eq_tol(best.bound, 104, 1e-4);
	tpl_free(t);
	for (int i = 0; i < 3; i++)
		b.out[i] = 106;
	best = solve(true, &t);
	ck_assert(best.n_rings == 2 && fabs(best.value - 106) < 1e-6 && best.optimal);
	tpl_free(t);
}
END_TEST

START_TEST(equal_links_get_one_ring)
{
	struct tpl_best best;
	struct tpl *t;

	for (b.n = 2; b.n <= 20; b.n++) {
		for (uint32_t k = 0; k < b.n * b.n; k++)
			b.rate[k] = 1e9;
		for (uint32_t i = 0; i < b.n; i++)
			b.out[i] = b.in[i] = 1e9;
		best = solve(true, &t);
		ck_assert(best.n_rings == 1 && best.optimal && best.value == 1e9);
		tpl_free(t);
		/* If no cap is known, equal rates are taken for the caps. */
		best = solve(false, &t);
		ck_assert(best.n_rings == 1 && best.value == 1e9 && best.bound == 1e9);
		tpl_free(t);
	}
}
END_TEST

/* The bound of up to 16 hosts is proven, so the work ends. */
START_TEST(plans_of_12_to_16_hosts_are_finished)
{
	struct tl_rng r = tl_rng_new(2);
	struct tpl_best best;
	struct tpl *t;

	for (uint32_t i = 0; i < 8; i++) {
		brute_fill(&r, &b, i < 4 ? 12 : 16, i % BRUTE_KINDS);
		brute_fill_caps(&r, &b);
		best = solve(true, &t);
		check_feasible(&best, cap_of(&b));
		check_gain(&best, fmin(cap_of(&b), brute_bottleneck(&b)));
		tpl_free(t);
	}
}
END_TEST

START_TEST(plans_of_more_hosts_are_feasible)
{
	struct tl_rng r = tl_rng_new(3);
	struct tpl_best best;
	struct tpl *t;

	for (uint32_t i = 0; i < 4; i++) {
		brute_fill(&r, &b, BRUTE_MAX, i);
		brute_fill_caps(&r, &b);
		t = begin(true);
		for (int k = 0; k < 20; k++) {
			(void)tpl_work(t, 20);
			best = tpl_best(t);
			check_feasible(&best, cap_of(&b));
		}
		ck_assert_uint_ge(best.n_rings, 1);
		tpl_free(t);
	}
}
END_TEST

START_TEST(steps_and_seed_determine_the_plan)
{
	struct tl_rng r = tl_rng_new(4);
	struct tpl *once, *often;
	struct tpl_best x, y;

	brute_fill(&r, &b, 14, BRUTE_EVEN);
	once = begin(false);
	often = begin(false);
	(void)tpl_work(once, 900);
	for (int i = 0; i < 300; i++)
		(void)tpl_work(often, 3);
	x = tpl_best(once);
	y = tpl_best(often);
	ck_assert(x.value == y.value && x.bound == y.bound && x.n_rings == y.n_rings);
	for (uint32_t k = 0; k < x.n_rings; k++) {
		ck_assert(x.weight[k] == y.weight[k]);
		ck_assert_mem_eq(x.ring[k], y.ring[k], 14 * sizeof *x.ring[k]);
	}
	tpl_free(once);
	tpl_free(often);
}
END_TEST

Suite *plan_suite(void)
{
	const TTest *const tests[] = {plan_and_bound_are_the_optimum_over_all_rings,
		two_directions_double_the_rate, gain_below_five_percent_is_not_taken,
		equal_links_get_one_ring, plans_of_12_to_16_hosts_are_finished,
		plans_of_more_hosts_are_feasible, steps_and_seed_determine_the_plan};
	Suite *s = suite_create("plan");
	TCase *c = tcase_create("plan");

	tcase_set_timeout(c, 60);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
