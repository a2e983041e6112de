/* SPDX-License-Identifier: MIT
 *
 * Measurements. The test is the master of two agents and orders measurements between them. It also
 * plays other agents that connect to the port for benchmarks, some of them hostile.
 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_seal.h"
#include "common/cc_sys.h"
#include "proto/wire_codes.h"
#include "tests/agentio/fake_engine.h"
#include "tests/agentio/pair.h"
#include "tests/agentio/suites.h"

#define LONG_MS  10000u /* a measurement that is stopped long before its end */
#define SHORT_MS 600u
#define STREAMS  3u
#define LOST     0xeeu

static struct cc_id other; /* the agent that the test plays */

/* ---- a second agent ---- */

static struct fx g;
static struct master n; /* its connection to the same master */
static struct client c, d;
static struct queue qc, qd;

static void start_second(void)
{
	fx_start(&g, NULL);
	master_listen(&n);
	n.run = m.run;
	master_join_two(&n, &g, &c, &qc, &d, &qd);
}

static void stop_second(void)
{
	fx_check_alive(&g);
	master_part_two(&n, &g, &c, &qc, &d, &qd);
}

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

static void setup_two(void)
{
	setup();
	start_second();
}

static void teardown_two(void)
{
	stop_second();
	teardown();
}

/* Returns the endpoint of the agent behind `to`, for a measurement by the agent behind `from`. */
static struct wm_endpoint endpoint_to(
	const struct master *from, const struct master *to, struct fx *agent, uint64_t number)
{
	struct wm_endpoint x = {.agent = to->agent,
		.name = "testhost",
		.port = fx_stats(agent).port_benchmark,
		.n_addrs = 1,
		.addrs = {{.family = CC_INET4, .ip = {127, 0, 0, 1}}},
		.key_no = number};

	x.addrs[0].port = x.port;
	cc_link_key(
		cc_seal_agent_key(to->seal), WLK_BENCHMARK, number, &from->agent, &x.agent, &x.key);
	return x;
}

static void order(struct master *to, uint64_t number, uint32_t ms, struct wm_endpoint *target,
	struct cc_id *from)
{
	struct wm_msg msg = {.type = WM_MEASURE,
		.u.measure = {.number = number,
			.ms = ms,
			.streams = STREAMS,
			.n_to = target != NULL,
			.to = target,
			.n_from = from != NULL,
			.from = from}};

	master_send(to, &msg);
}

/* Expects the result of a measurement with one target. */
static struct wm_measured_result result(struct master *x, uint64_t number)
{
	struct wm_measured_result ret;
	struct wm_msg msg;

	master_expect(x, WM_MEASURED, &msg);
	ck_assert_uint_eq(msg.u.measured.number, number);
	ck_assert_uint_eq(msg.u.measured.n, 1);
	ret = msg.u.measured.results[0];
	wire_master_clear(&msg);
	return ret;
}

static void expect_rate(const struct wm_measured_result *x, const struct cc_id *agent)
{
	ck_assert_msg(x->ok, "%s", x->text);
	ck_assert(cc_id_eq(&x->agent, agent));
	ck_assert_uint_gt(x->rate, 0);
	ck_assert_uint_lt(x->trip_us, 1000000);
	ck_assert(!x->limit && x->text[0] == '\0');
}

static bool measuring_is(const struct agentd_stats *s, uint64_t number)
{
	return s->measuring == number;
}

START_TEST(rate_between_two_agents_is_measured)
{
	struct wm_measured_result x;

	for (uint64_t number = 1; number <= 3; number++) {
		struct wm_endpoint to = endpoint_to(&m, &n, &g, number);

		order(&n, number, SHORT_MS, NULL, &m.agent);
		order(&m, number, SHORT_MS, &to, NULL);
		x = result(&m, number);
		expect_rate(&x, &n.agent);
		fx_await(&f, measuring_is, 0);
		fx_await(&g, measuring_is, 0);
	}
}
END_TEST

