/* SPDX-License-Identifier: MIT
 *
 * A whole run in one process. The master cores and the agent cores are real. The network, data
 * threads, shims and training programs between them exist only as events in virtual time. One seed
 * decides everything, so the same seed gives the same run.
 *
 *   run.c         the program: options, seeds, totals
 *   sim_view.c    one seed from setup to the last check
 *   sim_event.c   random numbers, the schedule
 *   sim_text.c    the trace: one line per message and event
 *   sim_net.c     connections between agents and masters
 *   sim_master.c  masters: start, steps, journal, death
 *   sim_host.c    agents: start, steps, death
 *   sim_link.c    links between agents
 *   sim_topology.c  measurements of links, and solutions of optimizations
 *   sim_slow.c    a link that becomes slow
 *   sim_mesh.c    what a master may know of the links between all hosts, and the routes it chooses
 *   sim_xfer.c    transfers, and the operands that they sum up
 *   sim_memory.c  the buffers of operations: all writes to them, and how they are restored
 *   sim_sync.c    shared state of programs, and the jobs that synchronize it
 *   sim_elect.c   a master's elections, compared with the rules
 *   sim_shim.c    the shim: calls, sessions, return to a new agent
 *   sim_op.c      the shim's side of operations
 *   sim_peer.c    training programs
 *   sim_stray.c   programs that make calls of their own, and the answers that they may get
 *   sim_plan.c    the program that all peers of a group follow after a topology vote
 *   sim_fault.c   single faults
 *   sim_scene.c   times of faults, and faults that go together
 *   sim_lineage.c the lineage of a run: peers that went on without others
 *   sim_check.c   the invariants that hold at every step
 *   sim_scale.c   the growth of the cost with the number of peers
 *
 * sim->now is the time of the simulated world. Every host and every master has a clock of its own,
 * which runs at 0.9 to 1.1 times that speed. An agent or a master is named by a number that is
 * never used again; `life` counts the agents that a host has had.
 */
#ifndef SIM_H
#define SIM_H

#include "tests/sim/sim_types.h"

