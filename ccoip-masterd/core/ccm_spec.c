/* SPDX-License-Identifier: MIT
 *
 * Speculative starts of operations. The end of an all-reduce carries the reserved seq of the next
 * one with its tag. Agents that have this number exchange a small operand at once, and name the
 * number in their votes. If all votes name this number, the last vote starts the operation under
 * it, and no OP_START is sent. Otherwise the operation starts as usual, and the speculative work is
 * void.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

static struct ccm_reserved *reserved_find(struct ccm_group *g, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < CCM_RESERVED_MAX; i++)
		if (g->reserved[i].seq && g->reserved[i].tag == tag)
			return &g->reserved[i];
	return NULL;
}

uint64_t ccm_spec_reserve(struct ccm *m, const struct ccm_op *o, uint32_t *route)
{
	struct ccm_reserved *x = reserved_find(o->group, o->key.tag);
	enum cc_algo r = ccm_mesh_route(m, o);

	if (!x)
		x = &o->group->reserved[o->group->n_reserved++ % CCM_RESERVED_MAX];
	*x = (struct ccm_reserved){.tag = o->key.tag,
		.seq = ++m->last_seq,
		.round = m->last_round,
		.generation = o->group->generation,
		/* Only eager operations begin speculatively, and they take one ring. */
		.route = r == CC_ALGO_RINGS ? CC_ALGO_RING : r};
	*route = x->route;
	return x->seq;
}

/* Is seq the reserved seq of o's tag, and are the rings and their members still the same? */
static bool is_reserved(const struct ccm *m, const struct ccm_op *o, uint64_t seq)
{
	const struct ccm_reserved *x = reserved_find(o->group, o->key.tag);

	return x && seq && x->seq == seq && x->round == m->last_round &&
	       x->generation == o->group->generation;
}

void ccm_spec_void(struct ccm_op *o)
{
	struct ccm_reserved *x = reserved_find(o->group, o->key.tag);

	if (x)
		x->seq = 0;
}

void ccm_spec_void_routed(struct ccm_group *g)
{
	uint32_t i;

	for (i = 0; i < CCM_RESERVED_MAX; i++)
		if (g->reserved[i].route != CC_ALGO_RING)
			g->reserved[i].seq = 0;
}

void ccm_spec_forget(struct ccm *m, struct ccm_op *o)
{
	uint32_t i;

	if (!o->spec_seq)
		return;
	HASH_DELETE(hh_spec, m->spec_ops, o);
	o->spec_seq = 0;
	for (i = 0; i < o->n_parts; i++)
		o->parts[i].reported = false;
	o->n_reported = 0;
}

void ccm_spec_voted(struct ccm *m, struct ccm_op *o, uint64_t seq)
{
	if (o->n_votes > 0 && seq != o->spec_seq) {
		ccm_spec_forget(m, o);
	} else if (o->n_votes == 0 && is_reserved(m, o, seq)) {
		o->spec_seq = seq;
		HASH_ADD(hh_spec, m->spec_ops, spec_seq, sizeof o->spec_seq, o);
	}
}

uint64_t ccm_spec_commit(struct ccm *m, struct ccm_op *o)
{
	uint64_t seq = o->spec_seq;

	if (!is_reserved(m, o, seq)) {
		ccm_spec_forget(m, o);
		return 0;
	}
	HASH_DELETE(hh_spec, m->spec_ops, o);
	o->spec_seq = 0;
	o->route = reserved_find(o->group, o->key.tag)->route;
	return seq;
}

struct ccm_op *ccm_spec_find(struct ccm *m, uint64_t seq)
{
	struct ccm_op *o;

	HASH_FIND(hh_spec, m->spec_ops, &seq, sizeof seq, o);
	return o;
}
