/* SPDX-License-Identifier: MIT */
#include "common/cc_futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_err.h"

/* This file does not use the _PRIVATE operations, because other processes map the memory of the
 * words. */

int cc_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec ts, *bound = NULL;

	if (timeout_ns != UINT64_MAX) {
		ts.tv_sec = (time_t)(timeout_ns / 1000000000u);
		ts.tv_nsec = (long)(timeout_ns % 1000000000u);
		bound = &ts;
	}
	if (syscall(SYS_futex, word, FUTEX_WAIT, expected, bound, NULL, 0) < 0 &&
		errno == ETIMEDOUT)
		return CC_ERR_TIMEOUT;
	return 0;
}

void cc_futex_wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}
