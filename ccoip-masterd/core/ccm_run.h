/* SPDX-License-Identifier: MIT
 *
 * The master core's structures for pairs, probes, rounds and snapshots, and the structure of the
 * core itself.
 */
#ifndef CCM_RUN_H
#define CCM_RUN_H

#include "ccoip-masterd/core/ccm_caps.h"
#include "ccoip-masterd/core/ccm_schedule.h"
#include "ccoip-masterd/core/ccm_types.h"

struct ccm_pair_key {
	uint64_t from, to; /* agent numbers */
};

enum ccm_pair_state {
	CCM_PAIR_FAILED,  /* `from` could not open its link to `to` */
	CCM_PAIR_UNTRIED, /* only the link from `to` to `from` is known to fail; this one may work
			   */
	/* Nothing came through a link between the two, and no new link was tried since. Or the pair
	 * had failed, but may work again (ccm_pairs_doubt). */
	CCM_PAIR_SILENT,
};

/* A link that rings avoid. Both hosts were members when its trouble became known. */
struct ccm_pair {
	struct ccm_pair_key key;
	enum ccm_pair_state state;
	char text[WM_TEXT_MAX];
	UT_hash_handle hh;
};

/* Links between two members that broke during operations, one after the other. */
struct ccm_break {
	struct ccm_pair_key key; /* from: the lower agent number */
	struct ccm_streak streak;
	uint64_t from; /* the agent that the last broken link came from */
	char text[WM_TEXT_MAX];
	UT_hash_handle hh;
};

/* The state of the link from `from` to `to`, as probes have shown it. */
struct ccm_probe {
	struct ccm_pair_key key;
	uint64_t number;   /* of the probe that is not answered yet, or 0 */
	bool good, failed; /* the last known result */
	bool limit;        /* the probe failed because an agent has reached a limit */
	/* Both were members when the probe was sent, so it tested only their link, not the port for
	 * shared state. */
	bool members;
	uint64_t asked_ns, known_ns;
	char text[WM_TEXT_MAX]; /* failed: the reason */
	UT_hash_handle hh;
};

/* A host whose newcomers could not be reached, or could not reach others. */
struct ccm_shunned {
	char name[WM_NAME_MAX];
	struct cc_addr from; /* its port has no meaning */
	uint16_t port_p2p;
	uint32_t n_addrs;
	struct cc_addr addrs[WM_ADDRS_MAX];
	uint32_t probes, rounds; /* failed probes, failed rounds */
	uint64_t until_ns;       /* the host is not tried before this time */
	uint64_t admitted_ns;    /* when it was admitted, if it has not failed since; or 0 */
	struct ccm_shunned *prev, *next;
};

/* Rounds that newcomers have spoiled: they did not report, could not open their links, or left. */
struct ccm_spoilt {
	uint32_t n;        /* their number, less one for each minute since the last of them */
	uint64_t ns;       /* time of the last of them */
	uint64_t round;    /* number of the last of them */
	uint64_t until_ns; /* no newcomer is tried before this time */
};

/* An accepted peer that was lost. */
struct ccm_lost {
	struct cc_id peer;
	uint64_t ns;
	UT_hash_handle hh;
};

/* The last accepted peers that the run has lost, for the agents and later masters. */
struct ccm_losses {
	struct cc_id peers[WM_LOST_MAX]; /* index: number % WM_LOST_MAX */
	uint64_t view_ids[WM_LOST_MAX];  /* of the view that names the peer */
	uint64_t n;                      /* peers that were ever added */
	uint64_t floor;                  /* peers that were lost before this view may be missing */
	uint64_t named; /* ccm_agent.lost_named of the agent for which the last view was made */
};

