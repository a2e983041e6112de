/* SPDX-License-Identifier: MIT
 *
 * Plans: several weighted rings of one group, over which the master divides large operations. Their
 * links are links of the mesh. But a round waits for them, and they are enough for operations that
 * follow the plan: other links of the mesh may be down.
 */
#include "pcclagentd/core/agt_internal.h"
#include "proto/wire_plan.h"

/* Returns the position that comes `step` hosts after this host in ring i of the plan. */
static uint32_t after(const struct wm_ring *g, uint32_t i, uint32_t step)
{
	const uint16_t *order = g->plan.order + (size_t)i * g->hosts;
	uint32_t at = 0;

	while (order[at] != g->pos)
		at++;
	return order[(at + step) % g->hosts];
}

static uint32_t next_pos(const struct wm_ring *g, uint32_t i)
{
	return after(g, i, 1);
}

static uint32_t prev_pos(const struct wm_ring *g, uint32_t i)
{
	return after(g, i, g->hosts - 1);
}

static const struct wm_endpoint *endpoint_at(const struct wm_ring *g, uint32_t pos)
{
	uint32_t distance = (pos + g->hosts - g->pos) % g->hosts;

	return distance == 1 ? &g->next : &g->others[distance - 2];
}

const struct wm_endpoint *agt_plan_next(const struct wm_ring *g, uint32_t i)
{
	return endpoint_at(g, next_pos(g, i));
}

const struct cc_id *agt_plan_prev(const struct wm_ring *g, uint32_t i)
{
	return &endpoint_at(g, prev_pos(g, i))->agent;
}

struct cc_id *agt_plan_agents(const struct wm_ring *g, bool inbound)
{
	struct cc_id *v = cc_must_zalloc(g->plan.n, sizeof *v);
	uint32_t i;

	for (i = 0; i < g->plan.n; i++)
		v[i] = inbound ? *agt_plan_prev(g, i) : agt_plan_next(g, i)->agent;
	return v;
}

bool agt_plan_has(const struct wm_ring *g, const struct cc_id *peer, bool inbound)
{
	uint32_t i;

	for (i = 0; i < g->plan.n; i++)
		if (cc_id_eq(inbound ? agt_plan_prev(g, i) : &agt_plan_next(g, i)->agent, peer))
			return true;
	return false;
}

const char *agt_plan_broken(
	struct agt_run *r, const struct wm_ring *g, const struct cc_id **suspect)
{
	uint32_t i;

	if (g->plan.n == 0)
		return "this host has no plan of several rings";
	for (i = 0; i < g->plan.n; i++) {
		*suspect = &agt_plan_next(g, i)->agent;
		if (!agt_link_is_up(r, *suspect))
			return "the link to the next host of a ring is down";
		*suspect = agt_plan_prev(g, i);
		if (agt_link_from_lost(r, *suspect))
			return "the link from the previous host of a ring is down";
	}
	*suspect = NULL;
	return NULL;
}

struct cc_rings *agt_plan_rings(const struct wm_ring *g)
{
	struct cc_rings *rings = cc_must_zalloc(1, sizeof *rings);

	(void)wm_plan_rings(&g->plan, g->hosts, rings); /* the decoder has checked it */
	return rings;
}
