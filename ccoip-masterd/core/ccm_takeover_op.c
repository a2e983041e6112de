/* SPDX-License-Identifier: MIT
 *
 * Outcomes of the attempts that were in progress when the last master died. They follow from the
 * snapshots of all agents, and are decided before anything is sent.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

/* The votes and the report of one agent for one attempt. */
struct entry {
	struct ccm_agent *agent;
	struct ccm_raw *raw;
};

static int by_seq(const void *x, const void *y)
{
	const struct ccm_ended *a = x, *b = y;

	return (a->end.seq > b->end.seq) - (a->end.seq < b->end.seq);
}

/* Outcomes are stored for the whole run, because agents report outcomes without naming groups. One
 * agent or peer that knows an outcome is enough, because the last master had sent it. */
static void learn(struct ccm *m, const struct wm_outcome *v, uint32_t n, const struct cc_id *peer)
{
	uint32_t i;

	if (n == 0)
		return;
	m->ended = cc_must_extend(m->ended, m->n_ended, m->n_ended + n, sizeof *m->ended);
	for (i = 0; i < n; i++) {
		ccm_at_least(&m->last_seq, v[i].seq);
		m->ended[m->n_ended++] = (struct ccm_ended){v[i], *peer};
	}
}

void ccm_outcomes_learn(struct ccm *m, const struct wm_resume *r)
{
	static const struct cc_id nobody;

	learn(m, r->outcomes, r->n_outcomes, &nobody);
}

void ccm_outcomes_asked(struct ccm *m, const struct wm_op_query *q)
{
	struct wm_outcome v = {.code = WIRE_SUCCESS};
	uint32_t i;

	for (i = q->n - q->n_succeeded; i < q->n; i++) {
		v.seq = q->seqs[i];
		learn(m, &v, 1, &q->peer);
	}
}

void ccm_outcomes_settle(struct ccm *m)
{
	const struct ccm_ended *x;
	const struct ccm_peer *p;
	uint32_t i, n = 0;

	for (i = 0; i < m->n_ended; i++) {
		x = &m->ended[i];
		p = ccm_peer_find(m, &x->peer);
		if (cc_id_is_zero(&x->peer) || (p && p->phase == CCM_PEER_ACCEPTED))
			m->ended[n++] = *x;
	}
	m->n_ended = n;
	if (n > 0)
		qsort(m->ended, n, sizeof *m->ended, by_seq);
}

/* Was the group told that the attempt has failed? */
static bool has_failed(const struct ccm_group *g, uint64_t seq)
{
	uint32_t i;

	for (i = 0; i < WM_OUTCOMES_MAX; i++)
		if (g->ended[i].seq == seq && seq > 0)
			return g->ended[i].code != WIRE_SUCCESS;
	return false;
}

void ccm_outcomes_compare(struct ccm *m, struct ccm_agent *a, const struct wm_resume *r)
{
	struct ccm_peer *p, *next;
	struct ccm_membership *s;
	bool conflict;
	uint32_t i;

	DL_FOREACH2 (a->memberships, s, next_a) {
		conflict = false;
		for (i = 0; i < r->n_outcomes; i++)
			conflict |= r->outcomes[i].code == WIRE_SUCCESS &&
				    has_failed(s->group, r->outcomes[i].seq);
		DL_FOREACH_SAFE (s->peers, p, next)
			if (conflict && p->phase == CCM_PEER_ACCEPTED)
				ccm_peer_kick(
					m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_CONTRADICTS);
	}
}

bool ccm_query_contradicts(const struct ccm_peer *p, const struct wm_op_query *q)
{
	uint32_t i;

	for (i = q->n - q->n_succeeded; i < q->n; i++)
		if (has_failed(p->membership->group, q->seqs[i]))
			return true;
	return false;
}

