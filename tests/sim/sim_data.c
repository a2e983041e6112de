/* SPDX-License-Identifier: MIT
 *
 * Links between agents and the transfers that flow through them. No byte is reduced here; what is
 * checked is that all hosts of a transfer mean the same one, that memory is let go of before a
 * failure is told, and that all members hear the same.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static struct sim_link *link_find(
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
	uint32_t gen;

	if (link_find(s, h, x->run, &x->u.endpoint.agent)) {
		sim_fail(s, "host %u opens a link that is open", h->no);
		return;
	}
	while (l->used)
		l++;
	gen = l->gen + 1;
	*l = (struct sim_link){.used = true, .gen = gen, .src = h->no, .src_run = x->run};
	l->to = x->u.endpoint.agent;
	sim_schedule(s, s->now + sim_delay(s),
		(struct sim_event){
			.kind = SIM_EV_LINK_RESULT, .link = (unsigned)(l - s->links), .gen = gen});
}

void sim_link_result(struct sim *s, const struct sim_event *ev)
{
	struct sim_link *l = &s->links[ev->link];
	struct sim_host *h = &s->hosts[l->src], *to;
	struct agt_event e = {.type = AGT_EV_LINK_FAILED, .run = l->src_run, .peer = l->to};

	if (!l->used || l->gen != ev->gen)
		return;
	to = sim_host_by_id(s, &l->to);
	if (to && sim_host_run(to) && !s->blocked[l->src][to->no]) {
		l->dst = to->no;
		l->dst_run = sim_host_run(to);
		l->up = true;
		e.type = AGT_EV_LINK_UP;
	} else {
		l->used = false;
		e.text = "Connection refused";
	}
	sim_host_step(s, h, &e);
}

static const struct sim_part *part_of(
	const struct sim_xfer *x, const struct cc_id *agent, struct sim *s)
{
	uint32_t i;

	for (i = 0; i < x->n_parts; i++)
		if (cc_id_eq(&s->hosts[x->parts[i].host].id, agent))
			return &x->parts[i];
	return NULL;
}

/* Data does not flow from src to dst any more. Where both have all there is to have, none is
 * missed. */
static void break_xfers(struct sim *s, unsigned src, const struct cc_id *dst)
{
	const struct sim_part *to;
	struct sim_xfer *x;
	uint32_t i;

	for (x = s->xfers; x; x = x->next) {
		for (i = 0; i < x->n_parts; i++) {
			const struct sim_part *p = &x->parts[i];

			if (!p->live || p->host != src || p->x.hosts < 2 ||
				!cc_id_eq(&p->x.next, dst))
				continue;
			to = part_of(x, dst, s);
			if (!p->done || !to || !to->done)
				x->broken = true;
		}
	}
}

/* One end learns that the link is gone. */
static void tell(struct sim *s, unsigned host, uint32_t run, const struct cc_id *peer, bool inbound)
{
	struct sim_event ev = {.kind = SIM_EV_LINK_SEEN_DOWN, .host = host, .run = run};

	ev.agent = *peer;
	ev.inbound = inbound;
	sim_schedule(s, s->now + sim_delay(s), ev);
}

/* The source ends the link. */
static void link_end(struct sim *s, struct sim_link *l)
{
	break_xfers(s, l->src, &l->to);
	if (l->up)
		tell(s, l->dst, l->dst_run, &s->hosts[l->src].id, true);
	l->used = false;
}

void sim_link_close(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_link *l = link_find(s, h, x->run, &x->u.endpoint.agent);

	if (l)
		link_end(s, l);
}

void sim_link_break(struct sim *s, struct sim_link *l)
{
	if (!l->up)
		return;
	sim_trace(s, "fault: the link from host %u to host %u breaks", l->src, l->dst);
	tell(s, l->src, l->src_run, &l->to, false);
	link_end(s, l);
}

void sim_link_seen_down(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct agt_event e = {.type = AGT_EV_LINK_DOWN, .run = ev->run, .inbound = ev->inbound};

	e.peer = ev->agent;
	e.text = "Connection reset by peer";
	/* an agent that has closed or opened it anew does not hear of the old one */
	if (!ev->inbound && link_find(s, h, ev->run, &ev->agent))
		return;
	sim_host_step(s, h, &e);
}

static bool has_xfers(const struct sim *s, const struct sim_host *h, uint32_t run)
{
	const struct sim_xfer *x;
	uint32_t i;

	for (x = s->xfers; x; x = x->next)
		for (i = 0; i < x->n_parts; i++)
			if (x->parts[i].live && x->parts[i].host == h->no && x->parts[i].run == run)
				return true;
	return false;
}

