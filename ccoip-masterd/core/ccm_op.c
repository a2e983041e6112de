/* SPDX-License-Identifier: MIT
 *
 * Operations: votes, start, reports, the end.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_record.h"
#include "ccoip-masterd/core/ccm_sync.h"
#include "proto/wire_dtype.h"
#include "proto/wire_names.h"

bool ccm_op_voted(const struct ccm_op *o, const struct ccm_peer *p)
{
	return p->phase == CCM_PEER_ACCEPTED && p->slot / 64 < o->n_words &&
	       (o->voted[p->slot / 64] >> (p->slot % 64) & 1);
}

void ccm_op_free(struct ccm_op *o)
{
	ccm_sync_free(o->sync);
	free(o->voted);
	free(o->parts);
	free(o);
}

const char *ccm_op_label(const struct ccm_op *o, char buf[64])
{
	if (o->sync)
		ccm_print(buf, 64, "group %u, shared state,", o->group->id);
	else
		ccm_print(buf, 64, "group %u tag %" PRIu64, o->group->id, o->key.tag);
	return buf;
}

/* Makes room for all slots of the group, whose number may have grown since the operation was
 * made. */
void ccm_op_room(struct ccm_op *o)
{
	uint32_t words = o->group->peer_slots.n / 64 + 1, parts = o->group->membership_slots.n;

	if (words > o->n_words) {
		o->voted = cc_must_extend(o->voted, o->n_words, words, sizeof *o->voted);
		o->n_words = words;
	}
	if (o->sync)
		ccm_sync_room(o->sync, words * 64);
	if (parts > o->n_parts) {
		o->parts = cc_must_extend(o->parts, o->n_parts, parts, sizeof *o->parts);
		o->n_parts = parts;
	}
}

static struct ccm_op *op_get(struct ccm *m, struct ccm_group *g, const struct wm_op_vote *v)
{
	struct ccm_op_key key = {g->id, v->is_sync, v->tag};
	struct ccm_op *o;

	HASH_FIND(hh, m->ops, &key, sizeof key, o);
	if (o) {
		ccm_op_room(o);
		return o;
	}
	o = cc_must_zalloc(1, sizeof *o);
	if (v->is_sync)
		o->sync = ccm_sync_new(&v->sync);
	o->key = key;
	o->group = g;
	o->born_ns = m->now;
	o->generation = v->is_sync ? g->generation : v->generation;
	ccm_op_room(o);
	HASH_ADD(hh, m->ops, key, sizeof o->key, o);
	DL_APPEND(g->ops, o);
	if (o->sync)
		g->sync = o;
	ccm_waits_add(m, o);
	return o;
}

void ccm_op_drop(struct ccm *m, struct ccm_op *o)
{
	struct ccm_peer *p;
	uint32_t i;

	HASH_DELETE(hh, m->ops, o);
	if (o->seq)
		HASH_DELETE(hh_seq, m->started, o);
	else
		ccm_waits_remove(m, o, false);
	ccm_spec_forget(m, o);
	if (o->ready)
		DL_DELETE2(m->ready, o, prev_r, next_r);
	DL_DELETE(o->group->ops, o);
	if (o->sync)
		o->group->sync = NULL;
	for (i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].membership)
			continue;
		DL_FOREACH (o->parts[i].membership->peers, p) {
			if (!ccm_op_voted(o, p))
				continue;
			ccm_unmet_release(m, o, p);
			p->n_ops--;
			p->n_running -= o->seq != 0;
			ccm_peer_refresh(m, p);
		}
	}
	ccm_unmet_forget(m, o);
	ccm_op_free(o);
}

static void send_to_voters(struct ccm *m, const struct ccm_op *o)
{
	uint32_t i;

	for (i = 0; i < o->n_parts; i++)
		if (o->parts[i].membership)
			ccm_send_to(m, o->parts[i].membership->agent);
}

void ccm_op_abort(struct ccm *m, struct ccm_op *o, uint32_t code, const char *text)
{
	char label[64];
	struct wm_op_abort *x = &ccm_send_all(m, WM_OP_ABORT)->u.op_abort;

	x->group = o->group->id;
	x->tag = o->key.tag;
	x->is_sync = o->sync != NULL;
	x->seq = o->seq;
	x->generation = o->generation;
	x->code = code;
	ccm_print(x->text, sizeof x->text, "%s", text);
	send_to_voters(m, o);
	ccm_log(m, CCM_LOG_INFO, "%s seq %" PRIu64 " is aborted: %s", ccm_op_label(o, label),
		o->seq, text);
	m->ops_aborted++;
	if (o->seq)
		ccm_outcome_note(o->group, o->seq, code);
	if (o->seq && o->sync)
		ccm_record_ended(m, o->group->id, o->seq, text);
	ccm_sync_answer(m, o);
	ccm_op_drop(m, o);
}

