/* SPDX-License-Identifier: MIT
 *
 * The master's core takes over a run from a master that died: the operations of the run.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

START_TEST(running_operation_continues_after_a_takeover)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++)
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
	fk_report(tk.h[2], TK_SEQ, true);
	tk_all_end();
	tk_none_of(WM_OP_START);
	tk_no_error();
	ck_assert_int_eq(fk_info(&tk.p[0]).state, CCM_COLLECTIVE_COMMUNICATIONS_RUNNING);
	fk_report(tk.h[0], TK_SEQ, true);
	tk_none_of(WM_OP_DONE);
	fk_report(tk.h[1], TK_SEQ, true);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	tk_works();
}
END_TEST

START_TEST(report_may_come_after_the_snapshot_of_its_agent)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		tk_come_back(i);
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		tk_end(i);
		if (i < 2)
			fk_report(tk.h[i], TK_SEQ, true);
	}
	fk_report(tk.h[2], TK_SEQ, true);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_DONE), 1);
	tk_no_error();
}
END_TEST

START_TEST(lost_starts_are_repeated_in_order)
{
	uint64_t seq;

	tk.know[1].r.last_seq = TK_SEQ - 3;
	tk_all_come_back();
	for (seq = TK_SEQ; seq > TK_SEQ - 3; seq--) {
		fk_vote_seq(&tk.p[0], seq, seq);
		fk_vote_seq(&tk.p[1], seq, 0);
		fk_vote_seq(&tk.p[2], seq, seq);
	}
	tk_all_end();
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_START), 0);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_START), 0);
	for (seq = TK_SEQ - 2; seq <= TK_SEQ; seq++) {
		const struct wm_op_start *s = &fk_take(tk.h[1], WM_OP_START)->u.op_start;

		ck_assert_uint_eq(s->seq, seq);
		ck_assert_uint_eq(s->tag, seq);
		ck_assert_uint_eq(s->epoch, 2);
	}
	tk_no_error();
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	fk_report(tk.h[2], TK_SEQ, true);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
}
END_TEST

/* An agent knows a higher epoch, for example because a round has failed since the start. Data of
 * other epochs would not count. */
START_TEST(lost_start_is_repeated_with_its_epoch)
{
	size_t i;

	tk.know[2].r.epoch = 9;
	tk_all_come_back();
	for (i = 0; i < 3; i++)
		fk_vote_seq(&tk.p[i], 1, i == 1 ? 0 : TK_SEQ);
	tk_all_end();
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_START)->u.op_start.epoch, FK_EPOCH);
	tk_no_error();
}
END_TEST

START_TEST(operation_that_all_have_reported_is_done)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		fk_report(tk.h[i], TK_SEQ, true);
	}
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	tk_no_error();
}
END_TEST

START_TEST(failure_that_only_an_agent_knows_aborts_the_operation)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		fk_report(tk.h[i], TK_SEQ, i != 1);
	}
	tk_all_end();
	for (i = 0; i < 3; i++)
		assert_contains(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.text, "host b reports");
	tk_none_of(WM_OP_DONE);
	tk_works();
}
END_TEST

static void outcome(size_t i, uint64_t seq, uint32_t code)
{
	tk.know[i].outcomes[tk.know[i].r.n_outcomes++] = (struct wm_outcome){seq, code};
}

START_TEST(outcome_that_one_agent_knows_holds_for_all)
{
	const struct wm_op_abort *x;

	outcome(0, TK_SEQ - 1, WIRE_SUCCESS);
	outcome(0, TK_SEQ, WIRE_RANK_CONNECTION_FAILED);
	tk_all_come_back();
	fk_vote_seq(&tk.p[1], 1, TK_SEQ - 1);
	fk_report(tk.h[1], TK_SEQ - 1, true);
	fk_vote_seq(&tk.p[2], 1, TK_SEQ - 1);
	fk_report(tk.h[2], TK_SEQ - 1, true);
	fk_vote_seq(&tk.p[1], 2, TK_SEQ);
	fk_vote_seq(&tk.p[2], 2, TK_SEQ);
	tk_all_end();
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.seq, TK_SEQ - 1);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_DONE)->u.op_done.seq, TK_SEQ - 1);
	x = &fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_FAILED);
	ck_assert_ptr_nonnull(strstr(x->text, "failed on another host")); /* no member was lost */
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT) + fk_count(tk.h[0], WM_OP_DONE), 0);
	tk_works();
}
END_TEST

