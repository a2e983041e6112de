/* SPDX-License-Identifier: MIT
 *
 * Decodes the payload of a frame: protobuf first, and then plain structs with every limit checked.
 * Each get_ function returns 0, or a negative enum cc_err with *why set. *m owns all memory that it
 * has allocated, also after a failure. wire_master_resume.c has the decoders of snapshots.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cc_plan.h"
#include "common/cc_err.h"
#include "proto/ccoip.pb-c.h"
#include "proto/wire_frame.h"
#include "proto/wire_link.h"
#include "proto/wire_master.h"
#include "proto/wire_master_internal.h"
#include "proto/wire_pb.h"

/* The protobuf structs of a well-formed message need up to 10 times the bytes of the message. */
#define MEMORY_FACTOR 16

#define INTERVAL_MAX_MS 3600000u

#define NAME_LIMIT "must be UTF-8 of at most 63 bytes without control characters"
#define TEXT_LIMIT WIRE_TEXT_LIMIT
#define NONE_LIMIT "must be empty, or 16 bytes that are not all zero"
#define ADDR_LIMIT "must be 4 or 16 bytes, with a port of at most 65535"

_Static_assert(WM_NAME_MAX == 64 && WM_TEXT_MAX == 384, "limits named in texts");

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct cc_id));
}

bool wire_ids_repeat(const void *first, size_t n, size_t size)
{
	struct cc_id sorted[WM_PEERS_MAX];

	for (size_t i = 0; i < n; i++)
		memcpy(&sorted[i], (const char *)first + i * size, sizeof sorted[i]);
	qsort(sorted, n, sizeof sorted[0], compare_ids);
	for (size_t i = 1; i < n; i++)
		if (cc_id_eq(&sorted[i - 1], &sorted[i]))
			return true;
	return false;
}

/* Decodes 1 .. WM_PEERS_MAX ids, which must all differ. On success the caller owns *ret. */
static int get_ids(const ProtobufCBinaryData *v, size_t n, struct cc_id **ret, uint32_t *ret_n,
	const char **why, const char *limit, const char *twice)
{
	struct cc_id *ids;
	int rc = 0;

	if (n < 1 || n > WM_PEERS_MAX)
		return wire_bad(why, limit);
	ids = wire_new_array(n, sizeof *ids, &rc, why);
	if (ids == NULL)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = wire_get_id(&ids[i], v[i], why, limit);
	if (rc == 0 && wire_ids_repeat(ids, n, sizeof *ids))
		rc = wire_bad(why, twice);
	if (rc != 0) {
		free(ids);
		return rc;
	}
	*ret = ids;
	*ret_n = (uint32_t)n;
	return 0;
}

static int get_addrs(Ccoip__Address *const *v, size_t n, uint32_t port_min, struct cc_addr *ret,
	uint32_t *ret_n, const char **why, const char *count, const char *limit)
{
	if (n > WM_ADDRS_MAX)
		return wire_bad(why, count);
	for (size_t i = 0; i < n; i++)
		if (wire_get_addr(&ret[i], v[i]->ip, v[i]->port, port_min, why, limit) != 0)
			return CC_ERR_PROTO;
	*ret_n = (uint32_t)n;
	return 0;
}

static bool versions_overlap(uint32_t min, uint32_t max)
{
	return min <= WM_VERSION_MAX && max >= WM_VERSION_MIN;
}

/* Decodes the fields about the run that the agent knows. They are all missing if it knows no run.
 */
static int get_hello_run(const Ccoip__Hello *p, struct wm_hello *m, const char **why)
{
	int rc;

	rc = wire_get_id_or_none(&m->run, p->run, why, "hello.run: " NONE_LIMIT);
	if (rc == 0)
		rc = wire_get_id_or_none(
			&m->run_key, p->run_key, why, "hello.run_key: " NONE_LIMIT);
	if (rc != 0)
		return rc;
	if (cc_id_is_zero(&m->run) && !cc_id_is_zero(&m->run_key))
		return wire_bad(why, "hello.run_key: must be empty without run");
	if (cc_id_is_zero(&m->run) && p->term != 0)
		return wire_bad(why, "hello.term: must be 0 without run");
	if (cc_id_is_zero(&m->run_key) && p->term != 0)
		return wire_bad(why, "hello.term: must be 0 without run_key");
	if (p->term > WM_TERM_MAX)
		return wire_bad(why, "hello.term: must be at most 2^40");
	m->term = p->term;
	m->newcomers = p->newcomers;
	m->left = p->left;
	return 0;
}

static int get_knock(const Ccoip__Knock *p, struct wm_knock *m, const char **why)
{
	int rc = wire_check_versions(p->version_min, p->version_max, why,
		"knock.version_min: must be 1 to knock.version_max, which must be at most 65535");

	if (rc != 0)
		return rc;
	m->version_min = p->version_min;
	m->version_max = p->version_max;
	if (!versions_overlap(p->version_min, p->version_max))
		return 0;
	return wire_get_key(
		&m->share, p->share, why, "knock.share: must be 32 bytes, not all zero");
}

