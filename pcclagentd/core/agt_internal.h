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
 *   agt_conn_open.c     where masters are sought, and how often
 *   agt_leave.c    peers that have left, until a master knows
 *   agt_resume.c   what outlives a master, and what its successor is told
 *   agt_attach.c   peers that outlived their agent
 *   agt_round.c    links, rounds, rings, world sizes
 *   agt_op.c       operations: their life with the master and the engine
 *   agt_spec.c    ... that begin before the votes are counted
 *   agt_sync.c     synchronizations of shared state: their jobs
 *   agt_submit.c   submissions: validation, collecting, the vote
 *   agt_waits.c    who is awaited by operations and votes that are late
 *   agt_unmet.c    who waits in a call and does nothing else
 *   agt_view.c     looking inside
 *   agt_record.c   what became of synchronizations of shared state, for people
 *   agt_check.c    the invariants
 */
#ifndef AGT_INTERNAL_H
#define AGT_INTERNAL_H
#include "pcclagentd/core/agt_run.h"

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
__attribute__((format(printf, 3, 4))) void agt_end_status_set(
	struct agt_end_status *v, uint32_t code, const char *fmt, ...);

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
uint64_t agt_comm_ring_epoch(const struct agt_comm *c);
void agt_comm_attrs(const struct agt_comm *c, struct agt_attrs *ret);
/* The request waits for its answer. */
void agt_comm_wait(struct agt *a, struct agt_comm *c, const struct wl_request *q);
/* Sends the vote that the request of c is. */
void agt_vote_send(struct agt *a, struct agt_comm *c, enum wm_type type);
/* Publishes what has changed. */
void agt_comm_publish(struct agt *a, struct agt_comm *c);
/* What goes with the end of a call of c now. Version 0 unless it is accepted. */
void agt_comm_view(const struct agt_comm *c, struct wire_view *ret);
/* After a call that was made with `generation` has ended with `code`. */
void agt_comm_view_after(
	const struct agt_comm *c, uint64_t generation, uint32_t code, struct wire_view *ret);
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
void agt_run_over(struct agt *a, struct agt_run *r, const struct agt_end_status *v);
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
	const struct agt_end_status *v);
/* The master put c out, or is gone, or c gives up: what waits on c ends with *v. c may be gone. */
void agt_run_lose(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v);
void agt_run_master_down(struct agt *a, const struct agt_event *ev);
void agt_run_tick(struct agt *a, struct agt_run *r);
/* Agent or master lack what the run takes; members may have it again in a moment. open: the
 * connection still stands. */
void agt_run_short(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open);
/* Peers that have a membership to lose: they were accepted, or come back. */
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

/* agt_conn_open.c */
void agt_conn_open(struct agt *a, struct agt_run *r, const struct cc_addr *addr);
/* At the next of the places where it may be. */
void agt_conn_next(struct agt *a, struct agt_run *r);
/* The attempt failed. open: its connection still stands. */
void agt_conn_failed(struct agt *a, struct agt_run *r, const char *why, bool open);
/* Likewise, with what those are told that come. */
void agt_conn_refused(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open);
/* A master has answered where the agent connected to it. */
void agt_conn_reached(struct agt *a, struct agt_run *r);
/* The master where it was reached last redirects it: the others come first. */
void agt_conn_redirected(const struct agt *a, struct agt_run *r);
/* addr is where r's master is, too. */
void agt_conn_alias(struct agt_run *r, const struct cc_addr *addr);
void agt_conn_tick(struct agt *a, struct agt_run *r);
/* The time that an address has begins anew. */
void agt_conn_taken(struct agt *a, const struct agt_event *ev);
void agt_conn_set_master(struct agt *a, const struct agt_event *ev);

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
bool agt_leaves_sent(const struct agt_run *r);
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
void agt_view_set(struct agt *a, struct agt_run *r, const struct wm_view *w);
/* As the master told last, for the peers of g. */
struct wire_view agt_view_of(const struct agt_run *r, const struct agt_group *g);
/* The generation and the view that a call is told of which was made with `generation` and ends with
 * `code` now: those of the first loss since, which ends it for all members. */
struct agt_generation agt_view_after(
	const struct agt_run *r, const struct agt_group *g, uint64_t generation, uint32_t code);
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
