/* SPDX-License-Identifier: MIT
 *
 * The master's core: a run is taken over from a master that died. What becomes of synchronizations
 * of shared state, at every stage, and of the revisions.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

/* What the last master's agents were told that group 0 expects. */
static void expects(uint64_t revision)
{
	size_t i;

	for (i = 0; i < 3; i++)
		tk.know[i].own.revision = revision;
}

/* Of the attempt TK_SEQ, which was to make revision 7 and contents 1 of all. */
static void told(size_t i, struct wm_sync_vote candidate)
{
	fk_sync_again(&tk.p[i], candidate, TK_SEQ, 7, 1);
}

static const struct wm_sync_start *start_of(size_t i)
{
	const struct wm_op_start *s = &fk_take(tk.h[i], WM_OP_START)->u.op_start;

	ck_assert(s->is_sync);
	ck_assert_uint_eq(s->seq, TK_SEQ);
	return &s->sync;
}

/* All have it, with revision 7; the next one is expected. */
static void all_done(void)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		const struct wm_op_done *x = &fk_take(tk.h[i], WM_OP_DONE)->u.op_done;

		ck_assert_uint_eq(x->seq, TK_SEQ);
		ck_assert_uint_eq(x->revision, 7);
		ck_assert_uint_eq(fk_revision(tk.h[i], 0), 8);
	}
}

/* All get there together the second time. */
static void tried_again(uint64_t revision)
{
	uint64_t seq;
	size_t i;

	fk_settle(&tk.f);
	fk_forget(&tk.f);
	for (i = 0; i < 3; i++)
		fk_sync(&tk.p[i], fk_candidate(revision, 1));
	seq = fk_take(tk.h[0], WM_OP_START)->u.op_start.seq;
	ck_assert_uint_gt(seq, TK_SEQ);
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], seq, true);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.revision, revision);
}

/* h[i]'s agent died with the master; its peer comes by a new one. */
static void restart(size_t i)
{
	tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
	tk_join(i, WM_JOIN_ACCEPTED);
	tk.know[i] = (struct tk_know){.r = {0}};
}

/* ---- stage by stage ---- */

START_TEST(votes_that_waited_go_on_waiting)
{
	expects(7);
	tk_all_come_back();
	fk_sync(&tk.p[0], fk_candidate(7, 1));
	fk_sync(&tk.p[1], fk_candidate(6, 1));
	tk_all_end();
	tk_none_of(WM_OP_START);
	tk_no_error();
	fk_sync(&tk.p[2], fk_candidate(7, 1));
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_START)->u.op_start.sync.revision, 7);
	tk_no_error();
}
END_TEST

START_TEST(what_runs_goes_on_and_is_not_elected_again)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	/* By what they offered, 2 would be elected now: one that had offered 1 was lost meanwhile.
	 */
	told(0, fk_candidate(7, 2));
	told(1, fk_candidate(7, 2));
	told(2, fk_candidate(7, 1));
	fk_report(tk.h[0], TK_SEQ, true);
	tk_all_end();
	tk_none_of(WM_OP_START);
	tk_no_error();
	ck_assert_int_eq(fk_info(&tk.p[0]).state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	for (i = 1; i < 3; i++) {
		tk_none_of(WM_OP_DONE);
		fk_report(tk.h[i], TK_SEQ, true);
	}
	all_done();
	tk_no_error();
	tried_again(8);
}
END_TEST

/* Whom it has for a holder it knows, too. */
START_TEST(a_running_synchronization_has_its_holders)
{
	expects(7);
	tk_all_come_back();
	told(0, fk_candidate(7, 2));
	told(1, fk_candidate(7, 2));
	told(2, fk_candidate(7, 1));
	tk_all_end();
	fk_leave(&tk.p[0], WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_ABORT), 0);
	fk_leave(&tk.p[2], WM_LEAVE_DIED);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_ABORT), 1);
}
END_TEST

