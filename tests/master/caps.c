/* SPDX-License-Identifier: MIT
 *
 * What hosts can carry over all their links together: the round in which all hosts send, and the
 * rounds of single hosts that follow where it says too little.
 */
#include "ccoip-masterd/core/ccm_caps.h"
#include "tests/master/optimize.h"
#include "tests/master/suites.h"

#define HOSTS 8u
#define LINKS (HOSTS - 1)

/* ---- which caps are suspect ---- */

static struct ccm_links links_of(uint32_t n, const uint64_t *v)
{
	struct ccm_links x = {.sum = 0};
	uint32_t i;

	for (i = 0; i < n; i++)
		ccm_links_add(&x, v[i]);
	return x;
}

/* No adapter is the limit: all links together are as fast as each one alone, or nearly so. */
START_TEST(links_that_were_the_limit_are_not_suspect)
{
	static const uint64_t v[] = {100, 300, 100};
	struct ccm_links x = links_of(3, v);

	ck_assert(!ccm_cap_is_suspect(&x, 500));
	ck_assert(!ccm_cap_is_suspect(&x, 450));
	ck_assert(ccm_cap_is_suspect(&x, 440));
	ck_assert_uint_eq(ccm_cap_of(&x, 450), 500);
	ck_assert_uint_eq(ccm_cap_of(&x, 440), 440);
	ck_assert_uint_eq(ccm_cap_of(&x, 510), 510);
}
END_TEST

/* Two links alone are as fast as all links together: that is the rate of the adapter. */
START_TEST(adapter_that_bounds_single_links_is_not_suspect)
{
	static const uint64_t v[] = {100, 1000, 970, 500};
	struct ccm_links x = links_of(4, v);

	ck_assert(!ccm_cap_is_suspect(&x, 1000));
	ck_assert(!ccm_cap_is_suspect(&x, 1080));
	ck_assert(!ccm_cap_is_suspect(&x, 920));
	ck_assert(ccm_cap_is_suspect(&x, 1200));
	ck_assert(ccm_cap_is_suspect(&x, 850));
	ck_assert_uint_eq(ccm_cap_of(&x, 850), 1000);
}
END_TEST

/* A sum that equals the rate of a single link by chance proves nothing. */
START_TEST(sum_like_the_only_fast_link_is_suspect)
{
	static const uint64_t v[] = {1000, 900, 200};
	struct ccm_links x = links_of(3, v);

	ck_assert(ccm_cap_is_suspect(&x, 1000));
}
END_TEST

/* ---- rounds ---- */

/* Sets the rate of all links. */
static void all_rates(uint64_t rate)
{
	uint32_t i, k;

	for (i = 0; i < HOSTS_MAX; i++)
		for (k = 0; k < HOSTS_MAX; k++)
			rates[i][k] = rate;
}

static void end_round(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		fk_measured(h[i]);
}

/* Lets all hosts vote, and measures the pairs: each link has 2 Gbit/s. All hosts then have the
 * order to send to all. */
static void begin_cap_round(void)
{
	uint32_t i;

	all_rates(2 * GBIT);
	run_of(HOSTS);
	manual_measurements(HOSTS);
	vote(HOSTS);
	for (i = 0; i < LINKS; i++)
		end_round(HOSTS);
	for (i = 0; i < HOSTS; i++)
		ck_assert(h[i]->order.n_to == LINKS && h[i]->order.hold);
}

/* Expects that host i exchanges with all others, and they only with it. */
static void expect_single(uint32_t single)
{
	uint32_t i;

	for (i = 0; i < HOSTS; i++) {
		const struct wm_measure *o = &h[i]->order;

		ck_assert(o->hold);
		ck_assert_uint_eq(o->ms, 252); /* a quarter of a second and ten round trips */
		ck_assert_uint_eq(o->n_to, i == single ? LINKS : 1);
		ck_assert_uint_eq(o->n_from, i == single ? LINKS : 1);
		ck_assert(i == single || index_of(&o->to[0].agent) == single);
		ck_assert(i == single || cc_id_eq(&o->from[0], &h[single]->id));
	}
}

/* Expects that the load has ended, and that the solver is asked. Returns the problem. */
static const struct ccm_problem *expect_end(void)
{
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		ck_assert_uint_eq(h[i]->order.n_to + h[i]->order.n_from, 0);
	return fk_problem(&f, 0);
}

START_TEST(uniform_hosts_exchange_all_at_once_only)
{
	const struct ccm_problem *x;
	uint32_t i;

	begin_cap_round();
	all_rates(2 * GBIT / LINKS); /* adapters of 2 Gbit/s */
	end_round(HOSTS);
	x = expect_end();
	for (i = 0; i < HOSTS; i++)
		ck_assert(x->out[i] == 2 * GBIT && x->in[i] == 2 * GBIT);
}
END_TEST

/* Lets a host send half of what it can carry in the cap round. Its own round begins. */
static void make_suspect(uint32_t host)
{
	uint32_t i;

	begin_cap_round();
	for (i = 0; i < HOSTS; i++)
		rates[host][i] = GBIT;
	end_round(HOSTS);
	expect_single(host);
}

