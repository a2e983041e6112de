/* SPDX-License-Identifier: MIT
 *
 * The master's core: agents and peers that come back after a disconnect.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

START_TEST(join_with_the_token_is_the_same_peer)
{
	struct fk_host *d = fk_host(&f, "c", "10.0.0.9");
	const struct wm_round *w;
	uint64_t epoch;

	fk_cut(b, "the process died");
	ck_assert_int_eq(fk_info(&q).rank, -1);
	ck_assert(fk_info(&q).disconnected);
	fk_forget(&f);
	epoch = a->epoch;
	q = fk_join_again(&q, d, WM_JOIN_ACCEPTED);
	ck_assert_int_eq(fk_info(&q).phase, CCM_PEER_ACCEPTED);
	ck_assert(!fk_info(&q).disconnected);
	/* The position in the ring is kept. */
	ck_assert_int_eq(fk_info(&q).rank, 1);
	w = &fk_take(d, WM_ROUND)->u.round;
	ck_assert(!w->accept);
	ck_assert(cc_id_eq(&w->rings[0].members[0], &q.id));
	ck_assert(cc_id_eq(&fk_take(a, WM_ROUND)->u.round.rings[0].next.agent, &d->id));
	ck_assert_uint_gt(fk_take(d, WM_COMMIT)->u.commit.epoch, epoch);
	ck_assert_uint_eq(d->epoch, a->epoch);
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
	vote_all(1);
	ck_assert_uint_eq(fk_count(d, WM_OP_START), 1);
	/* The end of the old agent concerns no peer any more. */
	fk_tick(&f, 6000);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
}
END_TEST

START_TEST(a_wrong_token_changes_nothing)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.9");
	struct fk_peer thief = r;
	const struct wm_kick *k;

	thief.token.b[3] ^= 1;
	(void)fk_join_again(&thief, d, WM_JOIN_ACCEPTED);
	k = &fk_take(d, WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_INVALID_USAGE);
	ck_assert(cc_id_eq(&k->peer, &r.id));
	ck_assert(c->open);
	fk_cut(c, "reset");
	(void)fk_join_again(&thief, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_INVALID_USAGE);
	thief.token = (struct cc_id){{0}};
	(void)fk_join_again(&thief, d, WM_JOIN_NEW);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_INVALID_USAGE);
	thief = r;
	thief.group = 3;
	(void)fk_join_again(&thief, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_INVALID_USAGE);
	ck_assert_uint_eq(fk_status(&f).disconnected, 1);
	ck_assert(d->open);
}
END_TEST

START_TEST(peer_without_a_token_cannot_be_taken_over)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.9");
	struct fk_peer x = {.host = c, .id = fk_id(&f)};

	(void)fk_join_again(&x, c, WM_JOIN_NEW);
	fk_forget(&f);
	(void)fk_join_again(&x, d, WM_JOIN_NEW);
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_INVALID_USAGE);
	ck_assert(fk_present(&x));
}
END_TEST

START_TEST(strangers_are_told_to_connect_again)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.9");
	struct fk_peer x = {.host = d, .id = fk_id(&f), .token = {{1}}};
	const struct wm_kick *k;

	fk_cut(c, "reset");
	fk_tick(&f, 5100);
	fk_tick(&f, 2000);
	(void)fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	k = &fk_take(d, WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(k->text, "was declared lost 2.0 s ago: call pcclConnect again");
	(void)fk_join_again(&x, d, WM_JOIN_ACCEPTED);
	k = &fk_take(d, WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_RANK_CONNECTION_LOST);
	assert_contains(k->text, "call pcclConnect again");
	ck_assert(!fk_present(&x));
	ck_assert(d->open);
}
END_TEST

START_TEST(returning_agent_closes_its_half_open_connection)
{
	struct fk_host *old = c;
	struct fk_peer x = fk_join(c, 0), y;

	fk_forget(&f);
	c = fk_reconnect(old);
	ck_assert(!old->open);
	ck_assert_uint_eq(fk_count(old, WM_REFUSE), 0);
	ck_assert(fk_take(c, WM_HELLO_ACK)->u.hello_ack.resume);
	ck_assert_uint_eq(fk_status(&f).disconnected, 1);
	ck_assert(!fk_present(&x)); /* x was only registered */
	y = fk_join(c, 0);          /* a newcomer joins first */
	ck_assert_uint_eq(fk_count(c, WM_KICK), 0);
	x = fk_join_again(&x, c, WM_JOIN_NEW);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	ck_assert_int_eq(fk_info(&r).rank, 2);
	topo_all();
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert_int_eq(fk_info(&y).phase, CCM_PEER_ACCEPTED);
}
END_TEST

