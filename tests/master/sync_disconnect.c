/* SPDX-License-Identifier: MIT
 *
 * The master's core: synchronizations of shared state that continue without peers whose agents are
 * disconnected, and the outcomes that these peers get.
 */
#include <string.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio_sync.h"

/* Lets the host report its part. Then its agent is disconnected. */
static void reports_and_dies(struct fk_host *h, uint64_t seq)
{
	fk_report(h, seq, true);
	fk_forget(&f);
	fk_cut(h, "reset by peer");
}

/* Lets the peer join through a new agent, which has no state. */
static struct fk_host *comes_by_a_new_one(struct fk_host *h, struct fk_peer *x)
{
	struct fk_host *d = fk_reconnect_as(h, 1, true);

	*x = fk_join_again(x, d, WM_JOIN_ACCEPTED);
	fk_resumed(d);
	fk_settle(&f);
	return d;
}

/* Lets the peer come back with its own agent, which is still running. */
static struct fk_host *comes_again(struct fk_host *h, struct fk_peer *x, uint64_t seq)
{
	struct fk_host *d = fk_reconnect(h);

	*x = fk_join_again(x, d, WM_JOIN_ACCEPTED);
	fk_sync_again(x, fk_candidate(7, 1), seq, 7, 1);
	return d;
}

static uint32_t outcome(struct fk_host *h, const struct fk_peer *x, uint64_t seq)
{
	const struct wm_op_outcomes *o = &fk_take(h, WM_OP_OUTCOMES)->u.op_outcomes;

	ck_assert(cc_id_eq(&o->peer, &x->id));
	ck_assert_uint_eq(o->n, 1);
	ck_assert_uint_eq(o->v[0].seq, seq);
	return o->v[0].code;
}

static void nobody_is_told_of_a_failure(void)
{
	ck_assert_uint_eq(
		fk_count(a, WM_OP_ABORT) + fk_count(b, WM_OP_ABORT) + fk_count(c, WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_generation(c, 0), 0);
}

/* The success is sent to all connected agents, as if the others were connected, too. */
START_TEST(disconnect_after_the_report_does_not_abort)
{
	uint64_t seq = two_and_one();

	reports_and_dies(a, seq);
	nobody_is_told_of_a_failure();
	ck_assert(fk_present(&p));
	if (_i) { /* also if the peer does not come back */
		fk_tick(&f, 5200);
		ck_assert(!fk_present(&p));
	}
	fk_report(b, seq, true);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.seq, seq);
	ck_assert_uint_eq(fk_revision(c, 0), 8);
	nobody_is_told_of_a_failure();
	fk_vote(&q, 1);
	fk_vote(&r, 1);
	ck_assert_uint_eq(fk_count(b, WM_OP_START), (unsigned)_i);
}
END_TEST

START_TEST(peer_with_a_new_agent_gets_the_outcome_later)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	reports_and_dies(a, seq);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &seq, 0);
	fk_forget(&f);
	if (_i) {
		fk_leave(&q, WM_LEAVE_DIED); /* q is the last other holder */
		ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 1);
		ck_assert_uint_eq(fk_generation(d, 0), fk_generation(c, 0));
	} else {
		fk_report(b, seq, true);
		ck_assert_uint_eq(d->n, 0);
		fk_report(c, seq, true);
		ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
		ck_assert_uint_eq(fk_revision(d, 0), 8);
	}
	ck_assert_uint_eq(outcome(d, &p, seq), _i ? WIRE_RANK_CONNECTION_LOST : WIRE_SUCCESS);
	ck_assert_uint_eq(fk_count(d, WM_OP_OUTCOMES), 0);
	ck_assert_uint_eq(fk_count(d, WM_OP_DONE) + fk_count(d, WM_OP_ABORT), 0);
}
END_TEST

START_TEST(outcome_during_a_disconnect_is_sent_on_return)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	reports_and_dies(a, seq);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &seq, 0);
	ck_assert_uint_eq(outcome(d, &p, seq), WIRE_SUCCESS);
	ck_assert_uint_eq(fk_revision(d, 0), 8);
}
END_TEST

