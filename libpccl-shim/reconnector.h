/* SPDX-License-Identifier: MIT
 *
 * The session of the process, and the thread that makes the next session when the agent has died.
 *
 * The reconnector starts with the first communicator that is connected and sleeps until the
 * session's socket ends. If there are connected communicators then, it connects again, presents the
 * memory of pcclMemAlloc (registered.h) and attaches every communicator as the same peer (comm.h).
 * Calls that are made in the meantime wait for it. It waits for an agent for PCCL_AGENT_LEASE_MS
 * milliseconds. Only time without a working agent counts. If agents die several times in a row,
 * these times add up until a communicator has been attached. When the time is over, the reconnector
 * gives up the communicators. If an agent has refused this process, the reconnector does not ask
 * this agent again.
 *
 * The thread has all signals blocked except faults (pccl_thread_start). It does not exist in forked
 * children.
 *
 * Any thread may call all functions, without a communicator's lock. The reconnector owns a
 * reference to the session, and one to each communicator while it works on it; the list itself
 * holds no references.
 */
#ifndef PCCL_SHIM_RECONNECTOR_H
#define PCCL_SHIM_RECONNECTOR_H

#include "libpccl-shim/comm.h"

#define PCCL_LEASE_MS 30000u /* the default of PCCL_AGENT_LEASE_MS */

/* Reads PCCL_AGENT_LEASE_MS. Only threads of the application read the environment, in calls that
 * open or need a session: a thread of the library could read it during a setenv(). Fails with
 * pcclInvalidUsage if the value is not a number in range. */
pcclResult_t pccl_reconnector_lease_read(void);
/* Returns the value that was read last, in milliseconds. 0 means that the library does not wait for
 * another agent. */
uint32_t pccl_reconnector_lease_ms(void);

/* Returns the present session, or else opens a new one: starts an agent if there is none, connects
 * and says hello. While the reconnector is making the next session, this function waits for it. If
 * no communicator is connected, the function itself waits for the next agent, for the same time as
 * the reconnector. If this wait fails, the next call starts without a previous session. stop: NULL,
 * or a flag that ends such a wait with pcclInterrupted; the thread's ender ends it in the same way.
 * *ret is a reference. Errors as with pccl_session_open, and pcclAgentUnavailable after such a
 * wait. */
pcclResult_t pccl_reconnector_session(const _Atomic bool *stop, struct pccl_session **ret);

/* Adds a communicator that becomes UP to the reconnector's list. If the session has ended in the
 * meantime, sets *ret_late and does nothing. Fails with pcclOutOfMemory or pcclInternalError if the
 * thread cannot be started. */
pcclResult_t pccl_reconnector_add(pcclComm_t *c, struct pccl_session *s, bool *ret_late);
/* Removes a communicator from the list, if it is there. */
void pccl_reconnector_remove(pcclComm_t *c);

/* Returns the address at which a communicator of the list has reached the master with this
 * configured address. If no communicator knows such an address, returns family 0. */
struct cc_addr pccl_reconnector_master_addr(const struct cc_addr *master);

/* Resets everything in a forked child. */
void pccl_reconnector_after_fork(void);

#endif
