/* SPDX-License-Identifier: MIT
 *
 * The master core's structures. Only files in ccoip-masterd/core include this. Start with
 * ccm_internal.h, whose index says what each file does.
 */
#ifndef CCM_TYPES_H
#define CCM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_hash.h"
#include <utlist.h>

/* A lookup reads one cache line for each element of a chain that it passes. Short chains avoid
 * this. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 5U

#include "ccoip-masterd/core/ccm.h"
#include "common/cc_detect.h"
#include "common/cc_must.h"
#include "proto/wire_codes.h"

#define CCM_NS_PER_MS UINT64_C(1000000)
/* Peers of one connection. Its ROUND message must fit into a frame. */
#define CCM_AGENT_PEERS_MAX 16384u
#define CCM_PEER_OPS_MAX    256u /* outstanding votes of one peer */
#define CCM_ALONE           "the group has no other peer now"
#define CCM_CONTRADICTS                                                                            \
	"the peer was told of a success that no other peer knows: call pcclConnect again"
#define CCM_WAS_LOST       "this peer was declared lost by the master: call pcclConnect again"
#define CCM_FAILED_UNHEARD "the operation failed on another host; see the log of the master"
#define CCM_BREAKS_MAX     3u /* consecutive operations during which a pair's link broke */
#define CCM_FLAPS_MAX      8u /* broken connections of one agent, one after the other */
/* After a connection that has lasted longer than this number times timeout_ms, earlier breaks do
 * not count towards CCM_FLAPS_MAX. */
#define CCM_FLAP_TIMES 2u
/* The time for a new link between hosts whose last link was silent; new_ms is the time for any
 * other new link. */
#define CCM_TRY_MS(new_ms) ((new_ms) / 5 * 3)
#define CCM_RING_STEPS     100000u
/* The looks at links that one search may take: about 50 ms, during which no agent is answered. */
#define CCM_TOUR_WORK 20000000u
/* The time for which rings are tried while members do not reach each other. */
#define CCM_SEARCH_MS(round_ms) (2 * (round_ms))
#define CCM_ANSWERED_OTHERWISE                                                                     \
	"this peer and the others got different answers about pending peers: call pcclConnect "    \
	"again"
/* Numbers that a takeover skips because others may have used them. */
#define CCM_UNHEARD    (UINT64_C(1) << 20)
#define CCM_TERM_SHIFT 12u /* first_number >> this is the least term */
#define CCM_VIEW_SHIFT 22u /* term << this is the least view id */
/* Numbers from other hosts must be lower, so that counters never wrap. */
#define CCM_NUMBER_MAX (UINT64_C(1) << 62)
/* Connections that are found without hashing, if their numbers are consecutive. */
#define CCM_CONNS        16384u
#define CCM_RESERVED_MAX 16u   /* tags of a group with a reserved seq */
#define CCM_LOST_MAX     4096u /* lost peers that are remembered */

struct ccm_agent;
struct ccm_membership;
struct ccm_group;
struct ccm_op;

/* Counts consecutive connections of one agent that broke. All of them except the first one broke
 * soon after they were opened, and no call of the agent's peers has ended in the meantime. */
struct ccm_flaps {
	uint32_t n;
	uint64_t first_ns;
	uint64_t ballots[WIRE_BALLOTS]; /* the highest in votes of its peers */
};

/* Counts consecutive operations during each of which a link broke. */
struct ccm_streak {
	uint32_t n;
	uint64_t round; /* the last committed round at the last report, plus 1. It detects the
			   second report of the same break: both ends report it. */
	bool counts;    /* the last break is counted in n */
	uint64_t bytes; /* an operation of at least this size shows that the links work */
};

/* Agents, peers and memberships. Fields that every vote reads come first, in as few cache lines as
 * possible. With many peers nothing else costs as much. */
