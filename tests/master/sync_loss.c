/* SPDX-License-Identifier: MIT
 *
 * The master's core: synchronizations of shared state when somebody is lost, what they wait for,
 * and what can be seen of them.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio_sync.h"

/* ---- reports ---- */

START_TEST(a_peer_that_has_failed_is_kicked_and_the_others_go_on)
{
	uint64_t seq = two_and_one();
	const struct wm_kick *k;

	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_report_failed(&r, seq, _i);
	k = &fk_take(c, WM_KICK)->u.kick;
	ck_assert_uint_eq(k->code, WIRE_INVALID_USAGE);
	ck_assert_str_eq(k->text, "a leaf is wrong");
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 0);
	ck_assert(fk_take(a, WM_VIEW)->u.view.own[0].loss[0] != '\0');
}
END_TEST

/* Another peer of this host, which all have let in. */
static struct fk_peer joined(struct fk_host *host)
{
	struct fk_peer x = fk_join(host, 0);

	topo_all();
	return x;
}

/* Its host may have others. `ok` says whether these are done. */
START_TEST(a_report_of_failures_is_the_hosts_report_if_it_says_ok)
{
	struct fk_peer x = joined(a);
	uint64_t seq;

	fk_sync(&x, fk_candidate(7, 5));
	seq = two_and_one();
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	fk_report_failed(&x, seq, _i == 1);
	ck_assert(!fk_present(&x));
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), _i == 1);
	if (_i == 0)
		fk_report(a, seq, true);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 1);
	ck_assert(a->open);
}
END_TEST

START_TEST(peers_may_fail_after_their_host_has_reported)
{
	struct fk_peer x = joined(a);
	uint64_t seq;

	fk_sync(&x, fk_candidate(7, 5));
	seq = two_and_one();
	fk_report(a, seq, true);
	fk_report_failed(&x, seq, true);
	ck_assert(a->open);
	ck_assert(!fk_present(&x));
	fk_report(b, seq, true);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 1);
}
END_TEST

START_TEST(a_second_report_without_failures_is_a_violation)
{
	uint64_t seq = two_and_one();

	fk_report(a, seq, true);
	fk_report(a, seq, true);
	assert_contains(a->closed, "second report");
}
END_TEST

START_TEST(a_failure_of_another_agents_peer_is_a_violation)
{
	struct fk_peer x = r;
	uint64_t seq = two_and_one();

	x.host = a;
	fk_report_failed(&x, seq, true);
	assert_contains(a->closed, "another agent's peer");
	ck_assert(fk_present(&r));
}
END_TEST

/* Neither one that is gone, nor one of another group that shares its place, nor one that waits to
 * be accepted. */
START_TEST(failures_of_peers_that_have_no_part_are_passed_over)
{
	struct fk_peer x = fk_join(a, 1), gone = {.host = a, .id = fk_id(&f)}, pending;
	uint64_t seq;

	topo_all();
	seq = two_and_one();
	pending = fk_join(a, 0);
	fk_report_failed(&x, seq, false);
	fk_report_failed(&gone, seq, false);
	fk_report_failed(&pending, seq, false);
	ck_assert(fk_present(&x) && fk_present(&pending) && a->open);
	report_all(seq);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(a_report_of_a_host_whose_peers_were_kicked_is_passed_over)
{
	uint64_t seq = two_and_one();

	fk_leave(&r, WM_LEAVE_DIED);
	fk_report(c, seq, true);
	fk_report(c, seq, false);
	ck_assert(c->open);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
}
END_TEST

START_TEST(a_report_that_all_has_failed_aborts_for_all)
{
	uint64_t seq = two_and_one(), rounds;

	fk_report(a, seq, true);
	rounds = fk_status(&f).rounds;
	fk_forget(&f);
	fk_report(c, seq, false);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, seq);
	ck_assert(fk_count(b, WM_OP_ABORT) == 1 && fk_count(c, WM_OP_ABORT) == 1);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	ck_assert_uint_eq(fk_status(&f).rounds, rounds); /* the rings had no part in it */
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	(void)two_and_one();
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* ---- losses ---- */

/* Who is left has the election among themselves. */
START_TEST(a_loss_before_the_start_takes_a_vote_away)
{
	const struct wm_sync_start *x;

	if (_i > 0)
		fk_sync(&r, fk_candidate(1, 1));
	fk_sync(&p, fk_candidate(1, 2));
	if (_i != 2)
		fk_sync(&q, fk_candidate(1, 2));
	if (_i == 3)
		fk_close(c, "vanished");
	else
		fk_leave(&r, WM_LEAVE_DIED);
	if (_i == 2)
		fk_sync(&q, fk_candidate(1, 2));
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT) + fk_count(b, WM_OP_ABORT), 0);
	x = start_of(a);
	ck_assert_uint_eq(x->content.lo, fk_candidate(1, 2).content.lo);
	ck_assert_uint_eq(x->n_peers, 1);
	report_all(seq_now());
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.revision, 1);
}
END_TEST

