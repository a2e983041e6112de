/* SPDX-License-Identifier: MIT
 *
 * The agent core's structures of runs, communicators, and the whole.
 */
#ifndef AGT_RUN_H
#define AGT_RUN_H

#include "pcclagentd/core/agt_types.h"

/* The link from this agent broke, and it may not know. Another one takes its place. */
struct agt_lost_link {
	struct cc_id peer;
	bool spared; /* by a commit after which the agent was no neighbour */
	struct agt_lost_link *next;
};

struct agt_link {
	struct cc_id peer;
	struct wm_endpoint endpoint;
	uint32_t n_streams;
	enum agt_link_state state;
	bool silent;            /* UP: nothing has been heard of the other host for a while */
	bool limit;             /* FAILED: see wm_failure */
	char text[WM_TEXT_MAX]; /* and why */
	bool unhashed;
	UT_hash_handle hh;
};

struct agt_round {
	bool active, reported, ok;
	bool accept;
	uint64_t number;
	uint32_t peers; /* that are in it, everywhere */
	uint32_t segment_max;
	uint32_t n_rings;
	struct wm_ring *rings; /* own their members */
};

/* A peer that has left; no master has confirmed the leave yet. */
struct agt_ghost {
	struct wm_join join; /* left: a master has been told of it, maybe one that is gone */
	struct wm_leave leave;
	uint32_t comm; /* whose process waits until the master knows, or 0 */
	uint64_t since_ns;
	struct agt_ghost *next;
};

/* How the last attempts of a group ended, in that order. */
struct agt_history {
	uint32_t group;
	uint32_t n;
	uint64_t highest; /* of all that there were */
	struct wm_outcome v[WM_OUTCOMES_MAX];
	bool unhashed;
	UT_hash_handle hh;
};

/* What the master says of a vote that is late. */
struct agt_awaited {
	uint64_t since_ns; /* 0: nothing */
	char text[WM_TEXT_MAX];
};

struct agt_run {
	uint32_t id;
	struct cc_addr addr;
	uint32_t n_aliases;
	struct cc_addr aliases[AGT_ALIASES_MAX]; /* other addresses of the same master */
	struct cc_addr moved;   /* said of this run alone: it is to be found there; or none */
	struct cc_addr reached; /* where it was last, maybe for another agent; or none */
	struct cc_addr at;      /* the last word of where it is, as published; or none */
	bool hinted;            /* `reached` is what a process of hint_uid said */
	uint32_t hint_uid;
	bool master_set;             /* the latest AGT_EV_SET_MASTER concerned it */
	uint32_t addresses;          /* the master knows agt.addresses as of this number */
	struct cc_addr connect_addr; /* where it is sought now, or was last */
	uint32_t n_connects;         /* places tried since it was reached last */
	bool taken;                  /* the connection of this attempt */
	bool foreign;                /* what has answered there speaks another protocol */
	uint32_t n_refused;          /* of them, one after the other: not left without any answer */
	uint64_t sought_ns;          /* since when, while connecting, nobody takes the connection */
	bool connecting;             /* no answer yet: to MASTER_OPEN, or to HELLO */
	uint32_t n_silent;           /* attempts since then that nobody took, nor refused */
	uint32_t path_ms;            /* how much longer an answer may take: see MASTER_TAKEN */
	uint64_t connect_ns;         /* when that attempt began; else when the next one is due */
	uint32_t backoff_ms;
	uint64_t short_ns;     /* since when agent or master lack what it takes, or 0 */
	uint64_t orphan_ns;    /* since when it has no master */
	uint64_t lease_ns;     /* from when its time runs */
	uint32_t n_moments;    /* masters in a row that were there for a moment only */
	char why[WM_TEXT_MAX]; /* and why */
	bool redirected; /* it lives, and has sent us to look for another one: we may come back */
	enum agt_run_state state;
	uint64_t since_ns, spoke_ns;
	struct cc_detect life; /* the master's; from its greeting on */
	bool awaited;          /* somebody is, as its last heartbeat said */
	struct cc_id want_run; /* that peers which attach name; zero: any */
	struct cc_id run_id, run_key;
	uint64_t term; /* of its last master */
	bool resumed;  /* that one is not its first */
	uint32_t heartbeat_ms, timeout_ms;
	uint64_t features;       /* that its master has too */
	uint32_t segment_wanted; /* by its master, and */
	uint32_t segment_max; /* of the rings in force: hosts that start an attempt cut it alike */
	struct agt_comm *comms;
	uint32_t n_comms;
	struct agt_group *groups;
	struct agt_link *links;
	struct agt_lost_link *lost_links; /* inbound ones that neighbours may think are up */
	struct agt_round round;
	struct wm_view view; /* own is not kept here but in groups */
	uint64_t epoch, last_seq;
	uint64_t committed;     /* number of the last round in force */
	uint64_t ring_epoch;    /* of the rings in force */
	uint64_t aborted_round; /* orphaned in this round, before it was ready; or 0 */
	uint64_t topo_ballot, pending_ballot; /* votes that have been answered */
	struct agt_awaited topo_awaited, pending_awaited;
	struct agt_ghost *ghosts;
	uint32_t n_ghosts;
	struct agt_history *history;
	struct agt_op *ops;
	struct agt_op *collecting, *active; /* by key */
	struct agt_op *started;             /* by seq */
	uint64_t doubt_ns; /* when an operation's doubt may be over; 0: none has any */
	bool check_votes;  /* a local membership changed: collecting operations may be complete */
	bool check_links;  /* some links may be out of use */
	bool unhashed;
	UT_hash_handle hh;
};

