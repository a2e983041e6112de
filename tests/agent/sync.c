/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of shared state, from the submission to the end.
 */
#include "tests/agent/fixture.h"
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

static const struct wm_op_vote *vote(uint32_t n)
{
	return &fx_msg(f, WM_OP_VOTE, n)->u.op_vote;
}

/* ---- submissions and votes ---- */

START_TEST(equal_candidates_vote_together)
{
	struct wm_sync_vote candidate = sy_candidate(7, 1);

	fx_group(f, 4, 2, comms);
	sy_submit(f, comms[0], &candidate);
	sy_submit(f, comms[1], &candidate);
	ck_assert_uint_eq(f->acts.n, 0);
	candidate.revision = 6;
	sy_submit(f, comms[2], &candidate);
	candidate = sy_candidate(7, 1);
	candidate.strategy = WM_STRATEGY_SEND_ONLY;
	sy_submit(f, comms[3], &candidate);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 3);
	ck_assert(vote(0)->is_sync && vote(0)->tag == 0 && vote(0)->group == 7);
	ck_assert(vote(0)->n_peers == 2 && fx_is(&vote(0)->peers[1], fx_id(2)));
	ck_assert(vote(0)->sync.revision == 7 && vote(0)->sync.content.lo == 1);
	ck_assert(vote(0)->params.count == 0);
	ck_assert(vote(1)->n_peers == 1 && vote(1)->sync.revision == 6);
	ck_assert(vote(2)->n_peers == 1 && vote(2)->sync.strategy == WM_STRATEGY_SEND_ONLY);
}
END_TEST

/* Changes one field of a candidate at a time. */
START_TEST(candidates_that_differ_in_a_field_vote_separately)
{
	struct wm_sync_vote candidate[9];
	unsigned i;

	for (i = 0; i < 9; i++)
		candidate[i] = sy_candidate(7, 1);
	candidate[0].revision++;
	candidate[1].strategy++;
	candidate[2].hash_type++;
	candidate[3].keys.hi++;
	candidate[4].keys.lo++;
	candidate[5].content.hi++;
	candidate[6].n_tensors++;
	candidate[7].bytes++;
	candidate[8].torn = true;
	for (i = 0; i < 9; i++) {
		struct wm_sync_vote same = sy_candidate(7, 1);
		uint32_t two[2];

		fx_free(f);
		f = fx_new();
		fx_group(f, 2, 2, two);
		sy_submit(f, two[0], &same);
		sy_submit(f, two[1], &candidate[i]);
		ck_assert_msg(fx_sent(f, WM_OP_VOTE) == 2, "field %u", i);
	}
}
END_TEST

/* The next master must know the torn state, too. */
START_TEST(torn_state_is_reported_again)
{
	struct wm_sync_vote candidate = sy_candidate(7, 1);

	fx_group(f, 2, 2, comms);
	sy_submit(f, comms[0], &candidate);
	candidate.torn = true;
	sy_submit(f, comms[1], &candidate);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	ck_assert(!vote(0)->sync.torn && vote(1)->sync.torn);
	if (_i)
		sy_start(f, 5, 7, "1H2H");
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "gone");
	sy_resume(f);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	ck_assert_uint_eq(vote(0)->seq, _i ? 5 : 0);
	ck_assert(!vote(0)->sync.torn && vote(1)->sync.torn);
}
END_TEST

START_TEST(vote_waits_one_second_for_other_local_peers)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	fx_tick(f, 900);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 0);
	fx_tick(f, 100);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert(vote(0)->is_sync && vote(0)->n_peers == 1);
	sy_candidate_all(f, comms + 1, 1, 7, 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	ck_assert(vote(0)->is_sync && fx_is(&vote(0)->peers[0], fx_id(2)));
}
END_TEST

