/* SPDX-License-Identifier: MIT
 *
 * Hashes of tensors in the memory of CUDA devices. SimpleHash is computed there, by the kernel of
 * kernels/cuda/gpu_hash.h. If the driver cannot load the kernel, or if there is no memory for its
 * results, and for other hashes, the tensors are copied to the host piece by piece.
 */
#include "libpccl-shim/cuda.h"

#include <string.h>

#include "kernels/cuda/gpu_hash.h"
#include "kernels/hsh.h"

/* The leaves of one launch: their hashes fit into the bounce buffers. */
#define LEAVES_MAX (PCCL_BUF_LANES * PCCL_CUDA_BOUNCE / sizeof(uint64_t))

/* One launch. */
struct launch {
	struct gpu_hash_args args;
	uint64_t *to[GPU_HASH_RANGES]; /* where the hashes of each range go */
};

static pcclResult_t fail(struct pccl_cuda_context *c, const char *function, CUresult error)
{
	/* The bounce buffers may be freed after this. */
	pccl_cuda_settle(c, c->in);
	pccl_cuda_spoil(c, error);
	return pccl_cuda_fail(
		c->gpu, function, error, "tensors on CUDA device %d cannot be hashed", c->device);
}

/* With hash_lock held, in the context: loads the kernel. Errors are those of the first copy, or
 * none that matters here. */
static void load_kernel(struct pccl_cuda_context *c)
{
	const struct gpu_driver *gpu = c->gpu;
	CUdevice device;
	int processors = 0;

	c->hash_tried = true;
	if (gpu->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
		gpu->cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
			device) != CUDA_SUCCESS ||
		processors < 1)
		return;
	c->multiprocessors = (unsigned)processors;
	if (gpu->cuModuleLoadData(&c->module, pccl_gpu_fatbin) != CUDA_SUCCESS) {
		c->module = NULL;
		return;
	}
	if (gpu->cuMemAlloc(&c->leaves, LEAVES_MAX * sizeof(uint64_t)) != CUDA_SUCCESS) {
		c->leaves = 0;
		return;
	}
	if (gpu->cuModuleGetFunction(&c->kernel, c->module, GPU_HASH_KERNEL) != CUDA_SUCCESS)
		c->kernel = NULL;
}

/* Launches the kernel, and waits for its hashes. In the context. */
static pcclResult_t run(struct pccl_cuda_use *u, struct launch *l)
{
	struct pccl_cuda_context *c = u->context;
	size_t n = l->args.n_leaves * sizeof(uint64_t);
	void *parameters[] = {&l->args};
	const uint64_t *hashes = (const uint64_t *)(const void *)u->bounce;
	CUresult error = pccl_cuda_keep_order(u, c->in, &u->ordered_in);

	if (error != CUDA_SUCCESS)
		return fail(c, "cuStreamWaitEvent", error);
	l->args.leaves = c->leaves;
	error = c->gpu->cuLaunchKernel(c->kernel,
		gpu_hash_grid(l->args.n_leaves, c->multiprocessors), 1, 1, GPU_HASH_THREADS, 1, 1,
		GPU_HASH_SHARED, c->in, parameters, NULL);
	if (error != CUDA_SUCCESS)
		return fail(c, "cuLaunchKernel", error);
	error = c->gpu->cuMemcpyDtoHAsync(u->bounce, c->leaves, n, c->in);
	if (error != CUDA_SUCCESS)
		return fail(c, "cuMemcpyDtoHAsync", error);
	error = c->gpu->cuStreamSynchronize(c->in);
	if (error != CUDA_SUCCESS)
		return fail(c, "cuStreamSynchronize", error);
	for (uint32_t i = 0; i < l->args.n_ranges; i++) {
		const struct gpu_hash_range *r = &l->args.range[i];

		memcpy(l->to[i], hashes + r->start, hsh_leaf_count(r->bytes) * sizeof(uint64_t));
	}
	return pcclSuccess;
}

/* Adds leaves of a tensor, from its leaf `first`, to a launch. Returns how many leaves were
 * added. */
static uint64_t add(struct launch *l, const struct hsh_tensor_work *t, uint64_t first)
{
	uint64_t room = LEAVES_MAX - l->args.n_leaves, off = first * HSH_LEAF;
	uint64_t bytes = t->bytes - off;

	if (l->args.n_ranges == GPU_HASH_RANGES || bytes == 0)
		return 0;
	if (bytes > room * HSH_LEAF)
		bytes = room * HSH_LEAF;
	l->to[l->args.n_ranges] = t->leaves + first;
	return gpu_hash_add(&l->args, (uintptr_t)t->data + off, bytes, first);
}

