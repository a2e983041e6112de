/* SPDX-License-Identifier: MIT
 *
 * Messages between agents and master (wire_master.h) about connections, members, rounds, and what a
 * next master is told.
 */
#ifndef WIRE_MEMBER_H
#define WIRE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_bounds.h"
#include "common/cc_id.h"
#include "proto/wire_sync.h"
#include "proto/wire_view.h"

#define WM_VERSION_MIN  2u
#define WM_VERSION_MAX  2u
#define WM_FEATURES     (WM_ANY | WM_STANDSTILLS | WM_LEAVES)
#define WM_NAME_MAX     64   /* host or program name, with NUL */
#define WM_TEXT_MAX     384  /* reasons, with NUL */
#define WM_ADDRS_MAX    64   /* addresses of one agent */
#define WM_PEERS_MAX    1024 /* peers of one group on one host */
#define WM_RINGS_MAX    1024 /* groups present on one host */
#define WM_FAILURES_MAX 64
#define WM_POOL_MAX     64 /* streams of one link */
#define WM_SOURCES_MAX  16 /* of each kind, in one wm_sync_start */
#define WM_HOSTS_MAX    65536
#define WM_TERM_MAX     (UINT64_C(1) << 40)
#define WM_OUTCOMES_MAX 64 /* ended operations remembered per group, and asked for at once */
/* of one wm_resume: WM_OUTCOMES_MAX of each group */
#define WM_RESUME_OUTCOMES_MAX 65536

/* Feature of a hello and its answer: it knows `any` of WM_WAITS_FOR. A master that does not would
 * take the peer for one that waits for a single operation, and end calls that can meet. */
#define WM_ANY 1u
/* It knows WM_STANDSTILL. */
#define WM_STANDSTILLS 2u
/* WM_LEFT answers WM_LEAVE. */
#define WM_LEAVES 4u

/* First message of an agent on a connection, and its answer: with them both ends have a seal
 * (common/cc_seal.h). When its versions do not overlap with ours, only they are decoded. */
struct wm_knock {
	uint32_t version_min, version_max;
	struct cc_key share;
};

struct wm_knock_ack {
	struct cc_key share;
};

/* The next message of an agent. When its versions do not overlap with ours, only they
 * are decoded and the rest is zero: the receiver refuses it and names both. */
struct wm_hello {
	uint32_t version_min, version_max;
	uint64_t features;
	struct cc_id agent; /* random, for the life of the agent process */
	char name[WM_NAME_MAX];
	bool advertised; /* addrs were set by the operator; otherwise they are interface addresses
			  */
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX]; /* port 0: the ports below count */
	uint16_t port_p2p, port_shared_state, port_benchmark;
	/* Of the run that the agent has state of, or that a peer has told it of (then run_key is
	 * zero); all zero when it knows none. */
	struct cc_id run, run_key;
	uint64_t term;  /* the highest that it has seen of this run's masters: at most WM_TERM_MAX;
			 * 0 without run_key */
	bool newcomers; /* with run: its peers are no members of it yet, and lose none */
	bool left;      /* with run: all its members have left, and each Leave was sent */
	/* agent is made from it, and the agent proves it, to the master's I/O: cc_seal_prove. */
	struct cc_key identity, proof;
};

/* Where the agent is reached from now on: as in its hello. */
struct wm_addresses {
	bool advertised;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	uint16_t port_p2p, port_shared_state, port_benchmark;
};

struct wm_hello_ack {
	uint32_t version;
	uint64_t features;
	struct cc_id run;      /* random, for the life of the run */
	uint32_t heartbeat_ms; /* send a heartbeat this often */
	uint32_t timeout_ms;   /* silence for this long is death, see common/cc_detect.h for less */
	uint32_t segment_max;  /* bytes, for cc_plan_init */
	uint64_t term; /* >= 1; grows with every master of the run: the lower one is stale */
	bool resume;   /* run is the one of the hello: say what you know of it, end with RESUME */
	struct cc_bounds bounds; /* complete when decoded: a master that knows none has the usual */
};

/* The master's (or agent's) last words; the connection is closed after it. */
struct wm_refuse {
	uint32_t version_min, version_max; /* of the refusing side */
	uint32_t code;                     /* a pcclResult_t */
	char text[WM_TEXT_MAX];
};

enum wm_join_phase {
	WM_JOIN_NEW = 0,      /* wants to be accepted */
	WM_JOIN_PREPARED = 1, /* the same, and is a member of the round of wm_resume.prepared */
	WM_JOIN_ACCEPTED = 2, /* has been accepted; comes back after its agent or the master died */
};

/* pcclConnect: a peer becomes PEER_REGISTERED. The answer is a COMMIT in whose ring it is a member,
 * or a KICK. */
