/* SPDX-License-Identifier: MIT
 *
 * Finding and starting the daemons as child processes. What is read of the environment is read by
 * threads of the application only (reconnector.h). Sets no sentences: pccl-bench uses this, too.
 */
#ifndef PCCL_SHIM_PROGRAM_H
#define PCCL_SHIM_PROGRAM_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Where the program is: what the environment variable `env` says; else ../sbin/NAME as seen from
 * this library; else the configured sbindir; else a folder of PATH. Writes a path that is
 * executable, or, if there is none, the last candidate's (starting it fails with a good errno).
 * `size` bytes.
 */
void pccl_program_find(const char *env, const char *name, char *buf, size_t size);

/* What PCCL_LOG_LEVEL, which has the names of PCCL 1.0, means for the daemons' --log-level. NULL:
 * it is not set. What PCCL 1.0 does not know is no error, as there, but a line of the log, once. */
const char *pccl_program_log_level(void);

#define PCCL_PROGRAM_FDS 2

/*
 * Starts path with argv. Descriptors of the child: 0 and 1 are /dev/null, 2 is err_fd (or this
 * process's own standard error when it is -1), 3 and up are fds[0..n_fds), nothing else. Default
 * signal handling, nothing blocked, a process group of its own so that Ctrl-C is this process's
 * business. Of the environment it has what any program of the user may need, and what is documented
 * for it; not what is meant for this process: preloaded libraries, the service manager's sockets
 * (NOTIFY_SOCKET, JOURNAL_STREAM, LISTEN_FDS) and the like. 0 and *ret_pid, or a negative enum
 * cc_err with errno. The process and all descriptors stay the caller's.
 */
int pccl_program_start(const char *path, char *const argv[], int err_fd, const int *fds,
	unsigned n_fds, pid_t *ret_pid);

#endif
