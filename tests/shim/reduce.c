/* SPDX-License-Identifier: MIT
 *
 * All-reduces that succeed, and calls that are refused before they begin.
 */
#include <pthread.h>
#include <sched.h>

#include "proto/wire_quant.h"
#include "tests/shim/buffers.h"
#include "tests/shim/suites.h"

/* With zero elements there is nothing to reduce. The operation is done at once, as in PCCL 1.0, and
 * is awaited like any other. */
START_TEST(an_operation_of_zero_elements_succeeds_at_once)
{
	pcclReduceDescriptor_t d = bf_descriptor(0, 7);
	pcclReduceOpDescriptor_t several = {.descriptor = d};
	pcclReduceInfo_t info = {.tx_bytes = 9};
	pcclAsyncReduceOp_t h;

	fx_assert_succeeds(pcclAllReduce(NULL, NULL, &d, fx_comm, &info));
	ck_assert_uint_eq(info.local_world_size, 2);
	ck_assert_uint_eq(info.tx_bytes, 0);
	fx_assert_succeeds(pcclAllReduceAsync(NULL, NULL, &d, fx_comm, &h));
	fx_assert_fails(
		pcclAllReduceAsync(NULL, NULL, &d, fx_comm, &h), pcclInvalidArgument, "tag 7");
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "1 operations");
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, &info));
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(&several, 1, fx_comm, NULL, 1));
	fx_assert_succeeds(pcclAllReduceAsync(NULL, NULL, &d, fx_comm, &h));
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	ck_assert_uint_eq(fake_waiting(fx_agent), 0);
	fx_comm = fx_new_comm();
	fx_assert_fails(
		pcclAllReduce(NULL, NULL, &d, fx_comm, NULL), pcclInvalidUsage, "pcclConnect");
	fx_assert_succeeds(pcclConnect(fx_comm));
}
END_TEST

/* The launch fails, not only the await. */
START_TEST(a_launch_fails_at_once_if_the_peer_is_alone)
{
	pcclReduceDescriptor_t d = bf_descriptor(1, 7);
	pcclAsyncReduceOp_t h;
	uint8_t x = 1;

	fake_view(fx_agent, (struct wire_view){9, 2, 1, 2, 1});
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	fx_assert_fails(pcclAllReduceAsync(&x, &x, &d, fx_comm, &h), pcclTooFewPeers,
		"this peer is alone in group");
	fx_assert_fails(pcclAllReduce(&x, &x, &d, fx_comm, NULL), pcclTooFewPeers,
		"this peer is alone in group");
	fx_assert_succeeds(pcclUpdateTopology(fx_comm)); /* nothing is in flight */
}
END_TEST

START_TEST(arguments_are_checked)
{
	pcclReduceDescriptor_t d = bf_descriptor(8, 1);
	pcclAsyncReduceOp_t h;
	double buf[4] = {0};

	fx_assert_fails(
		pcclAllReduce(NULL, buf, &d, fx_comm, NULL), pcclInvalidArgument, "sendbuff");
	fx_assert_fails(
		pcclAllReduce(buf, NULL, &d, fx_comm, NULL), pcclInvalidArgument, "recvbuff");
	fx_assert_fails(
		pcclAllReduce(buf, buf, NULL, fx_comm, NULL), pcclInvalidArgument, "descriptor");
	fx_assert_fails(pcclAllReduce(buf, buf, &d, NULL, NULL), pcclInvalidArgument, "NULL");
	fx_assert_fails(pcclAllReduceAsync(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"reduce_handle_out");
	fx_assert_fails(pcclAwaitAsyncReduce(NULL, NULL), pcclInvalidArgument, "reduce_handle");
	d.count = ((size_t)1 << 48) + 1;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"the limit for elements of 1 bytes is 281474976710656");
	d.src_descriptor.datatype = pcclDouble;
	d.count = SIZE_MAX / 4;
	fx_assert_fails(
		pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument, "35184372088832");
	d.count = 1;
	d.src_descriptor.datatype = (pcclDataType_t)12;
	fx_assert_fails(
		pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument, "datatype");
	d.src_descriptor.datatype = pcclDouble;
	d.op = (pcclRedOp_t)5;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument, "op: ");
	d.op = pcclSum;
	d.quantization_options.algorithm = pcclQuantMinMax;
	d.quantization_options.quantized_datatype = (pcclDataType_t)12;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"double elements cannot be quantized to unknown by minmax");
	d.quantization_options.algorithm = pcclQuantBlockwise;
	d.quantization_options.quantized_datatype = pcclUint8;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"double elements cannot be quantized to uint8 by blockwise");
	d.quantization_options.algorithm = (pcclQuantizationAlgorithm_t)3;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"there is no quantization algorithm 3");
	d.quantization_options.algorithm = pcclQuantNone;
	d.src_descriptor.distribution_hint = (pcclDistributionHint_t)3;
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidArgument,
		"distribution_hint: there is no hint 3");
	d.src_descriptor.distribution_hint = pcclDistributionNone;
	d.count = 3;
	fx_assert_fails(
		pcclAllReduce(buf, buf + 1, &d, fx_comm, NULL), pcclInvalidArgument, "overlap");
	fx_assert_fails(
		pcclAllReduce(buf + 1, buf, &d, fx_comm, NULL), pcclInvalidArgument, "overlap");
	/* The other peers must get the error before the operation ends, so the launch succeeds. */
	fx_assert_succeeds(pcclAllReduceAsync(buf + 1, buf, &d, fx_comm, &h));
	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclInvalidArgument, "overlap");
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), 0);
}
END_TEST

