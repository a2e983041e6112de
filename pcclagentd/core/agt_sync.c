/* SPDX-License-Identifier: MIT
 *
 * Synchronizations of shared state after the vote: their jobs, the members that fail or leave, and
 * the revision that a group expects. agt_op.c has the parts that all operations share.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"
#include "pcclagentd/core/agt_record.h"

void agt_revision_set(struct agt_run *r, uint32_t group, uint64_t revision)
{
	struct agt_group *g = agt_group_find(r, group);

	if (g && revision > g->revision)
		g->revision = revision;
}

static struct agt_op *job_find(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_op *o = r ? agt_op_by_seq(r, ev->seq) : NULL;

	return o && o->key.is_sync ? o : NULL;
}

static struct agt_op_member *member_find(struct agt_op *o, uint32_t comm)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		if (o->members[i].comm_id == comm)
			return &o->members[i];
	return NULL;
}

/* ---- the start ---- */

static const struct wm_sync_peer *role_of(const struct wm_sync_start *s, const struct cc_id *peer)
{
	uint32_t i;

	for (i = 0; i < s->n_peers; i++)
		if (cc_id_eq(&s->peers[i].peer, peer))
			return &s->peers[i];
	return NULL;
}

/* Sets the roles of the members. Voters that have left are not members any more, so every member
 * must have a role. False: a member has none. */
static bool take_roles(struct agt_op *o, const struct wm_sync_start *s)
{
	uint32_t i;

	for (i = 0; i < o->n; i++) {
		const struct wm_sync_peer *p = role_of(s, &o->members[i].peer);

		if (!p)
			return false;
		o->members[i].holder = p->role == WM_SYNC_HOLDER;
		agt_record_started(o->members[i].comm, o->seq, s->revision, o->members[i].holder);
	}
	return true;
}

static void fill_sources(const struct wm_sync_start *s, struct agt_sync *ret)
{
	uint32_t i, n = s->n_sources + s->n_others;

	if (n == 0)
		return;
	ret->sources = cc_must_zalloc(n, sizeof *ret->sources);
	for (i = 0; i < n; i++) {
		bool holds = i < s->n_sources;

		ret->sources[i].endpoint =
			holds ? s->sources[i].endpoint : s->others[i - s->n_sources].endpoint;
		ret->sources[i].holds = holds;
	}
	ret->n_sources = n;
}

static void fill_members(const struct agt_op *o, struct agt_sync *ret)
{
	uint32_t i;

	ret->members = cc_must_zalloc(o->n, sizeof *ret->members);
	for (i = 0; i < o->n; i++) {
		ret->members[i].comm = o->members[i].comm_id;
		ret->members[i].holder = o->members[i].holder;
		ret->members[i].sub = o->members[i].sub;
	}
	ret->n_members = o->n;
}

static void job_start(
	struct agt *a, struct agt_op *o, const struct agt_group *g, const struct wm_sync_start *s)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_SYNC_START);
	struct agt_sync *y = &x->u.sync;

	x->run = o->run->id;
	y->seq = o->seq;
	y->epoch = o->epoch;
	y->group = o->key.group;
	y->revision = s->revision;
	y->hash_type = s->hash_type;
	y->keys = s->keys;
	y->content = s->content;
	y->begin = agt_view_of(o->run, g);
	fill_members(o, y);
	fill_sources(s, y);
}

void agt_sync_start(struct agt *a, struct agt_op *o, const struct wm_op_start *m)
{
	const struct agt_group *g = agt_group_find(o->run, o->key.group);
	const struct wm_sync_start *s = &m->sync;

	/* The members are accepted, so there is a group. */
	if (!g || !take_roles(o, s)) {
		agt_run_violation(a, o->run,
			"OP_START of a synchronization omits a peer that has voted for it");
		return;
	}
	o->elected = (struct agt_elected){.revision = s->revision,
		.hash_type = s->hash_type,
		.keys = s->keys,
		.content = s->content};
	o->generation = g->generation;
	o->world_size = g->world_size;
	job_start(a, o, g, s);
	o->xfer = true;
	agt_op_set_state(a, o, AGT_OP_RUNNING);
}

/* ---- reports ---- */

static uint32_t count_fresh(const struct agt_op *o)
{
	uint32_t i, n = 0;

	for (i = 0; i < o->n; i++)
		n += o->members[i].fresh && !o->members[i].out;
	return n;
}

