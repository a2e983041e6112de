/* SPDX-License-Identifier: MIT
 *
 * The agent core's own structures. Nobody outside pcclagentd/core includes this.
 *
 *   agt.c          events in: dispatch, construction, what is settled at the end of each step
 *   agt_action.c   actions out
 *   agt_state.c    named states; the only writer of them
 *   agt_session.c  sessions, communicators, their requests
 *   agt_run.c      runs: joining, leaving, the end
 *   agt_master.c   what masters say
 *   agt_dial.c     where masters are sought, and how often
 *   agt_leave.c    peers that have left, until a master knows
 *   agt_resume.c   what outlives a master, and what its successor is told
 *   agt_attach.c   peers that outlived their agent
 *   agt_round.c    links, rounds, rings, world sizes
 *   agt_op.c       operations: their life with the master and the engine
 *   agt_ahead.c    ... that begin before the votes are counted
 *   agt_sync.c     synchronizations of shared state: their jobs
 *   agt_submit.c   submissions: validation, collecting, the vote
 *   agt_waits.c    who is awaited by operations and votes that are late
 *   agt_stuck.c    who waits in a call and does nothing else
 *   agt_view.c     looking inside
 *   agt_record.c   what became of synchronizations of shared state, for people
 *   agt_check.c    the invariants
 */
#ifndef AGT_INTERNAL_H
#define AGT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_hash.h"

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(obj) ((obj)->unhashed = true)
#include <uthash.h>
#include <utlist.h>

#include "common/cc_detect.h"
#include "common/cc_err.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define AGT_NS_PER_MS      1000000u
#define AGT_MAX_COMMS      1024u
#define AGT_CONNECT_MS     10000u
#define AGT_HEARTBEAT_MIN  10u /* ms; what the master asks for is kept within reason */
#define AGT_TIMEOUT_MIN    100u
#define AGT_QUIET_MIN_BEAT (AGT_QUIET_TICK_MS + 50u) /* shorter ones need more ticks than that */
#define AGT_GRACE_MS       60000u
#define AGT_STOPPED_MS     10000u
/* Ticks are no clockwork: one that comes a little early should not leave it to the next one. */
#define AGT_SLACK_NS       (UINT64_C(10) * AGT_NS_PER_MS)
#define AGT_STOOD_STILL_NS 1000000000u /* between two ticks: this process did not run */
#define AGT_REDIAL_MIN     50u         /* ms between attempts at a master that is gone */
#define AGT_REDIAL_MAX     500u
#define AGT_PLACE_MS       1000u
#define AGT_SHORT_MS       4000u /* that the run of members may lack what it takes */
#define AGT_ALIASES_MAX    8u
#define AGT_MASTERS_MAX    64u
#define AGT_FENCES         32u
#define AGT_PLACES_MAX     (2 * (AGT_ALIASES_MAX + 3)) /* where one master is sought */
#define AGT_GHOSTS_MAX     4096u
#define AGT_LEAVE_MS       2000u /* of waiting for the master to know of a leave */
#define AGT_DOUBT_MS       1000u /* beyond the master's own time to miss an agent */
#define AGT_PART_MS        1000u /* of waiting for local votes: those that are here go out */

enum agt_comm_state {
	AGT_COMM_NEW = 0,    /* not connected */
	AGT_COMM_JOINING,    /* waits for its run to reach the master */
	AGT_COMM_REGISTERED, /* WM_JOIN sent */
	AGT_COMM_ACCEPTED,
	AGT_COMM_LOST,    /* was accepted; kicked, or the master is gone */
	AGT_COMM_LEAVING, /* to be destroyed when its last operation has ended */
	AGT_COMM_STATES,
};

enum agt_run_state {
	AGT_RUN_CONNECTING = 0,
	AGT_RUN_GREETING, /* WM_HELLO sent */
	AGT_RUN_UP,
	AGT_RUN_ORPHAN,   /* was up; its master is sought */
	AGT_RUN_RESUMING, /* WM_HELLO sent to the next master */
	AGT_RUN_OVER,     /* no master any more; transfers are being cancelled */
	AGT_RUN_STATES,
};

enum agt_op_state {
	AGT_OP_COLLECTING = 0,
	AGT_OP_VOTING,
	AGT_OP_RUNNING,
	AGT_OP_REPORTED,
	AGT_OP_CANCELLING,
	AGT_OP_STATES,
};

