/* SPDX-License-Identifier: MIT
 *
 * Connection rounds: candidates, rings, reports, the commit.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* A longer path of an agent counts as this, because all members wait for the agent. */
#define PATH_MAX_MS 2000u

static bool is_candidate(const struct ccm *m, const struct ccm_peer *p, bool accept)
{
	bool comes = accept && ccm_membership_ready(m, p->membership) && !p->stopped_ns;

	return (comes || p->phase == CCM_PEER_ACCEPTED) && !p->membership->agent->disconnected;
}

/* Plans the ring of g's candidates in g->next_ring. Returns false if no ring is possible. */
static bool plan_ring(struct ccm *m, struct ccm_group *g, bool accept)
{
	struct ccm_membership *s, **v;
	uint32_t i, n = 0;
	bool ok;

	free(g->next_ring);
	g->n_next = 0;
	g->next_ring = ccm_memberships_new(g->n_memberships);
	v = ccm_memberships_new(g->n_memberships);
	DL_FOREACH2 (g->memberships, s, next_g) {
		s->n_candidates = s->n_accepted + (accept ? ccm_membership_newcomers(m, s) : 0);
		if (s->agent->disconnected)
			s->n_candidates = 0;
		if (s->n_candidates > 0)
			v[n++] = s;
	}
	ccm_plan_sort(g, v, n);
	m->ring_work = 3 * CCM_TOUR_WORK; /* one share for each of the three sets of pairs */
	ok = ccm_ring_order(m, v, n, g->next_ring);
	free(v);
	if (!ok)
		return false;
	for (i = 0; i < n; i++)
		g->next_ring[i]->next_pos = i;
	g->n_next = n;
	ccm_plan_next(m, g);
	return true;
}

/* Returns the number of streams of each link of g: the highest that a candidate has asked for. */
static uint32_t group_pool(const struct ccm *m, const struct ccm_group *g, bool accept)
{
	struct ccm_peer *p;
	uint32_t i, pool = 1;

	for (i = 0; i < g->n_next; i++)
		DL_FOREACH (g->next_ring[i]->peers, p)
			if (is_candidate(m, p, accept) && p->pool_size > pool)
				pool = p->pool_size;
	return pool > WM_POOL_MAX ? WM_POOL_MAX : pool;
}

static bool has_started(const struct ccm_group *g)
{
	const struct ccm_op *o;

	DL_FOREACH (g->ops, o)
		if (o->seq && !o->sync)
			return true;
	return false;
}

/* Does a link lead from s to `to`? After a takeover the ring may be unknown while operations
 * continue on it. Then any link counts. */
static bool leads_to(const struct ccm_membership *s, const struct ccm_agent *to)
{
	const struct ccm_group *g = s->group;

	if (g->n_ring == 0)
		return has_started(g);
	return s->in_ring && g->n_ring > 1 && g->ring[(s->pos + 1) % g->n_ring]->agent == to;
}

/* Must s open a new link to the next host, even if it has a link? The next host may have lost that
 * link. If the link is in no ring in force and in no mesh, it is from a round that was dropped, and
 * perhaps only a dead master knew of its loss. Operations of another group may use a link of a
 * mesh. */
static bool reopens(const struct ccm *m, const struct ccm_membership *s)
{
	const struct ccm_group *g = s->group;
	const struct ccm_agent *to = g->next_ring[(s->next_pos + 1) % g->n_next]->agent;
	const struct ccm_membership *x;

	DL_FOREACH2 (s->agent->memberships, x, next_a)
		if (leads_to(x, to) || ccm_mesh_leads_to(m, x, to))
			return s->reopen_to == to->no;
	return true;
}

