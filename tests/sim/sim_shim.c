/* SPDX-License-Identifier: MIT
 *
 * The shim's part in each process: calls over the socket, and the reconnector, which attaches to a
 * new agent when the old one has died. Calls that are made meanwhile wait. Calls in progress are
 * sent again. Operations in flight fail. But an operation whose whole result is there is in doubt,
 * and the answer to the attach decides.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

#define RETRY_MIN (20 * SIM_MS)
#define RETRY_MAX (500 * SIM_MS)

struct sim_peer *sim_peer_find(struct sim *s, const struct sim_host *h, uint32_t comm)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].proc->host == h->no && s->peers[i].comm == comm && comm &&
			s->peers[i].comm_life == h->life)
			return &s->peers[i];
	sim_fail(s, "host %u names communicator %u, which does not exist", h->no, comm);
	return NULL;
}

static void reconnector_later(struct sim *s, struct sim_proc *q, uint64_t delay)
{
	q->gen++;
	sim_schedule(s, s->now + delay,
		(struct sim_event){.kind = SIM_EV_RECONNECTOR, .proc = q->no, .gen = q->gen});
}

static void session_open(struct sim *s, struct sim_proc *q)
{
	struct sim_host *h = &s->hosts[q->host];
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN};

	q->state = SESSION_OPEN;
	q->session = ++s->last_session;
	q->life = h->life;
	ev.session = q->session;
	ev.uid = 1000;
	ev.pid = 100 + q->no;
	ev.name = "sim";
	sim_host_step(s, h, &ev);
}

static void send(struct sim *s, struct sim_peer *p, const struct wl_request *q)
{
	struct sim_event ev = {.kind = SIM_EV_REQUEST, .host = p->proc->host, .peer = p->no};
	struct wl_request *copy;

	ev.session = p->proc->session;
	copy = malloc(sizeof *copy);
	if (!copy)
		abort();
	*copy = *q;
	ev.bytes = (uint8_t *)copy;
	sim_schedule(s, s->now + (10 + sim_rnd(s, 100)) * SIM_US, ev);
}

void sim_shim_request(struct sim *s, const struct sim_event *ev)
{
	struct sim_peer *p = &s->peers[ev->peer];
	struct sim_host *h = &s->hosts[ev->host];
	struct agt_event e = {.type = AGT_EV_REQUEST, .session = ev->session};
	struct wl_request q;

	memcpy(&q, ev->bytes, sizeof q);
	e.request = &q;
	if (p->proc->alive && h->alive && h->life == p->proc->life &&
		p->proc->session == ev->session && p->proc->state == SESSION_OPEN) {
		if (q.req_id == p->call.req_id) {
			p->call.sent = s->now;
			p->call.times++;
			p->call.conn = sim_conn_of(s, p);
		}
		sim_host_step(s, h, &e);
	}
}

static void send_call(struct sim *s, struct sim_peer *p)
{
	bool votes = p->call.type >= SIM_VOTE(0);
	struct wl_request q = {.comm = p->comm};

	q.type = votes ? WL_VOTE : (enum wl_type)p->call.type;
	q.ballot = votes ? (enum wire_ballot)(p->call.type - SIM_VOTE(0)) : WIRE_TOPOLOGY;
	q.req_id = p->call.req_id = ++s->last_req;
	p->call.sent = 0;
	if (q.type == WL_COMM_CONNECT) {
		q.peer = p->id;
		q.token = p->token;
	}
	q.until_left = p->no % 4 > 0;
	send(s, p, &q);
}

/* Lists the attempts in doubt. Then lists attempts that have succeeded, because other peers may ask
 * for their outcomes. */
static void list_attempts(struct sim_peer *p, struct wl_request *q)
{
	uint64_t n = p->n_succeeded;
	uint32_t i;

	p->n_doubt = 0;
	for (i = 0; i < SIM_OPS; i++) {
		if (p->ops[i].state != OP_DOUBT)
			continue;
		p->doubt[p->n_doubt++] = (uint8_t)i;
		q->seqs[q->n_seqs++] = p->ops[i].seq;
	}
	for (; n > 0 && p->n_succeeded - n < WL_SEQS_MAX && q->n_seqs < WL_SEQS_MAX; n--)
		q->seqs[q->n_seqs++] = p->succeeded[(n - 1) % WL_SEQS_MAX];
	q->n_succeeded = q->n_seqs - p->n_doubt;
}

