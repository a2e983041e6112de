/* SPDX-License-Identifier: MIT
 *
 * Who is at the other end of a socket, and is it stopped? Children of the test are.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pcclagentd/process.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

static int sock; /* to the child */
static pid_t child;

/* A child that connects us, and calls itself something that looks like a state. */
static void setup(void)
{
	int pair[2];
	char c;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "x) T (y) T 1");
		if (write(pair[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pair[1]);
	ck_assert_int_eq(read(pair[0], &c, 1), 1);
	sock = pair[0];
}

static void teardown(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(sock);
}

/* waitpid tells when the child has changed its state: nothing is waited for by time. */
START_TEST(stopped_and_continued)
{
	struct process p;
	int status;

	/* The socket was made here: its peer is this process. The number is looked up. */
	process_open(&p, -1, (uint32_t)child);
	ck_assert_int_ge(p.pidfd, 0);
	ck_assert_int_ge(p.stat_fd, 0);
	ck_assert(!process_is_stopped(&p));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(kill(child, SIGSTOP), 0);
		ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
		ck_assert(process_is_stopped(&p));
		ck_assert_int_eq(kill(child, SIGCONT), 0);
		ck_assert_int_eq(waitpid(child, &status, WCONTINUED), child);
		ck_assert(!process_is_stopped(&p));
	}
	process_close(&p);
}
END_TEST

START_TEST(its_end_is_no_stop)
{
	struct process p, late;

	process_open(&p, -1, (uint32_t)child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ck_assert(!process_is_stopped(&p));
	process_close(&p);
	/* The number may be somebody else's now. */
	process_open(&late, -1, (uint32_t)child);
	ck_assert(!process_is_stopped(&late));
	process_close(&late);
	process_open(&late, -1, 0);
	ck_assert_int_eq(late.stat_fd, -1);
	process_close(&late);
}
END_TEST

Suite *process_suite(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");

	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, stopped_and_continued);
	tcase_add_test(t, its_end_is_no_stop);
	suite_add_tcase(s, t);
	return s;
}
