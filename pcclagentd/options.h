/* SPDX-License-Identifier: MIT
 *
 * The settings from the command line, the environment and the configuration file. The command line
 * overrides the environment, and the environment overrides the file.
 */
#ifndef AGENTD_OPTIONS_H
#define AGENTD_OPTIONS_H

#include <stdbool.h>

#include "common/cc_options.h"
#include "pcclagentd/agentd.h"

struct agentd_options {
	struct agentd_config cfg;                  /* the configuration without the sockets */
	char *config_file, *socket, *admin_socket; /* NULL: not given */
	int listen_fd;                             /* -1: not given */
	bool is_private;
	int log_level;
};

extern const struct cc_options agentd_options;

/* Reads all settings. Returns 0 if the program should go on. Otherwise the program ends with
 * *exit_code (also after --help and --version). */
int agentd_options_parse(struct agentd_options *o, int argc, char **argv, int *exit_code);
void agentd_options_clear(struct agentd_options *o);

/* Reads section [masters] of the file. Returns 0; or CC_ERR_*, also if another section is wrong:
 * then the reason was logged, and *ret is unchanged. */
int agentd_options_read_masters(const char *file, struct agentd_masters *ret);

/* Sets everything but the sockets and the name to its default. */
void agentd_config_init(struct agentd_config *c);

#endif
