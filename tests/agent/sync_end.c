/* SPDX-License-Identifier: MIT
 *
 * Failures in synchronizations: of a member, a source, the master or the agent. Also the status and
 * the log lines of synchronizations.
 */
#include <stdio.h>

#include "tests/agent/sync.h"

static struct fx *f;
static uint32_t comms[4];

static void setup(void)
{
	f = fx_new();
}

static void teardown(void)
{
	fx_free(f);
}

static const struct wm_op_report *report(void)
{
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	return &fx_msg(f, WM_OP_REPORT, 0)->u.op_report;
}

static void expect_failed(unsigned peer, uint32_t code, const char *text)
{
	const struct wm_op_report *r = report();

	ck_assert_uint_eq(r->n_failed, 1);
	ck_assert(fx_is(&r->failed[0].peer, fx_id(peer)));
	ck_assert_uint_eq(r->failed[0].code, code);
	ck_assert_msg(strstr(r->failed[0].text, text), "%s", r->failed[0].text);
}

/* Starts a synchronization of three members: a holder and two receivers. */
static void run_three(void)
{
	fx_group(f, 3, 2, comms);
	sy_candidate_all(f, comms, 3, 7, 1);
	sy_start(f, 5, 7, "1H2R3R");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_START), 1);
}

/* Passes time while the master sends heartbeats. Stops early when the agent sends a report. */
static void pass(uint64_t ms)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};

	for (; ms; ms -= 500) {
		fx_from_master(f, 1, &beat);
		fx_tick(f, 500);
		if (fx_sent(f, WM_OP_REPORT))
			return;
	}
}

/* ---- members ---- */

START_TEST(failed_member_is_reported_and_waits_for_its_kick)
{
	run_three();
	sy_failed(f, 5, comms[1], "its tensors' hashes are not those that it announced", 0);
	ck_assert(report()->ok);
	expect_failed(2, WIRE_INVALID_USAGE, "hashes");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	sy_failed(f, 5, comms[1], "again", 0); /* the failure is reported only once */
	ck_assert_uint_eq(f->acts.n, 0);
	sy_kick(f, 2, "it lied");
	sy_dropped(f, 5, comms[1]);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "it lied");
	sy_finish(f, 5, 7);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 1, comms[2], WIRE_SUCCESS, "");
}
END_TEST

START_TEST(later_failure_of_a_member_is_reported_separately)
{
	run_three();
	sy_done(f, 5);
	ck_assert(report()->ok && report()->n_failed == 0);
	sy_done(f, 5);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_failed(f, 5, comms[0], "cannot be read", 0);
	ck_assert(report()->ok);
	expect_failed(1, WIRE_INVALID_USAGE, "cannot be read");
	/* The part of this host is done already. */
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_finish(f, 5, 7);
	fx_expect_done(f, 2, comms[2], WIRE_SUCCESS, "");
}
END_TEST

