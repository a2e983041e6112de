/* SPDX-License-Identifier: MIT
 *
 * pcclAllReduceAsync returns before a large operand is copied. These tests are about events that
 * occur while a thread of the library copies the operand.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

#define BYTES ((size_t)4 << 20)

/* ---- an operand that cannot be read before the test opens its gate */

static struct {
	uint8_t *base;
	int touched[2], go[2]; /* pipes: the operand was accessed; the access may go on */
} gate;

static void on_touch(int sig, siginfo_t *info, void *context)
{
	uintptr_t off = (uintptr_t)info->si_addr - (uintptr_t)gate.base;
	char byte = 0;

	(void)context;
	if (off >= BYTES || write(gate.touched[1], &byte, 1) != 1 ||
		read(gate.go[0], &byte, 1) != 1)
		/* NOLINT(cert-err33-c): the fault repeats and ends the process */
		signal(sig, SIG_DFL);
	mprotect(gate.base, BYTES, PROT_READ | PROT_WRITE);
}

/* Puts the operand behind the gate, and also the result if the operation is in place. */
static void shut(struct buffers *b)
{
	struct sigaction sa = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	ck_assert_int_eq(pipe(gate.touched), 0);
	ck_assert_int_eq(pipe(gate.go), 0);
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	gate.base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	ck_assert_ptr_ne(gate.base, MAP_FAILED);
	memcpy(gate.base, b->operand, BYTES);
	if (b->recv == b->send)
		b->recv = gate.base;
	b->send = gate.base;
	ck_assert_int_eq(sigaction(SIGSEGV, &sa, NULL), 0);
	ck_assert_int_eq(mprotect(gate.base, BYTES, PROT_NONE), 0);
}

static void await_touch(void)
{
	char byte;

	ck_assert_int_eq(read(gate.touched[0], &byte, 1), 1);
}

static void unlock_gate(void)
{
	ck_assert_int_eq(write(gate.go[1], "", 1), 1);
}

static void end_gate(struct buffers *b)
{
	munmap(gate.base, BYTES);
	bf_free(b);
}

static enum placement in_or_out(int i)
{
	return i ? STAGED_IN_PLACE : STAGED;
}

/* ---- awaiting in a thread */

struct await {
	pcclAsyncReduceOp_t handle;
	pcclResult_t result;
	char text[600];
	struct buffers *b;
	pthread_t thread;
	int launched[2];
};

static void *launch_and_await(void *arg)
{
	struct await *w = arg;

	w->handle = bf_launch(w->b, 1);
	ck_assert_int_eq(write(w->launched[1], "", 1), 1);
	w->result = pcclAwaitAsyncReduce(&w->handle, NULL);
	snprintf(w->text, sizeof w->text, "%s", pcclGetLastError());
	return NULL;
}

/* Returns when the operation has been launched. The thread then awaits it. */
static void begin_await(struct await *w, struct buffers *b)
{
	char byte;

	w->b = b;
	ck_assert_int_eq(pipe(w->launched), 0);
	ck_assert_int_eq(pthread_create(&w->thread, NULL, launch_and_await, w), 0);
	ck_assert_int_eq(read(w->launched[0], &byte, 1), 1);
}

static void end_await(struct await *w, pcclResult_t result, const char *words)
{
	pthread_join(w->thread, NULL);
	ck_assert_int_eq(w->result, result);
	ck_assert_msg(
		strstr(w->text, words) != NULL, "\"%s\" does not contain \"%s\"", w->text, words);
}

/* ---- tests */

