/* SPDX-License-Identifier: MIT
 *
 * The invariants that hold at every step, each with the sentence that is printed when it is
 * violated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim_sync.h"

/* Up to this number of errors of an operation may have causes before its step: a kick, a loss that
 * a dead master had not reported, or a process that was stopped for too long. */
#define ON_THE_WAY   3u
#define NEEDS_REASON (2 * SIM_S) /* a wait of this length must have a reason */
/* A link to a silent host is tried for 2 s (sim_link_open), and a round follows. */
#define SETTLED (3000 * SIM_MS)

struct ring { /* a ring in force: its hosts in their order */
	unsigned hosts[SIM_HOSTS];
	uint32_t n;
};

struct census {
	uint32_t n[SIM_GROUPS], local[SIM_HOSTS];
	struct ring rings[SIM_GROUPS];
	struct sim *s;
};

static void add_to_ring(struct ring *r, unsigned host)
{
	if (r->n < SIM_HOSTS && (r->n == 0 || r->hosts[r->n - 1] != host))
		r->hosts[r->n++] = host;
}

static void count_peer(void *arg, const struct ccm_peer_info *p)
{
	struct census *c = arg;
	const struct sim_host *h = sim_host_by_id(c->s, &p->agent);

	if (p->phase != CCM_PEER_ACCEPTED)
		return;
	c->n[p->group]++;
	if (h && !p->disconnected)
		c->local[h->no]++;
	if (h && p->rank >= 0)
		add_to_ring(&c->rings[p->group], h->no);
}

static bool has_pair(const struct sim *s, const struct ring *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (s->deaf[r->hosts[i]][r->hosts[(i + 1) % r->n]])
			return true;
	return false;
}

/* The master has to send new rings as long as its rings contain a pair that is cut off. If a report
 * about earlier rings comes late, no new rings are required. */
static void count_silent(struct sim *s, const struct census *c)
{
	uint32_t g;

	for (g = 0; g < SIM_GROUPS; g++)
		if (has_pair(s, &c->rings[g]))
			return;
	s->silent_since = 0;
}

/* Checks that the last view that the master sent to each agent is right. */
void sim_check_master(struct sim *s, const struct sim_master *m)
{
	struct census c = {.s = s};
	uint32_t i, g;

	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), count_peer, &c);
	count_silent(s, &c);
	for (i = 0; i < s->n_conns; i++) {
		struct sim_conn *x = s->conns[i];

		if (!x->made || x->master != m->no || !x->sent.known || !x->master_open ||
			!x->agent_open || x->life != s->hosts[x->host].life)
			continue;
		if (!c.local[x->host]) { /* a peer that comes there later is sent a view */
			x->sent.known = false;
			continue;
		}
		for (g = 0; g < SIM_GROUPS; g++)
			if (x->sent.group[g] && x->sent.group[g] != c.n[g])
				sim_fail(s, "host %u was told of %u peers, but group %u has %u",
					x->host, x->sent.group[g], g, c.n[g]);
	}
}

void sim_check_told(struct sim *s, struct sim_master *m, const struct sim_view *w)
{
	struct sim_view *v = &m->told[w->view_id % (sizeof m->told / sizeof m->told[0])];

	if (v->known && v->view_id == w->view_id &&
		(v->global != w->global || v->groups != w->groups || v->largest != w->largest))
		sim_fail(s, "view %" PRIu64 " has %u peers for one agent and %u for another",
			w->view_id, v->global, w->global);
	*v = *w;
}

void sim_check_obeys(struct sim *s, const struct sim_host *h, const struct sim_conn *c)
{
	const struct sim_run *r = &h->runs[c->run];

	if (r->ready && c->term && c->term < r->term)
		sim_fail(s,
			"host %u obeys a stale master: it has seen term %" PRIu64
			", this is term %" PRIu64,
			h->no, r->term, c->term);
}

