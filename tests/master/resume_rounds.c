/* SPDX-License-Identifier: MIT
 *
 * The master's core takes over a run from a master that died: the rounds, topology votes and
 * pending votes of the run.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

/* The bound passes while a sends its snapshot. A peer that is accepted at that time must count
 * ballots as host a does. */
START_TEST(late_ballot_numbers_count)
{
	const struct wm_commit *c;
	struct fk_host *d;
	struct fk_peer x;

	tk_come_back(0);
	tk.h[0]->ballots[WIRE_TOPOLOGY] = 0; /* this master does not know a's number yet */
	d = fk_host(&tk.f, "d", "10.0.0.4");
	x = fk_join(d, 0);
	fk_tick(&tk.f, 3100);
	ck_assert(!fk_status(&tk.f).recovering);
	tk.know[0].r.ballots[WIRE_TOPOLOGY] = 8;
	tk.know[0].r.ballots[WIRE_PENDING] = 7;
	tk_end(0);
	tk.h[0]->ballots[WIRE_TOPOLOGY] = 8;
	fk_topo(&tk.p[0]);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	c = &fk_take(d, WM_COMMIT)->u.commit;
	ck_assert_uint_eq(c->ballots[WIRE_TOPOLOGY], 10);
	ck_assert_uint_eq(c->ballots[WIRE_PENDING], 7);
}
END_TEST

/* The last master had kicked these three peers and had continued with other peers. No agent
 * that has come knows those peers. */
START_TEST(ballots_of_strangers_do_not_count)
{
	struct wm_msg msg = {.type = WM_RESUME,
		.u.resume = {.ballots[WIRE_TOPOLOGY] = 8, .ballots[WIRE_PENDING] = 6}};
	struct fk_peer x = {.id = fk_id(&tk.f), .token = fk_id(&tk.f), .group = 0};
	struct fk_host *d;

	tk_all_come_back();
	tk_all_end();
	fk_settle(&tk.f);
	fk_forget(&tk.f);
	d = fk_reconnect_as(tk.h[0], 0, true);
	d->peers = (struct wm_join){.ballots[WIRE_TOPOLOGY] = 8, .ballots[WIRE_PENDING] = 6};
	(void)fk_join_again(&x, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_count(d, WM_KICK), 1);
	fk_send(d, &msg);
	fk_topo(&tk.p[0]);
	fk_pending(&tk.p[1]);
	tk_none_of(WM_COMMIT);
	tk_none_of(WM_BALLOT_END);
}
END_TEST

/* The ballots in the JOIN count, because the new agent knows nothing about the run. */
START_TEST(a_peer_with_a_new_agent_knows_its_ballots)
{
	struct wm_msg msg = {.type = WM_JOIN};

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->ballots[WIRE_TOPOLOGY] = 0;
	tk.p[0].host = tk.h[0];
	msg.u.join = (struct wm_join){.peer = tk.p[0].id,
		.token = tk.p[0].token,
		.pool_size = 1,
		.phase = WM_JOIN_ACCEPTED,
		.ballots[WIRE_TOPOLOGY] = 10,
		.ballots[WIRE_PENDING] = 3};
	fk_send(tk.h[0], &msg);
	fk_resumed(tk.h[0]);
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_COMMIT)->u.commit.ballots[WIRE_PENDING], 3);
	ck_assert_uint_eq(tk.h[0]->ballots[WIRE_TOPOLOGY], 10);
}
END_TEST

/* Makes snapshots for this case: a and b were in round 3, which admitted d. Neither c nor d has
 * received its commit. */
static void half_committed(void)
{
	size_t i;

	tk.h[3] = fk_host(&tk.f, "d", "10.0.0.4");
	tk.h[3]->open = false;
	tk.p[3] = (struct fk_peer){.host = tk.h[3], .id = fk_id(&tk.f), .token = {{4}}};
	fk_new_master(&tk.f, NULL);
	tk.know[3] = tk.know[0];
	for (i = 0; i < 4; i++) {
		tk.know[i].position.hosts = 4;
		tk.know[i].r.round = tk.know[i].r.ring_epoch = 3;
		tk.know[i].r.epoch = 3;
		tk.know[i].r.ballots[WIRE_TOPOLOGY] = 6;
		tk.know[i].r.view.view_id = 3;
		tk.know[i].r.view.global = tk.know[i].own.world_size = 4;
	}
	tk.know[2] = (struct tk_know){.r = {.epoch = 2,
					      .round = 2,
					      .ring_epoch = 2,
					      .prepared = 3,
					      .last_seq = TK_SEQ,
					      .ballots[WIRE_TOPOLOGY] = 4,
					      .view = {.global = 3, .view_id = 2, .n = 1}},
		.own = {.world_size = 3},
		.position = {.hosts = 3, .pos = 2}};
	tk.know[3] = (struct tk_know){.r = {.prepared = 3}};
}

