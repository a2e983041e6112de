/* SPDX-License-Identifier: MIT
 *
 * Tests of the event loop. Every step of the loop ends when the awaited event comes. If it does not
 * come, the watchdog ends the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "tests/common/looplib.h"
#include "tests/common/suites.h"

START_TEST(stop_before_run_counts)
{
	cc_loop_stop(loop);
	ck_assert_int_eq(cc_loop_run(loop), 0);
}
END_TEST

static uint64_t cpu_ns(void)
{
	struct timespec t;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

START_TEST(loop_sleeps_again_after_an_expected_event)
{
	struct cc_timer *t = cc_timer_new(loop, 300, loop_stop, NULL);
	uint64_t used = cpu_ns();

	cc_loop_expect(loop);
	ck_assert_int_eq(cc_loop_run(loop), 0);
	ck_assert_uint_lt(cpu_ns() - used, 100000000u);
	cc_timer_free(t);
	cc_loop_expect(loop);
	cc_loop_stop(loop);
	ck_assert_int_eq(cc_loop_run(loop), 0);
	cc_loop_expect(loop);
	loop_turn();
}
END_TEST

static unsigned count;
static size_t n_order;
static char order[64], a_name[] = "a", b_name[] = "b", c_name[] = "c";

static void count_and_stop(void *arg)
{
	if (++count == *(const unsigned *)arg)
		cc_loop_stop(loop);
}

START_TEST(timer_repeats)
{
	unsigned n = 5;
	uint64_t t = cc_now_ns();
	struct cc_timer *x = cc_timer_new(loop, 4, count_and_stop, &n);

	ck_assert_int_eq(cc_loop_run(loop), 0);
	ck_assert_uint_eq(count, 5);
	ck_assert_uint_ge(cc_now_ns() - t, 15000000u);
	cc_timer_free(x);
}
END_TEST

static void bump(void *arg)
{
	(void)arg;
	count++;
}

static void note(void *arg)
{
	order[n_order++] = *(const char *)arg;
	if (strcmp(arg, "c") == 0)
		cc_loop_stop(loop);
}

static void note_and_defer(void *arg)
{
	note(arg);
	ck_assert_int_eq(cc_loop_defer(loop, note, c_name), 0);
}

START_TEST(deferred_calls_keep_their_order)
{
	ck_assert_int_eq(cc_loop_defer(loop, note_and_defer, a_name), 0);
	ck_assert_int_eq(cc_loop_defer(loop, note, b_name), 0);
	ck_assert_int_eq(cc_loop_run(loop), 0);
	ck_assert_str_eq(order, "abc");
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_eq(cc_loop_defer(loop, bump, NULL), 0);
	loop_turn();
	ck_assert_int_eq(cc_loop_defer(loop, bump, NULL), 0); /* never called; must not leak */
}
END_TEST

START_TEST(edge_watch_fires_once_per_readiness)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct cc_watch *w = cc_watch_new(loop, fd, true, bump, NULL);

	ck_assert_int_eq(eventfd_write(fd, 1), 0);
	loop_turn();
	loop_turn();
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(eventfd_write(fd, 1), 0);
	loop_turn();
	ck_assert_uint_eq(count, 2);
	cc_watch_free(w);
	close(fd);
}
END_TEST

static struct cc_watch *self;

static void free_self(void *arg)
{
	bump(arg);
	cc_watch_free(self);
	cc_loop_stop(loop);
}

START_TEST(watch_may_free_itself)
{
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);

	self = cc_watch_new(loop, fd, false, free_self, NULL);
	ck_assert_int_eq(cc_loop_run(loop), 0);
	loop_turn();
	ck_assert_uint_eq(count, 1);
	close(fd);
}
END_TEST

START_TEST(watching_a_regular_file_fails)
{
	FILE *f = tmpfile();

	ck_assert_ptr_null(cc_watch_new(loop, fileno(f), false, bump, NULL));
	fclose(f);
}
END_TEST

static void on_signal(void *arg, int signo)
{
	*(int *)arg = signo;
	cc_loop_stop(loop);
}

