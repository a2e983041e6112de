/* SPDX-License-Identifier: MIT
 *
 * Links, connection rounds, the rings in force and their world sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

/* The time for which a lost link from an agent that is no neighbour is remembered: as long as a run
 * can be without a master. */
#define SPARED_NS UINT64_C(60000000000)

struct agt_group *agt_group_find(struct agt_run *r, uint32_t group)
{
	struct agt_group *g;

	HASH_FIND(hh, r->groups, &group, sizeof group, g);
	return g;
}

struct agt_group *agt_group_get(struct agt_run *r, uint32_t group)
{
	struct agt_group *g = agt_group_find(r, group);

	if (g)
		return g;
	g = cc_must_zalloc(1, sizeof *g);
	g->group = group;
	HASH_ADD(hh, r->groups, group, sizeof g->group, g);
	return g;
}

static void ring_free(struct wm_ring *g)
{
	free(g->members);
	free(g->others);
	free(g->plan.order);
}

void agt_group_put(struct agt_run *r, struct agt_group *g)
{
	if (g->users)
		return;
	HASH_DELETE(hh, r->groups, g);
	ring_free(&g->ring);
	free(g);
}

void agt_round_clear(struct agt_round *rd)
{
	uint32_t i;

	for (i = 0; i < rd->n_rings; i++)
		ring_free(&rd->rings[i]);
	free(rd->rings);
	memset(rd, 0, sizeof *rd);
}

static void ring_copy(struct wm_ring *dst, const struct wm_ring *src)
{
	*dst = *src;
	dst->members = cc_must_copy(src->members, src->n_members, sizeof *src->members);
	dst->others = cc_must_copy(src->others, src->n_others, sizeof *src->others);
	dst->plan.order = cc_must_copy(src->plan.order, src->plan.n_order, sizeof *src->plan.order);
}

static void round_copy(struct agt_round *rd, const struct wm_round *m)
{
	agt_round_clear(rd);
	rd->rings = cc_must_zalloc(m->n_rings, sizeof *rd->rings);
	for (; rd->n_rings < m->n_rings; rd->n_rings++)
		ring_copy(&rd->rings[rd->n_rings], &m->rings[rd->n_rings]);
	rd->active = true;
	rd->accept = m->accept;
	rd->number = m->round;
	rd->peers = m->peers;
}

static bool leads_here(const struct agt *a, const struct wm_ring *g)
{
	return cc_id_eq(&g->next.agent, &a->cfg.agent) || cc_id_eq(&g->prev, &a->cfg.agent) ||
	       agt_mesh_has(g, &a->cfg.agent);
}

/* Checks the rings of a round. Returns NULL, or what is wrong with them. */
static const char *check_rings(const struct agt *a, const struct wm_round *m)
{
	uint32_t i, j;

	for (i = 0; i < m->n_rings; i++) {
		const struct wm_ring *g = &m->rings[i];

		if (g->hosts == 0 || g->pos >= g->hosts)
			return "a ring position outside the ring";
		if (g->pool_size == 0 || g->pool_size > WM_POOL_MAX)
			return "a ring with an impossible number of streams";
		if (g->hosts > 1 && (cc_id_is_zero(&g->next.agent) || cc_id_is_zero(&g->prev)))
			return "a ring without neighbours";
		if (g->hosts > 1 && leads_here(a, g))
			return "a ring that leads from this agent to itself";
		for (j = 0; j < i; j++)
			if (m->rings[j].group == g->group)
				return "two rings for one group";
	}
	return NULL;
}

/* ---- links that were lost ---- */

bool agt_link_from_lost(const struct agt_run *r, const struct cc_id *peer)
{
	const struct agt_lost_link *x;

	LL_FOREACH(r->lost_links, x)
	if (cc_id_eq(&x->peer, peer))
		return true;
	return false;
}

static void lost_remember(struct agt_run *r, const struct cc_id *peer)
{
	struct agt_lost_link *x;

	if (agt_link_from_lost(r, peer))
		return;
	x = cc_must_zalloc(1, sizeof *x);
	x->peer = *peer;
	LL_PREPEND(r->lost_links, x);
}

static void lost_forget(struct agt_run *r, const struct cc_id *peer)
{
	struct agt_lost_link *x, *next;

	LL_FOREACH_SAFE(r->lost_links, x, next)
	{
		if (peer && !cc_id_eq(&x->peer, peer))
			continue;
		LL_DELETE(r->lost_links, x);
		free(x);
		if (peer) /* peer may point into x, which is freed; no other entry has this peer */
			return;
	}
}

