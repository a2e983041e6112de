/* SPDX-License-Identifier: MIT
 *
 * The master's core: a run is taken over from a master that died. Who greets whom, and who is of
 * the run afterwards.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

START_TEST(nobody_notices_when_only_the_master_died)
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
	/* The ring is the one that was there, in whatever order they came. */
	ck_assert_int_eq(fk_info(&tk.p[0]).rank, 0);
	ck_assert_int_eq(fk_info(&tk.p[1]).rank, 1);
	ck_assert_int_eq(fk_info(&tk.p[2]).rank, 2);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_ROUND)->u.round.round, 2);
	ck_assert_uint_ge(fk_take(tk.h[0], WM_COMMIT)->u.commit.epoch, 2);
	tk_works();
	tk_no_error();
}
END_TEST

START_TEST(who_does_not_come_back_is_lost)
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
	assert_contains(fk_status(&tk.f).waiting, "recovering: waiting for 1 of 3 peers");
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	w = &fk_take(tk.h[0], WM_VIEW)->u.view;
	ck_assert_uint_eq(w->global, 2);
	ck_assert_uint_eq(w->own[0].generation, 1);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_ROUND)->u.round.rings[0].hosts, 2);
	/* It comes too late. */
	tk_come_back(1);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	fk_vote(&tk.p[0], 2);
	fk_vote(&tk.p[2], 2);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 1);
}
END_TEST

/* The one agent that came fell silent before it could say anything: the master counts from where
 * nobody knows, and the agent, when it comes again, from far above. */
START_TEST(numbers_of_an_agent_that_comes_too_late_count)
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

/* The last master had lost b and c, who did not hear of it, gone on with a, and died with a's
 * agent: only a's peer knows. But who was ready for the round that it committed was in that commit;
 * not who was ready for one that was dropped. */
START_TEST(peers_know_what_died_with_their_agent)
{
	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->peers.epoch = 3;
	tk.h[0]->peers.ring_epoch = _i == 2 ? 4 : 3;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.r = {.topo_ballot = 2}};
	tk_come_back(1);
	tk_come_back(2);
	tk.know[1].r.prepared = _i == 0 ? 0 : 3;
	tk.know[1].r.prepared_peers = 2;
	tk_all_end();
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_KICK), _i != 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_KICK), 0);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, _i == 1 ? 2 : 1);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_COMMIT)->u.commit.epoch, 3);
}
END_TEST

/* Newcomers that were ready for a round before the one that peers know of: that they were lost, or
 * it was dropped, has been told to nobody who is here. They have not joined yet. */
START_TEST(newcomers_of_an_older_round_are_still_waiting)
{
	bool older = _i == 0;

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->peers.epoch = 3;
	tk.h[0]->peers.ring_epoch = older ? 4 : 3;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.r = {.topo_ballot = 2}};
	tk_connect(1);
	tk_join(1, WM_JOIN_PREPARED);
	tk.know[1] = (struct tk_know){.r = {.prepared = 3, .prepared_peers = 2}};
	tk_come_back(2);
	tk.know[2].r.ring_epoch = 3;
	tk_all_end();
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, older ? 1 : 2);
	ck_assert_int_eq(fk_info(&tk.p[1]).phase, older ? CCM_PEER_REGISTERED : CCM_PEER_ACCEPTED);
}
END_TEST

/* The same, and a newcomer on a's host was faster than the peer that knows: its agent's connection
 * is not one that came for the run. */
START_TEST(what_peers_know_comes_by_any_connection)
{
	struct fk_peer x;

	tk_come_back(1);
	tk.h[0] = fk_host(&tk.f, "a", "10.0.0.1");
	x = fk_join(tk.h[0], 0);
	tk.h[0]->peers.epoch = tk.h[0]->peers.ring_epoch = 3;
	tk_join(0, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_KICK), 0);
	tk_come_back(2);
	tk_end(1);
	tk_end(2);
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_KICK), 0);
	ck_assert_int_eq(fk_info(&tk.p[0]).phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_COMMIT)->u.commit.epoch, 3);
}
END_TEST

/* All agents died with the master. Who knows neither the last commit nor the round that led to it
 * is a member all the same, unless the others have gone on without him since. */
