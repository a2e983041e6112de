/* SPDX-License-Identifier: MIT
 *
 * What the command line, the environment and the configuration file say. The command line wins over
 * the environment, which wins over the file.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

#include "pcclagentd/agentd.h"

struct options {
	struct agentd_config cfg;          /* without sockets */
	const char *config_file;           /* NULL: none was named */
	const char *socket, *admin_socket; /* NULL: not named */
	int listen_fd;                     /* -1: not given */
	bool is_private;
	bool again; /* the file is read once more: nothing but the settings here changes */
	bool idle_exit_set;
};

/* 0: go on. Otherwise *exit_code is what to end with (also after --help and --version). */
int options_parse(struct options *o, int argc, char **argv, int *exit_code);
/* One setting, by its name in the configuration file. 0, or CC_ERR_INVAL with the reason logged. */
int options_set(struct options *o, const char *key, const char *value, const char *where);

/* Section [masters] of the file. 0; else CC_ERR_*, also when another section is wrong, with the
 * reason logged and *ret left alone. */
int options_read_masters(const char *file, struct agentd_masters *ret);

#endif