void ccm_group_abort(
	struct ccm *m, struct ccm_group *g, uint32_t code, const char *text, bool halted)
{
	struct ccm_op *o, *tmp;

	DL_FOREACH_SAFE (g->ops, o, tmp)
		if (!o->sync || (halted && o->seq))
			ccm_op_abort(m, o, code, text);
}

static void fill_start(const struct ccm_op *o, struct wm_op_start *x)
{
	x->group = o->group->id;
	x->tag = o->key.tag;
	x->seq = o->seq;
	x->epoch = o->epoch;
	x->route = o->route;
}

void ccm_op_unvote(struct ccm *m, struct ccm_op *o, struct ccm_peer *p)
{
	struct ccm_part *part = &o->parts[p->membership->slot];

	ccm_spec_forget(m, o);
	ccm_unmet_unblock(m, o, p);
	o->voted[p->slot / 64] &= ~(UINT64_C(1) << (p->slot % 64));
	o->n_votes--;
	p->n_ops--;
	p->n_running -= o->seq != 0;
	ccm_peer_refresh(m, p);
	if (--part->n_votes > 0)
		return;
	o->n_voters--;
	o->n_reported -= part->reported;
	*part = (struct ccm_part){0};
}

void ccm_op_withdraw(struct ccm *m, struct ccm_membership *s)
{
	struct ccm_op *o, *tmp;
	struct ccm_part *part;
	struct ccm_peer *p;

	DL_FOREACH (s->group->ops, o)
		if (o->seq || o->abort_code)
			return;
	DL_FOREACH_SAFE (s->group->ops, o, tmp) {
		part = s->slot < o->n_parts ? &o->parts[s->slot] : NULL;
		if (!part || part->membership != s)
			continue;
		if (part->n_votes == o->n_votes) {
			ccm_op_drop(m, o);
			continue;
		}
		DL_FOREACH (s->peers, p)
			if (ccm_op_voted(o, p))
				ccm_op_unvote(m, o, p);
	}
}

static void all_reported(struct ccm *m, struct ccm_op *o)
{
	if (o->n_reported == 0)
		return;
	if (o->state != CCM_VOTE_COMPLETE_COLLECTIVE_COMMS)
		ccm_op_set_state(m, o, CCM_VOTE_COMPLETE_COLLECTIVE_COMMS);
	if (o->n_reported == o->n_voters && !(o->sync && o->group->lost))
		ccm_op_done(m, o);
}

static void op_start(struct ccm *m, struct ccm_op *o)
{
	uint64_t spec_seq = ccm_spec_commit(m, o);

	if (!spec_seq)
		o->route = ccm_mesh_route(m, o);
	if (!ccm_op_continue(m, o, spec_seq ? spec_seq : ++m->last_seq))
		return;
	if (spec_seq) {
		all_reported(m, o);
		return;
	}
	fill_start(o, &ccm_send_all(m, WM_OP_START)->u.op_start);
	send_to_voters(m, o);
}

static bool may_start(const struct ccm *m, const struct ccm_op *o)
{
	return !m->round.active && !m->rewire && !ccm_ballot_bars(o->group) &&
	       !ccm_sync_excludes(o);
}

/* Starts or aborts o if it has all its votes. May free o. */
static void op_evaluate(struct ccm *m, struct ccm_op *o)
{
	struct ccm_group *g = o->group;
	bool complete = o->n_votes == g->n_accepted && o->seq == 0;

	if (complete && o->abort_code) {
		ccm_op_abort(m, o, o->abort_code, o->text);
		return;
	}
	if (o->ready)
		DL_DELETE2(m->ready, o, prev_r, next_r);
	o->ready = complete && !may_start(m, o);
	if (o->ready)
		DL_APPEND2(m->ready, o, prev_r, next_r);
	else if (complete && o->sync)
		ccm_sync_start(m, o);
	else if (complete)
		op_start(m, o);
}

void ccm_group_recount(struct ccm *m, struct ccm_group *g)
{
	struct ccm_op *o, *tmp;

	DL_FOREACH_SAFE (g->ops, o, tmp)
		op_evaluate(m, o);
}

