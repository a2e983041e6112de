/* SPDX-License-Identifier: MIT
 *
 * Memory shared with the agent: mapping what the agent hands out, and the registry of what
 * pcclMemAlloc gave to the application.
 */
#ifndef PCCL_SHIM_REGION_H
#define PCCL_SHIM_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpccl-shim/error.h"
#include "proto/wire_local.h"

struct pccl_session;

/* A mapping. */
struct pccl_map {
	uint64_t region; /* the agent's number */
	uint8_t *base;
	size_t size;
};

/* Asks for a region of at least size bytes and maps that many. Only those of
 * WL_REGION_REGISTERED are inherited by forked children. ret_fd: NULL, or receives the memory's
 * descriptor. */
pcclResult_t pccl_map_alloc(struct pccl_session *s, uint64_t size, enum wl_region_use use,
	struct pccl_map *ret, int *ret_fd);
/* Maps memory of a result region; the descriptor stays the caller's. Not inherited by forked
 * children. */
pcclResult_t pccl_map_fd(int fd, uint64_t region, uint64_t size, struct pccl_map *ret);
/* Maps what the agent has named to the communicator, to be read: the result region of a completion,
 * or memory of another peer that has the shared state that is being synchronized. */
pcclResult_t pccl_map_named(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps; with a session that is alive also gives the region back. Errors do not matter here. */
void pccl_map_free(struct pccl_session *s, struct pccl_map *m);
void pccl_map_drop(struct pccl_map *m);

/* Memory of pcclMemAlloc. Its descriptor is kept, to present it to the next agent. */
struct pccl_registered;

/* Presents all of it to a new session, which knows none. What is refused is ordinary memory there:
 * operations copy it. Fails only with pcclInterrupted, by the thread's ender. */
pcclResult_t pccl_region_adopt(struct pccl_session *s);

/*
 * The registered region of this session that [p, p + len) lies in, or NULL. It is in use until
 * pccl_registered_put; *ret_region and *ret_off tell the agent what is meant.
 */
struct pccl_registered *pccl_registered_get(const struct pccl_session *s, const void *p, size_t len,
	uint64_t *ret_region, uint64_t *ret_off);
void pccl_registered_put(struct pccl_registered *r); /* NULL is fine */

/* In a forked child. */
void pccl_region_after_fork(void);

#endif
