/* SPDX-License-Identifier: MIT
 *
 * Encodes plain structs as protobuf, in one frame. The protobuf structs point to the plain structs
 * where this is possible; other data lies in the arena of the encoder. After a failed allocation
 * the message is incomplete. The encoder checks for this only once, at the end, in the arena.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/ccoip.pb-c.h"
#include "proto/wire_frame.h"
#include "proto/wire_master.h"
#include "proto/wire_master_internal.h"
#include "proto/wire_pb.h"

#define FIELD_MAX 12u /* bytes of the number and the length of a field that is a message */

struct encoder {
	struct wire_arena arena;
	union {
		ProtobufCMessage any;
		Ccoip__Hello hello;
		Ccoip__Join join;
		Ccoip__Leave leave;
		Ccoip__Peer peer;
		Ccoip__OpVote op_vote;
		Ccoip__OpReport op_report;
		Ccoip__LinkLost link_lost;
		Ccoip__RoundReport round_report;
		Ccoip__Heartbeat heartbeat;
		Ccoip__Resume resume;
		Ccoip__OpQuery op_query;
		Ccoip__HelloAck hello_ack;
		Ccoip__Refuse refuse;
		Ccoip__Round round;
		Ccoip__Commit commit;
		Ccoip__View view;
		Ccoip__OpStart op_start;
		Ccoip__OpAbort op_abort;
		Ccoip__OpDone op_done;
		Ccoip__PendingAnswer pending_answer;
		Ccoip__Kick kick;
		Ccoip__OpOutcomes op_outcomes;
		Ccoip__Stopped stopped;
		Ccoip__Addresses addresses;
		Ccoip__Waits waits;
		Ccoip__WaitsFor waits_for;
		Ccoip__Standstill standstill;
		Ccoip__Unmet unmet;
		Ccoip__Knock knock;
		Ccoip__KnockAck knock_ack;
		Ccoip__Left left;
		Ccoip__Probe probe;
		Ccoip__Probed probed;
	} u;
	/* messages within these messages */
	Ccoip__OpParams params;
	Ccoip__Refusal refusal;
	Ccoip__SyncStart sync_start;
	Ccoip__View view;
	Ccoip__Outcomes outcomes;
};

static char *put_text(struct encoder *e, const char *s, size_t size)
{
	return wire_put_text(&e->arena, s, size);
}

static size_t put_addrs(
	struct wire_arena *a, const struct cc_addr *addrs, size_t n, Ccoip__Address ***ret)
{
	Ccoip__Address *v = wire_arena_take(a, n, sizeof *v);
	Ccoip__Address **pointers = wire_arena_take_pointers(a, n);

	if (v == NULL || pointers == NULL)
		return 0;
	for (size_t i = 0; i < n; i++) {
		pointers[i] = &v[i];
		ccoip__address__init(&v[i]);
		v[i].ip = wire_put_ip(&addrs[i]);
		v[i].port = addrs[i].port;
	}
	*ret = pointers;
	return n;
}

static size_t put_ids(
	struct encoder *e, const struct cc_id *ids, size_t n, ProtobufCBinaryData **ret)
{
	ProtobufCBinaryData *v = wire_arena_take(&e->arena, n, sizeof *v);

	if (v == NULL)
		return 0;
	for (size_t i = 0; i < n; i++)
		v[i] = wire_put_id(&ids[i]);
	*ret = v;
	return n;
}

static void put_hello(struct encoder *e, const struct wm_hello *m)
{
	Ccoip__Hello *p = &e->u.hello;

	ccoip__hello__init(p);
	p->version_min = m->version_min;
	p->version_max = m->version_max;
	p->features = m->features;
	p->agent = wire_put_id(&m->agent);
	p->name = put_text(e, m->name, sizeof m->name);
	p->advertised = m->advertised;
	p->n_addrs = put_addrs(&e->arena, m->addrs, m->n_addrs, &p->addrs);
	p->port_p2p = m->port_p2p;
	p->port_shared_state = m->port_shared_state;
	p->port_benchmark = m->port_benchmark;
	p->run = wire_put_id(&m->run);
	p->run_key = wire_put_id(&m->run_key);
	p->term = m->term;
	p->newcomers = m->newcomers;
	p->left = m->left;
	p->identity = wire_put_key(&m->identity);
	p->proof = wire_put_key(&m->proof);
}

