/* SPDX-License-Identifier: MIT
 *
 * Plans: the order of a group's hosts in its ring, and the weighted rings over which large
 * operations are divided besides. An optimization proposes a plan, and a round puts it in force.
 * Later rounds keep what is possible: hosts that are gone leave all rings, new hosts come last, and
 * a ring with a failed pair is left out.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"
#include "proto/wire_plan.h"

#define LAST UINT32_MAX /* the place of a host that a ring does not know yet */

void ccm_plan_free(struct ccm_group *g)
{
	free(g->rings);
	free(g->next_rings);
	free(g->asked);
	free(g->better_order);
}

static uint32_t place(const struct ccm_membership *s, uint32_t ring)
{
	uint32_t at = s->group->proposed ? s->proposed_at[ring] : s->ring_at[ring];

	return at > 0 ? at - 1 : LAST;
}

static void sort(struct ccm_membership **v, uint32_t n, uint32_t ring)
{
	struct ccm_membership *s;
	uint32_t i, k;

	for (i = 1; i < n; i++) {
		s = v[i];
		for (k = i; k > 0 && place(v[k - 1], ring) > place(s, ring); k--)
			v[k] = v[k - 1];
		v[k] = s;
	}
}

void ccm_plan_sort(const struct ccm_group *g, struct ccm_membership **v, uint32_t n)
{
	if (g->proposed)
		sort(v, n, 0);
}

static bool has_failed_pair(const struct ccm *m, struct ccm_membership **v, uint32_t n)
{
	const struct ccm_agent *a, *next;
	uint32_t i;

	for (i = 0; m->pairs && i < n; i++) {
		a = v[i]->agent;
		next = v[(i + 1) % n]->agent;
		if (ccm_pair_is_known(m, a->no, next->no))
			return true;
	}
	return false;
}

static void add_ring(
	struct cc_rings *x, uint16_t share, struct ccm_membership **v, const struct ccm_group *g)
{
	uint32_t i;

	x->share[x->n] = share;
	for (i = 0; i < g->n_next; i++)
		x->order[x->n][i] = (uint8_t)v[i]->next_pos;
	x->n++;
}

void ccm_plan_next(struct ccm *m, struct ccm_group *g)
{
	const struct ccm_plan *plan = g->proposed ? &g->proposal : &g->plan;
	struct ccm_membership **v;
	struct cc_rings *x;
	uint32_t i, k;

	free(g->next_rings);
	g->next_rings = NULL;
	if (plan->n < 2 || !ccm_mesh_is_wanted(m, g->n_next))
		return;
	x = cc_must_zalloc(1, sizeof *x);
	x->hosts = g->n_next;
	add_ring(x, plan->shares[0], g->next_ring, g);
	v = ccm_memberships_new(g->n_next);
	for (i = 1; i < plan->n; i++) {
		for (k = 0; k < g->n_next; k++)
			v[k] = g->next_ring[k];
		sort(v, g->n_next, i);
		if (!has_failed_pair(m, v, g->n_next))
			add_ring(x, plan->shares[i], v, g);
	}
	free(v);
	if (x->n > 1 && cc_rings_complete(x) == 0)
		g->next_rings = x;
	else
		free(x);
}

void ccm_plan_fill(const struct ccm_membership *s, struct wm_ring *r)
{
	if (!s->group->next_rings || r->n_others == 0)
		return;
	wm_plan_fill(&r->plan, s->group->next_rings);
	r->await_plan = s->group->proposed;
}

bool ccm_plan_is_next(const struct ccm_membership *s, const struct cc_id *agent)
{
	const struct ccm_group *g = s->group;
	const struct cc_rings *x = g->next_rings;
	uint32_t i, at;

	for (i = 0; x && i < x->n; i++) {
		at = x->order[i][(x->at[i][s->next_pos] + 1u) % x->hosts];
		if (cc_id_eq(&g->next_ring[at]->agent->hello.agent, agent))
			return true;
	}
	return false;
}

