/* SPDX-License-Identifier: MIT
 *
 * The bandwidth store: what links between hosts, and hosts as a whole, can carry. Hosts are named
 * by the ids of their agents. Agents keep what they have measured, and tell each master. They also
 * tell what links carry in operations (docs/protocol/topology.md, passive rates).
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* Nobody knows what a network carries after this time. */
#define TRUSTED_NS (UINT64_C(3600000) * CCM_NS_PER_MS)
/* An unreachable host is tried again after this time. */
#define UNREACHABLE_NS (UINT64_C(60000) * CCM_NS_PER_MS)
#define RATES_MAX      65536u
/* A link whose operations get less than half of what is expected for this long has become slow. */
#define SLOW_NS (UINT64_C(30000) * CCM_NS_PER_MS)
/* A rate is raised if operations get more than this part of it. */
#define RAISED 1.1
/* Rings use a whole link if they want at least this part of its rate. */
#define WHOLE 0.9
/* A rate or a cap that operations have raised may still be too low. */
#define RAISED_CONFIDENCE 50u
/* Agents send the ages of their measurements in whole seconds. */
#define AGE_ERROR_NS (UINT64_C(2000) * CCM_NS_PER_MS)

static struct ccm_rate *rate_find(
	const struct ccm *m, const struct cc_id *from, const struct cc_id *to)
{
	struct ccm_rate_key key = {ccm_host_find(m, from), ccm_host_find(m, to)};
	struct ccm_rate *x;

	HASH_FIND(hh, m->store.rates, &key, sizeof key, x);
	return x;
}

static void rate_free(struct ccm *m, struct ccm_rate *x)
{
	struct ccm_rate_key key = x->key;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->store.rates, x);
	free(x);
	key.from->n_rates--;
	key.to->n_rates--;
	ccm_host_release(m, key.from);
	ccm_host_release(m, key.to);
}

static struct ccm_rate *rate_add(struct ccm *m, const struct cc_id *from, const struct cc_id *to)
{
	struct ccm_rate *x;

	if (HASH_COUNT(m->store.rates) >= RATES_MAX)
		rate_free(m, m->store.rates);
	x = cc_must_zalloc(1, sizeof *x);
	x->key.from = ccm_host_get(m, from);
	x->key.to = ccm_host_get(m, to);
	x->key.from->n_rates++;
	x->key.to->n_rates++;
	HASH_ADD(hh, m->store.rates, key, sizeof x->key, x);
	return x;
}

void ccm_rate_put(struct ccm *m, const struct cc_id *from, const struct cc_id *to,
	const struct ccm_measured *v)
{
	struct ccm_rate *x = rate_find(m, from, to);

	if (cc_id_eq(from, to)) /* an agent tells nonsense */
		return;
	if (!x)
		x = rate_add(m, from, to);
	m->store.unsaved = true;
	m->n_links_changed += x->v.rate != v->rate || x->v.trip_us != v->trip_us;
	x->v = *v;
	x->slow_ns = x->slow_last_ns = 0;
}

const struct ccm_measured *ccm_rate_get(
	const struct ccm *m, const struct cc_id *from, const struct cc_id *to)
{
	const struct ccm_rate *x = rate_find(m, from, to);

	return x ? &x->v : NULL;
}

uint32_t ccm_confidence(const struct ccm_origin *o, uint64_t now_ns)
{
	uint64_t age = ccm_rate_age(now_ns, o->ns);
	uint64_t longest = o->source == CCM_RATE_UNREACHABLE ? UNREACHABLE_NS : TRUSTED_NS;
	uint64_t lost = age < longest ? CCM_SURE * age / longest : CCM_SURE;

	return !o->stale && o->confidence > lost ? o->confidence - (uint32_t)lost : 0;
}

bool ccm_rate_is_trusted(const struct ccm *m, const struct cc_id *from, const struct cc_id *to)
{
	const struct ccm_measured *v = ccm_rate_get(m, from, to);

	return v && ccm_confidence(&v->origin, m->now) > 0;
}

static uint64_t age_ns(uint32_t age_s)
{
	return age_s * UINT64_C(1000000000);
}

uint64_t ccm_rate_ns(const struct ccm *m, uint32_t age_s)
{
	return m->now - age_ns(age_s);
}

/* Does an agent tell of a measurement that the master knows? It may be marked as stale since. Ages
 * do not show this, because the clocks of the two hosts differ. */
static bool is_same(const struct ccm_measured *v, const struct wm_rate *r)
{
	return v->rate == r->rate && v->trip_us == r->trip_us;
}

/* Is a measurement older than one of which an agent tells? */
static bool is_older(const struct ccm *m, const struct ccm_origin *o, uint32_t age_s)
{
	return ccm_rate_age(m->now, o->ns) > age_ns(age_s) + AGE_ERROR_NS;
}

