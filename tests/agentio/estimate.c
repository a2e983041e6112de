/* SPDX-License-Identifier: MIT
 *
 * The rate that follows from the reports of a receiver, for series of reports as different paths
 * make them.
 */
#include "pcclagentd/net/estimate.h"
#include "tests/agentio/suites.h"

#define REPORT_US 20000u
#define LONGEST   3000u /* ms */
#define ALL_US    (LONGEST * UINT64_C(1000))
#define AGENT_US  UINT64_C(5000000) /* this agent's clock when the receiver's clock is 0 */

static struct net_estimate e;
static struct net_point now;
static double of_others; /* bit/s that come from other agents meanwhile */
static uint32_t lcg;

static void begin(uint32_t longest_ms, uint32_t trip_us)
{
	now = (struct net_point){0};
	lcg = 1;
	of_others = 0;
	net_estimate_begin(&e, &now, longest_ms, trip_us);
}

/* The receiver reports after `us` in which bytes came at this rate. */
static void report(uint64_t us, double bits_per_s)
{
	uint64_t bytes = (uint64_t)(bits_per_s / 8 * (double)us / 1e6);

	now.us += us;
	now.bytes += bytes;
	now.all += bytes + (uint64_t)(of_others / 8 * (double)us / 1e6);
	net_estimate_add(&e, &now, AGENT_US + now.us);
}

/* Reports at a constant rate until the rate is stable, at most for `ms`. Returns the time in ms. */
static uint64_t until_stable(uint64_t ms, double bits_per_s)
{
	uint64_t begun = now.us;

	while (!net_estimate_is_stable(&e) && now.us - begun < ms * 1000)
		report(REPORT_US, bits_per_s);
	return (now.us - begun) / 1000;
}

static double random_part(void)
{
	lcg = lcg * 1664525u + 1013904223u;
	return (double)(lcg >> 8) / (double)(1u << 24);
}

static void expect_rate(double right, double tolerance)
{
	double got = (double)net_estimate_rate(&e);

	ck_assert_msg(got >= right * (1 - tolerance) && got <= right * (1 + tolerance),
		"%.0f instead of %.0f", got, right);
}

START_TEST(constant_rate_is_stable_early)
{
	begin(LONGEST, 100);
	ck_assert_uint_eq(net_estimate_rate(&e), 0);
	ck_assert_uint_lt(until_stable(LONGEST, 1e9), LONGEST / 2);
	expect_rate(1e9, 0.001);
}
END_TEST

/* The rate doubles with each round trip, up to the rate of the path. */
START_TEST(slow_start_does_not_count)
{
	const uint32_t trip_ms = 100;

	begin(LONGEST, trip_ms * 1000);
	for (uint32_t mbit = 1; mbit < 200; mbit *= 2) {
		for (uint32_t ms = 0; ms < trip_ms; ms += REPORT_US / 1000)
			report(REPORT_US, mbit * 1e6);
		ck_assert(!net_estimate_is_stable(&e));
	}
	ck_assert_uint_lt(until_stable(2200, 2e8), 2000);
	expect_rate(2e8, 0.01);
}
END_TEST

/* A rate that goes up and down: windows of 80 ms see the lowest and the highest. */
START_TEST(confidence_is_the_lowest_rate_relative_to_the_highest)
{
	begin(LONGEST, 100);
	ck_assert_uint_eq(net_estimate_confidence(&e), NET_LEAST_CONFIDENCE);
	(void)until_stable(LONGEST, 1e9);
	ck_assert_uint_ge(net_estimate_confidence(&e), 99);
	begin(LONGEST, 100);
	while (now.us < ALL_US - REPORT_US)
		report(REPORT_US, now.us / 500000 % 2 ? 8e8 : 1e9);
	ck_assert_uint_eq(net_estimate_confidence(&e), 80);
	begin(LONGEST, 100);
	while (now.us < ALL_US - REPORT_US)
		report(REPORT_US, now.us / 500000 % 2 ? 1e8 : 1e9);
	ck_assert_uint_eq(net_estimate_confidence(&e), NET_LEAST_CONFIDENCE);
}
END_TEST

