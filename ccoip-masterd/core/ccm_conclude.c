/* SPDX-License-Identifier: MIT
 *
 * The end of a recovery: from what the agents have said follows where the run stands. Nobody sees
 * an error when nobody but the master died.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* So many numbers are left out: others may have used them. Masters that take over at the same time
 * leave different ones. */
static uint64_t unheard(const struct ccm *m)
{
	return CCM_UNHEARD * (1 + (ccm_hash(&m->born_run, sizeof m->born_run) & 0xffff));
}

/* What one agent says of one attempt. */
struct entry {
	struct ccm_agent *agent;
	struct ccm_raw *raw;
};

static void at_least(uint64_t *v, uint64_t to)
{
	if (to > *v && to < CCM_NUMBER_MAX)
		*v = to;
}

/* ---- the highest of everything ---- */

static void take_worlds(struct ccm *m, struct ccm_agent *a)
{
	const struct wm_resume *r = &a->told->r;
	struct ccm_seat *s;
	uint32_t i;

	for (i = 0; i < r->world.n; i++) {
		at_least(&m->last_loss, r->world.own[i].losses);
		s = ccm_seat_of(m, a, r->world.own[i].group);
		if (!s)
			continue;
		at_least(&s->group->losses, r->world.own[i].losses);
		if (r->world.version < s->group->known_version)
			continue;
		s->group->known_version = r->world.version;
		s->group->known_world = r->world.own[i].world;
	}
}

static void take_resume(struct ccm *m, struct ccm_agent *a)
{
	const struct wm_resume *r = &a->told->r;
	uint32_t i;

	at_least(&m->epoch, r->epoch);
	at_least(&m->committed, r->round);
	at_least(&m->wired, r->wired);
	at_least(&m->last_round, r->round);
	at_least(&m->last_round, r->prepared);
	at_least(&m->last_seq, r->last_seq);
	at_least(&m->world_version, r->world.version);
	at_least(&m->topo_turn, r->topo_turn);
	/* An agent that has no state knows the turn from its peers, but not the answer. */
	if (r->pending_turn >= m->pending_turn && r->epoch > 0)
		m->pending = r->pending;
	at_least(&m->pending_turn, r->pending_turn);
	for (i = 0; i < r->n_outcomes; i++)
		at_least(&m->last_seq, r->outcomes[i].seq);
	take_worlds(m, a);
}

static void take_votes(struct ccm *m, const struct ccm_agent *a)
{
	const struct ccm_raw *x;
	const struct ccm_ask *q;

	DL_FOREACH (a->told->ops, x) {
		at_least(&m->last_seq, x->vote.seq);
		at_least(&m->last_loss, x->vote.losses);
	}
	for (q = a->told->asks; q; q = q->next)
		ccm_seqs_learn(m, &q->q);
}

static int by_seq(const void *x, const void *y)
{
	const struct wm_outcome *a = x, *b = y;

	return (a->seq > b->seq) - (a->seq < b->seq);
}

/* The outcomes that agents know, and we ourselves if we stood still: run-wide, for agents do not
 * say of which group. */
static void take_outcomes(struct ccm *m)
{
	struct wm_outcome *own = m->ended;
	const struct ccm_agent *a;
	uint32_t n = m->n_ended, i;

	for (a = m->agents; a; a = a->hh.next)
		n += a->told ? a->told->r.n_outcomes : 0;
	m->ended = ccm_calloc(m, n, sizeof *m->ended);
	if (!m->ended)
		m->n_ended = 0;
	else if (m->n_ended > 0)
		memcpy(m->ended, own, m->n_ended * sizeof *own);
	free(own);
	if (!m->ended)
		return;
	for (a = m->agents; a; a = a->hh.next)
		for (i = 0; a->told && i < a->told->r.n_outcomes; i++)
			m->ended[m->n_ended++] = a->told->r.outcomes[i];
	qsort(m->ended, n, sizeof *m->ended, by_seq);
}

static const struct wm_outcome *outcome_find(const struct ccm *m, uint64_t seq)
{
	struct wm_outcome key = {.seq = seq};

	return m->n_ended ? bsearch(&key, m->ended, m->n_ended, sizeof key, by_seq) : NULL;
}

