/* SPDX-License-Identifier: MIT
 *
 * The numbers behind pcclGetAttribute, as the application gets to know them: with the answer of
 * each call, an operation's included, and as of the moment at which that call ended for all.
 */
#ifndef WIRE_VIEW_H
#define WIRE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* The ballot of votes on pending peers: twice as many as have been answered, and one more if the
 * last answer was that peers are pending. So whoever knows how many there were, a new master or
 * agent for instance, knows what all were told. */
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
	uint64_t view_id; /* of the run's: the higher one is the later one; 0: the answer tells of
			   * none, and what was told before stays */
	uint32_t global;  /* accepted peers of the run */
	uint32_t group;   /* of the peer's own group */
	uint32_t groups;  /* with accepted peers */
	uint32_t largest; /* peers of the largest group */
};

#endif
