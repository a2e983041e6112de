/* SPDX-License-Identifier: MIT
 *
 * A master dies while its agent lives: the state that the agent keeps, and its snapshot for the
 * next master.
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

static const struct wm_resume *resumed(void)
{
	return &fx_msg(f, WM_RESUME, 0)->u.resume;
}

/* Passes time until the agent votes without the local peers that have not called. */
static void pass_part(void)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};

	fx_tick(f, 500);
	fx_from_master(f, 1, &beat);
	fx_tick(f, 500);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}

/* Returns the index of the first message of this type among all actions. */
static size_t sent_at(enum wm_type type)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (f->acts.v[i].type == AGT_ACT_MASTER_SEND && f->acts.v[i].u.msg.type == type)
			return i;
	ck_abort_msg("no such message was sent");
	return 0;
}

START_TEST(snapshot_contains_the_state_of_the_run)
{
	const struct wm_op_vote *v;
	const struct wm_resume *r;

	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_done(f, 1, 1);
	fx_submit_all(f, comms, 2, 6);
	fx_op_start(f, 1, 7, 6, 2); /* this operation is running */
	fx_submit_all(f, comms, 2, 8);
	fx_op_start(f, 1, 7, 8, 3);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 3, 0); /* this one is reported */
	fx_submit_all(f, comms, 2, 9);         /* this one is voted for */
	fx_submit(f, comms[0], 20, 10, 8);     /* this one is being collected */
	fx_submit_all(f, comms, 2, 11);
	fx_op_start(f, 1, 7, 11, 4);
	fx_op_abort(f, 1, 7, 11, 4); /* this one is being cancelled */
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 2);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 1)->u.join.token, fx_token(2)));
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.view_id, f->view_id);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.global, 3);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 3);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->tag == 6 && v->seq == 2 && v->n_peers == 2);
	ck_assert_uint_eq(v->epoch, 9); /* as fx_op_start has it */
	v = &fx_msg(f, WM_OP_VOTE, 1)->u.op_vote;
	ck_assert(v->tag == 8 && v->seq == 3);
	v = &fx_msg(f, WM_OP_VOTE, 2)->u.op_vote;
	ck_assert(v->tag == 9 && v->seq == 0 && v->epoch == 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.seq, 3);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	r = resumed();
	ck_assert(r->epoch == 1 && r->round == 1 && r->ring_epoch == 1 && r->prepared == 0 &&
		  r->last_seq == 4);
	ck_assert(r->ballots[WIRE_TOPOLOGY] == 1);
	ck_assert(r->view.global == 3 && r->view.n == 1);
	ck_assert(r->view.own[0].group == 7 && r->view.own[0].world_size == 3);
	ck_assert(r->n_positions == 1 && r->positions[0].hosts == 2 && r->positions[0].pos == 0);
	ck_assert_uint_eq(r->n_outcomes, 2);
	ck_assert(r->outcomes[0].seq == 1 && r->outcomes[0].code == WIRE_SUCCESS);
	ck_assert(r->outcomes[1].seq == 4 && r->outcomes[1].code == WIRE_RANK_CONNECTION_LOST);
	ck_assert(sent_at(WM_JOIN) < sent_at(WM_OP_VOTE) &&
		  sent_at(WM_OP_VOTE) < sent_at(WM_OP_REPORT) &&
		  sent_at(WM_OP_REPORT) < sent_at(WM_RESUME));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 2, 0); /* the operations continue */
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	fx_op_done(f, 1, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_op_start(f, 1, 7, 9, 5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}
END_TEST

/* Sends a view that names n lost peers, from `first` on. */
static void lose(bool all, uint64_t floor, unsigned first, uint32_t n)
{
	struct wm_group_view own = {.group = 7, .world_size = 2};
	struct wm_msg m = {.type = WM_VIEW};
	struct cc_id lost[WM_LOST_MAX];
	uint32_t i;

	for (i = 0; i < n; i++)
		lost[i] = fx_id(first + i);
	m.u.view = (struct wm_view){.view_id = ++f->view_id,
		.global = 2,
		.n = 1,
		.own = &own,
		.n_lost = n,
		.lost = lost,
		.lost_all = all,
		.lost_floor = floor};
	fx_from_master(f, 1, &m);
}

START_TEST(next_master_gets_the_list_of_lost_peers)
{
	const struct wm_view *w;

	fx_group(f, 1, 2, comms);
	lose(false, 0, 20, 1);
	lose(true, 5, 30, 2); /* replaces the first peer */
	lose(false, 0, 40, 1);
	fx_orphan(f);
	fx_resume(f);
	w = &resumed()->view;
	ck_assert_uint_eq(w->lost_floor, 5);
	ck_assert_uint_eq(w->n_lost, 3);
	ck_assert(fx_is(&w->lost[0], fx_id(30)) && fx_is(&w->lost[1], fx_id(31)));
	ck_assert(fx_is(&w->lost[2], fx_id(40)));
}
END_TEST

/* The list begins after the view that named the last peer that was dropped. */
START_TEST(full_list_of_lost_peers_drops_the_oldest)
{
	const struct wm_view *w;

	fx_group(f, 1, 2, comms);
	lose(true, 0, 1000, WM_LOST_MAX);
	lose(false, 0, 40, 1);
	fx_orphan(f);
	fx_resume(f);
	w = &resumed()->view;
	ck_assert_uint_eq(w->n_lost, WM_LOST_MAX);
	ck_assert_uint_eq(w->lost_floor, f->view_id - 1);
	ck_assert(fx_is(&w->lost[0], fx_id(1001)));
	ck_assert(fx_is(&w->lost[WM_LOST_MAX - 1], fx_id(40)));
}
END_TEST

START_TEST(events_without_a_master_are_reported_later)
{
	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_submit_all(f, comms, 2, 8);
	fx_op_start(f, 1, 7, 8, 2);
	fx_orphan(f);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	fx_submit_all(f, comms, 2, 6);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 3);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 2)->u.op_vote.seq, 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 2);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 1)->u.op_report.ok);
	ck_assert(fx_is(&fx_msg(f, WM_OP_REPORT, 1)->u.op_report.suspect, fx_id(100)));
	ck_assert(strstr(fx_msg(f, WM_OP_REPORT, 1)->u.op_report.text, "it broke"));
	fx_op_start(f, 1, 7, 6, 3); /* the operation starts in the old ring, whose link is down */
	ck_assert(strstr(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.text, "is down"));
}
END_TEST