enum agt_link_state { AGT_LINK_OPENING = 0, AGT_LINK_UP, AGT_LINK_FAILED, AGT_LINK_STATES };

struct agt_comm;
struct agt_run;

struct agt_session {
	uint32_t id, uid, pid;
	char name[WL_NAME_MAX];
	uint64_t stopped_ns; /* since when its process is stopped; 0: it runs */
	struct agt_comm *comms;
	bool unhashed;
	UT_hash_handle hh;
};

/* What a member says when its operation does not succeed. */
struct agt_verdict {
	uint32_t code;
	char text[SHM_TEXT];
};

struct agt_op_member {
	struct agt_comm *comm; /* NULL: its process is gone */
	uint32_t comm_id;
	struct cc_id peer;
	uint32_t rank;
	bool out;               /* left the run or was kicked; counts on until the operation ends */
	struct agt_verdict own; /* of a member that is out, has failed, or was refused (sub) */
	struct shm_submission sub;
	/* Of a synchronization, once it has started. */
	bool holder;
	bool complete; /* it has received all that was elected */
	bool failed;   /* and is to be kicked */
	bool fresh;    /* failed: the master has not been told */
	bool dropping; /* out: the engine was asked to let go of it */
	uint64_t tx_bytes, rx_bytes;
};

struct agt_op_key {
	uint64_t tag;
	uint32_t group;
	uint32_t is_sync; /* 32 bits: the key has no padding */
};

/* What a synchronization is to end with; once it has started. */
struct agt_elected {
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
};

#define AGT_LOSSES_MAX 16u /* of a group: calls that are later see that of the first one */
/* The world as the master told it with the loss that raised a group's losses to so many. */
struct agt_loss {
	uint64_t losses;
	struct wire_world world;
};

/* One attempt. Of each key a run has at most one that collects and at most one that is voting,
 * running or reported; others may still be cancelling. */
struct agt_op {
	struct agt_run *run;
	struct agt_op_key key;
	enum agt_op_state state;
	uint64_t seq; /* 0 until WM_OP_START, unless it has begun ahead */
	uint64_t epoch;
	uint64_t losses; /* of the group when it was submitted: no attempt spans a loss */
	uint64_t born_ns;
	enum agt_watch {
		AGT_WATCH_NONE = 0,
		AGT_WATCH_FRESH, /* in agt->fresh: local members are missing */
		AGT_WATCH_OLDER, /* in agt->older: for AGT_PART_MS */
	} watch;
	bool alone;        /* its local members are not waited for: they wait for something else */
	bool late, told;   /* the log names those who are awaited: here, elsewhere */
	char *awaited;     /* whom the master says it waits for, or NULL */
	uint64_t waits_ns; /* awaited: since when */
	bool ahead;        /* VOTING, REPORTED: its transfer has begun without WM_OP_START */
	bool mute;         /* likewise: the master was told of the vote alone, and will say START */
	uint64_t retracted;         /* an attempt that had begun ahead, or 0 */
	bool spoiled;               /* VOTING: a voter has left, its vote may be counted */
	bool xfer;                  /* the engine has it */
	bool ok;                    /* REPORTED: what was reported */
	struct agt_verdict verdict; /* CANCELLING: for members that are not out; REPORTED, not ok:
				     * its text is what was reported */
	bool won;                   /* CANCELLING, of a synchronization: it has succeeded */
	uint64_t doubt_ns; /* RUNNING, likewise: since when it is not known whether those who have
			    * what was elected are lost, or we cannot reach them; 0: no doubt */
	bool resumed; /* likewise: another master goes on with it, maybe with agents that begin late
		       */
	struct agt_elected elected;
	struct cc_id suspect; /* REPORTED, not ok: as reported */
	uint32_t failure;     /* likewise */
	bool silent;          /* likewise */
	uint32_t world;
	struct cc_id next, prev;
	uint64_t tx_bytes, rx_bytes;
	struct agt_loss at_end; /* CANCELLING: when that was decided */
	uint32_t n, cap;
	struct agt_op_member *members;
	bool unhashed;
	UT_hash_handle hh_key;            /* in run->collecting or run->active */
	UT_hash_handle hh_seq;            /* in run->started */
	struct agt_op *prev_op, *next_op; /* in run->ops */
	struct agt_op *prev_w, *next_w;   /* by age */
};

