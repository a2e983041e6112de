/* SPDX-License-Identifier: MIT
 *
 * Peers that outlived their agent attach to this agent.
 */
#include "tests/agent/fixture.h"

static struct fx *f;
/* master_addr of the next attach: where the previous agent had found the master. */
static struct cc_addr at;

static void setup(void)
{
	f = fx_new();
	at.family = 0;
}

static void teardown(void)
{
	fx_free(f);
}

/* Attaches peer `peer` of group 7 in run fx_id(201). The application gave fx_addr(1)
 * as the address of the master. */
static void attach(uint32_t session, unsigned peer, uint32_t n_seqs)
{
	struct wl_request q = {.type = WL_COMM_ATTACH,
		.req_id = ++f->req_id,
		.master = fx_addr(1),
		.master_addr = at,
		.group = 7,
		.pool_size = 2,
		.peer = fx_id(peer),
		.token = fx_token(peer),
		.run = fx_id(201),
		.ballots = {4, 3},
		.view_id = 19,
		.global = 6,
		.n_seqs = n_seqs,
		.n_succeeded = n_seqs / 2,
		.seqs = {11, 12, 13}};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = session, .request = &q};

	fx_step(f, &ev);
}

static void master_answers(uint32_t run, bool resume)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};

	fx_event(f, AGT_EV_MASTER_UP, run, NULL);
	ck_assert(fx_is(&fx_msg(f, WM_HELLO, 0)->u.hello.run, fx_id(201)));
	ck_assert(cc_id_is_zero(&fx_msg(f, WM_HELLO, 0)->u.hello.run_key));
	ck_assert(!fx_msg(f, WM_HELLO, 0)->u.hello.newcomers);
	m.u.hello_ack = (struct wm_hello_ack){.version = WM_VERSION_MAX,
		.run = resume ? fx_id(201) : fx_id(999),
		.heartbeat_ms = 1000,
		.timeout_ms = 3000,
		.segment_max = 65536,
		.term = 1,
		.resume = resume};
	fx_from_master(f, run, &m);
}

static void outcomes(unsigned peer, uint32_t c11, uint32_t c12, uint32_t c13)
{
	struct wm_msg m = {.type = WM_OP_OUTCOMES, .u.op_outcomes = {.n = 3}};

	m.u.op_outcomes.peer = fx_id(peer);
	m.u.op_outcomes.v[0] = (struct wm_outcome){11, c11};
	m.u.op_outcomes.v[1] = (struct wm_outcome){12, c12};
	m.u.op_outcomes.v[2] = (struct wm_outcome){13, c13};
	fx_from_master(f, 1, &m);
}

static void kick(unsigned peer, uint32_t code)
{
	struct wm_msg m = {.type = WM_KICK, .u.kick.code = code};

	m.u.kick.peer = fx_id(peer);
	strcpy(m.u.kick.text, "declared lost 3 s ago; connect anew");
	fx_from_master(f, 1, &m);
}

/* Runs a rewiring round with this ring, and commits it. */
static void ring_of(uint64_t round, const struct fx_ring *ring)
{
	f->topo_ballot = 5;
	fx_round(f, 1, round, false, ring, 1);
	if (fx_count(f, AGT_ACT_LINK_OPEN))
		fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	fx_commit(f, 1, round, false, ring, 1);
}

static const struct fx_ring one = {
	.group = 7, .hosts = 2, .world_size = 2, .generation = 2, .n = 1, .members = {1}};

