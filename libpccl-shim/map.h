/* SPDX-License-Identifier: MIT
 *
 * A mapping of memory that the agent has handed over. Its owner's; any thread.
 */
#ifndef PCCL_SHIM_MAP_H
#define PCCL_SHIM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpccl-shim/error.h"

struct pccl_map {
	uint64_t region; /* the agent's number */
	uint8_t *base;   /* NULL: none */
	size_t size;
};

/* Maps memory of a region; the descriptor stays the caller's. inherited: by forked children.
 * pcclOutOfMemory, or pcclInternalError for what is no such memory; *ret is set on success only. */
pcclResult_t pccl_map_fd(
	int fd, uint64_t region, uint64_t size, bool inherited, struct pccl_map *ret);
/* Unmaps, if there is a mapping. */
void pccl_map_drop(struct pccl_map *m);

#endif
