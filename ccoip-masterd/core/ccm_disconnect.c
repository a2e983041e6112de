/* SPDX-License-Identifier: MIT
 *
 * Disconnected agents, how their peers come back, and the outcomes of attempts that ended
 * meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_sync.h"

/* Takes back all votes of p. The peer stays accepted. */
static void peer_disconnected(struct ccm *m, struct ccm_peer *p)
{
	p->untold = false;
	memset(p->raw_votes, 0, sizeof p->raw_votes);
	if (p->membership->group->sync)
		ccm_sync_unask(p->membership->group->sync, p);
	ccm_peer_withdraw(m, p);
	ccm_peer_refresh(m, p);
}

static void membership_disconnected(struct ccm *m, struct ccm_membership *s, const char *why)
{
	struct ccm_group *g = s->group;
	struct ccm_peer *p, *next;
	bool goes_on;

	DL_FOREACH_SAFE (s->peers, p, next) {
		if (p->phase == CCM_PEER_ACCEPTED)
			peer_disconnected(m, p);
		else
			ccm_peer_remove(m, p, why);
	}
	if (s->n_accepted == 0)
		return;
	g->n_disconnected += s->n_accepted;
	ccm_ring_remove(g, s);
	/* No operation that runs needs these peers, unless they have voted for it. Operations that
	 * have not started wait for them. */
	goes_on = ccm_sync_disconnected(m, s);
	DL_FOREACH (s->peers, p)
		goes_on &= p->n_ops == 0;
	if (!goes_on)
		ccm_group_interrupt(m, g,
			"the agent on %s is gone (%s); its peers have %.1f s to come back",
			s->agent->hello.name, why, (double)m->cfg.agent_lease_ms / 1e3);
}

/* While recovering, `a` has reported a lost link, and will not report it again. Operations that
 * continue may wait for data that was sent into this link. */
static void interrupt_for_lost_links(struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_lost_link *x = a->snapshot ? a->snapshot->links : NULL;
	const struct ccm_membership *s;

	if (!x)
		return;
	DL_FOREACH2 (a->memberships, s, next_a)
		ccm_group_interrupt(
			m, s->group, "a link of host %s broke: %s", a->hello.name, x->l.text);
}

void ccm_agent_disconnected(struct ccm *m, struct ccm_agent *a, const char *text)
{
	char label[2 * WM_NAME_MAX], clean[WM_TEXT_MAX], again[64] = "";
	struct ccm_membership *s;

	if (a->n_accepted == 0) {
		ccm_agent_lost(m, a, text);
		return;
	}
	if (ccm_flaps_count(m, a)) {
		ccm_flaps_end(m, a);
		return;
	}
	ccm_copy(clean, sizeof clean, text ? text : "connection closed");
	if (a->flaps.n > 1)
		ccm_print(
			again, sizeof again, ", after %u earlier breaks in a row", a->flaps.n - 1);
	ccm_log(m, CCM_LOG_WARNING, "agent %s is gone (%s)%s: its %u peers have %u ms to come back",
		ccm_agent_label(a, label, sizeof label), clean, again, a->n_accepted,
		m->cfg.agent_lease_ms);
	DL_FOREACH2 (a->memberships, s, next_a)
		membership_disconnected(m, s, clean);
	m->n_disconnected += a->n_accepted;
	m->changed = true;
	ccm_pairs_forget(m, a->no);
	ccm_probes_forget(m, a->no);
	m->newcomers = true;
	ccm_agent_unhash(m, a);
	if (a->claimed)
		HASH_DELETE(hh_id, m->by_id, a);
	a->claimed = false;
	ccm_resuming_set(m, a, false);
	interrupt_for_lost_links(m, a);
	ccm_snapshot_free(a);
	a->round = 0;
	a->disconnected = true;
	a->disconnected_ns = m->now;
	DL_APPEND2(m->disconnected, a, prev_ab, next_ab);
}

void ccm_disconnected_tick(struct ccm *m)
{
	struct ccm_agent *a;
	char text[WM_TEXT_MAX];

	if (m->recovering)
		return;
	while ((a = m->disconnected) != NULL &&
		ccm_age(m->now, a->disconnected_ns) > m->cfg.agent_lease_ms * CCM_NS_PER_MS) {
		ccm_print(text, sizeof text, "it did not come back within %u ms",
			m->cfg.agent_lease_ms);
		ccm_agent_lost(m, a, text);
	}
}

