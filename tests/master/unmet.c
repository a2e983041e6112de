/* SPDX-License-Identifier: MIT
 *
 * The master's core: calls that can never meet are answered, others are left to wait.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"
#include "tests/master/trio.h"

/* Votes for operations are of calls that wait. */
static void setup_waiting(void)
{
	setup();
	f.waits_for = WM_WAIT_FOR_MAIN;
}

static void async_vote(const struct fk_peer *x, uint64_t tag)
{
	uint32_t before = x->host->fk->waits_for;

	x->host->fk->waits_for = WM_WAIT_FOR_NONE;
	fk_vote(x, tag);
	x->host->fk->waits_for = before;
}

static void spec_vote(const struct fk_peer *x, uint64_t tag, uint64_t seq)
{
	struct cc_id id = x->id;
	struct wm_msg m = {.type = WM_OP_VOTE};

	m.u.op_vote = (struct wm_op_vote){.tag = tag,
		.params = fk_params,
		.n_peers = 1,
		.peers = &id,
		.generation = fk_generation(x->host, 0),
		.spec_seq = seq,
		.waits_for = WM_WAIT_FOR_MAIN};
	fk_send(x->host, &m);
}

/* x, which has voted for the tag, waits for it by now. */
static void waits(const struct fk_peer *x, uint64_t tag, enum wm_wait_for_kind kind)
{
	struct wm_msg m = {.type = WM_WAITS_FOR, .u.waits_for = {x->id, tag, kind, 0}};

	fk_send(x->host, &m);
}

/* x waits for any of n that it has voted for, of which tag is one. */
static void waits_for_any(const struct fk_peer *x, uint64_t tag, uint32_t n)
{
	struct wm_msg m = {.type = WM_WAITS_FOR, .u.waits_for = {x->id, tag, WM_WAIT_FOR_MAIN, n}};

	fk_send(x->host, &m);
}

/* What x's call was answered with. */
static struct wm_unmet unmet(const struct fk_peer *x, enum wm_wait_kind kind)
{
	struct wm_unmet u = fk_take(x->host, WM_UNMET)->u.unmet;

	ck_assert_uint_eq(u.kind, kind);
	ck_assert_uint_eq(u.n_peers, 1);
	ck_assert(cc_id_eq(&u.peers[0], &x->id));
	return u;
}

static void unchanged(const struct fk_peer *x)
{
	ck_assert_uint_eq(unmet(x, WM_WAIT_TOPOLOGY).code, 0);
}

static struct wm_unmet refused(const struct fk_peer *x, uint64_t tag)
{
	struct wm_unmet u = unmet(x, WM_WAIT_OP);

	ck_assert_uint_eq(u.group, x->group);
	ck_assert_uint_eq(u.tag, tag);
	ck_assert_uint_eq(u.code, WIRE_INVALID_USAGE);
	return u;
}

static size_t answers(void)
{
	return fk_count(a, WM_UNMET) + fk_count(b, WM_UNMET) + fk_count(c, WM_UNMET);
}

/* All go on and do an operation together. */
static void meet(uint64_t tag)
{
	uint64_t seq;

	vote_all(tag);
	seq = fk_status(&f).last_seq;
	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
	fk_forget(&f);
}

/* The loop at the top of pccl.h: a newcomer begins with an update, the others reduce. */
START_TEST(a_topology_vote_that_reduces_wait_for_is_answered_at_once)
{
	uint64_t epoch = fk_status(&f).epoch;

	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_topo(&r);
	unchanged(&r);
	ck_assert_uint_eq(answers(), 0);
	ck_assert_uint_eq(fk_count(c, WM_COMMIT), 0);
	ck_assert_uint_eq(fk_status(&f).epoch, epoch);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	ck_assert_uint_eq(fk_count(c, WM_OP_START), 1);
}
END_TEST

START_TEST(the_order_of_the_calls_does_not_matter)
{
	fk_topo(&r);
	fk_vote(&p, 1);
	unchanged(&r);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(an_answer_alone_ends_no_ballot)
{
	uint64_t ballot = c->topo_ballot;

	fk_vote(&p, 1);
	fk_topo(&r);
	unchanged(&r);
	ck_assert_uint_eq(c->topo_ballot, ballot);
	fk_vote(&r, 1);
	fk_vote(&q, 1);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	topo_all();
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 1);
	ck_assert_uint_eq(fk_count(c, WM_COMMIT), 1);
	ck_assert_uint_eq(c->topo_ballot, ballot + 1);
	ck_assert_uint_eq(a->topo_ballot, ballot + 1);
}
END_TEST

