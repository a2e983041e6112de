/* SPDX-License-Identifier: MIT
 *
 * A whole run in one process: real master cores, real agent cores, and in between a network, data
 * threads, shims and training programs that exist only as events in virtual time. One seed decides
 * everything; the same seed gives the same run.
 *
 *   run.c         the program: options, seeds, totals
 *   sim_world.c   one seed from setup to the last check
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccoip-masterd/core/ccm.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define SIM_HOSTS   8u
#define SIM_PROCS   16u
#define SIM_PEERS   24u
#define SIM_GROUPS  3u
#define SIM_RUNS    256u /* runs of one agent over its life */
#define SIM_TAGS    8u
#define SIM_SYNC    SIM_TAGS /* the synchronization's place among a peer's operations */
#define SIM_OPS     (SIM_TAGS + 1)
#define SIM_STEPS   6u
#define SIM_ANSWERS 64u
#define SIM_SEGS    3u                  /* of each operation */
#define SIM_LARGE   (UINT64_C(1) << 30) /* bytes: an operation that is not small */
#define SIM_LINKS   512u
#define SIM_MASTERS 32u
#define SIM_PLACES  3u /* addresses at which a master may be */
#define SIM_US      UINT64_C(1000)
#define SIM_MS      UINT64_C(1000000)
#define SIM_S       UINT64_C(1000000000)

struct sim;
struct sim_xfer;

enum sim_kind {
	SIM_EV_TO_MASTER,       /* conn, bytes */
	SIM_EV_TO_AGENT,        /* conn, bytes, world */
	SIM_EV_DIALLED,         /* conn: the agent's connection is made or refused */
	SIM_EV_MASTER_OPEN,     /* conn: the master accepts it */
	SIM_EV_MASTER_SEES_END, /* conn */
	SIM_EV_AGENT_SEES_END,  /* conn */
	SIM_EV_MASTER_TICK,     /* master */
	SIM_EV_AGENT_TICK,      /* host, life, gen */
	SIM_EV_LINK_RESULT,     /* link, gen */
	SIM_EV_PROBE_RESULT,    /* host, life, run, seq, agent */
	SIM_EV_LINK_SEEN_DOWN,  /* host, life, run, agent, inbound; code: nothing was heard; gen */
	SIM_EV_LINK_QUIET,     /* host, life, run, agent, gen: nothing has been heard for a while */
	SIM_EV_XFER_SEGMENT,   /* host, life, run, seq, tag: the segment is final here */
	SIM_EV_XFER_FINAL,     /* host, life, run, seq: all segments are final here */
	SIM_EV_XFER_DONE,      /* host, life, run, seq, code */
	SIM_EV_XFER_CANCELLED, /* host, life, run, seq */
	SIM_EV_SYNC_STEP,      /* host, life, run, seq: a leaf comes, or not */
	SIM_EV_SYNC_DROPPED,   /* host, life, run, seq, conn: communicator */
	SIM_EV_SYNC_CANCELLED, /* host, life, run, seq */
	SIM_EV_REQUEST,        /* peer, session, bytes: a struct wl_request */
	SIM_EV_SUBMIT,         /* peer, session, tag */
	SIM_EV_ASLEEP,         /* peer, session, tag, seq: since when it is in flight */
	SIM_EV_ASLEEP_ANY,     /* peer, session, seq: operations launched so far, code: in flight */
	SIM_EV_STOPPED,        /* proc, code: the agent sees that it is stopped, or runs */
	SIM_EV_PEER,           /* peer, gen: its main thread goes on */
	SIM_EV_KEEPER,         /* proc, gen: the shim's keeper goes on */
	SIM_EV_FAULT,          /* code: enum sim_fault, host, proc, master, ... */
	SIM_EV_KINDS,
};

/* What an agent was told last about the world. */
struct sim_world {
	bool known;
	uint32_t global, groups, largest;
	uint64_t version;
	uint32_t group[SIM_GROUPS];
};

struct sim_event {
	uint64_t at, no;
	uint64_t due; /* when it was to happen; later than `at` where somebody stood still */
	enum sim_kind kind;
	unsigned host, peer, proc, link, master, place;
	uint32_t conn, run, gen, code, life, session;
	uint64_t seq, tag;
	struct cc_id agent;
	bool inbound;
	uint8_t *bytes; /* owned */
	size_t len;
	struct sim_world world; /* as it stands once this message has been taken in */
};

struct sim_clock {
	uint64_t zero; /* what it shows at SIM_S */
	uint32_t rate; /* per 1000 of the world's time */
};

