/* SPDX-License-Identifier: MIT
 *
 * Peers that have left. A leave is not complete when it has been sent: the master may die before it
 * reads the leave, or this agent may die with the rest of its container. So the leave is kept until
 * the master confirms it (WM_LEFT), and it is also sent to the next master.
 */
#include <stdlib.h>

#include "pcclagentd/core/agt_internal.h"

static void answer(struct agt *a, struct agt_ghost *g)
{
	struct agt_comm *c = g->comm ? agt_comm_find(a, g->comm) : NULL;

	g->comm = 0;
	if (!c) /* the process that waited is gone, too */
		return;
	c->untold = false;
	if (c->n_ops == 0)
		agt_comm_finish(a, c);
}

static struct agt_ghost *ghost_new(struct agt *a, struct agt_run *r, const struct agt_comm *c)
{
	struct agt_ghost *g;
	struct wm_join join;

	agt_run_fill_join(c, &join);
	if (join.phase == WM_JOIN_NEW || r->n_ghosts == AGT_GHOSTS_MAX)
		return NULL;
	g = cc_must_zalloc(1, sizeof *g);
	g->join = join;
	g->since_ns = a->now;
	LL_PREPEND(r->ghosts, g);
	r->n_ghosts++;
	return g;
}

void agt_leave(struct agt *a, struct agt_run *r, struct agt_comm *c, const struct wm_leave *l)
{
	bool up = r->state == AGT_RUN_UP;
	struct agt_ghost *g = NULL;

	if (!up || r->features & WM_LEAVES)
		g = ghost_new(a, r, c);
	if (g) {
		g->leave = *l;
		g->join.left = up;
	}
	if (g && up && c->until_left) {
		g->comm = c->id;
		c->untold = true;
	}
	if (up)
		agt_send(a, r, WM_LEAVE)->u.leave = *l;
}

static void ghost_free(struct agt_run *r, struct agt_ghost *g)
{
	LL_DELETE(r->ghosts, g);
	r->n_ghosts--;
	free(g);
}

void agt_left(struct agt *a, struct agt_run *r, const struct wm_left *m)
{
	struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	if (cc_id_eq(&g->join.peer, &m->peer))
		break;
	if (!g)
		return;
	answer(a, g);
	ghost_free(r, g);
}

void agt_leaves_tell(struct agt *a, struct agt_run *r)
{
	struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	{
		agt_send(a, r, WM_JOIN)->u.join = g->join;
		agt_send(a, r, WM_LEAVE)->u.leave = g->leave;
		g->join.left = true;
	}
	if (!(r->features & WM_LEAVES))
		agt_ghosts_free(r);
}

void agt_leaves_answer(struct agt *a, struct agt_run *r)
{
	struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	answer(a, g);
}

void agt_leaves_tick(struct agt *a, struct agt_run *r)
{
	struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	if (g->comm && a->now - g->since_ns >= AGT_LEAVE_MS * (uint64_t)AGT_NS_PER_MS)
		answer(a, g);
}

bool agt_leaves_sent(const struct agt_run *r)
{
	const struct agt_ghost *g;

	LL_FOREACH(r->ghosts, g)
	if (!g->join.left)
		return false;
	return true;
}

void agt_ghosts_free(struct agt_run *r)
{
	struct agt_ghost *g, *next;

	LL_FOREACH_SAFE(r->ghosts, g, next)
	ghost_free(r, g);
}
