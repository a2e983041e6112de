/* SPDX-License-Identifier: MIT
 *
 * A master dies, the agent lives: what is kept, what the next master is told, and when it is all
 * over.
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

static void tick(uint64_t ms)
{
	f->now += ms * MS;
	fx_event(f, AGT_EV_TICK, 0, NULL);
}

static void down(void)
{
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
}

static struct wm_msg ack(uint64_t term)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};

	m.u.hello_ack = (struct wm_hello_ack){.version = 1,
		.run = fx_id(201),
		.run_key = fx_id(300),
		.heartbeat_ms = 1000,
		.timeout_ms = 3000,
		.segment_max = 65536,
		.term = term,
		.resume = true};
	return m;
}

static void greet(void)
{
	const struct wm_hello *h;

	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	ck_assert_uint_eq(fx_sent(f, WM_HELLO), 1);
	h = &fx_msg(f, WM_HELLO, 0)->u.hello;
	ck_assert(fx_is(&h->run, fx_id(201)));
	ck_assert(fx_is(&h->run_key, fx_id(300)));
}

static void resume(void)
{
	struct wm_msg m = ack(2);

	greet();
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 1);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_RUN_READY), 0);
}

static const struct wm_resume *resumed(void)
{
	return &fx_msg(f, WM_RESUME, 0)->u.resume;
}

static void submit_all(unsigned n, uint64_t tag)
{
	unsigned i;

	for (i = 0; i < n; i++)
		fx_submit(f, comms[i], (uint32_t)tag % SHM_SLOTS, tag, 8);
}

/* Place of the first message of that type among all actions. */
static size_t place(enum wm_type type)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (f->acts.v[i].type == AGT_ACT_MASTER_SEND && f->acts.v[i].u.msg.type == type)
			return i;
	ck_abort_msg("no such message was sent");
	return 0;
}

START_TEST(a_run_is_told_as_it_is)
{
	const struct wm_op_vote *v;
	const struct wm_resume *r;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_op_done(f, 1, 1);
	submit_all(2, 6);
	fx_op_start(f, 1, 7, 6, 2); /* runs */
	submit_all(2, 8);
	fx_op_start(f, 1, 7, 8, 3);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 3, 0); /* reported */
	submit_all(2, 9);                      /* voted */
	fx_submit(f, comms[0], 20, 10, 8);     /* collecting */
	submit_all(2, 11);
	fx_op_start(f, 1, 7, 11, 4);
	fx_op_abort(f, 1, 7, 11, 4); /* cancelling */
	down();
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 2);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 1)->u.join.token, fx_token(2)));
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 3);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->tag == 6 && v->seq == 2 && v->n_peers == 2);
	v = &fx_msg(f, WM_OP_VOTE, 1)->u.op_vote;
	ck_assert(v->tag == 8 && v->seq == 3);
	v = &fx_msg(f, WM_OP_VOTE, 2)->u.op_vote;
	ck_assert(v->tag == 9 && v->seq == 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.seq, 3);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	r = resumed();
	ck_assert(r->epoch == 1 && r->round == 1 && r->wired == 1 && r->prepared == 0 &&
		  r->last_seq == 4);
	ck_assert(r->topo_turn == 1);
	ck_assert(r->world.global == 3 && r->world.n == 1);
	ck_assert(r->world.own[0].group == 7 && r->world.own[0].world == 3);
	ck_assert(r->n_places == 1 && r->places[0].hosts == 2 && r->places[0].pos == 0);
	ck_assert_uint_eq(r->n_outcomes, 2);
	ck_assert(r->outcomes[0].seq == 1 && r->outcomes[0].code == WIRE_SUCCESS);
	ck_assert(r->outcomes[1].seq == 4 && r->outcomes[1].code == WIRE_RANK_CONNECTION_LOST);
	ck_assert(place(WM_JOIN) < place(WM_OP_VOTE) && place(WM_OP_VOTE) < place(WM_OP_REPORT) &&
		  place(WM_OP_REPORT) < place(WM_RESUME));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 2, 0); /* and on it goes */
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	fx_op_done(f, 1, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_op_start(f, 1, 7, 9, 5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}
END_TEST

START_TEST(what_happens_meanwhile_is_told_later)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	submit_all(2, 8);
	fx_op_start(f, 1, 7, 8, 2);
	down();
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	submit_all(2, 6);
	ck_assert_uint_eq(f->acts.n, 0);
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 3);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 2)->u.op_vote.seq, 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 2);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 1)->u.op_report.ok);
	ck_assert(fx_is(&fx_msg(f, WM_OP_REPORT, 1)->u.op_report.suspect, fx_id(100)));
	ck_assert(strstr(fx_msg(f, WM_OP_REPORT, 1)->u.op_report.text, "it broke"));
	fx_op_start(f, 1, 7, 6, 3); /* over the ring that was in force, whose link is down */
	ck_assert(strstr(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.text, "is down"));
}
END_TEST

