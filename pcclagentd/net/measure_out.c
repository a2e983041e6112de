/* SPDX-License-Identifier: MIT
 *
 * Measurements, at the agent that sends. For each agent of the order there is a pair. It opens its
 * connections like a link, then it sends bytes without meaning on all of them as fast as it can.
 * The other agent reports what has arrived (wlk_count), and estimate.c computes the rate.
 *
 * The time of the order begins when no pair is connecting any longer. Before that no pair sends,
 * because bytes in the queues of the network would delay the other pairs. A single pair ends as
 * soon as its rate is stable, unless other agents send to this one at the same time. Otherwise all
 * pairs send for the whole time.
 *
 * If the order says `hold`, several agents measure under a load that they make together. But they
 * do not begin at the same moment. So no pair ends early, and all pairs go on to send after the
 * answer until the order is stopped, but no longer than the measurement has taken.
 *
 * All this is done by the loop thread. The master orders a measurement only while no operation of
 * the run is in progress, so no engine waits for this thread. But it also serves other runs and the
 * heartbeats of all runs. So each call of a callback sends or receives only a bounded number of
 * bytes, and the loop serves the other descriptors in between.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "pcclagentd/net/estimate.h"
#include "pcclagentd/net/out_link.h"

#define SEND_BYTES ((size_t)256 << 10) /* at most in one call for one connection */
#define TIMER_MS   10u
#define REPORTS    16u /* reports that are read in one call */

struct pair_stream {
	struct pair *pair;
	int fd; /* -1: closed */
	struct cc_watch *room;
};

struct pair {
	struct measure *m;
	enum { PAIR_CONNECTING, PAIR_CONNECTED, PAIR_ENDED } state;
	struct wm_measured_result result; /* ENDED: complete */
	struct pair_stream streams[WM_MEASURE_STREAMS_MAX];
	struct cc_watch *reports; /* of stream 0 */
	uint32_t have;            /* bytes of `buf` */
	uint8_t buf[REPORTS * WLK_COUNT_SIZE];
	uint64_t sent;        /* bytes, on all streams */
	uint32_t trip_us;     /* the shortest round trip of its streams before the load */
	struct net_point got; /* the last report */
	struct net_estimate estimate;
};

struct measure {
	struct net_run *run;
	uint64_t number;
	uint32_t ms, n_streams;
	bool alone;     /* it may end early: nobody else measures under its load */
	bool beginning; /* not all pairs have begun to connect */
	bool loaded;    /* no pair is connecting any longer */
	bool hold, answered;
	uint64_t until; /* if `loaded`: the end; if `answered`: the end of the load */
	struct cc_timer *timer;
	uint32_t n;
	struct pair pairs[];
};

/* Bytes without meaning. Never written to. */
static uint8_t nothing[SEND_BYTES];

/* ---- ends ---- */

/* Closes the streams and discards the bytes that are still to be sent: they would disturb the next
 * measurement. */
static void close_streams(struct pair *p)
{
	static const struct linger at_once = {.l_onoff = 1};

	cc_watch_free(p->reports);
	p->reports = NULL;
	for (uint32_t i = 0; i < p->m->n_streams; i++) {
		struct pair_stream *s = &p->streams[i];

		cc_watch_free(s->room);
		s->room = NULL;
		if (s->fd < 0)
			continue;
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(s->fd);
		s->fd = -1;
	}
}

static void measure_free(struct measure *m)
{
	struct net_run *r = m->run;
	struct out_link *l, *next;

	DL_FOREACH_SAFE (r->out_links, l, next) {
		if (l->pair)
			net_link_free(l);
	}
	for (uint32_t i = 0; i < m->n; i++)
		close_streams(&m->pairs[i]);
	cc_timer_free(m->timer);
	r->measure = NULL;
	free(m);
}

void net_measure_out_stop(struct net_run *r, uint64_t number)
{
	if (r->measure && (number == 0 || r->measure->number == number))
		measure_free(r->measure);
}

uint32_t net_measure_out_streams(const struct net_run *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; r->measure && i < r->measure->n; i++)
		n += r->measure->pairs[i].state == PAIR_CONNECTED ? r->measure->n_streams : 0;
	return n;
}

static void pair_end(struct pair *p, bool limit, const char *text)
{
	close_streams(p);
	p->state = PAIR_ENDED;
	p->result.limit = limit;
	snprintf(p->result.text, sizeof p->result.text, "%s", text);
}

