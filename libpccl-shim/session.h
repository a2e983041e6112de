/* SPDX-License-Identifier: MIT
 *
 * The one connection of the process to the agent. Requests of all threads share this connection. A
 * thread that waits for its reply becomes the leader: it reads the socket for all threads and
 * delivers their replies. When the leader has its own reply, another waiting thread becomes the
 * leader. So the session needs no thread of its own.
 *
 * A session that has ended never comes back; reconnector.c makes the next session. A session is
 * freed with its last reference. Any thread may call all functions. The lock inside is taken last:
 * a caller may hold any other lock if the function does not wait.
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
 * Connects to an agent and says hello. The thread's ender can end this wait. If `before` is NULL,
 * finds an agent or starts one; otherwise connects to the socket of that session. lease_ms: the
 * time within which the agent must answer a request that needs no other process. If it does not, it
 * counts as stopped, and the session ends. *ret is a reference. Errors: those of spawn.h,
 * pcclVersionMismatch, pcclInterrupted, and those that the agent returns.
 */
pcclResult_t pccl_session_open(
	const struct pccl_session *before, uint32_t lease_ms, struct pccl_session **ret);
struct pccl_session *pccl_session_ref(struct pccl_session *s);
void pccl_session_unref(struct pccl_session *s);   /* NULL is fine */
int pccl_session_fd(const struct pccl_session *s); /* for poll(): reports the end of the session */
/* Returns the hash type for shared state that the agent's configuration sets (enum wm_hash_type),
 * or 0 if it sets none. */
uint32_t pccl_session_hash_type(const struct pccl_session *s);

/*
 * Sends the request (fills in req_id) and waits for its reply. The wait has no limit if the reply
 * depends on other peers; otherwise the limit is lease_ms. The reply must come with want_fds
 * descriptors, which then belong to the caller. On success *reply and fds are set.
 * Errors: if the agent refuses, its code and text, with *reply set. If the session has ended, the
 * session's code, with reply->req_id 0.
 */
pcclResult_t pccl_session_call(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, int *fds, unsigned want_fds);
/* Lets a call end before its answer comes. `end` is called every PCCL_LOOK_MS milliseconds, without
 * a lock, and returns whether the call is to end. If the answer comes later, the resources in it
 * are given back. */
struct pccl_ender {
	bool (*end)(void *arg);
	void *arg;
	bool ended; /* the call was ended: pcclInterrupted, with reply->req_id 0 */
};
/* Sets the ender for this thread's calls that have no ender of their own. If `end` is NULL, nothing
 * ends them. Returns the previous ender. */
struct pccl_ender pccl_session_endable(struct pccl_ender ender);
/* As pccl_session_call, but without descriptors, and `ender` can end the call. */
pcclResult_t pccl_session_call_or(struct pccl_session *s, struct wl_request *request,
	struct wl_reply *reply, struct pccl_ender *ender);
/*
 * Sends a request that gives something back, and waits for the answer only for a short time. The
 * agent carries out such a request even if the wait is over, because it handles requests in order.
 * If the agent has left one such request unanswered, the next ones do not wait. Returns 0, or a
 * number for pccl_session_await if the answer has not come in this time.
 */
uint32_t pccl_session_post(struct pccl_session *s, struct wl_request *request);
/* Waits for the answer to a posted request, or for the end of the session. If ms > 0, waits for
 * `ms` milliseconds at most, and less if the agent does not respond at all. */
void pccl_session_await(struct pccl_session *s, uint32_t post, uint32_t ms);
/* As pccl_session_call, for WL_REGION_ADOPT: sends the descriptor `fd` with the request. The
 * descriptor still belongs to the caller. */
pcclResult_t pccl_session_adopt(
	struct pccl_session *s, struct wl_request *request, int fd, struct wl_reply *reply);

/* A request in flight. A thread can wait for several of them together. */
struct pccl_call {
	uint32_t req_id;
	bool done;
	bool orphan; /* no thread waits for the reply any more; the session frees the call */
	bool prompt; /* the agent's answer does not depend on other processes */
	enum wl_type type;
	uint64_t since_ns;
	pthread_cond_t *cond;
	struct wl_reply reply;
	int fds[WL_FDS_MAX];
	unsigned n_fds;
	struct pccl_call *next;
};

/* Sends a request. *call belongs to the session until pccl_session_end. Signals `cond` when the
 * reply has arrived. Fails if the request cannot be encoded; after this failure pccl_session_end
 * must not be called. */
pcclResult_t pccl_session_begin(struct pccl_session *s, struct pccl_call *call,
	struct wl_request *request, pthread_cond_t *cond);
/* Waits until one of the `n` calls is done. All must have been begun with `cond`; NULL entries are
 * skipped. Returns the index of the call, or -1 if the session has ended. */
int pccl_session_wait(
	struct pccl_session *s, struct pccl_call *const *calls, unsigned n, pthread_cond_t *cond);
/* Ends the call: takes it back from the session. Results and errors as with pccl_session_call. */
pcclResult_t pccl_session_end(struct pccl_session *s, struct pccl_call *call,
	struct wl_reply *reply, int *fds, unsigned want_fds);

/*
 * The agent hands over the result regions of operations without being asked, before it announces
 * the results. The thread that reads the socket maps these regions, and the session keeps them
 * until they are taken. All packets of the agent are read before its end is noticed. So a process
 * has all results that its agent announced, even if no thread read them while the agent lived:
 * memory that is in transit in a socket survives the sender.
 *
 * Takes the region of this communicator from the regions that were handed over. Returns false if
 * the region is not among them.
 */
bool pccl_session_take_result(
	struct pccl_session *s, uint32_t comm, uint64_t region, struct pccl_map *ret);
/* Unmaps the regions of a communicator that were not taken. To be called when the communicator is
 * closed. */
void pccl_session_drop_results(struct pccl_session *s, uint32_t comm);

/* Returns true while the session lives. Reads the packets in the socket without blocking. */
bool pccl_session_check(struct pccl_session *s);
/* As pccl_session_check, for a thread that waits for the agent's work in shared memory. Also asks
 * the agent from time to time whether it still responds. */
bool pccl_session_watch(struct pccl_session *s);
/* Sets the sentence about a session that has ended. Returns the code of the agent's goodbye, or
 * else a code of the library, mostly pcclAgentUnavailable. */
pcclResult_t pccl_session_fail(struct pccl_session *s);
/* Has the session ended because the agent died or made room for another agent? If not, the agent
 * has refused this process, has sent malformed packets, or does not respond. */
bool pccl_session_may_return(struct pccl_session *s);
/* Has the session ended with a goodbye from the agent? If not, the agent may have crashed. */
bool pccl_session_ended_in_order(struct pccl_session *s);

#endif
