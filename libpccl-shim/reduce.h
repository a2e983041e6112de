/* SPDX-License-Identifier: MIT
 *
 * An all-reduce in two halves. submit.c submits the operation and copies the operand in. await.c
 * waits for the end and copies the result out, or restores the buffers. reduce.c has the functions
 * that the application calls.
 *
 * All functions are called by the thread that launched the operation, except pccl_reduce_abandon:
 * the thread that destroys the communicator calls it. The caller must not hold the communicator's
 * lock. Buffers belong to the application, which keeps them until the operation is awaited or
 * abandoned.
 */
#ifndef PCCL_SHIM_REDUCE_H
#define PCCL_SHIM_REDUCE_H

#include "common/cc_plan.h"
#include "libpccl-shim/comm.h"

/* Checks the arguments of an all-reduce. */
pcclResult_t pccl_reduce_check(const void *send, const void *recv, const pcclReduceDescriptor_t *d);
/* The caller's next step after a launch. */
enum pccl_launch {
	PCCL_LAUNCH_ASYNC, /* returns to the application */
	PCCL_LAUNCH_BATCH, /* waits for the operation, perhaps after launching others */
	PCCL_LAUNCH_WAIT,  /* only waits for the operation */
};
/* Submits an operation and copies the operand. If the launch is ASYNC and the operand is large, a
 * job does both. After a launch that is not ASYNC, the operation is PCCL_OP_AWAITED. Never returns
 * pcclRankConnectionLost. An operation with wrong arguments is submitted, too, and ends with an
 * error for all peers; this function itself returns an error only if it cannot launch the
 * operation. */
pcclResult_t pccl_reduce_launch(pcclComm_t *c, const void *send, void *recv,
	const pcclReduceDescriptor_t *d, enum pccl_launch how, uint32_t *ret_slot);
/* Submits an operation that ends with this code and sentence for all its peers, because this peer
 * cannot carry out the call. The caller awaits the operation at once. */
pcclResult_t pccl_reduce_refuse(pcclComm_t *c, const pcclReduceDescriptor_t *d, pcclResult_t code,
	const char *why, uint32_t *ret_slot);
/* As pccl_reduce_launch, for an operation of the backlog for which there is a free slot. Returns
 * false if its attachment is no longer in use. */
bool pccl_reduce_launch_later(pcclComm_t *c, const struct pccl_call_args *args);
/* Launches the operation on args->att, whose reference it takes. Sets *again if the agent went away
 * before it knew of the operation. */
pcclResult_t pccl_reduce_launch_on(pcclComm_t *c, const struct pccl_call_args *args,
	const struct pccl_attrs *attrs, enum pccl_launch how, uint32_t *ret_slot, bool *again);
/* Computes the plan for an operand that goes through a window. Returns false if the operand cannot
 * be cut into a window's plan. */
bool pccl_reduce_window_plan(const struct pccl_op *op, struct cc_plan *ret);
/* The segments of an operand that were copied into a window. */
struct pccl_feed {
	uint32_t begun, fed; /* numbers of segments; between them are copies that are under way */
	uint64_t bytes;      /* that were copied */
};

/* Copies the next segment into its place in the window, and begins to copy more. There is room for
 * the first `room` segments, and this is more than f->fed. After a failure no copy is under way. */
pcclResult_t pccl_reduce_feed(
	const struct pccl_op *op, const struct cc_plan *plan, struct pccl_feed *f, uint32_t room);
/* Makes this peer leave the run, because it cannot copy the rest of an operand. Otherwise the other
 * peers would wait for the operand for ever. The reason is `code` and the thread's sentence. Does
 * nothing if the peer has left already, or if the agent is gone: then no peer waits. */
void pccl_reduce_leave_unfed(pcclComm_t *c, struct pccl_op *op, pcclResult_t code);
/* Takes the result of the operation in this slot, which is PCCL_OP_AWAITED and over, and frees the
 * slot. Does not report the end to the application; see pccl_reduce_tell. ret->att is a
 * reference. */
void pccl_reduce_take_end(pcclComm_t *c, uint32_t slot, struct pccl_outcome *ret);
/* Reports an end from pccl_reduce_take_end to the application. Sets the sentence on failure. */
pcclResult_t pccl_reduce_tell(
	pcclComm_t *c, const struct pccl_outcome *end, pcclReduceInfo_t *info);
/* Waits for the operation in this slot, which is PCCL_OP_AWAITED, and frees the slot. Afterwards
 * the caller's buffers have the result, or their contents from before. info may be NULL. Sets a
 * sentence on failure. */
pcclResult_t pccl_reduce_await(pcclComm_t *c, uint32_t slot, pcclReduceInfo_t *info);
/* Abandons all operations in flight and restores the caller's buffers. To be called after the agent
 * was asked to close the communicator. */
void pccl_reduce_abandon(pcclComm_t *c);

#endif
