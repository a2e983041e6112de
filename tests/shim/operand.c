/* SPDX-License-Identifier: MIT
 *
 * How operands get to the agent: the order of copying, and windows, which are used on a ring of one
 * host.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

/* ---- the order of copying ---- */

#define PIECE  ((size_t)256 * 1024) /* bytes that are copied at a time */
#define PIECES 16u                  /* four hosts with a chunk of four pieces each */

/* The operand cannot be read at first, so the test notices the access to each piece. */
static uint8_t *guarded;
static const struct shm_slot *watched; /* the slot is known before the operation */
static struct {
	unsigned piece;
	uint64_t done[2]; /* the progress that the agent could see at that time */
} touched[2 * PIECES];
static unsigned n_touched;

static void on_touch(int sig, siginfo_t *info, void *context)
{
	uintptr_t off = (uintptr_t)info->si_addr - (uintptr_t)guarded;
	unsigned piece = (unsigned)(off / PIECE);

	(void)context;
	if (off >= PIECES * PIECE || n_touched == 2 * PIECES) {
		/* NOLINT(cert-err33-c): the fault repeats and ends the process */
		signal(sig, SIG_DFL);
		return;
	}
	touched[n_touched].piece = piece;
	touched[n_touched].done[0] = atomic_load(&watched->in_done[0]);
	touched[n_touched].done[1] = atomic_load(&watched->in_done[1]);
	n_touched++;
	mprotect(guarded + piece * PIECE, PIECE, PROT_READ);
}

static void guard(struct buffers *b)
{
	struct sigaction sa = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	guarded = mmap(NULL, PIECES * PIECE, PROT_READ | PROT_WRITE, flags, -1, 0);
	ck_assert_ptr_ne(guarded, MAP_FAILED);
	memcpy(guarded, b->operand, b->bytes);
	b->send = guarded;
	ck_assert_int_eq(sigaction(SIGSEGV, &sa, NULL), 0);
}

/* Two cursors copy the operand in turn. The first begins at the chunk that is sent first, the
 * second behind that chunk. When the first has finished its chunk, the second continues to the end
 * of the operand and then from the beginning of the operand. */
START_TEST(operands_are_copied_by_two_cursors_in_turn)
{
	struct buffers b = bf_new(STAGED, PIECES * PIECE, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 99);
	struct fake_op op = fake_take(fx_agent);
	unsigned first, second, done[2] = {0, 0};

	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	watched = op.slot; /* the next operation uses this slot, too */
	guard(&b);
	for (uint32_t pos = 0; pos < 4; pos++) {
		fake_attrs(fx_agent, 4, pos);
		n_touched = 0;
		ck_assert_int_eq(mprotect(guarded, PIECES * PIECE, PROT_NONE), 0);
		h = bf_launch(&b, pos);
		op = fake_take(fx_agent);
		ck_assert_ptr_eq(op.slot, watched);
		fake_await_input(&op, b.bytes);
		first = (4 - pos) % 4 * 4;
		second = first + 4;
		ck_assert_uint_eq(op.sqe.in_start, first * PIECE);
		ck_assert_uint_eq(op.sqe.in_second, second * PIECE);
		ck_assert_uint_eq(n_touched, PIECES);
		done[0] = done[1] = 0;
		for (unsigned i = 0; i < PIECES; i++) {
			bool other = done[0] == 4 || done[1] < done[0];

			ck_assert_uint_eq(touched[i].piece,
				other ? (second + done[1]) % PIECES : first + done[0]);
			ck_assert_uint_eq(touched[i].done[0], done[0] * PIECE);
			ck_assert_uint_eq(touched[i].done[1], done[1] * PIECE);
			done[other]++;
		}
		ck_assert_int_eq(memcmp(op.in, b.operand, b.bytes), 0);
		fake_serve(&op, SHM_RESULT_STAGED);
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
		bf_assert_result(&b);
	}
	munmap(guarded, PIECES * PIECE);
	bf_free(&b);
}
END_TEST

/* ---- windows ---- */

#define WINDOW 16u
#define FROM   ((size_t)16 << 20)
#define SEGS   136u
/* every segment is shorter than the maximum */
#define BYTES ((size_t)SEGS * CC_PLAN_SEGMENT_MAX - 200077)

static struct fake_op begin(struct bf_call *call, struct buffers *b)
{
	struct fake_op op;

	bf_begin_call(call, b);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.window, WINDOW);
	ck_assert_uint_eq(op.sqe.in_start, 0);
	ck_assert_uint_eq(op.sqe.in_second, 0);
	ck_assert(!(op.sqe.flags & SHM_SQE_IN_REGISTERED));
	return op;
}

static void check_next(void)
{
	struct buffers b = bf_new(STAGED, FROM, 7);
	struct bf_call call;
	struct fake_op op = begin(&call, &b);

	fake_serve(&op, SHM_RESULT_AREA);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	bf_free(&b);
}

