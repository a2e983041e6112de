/* SPDX-License-Identifier: MIT
 *
 * The three TCP ports, and what comes in on them until it has said a good hello. Anyone can connect
 * here: few bytes, little time and few connections are granted before it is proven that the master
 * has sent who says it. A hello that proves nothing has no effect. When there are too many without
 * a hello the oldest one goes: members say theirs at once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "pcclagentd/io.h"
#include "pcclagentd/packet.h"
#include "pcclagentd/port.h"
#include "pcclagentd/way.h"

#define HALF_OPEN_MAX        256u
#define HALF_OPEN_PER_SOURCE 64u
#define HELLO_NS             MS(5000)
#define BULK_TRIPS           UINT64_C(8)
#define LINGER_NS            MS(1000) /* for the other side to read why it was refused */
#define LINGER_BYTES         WLK_BULK_SIZE
#define IN_LINKS_MAX         2048u
#define CALLERS_MAX          4096u /* as many as may be told apart from echoes */

/* A connection without its hello, or one that was refused and lingers. */
struct half {
	struct port *port;
	int fd;
	struct cc_watch *watch;
	struct cc_addr from;
	uint64_t deadline;
	bool lingering, bulk; /* see answer_probe */
	uint32_t have, discarded;
	uint8_t buf[WLK_HELLO_SIZE];
	struct half *prev, *next;
};

struct ports {
	struct port v[3];
	struct half *halves;
	uint32_t n_halves;
};

/* An agent that has opened links here, and the number of its last hello: an older one is an echo,
 * sent again by somebody who has seen it. */
struct caller {
	struct cc_id agent;
	uint64_t last;
	UT_hash_handle hh;
};

/* ---- inbound links ---- */

void in_link_free(struct run *r, struct in_link *l)
{
	DL_DELETE(r->in_links, l);
	r->n_in_links--;
	small_in_free(l->small);
	eng_drop_link(r->eng, l->num);
	free(l);
}

void in_link_down(struct run *r, struct in_link *l, struct agt_event ev)
{
	ev.type = AGT_EV_LINK_DOWN;
	ev.run = r->id;
	ev.peer = l->peer;
	ev.inbound = true;
	in_link_free(r, l);
	agentd_feed(r->d, &ev);
}

void in_link_broken(struct run *r, struct in_link *l, const char *text)
{
	in_link_down(r, l, (struct agt_event){.text = text});
}

uint32_t in_link_streams(const struct run *r)
{
	const struct in_link *l;
	uint32_t n = 0;

	DL_FOREACH (r->in_links, l)
		n += (uint32_t)__builtin_popcountll(l->have) + (l->small != NULL);
	return n;
}

static struct in_link *find_in_link(const struct run *r, const struct cc_id *peer)
{
	struct in_link *l;

	DL_FOREACH (r->in_links, l) {
		if (cc_id_eq(&l->peer, peer))
			return l;
	}
	return NULL;
}

/* The run of a hello that proves that its master has sent who says it. */
static struct run *find_run(struct agentd *d, const struct wlk_hello *h,
	const uint8_t buf[WLK_HELLO_SIZE], struct cc_key *ret_way)
{
	struct run *r, *tmp;

	HASH_ITER (hh, d->runs, r, tmp) {
		if (r->ready && cc_id_eq(&r->run_id, &h->run) && run_proves(r, h, buf, ret_way))
			return r;
	}
	return NULL;
}

static uint64_t le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* Has a hello as new as this one come already? If not, it has now. */
static bool is_echo(struct run *r, const struct wlk_hello *h)
{
	uint64_t number = le64(h->nonce.b);
	struct caller *c;

	HASH_FIND(hh, r->callers, &h->from, sizeof h->from, c);
	if (c && number <= c->last)
		return true;
	if (!c && HASH_COUNT(r->callers) >= CALLERS_MAX) {
		c = r->callers; /* the oldest one */
		HASH_DEL(r->callers, c);
		free(c);
		c = NULL;
	}
	if (!c) {
		c = calloc(1, sizeof *c);
		if (!c)
			agentd_out_of_memory("links");
		c->agent = h->from;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of the list */
		HASH_ADD(hh, r->callers, agent, sizeof c->agent, c);
	}
	c->last = number;
	return false;
}

