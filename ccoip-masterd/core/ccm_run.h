/* SPDX-License-Identifier: MIT
 *
 * The master core's structures of pairs, probes, rounds, of what agents tell when a run is taken
 * over, and of the whole.
 */
#ifndef CCM_RUN_H
#define CCM_RUN_H

#include "ccoip-masterd/core/ccm_types.h"

struct ccm_pair_key {
	uint64_t from, to; /* agent numbers */
};

enum ccm_pair_state {
	CCM_PAIR_FAILED,  /* `from` could not open its link to `to` */
	CCM_PAIR_UNTRIED, /* `to` could not open its link to `from`; this one may do */
	CCM_PAIR_SILENT,  /* nothing came through a link between them, and no new one has been
			   * tried since; or ccm_pairs_doubt */
};

/* A link to be avoided. Both were members when it got known. */
struct ccm_pair {
	struct ccm_pair_key key;
	enum ccm_pair_state state;
	char text[WM_TEXT_MAX];
	bool unhashed;
	UT_hash_handle hh;
};

/* Links between two members that broke amid operations, one after the other. */
struct ccm_break {
	struct ccm_pair_key key; /* the lower number first */
	struct ccm_streak streak;
	uint64_t from; /* of the last one */
	char text[WM_TEXT_MAX];
	bool unhashed;
	UT_hash_handle hh;
};

/* Whether `from` can open a link to `to`, which are not both members. */
struct ccm_probe {
	struct ccm_pair_key key;
	uint64_t number;   /* of the question that is not answered yet, or 0 */
	bool good, failed; /* as far as is known */
	bool limit;        /* failed: an agent has reached one */
	bool members; /* both were when it was asked: it is of their link, not of shared state */
	uint64_t asked_ns, known_ns;
	char text[WM_TEXT_MAX]; /* failed: why */
	bool unhashed;
	UT_hash_handle hh;
};

/* A host that newcomers have come from that could not be reached, or could not reach others. */
struct ccm_shunned {
	char name[WM_NAME_MAX];
	struct cc_addr from; /* its port means nothing */
	uint16_t port_p2p;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	uint32_t probes, rounds; /* that have failed */
	uint64_t until_ns;       /* it is not tried before */
	uint64_t admitted_ns;    /* and has not failed since; or 0 */
	struct ccm_shunned *prev, *next;
};

/* Rounds that newcomers have spoilt: they did not report, could not open their links, or left. */
struct ccm_spoilt {
	uint32_t n;        /* less one for each minute since the last of them */
	uint64_t ns;       /* when that was, and */
	uint64_t round;    /* which one */
	uint64_t until_ns; /* no newcomer is tried before */
};

/* An accepted peer that was lost. */
struct ccm_lost {
	struct cc_id peer;
	uint64_t ns;
	bool unhashed;
	UT_hash_handle hh;
};

/* A vote that an agent had given to the last master, and its report. */
struct ccm_raw {
	struct wm_op_vote vote; /* owns peers */
	bool reported;
	struct wm_op_report report; /* owns failed */
	bool used;
	struct ccm_raw *more; /* of a synchronization: the agent's other votes for the attempt */
	bool unhashed;
	UT_hash_handle hh; /* by vote.seq, if that is not 0 */
	struct ccm_raw *prev, *next;
};

struct ccm_ask {
	struct wm_op_query q;
	struct ccm_ask *next;
};

struct ccm_lost_link {
	struct wm_link_lost l;
	struct ccm_lost_link *next;
};

/* The words of one agent to a recovering master. */
struct ccm_snapshot {
	bool complete;                             /* RESUME has come: */
	struct wm_resume r;                        /* owns its arrays */
	uint32_t n_prepared;                       /* its peers with that mark */
	uint32_t n_left_prepared, n_left_accepted; /* those that have left again */
	struct ccm_raw *ops;
	struct ccm_raw *started; /* of ops: by seq */
	struct ccm_ask *asks;
	struct ccm_lost_link *links;
	uint32_t n_ops, n_asks, n_links;
};

/* The sum of these words, of all agents. */
struct ccm_merged {
	uint64_t epoch, committed, ring_epoch; /* the highest that agents know */
	uint64_t topo_ballot, pending_ballot;  /* likewise, or their peers */
	uint64_t view_id;                      /* of the newest view known, and */
	uint32_t expected;                     /* its accepted peers; 0: unknown */
	uint32_t back;                         /* that are here, or have left again */
	bool doubt; /* a round may have been committed, and not all who would know are here */
};

struct ccm_round {
	bool active, accept;
	bool stale;  /* a candidate is gone: to be begun again */
	bool rewire; /* what ccm->rewire was when it began */
	bool tries;  /* a ring has links between hosts that heard nothing of each other */
	uint64_t since_ns;
	uint64_t failed_ns; /* all have reported, and not all well; 0: not yet */
	uint32_t n_agents, n_reported;
};

/* A topology or pending vote that has not ended for seconds. */
struct ccm_late {
	uint64_t since_ns; /* the first vote; 0: it is not late */
	uint64_t looked_ns;
	unsigned text_hash;
};

/* A leave whose agent waits for WM_LEFT. */
struct ccm_leave {
	uint32_t conn;
	struct cc_id peer;
};

