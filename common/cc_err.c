/* SPDX-License-Identifier: MIT */
#include "common/cc_err.h"

const char *cc_err_str(int err)
{
	switch (err) {
	case CC_OK:
		return "success";
	case CC_ERR_INVAL:
		return "value out of range";
	case CC_ERR_NOMEM:
		return "out of memory";
	case CC_ERR_PROTO:
		return "malformed message";
	case CC_ERR_VERSION:
		return "no common protocol version";
	case CC_ERR_LIMIT:
		return "limit exceeded";
	case CC_ERR_AGAIN:
		return "not complete yet";
	case CC_ERR_IO:
		return "input or output failed";
	case CC_ERR_EOF:
		return "closed by the other side";
	case CC_ERR_EXIST:
		return "exists already";
	case CC_ERR_NOENT:
		return "does not exist";
	case CC_ERR_PERM:
		return "permission denied";
	case CC_ERR_STATE:
		return "not allowed in this state";
	case CC_ERR_TIMEOUT:
		return "timed out";
	default:
		return "unknown error";
	}
}
