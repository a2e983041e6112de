/* SPDX-License-Identifier: MIT
 *
 * Regions of the agent, which is asked for them. A mapping is the caller's. Any thread; all may
 * wait for the agent as long as a request that needs nobody else.
 */
#ifndef PCCL_SHIM_REGION_H
#define PCCL_SHIM_REGION_H

#include "libpccl-shim/map.h"
#include "proto/wire_local.h"

struct pccl_session;

/* Asks for a region of at least size bytes and maps that many. Only those of
 * WL_REGION_REGISTERED are inherited by forked children. ret_fd: NULL, or receives the memory's
 * descriptor. Errors as with pccl_session_call and pccl_map_fd. */
pcclResult_t pccl_region_alloc(struct pccl_session *s, uint64_t size, enum wl_region_use use,
	struct pccl_map *ret, int *ret_fd);
/* Maps what the agent has named to the communicator, to be read: the result region of a completion,
 * or memory of another peer that has the shared state that is being synchronized. */
pcclResult_t pccl_region_named(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps; with a session that is alive also gives the region back. Errors do not matter here. */
void pccl_region_free(struct pccl_session *s, struct pccl_map *m);

#endif