static const struct {
	uint64_t prepared, topo_ballot, pending_ballot, seq;
	bool lost;
} overdue[] = {
	{2, 2, 1, 7, true},  /* they have voted */
	{2, 1, 2, 7, true},  /* ... on the topology */
	{3, 2, 1, 7, false}, /* it was ready for the round, and may have voted */
	{2, 2, 2, 7, false}, /* its agent was disconnected just then */
	{2, 2, 2, 6, true},  /* they have done an operation */
	{2, 2, 2, 0, false}, /* ... perhaps before it was accepted */
};

START_TEST(without_agents_peers_know_who_was_left_out)
{
	static const uint64_t seqs[] = {6, 7}, doubtful[] = {8, 7};
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk.h[i]->peers = (struct wm_join){.epoch = 3,
			.ring_epoch = 3,
			.prepared = 3,
			.topo_ballot = 2,
			.pending_ballot = 2};
		tk.know[i] = (struct tk_know){.own.group = 9};
	}
	tk.h[2]->peers = (struct wm_join){.epoch = 2,
		.ring_epoch = 2,
		.prepared = overdue[_i].prepared,
		.topo_ballot = overdue[_i].topo_ballot,
		.pending_ballot = overdue[_i].pending_ballot};
	for (i = 0; i < 3; i++)
		tk_join(i, WM_JOIN_ACCEPTED);
	tk_all_end();
	fk_query(&tk.p[0], 2, seqs, 2);
	fk_query(&tk.p[1], 2, doubtful, 1);
	if (overdue[_i].seq)
		fk_query(&tk.p[2], 1, &overdue[_i].seq, 0);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
	ck_assert_int_eq(fk_present(&tk.p[2]), !overdue[_i].lost);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), overdue[_i].lost);
}
END_TEST

/* Before the last commit somebody was lost, which may be c: it comes by a new agent. An attempt
 * that has begun since had the votes of all members. */
static const struct {
	uint64_t begun, prepared; /* by whose rings; the last round that c was ready for */
	bool lost;
} begun[] = {
	{3, 2, true},
	{2, 2, false},
	{0, 2, false},
	{3, 3, false},
};

START_TEST(what_has_begun_without_a_peer_has_left_it_out)
{
	size_t i;

	tk.h[2] = fk_reconnect_as(tk.h[2], 0, true);
	tk.h[2]->peers = (struct wm_join){.epoch = 2, .ring_epoch = 2, .topo_ballot = 2};
	tk.h[2]->peers.view_id = 2;
	tk.h[2]->peers.prepared = begun[_i].prepared;
	tk.know[2] = (struct tk_know){.own.group = 9};
	for (i = 0; i < 3; i++) {
		if (i < 2) {
			tk_connect(i);
			tk.h[i]->peers = (struct wm_join){
				.epoch = 3, .ring_epoch = 3, .prepared = 3, .topo_ballot = 2};
			tk.h[i]->peers.view_id = tk.know[i].r.view.view_id = 4;
			tk.h[i]->peers.global = tk.h[i]->peers.world_size = 3;
			tk.know[i].own.begun = begun[_i].begun;
			tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		}
		tk_join(i, WM_JOIN_ACCEPTED);
	}
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
	ck_assert_int_eq(fk_present(&tk.p[2]), !begun[_i].lost);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), begun[_i].lost);
}
END_TEST

