/* SPDX-License-Identifier: MIT
 *
 * Probes. A probe checks whether a link could be opened: before the master admits newcomers, and
 * before a link of a mesh is opened. Another kind of probe checks whether larger segments pass
 * again on a narrow path. A hello is small and may pass where data does not. So after the answer to
 * the hello, both agents exchange full packets. If this exchange stands still, another connection
 * tries smaller segments. But if the kernel has counted that some full packets have passed, the
 * path is not narrow; it loses packets of all sizes. The segment size that passes is remembered for
 * links. Finally, the other agent's shared-state port must answer, too.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pcclagentd/base/watermark.h"
#include "pcclagentd/net/out_link.h"

/* If no byte passes for this time plus TRIPS round trips, packets get lost. */
#define STILL_NS BASE_MS(1000)
#define LATE_NS  BASE_MS(500) /* if a check is later than this, this agent was suspended */
#define TRIPS    4u

/* The kernel's counts of segments that have passed on a connection. */
struct counts {
	uint32_t out, in;
};

enum purpose {
	FOR_MASTER, /* the master has ordered the probe */
	FOR_LINK,   /* a link is opened when the probe has succeeded */
	FOR_SIZE,   /* the probe finds out whether larger segments pass again */
};

struct probe {
	struct net_run *run;
	enum purpose purpose;
	uint64_t number;              /* FOR_MASTER: number of the order */
	uint32_t n_streams;           /* FOR_LINK: streams of the link */
	struct wm_endpoint to, state; /* the other agent; its shared-state port */
	uint32_t size, end; /* segment size that is tried; the first size that is not tried */
	int fd;             /* socket of the exchange, or -1 */
	struct cc_watch *watch;
	uint32_t got;          /* bytes that have arrived */
	struct counts begun;   /* counts at the start of the exchange */
	struct watermark mark; /* sum of both counts, and when it last grew */
	uint64_t looked_ns;
	struct probe *prev, *next;
};

