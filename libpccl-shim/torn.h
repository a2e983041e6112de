/* SPDX-License-Identifier: MIT
 *
 * The contents that failed synchronizations of this process have left in its tensors. Torn state
 * stays torn, even if the program offers it with another revision or another communicator, or from
 * other memory. So this file keeps the digests of the contents. Any thread, and also after a fork.
 * No function fails.
 */
#ifndef PCCL_SHIM_TORN_H
#define PCCL_SHIM_TORN_H

#include <stdbool.h>
#include <stdint.h>

/* If there are more torn states than this, the oldest are forgotten. */
#define PCCL_TORN_MAX 256u

void pccl_torn_keep(const uint64_t content[2]);
bool pccl_torn_known(const uint64_t content[2]);
/* Forgets these contents: they were elected, so another peer has them and they are right. */
void pccl_torn_forget(const uint64_t content[2]);

#endif
