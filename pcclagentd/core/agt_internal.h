/* SPDX-License-Identifier: MIT
 *
 * The agent core's own structures. Nobody outside pcclagentd/core includes this.
 *
 *   agt.c          events in: dispatch, construction, what is settled at the end of each step
 *   agt_action.c   actions out
 *   agt_state.c    named states; the only writer of them
 *   agt_session.c  sessions, communicators, their requests
 *   agt_run.c      masters: connection, joining, kicks, the end
 *   agt_round.c    links, rounds, rings, world sizes
 *   agt_op.c       operations: their life with the master and the engine
 *   agt_submit.c   submissions: validation, collecting, the vote
 *   agt_view.c     looking inside, the invariants
 */
#ifndef AGT_INTERNAL_H
#define AGT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(obj) ((obj)->unhashed = true)
#include <uthash.h>
#include <utlist.h>

#include "common/cc_err.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define AGT_NS_PER_MS     1000000u
#define AGT_MAX_COMMS     1024u
#define AGT_CONNECT_MS    10000u
#define AGT_HEARTBEAT_MIN 10u /* ms; what the master asks for is kept within reason */
#define AGT_TIMEOUT_MIN   100u
#define AGT_ALIASES_MAX   8u

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
	AGT_RUN_OVER, /* no master any more; transfers are being cancelled */
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
	struct agt_verdict own; /* of a member that is out */
	struct shm_submission sub;
};

struct agt_op_key {
	uint64_t tag;
	uint64_t group; /* 64 bits: the key has no padding */
};

/* One attempt. Of each key a run has at most one that collects and at most one that is voting,
 * running or reported; others may still be cancelling. */
struct agt_op {
	struct agt_run *run;
	struct agt_op_key key;
	enum agt_op_state state;
	uint64_t seq; /* 0 until WM_OP_START */
	uint64_t epoch;
	uint64_t losses; /* of the group, as in the vote */
	uint64_t born_ns;
	bool spoiled;   /* a member left after its vote: it must not start */
	bool lost_peer; /* COLLECTING: a peer of the group was lost: ends before it votes */
	bool xfer;      /* the engine has it */
	bool ok;        /* REPORTED: what was reported */
	struct agt_verdict verdict; /* CANCELLING: for members that are not out */
	uint32_t world;
	struct cc_id next, prev;
	uint64_t tx_bytes, rx_bytes;
	uint32_t n, cap;
	struct agt_op_member *members;
	bool unhashed;
	UT_hash_handle hh_key;            /* in run->collecting or run->active */
	UT_hash_handle hh_seq;            /* in run->started */
	struct agt_op *prev_op, *next_op; /* in run->ops */
};

/* A peer group of a run with local peers. */
struct agt_group {
	uint32_t group;
	uint32_t users;    /* comms joining, registered, accepted */
	uint32_t accepted; /* of them */
	uint32_t world;    /* accepted peers everywhere */
	uint64_t losses;   /* as the master counts them: goes with each vote */
	bool has_ring;
	struct wm_ring ring; /* in force; owns its members */
	bool unhashed;
	UT_hash_handle hh;
};

struct agt_link {
	struct cc_id peer;
	struct wm_endpoint endpoint;
	uint32_t n_streams;
	enum agt_link_state state;
	char text[WM_TEXT_MAX]; /* FAILED: why */
	bool unhashed;
	UT_hash_handle hh;
};

struct agt_round {
	bool active, reported, ok;
	bool accept;
	uint64_t number;
	uint32_t n_rings;
	struct wm_ring *rings; /* own their members */
};