/* Is this a link of the ring, or one of its plan for which the round waits? */
static bool ring_has(const struct wm_ring *g, const struct cc_id *peer, bool inbound)
{
	return g->hosts > 1 && (cc_id_eq(inbound ? &g->prev : &g->next.agent, peer) ||
				       (g->await_plan && agt_plan_has(g, peer, inbound)));
}

/* Is the link to the peer (inbound: from the peer) part of a ring in force, or of a ring of the
 * round? */
static bool is_of_ring(const struct agt_run *r, const struct cc_id *peer, bool inbound)
{
	const struct agt_group *g;
	uint32_t i;

	for (g = r->groups; g; g = g->hh.next)
		if (g->has_ring &&
			(ring_has(&g->ring, peer, inbound) || agt_mesh_has(&g->ring, peer)))
			return true;
	for (i = 0; r->round.active && i < r->round.n_rings; i++)
		if (ring_has(&r->round.rings[i], peer, inbound))
			return true;
	return false;
}

static struct wm_link_lost *tell_lost(
	struct agt *a, struct agt_run *r, const struct cc_id *peer, bool inbound, const char *text)
{
	struct wm_link_lost *m = &agt_send(a, r, WM_LINK_LOST)->u.link_lost;

	m->agent = *peer;
	m->inbound = inbound;
	agt_copy_text(m->text, sizeof m->text, text);
	return m;
}

/* Forgets the lost links whose agents ceased to be neighbours long ago, because these agents have
 * closed the links. An agent that is disconnected from the master does not know that it is no
 * neighbour any more. When it comes back, it believes that its link is up, and may be a neighbour
 * again. */
static void lost_sweep(struct agt *a, struct agt_run *r)
{
	struct agt_lost_link *x, *next;

	LL_FOREACH_SAFE(r->lost_links, x, next)
	{
		if (is_of_ring(r, &x->peer, true))
			x->spared_ns = 0;
		else if (x->spared_ns == 0)
			x->spared_ns = a->now;
		else if (a->now - x->spared_ns > SPARED_NS)
			lost_forget(r, &x->peer);
	}
}

static struct agt_link *link_find(const struct agt_run *r, const struct cc_id *peer)
{
	struct agt_link *l;

	HASH_FIND(hh, r->links, peer, sizeof *peer, l);
	return l;
}

bool agt_link_is_up(struct agt_run *r, const struct cc_id *peer)
{
	const struct agt_link *l = link_find(r, peer);

	return l && l->state == AGT_LINK_UP;
}

bool agt_link_exists(struct agt_run *r, const struct wm_endpoint *to)
{
	const struct agt_link *l = link_find(r, &to->agent);

	if (l && l->state == AGT_LINK_OPENING)
		return l->endpoint.key_no >= to->key_no;
	return l && l->state == AGT_LINK_UP;
}

void agt_link_tell_lost(struct agt *a, struct agt_run *r, const struct cc_id *peer)
{
	tell_lost(a, r, peer, true, "it was lost before");
}

static struct agt_action *link_emit(
	struct agt *a, const struct agt_run *r, const struct agt_link *l, enum agt_action_type type)
{
	struct agt_action *x = agt_emit(a, type);

	x->run = r->id;
	x->n_streams = l->n_streams;
	x->u.endpoint = l->endpoint;
	return x;
}

static void link_reopen(struct agt *a, struct agt_run *r, struct agt_link *l)
{
	l->silent = false;
	if (l->state != AGT_LINK_FAILED)
		link_emit(a, r, l, AGT_ACT_LINK_CLOSE);
	if (l->state != AGT_LINK_OPENING)
		agt_link_set_state(a, l, AGT_LINK_OPENING);
}

static bool link_carries_xfer(const struct agt_run *r, const struct cc_id *peer)
{
	const struct agt_op *o;

	DL_FOREACH2 (r->ops, o, next_op)
		if (o->xfer && agt_op_uses(o, peer, false))
			return true;
	return false;
}

/* Returns how many streams to the peer the rings and plans of the round want; 0: none leads to it.
 */