START_TEST(peer_that_outlived_its_agent_joins_again)
{
	const struct agt_action *x;
	const struct wm_join *j;
	uint32_t comm;

	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 0);
	master_answers(1, true);
	j = &fx_msg(f, WM_JOIN, 0)->u.join;
	ck_assert(fx_is(&j->peer, fx_id(1)) && fx_is(&j->token, fx_token(1)));
	ck_assert_uint_eq(j->phase, WM_JOIN_ACCEPTED);
	ck_assert(j->view_id == 19 && j->global == 6);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
	ck_assert_uint_eq(fx_msg(f, WM_RESUME, 0)->u.resume.epoch, 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_QUERY), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_QUERY, 0)->u.op_query.n, 3);
	ck_assert_uint_eq(fx_msg(f, WM_OP_QUERY, 0)->u.op_query.seqs[2], 13);
	ck_assert_uint_eq(fx_msg(f, WM_OP_QUERY, 0)->u.op_query.n_succeeded, 1);
	outcomes(1, WIRE_SUCCESS, WIRE_RANK_CONNECTION_LOST, WIRE_SUCCESS);
	ck_assert_uint_eq(f->acts.n, 0);
	ring_of(8, &one);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 0);
	x = fx_get(f, AGT_ACT_COMM_OPEN, 0);
	comm = x->comm;
	ck_assert_uint_eq(x->session, 1);
	ck_assert_uint_eq(x->u.open.reply.req_id, f->req_id);
	ck_assert_uint_eq(x->u.open.reply.comm, comm);
	ck_assert_uint_eq(x->u.open.reply.code, WIRE_SUCCESS);
	ck_assert_uint_eq(x->u.open.reply.done, 5);
	ck_assert_uint_eq(x->u.open.reply.generation, 2);
	/* The ballot numbers are those of the peer, not of the run. */
	ck_assert_uint_eq(x->u.open.reply.ballots[WIRE_TOPOLOGY], 4);
	ck_assert_uint_eq(x->u.open.reply.ballots[WIRE_PENDING], 3);
	ck_assert(fx_is(&x->u.open.reply.run, fx_id(201)));
	ck_assert_uint_eq(x->u.open.attrs.state, SHM_COMM_CONNECTED);
	f->generation = 2;
	fx_submit(f, comm, 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	fx_op_start(f, 1, 7, 5, 20);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 20, 0);
	fx_op_done(f, 1, 20);
	fx_expect_done(f, 0, comm, WIRE_SUCCESS, "");
	/* The other peers have completed this ballot already. */
	fx_request(f, 1, comm, FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(fx_vote(f, WIRE_TOPOLOGY, 0)->number, 4);
	f->topo_ballot = 4;
	fx_commit(f, 1, 8, true, &one, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.ballots[WIRE_TOPOLOGY], 5);
}
END_TEST

START_TEST(attach_waits_for_outcomes_after_the_commit)
{
	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	master_answers(1, true);
	ring_of(8, &one);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 0);
	outcomes(2, 0, 0, 0); /* these outcomes are for another peer */
	ck_assert_uint_eq(f->acts.n, 0);
	outcomes(1, 8, 8, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMM_OPEN, 0)->u.open.reply.done, 4);
}
END_TEST

/* The master sends an outcome when the attempt has ended. The other peers of the group wait for
 * this end, too, so the attach has no time limit here. */
START_TEST(attach_waits_without_limit_for_a_running_attempt)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};
	unsigned i;

	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	master_answers(1, true);
	ring_of(8, &one);
	for (i = 0; i < 200; i++) {
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
		fx_from_master(f, 1, &beat);
	}
	outcomes(1, 0, 8, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMM_OPEN, 0)->u.open.reply.done, 1);
}
END_TEST

/* The first peer has already voted when the second one comes back. The agent sends the second
 * peer's vote in a separate message. */
START_TEST(peers_attach_one_by_one)
{
	struct fx_ring ring = one;
	uint32_t c1, c2;

	fx_session(f, 1, 1000);
	fx_session(f, 2, 1000);
	attach(1, 1, 0);
	master_answers(1, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_QUERY), 0);
	ring.world_size = 3;
	ring_of(8, &ring);
	c1 = fx_get(f, AGT_ACT_COMM_OPEN, 0)->comm;
	f->generation = 2;
	fx_submit(f, c1, 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	attach(2, 2, 0);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ring.n = 2;
	ring.members[1] = 2;
	ring_of(9, &ring);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	c2 = fx_get(f, AGT_ACT_COMM_OPEN, 0)->comm;
	fx_submit(f, c2, 0, 5, 8);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 1);
	ck_assert(fx_is(&fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.peers[0], fx_id(2)));
	fx_op_start(f, 1, 7, 5, 20);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 2);
}
END_TEST

START_TEST(late_attach_fails_with_the_text_of_the_kick)
{
	struct agt_status st;

	fx_session(f, 1, 1000);
	attach(1, 1, 1);
	master_answers(1, true);
	kick(1, WIRE_RANK_CONNECTION_LOST);
	fx_expect_reply(f, WIRE_RANK_CONNECTION_LOST, "declared lost");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 0); /* no communicator was open */
	agt_get_status(f->a, &st);
	ck_assert_uint_eq(st.comms + st.runs, 0);
}
END_TEST

START_TEST(attach_does_not_accept_another_run)
{
	uint32_t c;

	fx_session(f, 1, 1000);
	attach(1, 1, 1);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5); /* a newcomer accepts whichever run the master has */
	f->req_id -= 2;
	master_answers(1, false);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "has another run now");
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 0)->u.join.peer, fx_id(5)));
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 0);
	f->req_id += 2;
	/* Another master may run at this address by now. */
	attach(1, 2, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	f->req_id--;
	master_answers(2, false);
	f->req_id++;
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "has another run now");
}
END_TEST