START_TEST(round_is_committed_if_one_agent_knows_its_commit)
{
	const struct wm_commit *c;

	half_committed();
	fk_manual(&tk.f);
	tk_connect(3);
	tk_join(3, WM_JOIN_PREPARED);
	tk_end(3);
	tk_all_come_back();
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	c = &fk_take(tk.h[3], WM_COMMIT)->u.commit;
	ck_assert_uint_eq(c->round, 3);
	ck_assert_uint_eq(c->epoch, 3);
	ck_assert(c->accept);
	ck_assert_uint_eq(c->ballots[WIRE_TOPOLOGY], 6);
	ck_assert_uint_eq(c->view.global, 4);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_COMMIT)->u.commit.round, 3);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_COMMIT), 0);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 4);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_ROUND)->u.round.round, 3);
}
END_TEST

/* c was prepared for the round that admits it, but its connection broke before the commit arrived.
 * b's agent knows the commit. With _i == 0, it also knows that c was lost after it. */
START_TEST(newcomer_lost_before_its_commit_is_no_member)
{
	bool lost = _i == 0;

	tk_come_back(1);
	tk.know[1].r.epoch = tk.know[1].r.round = tk.know[1].r.ring_epoch = 3;
	tk.know[1].r.view.view_id = 3;
	tk.know[1].lost = tk.p[2].id;
	tk.know[1].r.view.n_lost = lost;
	tk.know[1].r.view.global = tk.know[1].own.world_size = lost ? 1 : 2;
	tk_end(1);
	tk_connect(2);
	tk_join(2, WM_JOIN_PREPARED);
	tk.know[2] = (struct tk_know){.r = {.prepared = 3, .prepared_peers = 3}};
	tk_end(2);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[1]));
	ck_assert_int_eq(fk_info(&tk.p[2]).phase, lost ? CCM_PEER_REGISTERED : CCM_PEER_ACCEPTED);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 0);
}
END_TEST

START_TEST(round_is_dropped_if_no_agent_knows_its_commit)
{
	size_t i;

	half_committed();
	for (i = 0; i < 2; i++) {
		tk.know[i] = tk.know[2];
		tk.know[i].position.pos = (uint32_t)i;
	}
	tk_connect(3);
	tk_join(3, WM_JOIN_PREPARED);
	tk_end(3);
	tk_all_come_back();
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	ck_assert_int_eq(fk_info(&tk.p[3]).phase, CCM_PEER_REGISTERED);
	ck_assert_uint_eq(fk_count(tk.h[3], WM_COMMIT), 0);
	/* The numbers of prepared rounds are not used again. */
	ck_assert_uint_gt(fk_take(tk.h[0], WM_ROUND)->u.round.round, 3);
	tk_no_error();
}
END_TEST

/* Only d received the commit of the round that admits c and d. a and b, the members before this
 * round, were prepared for it. The agents that come first must not decide that the round was
 * dropped. */
static void half_admitted(void)
{
	size_t i;

	half_committed();
	tk.know[3] = tk.know[0];
	tk.know[3].position.pos = 3;
	for (i = 0; i < 3; i++) {
		tk.know[i] = (struct tk_know){.r = {.epoch = 2,
						      .round = 2,
						      .ring_epoch = 2,
						      .prepared = 3,
						      .prepared_peers = 4,
						      .last_seq = TK_SEQ,
						      .ballots[WIRE_TOPOLOGY] = 4,
						      .view = {.global = 2, .view_id = 2, .n = 1}},
			.own = {.world_size = 2},
			.position = {.hosts = 2, .pos = (uint32_t)i}};
	}
	tk.know[2] = (struct tk_know){.r = {.prepared = 3, .prepared_peers = 4}};
	fk_manual(&tk.f);
	for (i = 0; i < 2; i++) {
		tk_come_back(i);
		tk_end(i);
	}
}

START_TEST(newcomers_may_know_the_commit_of_their_round)
{
	half_admitted();
	ck_assert(fk_status(&tk.f).recovering);
	assert_contains(fk_waiting(&tk.f), "committed");
	tk_come_back(3);
	tk_end(3);
	ck_assert(fk_status(&tk.f).recovering);
	tk_connect(2);
	tk_join(2, WM_JOIN_PREPARED);
	tk_end(2);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 4);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_COMMIT)->u.commit.round, 3);
	tk_no_error();
}
END_TEST