struct wm_join {
	struct cc_id peer; /* random, new for each pcclConnect */
	uint32_t group;
	uint32_t pool_size; /* 1 .. WM_POOL_MAX streams per link */
	uint32_t pid;
	char name[WM_NAME_MAX];
	struct cc_id token; /* random, secret of the peer: who presents it again is the same peer */
	uint32_t phase;     /* enum wm_join_phase */
	/* ACCEPTED: votes of the run that the peer has seen the end of, the epoch of the last
	 * COMMIT that it was in, the ROUND of the last of these that had one, and the last ROUND
	 * that was reported as good with it. Else 0. */
	uint64_t topo_ballot, pending_ballot, epoch, ring_epoch, prepared;
	/* Likewise, as it was told last: the view id, and as of that all accepted
	 * peers, those of its group, and its generation. */
	uint64_t view_id, generation;
	uint32_t global, world_size;
	/* Its main thread: peers of one agent with the same number, not 0, have one between them.
	 */
	uint64_t thread;
	bool left; /* its wm_leave follows, and a master has been told of it before */
};

enum wm_leave_kind {
	WM_LEAVE_CLEAN = 0,   /* the communicator was destroyed */
	WM_LEAVE_DIED = 1,    /* its process is gone */
	WM_LEAVE_STOPPED = 2, /* its process has been stopped for too long */
};

struct wm_leave {
	struct cc_id peer;
	uint32_t kind;          /* enum wm_leave_kind */
	char text[WM_TEXT_MAX]; /* why, for the others; "": it was done with the run */
};

/* Votes of a kind are numbered over the whole run, so that one whose answer did not arrive can be
 * told from a new one. */
struct wm_peer { /* WM_TOPO_VOTE, WM_PENDING_VOTE */
	struct cc_id peer;
	uint64_t ballot; /* votes of this kind that the peer has seen the end of. Less than the
			  * master's number: this one has been answered, the answer comes again */
};

/* A link broke, and its other end may not know. */
struct wm_link_lost {
	struct cc_id agent;
	bool inbound; /* the link from there, else the one to there */
	char text[WM_TEXT_MAX];
	bool smaller; /* nothing got through, and the next one has smaller segments */
};

struct wm_failure {
	struct cc_id agent; /* could not be reached */
	bool limit;         /* of one of the two agents is reached, which text names */
	char text[WM_TEXT_MAX];
};

struct wm_round_report {
	uint64_t round;
	uint32_t n_failures; /* 0: all links of this round are up */
	struct wm_failure *failures;
};

/* One attempt that has ended. */
struct wm_outcome {
	uint64_t seq;
	uint32_t code; /* WIRE_SUCCESS: OP_DONE */
};

/* A ring in force. */
struct wm_ring_position {
	uint32_t group, hosts, pos;
};

/* How an agent can be reached. addrs are in the order to try, ports filled in. */
struct wm_endpoint {
	struct cc_id agent;
	char name[WM_NAME_MAX];
	bool at_master; /* it reached the master through loopback: try the address under which you
			 * reached the master, with this endpoint's port, before addrs */
	uint16_t port;  /* p2p; of a wm_sync_source: shared state */
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	/* Proves to that agent that the master sends this one, for the round or, of a
	 * wm_sync_source, the attempt key_no; or zero. */
	struct cc_key key;
	uint64_t key_no;
	uint32_t conn; /* within the master: its connection */
};

/* The ring of one group as seen by one agent. */
struct wm_ring {
	uint32_t group;
	uint32_t hosts;              /* agents in the ring */
	uint32_t pos;                /* 0 .. hosts - 1, of the receiving agent */
	uint32_t pool_size;          /* streams of the link to next: the same number on all hosts */
	struct wm_endpoint next;     /* meaningless when hosts == 1 */
	struct cc_id prev;           /* agent; zero when hosts == 1 */
	char prev_name[WM_NAME_MAX]; /* of its host; "" when hosts == 1 */
	uint32_t n_members;          /* local peers in this group, in rank order */
	struct cc_id *members;
	bool reopen;       /* the link to next may be lost at the other end: open another one */
	bool prev_reopens; /* so does prev with the link from there */
};

/* Prepare these rings: open missing links, then send a ROUND_REPORT. Replaces an unfinished round.
 */
struct wm_round {
	uint64_t round;
	bool accept;    /* newcomers are among the members (a topology vote), else a rewire */
	uint32_t peers; /* its members, of all agents: they are told when it is committed */
	uint32_t n_rings;
	struct wm_ring *rings; /* every group that the receiving agent has members in */
	struct cc_id run_key;  /* secret of the run, to be shown to its next master; or zero */
};

