/* SPDX-License-Identifier: MIT
 *
 * The agent's logic: sessions, communicators, runs, connection rounds, operations. docs/protocol/
 * has the rules, docs/glossary.md explains the terms.
 *
 * Contract: like the master's core, this core is pure and deterministic, and runs in one thread.
 * The caller
 * - answers each action that asks for an answer once, with the event that the action's comment
 *   names;
 * - passes AGT_EV_TICK at least every 100 ms, or every AGT_QUIET_TICK_MS while agt_is_quiet();
 * - lets no thread touch the memory of a transfer after AGT_EV_XFER_CANCELLED, or the memory of a
 *   member after AGT_EV_SYNC_DROPPED;
 * - carries out actions in their order.
 * AGT_EV_END is the last event. Exhausted memory ends the process (common/cc_must.h).
 */
#ifndef AGT_H
#define AGT_H

#include "pcclagentd/core/agt_actions.h"

struct agt_config {
	struct cc_id agent; /* random bytes from the caller */
	char name[WM_NAME_MAX];
	struct wm_addresses addresses; /* where other hosts reach this agent */
	uint32_t max_comms_per_uid;    /* the most communicators of one user; default 1024 */
	/* Time to reach a master and to get its answer; default 10000. */
	uint32_t connect_timeout_ms;
	/* Time for one address of a master to accept the connection; default 1000. */
	uint32_t master_addr_timeout_ms;
	uint32_t master_lease_ms; /* how long a run is kept without a master; default 60000 */
	/* A process that is stopped for longer counts as lost; default 10000. */
	uint32_t stopped_ms;
};

/* Each comment names the fields of struct agt_event that the event uses. */
enum agt_event_type {
	/* session, uid, pid, name. The session's hello was good. */
	AGT_EV_SESSION_OPEN = 1,
	AGT_EV_SESSION_CLOSED,
	/* session, stopped: the session's process is stopped, or runs again. */
	AGT_EV_SESSION_STOPPED,
	/* session, request: COMM_CREATE, _CONNECT, _ATTACH, _DESTROY or VOTE. */
	AGT_EV_REQUEST,
	/* comm: the action COMM_OPEN for this new communicator failed; the caller has already
	 * reported the failure to its process. */
	AGT_EV_COMM_UNOPENED,
	/* comm, slot (< SHM_SLOTS, not in use), sub; text: why sub is refused, or NULL. With code
	 * != 0 the entry was bad and sub is NULL: complete the slot with code and text. */
	AGT_EV_SUBMIT,
	/* comm, slot (< SHM_SLOTS): the slot's caller has waited for a moment and does nothing
	 * else. */
	AGT_EV_ASLEEP,
	/* comm, n_ops: the process waits until any of its operations ends, and does nothing else.
	 * n_ops: how many operations of comm were in flight when it began to wait. */
	AGT_EV_ASLEEP_ANY,
	/* run, path_ms: the TCP connection is made. On a slow path an answer may take path_ms
	 * longer. */
	AGT_EV_MASTER_TAKEN,
	/* run: the other end of the connection has answered. */
	AGT_EV_MASTER_UP,
	/* run, text, code, foreign: the connection is down or could not be made. code is not 0 if
	 * this host lacks a resource that the run needs. Then the run ends; if it has members, the
	 * agent first tries again for AGT_SHORT_MS. Answers the last MASTER_OPEN, unless a
	 * MASTER_DROP or _CLOSE came after it. */
	AGT_EV_MASTER_DOWN,
	/* addresses: where other hosts reach this agent from now on. */
	AGT_EV_ADDRESSES,
	/* from, to: the master with address `from` can also be reached at `to` (family 0: it has no
	 * other address any more). If `run` is given, this applies only to that run, otherwise to
	 * all present and later runs. now: leave the master at `from` even if it is up. */
	AGT_EV_SET_MASTER,
	/* run, msg (stays owned by the caller): a message of the master. */
	AGT_EV_MASTER_MSG,
	/* run, peer (an agent), inbound: all streams of the link to the peer are up, or, with
	 * inbound, all streams of the link from the peer. */
	AGT_EV_LINK_UP,
	/* run, peer, text: the link to the peer could not be opened. */
	AGT_EV_LINK_FAILED,
	/* run, peer, text: the established link to the peer broke, or, with inbound, the link from
	 * the peer. silent: nothing was received from the other host. ended: the other host has
	 * closed the link itself, so it knows of the end. smaller: nothing was delivered, and the
	 * next link will use smaller segments. */
	AGT_EV_LINK_DOWN,
	/* run, peer, silent: nothing has been received for a while on the established link to the
	 * peer (silent), or something has been received again. */
	AGT_EV_LINK_SILENT,
	/* run, peer, rate, trip_us: what the established link to the peer has carried in
	 * operations while the network was what bounded it. At most every few seconds for a link.
	 */
	AGT_EV_LINK_RATE,
	/* run, seq: the number of the probe. code == 0: the probed agent can be reached; otherwise
	 * text says why not. */
	AGT_EV_PROBED,
	/* run, seq, measured: the results of the measurement with the number seq, one for each
	 * agent of its `to`, in the same order. */
	AGT_EV_MEASURED,
	/* run, seq. code == 0: all data of this host is final and sent. Otherwise the transfer
	 * failed, and text says why. The operation ends with this code for all members; if the code
	 * is pcclRankConnectionLost, it ends as a loss. */
	AGT_EV_XFER_DONE,
	/* run, seq: no thread uses the transfer any more. */
	AGT_EV_XFER_CANCELLED,
	/* run, seq, tx_bytes, rx_bytes, still_ms: the transfer stands still and does not wait for a
	 * process of this host. Repeated while this lasts. */
	AGT_EV_XFER_STANDSTILL,
	/* run, seq, results. code == 0: every receiver of this host that has not failed is
	 * complete; the event comes again if another member fails later. Otherwise the job failed,
	 * and text says why. pcclRankConnectionLost: no remaining peer has the elected contents.
	 * Another code: this agent cannot do the job, so the synchronization is aborted for all
	 * members. */
	AGT_EV_SYNC_DONE,
	/* run, seq, comm, results (of this member): no thread uses the member's memory any more. */
	AGT_EV_SYNC_DROPPED,
	/* run, seq, results: no thread uses the memory of any member. */
	AGT_EV_SYNC_CANCELLED,
	/* See the contract above. */
	AGT_EV_TICK,
	/* The agent ends. This is the last event; later ones are ignored. When the caller reports
	 * the end to its processes, no transfer may use their memory any more. */
	AGT_EV_END,
};

