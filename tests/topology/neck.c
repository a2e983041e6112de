/* SPDX-License-Identifier: MIT
 *
 * The ring with the fastest slowest link.
 */
#include <math.h>
#include <string.h>

#include "tests/topology/brute.h"
#include "tests/topology/suites.h"
#include "topology/tpl_internal.h"

static struct brute b;

static struct tpl *begin(uint32_t n, const double *rate, const double *trip)
{
	struct tpl_problem p = {.n = n, .rate = rate, .trip = trip};
	struct tpl *t;

	ck_assert_int_eq(tpl_new(&p, TPL_BOTTLENECK, 1, &t), 0);
	return t;
}

static double slowest(uint32_t n, const double *rate, const uint32_t *ring)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		least = fmin(least, rate[ring[i] * n + ring[(i + 1) % n]]);
	return least;
}

/* Checks the proven answer for b. cost: NAN, or the lowest cost of a ring with this slowest link.
 */
static void check_proven(double rate, double cost)
{
	struct tpl *t = begin(b.n, b.rate, NULL);
	struct tpl_best best;

	ck_assert(tpl_work(t, 1000000));
	best = tpl_best(t);
	brute_check_rings(b.n, &best);
	if (rate == 0) {
		ck_assert(best.impossible && best.n_rings == 0);
	} else {
		ck_assert(best.optimal && best.n_rings == 1);
		ck_assert(best.value == rate && best.bound == rate);
		ck_assert(slowest(b.n, b.rate, best.ring[0]) == rate);
		ck_assert(isnan(cost) || fabs(brute_cost(&b, best.ring[0]) - cost) < 1e-9 * cost);
	}
	tpl_free(t);
}

START_TEST(small_problems_equal_all_rings)
{
	struct tl_rng r = tl_rng_new(1);

	for (uint32_t i = 0; i < 1000; i++) {
		struct brute_best best;

		brute_fill(&r, &b, 2 + i % 8, i / 8 % BRUTE_KINDS);
		best = brute_best(&b);
		check_proven(best.bottleneck, best.its_cost);
	}
}
END_TEST

START_TEST(problems_of_12_to_16_hosts_equal_a_threshold_search)
{
	struct tl_rng r = tl_rng_new(2);

	for (uint32_t i = 0; i < 100; i++) {
		brute_fill(&r, &b, 12 + i / BRUTE_KINDS % 5, i % BRUTE_KINDS);
		check_proven(brute_bottleneck(&b), NAN);
	}
}
END_TEST

/* Two sites of ten hosts, and one faster link in each direction between them, which every ring
 * needs. */
static void check_sites(double there, double back)
{
	struct tl_rng r = tl_rng_new(3);
	double least = fmin(there, back);
	struct tpl_best best;
	struct tpl *t;

	brute_fill(&r, &b, 20, BRUTE_SITES);
	for (uint32_t k = 0; k < 400; k++)
		if ((k / 20 < 10) != (k % 20 < 10))
			b.rate[k] = 1;
	b.rate[3 * 20 + 14] = there;
	b.rate[17 * 20 + 8] = back;
	t = begin(20, b.rate, NULL);
	(void)tpl_work(t, 3000);
	best = tpl_best(t);
	ck_assert(best.optimal && best.value == least && best.bound == least);
	ck_assert(slowest(20, b.rate, best.ring[0]) == least);
	tpl_free(t);
}

START_TEST(slow_links_that_every_ring_needs_are_used)
{
	check_sites(20, 30);
	check_sites(30, 20);
}
END_TEST

/* Returns the highest slowest link with which hosts from i on get a next host that is not in the
 * set. */
static double assign(uint32_t i, uint32_t set)
{
	double best = 0;

	if (i == b.n)
		return INFINITY;
	for (uint32_t j = 0; j < b.n; j++)
		if (j != i && !(set >> j & 1))
			best = fmax(best, fmin(b.rate[i * b.n + j], assign(i + 1, set | 1u << j)));
	return best;
}

