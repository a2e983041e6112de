/* SPDX-License-Identifier: MIT
 *
 * What goes wrong, and when. Each class of runs allows itself so much, so that the strictest
 * promises can be held against it: nothing is noticed of a master's death, and one error at most of
 * an agent's.
 */
#include "tests/sim/sim.h"

#define WAITER_UNTIL (20 * SIM_S) /* after that somebody else will do */

enum fault {
	FAULT_KILL_PROC,
	FAULT_STOP_PROC, /* for gen ms */
	FAULT_RUN_PROC,
	FAULT_KILL_AGENT, /* inbound: it is told to end; restarted after gen ms; 0: never */
	FAULT_START_AGENT,
	FAULT_KILL_HOST,
	FAULT_BREAK_LINK,
	FAULT_BLOCK,
	FAULT_UNBLOCK,
	FAULT_PAIR, /* host and link hear nothing of each other */
	FAULT_UNPAIR,
	FAULT_CUT,       /* both ends see it */
	FAULT_HALF_OPEN, /* one end sees it, at most */
	FAULT_PART,      /* the host and the master's address do not reach each other */
	FAULT_UNPART,
	FAULT_FREEZE, /* the agent, for gen ms */
	FAULT_SLOW,
	FAULT_FREEZE_MASTER,
	FAULT_KILL_MASTER, /* a new one at `place` after gen ms; 0: never */
	FAULT_START_MASTER,
	FAULT_SET_MASTER, /* host: from place to link */
	FAULT_STALE,      /* the master stands still, a new one takes over, the old one wakes */
	FAULT_REFUSE,
	FAULT_ACCEPT,
	FAULT_VOTER,     /* leaves while another one is late and the master out of reach */
	FAULT_REST,      /* the master loses all hosts but one, which goes on; then both it and that
			  * one's agent die */
	FAULT_REST_LATE, /* a program on that host begins */
};

void sim_cause(struct sim *s)
{
	s->causes++;
}

static struct sim_event fault(enum fault f)
{
	return (struct sim_event){.kind = SIM_EV_FAULT, .code = f};
}

static uint64_t ms(uint64_t n)
{
	return n * SIM_MS;
}

/* Never shorter than it was: what waits would be overtaken by what comes then. */
static void freeze(struct sim *s, uint64_t *frozen_until, uint64_t n)
{
	if (*frozen_until < s->now + ms(n))
		*frozen_until = s->now + ms(n);
}

static void plan_master(struct sim *s, uint64_t at)
{
	struct sim_event ev = fault(FAULT_KILL_MASTER);

	if (sim_chance(s, 25)) {
		ev.code = FAULT_FREEZE_MASTER;
		ev.gen = 200 + sim_rnd(s, 8000);
		sim_schedule(s, at, ev);
		return;
	}
	ev.place =
		sim_chance(s, 70) ? SIM_PLACES : sim_rnd(s, SIM_PLACES); /* SIM_PLACES: the same */
	ev.gen = 20 + sim_rnd(s, sim_chance(s, 70) ? 500 : s->master_grace_ms / 3);
	ev.inbound = sim_chance(s, 50); /* in the middle of a step */
	sim_schedule(s, at, ev);
}

/* The master moves. Returns when all agents have been told and are with it again; those that start
 * later have not. */
static uint64_t plan_move(struct sim *s, uint64_t at)
{
	struct sim_event ev = fault(FAULT_KILL_MASTER);

	ev.place = 1 + sim_rnd(s, SIM_PLACES - 1);
	ev.gen = 20 + sim_rnd(s, 200);
	sim_schedule(s, at, ev);
	return at + ms(1500);
}

static void plan_agent(struct sim *s, uint64_t at, uint32_t grace_percent)
{
	struct sim_event ev = fault(FAULT_KILL_AGENT);

	ev.host = sim_rnd(s, s->n_hosts);
	ev.gen = 10 + sim_rnd(s, s->agent_grace_ms * grace_percent / 100);
	ev.inbound = sim_chance(s, 40);
	sim_schedule(s, at, ev);
}

