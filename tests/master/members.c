/* SPDX-License-Identifier: MIT
 *
 * The master's core: connections, joining, votes, leaving.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static struct fk f;

static void setup(void)
{
	fk_init(&f, NULL);
}

static void teardown(void)
{
	fk_free(&f);
}

START_TEST(the_first_message_must_be_a_hello)
{
	struct fk_host *h = fk_connect(&f, "a", "10.0.0.1");

	(void)fk_join(h, 0);
	assert_contains(fk_take(h, WM_REFUSE)->u.refuse.text, "hello");
	ck_assert(!h->open);
	ck_assert_uint_eq(fk_status(&f).agents, 0);
}
END_TEST

START_TEST(a_version_mismatch_names_both_sides)
{
	struct fk_host *h = fk_connect(&f, "a", "10.0.0.1");
	struct wm_msg msg = fk_hello(h);
	const struct wm_msg *r;

	msg.u.hello.version_min = 4;
	msg.u.hello.version_max = 5;
	fk_send(h, &msg);
	r = fk_take(h, WM_REFUSE);
	ck_assert_uint_eq(r->u.refuse.code, WIRE_VERSION_MISMATCH);
	ck_assert_uint_eq(r->u.refuse.version_max, WM_VERSION_MAX);
	assert_contains(r->u.refuse.text, "agent speaks 4 to 5, this master 3 to 3");
	ck_assert(!h->open);
}
END_TEST

START_TEST(the_hello_is_answered_with_the_run)
{
	struct fk_host *h = fk_connect(&f, "a", "10.0.0.1");
	struct wm_msg msg = fk_hello(h);
	const struct wm_hello_ack *ack;

	msg.u.hello.version_max = 9;
	msg.u.hello.features = UINT64_MAX;
	fk_send(h, &msg);
	ack = &fk_take(h, WM_HELLO_ACK)->u.hello_ack;
	ck_assert_uint_eq(ack->version, WM_VERSION_MAX);
	ck_assert_uint_eq(ack->features, WM_FEATURES); /* the features of both sides */
	ck_assert_uint_eq(ack->run.b[0], 1);
	ck_assert_uint_eq(ack->heartbeat_ms, 500);
	ck_assert_uint_eq(ack->timeout_ms, 2800);
	ck_assert_uint_eq(ack->segment_max, 4096);
}
END_TEST

START_TEST(a_second_hello_is_a_violation)
{
	struct fk_host *h = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(h, 0);
	struct wm_msg msg = fk_hello(h);

	fk_send(h, &msg);
	assert_contains(fk_take(h, WM_KICK)->u.kick.text, "second hello");
	assert_contains(h->closed, "second hello");
	ck_assert(!fk_present(&p));
}
END_TEST

START_TEST(the_first_peer_is_accepted_at_once)
{
	struct fk_host *h = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(h, 5);
	struct ccm_peer_info info;
	const struct wm_msg *r;

	r = fk_take(h, WM_ROUND);
	ck_assert(r->u.round.accept);
	ck_assert_uint_eq(r->u.round.n_rings, 1);
	ck_assert_uint_eq(r->u.round.rings[0].group, 5);
	ck_assert_uint_eq(r->u.round.rings[0].hosts, 1);
	ck_assert_uint_eq(r->u.round.rings[0].n_members, 1);
	ck_assert(cc_id_eq(&r->u.round.rings[0].members[0], &p.id));
	r = fk_take(h, WM_COMMIT);
	ck_assert(r->u.commit.accept);
	ck_assert_uint_eq(r->u.commit.epoch, 1);
	ck_assert_uint_eq(r->u.commit.view.global, 1);
	info = fk_info(&p);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(info.state, CCM_IDLE);
	ck_assert_int_eq(info.rank, 0);
}
END_TEST