/* The next agent of this host continues with the rate, if `to` is not connected. */
static void put_named(struct ccm *m, const struct ccm_agent *a, const struct cc_id *to,
	const struct wm_host *h, const struct ccm_measured *v)
{
	struct ccm_store_host *x;

	ccm_rate_put(m, &a->hello.agent, to, v);
	x = ccm_host_find(m, to);
	if (x && h->addr.family)
		ccm_host_place(m, x, h->name, &h->addr, h->addr.port);
}

static void learn_caps(struct ccm *m, const struct ccm_agent *a, const struct wm_rates *r)
{
	const struct ccm_cap *old = ccm_cap_get(m, &a->hello.agent);
	struct ccm_cap v = {.out = r->out,
		.in = r->in,
		.origin = {.ns = ccm_rate_ns(m, r->caps_age_s),
			.confidence = CCM_SURE,
			.source = CCM_RATE_AGENT}};

	if (r->out == 0 || ccm_confidence(&v.origin, m->now) == 0)
		return;
	if (!old || ((old->out != v.out || old->in != v.in) &&
			    is_older(m, &old->origin, r->caps_age_s)))
		ccm_cap_put(m, &a->hello.agent, &v);
}

void ccm_rates_learn(struct ccm *m, const struct ccm_agent *a, const struct wm_rates *r)
{
	const struct ccm_measured *old;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		const struct wm_rate *x = &r->rates[i];
		const struct cc_id *to = ccm_host_agent(m, &x->agent, &x->host);
		struct ccm_measured v = {.rate = x->rate,
			.trip_us = x->trip_us,
			.origin = {.ns = ccm_rate_ns(m, x->age_s),
				.confidence = x->confidence,
				.source = x->rate > 0 ? CCM_RATE_AGENT : CCM_RATE_UNREACHABLE}};

		old = ccm_rate_get(m, &a->hello.agent, to);
		if (!old || (!is_same(old, x) && is_older(m, &old->origin, x->age_s)))
			put_named(m, a, to, &x->host, &v);
	}
	learn_caps(m, a, r);
}

/* ---- what links carry in operations ---- */

/* How the plans in force use a link. */
struct use {
	bool member;   /* both hosts are in the ring of a group */
	bool in_rings; /* a ring contains the link */
	bool unknown;  /* nothing is predicted for one of these rings */
	double wanted; /* what is predicted for these rings together, in bit/s */
};

static bool leads_to(const struct ccm_membership *s, const struct ccm_membership *to, uint32_t ring)
{
	const struct ccm_group *g = s->group;
	const struct cc_rings *x = g->rings;
	uint32_t next = x ? x->order[ring][(x->at[ring][s->pos] + 1u) % x->hosts]
			  : (s->pos + 1) % g->n_ring;

	return g->ring[next] == to;
}

static void add_use(
	struct use *u, const struct ccm_membership *from, const struct ccm_membership *to)
{
	const struct ccm_group *g = from->group;
	double all = 0, part = 0, share;
	uint32_t r;

	u->member = true;
	if (g->rings && g->rings->hosts != g->n_ring)
		return; /* until the next round */
	for (r = 0; r < (g->rings ? g->rings->n : 1); r++) {
		share = g->rings ? g->rings->share[r] : 1;
		all += share;
		part += leads_to(from, to, r) ? share : 0;
	}
	if (part <= 0)
		return;
	u->in_rings = true;
	u->unknown |= g->plan.rate <= 0;
	u->wanted += part / all * g->plan.rate;
}

static struct use use_of(
	const struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	const struct ccm_membership *s, *t;
	struct use ret = {.wanted = 0};

	DL_FOREACH2 (from->memberships, s, next_a) {
		t = ccm_membership_of(m, to, s->group->id);
		if (s->in_ring && t && t->in_ring)
			add_use(&ret, s, t);
	}
	return ret;
}

/* A host can carry at least what one of its links has carried. */
static void raise_cap(struct ccm_cap *cap, uint64_t *value, uint64_t rate)
{
	if (*value >= rate)
		return;
	*value = rate;
	cap->origin.source = CCM_RATE_OPERATIONS;
	if (cap->origin.confidence > RAISED_CONFIDENCE)
		cap->origin.confidence = RAISED_CONFIDENCE;
}

static void raise_caps(
	struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to, uint64_t rate)
{
	struct ccm_store_host *out = ccm_host_find(m, &from->hello.agent);
	struct ccm_store_host *in = ccm_host_find(m, &to->hello.agent);

	if (out && out->has_cap)
		raise_cap(&out->cap, &out->cap.out, rate);
	if (in && in->has_cap)
		raise_cap(&in->cap, &in->cap.in, rate);
}

/* A link can carry at least what it has carried. But a link that was never measured may be able to
 * carry more, so the next optimization measures it. */