static int get_hello(const Ccoip__Hello *p, struct wm_hello *m, const char **why)
{
	int rc;

	rc = wire_check_versions(p->version_min, p->version_max, why,
		"hello.version_min: must be 1 to hello.version_max, which must be at most 65535");
	if (rc != 0)
		return rc;
	m->version_min = p->version_min;
	m->version_max = p->version_max;
	/* The rest of a hello of another version is not checked, because the receiver refuses it.
	 */
	if (!versions_overlap(p->version_min, p->version_max))
		return 0;
	m->features = p->features;
	m->advertised = p->advertised;
	rc = wire_get_id(&m->agent, p->agent, why, "hello.agent: " WIRE_ID_LIMIT);
	if (rc == 0)
		rc = wire_get_name(
			m->name, sizeof m->name, p->name, why, "hello.name: " NAME_LIMIT);
	if (rc == 0)
		rc = get_addrs(p->addrs, p->n_addrs, 0, m->addrs, &m->n_addrs, why,
			"hello.addrs: must be at most " WIRE_STR(WM_ADDRS_MAX),
			"hello.addrs: " ADDR_LIMIT);
	if (rc != 0)
		return rc;
	if (p->port_p2p < 1 || p->port_p2p > UINT16_MAX)
		return wire_bad(why, "hello.port_p2p: must be 1 to 65535");
	if (p->port_shared_state > UINT16_MAX)
		return wire_bad(why, "hello.port_shared_state: must be at most 65535");
	if (p->port_benchmark > UINT16_MAX)
		return wire_bad(why, "hello.port_benchmark: must be at most 65535");
	/* The master forwards the addresses, so a useless address would cause failures on all
	 * agents. */
	for (uint32_t i = 0; i < m->n_addrs; i++)
		if (cc_addr_is_any(&m->addrs[i]))
			return wire_bad(why, "hello.addrs: must not be 0.0.0.0 or ::");
	m->port_p2p = (uint16_t)p->port_p2p;
	m->port_shared_state = (uint16_t)p->port_shared_state;
	m->port_benchmark = (uint16_t)p->port_benchmark;
	rc = get_hello_run(p, m, why);
	if (rc == 0)
		rc = wire_get_key_or_none(&m->identity, p->identity, why,
			"hello.identity: must be empty, or 32 bytes, not all zero");
	if (rc == 0)
		rc = wire_get_key_or_none(&m->proof, p->proof, why,
			"hello.proof: must be empty, or 32 bytes, not all zero");
	return rc;
}

static int get_bounds(const Ccoip__HelloAck *p, struct cc_bounds *b, const char **why)
{
	static const char *const texts[CC_BOUNDS] = {
		[CC_BOUND_LINK] = "hello_ack.link_timeout_ms: must be 2000 to 90000",
		[CC_BOUND_STREAM] = "hello_ack.stream_timeout_ms: must be 2000 to 90000, and no "
				    "less than link_timeout_ms",
		[CC_BOUND_STUCK] = "hello_ack.stuck_timeout_ms: must be 1000 to 90000",
		[CC_BOUND_NEW_LINK] = "hello_ack.new_link_timeout_ms: must be 500 to 60000",
		[CC_BOUND_ROUND] = "hello_ack.round_timeout_ms: must be 2000 to 300000, and no "
				   "less than twice new_link_timeout_ms and 1000",
	};
	enum cc_bound wrong;

	b->ms[CC_BOUND_LINK] = p->link_timeout_ms;
	b->ms[CC_BOUND_STREAM] = p->stream_timeout_ms;
	b->ms[CC_BOUND_STUCK] = p->stuck_timeout_ms;
	b->ms[CC_BOUND_NEW_LINK] = p->new_link_timeout_ms;
	b->ms[CC_BOUND_ROUND] = p->round_timeout_ms;
	cc_bounds_complete(b);
	wrong = cc_bounds_wrong(b);
	return wrong == CC_BOUNDS ? 0 : wire_bad(why, texts[wrong]);
}

