/* SPDX-License-Identifier: MIT
 *
 * Tests of sockets (among them ports in use and stale socket files), addresses, log lines and
 * ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

static char dir[64], path[96];

static void make_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/pccl-test-sys-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/s.sock", dir);
}

static void remove_dir(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

static const struct cc_addr any_port = {.family = CC_INET4, .ip = {127, 0, 0, 1}};

START_TEST(addresses_are_matched_with_networks)
{
	static const struct {
		const char *addr, *net;
		uint8_t bits;
		bool in;
	} cases[] = {
		{"10.2.3.4", "10.2.0.0", 16, true},
		{"10.3.3.4", "10.2.0.0", 16, false},
		{"10.3.3.4", "10.2.0.0", 15, true},
		{"192.0.2.129", "192.0.2.128", 25, true},
		{"192.0.2.127", "192.0.2.128", 25, false},
		{"192.0.2.1", "192.0.2.1", 32, true},
		{"192.0.2.1", "2001:db8::", 0, false},
		{"2001:db8:0:1::7", "2001:db8:0:1::", 64, true},
		{"2001:db8:0:2::7", "2001:db8:0:1::", 64, false},
		{"2001:db8:0:2::7", "2001:db8:0:2::7", 128, true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cc_addr a, net;

		ck_assert_int_eq(cc_addr_parse(cases[i].addr, 0, &a), 0);
		ck_assert_int_eq(cc_addr_parse(cases[i].net, 0, &net), 0);
		ck_assert_int_eq(cc_addr_in_net(&a, &net, cases[i].bits), cases[i].in);
	}
}
END_TEST

START_TEST(listening_on_port_zero_returns_the_port)
{
	struct cc_addr a = any_port;
	int fd = cc_listen_tcp(&a, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_ne(a.port, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	close(fd);
}
END_TEST

START_TEST(port_in_use_fails_or_the_next_port_is_used)
{
	struct cc_addr a = any_port, same, next;
	int fd = cc_listen_tcp(&a, 0), fd2;

	same = next = a;
	ck_assert_int_eq(cc_listen_tcp(&same, 0), CC_ERR_EXIST);
	ck_assert_int_eq(errno, EADDRINUSE);
	ck_assert_uint_eq(same.port, a.port);
	fd2 = cc_listen_tcp(&next, 100);
	ck_assert_int_ge(fd2, 0);
	ck_assert_uint_gt(next.port, a.port);
	ck_assert_uint_le(next.port, a.port + 100u);
	close(fd);
	close(fd2);
}
END_TEST

/* Runs in a network namespace that only this test uses. */
static void add_address(const char *label, const struct cc_addr *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_flags = 0};
	struct sockaddr_storage ss;

	snprintf(lo.ifr_name, sizeof lo.ifr_name, "%s", label);
	cc_addr_to_sockaddr(a, &ss);
	memcpy(&lo.ifr_addr, &ss, sizeof lo.ifr_addr);
	ck_assert_int_eq(ioctl(fd, SIOCSIFADDR, &lo), 0);
	close(fd);
}

static void *add_address_later(void *arg)
{
	const struct timespec wait = {.tv_nsec = 250 * 1000000L};

	nanosleep(&wait, NULL);
	add_address("lo:1", arg);
	return NULL;
}

START_TEST(listening_waits_for_a_missing_address)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {192, 0, 2, 1}}, later = a;
	struct cc_addr every = {.family = CC_INET6};
	uint64_t begin;
	pthread_t t;
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		return;
	add_address("lo", &any_port);
	ck_assert_int_eq(cc_listen_tcp_patiently(&a, 10000, 0), CC_ERR_IO);
	ck_assert_int_eq(errno, EADDRNOTAVAIL);
	begin = cc_now_ns();
	ck_assert_int_eq(cc_listen_tcp_patiently(&a, 0, 200), CC_ERR_IO);
	ck_assert_int_eq(errno, EADDRNOTAVAIL);
	ck_assert_uint_ge(cc_now_ns() - begin, 200 * UINT64_C(1000000));
	ck_assert_int_eq(pthread_create(&t, NULL, add_address_later, &later), 0);
	fd = cc_listen_tcp_patiently(&a, 0, 10000);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = cc_listen_tcp_patiently(&every, 0, 0);
	ck_assert(fd >= 0 || errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
	if (fd >= 0)
		close(fd);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

START_TEST(ipv6_any_address_accepts_ipv4)
{
	struct cc_addr a = {.family = CC_INET6}, to = any_port, from;
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	int fd = cc_listen_tcp(&a, 0), c, s;

	if (fd < 0)
		return; /* a host without IPv6 */
	to.port = a.port;
	c = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(c, (struct sockaddr *)&ss, cc_addr_to_sockaddr(&to, &ss)), 0);
	s = accept(fd, (struct sockaddr *)&ss, &len);
	ck_assert_int_ge(s, 0);
	ck_assert_int_eq(cc_addr_from_sockaddr((struct sockaddr *)&ss, &from), 0);
	ck_assert_int_eq(from.family, CC_INET4);
	close(s);
	close(c);
	close(fd);
}
END_TEST

