/* SPDX-License-Identifier: MIT
 *
 * The tables of the messages of wire_op.h, and their rules.
 */
#include "proto/wire_master_tables.h"

_Static_assert(WIRE_STATE_MAX == UINT64_C(281474976710656), "limits named in texts");

/* ---- op_vote ---- */

static const struct wire_field params_fields[] = {
	F(op_params, count, U64_IN(1, WIRE_COUNT_MAX, "op_vote.params.count: must be 1 to 2^48")),
	F(op_params, dtype, U32_IN(0, WIRE_DTYPE_MAX, "op_vote.params.dtype: must be 0 to 11")),
	F(op_params, op, U32_IN(0, WIRE_OP_MAX, "op_vote.params.op: must be 0 to 4")),
	AS(op_params, quant_algo, quant.algo,
		U32_IN(0, WIRE_QUANT_MAX, "op_vote.params.quant_algo: must be 0 to 2^16 - 1")),
	AS(op_params, quant_dtype, quant.dtype,
		U32_IN(0, WIRE_QUANT_DTYPE_MAX, "op_vote.params.quant_dtype: must be 0 to 66")),
	AS(op_params, quant_hint, quant.hint,
		U32_IN(0, WIRE_HINT_MAX, "op_vote.params.quant_hint: must be 0 to 2")),
};
static const struct wire_table params = {TABLE(op_params, op_params, params_fields)};

static const struct wire_field sync_vote_fields[] = {
	F(sync_vote, revision, U64),
	F(sync_vote, strategy,
		U32_IN(0, WM_STRATEGY_SEND_ONLY, "op_vote.sync.strategy: must be 0 to 2")),
	F(sync_vote, hash_type, HASH_TYPE("op_vote.sync.hash_type")),
	F(sync_vote, keys, DIGEST("op_vote.sync.keys")),
	F(sync_vote, content, DIGEST("op_vote.sync.content")),
	AS(sync_vote, tensors, n_tensors,
		U64_IN(0, WIRE_TENSORS_MAX, "op_vote.sync.tensors: must be at most 1048576")),
	F(sync_vote, bytes, U64_IN(0, WIRE_STATE_MAX, "op_vote.sync.bytes: must be at most 2^48")),
	F(sync_vote, torn, BOOL),
};
static const struct wire_table sync_vote = {TABLE(sync_vote, sync_vote, sync_vote_fields)};

static const struct wire_field elected_fields[] = {
	F(sync_elected, revision, U64),
	F(sync_elected, content, DIGEST("op_vote.elected.content")),
};
static const struct wire_table elected = {TABLE(sync_elected, sync_elected, elected_fields)};

static const struct wire_field refusal_fields[] = {
	AS(op_vote, code, refusal.code, CODE("op_vote.refusal.code")),
	AS(op_vote, text, refusal.text, REASON("op_vote.refusal.text")),
	AS(op_vote, sync, is_sync, BOOL),
};
static const struct wire_table refusal = {TABLE(op_vote, refusal, refusal_fields)};

/* A vote has one of three subjects. */
CONDITION(is_refusal, struct wm_op_vote, m->refusal.code != 0)
CONDITION(is_all_reduce, struct wm_op_vote, !m->is_sync && !is_refusal(m))
CONDITION(is_sync, struct wm_op_vote, m->is_sync && !is_refusal(m))
CONDITION(is_started_sync, struct wm_op_vote, m->seq != 0 && is_sync(m))

static int check_subject(const Ccoip__OpVote *p, const char **why)
{
	if (p->refusal != NULL) {
		if (p->params != NULL || p->sync != NULL)
			return wire_bad(
				why, "op_vote.refusal: must not be there with params or sync");
		if (p->seq != 0 || p->spec_seq != 0)
			return wire_bad(
				why, "op_vote.refusal: must not be there with seq or spec_seq");
		return p->refusal->sync && p->tag != 0
			       ? wire_bad(why, "op_vote.tag: must be 0 with refusal.sync")
			       : 0;
	}
	if (p->sync == NULL)
		return p->params != NULL ? 0 : wire_bad(why, "op_vote.params: must be there");
	if (p->params != NULL)
		return wire_bad(why, "op_vote.params: must not be there with sync");
	return p->tag == 0 ? 0 : wire_bad(why, "op_vote.tag: must be 0 with sync");
}

