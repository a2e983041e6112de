/* SPDX-License-Identifier: MIT
 *
 * The shared-state engine: the functions that the event loop calls, and the main loop of the
 * engine's thread.
 */
#include "pcclagentd/state/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "pcclagentd/state/fetch.h"
#include "pcclagentd/state/job.h"
#include "pcclagentd/state/member.h"
#include "pcclagentd/state/narrow.h"
#include "pcclagentd/state/pool.h"
#include "pcclagentd/state/serve.h"
#include "pcclagentd/state/ste_internal.h"
#include "pcclagentd/state/stream.h"
#include "pcclagentd/state/window.h"
#include "proto/wire_state.h"

#define EPOLL_MAX 64
#define RING      (4 * STE_JOBS_MAX + 2 * STE_CONNS_MAX)
#define TICK_NS   STE_MS(1000)

enum command { CMD_START = 0, CMD_CANCEL, CMD_DROP, CMD_CONN, CMD_QUIT };

/* ---- the thread ---- */

void ste_notify(struct ste_job *j, enum ste_note note)
{
	struct ste *e = j->e; /* the loop may free the job as soon as it has the last note */

	/* At most three notes of a job wait, so the ring never gets full. */
	if (note == STE_NOTE_MEMBERS && atomic_exchange(&j->members_told, true))
		return;
	wrk_notify(&e->worker, wrk_pack_ptr(j, note), true);
}

int ste_watch(struct ste *e, struct ste_fd *f, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = f};
	bool added = f->events != 0;

	if (f->events == (events | EPOLLERR))
		return 0;
	/* epoll always reports EPOLLERR; without it, 0 would mean: not added */
	f->events = events | EPOLLERR;
	return epoll_ctl(e->worker.epfd, added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, f->fd, &ev) < 0
		       ? CC_ERR_IO
		       : 0;
}

static void forget_job(struct ste *e, struct ste_job *j)
{
	struct ste_job **p = &e->jobs;

	while (*p != j)
		p = &(*p)->next;
	*p = j->next;
	j->over = true;
	for (uint32_t i = 0; i < j->n_peers; i++)
		(void)ste_window_acks(j, &j->peers[i]); /* counts what was written */
	ste_pool_settle(e);
	ste_fetch_end(j);
	ste_conns_forget(e, j, NULL);
}

static void run_commands(struct ste *e)
{
	struct ste_peer *p;
	uint64_t v;

	while (cc_spsc_pop(&e->worker.commands, &v)) {
		struct ste_job *j = wrk_ptr(v);

		switch ((enum command)wrk_type(v)) {
		case CMD_START:
			j->next = e->jobs;
			e->jobs = j;
			if (j->seq > e->last_seq)
				e->last_seq = j->seq;
			ste_job_begin(j);
			break;
		case CMD_CANCEL:
			forget_job(e, j);
			ste_notify(j, STE_NOTE_CANCELLED);
			break;
		case CMD_DROP:
			p = wrk_ptr(v);
			ste_peer_drop(p->j, p);
			break;
		case CMD_CONN:
			ste_conn_add(e, wrk_ptr(v));
			break;
		case CMD_QUIT:
			e->quit = true;
			break;
		}
	}
}

/* Frees closed streams and connections. No unhandled epoll event can point to them now. */
static void free_closed(struct ste *e)
{
	while (e->closed_streams) {
		struct ste_stream *s = e->closed_streams;

		e->closed_streams = s->next;
		free(s);
	}
	ste_conns_free_closed(e);
}

static void handle(struct ste *e, struct ste_fd *f, uint32_t events)
{
	if (f->fd < 0)
		return;
	switch ((enum ste_fd_kind)f->kind) {
	case STE_FD_BELL:
		break;
	case STE_FD_STREAM:
		ste_stream_ready((struct ste_stream *)(void *)f, events);
		break;
	case STE_FD_CONN:
		ste_conn_ready(e, (struct ste_conn *)(void *)f, events);
		break;
	}
}

static bool run_jobs(struct ste *e)
{
	bool busy = false;

	for (struct ste_job *j = e->jobs; j; j = j->next)
		busy |= ste_job_step(j);
	ste_conns_step(e);
	return busy;
}

