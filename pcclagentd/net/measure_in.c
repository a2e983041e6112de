/* SPDX-License-Identifier: MIT
 *
 * Measurements, at the agent that receives. The bytes are discarded in the kernel, and their number
 * is reported to the agent that sends them (wlk_count). Behind a lost packet TCP keeps hundreds of
 * packets back, and then passes them on at once, which looks like a high rate. So the packets that
 * arrive are counted, too.
 *
 * The proof of a hello shows that the master has told that agent to connect here, in the
 * measurement whose number is in the hello. So such an agent is welcome even if this agent's own
 * order has not arrived yet. Numbers grow: a hello with a higher number ends the measurement before
 * it, and a hello with a lower number is refused. Once the order has arrived, only the agents that
 * it names are welcome. Only the newest connection to the master counts, because numbers of another
 * master, or from before a loss of the connection, say nothing.
 *
 * If this agent needs its network for something else, it says so in its reports (`busy`). It goes
 * on to discard bytes until the other agents have read this.
 *
 * An agent is cut off after the longest time of the measurement plus the time in which two links
 * are opened, whatever it does, and gets no more time in the same measurement. As in measure_out.c,
 * each call of a callback does only a bounded amount of work.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pcclagentd/net/net_internal.h"

#define READ_BYTES ((size_t)1 << 20) /* at most in one call for one connection */
#define REPORT_MS  20u
#define SLACK_MS   1000u

struct sender;

struct sink {
	struct sender *sender;
	int fd;           /* -1: closed, or not open yet */
	uint32_t packets; /* that have arrived */
	struct cc_watch *watch;
};

/* An agent that sends to this one. It remains until the next measurement. */
struct sender {
	struct intake *intake;
	struct cc_id agent;
	uint64_t hello;     /* the number of its last hello for stream 0 */
	struct cc_id nonce; /* this agent's part of the proof of its other streams */
	uint64_t until;
	uint32_t n_streams;
	uint32_t have; /* bit i: stream i was opened since the last hello for stream 0 */
	uint64_t bytes, arrived, first_ns;
	struct sink sinks[WM_MEASURE_STREAMS_MAX];
	struct sender *prev, *next;
};

struct intake {
	struct net_run *run;
	uint64_t number; /* of the present measurement; 0: none yet */
	uint32_t ms;     /* its longest time; before the order has arrived: the longest possible */
	bool ordered;    /* the order has arrived, and names `from` */
	bool busy;       /* it is over, and the agents of `from` must measure later */
	uint32_t n_from;
	struct cc_id from[WM_MEASURE_AGENTS_MAX];
	struct sender *senders;
	uint64_t arrived;           /* from all senders of this measurement */
	uint32_t n_senders, n_open; /* agents; open streams of all agents */
	struct cc_timer *timer;     /* while a stream is open */
};

/* ---- counts ---- */

