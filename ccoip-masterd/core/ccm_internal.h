/* SPDX-License-Identifier: MIT
 *
 * Functions that the files of the master core share. Only files in ccoip-masterd/core include this.
 * The structures are in ccm_types.h and ccm_run.h.
 *
 *   ccm.c                  construction, events in, settling at the end of each step
 *   ccm_action.c           actions out, text
 *   ccm_state.c            named states; only this file writes them
 *   ccm_agent.c            connections: hello, silence, the end; how an agent is reached
 *   ccm_disconnect.c       disconnected agents, and how their peers come back
 *   ccm_resume.c           takeover of a run: its term, the snapshots of its agents
 *   ccm_lost.c             the list of lost peers, and those that the last master had lost
 *   ccm_takeover.c         the end of a takeover: numbers, members, rings
 *   ccm_takeover_op.c      takeover: outcomes of attempts that were in progress
 *   ccm_restore.c          the journal
 *   ccm_member.c           peers, memberships and groups: join, leave, kick
 *   ccm_loss.c             what a loss does to a group and its operations; the views that are sent
 *   ccm_ballot.c           ballots: votes on the topology, pending peers, optimization
 *   ccm_world.c            world sizes
 *   ccm_newcomer.c         newcomers that a round can admit: probes, hosts that failed
 *   ccm_round.c            connection rounds up to the commit
 *   ccm_evict.c            rounds that failed: evicted peers, pairs that rings avoid
 *   ccm_breaks.c           pairs whose links break in each operation
 *   ccm_flaps.c            flapping agents: their connections break again and again
 *   ccm_ring.c             ring orders that avoid failed pairs
 *   ccm_tour.c             the second search for a ring, used when the first one has given up
 *   ccm_optimize.c         optimizations: their phases, plans, answer
 *   ccm_measure.c          the measurements of optimizations
 *   ccm_caps.c             which caps of hosts must be measured again
 *   ccm_schedule.c         which hosts measure at the same time
 *   ccm_rates.c            the bandwidth store
 *   ccm_hosts.c            the hosts in the bandwidth store
 *   ccm_store.c            the bandwidth store in the journal
 *   ccm_topology.c         rings, plans and rates, for operators
 *   ccm_plan.c             plans: the order of the hosts, and several weighted rings
 *   ccm_mesh.c             links between all hosts of a ring; the routes of operations
 *   ccm_op.c               operations
 *   ccm_spec.c             speculative starts of operations
 *   ccm_sync.c             synchronizations: election, sources and receivers, losses meanwhile
 *   ccm_elect.c            the rules of an election, as a function without state
 *   ccm_sync_disconnect.c  synchronizations that continue without disconnected peers
 *   ccm_revision.c         the revision that each group expects
 *   ccm_over.c             the end of a run: reset by an operator, end by the program
 *   ccm_waits.c            calls that wait: who is awaited, and which agents are told
 *   ccm_standstill.c       links that take data and do not deliver it
 *   ccm_unmet.c            calls that can never meet, and the answers to them
 *   ccm_view.c             the state of the core, for operators
 *   ccm_record.c           results of elections, for operators
 *   ccm_check.c            the invariants
 *
 * A *membership* is the part of one agent in one group. Handlers change the state and leave marks
 * (lost groups, a stale round, ...). ccm_settle acts on the marks in one fixed order: new view,
 * aborts, rounds, votes, operations. Objects that are gone are unlinked at once, and freed by
 * ccm_reap after the aborts that still name them.
 *
 * Cost: a message costs O(1) plus the agents and peers that it has consequences for. Only commits
 * scan all peers, because they concern all of them. Iteration is in the order of arrival (uthash
 * keeps it).
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
/* The age of a measurement. It may be older than the clock: then `ns` is negative, modulo 2^64. */
static inline uint64_t ccm_rate_age(uint64_t now, uint64_t ns)
{
	return now - ns <= INT64_MAX ? now - ns : 0;
}

/* ccm_action.c */
/* Starts a message to `a`. The caller fills it in: the result is never NULL, and valid until the
 * next action. Arrays that the message points to must be malloc'd. */
