/* SPDX-License-Identifier: MIT
 *
 * The error enumeration of the daemons and the shim. Functions return 0 or one of these negative
 * values. pcclResult_t exists only in the public API and, as a number, on the wires.
 */
#ifndef CC_ERR_H
#define CC_ERR_H

enum cc_err {
	CC_OK = 0,
	CC_ERR_INVAL = -1,   /* an argument or a field is out of range */
	CC_ERR_NOMEM = -2,   /* memory, or a configured memory limit, is exhausted */
	CC_ERR_PROTO = -3,   /* malformed bytes from a peer */
	CC_ERR_VERSION = -4, /* protocol versions do not overlap */
	CC_ERR_LIMIT = -5,   /* a documented limit other than memory was exceeded */
	CC_ERR_AGAIN = -6,   /* the call would block, or more bytes are needed */
	CC_ERR_IO = -7,      /* a system call failed; errno has the reason */
	CC_ERR_EOF = -8,     /* the other side closed */
	CC_ERR_EXIST = -9,
	CC_ERR_NOENT = -10,
	CC_ERR_PERM = -11,
	CC_ERR_STATE = -12, /* not allowed in the present state */
	CC_ERR_TIMEOUT = -13,
};

/* Returns a short lower-case phrase in static storage, never NULL. */
const char *cc_err_str(int err);

#endif