struct sim {
	uint64_t seed, rng, now, next_no;
	bool trace;
	char failure[768]; /* "" as long as no check has failed */
	enum sim_class class;
	struct sim_event *heap;
	size_t n_events, cap;
	unsigned n_hosts, n_procs, n_peers, n_groups, n_masters;
	struct sim_host hosts[SIM_HOSTS];
	struct sim_master masters[SIM_MASTERS];
	int at[SIM_ADDRS];    /* the master that listens at each address, by number; -1: none */
	int home;             /* the address at which programs look for the master */
	int moved[SIM_ADDRS]; /* set-master: the address to use instead; -1: none */
	bool configured;      /* agents that start know `moved` from their configuration */
	bool journal;         /* masters have a state directory */
	/* A link that becomes slow (sim_slow.c). */
	struct {
		bool paced;     /* programs make pauses */
		bool on, stale; /* the link is slow; a master has noticed it */
		unsigned from, to, master;
		uint64_t rate; /* bit/s */
	} slow;
	uint64_t busy_until; /* until then, programs that have finished their plan go on */
	struct sim_record *records;
	size_t n_records, cap_records;
	struct ccm_actions m_acts;
	struct sim_conn **conns; /* by number - 1 */
	uint32_t n_conns, cap_conns;
	struct sim_proc procs[SIM_PROCS];
	struct sim_peer peers[SIM_PEERS];
	struct sim_link links[SIM_LINKS];
	bool blocked[SIM_HOSTS][SIM_HOSTS]; /* these links cannot be opened now */
	bool counts; /* programs vote on the topology when they see fewer peers after a failure */
	/* such a link breaks as soon as it carries an operation */
	bool routed[SIM_HOSTS][SIM_HOSTS];
	uint64_t routed_until;
	bool deaf[SIM_HOSTS][SIM_HOSTS]; /* such hosts receive nothing from each other now */
	/* since when a master has had to avoid a silent link; 0: no such link */
	uint64_t silent_since;
	bool parted[SIM_HOSTS][SIM_ADDRS]; /* hosts that cannot reach a master's address now */
	struct sim_xfer *xfers;
	uint32_t n_tags, last_req, last_session, last_id;
	uint32_t agent_lease_ms, master_lease_ms, reconnector_lease_ms;
	/* two masters of one run: members of one attempt may get different results */
	bool two_masters;
	bool odd_parameters, xfer_failures, master_refuses;
	bool strays;        /* programs make calls that the others do not make */
	bool refusals;      /* calls may fail before they are submitted */
	bool crash_telling; /* the master dies when it has told only some hosts of a success */
	/* until then, the master dies when it has told only some hosts to start an operation on
	 * another route than the ring */
	uint64_t starting_until;
	bool master_gone;    /* the master is dead or frozen now */
	uint64_t away_until; /* until then, calls may fail because they found no master */
	uint64_t causes;     /* events that may cost programs an error: losses, broken links ... */
	uint64_t progress;   /* when a call returned last */
	uint64_t last_look;  /* when waiting calls were checked last */
	uint64_t events, reductions, retries, kills, reconnects, agent_deaths, attaches, doubts,
		aheads, rolled_back, routed_ops;
	uint64_t master_deaths, resumes, voters, rests, witnesses;
	uint64_t syncs, served, torn,
		/* peers: those that synchronized, those that received from others, those that were
		 * kicked */
		kicked;
	struct cc_id out[256]; /* the peers that were kicked last */
	uint32_t n_out;
	struct sim_saw votes[WIRE_BALLOTS][64];
	struct sim_saw lost[SIM_GROUPS][64]; /* what peers saw after calls that a loss has ended */
	struct sim_answer answers[WIRE_BALLOTS][SIM_ANSWERS];
	struct sim_epoch *epochs; /* the newest first */
	struct sim_told *told;
	/* when a member last came to a master that takes its run over */
	uint64_t taken_over;
	/* the number of calls that were answered because they could never meet others */
	uint64_t unmet;
	uint64_t seen[SIM_SEEN], killed_at; /* killed_at: when the last process died */
	/* the number of overruled epochs (sim_lineage.c) */
	uint64_t overruled;
	/* a master expected a revision that others had passed. It had this revision from its
	 * journal, or from members that were apart from the others */
	bool outdated;
	/* A revision that only a given-up peer remembers; 0: none. */
	uint64_t left_over[SIM_GROUPS];
};

/* sim_event.c */
uint32_t sim_rnd(struct sim *s, uint32_t n); /* Returns a number from 0 to n - 1. */
bool sim_chance(struct sim *s, uint32_t percent);
/* Returns a number that follows from `a`, `b`, `c` and the seed only. */
uint64_t sim_hash(const struct sim *s, uint64_t a, uint64_t b, uint64_t c);
/* Returns a delay for a message. It is mostly short, sometimes long. */
uint64_t sim_delay(struct sim *s);
struct cc_id sim_new_id(struct sim *s, uint8_t kind);
struct sim_clock sim_new_clock(struct sim *s);
uint64_t sim_clock_now(const struct sim *s, const struct sim_clock *c);
/* Schedules a copy of `ev`. The schedule then owns the bytes of `ev`. */
void sim_schedule(struct sim *s, uint64_t at, struct sim_event ev);
bool sim_next(struct sim *s, struct sim_event *ret);
void sim_events_free(struct sim *s);
/* Ends the run with a failure and its reason. Only the first failure counts. */
__attribute__((format(printf, 2, 3))) void sim_fail(struct sim *s, const char *fmt, ...);

/* sim_text.c */
#define SIM_TEXT 512u
__attribute__((format(printf, 2, 3))) void sim_trace(struct sim *s, const char *fmt, ...);
/* The following functions return names for the trace. The buffer is valid for a few calls. */
const char *sim_name_master(const struct sim *s, unsigned master);
const char *sim_name_peer(const struct sim *s, const struct cc_id *peer);
const char *sim_name_agent(const struct sim *s, const struct cc_id *agent);
const char *sim_text_msg(const struct sim *s, const struct wm_msg *m);
const char *sim_text_code(uint32_t code);
const char *sim_text_call(uint32_t type);