/* Returns the milliseconds after which the thread runs without a wake-up; -1: never. */
static int timeout(struct ste *e)
{
	uint64_t next = UINT64_MAX;

	if (e->conns)
		next = e->now_ns + TICK_NS;
	for (struct ste_job *j = e->jobs; j; j = j->next) {
		uint64_t t = e->now_ns + TICK_NS;

		if (j->fetching && !j->over)
			t = ste_fetch_next_ns(j);
		if (t < next)
			next = t;
	}
	return next == UINT64_MAX ? -1 : (int)((next - e->now_ns + 999999) / 1000000);
}

/* May the thread sleep? Announces that it sleeps, then checks for work that came before the
 * announcement, because nobody wakes the thread for such work. */
static bool may_sleep(struct ste *e)
{
	bool found = !wrk_may_sleep(&e->worker);

	for (struct ste_job *j = e->jobs; j; j = j->next)
		for (uint32_t i = 0; i < j->n_peers; i++)
			found |= ste_window_sleep(&j->peers[i]);
	if (!found && !ste_pool_has_done(e))
		return true;
	wrk_stay_awake(&e->worker);
	return false;
}

static void *thread_main(void *arg)
{
	struct epoll_event ev[EPOLL_MAX];
	struct ste *e = arg;
	int n;

	e->looked_ns = cc_now_ns();
	for (;;) {
		bool busy;

		e->now_ns = cc_now_ns();
		run_commands(e);
		if (e->quit)
			break;
		busy = ste_pool_collect(e);
		busy |= run_jobs(e);
		busy |= ste_pool_help(e);
		ste_pool_tick(e);
		ste_conns_tick(e);
		e->looked_ns = e->now_ns;
		n = wrk_wait(&e->worker, ev, EPOLL_MAX, !busy && may_sleep(e) ? timeout(e) : 0);
		e->now_ns = cc_now_ns();
		for (int i = 0; i < n; i++)
			if (!wrk_is_wake(&e->worker, &ev[i]))
				handle(e, ev[i].data.ptr, ev[i].events);
		free_closed(e);
	}
	while (e->jobs)
		forget_job(e, e->jobs);
	while (e->conns)
		ste_conn_close(e, e->conns);
	free_closed(e);
	ste_pool_end(e);
	return NULL;
}

/* ---- called by the event loop ---- */

static void command(struct ste *e, const void *p, enum command c)
{
	wrk_command(&e->worker, wrk_pack_ptr(p, c), true);
}

static int start_thread(struct ste *e)
{
	e->busy_ns = cc_now_ns();
	if (e->worker.running)
		return 0;
	e->quit = false;
	e->next_conn = 0;
	return wrk_start(&e->worker, "pccl-state", thread_main, e);
}

static void stop_thread(struct ste *e)
{
	wrk_end(&e->worker, wrk_pack_ptr(NULL, CMD_QUIT));
}

void ste_set_bounds(struct ste *e, const struct cc_bounds *b)
{
	for (int i = 0; i < CC_BOUNDS; i++)
		atomic_store_explicit(&e->bounds_ms[i], b->ms[i], memory_order_relaxed);
}

struct ste *ste_new(const struct ste_config *cfg, int event_fd)
{
	struct ste *e = aligned_alloc(64, (sizeof *e + 63) / 64 * 64);
	struct cc_bounds usual = {{0}};
	int error;

	if (!e)
		return NULL;
	memset(e, 0, sizeof *e);
	e->cfg = *cfg;
	cc_bounds_complete(&usual);
	ste_set_bounds(e, &usual);
	if (e->cfg.streams < 1 || e->cfg.streams > STE_STREAMS_MAX)
		e->cfg.streams = STE_STREAMS;
	if (e->cfg.hashes < 1 || e->cfg.hashes > WST_HASHES_MAX)
		e->cfg.hashes = WST_HASHES_MAX;
	if (e->cfg.idle_ms == 0)
		e->cfg.idle_ms = STE_IDLE_MS;
	e->bell = (struct ste_fd){.kind = STE_FD_BELL};
	e->drain = malloc((size_t)WST_BLOCK_MAX * WIRE_LEAF);
	e->narrow = ste_narrow_new();
	e->pool = ste_pool_new(e->cfg.pool);
	if (!e->narrow || !e->pool || !e->drain || wrk_init(&e->worker, RING, event_fd) < 0) {
		error = errno;
		ste_free(e);
		errno = error;
		return NULL;
	}
	return e;
}

static void bury(struct ste *e)
{
	ste_job_free(e->dead);
	e->dead = NULL;
}

void ste_free(struct ste *e)
{
	if (!e)
		return;
	stop_thread(e);
	bury(e);
	while (e->l_jobs) {
		struct ste_job *j = e->l_jobs;

		e->l_jobs = j->l_next;
		ste_job_free(j);
	}
	ste_pool_free(e->pool);
	wrk_destroy(&e->worker);
	free(e->narrow);
	free(e->drain);
	free(e);
}