/* One TCP connection of an agent to a master. */
struct sim_conn {
	uint32_t no;
	unsigned host, master;
	uint32_t life, run;
	struct cc_addr addr;
	bool made, said; /* said: the master has heard all that the agent knows of its run */
	bool agent_open, master_open; /* that end has its descriptor */
	bool cut;                     /* nothing passes any more, in neither direction */
	bool in_use; /* so was the master's run when the agent said its hello: sim_check.c */
	bool vain;   /* the agent gave it up while the master stood still */
	uint64_t agent_until; /* what is due later does not arrive: the other end died */
	uint64_t master_until;
	uint64_t to_master, to_agent; /* latest delivery: order is kept */
	struct sim_world sent;        /* what this master told last */
	uint64_t term;                /* of its HELLO_ACK; 0: none yet */
	struct cc_id run_id;
};

/* A run as this agent's I/O sees it. */
struct sim_run {
	uint32_t conn; /* 0: none */
	bool ready, over;
	struct cc_id id;
	uint64_t term; /* the highest that it was told */
	struct sim_world heard;
};

struct sim_host {
	bool alive, quiet; /* quiet: its agent is */
	unsigned no;
	uint32_t life, ticks; /* ticks: gen of those that count */
	struct cc_id id;
	struct agt *a;
	struct sim_clock clock;
	uint64_t frozen_until;
	uint32_t slow; /* its transfers take so many times as long */
	struct sim_run runs[SIM_RUNS];
	uint32_t last_run;
};

struct sim_master {
	bool alive;
	unsigned no, place;
	uint64_t term;     /* of its last HELLO_ACK */
	struct cc_id id;   /* of its run */
	struct cc_id born; /* of the one that it would found */
	bool superseded;   /* a newer one has taken the run over */
	bool greets;       /* agents have come to it */
	bool knows;        /* one that has state of the run among them */
	bool behind;       /* an older one has gone on, and it does not know */
	bool unread;       /* what it wrote since a newer one has a copy of the journal */
	bool begun;        /* it has done its first step */
	uint64_t restored[SIM_GROUPS]; /* revisions that its journal expected when it started */
	uint64_t started, worked;      /* when; worked: last */
	uint64_t heard_version;        /* of the world, from agents of the run that it takes over */
	struct ccm *m;
	struct sim_clock clock;
	uint64_t frozen_until;
	struct sim_world told[64]; /* the last versions of the world, by number */
	bool crash_next;           /* in the middle of its next step that has actions */
	bool arrives;              /* all that it had sent when it died */
};

struct sim_link {
	bool used, up;
	uint32_t gen;
	unsigned src, dst;
	uint32_t src_run, dst_run, src_life, dst_life;
	struct cc_id to;
	bool mute; /* nothing comes through it any more */
};

/* Names one operation of the application: all who take part in it name it alike. */
struct sim_key {
	struct cc_id run;
	uint32_t group;
	uint64_t turn;
	uint32_t step, tag;
};

/* What the first of those who share an answer saw of the world after it. */
struct sim_saw {
	bool known;
	unsigned peer, master; /* whose answer it was */
	struct cc_id run;      /* votes */
	uint64_t turn;
	struct wire_world world;
};

/* Of a vote on pending peers: the same for all. */
struct sim_answer {
	bool known, pending;
	unsigned peer; /* who heard it last */
	struct cc_id id, run;
	uint64_t vote; /* its number */
};

enum sim_heard { VOICE_NONE, VOICE_SUCCESS, VOICE_FAILURE };

struct sim_voice { /* one member's part in a transfer */
	unsigned peer;
	struct cc_id id; /* of the peer then */
	uint32_t comm, slot;
	struct sim_key key;
	enum sim_heard heard;
	/* of a synchronization */
	bool holder;
	bool complete; /* its manifest says that it has what was elected */
	bool written;
	bool out; /* its memory is not used any more */
	bool fails, failed;
};

struct sim_part { /* one host's share of a transfer */
	unsigned host;
	uint32_t life, run;
	bool live;     /* its memory is in use */
	uint32_t conn; /* by which the start came */
	bool final, done, cancelling, cancelled;
	struct agt_xfer x; /* members are not kept here */
	uint32_t n;
	struct sim_voice *voices;
	bool direct; /* results go to the member's buffer; the area has what it held before */
	uint64_t area[SIM_SEGS];
	bool flags[SIM_SEGS]; /* as in proto/shm_queue.h */
	/* of a synchronization: a job */
	struct cc_id *sources; /* agents, owned */
	uint32_t n_sources;
	bool gives_up;        /* it has failed as a whole */
	uint64_t stuck_since; /* nobody gives what it lacks; 0: that is not so */
};