static const struct wm_outcome *outcome_find(const struct ccm *m, uint64_t seq)
{
	struct ccm_ended key = {.end.seq = seq}, *x;

	x = m->n_ended ? bsearch(&key, m->ended, m->n_ended, sizeof key, by_seq) : NULL;
	return x ? &x->end : NULL;
}

/* Returns the outcome of the attempt, or NULL if it is unknown. */
static const struct wm_outcome *known_outcome(
	const struct ccm *m, const struct ccm_group *g, uint64_t seq)
{
	uint32_t i;

	for (i = 0; g && i < WM_OUTCOMES_MAX; i++)
		if (g->ended[i].seq == seq)
			return &g->ended[i];
	return outcome_find(m, seq);
}

bool ccm_outcome_is_known(const struct ccm *m, const struct ccm_group *g, uint64_t seq)
{
	return known_outcome(m, g, seq) != NULL;
}

uint32_t ccm_outcome_of(const struct ccm *m, const struct ccm_group *g, uint64_t seq)
{
	const struct wm_outcome *x = known_outcome(m, g, seq);

	return x ? x->code : WIRE_RANK_CONNECTION_LOST;
}

/* Are members of g missing that this master has not seen leave? They are with another master, or
 * dead. */
static bool misses_some(const struct ccm_group *g)
{
	return g->n_lost_ever > g->n_left || g->known_world_size > g->n_accepted + g->n_left ||
	       g->n_disconnected > 0;
}

bool ccm_group_has_lost(const struct ccm_group *g)
{
	return g->n_left > 0 || misses_some(g);
}

static int by_attempt(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	uint64_t i = a->raw->vote.seq, k = b->raw->vote.seq;

	if (i != k)
		return i < k ? -1 : 1;
	return (a->agent->no > b->agent->no) - (a->agent->no < b->agent->no);
}

static bool same_attempt(const struct wm_op_vote *v, const struct wm_op_vote *w)
{
	return v->group == w->group && v->is_sync == w->is_sync && v->tag == w->tag &&
	       (v->is_sync || v->generation == w->generation) && (w->seq == 0 || w->seq == v->seq);
}

static bool is_in(
	const struct ccm *m, const struct ccm_agent *a, const struct cc_id *peer, uint32_t group)
{
	const struct ccm_peer *p = ccm_peer_find(m, peer);

	return p && p->membership->agent == a && p->phase == CCM_PEER_ACCEPTED &&
	       p->membership->group->id == group;
}

/* Counts the peers of `a` that are members of the group and have voted for the attempt. */
static uint32_t voters_in(const struct ccm *m, const struct ccm_agent *a, const struct ccm_raw *x)
{
	uint32_t i, n = 0;

	for (; x; x = x->more)
		for (i = 0; i < x->vote.n_peers; i++)
			n += is_in(m, a, &x->vote.peers[i], x->vote.group);
	return n;
}

/* Calls fn for each vote for the attempt v from an agent of the group that does not know of its
 * start. Votes that know of a loss after the start are for the next attempt. */
static void each_unstarted(struct ccm *m, struct ccm_group *g, const struct wm_op_vote *v,
	void (*fn)(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg), void *arg)
{
	struct ccm_membership *s;
	struct ccm_raw *x;

	DL_FOREACH2 (g->memberships, s, next_g) {
		if (!s->agent->snapshot)
			continue;
		DL_FOREACH (s->agent->snapshot->ops, x)
			if (x->vote.seq == 0 && !x->used && same_attempt(v, &x->vote) &&
				x->vote.generation <= v->generation)
				fn(m, s->agent, x, arg);
	}
}

static void count_late(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	*(uint32_t *)arg += voters_in(m, a, x);
}

static void collect(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	struct ccm_op **o = arg, *got = ccm_op_collect(m, a, &x->vote);

	if (got)
		*o = got;
}

static void collect_started(struct ccm *m, const struct entry *e, struct ccm_op **o)
{
	const struct ccm_membership *s = ccm_membership_of(m, e->agent, e->raw->vote.group);
	struct ccm_raw *x;

	for (x = e->raw; x; x = x->more)
		collect(m, e->agent, x, o);
	if (*o && s && s->slot < (*o)->n_parts)
		(*o)->parts[s->slot].start_sent = true;
}

