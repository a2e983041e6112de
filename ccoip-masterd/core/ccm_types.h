/* SPDX-License-Identifier: MIT
 *
 * The master core's structures. Nobody outside ccoip-masterd/core includes this; start with
 * ccm_internal.h, which says what is where.
 */
#ifndef CCM_TYPES_H
#define CCM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_hash.h"

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(obj) ((obj)->unhashed = true)
#include <uthash.h>
#include <utlist.h>

/* Each element of a chain that is passed is a line of the cache that is read for nothing. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 5U

#include "ccoip-masterd/core/ccm.h"
#include "common/cc_detect.h"
#include "common/cc_err.h"
#include "proto/wire_codes.h"

#define CCM_NS_PER_MS       UINT64_C(1000000)
#define CCM_AGENT_PEERS_MAX 16384u /* of one connection: its ROUND fits into a frame */
#define CCM_PEER_OPS_MAX    256u   /* votes outstanding of one peer */
#define CCM_ALONE           "the group has no other peer now"
#define CCM_CONTRADICTS     "the peer was told of a success that no other knows of: connect anew"
#define CCM_WAS_LOST        "the peer was declared lost by the master before: connect anew"
#define CCM_FAILED_UNHEARD  "the operation failed on another host; the log of the master says why"
#define CCM_BREAKS_MAX      3u /* of a pair's links, each amid an operation, in a row */
#define CCM_FLAPS_MAX       8u /* of an agent's connections, in a row */
#define CCM_FLAP_TIMES      2u /* the time for silence: what lasts longer is none of these */
/* Of the time for any other new link. */
#define CCM_TRY_MS(new_ms) ((new_ms) / 5 * 3)
#define CCM_RING_STEPS     100000u
#define CCM_TOUR_WORK      20000000u /* looks at links: about 50 ms, in which nobody is answered */
/* While members do not reach each other, rings are tried for so long. */
#define CCM_SEARCH_MS(round_ms) (2 * (round_ms))
#define CCM_ANSWERED_OTHERWISE                                                                     \
	"the peer was told otherwise than the others whether peers are pending: connect anew"
#define CCM_UNHEARD       (UINT64_C(1) << 20) /* numbers left out that others may have used */
#define CCM_TERM_SHIFT    12u                 /* terms are counted slower than attempts, */
#define CCM_VERSION_SHIFT 22u                 /* and versions of the world faster than terms */
#define CCM_NUMBER_MAX    (UINT64_C(1) << 62) /* no number is that high: it would never wrap */
#define CCM_CONNS         16384u              /* found without hashing, if numbered in a row */
#define CCM_AHEAD_MAX     16u   /* tags of a group with a number for their next attempt */
#define CCM_LOST_MAX      4096u /* peers remembered that were lost */

struct ccm_agent;
struct ccm_seat;
struct ccm_group;
struct ccm_op;

/* Connections of an agent that broke soon, in a row. No call of its peers has ended since. */
struct ccm_flaps {
	uint32_t n;
	uint64_t first_ns;
	uint64_t topo_turn, pending_turn; /* the highest that votes of its peers have named */
};

/* Operations in a row amid which a link broke. */
struct ccm_streak {
	uint32_t n;
	uint64_t round; /* the last one committed when one was told, plus 1: both ends tell */
	bool counts;    /* that one */
	uint64_t bytes; /* an operation of so many shows that the links work */
};

/* Agents, peers and seats: what every vote touches comes first, in as few lines of the cache as can
 * be. With many peers nothing else costs as much. */
