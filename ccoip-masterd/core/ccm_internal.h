/* SPDX-License-Identifier: MIT
 *
 * The master core's own structures. Nobody outside ccoip-masterd/core includes this.
 *
 *   ccm.c           construction, events in, what is settled at the end of each step
 *   ccm_action.c    actions out, text
 *   ccm_state.c     named states; the only writer of them
 *   ccm_agent.c     connections: hello, silence, the end; how an agent is reached
 *   ccm_absent.c    agents that are gone while their peers may come back; how they do
 *   ccm_resume.c    a run that is taken over: its term, what the agents say of it
 *   ccm_conclude.c  what follows from that
 *   ccm_restore.c   the journal
 *   ccm_member.c    peers, seats and groups: join, leave, kick, what a loss means
 *   ccm_vote.c      topology and pending votes, world sizes
 *   ccm_round.c     connection rounds up to the commit
 *   ccm_verdict.c   rounds that failed: who goes, which pairs are avoided
 *   ccm_ring.c      ring orders that avoid failed pairs
 *   ccm_op.c        operations
 *   ccm_waits.c     who is awaited by what has not started, and who is told of it
 *   ccm_view.c      looking inside
 *   ccm_check.c     the invariants
 *
 * A *seat* is one agent's place in one group. Handlers change the state and leave marks (lost
 * groups, a stale round, ...); ccm_settle draws the conclusions in one fixed order: new world,
 * aborts, rounds, votes, operations. What is gone is unlinked at once and freed by ccm_reap, after
 * the aborts that still name it.
 *
 * Cost: a message costs O(1) plus the agents and peers that it has consequences for; nothing scans
 * all peers but commits, which are theirs. Iteration is in the order of arrival (uthash keeps it).
 */
#ifndef CCM_INTERNAL_H
#define CCM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM             1
#define HASH_FUNCTION(key, len, hash) ((hash) = ccm_hash(key, len))
#define uthash_nonfatal_oom(obj)      ((obj)->unhashed = true)
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
#define CCM_REORDER_MS      5000u  /* for trying orders of a ring before somebody has to go */
#define CCM_TRY_MS          1200u  /* for a new link between two that hear nothing of each other */
#define CCM_ALONE           "the group has no other peer now"
#define CCM_RING_STEPS      100000u
#define CCM_UNHEARD         (UINT64_C(1) << 20) /* numbers left out that others may have used */
#define CCM_TERM_SHIFT      12u                 /* terms are counted slower than attempts, */
#define CCM_VERSION_SHIFT   22u                 /* and versions of the world faster than terms */
#define CCM_NUMBER_MAX      (UINT64_C(1) << 62) /* no number is that high: it would never wrap */
#define CCM_CONNS           16384u              /* found without hashing, if numbered in a row */
#define CCM_LOST_MAX        4096u               /* peers remembered that were lost */

/* ccm.c */
unsigned ccm_hash(const void *key, size_t len);

struct ccm_agent;
struct ccm_seat;
struct ccm_group;
struct ccm_op;

/* Agents, peers and seats: what every vote touches comes first, in as few lines of the cache as can
 * be. With many peers nothing else costs as much. */
struct ccm_agent {
	UT_hash_handle hh; /* by conn, in ccm->agents */
	uint32_t conn;
	bool unhashed;
	bool greeted;    /* hello is valid */
	bool claimed;    /* holds its agent id: in ccm->by_id */
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
	bool round_accept; /* it was told that the round accepts */
	struct cc_detect life;
	uint64_t no; /* never used again */
	struct wm_failure *failures;
	struct ccm_told *told; /* while recovering: what it has said, or NULL */
	uint64_t absent_ns, acked_ns;
	uint32_t blame_from, blame_to; /* only within ccm_verdict.c */
	struct cc_addr from;
	struct wm_hello hello;
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
	bool untold; /* accepted, but its agent still waits for the answer to its join */
	bool unhashed;
	struct ccm_peer *next, *prev; /* in seat->peers: accepted ones first, each by joining */
	uint64_t stopped_ns; /* since when its process is stopped, as its agent says; 0: it runs */
	/* while recovering */
	bool prepared;                    /* a member if its agent's prepared round was committed */
	bool believed;                    /* accepted because its agent says so */
	bool restarted;                   /* accepted, and its agent is a new one */
	uint64_t told_topo, told_pending; /* accepted: the votes that it knows the end of, or 0 */
	bool raw_topo, raw_pending;       /* votes that are not counted yet */
	uint64_t raw_topo_turn, raw_pending_turn;
	struct cc_id token;
	char name[WM_NAME_MAX];
	uint32_t pid, pool_size;
};

