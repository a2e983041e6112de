/* SPDX-License-Identifier: MIT
 *
 * More operations are in flight than there are slots. Operations that wait for a slot are launched
 * in the order of the calls, and each ends as if it had got a slot at once.
 */
#include <pthread.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

enum { ALL = 200, KEPT = 4, AT_ONCE = SHM_SLOTS - KEPT };

static struct buffers b[ALL];
static pcclAsyncReduceOp_t h[ALL];

static void make(void)
{
	for (unsigned i = 0; i < ALL; i++)
		b[i] = bf_new((enum placement)(i % PLACEMENTS), 2000 + 13 * i, i);
}

static void end(void)
{
	for (unsigned i = 0; i < ALL; i++)
		bf_free(&b[i]);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
}

static void launch_all(bool backwards)
{
	for (unsigned i = 0; i < ALL; i++) {
		unsigned k = backwards ? ALL - 1 - i : i;

		h[k] = bf_launch(&b[k], k);
	}
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "200 operations");
}

static void serve(struct fake_op *op)
{
	fake_serve(op, bf_mode(b[op->sqe.tag].placement));
}

/* ---- an agent that serves operations in their order, or swaps each pair */

struct agent {
	pthread_t thread;
	unsigned n; /* the number of operations that the agent serves */
	bool swaps, loses;
	uint64_t tags[ALL], generation[ALL]; /* in the order of the submissions */
};

static void end_one(const struct agent *a, struct fake_op *op)
{
	if (a->loses)
		fake_end(op, pcclRankConnectionLost, "somebody was lost");
	else
		serve(op);
}

static void *work(void *arg)
{
	struct agent *a = arg;
	struct fake_op held = {.f = NULL};

	for (unsigned i = 0; i < a->n; i++) {
		struct fake_op op = fake_take(fx_agent);

		a->tags[i] = op.sqe.tag;
		a->generation[i] = op.sqe.generation;
		if (a->swaps && i % 2 == 0 && i + 1 < a->n) {
			held = op;
			continue;
		}
		end_one(a, &op);
		if (held.f)
			end_one(a, &held);
		held.f = NULL;
	}
	return NULL;
}

static void begin_agent(struct agent *a)
{
	ck_assert_int_eq(pthread_create(&a->thread, NULL, work, a), 0);
}

static void await_success(unsigned i)
{
	pcclReduceInfo_t info = {0};

	fx_assert_succeeds(pcclAwaitAsyncReduce(&h[i], &info));
	ck_assert_uint_gt(info.local_world_size, 0);
	bf_assert_result(&b[i]);
	fx_assert_fails(pcclAwaitAsyncReduce(&h[i], NULL), pcclInvalidArgument, "awaited already");
}

static void await_failure(unsigned i, pcclResult_t code, const char *words)
{
	fx_assert_fails(pcclAwaitAsyncReduce(&h[i], NULL), code, words);
	bf_assert_untouched(&b[i]);
}

/* ---- tests */

enum { FORWARDS = 0, REVERSE, SHUFFLED, ORDERS };

static unsigned nth(int order, unsigned i)
{
	return order == FORWARDS ? i : order == REVERSE ? ALL - 1 - i : (i * 77 + 13) % ALL;
}

START_TEST(operations_can_be_awaited_in_any_order)
{
	struct agent a = {.n = ALL, .swaps = _i / ORDERS};

	make();
	launch_all(false);
	begin_agent(&a);
	for (unsigned i = 0; i < ALL; i++)
		await_success(nth(_i % ORDERS, i));
	pthread_join(a.thread, NULL);
	for (unsigned i = 0; i < ALL; i++)
		ck_assert_uint_eq(a.tags[i], i);
	end();
}
END_TEST

static void *hold_what_is_first(void *arg)
{
	static struct fake_op held[AT_ONCE];
	struct agent rest = {.n = ALL - AT_ONCE - 1};
	struct fake_op op;

	for (unsigned i = 0; i < AT_ONCE; i++) {
		held[i] = fake_take(fx_agent);
		ck_assert_uint_eq(held[i].sqe.tag, ALL - 1 - i);
	}
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.tag, 0);
	serve(&op);
	for (unsigned i = 0; i < AT_ONCE; i++)
		serve(&held[i]);
	work(&rest);
	return arg;
}

/* Other peers have launched the same operations in the opposite order, so no operation can end
 * before its tag is launched here. */
START_TEST(a_reserved_slot_goes_to_the_lowest_waiting_tag)
{
	pthread_t t;

	make();
	ck_assert_int_eq(pthread_create(&t, NULL, hold_what_is_first, NULL), 0);
	launch_all(true);
	for (unsigned i = 0; i < ALL; i++)
		await_success(nth(_i, i));
	pthread_join(t, NULL);
	end();
}
END_TEST

/* Operations without a slot have failed, too, and are not launched at the next agent. */
START_TEST(operations_without_a_slot_fail_if_the_agent_dies)
{
	struct agent a = {.n = AT_ONCE};
	unsigned n_done = 0;

	make();
	launch_all(false);
	begin_agent(&a);
	pthread_join(a.thread, NULL);
	fake_hang_up(fx_agent);
	for (unsigned i = 0; i < ALL; i++) {
		unsigned k = nth(_i, i);

		if (k >= AT_ONCE) {
			await_failure(k, pcclRankConnectionLost, "died");
		} else {
			await_success(k);
			n_done++;
		}
	}
	ck_assert_uint_eq(n_done, AT_ONCE);
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	a = (struct agent){.n = 1};
	begin_agent(&a);
	h[7] = bf_launch(&b[7], 7);
	if (bf_in_place(b[7].placement))
		memcpy(b[7].operand, b[7].send, b[7].bytes);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h[7], NULL));
	pthread_join(a.thread, NULL);
	end();
}
END_TEST

