/* SPDX-License-Identifier: MIT
 *
 * Training processes. Each peer does what a training program does: connect, then over and over
 * update the topology, ask for pending peers, reduce under several tags in an order of its own and
 * try again what was aborted; at last it destroys its communicator.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static const char *const state_names[] = {
	"start", "creating", "connecting", "updating", "asking", "reducing", "destroying", "ended"};

/* p goes on in this state after a while. */
static void later(struct sim *s, struct sim_peer *p, enum sim_peer_state state)
{
	p->state = state;
	sim_schedule(s, s->now + sim_delay(s),
		(struct sim_event){.kind = SIM_EV_PEER, .peer = p->no, .host = p->proc->host});
}

static void request(struct sim *s, struct sim_peer *p, struct wl_request *q)
{
	struct sim_host *h = &s->hosts[p->proc->host];
	struct agt_event ev = {.type = AGT_EV_REQUEST, .session = p->proc->session, .request = q};
	uint32_t i;

	p->req_id = ++s->last_req;
	p->called = s->now;
	q->req_id = p->req_id;
	q->comm = p->comm;
	for (i = 0; i < 4; i++)
		ev.id.b[i] = (uint8_t)(s->last_req >> (8 * i));
	ev.id.b[15] = 0xbb;
	sim_trace(s, "peer %u: %s", p->no, state_names[p->state]);
	sim_host_step(s, h, &ev);
}

static void call(struct sim *s, struct sim_peer *p, enum wl_type type)
{
	struct wl_request q = {.type = type};

	request(s, p, &q);
}

static void create(struct sim *s, struct sim_peer *p)
{
	struct sim_host *h = &s->hosts[p->proc->host];
	struct agt_event ev = {.type = AGT_EV_SESSION_OPEN, .session = p->proc->session};
	struct wl_request q = {.type = WL_COMM_CREATE, .group = p->group, .pool_size = p->pool};

	if (!p->proc->open) {
		p->proc->open = true;
		ev.uid = 1000;
		ev.pid = 100 + p->proc->session;
		ev.name = "sim";
		sim_host_step(s, h, &ev);
	}
	/* two names of the same master */
	q.master = (struct cc_addr){.family = CC_INET4, .ip = {10, 0, 0, 200}, .port = 48148};
	if (sim_chance(s, 20))
		q.master.ip[3] = 201;
	p->state = PEER_CREATING;
	request(s, p, &q);
}

static void submit_later(struct sim *s, struct sim_peer *p)
{
	uint32_t order[SIM_TAGS], i, j, t;
	uint64_t at = s->now;

	for (i = 0; i < s->n_tags; i++) {
		j = sim_rnd(s, i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < s->n_tags; i++)
		p->in_flight += p->ops[i].wanted;
	for (i = 0; i < s->n_tags; i++) {
		t = order[i];
		if (!p->ops[t].wanted)
			continue;
		at += sim_chance(s, 70) ? 10 * SIM_US : sim_delay(s);
		sim_schedule(s, at,
			(struct sim_event){.kind = SIM_EV_SUBMIT,
				.peer = p->no,
				.tag = t,
				.host = p->proc->host});
	}
}

static void next_iteration(struct sim *s, struct sim_peer *p)
{
	later(s, p, --p->iterations > 0 ? PEER_UPDATING : PEER_DESTROYING);
}

static void reduce(struct sim *s, struct sim_peer *p)
{
	uint32_t t;

	if (p->attrs.group_world < 2) {
		next_iteration(s, p);
		return;
	}
	for (t = 0; t < s->n_tags; t++)
		p->ops[t].wanted = true;
	p->odd = s->odd_parameters && sim_chance(s, 10);
	submit_later(s, p);
	if (p->rude && p->iterations == 1)
		later(s, p, PEER_DESTROYING);
}

void sim_peer_go(struct sim *s, struct sim_peer *p)
{
	switch (p->state) {
	case PEER_START:
		create(s, p);
		break;
	case PEER_CONNECTING:
		call(s, p, WL_COMM_CONNECT);
		break;
	case PEER_UPDATING:
		call(s, p, WL_UPDATE_TOPOLOGY);
		break;
	case PEER_ASKING:
		call(s, p, WL_ARE_PENDING);
		break;
	case PEER_REDUCING:
		reduce(s, p);
		break;
	case PEER_DESTROYING:
		call(s, p, WL_COMM_DESTROY);
		break;
	case PEER_CREATING:
	case PEER_ENDED:
		break;
	}
}

void sim_peer_submit(struct sim *s, struct sim_peer *p, uint64_t tag)
{
	struct sim_op *o = &p->ops[tag];
	struct shm_submission e = {.tag = tag, .count = 100 + tag, .dtype = 10};
	struct agt_event ev = {.type = AGT_EV_SUBMIT, .comm = p->comm, .sub = &e};
	uint32_t i;

	if (p->state != PEER_REDUCING) {
		p->in_flight -= p->state == PEER_DESTROYING;
		return;
	}
	o->slot = sim_rnd(s, SHM_SLOTS);
	for (i = 0; i < s->n_tags; i++) {
		if (i != tag && p->ops[i].submitted && p->ops[i].slot == o->slot) {
			o->slot = (o->slot + 1) % SHM_SLOTS;
			i = UINT32_MAX;
		}
	}
	o->submitted = true;
	e.slot = ev.slot = o->slot;
	e.count += p->odd && tag == 0;
	e.bytes = e.count * 4;
	sim_trace(s, "peer %u: submits tag %lu", p->no, (unsigned long)tag);
	sim_host_step(s, &s->hosts[p->proc->host], &ev);
}

static struct sim_peer *peer_find(struct sim *s, const struct sim_host *h, uint32_t comm)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].proc->host == h->no && s->peers[i].comm == comm && comm)
			return &s->peers[i];
	sim_fail(s, "host %u speaks of communicator %u, which nobody made", h->no, comm);
	return NULL;
}

