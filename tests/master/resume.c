/* SPDX-License-Identifier: MIT
 *
 * The master's core takes over a run from a master that died: how agents connect, and which peers
 * belong to the run afterwards.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

START_TEST(takeover_with_all_agents_causes_no_error)
{
	const struct wm_hello_ack *ack;
	const struct wm_view *w;

	tk_come_back(2);
	ack = &fk_take(tk.h[2], WM_HELLO_ACK)->u.hello_ack;
	ck_assert(ack->resume);
	ck_assert(cc_id_eq(&ack->run, &tk.f.run));
	ck_assert_uint_eq(ack->term, 2);
	tk_end(2);
	tk_come_back(0);
	tk_end(0);
	ck_assert(fk_status(&tk.f).recovering);
	ck_assert_uint_eq(tk.h[0]->n, 1);
	tk_come_back(1);
	ck_assert(fk_status(&tk.f).recovering);
	tk_end(1);
	ck_assert(!fk_status(&tk.f).recovering);
	tk_no_error();
	w = &fk_take(tk.h[0], WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 3);
	ck_assert_uint_gt(w->view_id, 2);
	ck_assert_uint_eq(w->own[0].generation, 0);
	/* The ring is the old one, whatever the order in which the agents came. */
	ck_assert_int_eq(fk_info(&tk.p[0]).rank, 0);
	ck_assert_int_eq(fk_info(&tk.p[1]).rank, 1);
	ck_assert_int_eq(fk_info(&tk.p[2]).rank, 2);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_ROUND)->u.round.round, 2);
	ck_assert_uint_ge(fk_take(tk.h[0], WM_COMMIT)->u.commit.epoch, 2);
	tk_works();
	tk_no_error();
}
END_TEST

START_TEST(member_that_does_not_come_back_is_lost)
{
	const struct wm_view *w;

	tk_come_back(0);
	tk_come_back(2);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[2], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	tk_end(0);
	tk_end(2);
	fk_tick(&tk.f, 2900);
	ck_assert(fk_status(&tk.f).recovering);
	assert_contains(fk_waiting(&tk.f), "recovering: waiting for 1 of 3 peers");
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	w = &fk_take(tk.h[0], WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 2);
	ck_assert_uint_eq(w->own[0].generation, 1);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_ROUND)->u.round.rings[0].hosts, 2);
	/* b comes too late. */
	tk_come_back(1);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	fk_vote(&tk.p[0], 2);
	fk_vote(&tk.p[2], 2);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 1);
}
END_TEST

/* The only agent that came fell silent before it sent its snapshot. So the master began with
 * numbers of its own. When the agent comes again, the old numbers are far higher. */
START_TEST(master_counts_from_the_numbers_of_a_late_agent)
{
	const struct wm_op_start *s;
	struct fk_peer v[2];

	tk_connect(0);
	fk_tick_silent(&tk.f, 3200, tk.h[0]);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 0);
	tk.h[3] = fk_host(&tk.f, "d", "10.0.0.4");
	v[0] = fk_join(tk.h[3], 0);
	tk.know[0].r.epoch = tk.know[0].r.last_seq = UINT64_C(1) << 50;
	tk_come_back(0);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	v[1] = fk_join(tk.h[0], 0);
	tk_end(0);
	fk_topo(&v[0]);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_COMMIT)->u.commit.epoch, UINT64_C(1) << 50);
	fk_vote(&v[0], 1);
	fk_vote(&v[1], 1);
	s = &fk_take(tk.h[0], WM_OP_START)->u.op_start;
	ck_assert_uint_eq(s->epoch, tk.h[0]->epoch);
	ck_assert_uint_gt(s->seq, UINT64_C(1) << 50);
}
END_TEST

/* h[i]'s agent knows that p was lost, and later rounds than the others. */
static void lost_since(size_t i, const struct fk_peer *p)
{
	struct wm_resume *r = &tk.know[i].r;

	tk_lost(i, (size_t)(p - tk.p));
	r->epoch = r->round = r->ring_epoch = 3;
}

/* The last master had sent a view to a's agent alone, and died together with this agent. So a's
 * peer knows of a change that nobody else knows. With _i == 1, a newcomer on a's host connected
 * before this peer, so the connection was not opened for the old run. */
