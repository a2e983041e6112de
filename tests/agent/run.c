/* SPDX-License-Identifier: MIT
 *
 * Connecting to a master, joining, kicks, and the end of a run.
 */
#include <stdio.h>

#include "tests/agent/fixture.h"

static struct fx *f;

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

static void advance(uint64_t ms)
{
	while (ms > 100) {
		f->now += 100 * MS;
		fx_event(f, AGT_EV_TICK, 0, NULL);
		ms -= 100;
	}
	f->now += ms * MS;
	fx_event(f, AGT_EV_TICK, 0, NULL);
}

static void kick(uint32_t run, unsigned peer, uint32_t code, const char *text)
{
	struct wm_msg m = {.type = WM_KICK};

	m.u.kick.peer = fx_id(peer);
	m.u.kick.code = code;
	snprintf(m.u.kick.text, sizeof m.u.kick.text, "%s", text);
	fx_from_master(f, run, &m);
}

START_TEST(communicators_share_a_master_connection)
{
	uint32_t c1, c2, c3;
	const struct wm_join *j;

	fx_session(f, 1, 1000);
	fx_session(f, 2, 1001);
	c1 = fx_create(f, 1, 7, 1);
	c2 = fx_create(f, 2, 8, 1);
	c3 = fx_create(f, 2, 8, 2);
	fx_connect(f, 1, c1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
	fx_connect(f, 2, c2, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	fx_connect(f, 2, c3, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	fx_master_up(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_RUN_READY), 1);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 2);
	j = &fx_msg(f, WM_JOIN, 1)->u.join;
	ck_assert(memcmp(j->peer.b, fx_id(2).b, 16) == 0);
	ck_assert_uint_eq(j->group, 8);
	ck_assert_uint_eq(j->pool_size, 2);
	ck_assert_uint_eq(j->pid, 1002);
	ck_assert_str_eq(j->name, "trainer");
}
END_TEST

START_TEST(connect_is_answered_when_the_ring_lists_the_peer)
{
	struct fx_ring first = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {1}};
	struct fx_ring both = {.group = 7, .hosts = 1, .world_size = 2, .n = 2, .members = {1, 2}};
	uint32_t c1, c2;

	fx_session(f, 1, 1000);
	c1 = fx_create(f, 1, 7, 1);
	c2 = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c1, 1);
	fx_master_up(f, 1);
	fx_round(f, 1, 1, true, &first, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1); /* no link is needed */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_connect(f, 1, c2, 2); /* this connect is too late for the round */
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	fx_commit(f, 1, 1, true, &first, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->comm, c1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.state, SHM_COMM_CONNECTED);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.view.group, 1);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_ATTRS, 0), fx_index(f, AGT_ACT_REPLY, 0));
	f->req_id--;
	fx_expect_reply(f, WIRE_SUCCESS, "");
	f->req_id++;
	fx_connect(f, 1, c1, 3);
	fx_expect_reply(f, WIRE_INVALID_USAGE, "connected already");
	fx_request(f, 1, c1, FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(fx_votes(f, WIRE_TOPOLOGY), 1);
	fx_round(f, 1, 2, true, &both, 1);
	fx_commit(f, 1, 2, true, &both, 1);
	/* The first action publishes the new epoch of c1, the second action the state of c2. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 1)->comm, c2);
	/* The replies to the vote and to the connect. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_ATTRS, 0), fx_index(f, AGT_ACT_REPLY, 1));
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, i)->u.reply.view.group, 2);
}
END_TEST

START_TEST(an_unreachable_master_is_named_and_can_be_tried_again)
{
	uint32_t comm, waited;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	/* The master may be about to start. */
	for (waited = 0; waited < 10000; waited += 500) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	}
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "10.0.0.1:48148 (Connection refused)");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	fx_connect(f, 1, comm, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "late");
	ck_assert_uint_eq(f->acts.n, 0);
	fx_master_up(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(connect_gives_up_a_master_that_does_not_answer)
{
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	advance(9999);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	advance(1);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED,
		"no connection within the 10000 ms of connect_timeout_ms");
	fx_connect(f, 1, comm, 2);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	advance(10000);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "a master of PCCL 1.0");
}
END_TEST

/* After one second without an answer, the agent tries the next address. Later it tries the address
 * again and waits longer, because the round trip may be high. */
