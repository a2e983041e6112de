/* SPDX-License-Identifier: MIT
 *
 * Configuration files and options of the daemons. The library that takes lines apart tells neither
 * the line of a setting nor what is wrong with a line, and knows no '#' behind a value.
 */
#ifndef CC_CONF_H
#define CC_CONF_H

#include <stdbool.h>

#include "common/cc_options.h"

/* One setting. where: "FILE, line N", for a sentence. False: it is wrong, and the reason is logged.
 */
typedef bool cc_conf_setting_fn(
	void *arg, const char *where, const char *section, const char *key, const char *value);

/* Reads all of the file, and logs what is wrong with each line. 0, EX_NOINPUT or EX_CONFIG. */
int cc_conf_read(const char *path, cc_conf_setting_fn *fn, void *arg);

/* All options of a daemon. options and base of *r are set; the rest of *r is this function's. fn is
 * called with r for each setting of the file *config, if that is not NULL after the command line.
 * 0; or a negative enum cc_err, and *exit_code says with what to end (EX_OK after --help). */
int cc_conf_options(struct cc_options_run *r, int argc, char **argv, char *const *config,
	cc_conf_setting_fn *fn, int *exit_code);
/* A setting that is in the section of the options, or a mistake. sections: which there are. */
bool cc_conf_key(struct cc_options_run *r, const char *where, const char *section, const char *key,
	const char *value, const char *sections);
/* For struct cc_options_run. */
void cc_conf_say(void *unused, int level, const char *sentence);

#endif