START_TEST(losses_that_it_has_outlived_do_not_end_it)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		tk.know[i].own.generation = 4; /* they had voted before */
		told(i, fk_candidate(7, 1));
	}
	tk_all_end();
	tk_no_error();
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], TK_SEQ, true);
	all_done();
}
END_TEST

START_TEST(who_has_not_heard_of_the_start_is_told)
{
	const struct wm_sync_start *s;
	size_t i;

	expects(_i ? 7 : 0);
	for (i = 0; i < 3; i++)
		tk.know[i].own.generation = 4;
	tk_all_come_back();
	fk_know_generation(tk.h[0], 0, 4); /* of kicks before the start that it has heard of */
	told(0, fk_candidate(7, 1));
	fk_sync(&tk.p[1], fk_candidate(3, 2));
	if (_i) /* by another thread */
		fk_vote(&tk.p[1], 0);
	fk_sync(&tk.p[2], fk_candidate(4, 1));
	tk_all_end();
	ck_assert_uint_eq(fk_status(&tk.f).lost_members, 0);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_START), 0);
	s = start_of(1);
	ck_assert_uint_eq(s->revision, 7);
	ck_assert_uint_eq(s->content.lo, 1);
	ck_assert_uint_eq(s->keys.lo, 2);
	ck_assert_uint_eq(s->peers[0].role, WM_SYNC_RECEIVER);
	ck_assert_uint_eq(s->n_sources, 2);
	ck_assert_uint_eq(start_of(2)->peers[0].role, WM_SYNC_HOLDER);
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], TK_SEQ, true);
	all_done();
}
END_TEST

/* b and c were told that it was aborted, for a was away, and vote for the next one. */
START_TEST(votes_after_a_loss_are_not_for_what_ran_before_it)
{
	size_t i;

	expects(7);
	for (i = 0; i < 3; i++)
		tk.know[i].own.generation = i == 0 ? 4 : 5;
	tk_all_come_back();
	fk_know_generation(tk.h[1], 0, 5);
	fk_know_generation(tk.h[2], 0, 5);
	told(0, fk_candidate(7, 1));
	fk_report(tk.h[0], TK_SEQ, true);
	fk_sync(&tk.p[1], fk_candidate(7, 1));
	fk_sync(&tk.p[2], fk_candidate(7, 1));
	tk_all_end();
	tk_none_of(WM_OP_START);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	tk_none_of(WM_OP_ABORT);
	fk_settle(&tk.f);
	fk_sync(&tk.p[0], fk_candidate(7, 1));
	for (i = 0; i < 3; i++)
		ck_assert_uint_gt(fk_take(tk.h[i], WM_OP_START)->u.op_start.seq, TK_SEQ);
}
END_TEST

/* The last master died between two starts: the only one that has it begins now. */
START_TEST(a_holder_may_hear_of_the_start_last)
{
	struct wm_sync_vote v = fk_candidate(7, _i == 1 ? 3 : 1);
	size_t i;

	expects(7);
	tk_all_come_back();
	told(0, fk_candidate(7, 2));
	told(1, fk_candidate(7, 2));
	if (_i == 2)
		v.strategy = WM_STRATEGY_RECEIVE_ONLY;
	fk_sync(&tk.p[2], v);
	tk_all_end();
	if (_i > 0) { /* what it has, nobody gets */
		for (i = 0; i < 2; i++)
			ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), 1);
		ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
		ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_ABORT), 0);
		for (i = 0; i < 2; i++) /* it still waits for them */
			fk_sync(&tk.p[i], fk_candidate(7, 1));
		ck_assert_uint_eq(fk_count(tk.h[2], _i == 1 ? WM_OP_START : WM_KICK), 1);
		return;
	}
	tk_no_error();
	ck_assert_uint_eq(start_of(2)->peers[0].role, WM_SYNC_HOLDER);
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], TK_SEQ, true);
	all_done();
}
END_TEST

