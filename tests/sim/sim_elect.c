/* SPDX-License-Identifier: MIT
 *
 * A master's elections. Whenever a synchronization starts, or peers are kicked, the rules
 * (ccm_elect.h) are applied to the candidates in the order of the ring, and to the revision that
 * must be expected after all successes. The master must have decided the same.
 */
#include <inttypes.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_elect.h"
#include "tests/sim/sim_sync.h"

/* A group as the master knows it before a step. */
struct group {
	uint64_t expected;
	uint32_t n;
	struct sim_peer *peers[SIM_PEERS];
	struct ccm_candidate v[SIM_PEERS];
	struct ccm_standing s[SIM_PEERS];
	struct ccm_election e;
};

static struct before {
	bool recovering;
	struct cc_id run;
	struct group g[SIM_GROUPS];
	const struct wm_op_report *report; /* the report that the step handles, or NULL */
} before;

static struct sim_peer *peer_of(struct sim *s, const struct cc_id *id)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (cc_id_eq(&s->peers[i].id, id))
			return &s->peers[i];
	return NULL;
}

void sim_elect_vote(struct sim *s, const struct wm_op_vote *v)
{
	struct sim_peer *p;
	uint32_t i;

	if (!v->is_sync)
		return;
	for (i = 0; i < v->n_peers; i++) {
		p = peer_of(s, &v->peers[i]);
		if (p)
			p->cast = v->sync;
	}
}

struct looks {
	struct sim *s;
	struct before *b;
};

static void add_peer(void *arg, const struct ccm_peer_info *i)
{
	struct looks *l = arg;
	struct group *g = &l->b->g[i->group];
	struct sim_peer *p = peer_of(l->s, &i->peer);

	if (!p || i->phase != CCM_PEER_ACCEPTED)
		return;
	g->v[g->n] = (struct ccm_candidate){.revision = p->cast.revision,
		.strategy = p->cast.strategy,
		.hash_type = p->cast.hash_type,
		.keys = {p->cast.keys.hi, p->cast.keys.lo},
		.content = {p->cast.content.hi, p->cast.content.lo},
		.n_tensors = p->cast.n_tensors,
		.bytes = p->cast.bytes,
		.torn = p->cast.torn};
	g->peers[g->n++] = p;
}

static void add_state(void *arg, const struct ccm_state_info *i)
{
	struct before *b = arg;

	b->g[i->group].expected = i->expected;
}

void sim_elect_before(struct sim *s, const struct sim_master *m, const struct ccm_event *ev)
{
	struct looks l = {s, &before};
	struct ccm_status st;

	memset(&before, 0, sizeof before);
	if (ev->type == CCM_EV_MSG && ev->msg->type == WM_OP_REPORT)
		before.report = &ev->msg->u.op_report;
	ccm_get_status(m->m, &st);
	before.recovering = st.recovering;
	before.run = st.run;
	if (st.recovering)
		return;
	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), add_peer, &l);
	ccm_each_state(m->m, sim_clock_now(s, &m->clock), add_state, &before);
}

/* Returns the revision that m's journal expected, if three things hold: an older master has gone on
 * with the run since, m's copy of the journal lacks its new records, and m has elected nothing yet.
 * Otherwise returns 0. */
static uint64_t from_old_journal(const struct sim *s, const struct sim_master *m, uint32_t group)
{
	const struct sim_xfer *t;
	bool overtaken = false;
	unsigned i;

	for (i = 0; i < m->no; i++)
		overtaken |= s->masters[i].unread && cc_id_eq(&s->masters[i].id, &before.run);
	for (t = s->xfers; t; t = t->next)
		if (t->is_sync && t->decided && t->group == group && t->first == m->no + 1 &&
			cc_id_eq(&t->run, &before.run))
			return 0;
	return overtaken ? m->restored[group] : 0;
}

static bool was_at(const struct sim_conn *c, unsigned master, const struct sim_conn *other)
{
	return c->master == master && c->term && cc_id_eq(&c->run_id, &before.run) &&
	       (!other || (c->host == other->host && c->life == other->life));
}

