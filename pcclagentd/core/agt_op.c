/* SPDX-License-Identifier: MIT
 *
 * Operations after the vote: start, transfer, report, and the common end for all members.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"
#include "pcclagentd/core/agt_record.h"

_Static_assert(sizeof(struct agt_op_key) == 16, "hashed as bytes");

struct agt_op *agt_op_find(struct agt_op *head, const struct agt_op_key *key)
{
	struct agt_op *o;

	/* All bytes of the key are set: it has no padding.
	 * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	HASH_FIND(hh_key, head, key, sizeof *key, o);
	return o;
}

struct agt_op *agt_op_by_seq(struct agt_run *r, uint64_t seq)
{
	struct agt_op *o;

	HASH_FIND(hh_seq, r->started, &seq, sizeof seq, o);
	return o;
}

const char *agt_op_name(const struct agt_op *o, char *buf, size_t size)
{
	if (o->key.is_sync)
		(void)snprintf(buf, size, "the synchronization of group %u", o->key.group);
	else
		(void)snprintf(buf, size, "tag %" PRIu64 " of group %u", o->key.tag, o->key.group);
	return buf;
}

struct agt_op *agt_op_new(
	struct agt *a, struct agt_run *r, const struct agt_group *g, const struct agt_op_key *key)
{
	struct agt_op *o = cc_must_zalloc(1, sizeof *o);

	o->run = r;
	o->key = *key;
	o->generation = g->generation;
	o->born_ns = a->now;
	HASH_ADD(hh_key, r->collecting, key, sizeof o->key, o);
	DL_APPEND2(r->ops, o, prev_op, next_op);
	agt_waits_add(a, o);
	return o;
}

void agt_op_add(struct agt *a, struct agt_op *o, struct agt_comm *c, const struct shm_submission *s,
	const struct agt_end_status *refusal)
{
	struct agt_op_member *m;

	if (o->n == o->cap)
		o->members = cc_must_grow(o->members, &o->cap, c->grp->accepted, sizeof *m);
	m = &o->members[o->n++];
	memset(m, 0, sizeof *m);
	m->comm = c;
	m->comm_id = c->id;
	m->peer = c->peer;
	m->sub = *s;
	m->own = *refusal;
	c->slots[s->slot] = o;
	c->n_ops++;
	c->waits_any = false;
	c->n_waited += s->waited;
	if (s->is_sync && !s->refused)
		agt_record_voted(a, c, &s->sync);
}

static void neighbours_free(struct agt_op *o)
{
	free(o->neighbours.out);
	free(o->neighbours.in);
	o->neighbours = (struct agt_neighbours){.n_out = 0};
}

void agt_op_free(struct agt *a, struct agt_op *o)
{
	struct agt_run *r = o->run;

	agt_waits_remove(a, o);
	if (o->state == AGT_OP_COLLECTING)
		HASH_DELETE(hh_key, r->collecting, o);
	else if (o->state != AGT_OP_CANCELLING)
		HASH_DELETE(hh_key, r->active, o);
	if (o->seq)
		HASH_DELETE(hh_seq, r->started, o);
	DL_DELETE2(r->ops, o, prev_op, next_op);
	free(o->awaited);
	free(o->members);
	neighbours_free(o);
	free(o);
}

/* Returns the generation that the application knows after o has ended with *v. If the group has had
 * a loss since the submission of o, the application learns of it now only if *v reports a loss.
 * Otherwise its next call reports the loss. */
static uint64_t generation_told(
	const struct agt_op *o, const struct agt_comm *c, const struct agt_end_status *v)
{
	if (!c->grp)
		return 0;
	if (!v || v->code != WIRE_RANK_CONNECTION_LOST)
		return o->generation;
	if (o->state == AGT_OP_CANCELLING)
		return o->at_end.generation;
	return agt_view_after(c->run, c->grp, o->generation, v->code).generation;
}