void ccm_op_settle(struct ccm *m)
{
	struct ccm_op *o, *tmp;

	/* A commit may have admitted newcomers, whose votes are missing, or a round may have
	 * begun. */
	DL_FOREACH_SAFE2 (m->ready, o, tmp, next_r)
		if (may_start(m, o) || o->n_votes < o->group->n_accepted)
			op_evaluate(m, o);
}

static void set_conflict(struct ccm_op *o, const char *field, const char *first, const char *other,
	const struct ccm_peer *who)
{
	char label[3 * WM_NAME_MAX];

	o->abort_code = WIRE_INVALID_ARGUMENT;
	ccm_print(o->text, sizeof o->text,
		"the peers of group %u disagree on tag %" PRIu64
		": %s is %s for the peers that called first, %s for %s",
		o->group->id, o->key.tag, field, first, other, ccm_peer_label(who, label));
}

static void note_refusal(struct ccm_op *o, const struct wm_refusal *f, const struct ccm_peer *who)
{
	char label[3 * WM_NAME_MAX], said[WM_TEXT_MAX];

	o->abort_code = f->code;
	ccm_copy(said, sizeof said, f->text);
	ccm_print(o->text, sizeof o->text, "the call of %s failed: %s", ccm_peer_label(who, label),
		said);
}

/* Notes the first field that differs. */
static void note_conflict(
	struct ccm_op *o, const struct wm_op_params *q, const struct ccm_peer *who)
{
	const struct wm_op_params *p = &o->params;
	const struct {
		const char *field;
		const char *(*name)(uint32_t number);
		uint32_t first, other;
	} f[] = {
		{"data type", wire_dtype_name, p->dtype, q->dtype},
		{"operator", wire_op_name, p->op, q->op},
		{"quantized data type", wire_quant_dtype_name, p->quant.dtype, q->quant.dtype},
		{"distribution hint", wire_hint_name, p->quant.hint, q->quant.hint},
	};
	char first[WIRE_QUANT_NAME], other[WIRE_QUANT_NAME];
	size_t i;

	if (p->count != q->count) {
		ccm_print(first, sizeof first, "%" PRIu64, p->count);
		ccm_print(other, sizeof other, "%" PRIu64, q->count);
		set_conflict(o, "count", first, other, who);
	} else if (p->quant.algo != q->quant.algo &&
		   (p->quant.dtype == q->quant.dtype || p->quant.algo == WIRE_QUANT_NONE ||
			   q->quant.algo == WIRE_QUANT_NONE)) {
		set_conflict(o, "quantization algorithm", wire_quant_name(p->quant.algo, first),
			wire_quant_name(q->quant.algo, other), who);
	}
	for (i = 0; i < sizeof f / sizeof f[0] && !o->abort_code; i++)
		if (f[i].first != f[i].other)
			set_conflict(
				o, f[i].field, f[i].name(f[i].first), f[i].name(f[i].other), who);
}

void ccm_op_count(struct ccm_op *o, struct ccm_peer *p)
{
	struct ccm_part *part = &o->parts[p->membership->slot];

	if (!part->membership) {
		part->membership = p->membership;
		o->n_voters++;
	}
	part->n_votes++;
	o->n_votes++;
	o->voted[p->slot / 64] |= UINT64_C(1) << (p->slot % 64);
	p->n_ops++;
}

static void count_vote(
	struct ccm *m, struct ccm_op *o, struct ccm_peer *p, const struct wm_op_vote *v)
{
	if (!o->sync)
		ccm_spec_voted(m, o, v->spec_seq);
	ccm_op_count(o, p);
	ccm_unmet_waits_for(m, o, p, v->waits_for);
	p->n_alone = 0;
	if (o->sync)
		o->sync->sync_peers[p->slot] = (struct ccm_sync_peer){.vote = v->sync};
	if (o->abort_code)
		return;
	if (v->refusal.code)
		note_refusal(o, &v->refusal, p);
	else if (!o->sync && o->params.count == 0)
		o->params = v->params;
	else if (!o->sync)
		note_conflict(o, &v->params, p);
}

/* Returns the reason why p must not vote, or NULL if it may. */
static const char *vote_objection(
	const struct ccm_peer *p, const struct wm_op_vote *v, const struct ccm_op *o)
{
	if (p->phase != CCM_PEER_ACCEPTED)
		return "before it was accepted";
	if (p->membership->group->id != v->group)
		return "of a group that it is not in";
	if (o && (o->seq != 0 || ccm_op_voted(o, p)))
		return "that it has already voted for";
	if (p->n_ops >= CCM_PEER_OPS_MAX)
		return "with too many operations outstanding";
	return NULL;
}

