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

void agt_burst_add(struct agt_burst *b, uint64_t tag)
{
	if (b->n < SHM_SLOTS)
		b->tags[b->n++] = tag;
}

static bool burst_has(const struct agt_burst *b, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < b->n; i++)
		if (b->tags[i] == tag)
			return true;
	return false;
}

/* Does the tag belong to a burst that a loss has ended, by an application that does not know yet?
 */
static bool too_late(struct agt_comm *c, uint64_t tag)
{
	struct agt_burst *b = &c->burst;
	bool again = burst_has(b, tag) || b->n == SHM_SLOTS;

	if (b->over && !again) {
		agt_burst_add(b, tag);
		return true;
	}
	if (again || c->n_ops == 0)
		b->n = 0; /* the next burst begins */
	b->over = false;
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
	else if (c->grp->world < 2)
		too_few(v, c->group, c->grp->world);
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
	if (v.code == WIRE_SUCCESS && too_late(c, s->tag))
		agt_verdict_set(&v, WIRE_RANK_CONNECTION_LOST,
			"a peer of group %u was lost: await all operations in flight, then call "
			"again, without it",
			c->group);
	if (v.code) {
		a->refused++;
		done.code = v.code;
		memcpy(done.text, v.text, sizeof done.text);
		agt_comm_publish(a, c);
		agt_complete(a, c->id, ev->slot, &done);
		return;
	}
	o = agt_op_find(c->run->collecting, c->group, s->tag);
	if (!o)
		o = agt_op_new(a, c->run, c->group, s->tag);
	if (!o || agt_op_add(a, o, c, s) < 0)
		return;
	agt_op_try_vote(a, o);
}

/* The vote of all members whose parameters equal those of member `first`. */
static void send_vote(struct agt *a, struct agt_op *o, const struct wm_op_params *p)
{
	struct wm_op_vote *m = &agt_send(a, o->run, WM_OP_VOTE)->u.op_vote;
	uint32_t i;

	m->group = (uint32_t)o->key.group;
	m->tag = o->key.tag;
	m->losses = o->losses;
	m->params = *p;
	m->peers = calloc(o->n, sizeof *m->peers);
	if (!m->peers) {
		agt_no_memory(a);
		return;
	}
	for (i = 0; i < o->n; i++) {
		struct wm_op_params q = agt_sub_params(&o->members[i].sub);

		if (agt_params_equal(p, &q))
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
			send_vote(a, o, &p);
	}
}

void agt_op_try_vote(struct agt *a, struct agt_op *o)
{
	uint32_t group = (uint32_t)o->key.group;
	struct agt_run *r = o->run;
	struct agt_verdict v;
	const struct agt_group *g;

	if (o->state != AGT_OP_COLLECTING)
		return;
	if (o->lost_peer) {
		agt_verdict_set(&v, WIRE_RANK_CONNECTION_LOST,
			"a peer of group %u was lost while tag %" PRIu64
			" waited for its peers: call again, without it",
			group, o->key.tag);
		agt_op_end(a, o, &v);
		return;
	}
	g = agt_group_find(r, group);
	if (g && g->world < 2) {
		too_few(&v, group, g->world);
		agt_op_end(a, o, &v);
		return;
	}
	if (!g || o->n < g->accepted || agt_op_find(r->active, group, o->key.tag))
		return;
	HASH_DELETE(hh_key, r->collecting, o);
	HASH_ADD(hh_key, r->active, key, sizeof o->key, o);
	if (o->unhashed) {
		agt_no_memory(a);
		return;
	}
	agt_op_set_state(a, o, AGT_OP_VOTING);
	o->losses = g->losses;
	send_votes(a, o);
}
