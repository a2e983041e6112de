/* SPDX-License-Identifier: MIT
 *
 * The functions that the agent core's files share. Only files in pcclagentd/core include this.
 *
 *   agt.c          events in: dispatch, construction, the end of each step
 *   agt_action.c   actions out
 *   agt_state.c    the states and their names; only this file changes them
 *   agt_session.c  sessions, communicators, their requests
 *   agt_ballot.c   ballots: votes of local peers, and their answers
 *   agt_run.c      runs: joining, leaving, the end
 *   agt_master.c   the messages of masters
 *   agt_measure.c  measurements that masters order
 *   agt_rates.c    the measured rates that the agent remembers
 *   agt_conn.c     the addresses at which masters are sought, and the attempts to connect
 *   agt_leave.c    peers that have left, until a master knows of it
 *   agt_resume.c   runs without a master, and the snapshot for the next master
 *   agt_attach.c   peers that outlived their agent
 *   agt_round.c    links, rounds, rings, world sizes
 *   agt_mesh.c     meshes: links to all other hosts of a ring
 *   agt_plan.c     plans: the links of several weighted rings
 *   agt_op.c       operations: from the start to the end
 *   agt_spec.c     speculative starts of operations
 *   agt_sync.c     synchronizations of shared state: their jobs
 *   agt_submit.c   submissions: checks, collecting, the vote
 *   agt_waits.c    the peers for which late operations and votes wait
 *   agt_unmet.c    peers that wait in a call and do nothing else
 *   agt_view.c     tables of the core's state, for operators
 *   agt_record.c   results of synchronizations of shared state, for operators
 *   agt_check.c    the invariants
 */
#ifndef AGT_INTERNAL_H
#define AGT_INTERNAL_H
#include "pcclagentd/core/agt_run.h"

/* agt_action.c. Appends an action. */
struct agt_action *agt_emit(struct agt *a, enum agt_action_type type);
/* Appends a message to the master of r. The message is empty except for its type; everything that
 * it points to must be malloc'd. While r has no master, the message is dropped: the next master
 * gets a snapshot of the state when it comes. */
struct wm_msg *agt_send(struct agt *a, struct agt_run *r, enum wm_type type);
struct wl_reply *agt_reply(
	struct agt *a, const struct agt_comm *c, uint32_t req_id, uint32_t code, const char *text);
void agt_complete(struct agt *a, uint32_t comm, uint32_t slot, const struct agt_done *done);
__attribute__((format(printf, 3, 4))) void agt_log(
	struct agt *a, uint32_t level, const char *fmt, ...);
/* Frees the memory that x owns. */
void agt_action_clear(struct agt_action *x);
/* Copies `text`, which may be NULL, and cuts it if it is too long. */
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
/* Returns a new communicator that is not opened yet. NULL: the request was refused and answered. */
struct agt_comm *agt_comm_new(struct agt *a, struct agt_session *s, const struct wl_request *q);
void agt_refuse_request(struct agt *a, const struct agt_session *s, const struct wl_request *q,
	uint32_t code, const char *text);
/* Returns the attributes of c as they are now. */
void agt_comm_attrs(const struct agt_comm *c, struct agt_attrs *ret);
/* Records that c's request `q` waits for its answer. */
void agt_comm_wait(struct agt *a, struct agt_comm *c, const struct wl_request *q);
/* Publishes the attributes of c if they have changed. */
void agt_comm_publish(struct agt *a, struct agt_comm *c);
/* Returns the view for a call of c that ends now. The view id is 0 unless c is accepted. */
void agt_comm_view(const struct agt_comm *c, struct wire_view *ret);
/* Returns the view for a call of c that was made with `generation` and ends now with `code`. */
void agt_comm_view_after(
	const struct agt_comm *c, uint64_t generation, uint32_t code, struct wire_view *ret);
/* Answers the request of c that waits, if there is one. Frees c if this is a failed attach. */
void agt_comm_answer(struct agt *a, struct agt_comm *c, uint32_t code, const char *text);
/* Answers the destroy of c, which is LEAVING and has no operation any more, and frees c. */
void agt_comm_finish(struct agt *a, struct agt_comm *c);
void agt_comm_free(struct agt *a, struct agt_comm *c);
void agt_comm_unopened(struct agt *a, const struct agt_event *ev);

