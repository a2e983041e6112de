/* SPDX-License-Identifier: MIT
 *
 * Who was lost by the master before, and has not heard of it: the run has gone on without him, as
 * the others know. With a journal that is no question.
 */
#include "ccoip-masterd/core/ccm_internal.h"

bool ccm_told_lags(const struct ccm *m, const struct ccm_told *t)
{
	return !m->restored && t->r.epoch < m->peers_epoch && t->r.prepared < m->peers_wired;
}

bool ccm_told_behind(const struct ccm *m, const struct ccm_told *t, const struct ccm_tally *y)
{
	if (!t || !t->complete)
		return false;
	if (m->restored)
		return t->r.epoch <= m->restored_epoch;
	if (t->r.epoch == 0)
		return false;
	return ccm_told_lags(m, t) || (t->r.epoch < y->epoch && t->r.prepared != y->wired);
}

/* ---- peers whose agents died, too ---- */

static bool asks(const struct ccm_ask *q, const struct ccm_peer *p)
{
	return cc_id_eq(&q->q.peer, &p->id);
}

/* The last attempt with a result that p has, and perhaps was told of; 0: none. */
static uint64_t last_named(const struct ccm_peer *p)
{
	const struct ccm_told *t = p->seat->agent->told;
	const struct ccm_ask *q;
	uint64_t last = 0;
	uint32_t i;

	for (q = t ? t->asks : NULL; q; q = q->next)
		for (i = 0; asks(q, p) && i < q->q.n; i++)
			if (q->q.seqs[i] > last)
				last = q->q.seqs[i];
	return last;
}

/* Has the group done something without p? Others know of an attempt that has succeeded since the
 * last one that p names, and it would ask for that if it had been in it. */
static bool was_left_out(const struct ccm_peer *p)
{
	uint64_t last = last_named(p);
	const struct ccm_ask *q;
	const struct ccm_seat *s;
	const struct ccm_peer *x;
	uint32_t i;

	if (last == 0) /* it may have been accepted after those that others name */
		return false;
	DL_FOREACH2 (p->seat->group->seats, s, next_g) {
		for (q = s->agent->told ? s->agent->told->asks : NULL; q; q = q->next) {
			DL_FOREACH (s->peers, x)
				if (asks(q, x))
					break;
			for (i = q->q.n - q->q.n_succeeded; x && i < q->q.n; i++)
				if (q->q.seqs[i] > last)
					return true;
		}
	}
	return false;
}

/* Has an attempt of p's group started on the rings of a round that p was not prepared for? A member
 * whose agent is gone is in no ring, but without its vote nothing starts. */
static bool began_without(const struct ccm_peer *p)
{
	const struct ccm_group *g = p->seat->group;
	const struct ccm_told *t;
	const struct ccm_seat *s;
	uint32_t i;

	DL_FOREACH2 (g->seats, s, next_g) {
		t = s->agent->told;
		for (i = 0; t && i < t->r.world.n; i++)
			if (t->r.world.own[i].group == g->id &&
				t->r.world.own[i].begun > p->told_prepared)
				return true;
	}
	return false;
}

/* All members of the run, or of its group, as they were told last are known, and p is not among
 * them: the loss has been told to others, who may have drawn their conclusions. Whether a commit
 * has followed does not matter. */
static bool is_no_member(const struct ccm *m, const struct ccm_peer *p)
{
	const struct ccm_group *g = p->seat->group;

	if (p->told_version == 0)
		return false;
	return (p->told_version < g->told_version && g->n_told == g->told_world) ||
	       (p->told_version < m->peers_version && m->n_told == m->peers_world);
}

/* There is a commit that p knows nothing of, nor was it ready for the round. A member whose agent
 * is gone may miss that, but then nobody goes on without it. */
static bool is_behind(const struct ccm *m, const struct ccm_peer *p, const struct ccm_tally *y)
{
	uint64_t epoch = y->epoch > m->peers_epoch ? y->epoch : m->peers_epoch;

	if (p->told_epoch == 0 || p->told_epoch >= epoch || p->told_prepared >= y->wired)
		return false;
	return p->told_topo < y->topo_turn || p->told_pending < y->pending_turn ||
	       was_left_out(p) || began_without(p);
}

static bool was_lost(const struct ccm *m, const struct ccm_peer *p, const struct ccm_tally *y)
{
	return !m->restored && p->phase == CCM_PEER_ACCEPTED &&
	       (is_behind(m, p, y) || is_no_member(m, p));
}