static void fill_ring(struct ccm *m, const struct ccm_membership *s, bool accept, struct wm_ring *r)
{
	const struct ccm_group *g = s->group;
	const struct ccm_membership *prev_membership;
	struct ccm_agent *next, *prev;
	struct ccm_peer *p;

	*r = (struct wm_ring){.group = g->id, .hosts = g->n_next, .pos = s->next_pos};
	if (g->n_next > 1) {
		next = g->next_ring[(s->next_pos + 1) % g->n_next]->agent;
		prev_membership = g->next_ring[(s->next_pos + g->n_next - 1) % g->n_next];
		prev = prev_membership->agent;
		ccm_agent_endpoint(next, s->agent, &r->next);
		r->prev = prev->hello.agent;
		r->reopen = reopens(m, s);
		r->prev_reopens = reopens(m, prev_membership);
		ccm_print(r->prev_name, sizeof r->prev_name, "%s", prev->hello.name);
	}
	r->members = cc_must_zalloc(s->n_candidates, sizeof *r->members);
	DL_FOREACH (s->peers, p)
		if (is_candidate(m, p, accept))
			r->members[r->n_members++] = p->id;
}

static uint32_t round_peers(const struct ccm *m, bool accept)
{
	return m->n_accepted - m->n_disconnected + (accept ? ccm_newcomers_ready(m) : 0);
}

/* Sends the planned rings to `a`. */
static void send_round(struct ccm *m, struct ccm_agent *a)
{
	struct wm_round *w = &ccm_send(m, a, WM_ROUND)->u.round;
	struct ccm_peer *p;
	struct ccm_membership *s;
	uint32_t others = 0;

	a->round_accept = m->round.accept;
	w->round = m->last_round;
	w->peers = round_peers(m, m->round.accept);
	w->run_key = m->cfg.run_key;
	w->rings = cc_must_zalloc(a->n_memberships, sizeof *w->rings);
	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_candidates == 0)
			continue;
		fill_ring(m, s, m->round.accept, &w->rings[w->n_rings]);
		ccm_mesh_fill(m, s, others, &w->rings[w->n_rings]);
		ccm_plan_fill(s, &w->rings[w->n_rings]);
		others += w->rings[w->n_rings].n_others;
		w->rings[w->n_rings++].pool_size = s->group->next_pool;
		DL_FOREACH (s->peers, p)
			a->round_accept |= p->untold;
	}
	w->accept = a->round_accept;
	a->round = m->last_round;
	a->reported = a->overdue = a->moved = false;
	m->round.n_agents++;
}

/* Returns the agent of the next host of s in the planned ring. */
static struct ccm_agent *next_agent(const struct ccm_membership *s)
{
	const struct ccm_group *g = s->group;

	return g->next_ring[(s->next_pos + 1) % g->n_next]->agent;
}

static bool next_is_silent(const struct ccm *m, const struct ccm_membership *s)
{
	return s->group->n_next > 1 && ccm_pair_is_silent(m, s->agent->no, next_agent(s)->no);
}

static bool ring_tries(const struct ccm *m, const struct ccm_group *g)
{
	uint32_t i;

	for (i = 0; m->pairs && i < g->n_next; i++)
		if (next_is_silent(m, g->next_ring[i]))
			return true;
	return false;
}

/* Does `a` take part in the planned rings? */
static bool takes_part(const struct ccm_agent *a)
{
	const struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a)
		if (s->n_candidates > 0)
			return true;
	return false;
}

static void round_start(struct ccm *m, bool accept)
{
	struct ccm_agent *a;
	struct ccm_group *g;
	struct ccm_peer *p;

	m->round = (struct ccm_round){
		.active = true, .accept = accept, .rewire = m->rewire, .since_ns = m->now};
	m->rewire = false;
	m->last_round++;
	m->rounds++;
	for (p = m->peers; p; p = p->hh.next) {
		if (!is_candidate(m, p, accept))
			continue;
		p->round = m->last_round;
		ccm_peer_refresh(m, p);
	}
	for (g = m->groups; g; g = g->hh.next)
		m->round.tries |= ring_tries(m, g);
	for (a = m->agents; a; a = a->hh.next)
		if (takes_part(a))
			send_round(m, a);
	ccm_log(m, CCM_LOG_INFO, "round %llu: %s %u peers of %u agents",
		(unsigned long long)m->last_round, accept ? "admitting" : "rewiring",
		round_peers(m, accept), m->round.n_agents);
}