static int option(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof v;

	ck_assert_int_eq(getsockopt(fd, level, name, &v, &len), 0);
	return v;
}

START_TEST(tuned_sockets_have_timeouts_and_keepalive)
{
	int fd = socket(_i ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];

	if (fd < 0)
		return; /* a host without IPv6 */
	ck_assert_int_eq(cc_tcp_tune(fd), 0);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), CC_TCP_TIMEOUT_MS);
	ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 1);
	ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 2);
	cc_tcp_allow_silence(fd, 1000);
	ck_assert_int_gt(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), CC_PATH_MAX_MS);
	cc_tcp_allow_silence(fd, 60000);
	ck_assert_int_gt(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
	ck_assert_uint_eq(cc_tcp_path_ms(fd), 0);
	ck_assert_uint_eq(cc_tcp_info_path_ms(80000, 20000), 0);
	ck_assert_uint_eq(cc_tcp_info_path_ms(4000000, 250000), 5000 - CC_PATH_MS);
	ck_assert_uint_eq(cc_tcp_info_path_ms(UINT32_MAX, 0), CC_PATH_MAX_MS);
	ck_assert_uint_eq(cc_tcp_lossy_ms(10, 3), 0);
	ck_assert_uint_eq(cc_tcp_lossy_ms(64, 4), CC_LOSSY_MS);
	ck_assert_uint_eq(cc_tcp_lossy_ms(UINT32_MAX, 1000), 0);
	close(fd);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(cc_tcp_tune(pair[0]), CC_ERR_IO);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

START_TEST(socket_file_has_its_mode)
{
	struct stat st;
	int fd = cc_listen_unix(path, SOCK_STREAM, 0640);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	close(fd);
}
END_TEST

START_TEST(stale_socket_file_is_replaced)
{
	const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	int fd = cc_listen_unix(path, types[_i], 0600), c;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(access(path, F_OK), 0);
	fd = cc_listen_unix(path, types[_i], 0600);
	ck_assert_int_ge(fd, 0);
	c = cc_connect_unix(path, types[_i]);
	ck_assert_int_ge(c, 0);
	close(c);
	close(fd);
}
END_TEST

START_TEST(live_socket_is_not_replaced)
{
	int fd = cc_listen_unix(path, SOCK_STREAM, 0600), c;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(cc_listen_unix(path, SOCK_STREAM, 0600), CC_ERR_EXIST);
	/* The path is in use, although by a socket of another type. */
	ck_assert_int_eq(cc_listen_unix(path, SOCK_SEQPACKET, 0600), CC_ERR_EXIST);
	c = cc_connect_unix(path, SOCK_STREAM);
	ck_assert_int_ge(c, 0);
	close(c);
	close(fd);
}
END_TEST

/* The check whether a program listens must not block. */
START_TEST(socket_with_a_full_backlog_is_alive)
{
	int fd = cc_listen_unix(path, SOCK_STREAM, 0600), c[8];
	size_t n = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	while (n < 8 && (c[n] = cc_connect_unix(path, SOCK_STREAM | SOCK_NONBLOCK)) >= 0)
		n++;
	ck_assert_uint_lt(n, 8);
	ck_assert_int_eq(cc_listen_unix(path, SOCK_STREAM, 0600), CC_ERR_EXIST);
	while (n > 0)
		close(c[--n]);
	close(fd);
}
END_TEST

START_TEST(file_that_is_not_a_socket_is_not_replaced)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	ck_assert_int_eq(cc_listen_unix(path, SOCK_STREAM, 0600), CC_ERR_EXIST);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 1);
}
END_TEST