/* Who waits in pcclConnect goes on waiting, and comes in with the next vote of all. */
START_TEST(a_newcomer_waits_on)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer s = fk_join(d, 0);

	fk_vote(&p, 1);
	fk_topo(&q);
	unchanged(&q);
	ck_assert_int_eq(fk_info(&s).phase, CCM_PEER_REGISTERED);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	topo_all();
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&s).phase, CCM_PEER_ACCEPTED);
}
END_TEST

/* A newcomer could come in only when p votes as well: a loop that updates while peers are pending
 * ends, and meets p. */
START_TEST(who_asks_while_others_wait_in_operations_hears_of_no_newcomer)
{
	struct wm_unmet u;

	(void)fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	if (_i)
		fk_sync(&p, fk_candidate(1, 1));
	else
		fk_vote(&p, 1);
	fk_pending(&q);
	u = unmet(&q, WM_WAIT_PENDING);
	ck_assert(!u.pending && u.code == 0);
	fk_topo(&r);
	unchanged(&r);
	fk_pending(&r);
	ck_assert(!unmet(&r, WM_WAIT_PENDING).pending);
	ck_assert_uint_eq(fk_count(c, WM_PENDING_ANSWER), 0);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

START_TEST(a_pending_and_a_topology_vote_are_answered_both)
{
	fk_pending(&p);
	ck_assert_uint_eq(answers(), 0);
	fk_topo(&q);
	unchanged(&q);
	ck_assert(!unmet(&p, WM_WAIT_PENDING).pending);
	meet(1);
}
END_TEST

/* Were the others answered as well, they would ask while these update, without end. */
START_TEST(who_asks_comes_to_those_that_update)
{
	struct fk_peer s = fk_join(fk_host(&f, "d", "10.0.0.4"), 0);

	fk_pending(&p);
	fk_topo(&q);
	fk_topo(&r);
	ck_assert(unmet(&p, WM_WAIT_PENDING).pending);
	ck_assert_uint_eq(answers(), 0);
	fk_topo(&p);
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&s).phase, CCM_PEER_ACCEPTED);
}
END_TEST

START_TEST(a_synchronization_meets_an_update)
{
	fk_sync(&p, fk_candidate(1, 1));
	fk_topo(&q);
	unchanged(&q);
	fk_sync(&q, fk_candidate(1, 1));
	fk_sync(&r, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(two_tags_are_refused_to_all)
{
	struct wm_unmet u;

	fk_vote(&p, 1);
	fk_vote(&q, 2);
	ck_assert_uint_eq(answers(), 0); /* r would call alone */
	fk_vote(&r, 1 + (uint64_t)_i);
	u = unmet(&p, WM_WAIT_OP);
	ck_assert_uint_eq(u.tag, 1);
	ck_assert_uint_eq(u.code, WIRE_INVALID_USAGE);
	assert_contains(u.text, "all-reduce of tag 1 in group 0 (train@a pid ");
	assert_contains(u.text, "all-reduce of tag 2 in group 0 (train@b pid ");
	assert_contains(u.text, " and 1 more)");
	ck_assert_uint_lt(strlen(u.text), 256);
	(void)refused(&q, 2);
	(void)refused(&r, 1 + (uint64_t)_i);
	ck_assert_uint_eq(answers(), 0);
	meet(3);
}
END_TEST

START_TEST(a_synchronization_and_a_reduce_are_refused_to_all)
{
	struct wm_unmet u;

	fk_vote(&p, 1);
	fk_vote(&r, 1);
	fk_sync(&q, fk_candidate(1, 1));
	(void)refused(&p, 1);
	(void)refused(&r, 1);
	u = unmet(&q, WM_WAIT_SYNC);
	ck_assert_uint_eq(u.code, WIRE_INVALID_USAGE);
	assert_contains(u.text, "synchronization of group 0");
	meet(1);
}
END_TEST

/* First those who can go on do, and only then is it known that nobody can meet. */
START_TEST(three_peers_in_three_calls)
{
	fk_topo(&r);
	fk_vote(&p, 1);
	unchanged(&r);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&r, 2);
	ck_assert_uint_eq(answers(), 0);
	fk_sync(&q, fk_candidate(1, 1));
	(void)refused(&p, 1);
	(void)refused(&r, 2);
	ck_assert_uint_eq(unmet(&q, WM_WAIT_SYNC).code, WIRE_INVALID_USAGE);
	meet(1);
}
END_TEST

START_TEST(who_does_not_wait_may_still_vote)
{
	async_vote(&p, 1);
	fk_vote(&q, 2);
	fk_vote(&r, 2);
	ck_assert_uint_eq(answers(), 0);
	fk_tick(&f, 3000);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&p, 2);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* It has not voted for what the others wait for, and its own operation lacks them. */
START_TEST(who_begins_to_wait_says_so)
{
	async_vote(&p, 1);
	fk_vote(&q, 2);
	fk_vote(&r, 2);
	ck_assert_uint_eq(answers(), 0);
	waits(&p, 1, WM_WAIT_FOR_MAIN);
	(void)refused(&p, 1);
	(void)refused(&q, 2);
	(void)refused(&r, 2);
}
END_TEST

START_TEST(what_one_waits_for_may_have_ended_meanwhile)
{
	waits(&p, 7, WM_WAIT_FOR_MAIN);
	vote_all(1);
	waits(&p, 1, WM_WAIT_FOR_MAIN);
	ck_assert_uint_eq(answers(), 0);
	ck_assert_uint_eq(fk_count(a, WM_KICK), 0);
}
END_TEST

/* Both have voted for both, and wait for one of them each. */
START_TEST(operations_in_flight_meet_in_any_order)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	async_vote(&q, 2);
	async_vote(&q, 1);
	waits(&p, 1, WM_WAIT_FOR_MAIN);
	waits(&q, 2, WM_WAIT_FOR_MAIN);
	ck_assert_uint_eq(answers(), 0);
	async_vote(&r, 1);
	async_vote(&r, 2);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 2);
}
END_TEST

