/* SPDX-License-Identifier: MIT
 *
 * What the parts of the agent's I/O share. One struct agentd, one thread. Each part owns its
 * objects and is the only one that writes them:
 *
 *   agentd.c   the loop, the core, carrying out its actions
 *   session.c  processes' connections; packet.c their packets, process.c who is there, beat.c
 *              whether it runs
 *   queue.c    communicators: queue pairs and their doorbells
 *   region.c   shared memory and the limits on it
 *   result.c   result regions and their reuse
 *   run.c      masters' connections and the engine of each run
 *   hello.c    the TCP ports and inbound hellos; link.c outbound links
 *   xfer.c     transfers between core and engine; progress.c whether they move, and who is at fault
 *   small.c    small operations, which need no engine
 *   small_in.c their operands from other hosts
 *   sync.c     jobs of shared state between core and its engine; manifest.c what peers offer;
 *              findings.c what came of it
 *   admin.c    tables for pcclctl
 */
#ifndef IO_H
#define IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/cc_err.h"
#include "common/cc_hash.h"
#include "common/cc_id.h"
#include "common/cc_log.h"
#include "common/cc_loop.h"
#include "common/cc_seal.h"
#include "common/cc_sys.h"

#include "pcclagentd/agentd.h"
#include "pcclagentd/beat.h"
#include "pcclagentd/core/agt.h"
#include "pcclagentd/engine.h"
#include "pcclagentd/narrow.h"
#include "pcclagentd/outbox.h"
#include "pcclagentd/process.h"
#include "pcclagentd/state.h"
#include "proto/shm_queue.h"
#include "proto/wire_codes.h"
#include "proto/wire_link.h"
#include "proto/wire_local.h"
#include "proto/wire_master.h"

/* Without memory for its books the agent cannot go on; everything it holds goes with it. */
#define uthash_fatal(msg) agentd_out_of_memory(msg)
__attribute__((noreturn)) void agentd_out_of_memory(const char *what);
/*
 * A call has failed, of which errno tells: the code for its callers, and "what: " with the limit
 * that this process has reached in text. call: which one a filter may have refused.
 */
uint32_t agentd_shortage(const char *what, const char *call, char *text, size_t size);
#include <utlist.h>
#include <uthash.h>

#define TICK_MS 50u
#define MS(n)   ((uint64_t)(n)*1000000u)

/* ---- objects ---- */

struct region {
	uint64_t id;
	uint32_t session; /* owner; 0: a result region */
	uint32_t use;     /* enum wl_region_use, of an owner's */
	uint32_t uid;     /* whose account is charged */
	uint64_t size;    /* mapped bytes, whole pages */
	uint64_t charged;
	uint8_t *map;
	_Atomic bool *mapped; /* see ste_region; NULL until it is synchronized */
	int fd;               /* of result regions; of others, if there are enough; else -1 */
	uint32_t refs;        /* slots and transfers that use it */
	uint32_t lent;        /* of these: only to be sent, by then perhaps to no purpose */
	bool orphan;          /* its owner is gone: goes with the last reference */
	UT_hash_handle hh;
	struct region *prev, *next; /* of the owner's list */
};

struct account { /* what one user holds */
	uint32_t uid;
	uint32_t sessions, regions;
	uint64_t bytes;
	/* What others had reserved and not touched when it was counted, and until when that holds.
	 */
	uint64_t untouched, untouched_until_ns;
	UT_hash_handle hh;
};

struct session {
	struct agentd *d;
	uint32_t id;
	int fd;
	struct process process;
	struct beat beat;
	struct cc_watch *watch, *room_watch, *pid_watch; /* watch: NULL while replies wait */
	struct outbox outbox;
	uint32_t uid;
	bool greeted, stopped;
	uint64_t opened_ns;
	char name[WL_NAME_MAX];
	struct region *regions;
	UT_hash_handle hh;
};