START_TEST(a_group_of_one_may_synchronize)
{
	fx_group(f, 1, 1, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
	sy_start(f, 5, 7, "1H");
	sy_done(f, 5);
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	fx_submit(f, comms[0], 0, 0, 8);
	fx_expect_done(f, 0, comms[0], WIRE_TOO_FEW_PEERS, "");
}
END_TEST

START_TEST(synchronization_excludes_other_operations)
{
	struct wm_sync_vote candidate = sy_candidate(7, 1);

	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 3, 4, 8);
	fx_submit(f, comms[0], 4, 5, 8);
	sy_submit(f, comms[0], &candidate);
	fx_expect_done(f, 0, comms[0], WIRE_PENDING_ASYNC_OPS, "2 operations");
	sy_submit(f, comms[1], &candidate); /* this process has no operation */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_submit(f, comms[1], 3, 0, 8);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "pcclSynchronizeSharedState");
	fx_submit(f, comms[1], 3, 9, 8);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "pcclSynchronizeSharedState");
	sy_submit_slot(f, comms[1], 3, &candidate);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "pcclSynchronizeSharedState");
	fx_request(f, 2, comms[1], FX_VOTE(WIRE_TOPOLOGY));
	fx_expect_reply(f, WIRE_PENDING_ASYNC_OPS, "");
}
END_TEST

/* The synchronization is not the all-reduce with tag 0. */
START_TEST(synchronization_is_not_the_operation_with_tag_0)
{
	fx_group(f, 2, 2, comms);
	fx_submit(f, comms[0], 3, 0, 8);
	sy_candidate_all(f, comms + 1, 1, 7, 1);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_tick(f, 1000);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 2);
	ck_assert(!vote(0)->is_sync && vote(1)->is_sync);
	fx_op_abort(f, 1, 7, 0, 0);
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	sy_abort(f, 0);
	fx_expect_done(f, 0, comms[1], WIRE_RANK_CONNECTION_LOST, "");
}
END_TEST

/* A loss takes away a vote for the synchronization, but does not end the synchronization. */
START_TEST(loss_before_the_start_does_not_end_a_synchronization)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 2, .generation = 1, .n = 2};
	struct wm_sync_vote candidate = sy_candidate(7, 1);

	fx_group(f, 2, 2, comms);
	sy_submit(f, comms[0], &candidate);
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	/* Like the first process, this process does not know of the loss yet. */
	sy_submit(f, comms[1], &candidate);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(vote(0)->generation, 1);
	ck_assert_uint_eq(vote(0)->n_peers, 2);
}
END_TEST

/* ---- the job ---- */

START_TEST(job_has_the_elected_contents_and_roles)
{
	const struct agt_sync *y;
	const struct agt_done *d;

	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	sy_candidate_all(f, comms + 1, 1, 3, 2);
	sy_start(f, 5, 7, "1H2R");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_START), 1);
	y = &fx_get(f, AGT_ACT_SYNC_START, 0)->u.sync;
	ck_assert(y->seq == 5 && y->epoch == 9 && y->group == 7 && y->revision == 7);
	ck_assert(y->hash_type == WM_HASH_SIMPLE && y->content.lo == 1 && y->keys.hi == 33);
	ck_assert(y->begin.view_id == f->view_id && y->begin.group == 3);
	ck_assert_uint_eq(y->n_members, 2);
	ck_assert(y->members[0].comm == comms[0] && y->members[0].holder);
	ck_assert(y->members[1].comm == comms[1] && !y->members[1].holder);
	ck_assert(y->members[1].sub.sync.revision == 3);
	ck_assert_uint_eq(y->n_sources, 2);
	ck_assert(fx_is(&y->sources[0].endpoint.agent, fx_id(100)) && y->sources[0].holds);
	ck_assert(fx_is(&y->sources[1].endpoint.agent, fx_id(101)) && !y->sources[1].holds);
	sy_done(f, 5);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.n_failed, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	/* The job serves other hosts until the success is known. Until then, no member
	 * gets its tensors back. */
	sy_op_done(f, 5, 7);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_SYNC_CANCEL, 0)->u.sync.seq, 5);
	sy_cancelled(f, 5, comms, 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	d = &fx_get(f, AGT_ACT_COMPLETE, 0)->u.done;
	ck_assert(d->revision == 7 && d->tx_bytes == 1000 && d->rx_bytes == 2000);
	ck_assert(d->after.view_id == f->view_id);
	fx_expect_done(f, 1, comms[1], WIRE_SUCCESS, "");
	d = &fx_get(f, AGT_ACT_COMPLETE, 1)->u.done;
	ck_assert(d->revision == 7 && d->tx_bytes == 1001 && d->rx_bytes == 2001);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_FREE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 0);
}
END_TEST

