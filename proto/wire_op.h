/* SPDX-License-Identifier: MIT
 *
 * Messages between agents and master (wire_master.h) about operations: all-reduces and
 * synchronizations of shared state.
 */
#ifndef WIRE_OP_H
#define WIRE_OP_H

#include "common/cc_route.h"
#include "proto/wire_member.h"
#include "proto/wire_quant.h"

/* The parameters that must be equal for all peers of one operation. */
struct wm_op_params {
	uint64_t count;
	uint32_t dtype;                  /* pcclDataType_t, checked */
	uint32_t op;                     /* pcclRedOp_t, checked */
	struct wire_quant_numbers quant; /* each number checked, in the form of wire_quant_put */
};

static inline bool wm_op_params_eq(const struct wm_op_params *x, const struct wm_op_params *y)
{
	return x->count == y->count && x->dtype == y->dtype && x->op == y->op &&
	       wire_quant_eq(&x->quant, &y->quant);
}

/* Tells which thread of a peer can do nothing else until its call ends. */
enum wm_wait_for_kind {
	WM_WAIT_FOR_NONE = 0, /* the peer continues with other work */
	/* A thread other than its main thread; the main thread may still ask for pending peers. */
	WM_WAIT_FOR_HELPER = 1,
	WM_WAIT_FOR_MAIN = 2, /* its main thread */
};

/* The elected state of a synchronization that has started. The keys and the hash type of the vote
 * are the elected ones. */
struct wm_sync_elected {
	uint64_t revision;
	struct wm_digest content;
};

/* A refusal: a call failed on its host before it could take part, and ends for all peers with this
 * code and text. */
struct wm_refusal {
	uint32_t code; /* a pcclResult_t; 0: the call takes part */
	char text[WM_TEXT_MAX];
};

/* Votes of peers of one agent with equal parameters. The agent merges them. A synchronization of
 * shared state has no tag, because a group has at most one in flight. */
struct wm_op_vote {
	uint32_t group;
	uint64_t tag;               /* names the operation, together with the group; 0 if is_sync */
	bool is_sync;               /* a synchronization of shared state; else an all-reduce */
	struct wm_op_params params; /* all zero if is_sync or refused */
	struct wm_sync_vote sync;   /* all zero unless is_sync and not refused */
	uint32_t n_peers;           /* 1 .. WM_PEERS_MAX */
	struct cc_id *peers;
	/* Last generation of the group that the agent received. If it differs from the master's,
	 * the vote crossed a loss. Then it does not count, and OP_ABORT is the answer. */
	uint64_t generation;
	uint64_t seq; /* 0; in a snapshot: seq of the OP_START that the agent has received */
	/* All zero unless is_sync and seq: the elected state of that OP_START. */
	struct wm_sync_elected elected;
	/* The reserved seq (OP_DONE.next) under which the agent starts speculatively, before
	 * OP_START; or 0. */
	uint64_t spec_seq;
	uint32_t route;            /* enum cc_algo of the OP_START; 0 without seq or if is_sync */
	uint64_t epoch;            /* of the OP_START; 0 without seq */
	uint32_t waits_for;        /* enum wm_wait_for_kind; holds for each of the peers */
	struct wm_refusal refusal; /* if this is a refusal, seq and spec_seq are 0 */
};

/* A peer that cannot get the elected contents, or whose tensors do not match its candidate. */
struct wm_sync_failure {
	struct cc_id peer;
	uint32_t code; /* a pcclResult_t for its callers */
	char text[WM_TEXT_MAX];
};

/* The report of one agent on its part of an attempt, for all its members. */
struct wm_op_report {
	uint64_t seq;
	bool ok;
	struct cc_id suspect; /* id of the suspect, or zero */
	/* Nothing was received from the suspect's host any more, so the path may be gone. */
	bool silent;
	/* If not ok: a pcclResult_t for all callers, because a repeated call would fail again; 0: a
	 * peer or a link is lost. */
	uint32_t code;
	char text[WM_TEXT_MAX];
	/* Of a synchronization: peers to be kicked. The synchronization continues without them,
	 * even if ok is false. */
	uint32_t n_failed;              /* at most WM_PEERS_MAX */
	struct wm_sync_failure *failed; /* all peers differ */
};

/* Reports a standstill: an all-reduce has made no progress on this host for `ms`, and it does not
 * wait for a process of this host. */
struct wm_standstill {
	uint64_t seq;      /* >= 1 */
	uint64_t sent;     /* bytes of the all-reduce, written to the link to the next host */
	uint64_t received; /* bytes of the all-reduce, from the previous host */
	uint32_t ms;
};

/* Reports that a peer now waits for an all-reduce of its group. The vote of the peer did not state
 * this yet.
 */
