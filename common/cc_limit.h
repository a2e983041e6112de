/* SPDX-License-Identifier: MIT
 *
 * What a system call that found nothing left has run into, in words.
 */
#ifndef CC_LIMIT_H
#define CC_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_LIMIT_TEXT 256

/* Is this errno one of EAGAIN (of a thread or process), EMFILE, ENFILE, ENOMEM, ENOSPC, EFBIG,
 * ENOBUFS, ETOOMANYREFS? */
bool cc_limit_is(int error);
/* Likewise, or another one that says so of this call: EADDRNOTAVAIL of "connect". */
bool cc_limit_is_of(const char *call, int error);
/*
 * Writes the error, which limit is reached, how high it is, and the process and host that have it,
 * and returns buf: "Too many open files: the limit of open files (RLIMIT_NOFILE) of pcclagentd
 * (pid 7) on host a is 1024". What is used is compared with each limit that can cause the error; if
 * none of those that can be read is reached, it says so. Other errors are written as they are.
 * Keeps errno. For EAGAIN it looks at all processes of this user: not for where calls come often.
 */
const char *cc_limit_text(int error, char *buf, size_t size);
/* The same of a call of this name, which it does not write. */
const char *cc_limit_text_of(const char *call, int error, char *buf, size_t size);
/* The same without the process, the host and any path, for strangers. */
const char *cc_limit_brief(int error, char *buf, size_t size);
/* Like cc_limit_text, for a call of this name (NULL: any) that was to get so many bytes of memory
 * (0: it was for something else), with the system's files below a root of a test. */
const char *cc_limit_text_below(
	const char *root, const char *call, int error, uint64_t asked, char *buf, size_t size);
/* Those limits of this process that are so low that a program which inherits them may end before it
 * can say why: "the limit of stacks (RLIMIT_STACK) of train (pid 7) on host a is 65536". NULL: none
 * is. */
const char *cc_limit_inherited(char *buf, size_t size);
/* Does a system that lacks a call, or a filter that forbids it, say this errno? */
bool cc_limit_is_refusal(int error);
/*
 * The same for a call of this name, also for one that is refused: "memfd_create: Operation not
 * permitted: a seccomp filter or a kernel without it refuses it to pcclagentd (pid 7) on host a".
 * asked: bytes of memory that it was to get, or 0.
 */
const char *cc_limit_call_text(const char *call, int error, uint64_t asked, char *buf, size_t size);
/* Logs `what` as an error, and after it the limit that errno tells of, if it does. Keeps errno. */
void cc_limit_log(const char *what);
/* The exit status of a daemon that cannot start: EX_OSERR where errno tells of a limit, or else
 * EX_UNAVAILABLE. */
int cc_limit_status(void);
/* Logs that there is no memory for `what`, and the limit, and ends the process with EX_OSERR. */
_Noreturn void cc_limit_end(const char *what);

#endif
