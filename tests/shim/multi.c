/* SPDX-License-Identifier: MIT
 *
 * pcclAllReduceMultipleWithRetry: windows, losses, and the errors that end the call.
 */
#include <pthread.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

enum { OPS = 7, BYTES = 3000, ALL = OPS * BYTES, TWICE = 2 * ALL };

/* The operations of a call. The thread that owns the communicator makes the call, and another
 * thread plays the agent. */
struct batch {
	struct buffers b[OPS];
	pcclReduceOpDescriptor_t d[OPS];
};

static void make(struct batch *t)
{
	for (unsigned i = 0; i < OPS; i++) {
		t->b[i] = bf_new((enum placement)(i % PLACEMENTS), BYTES, i);
		t->d[i] = (pcclReduceOpDescriptor_t){
			t->b[i].send, t->b[i].recv, bf_descriptor(BYTES, 100 + i)};
	}
}

static void release(struct batch *t)
{
	for (unsigned i = 0; i < OPS; i++)
		bf_free(&t->b[i]);
}

static pthread_t play(void *(*script)(void *), void *arg)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, script, arg), 0);
	return t;
}

static struct fake_op take(uint64_t tag, uint64_t generation)
{
	struct fake_op op = fake_take(fx_agent);

	ck_assert_uint_eq(op.sqe.tag, 100 + tag);
	ck_assert_uint_eq(op.sqe.generation, generation);
	return op;
}

static void serve(struct fake_op *op)
{
	fake_serve(op, bf_mode((enum placement)((op->sqe.tag - 100) % PLACEMENTS)));
}

/* Fails the operation when half of its result is there. */
static void lose(struct fake_op *op)
{
	fake_begin(op, bf_mode((enum placement)((op->sqe.tag - 100) % PLACEMENTS)), 3,
		CC_PLAN_SEGMENT_MIN);
	fake_await_input(op, op->bytes);
	for (uint32_t i = 0; i < op->plan.n_segs / 2; i++)
		fake_segment(op, i);
	fake_end(op, pcclRankConnectionLost, "somebody was lost");
}

/* The call has a window of three, which moves on when its oldest operation has ended. */
static void *window_of_three(void *arg)
{
	struct fake_op op[OPS];

	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		op[i] = take(i, 0);
	for (unsigned i = 0; i < OPS; i++) {
		ck_assert_uint_eq(fake_waiting(fx_agent), 0);
		serve(&op[i]);
		if (i + 3 < OPS)
			op[i + 3] = take(i + 3, 0);
	}
	return NULL;
}

START_TEST(a_window_moves_on_when_its_oldest_operation_ends)
{
	pcclReduceInfo_t info = {0};
	struct batch t;
	pthread_t agent;

	make(&t);
	agent = play(window_of_three, NULL);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, &info, 3));
	pthread_join(agent, NULL);
	for (unsigned i = 0; i < OPS; i++)
		bf_assert_result(&t.b[i]);
	ck_assert_uint_eq(info.local_world_size, 2);
	ck_assert_uint_eq(info.tx_bytes, ALL);
	ck_assert_uint_eq(info.rx_bytes, TWICE);
	release(&t);
}
END_TEST

/* ThreadSanitizer cannot see the order of these accesses, because library and agent share the
 * memory at two addresses. */
static void check_between(const struct batch *t)
{
#ifndef __SANITIZE_THREAD__
	bf_assert_result(&t->b[0]);
	bf_assert_result(&t->b[2]);
	bf_assert_untouched(&t->b[1]);
	bf_assert_untouched(&t->b[3]);
#else
	(void)t;
#endif
}

/* Operations 0 and 2 succeed, 1 and 3 are lost. Operation 4 was launched before the loss and is
 * lost, too. Operations 5 and 6 are launched in the second pass. */
