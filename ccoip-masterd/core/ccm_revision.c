/* SPDX-License-Identifier: MIT
 *
 * The revision of shared state that each group expects next. It is also kept for groups without
 * members, because a peer that comes to such a group later must not begin again. But the run of a
 * group is over when its last member has left by itself and the group has lost no member since its
 * last synchronization. Then its next run begins at revision 0. After a loss, nobody can tell such
 * an end from a failure that made the other members give up.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_sync.h"

struct ccm_revision *ccm_revision_find(const struct ccm *m, uint32_t group)
{
	struct ccm_revision *r;

	HASH_FIND(hh, m->revisions, &group, sizeof group, r);
	return r;
}

static struct ccm_group *group_of(const struct ccm *m, uint32_t group)
{
	struct ccm_group *g;

	HASH_FIND(hh, m->groups, &group, sizeof group, g);
	return g;
}

static void drop(struct ccm *m, struct ccm_revision *r)
{
	struct ccm_group *g = group_of(m, r->group);

	if (g)
		g->last = NULL;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->revisions, r);
	free(r);
}

/* Makes room for one group, because anybody can make groups: forgets the group without members that
 * was synchronized longest ago. */
static void make_room(struct ccm *m)
{
	struct ccm_revision *r, *tmp;

	if (HASH_COUNT(m->revisions) < WJ_GROUPS_MAX)
		return;
	HASH_ITER (hh, m->revisions, r, tmp) {
		if (group_of(m, r->group))
			continue;
		drop(m, r);
		return;
	}
}

static void add(struct ccm *m, struct ccm_revision *r)
{
	struct ccm_group *g = group_of(m, r->group);

	HASH_ADD(hh, m->revisions, group, sizeof r->group, r);
	if (g)
		g->last = r;
}

/* Sets the revision that a group expects, and moves the group to the end of the list. */
static void set(struct ccm *m, uint32_t group, uint64_t expected, uint64_t view_id)
{
	struct ccm_revision *r = ccm_revision_find(m, group);

	if (r) {
		HASH_DELETE(hh, m->revisions, r);
	} else {
		make_room(m);
		r = cc_must_zalloc(1, sizeof *r);
		r->group = group;
	}
	r->expected = expected;
	r->view_id = view_id;
	add(m, r);
}

void ccm_revision_raise(struct ccm *m, uint32_t group, uint64_t expected)
{
	const struct ccm_revision *r = ccm_revision_find(m, group);

	if (expected > 0 && (!r || r->expected < expected))
		set(m, group, expected, m->view_id);
}

void ccm_revision_forget(struct ccm *m, struct ccm_group *g)
{
	if (g->last)
		drop(m, g->last);
}

void ccm_revision_left(struct ccm *m, struct ccm_group *g, bool left)
{
	struct ccm_revision *r = g->last;

	if (!r)
		return;
	m->resave |= !left && !r->lost;
	r->lost |= !left;
	r->over = left && g->n_accepted == 0;
	m->resave |= r->over;
}

void ccm_revisions_settle(struct ccm *m)
{
	struct ccm_revision *r, *tmp;
	struct ccm_group *g;

	if (!m->resave)
		return;
	HASH_ITER (hh, m->revisions, r, tmp) {
		g = group_of(m, r->group);
		if (r->expected == 0) {
			drop(m, r);
		} else if (r->over && !r->lost && (!g || g->n_accepted == 0)) {
			ccm_log(m, CCM_LOG_NOTICE,
				"the run of group %u is over: all its members have left; its next "
				"run begins at revision 0",
				r->group);
			drop(m, r);
		} else {
			r->over = false;
		}
	}
}

void ccm_revisions_learn(struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_snapshot *t = a->snapshot;
	const struct wm_view *w = &t->r.view;
	const struct ccm_revision *r;
	uint32_t i;

	if (a->hello.newcomers || (m->restored && w->view_id <= m->restored_view_id))
		return;
	for (i = 0; i < w->n; i++) {
		const struct wm_group_view *x = &w->own[i];

		r = ccm_revision_find(m, x->group);
		if (r && (w->view_id < r->view_id ||
				 (w->view_id == r->view_id && x->revision <= r->expected)))
			continue;
		set(m, x->group, x->revision, w->view_id);
		m->resave |= x->revision == 0; /* revision 0 is forgotten when the run continues */
	}
}

void ccm_revisions_add(struct ccm *m, const struct ccm_agent *a, const struct wm_view *w)
{
	const struct ccm_membership *s;
	uint32_t i;

	for (i = 0; i < w->n; i++) {
		s = ccm_membership_of(m, a, w->own[i].group);
		if (!s || s->n_accepted == 0 || s->group->last ||
			(s->group->sync && s->group->sync->seq))
			continue;
		ccm_revision_raise(m, w->own[i].group, w->own[i].revision);
		m->resave |= s->group->last != NULL;
	}
}

struct wj_revision *ccm_revision_list(const struct ccm *m, uint32_t *n)
{
	struct wj_revision *v = cc_must_zalloc(HASH_COUNT(m->revisions), sizeof *v);
	struct ccm_revision *r, *tmp;

	*n = 0;
	HASH_ITER (hh, m->revisions, r, tmp) {
		if (*n == WJ_GROUPS_MAX)
			break;
		v[(*n)++] = (struct wj_revision){r->group, r->expected, r->lost};
	}
	return v;
}

void ccm_revisions_free(struct ccm *m)
{
	struct ccm_revision *r, *tmp;

	HASH_ITER (hh, m->revisions, r, tmp)
		drop(m, r);
}
