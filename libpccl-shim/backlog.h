/* SPDX-License-Identifier: MIT
 *
 * The backlog: operations of pcclAllReduceAsync for which the queue pair has no slot. They wait and
 * are launched in the order of the calls as slots become free. A slot normally becomes free when
 * its operation has been awaited. While operations wait in the backlog, an operation that is over
 * gives up its slot earlier: the library takes the result, and keeps the outcome until the
 * operation is awaited.
 *
 * If peers start their operations in different orders, all slots of one peer could hold operations
 * that are in the backlog of another peer. So a few slots are kept free, and a thread that blocks
 * launches the operation with the lowest tag of its backlog in a kept slot. When all peers block,
 * the operation with the lowest tag of all is in flight on every peer, so it can end.
 *
 * The thread that launches and awaits operations does all the work of the backlog, inside these
 * calls: before it blocks, it continues the backlog. An operation uses the generation that the
 * application knew at its call. It is launched only at the agent that the communicator used at its
 * call. In both respects it behaves like an operation that got a slot at once.
 *
 * A thread that blocks here reports this to the agent, because it may wait for operations that can
 * never end. The backlog owns its records and, for each, a reference to the attachment. The
 * communicator's lock guards the backlog.
 */
#ifndef PCCL_SHIM_BACKLOG_H
#define PCCL_SHIM_BACKLOG_H

#include "libpccl-shim/reduce.h"

#define PCCL_SLOTS_KEPT 4u

/* Does the caller have to continue the backlog: do operations wait for slots, or are too few slots
 * free? */
bool pccl_backlog_is_needed(pcclComm_t *c);
/* Appends an operation to the backlog. Takes the reference to the attachment on success. */
pcclResult_t pccl_backlog_add(pcclComm_t *c, const struct pccl_call_args *args);
/* Continues the backlog. If `tag` is NULL, returns when all operations that can be launched have
 * been launched and a slot is free. Otherwise returns when the operation with this tag is over, or
 * nothing is left to launch. Also returns when pcclInterrupt was called. */
void pccl_backlog_drive(pcclComm_t *c, const uint64_t *tag);
/* Launches the operations for which there is room, without waiting. */
void pccl_backlog_pump(pcclComm_t *c);
/* Awaits the operation with this tag if it has no slot. Returns false if the backlog has no such
 * operation. */
bool pccl_backlog_await(pcclComm_t *c, uint64_t tag, pcclReduceInfo_t *info, pcclResult_t *ret);
/* Frees all records. */
void pccl_backlog_free(pcclComm_t *c);

#endif