/* Hashes with the kernel. In the context. */
static pcclResult_t hash_by_kernel(
	struct pccl_cuda_use *u, struct hsh_tensor_work *tensors, size_t n)
{
	struct launch l = {.args = {.n_leaves = 0}};
	pcclResult_t r = pcclSuccess;

	for (size_t i = 0; i < n && r == pcclSuccess; i++) {
		uint64_t count = hsh_leaf_count(tensors[i].bytes), done = 0;

		while (done < count && r == pcclSuccess) {
			uint64_t added = add(&l, &tensors[i], done);

			done += added;
			if (added > 0)
				continue;
			r = run(u, &l);
			l.args.n_leaves = 0;
			l.args.n_ranges = 0;
		}
	}
	return r == pcclSuccess && l.args.n_ranges > 0 ? run(u, &l) : r;
}

/* Hashes a tensor on the host, in pieces of the size of a bounce buffer. */
static pcclResult_t hash_on_host(
	const struct pccl_buf *b, uint8_t *bounce, hsh_leaf_fn *leaf, struct hsh_tensor_work *t)
{
	const uint64_t leaves = PCCL_CUDA_BOUNCE / HSH_LEAF, count = hsh_leaf_count(t->bytes);
	uint64_t pieces = (count + leaves - 1) / leaves, begun = 0, done = 0;
	pcclResult_t r = pcclSuccess, finished;

	while (done < begun || (r == pcclSuccess && begun < pieces)) {
		uint64_t off, left, lane = done % PCCL_BUF_LANES;

		if (r == pcclSuccess && begun < pieces && begun - done < PCCL_BUF_LANES) {
			lane = begun % PCCL_BUF_LANES;
			off = begun * PCCL_CUDA_BOUNCE;
			left = t->bytes - off;
			r = b->kind->start_in(b, off, bounce + lane * PCCL_CUDA_BOUNCE,
				left < PCCL_CUDA_BOUNCE ? left : PCCL_CUDA_BOUNCE, (unsigned)lane);
			if (r == pcclSuccess)
				begun++;
			continue;
		}
		finished = b->kind->finish_in(b, (unsigned)lane);
		r = r == pcclSuccess ? finished : r;
		for (uint64_t i = done * leaves; i < count && i < (done + 1) * leaves; i++) {
			const uint8_t *at =
				bounce + lane * PCCL_CUDA_BOUNCE + i % leaves * HSH_LEAF;

			left = t->bytes - i * HSH_LEAF;
			t->leaves[i] = leaf(at, left < HSH_LEAF ? left : HSH_LEAF, i);
		}
		done++;
	}
	return r;
}

/* Checks that the tensors are still there, if the call has hashed them before. A copy of memory
 * that was freed fails, but a kernel that reads it ends the context of the application. */
static pcclResult_t check_again(
	struct pccl_buf b, const struct hsh_tensor_work *tensors, size_t n, bool *hashed)
{
	pcclResult_t r = pcclSuccess;

	for (size_t i = 0; i < n && r == pcclSuccess && *hashed; i++) {
		b.at = (uint8_t *)(uintptr_t)tensors[i].data;
		r = pccl_cuda_check(&b, tensors[i].bytes);
	}
	*hashed = true;
	return r;
}

pcclResult_t pccl_cuda_hash(const struct pccl_buf *first, hsh_leaf_fn *leaf,
	struct hsh_tensor_work *tensors, size_t n, unsigned threads)
{
	struct pccl_cuda_use *u = (struct pccl_cuda_use *)(void *)first->use;
	struct pccl_cuda_context *c = u->context;
	pcclResult_t r = pccl_cuda_use_bounce(u);
	bool kernel = false;

	(void)threads;
	if (r == pcclSuccess)
		r = check_again(*first, tensors, n, &u->hashed);
	if (r == pcclSuccess && leaf == hsh_leaf && pccl_cuda_enter(c) == CUDA_SUCCESS) {
		pthread_mutex_lock(&c->hash_lock);
		if (!c->hash_tried)
			load_kernel(c);
		kernel = c->kernel != NULL;
		if (kernel)
			r = hash_by_kernel(u, tensors, n);
		pthread_mutex_unlock(&c->hash_lock);
		pccl_cuda_leave(c);
	}
	for (size_t i = 0; i < n && r == pcclSuccess && !kernel; i++) {
		struct pccl_buf b = *first;

		b.at = (uint8_t *)(uintptr_t)tensors[i].data;
		r = hash_on_host(&b, u->bounce, leaf, &tensors[i]);
	}
	for (size_t i = 0; i < n && r == pcclSuccess; i++)
		tensors[i].hash = hsh_tensor(tensors[i].leaves, tensors[i].bytes);
	return r;
}
