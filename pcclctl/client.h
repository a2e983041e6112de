/* SPDX-License-Identifier: MIT
 *
 * Asking a daemon through its admin socket. Blocks, for 5 s at most.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <stddef.h>

#include "proto/wire_admin.h"

#define CTL_PATHS_MAX 3
#define CTL_PATH_SIZE 108 /* of a socket's name */
#define CTL_WHY_SIZE  1024

/* Where to ask, in this order, until one answers. */
struct ctl_target {
	const char *what; /* "agent" or "master" */
	unsigned n;
	char paths[CTL_PATHS_MAX][CTL_PATH_SIZE];
};

/* The system's agent, then those that this user may have. */
void ctl_target_default(struct ctl_target *t);
/* 0, or CC_ERR_INVAL for a path that is too long for a socket. */
int ctl_target_set(struct ctl_target *t, const char *what, const char *path);

/* Asks q (its versions are filled in here). 0 with *ret filled, owned by the caller:
 * wa_reply_clear; or an exit status of sysexits.h, and why is a sentence that says which path
 * failed and what to try. */
int ctl_ask(const struct ctl_target *t, const struct wa_request *q, struct wa_reply *ret,
	char why[CTL_WHY_SIZE]);

#endif
