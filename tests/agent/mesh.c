/* SPDX-License-Identifier: MIT
 *
 * The mesh: links to all other hosts of a ring, and operations that take another route than the
 * ring.
 */
#include "common/cc_route.h"
#include "tests/agent/fixture.h"

#define TAG 5u

static struct fx *f;
static uint32_t comms[2];

/* This host is at position 0; the others are 100, 102, 101. */
static const struct fx_ring four = {
	.group = 7, .hosts = 4, .world_size = 4, .n = 1, .members = {1}, .mesh = true};

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

/* Registers peer 1 in group 7. */
static void one_group(void)
{
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	fx_connect(f, 1, comms[0], 1);
	fx_master_up(f, 1);
}

/* Registers peer 1 in group 7 and peer 2 in group 8. */
static void two_groups(void)
{
	fx_session(f, 1, 1000);
	comms[0] = fx_create(f, 1, 7, 1);
	comms[1] = fx_create(f, 1, 8, 1);
	fx_connect(f, 1, comms[0], 1);
	fx_connect(f, 1, comms[1], 2);
	fx_master_up(f, 1);
}

static void up(unsigned peer)
{
	fx_link(f, AGT_EV_LINK_UP, 1, peer, false);
}

static void lose(unsigned peer, bool inbound)
{
	fx_link(f, AGT_EV_LINK_DOWN, 1, peer, inbound);
}

/* Puts a ring in force, and opens the links to the hosts between the next and the previous one,
 * then that to the previous one. */
static void mesh_of(const struct fx_ring *ring)
{
	unsigned i;

	one_group();
	fx_accept(f, 1, 1, ring, 1);
	for (i = 0; i + 3 < ring->hosts; i++)
		up(102 + i);
	up(101);
	ck_assert(fx_msg(f, WM_MESH, 0)->u.mesh.up);
}

static void again(uint64_t round, const struct fx_ring *rings, unsigned n)
{
	fx_round(f, 1, round, false, rings, n);
	fx_commit(f, 1, round, false, rings, n);
}

static void reopen(unsigned peer)
{
	struct wm_msg m = {.type = WM_LINK_REOPEN, .u.link_reopen.agent = fx_id(peer)};

	fx_from_master(f, 1, &m);
}

static void expect_mesh(uint32_t n, uint32_t group, bool is_up, uint32_t reopens)
{
	const struct wm_mesh *m = &fx_msg(f, WM_MESH, n)->u.mesh;

	ck_assert_uint_eq(m->group, group);
	ck_assert(m->up == is_up);
	ck_assert_uint_eq(m->reopens, reopens);
}

static void expect_lost(uint32_t n, unsigned peer, bool inbound)
{
	const struct wm_link_lost *m = &fx_msg(f, WM_LINK_LOST, n)->u.link_lost;

	ck_assert(fx_is(&m->agent, fx_id(peer)));
	ck_assert(m->inbound == inbound);
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

static void expect_log(const char *text)
{
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LOG), 1);
	ck_assert_ptr_nonnull(strstr(fx_get(f, AGT_ACT_LOG, 0)->u.text, text));
}

START_TEST(links_to_all_others_are_opened_after_the_commit)
{
	const struct agt_action *x;

	one_group();
	fx_round(f, 1, 1, true, &four, 1);
	expect_open(100, 0);
	ck_assert(!fx_get(f, AGT_ACT_LINK_OPEN, 0)->probe);
	up(100);
	expect_open(0, 0);
	/* The round does not wait for the mesh. */
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, 1, 1, true, &four, 1);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	expect_open(102, 101);
	x = fx_get(f, AGT_ACT_LINK_OPEN, 0);
	ck_assert(x->probe);
	ck_assert(fx_get(f, AGT_ACT_LINK_OPEN, 1)->probe);
	ck_assert_uint_eq(x->n_streams, 2);
	ck_assert_uint_eq(x->u.endpoint.addrs[0].ip[3], 102);
	ck_assert_uint_eq(x->u.endpoint.key_no, 1);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 7, false, 0);
}
END_TEST

