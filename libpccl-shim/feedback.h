/* SPDX-License-Identifier: MIT
 *
 * The tags of a communicator whose quantized operations have error feedback. The agent keeps the
 * residuals; the library only tells it which operations have feedback.
 */
#ifndef PCCL_SHIM_FEEDBACK_H
#define PCCL_SHIM_FEEDBACK_H

#include "libpccl-shim/comm.h"

bool pccl_feedback_has(pcclComm_t *c, uint64_t tag);

#endif