static int get_hello_ack(const Ccoip__HelloAck *p, struct wm_hello_ack *m, const char **why)
{
	int rc;

	if (p->version < WM_VERSION_MIN || p->version > WM_VERSION_MAX) {
		*why = "hello_ack.version: not one of those offered";
		return CC_ERR_VERSION;
	}
	rc = wire_get_id(&m->run, p->run, why, "hello_ack.run: " WIRE_ID_LIMIT);
	if (rc != 0)
		return rc;
	if (p->heartbeat_ms < 1 || p->heartbeat_ms > INTERVAL_MAX_MS)
		return wire_bad(why, "hello_ack.heartbeat_ms: must be 1 to 3600000");
	if (p->timeout_ms < p->heartbeat_ms || p->timeout_ms > INTERVAL_MAX_MS)
		return wire_bad(why, "hello_ack.timeout_ms: must be heartbeat_ms to 3600000");
	if (p->segment_max < CC_PLAN_SEGMENT_MIN || p->segment_max > CC_PLAN_SEGMENT_MAX)
		return wire_bad(why, "hello_ack.segment_max: must be 8192 to 262144");
	if (p->term < 1)
		return wire_bad(why, "hello_ack.term: must be at least 1");
	m->version = p->version;
	m->features = p->features;
	m->heartbeat_ms = p->heartbeat_ms;
	m->timeout_ms = p->timeout_ms;
	m->segment_max = p->segment_max;
	m->term = p->term;
	m->resume = p->resume;
	return get_bounds(p, &m->bounds, why);
}

int wire_get_code(uint32_t code, uint32_t *ret, const char **why, const char *text)
{
	if (code < 1 || code > WIRE_CODE_MAX)
		return wire_bad(why, text);
	*ret = code;
	return 0;
}

static int get_refuse(const Ccoip__Refuse *p, struct wm_refuse *m, const char **why)
{
	int rc;

	m->version_min = p->version_min;
	m->version_max = p->version_max;
	rc = wire_check_versions(p->version_min, p->version_max, why,
		"refuse.version_min: must be 1 to refuse.version_max, which must be at most 65535");
	if (rc == 0)
		rc = wire_get_code(p->code, &m->code, why, "refuse.code: must be 1 to 255");
	if (rc == 0)
		rc = wire_get_text(
			m->text, sizeof m->text, p->text, why, "refuse.text: " TEXT_LIMIT);
	return rc;
}

static int get_join(const Ccoip__Join *p, struct wm_join *m, const char **why)
{
	int rc;

	rc = wire_get_id(&m->peer, p->peer, why, "join.peer: " WIRE_ID_LIMIT);
	if (rc == 0)
		rc = wire_get_id(&m->token, p->token, why, "join.token: " WIRE_ID_LIMIT);
	if (rc == 0)
		rc = wire_get_name(m->name, sizeof m->name, p->name, why, "join.name: " NAME_LIMIT);
	if (rc != 0)
		return rc;
	if (p->pool_size < 1 || p->pool_size > WM_POOL_MAX)
		return wire_bad(why, "join.pool_size: must be 1 to " WIRE_STR(WM_POOL_MAX));
	if (p->phase != CCOIP__JOIN_PHASE__JOIN_NEW &&
		p->phase != CCOIP__JOIN_PHASE__JOIN_PREPARED &&
		p->phase != CCOIP__JOIN_PHASE__JOIN_ACCEPTED)
		return wire_bad(why, "join.phase: must be 0 to 2");
	m->group = p->group;
	m->pool_size = p->pool_size;
	m->pid = p->pid;
	m->phase = (uint32_t)p->phase;
	m->topo_ballot = p->topo_ballot;
	m->pending_ballot = p->pending_ballot;
	m->epoch = p->epoch;
	m->ring_epoch = p->ring_epoch;
	m->prepared = p->prepared;
	m->view_id = p->view_id;
	m->global = p->global;
	m->world_size = p->world_size;
	m->generation = p->generation;
	m->thread = p->thread;
	m->left = p->left;
	return 0;
}

static int get_leave(const Ccoip__Leave *p, struct wm_leave *m, const char **why)
{
	int rc;

	if (p->kind != CCOIP__LEAVE_KIND__LEAVE_CLEAN && p->kind != CCOIP__LEAVE_KIND__LEAVE_DIED &&
		p->kind != CCOIP__LEAVE_KIND__LEAVE_STOPPED)
		return wire_bad(why, "leave.kind: must be 0 to 2");
	m->kind = (uint32_t)p->kind;
	rc = wire_get_id(&m->peer, p->peer, why, "leave.peer: " WIRE_ID_LIMIT);
	return rc != 0 ? rc
		       : wire_get_text(
				 m->text, sizeof m->text, p->text, why, "leave.text: " TEXT_LIMIT);
}

static int get_peer(const Ccoip__Peer *p, struct wm_peer *m, const char **why, const char *limit)
{
	m->ballot = p->ballot;
	return wire_get_id(&m->peer, p->peer, why, limit);
}