/* Creates or attaches a communicator at an agent that does not know it. */
static void reopen(struct sim *s, struct sim_peer *p)
{
	struct wl_request q = {.type = WL_COMM_CREATE, .group = p->group, .pool_size = p->pool};

	if (p->state != SHM_COMM_CONNECTED) {
		p->named = sim_master_addr(s->home);
		if (s->home == 0 && p->no % 5 == 0)
			p->named.ip[3] = 199; /* another name of the same master */
	}
	q.master = p->named;
	q.master_addr = p->at;
	q.req_id = p->attach_req = ++s->last_req;
	if (p->state == SHM_COMM_CONNECTED) {
		q.type = WL_COMM_ATTACH;
		q.peer = p->id;
		q.token = p->token;
		q.run = p->run;
		memcpy(q.ballots, p->ballots, sizeof q.ballots);
		q.view_id = p->attrs.view_id;
		q.global = p->attrs.global;
		list_attempts(p, &q);
	}
	sim_trace(s, "p%u: %s", p->no, sim_text_call(q.type));
	send(s, p, &q);
}

void sim_shim_call(struct sim *s, struct sim_peer *p, uint32_t type)
{
	struct sim_proc *q = p->proc;

	if (p->call.type)
		sim_fail(s, "p%u: the simulator makes two calls at once", p->no);
	p->call = (struct sim_call){.type = type, .since = s->now};
	p->call.master_gone = s->now < s->away_until || s->master_gone;
	sim_trace(s, "p%u: calls %s", p->no, sim_text_call(type));
	if (type == WL_COMM_CONNECT) {
		p->id = sim_new_id(s, 0xbb);
		p->token = sim_new_id(s, 0xcc);
		p->state = SHM_COMM_NEW;
	}
	if (q->state == SESSION_NONE) {
		q->state = SESSION_BROKEN;
		q->broken_at = s->now;
		q->retry = RETRY_MIN;
		reconnector_later(s, q, 0);
	} else if (q->state == SESSION_OPEN && p->comm) {
		send_call(s, p);
	} else if (q->state == SESSION_OPEN && !p->attach_req) {
		reopen(s, p);
	}
}

static void call_returns(
	struct sim *s, struct sim_peer *p, uint32_t code, const char *text, bool flag)
{
	uint32_t type = p->call.type;

	p->call.master_gone |= s->now < s->away_until || s->master_gone;
	sim_check_call(s, p, type, code, text);
	p->call.type = p->call.req_id = 0;
	sim_peer_returned(s, p, type, code, text, flag);
}

/* The shim keeps the attributes when the agent dies, and sends them to the next one. */
static void take_attrs(struct sim_peer *p, const struct agt_attrs *attrs)
{
	p->attrs = *attrs;
	if (attrs->at.family)
		p->at = attrs->at;
}

void sim_shim_opened(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct wl_reply *r = &x->u.open.reply;
	struct sim_peer *p = NULL;
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].attach_req == r->req_id && s->peers[i].proc->host == h->no &&
			s->peers[i].phase != PEER_ENDED)
			p = &s->peers[i];
	if (!p) {
		sim_fail(s, "host %u answers request %u, which nobody made", h->no, r->req_id);
		return;
	}
	p->attach_req = 0;
	p->comm = x->comm;
	p->comm_life = h->life;
	take_attrs(p, &x->u.open.attrs);
	p->last_submit = 0;
	s->progress = s->now;
	if (p->state == SHM_COMM_CONNECTED) {
		sim_trace(s,
			"p%u: is back, generation %" PRIu64 " ballots %" PRIu64 ", %" PRIu64
			", done %" PRIx64,
			p->no, r->generation, r->ballots[WIRE_TOPOLOGY], r->ballots[WIRE_PENDING],
			r->done);
		s->attaches++;
		if (p->attrs.state != SHM_COMM_CONNECTED)
			sim_fail(s, "p%u: attached to a communicator in state %u", p->no,
				p->attrs.state);
		if (r->generation > p->generation)
			p->generation = r->generation;
		sim_ops_settle(s, p, r->done);
		sim_xfers_back(s);
		sim_ops_resume(s, p);
	}
	if (p->call.type == WL_COMM_CREATE)
		call_returns(s, p, WIRE_SUCCESS, "", false);
	else if (p->call.type)
		send_call(s, p);
}

