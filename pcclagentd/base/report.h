/* SPDX-License-Identifier: MIT
 *
 * Reports of faults: log lines about input from outside, at a bounded rate, and shortages of this
 * process.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>
#include <stdint.h>

/* Ends the process and thereby frees everything: the agent cannot go on without memory for its
 * tables. */
__attribute__((noreturn)) void rep_out_of_memory(const char *what);
#define uthash_fatal(msg) rep_out_of_memory(msg)
#include "common/cc_hash.h"
#include <utlist.h>

/* Describes a failed call, with its errno. Returns the result code for the trainers. Writes to
 * `text`: `what`, a colon, and the limit that this process has reached. `call`: the name of the
 * failed system call, which a seccomp filter may have refused. */
uint32_t rep_shortage(const char *what, const char *call, char *text, size_t size);

#define REP_BURST 20u

struct report {
	uint64_t refill_ns;
	uint32_t tokens, dropped;
	int level; /* level of the most severe line that was left out */
};

/* Logs a line, at most REP_BURST at once and then two in a second. If lines were left out, a line
 * with their number comes before the next line. Loop thread. */
__attribute__((format(printf, 3, 4))) void rep_complain(
	struct report *r, int level, const char *fmt, ...);

/* Copies like strlcpy: a text that is too long is cut. */
void rep_copy_text(char *dst, size_t size, const char *src);

#endif
