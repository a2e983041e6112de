/* SPDX-License-Identifier: MIT
 *
 * Pairs of hosts whose links break in one operation after the other, and can be opened anew each
 * time: a router that resets what carries more than some bytes, say. Another link is no remedy.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"
#include "proto/wire_dtype.h"

/* One key for both directions. */
static struct ccm_break *break_find(const struct ccm *m, uint64_t one, uint64_t other)
{
	struct ccm_pair_key key = {one < other ? one : other, one < other ? other : one};
	struct ccm_break *b;

	HASH_FIND(hh, m->breaks, &key, sizeof key, b);
	return b;
}

static struct ccm_break *break_get(struct ccm *m, uint64_t one, uint64_t other)
{
	struct ccm_break *b = break_find(m, one, other);

	if (b)
		return b;
	b = ccm_calloc(m, 1, sizeof *b);
	if (!b)
		return NULL;
	b->key.from = one < other ? one : other;
	b->key.to = one < other ? other : one;
	b->round = UINT64_MAX;
	HASH_ADD(hh, m->breaks, key, sizeof b->key, b);
	if (b->unhashed) {
		m->oom = true;
		free(b);
		return NULL;
	}
	return b;
}

static void break_free(struct ccm *m, struct ccm_break *b)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of the list */
	HASH_DELETE(hh, m->breaks, b);
	free(b);
}

static uint64_t op_bytes(const struct ccm_op *o)
{
	uint32_t dtype = o->params.dtype;

	return dtype <= WIRE_DTYPE_MAX ? o->params.count * wire_dtype_size[dtype] : 0;
}

/* Of what was under way; it may be that smaller ones pass. */
static uint64_t largest_started(const struct ccm_group *g)
{
	const struct ccm_op *o;
	uint64_t bytes, most = 0;

	DL_FOREACH (g->ops, o) {
		bytes = o->seq && !o->sync ? op_bytes(o) : 0;
		if (bytes > most)
			most = bytes;
	}
	return most;
}

void ccm_break_count(struct ccm *m, const struct ccm_group *g, const struct ccm_agent *from,
	const struct ccm_agent *to, const char *text)
{
	struct ccm_break *b = NULL;

	if (from->n_accepted > 0 && to->n_accepted > 0)
		b = break_get(m, from->no, to->no);
	if (!b || b->round == m->committed) /* the other end has told it */
		return;
	b->n++;
	b->counts = true;
	b->round = m->committed;
	b->from = from->no;
	b->bytes = largest_started(g);
	ccm_print(b->text, sizeof b->text, "%s", text);
}

/* The other end may have told it already, or tell it yet. */
void ccm_break_is_mended(struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	struct ccm_break *b = NULL;

	if (from->n_accepted > 0 && to->n_accepted > 0)
		b = break_get(m, from->no, to->no);
	if (!b)
		return;
	if (b->counts && b->round == m->committed)
		b->n--;
	b->counts = false;
	b->round = m->committed;
}

static bool judge_edge(struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	struct ccm_break *b = break_find(m, from->no, to->no);
	char text[WM_TEXT_MAX];

	if (!b || b->n < CCM_BREAKS_MAX || b->from != from->no)
		return false;
	ccm_print(text, sizeof text,
		"the link from host %s to host %s broke amid each of %u operations in a row: %s",
		from->hello.name, to->hello.name, b->n, b->text);
	ccm_log(m, CCM_LOG_WARNING, "%s; they count as not connected", text);
	ccm_pair_add(m, from->no, to->no, text);
	b->n = CCM_BREAKS_MAX - 1; /* the other direction has one more chance */
	return true;
}

bool ccm_breaks_judge(struct ccm *m)
{
	const struct ccm_group *g;
	bool judged = false;
	uint32_t i;

	for (g = m->breaks ? m->groups : NULL; g; g = g->hh.next)
		for (i = 0; g->n_next > 1 && i < g->n_next; i++)
			judged |= judge_edge(m, g->next_ring[i]->agent,
				g->next_ring[(i + 1) % g->n_next]->agent);
	m->rewire |= judged;
	return judged;
}

void ccm_breaks_over(struct ccm *m, const struct ccm_op *o)
{
	const struct ccm_group *g = o->group;
	struct ccm_break *b;
	uint32_t i;

	for (i = 0; m->breaks && !o->sync && g->n_ring > 1 && i < g->n_ring; i++) {
		b = break_find(m, g->ring[i]->agent->no, g->ring[(i + 1) % g->n_ring]->agent->no);
		if (b && op_bytes(o) >= b->bytes)
			break_free(m, b);
	}
}

void ccm_breaks_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_break *b, *tmp;

	HASH_ITER (hh, m->breaks, b, tmp) {
		if (b->key.from == agent_no || b->key.to == agent_no)
			break_free(m, b);
	}
}

void ccm_breaks_free(struct ccm *m)
{
	struct ccm_break *b = m->breaks, *next;

	HASH_CLEAR(hh, m->breaks);
	for (; b; b = next) {
		next = b->hh.next;
		free(b);
	}
}
