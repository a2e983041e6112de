/* SPDX-License-Identifier: MIT
 *
 * The ring with the lowest sum of costs.
 */
#include <math.h>
#include <string.h>

#include "common/cc_err.h"
#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

static struct brute b;

/* Solves b. With `steps` the work may be unfinished. */
static struct tpl *solve(uint32_t steps, uint64_t seed)
{
	struct tpl_problem p = {.n = b.n, .cost = b.cost};
	struct tpl *t;

	ck_assert_int_eq(tpl_new(&p, TPL_SUM, seed, &t), 0);
	(void)tpl_work(t, steps);
	return t;
}

/* Checks the proven answer, and that no bound on the way is too high. */
static void check_proven(double cost)
{
	struct tpl *t = solve(0, 1);
	struct tpl_best best;
	bool finished;

	do {
		finished = tpl_work(t, 1);
		best = tpl_best(t);
		ck_assert(best.bound <= cost * (1 + 1e-9) && best.value >= cost * (1 - 1e-9));
	} while (!finished);
	brute_check_rings(b.n, &best);
	if (cost == INFINITY) {
		ck_assert(best.impossible && best.n_rings == 0 && !best.optimal);
	} else {
		ck_assert(best.optimal && best.n_rings == 1 && !best.impossible);
		ck_assert_double_eq_tol(best.value, cost, 1e-9 * cost);
		ck_assert_double_eq_tol(brute_cost(&b, best.ring[0]), best.value, 1e-9 * cost);
		ck_assert_double_eq_tol(best.bound, best.value, 1e-9 * cost);
	}
	tpl_free(t);
}

START_TEST(small_problems_equal_all_rings)
{
	struct tl_rng r = tl_rng_new(1);

	for (uint32_t i = 0; i < 300; i++) {
		brute_fill(&r, &b, 2 + i % 7, i % BRUTE_KINDS);
		check_proven(brute_best(&b).cost);
	}
}
END_TEST

/* 17 hosts: branch and bound must prove the answer. */
START_TEST(branch_and_bound_proves_the_best_ring)
{
	struct tl_rng r = tl_rng_new(2);

	for (uint32_t i = 0; i < BRUTE_KINDS; i++) {
		brute_fill(&r, &b, TPL_EXACT_HOSTS + 1, i);
		check_proven(brute_sum(&b));
	}
}
END_TEST

/* Integers, whose bounds are rounded up: a bound that is rounded too far would prove a wrong ring.
 */
START_TEST(rounded_bounds_prove_the_best_ring)
{
	struct tl_rng r = tl_rng_new(3);

	for (uint32_t i = 0; i < 3; i++) {
		brute_fill(&r, &b, TPL_EXACT_HOSTS + 1, BRUTE_EVEN);
		for (uint32_t k = 0; k < b.n * b.n; k++)
			b.cost[k] = (double)tl_range(&r, 0, 5 + 40 * i);
		check_proven(brute_sum(&b));
	}
}
END_TEST

START_TEST(no_ring_is_proven_with_many_hosts)
{
	struct tl_rng r = tl_rng_new(4);

	brute_fill(&r, &b, 20, BRUTE_EVEN);
	for (uint32_t i = 0; i < 20; i++) /* nothing reaches host 7 */
		b.cost[i * 20 + 7] = INFINITY;
	check_proven(INFINITY);
	brute_fill(&r, &b, 20, BRUTE_EVEN);
	for (uint32_t k = 0; k < 400; k++) /* the first ten hosts do not reach the others */
		if (k / 20 < 10 && k % 20 >= 10)
			b.cost[k] = INFINITY;
	check_proven(INFINITY);
}
END_TEST

/* Links that do not exist may be part of an assignment that is patched, but never of a ring. */
START_TEST(rings_use_only_links_that_exist)
{
	struct tl_rng r = tl_rng_new(5);
	struct tpl_best best;
	struct tpl *t;

	for (uint32_t i = 0; i < 10; i++) {
		brute_fill(&r, &b, 24, BRUTE_SPARSE);
		t = solve(300, i);
		best = tpl_best(t);
		brute_check_rings(24, &best);
		ck_assert(best.n_rings == 0 || brute_cost(&b, best.ring[0]) < INFINITY);
		tpl_free(t);
	}
}
END_TEST

