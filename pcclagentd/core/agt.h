/* SPDX-License-Identifier: MIT
 *
 * The agent's logic: sessions, communicators, runs, connection rounds, operations. The rules are in
 * docs/protocol/, the words in docs/glossary.md.
 *
 * Contract. Pure and deterministic like the master's core. One thread. The caller
 * - answers each action that asks for an answer with the event that is named beside it, once;
 * - passes AGT_EV_TICK at least every 100 ms, or every AGT_QUIET_TICK_MS while agt_is_quiet();
 * - lets no thread touch the memory of a transfer after AGT_EV_XFER_CANCELLED, or of a member after
 *   AGT_EV_SYNC_DROPPED;
 * - carries out actions in their order, and ends the process after CC_ERR_NOMEM.
 * AGT_EV_END is the last event.
 */
#ifndef AGT_H
#define AGT_H

#include "proto/shm_queue.h"
#include "proto/shm_submit.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"

struct agt_config {
	struct cc_id agent; /* random bytes from the caller */
	char name[WM_NAME_MAX];
	struct wm_addresses addresses;   /* where it is reached */
	uint32_t max_comms_per_uid;      /* P8; default 1024 */
	uint32_t connect_timeout_ms;     /* to reach a master, and to its answer; default 10000 */
	uint32_t master_addr_timeout_ms; /* for one of its places to take the connection; default
					    1000 */
	uint32_t master_lease_ms;        /* that a run outlives its master; default 60000 */
	uint32_t stopped_ms; /* after which a stopped process counts as lost; default 10000 */
};

enum agt_event_type {
	AGT_EV_SESSION_OPEN = 1, /* session, uid, pid, name (after a good hello) */
	AGT_EV_SESSION_CLOSED,
	AGT_EV_SESSION_STOPPED, /* session, stopped: its process is stopped, or runs again */
	AGT_EV_REQUEST,       /* request: COMM_CREATE, _CONNECT, _ATTACH, _DESTROY, UPDATE_TOPOLOGY,
			       * ARE_PENDING */
	AGT_EV_COMM_UNOPENED, /* comm: a new one, whose COMM_OPEN could not be carried out; its
			       * process has been told */
	AGT_EV_SUBMIT,        /* comm, slot (< SHM_SLOTS, not in use), sub, and, if that is refused,
			       * text: why; code != 0: the entry was bad, there is no sub: complete
			       * it with code and text */
	AGT_EV_ASLEEP,     /* comm, slot (< SHM_SLOTS): its caller has waited for a moment, and does
			    * nothing else */
	AGT_EV_ASLEEP_ANY, /* comm, n_ops: likewise until any of its operations ends, as long as
			    * these are so many */
	AGT_EV_MASTER_TAKEN, /* run, path_ms: TCP connection made; on a slow path an answer may take
			      * so much longer */
	AGT_EV_MASTER_UP,    /* run: somebody answers there */
	AGT_EV_MASTER_DOWN,  /* run, text, code (0, or this host lacks what the run takes: it ends,
			      * with members not at once); also when it could not be made: the answer
			      * to the last MASTER_OPEN, unless a MASTER_DROP or _CLOSE came after it
			      */
	AGT_EV_ADDRESSES,    /* addresses: where this agent is reached from now on */
	AGT_EV_SET_MASTER,   /* from, to: the master at from is to be found at to, too (family 0:
			      * nowhere else any more); kept for later runs as well, unless run is
			      * given: then only of that one. now: leave a master that is up */
	AGT_EV_MASTER_MSG,   /* run, msg (stays owned by the caller) */
	AGT_EV_LINK_UP,     /* run, peer (agent), inbound: all streams of the link to it are up, or,
			     * with inbound, of the one from it */
	AGT_EV_LINK_FAILED, /* run, peer, text: could not be opened */
	AGT_EV_LINK_DOWN,   /* run, peer, text: an established link broke: the one to peer, or, with
			     * inbound, the one from it; silent: nothing was heard of its host;
			     * ended: it has closed it itself, so it knows; smaller: nothing got
			     * through, and the next one has smaller segments */
	AGT_EV_LINK_SILENT, /* run, peer, silent: nothing has been heard for a while on the
			     * established link to peer, or something again */
	AGT_EV_PROBED,      /* run, seq: the number of the probe; code == 0: that agent can be
			     * reached; else text: why not */
	AGT_EV_XFER_DONE,   /* run, seq, code == 0: all here is final and sent; else failed, text;
			     * for all with this code, or, with pcclRankConnectionLost, as a loss */
	AGT_EV_XFER_CANCELLED,  /* run, seq: no thread uses it any more */
	AGT_EV_XFER_STANDSTILL, /* run, seq, tx_bytes, rx_bytes, still_ms: it stands still, and
				 * waits for   no process of this host; to be said again while that
				 * is so */
	AGT_EV_SYNC_DONE, /* run, seq, results: code == 0: every receiver here that has not failed
			   * has everything; it may come again, when another member has failed
			   * since. Else the job failed, text: pcclRankConnectionLost: nobody is
			   * left who has what was elected; another code: this agent cannot do
			   * it, which aborts it for all */
	AGT_EV_SYNC_DROPPED,   /* run, seq, comm, results: of that member; no thread uses its
				* memory any more */
	AGT_EV_SYNC_CANCELLED, /* run, seq, results: no thread uses anybody's */
	AGT_EV_TICK,           /* see above */
	AGT_EV_END,            /* the agent ends: the last event, what comes after it is nothing. No
				* transfer uses memory any more when the caller tells its processes */
};

