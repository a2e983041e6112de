/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share. Nobody outside ccoip-masterd/core includes
 * this. The structures are in ccm_types.h and ccm_run.h.
 *
 *   ccm.c           construction, events in, what is settled at the end of each step
 *   ccm_action.c    actions out, text
 *   ccm_state.c     named states; the only writer of them
 *   ccm_agent.c     connections: hello, silence, the end; how an agent is reached
 *   ccm_disconnect.c    agents that are gone while their peers may come back; how they do
 *   ccm_resume.c    a run that is taken over: its term, what the agents say of it
 *   ccm_lost_before.c    ... and who was lost by the master before, unheard
 *   ccm_takeover.c  what follows from that
 *   ccm_takeover_op.c      ... for operations that were under way
 *   ccm_restore.c   the journal
 *   ccm_member.c    peers, memberships and groups: join, leave, kick
 *   ccm_loss.c      what it is to a group, and to its operations; the view that is told
 *   ccm_vote.c      topology and pending votes, world sizes
 *   ccm_newcomer.c  which newcomers a round could admit: probes, hosts that failed
 *   ccm_round.c     connection rounds up to the commit
 *   ccm_evict.c   rounds that failed: who goes, which pairs are avoided
 *   ccm_breaks.c    pairs whose links break in each operation
 *   ccm_flaps.c     agents whose connections break one after the other
 *   ccm_ring.c      ring orders that avoid failed pairs
 *   ccm_op.c        operations
 *   ccm_spec.c     ... that agents begin before the votes are counted
 *   ccm_sync.c      those of shared state: the election, who gets what from whom, losses meanwhile
 *   ccm_sync_disconnect.c      ... those that go on without peers whose agents are gone
 *   ccm_revision.c  which revision each group expects
 *   ccm_over.c      runs that end by somebody's word
 *   ccm_waits.c     who is awaited by what has not started, and who is told of it
 *   ccm_standstill.c     links that take data and do not deliver it
 *   ccm_unmet.c     calls that can never meet, and what they are answered
 *   ccm_view.c      looking inside
 *   ccm_record.c    what became of elections of shared state, for people
 *   ccm_check.c     the invariants
 *
 * A *membership* is one agent's part in one group. Handlers change the state and leave marks (lost
 * groups, a stale round, ...); ccm_settle draws the conclusions in one fixed order: new view,
 * aborts, rounds, votes, operations. What is gone is unlinked at once and freed by ccm_reap, after
 * the aborts that still name it.
 *
 * Cost: a message costs O(1) plus the agents and peers that it has consequences for; nothing scans
 * all peers but commits, which are theirs. Iteration is in the order of arrival (uthash keeps it).
 */
#ifndef CCM_INTERNAL_H
#define CCM_INTERNAL_H

#include "ccoip-masterd/core/ccm_rounds.h"
#include "ccoip-masterd/core/ccm_run.h"
#include "ccoip-masterd/core/ccm_takeover.h"

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
/* Before a tick, and before another host's connection: was this host cut off? */
void ccm_agent_reach(struct ccm *m, bool reached);
void ccm_agent_heard(struct ccm *m, struct ccm_agent *a);
void ccm_agent_ack(struct ccm *m, struct ccm_agent *a);
/* It may come back. */
void ccm_agent_redirect(struct ccm *m, struct ccm_agent *a, const char *text);
/* Another connection of the same agent is dead. */
void ccm_agent_cut_half_open(struct ccm *m, const struct ccm_agent *a);
/* How `to` reaches a: its p2p port, and its port for shared state. */
void ccm_agent_endpoint(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);
void ccm_agent_endpoint_state(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);

/* ccm_spec.c */
/* The number for the next operation with the tag of o, which is done. */
uint64_t ccm_spec_reserve(struct ccm *m, const struct ccm_op *o);
/* Before a vote for o is counted; seq: as it says. */
void ccm_spec_voted(struct ccm *m, struct ccm_op *o, uint64_t seq);
/* The number for the next operation with the tag of o is not good any more: reports on an attempt
 * under it, which is given up, may be on their way. */