/* The order of the receiver may arrive after the first connection. */
START_TEST(order_of_the_receiver_may_come_late)
{
	struct wm_endpoint to = endpoint_to(&m, &n, &g, 1);
	struct wm_measured_result x;

	order(&m, 1, SHORT_MS, &to, NULL);
	fx_await(&g, measuring_is, STREAMS);
	order(&n, 1, SHORT_MS, NULL, &m.agent);
	x = result(&m, 1);
	expect_rate(&x, &n.agent);
}
END_TEST

START_TEST(two_agents_measure_in_both_directions_at_a_time)
{
	struct wm_endpoint there = endpoint_to(&m, &n, &g, 7), back = endpoint_to(&n, &m, &f, 7);
	struct wm_measured_result x;

	order(&m, 7, SHORT_MS, &there, &n.agent);
	order(&n, 7, SHORT_MS, &back, &m.agent);
	x = result(&m, 7);
	expect_rate(&x, &n.agent);
	x = result(&n, 7);
	expect_rate(&x, &m.agent);
}
END_TEST

/* Of several agents, one does not listen, one is not the one that was meant, and one does not
 * answer. The other one is measured in spite of that. */
START_TEST(each_agent_has_a_result_of_its_own)
{
	struct wm_endpoint v[4];
	struct cc_addr closed = {.family = CC_INET4, .ip = {127, 0, 0, 1}};
	struct wm_msg msg = {.type = WM_MEASURE,
		.u.measure = {.number = 1, .ms = SHORT_MS, .streams = 2, .n_to = 4, .to = v}};
	const struct wm_measured_result *x;
	struct other mute;

	for (int i = 0; i < 4; i++)
		v[i] = endpoint_to(&m, &n, &g, 1);
	close(cc_listen_tcp(&closed, 0));
	v[0].agent = (struct cc_id){{1}};
	v[0].addrs[0] = closed;
	v[2].agent = (struct cc_id){{2}};
	other_listen(&mute, 1);
	v[3].agent = mute.id;
	v[3].addrs[0] = mute.at;
	master_send(&m, &msg);
	master_expect(&m, WM_MEASURED, &msg);
	ck_assert_uint_eq(msg.u.measured.n, 4);
	x = msg.u.measured.results;
	for (int i = 0; i < 4; i++)
		ck_assert(cc_id_eq(&x[i].agent, &v[i].agent));
	ck_assert(!x[0].ok && !x[0].limit && strstr(x[0].text, "refused"));
	expect_rate(&x[1], &n.agent);
	ck_assert(!x[2].ok && strstr(x[2].text, "this is agent"));
	ck_assert(!x[3].ok && strstr(x[3].text, "no answer in time"));
	wire_master_clear(&msg);
	fx_await(&f, measuring_is, 0);
	close(mute.listener);
}
END_TEST

/* Orders a measurement whose load stays after the answer. */
static void order_held(uint64_t number, uint32_t ms)
{
	struct wm_endpoint to = endpoint_to(&m, &n, &g, number);
	struct wm_msg msg = {.type = WM_MEASURE,
		.u.measure = {.number = number,
			.ms = ms,
			.streams = STREAMS,
			.hold = true,
			.n_to = 1,
			.to = &to}};
	struct wm_measured_result x;

	master_send(&m, &msg);
	x = result(&m, number);
	expect_rate(&x, &n.agent);
}

/* Without `hold`, this measurement of a single link would end as soon as its rate is stable. */
START_TEST(load_stays_after_the_answer_until_it_is_stopped)
{
	uint64_t begin = cc_now_ns();

	order_held(1, 1500);
	ck_assert_uint_ge(cc_now_ns() - begin, UINT64_C(1500000000));
	ck_assert_uint_eq(fx_stats(&f).measuring, STREAMS);
	ck_assert_uint_eq(fx_stats(&g).measuring, STREAMS);
	order(&m, 2, 1, NULL, NULL);
	fx_await(&f, measuring_is, 0);
	fx_await(&g, measuring_is, 0);
}
END_TEST