/* The query asks about an attempt that has ended. Another attempt of the peer is still running. */
START_TEST(query_for_another_attempt_does_not_wait)
{
	uint64_t seq, other;
	struct fk_host *d;

	done_equal(6);
	other = seq_now();
	seq = two_and_one();
	reports_and_dies(a, seq);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &other, 1);
	ck_assert_uint_eq(outcome(d, &p, other), WIRE_SUCCESS);
}
END_TEST

START_TEST(third_agent_of_a_peer_gets_the_outcome)
{
	uint64_t seq = two_and_one();
	struct fk_host *d, *e;

	reports_and_dies(a, seq);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &seq, 0);
	fk_cut(d, "reset by peer");
	nobody_is_told_of_a_failure();
	e = comes_by_a_new_one(d, &p);
	if (_i)
		fk_query(&p, 1, &seq, 0);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(e, WM_OP_OUTCOMES), (unsigned)_i);
	if (!_i)
		fk_query(&p, 1, &seq, 0);
	ck_assert_uint_eq(outcome(e, &p, seq), WIRE_SUCCESS);
}
END_TEST

START_TEST(peer_that_dies_while_waiting_gets_no_outcome)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	reports_and_dies(a, seq);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &seq, 0);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_settle(&f);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_count(d, WM_OP_OUTCOMES), 0);
}
END_TEST

/* No connected agent is left whose report is awaited. */
START_TEST(attempt_is_done_if_only_disconnected_agents_are_left)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	fk_report(c, seq, true);
	reports_and_dies(a, seq);
	fk_cut(c, "reset by peer");
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), 0);
	fk_leave(&q, WM_LEAVE_DIED);
	d = comes_by_a_new_one(a, &p);
	fk_query(&p, 1, &seq, 0);
	ck_assert_uint_eq(outcome(d, &p, seq), WIRE_SUCCESS);
	ck_assert_uint_eq(fk_revision(d, 0), 8);
}
END_TEST

/* Starts a synchronization with p as the holder and q and r as receivers. */
static uint64_t one_gives(uint32_t giver, uint32_t receiver)
{
	struct wm_sync_vote v[3] = {fk_candidate(7, 1), fk_candidate(2, 5), fk_candidate(3, 6)};

	done_equal(6);
	v[0].strategy = giver;
	v[1].strategy = v[2].strategy = receiver;
	fk_sync(&p, v[0]);
	fk_sync(&q, v[1]);
	fk_sync(&r, v[2]);
	return seq_now();
}

START_TEST(disconnect_of_the_only_source_aborts)
{
	uint64_t seq = one_gives(_i == 2 ? WM_STRATEGY_SEND_ONLY : WM_STRATEGY_ENFORCE_POPULAR,
		_i == 2 ? WM_STRATEGY_RECEIVE_ONLY : WM_STRATEGY_ENFORCE_POPULAR);

	if (_i > 0)
		fk_report(b, seq, true);
	reports_and_dies(a, seq);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), _i != 1);
	ck_assert_uint_eq(fk_generation(c, 0), _i != 1);
	if (_i == 1) {
		fk_report(c, seq, true);
		ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 1);
	} else {
		assert_contains(fk_take(b, WM_OP_ABORT)->u.op_abort.text, "the agent on a is gone");
	}
}
END_TEST

/* The process of the only holder dies. Its agent stays connected. */
START_TEST(receive_only_peer_is_no_source)
{
	uint64_t seq = one_gives(WM_STRATEGY_SEND_ONLY, WM_STRATEGY_RECEIVE_ONLY);

	fk_report(b, seq, true);
	fk_forget(&f);
	if (_i) /* no receiver lacks anything any more */
		fk_leave(&r, WM_LEAVE_DIED);
	fk_leave(&p, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), !_i);
	ck_assert_uint_eq(fk_count(b, WM_OP_ABORT), !_i);
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), (unsigned)_i);
}
END_TEST

/* ---- agents that come back with their state ---- */