START_TEST(no_round_begins_before_all_peers_of_an_agent_are_back)
{
	struct fk_peer second = fk_join(c, 0);

	topo_all();
	fk_cut(c, "reset");
	fk_forget(&f);
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	/* The other peer on this host regards itself as accepted, too. */
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 0);
	ck_assert(!fk_status(&f).round_active);
	assert_contains(fk_waiting(&f), "waiting for the snapshot of the agent on c");
	second = fk_join_again(&second, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	ck_assert_uint_eq(fk_take(c, WM_ROUND)->u.round.rings[0].n_members, 2);
	ck_assert_uint_eq(fk_count(c, WM_COMMIT), 1);
	ck_assert(fk_present(&second));
}
END_TEST

/* c's agent was disconnected when q was lost. Without the wait, c's peer would continue with a
 * view that contains q, and p with a view without q. */
START_TEST(pending_vote_waits_until_all_have_the_same_view)
{
	fk_cut(c, "reset");
	fk_leave(&q, WM_LEAVE_DIED);
	c = _i ? fk_host(&f, "c", "10.0.0.9") : fk_reconnect(c);
	a->auto_report = false;
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_forget(&f);
	fk_pending(&p);
	fk_pending(&r);
	ck_assert_uint_eq(fk_count(a, WM_BALLOT_END) + fk_count(c, WM_BALLOT_END), 0);
	if (!_i)
		fk_resumed(c);
	fk_round_report(a, NULL, "");
	ck_assert_uint_eq(fk_count(a, WM_BALLOT_END), 1);
	ck_assert_uint_eq(fk_take(c, WM_COMMIT)->u.commit.view.global, 2);
	ck_assert_uint_eq(fk_count(c, WM_BALLOT_END), 1);
}
END_TEST

START_TEST(no_round_waits_for_an_agent_silent_in_its_snapshot)
{
	fk_cut(c, "reset");
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_tick_silent(&f, 3200, c);
	ck_assert(!c->open);
	ck_assert(!fk_present(&r));
	ck_assert_uint_eq(fk_take(a, WM_ROUND)->u.round.rings[0].hosts, 2);
	ck_assert(!fk_status(&f).round_active);
}
END_TEST

START_TEST(peer_on_another_agent_closes_the_old_connection)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.9");
	struct fk_peer second = fk_join(c, 0);

	topo_all();
	fk_vote(&r, 1);
	fk_forget(&f);
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	assert_contains(fk_take(c, WM_REFUSE)->u.refuse.text, "another agent on d has taken over");
	ck_assert(!c->open);
	ck_assert(fk_info(&second).disconnected);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	ck_assert_uint_eq(fk_status(&f).accepted, 4);
}
END_TEST

/* The last messages of a dead agent are read after its peers have joined through the next agent. */
START_TEST(late_messages_of_a_dead_agent_change_nothing)
{
	struct fk_peer x = fk_admit(c, 0, (struct fk_peer[]){p, q, r}, 3), late = x, again;
	struct fk_host *d;

	late.id = fk_id(&f);
	late.token = fk_id(&f);
	d = fk_host(&f, "c", "10.0.0.3");
	fk_forget(&f);
	again = fk_join_again(&late, d, WM_JOIN_NEW);
	(void)fk_join_again(&late, c, WM_JOIN_NEW);
	ck_assert(d->open);
	ck_assert_uint_eq(fk_count(d, WM_REFUSE), 0);
	ck_assert(fk_present(&again));
	ck_assert(!c->open);
	ck_assert(fk_info(&r).disconnected);
	ck_assert(fk_info(&x).disconnected);
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	x = fk_join_again(&x, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_count(d, WM_KICK), 0);
	ck_assert_int_eq(fk_info(&r).phase, CCM_PEER_ACCEPTED);
	ck_assert(!fk_info(&x).disconnected);
	ck_assert_uint_eq(fk_status(&f).lost_members, 0);
}
END_TEST

