/* SPDX-License-Identifier: MIT
 *
 * The memory of CUDA devices, as a kind of user memory (buf.h).
 *
 * Host memory that is registered with CUDA is host memory. Managed memory is memory of a device:
 * the CPU could read it, but not while a kernel of the application uses it, so it is copied after
 * the work of the application, as other memory of a device.
 *
 * The answers of the driver about an address are never kept. Memory may be freed, and other memory
 * may get its address, between any two calls.
 */
#include <string.h>

#include "libpccl-shim/cuda.h"

#define PIECE ((size_t)1 << 20)

/* The lane of copy_in. */
#define SINGLE PCCL_BUF_LANES

/* The answer of the driver about an address. */
struct known {
	bool on_device; /* the memory of a device, or managed memory */
	unsigned managed;
	CUcontext ctx; /* NULL if the memory belongs to none */
	int device;
	CUdeviceptr start;
	size_t size;
};

static CUdeviceptr pointer(const void *at)
{
	return (CUdeviceptr)(uintptr_t)at;
}

static struct pccl_cuda_use *use_of(const struct pccl_buf *b)
{
	return (struct pccl_cuda_use *)(void *)b->use;
}

/* Asks the driver for on_device and managed, or for all that can be known. An address that the
 * driver does not know is one of the host. A driver that is too old knows only the attributes of
 * on_device and managed, which come first. */
static CUresult ask(gpu_driver_ask *driver, const void *at, bool all, struct known *ret)
{
	unsigned type = 0;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *values[] = {&type, &ret->managed, &ret->ctx, &ret->device, &ret->start, &ret->size};
	CUresult error;

	*ret = (struct known){.on_device = false};
	error = driver(all ? sizeof names / sizeof names[0] : 2, names, values, pointer(at));
	/* The driver has not started, or this is a forked child of a process that uses it. */
	if (error == CUDA_ERROR_NOT_INITIALIZED)
		return CUDA_SUCCESS;
	ret->on_device = error == CUDA_SUCCESS && (type == CU_MEMORYTYPE_DEVICE || ret->managed);
	return error;
}

/* Has this process loaded the driver? The memory of a device that a call gets is older than the
 * call, and so is the driver. */
static bool is_used(void)
{
	return gpu_driver_loaded_ask() != NULL;
}

static enum pccl_buf_owned owns(const void *at)
{
	gpu_driver_ask *driver = gpu_driver_loaded_ask();
	struct known k;

	if (!driver || !at)
		return PCCL_BUF_NOT_OWNED;
	/* If the driver cannot say, or is too old, open_buffer reports the error. */
	if (ask(driver, at, false, &k) != CUDA_SUCCESS)
		return PCCL_BUF_OWNED;
	if (!k.on_device)
		return PCCL_BUF_NOT_OWNED;
	return k.managed ? PCCL_BUF_SHARED : PCCL_BUF_OWNED;
}

/* Checks that all bytes of the buffer are memory of the device. Memory that was mapped in parts has
 * several ranges. */
static pcclResult_t check_size(
	const struct gpu_driver *gpu, const struct pccl_buf *b, size_t bytes, const struct known *k)
{
	CUdeviceptr at = pointer(b->at), end = k->start + k->size;
	struct known last;

	if (k->size == 0 || (at >= k->start && end - at >= bytes))
		return pcclSuccess;
	if (ask(gpu->cuPointerGetAttributes, b->at + bytes - 1, true, &last) == CUDA_SUCCESS &&
		last.on_device && last.start != k->start)
		return pcclSuccess;
	return pccl_fail(pcclInvalidArgument,
		"%s: the memory at %p on CUDA device %d ends after %llu bytes, and the call needs "
		"%zu",
		b->name, (void *)b->at, k->device, (unsigned long long)(end - at), bytes);
}

/* Finds the context in which the memory is copied: its own one, or else the current one of the
 * thread if it is on the same device, or else the primary one of the device. */
