/* SPDX-License-Identifier: MIT
 *
 * pcclInterrupt ends every call that blocks. It may be called by a signal handler in the blocked
 * thread, or by another thread. Afterwards the buffers are as before the call, and the peer has
 * left the run.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/cc_sys.h"
#include "tests/shim/resume.h"
#include "tests/shim/suites.h"

enum call { CONNECT, TOPOLOGY, OPTIMIZE, PENDING, REDUCE, AWAIT, SEVERAL, SYNC, CALLS };
enum way { BY_THREAD, BY_SIGNAL, WAYS };

static pthread_t blocked;

static void on_signal(int signo)
{
	(void)signo;
	pcclInterrupt(fx_comm); /* NOLINT(bugprone-signal-handler): documented as safe */
}

static void interrupt(enum way way)
{
	if (way == BY_SIGNAL)
		ck_assert_int_eq(pthread_kill(blocked, SIGUSR1), 0);
	else
		ck_assert_int_eq(pcclInterrupt(fx_comm), pcclSuccess);
}

static void setup(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	blocked = pthread_self();
	fx_setup_agent();
	fx_comm = fx_new_comm();
}

/* Interrupts a call when the agent knows that it blocks. */
struct attack {
	enum call call;
	enum way way;
	enum placement placement;
};

static void play_half(enum placement p)
{
	struct fake_op op = fake_take(fx_agent);

	fake_begin(&op, bf_mode(p), 3, SEGMENT);
	fake_await_input(&op, op.bytes);
	for (uint32_t i = 0; i < op.plan.n_segs / 2; i++)
		fake_segment(&op, i);
	fake_await_asleep(&op, p == STAGED_IN_PLACE ? SHM_WAIT_SEGMENTS : SHM_WAIT_DONE);
}

static void *attack(void *arg)
{
	const struct attack *a = arg;

	switch (a->call) {
	case CONNECT:
		fake_await_seen(fx_agent, WL_COMM_CONNECT, 1);
		break;
	case TOPOLOGY:
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
		break;
	case OPTIMIZE:
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_OPTIMIZE), 1);
		break;
	case PENDING:
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_PENDING), 1);
		break;
	case SYNC:
		(void)fake_take(fx_agent);
		break;
	default:
		play_half(a->placement);
		break;
	}
	interrupt(a->way);
	return NULL;
}

static pcclResult_t await_two(struct buffers *b)
{
	struct buffers other = bf_new(STAGED_IN_PLACE, BYTES, 2);
	pcclAsyncReduceOp_t first = bf_launch(b, 1), second = bf_launch(&other, 2);
	pcclResult_t r = pcclAwaitAsyncReduce(&first, NULL);

	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "in flight");
	fx_assert_fails(pcclAwaitAsyncReduce(&second, NULL), pcclInterrupted, "pcclConnect");
	bf_assert_untouched(&other);
	bf_free(&other);
	return r;
}

enum { TENSOR = 4096 };

static pcclResult_t synchronize_at(uint8_t *tensor)
{
	pcclTensorInfo_t info = {
		.name = "t", .data = tensor, .count = TENSOR, .datatype = pcclUint8};
	pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &info};
	pcclResult_t r = pcclSynchronizeSharedState(
		fx_comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);

	ck_assert_uint_eq(state.revision, 1);
	for (size_t i = 0; i < TENSOR; i++)
		ck_assert_uint_eq(tensor[i], 0);
	return r;
}

static pcclResult_t synchronize(void)
{
	uint8_t tensor[TENSOR] = {0};

	return synchronize_at(tensor);
}

static pcclResult_t make(enum call call, struct buffers *b)
{
	pcclReduceDescriptor_t d = bf_descriptor(BYTES, 1);
	pcclReduceOpDescriptor_t op = {b->send, b->recv, d};
	bool flag;

	switch (call) {
	case CONNECT:
		return pcclConnect(fx_comm);
	case TOPOLOGY:
		return pcclUpdateTopology(fx_comm);
	case OPTIMIZE:
		return pcclOptimizeTopology(fx_comm);
	case PENDING:
		return pcclArePeersPending(fx_comm, &flag);
	case REDUCE:
		return pcclAllReduce(b->send, b->recv, &d, fx_comm, NULL);
	case AWAIT:
		return await_two(b);
	case SEVERAL:
		return pcclAllReduceMultipleWithRetry(&op, 1, fx_comm, NULL, 1);
	default:
		return synchronize();
	}
}