/* Lets h[i], which has started the attempt and has a result, vote for it with another count. */
static void vote_otherwise(size_t i)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id id = tk.p[i].id;

	msg.u.op_vote = (struct wm_op_vote){
		.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id, .seq = TK_SEQ};
	msg.u.op_vote.params.count++;
	fk_send(tk.h[i], &msg);
	fk_report(tk.h[i], TK_SEQ, true);
}

/* All hosts started before the votes were counted. c has started, too (_i == 1), or has only voted
 * (_i == 0). */
START_TEST(unequal_votes_fail_although_all_have_a_result)
{
	const struct wm_op_abort *x;
	size_t i;

	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	vote_otherwise(1);
	fk_vote_seq(&tk.p[2], 1, _i ? TK_SEQ : 0);
	if (_i)
		fk_report(tk.h[2], TK_SEQ, true);
	tk_all_end();
	tk_none_of(WM_OP_DONE);
	for (i = 0; i < 3; i++) {
		x = &fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort;
		ck_assert_uint_eq(x->code, WIRE_INVALID_ARGUMENT);
		ck_assert_uint_eq(x->seq, i < 2 || _i ? TK_SEQ : 0);
		assert_contains(x->text, "disagree on tag 1: count is ");
	}
	tk_works();
}
END_TEST

/* Host a has sent all its data. Then the link to b broke, and b did not notice. a's agent reports
 * this before the others have come, or after them. */
START_TEST(data_lost_in_a_broken_link_aborts_the_operation)
{
	struct wm_msg msg = {.type = WM_LINK_LOST};
	size_t i;

	msg.u.link_lost.agent = tk.h[1]->id;
	(void)snprintf(msg.u.link_lost.text, sizeof msg.u.link_lost.text, "reset");
	if (_i == 2) /* no agent knows a's position any more */
		tk.know[0].position.hosts = 0;
	tk_all_come_back();
	for (i = 0; i < 3; i++)
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	for (i = 0; i < 3; i++) {
		tk_end(_i == 1 ? 2 - i : i);
		if (_i == 1 ? i == 2 : i == 0)
			fk_send(tk.h[0], &msg);
	}
	for (i = 0; i < 3; i++)
		assert_contains(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.text,
			"host a to host b broke: reset");
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_DONE), 0);
	tk_works();
}
END_TEST

/* Host a has reported the broken link, and then its connection to the master breaks. a comes back,
 * but it has opened the link again, so it does not report it again. */
START_TEST(broken_link_is_remembered_when_its_agent_comes_back)
{
	struct wm_msg msg = {.type = WM_LINK_LOST};
	size_t i;

	msg.u.link_lost.agent = tk.h[1]->id;
	(void)snprintf(msg.u.link_lost.text, sizeof msg.u.link_lost.text, "reset");
	tk_come_back(0);
	tk_end(0);
	fk_send(tk.h[0], &msg);
	fk_cut(tk.h[0], "Connection reset by peer");
	tk_all_come_back();
	for (i = 0; i < 3; i++)
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	tk_all_end();
	for (i = 0; i < 3; i++)
		assert_contains(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.text,
			"a link of host a broke: reset");
	tk_works();
}
END_TEST

static void watch_ends(void *arg, struct fk_host *h, const struct wm_msg *msg)
{
	(void)arg;
	if (msg->type == WM_OP_ABORT)
		ck_assert_uint_gt(fk_generation(h, 0), msg->u.op_abort.generation);
}

/* The first of two attempts has failed, so the second one fails, too. A peer that is told of the
 * failure tries again. It must know the new generation before that. */
START_TEST(new_generation_is_sent_before_aborts)
{
	size_t i;

	tk_all_come_back();
	for (i = 0; i < 3; i++) {
		fk_vote_seq(&tk.p[i], 1, TK_SEQ - 1);
		if (i == 0)
			fk_report(tk.h[i], TK_SEQ - 1, false);
		fk_vote_seq(&tk.p[i], 2, TK_SEQ);
	}
	tk.f.watch = watch_ends;
	tk_all_end();
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_count(tk.h[i], WM_OP_ABORT), 2);
	tk.f.watch = NULL;
	tk_works();
}
END_TEST

