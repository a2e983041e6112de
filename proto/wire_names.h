/* SPDX-License-Identifier: MIT
 *
 * What the numbers of the public header are called in sentences: pcclFloat is "float". Static
 * texts; "unknown" for a number that no enumerator has.
 */
#ifndef WIRE_NAMES_H
#define WIRE_NAMES_H

#include <stdint.h>

const char *wire_dtype_name(uint32_t dtype);       /* pcclDataType_t */
const char *wire_op_name(uint32_t op);             /* pcclRedOp_t */
const char *wire_quant_name(uint32_t algo);        /* pcclQuantizationAlgorithm_t */
const char *wire_strategy_name(uint32_t strategy); /* pcclSharedStateSyncStrategy_t */
const char *wire_hash_name(uint32_t hash_type);    /* enum wm_hash_type */

#endif
