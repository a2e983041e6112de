/* SPDX-License-Identifier: MIT
 *
 * Tests of cc_must.h: what the memory contains, and the handler that is called when memory is
 * exhausted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_must.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

static const uint32_t five[] = {1, 2, 3, 4, 5};
static jmp_buf handled;

static void on_exhausted(void)
{
	longjmp(handled, 1);
}

static void returns(void)
{
}

START_TEST(memory_is_zeroed)
{
	uint8_t *p = malloc(64);
	size_t i;

	ck_assert_ptr_nonnull(p);
	memset(p, 0xff, 64);
	free(p); /* the next allocation gets the same memory */
	p = cc_must_zalloc(16, 4);
	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(p[i], 0);
	free(p);
	p = cc_must_zalloc(0, 4);
	ck_assert_ptr_nonnull(p);
	free(p);
}
END_TEST

START_TEST(array_that_grows_keeps_its_contents)
{
	size_t cap = 0;
	uint32_t *v = cc_must_grow(NULL, &cap, 5, sizeof *v), i;

	ck_assert_uint_eq(cap, 5);
	memcpy(v, five, sizeof five);
	v = cc_must_grow(v, &cap, 5, sizeof *v);
	ck_assert_uint_eq(cap, 10);
	ck_assert_mem_eq(v, five, sizeof five);
	v = cc_must_extend(v, 5, 1000, sizeof *v);
	ck_assert_mem_eq(v, five, sizeof five);
	for (i = 5; i < 1000; i++)
		ck_assert_uint_eq(v[i], 0);
	free(v);
}
END_TEST

START_TEST(copy_has_all_elements)
{
	uint32_t *v = cc_must_copy(five, 5, sizeof *v), *none = cc_must_copy(NULL, 0, sizeof *v);

	ck_assert_mem_eq(v, five, sizeof five);
	ck_assert_ptr_nonnull(none);
	free(v);
	free(none);
}
END_TEST

/* Asks for more bytes than a size_t can count. */
static void overflow(int how)
{
	size_t cap = SIZE_MAX / 4 + 1;

	if (how == 0)
		free(cc_must_zalloc(SIZE_MAX / 4 + 1, 4));
	else if (how == 1)
		free(cc_must_grow(NULL, &cap, 1, 4));
	else if (how == 2)
		free(cc_must_extend(NULL, 0, SIZE_MAX / 4 + 1, 4));
	else
		free(cc_must_copy(five, SIZE_MAX / 4 + 1, 4));
}

START_TEST(too_many_bytes_call_the_handler)
{
	cc_must_on_exhausted(on_exhausted);
	if (setjmp(handled) == 0) {
		overflow(_i);
		ck_abort_msg("the handler was not called");
	}
}
END_TEST

START_TEST(handler_that_returns_aborts)
{
	cc_must_on_exhausted(returns);
	cc_must_exhausted();
}
END_TEST

START_TEST(program_without_handler_aborts_with_a_sentence)
{
	int fds[2], status;
	char text[64];
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (dup2(fds[1], STDERR_FILENO) < 0)
			_exit(1);
		cc_must_exhausted();
	}
	n = read(fds[0], text, sizeof text - 1);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_str_eq(text, "memory is exhausted\n");
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

Suite *must_suite(void)
{
	Suite *s = suite_create("must");
	TCase *tc = tcase_create("must");

	tcase_add_test(tc, memory_is_zeroed);
	tcase_add_test(tc, array_that_grows_keeps_its_contents);
	tcase_add_test(tc, copy_has_all_elements);
	tcase_add_loop_test(tc, too_many_bytes_call_the_handler, 0, 4);
	tcase_add_test_raise_signal(tc, handler_that_returns_aborts, SIGABRT);
	tcase_add_test(tc, program_without_handler_aborts_with_a_sentence);
	suite_add_tcase(s, tc);
	return s;
}