#define VOTE_ROUTE_LIMIT "op_vote.route: must be 0 to 3, and 0 without params or seq"

static int before_op_vote(const void *p, void *plain, const char **why)
{
	const Ccoip__OpVote *from = p;
	struct wm_op_vote *m = plain;
	int rc = check_subject(from, why);

	if (rc != 0)
		return rc;
	m->is_sync = from->sync != NULL;
	if (from->elected == NULL && m->is_sync && from->seq != 0)
		return wire_bad(why, "op_vote.elected: must be there with sync and seq");
	if (from->elected != NULL && (!m->is_sync || from->seq == 0))
		return wire_bad(why, "op_vote.elected: must not be there without sync and seq");
	if (from->route != 0 && (from->params == NULL || from->seq == 0))
		return wire_bad(why, VOTE_ROUTE_LIMIT);
	if (from->epoch != 0 && from->seq == 0)
		return wire_bad(why, "op_vote.epoch: must be 0 without seq");
	return 0;
}

static const struct wire_field op_vote_fields[] = {
	F(op_vote, group, U32),
	F(op_vote, tag, U64),
	F(op_vote, params, MESSAGE(params), .when = is_all_reduce),
	LIST(op_vote, peers, n_peers, PEERS("op_vote.peers")),
	F(op_vote, generation, U64),
	F(op_vote, seq, U64),
	F(op_vote, sync, MESSAGE(sync_vote), .when = is_sync),
	F(op_vote, elected, MESSAGE(elected), .when = is_started_sync),
	F(op_vote, spec_seq, U64),
	F(op_vote, waits_for, U32_IN(0, WM_WAIT_FOR_MAIN, "op_vote.waits_for: must be 0 to 2")),
	{.name = "refusal", MESSAGE(refusal), .when = is_refusal},
	F(op_vote, route, U32_IN(0, CC_ALGO_COUNT - 1, VOTE_ROUTE_LIMIT)),
	F(op_vote, epoch, U64),
};
const struct wire_table wm_op_vote_table = {
	TABLE(op_vote, op_vote, op_vote_fields), .owns = true, .before = before_op_vote};

/* ---- op_report, standstill ---- */

static const struct wire_field sync_failure_fields[] = {
	F(sync_failure, peer, ID("op_report.failed.peer")),
	F(sync_failure, code, CODE("op_report.failed.code")),
	F(sync_failure, text, REASON("op_report.failed.text")),
};
static const struct wire_table sync_failure = {
	TABLE(sync_failure, sync_failure, sync_failure_fields)};

CONDITION(code_is_failure, struct wm_op_report, m->code == 0 || !m->ok)

static const struct wire_field op_report_fields[] = {
	F(op_report, seq, U64_FROM_1("op_report.seq")),
	F(op_report, ok, BOOL),
	F(op_report, suspect, ID_OR_NONE("op_report.suspect")),
	F(op_report, text, REASON("op_report.text")),
	F(op_report, silent, BOOL),
	LIST(op_report, failed, n_failed, LIST_OF(sync_failure), .owned = true,
		AT_MOST(WM_PEERS_MAX, "op_report.failed: must be at most 1024"),
		PEERS_DIFFER("op_report.failed")),
	F(op_report, code, U32_IN(0, WIRE_CODE_MAX, "op_report.code: must be at most 255"),
		RULE(code_is_failure, "op_report.code: must be 0 with ok")),
};
const struct wire_table wm_op_report_table = {
	TABLE(op_report, op_report, op_report_fields), .owns = true};

static const struct wire_field standstill_fields[] = {
	F(standstill, seq, U64_FROM_1("standstill.seq")),
	F(standstill, sent, U64),
	F(standstill, received, U64),
	F(standstill, ms, U32),
};
const struct wire_table wm_standstill_table = {TABLE(standstill, standstill, standstill_fields)};

/* ---- op_start ---- */

static const struct wire_field sync_peer_fields[] = {
	F(sync_peer, peer, ID("op_start.sync.peers.peer")),
	F(sync_peer, role, U32_IN(0, WM_SYNC_RECEIVER, "op_start.sync.peers.role: must be 0 or 1")),
};
static const struct wire_table sync_peer = {TABLE(sync_peer, sync_peer, sync_peer_fields)};