void callers_free(struct run *r)
{
	struct caller *c, *tmp;

	HASH_ITER (hh, r->callers, c, tmp) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of the list */
		HASH_DEL(r->callers, c);
		free(c);
	}
}

/* ---- half-open connections ---- */

/* The descriptor goes on its own way when keep_fd. */
static void half_free(struct half *h, bool keep_fd)
{
	struct ports *p = h->port->d->ports;

	DL_DELETE(p->halves, h);
	p->n_halves--;
	cc_watch_free(h->watch);
	if (!keep_fd)
		close(h->fd);
	free(h);
}

static int send_bytes(int fd, const uint8_t buf[WLK_ACK_SIZE])
{
	/* The first bytes on this socket: its buffer is empty. */
	return send(fd, buf, WLK_ACK_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)WLK_ACK_SIZE
		       ? 0
		       : CC_ERR_IO;
}

static int send_refusal(int fd, uint16_t code, const char *text)
{
	struct wlk_ack a = {
		.version_min = WLK_VERSION_MIN, .version_max = WLK_VERSION_MAX, .code = code};
	uint8_t buf[WLK_ACK_SIZE];

	agentd_copy_text(a.text, sizeof a.text, text);
	wlk_ack_put(buf, &a);
	return send_bytes(fd, buf);
}

/* With the proof that we are whom the hello was meant for. */
static int send_welcome(int fd, const struct wlk_hello *h, const struct cc_key *way,
	uint64_t features, const struct cc_id *nonce)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX,
		.features = features,
		.nonce = *nonce};
	uint8_t buf[WLK_ACK_SIZE];

	wlk_ack_put(buf, &a);
	way_prove_ack(way, &h->proof, buf);
	return send_bytes(fd, buf);
}

static void refuse_as(struct half *h, int level, enum wlk_code code, const char *text)
{
	char from[CC_ADDR_STR_SIZE];

	agentd_complain(h->port->d, level, "refused a connection from %s: %s",
		cc_addr_str(&h->from, from), text);
	if (send_refusal(h->fd, (uint16_t)code, text) < 0) {
		half_free(h, false);
		return;
	}
	/* Closing with input unread would reset the connection and lose the answer. */
	shutdown(h->fd, SHUT_WR);
	h->lingering = true;
	h->deadline = cc_now_ns() + LINGER_NS;
}

static void refuse(struct half *h, enum wlk_code code, const char *text)
{
	/* While a run ends here, others may still want to connect. */
	refuse_as(h, code == WLK_REFUSED_RUN ? CC_LOG_INFO : CC_LOG_WARNING, code, text);
}

static bool is_missing(const struct in_link *l, const struct wlk_hello *h)
{
	if (h->stream == WLK_STREAM_SMALL)
		return !l->small;
	return !(l->have >> h->stream & 1);
}

/* A stream of the link that l is, and it is lacking. */
static bool is_of(const struct in_link *l, const struct wlk_hello *h)
{
	return l->n_streams == h->n_streams && l->number == h->number &&
	       cc_id_eq(&l->nonce, &h->nonce) && is_missing(l, h);
}

/* The link that this stream belongs to; NULL: refused, and h may be gone. */
static struct in_link *join_link(
	struct half *h, struct run *r, const struct wlk_hello *hello, const struct cc_key *way)
{
	struct in_link *l = find_in_link(r, &hello->from);
	struct agentd *d = r->d;
	uint32_t id = r->id;

