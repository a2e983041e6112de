/* SPDX-License-Identifier: MIT
 *
 * Losses: how groups count them, which operations they end, and the views that report them.
 */
#include <stdarg.h>
#include <stdio.h>

#include "ccoip-masterd/core/ccm_sync.h"

void ccm_group_changed(struct ccm *m, struct ccm_group *g)
{
	if (g->lost || m->recovering) /* a recovery sends the views at its end */
		return;
	g->lost = true;
	g->n_lost = 0;
	g->next_lost = m->lost;
	m->lost = g;
}

void ccm_group_lost(struct ccm *m, struct ccm_group *g, const char *text)
{
	bool first = m->recovering ? !g->interrupted : g->n_lost == 0 || !g->lost;

	if (first)
		ccm_print(g->loss, sizeof g->loss, "%s", text);
	if (m->recovering) { /* counted when the group's generation is known */
		g->interrupted = true;
		return;
	}
	ccm_group_changed(m, g);
	g->n_lost++;
	g->generation = ++m->last_generation;
	g->generation_sent = true;
}

void ccm_group_interrupt(struct ccm *m, struct ccm_group *g, const char *fmt, ...)
{
	char text[WM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ccm_group_lost(m, g, text);
	g->halt = !m->recovering;
}

void ccm_view_catch_up(struct ccm *m, struct ccm_agent *a)
{
	struct wm_view *w;

	if (a->list_sent || a->n_accepted == 0)
		return;
	m->view_id++;
	ccm_journal_lost(m); /* the next master must know that this view was sent */
	w = &ccm_send(m, a, WM_VIEW)->u.view;
	ccm_view_totals(m, w);
	ccm_view_own(m, a, w);
}

/* Sends a view to `a`: the view w, which was sent to other agents, if it is right for `a`. w may be
 * NULL. Returns the view that was sent. */
static struct wm_view *view_to(
	struct ccm *m, struct ccm_agent *a, const struct wm_view *totals, struct wm_view *w)
{
	if (w && ccm_view_fits(m, a, w)) {
		ccm_send_to(m, a);
		ccm_lost_named(m, a);
		return w;
	}
	w = &ccm_send(m, a, WM_VIEW)->u.view;
	*w = *totals;
	ccm_view_own(m, a, w);
	return w;
}

/* Keeps the first view with each new generation. Calls that end because of a loss show this view
 * and no later one, even calls that are made and refused after further losses. */
static void keep_at_loss(const struct ccm *m, const struct wm_view *totals)
{
	struct ccm_group *g;

	for (g = m->groups; g; g = g->hh.next) {
		if (g->at_generation_no == g->generation)
			continue;
		g->at_generation_no = g->generation;
		g->at_generation = (struct wire_view){.view_id = totals->view_id,
			.global = totals->global,
			.group = g->n_accepted,
			.groups = totals->groups,
			.largest = totals->largest};
	}
}

void ccm_view_announce(struct ccm *m)
{
	struct wm_view totals, *w = NULL;
	struct ccm_agent *a;

	m->view_id++;
	ccm_revisions_settle(m);
	ccm_journal_lost(m);
	ccm_view_totals(m, &totals);
	keep_at_loss(m, &totals);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			w = view_to(m, a, &totals, w);
}

void ccm_view_tell_group(struct ccm *m, const struct ccm_group *g)
{
	struct wm_view totals, *w = NULL;
	const struct ccm_membership *s;

	ccm_view_totals(m, &totals);
	DL_FOREACH2 (g->memberships, s, next_g)
		if (s->n_accepted > 0)
			w = view_to(m, s->agent, &totals, w);
}

/* Acts on the new view of g, which was sent. */
static void settle_lost(struct ccm *m, struct ccm_group *g)
{
	char text[WM_TEXT_MAX];

	g->lost = false;
	if (g->n_lost == 0) {
		if (g->n_accepted < 2)
			ccm_group_abort(m, g, WIRE_TOO_FEW_PEERS, CCM_ALONE, false);
		ccm_sync_settle(m, g, "");
		ccm_group_recount(m, g);
		return;
	}
	if (g->n_lost > 1)
		ccm_print(text, sizeof text, "%.*s (and %u more)", WM_TEXT_MAX - 32, g->loss,
			g->n_lost - 1);
	else
		ccm_print(text, sizeof text, "%s", g->loss);
	ccm_group_abort(m, g, WIRE_RANK_CONNECTION_LOST, text, g->halt);
	g->halt = false;
	ccm_sync_settle(m, g, text);
	ccm_group_recount(m, g); /* all peers that are left may have voted for a synchronization */
}

void ccm_loss_announce(struct ccm *m)
{
	struct ccm_group *g, *next;

	/* Settling a group may kick other peers. Then the view is sent again. */
	while (m->lost) {
		ccm_view_announce(m);
		g = m->lost;
		m->lost = NULL;
		for (; g; g = next) {
			next = g->next_lost;
			settle_lost(m, g);
		}
	}
}
