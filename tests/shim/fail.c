/* SPDX-License-Identifier: MIT
 *
 * All-reduces that fail: they are refused or aborted, or the agent dies or lies. In all cases, the
 * caller's buffers are as before the call.
 */
#include <sched.h>

#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

enum { BYTES = 100000, SEGMENT = CC_PLAN_SEGMENT_MIN };

/* How far the agent has got with an operation. */
enum stage { SUBMITTED = 0, BEGUN, FIRST_SEGMENT, HALF, ALL_SEGMENTS, STAGES };

static void play(struct fake_op *op, enum stage stage, enum shm_result_mode mode)
{
	uint32_t n;

	if (stage == SUBMITTED)
		return;
	fake_begin(op, mode, 3, SEGMENT);
	n = stage == BEGUN           ? 0
	    : stage == FIRST_SEGMENT ? 1
	    : stage == HALF          ? op->plan.n_segs / 2
				     : op->plan.n_segs;
	/* As in a ring, the segments do not become final in the order of the buffer. */
	for (uint32_t i = 0; i < n; i++)
		fake_segment(op, (i + 5) % op->plan.n_segs);
}

/* Checks that the communicator still works. */
static void check_next(enum placement p)
{
	struct buffers b = bf_new(p, 5000, 1);

	bf_run(&b, 5, bf_mode(p));
	bf_free(&b);
}

START_TEST(an_abort_leaves_buffers_unchanged)
{
	enum placement p = (enum placement)(_i / STAGES);
	struct buffers b = bf_new(p, BYTES, 1);
	struct fake_op op;
	struct bf_call call;

	/* First, the caller is waiting when the abort comes. */
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	play(&op, (enum stage)(_i % STAGES), bf_mode(p));
	fake_end(&op, pcclRankConnectionLost, "peer 12ab on host b was lost");
	bf_end_call(&call, pcclRankConnectionLost, "peer 12ab");
	bf_assert_untouched(&b);
	/* Then the caller awaits an operation that has been aborted already. */
	{
		pcclAsyncReduceOp_t h = bf_launch(&b, 6);

		op = fake_take(fx_agent);
		play(&op, (enum stage)(_i % STAGES), bf_mode(p));
		fake_end(&op, pcclTooFewPeers, "alone");
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclTooFewPeers, "alone");
	}
	bf_assert_untouched(&b);
	check_next(p);
	bf_free(&b);
}
END_TEST

/* Waits until the caller has mapped the result area. */
static void await_mapping(enum stage stage, enum placement p)
{
	if (stage > BEGUN && (bf_recv_registered(p) || p == STAGED_IN_PLACE))
		fake_await_seen(fx_agent, WL_REGION_MAP, 1);
}

START_TEST(an_agent_that_dies_leaves_buffers_unchanged)
{
	enum placement p = (enum placement)(_i / STAGES);
	enum stage stage = (enum stage)(_i % STAGES);
	struct buffers b = bf_new(p, BYTES, 1);
	struct fake_op op;
	struct bf_call call;

	fake_asked(fx_agent);
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	play(&op, stage, bf_mode(p));
	await_mapping(stage, p);
	fake_hang_up(fx_agent);
	bf_end_call(&call, pcclRankConnectionLost, "agent of this host died");
	bf_assert_untouched(&b);
	/* The next agent has taken over, and knows the registered memory. */
	check_next(p);
	bf_free(&b);
}
END_TEST

/* The caller falls asleep before the agent begins, and still sleeps when the agent dies. */
START_TEST(a_sleeping_caller_notices_that_its_agent_has_died)
{
	enum placement p = (enum placement)_i;
	struct buffers first = bf_new(p, BYTES, 2), b = bf_new(p, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&first, 5);
	struct fake_op op = fake_take(fx_agent);
	struct bf_call call;

	/* From now on the slot's result region is mapped. */
	fake_begin(&op, bf_mode(p), 3, SEGMENT);
	fake_end(&op, pcclRankConnectionLost, "a peer was lost");
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "lost");
	bf_free(&first);
	bf_begin_call(&call, &b);
	op = fake_take(fx_agent);
	fake_await_input(&op, op.bytes);
	while (atomic_load(&op.slot->wait) == SHM_WAIT_AWAKE)
		sched_yield();
	play(&op, HALF, bf_mode(p));
	fake_hang_up(fx_agent);
	bf_end_call(&call, pcclRankConnectionLost, "agent of this host died");
	bf_assert_untouched(&b);
	bf_free(&b);
}
END_TEST

/* The shim has not seen any result when the agent dies. Old contents that only the agent had cannot
 * be restored. */
