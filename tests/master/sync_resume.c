/* SPDX-License-Identifier: MIT
 *
 * The master's core takes over a run from a master that died: synchronizations of shared state at
 * every stage, and the revisions of groups.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

/* Sets the revision that group 0 expects in all snapshots. */
static void expects(uint64_t revision)
{
	size_t i;

	for (i = 0; i < 3; i++)
		tk.know[i].own.revision = revision;
}

/* Sends p[i]'s vote for attempt TK_SEQ again. The attempt has elected revision 7 and contents 1. */
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

/* Checks that all have completed revision 7 and expect the next one. */
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

/* Checks that all complete the next attempt together. */
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

/* Lets p[i] join through a new agent. The agent of h[i] died together with the master. */
static void restart(size_t i)
{
	tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
	tk_join(i, WM_JOIN_ACCEPTED);
	tk.know[i] = (struct tk_know){.r = {0}};
}

/* ---- stage by stage ---- */

START_TEST(waiting_votes_continue_to_wait)
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

START_TEST(running_synchronization_is_not_elected_again)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	/* With these candidates the contents 2 would be elected now. A peer with the contents 1 was
	 * lost. */
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

/* The new master also knows which peers are holders. */
START_TEST(new_master_knows_the_holders)
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

START_TEST(losses_before_a_takeover_do_not_end_an_attempt)
{
	size_t i;

	expects(7);
	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		tk.know[i].own.generation = 4; /* these are losses since the votes */
		told(i, fk_candidate(7, 1));
	}
	tk_all_end();
	tk_no_error();
	for (i = 0; i < 3; i++)
		fk_report(tk.h[i], TK_SEQ, true);
	all_done();
}
END_TEST

START_TEST(agent_that_has_missed_the_start_gets_the_start)
{
	const struct wm_sync_start *s;
	size_t i;

	expects(_i ? 7 : 0);
	for (i = 0; i < 3; i++)
		tk.know[i].own.generation = 4;
	tk_all_come_back();
	fk_know_generation(tk.h[0], 0, 4); /* this agent knows of kicks that precede the start */
	told(0, fk_candidate(7, 1));
	fk_sync(&tk.p[1], fk_candidate(3, 2));
	if (_i) /* from another thread */
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

/* b and c were told that the attempt was aborted, because a was disconnected. They vote for the
 * next attempt. */
START_TEST(votes_after_a_loss_do_not_join_an_older_attempt)
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

/* The last master died after it had sent the start to a and b. c, the only holder, gets it now. */
START_TEST(holder_may_get_the_start_last)
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
	if (_i > 0) { /* here c is no holder, so no source is left */
		for (i = 0; i < 2; i++)
			ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), 1);
		ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
		ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_ABORT), 0);
		for (i = 0; i < 2; i++) /* c still waits for the votes of a and b */
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

/* With _i == 0 the synchronization still waited for votes, so the new master holds the election.
 * With _i == 1 it had started and continues. */
START_TEST(next_master_knows_of_torn_state)
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

/* Before the first synchronization, a receive-only peer may have a higher revision than all
 * others. */
START_TEST(revision_expected_at_the_start_counts)
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

/* The last master had no time to send the kick. It does not matter whether the ring is known. */
START_TEST(peer_that_has_missed_its_kick_is_kicked)
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

/* Host a was told of the loss and of the start, and b of neither. Both count one loss. */
START_TEST(kick_that_only_some_agents_know_is_counted_once)
{
	struct wm_sync_vote v = fk_candidate(7, 1);

	expects(7);
	tk_lost(0, 2);
	tk.know[0].own.generation = 1;
	tk_all_come_back();
	told(0, fk_candidate(7, 1));
	fk_sync(&tk.p[1], fk_candidate(7, 2));
	v.keys.hi = 9;
	fk_sync(&tk.p[2], v);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "declared lost");
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_START), 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, 1);
	ck_assert_uint_eq(tk.h[1]->generations[0].generation, 1);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

