/* SPDX-License-Identifier: MIT
 *
 * A master dies while its agent lives. The tests cover the search for the next master, the choice
 * of a master, and the end of the run.
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

static void set_master(unsigned from, unsigned to, uint32_t run, bool now)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER, .run = run, .now = now};

	if (from)
		ev.from = fx_addr(from);
	if (to)
		ev.to = fx_addr(to);
	fx_step(f, &ev);
}

START_TEST(pauses_between_connects_grow_to_500_ms)
{
	static const unsigned pauses[] = {50, 100, 200, 400, 500, 500};
	unsigned i;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	for (i = 0; i < 6; i++) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		fx_tick(f, pauses[i] - 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		fx_tick(f, 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	}
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

/* A server at this address that breaks the protocol is not the master of the run. */
START_TEST(server_that_breaks_the_protocol_is_not_the_master)
{
	const struct wm_msg m = {.type = WM_OP_DONE, .u.op_done = {.seq = 1}};

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_greet(f);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
}
END_TEST

START_TEST(connects_time_out_after_1_s_then_2_s_then_4_s)
{
	static const unsigned times[] = {1000, 2000, 4000, 4000};
	unsigned i;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	for (i = 0; i < 4; i++) {
		fx_tick(f, times[i] - 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
		fx_tick(f, 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	}
	fx_greet(f); /* the address accepts the connection, so the limit is longer now */
	fx_tick(f, 1400);
	fx_tick(f, 1399);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 0);
	fx_tick(f, 201);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	fx_resume(f);
}
END_TEST

START_TEST(the_operator_sets_the_timeout_of_an_address)
{
	fx_free(f);
	f = fx_new_addr(300);
	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_tick(f, 299);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 0);
	fx_tick(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	fx_resume(f);
}
END_TEST

START_TEST(master_lease_ends_after_60_s)
{
	uint32_t again;
	unsigned i;

	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_submit_all(f, comms, 2, 6);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	fx_orphan(f);
	for (i = 0; i < 119; i++) {
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY) + fx_count(f, AGT_ACT_COMPLETE), 0);
	}
	fx_tick(f, 500);
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

/* Each new master answers and closes the connection after 2 s (_i == 0), so the lease is not
 * restarted and expires. A master whose connection lasts 6 s (_i == 1) restarts the lease. */
START_TEST(connection_that_breaks_soon_does_not_restart_the_lease)
{
	struct wm_msg ack = fx_ack(2), beat = {.type = WM_HEARTBEAT};
	unsigned i, k;

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	for (i = 0; i < 37; i++) {
		fx_orphan(f);
		fx_greet(f);
		fx_from_master(f, 1, &ack);
		for (k = 0; k < (_i ? 6 : 2); k++) {
			fx_from_master(f, 1, &beat);
			fx_tick(f, 1000);
			ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
		}
	}
	fx_orphan(f);
	fx_tick(f, 500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), _i ? 0 : 1);
}
END_TEST

/* The run ends with the shortage of this host as the reason, not with a failure of the master. With
 * _i == 1 the shortage is interrupted, so the run does not end. */
START_TEST(lasting_shortage_of_the_agent_ends_the_run)
{
	struct agt_event down = {.type = AGT_EV_MASTER_DOWN,
		.run = 1,
		.code = WIRE_OUT_OF_MEMORY,
		.text = "no threads"};
	unsigned n;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	for (n = 0; n < 20; n++) {
		fx_step(f, &down);
		if (fx_count(f, AGT_ACT_MASTER_CLOSE) > 0)
			break;
		if (_i == 1) { /* for a moment there is no shortage */
			fx_tick(f, 500);
			fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		}
		fx_tick(f, 500);
	}
	if (_i == 1) {
		ck_assert_uint_eq(n, 20);
		return;
	}
	ck_assert_uint_eq(n, 8);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.code, WIRE_OUT_OF_MEMORY);
	ck_assert_str_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.text, "no threads");
}
END_TEST

/* When the master has a shortage, members wait for it for the same time as when their own agent has
 * a shortage. */
