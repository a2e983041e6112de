/* SPDX-License-Identifier: MIT
 *
 * One seed: its participants, its clock and its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_fault.h"
#include "tests/sim/sim_sync.h"

#define LOOK       SIM_S    /* how often waiting calls are checked */
#define ALL_MS     600000u  /* all programs must end within this time, whatever goes wrong */
#define EVENTS_MAX 1000000u /* of one schedule; usual are some thousands */

static void setup_peers(struct sim *s)
{
	unsigned i;

	s->n_procs = 1 + sim_rnd(s, SIM_PROCS - 1);
	for (i = 0; i < s->n_procs; i++) {
		s->procs[i].no = i;
		s->procs[i].host = sim_rnd(s, s->n_hosts);
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
		p->rejoins = sim_chance(s, 25) ? 1 + sim_rnd(s, 2) : 0;
		p->rude = sim_chance(s, 10);
		sim_sync_setup(s, p);
		sim_peer_later(s, p, sim_rnd(s, sim_chance(s, 70) ? 50 : 2000) * SIM_MS);
	}
}

static enum sim_class class_of(struct sim *s)
{
	uint32_t kind = sim_rnd(s, 100);

	return kind < 10                                  ? CLASS_CALM
	       : kind < 30                                ? CLASS_MASTER
	       : kind < 50                                ? CLASS_AGENT
	       : kind < 56                                ? CLASS_PAIR
	       : sim_hash(s, 0, 0, CLASS_DEATHS) % 8 == 0 ? CLASS_DEATHS
							  : CLASS_ALL;
}

static void setup(struct sim *s, uint64_t seed, bool trace)
{
	static const char *const names[] = {"calm", "masters die", "an agent dies", "a pair is cut",
		"several die at once", "anything"};
	unsigned i;

	memset(s, 0, sizeof *s);
	s->seed = seed;
	s->rng = seed * 0x9e3779b97f4a7c15u + 0x1234567;
	s->trace = trace;
	s->now = s->progress = s->last_look = SIM_S;
	s->class = class_of(s);
	s->agent_lease_ms = 5000;
	s->master_lease_ms = 15000 + sim_rnd(s, 2) * 15000;
	s->reconnector_lease_ms = 10000;
	s->journal = sim_chance(s, 50);
	s->configured = sim_chance(s, 30);
	s->n_hosts = 1 + sim_rnd(s, sim_chance(s, 50) ? 3 : SIM_HOSTS);
	s->n_groups = 1 + sim_rnd(s, SIM_GROUPS);
	s->n_tags = 1 + sim_rnd(s, SIM_TAGS);
	s->odd_parameters = sim_chance(s, 20);
	s->strays = !s->odd_parameters && sim_hash(s, 0x57a7, 0, 0) % 6 == 0;
	s->counts = s->class == CLASS_DEATHS && s->n_groups == 1;
	s->refusals = sim_chance(s, 20);
	for (i = 0; i < SIM_ADDRS; i++)
		s->at[i] = s->moved[i] = -1;
	sim_trace(s, "seed %lu: %s, %u hosts, %u groups%s", (unsigned long)seed, names[s->class],
		s->n_hosts, s->n_groups, s->journal ? ", masters have a journal" : "");
	sim_master_start(s, 0);
	for (i = 0; i < s->n_hosts; i++) {
		s->hosts[i].no = i;
		sim_host_start(s, i);
	}
	setup_peers(s);
	sim_faults_plan(s);
}

static void teardown(struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_hosts; i++)
		agt_free(s->hosts[i].a);
	for (i = 0; i < s->n_masters; i++)
		ccm_free(s->masters[i].m);
	ccm_actions_free(&s->m_acts);
	sim_journal_free(s);
	sim_xfers_free(s);
	sim_lineage_free(s);
	sim_conns_free(s);
	sim_events_free(s);
}

/* Returns until when the receiver of the event is frozen. */
static uint64_t still_until(const struct sim *s, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_TO_MASTER:
	case SIM_EV_MASTER_OPEN:
	case SIM_EV_MASTER_SEES_END:
	case SIM_EV_MASTER_TICK:
		return s->masters[ev->master].frozen_until;
	case SIM_EV_PEER:
	case SIM_EV_RECONNECTOR:
		return s->procs[ev->proc].stopped ? s->procs[ev->proc].stopped_until + 1 : 0;
	case SIM_EV_FAULT:
		return 0;
	default:
		return s->hosts[ev->host].frozen_until;
	}
}

static void stopped(struct sim *s, const struct sim_event *ev)
{
	struct sim_proc *q = &s->procs[ev->proc];
	struct agt_event e = {.type = AGT_EV_SESSION_STOPPED, .session = q->session};

	e.stopped = q->stopped; /* the state at the moment when the agent looks */
	if (!q->alive || q->state != SESSION_OPEN || q->life != s->hosts[q->host].life)
		return;
	q->told = q->stopped;
	sim_host_step(s, &s->hosts[q->host], &e);
}