START_TEST(peer_that_knows_a_later_view_than_all_agents_joins_again)
{
	if (_i == 0) {
		tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	} else {
		tk_come_back(1);
		tk.h[0] = fk_host(&tk.f, "a", "10.0.0.1");
		fk_join(tk.h[0], 0);
	}
	tk.h[0]->peers.view_id = 3;
	tk.h[0]->peers.global = 1;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.own.group = 9};
	if (_i == 0)
		tk_come_back(1);
	tk_come_back(2);
	tk_all_end();
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(!fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && fk_present(&tk.p[2]));
}
END_TEST

/* A newcomer on a's host connected before a's peer, so the connection was not opened for the old
 * run. */
START_TEST(members_may_come_through_an_agent_of_newcomers)
{
	tk_come_back(1);
	tk_end(1);
	tk.h[0] = fk_host(&tk.f, "a", "10.0.0.1");
	fk_join(tk.h[0], 0);
	tk.h[0]->peers.view_id = 2;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_come_back(2);
	tk_end(2);
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_int_eq(fk_info(&tk.p[0]).phase, CCM_PEER_ACCEPTED);
	tk_none_of(WM_KICK);
}
END_TEST

/* b is a newcomer that was prepared for round 3. If the other agents know a later round (_i == 0),
 * nobody here knows whether b was lost or the round was dropped. Then b is still a registered peer.
 */
START_TEST(newcomers_of_an_older_round_stay_registered)
{
	bool older = _i == 0;

	tk_come_back(0);
	tk.know[0].r.epoch = 3;
	tk.know[0].r.ring_epoch = older ? 4 : 3;
	tk_end(0);
	tk_connect(1);
	tk_join(1, WM_JOIN_PREPARED);
	tk.know[1] = (struct tk_know){.r = {.prepared = 3, .prepared_peers = 2}};
	tk_end(1);
	tk_come_back(2);
	tk.know[2].r.epoch = 3;
	tk.know[2].r.ring_epoch = older ? 4 : 3;
	tk_end(2);
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 0);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, older ? 2 : 3);
	ck_assert_int_eq(fk_info(&tk.p[1]).phase, older ? CCM_PEER_REGISTERED : CCM_PEER_ACCEPTED);
}
END_TEST

/* All agents died with the master. A peer that knows only an older view than others may have been
 * lost since. */
START_TEST(without_agents_peers_with_an_older_view_join_again)
{
	bool older = _i == 0;
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk.h[i]->peers.ballots[WIRE_TOPOLOGY] = 4;
		tk.h[i]->peers.view_id = older && i == 2 ? 2 : 4;
		tk.h[i]->peers.global = older && i != 2 ? 2 : 3;
		tk.know[i] = (struct tk_know){.own.group = 9};
		tk_join(i, WM_JOIN_ACCEPTED);
	}
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
	ck_assert_int_eq(fk_present(&tk.p[2]), !older);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), older);
}
END_TEST

/* The operation continues without c, which was kicked. c's agent gets the kick and no start. */
START_TEST(kicked_peer_gets_no_start)
{
	struct wm_msg vote = {.type = WM_OP_VOTE};
	size_t i;

	for (i = 0; i < 3; i++) {
		tk_connect(i);
		if (i < 2)
			lost_since(i, &tk.p[2]);
		tk_join(i, WM_JOIN_ACCEPTED);
		vote.u.op_vote = (struct wm_op_vote){.tag = 1,
			.params = fk_params,
			.n_peers = 1,
			.peers = &tk.p[i].id,
			.seq = i == 2 ? 0 : TK_SEQ + 1};
		fk_send(tk.h[i], &vote);
	}
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
}
END_TEST

/* Connects h[i]'s agent, which has no state of the run. Each call connects the same agent. */
static void come_by_one_agent(size_t i, uint64_t view_id)
{
	struct fk_host *x = fk_connect(&tk.f, tk.h[i]->name, "10.9.0.1");
	struct wm_msg hello;

	x->id = tk.h[i]->id;
	tk.h[i] = x;
	hello = fk_hello(x);
	hello.u.hello.run = tk.f.run;
	fk_send(x, &hello);
	tk.h[i]->peers = (struct wm_join){.ballots[WIRE_TOPOLOGY] = 4, .view_id = view_id};
	tk.h[i]->peers.global = 2;
	tk.know[i] = (struct tk_know){.own.group = 9};
	tk_join(i, WM_JOIN_ACCEPTED);
	tk_end(i);
}