START_TEST(undo_copies_that_were_never_mapped_are_lost_with_the_agent)
{
	enum placement p = (enum placement)_i;
	struct buffers b = bf_new(p, BYTES, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 5);
	struct fake_op op = fake_take(fx_agent);

	fake_asked(fx_agent);
	play(&op, HALF, bf_mode(p));
	fake_hang_up(fx_agent);
	if (bf_recv_registered(p)) {
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost,
			"could not be restored");
	} else {
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
		bf_assert_untouched(&b);
	}
	bf_free(&b);
}
END_TEST

/* The agent completed the operation before it died. */
START_TEST(a_complete_result_counts_although_the_agent_died)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	check_next(STAGED_IN_PLACE); /* the slot's result region is small, and mapped */
	b.bytes = 4000;
	h = bf_launch(&b, 5);
	op = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fake_hang_up(fx_agent);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* On three rings there are more segments than on one ring. If the agent died before the last one
 * was final, the operation has failed, and nobody is asked for its outcome. */
START_TEST(a_result_of_several_rings_counts_if_it_is_complete)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	check_next(STAGED_IN_PLACE); /* as above */
	b.bytes = 4000;
	h = bf_launch(&b, 5);
	op = fake_take(fx_agent);
	op.shares = (struct cc_shares){{1, 7, 2}};
	fake_begin(&op, SHM_RESULT_AREA, 3, SEGMENT);
	fake_await_input(&op, op.bytes);
	for (uint32_t i = 0; i + (_i == 0) < op.plan.n_segs; i++)
		fake_segment(&op, i);
	fake_outcome(fx_agent, op.seq);
	fake_hang_up(fx_agent);
	if (_i == 1) {
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
		bf_assert_result(&b);
	} else {
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost, "died");
		bf_assert_untouched(&b);
	}
	bf_free(&b);
}
END_TEST

/* ---- an agent that lies ---- */

enum lie {
	NO_RESULT, /* success without a result area */
	MODE,
	UNDO_WITHOUT_OUT,
	HOSTS_0,
	SEGMENT_0,
	SEGMENTS_TOO_MANY,
	SHARES,
	SHARES_TOO_MANY,
	RESULT_OFF,
	RESULT_OFF_HUGE,
	FLAGS_OFF,
	FLAGS_OFF_HUGE,
	REGION_UNKNOWN,
	REGION_TOO_SMALL,
	CODE,
	LIES
};

static void tell(struct fake_op *op, enum lie lie)
{
	struct shm_slot *s = op->slot;
	uint32_t mode = SHM_RESULT_AREA;

	fake_begin(op, SHM_RESULT_AREA, 3, SEGMENT);
	switch (lie) {
	case NO_RESULT:
		mode = SHM_RESULT_NONE;
		break;
	case MODE:
		mode = 17;
		break;
	case UNDO_WITHOUT_OUT:
		mode = SHM_RESULT_UNDO;
		break;
	case HOSTS_0:
		s->hosts = 0;
		break;
	case SEGMENT_0:
		s->segment_max = 0;
		break;
	case SEGMENTS_TOO_MANY:
		s->hosts = UINT32_MAX;
		s->segment_max = 1;
		break;
	case SHARES:
		s->shares = 1 << 16; /* the first ring has no share */
		break;
	case SHARES_TOO_MANY: /* more flags than the region has */
		s->hosts = 1 << 20;
		s->shares = UINT64_C(0x0001000100010001);
		break;
	case RESULT_OFF:
		s->result_off = 4096;
		break;
	case RESULT_OFF_HUGE:
		s->result_off = UINT64_MAX - 1000;
		break;
	case FLAGS_OFF:
		s->flags_off_lo += 8192;
		break;
	case FLAGS_OFF_HUGE:
		s->flags_off_hi = UINT32_MAX;
		break;
	case REGION_UNKNOWN:
		s->result_region = 999;
		break;
	case REGION_TOO_SMALL:
		s->result_region = op->sqe.in_region - 1; /* the region of `small` below */
		break;
	default:
		break;
	}
	for (uint32_t i = 0; i < op->plan.n_segs; i++)
		atomic_store(&op->flags[i], 1);
	atomic_store_explicit(&s->mode, mode, memory_order_release);
	fake_end(op, lie == CODE ? 31337 : 0, "");
}