struct ccm {
	struct ccm_config cfg;
	struct ccm_agent *agents;             /* by connection */
	struct ccm_agent *by_id;              /* those that joined */
	struct ccm_agent *disconnected;       /* by the time that they are disconnected */
	struct ccm_agent *by_conn[CCM_CONNS]; /* by connection, modulo: the last one, or NULL */
	struct ccm_peer *peers;
	struct ccm_group *groups;
	struct ccm_membership *memberships;
	struct ccm_op *ops;      /* by key */
	struct ccm_op *started;  /* by seq */
	struct ccm_op *spec_ops; /* not started: by spec_seq */
	struct ccm_op *ready;
	struct ccm_op *fresh; /* have not started, by age */
	struct ccm_op *late;  /* likewise, and have been looked at: by looked_ns */
	struct ccm_late topo_late, pending_late;
	bool stopped_news; /* of some group */
	uint64_t woke_ns;  /* when this process was suspended last, until then */
	struct ccm_pair *pairs;
	struct ccm_break *breaks;
	struct ccm_probe *probes;
	uint64_t last_probe;
	uint32_t n_probing;          /* probes that are not answered */
	bool newcomers;              /* something has changed for them */
	struct ccm_shunned *shunned; /* the one that has failed first at the beginning */
	uint32_t n_shunned;
	struct ccm_spoilt spoilt;
	struct ccm_lost *gone;          /* by peer, oldest first */
	struct ccm_record *records;     /* of elections of shared state; by group, oldest first */
	struct ccm_revision *revisions; /* by group, the one raised last at the end */
	uint64_t term;
	uint64_t stale;         /* the term of a newer master, or 0 */
	char over[WM_TEXT_MAX]; /* why the run is over, and the master ends; or "" */
	uint64_t committed;     /* the last round that was */
	uint64_t ring_epoch;    /* while recovering: the last that had been prepared */
	uint64_t topo_ballot, pending_ballot; /* votes that were answered; this one also says how */
	bool recovering, recovered;
	bool restored;       /* from the journal */
	bool restarted_run;  /* by ccm_restart: the term is still the same */
	bool key_unknown;    /* recovering: no agent has told the run's key */
	bool acked;          /* an agent of the run was told our term */
	bool lost_before;    /* those who go now were lost by the master before, it seems */
	bool committed_here; /* a round was, by this master */
	bool adopting;       /* hellos without a run wait */
	uint64_t born_ns;    /* of the first step */
	uint64_t started_ns; /* likewise, of the first one that this process has made */
	bool look;           /* recovering: it may be over */
	bool redirected;     /* recovering: the few that came were, once */
	uint64_t cut_off_ns; /* when it was found out that no other host is heard, or 0 */
	uint64_t recover_ns; /* when the first agent came, or 0 */
	uint64_t asked_ns;   /* when a peer came by a new agent, or 0 */
	uint64_t said_ns;    /* when an agent said last what it knows of the run, or 0 */
	uint64_t restored_epoch, restored_view_id;
	uint64_t heard_epoch;                   /* the highest of agents that came later */
	uint64_t peers_epoch, peers_ring_epoch; /* recovering: the highest that a peer was in, and
						 * the last committed round that one knows of */
	uint64_t peers_view_id;                 /* likewise: of the view that one was told, */
	uint32_t peers_world_size;              /* its accepted peers, */
	uint32_t n_snapshots;                   /* and how many of them have said so, */
	uint64_t peers_prepared;    /* and the last round that one without agent was ready for */
	uint64_t newest_view_id;    /* of the views that agents have told, and */
	uint32_t newest_world_size; /* its accepted peers; 0: unknown */
	uint32_t n_prepared;        /* peers that have come with that mark */
	uint32_t n_resuming;        /* agents */
	uint32_t n_left;            /* accepted peers that were lost while recovering */
	/* the journal */
	struct cc_id born_run; /* random, ours alone */
	bool has_saved;
	struct wj_record saved; /* until the first step: what was read */
	uint64_t written_term;
	struct cc_id written_run;
	struct cc_id *unsaved; /* accepted peers that were lost since it was written */
	uint32_t n_unsaved, cap_unsaved;
	struct ccm_leave *taken; /* leaves of accepted peers that are not answered yet */
	uint32_t n_taken, cap_taken;
	bool resave;              /* revisions are to be settled, and written with all members */
	struct wm_outcome *ended; /* what the last master told, as far as it is known; by seq */
	uint32_t n_ended;
	uint64_t last_agent, last_round, last_seq, last_generation, epoch, view_id;
	uint32_t n_registered, n_accepted, n_topo, n_pending;
	uint32_t n_asleep;       /* of n_registered: their processes are stopped */
	uint32_t n_disconnected; /* of n_accepted: on disconnected agents */
	uint64_t topo_since, pending_since, registered_since; /* when the count left 0 */
	struct ccm_round round;
	bool rewire;         /* links or rings are to be checked by a round */
	bool changed;        /* accepted members are gone since the last commit */
	uint32_t ring_work;  /* looks at links that searches for rings may take yet */
	uint64_t reorder_ns; /* since when orders of rings fail; 0: they do not */
	struct ccm_group *lost;
	struct ccm_membership *reap;
	struct ccm_agent *dead;
	uint64_t tick_ns, beat_ns;
	bool awaited;          /* as the last heartbeats said */
	uint64_t heard_ns;     /* of any other host, the last time */
	struct cc_detect any;  /* the least bound is the same for all agents */
	uint64_t lost_members; /* accepted peers that are gone, by whatever way: goes with each vote
				*/
	uint64_t leaves;       /* those of them that left cleanly */
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	uint32_t n_waited_ops; /* of all groups, and the groups */
	uint32_t n_crossed;    /* with two of them or more */
	bool shares;           /* there have been peers that have a thread between them */
	bool stuck_news;       /* somebody waits, or goes on, since it was looked at who is stuck */
	bool ticking;          /* during a step: it is a tick */
	const char *broken;    /* a transition that must not be */
	/* during a step */
	uint64_t now;
	struct ccm_actions *out;
	bool oom;                  /* sticks */
	struct ccm_action scratch; /* takes what found no memory */
};

#endif