START_TEST(only_connected_communicators_can_reduce)
{
	pcclReduceDescriptor_t d = bf_descriptor(8, 1);
	pcclComm_t *c = fx_new_comm();
	uint64_t buf = 0;

	fx_assert_fails(pcclAllReduce(&buf, &buf, &d, c, NULL), pcclInvalidUsage, "pcclConnect");
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	fake_lose(fx_agent, pcclRankConnectionLost, "kicked");
	fx_assert_fails(
		pcclAllReduce(&buf, &buf, &d, fx_comm, NULL), pcclRankConnectionLost, "kicked");
	fx_assert_fails(pcclAllReduce(&buf, &buf, &d, fx_comm, NULL), pcclInvalidUsage, "kicked");
}
END_TEST

static const size_t sizes[] = {1, 2, 7, 8, 1000, 8191, 8193, 65536, 300001, 1048583};

/* Tests all kinds of memory and all sizes. */
START_TEST(results_arrive_in_all_kinds_of_memory)
{
	enum placement p = (enum placement)_i;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffers b = bf_new(p, sizes[i], i);
		pcclAsyncReduceOp_t h = bf_launch(&b, i);
		struct fake_op op = fake_take(fx_agent);
		pcclReduceInfo_t info = {0};

		ck_assert_uint_eq(op.sqe.tag, i);
		ck_assert_uint_eq(op.sqe.count, sizes[i]);
		ck_assert_uint_eq(op.sqe.dtype, pcclUint8);
		ck_assert_ptr_eq(h.comm, fx_comm);
		ck_assert_int_eq((op.sqe.flags & SHM_SQE_IN_REGISTERED) != 0,
			p == SEND_REGISTERED || p >= BOTH_REGISTERED);
		ck_assert_int_eq(
			(op.sqe.flags & SHM_SQE_OUT_REGISTERED) != 0, bf_recv_registered(p));
		fake_serve(&op, bf_mode(p));
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, &info));
		bf_assert_result(&b);
		ck_assert_uint_eq(info.local_world_size, 2);
		ck_assert_uint_eq(info.tx_bytes, sizes[i]);
		ck_assert_uint_eq(info.rx_bytes, 2 * sizes[i]);
		ck_assert_uint_eq(atomic_load(&op.slot->state), SHM_SLOT_FREE);
		bf_free(&b);
	}
}
END_TEST

/* An agent with several members on the host does not write into registered memory. */
START_TEST(registered_outputs_can_get_results_from_an_area)
{
	struct buffers b = bf_new((enum placement)_i, 100000, 1);

	bf_run(&b, 1, SHM_RESULT_AREA);
	bf_free(&b);
}
END_TEST

/* While the call blocks, the agent is ahead of it, behind it and asleep in turn. */
START_TEST(blocking_calls_succeed_while_the_agent_works)
{
	enum placement p = (enum placement)_i;
	enum shm_result_mode mode = bf_mode(p);

	for (size_t i = 0; i < 40; i++) {
		size_t bytes = sizes[i % (sizeof sizes / sizeof *sizes)];
		struct buffers b = bf_new(p, bytes, i);

		bf_run_blocking(&b, mode);
		bf_free(&b);
	}
}
END_TEST

