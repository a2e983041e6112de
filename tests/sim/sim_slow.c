/* SPDX-License-Identifier: MIT
 *
 * A link that becomes slow. Operations go on over a link of a ring, but for more than half a minute
 * they get an eighth of the rate that was measured. Programs make pauses meanwhile, so that this
 * time costs few events. Checked: when the master has noticed it, the next optimization that
 * succeeds has measured the link again.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim_fault.h"

#define EVERY_S    4  /* between two reports */
#define SLOWER     8  /* times slower than measured */
#define LINKS_MAX  64 /* of all rings */
#define FEW_EVENTS 100

struct end_names {
	char from[WM_NAME_MAX], to[WM_NAME_MAX];
};

struct rings {
	struct end_names v[LINKS_MAX];
	uint32_t n;
};

static void add_link(void *arg, const struct ccm_link_info *l)
{
	struct rings *x = arg;

	if (x->n == LINKS_MAX)
		return;
	(void)snprintf(x->v[x->n].from, sizeof x->v[0].from, "%s", l->from->name);
	(void)snprintf(x->v[x->n++].to, sizeof x->v[0].to, "%s", l->to->name);
}

static bool contains(const struct rings *x, const char *from, const char *to)
{
	uint32_t i;

	for (i = 0; i < x->n; i++)
		if (strcmp(x->v[i].from, from) == 0 && strcmp(x->v[i].to, to) == 0)
			return true;
	return false;
}

static struct rings rings_of(struct sim *s, const struct sim_master *m)
{
	struct rings ret = {.n = 0};

	ccm_each_link(m->m, sim_clock_now(s, &m->clock), add_link, &ret);
	return ret;
}

struct choice {
	struct sim *s;
	const struct rings *rings;
	uint32_t n;
};

/* Each link of a ring with a trusted rate is chosen with the same probability. */
static void choose(void *arg, const struct ccm_rate_info *r)
{
	struct choice *c = arg;

	if (r->confidence == 0 || r->rate < UINT64_C(100000000) ||
		!contains(c->rings, r->from_name, r->to_name) || sim_rnd(c->s, ++c->n) > 0)
		return;
	c->s->slow.from = (unsigned)(r->from_name[1] - '0');
	c->s->slow.to = (unsigned)(r->to_name[1] - '0');
	c->s->slow.rate = r->rate / SLOWER;
	c->s->slow.on = true;
}

static void begin(struct sim *s)
{
	struct choice c = {.s = s};
	struct rings rings;
	const struct sim_master *m;

	if (s->at[s->home] < 0)
		return;
	m = &s->masters[s->at[s->home]];
	rings = rings_of(s, m);
	c.rings = &rings;
	ccm_each_rate(m->m, sim_clock_now(s, &m->clock), choose, &c);
	if (s->slow.on)
		sim_trace(s, "fault: the link from h%u to h%u becomes slow", s->slow.from,
			s->slow.to);
}

/* While an optimization is in progress, no operation is, so nothing is reported. */
static bool is_optimizing(const struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].call.type == SIM_VOTE(WIRE_OPTIMIZE))
			return true;
	return false;
}

static void report(struct sim *s)
{
	struct agt_event e = {.type = AGT_EV_LINK_RATE, .rate = s->slow.rate};
	struct sim_host *h = &s->hosts[s->slow.from];
	unsigned i;

	if (!h->alive || h->frozen_until > s->now || is_optimizing(s))
		return;
	for (i = 0; i < SIM_LINKS; i++) {
		const struct sim_link *l = &s->links[i];

		if (!l->used || !l->up || l->src != s->slow.from || l->dst != s->slow.to ||
			l->src_life != h->life)
			continue;
		e.run = l->src_run;
		e.peer = l->to;
		sim_host_step(s, h, &e);
		return;
	}
}

static void end(struct sim *s)
{
	s->slow.on = s->slow.stale = s->slow.paced = false;
	s->busy_until = s->now;
}

void sim_slow_begin(struct sim *s)
{
	struct sim_event ev = sim_fault_new(FAULT_SLOW_LINK);

	ev.gen = FEW_EVENTS;
	s->slow.paced = true;
	s->busy_until = s->now + 120 * SIM_S;
	sim_schedule(s, s->now + sim_ms(500), ev);
}

void sim_slow_go(struct sim *s, const struct sim_event *ev)
{
	struct sim_event next = *ev;

	if (!s->slow.paced)
		return;
	if (!s->slow.on)
		begin(s);
	else if (!s->slow.stale)
		report(s);
	if (next.gen-- == 0) {
		end(s);
		return;
	}
	sim_schedule(s, s->now + sim_ms(s->slow.on ? EVERY_S * 1000 : 500), next);
}

uint64_t sim_slow_pause(struct sim *s)
{
	return s->slow.paced ? sim_ms(2000 + sim_rnd(s, 4000)) : 0;
}

bool sim_slow_is(const struct sim *s, unsigned from, unsigned to)
{
	return s->slow.on && from == s->slow.from && to == s->slow.to;
}

/* ---- what the master does ---- */

/* The peers of one group: hosts of the ring, as bits. */
struct groups {
	uint32_t hosts[SIM_GROUPS];
};

static void add_host(void *arg, const struct ccm_peer_info *p)
{
	struct groups *x = arg;

	if (p->rank >= 0)
		x->hosts[p->group] |= UINT32_C(1) << (p->host[1] - '0');
}

/* Are both hosts of the link in the ring of a group with three hosts? */
static bool concerns(struct sim *s, const struct sim_master *m)
{
	uint32_t both = UINT32_C(1) << s->slow.from | UINT32_C(1) << s->slow.to, i;
	struct groups x = {{0}};

	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), add_host, &x);
	for (i = 0; i < SIM_GROUPS; i++)
		if ((x.hosts[i] & both) == both && x.hosts[i] != both)
			return true;
	return false;
}

struct found {
	char from[3], to[3];
	uint64_t rate;
};

static void find(void *arg, const struct ccm_rate_info *r)
{
	struct found *x = arg;

	if (strcmp(r->from_name, x->from) == 0 && strcmp(r->to_name, x->to) == 0)
		x->rate = r->rate;
}

static void check_measured(
	struct sim *s, const struct sim_master *m, const char *from, const char *to)
{
	struct found x = {.rate = 0};
	struct rings rings = rings_of(s, m);

	(void)snprintf(x.from, sizeof x.from, "%s", from);
	(void)snprintf(x.to, sizeof x.to, "%s", to);
	ccm_each_rate(m->m, sim_clock_now(s, &m->clock), find, &x);
	if (x.rate > s->slow.rate)
		sim_fail(s,
			"%s has optimized the topology with the rate that the link from %s to %s "
			"had before it became slow",
			sim_name_master(s, m->no), from, to);
	s->seen[SEEN_MEASURED_AGAIN]++;
	s->seen[SEEN_AVOIDED] += !contains(&rings, from, to);
	end(s);
}

void sim_slow_log(struct sim *s, const struct sim_master *m, const char *text)
{
	char from[] = {'h', (char)('0' + s->slow.from), '\0'};
	char to[] = {'h', (char)('0' + s->slow.to), '\0'}, line[80];

	if (!s->slow.on)
		return;
	(void)snprintf(
		line, sizeof line, "the link from host %s to host %s has become slow", from, to);
	if (strstr(text, line)) {
		s->slow.stale = true;
		s->slow.master = m->no;
	}
	if (s->slow.stale && s->slow.master == m->no && strstr(text, "the topology is optimized") &&
		concerns(s, m))
		check_measured(s, m, from, to);
}
