/* SPDX-License-Identifier: MIT
 *
 * Peers, memberships and groups: join, leave, kick, and the consequences of a loss.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"
#include "ccoip-masterd/core/ccm_sync.h"

struct ccm_peer *ccm_peer_find(const struct ccm *m, const struct cc_id *id)
{
	struct ccm_peer *p;

	HASH_FIND(hh, m->peers, id, sizeof *id, p);
	return p;
}

struct ccm_peer *ccm_peer_of(
	struct ccm *m, struct ccm_agent *a, const struct cc_id *id, const char *what)
{
	struct ccm_peer *p = ccm_peer_find(m, id);
	char brief[CC_ID_SHORT_SIZE];

	if (!p) {
		ccm_log(m, CCM_LOG_DEBUG, "%s of unknown peer %s is ignored", what,
			cc_id_short(id, brief));
		return NULL;
	}
	if (p->membership->agent == a)
		return p;
	ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
		"protocol violation: %s in the name of another agent's peer %s", what,
		cc_id_short(id, brief));
	return NULL;
}

struct ccm_membership *ccm_membership_find(const struct ccm *m, uint64_t agent_no, uint32_t group)
{
	struct ccm_membership_key key = {agent_no, group};
	struct ccm_membership *s;

	HASH_FIND(hh, m->memberships, &key, sizeof key, s);
	return s;
}

struct ccm_membership *ccm_membership_of(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group)
{
	/* Most agents have one membership. */
	if (a->n_memberships == 1)
		return a->memberships->key.group == group ? a->memberships : NULL;
	return ccm_membership_find(m, a->no, group);
}

const char *ccm_peer_label(const struct ccm_peer *p, char buf[3 * WM_NAME_MAX])
{
	const char *host = p->membership->agent->hello.name;

	if (p->pid)
		ccm_print(buf, (size_t)3 * WM_NAME_MAX, "%s@%s pid %u", p->name, host, p->pid);
	else /* known only from a journal without a pid */
		ccm_print(buf, (size_t)3 * WM_NAME_MAX, "a process on %s", host);
	return buf;
}

uint32_t ccm_slot_get(struct ccm_slots *s)
{
	if (s->n_free > 0)
		return s->free[--s->n_free];
	if (s->n == s->cap)
		s->free = cc_must_grow(s->free, &s->cap, 8, sizeof *s->free);
	return s->n++;
}

void ccm_slot_put(struct ccm_slots *s, uint32_t slot)
{
	s->free[s->n_free++] = slot;
}

static struct ccm_group *group_get(struct ccm *m, uint32_t id)
{
	struct ccm_group *g;

	HASH_FIND(hh, m->groups, &id, sizeof id, g);
	if (g)
		return g;
	g = cc_must_zalloc(1, sizeof *g);
	g->id = id;
	g->last = ccm_revision_find(m, id);
	HASH_ADD(hh, m->groups, id, sizeof g->id, g);
	return g;
}

void ccm_group_free(struct ccm_group *g)
{
	free(g->ring);
	free(g->next_ring);
	ccm_plan_free(g);
	free(g->peer_slots.free);
	free(g->membership_slots.free);
	free(g);
}

/* Frees g, unless it has memberships. */
static void group_drop(struct ccm *m, struct ccm_group *g)
{
	if (g->n_memberships > 0)
		return;
	HASH_DELETE(hh, m->groups, g);
	ccm_group_free(g);
}

struct ccm_membership *ccm_membership_get(struct ccm *m, struct ccm_agent *a, uint32_t group)
{
	struct ccm_membership *s = ccm_membership_of(m, a, group);
	struct ccm_group *g;

	if (s)
		return s;
	g = group_get(m, group);
	s = cc_must_zalloc(1, sizeof *s);
	s->key = (struct ccm_membership_key){a->no, group};
	s->slot = ccm_slot_get(&g->membership_slots);
	HASH_ADD(hh, m->memberships, key, sizeof s->key, s);
	s->agent = a;
	s->group = g;
	DL_APPEND2(a->memberships, s, prev_a, next_a);
	DL_APPEND2(g->memberships, s, prev_g, next_g);
	a->n_memberships++;
	g->n_memberships++;
	return s;
}

