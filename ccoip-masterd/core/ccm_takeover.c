/* SPDX-License-Identifier: MIT
 *
 * The end of a recovery: decides from the snapshots where the run stands. If only the master has
 * died, no peer sees an error.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

uint64_t ccm_unheard(const struct ccm *m)
{
	return CCM_UNHEARD * (1 + (cc_hash(&m->born_run, sizeof m->born_run) & 0xffff));
}

void ccm_at_least(uint64_t *v, uint64_t to)
{
	if (to > *v && to < CCM_NUMBER_MAX)
		*v = to;
}

/* ---- the highest numbers ---- */

static void take_at_loss(struct ccm_group *g, const struct wm_group_view *own)
{
	if (own->at_generation.view_id == 0 || own->generation <= g->at_generation_no)
		return;
	g->at_generation_no = own->generation;
	g->at_generation = own->at_generation;
}

static void take_views(struct ccm *m, struct ccm_agent *a)
{
	const struct wm_resume *r = &a->snapshot->r;
	struct ccm_membership *s;
	uint32_t i;

	for (i = 0; i < r->view.n; i++) {
		ccm_at_least(&m->last_generation, r->view.own[i].generation);
		s = ccm_membership_of(m, a, r->view.own[i].group);
		if (!s)
			continue;
		take_at_loss(s->group, &r->view.own[i]);
		ccm_at_least(&s->group->generation, r->view.own[i].generation);
		if (r->view.view_id < s->group->known_view_id)
			continue;
		s->group->known_view_id = r->view.view_id;
		s->group->known_world_size = r->view.own[i].world_size;
	}
}

void ccm_snapshot_learn(struct ccm *m, struct ccm_agent *a)
{
	const struct wm_resume *r = &a->snapshot->r;

	ccm_at_least(&m->epoch, r->epoch);
	ccm_at_least(&m->committed, r->round);
	ccm_at_least(&m->ring_epoch, r->ring_epoch);
	ccm_at_least(&m->last_round, r->round);
	ccm_at_least(&m->last_round, r->prepared);
	ccm_at_least(&m->last_seq, r->last_seq);
	ccm_at_least(&m->view_id, r->view.view_id);
	ccm_ballot_raise(m, r->ballots);
	take_views(m, a);
	ccm_lost_learn(m, &r->view);
	ccm_revisions_learn(m, a);
	ccm_outcomes_learn(m, r);
}

static void take_votes(struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_raw *x;
	const struct ccm_ask *q;

	DL_FOREACH (a->snapshot->ops, x) {
		ccm_at_least(&m->last_seq, x->vote.seq);
		ccm_at_least(&m->last_generation, x->vote.generation);
	}
	for (q = a->snapshot->asks; q; q = q->next)
		ccm_seqs_learn(m, &q->q);
}

static void take_all(struct ccm *m)
{
	struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next)
		if (a->snapshot)
			take_votes(m, a);
	if (!m->restored)
		ccm_at_least(&m->last_generation, m->cfg.first_number);
	if (!m->restored && m->epoch == 0) { /* no agent knows the run */
		ccm_at_least(&m->last_seq, m->cfg.first_number);
		ccm_at_least(&m->last_round, m->cfg.first_number);
		ccm_at_least(&m->epoch, m->cfg.first_number);
	}
}

/* ---- members ---- */

/* Accepts the newcomers of `a`, because the round that it had prepared was committed. The agent
 * does not know of the commit. */
static void promote(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_peer *p, *next;
	struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a) {
		DL_FOREACH_SAFE (s->peers, p, next) {
			if (!p->prepared)
				continue;
			p->prepared = false;
			ccm_peer_accept(m, p);
		}
	}
	a->promoted = true;
}

static void settle_members(struct ccm *m)
{
	struct ccm_agent *a, *next;
	char text[WM_TEXT_MAX];
	struct ccm_group *g;
	struct ccm_peer *p;

	ccm_lost_before_drop(m);
	ccm_outcomes_settle(m);
	for (p = m->peers; p; p = p->hh.next)
		ccm_ballot_raise(m, p->ballots);
	for (a = m->agents; a; a = a->hh.next) {
		if (a->snapshot && a->snapshot->complete && a->snapshot->r.prepared &&
			a->snapshot->r.prepared == m->ring_epoch &&
			a->snapshot->r.ring_epoch < m->ring_epoch && !ccm_prepared_lost(m, a))
			promote(m, a);
	}
	DL_FOREACH_SAFE2 (m->disconnected, a, next, next_ab)
		if (a->restored)
			ccm_agent_lost(
				m, a, "it did not come back when the master took its run over");
	for (g = m->groups; g; g = g->hh.next) {
		if (g->interrupted) {
			ccm_print(text, sizeof text, "%s", g->loss);
			ccm_group_interrupt(m, g, "%s", text);
		}
		g->interrupted = false;
		m->changed |= ccm_group_has_lost(g);
		if (g->known_view_id == 0 && g->n_accepted > 0)
			g->generation =
				++m->last_generation; /* higher than its peers' generation */
	}
}

/* ---- rings ---- */

static const struct wm_ring_position *position_of(const struct ccm_membership *s)
{
	const struct ccm_agent *a = s->agent;
	uint32_t i;

	if (!a->snapshot || !a->snapshot->complete || a->promoted)
		return NULL;
	for (i = 0; i < a->snapshot->r.n_positions; i++)
		if (a->snapshot->r.positions[i].group == s->group->id)
			return &a->snapshot->r.positions[i];
	return NULL;
}

