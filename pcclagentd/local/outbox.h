/* SPDX-License-Identifier: MIT
 *
 * Replies that found no room in the socket of their process. They are sent in order as the process
 * reads. While any reply waits, the process's requests are not read (session.c). So a process that
 * reads nothing has at most as many replies here as it has requested, and never more than
 * OUTBOX_MAX.
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

/* Sends the reply, or keeps it with copies of the descriptors. The caller keeps its descriptors.
 * Returns 0; CC_ERR_LIMIT: OUTBOX_MAX replies wait already; or CC_ERR_EOF, CC_ERR_IO + errno,
 * CC_ERR_NOMEM. */
int loc_outbox_send(
	struct outbox *o, int sock, const struct wl_reply *r, const int *fds, size_t n_fds);
/* Sends the replies for which there is room. Returns 0, also if some replies are left; or the
 * errors of loc_packet_send. */
int loc_outbox_flush(struct outbox *o, int sock);
void loc_outbox_clear(struct outbox *o);

#endif
