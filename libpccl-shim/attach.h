/* SPDX-License-Identifier: MIT
 *
 * An attachment: what a communicator has at one agent, from WL_COMM_CREATE or WL_COMM_ATTACH to the
 * end of the session. The queue pair, its doorbells, and the memory that is kept between
 * operations: staging regions and mappings of result regions.
 *
 * When the agent dies the communicator gets another attachment, while operations may still be in
 * the old one's slots, whose memory tells what became of them. So each operation holds a reference
 * to the attachment it was launched on, and uses nothing else; the communicator holds one to the
 * latest; the last reference frees it all.
 *
 * The lock guards tail, staging and results, is held for moments only, and is taken after a
 * communicator's. Slots belong to the operation in them.
 */
#ifndef PCCL_SHIM_ATTACH_H
#define PCCL_SHIM_ATTACH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "libpccl-shim/fork.h"
#include "libpccl-shim/map.h"
#include "libpccl-shim/thread.h"
#include "proto/shm_queue.h"

struct pccl_session;

/* A staging region; kept for later operations when it is not busy. size 0: an empty place. */
struct pccl_staging {
	struct pccl_map map;
	bool busy;
};

/* A result region of the agent, mapped; kept while it is likely to be used again. */
struct pccl_result {
	struct pccl_map map;
	uint32_t users;
	uint64_t last_use_ns;
};

struct pccl_attachment {
	_Atomic uint32_t refs;
	struct pccl_session *session;
	uint32_t id;    /* of the communicator in the session */
	uint8_t *queue; /* SHM_SIZE bytes */
	struct pccl_fork_fd submit_bell, data_bell;
	_Atomic uint32_t closing; /* pccl_session_await */
	struct pccl_map state;    /* the manifest of shared state, the main thread's (state.h); base
				   * NULL: none */

	pthread_mutex_t lock;
	uint32_t tail; /* entries submitted */
	struct pccl_staging staging[SHM_SLOTS];
	struct pccl_result results[SHM_SLOTS];
};

/* From an answer with these three descriptors, which it takes, whatever is returned. */
pcclResult_t pccl_attachment_new(
	struct pccl_session *s, uint32_t id, const int fds[3], struct pccl_attachment **ret);
struct pccl_attachment *pccl_attachment_ref(struct pccl_attachment *a);
void pccl_attachment_unref(struct pccl_attachment *a); /* NULL is fine */

/* Tells the agent that it has no more use for the communicator; all its operations end. why: what
 * the other peers are told, or "". An agent that stands still does it when it goes on. */
void pccl_attachment_close(struct pccl_attachment *a, const char *why);
/* Likewise, in peace: the agent is to wait until the master has taken the leave. */
void pccl_attachment_leave(struct pccl_attachment *a);
/* Of one that was closed: until the agent has done so, and touches no memory for it any more, or
 * its session has ended. */
void pccl_attachment_await_closed(struct pccl_attachment *a);
/* Of one that has left: until the master has taken it; not for long. */
void pccl_attachment_await_left(struct pccl_attachment *a);

static inline struct shm_sq *pccl_attachment_sq(const struct pccl_attachment *a)
{
	return (struct shm_sq *)(void *)(a->queue + SHM_SQ_OFF);
}

static inline struct shm_attr *pccl_attachment_attr(const struct pccl_attachment *a)
{
	return (struct shm_attr *)(void *)(a->queue + SHM_ATTR_OFF);
}

static inline struct shm_slot *pccl_attachment_slot(const struct pccl_attachment *a, uint32_t i)
{
	return (struct shm_slot *)(void *)(a->queue + SHM_SLOT_OFF) + i;
}

/* Plain words that the agent wrote: read once, whatever it does to them meanwhile. */
static inline uint32_t pccl_read32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint64_t pccl_read64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* What the agent knew of the run, for the next one; 0: nothing. */
struct pccl_known {
	uint64_t epoch, ring_epoch; /* of the last commit, the last round that was committed, and */
	uint64_t prepared;          /* the last one that the peer was ready for */
	uint64_t view_id, generation; /* of the view; of the group as of then, and */
	uint32_t global, world_size;  /* the sizes of both */
};

/* The state as the agent last wrote it, whole. */
struct pccl_attrs {
	uint32_t state; /* enum shm_comm_state */
	uint32_t hosts, pos;
	uint32_t code;
	char text[SHM_TEXT];
	struct cc_addr at; /* where the master is; family 0: no word of it, or half of one */
	struct pccl_known known;
};

void pccl_attachment_attrs(const struct pccl_attachment *a, struct pccl_attrs *ret);

/* ---- staging regions and result regions, which the attachment keeps (staging.c); any thread */

/* A region of at least size bytes, from those kept or from the agent; the caller's to use until
 * pccl_staging_put. Nothing is allocated when the sizes have been seen before. Errors as with
 * pccl_region_alloc; *ret is of no use then. */
pcclResult_t pccl_staging_get(struct pccl_attachment *a, uint64_t size, struct pccl_staging **ret);
void pccl_staging_put(struct pccl_attachment *a, struct pccl_staging *s); /* NULL is fine */
/* Gives what is not in use back to the agent. */
void pccl_staging_trim(struct pccl_attachment *a);
/* The mapping of a result region, from those kept or from the agent; a use of it, until
 * pccl_result_put. Errors as with pccl_region_named; *ret is NULL then. */
pcclResult_t pccl_result_get(struct pccl_attachment *a, uint64_t region, struct pccl_result **ret);
/* The same, but only from those kept or handed over: NULL if it is not mapped. */
struct pccl_result *pccl_result_find(struct pccl_attachment *a, uint64_t region);
void pccl_result_put(struct pccl_attachment *a, struct pccl_result *r); /* NULL is fine */
/* Everything; with a session that is alive it is given back to the agent. */
void pccl_staging_free_all(struct pccl_attachment *a);
void pccl_result_free_all(struct pccl_attachment *a);

#endif