static const struct {
	pcclDataType_t type;
	uint32_t size;
} types[] = {{pcclUint8, 1}, {pcclInt8, 1}, {pcclInt16, 2}, {pcclUint16, 2}, {pcclUint32, 4},
	{pcclInt32, 4}, {pcclUint64, 8}, {pcclInt64, 8}, {pcclFloat16, 2}, {pcclBFloat16, 2},
	{pcclFloat, 4}, {pcclDouble, 8}};

START_TEST(every_type_has_its_size)
{
	struct buffers b = bf_new(STAGED_IN_PLACE, (size_t)100 * types[_i].size, 3);
	pcclReduceDescriptor_t d = bf_descriptor(100, 3);
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	d.src_descriptor.datatype = types[_i].type;
	d.op = pcclMin;
	fx_assert_succeeds(pcclAllReduceAsync(b.send, b.recv, &d, fx_comm, &h));
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.dtype, types[_i].type);
	ck_assert_uint_eq(op.sqe.op, pcclMin);
	ck_assert_uint_eq(op.bytes, b.bytes);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(&b);
	bf_free(&b);
}
END_TEST

/* Copying begins with the chunk that the agent needs first. The agent can see the progress. */
START_TEST(operands_are_copied_in_ring_order)
{
	struct buffers b = bf_new(STAGED, 1500000, 1);
	struct cc_plan plan;
	struct cc_span first;
	pcclAsyncReduceOp_t h;
	struct fake_op op;

	ck_assert_int_eq(cc_plan_init(&plan, 1500000, 1, 4, CC_PLAN_SEGMENT_MAX), 0);
	for (uint32_t pos = 0; pos < 4; pos++) {
		fake_attrs(fx_agent, 4, pos);
		h = bf_launch(&b, pos);
		op = fake_take(fx_agent);
		first = cc_plan_chunk(&plan, cc_plan_first_chunk(&plan, pos));
		ck_assert_uint_eq(op.sqe.in_start, cc_plan_first_byte(&plan, pos));
		ck_assert_uint_eq(op.sqe.in_second, first.off + first.len);
		fake_await_input(&op, b.bytes);
		ck_assert_uint_eq(atomic_load(&op.slot->in_done[0]), first.len);
		ck_assert_uint_eq(shm_slot_copied(op.slot), b.bytes);
		ck_assert_int_eq(memcmp(op.in, b.operand, b.bytes), 0);
		fake_serve(&op, SHM_RESULT_AREA);
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	}
	bf_free(&b);
}
END_TEST

START_TEST(tags_name_operations)
{
	struct buffers a = bf_new(STAGED, 100, 1), b = bf_new(STAGED, 200, 2);
	pcclReduceDescriptor_t d = bf_descriptor(100, 7);
	pcclAsyncReduceOp_t ha = bf_launch(&a, 7), hb = bf_launch(&b, 8), wrong = {fx_comm, 9};
	struct fake_op oa = fake_take(fx_agent), ob = fake_take(fx_agent);

	fx_assert_fails(pcclAllReduceAsync(a.send, a.recv, &d, fx_comm, &wrong),
		pcclInvalidArgument, "tag 7");
	ck_assert_uint_eq(wrong.tag, 9);
	fx_assert_fails(pcclAwaitAsyncReduce(&wrong, NULL), pcclInvalidArgument, "tag 9");
	fake_serve(&oa, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&ha, NULL));
	fx_assert_fails(pcclAwaitAsyncReduce(&ha, NULL), pcclInvalidArgument, "awaited already");
	bf_assert_result(&a);
	fake_serve(&ob, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&hb, NULL));
	bf_assert_result(&b);
	/* A tag is free again after its operation was awaited. */
	ha = bf_launch(&a, 7);
	oa = fake_take(fx_agent);
	fake_serve(&oa, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&ha, NULL));
	bf_free(&a);
	bf_free(&b);
}
END_TEST

enum { MANY = 60 }; /* operations that are launched at once */

