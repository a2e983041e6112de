/* SPDX-License-Identifier: MIT
 *
 * Transfers the shared state of one run. The engine gets the leaves that the receivers on this host
 * lack from holders on this host or from other agents, and it serves other agents. A *job* is the
 * work of this host for one attempt of a synchronization (group, sequence number).
 *
 * One thread does the work and owns all sockets. A worker pool helps this thread to copy. All these
 * threads exist only while there is work. Jobs and accepted streams reach the thread through a
 * single-producer single-consumer ring. Its results come back through a second ring and an eventfd.
 * The thread neither calls the event loop nor waits for it.
 *
 * The engine transfers only leaves whose hash differs from the elected hash. Tensors with
 * SHM_STATE_MAY_DIFFER are never transferred. A leaf crosses the network once for all receivers of
 * this host, and not at all if this host has a holder. The engine checks tensor hashes against the
 * elected digest, leaf hashes against the tensor hash, and each leaf against its hash after it was
 * written to its destination. A leaf that has passed is served to other agents at once. A source
 * that is lost, silent or wrong is replaced by other sources. If only some members of a source are
 * wrong, the source is asked for the data of its other members. A job fails when no peer that has
 * the elected state is left.
 *
 * All functions are called by the loop thread. The process ignores SIGPIPE.
 */
#ifndef STATE_H
#define STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_bounds.h"
#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "kernels/hsh.h"
#include "proto/shm_state.h"

struct ste;

#define STE_MEMBERS_MAX 1024 /* members of one job */
#define STE_SOURCES_MAX 32
#define STE_ADDRS_MAX   65
#define STE_JOBS_MAX    256
#define STE_CONNS_MAX   256 /* accepted streams */
#define STE_STREAMS     4   /* default of ste_config.streams */
#define STE_NAME_MAX    64
#define STE_TEXT_MAX    384
/* The longest waits on a stream, as multiples of CC_BOUND_STREAM, which the master sends
 * (cc_bounds.h, pccl(7)). An answer may take longer than a link may be silent, because the source
 * may have to read the data from a process. */
#define STE_ANSWERS  2u     /* longest time from the end of an answer to the end of the next one */
#define STE_STALLS   3u     /* longest wait for the other agent to take bytes of an answer */
#define STE_UNASKED  6u     /* longest wait for the other agent to send a request */
#define STE_IDLE_MS  10000  /* default of ste_config.idle_ms */
#define STE_POOL_MAX 7      /* threads that copy */
#define STE_MAPPED   65536u /* bytes for each flag of ste_region.mapped */
#define STE_NO_POOL  UINT32_MAX

struct ste_config {
	struct cc_id run, self; /* ids for the hello */
	uint32_t idle_ms;       /* the thread ends after this idle time; 0: STE_IDLE_MS */
	uint32_t streams;       /* streams of one job that has fewer sources than this; 1 .. 16 */
	uint32_t hashes;        /* the most hashes of one request; 0: WST_HASHES_MAX */
	/* Threads that copy. 0: one less than there are processors, at most STE_POOL_MAX.
	 * STE_NO_POOL: none. */
	uint32_t pool;
};

/* Creates an engine without a thread. The engine writes to `event_fd`, which the caller owns, when
 * ste_next_event has an event. NULL + errno. */
struct ste *ste_new(const struct ste_config *cfg, int event_fd);
/* Stops the thread, closes all streams and drops the remaining jobs without events. */
void ste_free(struct ste *e);

/* Watches the data doorbell of a communicator: a process rings it when it has acknowledged a
 * command. The doorbell is watched edge-triggered and never read. The caller keeps owning `fd` and
 * removes it before closing it. 0 or CC_ERR_*. */
int ste_bell_add(struct ste *e, int fd);
void ste_bell_remove(struct ste *e, int fd);

/* Sets the bounds that the master has sent. Before the first call the default bounds apply. */
void ste_set_bounds(struct ste *e, const struct cc_bounds *b);