START_TEST(all_addresses_are_tried_in_turn)
{
	struct agt_event moved = {.type = AGT_EV_SET_MASTER, .from = fx_addr(1), .to = fx_addr(2)};
	static const unsigned times[] = {1000, 1000, 2000, 2000};
	uint32_t comm;
	unsigned i;

	fx_step(f, &moved);
	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	for (i = 0; i < 4; i++) {
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
		ck_assert(cc_addr_eq(&fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr,
			i % 2 == 0 ? &moved.to : &moved.from));
		fx_event(f, AGT_EV_TICK, 0, NULL);
		advance(times[i] - 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		advance(1);
	}
	/* A refusal at one address does not end the attempt at the other address. */
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	advance(3900);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	advance(100);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED,
		"no connection within the 10000 ms of connect_timeout_ms");
}
END_TEST

/* The master accepts the connection after a round trip of 1.5 s, and its answer takes 1.5 s, too.
 */
START_TEST(connect_waits_longer_with_a_high_round_trip)
{
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	advance(1000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	advance(1500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_TAKEN, .run = 1, .path_ms = 6000});
	advance(6500);
	ck_assert_uint_eq(f->acts.n, 0);
	advance(1000);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED,
		"no answer came within the 10000 ms of connect_timeout_ms");
	fx_connect(f, 1, comm, 2);
	advance(1000);
	fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_TAKEN, .run = 2, .path_ms = 6000});
	advance(1500);
	fx_master_up(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

/* Accepts a connection and closes it, like a port forward or a load balancer whose master has not
 * started yet. */
static void be_hung_up(uint32_t run, bool greets)
{
	fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_TAKEN, .run = run});
	if (greets)
		fx_event(f, AGT_EV_MASTER_UP, run, NULL);
	fx_event(f, AGT_EV_MASTER_DOWN, run, "Connection reset by peer");
}

START_TEST(connection_closed_without_an_answer_is_tried_again)
{
	uint32_t comm, i;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	for (i = 0; i < 20; i++) {
		be_hung_up(1, _i == 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	}
	be_hung_up(1, _i == 1);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, ":48148 (Connection reset by peer)");
	fx_connect(f, 1, comm, 2);
	be_hung_up(2, _i == 1);
	fx_tick(f, 500);
	fx_master_up(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

/* Only another configuration would help. */
START_TEST(connect_fails_at_once_if_the_protocol_is_foreign)
{
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_TAKEN, .run = 1});
	fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_DOWN,
			   .run = 1,
			   .foreign = true,
			   .text = "malformed message"});
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, ":48148 (malformed message)");
}
END_TEST

START_TEST(error_text_says_that_the_connection_was_accepted)
{
	uint32_t comm, i;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	for (i = 0; i < 100; i++) {
		if (fx_count(f, AGT_ACT_MASTER_OPEN) == 1)
			fx_step(f, &(struct agt_event){.type = AGT_EV_MASTER_TAKEN, .run = 1});
		fx_tick(f, 100);
	}
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "accepted, but no answer came within");
}
END_TEST

START_TEST(refusal_by_the_master_reaches_the_caller)
{
	struct wm_msg m = {.type = WM_REFUSE};
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	m.u.refuse.version_min = 3;
	m.u.refuse.version_max = 4;
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, WIRE_VERSION_MISMATCH, "versions 3 to 4, this agent 3 to 3");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	fx_connect(f, 1, comm, 2);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	m.u.refuse.version_min = WM_VERSION_MIN;
	m.u.refuse.code = WIRE_PERMISSION_DENIED;
	strcpy(m.u.refuse.text, "not on the list");
	fx_from_master(f, 2, &m);
	fx_expect_reply(f, WIRE_PERMISSION_DENIED, "not on the list");
}
END_TEST