static void hold_all(enum fake_action action)
{
	fake_script(fx_agent, WL_COMM_CONNECT, action, 0, NULL);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), action, 0, NULL);
	fake_script(fx_agent, FAKE_VOTE(WIRE_PENDING), action, 0, NULL);
	fake_script(fx_agent, FAKE_VOTE(WIRE_OPTIMIZE), action, 0, NULL);
}

static void assert_out(void)
{
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed, "pcclInterrupt");
}

static void assert_joins_again(void)
{
	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
}

static void end_call(struct attack a)
{
	struct buffers b = bf_new(a.placement, BYTES, 1);
	pthread_t t;

	if (a.call != CONNECT)
		fx_assert_succeeds(pcclConnect(fx_comm));
	hold_all(FAKE_HOLD);
	ck_assert_int_eq(pthread_create(&t, NULL, attack, &a), 0);
	ck_assert_int_eq(make(a.call, &b), pcclInterrupted);
	if (a.call != AWAIT)
		ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "pcclConnect"));
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 1);
	/* the master may be out of reach */
	ck_assert(!fake_last(fx_agent, WL_COMM_DESTROY).until_left);
	hold_all(FAKE_ANSWER);
	if (a.call != CONNECT)
		assert_out();
	assert_joins_again();
	bf_free(&b);
}

START_TEST(an_interrupt_ends_every_call_that_blocks)
{
	end_call((struct attack){(enum call)(_i % CALLS), (enum way)(_i / CALLS), STAGED_IN_PLACE});
}
END_TEST

START_TEST(an_interrupt_restores_buffers_of_all_kinds)
{
	end_call((struct attack){REDUCE, (enum way)(_i % WAYS), (enum placement)(_i / WAYS)});
}
END_TEST

/* If no call is blocked, only the next call is ended. */
START_TEST(an_interrupt_outside_a_call_ends_the_next_call)
{
	struct buffers b = bf_new(STAGED, BYTES, 1);

	if (_i != CONNECT)
		fx_assert_succeeds(pcclConnect(fx_comm));
	interrupt(BY_SIGNAL);
	ck_assert_int_eq(make((enum call)_i, &b), pcclInterrupted);
	/* A peer that never was in the run has not left the run. */
	if (_i == CONNECT)
		ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "is not in the run"));
	bf_assert_untouched(&b);
	assert_joins_again();
	bf_free(&b);
}
END_TEST

START_TEST(a_result_counts_if_it_came_before_the_interrupt)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	fx_assert_succeeds(pcclConnect(fx_comm));
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	interrupt(BY_THREAD);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInterrupted, "pcclConnect");
	assert_out();
	assert_joins_again();
	bf_free(&b);
}
END_TEST

static void *attack_without_agent(void *arg)
{
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	interrupt(*(enum way *)arg);
	return NULL;
}

/* The agent has died. The next agent does not answer the attach, and the call waits for this
 * answer. */
START_TEST(an_interrupt_ends_a_call_that_waits_for_an_agent)
{
	struct buffers b = bf_new(RECV_REGISTERED, BYTES, 1);
	enum call call = (enum call[]){TOPOLOGY, PENDING, AWAIT, SYNC}[_i / WAYS];
	enum way way = (enum way)(_i % WAYS);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	/* the whole result is there, and the call waits for the result status */
	if (call == AWAIT) {
		h = bf_launch(&b, 1);
		op = fake_take(fx_agent);
		rs_play_whole(&op, SHM_RESULT_UNDO);
	}
	fake_script(fx_agent, WL_COMM_ATTACH, FAKE_HOLD, 0, NULL);
	fake_hang_up(fx_agent);
	ck_assert_int_eq(pthread_create(&t, NULL, attack_without_agent, &way), 0);
	ck_assert_int_eq(
		call == AWAIT ? pcclAwaitAsyncReduce(&h, NULL) : make(call, &b), pcclInterrupted);
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	assert_out();
	assert_joins_again();
	fake_release(fx_agent);
	/* The interrupted peer leaves the run, and the new peer stays. */
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	bf_free(&b);
}
END_TEST

