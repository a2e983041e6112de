/* SPDX-License-Identifier: MIT
 *
 * Carries out faults.
 */
#include "tests/sim/sim_fault.h"
#include "tests/sim/sim_sync.h"

#define WAITER_UNTIL (20 * SIM_S) /* after this time, any host with a member will do */

void sim_cause(struct sim *s)
{
	s->causes++;
}

/* Freezes a participant for `n` ms. Never shortens an earlier freeze, because events that wait for
 * its end would be overtaken by later ones. */
static void freeze(struct sim *s, uint64_t *frozen_until, uint64_t n)
{
	if (*frozen_until < s->now + sim_ms(n))
		*frozen_until = s->now + sim_ms(n);
}

/* how: 0: both ends see the break; 1: only the source sees it; 2: only the other end sees it */
static void break_one(struct sim *s, unsigned host, uint32_t how)
{
	unsigned i, at = sim_rnd(s, SIM_LINKS);

	for (i = 0; i < SIM_LINKS; i++) {
		struct sim_link *l = &s->links[(at + i) % SIM_LINKS];

		if (l->used && l->up && (l->src == host || l->dst == host)) {
			if (how)
				sim_link_reset(s, l, how == 1);
			else
				sim_link_break(s, l);
			return;
		}
	}
}

static void cut(struct sim *s, const struct sim_event *ev)
{
	uint32_t i, at = sim_rnd(s, s->n_conns + 1);
	struct sim_conn *c;

	for (i = 0; i < s->n_conns; i++) {
		c = s->conns[(at + i) % s->n_conns];
		if (c->host != ev->host || !c->made || c->cut || !c->agent_open || !c->master_open)
			continue;
		if (ev->code == FAULT_CUT)
			sim_conn_cut(s, c, true, true);
		else
			sim_conn_cut(s, c, ev->gen == 0, ev->gen == 1);
		return;
	}
}

static void stop_proc(struct sim *s, const struct sim_event *ev)
{
	struct sim_proc *q = &s->procs[ev->proc];
	struct sim_event next = sim_fault_new(FAULT_RUN_PROC);

	if (!q->alive || q->stopped)
		return;
	sim_trace(s, "fault: process %u on h%u is stopped for %u ms", q->no, q->host, ev->gen);
	q->stopped = true;
	q->stopped_until = s->now + sim_ms(ev->gen);
	next.proc = q->no;
	sim_schedule(s, q->stopped_until, next);
	/* the agent looks at stopped processes at this interval */
	sim_schedule(s, s->now + sim_ms(sim_rnd(s, s->hosts[q->host].quiet ? 900 : 250)),
		(struct sim_event){
			.kind = SIM_EV_STOPPED, .host = q->host, .proc = q->no, .code = 1});
}

static void kill_master(struct sim *s, const struct sim_event *ev)
{
	struct sim_event next = sim_fault_new(FAULT_START_MASTER);
	int no = s->at[s->home];
	unsigned from = (unsigned)s->home;

	if (no < 0)
		return;
	next.addr = ev->addr == SIM_ADDRS || s->at[ev->addr] >= 0 ? from : ev->addr;
	s->master_gone = true;
	if (ev->gen)
		sim_schedule(s, s->now + sim_ms(ev->gen), next);
	if (ev->inbound) /* it dies in the middle of its next step */
		s->masters[no].crash_next = true;
	else
		sim_master_kill(s, (unsigned)no);
}

/* The operator has moved the master. All agents are told, one after the other. */
static void tell_all(struct sim *s, unsigned from, unsigned to)
{
	struct sim_event ev = sim_fault_new(FAULT_SET_MASTER);
	unsigned i;

	s->moved[from] = (int)to;
	s->moved[to] = -1;
	s->home = (int)to;
	ev.addr = from;
	ev.link = to;
	for (i = 0; i < s->n_hosts; i++) {
		ev.host = i;
		sim_schedule(s, s->now + sim_ms(sim_rnd(s, 1000)), ev);
	}
}

/* No packet passes, and no end notices. When packets pass again, the connections must be made
 * again. */
