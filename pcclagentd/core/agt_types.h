/* SPDX-License-Identifier: MIT
 *
 * The agent core's limits and states, and its structures of sessions, operations and groups. The
 * structures of runs are in agt_run.h.
 */
#ifndef AGT_TYPES_H
#define AGT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_hash.h"
#include <utlist.h>

#include "common/cc_detect.h"
#include "common/cc_must.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define AGT_NS_PER_MS  1000000u
#define AGT_MAX_COMMS  1024u
#define AGT_CONNECT_MS 10000u
/* ms; a shorter interval that the master asks for is raised to this */
#define AGT_HEARTBEAT_MIN 10u
#define AGT_TIMEOUT_MIN   100u
/* ms; a shorter heartbeat needs more ticks than a quiet agent has */
#define AGT_QUIET_MIN_BEAT (AGT_QUIET_TICK_MS + 50u)
#define AGT_LEASE_MS       60000u
#define AGT_STOPPED_MS     10000u
/* Ticks are not exact. A time that ends just after a tick counts as over at this tick, not at the
 * next one. */
#define AGT_SLACK_NS (UINT64_C(10) * AGT_NS_PER_MS)
/* A longer time between two ticks means that this process did not run. */
#define AGT_STOOD_STILL_NS 1000000000u
#define AGT_RECONNECT_MIN  50u /* ms between attempts to reach a master that is gone */
#define AGT_RECONNECT_MAX  500u
#define AGT_MASTER_ADDR_MS 1000u
/* ms; how long the agent tries again for a run with members when agent or master lack a resource */
#define AGT_SHORT_MS    4000u
#define AGT_ALIASES_MAX 8u
#define AGT_MASTERS_MAX 64u
#define AGT_FENCES      32u
/* Addresses at which one master is sought. */
#define AGT_MASTER_ADDRS_MAX (2 * (AGT_ALIASES_MAX + 3))
#define AGT_GHOSTS_MAX       4096u
/* ms; a destroy waits at most this long for the master to confirm the leave */
#define AGT_LEAVE_MS 2000u
/* ms; added to the time after which the master notices that an agent is gone */
#define AGT_DOUBT_MS 1000u
/* ms; local votes wait at most this long for the votes of other local peers, then they are sent */
#define AGT_PART_MS 1000u

enum agt_comm_state {
	AGT_COMM_NEW = 0,    /* not connected */
	AGT_COMM_JOINING,    /* waits until its run reaches the master */
	AGT_COMM_REGISTERED, /* WM_JOIN sent */
	AGT_COMM_ACCEPTED,
	AGT_COMM_LOST,    /* was accepted, and then kicked or without a master */
	AGT_COMM_LEAVING, /* to be destroyed when its last operation has ended */
	AGT_COMM_STATES,
};

enum agt_run_state {
	AGT_RUN_CONNECTING = 0,
	AGT_RUN_GREETING, /* WM_HELLO sent */
	AGT_RUN_UP,
	AGT_RUN_ORPHAN,   /* was up, and its master is gone; a master is sought */
	AGT_RUN_RESUMING, /* WM_HELLO sent to the next master */
	AGT_RUN_OVER,     /* no master any more; its transfers are being cancelled */
	AGT_RUN_STATES,
};

enum agt_op_state {
	AGT_OP_COLLECTING = 0,
	AGT_OP_VOTING,
	AGT_OP_RUNNING,
	AGT_OP_REPORTED,
	AGT_OP_CANCELLING,
	AGT_OP_STATES,
};

enum agt_link_state { AGT_LINK_OPENING = 0, AGT_LINK_UP, AGT_LINK_FAILED, AGT_LINK_STATES };

struct agt_comm;
struct agt_run;

struct agt_session {
	uint32_t id, uid, pid;
	char name[WL_NAME_MAX];
	uint64_t stopped_ns; /* when its process was stopped; 0: it runs */
	struct agt_comm *comms;
	UT_hash_handle hh;
};

/* The code and the text with which a member's operation ends if it does not succeed. */
struct agt_end_status {
	uint32_t code;
	char text[SHM_TEXT];
};

struct agt_op_member {
	struct agt_comm *comm; /* NULL: its process is gone */
	uint32_t comm_id;
	struct cc_id peer;
	uint32_t rank;
	bool out; /* has left the run or was kicked; counts as a member until the operation ends */
	/* The result status of this member if it is out or has failed, or if its submission is
	 * refused. */
	struct agt_end_status own;
	struct shm_submission sub;
	/* Only for a synchronization that has started: */
	bool holder;
	bool complete; /* it has received all elected contents */
	bool failed;   /* it has failed, and the master is to kick it */
	bool fresh;    /* it has failed, and this was not yet reported to the master */
	bool dropping; /* it is out, and the engine was asked to release its memory */
	uint64_t tx_bytes, rx_bytes;
};

struct agt_op_key {
	uint64_t tag;
	uint32_t group;
	uint32_t is_sync; /* 32 bits: the key has no padding */
};

/* The candidate that a synchronization has elected. Set when it has started. */
struct agt_elected {
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
};

/* How many generations a group keeps. A call that was made before all of these gets the oldest of
 * them. */
#define AGT_GENERATIONS_MAX 16u
/* A generation of a group, and the view that the master sent with the loss that raised the group's
 * generation to it. */
