/* SPDX-License-Identifier: MIT
 *
 * The functions of the engine that the event loop calls, and functions with which both threads
 * sleep, wake and send events.
 */
#include "pcclagentd/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "pcclagentd/engine/eng_internal.h"

#define ENG_RING 4096u

/* User data of epoll events. Every other value is the address of a stream. */
#define DATA_BELL ((uint64_t)1)

void eng_close_link(struct eng_thread *t, uint32_t link)
{
	struct eng_stream **p = &t->streams;

	while (*p) {
		struct eng_stream *s = *p;

		if (s->link != link) {
			p = &s->next;
			continue;
		}
		*p = s->next;
		if (s->stalled)
			t->e->n_stalled--;
		if (s->blocked)
			t->e->n_blocked_streams--;
		close(s->fd);
		s->fd = -1;
		s->next = t->closed;
		t->closed = s;
	}
}

/* Frees closed streams. No unhandled epoll event can point to them now. */
static void free_closed(struct eng_thread *t)
{
	while (t->closed) {
		struct eng_stream *s = t->closed;

		t->closed = s->next;
		free(s->tail_buf);
		free(s->partial);
		free(s);
	}
}

static void break_link(struct eng_thread *t, struct eng_broken how, const char *why)
{
	struct eng_broken *b = malloc(sizeof *b);

	eng_close_link(t, how.link);
	if (!b)
		/* Without the event nobody would end the link. */
		cc_limit_end("events of the engine");
	*b = how;
	snprintf(b->text, sizeof b->text, "%s", why);
	wrk_notify(&t->worker, wrk_pack_ptr(b, ENG_NOTE_BROKEN), true);
}

void eng_break_link(struct eng_thread *t, uint32_t link, const char *why)
{
	break_link(t, (struct eng_broken){.link = link}, why);
}

void eng_end_link(struct eng_thread *t, uint32_t link)
{
	break_link(
		t, (struct eng_broken){.link = link, .ended = true}, "closed by the other agent");
}

void eng_give_up_link(struct eng_thread *t, uint32_t link, uint32_t silent_ms)
{
	char why[64];

	snprintf(why, sizeof why, "nothing was received from the other host for %.1f s",
		(double)silent_ms / 1000);
	break_link(t, (struct eng_broken){.link = link, .silent = true}, why);
}

void eng_give_up_stuck_link(struct eng_thread *t, uint32_t link)
{
	break_link(t, (struct eng_broken){.link = link, .stuck = true}, FLOW_STUCK_TEXT);
}

int eng_thread_wait(struct eng_thread *t, int timeout_ms)
{
	struct epoll_event ev[ENG_EPOLL_MAX];
	int n = wrk_wait(&t->worker, ev, ENG_EPOLL_MAX, timeout_ms);

	for (int i = 0; i < n; i++) {
		struct eng_stream *s = ev[i].data.ptr;

		if (wrk_is_wake(&t->worker, &ev[i]) || ev[i].data.u64 == DATA_BELL)
			continue;
		if (s->fd >= 0)
			t->role->on_ready(t, s, ev[i].events);
	}
	free_closed(t);
	return n;
}

static void take_stream(struct eng_thread *t, struct eng_stream *s)
{
	s->next = t->streams;
	t->streams = s;
	if (wrk_watch(&t->worker, s->fd, t->role->stream_events, (uint64_t)(uintptr_t)s) < 0)
		eng_break_link(t, s->link, strerror(errno));
}

void eng_tell_heard(struct eng_thread *t, uint32_t link)
{
	uint32_t least = ENG_HEARD_MS_MAX;
	bool any = false, congested = false;

	for (const struct eng_stream *s = t->streams; s; s = s->next) {
		uint32_t ms = s->silent_ms > s->path_ms ? s->silent_ms - s->path_ms : 0;

		if (s->link != link)
			continue;
		least = ms < least ? ms : least;
		congested = congested || (s->tx && s->busy && !s->writable);
		any = true;
	}
	if (any)
		wrk_notify(&t->worker,
			wrk_pack_num(eng_heard(link, least, congested), ENG_NOTE_HEARD), true);
}