static void cut_off(struct sim *s, uint32_t ms)
{
	struct sim_event ev = sim_fault_new(FAULT_UNPART);
	int no = s->at[s->home];
	uint32_t i;

	if (no < 0)
		return;
	sim_trace(s, "fault: %s is cut off for %u ms", sim_name_master(s, (unsigned)no), ms);
	s->away_until = s->now + sim_ms(ms) + 12 * SIM_S;
	for (i = 0; i < s->n_conns; i++)
		if (s->conns[i]->made && s->conns[i]->master == (unsigned)no)
			sim_conn_cut(s, s->conns[i], false, false);
	ev.addr = (unsigned)s->home;
	for (ev.host = 0; ev.host < s->n_hosts; ev.host++) {
		s->parted[ev.host][ev.addr] = true;
		sim_schedule(s, s->now + sim_ms(ms), ev);
	}
}

static void start_master(struct sim *s, const struct sim_event *ev)
{
	unsigned home = (unsigned)s->home;

	if (s->at[home] >= 0 && ev->addr == home)
		sim_master_kill(s, (unsigned)s->at[home]); /* it should have crashed by now */
	if (s->at[ev->addr] >= 0)
		return;
	if (home != ev->addr && s->at[home] >= 0)
		sim_master_kill(s, (unsigned)s->at[home]);
	sim_master_start(s, ev->addr);
	s->master_gone = false;
	s->away_until = s->now + 6 * SIM_S;
	if (home != ev->addr)
		tell_all(s, home, ev->addr);
}

static void stale(struct sim *s, const struct sim_event *ev)
{
	unsigned from = (unsigned)s->home, to = (from + 1) % SIM_ADDRS, i;
	int no = s->at[from];

	if (no < 0 || s->at[to] >= 0)
		return;
	sim_trace(s, "fault: %s stands still, another one takes over",
		sim_name_master(s, (unsigned)no));
	freeze(s, &s->masters[no].frozen_until, 4000 + ev->gen);
	s->away_until = s->now + 12 * SIM_S;
	/* agents cannot reach the frozen master, and notice this sooner or later */
	for (i = 0; i < s->n_conns; i++)
		if (s->conns[i]->made && s->conns[i]->master == (unsigned)no && ev->inbound)
			sim_conn_cut(s, s->conns[i], true, false);
	sim_master_start(s, to);
	tell_all(s, from, to);
}

static bool has_connected(const struct sim *s, unsigned host)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].proc->host == host && s->peers[i].phase != PEER_ENDED &&
			s->peers[i].state == SHM_COMM_CONNECTED)
			return true;
	return false;
}

/* Should the agent of this host die? In some runs the host must wait for others in a
 * synchronization. In the other runs it must have a member. */
static bool is_worth_it(const struct sim *s, unsigned host)
{
	if (sim_hash(s, 0, 0, FAULT_KILL_AGENT) % 4 == 0 && s->now < WAITER_UNTIL)
		return sim_sync_waiter(s) == (int)host;
	return has_connected(s, host);
}

/* In runs with a single death, the death must hit the right host. Returns whether the fault was
 * scheduled again. */
static bool kill_later(struct sim *s, const struct sim_event *ev)
{
	struct sim_event again = *ev;

	if (s->class != CLASS_AGENT || is_worth_it(s, ev->host) || sim_peers_ended(s))
		return false;
	again.host = sim_rnd(s, s->n_hosts);
	sim_schedule(s, s->now + sim_rnd(s, 2000) * SIM_US, again);
	return true;
}

static void kill_agent(struct sim *s, const struct sim_event *ev)
{
	struct sim_event next = sim_fault_new(FAULT_START_AGENT);
	struct sim_host *h = &s->hosts[ev->host];

	if (!h->alive || kill_later(s, ev))
		return;
	sim_cause(s);
	if (ev->code == FAULT_KILL_AGENT && ev->inbound)
		sim_host_end(s, h);
	else
		sim_host_kill(s, h, ev->code == FAULT_KILL_HOST);
	next.host = ev->host;
	if (ev->gen)
		sim_schedule(s, s->now + sim_ms(ev->gen), next);
}

/* Often directs the fault at a host that waits for others in a synchronization, if there is one. */
static struct sim_event aim(struct sim *s, struct sim_event ev)
{
	int waiter = s->class == CLASS_ALL ? sim_sync_waiter(s) : -1;

	if (waiter >= 0 && (ev.code == FAULT_KILL_AGENT || ev.code == FAULT_CUT) &&
		sim_chance(s, 50))
		ev.host = (unsigned)waiter;
	return ev;
}