/* What came of one member of a job. */
struct agt_sync_result {
	uint32_t comm;
	bool failed;   /* it takes no part any more: its tensors are not what it said, or it cannot
			* get what was elected */
	bool complete; /* it has all that was elected */
	uint32_t code; /* failed: a pcclResult_t for its callers; pcclInvalidUsage unless it is
			* clear that it is something else */
	const char *text;            /* failed: why */
	uint64_t tx_bytes, rx_bytes; /* of its tensors, for others and by others, until now */
};

struct agt_event {
	enum agt_event_type type;
	uint32_t session, comm, run, slot;
	uint32_t n_ops; /* ASLEEP_ANY */
	uint32_t uid, pid;
	const char *name;
	const struct wl_request *request;
	struct cc_id peer; /* LINK_*: the other agent; XFER_DONE: who seems at fault, or zero */
	bool inbound;      /* LINK_UP, LINK_DOWN */
	bool ended;        /* LINK_DOWN, inbound */
	bool silent;       /* LINK_DOWN, LINK_SILENT */
	bool smaller;      /* LINK_DOWN, outbound */
	bool stopped;      /* SESSION_STOPPED */
	uint32_t path_ms;  /* MASTER_MSG, a heartbeat: see cc_detect_path; MASTER_TAKEN */
	struct cc_addr from, to; /* SET_MASTER */
	bool now;                /* SET_MASTER */
	bool foreign;            /* MASTER_DOWN: what answers speaks another protocol: to try again
				  * would not help */
	const struct shm_submission *sub;
	const struct wm_msg *msg;
	const struct wm_addresses *addresses;
	uint64_t seq;
	uint64_t tx_bytes, rx_bytes; /* XFER_DONE, XFER_STALLED */
	uint32_t still_ms;           /* XFER_STALLED */
	uint32_t n_results;
	const struct agt_sync_result
		*results; /* SYNC_DONE, SYNC_CANCELLED: of all members of the job, in any order;
			   * may be fewer if it could not be started */
	uint32_t code;    /* pcclResult_t */
	const char *text;
};