/* Few windows have no slow start in them, so the rate may still grow. */
START_TEST(short_measurement_is_unsure)
{
	begin(LONGEST, 100);
	for (int i = 0; i < 6; i++)
		report(ALL_US / 32, 1e9);
	ck_assert_uint_gt(net_estimate_rate(&e), 0);
	ck_assert_uint_eq(net_estimate_confidence(&e), NET_LEAST_CONFIDENCE);
}
END_TEST

/* Another agent begins late, and later both lose packets, so the host receives less than it can. */
START_TEST(rate_of_all_is_that_of_the_best_time)
{
	begin(LONGEST, 100);
	(void)until_stable(LONGEST, 5e8);
	of_others = 5e8;
	for (int i = 0; i < 30; i++)
		report(REPORT_US, 5e8);
	of_others = 3e8;
	for (int i = 0; i < 60; i++)
		report(REPORT_US, 5e8);
	expect_rate(5e8, 0.001);
	ck_assert_uint_ge(net_estimate_rate_of_all(&e), 999000000u);
	ck_assert_uint_le(net_estimate_rate_of_all(&e), 1001000000u);
}
END_TEST

/* The first reports count what others have sent before, all at once. */
START_TEST(rate_of_all_leaves_out_the_slow_start)
{
	begin(LONGEST, 100);
	of_others = 9e9;
	report(REPORT_US, 1e8);
	of_others = 3e8;
	for (int i = 0; i < 20; i++)
		report(REPORT_US, 7e8);
	ck_assert_uint_ge(net_estimate_rate_of_all(&e), 999000000u);
	ck_assert_uint_le(net_estimate_rate_of_all(&e), 1001000000u);
}
END_TEST

/* Two paths of one agent that can send 1 Gbit/s: they take turns in being fast. The receiver of one
 * of them began later, so the same time has other numbers in its reports. */
START_TEST(rates_at_once_are_those_of_the_same_time)
{
	struct net_estimate a, b, *const both[] = {&a, &b};
	const uint64_t late_us = 10 * REPORT_US;
	struct net_point p = {0}, q = {0};
	uint64_t got[2];

	net_estimate_begin(&a, &p, LONGEST, 100);
	net_estimate_begin(&b, &q, LONGEST, 100);
	for (uint32_t i = 1; i < 100; i++) {
		double fast = i / 20 % 2 ? 7e8 : 3e8, lost = i > 60 ? 0.8 : 1;

		p.us += REPORT_US;
		p.bytes += (uint64_t)(fast * lost / 8 * REPORT_US / 1e6);
		net_estimate_add(&a, &p, AGENT_US + p.us);
		if (i * REPORT_US <= late_us)
			continue;
		q.us += REPORT_US;
		q.bytes += (uint64_t)((1e9 - fast) * lost / 8 * REPORT_US / 1e6);
		net_estimate_add(&b, &q, AGENT_US + late_us + q.us + i % 3 * 5000);
	}
	net_estimate_rates_at_once(both, 2, got);
	ck_assert_uint_ge(got[0] + got[1], 970000000u);
	ck_assert_uint_le(got[0] + got[1], 1030000000u);
	ck_assert_uint_ge(got[0], 290000000u);
	ck_assert_uint_ge(got[1], 290000000u);
}
END_TEST

/* The agent can send 1 Gbit/s. One path grows until the end, and the other one leaves it more
 * and more. In the first half the latter loses packets. */
START_TEST(path_that_grows_does_not_change_the_time_of_the_others)
{
	struct net_estimate a, *both[] = {&a, &e};
	uint64_t got[2];
	double rate = 1e6;

	begin(1000, 100);
	for (; now.us < 1000000; rate *= 1.1)
		report(REPORT_US, 1e9 - rate - (now.us < 500000 ? 2e8 : 0));
	a = e;
	begin(1000, 100);
	for (rate = 1e6; now.us < 1000000; rate *= 1.1)
		report(REPORT_US, rate);
	ck_assert(!e.started);
	net_estimate_rates_at_once(both, 2, got);
	ck_assert_uint_ge(got[0] + got[1], 990000000u);
	ck_assert_uint_le(got[0] + got[1], 1010000000u);
}
END_TEST