START_TEST(attach_waits_60_s_for_its_master)
{
	unsigned i;
	uint32_t c;

	fx_session(f, 1, 1000);
	attach(1, 1, 0);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	ck_assert_uint_eq(f->acts.n, 0);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	for (i = 0; i < 119; i++) {
		if (fx_count(f, AGT_ACT_MASTER_OPEN))
			fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		if (fx_count(f, AGT_ACT_REPLY)) {
			ck_assert_uint_ge(i, 19); /* only the newcomer fails before 60 s */
			fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "cannot reach");
			f->req_id -= 2;
		}
		fx_tick(f, 500);
	}
	fx_tick(f, 500);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "within 60.0 s");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

static void next_master(void)
{
	struct wm_msg m = {.type = WM_HELLO_ACK,
		.u.hello_ack = {.version = WM_VERSION_MAX,
			.run = fx_id(201),
			.heartbeat_ms = 1000,
			.timeout_ms = 3000,
			.segment_max = 65536,
			.term = 2,
			.resume = true}};

	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	fx_from_master(f, 1, &m);
}

/* The peer may have been lost between its last view and the last view of this agent, so it joins
 * with its own view. */
START_TEST(attach_to_an_open_run_keeps_the_view_of_the_peer)
{
	const struct wm_join *j;

	fx_session(f, 1, 1000);
	fx_session(f, 2, 1000);
	attach(1, 1, 0);
	master_answers(1, true);
	ring_of(20, &one);
	attach(2, 2, 0);
	j = &fx_msg(f, WM_JOIN, 0)->u.join;
	ck_assert_uint_eq(j->view_id, 19);
	next_master();
	j = &fx_msg(f, WM_JOIN, 0)->u.join;
	ck_assert(fx_is(&j->peer, fx_id(1)));
	ck_assert_uint_eq(j->view_id, f->view_id);
}
END_TEST

START_TEST(attach_is_repeated_with_the_next_master)
{
	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	master_answers(1, true);
	next_master();
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_sent(f, WM_OP_QUERY), 1);
}
END_TEST

/* Perhaps no other agent knows these outcomes, so this agent sends them to the next master. */
START_TEST(agent_remembers_outcomes_for_the_next_master)
{
	const struct wm_resume *r;

	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	attach(1, 2, 3);
	master_answers(1, true);
	outcomes(1, WIRE_SUCCESS, WIRE_RANK_CONNECTION_LOST, WIRE_SUCCESS);
	outcomes(2, WIRE_SUCCESS, WIRE_RANK_CONNECTION_LOST, WIRE_SUCCESS);
	next_master();
	r = &fx_msg(f, WM_RESUME, 0)->u.resume;
	ck_assert_uint_eq(r->last_seq, 13);
	ck_assert_uint_eq(r->n_outcomes, 2);
	ck_assert_uint_eq(r->outcomes[0].seq, 11);
	ck_assert_uint_eq(r->outcomes[1].seq, 13);
	ck_assert_uint_eq(r->outcomes[1].code, WIRE_SUCCESS);
}
END_TEST

START_TEST(attaching_process_that_dies_is_reported)
{
	fx_session(f, 1, 1000);
	attach(1, 1, 3);
	master_answers(1, true);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_DIED);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(peer_attaches_to_an_open_run)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 3, .n = 2, .members = {1, 9}};
	uint32_t comms[1];

	fx_group(f, 1, 2, comms);
	fx_session(f, 9, 1000);
	attach(9, 9, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	/* The run may have counted the peer as lost, so its JOIN contains the view that the peer
	 * knows. */
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.view_id, 19);
	ck_assert_uint_eq(fx_sent(f, WM_OP_QUERY), 1);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 0);
	outcomes(9, 0, 0, 0);
	ring_of(8, &ring);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_OPEN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMM_OPEN, 0)->u.open.reply.done, 3);
	fx_session(f, 10, 1000);
	attach(10, 9, 0); /* the same peer a second time */
	fx_expect_reply(f, WIRE_INVALID_USAGE, "already");
}
END_TEST

START_TEST(second_connection_to_the_same_run_is_closed)
{
	uint32_t c;

	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL); /* the HELLO of this connection names no run */
	fx_session(f, 2, 1000);
	attach(2, 1, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	{
		struct wm_msg m = fx_ack(1);

		m.u.hello_ack.resume = false;
		fx_from_master(f, 1, &m);
	}
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	ck_assert_uint_eq(fx_sent(f, WM_HELLO), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_CLOSE, 0)->run, 2);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert_uint_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fx_sent(f, WM_OP_QUERY), 1);
}
END_TEST

static unsigned connects_made(void)
{
	return fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3];
}