enum agt_action_type {
	AGT_ACT_REPLY = 1,    /* session, reply */
	AGT_ACT_SESSION_END,  /* session, reply (req_id 0, code, text): say goodbye and close. The
			       * core has forgotten it: no COMM_CLOSE is missing, and a later
			       * SESSION_CLOSED is nothing */
	AGT_ACT_COMM_OPEN,    /* session, comm, open: make its queue pair, publish open.attrs, send
			       * open.reply with its fds */
	AGT_ACT_COMM_CLOSE,   /* comm: drop the queue pair; transfers keep what they use */
	AGT_ACT_ATTRS,        /* comm, attrs: publish */
	AGT_ACT_COMPLETE,     /* comm, slot, done: publish the completion and wake */
	AGT_ACT_MASTER_OPEN,  /* run, addr: connect; also again for a run whose connection is gone,
			       * or instead of the one that there is */
	AGT_ACT_MASTER_DROP,  /* run: close the connection, or stop connecting; the run goes on. No
			       * event of that connection follows */
	AGT_ACT_MASTER_SEND,  /* run, msg (owned by the action list) */
	AGT_ACT_MASTER_CLOSE, /* run: once, also after MASTER_DOWN: the run is over. What was sent
			       * goes out first. Its links go with its last transfer; nothing but
			       * XFER_CANCELLED may follow */
	AGT_ACT_RUN_READY,    /* run, id: accept inbound links of this run from now on */
	AGT_ACT_LINK_OPEN,    /* run, endpoint, n_streams; answered by LINK_UP or LINK_FAILED */
	AGT_ACT_LINK_CLOSE, /* run, endpoint.agent: outbound link, open or opening, if there is one;
			     * no event of it follows any more */
	AGT_ACT_PROBE, /* run, probe: can a link be opened there? Answered by PROBED, unless the
			* run is over before */
	AGT_ACT_XFER_START,  /* run, xfer */
	AGT_ACT_XFER_CANCEL, /* run, xfer.seq; answered by XFER_CANCELLED, also after XFER_DONE */
	AGT_ACT_XFER_FREE,   /* run, xfer.seq: after DONE (ok) or CANCELLED: give its memory back */
	AGT_ACT_XFER_ROLLBACK, /* run, xfer.seq: it was speculative: forget it and give its memory
				* back, at once and whatever it does; its members may be in another
				* one next
				*/
	AGT_ACT_XFER_EXPECT, /* run, xfer.seq, xfer.hosts, xfer.prev: the next small operation of a
			      * tag may  begin speculatively, and elsewhere before it does here:
			      * keep what comes */
	AGT_ACT_XFER_FORGET, /* run, xfer.seq: it was expected and never began here: drop it */
	AGT_ACT_XFER_SKIP,   /* run, xfer.seq: started elsewhere, not here: drop what comes of it */
	AGT_ACT_SYNC_START,  /* run, sync: get what the receivers lack, serve other agents until it
			      * is  cancelled; answered by SYNC_DONE, once at least. If it cannot be
			      * started: SYNC_DONE with code != 0, or with members that failed */
	AGT_ACT_SYNC_DROP, /* run, sync.seq, comm: this member is out, its process may be gone: the
			    * job goes on without it; answered by SYNC_DROPPED, unless the job is
			    * cancelled before. Not for the last one: then it is cancelled */
	AGT_ACT_SYNC_CANCEL, /* run, sync.seq: whatever has come of it; answered by SYNC_CANCELLED,
			      * after which no SYNC_DONE follows; also if it could not be started */
	AGT_ACT_SYNC_FREE,   /* run, sync.seq: after CANCELLED: give its memory back. Once for each
			      * SYNC_START, and before the run's end */
	AGT_ACT_LOG,         /* level (as in syslog), text */
};

struct agt_attrs {
	uint32_t state; /* enum shm_comm_state */
	uint32_t hosts, pos;
	uint32_t code; /* when LOST */
	char text[SHM_TEXT];
	struct cc_addr at;   /* the last word of where the master is; family 0: none */
	uint64_t epoch;      /* of the last commit; 0: none */
	uint64_t ring_epoch; /* the last round that was committed; 0: none */
	uint64_t prepared;   /* the last one that was reported as good; 0: none */
	/* as of what was told last: */
	uint64_t view_id;            /* of the view; 0: none */
	uint64_t generation;         /* of the group */
	uint32_t global, world_size; /* peers of all groups, of this one */
};