static void plan_pair(struct sim *s, uint64_t at)
{
	struct sim_event ev = fault(FAULT_PAIR);

	if (s->n_hosts < 2)
		return;
	ev.host = sim_rnd(s, s->n_hosts);
	ev.link = (ev.host + 1 + sim_rnd(s, s->n_hosts - 1)) % s->n_hosts;
	sim_schedule(s, at, ev);
	ev.code = FAULT_UNPAIR;
	sim_schedule(s, at + ms(sim_chance(s, 50) ? 3200 : 10000) + ms(sim_rnd(s, 20000)), ev);
}

/* The master dies, often in the middle of telling, and then an agent that may be the only one it
 * has told. Both are back soon. */
static void plan_together(struct sim *s, uint64_t at, unsigned host)
{
	struct sim_event ev = fault(FAULT_KILL_MASTER);

	ev.place = SIM_PLACES;
	ev.gen = 10 + sim_rnd(s, 1000);
	ev.inbound = sim_chance(s, 70);
	sim_schedule(s, at, ev);
	ev.code = FAULT_KILL_AGENT;
	ev.host = host;
	ev.gen = 10 + sim_rnd(s, 1000);
	sim_schedule(s, at + sim_rnd(s, 40000) * SIM_US, ev);
}

/* Three peers of one host and group: one is late, so the others vote without it; one of these dies
 * about when the master cannot be reached. */
static void plan_voter(struct sim *s, uint64_t at)
{
	struct sim_event ev = fault(FAULT_VOTER);

	ev.gen = 100; /* so often it looks for such a host */
	sim_schedule(s, at, ev);
}

/* Who goes on without the others, until nobody but its shims knows of that; and then one that does
 * not may be the first to come to its host's new agent. */
static void plan_rest(struct sim *s, uint64_t at)
{
	struct sim_event ev = fault(FAULT_REST);
	unsigned i, last = sim_rnd(s, s->n_procs);

	s->busy_until = at + 10 * SIM_S;
	ev.host = s->procs[last].host;
	ev.gen = 1000; /* so often it looks */
	ev.peer = SIM_PEERS;
	for (i = 0; i < s->n_procs; i++)
		if (i != last && s->procs[i].host == ev.host && sim_chance(s, 50))
			ev.peer = last;
	if (ev.peer < SIM_PEERS)
		sim_peer_later(s, &s->peers[ev.peer], 60 * SIM_S);
	sim_schedule(s, at, ev);
}

/* What processes and links do. */
static void plan_small(struct sim *s, uint32_t kind, uint64_t at)
{
	uint64_t until = at + ms(100 + sim_rnd(s, 3000));
	struct sim_event ev;

	ev = fault(kind < 45   ? FAULT_KILL_PROC
		   : kind < 80 ? FAULT_BREAK_LINK
		   : kind < 90 ? FAULT_BLOCK
			       : FAULT_STOP_PROC);
	ev.host = sim_rnd(s, s->n_hosts);
	ev.proc = sim_rnd(s, s->n_procs);
	ev.link = sim_rnd(s, s->n_hosts);
	ev.gen = 100 + sim_rnd(s, 15000);
	sim_schedule(s, at, ev);
	if (ev.code == FAULT_BLOCK) {
		ev.code = FAULT_UNBLOCK;
		sim_schedule(s, until, ev);
	}
}

/* What daemons and their connections do. */
static void plan_large(struct sim *s, uint32_t kind, uint64_t at)
{
	uint64_t until = at + ms(100 + sim_rnd(s, 6000));
	struct sim_event ev = {.kind = SIM_EV_FAULT};

	ev.host = sim_rnd(s, s->n_hosts);
	ev.gen = 100 + sim_rnd(s, 6000);
	ev.place = sim_rnd(s, SIM_PLACES);
	ev.inbound = sim_chance(s, 50);
	if (kind < 12) {
		ev.code = FAULT_CUT;
	} else if (kind < 24) {
		ev.code = FAULT_HALF_OPEN;
		ev.gen = sim_rnd(s, 3);
	} else if (kind < 32) {
		ev.code = FAULT_FREEZE;
	} else if (kind < 38) {
		ev.code = FAULT_FREEZE_MASTER;
	} else if (kind < 42) {
		ev.code = FAULT_SLOW;
		ev.gen = 20 + sim_rnd(s, 300);
	} else if (kind < 48) {
		plan_together(s, at, sim_rnd(s, s->n_hosts));
		return;
	} else if (kind < 58) {
		ev.code = FAULT_KILL_AGENT;
		ev.gen = sim_chance(s, 15) ? 0 : 10 + sim_rnd(s, 2 * s->agent_grace_ms);
	} else if (kind < 62) {
		ev.code = FAULT_KILL_HOST;
		ev.gen = 0;
	} else if (kind < 76) {
		ev.code = FAULT_KILL_MASTER;
		ev.gen = sim_chance(s, 8) ? 0 : 10 + sim_rnd(s, s->master_grace_ms);
		ev.place = sim_chance(s, 60) ? SIM_PLACES : ev.place;
	} else if (kind < 86) {
		ev.code = FAULT_STALE;
	} else if (kind < 94) {
		ev.code = FAULT_PART;
		ev.place = 0;
		sim_schedule(s, at, ev);
		ev.code = FAULT_UNPART;
		at = until;
	} else {
		ev.code = FAULT_REFUSE;
		sim_schedule(s, at, ev);
		ev.code = FAULT_ACCEPT;
		at = until;
	}
	sim_schedule(s, at, ev);
}

