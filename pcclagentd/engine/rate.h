/* SPDX-License-Identifier: MIT
 *
 * Estimates what a link carries, from the counts that the kernel keeps of its streams. Pure.
 *
 * The counts are taken at each look (eng_look). The time between two looks is an interval. An
 * interval shows what the link can carry if the network was what bounded the streams:
 *
 *  - the busiest stream had unacknowledged bytes for at least half of the interval;
 *  - the receivers' windows were closed for at most 1/8 of the streams' busy time;
 *  - at the end of the interval, bytes waited for the network to take them. On a long path a stream
 *    is busy all the time even if it is given little.
 *
 * Other intervals are left out, so a link between two operations does not look slow. The rate is
 * what all streams have delivered in these intervals, divided by the busy time of the busiest
 * stream in each. The streams' own rates are not added up: the streams of a set that rests, or that
 * got the last segment, are busy at other times than the others, and the sum would exceed what the
 * link has carried. The time in which a window was closed is not subtracted either, because bytes
 * are delivered in it.
 *
 * A rate is reported when ENG_RATE_WINDOW_US of such intervals are complete, and
 * ENG_RATE_PAUSE_US after the report before at the earliest. Intervals are forgotten when the first
 * of them is ENG_RATE_OLD_US old.
 */
#ifndef ENGINE_RATE_H
#define ENGINE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define ENG_RATE_WINDOW_US UINT64_C(2000000)
#define ENG_RATE_PAUSE_US  UINT64_C(5000000)
#define ENG_RATE_OLD_US    UINT64_C(30000000)

/* What the kernel has counted for a stream since it was connected. */
struct eng_rate_counts {
	bool known;           /* the kernel has these counts */
	bool waits;           /* now: bytes wait for the network to take them */
	uint64_t acked;       /* bytes that the other host has acknowledged */
	uint64_t busy_us;     /* time in which bytes were not acknowledged */
	uint64_t receiver_us; /* the part of busy_us in which the receiver's window was closed */
};

/* A link. All zero: nothing is known. */
struct eng_rate {
	/* The present interval, over the streams that were added. */
	bool waits;
	uint64_t bytes, busiest_us, busy_us, receiver_us;
	/* The intervals that count. */
	uint64_t sum_bytes, sum_busiest_us, sum_us;
	uint64_t age_us;    /* since the first of them began; 0: there is none */
	uint64_t passed_us; /* since the last report */
};

/* Adds a stream to the interval between these two looks. */
void eng_rate_add(struct eng_rate *r, const struct eng_rate_counts *before,
	const struct eng_rate_counts *now);
/* Ends the interval, which was `us` long. `counts`: it can count, as far as the caller knows.
 * Returns the rate in bit/s if it is to be reported, else 0. */
uint64_t eng_rate_end_interval(struct eng_rate *r, uint64_t us, bool counts);

#endif
