/* SPDX-License-Identifier: MIT
 *
 * Result regions that the agent has handed over unasked and nobody has taken yet. The session's,
 * which calls all of it with its lock held. Mappings are owned here until they are taken. No
 * function sets a sentence that anybody reads: what fails is asked for again.
 */
#ifndef PCCL_SHIM_HANDED_H
#define PCCL_SHIM_HANDED_H

#include "libpccl-shim/map.h"
#include "proto/wire_local.h"

#define PCCL_HANDED_MAX 65536u /* more than there can be operations in flight */

struct pccl_handed;

struct pccl_handed_list {
	struct pccl_handed *first;
	unsigned n;
};

/* Maps it; the descriptor stays the caller's. What cannot be mapped now is asked for when it is
 * needed. False: there are too many. */
bool pccl_handed_add(struct pccl_handed_list *o, const struct wl_reply *handed, int fd);
/* The one of this communicator with this number; false: there is none. */
bool pccl_handed_take(
	struct pccl_handed_list *o, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps those of the communicator, or all. */
void pccl_handed_drop(struct pccl_handed_list *o, uint32_t comm);
void pccl_handed_free(struct pccl_handed_list *o);

#endif
