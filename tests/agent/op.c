/* SPDX-License-Identifier: MIT
 *
 * Operations, from the submission to the outcome that the master decides.
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

static void stands_still(uint64_t seq)
{
	struct agt_event ev = {.type = AGT_EV_XFER_STANDSTILL,
		.run = 1,
		.seq = seq,
		.tx_bytes = 100,
		.rx_bytes = 60,
		.still_ms = 10000};

	fx_step(f, &ev);
}

START_TEST(standstill_is_reported_to_the_master)
{
	const struct wm_standstill *x;

	fx_group(f, 1, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	stands_still(31);
	ck_assert_uint_eq(fx_sent(f, WM_STANDSTILL), 0);
	fx_op_start(f, 1, 7, 5, 31);
	stands_still(31);
	x = &fx_msg(f, WM_STANDSTILL, 0)->u.standstill;
	ck_assert(x->seq == 31 && x->sent == 100 && x->received == 60 && x->ms == 10000);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 31, 0);
	stands_still(31);
	ck_assert_uint_eq(fx_sent(f, WM_STANDSTILL), 0);
}
END_TEST

START_TEST(local_votes_are_merged)
{
	const struct wm_op_vote *v;

	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[2], 0, 5, 8);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[0], 9, 5, 8);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[1], 1, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->group, 7);
	ck_assert_uint_eq(v->tag, 5);
	ck_assert_uint_eq(v->n_peers, 3);
	ck_assert(memcmp(v->peers[0].b, fx_id(3).b, 16) == 0);
	ck_assert_uint_eq(v->params.count, 8);
	ck_assert_uint_eq(v->params.dtype, 10);
}
END_TEST

START_TEST(different_parameters_make_separate_votes)
{
	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 16);
	fx_submit(f, comms[2], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 1)->u.op_vote.params.count, 16);
	fx_op_abort(f, 1, 7, 5, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
}
END_TEST

START_TEST(success_completes_all_members_at_once)
{
	const struct agt_action *x;

	fx_group(f, 3, 3, comms);
	fx_submit(f, comms[2], 4, 5, 8);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 1, 5, 8);
	fx_op_start(f, 1, 7, 5, 31);
	x = fx_get(f, AGT_ACT_XFER_START, 0);
	ck_assert_uint_eq(x->u.xfer.seq, 31);
	ck_assert_uint_eq(x->u.xfer.tag, 5);
	ck_assert_uint_eq(x->u.xfer.epoch, 9);
	ck_assert_uint_eq(x->u.xfer.group, 7);
	ck_assert_uint_eq(x->u.xfer.world_size, 5);
	ck_assert_uint_eq(x->u.xfer.hosts, 3);
	ck_assert_uint_eq(x->u.xfer.segment_max, 65536);
	ck_assert(memcmp(x->u.xfer.next.b, fx_id(100).b, 16) == 0);
	ck_assert(memcmp(x->u.xfer.prev.b, fx_id(101).b, 16) == 0);
	ck_assert_uint_eq(x->u.xfer.n_members, 3);
	/* The members are in the order of ranks, not of submissions. */
	ck_assert_uint_eq(x->u.xfer.members[0].comm, comms[0]);
	ck_assert_uint_eq(x->u.xfer.members[2].comm, comms[2]);
	ck_assert_uint_eq(x->u.xfer.members[2].sub.slot, 4);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 31, 0);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_op_done(f, 1, 31);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 2)->u.done.world_size, 5);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 2)->u.done.tx_bytes, 111);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 2)->u.done.rx_bytes, 222);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	fx_op_done(f, 1, 31); /* a repeated OP_DONE has no effect */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

