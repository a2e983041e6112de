/* SPDX-License-Identifier: MIT
 *
 * Opens links, and the connections of probes and measurements: connects the candidates for stream
 * 0, then the other streams.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_sys.h"
#include "pcclagentd/net/out_link.h"

#define AT_ONCE    32u          /* streams that are opened at a time; each takes two round trips */
#define STAGGER_NS BASE_MS(200) /* time between two candidates; less if there are many */
/* The most bytes of operands that wait to be sent: operands of operations in progress, and of some
 * operations that have failed. */
#define EAGER_MAX_OUT ((size_t)256 << 20)

/* Lists the errors of the candidates, as many as there is room for. */
static void list_errors(const struct out_link *l, char *text, size_t size)
{
	char addr[CC_ADDR_STR_SIZE];
	size_t len = 0;

	for (uint32_t i = 0; i < l->n_tries; i++) {
		const struct connect_try *d = &l->tries[i];
		int n = snprintf(text + len, size - len, "%s%s: %s", i ? "; " : "",
			cc_addr_str(&d->addr, addr),
			d->state == TRY_FAILED ? d->error : net_try_lacks(d));

		if (n < 0 || (size_t)n >= size - len) {
			text[len] = '\0';
			return;
		}
		len += (size_t)n;
	}
}

/* Frees the link and reports its failure to the core, or to its probe or measurement. The text
 * names no hosts, because the master knows their names. */
static void link_fail_text(struct out_link *l, uint32_t code, const char *text)
{
	struct net_run *r = l->run;
	struct agt_event ev = {.type = AGT_EV_LINK_FAILED,
		.run = r->id,
		.peer = l->to.agent,
		.code = code,
		.text = text};
	struct probe *p = l->probe;
	struct pair *pair = l->pair;

	net_link_free(l);
	if (p)
		net_probe_failed(p, code, text);
	else if (pair)
		net_pair_failed(pair, code, text);
	else
		ev_post(r->net->base, &ev);
}

static void link_fail_narrow(struct out_link *l)
{
	char text[WM_TEXT_MAX];

	net_probe_narrow_text(text, sizeof text);
	link_fail_text(l, WIRE_RANK_CONNECTION_FAILED, text);
}

/* Returns the stream that failed because an agent has reached a limit, or NULL. */
static const struct connect_try *find_short(
	const struct out_link *l, const struct connect_try *culprit)
{
	if (culprit)
		return culprit->state == TRY_FAILED && culprit->limit ? culprit : NULL;
	for (uint32_t i = 0; i < l->n_tries; i++)
		if (l->tries[i].state == TRY_FAILED && l->tries[i].limit)
			return &l->tries[i];
	return NULL;
}

/* Fails the link with the error of stream `culprit`, or, if that is NULL, with the errors of all
 * candidates. */
static void link_fail(struct out_link *l, const struct connect_try *culprit)
{
	const struct connect_try *lacks = find_short(l, culprit);
	char text[WM_TEXT_MAX], addr[CC_ADDR_STR_SIZE];

	if (culprit)
		snprintf(text, sizeof text, "stream %u to %s: %s", culprit->stream,
			cc_addr_str(&culprit->addr, addr),
			culprit->state == TRY_FAILED ? culprit->error : net_try_lacks(culprit));
	else if (lacks)
		snprintf(
			text, sizeof text, "%s: %s", cc_addr_str(&lacks->addr, addr), lacks->error);
	else if (l->n_tries == 0)
		snprintf(text, sizeof text, "it has no address");
	else
		list_errors(l, text, sizeof text);
	/* Perhaps this host's own addresses have changed. */
	net_addresses_refresh(l->run->net);
	link_fail_text(l, lacks ? WIRE_OUT_OF_MEMORY : WIRE_RANK_CONNECTION_FAILED, text);
}

/* The other agent never sends data on the stream for the eager path. */
static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	(void)arg;
	(void)buf;
	(void)len;
	return CC_ERR_PROTO;
}

static void on_eager_closed(void *arg, int err, const char *text)
{
	struct out_link *l = arg;
	struct eng_event how = {.link = l->num};

	(void)err;
	l->eager = NULL;
	snprintf(how.text, sizeof how.text, "%s", text);
	net_link_break(l, &how);
}

static int add_eager(struct out_link *l, int fd)
{
	static const struct cc_conn_ops ops = {.on_data = on_data, .on_closed = on_eager_closed};

	l->eager = cc_conn_new(l->run->net->base->loop, fd, &ops, l);
	if (!l->eager)
		return CC_ERR_NOMEM;
	l->eager_fd = fd;
	cc_conn_set_limits(l->eager, 0, EAGER_MAX_OUT);
	cc_conn_allow_silence(l->eager, net_link_bound_ms(l, CC_BOUND_STREAM));
	return 0;
}

