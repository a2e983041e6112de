/* SPDX-License-Identifier: MIT
 *
 * Links, rounds, rings and world sizes.
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

/* Makes two registered peers, 1 in group 7 and 2 in group 8. */
static void two_groups(void)
{
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	comms[1] = fx_create(f, 1, 8, 1);
	fx_connect(f, 1, comms[0], 1);
	fx_connect(f, 1, comms[1], 2);
	fx_master_up(f, 1);
}

static const struct fx_ring groups[2] = {
	{.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}},
	{.group = 8, .hosts = 3, .world_size = 3, .n = 1, .members = {2}},
};
static const struct fx_ring alone = {
	.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {1}};

START_TEST(rings_share_a_link_with_the_largest_pool_size)
{
	const struct agt_action *x;

	two_groups();
	fx_round(f, 1, 1, true, groups, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	x = fx_get(f, AGT_ACT_LINK_OPEN, 0);
	ck_assert_uint_eq(x->n_streams, 3);
	ck_assert_uint_eq(x->u.endpoint.addrs[0].ip[3], 100);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	fx_link(f, AGT_EV_LINK_UP, 1, 55, false); /* this agent has not asked for it */
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_commit(f, 1, 1, true, groups, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
	x = fx_get(f, AGT_ACT_REPLY, 1);
	ck_assert_uint_eq(x->u.reply.view.view_id, f->view_id);
	ck_assert_uint_eq(x->u.reply.view.global, 5);
	ck_assert_uint_eq(x->u.reply.view.group, 3);
	ck_assert_uint_eq(x->u.reply.view.groups, 2);
	ck_assert_uint_eq(x->u.reply.view.largest, 3);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.view.group, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 1)->u.attrs.hosts, 3);
}
END_TEST

START_TEST(a_failed_link_is_reported_and_tried_again)
{
	const struct wm_round_report *r;

	two_groups();
	fx_round(f, 1, 1, true, groups, 2);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 100, false);
	r = &fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report;
	ck_assert_uint_eq(r->n_failures, 1);
	ck_assert(memcmp(r->failures[0].agent.b, fx_id(100).b, 16) == 0);
	ck_assert_str_eq(r->failures[0].text, "it broke");
	fx_round(f, 1, 2, true, groups, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	fx_commit(f, 1, 2, true, groups, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 2);
}
END_TEST

/* The other agent may have taken part in a newer round. Then it does not accept
 * the proof of an older round. */
START_TEST(link_that_is_being_opened_uses_the_newest_proof)
{
	two_groups();
	fx_round(f, 1, 1, true, groups, 2);
	fx_round(f, 1, 2, true, groups, 2);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
	ck_assert_uint_eq(fx_get(f, AGT_ACT_LINK_OPEN, 0)->u.endpoint.key_no, 2);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
}
END_TEST

