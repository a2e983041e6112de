/* SPDX-License-Identifier: MIT
 *
 * Predicted rates of rings and plans.
 */
#include <math.h>

#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

/* Links from row to column; the link from 3 to 0 does not exist. */
static const double rate[16] = {0, 10, 20, 30, 40, 0, 50, 60, 70, 80, 0, 90, 0, 15, 25, 0};
static const uint32_t up[] = {0, 3, 1, 2}, down[] = {0, 1, 3, 2}, missing[] = {0, 1, 2, 3};

static double plan(const double *out, const double *in, uint32_t n_rings,
	const uint32_t *const *ring, const double *weight)
{
	struct tpl_problem p = {.n = 4, .rate = rate, .out = out, .in = in};

	return tpl_plan_rate(&p, n_rings, ring, weight);
}

START_TEST(slowest_link_bounds_a_ring)
{
	ck_assert(plan(NULL, NULL, 1, (const uint32_t *[]){up}, (double[]){1}) == 15);
	ck_assert(plan(NULL, NULL, 1, (const uint32_t *[]){down}, (double[]){1}) == 10);
}
END_TEST

START_TEST(missing_link_stops_a_plan)
{
	ck_assert(plan(NULL, NULL, 1, (const uint32_t *[]){missing}, (double[]){1}) == 0);
	ck_assert(plan(NULL, NULL, 2, (const uint32_t *[]){up, missing}, (double[]){0.75, 0.25}) ==
		  0);
}
END_TEST

/* The rings share the link from 2 to 0, of the rate 70, which none of them fills. */
START_TEST(weights_divide_the_load)
{
	const uint32_t *rings[] = {up, down};

	/* 0.5 x <= 10 on the link from 0 to 1 */
	ck_assert(plan(NULL, NULL, 2, rings, (double[]){0.5, 0.5}) == 20);
	/* 0.6 x <= 15 on the link from 3 to 1, 0.4 x <= 10 */
	ck_assert_double_eq_tol(plan(NULL, NULL, 2, rings, (double[]){0.6, 0.4}), 25, 1e-12);
}
END_TEST

START_TEST(rings_add_up_on_a_common_link)
{
	const uint32_t other[] = {0, 2, 3, 1}, *rings[] = {up, other};

	/* both contain the link from 3 to 1 */
	ck_assert_double_eq_tol(plan(NULL, NULL, 2, rings, (double[]){0.9, 0.1}), 15, 1e-12);
}
END_TEST

START_TEST(caps_bound_all_rings_together)
{
	const uint32_t *rings[] = {up, down};
	const double out[] = {0, 12, 0, 100}, in[] = {11, 0, 0, 0};

	ck_assert(plan(out, NULL, 2, rings, (double[]){0.5, 0.5}) == 12);
	ck_assert(plan(out, in, 2, rings, (double[]){0.5, 0.5}) == 11);
}
END_TEST

START_TEST(allreduce_sends_each_byte_almost_twice)
{
	ck_assert(tpl_allreduce_rate(2, 10) == 10);
	ck_assert(tpl_allreduce_rate(4, 30) == 20);
}
END_TEST

Suite *rate_suite(void)
{
	const TTest *const tests[] = {slowest_link_bounds_a_ring, missing_link_stops_a_plan,
		weights_divide_the_load, rings_add_up_on_a_common_link,
		caps_bound_all_rings_together, allreduce_sends_each_byte_almost_twice};
	Suite *s = suite_create("rate");
	TCase *c = tcase_create("rate");

	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