START_TEST(an_agent_that_lies_costs_the_peer_its_membership)
{
	enum placement p = (enum placement)(_i / LIES);
	enum lie lie = (enum lie)(_i % LIES);
	struct wl_request last;
	struct buffers b = bf_new(STAGED, BYTES, 1);
	pcclReduceDescriptor_t d = bf_descriptor(b.bytes, 5);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	void *small;

	if (p == STAGED_IN_PLACE)
		b.recv = b.send;
	b.placement = p;
	fx_assert_succeeds(pcclMemAlloc(100, &small));
	fx_assert_succeeds(pcclAllReduceAsync(b.send, b.recv, &d, fx_comm, &h));
	op = fake_take(fx_agent);
	if (lie == REGION_UNKNOWN)
		fake_script(
			fx_agent, WL_REGION_MAP, FAKE_REFUSE, pcclInternalError, "no region 999");
	tell(&op, lie);
	ck_assert_int_eq(pcclAwaitAsyncReduce(&h, NULL), pcclInternalError);
	ck_assert_str_ne(pcclGetLastError(), "");
	bf_assert_untouched(&b);
	fake_script(fx_agent, WL_REGION_MAP, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclMemFree(small));
	if (lie == CODE) {
		check_next(p);
	} else { /* all other peers have the result, and get the reason why this peer leaves */
		fx_assert_fails(pcclUpdateTopology(fx_comm), pcclUpdateTopologyFailed,
			"cannot take the result of an operation that has succeeded on all other "
			"peers");
		last = fake_last(fx_agent, WL_COMM_DESTROY);
		ck_assert_ptr_nonnull(strstr(last.text, "it cannot take the result of an operation "
							"that has succeeded on all other peers: "));
	}
	bf_free(&b);
}
END_TEST

/* A call that reads the attributes ends even if the agent died while it wrote them. */
START_TEST(half_written_attributes_can_be_read)
{
	int value;

	fake_break_attrs(fx_agent);
	ck_assert_int_eq(
		pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value), pcclSuccess);
}
END_TEST

/* ---- giving up ---- */

START_TEST(destroying_gives_up_operations)
{
	struct buffers b[PLACEMENTS];

	for (unsigned i = 0; i < PLACEMENTS; i++) {
		struct fake_op op;

		b[i] = bf_new((enum placement)i, BYTES, i);
		bf_launch(&b[i], i);
		op = fake_take(fx_agent);
		play(&op, HALF, bf_mode((enum placement)i));
		fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "await");
	}
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	for (unsigned i = 0; i < PLACEMENTS; i++) {
		bf_assert_untouched(&b[i]);
		bf_free(&b[i]); /* no operation uses them any more */
	}
	fx_comm = fx_new_comm();
}
END_TEST

START_TEST(operations_of_a_dead_agent_must_be_awaited)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h[3];

	for (unsigned i = 0; i < 3; i++) {
		h[i] = bf_launch(&b, i);
		fake_take(fx_agent);
	}
	fake_hang_up(fx_agent);
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "3 operations");
	for (unsigned i = 3; i-- > 0;)
		fx_assert_fails(pcclAwaitAsyncReduce(&h[i], NULL), pcclRankConnectionLost, "died");
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "already");
	bf_assert_untouched(&b);
	check_next(STAGED_IN_PLACE);
	bf_free(&b);
}
END_TEST

/* Memory that the next agent refuses to adopt is treated as ordinary memory. */
START_TEST(registered_memory_that_the_agent_refuses_is_staged)
{
	struct buffers b = bf_new(REGISTERED_IN_PLACE, BYTES, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	fake_script(fx_agent, WL_REGION_ADOPT, FAKE_REFUSE, pcclOutOfMemory, "too much");
	fake_hang_up(fx_agent);
	/* Until the next agent has seen the attach, the operation might be launched for the dead
	 * agent, and would then be lost. */
	fake_await_seen(fx_agent, WL_COMM_ATTACH, 1);
	h = bf_launch(&b, 1);
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.flags, SHM_SQE_MAIN);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

Suite *fail_suite(void)
{
	Suite *s = suite_create("fail");
	TCase *tc = tcase_create("fail");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, an_abort_leaves_buffers_unchanged, 0, PLACEMENTS * STAGES);
	tcase_add_loop_test(
		tc, an_agent_that_dies_leaves_buffers_unchanged, 0, PLACEMENTS * STAGES);
	tcase_add_loop_test(tc, a_sleeping_caller_notices_that_its_agent_has_died, 0, PLACEMENTS);
	tcase_add_loop_test(
		tc, undo_copies_that_were_never_mapped_are_lost_with_the_agent, 0, PLACEMENTS);
	tcase_add_test(tc, a_complete_result_counts_although_the_agent_died);
	tcase_add_loop_test(tc, a_result_of_several_rings_counts_if_it_is_complete, 0, 2);
	tcase_add_loop_test(tc, an_agent_that_lies_costs_the_peer_its_membership, 0, 2 * LIES);
	tcase_add_test(tc, half_written_attributes_can_be_read);
	tcase_add_test(tc, destroying_gives_up_operations);
	tcase_add_test(tc, operations_of_a_dead_agent_must_be_awaited);
	tcase_add_test(tc, registered_memory_that_the_agent_refuses_is_staged);
	suite_add_tcase(s, tc);
	return s;
}
