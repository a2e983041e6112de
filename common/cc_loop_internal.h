/* SPDX-License-Identifier: MIT
 *
 * Shared by cc_loop.c and cc_conn.c, which together are the event loop.
 */
#ifndef CC_LOOP_INTERNAL_H
#define CC_LOOP_INTERNAL_H

#include <stdint.h>
#include <sys/time.h>

struct cc_conn;
struct cc_loop;
struct event_base;

struct event_base *cc_loop_base(struct cc_loop *l);
/* Returns the list of connections that their owners have closed while output was still to be
 * written. */
struct cc_conn **cc_loop_lingering(struct cc_loop *l);
/* Returns the list of connections whose queued output is written at the end of this iteration. */
struct cc_conn **cc_loop_unsent(struct cc_loop *l);
/* Returns the list of connections whose queued output may wait longer. cc_loop_cork is called when
 * the list gets its first connection. */
struct cc_conn **cc_loop_corked(struct cc_loop *l);
void cc_loop_cork(struct cc_loop *l);
void cc_conn_send_corked(struct cc_loop *l);
void cc_conn_drop_lingering(struct cc_loop *l);

static inline struct timeval cc_loop_from_ms(uint32_t ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

#endif