struct ccm_agent {
	UT_hash_handle hh; /* by conn, in ccm->agents */
	uint32_t conn;
	bool unhashed;
	bool greeted;    /* hello is valid */
	bool claimed;    /* holds its agent id: in ccm->by_id */
	bool local;      /* on this host */
	bool dead;       /* waits for ccm_reap */
	bool absent;     /* without connection: in ccm->absent, not in ccm->agents */
	bool knows_run;  /* it, or a peer that came by it, was in the run before this connection */
	bool resuming;   /* says what it knows of the run; RESUME ends it */
	bool up_to_date; /* resuming: it was told the world since its hello */
	bool held;       /* its hello is not answered yet */
	bool restored;   /* absent: from the journal */
	bool promoted;   /* only within ccm_conclude.c: its prepared round was committed */
	struct ccm_seat *seats;
	uint32_t n_seats, n_peers, n_accepted;
	/* the last round it was part of */
	uint32_t n_failures;
	uint64_t round;
	bool reported;
	bool overdue;      /* reported for it: what it says later comes too late */
	bool moved;        /* it has other addresses than the round says */
	bool round_accept; /* it was told that the round accepts */
	struct cc_detect life;
	uint64_t spoke_ns; /* the last time */
	uint64_t no;       /* never used again */
	struct wm_failure *failures;
	struct ccm_told *told; /* while recovering: what it has said, or NULL */
	uint64_t absent_ns, acked_ns;
	uint32_t blame_from, blame_to; /* only within ccm_verdict.c */
	bool shunned;                  /* its host has failed as a newcomer: */
	uint64_t shunned_ns;           /* it is not tried before */
	uint64_t admitted_ns;          /* as a newcomer of a run that had members; 0: not so */
	struct ccm_streak breaks;      /* since then, of its links to earlier members */
	uint64_t breaks_with;          /* the first of these, and others as well */
	bool breaks_with_others;
	struct cc_addr from;
	struct wm_hello hello;
	struct ccm_flaps flaps; /* goes where its peers go */
	UT_hash_handle hh_id;
	struct ccm_agent *next_dead;
	struct ccm_agent *prev_ab, *next_ab; /* in ccm->absent */
};

struct ccm_seat_key {
	uint64_t agent_no, group;
};

struct ccm_peer {
	UT_hash_handle hh;
	struct ccm_seat *seat;
	struct cc_id id;
	enum ccm_connection_phase phase;
	enum ccm_connection_state state; /* written by ccm_state.c only */
	uint64_t state_since;
	uint64_t round;     /* the last round it was a candidate of */
	uint32_t slot;      /* ACCEPTED: its bit in the operations of the group */
	uint32_t n_ops;     /* operations it has voted for */
	uint32_t n_running; /* of them, started */
	bool topo_voted, pending_voted;
	bool leaving;      /* by itself: it is removed in this step */
	bool untold;       /* accepted, but its agent still waits for the answer to its join */
	bool blocked_main; /* it is the peer's main thread that waits for `blocked` */
	bool helper;       /* another thread of its process than the main one waits at times */
	bool shares;       /* another peer of the agent has the same thread */
	uint8_t n_alone;   /* votes of it that were answered in a row, since it did anything else */
	uint64_t acted_ns; /* when it voted last, or what it waited for ended */
	struct ccm_op *blocked; /* it does nothing until that, not started, ends; or NULL */
	bool blocked_any; /* or until another one ends that it has voted for; none has started */
	bool any_meets;   /* find_ends: one of these comes to an end */
	bool unhashed;
	struct ccm_peer *next, *prev; /* in seat->peers: accepted ones first, each by joining */
	uint64_t stopped_ns; /* since when its process is stopped, as its agent says; 0: it runs */
	/* while recovering */
	bool prepared;                    /* a member if its agent's prepared round was committed */
	bool believed;                    /* accepted because its agent says so */
	bool restarted;                   /* accepted, and its agent is a new one */
	uint64_t told_topo, told_pending; /* accepted: the votes that it knows the end of, or 0 */
	uint64_t told_epoch;              /* likewise: the last one that it was in */
	uint64_t told_prepared;           /* likewise: the last round that it was ready for */
	uint64_t told_version;            /* likewise: of the world that it was told last */
	bool raw_topo, raw_pending;       /* votes that are not counted yet */
	uint64_t raw_topo_turn, raw_pending_turn;
	struct wm_blocks raw_blocks; /* kind NONE: nothing was said */
	struct cc_id token;
	char name[WM_NAME_MAX];
	uint32_t pid, pool_size;
	uint64_t thread; /* its main thread, among those of its agent; 0: not known */
};

