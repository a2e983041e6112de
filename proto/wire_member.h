/* SPDX-License-Identifier: MIT
 *
 * Messages between agents and master (wire_master.h) about connections, members, rounds and
 * snapshots.
 */
#ifndef WIRE_MEMBER_H
#define WIRE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "common/cc_bounds.h"
#include "common/cc_id.h"
#include "common/cc_rings.h"
#include "proto/wire_ballot.h"
#include "proto/wire_sync.h"
#include "proto/wire_view.h"

#define WM_VERSION_MIN  3u
#define WM_VERSION_MAX  3u
#define WM_FEATURES     (WM_ANY | WM_STANDSTILLS | WM_LEAVES)
#define WM_NAME_MAX     64   /* host or program name, with NUL */
#define WM_TEXT_MAX     384  /* reasons, with NUL */
#define WM_ADDRS_MAX    64   /* addresses of one agent */
#define WM_PEERS_MAX    1024 /* peers of one group on one host */
#define WM_RINGS_MAX    1024 /* groups present on one host */
#define WM_FAILURES_MAX 64
#define WM_POOL_MAX     64u /* streams of one link */
#define WM_OTHERS_MAX   256u
#define WM_SOURCES_MAX  16 /* sources of each kind in one wm_sync_start */
#define WM_HOSTS_MAX    65536
#define WM_LOST_MAX     256u /* lost peers that an agent remembers */
#define WM_TERM_MAX     (UINT64_C(1) << 40)
#define WM_RATES_MAX    1024u /* measurements that an agent remembers */
/* of one wm_measure: the longest time, the most connections to one agent, and the most agents */
#define WM_MEASURE_MS_MAX      10000u
#define WM_MEASURE_STREAMS_MAX 16u
#define WM_MEASURE_AGENTS_MAX  63u
/* outcomes that an agent remembers for each group, and attempts in one wm_op_query */
#define WM_OUTCOMES_MAX 64
/* outcomes of one wm_resume: WM_OUTCOMES_MAX of each group */
#define WM_RESUME_OUTCOMES_MAX 65536

/* A feature of a hello and its answer: the sender knows the field `any` of WM_WAITS_FOR. A master
 * without this feature would believe that the peer waits for a single operation, and would end
 * calls that can still meet. */
#define WM_ANY 1u
/* The sender knows WM_STANDSTILL. */
#define WM_STANDSTILLS 2u
/* The master answers WM_LEAVE with WM_LEFT. */
#define WM_LEAVES 4u

/* The first message of an agent on a connection. After this message and its answer both ends have a
 * seal (common/cc_seal.h). If its versions do not overlap with ours, only the versions are decoded.
 */
struct wm_knock {
	uint32_t version_min, version_max;
	struct cc_key share;
};

struct wm_knock_ack {
	struct cc_key share;
};

/* The second message of an agent. If its versions do not overlap with ours, only the versions are
 * decoded, and the other fields are zero. The receiver then refuses the agent and names the
 * versions of both sides. */
struct wm_hello {
	uint32_t version_min, version_max;
	uint64_t features;
	struct cc_id agent; /* for the life of the agent process */
	char name[WM_NAME_MAX];
	/* The operator has set addrs; else they are the addresses of the interfaces. */
	bool advertised;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX]; /* if a port is 0, the ports below apply */
	uint16_t port_p2p, port_shared_state, port_benchmark;
	/* The run of which the agent has state. Or the agent has no state, but a peer has given it
	 * the id of a run: then run_key is zero. Both are zero if the agent knows no run. */
	struct cc_id run, run_key;
	/* The highest term that the agent has seen in this run, at most WM_TERM_MAX; 0 without
	 * run_key. */
	uint64_t term;
	/* With run: none of the agent's peers is a member yet, so none can lose a membership. */
	bool newcomers;
	/* With run: all members of the agent have left, and it has sent a WM_LEAVE for each. */
	bool left;
	/* The field agent follows from `identity`. `proof` proves the identity to the master
	 * (cc_seal_prove). */
	struct cc_key identity, proof;
};

/* The addresses of the agent from now on. The fields have the same meaning as in its hello. */
struct wm_addresses {
	bool advertised;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	uint16_t port_p2p, port_shared_state, port_benchmark;
};

