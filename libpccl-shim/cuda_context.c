/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cc_sys.h"

#define IDLE_MAX    16u /* uses that a context keeps for later calls */
#define DEVICES_MAX 256
/* For this time a thread asks whether a copy is over before it sleeps. The wake-up takes longer
 * than a small copy. */
#define SPIN_NS ((uint64_t)30000)

/* Guards the variables below and the fields that cuda.h names. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pccl_cuda_context *contexts;
static CUcontext primaries[DEVICES_MAX]; /* by ordinal; NULL: not retained */

/* Host memory that is registered. The lock guards the list, and is held while memory is being
 * registered. */
struct pin {
	void *base;
	CUcontext ctx; /* in which it was registered */
	struct pin *next;
};
static pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pin *pins;

void pccl_cuda_after_fork(void)
{
	/* CUDA does not work in a forked child. */
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&pins_lock, NULL);
	contexts = NULL;
	pins = NULL;
	memset(primaries, 0, sizeof primaries);
}

pcclResult_t pccl_cuda_fail(
	const struct gpu_driver *gpu, const char *function, CUresult error, const char *fmt, ...)
{
	char what[PCCL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return pccl_fail(pcclInternalError, "%.400s: %s failed with %s", what, function,
		gpu_driver_error(gpu, error));
}

CUresult pccl_cuda_enter(const struct pccl_cuda_context *c)
{
	return c->gpu->cuCtxPushCurrent(c->ctx);
}

void pccl_cuda_leave(const struct pccl_cuda_context *c)
{
	CUcontext ctx;

	(void)c->gpu->cuCtxPopCurrent(&ctx);
}

/* ---- contexts */

/* Frees a context without references. Errors do not matter: the context may be unusable. */
static void destroy(struct pccl_cuda_context *c)
{
	if (!atomic_load(&c->gone) && pccl_cuda_enter(c) == CUDA_SUCCESS) {
		if (c->leaves)
			(void)c->gpu->cuMemFree(c->leaves);
		if (c->module)
			(void)c->gpu->cuModuleUnload(c->module);
		if (c->in)
			(void)c->gpu->cuStreamDestroy(c->in);
		if (c->out)
			(void)c->gpu->cuStreamDestroy(c->out);
		pccl_cuda_leave(c);
	}
	pthread_mutex_destroy(&c->hash_lock);
	free(c);
}

static void destroy_use(struct pccl_cuda_use *u)
{
	const struct pccl_cuda_context *c = u->context;
	bool usable = !atomic_load(&c->gone) && pccl_cuda_enter(c) == CUDA_SUCCESS;
	CUevent events[2 + 2 * PCCL_BUF_LANES + 1];
	size_t n = 0;

	events[n++] = u->order;
	events[n++] = u->out;
	for (unsigned i = 0; i <= PCCL_BUF_LANES; i++)
		events[n++] = u->lanes[i];
	for (unsigned i = 0; i < PCCL_BUF_LANES; i++)
		events[n++] = u->swaps[i].done;
	for (size_t i = 0; i < n && usable; i++)
		if (events[i])
			(void)c->gpu->cuEventDestroy(events[i]);
	/* If the memory cannot be unregistered, its addresses must not be used again. */
	if (u->bounce &&
		(!u->pinned || (usable && c->gpu->cuMemHostUnregister(u->bounce) == CUDA_SUCCESS)))
		munmap(u->bounce, PCCL_BUF_LANES * PCCL_CUDA_BOUNCE);
	if (usable)
		pccl_cuda_leave(c);
	free(u);
}

static void unref(struct pccl_cuda_context *c)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --c->refs == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		destroy(c);
}

/* Takes a context off the list. Returns its idle uses, which have the list's reference. */
static struct pccl_cuda_use *take_off(struct pccl_cuda_context *c)
{
	struct pccl_cuda_context **at = &contexts;
	struct pccl_cuda_use *idle = c->idle;

	while (*at && *at != c)
		at = &(*at)->next;
	if (!*at)
		return NULL;
	*at = c->next;
	c->idle = NULL;
	c->n_idle = 0;
	return idle;
}

static bool is_gone(CUresult error)
{
	return error == CUDA_ERROR_CONTEXT_IS_DESTROYED || error == CUDA_ERROR_INVALID_CONTEXT ||
	       error == CUDA_ERROR_DEINITIALIZED;
}

void pccl_cuda_spoil(struct pccl_cuda_context *c, CUresult error)
{
	struct pccl_cuda_use *idle, *u;
	bool listed;

	if (is_gone(error))
		atomic_store(&c->gone, true);
	pthread_mutex_lock(&lock);
	listed = !atomic_exchange(&c->failed, true);
	idle = listed ? take_off(c) : NULL;
	pthread_mutex_unlock(&lock);
	while ((u = idle) != NULL) {
		idle = (struct pccl_cuda_use *)(void *)u->base.next;
		destroy_use(u);
	}
	if (listed)
		unref(c);
}