START_TEST(an_abort_cancels_the_job)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2H");
	sy_abort(f, 5);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	sy_done(f, 5); /* was sent before the cancel */
	ck_assert_uint_eq(f->acts.n, 0);
	sy_cancelled(f, 5, comms, 2);
	fx_expect_done(f, 1, comms[1], WIRE_RANK_CONNECTION_LOST, "peer 12 died");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 1)->u.done.revision, 0);
	/* The bytes of the aborted job are counted, too. */
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 1)->u.done.tx_bytes, 1001);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 1)->u.done.rx_bytes, 2001);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_FREE), 1);
}
END_TEST

/* A communicator can submit again only after its last synchronization has been cancelled. */
START_TEST(submission_is_refused_until_the_cancel_has_ended)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2H");
	sy_kick(f, 2, "you did it");
	sy_dropped(f, 5, comms[1]);
	sy_abort(f, 5);
	sy_candidate_all(f, comms, 1, 7, 1);
	fx_expect_done(f, 0, comms[0], WIRE_INVALID_USAGE, "in progress");
	sy_cancelled(f, 5, comms, 1);
	sy_candidate_all(f, comms, 1, 7, 1);
	ck_assert_uint_eq(fx_sent(f, WM_OP_VOTE), 1);
}
END_TEST

START_TEST(a_start_without_a_voter_is_a_violation)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

START_TEST(peer_that_left_after_its_vote_has_no_part)
{
	fx_group(f, 3, 2, comms);
	sy_candidate_all(f, comms, 3, 7, 1);
	fx_session_closed(f, 2);
	sy_kick(f, 3, "outdated");
	fx_expect_done(f, 0, comms[2], WIRE_INVALID_USAGE, "outdated");
	sy_start(f, 5, 7, "1H2H");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_SYNC_START, 0)->u.sync.n_members, 1);
}
END_TEST

START_TEST(start_without_local_members_has_no_effect)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	fx_tick(f, 1000);
	fx_session_closed(f, 1);
	sy_start(f, 5, 7, "1H");
	ck_assert_uint_eq(f->acts.n, 0);
	sy_op_done(f, 5, 7);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_start(f, 5, 7, "1H"); /* the number is used up */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

/* ---- members that leave ---- */

START_TEST(kicked_member_is_dropped_from_the_job)
{
	fx_group(f, 3, 2, comms);
	sy_candidate_all(f, comms, 3, 7, 1);
	sy_start(f, 5, 7, "1H2R3R");
	sy_kick(f, 2, "cannot be read");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 1);
	ck_assert(fx_get(f, AGT_ACT_SYNC_DROP, 0)->comm == comms[1]);
	ck_assert(fx_get(f, AGT_ACT_SYNC_DROP, 0)->u.sync.seq == 5);
	sy_dropped(f, 5, comms[1]);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "cannot be read");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.rx_bytes, 88);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
	sy_dropped(f, 5, comms[1]);
	sy_dropped(f, 5, comms[0]); /* the agent has not asked for this */
	ck_assert_uint_eq(f->acts.n, 0);
	sy_done(f, 5);
	sy_finish(f, 5, 7);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 1, comms[2], WIRE_SUCCESS, "");
}
END_TEST

