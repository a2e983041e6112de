/* SPDX-License-Identifier: MIT
 *
 * What the agent says of faults: log lines about what came from outside, which are bounded, and
 * shortages of this process.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stddef.h>
#include <stdint.h>

/* Without memory for its tables the agent cannot go on: the process ends, with all it holds. */
__attribute__((noreturn)) void rep_out_of_memory(const char *what);
#define uthash_fatal(msg) rep_out_of_memory(msg)
#include <uthash.h>
#include <utlist.h>

/*
 * A call has failed, and errno says why: the code for its callers, and "what: " with the limit that
 * this process has reached in text. call: the system call that a filter may have refused.
 */
uint32_t rep_shortage(const char *what, const char *call, char *text, size_t size);

#define REP_BURST 20u

struct report {
	uint64_t refill_ns;
	uint32_t tokens, dropped;
	int level; /* of the gravest line that was left out */
};

/* REP_BURST lines at once, then two in a second; those that are left out are counted in the next
 * one. Loop thread. */
__attribute__((format(printf, 3, 4))) void rep_complain(
	struct report *r, int level, const char *fmt, ...);

/* Like strlcpy; cuts. */
void rep_copy_text(char *dst, size_t size, const char *src);

#endif