START_TEST(calls_return_before_the_operand_is_read)
{
	struct buffers b = bf_new(in_or_out(_i), BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	shut(&b);
	h = bf_launch(&b, 1);
	await_touch();
	op = fake_take(fx_agent);
	ck_assert_uint_eq(shm_slot_copied(op.slot), 0);
	unlock_gate();
	fake_await_input(&op, BYTES);
	fake_serve(&op, _i ? SHM_RESULT_STAGED : SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	end_gate(&b);
}
END_TEST

/* The shim asks for the staging memory only after the call has returned. */
START_TEST(calls_return_although_the_agent_does_not_answer)
{
	struct buffers b = bf_new(in_or_out(_i), BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_HOLD, 0, NULL);
	h = bf_launch(&b, 1);
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	fake_await_seen(fx_agent, WL_REGION_ALLOC, 2); /* the first one was for the buffers */
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_ANSWER, 0, NULL);
	fake_release(fx_agent);
	op = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* Large operations are submitted one after the other, in the order of the calls. Small operations
 * do not wait for large ones. The test awaits all of them in another order. */
START_TEST(large_operations_are_submitted_in_the_order_of_the_calls)
{
	struct buffers a = bf_new(STAGED, BYTES, 1), b = bf_new(STAGED, BYTES, 2),
		       c = bf_new(STAGED_IN_PLACE, 2 * BYTES, 3), small = bf_new(STAGED, 100, 4);
	pcclAsyncReduceOp_t ha, hb, hc, hs;
	struct fake_op oa, ob, oc, os;

	shut(&a);
	ha = bf_launch(&a, 1);
	hb = bf_launch(&b, 2);
	hc = bf_launch(&c, 3);
	oa = fake_take(fx_agent);
	await_touch();
	hs = bf_launch(&small, 4);
	os = fake_take(fx_agent);
	ck_assert_uint_eq(os.sqe.tag, 4);
	fake_serve(&os, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hs, NULL));
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	unlock_gate();
	ob = fake_take(fx_agent);
	ck_assert_uint_eq(ob.sqe.tag, 2);
	ck_assert_uint_eq(shm_slot_copied(oa.slot), BYTES);
	oc = fake_take(fx_agent);
	ck_assert_uint_eq(oc.sqe.tag, 3);
	fake_serve(&oc, SHM_RESULT_STAGED);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hc, NULL));
	fake_serve(&ob, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hb, NULL));
	fake_serve(&oa, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&ha, NULL));
	bf_assert_result(&a);
	bf_assert_result(&b);
	bf_assert_result(&c);
	bf_assert_result(&small);
	bf_free(&small);
	bf_free(&c);
	bf_free(&b);
	end_gate(&a);
}
END_TEST

static void *take_two(void *arg)
{
	struct fake_op *ops = arg;

	for (unsigned i = 0; i < 2; i++) {
		ops[i] = fake_take(fx_agent);
		fake_serve(&ops[i], SHM_RESULT_AREA);
	}
	return NULL;
}

/* The library's thread is busy for another communicator. A caller that awaits does not wait for
 * this thread. */
START_TEST(a_caller_that_awaits_copies_its_operands_itself)
{
	struct buffers a = bf_new(STAGED, BYTES, 1), b = bf_new(STAGED, BYTES, 2),
		       c = bf_new(STAGED, BYTES, 3);
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 1);
	pcclAsyncReduceOp_t ha, hb, hc;
	pcclComm_t *other = fx_comm;
	struct fake_op oa, ops[2];
	pthread_t t;

	shut(&a);
	ha = bf_launch(&a, 1);
	oa = fake_take(fx_agent);
	await_touch();
	fx_comm = fx_new_comm();
	ck_assert_int_eq(pcclConnect(fx_comm), pcclSuccess);
	ck_assert_int_eq(pthread_create(&t, NULL, take_two, ops), 0);
	fx_assert_succeeds(pcclAllReduceAsync(b.send, b.recv, &d, fx_comm, &hb));
	d.tag = 2;
	fx_assert_succeeds(pcclAllReduceAsync(c.send, c.recv, &d, fx_comm, &hc));
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hc, NULL));
	pthread_join(t, NULL);
	ck_assert_uint_eq(ops[0].sqe.tag, 1);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hb, NULL));
	bf_assert_result(&b);
	bf_assert_result(&c);
	ck_assert_int_eq(pcclDestroyCommunicator(fx_comm), pcclSuccess);
	fx_comm = other;
	unlock_gate();
	fake_serve(&oa, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&ha, NULL));
	bf_assert_result(&a);
	bf_free(&c);
	bf_free(&b);
	end_gate(&a);
}
END_TEST

enum { ABORT = 0, DEATH, INTERRUPT, ENDS };

/* The operation ends while its operand is being copied. The call returns only when no thread reads
 * the buffers any more. Then the buffers are as before. */