/* What waited is elected here, and what ran goes on. */
START_TEST(the_next_master_knows_of_torn_state)
{
	struct wm_sync_vote torn = fk_candidate(7, 2);
	size_t i;

	torn.torn = true;
	expects(7);
	tk_all_come_back();
	if (_i) {
		fk_sync_again(&tk.p[0], torn, TK_SEQ, 7, 1);
		told(1, fk_candidate(7, 1));
		torn.content.lo = 1;
		fk_sync(&tk.p[2], torn);
		tk_all_end();
		ck_assert_uint_eq(start_of(2)->peers[0].role, WM_SYNC_HOLDER);
		for (i = 0; i < 3; i++)
			fk_report(tk.h[i], TK_SEQ, true);
		all_done();
		return;
	}
	fk_sync(&tk.p[0], torn);
	fk_sync(&tk.p[1], fk_candidate(7, 1));
	fk_sync(&tk.p[2], fk_candidate(6, 3));
	tk_all_end();
	for (i = 0; i < 3; i++) {
		const struct wm_op_start *x = &fk_take(tk.h[i], WM_OP_START)->u.op_start;

		ck_assert_uint_eq(x->sync.content.lo, 1);
		ck_assert_uint_eq(
			x->sync.peers[0].role, i == 1 ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER);
	}
}
END_TEST

/* As long as nothing has been synchronized, a receive-only peer may be ahead of all. */
START_TEST(what_was_expected_at_the_start_counts)
{
	struct wm_sync_vote send = fk_candidate(7, 1), receive = fk_candidate(9, 5),
			    old = fk_candidate(3, 1);

	send.strategy = old.strategy = WM_STRATEGY_SEND_ONLY;
	receive.strategy = WM_STRATEGY_RECEIVE_ONLY;
	expects(_i ? 7 : 0);
	tk_all_come_back();
	told(0, old);
	told(1, send);
	fk_sync(&tk.p[2], receive);
	tk_all_end();
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), (size_t)_i);
	if (_i == 0) {
		const struct wm_sync_start *s = start_of(2);

		ck_assert_uint_eq(s->revision, 7);
		ck_assert_uint_eq(s->peers[0].role, WM_SYNC_RECEIVER);
		ck_assert_uint_eq(s->n_sources, 2);
	}
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[2], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

/* The last master had no time to say so. It does not matter whether the ring is known. */
START_TEST(who_has_not_heard_of_the_kick_is_kicked)
{
	struct wm_sync_vote v = fk_candidate(7, 1);
	const char *text = "it has revision 8";

	expects(7);
	if (_i == 3)
		tk.know[0].position.hosts = 0;
	tk_all_come_back();
	told(0, fk_candidate(7, 1));
	told(1, fk_candidate(7, 2));
	if (_i == 0) {
		v.revision = 8;
	} else if (_i == 1) {
		v.keys.hi = 9;
		text = "other keys";
	} else {
		v.strategy = WM_STRATEGY_SEND_ONLY;
		text = "all peers of a group must declare it, or none";
	}
	fk_sync(&tk.p[2], v);
	tk_all_end();
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, text);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 0);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

/* a was told of the loss with the start, b of neither: one loss for both. */
START_TEST(a_kick_that_some_have_heard_of_is_counted_once)
{
	struct wm_sync_vote v = fk_candidate(7, 1);

	expects(7);
	tk.know[0].r.view.view_id = 4;
	tk.know[0].r.view.global = tk.know[0].own.world_size = 2;
	tk.know[0].own.generation = 1;
	tk_all_come_back();
	told(0, fk_candidate(7, 1));
	fk_sync(&tk.p[1], fk_candidate(7, 2));
	v.keys.hi = 9;
	fk_sync(&tk.p[2], v);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "other keys");
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_START), 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, 1);
	ck_assert_uint_eq(tk.h[1]->generations[0].generation, 1);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

