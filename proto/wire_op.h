/* SPDX-License-Identifier: MIT
 *
 * Messages between agents and master (wire_master.h) about operations: all-reduces and
 * synchronizations of shared state.
 */
#ifndef WIRE_OP_H
#define WIRE_OP_H

#include "proto/wire_member.h"

/* What must agree between all peers of one operation. */
struct wm_op_params {
	uint64_t count;
	uint32_t dtype;       /* pcclDataType_t, checked */
	uint32_t op;          /* pcclRedOp_t, checked */
	uint32_t quant_algo;  /* pcclQuantizationAlgorithm_t */
	uint32_t quant_dtype; /* pcclDataType_t */
};

/* Whom a call that has voted keeps from doing anything else. */
enum wm_wait_for_kind {
	WM_WAIT_FOR_NONE = 0,   /* the peer goes on with something else */
	WM_WAIT_FOR_HELPER = 1, /* a thread that is not its main one: that one may still ask for
				 * pending peers */
	WM_WAIT_FOR_MAIN = 2,   /* its main thread */
};

/* What an attempt that has started is to make of all peers; their keys and hash type are the
 * elected ones. */
struct wm_sync_elected {
	uint64_t revision;
	struct wm_digest content;
};

/* A call that has failed on its host before it could take part: how it is to end for all. */
struct wm_refusal {
	uint32_t code; /* a pcclResult_t; 0: the call takes part */
	char text[WM_TEXT_MAX];
};

/* Votes of co-located peers with equal parameters, merged by their agent. A synchronization of
 * shared state has no tag: the group has one in flight at most. */
struct wm_op_vote {
	uint32_t group;
	uint64_t tag;               /* with the group it names the operation; is_sync: 0 */
	bool is_sync;               /* shared state; else an all-reduce */
	struct wm_op_params params; /* unless is_sync or refused; else all zero */
	struct wm_sync_vote sync;   /* if is_sync and not refused; else all zero */
	uint32_t n_peers;           /* 1 .. WM_PEERS_MAX */
	struct cc_id *peers;
	uint64_t generation; /* of the group, as the agent was told last; not the master's number: a
			      * loss overtook the vote, it does not count and is answered with
			      * OP_ABORT */
	uint64_t seq;        /* 0; after a resumption: of the OP_START that the agent has seen */
	struct wm_sync_elected elected; /* if is_sync and seq: as that said; else all zero */
	uint64_t spec_seq;  /* the OP_DONE.next under which the agent begins before any OP_START; or
			       0 */
	uint32_t waits_for; /* enum wm_wait_for_kind: true of each of the peers */
	struct wm_refusal refusal; /* seq and spec_seq are 0 then */
};

/* A peer that cannot get what was elected, or whose tensors are not what it said. */
struct wm_sync_failure {
	struct cc_id peer;
	uint32_t code; /* a pcclResult_t for its callers */
	char text[WM_TEXT_MAX];
};

/* One agent's completion vote for all its members of an operation. */
struct wm_op_report {
	uint64_t seq;
	bool ok;
	struct cc_id suspect; /* agent that seems at fault, or zero */
	bool silent;   /* nothing at all was heard of its host any more: the path may be gone */
	uint32_t code; /* not ok: a pcclResult_t for all callers, of whom none need call again in
			* vain; 0: a peer or a link is lost */
	char text[WM_TEXT_MAX];
	/* Of a synchronization: these are to be kicked, and it goes on without them, whatever ok
	 * says. */
	uint32_t n_failed;              /* at most WM_PEERS_MAX */
	struct wm_sync_failure *failed; /* peers differ */
};

/* An all-reduce has stood still here for so long, and no process of this host is what it waits for.
 */
struct wm_standstill {
	uint64_t seq;      /* >= 1 */
	uint64_t sent;     /* bytes of it that were given to the link to the next host */
	uint64_t received; /* bytes of it that came from the host before */
	uint32_t ms;
};

