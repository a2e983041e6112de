/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of shared state: the election, sources and receivers, failures and losses
 * meanwhile, the end. Votes, starts and reports are those of any operation (ccm_op.c).
 */
#include "ccoip-masterd/core/ccm_sync.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_record.h"

void ccm_sync_room(struct ccm_sync *y, uint32_t n)
{
	if (n <= y->n_sync_peers)
		return;
	y->sync_peers = cc_must_extend(y->sync_peers, y->n_sync_peers, n, sizeof *y->sync_peers);
	y->n_sync_peers = n;
}

struct ccm_sync *ccm_sync_new(const struct wm_sync_vote *first)
{
	struct ccm_sync *y = cc_must_zalloc(1, sizeof *y);

	y->bytes = first->bytes;
	return y;
}

void ccm_sync_free(struct ccm_sync *y)
{
	struct ccm_ask *q, *next;

	if (!y)
		return;
	for (q = y->asks; q; q = next) {
		next = q->next;
		free(q);
	}
	free(y->sync_peers);
	free(y);
}

bool ccm_sync_excludes(const struct ccm_op *o)
{
	const struct ccm_group *g = o->group;
	const struct ccm_op *x;

	if (!o->sync)
		return g->sync && (g->sync->seq || g->sync->ready);
	DL_FOREACH (g->ops, x)
		if (x != o && x->seq)
			return true;
	return false;
}

/* ---- the election ---- */

/* The input of ccm_elect, in ring order, and its result. */
struct ballot {
	struct ccm_peer **peers;
	struct ccm_candidate *v;
	struct ccm_standing *s;
	uint32_t *scratch;
	uint32_t n, cap;
	struct ccm_election e;
};

static struct ccm_candidate candidate(const struct wm_sync_vote *x)
{
	return (struct ccm_candidate){.revision = x->revision,
		.strategy = x->strategy,
		.hash_type = x->hash_type,
		.keys = {x->keys.hi, x->keys.lo},
		.content = {x->content.hi, x->content.lo},
		.n_tensors = x->n_tensors,
		.bytes = x->bytes,
		.torn = x->torn};
}

static void ballot_add(struct ballot *b, const struct ccm_op *o, const struct ccm_membership *s)
{
	struct ccm_peer *p;

	DL_FOREACH (s->peers, p) {
		if (b->n == b->cap || !ccm_op_voted(o, p))
			continue;
		b->peers[b->n] = p;
		b->v[b->n++] = candidate(&o->sync->sync_peers[p->slot].vote);
	}
}

static void ballot_free(struct ballot *b)
{
	free(b->peers);
	free(b->v);
	free(b->s);
	free(b->scratch);
}

static void ballot_new(const struct ccm_op *o, struct ballot *b)
{
	struct ccm_group *g = o->group;
	struct ccm_membership *s;
	uint32_t i;

	*b = (struct ballot){.cap = o->n_votes};
	b->peers = cc_must_zalloc(b->cap, sizeof(struct ccm_peer *));
	b->v = cc_must_zalloc(
		(size_t)b->cap + 1, sizeof b->v[0]); /* one more: the elected candidate */
	b->s = cc_must_zalloc(b->cap, sizeof b->s[0]);
	b->scratch = cc_must_zalloc(b->cap, sizeof b->scratch[0]);
	for (i = 0; i < g->n_ring; i++)
		ballot_add(b, o, g->ring[i]);
	DL_FOREACH2 (g->memberships, s, next_g)
		if (!s->in_ring)
			ballot_add(b, o, s);
}

/* Kicks the peers that have lost the election. */
static void kick_out(struct ccm *m, const struct ballot *b)
{
	char text[WM_TEXT_MAX];
	uint32_t i;

	for (i = 0; i < b->n; i++) {
		if (b->s[i].status != CCM_ELECT_KICKED)
			continue;
		ccm_elect_sentence(&b->e, b->v, b->s, i, text, sizeof text);
		ccm_peer_kick(m, b->peers[i], WIRE_INVALID_USAGE, "%s", text);
	}
}

