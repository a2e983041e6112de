/* SPDX-License-Identifier: MIT
 *
 * Members that leave, die or are kicked during operations, and masters that disappear.
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

static void submit_all(unsigned n, uint64_t tag)
{
	fx_submit_all(f, comms, n, tag);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}

static void kick(unsigned peer)
{
	struct wm_msg m = {.type = WM_KICK};

	m.u.kick.peer = fx_id(peer);
	strcpy(m.u.kick.text, "kicked");
	fx_from_master(f, 1, &m);
}

START_TEST(others_vote_when_a_member_dies_before_its_submission)
{
	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_session_closed(f, 3);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_SEND, 0)->u.msg.type, WM_LEAVE);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_SEND, 1)->u.msg.type, WM_OP_VOTE);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
}
END_TEST

START_TEST(submitter_that_dies_before_the_vote_is_removed)
{
	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_submit(f, comms[2], 0, 5, 8);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
}
END_TEST

START_TEST(start_fails_if_a_voter_has_died)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	fx_op_start(f, 1, 7, 5, 1); /* the master sent the start before the leave arrived */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_SKIP), 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "");
}
END_TEST

START_TEST(start_fails_if_a_voter_was_kicked)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	kick(2);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "kicked");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
}
END_TEST

START_TEST(memory_of_a_dead_member_is_used_until_the_cancel)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
}
END_TEST

START_TEST(transfer_is_cancelled_when_no_member_is_left)
{
	struct agt_status st;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_session_closed(f, 1);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	fx_left(f, 1, 1);
	fx_left(f, 1, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
	agt_get_status(f->a, &st);
	ck_assert_uint_eq(st.runs + st.ops + st.comms + st.sessions, 0);
}
END_TEST

START_TEST(start_without_local_members_is_reported_as_failed)
{
	fx_group(f, 2, 2, comms);
	fx_session(f, 9, 1000);
	fx_connect(f, 9, fx_create(f, 9, 8, 1), 9); /* this newcomer keeps the run open */
	submit_all(2, 5);
	fx_session_closed(f, 1);
	fx_session_closed(f, 2);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(operation_succeeds_for_others_after_a_member_died)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_session_closed(f, 2);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
}
END_TEST

START_TEST(new_attempt_collects_submissions_while_the_old_one_is_cancelled)
{
	uint32_t extra;
	struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 4, .n = 3, .members = {1, 2, 3}};

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_op_abort(f, 1, 7, 5, 1);
	/* A third peer is accepted and submits first. */
	fx_session(f, 3, 1000);
	extra = fx_create(f, 3, 7, 1);
	fx_connect(f, 3, extra, 3);
	fx_accept(f, 1, 2, &ring, 1);
	fx_submit(f, extra, 0, 5, 8);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 3);
	ck_assert(memcmp(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.peers[0].b, fx_id(3).b, 16) == 0);
}
END_TEST

START_TEST(complete_attempt_votes_while_the_old_one_is_cancelled)
{
	/* The members of the first attempt are kicked one by one. So the second attempt is complete
	 * while the first one is still being cancelled. */
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 3, .n = 2, .members = {1, 3}};
	uint32_t extra;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	kick(2);
	fx_session(f, 3, 1000);
	extra = fx_create(f, 3, 7, 1);
	fx_connect(f, 3, extra, 3);
	fx_accept(f, 1, 2, &ring, 1);
	fx_submit(f, extra, 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0); /* peer 1 has not submitted */
	kick(1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "kicked");
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "kicked");
}
END_TEST

START_TEST(destroy_is_answered_after_its_operations_have_ended)
{
	size_t done, closed, reply;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_submit(f, comms[0], 9, 6, 8); /* the other peer has not submitted */
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_submit(f, comms[0], 10, 7, 8);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "");
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_op_abort(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	done = fx_index(f, AGT_ACT_COMPLETE, 0);
	closed = fx_index(f, AGT_ACT_COMM_CLOSE, 0);
	reply = fx_index(f, AGT_ACT_REPLY, 0);
	ck_assert(done < closed && closed < reply);
}
END_TEST

