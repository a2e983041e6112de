/* SPDX-License-Identifier: MIT
 *
 * The master's core: a run is taken over from a master that died. What becomes of its operations.
 */
#include <stdio.h>

#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/takeover.h"

START_TEST(what_runs_goes_on)
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

START_TEST(a_report_may_come_between_resumption_and_the_end_of_it)
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

START_TEST(starts_that_did_not_arrive_are_repeated_in_order)
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

START_TEST(what_all_have_reported_is_done)
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

START_TEST(a_failure_that_was_not_told_aborts)
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

START_TEST(what_one_knows_to_have_ended_has_ended_for_all)
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
	ck_assert_ptr_nonnull(strstr(x->text, "failed on another host")); /* nobody was lost */
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_ABORT)->u.op_abort.seq, TK_SEQ);
	ck_assert_uint_eq(fk_count(tk.h[0], WM_OP_ABORT) + fk_count(tk.h[0], WM_OP_DONE), 0);
	tk_works();
}
END_TEST

/* h[i] has begun with another count, and has a result. */
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

/* All hosts began before the votes; c has begun with the others, or only voted. */
START_TEST(votes_that_disagree_fail_with_their_code_though_all_have_a_result)
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

/* a has sent what it had to; the link to b broke, and b did not notice. Its agent says so before
 * the others have come, or as the last one. */
