/* SPDX-License-Identifier: MIT
 *
 * Submissions, until the vote: which submissions are refused at once, and when all local members
 * have submitted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

struct wm_op_params agt_sub_params(const struct shm_submission *s)
{
	return (struct wm_op_params){
		.count = s->count, .dtype = s->dtype, .op = s->op, .quant = s->quant};
}

static bool digests_equal(const struct wm_digest *x, const struct wm_digest *y)
{
	return x->hi == y->hi && x->lo == y->lo;
}

static bool candidates_equal(const struct wm_sync_vote *x, const struct wm_sync_vote *y)
{
	return x->revision == y->revision && x->strategy == y->strategy &&
	       x->hash_type == y->hash_type && digests_equal(&x->keys, &y->keys) &&
	       digests_equal(&x->content, &y->content) && x->n_tensors == y->n_tensors &&
	       x->bytes == y->bytes && x->torn == y->torn;
}

bool agt_subs_agree(const struct shm_submission *x, const struct shm_submission *y)
{
	if (x->refused || y->refused)
		return false;
	if (x->is_sync)
		return y->is_sync && candidates_equal(&x->sync, &y->sync);
	return !y->is_sync && x->count == y->count && x->dtype == y->dtype && x->op == y->op &&
	       wire_quant_eq(&x->quant, &y->quant);
}

static bool sync_in_flight(const struct agt_comm *c)
{
	uint32_t i;

	/* no other operation is in flight together with a synchronization */
	if (c->n_ops == 1)
		for (i = 0; i < SHM_SLOTS; i++)
			if (c->slots[i])
				return c->slots[i]->key.is_sync;
	return false;
}

static bool tag_in_flight(const struct agt_comm *c, uint64_t tag)
{
	uint32_t i;

	if (c->n_ops)
		for (i = 0; i < SHM_SLOTS; i++)
			if (c->slots[i] && c->slots[i]->key.tag == tag)
				return true;
	return false;
}

static void too_few(struct agt_end_status *v, uint32_t group, uint32_t world_size)
{
	agt_end_status_set(v, WIRE_TOO_FEW_PEERS,
		"peer group %u has %u member%s; an all-reduce needs two: call pcclUpdateTopology "
		"until "
		"the world size is 2 or more",
		group, world_size, world_size == 1 ? "" : "s");
}

/* Sets *v to the last loss of g. advice: what the application should do now. */
static void group_lost(struct agt_end_status *v, const struct agt_group *g, const char *advice)
{
	if (g->loss[0])
		agt_end_status_set(v, WIRE_RANK_CONNECTION_LOST, "%s; %s", g->loss, advice);
	else
		agt_end_status_set(v, WIRE_RANK_CONNECTION_LOST,
			"group %u has lost a peer or the connection to a peer; %s", g->group,
			advice);
}

/* Checks whether c can start an operation. If so, v->code stays 0. */
static void check_caller(const struct agt_comm *c, struct agt_end_status *v)
{
	if (c->state == AGT_COMM_LOST)
		*v = c->lost;
	else if (c->state != AGT_COMM_ACCEPTED)
		agt_end_status_set(v, WIRE_INVALID_USAGE,
			"the communicator is not connected: call pcclConnect first");
	else if (c->wait == WL_VOTE && wire_ballot_kinds[c->vote].is_exclusive)
		agt_end_status_set(v, WIRE_INVALID_USAGE,
			"%s is in progress on this communicator: start operations after it",
			wire_ballot_kinds[c->vote].call);
}