/* The newcomer fails at once, with the reason of the master. */
START_TEST(newcomer_fails_if_the_master_has_no_descriptors)
{
	static const char limit[] = "the limit of open files (RLIMIT_NOFILE) of ccoip-masterd is 9";
	struct wm_msg m = {.type = WM_REFUSE};
	uint32_t comm;

	m.u.refuse.version_min = m.u.refuse.version_max = WM_VERSION_MAX;
	m.u.refuse.code = WIRE_OUT_OF_MEMORY;
	strcpy(m.u.refuse.text, limit);
	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, WIRE_OUT_OF_MEMORY, limit);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(a_kick_while_registered_fails_the_connect)
{
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_master_up(f, 1);
	kick(1, 44, 0, "somebody else");
	ck_assert_uint_eq(f->acts.n, 0);
	kick(1, 1, 0, "unreachable");
	fx_expect_reply(f, WIRE_RANK_CONNECTION_FAILED, "unreachable");
	/* The state is as before: not connected. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	fx_connect(f, 1, comm, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	fx_master_up(f, 2);
	kick(2, 2, WIRE_INVALID_USAGE, "");
	fx_expect_reply(f, WIRE_INVALID_USAGE, "gave no reason");
}
END_TEST

START_TEST(kick_fails_the_waiting_call_and_later_calls)
{
	uint32_t comms[2];

	fx_group(f, 2, 1, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	kick(1, 1, 0, "too slow");
	fx_expect_reply(f, WIRE_RANK_CONNECTION_LOST, "too slow");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.state, SHM_COMM_LOST);
	ck_assert_str_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.text, "too slow");
	ck_assert_uint_lt(fx_index(f, AGT_ACT_ATTRS, 0), fx_index(f, AGT_ACT_REPLY, 0));
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 0);
	fx_submit(f, comms[0], 0, 1, 8);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "too slow");
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	fx_expect_reply(f, WIRE_RANK_CONNECTION_LOST, "too slow");
	fx_connect(f, 1, comms[0], 9);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.state, SHM_COMM_NEW);
}
END_TEST

/* Settings of the master, and the silence after which the agent drops the master. */
static const struct {
	uint32_t heartbeat_ms, timeout_ms, bound_ms;
	const char *told;
} masters[] = {
	{1000, 5000, 4000, "silent for 4.0 s, bound 4.0 s"},
	{1000, 3000, 3000, "silent for 3.0 s, bound 3.0 s"},
	{300, 5000, 1200, "silent for 1.2 s, bound 1.2 s"},
};

START_TEST(heartbeats_are_sent_and_a_silent_master_is_dropped)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};
	uint32_t comms[1], i;

	f->heartbeat_ms = masters[_i].heartbeat_ms;
	f->timeout_ms = masters[_i].timeout_ms;
	fx_group(f, 1, 2, comms);
	for (i = 0; i < 10; i++) {
		advance(f->heartbeat_ms - 50);
		ck_assert_uint_eq(fx_sent(f, WM_HEARTBEAT), 0);
		advance(50);
		ck_assert_uint_eq(fx_sent(f, WM_HEARTBEAT), 1);
		fx_from_master(f, 1, &beat);
		ck_assert_uint_eq(f->acts.n, 0);
	}
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	advance(masters[_i].bound_ms);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 0);
	advance(1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_MASTER_DROP, 0), fx_index(f, AGT_ACT_MASTER_OPEN, 0));
	advance(59999);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	advance(1);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, masters[_i].told);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.code, WIRE_MASTER_CONNECTION_FAILED);
}
END_TEST

START_TEST(agent_that_was_suspended_does_not_drop_its_master)
{
	uint32_t comms[1];

	fx_group(f, 1, 2, comms);
	advance(1000);
	f->now += 60000 * (uint64_t)MS;
	fx_event(f, AGT_EV_TICK, 0, NULL);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 0);
	advance(2900);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 0);
	advance(101);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP) + fx_count(f, AGT_ACT_MASTER_OPEN), 2);
}
END_TEST