START_TEST(load_that_nobody_stops_ends)
{
	order_held(1, SHORT_MS / 3);
	fx_await(&f, measuring_is, 0);
	fx_await(&g, measuring_is, 0);
}
END_TEST

START_TEST(load_ends_with_its_receiver)
{
	order_held(1, LONG_MS / 10);
	order(&n, 2, 1, NULL, &other); /* the receiver lets others measure instead */
	fx_await(&f, measuring_is, 0);
	order_held(3, SHORT_MS / 3);
}
END_TEST

/* Orders measurement 1, and waits until it is under load. It has two targets, one of which refuses.
 * So it lasts for its whole time. */
static void order_long(void)
{
	struct wm_endpoint v[2] = {endpoint_to(&m, &n, &g, 1), endpoint_to(&m, &n, &g, 1)};
	struct wm_msg msg = {.type = WM_MEASURE,
		.u.measure = {.number = 1, .ms = LONG_MS, .streams = STREAMS, .n_to = 2, .to = v}};

	v[1].agent = (struct cc_id){{2}};
	master_send(&m, &msg);
	fx_await(&g, measuring_is, STREAMS);
	fx_await(&f, measuring_is, STREAMS);
}

START_TEST(newer_order_replaces_the_older_one)
{
	struct wm_endpoint fresh = endpoint_to(&m, &n, &g, 2);
	struct wm_measured_result x;

	order_long();
	order(&m, 2, SHORT_MS, &fresh, NULL);
	x = result(&m, 2);
	expect_rate(&x, &n.agent);
}
END_TEST

static void send_round(struct master *x)
{
	struct cc_id members[2] = {{{1}}, {{2}}};
	struct wm_ring ring = {
		.group = 1, .hosts = 1, .pool_size = 1, .n_members = 2, .members = members};
	struct wm_msg msg = {
		.type = WM_ROUND, .u.round = {.round = 2, .n_rings = 1, .rings = &ring}};

	master_send(x, &msg);
	master_expect(x, WM_ROUND_REPORT, &msg);
	wire_master_clear(&msg);
}

/* The measurement is stopped by a round (0), an empty order (1) or the loss of the master (2). No
 * answer follows. */
START_TEST(measurement_is_stopped)
{
	struct wm_measured_result x;

	order_long();
	if (_i == 0)
		send_round(&m);
	else if (_i == 1)
		order(&m, 2, SHORT_MS, NULL, NULL);
	else
		master_hang_up(&m);
	fx_await(&f, measuring_is, 0);
	fx_await(&g, measuring_is, 0);
	if (_i < 2) {
		struct wm_endpoint to = endpoint_to(&m, &n, &g, 3);

		order(&m, 3, SHORT_MS, &to, NULL);
		x = result(&m, 3);
		expect_rate(&x, &n.agent);
	}
}
END_TEST

START_TEST(receiver_that_stops_is_reported)
{
	struct wm_msg msg;

	order(&n, 1, LONG_MS, NULL, &m.agent);
	order_long();
	order(&n, 2, LONG_MS, NULL, NULL);
	master_expect(&m, WM_MEASURED, &msg);
	ck_assert(!msg.u.measured.results[0].ok);
	ck_assert_str_ne(msg.u.measured.results[0].text, "");
	wire_master_clear(&msg);
}
END_TEST

/* ---- agents that the test plays ---- */

static struct cc_id nonce; /* from the last answer to a stream 0 */
static uint64_t hello_number;

static struct wlk_hello hello(uint64_t number, uint16_t stream)
{
	struct wlk_hello h = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.service = WLK_BENCHMARK,
		.run = m.run,
		.nonce = nonce,
		.number = number,
		.from = other,
		.to = m.agent,
		.stream = stream,
		.n_streams = STREAMS};

	hello_number++;
	if (stream == 0)
		h.nonce = (struct cc_id){
			{(uint8_t)hello_number, (uint8_t)(hello_number >> 8), [15] = 1}};
	return h;
}

