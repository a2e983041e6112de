/* SPDX-License-Identifier: MIT
 *
 * A master that takes a run over: finds the run and its term, stores the snapshots of the agents,
 * and decides when enough agents have come. ccm_takeover.c acts on the snapshots.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* The recovery waits this long for messages that may follow: a peer that came through a new agent
 * may ask for outcomes, and an agent may send the rest of its snapshot. */
#define ASK_NS (UINT64_C(200) * CCM_NS_PER_MS)
/* If agents are still sending at the end of the recovery, it is extended for them by at most this
 * time. */
#define SPEAK_NS (UINT64_C(1000) * CCM_NS_PER_MS)
/* For this long, a run that newcomers have founded here gives way to a run that members bring. By
 * default, members wait for a master for about this time. */
#define YOUNG_NS (UINT64_C(60000) * CCM_NS_PER_MS)
/* When the master's host is cut off, newcomers on this host wait this long for the members on other
 * hosts. */
#define CUT_OFF_NS YOUNG_NS

struct ccm_snapshot *ccm_snapshot_get(struct ccm_agent *a)
{
	if (!a->snapshot)
		a->snapshot = cc_must_zalloc(1, sizeof *a->snapshot);
	return a->snapshot;
}

static void raw_free(struct ccm_raw *x)
{
	free(x->vote.peers);
	free(x->report.failed);
	free(x);
}

static void positions_free(struct ccm_snapshot *t)
{
	uint32_t i;

	for (i = 0; i < t->r.n_positions; i++)
		free(t->r.positions[i].plan.order);
	free(t->r.positions);
}

void ccm_snapshot_free(struct ccm_agent *a)
{
	struct ccm_snapshot *t = a->snapshot;
	struct ccm_raw *x, *next;
	struct ccm_lost_link *l;
	struct ccm_ask *q;

	if (!t)
		return;
	HASH_CLEAR(hh, t->started);
	DL_FOREACH_SAFE (t->ops, x, next)
		raw_free(x);
	while ((q = t->asks) != NULL) {
		t->asks = q->next;
		free(q);
	}
	while ((l = t->links) != NULL) {
		t->links = l->next;
		free(l);
	}
	free(t->r.view.own);
	free(t->r.view.lost);
	positions_free(t);
	free(t->r.outcomes);
	free(t);
	a->snapshot = NULL;
}

void ccm_snapshot_left(struct ccm_snapshot *t, const struct ccm_peer *p)
{
	t->n_prepared -= p->prepared;
	t->n_left_prepared += p->prepared;
	t->n_left_accepted += p->phase == CCM_PEER_ACCEPTED;
}

void ccm_resuming_set(struct ccm *m, struct ccm_agent *a, bool resuming)
{
	m->n_resuming += (uint32_t)resuming - (uint32_t)a->resuming;
	a->resuming = resuming;
}

/* ---- the run and its term ---- */

/* Is this master new? Then it has no members, has committed no round and has taken over no run. */
static bool is_fresh(const struct ccm *m)
{
	return !m->committed_here && m->n_accepted == 0 && !m->recovering && !m->recovered;
}

/* Is our run a young one? Newcomers have founded it since this master started, without knowing of
 * another run. They can begin again, but the members of another run cannot. Because anybody can
 * claim that another run exists, our run stays if several peers have already completed an
 * operation. */
static bool is_young(const struct ccm *m)
{
	if (m->n_accepted > 1 && m->ops_done > 0)
		return false;
	return cc_id_eq(&m->cfg.run, &m->born_run) && ccm_age(m->now, m->started_ns) < YOUNG_NS;
}

static void dismiss_newcomers(struct ccm *m, const struct ccm_agent *but)
{
	struct ccm_agent *x, *tmp;

	HASH_ITER (hh, m->agents, x, tmp)
		if (x != but && x->greeted && !(x->hello_deferred && cc_id_is_zero(&x->hello.run)))
			ccm_agent_kick(m, x, WIRE_MASTER_CONNECTION_FAILED,
				"this master takes over a run that it did not know before: connect "
				"again");
}