static uint32_t round_streams(const struct agt_round *rd, const struct cc_id *peer)
{
	uint32_t i, n = 0;

	for (i = 0; i < rd->n_rings; i++) {
		const struct wm_ring *g = &rd->rings[i];

		if (ring_has(g, peer, false) && g->pool_size > n)
			n = g->pool_size;
	}
	return n;
}

bool agt_in_round(const struct agt_run *r)
{
	return r->round.active && r->round.number > r->committed;
}

/* Does a round wait for the link to the peer? If not, it is a link of a mesh. */
static bool round_waits_for(const struct agt_run *r, const struct cc_id *peer)
{
	return agt_in_round(r) && round_streams(&r->round, peer) > 0;
}

/* A probe would lengthen the round. Links of a mesh are probed, because nobody waits for them. */
static void link_open(struct agt *a, const struct agt_run *r, const struct agt_link *l)
{
	link_emit(a, r, l, AGT_ACT_LINK_OPEN)->probe = !round_waits_for(r, &l->peer);
}

static struct agt_link *link_new(struct agt_run *r, const struct cc_id *peer)
{
	struct agt_link *l = cc_must_zalloc(1, sizeof *l);

	l->peer = *peer;
	HASH_ADD(hh, r->links, peer, sizeof l->peer, l);
	return l;
}

static bool link_is_in_use(const struct agt_run *r, const struct agt_link *l)
{
	const struct agt_op *o;

	DL_FOREACH2 (r->ops, o, next_op)
		if (o->state == AGT_OP_RUNNING && agt_op_uses(o, &l->peer, false))
			return true;
	return false;
}

/* Can the link be used as it is? A silent link may be dead: unless an operation runs on it, a new
 * link is as good. A link that is still being opened with the key of an earlier round may be
 * refused. */
static bool link_serves(const struct agt_run *r, const struct agt_link *l,
	const struct wm_endpoint *to, uint32_t streams, bool reopen)
{
	if (l->state == AGT_LINK_OPENING)
		return l->n_streams >= streams && l->endpoint.key_no == to->key_no;
	if (l->state == AGT_LINK_FAILED || reopen)
		return false;
	if (l->silent)
		return link_is_in_use(r, l);
	return link_carries_xfer(r, &l->peer) || l->n_streams >= streams;
}

void agt_link_want(struct agt *a, struct agt_run *r, const struct wm_endpoint *to, uint32_t streams,
	bool reopen)
{
	struct agt_link *l = link_find(r, &to->agent);

	if (!l)
		l = link_new(r, &to->agent);
	else if (link_serves(r, l, to, streams, reopen))
		return;
	else
		link_reopen(a, r, l);
	l->endpoint = *to;
	l->n_streams = streams;
	link_open(a, r, l);
}

static void add_failure(struct wm_round_report *m, const struct agt_link *l)
{
	struct wm_failure *f;
	uint32_t i;

	for (i = 0; i < m->n_failures; i++)
		if (cc_id_eq(&m->failures[i].agent, &l->peer))
			return;
	if (m->n_failures == WM_FAILURES_MAX)
		return;
	f = &m->failures[m->n_failures++];
	f->agent = l->peer;
	f->limit = l->limit;
	agt_copy_text(f->text, sizeof f->text, l->text);
}

bool agt_link_in_doubt(const struct agt_run *r, const struct cc_id *peer)
{
	const struct agt_link *l = link_find(r, peer);

	return !l || l->state == AGT_LINK_OPENING || l->silent;
}

/* Returns how many links of this ring the round waits for: to the next host, and perhaps to the
 * next hosts in the rings of its plan. */
static uint32_t wanted_links(const struct wm_ring *g)
{
	return g->hosts > 1 ? 1 + (g->await_plan ? g->plan.n : 0) : 0;
}

static const struct wm_endpoint *wanted_link(const struct wm_ring *g, uint32_t i)
{
	return i == 0 ? &g->next : agt_plan_next(g, i - 1);
}

/* Returns this link if it could not be opened, or NULL. */
static const struct agt_link *failed_link(const struct agt_run *r, const struct wm_endpoint *to)
{
	const struct agt_link *l = link_find(r, &to->agent);

	return l && l->state == AGT_LINK_FAILED ? l : NULL;
}