START_TEST(attempt_without_the_vote_of_a_peer_is_aborted)
{
	const struct wm_op_abort *x;

	tk.know[1].r.last_seq = TK_SEQ - 1;
	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, 0); /* has not received the start */
	tk_all_end();
	x = &fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, TK_SEQ);
	x = &fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort;
	ck_assert_uint_eq(x->seq, 0);
	ck_assert_uint_eq(x->tag, 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_ABORT), 0);
	tk_works();
}
END_TEST

START_TEST(vote_for_a_failed_attempt_does_not_join_the_next_one)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id id = tk.p[0].id;

	/* Attempt TK_SEQ of tag 1 was aborted. c has not received its start, and a tries again. */
	outcome(0, TK_SEQ, WIRE_RANK_CONNECTION_LOST);
	tk.know[0].own.generation = 1;
	tk.know[2].r.last_seq = TK_SEQ - 1;
	tk_all_come_back();
	msg.u.op_vote = (struct wm_op_vote){
		.tag = 1, .params = fk_params, .n_peers = 1, .peers = &id, .generation = 1};
	fk_send(tk.h[0], &msg);
	fk_vote_seq(&tk.p[2], 1, 0);
	tk_all_end();
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 0);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.tag, 1);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_VIEW)->u.view.own[0].generation, 1);
	fk_vote(&tk.p[1], 1);
	fk_vote(&tk.p[2], 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_START), 1);
}
END_TEST

START_TEST(votes_for_waiting_operations_stay_valid)
{
	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, 0);
	fk_vote_seq(&tk.p[2], 1, 0);
	tk_all_end();
	tk_none_of(WM_OP_START);
	fk_vote_seq(&tk.p[1], 1, 0);
	/* The last master may have used higher numbers than the agents know. */
	ck_assert_uint_gt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, TK_SEQ + 1000);
	tk_no_error();
}
END_TEST

/* Lets c's peer join through a new agent. Its old agent died with the master. */
static void restart_c(void)
{
	tk.h[2] = fk_reconnect_as(tk.h[2], 0, true);
	tk_join(2, WM_JOIN_ACCEPTED);
	tk.know[2] = (struct tk_know){.r = {0}};
}

START_TEST(peer_may_come_back_through_a_new_agent)
{
	tk_come_back(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	restart_c();
	tk_all_end();
	ck_assert(fk_status(&tk.f).recovering); /* the query of the peer may follow */
	fk_tick(&tk.f, 300);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_VIEW)->u.view.global, 3);
	ck_assert_uint_eq(tk.h[2]->generations[0].generation, 1);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_COMMIT), 1);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	tk_none_of(WM_KICK);
	tk_works();
}
END_TEST

/* Sends a query for a peer that has joined through a new agent and has the complete result. With
 * query_succeeded() the peer also knows of the success. */
static void query(size_t i, uint64_t seq)
{
	fk_query(&tk.p[i], 1, &seq, 0);
}

static void query_succeeded(size_t i, uint64_t seq)
{
	fk_query(&tk.p[i], 1, &seq, 1);
}

/* c's agent died. Nobody knows the parameters of c's peer, which started before the votes were
 * counted. But if the last master told c of success, that master knew the parameters. */
START_TEST(complete_attempt_succeeds_if_one_peer_knows_its_success)
{
	uint32_t code = _i ? WIRE_SUCCESS : WIRE_RANK_CONNECTION_LOST;
	size_t i;

	tk_come_back(0);
	tk_come_back(1);
	for (i = 0; i < 2; i++) {
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		fk_report(tk.h[i], TK_SEQ, true);
	}
	restart_c();
	if (_i)
		query_succeeded(2, TK_SEQ);
	else
		query(2, TK_SEQ);
	tk_all_end();
	ck_assert_uint_eq(fk_count(tk.h[2], WM_OP_OUTCOMES), 0);
	fk_tick(&tk.f, 300);
	for (i = 0; i < 2; i++) {
		ck_assert(fk_count(tk.h[i], WM_OP_DONE) == (_i ? 1 : 0));
		ck_assert(fk_count(tk.h[i], WM_OP_ABORT) == (_i ? 0 : 1));
	}
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, code);
	tk_works();
}
END_TEST

/* c's agent died, and nobody knows the parameters of its peer. But a and b disagree. */
START_TEST(complete_attempt_fails_if_its_votes_disagree)
{
	tk_come_back(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	vote_otherwise(1);
	restart_c();
	query(2, TK_SEQ);
	tk_all_end();
	fk_tick(&tk.f, 300);
	tk_none_of(WM_OP_DONE);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code,
		WIRE_RANK_CONNECTION_LOST);
	tk_works();
}
END_TEST