/* Ends a pair for the reason in errno. */
static void pair_end_here(struct pair *p)
{
	char limit[CC_LIMIT_TEXT];
	bool is_limit = cc_limit_is(errno);

	pair_end(p, is_limit, cc_limit_text(errno, limit, sizeof limit));
}

static bool any_in(const struct measure *m, int state)
{
	for (uint32_t i = 0; i < m->n; i++)
		if ((int)m->pairs[i].state == state)
			return true;
	return false;
}

/* The time is over. */
static void pair_finish(struct pair *p, uint64_t rate)
{
	char text[WM_TEXT_MAX];

	if (rate == 0) {
		snprintf(text, sizeof text, "no byte was reported to have arrived within %u ms",
			p->m->ms);
		pair_end(p, false, text);
		return;
	}
	if (!p->m->hold)
		pair_end(p, false, "");
	p->result.ok = true;
	p->result.rate = rate;
	p->result.rate_of_all = net_estimate_rate_of_all(&p->estimate);
	p->result.confidence = net_estimate_confidence(&p->estimate);
	p->result.trip_us = p->trip_us;
}

/* The time is over for all pairs that are still connected. The sum of the rates under a load
 * counts, so they must be those of the same time. */
static void finish(struct measure *m)
{
	struct net_estimate *e[WM_MEASURE_AGENTS_MAX] = {0};
	struct pair *pairs[WM_MEASURE_AGENTS_MAX];
	uint64_t rates[WM_MEASURE_AGENTS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (m->pairs[i].state == PAIR_ENDED)
			continue;
		pairs[n] = &m->pairs[i];
		e[n++] = &m->pairs[i].estimate;
	}
	if (m->hold)
		net_estimate_rates_at_once(e, n, rates);
	for (uint32_t i = 0; i < n; i++)
		pair_finish(pairs[i], m->hold ? rates[i] : net_estimate_rate(e[i]));
}

/* Sends the results to the core, and ends the measurement. Only a load that must stay goes on. */
static void measure_end(struct measure *m)
{
	struct base *b = m->run->net->base;
	/* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is at least one pair */
	struct wm_measured_result *v = calloc(m->n, sizeof *v);
	struct agt_event ev = {.type = AGT_EV_MEASURED,
		.run = m->run->id,
		.seq = m->number,
		.n_measured = m->n,
		.measured = v};

	if (!v)
		rep_out_of_memory("measurements");
	finish(m);
	for (uint32_t i = 0; i < m->n; i++)
		v[i] = m->pairs[i].result;
	m->answered = true;
	m->until = cc_now_ns() + BASE_MS(m->ms);
	if (!any_in(m, PAIR_CONNECTED))
		measure_free(m);
	ev_post(b, &ev);
	free(v);
}

static void on_room(void *arg);

/* Begins to send. Returns false with errno if the agent lacks a resource. */
static bool pair_load(struct pair *p)
{
	net_estimate_begin(&p->estimate, &p->got, p->m->ms, p->trip_us);
	for (uint32_t i = 0; i < p->m->n_streams; i++) {
		struct pair_stream *s = &p->streams[i];

		s->room = cc_watch_new_room(p->m->run->net->base->loop, s->fd, on_room, s);
		if (!s->room)
			return false;
	}
	return true;
}

/* All pairs that can be connected send from now on. */
static void load(struct measure *m)
{
	m->loaded = true;
	m->until = cc_now_ns() + BASE_MS(m->ms);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->pairs[i].state == PAIR_CONNECTED && !pair_load(&m->pairs[i]))
			pair_end_here(&m->pairs[i]);
}

/* The state of a pair has changed. The measurement may be freed when this returns. */
static void settle(struct measure *m)
{
	if (m->beginning || any_in(m, PAIR_CONNECTING))
		return;
	if (any_in(m, PAIR_CONNECTED) && !m->loaded)
		load(m);
	if (any_in(m, PAIR_CONNECTED))
		return;
	if (m->answered)
		measure_free(m);
	else
		measure_end(m);
}

static void pair_lose(struct pair *p, bool limit, const char *text)
{
	struct measure *m = p->m;

	pair_end(p, limit, text);
	settle(m);
}

static void pair_lose_here(struct pair *p)
{
	struct measure *m = p->m;

	pair_end_here(p);
	settle(m);
}

/* ---- load ---- */

