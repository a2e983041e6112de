/* SPDX-License-Identifier: MIT
 *
 * The actions that the core asks its caller to carry out, in order. agt.h has the contract.
 */
#ifndef AGT_ACTIONS_H
#define AGT_ACTIONS_H

#include "common/cc_rings.h"
#include "proto/shm_queue.h"
#include "proto/shm_submit.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"

/* Each comment names the fields of struct agt_action that the action uses, and then what the caller
 * has to do. */
enum agt_action_type {
	/* session, reply: send the reply. */
	AGT_ACT_REPLY = 1,
	/* session, reply (req_id 0, code, text): say goodbye and close the session. The core has
	 * forgotten the session: the core sends no COMM_CLOSE, and ignores a later SESSION_CLOSED.
	 */
	AGT_ACT_SESSION_END,
	/* session, comm, open: make the queue pair, publish open.attrs, send open.reply with the
	 * descriptors. */
	AGT_ACT_COMM_OPEN,
	/* comm: drop the queue pair. Transfers keep the parts that they use. */
	AGT_ACT_COMM_CLOSE,
	/* comm, attrs: publish the attributes. */
	AGT_ACT_ATTRS,
	/* comm, slot, done: publish the completion and wake the process. */
	AGT_ACT_COMPLETE,
	/* run, addr: connect to the master there. Also sent again after the connection was lost, or
	 * to replace the existing connection. */
	AGT_ACT_MASTER_OPEN,
	/* run: close the connection, or stop connecting. The run goes on. No event of that
	 * connection follows. */
	AGT_ACT_MASTER_DROP,
	/* run, msg (owned by the action list): send the message. */
	AGT_ACT_MASTER_SEND,
	/* run: the run is over. Sent once, also after MASTER_DOWN. Messages sent before still go
	 * out. The run's measurement stops now, and its links end with its last transfer; only
	 * XFER_CANCELLED events may follow. */
	AGT_ACT_MASTER_CLOSE,
	/* run, id: accept inbound links of this run from now on. */
	AGT_ACT_RUN_READY,
	/* run, endpoint, n_streams, probe: open the link; if `probe`, probe the path before.
	 * Answered by LINK_UP or LINK_FAILED. */
	AGT_ACT_LINK_OPEN,
	/* run, endpoint.agent: close the outbound link to that agent, open or opening, if it
	 * exists. No event of the link follows. */
	AGT_ACT_LINK_CLOSE,
	/* run, probe: check whether a link can be opened there. Answered by PROBED, unless the run
	 * ends first. */
	AGT_ACT_PROBE,
	/* run, measure (owned by the action list): measure the rates to the agents of `to`, and let
	 * those of `from` measure. Replaces the run's measurement before it, which is not answered
	 * any more. Answered by MEASURED if there is a `to`, unless it is stopped or replaced
	 * first. */
	AGT_ACT_MEASURE,
	/* run, measure.number: stop this measurement. It is not answered any more. */
	AGT_ACT_MEASURE_STOP,
	/* run, measure.number: the same, and tell the agents that send to this one that its network
	 * is in use. */
	AGT_ACT_MEASURE_BUSY,
	/* run, xfer: start the transfer. Answered by XFER_DONE. */
	AGT_ACT_XFER_START,
	/* run, xfer.seq: cancel the transfer. Answered by XFER_CANCELLED, also after XFER_DONE. */
	AGT_ACT_XFER_CANCEL,
	/* run, xfer.seq: free the transfer's memory. Comes after DONE (ok) or CANCELLED. */
	AGT_ACT_XFER_FREE,
	/* run, xfer.seq: forget this speculative transfer and free its memory at once, in whatever
	 * state it is. The members may take part in another transfer next. */
	AGT_ACT_XFER_ROLLBACK,
	/* run, xfer.seq, xfer.hosts, xfer.prev: the next eager operation of a tag may start
	 * speculatively, and on other hosts earlier than here. Keep its data that arrives before it
	 * starts here. */
	AGT_ACT_XFER_EXPECT,
	/* run, xfer.seq: the expected transfer never started here. Drop its data. */
	AGT_ACT_XFER_FORGET,
	/* run, xfer.seq: the operation started on other hosts, but not here. Drop its data. */
	AGT_ACT_XFER_SKIP,
	/* run, sync: start the job. It gets the leaves that the receivers lack, and serves other
	 * agents until it is cancelled. Answered by SYNC_DONE, at least once. If the job cannot be
	 * started, SYNC_DONE has code != 0 or failed members. */
	AGT_ACT_SYNC_START,
	/* run, sync.seq, comm: this member takes no part any more, and its process may be gone. The
	 * job goes on without it. Answered by SYNC_DROPPED, unless the job is cancelled first. Not
	 * sent for the last member: instead, the job is cancelled. */
	AGT_ACT_SYNC_DROP,
	/* run, sync.seq: cancel the job, in whatever state it is, also if it could not be started.
	 * Answered by SYNC_CANCELLED; no SYNC_DONE follows. */
	AGT_ACT_SYNC_CANCEL,
	/* run, sync.seq: free the job's memory. Comes after CANCELLED, once for each SYNC_START,
	 * and before the run's end. */
	AGT_ACT_SYNC_FREE,
	/* level (as in syslog), text: write a line to the log. */
	AGT_ACT_LOG,
};