/* agt_ballot.c */
/* Does a vote of c wait for the end of a ballot of this kind? */
bool agt_ballot_waits(const struct agt_comm *c, enum wire_ballot kind);
/* Handles the request for a vote of c. */
void agt_ballot_vote(struct agt *a, struct agt_comm *c, const struct wl_request *q);
/* Sends all votes that wait to the master, as part of a snapshot. */
void agt_ballot_tell(struct agt *a, struct agt_run *r);
/* Answers c's vote, which waits. */
void agt_ballot_answer(struct agt *a, struct agt_comm *c, bool answer);
/* Answers c's vote if it waits for the end of this ballot. */
void agt_ballot_ended(struct agt *a, struct agt_comm *c, enum wire_ballot kind, uint64_t number);
void agt_ballot_end(struct agt *a, struct agt_run *r, const struct wm_ballot_end *m);

/* agt_run.c */
struct agt_run *agt_run_find(struct agt *a, uint32_t id);
/* Lets c, in state JOINING, join the run of its master's address. If this fails, c may be freed. */
void agt_run_join(struct agt *a, struct agt_comm *c);
/* Lets c, which attaches, join the run that it names. If this fails, c may be freed. */
void agt_run_attach(struct agt *a, struct agt_comm *c);
/* Returns true if the run has had a master and is not over. */
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
/* Moves c, whose peer is not accepted yet, to another run. If this fails, c may be freed. */
void agt_run_move(struct agt *a, struct agt_comm *c, struct agt_run *to);
/* Moves c to the run of its master's address. If this fails, c may be freed. */
void agt_run_rejoin(struct agt *a, struct agt_comm *c);
void agt_run_fill_join(const struct agt_comm *c, struct wm_join *ret);
/* Ends the run: all its communicators and operations end with *v. */
void agt_run_over(struct agt *a, struct agt_run *r, const struct agt_end_status *v);
enum agt_exit {
	AGT_EXIT_CLEAN,   /* its process has destroyed it: WM_LEAVE is sent */
	AGT_EXIT_DIED,    /* its process is gone: WM_LEAVE is sent */
	AGT_EXIT_STOPPED, /* its process was stopped for too long: WM_LEAVE is sent */
	AGT_EXIT_KICKED,  /* kicked by the master */
	AGT_EXIT_DOWN,    /* the master is gone */
};
/* Takes c out of its run, and ends its operations with *v. The caller must have set the new state
 * of c. why: the reason of a leave that other peers see, or NULL. */
void agt_run_detach(struct agt *a, struct agt_comm *c, enum agt_exit how, const char *why,
	const struct agt_end_status *v);
/* Takes c out of its run because the master has kicked it or is gone, or because c gives up.
 * Everything that waits on c ends with *v. c may be freed. */
void agt_run_lose(
	struct agt *a, struct agt_comm *c, enum agt_exit how, const struct agt_end_status *v);
void agt_run_master_down(struct agt *a, const struct agt_event *ev);
void agt_run_tick(struct agt *a, struct agt_run *r);
/* Handles a lack of resources of agent or master. A run with members is tried again for a while;
 * any other run ends with *v. open: the connection to the master still stands. */
void agt_run_short(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open);
/* Does the run have members, or peers that attach and may be members? Only these can lose a
 * membership. */
bool agt_run_has_members(const struct agt_run *r);
/* Handles a breach of the protocol by the master. The run ends, unless it was resuming with this
 * master. */
void agt_run_violation(struct agt *a, struct agt_run *r, const char *what);
/* Does the work that is left at the end of a step. May free r. */
void agt_run_settle(struct agt *a, struct agt_run *r);
void agt_run_free(struct agt *a, struct agt_run *r);
void agt_run_comm_accepted(struct agt *a, struct agt_comm *c);

/* agt_master.c */
/* Stores the agent's new addresses. Masters that are up get them at once, others with the hello. */
void agt_master_addresses(struct agt *a, const struct wm_addresses *x);
/* Sends the agent's addresses to the master of r, if it does not have the latest ones. */
void agt_master_tell_addresses(struct agt *a, struct agt_run *r);
void agt_master_up(struct agt *a, const struct agt_event *ev);
void agt_master_msg(struct agt *a, const struct agt_event *ev);
void agt_probed(struct agt *a, const struct agt_event *ev);
void agt_master_settings(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m);

/* agt_measure.c */
void agt_measure(struct agt *a, struct agt_run *r, const struct wm_measure *m);
/* Handles the results of a measurement. */
void agt_measured(struct agt *a, const struct agt_event *ev);
/* Tells the master what a link has carried in operations. */
void agt_link_rate(struct agt *a, const struct agt_event *ev);
/* Does an operation of any run use the network of this host? Nothing is measured then. */
bool agt_network_is_in_use(const struct agt *a);
/* Stops the measurement of r, if there is one, without an answer. */
void agt_measure_stop(struct agt *a, struct agt_run *r);
/* Stops the measurement if the run has lost its master, or if an operation of any run has started.
 */
