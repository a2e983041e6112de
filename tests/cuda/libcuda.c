/* SPDX-License-Identifier: MIT
 *
 * The functions of the double of the driver (double.h). cuda.h gives the functions the names of the
 * versions that it declares.
 */
#include "tests/cuda/double_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/driver.h"
#include "kernels/cuda/gpu_hash.h"
#include "libpccl-shim/copy.h"

#define DEVICES_MAX 8
#define NESTED_MAX  64

static bool started;
static struct dbl_context *contexts;
static struct dbl_context *primaries[DEVICES_MAX];
static unsigned long long last_context;
static struct dbl_event *events;
static uint64_t n_calls, fail_call;
static CUresult fail_error;
static const char *always_fails; /* a function, or NULL */
static uint64_t moved[2];        /* from devices, to devices */
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct dbl_context *stack[NESTED_MAX];
static _Thread_local int depth;

/* ---- calls */

#define NAME(name)      STRING(name),
#define STRING(name)    STRING_OF(name)
#define STRING_OF(name) #name
static const char *const names[] = {GPU_DRIVER_FUNCTIONS(NAME) GPU_DRIVER_OPTIONAL(NAME)};
static uint64_t calls_of[sizeof names / sizeof names[0]];

/* Compares names without the suffix of the version. */
static bool is_name(const char *of_table, const char *name)
{
	size_t n = strlen(name);

	return strncmp(of_table, name, n) == 0 && (of_table[n] == '\0' || of_table[n] == '_');
}

static uint64_t *counter(const char *name)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		/* Most names differ in the sixth character, as cuMemAlloc and cuMemFree do. */
		if (names[i][5] == name[5] && is_name(names[i], name))
			return &calls_of[i];
	abort();
}

static bool is_sticky(CUresult error)
{
	return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_FAILED ||
	       error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_HARDWARE_STACK_ERROR;
}

static struct dbl_context *current(void)
{
	return depth > 0 ? stack[depth - 1] : NULL;
}

/* Continues begin, with the lock held. `again`: the call only repeats the previous question, so it
 * has no number of its own. */
static CUresult begin_locked(const char *name, struct dbl_context *c, bool again)
{
	++*counter(name);
	if (!started)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (always_fails && strcmp(name, always_fails) == 0)
		return CUDA_ERROR_UNKNOWN;
	if (!again && ++n_calls == fail_call) {
		if (c && is_sticky(fail_error)) {
			c->sticky = fail_error;
			dbl_streams_wake();
		}
		return fail_error;
	}
	if (c && c->destroyed)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return c ? c->sticky : CUDA_SUCCESS;
}

/* Begins a call, with the lock held from here on. Returns what the call returns, or CUDA_SUCCESS if
 * it goes on. `c`: the context that the call is about, or NULL. */
static CUresult begin(const char *name, struct dbl_context *c)
{
	pthread_mutex_lock(&dbl_lock);
	return begin_locked(name, c, false);
}

static CUresult begin_here(const char *name)
{
	CUresult error = begin(name, current());

	return error == CUDA_SUCCESS && !current() ? CUDA_ERROR_INVALID_CONTEXT : error;
}

static CUresult end(CUresult error)
{
	pthread_mutex_unlock(&dbl_lock);
	return error;
}

static int n_devices(void)
{
	const char *text = getenv("DOUBLE_DEVICES");
	int n = text ? atoi(text) : 2;

	return n < 1 ? 1 : n > DEVICES_MAX ? DEVICES_MAX : n;
}

static void forked(void)
{
	pthread_mutex_init(&dbl_lock, NULL);
	pthread_cond_init(&dbl_changed, NULL);
	dbl_streams_forget();
	started = false;
}

CUresult cuInit(unsigned flags)
{
	static bool prepared;
	CUresult error;

	(void)flags;
	pthread_mutex_lock(&dbl_lock);
	if (!prepared) {
		started = true;
		always_fails = getenv("DOUBLE_FAIL");
		pthread_atfork(NULL, NULL, forked);
	}
	prepared = true;
	error = started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_unlock(&dbl_lock);
	return error;
}