START_TEST(votes_of_one_agent_for_one_attempt_are_one_part)
{
	struct fk_peer x;

	/* d comes with two peers, both of which have voted. */
	tk.know[0].own.world_size = tk.know[1].own.world_size = tk.know[2].own.world_size = 4;
	tk.know[0].r.view.global = tk.know[1].r.view.global = tk.know[2].r.view.global = 4;
	expects(7);
	tk_all_come_back();
	x = tk.p[2];
	x.id = fk_id(&tk.f);
	x.token = fk_id(&tk.f);
	x = fk_join_again(&x, tk.h[2], WM_JOIN_ACCEPTED);
	told(0, fk_candidate(7, 1));
	told(1, fk_candidate(7, 1));
	fk_sync_again(&x, fk_candidate(2, 9), TK_SEQ, 7, 1);
	told(2, fk_candidate(7, 1));
	tk_all_end();
	tk_no_error();
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	tk_none_of(WM_OP_DONE);
	fk_report(tk.h[2], TK_SEQ, true);
	all_done();
}
END_TEST

START_TEST(what_all_have_reported_is_done)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		told(i, fk_candidate(7, i));
		fk_report(tk.h[i], TK_SEQ, true);
	}
	tk_all_end();
	all_done();
	tk_no_error();
	tried_again(8);
}
END_TEST

START_TEST(a_failure_that_was_reported_is_a_kick)
{
	struct fk_peer x;
	size_t i;

	for (i = 0; i < 3; i++)
		tk.know[i].own.world_size = tk.know[i].r.view.global = 4;
	expects(7);
	tk_all_come_back();
	x = tk.p[2];
	x.id = fk_id(&tk.f);
	x.token = fk_id(&tk.f);
	x = fk_join_again(&x, tk.h[2], WM_JOIN_ACCEPTED);
	for (i = 0; i < 3; i++)
		told(i, fk_candidate(7, i));
	fk_sync_again(&x, fk_candidate(7, 9), TK_SEQ, 7, 1);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	if (_i == 2) /* what was reported once stays so */
		fk_report(tk.h[2], TK_SEQ, true);
	fk_report_failed(&x, TK_SEQ, _i == 1);
	if (_i == 0)
		fk_report(tk.h[2], TK_SEQ, true);
	tk_all_end();
	ck_assert_str_eq(fk_take(tk.h[2], WM_KICK)->u.kick.text, "a leaf is wrong");
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 0);
	all_done();
}
END_TEST

START_TEST(a_failure_of_all_that_was_reported_aborts)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		told(i, fk_candidate(7, i));
		fk_report(tk.h[i], TK_SEQ, i != 1);
	}
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	tk_none_of(WM_OP_DONE);
	tried_again(7);
}
END_TEST

START_TEST(what_one_knows_to_be_done_is_done_for_all)
{
	size_t i;

	expects(7);
	tk.know[0].own.revision = 8;
	tk.know[0].outcomes[tk.know[0].r.n_outcomes++] = (struct wm_outcome){TK_SEQ, WIRE_SUCCESS};
	if (_i) /* also if it does not know what that makes of the revision */
		tk.know[0].own.revision = 7;
	tk_all_come_back();
	told(1, fk_candidate(7, 1));
	told(2, fk_candidate(7, 2));
	fk_report(tk.h[1], TK_SEQ, true);
	fk_report(tk.h[2], TK_SEQ, true);
	tk_all_end();
	for (i = 1; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 8);
	tk_no_error();
	tried_again(8);
}
END_TEST

/* Its agent died, too, and its part was not complete: it says nothing of the attempt. The others go
 * on to ask for the end: they know that it was done from the revision, or from a. */
START_TEST(whom_the_end_has_left_out_is_kicked_though_its_agent_died)
{
	uint64_t seq = TK_SEQ;

	expects(8);
	tk.know[0].own.generation = 1; /* by the kick that c has not heard of */
	if (_i)
		tk.know[0].outcomes[tk.know[0].r.n_outcomes++] =
			(struct wm_outcome){TK_SEQ, WIRE_SUCCESS};
	tk_come_back(0);
	if (_i == 0) {
		told(0, fk_candidate(7, 1));
		fk_report(tk.h[0], TK_SEQ, true);
	}
	restart(1);
	fk_query(&tk.p[1], 1, &seq, 0);
	restart(2);
	tk_all_end();
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_DONE), (size_t)!_i);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
}
END_TEST

