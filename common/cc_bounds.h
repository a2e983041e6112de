/* SPDX-License-Identifier: MIT
 *
 * The bounds of links between agents and of rounds. The operator of the master sets them, and the
 * master sends them to the agents, so all agents of a run use the same bounds. Slow paths get
 * additional time. Pure.
 */
#ifndef CC_BOUNDS_H
#define CC_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum cc_bound {
	CC_BOUND_LINK,   /* silence of a link: nothing arrives from the other host */
	CC_BOUND_STREAM, /* silence of one stream while other streams of its link receive; at least
			    CC_BOUND_LINK */
	CC_BOUND_STUCK,  /* data was sent, but nothing is delivered */
	CC_BOUND_NEW_LINK, /* opening of one link */
	CC_BOUND_ROUND,    /* a whole round; at least CC_ROUND_MIN_MS */
	CC_BOUNDS
};

/* Minimum, maximum and default of each bound, in milliseconds. An idle link carries one message a
 * second, so a silence below two seconds proves nothing. The kernel ends its probes of a silent
 * connection after two minutes; half a minute of this is reserved for the path allowance. */
#define CC_BOUND_LINK_MS     2000, 90000, 2800
#define CC_BOUND_STREAM_MS   2000, 90000, 10000
#define CC_BOUND_STUCK_MS    1000, 90000, 3000
#define CC_BOUND_NEW_LINK_MS 500, 60000, 2000
#define CC_BOUND_ROUND_MS    2000, 300000, 5000

struct cc_bounds {
	uint32_t ms[CC_BOUNDS];
};

/* The time of the round itself. A round needs this time and the time for opening two links, one
 * after the other: the master tries two orders of the ring before it knows that a host cannot be
 * reached. */
#define CC_ROUND_SELF_MS 1000u
/* The round trips by which a round may take longer on a slow path: four for a new link, one for the
 * round. */
#define CC_ROUND_TRIPS          5u
#define CC_ROUND_MIN_MS(new_ms) (2 * (new_ms) + CC_ROUND_SELF_MS)

/* "link_timeout_ms" and so on. */
extern const char *const cc_bound_names[CC_BOUNDS];

void cc_bound_range(enum cc_bound b, uint32_t *ret_min, uint32_t *ret_max);
/* Replaces each bound that is 0 by its default, or by a larger value if another bound requires it.
 */
void cc_bounds_complete(struct cc_bounds *b);
/* Returns the first bound that is out of its range or below the value that another bound requires,
 * or CC_BOUNDS if all are valid. */
enum cc_bound cc_bounds_wrong(const struct cc_bounds *b);

#endif