START_TEST(mesh_is_reported_when_all_links_are_up)
{
	one_group();
	fx_accept(f, 1, 1, &four, 1);
	up(101);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	up(102);
	ck_assert_uint_eq(f->acts.n, 1);
	expect_mesh(0, 7, true, 0);
	up(102); /* this event must not come, but has no effect */
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

/* Two hosts have all links in the ring. A larger ring may be too large for a mesh. */
START_TEST(ring_without_other_hosts_has_no_mesh)
{
	struct fx_ring ring = four;

	ring.mesh = false;
	ring.hosts = _i == 0 ? 2 : 4;
	one_group();
	fx_accept(f, 1, 1, &ring, 1);
	expect_open(0, 0);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	lose(102, true);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

/* The master would take the report for one about the next ring. */
START_TEST(mesh_is_not_reported_during_a_round)
{
	one_group();
	fx_accept(f, 1, 1, &four, 1);
	up(102);
	fx_round(f, 1, 2, false, &four, 1);
	ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
	up(101);
	ck_assert_uint_eq(f->acts.n, 0);
	if (_i == 1) {
		lose(102, false);
		expect_lost(0, 102, false);
		ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
		expect_open(102, 0);
	}
	fx_commit(f, 1, 2, false, &four, 1);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 7, _i == 0, 0);
	expect_open(_i == 0 ? 0 : 102, 0); /* with the proof of this round */
}
END_TEST

/* The newcomer of a round has died, so the master drops the round and answers the votes. */
START_TEST(mesh_is_reported_after_a_round_that_was_dropped)
{
	mesh_of(&four);
	fx_round(f, 1, 2, true, &four, 1);
	fx_commit(f, 1, 3, true, &four, 1);
	expect_mesh(0, 7, true, 0);
	lose(102, false);
	expect_mesh(0, 7, false, 0);
	up(102);
	expect_mesh(0, 7, true, 0);
}
END_TEST

START_TEST(lost_mesh_link_is_reported_and_reopened)
{
	unsigned i;

	mesh_of(&four);
	for (i = 0; i < 3; i++) {
		lose(101, false);
		ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
		expect_lost(0, 101, false);
		ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
		expect_mesh(0, 7, false, 0);
		ck_assert_uint_lt(
			fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
		expect_open(101, 0);
		ck_assert(fx_get(f, AGT_ACT_LINK_OPEN, 0)->probe);
		up(101);
		ck_assert_uint_eq(f->acts.n, 1);
		expect_mesh(0, 7, true, 0);
	}
	lose(101, false);
	expect_mesh(0, 7, false, 0);
	expect_open(0, 0);
	fx_round(f, 1, 2, false, &four, 1);
	expect_open(0, 0);
	fx_commit(f, 1, 2, false, &four, 1);
	expect_open(101, 0);
	up(101);
	expect_mesh(0, 7, true, 0);
	lose(101, false);
	expect_open(101, 0);
}
END_TEST

/* The link to the next host is a link of the ring, which only a round reopens. */
START_TEST(lost_link_of_the_ring_is_no_break_of_the_mesh)
{
	mesh_of(&four);
	lose(100, false);
	expect_lost(0, 100, false);
	expect_mesh(0, 7, false, 0);
	expect_open(0, 0);
	fx_round(f, 1, 2, false, &four, 1);
	up(100);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	fx_commit(f, 1, 2, false, &four, 1);
	expect_mesh(0, 7, true, 0);
}
END_TEST

/* The owner of the link opens it again, as soon as the master tells it. */
START_TEST(lost_inbound_mesh_link_is_only_reported)
{
	static const unsigned peers[2] = {102, 100};

	mesh_of(&four);
	lose(peers[_i], true);
	ck_assert_uint_eq(f->acts.n, 1);
	expect_lost(0, peers[_i], true);
	again(2, &four, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
	expect_lost(0, peers[_i], true);
	expect_mesh(0, 7, true, 0);
	fx_link(f, AGT_EV_LINK_UP, 1, peers[_i], true);
	again(3, &four, 1);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
}
END_TEST

/* A link that cannot be opened is tried again with the next ring. The master learns nothing, so no
 * host is suspected. */
START_TEST(failed_mesh_link_is_opened_with_the_next_ring)
{
	one_group();
	fx_accept(f, 1, 1, &four, 1);
	up(102);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 101, false);
	ck_assert_uint_eq(f->acts.n, 1);
	expect_log("it broke");
	fx_round(f, 1, 2, false, &four, 1);
	ck_assert_uint_eq(fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report.n_failures, 0);
	fx_commit(f, 1, 2, false, &four, 1);
	expect_open(101, 0);
	expect_mesh(0, 7, false, 0);
	up(101);
	expect_mesh(0, 7, true, 0);
}
END_TEST

/* A round does not wait for a probe. A link that is up was probed (1). A probe under way is dropped
 * with the link that it was for (0). */
START_TEST(round_opens_its_link_without_a_probe)
{
	struct cc_id member = fx_id(1);
	struct wm_ring ring = {.group = 7,
		.hosts = 2,
		.pool_size = 2,
		.next = {.agent = fx_id(101), .key_no = 2},
		.prev = fx_id(101),
		.n_members = 1,
		.members = &member};
	struct wm_msg m = {.type = WM_ROUND};
	const struct wm_round_report *r;

	one_group();
	fx_accept(f, 1, 1, &four, 1);
	if (_i == 1)
		up(101);
	m.u.round = (struct wm_round){.round = 2, .n_rings = 1, .rings = &ring};
	fx_from_master(f, 1, &m);
	if (_i == 1) {
		expect_open(0, 0);
		ck_assert_uint_eq(fx_sent(f, WM_ROUND_REPORT), 1);
		return;
	}
	ck_assert_uint_lt(fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
	expect_open(101, 0);
	ck_assert(!fx_get(f, AGT_ACT_LINK_OPEN, 0)->probe);
	fx_link(f, AGT_EV_LINK_FAILED, 1, 101, false);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LOG), 0);
	r = &fx_msg(f, WM_ROUND_REPORT, 0)->u.round_report;
	ck_assert_uint_eq(r->n_failures, 1);
	ck_assert(fx_is(&r->failures[0].agent, fx_id(101)));
}
END_TEST

/* The other agent has committed the newer round, and refuses the proof of the older one. */
START_TEST(mesh_link_that_is_being_opened_uses_the_newest_proof)
{
	one_group();
	fx_accept(f, 1, 1, &four, 1);
	up(102);
	again(2, &four, 1);
	ck_assert_uint_lt(fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
	expect_open(101, 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_LINK_OPEN, 0)->u.endpoint.key_no, 2);
}
END_TEST

/* ---- WM_LINK_REOPEN ---- */

START_TEST(master_has_a_mesh_link_reopened)
{
	uint32_t i;

	mesh_of(&four);
	for (i = 1; i <= 3; i++) {
		reopen(102);
		ck_assert_uint_eq(f->acts.n, 2);
		ck_assert_uint_lt(
			fx_index(f, AGT_ACT_LINK_CLOSE, 0), fx_index(f, AGT_ACT_LINK_OPEN, 0));
		expect_open(102, 0);
		up(102);
		ck_assert_uint_eq(f->acts.n, 1);
		expect_mesh(0, 7, true, i);
	}
}
END_TEST

/* Links that are lost at this end count (1), or at the other end (0). In the latter case the link
 * is up here. The mesh is not up before the next ring. */
START_TEST(mesh_that_broke_too_often_is_not_reported_as_up)
{
	bool here = _i == 1;
	uint32_t i;

	mesh_of(&four);
	for (i = 0; i < 3; i++) {
		if (here)
			lose(101, false);
		else
			reopen(102);
		up(here ? 101 : 102);
		ck_assert(fx_msg(f, WM_MESH, 0)->u.mesh.up);
	}
	if (here) {
		lose(101, false);
		expect_mesh(0, 7, false, 0);
	} else {
		reopen(102);
		ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	}
	expect_open(0, 0);
	fx_commit(f, 1, 1, true, &four, 1); /* without a round */
	expect_mesh(0, 7, false, here ? 0 : 4);
	again(2, &four, 1);
	if (here)
		up(101);
	expect_mesh(0, 7, true, here ? 0 : 4);
	reopen(102);
	expect_open(102, 0);
	up(102);
	expect_mesh(0, 7, true, here ? 1 : 5);
}
END_TEST

/* Both ends have noticed the break. The order comes when the link is up again. */
START_TEST(break_that_both_ends_notice_counts_once)
{
	uint32_t i;

	mesh_of(&four);
	for (i = 1; i <= 3; i++) {
		lose(102, false);
		expect_open(102, 0);
		up(102);
		expect_mesh(0, 7, true, i - 1);
		reopen(102);
		expect_open(102, 0);
		up(102);
		expect_mesh(0, 7, true, i);
	}
	lose(102, false);
	expect_open(0, 0);
	reopen(102);
	expect_open(0, 0);
}
END_TEST

/* The link that is lost is an older one. */
START_TEST(link_that_is_being_opened_is_not_reopened)
{
	one_group();
	fx_accept(f, 1, 1, &four, 1);
	up(101);
	reopen(102);
	ck_assert_uint_eq(f->acts.n, 0);
	up(102);
	expect_mesh(0, 7, true, 1);
}
END_TEST

/* The master ignores reports from before the order, also those about the meshes of other groups and
 * those that crossed it. */
START_TEST(all_meshes_are_reported_after_a_reopen)
{
	struct fx_ring rings[2] = {four,
		{.group = 8, .hosts = 3, .world_size = 3, .n = 1, .members = {2}, .mesh = true}};

	two_groups();
	fx_accept(f, 1, 1, rings, 2);
	up(101);
	expect_mesh(0, 8, true, 0);
	up(102);
	expect_mesh(0, 7, true, 0);
	reopen(102);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 8, true, 1);
	up(102);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 7, true, 1);
	reopen(55); /* no host of a ring */
	ck_assert_uint_eq(f->acts.n, 2);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 2);
	expect_mesh(0, 7, true, 2);
	expect_mesh(1, 8, true, 2);
}
END_TEST

