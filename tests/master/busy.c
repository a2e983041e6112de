/* SPDX-License-Identifier: MIT
 *
 * The master's core: optimizations with busy hosts. Rounds are repeated after a pause, and given up
 * after a while.
 */
#include "tests/master/optimize.h"

#include "tests/master/suites.h"

/* Passes the time until a host is ordered to send. Returns the time in ms. */
static uint32_t pause_ms(uint32_t n)
{
	uint32_t ms = 0, i;

	for (;;) {
		for (i = 0; i < n && h[i]->order.n_to == 0; i++)
			;
		if (i < n)
			return ms;
		ck_assert_uint_lt(ms, 700);
		fk_tick(&f, 100);
		ms += 100;
	}
}

static void expect_stops(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct wm_measure *o = &fk_take(h[i], WM_MEASURE)->u.measure;

		ck_assert(o->n_to == 0 && o->n_from == 0);
	}
}

/* Only what is missing is measured again. Meanwhile other runs can use the hosts. */
START_TEST(link_of_a_busy_host_is_measured_after_a_pause)
{
	uint32_t k;

	run_of(3);
	manual_measurements(3);
	rates[0][1] = FK_BUSY;
	vote(3);
	for (k = 0; h[0]->order.n_to != 1 || index_of(&h[0]->order.to[0].agent) != 1; k++)
		end_round(3);
	fk_forget(&f);
	end_round(3);
	expect_stops(3);
	ck_assert_uint_ge(pause_ms(3), 100);
	ck_assert_uint_eq(h[0]->order.n_to, 1);
	ck_assert_uint_eq(index_of(&h[0]->order.to[0].agent), 1);
	ck_assert(h[1]->order.n_to == 0 && h[2]->order.n_to == 0);
	ck_assert_uint_eq(h[0]->order.round, k + 1);
	rates[0][1] = GBIT;
	while (f.n_problems == 0)
		end_round(3);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], GBIT);
	ck_assert_str_eq(f.log, "");
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

START_TEST(round_of_all_hosts_is_repeated_if_one_was_busy)
{
	run_of(3);
	manual_measurements(3);
	vote(3);
	end_round(3);
	end_round(3);
	ck_assert_uint_eq(h[0]->order.n_to, 2);
	rates[2][0] = FK_BUSY;
	fk_forget(&f);
	end_round(3);
	expect_stops(3);
	(void)pause_ms(3);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(h[i]->order.hold && h[i]->order.n_to == 2);
	rates[2][0] = 9 * GBIT;
	end_round(3);
	ck_assert_uint_eq(fk_problem(&f, 0)->out[2], 7 * GBIT); /* its links: 3 and 4 */
	solve_unchanged();
	expect_answer(3, true, "");
}
END_TEST

/* No plan is made without the missing rate. The next optimization needs only this one and the caps.
 */
START_TEST(hosts_that_stay_busy_leave_the_rings_as_they_are)
{
	uint64_t began;

	run_of(3);
	rates[0][1] = FK_BUSY;
	began = f.now;
	vote(3);
	while (count_all(3, WM_BALLOT_END) < 3)
		fk_tick(&f, 100);
	ck_assert_uint_ge(f.now - began, UINT64_C(10000000000));
	ck_assert_uint_le(f.now - began, UINT64_C(11000000000));
	expect_answer(3, true, "");
	assert_contains(f.log, "leaves the rings as they are");
	assert_contains(f.log, "host h0 could not measure its link to host h1 (an operation)");
	ck_assert_uint_eq(f.n_problems, 0);
	rates[0][1] = GBIT;
	ck_assert_uint_eq(senders(3), 1);
	ck_assert_uint_eq(fk_problem(&f, 0)->rates[0 * 3 + 1], GBIT);
}
END_TEST

/* A host falls silent, and is lost when a pause may just have ended. _i: the run, which decides how
 * long the pauses are. */
START_TEST(host_that_falls_silent_in_a_pause_is_lost)
{
	struct ccm_config cfg = usual_config();
	uint32_t i;

	cfg.run.b[0] = (uint8_t)_i;
	configure(&cfg);
	run_of(4);
	rates[0][1] = FK_BUSY;
	vote(4);
	for (i = 0; i < 90 && fk_count(h[0], WM_BALLOT_END) == 0; i++)
		fk_tick_silent(&f, 100, h[3]);
	expect_answer(3, false, "lost");
}
END_TEST

/* Otherwise two runs that have met would meet again. */
START_TEST(pauses_of_two_runs_differ)
{
	struct ccm_config cfg = usual_config();
	uint32_t ms[2], i;

	for (i = 0; i < 2; i++) {
		cfg.run.b[0] = (uint8_t)i;
		configure(&cfg);
		run_of(3);
		manual_measurements(3);
		rates[0][1] = rates[0][2] = FK_BUSY;
		vote(3);
		end_round(3);
		ms[i] = pause_ms(3);
	}
	ck_assert_uint_ne(ms[0], ms[1]);
}
END_TEST

Suite *busy_suite(void)
{
	Suite *s = suite_create("busy");
	TCase *tc = tcase_create("busy");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, link_of_a_busy_host_is_measured_after_a_pause);
	tcase_add_test(tc, round_of_all_hosts_is_repeated_if_one_was_busy);
	tcase_add_test(tc, hosts_that_stay_busy_leave_the_rings_as_they_are);
	tcase_add_loop_test(tc, host_that_falls_silent_in_a_pause_is_lost, 0, 40);
	tcase_add_test(tc, pauses_of_two_runs_differ);
	suite_add_tcase(s, tc);
	return s;
}
