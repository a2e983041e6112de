/* SPDX-License-Identifier: MIT
 *
 * Operations that begin before their votes are counted. With the end of an all-reduce goes the
 * number of the next one of that tag: agents that have it exchange a small operand at once, and
 * their votes say so. If all do, the operation has started under that number with the last vote,
 * and no OP_START is sent; else it starts as any other does, and what was done ahead is void.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

static struct ccm_grant *grant_find(struct ccm_group *g, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < CCM_AHEAD_MAX; i++)
		if (g->ahead[i].seq && g->ahead[i].tag == tag)
			return &g->ahead[i];
	return NULL;
}

uint64_t ccm_ahead_grant(struct ccm *m, const struct ccm_op *o)
{
	struct ccm_grant *x = grant_find(o->group, o->key.tag);

	if (!x)
		x = &o->group->ahead[o->group->n_ahead++ % CCM_AHEAD_MAX];
	*x = (struct ccm_grant){.tag = o->key.tag,
		.seq = ++m->last_seq,
		.round = m->last_round,
		.losses = o->group->losses};
	return x->seq;
}

/* Nothing has changed since that agents would go by: the rings, and who is in them. */
static bool is_granted(const struct ccm *m, const struct ccm_op *o, uint64_t seq)
{
	const struct ccm_grant *x = grant_find(o->group, o->key.tag);

	return x && seq && x->seq == seq && x->round == m->last_round &&
	       x->losses == o->group->losses;
}

void ccm_ahead_void(struct ccm_op *o)
{
	struct ccm_grant *x = grant_find(o->group, o->key.tag);

	if (x)
		x->seq = 0;
}

void ccm_ahead_forget(struct ccm *m, struct ccm_op *o)
{
	uint32_t i;

	if (!o->ahead)
		return;
	HASH_DELETE(hh_ahead, m->ahead, o);
	o->ahead = 0;
	for (i = 0; i < o->n_parts; i++)
		o->parts[i].reported = false;
	o->n_reported = 0;
}

void ccm_ahead_voted(struct ccm *m, struct ccm_op *o, uint64_t seq)
{
	if (o->n_votes > 0 && seq != o->ahead) {
		ccm_ahead_forget(m, o);
	} else if (o->n_votes == 0 && is_granted(m, o, seq)) {
		o->ahead = seq;
		HASH_ADD(hh_ahead, m->ahead, ahead, sizeof o->ahead, o);
		m->oom |= o->unhashed;
	}
}

uint64_t ccm_ahead_take(struct ccm *m, struct ccm_op *o)
{
	uint64_t seq = o->ahead;

	if (!is_granted(m, o, seq)) {
		ccm_ahead_forget(m, o);
		return 0;
	}
	HASH_DELETE(hh_ahead, m->ahead, o);
	o->ahead = 0;
	return seq;
}

struct ccm_op *ccm_ahead_find(struct ccm *m, uint64_t seq)
{
	struct ccm_op *o;

	HASH_FIND(hh_ahead, m->ahead, &seq, sizeof seq, o);
	return o;
}
