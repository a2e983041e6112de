/* SPDX-License-Identifier: MIT
 *
 * Inbound links. An inbound link has all streams that another agent has opened for it. The streams
 * begin and end together. The engine reads the streams for segments, and ops/ reads the stream for
 * the eager path.
 */
#include <stdlib.h>
#include <unistd.h>

#include "pcclagentd/base/handshake.h"
#include "pcclagentd/net/net_internal.h"

#define IN_LINKS_MAX 2048u
#define CALLERS_MAX  4096u /* agents whose last hello is remembered */

struct net_in_link {
	uint32_t num;
	struct net_run *run;
	struct cc_id peer;
	uint64_t number;    /* number of the round for which the link was opened */
	struct cc_id nonce; /* this agent's part of the proof of its streams */
	struct link_health health;
	uint32_t n_streams;
	uint64_t have;       /* bit i: stream i is open */
	void *eager;         /* the stream for the eager path; NULL: not open yet */
	struct cc_addr here; /* the local address */
	struct net_in_link *prev, *next;
};

/* An agent that has opened links to this agent, and the number of its last hello. A hello with the
 * same or a lower number is a repeated hello: somebody who has seen it sends it again. */
struct caller {
	struct cc_id agent;
	uint64_t last;
	UT_hash_handle hh;
};

/* ---- hellos ---- */

bool net_run_proves(const struct net_run *r, const struct wlk_hello *h,
	const uint8_t buf[WLK_HELLO_SIZE], struct cc_key *ret_key)
{
	for (uint32_t i = 0; i < r->n_keys; i++) {
		cc_link_key(
			&r->keys[i], h->service, h->number, &h->from, &r->net->base->id, ret_key);
		if (hs_is_proven(buf, ret_key))
			return true;
	}
	return false;
}

static uint64_t le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* Is this a repeated hello? If not, records its number as the number of the agent's last hello. */
static bool is_echo(struct net_run *r, const struct wlk_hello *h)
{
	uint64_t number = le64(h->nonce.b);
	struct caller *c;

	HASH_FIND(hh, r->callers, &h->from, sizeof h->from, c);
	if (c && number <= c->last)
		return true;
	if (!c && HASH_COUNT(r->callers) >= CALLERS_MAX) {
		c = r->callers; /* the oldest entry */
		HASH_DEL(r->callers, c);
		free(c);
		c = NULL;
	}
	if (!c) {
		c = calloc(1, sizeof *c);
		if (!c)
			rep_out_of_memory("links");
		c->agent = h->from;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		HASH_ADD(hh, r->callers, agent, sizeof c->agent, c);
	}
	c->last = number;
	return false;
}

static void free_callers(struct net_run *r)
{
	struct caller *c, *tmp;

	HASH_ITER (hh, r->callers, c, tmp) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
		HASH_DEL(r->callers, c);
		free(c);
	}
}

/* ---- ends ---- */

static void in_link_free(struct net_in_link *l)
{
	struct net_run *r = l->run;

	DL_DELETE(r->in_links, l);
	r->n_in_links--;
	if (l->eager)
		r->ops->eager_close(l->eager);
	eng_drop_link(r->eng, l->num);
	free(l);
}

/* Frees the link and sends AGT_EV_LINK_DOWN. Of `ev` it uses silent, ended and text. */
static void in_link_end(struct net_in_link *l, struct agt_event ev)
{
	struct net_run *r = l->run;

	ev.type = AGT_EV_LINK_DOWN;
	ev.run = r->id;
	ev.peer = l->peer;
	ev.inbound = true;
	in_link_free(l);
	ev_post(r->net->base, &ev);
}

void net_in_link_down(struct net_in_link *l, bool ended, const char *text)
{
	in_link_end(l, (struct agt_event){.ended = ended, .text = text});
}

void net_in_link_broken(struct net_in_link *l, const struct eng_event *e)
{
	in_link_end(l, (struct agt_event){.silent = e->silent, .ended = e->ended, .text = e->text});
}

void net_in_links_leave(struct net_run *r, struct net_lost_address *last)
{
	struct net_in_link *l, *tmp;

	DL_FOREACH_SAFE (r->in_links, l, tmp) {
		if (net_address_is_lost(last, &l->here))
			net_in_link_down(l, false, last->text);
	}
}

void net_in_links_free(struct net_run *r)
{
	struct net_in_link *l, *tmp;

	DL_FOREACH_SAFE (r->in_links, l, tmp) {
		in_link_free(l);
	}
	free_callers(r);
}

/* ---- streams ---- */

static bool is_missing(const struct net_in_link *l, const struct wlk_hello *h)
{
	if (h->stream == WLK_STREAM_EAGER)
		return !l->eager;
	return !(l->have >> h->stream & 1);
}

/* Does the hello belong to a stream of this link that is still missing? */
static bool is_of(const struct net_in_link *l, const struct wlk_hello *h)
{
	return l->n_streams == h->n_streams && l->number == h->number &&
	       cc_id_eq(&l->nonce, &h->nonce) && is_missing(l, h);
}