static void report_failures(const struct agt_run *r, uint32_t failed, struct wm_round_report *m)
{
	const struct agt_round *rd = &r->round;
	const struct agt_link *l;
	uint32_t i, k;

	m->failures = cc_must_zalloc(
		failed < WM_FAILURES_MAX ? failed : WM_FAILURES_MAX, sizeof *m->failures);
	for (i = 0; i < rd->n_rings; i++) {
		for (k = 0; k < wanted_links(&rd->rings[i]); k++) {
			l = failed_link(r, wanted_link(&rd->rings[i], k));
			if (l)
				add_failure(m, l);
		}
	}
}

bool agt_round_in_doubt(const struct agt_run *r)
{
	const struct agt_round *rd = &r->round;
	uint32_t i, k;

	for (i = 0; i < rd->n_rings; i++)
		for (k = 0; k < wanted_links(&rd->rings[i]); k++)
			if (agt_link_in_doubt(r, &wanted_link(&rd->rings[i], k)->agent))
				return true;
	return false;
}

/* Reports on the round as soon as no link of the round is opening or silent any more. */
static void round_report(struct agt *a, struct agt_run *r)
{
	struct agt_round *rd = &r->round;
	struct wm_round_report *m;
	struct agt_group *g;
	uint32_t i, k, failed = 0;

	if (!rd->active || rd->reported || agt_round_in_doubt(r))
		return;
	for (i = 0; i < rd->n_rings; i++)
		for (k = 0; k < wanted_links(&rd->rings[i]); k++)
			failed += failed_link(r, wanted_link(&rd->rings[i], k)) != NULL;
	rd->reported = true;
	rd->ok = failed == 0;
	m = &agt_send(a, r, WM_ROUND_REPORT)->u.round_report;
	m->round = rd->number;
	for (g = r->groups; g; g = g->hh.next)
		if (g->left == AGT_NEXT_ROUND)
			g->left = rd->number;
	if (failed > 0)
		report_failures(r, failed, m);
}

/* Is the link from prev lost, and does the round not let prev open it again? Two groups may use one
 * link, as a link of the ring or of a plan; the round names the ring only. */
static bool is_not_reopened(struct agt_run *r, const struct cc_id *prev)
{
	const struct agt_round *rd = &r->round;
	uint32_t i;

	for (i = 0; i < rd->n_rings; i++)
		if (rd->rings[i].prev_reopens && cc_id_eq(&rd->rings[i].prev, prev))
			return false;
	return agt_link_from_lost(r, prev);
}

/* Opens the missing links of g's plan. */
static void want_plan(struct agt *a, struct agt_run *r, const struct wm_ring *g)
{
	uint32_t i;

	for (i = 0; g->await_plan && i < g->plan.n; i++) {
		const struct wm_endpoint *to = agt_plan_next(g, i);
		const struct cc_id *prev = agt_plan_prev(g, i);

		if (!cc_id_eq(prev, &g->prev) && is_not_reopened(r, prev))
			tell_lost(a, r, prev, true, "it was not reopened");
		agt_link_want(a, r, to, round_streams(&r->round, &to->agent), false);
	}
}

void agt_round_begin(struct agt *a, struct agt_run *r, const struct wm_round *m)
{
	struct agt_round *rd = &r->round;
	const char *wrong = check_rings(a, m);
	uint32_t i;

	if (wrong) {
		agt_run_violation(a, r, wrong);
		return;
	}
	agt_measure_stop(a, r);
	round_copy(rd, m);
	if (!cc_id_is_zero(&m->run_key))
		r->run_key = m->run_key;
	rd->segment_max = r->segment_wanted;
	r->aborted_round = 0;
	r->check_links = true;
	for (i = 0; i < rd->n_rings; i++) {
		const struct wm_ring *g = &rd->rings[i];

		if (g->hosts == 1)
			continue;
		if (is_not_reopened(r, &g->prev))
			tell_lost(a, r, &g->prev, true, "it was not reopened");
		agt_link_want(a, r, &g->next, round_streams(rd, &g->next.agent), g->reopen);
		want_plan(a, r, g);
	}
	round_report(a, r);
}

/* Returns the position of the peer among the ring's local members, or -1. */
static int ring_rank(const struct wm_ring *g, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < g->n_members; i++)
		if (cc_id_eq(&g->members[i], peer))
			return (int)i;
	return -1;
}

static void ring_drop(struct agt_group *g)
{
	ring_free(&g->ring);
	memset(&g->ring, 0, sizeof g->ring);
	g->has_ring = false;
}

