/* SPDX-License-Identifier: MIT
 *
 * The numbers behind pcclGetAttribute, as the application gets to know them: with the answer of
 * each call, an operation's included, and as of the moment at which that call ended for all.
 */
#ifndef WIRE_WORLD_H
#define WIRE_WORLD_H

#include <stdint.h>

struct wire_world {
	uint64_t version; /* of the run's: the higher one is the later one; 0: the answer tells of
			   * none, and what was told before stays */
	uint32_t global;  /* accepted peers of the run */
	uint32_t group;   /* of the peer's own group */
	uint32_t groups;  /* with accepted peers */
	uint32_t largest; /* peers of the largest group */
};

#endif