void sim_faults_plan(struct sim *s)
{
	uint32_t n = 1 + sim_rnd(s, 8), reach = 200 + sim_rnd(s, 3000);
	uint64_t at = s->now;

	switch (s->class) {
	case CLASS_CALM:
		break;
	case CLASS_MASTER:
		for (n = 1 + n / 3; n > 0; n--) {
			at += ms(sim_rnd(s, 1500));
			plan_master(s, at);
			at += ms(s->master_grace_ms / 3 + 4000);
		}
		break;
	case CLASS_AGENT:
		if (sim_chance(s, 40)) {
			at = plan_move(s, at + ms(sim_rnd(s, 500)));
			reach = 500;
			s->busy_until = at + 2 * ms(reach);
		}
		plan_agent(s, at + ms(sim_rnd(s, reach)), 50);
		break;
	case CLASS_PAIR:
		plan_pair(s, at + ms(sim_rnd(s, reach)));
		break;
	case CLASS_ALL:
		s->xfer_failures = sim_chance(s, 30);
		if (sim_chance(s, 15)) {
			plan_voter(s, s->now + ms(sim_rnd(s, 300)));
			n /= 3;
		} else if (s->n_hosts > 1 && sim_hash(s, 0, 0, FAULT_REST) % 100 < 15) {
			plan_rest(s, s->now + ms(200 + sim_rnd(s, 500)));
			n /= 3;
		}
		while (n-- > 0) {
			at = s->now + ms(sim_rnd(s, reach));
			if (sim_chance(s, 45))
				plan_small(s, sim_rnd(s, 100), at);
			else
				plan_large(s, sim_rnd(s, 100), at);
		}
		break;
	}
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
	struct sim_event next = fault(FAULT_RUN_PROC);

	if (!q->alive || q->stopped)
		return;
	sim_trace(s, "fault: process %u on h%u is stopped for %u ms", q->no, q->host, ev->gen);
	q->stopped = true;
	q->stopped_until = s->now + ms(ev->gen);
	next.proc = q->no;
	sim_schedule(s, q->stopped_until, next);
	/* the agent looks every 250 ms */
	sim_schedule(s, s->now + ms(sim_rnd(s, 250)),
		(struct sim_event){
			.kind = SIM_EV_STOPPED, .host = q->host, .proc = q->no, .code = 1});
}

static void kill_master(struct sim *s, const struct sim_event *ev)
{
	struct sim_event next = fault(FAULT_START_MASTER);
	int no = s->at[s->home];
	unsigned from = (unsigned)s->home;

	if (no < 0)
		return;
	next.place = ev->place == SIM_PLACES || s->at[ev->place] >= 0 ? from : ev->place;
	s->master_away = true;
	if (ev->gen)
		sim_schedule(s, s->now + ms(ev->gen), next);
	if (ev->inbound) /* whatever it does next, it does not bring it to an end */
		s->masters[no].crash_next = true;
	else
		sim_master_kill(s, (unsigned)no);
}

/* The operator has moved the master: all agents are told, one after the other. */
static void tell_all(struct sim *s, unsigned from, unsigned to)
{
	struct sim_event ev = fault(FAULT_SET_MASTER);
	unsigned i;

	s->moved[from] = (int)to;
	s->moved[to] = -1;
	s->home = (int)to;
	ev.place = from;
	ev.link = to;
	for (i = 0; i < s->n_hosts; i++) {
		ev.host = i;
		sim_schedule(s, s->now + ms(sim_rnd(s, 1000)), ev);
	}
}

