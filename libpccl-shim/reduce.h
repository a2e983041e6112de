/* SPDX-License-Identifier: MIT
 *
 * An all-reduce in two halves: submit.c submits it and copies the operand in, await.c waits for it,
 * copies the result out or takes everything back. reduce.c is what the application calls.
 *
 * The thread that launched an operation calls all of it, but for pccl_reduce_abandon, which is for
 * the thread that destroys the communicator. Buffers are the application's until the operation is
 * awaited or given up. Without the communicator's lock.
 */
#ifndef PCCL_SHIM_REDUCE_H
#define PCCL_SHIM_REDUCE_H

#include "common/cc_plan.h"
#include "libpccl-shim/comm.h"

/* Are these arguments of an all-reduce right? */
pcclResult_t pccl_reduce_check(const void *send, const void *recv, const pcclReduceDescriptor_t *d);
/* What its caller does next. */
enum pccl_launch {
	PCCL_LAUNCH_ASYNC, /* returns */
	PCCL_LAUNCH_BATCH, /* waits for it, perhaps after it has launched others */
	PCCL_LAUNCH_WAIT,  /* waits for it and does nothing else */
};
/* Submits an operation and copies the operand; or, if it is ASYNC and large, leaves both to a job.
 * Unless it is ASYNC it is PCCL_OP_AWAITED then. Never pcclRankConnectionLost. Wrong arguments are
 * an operation that ends so for all its peers; they are returned only if it cannot be launched. */
pcclResult_t pccl_reduce_launch(pcclComm_t *c, const void *send, void *recv,
	const pcclReduceDescriptor_t *d, enum pccl_launch how, uint32_t *ret_slot);
/* Submits an operation that ends with this code and sentence for all its peers, as the call that it
 * belongs to cannot be carried out here. To be awaited at once. */
pcclResult_t pccl_reduce_refuse(pcclComm_t *c, const pcclReduceDescriptor_t *d, pcclResult_t code,
	const char *why, uint32_t *ret_slot);
/* The same as pccl_reduce_launch for an operation of the backlog, which has a free slot. False: its
 * attachment is not in use any more. */
bool pccl_reduce_launch_later(pcclComm_t *c, const struct pccl_call_args *args);
/* Launches the operation on args->att, whose reference it takes. *again: the agent has gone before
 * it knew of the operation. */
pcclResult_t pccl_reduce_launch_on(pcclComm_t *c, const struct pccl_call_args *args,
	const struct pccl_attrs *attrs, enum pccl_launch how, uint32_t *ret_slot, bool *again);
/* How an operand is cut that goes through a window. False: it cannot be. */
bool pccl_reduce_window_plan(const struct pccl_op *op, struct cc_plan *ret);
/* Copies a segment to its place in the window. Returns where it ends: bytes of the operand. */
uint64_t pccl_reduce_feed(const struct pccl_op *op, const struct cc_plan *plan, uint32_t seg);
/* Takes the end of the operation in this slot, which is PCCL_OP_AWAITED and over, as far as the
 * application need not be told, and frees the slot. ret->att is a reference. */
void pccl_reduce_take_end(pcclComm_t *c, uint32_t slot, struct pccl_outcome *ret);
/* The application is told, and the sentence set. */
pcclResult_t pccl_reduce_tell(
	pcclComm_t *c, const struct pccl_outcome *end, pcclReduceInfo_t *info);
/* Waits for the operation in this slot, which is PCCL_OP_AWAITED, and frees the slot. The caller's
 * buffers hold the result, or what they held before. info may be NULL. Sets a sentence on failure.
 */
pcclResult_t pccl_reduce_await(pcclComm_t *c, uint32_t slot, pcclReduceInfo_t *info);
/* Gives all operations in flight up: what they wrote into the caller's buffers is taken back. After
 * the agent has closed the communicator, or is gone. */
void pccl_reduce_abandon(pcclComm_t *c);

#endif
