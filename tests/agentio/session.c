/* SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cc_log.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/report.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fixture.h"
#include "tests/agentio/suites.h"

static struct fx f;
static struct client canary; /* a session that must not be affected */

static void limits(struct agentd_config *cfg)
{
	cfg->sessions_per_user = 40;
}

static void setup(void)
{
	fx_start(&f, limits);
	client_open(&f, &canary);
}

static void teardown(void)
{
	struct mem a;

	ck_assert_uint_eq(client_alloc(&canary, 4096, &a), WIRE_SUCCESS);
	ck_assert_uint_eq(client_free(&canary, a.region), WIRE_SUCCESS);
	client_close(&canary);
	fx_check_alive(&f);
	fx_stop(&f);
}

static bool sessions_are(const struct agentd_stats *s, uint64_t n)
{
	return s->sessions == n;
}

/* The number of sessions alone shows too little: other connections may still wait to be accepted.
 */
static bool fds_are(const struct agentd_stats *s, uint64_t n)
{
	return s->sessions == 1 && fx_count_fds() == n;
}

/* A library without beats gets no channel for them. The other tests play such a library. */
START_TEST(the_answer_to_the_hello_carries_the_beat_channel)
{
	struct wl_request q = {.type = WL_HELLO,
		.version_min = WL_VERSION_MIN,
		.version_max = WL_VERSION_MAX,
		.features = WL_BEAT | 1u << 31,
		.name = "test"};
	struct client c;
	struct wl_reply r;
	int beat;
	char ask;

	client_connect(&f, &c);
	client_call(&c, &q, &r, &beat, 1);
	ck_assert_uint_eq(r.features, WL_BEAT);
	/* No other peer waits for this process. */
	ck_assert_int_eq(recv(beat, &ask, 1, MSG_DONTWAIT), -1);
	client_close(&c);
	ck_assert_int_eq(recv(beat, &ask, 1, 0), 0);
	close(beat);
}
END_TEST

static int hello_packet(uint8_t buf[WL_PACKET_MAX], uint32_t min, uint32_t max)
{
	struct wl_request q = {.type = WL_HELLO,
		.req_id = 1,
		.version_min = min,
		.version_max = max,
		.name = "a program"};
	int len = wire_local_put_request(&q, buf);

	ck_assert_int_gt(len, 0);
	return len;
}

START_TEST(a_hello_that_is_cut_short_ends_the_session)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = hello_packet(buf, WL_VERSION_MIN, WL_VERSION_MAX);
	char text[WL_TEXT_MAX];
	struct client c;

	for (int i = 0; i < len; i++) {
		struct wl_reply r;

		client_connect(&f, &c);
		ck_assert_int_eq(send(c.fd, buf, (size_t)i, MSG_NOSIGNAL), i);
		/* A cut may fall between two fields and leave a complete message. */
		if (i == 0)
			shutdown(c.fd, SHUT_WR);
		if (client_receive(&c, &r, NULL, 0) && r.req_id != 0)
			shutdown(c.fd, SHUT_WR);
		client_await_end(&c, text);
	}
	fx_await(&f, sessions_are, 1);
}
END_TEST

START_TEST(random_packets_end_the_session)
{
	char text[WL_TEXT_MAX];
	struct client c;

	srand(4711);
	for (int i = 0; i < 300; i++) {
		uint8_t buf[600];
		size_t len = 1 + (size_t)rand() % sizeof buf;

		for (size_t j = 0; j < len; j++)
			buf[j] = (uint8_t)rand();
		client_connect(&f, &c);
		ck_assert_int_eq(send(c.fd, buf, len, MSG_NOSIGNAL), (ssize_t)len);
		shutdown(c.fd, SHUT_WR);
		client_await_end(&c, text);
	}
	fx_await(&f, sessions_are, 1);
}
END_TEST

START_TEST(giant_packets_end_the_session)
{
	static uint8_t buf[100000];
	static const size_t sizes[] = {WL_PACKET_MAX, WL_PACKET_MAX + 1, 65536, sizeof buf};
	char text[WL_TEXT_MAX];
	struct client c;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		client_open(&f, &c);
		ck_assert_int_eq(send(c.fd, buf, sizes[i], MSG_NOSIGNAL), (ssize_t)sizes[i]);
		client_await_end(&c, text);
		ck_assert_ptr_nonnull(strstr(text, "malformed"));
	}
}
END_TEST

