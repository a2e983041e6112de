/* SPDX-License-Identifier: MIT
 *
 * The state of the core for operators: status, peers, operations, and what each waits for.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_sync.h"

#define NAMES_MAX 6u /* awaited peers or hosts that are named */

/* A text with a list of names, up to a limit. */
struct names {
	char *text;
	size_t size;
	uint32_t n;
};

static void names_add(struct names *x, const char *name)
{
	if (x->n < NAMES_MAX)
		ccm_append(x->text, x->size, "%s%s", x->n ? ", " : "", name);
	else if (x->n == NAMES_MAX)
		ccm_append(x->text, x->size, ", ...");
	x->n++;
}

void ccm_name_reporters(const struct ccm *m, char *text, size_t size)
{
	struct names x = {text, size, 0};
	struct ccm_agent *a;

	for (a = m->agents; a && x.n <= NAMES_MAX; a = a->hh.next)
		if (a->round == m->last_round && !a->reported)
			names_add(&x, a->hello.name);
}

static double seconds(uint64_t now_ns, uint64_t since)
{
	return (double)ccm_age(now_ns, since) / 1e9;
}

static void name_disconnected(const struct ccm *m, uint64_t now, struct names *x)
{
	char text[WM_NAME_MAX + 64];
	struct ccm_agent *a;

	DL_FOREACH2 (m->disconnected, a, next_ab) {
		ccm_print(text, sizeof text, "agent %s disconnected for %.1f s", a->hello.name,
			seconds(now, a->disconnected_ns));
		names_add(x, text);
		if (x->n > NAMES_MAX)
			return;
	}
}

static void write_recovering(const struct ccm *m, uint64_t now, struct names *x)
{
	struct ccm_returned y;

	ccm_returned(m, &y);
	if (y.expected > y.back)
		ccm_print(x->text, x->size, "recovering: waiting for %u of %u peers",
			y.expected - y.back, y.expected);
	else if (y.doubt)
		ccm_print(x->text, x->size,
			"recovering: waiting for an agent that knows whether the last connection "
			"round was committed");
	else
		ccm_print(x->text, x->size, "recovering: waiting for the agents of the run");
	if (!m->disconnected)
		return;
	ccm_append(x->text, x->size, ", ");
	name_disconnected(m, now, x);
}

static void write_round(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	if (m->round.failed_ns) {
		ccm_print(text, size, "connection round %llu has failed: deciding how to go on",
			(unsigned long long)m->last_round);
		return;
	}
	ccm_print(text, size,
		"waiting for %u of %u agents to report on connection round %llu (%.1f s so far): ",
		m->round.n_agents - m->round.n_reported, m->round.n_agents,
		(unsigned long long)m->last_round, seconds(now, m->round.since_ns));
	ccm_name_reporters(m, text, size);
}

/* Does the run wait only for newcomers, none of which a round can admit? */
static bool waits_for_newcomers(const struct ccm *m)
{
	return ccm_ballot_open(m) == WIRE_BALLOTS && m->n_registered > 0 &&
	       ccm_newcomers_ready(m) == 0;
}

static void write_votes(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	enum wire_ballot kind = ccm_ballot_open(m);
	uint64_t since = m->registered_since;

	if (kind != WIRE_BALLOTS)
		since = m->ballots[kind].since_ns;
	else if (m->n_registered > 0) /* newcomers wait for a topology vote */
		kind = WIRE_TOPOLOGY;
	else
		return;
	ccm_print(text, size, "waiting for %u of %u peers to call %s (%.1f s so far): ",
		m->n_accepted - m->ballots[kind].n_votes, m->n_accepted,
		wire_ballot_kinds[kind].call, seconds(now, since));
	ccm_name_voters(m, kind, now, true, text, size);
}

static void write_optimizing(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	const struct ccm_optimize *x = &m->optimize;
	double s = seconds(now, x->began_ns);

	if (x->phase == CCM_OPTIMIZE_MEASURING)
		ccm_print(text, size, "measuring links: round %u of %u (%.1f s so far)",
			x->round + 1, x->n_rounds, s);
	else
		ccm_print(text, size, "looking for the best rings (%.1f s so far)", s);
}