static void start_late(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	struct ccm_op *o = *(struct ccm_op **)arg;
	const struct ccm_membership *s = ccm_membership_of(m, a, x->vote.group);

	x->used = true;
	/* The agent's peers may have been kicked, or their votes may have differed. A
	 * synchronization sends its start after its kicks. */
	if (o->sync || voters_in(m, a, x) == 0 || s->slot >= o->n_parts ||
		o->parts[s->slot].start_sent)
		return;
	o->parts[s->slot].start_sent = true;
	ccm_op_tell_start(m, o, a);
}

/* Does p ask for the outcome of the attempt? Then it came through a new agent, to this master or
 * the last one, and has the whole result. */
static bool asks_for(const struct ccm_peer *p, uint64_t seq)
{
	const struct ccm_snapshot *t = p->membership->agent->snapshot;
	const struct ccm_ask *q;
	uint32_t i;

	for (q = t && p->phase == CCM_PEER_ACCEPTED ? t->asks : NULL; q; q = q->next)
		for (i = 0; cc_id_eq(&q->q.peer, &p->id) && i < q->q.n; i++)
			if (q->q.seqs[i] == seq)
				return true;
	return false;
}

static uint32_t count_asking(const struct ccm_group *g, uint64_t seq)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t n = 0;

	DL_FOREACH2 (g->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			n += asks_for(p, seq);
	return n;
}

static bool same_elected(const struct wm_op_vote *v, const struct wm_op_vote *w)
{
	return v->elected.revision == w->elected.revision &&
	       v->elected.content.hi == w->elected.content.hi &&
	       v->elected.content.lo == w->elected.content.lo;
}

/* Does x offer the elected contents, which v names? */
static bool has_candidate(const struct wm_op_vote *v, const struct ccm_raw *x)
{
	return x->vote.sync.strategy != WM_STRATEGY_RECEIVE_ONLY &&
	       x->vote.sync.content.hi == v->elected.content.hi &&
	       x->vote.sync.content.lo == v->elected.content.lo;
}

/* Does a peer of e have the elected contents, and does it send them? */
static bool holds(const struct entry *e)
{
	const struct ccm_raw *x;
	bool all = e->raw->reported && e->raw->report.ok;

	for (x = e->raw; x; x = x->more)
		if (has_candidate(&e->raw->vote, x) ||
			(all && x->vote.sync.strategy != WM_STRATEGY_RECEIVE_ONLY))
			return true;
	return false;
}

struct late_holder {
	const struct wm_op_vote *v;
	bool found;
};

static void look_late(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	struct late_holder *h = arg;

	h->found |= has_candidate(h->v, x) && voters_in(m, a, x) > 0;
}

/* Can the synchronization continue? All agents must have received the same start, and some peer
 * must be able to send the contents: a peer in e, or a peer that does not know of the start and
 * begins now. */
static bool can_sync(struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n)
{
	struct late_holder h = {.v = &e->raw->vote};
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!same_elected(h.v, &e[i].raw->vote))
			return false;
		h.found |= holds(&e[i]);
	}
	if (!h.found)
		each_unstarted(m, g, h.v, look_late, &h);
	return h.found;
}

/* Can the attempt continue? Every member must be here, and must have voted or, in a
 * synchronization, need nothing more. No attempt of an all-reduce spans a loss. */
static bool can_go_on(struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n)
{
	const struct wm_op_vote *v = &e[0].raw->vote;
	uint32_t i, voters = v->is_sync ? count_asking(g, v->seq) : 0;

	if ((!v->is_sync && v->generation != g->generation) || ccm_group_has_lost(g) ||
		(v->is_sync && !can_sync(m, g, e, n)))
		return false;
	for (i = 0; i < n; i++) {
		if (!same_attempt(v, &e[i].raw->vote))
			return false;
		voters += voters_in(m, e[i].agent, e[i].raw);
	}
	each_unstarted(m, g, v, count_late, &voters);
	return voters == g->n_accepted;
}