static void send_with_fds(int fd, const void *buf, size_t len, unsigned n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * 253)];
	} ctl;
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &ctl,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	int fds[253] = {0};

	for (unsigned i = 0; i < n; i++)
		fds[i] = STDERR_FILENO;
	memset(&ctl, 0, sizeof ctl);
	ctl.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int) * n)};
	memcpy(CMSG_DATA(&ctl.align), fds, sizeof(int) * n);
	ck_assert_int_gt(sendmsg(fd, &m, MSG_NOSIGNAL), 0);
}

START_TEST(unexpected_descriptors_are_closed)
{
	static const unsigned counts[] = {1, 3, 4, 100, 253};
	unsigned before = fx_count_fds();
	uint8_t buf[WL_PACKET_MAX];
	int len = hello_packet(buf, WL_VERSION_MIN, WL_VERSION_MAX);
	char text[WL_TEXT_MAX];
	struct client c;

	for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		client_connect(&f, &c);
		send_with_fds(c.fd, buf, (size_t)len, counts[i]);
		client_await_end(&c, text);
		ck_assert_ptr_nonnull(strstr(text, "descriptors"));
	}
	fx_await(&f, fds_are, before);
}
END_TEST

START_TEST(a_request_before_the_hello_ends_the_session)
{
	struct wl_request q = {.type = WL_REGION_ALLOC, .size = 4096, .use = WL_REGION_STAGING};
	char text[WL_TEXT_MAX];
	struct client c;

	client_connect(&f, &c);
	client_send(&c, &q);
	client_await_end(&c, text);
	ck_assert_ptr_nonnull(strstr(text, "hello"));
	ck_assert_uint_eq(fx_stats(&f).regions, 0);
}
END_TEST

START_TEST(a_second_hello_ends_the_session)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = hello_packet(buf, WL_VERSION_MIN, WL_VERSION_MAX);
	char text[WL_TEXT_MAX];
	struct client c;

	client_open(&f, &c);
	ck_assert_int_eq(send(c.fd, buf, (size_t)len, MSG_NOSIGNAL), len);
	client_await_end(&c, text);
	ck_assert_ptr_nonnull(strstr(text, "second hello"));
}
END_TEST

START_TEST(a_version_mismatch_names_both_ranges)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = hello_packet(buf, WL_VERSION_MAX + 6, WL_VERSION_MAX + 8);
	char text[WL_TEXT_MAX];
	struct client c;
	struct wl_reply r;

	client_connect(&f, &c);
	ck_assert_int_eq(send(c.fd, buf, (size_t)len, MSG_NOSIGNAL), len);
	ck_assert(client_receive(&c, &r, NULL, 0));
	ck_assert_uint_eq(r.req_id, 1);
	ck_assert_uint_eq(r.code, WIRE_VERSION_MISMATCH);
	ck_assert_uint_eq(r.version_min, WL_VERSION_MIN);
	ck_assert_uint_eq(r.version_max, WL_VERSION_MAX);
	ck_assert_ptr_nonnull(strstr(r.text, "8 to 10"));
	ck_assert_ptr_nonnull(strstr(r.text, "2 to 2"));
	client_await_end(&c, text);
}
END_TEST