START_TEST(commit_after_a_failed_report_is_a_violation)
{
	two_groups();
	fx_round(f, 1, 1, true, groups, 2);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 100, false);
	fx_commit(f, 1, 1, true, groups, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(a_new_round_replaces_an_unfinished_one)
{
	two_groups();
	fx_round(f, 1, 1, true, groups, 2);
	fx_round(f, 1, 2, true, &alone, 1);
	/* The link was still being opened, and is not needed. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.round, 2);
	/* Such an event must not come. If it comes, it has no effect. */
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_commit(f, 1, 2, true, &alone, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
}
END_TEST

START_TEST(links_close_when_no_ring_uses_them)
{
	struct fx_ring here = {.group = 7, .hosts = 1, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_round(f, 1, 2, false, &here, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0); /* the old ring is in force */
	fx_commit(f, 1, 2, false, &here, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.hosts, 1);
}
END_TEST

/* A newcomer still waits, so the run stays open on this host. The next host regards the link as
 * closed and forgets that its end is broken. */
START_TEST(a_host_without_members_closes_the_links_of_its_ring)
{
	struct wm_msg m = {.type = WM_KICK, .u.kick = {.peer = fx_id(1), .code = 8}};

	fx_group(f, 1, 2, comms);
	fx_session(f, 2, 1000);
	comms[1] = fx_create(f, 2, 7, 1);
	fx_connect(f, 2, comms[1], 2);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 1);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
}
END_TEST

START_TEST(transfer_keeps_its_link_open)
{
	struct fx_ring here = {.group = 7, .hosts = 1, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_submit(f, comms[0], 0, 1, 8);
	fx_op_start(f, 1, 7, 1, 1);
	fx_op_abort(f, 1, 7, 1, 1);
	fx_round(f, 1, 2, false, &here, 1);
	fx_commit(f, 1, 2, false, &here, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_XFER_FREE, 0), fx_index(f, AGT_ACT_LINK_CLOSE, 0));
}
END_TEST

START_TEST(a_commit_without_round_keeps_the_rings)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	fx_commit(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0); /* this was not an accepting commit */
	fx_commit(f, 1, 3, true, &ring, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.hosts, 2);
	ck_assert_uint_eq(
		fx_get(f, AGT_ACT_ATTRS, 0)->u.attrs.view_id, f->view_id); /* for the next agent */
	fx_submit(f, comms[0], 0, 1, 8);
	fx_op_start(f, 1, 7, 1, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.hosts, 2);
}
END_TEST

/* A probe changes no round and no link of a ring. */
START_TEST(probe_is_made_and_its_result_is_sent)
{
	struct agt_event ev = {.type = AGT_EV_PROBED, .run = 1, .seq = 9};
	struct wm_msg m = {.type = WM_PROBE, .u.probe = {.number = 9}};

	fx_group(f, 1, 2, comms);
	m.u.probe.to.agent = fx_id(102);
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_PROBE), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_PROBE, 0)->u.probe.number, 9);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN) + fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	ev.code = WIRE_RANK_CONNECTION_FAILED;
	ev.text = "no answer in time";
	fx_step(f, &ev);
	ck_assert_uint_eq(fx_sent(f, WM_PROBED), 1);
	ck_assert(!fx_get(f, AGT_ACT_MASTER_SEND, 0)->u.msg.u.probed.ok);
	ck_assert_str_eq(fx_get(f, AGT_ACT_MASTER_SEND, 0)->u.msg.u.probed.text, ev.text);
	ev.code = WIRE_SUCCESS;
	fx_step(f, &ev);
	ck_assert(fx_get(f, AGT_ACT_MASTER_SEND, 0)->u.msg.u.probed.ok);
	fx_orphan(f);
	fx_step(f, &ev); /* the next master sends its own probes */
	ck_assert_uint_eq(fx_sent(f, WM_PROBED), 0);
}
END_TEST

/* Peers that decide by the view must all see the same view: the view of the call, without later
 * changes. */
START_TEST(view_changes_with_the_end_of_a_call)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 3, .n = 2, .members = {1, 2}};

	fx_group(f, 2, 2, comms);
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(f->acts.n, 2);
	/* The attributes are for the next agent, not for the application. */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), 2);
	ring.world_size = 2;
	ring.generation = 3;
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(f->acts.n, 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 1)->u.attrs.view_id, f->view_id);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_ATTRS, 1)->u.attrs.global, 2);
	fx_request(f, 1, comms[0], FX_VOTE(WIRE_TOPOLOGY));
	fx_commit(f, 1, 2, true, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_REPLY, 0)->u.reply.view.group, 2);
}
END_TEST

