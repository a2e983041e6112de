/* SPDX-License-Identifier: MIT
 *
 * Tests of the streams of a loop. The other ends are blocking sockets in the same process. Every
 * step of the loop ends when the awaited event comes. If it does not come, the watchdog ends the
 * test.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "tests/common/looplib.h"
#include "tests/common/suites.h"

struct end {
	struct cc_conn *c;
	/* `piece`: on_data consumes nothing until this number of bytes has arrived. */
	size_t len, piece;
	long answer; /* the return value of on_data if not 0 */
	int connected, closed, err;
	bool say_bye; /* on_data sends "bye" and closes */
	char in[4096];
};

static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	struct end *e = arg;

	if (e->say_bye) {
		ck_assert_int_eq(cc_conn_send(e->c, "bye", 3), 0);
		cc_conn_close(e->c);
		e->c = NULL;
		cc_loop_stop(loop);
		return 0;
	}
	if (e->answer)
		return e->answer;
	if (len < e->piece)
		return 0;
	ck_assert_uint_le(e->len + len, sizeof e->in);
	memcpy(e->in + e->len, buf, len);
	e->len += len;
	cc_loop_stop(loop);
	return (long)len;
}

static void on_connected(void *arg)
{
	((struct end *)arg)->connected++;
	cc_loop_stop(loop);
}

static void on_closed(void *arg, int err, const char *text)
{
	struct end *e = arg;

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(e->closed, 0);
	e->closed++;
	e->err = err;
	e->c = NULL;
	cc_loop_stop(loop);
}

static const struct cc_conn_ops ops = {
	.on_connected = on_connected, .on_data = on_data, .on_closed = on_closed};

/* Opens a pair of sockets. Makes one end a stream of the loop and returns the other end. */
static int open_pair_of(struct end *e, int type)
{
	struct timeval tv = {5, 0};
	int fds[2];

	*e = (struct end){0};
	ck_assert_int_eq(socketpair(AF_UNIX, type, 0, fds), 0);
	ck_assert_int_eq(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
	e->c = cc_conn_new(loop, fds[0], &ops, e);
	ck_assert_ptr_nonnull(e->c);
	return fds[1];
}

static int open_pair(struct end *e)
{
	return open_pair_of(e, SOCK_STREAM);
}

static void run(void)
{
	ck_assert_int_eq(cc_loop_run(loop), 0);
}

START_TEST(data_is_kept_until_consumed)
{
	struct end e;
	int fd = open_pair(&e);

	e.piece = 6;
	ck_assert_int_eq(send(fd, "abc", 3, 0), 3);
	loop_turn();
	ck_assert_uint_eq(e.len, 0);
	ck_assert_int_eq(send(fd, "def", 3, 0), 3);
	run();
	ck_assert_uint_eq(e.len, 6);
	ck_assert_int_eq(memcmp(e.in, "abcdef", 6), 0);
	ck_assert_int_eq(send(fd, "gh", 2, 0), 2);
	close(fd);
	run();
	ck_assert_int_eq(e.err, CC_ERR_EOF);
}
END_TEST

START_TEST(error_of_on_data_closes_the_connection)
{
	struct end e;
	char c;
	int fd = open_pair(&e);

	e.answer = CC_ERR_PROTO;
	ck_assert_int_eq(send(fd, "x", 1, 0), 1);
	run();
	ck_assert_int_eq(e.closed, 1);
	ck_assert_int_eq(e.err, CC_ERR_PROTO);
	ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
	close(fd);
}
END_TEST

START_TEST(input_and_output_limits_are_enforced)
{
	struct end e;
	char block[1000] = {0};
	int fd = open_pair(&e);

	cc_conn_set_limits(e.c, 100, 1500);
	ck_assert_int_eq(cc_conn_send(e.c, block, 1000), 0);
	ck_assert_int_eq(cc_conn_send(e.c, block, 501), CC_ERR_LIMIT);
	ck_assert_int_eq(cc_conn_send(e.c, block, SIZE_MAX), CC_ERR_LIMIT);
	ck_assert_int_eq(cc_conn_send_later(e.c, block, 501), CC_ERR_LIMIT);
	ck_assert_int_eq(cc_conn_send(e.c, block, 500), 0);
	e.piece = 1000;
	ck_assert_int_eq(send(fd, block, 100, 0), 100);
	run();
	ck_assert_int_eq(e.err, CC_ERR_LIMIT);
	close(fd);
}
END_TEST

/* Uses a socket that keeps the bytes of each write separate. */
static void read_packet(int fd, const char *expected)
{
	char got[64] = "";
	ssize_t n = recv(fd, got, sizeof got - 1, MSG_DONTWAIT);

	ck_assert_int_eq(n, (ssize_t)strlen(expected));
	ck_assert_str_eq(got, expected);
}

START_TEST(delayed_output_is_sent_with_the_next_urgent_output)
{
	struct end e;
	int fd = open_pair_of(&e, SOCK_SEQPACKET);

	ck_assert_int_eq(cc_conn_send_later(e.c, "ab", 2), 0);
	ck_assert_int_eq(cc_conn_send_later(e.c, "cd", 2), 0);
	ck_assert_int_eq(cc_conn_send(e.c, "ef", 2), 0);
	ck_assert_int_eq(cc_conn_send_later(e.c, "gh", 2), 0);
	loop_turn();
	read_packet(fd, "abcdefgh");
	ck_assert_int_eq(cc_conn_send_later(e.c, "last", 4), 0);
	cc_conn_close(e.c);
	loop_turn();
	read_packet(fd, "last");
	close(fd);
	loop_turn();
}
END_TEST

START_TEST(delayed_output_is_sent_before_the_loop_sleeps)
{
	struct end e, other;
	int fd = open_pair_of(&e, SOCK_SEQPACKET), fd_other = open_pair_of(&other, SOCK_SEQPACKET);

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(cc_conn_send_later(e.c, "alone", 5), 0);
		ck_assert_int_eq(cc_conn_send_later(other.c, "too", 3), 0);
		loop_turn();
		read_packet(fd, "alone");
		read_packet(fd_other, "too");
	}
	ck_assert_int_eq(cc_conn_send_later(other.c, "dropped", 7), 0);
	cc_conn_close(e.c);
	cc_conn_close(other.c);
	close(fd);
	close(fd_other);
}
END_TEST

