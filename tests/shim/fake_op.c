/* SPDX-License-Identifier: MIT
 *
 * The fake agent's part in an all-reduce. The test's threads call these functions.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cc_futex.h"
#include "tests/shim/fake_state.h"

void fake_begin(struct fake_op *op, enum shm_result_mode mode, uint32_t hosts, uint32_t segment_max)
{
	struct shm_slot *s = op->slot;
	bool here = mode == SHM_RESULT_AREA || mode == SHM_RESULT_UNDO;
	uint64_t flags_off = here ? op->bytes : 0;

	if (cc_plan_init_shares(
		    &op->plan, op->sqe.count, op->esize, hosts, segment_max, &op->shares) < 0)
		abort();
	op->mode = mode;
	op->region = fake_result_region(op, flags_off + op->plan.n_segs);
	op->flags = (_Atomic uint8_t *)(void *)(op->area + flags_off);
	memset(op->area + flags_off, 0, op->plan.n_segs);
	s->hosts = hosts;
	s->segment_max = segment_max;
	s->shares = cc_shares_pack(&op->shares);
	s->flags_off_lo = (uint32_t)flags_off;
	s->flags_off_hi = (uint32_t)(flags_off >> 32);
	s->result_region = op->region;
	s->result_off = 0;
	s->seq = op->seq;
	s->local_world_size = 2;
	s->view = fake_view_now(op->f);
	atomic_store_explicit(&s->mode, mode, memory_order_release);
}

void fake_await_input(struct fake_op *op, uint64_t bytes)
{
	struct pollfd p = {.fd = op->data_bell, .events = POLLIN};
	uint64_t rung;

	if (op->sqe.flags & SHM_SQE_IN_REGISTERED)
		return;
	while (shm_slot_copied(op->slot) < bytes) {
		atomic_store(&op->slot->in_want, 1);
		if (shm_slot_copied(op->slot) >= bytes)
			break;
		if (poll(&p, 1, 10000) <= 0)
			abort(); /* the shim did not ring */
		(void)!read(op->data_bell, &rung, sizeof rung);
	}
}

void fake_await_asleep(struct fake_op *op, enum shm_wait how)
{
	while (atomic_load(&op->slot->wait) != (uint32_t)how)
		sched_yield();
}

void fake_reduce(uint8_t *to, const uint8_t *from, size_t n)
{
	uint64_t word;

	for (; n >= sizeof word; to += sizeof word, from += sizeof word, n -= sizeof word) {
		memcpy(&word, from, sizeof word);
		word ^= FAKE_XOR * UINT64_C(0x0101010101010101);
		memcpy(to, &word, sizeof word);
	}
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] ^ FAKE_XOR;
}

/* Returns the address for the result of the segment. */
static uint8_t *place_of(const struct fake_op *op, struct cc_span span)
{
	switch (op->mode) {
	case SHM_RESULT_UNDO:
	case SHM_RESULT_DIRECT:
		return op->out + span.off;
	case SHM_RESULT_STAGED:
		return op->in + span.off;
	default:
		return op->area + span.off;
	}
}

void fake_segment(struct fake_op *op, uint32_t seg)
{
	struct cc_span span = cc_plan_segment(&op->plan, seg);
	uint32_t window = op->sqe.window;
	const uint8_t *from = op->in + (window > 0 ? shm_window_off(window, seg) : span.off);
	uint8_t *to = place_of(op, span);

	if (op->mode == SHM_RESULT_UNDO) {
		memcpy(op->area + span.off, op->out + span.off, span.len);
		atomic_store(&op->flags[seg], 1);
	}
	fake_reduce(to, from, span.len);
	atomic_store(&op->flags[seg], 1);
	/* With SHM_RESULT_UNDO the result is already in the output, so the caller does not wait for
	 * segments. */
	if (op->mode != SHM_RESULT_UNDO && atomic_load(&op->slot->wait) == SHM_WAIT_SEGMENTS &&
		atomic_exchange(&op->slot->wait, SHM_WAIT_AWAKE) != SHM_WAIT_AWAKE)
		cc_futex_wake(&op->slot->wait, 1);
}

void fake_end(struct fake_op *op, uint32_t code, const char *text)
{
	uint64_t generation = fake_generation_now(op->f);
	struct wire_view view = fake_view_now(op->f);
	struct shm_slot *s = op->slot;

	pthread_mutex_lock(&op->f->lock); /* as in fake_sync_end */
	s->local_world_size = 2;
	s->tx_bytes = op->bytes;
	s->rx_bytes = 2 * op->bytes;
	s->generation = generation;
	s->view = view;
	s->code = code;
	snprintf(s->text, sizeof s->text, "%s", text ? text : "");
	pthread_mutex_unlock(&op->f->lock);
	atomic_store(&s->state, SHM_SLOT_DONE);
	if (atomic_exchange(&s->wait, SHM_WAIT_AWAKE) != SHM_WAIT_AWAKE)
		cc_futex_wake(&s->wait, 1);
}

void fake_serve(struct fake_op *op, enum shm_result_mode mode)
{
	bool window = op->sqe.window > 0;

	fake_begin(op, mode, window ? 1 : 2, window ? CC_PLAN_SEGMENT_MAX : CC_PLAN_SEGMENT_MIN);
	for (uint32_t i = 0; i < op->plan.n_segs; i++) {
		struct cc_span span = cc_plan_segment(&op->plan, i);

		fake_await_input(op, window ? span.off + span.len : op->bytes);
		fake_segment(op, i);
	}
	fake_end(op, 0, NULL);
}