struct ccm_seat {
	struct ccm_seat_key key;
	struct ccm_agent *agent;
	struct ccm_group *group;
	struct ccm_peer *peers;
	uint32_t n_peers, n_accepted;
	uint32_t n_candidates;            /* of the round in progress */
	uint32_t slot;                    /* its part in the operations of the group */
	struct ccm_seat *next_a, *prev_a; /* in agent->seats */
	struct ccm_seat *next_g, *prev_g; /* in group->seats */
	bool in_ring;                     /* in group->ring, at pos */
	uint32_t pos;
	uint32_t next_pos; /* in group->next_ring, when n_candidates > 0 */
	uint32_t blame_from, blame_to;
	bool doomed; /* only within ccm_verdict.c: its peers are to be kicked */
	char *doom;  /* why */
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
	uint32_t n_late;   /* of them, in ccm->late */
	unsigned late_for; /* hash of what was logged of the last one */
	bool stopped;      /* its agents were told that processes of peers are */
	bool stopped_news; /* they are to be told anew, with the next tick */
	uint64_t losses;   /* m->last_loss at the group's last one */
	bool told;         /* of that one, and nothing has started since */
	uint64_t n_ended;  /* attempts that had started; the last ones are remembered */
	struct wm_outcome ended[WM_OUTCOMES_MAX]; /* by n_ended % WM_OUTCOMES_MAX */
	struct ccm_slots peer_slots, seat_slots;
	bool failed; /* its links were, or no ring is possible: until it is judged */
	bool lost;   /* an accepted peer or its agent is gone, operations are not aborted yet */
	uint32_t n_lost;
	char loss[WM_TEXT_MAX]; /* the last one */
	/* while recovering */
	bool interrupted;             /* to be counted in losses; loss says why */
	uint32_t n_lost_ever, n_left; /* accepted peers; of them, while recovering */
	uint64_t known_version;
	uint32_t known_world; /* accepted peers, as an agent was told with known_version */
	struct ccm_group *next_lost;
	bool unhashed;
	UT_hash_handle hh;
};

struct ccm_op_key {
	uint64_t group, tag;
};

struct ccm_part {              /* one seat's share of an operation */
	struct ccm_seat *seat; /* NULL: has not voted */
	uint32_t n_votes;
	bool reported;
};

struct ccm_op {
	struct ccm_op_key key;
	struct ccm_group *group;
	enum ccm_collective_state state; /* written by ccm_state.c only */
	uint64_t seq;                    /* 0 until it starts */
	uint64_t born_ns, changed_ns;    /* the first vote; the last vote, start or report */
	struct wm_op_params params;      /* of the first vote */
	uint64_t losses;                 /* of the group: the same in all votes */
	bool conflict;                   /* a vote differed: text says how */
	char text[WM_TEXT_MAX];
	uint32_t n_votes;
	uint64_t *voted; /* bit per peer slot */
	uint32_t n_words;
	struct ccm_part *parts; /* by seat slot */
	uint32_t n_parts;       /* length of parts */
	uint32_t n_voters;      /* parts with votes */
	uint32_t n_reported;
	bool ready;  /* all votes are here, a round or a topology vote is in the way */
	bool late;   /* it has not started for seconds: those who voted were told whom they wait for
		      */
	bool logged; /* and so was the log */
	uint64_t looked_ns; /* late: when that was looked at last, and */
	unsigned told;      /* a hash of what they were told */
	bool unhashed;
	UT_hash_handle hh; /* by key, in ccm->ops */
	UT_hash_handle hh_seq;
	struct ccm_op *prev, *next;     /* in group->ops */
	struct ccm_op *prev_r, *next_r; /* in ccm->ready */
	struct ccm_op *prev_w, *next_w; /* not started: in ccm->fresh or, if late, in ccm->late */
};