static void start_master(struct sim *s, const struct sim_event *ev)
{
	unsigned home = (unsigned)s->home;

	if (s->at[home] >= 0 && ev->place == home)
		sim_master_kill(s, (unsigned)s->at[home]); /* still to crash */
	if (s->at[ev->place] >= 0)
		return;
	if (home != ev->place && s->at[home] >= 0)
		sim_master_kill(s, (unsigned)s->at[home]);
	sim_master_start(s, ev->place);
	s->master_away = false;
	s->away_until = s->now + 6 * SIM_S;
	if (home != ev->place)
		tell_all(s, home, ev->place);
}

static void stale(struct sim *s, const struct sim_event *ev)
{
	unsigned from = (unsigned)s->home, to = (from + 1) % SIM_PLACES, i;
	int no = s->at[from];

	if (no < 0 || s->at[to] >= 0)
		return;
	sim_trace(s, "fault: %s stands still, another one takes over",
		sim_name_master(s, (unsigned)no));
	freeze(s, &s->masters[no].frozen_until, 4000 + ev->gen);
	s->away_until = s->now + 12 * SIM_S;
	/* nobody gets through to it, and agents see that soon or late */
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

/* In some runs, one that waits for others in a synchronization. */
static bool is_worth_it(const struct sim *s, unsigned host)
{
	if (sim_hash(s, 0, 0, FAULT_KILL_AGENT) % 4 == 0 && s->now < WAITER_UNTIL)
		return sim_sync_waiter(s) == (int)host;
	return has_connected(s, host);
}

/* Runs with a single death: it is to hit somebody. True: the event comes again. */
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
	struct sim_event next = fault(FAULT_START_AGENT);
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
		sim_schedule(s, s->now + ms(ev->gen), next);
}

static bool votes_with(const struct sim_peer *p, const struct sim_peer *q)
{
	return p->proc != q->proc && p->proc->host == q->proc->host && p->group == q->group &&
	       p->proc->alive && q->proc->alive && !p->proc->stopped && p->phase == PEER_STEPS &&
	       q->phase == PEER_STEPS;
}

/* Nothing comes from the host to the master for a while. */
static void out_of_reach(struct sim *s, unsigned host, uint64_t at)
{
	static const enum fault kinds[] = {FAULT_CUT, FAULT_HALF_OPEN, FAULT_HALF_OPEN,
		FAULT_FREEZE_MASTER, FAULT_FREEZE_MASTER, FAULT_KILL_MASTER};
	struct sim_event ev = fault(kinds[sim_rnd(s, sizeof kinds / sizeof kinds[0])]);

	ev.host = host;
	ev.place = SIM_PLACES;
	ev.gen = ev.code == FAULT_HALF_OPEN ? sim_rnd(s, 3) : 500 + sim_rnd(s, 3500);
	sim_schedule(s, at, ev);
}

static void voter(struct sim *s, const struct sim_event *ev)
{
	struct sim_event stop = fault(FAULT_STOP_PROC), kill = fault(FAULT_KILL_PROC);
	unsigned i, k, n, from = sim_rnd(s, s->n_peers);
	const struct sim_peer *late, *others[2];

	for (i = 0; i < s->n_peers; i++) {
		late = &s->peers[(from + i) % s->n_peers];
		for (k = 0, n = 0; k < s->n_peers && n < 2; k++)
			if (votes_with(late, &s->peers[k]))
				others[n++] = &s->peers[k];
		if (n < 2 || others[0]->proc == others[1]->proc)
			continue;
		s->voters++;
		stop.proc = late->proc->no;
		stop.gen = 1500 + sim_rnd(s, 3000);
		kill.proc = others[sim_rnd(s, 2)]->proc->no;
		sim_schedule(s, s->now, stop);
		sim_schedule(s, s->now + ms(800 + sim_rnd(s, 2200)), kill);
		out_of_reach(s, late->proc->host, s->now + ms(800 + sim_rnd(s, 2200)));
		return;
	}
	stop = *ev;
	if (stop.gen-- > 0)
		sim_schedule(s, s->now + ms(1 + sim_rnd(s, 50)), stop);
}