/* The master has moved from address 1 to address 3, and the previous agent knew this. */
START_TEST(a_master_that_has_moved_is_found)
{
	struct wl_request q = {.type = WL_COMM_CONNECT};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = 1, .request = &q};
	const struct agt_action *x;
	unsigned i;

	at = fx_addr(3);
	fx_session(f, 1, 1000);
	attach(1, 1, 0);
	for (i = 0; i < 4; i++) { /* the known address first, then the configured one */
		ck_assert_uint_eq(connects_made(), i % 2 ? 1 : 3);
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		if (!fx_count(f, AGT_ACT_MASTER_OPEN))
			fx_tick(f, 500);
	}
	ck_assert_uint_eq(connects_made(), 3);
	master_answers(1, true);
	ring_of(8, &one);
	x = fx_get(f, AGT_ACT_COMM_OPEN, 0);
	ck_assert(cc_addr_eq(&x->u.open.attrs.at, &at));
	/* Newcomers of the same user join the same run, although they know only the configured
	 * address. */
	q.comm = fx_create(f, 1, 7, 1);
	q.peer = fx_id(5);
	q.token = fx_token(5);
	fx_step(f, &ev);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	/* A process of another user tries the configured address first, because it does not trust
	 * this user's address. */
	fx_session(f, 2, 1001);
	fx_connect(f, 2, fx_create(f, 2, 7, 1), 6);
	ck_assert_uint_eq(connects_made(), 1);
}
END_TEST

/* Another master runs at the old address of the moved master, and has another run. */
START_TEST(moved_master_is_found_although_another_has_its_address)
{
	uint32_t c;

	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	{
		struct wm_msg m = fx_ack(1);

		m.u.hello_ack.run = fx_id(999);
		fx_from_master(f, 1, &m);
	}
	at = fx_addr(3);
	attach(1, 1, 0);
	ck_assert_uint_eq(connects_made(), 3);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	master_answers(2, true);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

/* The operator's change of the address applies to all users. */
START_TEST(operator_confirms_an_address_for_all_users)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .from = fx_addr(1), .to = fx_addr(3)};

	at = fx_addr(3);
	fx_session(f, 1, 1000);
	attach(1, 1, 0);
	master_answers(1, true);
	fx_step(f, &ev);
	fx_session(f, 2, 1001);
	fx_connect(f, 2, fx_create(f, 2, 7, 1), 6);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(create_tells_the_agent_a_new_address_of_the_master)
{
	struct wl_request q = {.type = WL_COMM_CREATE, .group = 7, .pool_size = 2};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = 1, .request = &q};
	uint32_t c;

	fx_session(f, 1, 1000);
	fx_connect(f, 1, fx_create(f, 1, 7, 1), 5);
	ck_assert_uint_eq(connects_made(), 1); /* this connection stays at the configured address */
	q.master = fx_addr(1);
	q.master_addr = fx_addr(3);
	q.req_id = ++f->req_id;
	fx_step(f, &ev);
	c = fx_get(f, AGT_ACT_COMM_OPEN, 0)->comm;
	fx_connect(f, 1, c, 6);
	ck_assert_uint_eq(connects_made(), 3);
	fx_event(f, AGT_EV_MASTER_DOWN, 2, "Connection refused");
	ck_assert_uint_eq(connects_made(), 1);
}
END_TEST

Suite *attach_suite(void)
{
	Suite *s = suite_create("attach");
	TCase *t = tcase_create("attach");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, peer_that_outlived_its_agent_joins_again);
	tcase_add_test(t, attach_waits_for_outcomes_after_the_commit);
	tcase_add_test(t, attach_waits_without_limit_for_a_running_attempt);
	tcase_add_test(t, peers_attach_one_by_one);
	tcase_add_test(t, attach_to_an_open_run_keeps_the_view_of_the_peer);
	tcase_add_test(t, late_attach_fails_with_the_text_of_the_kick);
	tcase_add_test(t, attach_does_not_accept_another_run);
	tcase_add_test(t, attach_waits_60_s_for_its_master);
	tcase_add_test(t, attach_is_repeated_with_the_next_master);
	tcase_add_test(t, agent_remembers_outcomes_for_the_next_master);
	tcase_add_test(t, attaching_process_that_dies_is_reported);
	tcase_add_test(t, peer_attaches_to_an_open_run);
	tcase_add_test(t, second_connection_to_the_same_run_is_closed);
	tcase_add_test(t, a_master_that_has_moved_is_found);
	tcase_add_test(t, moved_master_is_found_although_another_has_its_address);
	tcase_add_test(t, operator_confirms_an_address_for_all_users);
	tcase_add_test(t, create_tells_the_agent_a_new_address_of_the_master);
	suite_add_tcase(s, t);
	return s;
}