static CUresult choose_context(const struct gpu_driver *gpu, const struct known *k, CUcontext *ret)
{
	CUcontext current = NULL;
	CUdevice device;

	if (k->ctx) {
		*ret = k->ctx;
		return CUDA_SUCCESS;
	}
	if (gpu->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
		gpu->cuCtxGetDevice(&device) == CUDA_SUCCESS && device == k->device) {
		*ret = current;
		return CUDA_SUCCESS;
	}
	return pccl_cuda_primary(gpu, k->device, ret);
}

/* Checks that all bytes of the buffer are memory of a device. */
static pcclResult_t examine(
	const struct gpu_driver *gpu, const struct pccl_buf *b, size_t bytes, struct known *ret)
{
	CUresult error = ask(gpu->cuPointerGetAttributes, b->at, true, ret);

	if (error != CUDA_SUCCESS)
		return pccl_cuda_fail(gpu, "cuPointerGetAttributes", error,
			"%s: CUDA does not say what memory is at %p", b->name, (void *)b->at);
	if (!ret->on_device)
		return pccl_fail(pcclInvalidArgument, "%s: %p is not memory of a CUDA device",
			b->name, (void *)b->at);
	return check_size(gpu, b, bytes, ret);
}

pcclResult_t pccl_cuda_check(const struct pccl_buf *b, size_t bytes)
{
	struct known k;

	return examine(use_of(b)->context->gpu, b, bytes, &k);
}

static pcclResult_t open_buffer(
	struct pccl_buf *b, size_t bytes, const char *name, struct pccl_buf_call *call)
{
	struct pccl_cuda_use *use;
	const struct gpu_driver *gpu;
	char why[GPU_TEXT];
	struct known k;
	CUcontext ctx;
	CUresult error;
	pcclResult_t r;

	b->name = name;
	gpu = gpu_driver_open(why);
	if (!gpu)
		return pccl_fail(pcclInternalError, "%s: %s", name, why);
	r = examine(gpu, b, bytes, &k);
	if (r != pcclSuccess)
		return r;
	error = choose_context(gpu, &k, &ctx);
	if (error != CUDA_SUCCESS)
		return pccl_cuda_fail(gpu, "cuDevicePrimaryCtxRetain", error,
			"%s: the memory at %p on CUDA device %d has no usable context", name,
			(void *)b->at, k.device);
	r = pccl_cuda_use_get(gpu, ctx, k.device, &pccl_buf_cuda, call, &use);
	if (r == pcclSuccess)
		b->use = &use->base;
	return r;
}

static void close_use(struct pccl_buf_use *use)
{
	pccl_cuda_use_put((struct pccl_cuda_use *)(void *)use);
}

/* ---- copies */

/* Has the application freed the memory, although the call is not over? Says no if the driver cannot
 * tell. */
static bool is_freed(const struct gpu_driver *gpu, const struct pccl_buf *b)
{
	struct known k;

	return ask(gpu->cuPointerGetAttributes, b->at, true, &k) == CUDA_SUCCESS && !k.on_device;
}

/* Sets the sentence about a copy that has failed, and forgets the context. */
static pcclResult_t fail(
	const struct pccl_buf *b, const char *function, CUresult error, const char *verb)
{
	struct pccl_cuda_context *c = use_of(b)->context;
	bool freed = error == CUDA_ERROR_INVALID_VALUE && is_freed(c->gpu, b);

	pccl_cuda_spoil(c, error);
	return pccl_cuda_fail(c->gpu, function, error, "%s (%p, CUDA device %d) %scannot be %s",
		b->name, (void *)b->at, c->device, freed ? "was freed during the call and " : "",
		verb);
}

