/* SPDX-License-Identifier: MIT
 *
 * Asks a process whether it runs: a thread of its library answers each ask. This also works if
 * /proc does not show the process, or does not show that its cgroup is frozen. Nothing here blocks.
 */
#ifndef BEAT_H
#define BEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/local/process.h"

#define BEAT_ASKS  6u  /* after this many asks without an answer, a process counts as stopped */
#define BEAT_PARTS 64u /* the interval between two asks has this many parts */

struct beat {
	int fd;           /* -1: the process has no such thread */
	bool asked;       /* an ask waits for its answer */
	uint32_t missed;  /* parts of intervals that have passed without an answer */
	uint64_t look_ns; /* when the last interval started */
};

/* Opens the connection for asks. *ret_other: the end for the process; the caller closes it. Returns
 * 0 or CC_ERR_IO. */
int loc_beat_open(struct beat *b, int *ret_other);
/* Closes the connection. Does nothing if it was never opened (fd is -1). */
void loc_beat_close(struct beat *b);

/* Is the process stopped? Reads its answers, and asks again if the process is `due` and every_ns
 * have passed since the last ask. A process that is not due is not asked, so an idle process is not
 * woken. If /proc shows that the process runs or waits for a CPU, the process is not stopped: only
 * its answer is late. */
bool loc_beat_is_silent(
	struct beat *b, const struct process *p, uint64_t every_ns, bool due, uint64_t now);
/* Forgets the missing answers. To be called when /proc shows that the process is stopped. */
void loc_beat_forget(struct beat *b);
/* Returns how many of the BEAT_PARTS parts of an unanswered interval are counted, from the text of
 * /proc/loadavg and the number of CPUs: fewer if more threads want to run, because a process that
 * /proc does not show may only be waiting for a CPU. */
uint32_t loc_beat_parts(const char *loadavg, long cpus);

#endif
