/* SPDX-License-Identifier: MIT
 *
 * Optimizations: what happens between the last vote of pcclOptimizeTopology and its answer.
 * docs/protocol/topology.md has the rules.
 *
 *   MEASURING  agents measure what the store lacks: links, and what hosts can carry
 *              (ccm_measure.c)
 *   SOLVING    the caller of the core looks for better plans, one for each group
 *   REWIRING   a round puts the plans in force
 *   DONE, FAILED
 *              the ballot ends as soon as all agents have the same view
 *
 * A loss, a disconnected agent or a failed link ends the optimization. The old plan stays in force.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* The plan in force is kept unless the new one is predicted to be better by this many percent. */
#define GAIN_PERCENT 2
#define LOG_MS       60000u /* a failure that is repeated is logged this often */
#define REPEAT_MS    500u   /* the least time between two failures */
#define LOST         "a peer, a host or a link was lost meanwhile"

static bool is_busy(const struct ccm_optimize *x)
{
	return x->phase == CCM_OPTIMIZE_MEASURING || x->phase == CCM_OPTIMIZE_SOLVING ||
	       x->phase == CCM_OPTIMIZE_REWIRING;
}

static void set_phase(struct ccm *m, enum ccm_optimize_phase phase)
{
	struct ccm_peer *p;

	m->optimize.phase = phase;
	for (p = m->peers; p; p = p->hh.next)
		ccm_peer_refresh(m, p);
}

static void withdraw_proposals(struct ccm *m)
{
	struct ccm_group *g;

	for (g = m->groups; m->n_proposed > 0 && g; g = g->hh.next)
		ccm_plan_withdraw(m, g);
}

void ccm_optimize_fail(struct ccm *m, const char *text)
{
	struct ccm_optimize *x = &m->optimize;

	if (strcmp(x->text, text) != 0 || !x->logged_ns ||
		ccm_age(m->now, x->logged_ns) > LOG_MS * CCM_NS_PER_MS) {
		x->logged_ns = m->now;
		ccm_log(m, CCM_LOG_WARNING, "the rings stay as they are, because %s failed: %s",
			is_busy(x) ? "pcclOptimizeTopology has" : "the change to better ones has",
			text);
	}
	m->round.stale |= m->round.active && m->n_proposed > 0;
	withdraw_proposals(m);
	if (!is_busy(x)) /* a topology vote has proposed a better solution */
		return;
	ccm_print(x->text, sizeof x->text, "%s", text);
	ccm_measure_stop(m);
	ccm_measure_free(m);
	set_phase(m, CCM_OPTIMIZE_FAILED);
}

/* ---- solving ---- */

static uint64_t rate_between(
	const struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	const struct ccm_measured *v = ccm_rate_get(m, &from->hello.agent, &to->hello.agent);

	return v && !ccm_pair_is_known(m, from->no, to->no) ? v->rate : 0;
}

static void fill_problem(struct ccm *m, const struct ccm_group *g, struct ccm_problem *x)
{
	const struct ccm_measured *v;
	const struct ccm_cap *cap;
	uint32_t i, k, n = g->n_ring;

	*x = (struct ccm_problem){.number = g->problem, .group = g->id, .n = n};
	x->max_rings = ccm_mesh_is_wanted(m, n) ? CC_RINGS_MAX : 1;
	x->rates = cc_must_zalloc((size_t)n * n, sizeof *x->rates);
	x->trips_us = cc_must_zalloc((size_t)n * n, sizeof *x->trips_us);
	x->out = cc_must_zalloc(n, sizeof *x->out);
	x->in = cc_must_zalloc(n, sizeof *x->in);
	for (i = 0; i < n; i++) {
		const struct ccm_agent *a = g->ring[i]->agent;

		cap = ccm_cap_get(m, &a->hello.agent);
		x->out[i] = cap ? cap->out : 0;
		x->in[i] = cap ? cap->in : 0;
		for (k = 0; k < n; k++) {
			const struct ccm_agent *b = g->ring[k]->agent;

			if (i == k)
				continue;
			v = ccm_rate_get(m, &a->hello.agent, &b->hello.agent);
			x->rates[i * n + k] = rate_between(m, a, b);
			x->trips_us[i * n + k] = v ? v->trip_us : 0;
		}
	}
	if (g->rings && g->rings->hosts == n)
		x->current = *g->rings;
}

/* Predicts the rate of a direct exchange, in the same unit as that of a plan: what a host sends. A
 * link carries one part of n - 1. Returns 0 if the rate of a link is not known. */
static double direct_rate(const struct ccm_problem *x)
{
	uint64_t least = UINT64_MAX, cap = UINT64_MAX;
	uint32_t i, k;

	for (i = 0; i < x->n; i++) {
		for (k = 0; k < x->n; k++)
			if (i != k && x->rates[i * x->n + k] < least)
				least = x->rates[i * x->n + k];
		if (x->out[i] > 0 && x->out[i] < cap)
			cap = x->out[i];
		if (x->in[i] > 0 && x->in[i] < cap)
			cap = x->in[i];
	}
	return (double)least * (x->n - 1) < (double)cap ? (double)least * (x->n - 1) : (double)cap;
}

