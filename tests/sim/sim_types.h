/* SPDX-License-Identifier: MIT
 *
 * The parts of a simulated world. The world itself is in sim.h.
 */
#ifndef SIM_TYPES_H
#define SIM_TYPES_H

#include "tests/sim/sim_event.h"

/* The agents to which an agent has links, if the hosts of its ring have links to each other. */
struct sim_others {
	uint32_t n;
	struct cc_id v[SIM_HOSTS];
};

/* The links between all hosts of a group's ring, as the messages over one connection describe them
 * (sim_mesh.c). */
struct sim_mesh {
	struct sim_others planned, others; /* of the last WM_ROUND, and of the last commit */
	bool known;                        /* `others` was committed over this connection */
	uint32_t since; /* the commits sent when `others` last got an agent that was not in it */
	bool up;        /* the master has a valid report that all links of the agent are up */
	uint32_t plan_since; /* the commits sent when a round was committed last */
	bool plan_up;        /* likewise for the links of the plan, reported since that commit */
};

/* One TCP connection of an agent to a master. */
struct sim_conn {
	uint32_t no;
	unsigned host, master;
	uint32_t life, run;
	struct cc_addr addr;
	/* said: the agent has sent to this master all that it knows of its run */
	bool made, said;
	bool viewed; /* the master has sent a view, perhaps in a commit */
	/* does this end still have its descriptor? */
	bool agent_open, master_open;
	bool cut; /* no packet passes in either direction */
	/* the master's run was in use (sim_check_in_use) when this agent's hello arrived */
	bool in_use;
	/* the agent closed it while the master was frozen */
	bool vain;
	/* messages to this end that are due later are lost, because the other end died */
	uint64_t agent_until;
	uint64_t master_until;
	/* the latest delivery in each direction, which keeps messages in order */
	uint64_t to_master, to_agent;
	struct sim_view sent; /* the view that this master sent last */
	uint64_t term;        /* of the HELLO_ACK; 0 before it */
	struct cc_id run_id;
	/* WM_COMMIT and WM_LINK_REOPEN messages: sent by the master, delivered to the agent */
	uint32_t commits_sent, commits_got, reopens_sent, reopens_got;
	struct sim_mesh mesh[SIM_GROUPS];
};

/* A run in the I/O of this agent. */
struct sim_run {
	uint32_t conn; /* 0: no connection */
	bool ready, over;
	struct cc_id id;
	uint64_t term;     /* the highest term that this agent has accepted */
	uint64_t measures; /* number of the last order of a measurement; 0: it was stopped */
	struct sim_view heard;
};

struct sim_host {
	bool alive, quiet; /* quiet: the agent says that it is quiet */
	unsigned no;
	/* ticks: only agent ticks with this `gen` are valid */
	uint32_t life, ticks;
	struct cc_id id;
	struct agt *a;
	struct sim_clock clock;
	uint64_t frozen_until;
	uint32_t slow; /* the factor by which its transfers take longer */
	struct sim_run runs[SIM_RUNS];
	uint32_t last_run;
};

struct sim_master {
	bool alive;
	unsigned no, addr;
	uint64_t term;     /* of the last HELLO_ACK that it sent */
	struct cc_id id;   /* the id of its run */
	struct cc_id born; /* the id of the run that it would found */
	bool superseded;   /* a newer master has taken its run over */
	bool greets;       /* it has sent a HELLO_ACK to an agent */
	/* an agent with a run key has said hello to it */
	bool knows;
	/* an older master has gone on with the run, and this master does not know of that */
	bool behind;
	/* it has written records that a newer master's copy of the journal lacks */
	bool unread;
	bool begun;                    /* it has done its first step */
	uint64_t restored[SIM_GROUPS]; /* the revisions that its journal expected at its start */
	/* when it started, and when it last worked (sim_master.c) */
	uint64_t started, worked;
	struct ccm *m;
	struct sim_clock clock;
	uint64_t frozen_until;
	struct sim_view told[64]; /* the last views that it sent, by view id */
	bool crash_next;          /* it dies in the middle of its next step that has actions */
	bool arrives;             /* after its death, all messages that it has sent arrive */
	/* the agents of each group when it last asked for rings of the group (sim_topology.c) */
	struct sim_others asked[SIM_GROUPS];
};