static void handle_connection(struct sim *s, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_TO_MASTER:
		sim_to_master(s, ev);
		break;
	case SIM_EV_TO_AGENT:
		sim_to_agent(s, ev);
		break;
	case SIM_EV_CONNECTED:
		sim_connected(s, ev);
		break;
	case SIM_EV_MASTER_OPEN:
		sim_accept(s, ev);
		break;
	default:
		sim_conn_end(s, ev);
		break;
	}
}

static void handle(struct sim *s, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_MASTER_TICK:
		sim_master_tick(s, ev->master);
		break;
	case SIM_EV_AGENT_TICK:
		sim_host_tick(s, ev);
		break;
	case SIM_EV_PROBE_RESULT:
		sim_probe_result(s, ev);
		break;
	case SIM_EV_MEASURED:
		sim_measured(s, ev);
		break;
	case SIM_EV_SOLVED:
		sim_solved(s, ev);
		break;
	case SIM_EV_LINK_RESULT:
		sim_link_result(s, ev);
		break;
	case SIM_EV_LINK_SEEN_DOWN:
		sim_link_seen_down(s, ev);
		break;
	case SIM_EV_LINK_QUIET:
		sim_link_quiet(s, ev);
		break;
	case SIM_EV_XFER_SEGMENT:
	case SIM_EV_XFER_FINAL:
	case SIM_EV_XFER_DONE:
	case SIM_EV_XFER_CANCELLED:
		sim_xfer_event(s, ev);
		break;
	case SIM_EV_SYNC_STEP:
	case SIM_EV_SYNC_DROPPED:
	case SIM_EV_SYNC_CANCELLED:
		sim_sync_event(s, ev);
		break;
	case SIM_EV_REQUEST:
		sim_shim_request(s, ev);
		break;
	case SIM_EV_SUBMIT:
		sim_op_submit(s, ev);
		break;
	case SIM_EV_ASLEEP:
		sim_stray_asleep(s, ev);
		break;
	case SIM_EV_ASLEEP_ANY:
		sim_stray_asleep_any(s, ev);
		break;
	case SIM_EV_STOPPED:
		stopped(s, ev);
		break;
	case SIM_EV_PEER:
		if (s->peers[ev->peer].gen == ev->gen && s->peers[ev->peer].proc->alive)
			sim_peer_go(s, &s->peers[ev->peer]);
		break;
	case SIM_EV_RECONNECTOR:
		if (s->procs[ev->proc].gen == ev->gen)
			sim_shim_reconnector(s, &s->procs[ev->proc]);
		break;
	case SIM_EV_FAULT:
		sim_fault(s, ev);
		break;
	default:
		handle_connection(s, ev);
		break;
	}
}

static void run(struct sim *s)
{
	uint64_t patience = (s->master_lease_ms + 2 * s->reconnector_lease_ms + 20000) * SIM_MS;
	/* after this time without programs, remaining state would stay for ever: an agent that has
	 * to report a leave looks for a master until then */
	uint64_t after = (s->master_lease_ms + 5000) * SIM_MS;
	uint64_t ended = 0, until;
	struct sim_event ev;

	while (!s->failure[0] && sim_next(s, &ev)) {
		s->now = ev.at;
		until = still_until(s, &ev);
		if (until > s->now) {
			sim_schedule(s, until, ev);
			continue;
		}
		handle(s, &ev);
		free(ev.bytes);
		s->events++;
		if (s->now > s->last_look + LOOK) {
			s->last_look = s->now;
			sim_check_waits(s);
		}
		if (!ended && sim_peers_ended(s))
			ended = s->now;
		if (ended && s->now > ended + after)
			break;
		if (!ended && s->now > s->progress + patience)
			sim_fail(s, "no call has returned for %.0f s", (double)patience / 1e9);
		if (s->events > EVENTS_MAX)
			sim_fail(s, "more than %u events, so messages cause each other without end",
				EVENTS_MAX);
		if (!ended && s->now > ALL_MS * SIM_MS)
			sim_fail(s, "calls return, but after %u s the programs have not ended",
				ALL_MS / 1000);
	}
	if (!s->failure[0])
		sim_check_quiet(s);
}

bool sim_view_run(struct sim *s, uint64_t seed, bool trace, const char *program)
{
	bool ok;

	setup(s, seed, trace);
	run(s);
	ok = !s->failure[0];
	if (!ok && program) {
		printf("seed %lu: at %.6f s: %s\n", (unsigned long)seed, (double)s->now / 1e9,
			s->failure);
		sim_describe(s);
		printf("replay: %s --seed %lu\n", program, (unsigned long)seed);
	}
	teardown(s);
	return ok;
}