static void membership_free(struct ccm *m, struct ccm_membership *s)
{
	struct ccm_group *g = s->group;

	HASH_DELETE(hh, m->memberships, s);
	DL_DELETE2(s->agent->memberships, s, prev_a, next_a);
	DL_DELETE2(g->memberships, s, prev_g, next_g);
	s->agent->n_memberships--;
	g->n_memberships--;
	ccm_slot_put(&g->membership_slots, s->slot);
	free(s);
	group_drop(m, g);
}

const char *ccm_membership_objection(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group, char *buf, size_t size)
{
	const struct ccm_membership *s = ccm_membership_of(m, a, group);
	struct ccm_agent *other;

	HASH_FIND(hh_id, m->by_id, &a->hello.agent, sizeof a->hello.agent, other);
	if (other && other != a)
		ccm_print(buf, size,
			"the agent on %s has another connection to this master: use one address of "
			"the master on this host, or try again in %u ms",
			a->hello.name, m->cfg.timeout_ms);
	else if (a->n_peers >= CCM_AGENT_PEERS_MAX)
		ccm_print(buf, size,
			"the agent on %s has %u peers in the run, the limit: use another host",
			a->hello.name, CCM_AGENT_PEERS_MAX);
	else if (s && s->n_peers >= WM_PEERS_MAX)
		ccm_print(buf, size,
			"the agent on %s has %u peers in group %u, the limit: use another group or "
			"host",
			a->hello.name, WM_PEERS_MAX, group);
	else if (!s && a->n_memberships >= WM_RINGS_MAX)
		ccm_print(buf, size,
			"the agent on %s has peers in %u groups, the limit: use one of them",
			a->hello.name, WM_RINGS_MAX);
	else
		return NULL;
	return buf;
}

static const char *join_objection(const struct ccm *m, const struct ccm_agent *a,
	const struct wm_join *j, char *buf, size_t size)
{
	if (m->n_registered + m->n_accepted < m->cfg.max_peers)
		return ccm_membership_objection(m, a, j->group, buf, size);
	ccm_print(buf, size, "the run is full: it has %u peers, its limit", m->cfg.max_peers);
	return buf;
}

void ccm_join_refuse(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer, uint32_t code,
	const char *text)
{
	struct wm_kick *k = &ccm_send(m, a, WM_KICK)->u.kick;

	k->peer = *peer;
	k->code = code;
	ccm_print(k->text, sizeof k->text, "%s", text);
	ccm_log(m, CCM_LOG_WARNING, "a peer on %s may not join: %s", a->hello.name, text);
}

void ccm_agent_claim(struct ccm *m, struct ccm_agent *a)
{
	if (a->claimed)
		return;
	HASH_ADD(hh_id, m->by_id, hello.agent, sizeof a->hello.agent, a);
	a->claimed = true;
	if (!a->restored)
		ccm_host_continue(m, a);
}

void ccm_membership_add(struct ccm_membership *s, struct ccm_peer *p)
{
	struct ccm_peer *x = NULL;

	if (p->phase == CCM_PEER_ACCEPTED)
		DL_FOREACH (s->peers, x)
			if (x->phase == CCM_PEER_REGISTERED)
				break;
	if (x)
		DL_PREPEND_ELEM(s->peers, x, p);
	else
		DL_APPEND(s->peers, p);
	p->membership = s;
	s->n_peers++;
	s->agent->n_peers++;
}

/* Moves p, which is accepted now, before the registered peers of s. */
static void reorder(struct ccm_membership *s, struct ccm_peer *p)
{
	if (p == s->peers || p->prev->phase == CCM_PEER_ACCEPTED)
		return;
	DL_DELETE(s->peers, p);
	s->n_peers--;
	s->agent->n_peers--;
	ccm_membership_add(s, p);
}

struct ccm_peer *ccm_peer_new(struct ccm *m, struct ccm_agent *a, const struct wm_join *j)
{
	struct ccm_membership *s = ccm_membership_get(m, a, j->group);
	struct ccm_peer *p = cc_must_zalloc(1, sizeof *p);