struct sim_xfer {
	bool is_sync;
	bool decided; /* a master has ended it with success */
	uint32_t group;
	uint64_t revision; /* elected */
	struct wm_digest content;
	uint64_t value[SIM_SEGS];
	uint64_t seq, line;
	uint64_t first; /* the master of the host that was first to start it */
	uint64_t since; /* when that was */
	struct cc_id run;
	bool broken; /* data does not flow any more */
	bool mixed;  /* begun ahead by hosts that mean different operations: it must not succeed */
	struct sim_saw done, failed;
	uint32_t failed_code; /* with failed.known: for the peer named there */
	uint32_t n_parts, n_final;
	uint32_t contributions, successes, failures;
	bool summed[SIM_SEGS];
	uint64_t sum[SIM_SEGS];
	struct sim_part parts[SIM_HOSTS];
	struct sim_xfer *next;
};

enum sim_session_state {
	SESSION_NONE, /* not opened yet, or given up */
	SESSION_OPEN,
	SESSION_BROKEN, /* the agent is gone; the keeper tries */
};

struct sim_proc {
	unsigned no, host;
	uint32_t session, life; /* with which agent */
	enum sim_session_state state;
	bool alive, stopped, told; /* the agent was told that it is stopped */
	uint64_t stopped_until;
	uint32_t gen; /* of keeper events */
	uint64_t broken_at, retry;
	uint32_t n_peers; /* that have not ended */
	uint32_t goodbye; /* the code with which the agent ended the session */
};

enum sim_phase {
	PEER_START,
	PEER_CONNECTING,
	PEER_UPDATING,
	PEER_STEPS,
	PEER_DESTROYING,
	PEER_ENDED,
};

enum sim_op_state {
	OP_IDLE,
	OP_HELD,    /* the call waits for the keeper */
	OP_PENDING, /* in its slot */
	OP_DOUBT,   /* its agent died when the whole result was there */
	OP_DONE,    /* to be awaited */
};

/* What a program keeps alike on all peers of its group, a leaf each. */
struct sim_state {
	uint64_t revision;
	uint64_t value[SIM_SEGS];
	bool mixed; /* a job has begun to write what was elected, and was not through */
};

struct sim_op {
	bool wanted; /* of this step, no success yet */
	enum sim_op_state state;
	uint32_t slot;
	uint64_t since;
	bool taken;   /* the agent has copied the entry out */
	uint64_t seq; /* 0 until it started */
	struct sim_xfer *xfer;
	struct sim_voice *voice;
	uint32_t code, world;
	uint64_t knew; /* losses, when it was submitted */
	uint64_t losses;
	uint64_t revision; /* a synchronization that has succeeded */
	struct wire_world begin, after;
	uint32_t errors; /* retriable ones of this operation of the application */
	uint64_t causes; /* sim->causes when its step began */
	bool odd;
	bool waited; /* submitted by a call that does nothing else until it ends */
	char text[SHM_TEXT];
};

/* The buffers of the operations of one tag, one after the other. */
struct sim_memory {
	bool used;
	bool in_flight; /* between the launch and the answer: not the program's */
	bool success;   /* of the last one */
	bool in_place;  /* there is only recv */
	bool staged;    /* the shim has copied the operand */
	bool out_registered;
	bool copied[SIM_SEGS]; /* out of the area before the end */
	struct sim_part *part; /* of the transfer that it takes part in, or NULL */
	uint64_t send[SIM_SEGS], recv[SIM_SEGS], staging[SIM_SEGS];
	uint64_t was_send[SIM_SEGS], was_recv[SIM_SEGS]; /* before the operation */
	uint64_t want[SIM_SEGS];                         /* in recv after it */
};

struct sim_step {
	uint32_t n_ops; /* 0: none */
	bool sync;      /* of shared state; then nothing else */
	bool ask;       /* pcclArePeersPending, beside the operations or alone */
};

/* A call over the socket that has not returned. */
struct sim_call {
	uint32_t type; /* enum wl_type; 0: none */
	uint32_t req_id;
	uint64_t since, sent;
	bool master_away; /* some master was dead or being replaced during the call */
	uint32_t times;   /* that it was sent: by so many agents */
	uint32_t conn;    /* of the agent to the master then */
};