START_TEST(attempt_fails_if_one_host_lacks_the_result)
{
	tk_come_back(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	fk_report(tk.h[1], TK_SEQ, true);
	restart_c();
	query(2, TK_SEQ - 1);
	tk_all_end();
	fk_tick(&tk.f, 300);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_count(tk.h[1], WM_OP_ABORT), 1);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code,
		WIRE_RANK_CONNECTION_LOST);
	tk_works();
}
END_TEST

/* All agents died with the master. There may be more peers, which lack the result. But if one peer
 * was told of success, no peer lacks it. */
START_TEST(attempt_fails_if_missing_peers_may_lack_the_result)
{
	uint32_t code = _i == 0 ? WIRE_RANK_CONNECTION_LOST : WIRE_SUCCESS;
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){
			.r = {.ballots[WIRE_TOPOLOGY] =
					4}}; /* the agent knows this from its peer */
	}
	query(0, TK_SEQ);
	if (_i == 0)
		query(1, TK_SEQ);
	else
		query_succeeded(1, TK_SEQ);
	query(2, TK_SEQ);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, code);
	tk_works();
}
END_TEST

/* Peers may know the last master's numbers when no agent does. Their agents start nothing with a
 * lower number. */
START_TEST(numbers_are_higher_than_those_in_queries)
{
	uint64_t seq = UINT64_C(1) << 50;
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){.r = {.ballots[WIRE_TOPOLOGY] = 4}};
	}
	query(1, seq);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	for (i = 0; i < 3; i++)
		fk_vote(&tk.p[i], 1);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, seq);
	query(2, 2 * seq);
	for (i = 0; i < 3; i++)
		fk_vote(&tk.p[i], 2);
	ck_assert_uint_gt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, 2 * seq);
	query(2, UINT64_MAX); /* not a number of any master */
	for (i = 0; i < 3; i++)
		fk_vote(&tk.p[i], 3);
	ck_assert_uint_lt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, 3 * seq);
}
END_TEST

/* Another peer is lost, and all remaining peers have the result. The attempt is done if one of them
 * was told of success. */
START_TEST(attempt_succeeds_if_a_remaining_peer_knows_its_success)
{
	uint32_t code = _i == 0 ? WIRE_SUCCESS : WIRE_RANK_CONNECTION_LOST;

	tk_come_back(0);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	restart_c();
	if (_i == 0)
		query_succeeded(2, TK_SEQ);
	else
		query(2, TK_SEQ);
	tk_end(0);
	tk_end(2);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_DONE), _i == 0);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT), _i == 1);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, code);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
}
END_TEST

/* Lets p[i] join through a new agent. The last agent had received the view `view_id`, of two peers.
 */
static void restart(size_t i, uint64_t view_id)
{
	tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
	tk.h[i]->peers.view_id = view_id;
	tk.h[i]->peers.global = 2;
	tk_join(i, WM_JOIN_ACCEPTED);
	tk.know[i] = (struct tk_know){.r = {0}};
}

/* The last master had lost b and told only c's agent, which died. Then the attempt was done without
 * b, and c knows this. But c knows more than all agents, so it joins again, and the others go on
 * from the newest view that an agent knows. */
START_TEST(success_that_only_a_refused_peer_knows_does_not_count)
{
	size_t i;

	for (i = 0; i < 2; i++)
		tk_come_back(i);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	restart(2, 4);
	query_succeeded(2, TK_SEQ);
	tk_all_end();
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_DONE), 0);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
}
END_TEST

/* a's agent has reported a view that the others do not know, and has died. What it has reported is
 * in force: c was lost. */
START_TEST(view_from_an_agent_that_died_is_known)
{
	size_t i;

	tk_lost(0, 2);
	tk.know[0].own.generation = 1;
	tk_come_back(0);
	tk_end(0);
	fk_cut(tk.h[0], "killed");
	restart(0, 4);
	for (i = 1; i < 3; i++) {
		tk_come_back(i);
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		tk_end(i);
	}
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_count(tk.h[2], WM_KICK), 1);
	ck_assert(fk_present(&tk.p[0]) && fk_present(&tk.p[1]));
	ck_assert_uint_ge(fk_generation(tk.h[1], 0), 1);
}
END_TEST

