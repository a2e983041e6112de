/* SPDX-License-Identifier: MIT
 *
 * Eager operations that start speculatively, before the master has counted the votes.
 */
#include "tests/agent/fixture.h"

#define TAG  5u
#define SLOT 5u /* the slot that fx_submit_all uses for TAG */

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

static void done(uint64_t seq, uint64_t next)
{
	struct wm_msg m = {.type = WM_OP_DONE};

	m.u.op_done = (struct wm_op_done){.seq = seq, .next = next};
	fx_from_master(f, 1, &m);
}

/* Completes one operation of two local peers in a ring of three hosts. The master reserves number
 * 32 for the next one. */
static void reserved(void)
{
	fx_group(f, 2, 3, comms);
	fx_submit_all(f, comms, 2, TAG);
	fx_op_start(f, 1, 7, TAG, 31);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 31, 0);
	done(31, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_EXPECT, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_EXPECT, 0)->u.xfer.hosts, 3);
}

static void begun(void)
{
	reserved();
	fx_submit_all(f, comms, 2, TAG);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.seq, 32);
	ck_assert(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.spec);
}

START_TEST(speculative_start_follows_the_last_local_submission)
{
	const struct wm_op_vote *v;

	reserved();
	fx_submit(f, comms[0], SLOT, TAG, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	fx_submit(f, comms[1], SLOT, TAG, 8);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.n_members, 2);
	v = &fx_msg(f, WM_OP_VOTE, 0)->u.op_vote;
	ck_assert_uint_eq(v->spec_seq, 32);
	ck_assert_uint_eq(v->seq, 0);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.seq, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	done(32, 40);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	fx_expect_done(f, 0, comms[0], WIRE_SUCCESS, "");
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FREE, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_EXPECT, 0)->u.xfer.seq, 40);
}
END_TEST

START_TEST(speculative_start_needs_eager_equal_submissions)
{
	reserved();
	if (_i == 0) { /* the parameters differ on this host */
		fx_submit(f, comms[0], SLOT, TAG, 8);
		fx_submit(f, comms[1], SLOT, TAG, 9);
	} else { /* too large for the eager path */
		fx_submit(f, comms[0], SLOT, TAG, 1 << 20);
		fx_submit(f, comms[1], SLOT, TAG, 1 << 20);
	}
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
}
END_TEST

START_TEST(start_under_another_number_rolls_back)
{
	begun();
	if (_i == 1)
		fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	fx_op_start(f, 1, 7, TAG, 33);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.seq, 33);
	ck_assert(!fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.spec);
	ck_assert(fx_index(f, AGT_ACT_XFER_ROLLBACK, 0) < fx_index(f, AGT_ACT_XFER_START, 0));
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 33, 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.seq, 33);
	done(33, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(broken_link_rolls_back_and_is_reported)
{
	begun();
	fx_link(f, AGT_EV_LINK_DOWN, 1, 101, true);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	if (_i == 0) { /* all members had voted */
		fx_op_abort(f, 1, 7, TAG, 32);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	} else { /* some members had not voted, and the neighbour opens a new link */
		fx_link(f, AGT_EV_LINK_UP, 1, 101, true);
		fx_op_start(f, 1, 7, TAG, 33);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.seq, 33);
	}
}
END_TEST

/* The abort answers the vote (seq 0). If the master has counted all votes, the abort names the
 * attempt. */
START_TEST(abort_cancels_a_speculative_start)
{
	begun();
	if (_i & 2)
		fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	fx_op_abort(f, 1, 7, TAG, _i & 1 ? 32 : 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_CANCEL, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	fx_xfer(f, AGT_EV_XFER_CANCELLED, 1, 32, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_FREE), 1);
}
END_TEST

START_TEST(leave_before_the_report_rolls_the_attempt_back)
{
	begun();
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
}
END_TEST

/* The start under another number and the member's leave cross each other. */
START_TEST(no_start_if_a_member_has_left_after_the_report)
{
	begun();
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	fx_session_closed(f, 1);
	fx_op_start(f, 1, 7, TAG, 33);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, TAG, 33);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 1);
}
END_TEST

static void started(uint64_t seq, uint64_t epoch)
{
	struct wm_msg m = {.type = WM_OP_START};

	m.u.op_start = (struct wm_op_start){.group = 7, .tag = TAG, .seq = seq, .epoch = epoch};
	fx_from_master(f, 1, &m);
}