/* Returns the highest rate whose links connect all hosts. */
static double connect_all(void)
{
	double wide[BRUTE_MAX * BRUTE_MAX], least = INFINITY;

	memcpy(wide, b.rate, sizeof wide);
	for (uint32_t k = 0; k < b.n; k++)
		for (uint32_t i = 0; i < b.n; i++)
			for (uint32_t j = 0; j < b.n; j++)
				wide[i * b.n + j] = fmax(wide[i * b.n + j],
					fmin(wide[i * b.n + k], wide[k * b.n + j]));
	for (uint32_t k = 0; k < b.n * b.n; k++)
		least = k % (b.n + 1) == 0 ? least : fmin(least, wide[k]);
	return least;
}

START_TEST(bound_is_that_of_assignments_and_connections)
{
	struct tl_rng r = tl_rng_new(7);
	struct tpl_neckap a;

	for (uint32_t i = 0; i < 300; i++) {
		brute_fill(&r, &b, 2 + i % 6, i / 6 % BRUTE_KINDS);
		tpl_neckap_init(&a, b.n, b.rate);
		while (!tpl_neckap_step(&a))
			;
		ck_assert(a.bound == fmin(assign(0, 0), connect_all()));
		tpl_neckap_clear(&a);
	}
}
END_TEST

START_TEST(planted_ring_of_many_hosts_is_found)
{
	enum { N = 200 };
	static double rate[N * N];
	struct tl_rng r = tl_rng_new(4);
	struct tpl_best best;
	struct tpl *t;

	for (uint32_t k = 0; k < N * N; k++)
		rate[k] = (double)tl_range(&r, 1, 900);
	for (uint32_t i = 0; i < N; i++)
		rate[i * 7 % N * N + (i + 1) * 7 % N] = (double)tl_range(&r, 800, 1000);
	t = begin(N, rate, NULL);
	(void)tpl_work(t, 3000);
	best = tpl_best(t);
	ck_assert_uint_eq(best.n_rings, 1);
	ck_assert(best.value >= 800 && best.bound >= best.value);
	ck_assert(slowest(N, rate, best.ring[0]) == best.value);
	tpl_free(t);
}
END_TEST

START_TEST(answers_only_improve)
{
	struct tl_rng r = tl_rng_new(5);
	struct tpl_best best, before = {.bound = INFINITY};
	struct tpl *t;

	brute_fill(&r, &b, 24, BRUTE_SPARSE);
	t = begin(24, b.rate, NULL);
	for (uint32_t i = 0; i < 1000; i++) {
		(void)tpl_work(t, 1);
		best = tpl_best(t);
		ck_assert(best.value >= before.value && best.bound <= before.bound);
		ck_assert(best.value <= best.bound);
		before = best;
	}
	ck_assert_uint_eq(best.n_rings, 1);
	tpl_free(t);
}
END_TEST

/* All rates are equal, so the sum of the round trips decides. */
START_TEST(round_trips_decide_between_equal_rings)
{
	struct tl_rng r = tl_rng_new(6);
	double trip[49], sum = 0;
	struct tpl_best best;
	struct tpl *t;

	brute_fill(&r, &b, 7, BRUTE_EVEN);
	memcpy(trip, b.rate, sizeof trip);
	memcpy(b.cost, trip, sizeof trip);
	for (uint32_t k = 0; k < 49; k++)
		b.rate[k] = 3;
	t = begin(7, b.rate, trip);
	ck_assert(tpl_work(t, 100000));
	best = tpl_best(t);
	for (uint32_t i = 0; i < 7; i++)
		sum += trip[best.ring[0][i] * 7 + best.ring[0][(i + 1) % 7]];
	ck_assert_double_eq_tol(sum, brute_best(&b).cost, 1e-9);
	tpl_free(t);
}
END_TEST

Suite *neck_suite(void)
{
	const TTest *const tests[] = {small_problems_equal_all_rings,
		problems_of_12_to_16_hosts_equal_a_threshold_search,
		slow_links_that_every_ring_needs_are_used,
		bound_is_that_of_assignments_and_connections, planted_ring_of_many_hosts_is_found,
		answers_only_improve, round_trips_decide_between_equal_rings};
	Suite *s = suite_create("neck");
	TCase *c = tcase_create("neck");

	tcase_set_timeout(c, 60);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