struct comm {
	struct agentd *d;
	uint32_t id, session, uid;
	uint32_t refs; /* the table, transfers, results that wait for its slots */
	bool closed;
	void *map; /* SHM_SIZE bytes */
	int sq_bell, data_bell;
	struct cc_watch *watch;
	bool draining;
	bool checking; /* a manifest: entries behind it wait */
	bool awaited;  /* the operand of a small operation: the submission doorbell tells */
	uint32_t head, attr_version;
	uint32_t bell_run;         /* run whose engine watches data_bell; 0: none */
	uint32_t state_run;        /* likewise, for shared state */
	struct findings *findings; /* of its last synchronization here; referenced, NULL */
	uint64_t busy;             /* slots, as bits: submitted, not completed */
	struct comm_slot {
		uint32_t gen;              /* counts submissions */
		struct region *in, *out;   /* referenced while busy */
		struct manifest *manifest; /* of a synchronization; likewise */
	} slot[SHM_SLOTS];
	UT_hash_handle hh;
};

/* One slot that takes part in a transfer. */
struct holder {
	struct comm *comm; /* referenced */
	uint32_t slot, gen;
};

/*
 * What a peer offers to a synchronization, checked. Its memory is there as long as it has users:
 * the slot, and the job until that does not use it any more; what was copied out of it as long as
 * it is referenced.
 */
struct manifest {
	struct agentd *d;
	uint32_t refs, users;
	struct region *region;
	uint32_t n_regions; /* that its tensors lie in */
	struct region **regions;
	struct shm_state state;
	uint32_t uid;
	uint64_t charged; /* for our own tables */
};

/* A job: one attempt of a synchronization as this host takes part in it. */
struct sync {
	uint64_t seq;
	uint32_t group;
	uint64_t revision;     /* elected */
	struct wm_digest keys; /* elected */
	struct run *run;
	bool started;                      /* the engine for shared state knows it */
	bool finished;                     /* and has forgotten it */
	bool done;                         /* the core was told */
	bool failed;                       /* that it did */
	bool over;                         /* nothing is expected to move */
	uint64_t moved, moved_ns, told_ns; /* progress.c, as in a transfer */
	uint32_t n_members;
	struct sync_member {
		uint32_t id;               /* of the communicator */
		struct comm *comm;         /* referenced until it is dropped; NULL */
		struct manifest *manifest; /* referenced, used until it is dropped; NULL */
		uint32_t index;   /* in the engine's job; STE_NO_MEMBER: it never was there */
		uint64_t offered; /* revision */
		bool holder, torn, synced, gone, used, dropping, told_failed;
	} * members; /* owned */
	uint32_t n_sources;
	struct sync_source {
		char host[WM_NAME_MAX];
		bool holds;
	} sources[STE_SOURCES_MAX];
	UT_hash_handle hh;
};

enum result_state { RESULT_BUSY = 1, RESULT_HELD, RESULT_IDLE };

/* A result region: BUSY while a transfer writes it, HELD while the shims still copy out of it. */
struct result {
	struct region *region;
	uint32_t run, group;
	bool abandoned; /* a session ended that may still read it: not to be reused */
	uint64_t size_class;
	enum result_state state;
	uint64_t idle_since_ns;
	uint32_t n_holders;
	uint32_t cap_members;
	struct holder *holders; /* room for cap_members, owned; and so are mappers */
	uint32_t
		n_mappers; /* communicators whose shims have it: nobody else's data may come here */
	uint32_t *mappers;
	struct result *prev, *next;
};

struct xfer {
	uint64_t seq, tag;
	uint32_t group, hosts;
	struct cc_id next, prev; /* agents, when hosts > 1 */
	char prev_name[WM_NAME_MAX];
	struct run *run;
	bool started;             /* the engine knows it */
	bool finished;            /* the engine has no thread on it any more */
	bool over;                /* done or being cancelled: nothing is expected to move */
	uint64_t moved, moved_ns; /* progress.c: as seen last, when it changed last */
	uint64_t told_ns;         /* progress.c: when its standstill was logged; 0: it was not */
	uint64_t said_ns;         /* progress.c: when the master was told of it last */
	uint64_t bytes;           /* of the operand */
	uint32_t tx_link;
	bool ahead;          /* it may be retracted, and others may mean another one */
	struct small *small; /* NULL: it is the engine's */
	struct result *result;
	UT_hash_handle hh;
	uint32_t n_members;
	struct xfer_member {
		struct holder h;
		struct region *in, *out;
	} members[]; /* as many as the core named */
};