START_TEST(reopened_link_of_two_meshes_is_opened_once)
{
	struct fx_ring rings[2] = {four, four};

	rings[1].group = 8;
	rings[1].members[0] = 2;
	two_groups();
	fx_accept(f, 1, 1, rings, 2);
	expect_open(102, 101);
	up(101);
	up(102);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 2);
	reopen(102);
	expect_open(102, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 1);
	up(102);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 2);
	expect_mesh(0, 7, true, 1);
	expect_mesh(1, 8, true, 1);
}
END_TEST

START_TEST(reopen_without_a_ring_has_no_effect)
{
	one_group();
	reopen(102);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_accept(f, 1, 1, &four, 1);
	expect_mesh(0, 7, false, 1);
}
END_TEST

/* ---- several rings, and the end of a ring ---- */

/* Orders a ring of two hosts with agent 100 for group 7, and a ring of four with the agents 103,
 * 100, 101 for group 8. */
static void two_rings(uint64_t round, uint32_t pool7, uint32_t pool8)
{
	struct cc_id members[2] = {fx_id(1), fx_id(2)};
	struct wm_endpoint others[2] = {
		{.agent = fx_id(100), .key_no = round}, {.agent = fx_id(101), .key_no = round}};
	struct wm_ring rings[2] = {
		{.group = 7,
			.hosts = 2,
			.pool_size = pool7,
			.prev = fx_id(100),
			.n_members = 1,
			.members = &members[0]},
		{.group = 8,
			.hosts = 4,
			.pool_size = pool8,
			.prev = fx_id(101),
			.n_members = 1,
			.members = &members[1],
			.n_others = 2,
			.others = others},
	};
	struct wm_msg m = {.type = WM_ROUND};

	rings[0].next = others[0];
	rings[1].next = (struct wm_endpoint){.agent = fx_id(103), .key_no = round};
	m.u.round = (struct wm_round){.round = round, .accept = true, .n_rings = 2, .rings = rings};
	fx_from_master(f, 1, &m);
}