START_TEST(repeated_connect_is_the_same_peer)
{
	struct fk_host *d = fk_host(&f, "c", "10.0.0.9");
	const struct wm_msg *w;

	/* The peer was accepted, but its agent died before it could answer. */
	fk_cut(c, "died");
	fk_forget(&f);
	r = fk_join_again(&r, d, WM_JOIN_NEW);
	ck_assert_int_eq(fk_info(&r).phase, CCM_PEER_ACCEPTED);
	/* The agent accepts only an accepting round as the answer to a join. */
	w = fk_take(d, WM_ROUND);
	ck_assert(w->u.round.accept);
	w = fk_take(d, WM_COMMIT);
	ck_assert(w->u.commit.accept);
	ck_assert(!fk_take(a, WM_COMMIT)->u.commit.accept);
	ck_assert_uint_eq(fk_status(&f).accepted, 3);
	ck_assert_uint_eq(fk_status(&f).registered, 0);
	fk_leave(&p, WM_LEAVE_CLEAN);
	ck_assert(!fk_take(d, WM_ROUND)->u.round.accept);
}
END_TEST

START_TEST(peer_that_returns_during_a_round_is_in_the_next_one)
{
	struct fk_peer second = fk_join(c, 0);
	struct fk_host *d;
	uint64_t round;

	topo_all();
	d = fk_host(&f, "c", "10.0.0.9");
	fk_manual(&f);
	fk_cut(c, "died");
	fk_forget(&f);
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	round = fk_status(&f).round;
	ck_assert_uint_eq(d->round.rings[0].n_members, 1);
	second = fk_join_again(&second, d, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_status(&f).round, round);
	vote_all(1);
	fk_vote(&second, 1);
	fk_round_report(a, NULL, NULL);
	fk_round_report(b, NULL, NULL);
	fk_round_report(d, NULL, NULL);
	ck_assert_uint_eq(fk_status(&f).round, round + 1);
	ck_assert_uint_eq(d->round.rings[0].n_members, 2);
	ck_assert_uint_eq(fk_status(&f).ops_started, 0);
	fk_round_report(a, NULL, NULL);
	fk_round_report(b, NULL, NULL);
	fk_round_report(d, NULL, NULL);
	ck_assert_uint_eq(fk_status(&f).ops_started, 1);
	ck_assert_int_eq(fk_info(&second).rank, 3);
}
END_TEST

START_TEST(agent_that_returns_during_a_round_gets_no_commit)
{
	struct fk_host *x, *y;

	fk_manual(&f);
	fk_cut(b, "died");
	fk_cut(c, "died");
	x = fk_reconnect(b);
	x->auto_report = false;
	q = fk_join_again(&q, x, WM_JOIN_ACCEPTED);
	fk_resumed(x);
	y = fk_reconnect(c);
	r = fk_join_again(&r, y, WM_JOIN_ACCEPTED);
	fk_resumed(y);
	fk_round_report(a, NULL, NULL);
	fk_round_report(x, NULL, NULL);
	ck_assert_uint_eq(fk_count(x, WM_COMMIT), 1);
	ck_assert_uint_eq(fk_count(y, WM_COMMIT), 0);
	ck_assert_uint_eq(fk_count(y, WM_ROUND), 1);
}
END_TEST

START_TEST(all_agents_may_be_disconnected)
{
	fk_cut(a, "died");
	fk_cut(b, "died");
	fk_cut(c, "died");
	ck_assert_uint_eq(fk_status(&f).disconnected, 3);
	a = fk_reconnect(a);
	p = fk_join_again(&p, a, WM_JOIN_ACCEPTED);
	fk_resumed(a);
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	b = fk_reconnect(b);
	q = fk_join_again(&q, b, WM_JOIN_ACCEPTED);
	fk_resumed(b);
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
	ck_assert_int_eq(fk_info(&r).rank, 2);
	a->generations[0].generation = b->generations[0].generation = c->generations[0].generation =
		3;
	vote_all(1);
	ck_assert_uint_eq(fk_status(&f).ops_started, 1);
}
END_TEST