struct wm_hello_ack {
	uint32_t version;
	uint64_t features;
	struct cc_id run;      /* random, constant for the life of the run */
	uint32_t heartbeat_ms; /* interval of heartbeats */
	/* A longer silence means that the other side is dead; common/cc_detect.h has shorter
	 * bounds. */
	uint32_t timeout_ms;
	uint32_t segment_max; /* bytes, for cc_plan_init */
	/* >= 1; grows with every master of the run, so the master with the lower term is stale. */
	uint64_t term;
	/* `run` is the run of the hello. The agent must send its snapshot, which ends with RESUME.
	 */
	bool resume;
	struct cc_bounds bounds; /* complete after decoding; missing bounds have their defaults */
};

/* The last message of a master or an agent. Its sender closes the connection after it. */
struct wm_refuse {
	uint32_t version_min, version_max; /* versions of the refusing side */
	uint32_t code;                     /* a pcclResult_t */
	char text[WM_TEXT_MAX];
};

enum wm_join_phase {
	WM_JOIN_NEW = 0, /* wants to be accepted */
	/* Wants to be accepted, and is in the round that wm_resume.prepared names. */
	WM_JOIN_PREPARED = 1,
	/* Has been accepted, and comes back after its agent or the master died. */
	WM_JOIN_ACCEPTED = 2,
};

/* The message of pcclConnect. The peer becomes PEER_REGISTERED. The answer is a COMMIT whose ring
 * contains the peer, or a KICK. */
struct wm_join {
	struct cc_id peer; /* random, new for each pcclConnect */
	uint32_t group;
	uint32_t pool_size; /* 1 .. WM_POOL_MAX streams per link */
	uint32_t pid;
	char name[WM_NAME_MAX];
	/* Random, the secret of the peer; a connection that presents it speaks for this peer. */
	struct cc_id token;
	uint32_t phase; /* enum wm_join_phase */
	/* With ACCEPTED, else 0: the last numbers whose end the peer has seen. */
	uint64_t ballots[WIRE_BALLOTS];
	/* With ACCEPTED, else 0: the id of the last view that the peer's agent received, and the
	 * world size of the run in this view. */
	uint64_t view_id;
	uint32_t global;
	/* The number of the main thread of the peer. Peers of one agent with the same number,
	 * unless it is 0, share this thread. */
	uint64_t thread;
	bool left; /* its wm_leave follows, and was also sent to an earlier master */
};

enum wm_leave_kind {
	WM_LEAVE_CLEAN = 0,   /* the process has destroyed the communicator */
	WM_LEAVE_DIED = 1,    /* its process is gone */
	WM_LEAVE_STOPPED = 2, /* its process has been stopped for too long */
};

struct wm_leave {
	struct cc_id peer;
	uint32_t kind; /* enum wm_leave_kind */
	/* The reason, for the other peers; "": the peer did not need the run any more. */
	char text[WM_TEXT_MAX];
};

/* The vote of a peer. Ballots of each kind are numbered over the whole run, so that the master can
 * distinguish a repeated vote, whose answer did not arrive, from a new vote. */
struct wm_ballot_vote {
	struct cc_id peer;
	enum wire_ballot kind;
	/* The last number of this kind whose end the peer has seen. If it is less than the master's
	 * number, the vote has been answered, and the master repeats the answer. */
	uint64_t number;
};

/* A link broke, and the other end may not know it. */
struct wm_link_lost {
	struct cc_id agent;
	bool inbound; /* the link from that agent; else the link to that agent */
	char text[WM_TEXT_MAX];
	bool smaller; /* nothing was delivered, so the next link will have smaller segments */
};

struct wm_failure {
	struct cc_id agent; /* the agent that could not be reached */
	bool limit; /* one of the two agents has reached a limit of its system, which text names */
	char text[WM_TEXT_MAX];
};

struct wm_round_report {
	uint64_t round;
	uint32_t n_failures; /* 0: all links of this round are open */
	struct wm_failure *failures;
};

/* The outcome of an attempt. */
struct wm_outcome {
	uint64_t seq;
	uint32_t code; /* WIRE_SUCCESS after OP_DONE */
};

/* Several weighted rings of one group (common/cc_rings.h). n 0: there is only the ring of the
 * group.
 */
struct wm_plan {
	uint32_t n; /* rings: 0, or 2 .. CC_RINGS_MAX */
	uint16_t shares[CC_RINGS_MAX];
	uint32_t n_order; /* n * hosts */
	uint16_t *order;  /* positions in the ring of the group, ring after ring */
};

