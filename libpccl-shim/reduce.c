/* SPDX-License-Identifier: MIT
 *
 * The calls for all-reduces. An operation is launched at once or put into the backlog, and awaited
 * later.
 */
#include "libpccl-shim/reduce.h"

#include "libpccl-shim/backlog.h"
#include "libpccl-shim/feedback.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/session.h"
#include "libpccl-shim/slot.h"

/* Is this peer alone in its group? Only a call of this peer could change that. */
static bool is_alone(pcclComm_t *c)
{
	struct wire_view view = pccl_comm_view(c);

	return view.view_id != 0 && view.group == 1;
}

static pcclResult_t try_launch(pcclComm_t *c, struct pccl_call_args *args, enum pccl_launch how,
	uint32_t *ret_slot, bool *again)
{
	struct pccl_attrs attrs;
	pcclResult_t r;

	*again = false;
	r = pccl_comm_check_optimized(c);
	if (r == pcclSuccess)
		r = pccl_comm_use(c, false, &args->att, &attrs);
	if (r != pcclSuccess)
		return r;
	/* Read the generation only now. If the agent has just been replaced after a death that the
	 * application knows of, the new agent has reported a newer generation. */
	args->generation = atomic_load(&c->known_generation);
	if (is_alone(c))
		r = pccl_fail(pcclTooFewPeers,
			"this peer is alone in group %u: an all-reduce needs at least two peers",
			c->group);
	else if (how != PCCL_LAUNCH_ASYNC || !pccl_backlog_is_needed(c))
		return pccl_reduce_launch_on(c, args, &attrs, how, ret_slot, again);
	else
		r = pccl_backlog_add(c, args);
	if (r != pcclSuccess)
		pccl_attachment_unref(args->att);
	return r;
}

static pcclResult_t launch(
	pcclComm_t *c, struct pccl_call_args *args, enum pccl_launch how, uint32_t *ret_slot)
{
	pcclResult_t r;
	bool again;

	if (how != PCCL_LAUNCH_ASYNC && pccl_backlog_is_needed(c))
		pccl_backlog_drive(c, NULL);
	/* Each repetition means that an agent has died. The reconnector limits their number. */
	do
		r = try_launch(c, args, how, ret_slot, &again);
	while (again);
	return r;
}

pcclResult_t pccl_reduce_refuse(pcclComm_t *c, const pcclReduceDescriptor_t *d, pcclResult_t code,
	const char *why, uint32_t *ret_slot)
{
	struct pccl_call_args args = {.d = *d, .refused = code, .why = why};

	return launch(c, &args, PCCL_LAUNCH_WAIT, ret_slot);
}

pcclResult_t pccl_reduce_launch(pcclComm_t *c, const void *send, void *recv,
	const pcclReduceDescriptor_t *d, enum pccl_launch how, uint32_t *ret_slot)
{
	struct pccl_call_args args = {.send = send,
		.recv = recv,
		.d = *d,
		.stream = atomic_load_explicit(&c->stream, memory_order_relaxed),
		.feedback = d->quantization_options.algorithm != pcclQuantNone &&
			    pccl_feedback_has(c, d->tag)};
	pcclResult_t r = launch(c, &args, how, ret_slot), wrong;

	if (r == pcclSuccess)
		return r;
	wrong = pccl_reduce_check(send, recv, d);
	return wrong != pcclSuccess ? wrong : r;
}

pcclResult_t pcclSetOutputPolicy(pcclComm_t *communicator, pcclOutputPolicy_t policy)
{
	pcclResult_t r = pccl_comm_check(communicator);

	if (r != pcclSuccess)
		return r;
	if (policy != pcclOutputKept && policy != pcclOutputDisposable)
		return pccl_fail(pcclInvalidArgument, "policy: there is no pcclOutputPolicy_t %d",
			(int)policy);
	atomic_store(&communicator->disposable, policy == pcclOutputDisposable);
	return pccl_ok();
}