/* Plans the rings and starts the round. Returns true if newcomers had to be left out or peers to be
 * kicked first, so that the caller must try again. */
static bool round_begin(struct ccm *m, bool accept)
{
	struct ccm_group *g;
	bool failed = false;

	for (g = m->groups; g; g = g->hh.next) {
		g->failed = !plan_ring(m, g, accept);
		if (g->failed && g->proposed) {
			ccm_optimize_fail(m, "every new ring has two neighbours whose hosts could "
					     "not be connected");
			return true; /* try again without the proposals */
		}
		if (g->failed && accept && m->n_accepted > 0 && ccm_newcomers_doubt(g)) {
			g->failed = false;
			return true; /* try again without the newcomers */
		}
		failed |= g->failed;
		if (!g->failed)
			g->next_pool = group_pool(m, g, accept);
	}
	if (failed) {
		ccm_groups_judge(m, false);
		return true;
	}
	round_start(m, accept);
	return false;
}

/* Ends the round without a commit. */
static void round_drop(struct ccm *m)
{
	struct ccm_peer *p;

	m->round.active = false;
	m->stuck_news = true;
	m->newcomers = true;
	m->rewire = m->rewire || m->round.rewire;
	for (p = m->peers; p; p = p->hh.next)
		if (p->round == m->last_round)
			ccm_peer_refresh(m, p);
}

struct wm_commit *ccm_commit_new(struct ccm *m, struct ccm_agent *a, const struct wm_view *totals)
{
	struct wm_commit *c = &ccm_send(m, a, WM_COMMIT)->u.commit;

	/* No round in progress has this number. */
	c->round = m->committed;
	c->epoch = m->epoch;
	c->accept = true;
	ccm_ballot_numbers(m, c->ballots);
	c->view = *totals;
	ccm_view_own(m, a, &c->view);
	return c;
}

struct wm_commit *ccm_commit_to(struct ccm *m, struct ccm_agent *a, const struct wm_view *totals,
	bool accept, struct wm_commit *c)
{
	if (c && c->accept == accept && ccm_view_fits(m, a, &c->view)) {
		ccm_send_to(m, a);
		ccm_lost_named(m, a);
		return c;
	}
	c = ccm_commit_new(m, a, totals);
	c->accept = accept;
	return c;
}

/* Sends commits to the agents of the round; or to all agents, if there was no round
 * (`unchanged`). */
static void send_commits(struct ccm *m, bool unchanged)
{
	struct wm_commit *c = NULL;
	struct wm_view totals;
	struct ccm_agent *a;

	m->committed = m->last_round;
	m->committed_here = true;
	m->view_id++;
	ccm_journal_members(m);
	ccm_view_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next) {
		/* An agent that came back after the round began waits for the next round. */
		if (a->n_accepted == 0 || !(unchanged || a->round == m->last_round))
			continue;
		c = ccm_commit_to(m, a, &totals, unchanged || a->round_accept, c);
	}
}

static void topology_vote_end(struct ccm *m)
{
	uint64_t number = m->ballots[WIRE_TOPOLOGY].number;

	ccm_ballot_end(m, WIRE_TOPOLOGY, wire_ballot_next(number, false));
}

/* Puts the planned ring of g in force. Returns true if it differs from the old one. */
static bool adopt_ring(struct ccm_group *g)
{
	bool same = g->n_ring == g->n_next;
	uint32_t i;

	for (i = 0; same && i < g->n_ring; i++)
		same = g->ring[i] == g->next_ring[i];
	if (!same)
		ccm_mesh_reset(g);
	for (i = 0; i < g->n_ring; i++)
		g->ring[i]->in_ring = false;
	free(g->ring);
	g->ring = g->next_ring;
	g->n_ring = g->n_next;
	g->next_ring = NULL;
	g->n_next = 0;
	for (i = 0; i < g->n_ring; i++) {
		g->ring[i]->pos = i;
		g->ring[i]->in_ring = true;
		g->ring[i]->reopen_to = 0;
	}
	return !same;
}