/* The first peer leaves while there is no master. Its memory is free at once. The next master ends
 * the operation for the other peer, with the new generation, before or after (_i == 1) the transfer
 * is cancelled. */
START_TEST(leave_without_a_master_costs_the_others_one_error)
{
	struct wm_msg m = {.type = WM_OP_ABORT,
		.u.op_abort = {
			.group = 7, .seq = 1, .code = WIRE_RANK_CONNECTION_LOST, .text = "lost"}};
	bool late = _i == 1;

	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_orphan(f);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	if (!late) {
		fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1); /* the first peer's */
		/* The other peer may need the result region, to restore its operand. */
		ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 0);
	}
	fx_resume(f);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.seq, 1);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	lose(true, 0, 1, 1); /* generation 0, as before: only the abort ends the operation */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_from_master(f, 1, &m);
	if (late) {
		ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
		fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	}
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), late ? 2 : 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
}
END_TEST

START_TEST(votes_are_sent_again_once)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 4, .n = 3, .members = {1, 2, 3}};
	struct wm_msg m = {
		.type = WM_BALLOT_END, .u.ballot_end = {.kind = WIRE_PENDING, .number = 5}};

	fx_group(f, 3, 2, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_orphan(f);
	fx_request(f, 2, comms[1], FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(f->acts.n, 0);
	fx_request(f, 3, comms[2], FX_VOTE(WIRE_PENDING));
	ck_assert_uint_eq(f->acts.n, 0);
	fx_resume(f);
	ck_assert_uint_eq(fx_votes(f, WIRE_TOPOLOGY), 2);
	ck_assert_uint_eq(fx_vote(f, WIRE_TOPOLOGY, 0)->number, 1);
	ck_assert_uint_eq(fx_votes(f, WIRE_PENDING), 1);
	ck_assert(sent_at(WM_BALLOT_VOTE) < sent_at(WM_RESUME));
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.ballots[WIRE_PENDING], 5);
	fx_request(f, 3, comms[2], FX_VOTE(WIRE_PENDING));
	fx_from_master(f, 1, &m); /* the answer to the previous vote */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_commit(f, 1, 2, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.ballots[WIRE_TOPOLOGY], 2);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(fx_vote(f, WIRE_TOPOLOGY, 0)->number, 2);
	f->topo_ballot--; /* repeats the commit of the previous vote */
	fx_commit(f, 1, 2, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
}
END_TEST

/* The agent names its run. Its peers are no members yet, so they lose no membership if the master
 * has another run. */
START_TEST(hello_says_that_an_agent_has_only_newcomers)
{
	const struct wm_hello *h;
	uint32_t c;

	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 1);
	fx_master_up(f, 1);
	fx_orphan(f);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	h = &fx_msg(f, WM_HELLO, 0)->u.hello;
	ck_assert(fx_is(&h->run, fx_id(201)));
	ck_assert(h->newcomers);
}
END_TEST

