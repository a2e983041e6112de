/* SPDX-License-Identifier: MIT
 *
 * Result regions that the agent has handed over without a request, and that no operation has taken
 * yet. The list belongs to the session, which calls all functions with its lock held. The list owns
 * the mappings until they are taken. Sentences that these functions set are not read: if a region
 * is missing here, the library asks the agent for it.
 */
#ifndef PCCL_SHIM_HANDED_H
#define PCCL_SHIM_HANDED_H

#include "libpccl-shim/map.h"
#include "proto/wire_local.h"

#define PCCL_HANDED_MAX 65536u /* more than the number of operations that can be in flight */

struct pccl_handed;

struct pccl_handed_list {
	struct pccl_handed *first;
	unsigned n;
};

/* Maps the region and adds it. The descriptor still belongs to the caller. A region that cannot be
 * mapped now is requested from the agent when it is needed. Returns false if there are too many
 * regions. */
bool pccl_handed_add(struct pccl_handed_list *o, const struct wl_reply *handed, int fd);
/* Takes this region of this communicator off the list. Returns false if the region is not there. */
bool pccl_handed_take(
	struct pccl_handed_list *o, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmap the regions of one communicator, or all regions. */
void pccl_handed_drop(struct pccl_handed_list *o, uint32_t comm);
void pccl_handed_free(struct pccl_handed_list *o);

#endif
