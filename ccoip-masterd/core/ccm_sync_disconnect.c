/* SPDX-License-Identifier: MIT
 *
 * Synchronizations that continue without disconnected members.
 *
 * An agent reports when all its peers have the elected contents and their processes know this. If
 * the agent dies after that, nothing more is expected of its peers, and the others continue. The
 * peers of the dead agent ask for the outcome when they are back, as after any attempt in doubt.
 * The attempt may still be in progress at that time. An agent that has only lost its connection
 * takes part in the attempt again.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_sync.h"

bool ccm_sync_is_disconnected(const struct ccm_op *o, const struct ccm_peer *p)
{
	return o->sync && p->phase == CCM_PEER_ACCEPTED && p->slot < o->sync->n_sync_peers &&
	       o->sync->sync_peers[p->slot].disconnected;
}

uint32_t ccm_sync_count_disconnected(const struct ccm_op *o)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	if (!o->sync)
		return 0;
	DL_FOREACH2 (o->group->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			n += ccm_sync_is_disconnected(o, p);
	return n;
}

/* Takes back the votes of s's peers. Their agent repeats the votes when it is back. */
static void take_back(struct ccm *m, struct ccm_op *o, const struct ccm_membership *s)
{
	struct ccm_peer *p;

	DL_FOREACH (s->peers, p)
		if (ccm_op_voted(o, p))
			ccm_op_unvote(m, o, p);
	if (o->n_votes == 0)
		ccm_op_drop(m, o);
}

bool ccm_sync_disconnected(struct ccm *m, struct ccm_membership *s)
{
	struct ccm_op *o = s->group->sync;
	struct ccm_peer *p;

	if (o && !o->seq) {
		take_back(m, o, s);
		return true;
	}
	if (!o || s->slot >= o->n_parts || !o->parts[s->slot].reported)
		return true;
	DL_FOREACH (s->peers, p) {
		if (!ccm_op_voted(o, p))
			continue;
		o->sync->sync_peers[p->slot].disconnected = true;
		ccm_op_unvote(m, o, p);
	}
	return ccm_sync_has_holder(o);
}

/* ---- an agent that died: its peers ask ---- */

static struct ccm_ask **find_ask(struct ccm_op *o, const struct ccm_peer *p)
{
	struct ccm_ask **q = &o->sync->asks;

	while (*q && !cc_id_eq(&(*q)->q.peer, &p->id))
		q = &(*q)->next;
	return q;
}

void ccm_sync_unask(struct ccm_op *o, const struct ccm_peer *p)
{
	struct ccm_ask **at = find_ask(o, p), *q = *at;

	if (!q)
		return;
	*at = q->next;
	free(q);
}

static bool asks_for(const struct wm_op_query *q, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < q->n && i < WM_OUTCOMES_MAX; i++)
		if (q->seqs[i] == seq)
			return true;
	return false;
}

bool ccm_sync_ask(const struct ccm_peer *p, const struct wm_op_query *q)
{
	struct ccm_op *o = p->membership->group->sync;
	struct ccm_ask *x;

	if (!o || !ccm_sync_is_disconnected(o, p) || !asks_for(q, o->seq))
		return false;
	ccm_sync_unask(o, p); /* p asks again */
	x = cc_must_zalloc(1, sizeof *x);
	x->q = *q;
	x->next = o->sync->asks;
	o->sync->asks = x;
	return true;
}

void ccm_sync_answer(struct ccm *m, struct ccm_op *o)
{
	const struct ccm_ask *q;
	const struct ccm_peer *p;

	for (q = o->sync ? o->sync->asks : NULL; q; q = q->next) {
		p = ccm_peer_find(m, &q->q.peer);
		if (p) /* else p is lost by now */
			ccm_op_outcomes(m, p, &q->q);
	}
}

/* ---- an agent whose connection broke: it votes again ---- */

static void resend_vote(struct ccm *m, struct ccm_op *o, struct ccm_peer *p)
{
	ccm_op_count(o, p);
	o->parts[p->membership->slot].start_sent = true;
	o->sync->sync_peers[p->slot].disconnected = false;
	p->n_running++;
	ccm_peer_refresh(m, p);
}

bool ccm_sync_rejoin(struct ccm *m, const struct ccm_agent *a, const struct wm_op_vote *v)
{
	struct ccm_peer *p;
	struct ccm_op *o;
	uint32_t i;

	HASH_FIND(hh_seq, m->started, &v->seq, sizeof v->seq, o);
	if (!o || !o->sync || !v->is_sync || o->group->id != v->group)
		return false;
	ccm_op_room(o);
	for (i = 0; i < v->n_peers; i++) {
		p = ccm_peer_find(m, &v->peers[i]);
		/* Other peers in the vote were lost; the agent is told so. */
		if (p && p->membership->agent == a && p->membership->group == o->group &&
			ccm_sync_is_disconnected(o, p))
			resend_vote(m, o, p);
	}
	return true;
}
