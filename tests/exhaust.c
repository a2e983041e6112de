/* SPDX-License-Identifier: MIT */
#include "tests/exhaust.h"

#include <check.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_must.h"

#define HANDLED 42 /* exit status of a child process whose handler was called */
#define IGNORED 43 /* an allocation has failed, and the handler was not called */

static bool in_core;
static long left = -1; /* allocations that succeed before one fails; -1: none fails */
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool fails(void)
{
	if (!in_core || left < 0 || left-- > 0)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

void exhaust_core(bool within)
{
	in_core = within;
}

static void on_exhausted(void)
{
	_exit(HANDLED);
}

/* Returns whether fn has reached allocation n. */
static bool exhaust_at(long n, void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		cc_must_on_exhausted(on_exhausted);
		left = n;
		fn();
		_exit(failed ? IGNORED : EXIT_SUCCESS);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_SUCCESS ||
						   WEXITSTATUS(status) == HANDLED),
		"allocation %ld has failed: wait status %d", n, status);
	return WEXITSTATUS(status) == HANDLED;
}

long exhaust(void (*fn)(void))
{
	long n = 0;

	while (exhaust_at(n, fn))
		n++;
	return n;
}