static void put_hello_ack(struct encoder *e, const struct wm_hello_ack *m)
{
	Ccoip__HelloAck *p = &e->u.hello_ack;

	ccoip__hello_ack__init(p);
	p->version = m->version;
	p->features = m->features;
	p->run = wire_put_id(&m->run);
	p->heartbeat_ms = m->heartbeat_ms;
	p->timeout_ms = m->timeout_ms;
	p->segment_max = m->segment_max;
	p->term = m->term;
	p->resume = m->resume;
	p->link_timeout_ms = m->bounds.ms[CC_BOUND_LINK];
	p->stream_timeout_ms = m->bounds.ms[CC_BOUND_STREAM];
	p->stuck_timeout_ms = m->bounds.ms[CC_BOUND_STUCK];
	p->new_link_timeout_ms = m->bounds.ms[CC_BOUND_NEW_LINK];
	p->round_timeout_ms = m->bounds.ms[CC_BOUND_ROUND];
}

static void put_refuse(struct encoder *e, const struct wm_refuse *m)
{
	Ccoip__Refuse *p = &e->u.refuse;

	ccoip__refuse__init(p);
	p->version_min = m->version_min;
	p->version_max = m->version_max;
	p->code = m->code;
	p->text = put_text(e, m->text, sizeof m->text);
}

static void put_join(struct encoder *e, const struct wm_join *m)
{
	Ccoip__Join *p = &e->u.join;

	ccoip__join__init(p);
	p->peer = wire_put_id(&m->peer);
	p->group = m->group;
	p->pool_size = m->pool_size;
	p->pid = m->pid;
	p->name = put_text(e, m->name, sizeof m->name);
	p->token = wire_put_id(&m->token);
	p->phase = (Ccoip__JoinPhase)m->phase;
	p->topo_ballot = m->topo_ballot;
	p->pending_ballot = m->pending_ballot;
	p->epoch = m->epoch;
	p->ring_epoch = m->ring_epoch;
	p->prepared = m->prepared;
	p->view_id = m->view_id;
	p->global = m->global;
	p->world_size = m->world_size;
	p->generation = m->generation;
	p->thread = m->thread;
	p->left = m->left;
}

static void put_leave(struct encoder *e, const struct wm_leave *m)
{
	Ccoip__Leave *p = &e->u.leave;

	ccoip__leave__init(p);
	p->peer = wire_put_id(&m->peer);
	p->kind = (Ccoip__LeaveKind)m->kind;
	p->text = put_text(e, m->text, sizeof m->text);
}

static void put_peer(struct encoder *e, const struct wm_peer *m)
{
	ccoip__peer__init(&e->u.peer);
	e->u.peer.peer = wire_put_id(&m->peer);
	e->u.peer.ballot = m->ballot;
}

static void put_refusal(struct encoder *e, const struct wm_op_vote *m)
{
	Ccoip__Refusal *p = e->u.op_vote.refusal = &e->refusal;

	ccoip__refusal__init(p);
	p->code = m->refusal.code;
	p->text = put_text(e, m->refusal.text, sizeof m->refusal.text);
	p->sync = m->is_sync;
}

