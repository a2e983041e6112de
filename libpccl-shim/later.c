/* SPDX-License-Identifier: MIT
 *
 * The functions that this release declares but does not carry out.
 */
#include "libpccl-shim/comm.h"

static pcclResult_t not_yet(const char *function)
{
	return pccl_fail(
		pcclInternalError, "%s is not in this release; nothing was changed", function);
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *c)
{
	pcclResult_t r = pccl_comm_check(c);

	return r == pcclSuccess ? not_yet("pcclOptimizeTopology") : r;
}

pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors,
	size_t count, const pcclComm_t *c, pcclReduceInfo_t *reduce_info_out, int max_in_flight)
{
	pcclResult_t r = pccl_comm_check(c);

	(void)reduce_info_out;
	if (r != pcclSuccess)
		return r;
	if (!descriptors && count > 0)
		return pccl_fail(pcclInvalidArgument, "descriptors must not be NULL");
	if (max_in_flight < 1)
		return pccl_fail(pcclInvalidArgument, "max_in_flight must be at least 1, not %d",
			max_in_flight);
	return not_yet("pcclAllReduceMultipleWithRetry");
}

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *c, pcclSharedState_t *shared_state,
	pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *sync_info_out)
{
	pcclResult_t r = pccl_comm_check(c);

	(void)sync_info_out;
	if (r != pcclSuccess)
		return r;
	if (!shared_state)
		return pccl_fail(pcclInvalidArgument, "shared_state must not be NULL");
	if (shared_state->count > 0 && !shared_state->infos)
		return pccl_fail(pcclInvalidArgument, "shared_state->infos must not be NULL");
	if (strategy < PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR ||
		strategy > PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY)
		return pccl_fail(pcclInvalidArgument, "there is no strategy %d", (int)strategy);
	return not_yet("pcclSynchronizeSharedState");
}