CUresult cuDriverGetVersion(int *version)
{
	const char *text = getenv("DOUBLE_VERSION");

	*version = text ? atoi(text) : 13000;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **ret)
{
#define CASE(error)                                                                                \
	case error:                                                                                \
		*ret = #error;                                                                     \
		return CUDA_SUCCESS
	switch (error) {
		CASE(CUDA_SUCCESS);
		CASE(CUDA_ERROR_INVALID_VALUE);
		CASE(CUDA_ERROR_OUT_OF_MEMORY);
		CASE(CUDA_ERROR_NOT_INITIALIZED);
		CASE(CUDA_ERROR_DEINITIALIZED);
		CASE(CUDA_ERROR_INVALID_DEVICE);
		CASE(CUDA_ERROR_INVALID_CONTEXT);
		CASE(CUDA_ERROR_INVALID_HANDLE);
		CASE(CUDA_ERROR_NOT_FOUND);
		CASE(CUDA_ERROR_NOT_READY);
		CASE(CUDA_ERROR_NO_BINARY_FOR_GPU);
		CASE(CUDA_ERROR_ILLEGAL_ADDRESS);
		CASE(CUDA_ERROR_LAUNCH_FAILED);
		CASE(CUDA_ERROR_ECC_UNCORRECTABLE);
		CASE(CUDA_ERROR_HARDWARE_STACK_ERROR);
		CASE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
		CASE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
		CASE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
		CASE(CUDA_ERROR_UNKNOWN);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
#undef CASE
}

CUresult cuGetErrorString(CUresult error, const char **ret)
{
	return cuGetErrorName(error, ret);
}

/* ---- devices and contexts */

CUresult cuDeviceGetCount(int *ret)
{
	CUresult error = begin("cuDeviceGetCount", NULL);

	if (error == CUDA_SUCCESS)
		*ret = n_devices();
	return end(error);
}

CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
	CUresult error = begin("cuDeviceGet", NULL);

	if (error == CUDA_SUCCESS && (ordinal < 0 || ordinal >= n_devices()))
		error = CUDA_ERROR_INVALID_DEVICE;
	if (error == CUDA_SUCCESS)
		*ret = ordinal;
	return end(error);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	CUresult error = begin("cuDeviceGetName", NULL);

	if (error == CUDA_SUCCESS)
		(void)snprintf(name, (size_t)size, "test double %d", device);
	return end(error);
}

CUresult cuDeviceGetAttribute(int *ret, CUdevice_attribute attribute, CUdevice device)
{
	CUresult error = begin("cuDeviceGetAttribute", NULL);

	(void)device;
	if (error != CUDA_SUCCESS)
		return end(error);
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*ret = 2;
	else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		*ret = 9;
	else
		*ret = 0;
	return end(CUDA_SUCCESS);
}

/* With the lock held. */
static struct dbl_context *new_context(int device)
{
	struct dbl_context *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->device = device;
	c->id = ++last_context;
	c->next = contexts;
	contexts = c;
	c->legacy = dbl_stream_new(c, true);
	c->per_thread = dbl_stream_new(c, true);
	return c->legacy && c->per_thread ? c : NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
	CUresult error = begin("cuDevicePrimaryCtxRetain", NULL);

