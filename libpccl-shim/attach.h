/* SPDX-License-Identifier: MIT
 *
 * An attachment: the resources of a communicator at one agent, from WL_COMM_CREATE or
 * WL_COMM_ATTACH to the end of the session. It has the queue pair, the doorbells, and memory that
 * is kept between operations: staging regions and mappings of result regions.
 *
 * When the agent dies, the communicator gets another attachment. Operations may still be in the
 * slots of the old attachment, and the memory of these slots shows how they ended. So each
 * operation holds a reference to the attachment on which it was launched, and uses no other. The
 * communicator holds a reference to the latest attachment. The last reference frees the attachment.
 *
 * The lock guards tail, staging and results. It is held for moments only and is taken after a
 * communicator's lock. A slot needs no lock, because only the operation in the slot uses it.
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

/* A staging region; kept for later operations when it is not busy. If map.size is 0, this entry is
 * empty. */
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
	uint32_t id;    /* the communicator's id in the session */
	uint8_t *queue; /* SHM_SIZE bytes */
	struct pccl_fork_fd submit_bell, data_bell;
	_Atomic uint32_t closing; /* the number for pccl_session_await, or 0 */
	/* The manifest of shared state; only the main thread uses it (state.h). base is NULL if
	 * there is none. */
	struct pccl_map state;

	pthread_mutex_t lock;
	uint32_t tail; /* entries submitted so far */
	struct pccl_staging staging[SHM_SLOTS];
	struct pccl_result results[SHM_SLOTS];
};

/* Creates an attachment from an agent's answer. Takes the three descriptors of the answer, even if
 * it fails. */
pcclResult_t pccl_attachment_new(
	struct pccl_session *s, uint32_t id, const int fds[3], struct pccl_attachment **ret);
struct pccl_attachment *pccl_attachment_ref(struct pccl_attachment *a);
void pccl_attachment_unref(struct pccl_attachment *a); /* NULL is fine */

/* Asks the agent to close the communicator; all its operations end. `why` is a sentence for the
 * other peers, or "". An agent that is stopped closes the communicator when the agent runs again.
 */
void pccl_attachment_close(struct pccl_attachment *a, const char *why);
/* Asks the agent to close the communicator, but only after the master has accepted the leave. */
void pccl_attachment_leave(struct pccl_attachment *a);
/* After pccl_attachment_close: waits until the agent has closed the communicator and no longer uses
 * its memory, or until the session has ended. */
void pccl_attachment_await_closed(struct pccl_attachment *a);
/* After pccl_attachment_leave: waits until the master has accepted the leave, for two seconds at
 * most. */
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

/* Return a plain word that the agent may be writing. These functions read the word exactly once, so
 * a later change by the agent has no effect. */
static inline uint32_t pccl_read32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint64_t pccl_read64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* The last agent's knowledge of the run, for the next agent. A field is 0 if the agent knew
 * nothing. */
struct pccl_known {
	uint64_t view_id; /* of the last view */
	uint32_t global;  /* world size of the run in this view */
};

/* A consistent copy of the state that the agent wrote last. */
struct pccl_attrs {
	uint32_t state; /* enum shm_comm_state */
	uint32_t hosts, pos;
	uint32_t code;
	char text[SHM_TEXT];
	/* where the master is; family 0 if unknown, or if the agent was writing it during the
	 * read */
	struct cc_addr at;
	struct pccl_known known;
	uint32_t round, rounds; /* of the measurements in progress, from 1; or 0 */
};

void pccl_attachment_attrs(const struct pccl_attachment *a, struct pccl_attrs *ret);

/* ---- staging regions and result regions, kept by the attachment (staging.c); any thread */

/* Gets a region of at least `size` bytes, either a kept one or a new one from the agent. The caller
 * may use it until pccl_staging_put. Does not allocate if a kept region fits. The errors are those
 * of pccl_region_alloc; *ret is invalid then. */
pcclResult_t pccl_staging_get(struct pccl_attachment *a, uint64_t size, struct pccl_staging **ret);
void pccl_staging_put(struct pccl_attachment *a, struct pccl_staging *s); /* NULL is fine */
/* Gives all staging regions that are not in use back to the agent. */
void pccl_staging_trim(struct pccl_attachment *a);
/* Gets the mapping of a result region, either a kept one or a new one from the agent. The mapping
 * counts as used until pccl_result_put. The errors are those of pccl_region_named; *ret is NULL
 * then. */
pcclResult_t pccl_result_get(struct pccl_attachment *a, uint64_t region, struct pccl_result **ret);
/* Does the same as pccl_result_get, but returns NULL if the region is neither kept nor handed
 * over. */
struct pccl_result *pccl_result_find(struct pccl_attachment *a, uint64_t region);
void pccl_result_put(struct pccl_attachment *a, struct pccl_result *r); /* NULL is fine */
/* Free all staging regions and all result mappings. Staging regions are given back to the agent if
 * the session is alive. */
void pccl_staging_free_all(struct pccl_attachment *a);
void pccl_result_free_all(struct pccl_attachment *a);

#endif
