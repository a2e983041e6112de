/* SPDX-License-Identifier: MIT
 *
 * Topology and pending votes, and the world sizes that go with commits and losses.
 */
#include "ccoip-masterd/core/ccm_sync.h"

/* The votes that were counted are of a turn that is over. */
static void topo_raise(struct ccm *m, uint64_t turn)
{
	struct wm_commit *c = NULL;
	struct wm_world totals;
	struct ccm_agent *a;

	m->topo_turn = turn;
	if (m->n_topo == 0)
		return;
	ccm_world_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			c = ccm_commit_to(m, a, &totals, true, c);
	ccm_votes_clear(m);
}

static void fill_answer(const struct ccm *m, struct wm_pending_answer *x)
{
	x->turn = m->pending_turn;
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

static void pending_raise(struct ccm *m, uint64_t turn)
{
	m->pending_turn = turn;
	pending_clear(m);
}

/* A turn that we do not know of: the last master may have died with all that we could have heard of
 * it from. */
static bool may_raise(const struct ccm *m, uint64_t turn)
{
	return m->recovered && turn < CCM_NUMBER_MAX;
}

/* As many votes, the last one with another answer: nobody may go on with both. */
static bool answered_otherwise(const struct ccm *m, uint64_t turn)
{
	return turn != m->pending_turn &&
	       wire_pending_votes(turn) == wire_pending_votes(m->pending_turn);
}

void ccm_vote_topology(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a topology vote");
	struct wm_world totals;

	if (!p)
		return;
	if (p->phase != CCM_PEER_ACCEPTED) {
		ccm_peer_violation(m, p, "it voted on the topology before it was accepted");
	} else if (v->turn < m->topo_turn) {
		ccm_world_totals(m, &totals);
		(void)ccm_commit_new(m, a, &totals);
	} else if (v->turn > m->topo_turn && !may_raise(m, v->turn)) {
		ccm_peer_violation(m, p, "it voted on the topology with a wrong ballot number");
	} else if (p->topo_voted) {
		ccm_peer_violation(m, p, "it voted on the topology twice");
	} else if (p->n_ops > 0) {
		ccm_peer_violation(
			m, p, "it voted on the topology with %u operations outstanding", p->n_ops);
	} else {
		if (v->turn > m->topo_turn)
			topo_raise(m, v->turn);
		ccm_flaps_vote(a, true, v->turn);
		p->topo_voted = true;
		p->seat->group->n_topo++;
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
		if (topo > m->topo_turn && topo < CCM_NUMBER_MAX)
			m->topo_turn = topo;
		if (pending > m->pending_turn && pending < CCM_NUMBER_MAX)
			m->pending_turn = pending;
		return;
	}
	if (topo > m->topo_turn && may_raise(m, topo))
		topo_raise(m, topo);
	if (pending > m->pending_turn && may_raise(m, pending) && !answered_otherwise(m, pending))
		pending_raise(m, pending);
}

void ccm_vote_pending(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a pending vote");

	if (!p)
		return;
	if (p->phase != CCM_PEER_ACCEPTED) {
		ccm_peer_violation(m, p, "it asked for pending peers before it was accepted");
	} else if (answered_otherwise(m, v->turn)) {
		ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_ANSWERED_OTHERWISE);
	} else if (v->turn < m->pending_turn) {
		fill_answer(m, &ccm_send(m, a, WM_PENDING_ANSWER)->u.pending_answer);
	} else if (v->turn > m->pending_turn && !may_raise(m, v->turn)) {
		ccm_peer_violation(m, p, "it asked for pending peers with a wrong ballot number");
	} else if (p->pending_voted) {
		ccm_peer_violation(m, p, "it asked for pending peers twice");
	} else {
		if (v->turn > m->pending_turn)
			pending_raise(m, v->turn);
		ccm_flaps_vote(a, false, v->turn);
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
	/* All hear of the same world first: an agent that comes back may not know of a loss. */
	if (m->rewire || m->round.active || ccm_round_waits(m))
		return;
	m->pending_turn = wire_pending_next(m->pending_turn, ccm_newcomers_ready(m) > 0);
	pending_clear(m);
}

void ccm_world_totals(const struct ccm *m, struct wm_world *ret)
{
	struct ccm_group *g;

	*ret = (struct wm_world){.global = m->n_accepted, .version = m->world_version};
	for (g = m->groups; g; g = g->hh.next) {
		if (g->n_accepted == 0)
			continue;
		ret->groups++;
		if (g->n_accepted > ret->largest)
			ret->largest = g->n_accepted;
	}
}

void ccm_world_own(struct ccm *m, const struct ccm_agent *a, struct wm_world *w)
{
	struct ccm_seat *s;

	w->n = 0;
	w->own = ccm_calloc(m, a->n_seats, sizeof *w->own);
	if (!w->own)
		return;
	DL_FOREACH2 (a->seats, s, next_a) {
		const struct ccm_group *g = s->group;
		struct wm_group_world *x = &w->own[w->n];

		if (s->n_accepted == 0)
			continue;
		x->group = g->id;
		x->world = g->n_accepted;
		x->losses = g->losses;
		x->revision = ccm_revision_of(g);
		memcpy(x->loss, g->loss, sizeof x->loss);
		if (g->at_losses == g->losses && g->at_loss.version != w->version)
			x->at_loss = g->at_loss;
		w->n++;
	}
}

bool ccm_world_fits(const struct ccm_agent *a, const struct wm_world *w)
{
	const struct ccm_seat *s;
	uint32_t i = 0;

	DL_FOREACH2 (a->seats, s, next_a) {
		if (s->n_accepted == 0)
			continue;
		if (i == w->n || w->own[i].group != s->group->id)
			return false;
		i++;
	}
	return i == w->n;
}
