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
 * - carries out actions in their order. A CCM_ACT_JOURNAL is on the disk before any later action;
 * - ends the process after CC_ERR_NOMEM.
 * A message that the state of its sender does not allow is a protocol violation: the core kicks the
 * peer, or the connection if no peer is named.
 */
#ifndef CCM_H
#define CCM_H

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
};

enum ccm_collective_state {
	CCM_VOTE_INITIATE_COLLECTIVE_COMMS = 0,
	CCM_PERFORM_COLLECTIVE_COMMS,
	CCM_VOTE_COMPLETE_COLLECTIVE_COMMS,
};

struct ccm_config {
	struct cc_id run, run_key; /* random bytes from the caller */
	uint32_t timeout_ms;       /* default 2800: the longest silence of an agent */
	uint32_t heartbeat_ms;     /* default 5/28 of timeout_ms */
	struct cc_bounds bounds; /* 0: the usual ones; CC_BOUND_ROUND also from HELLO_ACK to RESUME,
				  * and for trying orders of a ring before somebody has to go */
	uint32_t evict_delay_ms; /* from the failure of a round to the kick that it causes; default
				    0 */
	uint32_t recovery_ms;    /* default 3000: for the agents of a run that is taken over */
	uint32_t adopt_ms; /* default 0: this long, at first, hellos of agents that know no run
			    * wait for those that know one */
	uint32_t agent_lease_ms; /* default 5000: for the peers of an agent that is gone */
	uint32_t segment_max;    /* bytes */
	uint32_t max_peers;      /* joins beyond are refused; default 65536 */
	uint64_t first_number;   /* generations and attempts of a run that nobody remembers are
				  * counted   from here, terms from a 4096th of it: more than any
				  * earlier master   has counted (the wall clock, say); below 2^52 */
	bool journal;            /* make JOURNAL actions */
	uint32_t log_level;      /* LOG actions above it are not made; 0: CCM_LOG_INFO */
};

enum ccm_event_type {
	CCM_EV_OPEN = 1, /* a connection was accepted */
	CCM_EV_CLOSED,   /* it is gone; text says why */
	CCM_EV_MSG,      /* a decoded message; stays owned by the caller */
	CCM_EV_TICK,     /* time has passed; at least every ccm_tick_ms() */
	CCM_EV_RESET,    /* an operator: the run is over, the next one begins anew; text says why */
	CCM_EV_END,      /* the run is over, the master ends; text says why. While members are
			    disconnected, further steps tell them */
};

struct ccm_event {
	enum ccm_event_type type;
	uint32_t conn;       /* chosen by the caller, never 0, unique among open connections */
	struct cc_addr addr; /* OPEN: where the connection comes from */
	bool local;          /* OPEN: from this host; no cable can fail */
	const struct wm_msg *msg;
	uint32_t path_ms; /* OPEN, and MSG, a heartbeat: see cc_detect_path */
	const char *text;
	bool refused; /* CLOSED: by the caller, who has told the agent that it is out */
};

/* After CLOSE the core has forgotten the connection: events of it are ignored. */
enum ccm_action_type {
	CCM_ACT_SEND = 1,
	CCM_ACT_CLOSE,
	CCM_ACT_LOG,
	CCM_ACT_JOURNAL, /* to be on the disk before what follows is carried out */
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
	uint32_t conn;  /* CLOSE (after what was sent has gone out) */
	uint32_t level; /* LOG: enum ccm_log_level */
	/* SEND: to ccm_actions.conns[first_conn], and so on, in this order; n_conns may be 0. */
	uint32_t n_conns;
	size_t first_conn;
	union {
		struct wm_msg msg;       /* SEND: the same for all; the type's member only */
		struct wj_record record; /* JOURNAL */
		char text[WM_TEXT_MAX];  /* CLOSE, LOG */
	};
};

/* Growing arrays, reused between steps: ccm_actions_clear keeps the memory. */
struct ccm_actions {
	struct ccm_action *v;
	size_t n, cap;
	uint32_t *conns;
	size_t n_conns, cap_conns;
};

void ccm_actions_clear(struct ccm_actions *a); /* frees what the messages own */
void ccm_actions_free(struct ccm_actions *a);

struct ccm;

/* NULL when memory is exhausted. */
struct ccm *ccm_new(const struct ccm_config *cfg);
void ccm_free(struct ccm *m);
/* Half a heartbeat: ticks should come so often. */
uint32_t ccm_tick_ms(const struct ccm *m);
/* Before the first step: a record of the journal of an earlier master, in their order. The run of
 * the last one goes on. 0 or CC_ERR_NOMEM. */
