/* SPDX-License-Identifier: MIT
 *
 * Results that do not come from a result area. With SHM_RESULT_STAGED, the result replaces the
 * staged operand and is exchanged with the old contents of the receive buffer. With
 * SHM_RESULT_DIRECT (pcclSetOutputPolicy), the agent writes the result to the receive buffer at
 * once.
 */
#include <pthread.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

enum { BYTES = 100000, SEGMENT = CC_PLAN_SEGMENT_MIN };

/* Placements with a staged operand, which the result may replace. */
static const enum placement staged[] = {STAGED, STAGED_IN_PLACE, RECV_REGISTERED};
/* Placements with a registered output that is not the operand. */
static const enum placement apart[] = {RECV_REGISTERED, BOTH_REGISTERED};

enum { STAGED_N = sizeof staged / sizeof *staged, APART_N = sizeof apart / sizeof *apart };

static const struct {
	enum placement p;
	enum shm_result_mode mode;
} places[] = {{STAGED, SHM_RESULT_STAGED}, {STAGED_IN_PLACE, SHM_RESULT_STAGED},
	{RECV_REGISTERED, SHM_RESULT_STAGED}, {RECV_REGISTERED, SHM_RESULT_DIRECT},
	{BOTH_REGISTERED, SHM_RESULT_DIRECT}};

enum { PLACES = sizeof places / sizeof *places };

static const size_t sizes[] = {1, 2, 8191, 8193, 65536, 300001, 1048583};

/* Checks that the communicator still works, and that its next results are right in each mode. */
static void check_next(enum placement p)
{
	static const enum shm_result_mode modes[] = {SHM_RESULT_STAGED, SHM_RESULT_AREA};

	for (unsigned i = 0; i < 2; i++) {
		struct buffers b = bf_new(p, 50000, i);

		bf_run(&b, i, p == BOTH_REGISTERED ? SHM_RESULT_UNDO : modes[i]);
		bf_free(&b);
	}
}

/* ---- success ---- */

/* The caller looks only when the operation is done. */
START_TEST(results_are_taken_when_the_operation_is_done)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffers b = bf_new(places[_i].p, sizes[i], i);

		bf_run(&b, i, places[_i].mode);
		bf_free(&b);
	}
}
END_TEST

START_TEST(blocking_calls_take_results_while_the_agent_works)
{
	enum shm_result_mode mode = places[_i].mode;

	for (size_t i = 0; i < 21; i++) {
		size_t bytes = sizes[i % (sizeof sizes / sizeof *sizes)];
		struct buffers b = bf_new(places[_i].p, bytes, i);

		bf_run_blocking(&b, mode);
		bf_free(&b);
	}
}
END_TEST

/* The operand is divided among several rings: the plan has more segments, of different lengths. */
START_TEST(results_of_several_rings_are_taken)
{
	static const struct cc_shares shares[] = {
		{{1, 1}}, {{1, 65535}}, {{9, 2, 5}}, {{65535, 3, 800, 1}}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffers b = bf_new(places[_i].p, sizes[i], i);
		pcclAsyncReduceOp_t h = bf_launch(&b, 99);
		struct fake_op op = fake_take(fx_agent);

		op.shares = shares[i % (sizeof shares / sizeof *shares)];
		fake_serve(&op, places[_i].mode);
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
		bf_assert_result(&b);
		bf_free(&b);
	}
}
END_TEST

/* ---- exchanges ---- */

/* Returns the k-th segment to become final. The order is not that of the buffer, as in a ring. */
static uint32_t kth(const struct fake_op *op, uint32_t k)
{
	return (k + 5) % op->plan.n_segs;
}

static void expect_old(const struct fake_op *op, const struct buffers *b, uint32_t seg)
{
	struct cc_span span = cc_plan_segment(&op->plan, seg);

	for (uint64_t i = span.off; i < span.off + span.len; i++)
		if (op->in[i] != (bf_in_place(b->placement) ? b->operand[i] : OLD_RECV))
			ck_abort_msg("byte %zu was not exchanged", (size_t)i);
}

/* Makes `n` segments final, one by one. The caller exchanges each. Checks that the old contents are
 * where the results were. */
