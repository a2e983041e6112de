/* SPDX-License-Identifier: MIT
 *
 * The master's core: calls that can never meet are ended, all other calls wait.
 */
#include <stdio.h>
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"
#include "tests/master/trio.h"

/* Makes a run in which the callers of operations wait. */
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

/* Reports that x now waits for this tag, which it has voted for. */
static void waits(const struct fk_peer *x, uint64_t tag, enum wm_wait_for_kind kind)
{
	struct wm_msg m = {.type = WM_WAITS_FOR, .u.waits_for = {x->id, tag, kind, 0}};

	fk_send(x->host, &m);
}

/* Reports that x waits for any of n operations that it has voted for. One of them has this tag. */
static void waits_for_any(const struct fk_peer *x, uint64_t tag, uint32_t n)
{
	struct wm_msg m = {.type = WM_WAITS_FOR, .u.waits_for = {x->id, tag, WM_WAIT_FOR_MAIN, n}};

	fk_send(x->host, &m);
}

/* Returns the answer to x's call. */
static struct wm_unmet unmet(const struct fk_peer *x, enum wm_wait_kind kind)
{
	struct wm_unmet u = fk_take(x->host, WM_UNMET)->u.unmet;

	ck_assert_uint_eq(u.kind, kind);
	ck_assert_uint_eq(u.n_peers, 1);
	ck_assert(cc_id_eq(&u.peers[0], &x->id));
	return u;
}

static struct wm_unmet unmet_vote(const struct fk_peer *x, enum wire_ballot kind)
{
	struct wm_unmet u = unmet(x, WM_WAIT_BALLOT);

	ck_assert_uint_eq(u.ballot, kind);
	return u;
}

static void unchanged(const struct fk_peer *x)
{
	ck_assert_uint_eq(unmet_vote(x, WIRE_TOPOLOGY).code, 0);
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

/* Checks that all continue and complete an operation together. */
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

/* The loop at the top of pccl.h: a newcomer begins with pcclUpdateTopology, the others reduce. */
START_TEST(update_is_answered_if_an_all_reduce_waits)
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

START_TEST(optimization_and_topology_votes_end_unchanged)
{
	uint64_t number = a->ballots[WIRE_OPTIMIZE];

	fk_topo(&p);
	ck_assert_uint_eq(fk_count(a, WM_UNMET), 0);
	fk_ballot(&q, WIRE_OPTIMIZE); /* r can end neither ballot */
	unchanged(&p);
	/* Nothing has changed, and nothing has failed. */
	ck_assert(unmet_vote(&q, WIRE_OPTIMIZE).answer);
	ck_assert_uint_eq(a->ballots[WIRE_OPTIMIZE], number);
	ck_assert_uint_eq(fk_count(a, WM_ROUND), 0);
}
END_TEST

START_TEST(answer_to_one_peer_ends_no_ballot)
{
	uint64_t ballot = c->ballots[WIRE_TOPOLOGY];

	fk_vote(&p, 1);
	fk_topo(&r);
	unchanged(&r);
	ck_assert_uint_eq(c->ballots[WIRE_TOPOLOGY], ballot);
	fk_vote(&r, 1);
	fk_vote(&q, 1);
	fk_report(a, fk_status(&f).last_seq, true);
	fk_report(b, fk_status(&f).last_seq, true);
	fk_report(c, fk_status(&f).last_seq, true);
	topo_all();
	ck_assert_uint_eq(fk_count(a, WM_COMMIT), 1);
	ck_assert_uint_eq(fk_count(c, WM_COMMIT), 1);
	ck_assert_uint_eq(c->ballots[WIRE_TOPOLOGY], ballot + 2);
	ck_assert_uint_eq(a->ballots[WIRE_TOPOLOGY], ballot + 2);
}
END_TEST

/* A peer that waits in pcclConnect continues to wait, and is admitted in the next complete
 * ballot. */
START_TEST(newcomer_continues_to_wait)
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

/* A newcomer can be admitted only if p votes as well. So the answer is that no peer is pending.
 * This answer ends the loop of a program that updates while peers are pending. After the loop, this
 * program makes the call that p waits for. */
START_TEST(pending_call_gets_no_newcomer_while_operations_wait)
{
	struct wm_unmet u;

	(void)fk_join(fk_host(&f, "d", "10.0.0.4"), 0);
	if (_i)
		fk_sync(&p, fk_candidate(1, 1));
	else
		fk_vote(&p, 1);
	fk_pending(&q);
	u = unmet_vote(&q, WIRE_PENDING);
	ck_assert(!u.answer && u.code == 0);
	fk_topo(&r);
	unchanged(&r);
	fk_pending(&r);
	ck_assert(!unmet_vote(&r, WIRE_PENDING).answer);
	ck_assert_uint_eq(fk_count(c, WM_BALLOT_END), 0);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

START_TEST(pending_vote_and_topology_vote_are_both_answered)
{
	fk_pending(&p);
	ck_assert_uint_eq(answers(), 0);
	fk_topo(&q);
	unchanged(&q);
	ck_assert(!unmet_vote(&p, WIRE_PENDING).answer);
	meet(1);
}
END_TEST

/* Only p gets an answer. If q and r got one as well, they would ask for pending peers while p
 * updates, and so on without end. */
START_TEST(pending_call_is_sent_to_the_topology_vote)
{
	struct fk_peer s = fk_join(fk_host(&f, "d", "10.0.0.4"), 0);

	fk_pending(&p);
	fk_topo(&q);
	fk_topo(&r);
	ck_assert(unmet_vote(&p, WIRE_PENDING).answer);
	ck_assert_uint_eq(answers(), 0);
	fk_topo(&p);
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&s).phase, CCM_PEER_ACCEPTED);
}
END_TEST