/* Takes over the run that `a` knows and whose master is gone. */
static void adopt(struct ccm *m, struct ccm_agent *a)
{
	char id[CC_ID_STR_SIZE];

	dismiss_newcomers(m, a);
	m->cfg.run = a->hello.run;
	m->restored = false;
	m->term = a->hello.term + 1;
	/* A new agent does not know the term, and an agent that is cut off may know only an old
	 * term. Every new term must be higher than any earlier term. */
	if (cc_id_is_zero(&a->hello.run_key)) {
		m->term += CCM_UNHEARD;
		if (m->term < m->cfg.first_number >> CCM_TERM_SHIFT)
			m->term = m->cfg.first_number >> CCM_TERM_SHIFT;
	}
	m->recovering = true;
	m->adopting = false;
	m->key_unknown = true;
	m->round.active = m->rewire = m->changed = false;
	ccm_log(m, CCM_LOG_NOTICE, "taking over run %s, term %llu", cc_id_str(&m->cfg.run, id),
		(unsigned long long)m->term);
}

static void refuse_stale(struct ccm *m, struct ccm_agent *a)
{
	ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED,
		"a newer master (term %llu) has taken this run over", (unsigned long long)m->stale);
}

static void become_stale(struct ccm *m, uint64_t term)
{
	struct ccm_agent *x, *tmp;

	ccm_log(m, CCM_LOG_ERR,
		"this master is stale: its term is %llu, but a newer master (term %llu) has taken "
		"the run over; it refuses every agent from now on: end it",
		(unsigned long long)m->term, (unsigned long long)term);
	ccm_journal_void(m); /* else this master would continue the run after a restart */
	m->stale = term;
	m->recovering = false;
	while (m->disconnected)
		ccm_agent_lost(m, m->disconnected, "a newer master has taken the run over");
	HASH_ITER (hh, m->agents, x, tmp) {
		if (x->greeted)
			refuse_stale(m, x);
		ccm_snapshot_free(x);
	}
}

static void release_blocked(struct ccm *m)
{
	struct ccm_agent *a;

	m->key_unknown = false;
	for (a = m->agents; a; a = a->hh.next) {
		if (!a->hello_deferred)
			continue;
		a->hello_deferred = false;
		cc_detect_pause(&a->life, m->now);
		ccm_agent_ack(m, a);
	}
}

/* Compares the run key and the term of an agent of our run with ours. Returns false if its term has
 * made us stale. */
static bool compare(struct ccm *m, struct ccm_agent *a)
{
	const struct wm_hello *h = &a->hello;
	bool stateless = cc_id_is_zero(&h->run_key), same;

	if (m->key_unknown && !stateless) {
		m->cfg.run_key = h->run_key;
		release_blocked(m);
	}
	same = cc_id_eq(&h->run_key, &m->cfg.run_key);
	if (same && m->recovering && m->restored && !m->restarted_run &&
		h->term >= m->term + m->acked)
		ccm_restore_outdated(m);
	if (same && h->term >= m->term && m->recovering && !m->restored)
		m->term = h->term + 1;
	if (same && h->term > m->term) {
		become_stale(m, h->term);
		return false;
	}
	a->knows_run = same || stateless;
	ccm_resuming_set(m, a, a->knows_run);
	return true;
}

/* Does our run give way to another run, which `h` names and whose members come? */
static bool gives_way(const struct ccm *m, const struct wm_hello *h)
{
	return !cc_id_eq(&h->run, &m->cfg.run) && !h->newcomers && !h->left && !is_fresh(m) &&
	       is_young(m);
}

/* Handles the run that `a` names. Returns the agent, which may be a new object; NULL if it has made
 * us stale. */
static struct ccm_agent *place_in_run(struct ccm *m, struct ccm_agent *a)
{
	if (gives_way(m, &a->hello)) {
		ccm_journal_void(m); /* the next master must not continue our run */
		dismiss_newcomers(m, a);
		a = ccm_yield_run(m, a);
	}
	if (!cc_id_eq(&a->hello.run, &m->cfg.run) && !a->hello.left && is_fresh(m))
		adopt(m, a);
	if (cc_id_eq(&a->hello.run, &m->cfg.run) && !compare(m, a))
		return NULL;
	return a;
}