static int get_params(const Ccoip__OpParams *p, struct wm_op_params *m, const char **why)
{
	if (p == NULL)
		return wire_bad(why, "op_vote.params: must be there");
	if (p->count < 1 || p->count > WIRE_COUNT_MAX)
		return wire_bad(why, "op_vote.params.count: must be 1 to 2^48");
	if (p->dtype > WIRE_DTYPE_MAX)
		return wire_bad(why, "op_vote.params.dtype: must be 0 to 11");
	if (p->op > WIRE_OP_MAX)
		return wire_bad(why, "op_vote.params.op: must be 0 to 4");
	if (p->quant_algo > WIRE_QUANT_MAX)
		return wire_bad(why, "op_vote.params.quant_algo: must be 0 to 2");
	if (p->quant_dtype > WIRE_DTYPE_MAX)
		return wire_bad(why, "op_vote.params.quant_dtype: must be 0 to 11");
	m->count = p->count;
	m->dtype = p->dtype;
	m->op = p->op;
	m->quant_algo = p->quant_algo;
	m->quant_dtype = p->quant_dtype;
	return 0;
}

static int get_refusal(const Ccoip__OpVote *p, struct wm_op_vote *m, const char **why)
{
	const Ccoip__Refusal *f = p->refusal;
	int rc;

	if (p->params != NULL || p->sync != NULL)
		return wire_bad(why, "op_vote.refusal: must not be there with params or sync");
	if (p->seq != 0 || p->spec_seq != 0)
		return wire_bad(why, "op_vote.refusal: must not be there with seq or spec_seq");
	if (f->sync && p->tag != 0)
		return wire_bad(why, "op_vote.tag: must be 0 with refusal.sync");
	m->is_sync = f->sync;
	rc = wire_get_code(
		f->code, &m->refusal.code, why, "op_vote.refusal.code: must be 1 to 255");
	if (rc == 0)
		rc = wire_get_text(m->refusal.text, sizeof m->refusal.text, f->text, why,
			"op_vote.refusal.text: " TEXT_LIMIT);
	return rc;
}

/* Decodes the subject of the vote, which is one of three kinds. */
static int get_vote(const Ccoip__OpVote *p, struct wm_op_vote *m, const char **why)
{
	if (p->refusal != NULL)
		return get_refusal(p, m, why);
	if (p->sync == NULL)
		return get_params(p->params, &m->params, why);
	if (p->params != NULL)
		return wire_bad(why, "op_vote.params: must not be there with sync");
	if (p->tag != 0)
		return wire_bad(why, "op_vote.tag: must be 0 with sync");
	m->is_sync = true;
	return wire_get_sync_vote(p->sync, &m->sync, why);
}

static int get_elected(const Ccoip__OpVote *p, struct wm_op_vote *m, const char **why)
{
	if ((p->elected != NULL) != (m->is_sync && m->seq != 0))
		return wire_bad(why, p->elected == NULL
					     ? "op_vote.elected: must be there with sync and seq"
					     : "op_vote.elected: must not be there without sync "
					       "and seq");
	return p->elected == NULL ? 0 : wire_get_sync_elected(p->elected, &m->elected, why);
}

static int get_op_vote(const Ccoip__OpVote *p, struct wm_op_vote *m, const char **why)
{
	int rc;

	m->group = p->group;
	m->tag = p->tag;
	m->generation = p->generation;
	m->seq = p->seq;
	m->spec_seq = p->spec_seq;
	m->waits_for = (uint32_t)p->waits_for;
	if (m->waits_for > WM_WAIT_FOR_MAIN)
		return wire_bad(why, "op_vote.waits_for: must be 0 to 2");
	rc = get_vote(p, m, why);
	if (rc == 0)
		rc = get_elected(p, m, why);
	if (rc == 0)
		rc = get_ids(p->peers, p->n_peers, &m->peers, &m->n_peers, why,
			"op_vote.peers: must be 1 to " WIRE_STR(
				WM_PEERS_MAX) " ids of 16 bytes, not all zero",
			"op_vote.peers: must not name a peer twice");
	return rc;
}

static int get_op_report(const Ccoip__OpReport *p, struct wm_op_report *m, const char **why)
{
	int rc;

	if (p->seq < 1)
		return wire_bad(why, "op_report.seq: must be at least 1");
	m->seq = p->seq;
	m->ok = p->ok;
	m->silent = p->silent;
	if (p->code > WIRE_CODE_MAX)
		return wire_bad(why, "op_report.code: must be at most 255");
	if (p->ok && p->code != 0)
		return wire_bad(why, "op_report.code: must be 0 with ok");
	m->code = p->code;
	rc = wire_get_id_or_none(&m->suspect, p->suspect, why, "op_report.suspect: " NONE_LIMIT);
	if (rc == 0)
		rc = wire_get_text(
			m->text, sizeof m->text, p->text, why, "op_report.text: " TEXT_LIMIT);
	if (rc == 0)
		rc = wire_get_sync_failures(p, m, why);
	return rc;
}

static int get_link_lost(const Ccoip__LinkLost *p, struct wm_link_lost *m, const char **why)
{
	int rc = wire_get_id(&m->agent, p->agent, why, "link_lost.agent: " WIRE_ID_LIMIT);

	m->inbound = p->inbound;
	if (rc == 0)
		rc = wire_get_text(
			m->text, sizeof m->text, p->text, why, "link_lost.text: " TEXT_LIMIT);
	if (rc == 0 && p->smaller && p->inbound)
		return wire_bad(why, "link_lost.smaller: must be false with inbound");
	m->smaller = p->smaller;
	return rc;
}

