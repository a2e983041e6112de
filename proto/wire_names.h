/* SPDX-License-Identifier: MIT
 *
 * Names for the numbers of the public header in sentences; pcclFloat is "float". The texts are
 * static. A number without an enumerator is "unknown".
 */
#ifndef WIRE_NAMES_H
#define WIRE_NAMES_H

#include <stdint.h>

const char *wire_dtype_name(uint32_t dtype);       /* pcclDataType_t */
const char *wire_op_name(uint32_t op);             /* pcclRedOp_t */
const char *wire_hint_name(uint32_t hint);         /* pcclDistributionHint_t */
const char *wire_strategy_name(uint32_t strategy); /* pcclSharedStateSyncStrategy_t */
const char *wire_hash_name(uint32_t hash_type);    /* enum wm_hash_type */

#endif
