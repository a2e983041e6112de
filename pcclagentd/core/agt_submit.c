/* SPDX-License-Identifier: MIT
 *
 * Submissions until the vote: what is refused at once, and when the local members are complete.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

/* By pcclDataType_t. */
static const uint8_t dtype_sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
#define N_DTYPES ((uint32_t)sizeof dtype_sizes)
#define N_OPS    5u

uint32_t agt_dtype_size(uint32_t dtype)
{
	return dtype < N_DTYPES ? dtype_sizes[dtype] : 0;
}

struct wm_op_params agt_sqe_params(const struct shm_sqe *s)
{
	return (struct wm_op_params){
		.count = s->count, .dtype = s->dtype, .op = s->op, .quant_algo = s->quant_algo};
}

bool agt_params_equal(const struct wm_op_params *x, const struct wm_op_params *y)
{
	return x->count == y->count && x->dtype == y->dtype && x->op == y->op &&
	       x->quant_algo == y->quant_algo && x->quant_dtype == y->quant_dtype;
}

static void check_fields(const struct shm_sqe *s, struct agt_verdict *v)
{
	const uint32_t flags = SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED;
	uint32_t size;

	if (s->dtype >= N_DTYPES) {
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"data type: %u is none of the %u pcclDataType_t", s->dtype, N_DTYPES);
		return;
	}
	size = dtype_sizes[s->dtype];
	if (s->op >= N_OPS)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"operation: %u is none of the %u pcclRedOp_t", s->op, N_OPS);
	else if (s->quant_algo != 0)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"quantization: not available in this release, use pcclQuantNone");
	else if (s->flags & ~flags)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT, "flags: 0x%x has unknown bits", s->flags);
	else if (s->reserved != 0)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT, "a reserved field is not zero");
	else if (s->count == 0)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT, "count: must be at least 1");
	else if (s->count > AGT_OPERAND_MAX / size)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"count: %" PRIu64 " elements of %u bytes exceed the limit of 2^48 bytes",
			s->count, size);
	else if (s->in_start > s->count * size || s->in_start % size)
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"copying order: it starts at byte %" PRIu64
			", outside the operand or between "
			"elements",
			s->in_start);
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
	const struct shm_sqe *s = ev->sqe;

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
	check_fields(s, v);
	if (v->code)
		return;
	if (tag_in_flight(c, s->tag))
		agt_verdict_set(v, WIRE_INVALID_ARGUMENT,
			"tag %" PRIu64
			" is in flight on this communicator: await that operation or use "
			"another tag",
			s->tag);
	else if (c->grp->world < 2)
		too_few(v, c->group, c->grp->world);
}

void agt_submit(struct agt *a, const struct agt_event *ev)
{
	struct agt_comm *c = agt_comm_find(a, ev->comm);
	const struct shm_sqe *s = ev->sqe;
	struct agt_verdict v = {.code = WIRE_SUCCESS};
	struct agt_done done = {.code = WIRE_SUCCESS};
	struct agt_op *o;

	if (!c || !s)
		return;
	if (s->slot >= SHM_SLOTS || c->slots[s->slot]) {
		agt_log(a, AGT_LOG_WARNING, "pid %u (%s) submitted slot %u, %s: dropped",
			c->session->pid, c->session->name, s->slot,
			s->slot < SHM_SLOTS ? "which is in use" : "which does not exist");
		return;
	}
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
		agt_complete(a, c->id, s->slot, &done);
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
		struct wm_op_params q = agt_sqe_params(&o->members[i].sqe);

		if (agt_params_equal(p, &q))
			m->peers[m->n_peers++] = o->members[i].peer;
	}
}

static void send_votes(struct agt *a, struct agt_op *o)
{
	uint32_t i, j;

	for (i = 0; i < o->n; i++) {
		struct wm_op_params p = agt_sqe_params(&o->members[i].sqe);

		for (j = 0; j < i; j++) {
			struct wm_op_params q = agt_sqe_params(&o->members[j].sqe);

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