START_TEST(lasting_shortage_of_the_master_ends_the_run)
{
	struct wm_msg m = {.type = WM_REFUSE};
	unsigned n;

	m.u.refuse.version_min = m.u.refuse.version_max = WM_VERSION_MAX;
	m.u.refuse.code = WIRE_OUT_OF_MEMORY;
	strcpy(m.u.refuse.text, "no descriptors");
	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	for (n = 0; n < 20; n++) {
		fx_greet(f);
		fx_from_master(f, 1, &m);
		if (fx_count(f, AGT_ACT_MASTER_CLOSE) > 0)
			break;
		fx_tick(f, 1000);
	}
	ck_assert_uint_ge(n, 3);
	ck_assert_uint_le(n, 5);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.code, WIRE_OUT_OF_MEMORY);
	ck_assert_ptr_nonnull(
		strstr(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.text, "refused this host: no desc"));
}
END_TEST

START_TEST(pause_of_the_agent_does_not_use_up_the_lease)
{
	fx_group(f, 1, 2, comms);
	fx_tick(f, 100);
	fx_orphan(f);
	fx_tick(f, 90000);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_tick(f, 500);
	fx_resume(f);
}
END_TEST

START_TEST(stale_master_is_dropped_and_the_search_goes_on)
{
	struct wm_msg m = fx_ack(1), stale = {.type = WM_REFUSE};

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_resume(f); /* the new master has term 2 */
	fx_orphan(f);
	fx_greet(f);
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 2);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
	fx_tick(f, 50);
	fx_greet(f);
	stale.u.refuse.version_min = stale.u.refuse.version_max = WM_VERSION_MAX;
	stale.u.refuse.code = WIRE_MASTER_CONNECTION_FAILED;
	strcpy(stale.u.refuse.text, "a newer master (term 2) has taken this run over");
	fx_from_master(f, 1, &stale);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	fx_tick(f, 100);
	fx_greet(f);
	m = fx_ack(2);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
	fx_from_master(f, 1, &stale); /* the stale master learns of the newer one now */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
}
END_TEST

START_TEST(a_master_that_redirects_is_asked_last)
{
	struct wm_msg redirect = {.type = WM_REFUSE};

	fx_group(f, 1, 2, comms);
	set_master(1, 2, 0, false);
	fx_orphan(f);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	fx_resume(f);
	redirect.u.refuse.version_min = redirect.u.refuse.version_max = WM_VERSION_MAX;
	redirect.u.refuse.code = WIRE_MASTER_CONNECTION_FAILED;
	strcpy(redirect.u.refuse.text, "there may be another one");
	fx_from_master(f, 1, &redirect);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
}
END_TEST

/* The other address has a master with another run, so the agent returns to the first master. */
START_TEST(a_master_that_redirects_may_be_joined_again)
{
	struct wm_msg redirect = {.type = WM_REFUSE}, other = fx_ack(9), back = fx_ack(2);

	fx_group(f, 1, 2, comms);
	set_master(1, 2, 0, false);
	fx_orphan(f);
	fx_resume(f);
	redirect.u.refuse.version_min = redirect.u.refuse.version_max = WM_VERSION_MAX;
	redirect.u.refuse.code = WIRE_MASTER_CONNECTION_FAILED;
	strcpy(redirect.u.refuse.text, "there may be another one");
	fx_from_master(f, 1, &redirect);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
	fx_greet(f);
	other.u.hello_ack.run = fx_id(999);
	fx_from_master(f, 1, &other);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 0);
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	fx_greet(f);
	fx_from_master(f, 1, &back);
	ck_assert_uint_eq(fx_sent(f, WM_RESUME), 1);
}
END_TEST

START_TEST(run_ends_if_a_master_does_not_resume_it)
{
	static const struct {
		uint32_t code;
		const char *text;
	} expected[] = {
		{WIRE_MASTER_CONNECTION_FAILED, "does not know that run"},
		{WIRE_RANK_CONNECTION_LOST, "has gone on"},
		{WIRE_VERSION_MISMATCH, "protocol versions"},
	};
	struct wm_msg m = fx_ack(2);

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	fx_orphan(f);
	fx_greet(f);
	if (_i == 0)
		m.u.hello_ack.run = fx_id(999);
	else if (_i == 1)
		m.u.hello_ack.resume = false;
	else
		m = (struct wm_msg){.type = WM_REFUSE};
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, expected[_i].code, expected[_i].text);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