/* There is no path; or the reports of one have come for too short a time. */
START_TEST(rates_at_once_need_a_time_of_all_paths)
{
	struct net_estimate a, *both[] = {&a, &e};
	uint64_t got[2];

	begin(1000, 100);
	while (now.us < 1000000)
		report(REPORT_US, 2e8);
	a = e;
	begin(1000, 100);
	while (now.us < 60000)
		report(REPORT_US, 1e8);
	net_estimate_rates_at_once(both, 2, got);
	ck_assert_uint_eq(got[0], net_estimate_rate(&a));
	ck_assert_uint_eq(got[1], net_estimate_rate(&e));
	net_estimate_rates_at_once(both, 0, NULL);
}
END_TEST

/* A receiver may name any time. */
START_TEST(rates_at_once_of_absurd_times_are_harmless)
{
	const uint64_t steps[] = {1, REPORT_US, UINT64_C(1) << 50, UINT64_C(1) << 58};
	struct net_estimate a, *both[] = {&a, &e};
	uint64_t got[2];

	begin(1000, 100);
	while (now.us < 1000000)
		report(REPORT_US, 2e8);
	a = e;
	for (uint32_t i = 0; i < 4; i++) {
		const uint64_t first[] = {0, UINT64_C(1) << 60, UINT64_MAX - 25 * REPORT_US};
		struct net_point p = {.us = first[_i]};

		net_estimate_begin(&e, &p, 1000, 100);
		for (uint32_t k = 1; k < 50; k++) {
			/* Reports never go back. */
			p.us += steps[i] < UINT64_MAX - p.us ? steps[i] : UINT64_MAX - p.us;
			p.bytes += 1000;
			net_estimate_add(&e, &p, AGENT_US + k * REPORT_US);
		}
		net_estimate_rates_at_once(both, 2, got);
		ck_assert_uint_le(got[0], 210000000u);
		ck_assert_uint_le(got[1], INT64_MAX);
	}
}
END_TEST

/* The path has not reached its rate at the end: the last quarter is the best that is known. */
START_TEST(growth_until_the_end_gives_the_last_quarter)
{
	double rate = 1e6;

	begin(1000, 100);
	while (now.us < 1000000) {
		report(REPORT_US, rate);
		report(REPORT_US, rate);
		rate *= 1.3;
		ck_assert(!net_estimate_is_stable(&e));
	}
	ck_assert(net_estimate_rate(&e) > (uint64_t)(rate / 1.3 / 3));
	ck_assert(net_estimate_rate(&e) < (uint64_t)rate);
}
END_TEST

/* A path lets a burst pass faster than its rate, so it is measured for the whole time. */
START_TEST(burst_at_the_start_does_not_count)
{
	begin(LONGEST, 1000);
	for (int i = 0; i < 10; i++)
		report(REPORT_US, 1e9);
	ck_assert(!net_estimate_is_stable(&e));
	ck_assert_uint_eq(until_stable(LONGEST - 200, 1e8), LONGEST - 200);
	expect_rate(1e8, 0.03);
}
END_TEST

/* Lost packets halve the rate for a while. */
START_TEST(rate_after_a_loss_is_not_stable)
{
	begin(1000, 1000);
	for (int i = 0; i < 10; i++)
		report(REPORT_US, 1e8);
	while (now.us < 700000) {
		report(REPORT_US, 0.5e8);
		ck_assert(!net_estimate_is_stable(&e));
	}
	while (now.us < 1000000 && !net_estimate_is_stable(&e))
		report(REPORT_US, 1e8);
	expect_rate(1e8, 0.05);
}
END_TEST

/* The rate changes by more than 3 % from one half of the windows to the other. */
START_TEST(unsteady_rate_is_measured_for_the_whole_time)
{
	begin(LONGEST, 1000);
	for (uint32_t i = 0; now.us < ALL_US; i++) {
		report(REPORT_US, i / 25 % 2 ? 1.3e8 : 0.7e8);
		ck_assert(!net_estimate_is_stable(&e));
	}
	expect_rate(1e8, 0.15);
}
END_TEST