START_TEST(an_operation_that_ends_early_waits_for_its_copy)
{
	static const struct {
		pcclResult_t code;
		const char *words;
	} ends[ENDS] = {{pcclRankConnectionLost, "the agent says that a peer died"},
		{pcclRankConnectionLost, "died"}, {pcclInterrupted, "pcclInterrupt"}};
	struct buffers b = bf_new(in_or_out(_i % 2), BYTES, 1);
	struct await w = {0};
	struct fake_op op;

	shut(&b);
	begin_await(&w, &b);
	op = fake_take(fx_agent);
	await_touch();
	if (_i / 2 == ABORT)
		fake_end(&op, pcclRankConnectionLost, ends[ABORT].words);
	else if (_i / 2 == DEATH)
		fake_hang_up(fx_agent);
	else
		ck_assert_int_eq(pcclInterrupt(fx_comm), pcclSuccess);
	unlock_gate();
	end_await(&w, ends[_i / 2].code, ends[_i / 2].words);
	ck_assert(shm_slot_copied(op.slot) <= BYTES);
	bf_assert_untouched(&b);
	end_gate(&b);
}
END_TEST

/* The agent has no memory for the operand. The operation is submitted as a refusal. */
START_TEST(an_operation_without_memory_fails_with_the_reason)
{
	struct buffers b = bf_new(in_or_out(_i), BYTES, 1);
	pcclAsyncReduceOp_t h;

	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_REFUSE, pcclOutOfMemory, "mem_per_user is 1");
	h = bf_launch(&b, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclOutOfMemory, "mem_per_user is 1");
	bf_assert_untouched(&b);
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_ANSWER, 0, NULL);
	bf_free(&b);
}
END_TEST

/* An operation fails if the agent dies before it has seen the submission. */
START_TEST(an_unsubmitted_operation_fails_if_the_agent_dies)
{
	struct buffers b = bf_new(in_or_out(_i), BYTES, 1);
	pcclAsyncReduceOp_t h;

	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_HANG_UP_ONCE, 0, NULL);
	h = bf_launch(&b, 1);
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
	bf_assert_untouched(&b);
	bf_run(&b, 1, SHM_RESULT_AREA);
	bf_free(&b);
}
END_TEST

static void *let_in(void *arg)
{
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	unlock_gate();
	return arg;
}

/* When the communicator is gone, the caller owns its buffers again. */
START_TEST(destroying_waits_for_the_copy)
{
	struct buffers a = bf_new(in_or_out(_i), BYTES, 1), b = bf_new(STAGED, BYTES, 2);
	pthread_t t;

	shut(&a);
	bf_launch(&a, 1);
	bf_launch(&b, 2);
	await_touch();
	ck_assert_int_eq(pthread_create(&t, NULL, let_in, NULL), 0);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	pthread_join(t, NULL);
	bf_assert_untouched(&a);
	bf_assert_untouched(&b);
	bf_free(&b);
	end_gate(&a);
	fx_comm = fx_new_comm();
}
END_TEST

/* A forked child has none of its parent's operations, and can initialize the library itself. */
START_TEST(a_child_forked_during_a_copy_has_no_operations)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	int status;
	pid_t child;

	shut(&b);
	h = bf_launch(&b, 1);
	await_touch();
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		bool ok = pcclAwaitAsyncReduce(&h, NULL) == pcclInvalidUsage &&
			  pcclInit() == pcclSuccess &&
			  pcclAwaitAsyncReduce(&h, NULL) == pcclInvalidUsage;

		_exit(ok ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	unlock_gate();
	op = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	end_gate(&b);
}
END_TEST

Suite *later_suite(void)
{
	Suite *s = suite_create("later");
	TCase *tc = tcase_create("later");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, calls_return_before_the_operand_is_read, 0, 2);
	tcase_add_loop_test(tc, calls_return_although_the_agent_does_not_answer, 0, 2);
	tcase_add_test(tc, large_operations_are_submitted_in_the_order_of_the_calls);
	tcase_add_test(tc, a_caller_that_awaits_copies_its_operands_itself);
	tcase_add_loop_test(tc, an_operation_that_ends_early_waits_for_its_copy, 0, 2 * ENDS);
	tcase_add_loop_test(tc, an_operation_without_memory_fails_with_the_reason, 0, 2);
	tcase_add_loop_test(tc, an_unsubmitted_operation_fails_if_the_agent_dies, 0, 2);
	tcase_add_loop_test(tc, destroying_waits_for_the_copy, 0, 2);
	tcase_add_test(tc, a_child_forked_during_a_copy_has_no_operations);
	suite_add_tcase(s, tc);
	return s;
}
