/* SPDX-License-Identifier: MIT
 *
 * State machines: a table of the states of one kind of object, their names, and the states that may
 * follow each state. One function, the setter, writes the state of an object, and checks each move
 * with this table. A move that is not allowed is a bug of the program, whatever its input was.
 * Pure.
 */
#ifndef CC_SM_H
#define CC_SM_H

#include <stdint.h>

#define CC_SM_TO(state) (UINT32_C(1) << (state))

struct cc_sm_state {
	const char *name;
	uint32_t next; /* the bits CC_SM_TO of the states that may follow */
};

struct cc_sm {
	const struct cc_sm_state *states;
	uint32_t n;         /* number of states, at most 32 */
	const char *broken; /* the sentence about a move that is not allowed */
};

/* Initializes a machine from an array with an element for each state. */
#define CC_SM(array, sentence)                                                                     \
	{                                                                                          \
		.states = (array), .n = sizeof(array) / sizeof *(array), .broken = (sentence)      \
	}

/* Checks a move. If the move is not allowed, sets *broken to the sentence about it, which has
 * static storage. */
void cc_sm_move(const struct cc_sm *m, uint32_t from, uint32_t to, const char **broken);
/* Returns the name of a state, or "?" for a number that is no state. */
const char *cc_sm_name(const struct cc_sm *m, uint32_t state);

#endif