static uint64_t give_up_ns;

static void keep_awake(void *arg)
{
	const struct end *e = arg;

	ck_assert_msg(cc_now_ns() < give_up_ns, "the output is not sent while the loop is awake");
	cc_loop_expect(loop);
	if (cc_conn_flushed(e->c))
		cc_loop_stop(loop);
}

START_TEST(delayed_output_is_sent_although_the_loop_stays_awake)
{
	struct end e;
	int fd = open_pair_of(&e, SOCK_SEQPACKET), always[2];
	struct cc_watch *w;

	ck_assert_int_eq(pipe(always), 0);
	ck_assert_int_eq(write(always[1], "x", 1), 1);
	w = cc_watch_new(loop, always[0], false, keep_awake, &e);
	give_up_ns = cc_now_ns() + UINT64_C(5000000000);
	cc_loop_expect(loop);
	ck_assert_int_eq(cc_conn_send_later(e.c, "go", 2), 0);
	run();
	read_packet(fd, "go");
	cc_watch_free(w);
	cc_conn_close(e.c);
	close(fd);
	close(always[0]);
	close(always[1]);
}
END_TEST

struct lent {
	const void *buf;
	size_t len;
	unsigned done;
};

static void on_done(const void *buf, size_t len, void *arg)
{
	struct lent *x = arg;

	ck_assert_ptr_eq(buf, x->buf);
	ck_assert_uint_eq(len, x->len);
	x->done++;
}

static void lend(struct end *e, struct lent *x, int expected)
{
	x->done = 0;
	ck_assert_int_eq(cc_conn_send_ref(e->c, x->buf, x->len, on_done, x), expected);
}