struct sim_link {
	bool used, up;
	uint32_t gen;
	unsigned src, dst;
	uint32_t src_run, dst_run, src_life, dst_life;
	struct cc_id to;
	bool mute; /* nothing arrives through it any more */
};

/* The name of one operation of the application. All peers that take part name it alike. */
struct sim_key {
	struct cc_id run;
	uint32_t group;
	uint64_t turn;
	uint32_t step, tag;
};

/* The view that one peer saw after an answer. All peers that share the answer must see the same. */
struct sim_saw {
	bool known;
	unsigned peer, master; /* the peer that saw it, and its master then */
	struct cc_id run;      /* of a vote, or of a call that a loss has ended */
	uint64_t ballot;
	struct wire_view view;
};

/* The answer to a vote on pending peers. It must be the same for all peers. */
struct sim_answer {
	bool known, answer;
	unsigned peer; /* the peer that received it last */
	struct cc_id id, run;
	uint64_t number; /* of the ballot */
};

enum sim_heard { VOICE_NONE, VOICE_SUCCESS, VOICE_FAILURE };

struct sim_voice { /* one member's part in a transfer */
	unsigned peer;
	struct cc_id id; /* the peer's id at the start of the transfer */
	uint32_t comm, slot;
	struct sim_key key;
	enum sim_heard heard;
	/* only for a synchronization: */
	bool holder;
	bool complete; /* its tensors are known to equal the elected contents */
	bool written;
	bool out; /* its job does not use its memory any more */
	bool fails, failed;
};

struct sim_part { /* one host's share of a transfer */
	unsigned host;
	uint32_t life, run;
	bool live;     /* its memory is in use */
	uint32_t conn; /* the connection by which the start came */
	bool final, done, cancelling, cancelled;
	struct agt_xfer x;              /* without the lists of members and agents */
	struct cc_id agents[SIM_HOSTS]; /* those of x */
	struct cc_rings rings;          /* those of x */
	uint32_t n;
	struct sim_voice *voices;
	/* results go to the member's buffer; `area` then has the old contents of the buffer */
	bool direct;
	uint64_t area[SIM_SEGS];
	bool flags[SIM_SEGS]; /* as the flags in proto/shm_queue.h */
	/* only for a synchronization: */
	struct cc_id *sources; /* agents; owned */
	uint32_t n_sources;
	bool gives_up; /* the job as a whole has failed */
	/* since when no source has a leaf that it lacks; 0: not stuck */
	uint64_t stuck_since;
};

struct sim_xfer {
	bool is_sync;
	bool decided; /* a master has ended it with success */
	uint32_t group;
	uint64_t revision; /* elected */
	struct wm_digest content;
	uint64_t value[SIM_SEGS];
	uint64_t seq, line;
	uint64_t first; /* the master under which the first host started it, by number from 1 */
	uint64_t since; /* when it was created */
	struct cc_id run;
	bool broken; /* data does not flow any more */
	/* hosts that mean different operations have started it speculatively: it must not succeed
	 */
	bool mixed;
	struct sim_saw done, failed;
	/* valid with `failed.known`: the code that this peer got */
	uint32_t failed_code;
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
	SESSION_BROKEN, /* the agent is gone; the reconnector tries */
};

struct sim_proc {
	unsigned no, host;
	uint32_t session, life; /* life: the life of the session's agent */
	enum sim_session_state state;
	/* told: the agent was informed that the process is stopped */
	bool alive, stopped, told;
	uint64_t stopped_until;
	uint32_t gen; /* only reconnector events with this number are valid */
	uint64_t broken_at, retry;
	uint32_t n_peers; /* peers of this process that have not ended */
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
	OP_HELD,    /* the call waits for the reconnector */
	OP_PENDING, /* it is in its slot */
	OP_DOUBT,   /* its agent died after the whole result was there */
	OP_DONE,    /* it has ended and is not awaited yet */
};