struct agt_run {
	uint32_t id;
	struct cc_addr addr;
	uint32_t n_aliases;
	struct cc_addr aliases[AGT_ALIASES_MAX]; /* other addresses of the same master */
	enum agt_run_state state;
	uint64_t since_ns, heard_ns, spoke_ns;
	struct cc_id run_id;
	uint32_t heartbeat_ms, timeout_ms, segment_max;
	struct agt_comm *comms;
	uint32_t n_comms;
	struct agt_group *groups;
	struct agt_link *links;
	struct agt_round round;
	struct wm_world world; /* own is not kept here but in groups */
	uint64_t epoch, last_seq;
	struct agt_op *ops;
	struct agt_op *collecting, *active; /* by key */
	struct agt_op *started;             /* by seq */
	bool check_votes; /* a local membership changed: collecting operations may be complete */
	bool check_links; /* some links may be out of use */
	bool unhashed;
	UT_hash_handle hh;
};

/*
 * The operations that an application has started without awaiting them. When the group loses a
 * peer, the burst is over: all of them end, and so do those that the application starts before it
 * has been told. Thus a loss fails the same calls of all members. Otherwise some would wait for
 * those who have to try again, and members that await a whole burst first could wait for each
 * other, one having had tag 1 refused and tag 2 not, the other the reverse. That the application
 * knows shows when it comes back with a tag that has failed.
 */
struct agt_burst {
	bool over;
	uint32_t n;
	uint64_t tags[SHM_SLOTS]; /* that have failed */
};

struct agt_comm {
	uint32_t id;
	struct agt_session *session;
	struct cc_addr master;
	uint32_t group, pool_size;
	enum agt_comm_state state;
	struct cc_id peer;
	uint32_t rank;       /* among the local members of its ring */
	struct agt_run *run; /* JOINING, REGISTERED, ACCEPTED */
	bool joined;         /* the master knows the peer */
	bool counted;        /* in grp->accepted */
	struct agt_group *grp;
	uint32_t wait; /* enum wl_type of the request that waits, 0: none */
	uint32_t wait_req;
	uint64_t wait_ns;
	struct agt_verdict lost;
	struct agt_attrs attrs; /* as published last */
	struct agt_op *slots[SHM_SLOTS];
	uint32_t n_ops;
	struct agt_burst burst;
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
	uint64_t ops_done, ops_failed, refused;
	uint64_t tick_ns;   /* the last one */
	const char *broken; /* a transition that must not be */
	/* during a step */
	uint64_t now;
	struct agt_actions *out;
	int err;                   /* CC_ERR_NOMEM sticks */
	struct agt_action scratch; /* takes what found no memory */
};

/* agt_action.c. Never NULL: without memory the result goes nowhere and the step fails. */
struct agt_action *agt_emit(struct agt *a, enum agt_action_type type);
/* The message is empty but for its type; what it points to must be malloc'd. */
struct wm_msg *agt_send(struct agt *a, struct agt_run *r, enum wm_type type);
void agt_reply(
	struct agt *a, const struct agt_comm *c, uint32_t req_id, uint32_t code, const char *text);
void agt_complete(struct agt *a, uint32_t comm, uint32_t slot, const struct agt_done *done);
__attribute__((format(printf, 3, 4))) void agt_log(
	struct agt *a, uint32_t level, const char *fmt, ...);
void agt_no_memory(struct agt *a);
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
void agt_request(struct agt *a, const struct agt_event *ev);
struct agt_comm *agt_comm_find(struct agt *a, uint32_t id);
/* Publishes what has changed since the last call of the application ended: at that end, and not
 * before, so that peers that go by the same calls also see the same numbers. */
void agt_comm_publish(struct agt *a, struct agt_comm *c);
/* Answers the request that waits, if one does. */
void agt_comm_answer(struct agt *a, struct agt_comm *c, uint32_t code, const char *text);
/* A LEAVING comm whose last operation has ended. Frees c. */
void agt_comm_finish(struct agt *a, struct agt_comm *c);
void agt_comm_free(struct agt *a, struct agt_comm *c);