/* Is there room for another stream? */
bool ste_has_room(const struct ste *e);
/* Takes over a stream that was accepted on the shared-state port. The hello and its answer have
 * already been exchanged. The two agents have agreed on `features` (wire_link.h), and the stream
 * may request data of the attempt `seq`. The engine owns `fd` from now on, also if the call fails.
 * 0 or CC_ERR_*. */
int ste_add_stream(struct ste *e, int fd, uint64_t features, uint64_t seq);

/* To be called about every second: ends the thread when it has been idle for long enough. */
void ste_tick(struct ste *e);

struct ste_region {
	uint64_t id;
	uint8_t *map;
	uint64_t size; /* bytes */
	int fd;        /* the memory, owned by the caller; -1: other processes cannot map it */
	/* A flag for each STE_MAPPED bytes: their pages are mapped in the agent, or a thread is
	 * about to map them. The caller owns the array and sets all flags to false at first. */
	_Atomic bool *mapped;
};

struct ste_member {
	bool holder;                      /* its candidate was elected */
	bool receive_only;                /* its tensors are sent to nobody */
	uint32_t uid;                     /* user of the process */
	uint8_t *map;                     /* the region of its manifest */
	uint64_t region;                  /* id of that region; 0: other processes cannot map it */
	const struct shm_state *state;    /* the agent's checked copy of the manifest */
	struct shm_slot *slot;            /* in its queue pair: futex word and in_want */
	const struct ste_region *regions; /* registered memory of its tensors, in any order */
	uint32_t n_regions;
};

struct ste_source {
	struct cc_id agent;
	struct cc_key key;       /* see base/handshake.h */
	char name[STE_NAME_MAX]; /* name of its host */
	bool holds; /* it has holders; if not, it has only receivers, which may have some leaves */
	/* The segment size of the links to the source, an index of cc_tcp_sizes. Streams use no
	 * larger segments. CC_TCP_SIZES: segments of no size have passed. */
	uint32_t segments;
	uint32_t n_addrs;
	struct cc_addr addrs[STE_ADDRS_MAX]; /* have the shared-state port; best one first */
};

struct ste_spec {
	uint64_t seq;
	uint32_t group;
	uint64_t revision; /* elected */
	struct wm_digest content;
	hsh_leaf_fn *leaf;  /* function of the elected hash type */
	uint32_t n_members; /* 1 .. STE_MEMBERS_MAX */
	const struct ste_member *members;
	uint32_t n_sources; /* at most STE_SOURCES_MAX, holders first */
	const struct ste_source *sources;
};

/*
 * Starts a job. The mappings, manifests and slots in `spec` must stay valid until the caller has
 * taken the event STE_CANCELLED. The arrays of `spec` are copied. 0, CC_ERR_NOMEM, CC_ERR_LIMIT,
 * CC_ERR_EXIST, CC_ERR_IO (the thread could not be started).
 */
int ste_start(struct ste *e, const struct ste_spec *spec);
/* Ends a job in any state, also a job that is done and serves other agents. The event STE_CANCELLED
 * follows. */
void ste_cancel(struct ste *e, uint64_t seq);
/* Removes a member in any state from a job, and the job goes on for the other members. When the
 * member is reported as dropped (STE_MEMBERS, ste_member_view), the engine no longer uses its
 * memory, except its shm_state, which must stay valid as long as the job. */
void ste_drop(struct ste *e, uint64_t seq, uint32_t member);

enum ste_event_type {
	/* All receivers that have not failed (ste_get_member) have the elected contents, and these
	 * are verified. The manifests of these receivers say so too, see shm_state_end. The job
	 * goes on and serves other agents. */
	STE_DONE = 1,
	/* See `text` and `suspect`. Tensors of receivers may have been written in part. */
	STE_FAILED,
	/* Members have failed or were dropped since the last STE_MEMBERS. May come at any time. */
	STE_MEMBERS,
	/* The thread no longer uses the job's memory. The job is freed when the next event is
	 * requested. */
	STE_CANCELLED,
};

