/* SPDX-License-Identifier: MIT
 *
 * The schedule of measurements: which hosts send to which hosts at the same time. A function
 * without state. Callable from any thread.
 */
#ifndef CCM_SCHEDULE_H
#define CCM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* A link that is measured, between two hosts of 0 .. hosts - 1. */
struct ccm_edge {
	uint32_t from, to;
	uint32_t round; /* set by ccm_schedule: from 0 */
	bool measured;  /* belongs to the caller */
};

/* Assigns the edges, which all differ, to rounds. In a round no host sends to two hosts, and none
 * receives from two. No two hosts send to each other, because bytes in the queues of the network
 * would delay the acknowledgements. Reorders the edges by round. There are at most 32,767 hosts.
 * Returns the number of rounds. For all edges between the hosts it is hosts - 1, or hosts if this
 * number is even. Otherwise it is at most twice the most edges of one host. */
uint32_t ccm_schedule(struct ccm_edge *v, uint32_t n, uint32_t hosts);

#endif