/* A call returns. Checks that the application sees what the master sent last. */
void sim_check_view(struct sim *s, const struct sim_peer *p, const struct wire_view *v)
{
	const struct sim_host *h = &s->hosts[p->proc->host];
	uint32_t run = sim_host_run(h, &p->run);
	const struct sim_view *w = &h->runs[run].heard;

	if (p->attrs.state != SHM_COMM_CONNECTED || p->phase == PEER_DESTROYING || !run)
		return;
	if (!w->known || v->view_id != w->view_id || v->global != w->global ||
		v->groups != w->groups || v->largest != w->largest ||
		v->group != w->group[p->group])
		sim_fail(s, "p%u sees %u of %u peers in its group, but there are %u of %u", p->no,
			v->group, v->global, w->group[p->group], w->global);
}

uint32_t sim_conn_of(const struct sim *s, const struct sim_peer *p)
{
	const struct sim_host *h = &s->hosts[p->proc->host];
	uint32_t run = sim_host_run(h, &p->run);

	return run ? h->runs[run].conn : 0;
}

/* Checks that peers that share an answer see the same view after it, unless the answer had to be
 * repeated. */
static void check_same(struct sim *s, const struct sim_peer *p, struct sim_saw *saw,
	const char *what, const struct wire_view *w)
{
	const struct wire_view *v = &saw->view;
	unsigned master = sim_conn(s, sim_conn_of(s, p))->master;

	if (!saw->known || saw->master != master) {
		saw->known = true;
		saw->master = master;
		saw->peer = p->no;
		saw->view = *w;
	} else if (v->global != w->global || v->groups != w->groups || v->largest != w->largest ||
		   (v->group != w->group && s->peers[saw->peer].group == p->group)) {
		if (sim_is_split(s))
			return;
		sim_fail(s,
			"after %s p%u sees %u of %u peers in its group (%u groups, at most %u), "
			"p%u sees %u of %u (%u, %u)",
			what, saw->peer, v->group, v->global, v->groups, v->largest, p->no,
			w->group, w->global, w->groups, w->largest);
	}
}

/* Has the run had a connection before this one? Then the answer may have come over it. */
static bool is_again(struct sim *s, uint32_t conn)
{
	const struct sim_conn *c = sim_conn(s, conn);
	uint32_t no;

	for (no = 1; no < conn; no++) {
		const struct sim_conn *x = sim_conn(s, no);

		if (x->host == c->host && x->life == c->life && x->run == c->run && x->term)
			return true;
	}
	return false;
}

void sim_check_vote(
	struct sim *s, const struct sim_peer *p, uint32_t type, const struct wire_view *w)
{
	/* a newcomer sees the same as those that have voted on the topology */
	uint32_t kind = type == WL_COMM_CONNECT ? WIRE_TOPOLOGY : type - SIM_VOTE(0);
	uint64_t ballot = p->ballots[kind];
	struct sim_saw *saw = &s->votes[kind][wire_ballot_count(ballot) % 64];
	uint32_t conn = sim_conn_of(s, p);

	if (!conn || p->call.times > 1 ||
		(type == WL_COMM_CONNECT ? is_again(s, conn) : conn != p->call.conn))
		return;
	if (!cc_id_eq(&saw->run, &p->run) || saw->ballot != ballot)
		*saw = (struct sim_saw){.run = p->run, .ballot = ballot};
	check_same(s, p, saw, sim_text_call(type), w);
}

void sim_check_answer(struct sim *s, const struct sim_peer *p, enum wire_ballot kind)
{
	uint64_t number = wire_ballot_count(p->ballots[kind]);
	bool answer = wire_ballot_answer(p->ballots[kind]);
	struct sim_answer *x = &s->answers[kind][number % SIM_ANSWERS];
	const struct sim_peer *last = &s->peers[x->peer];

	if (x->known && x->number == number && cc_id_eq(&x->run, &p->run) && x->answer != answer &&
		cc_id_eq(&last->id, &x->id) && sim_peer_is_member(s, last) && !sim_is_split(s))
		sim_fail(s, "the %s %" PRIu64 " ends with %s for p%u, but p%u got the other answer",
			wire_ballot_kinds[kind].name, number, answer ? "yes" : "no", p->no,
			x->peer);
	*x = (struct sim_answer){.known = true,
		.peer = p->no,
		.id = p->id,
		.run = p->run,
		.number = number,
		.answer = answer};
}

