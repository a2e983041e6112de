/* SPDX-License-Identifier: MIT
 *
 * The agent core's structures of links, rounds, runs and communicators, and of the agent as a
 * whole.
 */
#ifndef AGT_RUN_H
#define AGT_RUN_H

#include "pcclagentd/core/agt_rates.h"
#include "pcclagentd/core/agt_types.h"

/* A link from another agent that broke at this end. The other agent may not know that it broke. A
 * new link will replace it. */
struct agt_lost_link {
	struct cc_id peer;
	/* when a commit left it in the list, although the other agent was no neighbour any more; 0:
	 * none has */
	uint64_t spared_ns;
	struct agt_lost_link *next;
};

struct agt_link {
	struct cc_id peer;
	struct wm_endpoint endpoint;
	uint32_t n_streams;
	enum agt_link_state state;
	bool silent;            /* UP: nothing was received from the other host for a while */
	bool limit;             /* FAILED: see limit in struct wm_failure */
	char text[WM_TEXT_MAX]; /* FAILED: why it failed */
	UT_hash_handle hh;
};

struct agt_round {
	bool active, reported, ok;
	bool accept;
	uint64_t number;
	uint32_t peers; /* peers in the round, on all hosts */
	uint32_t segment_max;
	uint32_t n_rings;
	struct wm_ring *rings; /* each ring owns its members */
};

/* A peer that has left; no master has confirmed the leave yet. */
struct agt_ghost {
	/* join.left: the leave was sent to a master, perhaps to a master that is gone now */
	struct wm_join join;
	struct wm_leave leave;
	uint32_t comm; /* the communicator whose process waits until the master knows, or 0 */
	uint64_t since_ns;
	struct agt_ghost *next;
};

/* The outcomes of a group's last attempts, in the order of their ends. */
struct agt_history {
	uint32_t group;
	uint32_t n;
	uint64_t highest; /* the highest seq of all attempts of the group */
	struct wm_outcome v[WM_OUTCOMES_MAX];
	UT_hash_handle hh;
};

/* The peers for which a late vote waits, according to the master. */
struct agt_awaited {
	uint64_t since_ns; /* 0: the vote is not late */
	char text[WM_TEXT_MAX];
};

/* The master's order of a measurement. */
struct agt_measure {
	uint64_t number; /* 0: there is none */
	bool hold;       /* as in the order */
	uint32_t round, rounds;
	/* The agents for which the master still expects results; none after the answer. */
	uint32_t n_to;
	struct cc_id *to;    /* owned */
	struct wm_host host; /* of the only agent of `to` */
};

struct agt_run {
	uint32_t reopens; /* WM_LINK_REOPEN messages of this connection to the master */
	uint32_t id;
	struct cc_addr addr;
	uint32_t n_aliases;
	struct cc_addr aliases[AGT_ALIASES_MAX]; /* other addresses of the same master */
	struct cc_addr moved; /* a new address that was set for this run only, or none */
	/* The address at which the master was reached last, perhaps by another agent; or none. */
	struct cc_addr reached;
	struct cc_addr at; /* where the master is, as published last; or none */
	bool hinted;       /* `reached` was given by a process of hint_uid */
	uint32_t hint_uid;
	bool master_set; /* the latest AGT_EV_SET_MASTER applied to this run */
	/* The value of agt.addresses when the master was told the agent's addresses. */
	uint32_t addresses;
	/* The address where the master is sought, or was sought last. */
	struct cc_addr connect_addr;
	uint32_t n_connects; /* addresses tried since the master was reached last */
	bool taken;          /* the connection of this attempt was accepted */
	bool foreign;        /* the program that answered speaks another protocol */
	/* consecutive attempts that were refused; those without an answer do not count */
	uint32_t n_refused;
	uint64_t sought_ns; /* while connecting: since when no master has answered */
	bool connecting;    /* waits for the answer to MASTER_OPEN or to WM_HELLO */
	/* Attempts since the last success that were neither accepted nor refused. */
	uint32_t n_silent;
	uint32_t path_ms;    /* how much longer an answer may take, from MASTER_TAKEN */
	uint64_t connect_ns; /* when this attempt started, or when the next one is due */
	uint32_t backoff_ms;
	uint64_t short_ns;     /* since when agent or master lack a resource, or 0 */
	uint64_t orphan_ns;    /* since when the run has no master */
	uint64_t lease_ns;     /* when the run's lease started */
	uint32_t n_moments;    /* masters in a row that were lost soon after they came */
	char why[WM_TEXT_MAX]; /* why the last master was lost */
	/* The last master lives and has redirected this agent; the agent may come back to it. */
	bool redirected;
	enum agt_run_state state;
	uint64_t since_ns, spoke_ns;
	struct cc_detect life; /* watches the master, from its greeting on */
	bool awaited; /* a peer of the run is awaited, according to the master's last heartbeat */
	struct cc_id want_run; /* the run that attaching peers name; zero: any */
	struct cc_id run_id, run_key;
	uint64_t term; /* the term of its last master */
	bool resumed;  /* a later master has taken the run over */
	uint32_t heartbeat_ms, timeout_ms;
	uint64_t features;       /* features that agent and master share */
	uint32_t segment_wanted; /* the largest segment that its master wants */
	/* largest segment of the rings in force: all hosts must cut an operand alike */
	uint32_t segment_max;
	struct agt_comm *comms;
	uint32_t n_comms;
	struct agt_group *groups;
	struct agt_link *links;
	/* Broken inbound links that neighbours may believe to be up. */
	struct agt_lost_link *lost_links;
	struct agt_round round;
	struct wm_view view; /* without `own`, which is kept in groups, and `lost` */
	/* The accepted peers that the run has lost, the last one at the end, and the view that
	 * named each. */
	struct cc_id lost[WM_LOST_MAX];
	uint64_t lost_views[WM_LOST_MAX];
	uint32_t n_lost;
	uint64_t lost_floor; /* peers that were lost before this view may be missing in `lost` */
	uint64_t epoch, last_seq;
	uint64_t committed; /* number of the last committed round */
	uint64_t ring_epoch;
	/* The round that was not prepared yet when the run lost its master; or 0. */
	uint64_t aborted_round;
	uint64_t ballots[WIRE_BALLOTS]; /* the last ballots that have ended */
	struct agt_awaited late[WIRE_BALLOTS];
	/* Why the last optimization has failed, or ""; "" also if this agent has missed its end. */
	char not_optimized[WM_TEXT_MAX];
	struct agt_measure measure;
	struct agt_ghost *ghosts;
	uint32_t n_ghosts;
	struct agt_history *history;
	struct agt_op *ops;
	struct agt_op *collecting, *active; /* by key */
	struct agt_op *started;             /* by seq */
	/* When the next operation in doubt is to be looked at; 0: none is in doubt. */
	uint64_t doubt_ns;
	bool check_votes; /* the local members changed, so collecting operations may be complete */
	bool check_links; /* some links may not be needed any more */
	UT_hash_handle hh;
};

