/* SPDX-License-Identifier: MIT
 *
 * The registry of the memory that pcclMemAlloc has given to the application. The agent uses this
 * memory directly, without a copy. Any thread.
 */
#ifndef PCCL_SHIM_REGISTERED_H
#define PCCL_SHIM_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

#include "libpccl-shim/error.h"

struct pccl_session;

/* A registered region; belongs to the registry. The registry keeps the region's descriptor, to
 * present it to the next agent. */
struct pccl_registered;

/* Makes a region of `size` bytes in this session. *ret is its memory, which belongs to the
 * application until pccl_registered_remove. Errors as with pccl_region_alloc. */
pcclResult_t pccl_registered_add(struct pccl_session *s, size_t size, void **ret);
/* Gives back the region that begins at `p`. Returns pcclInvalidArgument if there is no such region,
 * and pcclInvalidUsage if the region is in use. */
pcclResult_t pccl_registered_remove(const void *p);

/* Presents all regions to a new session. A region that the agent refuses becomes ordinary memory:
 * operations copy it. Fails only if the thread's ender ends the call, with pcclInterrupted. */
pcclResult_t pccl_registered_adopt(struct pccl_session *s);

/*
 * Returns the registered region of this session that contains [p, p + len), or NULL. The region is
 * in use until pccl_registered_put. *ret_region and *ret_off identify the memory to the agent.
 */
struct pccl_registered *pccl_registered_get(const struct pccl_session *s, const void *p, size_t len,
	uint64_t *ret_region, uint64_t *ret_off);
void pccl_registered_put(struct pccl_registered *r); /* NULL is fine */

/* Resets everything in a forked child. */
void pccl_registered_after_fork(void);

#endif