static pcclResult_t start_in(
	const struct pccl_buf *b, uint64_t off, void *to, size_t n, unsigned lane)
{
	struct pccl_cuda_use *u = use_of(b);
	const struct pccl_cuda_context *c = u->context;
	const char *function = "cuCtxPushCurrent";
	CUresult error = pccl_cuda_enter(c);

	if (error != CUDA_SUCCESS)
		return fail(b, function, error, "read");
	function = "cuStreamWaitEvent";
	error = pccl_cuda_keep_order(u, c->in, &u->ordered_in);
	if (error == CUDA_SUCCESS) {
		function = "cuMemcpyDtoHAsync";
		error = c->gpu->cuMemcpyDtoHAsync(to, pointer(b->at + off), n, c->in);
	}
	if (error == CUDA_SUCCESS) {
		function = "cuEventRecord";
		error = c->gpu->cuEventRecord(u->lanes[lane], c->in);
		/* The caller does not wait for this copy. */
		if (error != CUDA_SUCCESS)
			pccl_cuda_settle(c, c->in);
	}
	pccl_cuda_leave(c);
	return error == CUDA_SUCCESS ? pcclSuccess : fail(b, function, error, "read");
}

static pcclResult_t finish_in(const struct pccl_buf *b, unsigned lane)
{
	const struct pccl_cuda_use *u = use_of(b);
	const struct pccl_cuda_context *c = u->context;
	const char *function = "cuCtxPushCurrent";
	CUresult error = pccl_cuda_enter(c);

	if (error == CUDA_SUCCESS) {
		function = "cuEventSynchronize";
		error = pccl_cuda_await(c->gpu, u->lanes[lane]);
		pccl_cuda_leave(c);
	}
	if (error == CUDA_SUCCESS)
		return pcclSuccess;
	pccl_cuda_settle(c, c->in);
	return fail(b, function, error, "read");
}

static pcclResult_t copy_in(const struct pccl_buf *b, uint64_t off, void *to, size_t n)
{
	pcclResult_t r = start_in(b, off, to, n, SINGLE);

	return r == pcclSuccess ? finish_in(b, SINGLE) : r;
}

static pcclResult_t start_out(
	const struct pccl_buf *b, uint64_t off, const void *from, size_t n, size_t whole)
{
	struct pccl_cuda_use *u = use_of(b);
	const struct pccl_cuda_context *c = u->context;
	const char *function = "cuCtxPushCurrent";
	CUresult error = pccl_cuda_enter(c);

	(void)whole;
	if (error != CUDA_SUCCESS)
		return fail(b, function, error, "written");
	function = "cuStreamWaitEvent";
	error = pccl_cuda_keep_order(u, c->out, &u->ordered_out);
	if (error == CUDA_SUCCESS) {
		function = "cuMemcpyHtoDAsync";
		error = c->gpu->cuMemcpyHtoDAsync(pointer(b->at + off), from, n, c->out);
	}
	pccl_cuda_leave(c);
	return error == CUDA_SUCCESS ? pcclSuccess : fail(b, function, error, "written");
}

/* Completes the oldest exchange: the host memory gets the old contents. In the context. */
static CUresult finish_swap(struct pccl_cuda_use *u)
{
	unsigned i = u->swaps_over % PCCL_BUF_LANES;
	CUresult error = pccl_cuda_await(u->context->gpu, u->swaps[i].done);

	u->swaps_over++;
	if (error == CUDA_SUCCESS)
		memcpy(u->swaps[i].host, u->bounce + i * PCCL_CUDA_BOUNCE, u->swaps[i].n);
	else
		u->lost = true;
	return error;
}

/* Begins to exchange at most PCCL_CUDA_BOUNCE bytes. In the context. Returns the function that has
 * failed, or NULL. */
static const char *start_swap(
	struct pccl_cuda_use *u, CUdeviceptr at, uint8_t *host, size_t n, CUresult *ret_error)
{
	const struct pccl_cuda_context *c = u->context;
	unsigned i = u->swaps_begun % PCCL_BUF_LANES;

