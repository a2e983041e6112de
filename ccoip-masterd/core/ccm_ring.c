/* SPDX-License-Identifier: MIT
 *
 * Ring orders that avoid failed pairs.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

static struct ccm_pair *pair_find(const struct ccm *m, uint64_t from, uint64_t to)
{
	struct ccm_pair_key key = {from, to};
	struct ccm_pair *p;

	HASH_FIND(hh, m->pairs, &key, sizeof key, p);
	return p;
}

/* Makes a pair, unless it exists already. */
static void pair_new(
	struct ccm *m, uint64_t from, uint64_t to, enum ccm_pair_state state, const char *text)
{
	struct ccm_pair *p;

	if (pair_find(m, from, to))
		return;
	p = cc_must_zalloc(1, sizeof *p);
	p->key = (struct ccm_pair_key){from, to};
	p->state = state;
	m->n_links_changed++;
	HASH_ADD(hh, m->pairs, key, sizeof p->key, p);
	ccm_print(p->text, sizeof p->text, "%s", text);
}

static void pair_free(struct ccm *m, struct ccm_pair *p)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->pairs, p);
	m->n_links_changed++;
	free(p);
}

void ccm_pair_add(struct ccm *m, uint64_t from, uint64_t to, const char *text)
{
	struct ccm_pair *p = pair_find(m, from, to), *back = pair_find(m, to, from);

	ccm_probes_void(m, from, to);
	if (!p)
		pair_new(m, from, to, CCM_PAIR_FAILED, text);
	else if (p->state != CCM_PAIR_SILENT) /* the text of a silent pair says more */
		ccm_print(p->text, sizeof p->text, "%s", text);
	if (p)
		p->state = CCM_PAIR_FAILED;
	if (!back)
		pair_new(m, to, from, CCM_PAIR_UNTRIED, text);
	else if (back->state == CCM_PAIR_SILENT)
		back->state = CCM_PAIR_FAILED; /* a path that is gone is gone in both directions */
}

void ccm_pair_silent(struct ccm *m, uint64_t one, uint64_t other, const char *text)
{
	ccm_probes_void(m, one, other);
	pair_new(m, one, other, CCM_PAIR_SILENT, text);
	pair_new(m, other, one, CCM_PAIR_SILENT, text);
}

void ccm_pair_doubtful(struct ccm *m, uint64_t from, uint64_t to, const char *text)
{
	pair_new(m, from, to, CCM_PAIR_SILENT, text);
}

bool ccm_pair_is_known(const struct ccm *m, uint64_t one, uint64_t other)
{
	return pair_find(m, one, other) || pair_find(m, other, one);
}

bool ccm_pair_has_failed(const struct ccm *m, uint64_t from, uint64_t to)
{
	const struct ccm_pair *p = pair_find(m, from, to);

	return p && p->state == CCM_PAIR_FAILED;
}

bool ccm_pair_is_silent(const struct ccm *m, uint64_t from, uint64_t to)
{
	const struct ccm_pair *p = pair_find(m, from, to);

	return p && p->state == CCM_PAIR_SILENT;
}

void ccm_pair_works(struct ccm *m, uint64_t from, uint64_t to)
{
	struct ccm_pair *p = pair_find(m, from, to), *back = pair_find(m, to, from);

	if (p)
		pair_free(m, p);
	if (back && back->state != CCM_PAIR_FAILED)
		pair_free(m, back);
}

void ccm_pairs_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_pair *p, *tmp;

	ccm_breaks_forget(m, agent_no);
	HASH_ITER (hh, m->pairs, p, tmp) {
		if (p->key.from == agent_no || p->key.to == agent_no)
			pair_free(m, p);
	}
}

void ccm_pairs_doubt(struct ccm *m, uint64_t agent_no)
{
	struct ccm_pair *p, *tmp;

	ccm_breaks_forget(m, agent_no);
	HASH_ITER (hh, m->pairs, p, tmp) {
		if (p->state == CCM_PAIR_FAILED &&
			(p->key.from == agent_no || p->key.to == agent_no))
			p->state = CCM_PAIR_SILENT;
	}
}

#define STEP_LOOKS 10u /* a step of the depth-first search takes as long as 10 looks at links */

/* Depth-first search. Position d takes the first free membership whose pair with the membership
 * before it has not failed. Free memberships are a linked list of indices, so an order without
 * obstacles costs n steps. The first membership stays first, because a ring has no beginning. */
struct search {
	struct ccm *m;
	enum ccm_pair_state takes; /* pairs up to this state are allowed, except failed ones */
	unsigned met;              /* states of pairs that the search has avoided, as bits */
	struct ccm_membership **v;
	uint32_t n;
	uint32_t *next; /* free list; index n is its head and its end */
	uint32_t *sel;  /* chosen, by position */
	uint32_t *pre;  /* the membership before the chosen one in the free list */
	uint32_t *at;   /* where the search continues, by position */
};

static bool failed_pair(
	struct search *s, const struct ccm_membership *from, const struct ccm_membership *to)
{
	const struct ccm_pair *p = pair_find(s->m, from->agent->no, to->agent->no);

