/* SPDX-License-Identifier: MIT
 *
 * The master's state machine: membership, votes, connection rounds, collective operations. The
 * rules are in docs/protocol/, the words in docs/glossary.md.
 *
 * Contract. Pure and deterministic: events in, actions out, the time passed in. One thread. The
 * caller
 * - passes every event of a connection between CCM_EV_OPEN and CCM_EV_CLOSED, in order, and numbers
 *   connections so that no two open ones share a number;
 * - passes CCM_EV_TICK at least every ccm_tick_ms();
 * - carries out actions in their order. A CCM_ACT_JOURNAL is on the disk before any later action,
 *   unless it has rates of links (WJ_RATES): nothing depends on these.
 * Exhausted memory ends the process (common/cc_must.h).
 * A message that the state of its sender does not allow is a protocol violation: the core kicks the
 * peer that the message names. If it names no peer, the core kicks all peers of the connection and
 * closes it.
 */
#ifndef CCM_H
#define CCM_H

#include "common/cc_rings.h"
#include "proto/wire_journal.h"
#include "proto/wire_master.h"

enum ccm_connection_phase { CCM_PEER_REGISTERED = 0, CCM_PEER_ACCEPTED = 1 };

/* The states of the protocol by their traditional names; ccm_state_name() spells them. */
enum ccm_connection_state {
	CCM_IDLE = 0,
	CCM_VOTE_ACCEPT_NEW_PEERS,
	CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS,
	CCM_CONNECTING_TO_PEERS,
	CCM_COLLECTIVE_COMMUNICATIONS_RUNNING,
	CCM_VOTE_OPTIMIZE_TOPOLOGY,
	CCM_OPTIMIZE_TOPOLOGY,
	CCM_OPTIMIZE_TOPOLOGY_FAILED,
};

enum ccm_collective_state {
	CCM_VOTE_INITIATE_COLLECTIVE_COMMS = 0,
	CCM_PERFORM_COLLECTIVE_COMMS,
	CCM_VOTE_COMPLETE_COLLECTIVE_COMMS,
};

/* How all-reduces of groups on 3 to CC_ROUTE_HOSTS_MAX hosts go from host to host. */
enum ccm_algorithm {
	CCM_ALGORITHM_RING = 0, /* agents open only the links of the ring */
	CCM_ALGORITHM_AUTO = 1, /* the master chooses for each operation (cc_route_choose) */
	CCM_ALGORITHM_DIRECT = 2,
	CCM_ALGORITHM_TREE = 3,
};

struct ccm_config {
	struct cc_id run, run_key; /* random bytes from the caller */
	uint32_t timeout_ms;       /* default 2800: the longest silence of an agent */
	uint32_t heartbeat_ms;     /* default 5/28 of timeout_ms */
	/* 0: the default. CC_BOUND_ROUND also limits the time from HELLO_ACK to RESUME, and the
	 * search for another ring before a member is evicted. */
	struct cc_bounds bounds;
	uint32_t evict_delay_ms; /* the time from the failure of a round to the kick that it causes;
				    default 0 */
	uint32_t recovery_ms;    /* default 3000: the time for which a takeover waits for agents */
	/* default 0: for this time after its start, the master defers the hellos of agents that
	 * know no run, because an agent that knows a run goes first. */
	uint32_t adopt_ms;
	uint32_t agent_lease_ms; /* default 5000: the time that a disconnected agent's peers have to
				    come back */
	uint32_t segment_max;    /* bytes */
	uint32_t max_peers;      /* further joins are refused; default 65536 */
	/* A takeover that learns no higher generation or attempt number uses this one. Divided by
	 * 4096, it is also the least term. It must be higher than any number that an earlier master
	 * has reached (for example the wall clock), and below 2^52. */
	uint64_t first_number;
	bool journal;       /* make JOURNAL actions */
	uint32_t log_level; /* LOG actions with a higher level are not made; 0: CCM_LOG_INFO */
	enum ccm_algorithm algorithm;
	/* Default 1000: the longest time of one measurement of a link. */
	uint32_t benchmark_ms;
};

