/* SPDX-License-Identifier: MIT
 *
 * Connections on the ports that have not yet sent a proven hello. Anyone can connect to the ports.
 * So until a hello proves that the other agent comes from the master, it gets only a few bytes, a
 * short time and a few connections. A hello that proves nothing has no effect. If there are too
 * many connections without a hello, the oldest is closed, because members send their hello at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "pcclagentd/base/handshake.h"
#include "pcclagentd/net/net_internal.h"

#define GUESTS_MAX        256u
#define GUESTS_PER_SOURCE 64u
#define HELLO_NS          BASE_MS(5000)
#define BULK_TRIPS        UINT64_C(8)
#define LINGER_NS         BASE_MS(1000) /* time for the other agent to read the refusal */
#define LINGER_BYTES      WLK_BULK_SIZE

static struct base *base_of(const struct net_guest *g)
{
	return g->port->net->base;
}

/* Frees the guest. Closes its descriptor unless `keep_fd`. */
static void guest_free(struct net_guest *g, bool keep_fd)
{
	struct net *n = g->port->net;

	DL_DELETE(n->guests, g);
	n->n_guests--;
	cc_watch_free(g->watch);
	if (!keep_fd)
		close(g->fd);
	free(g);
}

static void refuse_as(struct net_guest *g, int level, enum wlk_code code, const char *text)
{
	char from[CC_ADDR_STR_SIZE];

	rep_complain(&base_of(g)->report, level, "refused a connection from %s: %s",
		cc_addr_str(&g->from, from), text);
	if (hs_refuse(g->fd, code, text) < 0) {
		guest_free(g, false);
		return;
	}
	/* A close with unread input would reset the connection, and the answer would be lost. */
	shutdown(g->fd, SHUT_WR);
	g->lingering = true;
	g->deadline = cc_now_ns() + LINGER_NS;
}

void net_guest_refuse(struct net_guest *g, enum wlk_code code, const char *text)
{
	/* When a run ends here, other agents may still try to connect. So a refusal for this reason
	 * is not logged as a warning. */
	refuse_as(g, code == WLK_REFUSED_RUN ? CC_LOG_INFO : CC_LOG_WARNING, code, text);
}

/* Answers the hello of a probe. Anyone may probe, so the answer is not longer than the hello. Like
 * a refusal, the answer shows only whether this is the wanted agent. */
static void answer_probe(struct net_guest *g)
{
	uint64_t features = g->hello.features & WLK_BULK;

	if (hs_answer_probe(g->fd, features) < 0 || !features) {
		guest_free(g, false);
		return;
	}
	g->bulk = true;
	g->deadline = cc_now_ns() + HELLO_NS + BULK_TRIPS * cc_tcp_round_trip_us(g->fd) * 1000;
}

/* Returns the run whose master told the other agent to connect here, as the hello proves; or NULL.
 */
static struct net_run *find_run(struct net_guest *g)
{
	struct net_run *r;

	DL_FOREACH (g->port->net->runs, r) {
		if (r->ready && cc_id_eq(&r->run_id, &g->hello.run) &&
			net_run_proves(r, &g->hello, g->buf, &g->key))
			return r;
	}
	return NULL;
}

static void refuse_agent(struct net_guest *g)
{
	char text[WLK_TEXT_MAX], mine[CC_ID_SHORT_SIZE], theirs[CC_ID_SHORT_SIZE];

	snprintf(text, sizeof text, "this is agent %s, the hello was meant for agent %s",
		cc_id_short(&base_of(g)->id, mine), cc_id_short(&g->hello.to, theirs));
	net_guest_refuse(g, WLK_REFUSED_AGENT, text);
}

static void judge(struct net_guest *g)
{
	const struct net_service *service = g->port->net->services[g->port->service];
	const char *why;

	if (wlk_hello_get(g->buf, &g->hello, &why) < 0) {
		rep_complain(&base_of(g)->report, CC_LOG_WARNING, "malformed hello on port %u: %s",
			g->port->number, why);
		guest_free(g, false);
		return;
	}
	g->run = find_run(g);
	if (!cc_id_eq(&g->hello.to, &base_of(g)->id))
		refuse_agent(g);
	else if (g->port->service == g->hello.service && g->hello.stream == WLK_STREAM_PROBE)
		answer_probe(g);
	else if (!g->run)
		net_guest_refuse(g, WLK_REFUSED_RUN,
			"this agent is not in that run, or the run's master has not announced the "
			"agent that connects");
	else if (g->port->service != g->hello.service)
		net_guest_refuse(g, WLK_REFUSED_SERVICE, "this port offers another service");
	else
		service->accept(g->run->arg, g);
}

const struct wlk_hello *net_guest_hello(const struct net_guest *g)
{
	return &g->hello;
}

int net_guest_welcome(struct net_guest *g, uint64_t features, const struct cc_id *nonce)
{
	bool broken = hs_welcome(g->fd, &g->hello, &g->key, features, nonce) < 0;
	int fd = g->fd;

	guest_free(g, !broken);
	return broken ? -1 : fd;
}

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

/* Checks the first bytes of a hello. Returns false if they are wrong; then the guest was refused or
 * freed. */