struct ccm_pair_key {
	uint64_t from, to; /* agent numbers */
};

/* `from` could not open its link to `to`. Both were members when it happened. */
struct ccm_pair {
	struct ccm_pair_key key;
	bool silent; /* nothing came through a link between them, and no new one has been tried
		      * since; or ccm_pairs_doubt */
	char text[WM_TEXT_MAX];
	bool unhashed;
	UT_hash_handle hh;
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
	struct wm_op_report report;
	bool used;
	bool unhashed;
	UT_hash_handle hh; /* by vote.seq, if that is not 0 */
	struct ccm_raw *prev, *next;
};

struct ccm_ask {
	struct wm_op_query q;
	struct ccm_ask *next;
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
	uint32_t n_ops, n_asks;
};

/* What all of them have said. */
struct ccm_tally {
	uint64_t epoch, committed, wired; /* the highest */
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
	struct ccm_op *ready;
	struct ccm_op *fresh; /* have not started, by age */
	struct ccm_op *late;  /* likewise, and have been looked at: by looked_ns */
	struct ccm_late topo_late, pending_late;
	bool stopped_news; /* of some group */
	uint64_t woke_ns;  /* when this process was suspended last, until then */
	struct ccm_pair *pairs;
	struct ccm_lost *gone; /* by peer, oldest first */
	uint64_t term;
	uint64_t stale;                   /* the term of a newer master, or 0 */
	uint64_t committed;               /* the last round that was */
	uint64_t wired;                   /* while recovering: the last that had been prepared */
	uint64_t topo_turn, pending_turn; /* votes that were answered */
	bool pending;                     /* the last answer */
	bool recovering, recovered;
	bool restored;       /* from the journal */
	bool renewed;        /* by ccm_renew: the term is still the same */
	bool key_unknown;    /* recovering: no agent has told the run's key */
	bool acked;          /* an agent of the run was told our term */
	bool committed_here; /* a round was, by this master */
	bool adopting;       /* hellos without a run wait */
	uint64_t born_ns;    /* of the first step */
	bool look;           /* recovering: it may be over */
	bool sent_away;      /* recovering: the few that came were, once */
	uint64_t recover_ns; /* when the first agent came, or 0 */
	uint64_t asked_ns;   /* when a peer came by a new agent, or 0 */
	uint64_t restored_epoch, restored_version;
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
	struct wm_outcome *ended; /* what the last master told, as far as it is known; by seq */
	uint32_t n_ended;
	uint64_t last_agent, last_round, last_seq, last_loss, epoch, world_version;
	uint32_t n_registered, n_accepted, n_topo, n_pending;
	uint32_t n_absent;                                    /* of n_accepted: on absent agents */
	uint64_t topo_since, pending_since, registered_since; /* when the count left 0 */
	struct ccm_round round;
	bool rewire;         /* links or rings are to be checked by a round */
	bool changed;        /* accepted members are gone since the last commit */
	uint64_t reorder_ns; /* since when orders of rings fail; 0: they do not */
	struct ccm_group *lost;
	struct ccm_seat *reap;
	struct ccm_agent *dead;
	uint64_t tick_ns, beat_ns;
	struct cc_detect any; /* the least bound is the same for all agents */
	uint64_t losses; /* accepted peers that are gone, by whatever way: goes with each vote */
	uint64_t leaves; /* those of them that left cleanly */
	uint64_t joins, kicks, ops_started, ops_done, ops_aborted, rounds;
	const char *broken; /* a transition that must not be */
	/* during a step */
	uint64_t now;
	struct ccm_actions *out;
	bool oom;                  /* sticks */
	struct ccm_action scratch; /* takes what found no memory */
};

