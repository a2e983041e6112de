/* SPDX-License-Identifier: MIT
 *
 * The daemon that is asked: an admin socket that was named, or those of this host.
 */
#ifndef CTL_TARGET_H
#define CTL_TARGET_H

#include <stddef.h>

#define CTL_PATHS_MAX 3
#define CTL_PATH_SIZE 108 /* of a socket's name */

/* The sockets to ask, in this order, until one answers. */
struct ctl_target {
	const char *what; /* "agent" or "master" */
	unsigned n;
	char paths[CTL_PATHS_MAX][CTL_PATH_SIZE];
};

/* 0, or CC_ERR_INVAL for a path that is too long for a socket. */
int ctl_target_set(struct ctl_target *t, const char *what, const char *path);
/* The system's agent, then those that this user may have. */
void ctl_target_agent(struct ctl_target *t);
/* The one master that listens at the system's admin socket or at one of this user's, and is no
 * other user's. 0; or an exit status of sysexits.h, as none does or several do, and why is a
 * sentence that names the places or the sockets. */
int ctl_target_master(struct ctl_target *t, char *why, size_t size);

#endif