/* Puts the memberships at the positions that their agents report, if these make a ring. */
static void rebuild_ring(struct ccm_group *g)
{
	const struct wm_ring_position *x, *plan;
	struct ccm_membership *s, **v;
	uint32_t n = 0, i;

	DL_FOREACH2 (g->memberships, s, next_g)
		n += s->n_accepted > 0 && !s->agent->disconnected;
	v = ccm_memberships_new(n);
	DL_FOREACH2 (g->memberships, s, next_g) {
		if (s->n_accepted == 0 || s->agent->disconnected)
			continue;
		x = position_of(s);
		if (!x || x->hosts != n || x->pos >= n || v[x->pos]) {
			free(v);
			return;
		}
		v[x->pos] = s;
	}
	free(g->ring);
	g->ring = v;
	g->n_ring = n;
	plan = n > 0 ? position_of(v[0]) : NULL;
	if (plan)
		ccm_plan_restore(g, &plan->plan);
	for (i = n; i-- > 0;) {
		v[i]->in_ring = true;
		v[i]->pos = i;
		DL_DELETE2(g->memberships, v[i], prev_g, next_g);
		DL_PREPEND2(g->memberships, v[i], prev_g, next_g);
	}
}

/* Restores the previous rings where they are known. A round prepares them again nevertheless: links
 * may have failed meanwhile, and peers that are not in the rings yet wait for a commit. */
static void rebuild_rings(struct ccm *m)
{
	struct ccm_group *g;
	struct ccm_membership *s;

	for (g = m->groups; g; g = g->hh.next) {
		DL_FOREACH2 (g->memberships, s, next_g)
			s->in_ring = false;
		g->n_ring = 0;
		rebuild_ring(g);
	}
	m->rewire = m->n_accepted > 0;
}

/* ---- commits to agents that missed one ---- */

static void tell_promoted(struct ccm *m)
{
	struct wm_view totals;
	struct wm_commit *c;
	struct ccm_agent *a;

	ccm_view_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next) {
		if (!a->promoted)
			continue;
		a->promoted = false;
		c = ccm_commit_new(m, a, &totals);
		c->round = a->snapshot->r.prepared;
	}
}

/* ---- messages that have waited ---- */

/* Counts the votes of p. Returns p, or NULL if p was kicked. */
static struct ccm_peer *count_votes(struct ccm *m, struct ccm_peer *p)
{
	struct wm_ballot_vote v = {.peer = p->id};
	uint32_t k;

	for (k = 0; p && k < WIRE_BALLOTS; k++) {
		if (!p->raw_votes[k].is)
			continue;
		p->raw_votes[k].is = false;
		v.kind = (enum wire_ballot)k;
		v.number = p->raw_votes[k].number;
		ccm_ballot_vote(m, p->membership->agent, &v);
		p = ccm_peer_find(m, &v.peer);
	}
	return p;
}

static void peer_votes(struct ccm *m)
{
	struct ccm_peer *p, *tmp;

	HASH_ITER (hh, m->peers, p, tmp) {
		p = count_votes(m, p);
		if (p && p->raw_waits_for.kind != WM_WAIT_FOR_NONE) {
			ccm_peer_waits_for(m, p->membership->agent, &p->raw_waits_for);
			p->raw_waits_for.kind = WM_WAIT_FOR_NONE;
		}
	}
}

static void lost_links(struct ccm *m)
{
	const struct ccm_lost_link *x;
	struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next)
		for (x = a->snapshot ? a->snapshot->links : NULL; x; x = x->next)
			ccm_link_lost(m, a, &x->l);
	ccm_loss_announce(m);
}

static void later_votes(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_raw *x, *next;
	struct ccm_ask *q;

	if (!a->snapshot)
		return;
	DL_FOREACH_SAFE (a->snapshot->ops, x, next) {
		if (a->dead)
			return;
		if (x->vote.seq == 0 && !x->used)
			ccm_op_vote(m, a, &x->vote);
	}
	for (q = a->snapshot->asks; q && !a->dead; q = q->next)
		ccm_op_query(m, a, &q->q);
}

void ccm_takeover(struct ccm *m)
{
	struct ccm_agent *a, *tmp;

	m->recovering = false;
	m->recovered = true;
	take_all(m);
	/* The last master may have used numbers that no agent here knows. */
	ccm_at_least(&m->view_id, m->term << CCM_VIEW_SHIFT);
	m->last_seq += ccm_unheard(m);
	m->last_round += ccm_unheard(m);
	settle_members(m);
	if (m->n_accepted == 0)
		ccm_ballots_skip(m);
	ccm_takeover_op_judge(m);
	rebuild_rings(m);
	m->view_id++;
	ccm_lost_restart(m);
	ccm_revisions_settle(m);
	ccm_journal_members(m);
	tell_promoted(m);
	if (!m->lost)
		ccm_view_announce(m);
	ccm_loss_announce(m);
	ccm_takeover_op_resolve(m);
	lost_links(m);
	m->epoch += ccm_unheard(m);
	HASH_ITER (hh, m->agents, a, tmp)
		later_votes(m, a);
	peer_votes(m);
	for (a = m->agents; a; a = a->hh.next)
		ccm_snapshot_free(a);
	ccm_log(m, CCM_LOG_NOTICE,
		"recovered: %u peers of %u agents, epoch %" PRIu64 ", term %" PRIu64,
		m->n_accepted - m->n_disconnected, HASH_COUNT(m->agents), m->epoch, m->term);
}