START_TEST(left_out_peer_is_known_after_a_redirect)
{
	come_by_one_agent(0, 3);
	come_by_one_agent(1, 2);
	fk_tick(&tk.f, 3500);
	ck_assert(!tk.h[0]->open && !tk.h[1]->open);
	come_by_one_agent(1, 2);
	come_by_one_agent(0, 3);
	ck_assert(fk_status(&tk.f).recovering);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]));
	ck_assert(!fk_present(&tk.p[1]));
}
END_TEST

/* A lost peer does not count in place of another peer. */
START_TEST(lost_peers_do_not_count_as_returned)
{
	size_t i;

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.own.group = 9};
	for (i = 1; i < 3; i++)
		lost_since(i, &tk.p[0]);
	tk_end(0);
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 1000);
	ck_assert(fk_status(&tk.f).recovering);
	tk_come_back(2);
	tk_end(2);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(!fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && fk_present(&tk.p[2]));
}
END_TEST

/* Before its death the last master sent a view without c to b's agent alone. */
START_TEST(loss_counts_if_one_agent_was_told)
{
	size_t i;

	lost_since(1, &tk.p[2]);
	tk.know[1].own.generation = 7;
	tk_all_come_back();
	for (i = 0; i < 3; i++)
		fk_vote_seq(&tk.p[i], 1, 0);
	tk_all_end();
	fk_tick(&tk.f, 400);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && !fk_present(&tk.p[2]));
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	/* The vote is from before the loss. */
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_generation(tk.h[0], 0), 7);
}
END_TEST

/* The list of lost peers at b's agent, which knows the newest view, begins with a later view than
 * the last view of c's agent. So c may have been lost. a's agent knows a view of the list. */
START_TEST(peer_with_an_older_view_than_the_list_joins_again)
{
	tk.know[1].r.view.view_id = 5;
	tk.know[1].r.view.lost_floor = 4;
	tk.know[0].r.view.view_id = 4;
	tk.h[0]->peers.view_id = 4;
	tk_connect(0);
	tk.h[0]->peers.view_id = 4;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_connect(1);
	tk.h[1]->peers.view_id = 5;
	tk_join(1, WM_JOIN_ACCEPTED);
	tk_connect(2);
	tk.h[2]->peers.view_id = 3;
	tk_join(2, WM_JOIN_ACCEPTED);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && !fk_present(&tk.p[2]));
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "declared lost");
}
END_TEST

/* c is alone in its group, so only an agent of another group knows of the loss. */
START_TEST(loss_counts_if_another_group_was_told)
{
	tk.p[2].group = 1;
	lost_since(0, &tk.p[2]);
	tk.know[0].own.world_size = tk.know[1].own.world_size = 2;
	tk.know[2].own = (struct wm_group_view){.group = 1, .world_size = 1};
	tk_all_come_back();
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && !fk_present(&tk.p[2]));
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
}
END_TEST

/* When all agents died, the peers know how many peers must come. */
START_TEST(without_agents_peers_know_the_world_size)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk.h[i]->peers =
			(struct wm_join){.ballots[WIRE_TOPOLOGY] = 4, .view_id = 2, .global = 3};
		tk.know[i] = (struct tk_know){.own.group = 9};
	}
	for (i = 0; i < 2; i++) {
		tk_join(i, WM_JOIN_ACCEPTED);
		tk_end(i);
	}
	tk_end(2);
	fk_tick(&tk.f, 2400);
	ck_assert(fk_status(&tk.f).recovering);
	tk_join(2, WM_JOIN_ACCEPTED);
	fk_tick(&tk.f, 400);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_none_of(WM_KICK);
}
END_TEST

/* Fewer than half of the peers have come. So the others may have another master. */
START_TEST(minority_is_redirected_once)
{
	const struct wm_refuse *w;

	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 2900);
	ck_assert(tk.h[1]->open);
	fk_tick(&tk.f, 300);
	ck_assert(fk_status(&tk.f).recovering);
	w = &fk_take(tk.h[1], WM_REFUSE)->u.refuse;
	ck_assert_uint_eq(w->code, WIRE_MASTER_CONNECTION_FAILED);
	assert_contains(w->text, "1 of the run's 3 peers have come to this master");
	ck_assert(!tk.h[1]->open);
	/* There is no other master. This master waits for the next agent without a limit. */
	fk_tick(&tk.f, 20000);
	ck_assert(fk_status(&tk.f).recovering);
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 2900);
	ck_assert(fk_status(&tk.f).recovering);
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(tk.h[1]->open);
	fk_tick(&tk.f, 6000); /* no other peer has a lease any more */
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_KICK), 0);
}
END_TEST