/* They were out before it was done, and have not heard of that. */
START_TEST(whom_the_end_has_left_out_is_kicked)
{
	expects(8);
	tk.know[0].outcomes[tk.know[0].r.n_outcomes++] = (struct wm_outcome){TK_SEQ, WIRE_SUCCESS};
	tk_all_come_back();
	told(1, fk_candidate(7, 1));
	fk_report(tk.h[1], TK_SEQ, true);
	told(2, fk_candidate(7, 2));
	if (_i > 0)
		fk_report_failed(&tk.p[2], TK_SEQ, _i == 1);
	tk_all_end();
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code,
		_i ? WIRE_INVALID_USAGE : WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 0);
	ck_assert(!fk_present(&tk.p[2]));
	ck_assert(fk_present(&tk.p[1]) && fk_present(&tk.p[0]));
}
END_TEST

/* c was put out, in silence, and has not even heard of the start. Is b there to make one too many?
 */
START_TEST(whom_the_end_has_left_out_is_kicked_though_it_has_not_heard_of_the_start)
{
	size_t i;

	expects(7);
	for (i = 0; i < 2; i++) {
		tk.know[i].own =
			(struct wm_group_view){.world_size = 2, .generation = 2, .revision = 8};
		tk.know[i].r.view.global = tk.know[i].r.view.largest = 2;
		tk.know[i].r.view.view_id = 3;
	}
	tk.know[2].r.last_seq = TK_SEQ - 1;
	tk_come_back(0);
	if (_i)
		tk_come_back(1);
	tk_come_back(2);
	for (i = 0; i < 1 + (size_t)_i; i++) {
		told(i, fk_candidate(7, 1));
		fk_report(tk.h[i], TK_SEQ, true);
		tk_end(i);
	}
	fk_sync(&tk.p[2], fk_candidate(7, 1));
	tk_end(2);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(!fk_present(&tk.p[2]));
	for (i = 0; i < 1 + (size_t)_i; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

/* The new view was told, the end was not: not even by the one who did not come back. */
START_TEST(what_the_group_has_gone_beyond_is_done)
{
	size_t i;

	expects(7);
	tk.know[1].own.revision = 8;
	for (i = 0; i < 2; i++) {
		tk_come_back(i);
		told(i, fk_candidate(7, i));
		fk_report(tk.h[i], TK_SEQ, true);
		tk_end(i);
	}
	fk_tick(&tk.f, 3100);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.revision, 7);
		ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), 0);
		ck_assert_uint_eq(fk_revision(tk.h[i], 0), 8);
	}
}
END_TEST

START_TEST(what_one_knows_to_have_failed_has_failed_for_all)
{
	expects(7);
	tk.know[0].outcomes[tk.know[0].r.n_outcomes++] =
		(struct wm_outcome){TK_SEQ, WIRE_RANK_CONNECTION_LOST};
	tk_all_come_back();
	told(1, fk_candidate(7, 1));
	told(2, fk_candidate(7, 1));
	fk_report(tk.h[1], TK_SEQ, true);
	fk_report(tk.h[2], TK_SEQ, true);
	tk_all_end();
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.is_sync);
	tk_none_of(WM_OP_DONE);
	tried_again(7);
}
END_TEST

START_TEST(it_fails_for_all_when_not_all_are_back)
{
	size_t i;

	expects(7);
	for (i = 0; i < 2; i++) {
		tk_come_back(i);
		told(i, fk_candidate(7, 1));
		fk_report(tk.h[i], TK_SEQ, true);
		tk_end(i);
	}
	fk_tick(&tk.f, 3100);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(
			fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
		ck_assert_uint_eq(fk_revision(tk.h[i], 0), 7);
		ck_assert_uint_gt(fk_generation(tk.h[i], 0), 0);
	}
}
END_TEST