struct ccm_seat {
	struct ccm_seat_key key;
	struct ccm_agent *agent;
	struct ccm_group *group;
	struct ccm_peer *peers;
	uint32_t n_peers, n_accepted;
	uint32_t n_asleep;                /* registered peers whose processes are stopped */
	uint32_t n_candidates;            /* of the round in progress */
	uint32_t slot;                    /* its part in the operations of the group */
	struct ccm_seat *next_a, *prev_a; /* in agent->seats */
	struct ccm_seat *next_g, *prev_g; /* in group->seats */
	bool in_ring;                     /* in group->ring, at pos */
	uint32_t pos;
	uint32_t next_pos;  /* in group->next_ring, when n_candidates > 0 */
	uint32_t at;        /* only within ccm_ring.c: in the order that is given */
	uint64_t renew_to;  /* this agent has lost the link from here: another one is to be opened;
			     * or 0 */
	bool ready;         /* a newcomer: the links that a ring would have are proven */
	bool slow;          /* likewise: other newcomers are not to wait for it */
	uint64_t probed_ns; /* likewise: since when it is probed; 0: not yet */
	uint32_t blame_from, blame_to;
	bool doomed;   /* only within ccm_verdict.c: its peers are to be kicked */
	bool short_of; /* likewise: for a limit that an agent has reached */
	char *doom;    /* why */
	struct ccm_seat *next_doomed;
	bool reaping;
	struct ccm_seat *next_reap;
	bool unhashed;
	UT_hash_handle hh;
};

/* Small numbers, lowest reused first; giving one back never needs memory. */
struct ccm_slots {
	uint32_t n; /* handed out so far, free ones included */
	uint32_t *free, n_free, cap;
};

/* An attempt that agents may begin ahead. */
struct ccm_grant {
	uint64_t tag, seq;      /* seq 0: none */
	uint64_t round, losses; /* it is void when either has changed */
};

struct ccm_group {
	uint32_t id;
	struct ccm_seat *seats; /* in the order of their first peers: the preferred ring */
	uint32_t n_seats, n_peers, n_accepted, n_topo;
	struct ccm_seat **ring; /* in force: seats with accepted peers */
	uint32_t n_ring;
	uint32_t n_absent;           /* of n_accepted: on absent agents */
	struct ccm_seat **next_ring; /* of the round in progress */
	uint32_t n_next, next_pool;
	struct ccm_op *ops;
	struct ccm_op *sync;       /* one of them, or NULL */
	struct ccm_revision *last; /* ccm_sync.h; NULL: nothing has been synchronized */
	uint32_t n_blocked_ops;    /* of ops: that peers do nothing else than wait for */
	uint32_t n_late;           /* of ops, in ccm->late */
	unsigned late_for;         /* hash of what was logged of the last one */
	bool stopped;              /* its agents were told that processes of peers are */
	bool stopped_news;         /* they are to be told anew, with the next tick */
	uint64_t losses;           /* m->last_loss at the group's last one */
	struct wire_world at_loss; /* as first told with at_losses; version 0: not yet */
	uint64_t at_losses;        /* it is of no use when these are not losses */
	bool told;                 /* of that one, and nothing has started since */
	uint64_t n_ended;          /* attempts that had started; the last ones are remembered */
	struct wm_outcome ended[WM_OUTCOMES_MAX]; /* by n_ended % WM_OUTCOMES_MAX */
	uint32_t n_ahead;                         /* tags that were ever granted anything */
	struct ccm_grant ahead[CCM_AHEAD_MAX];    /* by n_ahead % CCM_AHEAD_MAX */
	struct ccm_slots peer_slots, seat_slots;
	bool failed; /* its links were, or no ring is possible: until it is judged */
	bool lost;   /* an accepted peer or its agent is gone, operations are not aborted yet */
	bool halt; /* lost: nothing of it may go on, not even a synchronization that has started */
	uint32_t n_lost;
	char loss[WM_TEXT_MAX]; /* the last one */
	/* while recovering */
	bool interrupted;             /* to be counted in losses; loss says why */
	uint32_t n_lost_ever, n_left; /* accepted peers; of them, while recovering */
	uint64_t known_version;
	uint32_t known_world;  /* accepted peers, as an agent was told with known_version */
	bool too_many;         /* have come for that: ccm_behind.c */
	uint32_t n_lost_again; /* were lost while m->lost_again; loss says who was first */
	uint64_t told_version; /* the highest that its peers were told of, and */
	uint32_t told_world;   /* its accepted peers as of then; of these, */
	uint32_t n_told;       /* so many have said so, some may have left since, */
	uint64_t told_wired;   /* and the last round that they know to be committed */
	struct ccm_group *next_lost;
	bool unhashed;
	UT_hash_handle hh;
};