static void shuffle(struct tl_rng *rng, unsigned *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = i;
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)tl_range(rng, 0, i - 1), t = v[j];

		v[j] = v[i - 1];
		v[i - 1] = t;
	}
}

/* Many operations end in one order and are awaited in another. */
START_TEST(many_operations_can_end_and_be_awaited_in_any_order)
{
	struct buffers b[MANY];
	struct tl_rng rng = tl_rng_new(4);
	pcclAsyncReduceOp_t h[MANY];
	struct fake_op op[MANY];
	unsigned order[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		b[i] = bf_new((enum placement)(i % PLACEMENTS), 5000 + 777 * i, i);
		h[i] = bf_launch(&b[i], 100 + i);
		op[i] = fake_take(fx_agent);
		ck_assert_uint_eq(op[i].sqe.tag, 100 + i);
	}
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "60 operations");
	fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "60 operations");
	shuffle(&rng, order, MANY);
	for (unsigned i = 0; i < MANY; i++)
		fake_serve(&op[order[i]], bf_mode(b[order[i]].placement));
	shuffle(&rng, order, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h[order[i]], NULL));
		bf_assert_result(&b[order[i]]);
	}
	for (unsigned i = 0; i < MANY; i++)
		bf_free(&b[i]);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
}
END_TEST

/* When all sizes have been used, the agent is asked neither for memory nor for mappings. */
START_TEST(repeated_operations_ask_the_agent_for_nothing)
{
	struct buffers b[4];
	unsigned allocs = 0, maps = 0;

	fake_asked(fx_agent);
	for (unsigned i = 0; i < 4; i++)
		b[i] = bf_new(STAGED, 100000 + 50000 * i, i);
	for (unsigned round = 0; round < 50; round++) {
		pcclAsyncReduceOp_t h[4];

		for (unsigned i = 0; i < 4; i++)
			h[i] = bf_launch(&b[(i + round) % 4], i);
		for (unsigned i = 0; i < 4; i++) {
			struct fake_op op = fake_take(fx_agent);

			fake_serve(&op, SHM_RESULT_AREA);
		}
		for (unsigned i = 0; i < 4; i++)
			fx_assert_succeeds(pcclAwaitAsyncReduce(&h[i], NULL));
		if (round == 10) {
			allocs = fake_seen(fx_agent, WL_REGION_ALLOC);
			maps = fake_seen(fx_agent, WL_REGION_MAP);
		}
	}
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_ALLOC), allocs);
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_MAP), maps);
	for (unsigned i = 0; i < 4; i++)
		bf_free(&b[i]);
	/* All staging memory is freed with the communicator. */
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	ck_assert_uint_eq(fake_seen(fx_agent, WL_REGION_FREE), allocs);
	fx_comm = fx_new_comm();
}
END_TEST

START_TEST(refused_staging_memory_fails_only_the_call)
{
	struct buffers b = bf_new(STAGED, 100000, 1);
	pcclReduceDescriptor_t d = bf_descriptor(b.bytes, 1);

	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_REFUSE, pcclOutOfMemory, "the limit is 1 GiB");
	fx_assert_fails(pcclAllReduce(b.send, b.recv, &d, fx_comm, NULL), pcclOutOfMemory, "1 GiB");
	fake_script(fx_agent, WL_REGION_ALLOC, FAKE_ANSWER, 0, NULL);
	fx_assert_succeeds(pcclUpdateTopology(fx_comm));
	bf_run(&b, 1, SHM_RESULT_AREA);
	bf_free(&b);
}
END_TEST

START_TEST(registered_memory_in_use_cannot_be_freed)
{
	struct buffers b = bf_new(REGISTERED_IN_PLACE, 4096, 1);
	pcclAsyncReduceOp_t h = bf_launch(&b, 1);
	struct fake_op op = fake_take(fx_agent);
	void *p;

	fx_assert_fails(pcclMemFree(b.region), pcclInvalidUsage, "in flight");
	fx_assert_fails(pcclMemFree((char *)b.region + 8), pcclInvalidArgument, "not the start");
	fx_assert_fails(pcclMemFree(b.plain), pcclInvalidArgument, "not the start");
	fake_serve(&op, SHM_RESULT_UNDO);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_free(&b);
	fx_assert_succeeds(pcclMemFree(NULL));
	fx_assert_fails(pcclMemAlloc(0, &p), pcclInvalidArgument, "size");
	fx_assert_fails(pcclMemAlloc(SIZE_MAX, &p), pcclInvalidArgument, "size");
	fx_assert_fails(pcclMemAlloc(1, NULL), pcclInvalidArgument, "ptr_out");
}
END_TEST

