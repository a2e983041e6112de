/* SPDX-License-Identifier: MIT
 *
 * Optimizations: what happens between the last vote of pcclOptimizeTopology and its answer.
 * docs/protocol/topology.md has the rules.
 *
 *   MEASURING  agents measure the links whose rates the store lacks, pair after pair; then all
 *              hosts send to all, and then single hosts exchange with all others, which shows what
 *              the hosts can carry
 *   SOLVING    the caller of the core looks for better plans, one for each group
 *   REWIRING   a round puts the plans in force
 *   DONE, FAILED
 *              the ballot ends as soon as all agents have the same view
 *
 * A loss, a disconnected agent or a failed link ends the optimization. The old plan stays in force.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_caps.h"
#include "ccoip-masterd/core/ccm_internal.h"

/* The plan in force is kept unless the new one is predicted to be better by this many percent. */
#define GAIN_PERCENT 2
#define LOG_MS       60000u /* a failure that is repeated is logged this often */
#define REPEAT_MS    500u   /* the least time between two failures */
#define LOST         "a peer, a host or a link was lost meanwhile"
/* The time for the report to arrive, besides those for connecting and for the measurement. */
#define LATE_MS 2000u
/* The cap round is this part of benchmark_ms long. */
#define CAP_ROUND_PART 2u
/* A host round is this part of benchmark_ms long, and this number of round trips. */
#define HOST_ROUND_PART  4u
#define HOST_ROUND_TRIPS 10u
#define US_PER_MS        1000u
/* Each target of the cap round is one message field with all addresses of a host. */
#define CAP_HOSTS_MAX (CC_ROUTE_HOSTS_MAX)

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

static void edges_free(struct ccm_optimize *x)
{
	free(x->edges);
	free(x->hosts);
	x->edges = NULL;
	x->hosts = NULL;
	x->n_edges = x->n_hosts = x->n_rounds = x->n_pair_rounds = 0;
}

void ccm_optimize_free(struct ccm *m)
{
	edges_free(&m->optimize);
}

static struct ccm_agent *host(const struct ccm *m, uint32_t i)
{
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, &m->optimize.hosts[i], sizeof(struct cc_id), a);
	return a;
}

static void withdraw_proposals(struct ccm *m)
{
	struct ccm_group *g;

	for (g = m->groups; m->n_proposed > 0 && g; g = g->hh.next)
		ccm_plan_withdraw(m, g);
}

/* An agent that still sends stops when it gets an empty order. */
static void stop_measuring(struct ccm *m, struct ccm_agent *a)
{
	if (a->measuring || a->loading)
		ccm_send(m, a, WM_MEASURE)->u.measure = (struct wm_measure){
			.number = m->optimize.last_number, .ms = 1, .streams = 1};
	a->measuring = a->loading = false;
}

static void stop_all(struct ccm *m)
{
	struct ccm_agent *a;

	m->optimize.last_number++;
	for (a = m->agents; a; a = a->hh.next)
		stop_measuring(m, a);
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
	stop_all(m);
	edges_free(x);
	set_phase(m, CCM_OPTIMIZE_FAILED);
}

/* ---- measuring ---- */

static bool is_measured(const struct ccm_group *g)
{
	return g->n_ring >= 3;
}

static bool has_measured_group(const struct ccm_agent *a)
{
	const struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a)
		if (s->in_ring && is_measured(s->group))
			return true;
	return false;
}

static bool share_group(const struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *b)
{
	const struct ccm_membership *s, *t;

	DL_FOREACH2 (a->memberships, s, next_a) {
		t = ccm_membership_of(m, b, s->group->id);
		if (s->in_ring && is_measured(s->group) && t && t->in_ring)
			return true;
	}
	return false;
}

/* Lists the hosts of groups whose rings can be changed. */
static void list_hosts(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	const struct ccm_agent *a;

	x->hosts = cc_must_zalloc(HASH_COUNT(m->agents), sizeof *x->hosts);
	for (a = m->agents; a; a = a->hh.next)
		if (has_measured_group(a))
			x->hosts[x->n_hosts++] = a->hello.agent;
}