/* A ring in force. */
struct wm_ring_position {
	uint32_t group, hosts, pos;
	struct wm_plan plan;
};

/* The addresses of an agent, with ports, in the order in which they should be tried. */
struct wm_endpoint {
	struct cc_id agent;
	char name[WM_NAME_MAX];
	/* The agent reached the master over loopback. So try the address at which you reached the
	 * master, with the port of this endpoint, before addrs. */
	bool at_master;
	/* the port for p2p; in a wm_sync_source, for shared state; in a wm_measure, for benchmarks
	 */
	uint16_t port;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	/* With this key the receiver of the message proves to the agent of this endpoint that the
	 * master has told it to connect. Zero: there is no key. key_no is the number of the round
	 * or measurement for which the key is valid; in a wm_sync_source it is the seq of the
	 * attempt. */
	struct cc_key key;
	uint64_t key_no;
	uint32_t conn; /* used only within the master: the connection of this agent */
};

/* The ring of one group, as one agent sees it. */
struct wm_ring {
	uint32_t group;
	uint32_t hosts;              /* agents in the ring */
	uint32_t pos;                /* position of the receiving agent, 0 .. hosts - 1 */
	uint32_t pool_size;          /* streams of the link to next; equal on all hosts */
	struct wm_endpoint next;     /* undefined if hosts == 1 */
	struct cc_id prev;           /* id of the previous agent; zero if hosts == 1 */
	char prev_name[WM_NAME_MAX]; /* name of its host; "" if hosts == 1 */
	uint32_t n_members;          /* local peers in this group, in rank order */
	struct cc_id *members;
	bool reopen;       /* the link to next may be lost at the other end, so open a new link */
	bool prev_reopens; /* prev opens its link to the receiving agent again, too */
	/* The other agents after `next`, in ring order, up to `prev`: none, or hosts - 2. After the
	 * commit the agent also opens links to them, and reports them with WM_MESH. All rings of a
	 * round together have at most WM_OTHERS_MAX, so that the message fits into a frame. */
	uint32_t n_others;
	struct wm_endpoint *others;
	struct wm_plan plan; /* only with others */
	bool await_plan;     /* the round waits for the links of the plan, too */
};

/* Reports which links between the sending agent and the other agents of its ring in force are up.
 */
struct wm_mesh {
	uint32_t group;
	bool up;          /* the links to all other agents of the ring */
	bool plan_up;     /* the links to and from the neighbours in all rings of the plan */
	uint32_t reopens; /* WM_LINK_REOPEN messages that the agent got on this connection */
};

/* The link from the receiving agent to `agent` is lost at the end of `agent`. The receiving agent
 * opens a new link, and then sends WM_MESH. */
struct wm_link_reopen {
	struct cc_id agent;
};

/* Tells an agent to prepare rings. The agent opens the missing links and then sends a ROUND_REPORT.
 * The round replaces an unfinished round. */
struct wm_round {
	uint64_t round;
	/* The round admits newcomers after a topology vote; else it is a rewiring round. */
	bool accept;
	uint32_t peers; /* number of its members on all agents */
	uint32_t n_rings;
	struct wm_ring *rings; /* one for each group in which the receiving agent has members */
	/* The secret of the run, which the agent shows to the next master; or zero. */
	struct cc_id run_key;
};

struct wm_group_view {
	uint32_t group;
	uint32_t world_size; /* accepted peers */
	uint64_t generation; /* grows when the group loses an accepted peer */
	/* The revision that the group expects at the next synchronization; 0: it had no
	 * synchronization yet and accepts any revision. */
	uint64_t revision;
	/* The last loss, for the callers; "" in wm_resume, or if it is not known any more. */
	char loss[WM_TEXT_MAX];
	/* The first view that was sent with this generation. All calls that the loss ends see this
	 * view, however late they come. View id 0: if the generation is new to the receiver, the
	 * present view applies, otherwise the view that the receiver got with this generation
	 * before. */
	struct wire_view at_generation;
};