START_TEST(newcomers_join_the_next_master)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 2, .world_size = 4, .n = 3, .members = {1, 2, 3}};
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_session(f, 2, 1000);
	c = fx_create(f, 2, 7, 1);
	fx_connect(f, 2, c, 2); /* peer 2 is registered */
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_round(f, 1, 2, true, &ring, 1); /* admits peers 2 and 3; peer 3 is not on this host */
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_orphan(f);
	fx_session(f, 4, 1000);
	c = fx_create(f, 4, 7, 1);
	fx_connect(f, 4, c, 4);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 3);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 1)->u.join.phase, WM_JOIN_PREPARED);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 2)->u.join.phase, WM_JOIN_NEW);
	ck_assert_uint_eq(resumed()->prepared, 2);
	fx_commit(f, 1, 2, true, &ring, 1); /* other agents have received this commit already */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
}
END_TEST

START_TEST(round_without_open_links_is_aborted)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 1, comms);
	fx_round(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	fx_orphan(f);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	fx_resume(f);
	ck_assert_uint_eq(resumed()->prepared, 0);
	ck_assert_uint_eq(resumed()->aborted_round, 2);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
}
END_TEST

START_TEST(leave_without_a_master_is_sent_to_the_next_master)
{
	const struct wm_leave *l;
	uint32_t c;

	fx_group(f, 3, 2, comms);
	fx_session(f, 9, 1000);
	c = fx_create(f, 9, 7, 1);
	fx_connect(f, 9, c, 9); /* a newcomer, whose leave is not sent */
	fx_submit_all(f, comms, 3, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_orphan(f);
	fx_session_closed(f, 9);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
	/* The operation continues without this member. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 3);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 2)->u.join.peer, fx_id(2)));
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 2)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	l = &fx_msg(f, WM_LEAVE, 0)->u.leave;
	ck_assert(fx_is(&l->peer, fx_id(2)));
	ck_assert_uint_eq(l->kind, WM_LEAVE_DIED);
	ck_assert(sent_at(WM_LEAVE) < sent_at(WM_OP_VOTE));
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 3);
}
END_TEST

START_TEST(destroy_does_not_wait_for_a_master)
{
	struct agt_status st;

	fx_group(f, 2, 2, comms);
	fx_orphan(f);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_destroy(f, 2, comms[1], "it is out of memory");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_resume(f); /* no member is left, but their leaves must be sent */
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct wm_leave *l = &fx_msg(f, WM_LEAVE, i)->u.leave;

		ck_assert_uint_eq(l->kind, WM_LEAVE_CLEAN);
		ck_assert_str_eq(l->text, fx_is(&l->peer, fx_id(2)) ? "it is out of memory" : "");
	}
	ck_assert(sent_at(WM_LEAVE) < sent_at(WM_RESUME));
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	agt_get_status(f->a, &st);
	ck_assert_uint_eq(st.runs + st.comms + st.ops, 0);
}
END_TEST

START_TEST(destroy_without_a_master_leaves_running_operations)
{
	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_submit_all(f, comms, 2, 6);
	fx_op_start(f, 1, 7, 6, 2);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 2, 0);
	fx_orphan(f);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1); /* the operation with seq 1 */
	/* The operation with seq 2, for this member. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 1)->u.op_vote.seq, 2);
	fx_op_abort(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_op_done(f, 1, 2); /* another host knew of the success */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[1], WIRE_SUCCESS, "");
}
END_TEST

