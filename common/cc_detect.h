/* SPDX-License-Identifier: MIT
 *
 * How long a peer that speaks regularly may be silent before it counts as gone: the phi accrual
 * failure detector of Hayashibara, Defago, Yared and Katayama ("The phi accrual failure detector",
 * SRDS 2004). Pure: the time is passed in, in nanoseconds of any clock; no allocation.
 *
 * Watched are the gaps between signs of life. Of the last CC_DETECT_WINDOW gaps we take the mean m
 * and the deviation s, and gaps to be normally distributed. After a silence t,
 *
 *     phi(t) = -log10 P(gap > t) = -log10(erfc((t - m) / (s * sqrt(2))) / 2)
 *
 * says how many decimal digits of confidence there are that the peer is gone. phi grows with t and
 * reaches the threshold CC_DETECT_PHI, a constant, at
 *
 *     t = m + z * s,  z being the quantile of the normal distribution at 1 - 10^-CC_DETECT_PHI.
 *
 * That silence, kept within [min, max], is the *bound*. Where practice differs from the paper:
 * - s is taken to be at least m / 8: gaps that are equal by chance promise nothing.
 * - Gaps shorter than half a beat are no samples. Peers say more than heartbeats, and a burst of
 *   messages tells nothing about how long a silence can be.
 * - Hosts under load stand still too seldom for the window to know, and not normally: the longest
 * gap is remembered beyond it, fading by 1 / CC_DETECT_FADE with each sample, and the bound is not
 *   below 5/4 of it. A wrong decision costs more than a second of waiting.
 * - A gap counts as max at most.
 * - With fewer than CC_DETECT_SAMPLES_MIN samples the bound is max.
 * - A clock that goes back shows a silence of 0, which begins again there.
 */
#ifndef CC_DETECT_H
#define CC_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#define CC_DETECT_WINDOW      32u
#define CC_DETECT_SAMPLES_MIN 8u
#define CC_DETECT_FADE        4096u /* half an hour of beats of 500 ms */
#define CC_DETECT_PHI         8     /* a wrong decision in 10^8 gaps, if they are normal */
#define CC_DETECT_MIN_BEATS   4u    /* least bound: a host under load may stand still for three */
#define CC_DETECT_MIN_MS      1000u /* but so long in any case, unless max is less */

/* Written by these functions only. */
struct cc_detect {
	uint64_t min_ns, max_ns;
	uint64_t short_ns; /* gaps below are no samples */
	uint64_t heard_ns;
	uint64_t path_ns; /* see cc_detect_path */
	bool paused;      /* the gap that goes on is no sample */
	uint32_t n, next; /* samples, where the next one goes to */
	uint32_t longest_us;
	uint32_t gap_us[CC_DETECT_WINDOW];
};

/* A peer that means to speak every beat_ms at least, beginning now. The bound will be within
 * [min, max_ms], min being CC_DETECT_MIN_BEATS and not below CC_DETECT_MIN_MS, but max_ms at most.
 */
void cc_detect_init(struct cc_detect *d, uint32_t beat_ms, uint32_t max_ms, uint64_t now_ns);
/* A sign of life. */
void cc_detect_heard(struct cc_detect *d, uint64_t now_ns);
/* It may have spoken without our noticing: the silence begins again, and is no sample. */
void cc_detect_pause(struct cc_detect *d, uint64_t now_ns);
/* Is a time in which the observer itself stood still too long to judge others by? Half of min, two
 * beats: so long a standstill, and before it the silence that one missed beat leaves, two more, are
 * not beyond the least bound. */
bool cc_detect_blind(const struct cc_detect *d, uint64_t stood_still_ns);
uint64_t cc_detect_bound(const struct cc_detect *d); /* ns */
/* How much longer a sign of life may be under way than the bound allows for (cc_tcp_path_ms), told
 * with each. It is added to the bound, beyond max, and wears off when the path is shorter again. */
void cc_detect_path(struct cc_detect *d, uint32_t path_ms);
/* Since the last sign of life, ns. */
uint64_t cc_detect_silence(const struct cc_detect *d, uint64_t now_ns);
/* Is the silence longer than the bound? Costs next to nothing while it is below min. */
bool cc_detect_gone(struct cc_detect *d, uint64_t now_ns);

#endif