/* Regions are found by address, while others are allocated and freed. */
START_TEST(regions_are_found_by_address)
{
	enum { N = 40, SIZE = 10000 };
	pcclReduceDescriptor_t d = bf_descriptor(100, 1);
	struct tl_rng rng = tl_rng_new(8);
	uint8_t *region[N] = {NULL};
	void *p;

	for (unsigned i = 0; i < 400; i++) {
		unsigned k = (unsigned)tl_range(&rng, 0, N - 1);
		size_t off = (size_t)tl_range(&rng, 0, SIZE - 1);
		pcclAsyncReduceOp_t h;
		struct fake_op op;

		if (!region[k]) {
			fx_assert_succeeds(pcclMemAlloc(SIZE, &p));
			region[k] = p;
			continue;
		}
		if (tl_range(&rng, 0, 2) == 0) {
			fx_assert_succeeds(pcclMemFree(region[k]));
			region[k] = NULL;
			continue;
		}
		d.count = (size_t)tl_range(&rng, 1, SIZE - off);
		fx_assert_succeeds(
			pcclAllReduceAsync(region[k] + off, region[k] + off, &d, fx_comm, &h));
		op = fake_take(fx_agent);
		ck_assert_uint_eq(op.sqe.flags,
			SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED | SHM_SQE_MAIN);
		ck_assert_uint_eq(op.sqe.in_off, off);
		fake_serve(&op, SHM_RESULT_UNDO);
		fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	}
	for (unsigned i = 0; i < N; i++)
		fx_assert_succeeds(pcclMemFree(region[i]));
}
END_TEST

START_TEST(unaligned_operands_in_registered_memory_are_staged)
{
	pcclReduceDescriptor_t d = bf_descriptor(10, 1);
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	void *p;

	fx_assert_succeeds(pcclMemAlloc(4096, &p));
	d.src_descriptor.datatype = pcclFloat;
	fx_assert_succeeds(pcclAllReduceAsync((char *)p + 2, (char *)p + 2, &d, fx_comm, &h));
	op = fake_take(fx_agent);
	ck_assert_uint_eq(op.sqe.flags, SHM_SQE_MAIN);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	ck_assert_uint_eq(((uint8_t *)p)[1], 0);
	ck_assert_uint_eq(((uint8_t *)p)[2], FAKE_XOR);
	ck_assert_uint_eq(((uint8_t *)p)[41], FAKE_XOR);
	ck_assert_uint_eq(((uint8_t *)p)[42], 0);
	fx_assert_succeeds(pcclMemFree(p));
}
END_TEST

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 60 };

static void *serve_all(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < THREADS * ROUNDS; i++) {
		struct fake_op op = fake_take(fx_agent);

		fake_serve(&op, op.out ? SHM_RESULT_UNDO : SHM_RESULT_AREA);
	}
	return NULL;
}

static void *reduce_much(void *arg)
{
	pcclComm_t *c = fx_new_comm();
	unsigned salt = (unsigned)(uintptr_t)arg;

	fx_assert_succeeds(pcclConnect(c));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct buffers b = bf_new(
			(enum placement)((i + salt) % PLACEMENTS), 1 + 997 * ((i * salt) % 60), i);
		pcclReduceDescriptor_t d = bf_descriptor(b.bytes, i);

		fx_assert_succeeds(pcclAllReduce(b.send, b.recv, &d, c, NULL));
		bf_assert_result(&b);
		bf_free(&b);
	}
	fx_assert_succeeds(pcclDestroyCommunicator(c));
	return NULL;
}