void ccm_spec_void(struct ccm_op *o);
/* o starts otherwise, if at all; reports do not count. */
void ccm_spec_forget(struct ccm *m, struct ccm_op *o);
/* o has all its votes: the number that it has begun under everywhere, or 0. */
uint64_t ccm_spec_commit(struct ccm *m, struct ccm_op *o);
/* Not started, with votes that say so; or NULL. */
struct ccm_op *ccm_spec_find(struct ccm *m, uint64_t seq);

/* ccm_member.c */
struct ccm_peer *ccm_peer_find(const struct ccm *m, const struct cc_id *id);
/* The peer that a names. NULL when it is unknown (pass over the message) or somebody else's (then a
 * has been kicked: look at a->dead). */
struct ccm_peer *ccm_peer_of(
	struct ccm *m, struct ccm_agent *a, const struct cc_id *id, const char *what);
struct ccm_membership *ccm_membership_find(const struct ccm *m, uint64_t agent_no, uint32_t group);
/* The same, where the agent is at hand. */
struct ccm_membership *ccm_membership_of(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group);
/* NULL without memory. */
struct ccm_membership *ccm_membership_get(struct ccm *m, struct ccm_agent *a, uint32_t group);
/* To be freed by ccm_reap, if nobody takes it until then. */
void ccm_membership_vacate(struct ccm *m, struct ccm_membership *s);
/* Puts p, which is unlinked, at its place on s. */
void ccm_membership_add(struct ccm_membership *s, struct ccm_peer *p);
/* Registered; NULL without memory. */
struct ccm_peer *ccm_peer_new(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_ring_remove(struct ccm_group *g, struct ccm_membership *s);
/* a speaks for its peers from now on. */
void ccm_agent_claim(struct ccm *m, struct ccm_agent *a);
/* a is about to join. An agent joins by one connection: where it has state of the run, its hello
 * has cut the older one. Else the peers that joined by the older one have left, and only the news
 * is late; or, if it names the run, they may come by this one. */
void ccm_agent_cut_older(struct ccm *m, const struct ccm_agent *a);
/* Why a cannot have one more peer in the group: NULL, or the sentence in buf. */
const char *ccm_membership_objection(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group, char *buf, size_t size);
/* The peer may not join: WM_KICK with this code. */
void ccm_join_refuse(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer, uint32_t code,
	const char *text);
/* The view of g is told anew when the step is settled; its operations go on. */
void ccm_group_changed(struct ccm *m, struct ccm_group *g);
/* The same, and it is counted: what g's peers have voted for is aborted, but for a synchronization
 * that has started. */
void ccm_group_lost(struct ccm *m, struct ccm_group *g, const char *text);
/* The same, without exception. */
__attribute__((format(printf, 3, 4))) void ccm_group_interrupt(
	struct ccm *m, struct ccm_group *g, const char *fmt, ...);
/* What p has voted for at large does not count any more. */
void ccm_peer_withdraw(struct ccm *m, struct ccm_peer *p);
void ccm_member_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_member_leave(struct ccm *m, struct ccm_agent *a, const struct wm_leave *l);
/* Sends WM_LEFT for the leaves that have come, once they are in force and in the journal. */
void ccm_leaves_answer(struct ccm *m);
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
/* WM_VIEW to all that have accepted peers. */
void ccm_view_tell(struct ccm *m, const struct ccm_agent *a);       /* to one agent */
void ccm_view_tell_group(struct ccm *m, const struct ccm_group *g); /* to those of a group */
void ccm_view_announce(struct ccm *m);
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
void ccm_view_totals(const struct ccm *m, struct wm_view *ret);
/* Fills in what a's own groups are; totals from ccm_view_totals. */
void ccm_view_own(struct ccm *m, const struct ccm_agent *a, struct wm_view *w);
/* Is that what w says already? */
bool ccm_view_fits(const struct ccm_agent *a, const struct wm_view *w);

/* ccm_waits.c */
/* o waits for votes from now on. */
void ccm_waits_add(struct ccm *m, struct ccm_op *o);
/* It does no more. started: it goes on. */
void ccm_waits_remove(struct ccm *m, struct ccm_op *o, bool started);
/* Does anything wait for votes, and not just for a moment? Whom it waits for may be stopped, and
 * the agents look seldom at the processes of who does nothing. */
bool ccm_waits_any(const struct ccm *m);
/* Logs what has waited for too long, and tells those who have voted. */
void ccm_waits_tick(struct ccm *m);
/* It is reached there from the next round on. */
void ccm_agent_addresses(struct ccm_agent *a, const struct wm_addresses *x);
void ccm_peer_stopped(struct ccm *m, struct ccm_agent *a, const struct wm_stopped *v);
/* p's process runs again, or is no concern of the group any more. */
void ccm_peer_goes_on(struct ccm *m, struct ccm_peer *p);
/* p, which is registered and stopped, counts as such from now on, or no more. */
void ccm_asleep_count(struct ccm *m, struct ccm_peer *p, bool is);
/* Names those. */
void ccm_name_asleep(const struct ccm *m, uint64_t now, char *text, size_t size);
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

/* ccm_standstill.c */
void ccm_standstill(struct ccm *m, struct ccm_agent *a, const struct wm_standstill *x);

/* ccm_unmet.c */
/* p, which has voted for o, does nothing else until o ends. kind: enum wm_wait_for_kind. */
void ccm_unmet_waits_for(struct ccm *m, struct ccm_op *o, struct ccm_peer *p, uint32_t kind);
/* p's vote for o goes. */
void ccm_unmet_unblock(struct ccm *m, struct ccm_op *o, struct ccm_peer *p);
/* o, which p has voted for, starts or ends: p does not wait for it any more. */
void ccm_unmet_release(struct ccm *m, const struct ccm_op *o, struct ccm_peer *p);
/* The same for all of them, which have been released: o is not waited for. */
void ccm_unmet_forget(struct ccm *m, struct ccm_op *o);
void ccm_peer_waits_for(struct ccm *m, struct ccm_agent *a, const struct wm_waits_for *b);
/* The number of p's main thread, as its agent says. */
void ccm_unmet_thread(struct ccm *m, struct ccm_peer *p, uint64_t thread);
/* At the end of a step. True: somebody was answered, settle again. */
bool ccm_unmet_settle(struct ccm *m);

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
void ccm_op_withdraw(struct ccm *m, struct ccm_membership *s);
/* All all-reduces of g; halted: and a synchronization that has started. */
void ccm_group_abort(
	struct ccm *m, struct ccm_group *g, uint32_t code, const char *text, bool halted);
void ccm_op_abort(struct ccm *m, struct ccm_op *o, uint32_t code, const char *text);
/* All have reported. */
void ccm_op_done(struct ccm *m, struct ccm_op *o);
/* Lets go of the voters, then of o; nobody is told. */
void ccm_op_drop(struct ccm *m, struct ccm_op *o);
/* Room for what the group has grown by; false without memory. */
bool ccm_op_room(struct ccm *m, struct ccm_op *o);
/* p has voted for o. */
void ccm_op_count(struct ccm_op *o, struct ccm_peer *p);
/* p's vote for o, whose process is lost, goes. */
void ccm_op_unvote(struct ccm *m, struct ccm_op *o, struct ccm_peer *p);
/* Calls of an agent that has a part in o. */
void ccm_op_reported(struct ccm *m, struct ccm_op *o, struct ccm_part *part);
/* ok: false. With a code o alone fails, with that; else so does all that its group has in flight.
 */
void ccm_op_failed(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r);
/* "group 0 tag 7", "group 0, shared state" */
const char *ccm_op_label(const struct ccm_op *o, char buf[64]);
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
