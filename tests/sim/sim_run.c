/* SPDX-License-Identifier: MIT
 *
 * usage: sim_run [--seed N | --seeds A-B] [--trace]
 *
 * Without arguments: the seeds that `make check` runs. A seed that fails is printed with the
 * command that replays it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define PATIENCE (60 * (uint64_t)SIM_S) /* no call returns for so long: a hang */
#define AFTER    (10 * (uint64_t)SIM_S) /* what is left then is left for ever */

struct totals {
	uint64_t seeds, events, reductions, retries, kills, reconnects;
};

static void setup_peers(struct sim *s)
{
	unsigned i;

	s->n_procs = 1 + sim_rnd(s, SIM_PROCS - 1);
	for (i = 0; i < s->n_procs; i++) {
		s->procs[i].host = sim_rnd(s, s->n_hosts);
		s->procs[i].session = i + 1;
		s->procs[i].alive = true;
	}
	s->n_peers = s->n_procs + sim_rnd(s, s->n_procs / 2 + 1);
	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		p->no = i;
		p->proc = &s->procs[i < s->n_procs ? i : sim_rnd(s, s->n_procs)];
		p->proc->n_peers++;
		p->group = sim_rnd(s, s->n_groups);
		p->pool = 1 + sim_rnd(s, 3);
		p->iterations = 1 + sim_rnd(s, 8);
		p->reconnects = sim_rnd(s, 4);
		p->rude = sim_chance(s, 10);
		sim_schedule(s, s->now + sim_rnd(s, sim_chance(s, 70) ? 50 : 2000) * SIM_MS,
			(struct sim_event){.kind = SIM_EV_PEER, .peer = i, .host = p->proc->host});
	}
}

static void setup(struct sim *s, uint64_t seed, bool trace)
{
	struct ccm_config cfg = {.run = {.b = {1}},
		.run_key = {.b = {2}},
		.segment_max = 65536,
		.log_level = CCM_LOG_DEBUG};
	unsigned i;

	memset(s, 0, sizeof *s);
	s->seed = seed;
	s->rng = seed * 0x9e3779b97f4a7c15u + 0x1234567;
	s->trace = trace;
	s->now = s->progress = SIM_S;
	s->m = ccm_new(&cfg);
	s->n_hosts = 1 + sim_rnd(s, sim_chance(s, 50) ? 3 : SIM_HOSTS);
	s->n_groups = 1 + sim_rnd(s, SIM_GROUPS);
	s->n_tags = 1 + sim_rnd(s, SIM_TAGS);
	s->odd_parameters = sim_chance(s, 20);
	for (i = 0; i < s->n_hosts; i++)
		sim_host_start(s, i);
	setup_peers(s);
	sim_schedule(s, s->now, (struct sim_event){.kind = SIM_EV_MASTER_TICK});
	sim_faults_plan(s);
}

static void teardown(struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_hosts; i++)
		agt_free(s->hosts[i].a);
	ccm_actions_free(&s->m_acts);
	ccm_free(s->m);
	sim_xfers_free(s);
	sim_events_free(s);
}

/* An event that a host standing still takes in later. */
static bool deferred(struct sim *s, const struct sim_event *ev)
{
	unsigned host = ev->kind == SIM_EV_LINK_RESULT ? s->links[ev->link].src : ev->host;
	uint64_t until = s->hosts[host].frozen_until;

	if (ev->kind == SIM_EV_TO_MASTER || ev->kind == SIM_EV_MASTER_SEES_END ||
		ev->kind == SIM_EV_MASTER_TICK || ev->kind == SIM_EV_FAULT || until <= s->now)
		return false;
	sim_schedule(s, until, *ev);
	return true;
}

static void agent_tick(struct sim *s, const struct sim_event *ev)
{
	struct agt_event tick = {.type = AGT_EV_TICK};

	sim_host_step(s, &s->hosts[ev->host], &tick);
	if (s->hosts[ev->host].alive)
		sim_schedule(s, s->now + 100 * SIM_MS,
			(struct sim_event){.kind = SIM_EV_AGENT_TICK, .host = ev->host});
}

static void master_tick(struct sim *s)
{
	struct ccm_event tick = {.type = CCM_EV_TICK};

	sim_master_step(s, &tick);
	sim_schedule(s, s->now + 250 * SIM_MS, (struct sim_event){.kind = SIM_EV_MASTER_TICK});
}