/* What the engine has found out about a link when a transfer stood still; 0: not yet. */
struct link_health {
	uint64_t probed_ns;
	uint64_t heard_ns; /* the other host's system sent something */
	bool blocked;      /* outbound: it does not take what is there to be sent */
};

struct small;    /* small.c */
struct early;    /* small.c */
struct small_in; /* small_in.c */

struct in_link { /* streams that another agent opened to us */
	uint32_t num;
	struct run *run;
	struct cc_id peer;
	struct cc_key way;  /* what its streams are proven by, */
	uint64_t number;    /* good for this round; */
	struct cc_id nonce; /* and our part of the proof */
	struct link_health health;
	uint32_t n_streams;
	uint64_t have;          /* bit i: stream i is here */
	struct small_in *small; /* the stream for small operations; NULL: not yet */
	struct cc_addr here;    /* our end */
	struct in_link *prev, *next;
};

struct out_link; /* link.c */

struct dead_link { /* not ours any more, but a transfer still knows its number */
	uint32_t num;
	struct dead_link *next;
};

struct probe; /* probe.c */

#define RUN_KEYS 4u

struct run {
	struct agentd *d;
	uint32_t id;
	struct cc_addr addr;
	struct cc_conn *conn;    /* NULL when down */
	uint32_t attempt;        /* counts OPENs, DROPs and CLOSEs: what came before is old news */
	bool up;                 /* it has been made */
	struct cc_addr reached;  /* address at which the master was reached */
	struct cc_bounds bounds; /* as the last master has told them */
	char why[WM_TEXT_MAX];   /* more exact than what cc_conn says on closing; "" */
	bool ready;
	struct cc_id run_id;
	struct cc_seal *seal; /* of the connection; NULL: there is none */
	/* The agent's keys by its connections to the masters of this run, the last one first: the
	 * others were told of the earlier ones, too. */
	struct cc_key keys[RUN_KEYS];
	uint32_t n_keys;
	uint64_t round, wired;  /* the last one that was prepared; that was committed */
	struct caller *callers; /* hello.c: agents that opened links */
	bool closed;            /* the core has forgotten it; goes with its last transfer */
	struct eng *eng;
	int event_fd;
	struct cc_watch *event_watch;
	uint64_t looked_ns; /* the engine at its streams */
	struct in_link *in_links;
	uint32_t n_in_links;
	struct out_link *out_links;
	struct dead_link *dead_links;
	struct narrow *narrow;
	struct probe *probes;
	struct xfer *xfers;
	struct early *early; /* by seq */
	uint64_t last_seq;   /* of a transfer that was started or skipped */
	struct ste *ste;     /* NULL until somebody synchronizes */
	int state_fd;
	struct cc_watch *state_watch;
	struct sync *syncs;
	UT_hash_handle hh;
};

/* An event that came up while an action was carried out. */
struct later {
	struct agt_event ev;
	uint32_t attempt; /* of a MASTER_DOWN */
	char text[WM_TEXT_MAX];
	struct agt_sync_result *results; /* owned; their texts lie behind them */
	struct later *next;
};

struct agentd {
	struct agentd_config cfg;
	struct cc_identity *identity;
	struct cc_id id;     /* follows from it */
	uint64_t next_hello; /* numbers the hellos of links */
	struct cc_loop *loop;
	struct wm_addresses addresses; /* as the core knows them */
	uint32_t addresses_left_out;   /* more than others can be told */
	bool addresses_known;
	uint64_t addresses_ns; /* when they were found out */
	uint64_t here_ns;      /* when it was looked whether those in use are still ours */
	struct agt *core;
	struct agt_actions acts;
	bool stepping;
	struct later *later;
	struct cc_timer *tick, *extra_timer;
	uint32_t tick_ms;     /* until the next tick */
	uint32_t quiet_ticks; /* in a row with nothing under way */
	bool quiet;           /* ticks come every AGT_QUIET_TICK_MS */
	int error;
	bool stopping;
	uint64_t stop_at_ns;
	uint64_t last_session_ns; /* when the last one left */
	uint32_t looked;          /* the session whose process was looked at last; 0: all were */
	uint64_t looks_ns;        /* when that began anew */