/* The ring of group 7 uses a link to agent 100, to which the mesh of group 8 has a link, too. */
START_TEST(mesh_keeps_a_link_of_a_ring_whatever_its_streams_are)
{
	static const struct fx_ring views[2] = {
		{.group = 7, .world_size = 2}, {.group = 8, .world_size = 4}};

	two_groups();
	two_rings(1, 2, _i == 0 ? 3 : 1);
	expect_open(100, 103);
	up(100);
	up(103);
	fx_commit(f, 1, 1, true, views, 2);
	expect_open(101, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_LINK_OPEN, 0)->n_streams, _i == 0 ? 3 : 1);
	up(101);
	expect_mesh(0, 8, true, 0);
	/* The link of the ring of group 7 is lost. It is opened at once, as a link of the mesh. */
	lose(100, false);
	expect_lost(0, 100, false);
	expect_open(100, 0);
	two_rings(2, 2, _i == 0 ? 3 : 1);
	expect_open(100, 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_LINK_OPEN, 0)->n_streams, 2);
}
END_TEST

START_TEST(links_of_a_mesh_close_with_its_ring)
{
	struct fx_ring two = {.group = 7, .hosts = 2, .world_size = 2, .n = 1, .members = {1}};

	mesh_of(&four);
	if (_i == 0) {
		again(2, &two, 1);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 2);
		ck_assert_uint_eq(fx_sent(f, WM_MESH), 0);
	} else { /* the last member of the group leaves, and the run stays open for another group */
		comms[1] = fx_create(f, 1, 8, 1);
		fx_connect(f, 1, comms[1], 2);
		fx_request(f, 1, comms[0], WL_COMM_DESTROY);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 3);
	}
}
END_TEST