struct ccm_agent {
	UT_hash_handle hh; /* by conn, in ccm->agents */
	uint32_t conn;
	bool greeted;        /* hello is valid */
	bool claimed;        /* holds its agent id: in ccm->by_id */
	bool local;          /* on the master's host */
	uint32_t reopens;    /* WM_LINK_REOPEN messages sent to it on this connection */
	bool dead;           /* waits for ccm_reap, which frees it */
	bool disconnected;   /* has no connection: in ccm->disconnected instead of ccm->agents */
	bool knows_run;      /* it, or a peer that joined through it, was in the run before this
				connection */
	bool resuming;       /* is sending its snapshot of the run; RESUME ends this */
	bool hello_deferred; /* its hello is not answered yet */
	bool restored;       /* disconnected: known from the journal only */
	bool list_sent; /* a view with all its groups was sent on this connection; it has named the
			   first lost_named of ccm->losses */
	uint64_t lost_named;
	bool promoted; /* used in ccm_takeover.c only: the round that it had prepared was committed
			*/
	struct ccm_membership *memberships;
	uint32_t n_memberships, n_peers, n_accepted;
	/* the last round that the agent was part of */
	uint32_t n_failures;
	uint64_t round;
	bool reported;
	bool overdue;      /* the master has reported for it: its own report comes too late */
	bool moved;        /* its addresses have changed since the round was sent */
	bool round_accept; /* the round that was sent to it accepts newcomers */
	struct cc_detect life;
	uint64_t spoke_ns; /* time of its last message */
	uint64_t no;       /* its number in the core; never reused */
	struct wm_failure *failures;
	struct ccm_snapshot *snapshot; /* while recovering: its snapshot, or NULL */
	uint64_t disconnected_ns, acked_ns;
	uint32_t suspect_from, suspect_to; /* used in ccm_evict.c only */
	bool measuring;                    /* it has not reported on its last WM_MEASURE */
	bool ordered;                      /* it has an order to measure, which was not stopped */
	bool shunned;                      /* its host has failed as a newcomer */
	uint64_t shunned_ns;               /* shunned: it is not tried before this time */
	uint64_t admitted_ns; /* when it was admitted as a newcomer to a run with members; 0: it was
				 not */
	struct ccm_streak breaks; /* since its admission: breaks of its links to earlier members */
	uint64_t breaks_with;     /* number of the other agent at the first of these breaks */
	bool breaks_with_others;
	struct cc_addr from;
	struct wm_hello hello;
	struct ccm_flaps flaps; /* copied to the agent that its peers move to */
	UT_hash_handle hh_id;
	struct ccm_agent *next_dead;
	struct ccm_agent *prev_ab, *next_ab; /* in ccm->disconnected */
};

struct ccm_membership_key {
	uint64_t agent_no, group;
};

struct ccm_peer {
	UT_hash_handle hh;
	struct ccm_membership *membership;
	struct cc_id id;
	enum ccm_connection_phase phase;
	enum ccm_connection_state state; /* written by ccm_state.c only */
	uint64_t state_since;
	uint64_t round;     /* the last round in which it was a candidate */
	uint32_t slot;      /* ACCEPTED: index of its bit in the group's operations */
	uint32_t n_ops;     /* operations it has voted for */
	uint32_t n_running; /* those of them that have started */
	bool voted[WIRE_BALLOTS];
	bool leaving;         /* leaves by itself, and is removed in this step */
	bool untold;          /* accepted, but its agent still waits for the answer to its join */
	bool optimize_failed; /* its last vote was one on an optimization, which failed */
	bool waits_on_main;   /* the thread that waits for waits_on is the peer's main thread */
	bool helper;     /* its process has, besides the main thread, another thread that sometimes
			    waits */
	bool shares;     /* another peer of the agent has the same thread */
	uint8_t n_alone; /* how often its votes were answered as unmet since it last did anything
			    else */
	uint64_t acted_ns;       /* when it last voted, or when its last wait ended */
	struct ccm_op *waits_on; /* the peer does nothing until this operation, which has not
				    started, ends; or NULL */
	bool waits_on_any; /* the peer goes on when any of the operations that it has voted for
			      ends; none of them has started */
	bool any_meets;    /* used by find_ends: one of these operations can end */
	struct ccm_peer *next, *prev; /* in membership->peers: accepted peers first, then registered
					 ones, each in the order of joining */
	uint64_t stopped_ns; /* since when its process is stopped, as its agent reports; 0: it runs
			      */
	/* while recovering */
	bool prepared; /* becomes a member if the round that its agent had prepared was committed */
	bool believed; /* accepted because its agent says so */
	bool restarted;   /* accepted, and has come back through a new agent */
	uint64_t view_id; /* accepted: the id of the last view that was sent to its agent */
	uint64_t ballots[WIRE_BALLOTS]; /* accepted: the last ballots whose end it knows */
	struct ccm_raw_vote {
		bool is;
		uint64_t number;
	} raw_votes[WIRE_BALLOTS];         /* votes that are not counted yet */
	struct wm_waits_for raw_waits_for; /* kind NONE: its agent has not reported a wait */
	struct cc_id token;
	char name[WM_NAME_MAX];
	uint32_t pid, pool_size;
	uint64_t thread; /* number of its main thread among those of its agent; 0: not known */
};