	struct cc_listener *session_listener;
	struct session *sessions;
	uint32_t next_session;
	struct comm *comms;
	struct run *runs;
	struct region *regions;
	struct result *results;
	struct account *accounts;
	uint64_t next_region, mem_used;
	uint64_t own_used; /* of mem_used: account_charge */
	uint32_t n_regions;
	struct checks *checks;
	hsh_leaf_fn *crc32c; /* NULL: not asked for yet, or not to be had */
	struct ports *ports;
	struct names *names; /* NULL: none are advertised */
	uint32_t next_link;
	struct cc_admin *admin;

	uint64_t progress_ns; /* when progress.c looked last */
	uint64_t complain_refill_ns;
	uint32_t complain_tokens, complain_dropped;
	int complain_level; /* of the gravest that was left out */
};

/* ---- agentd.c ---- */

/* Passes ev to the core and carries out what it answers. While actions are carried out the event
 * waits its turn (its text is copied; it may then have no request, sub or msg). */
void agentd_feed(struct agentd *d, const struct agt_event *ev);
/* Somebody asks what processes do. While all is quiet they are looked at too seldom for that. */
void agentd_look(struct agentd *d);
/* One log line about what came from outside; too many of them are counted instead. */
__attribute__((format(printf, 3, 4))) void agentd_complain(
	struct agentd *d, int level, const char *fmt, ...);
/* Like strlcpy; cuts. */
void agentd_copy_text(char *dst, size_t size, const char *src);

/* ---- session.c ---- */

int session_listen(struct agentd *d);
void session_reply(
	struct agentd *d, uint32_t session, const struct wl_reply *r, const int *fds, size_t n_fds);
/* Sends an offer (wire_local_is_offer), with its descriptor, which stays the caller's. CC_ERR_*: it
 * has not been sent, which is of no consequence to the session. */
int session_offer(struct agentd *d, uint32_t session, const struct wl_reply *r, int fd);
/* Logs, says goodbye, closes. */
__attribute__((format(printf, 4, 5))) void session_drop(
	struct agentd *d, uint32_t session, uint32_t code, const char *fmt, ...);
/* Closes those whose processes are gone. */
void session_close_gone(struct agentd *d);
/* Their processes are to look for the next agent. */
void session_goodbye_all(struct agentd *d, const char *why);
void session_look(struct agentd *d); /* at all processes, whatever the time */
void session_tick(struct agentd *d, uint64_t now);
void session_free_all(struct agentd *d);

/* ---- queue.c ---- */

/* Makes the queue pair, publishes attrs in it and sends the reply with its descriptors. */
void comm_open(struct agentd *d, uint32_t session, uint32_t id, const struct wl_reply *reply,
	const struct agt_attrs *attrs);
void comm_close(struct agentd *d, uint32_t id);
struct comm *comm_find(struct agentd *d, uint32_t id);
void comm_publish(struct agentd *d, uint32_t id, const struct agt_attrs *a);
/* Never half of it, whenever this process dies. */
void comm_put_world(struct shm_slot *s, const struct wire_world *w);
void comm_complete(struct agentd *d, uint32_t id, uint32_t slot, const struct agt_done *done);
struct shm_slot *comm_slot(const struct comm *c, uint32_t slot);
/* The check of a manifest is over: the submission goes on. m, whose first user is the slot, or
 * NULL: code and text. The caller gives its reference to the communicator back. */
void comm_checked(struct agentd *d, struct comm *c, const struct shm_submission *sub,
	struct manifest *m, uint32_t code, const char *text);