static int greet(const struct wlk_hello *h, const struct master *prover, struct wlk_ack *ret)
{
	uint8_t buf[WLK_HELLO_SIZE], answer[WLK_ACK_SIZE];
	const char *why;
	int fd = tcp_connect(fx_stats(&f).port_benchmark);

	wlk_hello_put(buf, h);
	if (prover)
		(void)master_prove(prover, buf);
	tcp_send(fd, buf, sizeof buf);
	ck_assert_uint_eq(tcp_receive(fd, answer, sizeof answer), sizeof answer);
	ck_assert_msg(wlk_ack_get(answer, ret, &why) == 0, "%s", why);
	if (ret->code == WLK_OK && h->stream == 0)
		nonce = ret->nonce;
	return fd;
}

static int expect_welcome(const struct wlk_hello *h)
{
	struct wlk_ack ack;
	int fd = greet(h, &m, &ack);

	ck_assert_msg(ack.code == WLK_OK, "%s", ack.text);
	return fd;
}

static void expect_refusal(const struct wlk_hello *h, enum wlk_code code, const char *text)
{
	struct wlk_ack ack;
	int fd = greet(h, &m, &ack);

	ck_assert_uint_eq(ack.code, code);
	ck_assert_msg(strstr(ack.text, text) != NULL, "\"%s\" in \"%s\"", text, ack.text);
	close(fd);
}

static void expect_closed(int fd)
{
	uint8_t buf[WLK_COUNT_SIZE];

	while (tcp_receive(fd, buf, sizeof buf) == sizeof buf)
		;
	close(fd);
}

static struct wlk_count next_count(int fd)
{
	uint8_t buf[WLK_COUNT_SIZE];
	struct wlk_count x;

	ck_assert_uint_eq(tcp_receive(fd, buf, sizeof buf), sizeof buf);
	wlk_count_get(buf, &x);
	return x;
}

static uint8_t bytes[100000];

/* Bytes of all streams are counted together. */
START_TEST(received_bytes_are_reported)
{
	struct wlk_hello h = hello(1, 0);
	int fds[2];
	struct wlk_count last = {.bytes = 0}, x;

	fds[0] = expect_welcome(&h);
	h = hello(1, 2);
	fds[1] = expect_welcome(&h);
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < 2; i++)
			tcp_send(fds[i], bytes, sizeof bytes);
		do {
			x = next_count(fds[0]);
			ck_assert_uint_ge(x.bytes, last.bytes);
			ck_assert_uint_ge(x.us, last.us);
			last = x;
		} while (x.bytes < (uint64_t)round * 2 * sizeof bytes);
		ck_assert_uint_eq(x.bytes, (uint64_t)round * 2 * sizeof bytes);
	}
	close(fds[1]);
	fx_await(&f, measuring_is, 1);
	close(fds[0]);
	fx_await(&f, measuring_is, 0);
}
END_TEST

/* Returns this process's socket whose other end is `fd`. */
static int other_end_of(int fd)
{
	struct sockaddr_storage mine, theirs;
	socklen_t len = sizeof mine, other_len;

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&mine, &len), 0);
	for (int i = 0; i < 1024; i++) {
		other_len = sizeof theirs;
		if (getpeername(i, (struct sockaddr *)&theirs, &other_len) == 0 &&
			other_len == len && memcmp(&mine, &theirs, len) == 0)
			return i;
	}
	ck_abort_msg("the agent has no socket for this connection");
}