static void *attack_soon(void *arg)
{
	/* the test cannot see when the wait begins; an earlier interrupt ends the call, too */
	usleep(100000);
	interrupt(*(enum way *)arg);
	return NULL;
}

/* The agent has ended and no other agent starts. */
START_TEST(an_interrupt_ends_a_connect_without_an_agent)
{
	enum way way = (enum way)_i;
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fx_comm = fx_new_comm();
	fake_stop(fx_agent);
	ck_assert_int_eq(pthread_create(&t, NULL, attack_soon, &way), 0);
	fx_assert_fails(pcclConnect(fx_comm), pcclInterrupted,
		"pcclInterrupt ended pcclConnect: this peer is not in the run; call pcclConnect to "
		"try again");
	pthread_join(t, NULL);
	fx_agent = fake_start(fx_socket);
	assert_joins_again();
}
END_TEST

/* ---- an agent that is stopped */

#define SOON_NS ((uint64_t)900000000)

static _Atomic uint64_t interrupted_ns; /* 0: not yet */

static void stall_and_interrupt(enum way way)
{
	fake_stall(fx_agent, true);
	atomic_store(&interrupted_ns, cc_now_ns());
	interrupt(way);
}

static void *attack_still(void *arg)
{
	const struct attack *a = arg;

	if (a->call == CONNECT)
		fake_await_seen(fx_agent, WL_COMM_CONNECT, 1);
	else if (a->call == TOPOLOGY)
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	else if (a->call == OPTIMIZE)
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_OPTIMIZE), 1);
	else if (a->call == PENDING)
		fake_await_seen(fx_agent, FAKE_VOTE(WIRE_PENDING), 1);
	else if (a->call == SYNC)
		(void)fake_take(fx_agent);
	else
		play_half(a->placement);
	stall_and_interrupt(a->way);
	return NULL;
}

/* The agent has seen the call. The call ends at once, and the agent removes the peer when it
 * continues. */
START_TEST(an_interrupted_call_does_not_wait_for_a_stopped_agent)
{
	struct attack a = {(enum call)(_i % CALLS), (enum way)(_i / CALLS), STAGED_IN_PLACE};
	struct buffers b = bf_new(a.placement, BYTES, 1);
	pthread_t t;

	if (a.call != CONNECT)
		fx_assert_succeeds(pcclConnect(fx_comm));
	hold_all(FAKE_HOLD);
	ck_assert_int_eq(pthread_create(&t, NULL, attack_still, &a), 0);
	ck_assert_int_eq(make(a.call, &b), pcclInterrupted);
	ck_assert_uint_lt(cc_now_ns() - atomic_load(&interrupted_ns), SOON_NS);
	if (a.call != AWAIT)
		ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "pcclConnect"));
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 0);
	hold_all(FAKE_ANSWER);
	fake_stall(fx_agent, false);
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	if (a.call != CONNECT)
		assert_out();
	assert_joins_again();
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	bf_free(&b);
}
END_TEST

static void *interrupt_soon(void *arg)
{
	usleep(100000); /* the call usually waits by now; an earlier interrupt ends it, too */
	atomic_store(&interrupted_ns, cc_now_ns());
	interrupt(*(enum way *)arg);
	return NULL;
}

/* The call asks a stopped agent for memory, or for a new communicator. When the agent continues and
 * answers, the shim gives the memory or the communicator back. */