void ccm_resume_hello(struct ccm *m, struct ccm_agent *a)
{
	if (m->stale) {
		refuse_stale(m, a);
		return;
	}
	if (!cc_id_is_zero(&a->hello.run))
		a = place_in_run(m, a);
	if (!a)
		return;
	if (m->recovering && !m->recover_ns && !(m->cut_off_ns && a->local))
		m->recover_ns = m->now;
	if (a->resuming && !cc_id_is_zero(&a->hello.run_key))
		ccm_agent_cut_half_open(m, a);
	/* Agents with state accept only their own run key. Until it is known, hellos are not
	 * answered. */
	a->hello_deferred = m->recovering ? m->key_unknown : m->adopting;
	if (!a->hello_deferred)
		ccm_agent_ack(m, a);
}

/* ---- storing the snapshots ---- */

/* Can peers of `a` be members of this run? A newcomer may have started a new agent first, so that
 * the agent's hello named no run. Members that come through this agent later know that they belong
 * to the run that our answer has named. */
static bool knows_run(const struct ccm_agent *a)
{
	return a->knows_run || cc_id_is_zero(&a->hello.run);
}

static void keep_newest(struct ccm_newest *x, uint64_t view_id, uint64_t floor, uint32_t world_size)
{
	if (view_id > x->view_id)
		*x = (struct ccm_newest){view_id, floor, world_size};
	else if (view_id == x->view_id && floor < x->lost_floor)
		x->lost_floor = floor;
}

const struct ccm_newest *ccm_newest_view(const struct ccm *m)
{
	return m->agents_newest.view_id || m->restored ? &m->agents_newest : &m->peers_newest;
}

bool ccm_resume_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j)
{
	bool stateless = cc_id_is_zero(&a->hello.run_key);
	char text[WM_TEXT_MAX];
	struct ccm_lost *gone;
	struct ccm_snapshot *t;
	struct ccm_peer *p;

	if (j->phase == WM_JOIN_NEW)
		return false;
	HASH_FIND(hh, m->gone, &j->peer, sizeof j->peer, gone);
	if (j->phase == WM_JOIN_ACCEPTED && (gone || !knows_run(a) || (m->restored && stateless))) {
		ccm_peer_stranger(m, a, &j->peer);
		return true;
	}
	ccm_agent_cut_older(m, a);
	if (ccm_membership_objection(m, a, j->group, text, sizeof text)) {
		ccm_join_refuse(m, a, &j->peer, WIRE_INVALID_USAGE, text);
		return true;
	}
	ccm_agent_claim(m, a);
	p = ccm_peer_new(m, a, j);
	t = ccm_snapshot_get(a);
	if (j->phase == WM_JOIN_PREPARED) {
		p->prepared = true;
		t->n_prepared++;
		m->n_prepared++;
		return true;
	}
	memcpy(p->ballots, j->ballots, sizeof p->ballots);
	p->believed = !stateless;
	p->view_id = j->view_id;
	keep_newest(&m->peers_newest, j->view_id, j->view_id, j->global);
	ccm_peer_accept(m, p);
	if (stateless)
		ccm_peer_restarted(m, p);
	return true;
}

void ccm_peer_restarted(struct ccm *m, struct ccm_peer *p)
{
	m->asked_ns = m->now;
	p->restarted = true;
}

static void keep_ballot_vote(struct ccm *m, struct ccm_agent *a, const struct wm_ballot_vote *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a vote");

	if (p)
		p->raw_votes[v->kind] = (struct ccm_raw_vote){true, v->number};
}

/* Kicks `a` and returns true if it has sent more than any honest agent would, even an agent that
 * does not know yet that a peer was refused. */
static bool says_too_much(struct ccm *m, struct ccm_agent *a, uint32_t n)
{
	if (n < (a->n_peers + 1) * CCM_PEER_OPS_MAX)
		return false;
	ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
		"protocol violation: more operations than its %u peers can have", a->n_peers);
	return true;
}

static void keep_op_vote(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v)
{
	struct ccm_snapshot *t = ccm_snapshot_get(a);
	struct ccm_raw *x = NULL, *first;

	if (says_too_much(m, a, t->n_ops++))
		return;
	if (v->seq)
		HASH_FIND(hh, t->started, &v->seq, sizeof v->seq, x);
	first = x;
	if (first && !(v->is_sync && first->vote.is_sync)) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a second vote for an attempt");
		return;
	}
	x = cc_must_zalloc(1, sizeof *x);
	x->vote = *v;
	x->vote.peers = cc_must_copy(v->peers, v->n_peers, sizeof *v->peers);
	DL_APPEND(t->ops, x);
	if (first) {
		x->more = first->more;
		first->more = x;
	}
	if (!v->seq || first)
		return;
	HASH_ADD(hh, t->started, vote.seq, sizeof x->vote.seq, x);
}