START_TEST(destroy_by_the_last_member_cancels_its_operation)
{
	fx_group(f, 1, 2, comms);
	submit_all(1, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_INVALID_USAGE, "pcclDestroyCommunicator is in progress");
	f->req_id--;
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_left(f, 1, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
}
END_TEST

START_TEST(process_that_dies_during_destroy_gets_no_reply)
{
	fx_group(f, 1, 2, comms);
	submit_all(1, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
}
END_TEST

START_TEST(run_without_a_master_ends_its_operations_in_order)
{
	uint32_t again, i;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	submit_all(2, 6);
	fx_submit(f, comms[0], 9, 8, 8);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	for (i = 0; i < 600; i++) {
		f->now += 100 * MS;
		fx_event(f, AGT_EV_TICK, 0, NULL);
		if (i < 599)
			ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	}
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2);
	/* Only the operations without a transfer complete now. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	ck_assert_uint_lt(
		fx_index(f, AGT_ACT_XFER_CANCEL, 0), fx_index(f, AGT_ACT_MASTER_CLOSE, 0));
	/* The peer can join again before the cancel of the transfer has ended. */
	fx_connect(f, 1, comms[0], 3);
	again = fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run;
	ck_assert_uint_ne(again, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_MASTER_CONNECTION_FAILED, "Connection reset by peer");
	fx_master_up(f, again);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(kicked_member_gets_the_text_of_its_kick)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	kick(1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.state, SHM_COMM_LOST);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_op_abort(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "kicked");
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
}
END_TEST

/* The next agent continues for these peers, so they have not left. */
START_TEST(end_of_the_agent_sends_no_leaves)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_create(f, 1, 0, 2);
	fx_event(f, AGT_EV_END, 0, NULL);
	ck_assert_uint_eq(f->acts.n, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_CLOSE, 0)->run, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[0], 0, 6, 8);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "closed");
	ck_assert_uint_eq(f->acts.n, 0);
	fx_tick(f, 100000);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

/* The agent sends no leaves either if it ends while no master is connected. */
START_TEST(end_of_the_agent_without_a_master_sends_no_leaves)
{
	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_event(f, AGT_EV_END, 0, NULL);
	ck_assert_uint_eq(f->acts.n, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

Suite *end_suite(void)
{
	Suite *s = suite_create("end");
	TCase *t = tcase_create("end");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, others_vote_when_a_member_dies_before_its_submission);
	tcase_add_test(t, submitter_that_dies_before_the_vote_is_removed);
	tcase_add_test(t, start_fails_if_a_voter_has_died);
	tcase_add_test(t, start_fails_if_a_voter_was_kicked);
	tcase_add_test(t, memory_of_a_dead_member_is_used_until_the_cancel);
	tcase_add_test(t, transfer_is_cancelled_when_no_member_is_left);
	tcase_add_test(t, start_without_local_members_is_reported_as_failed);
	tcase_add_test(t, operation_succeeds_for_others_after_a_member_died);
	tcase_add_test(t, new_attempt_collects_submissions_while_the_old_one_is_cancelled);
	tcase_add_test(t, complete_attempt_votes_while_the_old_one_is_cancelled);
	tcase_add_test(t, destroy_is_answered_after_its_operations_have_ended);
	tcase_add_test(t, destroy_by_the_last_member_cancels_its_operation);
	tcase_add_test(t, process_that_dies_during_destroy_gets_no_reply);
	tcase_add_test(t, run_without_a_master_ends_its_operations_in_order);
	tcase_add_test(t, kicked_member_gets_the_text_of_its_kick);
	tcase_add_test(t, end_of_the_agent_sends_no_leaves);
	tcase_add_test(t, end_of_the_agent_without_a_master_sends_no_leaves);
	suite_add_tcase(s, t);
	return s;
}