void agt_measure_settle(struct agt *a, struct agt_run *r);
void agt_measure_free(struct agt_run *r);
/* Sends the rates that the agent remembers, if there are any. */
void agt_rates_tell(struct agt *a, struct agt_run *r);

/* agt_conn.c */
void agt_conn_open(struct agt *a, struct agt_run *r, const struct cc_addr *addr);
/* Connects to the master's next possible address. */
void agt_conn_next(struct agt *a, struct agt_run *r);
/* Handles a failed attempt to connect. open: the connection still stands. */
void agt_conn_failed(struct agt *a, struct agt_run *r, const char *why, bool open);
/* Handles a failed attempt to connect; newcomers that give up end with *v. open: the connection
 * still stands. */
void agt_conn_refused(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open);
/* Records that a master has answered at the address to which the agent has connected. */
void agt_conn_reached(struct agt *a, struct agt_run *r);
/* Handles a redirect by the master at the address where it was reached last: the other addresses
 * are tried first. */
void agt_conn_redirected(const struct agt *a, struct agt_run *r);
/* Records that `addr` is another address of r's master. */
void agt_conn_alias(struct agt_run *r, const struct cc_addr *addr);
void agt_conn_tick(struct agt *a, struct agt_run *r);
/* Handles an accepted connection: the master's time to answer starts now. */
void agt_conn_taken(struct agt *a, const struct agt_event *ev);
void agt_conn_set_master(struct agt *a, const struct agt_event *ev);

/* agt_resume.c */
/* Handles the loss of the master of a run that is up. open: its connection still stands. */
void agt_orphan(struct agt *a, struct agt_run *r, const char *why, bool open);
void agt_history_add(struct agt_run *r, uint32_t group, uint64_t seq, uint32_t code);
void agt_history_free(struct agt_run *r);
/* Returns the highest known term of this run; 0: not known. */
uint64_t agt_term_of(const struct agt *a, const struct cc_id *run);
void agt_term_set(struct agt *a, struct agt_run *r, uint64_t term);
void agt_resume_ack(struct agt *a, struct agt_run *r, const struct wm_hello_ack *m);
/* Sends WM_RESUME, the last message of a snapshot. */
void agt_resume_end(struct agt *a, struct agt_run *r);

/* agt_leave.c */
/* Sends or keeps the leave `l` of c. Sets c->untold if c's destroy waits for WM_LEFT. */
void agt_leave(struct agt *a, struct agt_run *r, struct agt_comm *c, const struct wm_leave *l);
/* Handles WM_LEFT. */
void agt_left(struct agt *a, struct agt_run *r, const struct wm_left *m);
/* Sends all leaves that no master has confirmed to a new master of r. */
void agt_leaves_tell(struct agt *a, struct agt_run *r);
/* Replies to the destroy requests that wait for a master, because this master is gone. */
void agt_leaves_answer(struct agt *a, struct agt_run *r);
void agt_leaves_tick(struct agt *a, struct agt_run *r);
/* Has a master been told of every leave? */
bool agt_leaves_sent(const struct agt_run *r);
void agt_ghosts_free(struct agt_run *r);

/* agt_attach.c */
void agt_attach_request(struct agt *a, struct agt_session *s, const struct wl_request *q);
/* Asks the master how the attempts that c names have ended. */
void agt_attach_query(struct agt *a, struct agt_comm *c);
void agt_attach_outcomes(struct agt *a, struct agt_run *r, const struct wm_op_outcomes *m);
/* Answers the attach of c if everything for the answer is known. */
void agt_attach_try(struct agt *a, struct agt_comm *c);
/* Ends the attaches of r that name another run than `run`, the run of r's master. */
void agt_attach_check_run(struct agt *a, struct agt_run *r, const struct cc_id *run);
void agt_attach_tick(struct agt *a);

/* agt_mesh.c */
/* Is the agent another host of this ring, which has a mesh? */
bool agt_mesh_has(const struct wm_ring *g, const struct cc_id *peer);
/* The rings in force are new: opens their meshes. */
void agt_mesh_open(struct agt *a, struct agt_run *r);
/* Reports meshes that are up now, or no longer. */
void agt_mesh_check(struct agt *a, struct agt_run *r);
/* Reports all meshes, because the master may not know them. */
void agt_mesh_tell(struct agt *a, struct agt_run *r);
/* The link to this agent has broken, and was forgotten. */
void agt_mesh_link_down(struct agt *a, struct agt_run *r, const struct cc_id *peer);
/* Logs that a link of a mesh could not be opened. */
void agt_mesh_link_failed(struct agt *a, const struct agt_link *l);
/* This agent has lost the link at its end: opens a new one. */
void agt_mesh_reopen(struct agt *a, struct agt_run *r, const struct cc_id *peer);
/* Returns the agents of all hosts, in ring order; the own entry is zero. The caller frees them. */
struct cc_id *agt_mesh_agents(const struct wm_ring *g);
/* Returns NULL, or which link of the mesh is missing. */
const char *agt_mesh_broken(
	struct agt_run *r, const struct wm_ring *g, const struct cc_id **suspect);

