/* SPDX-License-Identifier: MIT
 *
 * The public functions. They return codes from 64 upward only to programs that have called
 * pcclInitExtended: exception handlers of bindings made for PCCL 1.0 do not know these codes.
 */
#include <stdatomic.h>

#define PCCL_1_0_CODES
#include "libpccl-shim/include/pccl.h"

#define FIRST_EXTENSION 64

static _Atomic bool extended;

static pcclResult_t outer(pcclResult_t r)
{
	if ((int)r < FIRST_EXTENSION || atomic_load_explicit(&extended, memory_order_relaxed))
		return r;
	switch (r) {
	case pcclAgentUnavailable:
	case pcclVersionMismatch:
	case pcclPermissionDenied:
	case pcclTimeout:
		return pcclMasterConnectionFailed;
	default:
		return pcclInternalError;
	}
}

pcclResult_t pccl_inner_init(void);
pcclResult_t pcclInit(void)
{
	return outer(pccl_inner_init());
}

pcclResult_t pccl_inner_get_build_info(pcclBuildInfo_t *info);
pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info)
{
	return outer(pccl_inner_get_build_info(info));
}

pcclResult_t pccl_inner_mem_alloc(size_t size, void **ptr_out);
pcclResult_t pcclMemAlloc(size_t size, void **ptr_out)
{
	return outer(pccl_inner_mem_alloc(size, ptr_out));
}

pcclResult_t pccl_inner_mem_free(void *PCCL_NULLABLE ptr);
pcclResult_t pcclMemFree(void *PCCL_NULLABLE ptr)
{
	return outer(pccl_inner_mem_free(ptr));
}

pcclResult_t pccl_inner_create_communicator(
	const pcclCommCreateParams_t *params, pcclComm_t **comm_out);
pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out)
{
	return outer(pccl_inner_create_communicator(params, comm_out));
}

pcclResult_t pccl_inner_destroy_communicator(pcclComm_t *communicator);
pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator)
{
	return outer(pccl_inner_destroy_communicator(communicator));
}

pcclResult_t pccl_inner_connect(pcclComm_t *communicator);
pcclResult_t pcclConnect(pcclComm_t *communicator)
{
	return outer(pccl_inner_connect(communicator));
}

pcclResult_t pccl_inner_interrupt(pcclComm_t *communicator);
pcclResult_t pcclInterrupt(pcclComm_t *communicator)
{
	return outer(pccl_inner_interrupt(communicator));
}

pcclResult_t pccl_inner_set_output_policy(pcclComm_t *communicator, pcclOutputPolicy_t policy);
pcclResult_t pcclSetOutputPolicy(pcclComm_t *communicator, pcclOutputPolicy_t policy)
{
	return outer(pccl_inner_set_output_policy(communicator, policy));
}

pcclResult_t pccl_inner_set_stream(pcclComm_t *communicator, void *PCCL_NULLABLE stream);
pcclResult_t pcclSetStream(pcclComm_t *communicator, void *PCCL_NULLABLE stream)
{
	return outer(pccl_inner_set_stream(communicator, stream));
}

pcclResult_t pccl_inner_set_error_feedback(pcclComm_t *communicator, uint64_t tag, bool enabled);
pcclResult_t pcclSetErrorFeedback(pcclComm_t *communicator, uint64_t tag, bool enabled)
{
	return outer(pccl_inner_set_error_feedback(communicator, tag, enabled));
}

pcclResult_t pccl_inner_get_attribute(
	const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out);
pcclResult_t pcclGetAttribute(
	const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out)
{
	return outer(pccl_inner_get_attribute(communicator, attribute, p_attribute_out));
}

pcclResult_t pccl_inner_update_topology(pcclComm_t *communicator);
pcclResult_t pcclUpdateTopology(pcclComm_t *communicator)
{
	return outer(pccl_inner_update_topology(communicator));
}

pcclResult_t pccl_inner_are_peers_pending(const pcclComm_t *communicator, bool *peers_pending_out);
pcclResult_t pcclArePeersPending(const pcclComm_t *communicator, bool *peers_pending_out)
{
	return outer(pccl_inner_are_peers_pending(communicator, peers_pending_out));
}

pcclResult_t pccl_inner_are_new_peers_pending(
	const pcclComm_t *communicator, bool *new_peers_pending_out);
pcclResult_t pcclAreNewPeersPending(const pcclComm_t *communicator, bool *new_peers_pending_out)
{
	return outer(pccl_inner_are_new_peers_pending(communicator, new_peers_pending_out));
}

pcclResult_t pccl_inner_optimize_topology(const pcclComm_t *communicator);
pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator)
{
	return outer(pccl_inner_optimize_topology(communicator));
}

pcclResult_t pccl_inner_all_reduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);
pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out)
{
	return outer(pccl_inner_all_reduce(
		sendbuff, recvbuff, descriptor, communicator, reduce_info_out));
}

pcclResult_t pccl_inner_all_reduce_async(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out);
pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
	const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
	pcclAsyncReduceOp_t *reduce_handle_out)
{
	return outer(pccl_inner_all_reduce_async(
		sendbuff, recvbuff, descriptor, communicator, reduce_handle_out));
}

pcclResult_t pccl_inner_await_async_reduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);
pcclResult_t pcclAwaitAsyncReduce(
	const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out)
{
	return outer(pccl_inner_await_async_reduce(reduce_handle, reduce_info_out));
}

pcclResult_t pccl_inner_all_reduce_multiple_with_retry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out, int max_in_flight);
pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *communicator,
	pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out, int max_in_flight)
{
	return outer(pccl_inner_all_reduce_multiple_with_retry(
		descriptors, count, communicator, reduce_info_out, max_in_flight));
}

pcclResult_t pccl_inner_synchronize_shared_state(const pcclComm_t *communicator,
	pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
	pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out);
pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator,
	pcclSharedState_t *shared_state, pcclSharedStateSyncStrategy_t strategy,
	pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out)
{
	return outer(pccl_inner_synchronize_shared_state(
		communicator, shared_state, strategy, sync_info_out));
}

pcclResult_t pccl_inner_create_master(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out);
pcclResult_t pcclCreateMaster(
	ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out)
{
	return outer(pccl_inner_create_master(listen_address, p_master_handle_out));
}

pcclResult_t pccl_inner_run_master(pcclMasterInstance_t *master_instance);
pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance)
{
	return outer(pccl_inner_run_master(master_instance));
}

pcclResult_t pccl_inner_interrupt_master(pcclMasterInstance_t *master_instance);
pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance)
{
	return outer(pccl_inner_interrupt_master(master_instance));
}

pcclResult_t pccl_inner_master_await_termination(pcclMasterInstance_t *master_instance);
pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance)
{
	return outer(pccl_inner_master_await_termination(master_instance));
}

pcclResult_t pccl_inner_destroy_master(pcclMasterInstance_t *master_instance);
pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance)
{
	return outer(pccl_inner_destroy_master(master_instance));
}

pcclResult_t pcclInitExtended(void)
{
	atomic_store(&extended, true);
	return outer(pccl_inner_init());
}
