/* SPDX-License-Identifier: MIT
 *
 * Links between agents.
 */
#include <string.h>

#include "tests/sim/sim.h"

struct sim_link *sim_link_find(
	struct sim *s, const struct sim_host *h, uint32_t run, const struct cc_id *to)
{
	unsigned i;

	for (i = 0; i < SIM_LINKS; i++)
		if (s->links[i].used && s->links[i].src == h->no && s->links[i].src_run == run &&
			cc_id_eq(&s->links[i].to, to))
			return &s->links[i];
	return NULL;
}

void sim_link_open(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_link *l = s->links;
	const struct sim_host *to;
	uint64_t at = s->now + sim_delay(s);
	uint32_t gen;

	if (sim_link_find(s, h, x->run, &x->u.endpoint.agent)) {
		sim_fail(s, "host %u opens a link that is open", h->no);
		return;
	}
	to = sim_host_by_id(s, &x->u.endpoint.agent);
	if (to && s->deaf[h->no][to->no]) /* the other host does not answer */
		at = s->now + 2000 * SIM_MS;
	while (l->used && l < s->links + SIM_LINKS - 1)
		l++;
	gen = l->gen + 1;
	*l = (struct sim_link){.used = true, .gen = gen, .src = h->no, .src_run = x->run};
	l->src_life = h->life;
	l->to = x->u.endpoint.agent;
	sim_trace(s, "h%u run %u opens a link to %s", h->no, x->run, sim_name_agent(s, &l->to));
	sim_schedule(s, at,
		(struct sim_event){.kind = SIM_EV_LINK_RESULT,
			.host = h->no,
			.link = (unsigned)(l - s->links),
			.gen = gen});
}

/* The other end learns of the link first. */
static void came_in(struct sim *s, const struct sim_host *from, const struct sim_link *l)
{
	struct agt_event ev = {.type = AGT_EV_LINK_UP, .run = l->dst_run, .inbound = true};

	ev.peer = from->id;
	sim_host_step(s, &s->hosts[l->dst], &ev);
}

void sim_link_result(struct sim *s, const struct sim_event *ev)
{
	struct sim_link *l = &s->links[ev->link];
	struct sim_host *h = &s->hosts[l->src], *to;
	struct agt_event e = {.type = AGT_EV_LINK_FAILED, .run = l->src_run, .peer = l->to};
	uint32_t run;

	if (!l->used || l->gen != ev->gen)
		return;
	to = sim_host_by_id(s, &l->to);
	run = to && to->alive ? sim_host_run(to, &h->runs[l->src_run].id) : 0;
	if (run && !s->blocked[l->src][to->no] && !s->deaf[l->src][to->no]) {
		l->dst = to->no;
		l->dst_run = run;
		l->dst_life = to->life;
		l->up = true;
		e.type = AGT_EV_LINK_UP;
	} else {
		l->used = false;
		e.text = "Connection refused";
	}
	if (l->up)
		came_in(s, h, l);
	sim_trace(s, "h%u run %u: the link to %s %s", l->src, l->src_run, sim_name_agent(s, &l->to),
		l->up ? "is up" : "cannot be opened");
	sim_host_step(s, h, &e);
}

void sim_probe(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct sim_host *to = sim_host_by_id(s, &x->u.probe.to.agent);
	struct sim_event ev = {.kind = SIM_EV_PROBE_RESULT,
		.host = h->no,
		.life = h->life,
		.run = x->run,
		.seq = x->u.probe.number};

	ev.agent = x->u.probe.to.agent;
	sim_schedule(s,
		to && s->deaf[h->no][to->no] ? s->now + 2000 * SIM_MS : s->now + sim_delay(s), ev);
}

void sim_probe_result(struct sim *s, const struct sim_event *ev)
{
	struct agt_event e = {.type = AGT_EV_PROBED, .run = ev->run, .seq = ev->seq};
	struct sim_host *h = &s->hosts[ev->host], *to = sim_host_by_id(s, &ev->agent);

	if (!h->alive || h->life != ev->life)
		return;
	if (!to || !to->alive || s->blocked[h->no][to->no] || s->deaf[h->no][to->no]) {
		e.code = WIRE_RANK_CONNECTION_FAILED;
		e.text = "Connection refused";
	}
	sim_trace(s, "h%u run %u: a probe of %s %s", h->no, ev->run, sim_name_agent(s, &ev->agent),
		e.code ? "fails" : "succeeds");
	sim_host_step(s, h, &e);
}

/* One end learns that the link is gone. ended: the other end has closed it. */
static void tell(struct sim *s, unsigned host, uint32_t life, uint32_t run,
	const struct cc_id *peer, bool inbound, bool ended, uint64_t after)
{
	struct sim_event ev = {
		.kind = SIM_EV_LINK_SEEN_DOWN, .host = host, .life = life, .run = run};

	ev.agent = *peer;
	ev.inbound = inbound;
	ev.gen = ended;
	sim_schedule(s, s->now + after + sim_delay(s), ev);
}

/* The source ends the link. `after`: the shortest time for which the other end still believes
 * that the link is up. */
static void link_end(
	struct sim *s, struct sim_link *l, const struct cc_id *src, bool ended, uint64_t after)
{
	sim_xfers_break(s, l);
	if (l->up && !l->mute)
		tell(s, l->dst, l->dst_life, l->dst_run, src, true, ended, after);
	l->used = false;
}

void sim_link_close(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_link *l = sim_link_find(s, h, x->run, &x->u.endpoint.agent);

	if (l)
		link_end(s, l, &h->id, true, 0);
}

