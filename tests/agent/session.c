/* SPDX-License-Identifier: MIT
 *
 * Sessions and communicators: the requests that need no master.
 */
#include "tests/agent/fixture.h"

static struct fx *f;

static void setup(void)
{
	f = fx_new();
	fx_session(f, 1, 1000);
}

static void teardown(void)
{
	fx_free(f);
}

static void create(const struct cc_addr *master, uint32_t pool)
{
	struct wl_request q = {.type = WL_COMM_CREATE, .req_id = ++f->req_id, .master = *master};
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = 1, .request = &q};

	q.pool_size = pool;
	fx_step(f, &ev);
}

START_TEST(create_opens_a_queue_pair_before_the_reply)
{
	uint32_t first = fx_create(f, 1, 7, 1), second;
	const struct agt_action *x = fx_get(f, AGT_ACT_COMM_OPEN, 0);

	ck_assert_uint_eq(x->session, 1);
	ck_assert_uint_eq(x->u.reply.req_id, f->req_id);
	ck_assert_uint_eq(x->u.reply.comm, first);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	second = fx_create(f, 1, 7, 1);
	ck_assert_uint_ne(first, second);
}
END_TEST

START_TEST(create_refuses_bad_parameters)
{
	struct cc_addr master = fx_addr(1);

	create(&master, WM_POOL_MAX + 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "p2p_connection_pool_size: 65");
	master.port = 0;
	create(&master, 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "master_address");
	master = (struct cc_addr){.family = CC_INET4, .port = 48148};
	create(&master, 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "master_address");
	master.family = 9;
	create(&master, 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "master_address");
	master = (struct cc_addr){.family = CC_INET6, .port = 7, .ip = {0xfe, 0xbf, [15] = 1}};
	create(&master, 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT,
		"master_address: [febf::1]:7: link-local addresses (fe80::/10) cannot be used");
	master = (struct cc_addr){.family = CC_INET4, .port = 7, .ip = {224, 0, 0, 1}};
	create(&master, 1);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "224.0.0.1:7: it is a multicast address");
}
END_TEST

START_TEST(communicators_of_a_user_are_limited)
{
	struct cc_addr master = fx_addr(1);
	uint32_t comm = 0;
	int i;

	fx_session(f, 2, 1000);
	fx_session(f, 3, 1001);
	for (i = 0; i < 16; i++)
		comm = fx_create(f, 1 + (uint32_t)i % 2, 7, 1);
	create(&master, 1);
	fx_expect_reply(f, WIRE_OUT_OF_MEMORY, "16 communicators");
	fx_create(f, 3, 7, 1); /* another user has its own limit */
	fx_request(f, 2, comm, WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_create(f, 1, 7, 1);
}
END_TEST

START_TEST(communicator_of_another_process_cannot_be_used)
{
	uint32_t comm = fx_create(f, 1, 7, 1);

	fx_session(f, 2, 1000);
	fx_request(f, 2, comm, WL_COMM_DESTROY);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "does not exist");
	fx_request(f, 1, 4711, WL_COMM_CONNECT);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "communicator 4711 does not exist");
	fx_request(f, 1, comm, WL_REGION_FREE);
	fx_expect_reply(f, WIRE_INVALID_ARGUMENT, "does not know");
}
END_TEST

START_TEST(votes_need_a_connection)
{
	uint32_t comm = fx_create(f, 1, 7, 1);

	fx_request(f, 1, comm, FX_VOTE(WIRE_TOPOLOGY));
	fx_expect_reply(f, WIRE_INVALID_USAGE, "call pcclConnect first");
	fx_request(f, 1, comm, FX_VOTE(WIRE_PENDING));
	fx_expect_reply(f, WIRE_INVALID_USAGE, "call pcclConnect first");
	fx_submit(f, comm, 3, 0, 8);
	fx_expect_done(f, 0, comm, WIRE_INVALID_USAGE, "call pcclConnect first");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->slot, 3);
}
END_TEST

START_TEST(second_waiting_call_of_a_communicator_fails)
{
	uint32_t comm = fx_create(f, 1, 7, 1), connect;

	fx_connect(f, 1, comm, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	connect = f->req_id;
	fx_connect(f, 1, comm, 2);
	fx_expect_reply(f, WIRE_INVALID_USAGE, "pcclConnect is in progress");
	fx_request(f, 1, comm, FX_VOTE(WIRE_TOPOLOGY));
	fx_expect_reply(f, WIRE_INVALID_USAGE, "pcclConnect is in progress");
	/* Destroy interrupts the waiting call. */
	fx_request(f, 1, comm, WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.req_id, connect);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.code, WIRE_INVALID_USAGE);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 1)->u.reply.code, WIRE_SUCCESS);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_COMM_CLOSE, 0), fx_index(f, AGT_ACT_REPLY, 1));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* A long reason is cut to the length that the master accepts. */
START_TEST(leave_carries_its_reason)
{
	char why[WL_TEXT_MAX];
	uint32_t comms[2];

	fx_group(f, 2, 2, comms);
	memset(why, 'x', sizeof why - 1);
	why[sizeof why - 1] = '\0';
	fx_destroy(f, 1, comms[0], why);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	ck_assert_uint_eq(strlen(fx_msg(f, WM_LEAVE, 0)->u.leave.text), WM_TEXT_MAX - 1);
	fx_destroy(f, 2, comms[1], "");
	ck_assert_str_eq(fx_msg(f, WM_LEAVE, 0)->u.leave.text, "");
}
END_TEST

START_TEST(closed_session_leaves_nothing_open)
{
	struct agt_status s;
	uint32_t comm = fx_create(f, 1, 7, 1);

	fx_create(f, 1, 8, 2);
	fx_connect(f, 1, comm, 1);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMM_CLOSE), 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	agt_get_status(f->a, &s);
	ck_assert_uint_eq(s.sessions + s.comms + s.runs + s.ops, 0);
	fx_request(f, 1, comm, WL_COMM_DESTROY); /* too late, no process gets an answer */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

Suite *session_suite(void)
{
	Suite *s = suite_create("session");
	TCase *t = tcase_create("session");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, create_opens_a_queue_pair_before_the_reply);
	tcase_add_test(t, create_refuses_bad_parameters);
	tcase_add_test(t, communicators_of_a_user_are_limited);
	tcase_add_test(t, communicator_of_another_process_cannot_be_used);
	tcase_add_test(t, votes_need_a_connection);
	tcase_add_test(t, second_waiting_call_of_a_communicator_fails);
	tcase_add_test(t, leave_carries_its_reason);
	tcase_add_test(t, closed_session_leaves_nothing_open);
	suite_add_tcase(s, t);
	return s;
}
