/* SPDX-License-Identifier: MIT
 *
 * Configuration files and options of the daemons. The library that parses the lines reports neither
 * the line number of a setting nor the mistake in a line, and does not know comments with '#' after
 * a value. This file adds all three.
 */
#ifndef CC_CONF_H
#define CC_CONF_H

#include <stdbool.h>

#include "common/cc_options.h"

/* Takes one setting. where: "FILE, line N", for messages. Returns false if the setting is wrong,
 * after it has logged the reason. */
typedef bool cc_conf_setting_fn(
	void *arg, const char *where, const char *section, const char *key, const char *value);

/* Reads the whole file, and logs the mistake in each wrong line. Returns 0, EX_NOINPUT or
 * EX_CONFIG. */
int cc_conf_read(const char *path, cc_conf_setting_fn *fn, void *arg);

/* Parses all options of a daemon. The caller sets options and base of *r; this function sets the
 * rest of *r. Calls fn with r for each setting of the file *config, if the command line has set
 * *config. Returns 0, or a negative enum cc_err if the program must exit with the status *exit_code
 * (EX_OK after --help). */
int cc_conf_options(struct cc_options_run *r, int argc, char **argv, char *const *config,
	cc_conf_setting_fn *fn, int *exit_code);
/* Handles a setting of the options' section. A setting of another section is a mistake. sections:
 * text that names the valid sections. */
bool cc_conf_key(struct cc_options_run *r, const char *where, const char *section, const char *key,
	const char *value, const char *sections);
/* Logs the sentence. For struct cc_options_run. */
void cc_conf_say(void *unused, int level, const char *sentence);

#endif