/* Gets the membership of `a` that replaces `old`. The new membership takes the position of `old` in
 * the preferred ring. */
static struct ccm_membership *membership_beside(
	struct ccm *m, struct ccm_agent *a, struct ccm_membership *old)
{
	struct ccm_group *g = old->group;
	struct ccm_membership *s = ccm_membership_get(m, a, g->id);

	if (s->n_peers > 0)
		return s;
	DL_DELETE2(g->memberships, s, prev_g, next_g);
	DL_PREPEND_ELEM2(g->memberships, old, s, prev_g, next_g);
	return s;
}

/* Moves p from the membership of a disconnected agent to a membership of `a`. The next round must
 * contain p. */
static void peer_move(
	struct ccm *m, struct ccm_agent *a, struct ccm_peer *p, const struct wm_join *j)
{
	struct ccm_membership *old = p->membership, *s = membership_beside(m, a, old);
	bool restored = old->agent->restored;
	bool same = cc_id_eq(&old->agent->hello.agent, &a->hello.agent);
	char label[3 * WM_NAME_MAX];

	DL_DELETE(old->peers, p);
	old->n_accepted--;
	old->agent->n_peers--;
	old->agent->n_accepted--;
	old->group->n_disconnected--;
	m->n_disconnected--;
	if (--old->n_peers == 0)
		ccm_membership_vacate(m, old);
	if (old->agent->n_peers == 0)
		ccm_agent_bury(m, old->agent);
	ccm_membership_add(s, p);
	ccm_flaps_move(a, old->agent);
	ccm_unmet_thread(m, p, j->thread);
	if (s->n_accepted++ == 0)
		a->list_sent = false; /* no view on this connection has had this group */
	a->n_accepted++;
	p->pid = j->pid;
	ccm_peer_goes_on(m, p);
	p->pool_size = j->pool_size;
	if (j->phase == WM_JOIN_ACCEPTED) {
		ccm_at_least(&p->view_id, j->view_id);
		memcpy(p->ballots, j->ballots, sizeof p->ballots);
		ccm_ballot_learn(m, j->ballots);
	}
	p->untold = j->phase != WM_JOIN_ACCEPTED;
	ccm_copy(p->name, sizeof p->name, j->name);
	m->newcomers = true;
	ccm_pairs_forget(m, a->no);
	if (!restored || !same) {
		m->changed = true;
		m->rewire = true;
	}
	if (m->recovering && (!same || cc_id_is_zero(&a->hello.run_key)))
		ccm_peer_restarted(m, p);
	ccm_log(m, CCM_LOG_NOTICE, "%s has come back to group %u", ccm_peer_label(p, label),
		s->group->id);
}

/* Cuts the old connection of p's agent, because p comes through another connection. The old
 * connection is dead, or its agent does not speak for p any more. */
static void cut_old(struct ccm *m, struct ccm_agent *old, const struct ccm_agent *a)
{
	struct wm_refuse *r;

	if (!cc_id_eq(&old->hello.agent, &a->hello.agent)) {
		r = &ccm_send(m, old, WM_REFUSE)->u.refuse;
		r->version_min = WM_VERSION_MIN;
		r->version_max = WM_VERSION_MAX;
		r->code = WIRE_RANK_CONNECTION_LOST;
		ccm_print(r->text, sizeof r->text,
			"another agent on %s has taken over the peers of this one", a->hello.name);
		ccm_flaps_over(old); /* nothing broke, so this does not count */
	}
	ccm_close(m, old->conn, "its peers have come back on another connection");
	ccm_agent_disconnected(m, old, "its peers have come back on another connection");
	ccm_loss_announce(m); /* operations must not name the membership that p is about to leave */
}

/* Is the join outdated? A host has one agent at a time. If p is already with a later agent, `a` has
 * died since it sent the join. */
static bool is_outlived(const struct ccm_agent *a, const struct ccm_peer *p)
{
	const struct ccm_agent *last = p->membership->agent;

	return !last->disconnected && last->no > a->no &&
	       !cc_id_eq(&last->hello.agent, &a->hello.agent);
}

void ccm_disconnected_remove(struct ccm *m, struct ccm_peer *p, const char *why)
{
	struct ccm_agent *a = p->membership->agent;

	ccm_peer_remove(m, p, why);
	if (a->n_peers == 0)
		ccm_agent_bury(m, a);
}