bool eng_run_commands(struct eng_thread *t)
{
	bool any = false;
	uint64_t c;

	while (cc_spsc_pop(&t->worker.commands, &c)) {
		any = true;
		switch ((enum eng_command)wrk_type(c)) {
		case ENG_CMD_START:
			t->role->start(t, wrk_ptr(c));
			break;
		case ENG_CMD_FORGET:
			t->role->forget(t, wrk_ptr(c));
			break;
		case ENG_CMD_STREAM:
			take_stream(t, wrk_ptr(c));
			break;
		case ENG_CMD_DROP:
			eng_close_link(t, (uint32_t)wrk_num(c));
			break;
		case ENG_CMD_SKIP: /* only in the RX thread */
			if (wrk_num(c) > t->e->last_seq)
				t->e->last_seq = wrk_num(c);
			break;
		case ENG_CMD_PROBE:
			eng_tell_heard(t, (uint32_t)wrk_num(c));
			break;
		case ENG_CMD_LOOK:
			eng_look_at_streams(t, wrk_num(c));
			break;
		case ENG_CMD_QUIT:
			t->quit = true;
			break;
		}
	}
	return any;
}

static int thread_init(
	struct eng *e, struct eng_thread *t, const struct eng_role *role, int event_fd)
{
	t->e = e;
	t->role = role;
	return wrk_init(&t->worker, ENG_RING, event_fd);
}

static int thread_start(struct eng_thread *t)
{
	return wrk_start(&t->worker, t->role->name, t->role->main, t);
}

static void thread_end(struct eng_thread *t)
{
	wrk_end(&t->worker, wrk_pack_num(0, ENG_CMD_QUIT));
	while (t->streams)
		eng_close_link(t, t->streams->link);
	free_closed(t);
}

/* Sends a command to both threads. `wake`: false if there is no hurry. */
static void command_both(struct eng *e, uint64_t cmd, bool wake)
{
	wrk_command(&e->rx.worker, cmd, wake);
	wrk_command(&e->tx.worker, cmd, wake);
}

void eng_set_bounds(struct eng *e, const struct cc_bounds *b)
{
	for (int i = 0; i < CC_BOUNDS; i++)
		atomic_store_explicit(&e->bounds_ms[i], b->ms[i], memory_order_relaxed);
}

static void destroy(struct eng *e)
{
	wrk_destroy(&e->rx.worker);
	wrk_destroy(&e->tx.worker);
	eng_quant_buffers_free(&e->rx.quant);
	eng_quant_buffers_free(&e->tx.quant);
	free(e->sum);
	free(e);
}

struct eng *eng_new(int event_fd)
{
	struct eng *e = aligned_alloc(64, (sizeof *e + 63) / 64 * 64);
	struct cc_bounds usual = {{0}};
	int error;

	if (!e)
		return NULL;
	memset(e, 0, sizeof *e);
	e->set_ns = ENG_SET_NS;
	cc_bounds_complete(&usual);
	eng_set_bounds(e, &usual);
	e->sum = aligned_alloc(64, CC_PLAN_SEGMENT_MAX);
	if (e->sum && thread_init(e, &e->rx, &eng_rx_role, event_fd) == 0 &&
		thread_init(e, &e->tx, &eng_tx_role, event_fd) == 0 && thread_start(&e->rx) == 0 &&
		thread_start(&e->tx) == 0)
		return e;
	error = errno;
	thread_end(&e->rx);
	destroy(e);
	errno = error;
	return NULL;
}

static void free_list(struct eng_xfer *x)
{
	while (x) {
		struct eng_xfer *next = x->next;

		eng_xfer_free(x);
		x = next;
	}
}

static bool next_note(struct eng *e, uint64_t *ret)
{
	return wrk_next_event(&e->rx.worker, ret) || wrk_next_event(&e->tx.worker, ret);
}

void eng_free(struct eng *e)
{
	uint64_t v;

	if (!e)
		return;
	thread_end(&e->rx);
	thread_end(&e->tx);
	while (next_note(e, &v))
		if (wrk_type(v) == ENG_NOTE_BROKEN || wrk_type(v) == ENG_NOTE_RATE)
			free(wrk_ptr(v));
	free_list(e->xfers);
	free_list(e->free_xfers);
	destroy(e);
}

int eng_bell_add(struct eng *e, int fd)
{
	if (wrk_watch(&e->rx.worker, fd, EPOLLIN | EPOLLET, DATA_BELL) < 0)
		return CC_ERR_IO;
	if (wrk_watch(&e->tx.worker, fd, EPOLLIN | EPOLLET, DATA_BELL) < 0) {
		wrk_unwatch(&e->rx.worker, fd);
		return CC_ERR_IO;
	}
	return 0;
}

void eng_bell_remove(struct eng *e, int fd)
{
	wrk_unwatch(&e->rx.worker, fd);
	wrk_unwatch(&e->tx.worker, fd);
}