static bool is_there(const struct net *n, const struct net_run *r)
{
	const struct net_run *other;

	DL_FOREACH (n->runs, other) {
		if (other == r)
			return true;
	}
	return false;
}

static struct net_in_link *make(struct net_run *r, const struct wlk_hello *h)
{
	struct net_in_link *l = calloc(1, sizeof *l);

	if (!l)
		rep_out_of_memory("links");
	*l = (struct net_in_link){.num = ++r->net->next_link,
		.run = r,
		.peer = h->from,
		.number = h->number,
		.n_streams = h->n_streams};
	cc_random_id(&l->nonce);
	DL_APPEND(r->in_links, l);
	r->n_in_links++;
	return l;
}

/* Makes the link that begins with this stream 0. Returns NULL if the guest was refused. */
static struct net_in_link *begin_link(struct net_guest *g)
{
	const struct wlk_hello *h = &g->hello;
	struct net_run *r = g->run;
	struct net *n = r->net;
	struct net_in_link *l = net_in_link_of(r, &h->from);

	if (h->number < r->committed || is_echo(r, h)) {
		net_guest_refuse(g, WLK_REFUSED_RUN,
			"this hello is outdated: newer hellos have followed it");
		return NULL;
	}
	if (l)
		net_in_link_down(l, true, "the other agent reopened the link");
	/* The event of the old link may have ended the run. */
	if (!is_there(n, r)) {
		net_guest_refuse(g, WLK_REFUSED_RUN, "the run has ended here");
		return NULL;
	}
	if (r->n_in_links >= IN_LINKS_MAX) {
		net_guest_refuse(g, WLK_REFUSED_LIMIT, "too many links into this agent");
		return NULL;
	}
	return make(r, h);
}

/* Returns the link that this stream belongs to, or NULL if the guest was refused. */
static struct net_in_link *join_link(struct net_guest *g)
{
	struct net_in_link *l = net_in_link_of(g->run, &g->hello.from);

	if (g->hello.stream == 0)
		return begin_link(g);
	if (l && is_of(l, &g->hello))
		return l;
	/* Perhaps the other agent has closed the whole link, and this agent has seen the end of
	 * stream 0 first. */
	net_guest_refuse(
		g, WLK_REFUSED_RUN, "the link of this stream does not exist here, or has ended");
	return NULL;
}

static int add_stream(struct net_in_link *l, uint16_t stream, int fd)
{
	struct net_run *r = l->run;

	if (stream == WLK_STREAM_EAGER) {
		l->eager = r->ops->eager_open(r->arg, l, &l->peer, fd);
		return l->eager ? 0 : CC_ERR_NOMEM;
	}
	l->have |= (uint64_t)1 << stream;
	return eng_add_rx_stream(r->eng, l->num, &l->peer, fd);
}

static bool is_whole(const struct net_in_link *l)
{
	return l->eager && l->have == UINT64_MAX >> (64 - l->n_streams);
}

static void accept_stream(void *arg, struct net_guest *g)
{
	uint16_t stream = g->hello.stream;
	struct net_in_link *l = join_link(g);
	struct agt_event up = {.type = AGT_EV_LINK_UP, .inbound = true};
	int fd;

	(void)arg;
	if (!l)
		return;
	fd = net_guest_welcome(g, 0, &l->nonce);
	if (fd < 0) {
		net_in_link_down(l, false, "a stream broke while it was opened");
		return;
	}
	(void)cc_local_addr(fd, &l->here);
	if (add_stream(l, stream, fd) < 0) {
		net_in_link_down(l, false, "the agent's engine took no more streams");
		return;
	}
	up.run = l->run->id;
	up.peer = l->peer;
	if (is_whole(l))
		ev_post(l->run->net->base, &up);
}

const struct net_service net_p2p = {.id = WLK_P2P, .accept = accept_stream};

/* ---- for other files ---- */

struct net_in_link *net_in_link_find(const struct net_run *r, uint32_t num)
{
	struct net_in_link *l;

	DL_SEARCH_SCALAR(r->in_links, l, num, num);
	return l;
}

struct net_in_link *net_in_link_of(const struct net_run *r, const struct cc_id *peer)
{
	struct net_in_link *l;

	DL_FOREACH (r->in_links, l) {
		if (cc_id_eq(&l->peer, peer))
			return l;
	}
	return NULL;
}

uint32_t net_in_link_num(const struct net_in_link *l)
{
	return l->num;
}

struct link_health *net_in_link_health(struct net_in_link *l)
{
	return &l->health;
}

uint32_t net_in_link_streams(const struct net_run *r)
{
	const struct net_in_link *l;
	uint32_t n = 0;

	DL_FOREACH (r->in_links, l)
		n += (uint32_t)__builtin_popcountll(l->have) + (l->eager != NULL);
	return n;
}
