/* SPDX-License-Identifier: MIT
 *
 * A communicator inside the library. It is *attached* while it has a queue pair with the agent,
 * from its first pcclConnect on; a session that ended leaves it attached to the remains until the
 * next pcclConnect, so that operations in flight can still be ended properly.
 *
 * The lock guards main_call, ops, staging and results, and is held for moments only. The attachment
 * changes only in pcclConnect and pcclDestroyCommunicator, which need the communicator for
 * themselves.
 */
#ifndef PCCL_SHIM_COMM_H
#define PCCL_SHIM_COMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/region.h"
#include "proto/shm_queue.h"

#define PCCL_COMM_MAGIC 0x4d4f4350u /* "PCOM" */

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

enum pccl_op_state {
	PCCL_OP_FREE = 0,
	PCCL_OP_LAUNCHING, /* the slot is taken, nothing submitted */
	PCCL_OP_IN_FLIGHT,
	PCCL_OP_AWAITED, /* one thread waits for it or takes its result */
};

/* What the library remembers of the operation in the slot of the same number. */
struct pccl_op {
	enum pccl_op_state state;
	pthread_t thread; /* that launched it */
	uint64_t tag;
	const uint8_t *send;
	uint8_t *recv;
	uint64_t count, bytes;
	uint32_t esize;
	struct pccl_staging *staging;     /* NULL: send is registered */
	struct pccl_registered *in, *out; /* NULL: not registered */
	uint8_t *copied; /* segments that are in recv already; kept from operation to operation */
	size_t cap_copied;
};

struct pcclComm_t {
	uint32_t magic;
	uint32_t generation; /* of the process that made it */
	struct cc_addr master;
	uint32_t group, pool_size;
	pthread_t main_thread; /* that made it */
	const char *main_call; /* under way there, and no operation may be started meanwhile; NULL:
				* none */
	_Atomic uint64_t losses; /* of the group, that the application has been told of */
	/* votes of the run that this peer has seen the end of */
	_Atomic uint64_t topo_turn, pending_turn;

	/* attachment; session NULL: not attached */
	struct pccl_session *session;
	uint32_t id;
	uint8_t *queue; /* SHM_SIZE bytes */
	struct pccl_fork_fd submit_bell, data_bell;

	pthread_mutex_t lock;
	uint32_t tail; /* entries submitted */
	uint32_t n_ops;
	struct pccl_op ops[SHM_SLOTS];
	struct pccl_staging staging[SHM_SLOTS];
	struct pccl_result results[SHM_SLOTS];
	_Atomic uint64_t wait_ns; /* how long operations were awaited lately */
};

static inline struct shm_sq *pccl_comm_sq(const struct pcclComm_t *c)
{
	return (struct shm_sq *)(void *)(c->queue + SHM_SQ_OFF);
}

static inline struct shm_attr *pccl_comm_attr(const struct pcclComm_t *c)
{
	return (struct shm_attr *)(void *)(c->queue + SHM_ATTR_OFF);
}

static inline struct shm_slot *pccl_comm_slot(const struct pcclComm_t *c, uint32_t i)
{
	return (struct shm_slot *)(void *)(c->queue + SHM_SLOT_OFF) + i;
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

/* The attributes as the agent last wrote them, whole. */
struct pccl_attrs {
	uint32_t state; /* enum shm_comm_state */
	uint32_t global_world, group_world, groups, largest_group;
	uint32_t hosts, pos;
	uint32_t code;
	char text[SHM_TEXT];
};

/* Is it a communicator of this process, and the library ready? Any thread. */
pcclResult_t pccl_comm_check(const pcclComm_t *c);
/*
 * The rule of threads: a communicator is used by the thread that made it, its main thread. Another
 * one may launch operations and await them, while the main thread makes no call but those that ask
 * something; all operations in flight are one thread's.
 *
 * Is this the main thread? function is named in the sentence.
 */
pcclResult_t pccl_comm_check_main(const pcclComm_t *c, const char *function);
/* The same, and begins a call that bears no operations, neither in flight (`busy` is returned) nor
 * started before pccl_comm_end. */
pcclResult_t pccl_comm_begin(pcclComm_t *c, const char *function, pcclResult_t busy);
void pccl_comm_end(pcclComm_t *c);
/* The application gets to know the group's count of losses, as of an answer. */
void pccl_comm_told(pcclComm_t *c, uint64_t losses);
/* Communicators are const in the signatures that were released, for the caller's view of them. */
static inline pcclComm_t *pccl_comm_own(const pcclComm_t *c)
{
	return (pcclComm_t *)(uintptr_t)c;
}

/* Is it connected? Fills *ret then. */
pcclResult_t pccl_comm_connected(const pcclComm_t *c, struct pccl_attrs *ret);

/* A region of at least size bytes, from those kept or from the agent. Nothing is allocated when the
 * sizes have been seen before. */
pcclResult_t pccl_staging_get(pcclComm_t *c, uint64_t size, struct pccl_staging **ret);
void pccl_staging_put(pcclComm_t *c, struct pccl_staging *s); /* NULL is fine */
/* The mapping of a result region, from those kept or from the agent. */
pcclResult_t pccl_result_get(pcclComm_t *c, uint64_t region, struct pccl_result **ret);
void pccl_result_put(pcclComm_t *c, struct pccl_result *r); /* NULL is fine */
/* Everything; with a session that is alive it is given back to the agent. No operation is in
 * flight. */
void pccl_staging_free_all(pcclComm_t *c);
void pccl_result_free_all(pcclComm_t *c);

/* Gives all operations in flight up: what they wrote into the caller's buffers is taken back. After
 * the agent has closed the communicator, or is gone. (reduce.c) */
void pccl_reduce_abandon(pcclComm_t *c);

#endif