/* An optimization measures links between at most so many hosts. With more hosts it changes
 * nothing. */
#define CCM_OPTIMIZE_HOSTS_MAX 256u
#define CCM_MEASURE_STREAMS    4u /* TCP streams of a measurement */

/* The problem of an optimization: the best rings for a group. All arrays are owned by the action.
 */
struct ccm_problem {
	uint64_t number; /* a newer problem of the same group replaces this one */
	uint32_t group;
	uint32_t n;              /* hosts, by their position in the ring in force */
	uint32_t max_rings;      /* 1 .. CC_RINGS_MAX */
	uint64_t *rates;         /* n * n, from row to column, in bit/s; 0: there is no link */
	uint32_t *trips_us;      /* n * n */
	uint64_t *out, *in;      /* n: what the hosts can carry in all, in bit/s; 0: not known */
	struct cc_rings current; /* n 0: only the ring in force */
};

/* A solution. Rates are those at which operands pass through the rings of a plan together, in
 * bit/s: the rate of the slowest edge if there is one ring. */
struct ccm_solution {
	uint64_t number;  /* of the problem */
	uint32_t n;       /* hosts */
	uint32_t n_rings; /* 0: no ring is possible, or, if searching, none is known yet */
	const char *text; /* n_rings is 0: another reason than links that are missing; or NULL */
	uint16_t shares[CC_RINGS_MAX];
	const uint16_t *order; /* n_rings * n positions; each ring has each position once */
	double rate, current;  /* of this plan, and of the plan in force */
	double bound;          /* no plan has a higher rate */
	bool searching;        /* other solutions of the problem may follow */
};

enum ccm_event_type {
	CCM_EV_OPEN = 1, /* a connection was accepted */
	CCM_EV_CLOSED,   /* the connection has ended; text says why */
	CCM_EV_MSG,      /* a decoded message; stays owned by the caller */
	CCM_EV_TICK,     /* time has passed; at least every ccm_tick_ms() */
	CCM_EV_RESET,   /* an operator ends the run, and the next run starts from nothing; text says
			   why */
	CCM_EV_MEASURE, /* an operator wants the next optimization to measure everything again */
	/* The run is over and the master ends; text says why. While members are disconnected,
	 * further steps refuse the agents that come back. */
	CCM_EV_END,
	CCM_EV_SOLVED, /* solution: the answer to CCM_ACT_SOLVE */
};

struct ccm_event {
	enum ccm_event_type type;
	uint32_t conn;       /* chosen by the caller, never 0, unique among open connections */
	struct cc_addr addr; /* OPEN: the remote address */
	bool local; /* OPEN: the agent is on the master's host, so no network lies between them */
	const struct wm_msg *msg;
	uint32_t path_ms; /* OPEN, and MSG if msg is a heartbeat: see cc_detect_path */
	const char *text;
	bool refused; /* CLOSED: the caller has refused the agent and has told it so */
	const struct ccm_solution *solution; /* SOLVED; stays owned by the caller */
};

/* After CLOSE the core has forgotten the connection and ignores its events. */
enum ccm_action_type {
	CCM_ACT_SEND = 1,
	CCM_ACT_CLOSE,
	CCM_ACT_LOG,
	CCM_ACT_JOURNAL, /* unless it has rates: must be on the disk before the next action */
	/* problem; answered by CCM_EV_SOLVED after about a second at most. Better solutions may
	 * follow, until the next problem of the group. */
	CCM_ACT_SOLVE,
};
enum ccm_log_level {
	CCM_LOG_ERR = 3,
	CCM_LOG_WARNING = 4,
	CCM_LOG_NOTICE = 5,
	CCM_LOG_INFO = 6,
	CCM_LOG_DEBUG = 7
};

struct ccm_action {
	enum ccm_action_type type;
	uint32_t conn;  /* CLOSE: the connection to close, after earlier messages have been sent */
	uint32_t level; /* LOG: enum ccm_log_level */
	bool stranger;  /* LOG: the line is about an agent without members */
	/* SEND: the receivers are n_conns entries of ccm_actions.conns, from first_conn on, in this
	 * order; n_conns may be 0. */
	uint32_t n_conns;
	size_t first_conn;
	union {
		struct wm_msg msg; /* SEND: the same for all receivers; only the union member that
				      its type names is valid */
		struct wj_record record;    /* JOURNAL */
		struct ccm_problem problem; /* SOLVE */
		char text[WM_TEXT_MAX];     /* CLOSE, LOG */
	};
};