/* ccm.c */
void ccm_settle(struct ccm *m);
static inline uint64_t ccm_age(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

/* ccm_action.c. Never NULL; valid until the next action. What the message points to: malloc'd. */
struct wm_msg *ccm_send(struct ccm *m, const struct ccm_agent *a, enum wm_type type);
/* One message to many: to those that ccm_send_to names before the next action. */
struct wm_msg *ccm_send_all(struct ccm *m, enum wm_type type);
void ccm_send_to(struct ccm *m, const struct ccm_agent *a); /* unless it has no connection */
struct wj_record *ccm_journal_action(struct ccm *m);
void ccm_scratch_clear(struct ccm *m);
void ccm_close(struct ccm *m, uint32_t conn, const char *text);
bool ccm_logs(const struct ccm *m, uint32_t level);
__attribute__((format(printf, 3, 4))) void ccm_log(
	struct ccm *m, uint32_t level, const char *fmt, ...);
/* Prints and cuts. */
__attribute__((format(printf, 3, 4))) void ccm_print(char *dst, size_t size, const char *fmt, ...);
/* Appends. */
__attribute__((format(printf, 3, 4))) void ccm_append(char *dst, size_t size, const char *fmt, ...);
/* Copies what another host sent: control characters become '?'. */
void ccm_copy(char *dst, size_t size, const char *src);
/* calloc(n ? n : 1, size); NULL sets m->oom. */
void *ccm_calloc(struct ccm *m, size_t n, size_t size);

/* ccm_state.c */
void ccm_peer_refresh(struct ccm *m, struct ccm_peer *p);
void ccm_op_set_state(struct ccm *m, struct ccm_op *o, enum ccm_collective_state s);
/* The state that follows from the flags. */
enum ccm_connection_state ccm_peer_state(const struct ccm *m, const struct ccm_peer *p);

/* ccm_agent.c */
struct ccm_agent *ccm_agent_find(const struct ccm *m, uint32_t conn);
/* Takes a out of ccm->agents. */
void ccm_agent_unhash(struct ccm *m, struct ccm_agent *a);
void ccm_agent_open(struct ccm *m, const struct ccm_event *ev);
/* "host (1.2.3.4:5)" or, before the hello, "1.2.3.4:5" */
const char *ccm_agent_label(const struct ccm_agent *a, char *buf, size_t size);
void ccm_agent_hello(struct ccm *m, struct ccm_agent *a, const struct wm_hello *h);
/* The connection is gone; so are its peers. */
void ccm_agent_lost(struct ccm *m, struct ccm_agent *a, const char *text);
/* Unlinks a, whose peers are gone; ccm_reap frees it. */
void ccm_agent_bury(struct ccm *m, struct ccm_agent *a);
/* Its peers are kicked, it gets the reason and is closed. */
__attribute__((format(printf, 4, 5))) void ccm_agent_kick(
	struct ccm *m, struct ccm_agent *a, uint32_t code, const char *fmt, ...);
void ccm_agent_tick(struct ccm *m);
/* At the beginning of each step: was the process suspended? */
/* gone: the connection whose end is the news, or 0 */
void ccm_agent_pause(struct ccm *m, uint32_t gone);
void ccm_agent_ack(struct ccm *m, struct ccm_agent *a);
/* It may come back. */
void ccm_agent_send_away(struct ccm *m, struct ccm_agent *a, const char *text);
/* Another connection of the same agent is dead. */
void ccm_agent_cut_half_open(struct ccm *m, struct ccm_agent *a);
/* How `to` reaches a. */
void ccm_agent_endpoint(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);

/* ccm_absent.c */
/* The connection is gone; accepted peers may come back. */
void ccm_agent_absent(struct ccm *m, struct ccm_agent *a, const char *text);
void ccm_absent_tick(struct ccm *m);
/* Of an absent agent, which goes with its last one. */
void ccm_absent_remove(struct ccm *m, struct ccm_peer *p, const char *why);
/* A peer that is known comes by another connection. True: it was moved or turned away. */
bool ccm_peer_return(
	struct ccm *m, struct ccm_agent *a, struct ccm_peer *p, const struct wm_join *j);
/* A peer that says that it was accepted is not known. */
void ccm_peer_stranger(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer);
void ccm_lost_note(struct ccm *m, const struct cc_id *peer);
void ccm_outcome_note(struct ccm_group *g, uint64_t seq, uint32_t code);
/* The code of an attempt that has ended; what nobody remembers has failed. */
uint32_t ccm_outcome_of(const struct ccm *m, const struct ccm_group *g, uint64_t seq);
/* Attempts of a master before this one, of which only their peers may know. */
void ccm_seqs_learn(struct ccm *m, const struct wm_op_query *q);
void ccm_op_query(struct ccm *m, struct ccm_agent *a, const struct wm_op_query *q);

/* ccm_resume.c */
/* After a good hello: whether a is of our run, who of us is stale, the answer. */
void ccm_resume_hello(struct ccm *m, struct ccm_agent *a);
/* p leaves its agent, which has said this. */
void ccm_told_left(struct ccm_told *t, const struct ccm_peer *p);
/* While recovering. True: the message, the join of an unknown peer, is dealt with. */
bool ccm_resume_msg(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg);
bool ccm_resume_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
/* At the beginning of each step. */
void ccm_resume_step(struct ccm *m);
/* False: still recovering, nothing else is to be settled. */
bool ccm_resume_settle(struct ccm *m);
void ccm_resuming_set(struct ccm *m, struct ccm_agent *a, bool resuming);
/* Its agent is another one than before. */
void ccm_peer_restarted(struct ccm *m, struct ccm_peer *p);
struct ccm_told *ccm_told_get(struct ccm *m, struct ccm_agent *a); /* NULL without memory */
void ccm_told_free(struct ccm_agent *a);
void ccm_tally(const struct ccm *m, struct ccm_tally *y);
/* The run has gone on without this agent: its peers were lost. */
bool ccm_told_behind(const struct ccm *m, const struct ccm_told *t, const struct ccm_tally *y);

/* ccm_restore.c */
/* All members; to be called before anything is sent that depends on them. */
void ccm_journal_members(struct ccm *m);
/* The losses since; likewise. */
void ccm_journal_lost(struct ccm *m);
void ccm_journal_note(struct ccm *m, const struct cc_id *peer); /* an accepted peer is lost */
void ccm_journal_void(struct ccm *m);                           /* it is nobody's run any more */
void ccm_restore_begin(struct ccm *m);                          /* in the first step */
void ccm_restore_outdated(struct ccm *m);
/* Begins again with what is known of the members, as if restored from a journal, in the same term:
 * no connection, no votes, no operations. gone: a connection that is closed already, or 0. */
void ccm_renew(struct ccm *m, uint32_t gone);

/* ccm_conclude.c */
void ccm_conclude(struct ccm *m);

/* ccm_member.c */
struct ccm_peer *ccm_peer_find(const struct ccm *m, const struct cc_id *id);
/* The peer that a names. NULL when it is unknown (pass over the message) or somebody else's (then a
 * has been kicked: look at a->dead). */
struct ccm_peer *ccm_peer_of(
	struct ccm *m, struct ccm_agent *a, const struct cc_id *id, const char *what);
struct ccm_seat *ccm_seat_find(const struct ccm *m, uint64_t agent_no, uint32_t group);
/* The same, where the agent is at hand. */
struct ccm_seat *ccm_seat_of(const struct ccm *m, const struct ccm_agent *a, uint32_t group);
/* NULL without memory. */
struct ccm_seat *ccm_seat_get(struct ccm *m, struct ccm_agent *a, uint32_t group);
/* To be freed by ccm_reap, if nobody takes it until then. */
void ccm_seat_vacate(struct ccm *m, struct ccm_seat *s);
/* Puts p, which is unlinked, at its place on s. */
void ccm_seat_add(struct ccm_seat *s, struct ccm_peer *p);
/* The same when p is on s and its phase has changed. */
void ccm_seat_reorder(struct ccm_seat *s, struct ccm_peer *p);
/* Registered; NULL without memory. */
struct ccm_peer *ccm_peer_new(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_ring_remove(struct ccm_group *g, struct ccm_seat *s);
/* a speaks for its peers from now on. */
void ccm_agent_claim(struct ccm *m, struct ccm_agent *a);
/* Why a cannot have one more peer in the group: NULL, or the sentence in buf. */
const char *ccm_seat_objection(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group, char *buf, size_t size);
/* The peer may not join: WM_KICK with this code. */
void ccm_join_refuse(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer, uint32_t code,
	const char *text);
/* The world of g is told anew when the step is settled; its operations go on. */
void ccm_group_changed(struct ccm *m, struct ccm_group *g);
/* The same, and g's operations are aborted and its losses counted. */
__attribute__((format(printf, 3, 4))) void ccm_group_interrupt(
	struct ccm *m, struct ccm_group *g, const char *fmt, ...);
/* What p has voted for at large does not count any more. */
void ccm_peer_withdraw(struct ccm *m, struct ccm_peer *p);
void ccm_member_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_member_leave(struct ccm *m, struct ccm_agent *a, const struct wm_leave *l);
__attribute__((format(printf, 4, 5))) void ccm_peer_kick(
	struct ccm *m, struct ccm_peer *p, uint32_t code, const char *fmt, ...);
/* A violation: kicks with "protocol violation: ...". */
__attribute__((format(printf, 3, 4))) void ccm_peer_violation(
	struct ccm *m, struct ccm_peer *p, const char *fmt, ...);
/* Unlinks and frees p; why: a clause for those who lose it. */
void ccm_peer_remove(struct ccm *m, struct ccm_peer *p, const char *why);
/* REGISTERED -> ACCEPTED. */
void ccm_peer_accept(struct ccm *m, struct ccm_peer *p);
/* "name@host pid 12" */
const char *ccm_peer_label(const struct ccm_peer *p, char buf[3 * WM_NAME_MAX]);
void ccm_loss_announce(struct ccm *m);
/* WM_WORLD to all that have accepted peers. */
void ccm_world_tell(struct ccm *m, const struct ccm_agent *a); /* to one agent */
void ccm_world_announce(struct ccm *m);
void ccm_reap(struct ccm *m);
void ccm_group_free(struct ccm_group *g); /* what it owns, and itself */
/* UINT32_MAX without memory. */
uint32_t ccm_slot_get(struct ccm *m, struct ccm_slots *s);
void ccm_slot_put(struct ccm_slots *s, uint32_t slot);

/* ccm_vote.c */
void ccm_vote_topology(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v);
void ccm_vote_pending(struct ccm *m, struct ccm_agent *a, const struct wm_peer *v);
/* A member, or its agent, knows the end of so many votes. Who is accepted later must count from
 * there, and every member has said so by then. */
void ccm_vote_learn(struct ccm *m, uint64_t topo, uint64_t pending);
bool ccm_topology_agreed(const struct ccm *m);
void ccm_pending_settle(struct ccm *m);
void ccm_world_totals(const struct ccm *m, struct wm_world *ret);
/* Fills in what a's own groups are; totals from ccm_world_totals. */
void ccm_world_own(struct ccm *m, const struct ccm_agent *a, struct wm_world *w);
/* Is that what w says already? */
bool ccm_world_fits(const struct ccm_agent *a, const struct wm_world *w);

/* ccm_round.c */
void ccm_round_report(struct ccm *m, struct ccm_agent *a, const struct wm_round_report *r);
void ccm_round_tick(struct ccm *m);
/* A WM_COMMIT to a that keeps its rings and accepts. */
struct wm_commit *ccm_commit_new(
	struct ccm *m, const struct ccm_agent *a, const struct wm_world *totals);
/* To all that it is called for, one after the other: c is what it has returned, NULL at first.
 * Nothing else may be sent in between. */
struct wm_commit *ccm_commit_to(struct ccm *m, const struct ccm_agent *a,
	const struct wm_world *totals, bool accept, struct wm_commit *c);
/* The topology vote is answered: everybody may vote anew. */
void ccm_votes_clear(struct ccm *m);
/* True: look again. */
/* No round begins while an agent with state is still saying who its peers are: it expects to find
 * all that are accepted in the rings. NULL, or one that is waited for. */
const struct ccm_agent *ccm_round_waits(const struct ccm *m);
bool ccm_round_settle(struct ccm *m);
static inline bool ccm_in_round(const struct ccm *m, uint64_t round)
{
	return m->round.active && round == m->last_round;
}

/* ccm_verdict.c: the round has failures; removes peers or records pairs. */
void ccm_round_judge(struct ccm *m);
/* No ring of the groups marked as failed is possible: kicks the seats that are most at fault. */
void ccm_groups_judge(struct ccm *m);

/* ccm_ring.c */
struct ccm_seat **ccm_seats_new(struct ccm *m, uint32_t n); /* NULL sets m->oom */
void ccm_pair_add(struct ccm *m, uint64_t from, uint64_t to, const char *text);
/* Nothing came through a link between them. */
void ccm_pair_silent(struct ccm *m, uint64_t one, uint64_t other, const char *text);
bool ccm_pair_is_silent(const struct ccm *m, uint64_t from, uint64_t to);
/* The link is up. */
void ccm_pair_works(struct ccm *m, uint64_t from, uint64_t to);
void ccm_pairs_forget(struct ccm *m, uint64_t agent_no);
/* Something has changed for the agent: its failed pairs are worth a try where no ring does without
 * them. */
void ccm_pairs_doubt(struct ccm *m, uint64_t agent_no);
/* Puts the seats of v into ret so that no link of the ring is a failed pair, as near to the given
 * order as the search finds. If there is none, silent pairs are given a try. False: nor is there
 * one with them. */
bool ccm_ring_order(struct ccm *m, struct ccm_seat **v, uint32_t n, struct ccm_seat **ret);

/* ccm_waits.c */
/* o waits for votes from now on. */
void ccm_waits_add(struct ccm *m, struct ccm_op *o);
/* It does no more. started: it goes on. */
void ccm_waits_remove(struct ccm *m, struct ccm_op *o, bool started);
/* Logs what has waited for too long, and tells those who have voted. */
void ccm_waits_tick(struct ccm *m);
void ccm_peer_stopped(struct ccm *m, struct ccm_agent *a, const struct wm_stopped *v);
/* p's process runs again, or is no concern of the group any more. */
void ccm_peer_goes_on(struct ccm *m, struct ccm_peer *p);
/* p is accepted. */
void ccm_stopped_tell(struct ccm *m, const struct ccm_peer *p);
/* Names the peers of g whose processes are stopped. False: none. */
bool ccm_name_stopped(const struct ccm_group *g, uint64_t now, bool exact, char *text, size_t size);
/* Whom o, which has not started, waits for: "1 of 3 peers: NAME (has not called)". exact: with
 * times that run. */
void ccm_op_awaited(const struct ccm *m, const struct ccm_op *o, uint64_t now, bool exact,
	char *text, size_t size);
/* Appends the names of those whose topology (else pending) votes are missing. */
void ccm_name_voters(
	const struct ccm *m, bool topology, uint64_t now, bool exact, char *text, size_t size);

/* ccm_view.c */
/* Appends the hosts that have not reported on the connection round. */
void ccm_name_reporters(const struct ccm *m, char *text, size_t size);

/* ccm_op.c */
void ccm_op_vote(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v);
void ccm_op_report(struct ccm *m, struct ccm_agent *a, const struct wm_op_report *r);
/* A peer without votes is gone: some operations may be complete. */
void ccm_group_recount(struct ccm *m, struct ccm_group *g);
/* Takes back what the peers of s have voted for, if none of it has started: they are to go, and
 * have been told of a loss already, like everybody else. */
void ccm_op_withdraw(struct ccm *m, struct ccm_seat *s);
void ccm_group_abort(struct ccm *m, struct ccm_group *g, uint32_t code, const char *text);
/* Starts what was ready and has nothing in its way any more. */
void ccm_op_settle(struct ccm *m);
/* Counts a resumed vote, and nothing follows from it; NULL when nobody's counts. */
struct ccm_op *ccm_op_collect(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v);
/* o has been collected: it goes on as attempt seq if it has all votes. False: it is gone. */
bool ccm_op_continue(struct ccm *m, struct ccm_op *o, uint64_t seq);
void ccm_op_tell_start(struct ccm *m, const struct ccm_op *o, struct ccm_agent *a);
/* The end of the attempt v->seq. */
void ccm_op_tell_end(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text);
/* A vote that cannot count is answered like one whose operation was aborted. */
void ccm_op_refuse(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text);
bool ccm_op_voted(const struct ccm_op *o, const struct ccm_peer *p);
void ccm_op_free(struct ccm_op *o);

#endif
