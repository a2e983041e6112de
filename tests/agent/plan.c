/* SPDX-License-Identifier: MIT
 *
 * Plans of several rings: the links for which a round waits, reports, operations, snapshots, and
 * the answer of an optimization that has failed.
 */
#include "common/cc_route.h"
#include "tests/agent/fixture.h"

#define TAG 5u

static struct fx *f;
static uint32_t comms[2];

/* This host is at position 0; the others are 100, 102, 103, 101. In the second ring it sends to 102
 * and receives from 103. */
static const uint16_t rings[] = {0, 1, 2, 3, 4, 0, 2, 4, 1, 3};
/* Here it sends to 103, and receives from 100. */
static const uint16_t other_rings[] = {0, 1, 2, 3, 4, 0, 3, 2, 4, 1};

static struct fx_ring planned(const uint16_t *plan, bool await)
{
	return (struct fx_ring){.group = 7,
		.hosts = 5,
		.world_size = 5,
		.n = 1,
		.members = {1},
		.mesh = true,
		.plan = plan,
		.n_plan = 2,
		.await_plan = await};
}

static void setup(void)
{
	f = fx_new();
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comms[0], 1);
	fx_master_up(f, 1);
}

static void teardown(void)
{
	fx_free(f);
}

static void up(unsigned peer)
{
	fx_link(f, AGT_EV_LINK_UP, 1, peer, false);
}

static void lose(unsigned peer, bool inbound)
{
	fx_link(f, AGT_EV_LINK_DOWN, 1, peer, inbound);
}

/* Checks that the last step opened exactly these links, in this order. 0: no more. */
static void expect_open(unsigned first, unsigned second)
{
	const unsigned peers[2] = {first, second};
	uint32_t i, n = second > 0 ? 2 : first > 0;

	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), n);
	for (i = 0; i < n; i++)
		ck_assert(
			fx_is(&fx_get(f, AGT_ACT_LINK_OPEN, i)->u.endpoint.agent, fx_id(peers[i])));
}

static void expect_mesh(bool mesh_up, bool plan_up)
{
	const struct wm_mesh *m = &fx_msg(f, WM_MESH, 0)->u.mesh;

	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	ck_assert_uint_eq(m->group, 7);
	ck_assert(m->up == mesh_up);
	ck_assert(m->plan_up == plan_up);
}

/* Puts the plan in force: the links of its rings are up, the others are being opened. */
static void plan_in_force(void)
{
	struct fx_ring ring = planned(rings, true);

	fx_round(f, 1, 1, true, &ring, 1);
	up(100);
	up(102);
	fx_commit(f, 1, 1, true, &ring, 1);
	expect_mesh(false, true);
}

static void mesh_too(void)
{
	plan_in_force();
	up(103);
	up(101);
	expect_mesh(true, true);
}

/* ---- rounds ---- */

START_TEST(round_opens_and_awaits_the_links_of_its_plan)
{
	struct fx_ring ring = planned(rings, true);
	const struct agt_action *x;

	fx_round(f, 1, 1, true, &ring, 1);
	expect_open(100, 102);
	x = fx_get(f, AGT_ACT_LINK_OPEN, 1);
	ck_assert(!x->probe);
	ck_assert_uint_eq(x->n_streams, 2);
	ck_assert_uint_eq(x->u.endpoint.key_no, 1);
	if (_i == 0)
		up(100);
	else
		up(102);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	if (_i == 0)
		up(102);
	else
		up(100);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, 1, 1, true, &ring, 1);
	expect_open(103, 101);
	expect_mesh(false, true);
}
END_TEST

START_TEST(round_does_not_wait_for_a_plan_that_is_in_force)
{
	struct fx_ring ring = planned(rings, false);

	fx_round(f, 1, 1, true, &ring, 1);
	expect_open(100, 0);
	up(100);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, 1, 1, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 3);
	expect_mesh(false, false);
	up(103);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	up(102);
	expect_mesh(false, true);
	up(101);
	expect_mesh(true, true);
}
END_TEST