START_TEST(communicators_of_several_threads_work_at_once)
{
	pthread_t server, t[THREADS];

	ck_assert_int_eq(pthread_create(&server, NULL, serve_all, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, reduce_much, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_join(server, NULL);
}
END_TEST

/* A thread that is not the main thread. It meets the main thread at a barrier. */
struct worker {
	struct buffers b;
	pthread_barrier_t meet;
	pthread_t thread;
	pcclAsyncReduceOp_t h;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	pcclReduceDescriptor_t d = bf_descriptor(w->b.bytes, 2);
	pcclReduceOpDescriptor_t several = {w->b.send, w->b.recv, d};
	pcclAsyncReduceOp_t extra;

	w->h = bf_launch(&w->b, 1);
	pthread_barrier_wait(&w->meet); /* the operation was launched */
	pthread_barrier_wait(&w->meet); /* the main thread has tried all its calls */
	fx_assert_succeeds(pcclAwaitAsyncReduce(&w->h, NULL));
	bf_assert_result(&w->b);
	pthread_barrier_wait(&w->meet); /* the operation was awaited */
	pthread_barrier_wait(&w->meet); /* the main thread is voting */
	fx_assert_fails(pcclAllReduceAsync(w->b.send, w->b.recv, &d, fx_comm, &extra),
		pcclInvalidUsage, "pcclUpdateTopology is in progress in the main thread");
	fx_assert_fails(pcclAllReduce(w->b.send, w->b.recv, &d, fx_comm, NULL), pcclInvalidUsage,
		"pcclUpdateTopology is in progress in the main thread");
	fx_assert_fails(pcclAllReduceMultipleWithRetry(&several, 1, fx_comm, NULL, 1),
		pcclInvalidUsage, "pcclUpdateTopology is in progress in the main thread");
	return NULL;
}

/* Meets the worker when the main thread is voting. Lets the vote end after the worker. */
static void *release_vote(void *arg)
{
	struct worker *w = arg;

	fake_await_seen(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), 1);
	pthread_barrier_wait(&w->meet);
	pthread_join(w->thread, NULL);
	fake_release(fx_agent);
	return NULL;
}

START_TEST(another_thread_may_launch_and_await)
{
	struct worker w = {.b = bf_new(STAGED_IN_PLACE, 300000, 1)};
	pcclReduceDescriptor_t d = bf_descriptor(10, 7);
	pcclReduceOpDescriptor_t several = {w.b.send, w.b.send, d};
	pcclAsyncReduceOp_t h;
	struct fake_op op;
	char buf[10] = {0};
	int value = 0;
	bool flag;

	pthread_barrier_init(&w.meet, NULL, 2);
	ck_assert_int_eq(pthread_create(&w.thread, NULL, work, &w), 0);
	op = fake_take(fx_agent);
	pthread_barrier_wait(&w.meet);
	fx_assert_succeeds(pcclArePeersPending(fx_comm, &flag));
	fx_assert_succeeds(pcclGetAttribute(fx_comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &value));
	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "1 operations");
	fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidUsage,
		"operations of another thread");
	fx_assert_fails(pcclAllReduceAsync(buf, buf, &d, fx_comm, &h), pcclInvalidUsage,
		"operations of another thread");
	fx_assert_fails(pcclAllReduceMultipleWithRetry(&several, 1, fx_comm, NULL, 1),
		pcclInvalidUsage, "operations of another thread");
	fx_assert_fails(
		pcclAwaitAsyncReduce(&w.h, NULL), pcclInvalidUsage, "the thread that started it");
	pthread_barrier_wait(&w.meet);
	while (atomic_load(&op.slot->wait) == SHM_WAIT_AWAKE)
		sched_yield();
	fx_assert_fails(pcclDestroyCommunicator(fx_comm), pcclInvalidUsage, "another thread");
	fake_serve(&op, SHM_RESULT_AREA);
	pthread_barrier_wait(&w.meet);
	fake_script(fx_agent, FAKE_VOTE(WIRE_TOPOLOGY), FAKE_HOLD, 0, NULL);
	{
		pthread_t release;

		ck_assert_int_eq(pthread_create(&release, NULL, release_vote, &w), 0);
		fx_assert_succeeds(pcclUpdateTopology(fx_comm));
		pthread_join(release, NULL);
	}
	bf_free(&w.b);
}
END_TEST

static void *block(void *arg)
{
	struct worker *w = arg;
	pcclReduceDescriptor_t d = bf_descriptor(w->b.bytes, 1);
	pcclReduceOpDescriptor_t several = {w->b.send, w->b.recv, d};

	fx_assert_fails(pcclUpdateTopology(fx_comm), pcclInvalidUsage, "main thread");
	fx_assert_succeeds(pcclAllReduce(w->b.send, w->b.recv, &d, fx_comm, NULL));
	bf_assert_result(&w->b);
	pthread_barrier_wait(&w->meet);
	memset(w->b.recv, OLD_RECV, w->b.bytes);
	fx_assert_succeeds(pcclAllReduceMultipleWithRetry(&several, 1, fx_comm, NULL, 1));
	bf_assert_result(&w->b);
	return NULL;
}