static struct ccm_group *group_of(const struct ccm *m, const struct entry *e)
{
	struct ccm_group *g;

	HASH_FIND(hh, m->groups, &e->raw->vote.group, sizeof e->raw->vote.group, g);
	return g;
}

/* Returns true and sets *code if the end of an attempt is known here. If the group expects a later
 * revision than the one that v elected, this synchronization was done: agents receive the next
 * revision before the success, and the journal before the agents. */
static bool has_ended(
	const struct ccm *m, const struct ccm_group *g, const struct wm_op_vote *v, uint32_t *code)
{
	const struct wm_outcome *x = outcome_find(m, v->seq);

	*code = x ? x->code : WIRE_SUCCESS;
	return x || (g && v->is_sync && ccm_revision_of(g) > v->elected.revision);
}

/* Interrupts the group of an attempt that cannot continue, or that was aborted because of a loss
 * which the members do not know. Everything that the group does fails, as after any failed attempt.
 */
static void judge(struct ccm *m, const struct entry *e, uint32_t n)
{
	const struct wm_op_vote *v = &e->raw->vote;
	struct ccm_group *g = group_of(m, e);
	bool ended, unheard;
	uint32_t code;

	if (!g)
		return;
	ended = has_ended(m, g, v, &code);
	unheard = v->generation == g->generation;
	if (ended && code == WIRE_SUCCESS) {
		if (v->is_sync) /* before the view is sent */
			ccm_revision_raise(m, g->id, v->elected.revision + 1);
	} else if (ended && code == WIRE_RANK_CONNECTION_LOST && unheard) {
		ccm_group_interrupt(m, g,
			"an operation was aborted because of a loss that no remaining agent knows");
	} else if (!ended && !can_go_on(m, g, e, n) && (v->is_sync || unheard)) {
		ccm_group_interrupt(m, g,
			"the master died, and not all peers that had voted for an operation came "
			"back");
	}
}

