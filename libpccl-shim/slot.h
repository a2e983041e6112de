/* SPDX-License-Identifier: MIT
 *
 * The slot of an operation in the queue pair. These steps are the same for all operations: taking a
 * slot, submitting, waiting for the end, and reading the error of a failed completion.
 *
 * From pccl_slot_take to pccl_slot_release the slot belongs to the operation, and the thread of the
 * operation calls all functions. If the operation has a job (copier.h), the thread that carries out
 * the job calls pccl_slot_refuse, pccl_slot_push and pccl_slot_progress instead. The caller must
 * not hold the communicator's lock, unless the comment says so.
 */
#ifndef PCCL_SHIM_SLOT_H
#define PCCL_SHIM_SLOT_H

#include "libpccl-shim/comm.h"

/* With the communicator's lock held: checks whether this thread may start an operation with this
 * tag now. *ret_slot is a free slot, or SHM_SLOTS. within: see pccl_slot_take. */
pcclResult_t pccl_slot_admits(
	const pcclComm_t *c, uint64_t tag, const char *within, uint32_t *ret_slot);
/*
 * Takes a free slot for an operation on this attachment. The slot takes over the caller's reference
 * to the attachment, and the operation is PCCL_OP_LAUNCHING. within: the call of the main thread to
 * which the operation belongs and which allows no other operations (pccl_comm_begin), or NULL. If
 * the attachment is no longer in use, sets *again and takes nothing.
 */
pcclResult_t pccl_slot_take(pcclComm_t *c, struct pccl_attachment *a, uint64_t tag,
	const char *within, uint32_t *ret, bool *again);
/* Gives back the resources of an operation, and its slot. */
void pccl_slot_release(pcclComm_t *c, uint32_t slot);

/* Initializes the slot and sets the operation to IN_FLIGHT or AWAITED. From here on the slot
 * decides the operation's end status if the agent dies. */
void pccl_slot_prepare(pcclComm_t *c, uint32_t slot, enum pccl_op_state state);
/* Hands the entry, and the prepared slot that the entry names, to the agent. in_done: number of
 * bytes of a staged operand that are copied already, counted from in_second. */
void pccl_slot_push(pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done);
/* Prepares the slot and pushes the entry. */
void pccl_slot_submit(
	pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done, enum pccl_op_state state);
/* Turns the entry into a refusal: the call has failed here with this code and the thread's sentence
 * before it could take part. When all peers have made the call, the call ends with this error for
 * all of them. */
void pccl_slot_refuse(pcclComm_t *c, struct shm_sqe *e, pcclResult_t code);
/* Rings the doorbell if the agent waits for the progress that this thread has just made. eager: see
 * cc_route_eager_max. */
void pccl_slot_progress(const struct pccl_op *op, struct shm_slot *s, bool eager);

/* Reports to the agent that the thread waits until any of its `n` operations in flight at this
 * agent ends. From this report the master can detect calls that can never meet. If n is 0, reports
 * that the thread continues. */
void pccl_slot_waits_for_any(struct pccl_attachment *a, uint32_t n);

struct pccl_waiter {
	uint64_t spin_ns;                    /* time before the first sleep */
	bool (*look)(void *arg);             /* carries out pending work; returns whether there was
					      * any */
	uint32_t (*wanted)(const void *arg); /* enum shm_wait: the event that must wake the
					      * thread */
	void *arg;
};

/* Waits until the slot is done and returns true. Returns false if the slot will not be done any
 * more: the agent is gone, or pcclInterrupt was called. */
bool pccl_slot_wait(pcclComm_t *c, uint32_t slot, const struct pccl_waiter *w);
/* The spin time while other operations are in flight, because these need the CPU, too. */
#define PCCL_SPIN_NS ((uint64_t)20000)
/* The spin time of a single operation. It is longer than a small operation takes, so this CPU does
 * not fall asleep during the operation, and no daemon has to wake it. */
#define PCCL_SPIN_ALONE_NS ((uint64_t)400000)

/* Sets the sentence of a failed completion and returns its code. */
pcclResult_t pccl_slot_fail(pcclComm_t *c, const struct shm_slot *s, uint32_t code);
/* Reads the view from the slot: the view at the completion, or, if there is none, the view at the
 * start. */
void pccl_slot_view(const struct shm_slot *s, struct wire_view *ret);
/* Records that a call reports the view in the slot to the application. */
void pccl_slot_set_view(pcclComm_t *c, const struct shm_slot *s);

#endif