	if (hello->stream > 0) {
		if (l && is_of(l, hello))
			return l;
		/* Or whoever opened the link has dropped it since, and its stream 0 told first. */
		refuse_as(h, CC_LOG_INFO, WLK_REFUSED_RUN,
			"the link of this stream is not there, or not any more");
		return NULL;
	}
	if (hello->number < r->wired || is_echo(r, hello)) {
		refuse(h, WLK_REFUSED_RUN, "this hello is old: others have followed it");
		return NULL;
	}
	if (l)
		in_link_down(r, l,
			(struct agt_event){
				.ended = true, .text = "the other agent opened the link anew"});
	/* What that set off may have ended the run. */
	if (!run_find(d, id)) {
		refuse(h, WLK_REFUSED_RUN, "the run has ended here");
		return NULL;
	}
	if (r->n_in_links >= IN_LINKS_MAX) {
		refuse(h, WLK_REFUSED_LIMIT, "too many links into this agent");
		return NULL;
	}
	l = calloc(1, sizeof *l);
	if (!l)
		agentd_out_of_memory("links");
	*l = (struct in_link){.num = ++d->next_link,
		.run = r,
		.peer = hello->from,
		.way = *way,
		.number = hello->number,
		.n_streams = hello->n_streams};
	cc_random_id(&l->nonce);
	DL_APPEND(r->in_links, l);
	r->n_in_links++;
	return l;
}

static int add_stream(struct run *r, struct in_link *l, uint16_t stream, int fd)
{
	if (stream == WLK_STREAM_SMALL)
		return small_in_add(l, fd);
	l->have |= (uint64_t)1 << stream;
	return eng_add_rx_stream(r->eng, l->num, &l->peer, fd);
}

static bool is_whole(const struct in_link *l)
{
	return l->small && l->have == UINT64_MAX >> (64 - l->n_streams);
}

static void welcome(
	struct half *h, struct run *r, const struct wlk_hello *hello, const struct cc_key *way)
{
	struct agt_event up = {.type = AGT_EV_LINK_UP, .run = r->id, .inbound = true};
	struct in_link *l = join_link(h, r, hello, way);
	int fd;

	if (!l)
		return;
	fd = h->fd;
	half_free(h, true);
	if (send_welcome(fd, hello, way, 0, &l->nonce) < 0) {
		close(fd);
		in_link_broken(r, l, "a stream broke while it was opened");
		return;
	}
	(void)cc_local_addr(fd, &l->here);
	if (add_stream(r, l, hello->stream, fd) < 0) {
		in_link_broken(r, l, "the agent's engine took no more streams");
		return;
	}
	up.peer = l->peer;
	if (is_whole(l))
		agentd_feed(r->d, &up);
}

/* For the attempt that the hello is for. What is sent nobody verifies but who gets it. */
static void welcome_state(
	struct half *h, struct run *r, const struct wlk_hello *hello, const struct cc_key *way)
{
	uint64_t features = hello->features & WLK_MEMBERS;
	char text[WLK_TEXT_MAX] = "this agent serves no more streams now";
	struct cc_id nonce;
	int fd = h->fd;

	if (r->d->stopping) {
		refuse(h, WLK_REFUSED_RUN, "this agent ends");
		return;
	}
	if (sync_engine(r) < 0 || !ste_has_room(r->ste)) {
		if (!r->ste)
			(void)agentd_shortage(
				"this agent serves no shared state", "eventfd", text, sizeof text);
		refuse(h, WLK_REFUSED_LIMIT, text);
		return;
	}
	half_free(h, true);
	cc_random_id(&nonce);
	if (send_welcome(fd, hello, way, features, &nonce) < 0) {
		close(fd);
		return;
	}
	if (ste_add_stream(r->ste, fd, features, hello->number) < 0)
		agentd_complain(r->d, CC_LOG_WARNING, "no memory or thread to serve shared state");
}

/* Whoever asks learns no more than that this is the agent that was meant, as any refusal tells, and
 * gets no more bytes than it has sent. */
static void answer_probe(struct half *h, const struct wlk_hello *hello)
{
	struct wlk_ack a = {.version_min = WLK_VERSION_MIN,
		.version_max = WLK_VERSION_MAX,
		.version = WLK_VERSION_MAX,
		.features = hello->features & WLK_BULK};
	uint8_t buf[WLK_ACK_SIZE];

	wlk_ack_put(buf, &a);
	if (send_bytes(h->fd, buf) < 0 || !a.features) {
		half_free(h, false);
		return;
	}
	h->bulk = true;
	h->deadline = cc_now_ns() + HELLO_NS + BULK_TRIPS * cc_tcp_round_trip_us(h->fd) * 1000;
}