/* NULL: how the attempt has ended is not known. */
static const struct wm_outcome *known_outcome(
	const struct ccm *m, const struct ccm_group *g, uint64_t seq)
{
	uint32_t i;

	for (i = 0; g && i < WM_OUTCOMES_MAX; i++)
		if (g->ended[i].seq == seq)
			return &g->ended[i];
	return outcome_find(m, seq);
}

uint32_t ccm_outcome_of(const struct ccm *m, const struct ccm_group *g, uint64_t seq)
{
	const struct wm_outcome *x = known_outcome(m, g, seq);

	return x ? x->code : WIRE_RANK_CONNECTION_LOST;
}

static void take_all(struct ccm *m)
{
	struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next) {
		if (!a->told)
			continue;
		take_resume(m, a);
		take_votes(m, a);
	}
	if (!m->restored) {
		at_least(&m->last_loss, m->cfg.first_number);
		if (m->epoch == 0)
			at_least(&m->last_seq, m->cfg.first_number);
	}
	take_outcomes(m);
}

/* ---- members ---- */

static void drop_behind(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_peer *p, *next;
	struct ccm_seat *s;

	DL_FOREACH2 (a->seats, s, next_a)
		DL_FOREACH_SAFE (s->peers, p, next)
			if (p->believed)
				ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST,
					"the peer was declared lost by the master before: connect "
					"anew");
}

/* One vote may have ended since, unheard. */
static bool is_overtaken(uint64_t told, uint64_t turn)
{
	return told > 0 && told + 1 < turn;
}

/* The run has had votes that p, whose agent has no state, was not in: every member is in each, so p
 * was lost before, and has not been told. */
static void drop_overtaken(struct ccm *m)
{
	static const char *const why =
		"the peer was declared lost by the master before: connect anew";
	struct ccm_peer *p, *tmp;

	if (m->restored)
		return;
	HASH_ITER (hh, m->peers, p, tmp) {
		if (p->phase != CCM_PEER_ACCEPTED || !p->restarted ||
			(!is_overtaken(p->told_topo, m->topo_turn) &&
				!is_overtaken(p->told_pending, m->pending_turn)))
			continue;
		if (p->seat->agent->absent)
			ccm_absent_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", why);
	}
}

/* Its newcomers are members if the round was committed; it has not heard of that. */
static void promote(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_peer *p, *next;
	struct ccm_seat *s;

	DL_FOREACH2 (a->seats, s, next_a) {
		DL_FOREACH_SAFE (s->peers, p, next) {
			if (!p->prepared)
				continue;
			p->prepared = false;
			ccm_peer_accept(m, p);
			ccm_seat_reorder(s, p);
		}
	}
	a->promoted = true;
}

/* Members that nobody knows anything of: another master may have them, or the dead. */
static bool misses_some(const struct ccm_group *g)
{
	return g->n_lost_ever > g->n_left || g->known_world > g->n_accepted + g->n_left ||
	       g->n_absent > 0;
}

static bool has_lost(const struct ccm_group *g)
{
	return g->n_left > 0 || misses_some(g);
}

/* Nobody who is here knows how many peers g had: more may come, too late. */
static bool is_unknown(const struct ccm *m, const struct ccm_group *g)
{
	return !m->restored && g->known_version == 0;
}

static void settle_members(struct ccm *m)
{
	struct ccm_agent *a, *next;
	char text[WM_TEXT_MAX];
	struct ccm_tally y;
	struct ccm_group *g;

	ccm_tally(m, &y);
	for (a = m->agents; a; a = a->hh.next) {
		if (ccm_told_behind(m, a->told, &y))
			drop_behind(m, a);
		if (a->told && a->told->complete && a->told->r.prepared &&
			a->told->r.prepared == m->wired && a->told->r.wired < m->wired)
			promote(m, a);
	}
	drop_overtaken(m);
	DL_FOREACH_SAFE2 (m->absent, a, next, next_ab)
		if (a->restored)
			ccm_agent_lost(m, a, "it did not come back after the master's restart");
	for (g = m->groups; g; g = g->hh.next) {
		if (g->interrupted) {
			ccm_print(text, sizeof text, "%s", g->loss);
			ccm_group_interrupt(m, g, "%s", text);
		}
		g->interrupted = false;
		m->changed |= has_lost(g);
		if (g->known_version == 0 && g->n_accepted > 0)
			g->losses = ++m->last_loss; /* more than its peers have been told */
	}
}

/* ---- rings ---- */