static void handle(struct sim *s, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_TO_MASTER:
		sim_to_master(s, ev);
		break;
	case SIM_EV_TO_AGENT:
		sim_to_agent(s, ev);
		break;
	case SIM_EV_CONNECT:
		sim_connected(s, ev);
		break;
	case SIM_EV_MASTER_SEES_END:
	case SIM_EV_AGENT_SEES_END:
		sim_conn_end(s, ev);
		break;
	case SIM_EV_MASTER_TICK:
		master_tick(s);
		break;
	case SIM_EV_AGENT_TICK:
		agent_tick(s, ev);
		break;
	case SIM_EV_LINK_RESULT:
		sim_link_result(s, ev);
		break;
	case SIM_EV_LINK_SEEN_DOWN:
		sim_link_seen_down(s, ev);
		break;
	case SIM_EV_XFER_DONE:
		sim_xfer_done(s, ev);
		break;
	case SIM_EV_XFER_CANCELLED:
		sim_xfer_cancelled(s, ev);
		break;
	case SIM_EV_PEER:
		sim_peer_go(s, &s->peers[ev->peer]);
		break;
	case SIM_EV_SUBMIT:
		sim_peer_submit(s, &s->peers[ev->peer], ev->tag);
		break;
	case SIM_EV_FAULT:
		sim_fault(s, ev);
		break;
	case SIM_EV_KINDS:
		break;
	}
}

static void print_op(void *arg, const struct agt_op_info *o)
{
	printf("host %u: group %u tag %lu seq %lu %s, %u of %u, %s\n", *(unsigned *)arg, o->group,
		(unsigned long)o->tag, (unsigned long)o->seq, o->state, o->submitted, o->members,
		o->awaited);
}

/* For whoever looks at a hang. */
static void describe(struct sim *s)
{
	struct ccm_status st;
	unsigned i;

	sim_peers_describe(s);
	for (i = 0; i < s->n_hosts; i++)
		if (s->hosts[i].alive)
			agt_each_op(s->hosts[i].a, s->now, print_op, &i);
	ccm_get_status(s->m, s->now, &st);
	printf("master: %u agents, %u registered, %u accepted; %s\n", st.agents, st.registered,
		st.accepted, st.waiting);
}

/* Everybody has ended: nothing may be left anywhere. */
static void check_quiet(struct sim *s)
{
	struct ccm_status m;
	struct agt_status a;
	unsigned i;

	ccm_get_status(s->m, s->now, &m);
	if (m.agents || m.registered || m.accepted || m.groups || m.round_active)
		sim_fail(s, "the master keeps %u agents, %u peers, %u groups", m.agents,
			m.registered + m.accepted, m.groups);
	for (i = 0; i < s->n_hosts; i++) {
		if (!s->hosts[i].alive)
			continue;
		agt_get_status(s->hosts[i].a, &a);
		if (a.sessions || a.comms || a.runs || a.ops)
			sim_fail(s,
				"host %u keeps %u sessions, %u communicators, %u runs, %u "
				"operations",
				i, a.sessions, a.comms, a.runs, a.ops);
	}
	for (i = 0; i < SIM_LINKS; i++)
		if (s->links[i].used)
			sim_fail(s, "host %u keeps a link", s->links[i].src);
}

static void run(struct sim *s)
{
	struct sim_event ev;
	uint64_t ended = 0;

	while (!s->failure[0] && sim_next(s, &ev)) {
		s->now = ev.at;
		if (deferred(s, &ev))
			continue;
		handle(s, &ev);
		free(ev.bytes);
		s->events++;
		if (!ended && sim_peers_ended(s))
			ended = s->now;
		if (ended && s->now > ended + AFTER)
			break;
		if (!ended && s->now > s->progress + PATIENCE)
			sim_fail(s, "no call has returned for %.0f s", (double)PATIENCE / 1e9);
	}
	if (!s->failure[0])
		check_quiet(s);
}

static bool run_seed(uint64_t seed, bool trace, struct totals *t)
{
	static struct sim s;
	bool ok;

	setup(&s, seed, trace);
	run(&s);
	ok = !s.failure[0];
	if (!ok) {
		printf("seed %lu: at %.6f s: %s\n", (unsigned long)seed, (double)s.now / 1e9,
			s.failure);
		describe(&s);
		printf("replay: tests/sim/sim_run --seed %lu --trace\n", (unsigned long)seed);
	}
	t->seeds++;
	t->events += s.events;
	t->reductions += s.reductions;
	t->retries += s.retries;
	t->kills += s.kills;
	t->reconnects += s.reconnects;
	teardown(&s);
	return ok;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'}, {"trace", no_argument, NULL, 't'}, {0}};
	unsigned long from = 1, to = 400, seed, failed = 0;
	struct totals t = {0};
	bool trace = false;
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't') {
			trace = true;
		} else if (c == 's') {
			from = to = strtoul(optarg, NULL, 10);
		} else if (c == 'r') {
			from = strtoul(optarg, &end, 10);
			to = *end == '-' ? strtoul(end + 1, NULL, 10) : from;
		} else {
			fprintf(stderr, "usage: sim_run [--seed N | --seeds A-B] [--trace]\n");
			return EXIT_FAILURE;
		}
	}
	for (seed = from; seed <= to; seed++)
		failed += !run_seed(seed, trace, &t);
	printf("%lu events, %lu reductions, %lu bursts tried again, %lu processes killed, "
	       "%lu reconnects\n",
		(unsigned long)t.events, (unsigned long)t.reductions, (unsigned long)t.retries,
		(unsigned long)t.kills, (unsigned long)t.reconnects);
	printf("%lu passed, %lu failed\n", (unsigned long)t.seeds - failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