static void put_op_vote(struct encoder *e, const struct wm_op_vote *m)
{
	Ccoip__OpVote *p = &e->u.op_vote;
	Ccoip__OpParams *params = &e->params;

	ccoip__op_vote__init(p);
	ccoip__op_params__init(params);
	p->group = m->group;
	p->tag = m->tag;
	p->generation = m->generation;
	p->seq = m->seq;
	p->spec_seq = m->spec_seq;
	p->waits_for = (Ccoip__WaitForKind)m->waits_for;
	p->n_peers = put_ids(e, m->peers, m->n_peers, &p->peers);
	if (m->refusal.code) {
		put_refusal(e, m);
		return;
	}
	if (m->is_sync) {
		p->sync = wire_put_sync_vote(&e->arena, &m->sync);
		if (m->seq)
			p->elected = wire_put_sync_elected(&e->arena, &m->elected);
		return;
	}
	p->params = params;
	params->count = m->params.count;
	params->dtype = m->params.dtype;
	params->op = m->params.op;
	params->quant_algo = m->params.quant_algo;
	params->quant_dtype = m->params.quant_dtype;
}

static void put_op_report(struct encoder *e, const struct wm_op_report *m)
{
	Ccoip__OpReport *p = &e->u.op_report;

	ccoip__op_report__init(p);
	p->seq = m->seq;
	p->ok = m->ok;
	p->silent = m->silent;
	p->code = m->code;
	p->suspect = wire_put_id(&m->suspect);
	p->text = put_text(e, m->text, sizeof m->text);
	p->n_failed = wire_put_sync_failures(&e->arena, m->failed, m->n_failed, &p->failed);
}

static void put_link_lost(struct encoder *e, const struct wm_link_lost *m)
{
	Ccoip__LinkLost *p = &e->u.link_lost;

	ccoip__link_lost__init(p);
	p->agent = wire_put_id(&m->agent);
	p->inbound = m->inbound;
	p->text = put_text(e, m->text, sizeof m->text);
	p->smaller = m->smaller;
}

static void put_round_report(struct encoder *e, const struct wm_round_report *m)
{
	Ccoip__RoundReport *p = &e->u.round_report;
	Ccoip__Failure *v = wire_arena_take(&e->arena, m->n_failures, sizeof *v);

	ccoip__round_report__init(p);
	p->round = m->round;
	p->failures = wire_arena_take_pointers(&e->arena, m->n_failures);
	if (v == NULL || p->failures == NULL)
		return;
	p->n_failures = m->n_failures;
	for (size_t i = 0; i < m->n_failures; i++) {
		const struct wm_failure *f = &m->failures[i];

		p->failures[i] = &v[i];
		ccoip__failure__init(&v[i]);
		v[i].agent = wire_put_id(&f->agent);
		v[i].limit = f->limit;
		v[i].text = put_text(e, f->text, sizeof f->text);
	}
}

Ccoip__Endpoint *wire_put_endpoint(struct wire_arena *a, const struct wm_endpoint *m)
{
	Ccoip__Endpoint *p = wire_arena_take(a, 1, sizeof *p);

	if (p == NULL)
		return NULL;
	ccoip__endpoint__init(p);
	p->agent = wire_put_id(&m->agent);
	p->name = wire_put_text(a, m->name, sizeof m->name);
	p->at_master = m->at_master;
	p->port = m->port;
	p->n_addrs = put_addrs(a, m->addrs, m->n_addrs, &p->addrs);
	p->key = wire_put_key(&m->key);
	p->key_no = m->key_no;
	return p;
}

static void put_ring(struct encoder *e, const struct wm_ring *m, Ccoip__Ring *p)
{
	ccoip__ring__init(p);
	p->group = m->group;
	p->hosts = m->hosts;
	p->pos = m->pos;
	p->pool_size = m->pool_size;
	if (m->hosts > 1) {
		p->next = wire_put_endpoint(&e->arena, &m->next);
		p->prev = wire_put_id(&m->prev);
		p->prev_name = put_text(e, m->prev_name, sizeof m->prev_name);
		p->reopen = m->reopen;
		p->prev_reopens = m->prev_reopens;
	}
	p->n_members = put_ids(e, m->members, m->n_members, &p->members);
}