START_TEST(later_peers_wait_for_the_vote_of_all)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q, r;
	struct ccm_peer_info info;

	q = fk_join(b, 1);
	r = fk_join(b, 0);
	info = fk_info(&q);
	ck_assert_int_eq(info.phase, CCM_PEER_REGISTERED);
	ck_assert_int_eq(info.rank, -1);
	ck_assert_uint_eq(b->n, 0);
	fk_topo(&p);
	info = fk_info(&q);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	info = fk_info(&r);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(info.rank, 1);
	ck_assert_uint_eq(fk_take(b, WM_COMMIT)->u.commit.epoch, 2);

	/* The next ballot needs the votes of the peers of all groups. */
	fk_forget(&f);
	fk_topo(&p);
	fk_topo(&r);
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 0);
	info = fk_info(&p);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(info.state, CCM_VOTE_ACCEPT_NEW_PEERS);
	fk_topo(&q);
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 1);
}
END_TEST

START_TEST(a_vote_with_nothing_to_change_is_committed_at_once)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0);
	const struct wm_commit *c;
	uint64_t round = fk_status(&f).round;

	fk_forget(&f);
	fk_topo(&p);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 0);
	c = &fk_take(a, WM_COMMIT)->u.commit;
	ck_assert_uint_eq(c->epoch, 1);
	ck_assert(c->accept);
	ck_assert_uint_gt(c->round, round);
	fk_topo(&p);
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 1);
}
END_TEST

START_TEST(leave_may_complete_a_ballot)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1), r = fk_join(a, 0);
	struct ccm_peer_info info;

	fk_topo(&p);
	fk_forget(&f);
	fk_leave(&q, WM_LEAVE_DIED);
	ck_assert(fk_take(a, WM_ROUND)->u.round.accept);
	info = fk_info(&r);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert(fk_take(a, WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(b->n, 0);
}
END_TEST

START_TEST(world_sizes_are_exact)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p[5];
	const struct wm_view *w;
	size_t i;

	p[0] = fk_join(a, 7);
	p[1] = fk_join(a, 3);
	p[2] = fk_join(b, 3);
	p[3] = fk_join(b, 3);
	fk_forget(&f);
	fk_topo(&p[0]);
	w = &fk_take(a, WM_COMMIT)->u.commit.view;
	ck_assert_uint_eq(w->global, 4);
	ck_assert_uint_eq(w->groups, 2);
	ck_assert_uint_eq(w->largest, 3);
	ck_assert_uint_eq(w->n, 2);
	ck_assert_uint_eq(w->own[0].group, 7);
	ck_assert_uint_eq(w->own[0].world_size, 1);
	ck_assert_uint_eq(w->own[1].group, 3);
	ck_assert_uint_eq(w->own[1].world_size, 3);
	w = &fk_take(b, WM_COMMIT)->u.commit.view;
	ck_assert_uint_eq(w->n, 1);

	fk_leave(&p[0], WM_LEAVE_CLEAN);
	w = &fk_take(b, WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 3);
	ck_assert_uint_eq(w->groups, 1);
	for (i = 1; i < 4; i++)
		fk_leave(&p[i], WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_status(&f).groups, 0);
}
END_TEST

/* Checks a view of h: whether it has the whole list, its length, and its last peer. */
static void names_lost(struct fk_host *h, bool all, uint32_t n, const struct fk_peer *last)
{
	const struct wm_view *w = &fk_take(h, WM_VIEW)->u.view;

	ck_assert_int_eq(w->lost_all, all);
	ck_assert_uint_eq(w->n_lost, n);
	ck_assert(cc_id_eq(&w->lost[n - 1], &last->id));
}

START_TEST(views_name_each_lost_peer_once)
{
	struct fk_host *h[3], *back;
	struct fk_peer p[3], more;
	const struct wm_commit *c;

	fk_run_of(&f, h, p, 3);
	more = fk_admit(h[1], 0, p, 3);
	fk_forget(&f);
	fk_leave(&p[1], WM_LEAVE_DIED);
	names_lost(h[0], false, 1, &p[1]);
	fk_leave(&more, WM_LEAVE_CLEAN);
	names_lost(h[0], false, 1, &more);
	/* A new connection gets the whole list. */
	fk_cut(h[2], "cable");
	back = fk_reconnect(h[2]);
	p[2] = fk_join_again(&p[2], back, WM_JOIN_ACCEPTED);
	fk_resumed(back);
	names_lost(back, true, 2, &more);
	/* So does a newcomer. */
	h[1] = fk_host(&f, "d", "10.0.0.4");
	fk_join(h[1], 0);
	fk_topo(&p[0]);
	fk_topo(&p[2]);
	c = &fk_take(h[1], WM_COMMIT)->u.commit;
	ck_assert(c->view.lost_all && c->view.lost_floor == 0);
	ck_assert_uint_eq(c->view.n_lost, 2);
}
END_TEST