	if (u->swaps_begun - u->swaps_over == PCCL_BUF_LANES) {
		*ret_error = finish_swap(u);
		if (*ret_error != CUDA_SUCCESS)
			return "cuEventSynchronize";
	}
	*ret_error = pccl_cuda_keep_order(u, c->out, &u->ordered_out);
	if (*ret_error != CUDA_SUCCESS)
		return "cuStreamWaitEvent";
	*ret_error = c->gpu->cuMemcpyDtoHAsync(u->bounce + i * PCCL_CUDA_BOUNCE, at, n, c->out);
	if (*ret_error != CUDA_SUCCESS)
		return "cuMemcpyDtoHAsync";
	*ret_error = c->gpu->cuMemcpyHtoDAsync(at, host, n, c->out);
	if (*ret_error != CUDA_SUCCESS)
		return "cuMemcpyHtoDAsync";
	u->swaps[i].host = host;
	u->swaps[i].n = n;
	u->swaps_begun++;
	*ret_error = c->gpu->cuEventRecord(u->swaps[i].done, c->out);
	if (*ret_error == CUDA_SUCCESS)
		return NULL;
	u->swaps_begun--;
	u->lost = true;
	return "cuEventRecord";
}

static pcclResult_t swap(const struct pccl_buf *b, uint64_t off, uint8_t *host, size_t n)
{
	struct pccl_cuda_use *u = use_of(b);
	const struct pccl_cuda_context *c = u->context;
	const char *failed = NULL;
	pcclResult_t r = pccl_cuda_use_bounce(u);
	bool begun = false;
	CUresult error;

	if (r != pcclSuccess)
		return r;
	error = pccl_cuda_enter(c);
	if (error != CUDA_SUCCESS)
		return fail(b, "cuCtxPushCurrent", error, "written");
	for (size_t part; n > 0 && !failed; off += part, host += part, n -= part) {
		part = n < PCCL_CUDA_BOUNCE ? n : PCCL_CUDA_BOUNCE;
		failed = start_swap(u, pointer(b->at + off), host, part, &error);
		begun = begun || !failed;
	}
	pccl_cuda_leave(c);
	if (!failed)
		return pcclSuccess;
	u->lost = u->lost || begun;
	return fail(b, failed, error, "written");
}

static pcclResult_t finish_out(const struct pccl_buf *b)
{
	struct pccl_cuda_use *u = use_of(b);
	const struct pccl_cuda_context *c = u->context;
	CUresult error = pccl_cuda_enter(c), also;

	if (error != CUDA_SUCCESS) {
		pccl_cuda_settle(c, c->out);
		return fail(b, "cuCtxPushCurrent", error, "written");
	}
	while (u->swaps_over < u->swaps_begun) {
		also = finish_swap(u);
		error = error == CUDA_SUCCESS ? also : error;
	}
	if (error == CUDA_SUCCESS && u->lost)
		error = CUDA_ERROR_UNKNOWN;
	if (error == CUDA_SUCCESS)
		error = c->gpu->cuEventRecord(u->out, c->out);
	if (error == CUDA_SUCCESS)
		error = pccl_cuda_await(c->gpu, u->out);
	if (error != CUDA_SUCCESS)
		pccl_cuda_settle(c, c->out);
	pccl_cuda_leave(c);
	return error == CUDA_SUCCESS ? pcclSuccess
				     : fail(b, "cuEventSynchronize", error, "written");
}

/* ---- hashes */

static pcclResult_t leaf(const struct pccl_buf *b, uint64_t off, size_t n, hsh_leaf_fn *of_host,
	uint64_t index, uint64_t *ret)
{
	struct pccl_cuda_use *u = use_of(b);
	pcclResult_t r = pccl_cuda_use_bounce(u);

	if (r == pcclSuccess)
		r = copy_in(b, off, u->bounce, n);
	if (r == pcclSuccess)
		*ret = of_host(u->bounce, n, index);
	return r;
}

static void pin(const struct pccl_buf *b, struct pccl_map *m)
{
	pccl_cuda_pin(use_of(b)->context, m);
}

const struct pccl_buf_kind pccl_buf_cuda = {
	.device = pcclDeviceCuda,
	.piece = PIECE,
	.lanes = PCCL_BUF_LANES,
	.is_used = is_used,
	.owns = owns,
	.open = open_buffer,
	.close = close_use,
	.copy_in = copy_in,
	.start_in = start_in,
	.finish_in = finish_in,
	.start_out = start_out,
	.swap = swap,
	.finish_out = finish_out,
	.leaf = leaf,
	.hash = pccl_cuda_hash,
	.pin = pin,
	.after_fork = pccl_cuda_after_fork,
};
