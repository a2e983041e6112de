/* SPDX-License-Identifier: MIT
 *
 * Outbound links, and the connections of probes (probe.c). Stream 0 finds an address that leads to
 * the wanted agent: the candidates are connected side by side, a little apart, but only one at a
 * time says hello, so that the other agent never sees two links. The other streams then go to the
 * address that worked. A way may lose the packet that connects, and the kernel sends it again only
 * after a second: where nothing comes back, more than one connection is tried.
 *
 * A link that was stuck (see base/flow.h) had packets that are too large for the way: the next one
 * to that agent has smaller segments. When the smallest are too large, too, none is tried until a
 * probe gets through: the pair fails like one that cannot connect.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/handshake.h"
#include "pcclagentd/net/net_internal.h"

#define CANDIDATES (WM_ADDRS_MAX + 1)
#define AT_ONCE    32u          /* streams being opened at a time, each for two round trips */
#define STAGGER_NS BASE_MS(200) /* between two candidates; less if there are many */
#define LOST_NS    BASE_MS(150) /* and two round trips without an acknowledgement: it was lost */
#define SYN_MAX_MS 600000u
#define SYNS       5u           /* connections tried at a time for one stream, */
#define SYN_NS     BASE_MS(200) /* so far apart */
#define ERROR_SIZE 224
/* Operands that wait to be sent: those of the operations in flight, and of some that have failed
 * meanwhile. */
#define SMALL_MAX_OUT ((size_t)256 << 20)

#define LONG_WAY_STREAM_US   12000u /* of a round trip, for each stream */
#define LONG_WAY_STREAMS_MIN 4u
#define LONG_WAY_STREAMS_MAX 8u

enum dial_state {
	DIAL_IDLE = 0,
	DIAL_CONNECTING,
	DIAL_WAITING, /* connected, its hello is not yet due */
	DIAL_HELLO,   /* hello sent */
	DIAL_GOOD,
	DIAL_FAILED,
};

/* One of the connections that are tried for a stream. */
struct syn {
	struct dial *dial;
	struct cc_conn *conn;
};

struct dial {
	struct out_link *link;
	struct cc_addr addr;
	uint16_t stream;
	enum dial_state state;
	struct syn syns[SYNS]; /* CONNECTING */
	uint32_t n_syns;
	uint64_t next_syn;
	int fd; /* WAITING, HELLO, GOOD; else -1 */
	struct cc_watch *watch;
	uint64_t said_ns, hello_deadline;
	struct cc_key proof; /* of its hello */
	uint32_t have;
	uint8_t ack[WLK_ACK_SIZE];
	bool limit; /* FAILED: see wm_failure */
	char error[ERROR_SIZE];
};

struct out_link {
	struct net_run *run;
	uint32_t num;
	struct wm_endpoint to;
	struct cc_id nonce;  /* of the answer to stream 0 */
	uint32_t asked;      /* for so many streams */
	uint32_t n_streams;  /* how many there are */
	bool shifts;         /* they take turns */
	struct probe *probe; /* NULL: a link */
	bool bulk;           /* which the other agent knows how to go on with */
	enum wlk_service service;
	bool up;
	bool silent; /* the core was told */
	struct link_health health;
	struct cc_addr here; /* our end, when it is up */
	uint64_t since, deadline, next_try;
	uint64_t trip_ns; /* the longest round trip that was measured; 0: nothing has come back */
	uint32_t n_tries, started;
	struct dial tries[CANDIDATES]; /* stream 0 to each candidate */
	/* n_streams + 1 once a candidate was good: [0] is that one, the last one is for small
	 * operations. */
	struct dial *streams;
	uint32_t next_stream;
	struct cc_conn *small; /* that one, when it is up */
	int small_fd;          /* its own */
	struct flow small_flow;
	uint32_t segments; /* the place of their size in cc_tcp_sizes */
	bool jammed;       /* and does not take what it should */
	struct out_link *prev, *next;
};

static void advance(struct out_link *l);
static void link_broken(struct out_link *l, const struct eng_event *how);

static uint32_t bound_ms(const struct out_link *l, enum cc_bound b)
{
	return l->run->bounds.ms[b];
}

