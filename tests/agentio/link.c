/* SPDX-License-Identifier: MIT
 *
 * Outbound links. The test plays the master that orders the links, and the agents at the other ends
 * of the links.
 */
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/other.h"
#include "tests/agentio/suites.h"

#define STREAMS 20u /* more than the agent opens at a time */

static struct fx f;
static struct master m;
static struct client a;
static struct queue qa;
static struct other other;

static void setup(void)
{
	fx_start(&f, NULL);
	master_listen(&m);
	other_listen(&other, STREAMS);
}

static void teardown(void)
{
	fx_check_alive(&f);
	client_close(&a);
	fx_stop(&f);
	queue_close(&qa);
	master_close(&m);
	close(other.listener);
}

static void order_link(const struct cc_addr *addrs, uint32_t n, bool at_master)
{
	other_order(&other, &f, &m, &a, &qa, addrs, n, at_master);
}

static int accept_stream(struct wlk_hello *h)
{
	return other_accept_stream(&other, &m, h);
}

static void expect_failure(const char *const *words)
{
	struct wm_msg msg;

	master_expect(&m, WM_ROUND_REPORT, &msg);
	ck_assert_uint_eq(msg.u.round_report.n_failures, 1);
	ck_assert(cc_id_eq(&msg.u.round_report.failures[0].agent, &other.id));
	for (; *words; words++)
		ck_assert_msg(strstr(msg.u.round_report.failures[0].text, *words) != NULL,
			"\"%s\" in \"%s\"", *words, msg.u.round_report.failures[0].text);
	wire_master_clear(&msg);
}

#define EXPECT_FAILURE(...) expect_failure((const char *const[]){__VA_ARGS__, NULL})

static bool links_out_are(const struct agentd_stats *s, uint64_t n)
{
	return s->links_out == n;
}

START_TEST(all_streams_of_a_link_are_opened)
{
	int fds[STREAMS + 1];

	order_link(&other.at, 1, false);
	other_accept_link(&other, &m, fds);
	other_expect_success(&m);
	fx_await(&f, links_out_are, 1);
	ck_assert_uint_eq(fake_counts().tx_streams, STREAMS);
	for (uint32_t i = 0; i <= STREAMS; i++)
		close(fds[i]);
}
END_TEST

START_TEST(a_host_is_found_at_the_masters_address)
{
	/* The given addresses do not reach the host, but it is at the master's address. */
	struct cc_addr nowhere = {.family = CC_INET4, .ip = {127, 0, 0, 1}, .port = 1};
	int fds[STREAMS + 1];

	order_link(&nowhere, 1, true);
	other_accept_link(&other, &m, fds);
	other_expect_success(&m);
	for (uint32_t i = 0; i <= STREAMS; i++)
		close(fds[i]);
}
END_TEST

START_TEST(refused_connections_are_reported)
{
	struct cc_addr addrs[2] = {{.family = CC_INET4, .ip = {127, 0, 0, 1}, .port = 1},
		{.family = CC_INET6, .ip = {[15] = 1}, .port = 2}};
	uint64_t start = cc_now_ns();

	order_link(addrs, 2, false);
	EXPECT_FAILURE("127.0.0.1:1: Connection refused", "; [::1]:2: ");
	ck_assert_uint_lt(cc_now_ns() - start, 2000000000u);
	fx_await(&f, links_out_are, 0);
}
END_TEST

START_TEST(the_next_address_is_tried_after_a_wrong_host)
{
	struct cc_addr second = {.family = CC_INET4, .ip = {127, 0, 0, 2}};
	struct cc_addr addrs[2] = {other.at, second};
	struct wlk_hello h;
	int elsewhere = other.listener, fd, fds[STREAMS + 1];

	other.listener = cc_listen_tcp(&second, 0);
	addrs[1] = second;
	order_link(addrs, 2, false);
	{
		int right = other.listener;

		other.listener = elsewhere;
		fd = accept_stream(&h);
		other.listener = right;
	}
	other_answer(fd, WLK_REFUSED_AGENT, "this is somebody else");
	other_accept_link(&other, &m, fds);
	other_expect_success(&m);
	close(fd);
	close(elsewhere);
	for (uint32_t i = 0; i <= STREAMS; i++)
		close(fds[i]);
}
END_TEST

START_TEST(the_reason_of_a_refusal_is_reported)
{
	struct wlk_hello h;
	int fd;

	order_link(&other.at, 1, false);
	fd = accept_stream(&h);
	other_answer(fd, WLK_REFUSED_RUN, "no such run here");
	EXPECT_FAILURE("refused: no such run here");
	close(fd);
}
END_TEST

START_TEST(a_link_fails_if_a_later_stream_fails)
{
	struct wlk_hello h;
	int fd;

	order_link(&other.at, 1, false);
	fd = accept_stream(&h);
	other_answer(fd, WLK_OK, "");
	close(fd);
	for (uint32_t i = 1; i < 5; i++) {
		fd = accept_stream(&h);
		if (i == 4)
			other_answer(fd, WLK_REFUSED_LIMIT, "enough of you");
		else
			other_answer(fd, WLK_OK, "");
		if (i < 4)
			continue;
		EXPECT_FAILURE("stream", "enough of you");
	}
	fx_await(&f, links_out_are, 0);
	ck_assert_uint_eq(fake_counts().tx_streams, 0);
}
END_TEST