/* A peer waits for an all-reduce of its group that it has voted for without saying so. */
struct wm_waits_for {
	struct cc_id peer;
	uint64_t tag;
	uint32_t kind; /* enum wm_wait_for_kind, not NONE */
	uint32_t any;  /* 0: for this one. Else until any of those that it has voted for ends, which
			* are so many; tag is one of them */
};

enum wm_sync_role {
	WM_SYNC_HOLDER = 0,   /* has what was elected */
	WM_SYNC_RECEIVER = 1, /* has to get it, or what of it differs */
};

struct wm_sync_peer {
	struct cc_id peer;
	uint32_t role; /* enum wm_sync_role */
};

/* Where blocks can be had. */
struct wm_sync_source {
	struct wm_endpoint endpoint;
	uint32_t holders; /* its peers that are holders */
};

/* What was elected, as seen by one agent. */
struct wm_sync_start {
	uint64_t revision;
	uint32_t hash_type;    /* enum wm_hash_type, or another number up to 255 */
	struct wm_digest keys; /* of all that take part */
	struct wm_digest content;
	uint32_t n_peers;           /* 1 .. WM_PEERS_MAX */
	struct wm_sync_peer *peers; /* of the receiving agent, no two alike */
	/* Other agents, no two alike in both. At most WM_SOURCES_MAX each. */
	uint32_t n_sources, n_others;
	struct wm_sync_source *sources; /* with holders, in the order to try */
	struct wm_sync_source *others;  /* with receivers alone (holders 0): they may have some */
};

struct wm_op_start {
	uint32_t group;
	uint64_t tag; /* is_sync: 0 */
	uint64_t seq; /* grows over the whole run: the name of this attempt */
	uint64_t epoch;
	bool is_sync;
	struct wm_sync_start sync; /* if is_sync; else all zero */
};

struct wm_op_abort {
	uint32_t group;
	uint64_t tag;
	uint64_t seq;  /* 0: had not started */
	uint32_t code; /* a pcclResult_t for the callers */
	char text[WM_TEXT_MAX];
	uint64_t generation; /* seq 0: as in the votes that this answers */
	bool is_sync;        /* of a synchronization of shared state; tag is 0 */
};

struct wm_op_done {
	uint64_t seq;
	uint64_t revision; /* of a synchronization: all peers of the group have it now */
	uint64_t next; /* of an all-reduce: the seq of the next one of its group and tag, unless an
			* OP_START says otherwise: agents may begin it before; or 0 */
};

enum wm_wait_kind {
	WM_WAIT_OP = 0,
	WM_WAIT_TOPOLOGY = 1,
	WM_WAIT_PENDING = 2,
	WM_WAIT_STOPPED = 3,
	WM_WAIT_SYNC = 4, /* votes for a synchronization of shared state */
};

/* To agents that have voted, when the others have not for seconds, and when the text changes. To
 * all agents of a group: whose processes are stopped, by now. For people: nothing else follows from
 * it. */
struct wm_waits {
	uint32_t kind;          /* enum wm_wait_kind */
	uint32_t group;         /* with WM_WAIT_OP, WM_WAIT_STOPPED and WM_WAIT_SYNC; else 0 */
	uint64_t tag;           /* with WM_WAIT_OP; else 0 */
	uint32_t waited_ms;     /* since the first vote */
	char text[WM_TEXT_MAX]; /* who is awaited: "1 of 3 peers: train@host pid 7 (...)" */
};

/* Calls of these peers that wait and cannot be met by the others: they end, and the votes for them
 * are void. */
struct wm_unmet {
	uint32_t kind;  /* enum wm_wait_kind, not STOPPED */
	uint32_t group; /* with WM_WAIT_OP and WM_WAIT_SYNC; else 0 */
	uint64_t tag;   /* with WM_WAIT_OP; else 0 */
	uint32_t n_peers;
	struct cc_id *peers; /* 1 .. WM_PEERS_MAX */
	uint64_t generation; /* OP, SYNC: as in the votes that this answers */
	bool pending;        /* PENDING: the answer */
	uint32_t code;       /* OP, SYNC: a pcclResult_t for the callers; else 0 */
	char text[WM_TEXT_MAX];
};

#endif
