/* SPDX-License-Identifier: MIT
 *
 * How much is asked for ahead: pace.c. Pure.
 */
#ifndef STATE_PACE_H
#define STATE_PACE_H

#include <stdint.h>

struct ste_load {         /* of a source */
	uint64_t bytes;   /* that came from it */
	uint32_t streams; /* that bring something; 0: it does not count */
	uint64_t waiting; /* bytes of each stream that are to wait on their way */
};
struct ste_came {                  /* an answer */
	uint64_t len, ahead;       /* see ste_ask */
	uint64_t took_ns, base_ns; /* from ask to end, not 0; the shortest time that it ever took */
};
/* Bytes of all streams that are to wait, when `rate` come per second and the farthest source
 * answers after base_ns. */
uint64_t ste_pace_all(uint64_t rate, uint64_t base_ns);
/* Sets `waiting` of each source; leaves it if nothing comes of any. */
void ste_pace_share(struct ste_load *v, uint32_t n, uint64_t all);
/* A stream's window after an answer. */
uint64_t ste_pace_window(uint64_t window, const struct ste_came *c, uint64_t waiting);
/* What is left to be done. Streams of which nothing has come yet are taken for as fast as others.
 */
struct ste_rest {
	uint64_t bytes;          /* asked of all streams, and still to be asked for */
	uint32_t streams, known; /* that share it; whose rate is known */
	uint64_t rates;          /* of these together */
	uint64_t rate;           /* of the one that is to ask; 0: not known */
	uint64_t ahead, window;  /* of that one */
};
/* The leaves that a stream asks for next, so that all end together; 0: none now. */
uint32_t ste_pace_leaves(const struct ste_rest *r);

#endif