static void raise_rate(struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to,
	const struct wm_rate *r)
{
	const struct ccm_measured *old = ccm_rate_get(m, &from->hello.agent, &to->hello.agent);
	struct ccm_measured v = {.rate = r->rate,
		.trip_us = old && old->trip_us > 0 ? old->trip_us : r->trip_us,
		.origin = {.ns = m->now,
			.confidence = RAISED_CONFIDENCE,
			.source = CCM_RATE_OPERATIONS,
			.stale = !old || old->origin.stale || old->rate == 0}};

	ccm_rate_put(m, &from->hello.agent, &to->hello.agent, &v);
	raise_caps(m, from, to, r->rate);
}

/* A report by which operations get less than half of `expected`. */
static void slow(struct ccm *m, struct ccm_rate *x, const struct ccm_agent *from,
	const struct ccm_agent *to, uint64_t rate, double expected)
{
	uint64_t ns;

	if (!x->slow_ns || ccm_age(m->now, x->slow_last_ns) > SLOW_NS)
		x->slow_ns = m->now;
	x->slow_last_ns = m->now;
	ns = ccm_age(m->now, x->slow_ns);
	if (ns < SLOW_NS)
		return;
	x->v.origin.stale = true;
	m->store.unsaved = true;
	ccm_log(m, CCM_LOG_WARNING,
		"the link from host %s to host %s has become slow: for %.0f s operations have got "
		"%.1f Mbit/s, less than half of the %.1f Mbit/s that %s; check the network between "
		"these hosts, and call pcclOptimizeTopology, which measures the link again",
		from->hello.name, to->hello.name, (double)ns / 1e9, (double)rate / 1e6,
		expected / 1e6,
		expected < (double)x->v.rate * WHOLE ? "its rings need" : "it could carry before");
}

static void carried(struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to,
	const struct wm_rate *r)
{
	struct ccm_rate *x = rate_find(m, &from->hello.agent, &to->hello.agent);
	double rate = (double)r->rate, stored = x ? (double)x->v.rate : 0, expected = stored;
	struct use u = use_of(m, from, to);

	if (!u.member)
		return;
	if (rate > stored * RAISED) {
		raise_rate(m, from, to, r);
		return;
	}
	if (!x || x->v.origin.stale)
		return;
	if (u.in_rings && !u.unknown && u.wanted < stored)
		expected = u.wanted;
	if (u.in_rings && rate < expected / 2) {
		slow(m, x, from, to, r->rate, expected);
		return;
	}
	x->slow_ns = 0;
	/* A link of which the rings want only a part has not shown what it can carry. */
	if (rate >= stored || (u.in_rings && expected >= stored * WHOLE)) {
		x->v.origin.ns = m->now;
		m->store.unsaved = true;
	}
}

void ccm_rates_carried(struct ccm *m, const struct ccm_agent *a, const struct wm_rates *r)
{
	struct ccm_agent *to;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		HASH_FIND(hh_id, m->by_id, &r->rates[i].agent, sizeof(struct cc_id), to);
		if (to && to != a)
			carried(m, a, to, &r->rates[i]);
	}
}

void ccm_rates_forget(struct ccm *m)
{
	struct ccm_store_host *h;
	struct ccm_rate *x;

	for (x = m->store.rates; x; x = x->hh.next)
		x->v.origin.stale = true;
	DL_FOREACH2 (m->store.capped, h, next_c)
		h->cap.origin.stale = true;
	m->store.unsaved = true;
}

/* ---- caps ---- */

static void cap_drop(struct ccm *m, struct ccm_store_host *x)
{
	DL_DELETE2(m->store.capped, x, prev_c, next_c);
	m->store.n_capped--;
	x->has_cap = false;
	x->cap = (struct ccm_cap){0};
	ccm_host_release(m, x);
}

void ccm_cap_put(struct ccm *m, const struct cc_id *host, const struct ccm_cap *v)
{
	struct ccm_store_host *x = ccm_host_get(m, host);

	if (!x->has_cap) {
		x->has_cap = true;
		DL_APPEND2(m->store.capped, x, prev_c, next_c);
		if (++m->store.n_capped > RATES_MAX)
			cap_drop(m, m->store.capped);
	}
	m->store.unsaved = true;
	m->n_links_changed += x->cap.out != v->out || x->cap.in != v->in;
	x->cap = *v;
}

const struct ccm_cap *ccm_cap_get(const struct ccm *m, const struct cc_id *host)
{
	const struct ccm_store_host *x = ccm_host_find(m, host);

	return x && x->has_cap ? &x->cap : NULL;
}

bool ccm_cap_is_trusted(const struct ccm *m, const struct cc_id *host)
{
	const struct ccm_cap *x = ccm_cap_get(m, host);

	return x && ccm_confidence(&x->origin, m->now) > 0;
}

void ccm_rates_free(struct ccm *m)
{
	while (m->store.rates)
		rate_free(m, m->store.rates);
	while (m->store.capped)
		cap_drop(m, m->store.capped);
}