void sim_links_drop(struct sim *s, struct sim_host *h, uint32_t run)
{
	unsigned i;

	if (has_xfers(s, h, run))
		return;
	for (i = 0; i < SIM_LINKS; i++)
		if (s->links[i].used && s->links[i].src == h->no && s->links[i].src_run == run)
			link_end(s, &s->links[i]);
}

static struct sim_xfer *xfer_find(struct sim *s, uint64_t seq)
{
	struct sim_xfer *x = s->xfers;

	while (x && x->seq != seq)
		x = x->next;
	return x;
}

static struct sim_part *part_find(
	struct sim *s, const struct sim_host *h, uint32_t run, uint64_t seq)
{
	struct sim_xfer *x = xfer_find(s, seq);
	uint32_t i;

	for (i = 0; x && i < x->n_parts; i++)
		if (x->parts[i].live && x->parts[i].host == h->no && x->parts[i].run == run)
			return &x->parts[i];
	return NULL;
}

/* All hosts have started: do they mean the same? */
static void check_start(struct sim *s, struct sim_xfer *t)
{
	const struct agt_xfer *first = &t->parts[0].x;
	uint32_t i, j, seen = 0, members = 0;

	for (i = 0; i < t->n_parts; i++) {
		const struct agt_xfer *x = &t->parts[i].x;

		members += x->n_members;
		seen |= 1u << x->pos;
		if (x->hosts != first->hosts || x->world != first->world ||
			x->epoch != first->epoch || x->group != first->group ||
			x->tag != first->tag ||
			memcmp(&x->params, &first->params, sizeof x->params) != 0)
			sim_fail(s, "seq %lu: hosts mean different operations",
				(unsigned long)t->seq);
		for (j = 0; j < t->n_parts && x->hosts > 1; j++) {
			const struct agt_xfer *y = &t->parts[j].x;

			if ((x->pos + 1) % x->hosts == y->pos &&
				(!cc_id_eq(&x->next, &s->hosts[t->parts[j].host].id) ||
					!cc_id_eq(&y->prev, &s->hosts[t->parts[i].host].id)))
				sim_fail(s, "seq %lu: the ring does not close",
					(unsigned long)t->seq);
		}
	}
	if (seen != (1u << first->hosts) - 1)
		sim_fail(s, "seq %lu: two hosts at one position", (unsigned long)t->seq);
	if (members != first->world)
		sim_fail(s, "seq %lu: %u contributions in a world of %u", (unsigned long)t->seq,
			members, first->world);
	t->contributions = members;
}

static void all_started(struct sim *s, struct sim_xfer *t)
{
	uint32_t i;

	check_start(s, t);
	for (i = 0; i < t->n_parts; i++) {
		struct sim_event ev = {.kind = SIM_EV_XFER_DONE, .host = t->parts[i].host};

		ev.run = t->parts[i].run;
		ev.seq = t->seq;
		ev.code = s->faults.enabled && sim_chance(s, 1) ? WIRE_OUT_OF_MEMORY : 0;
		sim_schedule(s, s->now + (200 + sim_rnd(s, 8000)) * SIM_US, ev);
	}
}

void sim_xfer_start(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	const struct agt_xfer *x = &a->u.xfer;
	struct sim_xfer *t = xfer_find(s, x->seq);
	struct sim_part *p;

	if (!t) {
		t = calloc(1, sizeof *t);
		if (!t)
			abort();
		t->seq = x->seq;
		t->next = s->xfers;
		s->xfers = t;
	}
	if (part_find(s, h, a->run, x->seq) || t->n_parts == SIM_HOSTS || t->n_parts >= x->hosts) {
		sim_fail(s, "seq %lu is started twice on host %u", (unsigned long)x->seq, h->no);
		return;
	}
	p = &t->parts[t->n_parts++];
	*p = (struct sim_part){.host = h->no, .run = a->run, .live = true, .x = *x};
	p->x.members = calloc(x->n_members, sizeof *x->members);
	if (!p->x.members)
		abort();
	memcpy(p->x.members, x->members, x->n_members * sizeof *x->members);
	if (x->hosts > 1) {
		const struct sim_link *l = link_find(s, h, a->run, &x->next);

		if (!l || !l->up) /* it broke and the agent does not know yet */
			t->broken = true;
	}
	if (t->n_parts == x->hosts && !t->broken)
		all_started(s, t);
}