struct rest {
	const struct cc_id *agent;
	uint32_t here, elsewhere;
};

static void count_rest(void *arg, const struct ccm_peer_info *p)
{
	struct rest *r = arg;

	if (p->phase != CCM_PEER_ACCEPTED)
		return;
	r->here += cc_id_eq(&p->agent, r->agent);
	r->elsewhere += !cc_id_eq(&p->agent, r->agent);
}

/* All hosts but one do not reach the master, or do again. */
static void part_others(struct sim *s, unsigned host, enum fault f, uint32_t within_ms)
{
	struct sim_event ev = fault(f);

	for (ev.host = 0; ev.host < s->n_hosts; ev.host++)
		if (ev.host != host)
			sim_schedule(s, s->now + sim_rnd(s, within_ms * 1000) * SIM_US, ev);
}

/* inbound: the others are cut off. */
static void rest(struct sim *s, const struct sim_event *ev)
{
	struct rest r = {.agent = &s->hosts[ev->host].id};
	struct sim_event next = *ev, late = fault(FAULT_REST_LATE);
	const struct sim_master *m;
	bool ready;

	if (s->at[0] >= 0) {
		m = &s->masters[s->at[0]];
		ccm_each_peer(m->m, sim_clock_now(s, &m->clock), count_rest, &r);
	}
	ready = r.here > 0 && (r.elsewhere == 0) == ev->inbound;
	if (!ready && --next.gen > 0) {
		sim_schedule(s, s->now + ms(10), next);
		return;
	}
	if (ready && !ev->inbound) {
		part_others(s, ev->host, FAULT_PART, 300);
		next.inbound = true;
		sim_schedule(s, s->now + ms(300), next);
		return;
	}
	if (ready) {
		sim_trace(s, "fault: h%u alone is left with the master", ev->host);
		s->rests++;
		plan_together(s, s->now + ms(sim_rnd(s, 300)), ev->host);
	}
	part_others(s, ev->host, FAULT_UNPART, 1000);
	late.peer = ev->peer;
	if (late.peer < SIM_PEERS)
		sim_schedule(s, s->now + ms(sim_rnd(s, 1500)), late);
}

/* Often at a host that waits for others in a synchronization, if there is one. */
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

	switch ((enum fault)ev->code) {
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
		s->parted[ev->host][ev->place] = ev->code == FAULT_PART;
		sim_trace(s, "fault: h%u %s the master's place %u", h->no,
			ev->code == FAULT_PART ? "does not reach" : "reaches", ev->place);
		if (ev->code == FAULT_PART) {
			struct sim_event c = *ev;

			c.code = FAULT_HALF_OPEN;
			c.gen = 2;
			sim_cause(s);
			cut(s, &c);
		}
		break;
	case FAULT_SET_MASTER:
		if (s->moved[ev->place] != (int)ev->link)
			break; /* it has moved on */
		if (h->alive)
			sim_set_master(s, h, ev->place, ev->link);
		else /* once more, until somebody takes it */
			sim_schedule(s, s->now + ms(500), *ev);
		break;
	default:
		break;
	}
}

static void run_proc(struct sim *s, uint32_t proc)
{
	s->procs[proc].stopped = false;
	sim_schedule(s, s->now + ms(sim_rnd(s, 250)),
		(struct sim_event){
			.kind = SIM_EV_STOPPED, .host = s->procs[proc].host, .proc = proc});
}

void sim_fault(struct sim *s, const struct sim_event *ev)
{
	struct sim_event aimed;

	switch ((enum fault)ev->code) {
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
	case FAULT_BREAK_LINK: /* each end may see it when the other one's report is dealt with */
		sim_cause(s);
		sim_cause(s);
		break_one(s, ev->host);
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
		s->away_until = s->now + ms(ev->gen) + 6 * SIM_S;
		if (s->class == CLASS_ALL)
			sim_cause(s);
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
	case FAULT_VOTER:
		voter(s, ev);
		break;
	case FAULT_REST:
		rest(s, ev);
		break;
	case FAULT_REST_LATE:
		sim_peer_later(s, &s->peers[ev->peer], 0);
		break;
	default:
		aimed = aim(s, *ev);
		agent_fault(s, &aimed);
		break;
	}
}