/* A redirected agent may stay away for longer than the master waits. */
START_TEST(outcome_from_a_redirected_agent_is_known)
{
	outcome(0, TK_SEQ, WIRE_SUCCESS);
	tk_come_back(0);
	tk_end(0);
	fk_tick(&tk.f, 3200);
	ck_assert(!tk.h[0]->open);
	restart_c();
	tk.know[2].r.ballots[WIRE_TOPOLOGY] = 4; /* the agent knows this from its peer */
	query(2, TK_SEQ);
	tk_end(2);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
}
END_TEST

/* Connects a and b, which have reported. Their snapshots are not complete yet. */
static void reported_by_a_and_b(void)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		tk_come_back(i);
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		fk_report(tk.h[i], TK_SEQ, true);
	}
}

static void expect_done(void)
{
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT) + fk_count(tk.h[1], WM_OP_ABORT), 0);
	/* c's process comes later, for example because it was stopped. */
	restart_c();
	query_succeeded(2, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	tk_works();
}

START_TEST(outcome_from_an_agent_that_died_is_known)
{
	outcome(2, TK_SEQ, WIRE_SUCCESS);
	reported_by_a_and_b();
	tk_come_back(2);
	tk_end(2);
	fk_cut(tk.h[2], "killed");
	expect_done();
}
END_TEST

START_TEST(outcome_from_an_agent_that_fell_silent_is_known)
{
	size_t i;

	outcome(2, TK_SEQ, WIRE_SUCCESS);
	for (i = 0; i < 3; i += 2) {
		tk_come_back(i);
		fk_vote_seq(&tk.p[i], 1, TK_SEQ);
		tk_end(i);
	}
	fk_tick_silent(&tk.f, 2900, tk.h[2]);
	ck_assert(!tk.h[2]->open);
	tk_come_back(1);
	fk_tick(&tk.f, 200);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_report(tk.h[1], TK_SEQ, true);
	tk_end(1);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT) + fk_count(tk.h[1], WM_OP_ABORT), 0);
}
END_TEST

START_TEST(success_from_a_peer_is_known_after_its_agent_died)
{
	reported_by_a_and_b();
	restart_c();
	query_succeeded(2, TK_SEQ);
	tk_end(2);
	fk_cut(tk.h[2], "killed");
	expect_done();
}
END_TEST

/* b has the result like all others, but its agent has died and b has not come back yet. */
START_TEST(success_of_one_peer_holds_for_disconnected_peers)
{
	tk_come_back(0);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	tk_come_back(1);
	tk_end(1);
	fk_cut(tk.h[1], "killed");
	restart_c();
	query_succeeded(2, TK_SEQ);
	tk_end(0);
	tk_end(2);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_DONE)->u.op_done.seq, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	tk.h[1] = fk_reconnect_as(tk.h[1], 0, true);
	tk_join(1, WM_JOIN_ACCEPTED);
	query(1, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[1], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	tk_works();
}
END_TEST

/* c's connection broke before its snapshot was complete. The others were told that the attempt
 * has failed. c, or its agent, was told of success. */
START_TEST(peer_with_another_outcome_is_kicked)
{
	reported_by_a_and_b();
	tk_come_back(2);
	fk_cut(tk.h[2], "reset");
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 3);
	if (_i == 0) {
		outcome(2, TK_SEQ - 1, WIRE_SUCCESS);
		outcome(2, TK_SEQ, WIRE_SUCCESS);
		tk_come_back(2);
		tk_end(2);
	} else {
		restart_c();
		query_succeeded(2, TK_SEQ);
	}
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "no other peer knows");
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
}
END_TEST

/* Host a comes too late to be counted with the others, so a's attempt has failed. The last master
 * told c of success, but c's connection to this master had broken. */
START_TEST(peer_with_another_outcome_than_a_late_agent_is_kicked)
{
	tk_come_back(2);
	fk_cut(tk.h[2], "reset");
	tk_come_back(1);
	tk_end(1);
	tk_come_back(0);
	fk_tick(&tk.f, 4100);
	ck_assert(!fk_status(&tk.f).recovering);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	tk_end(0);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	outcome(2, TK_SEQ, WIRE_SUCCESS);
	tk_come_back(2);
	tk_end(2);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "no other peer knows");
	ck_assert_uint_eq(fk_status(&tk.f).accepted, 2);
}
END_TEST