struct ccm_membership {
	struct ccm_membership_key key;
	struct ccm_agent *agent;
	struct ccm_group *group;
	struct ccm_peer *peers;
	uint32_t n_peers, n_accepted;
	uint32_t n_asleep;     /* registered peers whose processes are stopped */
	uint32_t n_candidates; /* its peers that the round in progress admits or keeps */
	uint32_t slot;         /* index of its part in the group's operations */
	struct ccm_membership *next_a, *prev_a; /* in agent->memberships */
	struct ccm_membership *next_g, *prev_g; /* in group->memberships */
	bool in_ring;                           /* it is in group->ring, at index pos */
	uint32_t pos;
	uint32_t next_pos; /* index in group->next_ring, when n_candidates > 0 */
	uint32_t at;       /* used in ccm_ring.c only: index in the given order */
	/* The number of the agent at the other end of the link from here, if that agent has lost
	 * the link, so that it must be reopened; else 0. */
	uint64_t reopen_to;
	bool mesh_up; /* in_ring: its links to all other hosts of the ring are up */
	bool plan_up; /* in_ring: its links to its neighbours in the group's rings are up */
	/* Its place in the rings of group->plan and group->proposal, from 1; 0: none. Those of ring
	 * 0 are used only when the proposal is put in force. */
	uint32_t ring_at[CC_RINGS_MAX], proposed_at[CC_RINGS_MAX];
	bool ready;         /* a newcomer: all links that it would have in a ring are proven */
	bool slow;          /* a newcomer: other newcomers do not wait for it */
	uint64_t probed_ns; /* a newcomer: when its probes began; 0: not yet */
	uint32_t suspect_from, suspect_to;
	bool evicted;    /* used in ccm_evict.c only: its peers will be kicked */
	bool short_of;   /* used in ccm_evict.c only: an agent has reached a limit */
	char *evict_why; /* the reason */
	struct ccm_membership *next_evicted;
	bool reaping;
	struct ccm_membership *next_reap;
	UT_hash_handle hh;
};

/* Small numbers. The number that was given back last is used first; giving one back never needs
 * memory. */
struct ccm_slots {
	uint32_t n; /* numbers handed out so far, including those that are free again */
	uint32_t *free, n_free;
	size_t cap;
};

/* The reserved seq of a tag. Agents may begin this attempt speculatively. */
struct ccm_reserved {
	uint64_t tag, seq;          /* seq 0: none */
	uint64_t round, generation; /* void when one of them has changed */
	enum cc_algo route;
};

/* Several weighted rings of a group. */
struct ccm_plan {
	uint32_t n; /* 0 or 1: only the ring of the group */
	uint16_t shares[CC_RINGS_MAX];
	double rate, bound; /* predicted, see struct ccm_solution; 0: not known */
};

struct ccm_group {
	uint32_t id;
	struct ccm_membership
		*memberships; /* in the order of their first peers, which is the preferred ring */
	uint32_t n_memberships, n_peers, n_accepted;
	uint32_t n_votes[WIRE_BALLOTS]; /* votes of its peers in ballots that have not ended */
	struct ccm_membership **ring;   /* the ring in force: memberships with accepted peers */
	uint32_t n_ring;
	uint32_t n_disconnected;           /* accepted peers on disconnected agents */
	struct ccm_membership **next_ring; /* planned in the round in progress */
	uint32_t n_next, next_pool;
	/* The weighted rings that are wanted, and those that the ring in force and the planned one
	 * allow; NULL: only the ring itself. */
	struct ccm_plan plan;
	struct cc_rings *rings, *next_rings;
	bool proposed; /* the next round puts the proposal in force */
	struct ccm_plan proposal;
	uint64_t problem; /* number of the last CCM_ACT_SOLVE; 0: none */
	/* The predicted rate of a direct exchange, as of the last problem; 0: not known. */
	double direct;
	double achieved; /* see struct ccm_plan_info; 0: no large operation has ended */
	/* When it was solved last: the epoch after that, and ccm->n_links_changed. */
	uint64_t solved_epoch, solved_links;
	bool solving;        /* its solution has not come yet */
	bool searching;      /* other solutions may follow, see struct ccm_solution */
	struct cc_id *asked; /* the agents of the problem's hosts */
	uint32_t n_asked;
	/* A better solution of the problem that came later; better.n 0: none. The next optimization
	 * or topology vote proposes it. */
	struct ccm_solution better;
	uint16_t *better_order;
	struct ccm_op *ops;
	struct ccm_op *sync;       /* the synchronization among ops, or NULL */
	struct ccm_revision *last; /* ccm_sync.h; NULL: nothing has been synchronized */
	uint32_t n_waited_ops; /* operations for which a peer waits while it does nothing else */
	uint32_t n_late;       /* operations in ccm->late */
	unsigned late_for;     /* hash of the text that was last logged for a late operation */
	bool stopped;          /* agents were told that processes of some peers are stopped */
	bool stopped_news;     /* agents are to be told again, with the next tick */
	uint64_t generation;   /* m->last_generation at the group's last loss */
	struct wire_view at_generation; /* the first view that was sent with generation
					   at_generation_no; view id 0: none yet */
	uint64_t at_generation_no;      /* at_generation is valid only if this equals generation */
	bool generation_sent;           /* the loss was announced, and nothing has started since */
	uint64_t n_ended;               /* attempts that have ended; the last ones are remembered */
	struct wm_outcome ended[WM_OUTCOMES_MAX]; /* index: n_ended % WM_OUTCOMES_MAX */
	uint32_t n_reserved;                      /* entries of `reserved` that were ever taken */
	struct ccm_reserved reserved[CCM_RESERVED_MAX]; /* index: n_reserved % CCM_RESERVED_MAX */
	struct ccm_slots peer_slots, membership_slots;
	bool failed; /* its links failed, or no ring is possible; cleared when this is judged */
	bool lost;   /* an accepted peer or its agent is gone, and operations are not aborted yet */
	bool halt;   /* lost: every operation must end, even a synchronization that has started */
	uint32_t n_lost;
	char loss[WM_TEXT_MAX]; /* a sentence about the last loss */
	/* while recovering */
	bool interrupted;             /* the generation must be raised; loss says why */
	uint32_t n_lost_ever, n_left; /* lost accepted peers; those lost while recovering */
	uint64_t known_view_id;
	uint32_t known_world_size; /* accepted peers in the view known_view_id */
	uint32_t n_lost_before;    /* accepted peers that were lost while ccm->lost_before is true;
				      `loss` names the first */
	struct ccm_group *next_lost;
	UT_hash_handle hh;
};

