/* SPDX-License-Identifier: MIT
 *
 * The server side of an admin socket, the same in both daemons: accepts, decodes requests, encodes
 * replies. Loop thread.
 */
#ifndef CC_ADMIN_H
#define CC_ADMIN_H

#include "common/cc_loop.h"
#include "proto/wire_admin.h"
#include "proto/wire_sync.h"

struct cc_admin;

/* fn fills the tables of a reply, or its error (version, daemon and software are set already). Only
 * root, the daemon's own user, and the group that may open the socket get here. fd: a listening
 * AF_UNIX stream socket, owned from now on. */
struct cc_admin *cc_admin_new(struct cc_loop *l, int fd, const char *daemon,
	void (*fn)(void *arg, const struct wa_request *q, struct wa_reply *reply), void *arg);
/* During fn: the user whose request it answers. */
uint32_t cc_admin_caller(const struct cc_admin *a);
void cc_admin_free(struct cc_admin *a);

/* Columns that both daemons have for what a peer offers of shared state: CC_ADMIN_CANDIDATE where
 * they are listed, and into the last row; returns the column that follows. */
#define CC_ADMIN_CANDIDATE                                                                         \
	{"tensors", WA_KIND_COUNT}, {"bytes", WA_KIND_BYTES}, {"hash_type", WA_KIND_TEXT},         \
		{"keys", WA_KIND_TEXT},                                                            \
	{                                                                                          \
		"content", WA_KIND_TEXT                                                            \
	}
#define CC_ADMIN_CANDIDATE_COLS 5u
uint32_t cc_admin_put_candidate(struct wa_table *t, uint32_t col, const struct wm_sync_vote *v);

#endif