START_TEST(votes_are_sent_again_once)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world = 4, .n = 3, .members = {1, 2, 3}};
	struct wm_msg m = {
		.type = WM_PENDING_ANSWER, .u.pending_answer = {.pending = true, .turn = 4}};

	fx_group(f, 3, 2, comms);
	fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY);
	down();
	fx_request(f, 2, comms[1], WL_UPDATE_TOPOLOGY);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_request(f, 3, comms[2], WL_ARE_PENDING);
	ck_assert_uint_eq(f->acts.n, 0);
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_TOPO_VOTE), 2);
	ck_assert_uint_eq(fx_msg(f, WM_TOPO_VOTE, 0)->u.peer.turn, 1);
	ck_assert_uint_eq(fx_sent(f, WM_PENDING_VOTE), 1);
	ck_assert(place(WM_PENDING_VOTE) < place(WM_RESUME));
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.pending_turn, 4);
	fx_request(f, 3, comms[2], WL_ARE_PENDING);
	fx_from_master(f, 1, &m); /* the answer to the vote before */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_commit(f, 1, 2, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.topo_turn, 2);
	fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY);
	ck_assert_uint_eq(fx_msg(f, WM_TOPO_VOTE, 0)->u.peer.turn, 2);
	f->topo_turn--; /* the commit of the vote before, once more */
	fx_commit(f, 1, 2, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
}
END_TEST

START_TEST(newcomers_join_the_next_master)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world = 4, .n = 3, .members = {1, 2, 3}};
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_session(f, 2, 1000);
	c = fx_create(f, 2, 7, 1);
	fx_connect(f, 2, c, 2); /* registered */
	fx_request(f, 1, comms[0], WL_UPDATE_TOPOLOGY);
	fx_round(f, 1, 2, true, &ring, 1); /* for peer 2, and for 3, which is not here */
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	down();
	fx_session(f, 4, 1000);
	c = fx_create(f, 4, 7, 1);
	fx_connect(f, 4, c, 4);
	ck_assert_uint_eq(f->acts.n, 0);
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 3);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 1)->u.join.phase, WM_JOIN_PREPARED);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 2)->u.join.phase, WM_JOIN_NEW);
	ck_assert_uint_eq(resumed()->prepared, 2);
	fx_commit(f, 1, 2, true, &ring, 1); /* others had it already */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
}
END_TEST

START_TEST(a_round_that_is_not_ready_is_dropped)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 1, comms);
	fx_round(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	down();
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	resume();
	ck_assert_uint_eq(resumed()->prepared, 0);
	ck_assert_uint_eq(resumed()->unprepared, 2);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
}
END_TEST

START_TEST(who_leaves_meanwhile_is_told_too)
{
	const struct wm_leave *l;
	uint32_t c;

	fx_group(f, 3, 2, comms);
	fx_session(f, 9, 1000);
	c = fx_create(f, 9, 7, 1);
	fx_connect(f, 9, c, 9); /* a newcomer: nobody will miss it */
	submit_all(3, 5);
	fx_op_start(f, 1, 7, 5, 1);
	down();
	fx_session_closed(f, 9);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0); /* it goes on without it */
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 3);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 2)->u.join.peer, fx_id(2)));
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 2)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	l = &fx_msg(f, WM_LEAVE, 0)->u.leave;
	ck_assert(fx_is(&l->peer, fx_id(2)));
	ck_assert_uint_eq(l->kind, WM_LEAVE_DIED);
	ck_assert(place(WM_LEAVE) < place(WM_OP_VOTE));
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 3);
}
END_TEST

