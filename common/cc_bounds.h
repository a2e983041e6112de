/* SPDX-License-Identifier: MIT
 *
 * How long links between agents may be silent, and rounds of new ones may take. The master's
 * operator decides, and the master tells the agents, so that all of a run agree. Paths that are
 * slow get more time on top. Pure.
 */
#ifndef CC_BOUNDS_H
#define CC_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum cc_bound {
	CC_BOUND_LINK,   /* no sign of life of the host at the other end */
	CC_BOUND_STREAM, /* of one stream, while others of its link speak; CC_BOUND_LINK at least */
	CC_BOUND_STUCK,  /* nothing of what is under way is delivered */
	CC_BOUND_NEW_LINK, /* a link that is being opened */
	CC_BOUND_ROUND,    /* all of a round; CC_ROUND_MIN_MS at least */
	CC_BOUNDS
};

/* Least, most and default of each, in milliseconds. An idle link is heard once a second, so less
 * than two seconds would be no proof. The kernel's probes of a silent connection end after two
 * minutes, of which half a minute is for the way. */
#define CC_BOUND_LINK_MS     2000, 90000, 2800
#define CC_BOUND_STREAM_MS   2000, 90000, 10000
#define CC_BOUND_STUCK_MS    1000, 90000, 3000
#define CC_BOUND_NEW_LINK_MS 500, 60000, 2000
#define CC_BOUND_ROUND_MS    2000, 300000, 5000

struct cc_bounds {
	uint32_t ms[CC_BOUNDS];
};

/* Time for two links one after the other, and for the round itself: the master sees in two orders
 * of the ring that a host cannot be reached. */
#define CC_ROUND_SELF_MS 1000u
/* Added for slow paths, in round trips: four of a new link, one of the round. */
#define CC_ROUND_TRIPS          5u
#define CC_ROUND_MIN_MS(new_ms) (2 * (new_ms) + CC_ROUND_SELF_MS)

/* "link_timeout_ms" and so on. */
extern const char *const cc_bound_names[CC_BOUNDS];

void cc_bound_range(enum cc_bound b, uint32_t *ret_min, uint32_t *ret_max);
/* Those that are 0 get what they are by default, or more where others demand it. */
void cc_bounds_complete(struct cc_bounds *b);
/* The first one that is out of its range, or less than another one demands; CC_BOUNDS: none. */
enum cc_bound cc_bounds_wrong(const struct cc_bounds *b);

#endif
