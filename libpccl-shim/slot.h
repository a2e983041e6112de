/* SPDX-License-Identifier: MIT
 *
 * An operation's slot in the queue pair, whatever the operation: taking one, submitting, waiting
 * for the end, and what a failed completion says.
 *
 * From pccl_slot_take to pccl_slot_release the slot is the operation's, and its thread calls all of
 * it; of a job (copier.h) the thread that carries it out calls pccl_slot_refuse, pccl_slot_push and
 * pccl_slot_progress instead. Without the communicator's lock, unless it is said.
 */
#ifndef PCCL_SHIM_SLOT_H
#define PCCL_SHIM_SLOT_H

#include "libpccl-shim/comm.h"

/* With the communicator's lock held: may this thread start an operation with this tag now?
 * *ret_slot is a free slot, or SHM_SLOTS. within: see below. */
pcclResult_t pccl_slot_admits(
	const pcclComm_t *c, uint64_t tag, const char *within, uint32_t *ret_slot);
/*
 * A free slot for an operation on this attachment, whose reference goes with it; the operation is
 * PCCL_OP_LAUNCHING. within: the call of the main thread that it is part of, which bears no other
 * ones (pccl_comm_begin), or NULL. *again: the attachment is not in use any more.
 */
pcclResult_t pccl_slot_take(pcclComm_t *c, struct pccl_attachment *a, uint64_t tag,
	const char *within, uint32_t *ret, bool *again);
/* Gives back what an operation holds, and its slot. */
void pccl_slot_release(pcclComm_t *c, uint32_t slot);

/* The slot is the operation's, which becomes IN_FLIGHT or AWAITED: from here on it has an end
 * status if the agent dies. */
void pccl_slot_prepare(pcclComm_t *c, uint32_t slot, enum pccl_op_state state);
/* Hands the entry, and the slot that it names, which is prepared, to the agent. in_done: bytes of a
 * staged operand that are there, from in_second on. */
void pccl_slot_push(pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done);
/* Both. */
void pccl_slot_submit(
	pcclComm_t *c, const struct shm_sqe *e, uint64_t in_done, enum pccl_op_state state);
/* Makes the entry that of a call that has failed here, with this code and the thread's sentence,
 * before it could take part: it ends so for all that make it, once all have. */
void pccl_slot_refuse(pcclComm_t *c, struct shm_sqe *e, pcclResult_t code);
/* The agent may be waiting for what has just been done: rings if it is. small: see shm_eager. */
void pccl_slot_progress(const struct pccl_op *op, struct shm_slot *s, bool eager);

/* Tells the agent that the thread waits until any of its n operations in flight there ends, so that
 * the master can tell calls that can never meet; 0: it goes on. */
void pccl_slot_waits_for_any(struct pccl_attachment *a, uint32_t n);

struct pccl_waiter {
	uint64_t spin_ns;        /* before it sleeps the first time */
	bool (*look)(void *arg); /* is there something to do, or known, that was not before? */
	uint32_t (*wanted)(const void *arg); /* enum shm_wait: what is to wake it */
	void *arg;
};

/* Until the slot is done (true), or nobody will end it: the agent is gone, or pcclInterrupt was
 * called (false). */
bool pccl_slot_wait(pcclComm_t *c, uint32_t slot, const struct pccl_waiter *w);
/* While others are in flight, whose time this is, too. */
#define PCCL_SPIN_NS ((uint64_t)20000)
/* Longer than a small operation takes. Meanwhile no CPU falls asleep that the daemons, or other
 * hops of this operation, would have to wake. */
#define PCCL_SPIN_ALONE_NS ((uint64_t)400000)

/* The code and text of a completion that is no success. */
pcclResult_t pccl_slot_fail(pcclComm_t *c, const struct shm_slot *s, uint32_t code);
/* What a completion, or else the start, says of the view. */
void pccl_slot_view(const struct shm_slot *s, struct wire_view *ret);
/* The application gets to know the view as of the end, or else the start. */
void pccl_slot_set_view(pcclComm_t *c, const struct shm_slot *s);

#endif
