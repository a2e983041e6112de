/* SPDX-License-Identifier: MIT
 *
 * The topology for operators: rings, plans, and what links and hosts can carry.
 */
#include "ccoip-masterd/core/ccm_internal.h"

const char *ccm_rate_source_name(enum ccm_rate_source s)
{
	static const char *const names[] = {[CCM_RATE_BENCHMARK] = "benchmark",
		[CCM_RATE_AGENT] = "agent",
		[CCM_RATE_UNREACHABLE] = "unreachable",
		[CCM_RATE_OPERATIONS] = "operations"};

	return names[s];
}

void ccm_note_rate(struct ccm *m, const struct ccm_op *o, uint64_t bytes)
{
	struct ccm_group *g = o->group;
	uint64_t ns = ccm_age(m->now, o->started_ns);

	if (bytes < CCM_NOTED_BYTES || g->n_ring < 2 || ns == 0)
		return;
	/* What each host has sent. */
	g->achieved = (double)bytes * 8 * 2 * (g->n_ring - 1) / g->n_ring * 1e9 / (double)ns;
}

void ccm_each_plan(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_plan_info *p), void *arg)
{
	const struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next) {
		struct ccm_plan_info x = {.group = g->id,
			.hosts = g->n_ring,
			.rings = g->rings ? g->rings->n : g->n_ring > 1,
			.rate = g->plan.rate,
			.bound = g->plan.bound,
			.searching = g->searching && g->plan.bound > 0,
			.better = ccm_plan_fits(m, g, &g->better) ? g->better.rate : 0,
			.achieved = g->achieved};

		if (g->n_ring > 0)
			fn(arg, &x);
	}
}

static const struct ccm_measured *rate_of(const struct ccm *m, const struct ccm_link_info *x)
{
	return ccm_rate_get(m, &x->from->agent, &x->to->agent);
}

/* Shows one ring of g: `order` has its positions, or is NULL for the ring itself. */
static void each_link(const struct ccm *m, const struct ccm_group *g, uint64_t now,
	const uint8_t *order, struct ccm_link_info *x,
	void (*fn)(void *arg, const struct ccm_link_info *l), void *arg)
{
	const struct ccm_measured *v;
	uint64_t least = UINT64_MAX;
	uint32_t i, pass, next, n = g->n_ring;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < n; i++) {
			next = (i + 1) % n;
			x->from = &g->ring[order ? order[i] : i]->agent->hello;
			x->to = &g->ring[order ? order[next] : next]->agent->hello;
			v = rate_of(m, x);
			if (pass == 0 && v && v->rate < least)
				least = v->rate;
			if (pass == 0)
				continue;
			x->pos = i;
			x->known = v != NULL;
			x->rate = v ? v->rate : 0;
			x->trip_us = v ? v->trip_us : 0;
			x->age_ns = v ? ccm_rate_age(now, v->origin.ns) : 0;
			x->bottleneck = v && v->rate == least;
			fn(arg, x);
		}
	}
}

void ccm_each_link(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_link_info *l), void *arg)
{
	const struct ccm_group *g;
	struct ccm_link_info x;
	double sum;
	uint32_t r;

	for (g = m->groups; g; g = g->hh.next) {
		x = (struct ccm_link_info){.group = g->id, .share = 1};
		if (g->n_ring < 2)
			continue;
		if (!g->rings) {
			each_link(m, g, now_ns, NULL, &x, fn, arg);
			continue;
		}
		for (sum = 0, r = 0; r < g->rings->n; r++)
			sum += g->rings->share[r];
		for (r = 0; r < g->rings->n; r++) {
			x.ring = r;
			x.share = g->rings->share[r] / sum;
			each_link(m, g, now_ns, g->rings->order[r], &x, fn, arg);
		}
	}
}

static const char *host_name(const struct ccm *m, const struct cc_id *id)
{
	const struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, id, sizeof *id, a);
	return a ? a->hello.name : "";
}

void ccm_each_rate(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_rate_info *r), void *arg)
{
	const struct ccm_rate *x;

	for (x = m->store.rates; x; x = x->hh.next) {
		struct ccm_rate_info i = {.from = x->key.from->agent,
			.to = x->key.to->agent,
			.from_name = host_name(m, &x->key.from->agent),
			.to_name = host_name(m, &x->key.to->agent),
			.rate = x->v.rate,
			.trip_us = x->v.trip_us,
			.age_ns = ccm_rate_age(now_ns, x->v.origin.ns),
			.source = ccm_rate_source_name(x->v.origin.source),
			.confidence = ccm_confidence(&x->v.origin, now_ns)};

		fn(arg, &i);
	}
}

void ccm_each_cap(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_cap_info *c), void *arg)
{
	const struct ccm_store_host *x;

	DL_FOREACH2 (m->store.capped, x, next_c) {
		struct ccm_cap_info i = {.host = x->agent,
			.name = host_name(m, &x->agent),
			.out = x->cap.out,
			.in = x->cap.in,
			.age_ns = ccm_rate_age(now_ns, x->cap.origin.ns),
			.source = ccm_rate_source_name(x->cap.origin.source),
			.confidence = ccm_confidence(&x->cap.origin, now_ns)};

		fn(arg, &i);
	}
}
