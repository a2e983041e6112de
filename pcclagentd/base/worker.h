/* SPDX-License-Identifier: MIT
 *
 * A thread beside the loop: a ring of commands to it, a ring of events from it, and the handshake
 * by which it sleeps and is woken. Each ring has one producer and one consumer; nothing here takes
 * a lock, and nothing allocates but for events of a thread whose command ring is full.
 *
 * The thread has an epoll instance of its own. Its round is: run commands, work, and, if there was
 * nothing to do,
 *
 *	timeout = wrk_may_sleep(w) && NOTHING_CAME ? -1 : 0;
 *	n = wrk_wait(w, ev, max, timeout);
 *
 * The handshake: the thread sets `sleeping`, then looks at everything that it could be woken for.
 * A waker publishes its work, then looks at `sleeping` and clears it. Each side has a sequentially
 * consistent fence between its two steps, so at least one of them sees what the other has done: no
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

/* L: the loop's thread alone. The rest is constant while the thread runs, or atomic. */
struct worker {
	int epfd;
	int wake_fd;         /* in epfd, as WRK_DATA_WAKE */
	int event_fd;        /* the caller's */
	bool ready, running; /* L */
	pthread_t thread;    /* L */
	struct wrk_backlog *backlog,
		**backlog_end;   /* L: events taken while a command had to wait */
	struct cc_spsc commands; /* L pushes */
	struct cc_spsc events;   /* L pops */
	/* The thread sets it before it sleeps; whoever clears it wakes the thread. */
	_Atomic bool sleeping;
};

/* epoll's user data of the wake-up; callers use other values. */
#define WRK_DATA_WAKE ((uint64_t)0)

/* ---- commands and events: a pointer to 8 bytes, or a number of 61 bits, with a type ---- */

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

/* w: zeroes. capacity: of each ring. event_fd is written when wrk_next_event may have something. 0,
 * or CC_ERR_* + errno, and w is zeroes again. */
int wrk_init(struct worker *w, uint32_t capacity, int event_fd);
/* The thread must have ended. Fine for zeroes. */
void wrk_destroy(struct worker *w);
/* Starts the thread, which begins awake. 0, or CC_ERR_IO + errno. */
int wrk_start(struct worker *w, const char *name, void *(*main)(void *), void *arg);
/* Sends the command that ends the thread, and waits for that. Nothing if it does not run. */
void wrk_end(struct worker *w, uint64_t quit);
/* Never fails. wake: false if the command is not urgent. */
void wrk_command(struct worker *w, uint64_t command, bool wake);
/* False: there is no event. */
bool wrk_next_event(struct worker *w, uint64_t *ret);

/* ---- for any thread ---- */

/* The thread looks round again. To be called after what it is to see has been published. */
void wrk_wake(struct worker *w);
/* Also while the thread runs. 0 or CC_ERR_IO + errno. */
int wrk_watch(const struct worker *w, int fd, uint32_t events, uint64_t data);
void wrk_unwatch(const struct worker *w, int fd);

/* ---- for the thread ---- */

/* Never fails. wake: false if the event is not urgent. */
void wrk_notify(struct worker *w, uint64_t event, bool wake);

/* False: there are commands. True: whatever comes from now on wakes the thread, so the caller looks
 * at the rest of what it is woken for, and then waits, or says that it stays awake. */
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

/* epoll_wait; the thread is awake afterwards. */
int wrk_wait(struct worker *w, struct epoll_event *ev, int max, int timeout_ms);
/* True: it was the wake-up, which is taken now. */
bool wrk_is_wake(const struct worker *w, const struct epoll_event *ev);

#endif
