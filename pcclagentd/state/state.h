/* SPDX-License-Identifier: MIT
 *
 * The transfer of shared state, of one run: gets what the receivers on this host lack, from holders
 * on this host or from other agents, and serves other agents. A *job* is one attempt of a
 * synchronization (group, sequence number) as this host takes part in it.
 *
 * One thread does the work and owns all sockets, with some beside it that only copy. They exist
 * while there is something to do; jobs and
 * accepted streams reach it through a single-producer single-consumer ring, what comes of them
 * comes back through another, with an eventfd. It neither calls the loop nor waits for it.
 *
 * What is transferred: of tensors whose hash differs from the elected one (SHM_STATE_MAY_DIFFER
 * ones never), the leaves whose hashes differ. Each crosses the network once for all receivers of
 * this host, and not at all if there is a holder here. Tensor hashes are held against the elected
 * digest, leaf hashes against tensor hashes, and every leaf, where it has been put, against its
 * hash; what was found right is served to other agents at once. A source that is lost, silent or
 * wrong is replaced by others, and if only some of its members are wrong, it is asked for what the
 * rest has; a job fails when nobody is left who has what was elected.
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

#define STE_MEMBERS_MAX 1024 /* of one job */
#define STE_SOURCES_MAX 32
#define STE_ADDRS_MAX   65
#define STE_JOBS_MAX    256
#define STE_CONNS_MAX   256 /* accepted streams */
#define STE_STREAMS     4   /* default of ste_config.streams */
#define STE_NAME_MAX    64
#define STE_TEXT_MAX    384
/* Bounds of streams, of which the master's (cc_bounds.h) are told; see pccl(7). An answer may take
 * longer than a link is silent, for its source may read it from a process. */
#define STE_ANSWERS  2u    /* times CC_BOUND_STREAM: between the ends of two answers that are due */
#define STE_STALLS   3u    /* likewise: who takes nothing of an answer */
#define STE_UNASKED  6u    /* likewise: who asks nothing */
#define STE_IDLE_MS  10000 /* default of ste_config.idle_ms */
#define STE_POOL_MAX 7     /* threads that copy */
#define STE_MAPPED   65536u /* bytes */
#define STE_NO_POOL  UINT32_MAX

struct ste_config {
	struct cc_id run, self; /* for the hello */
	uint32_t idle_ms;       /* 0: STE_IDLE_MS; then the thread ends */
	uint32_t streams;       /* of one job, if its sources are fewer; 1 .. 16 */
	uint32_t hashes;        /* asked for at once; 0: WST_HASHES_MAX */
	uint32_t pool;          /* threads that copy; 0: as many as there are processors
				 * besides one, STE_POOL_MAX at most; STE_NO_POOL */
};

/* event_fd (owned by the caller) is written when ste_next_event has something. NULL + errno. */
struct ste *ste_new(const struct ste_config *cfg, int event_fd);
/* Stops the thread, closes all streams. Jobs that are still there are dropped without events. */
void ste_free(struct ste *e);

/* Watches a communicator's data doorbell (edge-triggered, never read, stays owned by the caller,
 * who removes it before closing it): by it come the acknowledgements of commands. 0 or CC_ERR_*. */
int ste_bell_add(struct ste *e, int fd);
void ste_bell_remove(struct ste *e, int fd);

/* As the master has told; until then the usual ones. */
void ste_set_bounds(struct ste *e, const struct cc_bounds *b);

/* Is there room for another stream? */
bool ste_has_room(const struct ste *e);
/* A stream that was accepted on the shared-state port, after its hello and our answer, which have
 * agreed on these features (wire_link.h), and allow for requests of this attempt. The engine owns
 * fd from now on (also on failure). 0 or CC_ERR_*. */
int ste_add_stream(struct ste *e, int fd, uint64_t features, uint64_t seq);

/* To be called about every second: ends the thread when it has been idle for long enough. */
void ste_tick(struct ste *e);

struct ste_region {
	uint64_t id;
	uint8_t *map;
	uint64_t size; /* bytes */
	int fd;        /* of its memory; stays the caller's. -1: others cannot map it */
	/* Of each STE_MAPPED bytes: their pages are mapped here, or about to be. The caller's,
	 * false at first. */
	_Atomic bool *mapped;
};

struct ste_member {
	bool holder;                      /* it said that it has what was elected */
	bool receive_only;                /* nobody is sent bytes of its tensors */
	uint32_t uid;                     /* whose process it is */
	uint8_t *map;                     /* the region of its manifest */
	uint64_t region;                  /* its number, if others can map it; or 0 */
	const struct shm_state *state;    /* of that manifest */
	struct shm_slot *slot;            /* in its queue pair: futex word and in_want */
	const struct ste_region *regions; /* that its tensors lie in, in any order */
	uint32_t n_regions;
};

struct ste_source {
	struct cc_id agent;
	struct cc_key key;       /* see base/handshake.h */
	char name[STE_NAME_MAX]; /* of its host */
	bool holds;              /* it has holders; else receivers alone, which may have some */
	uint32_t segments; /* at most as large as links there have: of cc_tcp_sizes, CC_TCP_SIZES:
			    * none of them passed */
	uint32_t n_addrs;  /* in the order to try, with the shared-state port */
	struct cc_addr addrs[STE_ADDRS_MAX];
};