/* A job that this agent cannot do ends for all members. */
START_TEST(job_that_fails_on_one_host_is_aborted_for_all)
{
	run_three();
	sy_failed(f, 5, 0, NULL, WIRE_OUT_OF_MEMORY);
	ck_assert(!report()->ok && report()->n_failed == 0);
	ck_assert_str_eq(report()->text, "all sources are lost");
	sy_done(f, 5);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_failed(f, 5, comms[1], "too late", 0);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_abort(f, 5);
	sy_cancelled(f, 5, comms, 3);
	fx_expect_done(f, 2, comms[2], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
}
END_TEST

/* ---- sources ---- */

START_TEST(agent_waits_for_the_master_to_notice_a_lost_holder)
{
	run_three();
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(f->acts.n, 0);
	pass(3500);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	sy_abort(f, 5); /* the master has noticed the loss */
	sy_cancelled(f, 5, comms, 3);
	fx_expect_done(f, 2, comms[2], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	pass(5000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
}
END_TEST

START_TEST(receiver_that_cannot_reach_a_holder_fails)
{
	const struct wm_op_report *r;

	run_three();
	sy_failed(f, 5, comms[1], "it lies", WIRE_RANK_CONNECTION_LOST);
	ck_assert(!report()->ok); /* the job is not finished, but this failure is certain */
	expect_failed(2, WIRE_INVALID_USAGE, "it lies");
	pass(3500);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	pass(1000);
	r = report();
	ck_assert(r->ok);
	expect_failed(3, WIRE_INVALID_USAGE, "all sources are lost");
	sy_kick(f, 2, "it lies");
	sy_kick(f, 3, "it cannot be reached");
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	fx_expect_done(f, 2, comms[2], WIRE_INVALID_USAGE, "it cannot be reached");
}
END_TEST

/* These members only receive, so the complete member does not help the other member. */
START_TEST(complete_receiver_does_not_fail_with_another_receiver)
{
	struct agt_sync_result r[2] = {{.complete = true}, {.complete = _i == 1}};
	struct agt_event ev = {.type = AGT_EV_SYNC_DONE,
		.run = 1,
		.seq = 5,
		.code = WIRE_RANK_CONNECTION_LOST,
		.n_results = 2,
		.results = r,
		.text = "all sources are lost"};

	run_three();
	r[0].comm = comms[1];
	r[1].comm = comms[2];
	fx_step(f, &ev);
	if (_i == 0)
		pass(4500);
	ck_assert(report()->ok);
	ck_assert_uint_eq(report()->n_failed, _i == 0);
	if (_i == 0)
		expect_failed(3, WIRE_INVALID_USAGE, "all sources are lost");
	if (_i == 0)
		sy_kick(f, 3, "it cannot be reached");
	sy_finish(f, 5, 7);
	fx_expect_done(f, 1, comms[1], WIRE_SUCCESS, "");
}
END_TEST

START_TEST(no_wait_for_holders_if_all_receivers_have_failed)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2R");
	sy_failed(f, 5, comms[1], "it lies", WIRE_RANK_CONNECTION_LOST);
	ck_assert(report()->ok);
	expect_failed(2, WIRE_INVALID_USAGE, "it lies");
}
END_TEST

START_TEST(wait_for_holders_ends_when_the_job_fails)
{
	run_three();
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	sy_failed(f, 5, 0, NULL, WIRE_OUT_OF_MEMORY);
	ck_assert(!report()->ok);
	pass(5000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
}
END_TEST

/* No receiver is left that waits for the holders. */
START_TEST(wait_for_holders_ends_when_the_receivers_leave)
{
	run_three();
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	fx_session_closed(f, 3);
	ck_assert(report()->ok && report()->n_failed == 0);
	pass(5000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
}
END_TEST

START_TEST(wait_for_holders_is_longer_without_a_master)
{
	unsigned i;

	run_three();
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	fx_orphan(f);
	for (i = 0; i < 20; i++)
		fx_tick(f, 500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "gone");
	fx_tick(f, 500);
	sy_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	pass(3500);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	pass(2000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
}
END_TEST

/* It is possible that the holder's agent does not get the start before the next master sends it. So
 * this agent had no reason to send data earlier, and no receiver is suspected. */
START_TEST(no_receiver_is_suspected_after_a_takeover)
{
	run_three();
	if (_i == 0)
		sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	fx_orphan(f);
	if (_i == 1)
		sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	sy_resume(f);
	if (_i == 2) /* the engine gives up after the takeover */
		sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	pass(5000);
	ck_assert(!report()->ok);
	ck_assert_uint_eq(report()->n_failed, 0);
	ck_assert_str_eq(report()->text, "all sources are lost");
	pass(5000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	sy_abort(f, 5);
	sy_cancelled(f, 5, comms, 3);
	fx_expect_done(f, 2, comms[2], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
}
END_TEST

/* The master may have reported the loss while this agent was suspended. */
START_TEST(wait_for_holders_starts_again_after_a_pause_of_the_agent)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};

	run_three();
	fx_tick(f, 500);
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	fx_tick(f, 60000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	fx_from_master(f, 1, &beat);
	pass(3000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	pass(2000);
	ck_assert(report()->ok && report()->n_failed == 2);
}
END_TEST

/* ---- the master dies ---- */

START_TEST(next_master_gets_the_state_of_a_synchronization)
{
	const struct wm_op_vote *v;

	fx_group(f, 4, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_candidate_all(f, comms + 2, 2, 3, 2);
	sy_start(f, 5, 7, "1H2H3R4R");
	sy_failed(f, 5, comms[2], "it lies", 0);
	fx_orphan(f);
	fx_session_closed(f, 2); /* the job continues without this member */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 0);
	sy_failed(f, 5, comms[3], "it lies, too", 0);
	sy_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_JOIN), 4);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert(v->is_sync && v->seq == 5 && v->n_peers == 1 && v->sync.revision == 7);
	ck_assert(v->elected.revision == 7 && v->elected.content.lo == 1);
	v = &fx_msg(f, WM_OP_VOTE, 1)->u.op_vote;
	ck_assert(v->is_sync && v->seq == 5 && v->n_peers == 2 && v->sync.revision == 3);
	ck_assert(v->elected.revision == 7 && v->elected.content.lo == 1);
	ck_assert(report()->ok);
	ck_assert_uint_eq(report()->n_failed, 2);
	ck_assert(fx_is(&report()->failed[0].peer, fx_id(3)));
	sy_start(f, 5, 7, "1H3R4R"); /* the new master repeats the start */
	ck_assert_uint_eq(f->acts.n, 0);
	sy_kick(f, 3, "it lies");
	sy_kick(f, 4, "it lies");
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
}
END_TEST

/* The job also continues without a member whose communicator is destroyed. */
START_TEST(destroy_without_a_master_does_not_end_the_job)
{
	run_three();
	fx_orphan(f);
	fx_request(f, 2, comms[1], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 0);
	sy_dropped(f, 5, comms[1]);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "destroyed");
	sy_resume(f);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.n_peers, 2);
	sy_done(f, 5);
	ck_assert(report()->ok);
}
END_TEST

START_TEST(failure_of_the_job_is_reported_to_the_next_master)
{
	run_three();
	fx_orphan(f);
	sy_failed(f, 5, 0, NULL, WIRE_OUT_OF_MEMORY);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_resume(f);
	ck_assert(!report()->ok);
	ck_assert_str_eq(report()->text, "all sources are lost");
}
END_TEST

/* The member has left, so its failure need not be reported. */
START_TEST(failed_member_that_has_left_is_not_reported)
{
	run_three();
	sy_failed(f, 5, comms[1], "it lies", 0);
	sy_failed(f, 5, comms[2], "it lies, too", 0);
	fx_orphan(f);
	fx_session_closed(f, 2);
	sy_resume(f);
	ck_assert(report()->ok);
	expect_failed(3, WIRE_INVALID_USAGE, "it lies, too");
}
END_TEST

START_TEST(votes_are_sent_again_to_the_next_master)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	fx_orphan(f);
	sy_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.is_sync);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.seq, 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.elected.revision, 0);
	sy_start(f, 5, 7, "1H2H");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_START), 1);
}
END_TEST