struct ccm_op_key {
	uint32_t group;
	uint32_t is_sync;
	uint64_t tag; /* is_sync: 0 */
};

struct ccm_part {                          /* one membership's share of an operation */
	struct ccm_membership *membership; /* NULL: no peer of it has voted */
	uint32_t n_votes;
	bool reported;
	uint64_t reported_ns;
	uint64_t sent; /* bytes that it had sent when it reported a standstill: ccm_standstill.c */
	uint64_t still_ns; /* another route than the ring: when it last reported a standstill */
	bool start_sent;   /* a synchronization: OP_START was sent to it */
};

struct ccm_op {
	struct ccm_op_key key;
	struct ccm_group *group;
	enum ccm_collective_state state; /* written by ccm_state.c only */
	uint64_t seq;                    /* 0 until it starts */
	uint64_t spec_seq; /* before the start: the seq under which all voters so far have begun it
			      speculatively; or 0 */
	uint64_t started_ns;
	uint64_t born_ns,
		changed_ns;         /* time of the first vote; of the last vote, start or report */
	struct wm_op_params params; /* of the first vote */
	enum cc_algo route;         /* with seq */
	uint64_t epoch;             /* with seq: all its hosts start it with this one */
	struct ccm_sync *sync;      /* ccm_sync.h; NULL: an all-reduce */
	uint64_t generation;        /* the group's generation: the same in all votes */
	uint32_t abort_code; /* not 0: it ends with this code once all have voted, because a vote
				differed or a call failed locally; text says which */
	char text[WM_TEXT_MAX];
	uint32_t n_votes;
	uint64_t *voted; /* bit per peer slot */
	uint32_t n_words;
	struct ccm_part *parts; /* by membership slot */
	uint32_t n_parts;       /* length of parts */
	uint32_t n_voters;      /* parts with votes */
	uint32_t n_reported;
	uint32_t n_waiting; /* not started: peers that do nothing but wait for it */
	bool meets;         /* used in ccm_unmet.c only: it can end */
	bool ready; /* all votes are here, but a round, a topology vote or another operation is in
		       the way */
	bool late; /* it has not started for seconds, and its voters were told for whom they wait */
	bool logged;        /* this was logged, too */
	uint64_t looked_ns; /* late: when this was last looked at */
	unsigned text_hash; /* hash of the text that its voters were told */
	UT_hash_handle hh;  /* by key, in ccm->ops */
	UT_hash_handle hh_seq;
	UT_hash_handle hh_spec;
	struct ccm_op *prev, *next;     /* in group->ops */
	struct ccm_op *prev_r, *next_r; /* in ccm->ready */
	struct ccm_op *prev_w, *next_w; /* not started: in ccm->fresh or, if late, in ccm->late */
};

#endif