static void *lose_some(void *arg)
{
	const struct batch *t = arg;
	struct fake_op op[OPS];

	for (unsigned i = 0; i < 4; i++)
		op[i] = take(i, 0);
	serve(&op[0]);
	op[4] = take(4, 0);
	fake_generation(fx_agent, 1);
	lose(&op[1]);
	serve(&op[2]);
	lose(&op[3]);
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	lose(&op[4]);
	/* The operations of the second pass have the new generation, and their buffers are as
	 * before the first pass. */
	op[1] = take(1, 1);
	op[3] = take(3, 1);
	op[4] = take(4, 1);
	op[5] = take(5, 1);
	check_between(t);
	fake_generation(fx_agent, 2);
	lose(&op[1]);
	serve(&op[5]);
	serve(&op[4]);
	lose(&op[3]);
	op[1] = take(1, 2);
	op[3] = take(3, 2);
	op[6] = take(6, 2);
	serve(&op[6]);
	serve(&op[3]);
	serve(&op[1]);
	return NULL;
}

START_TEST(lost_operations_are_repeated_in_order)
{
	pcclReduceInfo_t info = {0};
	struct batch t;
	pthread_t agent;

	make(&t);
	agent = play(lose_some, &t);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, &info, 4));
	pthread_join(agent, NULL);
	for (unsigned i = 0; i < OPS; i++)
		bf_assert_result(&t.b[i]);
	ck_assert_uint_eq(info.tx_bytes, ALL);
	release(&t);
}
END_TEST

static const struct {
	uint32_t code;
	const char *text;
} ends[] = {
	{pcclTooFewPeers, "alone in the group"},
	{pcclInvalidUsage, "removed from the run"},
	{pcclMasterConnectionFailed, "the master is gone"},
};

static void *end_it(void *arg)
{
	struct fake_op op[4];
	int i = *(const int *)arg;

	for (unsigned k = 0; k < 4; k++)
		op[k] = take(k, 0);
	/* The operations do not end in the order in which they are awaited. */
	fake_end(&op[3], pcclInternalError, "a later one");
	serve(&op[1]);
	fake_end(&op[2], ends[i].code, ends[i].text);
	lose(&op[0]);
	return NULL;
}

START_TEST(other_errors_end_the_whole_call)
{
	pcclReduceInfo_t info = {77, 77, 77};
	struct batch t;
	pthread_t agent;

	make(&t);
	agent = play(end_it, &_i);
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, &info, 4), ends[_i].code,
		ends[_i].text);
	ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "descriptors[2]"));
	pthread_join(agent, NULL);
	ck_assert_uint_eq(info.tx_bytes, 77);
	bf_assert_untouched(&t.b[0]);
	bf_assert_result(&t.b[1]);
	for (unsigned i = 2; i < OPS; i++)
		bf_assert_untouched(&t.b[i]);
	/* No operation is left. */
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	release(&t);
}
END_TEST

/* The peers disagree on operation 2. The operations after it are still launched, and repeated if
 * lost. */
static void *disagree(void *arg)
{
	struct fake_op op[OPS];

	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		op[i] = take(i, 0);
	fake_end(&op[2], pcclInvalidArgument, "counts differ");
	serve(&op[0]);
	serve(&op[1]);
	for (unsigned i = 3; i < 6; i++)
		op[i] = take(i, 0);
	fake_generation(fx_agent, 1);
	lose(&op[3]);
	fake_end(&op[4], pcclInvalidArgument, "types differ");
	serve(&op[5]);
	op[3] = take(3, 1);
	op[6] = take(6, 1);
	serve(&op[3]);
	serve(&op[6]);
	return NULL;
}

START_TEST(a_disagreement_does_not_stop_the_other_operations)
{
	struct batch t;
	pthread_t agent;

	make(&t);
	agent = play(disagree, NULL);
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, NULL, 3),
		pcclInvalidArgument, "descriptors[2]: counts differ");
	pthread_join(agent, NULL);
	for (unsigned i = 0; i < OPS; i++)
		if (i == 2 || i == 4)
			bf_assert_untouched(&t.b[i]);
		else
			bf_assert_result(&t.b[i]);
	release(&t);
}
END_TEST

static void *serve_all_but_two(void *arg)
{
	struct fake_op op;

	for (unsigned i = 0; i < OPS; i++) {
		if (i == 2)
			continue;
		op = take(i, 0);
		serve(&op);
	}
	return arg;
}

/* The other peers get the error of the operation with the wrong descriptor. The call carries out
 * all other operations. */
