/* SPDX-License-Identifier: MIT
 *
 * A whole run in one process: real master cores, real agent cores, and in between a network, data
 * threads, shims and training programs that exist only as events in virtual time. One seed decides
 * everything; the same seed gives the same run.
 *
 *   run.c         the program: options, seeds, totals
 *   sim_view.c   one seed from setup to the last check
 *   sim_event.c   random numbers, the schedule
 *   sim_text.c    the trace: who says what
 *   sim_net.c     connections between agents and masters
 *   sim_master.c  masters: start, steps, journal, death
 *   sim_host.c    agents: start, steps, death
 *   sim_link.c    links between agents
 *   sim_xfer.c    transfers, and what they have summed up
 *   sim_memory.c  the buffers of operations: who writes what, and what is taken back
 *   sim_sync.c    shared state: what programs have, the jobs that synchronize it
 *   sim_elect.c   what a master makes of the votes for it
 *   sim_shim.c    what libpccl-shim does: calls, sessions, coming back to a new agent
 *   sim_op.c      the shim's side of operations
 *   sim_peer.c    training programs
 *   sim_stray.c   programs that call what the others do not, and what may be answered to them
 *   sim_plan.c    the program that all peers of a group follow after a topology vote
 *   sim_fault.c   what goes wrong
 *   sim_scene.c   when, and what goes wrong together
 *   sim_lineage.c who has gone on without whom
 *   sim_check.c   the invariants that hold at every step, each with its sentence
 *   sim_scale.c   how cost grows
 *
 * Time: sim->now is the time of the world. Every host and every master has a clock of its own that
 * runs at 0.9 to 1.1 of it. An agent or a master is named by a number that is never used again;
 * `life` counts the agents that a host has had.
 */
#ifndef SIM_H
#define SIM_H

#include "tests/sim/sim_types.h"

/* What may happen in this run, from harmless to everything. */
enum sim_class { CLASS_CALM, CLASS_MASTER, CLASS_AGENT, CLASS_PAIR, CLASS_DEATHS, CLASS_ALL };

struct sim_record {
	uint8_t *bytes;
	size_t len;
};

/* Events that a run is to have had: run.c counts them, and the seeds that have them. */
enum sim_seen {
	SEEN_ONE_SIDED, /* a link was lost, and one end never hears of it */
	SEEN_ROUTED,    /* a pair whose links break in each operation is avoided */
	SEEN_TOGETHER,  /* two processes died within 2 ms */
	SEEN_STRAYED,   /* a call that the others do not make */
	SEEN_ANY,       /* an agent was told that its caller waits for any of its operations */
	SEEN_ODD,       /* an operation with other parameters than the others' */
	SEEN_REFUSED,   /* a call failed where it was made, before it was submitted */
	SEEN_FAILED,    /* a part of an operation failed by itself */
	SEEN_NEWCOMER,  /* a peer was admitted to a run that others had begun */
	SIM_SEEN
};

