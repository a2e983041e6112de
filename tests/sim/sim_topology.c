/* SPDX-License-Identifier: MIT
 *
 * Measurements of links, what links carry in operations, and solutions of optimizations. Rates and
 * plans are random: the cores must keep their promises whatever these are. Checked: a round puts
 * new rings in force only if they have exactly the hosts for which the master has asked.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define GBIT 1e9 /* more than any link is measured to carry */

void sim_measure(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct wm_measure *o = &x->u.measure;
	struct sim_event ev = {.kind = SIM_EV_MEASURED,
		.host = h->no,
		.life = h->life,
		.run = x->run,
		.seq = o->number,
		.gen = o->n_to};
	uint32_t i;

	h->runs[x->run].measures = o->number;
	if (o->n_to == 0)
		return;
	ev.len = o->n_to * sizeof(struct cc_id);
	ev.bytes = malloc(ev.len);
	if (!ev.bytes)
		abort();
	for (i = 0; i < o->n_to; i++)
		memcpy(ev.bytes + i * sizeof(struct cc_id), &o->to[i].agent, sizeof(struct cc_id));
	sim_schedule(s, s->now + (1 + sim_rnd(s, o->ms)) * SIM_MS, ev);
}

void sim_measure_stop(struct sim_host *h, const struct agt_action *x)
{
	h->runs[x->run].measures = 0;
}

/* Do other runs use the network of this host? Some do for moments, a few for longer than an
 * optimization waits. While a link is slow, none do, because this link must be measured. */
static bool is_busy(const struct sim *s, unsigned host)
{
	return !s->slow.on &&
	       (sim_hash(s, host, s->now / (500 * SIM_MS), 0xb5) % 50 == 0 ||
		       sim_hash(s, host, s->now / (20000 * SIM_MS), 0xb6) % 100 == 0);
}

/* An agent reports what it has measured. */
void sim_measured(struct sim *s, const struct sim_event *ev)
{
	struct agt_event e = {.type = AGT_EV_MEASURED, .run = ev->run, .seq = ev->seq};
	struct sim_host *h = &s->hosts[ev->host];
	struct wm_measured_result v[SIM_HOSTS];
	uint32_t i;

	if (!h->alive || h->life != ev->life || h->runs[ev->run].measures != ev->seq)
		return;
	for (i = 0; i < ev->gen && i < SIM_HOSTS; i++) {
		const struct sim_host *to;

		v[i] = (struct wm_measured_result){.ok = true};
		memcpy(&v[i].agent, ev->bytes + i * sizeof(struct cc_id), sizeof(struct cc_id));
		to = sim_host_by_id(s, &v[i].agent);
		v[i].ok = to && to->alive && !s->blocked[h->no][to->no] && !s->deaf[h->no][to->no];
		v[i].busy = v[i].ok && (is_busy(s, h->no) || is_busy(s, to->no));
		if (v[i].busy) {
			v[i].ok = false;
			strcpy(v[i].text, "another run measures");
			s->seen[SEEN_BUSY]++;
		} else if (v[i].ok) {
			v[i].rate = (1 + sim_rnd(s, 10)) * UINT64_C(100000000);
			if (sim_slow_is(s, h->no, to->no))
				v[i].rate = s->slow.rate;
			v[i].rate_of_all = v[i].rate;
			v[i].trip_us = 1 + sim_rnd(s, 1000);
		} else {
			strcpy(v[i].text, "Connection refused");
		}
	}
	e.n_measured = i;
	e.measured = v;
	s->seen[SEEN_MEASURED]++;
	sim_host_step(s, h, &e);
}

void sim_carried(struct sim *s, struct sim_host *h)
{
	struct agt_event e = {.type = AGT_EV_LINK_RATE};
	unsigned i;

	for (i = 0; i < SIM_LINKS; i++) {
		const struct sim_link *l = &s->links[i];
		/* Some links are slow all the time. */
		bool slow = sim_hash(s, l->src, l->dst, 1) % 4 == 0;

		if (!l->used || !l->up || l->src != h->no || l->src_life != h->life ||
			sim_slow_is(s, l->src, l->dst))
			continue;
		e.run = l->src_run;
		e.peer = sim_chance(s, 95) ? l->to : sim_new_id(s, 0xa1);
		e.rate = 1 + sim_rnd(s, slow ? 100 : 2000000000);
		e.trip_us = sim_rnd(s, 1000);
		s->seen[SEEN_CARRIED]++;
		sim_host_step(s, h, &e);
	}
}

/* A solution on its way to the master. */
struct found {
	struct ccm_solution x;
	uint16_t order[CC_RINGS_MAX * SIM_HOSTS];
};