/* r has tag 2 in flight as well: with the call that waits for nobody it ends, too. */
START_TEST(what_the_stuck_have_in_flight_ends_with_their_calls)
{
	async_vote(&p, 5);
	fk_vote(&p, 1);
	fk_vote(&q, 2);
	fk_vote(&r, 2);
	ck_assert_uint_eq(fk_count(a, WM_UNMET), 2);
	(void)refused(&q, 2);
}
END_TEST

START_TEST(a_wait_outlives_the_start_of_another_operation)
{
	async_vote(&p, 1);
	async_vote(&q, 1);
	fk_vote(&p, 2);
	fk_vote(&q, 3);
	async_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&r, 3);
	(void)refused(&p, 2);
	(void)refused(&q, 3);
	(void)refused(&r, 3);
}
END_TEST

/* ---- until any of several ends */

START_TEST(who_waits_for_any_of_what_cannot_end_is_answered)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	fk_topo(&q);
	fk_topo(&r);
	ck_assert_uint_eq(answers(), 0);
	waits_for_any(&p, 1, 2);
	unchanged(&q);
	unchanged(&r);
	fk_vote(&q, 3);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&r, 3);
	(void)refused(&q, 3);
	(void)refused(&r, 3);
	ck_assert_uint_eq(fk_count(a, WM_UNMET), 2);
	(void)refused(&p, 1);
	meet(4);
}
END_TEST

/* r may join tag 2, and then p goes on: with tag 9, perhaps. */
START_TEST(who_waits_for_any_goes_on_with_the_first)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	waits_for_any(&p, 1, 2);
	async_vote(&q, 2);
	fk_vote(&q, 9);
	ck_assert_uint_eq(answers(), 0);
	async_vote(&r, 2);
	fk_vote(&r, 9);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	ck_assert_uint_eq(answers(), 0);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	ck_assert_uint_eq(answers(), 0);
	if (_i == 0) {
		fk_vote(&p, 9);
		ck_assert_uint_eq(fk_count(a, WM_OP_START), 2);
		ck_assert_uint_eq(answers(), 0);
		return;
	}
	waits_for_any(&p, 1, 1);
	(void)refused(&p, 1);
	(void)refused(&q, 9);
	(void)refused(&r, 9);
}
END_TEST