/* The operation goes on without c, which was put out: its agent is told so, and starts nothing. */
START_TEST(who_was_left_out_is_told_of_no_start)
{
	struct wm_msg vote = {.type = WM_OP_VOTE};
	size_t i;

	for (i = 0; i < 3; i++) {
		tk_connect(i);
		tk.h[i]->peers = (struct wm_join){
			.epoch = 3, .ring_epoch = 3, .prepared = 3, .topo_ballot = 2};
		tk.h[i]->peers.view_id = tk.know[i].r.view.view_id = 4;
		tk.h[i]->peers.global = tk.h[i]->peers.world_size = 2;
		tk.know[i].r.view.global = tk.know[i].own.world_size = 2;
		tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		tk.know[i].own.begun = 3;
		if (i == 2) {
			tk.h[i]->peers.epoch = tk.h[i]->peers.ring_epoch = tk.h[i]->peers.prepared =
				2;
			tk.h[i]->peers.view_id = tk.know[i].r.view.view_id = 2;
			tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 2;
			tk.know[i].own.begun = 2;
		}
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

/* It has no state of the run, each time that it comes. */
static void come_by_one_agent(size_t i, uint64_t epoch)
{
	struct fk_host *x = fk_connect(&tk.f, tk.h[i]->name, "10.9.0.1");
	struct wm_msg hello;

	x->id = tk.h[i]->id;
	tk.h[i] = x;
	hello = fk_hello(x);
	hello.u.hello.run = tk.f.run;
	fk_send(x, &hello);
	tk.h[i]->peers = (struct wm_join){.epoch = epoch, .ring_epoch = epoch, .topo_ballot = 2};
	tk.h[i]->peers.view_id = epoch;
	tk.h[i]->peers.global = 2;
	tk.know[i] = (struct tk_know){.own.group = 9};
	tk_join(i, WM_JOIN_ACCEPTED);
	tk_end(i);
}

/* What their peers ask for, who was left out follows from; it comes behind what their agents say,
 * also the second time. */
START_TEST(the_left_out_are_known_when_all_were_redirected)
{
	const uint64_t older = 6, newer = 7;

	come_by_one_agent(0, 3);
	come_by_one_agent(1, 2);
	fk_query(&tk.p[0], 1, &newer, 1);
	fk_query(&tk.p[1], 1, &older, 1);
	fk_tick(&tk.f, 3500);
	ck_assert(!tk.h[0]->open && !tk.h[1]->open);
	come_by_one_agent(1, 2);
	fk_query(&tk.p[1], 1, &older, 1);
	come_by_one_agent(0, 3);
	ck_assert(fk_status(&tk.f).recovering);
	fk_query(&tk.p[0], 1, &newer, 1);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]));
	ck_assert(!fk_present(&tk.p[1]));
}
END_TEST

/* Those who were lost do not stand for others. */
START_TEST(the_lost_are_not_among_those_who_are_back)
{
	size_t i;

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->peers = (struct wm_join){.epoch = 2, .ring_epoch = 2, .topo_ballot = 2};
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.own.group = 9};
	for (i = 1; i < 3; i++) {
		tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		tk.know[i].r.pending_ballot = 1;
		tk.know[i].r.view.view_id = 4;
		tk.know[i].r.view.global = tk.know[i].own.world_size = 2;
	}
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

/* What the last master told of the deaths of b and c, before the commit, who has died with its
 * agent knows. Those who are left of a group are all known: then the others are none of it any
 * more. */
static const struct {
	uint32_t world_size;
	bool told_b; /* b, too, has heard of the view with c lost */
	bool b, c;   /* are members */
} generation_told[] = {
	{1, false, false, false}, /* a is alone */
	{2, false, true, true},   /* one was lost, and a cannot say who */
	{2, true, true, false},
};

START_TEST(a_loss_that_was_told_is_one)
{
	struct wm_join told = {.epoch = 2,
		.ring_epoch = 2,
		.topo_ballot = 2,
		.view_id = 4,
		.global = generation_told[_i].world_size,
		.world_size = generation_told[_i].world_size,
		.generation = 7};
	const struct wm_join before = {.view_id = 2, .global = 3, .world_size = 3};
	size_t i;

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->peers = told;
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.own.group = 9};
	for (i = 1; i < 3; i++) {
		tk_connect(i);
		tk.h[i]->peers = i == 1 && generation_told[_i].told_b ? told : before;
		tk_join(i, WM_JOIN_ACCEPTED);
		fk_vote_seq(&tk.p[i], 1, 0);
	}
	tk_all_end();
	fk_tick(&tk.f, 400);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_int_eq(fk_present(&tk.p[1]), generation_told[_i].b);
	ck_assert_int_eq(fk_present(&tk.p[2]), generation_told[_i].c);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), !generation_told[_i].c);
	/* No attempt spans a loss that somebody knows of. */
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_ABORT), generation_told[_i].b);
	ck_assert_uint_ge(fk_generation(tk.h[0], 0), 7);
}
END_TEST

