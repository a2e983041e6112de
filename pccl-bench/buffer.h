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
	const struct bch_api *registered; /* the library that allocated `memory`; NULL: ordinary
					   * memory */
	uint8_t *memory;
	uint8_t *device;     /* memory of a device, which the library gets instead of `memory`; or
			      * NULL */
	size_t size, stride; /* bytes of all buffers; bytes from one buffer to the next */
	uint32_t lanes;
	bool in_place;
};

/* Allocates `lanes` operands of `bytes` each and, unless in_place is set, the same number of
 * results. registered NULL: ordinary memory. Returns pcclSuccess, the error of pcclMemAlloc, or
 * pcclOutOfMemory. */
pcclResult_t bch_buffers_make(struct bch_buffers *ret, uint32_t lanes, size_t bytes, bool in_place,
	const struct bch_api *registered);
pcclResult_t bch_buffers_free(struct bch_buffers *b);

/* Return the buffers that the library gets. */
void *bch_given_operand(const struct bch_buffers *b, uint32_t lane);
void *bch_given_result(const struct bch_buffers *b, uint32_t lane);

/* Return the buffers as the CPU sees them. If the library gets memory of a device, this is a copy
 * of it. */

void *bch_operand(const struct bch_buffers *b, uint32_t lane);
void *bch_result_of(const struct bch_buffers *b, uint32_t lane);

#endif