START_TEST(redirected_minority_and_the_others_meet_again)
{
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 3200);
	ck_assert(!tk.h[1]->open);
	tk_all_come_back();
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	tk_works();
	tk_no_error();
}
END_TEST

START_TEST(newcomers_wait_for_the_end_of_a_takeover)
{
	struct fk_host *d;
	struct fk_peer x;

	tk_come_back(0);
	tk_end(0);
	d = fk_host(&tk.f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	tk_come_back(1);
	tk_end(1);
	tk_come_back(2);
	tk_end(2);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(d->n, 0);
	fk_topo(&tk.p[0]);
	fk_topo(&tk.p[1]);
	fk_topo(&tk.p[2]);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(fk_info(&x).rank, 3);
	tk_no_error();
}
END_TEST

START_TEST(generation_never_decreases)
{
	struct ccm_config cfg = {.run = {{9}}, .run_key = {{9}}, .first_number = UINT64_C(1) << 51};
	size_t i;

	/* All agents died with the master, so nobody knows its last generation. */
	fk_new_master(&tk.f, &cfg);
	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){
			.r = {.ballots[WIRE_TOPOLOGY] =
					4}}; /* the agent knows this from its peer */
	}
	fk_tick(&tk.f, 2000);
	tk_all_end();
	fk_tick(&tk.f, 2000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, cfg.first_number + 1);
	/* The last term is unknown, too. An agent that is not running may know it. */
	ck_assert_uint_ge(fk_status(&tk.f).term, cfg.first_number / 4096);
	ck_assert_uint_le(fk_status(&tk.f).term, WM_TERM_MAX / 2);
	tk_works();
}
END_TEST

START_TEST(peer_lost_before_a_takeover_is_not_a_member)
{
	size_t i;

	/* The last master had lost c, but could not tell c. */
	for (i = 0; i < 2; i++) {
		lost_since(i, &tk.p[2]);
		tk.know[i].own.generation = 1;
		tk.know[i].position.hosts = 2;
	}
	tk_come_back(2);
	tk_end(2);
	tk_come_back(0);
	tk_end(0);
	ck_assert(fk_status(&tk.f).recovering);
	tk_come_back(1);
	tk_end(1);
	ck_assert(!fk_status(&tk.f).recovering);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "declared lost");
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && !fk_present(&tk.p[2]));
	tk_none_of(WM_OP_ABORT);
}
END_TEST

/* Sends p[i]'s vote for an operation that began after the first loss. */
static void voted_since(size_t i)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){.tag = 7,
		.params = fk_params,
		.n_peers = 1,
		.peers = &tk.p[i].id,
		.generation = 1,
		.seq = TK_SEQ};
	fk_send(tk.h[i], &msg);
}

/* With _i == 0, a and b were told of c's loss and have begun an operation since. With _i == 1 they
 * were told of another loss. */
START_TEST(loss_before_a_takeover_is_not_counted_again)
{
	bool known = _i == 0;
	size_t i;

	for (i = 0; i < 2; i++) {
		lost_since(i, &tk.p[2]);
		tk.know[i].own.world_size = known ? 2 : 3;
		tk.know[i].own.generation = 1;
		tk.know[i].position.hosts = 2;
	}
	tk_all_come_back();
	for (i = 0; i < 2; i++)
		voted_since(i);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "declared lost");
	ck_assert_int_eq(tk.h[0]->generations[0].generation == 1, known);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), !known);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_DONE), known);
}
END_TEST

START_TEST(peer_that_leaves_during_a_takeover_is_not_awaited)
{
	tk_all_come_back();
	fk_leave(&tk.p[1], WM_LEAVE_DIED);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[2], 1, TK_SEQ);
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, 1);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_ROUND)->u.round.rings[0].hosts, 2);
}
END_TEST

