/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pcclagentd/state/state.h"
#include "pcclagentd/agentd_internal.h"
#include "pcclagentd/base/handshake.h"
#include "proto/wire_codes.h"
#include "proto/wire_state.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

static struct cc_id other;

static void setup(void)
{
	pair_begin(NULL);
	cc_random_id(&other);
}

static void teardown(void)
{
	fx_check_alive(&f);
	pair_end();
}

static struct cc_id nonce; /* from the last answer to a stream 0 */
static uint16_t number;
static bool forged; /* the proof of the next hello is wrong */

static struct wlk_hello good_hello(uint16_t stream, uint16_t n_streams)
{
	number++;
	return (struct wlk_hello){.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.service = WLK_P2P,
		.run = m.run,
		.nonce = stream == 0 ? (struct cc_id){{(uint8_t)number, (uint8_t)(number >> 8)}}
				     : nonce,
		.number = 1,
		.from = other,
		.to = m.agent,
		.stream = stream,
		.n_streams = n_streams};
}

/* Returns true if the answer has the proof of the agent that the hello was meant for. */
static bool is_proven(
	const struct cc_key *link_key, const struct cc_key *proof, const uint8_t *answer)
{
	uint8_t right[WLK_ACK_SIZE];

	memcpy(right, answer, sizeof right);
	hs_prove_answer(link_key, proof, right);
	return memcmp(right, answer, sizeof right) == 0;
}

/* Sends the hello and reads the answer. Returns the socket. */
static int greet(uint16_t port, const struct wlk_hello *h, struct wlk_ack *ret)
{
	uint8_t buf[WLK_HELLO_SIZE], answer[WLK_ACK_SIZE];
	struct wlk_hello proven;
	struct cc_key link_key;
	const char *why;
	int fd = tcp_connect(port);

	wlk_hello_put(buf, h);
	link_key = master_prove(&m, buf);
	buf[WLK_HELLO_SIZE - 1] ^= forged;
	tcp_send(fd, buf, sizeof buf);
	ck_assert_uint_eq(tcp_receive(fd, answer, sizeof answer), sizeof answer);
	ck_assert_msg(wlk_ack_get(answer, ret, &why) == 0, "%s", why);
	wlk_hello_get(buf, &proven, &why);
	if (h->stream != WLK_STREAM_PROBE)
		ck_assert_int_eq(ret->code == WLK_OK, is_proven(&link_key, &proven.proof, answer));
	if (ret->code == WLK_OK && h->stream == 0)
		nonce = ret->nonce;
	return fd;
}

static void expect_code(uint16_t port, const struct wlk_hello *h, enum wlk_code code)
{
	struct wlk_ack ack;
	int fd = greet(port, h, &ack);
	char byte;

	ck_assert_uint_eq(ack.code, code);
	if (code != WLK_OK) {
		ck_assert_uint_eq(ack.version, 0);
		ck_assert_str_ne(ack.text, "");
		shutdown(fd, SHUT_WR);
		ck_assert_uint_eq(tcp_receive(fd, &byte, 1), 0);
	}
	close(fd);
}

/* ---- another service */

static void greet_guest(void *run, struct net_guest *g)
{
	struct cc_id own;
	int fd;

	(void)run;
	cc_random_id(&own);
	fd = net_guest_welcome(g, 0, &own);
	ck_assert_int_ge(fd, 0);
	tcp_send(fd, "hello", 5);
	close(fd);
}

static void serve(struct agentd *d, void *arg)
{
	static const struct net_service greeter = {.id = WLK_BENCHMARK, .accept = greet_guest};

	(void)arg;
	net_serve(d->net, &greeter);
}

