/* SPDX-License-Identifier: MIT
 *
 * Finds the daemons and starts them as child processes. Only threads of the application call
 * functions that read the environment (reconnector.h). Sets no sentences, because pccl-bench uses
 * these functions, too.
 */
#ifndef PCCL_SHIM_PROGRAM_H
#define PCCL_SHIM_PROGRAM_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Finds a program. Tries, in this order: the environment variable `env`; ../sbin/NAME relative to
 * this library; the configured sbindir; the folders of PATH. Writes the path of an executable file
 * to `buf` (`size` bytes). If there is none, writes the path in sbindir, so that starting it fails
 * with a useful errno. The path in the environment variable is not checked.
 */
void pccl_program_find(const char *env, const char *name, char *buf, size_t size);

/* Translates PCCL_LOG_LEVEL, which has the names of PCCL 1.0, to a value of the daemons' option
 * --log-level. Returns NULL if the variable is not set or has no such name. A wrong name is not an
 * error, as in PCCL 1.0; it is logged once. */
const char *pccl_program_log_level(void);

#define PCCL_PROGRAM_FDS 2

/*
 * Starts `path` with argv. The child has only these descriptors: 0 and 1 are /dev/null, 2 is err_fd
 * (or the standard error of this process if err_fd is -1), and 3 and up are fds[0..n_fds). The
 * child has default signal handling and no blocked signals. It has a process group of its own, so
 * that Ctrl-C does not reach the child. It gets the variables of the environment that any program
 * of the user may need, and those that its manual documents. It does not get variables that are
 * meant for this process, such as preloaded libraries and the service manager's sockets
 * (NOTIFY_SOCKET, JOURNAL_STREAM, LISTEN_FDS). Returns 0 and *ret_pid, or a negative enum cc_err
 * with errno. The process and all descriptors belong to the caller.
 */
int pccl_program_start(const char *path, char *const argv[], int err_fd, const int *fds,
	unsigned n_fds, pid_t *ret_pid);

#endif