	if (error != CUDA_SUCCESS)
		return end(error);
	if (device < 0 || device >= n_devices())
		return end(CUDA_ERROR_INVALID_DEVICE);
	if (!primaries[device] || primaries[device]->destroyed)
		primaries[device] = new_context(device);
	if (!primaries[device])
		return end(CUDA_ERROR_OUT_OF_MEMORY);
	*ret = (CUcontext)primaries[device];
	return end(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	(void)device;
	return end(begin("cuDevicePrimaryCtxRelease", NULL));
}

CUresult cuCtxGetCurrent(CUcontext *ret)
{
	CUresult error = begin("cuCtxGetCurrent", NULL);

	if (error == CUDA_SUCCESS)
		*ret = (CUcontext)current();
	return end(error);
}

CUresult cuCtxGetDevice(CUdevice *ret)
{
	CUresult error = begin_here("cuCtxGetDevice");

	if (error == CUDA_SUCCESS)
		*ret = current()->device;
	return end(error);
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ret)
{
	CUresult error = begin("cuCtxGetId", NULL);

	if (error == CUDA_SUCCESS)
		*ret = ((struct dbl_context *)ctx)->id;
	return end(error);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	CUresult error = begin("cuCtxPushCurrent", NULL);

	if (error == CUDA_SUCCESS && ((struct dbl_context *)ctx)->destroyed)
		error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (error != CUDA_SUCCESS)
		return end(error);
	if (depth == NESTED_MAX)
		abort(); /* contexts are not popped */
	stack[depth++] = (struct dbl_context *)ctx;
	return end(CUDA_SUCCESS);
}

/* Never fails, so that a failure in one test does not spoil the next one. */
CUresult cuCtxPopCurrent(CUcontext *ret)
{
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = (CUcontext)stack[--depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	CUresult error = begin_here("cuCtxSynchronize");

	if (error == CUDA_SUCCESS) {
		dbl_streams_drain(current());
		error = current()->sticky;
	}
	return end(error);
}

/* ---- memory */

static CUresult allocate(CUdeviceptr *ret, size_t n, bool managed)
{
	struct dbl_memory *m = n > 0 ? dbl_memory_new(current(), n, managed) : NULL;

	if (!m)
		return n > 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	*ret = (CUdeviceptr)(uintptr_t)m->at;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *ret, size_t n)
{
	CUresult error = begin_here("cuMemAlloc");

	return end(error == CUDA_SUCCESS ? allocate(ret, n, false) : error);
}

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t n, unsigned flags)
{
	CUresult error = begin_here("cuMemAllocManaged");

	(void)flags;
	return end(error == CUDA_SUCCESS ? allocate(ret, n, true) : error);
}

CUresult cuMemFree(CUdeviceptr at)
{
	CUresult error = begin_here("cuMemFree");
	struct dbl_memory *m;

	if (error != CUDA_SUCCESS)
		return end(error);
	m = dbl_memory_find(at, 1);
	if (!m || (CUdeviceptr)(uintptr_t)m->at != at)
		return end(CUDA_ERROR_INVALID_VALUE);
	dbl_memory_free(m);
	return end(CUDA_SUCCESS);
}

CUresult cuMemHostRegister(void *at, size_t n, unsigned flags)
{
	CUresult error = begin_here("cuMemHostRegister");

	return end(error == CUDA_SUCCESS ? dbl_host_register(at, n, flags) : error);
}

CUresult cuMemHostUnregister(void *at)
{
	CUresult error = begin_here("cuMemHostUnregister");

	return end(error == CUDA_SUCCESS ? dbl_host_unregister(at) : error);
}

/* With the lock held: the values of an address. All are 0 if it belongs to nobody. */
static void describe(CUdeviceptr at, CUpointer_attribute attribute, void *ret)
{
	const struct dbl_memory *m = dbl_memory_find(at, 1);
	bool all;
	bool host = !m && dbl_host_is_registered((const void *)(uintptr_t)at, 1, &all);

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)ret = m ? CU_MEMORYTYPE_DEVICE : host ? CU_MEMORYTYPE_HOST : 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)ret = m && m->managed;
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)ret = m ? (CUcontext)m->ctx : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)ret = m ? m->ctx->device : -1;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)ret = m ? (CUdeviceptr)(uintptr_t)m->at : 0;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)ret = m ? m->size : 0;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)ret = m ? m->id : 0;
		break;
	default:
		abort();
	}
}

