/* SPDX-License-Identifier: MIT
 *
 * Asks the agent for regions. A mapping belongs to the caller. Any thread. All functions may wait
 * for the agent, but never for other processes: if the agent does not answer within its lease, the
 * session ends, and so does the wait (session.h).
 */
#ifndef PCCL_SHIM_REGION_H
#define PCCL_SHIM_REGION_H

#include "libpccl-shim/map.h"
#include "proto/wire_local.h"

struct pccl_session;

/* Asks for a region of at least `size` bytes and maps `size` bytes. Forked children inherit only
 * mappings of WL_REGION_REGISTERED. ret_fd: NULL, or receives the memory's descriptor. Errors as
 * with pccl_session_call and pccl_map_fd. */
pcclResult_t pccl_region_alloc(struct pccl_session *s, uint64_t size, enum wl_region_use use,
	struct pccl_map *ret, int *ret_fd);
/* Maps a region that the agent has named to the communicator, for reading. This is the result
 * region of a completion, or memory of another peer that has the elected shared state. */
pcclResult_t pccl_region_named(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps the region. If the session is alive, also gives the region back to the agent. Errors are
 * ignored. */
void pccl_region_free(struct pccl_session *s, struct pccl_map *m);

#endif
