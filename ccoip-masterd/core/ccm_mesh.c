/* SPDX-License-Identifier: MIT
 *
 * The links between all hosts of a ring, and the routes of operations. Agents open these links
 * after the commit of the ring, and report them. Only when the links of all hosts are up, the
 * operations of the group take other routes than the ring.
 */
#include "ccoip-masterd/core/ccm_internal.h"

/* A quantized operation takes a plan that is predicted to be this many times as fast as a direct
 * exchange. On a ring each hop quantizes again, so less gain is not worth the error. */
#define PLAN_GAIN 1.25

/* Is there a mesh for a ring of this many hosts? On two hosts the ring has all links. */
bool ccm_mesh_is_wanted(const struct ccm *m, uint32_t hosts)
{
	return m->cfg.algorithm != CCM_ALGORITHM_RING && hosts > 2 && hosts <= CC_ROUTE_HOSTS_MAX;
}

static bool is_up(const struct ccm *m, const struct ccm_group *g)
{
	uint32_t i;

	if (!ccm_mesh_is_wanted(m, g->n_ring))
		return false;
	for (i = 0; i < g->n_ring; i++)
		if (!g->ring[i]->mesh_up)
			return false;
	return true;
}

/* Returns the route of an operation that takes neither the direct exchange nor the tree. */
static enum cc_algo large_route(const struct ccm_op *o, uint64_t bytes)
{
	const struct ccm_group *g = o->group;

	return ccm_plan_is_up(g) && !cc_route_is_eager(bytes, g->n_ring) ? CC_ALGO_RINGS
									 : CC_ALGO_RING;
}

/* Is the plan in force predicted to be so much faster than a direct exchange that a quantized
 * operation takes it, although it then has a larger error? The prediction is for the hosts of the
 * last optimization. */
static bool plan_wins(const struct ccm *m, const struct ccm_group *g)
{
	return g->direct > 0 && g->solved_epoch == m->epoch && (!g->rings || ccm_plan_is_up(g)) &&
	       g->plan.rate >= PLAN_GAIN * g->direct;
}

enum cc_algo ccm_mesh_route(const struct ccm *m, const struct ccm_op *o)
{
	bool quantized = o->params.quant.algo != 0;
	enum cc_algo route;

	if (o->sync)
		return CC_ALGO_RING;
	if (!is_up(m, o->group))
		return large_route(o, ccm_op_bytes(o));
	if (m->cfg.algorithm == CCM_ALGORITHM_DIRECT)
		return CC_ALGO_DIRECT;
	if (m->cfg.algorithm == CCM_ALGORITHM_TREE)
		return CC_ALGO_TREE;
	route = cc_route_choose(o->group->n_ring, ccm_op_bytes(o), quantized);
	if (quantized && !cc_route_is_eager(ccm_op_bytes(o), o->group->n_ring) &&
		plan_wins(m, o->group))
		route = CC_ALGO_RING;
	return route == CC_ALGO_RING ? large_route(o, ccm_op_bytes(o)) : route;
}

void ccm_mesh_report(struct ccm *m, struct ccm_agent *a, const struct wm_mesh *x)
{
	struct ccm_membership *s = ccm_membership_of(m, a, x->group);

	/* A report from before a WM_LINK_REOPEN does not know of the lost link. */
	if (s && s->in_ring) {
		s->mesh_up = x->up && x->reopens == a->reopens;
		s->plan_up = x->plan_up && x->reopens == a->reopens;
	}
}

void ccm_mesh_reset(struct ccm_group *g)
{
	uint32_t i;

	for (i = 0; i < g->n_ring; i++)
		g->ring[i]->mesh_up = g->ring[i]->plan_up = false;
}

/* Does the operation, which has started, use the link between these hosts, beside the ring? */
static bool uses_link(
	const struct ccm_op *o, const struct ccm_membership *from, const struct ccm_membership *to)
{
	if (!o->seq || o->route == CC_ALGO_RING)
		return false;
	return o->route != CC_ALGO_RINGS || ccm_plan_leads(o->group, from->pos, to->pos);
}

static bool is_used(const struct ccm_membership *from, const struct ccm_membership *to)
{
	const struct ccm_op *o;

	DL_FOREACH (from->group->ops, o)
		if (uses_link(o, from, to))
			return true;
	return false;
}

bool ccm_mesh_leads_to(
	const struct ccm *m, const struct ccm_membership *s, const struct ccm_agent *to)
{
	const struct ccm_membership *end = ccm_membership_of(m, to, s->group->id);

	return s->in_ring && end && end->in_ring && (s->mesh_up || s->plan_up || is_used(s, end));
}

bool ccm_mesh_lost(struct ccm *m, struct ccm_membership *from, struct ccm_agent *to,
	const struct wm_link_lost *l)
{
	const struct ccm_membership *end = ccm_membership_of(m, to, from->group->id);
	char text[WM_TEXT_MAX];

	if (!from->in_ring || !end || !end->in_ring || !ccm_mesh_is_wanted(m, from->group->n_ring))
		return false;
	from->mesh_up = from->plan_up = false;
	/* Only one end of the link may know that data of a speculative start is lost. No round
	 * follows that would end this start. */
	ccm_spec_void_routed(from->group);
	if (!is_used(from, end))
		return true;
	ccm_copy(text, sizeof text, l->text);
	ccm_group_interrupt(m, from->group, "the link from host %s to host %s broke: %s",
		from->agent->hello.name, to->hello.name, text);
	return true;
}

void ccm_mesh_reopen(struct ccm *m, struct ccm_agent *from, const struct ccm_agent *to)
{
	if (from->disconnected)
		return;
	ccm_send(m, from, WM_LINK_REOPEN)->u.link_reopen.agent = to->hello.agent;
	from->reopens++;
}

void ccm_mesh_fill(
	const struct ccm *m, const struct ccm_membership *s, uint32_t n, struct wm_ring *r)
{
	const struct ccm_group *g = s->group;
	uint32_t i;

	if (!ccm_mesh_is_wanted(m, g->n_next) || n + g->n_next - 2 > WM_OTHERS_MAX)
		return;
	r->others = cc_must_zalloc(g->n_next - 2, sizeof *r->others);
	for (i = 2; i < g->n_next; i++)
		ccm_agent_endpoint(g->next_ring[(s->next_pos + i) % g->n_next]->agent, s->agent,
			&r->others[r->n_others++]);
}
