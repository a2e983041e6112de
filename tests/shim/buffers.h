/* SPDX-License-Identifier: MIT
 *
 * Operands in all kinds of memory, and checks of their contents after an operation.
 */
#ifndef BUFFERS_H
#define BUFFERS_H

#include <pthread.h>

#include "tests/shim/fixture.h"

enum placement {
	STAGED = 0,      /* neither buffer is registered */
	STAGED_IN_PLACE, /* one ordinary buffer for both */
	SEND_REGISTERED,
	RECV_REGISTERED,
	BOTH_REGISTERED, /* both in one region, at odd offsets */
	REGISTERED_IN_PLACE,
	PLACEMENTS
};

#define OLD_RECV 0x3cu

struct buffers {
	enum placement placement;
	size_t bytes;
	uint8_t *send, *recv;
	uint8_t *operand; /* a copy of the original operand */
	void *region, *plain;
};

static inline bool bf_recv_registered(enum placement p)
{
	return p == RECV_REGISTERED || p == BOTH_REGISTERED || p == REGISTERED_IN_PLACE;
}

static inline bool bf_in_place(enum placement p)
{
	return p == STAGED_IN_PLACE || p == REGISTERED_IN_PLACE;
}

static inline enum shm_result_mode bf_mode(enum placement p)
{
	return bf_recv_registered(p) ? SHM_RESULT_UNDO : SHM_RESULT_AREA;
}

static inline struct buffers bf_new(enum placement placement, size_t bytes, uint64_t salt)
{
	struct buffers b = {.placement = placement, .bytes = bytes};
	struct tl_rng rng = tl_rng_new(salt);
	size_t gap = (bytes + 64) / 8 * 8 + 8;

	b.plain = malloc(2 * gap);
	b.operand = malloc(bytes);
	ck_assert_int_eq(pcclMemAlloc(2 * gap, &b.region), pcclSuccess);
	b.send = (uint8_t *)(placement >= BOTH_REGISTERED || placement == SEND_REGISTERED
				     ? b.region
				     : b.plain) +
		 8;
	b.recv = (uint8_t *)(bf_recv_registered(placement) ? b.region : b.plain) + gap;
	if (bf_in_place(placement))
		b.recv = b.send;
	memset(b.recv, OLD_RECV, bytes);
	for (size_t i = 0; i < bytes; i++)
		b.send[i] = (uint8_t)tl_u64(&rng);
	memcpy(b.operand, b.send, bytes);
	return b;
}

static inline void bf_free(struct buffers *b)
{
	free(b->plain);
	free(b->operand);
	ck_assert_int_eq(pcclMemFree(b->region), pcclSuccess);
}

static inline void bf_assert_result(const struct buffers *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		if (b->recv[i] != (b->operand[i] ^ FAKE_XOR))
			ck_abort_msg(
				"placement %d: byte %zu of the result is wrong", b->placement, i);
	if (!bf_in_place(b->placement))
		ck_assert_int_eq(memcmp(b->send, b->operand, b->bytes), 0);
}

static inline void bf_assert_operand(const struct buffers *b)
{
	ck_assert_msg(memcmp(b->send, b->operand, b->bytes) == 0,
		"placement %d: the operand has changed", b->placement);
}

static inline void bf_assert_untouched(const struct buffers *b)
{
	bf_assert_operand(b);
	for (size_t i = 0; i < b->bytes && !bf_in_place(b->placement); i++)
		if (b->recv[i] != OLD_RECV)
			ck_abort_msg(
				"placement %d: byte %zu of recvbuff has changed", b->placement, i);
}

static inline pcclReduceDescriptor_t bf_descriptor(size_t bytes, uint64_t tag)
{
	return (pcclReduceDescriptor_t){.count = bytes,
		.op = pcclSum,
		.tag = tag,
		.src_descriptor = {.datatype = pcclUint8}};
}

static inline pcclAsyncReduceOp_t bf_launch(struct buffers *b, uint64_t tag)
{
	pcclReduceDescriptor_t d = bf_descriptor(b->bytes, tag);
	pcclAsyncReduceOp_t handle;

	fx_assert_succeeds(pcclAllReduceAsync(b->send, b->recv, &d, fx_comm, &handle));
	return handle;
}

/* Runs an operation that succeeds, from its launch to its end. Returns the agent's record of it. */
static inline struct fake_op bf_run(struct buffers *b, uint64_t tag, enum shm_result_mode mode)
{
	pcclAsyncReduceOp_t h = bf_launch(b, tag);
	struct fake_op op = fake_take(fx_agent);

	fake_serve(&op, mode);
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(b);
	return op;
}

static inline void *bf_serve(void *arg)
{
	struct fake_op op = fake_take(fx_agent);

	fake_serve(&op, *(const enum shm_result_mode *)arg);
	return NULL;
}

/* Makes a blocking call that succeeds. A thread plays the agent meanwhile. */
static inline void bf_run_blocking(struct buffers *b, enum shm_result_mode mode)
{
	pcclReduceDescriptor_t d = bf_descriptor(b->bytes, 5);
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, bf_serve, &mode), 0);
	fx_assert_succeeds(pcclAllReduce(b->send, b->recv, &d, fx_comm, NULL));
	bf_assert_result(b);
	pthread_join(t, NULL);
}

/* A blocking call in a thread. */
struct bf_call {
	struct buffers *b;
	pcclResult_t result;
	char text[600];
	pthread_t thread;
};

static inline void *bf_block(void *arg)
{
	struct bf_call *call = arg;
	pcclReduceDescriptor_t d = bf_descriptor(call->b->bytes, 5);
	pcclReduceInfo_t info = {77, 77, 77};

	call->result = pcclAllReduce(call->b->send, call->b->recv, &d, fx_comm, &info);
	snprintf(call->text, sizeof call->text, "%s", pcclGetLastError());
	if (call->result != pcclSuccess)
		ck_assert_uint_eq(info.local_world_size, 77);
	return NULL;
}

static inline void bf_begin_call(struct bf_call *call, struct buffers *b)
{
	call->b = b;
	ck_assert_int_eq(pthread_create(&call->thread, NULL, bf_block, call), 0);
}

static inline void bf_end_call(struct bf_call *call, pcclResult_t result, const char *words)
{
	pthread_join(call->thread, NULL);
	ck_assert_int_eq(call->result, result);
	ck_assert_msg(strstr(call->text, words) != NULL, "\"%s\" does not contain \"%s\"",
		call->text, words);
}

#endif