/* While the other thread blocks, the main thread may ask for pending peers. Its calls that would
 * start or end something are refused. */
START_TEST(another_thread_may_make_blocking_calls)
{
	struct worker w = {.b = bf_new(STAGED, 300000, 1)};
	pcclReduceDescriptor_t d = bf_descriptor(10, 7);
	char buf[10] = {0};

	pthread_barrier_init(&w.meet, NULL, 2);
	ck_assert_int_eq(pthread_create(&w.thread, NULL, block, &w), 0);
	for (int k = 0; k < 2; k++) {
		struct fake_op op = fake_take(fx_agent);
		bool flag;

		fx_assert_succeeds(pcclArePeersPending(fx_comm, &flag));
		fx_assert_fails(pcclUpdateTopology(fx_comm), pcclPendingAsyncOps, "1 operations");
		fx_assert_fails(pcclConnect(fx_comm), pcclInvalidUsage, "1 operations");
		fx_assert_fails(pcclAllReduce(buf, buf, &d, fx_comm, NULL), pcclInvalidUsage,
			"operations of another thread");
		fake_serve(&op, SHM_RESULT_AREA);
		if (k == 0)
			pthread_barrier_wait(&w.meet);
	}
	pthread_join(w.thread, NULL);
	bf_free(&w.b);
}
END_TEST

static void *launch_and_end(void *arg)
{
	bf_launch(arg, 1);
	return NULL;
}

static void *try_to_launch(void *arg)
{
	struct buffers *b = arg;
	pcclReduceDescriptor_t d = bf_descriptor(b->bytes, 2);
	pcclAsyncReduceOp_t h = {.comm = fx_comm, .tag = 1};

	fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclInvalidUsage,
		"another thread started this operation");
	fx_assert_fails(pcclAllReduceAsync(b->send, b->recv, &d, fx_comm, &h), pcclInvalidUsage,
		"operations of another thread");
	return NULL;
}

/* The C library may give both threads the same stack. Then they also have the same pthread_t. */
START_TEST(a_new_thread_differs_from_one_that_has_ended)
{
	struct buffers b = bf_new(STAGED, 1000, 1), other = bf_new(STAGED, 1000, 2);
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, launch_and_end, &b), 0);
	pthread_join(t, NULL);
	ck_assert_int_eq(pthread_create(&t, NULL, try_to_launch, &other), 0);
	pthread_join(t, NULL);
	fx_assert_succeeds(pcclDestroyCommunicator(fx_comm));
	fx_comm = fx_new_comm();
	bf_free(&b);
	bf_free(&other);
}
END_TEST

/* Returns the algorithm of the operation in its submission. */
static uint32_t submitted_algorithm(const pcclReduceDescriptor_t *d)
{
	static float send[8], recv[8];
	struct fake_op op;
	pcclAsyncReduceOp_t h;

	fx_assert_succeeds(pcclAllReduceAsync(send, recv, d, fx_comm, &h));
	op = fake_take(fx_agent);
	fake_serve(&op, SHM_RESULT_AREA);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	return op.sqe.quant_algo;
}

static pcclReduceDescriptor_t quantized(uint64_t tag)
{
	return (pcclReduceDescriptor_t){.count = 8,
		.tag = tag,
		.src_descriptor.datatype = pcclFloat,
		.quantization_options = {pcclInt8, pcclQuantMinMax}};
}

