/* SPDX-License-Identifier: MIT
 *
 * The bandwidth store in the journal. One record has the whole store. It is not written while
 * operations wait for it: after measurements, and otherwise at most once a minute.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

#define SAVE_NS  (UINT64_C(60000) * CCM_NS_PER_MS)
#define NOWHERE  UINT32_MAX
#define NS_PER_S UINT64_C(1000000000)

/* ---- writing ---- */

static uint32_t age_s(const struct ccm *m, uint64_t ns)
{
	uint64_t s = ccm_rate_age(m->now, ns) / NS_PER_S;

	return s < UINT32_MAX ? (uint32_t)s : UINT32_MAX;
}

/* Only a host with a place can be found again by its next agent. */
static void list_hosts(struct ccm *m, struct wj_record *r)
{
	struct ccm_store_host *x;
	struct wj_host *h;

	r->hosts = cc_must_zalloc(HASH_COUNT(m->store.hosts), sizeof *r->hosts);
	for (x = m->store.hosts; x; x = x->hh.next) {
		x->saved_at = NOWHERE;
		if (!x->placed || r->n_hosts == WJ_HOSTS_MAX)
			continue;
		x->saved_at = r->n_hosts;
		h = &r->hosts[r->n_hosts++];
		h->agent = x->agent;
		ccm_copy(h->name, sizeof h->name, x->key.name);
		h->addr = x->key.addr;
		if (!x->has_cap)
			continue;
		h->out = x->cap.out;
		h->in = x->cap.in;
		h->caps_age_s = age_s(m, x->cap.origin.ns);
		h->caps_source = x->cap.origin.source;
		h->caps_confidence = x->cap.origin.confidence;
		h->caps_stale = x->cap.origin.stale;
	}
}

static void list_rates(const struct ccm *m, struct wj_record *r)
{
	const struct ccm_rate *x;

	r->rates = cc_must_zalloc(HASH_COUNT(m->store.rates), sizeof *r->rates);
	for (x = m->store.rates; x; x = x->hh.next)
		if (x->key.from->saved_at != NOWHERE && x->key.to->saved_at != NOWHERE)
			r->rates[r->n_rates++] = (struct wj_rate){.from = x->key.from->saved_at,
				.to = x->key.to->saved_at,
				.rate = x->v.rate,
				.trip_us = x->v.trip_us,
				.age_s = age_s(m, x->v.origin.ns),
				.source = x->v.origin.source,
				.confidence = x->v.origin.confidence,
				.stale = x->v.origin.stale};
}

void ccm_store_save(struct ccm *m)
{
	struct wj_record *r;

	if (!m->store.unsaved || !ccm_journal_writes(m))
		return;
	m->store.unsaved = false;
	m->store.saved_ns = m->now;
	r = ccm_journal_action(m);
	*r = (struct wj_record){.type = WJ_RATES};
	list_hosts(m, r);
	list_rates(m, r);
}

void ccm_store_tick(struct ccm *m)
{
	if (ccm_age(m->now, m->store.saved_ns) >= SAVE_NS)
		ccm_store_save(m);
}

/* ---- reading ---- */

void ccm_store_keep(struct ccm *m, const struct wj_record *r)
{
	wire_journal_clear(&m->saved_rates);
	m->saved_rates = *r;
	m->saved_rates.hosts = cc_must_copy(r->hosts, r->n_hosts, sizeof *r->hosts);
	m->saved_rates.rates = cc_must_copy(r->rates, r->n_rates, sizeof *r->rates);
}

static void restore_cap(struct ccm *m, const struct wj_host *h)
{
	if (h->out > 0 || h->in > 0)
		ccm_cap_put(m, &h->agent,
			&(struct ccm_cap){.out = h->out,
				.in = h->in,
				.origin = {.ns = ccm_rate_ns(m, h->caps_age_s),
					.confidence = h->caps_confidence,
					.source = (enum ccm_rate_source)h->caps_source,
					.stale = h->caps_stale}});
}

void ccm_store_restore(struct ccm *m)
{
	const struct wj_record *r = &m->saved_rates;
	struct ccm_store_host *x;
	uint32_t i;

	for (i = 0; i < r->n_rates; i++) {
		const struct wj_rate *v = &r->rates[i];

		ccm_rate_put(m, &r->hosts[v->from].agent, &r->hosts[v->to].agent,
			&(struct ccm_measured){.rate = v->rate,
				.trip_us = v->trip_us,
				.origin = {.ns = ccm_rate_ns(m, v->age_s),
					.confidence = v->confidence,
					.source = (enum ccm_rate_source)v->source,
					.stale = v->stale}});
	}
	for (i = 0; i < r->n_hosts; i++) {
		const struct wj_host *h = &r->hosts[i];

		restore_cap(m, h);
		x = ccm_host_find(m, &h->agent);
		if (x)
			ccm_host_place(m, x, h->name, &h->addr, h->addr.port);
	}
	if (r->n_rates > 0)
		ccm_log(m, CCM_LOG_NOTICE, "the journal has the rates of %u links between %u hosts",
			r->n_rates, r->n_hosts);
	m->store.unsaved = false;
	wire_journal_clear(&m->saved_rates);
}
