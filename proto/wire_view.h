/* SPDX-License-Identifier: MIT
 *
 * The numbers behind pcclGetAttribute. The application receives them with the answer to each call,
 * including the ends of operations. They describe the moment at which the call ended for all peers.
 */
#ifndef WIRE_VIEW_H
#define WIRE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct wire_view {
	/* The view with the higher id is the later one; 0: the answer contains no view, and the
	 * previous view stays valid. */
	uint64_t view_id;
	uint32_t global;  /* accepted peers of the run */
	uint32_t group;   /* peers of this peer's group */
	uint32_t groups;  /* groups with accepted peers */
	uint32_t largest; /* peers of the largest group */
};

#endif
