/* SPDX-License-Identifier: MIT
 *
 * pace.c: computes how many bytes are requested ahead. Pure.
 */
#ifndef STATE_PACE_H
#define STATE_PACE_H

#include <stdint.h>

struct ste_load {         /* the load of one source */
	uint64_t bytes;   /* bytes that the source has sent so far */
	uint32_t streams; /* streams that are receiving; 0: the source does not count */
	uint64_t waiting; /* bytes of each stream that shall wait in queues on the path */
};
struct ste_came {            /* an answer that has arrived */
	uint64_t len, ahead; /* see ste_ask */
	/* The time from the request to the end of the answer, never 0; the shortest such time of
	 * this source. */
	uint64_t took_ns, base_ns;
};
/* Returns how many bytes of all streams together shall wait in queues. `rate`: bytes per second
 * that arrive. `base_ns`: the answer time of the farthest source. */
uint64_t ste_pace_all(uint64_t rate, uint64_t base_ns);
/* Divides `all` among the sources: sets `waiting` of each. Sets nothing if no source is sending. */
void ste_pace_share(struct ste_load *v, uint32_t n, uint64_t all);
/* Returns the window of a stream after an answer. */
uint64_t ste_pace_window(uint64_t window, const struct ste_came *c, uint64_t waiting);
/* The rest of a job's transfer, and the stream that makes the next request. */
struct ste_rest {
	uint64_t bytes; /* bytes under way on all streams, and bytes not requested so far */
	/* Streams that share these bytes, and streams whose rate is known. The other streams are
	 * assumed to have the mean rate. */
	uint32_t streams, known;
	uint64_t rates;         /* sum of the known rates */
	uint64_t rate;          /* rate of this stream; 0: unknown */
	uint64_t ahead, window; /* both of this stream */
};
/* Returns how many leaves the stream requests next, so that all streams end at the same time. 0:
 * none now. */
uint32_t ste_pace_leaves(const struct ste_rest *r);

#endif