static void judge(struct half *h)
{
	struct agentd *d = h->port->d;
	struct wlk_hello hello;
	char text[WLK_TEXT_MAX], mine[CC_ID_SHORT_SIZE], theirs[CC_ID_SHORT_SIZE];
	struct cc_key way;
	const char *why;
	struct run *r;

	if (wlk_hello_get(h->buf, &hello, &why) < 0) {
		agentd_complain(
			d, CC_LOG_WARNING, "malformed hello on port %u: %s", h->port->number, why);
		half_free(h, false);
		return;
	}
	r = find_run(d, &hello, h->buf, &way);
	if (!cc_id_eq(&hello.to, &d->id)) {
		snprintf(text, sizeof text, "this is agent %s, the hello was meant for agent %s",
			cc_id_short(&d->id, mine), cc_id_short(&hello.to, theirs));
		refuse(h, WLK_REFUSED_AGENT, text);
	} else if (h->port->service == hello.service && hello.stream == WLK_STREAM_PROBE) {
		answer_probe(h, &hello);
	} else if (!r) {
		refuse(h, WLK_REFUSED_RUN,
			"this agent takes part in no such run, or its master has not sent you");
	} else if (h->port->service == WLK_SHARED_STATE && hello.service == WLK_SHARED_STATE) {
		welcome_state(h, r, &hello, &way);
	} else if (h->port->service != WLK_P2P || hello.service != WLK_P2P) {
		refuse(h, WLK_REFUSED_SERVICE,
			h->port->service == hello.service
				? "this release of the agent does not offer this service yet"
				: "this port offers another service");
	} else {
		welcome(h, r, &hello, &way);
	}
}

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* False: what has arrived cannot become a hello for us, and h has been dealt with. */
static bool looks_right(struct half *h)
{
	static const uint8_t magic[4] = {WLK_MAGIC & 0xff, WLK_MAGIC >> 8 & 0xff,
		WLK_MAGIC >> 16 & 0xff, WLK_MAGIC >> 24 & 0xff};
	char text[WLK_TEXT_MAX], from[CC_ADDR_STR_SIZE];

	if (memcmp(h->buf, magic, h->have < 4 ? h->have : 4) != 0) {
		agentd_complain(h->port->d, CC_LOG_WARNING,
			"%s sent something else than a hello to port %u",
			cc_addr_str(&h->from, from), h->port->number);
		half_free(h, false);
		return false;
	}
	if (h->have < 8)
		return true;
	if (le16(h->buf + 4) <= WLK_VERSION_MAX && le16(h->buf + 6) >= WLK_VERSION_MIN)
		return true;
	snprintf(text, sizeof text,
		"you speak versions %u to %u of the link protocol, this agent %u to %u",
		le16(h->buf + 4), le16(h->buf + 6), WLK_VERSION_MIN, WLK_VERSION_MAX);
	refuse(h, WLK_REFUSED_VERSION, text);
	return false;
}

static void discard(struct half *h)
{
	uint8_t junk[4096];
	ssize_t n;

	while ((n = recv(h->fd, junk, sizeof junk, MSG_DONTWAIT)) > 0) {
		h->discarded += (uint32_t)n;
		if (h->discarded > LINGER_BYTES)
			break;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 0 && h->bulk && h->discarded > 0)
		(void)probe_send_bulk(h->fd);
	half_free(h, false);
}

static void on_half(void *arg)
{
	struct half *h = arg;
	ssize_t n;

	if (h->lingering || h->bulk) {
		discard(h);
		return;
	}
	n = recv(h->fd, h->buf + h->have, sizeof h->buf - h->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		half_free(h, false);
		return;
	}
	h->have += (uint32_t)n;
	if (looks_right(h) && h->have == sizeof h->buf)
		judge(h);
}

/* ---- ports ---- */

/* Hosts with IPv6 have a network of 64 bits to take addresses from. */
static bool same_host(const struct cc_addr *a, const struct cc_addr *b)
{
	return a->family == b->family &&
	       memcmp(a->ip, b->ip, a->family == CC_INET6 ? 8 : sizeof a->ip) == 0;
}