START_TEST(an_interrupt_ends_a_call_that_begins_at_a_stopped_agent)
{
	enum call call =
		(enum call[]){CONNECT, TOPOLOGY, PENDING, REDUCE, SEVERAL, SYNC}[_i / WAYS];
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclComm_t *other = fx_comm;
	enum way way = (enum way)(_i % WAYS);
	pthread_t t;

	fx_assert_succeeds(pcclConnect(other));
	if (call == CONNECT)
		fx_comm = fx_new_comm();
	fake_stall(fx_agent, true);
	ck_assert_int_eq(pthread_create(&t, NULL, interrupt_soon, &way), 0);
	ck_assert_int_eq(make(call, &b), pcclInterrupted);
	ck_assert_uint_lt(cc_now_ns() - atomic_load(&interrupted_ns), SOON_NS);
	ck_assert_ptr_nonnull(strstr(pcclGetLastError(), "pcclConnect"));
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	fake_stall(fx_agent, false);
	assert_joins_again();
	fake_await_seen(fx_agent, WL_COMM_DESTROY, 1);
	if (call == REDUCE || call == SEVERAL || call == SYNC)
		fake_await_seen(fx_agent, WL_REGION_FREE, 1);
	ck_assert_uint_eq(fake_accepted(fx_agent), 1);
	if (other != fx_comm)
		fx_assert_succeeds(pcclDestroyCommunicator(other));
	bf_free(&b);
}
END_TEST

/* The stopped agent has not answered the hello. If _i >= WAYS, the process also has registered
 * memory. */
START_TEST(an_interrupt_ends_a_connect_that_waits_for_a_hello)
{
	enum way way = (enum way)(_i % WAYS);
	void *memory = NULL;
	pthread_t t;

	if (_i / WAYS) {
		fx_assert_succeeds(pcclMemAlloc(1000, &memory));
		fake_stop(fx_agent);
		fx_agent = fake_start(fx_socket);
	}
	fake_stall(fx_agent, true);
	ck_assert_int_eq(pthread_create(&t, NULL, interrupt_soon, &way), 0);
	fx_assert_fails(pcclConnect(fx_comm), pcclInterrupted, "is not in the run");
	ck_assert_uint_lt(cc_now_ns() - atomic_load(&interrupted_ns), SOON_NS);
	pthread_join(t, NULL);
	fake_stall(fx_agent, false);
	assert_joins_again();
	fx_assert_succeeds(pcclMemFree(memory));
}
END_TEST

START_TEST(leaving_does_not_wait_for_a_stopped_agent)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	uint64_t begin;
	void *memory;

	fx_assert_succeeds(pcclConnect(fx_comm));
	rs_serve_next(&b, 1, 0);
	fx_assert_succeeds(pcclMemAlloc(1000, &memory));
	fake_stall(fx_agent, true);
	begin = cc_now_ns();
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fx_assert_succeeds(pcclMemFree(memory));
	ck_assert_uint_lt(cc_now_ns() - begin, SOON_NS);
	fake_stall(fx_agent, false);
	fake_await_seen(fx_agent, WL_REGION_FREE, 2);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 1);
	fx_comm = fx_new_comm();
	assert_joins_again();
	bf_free(&b);
}
END_TEST

static _Atomic bool returned;

static void *attack_and_wake(void *arg)
{
	attack_still(arg);
	/* the agent is stopped during this time, so the call must not return yet */
	usleep(700000);
	ck_assert(!atomic_load(&returned));
	fake_stall(fx_agent, false);
	return NULL;
}

/* When the agent continues, it may read and write registered memory itself. So the call waits for
 * it. */
START_TEST(an_interrupt_waits_for_the_agent_if_memory_is_registered)
{
	enum placement p = (enum placement)(SEND_REGISTERED + _i);
	struct attack a = {REDUCE, BY_THREAD, p};
	struct buffers b;
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	b = bf_new(p, BYTES, 1);
	ck_assert_int_eq(pthread_create(&t, NULL, attack_and_wake, &a), 0);
	ck_assert_int_eq(make(REDUCE, &b), pcclInterrupted);
	atomic_store(&returned, true);
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 1);
	assert_joins_again();
	bf_free(&b);
}
END_TEST

START_TEST(an_interrupt_waits_for_the_agent_if_tensors_are_registered)
{
	struct attack a = {SYNC, BY_SIGNAL, STAGED};
	void *memory;
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	fx_assert_succeeds(pcclMemAlloc(TENSOR, &memory));
	ck_assert_int_eq(pthread_create(&t, NULL, attack_and_wake, &a), 0);
	ck_assert_int_eq(synchronize_at(memory), pcclInterrupted);
	atomic_store(&returned, true);
	pthread_join(t, NULL);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_COMM_DESTROY), 1);
	assert_joins_again();
	fx_assert_succeeds(pcclMemFree(memory));
}
END_TEST