/* A launch has the generation that the application knew when it made the call, not the generation
 * at the time of the launch. */
START_TEST(a_late_launch_has_the_generation_of_its_call)
{
	struct agent a = {.n = ALL, .loses = true};

	make();
	launch_all(false);
	fake_generation(fx_agent, 3);
	begin_agent(&a);
	for (unsigned i = 0; i < ALL; i++)
		await_failure(nth(_i, i), pcclRankConnectionLost, "somebody was lost");
	pthread_join(a.thread, NULL);
	for (unsigned i = 0; i < ALL; i++)
		ck_assert_uint_eq(a.generation[i], 0);
	a = (struct agent){.n = 1};
	begin_agent(&a);
	h[0] = bf_launch(&b[0], 0);
	await_success(0);
	pthread_join(a.thread, NULL);
	ck_assert_uint_eq(a.generation[0], 3);
	end();
}
END_TEST

static void *serve_one_more(void *arg)
{
	struct agent a = {.n = ALL};
	struct fake_op op;

	work(&a);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.tag, 1000);
	fake_serve(&op, SHM_RESULT_AREA);
	return arg;
}

/* The blocking call is launched after the waiting operations, and waits for nothing else. */
START_TEST(a_blocking_call_is_launched_after_waiting_operations)
{
	struct buffers more = bf_new(STAGED, 5000, 1);
	pcclReduceDescriptor_t d = bf_descriptor(5000, 1000);
	pthread_t t;

	make();
	launch_all(false);
	ck_assert_int_eq(pthread_create(&t, NULL, serve_one_more, NULL), 0);
	d.tag = 150;
	fx_assert_fails(pcclAllReduce(more.send, more.recv, &d, fx_comm, NULL), pcclInvalidArgument,
		"tag 150");
	d.tag = 1000;
	fx_assert_succeeds(pcclAllReduce(more.send, more.recv, &d, fx_comm, NULL));
	bf_assert_result(&more);
	for (unsigned i = 0; i < ALL; i++)
		await_success(nth(REVERSE, i));
	pthread_join(t, NULL);
	bf_free(&more);
	end();
}
END_TEST

START_TEST(an_interrupt_ends_all_operations)
{
	make();
	launch_all(false);
	ck_assert_int_eq(pcclInterrupt(fx_comm), pcclSuccess);
	for (unsigned i = 0; i < ALL; i++)
		await_failure(nth(_i, i), pcclInterrupted, "pcclInterrupt");
	fx_assert_succeeds(pcclConnect(fx_comm));
	for (unsigned i = 0; i < ALL; i++)
		bf_free(&b[i]);
}
END_TEST

START_TEST(destroying_gives_up_waiting_operations)
{
	make();
	launch_all(false);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	for (unsigned i = 0; i < ALL; i++) {
		bf_assert_untouched(&b[i]);
		bf_free(&b[i]);
	}
	fx_comm = fx_new_comm();
}
END_TEST

static void *intrude(void *arg)
{
	pcclReduceDescriptor_t d = bf_descriptor(b[0].bytes, 500);
	pcclAsyncReduceOp_t handle;

	fx_assert_fails(pcclAwaitAsyncReduce(&h[199], NULL), pcclInvalidUsage,
		"another thread started this operation");
	fx_assert_fails(pcclAllReduceAsync(b[0].send, b[0].recv, &d, fx_comm, &handle),
		pcclInvalidUsage, "another thread");
	return arg;
}

START_TEST(another_thread_can_neither_await_nor_launch)
{
	struct agent a = {.n = ALL};
	pthread_t t;

	make();
	launch_all(false);
	ck_assert_int_eq(pthread_create(&t, NULL, intrude, NULL), 0);
	pthread_join(t, NULL);
	begin_agent(&a);
	for (unsigned i = 0; i < ALL; i++)
		await_success(i);
	pthread_join(a.thread, NULL);
	end();
}
END_TEST

Suite *backlog_suite(void)
{
	Suite *s = suite_create("backlog");
	TCase *tc = tcase_create("backlog");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, operations_can_be_awaited_in_any_order, 0, 2 * ORDERS);
	tcase_add_loop_test(tc, a_reserved_slot_goes_to_the_lowest_waiting_tag, 0, ORDERS);
	tcase_add_loop_test(tc, operations_without_a_slot_fail_if_the_agent_dies, 0, ORDERS);
	tcase_add_loop_test(tc, a_late_launch_has_the_generation_of_its_call, 0, ORDERS);
	tcase_add_test(tc, a_blocking_call_is_launched_after_waiting_operations);
	tcase_add_loop_test(tc, an_interrupt_ends_all_operations, 0, ORDERS);
	tcase_add_test(tc, destroying_gives_up_waiting_operations);
	tcase_add_test(tc, another_thread_can_neither_await_nor_launch);
	suite_add_tcase(s, tc);
	return s;
}
