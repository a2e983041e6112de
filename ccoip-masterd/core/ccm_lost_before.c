/* SPDX-License-Identifier: MIT
 *
 * Peers that the last master had lost and that do not know it. The run has continued without them,
 * as other peers show. If there is a journal, the master takes the members from it instead.
 */
#include "ccoip-masterd/core/ccm_internal.h"

bool ccm_snapshot_lags(const struct ccm *m, const struct ccm_snapshot *t)
{
	return !m->restored && t->r.epoch < m->peers_epoch && t->r.prepared < m->peers_ring_epoch;
}

bool ccm_snapshot_is_old(
	const struct ccm *m, const struct ccm_snapshot *t, const struct ccm_merged *y)
{
	if (!t || !t->complete)
		return false;
	if (m->restored)
		return t->r.epoch <= m->restored_epoch;
	if (t->r.epoch == 0)
		return false;
	return ccm_snapshot_lags(m, t) || (t->r.epoch < y->epoch && t->r.prepared != y->ring_epoch);
}

/* ---- peers whose agents died, too ---- */

static bool asks(const struct ccm_ask *q, const struct ccm_peer *p)
{
	return cc_id_eq(&q->q.peer, &p->id);
}

/* Returns the last attempt whose result p has, whether or not p was told of its end; 0: none. */
static uint64_t last_named(const struct ccm_peer *p)
{
	const struct ccm_snapshot *t = p->membership->agent->snapshot;
	const struct ccm_ask *q;
	uint64_t last = 0;
	uint32_t i;

	for (q = t ? t->asks : NULL; q; q = q->next)
		for (i = 0; asks(q, p) && i < q->q.n; i++)
			if (q->q.seqs[i] > last)
				last = q->q.seqs[i];
	return last;
}

/* Has the group done something without p? Another peer knows of an attempt that has succeeded since
 * the last attempt that p names. If p had taken part in that attempt, p would ask for its outcome
 * as well. */
