/* SPDX-License-Identifier: MIT
 *
 * The server side of an admin socket, for both daemons: accepts connections, decodes requests,
 * encodes replies. Runs in the loop thread.
 */
#ifndef CC_ADMIN_H
#define CC_ADMIN_H

#include "common/cc_loop.h"
#include "proto/wire_admin.h"
#include "proto/wire_sync.h"

struct cc_admin;

/* Serves requests on fd, a listening AF_UNIX stream socket that it owns from now on. fn fills the
 * tables of a reply, or its error; version, daemon and software are set already. Only root, the
 * daemon's own user, and the group that may open the socket can send requests. Returns NULL on
 * failure. */
struct cc_admin *cc_admin_new(struct cc_loop *l, int fd, const char *daemon,
	void (*fn)(void *arg, const struct wa_request *q, struct wa_reply *reply), void *arg);
/* During fn: returns the user whose request fn answers. */
uint32_t cc_admin_caller(const struct cc_admin *a);
void cc_admin_free(struct cc_admin *a);

/* Columns of both daemons for a candidate. CC_ADMIN_CANDIDATE declares them; cc_admin_put_candidate
 * fills them in the last row and returns the next column. */
#define CC_ADMIN_CANDIDATE                                                                         \
	{"tensors", WA_KIND_COUNT}, {"bytes", WA_KIND_BYTES}, {"hash_type", WA_KIND_TEXT},         \
		{"keys", WA_KIND_TEXT},                                                            \
	{                                                                                          \
		"content", WA_KIND_TEXT                                                            \
	}
#define CC_ADMIN_CANDIDATE_COLS 5u
uint32_t cc_admin_put_candidate(struct wa_table *t, uint32_t col, const struct wm_sync_vote *v);

#endif