/* Lets the socket lose packets of more than 100 bytes whose first byte of payload is LOST. */
static void lose(int fd)
{
	/* The packet begins at the TCP header. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 100, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOST, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
}

static void lose_no_more(int fd)
{
	int none = 0;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none), 0);
}

/* The packets behind a lost one have arrived, although they cannot be received before the lost one
 * is sent again. Otherwise they would seem to arrive all at once. */
START_TEST(packets_behind_a_lost_one_have_arrived)
{
	struct wlk_hello h = hello(1, 0);
	int fd = expect_welcome(&h), sink = other_end_of(fd);
	const int one = 1; /* each call sends a packet */
	uint8_t lost[1000];
	struct wlk_count x;
	uint64_t before;

	ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
	tcp_send(fd, bytes, sizeof bytes);
	do
		x = next_count(fd);
	while (x.bytes < sizeof bytes);
	ck_assert_uint_ge(x.arrived, sizeof bytes);
	before = x.arrived;
	lose(sink);
	memset(lost, LOST, sizeof lost);
	tcp_send(fd, lost, sizeof lost);
	tcp_send(fd, bytes, sizeof lost);
	do
		x = next_count(fd);
	while (x.arrived < before + sizeof lost);
	ck_assert_uint_eq(x.bytes, sizeof bytes);
	ck_assert_uint_eq(x.all, x.arrived);
	lose_no_more(sink);
	do
		x = next_count(fd);
	while (x.bytes < sizeof bytes + 2 * sizeof lost);
	close(fd);
	fx_await(&f, measuring_is, 0);
}
END_TEST

START_TEST(only_streams_of_the_measurement_are_welcome)
{
	struct wlk_hello h = hello(5, 1), echo;
	int fds[2];

	expect_refusal(&h, WLK_REFUSED_RUN, "stream"); /* comes before stream 0 */
	echo = hello(5, 0);
	fds[0] = expect_welcome(&echo);
	expect_refusal(&echo, WLK_REFUSED_RUN, "outdated"); /* somebody sends it again */
	h = hello(5, 1);
	h.nonce.b[0] ^= 1;
	expect_refusal(&h, WLK_REFUSED_RUN, "stream");
	h = hello(5, 1);
	h.n_streams++;
	expect_refusal(&h, WLK_REFUSED_RUN, "stream");
	h = hello(5, 1);
	fds[1] = expect_welcome(&h);
	expect_refusal(&h, WLK_REFUSED_RUN, "stream"); /* the same stream again */
	h = hello(5, 0);
	h.n_streams = WM_MEASURE_STREAMS_MAX + 1;
	expect_refusal(&h, WLK_REFUSED_LIMIT, "16");
	fx_await(&f, measuring_is, 2);
	/* The agent connects again, for example at another address: the old streams end. */
	h = hello(5, 0);
	echo = h;
	close(expect_welcome(&h));
	for (int i = 0; i < 2; i++)
		expect_closed(fds[i]);
	fx_await(&f, measuring_is, 0);
	expect_refusal(&echo, WLK_REFUSED_RUN, "outdated");
}
END_TEST

START_TEST(connection_without_the_right_key_is_refused)
{
	struct wlk_hello h = hello(1, 0), shown;
	struct wlk_ack ack;
	uint8_t buf[WLK_HELLO_SIZE];
	const char *why;

	close(greet(&h, NULL, &ack));
	ck_assert_uint_eq(ack.code, WLK_REFUSED_RUN);
	/* the key of another number */
	wlk_hello_put(buf, &h);
	(void)master_prove(&m, buf);
	ck_assert_int_eq(wlk_hello_get(buf, &shown, &why), 0);
	shown.number = 2;
	close(greet(&shown, NULL, &ack));
	ck_assert_uint_eq(ack.code, WLK_REFUSED_RUN);
	/* the key of another service */
	h.service = WLK_P2P;
	expect_refusal(&h, WLK_REFUSED_SERVICE, "service");
	ck_assert_uint_eq(fx_stats(&f).measuring, 0);
}
END_TEST

START_TEST(only_the_newest_measurement_counts)
{
	struct wlk_hello h = hello(5, 0);
	int old = expect_welcome(&h), fresh;

	h = hello(4, 0);
	expect_refusal(&h, WLK_REFUSED_RUN, "another one");
	h = hello(6, 0);
	fresh = expect_welcome(&h);
	expect_closed(old);
	h = hello(5, 1);
	expect_refusal(&h, WLK_REFUSED_RUN, "another one");
	order(&m, 8, LONG_MS, NULL, &other);
	expect_closed(fresh);
	h = hello(8, 0);
	fresh = expect_welcome(&h);
	order(&m, 7, LONG_MS, NULL, &other); /* outdated: ends nothing */
	fx_check_alive(&f);
	h = hello(8, 1);
	close(expect_welcome(&h));
	fx_await(&f, measuring_is, 1);
	close(fresh);
}
END_TEST

/* The order names another agent: the agent that has connected before is cut off. */
START_TEST(only_agents_that_the_order_names_are_welcome)
{
	struct cc_id named;
	struct wlk_hello h = hello(1, 0);
	int fd = expect_welcome(&h);

	cc_random_id(&named);
	order(&m, 1, LONG_MS, NULL, &named);
	expect_closed(fd);
	h = hello(1, 0);
	expect_refusal(&h, WLK_REFUSED_RUN, "has not announced");
	h.from = named;
	fd = expect_welcome(&h);
	send_round(&m);
	expect_closed(fd);
	h = hello(1, 0);
	h.from = named;
	expect_refusal(&h, WLK_REFUSED_RUN, "has ended");
}
END_TEST

/* An agent sends and never reads, and does not end. It gets no more time by another connection. */
START_TEST(agent_that_does_not_end_is_cut_off)
{
	struct wlk_hello h = hello(1, 0);
	int fd = expect_welcome(&h);

	order(&m, 1, 1, NULL, &other);
	while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
		;
	ck_assert(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	h = hello(1, 0);
	expect_refusal(&h, WLK_REFUSED_RUN, "time");
	fx_await(&f, measuring_is, 0);
}
END_TEST

/* Another master counts its measurements from 1, and only the keys of its connection are valid. */
START_TEST(another_master_begins_anew)
{
	struct wlk_hello h = hello(5, 0), late = hello(6, 0), shown;
	int fd = expect_welcome(&h);
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_ack ack;
	struct wm_msg msg;
	const char *why;

	wlk_hello_put(buf, &late);
	(void)master_prove(&m, buf);
	ck_assert_int_eq(wlk_hello_get(buf, &shown, &why), 0);
	master_hang_up(&m);
	master_take(&m, 2, &msg);
	wire_master_clear(&msg);
	do {
		master_next(&m, &msg);
		why = wire_master_type_name(msg.type);
		wire_master_clear(&msg);
	} while (strcmp(why, "resume") != 0);
	expect_closed(fd);
	close(greet(&shown, NULL, &ack));
	ck_assert_uint_eq(ack.code, WLK_REFUSED_RUN);
	ck_assert(strstr(ack.text, "outdated"));
	h = hello(1, 0);
	close(expect_welcome(&h));
	fx_await(&f, measuring_is, 0);
}
END_TEST

/* Orders a measurement to an agent that the test plays, and accepts its streams. fds: by the
 * numbers of the streams. */
static void accept_streams(struct other *x, uint32_t ms, int *fds)
{
	struct wm_endpoint to = {.n_addrs = 1};
	struct wlk_hello h;

	other_listen(x, STREAMS);
	to.agent = x->id;
	to.port = x->at.port;
	to.addrs[0] = x->at;
	order(&m, 1, ms, &to, NULL);
	for (unsigned i = 0; i < STREAMS; i++) {
		int fd = other_accept_stream(x, &m, &h);

		ck_assert_uint_eq(h.service, WLK_BENCHMARK);
		ck_assert_uint_lt(h.stream, STREAMS);
		other_answer(fd, WLK_OK, "");
		fds[h.stream] = fd;
	}
}

static void close_streams(const struct other *x, const int *fds)
{
	for (unsigned i = 0; i < STREAMS; i++)
		close(fds[i]);
	close(x->listener);
}

/* Returns the result of a measurement whose other agent reports this. */
static struct wm_measured_result result_of(const struct wlk_count *count)
{
	struct other x;
	struct wm_measured_result got;
	uint8_t buf[WLK_COUNT_SIZE];
	int fds[STREAMS];

	accept_streams(&x, LONG_MS, fds);
	wlk_count_put(buf, count);
	tcp_send(fds[0], buf, sizeof buf);
	got = result(&m, 1);
	close_streams(&x, fds);
	return got;
}

/* The other agent reports bytes that were not sent. */
START_TEST(false_report_ends_the_pair)
{
	struct wlk_count false_count = {.bytes = UINT64_C(1) << 60, .us = 1};
	struct wm_measured_result got = result_of(&false_count);

	ck_assert(!got.ok);
	ck_assert(strstr(got.text, "not sent"));
}
END_TEST

/* The other agent reports a constant rate: 400 kbit/s. */
START_TEST(confidence_is_that_of_the_estimate)
{
	struct other x;
	struct wlk_count count = {.bytes = 0};
	struct wm_measured_result got;
	uint8_t buf[WLK_COUNT_SIZE];
	int fds[STREAMS];

	accept_streams(&x, LONG_MS, fds);
	for (int i = 0; i < 200; i++) {
		count.us += (uint64_t)LONG_MS * 1000 / 32;
		count.bytes += (uint64_t)LONG_MS * 50 / 32;
		count.arrived = count.all = count.bytes;
		wlk_count_put(buf, &count);
		if (send(fds[0], buf, sizeof buf, MSG_NOSIGNAL) < 0)
			break; /* the rate is stable */
	}
	got = result(&m, 1);
	ck_assert_msg(got.ok, "%s", got.text);
	ck_assert_uint_ge(got.confidence, 99);
	ck_assert_uint_le(got.confidence, 100);
	close_streams(&x, fds);
}
END_TEST

/* The other agent needs its network for something else. */
START_TEST(busy_receiver_is_reported)
{
	struct wlk_count busy = {.busy = true};
	struct wm_measured_result got = result_of(&busy);

	ck_assert(!got.ok && got.busy && !got.limit);
	ck_assert_msg(strstr(got.text, "is in use"), "%s", got.text);
}
END_TEST

/* The other agent takes no bytes and reports nothing. The answer comes in time. The bytes that wait
 * to be sent are discarded, because they would disturb the next measurement. */
START_TEST(silent_receiver_gives_no_rate)
{
	struct other x;
	struct wm_measured_result got;
	int fds[STREAMS];
	ssize_t k;

	accept_streams(&x, 150, fds);
	got = result(&m, 1);
	ck_assert(!got.ok);
	ck_assert(strstr(got.text, "150 ms"));
	for (unsigned i = 0; i < STREAMS; i++) {
		do
			k = recv(fds[i], bytes, sizeof bytes, 0);
		while (k > 0);
		ck_assert(k < 0 && errno == ECONNRESET);
	}
	close_streams(&x, fds);
}
END_TEST

/* The other agent does not answer the hello. The time for new links is over after 2 s. */
START_TEST(agent_that_does_not_answer_fails_in_time)
{
	struct other x;
	struct wm_endpoint to = {.n_addrs = 1};
	struct wm_measured_result got;

	other_listen(&x, STREAMS);
	to.agent = x.id;
	to.port = x.at.port;
	to.addrs[0] = x.at;
	order(&m, 1, LONG_MS, &to, NULL);
	got = result(&m, 1);
	ck_assert(!got.ok);
	ck_assert_msg(strstr(got.text, "no answer in time"), "%s", got.text);
	close(x.listener);
}
END_TEST

/* ---- an operation with other hosts ---- */

#define COUNT ((uint64_t)400000) /* too many for the eager path */

static struct other host; /* the next and the previous host in the ring */
static int links[2];

static void setup_ring(void)
{
	pair_begin_ring(NULL, &host, CC_PLAN_SEGMENT_MAX, links);
	ck_assert_uint_eq(client_alloc(&a, 4 * COUNT, &ma), WIRE_SUCCESS);
	fake_set_auto_done(false);
	cc_random_id(&other);
}

static void teardown_ring(void)
{
	fx_check_alive(&f);
	pair_end_ring(&host, links);
}

static void start_operation(void)
{
	struct shm_sqe e = queue_sum(0, 1, COUNT, &ma);
	struct wm_msg msg;

	queue_push(&qa, &e);
	master_expect(&m, WM_OP_VOTE, &msg);
	wire_master_clear(&msg);
	master_started(&m, 1);
}

static void expect_busy(int fd)
{
	while (!next_count(fd).busy)
		;
	close(fd);
	fx_await(&f, measuring_is, 0);
}

/* An operation is in progress when the order arrives, before the other agent connects (0) or
 * afterwards (1); or the operation begins during the measurement (2). */
START_TEST(other_agents_learn_that_an_operation_uses_the_network)
{
	struct wm_endpoint nobody = endpoint_to(&m, &m, &f, 1);
	struct wlk_hello h = hello(1, 0);
	int fd = -1;

	cc_random_id(&nobody.agent);
	if (_i == 2)
		order(&m, 1, LONG_MS, NULL, &other);
	if (_i != 0) {
		fd = expect_welcome(&h);
		tcp_send(fd, bytes, sizeof bytes);
		ck_assert(!next_count(fd).busy);
	}
	start_operation();
	if (_i != 2) {
		order(&m, 1, LONG_MS, &nobody, &other);
		ck_assert(result(&m, 1).busy);
	}
	if (_i == 0)
		fd = expect_welcome(&h);
	expect_busy(fd);
}
END_TEST

Suite *measure_suite(void)
{
	Suite *s = suite_create("measure");
	TCase *two = tcase_create("two agents"), *t = tcase_create("one agent");
	TCase *ring = tcase_create("operation");

	tcase_set_timeout(two, 60);
	tcase_add_checked_fixture(two, setup_two, teardown_two);
	tcase_add_test(two, rate_between_two_agents_is_measured);
	tcase_add_test(two, order_of_the_receiver_may_come_late);
	tcase_add_test(two, two_agents_measure_in_both_directions_at_a_time);
	tcase_add_test(two, each_agent_has_a_result_of_its_own);
	tcase_add_test(two, load_stays_after_the_answer_until_it_is_stopped);
	tcase_add_test(two, load_that_nobody_stops_ends);
	tcase_add_test(two, load_ends_with_its_receiver);
	tcase_add_test(two, newer_order_replaces_the_older_one);
	tcase_add_loop_test(two, measurement_is_stopped, 0, 3);
	tcase_add_test(two, receiver_that_stops_is_reported);
	suite_add_tcase(s, two);
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, received_bytes_are_reported);
	tcase_add_test(t, packets_behind_a_lost_one_have_arrived);
	tcase_add_test(t, only_streams_of_the_measurement_are_welcome);
	tcase_add_test(t, connection_without_the_right_key_is_refused);
	tcase_add_test(t, only_the_newest_measurement_counts);
	tcase_add_test(t, only_agents_that_the_order_names_are_welcome);
	tcase_add_test(t, agent_that_does_not_end_is_cut_off);
	tcase_add_test(t, another_master_begins_anew);
	tcase_add_test(t, false_report_ends_the_pair);
	tcase_add_test(t, confidence_is_that_of_the_estimate);
	tcase_add_test(t, busy_receiver_is_reported);
	tcase_add_test(t, silent_receiver_gives_no_rate);
	tcase_add_test(t, agent_that_does_not_answer_fails_in_time);
	suite_add_tcase(s, t);
	tcase_set_timeout(ring, 60);
	tcase_add_checked_fixture(ring, setup_ring, teardown_ring);
	tcase_add_loop_test(ring, other_agents_learn_that_an_operation_uses_the_network, 0, 3);
	suite_add_tcase(s, ring);
	return s;
}
