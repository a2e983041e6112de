/* SPDX-License-Identifier: MIT
 *
 * Peers that leave: when their call is answered, and which leaves are sent again until a master
 * has confirmed them.
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

/* Lets the peer leave. The master dies before it confirms the leave. */
static void leave_unheard(void)
{
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
}

/* When the process ends, its container may end and kill the agent. An unsent leave would be
 * lost. */
START_TEST(destroy_is_answered_when_the_master_confirms_the_leave)
{
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 3); /* this is another peer */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_left(f, 1, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(runs(), 0);
}
END_TEST

/* After pcclInterrupt, for example, the call does not wait. The leave is sent again to the next
 * master. */
START_TEST(destroy_without_waiting_is_answered_at_once)
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

START_TEST(destroy_waits_2_s_for_a_master_that_does_not_confirm)
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
	/* The leave may have to be sent again. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(destroy_does_not_wait_for_an_older_master)
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

/* The newcomer was no member of the run, so no other peer waits for it when the connection ends. */
START_TEST(leave_of_a_newcomer_needs_no_confirmation)
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

START_TEST(process_that_dies_during_destroy_gets_no_reply)
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

/* With _i == 1 the next master dies, too. */
START_TEST(leave_is_sent_again_to_the_next_master)
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

/* No master has received the leave, so the next master counts the peer as returned. */
START_TEST(hello_says_left_only_after_a_leave_was_sent)
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
	fx_orphan(f); /* the last master may have received the leave */
	fx_greet(f);
	ck_assert(fx_msg(f, WM_HELLO, 0)->u.hello.left);
	fx_from_master(f, 1, &m);
	ck_assert(fx_msg(f, WM_JOIN, 0)->u.join.left);
}
END_TEST

START_TEST(hello_does_not_say_left_while_a_member_remains)
{
	fx_group(f, 2, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_greet(f);
	ck_assert(!fx_msg(f, WM_HELLO, 0)->u.hello.left);
}
END_TEST

/* With _i == 1 a newcomer has come, which connects to its master by itself. */
START_TEST(leave_is_dropped_if_the_master_has_another_run)
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

/* The newcomer waits for connect_timeout_ms, not for the lease of a run without a master. */
START_TEST(newcomer_does_not_wait_as_long_as_a_leave)
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

/* Both peers join one run through two master addresses. Then the masters at these addresses have
 * other runs. */
START_TEST(newcomers_reconnect_to_their_own_addresses)
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
	tcase_add_test(t, destroy_is_answered_when_the_master_confirms_the_leave);
	tcase_add_test(t, destroy_without_waiting_is_answered_at_once);
	tcase_add_test(t, destroy_waits_2_s_for_a_master_that_does_not_confirm);
	tcase_add_test(t, destroy_does_not_wait_for_an_older_master);
	tcase_add_test(t, leave_of_a_newcomer_needs_no_confirmation);
	tcase_add_test(t, process_that_dies_during_destroy_gets_no_reply);
	tcase_add_loop_test(t, leave_is_sent_again_to_the_next_master, 0, 2);
	tcase_add_test(t, hello_says_left_only_after_a_leave_was_sent);
	tcase_add_test(t, hello_does_not_say_left_while_a_member_remains);
	tcase_add_loop_test(t, leave_is_dropped_if_the_master_has_another_run, 0, 2);
	tcase_add_test(t, newcomer_does_not_wait_as_long_as_a_leave);
	tcase_add_test(t, newcomers_reconnect_to_their_own_addresses);
	suite_add_tcase(s, t);
	return s;
}