static int hand_over(struct out_link *l, uint32_t stream, int fd)
{
	if (stream == l->n_streams)
		return add_eager(l, fd);
	return eng_add_tx_stream(l->run->eng, l->num, fd, l->sets ? stream % ENG_SETS : ENG_NO_SET);
}

/* All streams are open: the engine gets all of them except the last. */
static void link_finish(struct out_link *l)
{
	struct net_run *r = l->run;
	struct agt_event ev = {.type = AGT_EV_LINK_UP, .run = r->id, .peer = l->to.agent};

	l->up = true;
	(void)cc_local_addr(l->streams[0].fd, &l->here);
	for (uint32_t i = 0; i <= l->n_streams; i++) {
		struct connect_try *d = &l->streams[i];
		int fd = d->fd;

		d->fd = -1;
		if (hand_over(l, i, fd) < 0) {
			net_try_fail(d, "the agent's engine took no more streams");
			link_fail(l, d);
			return;
		}
	}
	free(l->streams);
	l->streams = NULL;
	ev_post(r->net->base, &ev);
}

static void probe_finish(struct out_link *l, struct connect_try *good)
{
	enum wlk_service service = l->service;
	struct probe *p = l->probe;
	bool bulk = l->bulk;
	int fd = good->fd;

	good->fd = -1;
	net_link_free(l);
	net_probe_reached(p, service, fd, bulk);
}

static void pair_finish(struct out_link *l)
{
	int fds[WM_MEASURE_STREAMS_MAX];
	struct pair *pair = l->pair;

	for (uint32_t i = 0; i < l->n_streams; i++) {
		fds[i] = l->streams[i].fd;
		l->streams[i].fd = -1;
	}
	net_link_free(l);
	net_pair_connected(pair, fds);
}

/* A candidate has succeeded: stops the others and prepares the streams of the link. */
static void choose(struct out_link *l, struct connect_try *good)
{
	int fd = good->fd;

	good->fd = -1;
	for (uint32_t i = 0; i < l->n_tries; i++)
		net_try_stop(&l->tries[i]);
	l->streams = calloc(net_link_all_streams(l), sizeof *l->streams);
	if (!l->streams)
		rep_out_of_memory("links");
	for (uint32_t i = 0; i < net_link_all_streams(l); i++)
		l->streams[i] = (struct connect_try){.link = l,
			.addr = good->addr,
			.stream = (uint16_t)(i < l->n_streams ? i : WLK_STREAM_EAGER),
			.fd = -1};
	l->streams[0].state = TRY_GOOD;
	l->streams[0].fd = fd;
	l->next_stream = 1;
}

static void advance_streams(struct out_link *l)
{
	uint32_t active = 0, good = 0;

	for (uint32_t i = 0; i < l->next_stream; i++) {
		struct connect_try *d = &l->streams[i];

		if (d->state == TRY_WAITING)
			net_try_say_hello(d);
		if (d->state == TRY_FAILED) {
			link_fail(l, d);
			return;
		}
		good += d->state == TRY_GOOD;
		active += d->state == TRY_CONNECTING || d->state == TRY_HELLO;
	}
	for (; l->next_stream < net_link_all_streams(l) && active < AT_ONCE; active++) {
		struct connect_try *d = &l->streams[l->next_stream++];

		net_try_start(d);
		if (d->state == TRY_FAILED) {
			link_fail(l, d);
			return;
		}
	}
	if (good < net_link_all_streams(l))
		return;
	if (l->pair)
		pair_finish(l);
	else
		link_finish(l);
}

static bool any_in(const struct out_link *l, enum try_state state)
{
	for (uint32_t i = 0; i < l->started; i++)
		if (l->tries[i].state == state)
			return true;
	return false;
}

static struct connect_try *first_in(struct out_link *l, enum try_state state)
{
	for (uint32_t i = 0; i < l->started; i++)
		if (l->tries[i].state == state)
			return &l->tries[i];
	return NULL;
}

/* Returns the time between the starts of two candidates. All candidates start in the first half of
 * the link's time. */
static uint64_t stagger_ns(const struct out_link *l)
{
	uint64_t each = BASE_MS(net_link_bound_ms(l, CC_BOUND_NEW_LINK)) / 2 / l->n_tries;

	return each < STAGGER_NS ? each : STAGGER_NS;
}

/* Starts the candidates that are due, and sends the hello of one connected candidate. */
static void advance_tries(struct out_link *l)
{
	uint64_t now = cc_now_ns();
	struct connect_try *d;

	for (;;) {
		d = first_in(l, TRY_WAITING);
		if (d && !any_in(l, TRY_HELLO)) {
			if (l->probe)
				d->stream = WLK_STREAM_PROBE;
			else if (!l->pair)
				net_try_choose_streams(l, d->fd);
			net_try_say_hello(d);
			continue;
		}
		if (l->started < l->n_tries &&
			(now >= l->next_try ||
				(!d && !any_in(l, TRY_CONNECTING) && !any_in(l, TRY_HELLO)))) {
			net_try_start(&l->tries[l->started++]);
			l->next_try = now + stagger_ns(l);
			continue;
		}
		break;
	}
	if (!d && l->started == l->n_tries && !any_in(l, TRY_CONNECTING) && !any_in(l, TRY_HELLO))
		link_fail(l, NULL);
}