static void read_all(int fd, const char *expected, size_t n)
{
	char *got = malloc(n);

	ck_assert_ptr_nonnull(got);
	for (size_t have = 0; have < n;) {
		ssize_t some = recv(fd, got + have, n - have, MSG_DONTWAIT);

		if (some > 0)
			have += (size_t)some;
		else
			loop_turn();
	}
	ck_assert(memcmp(got, expected, n) == 0);
	free(got);
}

START_TEST(lent_buffers_are_sent_in_order_and_returned_once)
{
	enum { BIG = 3 << 20 }; /* more bytes than the socket takes at once */
	char *big = malloc(BIG);
	struct lent large = {big, BIG, 0}, few = {big, 5, 0};
	struct end e;
	int fd = open_pair(&e);

	ck_assert_ptr_nonnull(big);
	for (size_t i = 0; i < BIG; i++)
		big[i] = (char)(i * 7 + i / 251);
	ck_assert_int_eq(cc_conn_send(e.c, "abc", 3), 0);
	lend(&e, &large, 0);
	ck_assert_uint_eq(large.done, 0);
	lend(&e, &few, 0);
	ck_assert_uint_eq(few.done, 1);
	read_all(fd, "abc", 3);
	read_all(fd, big, BIG);
	read_all(fd, big, 5);
	loop_turn();
	ck_assert_uint_eq(large.done, 1);
	ck_assert_uint_eq(few.done, 1);
	cc_conn_close(e.c);
	close(fd);
	free(big);
}
END_TEST

START_TEST(lent_buffers_are_returned_after_every_failure)
{
	static char block[64 << 10];
	struct lent x = {block, sizeof block, 0}, y = x;
	struct end e;
	int fd = open_pair(&e);

	/* Nobody reads, so some bytes stay queued. */
	cc_conn_set_limits(e.c, 100, 4 * sizeof block);
	do
		lend(&e, &y, 0);
	while (y.done);
	cc_conn_set_limits(e.c, 100, sizeof block);
	lend(&e, &x, CC_ERR_LIMIT);
	ck_assert_uint_eq(x.done, 1);
	close(fd);
	run();
	ck_assert_int_eq(e.closed, 1);
	while (!y.done)
		loop_turn();
	ck_assert_uint_eq(y.done, 1);
}
END_TEST

START_TEST(silent_connection_is_closed_after_its_timeout)
{
	struct end e;
	int fd = open_pair(&e);

	cc_conn_set_idle_timeout(e.c, 20);
	run();
	ck_assert_int_eq(e.err, CC_ERR_TIMEOUT);
	close(fd);
}
END_TEST

static void read_bye(int fd)
{
	char buf[8];

	ck_assert_int_eq(recv(fd, buf, sizeof buf, MSG_WAITALL), 3);
	ck_assert_int_eq(memcmp(buf, "bye", 3), 0);
}

static void tcp_pair(struct end *e, int *fd)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	struct timeval tv = {5, 0};
	struct sockaddr_storage ss;
	int l = cc_listen_tcp(&a, 0), s;

	ck_assert_int_ge(l, 0);
	*e = (struct end){0};
	*fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(*fd, (struct sockaddr *)&ss, cc_addr_to_sockaddr(&a, &ss)), 0);
	ck_assert_int_eq(setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
	s = accept(l, NULL, NULL);
	close(l);
	e->c = cc_conn_new(loop, s, &ops, e);
	ck_assert_ptr_nonnull(e->c);
}

/* A close with unread input would reset the connection, and the last output would be lost. */
START_TEST(last_output_arrives_despite_unread_input)
{
	static char junk[100000];
	struct end e;
	int fd;

	for (unsigned i = 0; i < 50; i++) {
		tcp_pair(&e, &fd);
		e.say_bye = true;
		ck_assert_int_gt(send(fd, junk, i % 2 ? 5 : sizeof junk, 0), 0);
		if (i % 3 == 0)
			shutdown(fd, SHUT_WR);
		run();
		for (unsigned k = 0; k < 3; k++)
			loop_turn();
		read_bye(fd);
		close(fd);
		loop_turn();
	}
}
END_TEST