START_TEST(failed_link_of_a_plan_is_reported)
{
	struct fx_ring ring = planned(rings, true);
	const struct wm_round_report *r;

	fx_round(f, 1, 1, true, &ring, 1);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 102, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	up(100);
	r = &fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report;
	ck_assert_uint_eq(r->n_failures, 1);
	ck_assert(fx_is(&r->failures[0].agent, fx_id(102)));
	ck_assert_str_eq(r->failures[0].text, "it broke");
}
END_TEST

/* Both rings lead to the next host. */
START_TEST(link_of_two_rings_is_opened_and_reported_once)
{
	static const uint16_t same_next[] = {0, 1, 2, 3, 4, 0, 1, 3, 2, 4};
	struct fx_ring ring = planned(same_next, true);
	const struct wm_round_report *r;

	fx_round(f, 1, 1, true, &ring, 1);
	expect_open(100, 0);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 100, false);
	r = &fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report;
	ck_assert_uint_eq(r->n_failures, 1);
}
END_TEST

START_TEST(link_of_a_plan_that_breaks_before_the_report_is_opened_again)
{
	struct fx_ring ring = planned(rings, true);

	fx_round(f, 1, 1, true, &ring, 1);
	up(102);
	lose(102, false);
	expect_open(102, 0);
	up(100);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	up(102);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
}
END_TEST

/* The round opens only what is missing. */
START_TEST(links_of_the_mesh_serve_the_plan)
{
	struct fx_ring ring = planned(other_rings, true);

	mesh_too();
	fx_round(f, 1, 2, false, &ring, 1);
	expect_open(0, 0);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, 1, 2, false, &ring, 1);
	expect_mesh(true, true);
}
END_TEST

/* The base ring is the same. */
/* A report of the link would begin another round, whose plan would report it again. */
START_TEST(link_of_a_plan_that_another_ring_reopens_is_not_reported)
{
	const bool reopen = _i == 1;
	struct fx_ring both[2] = {
		{.group = 8, .hosts = 2, .world_size = 2, .n = 1, .members = {1}, .reopen = reopen},
		planned(other_rings, true)};

	fx_link(f, AGT_EV_LINK_UP, 1, 100, true);
	lose(100, true);
	fx_round(f, 1, 1, true, both, 2);
	if (reopen)
		ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
	else
		ck_assert_uint_gt(fx_sent(f, WM_LINK_LOST), 0);
}
END_TEST

START_TEST(next_plan_replaces_the_last_one)
{
	struct fx_ring ring = planned(_i == 0 ? other_rings : NULL, false);
	const struct wm_resume *r;

	mesh_too();
	lose(103, true); /* a link of the first plan */
	expect_mesh(true, false);
	fx_round(f, 1, 2, false, &ring, 1);
	fx_commit(f, 1, 2, false, &ring, 1);
	expect_mesh(true, _i == 0);
	fx_orphan(f);
	fx_resume(f);
	r = &fx_msg(f, WM_RESUME, 0)->u.resume;
	ck_assert_uint_eq(r->positions[0].plan.n, _i == 0 ? 2 : 0);
	if (_i == 0)
		ck_assert_mem_eq(r->positions[0].plan.order, other_rings, sizeof other_rings);
}
END_TEST

START_TEST(round_that_is_dropped_leaves_the_plan_alone)
{
	struct fx_ring ring = planned(other_rings, true);
	const struct wm_resume *r;

	mesh_too();
	fx_round(f, 1, 2, false, &ring, 1);
	fx_orphan(f);
	fx_resume(f);
	r = &fx_msg(f, WM_RESUME, 0)->u.resume;
	ck_assert_uint_eq(r->n_positions, 1);
	ck_assert_uint_eq(r->positions[0].plan.n, 2);
	ck_assert_uint_eq(r->positions[0].plan.shares[0], 4);
	ck_assert_uint_eq(r->positions[0].plan.n_order, 10);
	ck_assert_mem_eq(r->positions[0].plan.order, rings, sizeof rings);
}
END_TEST