/* Records that the links of the ring in force are up. */
static void links_work(struct ccm *m, const struct ccm_group *g)
{
	uint32_t i;

	for (i = 0; m->pairs && g->n_ring > 1 && i < g->n_ring; i++)
		ccm_pair_works(m, g->ring[i]->agent->no, g->ring[(i + 1) % g->n_ring]->agent->no);
}

static void round_commit(struct ccm *m)
{
	bool changed = m->changed, accept = m->round.accept, replaced;
	struct ccm_group *g;
	struct ccm_peer *p;

	m->round.active = false;
	m->stuck_news = true;
	m->newcomers = true;
	for (p = m->peers; p; p = p->hh.next) {
		if (p->round != m->last_round)
			continue;
		if (p->phase == CCM_PEER_REGISTERED) {
			ccm_peer_accept(m, p);
			changed = true;
		}
		p->untold = false;
	}
	for (g = m->groups; g; g = g->hh.next) {
		if (g->n_next == 0)
			continue;
		replaced = adopt_ring(g);
		changed |= replaced || g->proposed;
		ccm_plan_commit(m, g, replaced);
		links_work(m, g);
	}
	ccm_probes_keep(m);
	ccm_optimize_committed(m);
	if (accept)
		topology_vote_end(m);
	for (p = m->peers; p; p = p->hh.next)
		if (p->round == m->last_round)
			ccm_peer_refresh(m, p);
	m->changed = false;
	m->reorder_ns = 0;
	ccm_at_least(&m->epoch, m->heard_epoch);
	m->epoch += changed;
	ccm_log(m, CCM_LOG_INFO, "round %llu is committed: epoch %llu, %u peers",
		(unsigned long long)m->last_round, (unsigned long long)m->epoch, m->n_accepted);
	send_commits(m, false);
}

/* Answers a topology vote for which there is nothing to do. */
static void commit_unchanged(struct ccm *m)
{
	topology_vote_end(m);
	m->last_round++;
	send_commits(m, true);
}

static bool round_failed(const struct ccm *m)
{
	struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next)
		if (a->round == m->last_round && a->n_failures > 0)
			return true;
	return false;
}

/* Has an agent that could not be reached changed its addresses? Then the failure proves nothing. */
static bool failed_by_move(const struct ccm *m)
{
	const struct ccm_agent *a, *to;
	uint32_t i;

	for (a = m->agents; a; a = a->hh.next)
		for (i = 0; a->round == m->last_round && i < a->n_failures; i++) {
			HASH_FIND(hh_id, m->by_id, &a->failures[i].agent,
				sizeof a->failures[i].agent, to);
			if (to && to->moved)
				return true;
		}
	return false;
}

const struct ccm_agent *ccm_round_waits(const struct ccm *m)
{
	const struct ccm_agent *a;

	if (m->n_resuming == 0)
		return NULL;
	for (a = m->agents; a; a = a->hh.next)
		if (a->resuming && !cc_id_is_zero(&a->hello.run_key))
			return a;
	return NULL;
}

/* Ends the round if all agents have reported. Returns true if it is over. */
static bool round_end(struct ccm *m)
{
	if (m->round.n_reported < m->round.n_agents)
		return false;
	if (!round_failed(m)) {
		if (ccm_breaks_judge(m))
			round_drop(m);
		else
			round_commit(m);
		return true;
	}
	if (ccm_optimize_round_failed(m)) {
		round_drop(m);
		return true;
	}
	if (m->round.failed_ns == 0)
		m->round.failed_ns = m->now;
	if (ccm_age(m->now, m->round.failed_ns) < m->cfg.evict_delay_ms * CCM_NS_PER_MS)
		return false;
	if (!failed_by_move(m))
		ccm_round_judge(m);
	round_drop(m);
	return true;
}