static void note_hosts(struct ccm_group *g)
{
	uint32_t i;

	free(g->asked);
	g->asked = cc_must_zalloc(g->n_ring, sizeof *g->asked);
	for (g->n_asked = 0; g->n_asked < g->n_ring; g->n_asked++) {
		i = g->n_asked;
		g->asked[i] = g->ring[i]->agent->hello.agent;
	}
}

static bool propose_better(struct ccm *m, struct ccm_group *g)
{
	bool ok = g->better.n > 0 && ccm_plan_propose(m, g, &g->better);

	g->better.n = 0;
	return ok;
}

/* Would the solver find the plan in force again? */
static bool is_solved(const struct ccm *m, const struct ccm_group *g)
{
	return g->solved_epoch == m->epoch && g->solved_links == m->n_links_changed &&
	       g->better.n == 0;
}

static void note_solved(struct ccm *m)
{
	struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next)
		if (ccm_measure_wants(g))
			g->solved_epoch = m->epoch;
}

static void solve(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_problem *p;
	struct ccm_group *g;

	ccm_measure_free(m);
	if (x->measured)
		ccm_store_save(m);
	x->step_ns = m->now;
	for (g = m->groups; g; g = g->hh.next) {
		if (!ccm_measure_wants(g) || is_solved(m, g))
			continue;
		if (!x->measured && propose_better(m, g))
			continue;
		g->solved_epoch = 0;
		g->solved_links = m->n_links_changed;
		g->problem = ++x->last_number;
		g->solving = true;
		g->searching = false;
		g->better.n = 0;
		x->n_problems++;
		note_hosts(g);
		p = ccm_solve_action(m);
		fill_problem(m, g, p);
		g->direct = direct_rate(p);
	}
	ccm_log(m, CCM_LOG_DEBUG, "looking for the best rings of %u groups", x->n_problems);
	set_phase(m, CCM_OPTIMIZE_SOLVING);
}

/* Keeps a solution that is better than the plan in force, or the one that a round puts in force. */
static void keep_better(struct ccm_group *g, const struct ccm_solution *s)
{
	double rate = g->proposed ? g->proposal.rate : g->plan.rate;

	if (s->n_rings == 0 || s->rate * 100 <= rate * (100 + GAIN_PERCENT))
		return;
	free(g->better_order);
	g->better_order =
		cc_must_copy(s->order, (size_t)s->n * s->n_rings, sizeof *g->better_order);
	g->better = *s;
	g->better.order = g->better_order;
}

/* Takes a later solution of a problem. A plan whose hosts have changed has the bound 0, and keeps
 * it. */
static void follow_search(struct ccm_group *g, const struct ccm_solution *s)
{
	struct ccm_plan *p = g->proposed ? &g->proposal : &g->plan;

	g->searching = s->searching;
	if (s->bound > 0 && s->bound < p->bound)
		p->bound = s->bound;
	keep_better(g, s);
}

bool ccm_optimize_better(struct ccm *m)
{
	struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next)
		(void)propose_better(m, g);
	return m->n_proposed > 0;
}

static struct ccm_group *find_problem(const struct ccm *m, uint64_t number)
{
	struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next)
		if (g->problem == number && number)
			return g;
	return NULL;
}

static void propose_or_keep(struct ccm *m, struct ccm_group *g, const struct ccm_solution *s)
{
	if (s->rate * 100 <= s->current * (100 + GAIN_PERCENT) || !ccm_plan_propose(m, g, s)) {
		ccm_log(m, CCM_LOG_INFO,
			"group %u keeps its rings with a predicted rate of %.4g Mbit/s: no better "
			"ones were found",
			g->id, s->current / 1e6);
		return;
	}
	ccm_log(m, CCM_LOG_INFO,
		"group %u: %u ring(s) with a predicted rate of %.4g Mbit/s replace those with "
		"%.4g Mbit/s",
		g->id, s->n_rings, s->rate / 1e6, s->current / 1e6);
}

void ccm_optimize_solved(struct ccm *m, const struct ccm_solution *s)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_group *g = find_problem(m, s->number);

	if (g && !g->solving)
		follow_search(g, s);
	if (!g || !g->solving || x->phase != CCM_OPTIMIZE_SOLVING || s->n != g->n_ring)
		return;
	g->solving = false;
	g->searching = s->searching;
	x->n_problems--;
	if (s->text) {
		ccm_optimize_fail(m, s->text);
		return;
	}
	if (s->n_rings == 0 && !s->searching) {
		ccm_log(m, CCM_LOG_WARNING,
			"group %u keeps its ring, because the links that could be measured make no "
			"ring: %s; see pcclctl bandwidth",
			g->id, x->unreachable[0] ? x->unreachable : "too many links are down");
		return;
	}
	g->plan.rate = s->current;
	g->plan.bound = s->bound;
	propose_or_keep(m, g, s);
}

/* ---- phases ---- */