static void on_room(void *arg)
{
	struct pair_stream *s = arg;
	ssize_t n = send(s->fd, nothing, sizeof nothing, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		s->pair->sent += (uint64_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		pair_lose_here(s->pair);
}

/* Takes a report. Returns false if it cannot be true, or if it ends the pair. */
static bool take_count(struct pair *p, const uint8_t *buf)
{
	struct wlk_count c;

	wlk_count_get(buf, &c);
	if (c.busy) {
		p->result.busy = !p->m->answered;
		return false;
	}
	if (c.bytes > p->sent || c.arrived < p->got.bytes || c.us < p->got.us || c.all < p->got.all)
		return false;
	p->got = (struct net_point){.us = c.us, .bytes = c.arrived, .all = c.all};
	if (p->m->loaded)
		net_estimate_add(&p->estimate, &p->got, cc_now_ns() / 1000);
	return true;
}

static void on_reports(void *arg)
{
	struct pair *p = arg;
	struct measure *m = p->m;
	ssize_t n = recv(p->streams[0].fd, p->buf + p->have, sizeof p->buf - p->have, MSG_DONTWAIT);
	uint32_t at = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		pair_lose_here(p);
		return;
	}
	if (n == 0) {
		pair_lose(p, false, "the other agent has ended the measurement");
		return;
	}
	p->have += (uint32_t)n;
	for (; p->have - at >= WLK_COUNT_SIZE; at += WLK_COUNT_SIZE) {
		if (take_count(p, p->buf + at))
			continue;
		pair_lose(p, false,
			p->result.busy ? "its network is in use by an operation, or by a "
					 "measurement of another run"
				       : "the other agent reports bytes that were not sent");
		return;
	}
	p->have -= at;
	memmove(p->buf, p->buf + at, p->have);
	if (m->alone && m->loaded && net_estimate_is_stable(&p->estimate))
		measure_end(m);
}

static void on_timer(void *arg)
{
	struct measure *m = arg;

	if (!m->loaded || cc_now_ns() < m->until)
		return;
	if (m->answered)
		measure_free(m);
	else
		measure_end(m);
}

/* ---- connecting ---- */

/* Returns the shortest round trip of a connection in us, or UINT32_MAX if it is not known. */
static uint32_t trip_us(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return UINT32_MAX;
	return info.tcpi_min_rtt < info.tcpi_rtt ? info.tcpi_min_rtt : info.tcpi_rtt;
}

void net_pair_connected(struct pair *p, const int *fds)
{
	struct measure *m = p->m;
	struct cc_loop *loop = m->run->net->base->loop;

	p->state = PAIR_CONNECTED;
	p->trip_us = UINT32_MAX;
	for (uint32_t i = 0; i < m->n_streams; i++) {
		uint32_t us = trip_us(fds[i]);

		p->trip_us = us < p->trip_us ? us : p->trip_us;
		p->streams[i].fd = fds[i];
	}
	p->reports = cc_watch_new(loop, fds[0], false, on_reports, p);
	if (!p->reports)
		pair_lose_here(p);
	else
		settle(m);
}

void net_pair_failed(struct pair *p, uint32_t code, const char *text)
{
	pair_lose(p, code == WIRE_OUT_OF_MEMORY, text);
}

void net_measure_out(struct net_run *r, const struct wm_measure *order)
{
	struct measure *m = calloc(1, sizeof *m + order->n_to * sizeof m->pairs[0]);

	if (!m)
		rep_out_of_memory("measurements");
	*m = (struct measure){.run = r,
		.number = order->number,
		.ms = order->ms,
		.n_streams = order->streams,
		.hold = order->hold,
		.alone = order->n_to == 1 && order->n_from <= 1 && !order->hold,
		.beginning = true,
		.n = order->n_to};
	m->timer = cc_timer_new(r->net->base->loop, TIMER_MS, on_timer, m);
	if (!m->timer)
		rep_out_of_memory("measurements");
	r->measure = m;
	for (uint32_t i = 0; i < m->n; i++) {
		struct pair *p = &m->pairs[i];

		p->m = m;
		p->result.agent = order->to[i].agent;
		for (uint32_t k = 0; k < m->n_streams; k++)
			p->streams[k] = (struct pair_stream){.pair = p, .fd = -1};
	}
	for (uint32_t i = 0; i < m->n; i++)
		net_link_for_pair(r, &m->pairs[i], &order->to[i], m->n_streams);
	m->beginning = false;
	settle(m);
}