bool ccm_round_settle(struct ccm *m)
{
	bool accept;

	if (m->round.active && m->round.stale)
		round_drop(m);
	if (m->round.active)
		return round_end(m);
	accept = ccm_topology_agreed(m);
	if (m->n_accepted == 0)
		m->rewire = false;
	if (accept && ccm_newcomers_ready(m) == 0 && !m->rewire && !ccm_optimize_better(m)) {
		commit_unchanged(m);
		return false;
	}
	/* There is no reason for a round, no agent to link, or a snapshot is still being sent. */
	if ((!accept && !m->rewire) || (m->n_accepted > 0 && m->n_accepted == m->n_disconnected) ||
		ccm_round_waits(m))
		return false;
	return round_begin(m, accept);
}

/* Is `id` the agent after `a` in some ring of this round, or of its plan? */
static bool is_next(const struct ccm_agent *a, const struct cc_id *id)
{
	struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_candidates == 0 || s->group->n_next < 2)
			continue;
		if (cc_id_eq(&next_agent(s)->hello.agent, id) || ccm_plan_is_next(s, id))
			return true;
	}
	return false;
}

static void keep_failures(struct ccm_agent *a, const struct wm_round_report *r)
{
	uint32_t i;

	free(a->failures);
	a->failures = cc_must_zalloc(r->n_failures, sizeof *a->failures);
	for (i = 0; i < r->n_failures; i++) {
		a->failures[i].agent = r->failures[i].agent;
		a->failures[i].limit = r->failures[i].limit;
		ccm_copy(a->failures[i].text, sizeof a->failures[i].text, r->failures[i].text);
	}
	a->n_failures = i;
}

void ccm_round_report(struct ccm *m, struct ccm_agent *a, const struct wm_round_report *r)
{
	uint32_t i;

	if (r->round > m->last_round) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a report on round %llu, which has not begun",
			(unsigned long long)r->round);
		return;
	}
	if (!m->round.active || r->round < m->last_round || (a->round == r->round && a->overdue))
		return;
	if (a->round != m->last_round || a->reported) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: %s on round %llu",
			a->round == m->last_round ? "a second report" : "an unasked report",
			(unsigned long long)r->round);
		return;
	}
	for (i = 0; i < r->n_failures; i++) {
		if (is_next(a, &r->failures[i].agent))
			continue;
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a failure to reach an agent that is not next in any "
			"ring of round %llu",
			(unsigned long long)r->round);
		return;
	}
	a->reported = true;
	m->round.n_reported++;
	keep_failures(a, r);
}

/* Handles the loss of the link from s to the agent `to`. Data that was sent into the link may be
 * lost, and so may the next data, because only one end may know of the loss. Returns true if the
 * link is part of a mesh. */
static bool edge_lost(
	struct ccm *m, struct ccm_membership *s, struct ccm_agent *to, const struct wm_link_lost *l)
{
	struct ccm_group *g = s->group;
	char text[WM_TEXT_MAX];

	if (m->round.active && s->n_candidates > 0 && g->n_next > 1 && next_agent(s) == to) {
		if (l->inbound)
			s->reopen_to = to->no;
		/* an agent that has not reported reopens the link itself if it knows of the loss */
		m->round.stale |= l->inbound || s->agent->reported;
	}
	if (!leads_to(s, to))
		return ccm_mesh_lost(m, s, to, l);
	if (!m->round.active) {
		if (l->inbound)
			s->reopen_to = to->no;
		m->rewire = true;
	}
	if (l->smaller)
		ccm_break_is_mended(m, s->agent, to);
	if (!has_started(g))
		return false;
	ccm_copy(text, sizeof text, l->text);
	ccm_break_count(m, g, s->agent, to, text);
	ccm_group_interrupt(m, g, "the link from host %s to host %s broke: %s",
		s->agent->hello.name, to->hello.name, text);
	return false;
}

