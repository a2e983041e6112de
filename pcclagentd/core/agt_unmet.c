/* SPDX-License-Identifier: MIT
 *
 * Peers that wait in a call and do nothing else. The votes, or a later message, report this to the
 * master, and the master ends calls that can never meet (ccm_unmet.c). Votes that were held back
 * for missing local members are sent when these wait for something else.
 */
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

static bool waits(const struct agt_comm *c)
{
	return c->n_waited > 0 || c->waits_any || c->wait == WL_VOTE;
}

/* Do all local members of the group wait? Then none of them will join a collecting operation. */
static bool all_wait(const struct agt_run *r, uint32_t group)
{
	const struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r)
		if (c->counted && c->group == group && !waits(c))
			return false;
	return true;
}

void agt_stuck_look(struct agt *a, const struct agt_comm *c)
{
	struct agt_run *r = c->run;
	struct agt_op *o, *next;
	uint32_t group = c->group;

	if (!r || !r->collecting || !all_wait(r, group))
		return;
	for (o = r->collecting; o; o = next) {
		next = o->hh_key.next;
		if (o->key.group != group)
			continue;
		o->alone = true;
		agt_op_try_vote(a, o);
	}
}

uint32_t agt_stuck_kind(const struct shm_submission *s)
{
	if (!s->waited)
		return WM_WAIT_FOR_NONE;
	return s->by_main ? WM_WAIT_FOR_MAIN : WM_WAIT_FOR_HELPER;
}

/* Have the votes for all of c's operations been sent? If not, other peers may be waiting for these
 * votes, so c does not count as waiting. */
static bool all_voted(const struct agt_comm *c)
{
	uint32_t i;

	for (i = 0; c->n_ops > 1 && i < SHM_SLOTS; i++)
		if (c->slots[i] && c->slots[i]->state == AGT_OP_COLLECTING)
			return false;
	return true;
}

uint32_t agt_stuck_said(const struct agt_op_member *m)
{
	return m->comm && !all_voted(m->comm) ? WM_WAIT_FOR_NONE : agt_stuck_kind(&m->sub);
}

static const struct agt_op_member *member_of(const struct agt_op *o, const struct agt_comm *c)
{
	const struct agt_op_member *m = o->members;

	while (m->comm != c)
		m++;
	return m;
}

static bool has_started(const struct agt_op *o)
{
	return o->key.is_sync || (o->state != AGT_OP_VOTING && !o->spec);
}

static void tell(struct agt *a, const struct agt_op *o, const struct agt_op_member *m, uint32_t any)
{
	struct wm_waits_for *x = &agt_send(a, o->run, WM_WAITS_FOR)->u.waits_for;

	x->peer = m->peer;
	x->tag = o->key.tag;
	x->kind = m->sub.by_main ? WM_WAIT_FOR_MAIN : WM_WAIT_FOR_HELPER;
	x->any = any;
}

/* Reports to the master that c waits until any of its operations ends. If one of them has started,
 * nothing is reported: this operation ends by itself, and then c's process goes on or reports again
 * that it waits. */
static void tell_of_any(struct agt *a, const struct agt_comm *c)
{
	const struct agt_op *first = NULL;
	uint32_t i;

	if (!(c->run->features & WM_ANY))
		return;
	for (i = 0; i < SHM_SLOTS; i++) {
		if (c->slots[i] && has_started(c->slots[i]))
			return;
		if (!first)
			first = c->slots[i];
	}
	if (first)
		tell(a, first, member_of(first, c), c->n_ops);
}

/* Reports to the master that c waits, if c waits for one or any of its operations and the votes for
 * all of them have been sent. If c is in no run any more, no peer waits for its operations. */