/* agt_plan.c. `i`: number of a ring of g's plan. */
/* Return the host after this host in the ring, and the one before it. */
const struct wm_endpoint *agt_plan_next(const struct wm_ring *g, uint32_t i);
const struct cc_id *agt_plan_prev(const struct wm_ring *g, uint32_t i);
/* Does a ring of the plan use the link to the peer, or, with `inbound`, the link from the peer? */
bool agt_plan_has(const struct wm_ring *g, const struct cc_id *peer, bool inbound);
/* Returns NULL, or which link of the plan is missing. */
const char *agt_plan_broken(
	struct agt_run *r, const struct wm_ring *g, const struct cc_id **suspect);
/* Returns the agents to which this host sends, or, with `inbound`, from which it receives: one for
 * each ring of the plan. The caller owns the array. */
struct cc_id *agt_plan_agents(const struct wm_ring *g, bool inbound);
/* Returns the rings of the plan, which the caller owns. g must have a plan. */
struct cc_rings *agt_plan_rings(const struct wm_ring *g);

/* agt_round.c */
struct agt_group *agt_group_find(struct agt_run *r, uint32_t group);
struct agt_group *agt_group_get(struct agt_run *r, uint32_t group);
void agt_group_put(struct agt_run *r, struct agt_group *g);
void agt_round_begin(struct agt *a, struct agt_run *r, const struct wm_round *m);
void agt_round_commit(struct agt *a, struct agt_run *r, const struct wm_commit *m);
void agt_round_clear(struct agt_round *rd);
/* Is a round in progress? Not if a commit with a greater number has come since: then the master has
 * dropped the round. */
bool agt_in_round(const struct agt_run *r);
/* Drops the ring of g, after the last local member of g has left. */
void agt_ring_leave(struct agt_run *r, struct agt_group *g);
/* Is the peer a member of the round, and was the round reported as prepared? */
bool agt_round_prepared(const struct agt_run *r, const struct cc_id *peer);
void agt_view_set(struct agt *a, struct agt_run *r, const struct wm_view *w);
/* Returns the latest view, for the peers of g. */
struct wire_view agt_view_of(const struct agt_run *r, const struct agt_group *g);
/* Returns the generation and the view for a call that was made with `generation` and ends now with
 * `code`. If a loss ends the call, they are the generation and the view of the first loss after
 * `generation`, so that all members get equal values. */
struct agt_generation agt_view_after(
	const struct agt_run *r, const struct agt_group *g, uint64_t generation, uint32_t code);
void agt_link_event(struct agt *a, const struct agt_event *ev);
bool agt_link_is_up(struct agt_run *r, const struct cc_id *peer);
/* Is the link to this agent up, or being opened with this proof or a newer one? The other agent may
 * refuse older proofs. */
bool agt_link_exists(struct agt_run *r, const struct wm_endpoint *to);
/* Reports that the link from this agent is lost at this end. */
void agt_link_tell_lost(struct agt *a, struct agt_run *r, const struct cc_id *peer);
/* Makes sure that there is a link to `to` with this many streams. A link that is up is kept, unless
 * it must be reopened, is silent while no operation runs on it, or has too few streams while
 * nothing flows through it. */
void agt_link_want(struct agt *a, struct agt_run *r, const struct wm_endpoint *to, uint32_t streams,
	bool reopen);
/* Returns true while it is not known whether the outbound link to the peer can be used. */
bool agt_link_in_doubt(const struct agt_run *r, const struct cc_id *peer);
/* Is a link for which the round waits in doubt? */
bool agt_round_in_doubt(const struct agt_run *r);
void agt_links_sweep(struct agt *a, struct agt_run *r);
/* Reports the lost links of the rings in force to a master that may not know of them. */
void agt_links_tell(struct agt *a, struct agt_run *r);
bool agt_link_from_lost(const struct agt_run *r, const struct cc_id *peer);
bool agt_link_is_used(const struct agt_run *r, const struct cc_id *peer);
void agt_links_free(struct agt_run *r);

#include "pcclagentd/core/agt_op.h"

#endif
