/* SPDX-License-Identifier: MIT
 *
 * Limits of a simulated world, and the events in it.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

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
#define SIM_RUNS    256u /* runs of one agent during its life */
#define SIM_TAGS    8u
#define SIM_SYNC    SIM_TAGS /* the index of the synchronization among a peer's operations */
#define SIM_OPS     (SIM_TAGS + 1)
#define SIM_STEPS   6u
#define SIM_ANSWERS 64u
#define SIM_SEGS    3u                  /* segments of each operation */
#define SIM_LARGE   (UINT64_C(1) << 30) /* bytes of an operation that is not eager */
#define SIM_LINKS   2048u
#define SIM_MASTERS 32u
#define SIM_ADDRS   3u /* addresses for masters */
#define SIM_US      UINT64_C(1000)
#define SIM_MS      UINT64_C(1000000)
#define SIM_S       UINT64_C(1000000000)

struct sim;
struct sim_xfer;

enum sim_kind {
	SIM_EV_TO_MASTER,       /* conn, bytes; gen, code: sim_mesh_reports */
	SIM_EV_TO_AGENT,        /* conn, bytes, view */
	SIM_EV_CONNECTED,       /* conn: the agent's attempt to connect succeeds or fails */
	SIM_EV_MASTER_OPEN,     /* conn: the master accepts the connection */
	SIM_EV_MASTER_SEES_END, /* conn */
	SIM_EV_AGENT_SEES_END,  /* conn */
	SIM_EV_MASTER_TICK,     /* master */
	SIM_EV_AGENT_TICK,      /* host, life, gen */
	SIM_EV_LINK_RESULT,     /* link, gen */
	SIM_EV_PROBE_RESULT,    /* host, life, run, seq, agent */
	SIM_EV_MEASURED,        /* host, life, run, seq, gen, bytes: the ids of gen agents */
	SIM_EV_SOLVED,          /* master, bytes */
	/* host, life, run, agent, inbound; gen: closed by the other end; code: nothing was
	 * received */
	SIM_EV_LINK_SEEN_DOWN,
	SIM_EV_LINK_QUIET,     /* host, life, run, agent, gen: nothing was received for a while */
	SIM_EV_XFER_SEGMENT,   /* host, life, run, seq, tag: the segment is final here */
	SIM_EV_XFER_FINAL,     /* host, life, run, seq: all segments are final here */
	SIM_EV_XFER_DONE,      /* host, life, run, seq, code */
	SIM_EV_XFER_CANCELLED, /* host, life, run, seq */
	SIM_EV_SYNC_STEP,      /* host, life, run, seq: a leaf may arrive */
	SIM_EV_SYNC_DROPPED,   /* host, life, run, seq, conn: the communicator */
	SIM_EV_SYNC_CANCELLED, /* host, life, run, seq */
	SIM_EV_REQUEST,        /* peer, session, bytes: a struct wl_request */
	SIM_EV_SUBMIT,         /* peer, session, tag */
	SIM_EV_ASLEEP,         /* peer, session, tag, seq: since when it is in flight */
	SIM_EV_ASLEEP_ANY,     /* peer, session, seq: operations launched so far, code: in flight */
	/* proc; code: 1: the agent sees that the process is stopped, 0: that it runs */
	SIM_EV_STOPPED,
	SIM_EV_PEER,        /* peer, gen: the main thread goes on */
	SIM_EV_RECONNECTOR, /* proc, gen: the shim's reconnector goes on */
	SIM_EV_FAULT,       /* code: enum sim_fault; host, proc, master, ... */
	SIM_EV_KINDS,
};

/* The view that an agent was sent last. */
struct sim_view {
	bool known;
	uint32_t global, groups, largest;
	uint64_t view_id;
	uint32_t group[SIM_GROUPS];
};

struct sim_event {
	uint64_t at, no;
	uint64_t due; /* the planned time; `at` is later if a participant was frozen */
	enum sim_kind kind;
	unsigned host, peer, proc, link, master, addr;
	uint32_t conn, run, gen, code, life, session;
	uint64_t seq, tag;
	struct cc_id agent;
	bool inbound;
	uint8_t *bytes; /* owned */
	size_t len;
	struct sim_view view; /* the view after this message */
};

struct sim_clock {
	uint64_t zero; /* the time that it shows at SIM_S */
	uint32_t rate; /* its ticks per 1000 ns of the world's time */
};

#endif