/* c is alone in its group, where nobody else can say so. All agents died. */
START_TEST(a_loss_that_was_told_to_other_groups_is_one)
{
	const struct wm_join told = {.epoch = 3,
		.ring_epoch = 3,
		.topo_ballot = 2,
		.view_id = 4,
		.global = 2,
		.world_size = 2};
	const struct wm_join before = {.epoch = 2,
		.ring_epoch = 2,
		.topo_ballot = 2,
		.view_id = 2,
		.global = 3,
		.world_size = 1};
	bool known = _i == 0; /* or b has not heard of it */
	size_t i;

	tk.p[2].group = 1;
	for (i = 3; i-- > 0;) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk.h[i]->peers = i == 0 || (i == 1 && known) ? told : before;
		if (i == 1)
			tk.h[i]->peers.world_size = 2;
		tk_join(i, WM_JOIN_ACCEPTED);
	}
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
	ck_assert_int_eq(fk_present(&tk.p[2]), !known);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), known);
}
END_TEST

/* Peers know how many to wait for, when all agents died. */
START_TEST(without_agents_peers_know_how_many_there_are)
{
	bool ready = _i == 1; /* for a round, of which nobody knows whether it was committed */
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk.h[i]->peers = (struct wm_join){.epoch = 2,
			.ring_epoch = 2,
			.prepared = ready ? 3 : 2,
			.topo_ballot = 2,
			.view_id = 2,
			.global = 3,
			.world_size = 3};
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
	ck_assert_int_eq(fk_status(&tk.f).recovering, ready);
	fk_tick(&tk.f, 800);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_none_of(WM_KICK);
}
END_TEST

/* Less than half of the run: the others may have another master. */
START_TEST(the_few_look_for_another_master_first)
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
	/* There is none. Whoever comes first is waited for as long as it takes. */
	fk_tick(&tk.f, 20000);
	ck_assert(fk_status(&tk.f).recovering);
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 2900);
	ck_assert(fk_status(&tk.f).recovering);
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(tk.h[1]->open);
	fk_tick(&tk.f, 6000); /* the lease of nobody else is left */
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_KICK), 0);
}
END_TEST

START_TEST(the_few_and_the_others_find_each_other)
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

START_TEST(newcomers_wait_for_the_end_of_it)
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

START_TEST(the_generation_never_falls)
{
	struct ccm_config cfg = {.run = {{9}}, .run_key = {{9}}, .first_number = UINT64_C(1) << 51};
	size_t i;

	/* All agents died with the master: nobody knows how far it had counted. */
	fk_new_master(&tk.f, &cfg);
	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){.r = {.topo_ballot = 2}}; /* as its peer says */
	}
	fk_tick(&tk.f, 2000);
	tk_all_end();
	fk_tick(&tk.f, 2000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, cfg.first_number + 1);
	/* Nor what its term was; an agent that is not running may. */
	ck_assert_uint_ge(fk_status(&tk.f).term, cfg.first_number / 4096);
	ck_assert_uint_le(fk_status(&tk.f).term, WM_TERM_MAX / 2);
	tk_works();
}
END_TEST

