/* SPDX-License-Identifier: MIT
 *
 * A whole run in one process: the real master core, real agent cores, and in between a network,
 * data threads and training processes that exist only as events in virtual time. One seed decides
 * everything; the same seed gives the same run.
 *
 *   sim_run.c     the program: seeds, the clock, what is over when
 *   sim_event.c   the schedule
 *   sim_net.c     connections between agents and the master
 *   sim_host.c    agents: events in, actions carried out
 *   sim_data.c    links and transfers
 *   sim_peer.c    training processes: what they call and what they may expect
 *   sim_fault.c   what goes wrong
 *
 * A new kind of fault is an event kind and a function in sim_fault.c.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccoip-masterd/core/ccm.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define SIM_HOSTS  8u
#define SIM_PROCS  16u
#define SIM_PEERS  24u
#define SIM_GROUPS 3u
#define SIM_RUNS   64u /* runs of one host over its life */
#define SIM_TAGS   6u
#define SIM_LINKS  256u
#define SIM_US     UINT64_C(1000)
#define SIM_MS     UINT64_C(1000000)
#define SIM_S      1000000000u

struct sim;

enum sim_kind {
	SIM_EV_TO_MASTER,       /* host, run, bytes */
	SIM_EV_TO_AGENT,        /* host, run, bytes, world */
	SIM_EV_CONNECT,         /* host, run: the agent's connection is made or refused */
	SIM_EV_MASTER_SEES_END, /* host, run */
	SIM_EV_AGENT_SEES_END,  /* host, run */
	SIM_EV_MASTER_TICK,
	SIM_EV_AGENT_TICK,     /* host */
	SIM_EV_LINK_RESULT,    /* link, gen */
	SIM_EV_LINK_SEEN_DOWN, /* host, run, peer, inbound */
	SIM_EV_XFER_DONE,      /* host, run, seq, code */
	SIM_EV_XFER_CANCELLED, /* host, run, seq */
	SIM_EV_PEER,           /* peer: goes on */
	SIM_EV_SUBMIT,         /* peer, tag */
	SIM_EV_FAULT,          /* code: enum sim_fault */
	SIM_EV_KINDS,
};

/* What an agent was told last about the world. */
struct sim_world {
	bool known;
	uint32_t global, groups, largest;
	uint32_t group[SIM_GROUPS];
};

struct sim_event {
	uint64_t at, no;
	enum sim_kind kind;
	unsigned host, peer, link;
	uint32_t run, gen, code;
	uint64_t seq, tag;
	struct cc_id agent;
	bool inbound;
	uint8_t *bytes; /* owned */
	size_t len;
	struct sim_world world; /* as it stands once this message has been taken in */
};

/* One connection of an agent to the master. */
struct sim_conn {
	bool used, open, ready;
	bool agent_closed, master_closed;
	uint64_t to_master, to_agent; /* latest delivery: order is kept */
	struct sim_world sent;        /* what the master told last */
	struct sim_world heard;       /* the last of it that has arrived */
	bool over;                    /* AGT_ACT_MASTER_CLOSE was seen */
};

struct sim_host {
	bool alive;
	unsigned no;
	struct cc_id id;
	struct agt *a;
	uint64_t frozen_until;
	struct sim_conn conns[SIM_RUNS]; /* by run */
};

struct sim_link {
	bool used, up;
	uint32_t gen;
	unsigned src, dst;
	uint32_t src_run, dst_run;
	struct cc_id to;
};

struct sim_part { /* one host's share of a transfer */
	unsigned host;
	uint32_t run;
	bool live, done, cancelling, cancelled;
	uint32_t n;
	struct agt_xfer x; /* members: copied, owned */
};

struct sim_xfer {
	uint64_t seq;
	bool broken; /* data does not flow any more */
	uint32_t n_parts, n_started, n_done;
	uint32_t contributions, successes, failures;
	struct sim_part parts[SIM_HOSTS];
	struct sim_xfer *next;
};

struct sim_proc {
	unsigned host;
	uint32_t session;
	bool alive, open;
	uint32_t n_peers; /* that have not ended */
};

enum sim_peer_state {
	PEER_START,
	PEER_CREATING,
	PEER_CONNECTING,
	PEER_UPDATING,
	PEER_ASKING,
	PEER_REDUCING,
	PEER_DESTROYING,
	PEER_ENDED,
};

struct sim_op {
	bool wanted;    /* of this iteration, not finished yet */
	bool submitted; /* not completed yet */
	uint32_t slot;
};

struct sim_peer {
	unsigned no;
	struct sim_proc *proc;
	uint32_t group, comm, req_id, pool;
	enum sim_peer_state state;
	struct agt_attrs attrs;
	struct sim_op ops[SIM_TAGS];
	uint32_t in_flight; /* submitted, or about to be */
	uint32_t iterations, reconnects;
	uint64_t losses; /* of its group, that the program knows of */
	uint64_t told;   /* and will know of when it has awaited its operations */
	bool odd;        /* submits other parameters in its next attempt */
	bool rude;       /* destroys with operations in flight when it is through */
	uint64_t called; /* when the call in progress began */
};