#define AGT_AHEAD_MAX 16u /* tags of a group whose next attempts have a number */
struct agt_grant {
	uint64_t tag, seq; /* seq 0: none */
};

#define AGT_NEXT_ROUND UINT64_MAX

/* A peer group of a run with local peers. */
struct agt_group {
	uint32_t group;
	uint32_t users;                       /* comms joining, registered, accepted */
	uint32_t accepted;                    /* of them */
	uint32_t world;                       /* accepted peers everywhere */
	uint64_t losses;                      /* as the master counts them: goes with each vote */
	struct agt_loss lost[AGT_LOSSES_MAX]; /* the last ones, oldest first */
	uint32_t n_lost;
	uint64_t revision;      /* of shared state, that is expected next; 0: any */
	uint64_t begun;         /* round of the rings that the last attempt started on; 0: none */
	char loss[WM_TEXT_MAX]; /* the last one, or "" */
	char stopped[WM_TEXT_MAX]; /* peers whose processes are, as the master says, or "" */
	bool has_ring;
	struct wm_ring ring; /* in force; owns its members */
	uint32_t n_ahead;
	struct agt_grant ahead[AGT_AHEAD_MAX]; /* by n_ahead % AGT_AHEAD_MAX */
	/* An accepted peer here has left: by the commit of this round the master has heard of it.
	 * AGT_NEXT_ROUND: of the one that is reported next; 0: none has. */
	uint64_t left;
	bool unhashed;
	UT_hash_handle hh;
};

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
	bool told;              /* the latest AGT_EV_SET_MASTER concerned it */
	uint32_t addresses;     /* the master knows agt.addresses as of this number */
	struct cc_addr dialled; /* where it is sought now, or was last */
	uint32_t n_dialled;     /* places tried since it was reached last */
	bool taken;             /* the connection of this attempt */
	bool foreign;           /* what has answered there speaks another protocol */
	uint32_t n_refused;     /* of them, one after the other: not left without any answer */
	uint64_t sought_ns;     /* since when, while connecting, nobody takes the connection */
	bool dialling;          /* no answer yet: to MASTER_OPEN, or to HELLO */
	uint32_t n_silent;      /* attempts since then that nobody took, nor refused */
	uint32_t way_ms;        /* how much longer an answer may take: see MASTER_TAKEN */
	uint64_t dial_ns;       /* when that attempt began; else when the next one is due */
	uint32_t backoff_ms;
	uint64_t short_ns;     /* since when agent or master lack what it takes, or 0 */
	uint64_t orphan_ns;    /* since when it has no master */
	uint64_t grace_ns;     /* from when its time runs */
	uint32_t n_moments;    /* masters in a row that were there for a moment only */
	char why[WM_TEXT_MAX]; /* and why */
	bool sent_away; /* it lives, and has sent us to look for another one: we may come back */
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
	struct wm_world world; /* own is not kept here but in groups */
	uint64_t epoch, last_seq;
	uint64_t committed;               /* number of the last round in force */
	uint64_t wired;                   /* of the rings in force */
	uint64_t unprepared;              /* orphaned in this round, before it was ready; or 0 */
	uint64_t topo_turn, pending_turn; /* votes that have been answered */
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
	struct agt_attach *attach;        /* with wait == WL_COMM_ATTACH */
	uint64_t topo_turn, pending_turn; /* votes of the run that this peer knows the end of */
	uint64_t epoch, wired;            /* from its agent before; 0: none */
	uint64_t prepared; /* the last round with it that was reported as good, also by that one */
	uint64_t version, losses; /* of the world and of its group, from its agent before, */
	uint32_t global, world;   /* and their sizes */
	struct agt_verdict lost;
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

/* agt_action.c. Never NULL: without memory the result goes nowhere and the step fails. */
struct agt_action *agt_emit(struct agt *a, enum agt_action_type type);
/* The message is empty but for its type; what it points to must be malloc'd. While r has no master
 * it goes nowhere: the next one is told what the state is then. */
struct wm_msg *agt_send(struct agt *a, struct agt_run *r, enum wm_type type);
struct wl_reply *agt_reply(
	struct agt *a, const struct agt_comm *c, uint32_t req_id, uint32_t code, const char *text);