/* Was one agent connected both to the other master and to m in this run? */
static bool can_know(const struct sim *s, const struct sim_master *m, unsigned other)
{
	uint32_t i, j;

	for (i = 0; i < s->n_conns; i++)
		for (j = 0; was_at(s->conns[i], other, NULL) && j < s->n_conns; j++)
			if (was_at(s->conns[j], m->no, s->conns[i]))
				return true;
	return false;
}

/* Has a younger master elected t, and has no agent of that master come to m? Then two masters of
 * one run have members of their own. */
static bool is_apart(const struct sim *s, const struct sim_master *m, const struct sim_xfer *t)
{
	return t->first > m->no + 1 && !can_know(s, m, (unsigned)t->first - 1);
}

struct range {
	uint64_t least, most;
};

/* Returns the revisions that m may expect. A revision that no member remembers may be forgotten. In
 * runs with all faults, a revision that no member's agent remembers may be forgotten, too. Only
 * peers that m knows count as members, because a newer master without agents may have other members
 * in its journal. The search goes back in time. It ends at a revision that is not below the later
 * ones, because no participant could know that revision any more, except from an old copy of a
 * journal. alone: ignores elections of younger masters whose agents have not come to m. */
static struct range range_of(
	const struct sim *s, const struct sim_master *m, uint32_t group, bool alone)
{
	bool forgets = before.g[group].expected == 0 && s->class == CLASS_ALL;
	uint64_t last = UINT64_MAX;
	const struct sim_xfer *t;
	struct range r = {0};

	for (t = s->xfers; t; t = t->next) {
		if (!t->is_sync || t->group != group || !cc_id_eq(&t->run, &before.run) ||
			!t->decided || (alone && is_apart(s, m, t)))
			continue;
		if (t->revision >= last)
			break;
		last = t->revision;
		if (t->revision + 1 > r.most)
			r.most = t->revision + 1;
		if (t->revision + 1 > r.least && sim_xfer_goes_on_with(s, t, m, forgets))
			r.least = t->revision + 1;
	}
	return r;
}

static bool takes_part(const struct sim_xfer *t, const struct sim_peer *p)
{
	uint32_t i, j;

	for (i = 0; i < t->n_parts; i++)
		for (j = 0; j < t->parts[i].n; j++)
			if (cc_id_eq(&t->parts[i].voices[j].id, &p->id))
				return true;
	return false;
}

/* Does the master expect what a member last knew, although the run of the group has ended since
 * without this member? Another master had given the member up, and its agent did not learn it. The
 * member may leave later. */
static bool is_left_over(struct sim *s, uint32_t group)
{
	const struct group *g = &before.g[group];
	const struct sim_xfer *t;
	uint32_t i;

	if (s->left_over[group] == g->expected)
		return true;
	for (t = s->xfers; t; t = t->next) {
		if (!t->is_sync || t->group != group || !cc_id_eq(&t->run, &before.run) ||
			!t->decided || g->expected < t->revision || g->expected > t->revision + 1)
			continue;
		for (i = 0; i < g->n; i++)
			if (takes_part(t, g->peers[i])) {
				s->left_over[group] = g->expected;
				return true;
			}
	}
	return false;
}

static void check_expected(struct sim *s, const struct sim_master *m, uint32_t group)
{
	struct range all = range_of(s, m, group, false), alone;
	uint64_t expected = before.g[group].expected;

	if (expected >= all.least && (all.most == 0 || expected <= all.most))
		return;
	alone = range_of(s, m, group, true);
	if ((expected >= alone.least && expected <= alone.most) ||
		(expected > all.most && all.most > 0 &&
			(expected == from_old_journal(s, m, group) || is_left_over(s, group))))
		s->outdated = true;
	else
		sim_fail(s,
			"%s expects revision %" PRIu64 " of group %u, it must be %" PRIu64
			" to %" PRIu64,
			sim_name_master(s, m->no), expected, group, all.least, all.most);
}

static void elect(struct group *g)
{
	uint32_t scratch[SIM_PEERS];

	ccm_elect(g->expected, g->v, g->n, scratch, g->s, &g->e);
}