/* ---- reports ---- */

START_TEST(lost_link_of_a_plan_is_reported)
{
	mesh_too();
	if (_i == 0) {
		lose(103, true);
		expect_mesh(true, false);
		fx_link(f, AGT_EV_LINK_UP, 1, 103, true);
		expect_mesh(true, true);
		return;
	}
	lose(102, false);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
	expect_mesh(false, false);
	expect_open(102, 0);
	up(102);
	expect_mesh(true, true);
}
END_TEST

/* The master takes a loss as one of the plan. */
START_TEST(loss_of_another_link_leaves_the_plan_up)
{
	plan_in_force();
	up(103);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 0); /* 101 cannot be reached */
	fx_link(f, AGT_EV_LINK_FAILED, 1, 101, false);
	lose(103, false);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
	expect_mesh(false, true);
}
END_TEST

START_TEST(next_master_learns_that_the_plan_is_up)
{
	plan_in_force();
	fx_orphan(f);
	fx_resume(f);
	expect_mesh(false, true);
}
END_TEST

/* ---- operations ---- */

static void start(enum cc_algo route)
{
	struct wm_msg m = {.type = WM_OP_START};

	fx_submit(f, comms[0], TAG, TAG, 8);
	m.u.op_start = (struct wm_op_start){
		.group = 7, .tag = TAG, .seq = 1, .epoch = f->epoch, .route = route};
	fx_from_master(f, 1, &m);
}

static void expect_failure(const char *text, unsigned suspect)
{
	const struct wm_op_report *r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;

	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(!r->ok);
	ck_assert_ptr_nonnull(strstr(r->text, text));
	if (suspect)
		ck_assert(fx_is(&r->suspect, fx_id(suspect)));
	else
		ck_assert(cc_id_is_zero(&r->suspect));
}

START_TEST(transfer_has_the_rings)
{
	const struct agt_xfer *x;
	uint32_t i;

	plan_in_force();
	start((enum cc_algo)_i);
	if (_i == CC_ALGO_DIRECT || _i == CC_ALGO_TREE) { /* the mesh is not up */
		expect_failure("to another host", 103);
		return;
	}
	x = &fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer;
	ck_assert_uint_eq(x->route, (uint32_t)_i);
	if (_i == CC_ALGO_RING) {
		ck_assert_ptr_null(x->rings);
		return;
	}
	ck_assert_uint_eq(x->rings->n, 2);
	ck_assert_uint_eq(x->rings->hosts, 5);
	ck_assert_uint_eq(x->rings->share[0], 4);
	ck_assert_uint_eq(x->rings->share[1], 3);
	for (i = 0; i < 5; i++) {
		ck_assert_uint_eq(x->rings->order[1][i], rings[5 + i]);
		ck_assert_uint_eq(x->rings->at[1][rings[5 + i]], i);
	}
	ck_assert(fx_is(&x->agents[2], fx_id(102)));
}
END_TEST

START_TEST(operation_does_not_start_without_the_links_of_its_plan)
{
	mesh_too();
	if (_i == 0)
		lose(102, false);
	else
		lose(103, true);
	start(CC_ALGO_RINGS);
	expect_failure(_i == 0 ? "to the next host of a ring" : "from the previous host of a ring",
		_i == 0 ? 102 : 103);
}
END_TEST

START_TEST(operation_starts_without_other_links)
{
	mesh_too();
	lose(103, false);
	lose(102, true);
	start(CC_ALGO_RINGS);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}
END_TEST

/* A master may lie, or the plan may have been replaced meanwhile. */
START_TEST(operation_without_a_plan_fails)
{
	struct fx_ring ring = planned(NULL, false);

	ring.mesh = _i == 0;
	fx_accept(f, 1, 1, &ring, 1);
	start(CC_ALGO_RINGS);
	expect_failure("no plan", 0);
	fx_op_abort(f, 1, 7, TAG, 1);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "");
}
END_TEST