/* The bound ends while an agent sends its snapshot. The master waits for the end of the snapshot,
 * unless the agent stops sending or sends for too long. */
START_TEST(snapshot_in_progress_at_the_bound_is_awaited)
{
	unsigned i;

	tk_come_back(1);
	tk_end(1);
	fk_tick(&tk.f, 3000);
	tk_come_back(0);
	fk_tick(&tk.f, 100);
	ck_assert(fk_status(&tk.f).recovering);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_tick(&tk.f, 100);
	ck_assert(fk_status(&tk.f).recovering);
	if (_i == 0) {
		fk_tick(&tk.f, 100);
	} else if (_i == 1) {
		outcome(0, TK_SEQ - 1, WIRE_SUCCESS);
		tk_end(0);
	} else {
		for (i = 2; fk_status(&tk.f).recovering; i++) {
			fk_vote_seq(&tk.p[0], i, 0);
			fk_tick(&tk.f, 100);
		}
		ck_assert_uint_gt(i, 5);
		ck_assert_uint_lt(i, 14);
	}
	ck_assert(!fk_status(&tk.f).recovering);
}
END_TEST

/* c stays if it knows no outcome that contradicts the others. */
START_TEST(peer_without_another_outcome_stays)
{
	reported_by_a_and_b();
	tk_come_back(2);
	fk_cut(tk.h[2], "reset");
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 4000);
	if (_i == 0) {
		outcome(2, TK_SEQ - 1, WIRE_SUCCESS);
		outcome(2, TK_SEQ, WIRE_RANK_CONNECTION_LOST);
		tk_come_back(2);
		tk_end(2);
	} else {
		restart_c();
		query(2, TK_SEQ);
	}
	tk_none_of(WM_KICK);
	tk_works();
}
END_TEST

static void restart_a(void)
{
	tk.h[0] = fk_reconnect_as(tk.h[0], 0, true);
	tk_join(0, WM_JOIN_ACCEPTED);
	tk.know[0] = (struct tk_know){.r = {.ballots[WIRE_TOPOLOGY] = 4}};
}

/* Nobody knew the outcome, and a was told that the attempt has failed. Now this outcome holds for
 * all. */
START_TEST(peer_with_success_after_the_failure_of_others_is_kicked)
{
	tk_come_back(2);
	fk_cut(tk.h[2], "reset");
	restart_a();
	tk_come_back(1);
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	query(0, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code,
		WIRE_RANK_CONNECTION_LOST);
	restart_c();
	query_succeeded(2, TK_SEQ);
	assert_contains(fk_take(tk.h[2], WM_KICK)->u.kick.text, "no other peer knows");
}
END_TEST

/* c's old agent had come back already. c's query arrives after the snapshot of its new agent. */
START_TEST(query_through_one_more_agent_is_awaited)
{
	tk_come_back(2);
	fk_cut(tk.h[2], "killed");
	restart_a();
	query(0, TK_SEQ);
	tk_come_back(1);
	tk_end(0);
	tk_end(1);
	fk_tick(&tk.f, 300);
	restart_c();
	tk_end(2);
	query_succeeded(2, TK_SEQ);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[0], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	tk_none_of(WM_KICK);
}
END_TEST

START_TEST(queries_about_the_last_masters_attempts_are_answered)
{
	outcome(1, TK_SEQ, WIRE_SUCCESS);
	tk_come_back(0);
	tk_come_back(1);
	restart_c();
	tk_all_end();
	fk_tick(&tk.f, 300);
	query(2, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
}
END_TEST

/* Otherwise a peer that awaits several operations would wait for peers that try the failed
 * operation again. */
START_TEST(attempt_of_a_disconnected_agent_fails_with_its_group)
{
	const struct wm_op_abort *x;
	size_t i;

	tk_come_back(0);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_cut(tk.h[0], "reset");
	for (i = 1; i < 3; i++) {
		tk_come_back(i);
		fk_vote_seq(&tk.p[i], 1, 0);
		fk_vote_seq(&tk.p[i], 2, 0);
		tk_end(i);
	}
	fk_tick(&tk.f, 3200);
	ck_assert(!fk_status(&tk.f).recovering);
	tk_no_error();
	tk_come_back(0);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[0], 2, TK_SEQ - 1); /* this failure causes no second loss */
	ck_assert_uint_eq(tk.h[0]->generations[0].generation, 1);
	for (i = 0; i < 2; i++) {
		x = &fk_take(tk.h[0], WM_OP_ABORT)->u.op_abort;
		ck_assert_uint_eq(x->seq, TK_SEQ - i);
		ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
		assert_contains(x->text, "host a");
	}
	for (i = 1; i < 3; i++) {
		ck_assert_uint_eq(fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort.tag, 1);
		x = &fk_take(tk.h[i], WM_OP_ABORT)->u.op_abort;
		ck_assert_uint_eq(x->tag, 2);
		ck_assert_uint_eq(x->code, WIRE_RANK_CONNECTION_LOST);
		ck_assert_uint_eq(tk.h[i]->generations[0].generation, 1);
	}
	tk_end(0);
	tk_works();
}
END_TEST

