/* SPDX-License-Identifier: MIT
 *
 * Times of faults. Each class of runs has only certain faults, so that the strictest promises can
 * be checked: programs notice nothing of a master's death, and get at most one error from an
 * agent's death. A scene is a set of faults that go together. It waits for the moment when they
 * matter.
 */
#include "tests/sim/sim_fault.h"

static void plan_master(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_KILL_MASTER);

	uint32_t kind = sim_rnd(s, 100);

	if (kind < 40) {
		ev.code = kind < 20 ? FAULT_FREEZE_MASTER : FAULT_CUT_OFF;
		/* programs would notice a shorter cut only as a delay */
		ev.gen = kind < 20 ? 200 + sim_rnd(s, 8000) : 1600 + sim_rnd(s, 4000);
		sim_schedule(s, at, ev);
		return;
	}
	/* SIM_ADDRS: the same address */
	ev.addr = sim_chance(s, 70) ? SIM_ADDRS : sim_rnd(s, SIM_ADDRS);
	ev.gen = 20 + sim_rnd(s, sim_chance(s, 70) ? 500 : s->master_lease_ms / 3);
	ev.inbound = sim_chance(s, 50); /* in the middle of a step */
	sim_schedule(s, at, ev);
}

/* The master moves. Returns the time when all agents have been told and are connected again. Agents
 * that start later have not been told. */
static uint64_t plan_move(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_KILL_MASTER);

	ev.addr = 1 + sim_rnd(s, SIM_ADDRS - 1);
	ev.gen = 20 + sim_rnd(s, 200);
	sim_schedule(s, at, ev);
	return at + sim_ms(1500);
}

static void plan_agent(struct sim *s, uint64_t at, uint32_t lease_percent)
{
	struct sim_event ev = sim_fault_new(FAULT_KILL_AGENT);

	ev.host = sim_rnd(s, s->n_hosts);
	ev.gen = 10 + sim_rnd(s, s->agent_lease_ms * lease_percent / 100);
	ev.inbound = sim_chance(s, 40);
	sim_schedule(s, at, ev);
}

static void plan_pair(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_PAIR);

	if (s->n_hosts < 2)
		return;
	ev.host = sim_rnd(s, s->n_hosts);
	ev.link = (ev.host + 1 + sim_rnd(s, s->n_hosts - 1)) % s->n_hosts;
	sim_schedule(s, at, ev);
	ev.code = FAULT_UNPAIR;
	sim_schedule(
		s, at + sim_ms(sim_chance(s, 50) ? 3200 : 10000) + sim_ms(sim_rnd(s, 20000)), ev);
}

/* The master dies, often in the middle of a step. Then an agent dies, which may be the only agent
 * that has received the master's last message. Both are back soon. */
static void plan_together(struct sim *s, uint64_t at, unsigned host)
{
	struct sim_event ev = sim_fault_new(FAULT_KILL_MASTER);

	ev.addr = SIM_ADDRS;
	ev.gen = 10 + sim_rnd(s, 1000);
	ev.inbound = sim_chance(s, 70);
	sim_schedule(s, at, ev);
	ev.code = FAULT_KILL_AGENT;
	ev.host = host;
	ev.gen = 10 + sim_rnd(s, 1000);
	sim_schedule(s, at + sim_rnd(s, 40000) * SIM_US, ev);
}

/* Three peers are of one host and group. One is late, so the others vote without it. One of these
 * two dies at about the time when the master cannot be reached. */
static void plan_voter(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_VOTER);

	ev.gen = 100; /* the number of times that it looks for such a host */
	sim_schedule(s, at, ev);
}

/* One host goes on without the others, until the master and the host's agent die. Then only the
 * host's shims know of this. A process that does not know of it may be the first to connect to the
 * host's new agent. */
static void plan_rest(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_REST);
	unsigned i, last = sim_rnd(s, s->n_procs);

	s->busy_until = at + 10 * SIM_S;
	ev.host = s->procs[last].host;
	ev.gen = 1000; /* the number of times that it looks */
	ev.peer = SIM_PEERS;
	for (i = 0; i < s->n_procs; i++)
		if (i != last && s->procs[i].host == ev.host && sim_chance(s, 50))
			ev.peer = last;
	if (ev.peer < SIM_PEERS)
		sim_peer_later(s, &s->peers[ev.peer], 60 * SIM_S);
	sim_schedule(s, at, ev);
}

