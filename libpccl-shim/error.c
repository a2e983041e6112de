/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_limit.h"

static _Thread_local char last_error[PCCL_TEXT_MAX];

pcclResult_t pccl_fail(pcclResult_t code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof last_error, fmt, ap);
	va_end(ap);
	return code;
}

pcclResult_t pccl_fail_memory(const char *fmt, ...)
{
	char what[128], limit[CC_LIMIT_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return pccl_fail(
		pcclOutOfMemory, "%s: %s", what, cc_limit_text(ENOMEM, limit, sizeof limit));
}

void pccl_fail_text(char to[PCCL_TEXT_MAX])
{
	memcpy(to, last_error, sizeof last_error);
}

pcclResult_t pccl_ok(void)
{
	last_error[0] = '\0';
	return pcclSuccess;
}

/* Returns a description of a result code, or NULL for another number. */
static const char *describe(uint32_t code)
{
	switch (code) {
	case pcclSuccess:
		return "success";
	case pcclNotInitialized:
		return "pcclInit has not been called";
	case pcclInternalError:
		return "internal error";
	case pcclInvalidArgument:
		return "invalid argument";
	case pcclInvalidUsage:
		return "call not allowed now";
	case pcclTooFewPeers:
		return "fewer than two peers in the group";
	case pcclMasterConnectionFailed:
		return "the master cannot be reached";
	case pcclRankConnectionFailed:
		return "another peer cannot be reached";
	case pcclRankConnectionLost:
		return "a peer was lost";
	case pcclNoSharedStateAvailable:
		return "no peer has shared state to offer";
	case pcclPendingAsyncOps:
		return "operations are in flight";
	case pcclUpdateTopologyFailed:
		return "the topology could not be updated";
	case pcclTopologyOptimizationFailed:
		return "the topology could not be optimized";
	case pcclAgentUnavailable:
		return "no agent can be reached";
	case pcclVersionMismatch:
		return "protocol versions do not match";
	case pcclPermissionDenied:
		return "permission denied";
	case pcclTimeout:
		return "timed out";
	case pcclOutOfMemory:
		return "out of memory";
	case pcclInterrupted:
		return "the call was interrupted";
	default:
		return NULL;
	}
}

pcclResult_t pccl_fail_code(uint32_t code)
{
	return describe(code) ? (pcclResult_t)code : pcclInternalError;
}

const char *pcclGetErrorString(pcclResult_t result)
{
	const char *text = describe((uint32_t)result);

	return text ? text : "unknown result code";
}

const char *pcclGetLastError(void)
{
	return last_error;
}