START_TEST(a_long_list_of_lost_peers_is_cut)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), last = p;
	const struct wm_view *w;
	uint32_t i;

	for (i = 0; i < WM_LOST_MAX + 2; i++)
		last = fk_join(b, 0);
	fk_topo(&p);
	fk_forget(&f);
	fk_close(b, "power");
	w = &fk_take(a, WM_VIEW)->u.view;
	ck_assert(w->lost_all);
	ck_assert_uint_eq(w->n_lost, WM_LOST_MAX);
	ck_assert_uint_eq(w->lost_floor, w->view_id); /* an older view misses some of them */
	ck_assert(cc_id_eq(&w->lost[WM_LOST_MAX - 1], &last.id));
}
END_TEST

START_TEST(a_run_without_peers_goes_on)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_join(b, 0);
	struct ccm_peer_info info;

	/* The last accepted peer leaves, so the waiting peer is accepted. */
	fk_leave(&p, WM_LEAVE_CLEAN);
	info = fk_info(&q);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	fk_leave(&q, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	p = fk_join(a, 0);
	info = fk_info(&p);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	ck_assert_uint_eq(fk_status(&f).epoch, 3);
	ck_assert_uint_eq(fk_status(&f).leaves, 2);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
}
END_TEST

START_TEST(leaves_and_losses_are_counted_apart)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p[5], waiting;
	uint64_t i;

	p[0] = fk_join(a, 0);
	for (i = 1; i < 5; i++)
		p[i] = fk_admit(i == 4 ? b : a, 0, p, i);
	waiting = fk_join(a, 0);
	fk_leave(&waiting, WM_LEAVE_CLEAN); /* this peer was not a member yet */
	ck_assert_uint_eq(fk_status(&f).leaves, 0);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_status(&f).leaves, 1);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
	fk_leave(&p[2], WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_status(&f).lost_members, 1);
	fk_topo(&p[3]);
	fk_topo(&p[3]); /* p[3] votes twice and is kicked */
	ck_assert_uint_eq(fk_status(&f).kicks, 1);
	ck_assert_uint_eq(fk_status(&f).lost_members, 2);
	fk_close(b, "reset");
	ck_assert_uint_eq(fk_status(&f).lost_members, 3);
	ck_assert_uint_eq(fk_status(&f).leaves, 1);
	ck_assert_uint_eq(fk_status(&f).accepted, 1);
}
END_TEST

START_TEST(joins_beyond_max_peers_are_refused)
{
	struct ccm_config cfg = {.max_peers = 2};
	struct fk_host *a;
	struct fk_peer p;

	fk_free(&f);
	fk_init(&f, &cfg);
	a = fk_host(&f, "a", "10.0.0.1");
	(void)fk_join(a, 0);
	(void)fk_join(a, 0);
	p = fk_join(a, 0);
	ck_assert(!fk_present(&p));
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "2 peers");
	ck_assert_uint_eq(fk_status(&f).joins, 2);
}
END_TEST

START_TEST(a_join_of_a_present_peer_kicks_it)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0);
	struct wm_msg msg = {.type = WM_JOIN};
	struct ccm_peer_info info;

	/* A join by another agent does not harm the peer. */
	msg.u.join.peer = p.id;
	msg.u.join.pool_size = 1;
	fk_send(b, &msg);
	assert_contains(fk_take(b, WM_KICK)->u.kick.text, "in use");
	info = fk_info(&p);
	ck_assert_int_eq(info.phase, CCM_PEER_ACCEPTED);
	fk_send(a, &msg);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "second time");
	ck_assert(!fk_present(&p));
}
END_TEST

START_TEST(agent_has_only_one_connection)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_connect(&f, "a", "127.0.0.1");
	struct wm_msg msg = fk_hello(a);
	struct fk_peer p = fk_join(a, 0), q;

	fk_send(b, &msg);
	(void)fk_take(b, WM_HELLO_ACK);
	q = fk_join(b, 0);
	ck_assert(fk_present(&q));
	ck_assert(!fk_present(&p));
	ck_assert_str_ne(a->closed, "");
}
END_TEST