/* The agent did not know that one had started, or had ended, or votes are still to come. */
START_TEST(what_the_agent_says_of_any_must_be_of_all)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	fk_vote(&q, 9);
	fk_vote(&r, 9);
	waits_for_any(&p, 1, 3);
	waits_for_any(&p, 1, 1);
	waits_for_any(&p, 7, 2);
	ck_assert_uint_eq(answers(), 0);
	async_vote(&q, 2);
	async_vote(&r, 2);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	waits_for_any(&p, 1, 2);
	waits_for_any(&p, 1, 1);
	ck_assert_uint_eq(answers(), 0);
	ck_assert_uint_eq(fk_count(a, WM_KICK), 0);
}
END_TEST

START_TEST(another_vote_shows_that_it_waits_no_longer)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	waits_for_any(&p, 1, 2);
	async_vote(&p, 3);
	fk_vote(&q, 9);
	fk_vote(&r, 9);
	ck_assert_uint_eq(answers(), 0);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_settle(&f);
}
END_TEST

/* Reports on what was begun speculatively, and is given up, may be on their way. */
START_TEST(a_reserved_seq_is_void_then)
{
	uint64_t seq;

	meet(1);
	seq = fk_status(&f).last_seq; /* reserved for the next one of tag 1 */
	spec_vote(&p, 1, seq);
	fk_vote(&q, 2);
	fk_vote(&r, 2);
	(void)refused(&p, 1);
	spec_vote(&q, 1, seq);
	fk_report(a, seq, true);
	ck_assert_uint_eq(fk_count(a, WM_REFUSE) + fk_count(a, WM_KICK), 0);
	ck_assert(fk_present(&p));
}
END_TEST

START_TEST(who_is_stopped_may_vote_when_it_runs_again)
{
	struct wm_msg m = {.type = WM_STOPPED, .u.stopped = {p.id, true}};

	fk_vote(&p, 1);
	fk_send(a, &m);
	fk_vote(&q, 2);
	fk_vote(&r, 2);
	ck_assert_uint_eq(answers(), 0);
	m.u.stopped.is = false;
	fk_send(a, &m);
	(void)refused(&p, 1);
	(void)refused(&q, 2);
}
END_TEST

START_TEST(during_an_absence_nothing_is_decided)
{
	fk_cut(c, "gone");
	fk_settle(&f);
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_vote(&q, 2);
	ck_assert_uint_eq(answers(), 0);
	fk_tick(&f, 5500); /* the lease has expired, and its end fails nothing again */
	fk_settle(&f);
	(void)refused(&p, 1);
	(void)refused(&q, 2);
}
END_TEST

START_TEST(during_a_round_nothing_is_decided)
{
	fk_manual(&f);
	(void)fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	topo_all();
	fk_vote(&p, 1);
	fk_vote(&q, 2);
	fk_tick(&f, 1000);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

/* Groups vote on the topology together. */
static struct fk_peer s0, s1;

static void two_groups(void)
{
	setup_waiting();
	s0 = fk_admit(fk_host(&f, "d", "10.0.0.4"), 1, (struct fk_peer[]){p, q, r}, 3);
	s1 = fk_admit(fk_host(&f, "e", "10.0.0.5"), 1, (struct fk_peer[]){p, q, r, s0}, 4);
	fk_forget(&f);
}

START_TEST(another_group_is_waited_for_and_goes_on)
{
	topo_all();
	fk_topo(&s0);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&s1, 1); /* of group 1, and waits for s0 */
	unchanged(&p);
	unchanged(&q);
	unchanged(&r);
	unchanged(&s0);
	fk_vote(&s0, 1);
	ck_assert_uint_eq(fk_count(s1.host, WM_OP_START), 1);
}
END_TEST

/* It waits for tag 1 or 2, of which r may join the second one; only for the first is it known to
 * wait. */
