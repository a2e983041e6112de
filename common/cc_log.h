/* SPDX-License-Identifier: MIT
 *
 * Log lines of the daemons, to standard error: with a syslog priority prefix where that leads to
 * the journal, with time, program, process and the level's name otherwise. Thread-safe: one write
 * per line. No call waits for a reader: lines for which there is no room are dropped, and the next
 * one that is written comes after a line that says how many.
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

/* "err", "warning", "notice", "info", "debug", from CC_LOG_ERR on; then NULL. */
extern const char *const cc_log_levels[];

/* Lines above the level are dropped. Default CC_LOG_INFO. */
void cc_log_set_level(int level);
/* One of cc_log_levels -> level, or -1. */
int cc_log_parse_level(const char *name);
/* Keeps errno. */
__attribute__((format(printf, 2, 3))) void cc_log(int level, const char *fmt, ...);

#endif