static void leave_or_try_again(struct sim *s, struct sim_peer *p)
{
	memset(p->ops, 0, sizeof p->ops);
	if (p->reconnects == 0) {
		later(s, p, PEER_DESTROYING);
		return;
	}
	p->reconnects--;
	s->reconnects++;
	later(s, p, PEER_CONNECTING);
}

void sim_peer_created(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		if (p->proc->host != h->no || p->req_id != x->u.reply.req_id)
			continue;
		p->comm = x->comm;
		later(s, p, PEER_CONNECTING);
	}
}

/* A call returns: what the application sees is what the master said last. */
static void check_attrs(struct sim *s, const struct sim_peer *p)
{
	const struct sim_host *h = &s->hosts[p->proc->host];
	const struct sim_world *w = &h->conns[sim_host_run(h)].heard;

	if (p->attrs.state != SHM_COMM_CONNECTED)
		return;
	if (!w->known || p->attrs.global_world != w->global || p->attrs.groups != w->groups ||
		p->attrs.largest_group != w->largest || p->attrs.group_world != w->group[p->group])
		sim_fail(s, "peer %u sees a world of %u in %u, it is %u in %u", p->no,
			p->attrs.group_world, p->attrs.global_world, w->group[p->group], w->global);
}

static void ended(struct sim *s, struct sim_peer *p)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = p->proc->session};

	p->state = PEER_ENDED;
	sim_trace(s, "peer %u: ended", p->no);
	if (--p->proc->n_peers > 0)
		return;
	p->proc->alive = false;
	sim_host_step(s, &s->hosts[p->proc->host], &ev);
}

static void returned(struct sim *s, struct sim_peer *p, const struct wl_reply *r)
{
	bool ok = r->code == WIRE_SUCCESS;

	if (ok && p->state != PEER_DESTROYING && p->attrs.state != SHM_COMM_CONNECTED)
		sim_fail(
			s, "peer %u: success on a communicator in state %u", p->no, p->attrs.state);
	if (!ok && p->attrs.state == SHM_COMM_CONNECTED)
		sim_fail(s, "peer %u: %s failed with %u: %s", p->no, state_names[p->state], r->code,
			r->text);
	if (p->state != PEER_DESTROYING)
		check_attrs(s, p);
	switch (p->state) {
	case PEER_CONNECTING:
	case PEER_UPDATING:
	case PEER_ASKING:
		if (ok)
			later(s, p, p->state == PEER_ASKING ? PEER_REDUCING : PEER_ASKING);
		else
			leave_or_try_again(s, p);
		break;
	case PEER_DESTROYING:
		if (!ok)
			sim_fail(s, "peer %u: destroy failed: %s", p->no, r->text);
		ended(s, p);
		break;
	default:
		sim_fail(s, "peer %u: a reply that it does not wait for", p->no);
		break;
	}
}