START_TEST(error_feedback_is_set_for_each_tag)
{
	const uint32_t with = pcclQuantMinMax | WIRE_QUANT_FEEDBACK;
	pcclReduceDescriptor_t d;

	fx_assert_fails(pcclSetErrorFeedback(NULL, 1, true), pcclInvalidArgument, "NULL");
	/* Sets error feedback for many tags, out of order, and twice for each tag. */
	for (uint64_t i = 0; i < 200; i++)
		fx_assert_succeeds(pcclSetErrorFeedback(fx_comm, i * 37 % 100 * 2, true));
	for (uint64_t tag = 0; tag < 200; tag++) {
		d = quantized(tag);
		ck_assert_uint_eq(
			submitted_algorithm(&d), tag % 2 == 0 ? with : (uint32_t)pcclQuantMinMax);
	}
	d = quantized(10);
	d.quantization_options.algorithm = pcclQuantNone;
	ck_assert_uint_eq(submitted_algorithm(&d), pcclQuantNone);
	for (int i = 0; i < 2; i++)
		fx_assert_succeeds(pcclSetErrorFeedback(fx_comm, 10, false));
	for (uint64_t tag = 8; tag <= 12; tag += 2) {
		d = quantized(tag);
		ck_assert_uint_eq(
			submitted_algorithm(&d), tag != 10 ? with : (uint32_t)pcclQuantMinMax);
	}
	d = quantized(8);
	d.op = pcclAvg;
	ck_assert_uint_eq(submitted_algorithm(&d), with);
}
END_TEST

START_TEST(error_feedback_is_only_for_sum_and_average)
{
	pcclReduceDescriptor_t d = quantized(5);
	pcclAsyncReduceOp_t h;
	float x[8] = {0};

	fx_assert_succeeds(pcclSetErrorFeedback(fx_comm, 5, true));
	for (d.op = pcclProd; d.op <= pcclMin; d.op++) {
		/* The launch succeeds, so that the other peers get the error, too. */
		fx_assert_succeeds(pcclAllReduceAsync(x, x, &d, fx_comm, &h));
		fx_assert_fails(pcclAwaitAsyncReduce(&h, NULL), pcclInvalidArgument,
			"tag 5 has error feedback");
	}
	/* The number of an algorithm cannot contain the flag for error feedback. */
	d = quantized(6);
	d.quantization_options.algorithm =
		(pcclQuantizationAlgorithm_t)(pcclQuantMinMax | WIRE_QUANT_FEEDBACK);
	fx_assert_fails(pcclAllReduce(x, x, &d, fx_comm, NULL), pcclInvalidArgument,
		"there is no quantization algorithm 32769");
}
END_TEST

Suite *reduce_suite(void)
{
	Suite *s = suite_create("reduce");
	TCase *tc = tcase_create("reduce"), *threads = tcase_create("threads");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, arguments_are_checked);
	tcase_add_test(tc, an_operation_of_zero_elements_succeeds_at_once);
	tcase_add_test(tc, a_launch_fails_at_once_if_the_peer_is_alone);
	tcase_add_test(tc, only_connected_communicators_can_reduce);
	tcase_add_loop_test(tc, results_arrive_in_all_kinds_of_memory, 0, PLACEMENTS);
	tcase_add_loop_test(tc, registered_outputs_can_get_results_from_an_area, 0, PLACEMENTS);
	tcase_add_loop_test(tc, every_type_has_its_size, 0, 12);
	tcase_add_test(tc, error_feedback_is_set_for_each_tag);
	tcase_add_test(tc, error_feedback_is_only_for_sum_and_average);
	tcase_add_test(tc, operands_are_copied_in_ring_order);
	tcase_add_test(tc, tags_name_operations);
	tcase_add_test(tc, many_operations_can_end_and_be_awaited_in_any_order);
	tcase_add_test(tc, repeated_operations_ask_the_agent_for_nothing);
	tcase_add_test(tc, refused_staging_memory_fails_only_the_call);
	tcase_add_test(tc, registered_memory_in_use_cannot_be_freed);
	tcase_add_test(tc, regions_are_found_by_address);
	tcase_add_test(tc, unaligned_operands_in_registered_memory_are_staged);
	suite_add_tcase(s, tc);
	tcase_add_unchecked_fixture(threads, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(threads, fx_setup_comm, fx_teardown_comm);
	tcase_set_timeout(threads, 60);
	tcase_add_loop_test(threads, blocking_calls_succeed_while_the_agent_works, 0, PLACEMENTS);
	tcase_add_test(threads, communicators_of_several_threads_work_at_once);
	tcase_add_test(threads, another_thread_may_launch_and_await);
	tcase_add_test(threads, another_thread_may_make_blocking_calls);
	tcase_add_test(threads, a_new_thread_differs_from_one_that_has_ended);
	suite_add_tcase(s, threads);
	return s;
}