/* A loss ends the same calls at all survivors. Whether a survivor made its call early or late, the
 * call must return the same view. A call that was made after the loss is not counted: it has ended
 * for another reason: a host without a master fails its calls by itself. */
static void check_lost(struct sim *s, const struct sim_peer *p, const struct sim_op *o)
{
	struct sim_saw *saw = &s->lost[p->group][o->generation % 64];

	if (o->generation <= o->knew || !o->after.view_id)
		return;
	if (!cc_id_eq(&saw->run, &p->run) || saw->ballot != o->generation)
		*saw = (struct sim_saw){.run = p->run, .ballot = o->generation};
	check_same(s, p, saw, "a call that failed", &o->after);
}

/* A failure has one code for all. But a call that could not meet the calls of others ends alone,
 * with pcclInvalidUsage. The attempt that others have started speculatively goes on with their next
 * calls. */
static void check_failure(struct sim *s, const struct sim_peer *p, const struct sim_op *o)
{
	struct sim_xfer *t = o->xfer;
	bool other = t->failed.known && t->failed_code != o->code &&
		     t->failed.master == sim_conn(s, sim_conn_of(s, p))->master;

	if (o->code == WIRE_INVALID_USAGE)
		return;
	if (other && p->state == SHM_COMM_CONNECTED && !sim_is_split(s))
		sim_fail(s, "one attempt fails with %s for p%u and with %s for p%u: %s",
			sim_text_code(t->failed_code), t->failed.peer, sim_text_code(o->code),
			p->no, o->text);
	if (p->state == SHM_COMM_CONNECTED && !other)
		t->failed_code = o->code;
	if (p->state == SHM_COMM_CONNECTED)
		check_same(s, p, &t->failed, "an operation's failure", &o->after);
}

void sim_check_end(struct sim *s, const struct sim_peer *p, const struct sim_op *o)
{
	const struct sim_host *h = &s->hosts[p->proc->host];
	const struct sim_part *part = sim_xfer_part(o->xfer, h->no, h->life);
	uint32_t conn = sim_conn_of(s, p);

	/* A synchronization waits for the end of its job after its success, so its view may be
	 * older. */
	if (o->code == WIRE_SUCCESS && o != &p->ops[SIM_SYNC])
		sim_check_view(s, p, &o->after);
	if (o->code == WIRE_RANK_CONNECTION_LOST && conn)
		check_lost(s, p, o);
	if (!part || !conn || conn != part->conn || !o->after.view_id)
		return;
	if (o->code == WIRE_SUCCESS)
		check_same(s, p, &o->xfer->done, "an operation", &o->after);
	else
		check_failure(s, p, o);
}

/* Is the code allowed in any run? */
static bool plain(const struct sim *s, const struct sim_peer *p, const struct sim_op *o)
{
	switch (o->code) {
	case WIRE_SUCCESS:
		return true;
	case WIRE_TOO_FEW_PEERS:
		return o->after.group < 2 || p->state != SHM_COMM_CONNECTED;
	case WIRE_INVALID_ARGUMENT:
		return s->odd_parameters;
	case WIRE_OUT_OF_MEMORY:
		return s->refusals || s->xfer_failures;
	case WIRE_INVALID_USAGE:
		return sim_strays(s) || p->phase == PEER_DESTROYING || sim_elect_is_out(s, &p->id);
	/* it was kicked, but its agent could not report that any more */
	case WIRE_RANK_CONNECTION_LOST:
		return (p->phase == PEER_DESTROYING || sim_elect_is_out(s, &p->id)) &&
		       p->state != SHM_COMM_CONNECTED;
	default:
		return false;
	}
}