/* The agent remembers the outcome of a synchronization like any other outcome, even after all its
 * members have continued. */
START_TEST(outcomes_are_sent_to_the_next_master)
{
	const struct wm_resume *r;

	run_three();
	sy_done(f, 5);
	sy_finish(f, 5, 7);
	sy_candidate_all(f, comms, 3, 8, 1);
	sy_start(f, 6, 8, "1H2R3R");
	sy_abort(f, 6);
	fx_orphan(f);
	sy_resume(f);
	r = &fx_msg(f, WM_RESUME, 0)->u.resume;
	ck_assert_uint_eq(r->n_outcomes, 2);
	ck_assert(r->outcomes[0].seq == 5 && r->outcomes[0].code == WIRE_SUCCESS);
	ck_assert(r->outcomes[1].seq == 6 && r->outcomes[1].code == WIRE_RANK_CONNECTION_LOST);
	ck_assert_uint_eq(r->view.own[0].revision, 8);
}
END_TEST

START_TEST(synchronization_ends_with_the_run)
{
	struct wm_msg m = {.type = WM_REFUSE,
		.u.refuse = {.version_min = WM_VERSION_MIN,
			.version_max = WM_VERSION_MAX,
			.code = WIRE_INVALID_USAGE}};

	run_three();
	fx_from_master(f, 1, &m);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	sy_cancelled(f, 5, comms, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 3);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "refused this host");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_FREE), 1);
}
END_TEST

/* The receivers leave before the holder, which has everything. Once they have left, the part of
 * this host would be done. */
