/* SPDX-License-Identifier: MIT
 *
 * Opens one stream of a link: connections to one address, the hello, its answer.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/handshake.h"
#include "pcclagentd/net/out_link.h"

/* If a hello gets no acknowledgement for this time plus two round trips, it was lost. */
#define LOST_NS    BASE_MS(150)
#define SYN_MAX_MS 600000u
#define SYN_NS     BASE_MS(200) /* time between the starts of two connections for one stream */

#define HIGH_RTT_STREAM_US   12000u /* one stream for each 12 ms of the round trip */
#define HIGH_RTT_STREAMS_MIN 4u
#define HIGH_RTT_STREAMS_MAX 8u

uint32_t net_link_bound_ms(const struct out_link *l, enum cc_bound b)
{
	return l->run->bounds.ms[b];
}

/* Returns the time for the answer to a hello: half of the link's time, so that another address can
 * still be tried. */
static uint64_t hello_ns(const struct out_link *l)
{
	return BASE_MS(net_link_bound_ms(l, CC_BOUND_NEW_LINK)) / 2;
}

/* Returns the extra time for each step on a slow path. */
static uint64_t slow_ns(const struct out_link *l)
{
	return l->trip_ns < CC_PACED_RTT_US * UINT64_C(1000) ? 0 : CC_PACED_RTT_TRIPS * l->trip_ns;
}

/* Returns the most time that a link may take in all. This time ends before the master abandons the
 * round (see ccm_paths_ms, and CC_ROUND_SELF_MS for the master's own part). */
static uint64_t most_ns(const struct out_link *l)
{
	uint64_t near = BASE_MS(2 * CC_PATH_MS), far = l->trip_ns > near ? l->trip_ns - near : 0;

	if (l->pair) /* the other pairs of the measurement wait for this one */
		return BASE_MS(net_link_bound_ms(l, CC_BOUND_NEW_LINK)) + slow_ns(l);
	return BASE_MS(net_link_bound_ms(l, CC_BOUND_ROUND) - CC_ROUND_SELF_MS / 2) +
	       CC_ROUND_TRIPS * far;
}

/* The other host has answered on `fd`, so it is alive: moves the deadline, so that the remaining
 * steps have the time of a new link. */
static void goes_on(struct out_link *l, int fd)
{
	uint64_t trip_ns = cc_tcp_round_trip_us(fd) * UINT64_C(1000), until;

	if (l->trip_ns < trip_ns)
		l->trip_ns = trip_ns;
	until = cc_now_ns() + BASE_MS(net_link_bound_ms(l, CC_BOUND_NEW_LINK)) + slow_ns(l);
	if (until > l->since + most_ns(l))
		until = l->since + most_ns(l);
	if (l->deadline < until)
		l->deadline = until;
}

/* ---- one stream being opened ---- */