/* Fills in the result of a member. v: NULL means success. The bytes that were read from tensors or
 * written to them are reported in any case. */
static void fill_done(const struct agt_op *o, const struct agt_op_member *m,
	const struct agt_end_status *v, struct agt_done *ret)
{
	ret->tx_bytes = m->tx_bytes;
	ret->rx_bytes = m->rx_bytes;
	if (v) {
		ret->code = v->code;
		memcpy(ret->text, v->text, sizeof ret->text);
		return;
	}
	ret->world_size = o->world_size;
	ret->revision = o->elected.revision;
	if (o->key.is_sync)
		return;
	ret->tx_bytes = o->tx_bytes;
	ret->rx_bytes = o->rx_bytes;
}

void agt_op_complete(struct agt *a, const struct agt_op *o, struct agt_op_member *m,
	const struct agt_end_status *v)
{
	struct agt_done done = {.code = WIRE_SUCCESS};
	struct agt_comm *c = m->comm;

	if (!c)
		return;
	m->comm = NULL;
	fill_done(o, m, v, &done);
	done.generation = generation_told(o, c, v);
	if (o->state == AGT_OP_CANCELLING && c->run == o->run)
		done.after = o->at_end.view;
	else if (c->run == o->run)
		agt_comm_view_after(c, o->generation, done.code, &done.after);
	c->slots[m->sub.slot] = NULL;
	c->n_ops--;
	c->waits_any = false; /* the process reports again if it still waits */
	c->n_waited -= m->sub.waited;
	agt_complete(a, c->id, m->sub.slot, &done);
	if (o->key.is_sync && !m->sub.refused)
		agt_record_ended(a, c, &done);
	if (c->state == AGT_COMM_LEAVING && c->n_ops == 0 && !c->untold)
		agt_comm_finish(a, c);
}

static void emit_seq(
	struct agt *a, const struct agt_op *o, enum agt_action_type xfer, enum agt_action_type sync)
{
	struct agt_action *x = agt_emit(a, o->key.is_sync ? sync : xfer);

	x->run = o->run->id;
	if (o->key.is_sync)
		x->u.sync.seq = o->seq;
	else
		x->u.xfer.seq = o->seq;
}

void agt_op_end(struct agt *a, struct agt_op *o, const struct agt_end_status *v)
{
	struct agt_run *r = o->run;
	uint32_t i;

	if (o->state != AGT_OP_COLLECTING) {
		if (v)
			a->ops_failed++;
		else
			a->ops_done++;
		if (agt_op_find(r->collecting, &o->key))
			r->check_votes = true;
	}
	for (i = 0; i < o->n; i++) {
		struct agt_op_member *m = &o->members[i];

		agt_op_complete(a, o, m, m->out && (v || o->key.is_sync) ? &m->own : v);
	}
	if (o->xfer) {
		emit_seq(a, o, AGT_ACT_XFER_FREE, AGT_ACT_SYNC_FREE);
		r->check_links = true;
	}
	agt_op_free(a, o);
}

void agt_op_cancel(struct agt *a, struct agt_op *o)
{
	const struct agt_group *g = agt_group_find(o->run, o->key.group);

	if (o->stopped) {
		agt_op_end(a, o, &o->end_status);
		return;
	}
	if (g)
		o->at_end = agt_view_after(
			o->run, g, o->generation, o->won ? WIRE_SUCCESS : o->end_status.code);
	if (!o->stopping)
		emit_seq(a, o, AGT_ACT_XFER_CANCEL, AGT_ACT_SYNC_CANCEL);
	HASH_DELETE(hh_key, o->run->active, o);
	agt_op_set_state(a, o, AGT_OP_CANCELLING);
	o->spec = o->awaits_start = false;
	o->doubt_ns = 0;
	if (agt_op_find(o->run->collecting, &o->key))
		o->run->check_votes = true;
}

void agt_op_member_out(struct agt_op_member *m, enum agt_exit how, const struct agt_end_status *v)
{
	m->out = true;
	if (v)
		m->own = *v;
	if (how == AGT_EXIT_DIED)
		m->comm = NULL;
}

