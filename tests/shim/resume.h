/* SPDX-License-Identifier: MIT
 *
 * What the tests of agents that die and come back share: operations of several segments, played
 * as a whole or up to the moment before their end.
 */
#ifndef RESUME_H
#define RESUME_H

#include "tests/shim/buffers.h"

enum { BYTES = 100000, SEGMENT = CC_PLAN_SEGMENT_MIN };

static inline void rs_serve_next(struct buffers *b, uint64_t tag, uint64_t generation)
{
	pcclAsyncReduceOp_t h = bf_launch(b, tag);
	struct fake_op op = fake_take(fx_agent);

	ck_assert_uint_eq(op.sqe.generation, generation);
	fake_serve(&op, bf_mode(b->placement));
	fx_assert_succeeds(pcclAwaitAsyncReduce(&h, NULL));
	bf_assert_result(b);
}

/* All of the result is there, but nobody says so. */
static inline void rs_play_whole(struct fake_op *op, enum shm_result_mode mode)
{
	fake_begin(op, mode, 3, SEGMENT);
	fake_await_input(op, op->bytes);
	for (uint32_t i = 0; i < op->plan.n_segs; i++)
		fake_segment(op, i);
}

/* The result regions of the first slots are mapped from now on, and large enough. */
static inline void rs_warm(enum placement p)
{
	struct buffers b = bf_new(p, BYTES + 1000, 99);

	rs_serve_next(&b, 99, 0);
	bf_free(&b);
}

#endif