/* Receivers alone are left. */
START_TEST(it_fails_when_nobody_has_what_was_elected)
{
	struct wm_sync_vote v = fk_candidate(7, 2);
	size_t i;

	expects(7);
	tk_all_come_back();
	if (_i >= 2) { /* who gives it to nobody */
		v.strategy = WM_STRATEGY_RECEIVE_ONLY;
		v.content.lo = _i == 2 ? 1 : 2;
	}
	for (i = 0; i < 3; i++)
		told(i, v);
	if (_i % 2 == 1)
		fk_report(tk.h[1], TK_SEQ, true); /* but this one has got it */
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), _i != 1);
	if (_i != 1)
		tried_again(7);
}
END_TEST

START_TEST(agents_that_disagree_on_what_was_elected_do_not_go_on)
{
	size_t i;

	expects(7);
	for (i = 0; i < 3; i++)
		tk.know[i].own.generation = 4; /* it had outlived them */
	tk_all_come_back();
	told(0, fk_candidate(7, 1));
	told(1, fk_candidate(7, 1));
	fk_sync_again(&tk.p[2], fk_candidate(7, 2), TK_SEQ, 7, 2);
	tk_all_end();
	for (i = 0; i < 3; i++) /* nothing fails alone */
		ck_assert_uint_gt(fk_generation(tk.h[i], 0), 4);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_ABORT), 1);
}
END_TEST

START_TEST(a_second_vote_for_an_all_reduce_is_a_violation_still)
{
	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	if (_i)
		told(0, fk_candidate(7, 1));
	else
		fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	assert_contains(tk.h[0]->closed, "second vote");
}
END_TEST

/* ---- peers whose agents died, too ---- */

/* p[0] comes by a new agent, which the last master knew or not; the others' agents have lived. What
 * p[2] lacks has not come yet, or it has all. */
static void one_is_new(bool asks, bool known, bool lacks)
{
	uint64_t seq = TK_SEQ;
	size_t i;

	expects(7);
	if (known)
		tk_connect(0);
	else
		tk.h[0] = fk_reconnect_as(tk.h[0], 1, true);
	tk_join(0, WM_JOIN_ACCEPTED);
	if (asks)
		fk_query(&tk.p[0], 1, &seq, 0);
	if (known)
		tk_end(0);
	else
		fk_resumed(tk.h[0]);
	for (i = 1; i < 3; i++) {
		tk_come_back(i);
		told(i, fk_candidate(7, i));
		if (i == 1 || !lacks)
			fk_report(tk.h[i], TK_SEQ, true);
		tk_end(i);
	}
	fk_tick(&tk.f, 400);
}

START_TEST(an_attempt_in_doubt_is_done_if_all_have_it)
{
	one_is_new(true, _i, false);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 8);
	tried_again(8);
}
END_TEST

/* Who asks for it needs nothing more, so the others go on. */
START_TEST(an_attempt_in_doubt_goes_on_if_others_lack_something)
{
	one_is_new(true, _i, true);
	tk_no_error();
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_OUTCOMES), 0);
	fk_report(tk.h[2], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_DONE)->u.op_done.revision, 7);
	tk_no_error();
	tried_again(8);
}
END_TEST

START_TEST(an_attempt_in_doubt_has_failed_if_one_lacks_it)
{
	one_is_new(false, _i, false);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	tried_again(7);
}
END_TEST

/* ---- revisions ---- */

START_TEST(the_highest_revision_that_an_agent_knows_counts)
{
	size_t i;

	tk.know[0].own.revision = 12;
	tk.know[1].own.revision = 11;
	tk.know[2].own.revision = 0;
	tk_all_come_back();
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_revision(tk.h[i], 0), 12);
	tried_again(12);
}
END_TEST