START_TEST(votes_of_one_agent_are_one_part_of_an_attempt)
{
	struct fk_peer x;

	/* c's agent has two peers, and both have voted. */
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

START_TEST(attempt_that_all_have_reported_is_done)
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

START_TEST(reported_failure_of_a_peer_is_a_kick)
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
	if (_i == 2) /* an earlier report stays valid */
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

START_TEST(reported_failure_of_a_host_aborts)
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

START_TEST(success_that_one_agent_knows_holds_for_all)
{
	size_t i;

	expects(7);
	tk.know[0].own.revision = 8;
	tk.know[0].outcomes[tk.know[0].r.n_outcomes++] = (struct wm_outcome){TK_SEQ, WIRE_SUCCESS};
	if (_i) /* also if this agent does not know the new revision */
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

/* The last master had kicked c before the synchronization was done without c. It could not tell c
 * of the kick. c's agent died, too. c's part was not complete, so c asks for nothing. The master
 * knows of the success from the revision, or from host a. */
START_TEST(left_out_peer_with_a_new_agent_is_kicked)
{
	uint64_t seq = TK_SEQ;

	expects(8);
	tk_lost(0, 2);
	tk.know[0].own.generation = 1;
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

/* c was no longer in the attempt when the attempt completed, and does not know of its success. a's
 * agent, which knows of the success, knows of the loss of c, too. */
START_TEST(peer_left_out_of_the_outcome_is_kicked)
{
	expects(8);
	tk_lost(0, 2);
	tk.know[0].outcomes[tk.know[0].r.n_outcomes++] = (struct wm_outcome){TK_SEQ, WIRE_SUCCESS};
	tk_all_come_back();
	told(1, fk_candidate(7, 1));
	fk_report(tk.h[1], TK_SEQ, true);
	told(2, fk_candidate(7, 2));
	if (_i > 0)
		fk_report_failed(&tk.p[2], TK_SEQ, _i == 1);
	tk_all_end();
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 0);
	ck_assert(!fk_present(&tk.p[2]));
	ck_assert(fk_present(&tk.p[1]) && fk_present(&tk.p[0]));
}
END_TEST

/* c was kicked without being told, and has not even received the start. With _i == 1, b has
 * come, too. Then more peers have come than the run has members. */
START_TEST(left_out_peer_that_missed_the_start_is_kicked)
{
	size_t i;

	expects(7);
	for (i = 0; i < 2; i++) {
		tk_lost(i, 2);
		tk.know[i].own.generation = 2;
		tk.know[i].own.revision = 8;
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
	if (_i == 0) { /* half of the run has come; it is redirected once */
		fk_tick(&tk.f, 3100);
		tk_come_back(0);
		told(0, fk_candidate(7, 1));
		fk_report(tk.h[0], TK_SEQ, true);
		tk_end(0);
		tk_come_back(2);
		fk_sync(&tk.p[2], fk_candidate(7, 1));
		tk_end(2);
		fk_tick(&tk.f, 3100);
	}
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_KICK)->u.kick.code, WIRE_RANK_CONNECTION_LOST);
	ck_assert(!fk_present(&tk.p[2]));
	for (i = 0; i < 1 + (size_t)_i; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.revision, 7);
}
END_TEST

/* The last master died after it had sent the new view, but before it sent the end of the attempt.
 * So the agent that does not come back has not received the end either. */
START_TEST(attempt_below_the_expected_revision_is_done)
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

START_TEST(failure_that_one_agent_knows_holds_for_all)
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

START_TEST(attempt_fails_for_all_if_an_agent_is_missing)
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

/* Only receivers are left. */
START_TEST(attempt_fails_if_no_holder_is_left)
{
	struct wm_sync_vote v = fk_candidate(7, 2);
	size_t i;

	expects(7);
	tk_all_come_back();
	if (_i >= 2) { /* receive-only peers are no sources */
		v.strategy = WM_STRATEGY_RECEIVE_ONLY;
		v.content.lo = _i == 2 ? 1 : 2;
	}
	for (i = 0; i < 3; i++)
		told(i, v);
	if (_i % 2 == 1)
		fk_report(tk.h[1], TK_SEQ, true); /* this host has received everything */
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), _i != 1);
	if (_i != 1)
		tried_again(7);
}
END_TEST

START_TEST(attempt_fails_if_agents_disagree_on_the_election)
{
	size_t i;

	expects(7);
	for (i = 0; i < 3; i++)
		tk.know[i].own.generation = 4; /* the attempt had outlived these losses */
	tk_all_come_back();
	told(0, fk_candidate(7, 1));
	told(1, fk_candidate(7, 1));
	fk_sync_again(&tk.p[2], fk_candidate(7, 2), TK_SEQ, 7, 2);
	tk_all_end();
	for (i = 0; i < 3; i++) /* the failure is a loss for all */
		ck_assert_uint_gt(fk_generation(tk.h[i], 0), 4);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_ABORT), 1);
}
END_TEST

START_TEST(second_vote_for_an_all_reduce_is_a_violation)
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

/* Lets p[0] join through a new agent, which the last master knew if `known` is true. The agents of
 * the other peers are still running. With `lacks`, p[2] has not received everything yet. */
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

START_TEST(attempt_in_doubt_is_done_if_all_are_complete)
{
	one_is_new(true, _i, false);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_DONE)->u.op_done.revision, 7);
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 8);
	tried_again(8);
}
END_TEST

/* The peer that asks about the attempt has all the elected contents, so the others continue. */
START_TEST(attempt_in_doubt_continues_if_others_lack_something)
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

START_TEST(attempt_in_doubt_fails_if_one_peer_lacks_it)
{
	one_is_new(false, _i, false);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	tried_again(7);
}
END_TEST

/* ---- revisions ---- */

START_TEST(highest_revision_that_an_agent_knows_counts)
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

/* All members of the group had left when the agent with revision 0 got its view. */
START_TEST(revision_in_the_newest_view_counts)
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

START_TEST(any_revision_is_valid_if_no_agent_knows_one)
{
	tk_all_come_back();
	tk_all_end();
	ck_assert_uint_eq(fk_revision(tk.h[0], 0), 0);
	tried_again(99);
}
END_TEST