void ccm_op_refuse(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text)
{
	struct wm_op_abort *x = &ccm_send(m, a, WM_OP_ABORT)->u.op_abort;

	x->group = v->group;
	x->tag = v->tag;
	x->is_sync = v->is_sync;
	x->generation = v->generation;
	x->code = code;
	ccm_print(x->text, sizeof x->text, "%s", text);
}

/* Does the vote count? If not, it has been answered. */
static bool vote_counts(
	struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, const struct ccm_group *g)
{
	/* A vote from before a loss is answered with the loss, even if no other peer is left. */
	if (!v->is_sync && v->generation != g->generation)
		ccm_op_refuse(m, a, v, WIRE_RANK_CONNECTION_LOST,
			g->loss[0] ? g->loss : "the group has lost a member since the call");
	else if (g->n_accepted < 2 && !v->is_sync)
		ccm_op_refuse(m, a, v, WIRE_TOO_FEW_PEERS, CCM_ALONE);
	else
		return true;
	return false;
}

void ccm_op_tell_end(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text)
{
	struct wm_op_abort *x;

	if (code == WIRE_SUCCESS) {
		ccm_send(m, a, WM_OP_DONE)->u.op_done =
			(struct wm_op_done){.seq = v->seq, .revision = v->elected.revision};
		return;
	}
	x = &ccm_send(m, a, WM_OP_ABORT)->u.op_abort;
	x->group = v->group;
	x->tag = v->tag;
	x->is_sync = v->is_sync;
	x->seq = v->seq;
	x->generation = v->generation;
	x->code = code;
	ccm_print(x->text, sizeof x->text, "%s", text);
}

/* Tells the end of an attempt to an agent that received its start, but whose connection broke
 * before the end. If the attempt has failed and the group does not know this yet, all operations of
 * the group fail. */
static void answer_started(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v)
{
	struct ccm_membership *s = ccm_membership_of(m, a, v->group);
	struct ccm_group *g = s ? s->group : NULL;
	uint32_t code = ccm_outcome_of(m, g, v->seq);

	if (code != WIRE_SUCCESS && code != WIRE_RANK_CONNECTION_LOST) {
		ccm_op_tell_end(m, a, v, code, CCM_FAILED_UNHEARD);
		return;
	}
	if (g && code != WIRE_SUCCESS && v->generation == g->generation) {
		ccm_group_interrupt(m, g,
			"the connection of host %s to the master broke during an operation",
			a->hello.name);
		ccm_loss_announce(m); /* a peer that tries again must know of the loss */
	}
	/* The note shows a contradiction if an agent that knows another outcome comes later. */
	if (g && !ccm_outcome_is_known(m, g, v->seq))
		ccm_outcome_note(g, v->seq, code);
	ccm_op_tell_end(
		m, a, v, code, g && g->loss[0] ? g->loss : "the connection to the master broke");
}

struct ccm_op *ccm_op_collect(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v)
{
	struct ccm_op_key key = {v->group, v->is_sync, v->tag};
	struct ccm_op *o;
	struct ccm_peer *p;
	uint32_t i;

	HASH_FIND(hh, m->ops, &key, sizeof key, o);
	for (i = 0; i < v->n_peers; i++) {
		p = ccm_peer_find(m, &v->peers[i]);
		if (!p || p->membership->agent != a || vote_objection(p, v, o))
			continue;
		o = op_get(m, p->membership->group, v);
		count_vote(m, o, p, v);
	}
	return o;
}

bool ccm_op_continue(struct ccm *m, struct ccm_op *o, uint64_t seq)
{
	struct ccm_peer *p;
	uint32_t i;

	if (o->n_votes + ccm_sync_count_disconnected(o) < o->group->n_accepted ||
		(o->group->n_accepted < 2 && !o->sync) || o->abort_code) {
		ccm_op_drop(m, o);
		return false;
	}
	o->group->generation_sent = false;
	o->seq = seq;
	if (!o->epoch) /* no agent has started it */
		o->epoch = m->epoch;
	HASH_ADD(hh_seq, m->started, seq, sizeof o->seq, o);
	ccm_waits_remove(m, o, true);
	ccm_unmet_forget(m, o);
	ccm_op_set_state(m, o, CCM_PERFORM_COLLECTIVE_COMMS);
	m->ops_started++;
	o->started_ns = m->now;
	for (i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].membership)
			continue;
		DL_FOREACH (o->parts[i].membership->peers, p) {
			if (!ccm_op_voted(o, p))
				continue;
			ccm_unmet_release(m, o, p);
			p->n_running++;
			p->optimize_failed = false; /* it went on alone */
			ccm_peer_refresh(m, p);
		}
	}
	return true;
}