static void *wake_later(void *arg)
{
	(void)arg;
	/* the agent is stopped during this time, so the call must not return yet */
	usleep(700000);
	ck_assert(!atomic_load(&returned));
	fake_stall(fx_agent, false);
	return NULL;
}

START_TEST(destroying_waits_for_the_agent_if_memory_is_registered)
{
	struct buffers b;
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	b = bf_new(RECV_REGISTERED, BYTES, 1);
	bf_launch(&b, 1);
	(void)fake_take(fx_agent);
	fake_stall(fx_agent, true);
	ck_assert_int_eq(pthread_create(&t, NULL, wake_later, NULL), 0);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	atomic_store(&returned, true);
	pthread_join(t, NULL);
	bf_assert_untouched(&b);
	fx_comm = fx_new_comm();
	bf_free(&b);
}
END_TEST

static void *attack_with_goodbye(void *arg)
{
	(void)arg;
	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	interrupt(BY_THREAD);
	fake_goodbye(fx_agent, pcclVersionMismatch, "go away");
	return NULL;
}

/* The call fails for another reason at the same moment. No later call may be ended by this
 * interrupt. */
START_TEST(an_interrupt_belongs_to_the_call_in_which_it_came)
{
	pthread_t t;

	fx_assert_succeeds(pcclConnect(fx_comm));
	hold_all(FAKE_HOLD);
	ck_assert_int_eq(pthread_create(&t, NULL, attack_with_goodbye, NULL), 0);
	ck_assert_int_eq(pcclUpdateTopology(fx_comm), pcclInterrupted);
	pthread_join(t, NULL);
	hold_all(FAKE_ANSWER);
	assert_joins_again();
}
END_TEST

START_TEST(an_interrupt_without_a_communicator_is_refused)
{
	ck_assert_int_eq(pcclInterrupt(NULL), pcclInvalidArgument);
	ck_assert_int_eq(pcclInterrupt((pcclComm_t *)(void *)fx_dir), pcclInvalidArgument);
	ck_assert_str_eq(pcclGetLastError(), "");
	assert_joins_again();
}
END_TEST

Suite *interrupt_suite(void)
{
	Suite *s = suite_create("interrupt");
	TCase *t = tcase_create("calls");

	tcase_add_unchecked_fixture(t, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(t, setup, fx_teardown_comm);
	tcase_add_loop_test(t, an_interrupt_ends_every_call_that_blocks, 0, CALLS * WAYS);
	tcase_add_loop_test(t, an_interrupt_restores_buffers_of_all_kinds, 0, PLACEMENTS * WAYS);
	tcase_add_loop_test(t, an_interrupt_outside_a_call_ends_the_next_call, 0, CALLS);
	tcase_add_test(t, a_result_counts_if_it_came_before_the_interrupt);
	tcase_add_loop_test(t, an_interrupt_ends_a_call_that_waits_for_an_agent, 0, 4 * WAYS);
	tcase_add_loop_test(t, an_interrupt_ends_a_connect_without_an_agent, 0, WAYS);
	tcase_add_loop_test(
		t, an_interrupted_call_does_not_wait_for_a_stopped_agent, 0, CALLS * WAYS);
	tcase_add_loop_test(
		t, an_interrupt_ends_a_call_that_begins_at_a_stopped_agent, 0, 6 * WAYS);
	tcase_add_loop_test(t, an_interrupt_ends_a_connect_that_waits_for_a_hello, 0, 2 * WAYS);
	tcase_add_test(t, leaving_does_not_wait_for_a_stopped_agent);
	tcase_add_loop_test(t, an_interrupt_waits_for_the_agent_if_memory_is_registered, 0,
		PLACEMENTS - SEND_REGISTERED);
	tcase_add_test(t, an_interrupt_waits_for_the_agent_if_tensors_are_registered);
	tcase_add_test(t, destroying_waits_for_the_agent_if_memory_is_registered);
	tcase_add_test(t, an_interrupt_belongs_to_the_call_in_which_it_came);
	tcase_add_test(t, an_interrupt_without_a_communicator_is_refused);
	suite_add_tcase(s, t);
	return s;
}
