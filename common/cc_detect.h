/* SPDX-License-Identifier: MIT
 *
 * The longest accepted silence of a peer that sends regularly. A longer silence means that the peer
 * is gone. The method is the phi accrual failure detector of Hayashibara, Defago, Yared and
 * Katayama ("The phi accrual failure detector", SRDS 2004). Pure: the time is passed in, in
 * nanoseconds of any clock; no allocation.
 *
 * The detector measures the gaps between signs of life. From the last CC_DETECT_WINDOW gaps it
 * computes the mean m and the deviation s, and it assumes that gaps are normally distributed. After
 * a silence t,
 *
 *     phi(t) = -log10 P(gap > t) = -log10(erfc((t - m) / (s * sqrt(2))) / 2)
 *
 * is the confidence, in decimal digits, that the peer is gone. phi grows with t and reaches the
 * constant threshold CC_DETECT_PHI at
 *
 *     t = m + z * s, where z is the quantile of the normal distribution at 1 - 10^-CC_DETECT_PHI.
 *
 * This silence, limited to [min, max], is the *bound*. The code differs from the paper in these
 * points:
 * - s is at least m / 8, because gaps that are equal by chance do not predict the next gap.
 * - A gap shorter than half a beat is not a sample. Peers send other messages besides heartbeats,
 *   and a burst of messages does not show how long a silence can be.
 * - A host under load sometimes stands still. This is so rare that the window may contain no gap
 *   from a standstill, and such gaps are not normally distributed. So the detector also remembers
 *   the longest gap, outside the window. The remembered gap shrinks by 1 / CC_DETECT_FADE with
 *   each sample, and the bound is at least 5/4 of this gap. Waiting another second costs less than
 *   a wrong decision.
 * - A gap longer than max counts as max.
 * - With fewer than CC_DETECT_SAMPLES_MIN samples the bound is max.
 * - If the clock goes back, the silence is 0 and starts again at the new time.
 */
#ifndef CC_DETECT_H
#define CC_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#define CC_DETECT_WINDOW      32u
#define CC_DETECT_SAMPLES_MIN 8u
#define CC_DETECT_FADE        4096u /* half an hour with a beat of 500 ms */
#define CC_DETECT_PHI         8     /* one wrong decision in 10^8 gaps, if these are normal */
#define CC_DETECT_MIN_BEATS   4u    /* minimum: a host under load may miss three beats */
#define CC_DETECT_MIN_MS      1000u /* the bound is at least this, unless max is smaller */

/* The state of the detector. Only these functions may write to it. */
struct cc_detect {
	uint64_t min_ns, max_ns;
	uint64_t short_ns; /* shorter gaps are not samples */
	uint64_t heard_ns;
	uint64_t path_ns; /* see cc_detect_path */
	bool paused;      /* the present gap is not a sample */
	uint32_t n, next; /* number of samples; index of the next one */
	uint32_t longest_us;
	uint32_t gap_us[CC_DETECT_WINDOW];
};

/* Starts to watch a peer that sends at least every beat_ms from now on. The bound stays within
 * [min, max_ms]. min is CC_DETECT_MIN_BEATS beats, but at least CC_DETECT_MIN_MS and at most
 * max_ms.
 */
void cc_detect_init(struct cc_detect *d, uint32_t beat_ms, uint32_t max_ms, uint64_t now_ns);
/* Records a sign of life. */
void cc_detect_heard(struct cc_detect *d, uint64_t now_ns);
/* Restarts the silence without a sample, for a peer that may have sent something that was not
 * noticed. */
void cc_detect_pause(struct cc_detect *d, uint64_t now_ns);
/* Did the observer itself stand still for too long to judge the peer? The limit is half of min,
 * usually two beats. If the peer missed one beat before the standstill, it was already silent for
 * two beats at that moment. Together, this silence and a standstill up to the limit do not
 * exceed the minimum of the bound. */
bool cc_detect_blind(const struct cc_detect *d, uint64_t stood_still_ns);
uint64_t cc_detect_bound(const struct cc_detect *d); /* ns */
/* Sets the path allowance (cc_tcp_path_ms). The caller passes it with each sign of life. It is
 * added to the bound, which may then exceed max. When the path gets shorter, the allowance shrinks
 * gradually. */
void cc_detect_path(struct cc_detect *d, uint32_t path_ms);
/* Returns the time since the last sign of life, in ns. */
uint64_t cc_detect_silence(const struct cc_detect *d, uint64_t now_ns);
/* Is the silence longer than the bound? This check is cheap while the silence is below min. */
bool cc_detect_gone(struct cc_detect *d, uint64_t now_ns);

#endif
