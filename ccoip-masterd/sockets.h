/* SPDX-License-Identifier: MIT
 *
 * The sockets that a master starts with: handed over, asked for, or the default ones.
 */
#ifndef MASTERD_SOCKETS_H
#define MASTERD_SOCKETS_H

#include <sys/types.h>

#include "ccoip-masterd/options.h"

/* A socket file of ours, to be removed at the end if it still is. */
struct socket_file {
	char path[108];
	dev_t dev;
	ino_t ino;
};

/* Fills the descriptors of *cfg (also on failure, what there is of them) and logs where the master
 * listens. 0, or an exit status after a line in the log. */
int sockets_open(
	const struct masterd_options *o, struct masterd_config *cfg, struct socket_file *admin);
void sockets_remove(const struct socket_file *f);

#endif