START_TEST(freeing_the_loop_drops_lingering_connections)
{
	struct end e;
	int fd;

	tcp_pair(&e, &fd);
	ck_assert_int_eq(cc_conn_send(e.c, "bye", 3), 0);
	cc_conn_close(e.c);
	loop_turn(); /* the bytes are written now, and the other side has not closed its end */
	read_bye(fd);
	tcp_pair(&e, &fd);
	ck_assert_int_eq(cc_conn_send(e.c, "bye", 3), 0);
	cc_conn_close(e.c); /* the bytes are not written yet; nothing may leak */
}
END_TEST

START_TEST(answer_to_a_half_closed_request_arrives)
{
	static char big[1 << 20];
	struct end e;
	size_t got = 0;
	int fd = open_pair(&e);

	ck_assert_int_eq(cc_conn_send(e.c, big, sizeof big), 0);
	shutdown(fd, SHUT_WR);
	run();
	ck_assert_int_eq(e.err, CC_ERR_EOF);
	while (got < sizeof big) {
		char buf[65536];
		ssize_t n;

		loop_turn();
		n = recv(fd, buf, sizeof buf, 0);
		ck_assert_int_gt(n, 0);
		got += (size_t)n;
	}
	close(fd);
}
END_TEST

/* The system gives the number of a closed descriptor to the next new descriptor. */
static struct end second;
static int second_fd;

static long replace(void *arg, const uint8_t *buf, size_t len)
{
	struct end *e = arg;

	(void)buf;
	cc_conn_close(e->c);
	second_fd = open_pair(&second);
	return (long)len;
}

static const struct cc_conn_ops replacing_ops = {.on_data = replace, .on_closed = on_closed};

START_TEST(reused_descriptor_number_is_polled)
{
	struct end e = {0};
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	e.c = cc_conn_new(loop, fds[0], &replacing_ops, &e);
	ck_assert_int_eq(send(fds[1], "x", 1, 0), 1);
	loop_turn();
	ck_assert_ptr_nonnull(second.c);
	ck_assert_int_eq(send(second_fd, "y", 1, 0), 1);
	run();
	ck_assert_uint_eq(second.len, 1);
	cc_conn_close(second.c);
	close(fds[1]);
	close(second_fd);
}
END_TEST

START_TEST(detached_descriptor_stays_usable)
{
	struct end e;
	char buf[4];
	int fd = open_pair(&e), back;

	cc_conn_stop_reading(e.c);
	loop_turn();
	ck_assert(cc_conn_flushed(e.c));
	back = cc_conn_detach(e.c);
	ck_assert_int_eq(send(fd, "hey", 3, 0), 3);
	loop_turn();
	ck_assert_int_eq(recv(back, buf, sizeof buf, 0), 3);
	ck_assert_uint_eq(e.len, 0);
	close(back);
	close(fd);
}
END_TEST

/* ---- connecting and accepting ---- */

static struct end accepted;

static void on_accept(void *arg, int fd)
{
	(void)arg;
	accepted.c = cc_conn_new(loop, fd, &ops, &accepted);
	ck_assert_ptr_nonnull(accepted.c);
}

START_TEST(streams_connect_and_exchange_data)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}}, peer, local;
	struct end e = {0};
	struct cc_listener *l = cc_listener_new(loop, cc_listen_tcp(&a, 0), on_accept, NULL);

	e.c = cc_conn_connect(loop, &a, 1000, 0, &ops, &e);
	ck_assert_int_eq(e.connected, 0);
	while (!e.connected || !accepted.c)
		loop_turn();
	ck_assert_int_eq(cc_conn_peer_addr(e.c, &peer), 0);
	ck_assert(cc_addr_eq(&peer, &a));
	ck_assert_int_eq(cc_conn_local_addr(accepted.c, &local), 0);
	ck_assert(cc_addr_eq(&local, &a));
	ck_assert_int_eq(cc_conn_send(e.c, "ping", 4), 0);
	while (accepted.len < 4)
		run();
	ck_assert_int_eq(cc_conn_send(accepted.c, "pong", 4), 0);
	cc_conn_close(accepted.c);
	while (!e.closed)
		run();
	ck_assert_uint_eq(e.len, 4);
	ck_assert_int_eq(e.err, CC_ERR_EOF);
	cc_listener_free(l);
}
END_TEST

