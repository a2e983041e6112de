/* SPDX-License-Identifier: MIT
 *
 * What a system call that found nothing left has run into, in words.
 */
#ifndef CC_LIMIT_H
#define CC_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#define CC_LIMIT_TEXT 224

/* Is this errno one of EAGAIN (of a thread or process), EMFILE, ENFILE, ENOMEM, ENOSPC? */
bool cc_limit_is(int error);
/*
 * Writes the error, which limit it is, how high it is, and the process and host that have it, and
 * returns buf: "Too many open files: the limit of open files (RLIMIT_NOFILE) of pcclagentd (pid 7)
 * on host a is 1024". Other errors are written as they are. Keeps errno.
 */
const char *cc_limit_text(int error, char *buf, size_t size);

#endif