void ccm_op_tell_start(struct ccm *m, const struct ccm_op *o, struct ccm_agent *a)
{
	fill_start(o, &ccm_send(m, a, WM_OP_START)->u.op_start);
}

/* Writes "an operation (group 0, tag 7)". Returns buf. */
static const char *vote_label(const struct wm_op_vote *v, char buf[64])
{
	if (v->is_sync)
		ccm_print(buf, 64, "a synchronization (group %u)", v->group);
	else
		ccm_print(buf, 64, "an operation (group %u, tag %" PRIu64 ")", v->group, v->tag);
	return buf;
}

/* Are all members of `a` gone from the run, while `a` does not know this yet? */
static bool speaks_for_nobody(const struct ccm_agent *a)
{
	return a->resuming && a->n_accepted == 0;
}

/* Handles a vote for an attempt that has started. Only an agent that comes back may send one. */
static void vote_started(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v)
{
	if (v->seq > m->last_seq || !a->resuming)
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a vote for an attempt that %s",
			v->seq > m->last_seq ? "never started" : "has started");
	else if (!ccm_sync_rejoin(m, a, v))
		answer_started(m, a, v);
}

void ccm_op_vote(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v)
{
	struct ccm_op_key key = {v->group, v->is_sync, v->tag};
	struct ccm_op *o = NULL;
	struct ccm_peer *p;
	const char *why;
	char label[64];
	uint32_t i;

	if (speaks_for_nobody(a))
		return;
	ccm_view_catch_up(m, a);
	if (v->generation > m->last_generation) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a vote with a generation that the group has not "
			"reached");
		return;
	}
	if (v->seq) {
		vote_started(m, a, v);
		return;
	}
	HASH_FIND(hh, m->ops, &key, sizeof key, o);
	for (i = 0; i < v->n_peers; i++) {
		p = ccm_peer_of(m, a, &v->peers[i], "an operation's vote");
		if (a->dead)
			return;
		if (!p)
			continue;
		why = vote_objection(p, v, o);
		if (why) {
			ccm_peer_violation(m, p, "it voted for %s %s", vote_label(v, label), why);
			continue;
		}
		if (!vote_counts(m, a, v, p->membership->group))
			return;
		o = op_get(m, p->membership->group, v);
		o->changed_ns = m->now;
		count_vote(m, o, p, v);
	}
	if (o)
		op_evaluate(m, o);
}

uint64_t ccm_op_bytes(const struct ccm_op *o)
{
	uint32_t dtype = o->params.dtype;

	return dtype <= WIRE_DTYPE_MAX ? o->params.count * wire_dtype_size[dtype] : 0;
}

void ccm_op_done(struct ccm *m, struct ccm_op *o)
{
	struct wm_op_done *x;

	if (o->sync)
		ccm_sync_done(m, o);
	x = &ccm_send_all(m, WM_OP_DONE)->u.op_done;
	x->seq = o->seq;
	x->revision = o->sync ? o->sync->revision : 0;
	x->next = o->sync ? 0 : ccm_spec_reserve(m, o, &x->next_route);
	send_to_voters(m, o);
	m->ops_done++;
	if (!o->sync)
		ccm_note_rate(m, o, ccm_op_bytes(o));
	ccm_breaks_over(m, o);
	ccm_outcome_note(o->group, o->seq, WIRE_SUCCESS);
	ccm_sync_answer(m, o);
	ccm_op_drop(m, o);
}

static struct ccm_agent *suspect_of(const struct ccm *m, const struct wm_op_report *r)
{
	struct ccm_agent *suspect = NULL;

	if (!cc_id_is_zero(&r->suspect))
		HASH_FIND(hh_id, m->by_id, &r->suspect, sizeof r->suspect, suspect);
	return suspect;
}