static void let_one_in_and_put_it_out(void)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {9}};
	struct wm_msg m = {.type = WM_KICK, .u.kick = {.peer = fx_id(9)}};

	fx_session(f, 2, 1000);
	fx_connect(f, 2, fx_create(f, 2, 7, 1), 9);
	fx_round(f, 1, 1, true, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
}

/* Case 0: the master has another run, of which the agent has no peers. Case 1: the agent has peers
 * of that run. Case 2: the same run has started again. Case 3: the agent had prepared a
 * round that would admit a peer, and this peer was kicked. */
START_TEST(newcomers_join_whichever_run_the_master_has)
{
	struct wm_msg m = fx_ack(2);
	uint32_t c;

	if (_i == 1) {
		fx_group(f, 1, 2, comms);
		c = fx_create(f, 1, 7, 2);
	} else {
		fx_session(f, 1, 1000);
		c = fx_create(f, 1, 7, 1);
	}
	fx_connect(f, 1, c, 8);
	fx_master_up(f, 1 + (_i == 1));
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	if (_i == 3)
		let_one_in_and_put_it_out();
	fx_event(f, AGT_EV_MASTER_DOWN, 1 + (_i == 1), "Connection reset by peer");
	fx_event(f, AGT_EV_MASTER_UP, 1 + (_i == 1), NULL);
	m.u.hello_ack.resume = false;
	if (_i == 0 || _i == 3)
		m.u.hello_ack.run = fx_id(999);
	fx_from_master(f, 1 + (_i == 1), &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	if (_i != 1) {
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->run, 2);
		fx_master_up(f, 2);
	}
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	ck_assert(fx_is(&fx_msg(f, WM_JOIN, 0)->u.join.peer, fx_id(8)));
	ck_assert_int_eq(fx_msg(f, WM_JOIN, 0)->u.join.phase, WM_JOIN_NEW);
}
END_TEST

/* The round may have been committed on other hosts, so the peer may be a member. */
START_TEST(peer_that_may_have_been_admitted_joins_no_other_run)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {8}};
	struct wm_msg m = fx_ack(2);
	uint32_t c;

	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 8);
	fx_master_up(f, 1);
	fx_round(f, 1, 1, true, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection reset by peer");
	fx_event(f, AGT_EV_MASTER_UP, 1, NULL);
	m.u.hello_ack.run = fx_id(999);
	m.u.hello_ack.resume = false;
	fx_from_master(f, 1, &m);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "does not know that run");
}
END_TEST

/* The newcomer's own connection finds the address at which the master of the orphan run is now. */
START_TEST(orphan_run_uses_the_address_that_a_newcomer_has_found)
{
	struct wm_msg m = fx_ack(2);
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
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
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 2);
	fx_orphan(f);
	/* The agent tries the last address that worked. */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

/* Checks that the peers get fx_addr(addr_no) as the address of the master. */
static void expect_master_addr(unsigned addr_no)
{
	const struct agt_action *x = fx_get(f, AGT_ACT_ATTRS, 0);
	struct cc_addr addr = fx_addr(addr_no);

	ck_assert_uint_eq(x->u.attrs.state, SHM_COMM_CONNECTED);
	ck_assert(cc_addr_eq(&x->u.attrs.at, &addr));
}