Suite *resume_ops_suite(void)
{
	Suite *s = suite_create("resume_ops");
	TCase *tc = tcase_create("resume_ops");

	tcase_add_checked_fixture(tc, tk_setup, tk_teardown);
	tcase_add_test(tc, running_operation_continues_after_a_takeover);
	tcase_add_test(tc, report_may_come_after_the_snapshot_of_its_agent);
	tcase_add_test(tc, lost_starts_are_repeated_in_order);
	tcase_add_test(tc, lost_start_is_repeated_with_its_epoch);
	tcase_add_test(tc, operation_that_all_have_reported_is_done);
	tcase_add_test(tc, failure_that_only_an_agent_knows_aborts_the_operation);
	tcase_add_test(tc, outcome_that_one_agent_knows_holds_for_all);
	tcase_add_loop_test(tc, unequal_votes_fail_although_all_have_a_result, 0, 2);
	tcase_add_test(tc, complete_attempt_fails_if_its_votes_disagree);
	tcase_add_loop_test(tc, data_lost_in_a_broken_link_aborts_the_operation, 0, 3);
	tcase_add_test(tc, broken_link_is_remembered_when_its_agent_comes_back);
	tcase_add_test(tc, new_generation_is_sent_before_aborts);
	tcase_add_test(tc, attempt_without_the_vote_of_a_peer_is_aborted);
	tcase_add_test(tc, vote_for_a_failed_attempt_does_not_join_the_next_one);
	tcase_add_test(tc, votes_for_waiting_operations_stay_valid);
	tcase_add_test(tc, peer_may_come_back_through_a_new_agent);
	tcase_add_loop_test(tc, complete_attempt_succeeds_if_one_peer_knows_its_success, 0, 2);
	tcase_add_test(tc, attempt_fails_if_one_host_lacks_the_result);
	tcase_add_loop_test(tc, attempt_fails_if_missing_peers_may_lack_the_result, 0, 2);
	tcase_add_test(tc, numbers_are_higher_than_those_in_queries);
	tcase_add_loop_test(tc, attempt_succeeds_if_a_remaining_peer_knows_its_success, 0, 2);
	tcase_add_test(tc, success_that_only_a_refused_peer_knows_does_not_count);
	tcase_add_test(tc, view_from_an_agent_that_died_is_known);
	tcase_add_test(tc, outcome_from_a_redirected_agent_is_known);
	tcase_add_test(tc, outcome_from_an_agent_that_died_is_known);
	tcase_add_test(tc, outcome_from_an_agent_that_fell_silent_is_known);
	tcase_add_test(tc, success_from_a_peer_is_known_after_its_agent_died);
	tcase_add_test(tc, success_of_one_peer_holds_for_disconnected_peers);
	tcase_add_loop_test(tc, peer_with_another_outcome_is_kicked, 0, 2);
	tcase_add_test(tc, peer_with_another_outcome_than_a_late_agent_is_kicked);
	tcase_add_loop_test(tc, snapshot_in_progress_at_the_bound_is_awaited, 0, 3);
	tcase_add_loop_test(tc, peer_without_another_outcome_stays, 0, 2);
	tcase_add_test(tc, peer_with_success_after_the_failure_of_others_is_kicked);
	tcase_add_test(tc, query_through_one_more_agent_is_awaited);
	tcase_add_test(tc, queries_about_the_last_masters_attempts_are_answered);
	tcase_add_test(tc, attempt_of_a_disconnected_agent_fails_with_its_group);
	suite_add_tcase(s, tc);
	return s;
}
