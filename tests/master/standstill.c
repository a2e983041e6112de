/* SPDX-License-Identifier: MIT
 *
 * The master's core: links that take data and do not deliver it.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

#define BOUND_MS 10000u

static uint64_t seq;

/* The ring is a, b, c. */
static void setup_running(void)
{
	setup();
	vote_all(1);
	seq = fk_status(&f).last_seq;
	fk_forget(&f);
}

static void stands_still(struct fk_host *h, uint64_t sent, uint64_t received, uint32_t ms)
{
	struct wm_msg m = {.type = WM_STANDSTILL, .u.standstill = {seq, sent, received, ms}};

	fk_send(h, &m);
}

static size_t aborts(void)
{
	return fk_count(a, WM_OP_ABORT) + fk_count(b, WM_OP_ABORT) + fk_count(c, WM_OP_ABORT);
}

static void is_broken(const struct fk_host *from, const struct fk_host *to)
{
	char text[WM_TEXT_MAX];

	ck_assert_uint_eq(aborts(), 3);
	snprintf(text, sizeof text,
		"the link from host %s to host %s broke: sent data was acknowledged but has not "
		"arrived for 10.0 s",
		from->name, to->name);
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text, text);
	vote_all(1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}

START_TEST(what_was_sent_long_ago_and_has_not_arrived_will_not)
{
	stands_still(c, 100, 100, BOUND_MS);
	stands_still(a, 100, 100, BOUND_MS);
	stands_still(b, 100, 60, BOUND_MS - 1);
	ck_assert_uint_eq(aborts(), 0);
	stands_still(b, 100, 60, BOUND_MS);
	is_broken(a, b);
}
END_TEST

/* Its other end does not take itself for broken. */
START_TEST(the_sender_opens_another_link)
{
	stands_still(a, 100, 100, BOUND_MS);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert(fk_take(a, WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(!fk_take(b, WM_ROUND)->u.round.rings[0].reopen);
}
END_TEST

START_TEST(what_was_sent_a_moment_ago_may_arrive)
{
	stands_still(a, 100, 100, BOUND_MS - 1);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
	fk_report(a, seq, true);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
}
END_TEST

/* a, which has sent all, says nothing more. */
START_TEST(who_has_reported_has_sent_all)
{
	fk_report(a, seq, true);
	fk_tick(&f, BOUND_MS - 100);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
	fk_tick(&f, 200);
	stands_still(b, 100, 60, BOUND_MS);
	is_broken(a, b);
}
END_TEST

/* c has computed for long, and nobody has sent more than was received. */
START_TEST(who_waits_for_a_slow_one_is_left_alone)
{
	for (int i = 0; i < 20; i++) {
		stands_still(a, 100, 50, 2 * BOUND_MS);
		stands_still(b, 150, 100, 2 * BOUND_MS);
	}
	ck_assert_uint_eq(aborts(), 0);
}
END_TEST

START_TEST(other_operations_have_their_own_counts)
{
	stands_still(a, 100, 100, BOUND_MS);
	seq++;
	stands_still(b, 0, 0, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
	seq--;
	fk_report(b, seq, true);
	stands_still(b, 0, 0, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
}
END_TEST

Suite *standstill_suite(void)
{
	Suite *s = suite_create("standstill");
	TCase *tc = tcase_create("standstill");

	tcase_add_checked_fixture(tc, setup_running, teardown);
	tcase_add_test(tc, what_was_sent_long_ago_and_has_not_arrived_will_not);
	tcase_add_test(tc, the_sender_opens_another_link);
	tcase_add_test(tc, what_was_sent_a_moment_ago_may_arrive);
	tcase_add_test(tc, who_has_reported_has_sent_all);
	tcase_add_test(tc, who_waits_for_a_slow_one_is_left_alone);
	tcase_add_test(tc, other_operations_have_their_own_counts);
	suite_add_tcase(s, tc);
	return s;
}
