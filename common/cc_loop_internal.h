/* SPDX-License-Identifier: MIT
 *
 * Shared by cc_loop.c and cc_conn.c, which together are the event loop.
 */
#ifndef CC_LOOP_INTERNAL_H
#define CC_LOOP_INTERNAL_H

#include <stdint.h>
#include <sys/time.h>

struct cc_loop;
struct event_base;

struct event_base *cc_loop_base(struct cc_loop *l);

static inline struct timeval cc_loop_from_ms(uint32_t ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };
}

#endif
