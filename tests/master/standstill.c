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

/* Starts an operation in the ring a, b, c. */
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

START_TEST(data_that_does_not_arrive_breaks_the_link)
{
	stands_still(c, 100, 100, BOUND_MS);
	stands_still(a, 100, 100, BOUND_MS);
	stands_still(b, 100, 60, BOUND_MS - 1);
	ck_assert_uint_eq(aborts(), 0);
	stands_still(b, 100, 60, BOUND_MS);
	is_broken(a, b);
}
END_TEST

/* The other end does not regard the link as broken. */
START_TEST(sender_reopens_a_broken_link)
{
	stands_still(a, 100, 100, BOUND_MS);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert(fk_take(a, WM_ROUND)->u.round.rings[0].reopen);
	ck_assert(!fk_take(b, WM_ROUND)->u.round.rings[0].reopen);
}
END_TEST

START_TEST(recently_sent_data_may_still_arrive)
{
	stands_still(a, 100, 100, BOUND_MS - 1);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
	fk_report(a, seq, true);
	stands_still(b, 100, 60, BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
}
END_TEST

/* Host a has sent everything, and reports nothing more. */
START_TEST(host_that_has_reported_has_sent_everything)
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

/* c has computed for a long time. No host has sent more than was received. */
START_TEST(slow_host_breaks_no_link)
{
	for (int i = 0; i < 20; i++) {
		stands_still(a, 100, 50, 2 * BOUND_MS);
		stands_still(b, 150, 100, 2 * BOUND_MS);
	}
	ck_assert_uint_eq(aborts(), 0);
}
END_TEST

START_TEST(each_operation_has_its_own_counts)
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

/* Starts an operation that uses the links between all hosts. */
static void start_routed(void)
{
	struct fk_host *all[] = {a, b, c};

	for (int i = 0; i < 3; i++) {
		struct wm_msg m = {.type = WM_MESH, .u.mesh = {.group = 0, .up = true}};

		fk_send(all[i], &m);
	}
	vote_all(2);
	seq = fk_status(&f).last_seq;
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.route, CC_ALGO_DIRECT);
	fk_forget(&f);
}

/* On these links the counts of bytes show nothing, but no host waits for a process of its own. */
START_TEST(standstill_of_all_hosts_ends_an_operation_off_the_ring)
{
	start_routed();
	for (int i = 0; i < 20; i++) {
		stands_still(a, 100, 50, 2 * BOUND_MS);
		stands_still(b, 150, 100, 2 * BOUND_MS);
	}
	ck_assert_uint_eq(aborts(), 0);
	stands_still(c, 0, 0, BOUND_MS);
	ck_assert_uint_ge(aborts(), 3);
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text, "check proxies and forwarders");
	fk_forget(&f);
	vote_all(2);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.route, CC_ALGO_RING);
}
END_TEST

START_TEST(old_standstill_of_a_host_does_not_count)
{
	start_routed();
	stands_still(a, 100, 50, 2 * BOUND_MS);
	fk_tick(&f, 3100);
	stands_still(b, 100, 50, 2 * BOUND_MS);
	stands_still(c, 100, 50, 2 * BOUND_MS);
	ck_assert_uint_eq(aborts(), 0);
	fk_report(a, seq, true);
	stands_still(b, 100, 50, 2 * BOUND_MS);
	stands_still(c, 100, 50, 2 * BOUND_MS);
	ck_assert_uint_eq(aborts(), 0); /* a has just sent its last data */
}
END_TEST

Suite *standstill_suite(void)
{
	Suite *s = suite_create("standstill");
	TCase *tc = tcase_create("standstill");

	tcase_add_checked_fixture(tc, setup_running, teardown);
	tcase_add_test(tc, data_that_does_not_arrive_breaks_the_link);
	tcase_add_test(tc, sender_reopens_a_broken_link);
	tcase_add_test(tc, recently_sent_data_may_still_arrive);
	tcase_add_test(tc, host_that_has_reported_has_sent_everything);
	tcase_add_test(tc, slow_host_breaks_no_link);
	tcase_add_test(tc, each_operation_has_its_own_counts);
	tcase_add_test(tc, standstill_of_all_hosts_ends_an_operation_off_the_ring);
	tcase_add_test(tc, old_standstill_of_a_host_does_not_count);
	suite_add_tcase(s, tc);
	return s;
}
