/* SPDX-License-Identifier: MIT
 *
 * The process's one connection to the agent. Requests of any thread share it: a thread that waits
 * for its reply reads the socket on behalf of all (the leader) and hands the others theirs; when it
 * has its own it passes the part on. So calls need no thread of the library's own.
 *
 * A session that has ended stays so, and everything that hangs on it with it; reconnector.c makes
 * the next one. Counted references; all functions may be called by any thread. The lock inside is
 * taken last of all: callers may hold any of theirs where a function does not wait.
 */
#ifndef PCCL_SHIM_SESSION_H
#define PCCL_SHIM_SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include "libpccl-shim/error.h"
#include "proto/wire_local.h"

struct pccl_session;
struct pccl_map;

/*
 * Connects and says hello; the thread's ender ends that, too. before NULL: wherever an agent is
 * found, or started; otherwise where that session's was. lease_ms: how long the agent may leave a
 * request unanswered that needs nobody else; then it is taken to be stopped, and the session ends.
 * *ret is a reference. Errors: those of spawn.h, pcclVersionMismatch, pcclInterrupted, and what the
 * agent says.
 */
pcclResult_t pccl_session_open(
	const struct pccl_session *before, uint32_t lease_ms, struct pccl_session **ret);
struct pccl_session *pccl_session_ref(struct pccl_session *s);
void pccl_session_unref(struct pccl_session *s);   /* NULL is fine */
int pccl_session_fd(const struct pccl_session *s); /* to wait for its end */
/* Of shared state, as the agent's configuration says: enum wm_hash_type, or 0: it does not say. */
uint32_t pccl_session_hash_type(const struct pccl_session *s);

/*
 * Sends the request (req_id is filled in) and waits for its reply: without bound if it depends on
 * other peers, otherwise for lease_ms. want_fds descriptors must come with it; they are the
 * caller's then. On success *reply and fds are set.
 * Errors: the agent's code and text, with *reply set, or the session's code when it has ended, with
 * reply->req_id 0.
 */
pcclResult_t pccl_session_call(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, int *fds, unsigned want_fds);
/* Asked each PCCL_LOOK_MS, without a lock: has somebody ended the call? Then nobody waits for the
 * answer: when it comes, what it gives is given back. */
struct pccl_ender {
	bool (*end)(void *arg);
	void *arg;
	bool ended; /* it was: pcclInterrupted, with reply->req_id 0 */
};
/* Sets the ender of the calls of this thread that have none of their own, from now on; end NULL:
 * nothing ends them. Returns the one until now. */
struct pccl_ender pccl_session_endable(struct pccl_ender ender);
/* The same as pccl_session_call for what may be ended, without descriptors. */
pcclResult_t pccl_session_call_or(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, struct pccl_ender *ender);
/*
 * For requests that give something back: they hold in any case, since the agent takes requests one
 * after the other, so an agent that stands still is not waited for long, nor for each of them.
 * Returns 0, or a number for pccl_session_await if the answer has not come by then.
 */
uint32_t pccl_session_post(struct pccl_session *s, struct wl_request *request);
/* Waits for that answer, or the end of the session; with ms > 0 not for longer, and hardly for an
 * agent that stands still. */
void pccl_session_await(struct pccl_session *s, uint32_t post, uint32_t ms);
/* The same for WL_REGION_ADOPT, which takes a descriptor along; it stays the caller's. */
pcclResult_t pccl_session_adopt(
	struct pccl_session *s, struct wl_request *request, int fd, struct wl_reply *reply);

/* A request whose reply is waited for together with those of others. */
struct pccl_call {
	uint32_t req_id;
	bool done;
	bool orphan; /* nobody waits for it any more, and it is the session's to free */
	bool prompt; /* the agent answers it without waiting for anybody */
	enum wl_type type;
	uint64_t since_ns;
	pthread_cond_t *cond;
	struct wl_reply reply;
	int fds[WL_FDS_MAX];
	unsigned n_fds;
	struct pccl_call *next;
};

/* Sends it; *call is the session's until pccl_session_end. cond is signalled when it is done. An
 * error (a request that cannot be encoded) leaves nothing behind. */
pcclResult_t pccl_session_begin(struct pccl_session *s, struct pccl_call *call,
	struct wl_request *request, pthread_cond_t *cond);
/* Waits until one of the calls in this array (NULL: not any more), all begun with this cond, is
 * done: its index, or -1 when the session has ended. */
int pccl_session_wait(
	struct pccl_session *s, struct pccl_call *const *calls, unsigned n, pthread_cond_t *cond);
/* Takes the call back. Results and errors as with pccl_session_call. */
pcclResult_t pccl_session_end(struct pccl_session *s, struct pccl_call *call,
	struct wl_reply *reply, int *fds, unsigned want_fds);

/*
 * The agent hands the result regions of operations over before it announces them, unasked. Whoever
 * reads the socket maps them, and they are kept here until somebody asks. What the agent has sent
 * is read before its end is noticed, so a process has all results that its agent announced, though
 * nobody may have looked while it lived: memory that is on its way in a socket does not die with
 * the sender.
 *
 * Takes the region of this communicator from those that were handed over; false: there is none.
 */
bool pccl_session_take_result(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps what nobody has taken; the communicator is closed. */
void pccl_session_drop_results(struct pccl_session *s, uint32_t comm);

/* True while the agent is there. Looks at the socket, does not block. */
bool pccl_session_check(struct pccl_session *s);
/* The same for somebody who waits for the agent to do something in shared memory: also asks it
 * from time to time whether it is still awake. */
bool pccl_session_watch(struct pccl_session *s);
/* Sets the sentence about a session that has ended; returns its code: what the agent said with its
 * goodbye, or pcclAgentUnavailable. */
pcclResult_t pccl_session_fail(struct pccl_session *s);
/* Of one that has ended: did the agent die, or leave so that another may take its place? If not, it
 * wants nothing more to do with this process, or is there but talks nonsense, or not at all. */
bool pccl_session_may_return(struct pccl_session *s);
/* Of one that has ended: did the agent say goodbye? If not, it may have crashed. */
bool pccl_session_ended_in_order(struct pccl_session *s);

#endif
