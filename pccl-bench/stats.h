/* SPDX-License-Identifier: MIT
 *
 * Statistics of many times. Pure.
 */
#ifndef BCH_STATS_H
#define BCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds. */
struct bch_times {
	uint64_t median; /* if the number of times is even, the mean of the two in the middle */
	uint64_t min;
	uint64_t p99; /* the smallest time that 99 % of the times do not exceed */
};

/* The time of an iteration that failed. */
#define BCH_FAILED UINT64_MAX

/* Merges the times of the peers: times[peer * n + k] is the time of iteration k on peer `peer`.
 * Writes the longest time of each iteration to the first n places. Iterations that succeeded on all
 * peers come first, in ascending order of their times. Returns the number of these iterations. */
size_t bch_times_merge(uint64_t *times, uint32_t n_peers, size_t n);
/* Computes the statistics of n >= 1 times in ascending order. */
void bch_times_of(const uint64_t *sorted, size_t n, struct bch_times *ret);

/* Returns the bytes of the operand per second. */
double bch_algbw(uint64_t bytes, uint64_t ns);
/* Returns the bytes per second that an ideal ring would move on each link. */
double bch_busbw(double algbw, uint32_t n_peers);

#endif