void sim_peer_reply(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	const struct wl_reply *r = &x->u.reply;
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		struct sim_peer *p = &s->peers[i];

		if (p->req_id != r->req_id || p->state == PEER_ENDED || p->proc->host != h->no)
			continue;
		sim_trace(s, "peer %u: %s returns %u after %.3f s %s", p->no, state_names[p->state],
			r->code, (double)(s->now - p->called) / 1e9, r->text);
		p->req_id = 0;
		s->progress = s->now;
		returned(s, p, r);
		return;
	}
	sim_fail(s, "host %u answers request %u, which nobody made", h->no, r->req_id);
}

void sim_peer_attrs(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_peer *p = peer_find(s, h, x->comm);

	if (p)
		p->attrs = x->u.attrs;
}

/* Is the code one that the application may get now? */
static bool expected(const struct sim *s, const struct sim_peer *p, uint32_t code)
{
	bool connected = p->attrs.state == SHM_COMM_CONNECTED;

	switch (code) {
	case WIRE_SUCCESS:
	case WIRE_RANK_CONNECTION_LOST:
		return true;
	case WIRE_TOO_FEW_PEERS:
		return p->attrs.group_world < 2 || !connected;
	case WIRE_INVALID_ARGUMENT:
		return s->odd_parameters;
	case WIRE_INVALID_USAGE:
		return p->state == PEER_DESTROYING;
	case WIRE_MASTER_CONNECTION_FAILED:
	case WIRE_RANK_CONNECTION_FAILED:
		return !connected;
	default:
		return false;
	}
}

/* All operations of a burst have returned. */
static void all_returned(struct sim *s, struct sim_peer *p)
{
	uint32_t t, left = 0;

	if (p->state != PEER_REDUCING)
		return;
	if (p->attrs.state != SHM_COMM_CONNECTED) {
		leave_or_try_again(s, p);
		return;
	}
	for (t = 0; t < s->n_tags; t++)
		left += p->ops[t].wanted;
	if (left > 0 && p->attrs.group_world >= 2) {
		s->retries++;
		submit_later(s, p);
		return;
	}
	memset(p->ops, 0, sizeof p->ops);
	next_iteration(s, p);
}

void sim_peer_complete(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_peer *p = peer_find(s, h, x->comm);
	const struct agt_done *d = &x->u.done;
	uint32_t t = 0;

	if (!p)
		return;
	while (t < s->n_tags && !(p->ops[t].submitted && p->ops[t].slot == x->slot))
		t++;
	if (t == s->n_tags || p->state == PEER_ENDED) {
		sim_fail(
			s, "peer %u: completion of slot %u, which it does not use", p->no, x->slot);
		return;
	}
	sim_trace(s, "peer %u: tag %u returns %u: %s", p->no, t, d->code, d->text);
	if (!expected(s, p, d->code))
		sim_fail(s, "peer %u: tag %u returns %u: %s", p->no, t, d->code, d->text);
	check_attrs(s, p);
	sim_xfer_completed(s, h, x, p);
	s->progress = s->now;
	p->ops[t].submitted = false;
	p->in_flight--;
	if (d->code == WIRE_SUCCESS)
		s->reductions++;
	if (d->code == WIRE_SUCCESS || d->code == WIRE_TOO_FEW_PEERS)
		p->ops[t].wanted = false;
	if (t == 0)
		p->odd = false;
	if (p->in_flight == 0)
		all_returned(s, p);
}

void sim_proc_kill(struct sim *s, struct sim_proc *proc)
{
	struct agt_event ev = {.type = AGT_EV_SESSION_CLOSED, .session = proc->session};
	unsigned i;

	if (!proc->alive)
		return;
	sim_trace(s, "fault: process %u on host %u dies", proc->session, proc->host);
	s->kills++;
	proc->alive = false;
	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].proc == proc)
			s->peers[i].state = PEER_ENDED;
	if (proc->open)
		sim_host_step(s, &s->hosts[proc->host], &ev);
}

bool sim_peers_ended(const struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peers[i].state != PEER_ENDED)
			return false;
	return true;
}

void sim_peers_describe(struct sim *s)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++) {
		const struct sim_peer *p = &s->peers[i];

		if (p->state != PEER_ENDED)
			printf("peer %u (host %u, group %u): %s for %.3f s, %u in flight\n", p->no,
				p->proc->host, p->group, state_names[p->state],
				(double)(s->now - p->called) / 1e9, p->in_flight);
	}
}