START_TEST(destroying_does_not_wait_for_a_master)
{
	struct agt_status st;

	fx_group(f, 2, 2, comms);
	down();
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_request(f, 2, comms[1], WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	resume(); /* nobody is left, but that is to be told */
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 2);
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_lt(place(WM_RESUME), fx_index(f, AGT_ACT_MASTER_CLOSE, 0));
	agt_get_status(f->a, &st);
	ck_assert_uint_eq(st.runs + st.comms + st.ops, 0);
}
END_TEST

START_TEST(destroying_ends_what_runs)
{
	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	submit_all(2, 6);
	fx_op_start(f, 1, 7, 6, 2);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 2, 0);
	down();
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1); /* of seq 1 */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);    /* of seq 2, here */
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "was destroyed");
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.seq, 2);
	fx_op_done(f, 1, 2); /* it was known elsewhere */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	fx_expect_done(f, 0, comms[1], WIRE_SUCCESS, "");
}
END_TEST

START_TEST(a_master_is_sought_ever_less_often)
{
	static const unsigned pauses[] = {50, 100, 200, 400, 500, 500};
	unsigned i;

	fx_group(f, 1, 2, comms);
	down();
	for (i = 0; i < 6; i++) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		tick(pauses[i] - 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		tick(1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	}
	tick(999); /* no answer at all */
	tick(999);
	tick(999);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 0);
	tick(3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	tick(500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(the_grace_ends)
{
	uint32_t again;
	unsigned i;

	fx_group(f, 2, 2, comms);
	submit_all(2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	submit_all(2, 6);
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
	down();
	for (i = 0; i < 119; i++) {
		tick(500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY) + fx_count(f, AGT_ACT_COMPLETE), 0);
	}
	tick(500);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "within 60.0 s");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2);
	ck_assert_uint_lt(
		fx_index(f, AGT_ACT_XFER_CANCEL, 0), fx_index(f, AGT_ACT_MASTER_CLOSE, 0));
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_MASTER_CONNECTION_FAILED, "Connection reset by peer");
	fx_connect(f, 1, comms[0], 9);
	again = fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run;
	ck_assert_uint_ne(again, 1);
}
END_TEST

START_TEST(a_pause_of_the_agent_is_not_the_masters)
{
	fx_group(f, 1, 2, comms);
	tick(100);
	down();
	tick(90000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	tick(500);
	resume();
}
END_TEST

START_TEST(a_stale_master_is_passed_by)
{
	struct wm_msg m = ack(1), stale = {.type = WM_REFUSE};

	fx_group(f, 1, 2, comms);
	down();
	resume(); /* term 2 */
	down();
	greet();
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 2);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
	tick(50);
	greet();
	stale.u.refuse.code = WIRE_MASTER_CONNECTION_FAILED;
	strcpy(stale.u.refuse.text, "a newer master (term 2) has taken this run over");
	fx_from_master(f, 1, &stale);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	tick(100);
	greet();
	m = ack(2);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
	fx_from_master(f, 1, &stale); /* it hears of the newer one now */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
}
END_TEST

