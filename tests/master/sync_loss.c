/* SPDX-License-Identifier: MIT
 *
 * The master's core: losses during synchronizations of shared state, the waits of synchronizations,
 * and their status.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio_sync.h"

/* ---- reports ---- */

START_TEST(failed_peer_is_kicked_and_the_others_continue)
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

/* Admits another peer on this host. */
static struct fk_peer joined(struct fk_host *host)
{
	struct fk_peer x = fk_join(host, 0);

	topo_all();
	return x;
}

/* The host may have other peers. `ok` in the report says whether these other peers are done. */
START_TEST(report_of_a_failure_counts_for_the_host_only_with_ok)
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

/* These peers have no part: a peer that is gone, a peer of another group on the same host, and a
 * peer that waits to be accepted. */
START_TEST(failures_of_peers_without_a_part_are_ignored)
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

START_TEST(report_of_a_host_without_peers_is_ignored)
{
	uint64_t seq = two_and_one();

	fk_leave(&r, WM_LEAVE_DIED);
	fk_report(c, seq, true);
	fk_report(c, seq, false);
	ck_assert(c->open);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
}
END_TEST

START_TEST(failure_of_a_whole_job_aborts_for_all)
{
	uint64_t seq = two_and_one(), rounds;

	fk_report(a, seq, true);
	rounds = fk_status(&f).rounds;
	fk_forget(&f);
	fk_report(c, seq, false);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.seq, seq);
	ck_assert(fk_count(b, WM_OP_ABORT) == 1 && fk_count(c, WM_OP_ABORT) == 1);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	/* No round, because the rings are not the cause. */
	ck_assert_uint_eq(fk_status(&f).rounds, rounds);
	ck_assert_uint_eq(fk_status(&f).kicks, 0);
	(void)two_and_one();
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

/* ---- losses ---- */

/* Only the remaining peers take part in the election. */
START_TEST(loss_before_the_start_removes_a_vote)
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

START_TEST(last_peer_synchronizes_alone_after_losses)
{
	fk_sync(&p, fk_candidate(1, 1));
	fk_leave(&r, WM_LEAVE_DIED);
	fk_leave(&q, WM_LEAVE_DIED);
	report_all(seq_now());
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 1);
}
END_TEST

START_TEST(loss_may_remove_the_only_vote)
{
	fk_sync(&r, fk_candidate(1, 1));
	fk_leave(&r, WM_LEAVE_DIED);
	fk_sync(&p, fk_candidate(1, 1));
	fk_sync(&q, fk_candidate(1, 1));
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(vote_from_before_a_loss_counts)
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

/* The vote of a disconnected agent does not count. The vote returns with the agent, or is lost. */
START_TEST(vote_of_a_disconnected_agent_does_not_count)
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

START_TEST(loss_after_the_start_does_not_abort)
{
	uint64_t seq = two_and_one();

	if (_i == 1)
		fk_report(b, seq, true);
	fk_forget(&f);
	if (_i == 2)
		fk_close(b, "it is silent");
	else
		fk_leave(&q, WM_LEAVE_DIED); /* a holder, but another holder is left */
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_take(a, WM_VIEW)->u.view.own[0].generation, 1);
	fk_report(a, seq, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 0);
	/* The ring was rewired meanwhile. */
	fk_vote(&p, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 1);
}
END_TEST

START_TEST(loss_of_the_last_awaited_peer_ends_the_attempt)
{
	uint64_t seq = two_and_one();

	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_revision(a, 0), 8);
}
END_TEST

/* The host has another peer in the attempt, so its report is still awaited. */
START_TEST(part_of_a_host_ends_with_its_last_peer)
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

START_TEST(loss_of_the_only_holder_aborts)
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

/* A host that has reported has the contents, like a holder. */
START_TEST(complete_receiver_replaces_a_lost_holder)
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

START_TEST(loss_aborts_other_operations_of_the_group)
{
	uint64_t seq = two_and_one();

	fk_vote(&p, 3); /* from another thread */
	fk_forget(&f);
	fk_leave(&r, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.tag, 3);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	report_all(seq);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 1);
}
END_TEST

/* The peers of the agent still belong to the group. They may come back and lack something. */
START_TEST(disconnect_before_the_report_aborts_at_once)
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

/* The end was on its way when the connection broke. It is sent again, with the revision. */
START_TEST(end_that_did_not_arrive_is_sent_again)
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

/* ---- waits ---- */

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

/* A kick after a round needs another round. */
START_TEST(kick_after_a_round_needs_another_round)
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
	vote_all(5); /* from other threads */
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	if (_i)
		fk_report(a, seq, false);
	report_all(seq);
	fk_settle(&f);
	if (_i) /* the abort has ended these votes, too */
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
	vote_all(7); /* complete after the votes for the synchronization, so tag 7 waits */
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

START_TEST(status_names_the_awaited_peers)
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

START_TEST(status_names_the_operation_in_the_way)
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

START_TEST(status_shows_the_last_election)
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
	ck_assert_uint_eq(s.expected, 8); /* no member is left */
}
END_TEST

static void add_reports(TCase *tc)
{
	tcase_add_loop_test(tc, failed_peer_is_kicked_and_the_others_continue, 0, 2);
	tcase_add_loop_test(tc, report_of_a_failure_counts_for_the_host_only_with_ok, 0, 2);
	tcase_add_test(tc, peers_may_fail_after_their_host_has_reported);
	tcase_add_test(tc, a_second_report_without_failures_is_a_violation);
	tcase_add_test(tc, a_failure_of_another_agents_peer_is_a_violation);
	tcase_add_test(tc, failures_of_peers_without_a_part_are_ignored);
	tcase_add_test(tc, report_of_a_host_without_peers_is_ignored);
	tcase_add_test(tc, failure_of_a_whole_job_aborts_for_all);
}

static void add_losses(TCase *tc)
{
	tcase_add_loop_test(tc, loss_before_the_start_removes_a_vote, 0, 4);
	tcase_add_test(tc, last_peer_synchronizes_alone_after_losses);
	tcase_add_test(tc, loss_may_remove_the_only_vote);
	tcase_add_test(tc, vote_from_before_a_loss_counts);
	tcase_add_loop_test(tc, vote_of_a_disconnected_agent_does_not_count, 0, 2);
	tcase_add_loop_test(tc, loss_after_the_start_does_not_abort, 0, 3);
	tcase_add_test(tc, loss_of_the_last_awaited_peer_ends_the_attempt);
	tcase_add_test(tc, part_of_a_host_ends_with_its_last_peer);
	tcase_add_test(tc, loss_of_the_only_holder_aborts);
	tcase_add_test(tc, complete_receiver_replaces_a_lost_holder);
	tcase_add_test(tc, loss_aborts_other_operations_of_the_group);
	tcase_add_test(tc, disconnect_before_the_report_aborts_at_once);
	tcase_add_test(tc, end_that_did_not_arrive_is_sent_again);
	tcase_add_test(tc, nothing_starts_during_a_round);
	tcase_add_test(tc, kick_after_a_round_needs_another_round);
	tcase_add_loop_test(tc, an_all_reduce_waits_for_a_synchronization, 0, 2);
	tcase_add_test(tc, a_synchronization_waits_for_an_all_reduce);
	tcase_add_test(tc, status_names_the_awaited_peers);
	tcase_add_test(tc, status_names_the_operation_in_the_way);
	tcase_add_test(tc, status_shows_the_last_election);
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
