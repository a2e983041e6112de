/* SPDX-License-Identifier: MIT
 *
 * The schedule of measurements: which hosts send to which hosts at the same time. A function
 * without state. Callable from any thread.
 */
#ifndef CCM_SCHEDULE_H
#define CCM_SCHEDULE_H

#include <stdint.h>

/* A link that is measured, between two hosts of 0 .. hosts - 1. */
struct ccm_edge {
	uint32_t from, to;
	uint32_t round; /* set by ccm_schedule: from 0 */
};

/* Assigns the edges, which all differ, to rounds. In a round no host sends to two hosts, and none
 * receives from two. Reorders the edges by round. Returns the number of rounds: hosts - 1 for all
 * edges between the hosts, and otherwise less than twice the most edges of one host. */
uint32_t ccm_schedule(struct ccm_edge *v, uint32_t n, uint32_t hosts);

#endif