	p->id = j->peer;
	p->token = j->token;
	p->pid = j->pid;
	p->pool_size = j->pool_size;
	p->state_since = m->now;
	ccm_copy(p->name, sizeof p->name, j->name);
	HASH_ADD(hh, m->peers, id, sizeof p->id, p);
	ccm_membership_add(s, p);
	ccm_unmet_thread(m, p, j->thread);
	s->group->n_peers++;
	m->joins++;
	if (m->n_registered++ == 0)
		m->registered_since = m->now;
	return p;
}

void ccm_agent_cut_older(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_agent *old;

	HASH_FIND(hh_id, m->by_id, &a->hello.agent, sizeof a->hello.agent, old);
	if (!old || old == a || !cc_id_is_zero(&a->hello.run_key))
		return;
	if (a->knows_run) {
		ccm_agent_cut_half_open(m, a);
		return;
	}
	ccm_close(m, old->conn, "the agent has joined on another connection");
	ccm_agent_lost(m, old, "it has left and has joined on another connection");
}

void ccm_member_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j)
{
	char text[WM_TEXT_MAX], label[3 * WM_NAME_MAX];
	struct ccm_peer *p = ccm_peer_find(m, &j->peer);

	if (p && p->membership->agent == a) {
		ccm_peer_violation(m, p, "it joined a second time");
		return;
	}
	if (p && ccm_peer_return(m, a, p, j))
		return;
	if (!p && j->left) /* the peer's leave came before its join, and has removed the peer */
		return;
	if (m->recovering && ccm_resume_join(m, a, j))
		return;
	if (j->phase == WM_JOIN_ACCEPTED) {
		ccm_peer_stranger(m, a, &j->peer);
		return;
	}
	ccm_agent_cut_older(m, a);
	if (join_objection(m, a, j, text, sizeof text)) {
		ccm_join_refuse(m, a, &j->peer, WIRE_INVALID_USAGE, text);
		return;
	}
	ccm_agent_claim(m, a);
	ccm_newcomer_joins(m, a);
	p = ccm_peer_new(m, a, j);
	ccm_log(m, CCM_LOG_INFO, "%s registered in group %u", ccm_peer_label(p, label), j->group);
}

static void leave_note(struct ccm *m, const struct ccm_agent *a, const struct cc_id *peer)
{
	if (m->n_taken == m->cap_taken)
		m->taken = cc_must_grow(m->taken, &m->cap_taken, 8, sizeof *m->taken);
	m->taken[m->n_taken++] = (struct ccm_leave){a->conn, *peer};
}

static struct ccm_leave *leave_find(const struct ccm *m, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < m->n_taken; i++)
		if (cc_id_eq(&m->taken[i].peer, peer))
			return &m->taken[i];
	return NULL;
}

/* Answers a leave. The leave of an accepted peer is only noted here, because it must be in the
 * journal before the answer. For other leaves it is enough that this master knows them. */
static void leave_take(
	struct ccm *m, struct ccm_agent *a, const struct ccm_peer *p, const struct cc_id *peer)
{
	struct ccm_leave *noted = leave_find(m, peer);

	if (noted) {
		if (!ccm_agent_find(m, noted->conn)) /* the agent has come on another connection */
			noted->conn = a->conn;
		return;
	}
	if (p && p->phase == CCM_PEER_ACCEPTED)
		leave_note(m, a, peer);
	else
		ccm_send(m, a, WM_LEFT)->u.left.peer = *peer;
}

void ccm_leaves_answer(struct ccm *m)
{
	struct ccm_agent *a;
	uint32_t i;

	for (i = 0; i < m->n_taken; i++) {
		a = ccm_agent_find(m, m->taken[i].conn);
		if (a)
			ccm_send(m, a, WM_LEFT)->u.left.peer = m->taken[i].peer;
	}
	m->n_taken = 0;
}

