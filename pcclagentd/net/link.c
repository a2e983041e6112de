/* SPDX-License-Identifier: MIT
 *
 * Outbound links that are established, and the functions for links that other folders call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/cc_sys.h"
#include "pcclagentd/net/out_link.h"

/* A link that was freed while an operation may still use its number. */
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

void net_link_free(struct out_link *l)
{
	for (uint32_t i = 0; i < l->n_tries; i++)
		net_try_stop(&l->tries[i]);
	for (uint32_t i = 0; l->streams && i < net_link_all_streams(l); i++)
		net_try_stop(&l->streams[i]);
	if (l->eager)
		cc_conn_close(l->eager);
	if (l->up)
		drop_when_unused(l->run, l->num);
	DL_DELETE(l->run->out_links, l);
	free(l->streams);
	free(l);
}

struct out_link *net_link_find(const struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l;

	DL_FOREACH (r->out_links, l) {
		if (!net_link_is_none(l) && cc_id_eq(&l->to.agent, peer))
			return l;
	}
	return NULL;
}

/* The link was stuck: makes the next link to the same agent use smaller segments, and logs this.
 * Returns false if there are no smaller segments. */
static bool learn_stuck(const struct out_link *l)
{
	uint32_t known = net_narrow_size(l->run->narrow, &l->to.agent), next = l->segments + 1;

	if (known > next)
		next = known;
	if (net_narrow_learn(&l->run->narrow, &l->to, next, cc_now_ns()) < 0)
		rep_out_of_memory("links");
	if (next < CC_TCP_SIZES)
		cc_log(CC_LOG_WARNING,
			"the link to host %s delivers nothing: %s; the next link has segments of "
			"%u bytes at most",
			l->to.name, FLOW_STUCK_TEXT, cc_tcp_sizes[next]);
	else
		cc_log(CC_LOG_WARNING,
			"the link to host %s delivers nothing, not even segments of %u bytes: %s",
			l->to.name, cc_tcp_sizes[CC_TCP_SIZES - 1], FLOW_STUCK_TEXT);
	return next < CC_TCP_SIZES;
}

void net_link_break(struct out_link *l, const struct eng_event *how)
{
	struct agt_event ev = {.type = AGT_EV_LINK_DOWN,
		.run = l->run->id,
		.peer = l->to.agent,
		.silent = how->silent,
		.text = how->text};
	struct base *b = l->run->net->base;

	ev.smaller = how->stuck && learn_stuck(l);
	net_link_free(l);
	ev_post(b, &ev);
}

void net_link_close(struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l = net_link_find(r, peer);

	net_probe_cancel(r, peer);
	if (l)
		net_link_free(l);
}

uint32_t net_link_number(const struct net_run *r, const struct cc_id *peer)
{
	const struct out_link *l = net_link_find(r, peer);

	return l && l->up ? l->num : 0;
}

/* ---- events of the engine ---- */

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

/* Returns the established outbound link with this number, or NULL. */
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
		h->congested = e->congested;
	}
	if (out)
		heard_out(out, e);
}

void net_link_rate(struct net_run *r, const struct eng_event *e)
{
	const struct out_link *l = find_up(r, e->link);
	struct agt_event ev = {
		.type = AGT_EV_LINK_RATE, .run = r->id, .rate = e->rate, .trip_us = e->trip_us};

	if (!l)
		return;
	ev.peer = l->to.agent;
	ev_post(r->net->base, &ev);
}

void net_link_broken(struct net_run *r, const struct eng_event *e)
{
	struct net_in_link *in = net_in_link_find(r, e->link);
	struct out_link *l;

	DL_SEARCH_SCALAR(r->out_links, l, num, e->link);
	if (l)
		net_link_break(l, e);
	else if (in)
		net_in_link_broken(in, e);
}

static struct out_link *find_neighbour(const struct net_run *r, const struct cc_id *peer)
{
	struct out_link *l = net_link_find(r, peer);

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
	ret.congested = out && out->health.congested;
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
	if (l && l->eager && !l->send_failed)
		l->send_failed = cc_conn_send(l->eager, hdr, WLK_DATA_SIZE) < 0;
	if (l && l->eager && !l->send_failed)
		l->send_failed = cc_conn_send_ref(l->eager, payload, len, done, arg) < 0;
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
		net_link_break(l, &how);
	}
}

static void look_at_eager(struct out_link *l)
{
	struct eng_event how = {.link = l->num};

	if (l->send_failed)
		snprintf(how.text, sizeof how.text, "the other host takes no more operands");
	else if (l->eager &&
		 flow_is_stuck(&l->eager_flow, l->eager_fd, net_link_bound_ms(l, CC_BOUND_STUCK)))
		snprintf(how.text, sizeof how.text, "%s", FLOW_STUCK_TEXT);
	else
		return;
	how.stuck = !l->send_failed;
	net_link_break(l, &how);
}

void net_links_tick(struct net_run *r, uint64_t now)
{
	struct out_link *l, *tmp;

	DL_FOREACH_SAFE (r->out_links, l, tmp) {
		if (!l->up)
			net_link_go_on(l, now);
		else
			look_at_eager(l);
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
		net_link_free(l);
	}
}