struct agt_generation {
	uint64_t generation;
	struct wire_view view;
};

/* An attempt of an operation. For each key, a run has at most one attempt that is collecting, and
 * at most one that is voting, running or reported. In addition, attempts may be cancelling. */
struct agt_op {
	struct agt_run *run;
	struct agt_op_key key;
	enum agt_op_state state;
	uint64_t seq; /* 0 until WM_OP_START, unless the attempt started speculatively */
	uint64_t epoch;
	uint64_t generation; /* of the group at the submission: no attempt spans a loss */
	uint64_t born_ns;
	enum agt_watch {
		AGT_WATCH_NONE = 0,
		AGT_WATCH_FRESH, /* in agt->fresh: submissions of local members are missing */
		AGT_WATCH_OLDER, /* in agt->older: they have been missing for AGT_PART_MS */
	} watch;
	/* The attempt does not wait for its missing local members, because they wait for something
	 * else. */
	bool alone;
	/* The log has named the awaited peers. late: those of this host; told: those of other
	 * hosts. */
	bool late, told;
	char *awaited; /* the peers for which the attempt waits, according to the master; or NULL */
	uint64_t waits_ns; /* since when it waits for `awaited` */
	bool spec;         /* VOTING, REPORTED: its transfer has started without WM_OP_START */
	/* VOTING, REPORTED: this master knows only the vote, not the speculative start, and will
	 * send WM_OP_START */
	bool awaits_start;
	/* The number under which its speculative start was rolled back, or 0. */
	uint64_t rolled_back;
	bool spoiled; /* VOTING: a voter has left, but the master may have counted its vote */
	bool xfer;    /* the engine has its transfer or job */
	bool ok;      /* REPORTED: success was reported */
	/* REPORTED, not ok: its transfer is being cancelled, or is cancelled, for a member that
	 * leaves. */
	bool stopping, stopped;
	/* CANCELLING: the result status of the members that are not `out`; REPORTED, not ok: the
	 * text of the report */
	struct agt_end_status end_status;
	bool won; /* CANCELLING, only for a synchronization: it has succeeded */
	/* RUNNING, only for a synchronization: since when no holder can be reached, while it is not
	 * known whether the holders are lost or only this host cannot reach them; 0: no doubt */
	uint64_t doubt_ns;
	/* Only for a synchronization: another master continues it, perhaps with agents that start
	 * late. */
	bool resumed;
	struct agt_elected elected;
	struct cc_id suspect; /* REPORTED, not ok: as in the report */
	uint32_t failure;     /* REPORTED, not ok: as in the report */
	bool silent;          /* REPORTED, not ok: as in the report */
	uint32_t world_size;
	struct cc_id next, prev;
	uint32_t route; /* with seq: enum cc_algo */
	/* The agents of the hosts to which this host sends, and from which it receives, if the
	 * route is not the ring; owned. */
	struct agt_neighbours {
		uint32_t n_out, n_in;
		struct cc_id *out, *in;
	} neighbours;
	uint64_t tx_bytes, rx_bytes;
	/* CANCELLING: the generation and the view when the end was decided */
	struct agt_generation at_end;
	uint32_t n;
	size_t cap;
	struct agt_op_member *members;
	UT_hash_handle hh_key;            /* in run->collecting or run->active */
	UT_hash_handle hh_seq;            /* in run->started */
	struct agt_op *prev_op, *next_op; /* in run->ops */
	struct agt_op *prev_w, *next_w;   /* in agt->fresh or agt->older, by age */
};

#define AGT_RESERVED_MAX 16u /* tags of a group whose next attempt has a reserved number */
struct agt_reserved {
	uint64_t tag, seq; /* seq 0: none */
	uint32_t route;    /* enum cc_algo */
};

#define AGT_NEXT_ROUND UINT64_MAX

/* A peer group of a run with local peers. */
struct agt_group {
	uint32_t group;
	uint32_t users;      /* comms joining, registered, accepted */
	uint32_t accepted;   /* of the users */
	uint32_t world_size; /* accepted peers everywhere */
	uint64_t generation; /* the master's count; each vote carries it */
	struct agt_generation lost[AGT_GENERATIONS_MAX]; /* the latest generations, oldest first */
	uint32_t n_lost;
	uint64_t revision;      /* of shared state, expected at the next synchronization; 0: any */
	char loss[WM_TEXT_MAX]; /* text of the last loss, or "" */
	/* Names the peers whose processes are stopped, according to the master; or "". */
	char stopped[WM_TEXT_MAX];
	bool has_ring;
	struct wm_ring ring; /* the ring in force; owns its members and others */
	/* As the master knows: the links to all hosts of the ring are up; those of the plan are. */
	bool mesh_up, plan_up;
	/* Since the ring is in force: links to hosts other than the next one that were lost at this
	 * end, and those that the master has ordered to be reopened. */
	uint32_t mesh_breaks, mesh_orders;
	uint32_t n_reserved;
	/* Entry n_reserved % AGT_RESERVED_MAX is the next to be replaced. */
	struct agt_reserved reserved[AGT_RESERVED_MAX];
	/* An accepted peer of this host has left. When this round is committed, the master knows of
	 * the leave. AGT_NEXT_ROUND: the next round that this agent reports; 0: no peer has left.
	 */
	uint64_t left;
	UT_hash_handle hh;
};

#endif