/* 0: another run; 1: it has forgotten ours; 2: it refuses us. */
START_TEST(a_master_that_does_not_know_the_run_ends_it)
{
	struct wm_msg m = ack(2);

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
	down();
	greet();
	if (_i == 0)
		m.u.hello_ack.run = fx_id(999);
	else if (_i == 1)
		m.u.hello_ack.resume = false;
	else
		m = (struct wm_msg){.type = WM_REFUSE};
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, _i == 2 ? WIRE_VERSION_MISMATCH : WIRE_MASTER_CONNECTION_FAILED,
		_i == 2 ? "protocol versions" : "does not know its run");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(a_start_that_comes_again_is_nothing)
{
	fx_group(f, 1, 2, comms);
	submit_all(1, 5);
	fx_op_start(f, 1, 7, 5, 3);
	down();
	resume();
	fx_op_start(f, 1, 7, 5, 3);
	ck_assert_uint_eq(f->acts.n, 0);
	submit_all(1, 6);
	fx_op_start(f, 1, 7, 6, 2); /* not seen here */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
	submit_all(1, 8);
	fx_op_start(f, 1, 7, 8, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(other_segments_spoil_what_has_not_started)
{
	struct wm_msg m = ack(2);

	fx_group(f, 1, 2, comms);
	submit_all(1, 5);
	down();
	greet();
	m.u.hello_ack.segment_max = 4096;
	fx_from_master(f, 1, &m);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(strstr(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.text, "another size"));
}
END_TEST

/* A second connection finds out where the master of an orphan is now. */
START_TEST(a_newcomer_shows_the_way)
{
	struct wm_msg m = ack(2);
	uint32_t c;

	fx_group(f, 1, 2, comms);
	down();
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	c = fx_create(f, 1, 7, 2);
	fx_connect(f, 1, c, 8);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	m.u.hello_ack.resume = false;
	fx_from_master(f, 2, &m);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_CLOSE, 0)->run, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
	resume();
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 2);
	down();
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2); /* the last good one */
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	tick(50);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

START_TEST(masters_move_back)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER};

	fx_group(f, 1, 2, comms);
	ev.from = fx_addr(1);
	ev.to = fx_addr(2);
	fx_step(f, &ev);
	ev.from = fx_addr(2);
	ev.to = fx_addr(1);
	fx_step(f, &ev);
	down();
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

static void set_master(unsigned from, unsigned to, uint32_t run, bool now)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .run = run, .now = now};

	if (from)
		ev.from = fx_addr(from);
	if (to)
		ev.to = fx_addr(to);
	fx_step(f, &ev);
}

START_TEST(masters_move)
{
	unsigned i;

	fx_group(f, 1, 2, comms);
	set_master(1, 2, 0, false);
	ck_assert_uint_eq(f->acts.n, 0);
	set_master(1, 3, 0, false); /* says it better */
	down();
	/* Who answers at the place that it has left may be stale: that comes last. */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 3);
	for (i = 0; i < 2; i++) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		tick(500);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], i == 0 ? 1 : 3);
	}
	set_master(3, 4, 0, false); /* at once, and from where it has moved to */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 4);
	resume();
	set_master(0, 5, 1, true); /* this run, now */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(
		fx_get(f, AGT_ACT_MASTER_OPEN, fx_count(f, AGT_ACT_MASTER_OPEN) - 1)->addr.ip[3],
		5);
	greet();
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 2);
}
END_TEST

START_TEST(a_connect_looks_where_the_master_has_moved)
{
	uint32_t c;

	set_master(1, 2, 0, false);
	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "10.0.0.1:48148 (Connection refused)");
	set_master(1, 0, 0, false); /* not any more */
	fx_connect(f, 1, c, 2);
	fx_event(f, AGT_EV_MASTER_DOWN, 2, "Connection refused");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
}
END_TEST

struct seen {
	char comm[WM_TEXT_MAX], op[WM_TEXT_MAX], state[16];
	uint64_t term, stopped;
};

static void see_comm(void *arg, const struct agt_comm_info *c)
{
	struct seen *s = arg;

	if (c->waiting[0])
		strcpy(s->comm, c->waiting);
	s->stopped += c->stopped_ns;
}

static void see_op(void *arg, const struct agt_op_info *o)
{
	struct seen *s = arg;

	strcpy(s->op, o->awaited);
}

static void see_run(void *arg, const struct agt_run_info *r)
{
	struct seen *s = arg;

	strcpy(s->state, r->state);
	s->term = r->term;
}

static struct seen look(void)
{
	struct seen s = {.term = 0};

	agt_each_comm(f->a, f->now, see_comm, &s);
	agt_each_op(f->a, f->now, see_op, &s);
	agt_each_run(f->a, f->now, see_run, &s);
	return s;
}

START_TEST(every_wait_has_a_reason)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for local pid 1002 to submit");
	fx_submit(f, comms[1], 0, 5, 8);
	ck_assert_str_eq(look().op, "waiting for the master to start it");
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
	down();
	f->now += 1500 * MS;
	ck_assert_str_eq(look().op, "waiting for a master to take the run over");
	ck_assert_str_eq(look().comm, "waiting for a master to take the run over for 1.5 s");
	ck_assert_str_eq(look().state, "orphan");
	greet();
	ck_assert_str_eq(look().state, "resuming");
	ck_assert_uint_eq(look().term, 1);
}
END_TEST