/* Reports to the master, with the failed members that were not reported yet. ok: the part of this
 * host is done. */
static void report(struct agt *a, struct agt_op *o, bool ok)
{
	struct wm_op_report *m = agt_op_report(a, o->run, o->seq, NULL, NULL);
	uint32_t i, n = count_fresh(o);

	m->ok = ok;
	if (n == 0)
		return;
	m->failed = cc_must_zalloc(n, sizeof *m->failed);
	for (i = 0; i < o->n; i++) {
		struct agt_op_member *x = &o->members[i];
		struct wm_sync_failure *f = &m->failed[m->n_failed];

		if (!x->fresh || x->out)
			continue;
		f->peer = x->peer;
		f->code = x->own.code;
		agt_copy_text(f->text, sizeof f->text, x->own.text);
		x->fresh = false;
		m->n_failed++;
	}
}

void agt_sync_resend_report(struct agt *a, struct agt_op *o)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		o->members[i].fresh = o->members[i].failed;
	o->resumed = o->seq != 0;
	if (o->doubt_ns)
		o->doubt_ns = a->now;
	if (o->state == AGT_OP_REPORTED && !o->ok)
		agt_op_report(a, o->run, o->seq, &o->suspect, o->end_status.text)->code =
			o->failure;
	else if (o->state == AGT_OP_REPORTED || count_fresh(o))
		report(a, o, o->state == AGT_OP_REPORTED);
}

static void done(struct agt *a, struct agt_op *o)
{
	report(a, o, true);
	agt_op_set_state(a, o, AGT_OP_REPORTED);
	o->ok = true;
	o->doubt_ns = 0;
}

static void member_fails(
	struct agt *a, struct agt_op *o, struct agt_op_member *m, uint32_t code, const char *text)
{
	if (m->failed || m->out)
		return;
	m->failed = m->fresh = true;
	agt_end_status_set(&m->own, code ? code : WIRE_INVALID_USAGE, "%s",
		text && text[0] ? text : "the agent could not synchronize its shared state");
	agt_log(a, AGT_LOG_WARNING,
		"run %u, the synchronization of group %u, seq %" PRIu64 ": pid %u (%s): %s",
		o->run->id, o->key.group, o->seq, m->comm->session->pid, m->comm->session->name,
		m->own.text);
}

static void take_results(struct agt *a, struct agt_op *o, const struct agt_event *ev)
{
	uint32_t i;

	for (i = 0; i < ev->n_results; i++) {
		const struct agt_sync_result *x = &ev->results[i];
		struct agt_op_member *m = member_find(o, x->comm);

		if (!m)
			continue;
		m->tx_bytes = x->tx_bytes;
		m->rx_bytes = x->rx_bytes;
		m->complete |= x->complete;
		if (x->failed && o->state != AGT_OP_CANCELLING)
			member_fails(a, o, m, x->code, x->text);
	}
}

/* ---- doubt ---- */

static bool receives(const struct agt_op_member *m)
{
	return !m->holder && !m->complete && !m->out && !m->failed;
}

static bool anyone_receives(const struct agt_op *o)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		if (receives(&o->members[i]))
			return true;
	return false;
}

static uint64_t doubt_until(const struct agt *a, const struct agt_op *o)
{
	uint64_t ms = (uint64_t)o->run->timeout_ms + AGT_DOUBT_MS;
	/* While this process stood still, messages of the master were not read. */
	uint64_t since = o->doubt_ns > a->woke_ns ? o->doubt_ns : a->woke_ns;

	return since + ms * AGT_NS_PER_MS;
}

/* Ends the doubt of o. If the holders were gone, the master would have noticed this by now. So they
 * are alive, but this host cannot reach them, or their contents are not the elected ones. Therefore
 * the receivers of this host fail. No call ends with a loss, because the application would then
 * repeat it. If o->resumed, there is another possible reason: the holders got the start from the
 * next master after the job of this host was over. Then the whole operation fails without a
 * suspect. */