/* Half of the link's time, so that another address can still have its turn. */
static uint64_t hello_ns(const struct out_link *l)
{
	return BASE_MS(bound_ms(l, CC_BOUND_NEW_LINK)) / 2;
}

/* How much longer each step of a link may take on a slow way. */
static uint64_t slow_ns(const struct out_link *l)
{
	return l->trip_ns < CC_SLOW_WAY_US * UINT64_C(1000) ? 0 : CC_SLOW_WAY_TRIPS * l->trip_ns;
}

/* All of the link's time, before the master gives the round up (ccm_ways_ms: the two ways to the
 * master are half a second shorter each). */
static uint64_t most_ns(const struct out_link *l)
{
	uint64_t near = BASE_MS(2 * CC_WAY_MS), far = l->trip_ns > near ? l->trip_ns - near : 0;

	return BASE_MS(bound_ms(l, CC_BOUND_ROUND) - CC_ROUND_SELF_MS / 2) + CC_ROUND_TRIPS * far;
}

/* The other end has answered on fd: it is there, and the rest has the time of a new link. */
static void goes_on(struct out_link *l, int fd)
{
	uint64_t trip_ns = cc_tcp_round_trip_us(fd) * UINT64_C(1000), until;

	if (l->trip_ns < trip_ns)
		l->trip_ns = trip_ns;
	until = cc_now_ns() + BASE_MS(bound_ms(l, CC_BOUND_NEW_LINK)) + slow_ns(l);
	if (until > l->since + most_ns(l))
		until = l->since + most_ns(l);
	if (l->deadline < until)
		l->deadline = until;
}

/* ---- one stream being opened ---- */