/* A member that is kicked before the success gets its own result. */
START_TEST(success_does_not_include_a_kicked_member)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2R");
	sy_done(f, 5);
	sy_kick(f, 2, "you lied");
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	fx_expect_done(f, 1, comms[1], WIRE_INVALID_USAGE, "you lied");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 1)->u.done.revision, 0);
	sy_dropped(f, 5, comms[1]);
	ck_assert_uint_eq(f->acts.n, 0);
}
END_TEST

START_TEST(job_continues_when_a_process_dies)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2R");
	fx_session_closed(f, 2);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 0);
	sy_dropped(f, 5, comms[1]);
	ck_assert_uint_eq(f->acts.n, 0);
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	sy_op_done(f, 5, 7);
	ck_assert_uint_eq(f->acts.n, 0);
	sy_cancelled(f, 5, comms, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_FREE), 1);
}
END_TEST

START_TEST(job_continues_when_a_communicator_is_destroyed)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	sy_start(f, 5, 7, "1H2R");
	fx_request(f, 2, comms[1], WL_COMM_DESTROY);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_DROP), 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_REPLY), 0);
	sy_dropped(f, 5, comms[1]);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "destroyed");
	fx_left(f, 1, 2);
	fx_expect_reply(f, WIRE_SUCCESS, "");
	sy_done(f, 5);
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
}
END_TEST

/* A decided success stays a success, even if a member leaves before its call completes. */
START_TEST(nothing_undoes_a_success)
{
	fx_group(f, 3, 2, comms);
	sy_candidate_all(f, comms, 3, 7, 1);
	sy_start(f, 5, 7, "1H2R3H");
	sy_done(f, 5);
	sy_op_done(f, 5, 7);
	sy_kick(f, 2, "later");
	fx_session_closed(f, 3);
	sy_abort(f, 5);
	fx_event(f, AGT_EV_MASTER_DOWN, 1, "gone");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_tick(f, 100000); /* the end of the run does not change the success */
	sy_cancelled(f, 5, comms, 3);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	fx_expect_done(f, 1, comms[1], WIRE_SUCCESS, "");
}
END_TEST

/* ---- losses and revisions ---- */

/* A loss after the start does not abort the synchronization. A loss before the start is reported
 * with the result. */
START_TEST(losses_before_the_start_are_reported_with_the_result)
{
	struct fx_ring ring = {.group = 7, .hosts = 1, .world_size = 2, .generation = 3, .n = 2};

	fx_group(f, 2, 3, comms);
	sy_candidate_all(f, comms, 2, 7, 1);
	fx_view(f, 1, &ring, 1); /* the losses are kicks that the election caused */
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	sy_start(f, 5, 7, "1H2H");
	ring.generation = 4;
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_ATTRS), f->acts.n);
	sy_done(f, 5);
	sy_finish(f, 5, 7);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.generation, 3);
	f->generation = 3;
	fx_submit(f, comms[0], 0, 5, 8); /* the application does not know generation 4 */
	fx_expect_done(f, 0, comms[0], WIRE_RANK_CONNECTION_LOST, "");
}
END_TEST

static uint64_t told_revision(void)
{
	const struct wm_resume *r;

	fx_event(f, AGT_EV_MASTER_DOWN, 1, "gone");
	sy_resume(f);
	r = &fx_msg(f, WM_RESUME, 0)->u.resume;
	ck_assert_uint_eq(r->view.n, 1);
	return r->view.own[0].revision;
}

