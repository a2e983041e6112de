/* SPDX-License-Identifier: MIT
 *
 * The master's core: what operations show of the rates of links. Links that were faster than known,
 * and links that have become slow.
 */
#include "tests/master/optimize.h"
#include "tests/master/suites.h"

#define SECOND_MS 1000u
#define HOUR_MS   3600000u

/* The agent of host `from` reports what its link to this agent has carried. */
static void carried_to(uint32_t from, struct cc_id to, double gbits)
{
	struct wm_rate v = {.agent = to, .rate = (uint64_t)(gbits * GBIT), .trip_us = 33};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.passive = true, .n = 1, .rates = &v}};

	fk_send(h[from], &m);
}

static void carried(uint32_t from, uint32_t to, double gbits)
{
	carried_to(from, h[to]->id, gbits);
}

/* Such a report comes every 5 seconds, from now until `s` seconds later. */
static void carried_for(uint32_t from, uint32_t to, double gbits, uint32_t s)
{
	carried(from, to, gbits);
	for (; s > 0; s -= 5) {
		fk_tick(&f, 5 * SECOND_MS);
		carried(from, to, gbits);
	}
}

/* ---- what the master knows ---- */

static struct {
	struct cc_id from, to;
	struct ccm_rate_info info;
	uint32_t n, all;
} seen;

static void see(void *arg, const struct ccm_rate_info *r)
{
	(void)arg;
	seen.all++;
	if (!cc_id_eq(&r->from, &seen.from) || !cc_id_eq(&r->to, &seen.to))
		return;
	seen.info = *r;
	seen.n++;
}

static uint32_t look(uint32_t from, uint32_t to)
{
	memset(&seen, 0, sizeof seen);
	seen.from = h[from]->id;
	seen.to = h[to]->id;
	ccm_each_rate(f.m, f.now, see, NULL);
	return seen.n;
}

static void expect(uint32_t from, uint32_t to, double gbits, const char *source, bool trusted)
{
	ck_assert_uint_eq(look(from, to), 1);
	ck_assert_uint_eq(seen.info.rate, (uint64_t)(gbits * GBIT));
	ck_assert_str_eq(seen.info.source, source);
	ck_assert((seen.info.confidence > 0) == trusted);
}

static uint64_t age_s(uint32_t from, uint32_t to)
{
	ck_assert_uint_eq(look(from, to), 1);
	return seen.info.age_ns / 1000000000;
}

/* Three hosts have measured their links. Those of their ring h0, h1, h2 have 2, 4 and 3 Gbit/s. The
 * ring is predicted to have this rate; 0: nothing is predicted. */
static void measured_ring(double gbits)
{
	run_of(3);
	vote(3);
	solve(1, NULL, gbits * GBIT, gbits * GBIT);
	expect_answer(3, true, "");
	fk_forget(&f);
	f.log[0] = '\0';
	expect(0, 1, 2, "benchmark", true);
	expect(1, 2, 4, "benchmark", true);
}

/* ---- faster links ---- */

START_TEST(link_can_carry_what_it_has_carried)
{
	measured_ring(2);
	carried(0, 1, 2.2);
	expect(0, 1, 2, "benchmark", true); /* hardly more */
	carried(0, 1, 2.3);
	expect(0, 1, 2.3, "operations", true);
	ck_assert_uint_ne(seen.info.trip_us, 33); /* under load */
	carried(0, 1, 2.2);
	expect(0, 1, 2.3, "operations", true);
	expect(1, 2, 4, "benchmark", true);
	expect(1, 0, 2, "benchmark", true);
}
END_TEST

/* The host can carry at least as much. */
START_TEST(faster_link_raises_the_caps)
{
	const struct ccm_problem *x;

	measured_ring(2);
	carried(0, 1, 50);
	fk_forget_problems(&f);
	vote(3);
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->rates[0 * 3 + 1], 50 * GBIT);
	ck_assert_uint_eq(x->out[0], 50 * GBIT);
	ck_assert_uint_eq(x->in[1], 50 * GBIT);
	ck_assert_uint_lt(x->in[0], 50 * GBIT);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 0);
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

/* Such a link may be able to carry more. */
START_TEST(link_that_was_never_measured_is_measured)
{
	run_of(3);
	carried(0, 1, 1.5);
	expect(0, 1, 1.5, "operations", false);
	ck_assert_uint_eq(seen.info.trip_us, 33);
	ck_assert_uint_eq(seen.all, 1);
	carried_for(0, 1, 0.1, 40); /* there is nothing to compare with */
	ck_assert_str_eq(f.log, "");
	vote(3);
	solve_unchanged();
	expect_answer(3, true, "");
	expect(0, 1, 2, "benchmark", true);
}
END_TEST