/* An attach that waits for the master's answers. */
struct agt_attach {
	struct cc_id run;
	bool known; /* the outcomes are known */
	/* According to the peer's request, the last n_succeeded of the n attempts in seqs have
	 * succeeded. */
	uint32_t n, n_succeeded;
	uint64_t seqs[WL_SEQS_MAX];
	uint64_t done; /* bit i: seqs[i] succeeded */
};

struct agt_comm {
	uint32_t id;
	struct agt_session *session;
	struct cc_addr master;
	/* Another address of the master, given by the process, until the peer is accepted; or none.
	 */
	struct cc_addr at;
	uint32_t group, pool_size;
	enum agt_comm_state state;
	struct cc_id peer, token;
	uint32_t rank;       /* position among the local members of its ring */
	struct agt_run *run; /* JOINING, REGISTERED, ACCEPTED */
	bool opened;         /* it has a queue pair */
	bool joined;         /* WM_JOIN was sent to this master, or to the last one */
	bool counted;        /* in grp->accepted */
	bool until_left;     /* LEAVING: its destroy is to wait for the master's WM_LEFT */
	bool untold;         /* LEAVING: its destroy waits for WM_LEFT */
	struct agt_group *grp;
	uint32_t wait;         /* enum wl_type of the request that waits, or 0 */
	enum wire_ballot vote; /* with wait == WL_VOTE */
	uint32_t wait_req;
	uint64_t wait_ns;
	struct agt_attach *attach;      /* with wait == WL_COMM_ATTACH */
	uint64_t ballots[WIRE_BALLOTS]; /* the last ballots whose end this peer knows */
	/* From its previous agent: the id of the last view, and the size of the run in this view.
	 */
	uint64_t view_id;
	uint32_t global;
	struct agt_end_status lost;
	struct agt_attrs attrs;    /* as published last */
	struct agt_record *record; /* the record of its last synchronization, or NULL */
	struct agt_op *slots[SHM_SLOTS];
	uint32_t n_ops;
	uint32_t n_waited; /* operations for which its process waits without doing anything else */
	/* Its process waits until any of its operations ends, and does nothing else. */
	bool waits_any;
	uint32_t thread; /* id of its main thread, given by the process; 0: not known */
	UT_hash_handle hh;
	struct agt_comm *prev, *next;     /* in session->comms */
	struct agt_comm *prev_r, *next_r; /* in run->comms */
};

struct agt {
	struct agt_config cfg;
	struct agt_session *sessions;
	struct agt_comm *comms;
	struct agt_run *runs;
	uint32_t last_comm, last_run;
	uint32_t n_stopped;   /* sessions whose process is stopped */
	uint32_t n_attaching; /* communicators that attach */
	uint64_t ops_done, ops_failed, refused;
	uint32_t addresses; /* how often the agent's addresses have changed */
	uint32_t n_masters; /* entries of `masters` */
	struct agt_moved {
		struct cc_addr from, to;
	} masters[AGT_MASTERS_MAX];
	/* The highest terms of the runs that this agent took part in. They outlive the runs, so
	 * that a stale master does not get a run back after the run's last peer here has left. */
	struct agt_fence {
		struct cc_id run;
		uint64_t term;
	} fences[AGT_FENCES];
	uint32_t last_fence;
	struct agt_rates rates; /* measured to other agents; they outlive the runs */
	uint64_t tick_ns;       /* when the last tick came */
	uint64_t woke_ns;       /* when this process last ran again after it had stood still */
	struct agt_op *fresh, *older; /* operations that wait for local members, oldest first */
	uint64_t lines_ns;            /* since when n_lines counts */
	uint32_t n_lines;             /* lines in the log that name awaited peers */
	const char *broken;           /* a forbidden transition that was made, for agt_check */
	bool ended;                   /* AGT_EV_END */
	/* Only during a step: */
	uint64_t now;
	struct agt_actions *out;
	struct agt_action unsent; /* takes a message while there is no master to receive it */
};

#endif