CUresult cuPointerGetAttribute(void *ret, CUpointer_attribute attribute, CUdeviceptr at)
{
	CUresult error = begin("cuPointerGetAttribute", current());
	bool all;

	if (error == CUDA_SUCCESS && !dbl_memory_find(at, 1) &&
		!dbl_host_is_registered((const void *)(uintptr_t)at, 1, &all))
		error = CUDA_ERROR_INVALID_VALUE;
	if (error == CUDA_SUCCESS)
		describe(at, attribute, ret);
	return end(error);
}

CUresult cuPointerGetAttributes(
	unsigned n, CUpointer_attribute *attributes, void **ret, CUdeviceptr at)
{
	CUresult error = begin("cuPointerGetAttributes", current());

	for (unsigned i = 0; i < n && error == CUDA_SUCCESS; i++)
		describe(at, attributes[i], ret[i]);
	return end(error);
}

/* ---- work */

static CUdeviceptr victim; /* what double_free_at has ordered */
static uint64_t n_uses, free_use;

/* Notes that [at, at + n) is used. Returns the memory that contains it, or NULL. */
static const struct dbl_memory *use(CUdeviceptr at, size_t n)
{
	struct dbl_memory *m = dbl_memory_find(at, n);

	if (m && dbl_memory_find(victim, 1) == m && ++n_uses == free_use) {
		dbl_memory_free(m);
		m = NULL;
	}
	return m;
}

static struct dbl_stream *stream_of(CUstream s)
{
	if (!s || s == CU_STREAM_LEGACY)
		return current()->legacy;
	return s == CU_STREAM_PER_THREAD ? current()->per_thread : (struct dbl_stream *)s;
}

/* As begin_here, for a call about a stream. */
static CUresult begin_stream(const char *name, CUstream stream, struct dbl_stream **ret)
{
	CUresult error = begin_here(name);

	if (error != CUDA_SUCCESS)
		return error;
	*ret = stream_of(stream);
	if ((*ret)->destroyed)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((*ret)->ctx->destroyed)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return (*ret)->ctx->sticky;
}

/* Copies large memory of a device past the caches, as the copy engine of a GPU does. */
static void run_copy(const struct dbl_work *w)
{
	const char *file = getenv("DOUBLE_STOP");
	bool stops = file && unlink(file) == 0;

	pccl_copy_out(w->to, w->from, stops ? w->n / 2 : w->n, w->whole);
	while (stops)
		(void)pause();
}

static void run_fill(const struct dbl_work *w)
{
	memset(w->to, w->value, w->n);
}

static uint8_t *seen(const struct dbl_memory *m, CUdeviceptr at)
{
	return m ? m->seen + (at - (CUdeviceptr)(uintptr_t)m->base) : NULL;
}

/* Queues a copy between a device and the host. If the host memory is not registered, waits for it,
 * as does the driver. */
static CUresult copy(const char *name, CUdeviceptr device, void *host, size_t n, bool to_device,
	CUstream stream, bool wait)
{
	struct dbl_stream *s;
	struct dbl_work w = {.run = run_copy, .n = n};
	CUresult error = begin_stream(name, stream, &s);
	const struct dbl_memory *m;
	uint8_t *at;
	bool all;

	if (error != CUDA_SUCCESS)
		return end(error);
	m = use(device, n);
	at = seen(m, device);
	/* Memory that is registered in part cannot be copied. */
	if (!at || (dbl_host_is_registered(host, n, &all) && !all))
		return end(CUDA_ERROR_INVALID_VALUE);
	w.to = to_device ? at : host;
	w.from = to_device ? host : at;
	w.whole = m->size;
	moved[to_device] += n;
	wait = wait || !all;
	dbl_stream_add(s, &w);
	if (wait)
		dbl_stream_await(s, s->queued);
	return end(wait ? s->ctx->sticky : CUDA_SUCCESS);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n)
{
	return copy("cuMemcpyDtoH", from, to, n, false, NULL, true);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream stream)
{
	return copy("cuMemcpyDtoHAsync", from, to, n, false, stream, false);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n)
{
	return copy("cuMemcpyHtoD", to, (void *)(uintptr_t)from, n, true, NULL, true);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream stream)
{
	return copy("cuMemcpyHtoDAsync", to, (void *)(uintptr_t)from, n, true, stream, false);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream)
{
	struct dbl_work w = {.run = run_copy, .n = n, .whole = n};
	struct dbl_stream *s;
	CUresult error = begin_stream("cuMemcpyDtoDAsync", stream, &s);

	if (error != CUDA_SUCCESS)
		return end(error);
	w.to = seen(use(to, n), to);
	w.from = seen(use(from, n), from);
	if (!w.to || !w.from)
		return end(CUDA_ERROR_INVALID_VALUE);
	dbl_stream_add(s, &w);
	return end(s->ctx->sticky);
}