int ccm_restore(struct ccm *m, const struct wj_record *r);
/* Appends to *out. 0, or CC_ERR_NOMEM after which the process should end. */
int ccm_step(struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out);
/* Checks every invariant of the state; NULL or a static text naming the broken one (tests,
 * simulator). */
const char *ccm_check(const struct ccm *m);

const char *ccm_phase_name(enum ccm_connection_phase p);
const char *ccm_state_name(enum ccm_connection_state s);
const char *ccm_collective_name(enum ccm_collective_state s);

/* Looking inside, for the admin socket and tests. */
struct ccm_status {
	struct cc_id run;
	uint64_t term, epoch, round, last_seq;
	bool recovering; /* taking the run over from another master */
	uint64_t stale;  /* the term of a master that has taken over the run, or 0 */
	bool round_active, round_accepts;
	uint32_t agents, registered, accepted, groups;
	uint32_t disconnected; /* of the accepted: their agents are gone */
	uint32_t revisions;    /* groups that expect one, also those without members */
	/* Accepted peers that left cleanly; those that are gone otherwise, the kicked ones too. */
	uint64_t leaves, lost_members;
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	char waiting[WM_TEXT_MAX]; /* what the run waits for, "" when nothing */
};
void ccm_get_status(const struct ccm *m, uint64_t now_ns, struct ccm_status *ret);

struct ccm_peer_info {
	struct cc_id peer, agent;
	char name[WM_NAME_MAX], host[WM_NAME_MAX];
	struct cc_addr addr;
	uint32_t group, pid, ops;
	int rank; /* in its group's ring order; -1: in no ring (registered, or to come back) */
	bool disconnected;        /* its agent is gone */
	uint64_t disconnected_ns; /* since when */
	enum ccm_connection_phase phase;
	enum ccm_connection_state state;
	uint64_t state_ns; /* time in this state */
};
/* Calls fn for each peer, by group and rank. */
void ccm_each_peer(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_peer_info *p), void *arg);

struct ccm_op_info {
	uint32_t group;
	bool is_sync; /* of shared state; tag is 0 */
	uint64_t tag, seq, age_ns, bytes;
	uint64_t standstill_ns; /* since the last vote, start or report */
	enum ccm_collective_state state;
	struct wm_op_params params;
	uint32_t votes, world_size;
	char awaited[WM_TEXT_MAX]; /* names of (some of) those who are awaited, and why */
};
/* While recovering: what agents have told so far. */
void ccm_each_op(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_op_info *o), void *arg);

/* Shared state: the last election of a group (by this master), and what came of it. */
enum ccm_sync_end {
	CCM_SYNC_NONE = 0, /* there was none */
	CCM_SYNC_RUNNING,
	CCM_SYNC_DONE,
	CCM_SYNC_FAILED,
	CCM_SYNC_NOBODY, /* stood: all were kicked */
};
const char *ccm_sync_end_name(enum ccm_sync_end e);

struct ccm_state_info {
	uint32_t group, peers;       /* peers: accepted */
	uint64_t expected;           /* revision; 0: nothing was synchronized, any will do */
	enum ccm_sync_end end;       /* NONE: all below is zero */
	uint64_t seq, age_ns;        /* age: since the election */
	struct wm_sync_vote elected; /* RUNNING, DONE, FAILED: what, and the group's revision */
	uint32_t holders, receivers, out;
	char text[WM_TEXT_MAX]; /* FAILED: why */
};
void ccm_each_state(const struct ccm *m, uint64_t now_ns,
	void (*fn)(void *arg, const struct ccm_state_info *s), void *arg);

enum ccm_stand {
	CCM_STAND_HOLDER = 0,
	CCM_STAND_OUTDATED, /* a holder at another revision */
	CCM_STAND_RECEIVER,
	CCM_STAND_OUT, /* kicked; or lost before the end */
};
const char *ccm_stand_name(enum ccm_stand s);

/* A peer at the last election of its group; it need not be there any more. */
struct ccm_stand_info {
	uint32_t group, pid;
	struct cc_id peer;
	const char *name, *host;
	struct wm_sync_vote candidate;
	enum ccm_stand stand;
	char text[WM_TEXT_MAX]; /* in what it deviated, or why it was put out; or "" */
};
/* By group, in ring order. */
void ccm_each_stand(
	const struct ccm *m, void (*fn)(void *arg, const struct ccm_stand_info *s), void *arg);

#endif