/* A call fails if it is submitted before its application knows of the loss, whatever its tag is. */
START_TEST(call_fails_if_its_application_does_not_know_the_loss)
{
	struct fx_ring ring = {.group = 7,
		.hosts = 1,
		.world_size = 2,
		.generation = 1,
		.n = 2,
		.members = {1, 2}};

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[0], 1, 6, 8);
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 1)->u.done.generation, 1);
	fx_submit(f, comms[0], 2, 7, 8);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "await all operations");
	fx_submit(f, comms[0], 2, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "await all operations");
	/* This peer had no operation before the loss, but the call must fail for all. */
	fx_submit(f, comms[1], 0, 7, 8);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "await all operations");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.generation, 1);
	f->generation = 1;
	fx_submit(f, comms[1], 0, 7, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_submit(f, comms[0], 0, 6, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_submit(f, comms[0], 1, 7, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.generation, 1);
}
END_TEST

START_TEST(result_text_names_the_lost_peer)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 2, .generation = 1, .n = 2};

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8); /* the other peer has not submitted */
	ring.loss = "lost train@b pid 7 of group 7: its process died";
	fx_view(f, 1, &ring, 1);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, ring.loss);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "tag 5 waited for its peers");
	fx_submit(f, comms[1], 0, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, ring.loss);
	ring.generation = 2;
	ring.loss = NULL;
	fx_view(f, 1, &ring, 1);
	f->generation = 1;
	fx_submit(f, comms[1], 0, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "group 7 has lost a peer");
}
END_TEST

/* The generation that an application knows changes only with a result that reports the loss. */
START_TEST(success_does_not_change_the_known_generation)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 1, .world_size = 1, .generation = 1, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_view(f, 1, &ring, 1);
	fx_op_done(f, 1, 1);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.generation, 0);
	fx_submit(f, comms[0], 0, 6, 8); /* the loss is reported to the last member, too */
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "await all operations");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.generation, 1);
	f->generation = 1;
	fx_submit(f, comms[0], 0, 6, 8);
	fx_expect_done(f, 0, comms[0], WIRE_TOO_FEW_PEERS, "");
}
END_TEST

START_TEST(replies_carry_the_generation)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 2, .generation = 4, .n = 1, .members = {1}};
	const struct wl_reply *r;
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_master_up(f, 1);
	fx_accept(f, 1, 1, &ring, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	r = &fx_get(f, AGT_ACT_REPLY, 0)->u.reply;
	ck_assert_uint_eq(r->generation, 4);
	ck_assert(fx_is(&r->run, fx_id(201)));
	ring.generation = 5;
	fx_view(f, 1, &ring, 1);
	fx_request(f, 1, comm, FX_VOTE(WIRE_TOPOLOGY));
	fx_commit(f, 1, 2, true, &ring, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.generation, 5);
}
END_TEST

START_TEST(abort_of_an_older_generation_is_ignored)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 2, .generation = 1, .n = 1, .members = {1}};

	fx_group(f, 1, 3, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_view(f, 1, &ring, 1);
	fx_op_abort(f, 1, 7, 5, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	f->generation = 1;
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_op_abort(f, 1, 7, 5, 0); /* an abort for generation 0 again */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

static const struct wire_view *told(unsigned n)
{
	return &fx_get(f, AGT_ACT_COMPLETE, n)->u.done.after;
}

/* A result contains the view at the decision of the master. The view at the end of the operation on
 * a host could differ between hosts. */
START_TEST(results_carry_the_view_of_the_masters_decision)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 4, .n = 2, .members = {1, 2}};

	fx_group(f, 2, 2, comms);
	fx_view(f, 1, &ring, 1);
	fx_submit_all(f, comms, 2, 5);
	fx_submit_all(f, comms, 2, 6);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.begin.view_id, f->view_id);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.begin.group, 4);
	fx_op_start(f, 1, 7, 6, 2);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(told(0)->view_id, f->view_id);
	ck_assert_uint_eq(told(0)->group, 4);
	ck_assert_uint_eq(told(1)->group, 4);
	ring.world_size = 3;
	ring.generation = 1;
	fx_view(f, 1, &ring, 1);
	fx_op_abort(f, 1, 7, 6, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ring.world_size = 2;
	ring.generation = 2;
	fx_view(f, 1, &ring, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 2, 0);
	ck_assert_uint_eq(told(0)->view_id, f->view_id - 1);
	ck_assert_uint_eq(told(0)->group, 3);
	ck_assert_uint_eq(told(1)->group, 3);
	/* A call that is refused here ends now, with the current view. */
	fx_submit(f, comms[0], 9, 9, 8);
	ck_assert_uint_eq(told(0)->view_id, f->view_id);
	ck_assert_uint_eq(told(0)->group, 2);
}
END_TEST