/* Adds the failed peers of r to `to`. Returns false if nothing else must be done for r. */
static bool add_failures(
	struct ccm *m, struct ccm_agent *a, struct wm_op_report *to, const struct wm_op_report *r)
{
	uint32_t n = to->n_failed + r->n_failed;

	if (r->n_failed == 0)
		return true;
	if (n > WM_PEERS_MAX) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: its reports on one operation name more failed peers "
			"than a group can have");
		return false;
	}
	to->failed = cc_must_extend(to->failed, to->n_failed, n, sizeof *to->failed);
	memcpy(to->failed + to->n_failed, r->failed, r->n_failed * sizeof *to->failed);
	to->n_failed = n;
	return true;
}

static void keep_op_report(struct ccm *m, struct ccm_agent *a, const struct wm_op_report *r)
{
	const struct ccm_snapshot *t = ccm_snapshot_get(a);
	struct wm_sync_failure *failed;
	struct ccm_raw *x;
	uint32_t n;

	HASH_FIND(hh, t->started, &r->seq, sizeof r->seq, x);
	if (!x || !add_failures(m, a, &x->report, r))
		return;
	x->reported = true;
	/* The part was done. Later reports are about peers that have failed since. */
	if (x->report.ok)
		return;
	failed = x->report.failed;
	n = x->report.n_failed;
	x->report = *r;
	x->report.failed = failed;
	x->report.n_failed = n;
}

static void keep_query(struct ccm *m, struct ccm_agent *a, const struct wm_op_query *q)
{
	struct ccm_snapshot *t = ccm_snapshot_get(a);
	struct ccm_ask *x;

	if (says_too_much(m, a, t->n_asks++))
		return;
	ccm_outcomes_asked(m, q);
	x = cc_must_zalloc(1, sizeof *x);
	x->q = *q;
	x->next = t->asks;
	t->asks = x;
}

/* Stores the loss of a link. An operation that continues may wait for data that was sent into this
 * link. */
static void keep_link(struct ccm *m, struct ccm_agent *a, const struct wm_link_lost *l)
{
	struct ccm_snapshot *t = ccm_snapshot_get(a);
	struct ccm_lost_link *x;

	if (says_too_much(m, a, t->n_links++))
		return;
	x = cc_must_zalloc(1, sizeof *x);
	x->l = *l;
	x->next = t->links;
	t->links = x;
}

static struct wm_ring_position *positions_copy(const struct wm_resume *r)
{
	struct wm_ring_position *ret =
		cc_must_copy(r->positions, r->n_positions, sizeof *r->positions);
	uint32_t i;

	for (i = 0; i < r->n_positions; i++)
		ret[i].plan.order = cc_must_copy(
			ret[i].plan.order, ret[i].plan.n_order, sizeof *ret[i].plan.order);
	return ret;
}

static void keep_resume(struct ccm *m, struct ccm_agent *a, const struct wm_resume *r)
{
	struct ccm_snapshot *t = ccm_snapshot_get(a);

	ccm_resuming_set(m, a, false);
	if (t->complete)
		return;
	t->complete = true;
	t->r = *r;
	t->r.view.own = cc_must_copy(r->view.own, r->view.n, sizeof *r->view.own);
	t->r.view.lost = cc_must_copy(r->view.lost, r->view.n_lost, sizeof *r->view.lost);
	t->r.positions = positions_copy(r);
	t->r.outcomes = cc_must_copy(r->outcomes, r->n_outcomes, sizeof *r->outcomes);
	if (a->n_accepted > 0)
		ccm_ballot_raise(m, r->ballots);
	/* An agent that has not proved that it was in the run has no other state. */
	if (!a->knows_run || cc_id_is_zero(&a->hello.run_key))
		return;
	t->proven = true;
	keep_newest(&m->agents_newest, r->view.view_id, r->view.lost_floor, r->view.global);
	ccm_snapshot_learn(m, a);
}