void ccm_write_waiting(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	struct names x = {text, size, 0};

	*text = '\0';
	if (m->recovering) {
		write_recovering(m, now, &x);
	} else if (m->round.active) {
		write_round(m, now, text, size);
	} else if (ccm_round_waits(m) && (m->rewire || ccm_topology_agreed(m))) {
		ccm_print(text, size, "waiting for the snapshot of the agent on %s",
			ccm_round_waits(m)->hello.name);
	} else if (m->disconnected) {
		ccm_print(text, size,
			"waiting for %u of %u peers to come back: ", m->n_disconnected,
			m->n_accepted);
		name_disconnected(m, now, &x);
	} else if (m->optimize.phase == CCM_OPTIMIZE_MEASURING ||
		   m->optimize.phase == CCM_OPTIMIZE_SOLVING) {
		write_optimizing(m, now, text, size);
	} else if (waits_for_newcomers(m)) {
		ccm_newcomers_name(m, now, text, size);
	} else {
		write_votes(m, now, text, size);
	}
}

void ccm_get_status(const struct ccm *m, struct ccm_status *ret)
{
	struct ccm_agent *a;

	*ret = (struct ccm_status){
		.run = m->cfg.run,
		.term = m->term,
		.recovering = m->recovering,
		.stale = m->stale,
		.epoch = m->epoch,
		.round = m->last_round,
		.last_seq = m->last_seq,
		.round_active = m->round.active,
		.round_accepts = m->round.active && m->round.accept,
		.registered = m->n_registered,
		.accepted = m->n_accepted,
		.disconnected = m->n_disconnected,
		.groups = HASH_COUNT(m->groups),
		.revisions = HASH_COUNT(m->revisions),
		.joins = m->joins,
		.leaves = m->leaves,
		.lost_members = m->lost_members - m->leaves,
		.kicks = m->kicks,
		.ops_started = m->ops_started,
		.ops_done = m->ops_done,
		.ops_aborted = m->ops_aborted,
		.rounds = m->rounds,
	};
	for (a = m->agents; a; a = a->hh.next)
		ret->agents += a->greeted;
}

static void show_peer(const struct ccm_peer *p, int rank, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_peer_info *p), void *arg)
{
	const struct ccm_agent *a = p->membership->agent;
	struct ccm_peer_info info = {
		.peer = p->id,
		.agent = a->hello.agent,
		.name = p->name,
		.host = a->hello.name,
		.addr = a->from,
		.group = p->membership->group->id,
		.pid = p->pid,
		.ops = p->n_ops,
		.rank = rank,
		.phase = p->phase,
		.disconnected = a->disconnected,
		.disconnected_ns = a->disconnected ? ccm_age(now_ns, a->disconnected_ns) : 0,
		.state = p->state,
		.state_ns = ccm_age(now_ns, p->state_since),
	};

	fn(arg, &info);
}

void ccm_each_peer(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_peer_info *p), void *arg)
{
	struct ccm_group *g;
	struct ccm_membership *s;
	struct ccm_peer *p;
	uint32_t i;
	int rank;

	for (g = m->groups; g; g = g->hh.next) {
		rank = 0;
		for (i = 0; i < g->n_ring; i++)
			DL_FOREACH (g->ring[i]->peers, p)
				if (p->phase == CCM_PEER_ACCEPTED)
					show_peer(p, rank++, now_ns, fn, arg);
		DL_FOREACH2 (g->memberships, s, next_g)
			DL_FOREACH (s->peers, p)
				if (p->phase == CCM_PEER_REGISTERED || !s->in_ring)
					show_peer(p, -1, now_ns, fn, arg);
	}
}

/* Returns the size of a pcclDataType_t. */
static uint64_t type_size(uint32_t dtype)
{
	static const uint8_t size[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

	return dtype < sizeof size ? size[dtype] : 0;
}

static void name_op_awaited(
	const struct ccm *m, const struct ccm_op *o, uint64_t now, char *text, size_t size)
{
	struct names x = {text, size, 0};
	uint32_t i;

	if (o->seq == 0)
		ccm_op_awaited(m, o, now, true, text, size);
	else if (ccm_name_stopped(o->group, now, true, text, size))
		ccm_append(text, size, "; reports of ");
	for (i = 0; o->seq && i < o->n_parts; i++)
		if (o->parts[i].membership && !o->parts[i].reported)
			names_add(&x, o->parts[i].membership->agent->hello.name);
}

/* ---- operations in snapshots, during a takeover ---- */

struct snap_op {
	const struct ccm_raw *raw;
	uint32_t world_size; /* of the group, as the agent knows it; 0: not reported yet */
};

static int by_key(const void *x, const void *y)
{
	const struct wm_op_vote *a = &((const struct snap_op *)x)->raw->vote;
	const struct wm_op_vote *b = &((const struct snap_op *)y)->raw->vote;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->is_sync != b->is_sync)
		return a->is_sync ? -1 : 1;
	return (a->tag > b->tag) - (a->tag < b->tag);
}