START_TEST(what_was_sent_into_a_link_that_broke_does_not_go_on)
{
	struct wm_msg msg = {.type = WM_LINK_LOST};
	size_t i;

	msg.u.link_lost.agent = tk.h[1]->id;
	(void)snprintf(msg.u.link_lost.text, sizeof msg.u.link_lost.text, "reset");
	if (_i == 2) /* nobody knows a's membership any more */
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

static void watch_ends(void *arg, struct fk_host *h, const struct wm_msg *msg)
{
	(void)arg;
	if (msg->type == WM_OP_ABORT)
		ck_assert_uint_gt(fk_generation(h, 0), msg->u.op_abort.generation);
}

/* The first of two has failed, and with it the other one: who hears of that tries again, and must
 * know by then how often the group has lost something. */
START_TEST(a_failure_that_was_not_told_is_a_loss_before_it_ends_anything)
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

START_TEST(an_attempt_that_somebody_has_not_voted_for_is_aborted)
{
	const struct wm_op_abort *x;

	tk.know[1].r.last_seq = TK_SEQ - 1;
	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, 0); /* has not heard of the start */
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

START_TEST(a_vote_of_an_attempt_that_failed_unheard_does_not_meet_the_next)
{
	struct wm_msg msg = {.type = WM_OP_VOTE};
	struct cc_id id = tk.p[0].id;

	/* Attempt TK_SEQ of tag 1 was aborted: c has not even heard of its start, a tries again. */
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

START_TEST(votes_for_what_has_not_started_stand)
{
	tk_all_come_back();
	fk_vote_seq(&tk.p[0], 1, 0);
	fk_vote_seq(&tk.p[2], 1, 0);
	tk_all_end();
	tk_none_of(WM_OP_START);
	fk_vote_seq(&tk.p[1], 1, 0);
	/* The last master may have used some numbers after those that were heard. */
	ck_assert_uint_gt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, TK_SEQ + 1000);
	tk_no_error();
}
END_TEST

/* c's agent died with the master; its peer comes by a new one. */
static void restart_c(void)
{
	tk.h[2] = fk_reconnect_as(tk.h[2], 0, true);
	tk_join(2, WM_JOIN_ACCEPTED);
	tk.know[2] = (struct tk_know){.r = {0}};
}

START_TEST(a_peer_may_come_by_a_new_agent)
{
	tk_come_back(0);
	tk_come_back(1);
	fk_vote_seq(&tk.p[0], 1, TK_SEQ);
	fk_vote_seq(&tk.p[1], 1, TK_SEQ);
	fk_report(tk.h[0], TK_SEQ, true);
	restart_c();
	tk_all_end();
	ck_assert(fk_status(&tk.f).recovering); /* its question may follow */
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

/* The peer, who comes by a new agent, has the whole result, or it has been told of success. */
static void query(size_t i, uint64_t seq)
{
	fk_query(&tk.p[i], 1, &seq, 0);
}

static void query_succeeded(size_t i, uint64_t seq)
{
	fk_query(&tk.p[i], 1, &seq, 1);
}

/* c's agent died, and nobody knows what its peer had begun with, before the votes: perhaps with
 * other parameters. The last master would have known, if it had told c of success. */
START_TEST(what_all_hosts_have_is_done_if_one_was_told_so)
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

/* c's agent died, and nobody knows what its peer meant: but a and b disagree. */
START_TEST(what_all_have_is_not_done_where_votes_disagree)
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

START_TEST(what_a_host_does_not_have_is_not)
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

/* All agents died with the master: nobody knows whether there are more peers, who lack the result.
 * If one was told of success, nobody does. */
START_TEST(what_all_who_are_here_have_others_may_lack)
{
	uint32_t code = _i == 0 ? WIRE_RANK_CONNECTION_LOST : WIRE_SUCCESS;
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){.r = {.topo_ballot = 2}}; /* as its peer says */
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

/* Peers may know the last master's numbers when no agent does; their agents start nothing older. */
START_TEST(numbers_are_higher_than_those_that_peers_ask_for)
{
	uint64_t seq = UINT64_C(1) << 50;
	size_t i;

	for (i = 0; i < 3; i++) {
		tk.h[i] = fk_reconnect_as(tk.h[i], 0, true);
		tk_join(i, WM_JOIN_ACCEPTED);
		tk.know[i] = (struct tk_know){.r = {.topo_ballot = 2}};
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
	query(2, UINT64_MAX); /* nobody's */
	for (i = 0; i < 3; i++)
		fk_vote(&tk.p[i], 3);
	ck_assert_uint_lt(fk_take(tk.h[0], WM_OP_START)->u.op_start.seq, 3 * seq);
}
END_TEST

/* Somebody else is lost, and those who are left have the result, all of them: it is done if it was.
 */
START_TEST(what_all_who_are_left_have_is_done)
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

/* Whom the master has sent to look for another one may be away for longer than it waits. */
START_TEST(what_redirected_agents_have_told_is_known)
{
	outcome(0, TK_SEQ, WIRE_SUCCESS);
	tk_come_back(0);
	tk_end(0);
	fk_tick(&tk.f, 3200);
	ck_assert(!tk.h[0]->open);
	restart_c();
	tk.know[2].r.topo_ballot = 2; /* as its peer says */
	query(2, TK_SEQ);
	tk_end(2);
	fk_tick(&tk.f, 4000);
	ck_assert(!fk_status(&tk.f).recovering);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
}
END_TEST

/* a and b say that they have reported, but not yet that they have no more to say. */
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
	/* c's process is stopped, say, and comes later. */
	restart_c();
	query_succeeded(2, TK_SEQ);
	ck_assert_uint_eq(fk_take(tk.h[2], WM_OP_OUTCOMES)->u.op_outcomes.v[0].code, WIRE_SUCCESS);
	tk_works();
}

START_TEST(what_an_agent_has_told_before_it_died_is_known)
{
	outcome(2, TK_SEQ, WIRE_SUCCESS);
	reported_by_a_and_b();
	tk_come_back(2);
	tk_end(2);
	fk_cut(tk.h[2], "killed");
	expect_done();
}
END_TEST

START_TEST(what_an_agent_has_told_before_it_fell_silent_is_known)
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

START_TEST(what_a_peer_has_told_before_its_agent_died_again_is_known)
{
	reported_by_a_and_b();
	restart_c();
	query_succeeded(2, TK_SEQ);
	tk_end(2);
	fk_cut(tk.h[2], "killed");
	expect_done();
}
END_TEST

/* b has the result like all others, but its agent has died and it has not come back yet. */
START_TEST(what_one_was_told_holds_for_disconnected_peers)
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

/* c has come and gone before it had told all. The others have heard that the attempt has failed,
 * and it, by its agent or itself, that it was a success. */
START_TEST(who_was_told_otherwise_goes)
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

/* It comes too late to be heard with the others, and its attempt has failed for want of them. c
 * knows better, but its connection had broken. */
START_TEST(who_was_told_otherwise_than_a_latecomer_goes)
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

/* The time for it is over, but an agent is in the middle of it. It is not waited for when it says
 * no more, nor when it says more and more. */
START_TEST(who_speaks_when_time_is_up_is_heard_out)
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

/* What others do not know to have failed, or what c does not know to be a success, costs nothing.
 */
START_TEST(who_was_told_nothing_else_stays)
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
	tk.know[0] = (struct tk_know){.r = {.topo_ballot = 2}};
}

/* Nobody knows how the attempt has ended, and a is told that it has failed: so it has. */
START_TEST(who_was_told_otherwise_when_nobody_knew_goes)
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

/* Its old agent had come back already. What it asks for comes behind what its new agent says. */
START_TEST(who_comes_by_one_more_agent_is_heard_out)
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

START_TEST(questions_of_the_last_masters_time_are_answered)
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

/* Or who awaits several operations would wait for those who try the failed one again. */
START_TEST(an_attempt_that_only_disconnected_agents_know_fails_with_its_group)
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
	fk_vote_seq(&tk.p[0], 2, TK_SEQ - 1); /* costs no second loss */
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
	tcase_add_test(tc, what_runs_goes_on);
	tcase_add_test(tc, a_report_may_come_between_resumption_and_the_end_of_it);
	tcase_add_test(tc, starts_that_did_not_arrive_are_repeated_in_order);
	tcase_add_test(tc, what_all_have_reported_is_done);
	tcase_add_test(tc, a_failure_that_was_not_told_aborts);
	tcase_add_test(tc, what_one_knows_to_have_ended_has_ended_for_all);
	tcase_add_loop_test(
		tc, votes_that_disagree_fail_with_their_code_though_all_have_a_result, 0, 2);
	tcase_add_test(tc, what_all_have_is_not_done_where_votes_disagree);
	tcase_add_loop_test(tc, what_was_sent_into_a_link_that_broke_does_not_go_on, 0, 3);
	tcase_add_test(tc, a_failure_that_was_not_told_is_a_loss_before_it_ends_anything);
	tcase_add_test(tc, an_attempt_that_somebody_has_not_voted_for_is_aborted);
	tcase_add_test(tc, a_vote_of_an_attempt_that_failed_unheard_does_not_meet_the_next);
	tcase_add_test(tc, votes_for_what_has_not_started_stand);
	tcase_add_test(tc, a_peer_may_come_by_a_new_agent);
	tcase_add_loop_test(tc, what_all_hosts_have_is_done_if_one_was_told_so, 0, 2);
	tcase_add_test(tc, what_a_host_does_not_have_is_not);
	tcase_add_loop_test(tc, what_all_who_are_here_have_others_may_lack, 0, 2);
	tcase_add_test(tc, numbers_are_higher_than_those_that_peers_ask_for);
	tcase_add_loop_test(tc, what_all_who_are_left_have_is_done, 0, 2);
	tcase_add_test(tc, what_redirected_agents_have_told_is_known);
	tcase_add_test(tc, what_an_agent_has_told_before_it_died_is_known);
	tcase_add_test(tc, what_an_agent_has_told_before_it_fell_silent_is_known);
	tcase_add_test(tc, what_a_peer_has_told_before_its_agent_died_again_is_known);
	tcase_add_test(tc, what_one_was_told_holds_for_disconnected_peers);
	tcase_add_loop_test(tc, who_was_told_otherwise_goes, 0, 2);
	tcase_add_test(tc, who_was_told_otherwise_than_a_latecomer_goes);
	tcase_add_loop_test(tc, who_speaks_when_time_is_up_is_heard_out, 0, 3);
	tcase_add_loop_test(tc, who_was_told_nothing_else_stays, 0, 2);
	tcase_add_test(tc, who_was_told_otherwise_when_nobody_knew_goes);
	tcase_add_test(tc, who_comes_by_one_more_agent_is_heard_out);
	tcase_add_test(tc, questions_of_the_last_masters_time_are_answered);
	tcase_add_test(tc, an_attempt_that_only_disconnected_agents_know_fails_with_its_group);
	suite_add_tcase(s, tc);
	return s;
}