START_TEST(no_report_is_sent_when_the_run_ends)
{
	unsigned i;

	fx_group(f, 3, 2, comms);
	sy_candidate_all(f, comms, 3, 7, 1);
	sy_start(f, 5, 7, "1R2R3H");
	sy_failed(f, 5, 0, NULL, WIRE_RANK_CONNECTION_LOST);
	fx_orphan(f);
	for (i = 0; i < 120; i++)
		fx_tick(f, 500);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_SEND), 0);
}
END_TEST

/* ---- status and log lines ---- */

static void copy_op(void *arg, const struct agt_op_info *o)
{
	memcpy(arg, o, sizeof *o);
}

static struct agt_op_info look(void)
{
	struct agt_op_info o = {.run = 0};

	agt_each_op(f->a, f->now, copy_op, &o);
	ck_assert_uint_eq(o.run, 1);
	return o;
}

static bool logged(const char *text)
{
	size_t i;

	for (i = 0; i < f->acts.n; i++)
		if (f->acts.v[i].type == AGT_ACT_LOG && f->acts.v[i].level <= 5 &&
			strstr(f->acts.v[i].u.text, text))
			return true;
	return false;
}

START_TEST(status_shows_a_synchronization)
{
	struct agt_op_info o;

	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 2);
	o = look();
	ck_assert(o.is_sync && o.group == 7 && o.bytes == 4096 && o.revision == 7);
	ck_assert(o.content.lo == 2 && o.keys.hi == 33 && o.hash_type == WM_HASH_SIMPLE);
	ck_assert_str_eq(o.awaited, "waiting for local pid 1002 (trainer) to submit");
	sy_candidate_all(f, comms + 1, 1, 9, 1);
	sy_start(f, 5, 9, "1R2H");
	o = look();
	ck_assert(o.revision == 9 && o.content.lo == 1 && o.failed == 0);
	ck_assert_str_eq(o.awaited, "data");
	sy_failed(f, 5, comms[1], "it lies", WIRE_RANK_CONNECTION_LOST);
	o = look();
	ck_assert_uint_eq(o.failed, 1);
	ck_assert_str_eq(o.awaited, "waiting to learn if the peers with the state are lost");
	ck_assert_str_eq(o.state, "running");
	sy_done(f, 5);
	ck_assert_str_eq(look().awaited, "waiting for the other hosts to report");
}
END_TEST

static void copy_synced(void *arg, const struct agt_synced_info *s)
{
	struct agt_synced_info *v = arg;

	v[s->comm == comms[1]] = *s;
}

static void copy_group(void *arg, const struct agt_group_info *g)
{
	memcpy(arg, g, sizeof *g);
}

START_TEST(status_shows_the_last_synchronization)
{
	struct agt_synced_info v[2] = {{.comm = 0}};
	struct agt_group_info g;

	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	agt_each_synced(f->a, f->now, copy_synced, v);
	ck_assert(v[0].comm == comms[0] && v[0].end == AGT_SYNC_VOTED && !v[0].started);
	ck_assert(v[0].candidate.revision == 7 && v[1].comm == 0);
	sy_candidate_all(f, comms + 1, 1, 3, 2);
	sy_start(f, 5, 7, "1H2R");
	agt_each_synced(f->a, f->now, copy_synced, v);
	ck_assert(v[0].end == AGT_SYNC_RUNNING && v[0].seq == 5 && v[0].holder);
	ck_assert(v[1].end == AGT_SYNC_RUNNING && v[1].revision == 7 && !v[1].holder);
	sy_done(f, 5);
	sy_kick(f, 2, "it lies");
	sy_op_done(f, 5, 7);
	sy_cancelled(f, 5, comms, 2);
	agt_each_synced(f->a, f->now, copy_synced, v);
	ck_assert(v[0].end == AGT_SYNC_DONE && v[0].revision == 7);
	ck_assert(v[0].tx_bytes == 1000 && v[0].rx_bytes == 2000);
	ck_assert(v[1].end == AGT_SYNC_FAILED && strcmp(v[1].text, "it lies") == 0);
	agt_each_group(f->a, copy_group, &g);
	ck_assert(g.group == 7 && g.expected == 8);
}
END_TEST