void ccm_member_leave(struct ccm *m, struct ccm_agent *a, const struct wm_leave *l)
{
	static const char *const reasons[] = {
		[WM_LEAVE_CLEAN] = "it left the run",
		[WM_LEAVE_DIED] = "its process died",
		[WM_LEAVE_STOPPED] = "its process has been stopped for too long",
	};
	struct ccm_peer *p = ccm_peer_of(m, a, &l->peer, "a leave");
	bool clean = l->kind == WM_LEAVE_CLEAN;
	char label[3 * WM_NAME_MAX], why[WM_TEXT_MAX];

	if (!a->dead && a->hello.features & WM_LEAVES)
		leave_take(m, a, p, &l->peer);
	if (!p)
		return;
	ccm_print(why, sizeof why, "%s%s%s", reasons[l->kind], l->text[0] ? ": " : "", l->text);
	p->leaving = clean;
	m->leaves += clean && p->phase == CCM_PEER_ACCEPTED;
	ccm_log(m, clean && !l->text[0] ? CCM_LOG_INFO : CCM_LOG_WARNING, "%s, group %u: %s",
		ccm_peer_label(p, label), p->membership->group->id, why);
	ccm_peer_remove(m, p, why);
}

static void peer_kick_text(struct ccm *m, struct ccm_peer *p, uint32_t code, const char *text)
{
	struct wm_kick *k = &ccm_send(m, p->membership->agent, WM_KICK)->u.kick;
	char label[3 * WM_NAME_MAX], why[WM_TEXT_MAX];

	k->peer = p->id;
	k->code = code;
	ccm_print(k->text, sizeof k->text, "%s", text);
	m->kicks++;
	ccm_log_agent(m, p->membership->agent, CCM_LOG_WARNING, "%s, group %u, is kicked: %s",
		ccm_peer_label(p, label), p->membership->group->id, text);
	ccm_print(why, sizeof why, "it was kicked: %s", text);
	ccm_peer_remove(m, p, why);
}