struct wm_group_view {
	uint32_t group;
	uint32_t world_size; /* accepted peers */
	uint64_t generation; /* changes whenever the group loses an accepted peer */
	uint64_t revision;   /* of shared state, that the next synchronization is expected to offer;
			      * 0: there was none in this run of the group, any will do */
	char loss[WM_TEXT_MAX]; /* the last loss, for the callers; "" in wm_resume, or if nobody
				 * remembers it */
	/* The view as it was first told with this generation: all calls that they end see it,
	 * however late they are. view id 0: this one, if the generation is new; else as told before
	 */
	struct wire_view at_generation;
	/* In wm_resume: round of the rings that the last attempt started on; 0: none has started.
	 */
	uint64_t begun;
};

/* Numbers behind pcclGetAttribute, exact at the moment of sending. */
struct wm_view {
	uint32_t global;
	uint32_t groups;  /* distinct peer groups */
	uint32_t largest; /* peers in the largest group */
	uint64_t view_id; /* grows with every change of what is told here */
	uint32_t n;
	struct wm_group_view *own; /* groups of the receiving agent */
};

/*
 * The end of what an agent says of a run that it has state of, in this order after HELLO_ACK: JOIN
 * for each peer (LEAVE after it for one that has left meanwhile), OP_VOTE for each operation that
 * has voted (OP_REPORT after it if it has reported), TOPO_VOTE and PENDING_VOTE for each call that
 * waits, RESUME.
 */
struct wm_resume {
	uint64_t epoch, round; /* of the last COMMIT */
	uint64_t ring_epoch;   /* of the last one that had a ROUND: its rings are in force */
	uint64_t prepared;     /* the ROUND that was reported good and is not committed yet, or 0 */
	uint32_t prepared_peers; /* its wm_round.peers */
	uint64_t aborted_round;  /* the last ROUND, if it was not reported good: it cannot have been
				  * committed; or 0 */
	uint64_t last_seq;       /* of the last OP_START or OP_DONE.next */
	struct wm_view view;     /* as told last */
	uint32_t n_positions;
	struct wm_ring_position *positions; /* at most WM_RINGS_MAX, groups differ */
	uint32_t n_outcomes;
	struct wm_outcome *outcomes; /* the last WM_OUTCOMES_MAX of each group, those of a group in
				      * the order of their ends */
	uint64_t topo_ballot, pending_ballot; /* as told last */
};

/* How did these attempts end? For a peer whose agent died before it could tell. */
struct wm_op_query {
	struct cc_id peer;
	uint32_t n; /* 1 .. WM_OUTCOMES_MAX */
	uint64_t seqs[WM_OUTCOMES_MAX];
	uint32_t n_succeeded; /* of them: the last ones, of which the peer was told so */
};

struct wm_heartbeat {
	bool awaited; /* of the master: somebody in the run waits for the votes of others */
};

/* The process of a peer is stopped (by a signal, a debugger), or runs again: so that the others are
 * told why it does not vote. */
struct wm_stopped {
	struct cc_id peer;
	bool is;
};

/* The answer: one entry for each that was asked for, in the same order. What nobody remembers has
 * failed. */
struct wm_op_outcomes {
	struct cc_id peer;
	uint32_t n;
	struct wm_outcome v[WM_OUTCOMES_MAX];
};

/* The rings of this round are in force. With accept, every local topology vote and every join of a
 * member is answered with success. A COMMIT without a preceding ROUND of the same number keeps the
 * rings (a vote with nothing to change). */
struct wm_commit {
	uint64_t round;
	uint64_t epoch; /* grows by at least 1 with every change of members or rings */
	bool accept;
	struct wm_view view;
	uint64_t topo_ballot,
		pending_ballot; /* votes of the run that have been answered, with this one */
};

/* Answers all local peers that wait in pcclArePeersPending. */
struct wm_pending_answer {
	uint64_t ballot; /* with this one; it tells the answer (wire_view.h) */
};

struct wm_kick {
	struct cc_id peer;
	uint32_t code; /* a pcclResult_t for calls in flight and later ones */
	char text[WM_TEXT_MAX];
};

/* The peer of a wm_leave is gone, and no other master need be told. */
struct wm_left {
	struct cc_id peer;
};

/* To an agent: can you reach that one? Nothing else waits for it. */
struct wm_probe {
	uint64_t number; /* >= 1 */
	struct wm_endpoint to;
	struct wm_endpoint state; /* the same agent's shared state; port 0: is not probed */
};

struct wm_probed {
	uint64_t number; /* of the wm_probe, >= 1 */
	bool ok;
	bool limit;             /* not ok: see wm_failure */
	char text[WM_TEXT_MAX]; /* why not */
};

#endif