static void put_round(struct encoder *e, const struct wm_round *m)
{
	Ccoip__Round *p = &e->u.round;
	Ccoip__Ring *v = wire_arena_take(&e->arena, m->n_rings, sizeof *v);

	ccoip__round__init(p);
	p->round = m->round;
	p->accept = m->accept;
	p->peers = m->peers;
	p->run_key = wire_put_id(&m->run_key);
	p->rings = wire_arena_take_pointers(&e->arena, m->n_rings);
	if (v == NULL || p->rings == NULL)
		return;
	p->n_rings = m->n_rings;
	for (size_t i = 0; i < m->n_rings; i++) {
		p->rings[i] = &v[i];
		put_ring(e, &m->rings[i], &v[i]);
	}
}

static void put_view_sizes(const struct wire_view *m, Ccoip__ViewSizes *p)
{
	ccoip__view_sizes__init(p);
	p->view_id = m->view_id;
	p->global = m->global;
	p->group = m->group;
	p->groups = m->groups;
	p->largest = m->largest;
}

static void put_view(struct encoder *e, const struct wm_view *m, Ccoip__View *p)
{
	Ccoip__GroupView *v = wire_arena_take(&e->arena, m->n, sizeof *v);
	Ccoip__ViewSizes *at_generation = wire_arena_take(&e->arena, m->n, sizeof *at_generation);

	ccoip__view__init(p);
	p->global = m->global;
	p->groups = m->groups;
	p->largest = m->largest;
	p->view_id = m->view_id;
	p->own = wire_arena_take_pointers(&e->arena, m->n);
	if (v == NULL || at_generation == NULL || p->own == NULL)
		return;
	p->n_own = m->n;
	for (size_t i = 0; i < m->n; i++) {
		p->own[i] = &v[i];
		ccoip__group_view__init(&v[i]);
		v[i].group = m->own[i].group;
		v[i].world_size = m->own[i].world_size;
		v[i].generation = m->own[i].generation;
		v[i].loss = put_text(e, m->own[i].loss, sizeof m->own[i].loss);
		v[i].revision = m->own[i].revision;
		v[i].attempt_ring_epoch = m->own[i].begun;
		if (m->own[i].at_generation.view_id == 0)
			continue;
		v[i].at_generation = &at_generation[i];
		put_view_sizes(&m->own[i].at_generation, &at_generation[i]);
	}
}

static void put_commit(struct encoder *e, const struct wm_commit *m)
{
	Ccoip__Commit *p = &e->u.commit;

	ccoip__commit__init(p);
	p->round = m->round;
	p->epoch = m->epoch;
	p->accept = m->accept;
	p->view = &e->view;
	put_view(e, &m->view, p->view);
	p->topo_ballot = m->topo_ballot;
	p->pending_ballot = m->pending_ballot;
}

static Ccoip__Outcomes *put_outcomes(struct encoder *e, const struct wm_outcome *v, size_t n)
{
	Ccoip__Outcomes *p = &e->outcomes;

	ccoip__outcomes__init(p);
	p->seqs = wire_arena_take(&e->arena, n, sizeof *p->seqs);
	p->codes = wire_arena_take(&e->arena, n, sizeof *p->codes);
	if (p->seqs == NULL || p->codes == NULL)
		return p;
	p->n_seqs = p->n_codes = n;
	for (size_t i = 0; i < n; i++) {
		p->seqs[i] = v[i].seq;
		p->codes[i] = v[i].code;
	}
	return p;
}