START_TEST(unreachable_link_that_carries_something_is_measured)
{
	rates[0][1] = 0;
	run_of(3);
	vote(3);
	solve_unchanged();
	carried(0, 1, 1);
	expect(0, 1, 1, "operations", false);
}
END_TEST

/* ---- confirmed rates ---- */

START_TEST(confirmed_rates_are_trusted_longer)
{
	measured_ring(2);
	fk_tick(&f, HOUR_MS - SECOND_MS);
	carried(0, 1, 1.1);
	ck_assert_uint_eq(age_s(0, 1), 0);
	fk_tick(&f, 2 * SECOND_MS);
	expect(0, 1, 2, "benchmark", true);
	expect(1, 2, 4, "benchmark", false);
}
END_TEST

/* The ring has 2 Gbit/s, so a link of 4 Gbit/s need not show what it can carry. */
START_TEST(part_of_a_rate_confirms_nothing)
{
	measured_ring(2);
	fk_tick(&f, 60 * SECOND_MS);
	carried(1, 2, 2.1);
	ck_assert_uint_ge(age_s(1, 2), 60);
	carried(1, 2, 4.1);
	ck_assert_uint_eq(age_s(1, 2), 0);
	expect(1, 2, 4, "benchmark", true);
	carried(1, 0, 1.5); /* no ring contains it */
	ck_assert_uint_ge(age_s(1, 0), 60);
}
END_TEST

/* ---- slow links ---- */

START_TEST(link_that_is_slow_for_half_a_minute_is_stale)
{
	measured_ring(2);
	carried_for(0, 1, 0.9, 25);
	fk_tick(&f, 4 * SECOND_MS);
	carried(0, 1, 0.9);
	expect(0, 1, 2, "benchmark", true);
	ck_assert_str_eq(f.log, "");
	fk_tick(&f, 2 * SECOND_MS);
	carried(0, 1, 0.8);
	expect(0, 1, 2, "benchmark", false);
	assert_contains(f.log, "the link from host h0 to host h1 has become slow");
	assert_contains(f.log, "for 31 s operations have got 800.0 Mbit/s");
	assert_contains(f.log, "the 2000.0 Mbit/s that it could carry before");
	assert_contains(f.log, "pcclOptimizeTopology");
	f.log[0] = '\0';
	carried_for(0, 1, 0.9, 60);
	ck_assert_str_eq(f.log, ""); /* logged once */
	carried(0, 1, 2);
	expect(0, 1, 2, "benchmark", false); /* until it is measured */
}
END_TEST

START_TEST(next_optimization_measures_the_slow_link)
{
	const struct ccm_problem *x;

	measured_ring(2);
	carried_for(0, 1, 0.5, 30);
	rates[0][1] = GBIT / 2;
	fk_forget(&f);
	fk_forget_problems(&f);
	vote(3);
	ck_assert_uint_eq(count_all(3, WM_MEASURE), 4); /* one pair, twice: the order and its end */
	x = fk_problem(&f, 0);
	ck_assert_uint_eq(x->rates[0 * 3 + 1], GBIT / 2);
	solve(1, NULL, 0.5 * GBIT, 0.5 * GBIT);
	expect_answer(3, true, "");
	expect(0, 1, 0.5, "benchmark", true);
	f.log[0] = '\0';
	carried_for(0, 1, 0.4, 60);
	ck_assert_str_eq(f.log, "");
	/* It counts anew. */
	carried_for(0, 1, 0.2, 25);
	expect(0, 1, 0.5, "benchmark", true);
	fk_tick(&f, 5 * SECOND_MS);
	carried(0, 1, 0.2);
	expect(0, 1, 0.5, "benchmark", false);
}
END_TEST

START_TEST(one_fast_report_ends_a_slow_row)
{
	measured_ring(2);
	carried_for(0, 1, 0.9, 25);
	carried(0, 1, 1.1);
	carried_for(0, 1, 0.9, 25);
	expect(0, 1, 2, "benchmark", true);
	ck_assert_str_eq(f.log, "");
}
END_TEST

/* Nobody knows how fast the link was in between. */
START_TEST(rare_reports_make_no_row)
{
	uint32_t i;

	measured_ring(2);
	for (i = 0; i < 5; i++) {
		carried(0, 1, 0.9);
		fk_tick(&f, 31 * SECOND_MS);
	}
	expect(0, 1, 2, "benchmark", true);
}
END_TEST

/* Of 4 Gbit/s the ring wants 2. */
START_TEST(link_of_which_little_is_wanted_is_not_slow)
{
	measured_ring(2);
	carried_for(1, 2, 1.1, 60);
	expect(1, 2, 4, "benchmark", true);
	ck_assert_str_eq(f.log, "");
	carried_for(1, 2, 0.9, 30);
	expect(1, 2, 4, "benchmark", false);
	assert_contains(f.log, "the 2000.0 Mbit/s that its rings need");
}
END_TEST