/* The run's engine watches the data doorbell from now on. 0 or CC_ERR_*. */
int comm_use_engine(struct comm *c, struct run *r);
void comm_leave_engine(struct comm *c);
/* Likewise its engine for shared state, which must be there. */
int comm_use_state(struct comm *c, struct run *r);
void comm_leave_state(struct comm *c);
void comm_unref(struct comm *c);
/* Does the shim still read the results of that submission? */
bool comm_holds(const struct holder *h);
void comm_free_all(struct agentd *d);

/* ---- region.c ---- */

struct account *account_get(struct agentd *d, uint32_t uid);
void account_put(struct agentd *d, struct account *a); /* forgets it when it is empty */
/* WIRE_SUCCESS, or another code and a sentence in text[WL_TEXT_MAX]. */
uint32_t region_alloc(struct agentd *d, struct session *s, uint64_t size, enum wl_region_use use,
	struct region **ret, int *ret_fd, char *text);
/* A region of memory that the process brought along: sealed, of ordinary pages, `size` bytes. What
 * could be harmful in a descriptor is not even closed here: *fd is -1 when it has been used up. */
uint32_t region_adopt(struct agentd *d, struct session *s, int *fd, uint64_t size,
	struct region **ret, char *text);
uint32_t region_free(struct agentd *d, struct session *s, uint64_t id, char *text);
/* Memory of the agent's own that a user causes. Unlike shared memory, which may be accounted to the
 * cgroups of others, it is never more than the agent's cgroup can bear, whatever mem_total says. */
uint32_t account_charge(struct agentd *d, uint32_t uid, uint64_t bytes, char *text);
void account_discharge(struct agentd *d, uint32_t uid, uint64_t bytes);
struct region *region_find(const struct agentd *d, uint64_t id);
struct region *region_ref(struct region *r);
void region_unref(struct agentd *d, struct region *r); /* NULL is fine */
/* References that do not keep the owner from freeing it; NULL is fine. */
struct region *region_lend(struct region *r);
void region_return(struct agentd *d, struct region *r);
void region_session_closed(struct agentd *d, struct session *s);
/* A region without a session of which `bytes` are charged to uid. */
uint32_t region_new_result(struct agentd *d, uint32_t uid, uint64_t size, uint64_t bytes,
	struct region **ret, char *text);
/* Raises what is charged. */
uint32_t region_charge(struct agentd *d, struct region *r, uint64_t bytes, char *text);
/* empty: its pages are given back although shims may have them mapped. */
void region_drop_result(struct agentd *d, struct region *r, bool empty);

/* ---- result.c ---- */

/* A region of at least `need` bytes for a transfer of these members. WIRE_SUCCESS, or the code of
 * what is missing, with a sentence in text[WL_TEXT_MAX]. */
uint32_t result_take(struct agentd *d, uint32_t group, uint64_t need, const struct xfer *x,
	struct result **ret, char *text);
/* The transfer is over: the region is free again once its members' shims have read it. */
void result_give_back(struct result *res);
/* The result region with this id if the session's communicator has a part in it. */
struct result *result_find(struct agentd *d, uint32_t session, uint32_t comm, uint64_t region);
/* The communicator's shim gets the region's descriptor: remember. False: too many. */
bool result_add_mapper(struct result *res, uint32_t comm);
bool result_is_mapped(const struct result *res, uint32_t comm);
/* Hands the region over to those of the transfer's members that do not have it. What lies in a
 * shim's socket by now, it has: also if we die before it looks there. */
void result_offer(struct agentd *d, struct result *res, const struct xfer *x);
/* The communicator's shim may have given its mappings up: results that it is taken to have mapped
 * are not used again. */
void result_comm_closed(struct agentd *d, const struct comm *c);
void result_tick(struct agentd *d, uint64_t now);
void result_free_all(struct agentd *d);

/* ---- run.c ---- */

