/* SPDX-License-Identifier: MIT
 *
 * What a simulated world consists of; the world itself is in sim.h.
 */
#ifndef SIM_TYPES_H
#define SIM_TYPES_H

#include "tests/sim/sim_event.h"

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
	struct sim_view sent;         /* what this master told last */
	uint64_t term;                /* of its HELLO_ACK; 0: none yet */
	struct cc_id run_id;
};

/* A run as this agent's I/O sees it. */
struct sim_run {
	uint32_t conn; /* 0: none */
	bool ready, over;
	struct cc_id id;
	uint64_t term; /* the highest that it was told */
	struct sim_view heard;
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
	unsigned no, addr;
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
	struct sim_view told[64]; /* the last view ids, by number */
	bool crash_next;          /* in the middle of its next step that has actions */
	bool arrives;             /* all that it had sent when it died */
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

/* What the first of those who share an answer saw of the view after it. */
struct sim_saw {
	bool known;
	unsigned peer, master; /* whose answer it was */
	struct cc_id run;      /* votes */
	uint64_t ballot;
	struct wire_view view;
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
	bool mixed;  /* begun speculatively by hosts that mean different operations: it must not
			succeed */
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
	SESSION_BROKEN, /* the agent is gone; the reconnector tries */
};

struct sim_proc {
	unsigned no, host;
	uint32_t session, life; /* with which agent */
	enum sim_session_state state;
	bool alive, stopped, told; /* the agent was told that it is stopped */
	uint64_t stopped_until;
	uint32_t gen; /* of reconnector events */
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
	OP_HELD,    /* the call waits for the reconnector */
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
	uint32_t code, world_size;
	uint64_t knew; /* the generation, when it was submitted */
	uint64_t generation;
	uint64_t revision; /* a synchronization that has succeeded */
	struct wire_view begin, after;
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
	bool master_gone; /* some master was dead or being replaced during the call */
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
	uint64_t generation, topo_ballot, pending_ballot;
	struct agt_attrs attrs;
	struct wire_view view; /* that its program knows: attributes */
	struct sim_call call;
	uint32_t attach_req; /* WL_COMM_ATTACH, or CREATE by the reconnector, under way */
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
	bool alone;    /* its last vote was answered alone: no ballot has ended */
	bool waits;    /* for await[awaited], or (sim_peer_awaits_any) for any that is in flight */
	bool unaware;  /* the agent's death has failed operations, and the program does not know yet
			*/
	bool held;     /* a launch waits for the reconnector */
	uint32_t iterations, reconnects, rejoins;
	/* shared state */
	struct sim_state mine, was; /* was: when the call began */
	bool syncing;               /* the call is in flight: it is not the program's */
	bool torn;                  /* as in libpccl-shim/state.h */
	uint64_t torn_revision;
	bool in_step; /* it is as it was after the last synchronization, or trained from
		       * that: the program would send it */
	struct wm_sync_vote candidate, cast; /* cast: what a master has last heard of it */
	bool rude; /* destroys with operations in flight when it is through */
};

#endif