uint32_t agt_op_members_in(const struct agt_op *o)
{
	uint32_t i, n = 0;

	for (i = 0; i < o->n; i++)
		n += !o->members[i].out;
	return n;
}

/* Takes member i out of an operation that has no transfer, and completes it at once. */
static void drop_now(struct agt *a, struct agt_op *o, uint32_t i, enum agt_exit how,
	const struct agt_end_status *v)
{
	static const struct agt_end_status nobody = {.code = WIRE_RANK_CONNECTION_LOST};
	struct agt_op_member m = o->members[i];

	memmove(&o->members[i], &o->members[i + 1], (o->n - i - 1) * sizeof m);
	o->n--;
	if (how == AGT_EXIT_DIED)
		m.comm = NULL;
	o->spoiled = o->state == AGT_OP_VOTING;
	agt_op_complete(a, o, &m, v);
	if (o->n == 0)
		agt_op_end(a, o, &nobody);
}

void agt_op_drop_out(struct agt *a, struct agt_op *o)
{
	struct agt_op_member m;
	uint32_t i;

	for (i = o->n; i-- > 0;) {
		if (!o->members[i].out)
			continue;
		m = o->members[i];
		memmove(&o->members[i], &o->members[i + 1], (o->n - i - 1) * sizeof m);
		o->n--;
		o->spoiled = true;
		agt_op_complete(a, o, &m, &m.own);
	}
}

/* Lets m leave o while there is no master. m must not wait for the next one. If success was
 * reported, other hosts may already know of the success, and o no longer touches m's memory.
 * Otherwise o has failed, and m gets its memory back when the transfer is cancelled. In both cases
 * the next master ends o for the other members: it raises the generation of the group, so that the
 * loss of m costs them one error only. */
static void leave_orphan(struct agt *a, struct agt_op *o, struct agt_op_member *m)
{
	if (o->state == AGT_OP_REPORTED && o->ok) {
		agt_op_complete(a, o, m, &m->own);
		return;
	}
	if (o->state == AGT_OP_RUNNING) {
		agt_copy_text(o->end_status.text, sizeof o->end_status.text,
			"a local peer has left while the master was disconnected");
		agt_op_set_state(a, o, AGT_OP_REPORTED);
	}
	if (o->stopped)
		agt_op_drop_out(a, o);
	if (o->stopping || o->stopped)
		return;
	emit_seq(a, o, AGT_ACT_XFER_CANCEL, AGT_ACT_SYNC_CANCEL);
	o->stopping = true;
}

static void drop_member(struct agt *a, struct agt_op *o, struct agt_comm *c, enum agt_exit how,
	const struct agt_end_status *v)
{
	struct agt_op_member *m = o->members;

	while (m->comm != c)
		m++;
	if (o->spec && o->state == AGT_OP_VOTING)
		agt_spec_rollback(a, o);
	if (!o->xfer) {
		drop_now(a, o, (uint32_t)(m - o->members), how, v);
		return;
	}
	if (o->key.is_sync) {
		agt_sync_drop(a, o, m, how, v);
		return;
	}
	agt_op_member_out(m, how, v);
	if (o->state == AGT_OP_CANCELLING)
		return;
	if (agt_op_members_in(o) == 0) {
		agt_end_status_set(
			&o->end_status, WIRE_RANK_CONNECTION_LOST, "no local member is left");
		agt_op_cancel(a, o);
	} else if (how == AGT_EXIT_CLEAN && agt_run_orphaned(o->run)) {
		leave_orphan(a, o, m);
	}
}

void agt_op_drop_comm(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v)
{
	struct agt_op *mine[SHM_SLOTS];
	uint32_t i;

	if (c->n_ops == 0)
		return;
	/* c may be freed after its last operation has ended, so the loop does not use c->slots. */
	memcpy(mine, c->slots, sizeof mine);
	for (i = 0; i < SHM_SLOTS; i++)
		if (mine[i])
			drop_member(a, mine[i], c, how, v);
}

