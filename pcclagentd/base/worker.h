/* SPDX-License-Identifier: MIT
 *
 * A thread next to the event loop: a ring of commands to the thread, a ring of events from it, and
 * the handshake by which it sleeps and is woken. Each ring has one producer and one consumer.
 * Nothing here takes a lock. Nothing allocates, except for events of a thread whose command ring is
 * full.
 *
 * The thread has its own epoll instance. Its loop is: run commands, work, and, if there was nothing
 * to do,
 *
 *	timeout = wrk_may_sleep(w) && NOTHING_CAME ? -1 : 0;
 *	n = wrk_wait(w, ev, max, timeout);
 *
 * The handshake: the thread sets `sleeping`, then checks everything for which it could be woken. A
 * waker publishes its work, then checks `sleeping` and clears it. Each side has a sequentially
 * consistent fence between its two steps, so at least one of them sees the step of the other: no
 * wake-up is lost. A waker that finds the thread awake makes no system call.
 */
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/cc_spsc.h"

struct wrk_backlog;

/* L: only used by the loop's thread. The other members are constant while the thread runs, or
 * atomic. */
struct worker {
	int epfd;
	int wake_fd;         /* watched by epfd, with WRK_DATA_WAKE */
	int event_fd;        /* owned by the caller */
	bool ready, running; /* L */
	pthread_t thread;    /* L */
	struct wrk_backlog *backlog,
		**backlog_end;   /* L: events that were taken while a command had to wait */
	struct cc_spsc commands; /* L pushes */
	struct cc_spsc events;   /* L pops */
	/* The worker thread sets this flag before it sleeps. Another thread that clears the flag
	 * wakes the worker thread. */
	_Atomic bool sleeping;
};

/* The epoll user data of wake_fd; callers use other values. */
#define WRK_DATA_WAKE ((uint64_t)0)

/* ---- commands and events: a type, and a pointer that is aligned to 8 bytes or a number of 61 bits
 * ---- */

#define WRK_TYPE_BITS 3u
#define WRK_TYPE_MASK ((UINT64_C(1) << WRK_TYPE_BITS) - 1)

static inline uint64_t wrk_pack_ptr(const void *p, unsigned type)
{
	return (uint64_t)(uintptr_t)p | type;
}

static inline uint64_t wrk_pack_num(uint64_t n, unsigned type)
{
	return n << WRK_TYPE_BITS | type;
}

static inline unsigned wrk_type(uint64_t v)
{
	return (unsigned)(v & WRK_TYPE_MASK);
}

static inline void *wrk_ptr(uint64_t v)
{
	return (void *)(uintptr_t)(v & ~WRK_TYPE_MASK);
}

static inline uint64_t wrk_num(uint64_t v)
{
	return v >> WRK_TYPE_BITS;
}

/* ---- for the loop ---- */

/* Initializes *w, which must be zero. capacity: the capacity of each ring. event_fd is written to
 * when wrk_next_event may have an event. Returns 0, or CC_ERR_* + errno; then *w is zero again. */
int wrk_init(struct worker *w, uint32_t capacity, int event_fd);
/* Frees the rings and descriptors. The thread must have ended. *w may be zero. */
void wrk_destroy(struct worker *w);
/* Starts the thread, which is awake at first. Returns 0, or CC_ERR_IO + errno. */
int wrk_start(struct worker *w, const char *name, void *(*main)(void *), void *arg);
/* Sends the command that ends the thread, and waits for its end. Does nothing if the thread does
 * not run. */
void wrk_end(struct worker *w, uint64_t quit);
/* Sends a command; never fails. wake: false if the command is not urgent. */
void wrk_command(struct worker *w, uint64_t command, bool wake);
/* Takes the next event. Returns false if there is none. */
bool wrk_next_event(struct worker *w, uint64_t *ret);

/* ---- for any thread ---- */

/* Makes the thread check for work again. To be called after the work has been published. */
void wrk_wake(struct worker *w);
/* Adds a descriptor to the thread's epoll instance, also while the thread runs. Returns 0, or
 * CC_ERR_IO + errno. */
int wrk_watch(const struct worker *w, int fd, uint32_t events, uint64_t data);
void wrk_unwatch(const struct worker *w, int fd);

/* ---- for the thread ---- */

/* Sends an event; never fails. wake: false if the event is not urgent. */
void wrk_notify(struct worker *w, uint64_t event, bool wake);

/* Prepares to sleep. Returns false if there are commands. If true is returned, all new work wakes
 * the thread from now on; so the caller checks its other sources of work, and then calls wrk_wait
 * or wrk_stay_awake. */
static inline bool wrk_may_sleep(struct worker *w)
{
	atomic_store(&w->sleeping, true);
	atomic_thread_fence(memory_order_seq_cst);
	return cc_spsc_empty(&w->commands);
}

static inline void wrk_stay_awake(struct worker *w)
{
	atomic_store(&w->sleeping, false);
}

/* Calls epoll_wait. The thread is awake afterwards. */
int wrk_wait(struct worker *w, struct epoll_event *ev, int max, int timeout_ms);
/* Returns true if `ev` is the wake-up, and takes it. */
bool wrk_is_wake(const struct worker *w, const struct epoll_event *ev);

#endif