static bool lost_membership(const struct sim_peer *p, uint32_t code)
{
	return p->state != SHM_COMM_CONNECTED &&
	       (code == WIRE_MASTER_CONNECTION_FAILED || code == WIRE_RANK_CONNECTION_FAILED ||
		       code == WIRE_RANK_CONNECTION_LOST || code == WIRE_AGENT_UNAVAILABLE);
}

/* Until several peers have done an operation in it, a run that newcomers have founded may be
 * replaced by another run. */
bool sim_check_in_use(const struct sim_master *m)
{
	struct ccm_status status;

	ccm_get_status(m->m, &status);
	return status.accepted > 1 && status.ops_done > 0;
}

/* Was m's run in use when an agent of p's host came to m? */
static bool was_in_use(const struct sim *s, const struct sim_peer *p, const struct sim_master *m)
{
	uint32_t i;

	for (i = 0; i < s->n_conns; i++)
		if (s->conns[i]->in_use && s->conns[i]->master == m->no &&
			s->conns[i]->host == p->proc->host)
			return true;
	return false;
}

/* Was p's agent last connected to m while m was frozen? The agent cannot know that m continues, and
 * tries it again only after its other addresses. */
static bool was_there_in_vain(
	const struct sim *s, const struct sim_peer *p, const struct sim_master *m)
{
	const struct sim_host *h = &s->hosts[p->proc->host];
	uint32_t i;

	for (i = s->n_conns; i-- > 0;)
		if (s->conns[i]->made && s->conns[i]->master == m->no &&
			s->conns[i]->host == h->no && s->conns[i]->life == h->life)
			return s->conns[i]->vain;
	return false;
}

/* Could m have kept p's run? It could if it has founded another run that is not in use, or if it
 * has p's run and is not frozen. A superseded master does not count, because the newer master
 * cannot know how the run began. */
static bool could_keep(const struct sim *s, const struct sim_peer *p, const struct sim_master *m)
{
	if (!m->alive || m->superseded)
		return false;
	if (cc_id_eq(&m->id, &p->run))
		return m->frozen_until <= s->now && !was_there_in_vain(s, p, m);
	return cc_id_eq(&m->id, &m->born) && !was_in_use(s, p, m);
}

/* p gets an error with this text. If p's run is the first one, and the text says that the master
 * has another run, checks that no later master could have kept p's run. */
static void check_forsaken(struct sim *s, const struct sim_peer *p, const char *text)
{
	unsigned i;

	if (!cc_id_eq(&p->run, &s->masters[0].id) ||
		!(strstr(text, "does not know that run") || strstr(text, "has another run now")))
		return;
	for (i = 1; i < s->n_masters; i++)
		if (could_keep(s, p, &s->masters[i]))
			sim_fail(s, "p%u loses its run, although the run could go on: %s", p->no,
				text);
}

void sim_check_code(struct sim *s, const struct sim_peer *p, const struct sim_op *o, uint32_t tag)
{
	uint64_t most;

	if (plain(s, p, o))
		return;
	check_forsaken(s, p, o->text);
	if (s->class >= CLASS_PAIR
			? o->code == WIRE_RANK_CONNECTION_LOST || lost_membership(p, o->code)
			: o->code == WIRE_RANK_CONNECTION_LOST && p->state == SHM_COMM_CONNECTED) {
		most = s->causes - o->causes + ON_THE_WAY;
		if (most > s->causes)
			most = s->causes;
		if (o->errors > most)
			sim_fail(s, "p%u: tag %u has failed %u times, %" PRIu64 " are allowed: %s",
				p->no, tag, o->errors, most, o->text);
		return;
	}
	sim_fail(s, "p%u: tag %u returns %s: %s", p->no, tag, sim_text_code(o->code), o->text);
}

