/* SPDX-License-Identifier: MIT */
#include "common/cc_bounds.h"

static const struct {
	uint32_t min, max, usual;
} limits[CC_BOUNDS] = {
	[CC_BOUND_LINK] = {CC_BOUND_LINK_MS},
	[CC_BOUND_STREAM] = {CC_BOUND_STREAM_MS},
	[CC_BOUND_STUCK] = {CC_BOUND_STUCK_MS},
	[CC_BOUND_NEW_LINK] = {CC_BOUND_NEW_LINK_MS},
	[CC_BOUND_ROUND] = {CC_BOUND_ROUND_MS},
};

const char *const cc_bound_names[CC_BOUNDS] = {
	[CC_BOUND_LINK] = "link_timeout_ms",
	[CC_BOUND_STREAM] = "stream_timeout_ms",
	[CC_BOUND_STUCK] = "stuck_timeout_ms",
	[CC_BOUND_NEW_LINK] = "new_link_timeout_ms",
	[CC_BOUND_ROUND] = "round_timeout_ms",
};

void cc_bound_range(enum cc_bound b, uint32_t *ret_min, uint32_t *ret_max)
{
	*ret_min = limits[b].min;
	*ret_max = limits[b].max;
}

/* Returns the smallest value of a bound that the other bounds permit. */
static uint32_t demanded(const struct cc_bounds *b, enum cc_bound which)
{
	if (which == CC_BOUND_STREAM)
		return b->ms[CC_BOUND_LINK];
	return which == CC_BOUND_ROUND ? CC_ROUND_MIN_MS(b->ms[CC_BOUND_NEW_LINK]) : 0;
}

void cc_bounds_complete(struct cc_bounds *b)
{
	for (enum cc_bound i = 0; i < CC_BOUNDS; i++) {
		uint32_t least = demanded(b, i), usual = limits[i].usual;

		if (b->ms[i] == 0)
			b->ms[i] = usual > least ? usual : least;
	}
}

enum cc_bound cc_bounds_wrong(const struct cc_bounds *b)
{
	enum cc_bound i = 0;

	while (i < CC_BOUNDS && b->ms[i] >= limits[i].min && b->ms[i] <= limits[i].max &&
		b->ms[i] >= demanded(b, i))
		i++;
	return i;
}