static int add_stream(struct eng_thread *t, uint32_t link, const struct cc_id *from, int fd,
	bool tx, uint32_t set)
{
	struct eng_stream *s = malloc(sizeof *s);

	if (!s) {
		close(fd);
		return CC_ERR_NOMEM;
	}
	memset(s, 0, sizeof *s);
	s->partial = aligned_alloc(64, ENG_BUFFER_BYTES);
	if (!s->partial) {
		free(s);
		close(fd);
		return CC_ERR_NOMEM;
	}
	s->fd = fd;
	s->link = link;
	if (from)
		s->from = *from;
	s->tx = tx;
	s->writable = tx;
	s->set = set;
	eng_tune(fd);
	wrk_command(&t->worker, wrk_pack_ptr(s, ENG_CMD_STREAM), true);
	return 0;
}

int eng_add_tx_stream(struct eng *e, uint32_t link, int fd, uint32_t set)
{
	return add_stream(&e->tx, link, NULL, fd, true, set);
}

int eng_add_rx_stream(struct eng *e, uint32_t link, const struct cc_id *from, int fd)
{
	return add_stream(&e->rx, link, from, fd, false, ENG_NO_SET);
}

void eng_drop_link(struct eng *e, uint32_t link)
{
	command_both(e, wrk_pack_num(link, ENG_CMD_DROP), true);
}

void eng_skip(struct eng *e, uint64_t seq)
{
	wrk_command(&e->rx.worker, wrk_pack_num(seq, ENG_CMD_SKIP), true);
}

void eng_probe(struct eng *e, uint32_t link)
{
	command_both(e, wrk_pack_num(link, ENG_CMD_PROBE), true);
}

void eng_look(struct eng *e, bool starts)
{
	command_both(e, wrk_pack_num(starts, ENG_CMD_LOOK), true);
}

static struct eng_xfer *find(const struct eng *e, uint64_t seq)
{
	for (struct eng_xfer *x = e->xfers; x; x = x->next)
		if (x->spec.seq == seq && !x->released)
			return x;
	return NULL;
}

/* Takes a free object, if possible with large enough arrays, or makes a new one. */
static struct eng_xfer *take_free(struct eng *e, uint32_t segs)
{
	struct eng_xfer **p, **best = NULL, *x;

	for (p = &e->free_xfers; *p; p = &(*p)->next)
		if (!best || ((*p)->cap_segs >= segs && (*best)->cap_segs < segs))
			best = p;
	if (!best)
		return eng_xfer_new();
	x = *best;
	*best = x->next;
	return x;
}

int eng_start(struct eng *e, const struct eng_xfer_spec *spec)
{
	struct eng_xfer *x;
	int err;

	if (find(e, spec->seq))
		return CC_ERR_EXIST;
	if (spec->segment_max > CC_PLAN_SEGMENT_MAX)
		return CC_ERR_LIMIT;
	if (spec->quant.on && (eng_quant_buffers_new(&e->rx.quant) < 0 ||
				      eng_quant_buffers_new(&e->tx.quant) < 0))
		return CC_ERR_NOMEM;
	x = take_free(e, spec->plan.n_segs);
	if (!x)
		return CC_ERR_NOMEM;
	err = eng_xfer_setup(x, spec);
	if (err < 0) {
		eng_xfer_free(x);
		return err;
	}
	x->next = e->xfers;
	e->xfers = x;
	command_both(e, wrk_pack_ptr(x, ENG_CMD_START), true);
	return 0;
}

static void forget(struct eng *e, struct eng_xfer *x, bool wake)
{
	x->acks_awaited = 2;
	command_both(e, wrk_pack_ptr(x, ENG_CMD_FORGET), wake);
}

void eng_cancel(struct eng *e, uint64_t seq)
{
	struct eng_xfer *x = find(e, seq);

	if (!x || x->cancelled)
		return;
	x->cancelled = true;
	forget(e, x, true);
}

static void recycle(struct eng *e, struct eng_xfer *x)
{
	struct eng_xfer **p = &e->xfers;

	while (*p != x)
		p = &(*p)->next;
	*p = x->next;
	x->next = e->free_xfers;
	e->free_xfers = x;
}

void eng_release(struct eng *e, uint64_t seq)
{
	struct eng_xfer *x = find(e, seq);

	if (!x)
		return;
	x->released = true;
	if (!x->cancelled)
		/* The transfer is done, and the threads no longer use it. So there is no hurry. */
		forget(e, x, false);
	else if (x->acks_awaited == 0)
		recycle(e, x);
}