/* The abort comes after the next loss, because a vote was on its way for a long time. */
START_TEST(late_abort_carries_the_view_of_its_loss)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 4, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_view(f, 1, &ring, 1);
	fx_submit(f, comms[0], 5, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	for (ring.generation = 1; ring.generation <= 2; ring.generation++) {
		ring.world_size = 4 - (uint32_t)ring.generation;
		fx_view(f, 1, &ring, 1);
	}
	fx_op_abort(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(told(0)->view_id, f->view_id - 1);
	ck_assert_uint_eq(told(0)->group, 3);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.generation, 1);
}
END_TEST

/* Another peer of the group leaves after the loss and before this call. The call, which the loss
 * ends, has the same view as the calls that were made in time. */
START_TEST(late_call_fails_with_the_view_of_its_loss)
{
	struct fx_ring ring = {.group = 7,
		.hosts = 1,
		.world_size = 5,
		.generation = 1,
		.n = 2,
		.members = {1, 2}};

	fx_group(f, 2, 6, comms);
	fx_view(f, 1, &ring, 1);
	ring.world_size = 4;
	fx_view(f, 1, &ring, 1);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "");
	ck_assert_uint_eq(told(0)->group, 5);
	ck_assert_uint_eq(told(0)->view_id, f->view_id - 1);
	f->generation = 1;
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.generation, 1);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(told(0)->group, 4);
}
END_TEST

/* This host has not sent a vote, but the loss still ends the waiting call. */
START_TEST(loss_ends_operations_that_are_being_collected)
{
	struct fx_ring ring = {.group = 7,
		.hosts = 1,
		.world_size = 2,
		.generation = 1,
		.n = 2,
		.members = {1, 2}};

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "tag 5");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.after.group, 2);
	f->generation = 1;
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_view(f, 1, &ring, 1); /* the same view again is not a loss */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	f->generation = 0; /* this application does not know of the loss yet */
	fx_submit(f, comms[1], 0, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "has lost");
	f->generation = 1;
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}
END_TEST

START_TEST(invalid_submission_completes_with_the_callers_text)
{
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .slot = 2, .code = WIRE_INVALID_ARGUMENT};
	struct agt_status st;

	fx_group(f, 1, 2, comms);
	ev.comm = comms[0];
	ev.text = "region 5 does not exist";
	fx_step(f, &ev);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_ARGUMENT, "region 5 does not exist");
	ck_assert_uint_eq(f->acts.v[fx_index(f, AGT_ACT_COMPLETE, 0)].slot, 2);
	agt_get_status(f->a, &st);
	ck_assert_uint_eq(st.submissions_refused, 1);
	ck_assert_uint_eq(st.ops, 0);
}
END_TEST

START_TEST(a_tag_in_flight_is_refused)
{
	fx_group(f, 2, 1, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[0], 1, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_ARGUMENT, "tag 5 is in flight");
	fx_submit(f, comms[0], 1, 6, 8); /* another tag is free */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_submit(f, comms[1], 1, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_ARGUMENT, "tag 5 is in flight");
}
END_TEST

START_TEST(all_reduce_in_a_group_of_one_fails)
{
	fx_group(f, 1, 1, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_TOO_FEW_PEERS,
		"peer group 7 has 1 member; an all-reduce needs two: call pcclUpdateTopology");
}
END_TEST

START_TEST(topology_and_operations_exclude_each_other)
{
	fx_group(f, 1, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_expect_reply(f, WIRE_PENDING_ASYNC_OPS, "1 operation is");
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	ck_assert_uint_eq(fx_votes(f, WIRE_PENDING), 1);
	fx_free(f);
	f = fx_new();
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_submit(f, comms[0], 0, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "pcclUpdateTopology is in progress");
}
END_TEST

START_TEST(abort_before_the_start_completes_all_members)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_op_abort(f, 1, 7, 5, 0); /* an abort of an attempt that this host has not voted for */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_abort(f, 1, 7, 5, 12); /* an abort of another attempt */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_op_abort(f, 1, 7, 5, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "peer 12 died: try again");
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}
END_TEST