static int get_round_report(
	const Ccoip__RoundReport *p, struct wm_round_report *m, const char **why)
{
	int rc = 0;

	m->round = p->round;
	if (p->n_failures > WM_FAILURES_MAX)
		return wire_bad(
			why, "round_report.failures: must be at most " WIRE_STR(WM_FAILURES_MAX));
	m->failures = wire_new_array(p->n_failures, sizeof *m->failures, &rc, why);
	if (m->failures == NULL)
		return rc;
	m->n_failures = (uint32_t)p->n_failures;
	for (size_t i = 0; rc == 0 && i < p->n_failures; i++) {
		const Ccoip__Failure *f = p->failures[i];
		struct wm_failure *to = &m->failures[i];

		to->limit = f->limit;
		rc = wire_get_id(
			&to->agent, f->agent, why, "round_report.failures.agent: " WIRE_ID_LIMIT);
		if (rc == 0)
			rc = wire_get_text(to->text, sizeof to->text, f->text, why,
				"round_report.failures.text: " TEXT_LIMIT);
	}
	return rc;
}

int wire_get_endpoint(const Ccoip__Endpoint *p, struct wm_endpoint *m,
	const struct wire_endpoint_texts *texts, const char **why)
{
	int rc;

	if (p == NULL)
		return wire_bad(why, texts->missing);
	rc = wire_get_id(&m->agent, p->agent, why, texts->agent);
	if (rc == 0)
		rc = wire_get_name(m->name, sizeof m->name, p->name, why, texts->name);
	if (rc == 0)
		rc = get_addrs(p->addrs, p->n_addrs, 1, m->addrs, &m->n_addrs, why, texts->n_addrs,
			texts->addrs);
	if (rc != 0)
		return rc;
	if (p->n_addrs == 0 && !p->at_master)
		return wire_bad(why, texts->no_addrs);
	if (p->port < 1 || p->port > UINT16_MAX)
		return wire_bad(why, texts->port);
	m->at_master = p->at_master;
	m->port = (uint16_t)p->port;
	m->key_no = p->key_no;
	return wire_get_key_or_none(&m->key, p->key, why, texts->key);
}

static int get_ring(const Ccoip__Ring *p, struct wm_ring *m, const char **why)
{
	static const struct wire_endpoint_texts next = WIRE_ENDPOINT_TEXTS("round.rings.next");
	int rc = 0;

	if (p->hosts < 1 || p->hosts > WM_HOSTS_MAX)
		return wire_bad(why, "round.rings.hosts: must be 1 to 65536");
	if (p->pos >= p->hosts)
		return wire_bad(why, "round.rings.pos: must be below hosts");
	if (p->pool_size < 1 || p->pool_size > WM_POOL_MAX)
		return wire_bad(why, "round.rings.pool_size: must be 1 to " WIRE_STR(WM_POOL_MAX));
	m->group = p->group;
	m->hosts = p->hosts;
	m->pos = p->pos;
	m->pool_size = p->pool_size;
	if (p->hosts > 1) {
		m->reopen = p->reopen;
		m->prev_reopens = p->prev_reopens;
		rc = wire_get_endpoint(p->next, &m->next, &next, why);
		if (rc == 0)
			rc = wire_get_id(
				&m->prev, p->prev, why, "round.rings.prev: " WIRE_ID_LIMIT);
		if (rc == 0)
			rc = wire_get_name(m->prev_name, sizeof m->prev_name, p->prev_name, why,
				"round.rings.prev_name: " NAME_LIMIT);
	}
	if (rc == 0)
		rc = get_ids(p->members, p->n_members, &m->members, &m->n_members, why,
			"round.rings.members: must be 1 to " WIRE_STR(
				WM_PEERS_MAX) " ids of 16 bytes, not all zero",
			"round.rings.members: must not name a peer twice");
	return rc;
}

static int get_round(const Ccoip__Round *p, struct wm_round *m, const char **why)
{
	int rc = 0;

	m->round = p->round;
	m->accept = p->accept;
	m->peers = p->peers;
	rc = wire_get_id_or_none(&m->run_key, p->run_key, why, "round.run_key: " NONE_LIMIT);
	if (rc != 0)
		return rc;
	if (p->n_rings > WM_RINGS_MAX)
		return wire_bad(why, "round.rings: must be at most " WIRE_STR(WM_RINGS_MAX));
	m->rings = wire_new_array(p->n_rings, sizeof *m->rings, &rc, why);
	if (m->rings == NULL)
		return rc;
	m->n_rings = (uint32_t)p->n_rings;
	for (size_t i = 0; rc == 0 && i < p->n_rings; i++) {
		for (size_t k = 0; k < i; k++)
			if (p->rings[k]->group == p->rings[i]->group)
				return wire_bad(why, "round.rings: must not name a group twice");
		rc = get_ring(p->rings[i], &m->rings[i], why);
	}
	return rc;
}