START_TEST(failed_socket_calls_return_the_right_error)
{
	char longer[200];

	memset(longer, 'x', sizeof longer - 1);
	longer[0] = '/';
	longer[sizeof longer - 1] = '\0';
	ck_assert_int_eq(cc_listen_unix(longer, SOCK_STREAM, 0600), CC_ERR_INVAL);
	ck_assert_int_eq(cc_connect_unix(longer, SOCK_STREAM), CC_ERR_INVAL);
	ck_assert_int_eq(errno, ENAMETOOLONG);
	ck_assert_int_eq(cc_connect_unix(path, SOCK_STREAM), CC_ERR_NOENT);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(cc_listen_unix("/nowhere/s.sock", SOCK_STREAM, 0600), CC_ERR_IO);
	ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(interface_list_contains_only_reachable_addresses)
{
	static struct cc_interface v[1024];
	int n = cc_interfaces(v, 1024);

	ck_assert_int_ge(n, 0);
	for (int i = 0; i < n && i < 1024; i++) {
		ck_assert(!cc_addr_is_loopback(&v[i].addr));
		ck_assert(!cc_addr_is_any(&v[i].addr));
		ck_assert_uint_eq(v[i].addr.port, 0);
		ck_assert_uint_le(v[i].bits, v[i].addr.family == CC_INET4 ? 32 : 128);
		ck_assert_int_ne(v[i].name[0], 0);
	}
	ck_assert_int_eq(cc_interfaces(v, 0), n);
}
END_TEST

/* Writes a log line to a separate standard error, and returns the line without its newline. */
static void log_to(int fd, char *text, size_t size)
{
	int own = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	cc_log(CC_LOG_WARNING, "it is so");
	ck_assert_int_ge(dup2(own, STDERR_FILENO), 0);
	close(own);
	n = pread(fd, text, size - 1, 0);
	ck_assert_int_gt(n, 0);
	text[n - 1] = '\0';
}

START_TEST(log_lines_have_time_and_program)
{
	int fd = memfd_create("log", 0), year, ms, pid;
	char text[256], program[32], rest[64];

	setenv("JOURNAL_STREAM", "1:2", 1); /* the journal stream of another process */
	log_to(fd, text, sizeof text);
	ck_assert_int_eq(sscanf(text, "%4d-%*2d-%*2d %*2d:%*2d:%*2d.%3d %31[^[][%d]: %63[^\n]",
				 &year, &ms, program, &pid, rest),
		5);
	ck_assert_int_ge(year, 2025);
	ck_assert_str_eq(program, program_invocation_short_name);
	ck_assert_int_eq(pid, getpid());
	ck_assert_str_eq(rest, "warning: it is so");
	close(fd);
}
END_TEST

START_TEST(log_lines_of_the_journal_have_a_priority)
{
	int fd = memfd_create("log", 0);
	char text[256], stream[64];
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_to(fd, text, sizeof text);
	ck_assert_str_eq(text, "<4>it is so");
	close(fd);
}
END_TEST

START_TEST(random_ids_differ_and_the_clock_does_not_go_back)
{
	uint64_t t = cc_now_ns();
	struct cc_id a, b;

	cc_random_id(&a);
	cc_random_id(&b);
	ck_assert(!cc_id_eq(&a, &b));
	ck_assert_uint_ge(cc_now_ns(), t);
}
END_TEST

Suite *sys_suite(void)
{
	Suite *s = suite_create("sys");
	TCase *tcp = tcase_create("tcp"), *un = tcase_create("unix"), *rest = tcase_create("rest");

	tcase_add_test(tcp, addresses_are_matched_with_networks);
	tcase_add_test(tcp, listening_on_port_zero_returns_the_port);
	tcase_add_test(tcp, port_in_use_fails_or_the_next_port_is_used);
	tcase_add_test(tcp, listening_waits_for_a_missing_address);
	tcase_add_test(tcp, ipv6_any_address_accepts_ipv4);
	tcase_add_loop_test(tcp, tuned_sockets_have_timeouts_and_keepalive, 0, 2);
	suite_add_tcase(s, tcp);
	tcase_add_checked_fixture(un, make_dir, remove_dir);
	tcase_add_test(un, socket_file_has_its_mode);
	tcase_add_loop_test(un, stale_socket_file_is_replaced, 0, 2);
	tcase_add_test(un, live_socket_is_not_replaced);
	tcase_add_test(un, socket_with_a_full_backlog_is_alive);
	tcase_add_test(un, file_that_is_not_a_socket_is_not_replaced);
	tcase_add_test(un, failed_socket_calls_return_the_right_error);
	suite_add_tcase(s, un);
	tcase_add_test(rest, interface_list_contains_only_reachable_addresses);
	tcase_add_test(rest, log_lines_have_time_and_program);
	tcase_add_test(rest, log_lines_of_the_journal_have_a_priority);
	tcase_add_test(rest, random_ids_differ_and_the_clock_does_not_go_back);
	suite_add_tcase(s, rest);
	return s;
}