struct wm_op_report *agt_op_report(struct agt *a, struct agt_run *r, uint64_t seq,
	const struct cc_id *suspect, const char *failure)
{
	struct wm_op_report *m = &agt_send(a, r, WM_OP_REPORT)->u.op_report;

	m->seq = seq;
	m->ok = failure == NULL;
	if (suspect)
		m->suspect = *suspect;
	agt_copy_text(m->text, sizeof m->text, failure);
	return m;
}

static void report_failure(struct agt *a, struct agt_op *o, const struct cc_id *suspect)
{
	struct wm_op_report *m =
		agt_op_report(a, o->run, o->seq, suspect, o->ok ? NULL : o->end_status.text);

	m->silent = o->silent;
	m->code = o->ok ? 0 : o->failure;
}

void agt_op_failed(struct agt *a, struct agt_op *o, const struct cc_id *suspect, uint32_t code,
	const char *why)
{
	o->ok = false;
	o->failure = agt_own_code(code);
	agt_copy_text(o->end_status.text, sizeof o->end_status.text, why);
	report_failure(a, o, suspect);
	agt_op_set_state(a, o, AGT_OP_REPORTED);
	o->doubt_ns = 0;
	if (suspect)
		o->suspect = *suspect;
}

void agt_op_tell(struct agt *a, struct agt_op *o)
{
	if (o->state != AGT_OP_VOTING && o->state != AGT_OP_RUNNING && o->state != AGT_OP_REPORTED)
		return;
	/* The next master counts only votes that are sent again, except for attempts that have
	 * started. If a voter of a started attempt has left, the group has a loss, which ends this
	 * attempt as well. */
	o->spoiled = false;
	o->awaits_start = o->spec && o->state == AGT_OP_VOTING;
	o->spec = o->awaits_start;
	agt_op_resend_vote(a, o);
	if (o->key.is_sync)
		agt_sync_resend_report(a, o);
	else if (o->state == AGT_OP_REPORTED)
		report_failure(a, o, &o->suspect);
}

static void xfer_skip(struct agt *a, const struct agt_run *r, uint64_t seq)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_XFER_SKIP);

	x->run = r->id;
	x->u.xfer.seq = seq;
}

static int by_rank(const void *x, const void *y)
{
	const struct agt_op_member *m = x, *n = y;

	return (m->rank > n->rank) - (m->rank < n->rank);
}

const char *agt_op_cannot_start(
	struct agt_op *o, const struct agt_group *g, const struct cc_id **suspect)
{
	uint32_t i;

	*suspect = NULL;
	if (o->spoiled)
		return "a local peer has left after its vote";
	if (!g || !g->has_ring)
		return "this host has no ring";
	for (i = 0; i < o->n; i++)
		if (o->members[i].sub.refused)
			return "the call of a local peer has failed";
	for (i = 1; i < o->n; i++)
		if (!agt_subs_agree(&o->members[0].sub, &o->members[i].sub))
			return "local peers gave different parameters";
	if (g->ring.hosts > 1 && !agt_link_is_up(o->run, &g->ring.next.agent)) {
		*suspect = &g->ring.next.agent;
		return "the link to the next host is down";
	}
	if (g->ring.hosts > 1 && agt_link_from_lost(o->run, &g->ring.prev)) {
		*suspect = &g->ring.prev;
		return "the link from the previous host is down";
	}
	if (o->route == CC_ALGO_RINGS)
		return agt_plan_broken(o->run, &g->ring, suspect);
	return o->route == CC_ALGO_RING ? NULL : agt_mesh_broken(o->run, &g->ring, suspect);
}

