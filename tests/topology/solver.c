/* SPDX-License-Identifier: MIT
 *
 * The thread of the master that solves the problems of optimizations.
 */
#include "ccoip-masterd/solver.h"

#include "common/cc_loop.h"
#include "common/cc_must.h"
#include "tests/common/testlib.h"
#include "tests/topology/suites.h"

#define HARD 60u /* hosts of a problem for which no second suffices */

static struct cc_loop *loop;
static struct solver *solver;
static uint32_t answers[3]; /* of each problem */
static bool searching[3];   /* what the last answer has said */
static uint64_t wanted;     /* number of the problem whose end the loop awaits */

static void on_solved(void *arg, const struct ccm_solution *x)
{
	(void)arg;
	ck_assert_uint_gt(x->n_rings, 0);
	ck_assert(answers[x->number] == 0 || searching[x->number]);
	answers[x->number]++;
	searching[x->number] = x->searching;
	if (x->number == wanted)
		cc_loop_stop(loop);
}

static void post(uint64_t number, uint32_t n)
{
	struct tl_rng r = tl_rng_new(number);
	struct ccm_problem p = {.number = number, .n = n, .max_rings = 4};
	size_t all = (size_t)n * n;

	p.rates = cc_must_zalloc(all, sizeof *p.rates);
	p.trips_us = cc_must_zalloc(all, sizeof *p.trips_us);
	p.out = cc_must_zalloc(n, sizeof *p.out);
	p.in = cc_must_zalloc(n, sizeof *p.in);
	for (size_t i = 0; i < all; i++)
		p.rates[i] = tl_range(&r, 100, 1000) * 1000000;
	solver_post(solver, &p);
	wanted = number;
}

/* The first answer comes within a second, although it is not proven. Then the search goes on until
 * another problem comes, and says so. */
START_TEST(search_goes_on_until_the_next_problem)
{
	loop = cc_loop_new();
	solver = solver_new(loop, on_solved, NULL);
	ck_assert(loop && solver);
	post(1, HARD);
	cc_loop_run(loop);
	ck_assert_uint_eq(answers[1], 1);
	ck_assert(searching[1]);
	post(2, 3);
	cc_loop_run(loop);
	ck_assert_uint_eq(answers[2], 1);
	ck_assert(!searching[2]);
	ck_assert(!searching[1]);
	solver_free(solver);
	cc_loop_free(loop);
}
END_TEST

Suite *solver_suite(void)
{
	Suite *s = suite_create("solver");
	TCase *c = tcase_create("solver");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, search_goes_on_until_the_next_problem);
	suite_add_tcase(s, c);
	return s;
}
