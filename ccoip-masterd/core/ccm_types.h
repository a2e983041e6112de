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
#define CCM_CONTRADICTS                                                                            \
	"the peer was told of a success that no other peer knows: call pcclConnect again"
#define CCM_WAS_LOST       "this peer was declared lost by the master: call pcclConnect again"
#define CCM_FAILED_UNHEARD "the operation failed on another host; see the log of the master"
#define CCM_BREAKS_MAX     3u /* of a pair's links, each amid an operation, in a row */
#define CCM_FLAPS_MAX      8u /* of an agent's connections, in a row */
#define CCM_FLAP_TIMES     2u /* the time for silence: what lasts longer is none of these */
/* Of the time for any other new link. */
#define CCM_TRY_MS(new_ms) ((new_ms) / 5 * 3)
#define CCM_RING_STEPS     100000u
#define CCM_TOUR_WORK      20000000u /* looks at links: about 50 ms, in which nobody is answered */
/* While members do not reach each other, rings are tried for so long. */
#define CCM_SEARCH_MS(round_ms) (2 * (round_ms))
#define CCM_ANSWERED_OTHERWISE                                                                     \
	"this peer and the others got different answers about pending peers: call pcclConnect "    \
	"again"
#define CCM_UNHEARD      (UINT64_C(1) << 20) /* numbers left out that others may have used */
#define CCM_TERM_SHIFT   12u                 /* terms are counted slower than attempts, */
#define CCM_VIEW_SHIFT   22u                 /* and view ids faster than terms */
#define CCM_NUMBER_MAX   (UINT64_C(1) << 62) /* no number is that high: it would never wrap */
#define CCM_CONNS        16384u              /* found without hashing, if numbered in a row */
#define CCM_RESERVED_MAX 16u   /* tags of a group with a number for their next attempt */
#define CCM_LOST_MAX     4096u /* peers remembered that were lost */

struct ccm_agent;
struct ccm_membership;
struct ccm_group;
struct ccm_op;

/* Connections of an agent that broke soon, in a row. No call of its peers has ended since. */
struct ccm_flaps {
	uint32_t n;
	uint64_t first_ns;
	uint64_t topo_ballot, pending_ballot; /* the highest that votes of its peers have named */
};

/* Operations in a row amid which a link broke. */
struct ccm_streak {
	uint32_t n;
	uint64_t round; /* the last one committed when one was told, plus 1: both ends tell */
	bool counts;    /* that one */
	uint64_t bytes; /* an operation of so many shows that the links work */
};

/* Agents, peers and memberships: what every vote touches comes first, in as few lines of the cache
 * as can be. With many peers nothing else costs as much. */
struct ccm_agent {
	UT_hash_handle hh; /* by conn, in ccm->agents */
	uint32_t conn;
	bool unhashed;
	bool greeted;      /* hello is valid */
	bool claimed;      /* holds its agent id: in ccm->by_id */
	bool local;        /* on this host */
	bool dead;         /* waits for ccm_reap */
	bool disconnected; /* without connection: in ccm->absent, not in ccm->agents */
	bool knows_run;  /* it, or a peer that came by it, was in the run before this connection */
	bool resuming;   /* says what it knows of the run; RESUME ends it */
	bool up_to_date; /* resuming: it was told the view since its hello */
	bool hello_deferred; /* its hello is not answered yet */
	bool restored;       /* absent: from the journal */
	bool promoted;       /* only within ccm_takeover.c: its prepared round was committed */
	struct ccm_membership *memberships;
	uint32_t n_memberships, n_peers, n_accepted;
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
	struct ccm_snapshot *snapshot; /* while recovering: what it has said, or NULL */
	uint64_t disconnected_ns, acked_ns;
	uint32_t suspect_from, suspect_to; /* only within ccm_evict.c */
	bool shunned;                      /* its host has failed as a newcomer: */
	uint64_t shunned_ns;               /* it is not tried before */
	uint64_t admitted_ns;              /* as a newcomer of a run that had members; 0: not so */
	struct ccm_streak breaks;          /* since then, of its links to earlier members */
	uint64_t breaks_with;              /* the first of these, and others as well */
	bool breaks_with_others;
	struct cc_addr from;
	struct wm_hello hello;
	struct ccm_flaps flaps; /* goes where its peers go */
	UT_hash_handle hh_id;
	struct ccm_agent *next_dead;
	struct ccm_agent *prev_ab, *next_ab; /* in ccm->absent */
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
	uint64_t round;     /* the last round it was a candidate of */
	uint32_t slot;      /* ACCEPTED: its bit in the operations of the group */
	uint32_t n_ops;     /* operations it has voted for */
	uint32_t n_running; /* of them, started */
	bool topo_voted, pending_voted;
	bool leaving;       /* by itself: it is removed in this step */
	bool untold;        /* accepted, but its agent still waits for the answer to its join */
	bool waits_on_main; /* it is the peer's main thread that waits for `blocked` */
	bool helper;        /* another thread of its process than the main one waits at times */
	bool shares;        /* another peer of the agent has the same thread */
	uint8_t n_alone;   /* votes of it that were answered in a row, since it did anything else */
	uint64_t acted_ns; /* when it voted last, or what it waited for ended */
	struct ccm_op *waits_on; /* it does nothing until that, not started, ends; or NULL */
	bool waits_on_any; /* or until another one ends that it has voted for; none has started */
	bool any_meets;    /* find_ends: one of these comes to an end */
	bool unhashed;
	struct ccm_peer *next,
		*prev;       /* in membership->peers: accepted ones first, each by joining */
	uint64_t stopped_ns; /* since when its process is stopped, as its agent says; 0: it runs */
	/* while recovering */
	bool prepared;  /* a member if its agent's prepared round was committed */
	bool believed;  /* accepted because its agent says so */
	bool restarted; /* accepted, and its agent is a new one */
	uint64_t snap_topo_ballot,
		snap_pending_ballot; /* accepted: the votes that it knows the end of, or 0 */
	uint64_t snap_epoch;         /* likewise: the last one that it was in */
	uint64_t snap_prepared;      /* likewise: the last round that it was ready for */
	uint64_t snap_view_id;       /* likewise: of the view that it was told last */
	bool raw_topo, raw_pending;  /* votes that are not counted yet */
	uint64_t raw_topo_ballot, raw_pending_ballot;
	struct wm_waits_for raw_waits_for; /* kind NONE: nothing was said */
	struct cc_id token;
	char name[WM_NAME_MAX];
	uint32_t pid, pool_size;
	uint64_t thread; /* its main thread, among those of its agent; 0: not known */
};