struct ste_spec {
	uint64_t seq;
	uint32_t group;
	uint64_t revision; /* elected */
	struct wm_digest content;
	hsh_leaf_fn *leaf;  /* of the elected hash type */
	uint32_t n_members; /* 1 .. STE_MEMBERS_MAX */
	const struct ste_member *members;
	uint32_t n_sources; /* at most STE_SOURCES_MAX, holders first */
	const struct ste_source *sources;
};

/*
 * Mappings, manifests and slots that the spec names must stay until STE_CANCELLED has been taken;
 * the spec's arrays are copied. 0, CC_ERR_NOMEM, CC_ERR_LIMIT, CC_ERR_EXIST, CC_ERR_IO (no thread).
 */
int ste_start(struct ste *e, const struct ste_spec *spec);
/* Ends a job whatever has come of it, also one that is done and serves others. STE_CANCELLED
 * follows. */
void ste_cancel(struct ste *e, uint64_t seq);
/* This member is out, whatever has come of it, and the job goes on for the others. Once it is said
 * to be dropped (STE_MEMBERS, ste_member_view) nothing of its memory is used any more, but for its
 * shm_state, which must stay as long as the job. */
void ste_drop(struct ste *e, uint64_t seq, uint32_t member);

enum ste_event_type {
	/* All receivers have everything, verified, but for those that failed (ste_get_member).
	 * Their manifests say so, see shm_state_end. The job goes on serving others. */
	STE_DONE = 1,
	STE_FAILED,    /* text, suspect. Receivers' tensors may have been written in part */
	STE_MEMBERS,   /* some have failed, or were dropped, since the last event: at any time */
	STE_CANCELLED, /* the thread does not use its memory any more; the job is forgotten when
			* the next event is asked for */
};

struct ste_event {
	enum ste_event_type type;
	uint64_t seq;
	struct cc_id suspect; /* agent that seems at fault, or zero */
	bool exhausted;       /* failed: an agent has reached a limit, which text names */
	char text[STE_TEXT_MAX];
};

/* True and *ret filled while there are events. */
bool ste_next_event(struct ste *e, struct ste_event *ret);

struct ste_member_view {
	bool complete; /* it has all that was elected */
	bool failed;   /* it takes no part any more: not to be trusted, or not to be helped */
	bool dropped;  /* its memory is not used any more */
	uint64_t tx_bytes, rx_bytes; /* read from, and written into, its tensors for others */
	uint64_t bytes;              /* of it that differ, as far as known: to be rx_bytes */
	char text[STE_TEXT_MAX];     /* failed: why */
};
/* False: no such job or member. */
bool ste_get_member(struct ste *e, uint64_t seq, uint32_t member, struct ste_member_view *ret);

struct ste_source_view {
	bool up;                 /* there are streams to it */
	bool lost;               /* given up */
	bool not_begun;          /* answers, but has nothing yet */
	uint64_t bytes;          /* payload that came from it and was right */
	char text[STE_TEXT_MAX]; /* lost: why */
};
bool ste_get_source(struct ste *e, uint64_t seq, uint32_t source, struct ste_source_view *ret);

enum ste_phase {
	STE_STARTS = 0,
	STE_COMPARES, /* gets hashes, and what is known to differ */
	STE_COPIES,   /* all that differs is known */
	STE_SERVES,   /* all receivers here are done */
	STE_FAILS,
};

struct ste_progress {
	enum ste_phase phase;
	uint64_t bytes, done; /* that differ, as far as known, and of these written; over all
			       * receivers of this host */
	uint64_t rate;        /* bytes per second, recently; 0: nothing moves; STE_UNMEASURED */
	uint64_t net_rx_bytes, net_tx_bytes; /* on sockets, with headers */
	uint64_t moved;     /* changes with any progress: the same later on means a standstill */
	uint32_t sources;   /* with streams that are up */
	uint32_t waits_for; /* member whose process has not carried out a command for a second, or
			     * STE_NO_MEMBER */
};
#define STE_NO_MEMBER  UINT32_MAX
#define STE_UNMEASURED UINT64_MAX
bool ste_get_progress(struct ste *e, uint64_t seq, struct ste_progress *ret);

/* What a job has found: as far as it is known by now, and until the event after its STE_CANCELLED
 * is asked for. */

struct ste_diff {
	uint32_t tensor;
	uint64_t leaves, of; /* that differed, and in all; both 0 if that is not known (yet) */
	uint64_t bytes;      /* of these leaves, */
	uint64_t done;       /* and of these what it has got, verified */
};
/* The first tensor of the member from `from` on that differed from what was elected. False: none,
 * or no such job or member. */
bool ste_next_diff(
	struct ste *e, uint64_t seq, uint32_t member, uint32_t from, struct ste_diff *ret);
/* To be asked for when its STE_CANCELLED has been taken. The elected hashes of all tensors in the
 * order of the table; NULL: no such job, or it has not heard of them. Those of tensors that may
 * differ mean nothing. */
const uint64_t *ste_get_hashes(struct ste *e, uint64_t seq);

/* For tests and pcclctl: is there a thread? */
bool ste_is_running(const struct ste *e);
/* Blocks that were copied by threads of the pool or for them. */
uint64_t ste_copied(const struct ste *e);

#endif