static void give_up(struct agt *a, struct agt_op *o)
{
	struct agt_end_status why = o->end_status;
	uint32_t i;

	if (o->resumed) {
		agt_op_failed(a, o, NULL, WIRE_RANK_CONNECTION_LOST, why.text);
		return;
	}
	for (i = 0; i < o->n; i++)
		if (receives(&o->members[i]))
			member_fails(a, o, &o->members[i], WIRE_INVALID_USAGE, o->end_status.text);
	done(a, o);
}

static void doubt(struct agt *a, struct agt_op *o, const char *text)
{
	struct agt_run *r = o->run;

	if (!o->doubt_ns)
		o->doubt_ns = a->now;
	agt_end_status_set(&o->end_status, WIRE_RANK_CONNECTION_LOST, "%s",
		text ? text : "no remaining peer has the elected shared state");
	if (!anyone_receives(o)) {
		done(a, o);
		return;
	}
	if (count_fresh(o))
		report(a, o, false);
	if (!r->doubt_ns || doubt_until(a, o) < r->doubt_ns)
		r->doubt_ns = doubt_until(a, o);
}

void agt_sync_tick(struct agt *a, struct agt_run *r)
{
	uint64_t next = 0;
	struct agt_op *o;

	/* While there is no master, no lost peer is noticed, so the doubt goes on. */
	if (!r->doubt_ns || a->now < r->doubt_ns || agt_run_orphaned(r))
		return;
	DL_FOREACH2 (r->ops, o, next_op) {
		if (!o->doubt_ns)
			continue;
		if (a->now >= doubt_until(a, o))
			give_up(a, o);
		else if (!next || doubt_until(a, o) < next)
			next = doubt_until(a, o);
	}
	r->doubt_ns = next;
}

/* ---- the end ---- */

void agt_sync_done(struct agt *a, const struct agt_event *ev)
{
	struct agt_op *o = job_find(a, ev);
	bool reported;

	if (!o || (o->state != AGT_OP_RUNNING && o->state != AGT_OP_REPORTED))
		return;
	reported = o->state == AGT_OP_REPORTED;
	if (reported && !o->ok)
		return;
	take_results(a, o, ev);
	if (ev->code == WIRE_SUCCESS && !reported)
		done(a, o);
	else if (reported && count_fresh(o))
		report(a, o, true);
	else if (reported)
		return;
	else if (ev->code == WIRE_RANK_CONNECTION_LOST)
		doubt(a, o, ev->text);
	else
		agt_op_failed(
			a, o, NULL, ev->code, ev->text ? ev->text : "the agent cannot synchronize");
}

void agt_sync_won(struct agt *a, struct agt_op *o, uint64_t revision)
{
	o->won = true;
	o->elected.revision = revision;
	agt_op_cancel(a, o);
}

static void drop_from_job(struct agt *a, const struct agt_op *o, const struct agt_op_member *m)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_SYNC_DROP);

	x->run = o->run->id;
	x->comm = m->comm_id;
	x->u.sync.seq = o->seq;
}

void agt_sync_drop(struct agt *a, struct agt_op *o, struct agt_op_member *m, enum agt_exit how,
	const struct agt_end_status *v)
{
	if (o->won || m->out) { /* the member has its result, or its part is already ending */
		if (how == AGT_EXIT_DIED)
			m->comm = NULL;
		return;
	}
	agt_op_member_out(m, how, v);
	if (o->state == AGT_OP_CANCELLING)
		return;
	if (agt_op_members_in(o) == 0) {
		agt_end_status_set(
			&o->end_status, WIRE_RANK_CONNECTION_LOST, "no local member is left");
		agt_op_cancel(a, o);
		return;
	}
	m->dropping = true;
	drop_from_job(a, o, m);
	if (o->doubt_ns && !anyone_receives(o))
		done(a, o);
}

void agt_sync_dropped(struct agt *a, const struct agt_event *ev)
{
	struct agt_op *o = job_find(a, ev);
	struct agt_op_member *m = o ? member_find(o, ev->comm) : NULL;

	if (!m || !m->dropping)
		return;
	m->dropping = false;
	take_results(a, o, ev);
	agt_op_complete(a, o, m, &m->own);
}

void agt_sync_cancelled(struct agt *a, const struct agt_event *ev)
{
	struct agt_op *o = job_find(a, ev);

	if (!o || o->state != AGT_OP_CANCELLING)
		return;
	take_results(a, o, ev);
	agt_op_end(a, o, o->won ? NULL : &o->end_status);
}