uint32_t ccm_peers_behind(const struct ccm *m, const struct ccm_agent *a, const struct ccm_tally *y)
{
	const struct ccm_seat *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	DL_FOREACH2 (a->seats, s, next_a)
		DL_FOREACH (s->peers, p)
			n += was_lost(m, p, y);
	return n;
}

/* One vote may have ended since, unheard. */
static bool is_overtaken(uint64_t told, uint64_t turn)
{
	return told > 0 && told + 1 < turn;
}

/* Its agent knows of rounds, by itself. */
static bool has_state(const struct ccm_peer *p)
{
	const struct ccm_told *t = p->seat->agent->told;

	return !p->restarted && (!t || !t->complete || t->r.epoch > 0);
}

/* The run has had votes that p was not in: every member is in each. */
static bool has_missed_votes(const struct ccm *m, const struct ccm_peer *p)
{
	return !m->restored && p->phase == CCM_PEER_ACCEPTED &&
	       (is_overtaken(p->told_topo, m->topo_turn) ||
		       is_overtaken(wire_pending_votes(p->told_pending),
			       wire_pending_votes(m->pending_turn)));
}

/* More are here than the group has had since p heard of it: somebody was put out and does not know.
 * Of those whose agents cannot know either, nobody can tell who. */
static bool may_be_too_many(const struct ccm *m, const struct ccm_peer *p)
{
	const struct ccm_group *g = p->seat->group;

	return !m->restored && p->phase == CCM_PEER_ACCEPTED && !has_state(p) && g->too_many &&
	       p->told_version > 0 && p->told_version < g->known_version;
}

/* As is_no_member, of one that was ready for a round: those who know of its commit, or of a world
 * after that, are all of the group. */
static bool left_after(const struct ccm *m, const struct ccm_peer *p, uint64_t round)
{
	const struct ccm_group *g = p->seat->group;
	struct ccm_lost *gone;

	HASH_FIND(hh, m->gone, &p->id, sizeof p->id, gone);
	return gone || (!m->restored && g->told_version > 0 && g->told_wired >= round &&
			       g->n_told == g->told_world);
}

bool ccm_prepared_lost(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_seat *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (a->seats, s, next_a)
		DL_FOREACH (s->peers, p)
			if (p->prepared && left_after(m, p, a->told->r.prepared))
				return true;
	return false;
}

static void drop_agent(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_peer *p, *next;
	struct ccm_seat *s;

	DL_FOREACH2 (a->seats, s, next_a)
		DL_FOREACH_SAFE (s->peers, p, next)
			if (p->believed && !(m->restored && p->told_epoch > m->restored_epoch))
				ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_WAS_LOST);
}

/* ---- losses that were told before ---- */

void ccm_lost_again_begin(struct ccm *m)
{
	m->lost_again = true;
}

/* Is g what its members were told with its losses? */
static bool is_as_told(const struct ccm_group *g)
{
	return g->known_version > 0 && g->known_version >= g->told_version &&
	       g->n_accepted == g->known_world;
}

void ccm_lost_again_end(struct ccm *m)
{
	char text[WM_TEXT_MAX];
	struct ccm_group *g;
	uint32_t n;

	m->lost_again = false;
	for (g = m->groups; g; g = g->hh.next) {
		n = g->n_lost_again;
		g->n_lost_again = 0;
		if (n > 0 && is_as_told(g)) {
			g->n_lost_ever -= n;
			continue;
		}
		ccm_print(text, sizeof text, "%s", g->loss);
		while (n-- > 0)
			ccm_group_lost(m, g, text);
	}
}

void ccm_behind_drop(struct ccm *m, const struct ccm_tally *y)
{
	static const char *const why = CCM_WAS_LOST;
	struct ccm_peer *p, *tmp;
	struct ccm_group *g;
	struct ccm_agent *a;

	ccm_lost_again_begin(m);
	for (a = m->agents; a; a = a->hh.next)
		if (ccm_told_behind(m, a->told, y))
			drop_agent(m, a);
	for (g = m->groups; g; g = g->hh.next)
		g->too_many = g->known_version > 0 && g->told_version <= g->known_version &&
			      g->n_accepted > g->known_world;
	HASH_ITER (hh, m->peers, p, tmp) {
		if (!has_missed_votes(m, p) && !was_lost(m, p, y) && !may_be_too_many(m, p))
			continue;
		if (p->seat->agent->absent)
			ccm_absent_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", why);
	}
	ccm_lost_again_end(m);
}