static void run_one(uint64_t seq)
{
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, seq);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}

START_TEST(aborted_operation_completes_after_the_cancel)
{
	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0); /* this event crossed the cancel */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[0], 1, 5, 8); /* the tag is still in use here */
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_ARGUMENT, "tag 5 is in flight");
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
	run_one(2);
}
END_TEST

START_TEST(abort_after_the_report_cancels_the_transfer)
{
	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
}
END_TEST

START_TEST(abort_without_code_is_not_success)
{
	struct wm_msg m = {.type = WM_OP_ABORT, .u.op_abort = {.group = 7, .tag = 5}};

	fx_group(f, 1, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_from_master(f, 1, &m);
	fx_expect_done(f, 0, comms[0], WIRE_INTERNAL_ERROR, "gave no reason");
}
END_TEST

START_TEST(a_failed_transfer_is_reported_and_aborted)
{
	const struct wm_op_report *r;

	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, WIRE_OUT_OF_MEMORY);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok);
	ck_assert_str_eq(r->text, "out of result memory");
	ck_assert_uint_eq(r->code, WIRE_OUT_OF_MEMORY);
	ck_assert(cc_id_is_zero(&r->suspect));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

/* The next master gets the same report. */
START_TEST(a_failure_is_reported_again_with_its_code)
{
	const struct wm_op_report *r;

	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, WIRE_OUT_OF_MEMORY);
	fx_orphan(f);
	fx_resume(f);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok);
	ck_assert_uint_eq(r->code, WIRE_OUT_OF_MEMORY);
	ck_assert_str_eq(r->text, "out of result memory");
}
END_TEST

/* A refused call has its own vote and waits for the answer like the other calls. */
START_TEST(refused_call_votes_with_its_code_and_text)
{
	const struct wm_op_vote *v;

	fx_group(f, 2, 2, comms);
	fx_refuse(f, comms[0], 0, 5, WIRE_OUT_OF_MEMORY, "no room for it");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->refusal.code, WIRE_OUT_OF_MEMORY);
	ck_assert_str_eq(v->refusal.text, "no room for it");
	ck_assert_uint_eq(v->tag, 5);
	ck_assert_uint_eq(v->n_peers, 1);
	v = &fx_msg(f, WM_OP_VOTE, 1)->u.op_vote;
	ck_assert_uint_eq(v->refusal.code, 0);
	ck_assert_uint_eq(v->n_peers, 1);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.refusal.code, WIRE_OUT_OF_MEMORY);
	fx_op_abort(f, 1, 7, 5, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(report_of_a_broken_link_names_the_suspect)
{
	const struct wm_op_report *r;
	bool inbound = _i == 1;

	fx_group(f, 2, 3, comms); /* the next host is 100, the previous one 101 */
	run_one(1);
	/* The link in the other direction. */
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 100 : 101, inbound);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 101 : 100, inbound);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok);
	ck_assert(memcmp(r->suspect.b, fx_id(inbound ? 101 : 100).b, 16) == 0);
	ck_assert_ptr_nonnull(strstr(r->text, "it broke"));
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 101 : 100, inbound);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0); /* the link is reported only once */
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_op_abort(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(report_says_that_a_link_was_silent)
{
	struct agt_event ev = {
		.type = AGT_EV_LINK_DOWN, .run = 1, .inbound = _i == 1, .silent = true};
	const struct wm_op_report *r;

	fx_group(f, 2, 3, comms);
	run_one(1);
	ev.peer = fx_id(_i == 1 ? 101 : 100);
	fx_step(f, &ev);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok && r->silent);
	ck_assert(fx_is(&r->suspect, ev.peer));
	fx_orphan(f); /* the next master gets the same report */
	fx_resume(f);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.silent);
}
END_TEST