struct wm_msg *ccm_send(struct ccm *m, const struct ccm_agent *a, enum wm_type type);
/* Starts one message to many agents: to those that ccm_send_to adds before the next action. */
struct wm_msg *ccm_send_all(struct ccm *m, enum wm_type type);
void ccm_send_to(
	struct ccm *m, const struct ccm_agent *a); /* does nothing if a has no connection */
struct wj_record *ccm_journal_action(struct ccm *m);
struct ccm_problem *ccm_solve_action(struct ccm *m);
void ccm_close(struct ccm *m, uint32_t conn, const char *text);
bool ccm_logs(const struct ccm *m, uint32_t level);
/* Logs a line about this agent. */
__attribute__((format(printf, 4, 5))) void ccm_log_agent(
	struct ccm *m, const struct ccm_agent *a, uint32_t level, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void ccm_log(
	struct ccm *m, uint32_t level, const char *fmt, ...);
/* Prints, and cuts text that is too long. */
__attribute__((format(printf, 3, 4))) void ccm_print(char *dst, size_t size, const char *fmt, ...);
/* Appends, and cuts text that is too long. */
__attribute__((format(printf, 3, 4))) void ccm_append(char *dst, size_t size, const char *fmt, ...);
/* Copies text that another host has sent. Control characters become '?'. */
void ccm_copy(char *dst, size_t size, const char *src);

/* ccm_state.c */
void ccm_peer_refresh(struct ccm *m, struct ccm_peer *p);
void ccm_op_set_state(struct ccm *m, struct ccm_op *o, enum ccm_collective_state s);
/* Returns the state that follows from the flags of p. */
enum ccm_connection_state ccm_peer_state(const struct ccm *m, const struct ccm_peer *p);

/* ccm_agent.c */
struct ccm_agent *ccm_agent_find(const struct ccm *m, uint32_t conn);
/* Takes `a` out of ccm->agents. */
void ccm_agent_unhash(struct ccm *m, struct ccm_agent *a);
void ccm_agent_open(struct ccm *m, const struct ccm_event *ev);
/* Writes "host (1.2.3.4:5)", or before the hello "1.2.3.4:5". Returns buf. */
const char *ccm_agent_label(const struct ccm_agent *a, char *buf, size_t size);
void ccm_agent_hello(struct ccm *m, struct ccm_agent *a, const struct wm_hello *h);
/* Removes `a`, whose connection is gone, and its peers. */
void ccm_agent_lost(struct ccm *m, struct ccm_agent *a, const char *text);
/* Unlinks `a`, whose peers are gone. ccm_reap frees it. */
void ccm_agent_bury(struct ccm *m, struct ccm_agent *a);
/* Kicks the peers of `a`, sends it the reason and closes its connection. */
__attribute__((format(printf, 4, 5))) void ccm_agent_kick(
	struct ccm *m, struct ccm_agent *a, uint32_t code, const char *fmt, ...);
void ccm_agent_tick(struct ccm *m);
/* Checks at the beginning of each step whether the process was suspended. `gone`: the connection
 * that this step reports as closed, or 0. */
void ccm_agent_pause(struct ccm *m, uint32_t gone);
/* Checks whether this host was cut off from the network: before each tick, and when a remote host
 * connects (`reached`). */
void ccm_agent_reach(struct ccm *m, bool reached);
void ccm_agent_heard(struct ccm *m, struct ccm_agent *a);
void ccm_agent_ack(struct ccm *m, struct ccm_agent *a);
/* Refuses the connection of `a`. The agent may come back. */
void ccm_agent_redirect(struct ccm *m, struct ccm_agent *a, const char *text);
/* Closes the older connection of the same agent, if there is one: it must be dead. */
void ccm_agent_cut_half_open(struct ccm *m, const struct ccm_agent *a);
/* Describes how `to` reaches `a`: at its p2p port, or at its port for shared state. */
void ccm_agent_endpoint(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);
void ccm_agent_endpoint_state(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);

void ccm_agent_endpoint_benchmark(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret);

/* ccm_optimize.c */
/* Begins, continues or ends an optimization. Called while no round is in progress or wanted. */
void ccm_optimize_settle(struct ccm *m);
/* Ends an optimization that cannot succeed any more. Called before rounds are settled. */
void ccm_optimize_watch(struct ccm *m);
/* The optimization in progress has failed. Its proposals are withdrawn. */
void ccm_optimize_fail(struct ccm *m, const char *text);
void ccm_optimize_solved(struct ccm *m, const struct ccm_solution *s);
/* Proposes better solutions that have come after the last optimization. Returns false if there are
 * none. */
bool ccm_optimize_better(struct ccm *m);
/* A round is committed. */
void ccm_optimize_committed(struct ccm *m);
/* Links of the round could not be opened. Returns true if the round would have put proposals in
 * force. These are withdrawn, and the caller drops the round. */
bool ccm_optimize_round_failed(struct ccm *m);

/* ccm_measure.c */
/* Are the links of this group measured? Groups of one or two hosts have only one ring. */
bool ccm_measure_wants(const struct ccm_group *g);
/* Lists the hosts, and the links whose rates are not known well enough. Returns true if something
 * is to be measured. */
bool ccm_measure_list(struct ccm *m);
/* Begins to measure what is listed. The optimization may fail at once. */
void ccm_measure_begin(struct ccm *m);
/* Begins the next round if all agents have reported. Returns false after the last one, or, with
 * optimize.busy set, if hosts have been busy for too long. */
bool ccm_measure_goes_on(struct ccm *m);
void ccm_measure_take(struct ccm *m, struct ccm_agent *a, const struct wm_measured *r);
void ccm_measure_tick(struct ccm *m);
/* Orders all agents to stop. */
void ccm_measure_stop(struct ccm *m);
void ccm_measure_free(struct ccm *m);

/* ccm_rates.c */
void ccm_rate_put(struct ccm *m, const struct cc_id *from, const struct cc_id *to,
	const struct ccm_measured *v);
/* Returns what is known about the link, or NULL. */
const struct ccm_measured *ccm_rate_get(
	const struct ccm *m, const struct cc_id *from, const struct cc_id *to);
/* Returns how sure a value is now, in percent. It loses 100 percent in an hour, and an unreachable
 * link in a minute. At 0 it is to be measured again. */
uint32_t ccm_confidence(const struct ccm_origin *o, uint64_t now_ns);
/* Is the rate known, and not to be measured again? */
bool ccm_rate_is_trusted(const struct ccm *m, const struct cc_id *from, const struct cc_id *to);
/* Takes what an agent has measured before, for this or another master. */
void ccm_rates_learn(struct ccm *m, const struct ccm_agent *a, const struct wm_rates *r);
/* Takes what links of `a` have carried in operations. Raises rates, and marks links as stale that
 * have become slow. */
void ccm_rates_carried(struct ccm *m, const struct ccm_agent *a, const struct wm_rates *r);
/* Marks all rates and caps as stale. */
void ccm_rates_forget(struct ccm *m);
/* The time of a measurement of this age. */
uint64_t ccm_rate_ns(const struct ccm *m, uint32_t age_s);
void ccm_cap_put(struct ccm *m, const struct cc_id *host, const struct ccm_cap *v);
const struct ccm_cap *ccm_cap_get(const struct ccm *m, const struct cc_id *host);
bool ccm_cap_is_trusted(const struct ccm *m, const struct cc_id *host);
void ccm_rates_free(struct ccm *m);

/* ccm_hosts.c */
struct ccm_store_host *ccm_host_find(const struct ccm *m, const struct cc_id *agent);
/* Finds or makes it. The caller then gives it a rate or a cap. */
struct ccm_store_host *ccm_host_get(struct ccm *m, const struct cc_id *agent);
/* Frees x if it has neither a rate nor a cap. */
void ccm_host_release(struct ccm *m, struct ccm_store_host *x);
/* Writes what names the host of `a` beyond its end. */
void ccm_host_name(const struct ccm_agent *a, struct wm_host *ret);
/* Returns the id of the agent that is on this host now: `agent`, or, if it is gone and the host is
 * named, the one that has followed it. */
const struct cc_id *ccm_host_agent(
	const struct ccm *m, const struct cc_id *agent, const struct wm_host *h);
/* Gives x its name and its address. Does nothing if a host has them already. */
void ccm_host_place(struct ccm *m, struct ccm_store_host *x, const char *name,
	const struct cc_addr *from, uint16_t port);
/* `a` has got members. If it is the next agent of a host in the store, the rates and the cap of the
 * host become its own. */
void ccm_host_continue(struct ccm *m, const struct ccm_agent *a);

/* ccm_store.c */
/* Writes the store to the journal if it has changed. */
void ccm_store_save(struct ccm *m);
void ccm_store_tick(struct ccm *m);
/* Keeps a record of the journal until the first step, when the time is known. */
void ccm_store_keep(struct ccm *m, const struct wj_record *r);
void ccm_store_restore(struct ccm *m);
/* Does this master write a journal? */
bool ccm_journal_writes(const struct ccm *m);

/* ccm_topology.c */
const char *ccm_rate_source_name(enum ccm_rate_source s);
/* Notes how fast o, which is done and had operands of so many bytes, was. */
void ccm_note_rate(struct ccm *m, const struct ccm_op *o, uint64_t bytes);

/* ccm_spec.c */
/* Reserves the seq of the next attempt with the tag of o, which is done. */
uint64_t ccm_spec_reserve(struct ccm *m, const struct ccm_op *o, uint32_t *route);
/* Called before a vote for o is counted. Notes whether all votes so far name the same reserved seq.
 * `seq`: the seq that this vote names. */
void ccm_spec_voted(struct ccm *m, struct ccm_op *o, uint64_t seq);
/* Cancels the reserved seq of o's tag. The attempt under this seq is abandoned, but reports on it
 * may still arrive. */
void ccm_spec_void(struct ccm_op *o);
/* Cancels the reserved seqs of g for other routes than the ring. */
void ccm_spec_void_routed(struct ccm_group *g);
/* Forgets the speculative start of o. Reports on it do not count; o may still start under another
 * seq. */
void ccm_spec_forget(struct ccm *m, struct ccm_op *o);
/* Returns the seq under which all agents have begun o speculatively, or 0. Called when o has all
 * its votes. */
uint64_t ccm_spec_commit(struct ccm *m, struct ccm_op *o);
/* Returns the operation that has not started, but was begun speculatively under seq; or NULL. */
struct ccm_op *ccm_spec_find(struct ccm *m, uint64_t seq);

/* ccm_member.c */
struct ccm_peer *ccm_peer_find(const struct ccm *m, const struct cc_id *id);
/* Returns the peer that `a` names in a message. Returns NULL if the peer is unknown (ignore the
 * message), or if it belongs to another agent (then `a` was kicked: see a->dead). */
struct ccm_peer *ccm_peer_of(
	struct ccm *m, struct ccm_agent *a, const struct cc_id *id, const char *what);
struct ccm_membership *ccm_membership_find(const struct ccm *m, uint64_t agent_no, uint32_t group);
/* Finds the membership of `a` in the group, or NULL. */
struct ccm_membership *ccm_membership_of(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group);
/* Finds or makes the membership of `a` in the group. */
struct ccm_membership *ccm_membership_get(struct ccm *m, struct ccm_agent *a, uint32_t group);
/* Lets ccm_reap free s, unless s has peers again by then. */
void ccm_membership_vacate(struct ccm *m, struct ccm_membership *s);
/* Adds p, which is in no list, to the peers of s: accepted peers come before registered ones. */
void ccm_membership_add(struct ccm_membership *s, struct ccm_peer *p);
/* Makes a registered peer. */
struct ccm_peer *ccm_peer_new(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_ring_remove(struct ccm_group *g, struct ccm_membership *s);
/* Records that `a` is the agent that speaks for its agent id. */
void ccm_agent_claim(struct ccm *m, struct ccm_agent *a);
/* Closes an older connection of the same agent before `a` joins, because an agent joins through one
 * connection only. (If the agent has state of the run, its hello has already closed that
 * connection.) If `a` names the run, the older connection's peers may come back through `a`.
 * Otherwise these peers have left, and the messages that report this are still under way. */
void ccm_agent_cut_older(struct ccm *m, const struct ccm_agent *a);
/* Returns the reason why `a` cannot have one more peer in the group, in buf; or NULL. */
const char *ccm_membership_objection(
	const struct ccm *m, const struct ccm_agent *a, uint32_t group, char *buf, size_t size);
/* Refuses the join of a peer with WM_KICK and this code. */
void ccm_join_refuse(struct ccm *m, struct ccm_agent *a, const struct cc_id *peer, uint32_t code,
	const char *text);
/* Marks that g has a new view, which is sent when the step is settled. Its operations continue. */
void ccm_group_changed(struct ccm *m, struct ccm_group *g);
/* Counts a loss of g and marks its new view. Operations that g's peers have voted for are aborted,
 * except for a synchronization that has started. */
void ccm_group_lost(struct ccm *m, struct ccm_group *g, const char *text);
/* Counts a loss of g, and aborts every operation of g. */
__attribute__((format(printf, 3, 4))) void ccm_group_interrupt(
	struct ccm *m, struct ccm_group *g, const char *fmt, ...);
/* Takes back p's topology and pending votes, and its part in the round. */
void ccm_peer_withdraw(struct ccm *m, struct ccm_peer *p);
void ccm_member_join(struct ccm *m, struct ccm_agent *a, const struct wm_join *j);
void ccm_member_leave(struct ccm *m, struct ccm_agent *a, const struct wm_leave *l);
/* Sends WM_LEFT for each leave of this step, once the leave is in force and in the journal. */
void ccm_leaves_answer(struct ccm *m);
__attribute__((format(printf, 4, 5))) void ccm_peer_kick(
	struct ccm *m, struct ccm_peer *p, uint32_t code, const char *fmt, ...);
/* Kicks p because of a violation, with "protocol violation: ...". */
__attribute__((format(printf, 3, 4))) void ccm_peer_violation(
	struct ccm *m, struct ccm_peer *p, const char *fmt, ...);
/* Unlinks and frees p. `why`: a clause that tells the other peers why p is lost. */
void ccm_peer_remove(struct ccm *m, struct ccm_peer *p, const char *why);
/* Accepts p, which was registered. */
void ccm_peer_accept(struct ccm *m, struct ccm_peer *p);
/* Writes "name@host pid 12". Returns buf. */
const char *ccm_peer_label(const struct ccm_peer *p, char buf[3 * WM_NAME_MAX]);
void ccm_loss_announce(struct ccm *m);
/* These functions send a WM_VIEW to agents with accepted peers. */
/* To one agent, if no view with all its groups was sent on its connection yet. Every decision about
 * an operation comes after a view that names all losses before the decision (decision 064). So this
 * is called before the end of an attempt is sent to an agent that comes back, or to a new agent. */
void ccm_view_catch_up(struct ccm *m, struct ccm_agent *a);
void ccm_view_tell_group(struct ccm *m, const struct ccm_group *g); /* to the agents of one group */
void ccm_view_announce(struct ccm *m);
void ccm_reap(struct ccm *m);
void ccm_group_free(struct ccm_group *g);   /* also frees the memory that it owns */
uint32_t ccm_slot_get(struct ccm_slots *s); /* hands out a number */
void ccm_slot_put(struct ccm_slots *s, uint32_t slot);

/* ccm_ballot.c */
void ccm_ballot_vote(struct ccm *m, struct ccm_agent *a, const struct wm_ballot_vote *v);
/* Learns numbers that an agent or a peer knows, unless the master is recovering. A higher number
 * than ours ends our ballot. */
void ccm_ballot_learn(struct ccm *m, const uint64_t numbers[WIRE_BALLOTS]);
/* Raises the numbers while no vote is counted, because the master is recovering. */
void ccm_ballot_raise(struct ccm *m, const uint64_t numbers[WIRE_BALLOTS]);
void ccm_ballot_numbers(const struct ccm *m, uint64_t ret[WIRE_BALLOTS]);
/* Skips numbers that others may have used. */
void ccm_ballots_skip(struct ccm *m);
/* Ends a ballot, and sets its number. The caller tells the agents. */
void ccm_ballot_end(struct ccm *m, enum wire_ballot kind, uint64_t number);
/* Takes back the vote of p, whose call ends. */
void ccm_ballot_release(struct ccm *m, struct ccm_peer *p, enum wire_ballot kind);
/* Takes back all votes of p, which is lost or kicked. */
void ccm_ballot_withdraw(struct ccm *m, struct ccm_peer *p);
/* Returns the first kind for which peers have voted, or WIRE_BALLOTS. */
enum wire_ballot ccm_ballot_open(const struct ccm *m);
/* Do votes of the group keep its operations from starting? */
bool ccm_ballot_bars(const struct ccm_group *g);
/* Ends a ballot that does not end with a commit, and tells the agents. `text`: why the answer is
 * no, or "". */
void ccm_ballot_answer(struct ccm *m, enum wire_ballot kind, bool answer, const char *text);
bool ccm_topology_agreed(const struct ccm *m);
/* Ends ballots for which all peers have voted, except topology votes (ccm_round.c). Returns true if
 * an optimization wants a round now. */
bool ccm_ballots_settle(struct ccm *m);

/* ccm_world.c */
void ccm_view_totals(const struct ccm *m, struct wm_view *ret);
/* Fills in the groups of `a`, and the lost peers that `a` does not know. `w` contains the totals of
 * ccm_view_totals, and is about to be sent. */
void ccm_view_own(struct ccm *m, struct ccm_agent *a, struct wm_view *w);
/* Is w, the last view that was made, also right for `a`? */
bool ccm_view_fits(const struct ccm *m, const struct ccm_agent *a, const struct wm_view *w);

/* ccm_waits.c */
/* Adds o to the operations that wait for votes. */
void ccm_waits_add(struct ccm *m, struct ccm_op *o);
/* Removes o from the operations that wait for votes. `started`: o has started. */
void ccm_waits_remove(struct ccm *m, struct ccm_op *o, bool started);
/* Has any vote waited for more than a moment? Then the heartbeats ask agents to check their
 * processes: a process that is awaited may be stopped, and agents seldom check processes that do
 * nothing. */
bool ccm_waits_any(const struct ccm *m);
/* Logs votes that have waited for too long, and tells the peers that have voted. */
void ccm_waits_tick(struct ccm *m);
/* Stores the new addresses of `a`. They are used from the next round on. */
void ccm_agent_addresses(struct ccm_agent *a, const struct wm_addresses *x);
void ccm_peer_stopped(struct ccm *m, struct ccm_agent *a, const struct wm_stopped *v);
/* Records that p's process runs again, or that p is removed. */
void ccm_peer_goes_on(struct ccm *m, struct ccm_peer *p);
/* Counts p, a registered peer, as a stopped newcomer. If `is` is false, stops counting p. */
void ccm_asleep_count(struct ccm *m, struct ccm_peer *p, bool is);
/* Names the newcomers whose processes are stopped. */
void ccm_name_asleep(const struct ccm *m, uint64_t now, char *text, size_t size);
/* Marks the group of p, which was just accepted, if its agents must be told of stopped
 * processes. */
void ccm_stopped_tell(struct ccm *m, const struct ccm_peer *p);
/* Names the peers of g whose processes are stopped. Returns false if there are none. */
bool ccm_name_stopped(const struct ccm_group *g, uint64_t now, bool exact, char *text, size_t size);
/* Names the peers for which o, which has not started, waits: "1 of 3 peers: NAME (has not called)".
 * `exact`: also name times, which change from call to call. */
void ccm_op_awaited(const struct ccm *m, const struct ccm_op *o, uint64_t now, bool exact,
	char *text, size_t size);
/* Appends the names of peers whose votes are missing. */
void ccm_name_voters(const struct ccm *m, enum wire_ballot kind, uint64_t now, bool exact,
	char *text, size_t size);

/* ccm_standstill.c */
void ccm_standstill(struct ccm *m, struct ccm_agent *a, const struct wm_standstill *x);

/* ccm_unmet.c */
/* Records that p, which has voted for o, does nothing else until o ends. `kind`: enum
 * wm_wait_for_kind. */
void ccm_unmet_waits_for(struct ccm *m, struct ccm_op *o, struct ccm_peer *p, uint32_t kind);
/* Ends p's wait, because p's vote for o is withdrawn or p goes on. */
void ccm_unmet_unblock(struct ccm *m, struct ccm_op *o, struct ccm_peer *p);
/* Ends p's wait for o, which starts or ends. */
void ccm_unmet_release(struct ccm *m, const struct ccm_op *o, struct ccm_peer *p);
/* Clears the count of peers that wait for o. The caller releases each of them as well. */
void ccm_unmet_forget(struct ccm *m, struct ccm_op *o);
void ccm_peer_waits_for(struct ccm *m, struct ccm_agent *a, const struct wm_waits_for *b);
/* Records the number of p's main thread, as its agent reports it. */
void ccm_unmet_thread(struct ccm *m, struct ccm_peer *p, uint64_t thread);
/* Answers calls that can never meet, at the end of a step. Returns true if it has answered a peer,
 * so that the step must be settled again. */
bool ccm_unmet_settle(struct ccm *m);

/* ccm_view.c */
/* Appends the hosts that have not reported on the connection round. */
void ccm_name_reporters(const struct ccm *m, char *text, size_t size);

/* ccm_op.c */
void ccm_op_vote(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v);
void ccm_op_report(struct ccm *m, struct ccm_agent *a, const struct wm_op_report *r);
/* Checks which operations are complete, after a peer without votes has left g. */
void ccm_group_recount(struct ccm *m, struct ccm_group *g);
/* Takes back the votes of the peers of s, unless an operation of the group has started or is to be
 * aborted. These peers are about to be kicked. Like all other peers, they have already been told of
 * a loss. */
void ccm_op_withdraw(struct ccm *m, struct ccm_membership *s);
/* Aborts every all-reduce of g. `halted`: also aborts a synchronization that has started. */
void ccm_group_abort(
	struct ccm *m, struct ccm_group *g, uint32_t code, const char *text, bool halted);
void ccm_op_abort(struct ccm *m, struct ccm_op *o, uint32_t code, const char *text);
uint64_t ccm_op_bytes(const struct ccm_op *o); /* of an operand; 0: not known */
/* Ends o with success: all agents have reported. */
void ccm_op_done(struct ccm *m, struct ccm_op *o);
/* Releases the voters of o and frees o. Nothing is sent. */
void ccm_op_drop(struct ccm *m, struct ccm_op *o);
/* Makes room for peers that have joined since o began. */
void ccm_op_room(struct ccm_op *o);
/* Counts p's vote for o. */
void ccm_op_count(struct ccm_op *o, struct ccm_peer *p);
/* Takes back p's vote for o, because p is lost. */
void ccm_op_unvote(struct ccm *m, struct ccm_op *o, struct ccm_peer *p);
/* Counts the report of an agent that has a part in o. */
void ccm_op_reported(struct ccm *m, struct ccm_op *o, struct ccm_part *part);
/* Handles a failure report (ok is false). If the report has a code, only o fails, and it ends with
 * this code. Otherwise all operations of the group fail. */
void ccm_op_failed(
	struct ccm *m, struct ccm_agent *a, struct ccm_op *o, const struct wm_op_report *r);
/* Writes "group 0 tag 7" or "group 0, shared state,". Returns buf. */
const char *ccm_op_label(const struct ccm_op *o, char buf[64]);
/* Starts operations that are ready and have nothing in their way any more. */
void ccm_op_settle(struct ccm *m);
/* Counts a vote from a snapshot without acting on it. Returns the operation, or NULL if no vote
 * counts. */
struct ccm_op *ccm_op_collect(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v);
/* If o has all votes, starts o as attempt seq, or continues that attempt if o was collected from
 * snapshots. Returns false if o was dropped. */
bool ccm_op_continue(struct ccm *m, struct ccm_op *o, uint64_t seq);
void ccm_op_tell_start(struct ccm *m, const struct ccm_op *o, struct ccm_agent *a);
/* Tells `a` how the attempt v->seq has ended. */
void ccm_op_tell_end(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text);
/* Refuses a vote that cannot count, with the same answer as if its operation had been aborted. */
void ccm_op_refuse(struct ccm *m, struct ccm_agent *a, const struct wm_op_vote *v, uint32_t code,
	const char *text);
bool ccm_op_voted(const struct ccm_op *o, const struct ccm_peer *p);
void ccm_op_free(struct ccm_op *o);

#endif