START_TEST(votes_of_a_registered_peer_are_violations)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer q;

	(void)fk_join(a, 0);
	q = fk_join(a, 0);
	fk_topo(&q);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "PEER_REGISTERED");
	q = fk_join(a, 0);
	fk_pending(&q);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "before it was accepted");
	q = fk_join(a, 0);
	fk_vote(&q, 1);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "before it was accepted");
	ck_assert_uint_eq(fk_status(&f).kicks, 3);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
	ck_assert(a->open);
}
END_TEST

START_TEST(voting_twice_is_a_violation)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(a, 0, &p, 1), r;

	fk_topo(&p);
	fk_topo(&p);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "topology vote twice");
	r = fk_admit(a, 0, &q, 1);
	fk_pending(&r);
	fk_pending(&r);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "pending peers twice");
	ck_assert(!fk_present(&r));
	ck_assert(fk_present(&q));
}
END_TEST

START_TEST(a_topology_vote_with_an_operation_outstanding_is_a_violation)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(a, 0, &p, 1);

	fk_vote(&q, 1);
	fk_topo(&q);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "1 operations outstanding");
}
END_TEST

START_TEST(use_of_another_agents_peer_closes_the_connection)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b;
	struct fk_peer p = fk_join(a, 0), forged;
	int i;

	for (i = 0; i < 4; i++) {
		b = fk_host(&f, "b", "10.0.0.2");
		forged = p;
		forged.host = b;
		if (i == 0)
			fk_topo(&forged);
		else if (i == 1)
			fk_pending(&forged);
		else if (i == 2)
			fk_leave(&forged, WM_LEAVE_DIED);
		else
			fk_vote(&forged, 1);
		assert_contains(b->closed, "another agent's peer");
		ck_assert(fk_present(&p));
		ck_assert(a->open);
	}
}
END_TEST

START_TEST(messages_about_unknown_peers_are_ignored)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = {.host = a, .id = fk_id(&f)};

	fk_topo(&p);
	fk_pending(&p);
	fk_vote(&p, 1);
	fk_leave(&p, WM_LEAVE_CLEAN);
	ck_assert(a->open);
	ck_assert_uint_eq(a->n, 0);
}
END_TEST

START_TEST(messages_of_a_master_are_violations)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0);
	struct wm_msg msg = {.type = WM_OP_DONE};

	fk_send(a, &msg);
	assert_contains(a->closed, "only a master");
	ck_assert_uint_eq(fk_count(a, WM_KICK), 1);
	ck_assert(!fk_present(&p));
}
END_TEST

START_TEST(reason_of_an_agent_that_ends_is_in_the_abort)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1);
	struct wm_msg msg = {.type = WM_REFUSE};

	fk_vote(&p, 1);
	strcpy(msg.u.refuse.text, "shutting\ndown");
	fk_send(b, &msg);
	ck_assert(!b->open);
	ck_assert(!fk_present(&q));
	assert_contains(fk_take(a, WM_OP_ABORT)->u.op_abort.text, "shutting?down");
}
END_TEST

START_TEST(silent_agent_is_closed)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1);

	fk_forget(&f);
	fk_tick_silent(&f, 2700, b);
	ck_assert(b->open);
	ck_assert_uint_ge(fk_count(a, WM_HEARTBEAT), 4);
	ck_assert_uint_le(fk_count(a, WM_HEARTBEAT), 7);
	fk_tick_silent(&f, 300, b);
	ck_assert(!b->open);
	assert_contains(b->closed, "the agent on b has been silent for 2.9 s, bound 2.8 s");
	assert_contains(fk_take(b, WM_KICK)->u.kick.text, "silent for 2.9 s");
	ck_assert(!fk_present(&q));
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.global, 1);
	ck_assert(a->open);
}
END_TEST