START_TEST(operation_does_not_start_while_its_link_is_down)
{
	const struct wm_op_report *r;

	fx_group(f, 2, 2, comms);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok && r->seq == 1);
	ck_assert(memcmp(r->suspect.b, fx_id(100).b, 16) == 0);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2); /* no thread uses the memory */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
}
END_TEST

START_TEST(start_of_an_unknown_operation_is_reported_as_failed)
{
	fx_group(f, 2, 2, comms);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	/* A sequence number must be higher than the previous one. */
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(done_before_the_report_is_a_violation)
{
	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_lt(
		fx_index(f, AGT_ACT_XFER_CANCEL, 0), fx_index(f, AGT_ACT_MASTER_CLOSE, 0));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_MASTER_CONNECTION_FAILED, "broke the protocol");
}
END_TEST

static void want_awaited(void *arg, const struct agt_op_info *o)
{
	ck_assert_msg(strstr(o->awaited, arg), "\"%s\" lacks \"%s\"", o->awaited, (char *)arg);
	ck_assert_uint_eq(o->bytes, 32);
}

START_TEST(status_names_the_cause_of_each_wait)
{
	char who[] = "waiting for local pid 1002 (trainer) and 1 more to submit";
	char master[] = "waiting for the master to start it", data[] = "data";
	char others[] = "other hosts", threads[] = "data threads";

	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	agt_each_op(f->a, f->now, want_awaited, who);
	fx_submit(f, comms[2], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	agt_each_op(f->a, f->now, want_awaited, master);
	fx_op_start(f, 1, 7, 5, 1);
	agt_each_op(f->a, f->now, want_awaited, data);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	agt_each_op(f->a, f->now, want_awaited, others);
	fx_op_abort(f, 1, 7, 5, 1);
	agt_each_op(f->a, f->now, want_awaited, threads);
}
END_TEST

Suite *op_suite(void)
{
	Suite *s = suite_create("op");
	TCase *t = tcase_create("op");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, standstill_is_reported_to_the_master);
	tcase_add_test(t, local_votes_are_merged);
	tcase_add_test(t, different_parameters_make_separate_votes);
	tcase_add_test(t, success_completes_all_members_at_once);
	tcase_add_test(t, results_carry_the_view_of_the_masters_decision);
	tcase_add_test(t, late_abort_carries_the_view_of_its_loss);
	tcase_add_test(t, late_call_fails_with_the_view_of_its_loss);
	tcase_add_test(t, loss_ends_operations_that_are_being_collected);
	tcase_add_test(t, call_fails_if_its_application_does_not_know_the_loss);
	tcase_add_test(t, result_text_names_the_lost_peer);
	tcase_add_test(t, success_does_not_change_the_known_generation);
	tcase_add_test(t, replies_carry_the_generation);
	tcase_add_test(t, abort_of_an_older_generation_is_ignored);
	tcase_add_test(t, invalid_submission_completes_with_the_callers_text);
	tcase_add_test(t, a_tag_in_flight_is_refused);
	tcase_add_test(t, all_reduce_in_a_group_of_one_fails);
	tcase_add_test(t, topology_and_operations_exclude_each_other);
	tcase_add_test(t, abort_before_the_start_completes_all_members);
	tcase_add_test(t, aborted_operation_completes_after_the_cancel);
	tcase_add_test(t, abort_after_the_report_cancels_the_transfer);
	tcase_add_test(t, abort_without_code_is_not_success);
	tcase_add_test(t, a_failed_transfer_is_reported_and_aborted);
	tcase_add_test(t, a_failure_is_reported_again_with_its_code);
	tcase_add_test(t, refused_call_votes_with_its_code_and_text);
	tcase_add_loop_test(t, report_of_a_broken_link_names_the_suspect, 0, 2);
	tcase_add_loop_test(t, report_says_that_a_link_was_silent, 0, 2);
	tcase_add_test(t, operation_does_not_start_while_its_link_is_down);
	tcase_add_test(t, start_of_an_unknown_operation_is_reported_as_failed);
	tcase_add_test(t, done_before_the_report_is_a_violation);
	tcase_add_test(t, status_names_the_cause_of_each_wait);
	suite_add_tcase(s, t);
	return s;
}