struct sim {
	uint64_t seed, rng, now, next_no;
	bool trace;
	char failure[768]; /* "" while all is well */
	enum sim_class class;
	struct sim_event *heap;
	size_t n_events, cap;
	unsigned n_hosts, n_procs, n_peers, n_groups, n_masters;
	struct sim_host hosts[SIM_HOSTS];
	struct sim_master masters[SIM_MASTERS];
	int at[SIM_ADDRS];    /* which master listens there; -1: none */
	int home;             /* where programs look for the master: a place */
	int moved[SIM_ADDRS]; /* set-master: where to look instead; -1: nowhere */
	bool configured;      /* that is in the agents' configuration: those that start know it */
	bool journal;         /* masters have a state directory */
	uint64_t busy_until;  /* programs that can go on do so */
	struct sim_record *records;
	size_t n_records, cap_records;
	struct ccm_actions m_acts;
	struct sim_conn **conns; /* by number - 1 */
	uint32_t n_conns, cap_conns;
	struct sim_proc procs[SIM_PROCS];
	struct sim_peer peers[SIM_PEERS];
	struct sim_link links[SIM_LINKS];
	bool blocked[SIM_HOSTS][SIM_HOSTS]; /* links that cannot be opened now */
	bool counts; /* programs vote on the topology when they see fewer peers after a failure */
	bool routed[SIM_HOSTS][SIM_HOSTS]; /* a link breaks as soon as it carries an operation */
	uint64_t routed_until;
	bool deaf[SIM_HOSTS][SIM_HOSTS]; /* nothing of the one comes to the other, nor back */
	uint64_t silent_since; /* a master was told of a silent link, and owes rings; 0: none */
	bool parted[SIM_HOSTS][SIM_ADDRS]; /* hosts that do not reach a master's address now */
	struct sim_xfer *xfers;
	uint32_t n_tags, last_req, last_session, last_id;
	uint32_t agent_lease_ms, master_lease_ms, reconnector_lease_ms;
	bool two_masters; /* of one run: members of one attempt may hear different things */
	bool odd_parameters, xfer_failures, master_refuses;
	bool strays;         /* programs make calls that the others do not make */
	bool refusals;       /* calls fail where they are made, before they are submitted */
	bool crash_telling;  /* the master dies when some hosts have heard of a success */
	bool master_gone;    /* dead or standing still now */
	uint64_t away_until; /* and for how long its absence may be felt */
	uint64_t causes;     /* of errors that programs may see: losses, broken links ... */
	uint64_t progress;   /* when a call returned last */
	uint64_t last_look;  /* at what waits */
	uint64_t events, reductions, retries, kills, reconnects, agent_deaths, attaches, doubts,
		aheads, rolled_back;
	uint64_t master_deaths, resumes, voters, rests, witnesses;
	uint64_t syncs, served, torn,
		kicked;        /* peers: that got it, of them by others, that were put out */
	struct cc_id out[256]; /* peers that were put out, the last ones */
	uint32_t n_out;
	struct sim_saw votes[2][64];
	struct sim_saw lost[SIM_GROUPS][64]; /* after a call that a loss has ended */
	struct sim_answer answers[SIM_ANSWERS];
	struct sim_epoch *epochs; /* the newest first */
	struct sim_told *told;
	uint64_t taken_over; /* when a member came last to a master that takes its run over */
	uint64_t unmet;      /* answers to calls that could never meet */
	uint64_t seen[SIM_SEEN], killed_at; /* when the last process died */
	uint64_t overruled;                 /* epochs: others went on who did not know */
	bool returned;                      /* a peer was put out, and the next master took it */
	bool forgotten;                     /* likewise, and others had gone on meanwhile */
	bool outdated; /* a master expected a revision that others had passed: from its journal, or
			* from members apart from those others */
};

/* sim_event.c */
uint32_t sim_rnd(struct sim *s, uint32_t n); /* 0 .. n - 1 */
bool sim_chance(struct sim *s, uint32_t percent);
/* A number that follows from a, b, c and the seed alone. */
uint64_t sim_hash(const struct sim *s, uint64_t a, uint64_t b, uint64_t c);
/* A delay as of a message: mostly short, sometimes long. */
uint64_t sim_delay(struct sim *s);
struct cc_id sim_new_id(struct sim *s, uint8_t kind);
struct sim_clock sim_new_clock(struct sim *s);
uint64_t sim_clock_now(const struct sim *s, const struct sim_clock *c);
/* Puts a copy in; bytes change hands. */
void sim_schedule(struct sim *s, uint64_t at, struct sim_event ev);
bool sim_next(struct sim *s, struct sim_event *ret);
void sim_events_free(struct sim *s);
/* The run is over, and this is why. Only the first counts. */
__attribute__((format(printf, 2, 3))) void sim_fail(struct sim *s, const char *fmt, ...);