static void expect_tuned(struct cc_conn *c)
{
	char name[16] = "";
	socklen_t name_len = sizeof name;
	int fd, v = 0;
	socklen_t len = sizeof v;

	cc_conn_stop_reading(c);
	fd = cc_conn_detach(c);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &v, &len), 0);
	ck_assert_int_eq(v, CC_TCP_TIMEOUT_MS);
	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, &len), 0);
	ck_assert_int_eq(v, 1);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_len), 0);
	ck_assert_int_ne(strncmp(name, "bbr", 3), 0);
	close(fd);
}

START_TEST(both_ends_are_tuned)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	struct end e = {0};
	struct cc_listener *l = cc_listener_new(loop, cc_listen_tcp(&a, 0), on_accept, NULL);

	e.c = cc_conn_connect(loop, &a, 1000, 0, &ops, &e);
	while (!e.connected || !accepted.c)
		loop_turn();
	expect_tuned(e.c);
	expect_tuned(accepted.c);
	cc_listener_free(l);
}
END_TEST

START_TEST(refused_connection_is_reported_by_a_later_callback)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	struct end e = {0};

	close(cc_listen_tcp(&a, 0));
	e.c = cc_conn_connect(loop, &a, 1000, 0, &ops, &e);
	ck_assert_ptr_nonnull(e.c);
	ck_assert_int_eq(e.closed, 0);
	run();
	ck_assert_int_eq(e.err, CC_ERR_IO);
	ck_assert_int_eq(e.connected, 0);
}
END_TEST

START_TEST(connecting_ends_after_its_timeout)
{
	struct cc_addr a = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	struct end e[4];
	int l = cc_listen_tcp(&a, 0);
	unsigned closed = 0;

	/* With a full backlog the kernel does not answer connections. */
	ck_assert_int_eq(listen(l, 0), 0);
	memset(e, 0, sizeof e);
	for (unsigned i = 0; i < 4; i++)
		e[i].c = cc_conn_connect(loop, &a, 50, 0, &ops, &e[i]);
	while (closed == 0) {
		run();
		for (unsigned i = 0; i < 4; i++)
			closed += (unsigned)e[i].closed;
	}
	for (unsigned i = 0; i < 4; i++) {
		if (e[i].closed)
			ck_assert_int_eq(e[i].err, CC_ERR_TIMEOUT);
		else
			cc_conn_close(e[i].c);
	}
	close(l);
}
END_TEST

Suite *conn_suite(void)
{
	Suite *s = suite_create("conn");
	TCase *streams = tcase_create("streams");

	tcase_add_checked_fixture(streams, loop_setup, loop_teardown);
	tcase_set_timeout(streams, 30);
	tcase_add_test(streams, data_is_kept_until_consumed);
	tcase_add_test(streams, error_of_on_data_closes_the_connection);
	tcase_add_test(streams, input_and_output_limits_are_enforced);
	tcase_add_test(streams, delayed_output_is_sent_with_the_next_urgent_output);
	tcase_add_test(streams, delayed_output_is_sent_before_the_loop_sleeps);
	tcase_add_test(streams, delayed_output_is_sent_although_the_loop_stays_awake);
	tcase_add_test(streams, lent_buffers_are_sent_in_order_and_returned_once);
	tcase_add_test(streams, lent_buffers_are_returned_after_every_failure);
	tcase_add_test(streams, silent_connection_is_closed_after_its_timeout);
	tcase_add_test(streams, last_output_arrives_despite_unread_input);
	tcase_add_test(streams, freeing_the_loop_drops_lingering_connections);
	tcase_add_test(streams, answer_to_a_half_closed_request_arrives);
	tcase_add_test(streams, reused_descriptor_number_is_polled);
	tcase_add_test(streams, detached_descriptor_stays_usable);
	tcase_add_test(streams, streams_connect_and_exchange_data);
	tcase_add_test(streams, both_ends_are_tuned);
	tcase_add_test(streams, refused_connection_is_reported_by_a_later_callback);
	tcase_add_test(streams, connecting_ends_after_its_timeout);
	suite_add_tcase(s, streams);
	return s;
}