struct ccm_membership {
	struct ccm_membership_key key;
	struct ccm_agent *agent;
	struct ccm_group *group;
	struct ccm_peer *peers;
	uint32_t n_peers, n_accepted;
	uint32_t n_asleep;                      /* registered peers whose processes are stopped */
	uint32_t n_candidates;                  /* of the round in progress */
	uint32_t slot;                          /* its part in the operations of the group */
	struct ccm_membership *next_a, *prev_a; /* in agent->memberships */
	struct ccm_membership *next_g, *prev_g; /* in group->memberships */
	bool in_ring;                           /* in group->ring, at pos */
	uint32_t pos;
	uint32_t next_pos;  /* in group->next_ring, when n_candidates > 0 */
	uint32_t at;        /* only within ccm_ring.c: in the order that is given */
	uint64_t reopen_to; /* this agent has lost the link from here: another one is to be opened;
			     * or 0 */
	bool ready;         /* a newcomer: the links that a ring would have are proven */
	bool slow;          /* likewise: other newcomers are not to wait for it */
	uint64_t probed_ns; /* likewise: since when it is probed; 0: not yet */
	uint32_t suspect_from, suspect_to;
	bool evicted;    /* only within ccm_evict.c: its peers are to be kicked */
	bool short_of;   /* likewise: for a limit that an agent has reached */
	char *evict_why; /* why */
	struct ccm_membership *next_evicted;
	bool reaping;
	struct ccm_membership *next_reap;
	bool unhashed;
	UT_hash_handle hh;
};

/* Small numbers, lowest reused first; giving one back never needs memory. */
struct ccm_slots {
	uint32_t n; /* handed out so far, free ones included */
	uint32_t *free, n_free, cap;
};

/* An attempt that agents may begin speculatively. */
struct ccm_reserved {
	uint64_t tag, seq;          /* seq 0: none */
	uint64_t round, generation; /* it is void when either has changed */
};