bool ccm_resume_msg(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg)
{
	if (a->resuming && msg->type != WM_HEARTBEAT)
		m->said_ns = m->now;
	switch (msg->type) {
	case WM_BALLOT_VOTE:
		keep_ballot_vote(m, a, &msg->u.ballot_vote);
		return true;
	case WM_OP_VOTE:
		keep_op_vote(m, a, &msg->u.op_vote);
		return true;
	case WM_OP_REPORT:
		keep_op_report(m, a, &msg->u.op_report);
		return true;
	case WM_OP_QUERY:
		keep_query(m, a, &msg->u.op_query);
		return true;
	case WM_LINK_LOST:
		keep_link(m, a, &msg->u.link_lost);
		return true;
	case WM_RESUME:
		keep_resume(m, a, &msg->u.resume);
		return true;
	case WM_ROUND_REPORT: /* the round has ended with its master */
		return true;
	default:
		return false;
	}
}

/* ---- is the recovery complete? ---- */

/* Can a round after m->committed have been committed? The agents of such a round had reported that
 * they are ready, and may have received the commit or not. The round was not committed if one of
 * them had not reported, or if all of them are here and do not know of a commit. Agents that have
 * died may have reported, too. If there were two such rounds and the master dropped one in favour
 * of the other, the function does not find out which one was dropped. */
static bool in_doubt(const struct ccm *m)
{
	uint64_t last = m->committed, here = 0, others = 0;
	const struct ccm_agent *a;
	const struct ccm_snapshot *t;
	bool aborted_round = false;
	uint32_t peers = UINT32_MAX; /* not known */

	for (a = m->agents; a; a = a->hh.next)
		if (a->snapshot && a->snapshot->complete && a->snapshot->r.prepared > last)
			last = a->snapshot->r.prepared;
	if (last == m->committed)
		return false;
	for (a = m->agents; a; a = a->hh.next) {
		t = a->snapshot;
		if (!t || !t->complete)
			continue;
		aborted_round |= t->r.aborted_round == last;
		if (t->r.prepared != last) {
			others += t->r.prepared > m->committed;
			continue;
		}
		peers = t->r.prepared_peers;
		here += a->n_accepted + t->n_prepared + t->n_left_accepted + t->n_left_prepared;
	}
	return others > 0 || (!aborted_round && here < peers);
}

/* Counts the peers of `a` that are members of the run, as the merged snapshots show. */
static uint32_t count_back(const struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_snapshot *t = a->snapshot;
	uint32_t n;

	n = a->n_accepted - ccm_lost_count(m, a);
	if (t && t->complete && t->r.prepared == m->ring_epoch && !ccm_prepared_lost(m, a))
		n += t->n_prepared + t->n_left_prepared;
	return n;
}

void ccm_returned(const struct ccm *m, struct ccm_returned *y)
{
	const struct ccm_newest *x = ccm_newest_view(m);
	const struct ccm_agent *a;

	*y = (struct ccm_returned){.expected = x->world_size, .back = m->n_left};
	for (a = m->agents; a; a = a->hh.next)
		y->back += count_back(m, a);
	y->doubt = in_doubt(m);
	if (m->restored && x->view_id <= m->restored_view_id) {
		y->expected = m->n_accepted + m->n_left;
		y->doubt = false; /* a commit is in the journal before it is sent */
	}
}

/* Are too few peers here, whatever the snapshots say? This is checked first, because ccm_returned
 * looks at every agent. */
static bool too_few(const struct ccm *m)
{
	return !m->restored &&
	       m->n_accepted + m->n_prepared + m->n_left < ccm_newest_view(m)->world_size;
}

static bool is_late(const struct ccm *m)
{
	return m->recover_ns && ccm_age(m->now, m->recover_ns) > m->cfg.recovery_ms * CCM_NS_PER_MS;
}

static bool more_follows(const struct ccm *m)
{
	return (m->asked_ns && ccm_age(m->now, m->asked_ns) < ASK_NS) ||
	       (m->said_ns && m->n_resuming > 0 && ccm_age(m->now, m->said_ns) < ASK_NS);
}

