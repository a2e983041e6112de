/* SPDX-License-Identifier: MIT
 *
 * The world sizes that go with commits and losses.
 */
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

void ccm_view_totals(const struct ccm *m, struct wm_view *ret)
{
	struct ccm_group *g;

	*ret = (struct wm_view){.global = m->n_accepted, .view_id = m->view_id};
	for (g = m->groups; g; g = g->hh.next) {
		if (g->n_accepted == 0)
			continue;
		ret->groups++;
		if (g->n_accepted > ret->largest)
			ret->largest = g->n_accepted;
	}
}

void ccm_view_own(struct ccm *m, struct ccm_agent *a, struct wm_view *w)
{
	struct ccm_membership *s;

	w->n = 0;
	w->own = cc_must_zalloc(a->n_memberships, sizeof *w->own);
	DL_FOREACH2 (a->memberships, s, next_a) {
		const struct ccm_group *g = s->group;
		struct wm_group_view *x = &w->own[w->n];

		if (s->n_accepted == 0)
			continue;
		x->group = g->id;
		x->world_size = g->n_accepted;
		x->generation = g->generation;
		x->revision = ccm_revision_of(g);
		memcpy(x->loss, g->loss, sizeof x->loss);
		if (g->at_generation_no == g->generation && g->at_generation.view_id != w->view_id)
			x->at_generation = g->at_generation;
		w->n++;
	}
	ccm_lost_name(m, a, w);
}

bool ccm_view_fits(const struct ccm *m, const struct ccm_agent *a, const struct wm_view *w)
{
	const struct ccm_membership *s;
	uint32_t i = 0;

	if (!ccm_lost_named_alike(m, a, w))
		return false;
	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_accepted == 0)
			continue;
		if (i == w->n || w->own[i].group != s->group->id)
			return false;
		i++;
	}
	return i == w->n;
}