/* A vote that an agent had given to the last master, and the agent's report. */
struct ccm_raw {
	struct wm_op_vote vote; /* owns peers */
	bool reported;
	struct wm_op_report report; /* owns failed */
	bool used;
	struct ccm_raw *more; /* a synchronization: the agent's next vote for the attempt */
	UT_hash_handle hh;    /* by vote.seq, if this is not 0 */
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

/* The snapshot of one agent, as a recovering master receives it. */
struct ccm_snapshot {
	bool complete;       /* RESUME has arrived */
	bool proven;         /* complete, from an agent that knows the run key */
	struct wm_resume r;  /* owns its arrays */
	uint32_t n_prepared; /* its peers that are marked as prepared */
	uint32_t n_left_prepared,
		n_left_accepted; /* prepared and accepted peers that have left again */
	struct ccm_raw *ops;
	struct ccm_raw *started; /* operations of ops that have started, by seq */
	struct ccm_ask *asks;
	struct ccm_lost_link *links;
	uint32_t n_ops, n_asks, n_links;
};

/* The newest view that has been reported to a recovering master. */
struct ccm_newest {
	uint64_t view_id;
	uint64_t lost_floor; /* peers that were lost before this view may be missing in the lists */
	uint32_t world_size; /* accepted peers; 0: unknown */
};

/* The outcome of an attempt of an earlier master. */
struct ccm_ended {
	struct wm_outcome end;
	struct cc_id peer; /* that knows it from an agent that is gone; zero: an agent knows it */
};

/* How much of the run has come to a recovering master. */
struct ccm_returned {
	uint32_t expected; /* accepted peers in the newest view; 0: unknown */
	uint32_t back;     /* those of them that are here, or have left again */
	bool doubt; /* a round may have been committed, and some agents that would know are not here
		     */
};

struct ccm_round {
	bool active, accept;
	bool stale;  /* a candidate is gone: the round must begin again */
	bool rewire; /* the value of ccm->rewire when the round began */
	bool tries;  /* a ring has links between hosts whose last link was silent */
	uint64_t since_ns;
	uint64_t failed_ns; /* when all agents had reported, if some links failed; 0: not yet */
	uint32_t n_agents, n_reported;
};

/* A ballot that has not ended for seconds. */
struct ccm_late {
	uint64_t since_ns; /* time of the first vote; 0: the ballot is not late */
	uint64_t looked_ns;
	unsigned text_hash;
};

enum ccm_rate_source {
	CCM_RATE_BENCHMARK = 0,
	CCM_RATE_AGENT,       /* measured before; the agent has told this master */
	CCM_RATE_UNREACHABLE, /* rate is 0 */
	CCM_RATE_OPERATIONS,  /* the link has carried it in operations */
};

#define CCM_SURE 100u /* the highest confidence, in percent */

/* The origin of a value in the bandwidth store, and how far it can be trusted. */
struct ccm_origin {
	uint64_t ns;         /* time of the measurement: see ccm_rate_age */
	uint32_t confidence; /* 0 .. 100 percent, at that time: see ccm_confidence */
	enum ccm_rate_source source;
	bool stale; /* to be measured again */
};

/* The highest rates at which a host can send and receive over all its links together, in bit/s of
 * payload. */
struct ccm_cap {
	uint64_t out, in;
	struct ccm_origin origin;
};

struct ccm_host_key {
	char name[WM_NAME_MAX];
	struct cc_addr addr; /* its port is that for links */
};

/* A host in the bandwidth store. It is named by its agent. The name and the address of an agent
 * that has had members here also name the host, so that its next agent continues with its rates. */
struct ccm_store_host {
	struct cc_id agent;
	bool placed; /* key is known */
	struct ccm_host_key key;
	uint32_t n_rates;  /* of links from it and to it */
	uint32_t saved_at; /* used in ccm_store.c only: its index in the record */
	bool has_cap;
	struct ccm_cap cap;
	struct ccm_store_host *prev_c, *next_c; /* has_cap: in ccm_store.capped */
	UT_hash_handle hh;                      /* by agent */
	UT_hash_handle hh_key;                  /* placed: by key */
};

/* Names a link. */
struct ccm_rate_key {
	struct ccm_store_host *from, *to;
};

struct ccm_measured {
	uint64_t rate; /* bit/s of payload */
	uint32_t trip_us;
	struct ccm_origin origin;
};

struct ccm_rate {
	struct ccm_rate_key key;
	struct ccm_measured v;
	/* The first and the last of the reports in a row by which operations get less than half of
	 * what is expected; 0: the last report was not of this kind. */
	uint64_t slow_ns, slow_last_ns;
	UT_hash_handle hh;
};

/* The bandwidth store: ccm_rates.c, ccm_hosts.c. */
struct ccm_store {
	struct ccm_rate *rates;
	struct ccm_store_host *hosts,
		*places;               /* by agent, by key; only hosts with a rate or a cap */
	struct ccm_store_host *capped; /* hosts with caps, the oldest first */
	uint32_t n_capped;
	bool unsaved; /* it has changed since it was written to the journal */
	uint64_t saved_ns;
};

enum ccm_optimize_phase {
	CCM_OPTIMIZE_NONE = 0,
	CCM_OPTIMIZE_MEASURING,
	CCM_OPTIMIZE_SOLVING,
	CCM_OPTIMIZE_REWIRING,
	CCM_OPTIMIZE_DONE,
	CCM_OPTIMIZE_FAILED,
};

/* Sums of the rates of all links of a host, in bit/s. */
struct ccm_load {
	uint64_t out, in; /* in the last round that measured it */
	uint64_t sent;    /* in the present round */
};

/* The optimization in progress: ccm_optimize.c, ccm_measure.c. */
struct ccm_optimize {
	enum ccm_optimize_phase phase;
	uint64_t ballot; /* the number of the ballot that it answers */
	uint64_t began_ns, step_ns;
	uint64_t logged_ns;   /* when the failure in `text` was logged; 0: never */
	uint64_t failed_ns;   /* when the last optimization ended, if it failed; else 0 */
	uint64_t last_number; /* of WM_MEASURE and CCM_ACT_SOLVE */
	/* MEASURING */
	struct cc_id *hosts;
	struct ccm_edge *edges; /* between indices of hosts */
	uint32_t n_hosts, n_edges;
	bool measured; /* the optimization has measured something */
	/* First come the rounds of pairs. If `caps`, the next one is the cap round, in which all
	 * hosts send to all, and then there are host rounds for hosts with suspect caps. */
	bool caps;
	uint32_t round, n_rounds, n_pair_rounds;
	struct ccm_host_round host_rounds[CCM_HOST_ROUNDS_MAX];
	struct ccm_load *loads; /* of the hosts; if `caps` */
	uint64_t *
		received; /* [i * n_hosts + k]: what host i got from all in this round, as k says */
	uint32_t n_waiting;            /* agents that have not reported */
	bool busy;                     /* in this round the network of a host was in use */
	uint64_t busy_ns;              /* since when, in this optimization; 0: never */
	char busy_text[WM_TEXT_MAX];   /* by what, the last time */
	uint64_t paused_ns;            /* the end of the pause before the next attempt, or 0 */
	char unreachable[WM_TEXT_MAX]; /* a link that could not be measured, or "" */
	/* SOLVING */
	uint32_t n_problems;    /* without a solution */
	char text[WM_TEXT_MAX]; /* FAILED: why */
};

struct ccm_ballot {
	uint64_t number;        /* of the last ballot that has ended (wire_ballot.h) */
	char text[WM_TEXT_MAX]; /* why its answer is no, or "" */
	uint32_t n_votes;
	uint64_t since_ns; /* when n_votes rose from 0 */
	struct ccm_late late;
};

/* A leave whose agent waits for WM_LEFT. */
struct ccm_leave {
	uint32_t conn;
	struct cc_id peer;
};

struct ccm {
	struct ccm_config cfg;
	struct ccm_agent *agents;             /* by connection */
	struct ccm_agent *by_id;              /* agents with a claimed agent id */
	struct ccm_agent *disconnected;       /* in the order in which they were disconnected */
	struct ccm_agent *by_conn[CCM_CONNS]; /* index: connection % CCM_CONNS; the agent that was
						 opened last, or NULL */
	struct ccm_peer *peers;
	struct ccm_group *groups;
	struct ccm_membership *memberships;
	struct ccm_op *ops;      /* by key */
	struct ccm_op *started;  /* by seq */
	struct ccm_op *spec_ops; /* not started: by spec_seq */
	struct ccm_op *ready;
	struct ccm_op *fresh; /* not started: by age */
	struct ccm_op *late;  /* not started for some seconds: by looked_ns */
	struct ccm_ballot ballots[WIRE_BALLOTS];
	struct ccm_optimize optimize;
	uint32_t n_proposed; /* groups with a proposal */
	struct ccm_store store;
	uint64_t n_links_changed; /* grows when a rate, a cap or a failed pair changes */
	bool stopped_news;        /* some group has stopped_news */
	uint64_t woke_ns;         /* when the last suspension of this process ended */
	struct ccm_pair *pairs;
	struct ccm_break *breaks;
	struct ccm_probe *probes;
	uint64_t last_probe;
	uint32_t n_probing;          /* probes that are not answered */
	bool newcomers;              /* something has changed for newcomers */
	struct ccm_shunned *shunned; /* in the order of the first failures */
	uint32_t n_shunned;
	struct ccm_spoilt spoilt;
	struct ccm_lost *gone; /* lost peers, the oldest first */
	struct ccm_losses losses;
	struct ccm_record *records; /* of elections of shared state; by group, the oldest first */
	struct ccm_revision *revisions; /* by group; the one that was raised last is at the end */
	uint64_t term;
	uint64_t stale;         /* the term of a newer master, or 0 */
	char over[WM_TEXT_MAX]; /* why the run is over and the master ends; or "" */
	uint64_t committed;     /* the last committed round */
	uint64_t ring_epoch;    /* while recovering: the ring epoch */
	bool recovering, recovered;
	bool restored;      /* from the journal */
	bool restarted_run; /* after ccm_restart: the term is still the same */
	bool key_unknown;   /* recovering: no agent has sent the run key */
	bool acked;         /* our term was sent to an agent of the run */
	bool lost_before; /* peers that are removed now were probably lost by the previous master */
	bool committed_here; /* this master has committed a round */
	bool adopting;       /* hellos without a run are deferred */
	uint64_t born_ns;    /* time of the first step */
	uint64_t started_ns; /* time of the first step in this process */
	bool look;           /* recovering: the recovery may be complete */
	bool redirected;     /* recovering: the few agents that came were redirected, once */
	uint64_t cut_off_ns; /* when the master found that all remote hosts are silent, or 0 */
	uint64_t recover_ns; /* recovering: when the first agent came, or 0 */
	uint64_t asked_ns;   /* when a peer last came through a new agent, or 0 */
	uint64_t said_ns;    /* when an agent last sent a part of its snapshot, or 0 */
	uint64_t restored_view_id;
	uint64_t heard_epoch; /* the highest epoch of agents that came after the recovery */
	/* Recovering: the newest views that agents have, and that peers have from agents that are
	 * gone. */
	struct ccm_newest agents_newest, peers_newest;
	uint32_t n_prepared; /* peers that have come with the mark `prepared` */
	uint32_t n_resuming; /* agents that are resuming */
	uint32_t n_left;     /* accepted peers that were lost while recovering */
	/* the journal */
	struct cc_id born_run; /* the run id that this master has made itself; random */
	bool has_saved;
	struct wj_record saved; /* until the first step: the content of the journal */
	struct wj_record saved_rates;
	uint64_t written_term;
	struct cc_id written_run;
	struct cc_id *unsaved; /* accepted peers that were lost since the journal was written */
	uint32_t n_unsaved;
	size_t cap_unsaved;
	struct ccm_leave *taken; /* leaves of accepted peers that are not answered yet */
	uint32_t n_taken;
	size_t cap_taken;
	bool resave;             /* revisions must be settled, and written with all members */
	struct ccm_ended *ended; /* known outcomes that the last master had sent; by seq */
	uint32_t n_ended;
	uint64_t last_agent, last_round, last_seq, last_generation, epoch, view_id;
	uint32_t n_registered, n_accepted;
	uint32_t n_asleep;         /* registered peers whose processes are stopped */
	uint32_t n_disconnected;   /* accepted peers on disconnected agents */
	uint64_t registered_since; /* when n_registered rose from 0 */
	struct ccm_round round;
	bool rewire;         /* a round must check links or rings */
	bool changed;        /* accepted members are gone since the last commit */
	uint32_t ring_work;  /* how many looks at links the searches for rings may still take */
	uint64_t reorder_ns; /* when the search for rings began to fail; 0: it does not fail */
	struct ccm_group *lost;
	struct ccm_membership *reap;
	struct ccm_agent *dead;
	uint64_t tick_ns, beat_ns;
	bool awaited;          /* the last heartbeats said that votes are awaited */
	uint64_t heard_ns;     /* when the last message of any remote host came */
	struct cc_detect any;  /* for the least bound, which is the same for all agents */
	uint64_t lost_members; /* accepted peers that are gone for any reason */
	uint64_t leaves;       /* those of them that left cleanly */
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	uint32_t n_waited_ops; /* operations that peers wait for, in all groups */
	uint32_t n_crossed;    /* groups with two or more such operations */
	bool shares;           /* some peers have had the same thread */
	bool stuck_news; /* a peer began or ended a wait since unmet calls were last looked for */
	bool ticking;    /* during a step: its event is a tick */
	const char *broken; /* a state change that is not allowed, or NULL */
	/* during a step */
	uint64_t now;
	struct ccm_actions *out;
};

#endif