START_TEST(newcomers_are_awaited_for_a_limited_time)
{
	half_admitted();
	tk_connect(2);
	tk_join(2, WM_JOIN_PREPARED);
	tk_end(2);
	fk_tick(&tk.f, 2900);
	ck_assert(fk_status(&tk.f).recovering);
	fk_tick(&tk.f, 200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
	ck_assert_int_eq(fk_info(&tk.p[2]).phase, CCM_PEER_REGISTERED);
	tk_no_error();
	tk_come_back(3);
	ck_assert_uint_eq(fk_take(tk.h[3], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(round_that_a_peer_was_not_prepared_for_is_dropped)
{
	half_admitted();
	tk.know[2] = (struct tk_know){.r = {.aborted_round = 3}};
	tk_connect(2);
	tk_join(2, WM_JOIN_NEW);
	tk_end(2);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
	tk_no_error();
}
END_TEST

START_TEST(newcomer_that_has_left_is_not_awaited)
{
	half_admitted();
	tk_connect(2);
	tk_join(2, WM_JOIN_PREPARED);
	fk_leave(&tk.p[2], WM_LEAVE_DIED);
	tk_connect(3);
	tk_join(3, WM_JOIN_PREPARED);
	tk.know[3] = tk.know[2];
	tk_end(2);
	ck_assert(fk_status(&tk.f).recovering);
	tk_end(3);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
	tk_no_error();
}
END_TEST

/* A master that takes over uses other round numbers than a master that it does not know. */
START_TEST(rounds_of_two_masters_have_different_numbers)
{
	tk_come_back(0);
	tk_end(0);
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 3100);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_ROUND)->u.round.round, 2 + 1000000);
}
END_TEST

/* a and b have committed the round that c does not know, and then a ballot that changed nothing. */
START_TEST(ballot_without_changes_does_not_hide_a_commit)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		tk.know[i].r.epoch = tk.know[i].r.ring_epoch = 3;
		tk.know[i].r.round = 4;
		tk.know[i].r.view.view_id = 4;
	}
	tk.know[2].r.prepared = 3;
	tk.know[2].r.prepared_peers = 3;
	tk_all_come_back();
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_COMMIT)->u.commit.round, 3);
	tk_no_error();
	tk_works();
}
END_TEST

START_TEST(answered_topology_vote_is_answered_again)
{
	struct wm_msg msg = {.type = WM_BALLOT_VOTE};
	uint64_t round;

	tk.know[0].r.ballots[WIRE_TOPOLOGY] = tk.know[1].r.ballots[WIRE_TOPOLOGY] = 6;
	tk.know[0].r.round = tk.know[1].r.round = 3; /* the ballot changed nothing */
	tk_all_come_back();
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[2].id, WIRE_TOPOLOGY, 4};
	fk_send(tk.h[2], &msg);
	tk_all_end();
	ck_assert_uint_gt(fk_take(tk.h[2], WM_ROUND)->u.round.round, 3);
	/* This commit comes before or after the commit of the round that checks the rings. */
	round = fk_take(tk.h[2], WM_COMMIT)->u.commit.round;
	if (round == 3)
		round = fk_take(tk.h[2], WM_COMMIT)->u.commit.round;
	else
		ck_assert_uint_eq(fk_take(tk.h[2], WM_COMMIT)->u.commit.round, 3);
	ck_assert_uint_gt(round, 3);
	ck_assert_uint_eq(tk.h[2]->ballots[WIRE_TOPOLOGY], 6);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_COMMIT), 1);
	ck_assert_str_eq(fk_waiting(&tk.f), "");
	tk_no_error();
}
END_TEST

START_TEST(unanswered_topology_votes_count)
{
	size_t i;

	tk_all_come_back();
	fk_topo(&tk.p[0]);
	fk_topo(&tk.p[2]);
	tk_all_end();
	assert_contains(fk_waiting(&tk.f), "waiting for 1 of 3 peers to call pcclUpdateTopology");
	fk_forget(&tk.f);
	fk_topo(&tk.p[1]);
	for (i = 0; i < 3; i++) {
		const struct wm_commit *c = &fk_take(tk.h[i], WM_COMMIT)->u.commit;

		ck_assert(c->accept);
		ck_assert_uint_eq(c->ballots[WIRE_TOPOLOGY], 6);
	}
	tk_no_error();
}
END_TEST

START_TEST(pending_vote_is_answered_once)
{
	struct wm_msg msg = {.type = WM_BALLOT_VOTE};
	const struct wm_ballot_end *x;

	tk.know[0].r.ballots[WIRE_PENDING] = 9;
	tk_all_come_back();
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[2].id, WIRE_PENDING, 7};
	fk_send(tk.h[2], &msg);
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[0].id, WIRE_PENDING, 9};
	fk_send(tk.h[0], &msg);
	tk_all_end();
	x = &fk_take(tk.h[2], WM_BALLOT_END)->u.ballot_end;
	ck_assert_uint_eq(x->number, 9);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_BALLOT_END), 0);
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[2].id, WIRE_PENDING, 9};
	fk_send(tk.h[2], &msg);
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[1].id, WIRE_PENDING, 9};
	fk_send(tk.h[1], &msg);
	x = &fk_take(tk.h[0], WM_BALLOT_END)->u.ballot_end;
	ck_assert_uint_eq(x->number, 10);
	tk_no_error();
}
END_TEST