/* agt_run.c */
struct agt_run *agt_run_find(struct agt *a, uint32_t id);
/* c, in state NEW or LOST, joins the run of its master's address. */
void agt_run_join(struct agt *a, struct agt_comm *c);
enum agt_exit {
	AGT_EXIT_CLEAN,  /* destroyed by its process: WM_LEAVE */
	AGT_EXIT_DIED,   /* its process is gone: WM_LEAVE */
	AGT_EXIT_KICKED, /* by the master */
	AGT_EXIT_DOWN,   /* the master is gone */
};
/* Takes c out of its run. Its operations end with *v; the state of c is the caller's to set
 * before. */
void agt_run_detach(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_verdict *v);
void agt_run_master_up(struct agt *a, const struct agt_event *ev);
void agt_run_master_down(struct agt *a, const struct agt_event *ev);
void agt_run_master_msg(struct agt *a, const struct agt_event *ev);
void agt_run_tick(struct agt *a, struct agt_run *r);
/* The master did what it must not do. r is over when this returns. */
void agt_run_violation(struct agt *a, struct agt_run *r, const char *what);
/* What is left to do at the end of a step; may free r. */
void agt_run_settle(struct agt *a, struct agt_run *r);
void agt_run_free(struct agt *a, struct agt_run *r);
void agt_run_comm_accepted(struct agt *a, struct agt_comm *c);

/* agt_round.c */
struct agt_group *agt_group_find(struct agt_run *r, uint32_t group);
struct agt_group *agt_group_get(struct agt *a, struct agt_run *r, uint32_t group);
void agt_group_put(struct agt_run *r, struct agt_group *g);
void agt_round_begin(struct agt *a, struct agt_run *r, const struct wm_round *m);
void agt_round_commit(struct agt *a, struct agt_run *r, const struct wm_commit *m);
void agt_round_clear(struct agt_round *rd);
void agt_world_set(struct agt_run *r, const struct wm_world *w);
void agt_link_event(struct agt *a, const struct agt_event *ev);
bool agt_link_is_up(struct agt_run *r, const struct cc_id *peer);
void agt_links_sweep(struct agt *a, struct agt_run *r);
bool agt_link_is_used(const struct agt_run *r, const struct cc_id *peer);
void agt_links_free(struct agt_run *r);

/* agt_submit.c */
void agt_burst_add(struct agt_burst *b, uint64_t tag);
void agt_submit(struct agt *a, const struct agt_event *ev);
/* Sends the vote of a collecting operation that is complete. May free o. */
void agt_op_try_vote(struct agt *a, struct agt_op *o);
struct wm_op_params agt_sub_params(const struct shm_submission *s);
bool agt_params_equal(const struct wm_op_params *x, const struct wm_op_params *y);

/* agt_op.c */
struct agt_op *agt_op_find(struct agt_op *head, uint32_t group, uint64_t tag);
struct agt_op *agt_op_new(struct agt *a, struct agt_run *r, uint32_t group, uint64_t tag);
/* 0, or CC_ERR_NOMEM. */
int agt_op_add(struct agt *a, struct agt_op *o, struct agt_comm *c, const struct shm_submission *s);
/* Ends o: completes its members, with success when v is NULL, and frees it. */
void agt_op_end(struct agt *a, struct agt_op *o, const struct agt_verdict *v);
/* c is not part of the run any more. */
void agt_op_drop_comm(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_verdict *v);
void agt_op_start(struct agt *a, struct agt_run *r, const struct wm_op_start *m);
void agt_op_abort(struct agt *a, struct agt_run *r, const struct wm_op_abort *m);
void agt_op_done(struct agt *a, struct agt_run *r, const struct wm_op_done *m);
void agt_op_xfer_done(struct agt *a, const struct agt_event *ev);
void agt_op_xfer_cancelled(struct agt *a, const struct agt_event *ev);
/* The link to (or from) an agent broke. */
void agt_op_link_down(struct agt *a, struct agt_run *r, const struct agt_event *ev);
void agt_op_free(struct agt_op *o);

#endif
