/* SPDX-License-Identifier: MIT
 *
 * The parts of the double of the driver (double.h). One lock guards everything.
 */
#ifndef TESTS_CUDA_DOUBLE_INNER_H
#define TESTS_CUDA_DOUBLE_INNER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/cuda/double.h"
#include "tests/cuda/emulate.h"

extern pthread_mutex_t dbl_lock;
extern pthread_cond_t dbl_changed; /* work is over */

struct dbl_context {
	int device;
	unsigned long long id;
	CUresult sticky; /* CUDA_SUCCESS, or what all calls return */
	bool destroyed;
	struct dbl_stream *legacy, *per_thread;
	struct dbl_context *next; /* of all contexts; they are never freed */
};

/* A stream. Its memory is never freed, since events refer to it. */
struct dbl_stream {
	struct dbl_context *ctx;
	bool blocking; /* waits for the legacy stream, and the legacy stream waits for it */
	bool held, destroyed;
	uint64_t queued, done; /* numbers of works */
	struct dbl_work *first, **last;
	const struct dbl_work *running; /* NULL: none */
	pthread_cond_t wake;            /* its thread may have something to do */
	struct dbl_stream *next;        /* of all streams */
};

/* What a stream has to do. */
struct dbl_work {
	void (*run)(const struct dbl_work *w); /* NULL for a work that only waits */
	void *to;
	const void *from;
	size_t n;
	size_t whole; /* the size of the memory that a copy reads or writes */
	int value;
	const struct emu_kernel *kernel;
	unsigned grid, block;
	size_t shared;
	void **args;
	struct dbl_wait { /* first wait until this stream has done so many works */
		const struct dbl_stream *stream;
		uint64_t done;
	} * waits;
	size_t n_waits;
	struct dbl_work *next;
};

struct dbl_event {
	const struct dbl_stream *stream; /* NULL: not recorded yet */
	uint64_t done;
	bool asked;             /* the last call of cuEventQuery found that it is not reached yet */
	struct dbl_event *next; /* of all events: those of a context that has failed remain */
};

/* ---- streams (double_work.c); all with the lock held */

struct dbl_stream *dbl_stream_new(struct dbl_context *ctx, bool blocking);
/* Waits until the stream has done this many works. */
void dbl_stream_await(const struct dbl_stream *s, uint64_t done);
/* Queues a copy of `w`, whose waits it takes over. */
void dbl_stream_add(struct dbl_stream *s, const struct dbl_work *w);
/* Waits until all streams of a context, or of all contexts (NULL), have nothing to do. */
void dbl_streams_drain(const struct dbl_context *ctx);
void dbl_streams_forget(void);
/* Lets streams work only while somebody waits for a stream, or always. */
void dbl_streams_lazy(bool on);
/* Is a copy from or to this host memory queued or running? */
bool dbl_streams_use(const void *at, size_t n);
/* Wakes all threads, because something has changed that they wait for. */
void dbl_streams_wake(void);

/* ---- memory (double_memory.c); all with the lock held */

struct dbl_memory {
	uint8_t *base, *seen; /* mappings, at the addresses of the device and of the double */
	uint8_t *at;          /* what cuMemAlloc returned */
	size_t size, mapped;
	struct dbl_context *ctx;
	unsigned long long id;
	bool managed;
	bool freed; /* the work that is queued may still use it */
	struct dbl_memory *next;
};

struct dbl_memory *dbl_memory_new(struct dbl_context *ctx, size_t size, bool managed);
/* Returns the memory that contains [at, at + n), or NULL. */
struct dbl_memory *dbl_memory_find(CUdeviceptr at, size_t n);
/* Waits for the work that may use the memory, and frees it. */
void dbl_memory_free(struct dbl_memory *m);
/* Lets kernels access all memory at its addresses, or nobody. */
void dbl_memory_open(bool open);
void dbl_memory_reuse(bool on);
CUresult dbl_host_register(void *at, size_t n, unsigned flags);
CUresult dbl_host_unregister(void *at);
/* Is host memory registered there? *ret_all: is [at, at + n)? */
bool dbl_host_is_registered(const void *at, size_t n, bool *ret_all);
uint64_t dbl_host_registered(void);

#endif