/* The numbers behind pcclGetAttribute. They are exact at the moment of sending. */
struct wm_view {
	uint32_t global;
	uint32_t groups;  /* distinct peer groups */
	uint32_t largest; /* peers in the largest group */
	uint64_t view_id; /* grows with every change of this view */
	uint32_t n;
	struct wm_group_view *own; /* one for each group of the receiving agent */
	/* Accepted peers that the run has lost, the last one at the end. From the master: those
	 * that it has not named to this agent yet; with lost_all all that it knows, in place of
	 * those that it has named before. In wm_resume: all that the agent knows. Peers may be
	 * missing that were lost before the view lost_floor was sent. */
	uint32_t n_lost; /* at most WM_LOST_MAX */
	struct cc_id *lost;
	bool lost_all;       /* from the master */
	uint64_t lost_floor; /* a view id; with lost_all, and in wm_resume */
};

/*
 * The last message of a snapshot. An agent with state of the run sends these messages after
 * HELLO_ACK, in this order: a JOIN for each peer (with a LEAVE after it if the peer has left
 * meanwhile), an OP_VOTE for each operation that has voted (with an OP_REPORT after it if the agent
 * has reported), a BALLOT_VOTE for each call that waits, and RESUME.
 */
struct wm_resume {
	uint64_t epoch, round; /* of the last COMMIT */
	uint64_t ring_epoch;   /* of the last COMMIT that had a ROUND; its rings are in force */
	uint64_t prepared; /* the ROUND that was reported as good and is not committed yet, or 0 */
	uint32_t prepared_peers; /* wm_round.peers of this round */
	/* The last ROUND if it was not reported as good, so it cannot have been committed; or 0. */
	uint64_t aborted_round;
	uint64_t last_seq;   /* the highest seq of any OP_START or OP_DONE.next */
	struct wm_view view; /* the last view that the agent received */
	uint32_t n_positions;
	struct wm_ring_position *positions; /* at most WM_RINGS_MAX, groups differ */
	uint32_t n_outcomes;
	/* The last WM_OUTCOMES_MAX of each group; within a group in the order of their ends. */
	struct wm_outcome *outcomes;
	uint64_t ballots[WIRE_BALLOTS]; /* the last numbers that the agent got */
};

/* Asks for the outcomes of attempts, for a peer whose agent died before it could report them. */
struct wm_op_query {
	struct cc_id peer;
	uint32_t n; /* 1 .. WM_OUTCOMES_MAX */
	uint64_t seqs[WM_OUTCOMES_MAX];
	/* The peer knows that the last n_succeeded of these attempts have succeeded. */
	uint32_t n_succeeded;
};

struct wm_heartbeat {
	bool awaited; /* only from the master: a peer of the run waits for votes of other peers */
};

/* Reports that the process of a peer is stopped (by a signal or a debugger), or runs again. The
 * master uses this to explain to the other peers why the votes of this peer are missing. */
struct wm_stopped {
	struct cc_id peer;
	bool is;
};

/* The answer to wm_op_query, with one entry for each attempt, in the same order. An attempt that is
 * not known any more counts as failed. */
struct wm_op_outcomes {
	struct cc_id peer;
	uint32_t n;
	struct wm_outcome v[WM_OUTCOMES_MAX];
};

/* Puts the rings of a round in force. With `accept` it answers the topology votes and the joins of
 * all members with success. A COMMIT without a ROUND of the same number keeps the rings, after a
 * vote that changes nothing. */
struct wm_commit {
	uint64_t round;
	uint64_t epoch; /* grows by at least 1 with every change of members or rings */
	bool accept;
	struct wm_view view;
	uint64_t ballots[WIRE_BALLOTS]; /* the numbers of the run, including this commit */
};

/* Ends a ballot for all peers of the agent that have voted. A COMMIT ends topology votes instead.
 */
struct wm_ballot_end {
	enum wire_ballot kind;
	uint64_t number; /* includes this ballot and its answer */
	/* WIRE_OPTIMIZE: if the answer is no, why the optimization failed. */
	char text[WM_TEXT_MAX];
};

struct wm_kick {
	struct cc_id peer;
	uint32_t code; /* a pcclResult_t for calls in flight and later ones */
	char text[WM_TEXT_MAX];
};

/* Confirms a wm_leave. The agent need not send this wm_leave to another master. */
struct wm_left {
	struct cc_id peer;
};

/* Asks an agent to check whether it can reach another agent. Rounds and operations do not wait for
 * the answer. */
struct wm_probe {
	uint64_t number; /* >= 1 */
	struct wm_endpoint to;
	/* The port for shared state of the same agent. If the port is 0, it is not probed. */
	struct wm_endpoint state;
};

