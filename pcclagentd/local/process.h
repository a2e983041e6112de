/* SPDX-License-Identifier: MIT
 *
 * The process at the other end of a session: is it alive, is it stopped? Nothing here blocks.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_SCHED_SIZE 64

struct process {
	uint32_t pid;
	/* Readable when the process has ended; -1 if the kernel or another pid namespace denies it.
	 */
	int pidfd;
	/* Its /proc/PID/stat; stays with this process even if the pid is used again; -1: none. */
	int stat_fd;
	int sched_fd; /* its /proc/PID/schedstat, read three times faster than stat; -1: none */
	/* The contents of schedstat when the process was last found asleep; or "". */
	char slept[PROCESS_SCHED_SIZE];
};

/* Opens the descriptors for the process that has connected `sock`. */
void loc_process_open(struct process *p, int sock, uint32_t pid);
void loc_process_close(struct process *p);
/* Is the process stopped by a signal or a debugger? False also if this cannot be known. */
bool loc_process_is_stopped(struct process *p);
/* Does a thread of the process run, or wait for a CPU? False also if this cannot be known. Reads a
 * file for each thread, so it is only for cases of doubt. */
bool loc_process_runs(const struct process *p);

#endif