START_TEST(waits_of_a_synchronization_are_logged_and_shown)
{
	struct wm_msg m = {.type = WM_WAITS};

	m.u.waits.kind = WM_WAIT_SYNC;
	m.u.waits.group = 7;
	m.u.waits.waited_ms = 2000;
	(void)snprintf(m.u.waits.text, sizeof m.u.waits.text, "1 of 3 peers: train@b pid 7");
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	fx_from_master(f, 1, &m);
	ck_assert(logged("the synchronization of group 7 of master"));
	ck_assert(logged("for 1 of 3 peers: train@b pid 7"));
	ck_assert_str_eq(look().awaited, "waiting for 2.0 s for 1 of 3 peers: train@b pid 7");
	m.u.waits.kind = WM_WAIT_OP; /* not about the synchronization */
	(void)snprintf(m.u.waits.text, sizeof m.u.waits.text, "somebody");
	fx_from_master(f, 1, &m);
	ck_assert_str_eq(look().awaited, "waiting for 2.0 s for 1 of 3 peers: train@b pid 7");
	sy_start(f, 5, 7, "1H2H");
	ck_assert(logged("the synchronization of group 7 of master"));
	ck_assert(logged("goes on after"));
}
END_TEST

/* A member that fails after the outcome is known does not count as failed. The outcome is a success
 * (_i == 0) or an abort. From the last event of the engine, only the member's bytes are used. */
START_TEST(failure_after_the_outcome_does_not_count)
{
	struct agt_sync_result r = {.comm = 0, .failed = true, .text = "cannot be read"};
	struct agt_event ev = {.type = AGT_EV_SYNC_CANCELLED, .run = 1, .seq = 5, .results = &r};
	const struct agt_done *done;

	run_three();
	sy_done(f, 5);
	if (_i)
		sy_abort(f, 5);
	else
		sy_op_done(f, 5, 7);
	r.comm = comms[1];
	r.tx_bytes = 77;
	r.rx_bytes = 88;
	ev.n_results = 1;
	fx_step(f, &ev);
	ck_assert(!logged("cannot be read"));
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	fx_expect_done(f, 1, comms[1], _i ? WIRE_RANK_CONNECTION_LOST : WIRE_SUCCESS,
		_i ? "peer 12 died" : "");
	done = &fx_get(f, AGT_ACT_COMPLETE, 1)->u.done;
	ck_assert(done->tx_bytes == 77 && done->rx_bytes == 88);
}
END_TEST

Suite *sync_end_suite(void)
{
	Suite *s = suite_create("sync_end");
	TCase *t = tcase_create("sync_end");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, failed_member_is_reported_and_waits_for_its_kick);
	tcase_add_test(t, later_failure_of_a_member_is_reported_separately);
	tcase_add_test(t, job_that_fails_on_one_host_is_aborted_for_all);
	tcase_add_test(t, agent_waits_for_the_master_to_notice_a_lost_holder);
	tcase_add_test(t, receiver_that_cannot_reach_a_holder_fails);
	tcase_add_loop_test(t, complete_receiver_does_not_fail_with_another_receiver, 0, 2);
	tcase_add_test(t, no_wait_for_holders_if_all_receivers_have_failed);
	tcase_add_test(t, wait_for_holders_ends_when_the_job_fails);
	tcase_add_test(t, wait_for_holders_ends_when_the_receivers_leave);
	tcase_add_test(t, wait_for_holders_is_longer_without_a_master);
	tcase_add_loop_test(t, no_receiver_is_suspected_after_a_takeover, 0, 3);
	tcase_add_test(t, wait_for_holders_starts_again_after_a_pause_of_the_agent);
	tcase_add_test(t, next_master_gets_the_state_of_a_synchronization);
	tcase_add_test(t, destroy_without_a_master_does_not_end_the_job);
	tcase_add_test(t, failure_of_the_job_is_reported_to_the_next_master);
	tcase_add_test(t, failed_member_that_has_left_is_not_reported);
	tcase_add_test(t, votes_are_sent_again_to_the_next_master);
	tcase_add_test(t, outcomes_are_sent_to_the_next_master);
	tcase_add_test(t, synchronization_ends_with_the_run);
	tcase_add_test(t, no_report_is_sent_when_the_run_ends);
	tcase_add_test(t, status_shows_a_synchronization);
	tcase_add_test(t, status_shows_the_last_synchronization);
	tcase_add_test(t, waits_of_a_synchronization_are_logged_and_shown);
	tcase_add_loop_test(t, failure_after_the_outcome_does_not_count, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