START_TEST(garbage_or_no_answer_fails_the_link)
{
	static const uint8_t junk[WLK_ACK_SIZE] = "SSH-2.0-OpenSSH\r\n";
	struct wlk_hello h;
	uint64_t start;
	int fd;

	order_link(&other.at, 1, false);
	fd = accept_stream(&h);
	tcp_send(fd, junk, sizeof junk);
	EXPECT_FAILURE("no agent there");
	close(fd);
	client_close(&a);
	queue_close(&qa);
	close(m.fd);
	start = cc_now_ns();
	order_link(&other.at, 1, false);
	fd = accept_stream(&h);
	EXPECT_FAILURE("no answer in time");
	ck_assert_uint_lt(cc_now_ns() - start, 4500000000u);
	close(fd);
}
END_TEST

START_TEST(the_agent_uses_the_bounds_of_the_master)
{
	const struct cc_bounds told = {.ms = {[CC_BOUND_LINK] = 6000,
					       [CC_BOUND_STREAM] = 20000,
					       [CC_BOUND_STUCK] = 4000,
					       [CC_BOUND_NEW_LINK] = 4000,
					       [CC_BOUND_ROUND] = 9000}};
	struct cc_bounds engine;
	struct wlk_hello h;
	uint64_t start;
	int fd;

	m.bounds = told;
	order_link(&other.at, 1, false);
	start = cc_now_ns();
	fd = accept_stream(&h);
	EXPECT_FAILURE("no answer in time");
	ck_assert_uint_ge(cc_now_ns() - start, 1900000000u);
	close(fd);
	engine = fake_bounds();
	for (int i = 0; i < CC_BOUNDS; i++)
		ck_assert_uint_eq(engine.ms[i], told.ms[i]);
}
END_TEST

/* The port drops packets: with a full backlog, no connection is answered. The master tries two
 * orders of the ring before it knows that a host cannot be reached, and has only 5 s for this. */
START_TEST(connections_that_are_dropped_fail_in_time)
{
	int filler[4];
	uint64_t start;

	ck_assert_int_eq(listen(other.listener, 0), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct sockaddr_storage ss;
		socklen_t len = cc_addr_to_sockaddr(&other.at, &ss);

		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(filler[i], (struct sockaddr *)&ss, len);
	}
	start = cc_now_ns();
	order_link(&other.at, 1, false);
	EXPECT_FAILURE("127.0.0.1:");
	ck_assert_uint_lt(cc_now_ns() - start, 2400000000u);
	for (unsigned i = 0; i < 4; i++)
		close(filler[i]);
}
END_TEST

START_TEST(a_broken_link_can_be_opened_again)
{
	int fds[STREAMS + 1], again[STREAMS + 1];

	order_link(&other.at, 1, false);
	other_accept_link(&other, &m, fds);
	other_expect_success(&m);
	fake_break_link(fake_last_link());
	fx_await(&f, links_out_are, 0);
	client_close(&a);
	queue_close(&qa);
	close(m.fd);
	order_link(&other.at, 1, false);
	other_accept_link(&other, &m, again);
	other_expect_success(&m);
	for (uint32_t i = 0; i <= STREAMS; i++) {
		close(fds[i]);
		close(again[i]);
	}
}
END_TEST

START_TEST(what_a_link_carries_is_sent_to_the_master)
{
	int fds[STREAMS + 1];
	struct wm_msg msg;

	order_link(&other.at, 1, false);
	other_accept_link(&other, &m, fds);
	other_expect_success(&m);
	fake_carry(fake_last_link() + 1, 2000000); /* no such link */
	fake_carry(fake_last_link(), 5000000);
	master_expect(&m, WM_RATES, &msg);
	ck_assert(msg.u.rates.passive);
	ck_assert_uint_eq(msg.u.rates.n, 1);
	ck_assert(cc_id_eq(&msg.u.rates.rates[0].agent, &other.id));
	ck_assert_uint_eq(msg.u.rates.rates[0].rate, 5000000);
	ck_assert_uint_eq(msg.u.rates.rates[0].trip_us, 7);
	wire_master_clear(&msg);
	for (uint32_t i = 0; i <= STREAMS; i++)
		close(fds[i]);
}
END_TEST

Suite *link_suite(void)
{
	Suite *s = suite_create("link");
	TCase *t = tcase_create("link");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, all_streams_of_a_link_are_opened);
	tcase_add_test(t, a_host_is_found_at_the_masters_address);
	tcase_add_test(t, refused_connections_are_reported);
	tcase_add_test(t, the_next_address_is_tried_after_a_wrong_host);
	tcase_add_test(t, the_reason_of_a_refusal_is_reported);
	tcase_add_test(t, a_link_fails_if_a_later_stream_fails);
	tcase_add_test(t, garbage_or_no_answer_fails_the_link);
	tcase_add_test(t, the_agent_uses_the_bounds_of_the_master);
	tcase_add_test(t, connections_that_are_dropped_fail_in_time);
	tcase_add_test(t, a_broken_link_can_be_opened_again);
	tcase_add_test(t, what_a_link_carries_is_sent_to_the_master);
	suite_add_tcase(s, t);
	return s;
}
