/* SPDX-License-Identifier: MIT
 *
 * Topology and pending votes, and the world sizes that go with commits and losses.
 */
#include "ccoip-masterd/core/ccm_sync.h"

/* Raises the ballot number, and ends the topology votes that were counted, because their ballot is
 * over. */
static void topo_raise(struct ccm *m, uint64_t ballot)
{
	struct wm_commit *c = NULL;
	struct wm_view totals;
	struct ccm_agent *a;

	m->topo_ballot = ballot;
	if (m->n_topo == 0)
		return;
	ccm_view_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			c = ccm_commit_to(m, a, &totals, true, c);
	ccm_votes_clear(m);
}

static void fill_answer(const struct ccm *m, struct wm_pending_answer *x)
{
	x->ballot = m->pending_ballot;
}

static void pending_clear(struct ccm *m)
{
	struct ccm_agent *a;
	struct ccm_peer *p;

	fill_answer(m, &ccm_send_all(m, WM_PENDING_ANSWER)->u.pending_answer);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			ccm_send_to(m, a);
	for (p = m->peers; p; p = p->hh.next)
		if (p->pending_voted) {
			p->pending_voted = false;
			p->acted_ns = m->now;
			p->n_alone = 0;
		}
	m->n_pending = 0;
}

static void pending_raise(struct ccm *m, uint64_t ballot)
{
	m->pending_ballot = ballot;
	pending_clear(m);
}

/* May a ballot number be higher than ours? The agents that could have reported it may have died
 * with the last master. */
static bool may_raise(const struct ccm *m, uint64_t ballot)
{
	return m->recovered && ballot < CCM_NUMBER_MAX;
}

/* Has the same ballot ended with another answer here? Nobody may continue with both answers. */
static bool answered_otherwise(const struct ccm *m, uint64_t ballot)
{
	return ballot != m->pending_ballot &&
	       wire_pending_votes(ballot) == wire_pending_votes(m->pending_ballot);
}

void ccm_vote_topology(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a topology vote");
	struct wm_view totals;

	if (!p)
		return;
	if (p->phase != CCM_PEER_ACCEPTED) {
		ccm_peer_violation(m, p, "it voted on the topology before it was accepted");
	} else if (v->ballot < m->topo_ballot) {
		ccm_view_totals(m, &totals);
		(void)ccm_commit_new(m, a, &totals);
	} else if (v->ballot > m->topo_ballot && !may_raise(m, v->ballot)) {
		ccm_peer_violation(m, p, "it voted on the topology with a wrong ballot number");
	} else if (p->topo_voted) {
		ccm_peer_violation(m, p, "it voted on the topology twice");
	} else if (p->n_ops > 0) {
		ccm_peer_violation(
			m, p, "it voted on the topology with %u operations outstanding", p->n_ops);
	} else {
		if (v->ballot > m->topo_ballot)
			topo_raise(m, v->ballot);
		ccm_flaps_vote(a, true, v->ballot);
		p->topo_voted = true;
		p->membership->group->n_topo++;
		if (m->n_topo++ == 0)
			m->topo_since = m->now;
		m->stuck_news = true;
		ccm_peer_refresh(m, p);
	}
}

bool ccm_topology_agreed(const struct ccm *m)
{
	if (m->n_accepted == 0)
		return ccm_newcomers_ready(m) > 0;
	return m->n_topo == m->n_accepted;
}

void ccm_vote_learn(struct ccm *m, uint64_t topo, uint64_t pending)
{
	if (m->recovering) { /* no vote is counted yet */
		if (topo > m->topo_ballot && topo < CCM_NUMBER_MAX)
			m->topo_ballot = topo;
		if (pending > m->pending_ballot && pending < CCM_NUMBER_MAX)
			m->pending_ballot = pending;
		return;
	}
	if (topo > m->topo_ballot && may_raise(m, topo))
		topo_raise(m, topo);
	if (pending > m->pending_ballot && may_raise(m, pending) && !answered_otherwise(m, pending))
		pending_raise(m, pending);
}

void ccm_vote_pending(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a pending vote");

	if (!p)
		return;
	if (p->phase != CCM_PEER_ACCEPTED) {
		ccm_peer_violation(m, p, "it asked for pending peers before it was accepted");
	} else if (answered_otherwise(m, v->ballot)) {
		ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_ANSWERED_OTHERWISE);
	} else if (v->ballot < m->pending_ballot) {
		fill_answer(m, &ccm_send(m, a, WM_PENDING_ANSWER)->u.pending_answer);
	} else if (v->ballot > m->pending_ballot && !may_raise(m, v->ballot)) {
		ccm_peer_violation(m, p, "it asked for pending peers with a wrong ballot number");
	} else if (p->pending_voted) {
		ccm_peer_violation(m, p, "it asked for pending peers twice");
	} else {
		if (v->ballot > m->pending_ballot)
			pending_raise(m, v->ballot);
		ccm_flaps_vote(a, false, v->ballot);
		p->pending_voted = true;
		p->acted_ns = m->now;
		m->stuck_news = true;
		if (m->n_pending++ == 0)
			m->pending_since = m->now;
	}
}

void ccm_pending_settle(struct ccm *m)
{
	if (m->n_pending == 0 || m->n_pending < m->n_accepted)
		return;
	/* The answer waits for a commit that gives all agents the same view: an agent that has come
	 * back may not know of a loss. */
	if (m->rewire || m->round.active || ccm_round_waits(m))
		return;
	m->pending_ballot = wire_pending_next(m->pending_ballot, ccm_newcomers_ready(m) > 0);
	pending_clear(m);
}

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

void ccm_view_own(struct ccm *m, const struct ccm_agent *a, struct wm_view *w)
{
	struct ccm_membership *s;

	w->n = 0;
	w->own = ccm_calloc(m, a->n_memberships, sizeof *w->own);
	if (!w->own)
		return;
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
}

bool ccm_view_fits(const struct ccm_agent *a, const struct wm_view *w)
{
	const struct ccm_membership *s;
	uint32_t i = 0;

	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_accepted == 0)
			continue;
		if (i == w->n || w->own[i].group != s->group->id)
			return false;
		i++;
	}
	return i == w->n;
}