void net_link_advance(struct out_link *l)
{
	if (l->up)
		return;
	if (!l->streams) {
		struct connect_try *good = first_in(l, TRY_GOOD);

		if (!good) {
			advance_tries(l);
			return;
		}
		if (l->probe) {
			probe_finish(l, good);
			return;
		}
		choose(l, good);
	}
	advance_streams(l);
}

static void add_candidate(struct out_link *l, struct cc_addr a)
{
	if (a.port == 0)
		a.port = l->to.port;
	for (uint32_t i = 0; i < l->n_tries; i++)
		if (cc_addr_eq(&l->tries[i].addr, &a))
			return;
	if (a.family == 0 || l->n_tries == CANDIDATES)
		return;
	l->tries[l->n_tries++] = (struct connect_try){.link = l, .addr = a, .fd = -1};
}

/* Returns the extra time for the first answer. The other host may be as far away as the master. */
static uint64_t high_rtt_ns(const struct net_run *r)
{
	uint32_t us = r->ops->master_trip_us(r->arg);

	return us < CC_PACED_RTT_US ? 0 : UINT64_C(2000) * us;
}

/* Starts to open a link, or the connections of a probe or measurement. */
static void start(struct out_link *l, const struct wm_endpoint *to)
{
	struct net_run *r = l->run;

	l->num = ++r->net->next_link;
	l->to = *to;
	l->n_streams = l->asked;
	l->since = cc_now_ns();
	l->deadline = l->since + BASE_MS(net_link_bound_ms(l, CC_BOUND_NEW_LINK)) + high_rtt_ns(r);
	DL_APPEND(r->out_links, l);
	if (l->segments == CC_TCP_SIZES) {
		link_fail_narrow(l);
		return;
	}
	if (to->at_master) {
		struct cc_addr a = r->reached;

		a.port = to->port;
		add_candidate(l, a);
	}
	net_addresses_sort(r->net, l->to.addrs, l->to.n_addrs);
	for (uint32_t i = 0; i < to->n_addrs && i < WM_ADDRS_MAX; i++)
		add_candidate(l, l->to.addrs[i]);
	net_link_advance(l);
}

static struct out_link *new_link(struct net_run *r, enum wlk_service service, uint32_t segments)
{
	struct out_link *l = calloc(1, sizeof *l);

	if (!l)
		rep_out_of_memory("links");
	l->run = r;
	l->service = service;
	l->segments = segments;
	l->asked = 1;
	return l;
}

void net_link_begin(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams)
{
	struct out_link *l = new_link(r, WLK_P2P, net_narrow_size(r->narrow, &to->agent));

	if (n_streams > 1)
		l->asked = n_streams < WM_POOL_MAX ? n_streams : WM_POOL_MAX;
	start(l, to);
}

void net_link_open(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams, bool probe)
{
	net_link_close(r, &to->agent);
	if (probe)
		net_probe_for_link(r, to, n_streams);
	else
		net_link_begin(r, to, n_streams);
}

void net_link_probe(struct net_run *r, struct probe *p, const struct wm_endpoint *to,
	enum wlk_service service, uint32_t segments)
{
	struct out_link *l = new_link(r, service, segments);

	l->probe = p;
	start(l, to);
}

void net_link_for_pair(
	struct net_run *r, struct pair *p, const struct wm_endpoint *to, uint32_t n_streams)
{
	struct out_link *l = new_link(r, WLK_BENCHMARK, net_narrow_size(r->narrow, &to->agent));

	l->pair = p;
	l->asked = n_streams;
	start(l, to);
}

/* Returns a stream that was not opened before the deadline, or NULL. */
static struct connect_try *overdue(struct out_link *l, uint64_t now)
{
	for (uint32_t i = 0; i < l->next_stream; i++)
		if (l->streams[i].state != TRY_GOOD && now >= l->deadline)
			return &l->streams[i];
	return NULL;
}

void net_link_go_on(struct out_link *l, uint64_t now)
{
	if (l->streams) {
		struct connect_try *d;

		for (uint32_t i = 0; i < l->next_stream; i++)
			net_try_tick(&l->streams[i], now);
		d = overdue(l, now);
		if (d)
			link_fail(l, d);
		return;
	}
	if (now >= l->deadline) {
		link_fail(l, NULL);
		return;
	}
	for (uint32_t i = 0; i < l->started; i++)
		net_try_tick(&l->tries[i], now);
	for (uint32_t i = 0; i < l->started; i++)
		if (l->n_tries > 1 && l->tries[i].state == TRY_HELLO &&
			now >= l->tries[i].hello_deadline)
			net_try_fail(&l->tries[i], "%s", net_try_lacks(&l->tries[i]));
	net_link_advance(l);
}