/* Reports come late or together, but the times in them are right. */
START_TEST(noise_of_single_reports_does_not_matter)
{
	begin(LONGEST, 200);
	while (now.us < ALL_US)
		report(REPORT_US / 2 + (uint64_t)(REPORT_US * random_part()),
			1e9 * (0.98 + 0.04 * random_part()));
	expect_rate(1e9, 0.03);
}
END_TEST

START_TEST(path_that_stops_slows_the_estimate)
{
	begin(LONGEST, 200);
	while (now.us < ALL_US / 2)
		report(REPORT_US, 1e9);
	while (now.us < ALL_US)
		report(REPORT_US, 0);
	ck_assert_uint_lt(net_estimate_rate(&e), 100000000u);
}
END_TEST

/* A high round-trip path delivers a burst in each round trip. Windows shorter than a round trip
 * would look like the end of the slow start. */
START_TEST(windows_last_a_round_trip)
{
	const uint32_t trip_us = 240000;

	begin(LONGEST, trip_us);
	for (uint32_t mbit = 1; mbit < 1200; mbit *= 2) {
		report(REPORT_US, mbit * 1e6);
		for (uint32_t us = REPORT_US; us < trip_us; us += REPORT_US)
			report(REPORT_US, 0);
		ck_assert(!e.started);
	}
}
END_TEST

START_TEST(short_time_has_an_estimate)
{
	begin(1, 100);
	report(5000, 1e9);
	expect_rate(1e9, 0.001);
	ck_assert(!net_estimate_is_stable(&e));
	begin(1, UINT32_MAX);
	report(UINT64_C(1) << 40, 1e6);
	expect_rate(1e6, 0.001);
}
END_TEST

/* The other agent may report anything. */
START_TEST(absurd_reports_are_harmless)
{
	struct net_point p = {.us = 0, .bytes = UINT64_MAX};

	begin(LONGEST, 0);
	net_estimate_add(&e, &p, AGENT_US);
	ck_assert_uint_eq(net_estimate_rate(&e), 0);
	p.us = 1;
	net_estimate_add(&e, &p, AGENT_US);
	ck_assert_uint_eq(net_estimate_rate(&e), INT64_MAX);
	begin(LONGEST, 0);
	for (int i = 0; i < 1000; i++)
		report(UINT64_C(1) << 50, 1);
	ck_assert_uint_le(e.n, NET_WINDOWS);
	ck_assert_uint_le(net_estimate_rate(&e), 1);
}
END_TEST

Suite *estimate_suite(void)
{
	Suite *s = suite_create("estimate");
	TCase *t = tcase_create("estimate");

	tcase_add_test(t, constant_rate_is_stable_early);
	tcase_add_test(t, slow_start_does_not_count);
	tcase_add_test(t, confidence_is_the_lowest_rate_relative_to_the_highest);
	tcase_add_test(t, short_measurement_is_unsure);
	tcase_add_test(t, rate_of_all_is_that_of_the_best_time);
	tcase_add_test(t, rate_of_all_leaves_out_the_slow_start);
	tcase_add_test(t, rates_at_once_are_those_of_the_same_time);
	tcase_add_test(t, path_that_grows_does_not_change_the_time_of_the_others);
	tcase_add_test(t, rates_at_once_need_a_time_of_all_paths);
	tcase_add_loop_test(t, rates_at_once_of_absurd_times_are_harmless, 0, 3);
	tcase_add_test(t, growth_until_the_end_gives_the_last_quarter);
	tcase_add_test(t, burst_at_the_start_does_not_count);
	tcase_add_test(t, rate_after_a_loss_is_not_stable);
	tcase_add_test(t, unsteady_rate_is_measured_for_the_whole_time);
	tcase_add_test(t, noise_of_single_reports_does_not_matter);
	tcase_add_test(t, path_that_stops_slows_the_estimate);
	tcase_add_test(t, windows_last_a_round_trip);
	tcase_add_test(t, short_time_has_an_estimate);
	tcase_add_test(t, absurd_reports_are_harmless);
	suite_add_tcase(s, t);
	return s;
}