struct agt_done {
	uint32_t code; /* pcclResult_t */
	uint32_t world_size;
	uint64_t generation; /* of the group, for the application to know once it has awaited this;
			      * 0 when the peer is in no group any more */
	struct wire_view after; /* as of the end; view id 0 likewise */
	uint64_t tx_bytes, rx_bytes;
	uint64_t revision; /* a synchronization that succeeded: what all have now; else 0 */
	char text[SHM_TEXT];
};

/* Peers of one group of a run on one host: what a transfer takes. A connect beyond is refused. */
#define AGT_MEMBERS_MAX 1024u

/* A local contribution to a transfer, in rank order. */
struct agt_member {
	uint32_t comm;
	struct shm_submission sub;
};

struct agt_xfer {
	uint64_t seq, tag, epoch;
	bool spec; /* small, and the master has not started it: it may be rolled back */
	uint32_t group;
	struct wm_op_params params;
	uint32_t world_size;    /* contributions in all: the divisor of an average */
	struct wire_view begin; /* for the callers, if this agent dies before the end */
	uint32_t hosts, pos, segment_max;
	struct cc_id next, prev;     /* agents; zero when hosts == 1 */
	char prev_name[WM_NAME_MAX]; /* of its host */
	uint32_t n_members;
	struct agt_member *members; /* owned by the action list */
};

/* A member of a job. */
struct agt_sync_member {
	uint32_t comm;
	bool holder; /* it said that it has what was elected; else it is to get it */
	struct shm_submission sub;
};

/* Where blocks can be had: another agent. */
struct agt_sync_source {
	struct wm_endpoint endpoint; /* port and addrs: shared state */
	bool holds; /* it has holders; else receivers alone, which may have some of it */
};

/* A job: one attempt of a synchronization, as far as this host takes part. */
struct agt_sync {
	uint64_t seq, epoch;
	uint32_t group;
	uint64_t revision;  /* elected */
	uint32_t hash_type; /* enum wm_hash_type, or another number */
	struct wm_digest keys, content;
	struct wire_view begin;          /* for the callers, if this agent dies before the end */
	uint32_t n_members;              /* 1 .. AGT_MEMBERS_MAX */
	struct agt_sync_member *members; /* owned by the action list */
	uint32_t n_sources;              /* at most 2 * WM_SOURCES_MAX, holders first */
	struct agt_sync_source *sources; /* likewise; NULL when there are none */
};

struct agt_action {
	enum agt_action_type type;
	uint32_t session, comm, run, slot;
	uint32_t n_streams;
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
		struct agt_xfer xfer;
		struct agt_sync sync;
		char text[WM_TEXT_MAX];
	} u;
};

struct agt_actions {
	struct agt_action *v;
	size_t n, cap;
};

void agt_actions_clear(struct agt_actions *a); /* frees what is owned, keeps the array */
void agt_actions_free(struct agt_actions *a);

struct agt;

struct agt *agt_new(const struct agt_config *cfg);
void agt_free(struct agt *a);
/* Appends to *out. 0, or CC_ERR_NOMEM after which the process should end. */
int agt_step(struct agt *a, const struct agt_event *ev, uint64_t now_ns, struct agt_actions *out);
/* NULL or a static text naming a broken invariant (tests, simulator). */
const char *agt_check(const struct agt *a);

/* Looking inside, for the admin socket and tests. */
struct agt_status {
	uint32_t sessions, comms, runs, ops;
	uint64_t ops_done, ops_failed, submissions_refused;
};
void agt_get_status(const struct agt *a, struct agt_status *ret);
/* Is nothing under way but heartbeats, and bounds of seconds? Then ticks may come every
 * AGT_QUIET_TICK_MS, until an event ends it. */
