/* SPDX-License-Identifier: MIT
 *
 * The mesh: links to all other hosts of a ring, for operations that take another route than the
 * ring. They are opened after the commit of the ring, and no round waits for them. The master is
 * told when all of them are up, and when one of them is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

/* If links of a mesh break more often than this, the mesh is not used before the next ring, and its
 * links are not opened again. Both ends notice most breaks: this agent opens the link again by
 * itself, and once more when the master orders it. */
#define BREAKS_MAX 3u

bool agt_mesh_has(const struct wm_ring *g, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < g->n_others; i++)
		if (cc_id_eq(&g->others[i].agent, peer))
			return true;
	return g->n_others > 0 && cc_id_eq(&g->next.agent, peer);
}

static const struct wm_endpoint *endpoint_of(const struct agt_group *g, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; g->has_ring && i < g->ring.n_others; i++)
		if (cc_id_eq(&g->ring.others[i].agent, peer))
			return &g->ring.others[i];
	return NULL;
}

/* Opens a mesh link, unless there is a link already. A link of a ring has the streams that the ring
 * wants. */
static void want(struct agt *a, struct agt_run *r, const struct agt_group *g,
	const struct wm_endpoint *to, bool reopen)
{
	if (reopen || !agt_link_exists(r, to))
		agt_link_want(a, r, to, g->ring.pool_size, reopen);
}

void agt_mesh_open(struct agt *a, struct agt_run *r)
{
	struct agt_group *g;
	uint32_t i;

	for (g = r->groups; g; g = g->hh.next) {
		g->mesh_up = g->plan_up = false;
		g->mesh_breaks = g->mesh_orders = 0;
		for (i = 0; g->has_ring && i < g->ring.n_others; i++)
			want(a, r, g, &g->ring.others[i], false);
	}
}

/* A link that is up here may be lost at its other end, and was not reopened because it had broken
 * too often. */
static bool is_up(struct agt_run *r, const struct agt_group *g)
{
	uint32_t i;

	if (!g->has_ring || g->ring.n_others == 0 || !agt_link_is_up(r, &g->ring.next.agent))
		return false;
	if (g->mesh_breaks > BREAKS_MAX || g->mesh_orders > BREAKS_MAX)
		return false;
	for (i = 0; i < g->ring.n_others; i++)
		if (!agt_link_is_up(r, &g->ring.others[i].agent))
			return false;
	return true;
}

static bool plan_is_up(struct agt_run *r, const struct agt_group *g)
{
	const struct cc_id *suspect;

	return g->has_ring && g->ring.plan.n > 0 && g->mesh_breaks <= BREAKS_MAX &&
	       g->mesh_orders <= BREAKS_MAX && !agt_plan_broken(r, &g->ring, &suspect);
}

static void look(struct agt_run *r, struct agt_group *g)
{
	g->mesh_up = is_up(r, g);
	g->plan_up = plan_is_up(r, g);
}

static void tell(struct agt *a, struct agt_run *r, struct agt_group *g)
{
	struct wm_mesh *m = &agt_send(a, r, WM_MESH)->u.mesh;

	m->group = g->group;
	m->up = g->mesh_up;
	m->plan_up = g->plan_up;
	m->reopens = r->reopens;
}

/* Reports links from other hosts that are lost at this end. That from the previous host is a link
 * of the ring. */
static void tell_lost(struct agt *a, struct agt_run *r, const struct agt_group *g)
{
	uint32_t i;

	if (agt_link_from_lost(r, &g->ring.next.agent))
		agt_link_tell_lost(a, r, &g->ring.next.agent);
	for (i = 0; i + 1 < g->ring.n_others; i++)
		if (agt_link_from_lost(r, &g->ring.others[i].agent))
			agt_link_tell_lost(a, r, &g->ring.others[i].agent);
}

void agt_mesh_check(struct agt *a, struct agt_run *r)
{
	struct agt_group *g;

	/* During a round the master would take the report for one about the next ring. */
	if (r->state != AGT_RUN_UP || agt_in_round(r))
		return;
	for (g = r->groups; g; g = g->hh.next) {
		bool up = g->mesh_up, plan_up = g->plan_up;

		look(r, g);
		if (up != g->mesh_up || plan_up != g->plan_up)
			tell(a, r, g);
	}
}

void agt_mesh_tell(struct agt *a, struct agt_run *r)
{
	struct agt_group *g;

	for (g = r->groups; g; g = g->hh.next) {
		look(r, g);
		if (!g->has_ring || g->ring.n_others == 0)
			continue;
		tell(a, r, g);
		tell_lost(a, r, g);
	}
}

void agt_mesh_link_down(struct agt *a, struct agt_run *r, const struct cc_id *peer)
{
	struct agt_group *g;

	for (g = r->groups; g; g = g->hh.next) {
		const struct wm_endpoint *to = endpoint_of(g, peer);

		if (to) /* for the master any loss is one of the plan */
			g->plan_up = false;
		if (to && g->mesh_breaks++ < BREAKS_MAX)
			want(a, r, g, to, false);
	}
}

void agt_mesh_link_failed(struct agt *a, const struct agt_link *l)
{
	agt_log(a, AGT_LOG_WARNING,
		"a link to host %s, which is not the next one in the ring, cannot be opened (%s): "
		"operations go along the ring",
		l->endpoint.name, l->text);
}

void agt_mesh_reopen(struct agt *a, struct agt_run *r, const struct cc_id *peer)
{
	bool reopened = false;
	struct agt_group *g;

	r->reopens++;
	for (g = r->groups; g; g = g->hh.next) {
		const struct wm_endpoint *to = endpoint_of(g, peer);

		/* The master counts this mesh as lost until the next report. */
		g->mesh_up = g->plan_up = false;
		if (!to || g->mesh_orders++ >= BREAKS_MAX)
			continue;
		want(a, r, g, to, !reopened);
		reopened = true;
	}
	agt_mesh_check(a, r);
}

struct cc_id *agt_mesh_agents(const struct wm_ring *g)
{
	struct cc_id *v = cc_must_zalloc(g->hosts, sizeof *v);
	uint32_t i;

	v[(g->pos + 1) % g->hosts] = g->next.agent;
	v[(g->pos + g->hosts - 1) % g->hosts] = g->prev;
	for (i = 0; i < g->n_others; i++)
		v[(g->pos + 2 + i) % g->hosts] = g->others[i].agent;
	return v;
}

const char *agt_mesh_broken(
	struct agt_run *r, const struct wm_ring *g, const struct cc_id **suspect)
{
	uint32_t i;

	if (g->n_others + 2 != g->hosts)
		return "this host has no links to all others";
	for (i = 0; i < g->n_others; i++) {
		*suspect = &g->others[i].agent;
		if (!agt_link_is_up(r, *suspect))
			return "the link to another host is down";
		if (agt_link_from_lost(r, *suspect))
			return "the link from another host is down";
	}
	*suspect = NULL;
	return agt_link_from_lost(r, &g->next.agent) ? "the link from the next host is down" : NULL;
}