void net_try_stop(struct connect_try *t)
{
	for (uint32_t i = 0; i < t->n_syns; i++) {
		if (t->syns[i].conn)
			cc_conn_close(t->syns[i].conn);
		t->syns[i].conn = NULL;
	}
	cc_watch_free(t->watch);
	t->watch = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

__attribute__((format(printf, 2, 3))) void net_try_fail(struct connect_try *t, const char *fmt, ...)
{
	va_list ap;

	net_try_stop(t);
	t->state = TRY_FAILED;
	va_start(ap, fmt);
	vsnprintf(t->error, sizeof t->error, fmt, ap);
	va_end(ap);
}

/* Fails the stream with the text of errno, which may be a limit of this agent. */
static void try_fail_here(struct connect_try *t)
{
	char limit[CC_LIMIT_TEXT];

	t->limit = cc_limit_is(errno);
	net_try_fail(t, "%s", cc_limit_text(errno, limit, sizeof limit));
}

static void take_ack(struct connect_try *t)
{
	struct out_link *l = t->link;
	char text[ERROR_SIZE];
	struct wlk_ack a;
	enum hs_answer answer = hs_take_answer(
		t->ack, l->probe ? NULL : &l->to.key, &t->proof, &a, text, sizeof text);

	if (answer == HS_WELCOME) {
		t->state = TRY_GOOD;
		if (t->stream == 0)
			l->nonce = a.nonce;
		l->bulk = a.features & WLK_BULK;
		goes_on(l, t->fd);
	} else {
		t->limit = answer == HS_LIMIT;
		net_try_fail(t, "%s", text);
	}
	cc_watch_free(t->watch);
	t->watch = NULL;
}

static void on_ack(void *arg)
{
	struct connect_try *t = arg;
	ssize_t n = recv(t->fd, t->ack + t->have, sizeof t->ack - t->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		try_fail_here(t);
	else if (n == 0)
		net_try_fail(t, "closed without an answer");
	else if ((t->have += (uint32_t)n) == sizeof t->ack)
		take_ack(t);
	else
		return;
	net_link_advance(t->link);
}

/*
 * A link over a high round-trip path gets several streams, even if only one was requested. The
 * kernel's send buffer limits the bytes that one stream can have under way. Linux allows 4 MiB by
 * default. Of these only 2.8 MiB are in use at any time, because the kernel announces room only
 * when a third is free. After a loss, all later bytes stay in the buffer for another round trip. So
 * there are enough streams for two round trips at 1 Gbit/s. The real rate is unknown here. A few
 * streams too many do no harm, but very many streams together overrun the queues of routers.
 *
 * BBR stops a connection for 200 ms or more when its shortest round trip is ten seconds old
 * (PROBE_RTT in Linux's tcp_bbr.c), and it stops most connections of a link at the same time. A
 * connection that has sent nothing for ten seconds takes its next round trip as the shortest
 * instead. So there are three times as many streams in three stream sets. A set sends for five
 * seconds, or until the present operation has ended, and rests for ten seconds.
 */
void net_try_choose_streams(struct out_link *l, int fd)
{
	uint32_t round_trip_us = cc_tcp_round_trip_us(fd), n = round_trip_us / HIGH_RTT_STREAM_US;

	l->n_streams = l->asked;
	l->sets = false;
	if (round_trip_us < CC_HIGH_RTT_US)
		return;
	if (n < HIGH_RTT_STREAMS_MIN)
		n = HIGH_RTT_STREAMS_MIN;
	if (n > HIGH_RTT_STREAMS_MAX)
		n = HIGH_RTT_STREAMS_MAX;
	if (l->n_streams < n)
		l->n_streams = n;
	l->sets = cc_tcp_has_bbr(fd) && l->n_streams * ENG_SETS <= WM_POOL_MAX;
	if (l->sets)
		l->n_streams *= ENG_SETS;
}

/* Returns the nonce of a hello, see wlk_hello.nonce. */
static struct cc_id hello_nonce(struct out_link *l, uint16_t stream)
{
	uint64_t number = ++l->run->net->next_hello;
	struct cc_id ret;

	if (stream != 0)
		return l->nonce;
	cc_random_id(&ret);
	for (int i = 0; i < 8; i++)
		ret.b[i] = (uint8_t)(number >> 8 * i);
	return ret;
}

void net_try_say_hello(struct connect_try *t)
{
	struct out_link *l = t->link;
	struct wlk_hello h = {.service = (uint16_t)l->service,
		.features = l->probe && l->service == WLK_P2P ? WLK_BULK : 0,
		.run = l->run->run_id,
		.nonce = hello_nonce(l, t->stream),
		.number = l->to.key_no,
		.from = l->run->net->base->id,
		.to = l->to.agent,
		.stream = t->stream,
		.n_streams = (uint16_t)l->n_streams};

	t->state = TRY_HELLO;
	t->said_ns = cc_now_ns();
	t->hello_deadline = t->said_ns + hello_ns(l);
	if (hs_say_hello(t->fd, &h, &l->to.key, &t->proof) < 0) {
		try_fail_here(t);
		return;
	}
	t->watch = cc_watch_new(l->run->net->base->loop, t->fd, false, on_ack, t);
	if (!t->watch)
		try_fail_here(t);
}

static void on_connected(void *arg)
{
	struct syn *s = arg;
	struct connect_try *t = s->try;
	int fd;

	cc_conn_stop_reading(s->conn);
	fd = cc_conn_detach(s->conn);
	s->conn = NULL;
	net_try_stop(t);
	t->fd = fd;
	t->state = TRY_WAITING;
	goes_on(t->link, fd);
	net_link_advance(t->link);
}

static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	(void)arg;
	(void)buf;
	(void)len;
	return CC_ERR_PROTO; /* never called, because reading is off */
}

static void on_closed(void *arg, int err, const char *text)
{
	struct syn *s = arg;

	s->conn = NULL;
	s->try->limit = err == CC_ERR_NOMEM;
	net_try_fail(s->try, "%s", text);
	net_link_advance(s->try->link);
}

static const struct cc_conn_ops try_ops = {
	.on_connected = on_connected,
	.on_data = on_data,
	.on_closed = on_closed,
};

/* Starts another connection for the stream. The timeout of the connection is never reached, because
 * the link's deadline is earlier. */
static void try_syn(struct connect_try *t)
{
	struct syn *s = &t->syns[t->n_syns];

	s->try = t;
	s->conn = cc_conn_connect(t->link->run->net->base->loop, &t->addr, SYN_MAX_MS,
		cc_tcp_sizes[t->link->segments], &try_ops, s);
	if (s->conn)
		t->n_syns++;
	else if (t->n_syns == 0)
		try_fail_here(t);
	t->next_syn = cc_now_ns() + SYN_NS + 2 * t->link->trip_ns;
}

void net_try_start(struct connect_try *t)
{
	t->state = TRY_CONNECTING;
	t->limit = false;
	try_syn(t);
}

void net_try_tick(struct connect_try *t, uint64_t now)
{
	int n = 0;

	if (t->state == TRY_CONNECTING && t->n_syns < SYNS && now >= t->next_syn)
		try_syn(t);
	if (t->state != TRY_HELLO || ioctl(t->fd, SIOCOUTQ, &n) < 0 || n == 0)
		return;
	/* The connection was made, but the hello is not acknowledged: the packets of the hello get
	 * lost and are sent again. The time for the answer begins when the hello has been
	 * delivered. */
	t->hello_deadline = now + hello_ns(t->link) + slow_ns(t->link);
	if (now - t->said_ns >= LOST_NS + 2 * t->link->trip_ns)
		t->link->deadline = t->link->since + most_ns(t->link);
}

const char *net_try_lacks(const struct connect_try *t)
{
	int n = 0;

	if (t->state != TRY_HELLO && t->stream != 0)
		return "packets get lost: other streams connected, but this one did not connect in "
		       "time";
	if (t->state != TRY_HELLO)
		return "no connection in time";
	if (ioctl(t->fd, SIOCOUTQ, &n) == 0 && n > 0)
		return "packets get lost: connected, but nothing arrives in time";
	return "connected, but no answer in time";
}