/* The ring continues without this host. The next host expects that this host closes its link.
 * Otherwise a later ring could use a link that only the next host knows to be broken. */
void agt_ring_leave(struct agt_run *r, struct agt_group *g)
{
	ring_drop(g);
	r->check_links = true;
}

/* Puts the rings of the round in force. */
static void put_in_force(struct agt_run *r)
{
	struct agt_round *rd = &r->round;
	struct agt_group *g;
	uint32_t i;

	for (g = r->groups; g; g = g->hh.next)
		ring_drop(g);
	for (i = 0; i < rd->n_rings; i++) {
		g = agt_group_find(r, rd->rings[i].group);
		if (!g)
			continue; /* its last local peer has left meanwhile */
		g->ring = rd->rings[i];
		g->has_ring = true;
		rd->rings[i].members = NULL;
		rd->rings[i].others = NULL;
		rd->rings[i].n_others = 0;
		rd->rings[i].plan = (struct wm_plan){.n = 0};
	}
	r->segment_max = rd->segment_max;
	agt_round_clear(rd);
}

bool agt_round_prepared(const struct agt_run *r, const struct cc_id *peer)
{
	uint32_t i;

	if (!r->round.active || !r->round.ok)
		return false;
	for (i = 0; i < r->round.n_rings; i++)
		if (ring_rank(&r->round.rings[i], peer) >= 0)
			return true;
	return false;
}

/* Sets the ranks of accepted peers, and accepts the registered peers that are in the rings:
 * newcomers and peers that attach. False: an accepted peer is missing from the rings. */
static bool admit(struct agt *a, struct agt_run *r, const struct wm_commit *m)
{
	struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r) {
		int rank = c->grp->has_ring ? ring_rank(&c->grp->ring, &c->peer) : -1;

		if (c->state == AGT_COMM_ACCEPTED && rank < 0)
			return false;
		if (rank < 0)
			continue;
		c->rank = (uint32_t)rank;
		if (c->state != AGT_COMM_REGISTERED)
			continue;
		agt_run_comm_accepted(a, c);
		if (!c->attach)
			memcpy(c->ballots, m->ballots, sizeof c->ballots);
	}
	return true;
}

struct wire_view agt_view_of(const struct agt_run *r, const struct agt_group *g)
{
	return (struct wire_view){.view_id = r->view.view_id,
		.global = r->view.global,
		.group = g->world_size,
		.groups = r->view.groups,
		.largest = r->view.largest};
}

/* Adds a generation to the group's list. at_generation: the view that the other members got with
 * it; view id 0: not known. */
static void loss_add(
	struct agt_group *g, uint64_t generation, const struct wire_view *at_generation)
{
	if (generation < g->generation) /* another master has begun a new count */
		g->n_lost = 0;
	if (generation != g->generation || g->n_lost == 0) {
		if (g->n_lost == AGT_GENERATIONS_MAX)
			memmove(g->lost, g->lost + 1, --g->n_lost * sizeof *g->lost);
		g->n_lost++;
	}
	g->lost[g->n_lost - 1] = (struct agt_generation){generation, *at_generation};
}

/* Adds a lost peer to the end of the list. A full list drops its first entry. */
static void lost_add(struct agt_run *r, const struct cc_id *peer, uint64_t view_id)
{
	if (r->n_lost == WM_LOST_MAX) {
		r->lost_floor = r->lost_views[0];
		r->n_lost--;
		memmove(r->lost, r->lost + 1, r->n_lost * sizeof r->lost[0]);
		memmove(r->lost_views, r->lost_views + 1, r->n_lost * sizeof r->lost_views[0]);
	}
	r->lost[r->n_lost] = *peer;
	r->lost_views[r->n_lost++] = view_id;
}

static void lost_set(struct agt_run *r, const struct wm_view *w)
{
	uint32_t i;

	if (w->lost_all) {
		r->n_lost = 0;
		r->lost_floor = w->lost_floor;
	}
	for (i = 0; i < w->n_lost; i++)
		lost_add(r, &w->lost[i], w->view_id);
}