struct run *run_find(struct agentd *d, uint32_t id);
void run_open(struct agentd *d, uint32_t id, const struct cc_addr *addr);
/* Closes the connection; the run goes on without. */
void run_drop(struct agentd *d, uint32_t id);
void run_send(struct agentd *d, uint32_t id, const struct wm_msg *m);
void run_close(struct agentd *d, uint32_t id);
void run_ready(struct agentd *d, uint32_t id, const struct cc_id *run_id);
/* Has the master of this run sent who said this hello? In *ret_way the key that proves it. */
bool run_proves(const struct run *r, const struct wlk_hello *h, const uint8_t buf[WLK_HELLO_SIZE],
	struct cc_key *ret_way);
void run_free_if_done(struct run *r);
void run_tick(struct agentd *d, uint64_t now);
/* No transfer goes on when this returns; if one cannot be halted, the process ends. */
void run_halt_all(struct agentd *d);
void run_free_all(struct agentd *d);

/* ---- hello.c ---- */

/* Opens the three ports. 0 or CC_ERR_*, logged. */
int ports_open(struct agentd *d);
void ports_get(const struct agentd *d, struct agentd_stats *ret);
void ports_tick(struct agentd *d, uint64_t now);
/* The next agent can have them: nobody connects here any more. */
void ports_stop(struct agentd *d);
void ports_close(struct agentd *d);
void in_link_broken(struct run *r, struct in_link *l, const char *text);
/* The same: ev has silent, ended and text. */
void in_link_down(struct run *r, struct in_link *l, struct agt_event ev);
void in_link_free(struct run *r, struct in_link *l);
/* Connections, of all of them. */
uint32_t in_link_streams(const struct run *r);
void callers_free(struct run *r);

/* ---- link.c ---- */

void out_link_open(struct run *r, const struct wm_endpoint *to, uint32_t n_streams);
/* A connection of a probe, with segments of a size in cc_tcp_sizes: probe_reached or probe_failed
 * follows, also before this returns. */
void out_link_probe(struct run *r, struct probe *p, const struct wm_endpoint *to,
	enum wlk_service service, uint32_t segments);
void out_link_close(struct run *r, const struct cc_id *peer);
/* The number of an established link, 0 if there is none. */
uint32_t out_link_number(const struct run *r, const struct cc_id *peer);
struct out_link_view {
	uint32_t num;
	const char *host; /* its name */
	struct link_health *health;
};
/* An established link, by the agent at its end or, with peer NULL, by its number. */
bool out_link_view(
	const struct run *r, const struct cc_id *peer, uint32_t num, struct out_link_view *ret);
/* True when the link is one of ours. Of how: link, silent, stuck and text. */
bool out_link_broken(struct run *r, const struct eng_event *how);
/* Tells the core when an established link of ours falls silent, or is heard again. */
void out_link_heard(struct run *r, uint32_t num, bool silent);
/* To the stream for small operations of the link with this number, if it is there. If it takes no
 * more, the link is broken, but not at once: nothing is fed to the core meanwhile. The payload is
 * read until done is called, in any case. */
void out_link_send(struct run *r, uint32_t num, const uint8_t hdr[WLK_DATA_SIZE],
	const uint8_t *payload, size_t len,
	void (*done)(const void *payload, size_t len, void *arg), void *arg);
/* Those whose address this host has lost are broken. */
struct last_address;
void out_links_leave(struct run *r, struct last_address *last);
void out_link_tick(struct run *r, uint64_t now);
void out_link_free_all(struct run *r);
/* After a transfer went: the engine may forget links that nothing needs now. */
void dead_links_sweep(struct run *r);
uint32_t out_link_count(const struct run *r);
/* Connections of those that are up. */
uint32_t out_link_streams(const struct run *r);

/* ---- probe.c ---- */

/* Can a link be opened? Answered by AGT_EV_PROBED. */
void probe_start(struct run *r, const struct wm_probe *m);
/* The other agent has answered the hello on fd, which is the probe's now. bulk: it exchanges bytes.
 * The probe may be gone when this returns. */