/* May the call fail because the master was not found? */
static bool connect_may_fail(const struct sim *s, const struct sim_peer *p)
{
	/* the host may have no part in the run yet */
	if (p->call.master_gone || s->class == CLASS_ALL)
		return true;
	/* its agent does not know where the master is, and the peer connects again after a kick */
	return s->class == CLASS_AGENT && s->kicked;
}

static bool is_failed_connection(uint32_t code)
{
	return code == WIRE_MASTER_CONNECTION_FAILED || code == WIRE_RANK_CONNECTION_FAILED ||
	       code == WIRE_RANK_CONNECTION_LOST || code == WIRE_AGENT_UNAVAILABLE;
}

static bool call_may_fail(struct sim *s, const struct sim_peer *p, uint32_t type, uint32_t code)
{
	/* connection lost: its agent died before it could report the kick */
	if ((code == WIRE_INVALID_USAGE || code == WIRE_RANK_CONNECTION_LOST) &&
		sim_elect_is_out(s, &p->id))
		return true;
	if (type == WL_COMM_CONNECT && code == WIRE_MASTER_CONNECTION_FAILED &&
		connect_may_fail(s, p))
		return true;
	if (s->class >= CLASS_PAIR && p->state != SHM_COMM_CONNECTED && is_failed_connection(code))
		return true;
	return s->class == CLASS_ALL && type == WL_COMM_ATTACH;
}

void sim_check_call(
	struct sim *s, const struct sim_peer *p, uint32_t type, uint32_t code, const char *text)
{
	if (code == WIRE_SUCCESS) {
		if (type != WL_COMM_CREATE && type != WL_COMM_DESTROY &&
			p->attrs.state != SHM_COMM_CONNECTED)
			sim_fail(s, "p%u: %s succeeds on a communicator in state %u", p->no,
				sim_text_call(type), p->attrs.state);
		return;
	}
	if (text[0] == '\0')
		sim_fail(s, "p%u: %s returns %s and does not say why", p->no, sim_text_call(type),
			sim_text_code(code));
	if (type != WL_COMM_CONNECT)
		check_forsaken(s, p, text);
	if (p->phase == PEER_DESTROYING && type != WL_COMM_DESTROY)
		return;
	if (!call_may_fail(s, p, type, code))
		sim_fail(s, "p%u: %s returns %s: %s", p->no, sim_text_call(type),
			sim_text_code(code), text);
}

void sim_check_log(struct sim *s, const char *text)
{
	s->seen[SEEN_ROUTED] += strstr(text, "rings avoid this pair") != NULL;
	s->seen[SEEN_SLOW] += strstr(text, "has become slow") != NULL;
	if (strstr(text, "protocol violation") || strstr(text, "broke the protocol"))
		sim_fail(s, "%s", text);
}

struct look {
	struct sim *s;
	unsigned host;
};

static void look_at_comm(void *arg, const struct agt_comm_info *c)
{
	const struct look *l = arg;
	struct sim *s = l->s;
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		const struct sim_peer *p = &s->peers[i];

		if (p->proc->host != l->host || p->comm != c->comm || !p->call.req_id ||
			p->proc->state != SESSION_OPEN || p->call.type == WL_COMM_DESTROY ||
			p->phase == PEER_ENDED || p->comm_life != s->hosts[l->host].life ||
			!p->call.sent || s->now < p->call.sent + NEEDS_REASON)
			continue;
		if (c->waiting[0] == '\0')
			sim_fail(s,
				"p%u has waited in %s for %.3f s, and its agent cannot say for "
				"what",
				p->no, sim_text_call(p->call.type),
				(double)(s->now - p->call.since) / 1e9);
	}
}

