/* SPDX-License-Identifier: MIT
 *
 * Submissions until the vote: what is refused at once, and when the local members are complete.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

struct wm_op_params agt_sub_params(const struct shm_submission *s)
{
	return (struct wm_op_params){.count = s->count, .dtype = s->dtype, .op = s->op};
}

bool agt_params_equal(const struct wm_op_params *x, const struct wm_op_params *y)
{
	return x->count == y->count && x->dtype == y->dtype && x->op == y->op &&
	       x->quant_algo == y->quant_algo && x->quant_dtype == y->quant_dtype;
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

static void too_few(struct agt_verdict *v, uint32_t group, uint32_t world)
{
	agt_verdict_set(v, WIRE_TOO_FEW_PEERS,
		"peer group %u has %u member%s; an all-reduce needs two: call pcclUpdateTopology "
		"until "
		"the world size is 2 or more",
		group, world, world == 1 ? "" : "s");
}

/* advice: what to do now. */
static void group_lost(struct agt_verdict *v, const struct agt_group *g, const char *advice)
{
	if (g->loss[0])
		agt_verdict_set(v, WIRE_RANK_CONNECTION_LOST, "%s; %s", g->loss, advice);
	else
		agt_verdict_set(v, WIRE_RANK_CONNECTION_LOST,
			"group %u has lost a peer or the connection to one; %s", g->group, advice);
}

/* v->code stays 0 when the submission is in order. */
static void check_submission(
	const struct agt_comm *c, const struct agt_event *ev, struct agt_verdict *v)
{
	if (c->state == AGT_COMM_LOST) {
		*v = c->lost;
		return;
	}
	if (c->state != AGT_COMM_ACCEPTED) {
		agt_verdict_set(v, WIRE_INVALID_USAGE,
			"the communicator is not connected: call pcclConnect first");
		return;
	}
	if (c->wait == WL_UPDATE_TOPOLOGY) {
		agt_verdict_set(v, WIRE_INVALID_USAGE,
			"pcclUpdateTopology is in progress on this communicator: start operations "
			"after it");
		return;
	}
	if (ev->code) {
		agt_verdict_set(v, ev->code, "%s", ev->text ? ev->text : "bad submission");
		return;
	}
	if (tag_in_flight(c, ev->sub->tag))
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"tag %" PRIu64
			" is in flight on this communicator: await that operation or use "
			"another tag",
			ev->sub->tag);
	else if (ev->sub->losses < c->grp->losses)
		group_lost(v, c->grp, "await all operations in flight, then call again");
	else if (c->grp->world < 2)
		too_few(v, c->group, c->grp->world);
}

/* The vote of member `first` and of those after it whose parameters equal its own. */
static void send_vote(struct agt *a, struct agt_op *o, uint32_t first)
{
	struct wm_op_vote *m = &agt_send(a, o->run, WM_OP_VOTE)->u.op_vote;
	uint32_t i;

	m->group = (uint32_t)o->key.group;
	m->tag = o->key.tag;
	m->losses = o->losses;
	m->seq = o->seq;
	m->params = agt_sub_params(&o->members[first].sub);
	m->peers = calloc(o->n - first, sizeof *m->peers);
	if (!m->peers) {
		agt_no_memory(a);
		return;
	}
	for (i = first; i < o->n; i++) {
		struct wm_op_params q = agt_sub_params(&o->members[i].sub);

		if (agt_params_equal(&m->params, &q))
			m->peers[m->n_peers++] = o->members[i].peer;
	}
}

static void send_votes(struct agt *a, struct agt_op *o)
{
	uint32_t i, j;

	for (i = 0; i < o->n; i++) {
		struct wm_op_params p = agt_sub_params(&o->members[i].sub);

		for (j = 0; j < i; j++) {
			struct wm_op_params q = agt_sub_params(&o->members[j].sub);

			if (agt_params_equal(&p, &q))
				break;
		}
		if (j == i)
			send_vote(a, o, i);
	}
}

void agt_op_vote_again(struct agt *a, struct agt_op *o)
{
	send_votes(a, o);
}

void agt_op_try_vote(struct agt *a, struct agt_op *o)
{
	uint32_t group = (uint32_t)o->key.group;
	struct agt_run *r = o->run;
	struct agt_verdict v;
	const struct agt_group *g;
	char advice[80];

	if (o->state != AGT_OP_COLLECTING)
		return;
	g = agt_group_find(r, group);
	if (g && g->losses != o->losses) {
		(void)snprintf(advice, sizeof advice,
			"tag %" PRIu64 " waited for its peers: call again", o->key.tag);
		group_lost(&v, g, advice);
		agt_op_end(a, o, &v);
		return;
	}
	if (g && g->world < 2) {
		too_few(&v, group, g->world);
		agt_op_end(a, o, &v);
		return;
	}
	if (!g || (o->n < g->accepted && !agt_waits_enough(a, o)) ||
		agt_op_find(r->active, group, o->key.tag))
		return;
	if (o->n >= g->accepted)
		agt_waits_remove(a, o);
	HASH_DELETE(hh_key, r->collecting, o);
	HASH_ADD(hh_key, r->active, key, sizeof o->key, o);
	if (o->unhashed) {
		agt_no_memory(a);
		return;
	}
	agt_op_set_state(a, o, AGT_OP_VOTING);
	send_votes(a, o);
}

/* A peer that is late, or has come back, while the others here have voted already: nothing starts
 * without its vote. It shares the fate of an attempt whose voter has left, too: the loss of that
 * one ends it, or the votes are counted anew. */
static bool joins_vote(const struct agt_op *o, const struct agt_comm *c)
{
	return o->state == AGT_OP_VOTING && o->losses == c->grp->losses;
}

void agt_submit(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);
	const struct shm_submission *s = ev->sub;
	struct agt_verdict v = {.code = WIRE_SUCCESS};
	struct agt_done done = {.code = WIRE_SUCCESS};
	struct agt_op *o;

	if (!c || (!s && !ev->code))
		return;
	check_submission(c, ev, &v);
	if (v.code) {
		a->refused++;
		done.code = v.code;
		if (c->grp && s)
			done.losses =
				v.code == WIRE_RANK_CONNECTION_LOST ? c->grp->losses : s->losses;
		memcpy(done.text, v.text, sizeof done.text);
		agt_comm_world(c, &done.after);
		agt_complete(a, c->id, ev->slot, &done);
		return;
	}
	/* An entry without a submission has a code.
	 * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	o = agt_op_find(c->run->active, c->group, s->tag);
	if (o && joins_vote(o, c)) {
		if (agt_op_add(a, o, c, s) < 0)
			return;
		send_vote(a, o, o->n - 1);
		if (o->n >= c->grp->accepted)
			agt_waits_remove(a, o);
		return;
	}
	o = agt_op_find(c->run->collecting, c->group, s->tag);
	if (!o)
		o = agt_op_new(a, c->run, c->grp, s->tag);
	if (!o || agt_op_add(a, o, c, s) < 0)
		return;
	agt_op_try_vote(a, o);
}
