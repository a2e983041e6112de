/* SPDX-License-Identifier: MIT
 *
 * Result regions that the agent has handed over unasked and nobody has taken yet. The session's,
 * which calls all of it with its lock held. Mappings are owned here until they are taken. No
 * function sets a sentence that anybody reads: what fails is asked for again.
 */
#ifndef PCCL_SHIM_OFFER_H
#define PCCL_SHIM_OFFER_H

#include "libpccl-shim/map.h"
#include "proto/wire_local.h"

#define PCCL_OFFERS_MAX 65536u /* more than there can be operations in flight */

struct pccl_offer;

struct pccl_offers {
	struct pccl_offer *first;
	unsigned n;
};

/* Maps it; the descriptor stays the caller's. What cannot be mapped now is asked for when it is
 * needed. False: there are too many. */
bool pccl_offers_add(struct pccl_offers *o, const struct wl_reply *offer, int fd);
/* The one of this communicator with this number; false: there is none. */
bool pccl_offers_take(struct pccl_offers *o, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps those of the communicator, or all. */
void pccl_offers_drop(struct pccl_offers *o, uint32_t comm);
void pccl_offers_free(struct pccl_offers *o);

#endif
