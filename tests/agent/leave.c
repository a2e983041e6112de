/* SPDX-License-Identifier: MIT
 *
 * Leaves: what is answered when, and what is told again until a master has taken them.
 */
#include "tests/agent/fixture.h"

static struct fx *f;
static uint32_t comms[4];

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

static uint32_t runs(void)
{
	struct agt_status st;

	agt_get_status(f->a, &st);
	return st.runs;
}

/* Its peer leaves, and the master dies before it says that it knows. */
static void leave_unheard(void)
{
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
}

/* A container may end with the process, and its agent be killed with what it has not sent. */
START_TEST(a_destroy_is_answered_when_the_master_has_taken_it)
{
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 3); /* somebody else */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_left(f, 1, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(runs(), 0);
}
END_TEST

/* As after pcclInterrupt. The next master is told all the same. */
START_TEST(a_leave_that_cannot_wait_is_answered_at_once)
{
	struct wm_msg m = fx_ack(2);

	fx_group(f, 1, 2, comms);
	fx_destroy(f, 1, comms[0], "");
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_orphan(f);
	fx_greet(f);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(a_master_that_does_not_answer_holds_up_nobody)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_tick(f, 1000);
	fx_from_master(f, 1, &beat);
	fx_tick(f, 900);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_tick(f, 200);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0); /* it may have to be told again */
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(an_older_master_is_not_waited_for)
{
	struct wm_msg m = fx_ack(2);

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_greet(f);
	m.u.hello_ack.features = 0;
	fx_from_master(f, 1, &m);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_lt(
		fx_index(f, AGT_ACT_MASTER_SEND, 0), fx_index(f, AGT_ACT_MASTER_CLOSE, 0));
}
END_TEST

/* It was not in the run: nobody misses it when the connection ends. */
START_TEST(a_newcomer_that_gives_up_waits_for_nobody)
{
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_session(f, 9, 1000);
	c = fx_create(f, 9, 7, 1);
	fx_connect(f, 9, c, 9);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	fx_session_closed(f, 9);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(a_process_that_dies_meanwhile_is_not_answered)
{
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* _i == 1: that one dies, too. */
START_TEST(the_next_master_is_told_again)
{
	struct wm_msg m = fx_ack(3);
	int i;

	leave_unheard();
	fx_greet(f);
	ck_assert(fx_msg(f, WM_HELLO, 0)->u.hello.left);
	for (i = 0; i <= _i; i++) {
		fx_from_master(f, 1, &m);
		ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
		ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
		ck_assert(fx_msg(f, WM_JOIN, 0)->u.join.left);
		ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_CLEAN);
		ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
		if (i < _i) {
			fx_orphan(f);
			fx_greet(f);
		}
	}
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* No master has heard of it: the next one counts it among those who have come back. */
START_TEST(what_was_told_to_nobody_is_worth_taking_over)
{
	struct wm_msg m = fx_ack(2);

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_greet(f);
	ck_assert(!fx_msg(f, WM_HELLO, 0)->u.hello.left);
	fx_from_master(f, 1, &m);
	ck_assert(!fx_msg(f, WM_JOIN, 0)->u.join.left);
	fx_orphan(f); /* now one may have */
	fx_greet(f);
	ck_assert(fx_msg(f, WM_HELLO, 0)->u.hello.left);
	fx_from_master(f, 1, &m);
	ck_assert(fx_msg(f, WM_JOIN, 0)->u.join.left);
}
END_TEST

START_TEST(members_make_the_run_worth_it)
{
	fx_group(f, 2, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_greet(f);
	ck_assert(!fx_msg(f, WM_HELLO, 0)->u.hello.left);
}
END_TEST

/* _i == 1: a newcomer has come meanwhile: it looks for its master by itself. */
START_TEST(a_master_of_another_run_need_not_be_told)
{
	struct wm_msg m = fx_ack(1);
	uint32_t c;

	leave_unheard();
	if (_i) {
		c = fx_create(f, 1, 7, 1);
		fx_connect(f, 1, c, 5);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	}
	fx_greet(f);
	ck_assert(fx_msg(f, WM_HELLO, 0)->u.hello.left);
	m.u.hello_ack.run = fx_id(77);
	m.u.hello_ack.resume = false;
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(runs(), (uint32_t)_i);
}
END_TEST

/* It has the time of a connect, not that of a run that has lost its master. */
START_TEST(a_newcomer_does_not_wait_with_a_leave)
{
	uint32_t c, waited;

	leave_unheard();
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	for (waited = 500; waited < 10000; waited += 500) {
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	}
	fx_tick(f, 500);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "no connection within");
	ck_assert_uint_eq(runs(), 1);
}
END_TEST

/* Both are of one run, and then their masters have others. */
START_TEST(each_joins_the_run_of_its_masters_name)
{
	struct wm_msg m = fx_ack(1);
	uint32_t c[2], i;

	fx_session(f, 1, 1000);
	for (i = 0; i < 2; i++) {
		c[i] = fx_create(f, 1, 7, 1 + i);
		fx_connect(f, 1, c[i], 5 + i);
		fx_event(f, AGT_EV_MASTER_UP, 1 + i, NULL);
		m.u.hello_ack.resume = false;
		fx_from_master(f, 1 + i, &m);
		ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	}
	ck_assert_uint_eq(runs(), 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	m.u.hello_ack.run = fx_id(77);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 2);
	for (i = 0; i < 2; i++)
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, i)->addr.ip[3], 1 + i);
}
END_TEST

Suite *leave_suite(void)
{
	Suite *s = suite_create("leave");
	TCase *t = tcase_create("leave");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_destroy_is_answered_when_the_master_has_taken_it);
	tcase_add_test(t, a_leave_that_cannot_wait_is_answered_at_once);
	tcase_add_test(t, a_master_that_does_not_answer_holds_up_nobody);
	tcase_add_test(t, an_older_master_is_not_waited_for);
	tcase_add_test(t, a_newcomer_that_gives_up_waits_for_nobody);
	tcase_add_test(t, a_process_that_dies_meanwhile_is_not_answered);
	tcase_add_loop_test(t, the_next_master_is_told_again, 0, 2);
	tcase_add_test(t, what_was_told_to_nobody_is_worth_taking_over);
	tcase_add_test(t, members_make_the_run_worth_it);
	tcase_add_loop_test(t, a_master_of_another_run_need_not_be_told, 0, 2);
	tcase_add_test(t, a_newcomer_does_not_wait_with_a_leave);
	tcase_add_test(t, each_joins_the_run_of_its_masters_name);
	suite_add_tcase(s, t);
	return s;
}