static bool enough(const struct ccm *m)
{
	struct ccm_returned y;

	if (!m->recover_ns)
		return false;
	if (is_late(m))
		return !more_follows(m) || ccm_age(m->now, m->recover_ns) >
						   m->cfg.recovery_ms * CCM_NS_PER_MS + SPEAK_NS;
	if (m->n_resuming > 0 || m->key_unknown || more_follows(m) || too_few(m))
		return false;
	ccm_returned(m, &y);
	return y.expected > 0 && y.back >= y.expected && !y.doubt;
}

/* Refuses all agents if at most half of the run has come, because the others may be with another
 * master. Of two masters, at most one has more than half of the run. The refused agents look for
 * that master, and tell it the higher term. This is done only once, because there may be no other
 * master. */
static bool redirect(struct ccm *m)
{
	struct ccm_agent *a, *tmp;
	char text[WM_TEXT_MAX];
	struct ccm_returned y;

	ccm_returned(m, &y);
	if (m->redirected || !is_late(m) || y.expected == 0 || 2 * y.back > y.expected)
		return false;
	m->redirected = true;
	m->recover_ns = 0; /* starts again when an agent comes back */
	ccm_print(text, sizeof text,
		"only %u of the run's %u peers have come to this master: there may be another "
		"master",
		y.back, y.expected);
	ccm_log(m, CCM_LOG_WARNING, "%s; the agents must look for it", text);
	HASH_ITER (hh, m->agents, a, tmp)
		if (a->greeted)
			ccm_agent_redirect(m, a, text);
	return true;
}

/* The first call disconnects remote agents; later calls do so only within a minute after the first
 * one, because one host whose connection breaks again and again must not keep newcomers away for
 * ever. */
void ccm_resume_cut_off(struct ccm *m)
{
	struct ccm_agent *a, *tmp;

	if (m->cut_off_ns && ccm_age(m->now, m->cut_off_ns) > CUT_OFF_NS)
		return;
	if (!m->cut_off_ns)
		m->cut_off_ns = m->now;
	ccm_log(m, CCM_LOG_WARNING,
		"the master has received nothing from remote hosts for %.1f s during the takeover "
		"and assumes that its own network is down: remote agents must connect again",
		(double)ccm_age(m->now, m->heard_ns) / 1e9);
	HASH_ITER (hh, m->agents, a, tmp) {
		if (!a->greeted || a->local)
			continue;
		ccm_close(m, a->conn,
			"the master's network was down: every agent must connect again");
		ccm_agent_disconnected(m, a, "the master's network was down");
	}
	m->recover_ns = 0; /* starts again when an agent comes back */
}

static void first_step(struct ccm *m)
{
	m->born_ns = m->now;
	if (!m->started_ns)
		m->started_ns = m->now;
	ccm_restore_begin(m);
	m->adopting = m->cfg.adopt_ms > 0 && !m->restored;
}

/* After this host was cut off while recovering: are agents here again, or is the wait for them
 * over? */
static bool hears_again(const struct ccm *m)
{
	return m->recovering && m->cut_off_ns && m->agents &&
	       (m->n_accepted > m->n_disconnected || ccm_age(m->now, m->cut_off_ns) > CUT_OFF_NS);
}

void ccm_resume_step(struct ccm *m)
{
	if (!m->born_ns)
		first_step(m);
	if (!m->recover_ns && hears_again(m))
		m->recover_ns = m->now;
	if (m->adopting && ccm_age(m->now, m->born_ns) >= m->cfg.adopt_ms * CCM_NS_PER_MS) {
		m->adopting = false;
		if (!m->recovering)
			release_blocked(m);
	}
	if (m->recovering && m->key_unknown && m->recover_ns &&
		ccm_age(m->now, m->recover_ns) > m->cfg.recovery_ms * CCM_NS_PER_MS / 2)
		release_blocked(m);
}

void ccm_resume_end(struct ccm *m)
{
	if (m->key_unknown)
		release_blocked(m);
	ccm_takeover(m);
}

bool ccm_resume_settle(struct ccm *m)
{
	if (!m->recovering)
		return true;
	if (!m->look)
		return false;
	m->look = false;
	if (!enough(m) || redirect(m))
		return false;
	ccm_resume_end(m);
	return true;
}