	if (p && (p->state == CCM_PAIR_FAILED || p->state > s->takes)) {
		s->met |= 1u << p->state;
		return true;
	}
	return ccm_probe_failed(s->m, from, to);
}

static void work(struct ccm *m, uint32_t looks)
{
	m->ring_work -= looks < m->ring_work ? looks : m->ring_work;
}

/* Runs the search. *tired: it gave up at its step limit, so a ring may still exist. */
static bool search_run(struct search *s, bool *tired)
{
	uint32_t budget, c, p, d = 1;

	s->sel[0] = 0;
	s->at[1] = s->n;
	for (budget = CCM_RING_STEPS; budget > 0; budget--) {
		if (d == s->n && !failed_pair(s, s->v[s->sel[d - 1]], s->v[0]))
			return true;
		p = d < s->n ? s->at[d] : s->n;
		c = d < s->n ? s->next[p] : s->n;
		while (c != s->n && failed_pair(s, s->v[s->sel[d - 1]], s->v[c])) {
			p = c;
			c = s->next[p];
		}
		if (c != s->n) {
			s->sel[d] = c;
			s->pre[d] = p;
			s->next[p] = s->next[c];
			s->at[++d] = s->n;
			continue;
		}
		if (--d == 0)
			return false;
		s->next[s->pre[d]] = s->sel[d];
		s->at[d] = s->sel[d];
	}
	work(s->m, CCM_RING_STEPS * STEP_LOOKS);
	*tired = true;
	return false;
}

/* Returns the agent's membership if it is one of those to be ordered; else NULL. */
static const struct ccm_membership *membership_of(const struct search *s, uint64_t agent_no)
{
	const struct ccm_membership *x = ccm_membership_find(s->m, agent_no, s->v[0]->group->id);

	return x && x->at < s->n && s->v[x->at] == x ? x : NULL;
}

static void bar(struct search *s, uint8_t *barred, const struct ccm_pair_key *key)
{
	const struct ccm_membership *from = membership_of(s, key->from),
				    *to = membership_of(s, key->to);

	if (from && to && failed_pair(s, from, to))
		barred[(size_t)from->at * s->n + to->at] = 1;
}

/* Marks all barred links. Only few of the n * n pairs are known. */
static void bar_all(struct search *s, uint8_t *barred)
{
	const struct ccm_pair *p;
	const struct ccm_probe *x;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		s->v[i]->at = i;
		barred[(size_t)i * s->n + i] = 1;
	}
	for (p = s->m->pairs; p; p = p->hh.next)
		bar(s, barred, &p->key);
	for (x = s->m->probes; x; x = x->hh.next)
		if (x->failed)
			bar(s, barred, &x->key);
}

/* Searches for a ring with ccm_tour_find. This changes the old order more, but finds rings around
 * hosts with few possible neighbours, which the depth-first search reaches too late. */
static bool search_tour(struct search *s)
{
	struct ccm *m = s->m;
	uint32_t most = m->ring_work < CCM_TOUR_WORK ? m->ring_work : CCM_TOUR_WORK, left = most;
	uint8_t *barred;
	bool found;

	if (!ccm_tour_is_worth(s->n, most)) {
		work(m, most);
		return false;
	}
	barred = cc_must_zalloc(s->n, s->n);
	bar_all(s, barred);
	found = ccm_tour_find(barred, s->n, &left, s->sel);
	work(m, most - left);
	free(barred);
	return found;
}

struct ccm_membership **ccm_memberships_new(uint32_t n)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) */
	return cc_must_zalloc(n, sizeof(struct ccm_membership *));
}

static bool order(struct search *s, struct ccm_membership **ret)
{
	uint32_t *block, i, n = s->n;
	bool found, tired = false;

	block = cc_must_zalloc((size_t)4 * (n + 1), sizeof *block);
	s->next = block;
	s->sel = block + (n + 1);
	s->pre = block + (size_t)2 * (n + 1);
	s->at = block + (size_t)3 * (n + 1);
	for (i = 1; i < n; i++)
		s->next[i] = i + 1; /* the last entry is n, the end */
	s->next[n] = 1;
	found = search_run(s, &tired) || (tired && search_tour(s));
	for (i = 0; found && i < n; i++)
		ret[i] = s->v[s->sel[i]];
	free(block);
	return found;
}

bool ccm_ring_order(
	struct ccm *m, struct ccm_membership **v, uint32_t n, struct ccm_membership **ret)
{
	struct search s = {.m = m, .v = v, .n = n};
	uint32_t i;

	if (n < 2 || !(m->pairs || m->probes)) {
		for (i = 0; i < n; i++)
			ret[i] = v[i];
		return true;
	}
	if (order(&s, ret))
		return true;
	for (s.takes = CCM_PAIR_UNTRIED; s.takes <= CCM_PAIR_SILENT; s.takes++)
		if (s.met & 1u << s.takes && order(&s, ret))
			return true;
	return false;
}