struct ccm_group {
	uint32_t id;
	struct ccm_membership
		*memberships; /* in the order of their first peers: the preferred ring */
	uint32_t n_memberships, n_peers, n_accepted, n_topo;
	struct ccm_membership **ring; /* in force: memberships with accepted peers */
	uint32_t n_ring;
	uint32_t n_disconnected;           /* of n_accepted: on disconnected agents */
	struct ccm_membership **next_ring; /* of the round in progress */
	uint32_t n_next, next_pool;
	struct ccm_op *ops;
	struct ccm_op *sync;       /* one of them, or NULL */
	struct ccm_revision *last; /* ccm_sync.h; NULL: nothing has been synchronized */
	uint32_t n_waited_ops;     /* of ops: that peers do nothing else than wait for */
	uint32_t n_late;           /* of ops, in ccm->late */
	unsigned late_for;         /* hash of what was logged of the last one */
	bool stopped;              /* its agents were told that processes of peers are */
	bool stopped_news;         /* they are to be told anew, with the next tick */
	uint64_t generation;       /* m->last_generation at the group's last one */
	struct wire_view
		at_generation;     /* as first told with at_generation_no; view id 0: not yet */
	uint64_t at_generation_no; /* it is of no use in another generation */
	bool generation_sent;      /* of that one, and nothing has started since */
	uint64_t n_ended;          /* attempts that had started; the last ones are remembered */
	struct wm_outcome ended[WM_OUTCOMES_MAX];       /* by n_ended % WM_OUTCOMES_MAX */
	uint32_t n_reserved;                            /* tags that were ever granted anything */
	struct ccm_reserved reserved[CCM_RESERVED_MAX]; /* by n_reserved % CCM_RESERVED_MAX */
	struct ccm_slots peer_slots, membership_slots;
	bool failed; /* its links were, or no ring is possible: until it is judged */
	bool lost;   /* an accepted peer or its agent is gone, operations are not aborted yet */
	bool halt; /* lost: nothing of it may go on, not even a synchronization that has started */
	uint32_t n_lost;
	char loss[WM_TEXT_MAX]; /* the last one */
	/* while recovering */
	bool interrupted;             /* the generation is to be raised; loss says why */
	uint32_t n_lost_ever, n_left; /* accepted peers; of them, while recovering */
	uint64_t known_view_id;
	uint32_t known_world_size; /* accepted peers, as an agent was told with known_view_id */
	bool too_many;             /* have come for that: ccm_lost_before.c */
	uint32_t n_lost_before;    /* were lost while m->lost_before; loss says who was first */
	uint64_t snap_view_id;     /* the highest that its peers were told of, and */
	uint32_t snap_world_size;  /* its accepted peers as of then; of these, */
	uint32_t n_snapshots;      /* so many have said so, some may have left since, */
	uint64_t snap_ring_epoch;  /* and the last round that they know to be committed */
	struct ccm_group *next_lost;
	bool unhashed;
	UT_hash_handle hh;
};

struct ccm_op_key {
	uint32_t group;
	uint32_t is_sync;
	uint64_t tag; /* is_sync: 0 */
};

struct ccm_part {                          /* one membership's share of an operation */
	struct ccm_membership *membership; /* NULL: has not voted */
	uint32_t n_votes;
	bool reported;
	uint64_t reported_ns;
	uint64_t sent;   /* bytes that it had sent long before it said so: ccm_standstill.c */
	bool start_sent; /* of a synchronization: OP_START has gone out */
};

struct ccm_op {
	struct ccm_op_key key;
	struct ccm_group *group;
	enum ccm_collective_state state; /* written by ccm_state.c only */
	uint64_t seq;                    /* 0 until it starts */
	uint64_t spec_seq; /* until then: all votes so far say that it has begun under this; or 0 */
	uint64_t born_ns, changed_ns; /* the first vote; the last vote, start or report */
	struct wm_op_params params;   /* of the first vote */
	struct ccm_sync *sync;        /* ccm_sync.h; NULL: an all-reduce */
	uint64_t generation;          /* of the group: the same in all votes */
	uint32_t abort_code; /* not 0: how it ends once all have voted, for a vote differed, or a
			      * call has failed where it was made; text says which */
	char text[WM_TEXT_MAX];
	uint32_t n_votes;
	uint64_t *voted; /* bit per peer slot */
	uint32_t n_words;
	struct ccm_part *parts; /* by membership slot */
	uint32_t n_parts;       /* length of parts */
	uint32_t n_voters;      /* parts with votes */
	uint32_t n_reported;
	uint32_t n_waiting; /* not started: peers that do nothing else than wait for it */
	bool meets;         /* only within ccm_unmet.c: it comes to an end */
	bool ready;         /* all votes are here, a round or a topology vote is in the way */
	bool late;   /* it has not started for seconds: those who voted were told whom they wait for
		      */
	bool logged; /* and so was the log */
	uint64_t looked_ns; /* late: when that was looked at last, and */
	unsigned text_hash; /* a hash of what they were told */
	bool unhashed;
	UT_hash_handle hh; /* by key, in ccm->ops */
	UT_hash_handle hh_seq;
	UT_hash_handle hh_spec;
	struct ccm_op *prev, *next;     /* in group->ops */
	struct ccm_op *prev_r, *next_r; /* in ccm->ready */
	struct ccm_op *prev_w, *next_w; /* not started: in ccm->fresh or, if late, in ccm->late */
};

#endif
