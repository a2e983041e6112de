/* SPDX-License-Identifier: MIT
 *
 * The process's one connection to the agent. Requests of any thread share it: a thread that waits
 * for its reply reads the socket on behalf of all (the leader) and hands the others theirs; when it
 * has its own it passes the part on. So the library needs no thread in the application.
 *
 * A session that has ended stays so, and everything that hangs on it with it; the next
 * pccl_session_get makes a new one. Counted references; all functions may be called by any thread.
 */
#ifndef PCCL_SHIM_SESSION_H
#define PCCL_SHIM_SESSION_H

#include <stdbool.h>

#include "libpccl-shim/error.h"
#include "proto/wire_local.h"

struct pccl_session;

/* The present session, or a new one: connects, starts an agent if need be, says hello. */
pcclResult_t pccl_session_get(struct pccl_session **ret);
struct pccl_session *pccl_session_ref(struct pccl_session *s);
void pccl_session_unref(struct pccl_session *s); /* NULL is fine */

/*
 * Sends the request (req_id is filled in) and waits for its reply, without bound. want_fds
 * descriptors must come with it; they are the caller's then. On success *reply and fds are set.
 * Errors: the agent's code and text, or pcclAgentUnavailable when the session has ended.
 */
pcclResult_t pccl_session_call(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, int *fds, unsigned want_fds);

/* True while the agent is there. Looks at the socket, does not block. */
bool pccl_session_check(struct pccl_session *s);
/* Sets the sentence about a session that has ended; returns its code. */
pcclResult_t pccl_session_fail(struct pccl_session *s);

/* In a forked child. */
void pccl_session_after_fork(void);

#endif
