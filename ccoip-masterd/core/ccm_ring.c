/* SPDX-License-Identifier: MIT
 *
 * Ring orders that avoid failed pairs.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

void ccm_pair_add(struct ccm *m, uint64_t from, uint64_t to, const char *text)
{
	struct ccm_pair_key key = {from, to};
	struct ccm_pair *p;

	HASH_FIND(hh, m->pairs, &key, sizeof key, p);
	if (!p) {
		p = ccm_calloc(m, 1, sizeof *p);
		if (!p)
			return;
		p->key = key;
		HASH_ADD(hh, m->pairs, key, sizeof p->key, p);
		if (p->unhashed) {
			m->oom = true;
			free(p);
			return;
		}
	}
	ccm_print(p->text, sizeof p->text, "%s", text);
}

void ccm_pairs_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_pair *p, *tmp;

	HASH_ITER (hh, m->pairs, p, tmp) {
		if (p->key.from != agent_no && p->key.to != agent_no)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of the list */
		HASH_DELETE(hh, m->pairs, p);
		free(p);
	}
}

static bool failed_pair(const struct ccm *m, const struct ccm_seat *from, const struct ccm_seat *to)
{
	struct ccm_pair_key key = {from->agent->no, to->agent->no};
	struct ccm_pair *p;

	HASH_FIND(hh, m->pairs, &key, sizeof key, p);
	return p != NULL;
}

/*
 * Depth-first: position d takes the first seat in order that is free and not a failed pair with the
 * one before it. Free seats are a linked list of indices, so an order without obstacles costs n
 * steps. The first seat stays first: a ring has no beginning.
 */
struct search {
	struct ccm *m;
	struct ccm_seat **v;
	uint32_t n;
	uint32_t *next; /* free list; index n is its head and its end */
	uint32_t *sel;  /* chosen, by position */
	uint32_t *pre;  /* the free seat before the chosen one when it was taken */
	uint32_t *at;   /* where to look on, by position */
};

static bool search_run(struct search *s)
{
	uint32_t budget, c, p, d = 1;

	s->sel[0] = 0;
	s->at[1] = s->n;
	for (budget = CCM_RING_STEPS; budget > 0; budget--) {
		if (d == s->n && !failed_pair(s->m, s->v[s->sel[d - 1]], s->v[0]))
			return true;
		p = d < s->n ? s->at[d] : s->n;
		c = d < s->n ? s->next[p] : s->n;
		while (c != s->n && failed_pair(s->m, s->v[s->sel[d - 1]], s->v[c])) {
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
	return false;
}

struct ccm_seat **ccm_seats_new(struct ccm *m, uint32_t n)
{
	return ccm_calloc(m, n, sizeof(struct ccm_seat *)); /* NOLINT(bugprone-sizeof-expression) */
}

bool ccm_ring_order(struct ccm *m, struct ccm_seat **v, uint32_t n, struct ccm_seat **ret)
{
	struct search s = {.m = m, .v = v, .n = n};
	uint32_t *block, i;
	bool found;

	if (n < 2 || !m->pairs) {
		for (i = 0; i < n; i++)
			ret[i] = v[i];
		return true;
	}
	block = ccm_calloc(m, (size_t)4 * (n + 1), sizeof *block);
	if (!block)
		return false;
	s.next = block;
	s.sel = block + (n + 1);
	s.pre = block + (size_t)2 * (n + 1);
	s.at = block + (size_t)3 * (n + 1);
	for (i = 1; i < n; i++)
		s.next[i] = i + 1; /* the last one's is n, the end */
	s.next[n] = 1;
	found = search_run(&s);
	for (i = 0; found && i < n; i++)
		ret[i] = v[s.sel[i]];
	free(block);
	return found;
}