START_TEST(mesh_cannot_lead_to_its_own_agent)
{
	struct wm_endpoint other = {.agent = fx_id(99)};
	struct wm_ring ring = {.group = 7,
		.hosts = 3,
		.pool_size = 1,
		.prev = fx_id(101),
		.n_others = 1,
		.others = &other};
	struct wm_msg m = {.type = WM_ROUND};

	one_group();
	ring.next.agent = fx_id(100);
	m.u.round = (struct wm_round){.round = 1, .n_rings = 1, .rings = &ring};
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* ---- the next master ---- */

START_TEST(next_master_learns_of_the_mesh_and_of_lost_links)
{
	size_t i, resumed = 0;

	mesh_of(&four);
	reopen(102);
	up(102);
	expect_mesh(0, 7, true, 1);
	fx_orphan(f);
	lose(102, true);
	lose(100, true); /* from the next host, to which this host has a link of the ring */
	lose(101, true);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 3);
	expect_lost(0, 101, true);
	expect_lost(1, 100, true);
	expect_lost(2, 102, true);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 7, true, 0); /* the new connection counts from the beginning */
	for (i = 0; i < f->acts.n; i++) {
		const struct agt_action *x = &f->acts.v[i];

		if (x->type == AGT_ACT_MASTER_SEND && x->u.msg.type == WM_RESUME)
			resumed = i;
		if (x->type == AGT_ACT_MASTER_SEND && x->u.msg.type == WM_MESH)
			ck_assert_uint_gt(i, resumed);
	}
	reopen(102);
	up(102);
	expect_mesh(0, 7, true, 1);
}
END_TEST

START_TEST(mesh_link_is_reopened_without_a_master)
{
	mesh_of(&four);
	fx_orphan(f);
	lose(102, false);
	expect_open(102, 0);
	if (_i == 1)
		up(102);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_MESH), 1);
	expect_mesh(0, 7, _i == 1, 0);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 0);
	if (_i == 1)
		return;
	up(102);
	expect_mesh(0, 7, true, 0);
}
END_TEST