static bool was_left_out(const struct ccm_peer *p)
{
	uint64_t last = last_named(p);
	const struct ccm_ask *q;
	const struct ccm_membership *s;
	const struct ccm_peer *x;
	uint32_t i;

	if (last == 0) /* p may have been accepted after the attempts that others name */
		return false;
	DL_FOREACH2 (p->membership->group->memberships, s, next_g) {
		for (q = s->agent->snapshot ? s->agent->snapshot->asks : NULL; q; q = q->next) {
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

/* Has an attempt of p's group started on the rings of a round that p had not prepared? (A
 * disconnected member is in no ring, but nothing starts without its vote.) */
static bool began_without(const struct ccm_peer *p)
{
	const struct ccm_group *g = p->membership->group;
	const struct ccm_snapshot *t;
	const struct ccm_membership *s;
	uint32_t i;

	DL_FOREACH2 (g->memberships, s, next_g) {
		t = s->agent->snapshot;
		for (i = 0; t && i < t->r.view.n; i++)
			if (t->r.view.own[i].group == g->id &&
				t->r.view.own[i].begun > p->snap_prepared)
				return true;
	}
	return false;
}

/* Is p missing in a later view? If all members of the latest view of the run, or of its group, are
 * here and p is not among them, others know of p's loss and may have acted on it. A commit need not
 * have followed. */
static bool is_no_member(const struct ccm *m, const struct ccm_peer *p)
{
	const struct ccm_group *g = p->membership->group;

	if (p->snap_view_id == 0)
		return false;
	return (p->snap_view_id < g->snap_view_id && g->n_snapshots == g->snap_world_size) ||
	       (p->snap_view_id < m->peers_view_id && m->n_snapshots == m->peers_world_size);
}

/* Has the run continued after a commit that p does not know, and whose round p had not prepared? (A
 * disconnected member may miss a commit, but then nobody continues without it.) */
static bool is_lost_before(
	const struct ccm *m, const struct ccm_peer *p, const struct ccm_merged *y)
{
	uint64_t epoch = y->epoch > m->peers_epoch ? y->epoch : m->peers_epoch;
	uint32_t k;

	if (p->snap_epoch == 0 || p->snap_epoch >= epoch || p->snap_prepared >= y->ring_epoch)
		return false;
	for (k = 0; k < WIRE_BALLOTS; k++)
		if (p->snap_ballots[k] < y->ballots[k])
			return true;
	return was_left_out(p) || began_without(p);
}

static bool was_lost(const struct ccm *m, const struct ccm_peer *p, const struct ccm_merged *y)
{
	return !m->restored && p->phase == CCM_PEER_ACCEPTED &&
	       (is_lost_before(m, p, y) || is_no_member(m, p));
}

uint32_t ccm_peers_lost_before(
	const struct ccm *m, const struct ccm_agent *a, const struct ccm_merged *y)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH (s->peers, p)
			n += was_lost(m, p, y);
	return n;
}

/* Is `told` more than one ballot behind? One message about the end of a ballot may be lost. */
static bool is_overtaken(uint64_t told, uint64_t number)
{
	return told > 0 && wire_ballot_count(told) + 1 < wire_ballot_count(number);
}

/* Does p's agent itself know the rounds of the run? */
static bool has_state(const struct ccm_peer *p)
{
	const struct ccm_snapshot *t = p->membership->agent->snapshot;

	return !p->restarted && (!t || !t->complete || t->r.epoch > 0);
}

/* Has the run had ballots without p? Every member takes part in each ballot. */
static bool has_missed_votes(const struct ccm *m, const struct ccm_peer *p)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (is_overtaken(p->snap_ballots[k], m->ballots[k].number))
			return !m->restored && p->phase == CCM_PEER_ACCEPTED;
	return false;
}

/* Are more peers here than the group has had since p's last view? Then some peer was kicked and
 * does not know it. If the agents of several peers cannot know it either, nobody can find out which
 * peer it was. */
static bool may_be_too_many(const struct ccm *m, const struct ccm_peer *p)
{
	const struct ccm_group *g = p->membership->group;

	return !m->restored && p->phase == CCM_PEER_ACCEPTED && !has_state(p) && g->too_many &&
	       p->snap_view_id > 0 && p->snap_view_id < g->known_view_id;
}

/* Like is_no_member, but for a peer that had prepared a round: true if the peers that know of the
 * round's commit, or of a later view, are the whole group. */
static bool left_after(const struct ccm *m, const struct ccm_peer *p, uint64_t round)
{
	const struct ccm_group *g = p->membership->group;
	struct ccm_lost *gone;

	HASH_FIND(hh, m->gone, &p->id, sizeof p->id, gone);
	return gone || (!m->restored && g->snap_view_id > 0 && g->snap_ring_epoch >= round &&
			       g->n_snapshots == g->snap_world_size);
}

bool ccm_prepared_lost(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH (s->peers, p)
			if (p->prepared && left_after(m, p, a->snapshot->r.prepared))
				return true;
	return false;
}

static void drop_agent(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_peer *p, *next;
	struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH_SAFE (s->peers, p, next)
			if (p->believed && !(m->restored && p->snap_epoch > m->restored_epoch))
				ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_WAS_LOST);
}

/* ---- losses that are already known ---- */

void ccm_lost_before_begin(struct ccm *m)
{
	m->lost_before = true;
}

/* Does g have as many members as its latest known view says? */
static bool is_as_told(const struct ccm_group *g)
{
	return g->known_view_id > 0 && g->known_view_id >= g->snap_view_id &&
	       g->n_accepted == g->known_world_size;
}

void ccm_lost_before_end(struct ccm *m)
{
	char text[WM_TEXT_MAX];
	struct ccm_group *g;
	uint32_t n;

	m->lost_before = false;
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

void ccm_lost_before_drop(struct ccm *m, const struct ccm_merged *y)
{
	static const char *const why = CCM_WAS_LOST;
	struct ccm_peer *p, *tmp;
	struct ccm_group *g;
	struct ccm_agent *a;

	ccm_lost_before_begin(m);
	for (a = m->agents; a; a = a->hh.next)
		if (ccm_snapshot_is_old(m, a->snapshot, y))
			drop_agent(m, a);
	for (g = m->groups; g; g = g->hh.next)
		g->too_many = g->known_view_id > 0 && g->snap_view_id <= g->known_view_id &&
			      g->n_accepted > g->known_world_size;
	HASH_ITER (hh, m->peers, p, tmp) {
		if (!has_missed_votes(m, p) && !was_lost(m, p, y) && !may_be_too_many(m, p))
			continue;
		if (p->membership->agent->disconnected)
			ccm_disconnected_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", why);
	}
	ccm_lost_before_end(m);
}