/* Fair sharing gave host 2 less than it can carry. */
START_TEST(host_with_a_suspect_cap_exchanges_alone_with_all)
{
	const struct ccm_problem *x;
	uint32_t i;

	make_suspect(2);
	for (i = 0; i < HOSTS; i++) {
		rates[2][i] = 3 * GBIT / 2;
		rates[i][2] = 2 * GBIT;
	}
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->out[2], LINKS * (3 * GBIT / 2));
	ck_assert_uint_eq(x->in[2], LINKS * 2 * GBIT);
	ck_assert_uint_eq(x->out[3], LINKS * 2 * GBIT);
	ck_assert_uint_eq(x->rates[2 * HOSTS + 3], 2 * GBIT); /* that of the pair alone */
	solve_unchanged();
	expect_answer(HOSTS, true, "");
}
END_TEST

START_TEST(suspect_cap_of_what_a_host_receives_is_measured)
{
	const struct ccm_problem *x;
	uint32_t i;

	begin_cap_round();
	for (i = 0; i < HOSTS; i++)
		rates[i][5] = GBIT;
	end_round(HOSTS);
	expect_single(5);
	for (i = 0; i < HOSTS; i++)
		rates[i][5] = 3 * GBIT / 2;
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->in[5], LINKS * (3 * GBIT / 2));
	ck_assert_uint_eq(x->out[5], LINKS * 2 * GBIT);
}
END_TEST

/* A measurement may be disturbed, but what was carried once can be carried. */
START_TEST(cap_is_the_most_that_was_carried)
{
	const struct ccm_problem *x;

	make_suspect(2);
	all_rates(GBIT / 2);
	end_round(HOSTS);
	x = expect_end();
	ck_assert_uint_eq(x->out[2], LINKS * GBIT);
	ck_assert_uint_eq(x->in[2], LINKS * 2 * GBIT);
}
END_TEST

START_TEST(lowest_caps_come_first)
{
	bool seen[HOSTS] = {false};
	uint32_t i, k, single;

	begin_cap_round();
	all_rates(GBIT);
	for (i = 0; i < HOSTS; i++) {
		rates[6][i] = GBIT * 8 / 10;
		rates[i][3] = GBIT * 7 / 10;
	}
	end_round(HOSTS);
	for (k = 0; k < HOSTS; k++) {
		for (single = 0; h[single]->order.n_to != LINKS; single++)
			ck_assert_uint_lt(single, HOSTS - 1);
		ck_assert(!seen[single]);
		seen[single] = true;
		ck_assert(k != 0 || single == 3);
		ck_assert(k != 1 || single == 6);
		expect_single(single);
		end_round(HOSTS);
	}
	(void)expect_end();
}
END_TEST

START_TEST(trusted_caps_are_not_measured_again)
{
	uint32_t i;

	begin_cap_round();
	all_rates(GBIT);
	for (i = 0; i < HOSTS; i++)
		h[i]->auto_measured = true;
	fk_settle(&f);
	solve_unchanged();
	fk_forget(&f);
	vote(HOSTS);
	expect_answer(HOSTS, true, "");
	ck_assert_uint_eq(count_all(HOSTS, WM_MEASURE), 0);
}
END_TEST

/* ---- failures ---- */

/* All others stop, too. They answered already, but their load goes on. */
START_TEST(silent_host_ends_the_round_of_a_single_host)
{
	uint32_t i;

	make_suspect(2);
	for (i = 0; i < HOSTS; i++)
		if (i != 4)
			fk_measured(h[i]);
	fk_forget(&f);
	fk_tick(&f, 4000);
	ck_assert_uint_eq(count_all(HOSTS, WM_BALLOT_END), 0);
	fk_tick(&f, 3300);
	expect_answer(HOSTS, false, "host h4 did not end its measurement within");
	ck_assert_uint_eq(count_all(HOSTS, WM_MEASURE), HOSTS);
	for (i = 0; i < HOSTS; i++) {
		ck_assert_uint_eq(h[i]->order.n_to + h[i]->order.n_from, 0);
		h[i]->auto_measured = true;
	}
	optimization_works(HOSTS);
}
END_TEST

Suite *caps_suite(void)
{
	Suite *s = suite_create("caps");
	TCase *pure = tcase_create("suspect"), *tc = tcase_create("rounds");

	tcase_add_test(pure, links_that_were_the_limit_are_not_suspect);
	tcase_add_test(pure, adapter_that_bounds_single_links_is_not_suspect);
	tcase_add_test(pure, sum_like_the_only_fast_link_is_suspect);
	suite_add_tcase(s, pure);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, uniform_hosts_exchange_all_at_once_only);
	tcase_add_test(tc, host_with_a_suspect_cap_exchanges_alone_with_all);
	tcase_add_test(tc, suspect_cap_of_what_a_host_receives_is_measured);
	tcase_add_test(tc, cap_is_the_most_that_was_carried);
	tcase_add_test(tc, lowest_caps_come_first);
	tcase_add_test(tc, trusted_caps_are_not_measured_again);
	tcase_add_test(tc, silent_host_ends_the_round_of_a_single_host);
	suite_add_tcase(s, tc);
	return s;
}