static bool xfer_event(struct eng *e, struct eng_xfer *x, unsigned note, struct eng_event *ret)
{
	if (note == ENG_NOTE_DONE) {
		if (x->cancelled || x->released)
			return false;
		x->done = true;
		ret->type = ENG_XFER_DONE;
	} else {
		if (--x->acks_awaited > 0)
			return false;
		if (x->released) {
			recycle(e, x);
			return false;
		}
		ret->type = ENG_XFER_CANCELLED;
	}
	ret->seq = x->spec.seq;
	ret->tx_bytes = atomic_load_explicit(&x->tx_bytes, memory_order_relaxed);
	ret->rx_bytes = atomic_load_explicit(&x->rx_bytes, memory_order_relaxed);
	return true;
}

static void link_heard(uint64_t heard, struct eng_event *ret)
{
	ret->type = ENG_LINK_HEARD;
	ret->heard_ms = heard & ENG_HEARD_MS_MAX;
	ret->congested = heard >> ENG_HEARD_MS_BITS & 1;
	ret->link = (uint32_t)(heard >> (ENG_HEARD_MS_BITS + 1));
}

static void link_broken(struct eng_broken *b, struct eng_event *ret)
{
	ret->type = ENG_LINK_BROKEN;
	ret->link = b->link;
	ret->silent = b->silent;
	ret->ended = b->ended;
	ret->stuck = b->stuck;
	memcpy(ret->text, b->text, sizeof b->text);
	free(b);
}

static void link_rate(struct eng_carried *c, struct eng_event *ret)
{
	ret->type = ENG_LINK_RATE;
	ret->link = c->link;
	ret->rate = c->rate;
	ret->trip_us = c->trip_us;
	free(c);
}

bool eng_next_event(struct eng *e, struct eng_event *ret)
{
	uint64_t v;

	while (next_note(e, &v)) {
		memset(ret, 0, sizeof *ret);
		switch ((enum eng_note)wrk_type(v)) {
		case ENG_NOTE_BROKEN:
			link_broken(wrk_ptr(v), ret);
			return true;
		case ENG_NOTE_HEARD:
			link_heard(wrk_num(v), ret);
			return true;
		case ENG_NOTE_RATE:
			link_rate(wrk_ptr(v), ret);
			return true;
		case ENG_NOTE_DONE:
		case ENG_NOTE_ACK:
			if (xfer_event(e, wrk_ptr(v), wrk_type(v), ret))
				return true;
		}
	}
	return false;
}

/* Adds the bytes that the processes have copied. A process may write any number, so these numbers
 * are not reliable. */
static void add_input(const struct eng_xfer *x, struct eng_progress *ret)
{
	uint64_t least = x->bytes;

	ret->copying = ENG_NO_MEMBER;
	for (uint32_t i = 0; i < x->spec.n_members; i++) {
		const struct eng_member *m = &x->spec.members[i];
		uint64_t done = m->staged ? shm_slot_copied(m->slot) : x->bytes;

		ret->moved += done;
		if (done < least) {
			least = done;
			ret->copying = i;
		}
	}
}

/* Returns the hosts whose data is missing, see eng_progress.awaited. */
static uint64_t find_awaited(const struct eng_xfer *x)
{
	uint64_t ret = 0;

	for (uint32_t i = 0; i < ENG_WAITS * ENG_SENDERS; i++) {
		if (i % ENG_SENDERS == 0 && ret)
			break;
		if (atomic_load_explicit(&x->awaited[i], memory_order_relaxed) > 0)
			ret |= UINT64_C(1) << i % ENG_SENDERS;
	}
	return ret;
}

bool eng_get_progress(struct eng *e, uint64_t seq, struct eng_progress *ret)
{
	struct eng_xfer *x = find(e, seq);

	if (!x)
		return false;
	ret->segs = x->spec.plan.n_segs;
	ret->segs_done = atomic_load_explicit(&x->segs_final, memory_order_relaxed);
	ret->tx_bytes = atomic_load_explicit(&x->tx_bytes, memory_order_relaxed);
	ret->rx_bytes = atomic_load_explicit(&x->rx_bytes, memory_order_relaxed);
	ret->moved = ret->tx_bytes + ret->rx_bytes + ret->segs_done;
	ret->awaited = find_awaited(x);
	add_input(x, ret);
	return true;
}
