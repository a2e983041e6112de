/* SPDX-License-Identifier: MIT
 *
 * Speculative starts: eager operations that start before the master has counted the votes. OP_DONE
 * reserves the sequence number of the next attempt of its tag. When the local members have
 * submitted this attempt, the hosts exchange operands under the reserved number at once, and the
 * vote says so. Each agent reports the result. If all agents did the same, the master answers with
 * OP_DONE and never sends OP_START. Otherwise it sends OP_START with another number, and the
 * speculative start is rolled back as if it had not happened.
 *
 * A speculative start belongs to the rings and the generation in which its number was reserved.
 * When these have changed, the master does not count it. While the master does not know yet that a
 * peer of this host has left, it reserves numbers for the old members; this agent does not use such
 * a number. Only the master decides, because it may have reported success to other agents. So an
 * attempt that was reported here is rolled back only when it is certain that the master has not
 * reported success.
 */
#include "pcclagentd/core/agt_internal.h"

static struct agt_xfer *emit(
	struct agt *a, const struct agt_run *r, enum agt_action_type type, uint64_t seq)
{
	struct agt_action *x = agt_emit(a, type);

	x->run = r->id;
	x->u.xfer.seq = seq;
	return &x->u.xfer;
}

static struct agt_reserved *reserved_find(struct agt_group *g, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < AGT_RESERVED_MAX; i++)
		if (g->reserved[i].seq && g->reserved[i].tag == tag)
			return &g->reserved[i];
	return NULL;
}

static void forget(struct agt *a, const struct agt_run *r, struct agt_reserved *x)
{
	if (x->seq)
		(void)emit(a, r, AGT_ACT_XFER_FORGET, x->seq);
	x->seq = 0;
}

void agt_spec_forget(struct agt *a, const struct agt_run *r, struct agt_group *g)
{
	uint32_t i;

	for (i = 0; i < AGT_RESERVED_MAX; i++)
		forget(a, r, &g->reserved[i]);
}

void agt_spec_forget_all(struct agt *a, const struct agt_run *r)
{
	struct agt_group *g;

	for (g = r->groups; g; g = g->hh.next)
		agt_spec_forget(a, r, g);
}

void agt_spec_reserve(struct agt *a, struct agt_run *r, const struct agt_op_key *key,
	uint64_t bytes, const struct wm_op_done *m)
{
	uint64_t seq = m->next;
	struct agt_group *g = agt_group_find(r, key->group);
	struct agt_reserved *x = g ? reserved_find(g, key->tag) : NULL;
	struct agt_xfer *t;

	if (seq > r->last_seq)
		r->last_seq = seq;
	if (!g || g->left || !g->has_ring || !cc_route_is_eager(bytes, g->ring.hosts))
		return;
	if (!x)
		x = &g->reserved[g->n_reserved++ % AGT_RESERVED_MAX];
	forget(a, r, x);
	*x = (struct agt_reserved){.tag = key->tag, .seq = seq, .route = m->next_route};
	t = emit(a, r, AGT_ACT_XFER_EXPECT, seq);
	t->hosts = g->ring.hosts;
	t->pos = g->ring.pos;
	t->prev = g->ring.prev;
	t->route = x->route;
	if (x->route != CC_ALGO_RING)
		t->agents = agt_mesh_agents(&g->ring);
}

/* Have all local members of the group submitted o with the same parameters, and can o start? */
static bool can_begin(struct agt_op *o, const struct agt_group *g)
{
	const struct cc_id *suspect;

	return o->run->state == AGT_RUN_UP && o->n == g->accepted && g->has_ring &&
	       cc_route_is_eager(o->members[0].sub.bytes, g->ring.hosts) &&
	       !agt_op_cannot_start(o, g, &suspect);
}

void agt_spec_start(struct agt *a, struct agt_op *o, struct agt_group *g)
{
	struct agt_reserved *x = o->key.is_sync ? NULL : reserved_find(g, o->key.tag);
	struct agt_run *r = o->run;

	if (!x)
		return;
	o->route = x->route;
	if (!can_begin(o, g)) {
		o->route = CC_ALGO_RING;
		forget(a, r, x);
		return;
	}
	o->seq = x->seq;
	o->epoch = r->epoch;
	x->seq = 0;
	HASH_ADD(hh_seq, r->started, seq, sizeof o->seq, o);
	o->spec = true;
	agt_op_xfer_start(a, o, g);
}

void agt_spec_rollback(struct agt *a, struct agt_op *o)
{
	struct agt_run *r = o->run;

	(void)emit(a, r, AGT_ACT_XFER_ROLLBACK, o->seq);
	agt_history_add(r, o->key.group, o->seq, WIRE_RANK_CONNECTION_LOST);
	HASH_DELETE(hh_seq, r->started, o);
	o->rolled_back = o->seq;
	o->seq = 0;
	o->spec = o->awaits_start = o->xfer = o->ok = false;
	o->tx_bytes = o->rx_bytes = 0;
	if (o->state == AGT_OP_REPORTED)
		agt_op_set_state(a, o, AGT_OP_VOTING);
	agt_op_drop_out(a, o);
	r->check_links = true;
}

struct wm_op_report *agt_spec_failed(
	struct agt *a, struct agt_op *o, const struct cc_id *suspect, const char *why)
{
	uint64_t seq = o->seq;

	agt_spec_rollback(a, o);
	return agt_op_report(a, o->run, seq, suspect, why);
}

struct agt_op *agt_spec_rolled_back(struct agt_run *r, const struct agt_op_key *key, uint64_t seq)
{
	struct agt_op *o = agt_op_find(r->active, key);

	return o && seq && o->rolled_back == seq && o->state == AGT_OP_VOTING && !o->spec ? o
											  : NULL;
}

void agt_spec_committed(struct agt *a, struct agt_op *o)
{
	o->spec = false;
	if (o->state == AGT_OP_VOTING)
		agt_op_set_state(a, o, AGT_OP_RUNNING);
	else if (o->awaits_start)
		(void)agt_op_report(a, o->run, o->seq, NULL, NULL);
	o->awaits_start = false;
}
