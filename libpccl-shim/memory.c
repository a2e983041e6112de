/* SPDX-License-Identifier: MIT
 *
 * pcclMemAlloc and pcclMemFree.
 */
#include "common/cc_sys.h"
#include "libpccl-shim/reconnector.h"
#include "libpccl-shim/lib.h"
#include "libpccl-shim/registered.h"

#define SIZE_LIMIT ((size_t)1 << 48) /* the largest size that the agent accepts in a request */

/* Allocates the memory. If the agent dies in the meantime, waits for the next agent, as every call
 * does. If agents die again and again, gives up after PCCL_AGENT_LEASE_MS in total. */
static pcclResult_t allocate(size_t size, void **ret)
{
	uint64_t begin = cc_now_ns();
	struct pccl_session *s;
	pcclResult_t r;
	bool ended;

	do {
		r = pccl_reconnector_session(NULL, &s);
		if (r != pcclSuccess)
			return r;
		r = pccl_registered_add(s, size, ret);
		ended = r == pcclAgentUnavailable && pccl_session_may_return(s);
		pccl_session_unref(s);
	} while (ended && cc_now_ns() - begin < pccl_reconnector_lease_ms() * (uint64_t)1000000);
	return r;
}

pcclResult_t pcclMemAlloc(size_t size, void **ptr_out)
{
	pcclResult_t r = pccl_lib_check();

	if (r != pcclSuccess)
		return r;
	if (!ptr_out)
		return pccl_fail(pcclInvalidArgument, "ptr_out must not be NULL");
	if (size == 0 || size > SIZE_LIMIT)
		return pccl_fail(pcclInvalidArgument,
			"size must be at least 1 and at most %zu, not %zu", SIZE_LIMIT, size);
	r = allocate(size, ptr_out);
	return r == pcclSuccess ? pccl_ok() : r;
}

pcclResult_t pcclMemFree(void *ptr)
{
	pcclResult_t r = pccl_lib_check();

	if (r == pcclSuccess && ptr)
		r = pccl_registered_remove(ptr);
	return r == pcclSuccess ? pccl_ok() : r;
}