bool ccm_peer_return(
	struct ccm *m, struct ccm_agent *a, struct ccm_peer *p, const struct wm_join *j)
{
	char text[WM_TEXT_MAX];

	if (cc_id_is_zero(&j->token) || !cc_id_eq(&j->token, &p->token) ||
		p->membership->group->id != j->group) {
		ccm_join_refuse(m, a, &j->peer, WIRE_INVALID_USAGE,
			"the peer id is in use by another agent's peer");
		return true;
	}
	if (is_outlived(a, p)) {
		cut_old(m, a, p->membership->agent);
		return true;
	}
	if (!p->membership->agent->disconnected)
		cut_old(m, p->membership->agent, a);
	p = ccm_peer_find(m, &j->peer);
	if (!p)
		return false;
	ccm_agent_cut_older(m, a);
	if (ccm_membership_objection(m, a, j->group, text, sizeof text)) {
		ccm_join_refuse(m, a, &j->peer, WIRE_INVALID_USAGE, text);
		ccm_disconnected_remove(m, p, text);
		return true;
	}
	ccm_agent_claim(m, a);
	peer_move(m, a, p, j);
	return true;
}

void ccm_gone_add(struct ccm *m, const struct cc_id *peer)
{
	struct ccm_lost *x;

	HASH_FIND(hh, m->gone, peer, sizeof *peer, x);
	if (!x && HASH_COUNT(m->gone) >= CCM_LOST_MAX)
		x = m->gone;
	if (x)
		HASH_DELETE(hh, m->gone, x);
	else
		x = cc_must_zalloc(1, sizeof *x);
	*x = (struct ccm_lost){.peer = *peer, .ns = m->now};
	HASH_ADD(hh, m->gone, peer, sizeof x->peer, x);
}

void ccm_peer_stranger(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer)
{
	char text[WM_TEXT_MAX], brief[CC_ID_SHORT_SIZE];
	struct ccm_lost *x;

	(void)cc_id_short(peer, brief);
	HASH_FIND(hh, m->gone, peer, sizeof *peer, x);
	if (x && x->ns)
		ccm_print(text, sizeof text,
			"peer %s was declared lost %.1f s ago: call pcclConnect again", brief,
			(double)ccm_age(m->now, x->ns) / 1e9);
	else
		ccm_print(text, sizeof text,
			"peer %s is unknown to this run, or was declared lost long ago: call "
			"pcclConnect again",
			brief);
	ccm_join_refuse(m, a, peer, WIRE_RANK_CONNECTION_LOST, text);
}

void ccm_outcome_note(struct ccm_group *g, uint64_t seq, uint32_t code)
{
	g->ended[g->n_ended++ % WM_OUTCOMES_MAX] = (struct wm_outcome){seq, code};
}

void ccm_seqs_learn(struct ccm *m, const struct wm_op_query *q)
{
	uint32_t i;

	for (i = 0; i < q->n; i++)
		if (q->seqs[i] > m->last_seq && q->seqs[i] < CCM_NUMBER_MAX)
			m->last_seq = q->seqs[i];
}

void ccm_op_outcomes(struct ccm *m, const struct ccm_peer *p, const struct wm_op_query *q)
{
	struct wm_op_outcomes *x =
		&ccm_send(m, p->membership->agent, WM_OP_OUTCOMES)->u.op_outcomes;
	struct ccm_group *g = p->membership->group;
	uint32_t i;

	x->peer = q->peer;
	for (i = 0; i < q->n && i < WM_OUTCOMES_MAX; i++) {
		/* An unknown outcome counts as failed. It is noted, so that other peers get the
		 * same answer. */
		if (i < q->n - q->n_succeeded && !ccm_outcome_is_known(m, g, q->seqs[i]))
			ccm_outcome_note(g, q->seqs[i], WIRE_RANK_CONNECTION_LOST);
		x->v[x->n++] = (struct wm_outcome){q->seqs[i], ccm_outcome_of(m, g, q->seqs[i])};
	}
}

void ccm_op_query(struct ccm *m, struct ccm_agent *a, const struct wm_op_query *q)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &q->peer, "a query for outcomes");

	if (!p)
		return;
	if (ccm_query_contradicts(p, q)) {
		ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_CONTRADICTS);
		return;
	}
	ccm_view_catch_up(m, a);
	if (m->recovered)
		ccm_seqs_learn(m, q);
	if (!ccm_sync_ask(p, q))
		ccm_op_outcomes(m, p, q);
}