void probe_reached(struct probe *p, enum wlk_service service, int fd, bool bulk);
void probe_failed(struct probe *p, uint32_t code, const char *text);
/* Sends what nobody reads and the end of the stream, on a socket that has room. */
bool probe_send_bulk(int fd);
/* Why a host is not connected to which no segments get through. */
void probe_narrow_text(char *text, size_t size);
void probe_tick(struct run *r, uint64_t now);
/* After the links. */
void probes_free(struct run *r);

/* ---- xfer.c ---- */

void xfer_start(struct run *r, const struct agt_xfer *t);
/* What other hosts send of this operation is not wanted here. */
void xfer_skip(struct run *r, uint64_t seq);
void xfer_cancel(struct run *r, uint64_t seq);
/* It was ahead: as if it had never been. */
void xfer_retract(struct run *r, uint64_t seq);
void xfer_free(struct run *r, uint64_t seq);
void xfer_event(struct run *r, const struct eng_event *ev);
/* Cancels all, waits for the engine's threads to let go (at most a second) and frees them. False:
 * the engine still uses their memory. */
bool xfer_free_all(struct run *r);

/* ---- small.c ---- */

/* For x, whose members are there; copies the spec. NULL: no memory. */
struct small *small_new(const struct xfer *x, const struct eng_xfer_spec *spec);
void small_free(struct small *s); /* NULL is fine */
/* With what was there before it began. */
void small_begin(struct xfer *x);
/* As far as it goes with the operands that are there. */
void small_go_on(struct xfer *x);
/* All of them, with operands that were not there before. */
void small_fed(struct agentd *d);
void small_progress(const struct small *s, struct eng_progress *ret);
/* NULL, or why this cannot be meant for x. grave: nobody sends that who means another operation. */
const char *small_objection(
	const struct xfer *x, const struct wlk_data *d, const struct cc_id *from, bool *ret_grave);
/* Where the operand of the host at this position belongs, until x is over. */
uint8_t *small_place(const struct xfer *x, uint32_t pos);
/* So many bytes of it are there. */
void small_got(const struct xfer *x, uint32_t pos, uint32_t bytes);
/* It is all there. */
void small_arrived(struct xfer *x, const struct wlk_data *d);
/* An operation, small or not, has been started or will never be: what came of it early is wanted
 * now, or not at all. */
void small_started(struct run *r, uint64_t seq);
/* An operation on so many hosts may begin elsewhere before it does here: what comes of it from the
 * agent before this one is kept, for small_new or until small_forget. */
void small_expect(struct run *r, uint64_t seq, uint32_t hosts, const struct cc_id *prev);
void small_forget(struct run *r, uint64_t seq);
void small_forget_all(struct run *r);
/* NULL, or why what d announces cannot be kept: it comes from somebody else, or is there. */
const char *small_early_objection(
	struct run *r, const struct wlk_data *d, const struct cc_id *from);
/* Where what d announces is to be kept, until its operation begins. NULL: nowhere. */
uint8_t *small_early_place(struct run *r, const struct wlk_data *d);
/* So many bytes of it are there. */
void small_early_got(struct run *r, const struct wlk_data *d, uint32_t bytes);

/* ---- small_in.c ---- */

/* The stream for small operations; owns fd from now on, also on failure. 0 or CC_ERR_*. */
int small_in_add(struct in_link *l, int fd);
void small_in_free(struct small_in *in); /* NULL is fine */
/* What it waits for may be there. */
void small_in_look(struct small_in *in);

/* ---- progress.c ---- */

struct progress {
	struct eng_progress eng;
	uint64_t stalled_ns;     /* since the last progress */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s; ..."; "" while it moves */
};
/* False: the transfer is not running in the engine. */
bool progress_get(const struct run *r, uint64_t seq, uint64_t now, struct progress *ret);
/* The engine's answer about a link. */
void progress_heard(struct run *r, const struct eng_event *e);
/* It has come further, or to its end. */
void progress_moved(struct xfer *x, uint64_t now);
void progress_sync_moved(struct sync *x, uint64_t now);
/* For how long it has stood still, ns, and what it waits for, in waits[WM_TEXT_MAX]; 0 and "" while
 * it moves, or when it is over. */