/* ---- operations ---- */

static void start(uint64_t tag, uint64_t seq, enum cc_algo route)
{
	struct wm_msg m = {.type = WM_OP_START};

	m.u.op_start = (struct wm_op_start){
		.group = 7, .tag = tag, .seq = seq, .epoch = 1, .route = route};
	fx_from_master(f, 1, &m);
}

static void started(enum cc_algo route)
{
	fx_submit(f, comms[0], TAG, TAG, 8);
	start(TAG, 1, route);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}

static const struct fx_ring five = {
	.group = 7, .hosts = 5, .pos = 2, .world_size = 5, .n = 1, .members = {1}, .mesh = true};

/* The next host is 100, then come 102, 103 and 101. */
static void expect_agents(const struct agt_xfer *x)
{
	static const unsigned agents[5] = {103, 101, 0, 100, 102};
	uint32_t i;

	ck_assert_uint_eq(x->hosts, 5);
	ck_assert_uint_eq(x->pos, 2);
	for (i = 0; i < 5; i++)
		ck_assert(i == 2 ? cc_id_is_zero(&x->agents[i])
				 : fx_is(&x->agents[i], fx_id(agents[i])));
}

START_TEST(transfer_has_the_agents_in_ring_order)
{
	const struct agt_xfer *x;

	mesh_of(&five);
	started((enum cc_algo)_i);
	x = &fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer;
	ck_assert_uint_eq(x->route, (uint32_t)_i);
	ck_assert(fx_is(&x->next, fx_id(100)));
	ck_assert(fx_is(&x->prev, fx_id(101)));
	if (_i == CC_ALGO_RING)
		ck_assert_ptr_null(x->agents);
	else
		expect_agents(x);
}
END_TEST

/* A link of the mesh is down, lost at this end, or not opened at all. */
START_TEST(operation_does_not_start_without_its_mesh)
{
	static const struct {
		unsigned peer;
		bool inbound;
		unsigned suspect;
		const char *text;
	} cases[] = {
		{101, false, 101, "to another host"},
		{102, false, 102, "to another host"},
		{102, true, 102, "from another host"},
		/* The link to the next host is a link of the ring, and works. */
		{100, true, 0, "from the next host"},
		{101, true, 101, "from the previous host"},
	};
	const enum cc_algo route = _i % 2 == 0 ? CC_ALGO_DIRECT : CC_ALGO_TREE;
	const struct wm_op_report *r;

	mesh_of(&four);
	fx_submit(f, comms[0], TAG, TAG, 8);
	lose(cases[_i / 2].peer, cases[_i / 2].inbound);
	start(TAG, 1, route);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_SKIP, 0)->u.xfer.seq, 1);
	r = &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
	ck_assert(!r->ok);
	ck_assert_uint_eq(r->seq, 1);
	ck_assert_uint_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->text, cases[_i / 2].text));
	if (cases[_i / 2].suspect)
		ck_assert(fx_is(&r->suspect, fx_id(cases[_i / 2].suspect)));
	else
		ck_assert(cc_id_is_zero(&r->suspect));
}
END_TEST

/* The ring does not need these links. */
START_TEST(operation_along_the_ring_starts_without_a_mesh)
{
	mesh_of(&four);
	lose(101, false);
	lose(102, false);
	lose(100, true);
	lose(102, true);
	started(CC_ALGO_RING);
}
END_TEST

START_TEST(ring_without_other_hosts_has_only_one_route)
{
	struct fx_ring ring = four;

	ring.mesh = false;
	one_group();
	fx_accept(f, 1, 1, &ring, 1);
	fx_submit(f, comms[0], TAG, TAG, 8);
	start(TAG, 1, CC_ALGO_TREE);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
}
END_TEST

/* Two operations run, and one has ended here. A link that breaks fails both running operations, on
 * each route that uses the link. */