bool agt_op_uses(const struct agt_op *o, const struct cc_id *peer, bool inbound)
{
	const struct agt_neighbours *x = &o->neighbours;
	const struct cc_id *v = inbound ? x->in : x->out;
	uint32_t i, n = inbound ? x->n_in : x->n_out;

	if (o->route == CC_ALGO_RING)
		return cc_id_eq(inbound ? &o->prev : &o->next, peer);
	for (i = 0; i < n; i++)
		if (cc_id_eq(&v[i], peer))
			return true;
	return false;
}

/* Notes with which hosts o exchanges data, if it takes another route than the ring. */
static void set_neighbours(struct agt_op *o, const struct wm_ring *ring, struct agt_xfer *t)
{
	struct agt_neighbours *x = &o->neighbours;

	neighbours_free(o);
	if (o->route == CC_ALGO_RING)
		return;
	t->agents = agt_mesh_agents(ring);
	if (o->route == CC_ALGO_RINGS) {
		t->rings = agt_plan_rings(ring);
		x->n_out = x->n_in = ring->plan.n;
		x->out = agt_plan_agents(ring, false);
		x->in = agt_plan_agents(ring, true);
	} else {
		x->n_out = x->n_in = ring->hosts;
		x->out = agt_mesh_agents(ring);
		x->in = agt_mesh_agents(ring);
	}
}

void agt_op_xfer_start(struct agt *a, struct agt_op *o, const struct agt_group *g)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_XFER_START);
	struct agt_xfer *t = &x->u.xfer;
	uint32_t i;

	x->run = o->run->id;
	t->seq = o->seq;
	t->spec = o->spec;
	t->tag = o->key.tag;
	t->epoch = o->epoch;
	t->group = g->group;
	t->params = agt_sub_params(&o->members[0].sub);
	t->world_size = o->world_size = g->world_size;
	t->generation = o->generation;
	t->begin = agt_view_of(o->run, g);
	t->hosts = g->ring.hosts;
	t->pos = g->ring.pos;
	t->segment_max = o->run->segment_max;
	t->route = o->route;
	set_neighbours(o, &g->ring, t);
	if (t->hosts > 1) {
		t->next = o->next = g->ring.next.agent;
		t->prev = o->prev = g->ring.prev;
		memcpy(t->prev_name, g->ring.prev_name, sizeof t->prev_name);
	}
	for (i = 0; i < o->n; i++)
		o->members[i].rank = o->members[i].comm->rank;
	qsort(o->members, o->n, sizeof *o->members, by_rank);
	t->members = cc_must_zalloc(o->n, sizeof *t->members);
	for (i = 0; i < o->n; i++) {
		t->members[i].comm = o->members[i].comm_id;
		t->members[i].sub = o->members[i].sub;
	}
	t->n_members = o->n;
	o->xfer = true;
}

/* Is `seq` not new? Only a master that resumes a run may use a lower number, and only for an
 * operation that has not started here. */
static bool seq_is_old(const struct agt_run *r, uint64_t seq, const struct agt_op *o)
{
	bool resumed = r->resumed && o && o->state == AGT_OP_VOTING;

	return seq <= r->last_seq && !resumed;
}

/* Takes the sequence number of WM_OP_START. Returns false if there is nothing to start, or if the
 * master broke the protocol. *ret: the operation, or NULL if no local peer takes part. */
static bool take_seq(
	struct agt *a, struct agt_run *r, const struct wm_op_start *m, struct agt_op **ret)
{
	struct agt_op_key key = agt_op_key(m->group, m->tag, m->is_sync);
	struct agt_op *o = agt_op_find(r->active, &key);
	struct agt_op *again = agt_op_by_seq(r, m->seq);