static int get_commit(const Ccoip__Commit *p, struct wm_commit *m, const char **why)
{
	m->round = p->round;
	m->epoch = p->epoch;
	m->accept = p->accept;
	m->topo_ballot = p->topo_ballot;
	m->pending_ballot = p->pending_ballot;
	return wire_get_view(p->view, &m->view, why, "commit.view: must be there");
}

static int get_op_start(const Ccoip__OpStart *p, struct wm_op_start *m, const char **why)
{
	if (p->seq < 1)
		return wire_bad(why, "op_start.seq: must be at least 1");
	m->group = p->group;
	m->tag = p->tag;
	m->seq = p->seq;
	m->epoch = p->epoch;
	if (p->sync == NULL)
		return 0;
	if (p->tag != 0)
		return wire_bad(why, "op_start.tag: must be 0 with sync");
	m->is_sync = true;
	return wire_get_sync_start(p->sync, &m->sync, why);
}

static int get_op_abort(const Ccoip__OpAbort *p, struct wm_op_abort *m, const char **why)
{
	int rc;

	m->group = p->group;
	m->tag = p->tag;
	m->seq = p->seq;
	m->generation = p->generation;
	m->is_sync = p->sync;
	if (p->sync && p->tag != 0)
		return wire_bad(why, "op_abort.tag: must be 0 with sync");
	rc = wire_get_code(p->code, &m->code, why, "op_abort.code: must be 1 to 255");
	if (rc == 0)
		rc = wire_get_text(
			m->text, sizeof m->text, p->text, why, "op_abort.text: " TEXT_LIMIT);
	return rc;
}

static int get_op_done(const Ccoip__OpDone *p, struct wm_op_done *m, const char **why)
{
	if (p->seq < 1)
		return wire_bad(why, "op_done.seq: must be at least 1");
	m->seq = p->seq;
	m->revision = p->revision;
	m->next = p->reserved_seq;
	return 0;
}

static int get_kick(const Ccoip__Kick *p, struct wm_kick *m, const char **why)
{
	int rc;

	rc = wire_get_id(&m->peer, p->peer, why, "kick.peer: " WIRE_ID_LIMIT);
	if (rc == 0)
		rc = wire_get_code(p->code, &m->code, why, "kick.code: must be 1 to 255");
	if (rc == 0)
		rc = wire_get_text(m->text, sizeof m->text, p->text, why, "kick.text: " TEXT_LIMIT);
	return rc;
}

static int get_addresses(const Ccoip__Addresses *p, struct wm_addresses *m, const char **why)
{
	int rc = get_addrs(p->addrs, p->n_addrs, 0, m->addrs, &m->n_addrs, why,
		"addresses.addrs: must be at most " WIRE_STR(WM_ADDRS_MAX),
		"addresses.addrs: " ADDR_LIMIT);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < m->n_addrs; i++)
		if (cc_addr_is_any(&m->addrs[i]))
			return wire_bad(why, "addresses.addrs: must not be 0.0.0.0 or ::");
	if (p->port_p2p < 1 || p->port_p2p > UINT16_MAX)
		return wire_bad(why, "addresses.port_p2p: must be 1 to 65535");
	if (p->port_shared_state > UINT16_MAX)
		return wire_bad(why, "addresses.port_shared_state: must be at most 65535");
	if (p->port_benchmark > UINT16_MAX)
		return wire_bad(why, "addresses.port_benchmark: must be at most 65535");
	m->advertised = p->advertised;
	m->port_p2p = (uint16_t)p->port_p2p;
	m->port_shared_state = (uint16_t)p->port_shared_state;
	m->port_benchmark = (uint16_t)p->port_benchmark;
	return 0;
}

static int get_stopped(const Ccoip__Stopped *p, struct wm_stopped *m, const char **why)
{
	m->is = p->is;
	return wire_get_id(&m->peer, p->peer, why, "stopped.peer: " WIRE_ID_LIMIT);
}

static int get_waits(const Ccoip__Waits *p, struct wm_waits *m, const char **why)
{
	m->kind = (uint32_t)p->kind;
	m->group = p->group;
	m->tag = p->tag;
	m->waited_ms = p->waited_ms;
	if (m->kind > WM_WAIT_SYNC)
		return wire_bad(why, "waits.kind: must be 0 to 4");
	return wire_get_text(m->text, sizeof m->text, p->text, why, "waits.text: " TEXT_LIMIT);
}

