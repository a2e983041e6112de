/* SPDX-License-Identifier: MIT
 *
 * Pairs of hosts whose links break in one operation after the other, although the links can be
 * opened again each time. For example, a router resets connections that have carried some number of
 * bytes. A new link does not help. A newcomer that brings such links has them with all its
 * neighbours, so its breaks are counted together.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* Finds the breaks of a pair of hosts. Both directions have one key. */
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
	b = cc_must_zalloc(1, sizeof *b);
	b->key.from = one < other ? one : other;
	b->key.to = one < other ? other : one;
	HASH_ADD(hh, m->breaks, key, sizeof b->key, b);
	return b;
}

static void break_free(struct ccm *m, struct ccm_break *b)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->breaks, b);
	free(b);
}

/* Returns the size of the largest all-reduce that has started. Smaller all-reduces may still
 * succeed over links that break. */
static uint64_t largest_started(const struct ccm_group *g)
{
	const struct ccm_op *o;
	uint64_t bytes, most = 0;

	DL_FOREACH (g->ops, o) {
		bytes = o->seq && !o->sync ? ccm_op_bytes(o) : 0;
		if (bytes > most)
			most = bytes;
	}
	return most;
}

static bool streak_add(const struct ccm *m, struct ccm_streak *k, uint64_t bytes)
{
	if (k->round == m->committed + 1) /* the other end has already reported this break */
		return false;
	*k = (struct ccm_streak){
		.n = k->n + 1, .round = m->committed + 1, .counts = true, .bytes = bytes};
	return true;
}

static void streak_undo(const struct ccm *m, struct ccm_streak *k)
{
	if (k->counts && k->round == m->committed + 1)
		k->n--;
	k->counts = false;
	k->round = m->committed + 1;
}

/* Was `a` admitted recently, and after `other`? Then `a` is the probable cause of the break. */
static bool is_newcomer(
	const struct ccm *m, const struct ccm_agent *a, const struct ccm_agent *other)
{
	return ccm_newcomer_on_trial(m, a) && a->admitted_ns > other->admitted_ns;
}

static void count_newcomer(
	struct ccm *m, struct ccm_agent *a, const struct ccm_agent *other, uint64_t bytes)
{
	if (!is_newcomer(m, a, other))
		return;
	if (streak_add(m, &a->breaks, bytes) && a->breaks.n == 1) {
		a->breaks_with = other->no;
		a->breaks_with_others = false;
	}
	a->breaks_with_others |= a->breaks_with != other->no;
}

void ccm_break_count(struct ccm *m, const struct ccm_group *g, struct ccm_agent *from,
	struct ccm_agent *to, const char *text)
{
	uint64_t bytes = largest_started(g);
	struct ccm_break *b = NULL;

	if (from->n_accepted > 0 && to->n_accepted > 0)
		b = break_get(m, from->no, to->no);
	if (!b || !streak_add(m, &b->streak, bytes))
		return;
	count_newcomer(m, from, to, bytes);
	count_newcomer(m, to, from, bytes);
	b->from = from->no;
	ccm_print(b->text, sizeof b->text, "%s", text);
}

/* The other end may have already reported the break, or may report it later. */
void ccm_break_is_mended(struct ccm *m, struct ccm_agent *from, struct ccm_agent *to)
{
	struct ccm_break *b = NULL;

	if (from->n_accepted > 0 && to->n_accepted > 0)
		b = break_get(m, from->no, to->no);
	if (!b)
		return;
	streak_undo(m, &b->streak);
	if (is_newcomer(m, from, to))
		streak_undo(m, &from->breaks);
	if (is_newcomer(m, to, from))
		streak_undo(m, &to->breaks);
}

static bool judge_edge(struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	struct ccm_break *b = break_find(m, from->no, to->no);
	char text[WM_TEXT_MAX];

	if (!b || b->streak.n < CCM_BREAKS_MAX || b->from != from->no)
		return false;
	ccm_print(text, sizeof text,
		"the link from host %s to host %s broke during each of the last %u operations: %s",
		from->hello.name, to->hello.name, b->streak.n, b->text);
	ccm_log(m, CCM_LOG_WARNING, "%s; rings avoid this pair of hosts from now on", text);
	ccm_pair_add(m, from->no, to->no, text);
	b->streak.n = CCM_BREAKS_MAX - 1; /* the other direction has one more chance */
	return true;
}

/* Returns the text of the last known break of a's links, or "". */
static const char *newcomer_text(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_break *b, *last = NULL;

	for (b = m->breaks; b; b = b->hh.next)
		if ((b->key.from == a->no || b->key.to == a->no) &&
			(!last || b->streak.round > last->streak.round))
			last = b;
	return last ? last->text : "";
}

static bool judge_newcomer(struct ccm *m, struct ccm_agent *a)
{
	char text[WM_TEXT_MAX];

	if (a->breaks.n < CCM_BREAKS_MAX || !a->breaks_with_others || !ccm_newcomer_on_trial(m, a))
		return false;
	ccm_print(text, sizeof text,
		"links of host %s with several hosts broke during each of the last %u operations: "
		"%s",
		a->hello.name, a->breaks.n, newcomer_text(m, a));
	ccm_agent_put_out(m, a, text);
	return true;
}

bool ccm_breaks_judge(struct ccm *m)
{
	const struct ccm_group *g;
	struct ccm_agent *a, *tmp;
	bool judged = false;
	uint32_t i;

	if (!m->breaks)
		return false;
	HASH_ITER (hh, m->agents, a, tmp)
		if (a->round == m->last_round && judge_newcomer(m, a)) {
			m->rewire = true;
			return true; /* the ring changes, so other links are judged later */
		}

	for (g = m->groups; g; g = g->hh.next)
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

	if (!m->breaks || o->sync)
		return;
	for (i = 0; g->n_ring > 1 && i < g->n_ring; i++) {
		b = break_find(m, g->ring[i]->agent->no, g->ring[(i + 1) % g->n_ring]->agent->no);
		if (b && ccm_op_bytes(o) >= b->streak.bytes)
			break_free(m, b);
		if (ccm_op_bytes(o) >= g->ring[i]->agent->breaks.bytes)
			g->ring[i]->agent->breaks = (struct ccm_streak){0};
	}
}

/* Clears the agent's count of breaks, because the host that has changed may have caused them. */
static void streak_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next)
		if (a->no == agent_no)
			a->breaks = (struct ccm_streak){0};
}

void ccm_breaks_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_break *b, *tmp;

	HASH_ITER (hh, m->breaks, b, tmp) {
		if (b->key.from != agent_no && b->key.to != agent_no)
			continue;
		streak_forget(m, b->key.from);
		streak_forget(m, b->key.to);
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