/* Arrays that grow. ccm_actions_clear keeps their memory for the next step. */
struct ccm_actions {
	struct ccm_action *v;
	size_t n, cap;
	uint32_t *conns;
	size_t n_conns, cap_conns;
};

void ccm_actions_clear(struct ccm_actions *a); /* also frees the memory that messages own */
void ccm_actions_free(struct ccm_actions *a);
void ccm_problem_clear(struct ccm_problem *x); /* frees its arrays */

struct ccm;

struct ccm *ccm_new(const struct ccm_config *cfg);
void ccm_free(struct ccm *m);
/* Returns half a heartbeat, in milliseconds: the longest time between two ticks. */
uint32_t ccm_tick_ms(const struct ccm *m);
/* Takes one record from the journal of an earlier master. Call it before the first step, for each
 * record, in their order. The run of the last record continues. */
void ccm_restore(struct ccm *m, const struct wj_record *r);
/* Handles one event, and appends actions to *out. */
void ccm_step(struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out);
/* Checks every invariant of the state, for tests and the simulator. Returns NULL, or a static text
 * that names the broken invariant. */
const char *ccm_check(const struct ccm *m);

const char *ccm_phase_name(enum ccm_connection_phase p);
const char *ccm_state_name(enum ccm_connection_state s);
const char *ccm_collective_name(enum ccm_collective_state s);

/* The state of the core, for the admin socket and tests. */
struct ccm_status {
	struct cc_id run;
	uint64_t term, epoch, round, last_seq;
	bool recovering; /* the master takes the run over */
	uint64_t stale;  /* the term of the newer master that has taken the run over, or 0 */
	bool round_active, round_accepts;
	uint32_t agents, registered, accepted, groups;
	uint32_t disconnected; /* accepted peers whose agents are disconnected */
	uint32_t revisions;    /* groups that expect a revision, also those without members */
	/* Accepted peers that left cleanly, and accepted peers that were lost otherwise or
	 * kicked. */
	uint64_t leaves, lost_members;
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
};
void ccm_get_status(const struct ccm *m, struct ccm_status *ret);
/* Writes what the run waits for, or "" if it waits for nothing. */
void ccm_write_waiting(const struct ccm *m, uint64_t now_ns, char *text, size_t size);

struct ccm_peer_info {
	struct cc_id peer, agent;
	const char *name, *host; /* until the next ccm_step */
	struct cc_addr addr;
	uint32_t group, pid, ops;
	int rank; /* in its group's ring order; -1: in no ring (registered or disconnected) */
	bool disconnected;        /* its agent is disconnected */
	uint64_t disconnected_ns; /* for how long */
	enum ccm_connection_phase phase;
	enum ccm_connection_state state;
	uint64_t state_ns; /* time in this state */
};
/* Calls fn for each peer, by group and rank. */
void ccm_each_peer(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_peer_info *p), void *arg);

struct ccm_op_info {
	uint32_t group;
	bool is_sync; /* a synchronization of shared state; tag is 0 */
	uint64_t tag, seq, age_ns, bytes;
	uint64_t standstill_ns; /* the time since the last vote, start or report */
	enum ccm_collective_state state;
	struct wm_op_params params;
	uint32_t votes, world_size;
	char awaited[WM_TEXT_MAX]; /* some of the peers or hosts that it waits for, and why */
};
/* Calls fn for each operation; while recovering, for each operation that agents have reported so
 * far. */
void ccm_each_op(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg);