#define AGT_QUIET_TICK_MS 450u /* less than a heartbeat */
bool agt_is_quiet(const struct agt *a);
/* Does somebody, anywhere in a run, wait for the votes of others? Their processes may be stopped.
 */
bool agt_is_awaited(const struct agt *a);
/* May others be waiting for this session's process? For somebody's votes, as above, or for an
 * operation that is not done after a moment. */
bool agt_session_is_due(const struct agt *a, uint32_t session);

struct agt_comm_info {
	uint32_t comm, session, uid, pid, group, run;
	char name[WL_NAME_MAX];
	struct cc_id peer;
	struct cc_addr master;
	struct agt_attrs attrs;
	struct wire_view view; /* view id 0: not connected */
	uint32_t ops;
	uint64_t stopped_ns;       /* for how long its process has been stopped; 0: it runs */
	char waiting[WM_TEXT_MAX]; /* "waiting for the master to accept it for 3.2 s", or "" */
};
void agt_each_comm(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_comm_info *c), void *arg);

struct agt_run_info {
	uint32_t run, comms, ops;
	struct cc_addr master;       /* as the processes name it */
	struct cc_addr connect_addr; /* where it is, or is sought now */
	struct cc_id id;             /* zero until a master has answered */
	uint64_t term, epoch;
	const char
		*state; /* static: "connecting", "greeting", "up", "orphan", "resuming", "over" */
	uint64_t state_ns; /* for so long */
	bool master_set;   /* the latest AGT_EV_SET_MASTER concerned it */
};
void agt_each_run(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_run_info *r), void *arg);

/* Peers of the group whose processes are stopped, as far as the master has said; "": none. Valid
 * until the next step. */
const char *agt_stopped_in(const struct agt *a, uint32_t run, uint32_t group);

struct agt_op_info {
	uint32_t run, group;
	bool is_sync;                     /* of shared state; tag is 0 */
	uint64_t tag, seq, age_ns, bytes; /* bytes: of the operand, or of a member's tensors */
	/* is_sync: what was elected; before it starts, what the first one here offers */
	uint64_t revision;
	uint32_t hash_type;
	struct wm_digest keys, content;
	uint32_t failed; /* is_sync: members that were found to have failed, and wait for a kick */
	const char *state; /* static: "collecting", "voting", "running", "reported", "cancelling" */
	uint32_t submitted, members;
	char awaited[WM_TEXT_MAX];
};
void agt_each_op(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_op_info *o), void *arg);

/* Shared state: the last synchronization of each communicator that has tried one. */
enum agt_sync_end { AGT_SYNC_VOTED = 0, AGT_SYNC_RUNNING, AGT_SYNC_DONE, AGT_SYNC_FAILED };
const char *agt_sync_end_name(enum agt_sync_end e);

struct agt_synced_info {
	uint32_t comm, pid, run, group; /* run: 0 when it is in none any more */
	const char *name;
	struct cc_id peer;
	struct cc_addr master;
	struct wm_sync_vote candidate;
	enum agt_sync_end end;
	bool started, holder; /* holder: started, and it had what was elected */
	uint64_t seq;
	uint64_t revision;           /* RUNNING: elected; DONE: what it has */
	uint64_t took_ns, age_ns;    /* until now, unless it has ended; since the end */
	uint64_t tx_bytes, rx_bytes; /* DONE, FAILED */
	const char *text;            /* FAILED: why */
};
void agt_each_synced(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_synced_info *s), void *arg);

/* Groups with peers here. */
struct agt_group_info {
	uint32_t run, group;
	struct cc_addr master;
	uint32_t local, world_size; /* accepted peers here, and everywhere */
	uint64_t expected;          /* revision; 0: nothing was synchronized, any will do */
};
void agt_each_group(
	const struct agt *a, void (*fn)(void *arg, const struct agt_group_info *g), void *arg);

#endif
