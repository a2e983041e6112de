/* SPDX-License-Identifier: MIT
 *
 * The common parts of the tests in which agents die and come back: operations of several segments.
 * The fake agent completes them, or only writes their results.
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

/* Writes the whole result, but does not complete the operation. */
static inline void rs_play_whole(struct fake_op *op, enum shm_result_mode mode)
{
	fake_begin(op, mode, 3, SEGMENT);
	fake_await_input(op, op->bytes);
	for (uint32_t i = 0; i < op->plan.n_segs; i++)
		fake_segment(op, i);
}

/* Runs an operation, so that the result regions of the first slots are mapped and large enough. */
static inline void rs_warm(enum placement p)
{
	struct buffers b = bf_new(p, BYTES + 1000, 99);

	rs_serve_next(&b, 99, 0);
	bf_free(&b);
}

#endif