START_TEST(vote_for_the_next_master_has_the_route)
{
	const struct wm_op_vote *v;

	plan_in_force();
	start(CC_ALGO_RINGS);
	fx_orphan(f);
	fx_resume(f);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->seq, 1);
	ck_assert_uint_eq(v->route, CC_ALGO_RINGS);
}
END_TEST

/* ---- the answer of an optimization ---- */

/* The master ends ballot number `count` of optimizations. */
static void end(uint64_t count, bool answer, const char *text)
{
	struct wm_msg m = {.type = WM_BALLOT_END,
		.u.ballot_end = {.kind = WIRE_OPTIMIZE, .number = 2 * count + answer}};

	strcpy(m.u.ballot_end.text, text);
	fx_from_master(f, 1, &m);
}

static void expect_answer(bool answer, const char *text)
{
	const struct agt_action *x = fx_get(f, AGT_ACT_REPLY, 0);

	ck_assert_uint_eq(x->u.reply.code, WIRE_SUCCESS);
	ck_assert(x->u.reply.flag == answer);
	ck_assert_str_eq(x->u.reply.text, text);
}

START_TEST(failed_optimization_is_answered_with_the_reason)
{
	plan_in_force();
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_OPTIMIZE));
	end(1, false, "host b is gone");
	expect_answer(false, "host b is gone");
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_OPTIMIZE));
	end(2, true, "");
	expect_answer(true, "");
	/* The master tells an agent that has missed the end only the number. */
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_OPTIMIZE));
	end(3, false, "");
	expect_answer(false, "");
}
END_TEST

START_TEST(other_answers_have_no_reason)
{
	struct wm_msg m = {.type = WM_BALLOT_END, .u.ballot_end = {.kind = WIRE_PENDING}};

	plan_in_force();
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_OPTIMIZE));
	end(1, false, "host b is gone");
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_PENDING));
	m.u.ballot_end.number = 2;
	fx_from_master(f, 1, &m);
	expect_answer(false, "");
}
END_TEST

Suite *plan_suite(void)
{
	Suite *s = suite_create("plan");
	TCase *tc = tcase_create("plan");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, round_opens_and_awaits_the_links_of_its_plan, 0, 2);
	tcase_add_test(tc, round_does_not_wait_for_a_plan_that_is_in_force);
	tcase_add_test(tc, failed_link_of_a_plan_is_reported);
	tcase_add_test(tc, link_of_two_rings_is_opened_and_reported_once);
	tcase_add_test(tc, link_of_a_plan_that_breaks_before_the_report_is_opened_again);
	tcase_add_test(tc, links_of_the_mesh_serve_the_plan);
	tcase_add_loop_test(tc, link_of_a_plan_that_another_ring_reopens_is_not_reported, 0, 2);
	tcase_add_loop_test(tc, next_plan_replaces_the_last_one, 0, 2);
	tcase_add_test(tc, round_that_is_dropped_leaves_the_plan_alone);
	tcase_add_loop_test(tc, lost_link_of_a_plan_is_reported, 0, 2);
	tcase_add_test(tc, loss_of_another_link_leaves_the_plan_up);
	tcase_add_test(tc, next_master_learns_that_the_plan_is_up);
	tcase_add_loop_test(tc, transfer_has_the_rings, 0, CC_ALGO_COUNT);
	tcase_add_loop_test(tc, operation_does_not_start_without_the_links_of_its_plan, 0, 2);
	tcase_add_test(tc, operation_starts_without_other_links);
	tcase_add_loop_test(tc, operation_without_a_plan_fails, 0, 2);
	tcase_add_test(tc, vote_for_the_next_master_has_the_route);
	tcase_add_test(tc, failed_optimization_is_answered_with_the_reason);
	tcase_add_test(tc, other_answers_have_no_reason);
	suite_add_tcase(s, tc);
	return s;
}