START_TEST(update_is_answered_if_a_synchronization_waits)
{
	fk_sync(&p, fk_candidate(1, 1));
	fk_topo(&q);
	unchanged(&q);
	fk_sync(&q, fk_candidate(1, 1));
	fk_sync(&r, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(reduces_with_different_tags_end_for_all)
{
	struct wm_unmet u;

	fk_vote(&p, 1);
	fk_vote(&q, 2);
	ck_assert_uint_eq(answers(), 0); /* r would be left alone in its call */
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

START_TEST(synchronization_and_reduce_end_for_all)
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

/* First the peers that can continue get an answer. Only then is it known that the others can never
 * meet. */
START_TEST(three_peers_in_three_calls_are_ended)
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

START_TEST(peer_that_does_not_wait_may_still_vote)
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

/* p has not voted for the tag that the others wait for, and its own operation lacks their votes. */
START_TEST(report_of_a_wait_ends_unmet_calls)
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

START_TEST(wait_for_an_ended_operation_is_ignored)
{
	waits(&p, 7, WM_WAIT_FOR_MAIN);
	vote_all(1);
	waits(&p, 1, WM_WAIT_FOR_MAIN);
	ck_assert_uint_eq(answers(), 0);
	ck_assert_uint_eq(fk_count(a, WM_KICK), 0);
}
END_TEST

/* p and q have voted for both tags, and each of them waits for one. */
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

/* p also has tag 5 in flight, for which it does not wait. This operation ends with p's call. */
START_TEST(operations_in_flight_end_with_an_unmet_call)
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

/* ---- waits for any of several operations ---- */

START_TEST(wait_for_any_of_unmet_operations_is_ended)
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

/* r may join tag 2. Then p continues, perhaps with tag 9. */
START_TEST(wait_for_any_ends_with_the_first_operation)
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

/* The agent did not know that an operation had started or ended, or some votes are still to
 * come. */
START_TEST(wait_for_any_must_cover_all_operations_of_a_peer)
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

START_TEST(new_vote_ends_a_wait_for_any)
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

/* Reports on the speculative start, which is rolled back, may be on their way. */
START_TEST(unmet_call_voids_a_reserved_seq)
{
	uint64_t seq;

	meet(1);
	seq = fk_status(&f).last_seq; /* reserved for the next operation of tag 1 */
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

START_TEST(stopped_peer_may_vote_when_it_runs_again)
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

START_TEST(nothing_is_decided_during_a_disconnect)
{
	fk_cut(c, "gone");
	fk_settle(&f);
	fk_forget(&f);
	fk_vote(&p, 1);
	fk_vote(&q, 2);
	ck_assert_uint_eq(answers(), 0);
	fk_tick(&f, 5500); /* the lease ends, and no call fails a second time */
	fk_settle(&f);
	(void)refused(&p, 1);
	(void)refused(&q, 2);
}
END_TEST

START_TEST(nothing_is_decided_during_a_round)
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

/* Makes two groups, whose peers take part in the same topology votes. */
static struct fk_peer s0, s1;

static void two_groups(void)
{
	setup_waiting();
	s0 = fk_admit(fk_host(&f, "d", "10.0.0.4"), 1, (struct fk_peer[]){p, q, r}, 3);
	s1 = fk_admit(fk_host(&f, "e", "10.0.0.5"), 1, (struct fk_peer[]){p, q, r, s0}, 4);
	fk_forget(&f);
}

START_TEST(update_is_answered_if_a_peer_of_another_group_waits)
{
	topo_all();
	fk_topo(&s0);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&s1, 1); /* in group 1, waits for s0 */
	unchanged(&p);
	unchanged(&q);
	unchanged(&r);
	unchanged(&s0);
	fk_vote(&s0, 1);
	ck_assert_uint_eq(fk_count(s1.host, WM_OP_START), 1);
}
END_TEST

/* p waits for tag 1 or 2. r may join tag 2. Once r waits for tag 1, it is certain that p waits. */
START_TEST(update_is_answered_if_another_group_waits_for_any)
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

START_TEST(update_waits_for_an_operation_that_can_end)
{
	topo_all();
	fk_vote(&s1, 1); /* s0 has not voted, but may vote */
	fk_tick(&f, 3000);
	ck_assert_uint_eq(answers(), 0);
	fk_vote(&s0, 1);
	ck_assert_uint_eq(fk_count(s1.host, WM_OP_START), 1);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

/* s0's operation can end. Then s0 can vote. */
START_TEST(operation_that_can_end_keeps_no_newcomer_out)
{
	(void)fk_join(fk_host(&f, "f", "10.0.0.6"), 0);
	fk_vote(&s0, 1);
	fk_topo(&q);
	fk_topo(&r);
	fk_pending(&p);
	ck_assert(unmet_vote(&p, WIRE_PENDING).answer);
	ck_assert_uint_eq(answers(), 0);
}
END_TEST

/* The calls of group 0 cannot meet. The operation of group 1 is not affected. */
START_TEST(operations_of_another_group_are_not_ended)
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

START_TEST(newcomer_whose_own_thread_must_vote_is_refused)
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

/* The number of a thread is valid within one agent only. */
START_TEST(thread_number_of_another_agent_is_another_thread)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer s = join_thread(d, 0, 7), t;

	d->peers.thread = 7;
	t = fk_join(fk_host(&f, "e", "10.0.0.5"), 1); /* another agent, so another thread */
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

/* ---- other rules ---- */

/* If a peer asks again and again and does nothing else, its fifth call and all later calls wait
 * for a tick. */
START_TEST(loop_of_updates_does_not_spin)
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

/* q and r vote until a newcomer comes. But no newcomer can be admitted without the vote of p, which
 * waits for q and r. */
START_TEST(wait_for_peers_that_only_vote_is_ended)
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

/* p's main thread may still ask for pending peers while another thread of p reduces, or may wait
 * for this other thread. */
START_TEST(pending_vote_waits_for_threads_that_may_ask)
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
		ck_assert_uint_eq(fk_count(a, WM_BALLOT_END), 1);
		ck_assert_uint_eq(fk_count(c, WM_BALLOT_END), 1);
		return;
	}
	fk_tick(&f, 1000);
	(void)unmet_vote(&q, WIRE_PENDING);
	(void)unmet_vote(&r, WIRE_PENDING);
	ck_assert_uint_eq(fk_count(a, WM_UNMET), 0);
}
END_TEST

/* An operation of p has taken some time, and p's threads act one after the other. */
START_TEST(thread_that_has_just_acted_is_awaited)
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
START_TEST(vote_of_a_silent_host_is_awaited)
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
	(void)unmet_vote(&q, WIRE_PENDING);
	(void)unmet_vote(&r, WIRE_PENDING);
}
END_TEST

START_TEST(loss_ends_a_waiting_call_first)
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

START_TEST(new_master_finds_unmet_calls)
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
	if (_i == 2) { /* the waits are reported before the master can answer */
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

START_TEST(new_master_learns_of_waits_for_any)
{
	tk_connect(0);
	tk_connect(1);
	tk_connect(2);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk_join(1, WM_JOIN_ACCEPTED);
	tk_join(2, WM_JOIN_ACCEPTED);
	fk_vote(&tk.p[0], 1);
	waits_for_any(&tk.p[0], 1, 2); /* the other vote has not been sent again yet */
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
	tcase_add_test(tc, update_is_answered_if_an_all_reduce_waits);
	tcase_add_test(tc, the_order_of_the_calls_does_not_matter);
	tcase_add_test(tc, optimization_and_topology_votes_end_unchanged);
	tcase_add_test(tc, answer_to_one_peer_ends_no_ballot);
	tcase_add_test(tc, newcomer_continues_to_wait);
	tcase_add_loop_test(tc, pending_call_gets_no_newcomer_while_operations_wait, 0, 2);
	tcase_add_test(tc, pending_vote_and_topology_vote_are_both_answered);
	tcase_add_test(tc, pending_call_is_sent_to_the_topology_vote);
	tcase_add_test(tc, update_is_answered_if_a_synchronization_waits);
	tcase_add_loop_test(tc, reduces_with_different_tags_end_for_all, 0, 2);
	tcase_add_test(tc, synchronization_and_reduce_end_for_all);
	tcase_add_test(tc, three_peers_in_three_calls_are_ended);
	tcase_add_test(tc, peer_that_does_not_wait_may_still_vote);
	tcase_add_test(tc, report_of_a_wait_ends_unmet_calls);
	tcase_add_test(tc, wait_for_an_ended_operation_is_ignored);
	tcase_add_test(tc, operations_in_flight_meet_in_any_order);
	tcase_add_test(tc, operations_in_flight_end_with_an_unmet_call);
	tcase_add_test(tc, a_wait_outlives_the_start_of_another_operation);
	tcase_add_test(tc, wait_for_any_of_unmet_operations_is_ended);
	tcase_add_loop_test(tc, wait_for_any_ends_with_the_first_operation, 0, 2);
	tcase_add_test(tc, wait_for_any_must_cover_all_operations_of_a_peer);
	tcase_add_test(tc, new_vote_ends_a_wait_for_any);
	tcase_add_test(tc, unmet_call_voids_a_reserved_seq);
	tcase_add_test(tc, stopped_peer_may_vote_when_it_runs_again);
	tcase_add_test(tc, nothing_is_decided_during_a_disconnect);
	tcase_add_test(tc, nothing_is_decided_during_a_round);
	tcase_add_test(tc, newcomer_whose_own_thread_must_vote_is_refused);
	tcase_add_test(tc, thread_number_of_another_agent_is_another_thread);
	tcase_add_test(tc, loop_of_updates_does_not_spin);
	tcase_add_test(tc, wait_for_peers_that_only_vote_is_ended);
	tcase_add_loop_test(tc, pending_vote_waits_for_threads_that_may_ask, 0, 2);
	tcase_add_loop_test(tc, thread_that_has_just_acted_is_awaited, 0, 2);
	tcase_add_test(tc, vote_of_a_silent_host_is_awaited);
	tcase_add_test(tc, loss_ends_a_waiting_call_first);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(groups, two_groups, teardown);
	tcase_add_test(groups, update_is_answered_if_a_peer_of_another_group_waits);
	tcase_add_test(groups, update_is_answered_if_another_group_waits_for_any);
	tcase_add_test(groups, update_waits_for_an_operation_that_can_end);
	tcase_add_test(groups, operations_of_another_group_are_not_ended);
	tcase_add_test(groups, operation_that_can_end_keeps_no_newcomer_out);
	suite_add_tcase(s, groups);
	tcase_add_checked_fixture(takeover, tk_setup, tk_teardown);
	tcase_add_loop_test(takeover, new_master_finds_unmet_calls, 0, 3);
	tcase_add_loop_test(takeover, new_master_learns_of_waits_for_any, 0, 2);
	suite_add_tcase(s, takeover);
	return s;
}