START_TEST(answers_only_improve)
{
	struct tl_rng r = tl_rng_new(6);
	struct tpl_best best, before = {.value = INFINITY};
	struct tpl *t;

	brute_fill(&r, &b, 24, BRUTE_EVEN);
	/* Nearly symmetric, so the bound of an assignment is low, and trees are needed. */
	for (uint32_t k = 0; k < 24 * 24; k++)
		b.cost[k] = fabs((double)(k / 24 * 7 % 24) - (double)(k % 24 * 7 % 24)) +
			    (double)tl_range(&r, 0, 1000) / 1e4;
	t = solve(0, 1);
	for (uint32_t i = 0; i < 1500; i++) {
		bool finished = tpl_work(t, 1);

		best = tpl_best(t);
		ck_assert(best.value <= before.value);
		ck_assert(best.bound >= before.bound);
		ck_assert(best.value >= best.bound * (1 - 1e-12));
		before = best;
		if (finished)
			break;
	}
	ck_assert_uint_eq(best.n_rings, 1);
	ck_assert_msg(best.gap < 0.01, "%g %g", best.value, best.bound);
	tpl_free(t);
}
END_TEST

START_TEST(steps_and_seed_determine_the_answer)
{
	struct tl_rng r = tl_rng_new(7);
	struct tpl *once, *often;
	struct tpl_best x, y;

	brute_fill(&r, &b, 24, BRUTE_COARSE);
	once = solve(60, 9);
	often = solve(0, 9);
	for (int i = 0; i < 20; i++)
		(void)tpl_work(often, 3);
	x = tpl_best(once);
	y = tpl_best(often);
	ck_assert(x.value == y.value && x.bound == y.bound);
	ck_assert_mem_eq(x.ring[0], y.ring[0], 24 * sizeof *x.ring[0]);
	tpl_free(once);
	tpl_free(often);
}
END_TEST

/* A ring of cheap links among links that cost more. The matrix is too large for an exact method. */
START_TEST(planted_ring_of_many_hosts_is_found)
{
	enum { N = 300 };
	static double cost[N * N];
	struct tpl_problem p = {.n = N, .cost = cost};
	struct tl_rng r = tl_rng_new(8);
	struct tpl_best best;
	uint32_t at = 0;
	struct tpl *t;

	for (uint32_t k = 0; k < N * N; k++)
		cost[k] = (double)tl_range(&r, 20, 1000);
	for (uint32_t i = 0; i < N; i++, at = (at + 7) % N) /* 7 and 300 have no common factor */
		cost[at * N + (at + 7) % N] = (double)tl_range(&r, 1, 10);
	ck_assert_int_eq(tpl_new(&p, TPL_SUM, 1, &t), 0);
	ck_assert(tpl_work(t, 2000));
	best = tpl_best(t);
	ck_assert(best.optimal);
	for (uint32_t i = 0; i < N; i++)
		ck_assert_uint_eq(best.ring[0][i], i * 7 % N);
	tpl_free(t);
}
END_TEST

START_TEST(wrong_problems_are_refused)
{
	struct tl_rng r = tl_rng_new(9);
	struct tpl_problem p = {.n = 5, .rate = b.rate, .out = b.out, .in = b.in, .cost = b.cost};
	struct tpl *t;

	brute_fill(&r, &b, 5, BRUTE_EVEN);
	p.n = 1;
	ck_assert_int_eq(tpl_new(&p, TPL_SUM, 1, &t), CC_ERR_LIMIT);
	p.n = TPL_HOSTS_MAX + 1;
	ck_assert_int_eq(tpl_new(&p, TPL_BOTTLENECK, 1, &t), CC_ERR_LIMIT);
	p.n = TPL_PLAN_HOSTS_MAX + 1;
	ck_assert_int_eq(tpl_new(&p, TPL_PLAN, 1, &t), CC_ERR_LIMIT);
	p.n = 5;
	b.cost[3] = -1;
	ck_assert_int_eq(tpl_new(&p, TPL_SUM, 1, &t), CC_ERR_INVAL);
	b.rate[3] = INFINITY;
	ck_assert_int_eq(tpl_new(&p, TPL_PLAN, 1, &t), CC_ERR_INVAL);
	b.rate[3] = NAN;
	ck_assert_int_eq(tpl_new(&p, TPL_BOTTLENECK, 1, &t), CC_ERR_INVAL);
	b.rate[3] = 1;
	b.in[4] = -1;
	ck_assert_int_eq(tpl_new(&p, TPL_PLAN, 1, &t), CC_ERR_INVAL);
	b.in[4] = 0;
	p.rate = NULL;
	ck_assert_int_eq(tpl_new(&p, TPL_PLAN, 1, &t), CC_ERR_INVAL);
}
END_TEST

Suite *sum_suite(void)
{
	const TTest *const tests[] = {small_problems_equal_all_rings,
		branch_and_bound_proves_the_best_ring, rounded_bounds_prove_the_best_ring,
		no_ring_is_proven_with_many_hosts, rings_use_only_links_that_exist,
		answers_only_improve, steps_and_seed_determine_the_answer,
		planted_ring_of_many_hosts_is_found, wrong_problems_are_refused};
	Suite *s = suite_create("sum");
	TCase *c = tcase_create("sum");

	tcase_set_timeout(c, 60);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