static void lost(struct sim *s, struct sim_peer *p, uint32_t code, const char *text)
{
	if (p->state == SHM_COMM_CONNECTED) {
		p->state = SHM_COMM_LOST;
		p->lost_code = code;
	}
	memset(&p->attrs, 0, sizeof p->attrs);
	p->comm = p->attach_req = 0;
	sim_ops_fail(s, p, code, text);
	if (p->call.type == WL_COMM_DESTROY)
		call_returns(s, p, WIRE_SUCCESS, "", false);
	else if (p->call.type)
		call_returns(s, p, code, text, false);
	else
		sim_peer_later(s, p, SIM_MS);
}

static void take_view(struct sim *s, struct sim_peer *p, const struct wl_reply *r)
{
	if (p->call.type == WL_COMM_CONNECT || r->view.view_id > p->view.view_id)
		p->view = r->view;
	if (r->code != WIRE_SUCCESS || p->call.type == WL_COMM_CREATE ||
		p->call.type == WL_COMM_DESTROY)
		return;
	sim_check_view(s, p, &r->view);
	if (p->call.type != WL_COMM_CONNECT && p->alone) {
		if (!sim_strays(s))
			sim_fail(s, "p%u: %s is answered alone, but no program strays", p->no,
				sim_text_call(p->call.type));
		return;
	}
	sim_check_vote(s, p, p->call.type, &r->view);
	sim_lineage_success(s, p, true);
}

static void take_ballots(struct sim *s, struct sim_peer *p, const struct wl_reply *r)
{
	enum wire_ballot kind;

	if (p->call.type == WL_COMM_CONNECT) {
		p->run = r->run;
		p->state = SHM_COMM_CONNECTED;
		s->seen[SEEN_NEWCOMER] +=
			wire_ballot_count(r->ballots[WIRE_TOPOLOGY]) > 1 && r->view.global > 1;
		p->generation = r->generation;
		memcpy(p->ballots, r->ballots, sizeof p->ballots);
		p->n_succeeded = 0;
	} else if (p->call.type >= SIM_VOTE(0)) {
		kind = (enum wire_ballot)(p->call.type - SIM_VOTE(0));
		p->alone = r->ballots[kind] == p->ballots[kind];
		memcpy(p->ballots, r->ballots, sizeof p->ballots);
		if (r->generation > p->generation)
			p->generation = r->generation;
		if (!p->alone)
			sim_check_answer(s, p, kind);
	}
}

void sim_shim_reply(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct wl_reply *r = &x->u.reply;
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		if (p->proc->host != h->no || p->phase == PEER_ENDED || !r->req_id)
			continue;
		if (p->attach_req == r->req_id) {
			sim_trace(s, "p%u: cannot come back: %s %s", p->no, sim_text_code(r->code),
				r->text);
			sim_check_call(s, p, WL_COMM_ATTACH, r->code, r->text);
			lost(s, p, r->code, r->text);
			return;
		}
		if (p->call.req_id != r->req_id)
			continue;
		sim_trace(s, "p%u: %s returns %s after %.3f s %s%s", p->no,
			sim_text_call(p->call.type), sim_text_code(r->code),
			(double)(s->now - p->call.since) / 1e9, r->text, r->flag ? "yes" : "");
		if (r->code == WIRE_SUCCESS)
			take_ballots(s, p, r);
		take_view(s, p, r);
		call_returns(s, p, r->code, r->text, r->flag);
		return;
	}
	sim_fail(s, "host %u answers request %u, which nobody made", h->no, r->req_id);
}