static void agent_fault(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];

	switch ((enum sim_fault)ev->code) {
	case FAULT_KILL_AGENT:
	case FAULT_KILL_HOST:
		kill_agent(s, ev);
		break;
	case FAULT_START_AGENT:
		sim_host_start(s, ev->host);
		break;
	case FAULT_SLOW:
		h->slow = ev->gen;
		sim_trace(s, "fault: transfers of h%u take %u times as long", h->no, ev->gen);
		break;
	case FAULT_FREEZE:
		if (!h->alive)
			break;
		sim_cause(s);
		freeze(s, &h->frozen_until, ev->gen);
		sim_trace(s, "fault: the agent of h%u stands still for %u ms", h->no, ev->gen);
		break;
	case FAULT_CUT:
	case FAULT_HALF_OPEN:
		sim_cause(s);
		cut(s, ev);
		break;
	case FAULT_PART:
	case FAULT_UNPART:
		s->parted[ev->host][ev->addr] = ev->code == FAULT_PART;
		sim_trace(s, "fault: h%u %s the master's address %u", h->no,
			ev->code == FAULT_PART ? "does not reach" : "reaches", ev->addr);
		if (ev->code == FAULT_PART) {
			struct sim_event c = *ev;

			c.code = FAULT_HALF_OPEN;
			c.gen = 2;
			sim_cause(s);
			cut(s, &c);
		}
		break;
	case FAULT_SET_MASTER:
		if (s->moved[ev->addr] != (int)ev->link)
			break; /* the master has moved on */
		if (h->alive)
			sim_set_master(s, h, ev->addr, ev->link);
		else /* again, until the host has an agent */
			sim_schedule(s, s->now + sim_ms(500), *ev);
		break;
	default:
		break;
	}
}

static void run_proc(struct sim *s, uint32_t proc)
{
	s->procs[proc].stopped = false;
	sim_schedule(s, s->now + sim_ms(sim_rnd(s, 250)),
		(struct sim_event){
			.kind = SIM_EV_STOPPED, .host = s->procs[proc].host, .proc = proc});
}

void sim_fault(struct sim *s, const struct sim_event *ev)
{
	struct sim_event aimed;

	switch ((enum sim_fault)ev->code) {
	case FAULT_KILL_PROC:
		sim_cause(s);
		sim_proc_kill(s, &s->procs[ev->proc], false);
		break;
	case FAULT_STOP_PROC:
		sim_cause(s);
		stop_proc(s, ev);
		break;
	case FAULT_RUN_PROC:
		run_proc(s, ev->proc);
		break;
	/* each end may notice the break only after the other end's report was handled */
	case FAULT_BREAK_LINK:
		sim_cause(s);
		sim_cause(s);
		break_one(s, ev->host, ev->gen % 3);
		break;
	case FAULT_ROUTED:
		if (!s->links[ev->link].used || s->links[ev->link].gen != ev->gen)
			break;
		sim_cause(s);
		sim_cause(s);
		sim_link_break(s, &s->links[ev->link]);
		break;
	case FAULT_BLOCK:
	case FAULT_UNBLOCK:
		sim_cause(s);
		s->blocked[ev->host][ev->link] = ev->code == FAULT_BLOCK;
		sim_trace(s, "fault: links from h%u to h%u %s", ev->host, ev->link,
			ev->code == FAULT_BLOCK ? "cannot be opened" : "can be opened again");
		break;
	case FAULT_PAIR:
	case FAULT_UNPAIR:
		sim_cause(s);
		sim_pair_cut(s, ev->host, ev->link, ev->code == FAULT_PAIR);
		break;
	case FAULT_FREEZE_MASTER:
		if (s->at[s->home] >= 0)
			freeze(s, &s->masters[s->at[s->home]].frozen_until, ev->gen);
		sim_trace(s, "fault: the master stands still for %u ms", ev->gen);
		s->away_until = s->now + sim_ms(ev->gen) + 6 * SIM_S;
		if (s->class == CLASS_ALL)
			sim_cause(s);
		break;
	case FAULT_CUT_OFF:
		if (s->class == CLASS_ALL)
			sim_cause(s);
		cut_off(s, ev->gen);
		break;
	case FAULT_KILL_MASTER:
		if (s->class == CLASS_ALL)
			sim_cause(s);
		kill_master(s, ev);
		break;
	case FAULT_START_MASTER:
		start_master(s, ev);
		break;
	case FAULT_STALE:
		sim_cause(s);
		stale(s, ev);
		break;
	case FAULT_REFUSE:
	case FAULT_ACCEPT:
		s->master_refuses = ev->code == FAULT_REFUSE;
		break;
	default:
		if (sim_scene(s, ev))
			break;
		aimed = aim(s, *ev);
		agent_fault(s, &aimed);
		break;
	}
}
