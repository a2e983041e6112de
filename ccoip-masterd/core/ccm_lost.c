/* SPDX-License-Identifier: MIT
 *
 * The peers that the run has lost. Views name them to the agents. The agents hand their lists to
 * the next master, which finds in them which of the peers that come back are no members any more.
 */
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* ---- the list ---- */

void ccm_lost_add(struct ccm *m, const struct cc_id *peer)
{
	struct ccm_losses *x = &m->losses;
	uint32_t i = x->n % WM_LOST_MAX;

	if (x->n >= WM_LOST_MAX)
		x->floor = x->view_ids[i];
	x->peers[i] = *peer;
	x->view_ids[i] = m->view_id + 1; /* the next view names it */
	x->n++;
}

void ccm_lost_name(struct ccm *m, struct ccm_agent *a, struct wm_view *w)
{
	struct ccm_losses *x = &m->losses;
	uint64_t first = x->n > WM_LOST_MAX ? x->n - WM_LOST_MAX : 0, from = a->lost_named;

	x->named = a->lost_named;
	w->lost_all = !a->list_sent || from < first;
	if (w->lost_all) {
		from = first;
		w->lost_floor = x->floor;
	}
	w->lost = cc_must_zalloc((size_t)(x->n - from), sizeof *w->lost);
	for (; from < x->n; from++)
		w->lost[w->n_lost++] = x->peers[from % WM_LOST_MAX];
	ccm_lost_named(m, a);
}

void ccm_lost_named(const struct ccm *m, struct ccm_agent *a)
{
	a->lost_named = m->losses.n;
	a->list_sent = true;
}

bool ccm_lost_named_alike(const struct ccm *m, const struct ccm_agent *a, const struct wm_view *w)
{
	return a->list_sent == !w->lost_all && a->lost_named == m->losses.named;
}

void ccm_lost_restart(struct ccm *m)
{
	struct ccm_agent *a;

	m->losses = (struct ccm_losses){.floor = m->view_id};
	for (a = m->agents; a; a = a->hh.next) {
		a->lost_named = 0;
		a->list_sent = false;
	}
}

void ccm_lost_learn(struct ccm *m, const struct wm_view *w)
{
	uint32_t i;

	for (i = 0; i < w->n_lost; i++)
		ccm_gone_add(m, &w->lost[i]);
}

/* ---- members, according to the last master ---- */

static bool is_gone(const struct ccm *m, const struct ccm_peer *p)
{
	struct ccm_lost *gone;

	HASH_FIND(hh, m->gone, &p->id, sizeof p->id, gone);
	return gone != NULL;
}

/* A peer whose last view is older than the list may be missing in the list. A peer with a newer
 * view than every agent knows of a change that nobody else knows, so the run continues without it.
 */
static bool was_lost(const struct ccm *m, const struct ccm_peer *p)
{
	const struct ccm_newest *x = ccm_newest_view(m);

	if (p->phase != CCM_PEER_ACCEPTED)
		return false;
	if (p->view_id > (x->view_id > m->restored_view_id ? x->view_id : m->restored_view_id))
		return true;
	if (m->restored) /* the journal names the members, unless an agent knows a later view */
		return p->believed && p->view_id <= m->restored_view_id;
	return is_gone(m, p) || p->view_id < x->lost_floor;
}

uint32_t ccm_lost_count(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH (s->peers, p)
			n += was_lost(m, p);
	return n;
}

bool ccm_prepared_lost(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH (s->peers, p)
			if (p->prepared && is_gone(m, p))
				return true;
	return false;
}

/* ---- losses that are already known ---- */

/* Does g have as many members as its latest known view says? */
static bool is_as_told(const struct ccm_group *g)
{
	return g->known_view_id > 0 && g->n_accepted == g->known_world_size;
}

/* Counts the losses of removed peers, unless the members know of them already. Then operations that
 * began since can continue. */
static void count_lost_before(struct ccm *m)
{
	char text[WM_TEXT_MAX];
	struct ccm_group *g;
	uint32_t n;

	for (g = m->groups; g; g = g->hh.next) {
		n = g->n_lost_before;
		g->n_lost_before = 0;
		if (n > 0 && is_as_told(g)) {
			g->n_lost_ever -= n;
			continue;
		}
		ccm_print(text, sizeof text, "%s", g->loss);
		while (n-- > 0)
			ccm_group_lost(m, g, text);
	}
}

void ccm_lost_before_drop(struct ccm *m)
{
	static const char *const why = CCM_WAS_LOST;
	struct ccm_peer *p, *tmp;

	m->lost_before = true;
	HASH_ITER (hh, m->peers, p, tmp) {
		if (!was_lost(m, p))
			continue;
		if (p->membership->agent->disconnected)
			ccm_disconnected_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", why);
	}
	m->lost_before = false;
	count_lost_before(m);
}
