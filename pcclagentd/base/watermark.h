/* SPDX-License-Identifier: MIT
 *
 * Measures how long something has made no progress.
 */
#ifndef WATERMARK_H
#define WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

struct watermark {
	uint64_t moved;    /* a count that changes with any progress */
	uint64_t since_ns; /* the time at which the count changed last */
};

/* Starts the measurement again, because there is progress, or because the time until now does not
 * count. */
static inline void watermark_touch(struct watermark *w, uint64_t now_ns)
{
	w->since_ns = now_ns;
}

static inline void watermark_update(struct watermark *w, uint64_t moved, uint64_t now_ns)
{
	if (w->moved != moved)
		*w = (struct watermark){.moved = moved, .since_ns = now_ns};
}

static inline uint64_t watermark_still_ns(const struct watermark *w, uint64_t now_ns)
{
	return now_ns > w->since_ns ? now_ns - w->since_ns : 0;
}

#endif
