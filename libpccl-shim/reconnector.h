/* SPDX-License-Identifier: MIT
 *
 * The process's session, and the thread that makes another one when the agent has died.
 *
 * The reconnector starts with the first communicator that is connected and sleeps until the
 * session's socket ends. As long as there are connected communicators it then connects again,
 * presents the memory of pcclMemAlloc (registered.h) and attaches every communicator as the peer
 * that it was (comm.h). Calls made meanwhile wait for it. It waits for an agent for
 * PCCL_AGENT_LEASE_MS milliseconds, counted without the time in which one was at work, and over
 * several deaths in a row until a communicator has been attached; then it gives the communicators
 * up. An agent that said that it wants no more to do with this process is not asked again.
 *
 * The thread has all signals blocked (pccl_thread_start), and does not exist in forked children.
 *
 * Any thread may call all of it, without a communicator's lock. The reconnector owns a reference to
 * the session, and one to each communicator while it works on it; the list holds none.
 */
#ifndef PCCL_SHIM_RECONNECTOR_H
#define PCCL_SHIM_RECONNECTOR_H

#include "libpccl-shim/comm.h"

#define PCCL_LEASE_MS 30000u /* unless PCCL_AGENT_LEASE_MS says otherwise */

/* Looks at PCCL_AGENT_LEASE_MS. Threads of the application alone look at the environment, in calls
 * that open or need a session: another one could read it in the middle of a setenv(). Fails with
 * pcclInvalidUsage where it is no number in range. */
pcclResult_t pccl_reconnector_lease_read(void);
/* What it said last: milliseconds; 0: agents that die are not waited for. */
uint32_t pccl_reconnector_lease_ms(void);

/* The present session, or a new one: connects, starts an agent if need be, says hello. Waits for
 * the reconnector while it is about to bring one back. Where there is nothing to keep, it waits
 * itself for an agent that has gone, as long as the reconnector would; after that there was none,
 * as at first.
 * stop: what ends such a wait, with pcclInterrupted, as does the thread's ender; NULL: nothing.
 * *ret is a reference. Errors as with pccl_session_open, and pcclAgentUnavailable after such a
 * wait. */
pcclResult_t pccl_reconnector_session(const _Atomic bool *stop, struct pccl_session **ret);

/* Puts a communicator under the reconnector, as it becomes UP. *ret_late: its session has ended in
 * the meantime; nothing was done. Fails where the thread cannot be started: pcclOutOfMemory or
 * pcclInternalError. */
pcclResult_t pccl_reconnector_add(pcclComm_t *c, struct pccl_session *s, bool *ret_late);
/* Takes it away, if it is there. */
void pccl_reconnector_remove(pcclComm_t *c);

/* Where the master of this name is, as far as communicators under the reconnector know; or none. */
struct cc_addr pccl_reconnector_master_addr(const struct cc_addr *master);

/* In a forked child. */
void pccl_reconnector_after_fork(void);

#endif
