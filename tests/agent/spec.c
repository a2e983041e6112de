/* SPDX-License-Identifier: MIT
 *
 * Small operations that begin before the master has counted the votes.
 */
#include "tests/agent/fixture.h"

#define TAG  5u
#define SLOT 5u /* fx_submit_all: the tag's */

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

/* Two local peers on a ring of three hosts have done one operation, and the next is number 32. */
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

START_TEST(begins_with_the_last_local_submission)
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

START_TEST(only_eager_and_equal_operations)
{
	reserved();
	if (_i == 0) { /* other parameters here */
		fx_submit(f, comms[0], SLOT, TAG, 8);
		fx_submit(f, comms[1], SLOT, TAG, 9);
	} else { /* too large */
		fx_submit(f, comms[0], SLOT, TAG, 1 << 20);
		fx_submit(f, comms[1], SLOT, TAG, 1 << 20);
	}
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
}
END_TEST

START_TEST(another_number_takes_its_place)
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

START_TEST(a_broken_link_is_told_and_waits_for_the_master)
{
	begun();
	fx_link(f, AGT_EV_LINK_DOWN, 1, 101, true);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert(!fx_msg(f, WM_OP_REPORT, 0)->u.op_report.ok);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 0);
	if (_i == 0) { /* all had voted */
		fx_op_abort(f, 1, 7, TAG, 32);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_COMPLETE), 2);
		ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_CANCEL), 0);
	} else { /* not all; and the neighbour opens another one */
		fx_link(f, AGT_EV_LINK_UP, 1, 101, true);
		fx_op_start(f, 1, 7, TAG, 33);
		ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_START, 0)->u.xfer.seq, 33);
	}
}
END_TEST

/* As of the vote (0), or once the master has counted all. */
START_TEST(an_abort_ends_it)
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

START_TEST(a_member_that_leaves_before_the_end_takes_it_back)
{
	begun();
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_ROLLBACK, 0)->u.xfer.seq, 32);
	ck_assert_uint_eq(fx_sent(f, WM_LEAVE), 1);
}
END_TEST

/* The start under another number crosses with its leave. */
START_TEST(a_member_that_leaves_after_the_report_starts_nothing)
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

/* The next master has heard of a commit that this agent had not. */
START_TEST(it_is_of_its_rings)
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

/* Unless the whole result is here, no other host can have been told of success. */
START_TEST(the_next_master_is_told_of_what_is_whole)
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
	/* Another agent had it whole: this one goes on, and reports once. */
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

START_TEST(another_master_makes_it_void)
{
	reserved();
	fx_orphan(f);
	fx_resume(f);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
	fx_submit_all(f, comms, 2, TAG);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
}
END_TEST

/* A host that has not heard of it yet may begin under the same number. */
START_TEST(a_loss_makes_it_void)
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

START_TEST(a_local_loss_makes_it_void)
{
	reserved();
	fx_session_closed(f, 1);
	ck_assert_uint_eq(fx_get(f, AGT_ACT_XFER_FORGET, 0)->u.xfer.seq, 32);
	fx_submit(f, comms[1], SLOT, TAG, 8);
	ck_assert_uint_eq(fx_count(f, AGT_ACT_XFER_START), 0);
	ck_assert_uint_eq(fx_msg(f, WM_OP_VOTE, 0)->u.op_vote.spec_seq, 0);
}
END_TEST

/* The master reserves more before it hears of the one that has left, until a round tells that it
 * has heard. */
START_TEST(nothing_is_reserved_for_fewer_members)
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

START_TEST(a_next_number_that_is_old_is_nonsense)
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
	tcase_add_test(t, begins_with_the_last_local_submission);
	tcase_add_loop_test(t, only_eager_and_equal_operations, 0, 2);
	tcase_add_loop_test(t, another_number_takes_its_place, 0, 2);
	tcase_add_loop_test(t, a_broken_link_is_told_and_waits_for_the_master, 0, 2);
	tcase_add_loop_test(t, an_abort_ends_it, 0, 4);
	tcase_add_test(t, a_member_that_leaves_before_the_end_takes_it_back);
	tcase_add_test(t, a_member_that_leaves_after_the_report_starts_nothing);
	tcase_add_loop_test(t, it_is_of_its_rings, 0, 2);
	tcase_add_loop_test(t, the_next_master_is_told_of_what_is_whole, 0, 2);
	tcase_add_test(t, another_master_makes_it_void);
	tcase_add_test(t, a_loss_makes_it_void);
	tcase_add_test(t, a_local_loss_makes_it_void);
	tcase_add_test(t, nothing_is_reserved_for_fewer_members);
	tcase_add_test(t, a_next_number_that_is_old_is_nonsense);
	suite_add_tcase(s, t);
	return s;
}