START_TEST(signals_arrive_in_the_loop)
{
	int got = 0;

	ck_assert_int_eq(cc_loop_signal(loop, SIGUSR1, on_signal, &got), 0);
	raise(SIGUSR1);
	ck_assert_int_eq(got, 0);
	ck_assert_int_eq(cc_loop_run(loop), 0);
	ck_assert_int_eq(got, SIGUSR1);
}
END_TEST

/* ---- listeners without descriptors ---- */

static unsigned n_taken, n_refused;
static int hole = -1; /* a descriptor that the test can close later */

static int open_null(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Uses up all descriptors. Closing `hole` frees one of them. */
static void use_up_descriptors(void)
{
	struct rlimit rl = {.rlim_max = 64};

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
	for (int fd = open_null(); fd >= 0; fd = open_null())
		hole = fd;
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_ge(hole, 0);
}

static void take_in(void *arg, int fd)
{
	(void)arg;
	close(fd);
	n_taken++;
	cc_loop_stop(loop);
}

static void reject_connection(void *arg, int fd, int error, const char *limit)
{
	(void)arg;
	ck_assert_int_eq(error, EMFILE);
	ck_assert_ptr_nonnull(strstr(limit, "RLIMIT_NOFILE"));
	close(fd);
	n_refused++;
	cc_loop_stop(loop);
}

/* Refuses the connection and closes its descriptor, but takes the number of this descriptor before
 * the loop can reserve it again. */
static void lose_spare(void *arg, int fd, int error, const char *limit)
{
	reject_connection(arg, fd, error, limit);
	hole = open_null();
	ck_assert_int_ge(hole, 0);
}

static int listen_here(struct sockaddr_in *ret)
{
	socklen_t len = sizeof *ret;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_eq(bind(fd, (struct sockaddr *)ret, len), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)ret, &len), 0);
	return fd;
}

START_TEST(listener_without_a_spare_descriptor_reports_an_error)
{
	struct sockaddr_in addr;
	struct cc_listener *x = cc_listener_new(loop, listen_here(&addr), take_in, NULL);

	ck_assert_ptr_nonnull(x);
	use_up_descriptors();
	ck_assert_int_lt(cc_listener_on_shortage(x, reject_connection), 0);
	ck_assert_int_eq(errno, EMFILE);
	close(hole);
	ck_assert_int_eq(cc_listener_on_shortage(x, reject_connection), 0);
	cc_listener_free(x);
}
END_TEST

/* Without the spare descriptor the loop can only close the descriptor of the new connection. */
START_TEST(connections_are_refused_without_the_spare_descriptor)
{
	int clients[4];
	struct sockaddr_in addr;
	struct cc_listener *x = cc_listener_new(loop, listen_here(&addr), take_in, NULL);

	ck_assert_ptr_nonnull(x);
	ck_assert_int_eq(cc_listener_on_shortage(x, lose_spare), 0);
	for (int i = 0; i < 4; i++)
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	use_up_descriptors();
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(connect(clients[i], (struct sockaddr *)&addr, sizeof addr), 0);
		ck_assert_int_eq(cc_loop_run(loop), 0);
		ck_assert_uint_eq(n_refused, i < 3 ? i + 1 : 3);
		ck_assert_uint_eq(n_taken, i < 3 ? 0 : 1);
		close(i < 2 ? hole : clients[0]);
		if (i == 1)
			ck_assert_int_eq(cc_listener_on_shortage(x, reject_connection), 0);
	}
	cc_listener_free(x);
}
END_TEST

Suite *loop_suite(void)
{
	Suite *s = suite_create("loop");
	TCase *base = tcase_create("loop");

	tcase_add_checked_fixture(base, loop_setup, loop_teardown);
	tcase_add_test(base, stop_before_run_counts);
	tcase_add_test(base, loop_sleeps_again_after_an_expected_event);
	tcase_add_test(base, timer_repeats);
	tcase_add_test(base, deferred_calls_keep_their_order);
	tcase_add_test(base, edge_watch_fires_once_per_readiness);
	tcase_add_test(base, watch_may_free_itself);
	tcase_add_test(base, watching_a_regular_file_fails);
	tcase_add_test(base, signals_arrive_in_the_loop);
	tcase_add_test(base, listener_without_a_spare_descriptor_reports_an_error);
	tcase_add_test(base, connections_are_refused_without_the_spare_descriptor);
	suite_add_tcase(s, base);
	return s;
}
