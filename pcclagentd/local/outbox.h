/* SPDX-License-Identifier: MIT
 *
 * Replies to a process that found no room in its socket. They are sent, in order, as the process
 * reads. While there are any, its requests are not read (session.c), so a process that
 * reads nothing has no more here than it had asked for, and never more than OUTBOX_MAX.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/wire_local.h"

#define OUTBOX_MAX 8192u

struct outbox_item;

struct outbox {
	struct outbox_item *first, *last;
	unsigned n;
};

/* Sends the reply, or keeps it with copies of the descriptors, which stay the caller's. 0;
 * CC_ERR_LIMIT: there are OUTBOX_MAX; or CC_ERR_EOF, CC_ERR_IO + errno, CC_ERR_NOMEM. */
int loc_outbox_send(
	struct outbox *o, int sock, const struct wl_reply *r, const int *fds, size_t n_fds);
/* Sends what there is room for. 0, also when some are left; or as loc_packet_send. */
int loc_outbox_flush(struct outbox *o, int sock);
void loc_outbox_clear(struct outbox *o);

#endif
