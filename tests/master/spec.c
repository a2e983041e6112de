/* SPDX-License-Identifier: MIT
 *
 * The master's core: operations that agents start before the votes are counted.
 */
#include "tests/common/testlib.h"
#include "tests/master/suites.h"
#include "tests/master/trio.h"

#define TAG 5u

static void vote_spec(const struct fk_peer *v, uint64_t tag, uint64_t spec_seq)
{
	struct cc_id id = v->id;
	struct wm_msg msg = {.type = WM_OP_VOTE};

	msg.u.op_vote = (struct wm_op_vote){
		.tag = tag, .params = fk_params, .n_peers = 1, .peers = &id, .spec_seq = spec_seq};
	msg.u.op_vote.generation = fk_generation(v->host, 0);
	fk_send(v->host, &msg);
}

static void report_all(uint64_t seq)
{
	fk_report(a, seq, true);
	fk_report(b, seq, true);
	fk_report(c, seq, true);
}

/* Completes an operation. Returns the number that OP_DONE reserves for the next one. */
static uint64_t reserve(void)
{
	uint64_t seq, next;

	vote_all(TAG);
	seq = fk_take(a, WM_OP_START)->u.op_start.seq;
	report_all(seq);
	next = fk_take(a, WM_OP_DONE)->u.op_done.next;
	ck_assert_uint_gt(next, seq);
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.next, next);
	fk_forget(&f);
	return next;
}

START_TEST(votes_and_reports_complete_a_speculative_operation)
{
	uint64_t n = reserve(), next;

	vote_spec(&p, TAG, n);
	fk_report(a, n, true);
	vote_spec(&q, TAG, n);
	vote_spec(&r, TAG, n);
	fk_report(c, n, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(b, n, true);
	ck_assert_uint_eq(fk_take(b, WM_OP_DONE)->u.op_done.seq, n);
	ck_assert_uint_eq(fk_count(c, WM_OP_DONE), 1);
	next = fk_take(a, WM_OP_DONE)->u.op_done.next;
	ck_assert_uint_gt(next, n);
	/* Each host reports right after its vote, because its peers call late, when all data
	 * has arrived. */
	vote_spec(&p, TAG, next);
	fk_report(a, next, true);
	vote_spec(&q, TAG, next);
	fk_report(b, next, true);
	vote_spec(&r, TAG, next);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(c, next, true);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.seq, next);
}
END_TEST

START_TEST(all_start_again_if_one_host_did_not_start)
{
	uint64_t n = reserve(), seq;

	vote_spec(&p, TAG, n);
	fk_report(a, n, true);
	if (_i == 0)
		fk_vote(&q, TAG);
	vote_spec(&r, TAG, n);
	fk_report(c, n, true);
	if (_i == 1)
		fk_vote(&q, TAG);
	seq = fk_take(a, WM_OP_START)->u.op_start.seq;
	ck_assert_uint_gt(seq, n);
	ck_assert_uint_eq(fk_take(b, WM_OP_START)->u.op_start.seq, seq);
	fk_report(a, n, true); /* this report was on its way when the attempt started */
	fk_report(a, seq, true);
	fk_report(b, seq, true);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(c, seq, true);
	ck_assert_uint_eq(fk_take(c, WM_OP_DONE)->u.op_done.seq, seq);
}
END_TEST

static void all_spec(uint64_t tag, uint64_t n)
{
	vote_spec(&p, tag, n);
	vote_spec(&q, tag, n);
	vote_spec(&r, tag, n);
}

START_TEST(reserved_number_is_valid_only_for_its_tag)
{
	uint64_t n = reserve();

	all_spec(TAG + 1, n);
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, n);
	all_spec(TAG, n - 1);
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, n);
}
END_TEST

START_TEST(reserved_number_is_valid_once)
{
	uint64_t n = reserve();

	all_spec(TAG, n);
	report_all(n);
	fk_forget(&f);
	all_spec(TAG, n);
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, n);
}
END_TEST

START_TEST(loss_or_round_voids_a_reserved_number)
{
	uint64_t n = reserve();

	if (_i == 0) { /* a loss */
		struct fk_peer more = fk_join(a, 0);

		(void)more;
		fk_leave(&r, WM_LEAVE_DIED);
		fk_know_generation(a, 0, fk_generation(a, 0));
		fk_know_generation(b, 0, fk_generation(b, 0));
		vote_spec(&p, TAG, n);
		vote_spec(&q, TAG, n);
	} else { /* a round, even without changes */
		topo_all();
		all_spec(TAG, n);
	}
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, n);
}
END_TEST

START_TEST(unequal_parameters_abort_a_speculative_operation)
{
	uint64_t n = reserve();
	struct wm_op_params params = fk_params;

	vote_spec(&p, TAG, n);
	fk_report(a, n, true);
	vote_spec(&q, TAG, n);
	fk_report(b, n, true);
	params.count++;
	fk_vote_params(&r, TAG, params);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.code, WIRE_INVALID_ARGUMENT);
	ck_assert_uint_eq(fk_count(a, WM_OP_DONE), 0);
	fk_report(b, n, true); /* this report is about an attempt that has ended */
	ck_assert(fk_present(&q));
}
END_TEST

START_TEST(failure_before_all_votes_makes_all_start_again)
{
	uint64_t n = reserve();

	vote_spec(&p, TAG, n);
	vote_spec(&q, TAG, n);
	fk_report(b, n, true);
	fk_report(a, n, false);
	vote_spec(&r, TAG, n);
	ck_assert_uint_eq(fk_count(a, WM_OP_ABORT), 0);
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, n);
}
END_TEST

START_TEST(failure_after_all_votes_fails_for_all)
{
	uint64_t n = reserve();

	all_spec(TAG, n);
	fk_report(b, n, true);
	fk_report(a, n, false);
	ck_assert_uint_eq(fk_take(c, WM_OP_ABORT)->u.op_abort.seq, n);
	ck_assert_uint_eq(fk_take(a, WM_OP_ABORT)->u.op_abort.code, WIRE_RANK_CONNECTION_LOST);
}
END_TEST

START_TEST(only_recent_tags_have_reserved_numbers)
{
	uint64_t first = 0, next = 0, tag;

	for (tag = 1; tag <= 40; tag++) {
		vote_all(tag);
		report_all(fk_take(a, WM_OP_START)->u.op_start.seq);
		next = fk_take(a, WM_OP_DONE)->u.op_done.next;
		first = first ? first : next;
	}
	fk_forget(&f);
	all_spec(1, first);
	ck_assert_uint_gt(fk_take(a, WM_OP_START)->u.op_start.seq, next);
	all_spec(40, next);
	ck_assert_uint_eq(fk_count(a, WM_OP_START), 0);
	report_all(next);
	ck_assert_uint_eq(fk_take(a, WM_OP_DONE)->u.op_done.seq, next);
}
END_TEST

Suite *spec_suite(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, votes_and_reports_complete_a_speculative_operation);
	tcase_add_loop_test(t, all_start_again_if_one_host_did_not_start, 0, 2);
	tcase_add_test(t, reserved_number_is_valid_only_for_its_tag);
	tcase_add_test(t, reserved_number_is_valid_once);
	tcase_add_loop_test(t, loss_or_round_voids_a_reserved_number, 0, 2);
	tcase_add_test(t, unequal_parameters_abort_a_speculative_operation);
	tcase_add_test(t, failure_before_all_votes_makes_all_start_again);
	tcase_add_test(t, failure_after_all_votes_fails_for_all);
	tcase_add_test(t, only_recent_tags_have_reserved_numbers);
	suite_add_tcase(s, t);
	return s;
}