/* Lists the links whose rates are not known well enough. */
static void list_edges(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	uint32_t i, k;

	x->edges = cc_must_zalloc((size_t)x->n_hosts * x->n_hosts, sizeof *x->edges);
	for (i = 0; i < x->n_hosts; i++)
		for (k = 0; k < x->n_hosts; k++)
			if (i != k && share_group(m, host(m, i), host(m, k)) &&
				!ccm_rate_is_trusted(m, &x->hosts[i], &x->hosts[k]))
				x->edges[x->n_edges++] = (struct ccm_edge){.from = i, .to = k};
}

/* Must all hosts send at once, to find out what they can carry? */
static bool wants_caps(const struct ccm *m)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t i;

	if (x->n_hosts > CAP_HOSTS_MAX)
		return false;
	for (i = 0; i < x->n_hosts; i++)
		if (m->store.caps_stale || !ccm_cap_is_trusted(m, &x->hosts[i]))
			return true;
	return false;
}

static bool is_pair_round(const struct ccm_optimize *x)
{
	return x->round < x->n_pair_rounds;
}

static bool is_cap_round(const struct ccm_optimize *x)
{
	return x->round == x->n_pair_rounds;
}

/* In a host round: the index of the host. */
static uint32_t single_host(const struct ccm_optimize *x)
{
	return x->host_rounds[x->round - x->n_pair_rounds - 1];
}

static uint32_t longest_trip_us(const struct ccm *m, uint32_t i)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t longest = 0, k;

	for (k = 0; k < x->n_hosts; k++) {
		const struct ccm_measured *v = ccm_rate_get(m, &x->hosts[i], &x->hosts[k]);

		if (v && v->trip_us > longest)
			longest = v->trip_us;
	}
	return longest;
}

/* With a load from all hosts no measurement ends early. In a host round only one queue fills, and
 * it does so at once. */
static uint32_t measure_ms(const struct ccm *m)
{
	const struct ccm_optimize *x = &m->optimize;
	uint64_t ms = m->cfg.benchmark_ms;

	if (is_cap_round(x))
		ms = 1 + ms / CAP_ROUND_PART;
	else if (!is_pair_round(x))
		ms = 1 + ms / HOST_ROUND_PART +
		     (uint64_t)HOST_ROUND_TRIPS * longest_trip_us(m, single_host(x)) / US_PER_MS;
	return ms < m->cfg.benchmark_ms ? (uint32_t)ms : m->cfg.benchmark_ms;
}

/* Starts the order to `a`, unless it was started before. */
static struct wm_measure *order_of(struct ccm *m, struct wm_measure *orders, uint32_t i)
{
	struct wm_measure *o = &orders[i];

	if (o->number)
		return o;
	o->number = m->optimize.last_number;
	o->ms = measure_ms(m);
	o->streams = CCM_MEASURE_STREAMS;
	o->round = m->optimize.round + 1;
	o->rounds = m->optimize.n_rounds;
	o->hold = !is_pair_round(&m->optimize);
	o->to = cc_must_zalloc(m->optimize.n_hosts, sizeof *o->to);
	o->from = cc_must_zalloc(m->optimize.n_hosts, sizeof *o->from);
	return o;
}

static void add_order(struct ccm *m, struct wm_measure *orders, uint32_t from, uint32_t to)
{
	struct wm_measure *o = order_of(m, orders, from), *p = order_of(m, orders, to);

	ccm_agent_endpoint_benchmark(host(m, to), host(m, from), &o->to[o->n_to++]);
	p->from[p->n_from++] = host(m, from)->hello.agent;
}

static void send_orders(struct ccm *m, struct wm_measure *orders)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_agent *a;
	uint32_t i;

	for (i = 0; i < x->n_hosts; i++) {
		a = host(m, i);
		if (!orders[i].number) {
			stop_measuring(m, a);
			continue;
		}
		a->measuring = orders[i].n_to > 0;
		a->loading = a->measuring && orders[i].hold;
		x->n_waiting += a->measuring;
		ccm_send(m, a, WM_MEASURE)->u.measure = orders[i];
	}
}

/* Host i sends to all hosts of its groups. */
static void order_all(struct ccm *m, struct wm_measure *orders, uint32_t i)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t k;

	for (k = 0; k < x->n_hosts; k++)
		if (i != k && share_group(m, host(m, i), host(m, k)))
			add_order(m, orders, i, k);
}