/* One peer was told that newcomers are pending. Its agent and the master died. The others get the
 * same answer, although no newcomer is pending. */
START_TEST(pending_answer_is_known_from_the_peer_that_got_it)
{
	struct wm_msg msg = {.type = WM_BALLOT_VOTE};
	size_t i;

	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk.h[0]->peers = (struct wm_join){.ballots[WIRE_PENDING] = 5};
	tk.know[0] = (struct tk_know){.own.group = 9};
	tk_join(0, WM_JOIN_ACCEPTED);
	for (i = 1; i < 3; i++) {
		tk.know[i].r.ballots[WIRE_PENDING] = 2;
		tk_come_back(i);
		msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[i].id, WIRE_PENDING, 2};
		fk_send(tk.h[i], &msg);
	}
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	for (i = 1; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_BALLOT_END)->u.ballot_end.number, 5);
}
END_TEST

START_TEST(peer_with_another_pending_answer_is_kicked)
{
	struct wm_msg msg = {.type = WM_BALLOT_VOTE};

	tk.know[0].r.ballots[WIRE_PENDING] = 4;
	tk_all_come_back();
	tk_all_end();
	msg.u.ballot_vote = (struct wm_ballot_vote){tk.p[1].id, WIRE_PENDING, 5};
	fk_send(tk.h[1], &msg);
	assert_contains(
		fk_take(tk.h[1], WM_KICK)->u.kick.text, "different answers about pending peers");
	ck_assert(fk_present(&tk.p[0]) && !fk_present(&tk.p[1]) && fk_present(&tk.p[2]));
}
END_TEST

/* The last master kicked c and sent the view without c to b's agent. c's agent died with the
 * master. */
START_TEST(kicked_peer_that_was_not_told_is_kicked_again)
{
	tk_come_back(0);
	tk_end(0);
	tk.h[2] = fk_reconnect_as(tk.h[2], 0, true);
	tk.h[2]->peers = (struct wm_join){.ballots[WIRE_TOPOLOGY] = 4, .view_id = 2, .global = 3};
	tk_join(2, WM_JOIN_ACCEPTED);
	tk.know[2] = (struct tk_know){.own.group = 9};
	tk_end(2);
	tk.know[1].r.view.view_id = 4;
	tk.know[1].r.view.global = tk.know[1].own.world_size = 2;
	tk.know[1].lost = tk.p[2].id;
	tk.know[1].r.view.n_lost = 1;
	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]) && !fk_present(&tk.p[2]));
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
}
END_TEST

Suite *resume_rounds_suite(void)
{
	Suite *s = suite_create("resume_rounds");
	TCase *tc = tcase_create("resume_rounds");

	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_test(tc, late_ballot_numbers_count);
	tcase_add_test(tc, ballots_of_strangers_do_not_count);
	tcase_add_test(tc, a_peer_with_a_new_agent_knows_its_ballots);
	tcase_add_test(tc, round_is_committed_if_one_agent_knows_its_commit);
	tcase_add_loop_test(tc, newcomer_lost_before_its_commit_is_no_member, 0, 2);
	tcase_add_test(tc, round_is_dropped_if_no_agent_knows_its_commit);
	tcase_add_test(tc, newcomers_may_know_the_commit_of_their_round);
	tcase_add_test(tc, newcomers_are_awaited_for_a_limited_time);
	tcase_add_test(tc, round_that_a_peer_was_not_prepared_for_is_dropped);
	tcase_add_test(tc, newcomer_that_has_left_is_not_awaited);
	tcase_add_test(tc, rounds_of_two_masters_have_different_numbers);
	tcase_add_test(tc, ballot_without_changes_does_not_hide_a_commit);
	tcase_add_test(tc, answered_topology_vote_is_answered_again);
	tcase_add_test(tc, unanswered_topology_votes_count);
	tcase_add_test(tc, pending_vote_is_answered_once);
	tcase_add_test(tc, pending_answer_is_known_from_the_peer_that_got_it);
	tcase_add_test(tc, peer_with_another_pending_answer_is_kicked);
	tcase_add_test(tc, kicked_peer_that_was_not_told_is_kicked_again);
	suite_add_tcase(s, tc);
	return s;
}