static void view_set(struct agt *a, struct agt_run *r, const struct wm_view *w)
{
	struct wire_view at_generation;
	struct agt_group *g;
	uint32_t i;

	lost_set(r, w);
	r->view = *w;
	r->view.n = r->view.n_lost = 0;
	r->view.own = NULL;
	r->view.lost = NULL;
	for (g = r->groups; g; g = g->hh.next)
		g->world_size = 0;
	for (i = 0; i < w->n; i++) {
		g = agt_group_find(r, w->own[i].group);
		if (!g)
			continue;
		g->world_size = w->own[i].world_size;
		/* Other hosts may have started an attempt before the loss. */
		if (g->generation != w->own[i].generation)
			agt_spec_forget(a, r, g);
		at_generation = agt_view_of(r, g);
		if (w->own[i].at_generation.view_id)
			loss_add(g, w->own[i].generation, &w->own[i].at_generation);
		else if (g->generation != w->own[i].generation)
			loss_add(g, w->own[i].generation, &at_generation);
		g->generation = w->own[i].generation;
		g->revision = w->own[i].revision;
		memcpy(g->loss, w->own[i].loss, sizeof g->loss);
	}
	r->check_votes = true;
}

/* Answers the requests of c that end with this commit. */
static void committed(struct agt *a, struct agt_comm *c, const struct wm_commit *m)
{
	if (c->state != AGT_COMM_ACCEPTED)
		return;
	agt_attach_try(a, c);
	agt_comm_publish(a, c);
	if (c->wait == WL_COMM_CONNECT)
		agt_comm_answer(a, c, WIRE_SUCCESS, "");
	if (m->accept)
		agt_ballot_ended(a, c, WIRE_TOPOLOGY, m->ballots[WIRE_TOPOLOGY]);
}

void agt_round_commit(struct agt *a, struct agt_run *r, const struct wm_commit *m)
{
	uint32_t kind;
	struct agt_group *g;
	struct agt_comm *c;

	if (m->epoch < r->epoch) {
		agt_run_violation(a, r, "COMMIT with an epoch from the past");
		return;
	}
	if (r->round.active && r->round.number == m->round) {
		if (!r->round.ok) {
			agt_run_violation(a, r, "COMMIT of a round that was not reported as good");
			return;
		}
		put_in_force(r);
		if (!admit(a, r, m)) {
			agt_run_violation(
				a, r, "COMMIT of rings in which an accepted peer is missing");
			return;
		}
		r->check_links = true;
		lost_sweep(a, r);
		r->ring_epoch = m->round;
		agt_mesh_open(a, r);
	}
	agt_spec_forget_all(a, r);
	for (g = r->groups; g; g = g->hh.next)
		if (m->round >= g->left)
			g->left = 0;
	r->epoch = m->epoch;
	r->committed = m->round;
	if (m->accept || m->ballots[WIRE_TOPOLOGY] > r->ballots[WIRE_TOPOLOGY])
		agt_waits_over(a, r, WIRE_TOPOLOGY);
	for (kind = 0; kind < WIRE_BALLOTS; kind++)
		if (m->ballots[kind] > r->ballots[kind])
			r->ballots[kind] = m->ballots[kind];
	view_set(a, r, &m->view);
	agt_mesh_tell(a, r);
	DL_FOREACH2 (r->comms, c, next_r)
		committed(a, c, m);
}

struct agt_generation agt_view_after(
	const struct agt_run *r, const struct agt_group *g, uint64_t generation, uint32_t code)
{
	uint32_t i;

	for (i = 0; code == WIRE_RANK_CONNECTION_LOST && i < g->n_lost; i++)
		if (generation < g->lost[i].generation)
			return g->lost[i];
	return (struct agt_generation){g->generation, agt_view_of(r, g)};
}

/* Stores and publishes a new view. The attempts that the master aborts next will end with this
 * view. So the peers must know it even if this agent dies before they end. */
void agt_view_set(struct agt *a, struct agt_run *r, const struct wm_view *w)
{
	struct agt_comm *c;

	view_set(a, r, w);
	DL_FOREACH2 (r->comms, c, next_r)
		agt_comm_publish(a, c);
}

static void outbound_down(struct agt *a, struct agt_run *r, struct agt_link *l)
{
	struct cc_id peer = l->peer;

	if (l->state != AGT_LINK_UP)
		return;
	if (r->round.active && !r->round.reported && round_streams(&r->round, &l->peer)) {
		link_reopen(a, r, l);
		link_open(a, r, l);
		return;
	}
	link_emit(a, r, l, AGT_ACT_LINK_CLOSE);
	HASH_DELETE(hh, r->links, l);
	free(l);
	agt_mesh_link_down(a, r, &peer);
}

