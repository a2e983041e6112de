/* SPDX-License-Identifier: MIT
 *
 * Operations from the submission to the end that the master decides on.
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

START_TEST(the_master_hears_of_a_standstill)
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

START_TEST(other_parameters_vote_by_themselves)
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

START_TEST(success_for_all_members_at_once)
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
	ck_assert_uint_eq(x->u.xfer.members[0].comm, comms[0]); /* by rank, not by submission */
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
	fx_op_done(f, 1, 31); /* a late one is nothing */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

/* What is submitted before the application knows of the loss fails, whatever its tag. */
START_TEST(a_loss_ends_what_is_called_before_it_is_known)
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
	fx_submit(f, comms[1], 0, 7, 8); /* had nothing in flight: the call fails for all */
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

START_TEST(a_refusal_says_whom_the_group_has_lost)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 2, .generation = 1, .n = 2};

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8); /* the other one is missing */
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

/* An end that does not tell of a loss does not make it known. */
START_TEST(only_a_loss_tells_of_a_loss)
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
	fx_submit(f, comms[0], 0, 6, 8); /* also to the last one left */
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
	fx_request(f, 1, comm, WL_UPDATE_TOPOLOGY);
	fx_commit(f, 1, 2, true, &ring, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.generation, 5);
}
END_TEST

START_TEST(an_abort_that_answers_an_older_vote_is_passed_over)
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
	fx_op_abort(f, 1, 7, 5, 0); /* of generation 0 again */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

static const struct wire_view *told(unsigned n)
{
	return &fx_get(f, AGT_ACT_COMPLETE, n)->u.done.after;
}

/* Not of the moment at which an operation ends here, which is another one on each host. */
START_TEST(the_view_is_that_of_the_end_for_all)
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
	/* what is refused here ends now */
	fx_submit(f, comms[0], 9, 9, 8);
	ck_assert_uint_eq(told(0)->view_id, f->view_id);
	ck_assert_uint_eq(told(0)->group, 2);
}
END_TEST

/* A vote was long under way: what it is answered with comes after the next loss. */
START_TEST(a_late_end_carries_the_view_of_its_loss)
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

/* Somebody else of the group goes after the loss, before the call is made that the loss ends: it
 * sees what those see who have called in time. */
START_TEST(a_late_call_sees_the_view_of_its_loss)
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

/* Not even a vote has gone out from here, and still the waiting caller is told of the loss. */
START_TEST(a_loss_ends_what_is_being_collected)
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
	fx_view(f, 1, &ring, 1); /* the same view once more is no loss */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	f->generation = 0; /* its application does not know yet */
	fx_submit(f, comms[1], 0, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "has lost");
	f->generation = 1;
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}
END_TEST

START_TEST(what_the_caller_found_bad_is_completed_with_its_words)
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
	fx_submit(f, comms[0], 1, 6, 8); /* another tag */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_submit(f, comms[1], 1, 5, 8);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_ARGUMENT, "tag 5 is in flight");
}
END_TEST

START_TEST(a_group_of_one_is_too_few)
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
	fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY);
	fx_expect_reply(f, WIRE_PENDING_ASYNC_OPS, "1 operation is");
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
	ck_assert_uint_eq(fx_sent(f, WM_PENDING_VOTE), 1);
	fx_free(f);
	f = fx_new();
	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "pcclUpdateTopology is in progress");
}
END_TEST

START_TEST(abort_before_the_start)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_op_abort(f, 1, 7, 5, 0); /* concerns an attempt that we did not vote for */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_abort(f, 1, 7, 5, 12); /* an attempt that is not this one */
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

START_TEST(abort_waits_for_the_threads)
{
	fx_group(f, 2, 2, comms);
	run_one(1);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0); /* crossed the cancellation */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_op_done(f, 1, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit(f, comms[0], 1, 5, 8); /* still in flight here */
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_ARGUMENT, "tag 5 is in flight");
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
	run_one(2);
}
END_TEST

START_TEST(abort_after_the_report)
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

/* The next master is told the same. */
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

/* It votes by itself, and waits for the answer like the others. */
START_TEST(a_refused_call_is_told_with_its_vote)
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

START_TEST(a_broken_link_names_the_suspect)
{
	const struct wm_op_report *r;
	bool inbound = _i == 1;

	fx_group(f, 2, 3, comms); /* next 100, prev 101 */
	run_one(1);
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 100 : 101, inbound); /* not its direction */
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 101 : 100, inbound);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok);
	ck_assert(memcmp(r->suspect.b, fx_id(inbound ? 101 : 100).b, 16) == 0);
	ck_assert_ptr_nonnull(strstr(r->text, "it broke"));
	fx_link(f, AGT_EV_LINK_DOWN, 1, inbound ? 101 : 100, inbound);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0); /* once is enough */
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_op_abort(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(silence_is_told_as_such)
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
	fx_orphan(f); /* the next master is told the same */
	fx_resume(f);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.silent);
}
END_TEST

START_TEST(no_start_over_a_missing_link)
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
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2); /* no thread to wait for */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
}
END_TEST

START_TEST(start_of_an_operation_that_is_gone)
{
	fx_group(f, 2, 2, comms);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	/* a seq must grow */
	fx_submit(f, comms[0], 0, 5, 8);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(done_without_our_report_is_nonsense)
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

START_TEST(every_wait_has_a_name)
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
	tcase_add_test(t, the_master_hears_of_a_standstill);
	tcase_add_test(t, local_votes_are_merged);
	tcase_add_test(t, other_parameters_vote_by_themselves);
	tcase_add_test(t, success_for_all_members_at_once);
	tcase_add_test(t, the_view_is_that_of_the_end_for_all);
	tcase_add_test(t, a_late_end_carries_the_view_of_its_loss);
	tcase_add_test(t, a_late_call_sees_the_view_of_its_loss);
	tcase_add_test(t, a_loss_ends_what_is_being_collected);
	tcase_add_test(t, a_loss_ends_what_is_called_before_it_is_known);
	tcase_add_test(t, a_refusal_says_whom_the_group_has_lost);
	tcase_add_test(t, only_a_loss_tells_of_a_loss);
	tcase_add_test(t, replies_carry_the_generation);
	tcase_add_test(t, an_abort_that_answers_an_older_vote_is_passed_over);
	tcase_add_test(t, what_the_caller_found_bad_is_completed_with_its_words);
	tcase_add_test(t, a_tag_in_flight_is_refused);
	tcase_add_test(t, a_group_of_one_is_too_few);
	tcase_add_test(t, topology_and_operations_exclude_each_other);
	tcase_add_test(t, abort_before_the_start);
	tcase_add_test(t, abort_waits_for_the_threads);
	tcase_add_test(t, abort_after_the_report);
	tcase_add_test(t, abort_without_code_is_not_success);
	tcase_add_test(t, a_failed_transfer_is_reported_and_aborted);
	tcase_add_test(t, a_failure_is_reported_again_with_its_code);
	tcase_add_test(t, a_refused_call_is_told_with_its_vote);
	tcase_add_loop_test(t, a_broken_link_names_the_suspect, 0, 2);
	tcase_add_loop_test(t, silence_is_told_as_such, 0, 2);
	tcase_add_test(t, no_start_over_a_missing_link);
	tcase_add_test(t, start_of_an_operation_that_is_gone);
	tcase_add_test(t, done_without_our_report_is_nonsense);
	tcase_add_test(t, every_wait_has_a_name);
	suite_add_tcase(s, t);
	return s;
}