START_TEST(who_was_lost_before_is_not_let_in_again)
{
	size_t i;

	/* c was lost by the last master, but could not be told. */
	for (i = 0; i < 2; i++) {
		tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		tk.know[i].r.view.view_id = 4;
		tk.know[i].r.view.global = tk.know[i].own.world_size = 2;
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

/* Of an operation that began after the first loss. */
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

/* a and b were told of it, and have begun an operation since; or they were told of another loss. */
START_TEST(who_was_lost_before_is_not_counted_again)
{
	bool known = _i == 0;
	size_t i;

	for (i = 0; i < 2; i++) {
		tk.know[i].r.epoch = tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		tk.know[i].r.view.view_id = 4;
		tk.know[i].r.view.global = tk.know[i].own.world_size = known ? 2 : 3;
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

/* Its agent died, too, before it heard of that; the one that is there now may know of the run from
 * another peer. */
START_TEST(who_has_missed_votes_was_lost_before)
{
	struct wm_msg msg = {.type = WM_JOIN};
	bool topo = _i % 4 < 2, stateless = _i < 4;
	size_t i;

	uint64_t ballot = 3 + (uint64_t)_i % 2;

	tk.know[0].r.topo_ballot = tk.know[1].r.topo_ballot = topo ? ballot : 2;
	tk.know[0].r.pending_ballot = tk.know[1].r.pending_ballot = topo ? 4 : 2 * ballot + 1;
	tk_come_back(0);
	tk_come_back(1);
	tk.h[2] = fk_reconnect_as(tk.h[2], 1, stateless);
	tk.p[2].host = tk.h[2];
	msg.u.join = (struct wm_join){.peer = tk.p[2].id,
		.token = tk.p[2].token,
		.pool_size = 1,
		.phase = WM_JOIN_ACCEPTED,
		.topo_ballot = 2,
		.pending_ballot = 4};
	fk_send(tk.h[2], &msg);
	if (stateless)
		tk.know[2] = (struct tk_know){.r = {0}};
	tk_all_end();
	fk_tick(&tk.f, 4000);
	for (i = 0; i < 2; i++)
		ck_assert(fk_present(&tk.p[i]));
	ck_assert_int_eq(fk_present(&tk.p[2]), ballot == 3);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), ballot == 4);
}
END_TEST

START_TEST(who_left_meanwhile_is_not_waited_for)
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

START_TEST(a_connection_may_break_again)
{
	tk_come_back(0);
	tk_end(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_cut(tk.h[1], "reset");
	tk_come_back(2);
	tk_end(2);
	ck_assert(fk_status(&tk.f).recovering);
	assert_contains(fk_status(&tk.f).waiting, "agent b disconnected for 0.0 s");
	tk_come_back(1);
	ck_assert(fk_status(&tk.f).recovering);
	tk_end(1);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_works();
}
END_TEST

START_TEST(whoever_was_accepted_in_another_run_is_a_stranger)
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

START_TEST(without_the_key_the_greeting_waits)
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

START_TEST(the_greeting_does_not_wait_for_ever)
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
	tcase_add_test(tc, nobody_notices_when_only_the_master_died);
	tcase_add_test(tc, who_does_not_come_back_is_lost);
	tcase_add_test(tc, numbers_of_an_agent_that_comes_too_late_count);
	tcase_add_loop_test(tc, peers_know_what_died_with_their_agent, 0, 3);
	tcase_add_loop_test(tc, newcomers_of_an_older_round_are_still_waiting, 0, 2);
	tcase_add_test(tc, what_peers_know_comes_by_any_connection);
	tcase_add_loop_test(tc, without_agents_peers_know_who_was_left_out, 0,
		sizeof overdue / sizeof overdue[0]);
	tcase_add_test(tc, who_was_left_out_is_told_of_no_start);
	tcase_add_loop_test(tc, what_has_begun_without_a_peer_has_left_it_out, 0,
		sizeof begun / sizeof begun[0]);
	tcase_add_test(tc, the_left_out_are_known_when_all_were_redirected);
	tcase_add_test(tc, the_lost_are_not_among_those_who_are_back);
	tcase_add_loop_test(tc, a_loss_that_was_told_is_one, 0,
		sizeof generation_told / sizeof generation_told[0]);
	tcase_add_loop_test(tc, a_loss_that_was_told_to_other_groups_is_one, 0, 2);
	tcase_add_loop_test(tc, without_agents_peers_know_how_many_there_are, 0, 2);
	tcase_add_test(tc, the_few_look_for_another_master_first);
	tcase_add_test(tc, the_few_and_the_others_find_each_other);
	tcase_add_test(tc, newcomers_wait_for_the_end_of_it);
	tcase_add_test(tc, the_generation_never_falls);
	tcase_add_test(tc, who_was_lost_before_is_not_let_in_again);
	tcase_add_loop_test(tc, who_was_lost_before_is_not_counted_again, 0, 2);
	tcase_add_loop_test(tc, who_has_missed_votes_was_lost_before, 0, 8);
	tcase_add_test(tc, who_left_meanwhile_is_not_waited_for);
	tcase_add_test(tc, a_connection_may_break_again);
	tcase_add_test(tc, whoever_was_accepted_in_another_run_is_a_stranger);
	tcase_add_test(tc, without_the_key_the_greeting_waits);
	tcase_add_test(tc, the_greeting_does_not_wait_for_ever);
	suite_add_tcase(s, tc);
	return s;
}