START_TEST(lost_link_fails_the_operations_that_use_it)
{
	static const struct {
		unsigned peer;
		bool inbound, in_ring;
	} links[] = {
		{100, false, true},
		{101, true, true},
		{100, true, false},
		{101, false, false},
		{102, false, false},
		{102, true, false},
	};
	const enum cc_algo route = (enum cc_algo)(_i % CC_ALGO_FIXED_COUNT);
	const unsigned peer = links[_i / CC_ALGO_FIXED_COUNT].peer;
	bool used = route != CC_ALGO_RING || links[_i / CC_ALGO_FIXED_COUNT].in_ring;
	const struct wm_op_report *r;
	uint64_t tag;

	mesh_of(&four);
	for (tag = 1; tag <= 3; tag++) {
		fx_submit(f, comms[0], (uint32_t)tag, tag, 8);
		start(tag, tag, route);
	}
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 2, 0);
	lose(peer, links[_i / CC_ALGO_FIXED_COUNT].inbound);
	ck_assert_uint_eq(fx_sent(f, WM_LINK_LOST), 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), used ? 2 : 0);
	for (tag = 1; used && tag <= 3; tag += 2) {
		r = &fx_msg(f, WM_OP_REPORT, (uint32_t)tag / 2)->u.op_report;
		ck_assert(!r->ok);
		ck_assert_uint_eq(r->seq, tag);
		ck_assert(fx_is(&r->suspect, fx_id(peer)));
	}
}
END_TEST

/* A link that no ring needs any more stays open until the transfer no longer uses it. */
START_TEST(transfer_keeps_the_links_of_its_mesh_open)
{
	struct fx_ring here = {.group = 7, .hosts = 1, .world_size = 2, .n = 1, .members = {1}};

	mesh_of(&four);
	started(CC_ALGO_DIRECT);
	fx_op_abort(f, 1, 7, TAG, 1);
	again(2, &here, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 1, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_LINK_CLOSE), 3);
}
END_TEST

START_TEST(vote_for_the_next_master_has_the_route)
{
	const struct wm_op_vote *v;

	mesh_of(&four);
	fx_submit(f, comms[0], 6, 6, 8); /* has not started */
	started((enum cc_algo)(_i / 2));
	if (_i % 2 == 1)
		fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->tag, 6);
	ck_assert_uint_eq(v->seq, 0);
	ck_assert_uint_eq(v->route, CC_ALGO_RING);
	v = &fx_msg(f, WM_OP_VOTE, 1)->u.op_vote;
	ck_assert_uint_eq(v->seq, 1);
	ck_assert_uint_eq(v->route, (uint32_t)(_i / 2));
}
END_TEST

/* ---- speculative starts ---- */

/* Completes operation 1. The master reserves number 2 with this route. */
static void reserved(enum cc_algo route)
{
	struct wm_msg m = {.type = WM_OP_DONE};
	const struct agt_xfer *x;

	started(CC_ALGO_RING);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 1, 0);
	m.u.op_done = (struct wm_op_done){.seq = 1, .next = 2, .next_route = route};
	fx_from_master(f, 1, &m);
	x = &fx_get(f, AGT_ACT_XFER_EXPECT, 0)->u.xfer;
	ck_assert_uint_eq(x->seq, 2);
	ck_assert_uint_eq(x->route, route);
	ck_assert(fx_is(&x->prev, fx_id(101)));
	if (route == CC_ALGO_RING)
		ck_assert_ptr_null(x->agents);
	else
		expect_agents(x);
}

START_TEST(speculative_start_takes_the_reserved_route)
{
	const struct agt_xfer *x;

	mesh_of(&five);
	reserved((enum cc_algo)_i);
	fx_submit(f, comms[0], TAG, TAG, 8);
	x = &fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer;
	ck_assert(x->spec);
	ck_assert_uint_eq(x->seq, 2);
	ck_assert_uint_eq(x->route, (uint32_t)_i);
	if (_i != CC_ALGO_RING)
		expect_agents(x);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 2);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.route, CC_ALGO_RING);
	if (_i == CC_ALGO_RING)
		return;
	/* A link of the mesh breaks. The master starts the operation along the ring. */
	lose(103, false);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 2);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	start(TAG, 3, CC_ALGO_RING);
	x = &fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer;
	ck_assert(!x->spec);
	ck_assert_uint_eq(x->route, CC_ALGO_RING);
	ck_assert_ptr_null(x->agents);
	lose(103, true);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
}
END_TEST