/* Checks that the window holds the segments before `fed`, and nothing else. */
static void expect_fed(const struct fake_op *op, const struct buffers *b, uint32_t fed)
{
	struct cc_span last = cc_plan_segment(&op->plan, fed - 1);

	ck_assert_uint_eq(atomic_load(&op->slot->in_done[0]), 0);
	ck_assert_uint_eq(atomic_load(&op->slot->in_done[1]), last.off + last.len);
	for (uint32_t seg = fed - WINDOW; seg < fed; seg++) {
		struct cc_span span = cc_plan_segment(&op->plan, seg);
		const uint8_t *dst = op->in + shm_window_off(WINDOW, seg);

		ck_assert_msg(memcmp(dst, b->operand + span.off, span.len) == 0,
			"segment %u of %u is not in its place", seg, fed);
		/* Lengths of segments differ by at most one byte, so one byte of an earlier segment
		 * may follow. */
		ck_assert_msg(
			dst[span.len + 1] == 0 && memcmp(dst + span.len + 1, dst + span.len + 2,
							  CC_PLAN_SEGMENT_MAX - span.len - 2) == 0,
			"other bytes follow segment %u", seg);
	}
}

/* In each group of eight, segments become final in this order. A later segment must wait for the
 * earlier ones. */
static const uint32_t order[] = {3, 1, 0, 2, 7, 6, 5, 4};

/* At each step, the shim fills the window as far as it has room, and not further. */
START_TEST(a_window_is_filled_as_far_as_it_has_room)
{
	struct buffers b = bf_new((enum placement)_i, BYTES, 1);
	bool final[SEGS] = {false};
	struct bf_call call;
	struct fake_op op = begin(&call, &b);
	uint32_t n_final = 0, fed;

	fake_begin(&op, SHM_RESULT_AREA, 1, CC_PLAN_SEGMENT_MAX);
	ck_assert_uint_eq(op.plan.n_segs, SEGS);
	fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
	expect_fed(&op, &b, WINDOW);
	for (uint32_t i = 0; i < SEGS; i++) {
		uint32_t seg = i / 8 * 8 + order[i % 8];

		fake_segment(&op, seg);
		final[seg] = true;
		while (n_final < SEGS && final[n_final])
			n_final++;
		fed = n_final + WINDOW < SEGS ? n_final + WINDOW : SEGS;
		fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
		expect_fed(&op, &b, fed);
	}
	fake_end(&op, 0, NULL);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

START_TEST(window_calls_succeed_while_the_agent_works)
{
	static const struct {
		enum placement p;
		enum shm_result_mode mode;
	} places[] = {{STAGED, SHM_RESULT_AREA}, {STAGED_IN_PLACE, SHM_RESULT_AREA},
		{RECV_REGISTERED, SHM_RESULT_AREA}, {RECV_REGISTERED, SHM_RESULT_DIRECT}};
	static const size_t sizes[] = {FROM, FROM + 1, BYTES};
	enum shm_result_mode mode = places[_i].mode;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffers b = bf_new(places[_i].p, sizes[i], i);

		bf_run_blocking(&b, mode);
		bf_free(&b);
	}
}
END_TEST

/* An agent that waits for input asks for the bell. */
START_TEST(new_input_in_a_window_rings_the_bell)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b);
	struct cc_span last;

	fake_begin(&op, SHM_RESULT_AREA, 1, CC_PLAN_SEGMENT_MAX);
	for (uint32_t i = 0; i < SEGS; i++) {
		fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
		atomic_store(&op.slot->in_want, 1);
		fake_segment(&op, i);
		if (i + WINDOW >= SEGS)
			continue;
		last = cc_plan_segment(&op.plan, i + WINDOW);
		fake_await_input(&op, last.off + last.len);
	}
	fake_end(&op, 0, NULL);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

enum { ABORT = 0, DEATH, ENDS };

START_TEST(failed_window_calls_leave_buffers_unchanged)
{
	static const uint32_t finals[] = {0, 5, SEGS / 2, SEGS};
	enum placement p = (enum placement)(_i / (ENDS * 4));
	struct buffers b = bf_new(p, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b);

	fake_begin(&op, SHM_RESULT_AREA, 1, CC_PLAN_SEGMENT_MAX);
	for (uint32_t i = 0; i < finals[_i % 4]; i++) {
		struct cc_span span = cc_plan_segment(&op.plan, i);

		fake_await_input(&op, span.off + span.len);
		fake_segment(&op, i);
	}
	fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
	if (_i / 4 % ENDS == ABORT)
		fake_end(&op, pcclRankConnectionLost, "the agent says that a peer died");
	else
		fake_hang_up(fx_agent);
	bf_end_call(&call, pcclRankConnectionLost, "died");
	bf_assert_untouched(&b);
	check_next();
	bf_free(&b);
}
END_TEST

/* The first operation ends before the agent has begun it. In the second operation the agent dies
 * after other hosts have learned of the success. */