static pcclResult_t make_context(const struct gpu_driver *gpu, CUcontext ctx, unsigned long long id,
	int device, struct pccl_cuda_context **ret)
{
	struct pccl_cuda_context *c = calloc(1, sizeof *c);
	const char *function = "cuCtxPushCurrent";
	CUresult error;

	if (!c)
		return pccl_fail_memory("no memory for the record of a CUDA context");
	*c = (struct pccl_cuda_context){
		.gpu = gpu, .ctx = ctx, .id = id, .device = device, .refs = 2};
	pthread_mutex_init(&c->hash_lock, NULL);
	error = pccl_cuda_enter(c);
	if (error == CUDA_SUCCESS) {
		function = "cuStreamCreate";
		error = gpu->cuStreamCreate(&c->in, CU_STREAM_NON_BLOCKING);
		if (error == CUDA_SUCCESS)
			error = gpu->cuStreamCreate(&c->out, CU_STREAM_NON_BLOCKING);
		pccl_cuda_leave(c);
	}
	if (error == CUDA_SUCCESS) {
		*ret = c;
		return pcclSuccess;
	}
	atomic_store(&c->gone, is_gone(error));
	destroy(c);
	return pccl_cuda_fail(
		gpu, function, error, "CUDA device %d cannot be used for copies", device);
}

/* With the lock held: returns the record of this context, or NULL. *ret_stale: the record of an
 * earlier context at the same address, or NULL. */
static struct pccl_cuda_context *find_context(
	CUcontext ctx, unsigned long long id, struct pccl_cuda_context **ret_stale)
{
	*ret_stale = NULL;
	for (struct pccl_cuda_context *c = contexts; c; c = c->next) {
		if (c->ctx != ctx)
			continue;
		if (c->id == id)
			return c;
		*ret_stale = c;
	}
	return NULL;
}