/* sim_text.c */
#define SIM_TEXT 512u
__attribute__((format(printf, 2, 3))) void sim_trace(struct sim *s, const char *fmt, ...);
/* The names of things, in a buffer that is good for a few calls. */
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
/* The connection breaks; who learns of it now? The others by silence only. */
void sim_conn_cut(struct sim *s, struct sim_conn *c, bool agent, bool master);
/* The process at one end has died. */
void sim_conn_agent_died(struct sim *s, struct sim_conn *c, bool silent);
void sim_conn_master_died(struct sim *s, struct sim_conn *c);
void sim_conns_free(struct sim *s);

/* sim_master.c */
struct cc_addr sim_master_addr(int addr);
int sim_master_addr_no(const struct cc_addr *addr);
/* Starts a master at a place where there is none. */
void sim_master_start(struct sim *s, unsigned addr);
void sim_master_kill(struct sim *s, unsigned no);
void sim_master_step(struct sim *s, unsigned no, const struct ccm_event *ev);
void sim_master_tick(struct sim *s, unsigned no);
void sim_journal_free(struct sim *s);
/* Agents are told (over the next while) that the master at `from` is to be found at `to`. */
void sim_set_master(struct sim *s, struct sim_host *h, unsigned from, unsigned to);

/* sim_host.c */
void sim_host_start(struct sim *s, unsigned no);
/* Steps the agent and carries its actions out. */
void sim_host_step(struct sim *s, struct sim_host *h, const struct agt_event *ev);
void sim_host_tick(struct sim *s, const struct sim_event *ev);
/* The run of this id by which h takes part now; 0: none. */
uint32_t sim_host_run(const struct sim_host *h, const struct cc_id *id);
/* The agent ends as it does when it is told to. */
void sim_host_end(struct sim *s, struct sim_host *h);
/* silent: the whole host vanishes with its processes, and nobody is told. */
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
void sim_link_seen_down(struct sim *s, const struct sim_event *ev);
/* The link breaks: both ends learn of it. */
void sim_link_break(struct sim *s, struct sim_link *l);
/* One end is told, the other never. */
void sim_link_reset(struct sim *s, struct sim_link *l, bool at_source);
/* The two hear nothing of each other from now on, or do again. */
void sim_pair_cut(struct sim *s, unsigned one, unsigned other, bool cut);
void sim_link_quiet(struct sim *s, const struct sim_event *ev);
/* The run is over on this host: its links go with its last transfer. */
void sim_links_drop(struct sim *s, struct sim_host *h, uint32_t run);
void sim_links_host_died(struct sim *s, struct sim_host *h, bool silent);

