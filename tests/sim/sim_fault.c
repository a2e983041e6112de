/* SPDX-License-Identifier: MIT
 *
 * What goes wrong, and when.
 */
#include "tests/sim/sim.h"

enum fault {
	FAULT_KILL_PROC,
	FAULT_KILL_AGENT,
	FAULT_BREAK_LINK,
	FAULT_BLOCK,
	FAULT_UNBLOCK,
	FAULT_CUT_MASTER,
	FAULT_FREEZE,
	FAULT_REFUSE,
	FAULT_ACCEPT,
};

static void plan(struct sim *s, uint64_t at, enum fault f, unsigned host, unsigned peer)
{
	sim_schedule(s, at,
		(struct sim_event){.kind = SIM_EV_FAULT, .code = f, .host = host, .peer = peer});
}

static void plan_one(struct sim *s, uint32_t kind, uint64_t at)
{
	unsigned host = sim_rnd(s, s->n_hosts), other = sim_rnd(s, s->n_hosts);
	uint64_t until = at + (100 + sim_rnd(s, 3000)) * SIM_MS;

	if (kind < 35) {
		plan(s, at, FAULT_KILL_PROC, 0, sim_rnd(s, s->n_procs));
	} else if (kind < 65) {
		plan(s, at, FAULT_BREAK_LINK, host, 0);
	} else if (kind < 75) {
		plan(s, at, FAULT_BLOCK, host, other);
		plan(s, until, FAULT_UNBLOCK, host, other);
	} else if (kind < 83) {
		plan(s, at, FAULT_CUT_MASTER, host, 0);
	} else if (kind < 90) {
		plan(s, at, FAULT_FREEZE, host, 0);
	} else if (kind < 95) {
		plan(s, at, FAULT_KILL_AGENT, host, 0);
	} else {
		plan(s, at, FAULT_REFUSE, 0, 0);
		plan(s, until, FAULT_ACCEPT, 0, 0);
	}
}

void sim_faults_plan(struct sim *s)
{
	uint32_t n = 1 + sim_rnd(s, 8), reach = 200 + sim_rnd(s, 3000);

	s->faults.enabled = sim_chance(s, 75);
	while (s->faults.enabled && n-- > 0)
		plan_one(s, sim_rnd(s, 100), s->now + sim_rnd(s, reach) * SIM_MS);
}

static void break_one(struct sim *s, unsigned host)
{
	unsigned i, at = sim_rnd(s, SIM_LINKS);

	for (i = 0; i < SIM_LINKS; i++) {
		struct sim_link *l = &s->links[(at + i) % SIM_LINKS];

		if (l->used && l->up && (l->src == host || l->dst == host)) {
			sim_link_break(s, l);
			return;
		}
	}
}

void sim_fault(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];

	switch ((enum fault)ev->code) {
	case FAULT_KILL_PROC:
		sim_proc_kill(s, &s->procs[ev->peer]);
		break;
	case FAULT_KILL_AGENT:
		sim_host_kill(s, h);
		break;
	case FAULT_BREAK_LINK:
		break_one(s, ev->host);
		break;
	case FAULT_BLOCK:
	case FAULT_UNBLOCK:
		s->blocked[ev->host][ev->peer] = ev->code == FAULT_BLOCK;
		sim_trace(s, "fault: links from host %u to host %u %s", ev->host, ev->peer,
			ev->code == FAULT_BLOCK ? "cannot be opened" : "can be opened again");
		break;
	case FAULT_CUT_MASTER:
		if (sim_host_run(h))
			sim_conn_cut(s, h, sim_host_run(h));
		break;
	case FAULT_FREEZE:
		if (h->frozen_until <= s->now)
			h->frozen_until = s->now + (100 + sim_rnd(s, 6000)) * SIM_MS;
		sim_trace(s, "fault: host %u stands still until %.3f", ev->host,
			(double)h->frozen_until / 1e9);
		break;
	case FAULT_REFUSE:
	case FAULT_ACCEPT:
		s->faults.master_refuses = ev->code == FAULT_REFUSE;
		break;
	}
}