START_TEST(window_calls_can_end_before_the_start_and_after_a_death)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b);

	fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
	fake_end(&op, pcclRankConnectionLost, "the ring has changed since the call: call again");
	bf_end_call(&call, pcclRankConnectionLost, "call again");
	bf_assert_untouched(&b);
	op = begin(&call, &b);
	fake_begin(&op, SHM_RESULT_AREA, 1, CC_PLAN_SEGMENT_MAX);
	for (uint32_t i = 0; i < SEGS; i++) {
		struct cc_span span = cc_plan_segment(&op.plan, i);

		fake_await_input(&op, span.off + span.len);
		fake_segment(&op, i);
	}
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	check_next();
	bf_free(&b);
}
END_TEST

static uint32_t window_of_call(enum placement p, size_t bytes)
{
	struct buffers b = bf_new(p, bytes, 1);
	struct bf_call call;
	struct fake_op op;

	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_serve(&op, bf_mode(p));
	bf_end_call(&call, pcclSuccess, "");
	bf_assert_result(&b);
	bf_free(&b);
	return op.sqe.window;
}

START_TEST(only_large_blocking_calls_on_one_host_use_windows)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	ck_assert_uint_eq(window_of_call(STAGED, FROM), WINDOW);
	ck_assert_uint_eq(window_of_call(STAGED, FROM - 1), 0);
	ck_assert_uint_eq(window_of_call(SEND_REGISTERED, FROM), 0);
	ck_assert_uint_eq(window_of_call(REGISTERED_IN_PLACE, FROM), 0);
	/* The caller's operand may be gone when the operation is awaited. */
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.window, 0);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	fake_attrs(fx_agent, 2, 1);
	ck_assert_uint_eq(window_of_call(STAGED, FROM), 0);
	fake_attrs(fx_agent, 1, 0);
	ck_assert_uint_eq(window_of_call(STAGED, FROM), WINDOW);
	bf_free(&b);
}
END_TEST

/* ---- an agent that lies ---- */

static const struct {
	enum shm_result_mode mode;
	uint32_t hosts, segment_max;
	struct cc_shares shares;
} rings[] = {{SHM_RESULT_AREA, 2, CC_PLAN_SEGMENT_MAX, {{0}}}, {SHM_RESULT_AREA, 1, 65536, {{0}}},
	{SHM_RESULT_AREA, 3, CC_PLAN_SEGMENT_MIN, {{0}}},
	{SHM_RESULT_AREA, 1, 2 * CC_PLAN_SEGMENT_MAX, {{0}}},
	{SHM_RESULT_STAGED, 1, CC_PLAN_SEGMENT_MAX, {{0}}},
	/* As many segments as the window expects, but the first ones are twice as long. */
	{SHM_RESULT_AREA, 1, 2 * CC_PLAN_SEGMENT_MAX, {{65535, 1}}}};

enum { RINGS = sizeof rings / sizeof *rings };

/* A window is made for one ring, and is too small for a result. If the agent describes any other
 * ring or mode, the operation fails, whether the caller is awake or asleep. */
START_TEST(a_window_call_fails_if_the_agent_names_another_ring)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	struct bf_call call;
	struct fake_op op = begin(&call, &b);

	if (_i % 2)
		fake_await_asleep(&op, SHM_WAIT_SEGMENTS);
	op.shares = rings[_i / 2].shares;
	fake_begin(&op, SHM_RESULT_AREA, rings[_i / 2].hosts, rings[_i / 2].segment_max);
	ck_assert(op.shares.of[0] == 0 || op.plan.n_segs == SEGS);
	for (uint32_t i = 0; i < op.plan.n_segs; i++)
		atomic_store(&op.flags[i], 1);
	atomic_store_explicit(&op.slot->mode, rings[_i / 2].mode, memory_order_release);
	fake_end(&op, 0, NULL);
	bf_end_call(&call, pcclInternalError, "the agent described the result wrongly");
	bf_assert_untouched(&b);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed,
		"cannot take the result of an operation that has succeeded on all other peers");
	bf_free(&b);
}
END_TEST

Suite *operand_suite(void)
{
	Suite *s = suite_create("operand");
	TCase *tc = tcase_create("operand");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, operands_are_copied_by_two_cursors_in_turn);
	tcase_add_loop_test(
		tc, a_window_is_filled_as_far_as_it_has_room, STAGED, STAGED_IN_PLACE + 1);
	tcase_add_loop_test(tc, window_calls_succeed_while_the_agent_works, 0, 4);
	tcase_add_test(tc, new_input_in_a_window_rings_the_bell);
	tcase_add_loop_test(tc, failed_window_calls_leave_buffers_unchanged, 0, 2 * ENDS * 4);
	tcase_add_test(tc, window_calls_can_end_before_the_start_and_after_a_death);
	tcase_add_test(tc, only_large_blocking_calls_on_one_host_use_windows);
	tcase_add_loop_test(tc, a_window_call_fails_if_the_agent_names_another_ring, 0, 2 * RINGS);
	suite_add_tcase(s, tc);
	return s;
}