/* All of an earlier run of the group had left when the agent that says 0 was told of this one. */
START_TEST(the_newest_word_on_a_revision_counts)
{
	size_t newest = (size_t)_i;

	expects(12);
	tk.know[newest].own.revision = 0;
	tk.know[newest].r.view.view_id = 3;
	tk_all_come_back();
	tk_all_end();
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 0);
	tried_again(3);
}
END_TEST

START_TEST(where_nobody_knows_a_revision_any_will_do)
{
	tk_all_come_back();
	tk_all_end();
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 0);
	tried_again(99);
}
END_TEST

/* A master that stood still takes its run over anew, and forgets nothing. */
START_TEST(a_master_that_stood_still_knows_the_revisions)
{
	size_t i;

	expects(12);
	tk_all_come_back();
	tk_all_end();
	tk.f.now += 9000000000;
	fk_tick(&tk.f, 100);
	for (i = 0; i < 3; i++) {
		tk.know[i].own.revision = 0;
		tk_come_back(i);
	}
	tk_all_end();
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 12);
}
END_TEST

/* a names its peer, and is not heard out before the master has to draw its conclusions:
 * what the group expects, a says later. */
START_TEST(a_revision_that_is_told_late_counts)
{
	tk.know[0].own.revision = 12;
	tk_come_back(0);
	tk_come_back(1);
	tk_come_back(2);
	tk_end(1);
	tk_end(2);
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_come_back(0);
	tk_end(0);
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 12);
	tried_again(12);
}
END_TEST

/* Its member of that run was put out: the others have left, and the next run begins at 0. */
START_TEST(a_revision_of_a_run_that_is_over_does_not)
{
	expects(12);
	tk_come_back(1);
	tk_end(1);
	tk_come_back(2);
	tk_end(2);
	fk_tick(&tk.f, 3200);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
	fk_leave(&tk.p[1], WM_LEAVE_CLEAN);
	fk_leave(&tk.p[2], WM_LEAVE_CLEAN);
	tk_connect(0);
	tk.p[0] = fk_join(tk.h[0], 0);
	tk_end(0);
	fk_sync(&tk.p[0], fk_candidate(0, 1));
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_START)->u.op_start.sync.revision, 0);
}
END_TEST

/* a was left out of the rounds that b's peer was in since; b's agent is a new one, which knows
 * nothing. The next run of the group may have begun at 0 meanwhile. */
START_TEST(a_revision_of_who_was_left_out_does_not_count)
{
	tk.know[0].own.revision = 20;
	tk_come_back(0);
	tk.h[1] = fk_reconnect_as(tk.h[1], 0, true);
	tk.h[1]->peers = (struct wm_join){.epoch = 4,
		.ring_epoch = 4,
		.topo_ballot = 4,
		.pending_ballot = 2,
		.view_id = 5,
		.global = 1,
		.world_size = 1};
	tk_join(1, WM_JOIN_ACCEPTED);
	tk.know[1] = (struct tk_know){.r = {0}};
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 3200);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_KICK), 1);
	fk_sync(&tk.p[1], fk_candidate(13, 1));
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_START)->u.op_start.sync.revision, 13);
}
END_TEST

/* a's members have left, and a newcomer waits there. The others may have left since, too, and the
 * next run of the group begun at 0: a's agent was told no more. */
START_TEST(a_revision_of_who_has_no_members_does_not_count)
{
	struct wm_msg msg;
	size_t i;

	tk.know[0].own.revision = 20;
	for (i = 0; i < 2; i++) { /* it is redirected once */
		tk.h[0] = fk_connect(&tk.f, "a", "10.0.0.1");
		msg = fk_hello(tk.h[0]);
		msg.u.hello.run = tk.f.run;
		msg.u.hello.run_key = tk.f.run_key;
		msg.u.hello.term = 1;
		msg.u.hello.newcomers = true;
		fk_send(tk.h[0], &msg);
		tk_join(0, WM_JOIN_NEW);
		tk_end(0);
		fk_tick(&tk.f, 3200);
	}
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	fk_sync(&tk.p[0], fk_candidate(13, 1));
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_START)->u.op_start.sync.revision, 13);
}
END_TEST