static void put_out(struct sim *s, const struct cc_id *peer)
{
	s->out[s->n_out++ % (sizeof s->out / sizeof s->out[0])] = *peer;
	s->kicked++;
}

bool sim_elect_is_out(const struct sim *s, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < sizeof s->out / sizeof s->out[0]; i++)
		if (cc_id_eq(&s->out[i], peer))
			return true;
	return false;
}

static bool could_not_have(const struct sim_part *q, const struct sim_voice *v)
{
	return v->failed || (q->gives_up && !v->holder && !v->complete);
}

/* Has the peer failed in a job, in the present attempt or in an earlier one? */
static bool has_failed(const struct sim *s, const struct cc_id *peer)
{
	const struct sim_xfer *t;
	uint32_t i, j;

	for (t = s->xfers; t; t = t->next)
		for (i = 0; t->is_sync && i < t->n_parts; i++)
			for (j = 0; j < t->parts[i].n; j++)
				if (could_not_have(&t->parts[i], &t->parts[i].voices[j]) &&
					cc_id_eq(&t->parts[i].voices[j].id, peer))
					return true;
	return false;
}

/* Does the report name the peer? Then its kick does not come from an election. */
static bool is_named(const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; before.report && i < before.report->n_failed; i++)
		if (cc_id_eq(&before.report->failed[i].peer, peer))
			return true;
	return false;
}

/* Checks a kick without an election: the peer must have failed, or an election must have kicked it
 * before. A peer that has left may be kicked without a reason, because it loses nothing: its agent
 * should have reported the leave on its old connection, but may first have come to the next master
 * by another connection, with newcomers. The old connection is then refused. */
static void excuse(struct sim *s, const struct sim_master *m, const struct sim_peer *p)
{
	if (p->phase == PEER_ENDED || p->phase == PEER_START)
		return;
	if (s->class != CLASS_ALL && !has_failed(s, &p->id) && !sim_elect_is_out(s, &p->id))
		sim_fail(s, "%s kicks p%u without a reason", sim_name_master(s, m->no), p->no);
	else
		put_out(s, &p->id);
}

/* The messages of one step about one group. */
struct said {
	const struct wm_op_start *start; /* a start in this step, or NULL */
	uint32_t roles[SIM_PEERS];       /* by number: 0 none, 1 kicked, 2 holder, 3 receiver */
	uint32_t kicks;
};

static void take_start(struct sim *s, const struct wm_op_start *x, struct said *said)
{
	const struct sim_peer *p;
	uint32_t i;

	said[x->group].start = x;
	for (i = 0; i < x->sync.n_peers; i++) {
		p = peer_of(s, &x->sync.peers[i].peer);
		if (p)
			said[x->group].roles[p->no] =
				x->sync.peers[i].role == WM_SYNC_HOLDER ? 2 : 3;
	}
}

static void take_kick(
	struct sim *s, const struct sim_master *m, const struct wm_kick *k, struct said *said)
{
	const struct sim_peer *p = peer_of(s, &k->peer);

	if (p && is_named(&k->peer)) {
		if (k->code != WIRE_INVALID_USAGE)
			sim_fail(s, "p%u, which failed, is kicked with %s", p->no,
				sim_text_code(k->code));
		excuse(s, m, p);
		return;
	}
	if (!p || k->code != WIRE_INVALID_USAGE)
		return;
	said[p->group].roles[p->no] = 1;
	said[p->group].kicks++;
}

static uint32_t role(const struct ccm_standing *x)
{
	switch (x->status) {
	case CCM_ELECT_KICKED:
		return 1;
	case CCM_ELECT_RECEIVER:
		return 3;
	default:
		return 2;
	}
}

static bool is_in(const struct group *g, const struct sim_peer *p)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		if (g->peers[i] == p)
			return true;
	return false;
}

/* The step may have put a new ring in force before its election. Puts the members into their new
 * order, then adds those that were kicked, which cannot have been elected. */
