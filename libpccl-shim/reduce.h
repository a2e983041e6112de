/* SPDX-License-Identifier: MIT
 *
 * An all-reduce in two halves: reduce.c submits it and copies the operand in, await.c waits for it,
 * copies the result out or takes everything back.
 */
#ifndef PCCL_SHIM_REDUCE_H
#define PCCL_SHIM_REDUCE_H

#include "libpccl-shim/comm.h"

/* Waits for the operation in this slot, which is PCCL_OP_AWAITED, and frees the slot. The caller's
 * buffers hold the result, or what they held before. info may be NULL. Sets a sentence on failure.
 */
pcclResult_t pccl_reduce_await(pcclComm_t *c, uint32_t slot, pcclReduceInfo_t *info);
/* Gives back what an operation holds, and its slot. */
void pccl_reduce_release(pcclComm_t *c, uint32_t slot);

#endif
