/* SPDX-License-Identifier: MIT
 *
 * Measurements that the master orders, and the memory of their results (docs/protocol/topology.md).
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

static bool leads_here(const struct agt *a, const struct wm_measure *m)
{
	uint32_t i;

	for (i = 0; i < m->n_to; i++)
		if (cc_id_eq(&m->to[i].agent, &a->cfg.agent))
			return true;
	for (i = 0; i < m->n_from; i++)
		if (cc_id_eq(&m->from[i], &a->cfg.agent))
			return true;
	return false;
}

bool agt_measure_is_barred(const struct agt_run *r)
{
	const struct agt_op *o;

	DL_FOREACH2 (r->ops, o, next_op)
		if (o->xfer || o->state > AGT_OP_VOTING)
			return true;
	return false;
}

/* Forgets the order. */
static void forget(struct agt_measure *x)
{
	free(x->to);
	*x = (struct agt_measure){.number = 0};
}

/* Sends the results to the master. After that the order only lets others measure. */
static void answer(struct agt *a, struct agt_run *r, const struct wm_measured_result *v)
{
	struct wm_measured *m = &agt_send(a, r, WM_MEASURED)->u.measured;

	m->number = r->measure.number;
	m->n = r->measure.n_to;
	m->results = cc_must_copy(v, m->n, sizeof *v);
	r->measure.n_to = 0;
}

/* Reports that nothing was measured, because an operation uses the network. */
static void answer_barred(struct agt *a, struct agt_run *r)
{
	struct agt_measure *x = &r->measure;
	struct wm_measured_result *v;
	uint32_t i;

	if (x->n_to == 0)
		return;
	v = cc_must_zalloc(x->n_to, sizeof *v);
	for (i = 0; i < x->n_to; i++) {
		v[i].agent = x->to[i];
		agt_copy_text(
			v[i].text, sizeof v[i].text, "an operation is in progress on this host");
	}
	answer(a, r, v);
	free(v);
}

static void copy_order(struct wm_measure *to, const struct wm_measure *from)
{
	*to = *from;
	to->to = cc_must_copy(from->to, from->n_to, sizeof *from->to);
	to->from = cc_must_copy(from->from, from->n_from, sizeof *from->from);
}

static void remember_order(struct agt_measure *x, const struct wm_measure *m)
{
	uint32_t i;

	forget(x);
	x->number = m->number;
	x->hold = m->hold;
	x->n_to = m->n_to;
	x->to = cc_must_zalloc(m->n_to, sizeof *x->to);
	for (i = 0; i < m->n_to; i++)
		x->to[i] = m->to[i].agent;
}

void agt_measure_stop(struct agt *a, struct agt_run *r)
{
	struct agt_action *x;

	if (!r->measure.number)
		return;
	x = agt_emit(a, AGT_ACT_MEASURE_STOP);
	x->run = r->id;
	x->u.measure.number = r->measure.number;
	forget(&r->measure);
}

void agt_measure(struct agt *a, struct agt_run *r, const struct wm_measure *m)
{
	struct agt_action *x;

	if (leads_here(a, m)) {
		agt_run_violation(a, r, "MEASURE that leads from this agent to itself");
		return;
	}
	if (m->n_to == 0 && m->n_from == 0) {
		agt_measure_stop(a, r);
		return;
	}
	if (agt_measure_is_barred(r)) {
		agt_measure_stop(a, r);
		remember_order(&r->measure, m);
		answer_barred(a, r);
		forget(&r->measure);
		return;
	}
	remember_order(&r->measure, m);
	if (m->rounds > 0)
		agt_log(a, AGT_LOG_INFO, "run %u: measuring links: round %u of %u", r->id, m->round,
			m->rounds);
	x = agt_emit(a, AGT_ACT_MEASURE);
	x->run = r->id;
	copy_order(&x->u.measure, m);
}

void agt_measured(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);

	if (!r || r->measure.number != ev->seq || r->measure.n_to != ev->n_measured ||
		ev->n_measured == 0)
		return;
	/* The rates of links that are measured together depend on each other. */
	if (ev->n_measured == 1 && ev->measured->ok && !r->measure.hold)
		agt_rates_put(&a->rates, &(struct agt_rate){ev->measured->agent, ev->measured->rate,
						 ev->measured->trip_us, a->now});
	answer(a, r, ev->measured);
}

/* The agent does not remember such a rate: another master learns it from later operations, and the
 * memory has only what was measured. */
void agt_link_rate(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct wm_rate x = {.agent = ev->peer, .rate = ev->rate, .trip_us = ev->trip_us};
	struct wm_rates *m;

	if (!r || r->state != AGT_RUN_UP)
		return;
	m = &agt_send(a, r, WM_RATES)->u.rates;
	m->passive = true;
	m->n = 1;
	m->rates = cc_must_copy(&x, 1, sizeof x);
}

void agt_measure_settle(struct agt *a, struct agt_run *r)
{
	if (!r->measure.number)
		return;
	if (r->state == AGT_RUN_OVER) {
		forget(&r->measure); /* MASTER_CLOSE has stopped it */
		return;
	}
	if (r->state == AGT_RUN_UP && !agt_measure_is_barred(r))
		return;
	if (r->state == AGT_RUN_UP)
		answer_barred(a, r);
	agt_measure_stop(a, r);
}

void agt_measure_free(struct agt_run *r)
{
	forget(&r->measure);
}

void agt_rates_tell(struct agt *a, struct agt_run *r)
{
	if (a->rates.n > 0 || a->rates.out > 0)
		agt_rates_fill(&a->rates, a->now, &agt_send(a, r, WM_RATES)->u.rates);
}