START_TEST(returning_agent_takes_its_part_again)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	reports_and_dies(a, seq);
	d = comes_again(a, &p, seq);
	ck_assert_int_eq(fk_info(&p).state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	if (_i == 0)
		fk_report(d, seq, true);
	fk_resumed(d);
	fk_settle(&f);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	if (_i == 1) {
		ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 0);
		fk_report(d, seq, true);
	}
	ck_assert_uint_eq(fk_count(b, WM_OP_DONE), 1);
	ck_assert_uint_eq(fk_take(d, WM_OP_DONE)->u.op_done.revision, 7);
	nobody_is_told_of_a_failure();
}
END_TEST

/* The peers of the agent are sources again, too. */
START_TEST(returning_agent_is_a_source_again)
{
	uint64_t seq = one_gives(WM_STRATEGY_ENFORCE_POPULAR, WM_STRATEGY_ENFORCE_POPULAR);
	struct fk_host *d;

	fk_report(b, seq, true);
	reports_and_dies(a, seq);
	d = comes_again(a, &p, seq);
	fk_report(d, seq, true);
	fk_resumed(d);
	fk_leave(&q, WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(c, WM_OP_ABORT), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(d, WM_OP_DONE), 1);
}
END_TEST

START_TEST(peer_that_leaves_during_a_disconnect_is_not_awaited)
{
	uint64_t seq = two_and_one();
	struct fk_host *d;

	reports_and_dies(a, seq);
	d = fk_reconnect(a);
	p = fk_join_again(&p, d, WM_JOIN_ACCEPTED);
	fk_leave(&p, WM_LEAVE_DIED);
	fk_resumed(d);
	fk_settle(&f);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
}
END_TEST

/* An agent takes over neither peers of another agent nor peers that have a part already. */
START_TEST(agent_takes_only_the_part_of_its_own_peers)
{
	uint64_t seq = two_and_one();
	struct fk_peer other = p;
	struct fk_host *d;

	fk_report(c, seq, true);
	reports_and_dies(a, seq);
	fk_cut(c, "reset by peer");
	d = comes_again(c, &r, seq);
	other.host = d;
	fk_sync_again(&other, fk_candidate(7, 1), seq, 7, 1);
	fk_sync_again(&r, fk_candidate(7, 1), seq, 7, 1);
	ck_assert(fk_info(&p).disconnected);
	fk_report(d, seq, true);
	fk_resumed(d);
	fk_settle(&f);
	nobody_is_told_of_a_failure();
	fk_report(b, seq, true);
	ck_assert_uint_eq(fk_count(d, WM_OP_DONE), 1);
}
END_TEST

Suite *sync_disconnect_suite(void)
{
	Suite *s = suite_create("sync_disconnect");
	TCase *tc = tcase_create("synchronizations without disconnected agents");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, disconnect_after_the_report_does_not_abort, 0, 2);
	tcase_add_loop_test(tc, peer_with_a_new_agent_gets_the_outcome_later, 0, 2);
	tcase_add_test(tc, outcome_during_a_disconnect_is_sent_on_return);
	tcase_add_test(tc, query_for_another_attempt_does_not_wait);
	tcase_add_loop_test(tc, third_agent_of_a_peer_gets_the_outcome, 0, 2);
	tcase_add_test(tc, peer_that_dies_while_waiting_gets_no_outcome);
	tcase_add_test(tc, attempt_is_done_if_only_disconnected_agents_are_left);
	tcase_add_loop_test(tc, disconnect_of_the_only_source_aborts, 0, 3);
	tcase_add_loop_test(tc, receive_only_peer_is_no_source, 0, 2);
	tcase_add_loop_test(tc, returning_agent_takes_its_part_again, 0, 2);
	tcase_add_test(tc, returning_agent_is_a_source_again);
	tcase_add_test(tc, peer_that_leaves_during_a_disconnect_is_not_awaited);
	tcase_add_test(tc, agent_takes_only_the_part_of_its_own_peers);
	suite_add_tcase(s, tc);
	return s;
}
