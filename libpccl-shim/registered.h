/* SPDX-License-Identifier: MIT
 *
 * The registry of what pcclMemAlloc gave to the application: memory that the agent can use where it
 * lies. Any thread.
 */
#ifndef PCCL_SHIM_REGISTERED_H
#define PCCL_SHIM_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

#include "libpccl-shim/error.h"

struct pccl_session;

/* The registry's. Its descriptor is kept, to present it to the next agent. */
struct pccl_registered;

/* Makes a region of so many bytes, known to this session. *ret is its memory, the application's
 * until pccl_registered_remove. Errors as with pccl_region_alloc. */
pcclResult_t pccl_registered_add(struct pccl_session *s, size_t size, void **ret);
/* Gives back the region that begins at p. pcclInvalidArgument: there is none; pcclInvalidUsage: it
 * is in use. */
pcclResult_t pccl_registered_remove(const void *p);

/* Presents all of it to a new session, which knows none. What is refused is ordinary memory there:
 * operations copy it. Fails only with pcclInterrupted, by the thread's ender. */
pcclResult_t pccl_registered_adopt(struct pccl_session *s);

/*
 * The registered region of this session that [p, p + len) lies in, or NULL. It is in use until
 * pccl_registered_put; *ret_region and *ret_off tell the agent what is meant.
 */
struct pccl_registered *pccl_registered_get(const struct pccl_session *s, const void *p, size_t len,
	uint64_t *ret_region, uint64_t *ret_off);
void pccl_registered_put(struct pccl_registered *r); /* NULL is fine */

/* In a forked child. */
void pccl_registered_after_fork(void);

#endif
