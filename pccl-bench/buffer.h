/* SPDX-License-Identifier: MIT
 *
 * The memory of a peer's operands and results.
 */
#ifndef BCH_BUFFER_H
#define BCH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pccl-bench/api.h"

struct bch_buffers {
	const struct bch_api *registered; /* whose memory it is; NULL: ordinary */
	uint8_t *memory;
	size_t size, stride; /* bytes; of all, and from one buffer to the next */
	uint32_t lanes;
	bool in_place;
};

/* As many operands, and unless in_place results, of `bytes` each. registered NULL: ordinary memory.
 * pcclSuccess, the error of pcclMemAlloc, or pcclOutOfMemory. */
pcclResult_t bch_buffers_make(struct bch_buffers *ret, uint32_t lanes, size_t bytes, bool in_place,
	const struct bch_api *registered);
pcclResult_t bch_buffers_free(struct bch_buffers *b);

void *bch_operand(const struct bch_buffers *b, uint32_t lane);
void *bch_result_of(const struct bch_buffers *b, uint32_t lane);

#endif