struct ste_event {
	enum ste_event_type type;
	uint64_t seq;
	struct cc_id suspect; /* agent that probably caused the failure, or zero */
	bool exhausted;       /* STE_FAILED: an agent has reached a limit, which `text` names */
	char text[STE_TEXT_MAX];
};

/* Takes the next event into `ret`. Returns false if there is no event. */
bool ste_next_event(struct ste *e, struct ste_event *ret);

struct ste_member_view {
	bool complete; /* it has the elected contents */
	bool failed;   /* it no longer takes part, for the reason in `text` */
	bool dropped;  /* its memory is no longer used */
	/* Bytes read from its tensors for receivers, and written into its tensors. */
	uint64_t tx_bytes, rx_bytes;
	uint64_t bytes;          /* bytes that differ, as far as known: rx_bytes at the end */
	char text[STE_TEXT_MAX]; /* if `failed`: the reason */
};
/* Returns false if there is no such job or member. */
bool ste_get_member(struct ste *e, uint64_t seq, uint32_t member, struct ste_member_view *ret);

struct ste_source_view {
	bool up;                 /* streams to it are open */
	bool lost;               /* the job has given it up */
	bool not_begun;          /* it answers that it has no data yet */
	uint64_t bytes;          /* payload that it has sent and that was right */
	char text[STE_TEXT_MAX]; /* if `lost`: the reason */
};
/* Returns false if there is no such job or source. */
bool ste_get_source(struct ste *e, uint64_t seq, uint32_t source, struct ste_source_view *ret);

enum ste_phase {
	STE_STARTS = 0,
	STE_COMPARES, /* gets hashes, and leaves that are known to differ */
	STE_COPIES,   /* gets leaves; all leaves that differ are known */
	STE_SERVES,   /* all receivers of this host are complete */
	STE_FAILS,
};

struct ste_progress {
	enum ste_phase phase;
	/* Bytes that differ, as far as known, over all receivers of this host; the part of these
	 * bytes that is already written. */
	uint64_t bytes, done;
	uint64_t rate; /* bytes per second, recently; 0: nothing moves; STE_UNMEASURED */
	uint64_t net_rx_bytes, net_tx_bytes; /* on sockets, with headers */
	uint64_t moved;   /* changes with any progress; an equal value later means a standstill */
	uint32_t sources; /* sources that have open streams */
	/* A member whose process has not carried out a command for a second, or STE_NO_MEMBER. */
	uint32_t waits_for;
};
#define STE_NO_MEMBER  UINT32_MAX
#define STE_UNMEASURED UINT64_MAX
bool ste_get_progress(struct ste *e, uint64_t seq, struct ste_progress *ret);

/* The differences that a job has found so far. They can be read until the caller requests the next
 * event after STE_CANCELLED. */

struct ste_diff {
	uint32_t tensor;
	/* Leaves that differed, and all leaves of the tensor. Both are 0 while unknown. */
	uint64_t leaves, of;
	uint64_t bytes; /* bytes of the leaves that differed */
	uint64_t done;  /* part of `bytes` that is already written and verified */
};
/* Finds the first tensor with a number of at least `from` in which the member differed from the
 * elected state. Returns false if there is no such tensor, job or member. */
bool ste_next_diff(
	struct ste *e, uint64_t seq, uint32_t member, uint32_t from, struct ste_diff *ret);
/* Returns the elected hashes of all tensors, in the order of the table. Can be called between the
 * job's STE_CANCELLED and the next event. Returns NULL if there is no such job, or if it has not
 * received the hashes. The hashes of tensors that may differ are meaningless. */
const uint64_t *ste_get_hashes(struct ste *e, uint64_t seq);

/* For tests and pcclctl: does the thread exist? */
bool ste_is_running(const struct ste *e);
/* For tests: returns how many blocks were copied as tasks of the worker pool. */
uint64_t ste_copied(const struct ste *e);

#endif
