/* SPDX-License-Identifier: MIT
 *
 * The memory of CUDA devices, as a kind of user memory (buf.h).
 *
 * Host memory that is registered with CUDA is host memory. Managed memory is memory of a device:
 * the CPU could read it, but not while a kernel of the application uses it, so it is copied after
 * the work of the application, as other memory of a device.
 */
#include <string.h>

#include "libpccl-shim/cuda.h"

#define PIECE ((size_t)1 << 20)

/* The lane of copy_in. */
#define SINGLE PCCL_BUF_LANES

static struct pccl_cuda_use *use_of(const struct pccl_buf *b)
{
	return (struct pccl_cuda_use *)(void *)b->use;
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
	struct pccl_cuda_known k;

	if (!driver || !at)
		return PCCL_BUF_NOT_OWNED;
	/* If the driver cannot say, or is too old, open_buffer reports the error. */
	if (pccl_cuda_ask(driver, at, false, &k) != CUDA_SUCCESS)
		return PCCL_BUF_OWNED;
	if (!k.on_device)
		return PCCL_BUF_NOT_OWNED;
	return k.managed ? PCCL_BUF_SHARED : PCCL_BUF_OWNED;
}

/* Finds the context in which the memory is copied: its own one, or else the current one of the
 * thread if it is on the same device, or else the primary one of the device. */
static CUresult choose_context(
	const struct gpu_driver *gpu, const struct pccl_cuda_known *k, CUcontext *ret)
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

static pcclResult_t open_buffer(
	struct pccl_buf *b, size_t bytes, const char *name, struct pccl_buf_call *call)
{
	struct pccl_cuda_use *use;
	const struct gpu_driver *gpu;
	char why[GPU_TEXT];
	struct pccl_cuda_known k;
	CUcontext ctx;
	CUresult error;
	pcclResult_t r;

	b->name = name;
	gpu = gpu_driver_open(why);
	if (!gpu)
		return pccl_fail(pcclInternalError, "%s: %s", name, why);
	r = pccl_cuda_examine(gpu, b, bytes, &k);
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
	struct pccl_cuda_known k;

	return pccl_cuda_ask(gpu->cuPointerGetAttributes, b->at, true, &k) == CUDA_SUCCESS &&
	       !k.on_device;
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
		error = c->gpu->cuMemcpyDtoHAsync(to, pccl_cuda_pointer(b->at + off), n, c->in);
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
		error = c->gpu->cuMemcpyHtoDAsync(pccl_cuda_pointer(b->at + off), from, n, c->out);
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
		failed = start_swap(u, pccl_cuda_pointer(b->at + off), host, part, &error);
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