static int get_waits_for(const Ccoip__WaitsFor *p, struct wm_waits_for *m, const char **why)
{
	m->tag = p->tag;
	m->any = p->any;
	m->kind = (uint32_t)p->kind;
	if (m->kind != WM_WAIT_FOR_HELPER && m->kind != WM_WAIT_FOR_MAIN)
		return wire_bad(why, "waits_for.kind: must be 1 or 2");
	return wire_get_id(&m->peer, p->peer, why, "waits_for.peer: " WIRE_ID_LIMIT);
}

static int get_standstill(const Ccoip__Standstill *p, struct wm_standstill *m, const char **why)
{
	*m = (struct wm_standstill){
		.seq = p->seq, .sent = p->sent, .received = p->received, .ms = p->ms};
	return m->seq < 1 ? wire_bad(why, "standstill.seq: must be at least 1") : 0;
}

static int get_unmet(const Ccoip__Unmet *p, struct wm_unmet *m, const char **why)
{
	bool is_op;
	int rc;

	m->kind = (uint32_t)p->kind;
	m->group = p->group;
	m->tag = p->tag;
	m->generation = p->generation;
	m->pending = p->pending;
	is_op = m->kind == WM_WAIT_OP || m->kind == WM_WAIT_SYNC;
	if (m->kind > WM_WAIT_SYNC || m->kind == WM_WAIT_STOPPED)
		return wire_bad(why, "unmet.kind: must be 0 to 2, or 4");
	if (is_op ? wire_get_code(p->code, &m->code, why,
			    "unmet.code: must be 1 to 255 for an operation") < 0
		  : p->code != 0)
		return wire_bad(why, "unmet.code: must be 1 to 255 for an operation, else 0");
	rc = wire_get_text(m->text, sizeof m->text, p->text, why, "unmet.text: " TEXT_LIMIT);
	if (rc == 0)
		rc = get_ids(p->peers, p->n_peers, &m->peers, &m->n_peers, why,
			"unmet.peers: must be 1 to " WIRE_STR(
				WM_PEERS_MAX) " ids of 16 bytes, not all zero",
			"unmet.peers: must not name a peer twice");
	return rc;
}

static int get_probe(const Ccoip__Probe *p, struct wm_probe *m, const char **why)
{
	static const struct wire_endpoint_texts to = WIRE_ENDPOINT_TEXTS("probe.to");
	static const struct wire_endpoint_texts state = WIRE_ENDPOINT_TEXTS("probe.state");
	int rc;

	if (p->number < 1)
		return wire_bad(why, "probe.number: must be at least 1");
	m->number = p->number;
	rc = wire_get_endpoint(p->to, &m->to, &to, why);
	if (rc == 0 && p->state)
		rc = wire_get_endpoint(p->state, &m->state, &state, why);
	return rc;
}

static int get_probed(const Ccoip__Probed *p, struct wm_probed *m, const char **why)
{
	if (p->number < 1)
		return wire_bad(why, "probed.number: must be at least 1");
	m->number = p->number;
	m->ok = p->ok;
	if (p->ok && p->limit)
		return wire_bad(why, "probed.limit: must be false with ok");
	m->limit = p->limit;
	return wire_get_text(m->text, sizeof m->text, p->text, why, "probed.text: " TEXT_LIMIT);
}