static bool looks_right(struct net_guest *g)
{
	static const uint8_t magic[4] = {WLK_MAGIC & 0xff, WLK_MAGIC >> 8 & 0xff,
		WLK_MAGIC >> 16 & 0xff, WLK_MAGIC >> 24 & 0xff};
	char text[WLK_TEXT_MAX], from[CC_ADDR_STR_SIZE];

	if (memcmp(g->buf, magic, g->have < 4 ? g->have : 4) != 0) {
		rep_complain(&base_of(g)->report, CC_LOG_WARNING,
			"%s sent something other than a hello to port %u",
			cc_addr_str(&g->from, from), g->port->number);
		guest_free(g, false);
		return false;
	}
	if (g->have < 8)
		return true;
	if (le16(g->buf + 4) <= WLK_VERSION_MAX && le16(g->buf + 6) >= WLK_VERSION_MIN)
		return true;
	snprintf(text, sizeof text,
		"the other agent speaks versions %u to %u of the link protocol, this agent %u to "
		"%u",
		le16(g->buf + 4), le16(g->buf + 6), WLK_VERSION_MIN, WLK_VERSION_MAX);
	net_guest_refuse(g, WLK_REFUSED_VERSION, text);
	return false;
}

static void discard(struct net_guest *g)
{
	uint8_t junk[4096];
	ssize_t n;

	while ((n = recv(g->fd, junk, sizeof junk, MSG_DONTWAIT)) > 0) {
		g->discarded += (uint32_t)n;
		if (g->discarded > LINGER_BYTES)
			break;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 0 && g->bulk && g->discarded > 0)
		(void)net_probe_send_bulk(g->fd);
	guest_free(g, false);
}

static void on_guest(void *arg)
{
	struct net_guest *g = arg;
	ssize_t n;

	if (g->lingering || g->bulk) {
		discard(g);
		return;
	}
	n = recv(g->fd, g->buf + g->have, sizeof g->buf - g->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		guest_free(g, false);
		return;
	}
	g->have += (uint32_t)n;
	if (looks_right(g) && g->have == sizeof g->buf)
		judge(g);
}

/* ---- connections ---- */

/* Are these addresses probably of one host? A host with IPv6 can use all addresses of its network
 * of 64 bits. */
static bool same_host(const struct cc_addr *a, const struct cc_addr *b)
{
	return a->family == b->family &&
	       memcmp(a->ip, b->ip, a->family == CC_INET6 ? 8 : sizeof a->ip) == 0;
}

/* Makes room for a guest from `from`. If the host of `from` has too many guests, closes the oldest
 * of these. Otherwise, if there are too many guests in all, closes the oldest of all. */
static void make_room(struct net *n, const struct cc_addr *from)
{
	struct net_guest *g, *oldest = NULL;
	uint32_t same = 0;

	DL_FOREACH (n->guests, g) {
		if (!same_host(&g->from, from))
			continue;
		oldest = oldest ? oldest : g;
		same++;
	}
	if (same < GUESTS_PER_SOURCE)
		oldest = n->n_guests < GUESTS_MAX ? NULL : n->guests;
	if (!oldest)
		return;
	if (!oldest->lingering && !oldest->bulk)
		(void)hs_refuse(
			oldest->fd, WLK_REFUSED_LIMIT, "too many connections without a hello");
	guest_free(oldest, false);
}

void net_guest_accept(void *arg, int fd)
{
	struct port *port = arg;
	struct net *n = port->net;
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	char limit[CC_LIMIT_TEXT];
	struct cc_addr from;
	struct net_guest *g;

	if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &from) < 0) {
		close(fd);
		return;
	}
	make_room(n, &from);
	g = calloc(1, sizeof *g);
	if (!g)
		rep_out_of_memory("connections");
	g->port = port;
	g->fd = fd;
	g->from = from;
	g->deadline = cc_now_ns() + HELLO_NS;
	DL_APPEND(n->guests, g);
	n->n_guests++;
	g->watch = cc_watch_new(n->base->loop, fd, false, on_guest, g);
	if (!g->watch) {
		int error = errno;

		rep_complain(&n->base->report, CC_LOG_WARNING, "cannot watch a connection: %s",
			cc_limit_text(error, limit, sizeof limit));
		(void)hs_refuse(fd, WLK_REFUSED_LIMIT, cc_limit_brief(error, limit, sizeof limit));
		guest_free(g, false);
	}
}

void net_guest_shortage(void *arg, int fd, int error, const char *limit)
{
	char brief[CC_LIMIT_TEXT];

	(void)arg;
	(void)limit; /* has been logged already */
	cc_discard_input(fd);
	(void)hs_refuse(fd, WLK_REFUSED_LIMIT, cc_limit_brief(error, brief, sizeof brief));
	close(fd);
}

void net_guests_tick(struct net *n, uint64_t now)
{
	struct net_guest *g, *tmp;
	char from[CC_ADDR_STR_SIZE];

	DL_FOREACH_SAFE (n->guests, g, tmp) {
		if (now < g->deadline)
			continue;
		if (!g->lingering && !g->bulk)
			rep_complain(&n->base->report, CC_LOG_WARNING,
				"%s sent no hello to port %u within 5 s",
				cc_addr_str(&g->from, from), g->port->number);
		guest_free(g, false);
	}
}

void net_guests_free(struct net *n)
{
	struct net_guest *g, *tmp;

	DL_FOREACH_SAFE (n->guests, g, tmp) {
		guest_free(g, false);
	}
}