void ccm_link_lost(struct ccm *m, struct ccm_agent *a, const struct wm_link_lost *l)
{
	struct ccm_agent *from = NULL, *to = a;
	struct ccm_membership *s;
	bool mesh = false;

	HASH_FIND(hh_id, m->by_id, &l->agent, sizeof l->agent, from);
	if (!l->inbound) {
		to = from;
		from = a;
	}
	if (!from || !to || from == to)
		return;
	DL_FOREACH2 (from->memberships, s, next_a)
		mesh |= edge_lost(m, s, to, l);
	if (mesh && l->inbound)
		ccm_mesh_reopen(m, from, to);
}

void ccm_link_failed(struct ccm *m, const struct ccm_group *g, struct ccm_agent *a,
	struct ccm_agent *other, const char *text)
{
	const struct ccm_membership *to = ccm_membership_of(m, a, g->id),
				    *from = ccm_membership_of(m, other, g->id);

	if (from && leads_to(from, a))
		ccm_break_count(m, g, other, a, text);
	else if (to && leads_to(to, other))
		ccm_break_count(m, g, a, other, text);
}

uint32_t ccm_paths_ms(const struct ccm *m)
{
	uint64_t longest = 0, next = 0;
	const struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next) {
		uint64_t ns = a->life.path_ns;

		if (!a->memberships)
			continue;
		if (ns > PATH_MAX_MS * CCM_NS_PER_MS)
			ns = PATH_MAX_MS * CCM_NS_PER_MS;
		if (ns > longest) {
			next = longest;
			longest = ns;
		} else if (ns > next) {
			next = ns;
		}
	}
	return (uint32_t)(CC_ROUND_TRIPS * (longest + next) / CCM_NS_PER_MS);
}

/* Returns the time for a new link between hosts whose last link was silent. It is shorter than for
 * other links, because all members wait and the link will probably fail. */
static uint32_t try_ms(const struct ccm *m)
{
	return CCM_TRY_MS(m->cfg.bounds.ms[CC_BOUND_NEW_LINK]) + ccm_paths_ms(m);
}

/* Reports failures for `a`: the links to silent hosts that it did not open in time. */
static void end_try(struct ccm *m, struct ccm_agent *a)
{
	struct wm_failure *f;
	struct ccm_membership *s;
	uint32_t n = 0;

	DL_FOREACH2 (a->memberships, s, next_a)
		n += s->n_candidates > 0 && next_is_silent(m, s);
	if (n == 0)
		return;
	free(a->failures);
	a->n_failures = 0;
	a->failures = cc_must_zalloc(n, sizeof *a->failures);
	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_candidates == 0 || !next_is_silent(m, s))
			continue;
		f = &a->failures[a->n_failures++];
		f->agent = next_agent(s)->hello.agent;
		ccm_print(f->text, sizeof f->text,
			"nothing came through their link, and a new one was not up within %u ms",
			try_ms(m));
	}
	a->reported = a->overdue = true;
	m->round.n_reported++;
}

void ccm_round_tick(struct ccm *m)
{
	struct ccm_agent *a, *tmp;
	uint32_t paths_ms;

	if (!m->round.active || m->round.stale)
		return;
	paths_ms = ccm_paths_ms(m);
	if (m->round.tries && ccm_age(m->now, m->round.since_ns) > try_ms(m) * CCM_NS_PER_MS) {
		m->round.tries = false;
		for (a = m->agents; a; a = a->hh.next)
			if (a->round == m->last_round && !a->reported)
				end_try(m, a);
	}
	HASH_ITER (hh, m->agents, a, tmp) {
		uint32_t ms = ccm_round_patience_ms(m, a) + paths_ms;

		if (a->round != m->last_round || a->reported ||
			ccm_age(m->now, m->round.since_ns) <= ms * CCM_NS_PER_MS)
			continue;
		if (a->n_accepted == 0)
			ccm_newcomer_failed(m, a, true);
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_FAILED,
			"the agent on %s did not report on connection round %llu within %u ms",
			a->hello.name, (unsigned long long)m->last_round, ms);
	}
}