/* The two lists of sources differ in the numbers of holders that they allow. */
#define SOURCES_PATH "op_start.sync.sources.endpoint"
#define OTHERS_PATH  "op_start.sync.others.endpoint"
ENDPOINT_TABLE(source_endpoint, SOURCES_PATH);
ENDPOINT_TABLE(other_endpoint, OTHERS_PATH);

static const struct wire_field source_fields[] = {
	F(sync_source, endpoint, ENDPOINT(source_endpoint, SOURCES_PATH)),
	F(sync_source, holders,
		U32_IN(1, WM_PEERS_MAX, "op_start.sync.sources.holders: must be 1 to 1024")),
};
static const struct wire_table source = {TABLE(sync_source, sync_source, source_fields)};

static const struct wire_field other_fields[] = {
	F(sync_source, endpoint, ENDPOINT(other_endpoint, OTHERS_PATH)),
	F(sync_source, holders, U32_IN(0, 0, "op_start.sync.others.holders: must be 0")),
};
static const struct wire_table other = {TABLE(sync_source, sync_source, other_fields)};

static int agents_differ(const void *plain)
{
	const struct wm_sync_start *m = plain;
	struct cc_id ids[2 * WM_SOURCES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_sources; i++)
		ids[n++] = m->sources[i].endpoint.agent;
	for (uint32_t i = 0; i < m->n_others; i++)
		ids[n++] = m->others[i].endpoint.agent;
	return !wire_keys_repeat(ids, n, sizeof ids[0], sizeof ids[0]);
}

static const struct wire_field sync_start_fields[] = {
	F(sync_start, revision, U64),
	F(sync_start, hash_type, HASH_TYPE("op_start.sync.hash_type")),
	F(sync_start, keys, DIGEST("op_start.sync.keys")),
	F(sync_start, content, DIGEST("op_start.sync.content")),
	LIST(sync_start, peers, n_peers, LIST_OF(sync_peer), .owned = true,
		IN(1, WM_PEERS_MAX, "op_start.sync.peers: must be 1 to 1024"),
		PEERS_DIFFER("op_start.sync.peers")),
	LIST(sync_start, sources, n_sources, LIST_OF(source), .owned = true,
		AT_MOST(WM_SOURCES_MAX, "op_start.sync.sources: must be at most 16")),
	LIST(sync_start, others, n_others, LIST_OF(other), .owned = true,
		AT_MOST(WM_SOURCES_MAX, "op_start.sync.others: must be at most 16"),
		RULE(agents_differ, "op_start.sync.sources: must not name an agent twice")),
};
static const struct wire_table sync_start = {
	TABLE(sync_start, sync_start, sync_start_fields), .owns = true};

#define START_ROUTE_LIMIT "op_start.route: must be 0 to 3, and 0 with sync"

CONDITION(starts_sync, struct wm_op_start, m->is_sync)
CONDITION(start_has_route, struct wm_op_start, m->route == 0 || !m->is_sync)
CONDITION(start_has_tag, struct wm_op_start, m->tag == 0 || !m->is_sync)

static int before_op_start(const void *p, void *plain, const char **why)
{
	(void)why;
	((struct wm_op_start *)plain)->is_sync = ((const Ccoip__OpStart *)p)->sync != NULL;
	return 0;
}

static const struct wire_field op_start_fields[] = {
	F(op_start, group, U32),
	F(op_start, tag, U64, RULE(start_has_tag, "op_start.tag: must be 0 with sync")),
	F(op_start, seq, U64_FROM_1("op_start.seq")),
	F(op_start, epoch, U64),
	F(op_start, sync, MESSAGE(sync_start), .when = starts_sync),
	F(op_start, route, U32_IN(0, CC_ALGO_COUNT - 1, START_ROUTE_LIMIT),
		RULE(start_has_route, START_ROUTE_LIMIT)),
};
const struct wire_table wm_op_start_table = {
	TABLE(op_start, op_start, op_start_fields), .owns = true, .before = before_op_start};

/* ---- op_abort, op_done ---- */