static CUresult fill(
	const char *name, CUdeviceptr at, unsigned char value, size_t n, CUstream stream, bool wait)
{
	struct dbl_work w = {.run = run_fill, .n = n, .value = value};
	struct dbl_stream *s;
	CUresult error = begin_stream(name, stream, &s);

	if (error != CUDA_SUCCESS)
		return end(error);
	w.to = seen(use(at, n), at);
	if (!w.to)
		return end(CUDA_ERROR_INVALID_VALUE);
	dbl_stream_add(s, &w);
	if (wait)
		dbl_stream_await(s, s->queued);
	return end(s->ctx->sticky);
}

CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t n)
{
	return fill("cuMemsetD8", at, value, n, NULL, true);
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream)
{
	return fill("cuMemsetD8Async", at, value, n, stream, false);
}

CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
	CUresult error = begin_here("cuStreamCreate");
	struct dbl_stream *s;

	if (error != CUDA_SUCCESS)
		return end(error);
	s = dbl_stream_new(current(), !(flags & CU_STREAM_NON_BLOCKING));
	if (!s)
		return end(CUDA_ERROR_OUT_OF_MEMORY);
	*ret = (CUstream)s;
	return end(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream stream)
{
	struct dbl_stream *s;
	CUresult error = begin_stream("cuStreamDestroy", stream, &s);

	if (error == CUDA_SUCCESS) {
		s->destroyed = true;
		dbl_streams_wake();
	}
	return end(error);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *ret)
{
	struct dbl_stream *s;
	CUresult error = begin("cuStreamGetCtx", NULL);

	if (error != CUDA_SUCCESS)
		return end(error);
	s = stream_of(stream);
	*ret = (CUcontext)s->ctx;
	return end(s->destroyed ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS);
}

CUresult cuStreamQuery(CUstream stream)
{
	struct dbl_stream *s;
	CUresult error = begin_stream("cuStreamQuery", stream, &s);

	if (error == CUDA_SUCCESS && s->done < s->queued)
		error = CUDA_ERROR_NOT_READY;
	return end(error);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct dbl_stream *s;
	CUresult error = begin_stream("cuStreamSynchronize", stream, &s);

	if (error == CUDA_SUCCESS) {
		dbl_stream_await(s, s->queued);
		error = s->ctx->sticky;
	}
	return end(error);
}

CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
	CUresult error = begin_here("cuEventCreate");
	struct dbl_event *e = calloc(1, sizeof *e);

	(void)flags;
	if (error == CUDA_SUCCESS && !e)
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (error != CUDA_SUCCESS) {
		free(e);
		return end(error);
	}
	e->next = events;
	events = e;
	*ret = (CUevent)e;
	return end(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event)
{
	CUresult error = begin_here("cuEventDestroy");
	struct dbl_event **at = &events, *e = (struct dbl_event *)event;

	if (error != CUDA_SUCCESS)
		return end(error);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
	return end(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct dbl_event *e = (struct dbl_event *)event;
	struct dbl_work w = {.run = NULL};
	struct dbl_stream *s;
	CUresult error = begin_stream("cuEventRecord", stream, &s);

	if (error != CUDA_SUCCESS)
		return end(error);
	if (s->ctx != current())
		return end(CUDA_ERROR_INVALID_HANDLE);
	dbl_stream_add(s, &w);
	e->stream = s;
	e->done = s->queued;
	e->asked = false;
	return end(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	const struct dbl_event *e = (struct dbl_event *)event;
	struct dbl_work w = {.run = NULL};
	struct dbl_stream *s;
	CUresult error = begin_stream("cuStreamWaitEvent", stream, &s);

	(void)flags;
	if (error != CUDA_SUCCESS || !e->stream)
		return end(error);
	w.waits = malloc(sizeof *w.waits);
	if (!w.waits)
		abort();
	*w.waits = (struct dbl_wait){.stream = e->stream, .done = e->done};
	w.n_waits = 1;
	dbl_stream_add(s, &w);
	return end(CUDA_SUCCESS);
}

/* The context of the event decides, also if another one is current. */
static struct dbl_context *context_of(const struct dbl_event *e)
{
	return e->stream ? e->stream->ctx : current();
}

CUresult cuEventQuery(CUevent event)
{
	struct dbl_event *e = (struct dbl_event *)event;
	CUresult error;

	pthread_mutex_lock(&dbl_lock);
	error = begin_locked("cuEventQuery", context_of(e), e->asked);
	if (error == CUDA_SUCCESS && e->stream && e->stream->done < e->done)
		error = CUDA_ERROR_NOT_READY;
	e->asked = error == CUDA_ERROR_NOT_READY;
	return end(error);
}

CUresult cuEventSynchronize(CUevent event)
{
	const struct dbl_event *e = (struct dbl_event *)event;
	CUresult error = begin("cuEventSynchronize", context_of(e));

	if (error == CUDA_SUCCESS && e->stream) {
		dbl_stream_await(e->stream, e->done);
		error = e->stream->ctx->sticky;
	}
	return end(error);
}

/* ---- kernels */

CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	CUresult error = begin_here("cuModuleLoadData");
	const char *none = getenv("DOUBLE_NO_KERNELS");

	if (error == CUDA_SUCCESS && !image)
		error = CUDA_ERROR_INVALID_VALUE;
	if (error == CUDA_SUCCESS && none && none[0] == '1')
		error = CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (error == CUDA_SUCCESS)
		*ret = (CUmodule)(uintptr_t)image;
	return end(error);
}

CUresult cuModuleUnload(CUmodule module)
{
	(void)module;
	return end(begin_here("cuModuleUnload"));
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	CUresult error = begin_here("cuModuleGetFunction");
	const struct emu_kernel *k = emu_find(name);

	(void)module;
	if (error == CUDA_SUCCESS && !k)
		error = CUDA_ERROR_NOT_FOUND;
	if (error == CUDA_SUCCESS)
		*ret = (CUfunction)(uintptr_t)k;
	return end(error);
}

static void run_kernel(const struct dbl_work *w)
{
	const char *fault;

	pthread_mutex_lock(&launching);
	pthread_mutex_lock(&dbl_lock);
	dbl_memory_open(true);
	pthread_mutex_unlock(&dbl_lock);
	fault = emu_launch(w->kernel, w->grid, w->block, w->shared, w->args);
	pthread_mutex_lock(&dbl_lock);
	dbl_memory_open(false);
	pthread_mutex_unlock(&dbl_lock);
	pthread_mutex_unlock(&launching);
	if (fault) {
		(void)fprintf(stderr, "a kernel ended with a fault: %s\n", fault);
		abort();
	}
}

/* Is everything that the hash kernel reads and writes somebody's memory? */
static bool is_hashable(const struct gpu_hash_args *args)
{
	for (uint32_t i = 0; i < args->n_ranges; i++)
		if (!use(args->range[i].data, args->range[i].bytes))
			return false;
	return use(args->leaves, args->n_leaves * sizeof(uint64_t));
}

/* The arguments are those of the caller, so the call waits for the kernel. */
CUresult cuLaunchKernel(CUfunction kernel, unsigned grid, unsigned grid_y, unsigned grid_z,
	unsigned block, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
	void **args, void **extra)
{
	struct dbl_work w = {.run = run_kernel,
		.kernel = (const struct emu_kernel *)(void *)kernel,
		.grid = grid,
		.block = block,
		.shared = shared,
		.args = args};
	struct dbl_stream *s;
	CUresult error = begin_stream("cuLaunchKernel", stream, &s);

	if (error != CUDA_SUCCESS)
		return end(error);
	if (grid == 0 || block == 0 || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 ||
		extra)
		return end(CUDA_ERROR_INVALID_VALUE);
	if (strcmp(w.kernel->name, GPU_HASH_KERNEL) == 0 && !is_hashable(args[0])) {
		s->ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
		dbl_streams_wake();
		return end(s->ctx->sticky);
	}
	dbl_stream_add(s, &w);
	dbl_stream_await(s, s->queued);
	return end(s->ctx->sticky);
}

/* ---- for tests */

static void double_fail_at(uint64_t n, CUresult error)
{
	pthread_mutex_lock(&dbl_lock);
	n_calls = 0;
	fail_call = n;
	fail_error = error;
	dbl_streams_lazy(n > 0);
	pthread_mutex_unlock(&dbl_lock);
}

static void double_free_at(CUdeviceptr at, uint64_t n)
{
	pthread_mutex_lock(&dbl_lock);
	victim = at;
	n_uses = 0;
	free_use = n;
	pthread_mutex_unlock(&dbl_lock);
}

static uint64_t double_uses(void)
{
	uint64_t n;

	pthread_mutex_lock(&dbl_lock);
	n = n_uses;
	pthread_mutex_unlock(&dbl_lock);
	return n;
}

static uint64_t double_count(void)
{
	uint64_t n;

	pthread_mutex_lock(&dbl_lock);
	n = n_calls;
	pthread_mutex_unlock(&dbl_lock);
	return n;
}

static uint64_t double_calls(const char *function)
{
	uint64_t n;

	pthread_mutex_lock(&dbl_lock);
	n = *counter(function);
	pthread_mutex_unlock(&dbl_lock);
	return n;
}

static uint64_t double_bytes(int to_device)
{
	uint64_t n;

	pthread_mutex_lock(&dbl_lock);
	n = moved[to_device != 0];
	pthread_mutex_unlock(&dbl_lock);
	return n;
}

static void *double_seen(CUdeviceptr at)
{
	void *p;

	pthread_mutex_lock(&dbl_lock);
	p = seen(dbl_memory_find(at, 1), at);
	pthread_mutex_unlock(&dbl_lock);
	return p;
}

static void double_hold(CUstream stream, int on)
{
	struct dbl_stream *s;

	pthread_mutex_lock(&dbl_lock);
	s = stream_of(stream);
	s->held = on != 0;
	dbl_streams_wake();
	pthread_mutex_unlock(&dbl_lock);
}

static void double_reuse(int on)
{
	pthread_mutex_lock(&dbl_lock);
	dbl_memory_reuse(on != 0);
	pthread_mutex_unlock(&dbl_lock);
}

static uint64_t double_registered(void)
{
	uint64_t n;

	pthread_mutex_lock(&dbl_lock);
	n = dbl_host_registered();
	pthread_mutex_unlock(&dbl_lock);
	return n;
}

static void double_reset(int device)
{
	pthread_mutex_lock(&dbl_lock);
	if (primaries[device]) {
		dbl_streams_drain(primaries[device]);
		primaries[device]->destroyed = true;
	}
	pthread_mutex_unlock(&dbl_lock);
}

const struct double_functions double_functions = {.fail_at = double_fail_at,
	.free_at = double_free_at,
	.uses = double_uses,
	.count = double_count,
	.calls = double_calls,
	.bytes = double_bytes,
	.seen = double_seen,
	.hold = double_hold,
	.reuse = double_reuse,
	.registered = double_registered,
	.reset = double_reset};