static void play(struct fake_op *op, const struct buffers *b, uint32_t n)
{
	fake_begin(op, SHM_RESULT_STAGED, 3, SEGMENT);
	for (uint32_t k = 0; k < n; k++) {
		fake_await_asleep(op, SHM_WAIT_SEGMENTS);
		fake_segment(op, kth(op, k));
	}
	fake_await_asleep(op, SHM_WAIT_SEGMENTS);
	for (uint32_t k = 0; k < n; k++)
		expect_old(op, b, kth(op, k));
}

/* Returns the number of segments in case `i`: none, one, half of them, or all. */
static uint32_t share(const struct fake_op *op, int i)
{
	struct cc_plan plan;

	ck_assert_int_eq(cc_plan_init_shares(&plan, op->bytes, 1, 3, SEGMENT, &op->shares), 0);
	return i == 0 ? 0 : i == 1 ? 1 : i == 2 ? plan.n_segs / 2 : plan.n_segs;
}

enum { SHARES = 4 };

static struct fake_op begin(struct bf_call *call, struct buffers *b, int how_many)
{
	struct fake_op op;

	bf_begin_call(call, b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	if (how_many % 2 == 1) /* on two rings */
		op.shares = (struct cc_shares){{2, 7}};
	play(&op, b, share(&op, how_many));
	return op;
}

START_TEST(segments_without_a_wake_are_taken_at_the_end)
{
	enum placement p = staged[_i / SHARES];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b, _i % SHARES);

	/* No thread is woken for these flags. */
	for (uint32_t k = share(&op, _i % SHARES); k < op.plan.n_segs; k++) {
		struct cc_span span = cc_plan_segment(&op.plan, kth(&op, k));

		for (uint64_t i = span.off; i < span.off + span.len; i++)
			op.in[i] ^= FAKE_XOR;
		atomic_store(&op.flags[kth(&op, k)], 1);
	}
	fake_end(&op, 0, NULL);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

START_TEST(an_abort_restores_exchanged_segments)
{
	enum placement p = staged[_i / SHARES];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b, _i % SHARES);