START_TEST(without_a_prediction_the_whole_rate_is_expected)
{
	measured_ring(0);
	carried_for(1, 2, 1.9, 30);
	expect(1, 2, 4, "benchmark", false);
	assert_contains(f.log, "the 4000.0 Mbit/s that it could carry before");
}
END_TEST

START_TEST(link_of_no_ring_is_not_slow)
{
	measured_ring(2);
	carried_for(1, 0, 0.1, 60);
	expect(1, 0, 2, "benchmark", true);
	ck_assert_str_eq(f.log, "");
}
END_TEST

/* Two rings of shares 30 and 20 have 5 Gbit/s together. Both contain the link from h2 to h1 (4
 * Gbit/s), one contains that from h1 to h3 (1 Gbit/s). */
START_TEST(rings_that_share_a_link_want_their_parts)
{
	static const uint16_t order[] = {0, 2, 1, 3, 0, 3, 2, 1};

	rates[2][1] = 20 * GBIT;
	rates[1][3] = 20 * GBIT;
	run_of(4);
	vote(4);
	solve(2, order, 5.0 * GBIT, GBIT);
	expect_answer(4, true, "");
	f.log[0] = '\0';
	carried_for(1, 3, 1.6, 60); /* more than half of 3 Gbit/s */
	carried_for(2, 1, 2.6, 60); /* of 5 Gbit/s */
	ck_assert_str_eq(f.log, "");
	carried_for(1, 3, 1.4, 30);
	assert_contains(f.log, "the 3000.0 Mbit/s that its rings need");
	carried_for(2, 1, 2.4, 30);
	assert_contains(f.log, "the 5000.0 Mbit/s that its rings need");
}
END_TEST

/* The agent remembers the measurement by its own clock, which may be slower, and sends its age in
 * whole seconds. */
START_TEST(slow_link_stays_stale_when_its_agent_comes_back)
{
	struct wm_rate v = {.rate = 2 * GBIT, .confidence = 100};
	struct wm_msg m = {.type = WM_RATES, .u.rates = {.n = 1, .rates = &v}};

	measured_ring(2);
	fk_tick(&f, 900);
	carried_for(0, 1, 0.5, 30);
	v.agent = h[1]->id;
	v.trip_us = 100 + h[0]->conn; /* as fake.c measures it */
	v.age_s = _i == 0 ? 30 : 20;
	fk_send(h[0], &m);
	expect(0, 1, 2, "benchmark", false);
	v.rate = GBIT; /* another measurement */
	v.age_s = 20;
	fk_send(h[0], &m);
	expect(0, 1, 1, "agent", true);
}
END_TEST

/* ---- reports that do not count ---- */

START_TEST(reports_of_other_agents_are_ignored)
{
	uint32_t i;

	run_of(3);
	newcomer(3, 0);
	newcomer(4, 9);
	carried_to(0, fk_id(&f), 1);
	carried_to(0, h[0]->id, 1);
	carried(0, 3, 1); /* it waits to be accepted */
	carried(3, 0, 1);
	ck_assert_uint_eq(look(0, 3), 0);
	ck_assert_uint_eq(seen.all, 0);
	for (i = 0; i < 3; i++)
		fk_topo(&p[i]);
	carried(0, 4, 1); /* it has another group */
	look(0, 4);
	ck_assert_uint_eq(seen.all, 0);
	carried(0, 3, 1);
	ck_assert_uint_eq(look(0, 3), 1);
}
END_TEST

Suite *rates_suite(void)
{
	Suite *s = suite_create("rates");
	TCase *tc = tcase_create("operations");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, link_can_carry_what_it_has_carried);
	tcase_add_test(tc, faster_link_raises_the_caps);
	tcase_add_test(tc, link_that_was_never_measured_is_measured);
	tcase_add_test(tc, unreachable_link_that_carries_something_is_measured);
	tcase_add_test(tc, confirmed_rates_are_trusted_longer);
	tcase_add_test(tc, part_of_a_rate_confirms_nothing);
	tcase_add_test(tc, link_that_is_slow_for_half_a_minute_is_stale);
	tcase_add_test(tc, next_optimization_measures_the_slow_link);
	tcase_add_test(tc, one_fast_report_ends_a_slow_row);
	tcase_add_test(tc, rare_reports_make_no_row);
	tcase_add_test(tc, link_of_which_little_is_wanted_is_not_slow);
	tcase_add_test(tc, without_a_prediction_the_whole_rate_is_expected);
	tcase_add_test(tc, link_of_no_ring_is_not_slow);
	tcase_add_test(tc, rings_that_share_a_link_want_their_parts);
	tcase_add_loop_test(tc, slow_link_stays_stale_when_its_agent_comes_back, 0, 2);
	tcase_add_test(tc, reports_of_other_agents_are_ignored);
	suite_add_tcase(s, tc);
	return s;
}