/* What a communicator that is to be attached waits for. */
struct agt_attach {
	struct cc_id run;
	bool known;              /* the outcomes are */
	uint32_t n, n_succeeded; /* these last ones have, says the peer */
	uint64_t seqs[WL_SEQS_MAX];
	uint64_t done; /* bit i: seqs[i] succeeded */
};

struct agt_comm {
	uint32_t id;
	struct agt_session *session;
	struct cc_addr master;
	struct cc_addr at; /* elsewhere, said by its process; until it is accepted; or none */
	uint32_t group, pool_size;
	enum agt_comm_state state;
	struct cc_id peer, token;
	uint32_t rank;       /* among the local members of its ring */
	struct agt_run *run; /* JOINING, REGISTERED, ACCEPTED */
	bool opened;         /* it has a queue pair */
	bool joined;         /* the master knows the peer, or the last one did */
	bool counted;        /* in grp->accepted */
	bool until_left;     /* LEAVING: its destroy asks to wait for the master's WM_LEFT, and */
	bool untold;         /* does wait */
	struct agt_group *grp;
	uint32_t wait; /* enum wl_type of the request that waits, 0: none */
	uint32_t wait_req;
	uint64_t wait_ns;
	struct agt_attach *attach;            /* with wait == WL_COMM_ATTACH */
	uint64_t topo_ballot, pending_ballot; /* votes of the run that this peer knows the end of */
	uint64_t epoch, ring_epoch;           /* from its agent before; 0: none */
	uint64_t prepared; /* the last round with it that was reported as good, also by that one */
	uint64_t view_id, generation; /* of the view and of its group, from its agent before, */
	uint32_t global, world_size;  /* and their sizes */
	struct agt_end_status lost;
	struct agt_attrs attrs;    /* as published last */
	struct agt_record *record; /* of its last synchronization, or NULL */
	struct agt_op *slots[SHM_SLOTS];
	uint32_t n_ops;
	uint32_t n_waited; /* of them: its process does nothing until they end */
	bool waits_any;    /* its process does nothing until any of them ends */
	uint32_t thread;   /* its main thread, as the process counts them; 0: not known */
	bool unhashed;
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
	uint32_t n_stopped;   /* sessions whose process is */
	uint32_t n_attaching; /* comms */
	uint64_t ops_done, ops_failed, refused;
	uint32_t addresses; /* so often they have changed */
	uint32_t n_masters; /* where else masters are to be found */
	struct agt_moved {
		struct cc_addr from, to;
	} masters[AGT_MASTERS_MAX];
	/* Of the runs that this agent took part in: the highest term. A master that is stale does
	 * not get it back when its last peer here has left. */
	struct agt_fence {
		struct cc_id run;
		uint64_t term;
	} fences[AGT_FENCES];
	uint32_t last_fence;
	uint64_t tick_ns;             /* the last one */
	uint64_t woke_ns;             /* when this process stood still last, until then */
	struct agt_op *fresh, *older; /* operations that local members are missing from, by age */
	uint64_t lines_ns;  /* of those that say who is awaited: when they were counted anew, */
	uint32_t n_lines;   /* and how many there were since */
	const char *broken; /* a transition that must not be */
	bool ended;         /* AGT_EV_END */
	/* during a step */
	uint64_t now;
	struct agt_actions *out;
	int err;                   /* CC_ERR_NOMEM sticks */
	struct agt_action scratch; /* takes what found no memory */
	struct agt_action unsent;  /* takes what nobody is there for */
};

#endif