START_TEST(no_speculative_start_without_its_mesh)
{
	const struct wm_op_vote *v;

	mesh_of(&five);
	reserved(CC_ALGO_TREE);
	lose(103, _i == 1);
	fx_submit(f, comms[0], TAG, TAG, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 2);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->spec_seq, 0);
	ck_assert_uint_eq(v->route, CC_ALGO_RING);
	start(TAG, 3, CC_ALGO_RING);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 1);
}
END_TEST

Suite *mesh_suite(void)
{
	Suite *s = suite_create("mesh");
	TCase *t = tcase_create("links");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, links_to_all_others_are_opened_after_the_commit);
	tcase_add_test(t, mesh_is_reported_when_all_links_are_up);
	tcase_add_loop_test(t, ring_without_other_hosts_has_no_mesh, 0, 2);
	tcase_add_loop_test(t, mesh_is_not_reported_during_a_round, 0, 2);
	tcase_add_test(t, mesh_is_reported_after_a_round_that_was_dropped);
	tcase_add_test(t, lost_mesh_link_is_reported_and_reopened);
	tcase_add_test(t, lost_link_of_the_ring_is_no_break_of_the_mesh);
	tcase_add_loop_test(t, lost_inbound_mesh_link_is_only_reported, 0, 2);
	tcase_add_test(t, failed_mesh_link_is_opened_with_the_next_ring);
	tcase_add_loop_test(t, round_opens_its_link_without_a_probe, 0, 2);
	tcase_add_test(t, mesh_link_that_is_being_opened_uses_the_newest_proof);
	tcase_add_test(t, master_has_a_mesh_link_reopened);
	tcase_add_loop_test(t, mesh_that_broke_too_often_is_not_reported_as_up, 0, 2);
	tcase_add_test(t, break_that_both_ends_notice_counts_once);
	tcase_add_test(t, link_that_is_being_opened_is_not_reopened);
	tcase_add_test(t, all_meshes_are_reported_after_a_reopen);
	tcase_add_test(t, reopened_link_of_two_meshes_is_opened_once);
	tcase_add_test(t, reopen_without_a_ring_has_no_effect);
	tcase_add_loop_test(t, mesh_keeps_a_link_of_a_ring_whatever_its_streams_are, 0, 2);
	tcase_add_loop_test(t, links_of_a_mesh_close_with_its_ring, 0, 2);
	tcase_add_test(t, mesh_cannot_lead_to_its_own_agent);
	tcase_add_test(t, next_master_learns_of_the_mesh_and_of_lost_links);
	tcase_add_loop_test(t, mesh_link_is_reopened_without_a_master, 0, 2);
	suite_add_tcase(s, t);
	t = tcase_create("operations");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, transfer_has_the_agents_in_ring_order, 0, CC_ALGO_FIXED_COUNT);
	tcase_add_loop_test(t, operation_does_not_start_without_its_mesh, 0, 10);
	tcase_add_test(t, operation_along_the_ring_starts_without_a_mesh);
	tcase_add_test(t, ring_without_other_hosts_has_only_one_route);
	tcase_add_loop_test(
		t, lost_link_fails_the_operations_that_use_it, 0, 6 * CC_ALGO_FIXED_COUNT);
	tcase_add_test(t, transfer_keeps_the_links_of_its_mesh_open);
	tcase_add_loop_test(t, vote_for_the_next_master_has_the_route, 0, 2 * CC_ALGO_FIXED_COUNT);
	tcase_add_loop_test(t, speculative_start_takes_the_reserved_route, 0, CC_ALGO_FIXED_COUNT);
	tcase_add_loop_test(t, no_speculative_start_without_its_mesh, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