struct agt_attrs {
	uint32_t state; /* enum shm_comm_state */
	uint32_t hosts, pos;
	uint32_t code; /* when LOST */
	char text[SHM_TEXT];
	struct cc_addr at; /* where the master is, as far as the agent knows; family 0: not known */
	/* From the latest view: */
	uint64_t view_id; /* 0: none */
	uint32_t global;  /* accepted peers of all groups */
	/* The round of measurements in progress, from 1, and the number of rounds; or 0. */
	uint32_t round, rounds;
};

struct agt_done {
	uint32_t code; /* pcclResult_t */
	uint32_t world_size;
	/* The group's generation that the application knows after it has awaited this operation; 0
	 * if the peer is in no group any more. */
	uint64_t generation;
	/* The view at the end; view id 0 if the peer is in no group any more. */
	struct wire_view after;
	uint64_t tx_bytes, rx_bytes;
	uint64_t revision; /* the group's revision after a synchronization that succeeded; else 0 */
	char text[SHM_TEXT];
};

/* The most peers that a group of a run may have on one host. A further connect is refused. */
#define AGT_MEMBERS_MAX 1024u

/* A local peer's part of a transfer. The array of members is in rank order. */
struct agt_member {
	uint32_t comm;
	struct shm_submission sub;
};

struct agt_xfer {
	uint64_t seq, tag, epoch;
	bool spec; /* eager, and the master has not started it yet, so it may be rolled back */
	uint32_t group;
	struct wm_op_params params;
	uint32_t world_size; /* contributing peers on all hosts: the divisor of an average */
	uint64_t generation; /* of the group; equal on all hosts */
	/* The view at the start. The callers get it if this agent dies before the end. */
	struct wire_view begin;
	uint32_t hosts, pos, segment_max;
	struct cc_id next, prev;     /* agents; zero when hosts == 1 */
	char prev_name[WM_NAME_MAX]; /* the host name of `prev` */
	uint32_t route;              /* enum cc_algo */
	/* The agents of all hosts, in ring order, if the route is not the ring; else NULL. Owned by
	 * the action list. */
	struct cc_id *agents;
	/* The rings of `hosts` hosts if the route is CC_ALGO_RINGS, from cc_rings_complete; else
	 * NULL. Owned by the action list. */
	struct cc_rings *rings;
	uint32_t n_members;
	struct agt_member *members; /* owned by the action list */
};

/* A local member of a job. */
struct agt_sync_member {
	uint32_t comm;
	bool holder; /* its candidate was elected; else it is a receiver */
	struct shm_submission sub;
};

/* An agent from which leaves can be requested. */
struct agt_sync_source {
	struct wm_endpoint endpoint; /* the port and the addresses for shared state */
	/* The agent has holders; otherwise only receivers, which may have some of the leaves. */
	bool holds;
};

/* The part of this host in one attempt of a synchronization. */
struct agt_sync {
	uint64_t seq, epoch;
	uint32_t group;
	uint64_t revision;  /* the elected revision */
	uint32_t hash_type; /* enum wm_hash_type, or a number unknown here */
	struct wm_digest keys, content;
	/* The view at the start. The callers get it if this agent dies before the end. */
	struct wire_view begin;
	uint32_t n_members;              /* 1 .. AGT_MEMBERS_MAX */
	struct agt_sync_member *members; /* owned by the action list */
	uint32_t n_sources;              /* at most 2 * WM_SOURCES_MAX, holders first */
	struct agt_sync_source *sources; /* owned by the action list; NULL if n_sources is 0 */
};

struct agt_action {
	enum agt_action_type type;
	uint32_t session, comm, run, slot;
	uint32_t n_streams;
	bool probe;
	uint32_t level;
	struct cc_id id;
	struct cc_addr addr;
	union {
		struct wl_reply reply;
		struct {
			struct wl_reply reply;
			struct agt_attrs attrs;
		} open;
		struct agt_attrs attrs;
		struct agt_done done;
		struct wm_msg msg;
		struct wm_endpoint endpoint;
		struct wm_probe probe;
		struct wm_measure measure;
		struct agt_xfer xfer;
		struct agt_sync sync;
		char text[WM_TEXT_MAX];
	} u;
};

struct agt_actions {
	struct agt_action *v;
	size_t n, cap;
};

/* Frees what the actions own, and keeps the array. */
void agt_actions_clear(struct agt_actions *a);
void agt_actions_free(struct agt_actions *a);

#endif
