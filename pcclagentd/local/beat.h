/* SPDX-License-Identifier: MIT
 *
 * Asks a process whether it runs: a thread of its library answers each ask. That works where /proc
 * does not show the process, or does not show that its cgroup is frozen. Nothing here blocks.
 */
#ifndef BEAT_H
#define BEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "pcclagentd/local/process.h"

#define BEAT_ASKS  6u  /* so many without an answer: it is stopped */
#define BEAT_PARTS 64u /* of an interval */

struct beat {
	int fd;           /* -1: the process has no such thread */
	bool asked;       /* and not answered yet */
	uint32_t missed;  /* parts of intervals that have passed since without an answer */
	uint64_t look_ns; /* when the last one began */
};

/* *ret_other: the end that the process is to have; the caller closes it. 0 or CC_ERR_IO. */
int loc_beat_open(struct beat *b, int *ret_other);
/* Also of one that was never opened, with fd -1. */
void loc_beat_close(struct beat *b);

/*
 * Is the process stopped? Reads its answers, and asks again when it is due and every_ns have passed
 * since the last ask. A process that is not due is not asked, so that an idle one is not woken. A
 * process that is seen to run, or to wait for a CPU, is not stopped: its answer is late.
 */
bool loc_beat_is_silent(
	struct beat *b, const struct process *p, uint64_t every_ns, bool due, uint64_t now);
/* It is known to be stopped without being asked: asks begin anew. */
void loc_beat_forget(struct beat *b);
/* How many parts of an interval count on a machine with so many CPUs whose /proc/loadavg says this:
 * a process that is not seen may wait for a CPU, and longer the more threads want one. */
uint32_t loc_beat_parts(const char *loadavg, long cpus);

#endif
