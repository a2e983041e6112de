/* SPDX-License-Identifier: MIT
 *
 * The measurements of an optimization. Pairs of hosts measure the links whose rates the store
 * lacks. If a cap is not trusted, all hosts then send to all, which is the cap round. It may leave
 * open what some hosts can carry, so in each host round after it a host sends to all others, and
 * another one receives from all others.
 *
 * Other runs may use the network of a host, for operations or to measure. Its agent then reports
 * that it is busy. What this has prevented is measured again after a pause, in which the other run
 * can do the same, and whose length is random, so that two runs do not meet again and again.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

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
/* The time from a round in which hosts were busy to the next attempt: at least, and at most so much
 * more. */
#define PAUSE_MS        100u
#define PAUSE_RANDOM_MS 500u
/* The least time for which busy hosts are waited for. */
#define BUSY_MS 10000u

void ccm_measure_free(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	free(x->edges);
	free(x->hosts);
	free(x->loads);
	free(x->received);
	x->edges = NULL;
	x->hosts = NULL;
	x->loads = NULL;
	x->received = NULL;
	x->n_edges = x->n_hosts = x->n_rounds = x->n_pair_rounds = 0;
	x->busy_ns = x->paused_ns = 0;
	x->busy = false;
}

static struct ccm_agent *host(const struct ccm *m, uint32_t i)
{
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, &m->optimize.hosts[i], sizeof(struct cc_id), a);
	return a;
}

/* An agent that still sends stops when it gets an empty order, and other runs of its host can
 * measure. */
static void stop_measuring(struct ccm *m, struct ccm_agent *a)
{
	if (a->ordered)
		ccm_send(m, a, WM_MEASURE)->u.measure = (struct wm_measure){
			.number = m->optimize.last_number, .ms = 1, .streams = 1};
	a->measuring = a->ordered = false;
}

void ccm_measure_stop(struct ccm *m)
{
	struct ccm_agent *a;

	m->optimize.last_number++;
	for (a = m->agents; a; a = a->hh.next)
		stop_measuring(m, a);
}

/* ---- what is measured ---- */

bool ccm_measure_wants(const struct ccm_group *g)
{
	return g->n_ring >= 3;
}

static bool has_measured_group(const struct ccm_agent *a)
{
	const struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a)
		if (s->in_ring && ccm_measure_wants(s->group))
			return true;
	return false;
}

static bool share_group(const struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *b)
{
	const struct ccm_membership *s, *t;

	DL_FOREACH2 (a->memberships, s, next_a) {
		t = ccm_membership_of(m, b, s->group->id);
		if (s->in_ring && ccm_measure_wants(s->group) && t && t->in_ring)
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
		if (!ccm_cap_is_trusted(m, &x->hosts[i]))
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

/* In a host round: the hosts that are measured. */
static const struct ccm_host_round *host_round(const struct ccm_optimize *x)
{
	return &x->host_rounds[x->round - x->n_pair_rounds - 1];
}

static bool measures_out(const struct ccm_optimize *x, uint32_t i)
{
	return is_cap_round(x) || host_round(x)->out == i;
}

static bool measures_in(const struct ccm_optimize *x, uint32_t i)
{
	return is_cap_round(x) || host_round(x)->in == i;
}

/* Returns the longest round trip of a link that this round measures. */
static uint32_t longest_trip_us(const struct ccm *m)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t longest = 0, i, k;

	for (i = 0; i < x->n_hosts; i++)
		for (k = 0; k < x->n_hosts; k++) {
			const struct ccm_measured *v = ccm_rate_get(m, &x->hosts[i], &x->hosts[k]);

			if (v && (measures_out(x, i) || measures_in(x, k)) && v->trip_us > longest)
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
		     (uint64_t)HOST_ROUND_TRIPS * longest_trip_us(m) / US_PER_MS;
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
	ccm_host_name(host(m, to), &o->host);
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
		a->ordered = true;
		x->n_waiting += a->measuring;
		ccm_send(m, a, WM_MEASURE)->u.measure = orders[i];
	}
}

/* All links of the hosts whose caps this round measures have a load. */
static void order_loads(struct ccm *m, struct wm_measure *orders)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t i, k;

	for (i = 0; i < x->n_hosts; i++) {
		x->loads[i].sent = 0;
		for (k = 0; k < x->n_hosts; k++) {
			x->received[i * x->n_hosts + k] = 0;
			if (i != k && share_group(m, host(m, i), host(m, k)) &&
				(measures_out(x, i) || measures_in(x, k)))
				add_order(m, orders, i, k);
		}
	}
}