START_TEST(outcomes_of_attempts_are_remembered)
{
	static const uint64_t seqs[] = {2, 1, 77, 3};
	struct fk_host *d = fk_host(&f, "c", "10.0.0.9");
	const struct wm_op_outcomes *o;
	uint64_t seq;

	for (seq = 1; seq <= 3; seq++) {
		vote_all(seq);
		fk_report(a, seq, true);
		fk_report(b, seq, true);
		if (seq != 3)
			fk_report(c, seq, seq == 1);
	}
	fk_cut(c, "died");
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	fk_query(&r, 4, seqs, 0);
	o = &fk_take(d, WM_OP_OUTCOMES)->u.op_outcomes;
	ck_assert(cc_id_eq(&o->peer, &r.id));
	ck_assert_uint_eq(o->n, 4);
	ck_assert_uint_eq(o->v[0].seq, 2);
	ck_assert_uint_eq(o->v[0].code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(o->v[1].seq, 1);
	ck_assert_uint_eq(o->v[1].code, WIRE_SUCCESS);
	ck_assert_uint_eq(o->v[2].seq, 77);
	ck_assert_uint_eq(o->v[2].code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(o->v[3].code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

/* Otherwise this agent could tell the next master that the attempt has succeeded, but not that b
 * was lost before. */
START_TEST(new_agent_gets_the_view_before_outcomes)
{
	static const uint64_t seq = 1;
	struct fk_host *d = fk_host(&f, "c", "10.0.0.9");

	vote_all(1);
	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	fk_leave(&q, WM_LEAVE_DIED);
	fk_cut(c, "died");
	d->auto_report = false; /* no commit, which would have a view */
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	fk_query(&r, 1, &seq, 0);
	ck_assert_int_eq(d->inbox[d->n - 2].type, WM_VIEW);
	ck_assert_int_eq(d->inbox[d->n - 1].type, WM_OP_OUTCOMES);
	ck_assert_uint_eq(fk_take(d, WM_VIEW)->u.view.n_lost, 1);
	ck_assert(cc_id_eq(&d->last.u.view.lost[0], &q.id));
}
END_TEST

START_TEST(all_outcomes_that_can_be_in_doubt_are_remembered)
{
	struct fk_host *d = fk_host(&f, "c", "10.0.0.9");
	const struct wm_op_outcomes *o;
	uint64_t seq, tag, seqs[WM_OUTCOMES_MAX];

	for (tag = 1; tag <= WM_OUTCOMES_MAX + 1; tag++) {
		vote_all(tag);
		seq = fk_status(&f).last_seq;
		fk_report(a, seq, true);
		fk_report(b, seq, true);
		fk_report(c, seq, true);
		seqs[tag % WM_OUTCOMES_MAX] = seq;
	}
	fk_cut(c, "died");
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	fk_query(&r, WM_OUTCOMES_MAX, seqs, 0);
	o = &fk_take(d, WM_OP_OUTCOMES)->u.op_outcomes;
	for (seq = 0; seq < WM_OUTCOMES_MAX; seq++)
		ck_assert_uint_eq(o->v[seq].code, WIRE_SUCCESS);
}
END_TEST

START_TEST(broken_connection_does_not_hide_an_outcome)
{
	vote_all(1);
	vote_all(2);
	fk_report(a, 1, true);
	fk_report(b, 1, true);
	fk_report(c, 1, true);
	fk_cut(c, "reset");
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_vote_seq(&r, 1, 1);
	fk_vote_seq(&r, 2, 2);
	fk_report(c, 2, true);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.seq, 1);
	ck_assert_uint_eq(fk_take(c, WM_OP_ABORT)->u.op_abort.seq, 2);
	ck_assert(c->open);
	/* A vote for an operation that has not started is answered like any vote from before a
	 * loss. */
	c->generations[0].generation = 0;
	fk_vote(&r, 3);
	ck_assert_uint_eq(fk_take(c, WM_OP_ABORT)->u.op_abort.tag, 3);
}
END_TEST

START_TEST(agent_must_complete_its_snapshot_in_time)
{
	fk_cut(c, "reset");
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_tick(&f, 4900);
	ck_assert(c->open);
	ck_assert(!fk_status(&f).round_active);
	fk_tick(&f, 300);
	assert_contains(c->closed, "did not complete its snapshot");
	ck_assert(!fk_present(&r));
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* The agent sends more messages for its peer before it receives the kick. These messages are from
 * the time of another master. */
START_TEST(messages_for_refused_peers_are_ignored)
{
	struct fk_peer old;

	fk_leave(&r, WM_LEAVE_DIED);
	c = fk_reconnect(c);
	old = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_count(c, WM_KICK), 1);
	c->generations[0].generation = 1000;
	fk_vote(&old, 1);
	fk_report(c, 1000, true);
	ck_assert(c->open);
	fk_resumed(c);
	r = fk_join(c, 0);
	fk_topo(&p);
	fk_topo(&q);
	ck_assert(fk_present(&r));
	c->generations[0].generation = 1000;
	fk_vote(&r, 1);
	assert_contains(c->closed, "a generation that the group has not reached");
}
END_TEST

/* Otherwise the application would try again with the old generation, and fail again. */
START_TEST(loss_is_sent_before_the_aborts_that_it_causes)
{
	vote_all(1);
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	c->generations[0].generation = 0;
	fk_vote_seq(&r, 1, 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 1);
	ck_assert_uint_eq(c->generations[0].generation, 1);
	fk_vote_seq(&r, 2, 1);
	fk_resumed(c);
	ck_assert_uint_eq(fk_count(c, WM_VIEW), 1);
}
END_TEST

/* A view was sent when only one of the two groups of the agent was back, so the other one does not
 * know of the loss yet. */
START_TEST(group_that_is_back_last_gets_its_loss_before_aborts)
{
	struct fk_peer others[] = {p, q, r};
	struct fk_peer x = fk_admit(c, 1, others, 3);

	c = fk_reconnect(c);
	x = fk_join_again(&x, c, WM_JOIN_ACCEPTED);
	fk_leave(&q, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(c, WM_VIEW)->u.view.n, 1);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_forget(&f);
	c->generations[0].generation = 0;
	fk_vote(&r, 1);
	ck_assert_int_eq(c->inbox[c->n - 2].type, WM_VIEW);
	ck_assert_int_eq(c->inbox[c->n - 1].type, WM_OP_ABORT);
	ck_assert_uint_eq(fk_take(c, WM_VIEW)->u.view.n, 2);
	fk_vote(&r, 2);
	ck_assert_uint_eq(fk_count(c, WM_VIEW), 0); /* once is enough */
}
END_TEST

START_TEST(only_a_snapshot_may_vote_for_started_attempts)
{
	vote_all(1);
	c = fk_reconnect(c);
	r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
	fk_resumed(c);
	fk_vote_seq(&r, 1, 1);
	assert_contains(c->closed, "a vote for an attempt that has started");
	b = fk_reconnect(b);
	q = fk_join_again(&q, b, WM_JOIN_ACCEPTED);
	fk_vote_seq(&q, 1, 99);
	assert_contains(b->closed, "a vote for an attempt that never started");
}
END_TEST

/* Another master has continued with x, which this master does not know. s is a newcomer on the same
 * agent. */
START_TEST(agent_with_a_stranger_and_a_newcomer_is_kept)
{
	struct fk_peer x = {.id = fk_id(&f), .token = fk_id(&f), .group = 0}, s;

	x.host = c = fk_reconnect(c);
	x = fk_join_again(&x, c, WM_JOIN_ACCEPTED);
	ck_assert_uint_eq(fk_count(c, WM_KICK), 1);
	s = fk_join(c, 0);
	fk_vote_seq(&x, 1, 99);
	fk_report(c, 99, true);
	fk_resumed(c);
	ck_assert_msg(c->open, "%s", c->closed);
	ck_assert(fk_present(&s));
}
END_TEST

/* The agent has a second connection, for a newcomer. Its first connection, with state of the run,
 * is only for peers that have left. */
START_TEST(peer_on_a_superseded_connection_is_lost)
{
	struct fk_host *d, *e;
	struct wm_msg hello;
	struct fk_peer x;

	fk_cut(c, "reset");
	e = fk_reconnect(c);
	d = fk_connect(&f, "c", "10.9.0.2");
	d->id = c->id;
	hello = fk_hello(d);
	fk_send(d, &hello);
	x = fk_join(d, 0);
	fk_forget(&f);
	r = fk_join_again(&r, e, WM_JOIN_ACCEPTED);
	assert_contains(fk_take(e, WM_KICK)->u.kick.text, "has another connection");
	ck_assert(!fk_present(&r));
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.global, 2);
	fk_leave(&r, WM_LEAVE_DIED);
	fk_resumed(e);
	fk_topo(&p);
	fk_topo(&q);
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* The new agent had state of the run only for r, which has left again. The master does not know
 * this yet. */
START_TEST(peers_of_a_dead_agent_return_on_two_connections)
{
	struct fk_peer x = fk_admit(c, 0, (struct fk_peer[]){p, q, r}, 3);
	struct fk_host *d, *e;
	struct wm_msg hello;

	fk_cut(c, "the process died");
	e = fk_reconnect_as(c, 1, true);
	r = fk_join_again(&r, e, WM_JOIN_ACCEPTED);
	fk_resumed(e);
	d = fk_connect(&f, "c", "10.9.0.2");
	d->id = e->id;
	hello = fk_hello(d);
	fk_send(d, &hello);
	fk_forget(&f);
	x = fk_join_again(&x, d, WM_JOIN_NEW);
	ck_assert_uint_eq(fk_count(d, WM_KICK), 0);
	ck_assert(!e->open);
	ck_assert(!fk_present(&r));
	ck_assert_int_eq(fk_info(&x).phase, CCM_PEER_ACCEPTED);
	ck_assert(!fk_info(&x).disconnected);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.global, 3);
	(void)fk_take(d, WM_COMMIT);
	r = x;
	vote_all(1);
	ck_assert_uint_eq(fk_count(d, WM_OP_START), 1);
}
END_TEST

/* Two peers attached to a new agent, which opened a connection for each. When the first answer
 * came, the agent knew that both peers belong to one run, but the second HELLO was on its way
 * already. */
START_TEST(second_hello_for_the_same_run_breaks_nothing)
{
	struct fk_host *d, *e;
	struct wm_msg hello;

	fk_cut(c, "the process died");
	d = fk_host(&f, "c", "10.0.0.9");
	r = fk_join_again(&r, d, WM_JOIN_ACCEPTED);
	fk_forget(&f);
	e = fk_connect(&f, "c", "10.9.0.2");
	e->id = d->id;
	hello = fk_hello(e);
	hello.u.hello.run = f.run;
	fk_send(e, &hello);
	ck_assert(d->open);
	ck_assert(!fk_info(&r).disconnected);
	fk_cut(e, "closed");
	ck_assert(fk_present(&r) && !fk_info(&r).disconnected);
	vote_all(1);
	ck_assert_uint_eq(fk_count(d, WM_OP_START), 1);
}
END_TEST

Suite *return_suite(void)
{
	Suite *s = suite_create("return");
	TCase *tc = tcase_create("return");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, join_with_the_token_is_the_same_peer);
	tcase_add_test(tc, a_wrong_token_changes_nothing);
	tcase_add_test(tc, peer_without_a_token_cannot_be_taken_over);
	tcase_add_test(tc, strangers_are_told_to_connect_again);
	tcase_add_test(tc, returning_agent_closes_its_half_open_connection);
	tcase_add_test(tc, no_round_begins_before_all_peers_of_an_agent_are_back);
	tcase_add_loop_test(tc, pending_vote_waits_until_all_have_the_same_view, 0, 2);
	tcase_add_test(tc, no_round_waits_for_an_agent_silent_in_its_snapshot);
	tcase_add_test(tc, peer_on_another_agent_closes_the_old_connection);
	tcase_add_test(tc, late_messages_of_a_dead_agent_change_nothing);
	tcase_add_test(tc, repeated_connect_is_the_same_peer);
	tcase_add_test(tc, peer_that_returns_during_a_round_is_in_the_next_one);
	tcase_add_test(tc, agent_that_returns_during_a_round_gets_no_commit);
	tcase_add_test(tc, all_agents_may_be_disconnected);
	tcase_add_test(tc, outcomes_of_attempts_are_remembered);
	tcase_add_test(tc, new_agent_gets_the_view_before_outcomes);
	tcase_add_test(tc, all_outcomes_that_can_be_in_doubt_are_remembered);
	tcase_add_test(tc, broken_connection_does_not_hide_an_outcome);
	tcase_add_test(tc, agent_must_complete_its_snapshot_in_time);
	tcase_add_test(tc, messages_for_refused_peers_are_ignored);
	tcase_add_test(tc, loss_is_sent_before_the_aborts_that_it_causes);
	tcase_add_test(tc, group_that_is_back_last_gets_its_loss_before_aborts);
	tcase_add_test(tc, only_a_snapshot_may_vote_for_started_attempts);
	tcase_add_test(tc, agent_with_a_stranger_and_a_newcomer_is_kept);
	tcase_add_test(tc, peer_on_a_superseded_connection_is_lost);
	tcase_add_test(tc, peers_of_a_dead_agent_return_on_two_connections);
	tcase_add_test(tc, second_hello_for_the_same_run_breaks_nothing);
	suite_add_tcase(s, tc);
	return s;
}