static void order_cap_round(struct ccm *m, struct wm_measure *orders)
{
	uint32_t i;

	ccm_log(m, CCM_LOG_DEBUG, "measuring caps: all hosts at once");
	for (i = 0; i < m->optimize.n_hosts; i++) {
		host(m, i)->cap_out = host(m, i)->cap_in = 0;
		order_all(m, orders, i);
	}
}

/* One host sends to all others and receives from them, and they have nothing else to carry. */
static void order_host_round(struct ccm *m, struct wm_measure *orders)
{
	struct ccm_optimize *x = &m->optimize;
	uint32_t single = single_host(x), k;

	ccm_log(m, CCM_LOG_DEBUG, "measuring caps: host %s", host(m, single)->hello.name);
	x->host_out = x->host_in = 0;
	order_all(m, orders, single);
	for (k = 0; k < x->n_hosts; k++)
		if (k != single && share_group(m, host(m, k), host(m, single)))
			add_order(m, orders, k, single);
}

static void order_pairs(struct ccm *m, struct wm_measure *orders)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t i;

	for (i = 0; i < x->n_edges; i++)
		if (x->edges[i].round == x->round)
			add_order(m, orders, x->edges[i].from, x->edges[i].to);
}

static void measure_round(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct wm_measure *orders = cc_must_zalloc(x->n_hosts, sizeof *orders);

	x->last_number++;
	x->n_waiting = 0;
	x->step_ns = m->now;
	ccm_log(m, CCM_LOG_INFO, "measuring links: round %u of %u%s", x->round + 1, x->n_rounds,
		is_pair_round(x)  ? ""
		: is_cap_round(x) ? ", all hosts at once"
				  : ", one host with all others");
	if (is_pair_round(x))
		order_pairs(m, orders);
	else if (is_cap_round(x))
		order_cap_round(m, orders);
	else
		order_host_round(m, orders);
	send_orders(m, orders);
	free(orders);
}

/* Assumes that each round that is left takes as long as those that are done. */
bool ccm_get_progress(const struct ccm *m, uint64_t now_ns, struct ccm_progress *ret)
{
	const struct ccm_optimize *x = &m->optimize;
	uint64_t each = m->cfg.benchmark_ms * CCM_NS_PER_MS, in_round = ccm_age(now_ns, x->step_ns);
	uint64_t left = x->n_rounds - x->round;

	if (x->phase != CCM_OPTIMIZE_MEASURING)
		return false;
	if (x->round > 0)
		each = ccm_age(x->step_ns, x->began_ns) / x->round;
	*ret = (struct ccm_progress){.round = x->round + 1, .rounds = x->n_rounds};
	ret->left_ns = ccm_age(left * each, in_round);
	return true;
}

static void measured_pair(struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *to,
	const struct wm_measured_result *l)
{
	char text[WM_TEXT_MAX];
	struct ccm_measured v = {.rate = l->ok ? l->rate : 0,
		.trip_us = l->trip_us,
		.ns = m->now,
		.source = l->ok ? CCM_RATE_BENCHMARK : CCM_RATE_UNREACHABLE};

	ccm_rate_put(m, &a->hello.agent, &to->hello.agent, &v);
	if (l->ok)
		return;
	ccm_copy(text, sizeof text, l->text);
	ccm_print(m->optimize.unreachable, sizeof m->optimize.unreachable,
		"host %s could not measure its link to host %s (%s)", a->hello.name, to->hello.name,
		text);
	ccm_log(m, CCM_LOG_WARNING,
		"%s: new rings avoid this link, and it can be measured again after a minute%s",
		m->optimize.unreachable,
		l->limit ? "" : "; if no packets are lost, open the latter's benchmark port");
}

static void keep_highest(uint64_t *most, uint64_t rate)
{
	*most = rate > *most ? rate : *most;
}

/* Takes what `a` has sent to `to` while other links had a load, too. The senders of a host do not
 * measure at the same time. So a sum of their rates can be more than the host has received, and
 * each sender tells what the host has received in all. */