static void put_in_order(struct sim *s, const struct sim_master *m, uint32_t group)
{
	struct group *g = &before.g[group], was = *g;
	struct before after = {0};
	struct looks l = {s, &after};
	uint32_t i;

	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), add_peer, &l);
	*g = after.g[group];
	g->expected = was.expected;
	for (i = 0; i < was.n && g->n < SIM_PEERS; i++) {
		if (is_in(g, was.peers[i]))
			continue;
		g->peers[g->n] = was.peers[i];
		g->v[g->n++] = was.v[i];
	}
}

static bool is_result(const struct group *g, const struct said *x)
{
	const struct wm_digest *c = x->start ? &x->start->sync.content : NULL;

	if (!c || g->e.nobody)
		return g->e.nobody == !c;
	return x->start->sync.revision == g->e.revision && c->hi == g->v[g->e.elected].content.hi &&
	       c->lo == g->v[g->e.elected].content.lo;
}

/* Has every peer been given the right part? Candidates with equal contents may have different keys,
 * so the order of the candidates may decide here, too. */
static bool are_roles(const struct group *g, const struct said *x)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		if (role(&g->s[i]) != x->roles[g->peers[i]->no])
			return false;
	return true;
}

/* Checks an election against the rules. */
static void check(struct sim *s, const struct sim_master *m, uint32_t group, const struct said *x)
{
	struct group *g = &before.g[group];
	uint32_t i;

	check_expected(s, m, group);
	elect(g);
	if (!is_result(g, x) || !are_roles(g, x)) {
		put_in_order(s, m, group);
		elect(g);
	}
	if (g->e.nobody != !x->start) {
		sim_fail(s, "%s: by the rules, %s in group %u", sim_name_master(s, m->no),
			g->e.nobody ? "there is no candidate" : "there is a candidate", group);
		return;
	}
	if (!is_result(g, x))
		sim_fail(s,
			"%s elects revision %" PRIu64 " of group %u, by the rules it is %" PRIu64
			" or has other contents",
			sim_name_master(s, m->no), x->start->sync.revision, group, g->e.revision);
	for (i = 0; i < g->n; i++) {
		if (role(&g->s[i]) != x->roles[g->peers[i]->no])
			sim_fail(s, "%s: p%u gets part %u, by the rules it is %u (why %u)",
				sim_name_master(s, m->no), g->peers[i]->no,
				x->roles[g->peers[i]->no], role(&g->s[i]), (unsigned)g->s[i].why);
		if (role(&g->s[i]) == 1)
			put_out(s, &g->peers[i]->id);
	}
}

static void excuse_all(struct sim *s, const struct sim_master *m, const struct said *x)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (x->roles[i] == 1)
			excuse(s, m, &s->peers[i]);
}

/* The master has counted the success, whether it lives to report it or not. */
static void take_done(struct sim *s, const struct wm_op_done *x)
{
	struct sim_xfer *t;

	for (t = s->xfers; t; t = t->next)
		if (t->is_sync && t->seq == x->seq && cc_id_eq(&t->run, &before.run))
			t->decided = true;
}

void sim_elect_after(struct sim *s, const struct sim_master *m)
{
	struct said said[SIM_GROUPS] = {{0}};
	uint32_t g;
	size_t i;

	for (i = 0; i < s->m_acts.n; i++) {
		const struct ccm_action *x = &s->m_acts.v[i];

		if (x->type != CCM_ACT_SEND)
			continue;
		if (x->msg.type == WM_OP_START && x->msg.u.op_start.is_sync)
			take_start(s, &x->msg.u.op_start, said);
		else if (x->msg.type == WM_OP_DONE)
			take_done(s, &x->msg.u.op_done);
		else if (x->msg.type == WM_KICK)
			take_kick(s, m, &x->msg.u.kick, said);
	}
	for (g = 0; g < SIM_GROUPS; g++) {
		if (!said[g].start && !said[g].kicks)
			continue;
		if (before.recovering || m->superseded || s->two_masters)
			excuse_all(s, m, &said[g]);
		else
			check(s, m, g, &said[g]);
	}
}