void sim_link_break(struct sim *s, struct sim_link *l)
{
	if (!l->up)
		return;
	sim_trace(s, "fault: the link from h%u to h%u breaks", l->src, l->dst);
	tell(s, l->src, l->src_life, l->src_run, &l->to, false, false, 0);
	link_end(s, l, &s->hosts[l->src].id, false, 0);
}

void sim_link_reset(struct sim *s, struct sim_link *l, bool at_source)
{
	if (!l->up || l->mute)
		return;
	s->seen[SEEN_ONE_SIDED]++;
	sim_trace(s, "fault: the link from h%u to h%u is reset, and only h%u knows", l->src, l->dst,
		at_source ? l->src : l->dst);
	sim_xfers_break(s, l);
	l->mute = true; /* nothing arrives through it any more, not even a FIN or RST */
	if (at_source)
		l->used = false;
	if (at_source)
		tell(s, l->src, l->src_life, l->src_run, &l->to, false, false, 0);
	else
		tell(s, l->dst, l->dst_life, l->dst_run, &s->hosts[l->src].id, true, false, 0);
}

static void mute(struct sim *s, struct sim_link *l)
{
	struct sim_event ev = {.kind = SIM_EV_LINK_QUIET, .host = l->src, .life = l->src_life};

	l->mute = true;
	sim_xfers_break(s, l);
	ev.run = l->src_run;
	ev.agent = l->to;
	ev.gen = l->gen;
	ev.code = true;
	sim_schedule(s, s->now + (1500 + sim_rnd(s, 200)) * SIM_MS, ev);
	ev.kind = SIM_EV_LINK_SEEN_DOWN;
	sim_schedule(s, s->now + (2800 + sim_rnd(s, 200)) * SIM_MS, ev);
	ev.host = l->dst;
	ev.life = l->dst_life;
	ev.run = l->dst_run;
	ev.agent = s->hosts[l->src].id;
	ev.inbound = true;
	sim_schedule(s, s->now + (2800 + sim_rnd(s, 200)) * SIM_MS, ev);
}

void sim_pair_cut(struct sim *s, unsigned one, unsigned other, bool cut)
{
	unsigned i;

	sim_trace(s, "fault: h%u and h%u receive %s from each other", one, other,
		cut ? "nothing" : "again");
	s->deaf[one][other] = s->deaf[other][one] = cut;
	for (i = 0; i < SIM_LINKS && cut; i++) {
		struct sim_link *l = &s->links[i];

		if (l->used && l->up && s->deaf[l->src][l->dst])
			mute(s, l);
	}
}

/* Returns the source's link that the event is about; NULL: it is gone or was replaced. */
static struct sim_link *same_link(struct sim *s, const struct sim_event *ev)
{
	struct sim_link *l = sim_link_find(s, &s->hosts[ev->host], ev->run, &ev->agent);

	return l && l->mute && l->gen == ev->gen ? l : NULL;
}

void sim_link_quiet(struct sim *s, const struct sim_event *ev)
{
	struct agt_event e = {.type = AGT_EV_LINK_SILENT, .run = ev->run, .silent = true};
	struct sim_host *h = &s->hosts[ev->host];

	e.peer = ev->agent;
	if (h->alive && h->life == ev->life && same_link(s, ev))
		sim_host_step(s, h, &e);
}

/* Has the other agent opened a new link meanwhile? */
static bool replaced(const struct sim *s, const struct sim_event *ev)
{
	unsigned i;

	for (i = 0; i < SIM_LINKS; i++) {
		const struct sim_link *l = &s->links[i];

		if (l->used && l->up && !l->mute && l->dst == ev->host && l->dst_run == ev->run &&
			cc_id_eq(&s->hosts[l->src].id, &ev->agent))
			return true;
	}
	return false;
}

void sim_link_seen_down(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct agt_event e = {.type = AGT_EV_LINK_DOWN, .run = ev->run, .inbound = ev->inbound};

	if (!h->alive || h->life != ev->life)
		return;
	e.peer = ev->agent;
	e.silent = ev->code != 0;
	e.ended = ev->gen && ev->inbound && !e.silent;
	e.text = e.silent ? "nothing was received" : "Connection reset by peer";
	if (e.silent && !ev->inbound) {
		if (!same_link(s, ev))
			return;
		same_link(s, ev)->used = false;
	}
	/* an agent that has closed the link, or opened it again, is not told of the old one */
	if (ev->inbound ? replaced(s, ev) : sim_link_find(s, h, ev->run, &ev->agent) != NULL)
		return;
	sim_host_step(s, h, &e);
}

void sim_links_drop(struct sim *s, struct sim_host *h, uint32_t run)
{
	unsigned i;

	if (sim_xfers_live(s, h, run))
		return;
	for (i = 0; i < SIM_LINKS; i++)
		if (s->links[i].used && s->links[i].src == h->no && s->links[i].src_run == run)
			link_end(s, &s->links[i], &h->id, true, 0);
}

void sim_links_host_died(struct sim *s, struct sim_host *h, bool silent)
{
	uint64_t after = silent ? (1000 + sim_rnd(s, 4000)) * SIM_MS : 0;
	unsigned i;

	for (i = 0; i < SIM_LINKS; i++) {
		struct sim_link *l = &s->links[i];

		if (!l->used || (l->src != h->no && !(l->up && l->dst == h->no)))
			continue;
		if (l->src != h->no)
			tell(s, l->src, l->src_life, l->src_run, &l->to, false, false, after);
		link_end(s, l, &s->hosts[l->src].id, !silent, after);
	}
}