pcclResult_t pcclSetStream(pcclComm_t *communicator, void *stream)
{
	pcclResult_t r = pccl_comm_check(communicator);

	if (r != pcclSuccess)
		return r;
	if (stream && !pccl_buf_of_device(pcclDeviceCuda))
		return pccl_fail(pcclInternalError,
			"stream: this library was built without CUDA: configure it with "
			"--with-cuda");
	atomic_store(&communicator->stream, stream);
	return pccl_ok();
}

static pcclResult_t check_arguments(
	const void *send, const void *recv, const pcclReduceDescriptor_t *d, const pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);

	if (r != pcclSuccess)
		return r;
	if (!d)
		return pccl_fail(pcclInvalidArgument, "descriptor must not be NULL");
	/* No other peer takes part in an empty operation, so its arguments are checked here. */
	return d->count == 0 ? pccl_reduce_check(send, recv, d) : pcclSuccess;
}

/* Marks the operation with this tag as awaited by the calling thread. */
static pcclResult_t claim(pcclComm_t *c, uint64_t tag, uint32_t *ret_slot)
{
	bool found = false, own = false;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < SHM_SLOTS && !found; i++) {
		struct pccl_op *op = &c->ops[i];

		if (op->state != PCCL_OP_IN_FLIGHT || op->tag != tag)
			continue;
		found = true;
		own = op->thread == pccl_thread_id();
		if (own)
			op->state = PCCL_OP_AWAITED;
		*ret_slot = i;
	}
	pthread_mutex_unlock(&c->lock);
	if (!found)
		return pccl_fail(pcclInvalidArgument,
			"no operation with tag %llu is in flight: it was not started, or has been "
			"awaited already",
			(unsigned long long)tag);
	if (!own)
		return pccl_fail(pcclInvalidUsage,
			"an operation must be awaited by the thread that started it, and another "
			"thread started this operation");
	return pcclSuccess;
}

pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *reduce_info_out)
{
	pcclResult_t r = check_arguments(sendbuff, recvbuff, descriptor, communicator);
	pcclComm_t *c = pccl_comm_own(communicator);
	uint32_t slot = 0;

	if (r != pcclSuccess)
		return r;
	r = pccl_reduce_launch(c, sendbuff, recvbuff, descriptor, PCCL_LAUNCH_WAIT, &slot);
	if (r != pcclSuccess)
		return r;
	r = pccl_reduce_await(c, slot, reduce_info_out);
	return r == pcclSuccess ? pccl_ok() : r;
}

pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out)
{
	pcclResult_t r = check_arguments(sendbuff, recvbuff, descriptor, communicator);
	uint32_t slot = 0;

	if (r != pcclSuccess)
		return r;
	if (!reduce_handle_out)
		return pccl_fail(pcclInvalidArgument, "reduce_handle_out must not be NULL");
	r = pccl_reduce_launch(pccl_comm_own(communicator), sendbuff, recvbuff, descriptor,
		PCCL_LAUNCH_ASYNC, &slot);
	if (r != pcclSuccess)
		return r;
	reduce_handle_out->comm = pccl_comm_own(communicator);
	reduce_handle_out->tag = descriptor->tag;
	pccl_backlog_pump(reduce_handle_out->comm);
	return pccl_ok();
}

pcclResult_t pcclAwaitAsyncReduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *reduce_info_out)
{
	pcclResult_t r = pccl_lib_check();
	uint32_t slot = 0;
	pcclComm_t *c;

	if (r != pcclSuccess)
		return r;
	if (!reduce_handle)
		return pccl_fail(pcclInvalidArgument, "reduce_handle must not be NULL");
	r = pccl_comm_check(reduce_handle->comm);
	if (r != pcclSuccess)
		return r;
	c = reduce_handle->comm;
	if (!pccl_backlog_await(c, reduce_handle->tag, reduce_info_out, &r)) {
		r = claim(c, reduce_handle->tag, &slot);
		if (r != pcclSuccess)
			return r;
		r = pccl_reduce_await(c, slot, reduce_info_out);
	}
	if (r == pcclSuccess)
		pccl_backlog_pump(c);
	return r == pcclSuccess ? pccl_ok() : r;
}