/* The oldest one from there, or of all, goes when there are too many. */
static void make_room(struct ports *p, const struct cc_addr *from)
{
	struct half *h, *oldest = NULL;
	uint32_t same = 0;

	DL_FOREACH (p->halves, h) {
		if (!same_host(&h->from, from))
			continue;
		oldest = oldest ? oldest : h;
		same++;
	}
	if (same < HALF_OPEN_PER_SOURCE)
		oldest = p->n_halves < HALF_OPEN_MAX ? NULL : p->halves;
	if (!oldest)
		return;
	if (!oldest->lingering && !oldest->bulk)
		(void)send_refusal(
			oldest->fd, WLK_REFUSED_LIMIT, "too many connections without a hello");
	half_free(oldest, false);
}

static void on_accept(void *arg, int fd)
{
	struct port *port = arg;
	struct ports *p = port->d->ports;
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	char limit[CC_LIMIT_TEXT];
	struct cc_addr from;
	struct half *h;

	if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &from) < 0) {
		close(fd);
		return;
	}
	make_room(p, &from);
	h = calloc(1, sizeof *h);
	if (!h)
		agentd_out_of_memory("connections");
	h->port = port;
	h->fd = fd;
	h->from = from;
	h->deadline = cc_now_ns() + HELLO_NS;
	DL_APPEND(p->halves, h);
	p->n_halves++;
	h->watch = cc_watch_new(port->d->loop, fd, false, on_half, h);
	if (!h->watch) {
		int error = errno;

		agentd_complain(port->d, CC_LOG_WARNING, "cannot watch a connection: %s",
			cc_limit_text(error, limit, sizeof limit));
		(void)send_refusal(
			fd, WLK_REFUSED_LIMIT, cc_limit_brief(error, limit, sizeof limit));
		half_free(h, false);
	}
}

/* The other end need not wait to hear that no hello is answered here now. */
static void on_shortage(void *arg, int fd, int error, const char *limit)
{
	char brief[CC_LIMIT_TEXT];

	(void)arg;
	(void)limit; /* which is in the log already */
	cc_discard_input(fd);
	(void)send_refusal(fd, WLK_REFUSED_LIMIT, cc_limit_brief(error, brief, sizeof brief));
	close(fd);
}

int ports_open(struct agentd *d)
{
	struct ports *p = calloc(1, sizeof *p);
	int err;

	if (!p)
		return CC_ERR_NOMEM;
	d->ports = p;
	err = port_open(
		&p->v[0], d, WLK_SHARED_STATE, d->cfg.port_shared_state, on_accept, on_shortage);
	if (err == 0)
		err = port_open(&p->v[1], d, WLK_P2P, d->cfg.port_p2p, on_accept, on_shortage);
	if (err == 0)
		err = port_open(
			&p->v[2], d, WLK_BENCHMARK, d->cfg.port_benchmark, on_accept, on_shortage);
	if (err == 0)
		cc_log(CC_LOG_INFO, "ports: p2p %u, shared state %u, benchmark %u", p->v[1].number,
			p->v[0].number, p->v[2].number);
	return err;
}

void ports_get(const struct agentd *d, struct agentd_stats *ret)
{
	ret->port_shared_state = d->ports->v[0].number;
	ret->port_p2p = d->ports->v[1].number;
	ret->port_benchmark = d->ports->v[2].number;
	ret->half_open = d->ports->n_halves;
}

void ports_tick(struct agentd *d, uint64_t now)
{
	struct half *h, *tmp;
	char from[CC_ADDR_STR_SIZE];

	DL_FOREACH_SAFE (d->ports->halves, h, tmp) {
		if (now < h->deadline)
			continue;
		if (!h->lingering && !h->bulk)
			agentd_complain(d, CC_LOG_WARNING, "%s said no hello on port %u within 5 s",
				cc_addr_str(&h->from, from), h->port->number);
		half_free(h, false);
	}
}

void ports_stop(struct agentd *d)
{
	for (int i = 0; i < 3; i++)
		port_close(&d->ports->v[i]);
}

void ports_close(struct agentd *d)
{
	struct half *h, *tmp;

	if (!d->ports)
		return;
	DL_FOREACH_SAFE (d->ports->halves, h, tmp) {
		half_free(h, false);
	}
	ports_stop(d);
	free(d->ports);
	d->ports = NULL;
}