/* Checks a submission. If it is in order, v->code stays 0. */
static void check_submission(
	const struct agt_comm *c, const struct agt_event *ev, struct agt_end_status *v)
{
	check_caller(c, v);
	if (v->code)
		return;
	if (!ev->sub) {
		agt_end_status_set(v, ev->code, "%s", ev->text ? ev->text : "bad submission");
		return;
	}
	if (sync_in_flight(c))
		agt_end_status_set(v, WIRE_INVALID_USAGE,
			"pcclSynchronizeSharedState is in progress on this communicator: start "
			"operations after it");
	else if (ev->sub->is_sync && c->n_ops)
		agt_end_status_set(v, WIRE_PENDING_ASYNC_OPS,
			"%u operation%s of this communicator in flight: await all of them before "
			"pcclSynchronizeSharedState",
			c->n_ops, c->n_ops == 1 ? " is" : "s are");
	else if (!ev->sub->is_sync && tag_in_flight(c, ev->sub->tag))
		agt_end_status_set(v, WIRE_INVALID_ARGUMENT,
			"tag %" PRIu64
			" is in flight on this communicator: await that operation or use "
			"another tag",
			ev->sub->tag);
	else if (!ev->sub->is_sync && ev->sub->generation < c->grp->generation)
		group_lost(v, c->grp, "await all operations in flight, if any, then call again");
	else if (!ev->sub->is_sync && c->grp->world_size < 2)
		too_few(v, c->group, c->grp->world_size);
}

/* Does m vote? No, if m has left a synchronization that goes on without it. */
static bool votes(const struct agt_op_member *m, const struct agt_op *o)
{
	return !(o->key.is_sync && m->out);
}

/* Fills in the vote of member `first`, without the peers. */
static void fill_vote(const struct agt_op *o, uint32_t first, struct wm_op_vote *m)
{
	const struct agt_op_member *x = &o->members[first];

	m->group = o->key.group;
	m->tag = o->key.tag;
	m->generation = o->generation;
	m->seq = o->state > AGT_OP_VOTING ? o->seq : 0;
	m->spec_seq = o->spec && !o->awaits_start ? o->seq : 0;
	m->route = m->seq ? o->route : CC_ALGO_RING;
	m->epoch = m->seq ? o->epoch : 0;
	m->is_sync = o->key.is_sync;
	m->refusal.code = x->sub.refused;
	if (m->refusal.code)
		agt_copy_text(m->refusal.text, sizeof m->refusal.text, x->own.text);
	else if (m->is_sync)
		m->sync = x->sub.sync;
	else
		m->params = agt_sub_params(&x->sub);
	if (m->is_sync && m->seq) {
		m->elected.revision = o->elected.revision;
		m->elected.content = o->elected.content;
	}
}

/* Sends one vote for member `first` and for all members after it with equal parameters. */
static void send_vote(struct agt *a, struct agt_op *o, uint32_t first)
{
	struct wm_op_vote *m = &agt_send(a, o->run, WM_OP_VOTE)->u.op_vote;
	uint32_t i;

	fill_vote(o, first, m);
	m->peers = cc_must_zalloc(o->n - first, sizeof *m->peers);
	m->waits_for = m->seq ? WM_WAIT_FOR_NONE : WM_WAIT_FOR_MAIN;
	for (i = first; i < o->n; i++) {
		const struct agt_op_member *x = &o->members[i];

		if (i != first &&
			(!votes(x, o) || !agt_subs_agree(&o->members[first].sub, &x->sub)))
			continue;
		m->peers[m->n_peers++] = x->peer;
		if (agt_stuck_said(x) < m->waits_for)
			m->waits_for = agt_stuck_said(x);
	}
	if (!m->seq)
		agt_stuck_voted(a, o, m->waits_for != WM_WAIT_FOR_NONE, first);
}

static void send_votes(struct agt *a, struct agt_op *o)
{
	uint32_t i, j;

	for (i = 0; i < o->n; i++) {
		if (!votes(&o->members[i], o))
			continue;
		for (j = 0; j < i; j++)
			if (votes(&o->members[j], o) &&
				agt_subs_agree(&o->members[i].sub, &o->members[j].sub))
				break;
		if (j == i)
			send_vote(a, o, i);
	}
}

void agt_op_resend_vote(struct agt *a, struct agt_op *o)
{
	send_votes(a, o);
}

