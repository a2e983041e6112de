/* SPDX-License-Identifier: MIT
 *
 * Tests the log when nobody reads standard error. Lines are then dropped and counted, and no call
 * waits.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "common/cc_log.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

#define LINES   5000u /* more lines than any kind of standard error can hold */
#define THREADS 4

static int reader; /* descriptor of the other end of standard error */
static char text[1 << 20];

static void lead_stderr_to(int fd, int other_end)
{
	reader = other_end;
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

static void to_pipe(void)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	lead_stderr_to(fds[1], fds[0]);
}

static void to_socket(void)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	lead_stderr_to(fds[1], fds[0]);
}

static void to_terminal(void)
{
	int other_end = posix_openpt(O_RDWR | O_NOCTTY);

	ck_assert_int_ge(other_end, 0);
	ck_assert_int_eq(grantpt(other_end), 0);
	ck_assert_int_eq(unlockpt(other_end), 0);
	lead_stderr_to(open(ptsname(other_end), O_RDWR | O_NOCTTY), other_end);
}

static void to_stopped_terminal(void)
{
	to_terminal();
	ck_assert_int_eq(tcflow(STDERR_FILENO, TCOOFF), 0);
}

static void read_all(void)
{
	struct pollfd p = {.fd = reader, .events = POLLIN};
	size_t len = strlen(text);
	ssize_t n;

	while (len < sizeof text - 1 && poll(&p, 1, 100) > 0 &&
		(n = read(reader, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
}

static unsigned lines_with(const char *words)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, words)); p++)
		n++;
	return n;
}

static void log_lines(void)
{
	for (unsigned i = 0; i < LINES; i++)
		cc_log(CC_LOG_INFO, "a line of a usual length about agent %u", i);
}

static void *log_in_thread(void *arg)
{
	log_lines();
	return arg;
}

/* Adds up the counts of dropped lines. There may be several counts, because a terminal may have
 * room for a short time. */
static unsigned dropped(void)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, " dropped because standard error was not read"));
		p++) {
		const char *note = p;

		while (note > text && note[-1] != '\n')
			note--;
		note = strstr(note, "warning: ");
		n += note ? (unsigned)strtoul(note + 9, NULL, 10) : 0;
	}
	return n;
}

static const struct {
	void (*lead)(void);
} ways[] = {{to_pipe}, {to_socket}, {to_terminal}, {to_stopped_terminal}};

/* If a terminal takes only the beginning of a line, the line counts as dropped, and a newline ends
 * it before the next line. */
static void check_sum(unsigned all)
{
	unsigned whole = lines_with("\n"), n = dropped();

	ck_assert_uint_gt(n, 0);
	for (const char *p = text; (p = strstr(p, " about agent ")); p++)
		if (strcspn(p, "\n") > strlen(" about agent 1234\r"))
			ck_abort_msg("a cut line is continued by the next line: %.80s", p);
	ck_assert_msg(lines_with(" about agent ") + n >= all, "%u + %u", whole, n);
}

START_TEST(lines_that_nobody_reads_are_dropped_and_counted)
{
	ways[_i].lead();
	log_lines();
	ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	if (ways[_i].lead == to_stopped_terminal)
		ck_assert_int_eq(tcflow(STDERR_FILENO, TCOON), 0);
	read_all();
	cc_log(CC_LOG_INFO, "it is read again");
	cc_log(CC_LOG_INFO, "and once more");
	read_all();
	check_sum(LINES);
	ck_assert_uint_eq(lines_with("it is read again"), 1);
	ck_assert_uint_eq(lines_with("and once more"), 1);
}
END_TEST

/* One thread may see room for a line, and another thread may use this room first. */
START_TEST(lines_of_several_threads_are_all_written_or_counted)
{
	pthread_t t[THREADS];

	to_pipe();
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, log_in_thread, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	read_all();
	cc_log(CC_LOG_INFO, "it is read again");
	read_all();
	check_sum(THREADS * LINES);
}
END_TEST

START_TEST(log_file_gets_all_lines)
{
	FILE *f = tmpfile();

	ck_assert_ptr_nonnull(f);
	lead_stderr_to(dup(fileno(f)), fileno(f));
	log_lines();
	ck_assert_int_eq(lseek(reader, 0, SEEK_SET), 0);
	read_all();
	ck_assert_uint_eq(lines_with(" about agent "), LINES);
	ck_assert_uint_eq(lines_with("dropped"), 0);
	fclose(f);
}
END_TEST

START_TEST(closed_standard_error_does_no_harm)
{
	to_pipe();
	close(reader);
	signal(SIGPIPE, SIG_IGN);
	log_lines();
	close(STDERR_FILENO);
	log_lines();
}
END_TEST

Suite *log_suite(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("unread");

	tcase_set_timeout(t, 5);
	tcase_add_loop_test(t, lines_that_nobody_reads_are_dropped_and_counted, 0,
		(int)(sizeof ways / sizeof ways[0]));
	tcase_add_test(t, lines_of_several_threads_are_all_written_or_counted);
	tcase_add_test(t, log_file_gets_all_lines);
	tcase_add_test(t, closed_standard_error_does_no_harm);
	suite_add_tcase(s, t);
	return s;
}