/* The result of one member of a job. */
struct agt_sync_result {
	uint32_t comm;
	/* the member takes no part any more: its tensors differ from its candidate, or it cannot
	 * get the elected contents */
	bool failed;
	bool complete; /* it has all elected contents */
	/* if failed: the pcclResult_t for its callers, which is pcclInvalidUsage if no other cause
	 * is certain
	 */
	uint32_t code;
	const char *text;            /* failed: why */
	uint64_t tx_bytes, rx_bytes; /* sent from its tensors, and received into them, until now */
};

/* Each comment names the events that use the field. */
struct agt_event {
	enum agt_event_type type;
	uint32_t session, comm, run, slot;
	uint32_t n_ops; /* ASLEEP_ANY */
	uint32_t uid, pid;
	const char *name;
	const struct wl_request *request;
	struct cc_id peer;       /* LINK_*: the other agent; XFER_DONE: the suspect, or zero */
	bool inbound;            /* LINK_UP, LINK_DOWN */
	bool ended;              /* LINK_DOWN, inbound */
	bool silent;             /* LINK_DOWN, LINK_SILENT */
	bool smaller;            /* LINK_DOWN, outbound */
	bool stopped;            /* SESSION_STOPPED */
	uint32_t path_ms;        /* MASTER_TAKEN; MASTER_MSG with a heartbeat: see cc_detect_path */
	struct cc_addr from, to; /* SET_MASTER */
	bool now;                /* SET_MASTER */
	/* MASTER_DOWN: the program that answers speaks another protocol, so another attempt would
	 * not help. */
	bool foreign;
	const struct shm_submission *sub;
	const struct wm_msg *msg;
	const struct wm_addresses *addresses;
	uint64_t seq;
	uint64_t tx_bytes, rx_bytes; /* XFER_DONE, XFER_STANDSTILL */
	uint32_t still_ms;           /* XFER_STANDSTILL */
	uint64_t rate;               /* LINK_RATE: bit/s */
	uint32_t trip_us;            /* LINK_RATE: 0: unknown */
	uint32_t n_results;
	/* SYNC_*: of all members of the job, in any order; SYNC_DROPPED: of one member. If the job
	 * could not be started, results of some members may be missing. */
	const struct agt_sync_result *results;
	uint32_t n_measured;                       /* MEASURED */
	const struct wm_measured_result *measured; /* MEASURED */
	uint32_t code;                             /* pcclResult_t */
	const char *text;
};

struct agt;

