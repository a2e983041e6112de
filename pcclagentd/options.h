/* SPDX-License-Identifier: MIT
 *
 * What the command line, the environment and the configuration file say. The command line wins over
 * the environment, which wins over the file.
 */
#ifndef AGENTD_OPTIONS_H
#define AGENTD_OPTIONS_H

#include <stdbool.h>

#include "common/cc_options.h"
#include "pcclagentd/agentd.h"

struct agentd_options {
	struct agentd_config cfg;                  /* without sockets */
	char *config_file, *socket, *admin_socket; /* NULL: not named */
	int listen_fd;                             /* -1: not given */
	bool is_private;
	int log_level;
};

extern const struct cc_options agentd_options;

/* 0: go on. Otherwise *exit_code is what to end with (also after --help and --version). */
int agentd_options_parse(struct agentd_options *o, int argc, char **argv, int *exit_code);
void agentd_options_clear(struct agentd_options *o);

/* Section [masters] of the file. 0; else CC_ERR_*, also when another section is wrong, with the
 * reason logged and *ret left alone. */
int agentd_options_read_masters(const char *file, struct agentd_masters *ret);

/* Everything but the sockets and the name gets its default. */
void agentd_config_init(struct agentd_config *c);

#endif
