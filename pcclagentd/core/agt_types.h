/* SPDX-License-Identifier: MIT
 *
 * The agent core's limits and states, and its structures from sessions to groups; those of runs are
 * in agt_run.h.
 */
#ifndef AGT_TYPES_H
#define AGT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_hash.h"

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(obj) ((obj)->unhashed = true)
#include <uthash.h>
#include <utlist.h>

#include "common/cc_detect.h"
#include "common/cc_err.h"
#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"

#define AGT_NS_PER_MS      1000000u
#define AGT_MAX_COMMS      1024u
#define AGT_CONNECT_MS     10000u
#define AGT_HEARTBEAT_MIN  10u /* ms; what the master asks for is kept within reason */
#define AGT_TIMEOUT_MIN    100u
#define AGT_QUIET_MIN_BEAT (AGT_QUIET_TICK_MS + 50u) /* shorter ones need more ticks than that */
#define AGT_LEASE_MS       60000u
#define AGT_STOPPED_MS     10000u
/* Ticks are no clockwork: one that comes a little early should not leave it to the next one. */
#define AGT_SLACK_NS         (UINT64_C(10) * AGT_NS_PER_MS)
#define AGT_STOOD_STILL_NS   1000000000u /* between two ticks: this process did not run */
#define AGT_RECONNECT_MIN    50u         /* ms between attempts at a master that is gone */
#define AGT_RECONNECT_MAX    500u
#define AGT_MASTER_ADDR_MS   1000u
#define AGT_SHORT_MS         4000u /* that the run of members may lack what it takes */
#define AGT_ALIASES_MAX      8u
#define AGT_MASTERS_MAX      64u
#define AGT_FENCES           32u
#define AGT_MASTER_ADDRS_MAX (2 * (AGT_ALIASES_MAX + 3)) /* where one master is sought */
#define AGT_GHOSTS_MAX       4096u
#define AGT_LEAVE_MS         2000u /* of waiting for the master to know of a leave */
#define AGT_DOUBT_MS         1000u /* beyond the master's own time to miss an agent */
#define AGT_PART_MS          1000u /* of waiting for local votes: those that are here go out */

enum agt_comm_state {
	AGT_COMM_NEW = 0,    /* not connected */
	AGT_COMM_JOINING,    /* waits for its run to reach the master */
	AGT_COMM_REGISTERED, /* WM_JOIN sent */
	AGT_COMM_ACCEPTED,
	AGT_COMM_LOST,    /* was accepted; kicked, or the master is gone */
	AGT_COMM_LEAVING, /* to be destroyed when its last operation has ended */
	AGT_COMM_STATES,
};

enum agt_run_state {
	AGT_RUN_CONNECTING = 0,
	AGT_RUN_GREETING, /* WM_HELLO sent */
	AGT_RUN_UP,
	AGT_RUN_ORPHAN,   /* was up; its master is sought */
	AGT_RUN_RESUMING, /* WM_HELLO sent to the next master */
	AGT_RUN_OVER,     /* no master any more; transfers are being cancelled */
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
	uint64_t stopped_ns; /* since when its process is stopped; 0: it runs */
	struct agt_comm *comms;
	bool unhashed;
	UT_hash_handle hh;
};

/* What a member says when its operation does not succeed. */
struct agt_end_status {
	uint32_t code;
	char text[SHM_TEXT];
};

struct agt_op_member {
	struct agt_comm *comm; /* NULL: its process is gone */
	uint32_t comm_id;
	struct cc_id peer;
	uint32_t rank;
	bool out; /* left the run or was kicked; counts on until the operation ends */
	struct agt_end_status own; /* of a member that is out, has failed, or was refused (sub) */
	struct shm_submission sub;
	/* Of a synchronization, once it has started. */
	bool holder;
	bool complete; /* it has received all that was elected */
	bool failed;   /* and is to be kicked */
	bool fresh;    /* failed: the master has not been told */
	bool dropping; /* out: the engine was asked to let go of it */
	uint64_t tx_bytes, rx_bytes;
};

struct agt_op_key {
	uint64_t tag;
	uint32_t group;
	uint32_t is_sync; /* 32 bits: the key has no padding */
};

/* What a synchronization is to end with; once it has started. */
struct agt_elected {
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
};

