/* SPDX-License-Identifier: MIT */
#include "tests/cuda/double_inner.h"

#include <signal.h>
#include <stdlib.h>

pthread_mutex_t dbl_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t dbl_changed = PTHREAD_COND_INITIALIZER;

static struct dbl_stream *streams;
static bool lazy;
static unsigned waiting; /* threads in dbl_stream_await */

static bool is_ready(const struct dbl_stream *s)
{
	const struct dbl_work *w = s->first;

	if (!w || ((s->held || (lazy && waiting == 0)) && s->ctx->sticky == CUDA_SUCCESS))
		return false;
	for (size_t i = 0; i < w->n_waits; i++)
		if (w->waits[i].stream->done < w->waits[i].done)
			return false;
	return true;
}

void dbl_streams_wake(void)
{
	for (struct dbl_stream *s = streams; s; s = s->next)
		pthread_cond_signal(&s->wake);
	pthread_cond_broadcast(&dbl_changed);
}

/* Wakes the threads that wait for the end of a work. */
static void work_is_over(void)
{
	for (struct dbl_stream *s = streams; s; s = s->next)
		if (s->first && s->first->n_waits > 0)
			pthread_cond_signal(&s->wake);
	pthread_cond_broadcast(&dbl_changed);
}

static struct dbl_work *take(struct dbl_stream *s)
{
	struct dbl_work *w = s->first;

	s->first = w->next;
	if (!s->first)
		s->last = &s->first;
	return w;
}

static void *serve(void *arg)
{
	struct dbl_stream *s = arg;

	pthread_mutex_lock(&dbl_lock);
	while (!s->destroyed || s->first) {
		struct dbl_work *w;
		bool dropped;

		if (!is_ready(s)) {
			pthread_cond_wait(&s->wake, &dbl_lock);
			continue;
		}
		w = take(s);
		dropped = !w->run || s->ctx->sticky != CUDA_SUCCESS;
		if (!dropped) {
			s->running = w;
			pthread_mutex_unlock(&dbl_lock);
			w->run(w);
			pthread_mutex_lock(&dbl_lock);
			s->running = NULL;
		}
		s->done++;
		free(w->waits);
		free(w);
		work_is_over();
	}
	pthread_mutex_unlock(&dbl_lock);
	return NULL;
}

struct dbl_stream *dbl_stream_new(struct dbl_context *ctx, bool blocking)
{
	struct dbl_stream *s = calloc(1, sizeof *s);
	sigset_t all, old;
	pthread_t thread;
	int error;

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->blocking = blocking;
	s->last = &s->first;
	pthread_cond_init(&s->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	error = pthread_create(&thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0) {
		free(s);
		return NULL;
	}
	pthread_detach(thread);
	s->next = streams;
	streams = s;
	return s;
}

void dbl_stream_await(const struct dbl_stream *s, uint64_t done)
{
	waiting++;
	if (lazy)
		dbl_streams_wake();
	while (s->done < done)
		pthread_cond_wait(&dbl_changed, &dbl_lock);
	waiting--;
}

void dbl_streams_lazy(bool on)
{
	lazy = on;
	dbl_streams_wake();
}

static bool touches(const struct dbl_work *w, const uint8_t *at, size_t n)
{
	const uint8_t *to = w->to, *from = w->from;

	return (to && to < at + n && at < to + w->n) || (from && from < at + n && at < from + w->n);
}

bool dbl_streams_use(const void *at, size_t n)
{
	for (const struct dbl_stream *s = streams; s; s = s->next) {
		bool use = s->running && touches(s->running, at, n);

		/* After a sticky error the work that is queued is dropped. */
		for (const struct dbl_work *w = s->first; w && !use; w = w->next)
			use = s->ctx->sticky == CUDA_SUCCESS && touches(w, at, n);
		if (use)
			return true;
	}
	return false;
}

static void add_wait(struct dbl_work *w, const struct dbl_stream *s, uint64_t done)
{
	struct dbl_wait *grown;

	if (s->done >= done)
		return;
	grown = realloc(w->waits, (w->n_waits + 1) * sizeof *grown);
	if (!grown)
		abort();
	grown[w->n_waits++] = (struct dbl_wait){.stream = s, .done = done};
	w->waits = grown;
}

void dbl_stream_add(struct dbl_stream *s, const struct dbl_work *w)
{
	struct dbl_work *own = malloc(sizeof *own);
	const struct dbl_stream *legacy = s->ctx->legacy;

	if (!own)
		abort();
	*own = *w;
	own->next = NULL;
	if (s == legacy) {
		for (const struct dbl_stream *o = streams; o; o = o->next)
			if (o->ctx == s->ctx && o->blocking && o != s)
				add_wait(own, o, o->queued);
	} else if (s->blocking && legacy) {
		add_wait(own, legacy, legacy->queued);
	}
	*s->last = own;
	s->last = &own->next;
	s->queued++;
	pthread_cond_signal(&s->wake);
}

void dbl_streams_drain(const struct dbl_context *ctx)
{
	for (struct dbl_stream *s = streams; s; s = s->next)
		if (!ctx || s->ctx == ctx)
			dbl_stream_await(s, s->queued);
}

void dbl_streams_forget(void)
{
	streams = NULL;
}