void sim_xfer_done(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct sim_xfer *t = xfer_find(s, ev->seq);
	struct sim_part *p = part_find(s, h, ev->run, ev->seq);
	struct agt_event e = {.type = AGT_EV_XFER_DONE, .run = ev->run, .seq = ev->seq};

	if (!p || t->broken || p->cancelled)
		return;
	e.code = ev->code;
	e.text = ev->code ? "no memory for the result" : NULL;
	e.tx_bytes = e.rx_bytes = 100;
	if (ev->code)
		t->broken = true;
	else
		p->done = true;
	t->n_done += ev->code == 0;
	sim_host_step(s, h, &e);
}

void sim_xfer_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_part *p = part_find(s, h, a->run, a->u.xfer.seq);
	struct sim_event ev = {.kind = SIM_EV_XFER_CANCELLED, .host = h->no, .run = a->run};

	if (!p || p->cancelling) {
		sim_fail(s, "host %u cancels what is not there", h->no);
		return;
	}
	p->cancelling = true;
	if (!p->done)
		xfer_find(s, a->u.xfer.seq)->broken = true;
	ev.seq = a->u.xfer.seq;
	sim_schedule(s, s->now + sim_delay(s), ev);
}

void sim_xfer_cancelled(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct sim_part *p = part_find(s, h, ev->run, ev->seq);
	struct agt_event e = {.type = AGT_EV_XFER_CANCELLED, .run = ev->run, .seq = ev->seq};

	if (!p)
		return;
	p->cancelled = true;
	sim_host_step(s, h, &e);
}

static void part_free(struct sim_part *p)
{
	free(p->x.members);
	p->x.members = NULL;
	p->live = false;
}

void sim_xfer_free(struct sim *s, struct sim_host *h, const struct agt_action *a)
{
	struct sim_part *p = part_find(s, h, a->run, a->u.xfer.seq);

	if (!p || (p->cancelling ? !p->cancelled : !p->done)) {
		sim_fail(s, "host %u frees the memory of seq %lu in use", h->no,
			(unsigned long)a->u.xfer.seq);
		return;
	}
	part_free(p);
	if (h->conns[a->run].over)
		sim_links_drop(s, h, a->run);
}

void sim_data_host_died(struct sim *s, struct sim_host *h)
{
	struct sim_xfer *x;
	unsigned i;

	for (i = 0; i < SIM_LINKS; i++) {
		struct sim_link *l = &s->links[i];

		if (l->used && l->src == h->no) {
			link_end(s, l);
		} else if (l->used && l->up && l->dst == h->no) {
			tell(s, l->src, l->src_run, &l->to, false);
			link_end(s, l);
		}
	}
	for (x = s->xfers; x; x = x->next) {
		for (i = 0; i < x->n_parts; i++) {
			if (x->parts[i].host != h->no || !x->parts[i].live)
				continue;
			if (!x->parts[i].done)
				x->broken = true;
			part_free(&x->parts[i]);
		}
	}
}

void sim_xfer_completed(
	struct sim *s, struct sim_host *h, const struct agt_action *a, const struct sim_peer *p)
{
	const struct agt_done *d = &a->u.done;
	struct sim_xfer *t;
	struct sim_part *q;
	uint32_t i, j;

	for (t = s->xfers; t; t = t->next) {
		for (i = 0; i < t->n_parts; i++) {
			q = &t->parts[i];
			if (!q->live || q->host != h->no)
				continue;
			for (j = 0; j < q->x.n_members; j++)
				if (q->x.members[j].comm == a->comm &&
					q->x.members[j].sub.slot == a->slot)
					goto found;
		}
	}
	if (d->code == WIRE_SUCCESS)
		sim_fail(s, "peer %u: success without a transfer", p->no);
	return;
found:
	if (d->code ? !q->cancelled : q->cancelling || !q->done)
		sim_fail(s, "peer %u: completed while seq %lu runs", p->no, (unsigned long)t->seq);
	if (d->code == WIRE_SUCCESS) {
		t->successes++;
		if (t->n_done != q->x.hosts || d->world != t->contributions)
			sim_fail(s, "seq %lu: success with %u of %u hosts done, world %u of %u",
				(unsigned long)t->seq, t->n_done, q->x.hosts, d->world,
				t->contributions);
	} else if (p->attrs.state == SHM_COMM_CONNECTED && p->state != PEER_DESTROYING) {
		t->failures++;
	}
	if (t->successes && t->failures)
		sim_fail(s, "seq %lu: success for some, failure for others", (unsigned long)t->seq);
}

void sim_xfers_free(struct sim *s)
{
	struct sim_xfer *x;
	uint32_t i;

	while ((x = s->xfers) != NULL) {
		s->xfers = x->next;
		for (i = 0; i < x->n_parts; i++)
			free(x->parts[i].x.members);
		free(x);
	}
}