struct wm_probed {
	uint64_t number; /* number of the wm_probe, >= 1 */
	bool ok;
	bool limit;             /* if not ok: see wm_failure.limit */
	char text[WM_TEXT_MAX]; /* if not ok: the reason */
};

/* Names the host of an agent beyond the next start of the agent, which then has another id. */
struct wm_host {
	char name[WM_NAME_MAX];
	/* The address from which the agent has connected to the master, with the port for p2p.
	 * Family 0: the host is not named. */
	struct cc_addr addr;
};

/*
 * Orders an agent to measure the rates to other agents, and to let other agents measure the rates
 * to this agent. docs/protocol/topology.md has the rules. An order replaces the order before it,
 * which is not answered any more. An order without `to` and `from` only stops the order before it.
 * An order with `to` is answered by WM_MEASURED.
 */
struct wm_measure {
	uint64_t number;  /* >= 1; grows, and is never used again by this master */
	uint32_t ms;      /* 1 .. WM_MEASURE_MS_MAX: the longest time under load */
	uint32_t streams; /* 1 .. WM_MEASURE_STREAMS_MAX: connections to each agent of `to` */
	/* Send for `ms` even if the rate is stable earlier: the load belongs to a measurement of
	 * a whole host. */
	bool hold;
	uint32_t n_to; /* at most WM_MEASURE_AGENTS_MAX */
	/* The agents to which the receiver sends, with their ports for benchmarks and keys for
	 * `number`. They differ from each other, and the receiver is not among them. */
	struct wm_endpoint *to;
	uint32_t n_from; /* at most WM_MEASURE_AGENTS_MAX */
	/* The agents that send to the receiver. They differ from each other. */
	struct cc_id *from;
	/* For the log: the number of this round of measurements, from 1, and of all rounds; or 0.
	 */
	uint32_t round, rounds;
	struct wm_host host; /* with one `to`: its host, to be remembered with its rate */
};

struct wm_measured_result {
	struct cc_id agent;
	bool ok;
	/* If ok: bit/s of payload that has arrived at the other agent, without the slow start of
	 * the connections. If the order has said `hold`: in the time in which all agents of the
	 * order together got most. Else 0. */
	uint64_t rate;
	/* If ok: bit/s of payload that has arrived there from all agents that the master lets
	 * measure, in its fastest part. Else 0. */
	uint64_t rate_of_all;
	uint32_t trip_us;    /* if ok: the shortest round trip before there was load; else 0 */
	uint32_t confidence; /* if ok: 0 .. 100 percent: how little the rate has varied; else 0 */
	bool limit;          /* if not ok: see wm_failure.limit */
	char text[WM_TEXT_MAX]; /* if not ok: the reason */
	/* If not ok: an operation, or a measurement of another run, uses the network of one of the
	 * two hosts. The link can be measured later. */
	bool busy;
};

struct wm_measured {
	uint64_t number; /* number of the wm_measure, >= 1 */
	uint32_t n;      /* 1 .. WM_MEASURE_AGENTS_MAX */
	/* One for each agent of wm_measure.to, in the same order. */
	struct wm_measured_result *results;
};

/* A measurement that an agent remembers. */
struct wm_rate {
	struct cc_id agent;
	uint64_t rate;       /* bit/s, as in wm_measured_result */
	uint32_t trip_us;    /* us, likewise */
	uint32_t age_s;      /* seconds since the measurement */
	uint32_t confidence; /* 0 .. 100, likewise; 0 in passive rates */
	struct wm_host host; /* of the agent, from the wm_measure */
};

/* What an agent has measured before it was connected to this master, over all its runs. Sent once
 * after WM_HELLO_ACK, unless there is nothing; in a snapshot it comes before WM_RESUME. */
struct wm_rates {
	uint32_t n; /* at most WM_RATES_MAX; the oldest first; the agents differ */
	struct wm_rate *rates;
	/* Caps: what the host can send and receive in all, in bit/s; 0: not known. The master
	 * sends them, without rates, to be remembered. */
	uint64_t out, in;
	uint32_t caps_age_s; /* seconds since the caps were measured */
	/* From an agent, at any time: the rates were not measured, but carried in operations of the
	 * run while the network was what bounded the links. There are no caps. */
	bool passive;
};

#endif
