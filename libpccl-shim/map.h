/* SPDX-License-Identifier: MIT
 *
 * A mapping of memory that the agent has handed over. A mapping belongs to the owner of its struct.
 * Any thread.
 */
#ifndef PCCL_SHIM_MAP_H
#define PCCL_SHIM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpccl-shim/error.h"

struct pccl_map {
	uint64_t region; /* the agent's number of the region */
	uint8_t *base;   /* NULL if there is no mapping */
	size_t size;
	/* For memory of a device (buf.h). NULL, or ends what `pin` has done. Returns false if it
	 * could not; then the addresses must not be used again. */
	bool (*unpin)(void *base);
	bool pinned; /* `pin` was called for this mapping */
};

/* Maps the memory of a region. The descriptor still belongs to the caller. inherited: whether
 * forked children inherit the mapping. Fails with pcclOutOfMemory, or with pcclInternalError if the
 * descriptor cannot be mapped; *ret is set on success only. */
pcclResult_t pccl_map_fd(
	int fd, uint64_t region, uint64_t size, bool inherited, struct pccl_map *ret);
/* Unmaps, if there is a mapping. No copy from or to the mapping may be under way. */
void pccl_map_drop(struct pccl_map *m);

#endif