#define AGT_GENERATIONS_MAX 16u /* of a group: calls that are later see that of the first one */
/* The view as the master told it with the loss that raised a group's generation to this. */
struct agt_generation {
	uint64_t generation;
	struct wire_view view;
};

/* One attempt. Of each key a run has at most one that collects and at most one that is voting,
 * running or reported; others may still be cancelling. */
struct agt_op {
	struct agt_run *run;
	struct agt_op_key key;
	enum agt_op_state state;
	uint64_t seq; /* 0 until WM_OP_START, unless it has begun speculatively */
	uint64_t epoch;
	uint64_t generation; /* of the group when it was submitted: no attempt spans a loss */
	uint64_t born_ns;
	enum agt_watch {
		AGT_WATCH_NONE = 0,
		AGT_WATCH_FRESH, /* in agt->fresh: local members are missing */
		AGT_WATCH_OLDER, /* in agt->older: for AGT_PART_MS */
	} watch;
	bool alone;        /* its local members are not waited for: they wait for something else */
	bool late, told;   /* the log names those who are awaited: here, elsewhere */
	char *awaited;     /* whom the master says it waits for, or NULL */
	uint64_t waits_ns; /* awaited: since when */
	bool spec;         /* VOTING, REPORTED: its transfer has begun without WM_OP_START */
	bool awaits_start; /* likewise: the master was told of the vote alone, and will say START */
	uint64_t rolled_back;             /* an attempt that had begun speculatively, or 0 */
	bool spoiled;                     /* VOTING: a voter has left, its vote may be counted */
	bool xfer;                        /* the engine has it */
	bool ok;                          /* REPORTED: what was reported */
	struct agt_end_status end_status; /* CANCELLING: for members that are not out; REPORTED, not
					   * ok: its text is what was reported */
	bool won;                         /* CANCELLING, of a synchronization: it has succeeded */
	uint64_t doubt_ns; /* RUNNING, likewise: since when it is not known whether those who have
			    * what was elected are lost, or we cannot reach them; 0: no doubt */
	bool resumed; /* likewise: another master goes on with it, maybe with agents that begin late
		       */
	struct agt_elected elected;
	struct cc_id suspect; /* REPORTED, not ok: as reported */
	uint32_t failure;     /* likewise */
	bool silent;          /* likewise */
	uint32_t world_size;
	struct cc_id next, prev;
	uint64_t tx_bytes, rx_bytes;
	struct agt_generation at_end; /* CANCELLING: when that was decided */
	uint32_t n, cap;
	struct agt_op_member *members;
	bool unhashed;
	UT_hash_handle hh_key;            /* in run->collecting or run->active */
	UT_hash_handle hh_seq;            /* in run->started */
	struct agt_op *prev_op, *next_op; /* in run->ops */
	struct agt_op *prev_w, *next_w;   /* by age */
};

#define AGT_RESERVED_MAX 16u /* tags of a group whose next attempts have a number */
struct agt_reserved {
	uint64_t tag, seq; /* seq 0: none */
};

#define AGT_NEXT_ROUND UINT64_MAX

/* A peer group of a run with local peers. */
struct agt_group {
	uint32_t group;
	uint32_t users;      /* comms joining, registered, accepted */
	uint32_t accepted;   /* of them */
	uint32_t world_size; /* accepted peers everywhere */
	uint64_t generation; /* as the master counts them: goes with each vote */
	struct agt_generation lost[AGT_GENERATIONS_MAX]; /* the last ones, oldest first */
	uint32_t n_lost;
	uint64_t revision;      /* of shared state, that is expected next; 0: any */
	uint64_t begun;         /* round of the rings that the last attempt started on; 0: none */
	char loss[WM_TEXT_MAX]; /* the last one, or "" */
	char stopped[WM_TEXT_MAX]; /* peers whose processes are, as the master says, or "" */
	bool has_ring;
	struct wm_ring ring; /* in force; owns its members */
	uint32_t n_reserved;
	struct agt_reserved reserved[AGT_RESERVED_MAX]; /* by n_reserved % AGT_RESERVED_MAX */
	/* An accepted peer here has left: by the commit of this round the master has heard of it.
	 * AGT_NEXT_ROUND: of the one that is reported next; 0: none has. */
	uint64_t left;
	bool unhashed;
	UT_hash_handle hh;
};

#endif