/* sim_xfer.c */
void sim_xfer_start(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_rollback(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_free(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_event(struct sim *s, const struct sim_event *ev);
/* Data does not flow over this link any more. */
void sim_xfers_break(struct sim *s, const struct sim_link *l);
bool sim_xfers_live(const struct sim *s, const struct sim_host *h, uint32_t run);
void sim_xfers_host_died(struct sim *s, struct sim_host *h);
/* Somebody has an agent again, or a master that has heard it out. */
void sim_xfers_back(struct sim *s);
/* The member has its answer: success or not. connected: it goes on as a member of the run. */
void sim_xfer_heard(struct sim *s, struct sim_peer *p, struct sim_op *o, bool connected);
/* The member's slot is completed by its agent: is the memory free, is the result there? */
void sim_xfer_completed(struct sim *s, struct sim_host *h, struct sim_peer *p, struct sim_op *o);
struct sim_part *sim_xfer_part(struct sim_xfer *x, unsigned host, uint32_t life);
void sim_xfers_free(struct sim *s);
/* The attempt that h's master means; made if it is not there. */
struct sim_xfer *sim_xfer_get(struct sim *s, const struct sim_host *h, uint32_t run, uint64_t seq);
/* Does h's master go on, perhaps, with what another one has given the same number? */
bool sim_xfer_apart(struct sim *s, const struct sim_host *h, uint32_t run);
/* Adds h's part; NULL: it has one, and all is lost. */
struct sim_part *sim_xfer_join(
	struct sim *s, struct sim_xfer *t, const struct sim_host *h, uint32_t run);
struct sim_part *sim_xfer_live(struct sim *s, unsigned host, uint32_t life, uint32_t run,
	uint64_t seq, struct sim_xfer **ret);
/* Is there somebody who has heard this, and goes on with an agent? */
bool sim_xfer_goes_on(const struct sim *s, const struct sim_xfer *t, enum sim_heard heard);
/* Is there one of them who has heard of success, and is a member at this master? same_agent: by the
 * agent that has heard it, too. */
bool sim_xfer_goes_on_with(
	const struct sim *s, const struct sim_xfer *t, const struct sim_master *m, bool same_agent);
/* Does a master know the peer for certain? */
bool sim_peer_is_member(const struct sim *s, const struct sim_peer *p);

/* sim_memory.c */
/* The program launches an operation. */
void sim_memory_begin(struct sim *s, struct sim_peer *p, uint32_t tag);
/* A host starts its part of a transfer. */
void sim_memory_part(struct sim *s, struct sim_part *q);
/* Its data threads have a segment's sum. */
void sim_memory_segment(struct sim *s, struct sim_xfer *t, struct sim_part *q, uint32_t seg);
/* The shim has the answer, in o. */
void sim_memory_end(struct sim *s, struct sim_peer *p, const struct sim_op *o);
/* The communicator is gone: nobody will await what is in flight. */
void sim_memory_abandon(struct sim *s, struct sim_peer *p);
void sim_memory_check(struct sim *s);

/* sim_shim.c */
void sim_shim_call(struct sim *s, struct sim_peer *p, enum wl_type type);
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
/* The agent has it, and this process is still there. */
bool sim_op_is_up(const struct sim *s, const struct sim_peer *p, uint32_t session);
void sim_op_submit(struct sim *s, const struct sim_event *ev);
void sim_op_complete(struct sim *s, struct sim_host *h, const struct agt_action *x);
/* The agent is gone: what is in doubt, what has failed. */
void sim_ops_agent_died(struct sim *s, struct sim_peer *p);
/* The answer to what was in doubt: the bits of those that are done. */
void sim_ops_settle(struct sim *s, struct sim_peer *p, uint64_t bits);
/* All that is in flight ends with this code. */
void sim_ops_fail(struct sim *s, struct sim_peer *p, uint32_t code, const char *text);
/* Calls that waited for the reconnector go on. */
void sim_ops_resume(struct sim *s, struct sim_peer *p);

/* sim_peer.c */
void sim_peer_go(struct sim *s, struct sim_peer *p);
void sim_peer_later(struct sim *s, struct sim_peer *p, uint64_t delay);
void sim_peer_returned(struct sim *s, struct sim_peer *p, uint32_t type, uint32_t code,
	const char *text, bool flag);
/* An operation is done: the one that p may be waiting for. */
void sim_peer_op_done(struct sim *s, struct sim_peer *p, uint32_t tag);
bool sim_peer_alone(const struct sim_peer *p);
/* It waits for any of its operations, while more are to be launched. */
bool sim_peer_awaits_any(const struct sim_peer *p);
bool sim_peers_ended(const struct sim *s);
void sim_peers_describe(struct sim *s);

/* sim_stray.c */
/* Do programs make calls that the others do not make? Those of two parts of a run do, of which one
 * was overruled, and a peer that was put out and is in again: they count votes that the others have
 * not held. */
bool sim_strays(const struct sim *s);
/* Before a step: true: the program makes a call of its own first. */
bool sim_stray(struct sim *s, struct sim_peer *p);
/* The step has begun: it may launch an operation that is not in it first. */
void sim_stray_launch(struct sim *s, struct sim_peer *p);
/* It destroys its communicator while operations are in flight: it does not wait for them. */
bool sim_stray_may_leave(const struct sim_peer *p);
/* The caller has begun to wait for an operation. */
void sim_stray_await(struct sim *s, struct sim_peer *p, uint32_t tag);
void sim_stray_asleep(struct sim *s, const struct sim_event *ev);
void sim_stray_await_any(struct sim *s, struct sim_peer *p);
void sim_stray_asleep_any(struct sim *s, const struct sim_event *ev);
/* A master says that these calls can never meet others. */
void sim_stray_check(struct sim *s, const struct sim_master *m, const struct wm_unmet *u);

/* sim_plan.c */
void sim_plan(struct sim *s, struct sim_peer *p);
struct sim_key sim_plan_key(const struct sim_peer *p, uint32_t tag);

/* sim_fault.c; more in sim_fault.h */
/* Something has happened that may cost each program one error. */
void sim_cause(struct sim *s);

/* sim_check.c */
void sim_check_master(struct sim *s, const struct sim_master *m);
/* Do several peers use the run of m, so that it makes no room for another one? */
bool sim_check_in_use(const struct sim *s, const struct sim_master *m);
void sim_check_told(struct sim *s, struct sim_master *m, const struct sim_view *w);
void sim_check_obeys(struct sim *s, const struct sim_host *h, const struct sim_conn *c);
void sim_check_view(struct sim *s, const struct sim_peer *p, const struct wire_view *v);
/* p has heard it, with its ballot. */
void sim_check_answer(struct sim *s, const struct sim_peer *p, bool pending);
void sim_check_vote(
	struct sim *s, const struct sim_peer *p, uint32_t type, const struct wire_view *w);
/* By which the agent of p hears its master now; 0: by none. */
uint32_t sim_conn_of(const struct sim *s, const struct sim_peer *p);
void sim_check_end(struct sim *s, const struct sim_peer *p, const struct sim_op *o);
void sim_check_code(struct sim *s, const struct sim_peer *p, const struct sim_op *o, uint32_t tag);
void sim_check_call(
	struct sim *s, const struct sim_peer *p, uint32_t type, uint32_t code, const char *text);
/* A line of a log: everybody keeps to the protocol here. */
void sim_check_log(struct sim *s, const char *text);
void sim_check_waits(struct sim *s);
void sim_check_quiet(struct sim *s);
void sim_describe(struct sim *s);

/* sim_lineage.c */
/* May members of one attempt hear different things, and calls have two results? Two masters of the
 * run were at work, or what one has decided was lost: it died at once with all agents that had
 * heard of it, and the next one goes on from an earlier state. */
bool sim_is_split(const struct sim *s);
/* The master puts rings in force. */
void sim_lineage_commit(struct sim *s, const struct sim_master *m, uint64_t number);
/* It puts a peer out. */
void sim_lineage_kick(struct sim *s, const struct sim_master *m, const struct cc_id *peer);
/* It tells an agent something. */
void sim_lineage_said(struct sim *s, const struct sim_master *m, const struct wm_msg *msg);
/* It hears of a peer; before it takes that in. */
void sim_lineage_join(
	struct sim *s, const struct sim_master *m, uint32_t conn, const struct wm_join *j);
/* It has heard all that the agent knows of the run; likewise. */
void sim_lineage_resume(
	struct sim *s, struct sim_master *m, uint32_t conn, const struct wm_resume *r);
/* A call of p has succeeded that takes others, or the run, to succeed; vote: all members of the
 * run, not those of its group alone. */
void sim_lineage_success(struct sim *s, const struct sim_peer *p, bool vote);
/* It goes of its own will. */
void sim_lineage_left(struct sim *s, const struct sim_peer *p);
void sim_lineage_free(struct sim *s);

/* sim_view.c. True: all is well. program: that says what is not, and replays it; or NULL. */
bool sim_view_run(struct sim *s, uint64_t seed, bool trace, const char *program);

/* sim_scale.c */
#define SIM_SIZES    8u /* runs to compare at most, and peers in one */
#define SIM_SIZE_MAX 1000000u
int sim_scale(const uint32_t *sizes, unsigned n);

#endif