START_TEST(set_master_changes_the_order_of_addresses)
{
	unsigned i;

	fx_group(f, 1, 2, comms);
	set_master(1, 2, 0, false);
	ck_assert_uint_eq(f->acts.n, 1);
	expect_master_addr(2);
	set_master(1, 3, 0, false); /* the operator corrects the address */
	ck_assert_uint_eq(f->acts.n, 1);
	expect_master_addr(3);
	set_master(1, 3, 0, false);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_orphan(f);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 0);
	/* A master at the old address may be stale, so this address comes last. */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 3);
	for (i = 0; i < 2; i++) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], i == 0 ? 1 : 3);
	}
	/* The agent connects at once. The master had moved to fx_addr(3). */
	set_master(3, 4, 0, false);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 4);
	fx_greet(f);
	{
		struct wm_msg m = fx_ack(2);

		fx_from_master(f, 1, &m);
		expect_master_addr(4);
	}
	set_master(0, 5, 1, true); /* this applies only to this run, and at once */
	expect_master_addr(5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(
		fx_get(f, AGT_ACT_MASTER_OPEN, fx_count(f, AGT_ACT_MASTER_OPEN) - 1)->addr.ip[3],
		5);
	fx_greet(f);
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 2);
}
END_TEST

START_TEST(set_master_back_restores_the_first_address)
{
	struct agt_event ev = {.type = AGT_EV_SET_MASTER};

	fx_group(f, 1, 2, comms);
	ev.from = fx_addr(1);
	ev.to = fx_addr(2);
	fx_step(f, &ev);
	ev.from = fx_addr(2);
	ev.to = fx_addr(1);
	fx_step(f, &ev);
	fx_orphan(f);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

START_TEST(connect_tries_the_new_address_of_a_master_first)
{
	uint32_t c, i;

	set_master(1, 2, 0, false);
	fx_session(f, 1, 1000);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	for (i = 0; i < 19; i++) {
		fx_tick(f, 500);
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	}
	fx_tick(f, 500);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, ":48148 (Connection refused)");
	set_master(1, 0, 0, false); /* removes the new address */
	fx_connect(f, 1, c, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

/* The last peer of this host has left, but the agent still knows the term of the master. */
START_TEST(newcomer_does_not_join_a_stale_master)
{
	struct wm_msg m = fx_ack(1);
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_resume(f); /* the new master has term 2 */
	fx_request(f, 1, comms[0], WL_COMM_DESTROY);
	fx_left(f, 1, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	c = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, c, 5);
	fx_event(f, AGT_EV_MASTER_UP, 2, NULL);
	ck_assert(cc_id_is_zero(&fx_msg(f, WM_HELLO, 0)->u.hello.run));
	fx_from_master(f, 2, &m);
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "is stale");
}
END_TEST

Suite *connect_suite(void)
{
	Suite *s = suite_create("connect");
	TCase *t = tcase_create("connect");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, pauses_between_connects_grow_to_500_ms);
	tcase_add_test(t, server_that_breaks_the_protocol_is_not_the_master);
	tcase_add_test(t, connects_time_out_after_1_s_then_2_s_then_4_s);
	tcase_add_test(t, the_operator_sets_the_timeout_of_an_address);
	tcase_add_test(t, master_lease_ends_after_60_s);
	tcase_add_loop_test(t, connection_that_breaks_soon_does_not_restart_the_lease, 0, 2);
	tcase_add_loop_test(t, lasting_shortage_of_the_agent_ends_the_run, 0, 2);
	tcase_add_test(t, lasting_shortage_of_the_master_ends_the_run);
	tcase_add_test(t, pause_of_the_agent_does_not_use_up_the_lease);
	tcase_add_test(t, stale_master_is_dropped_and_the_search_goes_on);
	tcase_add_test(t, a_master_that_redirects_is_asked_last);
	tcase_add_test(t, a_master_that_redirects_may_be_joined_again);
	tcase_add_loop_test(t, run_ends_if_a_master_does_not_resume_it, 0, 3);
	tcase_add_loop_test(t, newcomers_join_whichever_run_the_master_has, 0, 4);
	tcase_add_test(t, peer_that_may_have_been_admitted_joins_no_other_run);
	tcase_add_test(t, orphan_run_uses_the_address_that_a_newcomer_has_found);
	tcase_add_test(t, set_master_changes_the_order_of_addresses);
	tcase_add_test(t, set_master_back_restores_the_first_address);
	tcase_add_test(t, connect_tries_the_new_address_of_a_master_first);
	tcase_add_test(t, newcomer_does_not_join_a_stale_master);
	suite_add_tcase(s, t);
	return s;
}