struct sim_peer {
	unsigned no;
	struct sim_proc *proc;
	uint32_t group, pool;
	/* the communicator */
	uint32_t comm;      /* the agent's number; 0: none */
	uint32_t comm_life; /* of which agent */
	uint32_t state;     /* enum shm_comm_state: what the shim thinks */
	uint32_t lost_code;
	struct cc_addr named, at; /* what its program calls the master; where that was last */
	struct cc_id id, token, run;
	struct cc_id kicked; /* the id under which a master put it out */
	unsigned kicked_by;
	uint64_t kicked_version; /* of the world without it; 0: nobody was told */
	bool kicked_counts;      /* others were told of rings or of a success since */
	uint64_t losses, topo_turn, pending_turn;
	struct agt_attrs attrs;
	struct wire_world world; /* that its program knows: attributes */
	struct sim_call call;
	uint32_t attach_req; /* WL_COMM_ATTACH, or CREATE by the keeper, under way */
	uint32_t n_doubt;
	uint8_t doubt[SIM_OPS];
	uint64_t succeeded[WL_SEQS_MAX], n_succeeded; /* attempts, the last ones */
	uint64_t last_submit;
	/* the program */
	enum sim_phase phase;
	uint32_t gen; /* of its events */
	uint32_t n_steps, step;
	struct sim_step steps[SIM_STEPS];
	struct sim_op ops[SIM_OPS];
	struct sim_memory memory[SIM_TAGS];
	bool step_begun, asking, pass_failed, too_few, burst;
	bool gives_up;       /* it has seen fewer peers, and votes on the topology next */
	uint32_t counted;    /* of its group, after the last topology vote */
	uint64_t n_launches; /* of all times */
	uint32_t window, n_launch, launched, n_await, awaited, in_flight;
	uint8_t launch[SIM_OPS], await[SIM_OPS];
	bool strayed;  /* it has had its chance to stray from the plan before this step */
	bool stray;    /* the call in progress is none of the plan */
	bool mistaken; /* the operation in flight is none of the plan */
	bool alone;    /* its last vote was answered alone: no turn has ended */
	bool waits;    /* for await[awaited], or (sim_peer_awaits_any) for any that is in flight */
	bool unaware;  /* the agent's death has failed operations, and the program does not know yet
			*/
	bool held;     /* a launch waits for the keeper */
	uint32_t iterations, reconnects, rejoins;
	/* shared state */
	struct sim_state mine, was; /* was: when the call began */
	bool syncing;               /* the call is in flight: it is not the program's */
	bool torn;                  /* as in libpccl-shim/state.h */
	uint64_t torn_revision;
	bool in_step; /* it is as it was after the last synchronization, or trained from
		       * that: the program would send it */
	struct wm_sync_vote offer, cast; /* cast: what a master has last heard of it */
	bool rude;                       /* destroys with operations in flight when it is through */
};

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
	int at[SIM_PLACES];    /* which master listens there; -1: none */
	int home;              /* where programs look for the master: a place */
	int moved[SIM_PLACES]; /* set-master: where to look instead; -1: nowhere */
	bool configured;       /* that is in the agents' configuration: those that start know it */
	bool journal;          /* masters have a state directory */
	uint64_t busy_until;   /* programs that can go on do so */
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
	bool parted[SIM_HOSTS][SIM_PLACES]; /* hosts that do not reach a master's address now */
	struct sim_xfer *xfers;
	uint32_t n_tags, last_req, last_session, last_id;
	uint32_t agent_grace_ms, master_grace_ms, keeper_grace_ms;
	bool two_masters; /* of one run: members of one attempt may hear different things */
	bool odd_parameters, xfer_failures, master_refuses;
	bool strays;         /* programs make calls that the others do not make */
	bool refusals;       /* calls fail where they are made, before they are submitted */
	bool crash_telling;  /* the master dies when some hosts have heard of a success */
	bool master_away;    /* dead or standing still now */
	uint64_t away_until; /* and for how long its absence may be felt */
	uint64_t causes;     /* of errors that programs may see: losses, broken links ... */
	uint64_t progress;   /* when a call returned last */
	uint64_t last_look;  /* at what waits */
	uint64_t events, reductions, retries, kills, reconnects, agent_deaths, attaches, doubts,
		aheads, retracted;
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
void sim_dial(struct sim *s, struct sim_host *h, uint32_t run, const struct cc_addr *addr);
void sim_dialled(struct sim *s, const struct sim_event *ev);
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
struct cc_addr sim_place_addr(int place);
int sim_addr_place(const struct cc_addr *addr);
/* Starts a master at a place where there is none. */
void sim_master_start(struct sim *s, unsigned place);
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
void sim_xfer_retract(struct sim *s, struct sim_host *h, const struct agt_action *a);
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
void sim_shim_keeper(struct sim *s, struct sim_proc *q);
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
/* Calls that waited for the keeper go on. */
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
void sim_check_told(struct sim *s, struct sim_master *m, const struct sim_world *w);
void sim_check_obeys(struct sim *s, const struct sim_host *h, const struct sim_conn *c);
void sim_check_world(struct sim *s, const struct sim_peer *p, const struct wire_world *v);
/* p has heard it, with its turn. */
void sim_check_answer(struct sim *s, const struct sim_peer *p, bool pending);
void sim_check_vote(
	struct sim *s, const struct sim_peer *p, uint32_t type, const struct wire_world *w);
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

/* sim_world.c. True: all is well. program: that says what is not, and replays it; or NULL. */
bool sim_world_run(struct sim *s, uint64_t seed, bool trace, const char *program);

/* sim_scale.c */
#define SIM_SIZES    8u /* runs to compare at most, and peers in one */
#define SIM_SIZE_MAX 1000000u
int sim_scale(const uint32_t *sizes, unsigned n);

#endif