static void tell_of(struct agt *a, const struct agt_comm *c)
{
	const struct agt_op_member *m;
	const struct agt_op *o;
	uint32_t i;

	if (!c->run || (c->n_waited == 0 && !c->waits_any) || !all_voted(c))
		return;
	if (c->waits_any) {
		tell_of_any(a, c);
		return;
	}
	for (i = 0; i < SHM_SLOTS; i++) {
		o = c->slots[i];
		if (!o || has_started(o))
			continue;
		m = member_of(o, c);
		if (m->sub.waited)
			tell(a, o, m, 0);
	}
}

void agt_stuck_voted(struct agt *a, const struct agt_op *o, bool said, uint32_t first)
{
	uint32_t i;

	for (i = first; i < o->n; i++)
		if (o->members[i].comm && (!said || o->members[i].comm->n_ops > 1))
			tell_of(a, o->members[i].comm);
}

void agt_stuck_asleep(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);
	struct agt_op *o = c ? c->slots[ev->slot] : NULL;
	struct agt_op_member *m;

	if (!o)
		return;
	for (m = o->members; m->comm != c; m++)
		;
	if (m->sub.waited)
		return;
	m->sub.waited = true;
	c->n_waited++;
	tell_of(a, c);
	agt_stuck_look(a, c);
}

void agt_stuck_any(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);

	/* If the numbers differ, some operations have ended meanwhile; the process goes on, or
	 * reports again. */
	if (!c || c->waits_any || c->n_ops == 0 || ev->n_ops != c->n_ops)
		return;
	c->waits_any = true;
	tell_of(a, c);
	agt_stuck_look(a, c);
}

/* ---- calls that the master ends ---- */

static bool is_named(const struct wm_unmet *m, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < m->n_peers; i++)
		if (cc_id_eq(&m->peers[i], peer))
			return true;
	return false;
}

static void answer_votes(struct agt *a, struct agt_run *r, const struct wm_unmet *m)
{
	struct agt_comm *c;

	agt_waits_over(a, r, m->ballot);
	DL_FOREACH2 (r->comms, c, next_r)
		if (agt_ballot_waits(c, m->ballot) && is_named(m, &c->peer))
			agt_ballot_answer(a, c, m->answer);
}

static uint32_t count_named(const struct wm_unmet *m, const struct agt_op *o)
{
	uint32_t i, n = 0;

	for (i = 0; i < o->n; i++)
		n += is_named(m, &o->members[i].peer);
	return n;
}

/* Ends the calls of the named members. o goes on for the others, which have voted since or will
 * vote. */
static void end_members(struct agt *a, struct agt_op *o, const struct wm_unmet *m)
{
	struct agt_op_member x;
	uint32_t i;

	for (i = o->n; i-- > 0;) {
		x = o->members[i];
		if (!is_named(m, &x.peer))
			continue;
		memmove(&o->members[i], &o->members[i + 1], (o->n - i - 1) * sizeof x);
		o->n--;
		agt_op_complete(a, o, &x, &o->end_status);
	}
}

static void end_op(struct agt *a, struct agt_run *r, const struct wm_unmet *m)
{
	struct agt_op_key key = agt_op_key(m->group, m->tag, m->kind == WM_WAIT_SYNC);
	struct agt_op *o = agt_op_find(r->active, &key);
	uint32_t n = o ? count_named(m, o) : 0;

	if (n == 0 || (o->state != AGT_OP_VOTING && !o->spec))
		return;
	/* Votes for a synchronization outlive a loss. */
	if (!o->key.is_sync && o->generation != m->generation)
		return;
	agt_end_status_set(&o->end_status, m->code, "%s", m->text);
	if (n < o->n && o->spec)
		agt_spec_rollback(a, o);
	if (o->seq)
		agt_history_add(r, o->key.group, o->seq, o->end_status.code);
	if (n < o->n)
		end_members(a, o, m);
	else if (o->xfer)
		agt_op_cancel(a, o);
	else
		agt_op_end(a, o, &o->end_status);
}

void agt_unmet(struct agt *a, struct agt_run *r, const struct wm_unmet *m)
{
	if (m->kind == WM_WAIT_BALLOT)
		answer_votes(a, r, m);
	else
		end_op(a, r, m);
}
