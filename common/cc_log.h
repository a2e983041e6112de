/* SPDX-License-Identifier: MIT
 *
 * Writes log lines of the daemons to standard error. If standard error leads to the journal, a line
 * begins with a syslog priority; otherwise it begins with time, program, process and the name of
 * the level. Thread-safe, with one write per line. No call waits for a reader. Lines for which
 * there is no room are dropped. Before the next line, a line states how many lines were dropped.
 */
#ifndef CC_LOG_H
#define CC_LOG_H

enum cc_log_level {
	CC_LOG_ERR = 3,
	CC_LOG_WARNING = 4,
	CC_LOG_NOTICE = 5,
	CC_LOG_INFO = 6,
	CC_LOG_DEBUG = 7,
};

/* The names "err", "warning", "notice", "info" and "debug", beginning with that of CC_LOG_ERR, and
 * then NULL. */
extern const char *const cc_log_levels[];

/* Drops lines with a level above this one from now on. The default is CC_LOG_INFO. */
void cc_log_set_level(int level);
/* Returns the level with this name from cc_log_levels, or -1. */
int cc_log_parse_level(const char *name);
/* Writes a log line. Keeps errno. */
__attribute__((format(printf, 2, 3))) void cc_log(int level, const char *fmt, ...);

#endif
