/* SPDX-License-Identifier: MIT
 *
 * The numbers behind pcclGetAttribute. The application receives them with the answer of each call,
 * also of operations. They describe the moment at which the call ended for all peers.
 */
#ifndef WIRE_VIEW_H
#define WIRE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the number of pending votes that have been answered. The ballot number is twice this
 * number, plus one if the last answer was that peers are pending. So a new master or agent that
 * knows the ballot number also knows the last answer. */
static inline uint64_t wire_pending_votes(uint64_t ballot)
{
	return ballot >> 1;
}

static inline bool wire_pending_answer(uint64_t ballot)
{
	return ballot & 1;
}

static inline uint64_t wire_pending_next(uint64_t ballot, bool answer)
{
	return (wire_pending_votes(ballot) + 1) << 1 | answer;
}

struct wire_view {
	/* The view with the higher id is the later one; 0: the answer contains no view, and the
	 * view before stays valid. */
	uint64_t view_id;
	uint32_t global;  /* accepted peers of the run */
	uint32_t group;   /* peers of the own group */
	uint32_t groups;  /* groups with accepted peers */
	uint32_t largest; /* peers of the largest group */
};

#endif