void sim_shim_goodbye(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct wl_reply *r = &x->u.reply;
	unsigned i, j;

	for (i = 0; i < s->n_procs; i++) {
		struct sim_proc *q = &s->procs[i];

		if (q->host != h->no || q->session != x->session || q->life != h->life)
			continue;
		sim_trace(s, "h%u ends the session of process %u: %s %s", h->no, q->no,
			sim_text_code(r->code), r->text);
		if (!q->stopped && s->now > q->stopped_until + 400 * SIM_MS)
			sim_fail(s, "host %u ends the session of process %u, which runs: %s", h->no,
				q->no, r->text);
		q->state = SESSION_NONE;
		q->session = 0;
		q->gen++;
		for (j = 0; j < s->n_peers; j++)
			if (s->peers[j].proc == q && s->peers[j].phase != PEER_ENDED)
				lost(s, &s->peers[j], r->code, r->text);
	}
}

void sim_shim_attrs(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_peer *p = sim_peer_find(s, h, x->comm);

	if (!p)
		return;
	take_attrs(p, &x->u.attrs);
	if (p->attrs.state == SHM_COMM_LOST && p->state == SHM_COMM_CONNECTED) {
		sim_trace(s, "p%u: lost its membership: %s %s", p->no, sim_text_code(p->attrs.code),
			p->attrs.text);
		p->state = SHM_COMM_LOST;
		p->lost_code = p->attrs.code;
		sim_peer_later(s, p, SIM_MS);
	}
}

void sim_shim_agent_died(struct sim *s, struct sim_host *h)
{
	unsigned i;

	for (i = 0; i < s->n_procs; i++) {
		struct sim_proc *q = &s->procs[i];

		if (q->host == h->no && q->alive && q->state == SESSION_OPEN)
			reconnector_later(s, q, sim_rnd(s, 2000) * SIM_US);
	}
}

/* The reconnector has seen the end of the session. */
static void broken(struct sim *s, struct sim_proc *q)
{
	unsigned i;

	q->state = SESSION_BROKEN;
	q->broken_at = s->now;
	q->retry = RETRY_MIN;
	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		if (p->proc != q || p->phase == PEER_ENDED)
			continue;
		sim_ops_agent_died(s, p);
		/* the membership is lost, so no agent can decide about its operations */
		if (p->state == SHM_COMM_LOST)
			sim_ops_fail(s, p, p->attrs.code, p->attrs.text);
		p->comm = p->attach_req = 0;
	}
	reconnector_later(s, q, q->retry);
}

static void reconnected(struct sim *s, struct sim_proc *q)
{
	unsigned i;

	session_open(s, q);
	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		if (p->proc == q && p->phase != PEER_ENDED &&
			(p->call.type || p->state == SHM_COMM_CONNECTED))
			reopen(s, p);
	}
}

void sim_shim_reconnector(struct sim *s, struct sim_proc *q)
{
	const struct sim_host *h = &s->hosts[q->host];
	unsigned i;

	if (!q->alive)
		return;
	if (q->state == SESSION_OPEN) {
		if (!h->alive || h->life != q->life)
			broken(s, q);
	} else if (h->alive) {
		reconnected(s, q);
	} else if (s->now - q->broken_at > s->reconnector_lease_ms * SIM_MS) {
		sim_trace(s, "process %u: no agent any more", q->no);
		q->state = SESSION_NONE;
		for (i = 0; i < s->n_peers; i++)
			if (s->peers[i].proc == q && s->peers[i].phase != PEER_ENDED)
				lost(s, &s->peers[i], WIRE_AGENT_UNAVAILABLE, "no agent");
	} else {
		q->retry = 2 * q->retry < RETRY_MAX ? 2 * q->retry : RETRY_MAX;
		reconnector_later(s, q, q->retry);
	}
}

void sim_proc_kill(struct sim *s, struct sim_proc *q, bool silent)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = q->session};
	struct sim_host *h = &s->hosts[q->host];
	unsigned i;

	if (!q->alive)
		return;
	sim_trace(s, "fault: process %u on h%u dies", q->no, q->host);
	s->seen[SEEN_TOGETHER] += s->kills && s->now - s->killed_at < 2 * SIM_MS;
	s->killed_at = s->now;
	s->kills++;
	q->alive = false;
	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].proc == q)
			s->peers[i].phase = PEER_ENDED;
	if (q->state == SESSION_OPEN && h->life == q->life && !silent)
		sim_host_step(s, h, &ev);
}