static void take_elected(struct ccm_sync *y, const struct ballot *b)
{
	const struct ccm_candidate *x = &b->v[b->e.elected];
	uint32_t i;

	y->revision = b->e.revision;
	y->hash_type = x->hash_type;
	y->keys = (struct wm_digest){x->keys.hi, x->keys.lo};
	y->content = (struct wm_digest){x->content.hi, x->content.lo};
	for (i = 0; i < b->n; i++)
		y->sync_peers[b->peers[i]->slot].holder =
			b->s[i].status == CCM_ELECT_HOLDER ||
			b->s[i].status == CCM_ELECT_HOLDER_OUTDATED;
}

static void tell_starts(struct ccm *m, struct ccm_op *o);

/* Continues o, which has started: stores the elected contents, kicks peers and sends OP_START. */
static void go_on(struct ccm *m, struct ccm_op *o, const struct ballot *b)
{
	struct ccm_group *g = o->group;

	ccm_record_started(m, g->id, o->seq);
	take_elected(o->sync, b);
	ccm_log(m, CCM_LOG_INFO,
		"group %u, shared state, seq %" PRIu64 ": revision %" PRIu64 " is elected", g->id,
		o->seq, o->sync->revision);
	kick_out(m, b);
	g->generation_sent = false;
	if (!g->lost) /* else the view is sent first */
		tell_starts(m, o);
}

void ccm_sync_start(struct ccm *m, struct ccm_op *o)
{
	uint32_t group = o->group->id;
	struct ballot b;

	ballot_new(o, &b);
	ccm_elect(ccm_revision_of(o->group), b.v, b.n, b.scratch, b.s, &b.e);
	ccm_record_election(m, group, b.peers, b.v, b.n, b.s, &b.e);
	if (b.e.nobody) {
		ccm_log(m, CCM_LOG_WARNING, "group %u, shared state: no peer can be elected",
			group);
		ccm_op_drop(m, o);
		m->ops_aborted++;
		kick_out(m, &b);
	} else if (ccm_op_continue(m, o, ++m->last_seq)) {
		go_on(m, o, &b);
	}
	ballot_free(&b);
}

void ccm_sync_readopt(struct ccm *m, struct ccm_op *o, const struct wm_op_vote *told)
{
	uint64_t expected = ccm_revision_of(o->group) ? told->elected.revision : 0;
	struct wm_sync_vote elected = told->sync; /* the keys of `told` are the elected ones */
	struct ballot b;

	elected.revision = told->elected.revision;
	elected.content = told->elected.content;
	elected.torn = false;
	o->generation = o->group->generation; /* the group may have had losses since the votes */
	ballot_new(o, &b);
	b.v[b.n] = candidate(&elected);
	ccm_elect_replay(expected, b.v, b.n, b.s, &b.e);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): ballot_free frees b.v */
	ccm_record_election(m, o->group->id, b.peers, b.v, b.n, b.s, &b.e);
	go_on(m, o, &b);
	ballot_free(&b);
}

/* ---- sending the start ---- */

/* The agents of a synchronization. */
struct cast {
	const struct ccm_op *o;
	struct ccm_membership **holding; /* memberships that have holders */
	uint32_t *n_holders;
	struct ccm_membership **lacking; /* memberships that have only receivers */
	uint32_t n_holding, n_lacking;
	uint32_t turn; /* number of agents with receivers that have been given sources so far */
};

static const struct ccm_sync_peer *sync_peer_of(const struct ccm_op *o, const struct ccm_peer *p)
{
	return ccm_op_voted(o, p) ? &o->sync->sync_peers[p->slot] : NULL;
}

static void count(const struct ccm_op *o, const struct ccm_membership *s, uint32_t *holders,
	uint32_t *receivers)
{
	const struct ccm_sync_peer *x;
	const struct ccm_peer *p;

	*holders = *receivers = 0;
	DL_FOREACH (s->peers, p) {
		x = sync_peer_of(o, p);
		*holders += x && x->holder;
		*receivers += x && !x->holder;
	}
}

