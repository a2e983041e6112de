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