static void measured_at_once(struct ccm *m, struct ccm_agent *a, struct ccm_agent *to,
	const struct wm_measured_result *l)
{
	struct ccm_optimize *x = &m->optimize;

	if (is_cap_round(x)) {
		a->cap_out += l->rate;
		keep_highest(&to->cap_in, l->rate_of_all);
	} else if (a == host(m, single_host(x))) {
		x->host_out += l->rate;
	} else {
		keep_highest(&x->host_in, l->rate_of_all);
	}
}

void ccm_optimize_measured(struct ccm *m, struct ccm_agent *a, const struct wm_measured *r)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_agent *to;
	uint32_t i;

	if (x->phase != CCM_OPTIMIZE_MEASURING || r->number != x->last_number || !a->measuring)
		return;
	a->measuring = false;
	x->n_waiting--;
	for (i = 0; i < r->n; i++) {
		HASH_FIND(hh_id, m->by_id, &r->results[i].agent, sizeof(struct cc_id), to);
		if (!to || to == a)
			continue;
		if (is_pair_round(x))
			measured_pair(m, a, to, &r->results[i]);
		else if (r->results[i].ok)
			measured_at_once(m, a, to, &r->results[i]);
	}
}

/* ---- caps ---- */

static uint64_t rate_alone(const struct ccm *m, const struct cc_id *from, const struct cc_id *to)
{
	const struct ccm_measured *v = ccm_rate_get(m, from, to);

	return v ? v->rate : 0;
}

static void add_links(
	const struct ccm *m, const struct cc_id *id, struct ccm_links *out, struct ccm_links *in)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t i;

	for (i = 0; i < x->n_hosts; i++) {
		ccm_links_add(out, rate_alone(m, id, &x->hosts[i]));
		ccm_links_add(in, rate_alone(m, &x->hosts[i], id));
	}
}

/* Returns the lowest cap of the host that may be too low after the cap round; 0: there is none. */
static uint64_t suspect_cap(const struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_links out = {.sum = 0}, in = {.sum = 0};
	uint64_t ret = 0, cap;

	add_links(m, &a->hello.agent, &out, &in);
	if (ccm_cap_is_suspect(&out, a->cap_out))
		ret = ccm_cap_of(&out, a->cap_out);
	if (ccm_cap_is_suspect(&in, a->cap_in)) {
		cap = ccm_cap_of(&in, a->cap_in);
		ret = ret == 0 || cap < ret ? cap : ret;
	}
	return ret;
}

/* Plans a round for each host with a suspect cap. If there are too many, it is for those with the
 * lowest caps, because the lowest cap of all bounds a plan. */
static void plan_host_rounds(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	uint64_t caps[CCM_HOST_ROUNDS_MAX], cap;
	uint32_t n = 0, i, k;

	for (i = 0; i < x->n_hosts; i++) {
		cap = suspect_cap(m, host(m, i));
		if (cap == 0 || (n == CCM_HOST_ROUNDS_MAX && cap >= caps[n - 1]))
			continue;
		n += n < CCM_HOST_ROUNDS_MAX;
		for (k = n - 1; k > 0 && caps[k - 1] > cap; k--) {
			caps[k] = caps[k - 1];
			x->host_rounds[k] = x->host_rounds[k - 1];
		}
		caps[k] = cap;
		x->host_rounds[k] = i;
	}
	x->n_rounds += n;
}

/* A host can carry what it has carried. */
static void end_host_round(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_agent *a = host(m, single_host(x));

	keep_highest(&a->cap_out, x->host_out);
	keep_highest(&a->cap_in, x->host_in);
}

static void learn_cap(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_links out = {.sum = 0}, in = {.sum = 0};
	struct ccm_cap cap = {.ns = m->now};
	struct wm_rates *r;

	add_links(m, &a->hello.agent, &out, &in);
	cap.out = ccm_cap_of(&out, a->cap_out);
	cap.in = ccm_cap_of(&in, a->cap_in);
	ccm_cap_put(m, &a->hello.agent, &cap);
	r = &ccm_send(m, a, WM_RATES)->u.rates; /* the agent tells the next master */
	r->out = cap.out;
	r->in = cap.in;
}

static void learn_caps(struct ccm *m)
{
	uint32_t i;

	for (i = 0; i < m->optimize.n_hosts; i++)
		learn_cap(m, host(m, i));
	m->store.caps_stale = false;
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
		if (is_measured(g))
			g->solved_epoch = m->epoch;
}