START_TEST(a_wrong_descriptor_does_not_stop_the_other_operations)
{
	struct batch t;
	pthread_t agent;

	make(&t);
	t.d[2].descriptor.op = (pcclRedOp_t)5;
	agent = play(serve_all_but_two, NULL);
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, NULL, 3),
		pcclInvalidArgument, "descriptors[2]: op: there is no operation 5");
	pthread_join(agent, NULL);
	for (unsigned i = 0; i < OPS; i++)
		if (i == 2)
			bf_assert_untouched(&t.b[i]);
		else
			bf_assert_result(&t.b[i]);
	release(&t);
}
END_TEST

START_TEST(arguments_are_checked_first)
{
	struct batch t;
	pcclComm_t *c = fx_new_comm();

	make(&t);
	fx_assert_fails(pcclAllReduceMultipleWithRetry(NULL, 1, fx_comm, NULL, 1),
		pcclInvalidArgument, "descriptors");
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, NULL, 0),
		pcclInvalidArgument, "max_in_flight");
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, NULL, NULL, 1),
		pcclInvalidArgument, "NULL");
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, c, NULL, 1), pcclInvalidUsage,
		"pcclConnect");
	t.d[5].descriptor.tag = 103;
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d, OPS, fx_comm, NULL, 2),
		pcclInvalidArgument, "descriptors[5]: tag 103 is already that of descriptors[3]");
	t.d[5].descriptor.tag = 105;
	/* A missing buffer is an error in one operation. The other peers get it with the tag of
	 * this operation. */
	t.d[4].recvbuf = NULL;
	fx_assert_fails(pcclAllReduceMultipleWithRetry(t.d + 4, 1, fx_comm, NULL, 2),
		pcclInvalidArgument, "descriptors[0]: recvbuff");
	t.d[4].recvbuf = t.d[4].sendbuf;
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(NULL, 0, fx_comm, NULL, 1));
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	release(&t);
}
END_TEST

enum { MANY = 200 };

static void *serve_many(void *arg)
{
	unsigned *most = arg;

	for (unsigned i = 0; i < MANY;) {
		unsigned n = fake_waiting(fx_agent);

		*most = n > *most ? n : *most;
		for (unsigned k = 0; k < (n ? n : 1); k++, i++) {
			struct fake_op op = fake_take(fx_agent);

			fake_serve(&op, SHM_RESULT_AREA);
		}
	}
	return NULL;
}

/* The window is larger than the number of slots, and the caller has another operation in flight. */
START_TEST(windows_are_limited_to_the_free_slots)
{
	struct buffers own = bf_new(STAGED, 100, 1);
	pcclReduceOpDescriptor_t d[MANY];
	static uint8_t data[MANY][16];
	pcclAsyncReduceOp_t h = bf_launch(&own, 1);
	struct fake_op op = fake_take(fx_agent);
	unsigned most = 0;
	pthread_t agent;

	for (unsigned i = 0; i < MANY; i++)
		d[i] = (pcclReduceOpDescriptor_t){data[i], data[i], bf_descriptor(16, 100 + i)};
	agent = play(serve_many, &most);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(d, MANY, fx_comm, NULL, INT32_MAX));
	pthread_join(agent, NULL);
	ck_assert_uint_le(most, SHM_SLOTS - 1);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(data[i][15], FAKE_XOR);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_free(&own);
}
END_TEST

Suite *multi_suite(void)
{
	Suite *s = suite_create("multi");
	TCase *tc = tcase_create("multi");

	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_window_moves_on_when_its_oldest_operation_ends);
	tcase_add_test(tc, lost_operations_are_repeated_in_order);
	tcase_add_loop_test(tc, other_errors_end_the_whole_call, 0, sizeof ends / sizeof *ends);
	tcase_add_test(tc, a_disagreement_does_not_stop_the_other_operations);
	tcase_add_test(tc, a_wrong_descriptor_does_not_stop_the_other_operations);
	tcase_add_test(tc, arguments_are_checked_first);
	tcase_add_test(tc, windows_are_limited_to_the_free_slots);
	suite_add_tcase(s, tc);
	return s;
}
