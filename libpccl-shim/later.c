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

	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclOptimizeTopology");
	return r == pcclSuccess ? not_yet("pcclOptimizeTopology") : r;
}

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *c, pcclSharedState_t *shared_state,
	pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *sync_info_out)
{
	pcclResult_t r = pccl_comm_check(c);

	(void)sync_info_out;
	if (r == pcclSuccess)
		r = pccl_comm_check_main(c, "pcclSynchronizeSharedState");
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