static void order_pairs(struct ccm *m, struct wm_measure *orders)
{
	const struct ccm_optimize *x = &m->optimize;
	uint32_t i;

	for (i = 0; i < x->n_edges; i++)
		if (x->edges[i].round == x->round && !x->edges[i].measured)
			add_order(m, orders, x->edges[i].from, x->edges[i].to);
}

static void measure_round(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct wm_measure *orders = cc_must_zalloc(x->n_hosts, sizeof *orders);

	x->last_number++;
	x->n_waiting = 0;
	x->busy = false;
	x->step_ns = m->now;
	ccm_log(m, CCM_LOG_INFO, "measuring links: round %u of %u%s", x->round + 1, x->n_rounds,
		is_pair_round(x)  ? ""
		: is_cap_round(x) ? ", all hosts at once"
				  : ", single hosts with all others");
	if (is_pair_round(x))
		order_pairs(m, orders);
	else
		order_loads(m, orders);
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

/* The network of one of the hosts was in use, so the round takes place again. */
static void note_busy(struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *to,
	const struct wm_measured_result *l)
{
	char text[WM_TEXT_MAX];

	m->optimize.busy = true;
	ccm_copy(text, sizeof text, l->text);
	ccm_print(m->optimize.busy_text, sizeof m->optimize.busy_text,
		"host %s could not measure its link to host %s (%s)", a->hello.name, to->hello.name,
		text);
}

static uint32_t index_of(const struct ccm_optimize *x, const struct ccm_agent *a)
{
	uint32_t i = 0;

	while (i < x->n_hosts && !cc_id_eq(&x->hosts[i], &a->hello.agent))
		i++;
	return i;
}

static void note_measured(struct ccm_optimize *x, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 0; i < x->n_edges; i++)
		if (x->edges[i].from == from && x->edges[i].to == to)
			x->edges[i].measured = true;
}

