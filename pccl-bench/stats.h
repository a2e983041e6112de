/* SPDX-License-Identifier: MIT
 *
 * What is told of many times. Pure.
 */
#ifndef BCH_STATS_H
#define BCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds. */
struct bch_times {
	uint64_t median; /* of an even number: the mean of the two in the middle */
	uint64_t min;
	uint64_t p99; /* the smallest that 99 % of them do not exceed */
};

/* An iteration that did not succeed has this time. */
#define BCH_FAILED UINT64_MAX

/* times[peer * n + k] is what iteration k took peer `peer`. Puts the longest of each iteration in
 * the first n places, those that succeeded at all peers in front, in ascending order. Returns how
 * many these are. */
size_t bch_times_merge(uint64_t *times, uint32_t n_peers, size_t n);
/* n >= 1 times in ascending order. */
void bch_times_of(const uint64_t *sorted, size_t n, struct bch_times *ret);

/* Bytes per second, of the operands and as an ideal ring would move them on each link. */
double bch_algbw(uint64_t bytes, uint64_t ns);
double bch_busbw(double algbw, uint32_t n_peers);

#endif