static void exchange_end(struct probe *p)
{
	cc_watch_free(p->watch);
	p->watch = NULL;
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static void probe_free(struct probe *p)
{
	exchange_end(p);
	DL_DELETE(p->run->probes, p);
	free(p);
}

/* Ends the probe and reports its result, or opens its link. `code`: WIRE_SUCCESS if the agent can
 * be reached. */
static void end(struct probe *p, uint32_t code, const char *text)
{
	struct probe was = *p;
	struct agt_event ev = {.run = p->run->id,
		.peer = p->to.agent,
		.seq = p->number,
		.code = code,
		.text = text};

	probe_free(p);
	if (was.purpose == FOR_LINK && code == WIRE_SUCCESS) {
		net_link_begin(was.run, &was.to, was.n_streams);
	} else if (was.purpose != FOR_SIZE) {
		ev.type = was.purpose == FOR_LINK ? AGT_EV_LINK_FAILED : AGT_EV_PROBED;
		ev_post(was.run->net->base, &ev);
	} else if (code != WIRE_SUCCESS) {
		net_narrow_remains(was.run->narrow, &was.to.agent);
	}
}

/* Ends the probe. `text`: NULL for success, or the reason of the failure. */
static void probe_end(struct probe *p, const char *text)
{
	end(p, text ? WIRE_RANK_CONNECTION_FAILED : WIRE_SUCCESS, text);
}

void net_probe_failed(struct probe *p, uint32_t code, const char *text)
{
	end(p, code, text);
}

void net_probe_narrow_text(char *text, size_t size)
{
	snprintf(text, size, "nothing got through, not even segments of %u bytes; %s",
		cc_tcp_sizes[CC_TCP_SIZES - 1], FLOW_STUCK_TEXT);
}

static void learn(const struct probe *p, uint32_t size)
{
	if (net_narrow_learn(&p->run->narrow, &p->to, size, cc_now_ns()) < 0)
		rep_out_of_memory("links");
}

/* ---- the exchange ---- */

bool net_probe_send_bulk(int fd)
{
	static const uint8_t zeros[WLK_BULK_SIZE];
	int room = 2 * WLK_BULK_SIZE;

	/* Fewer bytes are enough if the kernel grants a smaller buffer. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	return send(fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL) > 0 &&
	       shutdown(fd, SHUT_WR) == 0;
}

static void tell(const struct probe *p, uint32_t known)
{
	if (p->size > known)
		cc_log(CC_LOG_WARNING,
			"on the path to host %s %s; the next link has segments of %u bytes at most",
			p->to.name, FLOW_STUCK_TEXT, cc_tcp_sizes[p->size]);
	else if (p->size < known)
		cc_log(CC_LOG_NOTICE,
			"on the path to host %s larger packets pass again: the next link uses them",
			p->to.name);
}

static void passed(struct probe *p)
{
	exchange_end(p);
	tell(p, net_narrow_size(p->run->narrow, &p->to.agent));
	learn(p, p->size);
	if (p->state.port)
		net_link_probe(p->run, p, &p->state, WLK_SHARED_STATE, p->size);
	else
		probe_end(p, NULL);
}

static struct counts count(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return (struct counts){0};
	return (struct counts){info.tcpi_delivered, info.tcpi_data_segs_in};
}

static uint64_t moved(struct counts n)
{
	return (uint64_t)n.out << 32 | n.in;
}

/* Have segments of full size passed in the direction whose bytes have not all arrived? */
static bool some_have_passed(const struct probe *p)
{
	struct counts now = count(p->fd);
	int left = 0;

	(void)ioctl(p->fd, SIOCOUTQ, &left);
	return left > 0 ? now.out != p->begun.out : now.in != p->begun.in;
}

/* The connection of the exchange has broken. `text`: the reason. */
static void breaks(struct probe *p, const char *text)
{
	if (p->got > 0 || some_have_passed(p))
		passed(p);
	else
		probe_end(p, text);
}

/* The exchange stands still: tries smaller segments, or ends the probe. */
static void stands_still(struct probe *p)
{
	char text[WM_TEXT_MAX];

	if (some_have_passed(p)) {
		passed(p);
		return;
	}
	exchange_end(p);
	if (++p->size < p->end) {
		net_link_probe(p->run, p, &p->to, WLK_P2P, p->size);
		return;
	}
	if (p->end == CC_TCP_SIZES)
		learn(p, CC_TCP_SIZES);
	net_probe_narrow_text(text, sizeof text);
	probe_end(p, text);
}

static void on_bulk(void *arg)
{
	uint8_t junk[4096];
	struct probe *p = arg;
	ssize_t n;

	while ((n = recv(p->fd, junk, sizeof junk, MSG_DONTWAIT)) > 0 && p->got < WLK_BULK_SIZE)
		p->got += (uint32_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		breaks(p, strerror(errno));
	else if (p->got == 0)
		breaks(p, "the connection ended before any data passed");
	else if (n > 0)
		probe_end(p, "it sent more bytes than a probe has");
	else
		passed(p);
}

static void exchange(struct probe *p, int fd)
{
	p->fd = fd;
	p->got = 0;
	p->begun = count(fd);
	p->looked_ns = cc_now_ns();
	p->mark = (struct watermark){.moved = moved(p->begun), .since_ns = p->looked_ns};
	if (!net_probe_send_bulk(fd)) {
		probe_end(p, strerror(errno));
		return;
	}
	p->watch = cc_watch_new(p->run->net->base->loop, fd, false, on_bulk, p);
	if (!p->watch)
		rep_out_of_memory("links");
}

void net_probe_reached(struct probe *p, enum wlk_service service, int fd, bool bulk)
{
	if (service == WLK_P2P && bulk) {
		exchange(p, fd);
		return;
	}
	close(fd);
	probe_end(p, NULL);
}

/* ---- time ---- */

static void look(struct probe *p, uint64_t now)
{
	uint64_t patience = STILL_NS + (uint64_t)TRIPS * cc_tcp_round_trip_us(p->fd) * 1000;

	if (now - p->looked_ns > LATE_NS)
		watermark_touch(&p->mark, now);
	p->looked_ns = now;
	watermark_update(&p->mark, moved(count(p->fd)), now);
	if (watermark_still_ns(&p->mark, now) >= patience)
		stands_still(p);
}

static void begin(struct net_run *r, const struct probe *how)
{
	struct probe *p = malloc(sizeof *p);

	if (!p)
		rep_out_of_memory("links");
	*p = *how;
	p->run = r;
	p->fd = -1;
	DL_APPEND(r->probes, p);
	net_link_probe(r, p, &p->to, WLK_P2P, p->size);
}

/* Returns the segment size that is tried first to find out whether the agent can be reached. */
static uint32_t first_size(const struct net_run *r, const struct cc_id *peer)
{
	uint32_t size = net_narrow_size(r->narrow, peer);

	return size < CC_TCP_SIZES ? size : 0;
}

void net_probe(struct net_run *r, const struct wm_probe *m)
{
	begin(r, &(struct probe){.purpose = FOR_MASTER,
			 .number = m->number,
			 .to = m->to,
			 .state = m->state,
			 .size = first_size(r, &m->to.agent),
			 .end = CC_TCP_SIZES});
}

void net_probe_for_link(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams)
{
	begin(r, &(struct probe){.purpose = FOR_LINK,
			 .n_streams = n_streams,
			 .to = *to,
			 .size = first_size(r, &to->agent),
			 .end = CC_TCP_SIZES});
}

void net_probe_cancel(struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l, *next;
	struct probe *p;

	DL_FOREACH (r->probes, p) {
		if (p->purpose == FOR_LINK && cc_id_eq(&p->to.agent, peer))
			break;
	}
	if (!p)
		return;
	DL_FOREACH_SAFE (r->out_links, l, next) {
		if (l->probe == p)
			net_link_free(l);
	}
	probe_free(p);
}

void net_probes_tick(struct net_run *r, uint64_t now)
{
	const struct narrow *n = net_narrow_due(r->narrow, now);
	struct probe *p, *next;

	DL_FOREACH_SAFE (r->probes, p, next) {
		if (p->fd >= 0)
			look(p, now);
	}
	if (n)
		begin(r, &(struct probe){.purpose = FOR_SIZE, .to = n->to, .end = n->size});
}

void net_probes_free(struct net_run *r)
{
	struct probe *p, *next;

	DL_FOREACH_SAFE (r->probes, p, next) {
		probe_free(p);
	}
	net_narrow_free(&r->narrow);
}