CONDITION(abort_has_tag, struct wm_op_abort, m->tag == 0 || !m->is_sync)

static const struct wire_field op_abort_fields[] = {
	F(op_abort, group, U32),
	F(op_abort, tag, U64),
	F(op_abort, seq, U64),
	F(op_abort, code, CODE("op_abort.code")),
	F(op_abort, text, REASON("op_abort.text")),
	F(op_abort, generation, U64),
	AS(op_abort, sync, is_sync, BOOL, RULE(abort_has_tag, "op_abort.tag: must be 0 with sync")),
};
const struct wire_table wm_op_abort_table = {TABLE(op_abort, op_abort, op_abort_fields)};

#define RESERVED_ROUTE_LIMIT "op_done.reserved_route: must be 0 to 2, and 0 without reserved_seq"
CONDITION(route_has_seq, struct wm_op_done, m->next_route == 0 || m->next != 0)

static const struct wire_field op_done_fields[] = {
	F(op_done, seq, U64_FROM_1("op_done.seq")),
	F(op_done, revision, U64),
	AS(op_done, reserved_seq, next, U64),
	AS(op_done, reserved_route, next_route,
		U32_IN(0, CC_ALGO_FIXED_COUNT - 1, RESERVED_ROUTE_LIMIT),
		RULE(route_has_seq, RESERVED_ROUTE_LIMIT)),
};
const struct wire_table wm_op_done_table = {TABLE(op_done, op_done, op_done_fields)};

/* ---- waits, waits_for, unmet ---- */

#define WAIT_BALLOT_LIMIT(path) BALLOT_LIMIT(0, path ".ballot") ", and 0 unless kind is 2"
CONDITION(waits_for_ballot, struct wm_waits, m->ballot == 0 || m->kind == WM_WAIT_BALLOT)

static const struct wire_field waits_fields[] = {
	F(waits, kind, U32_IN(0, WM_WAIT_STOPPED, "waits.kind: must be 0 to 3")),
	F(waits, group, U32),
	F(waits, tag, U64),
	F(waits, waited_ms, U32),
	F(waits, text, REASON("waits.text")),
	F(waits, ballot, BALLOT_FROM(0, "waits.ballot"),
		RULE(waits_for_ballot, WAIT_BALLOT_LIMIT("waits"))),
};
const struct wire_table wm_waits_table = {TABLE(waits, waits, waits_fields)};

static const struct wire_field waits_for_fields[] = {
	F(waits_for, peer, ID("waits_for.peer")),
	F(waits_for, tag, U64),
	F(waits_for, kind,
		U32_IN(WM_WAIT_FOR_HELPER, WM_WAIT_FOR_MAIN, "waits_for.kind: must be 1 or 2")),
	F(waits_for, any, U32),
};
const struct wire_table wm_waits_for_table = {TABLE(waits_for, waits_for, waits_for_fields)};

#define UNMET_CODE_LIMIT "unmet.code: must be 1 to 255 for an operation, else 0"
CONDITION(unmet_has_ballot, struct wm_unmet, m->ballot == 0 || m->kind == WM_WAIT_BALLOT)
CONDITION(unmet_has_code, struct wm_unmet,
	(m->code != 0) == (m->kind == WM_WAIT_OP || m->kind == WM_WAIT_SYNC))

static const struct wire_field unmet_fields[] = {
	F(unmet, kind, U32_IN(0, WM_WAIT_BALLOT, "unmet.kind: must be 0 to 2")),
	F(unmet, group, U32),
	F(unmet, tag, U64),
	LIST(unmet, peers, n_peers, PEERS("unmet.peers")),
	F(unmet, generation, U64),
	F(unmet, answer, BOOL),
	F(unmet, code, U32_IN(0, WIRE_CODE_MAX, UNMET_CODE_LIMIT),
		RULE(unmet_has_code, UNMET_CODE_LIMIT)),
	F(unmet, text, REASON("unmet.text")),
	F(unmet, ballot, BALLOT_FROM(0, "unmet.ballot"),
		RULE(unmet_has_ballot, WAIT_BALLOT_LIMIT("unmet"))),
};
const struct wire_table wm_unmet_table = {TABLE(unmet, unmet, unmet_fields), .owns = true};