START_TEST(an_unknown_framing_of_the_master_is_reported)
{
	static const uint8_t later[] = {'P', 'C', 'C', 'F', 2, 0, 1, 0, 0, 0, 0, 0};
	struct wl_request q = {.type = WL_COMM_CONNECT, .req_id = 5, .peer = {{1}}, .token = {{2}}};
	struct pollfd p = {.events = POLLIN};
	struct wl_reply r;
	struct master m;
	struct client c;
	struct queue qp;

	master_listen(&m);
	p.fd = m.listener;
	client_open(&f, &c);
	client_comm(&c, &m.addr, 1, &qp);
	q.comm = qp.comm;
	client_send(&c, &q);
	ck_assert_int_eq(poll(&p, 1, FX_TIMEOUT_MS), 1);
	m.fd = accept4(m.listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(m.fd, 0);
	tcp_send(m.fd, later, sizeof later);
	ck_assert(client_receive(&c, &r, NULL, 0));
	ck_assert_uint_eq(r.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_msg(strstr(r.text, "framing version 2") != NULL, "%s", r.text);
	ck_assert_msg(strstr(r.text, "version 1") != NULL, "%s", r.text);
	master_close(&m);
	queue_close(&qp);
	client_close(&c);
}
END_TEST

START_TEST(unknown_communicators_are_refused)
{
	static const enum wl_type types[] = {WL_COMM_CONNECT, WL_COMM_DESTROY, WL_VOTE};
	struct cc_addr nowhere = {.family = CC_INET4, .ip = {127, 0, 0, 1}, .port = 1};
	struct client c, other;
	struct queue q;

	client_open(&f, &c);
	client_open(&f, &other);
	client_comm(&other, &nowhere, 1, &q);
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct wl_request req = {
			.type = types[i], .comm = 999, .peer = {{1}}, .token = {{2}}};
		struct wl_reply r;

		client_call(&c, &req, &r, NULL, 0);
		ck_assert_uint_eq(r.code, WIRE_INVALID_ARGUMENT);
		req.comm = q.comm; /* exists, but belongs to another process */
		client_call(&c, &req, &r, NULL, 0);
		ck_assert_uint_eq(r.code, WIRE_INVALID_ARGUMENT);
	}
	client_close(&c);
	client_close(&other);
	queue_close(&q);
}
END_TEST

/* While the process reads no replies, its requests wait, and so do the replies. None is lost. */
START_TEST(unread_replies_are_kept)
{
	struct wl_request q = {.type = WL_REGION_FREE, .region = 12345};
	uint8_t buf[WL_PACKET_MAX];
	struct wl_reply r;
	struct client c;
	uint32_t sent = 0;
	ssize_t n = 0;

	client_open(&f, &c);
	while (n >= 0) {
		struct pollfd room = {.fd = c.fd, .events = POLLOUT};

		/* The agent may be about to read the next request. */
		if (poll(&room, 1, 500) == 0)
			break;
		q.req_id = 100 + sent;
		n = wire_local_put_request(&q, buf);
		n = send(c.fd, buf, (size_t)n, MSG_NOSIGNAL);
		sent += n > 0;
	}
	ck_assert_msg(n >= 0, "%s", strerror(errno));
	ck_assert_uint_lt(sent, 100000);
	for (uint32_t i = 0; i < sent; i++) {
		ck_assert(client_receive(&c, &r, NULL, 0));
		ck_assert_uint_eq(r.req_id, 100 + i);
	}
	client_close(&c);
	fx_await(&f, sessions_are, 1);
}
END_TEST

static bool sessions_at_most(const struct agentd_stats *s, uint64_t n)
{
	return s->sessions <= n;
}

START_TEST(sessions_beyond_the_limit_are_refused)
{
	struct client c[60];
	char text[WL_TEXT_MAX];
	unsigned refused = 0;

	for (int i = 0; i < 60; i++)
		client_connect(&f, &c[i]);
	for (int i = 39; i < 60; i++) {
		client_await_end(&c[i], text);
		refused += strstr(text, "limit per user is 40") != NULL;
	}
	ck_assert_uint_eq(refused, 21);
	for (int i = 0; i < 39; i++)
		client_close(&c[i]);
	fx_await(&f, sessions_at_most, 1);
}
END_TEST

START_TEST(a_process_may_close_its_session_at_any_time)
{
	struct cc_addr nowhere = {.family = CC_INET4, .ip = {127, 0, 0, 1}, .port = 1};
	unsigned before = fx_count_fds();
	uint8_t buf[WL_PACKET_MAX];
	int len = hello_packet(buf, WL_VERSION_MIN, WL_VERSION_MAX);
	struct client c;
	struct queue q;

	for (int i = 0; i < 100; i++) {
		client_connect(&f, &c);
		if (i % 2)
			ck_assert_int_eq(send(c.fd, buf, (size_t)len, MSG_NOSIGNAL), len);
		client_close(&c);
		client_open(&f, &c);
		client_comm(&c, &nowhere, (uint32_t)i, &q);
		client_close(&c);
		queue_close(&q);
	}
	fx_await(&f, fds_are, before);
	ck_assert_uint_eq(fx_stats(&f).comms, 0);
}
END_TEST

static void leave_a_child(struct fx *x, int ready)
{
	struct client c;

	client_open(x, &c);
	if (fork() == 0) {
		close(ready);
		pause();
	} else if (write(ready, "x", 1) == 1) {
		pause();
	}
}

START_TEST(a_killed_process_with_a_living_child_is_noticed)
{
	/* The socket stays open in the child, so only the end of the process itself shows its
	 * death. */
	int ready[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fx_fork(&f, leave_a_child, ready[1]);
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	fx_await(&f, sessions_are, 2);
	kill(pid, SIGKILL);
	fx_await(&f, sessions_are, 1);
	waitpid(pid, NULL, 0);
	close(ready[0]);
}
END_TEST

/* Reports one line, which is left out of the log if left_out is true, and logged otherwise. */
static void complain(struct report *r, int level, bool left_out)
{
	r->refill_ns = cc_now_ns();
	r->tokens = left_out ? 0 : 1;
	rep_complain(r, level, "line of level %d", level);
}

/* Removes the time, the program and the process id at the start of each line. */
static void cut_prefixes(char *text)
{
	char *from = text, *to = text;

	while (*from) {
		size_t len;

		from = strstr(from, "]: ");
		ck_assert_ptr_nonnull(from);
		from += 3;
		len = strcspn(from, "\n") + 1;
		memmove(to, from, len);
		from += len;
		to += len;
	}
	*to = '\0';
}

START_TEST(the_line_about_omitted_lines_has_their_highest_level)
{
	struct report r = {.tokens = 0};
	int log = memfd_create("log", 0), own = dup(STDERR_FILENO);
	char text[1024] = "";

	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	cc_log_set_level(CC_LOG_NOTICE);
	complain(&r, CC_LOG_INFO, true);
	complain(&r, CC_LOG_NOTICE, false);
	complain(&r, CC_LOG_NOTICE, true);
	complain(&r, CC_LOG_WARNING, true);
	complain(&r, CC_LOG_INFO, true);
	complain(&r, CC_LOG_NOTICE, false);
	complain(&r, CC_LOG_NOTICE, true);
	complain(&r, CC_LOG_NOTICE, false);
	ck_assert_int_ge(dup2(own, STDERR_FILENO), 0);
	cc_log_set_level(CC_LOG_ERR);
	ck_assert_int_gt(pread(log, text, sizeof text - 1, 0), 0);
	cut_prefixes(text);
	ck_assert_str_eq(text, "notice: line of level 5\n"
			       "warning: 3 similar lines left out\n"
			       "notice: line of level 5\n"
			       "notice: 1 similar lines left out\n"
			       "notice: line of level 5\n");
	close(own);
	close(log);
}
END_TEST

Suite *session_suite(void)
{
	Suite *s = suite_create("session");
	TCase *t = tcase_create("session");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, the_answer_to_the_hello_carries_the_beat_channel);
	tcase_add_test(t, a_hello_that_is_cut_short_ends_the_session);
	tcase_add_test(t, random_packets_end_the_session);
	tcase_add_test(t, giant_packets_end_the_session);
	tcase_add_test(t, unexpected_descriptors_are_closed);
	tcase_add_test(t, a_request_before_the_hello_ends_the_session);
	tcase_add_test(t, a_second_hello_ends_the_session);
	tcase_add_test(t, a_version_mismatch_names_both_ranges);
	tcase_add_test(t, an_unknown_framing_of_the_master_is_reported);
	tcase_add_test(t, unknown_communicators_are_refused);
	tcase_add_test(t, unread_replies_are_kept);
	tcase_add_test(t, sessions_beyond_the_limit_are_refused);
	tcase_add_test(t, a_process_may_close_its_session_at_any_time);
	tcase_add_test(t, a_killed_process_with_a_living_child_is_noticed);
	tcase_add_test(t, the_line_about_omitted_lines_has_their_highest_level);
	suite_add_tcase(s, t);
	return s;
}
