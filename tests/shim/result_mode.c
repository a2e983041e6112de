/* SPDX-License-Identifier: MIT
 *
 * Results that do not come from an area: those that stand where the staged operand was, and change
 * places with what the receive buffer holds (SHM_RESULT_STAGED), and those that the agent writes to
 * receive buffers at once (SHM_RESULT_DIRECT, pcclSetOutputPolicy).
 */
#include <pthread.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

enum { BYTES = 100000, SEGMENT = CC_PLAN_SEGMENT_MIN };

/* Staged operands, whose results stand in their place. */
static const enum placement staged[] = {STAGED, STAGED_IN_PLACE, RECV_REGISTERED};
/* Outputs that are apart. */
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

/* The communicator still works, and its next result is right wherever it comes from. */
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

/* Nobody looks before it is done. */
START_TEST(results_that_are_all_there)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffers b = bf_new(places[_i].p, sizes[i], i);

		bf_run(&b, i, places[_i].mode);
		bf_free(&b);
	}
}
END_TEST

START_TEST(calls_that_meet_a_working_agent)
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

/* ---- exchanges ---- */

/* The k-th segment to become final; not in the order of the buffer, as it is in a ring. */
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

/* So many become final and are taken, one by one: old contents are where the results were. */
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

/* How many of them, of the segments of a plan. */
static uint32_t share(const struct fake_op *op, int i)
{
	struct cc_plan plan;

	ck_assert_int_eq(cc_plan_init(&plan, op->bytes, 1, 3, SEGMENT), 0);
	return i == 0 ? 0 : i == 1 ? 1 : i == 2 ? plan.n_segs / 2 : plan.n_segs;
}

enum { SHARES = 4 };

static struct fake_op begin(struct bf_call *call, struct buffers *b, int how_many)
{
	struct fake_op op;

	bf_begin_call(call, b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	play(&op, b, share(&op, how_many));
	return op;
}

START_TEST(the_rest_comes_at_the_end)
{
	enum placement p = staged[_i / SHARES];
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b, _i % SHARES);

	/* Flags nobody is woken for. */
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

START_TEST(an_abort_gives_all_back)
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

/* The dead agent leaves partial sums where no flag is set. */
START_TEST(a_dead_agent_gives_all_back)
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

/* It dies when all have the result: what was not taken yet is. */
START_TEST(a_dead_agent_leaves_the_result)
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

/* Nobody has looked by then: nothing was exchanged, and nothing has to be restored. */
START_TEST(a_dead_agent_unseen)
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

/* More segments than are followed one by one: taken at the end, or not at all. */
START_TEST(segments_beyond_number)
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

/* Given up in the middle. */
START_TEST(destroying_leaves_buffers_alone)
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

START_TEST(policies_are_checked)
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

/* Only what is registered, and not the operand as well. */
START_TEST(disposable_is_what_is_apart)
{
	enum placement p = (enum placement)_i;

	fx_assert_succeeds(pcclSetOutputPolicy(fx_comm, pcclOutputDisposable));
	ck_assert_int_eq((flags_of(p) & SHM_SQE_OUT_DISPOSABLE) != 0,
		p == RECV_REGISTERED || p == BOTH_REGISTERED);
	/* It is the communicator's, whichever agent there is. */
	fake_hang_up(fx_agent);
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	ck_assert_int_eq((flags_of(p) & SHM_SQE_OUT_DISPOSABLE) != 0,
		p == RECV_REGISTERED || p == BOTH_REGISTERED);
}
END_TEST

/* Whatever becomes of the output, the operand stays, and the call can be repeated. */
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

/* Others of the host want theirs kept, so the agent keeps this one, too. */
START_TEST(disposable_and_kept_all_the_same)
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

/* The agent has the result in its place and dies, unseen: nothing is missing. */
START_TEST(outputs_need_no_area)
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

START_TEST(lies_cost_the_operation_alone)
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
	tcase_add_loop_test(tc, results_that_are_all_there, 0, PLACES);
	tcase_add_loop_test(tc, calls_that_meet_a_working_agent, 0, PLACES);
	tcase_add_loop_test(tc, the_rest_comes_at_the_end, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, an_abort_gives_all_back, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, a_dead_agent_gives_all_back, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, a_dead_agent_leaves_the_result, 0, STAGED_N * SHARES);
	tcase_add_loop_test(tc, a_dead_agent_unseen, 0, STAGED_N);
	tcase_add_loop_test(tc, segments_beyond_number, 0, STAGED_N * 2);
	tcase_add_loop_test(tc, destroying_leaves_buffers_alone, 0, STAGED_N);
	tcase_add_test(tc, policies_are_checked);
	tcase_add_loop_test(tc, disposable_is_what_is_apart, 0, PLACEMENTS);
	tcase_add_loop_test(tc, failures_keep_operands, 0, APART_N * 2 * SHARES);
	tcase_add_loop_test(tc, disposable_and_kept_all_the_same, 0, APART_N * 2);
	tcase_add_loop_test(tc, outputs_need_no_area, 0, APART_N);
	tcase_add_loop_test(tc, lies_cost_the_operation_alone, 0, LIES);
	suite_add_tcase(s, tc);
	return s;
}
