/* SPDX-License-Identifier: MIT
 *
 * Peers whose agent has died. They attach with their id and token, and name the attempts whose
 * outcomes they want to know. They get a queue pair again when they are in a ring again.
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

static bool peer_is_here(const struct agt *a, const struct cc_id *peer)
{
	const struct agt_comm *c;

	for (c = a->comms; c; c = c->hh.next)
		if (c->run && cc_id_eq(&c->peer, peer))
			return true;
	return false;
}

void agt_attach_request(struct agt *a, struct agt_session *s, const struct wl_request *q)
{
	struct agt_attach *t;
	struct agt_comm *c;

	if (cc_id_is_zero(&q->peer) || cc_id_is_zero(&q->run) || q->n_seqs > WL_SEQS_MAX ||
		q->n_succeeded > q->n_seqs) {
		agt_refuse_request(a, s, q, WIRE_INVALID_ARGUMENT,
			"an attach must name the peer and the run that it was connected to");
		return;
	}
	if (peer_is_here(a, &q->peer)) {
		agt_refuse_request(a, s, q, WIRE_INVALID_USAGE,
			"this peer is already connected through this agent");
		return;
	}
	c = agt_comm_new(a, s, q);
	if (!c)
		return;
	t = cc_must_zalloc(1, sizeof *t);
	t->run = q->run;
	t->n = q->n_seqs;
	t->n_succeeded = q->n_succeeded;
	memcpy(t->seqs, q->seqs, q->n_seqs * sizeof t->seqs[0]);
	t->known = t->n == 0;
	c->attach = t;
	a->n_attaching++;
	c->peer = q->peer;
	c->token = q->token;
	c->thread = q->thread;
	memcpy(c->ballots, q->ballots, sizeof c->ballots);
	c->view_id = q->view_id;
	c->global = q->global;
	agt_comm_set_state(a, c, AGT_COMM_JOINING);
	agt_comm_wait(a, c, q);
	agt_run_attach(a, c);
}

void agt_attach_query(struct agt *a, struct agt_comm *c)
{
	struct wm_op_query *m;

	if (c->attach->known)
		return;
	m = &agt_send(a, c->run, WM_OP_QUERY)->u.op_query;
	m->peer = c->peer;
	m->n = c->attach->n;
	m->n_succeeded = c->attach->n_succeeded;
	memcpy(m->seqs, c->attach->seqs, m->n * sizeof m->seqs[0]);
}

void agt_attach_outcomes(struct agt *a, struct agt_run *r, const struct wm_op_outcomes *m)
{
	struct agt_attach *t;
	struct agt_comm *c;
	uint32_t i, j;

	DL_FOREACH2 (r->comms, c, next_r)
		if (c->attach && cc_id_eq(&c->peer, &m->peer))
			break;
	if (!c)
		return; /* it has left meanwhile */
	t = c->attach;
	for (i = 0; i < m->n; i++) {
		if (m->v[i].code != WIRE_SUCCESS)
			continue;
		for (j = 0; j < t->n; j++)
			if (t->seqs[j] == m->v[i].seq)
				t->done |= UINT64_C(1) << j;
		/* This agent may be the only one from which the next master can learn this outcome.
		 */
		if (m->v[i].seq > r->last_seq)
			r->last_seq = m->v[i].seq;
		agt_history_add(r, c->group, m->v[i].seq, WIRE_SUCCESS);
	}
	t->known = true;
	agt_attach_try(a, c);
}

void agt_attach_try(struct agt *a, struct agt_comm *c)
{
	struct agt_action *x;
	struct wl_reply *r;

	if (!c->attach || !c->attach->known || c->state != AGT_COMM_ACCEPTED)
		return;
	x = agt_emit(a, AGT_ACT_COMM_OPEN);
	x->session = c->session->id;
	x->comm = c->id;
	r = &x->u.open.reply;
	r->req_id = c->wait_req;
	r->comm = c->id;
	r->run = c->run->run_id;
	r->generation = c->grp->generation;
	r->done = c->attach->done;
	memcpy(r->ballots, c->ballots, sizeof r->ballots);
	agt_comm_attrs(c, &c->attrs);
	x->u.open.attrs = c->attrs;
	c->opened = true;
	c->wait = 0;
	free(c->attach);
	c->attach = NULL;
	a->n_attaching--;
	agt_log(a, AGT_LOG_NOTICE, "pid %u (%s) is back in group %u of run %u", c->session->pid,
		c->session->name, c->group, c->run->id);
}

void agt_attach_check_run(struct agt *a, struct agt_run *r, const struct cc_id *run)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_comm *c, *next;
	struct agt_end_status v;

	agt_end_status_set(&v, WIRE_MASTER_CONNECTION_FAILED,
		"the master at %s has another run now: call pcclConnect to join that run",
		cc_addr_str(&r->connect_addr, addr));
	DL_FOREACH_SAFE2 (r->comms, c, next, next_r)
		if (c->attach && !cc_id_eq(&c->attach->run, run))
			agt_run_lose(a, c, AGT_EXIT_DOWN, &v);
}

void agt_attach_tick(struct agt *a)
{
	uint64_t limit = (uint64_t)a->cfg.master_lease_ms * AGT_NS_PER_MS;
	struct agt_comm *c, *next;
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	if (a->n_attaching == 0)
		return;
	HASH_ITER (hh, a->comms, c, next) {
		/* A peer that is a member again has no time limit: it waits for its attempt as long
		 * as the other members do. */
		if (!c->attach || c->state == AGT_COMM_ACCEPTED || a->now - c->wait_ns < limit)
			continue;
		agt_end_status_set(&v,
			c->joined ? WIRE_RANK_CONNECTION_LOST : WIRE_MASTER_CONNECTION_FAILED,
			"%s at %s within %.1f s: call pcclConnect again",
			c->joined ? "this peer was not taken back into the run of the master"
				  : "cannot reach the master",
			cc_addr_str(&c->run->connect_addr, addr),
			(double)a->cfg.master_lease_ms / 1e3);
		agt_run_lose(a, c, AGT_EXIT_DIED, &v);
	}
}