/* A service needs a port number and one function. The handshake is common to all services. */
START_TEST(a_service_gets_connections_that_are_proven)
{
	struct wlk_hello h = good_hello(0, 1);
	uint16_t port = fx_stats(&f).port_benchmark;
	struct wlk_ack ack;
	char text[6] = "";
	int fd;

	h.service = WLK_BENCHMARK;
	fx_call(&f, serve, NULL);
	fd = greet(port, &h, &ack);
	ck_assert_uint_eq(ack.code, WLK_OK);
	ck_assert_uint_eq(tcp_receive(fd, text, sizeof text), 5);
	ck_assert_str_eq(text, "hello");
	close(fd);
	forged = true;
	expect_code(port, &h, WLK_REFUSED_RUN);
	forged = false;
}
END_TEST

/* ---- links and probes */

static bool links_in_are(const struct agentd_stats *s, uint64_t n)
{
	return s->links_in == n;
}

static bool half_open_are(const struct agentd_stats *s, uint64_t n)
{
	return s->half_open == n;
}

START_TEST(a_link_with_all_its_streams_is_accepted)
{
	struct wlk_hello h = good_hello(0, 3);
	struct wlk_ack ack;
	int fds[3];

	for (uint16_t i = 0; i < 3; i++) {
		h = good_hello(i, 3);
		h.features = UINT64_MAX;
		fds[i] = greet(fx_stats(&f).port_p2p, &h, &ack);
		ck_assert_uint_eq(ack.code, WLK_OK);
		ck_assert_uint_eq(ack.features, 0);
		ck_assert_uint_eq(ack.version, WLK_VERSION_MAX);
	}
	fx_await(&f, links_in_are, 1);
	ck_assert_uint_eq(fake_counts().rx_streams, 3);
	fx_await(&f, half_open_are, 0);
	fake_break_link(fake_last_link());
	fx_await(&f, links_in_are, 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}
END_TEST

/* A probe asks whether this agent can be reached. It needs no run and opens no link. */
START_TEST(a_probe_needs_no_run_and_opens_no_link)
{
	struct wlk_hello h = good_hello(WLK_STREAM_PROBE, 1);

	h.run = (struct cc_id){{0}};
	forged = true;
	expect_code(fx_stats(&f).port_p2p, &h, WLK_OK);
	expect_code(fx_stats(&f).port_shared_state, &h, WLK_REFUSED_RUN);
	h.to.b[0] ^= 1;
	expect_code(fx_stats(&f).port_p2p, &h, WLK_REFUSED_AGENT);
	forged = false;
	ck_assert_uint_eq(fx_stats(&f).links_in, 0);
	fx_await(&f, half_open_are, 0);
}
END_TEST

/* The same agent opens its link again. The old streams are closed. */
START_TEST(a_link_that_is_opened_again_replaces_the_old_one)
{
	struct wlk_hello h = good_hello(0, 2);
	struct wlk_ack ack;
	char byte;
	int old, fresh;

	old = greet(fx_stats(&f).port_p2p, &h, &ack);
	ck_assert_uint_eq(ack.code, WLK_OK);
	h = good_hello(0, 2);
	fresh = greet(fx_stats(&f).port_p2p, &h, &ack);
	ck_assert_uint_eq(ack.code, WLK_OK);
	ck_assert_uint_eq(tcp_receive(old, &byte, 1), 0);
	fx_await(&f, links_in_are, 1);
	ck_assert_uint_eq(fake_counts().rx_streams, 1);
	close(old);
	close(fresh);
}
END_TEST

START_TEST(every_wrong_hello_is_refused)
{
	struct agentd_stats s = fx_stats(&f);
	struct wlk_hello h;

	h = good_hello(0, 1);
	forged = true;
	expect_code(s.port_p2p, &h, WLK_REFUSED_RUN);
	forged = false;
	h = good_hello(0, 1);
	h.run.b[0] ^= 1;
	expect_code(s.port_p2p, &h, WLK_REFUSED_RUN);
	h = good_hello(0, 1);
	h.to.b[3] ^= 1;
	expect_code(s.port_p2p, &h, WLK_REFUSED_AGENT);
	h = good_hello(0, 1);
	expect_code(s.port_shared_state, &h, WLK_REFUSED_SERVICE);
	expect_code(s.port_benchmark, &h, WLK_REFUSED_SERVICE);
	h.service = WLK_SHARED_STATE;
	expect_code(s.port_p2p, &h, WLK_REFUSED_SERVICE);
	expect_code(s.port_benchmark, &h, WLK_REFUSED_SERVICE);
	forged = true;
	expect_code(s.port_shared_state, &h, WLK_REFUSED_RUN);
	forged = false;
	h = good_hello(0, 1);
	h.service = WLK_BENCHMARK;
	expect_code(s.port_shared_state, &h, WLK_REFUSED_SERVICE);
	h = good_hello(1, 2); /* comes before stream 0 */
	expect_code(s.port_p2p, &h, WLK_REFUSED_RUN);
	h = good_hello(0, 2);
	expect_code(s.port_p2p, &h, WLK_OK);
	h = good_hello(1, 3); /* with another number of streams */
	expect_code(s.port_p2p, &h, WLK_REFUSED_RUN);
	h = good_hello(1, 2);
	expect_code(s.port_p2p, &h, WLK_OK);
	expect_code(s.port_p2p, &h, WLK_REFUSED_RUN); /* the same stream again */
}
END_TEST

/* The bytes of full packets go to the agent and come back. */
START_TEST(a_probe_exchanges_bytes)
{
	static uint8_t bulk[WLK_BULK_SIZE + 1];
	struct wlk_hello h = good_hello(WLK_STREAM_PROBE, 1);
	struct wlk_ack ack;
	int fd;

	h.features = UINT64_MAX;
	fd = greet(fx_stats(&f).port_p2p, &h, &ack);
	ck_assert_uint_eq(ack.features, WLK_BULK);
	tcp_send(fd, bulk, WLK_BULK_SIZE);
	shutdown(fd, SHUT_WR);
	ck_assert_uint_eq(tcp_receive(fd, bulk, sizeof bulk), WLK_BULK_SIZE);
	close(fd);
	/* The agent sends back no more than it got, and nothing if it got too much. */
	fd = greet(fx_stats(&f).port_p2p, &h, &ack);
	shutdown(fd, SHUT_WR);
	ck_assert_uint_eq(tcp_receive(fd, bulk, 1), 0);
	close(fd);
	fd = greet(fx_stats(&f).port_p2p, &h, &ack);
	tcp_send(fd, bulk, sizeof bulk);
	ck_assert_uint_eq(tcp_receive(fd, bulk, 1), 0);
	close(fd);
	h.service = WLK_SHARED_STATE;
	expect_code(fx_stats(&f).port_shared_state, &h, WLK_OK);
	fx_await(&f, half_open_are, 0);
}
END_TEST

static void read_nothing(int fd)
{
	char byte;

	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
}

/* A hello without proof, in the name of an agent that has a link, does not change this link. */
START_TEST(a_hello_without_proof_does_not_affect_a_link)
{
	uint16_t port = fx_stats(&f).port_p2p;
	struct wlk_hello h = good_hello(0, 2), echo = h;
	struct wlk_ack ack;
	int old = greet(port, &h, &ack);

	ck_assert_uint_eq(ack.code, WLK_OK);
	forged = true;
	h = good_hello(0, 2);
	expect_code(port, &h, WLK_REFUSED_RUN);
	h = good_hello(1, 2);
	expect_code(port, &h, WLK_REFUSED_RUN);
	forged = false;
	expect_code(port, &echo, WLK_REFUSED_RUN); /* a copy of an earlier hello */
	h = good_hello(1, 2);
	h.nonce.b[3] ^= 1; /* the nonce of another link of that agent */
	expect_code(port, &h, WLK_REFUSED_RUN);
	ck_assert_uint_eq(fx_stats(&f).links_in, 1);
	read_nothing(old);
	h = good_hello(1, 2);
	expect_code(port, &h, WLK_OK);
	h = good_hello(0, 2);
	h.number = 0; /* from a round before the last one */
	expect_code(port, &h, WLK_REFUSED_RUN);
	ck_assert_uint_eq(fx_stats(&f).links_in, 1);
	close(old);
}
END_TEST

/* Requests are answered, even before anything was synchronized here. An invalid request ends the
 * stream. The engine of a run accepts STE_CONNS_MAX streams. */
START_TEST(streams_for_shared_state_are_served_and_limited)
{
	struct wst_request q = {.kind = WST_TENSORS, .id = 3, .group = 1, .seq = 1, .n = 1};
	uint16_t port = fx_stats(&f).port_shared_state;
	struct wlk_hello h = good_hello(0, 1);
	static int fds[STE_CONNS_MAX];
	uint8_t buf[WST_HDR_SIZE];
	struct wst_answer answer;
	struct wlk_ack ack;
	const char *why;

	h.service = WLK_SHARED_STATE;
	for (uint32_t i = 0; i < STE_CONNS_MAX; i++) {
		h.features = i % 2 ? UINT64_MAX : UINT64_MAX - WLK_MEMBERS;
		fds[i] = greet(port, &h, &ack);
		ck_assert_uint_eq(ack.code, WLK_OK);
		ck_assert_uint_eq(ack.features, i % 2 ? WLK_MEMBERS : 0);
	}
	expect_code(port, &h, WLK_REFUSED_LIMIT);
	wst_request_put(buf, &q);
	tcp_send(fds[0], buf, sizeof buf);
	ck_assert_uint_eq(tcp_receive(fds[0], buf, sizeof buf), sizeof buf);
	ck_assert_int_eq(wst_answer_get(buf, &answer, &why), 0);
	ck_assert_uint_eq(answer.req.id, 3);
	ck_assert_uint_eq(answer.status, WST_NOT_YET);
	buf[0] ^= 1;
	tcp_send(fds[0], buf, sizeof buf);
	ck_assert_uint_eq(tcp_receive(fds[0], buf, 1), 0);
	for (uint32_t i = 0; i < STE_CONNS_MAX; i++)
		close(fds[i]);
	ck_assert_uint_eq(fake_counts().rx_streams, 0);
}
END_TEST

static void say_and_vanish(struct agentd *d, void *arg)
{
	struct linger at_once = {.l_onoff = 1};
	struct wlk_hello h = good_hello(1, 2);
	uint8_t buf[WLK_HELLO_SIZE];
	int *fd = arg;

	(void)d;
	wlk_hello_put(buf, &h);
	(void)master_prove(&m, buf);
	tcp_send(*fd, buf, sizeof buf);
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(*fd);
}

/* The agent reads the hello although its sender is gone. Its refusal cannot be delivered. */
START_TEST(a_refusal_to_a_closed_connection_is_harmless)
{
	int fd = tcp_connect(fx_stats(&f).port_p2p);

	fx_await(&f, half_open_are, 1);
	fx_call(&f, say_and_vanish, &fd);
	fx_await(&f, half_open_are, 0);
	ck_assert_uint_eq(fx_stats(&f).links_in, 0);
}
END_TEST

START_TEST(an_unknown_version_is_refused_with_the_known_ones)
{
	struct agentd_stats s = fx_stats(&f);
	const uint16_t ports[] = {s.port_p2p, s.port_shared_state, s.port_benchmark};
	struct wlk_hello h = good_hello(0, 1);
	uint8_t buf[WLK_HELLO_SIZE], answer[WLK_ACK_SIZE];
	struct wlk_ack ack;
	const char *why;

	h.version_min = 7;
	h.version_max = 9;
	wlk_hello_put(buf, &h);
	for (int i = 0; i < 3; i++) {
		/* The first eight bytes must be enough, because later versions of the hello may be
		 * shorter. */
		int fd = tcp_connect(ports[i]);

		tcp_send(fd, buf, 8);
		ck_assert_uint_eq(tcp_receive(fd, answer, sizeof answer), sizeof answer);
		ck_assert_int_eq(wlk_ack_get(answer, &ack, &why), 0);
		ck_assert_uint_eq(ack.code, WLK_REFUSED_VERSION);
		ck_assert_uint_eq(ack.version, 0);
		ck_assert_uint_eq(ack.version_max, WLK_VERSION_MAX);
		ck_assert_ptr_nonnull(strstr(ack.text, "7 to 9"));
		ck_assert_ptr_nonnull(strstr(ack.text, "2 to 2"));
		close(fd);
	}
	h.version_min = WLK_VERSION_MAX; /* a newer agent that still knows our version */
	expect_code(s.port_p2p, &h, WLK_OK);
}
END_TEST

START_TEST(random_bytes_end_the_connection)
{
	struct agentd_stats s = fx_stats(&f);
	const uint16_t ports[] = {s.port_p2p, s.port_shared_state, s.port_benchmark};
	uint8_t buf[200];

	srand(5);
	for (size_t len = 0; len <= sizeof buf; len++) {
		for (int i = 0; i < 3; i++) {
			int fd = tcp_connect(ports[i]);
			char byte;

			for (size_t j = 0; j < len; j++)
				buf[j] = (uint8_t)rand();
			tcp_send(fd, buf, len);
			shutdown(fd, SHUT_WR);
			ck_assert_uint_eq(tcp_receive(fd, &byte, 1), 0);
			close(fd);
		}
	}
	fx_await(&f, half_open_are, 0);
}
END_TEST

START_TEST(wrong_magic_is_refused_at_once)
{
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello h = good_hello(0, 1);

	wlk_hello_put(buf, &h);
	for (size_t i = 0; i < 4; i++) {
		int fd = tcp_connect(fx_stats(&f).port_p2p);
		char byte;

		buf[i] ^= 0x40;
		/* the test keeps the connection open: these bytes must be enough for a refusal */
		tcp_send(fd, buf, i + 1);
		ck_assert_uint_eq(tcp_receive(fd, &byte, 1), 0);
		buf[i] ^= 0x40;
		close(fd);
	}
}
END_TEST

START_TEST(a_hello_may_arrive_in_two_parts)
{
	struct wlk_hello h = good_hello(0, 1);
	uint8_t buf[WLK_HELLO_SIZE], answer[WLK_ACK_SIZE];
	struct wlk_ack ack;
	const char *why;

	for (size_t cut = 1; cut < sizeof buf; cut++) {
		int fd = tcp_connect(fx_stats(&f).port_p2p);

		h = good_hello(0, 1);
		wlk_hello_put(buf, &h);
		(void)master_prove(&m, buf);

		tcp_send(fd, buf, cut);
		usleep(200); /* so that the two parts usually arrive separately */
		tcp_send(fd, buf + cut, sizeof buf - cut);
		ck_assert_uint_eq(tcp_receive(fd, answer, sizeof answer), sizeof answer);
		ck_assert_int_eq(wlk_ack_get(answer, &ack, &why), 0);
		ck_assert_uint_eq(ack.code, WLK_OK);
		close(fd);
		fd = tcp_connect(fx_stats(&f).port_p2p); /* this hello is never completed */
		tcp_send(fd, buf, cut);
		close(fd);
	}
	fx_await(&f, half_open_are, 0);
}
END_TEST

/* The oldest connection is closed. Members send their hello at once, so the oldest connection is
 * not a member's. */
START_TEST(the_oldest_half_open_connection_is_closed)
{
	struct wlk_hello h = good_hello(0, 1);
	uint8_t answer[WLK_ACK_SIZE];
	struct wlk_ack ack;
	const char *why;
	int fds[65];

	for (int i = 0; i < 64; i++)
		fds[i] = tcp_connect(fx_stats(&f).port_p2p);
	fx_await(&f, half_open_are, 64);
	fds[64] = tcp_connect(fx_stats(&f).port_p2p);
	ck_assert_uint_eq(tcp_receive(fds[0], answer, sizeof answer), sizeof answer);
	ck_assert_int_eq(wlk_ack_get(answer, &ack, &why), 0);
	ck_assert_uint_eq(ack.code, WLK_REFUSED_LIMIT);
	expect_code(fx_stats(&f).port_p2p, &h, WLK_OK);
	for (int i = 0; i < 65; i++)
		close(fds[i]);
	fx_await(&f, half_open_are, 0);
}
END_TEST

START_TEST(a_silent_connection_is_closed)
{
	int fd = tcp_connect(fx_stats(&f).port_p2p);
	uint64_t start = cc_now_ns();
	char byte;

	ck_assert_uint_eq(tcp_receive(fd, &byte, 1), 0);
	ck_assert_uint_ge(cc_now_ns() - start, 4000000000u);
	close(fd);
}
END_TEST

/* ---- ports ---- */

static uint16_t taken;

static void on_taken_port(struct agentd_config *c)
{
	c->port_p2p = taken;
	c->port_benchmark = taken;
}

START_TEST(taken_ports_are_replaced_by_higher_ones)
{
	struct cc_addr at = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	int fd = cc_listen_tcp(&at, 0);
	struct agentd_stats s;
	struct fx g;

	taken = at.port;
	if (taken > UINT16_MAX - 110)
		return; /* there may be no free port above */
	fx_start(&g, on_taken_port);
	s = fx_stats(&g);
	ck_assert_uint_gt(s.port_p2p, taken);
	ck_assert_uint_le(s.port_p2p, taken + AGENTD_PORT_BUMP);
	ck_assert_uint_gt(s.port_benchmark, s.port_p2p);
	ck_assert_uint_ne(s.port_shared_state, 0);
	fx_stop(&g);
	close(fd);
}
END_TEST

static void on_advertised_ports(struct agentd_config *c)
{
	c->advertise_port_shared_state = 50149;
	c->advertise_port_p2p = 50150;
	c->advertise_port_benchmark = 50151;
}

/* The agent sends the ports of a router to the master, and so to other hosts, whatever its own
 * ports are. */
START_TEST(advertised_ports_are_sent_to_the_master)
{
	struct wm_msg hello;

	pair_begin(on_advertised_ports);
	master_hang_up(&m);
	master_take(&m, m.term + 1, &hello);
	ck_assert_uint_eq(hello.u.hello.port_shared_state, 50149);
	ck_assert_uint_eq(hello.u.hello.port_p2p, 50150);
	ck_assert_uint_eq(hello.u.hello.port_benchmark, 50151);
	ck_assert_uint_ne(fx_stats(&f).port_benchmark, 50151);
	wire_master_clear(&hello);
	teardown();
}
END_TEST

Suite *hello_suite(void)
{
	Suite *s = suite_create("hello");
	TCase *t = tcase_create("hello"), *ports = tcase_create("ports");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_link_with_all_its_streams_is_accepted);
	tcase_add_test(t, a_service_gets_connections_that_are_proven);
	tcase_add_test(t, a_probe_needs_no_run_and_opens_no_link);
	tcase_add_test(t, a_probe_exchanges_bytes);
	tcase_add_test(t, a_link_that_is_opened_again_replaces_the_old_one);
	tcase_add_test(t, every_wrong_hello_is_refused);
	tcase_add_test(t, a_hello_without_proof_does_not_affect_a_link);
	tcase_add_test(t, streams_for_shared_state_are_served_and_limited);
	tcase_add_test(t, a_refusal_to_a_closed_connection_is_harmless);
	tcase_add_test(t, an_unknown_version_is_refused_with_the_known_ones);
	tcase_add_test(t, random_bytes_end_the_connection);
	tcase_add_test(t, wrong_magic_is_refused_at_once);
	tcase_add_test(t, a_hello_may_arrive_in_two_parts);
	tcase_add_test(t, the_oldest_half_open_connection_is_closed);
	tcase_add_test(t, a_silent_connection_is_closed);
	suite_add_tcase(s, t);
	tcase_add_test(ports, taken_ports_are_replaced_by_higher_ones);
	tcase_add_test(ports, advertised_ports_are_sent_to_the_master);
	suite_add_tcase(s, ports);
	return s;
}