static void dial_stop(struct dial *d)
{
	for (uint32_t i = 0; i < d->n_syns; i++) {
		if (d->syns[i].conn)
			cc_conn_close(d->syns[i].conn);
		d->syns[i].conn = NULL;
	}
	cc_watch_free(d->watch);
	d->watch = NULL;
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

__attribute__((format(printf, 2, 3))) static void dial_fail(struct dial *d, const char *fmt, ...)
{
	va_list ap;

	dial_stop(d);
	d->state = DIAL_FAILED;
	va_start(ap, fmt);
	vsnprintf(d->error, sizeof d->error, fmt, ap);
	va_end(ap);
}

/* By what errno says, of this process perhaps. */
static void dial_fail_here(struct dial *d)
{
	char limit[CC_LIMIT_TEXT];

	d->limit = cc_limit_is(errno);
	dial_fail(d, "%s", cc_limit_text(errno, limit, sizeof limit));
}

static void take_ack(struct dial *d)
{
	struct out_link *l = d->link;
	char text[ERROR_SIZE];
	struct wlk_ack a;
	enum hs_answer answer = hs_take_answer(
		d->ack, l->probe ? NULL : &l->to.key, &d->proof, &a, text, sizeof text);

	if (answer == HS_WELCOME) {
		d->state = DIAL_GOOD;
		if (d->stream == 0)
			l->nonce = a.nonce;
		l->bulk = a.features & WLK_BULK;
		goes_on(l, d->fd);
	} else {
		d->limit = answer == HS_LIMIT;
		dial_fail(d, "%s", text);
	}
	cc_watch_free(d->watch);
	d->watch = NULL;
}

static void on_ack(void *arg)
{
	struct dial *d = arg;
	ssize_t n = recv(d->fd, d->ack + d->have, sizeof d->ack - d->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		dial_fail_here(d);
	else if (n == 0)
		dial_fail(d, "closed without an answer");
	else if ((d->have += (uint32_t)n) == sizeof d->ack)
		take_ack(d);
	else
		return;
	advance(d->link);
}

/*
 * A long way takes several streams, whatever was asked for. What one can have under way is bounded
 * by the kernel's send buffer: of the 4 MiB that Linux allows by default 2.8 are filled at any
 * time, because room is announced only when a third is free. After a loss all that follows stays
 * there for another round trip. So there are enough for two round trips of 1 Gbit/s; the real rate
 * is not known here, and a few more than it needs do no harm. But many get into each other's way:
 * together they overrun the queues of routers.
 *
 * bbr has a connection stand still for 200 ms or more when its shortest round trip is ten seconds
 * old (PROBE_RTT in Linux's tcp_bbr.c), most of a link's at the same time. One that begins
 * anew with one as old takes the next for it instead. So there are three times as many, of which a
 * third works for five seconds, or until the operation then under way is over, and rests for ten.
 */
static void choose_streams(struct out_link *l, int fd)
{
	uint32_t round_trip_us = cc_tcp_round_trip_us(fd), n = round_trip_us / LONG_WAY_STREAM_US;

	l->n_streams = l->asked;
	l->shifts = false;
	if (round_trip_us < CC_LONG_WAY_US)
		return;
	if (n < LONG_WAY_STREAMS_MIN)
		n = LONG_WAY_STREAMS_MIN;
	if (n > LONG_WAY_STREAMS_MAX)
		n = LONG_WAY_STREAMS_MAX;
	if (l->n_streams < n)
		l->n_streams = n;
	l->shifts = cc_tcp_has_bbr(fd) && l->n_streams * ENG_SHIFTS <= WM_POOL_MAX;
	if (l->shifts)
		l->n_streams *= ENG_SHIFTS;
}

/* See wlk_hello. */
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

static void say_hello(struct dial *d)
{
	struct out_link *l = d->link;
	struct wlk_hello h = {.service = (uint16_t)l->service,
		.features = l->probe && l->service == WLK_P2P ? WLK_BULK : 0,
		.run = l->run->run_id,
		.nonce = hello_nonce(l, d->stream),
		.number = l->to.key_no,
		.from = l->run->net->base->id,
		.to = l->to.agent,
		.stream = d->stream,
		.n_streams = (uint16_t)l->n_streams};

	d->state = DIAL_HELLO;
	d->said_ns = cc_now_ns();
	d->hello_deadline = d->said_ns + hello_ns(l);
	if (hs_say_hello(d->fd, &h, &l->to.key, &d->proof) < 0) {
		dial_fail_here(d);
		return;
	}
	d->watch = cc_watch_new(l->run->net->base->loop, d->fd, false, on_ack, d);
	if (!d->watch)
		dial_fail_here(d);
}

static void on_connected(void *arg)
{
	struct syn *s = arg;
	struct dial *d = s->dial;
	int fd;

	cc_conn_stop_reading(s->conn);
	fd = cc_conn_detach(s->conn);
	s->conn = NULL;
	dial_stop(d);
	d->fd = fd;
	d->state = DIAL_WAITING;
	goes_on(d->link, fd);
	advance(d->link);
}

static long on_data(void *arg, const uint8_t *buf, size_t len)
{
	(void)arg;
	(void)buf;
	(void)len;
	return CC_ERR_PROTO; /* reading is off */
}

static void on_closed(void *arg, int err, const char *text)
{
	struct syn *s = arg;

	s->conn = NULL;
	s->dial->limit = err == CC_ERR_NOMEM;
	dial_fail(s->dial, "%s", text);
	advance(s->dial->link);
}

static const struct cc_conn_ops dial_ops = {
	.on_connected = on_connected,
	.on_data = on_data,
	.on_closed = on_closed,
};

/* The link's deadline is the bound. */
static void dial_syn(struct dial *d)
{
	struct syn *s = &d->syns[d->n_syns];

	s->dial = d;
	s->conn = cc_conn_connect(d->link->run->net->base->loop, &d->addr, SYN_MAX_MS,
		cc_tcp_sizes[d->link->segments], &dial_ops, s);
	if (s->conn)
		d->n_syns++;
	else if (d->n_syns == 0)
		dial_fail_here(d);
	d->next_syn = cc_now_ns() + SYN_NS + 2 * d->link->trip_ns;
}

static void dial_start(struct dial *d)
{
	d->state = DIAL_CONNECTING;
	d->limit = false;
	dial_syn(d);
}

static void dial_tick(struct dial *d, uint64_t now)
{
	int n = 0;

	if (d->state == DIAL_CONNECTING && d->n_syns < SYNS && now >= d->next_syn)
		dial_syn(d);
	if (d->state != DIAL_HELLO || ioctl(d->fd, SIOCOUTQ, &n) < 0 || n == 0)
		return;
	/* The other end was there, and is not heard: packets get lost, and are sent again. The
	 * answer takes its time from when the hello has been delivered. */
	d->hello_deadline = now + hello_ns(d->link) + slow_ns(d->link);
	if (now - d->said_ns >= LOST_NS + 2 * d->link->trip_ns)
		d->link->deadline = d->link->since + most_ns(d->link);
}

/* ---- the link ---- */

/* Not ours any more, but an operation still knows its number. */
struct dead_link {
	uint32_t num;
	struct dead_link *next;
};

void net_links_sweep(struct net_run *r)
{
	struct dead_link *l, *tmp;

	LL_FOREACH_SAFE(r->dead_links, l, tmp)
	{
		if (r->ops->uses_link(r->arg, l->num))
			continue;
		LL_DELETE(r->dead_links, l);
		eng_drop_link(r->eng, l->num);
		free(l);
	}
}

static void drop_when_unused(struct net_run *r, uint32_t num)
{
	struct dead_link *l = malloc(sizeof *l);

	if (!l)
		rep_out_of_memory("links");
	*l = (struct dead_link){.num = num};
	LL_PREPEND(r->dead_links, l);
	net_links_sweep(r);
}

static void out_link_free(struct out_link *l)
{
	for (uint32_t i = 0; i < l->n_tries; i++)
		dial_stop(&l->tries[i]);
	for (uint32_t i = 0; l->streams && i <= l->n_streams; i++)
		dial_stop(&l->streams[i]);
	if (l->small)
		cc_conn_close(l->small);
	if (l->up)
		drop_when_unused(l->run, l->num);
	DL_DELETE(l->run->out_links, l);
	free(l->streams);
	free(l);
}

/* The step that was not done in time, as far as it is known. */
static const char *dial_lacks(const struct dial *d)
{
	int n = 0;

	if (d->state != DIAL_HELLO && d->stream != 0)
		return "packets get lost: others connected, this one did not in time";
	if (d->state != DIAL_HELLO)
		return "no connection in time";
	if (ioctl(d->fd, SIOCOUTQ, &n) == 0 && n > 0)
		return "packets get lost: connected, but nothing arrives in time";
	return "no answer in time, though it has connected";
}

/* As many as there is room for. */
static void list_errors(const struct out_link *l, char *text, size_t size)
{
	char addr[CC_ADDR_STR_SIZE];
	size_t len = 0;

	for (uint32_t i = 0; i < l->n_tries; i++) {
		const struct dial *d = &l->tries[i];
		int n = snprintf(text + len, size - len, "%s%s: %s", i ? "; " : "",
			cc_addr_str(&d->addr, addr),
			d->state == DIAL_FAILED ? d->error : dial_lacks(d));

		if (n < 0 || (size_t)n >= size - len) {
			text[len] = '\0';
			return;
		}
		len += (size_t)n;
	}
}

/* Tells the core. The master knows the hosts' names and what to do. */
static void link_fail_text(struct out_link *l, uint32_t code, const char *text)
{
	struct net_run *r = l->run;
	struct agt_event ev = {.type = AGT_EV_LINK_FAILED,
		.run = r->id,
		.peer = l->to.agent,
		.code = code,
		.text = text};
	struct probe *p = l->probe;

	out_link_free(l);
	if (p)
		net_probe_failed(p, code, text);
	else
		ev_post(r->net->base, &ev);
}

static void link_fail_narrow(struct out_link *l)
{
	char text[WM_TEXT_MAX];

	net_probe_narrow_text(text, sizeof text);
	link_fail_text(l, WIRE_RANK_CONNECTION_FAILED, text);
}

/* The one that failed because an agent lacks what it takes, or NULL. */
static const struct dial *find_short(const struct out_link *l, const struct dial *culprit)
{
	if (culprit)
		return culprit->state == DIAL_FAILED && culprit->limit ? culprit : NULL;
	for (uint32_t i = 0; i < l->n_tries; i++)
		if (l->tries[i].state == DIAL_FAILED && l->tries[i].limit)
			return &l->tries[i];
	return NULL;
}

/* Says what each address said. */
static void link_fail(struct out_link *l, const struct dial *culprit)
{
	const struct dial *lacks = find_short(l, culprit);
	char text[WM_TEXT_MAX], addr[CC_ADDR_STR_SIZE];

	if (culprit)
		snprintf(text, sizeof text, "stream %u to %s: %s", culprit->stream,
			cc_addr_str(&culprit->addr, addr),
			culprit->state == DIAL_FAILED ? culprit->error : dial_lacks(culprit));
	else if (lacks)
		snprintf(
			text, sizeof text, "%s: %s", cc_addr_str(&lacks->addr, addr), lacks->error);
	else if (l->n_tries == 0)
		snprintf(text, sizeof text, "it has no address");
	else
		list_errors(l, text, sizeof text);
	/* It may be this host that is elsewhere. */
	net_addresses_refresh(l->run->net);
	link_fail_text(l, lacks ? WIRE_OUT_OF_MEMORY : WIRE_RANK_CONNECTION_FAILED, text);
}

static void on_small_closed(void *arg, int err, const char *text)
{
	struct out_link *l = arg;
	struct eng_event how = {.link = l->num};

	(void)err;
	l->small = NULL;
	snprintf(how.text, sizeof how.text, "%s", text);
	link_broken(l, &how);
}

static int add_small(struct out_link *l, int fd)
{
	static const struct cc_conn_ops ops = {.on_data = on_data, .on_closed = on_small_closed};

	l->small = cc_conn_new(l->run->net->base->loop, fd, &ops, l);
	if (!l->small)
		return CC_ERR_NOMEM;
	l->small_fd = fd;
	cc_conn_set_limits(l->small, 0, SMALL_MAX_OUT);
	cc_conn_allow_silence(l->small, bound_ms(l, CC_BOUND_STREAM));
	return 0;
}

static int hand_over(struct out_link *l, uint32_t stream, int fd)
{
	if (stream == l->n_streams)
		return add_small(l, fd);
	return eng_add_tx_stream(
		l->run->eng, l->num, fd, l->shifts ? stream % ENG_SHIFTS : ENG_NO_SHIFT);
}

/* All streams are there: the engine gets them, but the last one. */
static void link_finish(struct out_link *l)
{
	struct net_run *r = l->run;
	struct agt_event ev = {.type = AGT_EV_LINK_UP, .run = r->id, .peer = l->to.agent};

	l->up = true;
	(void)cc_local_addr(l->streams[0].fd, &l->here);
	for (uint32_t i = 0; i <= l->n_streams; i++) {
		struct dial *d = &l->streams[i];
		int fd = d->fd;

		d->fd = -1;
		if (hand_over(l, i, fd) < 0) {
			dial_fail(d, "the agent's engine took no more streams");
			link_fail(l, d);
			return;
		}
	}
	free(l->streams);
	l->streams = NULL;
	ev_post(r->net->base, &ev);
}

static void probe_finish(struct out_link *l, struct dial *good)
{
	enum wlk_service service = l->service;
	struct probe *p = l->probe;
	bool bulk = l->bulk;
	int fd = good->fd;

	good->fd = -1;
	out_link_free(l);
	net_probe_reached(p, service, fd, bulk);
}

/* A candidate was good: the others are not needed. */
static void choose(struct out_link *l, struct dial *good)
{
	int fd = good->fd;

	good->fd = -1;
	for (uint32_t i = 0; i < l->n_tries; i++)
		dial_stop(&l->tries[i]);
	l->streams = calloc(l->n_streams + 1, sizeof *l->streams);
	if (!l->streams)
		rep_out_of_memory("links");
	for (uint32_t i = 0; i <= l->n_streams; i++)
		l->streams[i] = (struct dial){
			.link = l, .addr = good->addr, .stream = (uint16_t)i, .fd = -1};
	l->streams[l->n_streams].stream = WLK_STREAM_SMALL;
	l->streams[0].state = DIAL_GOOD;
	l->streams[0].fd = fd;
	l->next_stream = 1;
}

static void advance_streams(struct out_link *l)
{
	uint32_t active = 0, good = 0;

	for (uint32_t i = 0; i < l->next_stream; i++) {
		struct dial *d = &l->streams[i];

		if (d->state == DIAL_WAITING)
			say_hello(d);
		if (d->state == DIAL_FAILED) {
			link_fail(l, d);
			return;
		}
		good += d->state == DIAL_GOOD;
		active += d->state == DIAL_CONNECTING || d->state == DIAL_HELLO;
	}
	for (; l->next_stream <= l->n_streams && active < AT_ONCE; active++) {
		struct dial *d = &l->streams[l->next_stream++];

		dial_start(d);
		if (d->state == DIAL_FAILED) {
			link_fail(l, d);
			return;
		}
	}
	if (good == l->n_streams + 1)
		link_finish(l);
}

static bool any_in(const struct out_link *l, enum dial_state state)
{
	for (uint32_t i = 0; i < l->started; i++)
		if (l->tries[i].state == state)
			return true;
	return false;
}

static struct dial *first_in(struct out_link *l, enum dial_state state)
{
	for (uint32_t i = 0; i < l->started; i++)
		if (l->tries[i].state == state)
			return &l->tries[i];
	return NULL;
}

/* All have begun when half of the link's time is over. */
static uint64_t stagger_ns(const struct out_link *l)
{
	uint64_t each = BASE_MS(bound_ms(l, CC_BOUND_NEW_LINK)) / 2 / l->n_tries;

	return each < STAGGER_NS ? each : STAGGER_NS;
}

/* Starts candidates when it is their turn, and lets one of the connected say hello. */
static void advance_tries(struct out_link *l)
{
	uint64_t now = cc_now_ns();
	struct dial *d;

	for (;;) {
		d = first_in(l, DIAL_WAITING);
		if (d && !any_in(l, DIAL_HELLO)) {
			if (l->probe)
				d->stream = WLK_STREAM_PROBE;
			else
				choose_streams(l, d->fd);
			say_hello(d);
			continue;
		}
		if (l->started < l->n_tries &&
			(now >= l->next_try ||
				(!d && !any_in(l, DIAL_CONNECTING) && !any_in(l, DIAL_HELLO)))) {
			dial_start(&l->tries[l->started++]);
			l->next_try = now + stagger_ns(l);
			continue;
		}
		break;
	}
	if (!d && l->started == l->n_tries && !any_in(l, DIAL_CONNECTING) && !any_in(l, DIAL_HELLO))
		link_fail(l, NULL);
}

/* Takes the link as far as it goes without waiting. It may be gone afterwards. */
static void advance(struct out_link *l)
{
	if (l->up)
		return;
	if (!l->streams) {
		struct dial *good = first_in(l, DIAL_GOOD);

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

/* ---- for the others ---- */

static void add_candidate(struct out_link *l, struct cc_addr a)
{
	if (a.port == 0)
		a.port = l->to.port;
	for (uint32_t i = 0; i < l->n_tries; i++)
		if (cc_addr_eq(&l->tries[i].addr, &a))
			return;
	if (a.family == 0 || l->n_tries == CANDIDATES)
		return;
	l->tries[l->n_tries++] = (struct dial){.link = l, .addr = a, .fd = -1};
}

static struct out_link *find(const struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l;

	DL_FOREACH (r->out_links, l) {
		if (!l->probe && cc_id_eq(&l->to.agent, peer))
			return l;
	}
	return NULL;
}

/* Whether the next one has smaller segments. */
static bool was_stuck(const struct out_link *l)
{
	uint32_t known = net_narrow_size(l->run->narrow, &l->to.agent), next = l->segments + 1;

	if (known > next)
		next = known;
	if (net_narrow_learn(&l->run->narrow, &l->to, next, cc_now_ns()) < 0)
		rep_out_of_memory("links");
	if (next < CC_TCP_SIZES)
		cc_log(CC_LOG_WARNING,
			"the link to host %s delivers nothing: %s The next one has segments of %u "
			"bytes at most",
			l->to.name, FLOW_STUCK_TEXT, cc_tcp_sizes[next]);
	else
		cc_log(CC_LOG_WARNING,
			"the link to host %s delivers nothing, not even segments of %u bytes: %s",
			l->to.name, cc_tcp_sizes[CC_TCP_SIZES - 1], FLOW_STUCK_TEXT);
	return next < CC_TCP_SIZES;
}

static void link_broken(struct out_link *l, const struct eng_event *how)
{
	struct agt_event ev = {.type = AGT_EV_LINK_DOWN,
		.run = l->run->id,
		.peer = l->to.agent,
		.silent = how->silent,
		.text = how->text};
	struct base *b = l->run->net->base;

	ev.smaller = how->stuck && was_stuck(l);
	out_link_free(l);
	ev_post(b, &ev);
}

/* How much longer the first answer may take, if the other host is as far away as the master. */
static uint64_t far_ns(const struct net_run *r)
{
	uint32_t us = r->ops->master_trip_us(r->arg);

	return us < CC_SLOW_WAY_US ? 0 : UINT64_C(2000) * us;
}

/* Of a probe, or of a link. */
static void start(struct out_link *l, const struct wm_endpoint *to)
{
	struct net_run *r = l->run;

	l->num = ++r->net->next_link;
	l->to = *to;
	l->n_streams = l->asked;
	l->since = cc_now_ns();
	l->deadline = l->since + BASE_MS(bound_ms(l, CC_BOUND_NEW_LINK)) + far_ns(r);
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
	advance(l);
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

void net_link_open(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams)
{
	struct out_link *l = find(r, &to->agent);

	if (l)
		out_link_free(l);
	l = new_link(r, WLK_P2P, net_narrow_size(r->narrow, &to->agent));
	if (n_streams > 1)
		l->asked = n_streams < WM_POOL_MAX ? n_streams : WM_POOL_MAX;
	start(l, to);
}

void net_link_probe(struct net_run *r, struct probe *p, const struct wm_endpoint *to,
	enum wlk_service service, uint32_t segments)
{
	struct out_link *l = new_link(r, service, segments);

	l->probe = p;
	start(l, to);
}

void net_link_close(struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l = find(r, peer);

	if (l)
		out_link_free(l);
}

uint32_t net_link_number(const struct net_run *r, const struct cc_id *peer)
{
	const struct out_link *l = find(r, peer);

	return l && l->up ? l->num : 0;
}

/* ---- what the engine finds out ---- */

static void heard_out(struct out_link *l, const struct eng_event *e)
{
	bool silent = e->heard_ms >= FLOW_QUIET_MS;
	struct agt_event ev = {.type = AGT_EV_LINK_SILENT,
		.run = l->run->id,
		.peer = l->to.agent,
		.silent = silent};

	if (l->silent == silent)
		return;
	l->silent = silent;
	ev_post(l->run->net->base, &ev);
}

/* An established one; NULL: there is none. */
static struct out_link *find_up(const struct net_run *r, uint32_t num)
{
	struct out_link *l;

	DL_SEARCH_SCALAR(r->out_links, l, num, num);
	return l && l->up ? l : NULL;
}

void net_link_heard(struct net_run *r, const struct eng_event *e)
{
	struct net_in_link *in = net_in_link_find(r, e->link);
	struct out_link *out = find_up(r, e->link);
	struct link_health *h = in ? net_in_link_health(in) : out ? &out->health : NULL;
	uint64_t now = cc_now_ns();

	if (h) {
		h->heard_ns = now > BASE_MS(e->heard_ms) ? now - BASE_MS(e->heard_ms) : 1;
		h->blocked = e->blocked;
	}
	if (out)
		heard_out(out, e);
}

void net_link_broken(struct net_run *r, const struct eng_event *e)
{
	struct net_in_link *in = net_in_link_find(r, e->link);
	struct out_link *l;

	DL_SEARCH_SCALAR(r->out_links, l, num, e->link);
	if (l)
		link_broken(l, e);
	else if (in)
		net_in_link_broken(in, e);
}

static struct out_link *find_neighbour(const struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l = find(r, peer);

	return l && l->up ? l : NULL;
}

struct net_neighbour net_neighbour(const struct net_run *r, const struct cc_id *peer)
{
	struct net_in_link *in = net_in_link_of(r, peer);
	const struct out_link *out = find_neighbour(r, peer);
	struct net_neighbour ret = {.host = out ? out->to.name : ""};

	if (in)
		ret.heard_ns = net_in_link_health(in)->heard_ns;
	if (out && out->health.heard_ns > ret.heard_ns)
		ret.heard_ns = out->health.heard_ns;
	ret.blocked = out && out->health.blocked;
	return ret;
}

static void probe_health(struct net_run *r, uint32_t num, struct link_health *h, uint64_t now)
{
	if (h->probed_ns == now)
		return;
	h->probed_ns = now;
	eng_probe(r->eng, num);
}

void net_neighbour_probe(struct net_run *r, const struct cc_id *peer, uint64_t now)
{
	struct net_in_link *in = net_in_link_of(r, peer);
	struct out_link *out = find_neighbour(r, peer);

	if (in)
		probe_health(r, net_in_link_num(in), net_in_link_health(in), now);
	if (out)
		probe_health(r, out->num, &out->health, now);
}

uint32_t net_segments(const struct net_run *r, const struct cc_id *agent)
{
	return net_narrow_size(r->narrow, agent);
}

void net_link_send(struct net_run *r, uint32_t num, const uint8_t hdr[WLK_DATA_SIZE],
	const uint8_t *payload, size_t len,
	void (*done)(const void *payload, size_t len, void *arg), void *arg)
{
	struct out_link *l;

	DL_SEARCH_SCALAR(r->out_links, l, num, num);
	if (l && l->small && !l->jammed)
		l->jammed = cc_conn_send(l->small, hdr, WLK_DATA_SIZE) < 0;
	if (l && l->small && !l->jammed)
		l->jammed = cc_conn_send_ref(l->small, payload, len, done, arg) < 0;
	else
		done(payload, len, arg);
}

void net_links_leave(struct net_run *r, struct net_lost_address *last)
{
	struct eng_event how = {.link = 0};
	struct out_link *l, *tmp;

	DL_FOREACH_SAFE (r->out_links, l, tmp) {
		if (!l->up || !net_address_is_lost(last, &l->here))
			continue;
		how.link = l->num;
		snprintf(how.text, sizeof how.text, "%s", last->text);
		link_broken(l, &how);
	}
}

/* The stream that time ran out for. */
static struct dial *overdue(struct out_link *l, uint64_t now)
{
	for (uint32_t i = 0; i < l->next_stream; i++)
		if (l->streams[i].state != DIAL_GOOD && now >= l->deadline)
			return &l->streams[i];
	return NULL;
}

static void tick_one(struct out_link *l, uint64_t now)
{
	if (l->streams) {
		struct dial *d;

		for (uint32_t i = 0; i < l->next_stream; i++)
			dial_tick(&l->streams[i], now);
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
		dial_tick(&l->tries[i], now);
	for (uint32_t i = 0; i < l->started; i++)
		if (l->n_tries > 1 && l->tries[i].state == DIAL_HELLO &&
			now >= l->tries[i].hello_deadline)
			dial_fail(&l->tries[i], "%s", dial_lacks(&l->tries[i]));
	advance(l);
}

static void look_at_small(struct out_link *l)
{
	struct eng_event how = {.link = l->num};

	if (l->jammed)
		snprintf(how.text, sizeof how.text, "it takes no more operands");
	else if (l->small &&
		 flow_is_stuck(&l->small_flow, l->small_fd, bound_ms(l, CC_BOUND_STUCK)))
		snprintf(how.text, sizeof how.text, "%s", FLOW_STUCK_TEXT);
	else
		return;
	how.stuck = !l->jammed;
	link_broken(l, &how);
}

void net_links_tick(struct net_run *r, uint64_t now)
{
	struct out_link *l, *tmp;

	DL_FOREACH_SAFE (r->out_links, l, tmp) {
		if (!l->up)
			tick_one(l, now);
		else
			look_at_small(l);
	}
}

uint32_t net_link_count(const struct net_run *r)
{
	const struct out_link *l;
	int n;

	DL_COUNT(r->out_links, l, n);
	return (uint32_t)n;
}

uint32_t net_link_streams(const struct net_run *r)
{
	const struct out_link *l;
	uint32_t n = 0;

	DL_FOREACH (r->out_links, l)
		n += l->up ? l->n_streams + 1 : 0;
	return n;
}

void net_links_free(struct net_run *r)
{
	struct out_link *l, *tmp;

	DL_FOREACH_SAFE (r->out_links, l, tmp) {
		out_link_free(l);
	}
}