/* Lets o continue without the peers that ask for its outcome. */
static void ignore_missing(struct ccm_group *g, struct ccm_op *o, uint64_t seq)
{
	struct ccm_membership *s;
	struct ccm_peer *p;

	ccm_op_room(o);
	DL_FOREACH2 (g->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			if (asks_for(p, seq) && !ccm_op_voted(o, p))
				o->sync->sync_peers[p->slot].disconnected = true;
}

static void refuse_late(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	const struct ccm_op *o = arg;

	x->used = true;
	ccm_op_refuse(m, a, &x->vote, o->abort_code, o->text);
}

/* Ends an attempt whose votes disagree or contain a refusal. Hosts that began speculatively do not
 * know of this. */
static void fail_evicted(
	struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n, struct ccm_op *o)
{
	const struct wm_op_vote *v = &e->raw->vote;
	uint32_t i;

	for (i = 0; i < n; i++)
		ccm_op_tell_end(m, e[i].agent, &e[i].raw->vote, o->abort_code, o->text);
	each_unstarted(m, g, v, refuse_late, o);
	ccm_outcome_note(g, v->seq, o->abort_code);
	ccm_op_drop(m, o);
}

/* Continues the attempt. Returns false if some of these votes cannot count; nothing was sent then.
 */
static bool go_on(struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n)
{
	struct ccm_op *o = NULL;
	uint32_t i;

	for (i = 0; i < n; i++)
		collect_started(m, &e[i], &o);
	each_unstarted(m, g, &e->raw->vote, collect, &o);
	if (o && o->abort_code) {
		fail_evicted(m, g, e, n, o);
		return true;
	}
	if (o && o->sync)
		ignore_missing(g, o, e->raw->vote.seq);
	if (o) {
		o->route = (enum cc_algo)e->raw->vote.route;
		o->epoch = e->raw->vote.epoch;
	}
	if (!o || !ccm_op_continue(m, o, e->raw->vote.seq))
		return false;
	each_unstarted(m, g, &e->raw->vote, start_late, &o);
	if (o->sync)
		ccm_sync_readopt(m, o, &e->raw->vote);
	for (i = 0; i < n; i++)
		if (e[i].raw->reported)
			ccm_op_report(m, e[i].agent, &e[i].raw->report);
	return true;
}

/* Continues or ends an attempt that n agents report as started. */
static void resolve(struct ccm *m, const struct entry *e, uint32_t n)
{
	const struct wm_op_vote *v = &e->raw->vote;
	struct ccm_group *g = group_of(m, e);
	const char *text = CCM_FAILED_UNHEARD;
	uint32_t code, i;

	if (!has_ended(m, g, v, &code)) {
		if (g && can_go_on(m, g, e, n) && go_on(m, g, e, n))
			return;
		code = WIRE_RANK_CONNECTION_LOST;
	}
	if (code == WIRE_RANK_CONNECTION_LOST) {
		text = g && g->loss[0] ? g->loss : "the previous master aborted the operation";
		ccm_loss_announce(m); /* a peer that tries again must know of the loss */
	}
	for (i = 0; i < n; i++)
		ccm_op_tell_end(m, e[i].agent, &e[i].raw->vote, code, text);
	if (g)
		ccm_outcome_note(g, v->seq, code);
}

/* Calls fn for each attempt that agents report as started, in the order of their starts. An agent
 * whose peers in the attempt are no members any more does not count. The members may have continued
 * without it, and may have been told another outcome. */
static void each_started(
	struct ccm *m, void (*fn)(struct ccm *m, const struct entry *e, uint32_t n))
{
	struct ccm_agent *a;
	struct ccm_raw *x;
	struct entry *e;
	uint32_t n = 0, i, k;

	for (a = m->agents; a; a = a->hh.next)
		n += a->snapshot ? HASH_COUNT(a->snapshot->started) : 0;
	e = cc_must_zalloc(n, sizeof *e);
	n = 0;
	for (a = m->agents; a; a = a->hh.next)
		for (x = a->snapshot ? a->snapshot->started : NULL; x; x = x->hh.next)
			if (voters_in(m, a, x) > 0)
				e[n++] = (struct entry){a, x};
	qsort(e, n, sizeof *e, by_attempt);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && e[k].raw->vote.seq == e[i].raw->vote.seq; k++)
			;
		fn(m, &e[i], k - i);
	}
	free(e);
}

/* Have all members of g come through new agents? */
static bool is_all_new(const struct ccm_group *g)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (g->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			if (p->phase == CCM_PEER_ACCEPTED && !p->restarted)
				return false;
	return true;
}

/* Forgets the group's revision if it is in doubt: an attempt of q may have been a synchronization,
 * nobody here knows its outcome, and the last master may have counted it or not. */
static void doubt_revision(struct ccm *m, const struct wm_op_query *q)
{
	const struct ccm_peer *p = ccm_peer_find(m, &q->peer);
	struct ccm_group *g = p ? p->membership->group : NULL;
	uint32_t i;

	for (i = 0; g && i + q->n_succeeded < q->n; i++)
		if (!known_outcome(m, g, q->seqs[i]) && is_all_new(g))
			ccm_revision_forget(m, g);
}

void ccm_takeover_op_judge(struct ccm *m)
{
	const struct ccm_agent *a;
	const struct ccm_ask *q;

	each_started(m, judge);
	for (a = m->agents; a; a = a->hh.next)
		for (q = a->snapshot ? a->snapshot->asks : NULL; q; q = q->next)
			doubt_revision(m, &q->q);
}

void ccm_takeover_op_resolve(struct ccm *m)
{
	each_started(m, resolve);
}