void ccm_peer_kick(struct ccm *m, struct ccm_peer *p, uint32_t code, const char *fmt, ...)
{
	char text[WM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	peer_kick_text(m, p, code, text);
}

void ccm_peer_violation(struct ccm *m, struct ccm_peer *p, const char *fmt, ...)
{
	char what[WM_TEXT_MAX], text[WM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	ccm_print(text, sizeof text, "protocol violation: %s (%s, %s)", what,
		ccm_phase_name(p->phase), ccm_state_name(p->state));
	peer_kick_text(m, p, WIRE_RANK_CONNECTION_LOST, text);
}

void ccm_ring_remove(struct ccm_group *g, struct ccm_membership *s)
{
	uint32_t i;

	if (!s->in_ring)
		return;
	s->in_ring = s->mesh_up = s->plan_up = false;
	free(g->rings); /* its rings had the host, too */
	g->rings = NULL;
	g->plan.rate = g->plan.bound = 0; /* nothing is predicted for the rings without it */
	g->better.n = 0;
	g->n_ring--;
	for (i = s->pos; i < g->n_ring; i++) {
		g->ring[i] = g->ring[i + 1];
		g->ring[i]->pos = i;
	}
}

/* Counts the loss of p, which is not accepted any more, in its group. */
static void count_loss(struct ccm *m, const struct ccm_peer *p, const char *why)
{
	struct ccm_group *g = p->membership->group;
	char label[3 * WM_NAME_MAX], text[WM_TEXT_MAX];

	/* No operation has started since p was disconnected, or since the group's last loss. Often
	 * the last loss is the loss of p itself, which a neighbour whose link broke has reported.
	 * Members were told of that loss if necessary, so the loss of p is not counted once
	 * more. */
	if (p->n_ops == 0 && ((g->generation_sent && (!g->lost || g->n_lost == 0)) ||
				     (p->membership->agent->disconnected && g->n_accepted > 1))) {
		ccm_group_changed(m, g);
		return;
	}
	ccm_print(
		text, sizeof text, "lost %s of group %u: %s", ccm_peer_label(p, label), g->id, why);
	if (!m->lost_before) {
		ccm_group_lost(m, g, text);
		return;
	}
	if (g->n_lost_before++ == 0 && !g->interrupted && (!g->lost || g->n_lost == 0))
		ccm_print(g->loss, sizeof g->loss, "%s", text);
	ccm_group_changed(m, g);
}

static void accepted_lost(struct ccm *m, struct ccm_peer *p, const char *why)
{
	struct ccm_membership *s = p->membership;
	struct ccm_group *g = s->group;

	s->n_accepted--;
	s->agent->n_accepted--;
	g->n_accepted--;
	m->n_accepted--;
	if (s->agent->disconnected) {
		g->n_disconnected--;
		m->n_disconnected--;
	}
	ccm_slot_put(&g->peer_slots, p->slot);
	if (s->n_accepted == 0)
		ccm_ring_remove(g, s);
	if (s->agent->n_accepted > 0) /* in other groups: its host stays a member */
		ccm_pairs_doubt(m, s->agent->no);
	else
		ccm_pairs_forget(m, s->agent->no);
	count_loss(m, p, why);
	ccm_sync_lost(m, p, why);
	if (m->recovering && s->agent->snapshot)
		ccm_revisions_learn(m, s->agent);
	ccm_revision_left(m, g, p->leaving);
	ccm_journal_note(m, &p->id);
	ccm_gone_add(m, &p->id);
	ccm_lost_add(m, &p->id);
	m->lost_members++;
	m->n_left += m->recovering;
	g->n_lost_ever++;
	g->n_left += m->recovering;
	m->changed = true;
	m->rewire = true;
}

void ccm_peer_withdraw(struct ccm *m, struct ccm_peer *p)
{
	struct ccm_membership *s = p->membership;

	ccm_ballot_withdraw(m, p);
	if (ccm_in_round(m, p->round)) {
		if (s->agent->n_accepted == 0)
			ccm_round_spoilt(m);
		m->round.stale = true;
		s->n_candidates--;
		p->round = 0;
	}
}

void ccm_membership_vacate(struct ccm *m, struct ccm_membership *s)
{
	if (s->reaping)
		return;
	s->reaping = true;
	s->next_reap = m->reap;
	m->reap = s;
}

void ccm_peer_remove(struct ccm *m, struct ccm_peer *p, const char *why)
{
	struct ccm_membership *s = p->membership;

	m->newcomers = true;
	ccm_peer_withdraw(m, p);
	ccm_peer_goes_on(m, p);
	if (s->agent->snapshot)
		ccm_snapshot_left(s->agent->snapshot, p);
	if (p->phase == CCM_PEER_ACCEPTED)
		accepted_lost(m, p, why);
	else
		m->n_registered--;
	m->stuck_news = true;
	HASH_DELETE(hh, m->peers, p);
	DL_DELETE(s->peers, p);
	free(p);
	s->group->n_peers--;
	s->agent->n_peers--;
	if (--s->n_peers == 0)
		ccm_membership_vacate(m, s);
}

void ccm_peer_accept(struct ccm *m, struct ccm_peer *p)
{
	struct ccm_membership *s = p->membership;
	struct ccm_group *g = s->group;
	char label[3 * WM_NAME_MAX];

	p->slot = ccm_slot_get(&g->peer_slots);
	if (p->stopped_ns)
		ccm_asleep_count(m, p, false);
	p->phase = CCM_PEER_ACCEPTED;
	reorder(s, p);
	m->stuck_news = true;
	s->n_accepted++;
	s->agent->n_accepted++;
	g->n_accepted++;
	m->n_accepted++;
	m->n_registered--;
	ccm_pairs_forget(m, s->agent->no);
	ccm_newcomer_accepted(m, s);
	ccm_stopped_tell(m, p);
	ccm_log(m, CCM_LOG_INFO, "%s is accepted in group %u", ccm_peer_label(p, label), g->id);
}

void ccm_reap(struct ccm *m)
{
	struct ccm_membership *s;
	struct ccm_agent *a;

	while ((s = m->reap) != NULL) {
		m->reap = s->next_reap;
		s->reaping = false;
		if (s->n_peers == 0)
			membership_free(m, s);
	}
	while ((a = m->dead) != NULL) {
		m->dead = a->next_dead;
		ccm_snapshot_free(a);
		free(a->failures);
		free(a);
	}
}