/* sim_net.c */
struct sim_conn *sim_conn(struct sim *s, uint32_t no);
void sim_connect(struct sim *s, struct sim_host *h, uint32_t run, const struct cc_addr *addr);
void sim_connected(struct sim *s, const struct sim_event *ev);
void sim_accept(struct sim *s, const struct sim_event *ev);
void sim_send_to_master(struct sim *s, struct sim_host *h, uint32_t run, const struct wm_msg *m);
void sim_send_to_agent(struct sim *s, unsigned master, uint32_t conn, const struct wm_msg *msg);
void sim_to_master(struct sim *s, const struct sim_event *ev);
void sim_to_agent(struct sim *s, const struct sim_event *ev);
void sim_conn_end(struct sim *s, const struct sim_event *ev);
void sim_agent_closes(struct sim *s, struct sim_host *h, uint32_t run);
void sim_master_closes(struct sim *s, unsigned master, const struct ccm_action *x);
/* Breaks the connection. `agent`, `master`: does this end see the break at once? Otherwise it can
 * only notice the silence. */
void sim_conn_cut(struct sim *s, struct sim_conn *c, bool agent, bool master);
/* The process at one end has died. */
void sim_conn_agent_died(struct sim *s, struct sim_conn *c, bool silent);
void sim_conn_master_died(struct sim *s, struct sim_conn *c);
void sim_conns_free(struct sim *s);

/* sim_master.c */
struct cc_addr sim_master_addr(int addr);
int sim_master_addr_no(const struct cc_addr *addr);
/* Starts a master at an address that has none. */
void sim_master_start(struct sim *s, unsigned addr);
void sim_master_kill(struct sim *s, unsigned no);
bool sim_is_recovering(const struct sim_master *m);
void sim_master_step(struct sim *s, unsigned no, const struct ccm_event *ev);
void sim_master_tick(struct sim *s, unsigned no);
void sim_journal_free(struct sim *s);
/* Tells the agent that the master at `from` is now at `to`. */
void sim_set_master(struct sim *s, struct sim_host *h, unsigned from, unsigned to);

/* sim_host.c */
void sim_host_start(struct sim *s, unsigned no);
/* Steps the agent and carries out its actions. */
void sim_host_step(struct sim *s, struct sim_host *h, const struct agt_event *ev);
void sim_host_tick(struct sim *s, const struct sim_event *ev);
/* Returns h's present run with this id; 0: none. */
uint32_t sim_host_run(const struct sim_host *h, const struct cc_id *id);
/* Ends the agent in the same way as a request to end does. */
void sim_host_end(struct sim *s, struct sim_host *h);
/* Kills the agent. silent: the whole host vanishes with its processes, and no participant is
 * informed. */
void sim_host_kill(struct sim *s, struct sim_host *h, bool silent);
struct sim_host *sim_host_by_id(struct sim *s, const struct cc_id *id);

/* sim_link.c */
struct sim_link *sim_link_find(
	struct sim *s, const struct sim_host *h, uint32_t run, const struct cc_id *to);