static void rewire_or_end(struct ccm *m)
{
	m->rewire = m->n_proposed > 0;
	set_phase(m, m->rewire ? CCM_OPTIMIZE_REWIRING : CCM_OPTIMIZE_DONE);
}

/* Links without a rate look like links that do not exist. So there is no search if some hosts were
 * too busy to be measured. */
static void solve_or_end(struct ccm *m)
{
	if (!m->optimize.busy) {
		solve(m);
		return;
	}
	ccm_measure_free(m);
	ccm_store_save(m);
	set_phase(m, CCM_OPTIMIZE_DONE);
}

static void begin(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	x->began_ns = m->now;
	x->ballot = m->ballots[WIRE_OPTIMIZE].number;
	x->n_problems = 0;
	set_phase(m, CCM_OPTIMIZE_MEASURING);
	x->measured = ccm_measure_list(m);
	if (x->n_hosts > CCM_OPTIMIZE_HOSTS_MAX) {
		ccm_log(m, CCM_LOG_WARNING,
			"pcclOptimizeTopology leaves the rings as they are: links between more "
			"than %u hosts are not measured, and there are %u",
			CCM_OPTIMIZE_HOSTS_MAX, x->n_hosts);
		ccm_measure_free(m);
		set_phase(m, CCM_OPTIMIZE_DONE);
	} else if (x->measured) {
		ccm_measure_begin(m);
	} else {
		solve(m);
	}
}

static void end(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	bool ok = x->phase == CCM_OPTIMIZE_DONE;
	struct ccm_peer *p;

	/* Another master may have ended this ballot. */
	if (x->ballot == m->ballots[WIRE_OPTIMIZE].number) {
		for (p = m->peers; p; p = p->hh.next)
			p->optimize_failed = !ok && p->voted[WIRE_OPTIMIZE];
		ccm_ballot_answer(m, WIRE_OPTIMIZE, ok, ok ? "" : x->text);
	}
	if (ok) {
		note_solved(m);
		ccm_log(m, CCM_LOG_INFO, "the topology is optimized, after %.3f s",
			(double)ccm_age(m->now, x->began_ns) / 1e9);
	}
	x->failed_ns = ok ? 0 : m->now;
	set_phase(m, CCM_OPTIMIZE_NONE);
}

void ccm_optimize_watch(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	const struct ccm_ballot *b = &m->ballots[WIRE_OPTIMIZE];
	bool rewiring = x->phase == CCM_OPTIMIZE_REWIRING;

	if (m->n_proposed > 0 && (m->changed || m->n_disconnected > 0)) {
		ccm_optimize_fail(m, LOST);
		return;
	}
	if (!is_busy(x))
		return;
	if (b->number != x->ballot || b->n_votes != m->n_accepted || m->n_disconnected > 0 ||
		m->changed || (!rewiring && (m->rewire || m->round.active)))
		ccm_optimize_fail(m, LOST);
}

/* Programs repeat an optimization that has failed. If its cause remains, it fails at once, so its
 * answer waits. */
static bool is_soon(const struct ccm *m)
{
	const struct ccm_optimize *x = &m->optimize;

	return x->failed_ns && ccm_age(m->now, x->failed_ns) < REPEAT_MS * CCM_NS_PER_MS;
}

void ccm_optimize_settle(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	const struct ccm_ballot *b = &m->ballots[WIRE_OPTIMIZE];

	if (x->phase == CCM_OPTIMIZE_NONE && b->n_votes > 0 && b->n_votes == m->n_accepted)
		begin(m);
	if (x->phase == CCM_OPTIMIZE_MEASURING && !ccm_measure_goes_on(m))
		solve_or_end(m);
	if (x->phase == CCM_OPTIMIZE_SOLVING && x->n_problems == 0)
		rewire_or_end(m);
	if (x->phase == CCM_OPTIMIZE_DONE || (x->phase == CCM_OPTIMIZE_FAILED && !is_soon(m)))
		end(m);
}

void ccm_optimize_committed(struct ccm *m)
{
	if (m->optimize.phase == CCM_OPTIMIZE_REWIRING)
		set_phase(m, CCM_OPTIMIZE_DONE);
}

bool ccm_optimize_round_failed(struct ccm *m)
{
	struct ccm_measured v = {
		.origin = {.ns = m->now, .confidence = CCM_SURE, .source = CCM_RATE_UNREACHABLE}};
	char text[WM_TEXT_MAX] = "", reason[WM_TEXT_MAX] = "";
	struct ccm_agent *a, *to;
	uint32_t i;

	if (m->n_proposed == 0)
		return false;
	for (a = m->agents; a; a = a->hh.next) {
		for (i = 0; a->round == m->last_round && i < a->n_failures; i++) {
			const struct wm_failure *f = &a->failures[i];

			HASH_FIND(hh_id, m->by_id, &f->agent, sizeof f->agent, to);
			ccm_rate_put(m, &a->hello.agent, &f->agent, &v);
			ccm_copy(text, sizeof text, f->text);
			ccm_reach_reason(reason, sizeof reason, a, to, f->limit, text);
		}
	}
	ccm_optimize_fail(m, reason);
	return true;
}