/* Counts the packets that have arrived since the last count. */
static void count(struct sink *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;
	uint64_t bytes;

	if (s->fd < 0 || getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return;
	bytes = (uint64_t)(info.tcpi_data_segs_in - s->packets) * info.tcpi_rcv_mss;
	s->packets = info.tcpi_data_segs_in;
	s->sender->arrived += bytes;
	s->sender->intake->arrived += bytes;
}

static void count_all(struct intake *x)
{
	struct sender *s;

	DL_FOREACH (x->senders, s) {
		for (uint32_t i = 0; i < s->n_streams; i++)
			count(&s->sinks[i]);
	}
}

/* ---- ends ---- */

static void sink_close(struct sink *s)
{
	struct intake *x = s->sender->intake;

	if (s->fd < 0)
		return;
	count(s);
	cc_watch_free(s->watch);
	close(s->fd);
	*s = (struct sink){.sender = s->sender, .fd = -1};
	if (--x->n_open > 0)
		return;
	cc_timer_free(x->timer);
	x->timer = NULL;
}

static void sender_close(struct sender *s)
{
	for (uint32_t i = 0; i < WM_MEASURE_STREAMS_MAX; i++)
		sink_close(&s->sinks[i]);
}

static void sender_free(struct sender *s)
{
	struct intake *x = s->intake;

	sender_close(s);
	DL_DELETE(x->senders, s);
	x->n_senders--;
	free(s);
}

static void intake_clear(struct intake *x)
{
	struct sender *s, *tmp;

	DL_FOREACH_SAFE (x->senders, s, tmp) {
		sender_free(s);
	}
	x->ordered = x->busy = false;
	x->n_from = 0;
	x->arrived = 0;
	x->ms = WM_MEASURE_MS_MAX;
}

/* Returns the time at which an agent that begins now is cut off. */
static uint64_t cut_off_ns(const struct intake *x)
{
	uint32_t new_link_ms = x->run->bounds.ms[CC_BOUND_NEW_LINK];

	return cc_now_ns() + BASE_MS((uint64_t)x->ms + 2 * (uint64_t)new_link_ms + SLACK_MS);
}

static struct intake *intake_of(struct net_run *r)
{
	if (r->intake)
		return r->intake;
	r->intake = calloc(1, sizeof *r->intake);
	if (!r->intake)
		rep_out_of_memory("measurements");
	r->intake->run = r;
	r->intake->ms = WM_MEASURE_MS_MAX;
	return r->intake;
}

/* ---- orders ---- */

static bool is_named(const struct intake *x, const struct cc_id *agent)
{
	for (uint32_t i = 0; i < x->n_from; i++)
		if (cc_id_eq(&x->from[i], agent))
			return true;
	return false;
}

void net_measure_in(struct net_run *r, const struct wm_measure *m)
{
	struct intake *x = intake_of(r);
	struct sender *s, *tmp;

	if (m->number < x->number)
		return; /* another agent already has the next order */
	if (m->number > x->number)
		intake_clear(x);
	x->number = m->number;
	x->ms = m->ms;
	x->ordered = true;
	x->n_from = m->n_from;
	if (m->n_from > 0)
		memcpy(x->from, m->from, m->n_from * sizeof *m->from);
	DL_FOREACH_SAFE (x->senders, s, tmp) {
		if (!is_named(x, &s->agent))
			sender_free(s);
		else
			s->until = cut_off_ns(x);
	}
}

void net_measure_in_stop(struct net_run *r, uint64_t number)
{
	struct intake *x = r->intake;

	if (!x || (number != 0 && x->number != number))
		return;
	intake_clear(x);
	x->ordered = true; /* it names nobody */
}

/* ---- reports ---- */

static void report(struct sender *s, uint64_t now)
{
	struct intake *x = s->intake;
	struct wlk_count c = {
		.bytes = s->bytes, .arrived = s->arrived, .all = x->arrived, .busy = x->busy};
	uint8_t buf[WLK_COUNT_SIZE];
	ssize_t n;

	if (s->sinks[0].fd < 0 || (s->first_ns == 0 && !x->busy))
		return;
	if (s->first_ns > 0)
		c.us = (now - s->first_ns) / 1000;
	wlk_count_put(buf, &c);
	n = send(s->sinks[0].fd, buf, sizeof buf, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The agent does not read its reports, or is gone. */
	if (n != (ssize_t)sizeof buf)
		sender_close(s);
}

void net_measure_in_busy(struct net_run *r, uint64_t number)
{
	struct intake *x = r->intake;
	struct sender *s;

	if (!x || x->number != number)
		return;
	x->busy = true;
	DL_FOREACH (x->senders, s) {
		s->until = cc_now_ns() + BASE_MS(SLACK_MS);
		report(s, cc_now_ns());
	}
}

/* ---- the run ---- */

void net_measure_in_reset(struct net_run *r)
{
	if (!r->intake)
		return;
	intake_clear(r->intake);
	r->intake->number = 0;
}

void net_measure_in_free(struct net_run *r)
{
	if (r->intake)
		intake_clear(r->intake);
	free(r->intake);
	r->intake = NULL;
}

uint32_t net_measure_in_streams(const struct net_run *r)
{
	return r->intake ? r->intake->n_open : 0;
}

/* ---- streams ---- */

static bool is_open(const struct sender *s)
{
	for (uint32_t i = 0; i < s->n_streams; i++)
		if (s->sinks[i].fd >= 0)
			return true;
	return false;
}

static void cut_off(struct sender *s)
{
	char agent[CC_ID_SHORT_SIZE];

	rep_complain(&s->intake->run->net->base->report, CC_LOG_WARNING,
		"agent %s has not ended its measurement in time: its connections are closed",
		cc_id_short(&s->agent, agent));
	sender_close(s);
}

static void on_timer(void *arg)
{
	struct intake *x = arg;
	uint64_t now = cc_now_ns();
	struct sender *s;

	count_all(x);
	/* The timer ends with the last stream. */
	DL_FOREACH (x->senders, s) {
		if (is_open(s) && now >= s->until)
			cut_off(s);
		else
			report(s, now);
	}
}

static void on_bytes(void *arg)
{
	struct sink *sink = arg;
	struct sender *s = sink->sender;
	/* TCP discards the bytes and does not write to the buffer. */
	ssize_t n = recv(
		sink->fd, s->intake->run->net->discarded, READ_BYTES, MSG_TRUNC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && s->first_ns == 0)
		s->first_ns = cc_now_ns();
	if (n > 0) {
		s->bytes += (uint64_t)n;
	} else if (sink == &s->sinks[0]) {
		sender_close(s);
	} else {
		sink_close(sink);
	}
}

/* Returns false if the agent lacks a resource. */
static bool watch(struct sink *s, int fd)
{
	struct intake *x = s->sender->intake;
	struct net *n = x->run->net;

	if (!n->discarded)
		n->discarded = malloc(READ_BYTES);
	if (!x->timer)
		x->timer = cc_timer_new(n->base->loop, REPORT_MS, on_timer, x);
	s->watch = cc_watch_new(n->base->loop, fd, false, on_bytes, s);
	s->fd = fd;
	x->n_open++;
	return n->discarded && x->timer && s->watch;
}

/* ---- hellos ---- */

static uint64_t hello_number(const struct wlk_hello *h)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | h->nonce.b[i];
	return v;
}

/* Was the key of the hello made from the newest connection between this agent and its master? */
static bool is_of_newest_key(const struct net_guest *g)
{
	const struct net_run *r = g->run;
	struct cc_key key;

	cc_link_key(&r->keys[0], g->hello.service, g->hello.number, &g->hello.from,
		&r->net->base->id, &key);
	return cc_key_eq(&key, &g->key);
}

static struct sender *find(const struct intake *x, const struct cc_id *agent)
{
	struct sender *s;

	DL_FOREACH (x->senders, s) {
		if (cc_id_eq(&s->agent, agent))
			return s;
	}
	return NULL;
}

static struct sender *add(struct intake *x, const struct cc_id *agent)
{
	struct sender *s = calloc(1, sizeof *s);

	if (!s)
		rep_out_of_memory("measurements");
	s->intake = x;
	s->agent = *agent;
	s->until = cut_off_ns(x);
	for (uint32_t i = 0; i < WM_MEASURE_STREAMS_MAX; i++)
		s->sinks[i] = (struct sink){.sender = s, .fd = -1};
	DL_APPEND(x->senders, s);
	x->n_senders++;
	return s;
}

/* Prepares a sender for the streams that this stream 0 begins. Returns NULL if the guest was
 * refused. */
static struct sender *begin(struct intake *x, struct net_guest *g)
{
	const struct wlk_hello *h = &g->hello;
	struct sender *s = find(x, &h->from);
	uint64_t number = hello_number(h);

	if (s && number <= s->hello) {
		net_guest_refuse(g, WLK_REFUSED_RUN,
			"this hello is outdated: newer hellos have followed it");
		return NULL;
	}
	if (!s && x->n_senders == WM_MEASURE_AGENTS_MAX) {
		net_guest_refuse(g, WLK_REFUSED_LIMIT, "too many agents measure at a time");
		return NULL;
	}
	if (!s)
		s = add(x, &h->from);
	sender_close(s);
	s->hello = number;
	s->n_streams = h->n_streams;
	s->have = 0;
	s->bytes = s->arrived = s->first_ns = 0;
	cc_random_id(&s->nonce);
	return s;
}

/* Returns the sender that this stream belongs to, or NULL if the guest was refused. */
static struct sender *join(struct intake *x, struct net_guest *g)
{
	const struct wlk_hello *h = &g->hello;
	struct sender *s;

	if (h->stream == 0)
		return begin(x, g);
	s = find(x, &h->from);
	if (s && s->n_streams == h->n_streams && cc_id_eq(&s->nonce, &h->nonce) &&
		!(s->have >> h->stream & 1))
		return s;
	net_guest_refuse(g, WLK_REFUSED_RUN,
		"the measurement of this stream does not exist here, or has ended");
	return NULL;
}

/* Returns why the guest is refused, or NULL. */
static const char *objection(const struct intake *x, const struct net_guest *g)
{
	const struct wlk_hello *h = &g->hello;
	const struct sender *s = find(x, &h->from);

	if (x->run->net->base->stopping)
		return "this agent ends";
	if (!is_of_newest_key(g))
		return "this hello is outdated: the agent has connected to a master since";
	if (h->number < x->number)
		return "this measurement has ended: the master has ordered another one";
	if (h->number == x->number && x->ordered && !is_named(x, &h->from))
		return "this measurement has ended, or the master has not announced the agent "
		       "that connects";
	if (h->number == x->number && s && cc_now_ns() >= s->until)
		return "the time of this measurement is over";
	return NULL;
}

static void accept_stream(void *arg, struct net_guest *g)
{
	struct intake *x = intake_of(g->run);
	const char *text = objection(x, g);
	uint16_t stream = g->hello.stream;
	struct sender *s;
	int fd;

	(void)arg;
	if (text) {
		net_guest_refuse(g, WLK_REFUSED_RUN, text);
		return;
	}
	if (g->hello.n_streams > WM_MEASURE_STREAMS_MAX) {
		net_guest_refuse(g, WLK_REFUSED_LIMIT, "a measurement has at most 16 connections");
		return;
	}
	if (g->hello.number > x->number)
		intake_clear(x);
	x->number = g->hello.number;
	s = join(x, g);
	if (!s)
		return;
	fd = net_guest_welcome(g, 0, &s->nonce);
	if (fd < 0)
		return;
	s->have |= (uint32_t)1 << stream;
	(void)cc_tcp_tune(fd);
	if (!watch(&s->sinks[stream], fd))
		sender_close(s);
	else if (x->busy)
		report(s, cc_now_ns());
}

const struct net_service net_benchmark = {.id = WLK_BENCHMARK, .accept = accept_stream};