static void put_resume(struct encoder *e, const struct wm_resume *m)
{
	Ccoip__Resume *p = &e->u.resume;
	Ccoip__RingPosition *v = wire_arena_take(&e->arena, m->n_positions, sizeof *v);

	ccoip__resume__init(p);
	p->epoch = m->epoch;
	p->round = m->round;
	p->ring_epoch = m->ring_epoch;
	p->prepared = m->prepared;
	p->prepared_peers = m->prepared_peers;
	p->aborted_round = m->aborted_round;
	p->last_seq = m->last_seq;
	p->topo_ballot = m->topo_ballot;
	p->pending_ballot = m->pending_ballot;
	p->view = &e->view;
	put_view(e, &m->view, p->view);
	p->outcomes = put_outcomes(e, m->outcomes, m->n_outcomes);
	p->positions = wire_arena_take_pointers(&e->arena, m->n_positions);
	if (v == NULL || p->positions == NULL)
		return;
	p->n_positions = m->n_positions;
	for (size_t i = 0; i < m->n_positions; i++) {
		p->positions[i] = &v[i];
		ccoip__ring_position__init(&v[i]);
		v[i].group = m->positions[i].group;
		v[i].hosts = m->positions[i].hosts;
		v[i].pos = m->positions[i].pos;
	}
}

static void put_op_query(struct encoder *e, const struct wm_op_query *m)
{
	Ccoip__OpQuery *p = &e->u.op_query;

	ccoip__op_query__init(p);
	p->peer = wire_put_id(&m->peer);
	p->seqs = wire_arena_take(&e->arena, m->n, sizeof *p->seqs);
	if (p->seqs == NULL)
		return;
	p->n_seqs = m->n;
	p->succeeded = m->n_succeeded;
	memcpy(p->seqs, m->seqs, m->n * sizeof *p->seqs);
}

static void put_op_outcomes(struct encoder *e, const struct wm_op_outcomes *m)
{
	Ccoip__OpOutcomes *p = &e->u.op_outcomes;

	ccoip__op_outcomes__init(p);
	p->peer = wire_put_id(&m->peer);
	p->outcomes = put_outcomes(e, m->v, m->n);
}

static void put_op_start(struct encoder *e, const struct wm_op_start *m)
{
	Ccoip__OpStart *p = &e->u.op_start;

	ccoip__op_start__init(p);
	p->group = m->group;
	p->tag = m->tag;
	p->seq = m->seq;
	p->epoch = m->epoch;
	if (!m->is_sync)
		return;
	p->sync = &e->sync_start;
	wire_put_sync_start(&e->arena, &m->sync, p->sync);
}

static void put_op_abort(struct encoder *e, const struct wm_op_abort *m)
{
	Ccoip__OpAbort *p = &e->u.op_abort;

	ccoip__op_abort__init(p);
	p->group = m->group;
	p->tag = m->tag;
	p->seq = m->seq;
	p->generation = m->generation;
	p->code = m->code;
	p->text = put_text(e, m->text, sizeof m->text);
	p->sync = m->is_sync;
}

static void put_kick(struct encoder *e, const struct wm_kick *m)
{
	Ccoip__Kick *p = &e->u.kick;

	ccoip__kick__init(p);
	p->peer = wire_put_id(&m->peer);
	p->code = m->code;
	p->text = put_text(e, m->text, sizeof m->text);
}

static void put_addresses(struct encoder *e, const struct wm_addresses *m)
{
	Ccoip__Addresses *p = &e->u.addresses;

	ccoip__addresses__init(p);
	p->advertised = m->advertised;
	p->n_addrs = put_addrs(&e->arena, m->addrs, m->n_addrs, &p->addrs);
	p->port_p2p = m->port_p2p;
	p->port_shared_state = m->port_shared_state;
	p->port_benchmark = m->port_benchmark;
}

static void put_stopped(struct encoder *e, const struct wm_stopped *m)
{
	Ccoip__Stopped *p = &e->u.stopped;

	ccoip__stopped__init(p);
	p->peer = wire_put_id(&m->peer);
	p->is = m->is;
}

static void put_left(struct encoder *e, const struct wm_left *m)
{
	ccoip__left__init(&e->u.left);
	e->u.left.peer = wire_put_id(&m->peer);
}

static void put_waits(struct encoder *e, const struct wm_waits *m)
{
	Ccoip__Waits *p = &e->u.waits;

	ccoip__waits__init(p);
	p->kind = (Ccoip__WaitKind)m->kind;
	p->group = m->group;
	p->tag = m->tag;
	p->waited_ms = m->waited_ms;
	p->text = put_text(e, m->text, sizeof m->text);
}