static void cast_free(struct cast *c)
{
	free(c->holding);
	free(c->n_holders);
	free(c->lacking);
}

static void cast_new(const struct ccm_op *o, struct cast *c)
{
	struct ccm_membership *s;
	uint32_t holders, receivers;

	*c = (struct cast){.o = o};
	c->holding = ccm_memberships_new(o->n_voters);
	c->lacking = ccm_memberships_new(o->n_voters);
	c->n_holders = cc_must_zalloc(o->n_voters, sizeof *c->n_holders);
	DL_FOREACH2 (o->group->memberships, s, next_g) {
		count(o, s, &holders, &receivers);
		if (holders > 0) {
			c->n_holders[c->n_holding] = holders;
			c->holding[c->n_holding++] = s;
		} else if (receivers > 0) {
			c->lacking[c->n_lacking++] = s;
		}
	}
}

/* Lists the agents of v as sources for s, from v[first] on, in a circle. Leaves out s itself, and
 * agents without a port for shared state. Returns the number of sources. */
static uint32_t list_sources(const struct ccm_membership *s, struct ccm_membership **v,
	const uint32_t *holders, uint32_t n, uint32_t first, struct wm_sync_source **ret)
{
	struct wm_sync_source *x = cc_must_zalloc(WM_SOURCES_MAX, sizeof *x);
	uint32_t i, k, found = 0;

	*ret = x;
	for (i = 0; i < n && found < WM_SOURCES_MAX; i++) {
		k = (uint32_t)(((uint64_t)first + i) % n);
		if (v[k] == s || !v[k]->agent->hello.port_shared_state)
			continue;
		ccm_agent_endpoint_state(v[k]->agent, s->agent, &x[found].endpoint);
		x[found++].holders = holders ? holders[k] : 0;
	}
	return found;
}

static void fill_peers(
	const struct ccm_op *o, const struct ccm_membership *s, struct wm_sync_start *x)
{
	const struct ccm_sync_peer *sync_peer;
	const struct ccm_peer *p;

	x->peers = cc_must_zalloc(o->parts[s->slot].n_votes, sizeof *x->peers);
	DL_FOREACH (s->peers, p) {
		sync_peer = sync_peer_of(o, p);
		if (sync_peer)
			x->peers[x->n_peers++] = (struct wm_sync_peer){
				p->id, sync_peer->holder ? WM_SYNC_HOLDER : WM_SYNC_RECEIVER};
	}
}

/* Lists the sources of s. To spread the load, the lists of different agents begin with different
 * holding agents. The list of lacking agents begins, for each of them, with the agent after it. */
static void fill_sources(struct cast *c, const struct ccm_membership *s, struct wm_sync_start *x)
{
	uint32_t holders, receivers, at = 0;

	count(c->o, s, &holders, &receivers);
	if (receivers == 0)
		return;
	while (at < c->n_lacking && c->lacking[at] != s)
		at++;
	x->n_sources =
		list_sources(s, c->holding, c->n_holders, c->n_holding, c->turn++, &x->sources);
	x->n_others = list_sources(s, c->lacking, NULL, c->n_lacking, at + 1, &x->others);
}

static void tell_start(struct ccm *m, struct cast *c, const struct ccm_membership *s)
{
	const struct ccm_op *o = c->o;
	struct wm_op_start *x = &ccm_send(m, s->agent, WM_OP_START)->u.op_start;

	x->group = o->group->id;
	x->seq = o->seq;
	x->epoch = o->epoch;
	x->is_sync = true;
	x->sync.revision = o->sync->revision;
	x->sync.hash_type = o->sync->hash_type;
	x->sync.keys = o->sync->keys;
	x->sync.content = o->sync->content;
	fill_peers(o, s, &x->sync);
	fill_sources(c, s, &x->sync);
}