/* The shared state of a program. Programs of a group keep it equal. Each value is one leaf. */
struct sim_state {
	uint64_t revision;
	uint64_t value[SIM_SEGS];
	bool mixed; /* a job has written elected contents in part */
};

struct sim_op {
	bool wanted; /* it belongs to this step and has not succeeded yet */
	enum sim_op_state state;
	uint32_t slot;
	uint64_t since;
	bool taken;   /* the agent has copied the entry out */
	uint64_t seq; /* 0 before the start */
	struct sim_xfer *xfer;
	struct sim_voice *voice;
	uint32_t code, world_size;
	uint64_t knew; /* the generation at its submission */
	uint64_t generation;
	/* the revision of a synchronization that has succeeded */
	uint64_t revision;
	struct wire_view begin, after;
	uint32_t errors; /* retriable errors of this operation of the application so far */
	uint64_t causes; /* sim->causes at the start of its step */
	bool odd;
	bool waited; /* the caller waits in the call that submits it */
	char text[SHM_TEXT];
};

/* The buffers of one tag, which its operations use one after the other. */
struct sim_memory {
	bool used;
	/* between the launch and the answer; then the program does not own the buffers */
	bool in_flight;
	bool success;  /* the last operation succeeded */
	bool in_place; /* recv is also the operand */
	bool staged;   /* the shim has copied the operand */
	bool out_registered;
	bool copied[SIM_SEGS]; /* copied out of the area before the end */
	struct sim_part *part; /* the host's part of the transfer, or NULL */
	uint64_t send[SIM_SEGS], recv[SIM_SEGS], staging[SIM_SEGS];
	uint64_t was_send[SIM_SEGS], was_recv[SIM_SEGS]; /* the contents before the operation */
	/* the contents that recv must have after it */
	uint64_t want[SIM_SEGS];
};

struct sim_step {
	uint32_t n_ops; /* 0: no operation */
	bool sync;      /* a synchronization, and no other operation */
	bool ask;       /* pcclArePeersPending, during the operations or by itself */
};

/* A vote of this kind, as the type of a call. */
#define SIM_VOTE(kind) (100u + (kind))

/* A call over the socket that has not returned. */
struct sim_call {
	uint32_t type; /* enum wl_type, or SIM_VOTE of a kind of ballot; 0: none */
	uint32_t req_id;
	uint64_t since, sent;
	bool master_gone; /* a master was dead or being replaced during the call */
	uint32_t times;   /* the number of times that it was sent, each time to another agent */
	uint32_t conn;    /* the agent's connection to the master at that time */
};

