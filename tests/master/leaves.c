/* SPDX-License-Identifier: MIT
 *
 * The master's core: a leave is confirmed once no other master needs to be told of it.
 */
#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static const struct ccm_config first = {
	.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .journal = true};
static const struct ccm_config next = {
	.run = {{8}}, .run_key = {{9}}, .segment_max = 4096, .journal = true};
static const struct ccm_config forgetful = {.run = {{8}}, .run_key = {{9}}, .segment_max = 4096};

static struct fk f;
static struct fk_host *h[2];
static struct fk_peer p[2];

static void setup(void)
{
	size_t i;

	fk_init(&f, &first);
	f.features = WM_LEAVES;
	h[0] = fk_host(&f, "a", "10.0.0.1");
	h[1] = fk_host(&f, "b", "10.0.0.2");
	for (i = 0; i < 2; i++)
		p[i] = fk_join(h[i], 0);
	fk_topo(&p[0]);
	fk_forget(&f);
}

static void teardown(void)
{
	fk_free(&f);
}

static void taken(size_t i)
{
	ck_assert(cc_id_eq(&fk_take(h[i], WM_LEFT)->u.left.peer, &p[i].id));
	ck_assert_uint_eq(fk_count(h[i], WM_LEFT), 0);
}

/* Connects the agent of h[i] to the next master. The agent sends the leave of its peer again,
 * because no master has confirmed it. */
static void leave_again(size_t i)
{
	f.left = true;
	h[i] = fk_reconnect_as(h[i], 1, false);
	f.left = false;
	h[i]->peers.left = true;
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
	fk_leave(&p[i], WM_LEAVE_CLEAN);
	fk_resumed(h[i]);
}

static void come_back(size_t i)
{
	struct wm_group_view own = {.group = 0, .world_size = 2};
	struct wm_msg msg = {.type = WM_RESUME};

	h[i] = fk_reconnect_as(h[i], 1, false);
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
	msg.u.resume = (struct wm_resume){.epoch = 2,
		.round = 2,
		.ballots[WIRE_TOPOLOGY] = 4,
		.view = {.global = 2, .view_id = 2, .n = 1, .own = &own}};
	fk_send(h[i], &msg);
}

START_TEST(leave_is_confirmed)
{
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	taken(0);
	ck_assert(!fk_present(&p[0]));
	fk_leave(&p[1], WM_LEAVE_DIED);
	taken(1);
}
END_TEST

START_TEST(older_agent_gets_no_confirmation_of_a_leave)
{
	struct fk_peer x;

	f.features = 0;
	x = fk_join(fk_host(&f, "x", "10.0.0.9"), 0);
	fk_leave(&x, WM_LEAVE_CLEAN);
	ck_assert(!fk_present(&x));
	ck_assert_uint_eq(fk_count(x.host, WM_LEFT), 0);
}
END_TEST

START_TEST(leave_is_in_the_journal_before_its_confirmation)
{
	struct wm_msg msg = {.type = WM_LEAVE, .u.leave.peer = p[0].id};
	struct ccm_event ev = {.type = CCM_EV_MSG, .conn = h[0]->conn, .msg = &msg};
	struct ccm_actions out = {0};
	size_t i, journal = 99, answer = 99;

	ccm_step(f.m, &ev, f.now, &out);
	for (i = 0; i < out.n; i++) {
		if (out.v[i].type == CCM_ACT_JOURNAL)
			journal = i;
		if (out.v[i].type == CCM_ACT_SEND && out.v[i].msg.type == WM_LEFT)
			answer = i;
	}
	ck_assert_uint_ne(answer, 99);
	ck_assert_uint_lt(journal, answer);
	ccm_actions_free(&out);
}
END_TEST

/* The last master died before it read the leaves. With _i == 1 it had read one leave and written it
 * to the journal. */
START_TEST(next_master_takes_leaves_that_were_not_read)
{
	if (_i)
		fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	leave_again(0);
	/* With _i == 0 the master confirms no leave yet, because this master may die, too. */
	ck_assert_uint_eq(fk_count(h[0], WM_LEFT), (size_t)_i);
	leave_again(1);
	taken(0);
	taken(1);
	ck_assert_uint_eq(fk_count(h[0], WM_KICK) + fk_count(h[1], WM_KICK), 0);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	ck_assert_uint_eq(fk_status(&f).leaves, (uint64_t)2 - (uint64_t)_i);
}
END_TEST