static const struct wm_ring_place *place_of(const struct ccm_seat *s)
{
	const struct ccm_agent *a = s->agent;
	uint32_t i;

	if (!a->told || !a->told->complete || a->promoted)
		return NULL;
	for (i = 0; i < a->told->r.n_places; i++)
		if (a->told->r.places[i].group == s->group->id)
			return &a->told->r.places[i];
	return NULL;
}

/* Puts the seats at the places that their agents say, if these make a ring. */
static void rebuild_ring(struct ccm *m, struct ccm_group *g)
{
	const struct wm_ring_place *x;
	struct ccm_seat *s, **v;
	uint32_t n = 0, i;

	DL_FOREACH2 (g->seats, s, next_g)
		n += s->n_accepted > 0 && !s->agent->absent;
	v = ccm_seats_new(m, n);
	if (!v)
		return;
	DL_FOREACH2 (g->seats, s, next_g) {
		if (s->n_accepted == 0 || s->agent->absent)
			continue;
		x = place_of(s);
		if (!x || x->hosts != n || x->pos >= n || v[x->pos]) {
			free(v);
			return;
		}
		v[x->pos] = s;
	}
	free(g->ring);
	g->ring = v;
	g->n_ring = n;
	for (i = n; i-- > 0;) {
		v[i]->in_ring = true;
		v[i]->pos = i;
		DL_DELETE2(g->seats, v[i], prev_g, next_g);
		DL_PREPEND2(g->seats, v[i], prev_g, next_g);
	}
}

/* The same rings as before, where they can be known. A round prepares them again all the same:
 * links may have failed meanwhile, and peers that are not in the rings yet wait for a commit. */
static void rebuild_rings(struct ccm *m)
{
	struct ccm_group *g;
	struct ccm_seat *s;

	for (g = m->groups; g; g = g->hh.next) {
		DL_FOREACH2 (g->seats, s, next_g)
			s->in_ring = false;
		g->n_ring = 0;
		rebuild_ring(m, g);
	}
	m->rewire = m->n_accepted > 0;
}

/* ---- the new beginning is told ---- */

static void tell_promoted(struct ccm *m)
{
	struct wm_world totals;
	struct wm_commit *c;
	struct ccm_agent *a;

	ccm_world_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next) {
		if (!a->promoted)
			continue;
		a->promoted = false;
		c = ccm_commit_new(m, a, &totals);
		c->round = a->told->r.prepared;
	}
}

/* ---- operations ---- */

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
	return v->group == w->group && v->tag == w->tag && v->losses == w->losses &&
	       (w->seq == 0 || w->seq == v->seq);
}

/* The peers of a that are in it. */
static uint32_t voters_in(const struct ccm *m, const struct ccm_agent *a, const struct ccm_raw *x)
{
	const struct ccm_peer *p;
	uint32_t i, n = 0;

	for (i = 0; i < x->vote.n_peers; i++) {
		p = ccm_peer_find(m, &x->vote.peers[i]);
		n += p && p->seat->agent == a && p->phase == CCM_PEER_ACCEPTED &&
		     p->seat->group->id == x->vote.group;
	}
	return n;
}

/* Calls fn for what the agents of v's group say of the attempt v without knowing that it started.
 */