int ste_bell_add(struct ste *e, int fd)
{
	return wrk_watch(&e->worker, fd, EPOLLIN | EPOLLET, (uint64_t)(uintptr_t)&e->bell);
}

void ste_bell_remove(struct ste *e, int fd)
{
	wrk_unwatch(&e->worker, fd);
}

bool ste_has_room(const struct ste *e)
{
	return atomic_load_explicit(&e->n_conns, memory_order_relaxed) < STE_CONNS_MAX;
}

int ste_add_stream(struct ste *e, int fd, uint64_t features, uint64_t seq)
{
	struct ste_conn *c;
	int err = CC_ERR_LIMIT;

	if (!ste_has_room(e))
		goto err;
	err = start_thread(e);
	if (err < 0)
		goto err;
	err = CC_ERR_NOMEM;
	c = ste_conn_new(e, fd, features, seq);
	if (!c)
		goto err;
	atomic_fetch_add_explicit(&e->n_conns, 1, memory_order_relaxed);
	command(e, c, CMD_CONN);
	return 0;
err:
	close(fd);
	return err;
}

void ste_tick(struct ste *e)
{
	uint64_t now = cc_now_ns();

	if (e->n_jobs > 0 || atomic_load_explicit(&e->n_conns, memory_order_relaxed) > 0)
		e->busy_ns = now;
	else if (now - e->busy_ns > STE_MS(e->cfg.idle_ms))
		stop_thread(e);
}

bool ste_is_running(const struct ste *e)
{
	return e->worker.running;
}

uint64_t ste_copied(const struct ste *e)
{
	return ste_pool_copied(e->pool);
}

static struct ste_job *find(struct ste *e, uint64_t seq)
{
	struct ste_job *j = e->l_jobs;

	while (j && j->seq != seq)
		j = j->l_next;
	return j;
}

int ste_start(struct ste *e, const struct ste_spec *spec)
{
	struct ste_job *j;
	int err;

	if (spec->n_members < 1 || spec->n_members > STE_MEMBERS_MAX ||
		spec->n_sources > STE_SOURCES_MAX || e->n_jobs >= STE_JOBS_MAX)
		return CC_ERR_LIMIT;
	if (find(e, spec->seq))
		return CC_ERR_EXIST;
	err = ste_job_new(e, spec, &j);
	if (err < 0)
		return err;
	err = start_thread(e);
	if (err < 0) {
		ste_job_free(j);
		return err;
	}
	j->l_next = e->l_jobs;
	e->l_jobs = j;
	e->n_jobs++;
	command(e, j, CMD_START);
	return 0;
}

void ste_cancel(struct ste *e, uint64_t seq)
{
	struct ste_job *j = find(e, seq);

	if (!j || j->cancelling)
		return;
	j->cancelling = true;
	command(e, j, CMD_CANCEL);
}

void ste_drop(struct ste *e, uint64_t seq, uint32_t member)
{
	struct ste_job *j = find(e, seq);

	if (j && !j->cancelling && member < j->n_peers)
		command(e, &j->peers[member], CMD_DROP);
}

static void unlink_job(struct ste *e, struct ste_job *j)
{
	struct ste_job **p = &e->l_jobs;

	while (*p != j)
		p = &(*p)->l_next;
	*p = j->l_next;
	e->n_jobs--;
	e->busy_ns = cc_now_ns();
}

bool ste_next_event(struct ste *e, struct ste_event *ret)
{
	uint64_t v;

	bury(e);
	while (wrk_next_event(&e->worker, &v)) {
		struct ste_job *j = wrk_ptr(v);
		enum ste_note note = (enum ste_note)wrk_type(v);

		if (j->cancelling && note != STE_NOTE_CANCELLED)
			continue;
		*ret = (struct ste_event){.seq = j->seq};
		switch (note) {
		case STE_NOTE_DONE:
			ret->type = STE_DONE;
			break;
		case STE_NOTE_FAILED:
			ret->type = STE_FAILED;
			ret->suspect = j->suspect;
			ret->exhausted = j->exhausted;
			memcpy(ret->text, j->text, sizeof ret->text);
			break;
		case STE_NOTE_CANCELLED:
			ret->type = STE_CANCELLED;
			unlink_job(e, j);
			e->dead = j;
			break;
		case STE_NOTE_MEMBERS:
			ret->type = STE_MEMBERS;
			/* Later changes cause another note. */
			atomic_store(&j->members_told, false);
			break;
		}
		return true;
	}
	return false;
}