void sim_link_open(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_link_close(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_link_result(struct sim *s, const struct sim_event *ev);
void sim_probe(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_probe_result(struct sim *s, const struct sim_event *ev);

/* sim_topology.c */
void sim_measure(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_measure_stop(struct sim_host *h, const struct agt_action *x);
void sim_measured(struct sim *s, const struct sim_event *ev);
/* The agent reports what its links have carried. */
/* sim_slow.c */
void sim_slow_begin(struct sim *s);
/* Returns the time for which a program does nothing now. */
uint64_t sim_slow_pause(struct sim *s);
bool sim_slow_is(const struct sim *s, unsigned from, unsigned to);
/* A master writes this line to its log. */
void sim_slow_log(struct sim *s, const struct sim_master *m, const char *text);

void sim_carried(struct sim *s, struct sim_host *h);
void sim_solve(struct sim *s, unsigned no, const struct ccm_problem *p);
void sim_solved(struct sim *s, const struct sim_event *ev);
/* Checks a round that the master sends over the connection. */
void sim_plan_sent(struct sim *s, const struct sim_master *m, const struct sim_conn *c,
	const struct wm_round *r);
void sim_link_seen_down(struct sim *s, const struct sim_event *ev);
/* Breaks the link. Both ends learn of it. */
void sim_link_break(struct sim *s, struct sim_link *l);
/* Resets the link. Only one end learns of it: the source, if `at_source`, else the other end. */
void sim_link_reset(struct sim *s, struct sim_link *l, bool at_source);
/* Cuts the two hosts off from each other, or connects them again. */
void sim_pair_cut(struct sim *s, unsigned one, unsigned other, bool cut);
void sim_link_quiet(struct sim *s, const struct sim_event *ev);
/* The run is over on this host. Closes its links, unless a transfer of the run is still in
 * progress. */
void sim_links_drop(struct sim *s, struct sim_host *h, uint32_t run);
void sim_links_host_died(struct sim *s, struct sim_host *h, bool silent);

/* sim_mesh.c */
/* The master sends a message to an agent. */
void sim_mesh_sent(
	struct sim *s, const struct sim_master *m, struct sim_conn *c, const struct wm_msg *msg);
/* The agent is about to process a message of its master. */
void sim_mesh_got(struct sim_conn *c, const struct wm_msg *msg);
/* Notes in `ev`, which carries the WM_MESH, which orders of the master the agent knows. */
void sim_mesh_reports(const struct sim_conn *c, struct sim_event *ev);
/* The master is about to process a WM_MESH. */
void sim_mesh_reported(struct sim_conn *c, const struct sim_event *ev, const struct wm_mesh *x);
/* Returns a host that has not reported all its links since the last commit, or -1. */
int sim_mesh_half_open(const struct sim *s);

/* sim_xfer.c */
/* Returns the first part of the attempt that has started in the run; NULL: none. */
const struct sim_part *sim_xfer_first(const struct sim *s, const struct cc_id *run, uint64_t seq);
void sim_xfer_start(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_rollback(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_free(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_event(struct sim *s, const struct sim_event *ev);
/* Stops all transfers over this link. */
void sim_xfers_break(struct sim *s, const struct sim_link *l);
bool sim_xfers_live(const struct sim *s, const struct sim_host *h, uint32_t run);
void sim_xfers_host_died(struct sim *s, struct sim_host *h);
/* Checks all attempts again. Called when a process has an agent again, when an agent has sent its
 * snapshot to a master, and when a takeover has ended. */
void sim_xfers_back(struct sim *s);
/* Takes in the member's answer: a success or a failure. connected: the member is still in the
 * run. */
void sim_xfer_heard(struct sim *s, struct sim_peer *p, struct sim_op *o, bool connected);
/* Checks a completion by the agent: the memory must be free, or the result complete. */
void sim_xfer_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o);
struct sim_part *sim_xfer_part(struct sim_xfer *x, unsigned host, uint32_t life);
void sim_xfers_free(struct sim *s);
/* Returns the attempt with this number at h's master. Creates it if there is none. */
struct sim_xfer *sim_xfer_get(struct sim *s, const struct sim_host *h, uint32_t run, uint64_t seq);
/* May h's master use sequence numbers that another master of the run uses, too? */
bool sim_xfer_apart(struct sim *s, const struct sim_host *h, uint32_t run);
/* Adds h's part. NULL: h already has a part, and the simulation has failed. */
struct sim_part *sim_xfer_join(
	struct sim *s, struct sim_xfer *t, const struct sim_host *h, uint32_t run);
struct sim_part *sim_xfer_live(struct sim *s, unsigned host, uint32_t life, uint32_t run,
	uint64_t seq, struct sim_xfer **ret);
/* Is there a member that has got this answer, has an agent, and is still known to a master? */
bool sim_xfer_goes_on(const struct sim *s, const struct sim_xfer *t, enum sim_heard heard);
/* Is there a member that has got a success and belongs to the run of this master? same_agent: only
 * if the agent that got it still lives. */
bool sim_xfer_goes_on_with(
	const struct sim *s, const struct sim_xfer *t, const struct sim_master *m, bool same_agent);
/* Does a master certainly know the peer as a member? */
bool sim_peer_is_member(const struct sim *s, const struct sim_peer *p);

/* sim_memory.c */
/* The program launches an operation. */
void sim_memory_begin(struct sim *s, struct sim_peer *p, uint32_t tag);
/* A host starts its part of a transfer. */
void sim_memory_part(struct sim *s, struct sim_part *q);
/* The data threads of a host have a segment's sum. */
void sim_memory_segment(struct sim *s, struct sim_xfer *t, struct sim_part *q, uint32_t seg);
/* The shim has the answer, which is in `o`. */
void sim_memory_end(struct sim *s, struct sim_peer *p, const struct sim_op *o);
/* The communicator is gone, and no call awaits its operations. Restores their buffers. */
void sim_memory_abandon(struct sim *s, struct sim_peer *p);
void sim_memory_check(struct sim *s);

/* sim_shim.c */
void sim_shim_call(struct sim *s, struct sim_peer *p, uint32_t type);
void sim_shim_request(struct sim *s, const struct sim_event *ev);
void sim_shim_opened(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_shim_reply(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_shim_goodbye(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_shim_attrs(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_shim_agent_died(struct sim *s, struct sim_host *h);
void sim_shim_reconnector(struct sim *s, struct sim_proc *q);
void sim_proc_kill(struct sim *s, struct sim_proc *q, bool silent);
struct sim_peer *sim_peer_find(struct sim *s, const struct sim_host *h, uint32_t comm);

/* sim_op.c */
void sim_op_launch(struct sim *s, struct sim_peer *p, uint32_t tag);
/* Is the agent of this session alive, and the process, too? */
bool sim_op_is_up(const struct sim *s, const struct sim_peer *p, uint32_t session);
void sim_op_submit(struct sim *s, const struct sim_event *ev);
void sim_op_complete(struct sim *s, struct sim_host *h, const struct agt_action *x);
/* The agent has died: puts operations with a whole result in doubt, and fails the others. */
void sim_ops_agent_died(struct sim *s, struct sim_peer *p);
/* Ends the operations in doubt. `bits` has a bit for each operation that has succeeded. */
void sim_ops_settle(struct sim *s, struct sim_peer *p, uint64_t bits);
/* Ends all operations in flight with this code. */
void sim_ops_fail(struct sim *s, struct sim_peer *p, uint32_t code, const char *text);
/* Submits the operations that waited for the reconnector. */
void sim_ops_resume(struct sim *s, struct sim_peer *p);

/* sim_peer.c */
void sim_peer_go(struct sim *s, struct sim_peer *p);
void sim_peer_later(struct sim *s, struct sim_peer *p, uint64_t delay);
void sim_peer_returned(struct sim *s, struct sim_peer *p, uint32_t type, uint32_t code,
	const char *text, bool flag);
/* An operation has ended. Wakes the program if it waits for this operation. */
void sim_peer_op_done(struct sim *s, struct sim_peer *p, uint32_t tag);
bool sim_peer_alone(const struct sim_peer *p);
/* Does the program wait for any of its operations while it has more operations to launch? */
bool sim_peer_awaits_any(const struct sim_peer *p);
bool sim_peers_ended(const struct sim *s);
void sim_peers_describe(struct sim *s);

/* sim_stray.c */
/* May a vote be answered although other peers have not voted? This happens if programs stray in
 * this run, or if one part of the run was overruled. Then peers count ballots in which others took
 * no part. */
bool sim_strays(const struct sim *s);
/* Lets the program make a call of its own before a step, sometimes. Returns whether it does. */
bool sim_stray(struct sim *s, struct sim_peer *p);
/* At the beginning of a step: sometimes adds an operation that the plan does not have. */
void sim_stray_launch(struct sim *s, struct sim_peer *p);
/* Will the program destroy its communicator without waiting for its operations? */
bool sim_stray_may_leave(const struct sim_peer *p);
/* The program has begun to wait for an operation. */
void sim_stray_await(struct sim *s, struct sim_peer *p, uint32_t tag);
void sim_stray_asleep(struct sim *s, const struct sim_event *ev);
void sim_stray_await_any(struct sim *s, struct sim_peer *p);
void sim_stray_asleep_any(struct sim *s, const struct sim_event *ev);
/* Checks the statement of a master that these calls can never meet others. */
void sim_stray_check(struct sim *s, const struct sim_master *m, const struct wm_unmet *u);

/* sim_plan.c */
void sim_plan(struct sim *s, struct sim_peer *p);
struct sim_key sim_plan_key(const struct sim_peer *p, uint32_t tag);
/* Fills in the type, size and quantization of the operand. An odd operation has one parameter that
 * the other peers' operations do not have. */
void sim_plan_params(
	const struct sim *s, const struct sim_peer *p, uint32_t tag, struct shm_submission *sub);

/* sim_fault.c; more in sim_fault.h */
/* Something has happened that may cost each program one error. */
void sim_cause(struct sim *s);

/* sim_check.c */
void sim_check_master(struct sim *s, const struct sim_master *m);
/* Do several peers use the run of `m`? Then `m` does not replace it by another run. */
bool sim_check_in_use(const struct sim_master *m);
void sim_check_told(struct sim *s, struct sim_master *m, const struct sim_view *w);
void sim_check_obeys(struct sim *s, const struct sim_host *h, const struct sim_conn *c);
void sim_check_view(struct sim *s, const struct sim_peer *p, const struct wire_view *v);
/* p has received the answer to its vote on pending peers. */
void sim_check_answer(struct sim *s, const struct sim_peer *p, enum wire_ballot kind);
void sim_check_vote(
	struct sim *s, const struct sim_peer *p, uint32_t type, const struct wire_view *w);
/* Returns the connection of p's agent to its master; 0: none. */
uint32_t sim_conn_of(const struct sim *s, const struct sim_peer *p);
void sim_check_end(struct sim *s, const struct sim_peer *p, const struct sim_op *o);
void sim_check_code(struct sim *s, const struct sim_peer *p, const struct sim_op *o, uint32_t tag);
void sim_check_call(
	struct sim *s, const struct sim_peer *p, uint32_t type, uint32_t code, const char *text);
/* Checks a line of a log. It must not report a violation of the protocol. */
void sim_check_log(struct sim *s, const char *text);
void sim_check_waits(struct sim *s);
void sim_check_quiet(struct sim *s);
void sim_describe(struct sim *s);

/* sim_lineage.c */
/* Has the run split, so that members of one attempt may get different results, and one operation
 * may have two results? Two masters of the run were at work. */
bool sim_is_split(const struct sim *s);
/* The master puts rings in force. */
void sim_lineage_commit(struct sim *s, const struct sim_master *m, const struct wm_commit *c);
/* The master is about to process the join of a peer. */
void sim_lineage_join(
	struct sim *s, const struct sim_master *m, uint32_t conn, const struct wm_join *j);
/* The master is about to process the snapshot of an agent's run. */
void sim_lineage_resume(struct sim *s, const struct sim_master *m, uint32_t conn);
/* A call of p has succeeded that needs other members. vote: the call needs all members of the run,
 * not only those of p's group. */
void sim_lineage_success(struct sim *s, const struct sim_peer *p, bool vote);
/* p leaves by itself. */
void sim_lineage_left(struct sim *s, const struct sim_peer *p);
void sim_lineage_free(struct sim *s);

/* sim_view.c. Runs a seed and returns whether all checks passed. If `program` is not NULL, prints a
 * failure, and the command by which `program` replays the seed. */
bool sim_view_run(struct sim *s, uint64_t seed, bool trace, const char *program);

/* sim_scale.c */
#define SIM_SIZES    8u /* at most: runs to compare, and peers in one run */
#define SIM_SIZE_MAX 1000000u
int sim_scale(const uint32_t *sizes, unsigned n);

#endif