struct agt *agt_new(const struct agt_config *cfg);
void agt_free(struct agt *a);
/* Handles an event and appends actions to *out. */
void agt_step(struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out);
/* Returns NULL, or a static text that names a broken invariant. For tests and the simulator. */
const char *agt_check(const struct agt *a);

/* The state of the core, for the admin socket and for tests. */
struct agt_status {
	uint32_t sessions, comms, runs, ops;
	uint64_t ops_done, ops_failed, submissions_refused;
};
void agt_get_status(const struct agt *a, struct agt_status *ret);
/* Returns true if nothing but heartbeats and timeouts of seconds is pending. Then ticks may come
 * every AGT_QUIET_TICK_MS, until the next event that starts some work. */
#define AGT_QUIET_TICK_MS 450u /* shorter than a heartbeat */
bool agt_is_quiet(const struct agt *a);
/* Does a peer of any run, on any host, wait for votes? The processes of the missing voters may be
 * stopped. */
bool agt_is_awaited(const struct agt *a);
/* Returns true if other peers may be waiting for this session's process: a peer of its run waits
 * for votes, or an operation has not ended after a moment. */
bool agt_session_is_due(const struct agt *a, uint32_t session);

struct agt_comm_info {
	uint32_t comm, session, uid, pid, group, run;
	char name[WL_NAME_MAX];
	struct cc_id peer;
	struct cc_addr master;
	struct agt_attrs attrs;
	struct wire_view view; /* view id 0: not connected */
	uint32_t ops;
	uint64_t stopped_ns;       /* how long its process has been stopped; 0: it runs */
	char waiting[WM_TEXT_MAX]; /* "waiting for the master to accept it for 3.2 s", or "" */
};
void agt_each_comm(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_comm_info *c), void *arg);

struct agt_run_info {
	uint32_t run, comms, ops;
	struct cc_addr master;       /* the address that the processes gave */
	struct cc_addr connect_addr; /* the address where the master is, or is sought now */
	struct cc_id id;             /* zero until a master has answered */
	uint64_t term, epoch;
	/* static: "connecting", "greeting", "up", "orphan", "resuming" or "over" */
	const char *state;
	uint64_t state_ns; /* how long the run has been in this state */
	bool master_set;   /* the latest AGT_EV_SET_MASTER applied to this run */
};
void agt_each_run(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_run_info *r), void *arg);

/* Returns a text that names the group's peers whose processes are stopped, as last reported by the
 * master; "": none. Valid until the next step. */
const char *agt_stopped_in(const struct agt *a, uint32_t run, uint32_t group);

struct agt_op_info {
	uint32_t run, group;
	bool is_sync;                     /* a synchronization; tag is 0 */
	uint64_t tag, seq, age_ns, bytes; /* bytes: of the operand, or of a member's tensors */
	/* is_sync: the elected candidate; before the start, the candidate of the first local member
	 */
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
	/* is_sync: local members that have failed, and that the master is to kick */
	uint32_t failed;
	/* static: "collecting", "voting", "running", "reported" or "cancelling" */
	const char *state;
	uint32_t submitted, members;
	char awaited[WM_TEXT_MAX];
};
void agt_each_op(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_op_info *o), void *arg);

/* The last synchronization of each communicator that has tried to synchronize. */
enum agt_sync_end { AGT_SYNC_VOTED = 0, AGT_SYNC_RUNNING, AGT_SYNC_DONE, AGT_SYNC_FAILED };
const char *agt_sync_end_name(enum agt_sync_end e);

struct agt_synced_info {
	uint32_t comm, pid, run, group; /* run: 0 if the communicator is in no run any more */
	const char *name;
	struct cc_id peer;
	struct cc_addr master;
	struct wm_sync_vote candidate;
	enum agt_sync_end end;
	/* holder: the operation has started, and the peer had the elected contents */
	bool started, holder;
	uint64_t seq;
	uint64_t revision; /* RUNNING: the elected revision; DONE: the revision that the peer has */
	/* took: from the vote to the end, or until now; age: since the end */
	uint64_t took_ns, age_ns;
	uint64_t tx_bytes, rx_bytes; /* DONE, FAILED */
	const char *text;            /* FAILED: why */
};
void agt_each_synced(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_synced_info *s), void *arg);

/* The groups that have peers on this host. */
struct agt_group_info {
	uint32_t run, group;
	struct cc_addr master;
	uint32_t local, world_size; /* accepted peers on this host, and everywhere */
	uint64_t expected; /* the expected revision; 0: any, because nothing was synchronized yet */
};
void agt_each_group(
	const struct agt *a, void (*fn)(void *arg, const struct agt_group_info *g), void *arg);

#endif
