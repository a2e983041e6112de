/* SPDX-License-Identifier: MIT
 *
 * A master dies, the agent lives: where it looks for the next one, whom it believes, and when it is
 * all over.
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

START_TEST(a_master_is_sought_ever_less_often)
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

/* Whatever answers there in another way is not the master of the run. */
START_TEST(what_breaks_the_protocol_is_not_the_master)
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

START_TEST(no_answer_for_a_second_is_none)
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
	fx_greet(f); /* it takes the connection: now it has longer */
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

START_TEST(the_lease_ends)
{
	uint32_t again;
	unsigned i;

	fx_group(f, 2, 2, comms);
	fx_submit_all(f, comms, 2, 5);
	fx_op_start(f, 1, 7, 5, 1);
	fx_submit_all(f, comms, 2, 6);
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
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

/* Only its answer gets through, each time anew; or it lasts. */
START_TEST(a_master_that_is_lost_again_in_a_moment_is_none)
{
	struct wm_msg ack = fx_ack(2), beat = {.type = WM_HEARTBEAT};
	unsigned i, k;

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
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

/* What this host lacks is not said of the master. */
START_TEST(a_shortage_that_lasts)
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
		if (_i == 1) { /* in between it has them */
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

/* Members wait for it as for what their own agent lacks. */
START_TEST(a_shortage_of_the_master_that_lasts)
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

START_TEST(a_pause_of_the_agent_is_not_the_masters)
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

START_TEST(a_stale_master_is_passed_by)
{
	struct wm_msg m = fx_ack(1), stale = {.type = WM_REFUSE};

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_resume(f); /* term 2 */
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
	fx_from_master(f, 1, &stale); /* it hears of the newer one now */
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

/* The one that it looks for is not there, but a master of another run. */
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

START_TEST(a_master_that_does_not_take_us_ends_the_run)
{
	static const struct {
		uint32_t code;
		const char *text;
	} expected[] = {
		{WIRE_MASTER_CONNECTION_FAILED, "does not know its run"},
		{WIRE_RANK_CONNECTION_LOST, "has gone on"},
		{WIRE_VERSION_MISMATCH, "protocol versions"},
	};
	struct wm_msg m = fx_ack(2);

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], WL_ARE_PENDING);
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

/* Another run, of which the agent has no peers or some, or the same one, which has begun anew; or
 * the one peer that a round would have let in was put out. */
START_TEST(a_run_that_has_accepted_nobody_joins_what_there_is)
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

/* The round may have let it in, elsewhere. */
START_TEST(a_peer_that_a_round_may_have_let_in_joins_no_other_run)
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
	fx_expect_reply(f, WIRE_MASTER_CONNECTION_FAILED, "does not know its run");
}
END_TEST

/* A second connection finds out where the master of an orphan is now. */
START_TEST(a_newcomer_names_the_address_of_the_master)
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
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 2); /* the last good one */
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
	fx_tick(f, 50);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

/* The only thing that happens is that peers are told that the master is there. */
static void expect_master_addr(unsigned addr_no)
{
	const struct agt_action *x = fx_get(f, AGT_ACT_ATTRS, 0);
	struct cc_addr addr = fx_addr(addr_no);

	ck_assert_uint_eq(x->u.attrs.state, SHM_COMM_CONNECTED);
	ck_assert(cc_addr_eq(&x->u.attrs.at, &addr));
}

START_TEST(masters_move)
{
	unsigned i;

	fx_group(f, 1, 2, comms);
	set_master(1, 2, 0, false);
	ck_assert_uint_eq(f->acts.n, 1);
	expect_master_addr(2);
	set_master(1, 3, 0, false); /* says it better */
	ck_assert_uint_eq(f->acts.n, 1);
	expect_master_addr(3);
	set_master(1, 3, 0, false);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_orphan(f);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 0);
	/* Who answers at the place that it has left may be stale: that comes last. */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 3);
	for (i = 0; i < 2; i++) {
		fx_event(f, AGT_EV_MASTER_DOWN, 1, "Connection refused");
		fx_tick(f, 500);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], i == 0 ? 1 : 3);
	}
	set_master(3, 4, 0, false); /* at once, and from where it has moved to */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 4);
	fx_greet(f);
	{
		struct wm_msg m = fx_ack(2);

		fx_from_master(f, 1, &m);
		expect_master_addr(4);
	}
	set_master(0, 5, 1, true); /* this run, now */
	expect_master_addr(5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_DROP), 1);
	ck_assert_uint_eq(
		fx_get(f, AGT_ACT_MASTER_OPEN, fx_count(f, AGT_ACT_MASTER_OPEN) - 1)->addr.ip[3],
		5);
	fx_greet(f);
	ck_assert_uint_eq(fx_msg(f, WM_HELLO, 0)->u.hello.term, 2);
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
	fx_orphan(f);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

START_TEST(a_connect_looks_where_the_master_has_moved)
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
	set_master(1, 0, 0, false); /* not any more */
	fx_connect(f, 1, c, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_MASTER_OPEN, 0)->addr.ip[3], 1);
}
END_TEST

/* The last peer here has left, and its master's term is known all the same. */
START_TEST(a_stale_master_gets_nobody_else)
{
	struct wm_msg m = fx_ack(1);
	uint32_t c;

	fx_group(f, 1, 2, comms);
	fx_orphan(f);
	fx_resume(f); /* term 2 */
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
	tcase_add_test(t, a_master_is_sought_ever_less_often);
	tcase_add_test(t, what_breaks_the_protocol_is_not_the_master);
	tcase_add_test(t, no_answer_for_a_second_is_none);
	tcase_add_test(t, the_operator_sets_the_timeout_of_an_address);
	tcase_add_test(t, the_lease_ends);
	tcase_add_loop_test(t, a_master_that_is_lost_again_in_a_moment_is_none, 0, 2);
	tcase_add_loop_test(t, a_shortage_that_lasts, 0, 2);
	tcase_add_test(t, a_shortage_of_the_master_that_lasts);
	tcase_add_test(t, a_pause_of_the_agent_is_not_the_masters);
	tcase_add_test(t, a_stale_master_is_passed_by);
	tcase_add_test(t, a_master_that_redirects_is_asked_last);
	tcase_add_test(t, a_master_that_redirects_may_be_joined_again);
	tcase_add_loop_test(t, a_master_that_does_not_take_us_ends_the_run, 0, 3);
	tcase_add_loop_test(t, a_run_that_has_accepted_nobody_joins_what_there_is, 0, 4);
	tcase_add_test(t, a_peer_that_a_round_may_have_let_in_joins_no_other_run);
	tcase_add_test(t, a_newcomer_names_the_address_of_the_master);
	tcase_add_test(t, masters_move);
	tcase_add_test(t, masters_move_back);
	tcase_add_test(t, a_connect_looks_where_the_master_has_moved);
	tcase_add_test(t, a_stale_master_gets_nobody_else);
	suite_add_tcase(s, t);
	return s;
}