struct sim_faults {
	bool enabled;
	bool master_refuses;
};

struct sim {
	uint64_t seed, rng, now, next_no;
	bool trace;
	char failure[512]; /* "" while all is well */
	struct sim_event *heap;
	size_t n_events, cap;
	struct ccm *m;
	struct ccm_actions m_acts;
	unsigned n_hosts, n_procs, n_peers, n_groups;
	struct sim_host hosts[SIM_HOSTS];
	struct sim_proc procs[SIM_PROCS];
	struct sim_peer peers[SIM_PEERS];
	struct sim_link links[SIM_LINKS];
	bool blocked[SIM_HOSTS][SIM_HOSTS]; /* links that cannot be opened now */
	struct sim_xfer *xfers;
	uint32_t n_tags, last_req;
	bool odd_parameters;
	struct sim_faults faults;
	uint64_t progress; /* when a call returned last */
	uint64_t events, reductions, retries, kills, reconnects;
};

/* sim_event.c */
uint32_t sim_rnd(struct sim *s, uint32_t n); /* 0 .. n - 1 */
bool sim_chance(struct sim *s, uint32_t percent);
/* A delay as of a message: mostly short, sometimes long. */
uint64_t sim_delay(struct sim *s);
/* Puts a copy in; bytes change hands. */
void sim_schedule(struct sim *s, uint64_t at, struct sim_event ev);
bool sim_next(struct sim *s, struct sim_event *ret);
void sim_events_free(struct sim *s);
__attribute__((format(printf, 2, 3))) void sim_trace(struct sim *s, const char *fmt, ...);
/* The run is over, and this is why. Only the first counts. */
__attribute__((format(printf, 2, 3))) void sim_fail(struct sim *s, const char *fmt, ...);

/* sim_net.c */
void sim_connect(struct sim *s, struct sim_host *h, uint32_t run);
void sim_connected(struct sim *s, const struct sim_event *ev);
void sim_send_to_master(struct sim *s, struct sim_host *h, uint32_t run, const struct wm_msg *m);
void sim_to_master(struct sim *s, const struct sim_event *ev);
void sim_to_agent(struct sim *s, const struct sim_event *ev);
void sim_agent_closes(struct sim *s, struct sim_host *h, uint32_t run);
/* Both ends see the connection break. */
void sim_conn_cut(struct sim *s, struct sim_host *h, uint32_t run);
void sim_conn_end(struct sim *s, const struct sim_event *ev);
void sim_master_step(struct sim *s, const struct ccm_event *ev);
uint32_t sim_conn_number(const struct sim_host *h, uint32_t run);

/* sim_host.c */
void sim_host_start(struct sim *s, unsigned no);
/* Steps the agent and carries its actions out. */
void sim_host_step(struct sim *s, struct sim_host *h, const struct agt_event *ev);
/* The run by which h takes part now; 0: none. */
uint32_t sim_host_run(const struct sim_host *h);
void sim_host_kill(struct sim *s, struct sim_host *h);
struct sim_host *sim_host_by_id(struct sim *s, const struct cc_id *id);

/* sim_data.c */
void sim_link_open(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_link_close(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_link_result(struct sim *s, const struct sim_event *ev);
void sim_link_seen_down(struct sim *s, const struct sim_event *ev);
/* The link breaks: both ends learn of it. */
void sim_link_break(struct sim *s, struct sim_link *l);
/* The run is over on this host: its links go with its last transfer. */
void sim_links_drop(struct sim *s, struct sim_host *h, uint32_t run);
void sim_xfer_start(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_cancel(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_free(struct sim *s, struct sim_host *h, const struct agt_action *a);
void sim_xfer_done(struct sim *s, const struct sim_event *ev);
void sim_xfer_cancelled(struct sim *s, const struct sim_event *ev);
/* The host is gone. */
void sim_data_host_died(struct sim *s, struct sim_host *h);
/* A completion: checks that the memory is free and that all members hear the same. */
void sim_xfer_completed(
	struct sim *s, struct sim_host *h, const struct agt_action *a, const struct sim_peer *p);
void sim_xfers_free(struct sim *s);

/* sim_peer.c */
void sim_peer_go(struct sim *s, struct sim_peer *p);
void sim_peer_submit(struct sim *s, struct sim_peer *p, uint64_t tag);
void sim_peer_created(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_peer_reply(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_peer_attrs(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_peer_complete(struct sim *s, struct sim_host *h, const struct agt_action *x);
void sim_proc_kill(struct sim *s, struct sim_proc *p);
bool sim_peers_ended(const struct sim *s);
void sim_peers_describe(struct sim *s);

/* sim_fault.c */
void sim_faults_plan(struct sim *s);
void sim_fault(struct sim *s, const struct sim_event *ev);

#endif