START_TEST(commit_without_an_accepted_peer_is_a_violation)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 2, .n = 1, .members = {2}};

	fx_group(f, 2, 1, comms);
	fx_round(f, 1, 2, false, &ring, 1);
	fx_commit(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(broken_link_is_opened_again_in_a_round)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	/* This is the link from the other host, which this agent does not open. */
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, true);
	fx_round(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	fx_round(f, 1, 3, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_commit(f, 1, 3, false, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
}
END_TEST

START_TEST(master_learns_that_a_link_needs_smaller_segments)
{
	struct agt_event ev = {
		.type = AGT_EV_LINK_DOWN, .run = 1, .text = "nothing passes", .smaller = true};

	fx_group(f, 1, 2, comms);
	ev.peer = fx_id(100);
	fx_step(f, &ev);
	ck_assert(fx_msg(f, WM_LINK_LOST, 0)->u.link_lost.smaller);
}
END_TEST

/* The agent at the other end may believe that the link is up. So the master has the link reopened,
 * and no operation starts before. */
START_TEST(lost_inbound_link_is_reported_until_it_is_reopened)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, true);
	ck_assert(fx_msg(f, WM_LINK_LOST, 0)->u.link_lost.inbound);
	fx_submit(f, comms[0], 0, 5, 8);
	fx_op_start(f, 1, 7, 5, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_round(f, 1, 2, false, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
	ring.reopen = true; /* the master now sends this to both ends */
	fx_round(f, 1, 3, false, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, true);
	ring.reopen = false;
	fx_round(f, 1, 4, false, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
}
END_TEST

/* The neighbour got the new round first. The previous commit may still be on its way to this
 * agent. */
START_TEST(link_lost_before_its_round_is_reported_with_the_round)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {1}};

	fx_group(f, 1, 1, comms);
	if (_i == 1) {
		fx_round(f, 1, 2, false, &ring, 1);
		fx_link(f, AGT_EV_LINK_UP, 1, 100, true);
	}
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, true);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
	if (_i == 1)
		fx_commit(f, 1, 2, false, &ring, 1);
	ring.hosts = ring.world_size = 2;
	fx_round(f, 1, 3, true, &ring, 1);
	ck_assert(fx_msg(f, WM_LINK_LOST, 0)->u.link_lost.inbound);
}
END_TEST

/* An agent that is not a neighbour closes its link, unless it is disconnected from the master: when
 * it comes back, it believes that its link is up. */
START_TEST(lost_link_from_outside_the_ring_is_forgotten_after_a_minute)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 1, .n = 1, .members = {1}};
	uint64_t round;

	fx_group(f, 1, 1, comms);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, true);
	for (round = 2; round < 6; round++) {
		fx_round(f, 1, round, false, &ring, 1);
		fx_commit(f, 1, round, false, &ring, 1);
		f->now += (_i ? 21000 : 10) * MS;
	}
	ring.hosts = ring.world_size = 2;
	fx_round(f, 1, round, true, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), _i ? 0 : 1);
}
END_TEST

START_TEST(link_that_breaks_during_a_round_is_opened_again)
{
	struct cc_id members[2] = {fx_id(1), fx_id(2)};
	struct wm_ring rings[2] = {
		{.group = 7, .hosts = 2, .pool_size = 1, .n_members = 1, .members = &members[0]},
		{.group = 8, .hosts = 2, .pool_size = 1, .n_members = 1, .members = &members[1]},
	};
	struct wm_msg m = {.type = WM_ROUND};

	two_groups();
	rings[0].next.agent = rings[0].prev = fx_id(100);
	rings[1].next.agent = rings[1].prev = fx_id(102);
	m.u.round = (struct wm_round){.round = 1, .accept = true, .n_rings = 2, .rings = rings};
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 2);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	fx_link(f, AGT_EV_LINK_UP, 1, 102, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 100, false);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 1);
}
END_TEST

static void hear(unsigned peer, bool silent)
{
	struct agt_event ev = {.type = AGT_EV_LINK_SILENT, .run = 1, .silent = silent};

	ev.peer = fx_id(peer);
	fx_step(f, &ev);
}

START_TEST(silent_link_is_replaced_in_a_round)
{
	struct fx_ring ring = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	fx_group(f, 1, 2, comms);
	hear(100, true);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_round(f, 1, 2, false, &ring, 1);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	hear(100, false); /* this event is about the old link and comes too late */
	ck_assert_uint_eq(f->acts.n, 0);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	fx_commit(f, 1, 2, false, &ring, 1);
	hear(100, true);
	hear(100, false);
	fx_round(f, 1, 3, false, &ring, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
}
END_TEST

START_TEST(round_waits_for_a_silent_link_that_is_in_use)
{
	struct fx_ring rings[2] = {
		{.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}},
		{.group = 8, .hosts = 2, .world_size = 2, .n = 1, .members = {2}},
	};
	bool ends = _i == 1;

	two_groups();
	fx_accept(f, 1, 1, rings, 2);
	fx_submit(f, comms[1], 0, 5, 8);
	fx_op_start(f, 1, 8, 5, 1);
	hear(100, true);
	fx_round(f, 1, 2, false, rings, 2); /* the round is for the other group */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 0);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 0);
	if (!ends) {
		hear(100, false);
		ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
		return;
	}
	fx_link(f, AGT_EV_LINK_DOWN, 1, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 1);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
}
END_TEST