START_TEST(another_group_waits_for_who_waits_for_any)
{
	async_vote(&p, 1);
	async_vote(&p, 2);
	waits_for_any(&p, 1, 2);
	async_vote(&q, 2);
	fk_vote(&q, 9);
	fk_topo(&s0);
	ck_assert_uint_eq(fk_count(s0.host, WM_UNMET), 0);
	fk_vote(&r, 1);
	unchanged(&s0);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

START_TEST(another_group_that_comes_to_an_end_is_waited_for)
{
	topo_all();
	fk_vote(&s1, 1); /* s0 has not voted, and may */
	fk_tick(&f, 3000);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&s0, 1);
	ck_assert_uint_eq(fk_count(s1.host, WM_OP_START), 1);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

/* s0's operation ends: s0 can vote then. */
START_TEST(an_operation_that_ends_keeps_no_newcomer_out)
{
	(void)fk_join(fk_host(&f, "f", "10.0.0.6"), 0);
	fk_vote(&s0, 1);
	fk_topo(&q);
	fk_topo(&r);
	fk_pending(&p);
	ck_assert(unmet(&p, WM_WAIT_PENDING).pending);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

/* Two groups: the one's calls are its own fault, the other's are not its concern. */
START_TEST(operations_of_another_group_are_left_alone)
{
	fk_vote(&s0, 1);
	fk_vote(&p, 1);
	fk_vote(&q, 2);
	fk_vote(&r, 1);
	(void)refused(&p, 1);
	(void)refused(&q, 2);
	(void)refused(&r, 1);
	ck_assert_uint_eq(fk_count(s0.host, WM_UNMET), 0);
	fk_vote(&s1, 1);
	ck_assert_uint_eq(fk_count(s0.host, WM_OP_START), 1);
}
END_TEST

/* ---- one thread, several peers ---- */

static struct fk_peer join_thread(struct fk_host *h, uint32_t group, uint64_t thread)
{
	struct fk_peer x;

	h->peers.thread = thread;
	x = fk_join(h, group);
	h->peers.thread = 0;
	return x;
}

START_TEST(a_newcomer_whose_thread_would_have_to_vote_is_refused)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer s = join_thread(d, 0, 7), t;
	const struct wm_kick *k;

	topo_all();
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&s).phase, CCM_PEER_ACCEPTED);
	fk_forget(&f);
	t = join_thread(d, 0, 8); /* another thread */
	ck_assert_uint_eq(fk_count(d, WM_KICK), 0);
	fk_leave(&t, WM_LEAVE_CLEAN);
	t = join_thread(d, 1, 7);
	k = &fk_take(d, WM_KICK)->u.kick;
	ck_assert(cc_id_eq(&k->peer, &t.id));
	ck_assert_uint_eq(k->code, WIRE_INVALID_USAGE);
	assert_contains(k->text, "train@d pid ");
	ck_assert(!fk_present(&t));
	ck_assert(fk_present(&s));
}
END_TEST

/* One update, while the same thread's other communicator is a member, too. */
START_TEST(a_vote_that_the_same_thread_would_have_to_give_is_answered)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer s = join_thread(d, 0, 7), t;

	d->peers.thread = 7;
	t = fk_join(fk_host(&f, "e", "10.0.0.5"), 1); /* of another agent: another thread */
	d->peers.thread = 0;
	topo_all();
	fk_settle(&f);
	fk_forget(&f);
	fk_topo(&s);
	ck_assert_uint_eq(fk_count(d, WM_UNMET), 0);
	fk_leave(&t, WM_LEAVE_CLEAN);
	fk_settle(&f);
	ck_assert_uint_eq(fk_count(d, WM_UNMET), 0);
}
END_TEST

/* ---- the rest ---- */

/* Whoever asks again and again, and does nothing else, waits for a tick from the fifth time on. */
START_TEST(a_loop_of_updates_does_not_spin)
{
	uint32_t i;

	fk_vote(&p, 1);
	for (i = 0; i < 4; i++) {
		fk_topo(&r);
		unchanged(&r);
	}
	fk_topo(&r);
	ck_assert_uint_eq(answers(), 0);
	fk_tick(&f, 300);
	unchanged(&r);
	fk_vote(&r, 1);
	fk_vote(&q, 1);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	fk_vote(&p, 2);
	fk_topo(&r);
	unchanged(&r);
}
END_TEST

/* They vote until somebody comes, whom the one that waits for them would have to let in. */
START_TEST(who_does_nothing_but_vote_is_waited_for_no_longer)
{
	struct wm_unmet u;
	uint32_t i;

	fk_vote(&p, 1);
	for (i = 0; i < 100; i++) {
		fk_topo(&r);
		fk_topo(&q);
		fk_tick(&f, 300);
		ck_assert_uint_eq(fk_count(a, WM_UNMET), 0);
	}
	fk_forget(&f);
	fk_topo(&r);
	fk_topo(&q);
	fk_tick(&f, 300);
	u = refused(&p, 1);
	assert_contains(u.text, "all-reduce of tag 1 in group 0 (train@a pid ");
	assert_contains(u.text, "), pcclUpdateTopology, 100 times (train@");
	assert_contains(u.text, " and 1 more)");
}
END_TEST