/* The plan of a group. Rates are those of struct ccm_solution, in bit/s; 0: not known. */
struct ccm_plan_info {
	uint32_t group, hosts;
	uint32_t rings;  /* in force */
	double rate;     /* predicted when it was chosen */
	double bound;    /* of the search so far: no plan has a higher rate; may be INFINITY */
	bool searching;  /* the search for a better plan goes on */
	double better;   /* of a better plan that waits for the next optimization */
	double achieved; /* by the last operation of at least CCM_NOTED_BYTES */
};
#define CCM_NOTED_BYTES (UINT64_C(1) << 20)
void ccm_each_plan(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_plan_info *p), void *arg);

/* The measurements of the optimization in progress. */
struct ccm_progress {
	uint32_t round, rounds; /* the present round, from 1 */
	uint64_t left_ns;       /* an estimate */
};
/* Returns false if no links are measured. */
bool ccm_get_progress(const struct ccm *m, uint64_t now_ns, struct ccm_progress *ret);

/* A link of a ring in force. */
struct ccm_link_info {
	uint32_t group, ring;
	double share; /* of the operand, 0 .. 1 */
	uint32_t pos; /* in the ring */
	const struct wm_hello *from, *to;
	bool known;    /* the fields below are valid */
	uint64_t rate; /* bit/s */
	uint32_t trip_us;
	uint64_t age_ns;
	bool bottleneck; /* no link of the ring is slower */
};
/* Calls fn for each link, by group and ring, in the order of the ring. */
void ccm_each_link(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_link_info *l), void *arg);

/* The rate and the round trip of a link. Its hosts may have left. */
struct ccm_rate_info {
	struct cc_id from, to;           /* agents */
	const char *from_name, *to_name; /* host names; "": not connected */
	uint64_t rate;                   /* bit/s */
	uint32_t trip_us;
	uint64_t age_ns;
	const char *source; /* static: "benchmark", "agent", "unreachable" or "operations" */
	/* 0 .. 100 percent; 0: the next optimization measures the link */
	uint32_t confidence;
};
void ccm_each_rate(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_rate_info *r), void *arg);

/* The highest rates at which a host can send to all others together, and receive from them. */
struct ccm_cap_info {
	struct cc_id host;
	const char *name;
	uint64_t out, in, age_ns; /* bit/s */
	const char *source;       /* as in ccm_rate_info */
	uint32_t confidence;      /* likewise; 0: the next optimization measures what hosts carry */
};
void ccm_each_cap(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_cap_info *c), void *arg);

/* The last election of shared state that this master has held in a group, and its result. */
enum ccm_sync_end {
	CCM_SYNC_NONE = 0, /* there was no election */
	CCM_SYNC_RUNNING,
	CCM_SYNC_DONE,
	CCM_SYNC_FAILED,
	CCM_SYNC_NOBODY, /* no candidate stood, so all peers were kicked */
};
const char *ccm_sync_end_name(enum ccm_sync_end e);

struct ccm_state_info {
	uint32_t group, peers; /* peers: accepted ones */
	uint64_t expected;     /* the next revision; 0: nothing was synchronized, any is accepted */
	enum ccm_sync_end end; /* NONE: all fields below are zero */
	uint64_t seq, age_ns;  /* age_ns: the time since the election */
	struct wm_sync_vote elected; /* RUNNING, DONE, FAILED: the elected candidate, with the
					group's revision */
	uint32_t holders, receivers, out;
	char text[WM_TEXT_MAX]; /* FAILED: the reason */
};
void ccm_each_state(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_state_info *s), void *arg);

enum ccm_stand {
	CCM_STAND_HOLDER = 0,
	CCM_STAND_OUTDATED, /* a holder at another revision */
	CCM_STAND_RECEIVER,
	CCM_STAND_OUT, /* kicked, or lost before the end */
};
const char *ccm_stand_name(enum ccm_stand s);

/* A peer in the last election of its group. It may have left since. */
struct ccm_stand_info {
	uint32_t group, pid;
	struct cc_id peer;
	const char *name, *host;
	struct wm_sync_vote candidate;
	enum ccm_stand stand;
	char text[WM_TEXT_MAX]; /* how it differed from the elected candidate, or why it was kicked
				   or lost; or "" */
};
/* Calls fn for each peer that took part in the last election of its group, by group, in ring
 * order. */
void ccm_each_stand(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_stand_info *s), void *arg);

#endif