/* The daemon limits such lines: anyone can connect and name thousands of newcomers. */
START_TEST(lines_about_silent_newcomers_are_about_a_stranger)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0);
	uint32_t lines;

	ck_assert(fk_present(&p));
	(void)fk_join(b, 0);
	(void)fk_join(b, 0);
	lines = f.lines - f.strangers;
	fk_tick_silent(&f, 3000, b);
	ck_assert(!b->open);
	ck_assert_uint_ge(f.strangers, 3); /* the agent and both newcomers */
	ck_assert_uint_eq(f.lines - f.strangers, lines);
	lines = f.strangers;
	fk_tick_silent(&f, 3000, a);
	ck_assert(!a->open);
	ck_assert_uint_eq(f.strangers, lines);
}
END_TEST

START_TEST(agent_with_regular_heartbeats_is_closed_sooner)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	const struct wm_msg beat = {.type = WM_HEARTBEAT};

	(void)fk_host(&f, "b", "10.0.0.2");
	(void)fk_join(a, 0);
	for (int i = 0; i < 20; i++) {
		fk_tick_silent(&f, 500, a);
		fk_send(a, &beat);
	}
	fk_tick_silent(&f, 2000, a);
	ck_assert(a->open);
	fk_tick_silent(&f, 100, a);
	ck_assert(!a->open);
	assert_contains(a->closed, "silent for 2.1 s, bound 2.0 s");
}
END_TEST

/* The timeout of the operator also sets the heartbeat interval. An agent that sent regular
 * heartbeats is lost after four intervals without a heartbeat, but at the earliest after one
 * second, or after the timeout if that is less than a second. */
static const struct {
	uint32_t timeout_ms, heartbeat_ms, least_ms;
	const char *stranger, *regular;
} patience[] = {
	{5600, 1000, 4000, "silent for 5.7 s, bound 5.6 s", "silent for 4.1 s, bound 4.0 s"},
	{1120, 200, 1000, "silent for 1.2 s, bound 1.1 s", "silent for 1.1 s, bound 1.0 s"},
	{500, 89, 500, "silent for 0.6 s, bound 0.5 s", "silent for 0.6 s, bound 0.5 s"},
	{600000, 107142, 428568, "silent for 600.1 s, bound 600.0 s",
		"silent for 428.6 s, bound 428.6 s"},
};

/* Checks that h is closed after this time of silence, and not before. */
static void fall_silent(struct fk_host *h, uint32_t ms, const char *told)
{
	fk_tick_silent(&f, ms - ms % 100, h);
	ck_assert(h->open);
	fk_tick_silent(&f, 100, h);
	ck_assert(!h->open);
	assert_contains(h->closed, told);
}

START_TEST(timeout_of_the_operator_sets_the_bounds)
{
	struct ccm_config cfg = {.timeout_ms = patience[_i].timeout_ms};
	uint32_t beat_ms = patience[_i].heartbeat_ms;
	const struct wm_msg beat = {.type = WM_HEARTBEAT};
	const struct wm_hello_ack *ack;
	struct fk_host *a;
	struct wm_msg hello;

	fk_free(&f);
	fk_init(&f, &cfg);
	ck_assert_uint_eq(ccm_tick_ms(f.m), beat_ms / 2);
	a = fk_connect(&f, "a", "10.0.0.1");
	hello = fk_hello(a);
	fk_send(a, &hello);
	ack = &fk_take(a, WM_HELLO_ACK)->u.hello_ack;
	ck_assert_uint_eq(ack->heartbeat_ms, beat_ms);
	ck_assert_uint_eq(ack->timeout_ms, cfg.timeout_ms);
	fall_silent(a, cfg.timeout_ms, patience[_i].stranger);
	a = fk_host(&f, "b", "10.0.0.2");
	for (int i = 0; i < 20; i++) {
		fk_tick_silent(&f, beat_ms, a);
		fk_send(a, &beat);
	}
	fall_silent(a, patience[_i].least_ms, patience[_i].regular);
}
END_TEST

START_TEST(a_connection_without_hello_ends)
{
	struct fk_host *a = fk_connect(&f, "a", "10.0.0.1");

	fk_tick_silent(&f, 3200, a);
	ck_assert(!a->open);
	assert_contains(a->closed, "no hello");
	ck_assert_uint_eq(fk_count(a, WM_HEARTBEAT), 0);
}
END_TEST

