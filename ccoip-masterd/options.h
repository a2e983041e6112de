/* SPDX-License-Identifier: MIT
 *
 * The command line and the configuration file of ccoip-masterd.
 */
#ifndef MASTERD_OPTIONS_H
#define MASTERD_OPTIONS_H

#include <stdbool.h>

#include "ccoip-masterd/masterd.h"
#include "common/cc_options.h"

struct masterd_options {
	struct cc_addr listen[MASTERD_LISTEN_MAX];
	unsigned n_listen;
	int listen_fd, parent_fd;                              /* -1: not given */
	char *config, *admin_socket;                           /* NULL: not given */
	char *state_dir;                                       /* NULL: no journal */
	uint32_t host_timeout_ms, agent_lease_ms, recovery_ms; /* 0: the default */
	struct cc_bounds bounds;
	uint32_t benchmark_ms;
	uint32_t algorithm; /* enum ccm_algorithm */
	int log_level;
};

extern const struct cc_options masterd_options;

/* Parses the options. Returns 0, or a negative enum cc_err if the program must exit with the status
 * *exit_code (EX_OK after --help). */
int masterd_options_parse(struct masterd_options *o, int argc, char **argv, int *exit_code);
void masterd_options_clear(struct masterd_options *o);

#endif