	if (again && again->spec && again->epoch != m->epoch) {
		agt_spec_rollback(a, again);
		again = NULL;
	}
	if (again && memcmp(&again->key, &key, sizeof key) == 0) {
		if (again->spec)
			agt_spec_committed(a, again);
		return false; /* a master that resumes the run sends it again to be safe */
	}
	if (again || seq_is_old(r, m->seq, o)) {
		agt_run_violation(a, r, "OP_START with a sequence number that is not new");
		return false;
	}
	if (m->seq > r->last_seq)
		r->last_seq = m->seq;
	if (o && o->spec)
		agt_spec_rollback(a, o);
	if (o && o->state != AGT_OP_VOTING) {
		agt_run_violation(a, r, "OP_START of an operation that has started");
		return false;
	}
	*ret = o;
	return true;
}

static void op_start(struct agt *a, struct agt_op *o)
{
	const struct agt_group *g = agt_group_find(o->run, o->key.group);
	const struct cc_id *suspect;
	const char *why = agt_op_cannot_start(o, g, &suspect);

	if (o->seq == o->rolled_back)
		why = "its transfer had started and was aborted";
	if (why) {
		xfer_skip(a, o->run, o->seq);
		agt_op_failed(a, o, suspect, WIRE_RANK_CONNECTION_LOST, why);
	} else {
		agt_op_xfer_start(a, o, g);
		agt_op_set_state(a, o, AGT_OP_RUNNING);
	}
}

void agt_op_start(struct agt *a, struct agt_run *r, const struct wm_op_start *m)
{
	struct agt_op *o = NULL;

	if (!take_seq(a, r, m, &o))
		return;
	if (!o) {
		/* The members of a synchronization do not wait for peers that have left. */
		if (m->is_sync)
			return;
		xfer_skip(a, r, m->seq);
		agt_op_report(a, r, m->seq, NULL, "no local peer takes part any more");
		return;
	}
	o->seq = m->seq;
	o->epoch = m->epoch;
	o->route = m->route;
	HASH_ADD(hh_seq, r->started, seq, sizeof o->seq, o);
	agt_waits_remove(a, o);
	agt_waits_started(a, o);
	if (m->is_sync)
		agt_sync_start(a, o, m);
	else
		op_start(a, o);
}

void agt_op_abort(struct agt *a, struct agt_run *r, const struct wm_op_abort *m)
{
	struct agt_op_key key = agt_op_key(m->group, m->tag, m->is_sync);
	char name[AGT_OP_NAME];
	struct agt_op *o;

	o = m->seq ? agt_op_by_seq(r, m->seq) : agt_op_find(r->active, &key);
	if (!o)
		o = agt_spec_rolled_back(r, &key, m->seq);
	/* There is nothing to abort if no local peer takes part in the attempt any more, or if the
	 * abort is for an earlier vote. Votes for synchronizations outlive losses, so their
	 * generation is not compared. */
	if (!o || o->state == AGT_OP_CANCELLING ||
		(m->seq == 0 && ((o->state != AGT_OP_VOTING && !o->spec) ||
					(!m->is_sync && o->generation != m->generation))))
		return;
	agt_end_status_set(&o->end_status, m->code ? m->code : WIRE_INTERNAL_ERROR, "%s",
		m->text[0] ? m->text : "the master aborted the operation and gave no reason");
	agt_log(a, AGT_LOG_INFO, "run %u, %s, seq %" PRIu64 ": %s", r->id,
		agt_op_name(o, name, sizeof name), o->seq, o->end_status.text);
	if (o->seq)
		agt_history_add(r, o->key.group, o->seq, o->end_status.code);
	if (o->xfer)
		agt_op_cancel(a, o);
	else
		agt_op_end(a, o, &o->end_status);
}