START_TEST(revision_is_kept_and_sent_to_the_next_master)
{
	fx_group(f, 1, 2, comms);
	ck_assert_uint_eq(told_revision(), 0);
	sy_view_revision(f, 20);
	ck_assert_uint_eq(told_revision(), 20);
	sy_view_revision(f, 0); /* the next run of the group begins */
	ck_assert_uint_eq(told_revision(), 0);
	sy_view_revision(f, 20);
	sy_candidate_all(f, comms, 1, 20, 1);
	sy_start(f, 5, 20, "1H");
	sy_done(f, 5);
	sy_op_done(f, 5, 20);
	ck_assert_uint_eq(told_revision(), 21);
	sy_cancelled(f, 5, comms, 1);
}
END_TEST

START_TEST(the_first_revision_may_be_zero)
{
	fx_group(f, 1, 2, comms);
	sy_candidate_all(f, comms, 1, 0, 1);
	sy_start(f, 5, 0, "1H");
	sy_done(f, 5);
	sy_finish(f, 5, 0);
	ck_assert_uint_eq(told_revision(), 1);
}
END_TEST

/* The revision in the master's OP_DONE is the valid one. */
START_TEST(result_carries_the_revision_of_the_master)
{
	fx_group(f, 1, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	sy_start(f, 5, 7, "1H");
	sy_done(f, 5);
	sy_finish(f, 5, 8);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_COMPLETE, 0)->u.done.revision, 8);
}
END_TEST

/* The success also counts on a host whose members have all left. */
START_TEST(success_is_accepted_when_all_members_have_left)
{
	fx_group(f, 2, 2, comms);
	sy_candidate_all(f, comms, 1, 7, 1);
	fx_tick(f, 1000);
	sy_candidate_all(f, comms + 1, 1, 7, 1);
	sy_start(f, 5, 7, "1H2H");
	fx_session_closed(f, 1);
	sy_done(f, 5);
	sy_kick(f, 2, "you lied");
	ck_assert_uint_eq(fx_count(f, AGT_ACT_SYNC_CANCEL), 1);
	sy_op_done(f, 5, 7);
	sy_cancelled(f, 5, comms, 2);
	fx_expect_done(f, 0, comms[1], WIRE_INVALID_USAGE, "you lied");
}
END_TEST

Suite *sync_suite(void)
{
	Suite *s = suite_create("sync");
	TCase *t = tcase_create("sync");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, equal_candidates_vote_together);
	tcase_add_test(t, candidates_that_differ_in_a_field_vote_separately);
	tcase_add_loop_test(t, torn_state_is_reported_again, 0, 2);
	tcase_add_test(t, vote_waits_one_second_for_other_local_peers);
	tcase_add_test(t, a_group_of_one_may_synchronize);
	tcase_add_test(t, synchronization_excludes_other_operations);
	tcase_add_test(t, synchronization_is_not_the_operation_with_tag_0);
	tcase_add_test(t, loss_before_the_start_does_not_end_a_synchronization);
	tcase_add_test(t, job_has_the_elected_contents_and_roles);
	tcase_add_test(t, an_abort_cancels_the_job);
	tcase_add_test(t, submission_is_refused_until_the_cancel_has_ended);
	tcase_add_test(t, a_start_without_a_voter_is_a_violation);
	tcase_add_test(t, peer_that_left_after_its_vote_has_no_part);
	tcase_add_test(t, start_without_local_members_has_no_effect);
	tcase_add_test(t, kicked_member_is_dropped_from_the_job);
	tcase_add_test(t, success_does_not_include_a_kicked_member);
	tcase_add_test(t, job_continues_when_a_process_dies);
	tcase_add_test(t, job_continues_when_a_communicator_is_destroyed);
	tcase_add_test(t, nothing_undoes_a_success);
	tcase_add_test(t, losses_before_the_start_are_reported_with_the_result);
	tcase_add_test(t, revision_is_kept_and_sent_to_the_next_master);
	tcase_add_test(t, the_first_revision_may_be_zero);
	tcase_add_test(t, result_carries_the_revision_of_the_master);
	tcase_add_test(t, success_is_accepted_when_all_members_have_left);
	suite_add_tcase(s, t);
	return s;
}