struct ccm_op_key {
	uint32_t group;
	uint32_t is_sync;
	uint64_t tag; /* is_sync: 0 */
};

struct ccm_part {              /* one seat's share of an operation */
	struct ccm_seat *seat; /* NULL: has not voted */
	uint32_t n_votes;
	bool reported;
	uint64_t reported_ns;
	uint64_t sent; /* bytes that it had sent long before it said so: ccm_stall.c */
	bool told;     /* of a synchronization: OP_START has gone out */
};

struct ccm_op {
	struct ccm_op_key key;
	struct ccm_group *group;
	enum ccm_collective_state state; /* written by ccm_state.c only */
	uint64_t seq;                    /* 0 until it starts */
	uint64_t ahead; /* until then: all votes so far say that it has begun under this; or 0 */
	uint64_t born_ns, changed_ns; /* the first vote; the last vote, start or report */
	struct wm_op_params params;   /* of the first vote */
	struct ccm_sync *sync;        /* ccm_sync.h; NULL: an all-reduce */
	uint64_t losses;              /* of the group: the same in all votes */
	uint32_t doom; /* not 0: how it ends once all have voted, for a vote differed, or a call
			* has failed where it was made; text says which */
	char text[WM_TEXT_MAX];
	uint32_t n_votes;
	uint64_t *voted; /* bit per peer slot */
	uint32_t n_words;
	struct ccm_part *parts; /* by seat slot */
	uint32_t n_parts;       /* length of parts */
	uint32_t n_voters;      /* parts with votes */
	uint32_t n_reported;
	uint32_t n_blocked; /* not started: peers that do nothing else than wait for it */
	bool meets;         /* only within ccm_stuck.c: it comes to an end */
	bool ready;         /* all votes are here, a round or a topology vote is in the way */
	bool late;   /* it has not started for seconds: those who voted were told whom they wait for
		      */
	bool logged; /* and so was the log */
	uint64_t looked_ns; /* late: when that was looked at last, and */
	unsigned told;      /* a hash of what they were told */
	bool unhashed;
	UT_hash_handle hh; /* by key, in ccm->ops */
	UT_hash_handle hh_seq;
	UT_hash_handle hh_ahead;
	struct ccm_op *prev, *next;     /* in group->ops */
	struct ccm_op *prev_r, *next_r; /* in ccm->ready */
	struct ccm_op *prev_w, *next_w; /* not started: in ccm->fresh or, if late, in ccm->late */
};

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

