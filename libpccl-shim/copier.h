/* SPDX-License-Identifier: MIT
 *
 * The submissions that wait for their operands to be copied: pcclAllReduceAsync returns before a
 * large one is. A thread of the library submits and copies them, in the order of the calls; a
 * thread that awaits an operation does it itself if the other one has not begun, so nothing depends
 * on the library's thread being there. An operation is submitted when its copying begins: before,
 * others would send what this host cannot use yet.
 *
 * The thread starts with the first such operation and does not exist in forked children.
 */
#ifndef PCCL_SHIM_COPIER_H
#define PCCL_SHIM_COPIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "proto/shm_queue.h"

struct pcclComm_t;

enum pccl_job_state {
	PCCL_JOB_NONE = 0,  /* there is none, or it is over */
	PCCL_JOB_QUEUED,    /* no thread has begun */
	PCCL_JOB_BEGUN,     /* some thread is at work */
	PCCL_JOB_SUBMITTED, /* and the agent has the submission */
};

/* Part of the operation, whose slot is not released before pccl_copier_stop. The state and the list
 * are guarded by the copier's lock. */
struct pccl_job {
	struct pccl_job *next;
	enum pccl_job_state state;
	_Atomic bool stop; /* it has become pointless */
	struct pcclComm_t *comm;
	struct shm_sqe entry;
	void (*run)(struct pccl_job *j); /* carries it out, without the copier's lock */
};

/* Queues a job of this communicator that submits this entry, which run does. */
void pccl_copier_add(struct pccl_job *j, struct pcclComm_t *c, const struct shm_sqe *e,
	void (*run)(struct pccl_job *j));
/* What carries it out says so when it has submitted the entry. */
void pccl_copier_submitted(struct pccl_job *j);
/* Returns when the job is submitted or over, or (false) after PCCL_LOOK_MS: call again. If it is
 * queued the calling thread carries it out, and before it what else the communicator has queued. */
bool pccl_copier_await(struct pccl_job *j);
/* Nobody begins with it any more, and what is under way ends with the next piece. */
void pccl_copier_cancel(struct pccl_job *j);
/* The same, and returns when no thread works on it. */
void pccl_copier_stop(struct pccl_job *j);

/* In a forked child. */
void pccl_copier_after_fork(void);

#endif