void ccm_plan_commit(struct ccm *m, struct ccm_group *g, bool changed)
{
	struct ccm_membership *s;
	uint32_t i, k;

	free(g->rings);
	g->rings = g->next_rings;
	g->next_rings = NULL;
	/* The agents report again after each commit. */
	for (i = 0; i < g->n_ring; i++)
		g->ring[i]->plan_up = false;
	if (!g->proposed) {
		if (changed) /* the prediction was for other rings */
			g->plan.rate = g->plan.bound = 0;
		return;
	}
	ccm_plan_withdraw(m, g);
	g->plan = g->proposal;
	for (i = g->n_ring; i-- > 0;) {
		s = g->ring[i];
		for (k = 0; k < CC_RINGS_MAX; k++)
			s->ring_at[k] = s->proposed_at[k];
		DL_DELETE2(g->memberships, s, prev_g, next_g);
		DL_PREPEND2(g->memberships, s, prev_g, next_g);
	}
}

bool ccm_plan_leads(const struct ccm_group *g, uint32_t from, uint32_t to)
{
	const struct cc_rings *x = g->rings;
	uint32_t i;

	if (!x || x->hosts != g->n_ring) /* the rings of operations in progress are not known */
		return true;
	for (i = 0; i < x->n; i++)
		if (x->order[i][(x->at[i][from] + 1u) % x->hosts] == to)
			return true;
	return false;
}

bool ccm_plan_is_up(const struct ccm_group *g)
{
	uint32_t i;

	if (!g->rings || g->rings->hosts != g->n_ring)
		return false;
	for (i = 0; i < g->n_ring; i++)
		if (!g->ring[i]->plan_up)
			return false;
	return true;
}

void ccm_plan_withdraw(struct ccm *m, struct ccm_group *g)
{
	m->n_proposed -= g->proposed;
	g->proposed = false;
}

/* Returns the membership of a host of the last problem, or NULL if it is not in the ring any more.
 */
static struct ccm_membership *asked_host(const struct ccm *m, const struct ccm_group *g, uint32_t i)
{
	struct ccm_membership *s;
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, &g->asked[i], sizeof g->asked[i], a);
	s = a ? ccm_membership_of(m, a, g->id) : NULL;
	return s && s->in_ring ? s : NULL;
}

bool ccm_plan_fits(const struct ccm *m, const struct ccm_group *g, const struct ccm_solution *x)
{
	uint32_t k;

	if (x->n != g->n_ring || g->n_asked != g->n_ring)
		return false;
	for (k = 0; k < x->n; k++)
		if (!asked_host(m, g, k))
			return false;
	return true;
}

bool ccm_plan_propose(struct ccm *m, struct ccm_group *g, const struct ccm_solution *x)
{
	uint32_t i, k;

	if (!ccm_plan_fits(m, g, x))
		return false;
	m->n_proposed += !g->proposed;
	g->proposed = true;
	g->proposal = (struct ccm_plan){.n = x->n_rings, .rate = x->rate, .bound = x->bound};
	for (i = 0; i < x->n_rings; i++) {
		g->proposal.shares[i] = x->shares[i];
		for (k = 0; k < x->n; k++)
			asked_host(m, g, x->order[i * x->n + k])->proposed_at[i] = k + 1;
	}
	return true;
}

void ccm_plan_restore(struct ccm_group *g, const struct wm_plan *plan)
{
	struct cc_rings x;
	uint32_t i, k;

	if (plan->n == 0 || wm_plan_rings(plan, g->n_ring, &x) < 0)
		return;
	g->plan = (struct ccm_plan){.n = x.n};
	for (i = 0; i < x.n; i++) {
		g->plan.shares[i] = x.share[i];
		for (k = 0; k < g->n_ring; k++)
			g->ring[k]->ring_at[i] = x.at[i][k] + 1u;
	}
}