void agt_complete(struct agt *a, uint32_t comm, uint32_t slot, const struct agt_done *done);
__attribute__((format(printf, 3, 4))) void agt_log(
	struct agt *a, uint32_t level, const char *fmt, ...);
void agt_no_memory(struct agt *a);
/* Frees what x owns. */
void agt_action_clear(struct agt_action *x);
/* Copies text and cuts it; never NULL-safe in dst. */
void agt_copy_text(char *dst, size_t size, const char *text);
__attribute__((format(printf, 3, 4))) void agt_verdict_set(
	struct agt_verdict *v, uint32_t code, const char *fmt, ...);

enum agt_level {
	AGT_LOG_ERR = 3,
	AGT_LOG_WARNING = 4,
	AGT_LOG_NOTICE = 5,
	AGT_LOG_INFO = 6,
	AGT_LOG_DEBUG = 7
};

/* agt_state.c */
void agt_comm_set_state(struct agt *a, struct agt_comm *c, enum agt_comm_state s);
void agt_run_set_state(struct agt *a, struct agt_run *r, enum agt_run_state s);
void agt_op_set_state(struct agt *a, struct agt_op *o, enum agt_op_state s);
void agt_link_set_state(struct agt *a, struct agt_link *l, enum agt_link_state s);
const char *agt_comm_state_name(enum agt_comm_state s);
const char *agt_run_state_name(enum agt_run_state s);
const char *agt_op_state_name(enum agt_op_state s);
const char *agt_link_state_name(enum agt_link_state s);

/* agt_session.c */
void agt_session_open(struct agt *a, const struct agt_event *ev);
void agt_session_closed(struct agt *a, const struct agt_event *ev);
void agt_session_stopped(struct agt *a, const struct agt_event *ev);
/* Ends sessions whose processes have been stopped for too long. */
void agt_sessions_tick(struct agt *a);
void agt_request(struct agt *a, const struct agt_event *ev);
struct agt_comm *agt_comm_find(struct agt *a, uint32_t id);
/* A communicator that is not opened yet. NULL: the request is answered, or there is no memory. */
struct agt_comm *agt_comm_new(struct agt *a, struct agt_session *s, const struct wl_request *q);
void agt_refuse_request(struct agt *a, const struct agt_session *s, const struct wl_request *q,
	uint32_t code, const char *text);
/* What c is now. */
/* Of the last commit that it was in; and the last round that was committed with it. */
uint64_t agt_comm_epoch(const struct agt_comm *c);
uint64_t agt_comm_wired(const struct agt_comm *c);
void agt_comm_attrs(const struct agt_comm *c, struct agt_attrs *ret);
/* The request waits for its answer. */
void agt_comm_wait(struct agt *a, struct agt_comm *c, const struct wl_request *q);
/* Sends the vote that the request of c is. */
void agt_vote_send(struct agt *a, struct agt_comm *c, enum wm_type type);
/* Publishes what has changed. */
void agt_comm_publish(struct agt *a, struct agt_comm *c);
/* What goes with the end of a call of c now. Version 0 unless it is accepted. */
void agt_comm_world(const struct agt_comm *c, struct wire_world *ret);
/* After a call that was made with `losses` has ended with `code`. */
void agt_comm_world_after(
	const struct agt_comm *c, uint64_t losses, uint32_t code, struct wire_world *ret);
/* Answers the request that waits, if one does. A failed attach takes c with it. */
/* Of a call of pcclArePeersPending that waits. */
void agt_pending_answer(struct agt *a, struct agt_comm *c, bool pending);
void agt_comm_answer(struct agt *a, struct agt_comm *c, uint32_t code, const char *text);
/* A LEAVING comm whose last operation has ended. Frees c. */
void agt_comm_finish(struct agt *a, struct agt_comm *c);
void agt_comm_free(struct agt *a, struct agt_comm *c);
void agt_comm_unopened(struct agt *a, const struct agt_event *ev);

