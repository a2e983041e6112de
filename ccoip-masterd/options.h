/* SPDX-License-Identifier: MIT
 *
 * The command line and the configuration file of ccoip-masterd.
 */
#ifndef MASTERD_OPTIONS_H
#define MASTERD_OPTIONS_H

#include <stdbool.h>

#include "ccoip-masterd/masterd.h"

struct options {
	struct cc_addr listen[MASTERD_LISTEN_MAX];
	unsigned n_listen;
	int listen_fd, parent_fd; /* -1: not given */
	const char *admin_socket; /* NULL: the default; owned if it came from the file */
	char *admin_socket_of_file;
	const char *state_dir; /* NULL: no journal; likewise */
	char *state_dir_of_file;
	uint32_t host_timeout_ms, agent_grace_ms, recovery_ms; /* 0: the default */
	struct cc_bounds bounds;                               /* likewise */
	int log_level;
	bool listen_given, log_level_given; /* on the command line: the file's are passed over */
};

/* 0; or a negative enum cc_err, and *exit_code says with what to end (EX_OK after --help). */
int options_parse(struct options *o, int argc, char **argv, int *exit_code);
void options_clear(struct options *o);

#endif
