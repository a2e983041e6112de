/* SPDX-License-Identifier: MIT
 *
 * Operations of pcclAllReduceAsync beyond those that the queue pair has slots for. They wait, and
 * are launched in the order of the calls as slots become free. A slot is free when its operation
 * was awaited; while others wait for slots, one that is over gives its slot up before: its result
 * is taken, and what is to be told with it is kept until it is awaited.
 *
 * Peers may start their operations in different orders, and then all slots of one could hold what
 * another one has in its backlog. So a few are kept, and whoever blocks has the lowest of its tags
 * in one: when all do, the lowest of all is in flight everywhere, and ends.
 *
 * All of it is done by the thread that launches and awaits, in calls that launch or await: whoever
 * blocks there goes on with the backlog first. What an operation knows of losses is as of its call,
 * and it is never launched at another agent than the one that was there then, as if it had had a
 * slot at once.
 *
 * A thread that blocks here tells the agent, since the operations that it waits for may never end.
 * The backlog owns its records and a reference to the attachment of each; the communicator's lock
 * guards it.
 */
#ifndef PCCL_SHIM_BACKLOG_H
#define PCCL_SHIM_BACKLOG_H

#include "libpccl-shim/reduce.h"

#define PCCL_SLOTS_KEPT 4u

/* Are there operations that wait for slots, or too few that are free? */
bool pccl_backlog_is_needed(pcclComm_t *c);
/* Puts an operation behind the others. Takes the reference to the attachment on success. */
pcclResult_t pccl_backlog_add(pcclComm_t *c, const struct pccl_call_args *args);
/* Goes on until every operation that can be launched has been, and there is a free slot; or the
 * operation with this tag, if it is not NULL, is over; or pcclInterrupt was called. */
void pccl_backlog_drive(pcclComm_t *c, const uint64_t *tag);
/* Launches what has room, without waiting. */
void pccl_backlog_pump(pcclComm_t *c);
/* The end of an operation of this tag that has no slot. False: there is none. */
bool pccl_backlog_await(pcclComm_t *c, uint64_t tag, pcclReduceInfo_t *info, pcclResult_t *ret);
/* Forgets all. */
void pccl_backlog_free(pcclComm_t *c);

#endif