/* A router between two hosts resets links that carry an operation, in one direction or in both. */
static void plan_router(struct sim *s)
{
	uint64_t h = sim_hash(s, 1, 0, FAULT_ROUTED);
	unsigned one = (unsigned)(h % s->n_hosts), step = (unsigned)(h / 8 % (s->n_hosts - 1));
	unsigned other = (one + 1 + step) % s->n_hosts;

	s->routed[one][other] = true;
	s->routed[other][one] = h / 64 % 2;
	s->routed_until = s->now + 20 * SIM_S;
}

/* A few faults hit a host that has not opened its links to all other hosts yet. */
static void plan_half_open(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_MESH);
	uint32_t n = 1 + sim_rnd(s, 4);

	s->busy_until = at + 4 * SIM_S;
	ev.gen = 10000; /* the number of times that it looks for such a host */
	while (n-- > 0) {
		at += sim_ms(sim_rnd(s, 800));
		sim_schedule(s, at, ev);
	}
}

/* The master will die when it has told only some hosts of a success. */
static void plan_witness(struct sim *s, uint64_t at)
{
	s->busy_until = at + 3 * SIM_S;
	sim_schedule(s, at, sim_fault_new(FAULT_WITNESS));
}

/* Several processes of one host die at once, often while the master is frozen. */
static void plan_deaths(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_FREEZE_MASTER);

	ev.gen = 20;
	if (sim_chance(s, 40))
		sim_schedule(s, at, ev);
	ev.code = FAULT_DEATHS;
	ev.host = sim_rnd(s, s->n_hosts);
	ev.gen = 2 + sim_rnd(s, 2);
	sim_schedule(s, at + sim_ms(sim_rnd(s, 5)), ev);
}

/* Links are reset, and one end does not learn of it. */
static void plan_resets(struct sim *s, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_BREAK_LINK);
	uint32_t n = 1 + sim_rnd(s, 3);

	while (n-- > 0) {
		ev.host = sim_rnd(s, s->n_hosts);
		ev.gen = 1 + sim_rnd(s, 2);
		sim_schedule(s, at + sim_rnd(s, 2000) * SIM_US, ev);
	}
}

