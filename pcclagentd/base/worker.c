/* SPDX-License-Identifier: MIT */
#include "pcclagentd/base/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"

struct wrk_backlog {
	uint64_t event;
	struct wrk_backlog *next;
};

static void ring_fd(int fd)
{
	uint64_t one = 1;

	/* Fails only if the counter is full; then the reader wakes up as well. */
	if (write(fd, &one, sizeof one) < 0)
		return;
}

/* ---- for the loop ---- */

int wrk_init(struct worker *w, uint32_t capacity, int event_fd)
{
	int error;

	w->ready = true;
	w->event_fd = event_fd;
	w->backlog_end = &w->backlog;
	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->epfd >= 0 && w->wake_fd >= 0 && cc_spsc_init(&w->commands, capacity) &&
		cc_spsc_init(&w->events, capacity) &&
		wrk_watch(w, w->wake_fd, EPOLLIN, WRK_DATA_WAKE) == 0)
		return 0;
	error = errno;
	wrk_destroy(w);
	errno = error;
	return error == ENOMEM ? CC_ERR_NOMEM : CC_ERR_IO;
}

static bool take_backlog(struct worker *w, uint64_t *ret)
{
	struct wrk_backlog *b = w->backlog;

	if (!b)
		return false;
	*ret = b->event;
	w->backlog = b->next;
	if (!w->backlog)
		w->backlog_end = &w->backlog;
	free(b);
	return true;
}

void wrk_destroy(struct worker *w)
{
	uint64_t event;

	if (!w->ready)
		return;
	while (take_backlog(w, &event))
		;
	cc_spsc_destroy(&w->commands);
	cc_spsc_destroy(&w->events);
	if (w->epfd >= 0)
		close(w->epfd);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	w->ready = false;
}

int wrk_start(struct worker *w, const char *name, void *(*main)(void *), void *arg)
{
	errno = pthread_create(&w->thread, NULL, main, arg);
	if (errno != 0)
		return CC_ERR_IO;
	pthread_setname_np(w->thread, name);
	w->running = true;
	return 0;
}

void wrk_end(struct worker *w, uint64_t quit)
{
	if (!w->running)
		return;
	wrk_command(w, quit, true);
	pthread_join(w->thread, NULL);
	w->running = false;
}

/* Moves events from the ring to the backlog. A lost event would leave a transfer or a link without
 * an end. */
static void defer_events(struct worker *w)
{
	struct wrk_backlog *b;
	uint64_t event;

	while (cc_spsc_pop(&w->events, &event)) {
		b = malloc(sizeof *b);
		if (!b)
			cc_limit_end("events of a thread");
		*b = (struct wrk_backlog){.event = event};
		*w->backlog_end = b;
		w->backlog_end = &b->next;
	}
}

void wrk_command(struct worker *w, uint64_t command, bool wake)
{
	bool waited = false;

	while (!cc_spsc_push(&w->commands, command)) {
		/* While the thread waits for room for its events, it takes no commands. So this
		 * function makes room by taking events of the thread. */
		defer_events(w);
		waited = true;
		wrk_wake(w);
		sched_yield();
	}
	if (waited)
		ring_fd(w->event_fd);
	if (wake)
		wrk_wake(w);
}

bool wrk_next_event(struct worker *w, uint64_t *ret)
{
	return take_backlog(w, ret) || cc_spsc_pop(&w->events, ret);
}

/* ---- for any thread ---- */

void wrk_wake(struct worker *w)
{
	/* The caller has published the work. Only then `sleeping` is read. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&w->sleeping) && atomic_exchange(&w->sleeping, false))
		ring_fd(w->wake_fd);
}

int wrk_watch(const struct worker *w, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	return epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? CC_ERR_IO : 0;
}

void wrk_unwatch(const struct worker *w, int fd)
{
	epoll_ctl(w->epfd, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- for the thread ---- */

void wrk_notify(struct worker *w, uint64_t event, bool wake)
{
	/* The loop empties this ring whenever it runs. */
	while (!cc_spsc_push(&w->events, event)) {
		ring_fd(w->event_fd);
		sched_yield();
	}
	if (wake)
		ring_fd(w->event_fd);
}

int wrk_wait(struct worker *w, struct epoll_event *ev, int max, int timeout_ms)
{
	int n = epoll_wait(w->epfd, ev, max, timeout_ms);

	wrk_stay_awake(w);
	return n;
}

bool wrk_is_wake(const struct worker *w, const struct epoll_event *ev)
{
	uint64_t count;

	if (ev->data.u64 != WRK_DATA_WAKE)
		return false;
	if (read(w->wake_fd, &count, sizeof count) < 0)
		return true; /* nothing to take, but the thread is awake */
	return true;
}