START_TEST(larger_pool_size_opens_a_new_link)
{
	struct fx_ring rings[2] = {
		{.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}},
		{.group = 8, .hosts = 2, .world_size = 2, .n = 1, .members = {2}},
	};
	uint32_t c;

	fx_group(f, 1, 2, comms);
	c = fx_create(f, 1, 8, 1);
	fx_connect(f, 1, c, 2);
	fx_round(f, 1, 2, true, rings, 2);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
	ck_assert_uint_eq(fx_get(f, AGT_ACT_LINK_OPEN, 0)->n_streams, 3);
	fx_link(f, AGT_EV_LINK_UP, 1, 100, false);
	fx_commit(f, 1, 2, true, rings, 2);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	fx_round(f, 1, 3, false, rings, 1); /* fewer streams need no new link */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_OPEN), 0);
}
END_TEST

START_TEST(impossible_rings_end_the_run)
{
	struct wm_ring rings[2] = {0};
	struct wm_msg m = {.type = WM_ROUND};

	fx_group(f, 1, 2, comms);
	m.u.round.n_rings = 1;
	m.u.round.rings = rings;
	rings[0] = (struct wm_ring){.group = 7, .hosts = 2, .pool_size = 1};
	rings[0].next.agent = fx_id(100);
	rings[0].prev = fx_id(100);
	switch (_i) {
	case 0:
		rings[0].hosts = 0;
		break;
	case 1:
		rings[0].pos = 2;
		break;
	case 2:
		rings[0].pool_size = WM_POOL_MAX + 1;
		break;
	case 3:
		rings[0].next.agent = fx_id(99); /* this agent itself */
		break;
	case 4:
		memset(&rings[0].prev, 0, sizeof rings[0].prev);
		break;
	default:
		m.u.round.n_rings = 2;
		rings[1] = rings[0];
		break;
	}
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

Suite *round_suite(void)
{
	Suite *s = suite_create("round");
	TCase *t = tcase_create("round");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, rings_share_a_link_with_the_largest_pool_size);
	tcase_add_test(t, a_failed_link_is_reported_and_tried_again);
	tcase_add_test(t, link_that_is_being_opened_uses_the_newest_proof);
	tcase_add_test(t, commit_after_a_failed_report_is_a_violation);
	tcase_add_test(t, a_new_round_replaces_an_unfinished_one);
	tcase_add_test(t, links_close_when_no_ring_uses_them);
	tcase_add_test(t, a_host_without_members_closes_the_links_of_its_ring);
	tcase_add_test(t, transfer_keeps_its_link_open);
	tcase_add_test(t, a_commit_without_round_keeps_the_rings);
	tcase_add_test(t, view_changes_with_the_end_of_a_call);
	tcase_add_test(t, commit_without_an_accepted_peer_is_a_violation);
	tcase_add_test(t, broken_link_is_opened_again_in_a_round);
	tcase_add_test(t, master_learns_that_a_link_needs_smaller_segments);
	tcase_add_test(t, lost_inbound_link_is_reported_until_it_is_reopened);
	tcase_add_loop_test(t, link_lost_before_its_round_is_reported_with_the_round, 0, 2);
	tcase_add_loop_test(t, lost_link_from_outside_the_ring_is_forgotten_after_a_minute, 0, 2);
	tcase_add_test(t, link_that_breaks_during_a_round_is_opened_again);
	tcase_add_test(t, silent_link_is_replaced_in_a_round);
	tcase_add_loop_test(t, round_waits_for_a_silent_link_that_is_in_use, 0, 2);
	tcase_add_test(t, probe_is_made_and_its_result_is_sent);
	tcase_add_test(t, larger_pool_size_opens_a_new_link);
	tcase_add_loop_test(t, impossible_rings_end_the_run, 0, 6);
	suite_add_tcase(s, t);
	return s;
}