/* A suspended master takes over its run again, and forgets nothing. */
START_TEST(suspended_master_remembers_revisions)
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

/* a's peer joins, but a's snapshot is not complete before the master decides. The expected revision
 * comes later. */
START_TEST(late_revision_counts)
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

/* In that run, host a's member was kicked, and the others have left. The next run begins at 0. */
START_TEST(revision_of_a_run_that_is_over_does_not_count)
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

/* Host a's agent was disconnected while the group went on. b's agent does not know the revision.
 * The next run of the group may have begun at 0 meanwhile. */
START_TEST(revision_of_a_left_out_agent_does_not_count)
{
	tk.know[0].own.revision = 20;
	tk_come_back(0);
	tk.know[1].r.view.view_id = 5;
	tk.know[1].r.view.global = tk.know[1].own.world_size = 1;
	tk.know[1].lost = tk.p[0].id;
	tk.know[1].r.view.n_lost = 1;
	tk_connect(1);
	tk_join(1, WM_JOIN_ACCEPTED);
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 3200);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_KICK), 1);
	fk_sync(&tk.p[1], fk_candidate(13, 1));
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_START)->u.op_start.sync.revision, 13);
}
END_TEST

/* Host a's members have left, and a newcomer waits on host a. The others may have left since then,
 * and the next run of the group may have begun at 0. a's agent was not told of this. */
START_TEST(revision_of_an_agent_without_members_does_not_count)
{
	struct wm_msg msg;
	size_t i;

	tk.know[0].own.revision = 20;
	for (i = 0; i < 2; i++) { /* the agent is redirected once */
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
	tcase_add_test(tc, waiting_votes_continue_to_wait);
	tcase_add_test(tc, running_synchronization_is_not_elected_again);
	tcase_add_test(tc, new_master_knows_the_holders);
	tcase_add_test(tc, losses_before_a_takeover_do_not_end_an_attempt);
	tcase_add_loop_test(tc, agent_that_has_missed_the_start_gets_the_start, 0, 2);
	tcase_add_test(tc, votes_after_a_loss_do_not_join_an_older_attempt);
	tcase_add_loop_test(tc, holder_may_get_the_start_last, 0, 3);
	tcase_add_loop_test(tc, next_master_knows_of_torn_state, 0, 2);
	tcase_add_loop_test(tc, revision_expected_at_the_start_counts, 0, 2);
	tcase_add_loop_test(tc, peer_that_has_missed_its_kick_is_kicked, 0, 4);
	tcase_add_test(tc, kick_that_only_some_agents_know_is_counted_once);
	tcase_add_test(tc, votes_of_one_agent_are_one_part_of_an_attempt);
	tcase_add_test(tc, attempt_that_all_have_reported_is_done);
	tcase_add_loop_test(tc, reported_failure_of_a_peer_is_a_kick, 0, 3);
	tcase_add_test(tc, reported_failure_of_a_host_aborts);
	tcase_add_loop_test(tc, success_that_one_agent_knows_holds_for_all, 0, 2);
	tcase_add_loop_test(tc, left_out_peer_with_a_new_agent_is_kicked, 0, 2);
	tcase_add_loop_test(tc, peer_left_out_of_the_outcome_is_kicked, 0, 3);
	tcase_add_loop_test(tc, left_out_peer_that_missed_the_start_is_kicked, 0, 2);
	tcase_add_test(tc, attempt_below_the_expected_revision_is_done);
	tcase_add_test(tc, failure_that_one_agent_knows_holds_for_all);
	tcase_add_test(tc, attempt_fails_for_all_if_an_agent_is_missing);
	tcase_add_loop_test(tc, attempt_fails_if_no_holder_is_left, 0, 4);
	tcase_add_test(tc, attempt_fails_if_agents_disagree_on_the_election);
	tcase_add_loop_test(tc, second_vote_for_an_all_reduce_is_a_violation, 0, 2);
	tcase_add_loop_test(tc, attempt_in_doubt_is_done_if_all_are_complete, 0, 2);
	tcase_add_loop_test(tc, attempt_in_doubt_continues_if_others_lack_something, 0, 2);
	tcase_add_loop_test(tc, attempt_in_doubt_fails_if_one_peer_lacks_it, 0, 2);
	tcase_add_test(tc, highest_revision_that_an_agent_knows_counts);
	tcase_add_loop_test(tc, revision_in_the_newest_view_counts, 0, 3);
	tcase_add_test(tc, any_revision_is_valid_if_no_agent_knows_one);
	tcase_add_test(tc, suspended_master_remembers_revisions);
	tcase_add_test(tc, late_revision_counts);
	tcase_add_test(tc, revision_of_a_run_that_is_over_does_not_count);
	tcase_add_test(tc, revision_of_a_left_out_agent_does_not_count);
	tcase_add_test(tc, revision_of_an_agent_without_members_does_not_count);
	suite_add_tcase(s, tc);
	return s;
}