START_TEST(connection_may_break_again_during_a_takeover)
{
	tk_come_back(0);
	tk_end(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_cut(tk.h[1], "reset");
	tk_come_back(2);
	tk_end(2);
	ck_assert(fk_status(&tk.f).recovering);
	assert_contains(fk_waiting(&tk.f), "agent b disconnected for 0.0 s");
	tk_come_back(1);
	ck_assert(fk_status(&tk.f).recovering);
	tk_end(1);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_works();
}
END_TEST

START_TEST(member_of_another_run_is_a_stranger)
{
	struct fk_host *d;
	struct fk_peer x = {.id = {{5}}, .token = {{6}}};
	struct wm_msg msg;

	tk_come_back(0);
	d = fk_connect(&tk.f, "d", "10.0.0.4");
	msg = fk_hello(d);
	msg.u.hello.run = (struct cc_id){{77}};
	fk_send(d, &msg);
	(void)fk_join_again(&x, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	(void)fk_join_again(&tk.p[0], d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
}
END_TEST

START_TEST(hello_without_the_key_waits_for_the_key)
{
	struct fk_host *d = fk_reconnect_as(tk.h[2], 0, true), *e;

	ck_assert_uint_eq(d->n, 0);
	e = fk_connect(&tk.f, "new", "10.0.0.8");
	{
		struct wm_msg msg = fk_hello(e);

		fk_send(e, &msg);
	}
	ck_assert_uint_eq(e->n, 0);
	tk_connect(0);
	ck_assert(fk_take(d, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(!fk_take(e, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert(fk_take(tk.h[0], WM_HELLO_ACK)->u.hello_ack.resume);
}
END_TEST

START_TEST(hello_without_the_key_waits_for_a_limited_time)
{
	struct fk_host *d = fk_reconnect_as(tk.h[2], 0, true);
	const struct wm_hello_ack *ack;

	fk_tick(&tk.f, 1700);
	ck_assert(d->open);
	ack = &fk_take(d, WM_HELLO_ACK)->u.hello_ack;
	ck_assert(ack->resume);
}
END_TEST

Suite *resume_suite(void)
{
	Suite *s = suite_create("resume");
	TCase *tc = tcase_create("resume");

	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_test(tc, takeover_with_all_agents_causes_no_error);
	tcase_add_test(tc, member_that_does_not_come_back_is_lost);
	tcase_add_test(tc, master_counts_from_the_numbers_of_a_late_agent);
	tcase_add_loop_test(tc, peer_that_knows_a_later_view_than_all_agents_joins_again, 0, 2);
	tcase_add_test(tc, members_may_come_through_an_agent_of_newcomers);
	tcase_add_loop_test(tc, newcomers_of_an_older_round_stay_registered, 0, 2);
	tcase_add_loop_test(tc, without_agents_peers_with_an_older_view_join_again, 0, 2);
	tcase_add_test(tc, kicked_peer_gets_no_start);
	tcase_add_test(tc, left_out_peer_is_known_after_a_redirect);
	tcase_add_test(tc, lost_peers_do_not_count_as_returned);
	tcase_add_test(tc, loss_counts_if_one_agent_was_told);
	tcase_add_test(tc, peer_with_an_older_view_than_the_list_joins_again);
	tcase_add_test(tc, loss_counts_if_another_group_was_told);
	tcase_add_test(tc, without_agents_peers_know_the_world_size);
	tcase_add_test(tc, minority_is_redirected_once);
	tcase_add_test(tc, redirected_minority_and_the_others_meet_again);
	tcase_add_test(tc, newcomers_wait_for_the_end_of_a_takeover);
	tcase_add_test(tc, generation_never_decreases);
	tcase_add_test(tc, peer_lost_before_a_takeover_is_not_a_member);
	tcase_add_loop_test(tc, loss_before_a_takeover_is_not_counted_again, 0, 2);
	tcase_add_test(tc, peer_that_leaves_during_a_takeover_is_not_awaited);
	tcase_add_test(tc, connection_may_break_again_during_a_takeover);
	tcase_add_test(tc, member_of_another_run_is_a_stranger);
	tcase_add_test(tc, hello_without_the_key_waits_for_the_key);
	tcase_add_test(tc, hello_without_the_key_waits_for_a_limited_time);
	suite_add_tcase(s, tc);
	return s;
}