START_TEST(leave_is_taken_again_after_a_broken_connection)
{
	fk_cut(h[0], "reset");
	ck_assert(fk_present(&p[0]));
	leave_again(0);
	taken(0);
	ck_assert(!fk_present(&p[0]));
	leave_again(0); /* the confirmation may be lost, too */
	taken(0);
	ck_assert_uint_eq(fk_count(h[0], WM_KICK), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

/* The master stores nothing for such a leave, so an agent cannot fill the
 * master's memory with leaves. */
START_TEST(leave_of_an_unknown_peer_is_confirmed_at_once)
{
	struct fk_peer x;

	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	h[0] = fk_reconnect_as(h[0], 1, false);
	x = p[0];
	x.host = h[0];
	x.id = fk_id(&f);
	fk_leave(&x, WM_LEAVE_CLEAN);
	ck_assert(fk_status(&f).recovering);
	ck_assert(cc_id_eq(&fk_take(h[0], WM_LEFT)->u.left.peer, &x.id));
	x = fk_join_again(&x, h[0], WM_JOIN_NEW);
	fk_leave(&x, WM_LEAVE_DIED);
	ck_assert(fk_status(&f).recovering);
	ck_assert(cc_id_eq(&fk_take(h[0], WM_LEFT)->u.left.peer, &x.id));
}
END_TEST

/* The connection broke before the confirmation. The peer is unknown now, but the journal still has
 * it as a member. */
START_TEST(repeated_leave_waits_for_the_journal)
{
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	leave_again(0);
	fk_cut(h[0], "reset");
	h[0] = fk_reconnect_as(h[0], 1, false);
	p[0].host = h[0];
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_resumed(h[0]);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_count(h[0], WM_LEFT), 0);
	leave_again(1);
	taken(0);
	taken(1);
}
END_TEST

/* The last master may or may not have told the others of the leave. */
START_TEST(leave_does_not_end_a_takeover_without_a_journal)
{
	fk_new_master(&f, &forgetful);
	come_back(1);
	leave_again(0);
	ck_assert_uint_eq(fk_count(h[0], WM_KICK) + fk_count(h[0], WM_REFUSE), 0);
	ck_assert(fk_status(&f).recovering);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
	fk_tick(&f, 7000);
	come_back(1);
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
}
END_TEST

/* All members have left, so newcomers would wait for them in vain. */
START_TEST(run_whose_members_have_left_is_not_taken_over)
{
	const struct wm_hello_ack *ack;

	fk_new_master(&f, &forgetful);
	f.left = true;
	h[0] = fk_reconnect_as(h[0], 1, false);
	ack = &fk_take(h[0], WM_HELLO_ACK)->u.hello_ack;
	ck_assert(!ack->resume);
	ck_assert_uint_eq(ack->run.b[0], 8);
	ck_assert(!fk_status(&f).recovering);
	/* A member may still come. */
	f.left = false;
	h[1] = fk_reconnect_as(h[1], 1, false);
	ck_assert(fk_take(h[1], WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(fk_status(&f).recovering);
}
END_TEST

Suite *leaves_suite(void)
{
	Suite *s = suite_create("leaves");
	TCase *tc = tcase_create("leaves");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, leave_is_confirmed);
	tcase_add_test(tc, older_agent_gets_no_confirmation_of_a_leave);
	tcase_add_test(tc, leave_is_in_the_journal_before_its_confirmation);
	tcase_add_loop_test(tc, next_master_takes_leaves_that_were_not_read, 0, 2);
	tcase_add_test(tc, leave_is_taken_again_after_a_broken_connection);
	tcase_add_test(tc, leave_of_an_unknown_peer_is_confirmed_at_once);
	tcase_add_test(tc, repeated_leave_waits_for_the_journal);
	tcase_add_test(tc, leave_does_not_end_a_takeover_without_a_journal);
	tcase_add_test(tc, run_whose_members_have_left_is_not_taken_over);
	suite_add_tcase(s, tc);
	return s;
}