static void look_at_op(void *arg, const struct agt_op_info *o)
{
	const struct look *l = arg;

	if (o->age_ns > NEEDS_REASON && o->awaited[0] == '\0')
		sim_fail(l->s,
			"host %u: tag %" PRIu64 " of group %u is %s for %.3f s, for no reason",
			l->host, o->tag, o->group, o->state, (double)o->age_ns / 1e9);
}

void sim_check_waits(struct sim *s)
{
	unsigned i;

	if (s->class == CLASS_PAIR && s->silent_since && s->now - s->silent_since > SETTLED)
		sim_fail(s, "a pair that cannot reach each other is in the rings for %.3f s",
			(double)(s->now - s->silent_since) / 1e9);
	for (i = 0; i < s->n_hosts; i++) {
		struct sim_host *h = &s->hosts[i];
		struct look l = {.s = s, .host = i};

		if (!h->alive || h->frozen_until > s->now)
			continue;
		agt_each_comm(h->a, sim_clock_now(s, &h->clock), look_at_comm, &l);
		agt_each_op(h->a, sim_clock_now(s, &h->clock), look_at_op, &l);
	}
}

/* All programs have ended. Checks that no state is left anywhere. */
void sim_check_quiet(struct sim *s)
{
	struct ccm_status m;
	struct agt_status a;
	unsigned i;

	for (i = 0; i < s->n_masters; i++) {
		if (!s->masters[i].alive)
			continue;
		ccm_get_status(s->masters[i].m, &m);
		/* a restored master waits for its first agent without a limit */
		if (m.recovering && m.agents == 0)
			continue;
		if (m.agents || m.registered || m.accepted || m.groups || m.round_active)
			sim_fail(s, "%s keeps %u agents, %u peers, %u groups",
				sim_name_master(s, i), m.agents, m.registered + m.accepted,
				m.groups);
	}
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
	sim_memory_check(s);
	for (i = 0; i < SIM_LINKS; i++)
		if (s->links[i].used)
			sim_fail(s, "host %u keeps a link", s->links[i].src);
}

static void print_op(void *arg, const struct agt_op_info *o)
{
	printf("h%u: group %u tag %" PRIu64 " seq %" PRIu64 " %s, %u of %u, %s\n", *(unsigned *)arg,
		o->group, o->tag, o->seq, o->state, o->submitted, o->members, o->awaited);
}

static void print_comm(void *arg, const struct agt_comm_info *c)
{
	printf("h%u: communicator %u of pid %u: %s\n", *(unsigned *)arg, c->comm, c->pid,
		c->waiting);
}

static void print_run(void *arg, const struct agt_run_info *r)
{
	printf("h%u: run %u is %s, term %" PRIu64 ", epoch %" PRIu64 "\n", *(unsigned *)arg, r->run,
		r->state, r->term, r->epoch);
}

/* Prints all state for the reader of a failure. */
void sim_describe(struct sim *s)
{
	char waiting[WM_TEXT_MAX];
	struct ccm_status st;
	unsigned i;

	sim_peers_describe(s);
	for (i = 0; i < s->n_hosts; i++) {
		uint64_t now = sim_clock_now(s, &s->hosts[i].clock);

		if (!s->hosts[i].alive) {
			printf("h%u has no agent\n", i);
			continue;
		}
		agt_each_run(s->hosts[i].a, now, print_run, &i);
		agt_each_comm(s->hosts[i].a, now, print_comm, &i);
		agt_each_op(s->hosts[i].a, now, print_op, &i);
	}
	for (i = 0; i < s->n_masters; i++) {
		if (!s->masters[i].alive)
			continue;
		ccm_get_status(s->masters[i].m, &st);
		ccm_write_waiting(s->masters[i].m, sim_clock_now(s, &s->masters[i].clock), waiting,
			sizeof waiting);
		printf("%s at address %u: %u agents, %u registered, %u accepted; %s\n",
			sim_name_master(s, i), s->masters[i].addr, st.agents, st.registered,
			st.accepted, waiting);
	}
}