static void failure_text(const struct ccm_agent *a, const struct ccm_agent *suspect,
	const struct wm_op_report *r, char text[WM_TEXT_MAX])
{
	char said[WM_TEXT_MAX];

	ccm_copy(said, sizeof said, r->text);
	ccm_print(text, WM_TEXT_MAX, "host %s reports a failure%s%s: %s", a->hello.name,
		suspect ? " with host " : "", suspect ? suspect->hello.name : "", said);
}

/* Did nothing come through the link of `a` with the suspect, while both are members? */
static bool is_silence(
	const struct ccm_agent *a, const struct ccm_agent *suspect, const struct wm_op_report *r)
{
	return r->silent && suspect && suspect != a && a->n_accepted > 0 && suspect->n_accepted > 0;
}

/* Handles the failure of a speculative start whose operation has not started. If the link that
 * failed was silent, rings must avoid it. If trouble between the two hosts is already known, it may
 * be the reason why the attempt has ended, so nothing changes. */
static void hear_silence(struct ccm *m, const struct ccm_agent *a, const struct wm_op_report *r)
{
	const struct ccm_agent *suspect = suspect_of(m, r);
	char text[WM_TEXT_MAX];

	if (!is_silence(a, suspect, r) || ccm_pair_is_known(m, a->no, suspect->no))
		return;
	failure_text(a, suspect, r, text);
	ccm_pair_silent(m, a->no, suspect->no, text);
	m->rewire = true;
}

void ccm_op_failed(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r)
{
	struct ccm_agent *suspect = suspect_of(m, r);
	char text[WM_TEXT_MAX], said[WM_TEXT_MAX];

	ccm_copy(said, sizeof said, r->text);
	if (r->code) {
		ccm_print(text, sizeof text, "host %s: %s", a->hello.name, said);
		ccm_op_abort(m, o, r->code, text);
		return;
	}
	failure_text(a, suspect, r, text);
	if (is_silence(a, suspect, r))
		ccm_pair_silent(m, a->no, suspect->no, text);
	else if (suspect && suspect != a && !o->sync)
		ccm_link_failed(m, o->group, a, suspect, said);
	/* If only o failed, peers that await several operations would wait for peers that repeat
	 * o. */
	ccm_group_interrupt(m, o->group, "%s", text);
	/* A synchronization does not use the links of the rings. */
	m->rewire |= !o->sync || r->silent;
}

void ccm_op_reported(struct ccm *m, struct ccm_op *o, struct ccm_part *part)
{
	part->reported = true;
	part->reported_ns = m->now;
	o->changed_ns = m->now;
	o->n_reported++;
	if (o->seq)
		all_reported(m, o);
}

/* Returns the operation that r reports on. Returns NULL if it has ended, or if only a speculative
 * start of it has failed. */
static struct ccm_op *reported_op(struct ccm *m, const struct wm_op_report *r)
{
	struct ccm_op *o;

	HASH_FIND(hh_seq, m->started, &r->seq, sizeof r->seq, o);
	if (o)
		return o;
	o = ccm_spec_find(m, r->seq);
	if (!o || r->ok)
		return o;
	ccm_spec_forget(m, o);
	return NULL;
}

/* Returns the part of `a` in o, or NULL. */
static struct ccm_part *part_of(
	const struct ccm *m, const struct ccm_agent *a, const struct ccm_op *o)
{
	const struct ccm_membership *s = ccm_membership_of(m, a, o->group->id);

	return s && s->slot < o->n_parts && o->parts[s->slot].membership ? &o->parts[s->slot]
									 : NULL;
}

void ccm_op_report(struct ccm *m, struct ccm_agent *a, const struct wm_op_report *r)
{
	struct ccm_part *part;
	struct ccm_op *o;

	if (speaks_for_nobody(a))
		return;
	if (r->seq == 0 || r->seq > m->last_seq) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a report on operation %" PRIu64
			", which never started",
			r->seq);
		return;
	}
	o = reported_op(m, r);
	if (!o) {
		hear_silence(m, a, r);
		return;
	}
	part = part_of(m, a, o);
	if (o->sync && (!part || r->n_failed > 0)) {
		if (part) /* else its last peer was kicked a moment ago */
			ccm_sync_report(m, a, o, r);
		return;
	}
	if (!part || part->reported) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: %s on operation %" PRIu64,
			part ? "a second report" : "an unasked report", r->seq);
		return;
	}
	if (r->ok) {
		ccm_flaps_over(a);
		ccm_op_reported(m, o, part);
		return;
	}
	part->reported = true;
	ccm_op_failed(m, a, o, r);
}