static void put_waits_for(struct encoder *e, const struct wm_waits_for *m)
{
	Ccoip__WaitsFor *p = &e->u.waits_for;

	ccoip__waits_for__init(p);
	p->peer = wire_put_id(&m->peer);
	p->tag = m->tag;
	p->kind = (Ccoip__WaitForKind)m->kind;
	p->any = m->any;
}

static void put_standstill(struct encoder *e, const struct wm_standstill *m)
{
	Ccoip__Standstill *p = &e->u.standstill;

	ccoip__standstill__init(p);
	p->seq = m->seq;
	p->sent = m->sent;
	p->received = m->received;
	p->ms = m->ms;
}

static void put_unmet(struct encoder *e, const struct wm_unmet *m)
{
	Ccoip__Unmet *p = &e->u.unmet;

	ccoip__unmet__init(p);
	p->kind = (Ccoip__WaitKind)m->kind;
	p->group = m->group;
	p->tag = m->tag;
	p->n_peers = put_ids(e, m->peers, m->n_peers, &p->peers);
	p->generation = m->generation;
	p->pending = m->pending;
	p->code = m->code;
	p->text = put_text(e, m->text, sizeof m->text);
}

static void put_probe(struct encoder *e, const struct wm_probe *m)
{
	Ccoip__Probe *p = &e->u.probe;

	ccoip__probe__init(p);
	p->number = m->number;
	p->to = wire_put_endpoint(&e->arena, &m->to);
	if (m->state.port)
		p->state = wire_put_endpoint(&e->arena, &m->state);
}

static void put_probed(struct encoder *e, const struct wm_probed *m)
{
	Ccoip__Probed *p = &e->u.probed;

	ccoip__probed__init(p);
	p->number = m->number;
	p->ok = m->ok;
	p->limit = m->limit;
	p->text = put_text(e, m->text, sizeof m->text);
}

static int put_agent_message(struct encoder *e, const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO:
		put_hello(e, &m->u.hello);
		return 0;
	case WM_JOIN:
		put_join(e, &m->u.join);
		return 0;
	case WM_LEAVE:
		put_leave(e, &m->u.leave);
		return 0;
	case WM_TOPO_VOTE:
	case WM_PENDING_VOTE:
		put_peer(e, &m->u.peer);
		return 0;
	case WM_OP_VOTE:
		put_op_vote(e, &m->u.op_vote);
		return 0;
	case WM_OP_REPORT:
		put_op_report(e, &m->u.op_report);
		return 0;
	case WM_LINK_LOST:
		put_link_lost(e, &m->u.link_lost);
		return 0;
	case WM_ROUND_REPORT:
		put_round_report(e, &m->u.round_report);
		return 0;
	case WM_HEARTBEAT:
		ccoip__heartbeat__init(&e->u.heartbeat);
		e->u.heartbeat.awaited = m->u.heartbeat.awaited;
		return 0;
	case WM_RESUME:
		put_resume(e, &m->u.resume);
		return 0;
	case WM_OP_QUERY:
		put_op_query(e, &m->u.op_query);
		return 0;
	case WM_ADDRESSES:
		put_addresses(e, &m->u.addresses);
		return 0;
	case WM_STOPPED:
		put_stopped(e, &m->u.stopped);
		return 0;
	case WM_WAITS_FOR:
		put_waits_for(e, &m->u.waits_for);
		return 0;
	case WM_STANDSTILL:
		put_standstill(e, &m->u.standstill);
		return 0;
	case WM_KNOCK:
		ccoip__knock__init(&e->u.knock);
		e->u.knock.version_min = m->u.knock.version_min;
		e->u.knock.version_max = m->u.knock.version_max;
		e->u.knock.share = wire_put_key(&m->u.knock.share);
		return 0;
	case WM_PROBED:
		put_probed(e, &m->u.probed);
		return 0;
	default:
		return CC_ERR_INVAL;
	}
}

