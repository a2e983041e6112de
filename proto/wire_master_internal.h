/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the codec of wire_master.h share. wire_get_ functions return 0, or a
 * negative enum cc_err with *why set. *m owns all memory that they have allocated, also after a
 * failure. wire_put_ functions take memory from the arena, which remembers a failure.
 */
#ifndef WIRE_MASTER_INTERNAL_H
#define WIRE_MASTER_INTERNAL_H

#include "proto/ccoip.pb-c.h"
#include "proto/wire_master.h"
#include "proto/wire_pb.h"

#define WIRE_LENGTH_DELIMITED 2u /* the type of fields that are messages */

#define WIRE_ID_LIMIT   "must be 16 bytes, not all zero"
#define WIRE_TEXT_LIMIT "must be at most 383 bytes"

/* Allocates a zeroed array. Returns NULL only on failure, with *err and *why set, and never because
 * n is 0. */
void *wire_new_array(size_t n, size_t size, int *err, const char **why);
/* `missing` is the text of the error if p is NULL. */
int wire_get_view(const Ccoip__View *p, struct wm_view *m, const char **why, const char *missing);
int wire_get_resume(const Ccoip__Resume *p, struct wm_resume *m, const char **why);
int wire_get_op_query(const Ccoip__OpQuery *p, struct wm_op_query *m, const char **why);
int wire_get_op_outcomes(const Ccoip__OpOutcomes *p, struct wm_op_outcomes *m, const char **why);
/* The error texts for each wrong field of an endpoint. */
struct wire_endpoint_texts {
	const char *missing, *agent, *name, *n_addrs, *addrs, *no_addrs, *port, *key;
};
#define WIRE_ENDPOINT_TEXTS(field)                                                                 \
	{                                                                                          \
		.missing = field ": must be there", .agent = field ".agent: " WIRE_ID_LIMIT,       \
		.name = field ".name: must be UTF-8 of at most 63 bytes without control "          \
			      "characters",                                                        \
		.n_addrs = field ".addrs: must be at most " WIRE_STR(WM_ADDRS_MAX),                \
		.addrs = field ".addrs: must be 4 or 16 bytes, with a port of 1 to 65535",         \
		.no_addrs = field ".addrs: must be at least 1 unless at_master",                   \
		.port = field ".port: must be 1 to 65535",                                         \
		.key = field ".key: must be empty, or 32 bytes, not all zero",                     \
	}
int wire_get_endpoint(const Ccoip__Endpoint *p, struct wm_endpoint *m,
	const struct wire_endpoint_texts *texts, const char **why);
int wire_get_code(uint32_t code, uint32_t *ret, const char **why, const char *text);
/* Are two of n ids equal? n is at most WM_PEERS_MAX. The ids lie `size` bytes apart. */
bool wire_ids_repeat(const void *first, size_t n, size_t size);
Ccoip__Endpoint *wire_put_endpoint(struct wire_arena *a, const struct wm_endpoint *m);

/* wire_master_sync.c */
int wire_get_sync_vote(const Ccoip__SyncVote *p, struct wm_sync_vote *m, const char **why);
int wire_get_sync_elected(const Ccoip__SyncElected *p, struct wm_sync_elected *m, const char **why);
int wire_get_sync_failures(const Ccoip__OpReport *p, struct wm_op_report *m, const char **why);
int wire_get_sync_start(const Ccoip__SyncStart *p, struct wm_sync_start *m, const char **why);
Ccoip__SyncVote *wire_put_sync_vote(struct wire_arena *a, const struct wm_sync_vote *m);
Ccoip__SyncElected *wire_put_sync_elected(struct wire_arena *a, const struct wm_sync_elected *m);
/* Returns the number of elements in *ret, which is n, or 0 on failure. */
size_t wire_put_sync_failures(
	struct wire_arena *a, const struct wm_sync_failure *v, size_t n, Ccoip__SyncFailure ***ret);
void wire_put_sync_start(struct wire_arena *a, const struct wm_sync_start *m, Ccoip__SyncStart *p);

#endif