START_TEST(a_suspended_master_suspects_nobody)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0);

	fk_tick(&f, 300);
	a->auto_report = false;
	(void)fk_join(a, 0);
	fk_topo(&p);
	ck_assert(fk_status(&f).round_active);
	f.now += 1000000000;
	fk_tick_silent(&f, 300, a);
	ck_assert(a->open);
	ck_assert(fk_present(&p));
	assert_contains(f.log, "suspended for 1.");
}
END_TEST

START_TEST(pending_is_answered_when_all_have_asked)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 1, &p, 1), r;

	r = fk_admit(b, 1, (struct fk_peer[]){p, q}, 2);
	fk_forget(&f);
	fk_pending(&p);
	fk_pending(&q);
	ck_assert_uint_eq(a->n, 0);
	fk_pending(&r);
	ck_assert_uint_eq(fk_take(a, WM_BALLOT_END)->u.ballot_end.number, 2);
	ck_assert_uint_eq(fk_count(b, WM_BALLOT_END), 1);

	fk_pending(&p);
	(void)fk_join(a, 0);
	fk_pending(&q);
	fk_forget(&f);
	fk_leave(&r, WM_LEAVE_CLEAN);
	ck_assert_uint_eq(fk_take(a, WM_BALLOT_END)->u.ballot_end.number, 5);
	ck_assert_uint_eq(fk_take(b, WM_BALLOT_END)->u.ballot_end.number, 5);
}
END_TEST

START_TEST(pending_may_be_asked_with_operations_in_flight)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1);

	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_forget(&f);
	fk_pending(&p);
	fk_pending(&q);
	ck_assert_uint_eq(fk_count(a, WM_BALLOT_END), 1);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(optimization_ends_when_all_have_voted_and_admits_nobody)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1);
	const struct wm_ballot_end *x;

	(void)fk_join(a, 0);
	fk_forget(&f);
	fk_ballot(&p, WIRE_OPTIMIZE);
	ck_assert_int_eq(fk_info(&p).state, CCM_VOTE_OPTIMIZE_TOPOLOGY);
	ck_assert_uint_eq(a->n, 0);
	fk_ballot(&q, WIRE_OPTIMIZE);
	x = &fk_take(a, WM_BALLOT_END)->u.ballot_end;
	ck_assert(x->kind == WIRE_OPTIMIZE && x->number == 3);
	ck_assert_uint_eq(fk_count(b, WM_BALLOT_END), 1);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 0);
	ck_assert_uint_eq(fk_status(&f).accepted, 2);
	ck_assert_int_eq(fk_info(&p).state, CCM_IDLE);
}
END_TEST

START_TEST(vote_on_optimization_with_an_operation_outstanding_is_a_violation)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(a, 0, &p, 1);

	fk_vote(&q, 1);
	fk_ballot(&q, WIRE_OPTIMIZE);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text,
		"a vote on optimization with 1 operations outstanding");
	ck_assert(!fk_present(&q));
}
END_TEST

START_TEST(status_says_what_the_run_waits_for)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0), q = fk_admit(b, 0, &p, 1), r;

	r = fk_admit(b, 0, (struct fk_peer[]){p, q}, 2);
	ck_assert_str_eq(fk_waiting(&f), "");
	fk_topo(&p);
	f.now += 3200000000;
	assert_contains(fk_waiting(&f), "waiting for 2 of 3 peers to call "
					"pcclUpdateTopology (3.2 s so far): train@b pid 1");
	b->auto_report = false;
	(void)fk_join(b, 0);
	fk_topo(&q);
	fk_topo(&r);
	assert_contains(fk_waiting(&f), "1 of 2 agents to report on connection round");
	assert_contains(fk_waiting(&f), ": b");
	ck_assert(fk_status(&f).round_active);
	ck_assert(fk_status(&f).round_accepts);
	fk_round_report(b, NULL, NULL);
	ck_assert_str_eq(fk_waiting(&f), "");
	fk_pending(&p);
	assert_contains(fk_waiting(&f), "3 of 4 peers to call pcclArePeersPending");
}
END_TEST

