/* SPDX-License-Identifier: MIT
 *
 * The process at the other end of a session: does it live, is it stopped? Nothing here blocks.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_SCHED_SIZE 64

struct process {
	uint32_t pid;
	int pidfd;    /* readable once it has ended; -1 where the kernel or another pid namespace
		       * denies it */
	int stat_fd;  /* its /proc/PID/stat: stays with this process when the number is used again;
		       * -1 where there is none */
	int sched_fd; /* likewise /proc/PID/schedstat, which is read in a third of the time */
	char slept[PROCESS_SCHED_SIZE]; /* what that said when it was found asleep; or "" */
};

/* Of the process that connected sock. */
void loc_process_open(struct process *p, int sock, uint32_t pid);
void loc_process_close(struct process *p);
/* By a signal or a debugger. False also when that cannot be known. */
bool loc_process_is_stopped(struct process *p);
/* Does one of its threads run, or wait for a CPU? False also when that cannot be known. Reads a
 * file for each thread: for when there is a doubt. */
bool loc_process_runs(const struct process *p);

#endif