START_TEST(a_loss_leaves_one_alone_with_its_vote)
{
	fk_sync(&p, fk_candidate(1, 1));
	fk_leave(&r, WM_LEAVE_DIED);
	fk_leave(&q, WM_LEAVE_DIED);
	report_all(seq_now());
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 1);
}
END_TEST

START_TEST(a_loss_may_take_the_only_vote_away)
{
	fk_sync(&r, fk_candidate(1, 1));
	fk_leave(&r, WM_LEAVE_DIED);
	fk_sync(&p, fk_candidate(1, 1));
	fk_sync(&q, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(a_vote_that_is_overtaken_by_a_loss_counts)
{
	struct cc_id id = q.id;
	struct wm_msg late = {.type = WM_OP_VOTE};

	late.u.op_vote = (struct wm_op_vote){
		.is_sync = true, .sync = fk_candidate(1, 1), .n_peers = 1, .peers = &id};
	fk_leave(&r, WM_LEAVE_DIED);
	fk_forget(&f);
	fk_send(b, &late);
	fk_sync(&p, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_count(b, WM_OP_START), 1);
}
END_TEST

/* The vote of an agent that is not running is none; it comes back with it, or is lost. */
START_TEST(a_disconnected_agent_takes_its_vote_along)
{
	fk_sync(&p, fk_candidate(1, 1));
	fk_sync(&r, fk_candidate(1, 1));
	fk_cut(c, "cut");
	fk_sync(&q, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	if (_i == 0) {
		c = fk_reconnect(c);
		r = fk_join_again(&r, c, WM_JOIN_ACCEPTED);
		fk_sync(&r, fk_candidate(1, 1));
		fk_resumed(c);
		fk_settle(&f);
	} else {
		fk_tick(&f, 5200);
	}
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	report_all(seq_now());
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(a_loss_after_the_start_does_not_abort_it)
{
	uint64_t seq = two_and_one();

	if (_i == 1)
		fk_report(b, seq, true);
	fk_forget(&f);
	if (_i == 2)
		fk_close(b, "it is silent");
	else
		fk_leave(&q, WM_LEAVE_DIED); /* a holder, but there is another one */
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	fk_report(a, seq, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 0);
	/* The ring was made anew meanwhile. */
	fk_vote(&p, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(the_loss_of_the_last_that_was_awaited_ends_it)
{
	uint64_t seq = two_and_one();

	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_revision(a, 0), 8);
}
END_TEST

/* The host has another peer in it: it is awaited still. */
START_TEST(the_part_of_a_host_goes_with_its_last_peer)
{
	struct fk_peer x = joined(c);
	uint64_t seq;

	fk_sync(&x, fk_candidate(7, 1));
	seq = two_and_one();
	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_leave(&x, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(without_anybody_who_has_what_was_elected_it_is_aborted)
{
	const struct wm_op_abort *x;

	done_equal(6);
	fk_sync(&p, fk_candidate(7, 1));
	fk_sync(&q, fk_candidate(2, 5));
	fk_sync(&r, fk_candidate(3, 6));
	fk_forget(&f);
	fk_leave(&p, WM_LEAVE_DIED);
	x = &fk_take(b, WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(x->seq, seq_now());
	ck_assert(x->is_sync);
	assert_contains(x->text, "no remaining peer has");
	assert_contains(x->text, "train@a pid");
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 1);
}
END_TEST

/* What a host has reported it has: as good as a holder. */
START_TEST(a_receiver_that_has_all_takes_the_holders_place)
{
	uint64_t seq;

	done_equal(6);
	fk_sync(&p, fk_candidate(7, 1));
	fk_sync(&q, fk_candidate(2, 5));
	fk_sync(&r, fk_candidate(3, 6));
	seq = seq_now();
	fk_report(b, seq, true);
	fk_forget(&f);
	fk_leave(&p, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

START_TEST(other_operations_of_the_group_are_aborted_by_the_loss)
{
	uint64_t seq = two_and_one();

	fk_vote(&p, 3); /* by another thread */
	fk_forget(&f);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.tag, 3);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	report_all(seq);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

/* Its peers are still of the group, and may come back, and lack something. */
START_TEST(a_disconnected_agent_that_has_not_reported_interrupts_it_at_once)
{
	uint64_t seq = two_and_one();
	struct fk_host *x;

	fk_forget(&f);
	fk_cut(c, "reset by peer");
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, seq);
	ck_assert_uint_eq(fk_take(b, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(fk_present(&r));
	x = fk_reconnect(c);
	r = fk_join_again(&r, x, WM_JOIN_ACCEPTED);
	fk_sync_again(&r, fk_candidate(7, 2), seq, 7, 1);
	ck_assert_uint_eq(fk_take(x, WM_OP_ABORT)->u.op_abort.seq, seq);
	fk_resumed(x);
	fk_settle(&f);
	c = x;
	seq = two_and_one();
	report_all(seq);
	ck_assert_uint_eq(fk_count(x, WM_OP_DONE), 1);
}
END_TEST

/* The end was on its way when the connection broke: it is told again, with the revision. */
START_TEST(an_end_that_did_not_arrive_is_told_again)
{
	uint64_t seq = two_and_one();
	struct fk_host *x;

	report_all(seq);
	fk_cut(c, "reset by peer");
	x = fk_reconnect(c);
	r = fk_join_again(&r, x, WM_JOIN_ACCEPTED);
	fk_sync_again(&r, fk_candidate(7, 2), seq, 7, 1);
	ck_assert_uint_eq(fk_take(x, WM_OP_DONE)->u.op_done.revision, 7);
	fk_resumed(x);
	ck_assert_uint_eq(fk_revision(x, 0), 8);
}
END_TEST

/* ---- what is in its way ---- */

START_TEST(nothing_starts_during_a_round)
{
	a->auto_report = false;
	fk_leave(&r, WM_LEAVE_CLEAN);
	fk_sync(&p, fk_candidate(1, 1));
	fk_sync(&q, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	fk_round_report(a, NULL, NULL);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.epoch, 3);
}
END_TEST

/* Who is kicked when the round is over costs another one. */
START_TEST(kicks_after_a_round_are_settled)
{
	done_equal(0);
	a->auto_report = false;
	fk_leave(&r, WM_LEAVE_CLEAN);
	fk_sync(&p, fk_candidate(1, 1));
	fk_sync(&q, fk_candidate(9, 1));
	a->auto_report = true;
	fk_settle(&f);
	ck_assert(!fk_present(&q));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
	fk_report(a, seq_now(), true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

START_TEST(an_all_reduce_waits_for_a_synchronization)
{
	uint64_t seq = two_and_one();

	fk_forget(&f);
	vote_all(5); /* by other threads */
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	if (_i)
		fk_report(a, seq, false);
	report_all(seq);
	fk_settle(&f);
	if (_i) /* it was interrupted with the other */
		vote_all(5);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.tag, 5);
}
END_TEST

START_TEST(a_synchronization_waits_for_an_all_reduce)
{
	vote_all(5);
	vote_all(6);
	fk_forget(&f);
	(void)two_and_one();
	report_all(1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	vote_all(7); /* what is complete later waits */
	report_all(2);
	ck_assert(fk_take(a, WM_OP_START)->u.op_start.is_sync);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	report_all(5);
	ck_assert_uint_eq(fk_take(a, WM_OP_START)->u.op_start.tag, 7);
}
END_TEST

static void keep_op(void *arg, const struct ccm_op_info *o)
{
	if (o->is_sync)
		*(struct ccm_op_info *)arg = *o;
}

START_TEST(who_is_awaited_is_named)
{
	const struct wm_waits *w;
	struct ccm_op_info o;

	fk_sync(&p, fk_candidate(1, 1));
	fk_tick(&f, 2200);
	w = &fk_take(a, WM_WAITS)->u.waits;
	ck_assert_uint_eq(w->kind, WM_WAIT_SYNC);
	ck_assert_uint_eq(w->tag, 0);
	assert_contains(w->text, "2 of 3 peers: train@b pid");
	assert_contains(f.log, "group 0, shared state, has waited for 2.");
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_uint_eq(o.bytes, 100);
	ck_assert_uint_eq(o.votes, 1);
	assert_contains(o.awaited, "train@c pid");
	fk_sync(&q, fk_candidate(1, 1));
	fk_sync(&r, fk_candidate(1, 1));
	fk_report(b, seq_now(), true);
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_int_eq(o.state, CCM_VOTE_COMPLETE_COLLECTIVE_COMMS);
	ck_assert_str_eq(o.awaited, "a, c");
}
END_TEST

START_TEST(what_is_in_the_way_is_named)
{
	struct ccm_op_info o;

	vote_all(5);
	sync_equal(1, 1);
	ccm_each_op(f.m, f.now, keep_op, &o);
	ck_assert_str_eq(o.awaited, "an operation of the same group");
}
END_TEST

static void keep_state(void *arg, const struct ccm_state_info *s)
{
	if (s->group == 0)
		*(struct ccm_state_info *)arg = *s;
}

START_TEST(the_last_election_can_be_seen)
{
	struct ccm_state_info s;
	uint64_t seq = two_and_one();

	ccm_each_state(f.m, f.now, keep_state, &s);
	ck_assert_int_eq(s.end, CCM_SYNC_RUNNING);
	ck_assert_uint_eq(s.seq, seq);
	ck_assert_uint_eq(s.holders, 2);
	ck_assert_uint_eq(s.receivers, 1);
	ck_assert_uint_eq(s.expected, 0);
	fk_report_failed(&r, seq, false);
	report_all(seq);
	ccm_each_state(f.m, f.now, keep_state, &s);
	ck_assert_int_eq(s.end, CCM_SYNC_DONE);
	ck_assert_uint_eq(s.out, 1);
	ck_assert_uint_eq(s.expected, 8);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_leave(&q, WM_LEAVE_DIED);
	memset(&s, 0, sizeof s);
	ccm_each_state(f.m, f.now, keep_state, &s);
	ck_assert_uint_eq(s.expected, 8); /* nobody is there */
}
END_TEST

static void add_reports(TCase *tc)
{
	tcase_add_loop_test(tc, a_peer_that_has_failed_is_kicked_and_the_others_go_on, 0, 2);
	tcase_add_loop_test(tc, a_report_of_failures_is_the_hosts_report_if_it_says_ok, 0, 2);
	tcase_add_test(tc, peers_may_fail_after_their_host_has_reported);
	tcase_add_test(tc, a_second_report_without_failures_is_a_violation);
	tcase_add_test(tc, a_failure_of_another_agents_peer_is_a_violation);
	tcase_add_test(tc, failures_of_peers_that_have_no_part_are_passed_over);
	tcase_add_test(tc, a_report_of_a_host_whose_peers_were_kicked_is_passed_over);
	tcase_add_test(tc, a_report_that_all_has_failed_aborts_for_all);
}

static void add_losses(TCase *tc)
{
	tcase_add_loop_test(tc, a_loss_before_the_start_takes_a_vote_away, 0, 4);
	tcase_add_test(tc, a_loss_leaves_one_alone_with_its_vote);
	tcase_add_test(tc, a_loss_may_take_the_only_vote_away);
	tcase_add_test(tc, a_vote_that_is_overtaken_by_a_loss_counts);
	tcase_add_loop_test(tc, a_disconnected_agent_takes_its_vote_along, 0, 2);
	tcase_add_loop_test(tc, a_loss_after_the_start_does_not_abort_it, 0, 3);
	tcase_add_test(tc, the_loss_of_the_last_that_was_awaited_ends_it);
	tcase_add_test(tc, the_part_of_a_host_goes_with_its_last_peer);
	tcase_add_test(tc, without_anybody_who_has_what_was_elected_it_is_aborted);
	tcase_add_test(tc, a_receiver_that_has_all_takes_the_holders_place);
	tcase_add_test(tc, other_operations_of_the_group_are_aborted_by_the_loss);
	tcase_add_test(tc, a_disconnected_agent_that_has_not_reported_interrupts_it_at_once);
	tcase_add_test(tc, an_end_that_did_not_arrive_is_told_again);
	tcase_add_test(tc, nothing_starts_during_a_round);
	tcase_add_test(tc, kicks_after_a_round_are_settled);
	tcase_add_loop_test(tc, an_all_reduce_waits_for_a_synchronization, 0, 2);
	tcase_add_test(tc, a_synchronization_waits_for_an_all_reduce);
	tcase_add_test(tc, who_is_awaited_is_named);
	tcase_add_test(tc, what_is_in_the_way_is_named);
	tcase_add_test(tc, the_last_election_can_be_seen);
}

Suite *sync_loss_suite(void)
{
	Suite *s = suite_create("sync_loss");
	TCase *tc = tcase_create("synchronizations and losses");

	tcase_add_checked_fixture(tc, setup, teardown);
	add_reports(tc);
	add_losses(tc);
	suite_add_tcase(s, tc);
	return s;
}
