/* SPDX-License-Identifier: MIT
 *
 * The sockets that a master starts with: inherited ones, those that options ask for, or the default
 * ones.
 */
#ifndef MASTERD_SOCKETS_H
#define MASTERD_SOCKETS_H

#include <sys/types.h>

#include "ccoip-masterd/options.h"

/* A socket file that this master has made. It is removed at the end if it is still the same
 * file. */
struct socket_file {
	char path[108];
	dev_t dev;
	ino_t ino;
};

/* Opens the sockets and logs the addresses on which the master listens. Fills the descriptors of
 * *cfg (on failure with those that are open). Returns 0, or an exit status after a line in the
 * log. */
int sockets_open(
	const struct masterd_options *o, struct masterd_config *cfg, struct socket_file *admin);
void sockets_remove(const struct socket_file *f);

#endif