static int put_master_message(struct encoder *e, const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO_ACK:
		put_hello_ack(e, &m->u.hello_ack);
		return 0;
	case WM_REFUSE:
		put_refuse(e, &m->u.refuse);
		return 0;
	case WM_ROUND:
		put_round(e, &m->u.round);
		return 0;
	case WM_COMMIT:
		put_commit(e, &m->u.commit);
		return 0;
	case WM_VIEW:
		put_view(e, &m->u.view, &e->u.view);
		return 0;
	case WM_OP_START:
		put_op_start(e, &m->u.op_start);
		return 0;
	case WM_OP_ABORT:
		put_op_abort(e, &m->u.op_abort);
		return 0;
	case WM_OP_DONE:
		ccoip__op_done__init(&e->u.op_done);
		e->u.op_done.seq = m->u.op_done.seq;
		e->u.op_done.revision = m->u.op_done.revision;
		e->u.op_done.reserved_seq = m->u.op_done.next;
		return 0;
	case WM_PENDING_ANSWER:
		ccoip__pending_answer__init(&e->u.pending_answer);
		e->u.pending_answer.ballot = m->u.pending_answer.ballot;
		return 0;
	case WM_KICK:
		put_kick(e, &m->u.kick);
		return 0;
	case WM_OP_OUTCOMES:
		put_op_outcomes(e, &m->u.op_outcomes);
		return 0;
	case WM_WAITS:
		put_waits(e, &m->u.waits);
		return 0;
	case WM_UNMET:
		put_unmet(e, &m->u.unmet);
		return 0;
	case WM_KNOCK_ACK:
		ccoip__knock_ack__init(&e->u.knock_ack);
		e->u.knock_ack.share = wire_put_key(&m->u.knock_ack.share);
		return 0;
	case WM_LEFT:
		put_left(e, &m->u.left);
		return 0;
	case WM_PROBE:
		put_probe(e, &m->u.probe);
		return 0;
	default:
		return CC_ERR_INVAL;
	}
}

static int put_message(struct encoder *e, const struct wm_msg *m)
{
	if (m->type < WM_HELLO_ACK)
		return put_agent_message(e, m);
	return put_master_message(e, m);
}

static uint8_t *put_varint(uint8_t *p, size_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* Writes the head of the only field of Message, and returns its length. The field number of a kind
 * equals its type number. protobuf-c would check each field of Message twice. */
static size_t put_field(enum wm_type type, size_t len, uint8_t ret[FIELD_MAX])
{
	return (size_t)(put_varint(
				put_varint(ret, (size_t)type << 3 | WIRE_LENGTH_DELIMITED), len) -
			ret);
}

int wire_master_encode(const struct wm_msg *m, uint8_t **ret, size_t *ret_len)
{
	struct encoder e;
	uint8_t field[FIELD_MAX], *frame;
	size_t len, n;
	int rc;

	wire_arena_init(&e.arena, SIZE_MAX);
	rc = put_message(&e, m);
	if (rc == 0)
		rc = e.arena.err;
	if (rc != 0)
		goto out;
	len = protobuf_c_message_get_packed_size(&e.u.any);
	n = put_field(m->type, len, field);
	len += n;
	if (len > WIRE_FRAME_MAX) {
		rc = CC_ERR_LIMIT;
		goto out;
	}
	frame = malloc(WIRE_FRAME_HDR + len);
	if (frame == NULL) {
		rc = CC_ERR_NOMEM;
		goto out;
	}
	wire_frame_put(frame, WIRE_KIND_MASTER, (uint32_t)len);
	memcpy(frame + WIRE_FRAME_HDR, field, n);
	protobuf_c_message_pack(&e.u.any, frame + WIRE_FRAME_HDR + n);
	*ret = frame;
	*ret_len = WIRE_FRAME_HDR + len;
out:
	wire_arena_free(&e.arena);
	return rc;
}