static void solve(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_problem *p;
	struct ccm_group *g;

	edges_free(x);
	if (x->measured)
		ccm_store_save(m);
	x->step_ns = m->now;
	for (g = m->groups; g; g = g->hh.next) {
		if (!is_measured(g) || is_solved(m, g))
			continue;
		if (!x->measured && propose_better(m, g))
			continue;
		g->solved_epoch = 0;
		g->solved_links = m->n_links_changed;
		g->problem = ++x->last_number;
		g->solving = true;
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
		keep_better(g, s);
	if (!g || !g->solving || x->phase != CCM_OPTIMIZE_SOLVING || s->n != g->n_ring)
		return;
	g->solving = false;
	x->n_problems--;
	if (s->text) {
		ccm_optimize_fail(m, s->text);
		return;
	}
	if (s->n_rings == 0) {
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

static bool lacks_port(struct ccm *m)
{
	const struct ccm_agent *a;
	char text[WM_TEXT_MAX];
	uint32_t i;

	for (i = 0; i < m->optimize.n_hosts; i++) {
		a = host(m, i);
		if (a->hello.port_benchmark != 0)
			continue;
		ccm_print(text, sizeof text,
			"the agent on host %s offers no benchmark port: update it", a->hello.name);
		ccm_optimize_fail(m, text);
		return true;
	}
	return false;
}

static void begin(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	x->began_ns = m->now;
	x->ballot = m->ballots[WIRE_OPTIMIZE].number;
	x->unreachable[0] = '\0';
	x->round = x->n_problems = 0;
	set_phase(m, CCM_OPTIMIZE_MEASURING);
	list_hosts(m);
	list_edges(m);
	x->caps = wants_caps(m);
	x->measured = x->n_edges > 0 || x->caps;
	if (x->n_hosts > CCM_OPTIMIZE_HOSTS_MAX) {
		ccm_log(m, CCM_LOG_WARNING,
			"pcclOptimizeTopology leaves the rings as they are: links between more "
			"than %u hosts are not measured, and there are %u",
			CCM_OPTIMIZE_HOSTS_MAX, x->n_hosts);
		edges_free(x);
		set_phase(m, CCM_OPTIMIZE_DONE);
		return;
	}
	if (!x->measured) {
		solve(m);
		return;
	}
	if (lacks_port(m))
		return;
	x->n_pair_rounds = ccm_schedule(x->edges, x->n_edges, x->n_hosts);
	x->n_rounds = x->n_pair_rounds + x->caps;
	ccm_log(m, CCM_LOG_INFO, "measuring %u links of %u hosts in %u rounds", x->n_edges,
		x->n_hosts, x->n_rounds);
	measure_round(m);
}

/* Goes on after the present round of measurements has ended. */
static void measure_on(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	if (is_cap_round(x))
		plan_host_rounds(m);
	else if (!is_pair_round(x))
		end_host_round(m);
	if (++x->round < x->n_rounds) {
		measure_round(m);
		return;
	}
	stop_all(m);
	if (x->caps)
		learn_caps(m);
	solve(m);
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
	if (x->phase == CCM_OPTIMIZE_MEASURING && x->n_waiting == 0)
		measure_on(m);
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
	struct ccm_measured v = {.ns = m->now, .source = CCM_RATE_UNREACHABLE};
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

void ccm_optimize_tick(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	const struct ccm_agent *a;
	char text[WM_TEXT_MAX];
	uint64_t ms;

	if (x->phase != CCM_OPTIMIZE_MEASURING)
		return;
	ms = (uint64_t)measure_ms(m) + m->cfg.bounds.ms[CC_BOUND_NEW_LINK] + LATE_MS +
	     ccm_paths_ms(m);
	if (ccm_age(m->now, x->step_ns) <= ms * CCM_NS_PER_MS)
		return;
	for (a = m->agents; a && !a->measuring; a = a->hh.next)
		;
	ccm_print(text, sizeof text,
		"host %s did not end its measurement within %llu ms: see the log of its agent",
		a ? a->hello.name : "", (unsigned long long)ms);
	ccm_optimize_fail(m, text);
}
