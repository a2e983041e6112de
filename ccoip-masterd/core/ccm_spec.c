/* SPDX-License-Identifier: MIT
 *
 * Operations that begin before their votes are counted. With the end of an all-reduce goes the
 * number of the next one of that tag: agents that have it exchange a small operand at once, and
 * their votes say so. If all do, the operation has started under that number with the last vote,
 * and no OP_START is sent; else it starts as any other does, and what was done speculatively is
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

uint64_t ccm_spec_reserve(struct ccm *m, const struct ccm_op *o)
{
	struct ccm_reserved *x = reserved_find(o->group, o->key.tag);

	if (!x)
		x = &o->group->reserved[o->group->n_reserved++ % CCM_RESERVED_MAX];
	*x = (struct ccm_reserved){.tag = o->key.tag,
		.seq = ++m->last_seq,
		.round = m->last_round,
		.generation = o->group->generation};
	return x->seq;
}

/* Nothing has changed since that agents would go by: the rings, and who is in them. */
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
		m->oom |= o->unhashed;
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
	return seq;
}

struct ccm_op *ccm_spec_find(struct ccm *m, uint64_t seq)
{
	struct ccm_op *o;

	HASH_FIND(hh_spec, m->spec_ops, &seq, sizeof seq, o);
	return o;
}