static void each_unstarted(struct ccm *m, struct ccm_group *g, const struct wm_op_vote *v,
	void (*fn)(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg), void *arg)
{
	struct ccm_seat *s;
	struct ccm_raw *x;

	DL_FOREACH2 (g->seats, s, next_g) {
		if (!s->agent->told)
			continue;
		DL_FOREACH (s->agent->told->ops, x)
			if (x->vote.seq == 0 && !x->used && same_attempt(v, &x->vote))
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

static void start_late(struct ccm *m, struct ccm_agent *a, struct ccm_raw *x, void *arg)
{
	ccm_op_tell_start(m, *(struct ccm_op **)arg, a);
	x->used = true;
}

/* Did all peers of g that came by new agents have the whole result? Then either nobody knows of its
 * end, or only they have been told, of success. */
static bool restarted_have(const struct ccm_group *g, uint64_t seq)
{
	const struct ccm_ask *q;
	const struct ccm_seat *s;
	const struct ccm_peer *p;
	uint32_t i, n;

	DL_FOREACH2 (g->seats, s, next_g) {
		DL_FOREACH (s->peers, p) {
			if (p->phase != CCM_PEER_ACCEPTED || !p->restarted)
				continue;
			n = 0;
			for (q = s->agent->told ? s->agent->told->asks : NULL; q; q = q->next)
				for (i = 0; cc_id_eq(&q->q.peer, &p->id) && i < q->q.n; i++)
					n += q->q.seqs[i] == seq;
			if (n == 0)
				return false;
		}
	}
	return true;
}

/* Has one of them been told of success? Then the last master had heard of the result from all. */
static bool restarted_know(const struct ccm_group *g, uint64_t seq)
{
	const struct ccm_ask *q;
	const struct ccm_peer *p;
	const struct ccm_seat *s;
	uint32_t i;

	DL_FOREACH2 (g->seats, s, next_g) {
		for (q = s->agent->told ? s->agent->told->asks : NULL; q; q = q->next) {
			DL_FOREACH (s->peers, p)
				if (p->restarted && cc_id_eq(&p->id, &q->q.peer))
					break;
			for (i = q->q.n - q->q.n_succeeded; p && i < q->q.n; i++)
				if (q->q.seqs[i] == seq)
					return true;
		}
	}
	return false;
}

/* Every peer that is left of the group either says that its host has the whole result, or came by a
 * new agent and has it. Who is not here may lack it, unless somebody knows better. */
static bool all_have(const struct ccm *m, const struct ccm_group *g, uint64_t seq,
	const struct entry *e, uint32_t n)
{
	uint32_t i, voters = 0;
	const struct ccm_seat *s;
	const struct ccm_peer *p;

	if ((has_lost(g) || is_unknown(m, g)) && !restarted_know(g, seq))
		return false;
	for (i = 0; i < n; i++) {
		if (!e[i].raw->reported || !e[i].raw->report.ok)
			return false;
		voters += voters_in(m, e[i].agent, e[i].raw);
	}
	DL_FOREACH2 (g->seats, s, next_g)
		DL_FOREACH (s->peers, p)
			voters += p->phase == CCM_PEER_ACCEPTED && p->restarted;
	return voters == g->n_accepted && restarted_have(g, seq);
}

/* Is everybody there who was, and has voted? */
static bool can_go_on(struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n)
{
	const struct wm_op_vote *v = &e[0].raw->vote;
	uint32_t i, voters = 0;

	if (v->losses != g->losses || has_lost(g))
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

/* What cannot go on fails with all that its group does, like any attempt that fails. */
static void judge(struct ccm *m, const struct entry *e, uint32_t n)
{
	struct ccm_group *g = group_of(m, e);

	if (g && !outcome_find(m, e->raw->vote.seq) && e->raw->vote.losses == g->losses &&
		!can_go_on(m, g, e, n) && !all_have(m, g, e->raw->vote.seq, e, n))
		ccm_group_interrupt(m, g,
			"the master died, and not all who had voted for an operation came back");
}

/* False: not all of these votes can be. */
static bool go_on(struct ccm *m, struct ccm_group *g, const struct entry *e, uint32_t n)
{
	struct ccm_op *o = NULL;
	uint32_t i;

	for (i = 0; i < n; i++)
		collect(m, e[i].agent, e[i].raw, &o);
	each_unstarted(m, g, &e->raw->vote, collect, &o);
	if (!o || m->oom || !ccm_op_continue(m, o, e->raw->vote.seq))
		return false;
	each_unstarted(m, g, &e->raw->vote, start_late, &o);
	for (i = 0; i < n; i++)
		if (e[i].raw->reported)
			ccm_op_report(m, e[i].agent, &e[i].raw->report);
	return true;
}

/* n agents say that the attempt has started. */
static void resolve(struct ccm *m, const struct entry *e, uint32_t n)
{
	uint64_t seq = e->raw->vote.seq;
	const struct wm_outcome *known = outcome_find(m, seq);
	struct ccm_group *g = group_of(m, e);
	uint32_t code = known ? known->code : WIRE_RANK_CONNECTION_LOST, i;

	if (!known && g && can_go_on(m, g, e, n) && go_on(m, g, e, n))
		return;
	if (!known && g && all_have(m, g, seq, e, n))
		code = WIRE_SUCCESS;
	for (i = 0; i < n; i++)
		ccm_op_tell_end(m, e[i].agent, &e[i].raw->vote, code,
			g && g->loss[0] ? g->loss : "it was aborted by the last master");
	if (g)
		ccm_outcome_note(g, seq, code);
}

/* Calls fn for each attempt that agents say has started, in the order of their starts. */
static void each_started(
	struct ccm *m, void (*fn)(struct ccm *m, const struct entry *e, uint32_t n))
{
	struct ccm_agent *a;
	struct ccm_raw *x;
	struct entry *e;
	uint32_t n = 0, i, k;

	for (a = m->agents; a; a = a->hh.next)
		n += a->told ? HASH_COUNT(a->told->started) : 0;
	e = ccm_calloc(m, n, sizeof *e);
	if (!e)
		return;
	n = 0;
	for (a = m->agents; a; a = a->hh.next)
		for (x = a->told ? a->told->started : NULL; x; x = x->hh.next)
			e[n++] = (struct entry){a, x};
	qsort(e, n, sizeof *e, by_attempt);
	for (i = 0; i < n && !m->oom; i = k) {
		for (k = i; k < n && e[k].raw->vote.seq == e[i].raw->vote.seq; k++)
			;
		fn(m, &e[i], k - i);
	}
	free(e);
}

/* No agent is left that has seen the attempt: only those who ask for it know of it. */
static void resolve_asked(struct ccm *m, const struct wm_op_query *q)
{
	const struct ccm_peer *p = ccm_peer_find(m, &q->peer);
	struct ccm_group *g = p ? p->seat->group : NULL;
	uint32_t i;

	for (i = 0; g && i < q->n; i++)
		if (!known_outcome(m, g, q->seqs[i]) && all_have(m, g, q->seqs[i], NULL, 0))
			ccm_outcome_note(g, q->seqs[i], WIRE_SUCCESS);
}

static void each_asked(struct ccm *m)
{
	const struct ccm_agent *a;
	const struct ccm_ask *q;

	for (a = m->agents; a; a = a->hh.next)
		for (q = a->told ? a->told->asks : NULL; q; q = q->next)
			resolve_asked(m, &q->q);
}

/* ---- what has waited ---- */

static void peer_votes(struct ccm *m)
{
	struct ccm_peer *p, *tmp;
	struct wm_peer v;

	HASH_ITER (hh, m->peers, p, tmp) {
		v.peer = p->id;
		if (p->raw_pending) {
			p->raw_pending = false;
			v.turn = p->raw_pending_turn;
			ccm_vote_pending(m, p->seat->agent, &v);
			p = ccm_peer_find(m, &v.peer);
		}
		if (p && p->raw_topo) {
			p->raw_topo = false;
			v.turn = p->raw_topo_turn;
			ccm_vote_topology(m, p->seat->agent, &v);
		}
	}
}

static void later_votes(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_raw *x, *next;
	struct ccm_ask *q;

	if (!a->told)
		return;
	DL_FOREACH_SAFE (a->told->ops, x, next) {
		if (a->dead || m->oom)
			return;
		if (x->vote.seq == 0 && !x->used)
			ccm_op_vote(m, a, &x->vote);
	}
	for (q = a->told->asks; q && !a->dead; q = q->next)
		ccm_op_query(m, a, &q->q);
}

void ccm_conclude(struct ccm *m)
{
	struct ccm_agent *a, *tmp;

	m->recovering = false;
	m->recovered = true;
	take_all(m);
	/* The last master may have told numbers that nobody here has heard. */
	at_least(&m->world_version, m->term << CCM_VERSION_SHIFT);
	m->last_seq += unheard(m);
	m->last_round += unheard(m);
	settle_members(m);
	if (m->n_accepted == 0) {
		m->topo_turn += unheard(m);
		m->pending_turn += unheard(m);
	}
	each_started(m, judge);
	rebuild_rings(m);
	m->world_version++;
	ccm_journal_members(m);
	tell_promoted(m);
	if (!m->lost)
		ccm_world_announce(m);
	ccm_loss_announce(m);
	each_started(m, resolve);
	each_asked(m);
	m->epoch += unheard(m);
	HASH_ITER (hh, m->agents, a, tmp)
		later_votes(m, a);
	peer_votes(m);
	for (a = m->agents; a; a = a->hh.next)
		ccm_told_free(a);
	ccm_log(m, CCM_LOG_NOTICE,
		"recovered: %u peers of %u agents, epoch %" PRIu64 ", term %" PRIu64,
		m->n_accepted - m->n_absent, HASH_COUNT(m->agents), m->epoch, m->term);
}