START_TEST(repeated_start_has_no_effect)
{
	fx_group(f, 1, 2, comms);
	fx_submit_all(f, comms, 1, 5);
	fx_op_start(f, 1, 7, 5, 3);
	fx_orphan(f);
	fx_resume(f);
	fx_op_start(f, 1, 7, 5, 3);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_submit_all(f, comms, 1, 6);
	fx_op_start(f, 1, 7, 6, 2); /* this agent has not seen seq 2 before */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
	fx_submit_all(f, comms, 1, 8);
	fx_op_start(f, 1, 7, 8, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* Other hosts may have started the attempt with the old size, before the last master died. */
START_TEST(new_segment_size_applies_to_the_next_rings)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 3, .n = 2, .members = {1, 2}};
	struct wm_msg m = fx_ack(2);

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 5, 5, 8);
	pass_part();
	fx_orphan(f);
	fx_greet(f);
	m.u.hello_ack.segment_max = 4096;
	fx_from_master(f, 1, &m);
	fx_submit(f, comms[1], 5, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.segment_max, 65536);
	fx_round(f, 1, 2, false, &ring, 1);
	fx_submit_all(f, comms, 2, 6);
	fx_op_start(f, 1, 7, 6, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.segment_max, 65536);
	fx_commit(f, 1, 2, false, &ring, 1);
	fx_submit_all(f, comms, 2, 8);
	fx_op_start(f, 1, 7, 8, 3);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.segment_max, 4096);
}
END_TEST

/* The next master counts only votes that are sent again. So this host does not vote again for the
 * member that has left, but votes for the member that calls late. */
START_TEST(next_master_gets_no_vote_of_a_peer_that_has_left)
{
	const struct wm_op_vote *v;

	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 5, 5, 8);
	fx_submit(f, comms[1], 5, 5, 8);
	pass_part();
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
	fx_session_closed(f, 2);
	fx_orphan(f);
	fx_resume(f);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->n_peers == 1 && fx_is(&v->peers[0], fx_id(1)));
	fx_submit(f, comms[2], 5, 5, 8);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->n_peers == 1 && fx_is(&v->peers[0], fx_id(3)));
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 2);
}
END_TEST

START_TEST(call_without_a_master_joins_the_vote)
{
	fx_group(f, 3, 2, comms);
	fx_submit(f, comms[0], 5, 5, 8);
	fx_submit(f, comms[1], 5, 5, 8);
	pass_part();
	fx_orphan(f);
	fx_session_closed(f, 2);
	fx_submit(f, comms[2], 5, 5, 8);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 2);
}
END_TEST

/* Knowledge about another run is not sent to the next master of this run. */
START_TEST(ballots_of_another_run_are_not_sent)
{
	struct wm_msg kick = {.type = WM_KICK, .u.kick = {.peer = fx_id(1), .code = 8}};
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {2}};
	struct wm_msg ack = fx_ack(2);
	uint32_t c;

	f->topo_ballot = 6;
	fx_group(f, 1, 2, comms);
	fx_from_master(f, 1, &kick);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	f->topo_ballot = 0;
	fx_session(f, 2, 1000);
	c = fx_create(f, 2, 7, 1);
	fx_connect(f, 2, c, 2);
	fx_master_up(f, 2);
	fx_accept(f, 2, 1, &ring, 1);
	fx_connect(f, 1, comms[0], 3);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 2, "Connection reset by peer");
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	ack.u.hello_ack.run = fx_id(202);
	fx_from_master(f, 2, &ack);
	ck_assert_uint_eq(resumed()->ballots[WIRE_TOPOLOGY], 1);
}
END_TEST

Suite *resume_suite(void)
{
	Suite *s = suite_create("resume");
	TCase *t = tcase_create("resume");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, snapshot_contains_the_state_of_the_run);
	tcase_add_test(t, next_master_gets_the_list_of_lost_peers);
	tcase_add_test(t, full_list_of_lost_peers_drops_the_oldest);
	tcase_add_test(t, events_without_a_master_are_reported_later);
	tcase_add_loop_test(t, leave_without_a_master_costs_the_others_one_error, 0, 2);
	tcase_add_test(t, votes_are_sent_again_once);
	tcase_add_test(t, hello_says_that_an_agent_has_only_newcomers);
	tcase_add_test(t, newcomers_join_the_next_master);
	tcase_add_test(t, round_without_open_links_is_aborted);
	tcase_add_test(t, leave_without_a_master_is_sent_to_the_next_master);
	tcase_add_test(t, destroy_does_not_wait_for_a_master);
	tcase_add_test(t, destroy_without_a_master_leaves_running_operations);
	tcase_add_test(t, repeated_start_has_no_effect);
	tcase_add_test(t, new_segment_size_applies_to_the_next_rings);
	tcase_add_test(t, next_master_gets_no_vote_of_a_peer_that_has_left);
	tcase_add_test(t, call_without_a_master_joins_the_vote);
	tcase_add_test(t, ballots_of_another_run_are_not_sent);
	suite_add_tcase(s, t);
	return s;
}
