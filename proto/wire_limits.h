/* SPDX-License-Identifier: MIT
 *
 * Limits that several wires share, and functions that refuse a message. Limits of one wire are in
 * its header.
 */
#ifndef WIRE_LIMITS_H
#define WIRE_LIMITS_H

#include <stdint.h>

#include "common/cc_err.h"

#define WIRE_STR_(x) #x
#define WIRE_STR(x)  WIRE_STR_(x) /* the value of a macro as a text */

#define WIRE_COUNT_MAX ((uint64_t)1 << 48) /* the largest number of elements or bytes */
#define WIRE_CODE_MAX  255u                /* pcclResult_t */
#define WIRE_DTYPE_MAX 11u                 /* pcclDataType_t */
#define WIRE_OP_AVG    1u                  /* pcclAvg */
#define WIRE_OP_MAX    4u                  /* pcclRedOp_t */

static inline int wire_bad(const char **why, const char *text)
{
	*why = text;
	return CC_ERR_PROTO;
}

static inline int wire_no_memory(const char **why)
{
	*why = "message: no memory to decode it";
	return CC_ERR_NOMEM;
}

#endif
