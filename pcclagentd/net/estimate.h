/* SPDX-License-Identifier: MIT
 *
 * Estimates the rate of a path from the counts that the receiver of a measurement reports. Pure.
 *
 * The reports are put together into windows: a window ends at the first report that is at least
 * NET_WINDOW_MS and one round trip after its start, and after 1/32 of the longest time; but a
 * window needs no more than 1/8 of the longest time. The slow start of the connections has ended
 * when two windows in a row are not more than a tenth faster than the fastest window before them.
 * The rate is *stable* if the last four windows and the four windows before them, all after the
 * slow start, differ by at most 3 %, and no four windows before were more than a tenth faster: lost
 * packets can slow TCP down for half a second. Then the estimate is the rate over these eight
 * windows. Otherwise it is the rate since the slow start, or in the last half of the time if that
 * is less; if the slow start has not ended, or the rate has grown by more than a tenth meanwhile,
 * the rate in the last quarter.
 */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#define NET_WINDOW_MS  20u
#define NET_WINDOWS    64u /* later windows are not distinguished */
#define NET_STEADY     8u  /* windows after the slow start that a stable rate needs */
#define NET_GROWTH     1.10
#define NET_DIFFERENCE 0.03

#define NET_LEAST_CONFIDENCE 50u

/* A report: bytes that have arrived in any order, microseconds since the first of them, and bytes
 * that have arrived from all agents. */
struct net_point {
	uint64_t us, bytes, all;
};

struct net_estimate {
	uint64_t window_us;
	uint32_t n;                               /* complete windows */
	struct net_point points[NET_WINDOWS + 1]; /* window i is between points i and i + 1 */
	struct net_point last;                    /* the last report */
	/* Of this agent's clock: the first and the last report, and when the time in the reports
	 * began. */
	uint64_t first_us, last_us, start_us;
	double peak;     /* bytes per us of the fastest window */
	double best;     /* bytes per us of the fastest four windows */
	uint32_t flat;   /* windows in a row that were hardly faster */
	uint32_t steady; /* first window after the slow start */
	bool started;    /* the slow start has ended */
};

/* Begins at the report `first`. longest_ms: the longest time of the measurement; trip_us: the round
 * trip of the path. */
void net_estimate_begin(struct net_estimate *e, const struct net_point *first, uint32_t longest_ms,
	uint32_t trip_us);
/* Adds a report, which has come at `at_us` of this agent's clock. No value of it may be less than
 * that of the report before. */
void net_estimate_add(struct net_estimate *e, const struct net_point *p, uint64_t at_us);
bool net_estimate_is_stable(const struct net_estimate *e);
/* Returns the estimate in bit/s; 0: nothing was reported yet. */
uint64_t net_estimate_rate(const struct net_estimate *e);
/* Returns how sure the estimate is, in percent: the rate of the slowest four windows in a row,
 * relative to that of the fastest four, in the part that counts, and at least
 * NET_LEAST_CONFIDENCE. This is also returned if this part has fewer than eight windows, so that
 * little is known of how the rate varies. */
uint32_t net_estimate_confidence(const struct net_estimate *e);
/* Returns the rate of all agents together in the fastest four windows after the first one. No
 * window is faster than what the host can receive, but many are slower, while TCP recovers from
 * losses. Without five windows: in the part that net_estimate_rate takes. */
uint64_t net_estimate_rate_of_all(const struct net_estimate *e);
/* Writes the estimates in bit/s of n paths on which one agent sends at the same time: the rates in
 * the four windows, or in the quarter of the time if this is longer, in which all of them together
 * were fastest. So the sum is what the agent can send; rates of different times can have a higher
 * sum. Paths in their slow start count, because a path beside fast ones may grow until the end.
 * Without five windows of all paths: as net_estimate_rate. */
void net_estimate_rates_at_once(struct net_estimate *const *e, uint32_t n, uint64_t *ret);

#endif