/* The next master knows a commit that this agent has not received. */
START_TEST(speculative_start_belongs_to_the_rings_of_its_start)
{
	uint64_t epoch;

	begun();
	epoch = fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.epoch;
	fx_orphan(f);
	fx_resume(f);
	if (_i == 1)
		fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	started(32, epoch + 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	fx_op_abort(f, 1, 7, TAG, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

/* If the result is not complete here, no other host can have been told of success. */
START_TEST(next_master_learns_of_a_complete_result)
{
	uint64_t epoch;

	begun();
	epoch = fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.epoch;
	if (_i == 1)
		fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.seq, _i == 1 ? 32 : 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), (uint32_t)_i);
	ck_assert_uint_eq(fx_msg(f, WM_RESUME, 0)->u.resume.last_seq, 32);
	if (_i == 1)
		return;
	/* Another agent had the complete result, so the attempt continues. This agent reports
	 * once. */
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 0);
	started(32, epoch);
	ck_assert_uint_eq(fx_sent(f, WM_OP_REPORT), 1);
	ck_assert(fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	done(32, 0);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
}
END_TEST

START_TEST(next_master_voids_a_reserved_seq)
{
	reserved();
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
	fx_submit_all(f, comms, 2, TAG);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
}
END_TEST

/* A host that does not know of the loss yet may start under the same number. */
START_TEST(loss_voids_a_reserved_seq)
{
	struct fx_ring ring = {.group = 7, .hosts = 3, .world_size = 3, .generation = 1};

	reserved();
	fx_view(f, 1, &ring, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
	f->generation = 1;
	fx_submit_all(f, comms, 2, TAG);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
}
END_TEST

START_TEST(local_loss_voids_a_reserved_seq)
{
	reserved();
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
	fx_submit(f, comms[1], SLOT, TAG, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
}
END_TEST

/* The master reserves a number before it knows that a member has left. A later round shows that the
 * master knows. */
START_TEST(no_seq_is_reserved_until_the_master_knows_a_leave)
{
	struct fx_ring ring = {
		.group = 7, .hosts = 3, .world_size = 3, .generation = 1, .n = 1, .members = {2}};

	fx_group(f, 2, 3, comms);
	fx_submit_all(f, comms, 2, TAG);
	fx_op_start(f, 1, 7, TAG, 31);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 31, 0);
	fx_session_closed(f, 1);
	done(31, 32);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_EXPECT), 0);
	fx_submit(f, comms[1], SLOT, TAG, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	fx_view(f, 1, &ring, 1);
	fx_accept(f, 1, 2, &ring, 1);
	f->generation = 1;
	fx_submit(f, comms[1], SLOT + 1, TAG + 1, 8);
	fx_op_start(f, 1, 7, TAG + 1, 33);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 33, 0);
	done(33, 34);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_EXPECT, 0)->u.xfer.seq, 34);
}
END_TEST

START_TEST(reserved_seq_that_is_too_low_is_a_violation)
{
	reserved();
	fx_submit_all(f, comms, 2, TAG);
	fx_xfer(f, AGT_EV_XFER_DONE, 1, 32, 0);
	done(32, 31);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_MASTER_CLOSE), 1);
}
END_TEST

Suite *spec_suite(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, speculative_start_follows_the_last_local_submission);
	tcase_add_loop_test(t, speculative_start_needs_eager_equal_submissions, 0, 2);
	tcase_add_loop_test(t, start_under_another_number_rolls_back, 0, 2);
	tcase_add_loop_test(t, broken_link_rolls_back_and_is_reported, 0, 2);
	tcase_add_loop_test(t, abort_cancels_a_speculative_start, 0, 4);
	tcase_add_test(t, leave_before_the_report_rolls_the_attempt_back);
	tcase_add_test(t, no_start_if_a_member_has_left_after_the_report);
	tcase_add_loop_test(t, speculative_start_belongs_to_the_rings_of_its_start, 0, 2);
	tcase_add_loop_test(t, next_master_learns_of_a_complete_result, 0, 2);
	tcase_add_test(t, next_master_voids_a_reserved_seq);
	tcase_add_test(t, loss_voids_a_reserved_seq);
	tcase_add_test(t, local_loss_voids_a_reserved_seq);
	tcase_add_test(t, no_seq_is_reserved_until_the_master_knows_a_leave);
	tcase_add_test(t, reserved_seq_that_is_too_low_is_a_violation);
	suite_add_tcase(s, t);
	return s;
}
