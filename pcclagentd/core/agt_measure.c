/* SPDX-License-Identifier: MIT
 *
 * Measurements that the master orders, and the memory of their results (docs/protocol/topology.md).
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

#define OPERATION "an operation is in progress on this host"

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

static bool uses_network(const struct agt_op *o)
{
	const struct agt_group *g = agt_group_find(o->run, o->key.group);

	return (o->xfer || o->state > AGT_OP_VOTING) && !(g && g->has_ring && g->ring.hosts == 1);
}

bool agt_network_is_in_use(const struct agt *a)
{
	const struct agt_run *r;
	const struct agt_op *o;

	for (r = a->runs; r; r = r->hh.next)
		DL_FOREACH2 (r->ops, o, next_op)
			if (uses_network(o))
				return true;
	return false;
}

/* Returns why r cannot measure now, or NULL. */
static const char *objection(const struct agt *a, const struct agt_run *r)
{
	const struct agt_run *other;

	if (agt_network_is_in_use(a))
		return OPERATION;
	for (other = a->runs; other; other = other->hh.next)
		if (other != r && other->measure.number)
			return "another run measures links of this host";
	return NULL;
}

/* Shows the round to the processes. */
static void show(struct agt *a, struct agt_run *r)
{
	struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r)
		agt_comm_publish(a, c);
}

void agt_measure_free(struct agt_run *r)
{
	free(r->measure.to);
	r->measure = (struct agt_measure){.number = 0};
}

static void forget(struct agt *a, struct agt_run *r)
{
	agt_measure_free(r);
	show(a, r);
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

/* Reports that nothing was measured, because the network of this host is in use. */
static void answer_busy(struct agt *a, struct agt_run *r, const char *text)
{
	struct agt_measure *x = &r->measure;
	struct wm_measured_result *v;
	uint32_t i;

	if (x->n_to == 0)
		return;
	v = cc_must_zalloc(x->n_to, sizeof *v);
	for (i = 0; i < x->n_to; i++) {
		v[i].agent = x->to[i];
		v[i].busy = true;
		agt_copy_text(v[i].text, sizeof v[i].text, text);
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

static void remember_order(struct agt_run *r, const struct wm_measure *m)
{
	struct agt_measure *x = &r->measure;
	uint32_t i;

	agt_measure_free(r);
	x->number = m->number;
	x->round = m->round;
	x->rounds = m->rounds;
	x->hold = m->hold;
	x->host = m->host;
	x->n_to = m->n_to;
	x->to = cc_must_zalloc(m->n_to, sizeof *x->to);
	for (i = 0; i < m->n_to; i++)
		x->to[i] = m->to[i].agent;
}

static void emit(struct agt *a, const struct agt_run *r, enum agt_action_type type, uint64_t number)
{
	struct agt_action *x = agt_emit(a, type);

	x->run = r->id;
	x->u.measure.number = number;
}

void agt_measure_stop(struct agt *a, struct agt_run *r)
{
	if (!r->measure.number)
		return;
	emit(a, r, AGT_ACT_MEASURE_STOP, r->measure.number);
	forget(a, r);
}

/* Answers the order, and lets the agents that send to this one know. */
static void refuse(struct agt *a, struct agt_run *r, const struct wm_measure *m, const char *text)
{
	struct wm_measure senders = *m;
	struct agt_action *x;

	agt_measure_stop(a, r);
	if (m->n_from > 0) {
		senders.n_to = 0;
		x = agt_emit(a, AGT_ACT_MEASURE);
		x->run = r->id;
		copy_order(&x->u.measure, &senders);
		emit(a, r, AGT_ACT_MEASURE_BUSY, m->number);
	}
	remember_order(r, m);
	answer_busy(a, r, text);
	forget(a, r);
}

void agt_measure(struct agt *a, struct agt_run *r, const struct wm_measure *m)
{
	struct agt_action *x;
	const char *text;

	if (leads_here(a, m)) {
		agt_run_violation(a, r, "MEASURE that leads from this agent to itself");
		return;
	}
	if (m->n_to == 0 && m->n_from == 0) {
		agt_measure_stop(a, r);
		return;
	}
	text = objection(a, r);
	if (text) {
		refuse(a, r, m, text);
		return;
	}
	remember_order(r, m);
	show(a, r);
	if (m->rounds > 0)
		agt_log(a, AGT_LOG_INFO, "run %u: measuring links: round %u of %u", r->id, m->round,
			m->rounds);
	x = agt_emit(a, AGT_ACT_MEASURE);
	x->run = r->id;
	copy_order(&x->u.measure, m);
}

static void remember(struct agt *a, const struct agt_run *r, const struct wm_measured_result *x)
{
	struct agt_rate v = {.v = {.agent = x->agent,
				     .rate = x->rate,
				     .trip_us = x->trip_us,
				     .confidence = x->confidence,
				     .host = r->measure.host},
		.when_ns = a->now};

	agt_rates_put(&a->rates, &v);
}

void agt_measured(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);

	if (!r || r->measure.number != ev->seq || r->measure.n_to != ev->n_measured ||
		ev->n_measured == 0)
		return;
	/* The rates of links that are measured together depend on each other. */
	if (ev->n_measured == 1 && ev->measured->ok && !r->measure.hold)
		remember(a, r, ev->measured);
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
		forget(a, r); /* MASTER_CLOSE has stopped it */
		return;
	}
	if (r->state != AGT_RUN_UP) {
		agt_measure_stop(a, r);
		return;
	}
	if (!agt_network_is_in_use(a))
		return;
	answer_busy(a, r, OPERATION);
	emit(a, r, AGT_ACT_MEASURE_BUSY, r->measure.number);
	forget(a, r);
}

void agt_rates_tell(struct agt *a, struct agt_run *r)
{
	if (a->rates.n > 0 || a->rates.out > 0)
		agt_rates_fill(&a->rates, a->now, &agt_send(a, r, WM_RATES)->u.rates);
}