/* ---- views ---- */

/* Finds a job, also the cancelled job that is freed with the next event. */
static const struct ste_job *find_any(struct ste *e, uint64_t seq)
{
	return e->dead && e->dead->seq == seq ? e->dead : find(e, seq);
}

bool ste_get_member(struct ste *e, uint64_t seq, uint32_t member, struct ste_member_view *ret)
{
	const struct ste_job *j = find_any(e, seq);
	const struct ste_peer *p;

	if (!j || member >= j->n_peers)
		return false;
	p = &j->peers[member];
	*ret = (struct ste_member_view){
		.complete = atomic_load_explicit(&p->complete, memory_order_acquire),
		.failed = atomic_load_explicit(&p->failed, memory_order_acquire),
		.dropped = atomic_load_explicit(&p->dropped, memory_order_acquire),
		.tx_bytes = atomic_load_explicit(&p->tx_bytes, memory_order_relaxed),
		.rx_bytes = atomic_load_explicit(&p->rx_bytes, memory_order_relaxed),
		.bytes = atomic_load_explicit(&p->total, memory_order_relaxed),
	};
	if (ret->failed)
		memcpy(ret->text, p->text, sizeof ret->text);
	return true;
}

bool ste_get_source(struct ste *e, uint64_t seq, uint32_t source, struct ste_source_view *ret)
{
	const struct ste_job *j = find_any(e, seq);
	const struct ste_src *src;

	if (!j || source >= j->n_srcs)
		return false;
	src = &j->srcs[source];
	*ret = (struct ste_source_view){
		.up = atomic_load_explicit(&src->n_up, memory_order_relaxed) > 0,
		.lost = atomic_load_explicit(&src->lost, memory_order_acquire),
		.not_begun = atomic_load_explicit(&src->not_yet, memory_order_relaxed) > 0,
		.bytes = atomic_load_explicit(&src->bytes, memory_order_relaxed),
	};
	if (ret->lost)
		memcpy(ret->text, src->text, sizeof ret->text);
	return true;
}

bool ste_next_diff(
	struct ste *e, uint64_t seq, uint32_t member, uint32_t from, struct ste_diff *ret)
{
	const struct ste_job *j = find_any(e, seq);
	const struct ste_diffs *v = j && member < j->n_peers ? j->peers[member].diffs : NULL;
	uint32_t t = from;

	while (v && t < j->n_tensors && !atomic_load_explicit(&v[t].differs, memory_order_relaxed))
		t++;
	if (!v || t >= j->n_tensors)
		return false;
	*ret = (struct ste_diff){
		.tensor = t, .of = atomic_load_explicit(&v[t].of, memory_order_acquire)};
	ret->leaves = atomic_load_explicit(&v[t].leaves, memory_order_relaxed);
	ret->bytes = atomic_load_explicit(&v[t].bytes, memory_order_relaxed);
	ret->done = atomic_load_explicit(&v[t].done, memory_order_relaxed);
	return true;
}

const uint64_t *ste_get_hashes(struct ste *e, uint64_t seq)
{
	const struct ste_job *j = e->dead;

	return j && j->seq == seq && j->have_want ? j->want : NULL;
}

bool ste_get_progress(struct ste *e, uint64_t seq, struct ste_progress *ret)
{
	const struct ste_job *j = find_any(e, seq);

	if (!j)
		return false;
	*ret = (struct ste_progress){
		.phase = (enum ste_phase)atomic_load_explicit(&j->phase, memory_order_relaxed),
		.bytes = atomic_load_explicit(&j->total, memory_order_relaxed),
		.done = atomic_load_explicit(&j->done, memory_order_relaxed),
		.rate = atomic_load_explicit(&j->rate, memory_order_relaxed),
		.net_rx_bytes = atomic_load_explicit(&j->net_rx, memory_order_relaxed),
		.net_tx_bytes = atomic_load_explicit(&j->net_tx, memory_order_relaxed),
		.moved = atomic_load_explicit(&j->moved, memory_order_relaxed),
		.waits_for = atomic_load_explicit(&j->waits_for, memory_order_relaxed),
	};
	for (uint32_t i = 0; i < j->n_srcs; i++)
		ret->sources += atomic_load_explicit(&j->srcs[i].n_up, memory_order_relaxed) > 0;
	return true;
}