struct wm_waits_for {
	struct cc_id peer;
	uint64_t tag;
	uint32_t kind; /* enum wm_wait_for_kind, not NONE */
	/* 0: the peer waits for this operation. Else it waits until any of its `any` operations
	 * ends; tag is one of them. */
	uint32_t any;
};

enum wm_sync_role {
	WM_SYNC_HOLDER = 0,   /* has the elected contents */
	WM_SYNC_RECEIVER = 1, /* must get the elected contents, as far as they differ */
};

struct wm_sync_peer {
	struct cc_id peer;
	uint32_t role; /* enum wm_sync_role */
};

/* A source of blocks. */
struct wm_sync_source {
	struct wm_endpoint endpoint;
	uint32_t holders; /* number of its peers that are holders */
};

/* The elected state, as one agent sees it. */
struct wm_sync_start {
	uint64_t revision;
	uint32_t hash_type;    /* enum wm_hash_type, or another number up to 255 */
	struct wm_digest keys; /* of all peers that take part */
	struct wm_digest content;
	uint32_t n_peers;           /* 1 .. WM_PEERS_MAX */
	struct wm_sync_peer *peers; /* of the receiving agent; all differ */
	/* Other agents, in two lists. No agent appears twice in a list, or in both lists. Each list
	 * has at most WM_SOURCES_MAX. */
	uint32_t n_sources, n_others;
	struct wm_sync_source *sources; /* agents with holders, in the order in which to try them */
	/* Agents with only receivers (holders is 0), which may already have some blocks. */
	struct wm_sync_source *others;
};

struct wm_op_start {
	uint32_t group;
	uint64_t tag; /* 0 if is_sync */
	uint64_t seq; /* grows over the whole run; names this attempt */
	uint64_t epoch;
	bool is_sync;
	struct wm_sync_start sync; /* all zero unless is_sync */
	uint32_t route;            /* enum cc_algo; 0 if is_sync */
};

struct wm_op_abort {
	uint32_t group;
	uint64_t tag;
	uint64_t seq;  /* 0: the attempt had not started */
	uint32_t code; /* a pcclResult_t for the callers */
	char text[WM_TEXT_MAX];
	uint64_t generation; /* if seq is 0: generation of the votes that this message answers */
	bool is_sync;        /* a synchronization of shared state; tag is 0 */
};

struct wm_op_done {
	uint64_t seq;
	/* Of a synchronization: the revision that all peers of the group have now. */
	uint64_t revision;
	/* Of an all-reduce: the seq reserved for the next all-reduce of its group and tag, unless
	 * OP_START names another seq; or 0. Agents may start that all-reduce before OP_START. */
	uint64_t next;
	uint32_t next_route; /* enum cc_algo: the route of `next`; 0 if next is 0 */
};

enum wm_wait_kind {
	WM_WAIT_OP = 0,
	WM_WAIT_SYNC = 1, /* the votes for a synchronization of shared state */
	WM_WAIT_BALLOT = 2,
	WM_WAIT_STOPPED = 3,
};

/* Information for people, without any other effect. Agents whose peers have voted receive it when
 * votes of other peers have been missing for seconds, and when the text changes. With
 * WM_WAIT_STOPPED all agents of a group receive the list of stopped processes. */
struct wm_waits {
	uint32_t kind;           /* enum wm_wait_kind */
	uint32_t group;          /* with WM_WAIT_OP, WM_WAIT_STOPPED and WM_WAIT_SYNC; else 0 */
	uint64_t tag;            /* with WM_WAIT_OP; else 0 */
	enum wire_ballot ballot; /* with WM_WAIT_BALLOT; else 0 */
	uint32_t waited_ms;      /* since the first vote */
	char text[WM_TEXT_MAX];  /* the missing peers: "1 of 3 peers: train@host pid 7 (...)" */
};

/* Ends the unmet calls of these peers. Their votes become void. */
struct wm_unmet {
	uint32_t kind;           /* enum wm_wait_kind, not STOPPED */
	uint32_t group;          /* with WM_WAIT_OP and WM_WAIT_SYNC; else 0 */
	uint64_t tag;            /* with WM_WAIT_OP; else 0 */
	enum wire_ballot ballot; /* with WM_WAIT_BALLOT; else 0 */
	uint32_t n_peers;
	struct cc_id *peers; /* 1 .. WM_PEERS_MAX */
	uint64_t generation; /* OP, SYNC: generation of the votes that this message answers */
	bool answer;         /* BALLOT: the answer */
	uint32_t code;       /* OP, SYNC: a pcclResult_t for the callers; else 0 */
	char text[WM_TEXT_MAX];
};

#endif