static uint32_t snap_world_size(const struct ccm_snapshot *t, uint32_t group)
{
	uint32_t i;

	for (i = 0; i < t->r.view.n; i++)
		if (t->r.view.own[i].group == group)
			return t->r.view.own[i].world_size;
	return 0;
}

static uint64_t vote_bytes(const struct wm_op_vote *v)
{
	return v->is_sync ? v->sync.bytes : v->params.count * type_size(v->params.dtype);
}

/* Shows the operation for which v has n votes. */
static void show_snapshot(const struct ccm *m, uint64_t now_ns, const struct snap_op *v, uint32_t n,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg)
{
	const struct wm_op_vote *first = &v->raw->vote;
	uint64_t age = m->recover_ns ? ccm_age(now_ns, m->recover_ns) : 0;
	struct ccm_op_info info = {
		.group = first->group,
		.tag = first->tag,
		.age_ns = age,
		.standstill_ns = age,
		.bytes = vote_bytes(first),
		.params = first->params,
		.is_sync = first->is_sync,
	};
	struct names x = {info.awaited, sizeof info.awaited, 0};
	bool reported = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		info.votes += v[i].raw->vote.n_peers;
		reported |= v[i].raw->reported;
		if (v[i].raw->vote.seq > info.seq)
			info.seq = v[i].raw->vote.seq;
		if (v[i].world_size > info.world_size)
			info.world_size = v[i].world_size;
	}
	info.state = reported   ? CCM_VOTE_COMPLETE_COLLECTIVE_COMMS
		     : info.seq ? CCM_PERFORM_COLLECTIVE_COMMS
				: CCM_VOTE_INITIATE_COLLECTIVE_COMMS;
	write_recovering(m, now_ns, &x);
	fn(arg, &info);
}

static void each_snapshot(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg)
{
	const struct ccm_agent *a;
	const struct ccm_raw *x;
	struct snap_op *v;
	uint32_t n = 0, i, k;

	for (a = m->agents; a; a = a->hh.next)
		n += a->snapshot ? a->snapshot->n_ops : 0;
	v = cc_must_zalloc(n, sizeof *v);
	n = 0;
	for (a = m->agents; a; a = a->hh.next)
		for (x = a->snapshot ? a->snapshot->ops : NULL; x; x = x->next)
			v[n++] = (struct snap_op){x, snap_world_size(a->snapshot, x->vote.group)};
	qsort(v, n, sizeof *v, by_key);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && by_key(&v[i], &v[k]) == 0; k++)
			;
		show_snapshot(m, now_ns, &v[i], k - i, fn, arg);
	}
	free(v);
}

void ccm_each_op(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg)
{
	struct ccm_group *g;
	struct ccm_op *o;

	if (m->recovering) { /* operations are only in the snapshots */
		each_snapshot(m, now_ns, fn, arg);
		return;
	}
	for (g = m->groups; g; g = g->hh.next) {
		DL_FOREACH (g->ops, o) {
			struct ccm_op_info info = {
				.group = g->id,
				.tag = o->key.tag,
				.seq = o->seq,
				.age_ns = ccm_age(now_ns, o->born_ns),
				.standstill_ns = ccm_age(now_ns, o->changed_ns),
				.bytes = o->sync ? o->sync->bytes
						 : o->params.count * type_size(o->params.dtype),
				.state = o->state,
				.params = o->params,
				.is_sync = o->sync != NULL,
				.votes = o->n_votes,
				.world_size = g->n_accepted,
			};

			name_op_awaited(m, o, now_ns, info.awaited, sizeof info.awaited);
			fn(arg, &info);
		}
	}
}