/* p's main thread may ask while the other one reduces; or it waits for that one. */
START_TEST(a_question_waits_for_threads_that_may_ask)
{
	f.waits_for = WM_WAIT_FOR_HELPER;
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_pending(&q);
	fk_pending(&r);
	fk_tick(&f, 1500);
	ck_assert_uint_eq(answers(), 0);
	if (_i == 0) {
		fk_pending(&p);
		ck_assert_uint_eq(fk_count(a, WM_PENDING_ANSWER), 1);
		ck_assert_uint_eq(fk_count(c, WM_PENDING_ANSWER), 1);
		return;
	}
	fk_tick(&f, 1000);
	(void)unmet(&q, WM_WAIT_PENDING);
	(void)unmet(&r, WM_WAIT_PENDING);
	ck_assert_uint_eq(fk_count(a, WM_UNMET), 0);
}
END_TEST

/* An operation of p has taken its time, and its threads act one after the other. */
START_TEST(a_thread_that_has_acted_just_now_is_waited_for)
{
	f.waits_for = WM_WAIT_FOR_HELPER;
	fk_pending(&r);
	fk_vote(&p, 1);
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	fk_tick(&f, 3000);
	ck_assert_uint_eq(answers(), 0);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	if (_i == 0)
		fk_pending(&p);
	else
		fk_vote(&p, 2);
	fk_vote(&q, 2);
	fk_tick(&f, 1500);
	ck_assert_uint_eq(answers(), 0);
	fk_tick(&f, 1000);
	ck_assert_uint_gt(answers(), 0);
}
END_TEST

/* p's vote may be lost with its connection. */
START_TEST(a_silent_host_may_have_asked)
{
	const struct wm_msg beat = {.type = WM_HEARTBEAT};

	f.waits_for = WM_WAIT_FOR_HELPER;
	fk_vote(&p, 1);
	fk_pending(&q);
	fk_pending(&r);
	fk_tick(&f, 1500);
	fk_tick_silent(&f, 1000, a);
	ck_assert(a->open);
	ck_assert_uint_eq(answers(), 0);
	fk_send(a, &beat);
	fk_tick_silent(&f, 100, a);
	(void)unmet(&q, WM_WAIT_PENDING);
	(void)unmet(&r, WM_WAIT_PENDING);
}
END_TEST

START_TEST(a_loss_ends_it_first)
{
	fk_topo(&r);
	fk_vote(&p, 1);
	unchanged(&r);
	fk_leave(&q, WM_LEAVE_DIED);
	fk_settle(&f);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
	fk_vote(&p, 1);
	fk_topo(&r);
	unchanged(&r);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* ---- a new master ---- */

START_TEST(a_new_master_finds_it_too)
{
	tk_connect(0);
	tk_connect(1);
	tk_connect(2);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_join(1, WM_JOIN_ACCEPTED);
	tk_join(2, WM_JOIN_ACCEPTED);
	tk.f.waits_for = _i == 2 ? WM_WAIT_FOR_NONE : WM_WAIT_FOR_MAIN;
	fk_vote(&tk.p[0], 1);
	fk_vote(&tk.p[2], 1);
	if (_i == 0)
		fk_topo(&tk.p[1]);
	else
		fk_vote(&tk.p[1], 2);
	tk_end(0);
	tk_end(1);
	tk_none_of(WM_UNMET);
	if (_i == 2) { /* said only when nobody can be told yet */
		waits(&tk.p[0], 1, WM_WAIT_FOR_MAIN);
		waits(&tk.p[1], 2, WM_WAIT_FOR_HELPER);
		waits(&tk.p[2], 1, WM_WAIT_FOR_MAIN);
	}
	tk_end(2);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_UNMET), 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_UNMET), _i == 0 ? 0 : 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_UNMET), _i == 0 ? 0 : 1);
}
END_TEST

