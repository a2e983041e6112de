/* SPDX-License-Identifier: MIT
 *
 * Configuration files of the daemons. The library that takes lines apart tells neither the line of
 * a setting nor what is wrong with a line, and knows no '#' behind a value.
 */
#ifndef CC_CONF_H
#define CC_CONF_H

#include <stdbool.h>

/* One setting. where: "FILE, line N", for a sentence. False: it is wrong, and the reason is logged.
 */
typedef bool cc_conf_setting_fn(
	void *arg, const char *where, const char *section, const char *key, const char *value);

/* Reads all of the file, and logs what is wrong with each line. 0, EX_NOINPUT or EX_CONFIG. */
int cc_conf_read(const char *path, cc_conf_setting_fn *fn, void *arg);

#endif