START_TEST(peers_of_one_host_membership_are_limited)
{
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1");
	struct fk_peer p;
	int i;

	f.quiet = true;
	for (i = 0; i < WM_PEERS_MAX; i++)
		(void)fk_join(a, 0);
	f.quiet = false;
	p = fk_join(a, 0);
	ck_assert(!fk_present(&p));
	assert_contains(fk_take(a, WM_KICK)->u.kick.text, "1024 peers in group 0");
	p = fk_join(a, 1);
	ck_assert(fk_present(&p));
}
END_TEST

/* A program waits in one such call at a time. */
START_TEST(two_exclusive_votes_are_a_violation)
{
	static const enum wire_ballot kinds[] = {WIRE_TOPOLOGY, WIRE_OPTIMIZE};
	struct fk_host *a = fk_host(&f, "a", "10.0.0.1"), *b = fk_host(&f, "b", "10.0.0.2");
	struct fk_peer p = fk_join(a, 0);

	(void)fk_admit(b, 0, &p, 1);
	fk_forget(&f);
	fk_ballot(&p, kinds[_i]);
	fk_pending(&p); /* not exclusive */
	ck_assert(fk_present(&p));
	fk_ballot(&p, kinds[1 - _i]);
	assert_contains(fk_take(a, WM_KICK)->u.kick.text,
		_i == 0 ? "a vote on optimization while it waited in a topology vote"
			: "a topology vote while it waited in a vote on optimization");
}
END_TEST

Suite *members_suite(void)
{
	Suite *s = suite_create("members");
	TCase *tc = tcase_create("members");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_first_message_must_be_a_hello);
	tcase_add_test(tc, a_version_mismatch_names_both_sides);
	tcase_add_test(tc, the_hello_is_answered_with_the_run);
	tcase_add_test(tc, a_second_hello_is_a_violation);
	tcase_add_test(tc, the_first_peer_is_accepted_at_once);
	tcase_add_test(tc, later_peers_wait_for_the_vote_of_all);
	tcase_add_test(tc, a_vote_with_nothing_to_change_is_committed_at_once);
	tcase_add_test(tc, leave_may_complete_a_ballot);
	tcase_add_test(tc, world_sizes_are_exact);
	tcase_add_test(tc, views_name_each_lost_peer_once);
	tcase_add_test(tc, a_long_list_of_lost_peers_is_cut);
	tcase_add_test(tc, a_run_without_peers_goes_on);
	tcase_add_test(tc, leaves_and_losses_are_counted_apart);
	tcase_add_test(tc, joins_beyond_max_peers_are_refused);
	tcase_add_test(tc, a_join_of_a_present_peer_kicks_it);
	tcase_add_test(tc, agent_has_only_one_connection);
	tcase_add_test(tc, votes_of_a_registered_peer_are_violations);
	tcase_add_test(tc, voting_twice_is_a_violation);
	tcase_add_test(tc, a_topology_vote_with_an_operation_outstanding_is_a_violation);
	tcase_add_test(tc, use_of_another_agents_peer_closes_the_connection);
	tcase_add_test(tc, messages_about_unknown_peers_are_ignored);
	tcase_add_test(tc, messages_of_a_master_are_violations);
	tcase_add_test(tc, reason_of_an_agent_that_ends_is_in_the_abort);
	tcase_add_test(tc, silent_agent_is_closed);
	tcase_add_test(tc, lines_about_silent_newcomers_are_about_a_stranger);
	tcase_add_test(tc, agent_with_regular_heartbeats_is_closed_sooner);
	tcase_add_loop_test(tc, timeout_of_the_operator_sets_the_bounds, 0,
		sizeof patience / sizeof patience[0]);
	tcase_add_test(tc, a_connection_without_hello_ends);
	tcase_add_test(tc, a_suspended_master_suspects_nobody);
	tcase_add_test(tc, pending_is_answered_when_all_have_asked);
	tcase_add_test(tc, pending_may_be_asked_with_operations_in_flight);
	tcase_add_test(tc, optimization_ends_when_all_have_voted_and_admits_nobody);
	tcase_add_test(tc, vote_on_optimization_with_an_operation_outstanding_is_a_violation);
	tcase_add_loop_test(tc, two_exclusive_votes_are_a_violation, 0, 2);
	tcase_add_test(tc, status_says_what_the_run_waits_for);
	tcase_add_test(tc, peers_of_one_host_membership_are_limited);
	suite_add_tcase(s, tc);
	return s;
}
