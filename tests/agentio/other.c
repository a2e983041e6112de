/* SPDX-License-Identifier: MIT */
#include "tests/agentio/other.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_sys.h"
#include "pcclagentd/base/handshake.h"

void other_listen(struct other *x, uint32_t n_streams)
{
	*x = (struct other){
		.at = {.family = CC_INET4, .ip = {127, 0, 0, 1}}, .n_streams = n_streams};
	cc_random_id(&x->id);
	x->listener = cc_listen_tcp(&x->at, 0);
	ck_assert_int_ge(x->listener, 0);
}

static void order(struct other *x, struct wm_ring *ring, struct fx *f, struct master *m,
	struct client *a, struct queue *qa)
{
	struct wl_request q = {.type = WL_COMM_CONNECT, .peer = {{1}}, .token = {{2}}};
	struct wm_msg msg;

	client_open(f, a);
	client_comm(a, &m->addr, 1, qa);
	q.comm = qa->comm;
	client_send(a, &q);
	master_accept(m);
	master_expect(m, WM_JOIN, &msg);
	x->peer = msg.u.join.peer;
	ring->members = &x->peer;
	msg = (struct wm_msg){.type = WM_ROUND,
		.u.round = {.round = 1, .accept = true, .n_rings = 1, .rings = ring}};
	master_send(m, &msg);
}

void other_order(struct other *x, struct fx *f, struct master *m, struct client *a,
	struct queue *qa, const struct cc_addr *addrs, uint32_t n, bool at_master)
{
	struct wm_ring ring = {.group = 1,
		.hosts = 3,
		.pos = 1,
		.pool_size = x->n_streams,
		.next = {.agent = x->id,
			.name = "farhost",
			.at_master = at_master,
			.port = x->at.port,
			.n_addrs = n},
		.prev = x->id,
		.n_members = 1};

	memcpy(ring.next.addrs, addrs, n * sizeof *addrs);
	order(x, &ring, f, m, a, qa);
}

static struct wm_endpoint endpoint_of(const struct other *x, const char *name)
{
	struct wm_endpoint e = {.agent = x->id, .port = x->at.port, .n_addrs = 1, .addrs = {x->at}};

	snprintf(e.name, sizeof e.name, "%s", name);
	return e;
}

void other_order_mesh(struct other *next, const struct other *prev, struct fx *f, struct master *m,
	struct client *a, struct queue *qa)
{
	struct wm_endpoint others = endpoint_of(prev, "prevhost");
	struct wm_ring ring = {.group = 1,
		.hosts = 3,
		.pos = 1,
		.pool_size = next->n_streams,
		.next = endpoint_of(next, "nexthost"),
		.prev = prev->id,
		.n_members = 1,
		.n_others = 1,
		.others = &others};

	order(next, &ring, f, m, a, qa);
}

static struct cc_key hello_proof; /* the proof of the stream that was accepted last */

int other_accept_stream(struct other *x, const struct master *m, struct wlk_hello *h)
{
	uint8_t buf[WLK_HELLO_SIZE];
	struct pollfd p = {.fd = x->listener, .events = POLLIN};
	const char *why;
	int fd;

	ck_assert_int_eq(poll(&p, 1, FX_TIMEOUT_MS), 1);
	fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_uint_eq(tcp_receive(fd, buf, sizeof buf), sizeof buf);
	ck_assert_msg(wlk_hello_get(buf, h, &why) == 0, "%s", why);
	ck_assert(cc_id_eq(&h->run, &m->run));
	hello_proof = h->proof;
	ck_assert(cc_id_eq(&h->from, &m->agent));
	ck_assert(cc_id_eq(&h->to, &x->id));
	ck_assert_uint_eq(h->n_streams, x->n_streams);
	return fd;
}

static void answer(int fd, enum wlk_code code, uint64_t features, const char *text)
{
	struct wlk_ack ack = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = code == WLK_OK ? WLK_VERSION_MAX : 0,
		.code = (uint16_t)code,
		.features = features};
	uint8_t buf[WLK_ACK_SIZE];

	snprintf(ack.text, sizeof ack.text, "%s", text);
	wlk_ack_put(buf, &ack);
	/* the round that ordered the link had no keys */
	hs_prove_answer(&(struct cc_key){{0}}, &hello_proof, buf);
	tcp_send(fd, buf, sizeof buf);
}

void other_answer(int fd, enum wlk_code code, const char *text)
{
	answer(fd, code, 0, text);
}

int other_accept_probe(struct other *x, const struct master *m)
{
	struct wlk_hello h;
	int fd = other_accept_stream(x, m, &h);

	ck_assert_uint_eq(h.stream, WLK_STREAM_PROBE);
	ck_assert_uint_eq(h.features, WLK_BULK);
	answer(fd, WLK_OK, WLK_BULK, "");
	return fd;
}

void other_exchange(int fd)
{
	static uint8_t bulk[WLK_BULK_SIZE + 1];

	ck_assert_uint_eq(tcp_receive(fd, bulk, sizeof bulk), WLK_BULK_SIZE);
	tcp_send(fd, bulk, WLK_BULK_SIZE);
	close(fd);
}

void other_accept_link(struct other *x, const struct master *m, int *fds)
{
	struct wlk_hello h;
	uint64_t seen = 0;

	for (uint32_t i = 0; i <= x->n_streams; i++) {
		int fd = other_accept_stream(x, m, &h);
		uint32_t at = h.stream == WLK_STREAM_EAGER ? x->n_streams : h.stream;

		ck_assert(i > 0 || h.stream == 0);
		ck_assert(!(seen >> at & 1));
		seen |= (uint64_t)1 << at;
		other_answer(fd, WLK_OK, "");
		fds[at] = fd;
	}
}

int other_open_in(const struct cc_id *from, struct fx *f, const struct master *m, uint16_t stream,
	enum wlk_code code, struct cc_id *nonce)
{
	static uint8_t number;
	struct wlk_hello h = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.service = WLK_P2P,
		.run = m->run,
		.nonce = *nonce,
		.number = 1,
		.from = *from,
		.to = m->agent,
		.stream = stream,
		.n_streams = 1};
	uint8_t buf[WLK_HELLO_SIZE], answer[WLK_ACK_SIZE];
	struct wlk_ack ack;
	const char *why;
	int fd = tcp_connect(fx_stats(f).port_p2p);

	if (stream == 0)
		h.nonce = (struct cc_id){{++number}};
	wlk_hello_put(buf, &h);
	(void)master_prove(m, buf);
	tcp_send(fd, buf, sizeof buf);
	ck_assert_uint_eq(tcp_receive(fd, answer, sizeof answer), sizeof answer);
	ck_assert_msg(wlk_ack_get(answer, &ack, &why) == 0, "%s", why);
	ck_assert_msg(ack.code == code, "%u: %s", ack.code, ack.text);
	if (stream == 0)
		*nonce = ack.nonce;
	return fd;
}

void other_expect_success(struct master *m)
{
	struct wm_msg msg;

	master_expect(m, WM_ROUND_REPORT, &msg);
	ck_assert_uint_eq(msg.u.round_report.n_failures, 0);
	wire_master_clear(&msg);
}