/* agt_run.c */
struct agt_run *agt_run_find(struct agt *a, uint32_t id);
/* c, in state JOINING, joins the run of its master's address; or fails, and then may be gone. */
void agt_run_join(struct agt *a, struct agt_comm *c);
/* The same for one that attaches: joins the run that it names. */
void agt_run_attach(struct agt *a, struct agt_comm *c);
/* Had a master. */
static inline bool agt_run_lives(const struct agt_run *r)
{
	return r->state == AGT_RUN_UP || r->state == AGT_RUN_ORPHAN || r->state == AGT_RUN_RESUMING;
}
static inline bool agt_run_orphaned(const struct agt_run *r)
{
	return r->state == AGT_RUN_ORPHAN || r->state == AGT_RUN_RESUMING;
}
bool agt_run_has_addr(const struct agt_run *r, const struct cc_addr *addr);
void agt_run_send_join(struct agt *a, struct agt_comm *c);
/* Moves c, whose peer nobody has accepted yet, to another run. May fail, and then c may be gone. */
void agt_run_move(struct agt *a, struct agt_comm *c, struct agt_run *to);
/* The same, to the run of its master's address. */
void agt_run_rejoin(struct agt *a, struct agt_comm *c);
void agt_run_fill_join(const struct agt_comm *c, struct wm_join *ret);
/* Everything that the run is good for ends with *v. */
void agt_run_over(struct agt *a, struct agt_run *r, const struct agt_verdict *v);
enum agt_exit {
	AGT_EXIT_CLEAN,   /* destroyed by its process: WM_LEAVE */
	AGT_EXIT_DIED,    /* its process is gone: WM_LEAVE */
	AGT_EXIT_STOPPED, /* the same for who was stopped for too long */
	AGT_EXIT_KICKED,  /* by the master */
	AGT_EXIT_DOWN,    /* the master is gone */
};
/* Takes c out of its run. Its operations end with *v; the state of c is the caller's to set
 * before. why: what the others are told of a leave, or NULL. */
void agt_run_detach(struct agt *a, struct agt_comm *c, enum agt_exit how, const char *why,
	const struct agt_verdict *v);
/* The master put c out, or is gone, or c gives up: what waits on c ends with *v. c may be gone. */
void agt_run_lose(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_verdict *v);
void agt_run_master_down(struct agt *a, const struct agt_event *ev);
void agt_run_tick(struct agt *a, struct agt_run *r);
/* Agent or master lack what the run takes; members may have it again in a moment. open: the
 * connection still stands. */
void agt_run_short(struct agt *a, struct agt_run *r, const struct agt_verdict *v, bool open);
/* Peers that have a place to lose: they were accepted, or come back. */
bool agt_run_has_members(const struct agt_run *r);
/* The master did what it must not do. r is over when this returns. */
void agt_run_violation(struct agt *a, struct agt_run *r, const char *what);
/* What is left to do at the end of a step; may free r. */
void agt_run_settle(struct agt *a, struct agt_run *r);
void agt_run_free(struct agt *a, struct agt_run *r);
void agt_run_comm_accepted(struct agt *a, struct agt_comm *c);

/* agt_master.c */
/* Masters that are up hear of it at once, others by the hello. */
void agt_master_addresses(struct agt *a, const struct wm_addresses *x);
/* Tells the master of r, if it does not know the latest. */
void agt_master_tell_addresses(struct agt *a, struct agt_run *r);
void agt_master_up(struct agt *a, const struct agt_event *ev);
void agt_master_msg(struct agt *a, const struct agt_event *ev);
void agt_probed(struct agt *a, const struct agt_event *ev);
void agt_master_settings(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m);

/* agt_dial.c */
void agt_dial(struct agt *a, struct agt_run *r, const struct cc_addr *addr);
/* At the next of the places where it may be. */
void agt_dial_next(struct agt *a, struct agt_run *r);
/* The attempt failed. open: its connection still stands. */
void agt_dial_failed(struct agt *a, struct agt_run *r, const char *why, bool open);
/* Likewise, with what those are told that come. */
void agt_dial_refused(struct agt *a, struct agt_run *r, const struct agt_verdict *v, bool open);
/* A master has answered where it was dialled. */
void agt_dial_reached(struct agt *a, struct agt_run *r);
/* The master where it was reached last sends it away: the others come first. */
void agt_dial_away(const struct agt *a, struct agt_run *r);
/* addr is where r's master is, too. */
void agt_dial_alias(struct agt_run *r, const struct cc_addr *addr);
void agt_dial_tick(struct agt *a, struct agt_run *r);
/* The time that a place has begins anew. */
void agt_dial_taken(struct agt *a, const struct agt_event *ev);
void agt_dial_set_master(struct agt *a, const struct agt_event *ev);

