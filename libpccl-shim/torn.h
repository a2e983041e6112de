/* SPDX-License-Identifier: MIT
 *
 * Contents that failed synchronizations of this process have left in its tensors. Torn state stays
 * torn, whatever revision a program offers it at, by whichever communicator and from
 * whichever memory: so its digest is what is kept. Any thread, and also after a fork. Nothing
 * fails.
 */
#ifndef PCCL_SHIM_TORN_H
#define PCCL_SHIM_TORN_H

#include <stdbool.h>
#include <stdint.h>

/* The oldest of more are forgotten. */
#define PCCL_TORN_MAX 256u

void pccl_torn_keep(const uint64_t content[2]);
bool pccl_torn_known(const uint64_t content[2]);
/* They are right after all: they have been elected, as those of another peer. */
void pccl_torn_forget(const uint64_t content[2]);

#endif