/* Returns the record of a context, with a reference for the caller. */
static pcclResult_t get_context(
	const struct gpu_driver *gpu, CUcontext ctx, int device, struct pccl_cuda_context **ret)
{
	struct pccl_cuda_context *c, *stale;
	unsigned long long id = 0;
	pcclResult_t r = pcclSuccess;

	if (gpu->cuCtxGetId && gpu->cuCtxGetId(ctx, &id) != CUDA_SUCCESS)
		id = 0;
	pthread_mutex_lock(&lock);
	c = find_context(ctx, id, &stale);
	if (c) {
		c->refs++;
	} else {
		r = make_context(gpu, ctx, id, device, &c);
		if (r == pcclSuccess) {
			c->next = contexts;
			contexts = c;
		}
	}
	pthread_mutex_unlock(&lock);
	if (stale)
		pccl_cuda_spoil(stale, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	if (r == pcclSuccess)
		*ret = c;
	return r;
}

CUresult pccl_cuda_primary(const struct gpu_driver *gpu, int device, CUcontext *ret)
{
	CUresult error = CUDA_SUCCESS;
	CUdevice handle;

	if (device < 0 || device >= DEVICES_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device]) {
		error = gpu->cuDeviceGet(&handle, device);
		if (error == CUDA_SUCCESS)
			error = gpu->cuDevicePrimaryCtxRetain(&primaries[device], handle);
		if (error != CUDA_SUCCESS)
			primaries[device] = NULL;
	}
	*ret = primaries[device];
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- uses */

static pcclResult_t make_use(
	struct pccl_cuda_context *c, const struct pccl_buf_kind *kind, struct pccl_cuda_use **ret)
{
	struct pccl_cuda_use *u = calloc(1, sizeof *u);
	const unsigned flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC;
	CUresult error;

	if (!u)
		return pccl_fail_memory("no memory for a call with memory of a CUDA device");
	u->base.kind = kind;
	u->context = c;
	error = pccl_cuda_enter(c);
	if (error == CUDA_SUCCESS) {
		error = c->gpu->cuEventCreate(&u->order, CU_EVENT_DISABLE_TIMING);
		if (error == CUDA_SUCCESS)
			error = c->gpu->cuEventCreate(&u->out, flags);
		for (unsigned i = 0; i <= PCCL_BUF_LANES && error == CUDA_SUCCESS; i++)
			error = c->gpu->cuEventCreate(&u->lanes[i], flags);
		for (unsigned i = 0; i < PCCL_BUF_LANES && error == CUDA_SUCCESS; i++)
			error = c->gpu->cuEventCreate(&u->swaps[i].done, flags);
		pccl_cuda_leave(c);
	}
	if (error == CUDA_SUCCESS) {
		*ret = u;
		return pcclSuccess;
	}
	destroy_use(u);
	pccl_cuda_spoil(c, error);
	return pccl_cuda_fail(c->gpu, "cuEventCreate", error,
		"CUDA device %d cannot be used for copies", c->device);
}

/* Returns an idle use of the context, or NULL. */
static struct pccl_cuda_use *take_idle(struct pccl_cuda_context *c)
{
	struct pccl_cuda_use *u;

	pthread_mutex_lock(&lock);
	u = c->idle;
	if (u) {
		c->idle = (struct pccl_cuda_use *)(void *)u->base.next;
		c->n_idle--;
	}
	pthread_mutex_unlock(&lock);
	return u;
}

void pccl_cuda_use_put(struct pccl_cuda_use *u)
{
	struct pccl_cuda_context *c = u->context;
	bool kept;

	pthread_mutex_lock(&lock);
	kept = !atomic_load(&c->failed) && c->n_idle < IDLE_MAX;
	if (kept) {
		u->ordered_in = false;
		u->ordered_out = false;
		u->lost = false;
		u->hashed = false;
		u->base.next = c->idle ? &c->idle->base : NULL;
		c->idle = u;
		c->n_idle++;
	}
	pthread_mutex_unlock(&lock);
	if (!kept)
		destroy_use(u);
	unref(c);
}

pcclResult_t pccl_cuda_use_bounce(struct pccl_cuda_use *u)
{
	const size_t size = PCCL_BUF_LANES * PCCL_CUDA_BOUNCE;
	void *at;

	if (u->bounce)
		return pcclSuccess;
	/* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return pccl_fail_memory("no memory for copies from a CUDA device");
	madvise(at, size, MADV_DONTFORK);
	u->bounce = at;
	if (pccl_cuda_enter(u->context) == CUDA_SUCCESS) {
		u->pinned = u->context->gpu->cuMemHostRegister(
				    at, size, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
		pccl_cuda_leave(u->context);
	}
	return pcclSuccess;
}

/* ---- the order of copies after the work of the application */

/* Lets both streams of the use wait for the work that is in a stream of another context now. */
static CUresult follow_other(struct pccl_cuda_use *u, CUcontext other, CUstream stream)
{
	const struct gpu_driver *gpu = u->context->gpu;
	CUevent event = NULL;
	CUcontext popped;
	CUresult error = gpu->cuCtxPushCurrent(other);

	if (error != CUDA_SUCCESS)
		return error;
	error = gpu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (error == CUDA_SUCCESS)
		error = gpu->cuEventRecord(event, stream);
	(void)gpu->cuCtxPopCurrent(&popped);
	if (error == CUDA_SUCCESS)
		error = gpu->cuStreamWaitEvent(u->context->in, event, 0);
	if (error == CUDA_SUCCESS)
		error = gpu->cuStreamWaitEvent(u->context->out, event, 0);
	if (event)
		(void)gpu->cuEventDestroy(event);
	u->ordered_in = true;
	u->ordered_out = true;
	return error;
}

/* Notes the work that the application has queued so far. In the context of the use. */
static CUresult follow(struct pccl_cuda_use *u, CUstream stream)
{
	const struct gpu_driver *gpu = u->context->gpu;
	CUcontext of_stream = u->context->ctx;
	CUresult error = CUDA_SUCCESS;

	if (!stream)
		stream = CU_STREAM_LEGACY;
	if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD)
		error = gpu->cuStreamGetCtx(stream, &of_stream);
	if (error != CUDA_SUCCESS)
		return error;
	return of_stream == u->context->ctx ? gpu->cuEventRecord(u->order, stream)
					    : follow_other(u, of_stream, stream);
}

CUresult pccl_cuda_keep_order(const struct pccl_cuda_use *u, CUstream stream, bool *done)
{
	CUresult error = CUDA_SUCCESS;

	if (!*done)
		error = u->context->gpu->cuStreamWaitEvent(stream, u->order, 0);
	*done = *done || error == CUDA_SUCCESS;
	return error;
}

CUresult pccl_cuda_await(const struct gpu_driver *gpu, CUevent event)
{
	uint64_t begin = cc_now_ns();
	CUresult error;

	do
		error = gpu->cuEventQuery(event);
	while (error == CUDA_ERROR_NOT_READY && cc_now_ns() - begin < SPIN_NS);
	return error == CUDA_ERROR_NOT_READY ? gpu->cuEventSynchronize(event) : error;
}

void pccl_cuda_settle(const struct pccl_cuda_context *c, CUstream stream)
{
	/* A context that cannot be entered has been destroyed, with its streams and their work. */
	if (pccl_cuda_enter(c) != CUDA_SUCCESS)
		return;
	(void)c->gpu->cuStreamSynchronize(stream);
	pccl_cuda_leave(c);
}

static struct pccl_cuda_use *find_use(struct pccl_buf_call *call, const struct pccl_cuda_context *c)
{
	for (struct pccl_buf_use *b = call->uses; b; b = b->next) {
		struct pccl_cuda_use *u = (struct pccl_cuda_use *)(void *)b;

		if (u->context == c)
			return u;
	}
	return NULL;
}

pcclResult_t pccl_cuda_use_get(const struct gpu_driver *gpu, CUcontext ctx, int device,
	const struct pccl_buf_kind *kind, struct pccl_buf_call *call, struct pccl_cuda_use **ret)
{
	struct pccl_cuda_context *c;
	struct pccl_cuda_use *u;
	pcclResult_t r = get_context(gpu, ctx, device, &c);
	CUresult error;

	if (r != pcclSuccess)
		return r;
	u = find_use(call, c);
	if (u) {
		unref(c);
		*ret = u;
		return pcclSuccess;
	}
	u = take_idle(c);
	if (!u)
		r = make_use(c, kind, &u);
	if (r != pcclSuccess) {
		unref(c);
		return r;
	}
	error = pccl_cuda_enter(c);
	if (error == CUDA_SUCCESS) {
		error = follow(u, call->stream);
		pccl_cuda_leave(c);
	}
	if (error != CUDA_SUCCESS) {
		pccl_cuda_spoil(c, error);
		pccl_cuda_use_put(u);
		return pccl_cuda_fail(gpu, "cuEventRecord", error,
			"the work before this call on CUDA device %d cannot be awaited", device);
	}
	u->base.next = call->uses;
	call->uses = &u->base;
	*ret = u;
	return pcclSuccess;
}

/* ---- registered host memory */

static struct pin *take_pin(const void *base)
{
	struct pin **at = &pins, *p;

	while (*at && (*at)->base != base)
		at = &(*at)->next;
	p = *at;
	if (p)
		*at = p->next;
	return p;
}

/* Is memory that cuMemHostUnregister has returned this error for not registered any more? */
static bool is_unregistered(CUresult error)
{
	return error == CUDA_SUCCESS || error == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ||
	       error == CUDA_ERROR_DEINITIALIZED;
}

static CUresult unregister_in(const struct gpu_driver *gpu, CUcontext ctx, void *base)
{
	CUresult error = gpu->cuCtxPushCurrent(ctx);
	CUcontext popped;

	if (error != CUDA_SUCCESS)
		return error;
	error = gpu->cuMemHostUnregister(base);
	(void)gpu->cuCtxPopCurrent(&popped);
	return error;
}

static bool unpin(void *base)
{
	const struct gpu_driver *gpu = gpu_driver_loaded();
	struct pin *p;
	CUresult error;

	pthread_mutex_lock(&pins_lock);
	p = take_pin(base);
	pthread_mutex_unlock(&pins_lock);
	if (!gpu || !p)
		return true; /* a forked child: the mapping is not there */
	error = unregister_in(gpu, p->ctx, base);
	/* The context may be unusable. Any other one will do. */
	if (!is_unregistered(error)) {
		pthread_mutex_lock(&lock);
		for (struct pccl_cuda_context *c = contexts; c && !is_unregistered(error);
			c = c->next)
			error = unregister_in(gpu, c->ctx, base);
		pthread_mutex_unlock(&lock);
	}
	free(p);
	return is_unregistered(error);
}

void pccl_cuda_pin(struct pccl_cuda_context *c, struct pccl_map *m)
{
	struct pin *p;
	CUresult error;

	pthread_mutex_lock(&pins_lock);
	if (m->pinned) {
		pthread_mutex_unlock(&pins_lock);
		return;
	}
	m->pinned = true;
	p = calloc(1, sizeof *p);
	if (p && pccl_cuda_enter(c) == CUDA_SUCCESS) {
		error = c->gpu->cuMemHostRegister(m->base, m->size, CU_MEMHOSTREGISTER_PORTABLE);
		/* Result regions may be mapped for reading only. */
		if (error != CUDA_SUCCESS)
			error = c->gpu->cuMemHostRegister(m->base, m->size,
				CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_READ_ONLY);
		pccl_cuda_leave(c);
		if (error == CUDA_SUCCESS) {
			*p = (struct pin){.base = m->base, .ctx = c->ctx, .next = pins};
			pins = p;
			p = NULL;
			m->unpin = unpin;
		}
	}
	free(p);
	pthread_mutex_unlock(&pins_lock);
}