/* agt_resume.c */
/* The master of a run that is up is gone. open: its connection still stands. */
void agt_orphan(struct agt *a, struct agt_run *r, const char *why, bool open);
void agt_history_add(struct agt *a, struct agt_run *r, uint32_t group, uint64_t seq, uint32_t code);
void agt_history_free(struct agt_run *r);
/* The highest term of that run so far; 0: not known. */
uint64_t agt_term_of(const struct agt *a, const struct cc_id *run);
void agt_term_set(struct agt *a, struct agt_run *r, uint64_t term);
void agt_resume_ack(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m);
/* The last word of a resumption. */
void agt_resume_end(struct agt *a, struct agt_run *r);

/* agt_leave.c */
/* c leaves, as l says. Sets c->untold if its destroy waits for WM_LEFT. */
void agt_leave(struct agt *a, struct agt_run *r, struct agt_comm *c, const struct wm_leave *l);
/* Handles WM_LEFT. */
void agt_left(struct agt *a, struct agt_run *r, const struct wm_left *m);
/* Tells a new master of r all leaves that none has confirmed. */
void agt_leaves_tell(struct agt *a, struct agt_run *r);
/* The master is gone: answers the destroys that wait for it. */
void agt_leaves_answer(struct agt *a, struct agt_run *r);
void agt_leaves_tick(struct agt *a, struct agt_run *r);
/* Has a master been told of every one of them? */
bool agt_leaves_told(const struct agt_run *r);
void agt_ghosts_free(struct agt_run *r);

/* agt_attach.c */
void agt_attach_request(struct agt *a, struct agt_session *s, const struct wl_request *q);
/* Asks the master what c has to know. */
void agt_attach_query(struct agt *a, struct agt_comm *c);
void agt_attach_outcomes(struct agt *a, struct agt_run *r, const struct wm_op_outcomes *m);
/* Answers if all is there. */
void agt_attach_try(struct agt *a, struct agt_comm *c);
/* The master of r has answered, and its run is run: those that want another one fail. */
void agt_attach_check_run(struct agt *a, struct agt_run *r, const struct cc_id *run);
void agt_attach_tick(struct agt *a);

/* agt_round.c */
struct agt_group *agt_group_find(struct agt_run *r, uint32_t group);
struct agt_group *agt_group_get(struct agt *a, struct agt_run *r, uint32_t group);
void agt_group_put(struct agt_run *r, struct agt_group *g);
void agt_round_begin(struct agt *a, struct agt_run *r, const struct wm_round *m);
void agt_round_commit(struct agt *a, struct agt_run *r, const struct wm_commit *m);
void agt_round_clear(struct agt_round *rd);
/* No peer of g is a member any more. */
void agt_ring_leave(struct agt_run *r, struct agt_group *g);
/* Is the peer a member of the round, and has the round been reported as good? */
bool agt_round_prepared(const struct agt_run *r, const struct cc_id *peer);
void agt_world_told(struct agt *a, struct agt_run *r, const struct wm_world *w);
/* As the master told last, for the peers of g. */
struct wire_world agt_world_of(const struct agt_run *r, const struct agt_group *g);
/* The losses and the world that a call is told of which was made with `losses` and ends with `code`
 * now: those of the first loss since, which ends it for all members. */
struct agt_loss agt_world_after(
	const struct agt_run *r, const struct agt_group *g, uint64_t losses, uint32_t code);
void agt_link_event(struct agt *a, const struct agt_event *ev);
bool agt_link_is_up(struct agt_run *r, const struct cc_id *peer);
/* Whether the outbound link to peer can be used is not known yet. */
bool agt_link_in_doubt(const struct agt_run *r, const struct cc_id *peer);
void agt_links_sweep(struct agt *a, struct agt_run *r);
/* Tells a master that may not have heard of them which links of the rings in force are lost. */
void agt_links_tell(struct agt *a, struct agt_run *r);
bool agt_link_from_lost(const struct agt_run *r, const struct cc_id *peer);
bool agt_link_is_used(const struct agt_run *r, const struct cc_id *peer);
void agt_links_free(struct agt_run *r);

#include "pcclagentd/core/agt_op.h"

#endif
