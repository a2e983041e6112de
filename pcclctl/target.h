/* SPDX-License-Identifier: MIT
 *
 * The daemon that pcclctl asks: an admin socket that was named, or the sockets of this host.
 */
#ifndef CTL_TARGET_H
#define CTL_TARGET_H

#include <stddef.h>

#define CTL_PATHS_MAX 3
#define CTL_PATH_SIZE 108 /* of a socket's path */

/* The sockets to ask, in this order, until one answers. */
struct ctl_target {
	const char *what; /* "agent" or "master" */
	unsigned n;
	char paths[CTL_PATHS_MAX][CTL_PATH_SIZE];
};

/* Sets one path. Returns 0, or CC_ERR_INVAL for a path that is too long for a socket. */
int ctl_target_set(struct ctl_target *t, const char *what, const char *path);
/* Sets the paths of the system's agent, then those of agents that this user may have. */
void ctl_target_agent(struct ctl_target *t);
/* Finds the one master that listens at the system's admin socket or at a socket of this user.
 * Folders of other users are not searched. Returns 0; or, if there is none or more than one, an
 * exit status of sysexits.h, and `why` is a sentence that names the paths that were tried or the
 * sockets that were found. */
int ctl_target_master(struct ctl_target *t, char *why, size_t size);

#endif