/* Sends the start to all agents that have not received it. */
static void tell_starts(struct ccm *m, struct ccm_op *o)
{
	struct ccm_membership *s;
	struct cast c;
	uint32_t i, n = 0;

	for (i = 0; i < o->n_parts; i++)
		n += o->parts[i].membership && !o->parts[i].start_sent;
	if (n == 0)
		return;
	cast_new(o, &c);
	DL_FOREACH2 (o->group->memberships, s, next_g) {
		if (s->slot >= o->n_parts || o->parts[s->slot].membership != s ||
			o->parts[s->slot].start_sent)
			continue;
		o->parts[s->slot].start_sent = true;
		tell_start(m, &c, s);
	}
	cast_free(&c);
}

/* ---- losses meanwhile ---- */

void ccm_sync_lost(struct ccm *m, struct ccm_peer *p, const char *why)
{
	struct ccm_op *o = p->membership->group->sync;

	if (!o || (!ccm_op_voted(o, p) && !ccm_sync_is_disconnected(o, p)))
		return;
	if (o->seq)
		ccm_record_out(m, o->group->id, o->seq, &p->id, why);
	if (ccm_op_voted(o, p))
		ccm_op_unvote(m, o, p);
	o->sync->sync_peers[p->slot].disconnected = false;
}

bool ccm_sync_has_holder(const struct ccm_op *o)
{
	const struct ccm_sync_peer *x;
	const struct ccm_peer *p;
	uint32_t i;

	for (i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].membership)
			continue;
		DL_FOREACH (o->parts[i].membership->peers, p) {
			x = sync_peer_of(o, p);
			if (x && (x->holder || o->parts[i].reported) &&
				x->vote.strategy != WM_STRATEGY_RECEIVE_ONLY)
				return true;
		}
	}
	return false;
}

void ccm_sync_settle(struct ccm *m, struct ccm_group *g, const char *loss)
{
	struct ccm_op *o = g->sync;
	char text[WM_TEXT_MAX];

	if (!o)
		return;
	o->generation = g->generation;
	if (o->seq == 0) {
		if (o->n_votes == 0)
			ccm_op_drop(m, o);
		return;
	}
	if (o->n_reported == o->n_voters && g->n_accepted > 0) {
		ccm_op_done(m, o);
	} else if (!ccm_sync_has_holder(o)) {
		ccm_print(text, sizeof text, "no remaining peer has the elected shared state: %s",
			loss);
		ccm_op_abort(m, o, WIRE_RANK_CONNECTION_LOST, text);
	} else {
		tell_starts(m, o); /* no start was sent before the kicks of the election */
	}
}

/* ---- reports and the end ---- */

void ccm_sync_report(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r)
{
	struct ccm_membership *s = ccm_membership_of(m, a, o->group->id);
	char text[WM_TEXT_MAX];
	struct ccm_peer *p;
	uint32_t i;

	for (i = 0; i < r->n_failed; i++) {
		p = ccm_peer_of(m, a, &r->failed[i].peer, "a failure report");
		if (a->dead)
			return;
		if (!p || p->membership != s || !ccm_op_voted(o, p))
			continue;
		if (r->failed[i].code == WIRE_RANK_CONNECTION_LOST)
			ccm_newcomer_put_out(m, a);
		ccm_copy(text, sizeof text, r->failed[i].text);
		ccm_peer_kick(m, p, r->failed[i].code, "%s",
			text[0] ? text : "its shared state could not be synchronized");
	}
	if (r->ok && o->parts[s->slot].membership && !o->parts[s->slot].reported)
		ccm_op_reported(m, o, &o->parts[s->slot]);
}

void ccm_sync_done(struct ccm *m, const struct ccm_op *o)
{
	struct ccm_group *g = o->group;

	ccm_record_ended(m, g->id, o->seq, NULL);
	ccm_revision_raise(m, g->id, o->sync->revision + 1);
	if (g->last)
		g->last->lost = false;
	m->view_id++;
	ccm_journal_members(m);
	ccm_view_tell_group(m, g);
}