/* The last peer here has left, and its master's term is known all the same. */
START_TEST(a_stale_master_gets_nobody_else)
{
	struct wm_msg m = ack(1);
	uint32_t c;

	fx_group(f, 1, 2, comms);
	down();
	resume(); /* term 2 */
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	ck_assert(cc_id_is_zero(&fx_msg(f, WM_HELLO, 0)->u.hello.run));
	fx_from_master(f, 2, &m);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "is stale");
}
END_TEST

static void stopped(uint32_t session, bool is)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_STOPPED, .session = session, .stopped = is};

	fx_step(f, &ev);
}

START_TEST(a_stopped_process_is_lost_in_the_end)
{
	const struct agt_action *x;
	unsigned i;

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 0, 5, 8);
	stopped(2, true);
	for (i = 0; i < 19; i++) {
		struct wm_msg beat = {.type = WM_HEARTBEAT};

		tick(500);
		fx_from_master(f, 1, &beat);
	}
	stopped(2, false);
	stopped(2, true); /* from the beginning */
	f->now += 1200 * MS;
	ck_assert_str_eq(look().op, "waiting for local pid 1002 (trainer), which has been stopped "
				    "for 1.2 s, to submit");
	ck_assert_uint_eq(look().stopped, 1200 * (uint64_t)MS);
	f->now -= 1200 * MS;
	for (i = 0; i < 19; i++) {
		struct wm_msg beat = {.type = WM_HEARTBEAT};

		tick(500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 0);
		fx_from_master(f, 1, &beat);
	}
	tick(500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 1);
	x = fx_get(f, AGT_ACT_SESSION_END, 0);
	ck_assert_uint_eq(x->session, 2);
	ck_assert_uint_eq(x->u.reply.req_id, 0);
	ck_assert_uint_eq(x->u.reply.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(strstr(x->u.reply.text, "was stopped for 10.0 s"));
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_DIED);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1); /* the other one need not wait */
	fx_session_closed(f, 2);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(an_agent_that_was_stopped_too_forgives)
{
	fx_group(f, 1, 1, comms);
	stopped(1, true);
	tick(500);
	tick(20000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SESSION_END), 0);
}
END_TEST

Suite *resume_suite(void)
{
	Suite *s = suite_create("resume");
	TCase *t = tcase_create("resume");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_run_is_told_as_it_is);
	tcase_add_test(t, what_happens_meanwhile_is_told_later);
	tcase_add_test(t, votes_are_sent_again_once);
	tcase_add_test(t, newcomers_join_the_next_master);
	tcase_add_test(t, a_round_that_is_not_ready_is_dropped);
	tcase_add_test(t, who_leaves_meanwhile_is_told_too);
	tcase_add_test(t, destroying_does_not_wait_for_a_master);
	tcase_add_test(t, destroying_ends_what_runs);
	tcase_add_test(t, a_master_is_sought_ever_less_often);
	tcase_add_test(t, the_grace_ends);
	tcase_add_test(t, a_pause_of_the_agent_is_not_the_masters);
	tcase_add_test(t, a_stale_master_is_passed_by);
	tcase_add_loop_test(t, a_master_that_does_not_know_the_run_ends_it, 0, 3);
	tcase_add_test(t, a_start_that_comes_again_is_nothing);
	tcase_add_test(t, other_segments_spoil_what_has_not_started);
	tcase_add_test(t, a_newcomer_shows_the_way);
	tcase_add_test(t, masters_move);
	tcase_add_test(t, masters_move_back);
	tcase_add_test(t, a_connect_looks_where_the_master_has_moved);
	tcase_add_test(t, every_wait_has_a_reason);
	tcase_add_test(t, a_stale_master_gets_nobody_else);
	tcase_add_test(t, a_stopped_process_is_lost_in_the_end);
	tcase_add_test(t, an_agent_that_was_stopped_too_forgives);
	suite_add_tcase(s, t);
	return s;
}