static void measured_pair(struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *to,
	const struct wm_measured_result *l)
{
	char text[WM_TEXT_MAX];
	struct ccm_measured v = {.rate = l->ok ? l->rate : 0,
		.trip_us = l->trip_us,
		.origin = {.ns = m->now,
			.confidence = l->ok ? l->confidence : CCM_SURE,
			.source = l->ok ? CCM_RATE_BENCHMARK : CCM_RATE_UNREACHABLE}};

	note_measured(&m->optimize, index_of(&m->optimize, a), index_of(&m->optimize, to));
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

/* Takes what `a` has sent to `to` while other links had a load, too. The senders of a host do not
 * measure at the same time. So a sum of their rates can be more than the host has received, and
 * each sender tells what the host has received in all. */
static void measured_at_once(struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *to,
	const struct wm_measured_result *l)
{
	struct ccm_optimize *x = &m->optimize;
	uint32_t i = index_of(x, a), k = index_of(x, to);

	if (i == x->n_hosts || k == x->n_hosts)
		return;
	x->loads[i].sent += l->rate;
	x->received[k * x->n_hosts + i] = l->rate_of_all;
}

void ccm_measure_take(struct ccm *m, struct ccm_agent *a, const struct wm_measured *r)
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
		if (r->results[i].busy)
			note_busy(m, a, to, &r->results[i]);
		else if (is_pair_round(x))
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

/* The sums of a host round replace those of the cap round, because the other hosts had nothing else
 * to carry. */
static void end_load_round(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	uint32_t i, n = x->n_hosts;

	for (i = 0; i < n; i++) {
		if (measures_out(x, i))
			x->loads[i].out = x->loads[i].sent;
		if (measures_in(x, i))
			x->loads[i].in = ccm_cap_middle(&x->received[i * n], n);
	}
}

/* Takes what a host has carried in the cap round: its cap, or it becomes one of the suspects. */
static void judge_cap(
	struct ccm_suspects *suspects, uint32_t i, const struct ccm_links *links, uint64_t *load)
{
	uint64_t sure = ccm_cap_if_sure(links, *load);

	if (sure > 0)
		*load = sure;
	else
		ccm_suspects_add(suspects, i, ccm_cap_of(links, *load));
}

/* Plans rounds for the hosts with suspect caps. */
static void plan_host_rounds(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	struct ccm_suspects out = {.n = 0}, in = {.n = 0};
	uint64_t *rates = cc_must_zalloc((size_t)x->n_hosts * x->n_hosts, sizeof *rates);
	uint32_t i, k;

	for (i = 0; i < x->n_hosts; i++) {
		struct ccm_links to = {.sum = 0}, from = {.sum = 0};

		for (k = 0; k < x->n_hosts; k++)
			rates[i * x->n_hosts + k] = rate_alone(m, &x->hosts[i], &x->hosts[k]);
		add_links(m, &x->hosts[i], &to, &from);
		judge_cap(&out, i, &to, &x->loads[i].out);
		judge_cap(&in, i, &from, &x->loads[i].in);
	}
	x->n_rounds += ccm_host_rounds(&out, &in, rates, x->n_hosts, x->host_rounds);
	free(rates);
}

static void learn_cap(struct ccm *m, uint32_t i)
{
	const struct ccm_load *l = &m->optimize.loads[i];
	struct ccm_links out = {.sum = 0}, in = {.sum = 0};
	struct ccm_cap cap = {.origin = {.ns = m->now, .confidence = CCM_SURE}};
	struct ccm_agent *a = host(m, i);
	struct wm_rates *r;

	add_links(m, &a->hello.agent, &out, &in);
	cap.out = ccm_cap_of(&out, l->out);
	cap.in = ccm_cap_of(&in, l->in);
	ccm_cap_put(m, &a->hello.agent, &cap);
	r = &ccm_send(m, a, WM_RATES)->u.rates; /* the agent tells the next master */
	r->out = cap.out;
	r->in = cap.in;
}

static void learn_caps(struct ccm *m)
{
	uint32_t i;

	for (i = 0; i < m->optimize.n_hosts; i++)
		learn_cap(m, i);
}

/* ---- begin and end ---- */

bool ccm_measure_list(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	x->unreachable[0] = '\0';
	list_hosts(m);
	list_edges(m);
	x->caps = wants_caps(m);
	return x->n_edges > 0 || x->caps;
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

void ccm_measure_begin(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	size_t n = x->n_hosts;

	if (lacks_port(m))
		return;
	x->round = 0;
	if (x->caps) {
		x->loads = cc_must_zalloc(n, sizeof *x->loads);
		x->received = cc_must_zalloc(n * n, sizeof *x->received);
	}
	x->n_pair_rounds = ccm_schedule(x->edges, x->n_edges, x->n_hosts);
	x->n_rounds = x->n_pair_rounds + x->caps;
	ccm_log(m, CCM_LOG_INFO, "measuring %u links of %u hosts in %u rounds", x->n_edges,
		x->n_hosts, x->n_rounds);
	measure_round(m);
}

/* Returns a time in ms, below `most`, that differs from run to run and from call to call. Two runs
 * whose calls have neighbouring numbers do not get times with equal differences. */
static uint32_t random_ms(const struct ccm *m, uint32_t most)
{
	uint64_t hash = m->optimize.last_number;
	uint32_t i;

	for (i = 0; i < sizeof m->cfg.run.b; i++) {
		hash = (hash ^ m->cfg.run.b[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return (uint32_t)(hash >> 32) % most;
}

/* Waits before the round takes place again. Returns false if it has been waited for long enough:
 * another run needs no longer to measure as much as this one. */
static bool pause_round(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	uint64_t most = 2 * (uint64_t)x->n_rounds * m->cfg.benchmark_ms, busy_ns;
	uint32_t ms = PAUSE_MS + random_ms(m, PAUSE_RANDOM_MS);

	if (!x->busy_ns)
		x->busy_ns = m->now;
	busy_ns = ccm_age(m->now, x->busy_ns);
	ccm_measure_stop(m);
	if (busy_ns > (most > BUSY_MS ? most : BUSY_MS) * CCM_NS_PER_MS) {
		ccm_log(m, CCM_LOG_WARNING,
			"pcclOptimizeTopology leaves the rings as they are, because hosts were "
			"busy again and again for %.1f s: %s; call it again when other runs on "
			"these hosts are idle",
			(double)busy_ns / 1e9, x->busy_text);
		return false;
	}
	x->paused_ns = m->now + ms * CCM_NS_PER_MS;
	ccm_log(m, CCM_LOG_INFO, "round %u of %u is repeated after %u ms: %s", x->round + 1,
		x->n_rounds, ms, x->busy_text);
	return true;
}

bool ccm_measure_goes_on(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;

	if (x->n_waiting > 0 || m->now < x->paused_ns)
		return true;
	if (x->paused_ns > 0) {
		x->paused_ns = 0;
		measure_round(m);
		return true;
	}
	if (x->busy)
		return pause_round(m);
	if (!is_pair_round(x))
		end_load_round(m);
	if (is_cap_round(x))
		plan_host_rounds(m);
	if (++x->round < x->n_rounds) {
		measure_round(m);
		return true;
	}
	ccm_measure_stop(m);
	if (x->caps)
		learn_caps(m);
	return false;
}

void ccm_measure_tick(struct ccm *m)
{
	struct ccm_optimize *x = &m->optimize;
	const struct ccm_agent *a;
	char text[WM_TEXT_MAX];
	uint64_t ms;

	if (x->phase != CCM_OPTIMIZE_MEASURING || x->paused_ns > 0)
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