static int get_message(const Ccoip__Message *p, struct wm_msg *m, const char **why)
{
	memset(m, 0, wire_master_size((enum wm_type)p->kind_case));
	m->type = (enum wm_type)p->kind_case;
	switch (m->type) {
	case WM_HELLO:
		return get_hello(p->hello, &m->u.hello, why);
	case WM_JOIN:
		return get_join(p->join, &m->u.join, why);
	case WM_LEAVE:
		return get_leave(p->leave, &m->u.leave, why);
	case WM_TOPO_VOTE:
		return get_peer(p->topo_vote, &m->u.peer, why, "topo_vote.peer: " WIRE_ID_LIMIT);
	case WM_PENDING_VOTE:
		return get_peer(
			p->pending_vote, &m->u.peer, why, "pending_vote.peer: " WIRE_ID_LIMIT);
	case WM_OP_VOTE:
		return get_op_vote(p->op_vote, &m->u.op_vote, why);
	case WM_OP_REPORT:
		return get_op_report(p->op_report, &m->u.op_report, why);
	case WM_LINK_LOST:
		return get_link_lost(p->link_lost, &m->u.link_lost, why);
	case WM_ROUND_REPORT:
		return get_round_report(p->round_report, &m->u.round_report, why);
	case WM_HEARTBEAT:
		m->u.heartbeat.awaited = p->heartbeat->awaited;
		return 0;
	case WM_RESUME:
		return wire_get_resume(p->resume, &m->u.resume, why);
	case WM_OP_QUERY:
		return wire_get_op_query(p->op_query, &m->u.op_query, why);
	case WM_HELLO_ACK:
		return get_hello_ack(p->hello_ack, &m->u.hello_ack, why);
	case WM_REFUSE:
		return get_refuse(p->refuse, &m->u.refuse, why);
	case WM_ROUND:
		return get_round(p->round, &m->u.round, why);
	case WM_COMMIT:
		return get_commit(p->commit, &m->u.commit, why);
	case WM_VIEW:
		return wire_get_view(p->view, &m->u.view, why, "view: must be there");
	case WM_OP_START:
		return get_op_start(p->op_start, &m->u.op_start, why);
	case WM_OP_ABORT:
		return get_op_abort(p->op_abort, &m->u.op_abort, why);
	case WM_OP_DONE:
		return get_op_done(p->op_done, &m->u.op_done, why);
	case WM_PENDING_ANSWER:
		m->u.pending_answer.ballot = p->pending_answer->ballot;
		return 0;
	case WM_KICK:
		return get_kick(p->kick, &m->u.kick, why);
	case WM_OP_OUTCOMES:
		return wire_get_op_outcomes(p->op_outcomes, &m->u.op_outcomes, why);
	case WM_ADDRESSES:
		return get_addresses(p->addresses, &m->u.addresses, why);
	case WM_STOPPED:
		return get_stopped(p->stopped, &m->u.stopped, why);
	case WM_WAITS:
		return get_waits(p->waits, &m->u.waits, why);
	case WM_WAITS_FOR:
		return get_waits_for(p->waits_for, &m->u.waits_for, why);
	case WM_STANDSTILL:
		return get_standstill(p->standstill, &m->u.standstill, why);
	case WM_UNMET:
		return get_unmet(p->unmet, &m->u.unmet, why);
	case WM_KNOCK:
		return get_knock(p->knock, &m->u.knock, why);
	case WM_KNOCK_ACK:
		return wire_get_key(&m->u.knock_ack.share, p->knock_ack->share, why,
			"knock_ack.share: must be 32 bytes, not all zero");
	case WM_PROBED:
		return get_probed(p->probed, &m->u.probed, why);
	case WM_LEFT:
		return wire_get_id(
			&m->u.left.peer, p->left->peer, why, "left.peer: " WIRE_ID_LIMIT);
	case WM_PROBE:
		return get_probe(p->probe, &m->u.probe, why);
	}
	return wire_bad(why, "message.kind: not one that this version knows");
}

static bool get_varint(const uint8_t **p, const uint8_t *end, size_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; *p < end && shift < 28; shift += 7) {
		uint8_t b = *(*p)++;

		*ret |= (size_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return true;
	}
	return false;
}

/* Returns the descriptor of the only field of Message, and sets *p and *len to the contents of this
 * field. Returns NULL if Message does not have exactly one field. */
static const ProtobufCFieldDescriptor *get_field(const uint8_t **p, size_t *len)
{
	const uint8_t *at = *p, *end = *p + *len;
	size_t key, n;

	if (!get_varint(&at, end, &key) || key % 8 != WIRE_LENGTH_DELIMITED ||
		!get_varint(&at, end, &n) || n != (size_t)(end - at))
		return NULL;
	*p = at;
	*len = n;
	return protobuf_c_message_descriptor_get_field(
		&ccoip__message__descriptor, (unsigned)(key / 8));
}

/* Decodes a Message. If it has only one field, this function decodes the contents of the field
 * directly, because protobuf-c would check Message for every kind. Other messages are decoded as a
 * whole. */
static int unpack(struct wire_arena *arena, const uint8_t *payload, size_t len, Ccoip__Message *ret,
	const char **why)
{
	const ProtobufCFieldDescriptor *field;
	const uint8_t *p = payload;
	size_t n = len;
	void *m;
	int rc = 0;

	field = get_field(&p, &n);
	if (field == NULL) {
		m = wire_arena_unpack(
			arena, &ccoip__message__descriptor, payload, len, MEMORY_FACTOR, &rc, why);
		if (m != NULL)
			*ret = *(Ccoip__Message *)m;
		return rc;
	}
	/* All kinds share one union of pointers, so any member of it can be set. */
	ret->hello = wire_arena_unpack(arena, field->descriptor, p, n, MEMORY_FACTOR, &rc, why);
	ret->kind_case = (Ccoip__Message__KindCase)field->id;
	return rc;
}

int wire_master_decode(const uint8_t *payload, size_t len, struct wm_msg *ret, const char **why)
{
	struct wire_arena arena;
	Ccoip__Message m = CCOIP__MESSAGE__INIT;
	int rc;

	ret->type = (enum wm_type)0;
	if (len > WIRE_FRAME_MAX) {
		*why = "message: must be at most 1 MiB";
		return CC_ERR_LIMIT;
	}
	rc = unpack(&arena, payload, len, &m, why);
	if (rc == 0)
		rc = get_message(&m, ret, why);
	wire_arena_free(&arena);
	if (rc != 0)
		wire_master_clear(ret);
	return rc;
}