void agt_links_tell(struct agt *a, struct agt_run *r)
{
	const struct agt_group *g;

	for (g = r->groups; g; g = g->hh.next) {
		if (!g->has_ring || g->ring.hosts == 1)
			continue;
		if (agt_link_from_lost(r, &g->ring.prev))
			tell_lost(a, r, &g->ring.prev, true,
				"it broke while the master was disconnected");
		if (!agt_link_is_up(r, &g->ring.next.agent))
			tell_lost(a, r, &g->ring.next.agent, false,
				"it broke while the master was disconnected");
	}
	agt_mesh_tell(a, r);
}

/* Handles the end of a link. If the other agent has closed the link that it opened (ended), it
 * knows of the end and reports it if necessary; this agent does not report it. The loss of a link
 * is reported before the failed operations, so that the next round reopens the link. For a silent
 * link the failed operations are reported first, so that the master knows that the path may be
 * gone. */
static void link_down(
	struct agt *a, struct agt_run *r, struct agt_link *l, const struct agt_event *ev)
{
	bool told = !ev->ended && is_of_ring(r, &ev->peer, ev->inbound) &&
		    (ev->inbound || (l && l->state == AGT_LINK_UP));

	if (ev->inbound && !ev->ended)
		lost_remember(r, &ev->peer);
	if (l && !ev->inbound)
		outbound_down(a, r, l);
	if (ev->silent)
		agt_op_link_down(a, r, ev);
	if (told)
		tell_lost(a, r, &ev->peer, ev->inbound, ev->text ? ev->text : "closed")->smaller =
			ev->smaller;
	if (!ev->silent)
		agt_op_link_down(a, r, ev);
	agt_mesh_check(a, r);
}

void agt_link_event(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_link *l;

	if (!r || !agt_run_lives(r))
		return;
	l = link_find(r, &ev->peer);
	if (ev->type == AGT_EV_LINK_DOWN) {
		link_down(a, r, l, ev);
		return;
	}
	if (ev->inbound) {
		lost_forget(r, &ev->peer);
		agt_mesh_check(a, r); /* a plan may have waited for the link */
		return;
	}
	if (ev->type == AGT_EV_LINK_SILENT) {
		if (l && l->state == AGT_LINK_UP)
			l->silent = ev->silent;
		round_report(a, r);
		return;
	}
	if (!l || l->state != AGT_LINK_OPENING)
		return;
	if (ev->type == AGT_EV_LINK_UP) {
		agt_link_set_state(a, l, AGT_LINK_UP);
	} else {
		agt_link_set_state(a, l, AGT_LINK_FAILED);
		l->limit = ev->code == WIRE_OUT_OF_MEMORY;
		agt_copy_text(l->text, sizeof l->text, ev->text);
		if (!round_waits_for(r, &l->peer))
			agt_mesh_link_failed(a, l);
	}
	round_report(a, r);
	agt_mesh_check(a, r);
	r->check_links = true;
}

bool agt_link_is_used(const struct agt_run *r, const struct cc_id *peer)
{
	const struct agt_group *g;

	for (g = r->groups; g; g = g->hh.next)
		if (g->has_ring &&
			(ring_has(&g->ring, peer, false) || agt_mesh_has(&g->ring, peer)))
			return true;
	return (r->round.active && round_streams(&r->round, peer)) || link_carries_xfer(r, peer);
}

void agt_links_sweep(struct agt *a, struct agt_run *r)
{
	struct agt_link *l, *next;

	r->check_links = false;
	HASH_ITER (hh, r->links, l, next) {
		if (agt_link_is_used(r, &l->peer))
			continue;
		if (l->state != AGT_LINK_FAILED)
			link_emit(a, r, l, AGT_ACT_LINK_CLOSE);
		/* The analyzer does not see that the table gets another head, and believes that
		 * the freed element is still the head.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		HASH_DELETE(hh, r->links, l);
		free(l);
	}
}

void agt_links_free(struct agt_run *r)
{
	struct agt_link *l, *next;

	lost_forget(r, NULL);
	HASH_ITER (hh, r->links, l, next) {
		/* The analyzer does not see that the table gets another head, and believes that
		 * the freed element is still the head.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		HASH_DELETE(hh, r->links, l);
		free(l);
	}
}