/* Plans a fault of a process or a link. */
static void plan_small(struct sim *s, uint32_t kind, uint64_t at)
{
	uint64_t until = at + sim_ms(100 + sim_rnd(s, 3000));
	struct sim_event ev;

	ev = sim_fault_new(kind < 45   ? FAULT_KILL_PROC
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

/* Plans a fault of a daemon or its connections. */
static void plan_large(struct sim *s, uint32_t kind, uint64_t at)
{
	uint64_t until = at + sim_ms(100 + sim_rnd(s, 6000));
	struct sim_event ev = {.kind = SIM_EV_FAULT};

	ev.host = sim_rnd(s, s->n_hosts);
	ev.gen = 100 + sim_rnd(s, 6000);
	ev.addr = sim_rnd(s, SIM_ADDRS);
	ev.inbound = sim_chance(s, 50);
	if (kind < 12) {
		ev.code = FAULT_CUT;
	} else if (kind < 24) {
		ev.code = FAULT_HALF_OPEN;
		ev.gen = sim_rnd(s, 3);
	} else if (kind < 32) {
		ev.code = FAULT_FREEZE;
	} else if (kind < 38) {
		ev.code = ev.inbound ? FAULT_FREEZE_MASTER : FAULT_CUT_OFF;
	} else if (kind < 42) {
		ev.code = FAULT_SLOW;
		ev.gen = 20 + sim_rnd(s, 300);
	} else if (kind < 48) {
		plan_together(s, at, sim_rnd(s, s->n_hosts));
		return;
	} else if (kind < 58) {
		ev.code = FAULT_KILL_AGENT;
		ev.gen = sim_chance(s, 15) ? 0 : 10 + sim_rnd(s, 2 * s->agent_lease_ms);
	} else if (kind < 62) {
		ev.code = FAULT_KILL_HOST;
		ev.gen = 0;
	} else if (kind < 76) {
		ev.code = FAULT_KILL_MASTER;
		ev.gen = sim_chance(s, 8) ? 0 : 10 + sim_rnd(s, s->master_lease_ms);
		ev.addr = sim_chance(s, 60) ? SIM_ADDRS : ev.addr;
	} else if (kind < 86) {
		ev.code = FAULT_STALE;
	} else if (kind < 94) {
		ev.code = FAULT_PART;
		ev.addr = 0;
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

static void plan_class(struct sim *s)
{
	uint32_t n = 1 + sim_rnd(s, 8), reach = 200 + sim_rnd(s, 3000);
	uint64_t at = s->now;

	switch (s->class) {
	case CLASS_CALM:
		break;
	case CLASS_MASTER:
		for (n = 1 + n / 3; n > 0; n--) {
			at += sim_ms(sim_rnd(s, 1500));
			if (sim_hash(s, n, 0, FAULT_STARTING) % 100 < 30)
				sim_schedule(s, at, sim_fault_new(FAULT_STARTING));
			else
				plan_master(s, at);
			at += sim_ms(s->master_lease_ms / 3 + 4000);
		}
		break;
	case CLASS_AGENT:
		if (sim_chance(s, 40)) {
			at = plan_move(s, at + sim_ms(sim_rnd(s, 500)));
			reach = 500;
			s->busy_until = at + 2 * sim_ms(reach);
		}
		plan_agent(s, at + sim_ms(sim_rnd(s, reach)), 50);
		break;
	case CLASS_PAIR:
		plan_pair(s, at + sim_ms(sim_rnd(s, reach)));
		break;
	case CLASS_DEATHS:
		s->busy_until = s->now + 2 * sim_ms(reach);
		for (n = 1 + n / 3; n > 0; n--) {
			at = s->now + sim_ms(sim_rnd(s, reach));
			if (sim_chance(s, 60))
				plan_deaths(s, at);
			else
				plan_resets(s, at);
		}
		break;
	case CLASS_ALL:
		s->xfer_failures = sim_chance(s, 30);
		if (s->n_hosts > 1 && sim_hash(s, 0, 0, FAULT_ROUTED) % 100 < 10)
			plan_router(s);
		if (sim_hash(s, 0, 0, FAULT_STARTING) % 100 < 10)
			sim_schedule(s, at + sim_ms(sim_hash(s, 1, 0, FAULT_STARTING) % 3000),
				sim_fault_new(FAULT_STARTING));
		if (sim_chance(s, 15)) {
			plan_voter(s, s->now + sim_ms(sim_rnd(s, 300)));
			n /= 3;
		} else if (s->n_hosts > 1 && sim_hash(s, 0, 0, FAULT_REST) % 100 < 15) {
			plan_rest(s, s->now + sim_ms(200 + sim_rnd(s, 500)));
			n /= 3;
		} else if (s->n_hosts > 1 && sim_hash(s, 0, 0, FAULT_WITNESS) % 100 < 30) {
			plan_witness(s, s->now + sim_ms(100 + sim_rnd(s, 1500)));
			n /= 3;
		} else if (s->n_hosts > 2 && sim_hash(s, 0, 0, FAULT_MESH) % 100 < 30) {
			plan_half_open(s, s->now + sim_ms(sim_rnd(s, 300)));
			n /= 3;
		}
		while (n-- > 0) {
			at = s->now + sim_ms(sim_rnd(s, reach));
			if (sim_chance(s, 45))
				plan_small(s, sim_rnd(s, 100), at);
			else
				plan_large(s, sim_rnd(s, 100), at);
		}
		break;
	}
}

/* In some runs a link becomes slow. Then programs go on for longer, and so do the faults. */
static void plan_slow_link(struct sim *s)
{
	uint32_t i,
		n = s->class == CLASS_ALL ? (uint32_t)(sim_hash(s, 1, 0, FAULT_SLOW_LINK) % 3) : 0;
	uint64_t at;

	if (s->n_hosts < 3 || sim_hash(s, 0, 0, FAULT_SLOW_LINK) % 100 >= 8)
		return;
	sim_slow_begin(s);
	for (i = 0; i < n; i++) {
		at = s->now + sim_ms(sim_rnd(s, 60000));
		if (sim_chance(s, 60))
			plan_small(s, sim_rnd(s, 100), at);
		else
			plan_large(s, sim_rnd(s, 100), at);
	}
}

void sim_faults_plan(struct sim *s)
{
	plan_class(s);
	plan_slow_link(s);
}

static uint32_t count_procs(const struct sim *s, unsigned host)
{
	unsigned i, n = 0;

	for (i = 0; i < s->n_procs; i++)
		n += s->procs[i].alive && s->procs[i].host == host;
	return n;
}

static void deaths(struct sim *s, const struct sim_event *ev)
{
	struct sim_event kill = sim_fault_new(FAULT_KILL_PROC);
	unsigned i, k, n = 0, host, from = sim_rnd(s, s->n_procs);
	uint32_t within = sim_chance(s, 50) ? 1 : 2000;

	for (k = 0; k < s->n_hosts; k++) {
		host = (ev->host + k) % s->n_hosts;
		if (count_procs(s, host) < ev->gen)
			continue;
		for (i = 0; i < s->n_procs && n < ev->gen; i++) {
			kill.proc = (from + i) % s->n_procs;
			if (!s->procs[kill.proc].alive || s->procs[kill.proc].host != host)
				continue;
			n++;
			sim_schedule(s, s->now + sim_rnd(s, within) * SIM_US, kill);
		}
		return;
	}
}

static bool votes_with(const struct sim_peer *p, const struct sim_peer *q)
{
	return p->proc != q->proc && p->proc->host == q->proc->host && p->group == q->group &&
	       p->proc->alive && q->proc->alive && !p->proc->stopped && p->phase == PEER_STEPS &&
	       q->phase == PEER_STEPS;
}

/* For a while, the master receives nothing from the host. */
static void out_of_reach(struct sim *s, unsigned host, uint64_t at)
{
	static const enum sim_fault kinds[] = {FAULT_CUT, FAULT_HALF_OPEN, FAULT_HALF_OPEN,
		FAULT_FREEZE_MASTER, FAULT_FREEZE_MASTER, FAULT_KILL_MASTER};
	struct sim_event ev = sim_fault_new(kinds[sim_rnd(s, sizeof kinds / sizeof kinds[0])]);

	ev.host = host;
	ev.addr = SIM_ADDRS;
	ev.gen = ev.code == FAULT_HALF_OPEN ? sim_rnd(s, 3) : 500 + sim_rnd(s, 3500);
	sim_schedule(s, at, ev);
}

static void voter(struct sim *s, const struct sim_event *ev)
{
	struct sim_event stop = sim_fault_new(FAULT_STOP_PROC),
			 kill = sim_fault_new(FAULT_KILL_PROC);
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
		sim_schedule(s, s->now + sim_ms(800 + sim_rnd(s, 2200)), kill);
		out_of_reach(s, late->proc->host, s->now + sim_ms(800 + sim_rnd(s, 2200)));
		return;
	}
	stop = *ev;
	if (stop.gen-- > 0)
		sim_schedule(s, s->now + sim_ms(1 + sim_rnd(s, 50)), stop);
}

/* Hits a host that has opened some of its links. A link that is lost at one end is often followed
 * by a fault that keeps the loss, or the order to open the link again, from its receiver. */
static void half_open(struct sim *s, const struct sim_event *ev)
{
	static const enum sim_fault kinds[] = {FAULT_KILL_AGENT, FAULT_KILL_PROC, FAULT_KILL_MASTER,
		FAULT_FREEZE_MASTER, FAULT_CUT, FAULT_HALF_OPEN, FAULT_FREEZE};
	int host = sim_mesh_half_open(s);
	struct sim_event next = *ev;
	uint32_t i;

	if (host < 0) {
		if (next.gen-- > 0)
			sim_schedule(s, s->now + sim_rnd(s, 1000) * SIM_US, next);
		return;
	}
	s->seen[SEEN_HALF_OPEN]++;
	next = sim_fault_new(FAULT_BREAK_LINK);
	next.host = (unsigned)host;
	for (i = sim_rnd(s, 3); i > 0; i--) {
		next.gen = 1 + sim_rnd(s, 2);
		sim_schedule(s, s->now + sim_rnd(s, 3000) * SIM_US, next);
	}
	next.code = kinds[sim_rnd(s, sizeof kinds / sizeof kinds[0])];
	next.host = sim_chance(s, 50) ? (unsigned)host : sim_rnd(s, s->n_hosts);
	next.proc = sim_rnd(s, s->n_procs);
	next.addr = SIM_ADDRS;
	next.gen = next.code == FAULT_HALF_OPEN ? sim_rnd(s, 3) : 10 + sim_rnd(s, 2000);
	sim_schedule(s, s->now + sim_rnd(s, 4000) * SIM_US, next);
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

/* Cuts all hosts but this one off from the master, or connects them again. */
static void part_others(struct sim *s, unsigned host, enum sim_fault f, uint32_t within_ms)
{
	struct sim_event ev = sim_fault_new(f);

	for (ev.host = 0; ev.host < s->n_hosts; ev.host++)
		if (ev.host != host)
			sim_schedule(s, s->now + sim_rnd(s, within_ms * 1000) * SIM_US, ev);
}

/* Waits until the host and other hosts have members, then cuts the other hosts off. inbound: they
 * are already cut off. Then waits until the master has lost them, and kills the master and the
 * agent. */
static void rest(struct sim *s, const struct sim_event *ev)
{
	struct rest r = {.agent = &s->hosts[ev->host].id};
	struct sim_event next = *ev, late = sim_fault_new(FAULT_REST_LATE);
	const struct sim_master *m;
	bool ready;

	if (s->at[0] >= 0) {
		m = &s->masters[s->at[0]];
		ccm_each_peer(m->m, sim_clock_now(s, &m->clock), count_rest, &r);
	}
	ready = r.here > 0 && (r.elsewhere == 0) == ev->inbound;
	if (!ready && --next.gen > 0) {
		sim_schedule(s, s->now + sim_ms(10), next);
		return;
	}
	if (ready && !ev->inbound) {
		part_others(s, ev->host, FAULT_PART, 300);
		next.inbound = true;
		sim_schedule(s, s->now + sim_ms(300), next);
		return;
	}
	if (ready) {
		sim_trace(s, "fault: only h%u still reaches the master", ev->host);
		s->rests++;
		plan_together(s, s->now + sim_ms(sim_rnd(s, 300)), ev->host);
	}
	part_others(s, ev->host, FAULT_UNPART, 1000);
	late.peer = ev->peer;
	if (late.peer < SIM_PEERS)
		sim_schedule(s, s->now + sim_ms(sim_rnd(s, 1500)), late);
}

/* Keeps the host away from the master's address for this time: cuts it off, freezes its agent or
 * kills it. */
static void keep_away(struct sim *s, unsigned host, unsigned addr, uint64_t from, uint64_t until)
{
	uint32_t kind = sim_rnd(s, 100);
	struct sim_event ev;

	ev = sim_fault_new(kind < 40 ? FAULT_PART : kind < 70 ? FAULT_FREEZE : FAULT_KILL_AGENT);
	ev.host = host;
	ev.addr = addr;
	ev.gen = (uint32_t)((until - from) / SIM_MS);
	sim_schedule(s, from, ev);
	if (ev.code == FAULT_PART) {
		ev.code = FAULT_UNPART;
		sim_schedule(s, until, ev);
	}
}

/* Returns the length of an absence. It is often about as long as a master waits. */
static uint64_t absence(struct sim *s)
{
	return sim_ms(sim_chance(s, 50) ? 2700 + sim_rnd(s, 1000) : 10 + sim_rnd(s, 5000));
}

static bool has_come(const struct sim *s, const struct sim_host *h)
{
	const struct sim_conn *c;
	uint32_t run;

	for (run = 1; run <= h->last_run; run++) {
		c = h->runs[run].conn ? s->conns[h->runs[run].conn - 1] : NULL;
		if (c && c->term && c->master_open)
			return true;
	}
	return false;
}

static void evicted(struct sim *s, const struct sim_event *ev)
{
	uint64_t at = s->now + sim_rnd(s, sim_chance(s, 50) ? 3000 : 2000000) * SIM_US;
	struct sim_event again = *ev;

	if (has_come(s, &s->hosts[ev->host]))
		keep_away(s, ev->host, ev->addr, at, at + absence(s));
	else if (again.gen-- > 0)
		sim_schedule(s, s->now + SIM_MS, again);
}

/* The host knows of a success. Its agent would report the success to the next master, which starts
 * at `at`. The report comes in time, too late, in part, or not at all. Some processes of the host
 * are stopped meanwhile. */
static void silence(struct sim *s, unsigned host, unsigned addr, uint64_t at)
{
	struct sim_event ev = sim_fault_new(FAULT_STOP_PROC);
	uint32_t kind = sim_rnd(s, 100);

	for (ev.proc = 0; ev.proc < s->n_procs; ev.proc++) {
		if (s->procs[ev.proc].host != host || !sim_chance(s, 50))
			continue;
		ev.gen = 500 + sim_rnd(s, 9000);
		sim_schedule(s, s->now + sim_ms(sim_rnd(s, 300)), ev);
	}
	ev = sim_fault_new(kind < 40 ? FAULT_DOOMED : FAULT_KILL_AGENT);
	ev.host = host;
	ev.addr = addr;
	ev.gen = kind < 40 ? 5000 : 10 + sim_rnd(s, 1500);
	if (kind < 40)
		sim_schedule(s, at, ev);
	else if (kind < 75)
		sim_schedule(s, s->now + sim_ms(5 + sim_rnd(s, 40)), ev);
	else if (kind < 95)
		keep_away(s, host, addr, s->now, at + absence(s));
}

uint32_t sim_scene_witness(struct sim *s, struct sim_master *m, const struct ccm_action *done)
{
	uint32_t *conns = s->m_acts.conns + done->first_conn, n = done->n_conns, told, i, j, t;
	struct sim_event next = sim_fault_new(FAULT_START_MASTER);
	uint64_t at = s->now + sim_ms(10 + sim_rnd(s, 1000));

	for (i = n; i > 1; i--) {
		j = sim_rnd(s, i);
		t = conns[i - 1];
		conns[i - 1] = conns[j];
		conns[j] = t;
	}
	told = sim_chance(s, 50) ? 1 : 1 + sim_rnd(s, n - 1);
	sim_trace(s, "fault: %s tells h%u and %u more hosts, out of %u, that an attempt succeeded",
		sim_name_master(s, m->no), sim_conn(s, conns[0])->host, told - 1, n);
	s->witnesses++;
	s->crash_telling = false;
	m->arrives = true;
	sim_cause(s);
	next.addr = m->addr;
	sim_schedule(s, at, next);
	s->master_gone = true;
	if (sim_chance(s, 60))
		keep_away(s, sim_conn(s, conns[told + sim_rnd(s, n - told)])->host, m->addr, s->now,
			at + absence(s));
	for (i = 0; i < told; i++)
		silence(s, sim_conn(s, conns[i])->host, m->addr, at);
	return told;
}

uint32_t sim_scene_starting(struct sim *s, struct sim_master *m, const struct ccm_action *start)
{
	struct sim_event next = sim_fault_new(FAULT_START_MASTER);
	uint32_t told = 1 + sim_rnd(s, start->n_conns - 1);

	sim_trace(s, "fault: %s tells %u of %u hosts to start an operation",
		sim_name_master(s, m->no), told, start->n_conns);
	s->starting_until = 0;
	m->arrives = sim_chance(s, 50);
	if (s->class == CLASS_ALL)
		sim_cause(s);
	next.addr = m->addr;
	sim_schedule(s, s->now + sim_ms(10 + sim_rnd(s, 1000)), next);
	s->master_gone = true;
	return told;
}

bool sim_scene(struct sim *s, const struct sim_event *ev)
{
	switch ((enum sim_fault)ev->code) {
	case FAULT_DEATHS:
		deaths(s, ev);
		return true;
	case FAULT_VOTER:
		voter(s, ev);
		return true;
	case FAULT_REST:
		rest(s, ev);
		return true;
	case FAULT_REST_LATE:
		sim_peer_later(s, &s->peers[ev->peer], 0);
		return true;
	case FAULT_MESH:
		half_open(s, ev);
		return true;
	case FAULT_STARTING:
		s->starting_until = s->now + 3 * SIM_S;
		return true;
	case FAULT_WITNESS:
		s->crash_telling = true;
		return true;
	case FAULT_SLOW_LINK:
		sim_slow_go(s, ev);
		return true;
	case FAULT_DOOMED:
		evicted(s, ev);
		return true;
	default:
		return false;
	}
}
