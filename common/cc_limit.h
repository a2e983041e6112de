/* SPDX-License-Identifier: MIT
 *
 * Texts that name the limit which a failed system call has reached.
 */
#ifndef CC_LIMIT_H
#define CC_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_LIMIT_TEXT 256

/* Is this errno one of EAGAIN (from the start of a thread or process), EMFILE, ENFILE, ENOMEM,
 * ENOSPC, EFBIG, ENOBUFS, ETOOMANYREFS? */
bool cc_limit_is(int error);
/* Does this errno of this call mean that a limit is reached? The errnos of cc_limit_is mean it for
 * any call, and EADDRNOTAVAIL means it only for "connect". */
bool cc_limit_is_of(const char *call, int error);
/*
 * Writes the error, the limit that is reached and its value, and the process and the host, and
 * returns buf: "Too many open files: the limit of open files (RLIMIT_NOFILE) of pcclagentd (pid 7)
 * on host a is 1024". The function compares the use with each limit that can cause the error. If no
 * readable limit is reached, the text says so. If the error is not about a limit, it writes only
 * the error. Keeps errno. For EAGAIN it reads a file of every visible process, so do not call it
 * often.
 */
const char *cc_limit_text(int error, char *buf, size_t size);
/* Does the same as cc_limit_text for an error of the call with this name. The name is not
 * written. */
const char *cc_limit_text_of(const char *call, int error, char *buf, size_t size);
/* Does the same as cc_limit_text without the process id, the host and any path, for readers who
 * must not see them. */
const char *cc_limit_brief(int error, char *buf, size_t size);
/* Does the same as cc_limit_text for an error of the call with this name (NULL: any call), which
 * asked for `asked` bytes of memory (0: it asked for something else). Reads the system's files
 * below `root`, for tests. */
const char *cc_limit_text_below(
	const char *root, const char *call, int error, uint64_t asked, char *buf, size_t size);
/* Writes the limits of this process that are so low that a program which inherits them may end
 * before it can log the reason: "the limit of stacks (RLIMIT_STACK) of train (pid 7) on host a is
 * 65536". Returns NULL if no limit is so low. */
const char *cc_limit_inherited(char *buf, size_t size);
/* Is this the errno of a system that lacks the call, or of a filter that forbids it? */
bool cc_limit_is_refusal(int error);
/*
 * Writes the name of the call and the same as cc_limit_text. For a call that is refused it writes
 * "memfd_create: Operation not permitted: a seccomp filter, or a kernel that lacks the call,
 * refuses it to pcclagentd (pid 7) on host a". `asked` is the number of bytes of memory that the
 * call asked for, or 0.
 */
const char *cc_limit_call_text(const char *call, int error, uint64_t asked, char *buf, size_t size);
/* Logs `what` as an error. If errno means that a limit is reached, the line also names the limit.
 * Keeps errno. */
void cc_limit_log(const char *what);
/* Returns the exit status of a daemon that cannot start: EX_OSERR if errno means that a limit is
 * reached, or else EX_UNAVAILABLE. */
int cc_limit_status(void);
/* Logs that there is no memory for `what`, logs the limit, and ends the process with EX_OSERR. */
_Noreturn void cc_limit_end(const char *what);

#endif