static void shuffle(struct sim *s, uint16_t *v, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i++)
		v[i] = (uint16_t)i;
	for (i = n; i > 1; i--) {
		uint16_t t = v[i - 1];

		k = sim_rnd(s, i);
		v[i - 1] = v[k];
		v[k] = t;
	}
}

/* A ring may not contain a link that does not work or has become slow. */
static bool is_possible(const struct sim *s, const struct ccm_problem *p, const uint16_t *ring)
{
	uint64_t rate;
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		rate = p->rates[ring[i] * p->n + ring[(i + 1) % p->n]];
		if (rate == 0 || (s->slow.on && rate == s->slow.rate))
			return false;
	}
	return true;
}

/* Adds a ring to the solution, if one is found soon. */
static void add_ring(struct sim *s, const struct ccm_problem *p, struct found *f)
{
	uint16_t *ring = f->order + (size_t)f->x.n_rings * p->n;
	uint32_t tries;

	for (tries = 0; tries < 20; tries++) {
		shuffle(s, ring, p->n);
		if (!is_possible(s, p, ring))
			continue;
		f->x.shares[f->x.n_rings++] = (uint16_t)(1 + sim_rnd(s, UINT16_MAX));
		return;
	}
}

static void send_solution(
	struct sim *s, unsigned no, const struct ccm_problem *p, double rate, uint64_t after_ms)
{
	struct sim_event ev = {.kind = SIM_EV_SOLVED, .master = no, .len = sizeof(struct found)};
	struct found *f = calloc(1, sizeof *f);
	uint32_t rings =
		p->max_rings > 1 && sim_chance(s, 60) ? 2 + sim_rnd(s, CC_RINGS_MAX - 1) : 1;

	if (!f)
		abort();
	f->x = (struct ccm_solution){
		.number = p->number, .n = p->n, .rate = rate, .current = GBIT, .bound = 2 * rate};
	for (; rings > 0; rings--)
		add_ring(s, p, f);
	ev.bytes = (uint8_t *)f;
	sim_schedule(s, s->now + after_ms * SIM_MS, ev);
}

static bool has(const struct sim_others *x, const struct cc_id *agent)
{
	uint32_t i;

	for (i = 0; i < x->n; i++)
		if (cc_id_eq(&x->v[i], agent))
			return true;
	return false;
}

struct note {
	struct sim_others *of;
	uint32_t group;
};

static void note_agent(void *arg, const struct ccm_peer_info *p)
{
	struct note *x = arg;

	if (p->rank >= 0 && p->group == x->group && x->of->n < SIM_HOSTS && !has(x->of, &p->agent))
		x->of->v[x->of->n++] = p->agent;
}

void sim_plan_sent(struct sim *s, const struct sim_master *m, const struct sim_conn *c,
	const struct wm_round *r)
{
	const struct sim_others *x;
	uint32_t i, k;
	bool same;

	for (i = 0; i < r->n_rings; i++) {
		const struct wm_ring *g = &r->rings[i];

		if (!g->await_plan)
			continue;
		x = &m->asked[g->group];
		same = x->n == g->hosts && has(x, &g->next.agent);
		for (k = 0; k < g->n_others; k++)
			same &= has(x, &g->others[k].agent);
		if (!same)
			sim_fail(s,
				"%s puts rings of group %u in force on h%u, but it has asked for "
				"rings of other hosts",
				sim_name_master(s, m->no), g->group, c->host);
	}
}

void sim_solve(struct sim *s, unsigned no, const struct ccm_problem *p)
{
	struct note x = {.of = &s->masters[no].asked[p->group], .group = p->group};

	x.of->n = 0;
	ccm_each_peer(s->masters[no].m, sim_clock_now(s, &s->masters[no].clock), note_agent, &x);
	if (p->n > SIM_HOSTS) {
		sim_fail(s, "a problem with %u hosts", p->n);
		return;
	}
	send_solution(s, no, p, sim_chance(s, 80) ? 2 * GBIT : GBIT, 1 + sim_rnd(s, 900));
	if (sim_chance(s, 30))
		send_solution(s, no, p, 3 * GBIT, 1000 + sim_rnd(s, 5000));
}

void sim_solved(struct sim *s, const struct sim_event *ev)
{
	struct ccm_event e = {.type = CCM_EV_SOLVED};
	struct found f;

	if (!s->masters[ev->master].alive)
		return;
	memcpy(&f, ev->bytes, sizeof f);
	f.x.order = f.order;
	e.solution = &f.x;
	sim_master_step(s, ev->master, &e);
}