START_TEST(a_new_master_hears_who_waits_for_any)
{
	tk_connect(0);
	tk_connect(1);
	tk_connect(2);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_join(1, WM_JOIN_ACCEPTED);
	tk_join(2, WM_JOIN_ACCEPTED);
	fk_vote(&tk.p[0], 1);
	waits_for_any(&tk.p[0], 1, 2); /* the other vote has not been told again yet */
	fk_vote(&tk.p[0], 2);
	if (_i == 1)
		waits_for_any(&tk.p[0], 1, 2);
	tk.f.waits_for = WM_WAIT_FOR_MAIN;
	fk_vote(&tk.p[1], 3);
	fk_vote(&tk.p[2], 3);
	tk_end(0);
	tk_end(1);
	tk_none_of(WM_UNMET);
	tk_end(2);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_UNMET), 2);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_UNMET), 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_UNMET), 1);
}
END_TEST

Suite *unmet_suite(void)
{
	Suite *s = suite_create("unmet");
	TCase *tc = tcase_create("unmet"), *groups = tcase_create("groups");
	TCase *takeover = tcase_create("takeover");

	tcase_add_checked_fixture(tc, setup_waiting, teardown);
	tcase_add_test(tc, a_topology_vote_that_reduces_wait_for_is_answered_at_once);
	tcase_add_test(tc, the_order_of_the_calls_does_not_matter);
	tcase_add_test(tc, an_answer_alone_ends_no_ballot);
	tcase_add_test(tc, a_newcomer_waits_on);
	tcase_add_loop_test(
		tc, who_asks_while_others_wait_in_operations_hears_of_no_newcomer, 0, 2);
	tcase_add_test(tc, a_pending_and_a_topology_vote_are_answered_both);
	tcase_add_test(tc, who_asks_comes_to_those_that_update);
	tcase_add_test(tc, a_synchronization_meets_an_update);
	tcase_add_loop_test(tc, two_tags_are_refused_to_all, 0, 2);
	tcase_add_test(tc, a_synchronization_and_a_reduce_are_refused_to_all);
	tcase_add_test(tc, three_peers_in_three_calls);
	tcase_add_test(tc, who_does_not_wait_may_still_vote);
	tcase_add_test(tc, who_begins_to_wait_says_so);
	tcase_add_test(tc, what_one_waits_for_may_have_ended_meanwhile);
	tcase_add_test(tc, operations_in_flight_meet_in_any_order);
	tcase_add_test(tc, what_the_stuck_have_in_flight_ends_with_their_calls);
	tcase_add_test(tc, a_wait_outlives_the_start_of_another_operation);
	tcase_add_test(tc, who_waits_for_any_of_what_cannot_end_is_answered);
	tcase_add_loop_test(tc, who_waits_for_any_goes_on_with_the_first, 0, 2);
	tcase_add_test(tc, what_the_agent_says_of_any_must_be_of_all);
	tcase_add_test(tc, another_vote_shows_that_it_waits_no_longer);
	tcase_add_test(tc, a_reserved_seq_is_void_then);
	tcase_add_test(tc, who_is_stopped_may_vote_when_it_runs_again);
	tcase_add_test(tc, during_an_absence_nothing_is_decided);
	tcase_add_test(tc, during_a_round_nothing_is_decided);
	tcase_add_test(tc, a_newcomer_whose_thread_would_have_to_vote_is_refused);
	tcase_add_test(tc, a_vote_that_the_same_thread_would_have_to_give_is_answered);
	tcase_add_test(tc, a_loop_of_updates_does_not_spin);
	tcase_add_test(tc, who_does_nothing_but_vote_is_waited_for_no_longer);
	tcase_add_loop_test(tc, a_question_waits_for_threads_that_may_ask, 0, 2);
	tcase_add_loop_test(tc, a_thread_that_has_acted_just_now_is_waited_for, 0, 2);
	tcase_add_test(tc, a_silent_host_may_have_asked);
	tcase_add_test(tc, a_loss_ends_it_first);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(groups, two_groups, teardown);
	tcase_add_test(groups, another_group_is_waited_for_and_goes_on);
	tcase_add_test(groups, another_group_waits_for_who_waits_for_any);
	tcase_add_test(groups, another_group_that_comes_to_an_end_is_waited_for);
	tcase_add_test(groups, operations_of_another_group_are_left_alone);
	tcase_add_test(groups, an_operation_that_ends_keeps_no_newcomer_out);
	suite_add_tcase(s, groups);
	tcase_add_checked_fixture(takeover, tk_setup, tk_teardown);
	tcase_add_loop_test(takeover, a_new_master_finds_it_too, 0, 3);
	tcase_add_loop_test(takeover, a_new_master_hears_who_waits_for_any, 0, 2);
	suite_add_tcase(s, takeover);
	return s;
}