Suite *sync_resume_suite(void)
{
	Suite *s = suite_create("sync_resume");
	TCase *tc = tcase_create("synchronizations of a run that is taken over");

	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_test(tc, votes_that_waited_go_on_waiting);
	tcase_add_test(tc, what_runs_goes_on_and_is_not_elected_again);
	tcase_add_test(tc, a_running_synchronization_has_its_holders);
	tcase_add_test(tc, losses_that_it_has_outlived_do_not_end_it);
	tcase_add_loop_test(tc, who_has_not_heard_of_the_start_is_told, 0, 2);
	tcase_add_test(tc, votes_after_a_loss_are_not_for_what_ran_before_it);
	tcase_add_loop_test(tc, a_holder_may_hear_of_the_start_last, 0, 3);
	tcase_add_loop_test(tc, the_next_master_knows_of_torn_state, 0, 2);
	tcase_add_loop_test(tc, what_was_expected_at_the_start_counts, 0, 2);
	tcase_add_loop_test(tc, who_has_not_heard_of_the_kick_is_kicked, 0, 4);
	tcase_add_test(tc, a_kick_that_some_have_heard_of_is_counted_once);
	tcase_add_test(tc, votes_of_one_agent_for_one_attempt_are_one_part);
	tcase_add_test(tc, what_all_have_reported_is_done);
	tcase_add_loop_test(tc, a_failure_that_was_reported_is_a_kick, 0, 3);
	tcase_add_test(tc, a_failure_of_all_that_was_reported_aborts);
	tcase_add_loop_test(tc, what_one_knows_to_be_done_is_done_for_all, 0, 2);
	tcase_add_loop_test(tc, whom_the_end_has_left_out_is_kicked_though_its_agent_died, 0, 2);
	tcase_add_loop_test(tc, whom_the_end_has_left_out_is_kicked, 0, 3);
	tcase_add_loop_test(
		tc, whom_the_end_has_left_out_is_kicked_though_it_has_not_heard_of_the_start, 0, 2);
	tcase_add_test(tc, what_the_group_has_gone_beyond_is_done);
	tcase_add_test(tc, what_one_knows_to_have_failed_has_failed_for_all);
	tcase_add_test(tc, it_fails_for_all_when_not_all_are_back);
	tcase_add_loop_test(tc, it_fails_when_nobody_has_what_was_elected, 0, 4);
	tcase_add_test(tc, agents_that_disagree_on_what_was_elected_do_not_go_on);
	tcase_add_loop_test(tc, a_second_vote_for_an_all_reduce_is_a_violation_still, 0, 2);
	tcase_add_loop_test(tc, an_attempt_in_doubt_is_done_if_all_have_it, 0, 2);
	tcase_add_loop_test(tc, an_attempt_in_doubt_goes_on_if_others_lack_something, 0, 2);
	tcase_add_loop_test(tc, an_attempt_in_doubt_has_failed_if_one_lacks_it, 0, 2);
	tcase_add_test(tc, the_highest_revision_that_an_agent_knows_counts);
	tcase_add_loop_test(tc, the_newest_word_on_a_revision_counts, 0, 3);
	tcase_add_test(tc, where_nobody_knows_a_revision_any_will_do);
	tcase_add_test(tc, a_master_that_stood_still_knows_the_revisions);
	tcase_add_test(tc, a_revision_that_is_told_late_counts);
	tcase_add_test(tc, a_revision_of_a_run_that_is_over_does_not);
	tcase_add_test(tc, a_revision_of_who_was_left_out_does_not_count);
	tcase_add_test(tc, a_revision_of_who_has_no_members_does_not_count);
	suite_add_tcase(s, tc);
	return s;
}