START_TEST(last_leave_closes_the_connection)
{
	uint32_t comms[2];

	fx_group(f, 2, 2, comms);
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_CLEAN);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.kind, WM_LEAVE_DIED);
	ck_assert(memcmp(fx_msg(f, WM_LEAVE, 0)->u.leave.peer.b, fx_id(2).b, 16) == 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_left(f, 1, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(two_addresses_of_one_master_are_one_run)
{
	struct wm_msg m = {.type = WM_HELLO_ACK};
	uint32_t comms[1], other, third;

	fx_group(f, 1, 1, comms);
	other = fx_create(f, 1, 7, 2);
	fx_connect(f, 1, other, 8);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	m.u.hello_ack.version = WM_VERSION_MAX;
	m.u.hello_ack.run = fx_id(201);
	m.u.hello_ack.term = 1;
	fx_from_master(f, 2, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_RUN_READY), 0);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_SEND, 0)->run, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_CLOSE, 0)->run, 2);
	third = fx_create(f, 1, 7, 2);
	fx_connect(f, 1, third, 9);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(pending_answer_reaches_all_callers)
{
	struct wm_msg m = {
		.type = WM_BALLOT_END, .u.ballot_end = {.kind = WIRE_PENDING, .number = 3}};
	uint32_t comms[3];

	fx_group(f, 3, 1, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	ck_assert_uint_eq(fx_votes(f, WIRE_PENDING), 1);
	fx_request(f, 3, comms[2], FX_VOTE(WIRE_PENDING));
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	ck_assert(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.flag);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 1)->session, 3);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(peers_of_one_group_on_a_host_are_limited)
{
	uint32_t s, comm;

	for (s = 1; s <= AGT_MEMBERS_MAX; s++) {
		fx_session(f, s, s);
		comm = fx_create(f, s, 7, 1);
		fx_connect(f, s, comm, s);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	}
	fx_session(f, s, s);
	comm = fx_create(f, s, 7, 1);
	fx_connect(f, s, comm, s);
	fx_expect_reply(f, WIRE_INVALID_USAGE, "1024 peers on this host, the limit");
	comm = fx_create(f, s, 8, 1);
	fx_connect(f, s, comm, s);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
}
END_TEST

/* Returns a message that the master must not send. Such a message ends this run and no other
 * run. */
static struct wm_msg violation(int i)
{
	struct wm_msg m = {.type = WM_HELLO};

	switch (i) {
	case 1:
		m.type = WM_HELLO_ACK;
		break;
	case 2:
		m.type = WM_OP_DONE;
		m.u.op_done.seq = 5;
		break;
	case 3:
		m.type = WM_OP_START; /* sequence number 0 */
		break;
	case 4:
		m.type = WM_COMMIT; /* epoch 0 after epoch 1 */
		break;
	default:
		break;
	}
	return m;
}

START_TEST(violation_by_the_master_ends_the_run)
{
	struct wm_msg m = violation(_i);
	uint32_t comms[2];

	fx_group(f, 2, 1, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "broke the protocol");
	fx_connect(f, 1, comms[0], 5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
}
END_TEST

START_TEST(master_must_send_hello_ack_first)
{
	struct wm_msg m = {.type = WM_VIEW};
	uint32_t comm;

	fx_session(f, 1, 1000);
	comm = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comm, 1);
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "did not begin with");
	fx_connect(f, 1, comm, 2);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	m.type = WM_HELLO_ACK;
	m.u.hello_ack.version = WM_VERSION_MAX + 1;
	fx_from_master(f, 2, &m);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "not offered");
}
END_TEST

Suite *run_suite(void)
{
	Suite *s = suite_create("run");
	TCase *t = tcase_create("run");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, communicators_share_a_master_connection);
	tcase_add_test(t, connect_is_answered_when_the_ring_lists_the_peer);
	tcase_add_test(t, an_unreachable_master_is_named_and_can_be_tried_again);
	tcase_add_test(t, connect_gives_up_a_master_that_does_not_answer);
	tcase_add_test(t, all_addresses_are_tried_in_turn);
	tcase_add_test(t, connect_waits_longer_with_a_high_round_trip);
	tcase_add_loop_test(t, connection_closed_without_an_answer_is_tried_again, 0, 2);
	tcase_add_test(t, connect_fails_at_once_if_the_protocol_is_foreign);
	tcase_add_test(t, error_text_says_that_the_connection_was_accepted);
	tcase_add_test(t, refusal_by_the_master_reaches_the_caller);
	tcase_add_test(t, newcomer_fails_if_the_master_has_no_descriptors);
	tcase_add_test(t, a_kick_while_registered_fails_the_connect);
	tcase_add_test(t, kick_fails_the_waiting_call_and_later_calls);
	tcase_add_loop_test(t, heartbeats_are_sent_and_a_silent_master_is_dropped, 0,
		sizeof masters / sizeof masters[0]);
	tcase_add_test(t, agent_that_was_suspended_does_not_drop_its_master);
	tcase_add_test(t, last_leave_closes_the_connection);
	tcase_add_test(t, two_addresses_of_one_master_are_one_run);
	tcase_add_test(t, pending_answer_reaches_all_callers);
	tcase_add_test(t, peers_of_one_group_on_a_host_are_limited);
	tcase_add_loop_test(t, violation_by_the_master_ends_the_run, 0, 5);
	tcase_add_test(t, master_must_send_hello_ack_first);
	suite_add_tcase(s, t);
	return s;
}