void agt_op_done(struct agt *a, struct agt_run *r, const struct wm_op_done *m)
{
	struct agt_op *o = agt_op_by_seq(r, m->seq);
	struct agt_op_key key;
	uint64_t bytes;

	if (!o) {
		if (m->seq > r->last_seq)
			agt_run_violation(a, r, "OP_DONE of an operation that did not start");
		return;
	}
	if (o->key.is_sync && m->revision < UINT64_MAX)
		agt_revision_set(r, o->key.group, m->revision + 1);
	if (o->state == AGT_OP_CANCELLING)
		return; /* all its members have left */
	if (o->state != AGT_OP_REPORTED || !o->ok) {
		agt_run_violation(
			a, r, "OP_DONE of an operation that this host did not report as done");
		return;
	}
	agt_history_add(r, o->key.group, o->seq, WIRE_SUCCESS);
	if (o->key.is_sync) {
		agt_sync_won(a, o, m->revision);
		return;
	}
	if (m->next && m->next <= r->last_seq) {
		agt_run_violation(a, r, "OP_DONE with a next number that is not new");
		return;
	}
	key = o->key;
	bytes = o->members[0].sub.bytes;
	agt_op_end(a, o, NULL);
	if (m->next)
		agt_spec_reserve(a, r, &key, bytes, m);
}

void agt_op_xfer_done(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_op *o = r ? agt_op_by_seq(r, ev->seq) : NULL;
	const struct cc_id *suspect = NULL;
	const char *why;

	if (!o || o->key.is_sync ||
		(o->state != AGT_OP_RUNNING && !(o->spec && o->state == AGT_OP_VOTING)))
		return;
	if (ev->code == WIRE_SUCCESS) {
		o->tx_bytes = ev->tx_bytes;
		o->rx_bytes = ev->rx_bytes;
		if (!o->awaits_start)
			(void)agt_op_report(a, r, o->seq, NULL, NULL);
		agt_op_set_state(a, o, AGT_OP_REPORTED);
		o->ok = true;
		return;
	}
	if (cc_id_eq(&ev->peer, &o->next) || cc_id_eq(&ev->peer, &o->prev))
		suspect = &ev->peer;
	why = ev->text ? ev->text : "the transfer failed";
	if (o->spec)
		agt_spec_failed(a, o, suspect, why)->code = agt_own_code(ev->code);
	else
		agt_op_failed(a, o, suspect, ev->code, why);
}

void agt_op_xfer_cancelled(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_op *o = r ? agt_op_by_seq(r, ev->seq) : NULL;

	if (!o || o->key.is_sync)
		return;
	if (o->state == AGT_OP_CANCELLING) {
		agt_op_end(a, o, &o->end_status);
	} else if (o->stopping) {
		o->stopping = false;
		o->stopped = true;
		agt_op_drop_out(a, o);
	}
}

/* Reports a standstill. The master compares it with the reports of the other hosts. */
void agt_op_xfer_standstill(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);
	struct agt_op *o = r ? agt_op_by_seq(r, ev->seq) : NULL;

	if (!o || o->key.is_sync || r->state != AGT_RUN_UP || !(r->features & WM_STANDSTILLS) ||
		(o->state != AGT_OP_RUNNING && !(o->spec && o->state == AGT_OP_VOTING)))
		return;
	agt_send(a, r, WM_STANDSTILL)->u.standstill = (struct wm_standstill){
		.seq = ev->seq, .sent = ev->tx_bytes, .received = ev->rx_bytes, .ms = ev->still_ms};
}

void agt_op_link_down(struct agt *a, struct agt_run *r, const struct agt_event *ev)
{
	char why[WM_TEXT_MAX], peer[CC_ID_SHORT_SIZE];
	struct agt_op *o;

	(void)snprintf(why, sizeof why, "the link %s agent %s broke: %s",
		ev->inbound ? "from" : "to", cc_id_short(&ev->peer, peer),
		ev->text ? ev->text : "closed");
	DL_FOREACH2 (r->ops, o, next_op) {
		if (!o->xfer || !agt_op_uses(o, &ev->peer, ev->inbound))
			continue;
		if (o->spec && o->state == AGT_OP_VOTING)
			agt_spec_failed(a, o, &ev->peer, why)->silent = ev->silent;
		if (o->state != AGT_OP_RUNNING)
			continue;
		o->silent = ev->silent;
		agt_op_failed(a, o, &ev->peer, WIRE_RANK_CONNECTION_LOST, why);
	}
}