void agt_op_try_vote(struct agt *a, struct agt_op *o)
{
	struct agt_run *r = o->run;
	struct agt_end_status v;
	struct agt_group *g;
	char advice[80];

	if (o->state != AGT_OP_COLLECTING)
		return;
	g = agt_group_find(r, o->key.group);
	if (g && o->key.is_sync)
		o->generation = g->generation;
	if (g && g->generation != o->generation) {
		(void)snprintf(advice, sizeof advice,
			"tag %" PRIu64 " waited for its peers: call again", o->key.tag);
		group_lost(&v, g, advice);
		agt_op_end(a, o, &v);
		return;
	}
	if (g && g->world_size < 2 && !o->key.is_sync) {
		too_few(&v, g->group, g->world_size);
		agt_op_end(a, o, &v);
		return;
	}
	if (!g || (o->n < g->accepted && !agt_waits_enough(a, o)) ||
		agt_op_find(r->active, &o->key))
		return;
	if (o->n >= g->accepted)
		agt_waits_remove(a, o);
	HASH_DELETE(hh_key, r->collecting, o);
	HASH_ADD(hh_key, r->active, key, sizeof o->key, o);
	agt_op_set_state(a, o, AGT_OP_VOTING);
	agt_spec_start(a, o, g);
	send_votes(a, o);
}

static void refuse_submission(struct agt *a, const struct agt_comm *c, const struct agt_event *ev,
	const struct agt_end_status *v)
{
	struct agt_done done = {.code = v->code};

	a->refused++;
	if (c->grp && ev->sub)
		done.generation = v->code == WIRE_RANK_CONNECTION_LOST ? c->grp->generation
								       : ev->sub->generation;
	memcpy(done.text, v->text, sizeof done.text);
	/* A call that was made before the last loss fails once, with this loss. */
	agt_comm_view_after(c, c->grp ? c->grp->generation - 1 : 0, v->code, &done.after);
	agt_complete(a, c->id, ev->slot, &done);
}

static void join_vote(struct agt *a, struct agt_op *o, struct agt_comm *c,
	const struct shm_submission *s, const struct agt_end_status *refusal)
{
	/* The speculative start belongs to the rings that were in force before c was accepted, so
	 * no master counts it any more. */
	if (o->spec)
		agt_spec_rollback(a, o);
	agt_op_add(a, o, c, s, refusal);
	send_vote(a, o, o->n - 1);
	if (o->n >= c->grp->accepted)
		agt_waits_remove(a, o);
}

/* Can c still join the vote of o? c is late or has attached, and the other local members have voted
 * already; nothing starts without the vote of c. If a voter of o has left, c shares the end of this
 * attempt: the loss ends it, or the votes are counted again. */
static bool joins_vote(const struct agt_op *o, const struct agt_comm *c)
{
	return (o->state == AGT_OP_VOTING || o->spec) &&
	       (o->key.is_sync || o->generation == c->grp->generation);
}

void agt_submit(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);
	const struct shm_submission *s = ev->sub;
	struct agt_end_status v = {.code = WIRE_SUCCESS}, refusal = {.code = WIRE_SUCCESS};
	struct agt_op_key key;
	struct agt_op *o;

	if (!c || (!s && !ev->code))
		return;
	if (s && s->refused)
		agt_end_status_set(&refusal, s->refused, "%s", ev->text ? ev->text : "");
	check_submission(c, ev, &v);
	if (v.code) {
		refuse_submission(a, c, ev, &v);
		return;
	}
	/* An entry without a submission has a code.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	key = agt_op_key(c->group, s->tag, s->is_sync);
	o = agt_op_find(c->run->active, &key);
	if (o && joins_vote(o, c)) {
		join_vote(a, o, c, s, &refusal);
		return;
	}
	o = agt_op_find(c->run->collecting, &key);
	if (!o)
		o = agt_op_new(a, c->run, c->grp, &key);
	agt_op_add(a, o, c, s, &refusal);
	agt_op_try_vote(a, o);
	if (s->waited)
		agt_stuck_look(a, c);
}