uint64_t progress_sync(
	const struct sync *x, const struct ste_progress *p, uint64_t now, char *waits);
void progress_tick(struct agentd *d, uint64_t now);

/* ---- manifest.c ---- */

int checks_open(struct agentd *d);
/* Holds the manifest at the beginning of `region` against its submission, at once or, if it is
 * large, in a thread; comm_checked follows, also before this returns. References c. */
void manifest_check(
	struct agentd *d, struct comm *c, const struct shm_submission *sub, struct region *region);
/* Waits for threads; nothing follows from them. */
void checks_free(struct agentd *d);
struct manifest *manifest_use(struct manifest *m); /* one more user, and reference */
void manifest_leave(struct manifest *m);           /* not used any more, still referenced */
void manifest_unref(struct manifest *m);
/* Tells the process whether this one is at work on it or waits for others, should it die. */
void manifest_at_work(const struct manifest *m, bool at_work);
/* NULL and a sentence in text[WL_TEXT_MAX]. */
hsh_leaf_fn *manifest_leaf_fn(struct agentd *d, uint32_t hash_type, char *text);

/* ---- sync.c ---- */

/* Makes the run's engine for shared state if there is none. 0 or CC_ERR_*. */
int sync_engine(struct run *r);
void sync_start(struct run *r, const struct agt_sync *t);
void sync_drop(struct run *r, uint64_t seq, uint32_t comm);
void sync_cancel(struct run *r, uint64_t seq);
void sync_free(struct run *r, uint64_t seq);
/* Memory of another peer that a peer of the same user may copy from: both are in a job, and the
 * other one has what was elected. Or NULL. */
struct region *sync_shown(struct agentd *d, const struct comm *c, uint64_t region);
/* Ends the engine for shared state and forgets its jobs. No thread uses their memory then. */
void sync_free_all(struct run *r);

/* A job of shared state, for people. */
struct sync_view {
	enum ste_phase phase;
	const char *state;    /* static: "starts", "compares", "copies", "serves", "failed" */
	uint64_t bytes, done; /* that differ, as far as is known, and of these written: over all
			       * receivers of this host */
	uint64_t rate;        /* bytes per second, recently; 0: nothing moves; STE_UNMEASURED */
	uint64_t left_ns;     /* at that rate; SYNC_LEFT_UNKNOWN: nothing moves, or not all that
			       * differs is known */
	uint64_t net_rx_bytes, net_tx_bytes;        /* on sockets, with headers */
	uint64_t tx_bytes, rx_bytes;                /* of the members' tensors, for and by others */
	uint32_t holders, receivers, failed;        /* members */
	uint32_t sources, sources_up, sources_lost; /* other agents: all, with streams, given up */
	uint64_t stalled_ns;     /* since the last progress; 0 when nothing is expected to move */
	char waits[WM_TEXT_MAX]; /* "waits for data from b for 3.1 s"; "" while it moves */
};
#define SYNC_LEFT_UNKNOWN UINT64_MAX
/* False: no such job here (any more). */
struct sync *sync_find(const struct run *r, uint64_t seq); /* NULL: there is none */
bool sync_get_view(const struct run *r, uint64_t seq, uint64_t now, struct sync_view *ret);
struct sync_source_view {
	char host[WM_NAME_MAX];
	bool holds, up, lost, not_begun;
	uint64_t bytes;         /* payload that came from it */
	char text[WM_TEXT_MAX]; /* lost: why */
};
/* False: it has no source i. */
bool sync_get_source(const struct run *r, uint64_t seq, uint32_t i, struct sync_source_view *ret);
/* False: there is no such job, or the communicator is no member of it (any more). */
bool sync_get_member(const struct run *r, uint64_t seq, uint32_t comm, struct ste_member_view *ret);

/* ---- admin.c ---- */

int admin_listen(struct agentd *d);

/* ---- admin_state.c ---- */

struct wa_reply;
void admin_state(struct agentd *d, uint64_t now, struct wa_reply *reply);

#endif
