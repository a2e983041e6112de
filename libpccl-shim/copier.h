/* SPDX-License-Identifier: MIT
 *
 * Jobs that copy large operands: pcclAllReduceAsync returns before a large operand is copied. A
 * thread of the library submits and copies these operations in the order of the calls. If that
 * thread has not begun a job, a thread that awaits the operation carries out the job itself, so
 * nothing depends on the library's thread. An operation is submitted only when its copying begins:
 * otherwise other hosts would send data that this host cannot use yet.
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
	PCCL_JOB_NONE = 0,  /* no job, or the job is over */
	PCCL_JOB_QUEUED,    /* no thread has begun the job */
	PCCL_JOB_BEGUN,     /* a thread is at work */
	PCCL_JOB_SUBMITTED, /* a thread is at work, and the agent has the submission */
};

/* The job of an operation, a part of its struct pccl_op. The slot of the operation is not released
 * before pccl_copier_stop. The copier's lock guards the state and the list. */
struct pccl_job {
	struct pccl_job *next;
	enum pccl_job_state state;
	_Atomic bool stop; /* the result of the job is not needed any more */
	struct pcclComm_t *comm;
	struct shm_sqe entry;
	void (*run)(struct pccl_job *j); /* carries out the job, without the copier's lock */
};

/* Queues a job of this communicator. `run` submits the entry and copies the operand. */
void pccl_copier_add(struct pccl_job *j, struct pcclComm_t *c, const struct shm_sqe *e,
	void (*run)(struct pccl_job *j));
/* Called by `run` when it has submitted the entry. */
void pccl_copier_submitted(struct pccl_job *j);
/* Waits until the job is submitted or over, and returns true. Returns false after PCCL_LOOK_MS
 * milliseconds; then call again. If the job is still queued, the calling thread first carries out
 * the earlier jobs of the communicator, and then this job. */
bool pccl_copier_await(struct pccl_job *j);
/* Cancels the job: no thread begins it, and a thread that is at work stops after the current piece.
 */
void pccl_copier_cancel(struct pccl_job *j);
/* Cancels the job, and returns when no thread works on it. */
void pccl_copier_stop(struct pccl_job *j);

/* Resets everything in a forked child. */
void pccl_copier_after_fork(void);

#endif