struct sim_peer {
	unsigned no;
	struct sim_proc *proc;
	uint32_t group, pool;
	/* the communicator */
	uint32_t comm;      /* its number at the agent; 0: none */
	uint32_t comm_life; /* the life of that agent */
	uint32_t state;     /* enum shm_comm_state, as the shim knows it */
	uint32_t lost_code;
	/* the master address that its program uses, and the last address at which an agent found
	 * the master */
	struct cc_addr named, at;
	struct cc_id id, token, run;
	uint64_t generation, ballots[WIRE_BALLOTS];
	struct agt_attrs attrs;
	struct wire_view view; /* the view that its program sees in the attributes */
	struct sim_call call;
	/* the request id of a WL_COMM_ATTACH, or of a CREATE by the reconnector, in progress */
	uint32_t attach_req;
	uint32_t n_doubt;
	uint8_t doubt[SIM_OPS];
	uint64_t succeeded[WL_SEQS_MAX], n_succeeded; /* the attempts that succeeded last */
	uint64_t last_submit;
	/* the program */
	enum sim_phase phase;
	uint32_t gen;   /* only its events with this number are valid */
	bool optimizes; /* it calls pcclOptimizeTopology before its steps */
	uint32_t n_steps, step;
	struct sim_step steps[SIM_STEPS];
	struct sim_op ops[SIM_OPS];
	struct sim_memory memory[SIM_TAGS];
	bool step_begun, asking, pass_failed, too_few, burst;
	bool gives_up;       /* it has seen fewer peers, and votes on the topology next */
	uint32_t counted;    /* its group's world size after the last topology vote */
	uint64_t n_launches; /* over its whole life */
	uint32_t window, n_launch, launched, n_await, awaited, in_flight;
	uint8_t launch[SIM_OPS], await[SIM_OPS];
	bool strayed;  /* it has had its chance to stray before this step */
	bool stray;    /* the call in progress is not in the plan */
	bool mistaken; /* the operation in flight is not in the plan */
	bool alone;    /* its last vote was answered without the others: no ballot has ended */
	/* it waits for await[awaited], or for any operation in flight (sim_peer_awaits_any) */
	bool waits;
	/* the agent's death has failed operations, and the program does not know it yet */
	bool unaware;
	bool held; /* a launch waits for the reconnector */
	uint32_t iterations, reconnects, rejoins;
	/* shared state */
	struct sim_state mine, was; /* was: at the start of the call */
	/* a call is in flight, and the program must not write to its state */
	bool syncing;
	bool torn; /* as in libpccl-shim/state.h */
	uint64_t torn_revision;
	/* it has the state of the last synchronization, or has trained from this state, so it may
	 * be a sender */
	bool in_step;
	/* `candidate`: that of its last call; `cast`: the last candidate that a master received */
	struct wm_sync_vote candidate, cast;
	/* its program ends by destroying the communicator with operations in flight */
	bool rude;
};

/* The faults that may happen in a run, from none to all. */
enum sim_class { CLASS_CALM, CLASS_MASTER, CLASS_AGENT, CLASS_PAIR, CLASS_DEATHS, CLASS_ALL };

struct sim_record {
	uint8_t *bytes;
	size_t len;
};

/* Events that some seeds must have. run.c counts these events and the seeds with them. */
enum sim_seen {
	SEEN_ONE_SIDED,  /* a link was lost, and one end never learns of it */
	SEEN_ROUTED,     /* a pair whose links break in each operation is avoided */
	SEEN_TOGETHER,   /* two processes died within 2 ms */
	SEEN_STRAYED,    /* a program made a call that the others do not make */
	SEEN_ANY,        /* an agent was told that its caller waits for any of its operations */
	SEEN_ODD,        /* an operation had other parameters than those of the other peers */
	SEEN_REFUSED,    /* a call failed before it was submitted */
	SEEN_FAILED,     /* a part of an operation failed by itself */
	SEEN_NEWCOMER,   /* a peer was admitted to a run that others had begun */
	SEEN_QUANTIZED,  /* a part of a quantized operation was started */
	SEEN_HALF_OPEN,  /* a fault hit a host that had not opened the links to all hosts yet */
	SEEN_TAKEN_OVER, /* a new master went on with an operation on another route than the ring */
	SEEN_MEASURED,   /* an agent has measured links */
	SEEN_BUSY,       /* another run used the network of a host that was to be measured */
	SEEN_OPTIMIZED,  /* pcclOptimizeTopology has succeeded */
	SEEN_NOT_OPTIMIZED,  /* pcclOptimizeTopology has failed, and is repeated */
	SEEN_RINGS,          /* a part of an operation over several rings was started */
	SEEN_CARRIED,        /* an agent has reported what a link has carried */
	SEEN_SLOW,           /* a link has become slow */
	SEEN_MEASURED_AGAIN, /* an optimization has measured a link that had become slow */
	SEEN_AVOIDED,        /* the rings do not contain this link any more */
	SIM_SEEN
};

#endif