	fake_end(&op, pcclRankConnectionLost, "peer 12ab on host b was lost");
	bf_end_call(&call, pcclRankConnectionLost, "peer 12ab");
	bf_assert_untouched(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* The dead agent leaves partial sums in segments without a flag. */
START_TEST(the_death_of_the_agent_restores_exchanged_segments)
{
	enum placement p = staged[_i / SHARES];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b, _i % SHARES);

	for (uint32_t k = share(&op, _i % SHARES); k < op.plan.n_segs; k++) {
		struct cc_span span = cc_plan_segment(&op.plan, kth(&op, k));

		memset(op.in + span.off, 0x77, span.len);
	}
	fake_hang_up(fx_agent);
	bf_end_call(&call, pcclRankConnectionLost, "agent of this host died");
	bf_assert_untouched(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* The agent dies when all hosts have the result. The caller then takes the remaining segments. */
START_TEST(a_known_success_is_completed_after_the_agents_death)
{
	enum placement p = staged[_i / SHARES];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b, _i % SHARES);

	for (uint32_t k = share(&op, _i % SHARES); k < op.plan.n_segs; k++)
		fake_segment(&op, kth(&op, k));
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* The caller does not look at the operation before the agent dies. Nothing was exchanged, so
 * nothing is restored. */
START_TEST(nothing_is_restored_if_nothing_was_exchanged)
{
	struct buffers b = bf_new(staged[_i], BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 5);
	struct fake_op op = fake_take(fx_agent);

	fake_asked(fx_agent);
	fake_begin(&op, SHM_RESULT_STAGED, 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs / 2; i++)
		fake_segment(&op, i);
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	bf_assert_untouched(&b);
	bf_free(&b);
}
END_TEST

/* There are more segments than the shim follows one by one. The result is taken at the end, or not
 * at all. */
START_TEST(results_of_very_many_segments_are_taken_at_the_end)
{
	enum placement p = staged[_i / 2];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op;

	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	fake_begin(&op, SHM_RESULT_STAGED, 1, 1);
	for (uint32_t i = 0; i < op.plan.n_segs; i++)
		fake_segment(&op, i);
	fake_await_asleep(&op, SHM_WAIT_DONE);
	fake_end(&op, _i % 2 ? pcclRankConnectionLost : pcclSuccess, "a peer was lost");
	bf_end_call(&call, _i % 2 ? pcclRankConnectionLost : pcclSuccess, "");
	if (_i % 2)
		bf_assert_untouched(&b);
	else
		bf_assert_result(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* The communicator is destroyed in the middle of an operation. */
START_TEST(destroying_leaves_buffers_unchanged)
{
	struct buffers b = bf_new(staged[_i], BYTES, 1);
	struct fake_op op;

	bf_launch(&b, 5);
	op = fake_take(fx_agent);
	fake_begin(&op, SHM_RESULT_STAGED, 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs / 2; i++)
		fake_segment(&op, i);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	bf_assert_untouched(&b);
	bf_free(&b);
	fx_comm = fx_new_comm();
}
END_TEST

/* ---- outputs that are disposable ---- */

static uint32_t flags_of(enum placement p)
{
	struct buffers b = bf_new(p, BYTES, 1);
	struct fake_op op = bf_run(&b, 1, bf_mode(p));

	bf_free(&b);
	return op.sqe.flags;
}

START_TEST(output_policies_are_checked)
{
	fx_assert_fails(pcclSetOutputPolicy(NULL, pcclOutputKept), pcclInvalidArgument, "NULL");
	fx_assert_fails(pcclSetOutputPolicy(fx_comm, (pcclOutputPolicy_t)2), pcclInvalidArgument,
		"no pcclOutputPolicy_t 2");
	fx_assert_fails(
		pcclSetOutputPolicy(fx_comm, (pcclOutputPolicy_t)77), pcclInvalidArgument, "77");
	ck_assert(!(flags_of(RECV_REGISTERED) & SHM_SQE_OUT_DISPOSABLE));
	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	fx_assert_fails(pcclSetOutputPolicy(fx_comm, (pcclOutputPolicy_t)2), pcclInvalidArgument,
		"no pcclOutputPolicy_t 2");
	ck_assert(flags_of(RECV_REGISTERED) & SHM_SQE_OUT_DISPOSABLE);
	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputKept));
	ck_assert(!(flags_of(RECV_REGISTERED) & SHM_SQE_OUT_DISPOSABLE));
}
END_TEST

/* Only registered outputs are disposable, if they are not the operand as well. */
START_TEST(only_registered_separate_outputs_are_disposable)
{
	enum placement p = (enum placement)_i;

	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	ck_assert_int_eq((flags_of(p) & SHM_SQE_OUT_DISPOSABLE) != 0,
		p == RECV_REGISTERED || p == BOTH_REGISTERED);
	/* The policy belongs to the communicator and stays when the agent changes. */
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	ck_assert_int_eq((flags_of(p) & SHM_SQE_OUT_DISPOSABLE) != 0,
		p == RECV_REGISTERED || p == BOTH_REGISTERED);
}
END_TEST

/* The output may be damaged, but the operand stays, and the call can be repeated. */
START_TEST(failures_keep_operands)
{
	enum placement p = apart[_i / (2 * SHARES)];
	bool dies = _i / SHARES % 2;
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op;
	uint32_t n;

	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	n = share(&op, _i % SHARES);
	fake_begin(&op, SHM_RESULT_DIRECT, 3, SEGMENT);
	for (uint32_t k = 0; k < n; k++)
		fake_segment(&op, kth(&op, k));
	if (dies)
		fake_hang_up(fx_agent);
	else
		fake_end(&op, pcclRankConnectionLost, "the agent says that a peer died");
	bf_end_call(&call, pcclRankConnectionLost, "died");
	bf_assert_operand(&b);
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	ck_assert(op.sqe.flags & SHM_SQE_OUT_DISPOSABLE);
	fake_serve(&op, SHM_RESULT_DIRECT);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* Another peer of the host wants to keep its output, so the agent keeps this output, too. */
START_TEST(agent_may_keep_a_disposable_output)
{
	static const enum shm_result_mode modes[] = {SHM_RESULT_UNDO, SHM_RESULT_AREA};
	struct buffers b = bf_new(apart[_i / 2], BYTES, 1);
	struct bf_call call;
	struct fake_op op;

	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	fake_begin(&op, modes[_i % 2], 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs / 2; i++)
		fake_segment(&op, i);
	fake_end(&op, pcclRankConnectionLost, "a peer was lost");
	bf_end_call(&call, pcclRankConnectionLost, "lost");
	bf_assert_untouched(&b);
	bf_free(&b);
}
END_TEST

/* The agent has written the result directly into the output, and dies before the process notices.
 * The call still succeeds. */
START_TEST(a_direct_result_needs_no_area_after_the_agents_death)
{
	struct buffers b = bf_new(apart[_i], BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	fake_asked(fx_agent);
	h = bf_launch(&b, 5);
	op = fake_take(fx_agent);
	fake_begin(&op, SHM_RESULT_DIRECT, 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs; i++)
		fake_segment(&op, i);
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* ---- an agent that lies ---- */

enum lie { NOT_STAGED, NOT_REGISTERED, FLAGS_BEYOND, FLAGS_FAR_BEYOND, LIES };

START_TEST(a_wrong_description_of_the_result_fails_the_operation)
{
	enum lie lie = (enum lie)_i;
	enum placement p = lie == NOT_STAGED ? SEND_REGISTERED : STAGED;
	struct buffers b = bf_new(p, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 5);
	struct fake_op op = fake_take(fx_agent);

	fake_begin(&op, SHM_RESULT_AREA, 3, SEGMENT);
	for (uint32_t i = 0; i < op.plan.n_segs; i++)
		atomic_store(&op.flags[i], 1);
	if (lie == FLAGS_BEYOND)
		op.slot->flags_off_lo += 8192;
	if (lie == FLAGS_FAR_BEYOND)
		op.slot->flags_off_hi = UINT32_MAX;
	atomic_store_explicit(&op.slot->mode,
		lie == NOT_REGISTERED ? SHM_RESULT_DIRECT : SHM_RESULT_STAGED,
		memory_order_release);
	fake_end(&op, 0, "");
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclInternalError, "wrongly");
	bf_assert_untouched(&b);
	bf_free(&b);
}
END_TEST

Suite *result_mode_suite(void)
{
	Suite *s = suite_create("result_mode");
	TCase *tc = tcase_create("result_mode");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, results_are_taken_when_the_operation_is_done, 0, PLACES);
	tcase_add_loop_test(tc, results_of_several_rings_are_taken, 0, PLACES);
	tcase_add_loop_test(tc, blocking_calls_take_results_while_the_agent_works, 0, PLACES);
	tcase_add_loop_test(tc, segments_without_a_wake_are_taken_at_the_end, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, an_abort_restores_exchanged_segments, 0, STAGED_N * SHARES);
	tcase_add_loop_test(
		tc, the_death_of_the_agent_restores_exchanged_segments, 0, STAGED_N * SHARES);
	tcase_add_loop_test(
		tc, a_known_success_is_completed_after_the_agents_death, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, nothing_is_restored_if_nothing_was_exchanged, 0, STAGED_N);
	tcase_add_loop_test(
		tc, results_of_very_many_segments_are_taken_at_the_end, 0, STAGED_N * 2);
	tcase_add_loop_test(tc, destroying_leaves_buffers_unchanged, 0, STAGED_N);
	tcase_add_test(tc, output_policies_are_checked);
	tcase_add_loop_test(tc, only_registered_separate_outputs_are_disposable, 0, PLACEMENTS);
	tcase_add_loop_test(tc, failures_keep_operands, 0, APART_N * 2 * SHARES);
	tcase_add_loop_test(tc, agent_may_keep_a_disposable_output, 0, APART_N * 2);
	tcase_add_loop_test(tc, a_direct_result_needs_no_area_after_the_agents_death, 0, APART_N);
	tcase_add_loop_test(tc, a_wrong_description_of_the_result_fails_the_operation, 0, LIES);
	suite_add_tcase(s, tc);
	return s;
}