/* What an agent has said to a recovering master. */
struct ccm_told {
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

/* What all of them have said. */
struct ccm_tally {
	uint64_t epoch, committed, wired; /* the highest that agents know */
	uint64_t topo_turn, pending_turn; /* likewise, or their peers */
	uint64_t version;                 /* of the newest world known, and */
	uint32_t expected;                /* its accepted peers; 0: unknown */
	uint32_t back;                    /* that are here, or have left again */
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
	unsigned told;
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
	struct ccm_agent *absent;             /* by the time that they are absent */
	struct ccm_agent *by_conn[CCM_CONNS]; /* by connection, modulo: the last one, or NULL */
	struct ccm_peer *peers;
	struct ccm_group *groups;
	struct ccm_seat *seats;
	struct ccm_op *ops;     /* by key */
	struct ccm_op *started; /* by seq */
	struct ccm_op *ahead;   /* not started: by ahead */
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
	uint64_t stale;                   /* the term of a newer master, or 0 */
	char over[WM_TEXT_MAX];           /* why the run is over, and the master ends; or "" */
	uint64_t committed;               /* the last round that was */
	uint64_t wired;                   /* while recovering: the last that had been prepared */
	uint64_t topo_turn, pending_turn; /* votes that were answered; this one also says how */
	bool recovering, recovered;
	bool restored;       /* from the journal */
	bool renewed;        /* by ccm_renew: the term is still the same */
	bool key_unknown;    /* recovering: no agent has told the run's key */
	bool acked;          /* an agent of the run was told our term */
	bool lost_again;     /* those who go now were lost by the master before, it seems */
	bool committed_here; /* a round was, by this master */
	bool adopting;       /* hellos without a run wait */
	uint64_t born_ns;    /* of the first step */
	uint64_t started_ns; /* likewise, of the first one that this process has made */
	bool look;           /* recovering: it may be over */
	bool sent_away;      /* recovering: the few that came were, once */
	uint64_t cut_off_ns; /* when it was found out that no other host is heard, or 0 */
	uint64_t recover_ns; /* when the first agent came, or 0 */
	uint64_t asked_ns;   /* when a peer came by a new agent, or 0 */
	uint64_t said_ns;    /* when an agent said last what it knows of the run, or 0 */
	uint64_t restored_epoch, restored_version;
	uint64_t heard_epoch;              /* the highest of agents that came later */
	uint64_t peers_epoch, peers_wired; /* recovering: the highest that a peer was in, and the
					    * last committed round that one knows of */
	uint64_t peers_version;            /* likewise: of the world that one was told, */
	uint32_t peers_world;              /* its accepted peers, */
	uint32_t n_told;                   /* and how many of them have said so, */
	uint64_t peers_prepared; /* and the last round that one without agent was ready for */
	uint64_t newest_version; /* of the worlds that agents have told, and */
	uint32_t newest_world;   /* its accepted peers; 0: unknown */
	uint32_t n_prepared;     /* peers that have come with that mark */
	uint32_t n_resuming;     /* agents */
	uint32_t n_left;         /* accepted peers that were lost while recovering */
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
	uint64_t last_agent, last_round, last_seq, last_loss, epoch, world_version;
	uint32_t n_registered, n_accepted, n_topo, n_pending;
	uint32_t n_asleep; /* of n_registered: their processes are stopped */
	uint32_t n_absent; /* of n_accepted: on absent agents */
	uint64_t topo_since, pending_since, registered_since; /* when the count left 0 */
	struct ccm_round round;
	bool rewire;         /* links or rings are to be checked by a round */
	bool changed;        /* accepted members are gone since the last commit */
	uint32_t ring_work;  /* looks at links that searches for rings may take yet */
	uint64_t reorder_ns; /* since when orders of rings fail; 0: they do not */
	struct ccm_group *lost;
	struct ccm_seat *reap;
	struct ccm_agent *dead;
	uint64_t tick_ns, beat_ns;
	bool awaited;         /* as the last heartbeats said */
	uint64_t heard_ns;    /* of any other host, the last time */
	struct cc_detect any; /* the least bound is the same for all agents */
	uint64_t losses; /* accepted peers that are gone, by whatever way: goes with each vote */
	uint64_t leaves; /* those of them that left cleanly */
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	uint32_t n_blocked_ops; /* of all groups, and the groups */
	uint32_t n_crossed;     /* with two of them or more */
	bool shares;            /* there have been peers that have a thread between them */
	bool stuck_news;    /* somebody waits, or goes on, since it was looked at who is stuck */
	bool ticking;       /* during a step: it is a tick */
	const char *broken; /* a transition that must not be */
	/* during a step */
	uint64_t now;
	struct ccm_actions *out;
	bool oom;                  /* sticks */
	struct ccm_action scratch; /* takes what found no memory */
};

#endif
