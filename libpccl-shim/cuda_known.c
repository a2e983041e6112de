/* SPDX-License-Identifier: MIT
 *
 * Questions to the driver about addresses. Its answers are never kept. Memory may be freed, and
 * other memory may get its address, between any two calls.
 */
#include "libpccl-shim/cuda.h"

CUresult pccl_cuda_ask(
	gpu_driver_ask *driver, const void *at, bool all, struct pccl_cuda_known *ret)
{
	unsigned type = 0;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *values[] = {&type, &ret->managed, &ret->ctx, &ret->device, &ret->start, &ret->size};
	CUresult error;

	*ret = (struct pccl_cuda_known){.on_device = false};
	error = driver(
		all ? sizeof names / sizeof names[0] : 2, names, values, pccl_cuda_pointer(at));
	/* The driver has not started, or this is a forked child of a process that uses it. */
	if (error == CUDA_ERROR_NOT_INITIALIZED)
		return CUDA_SUCCESS;
	ret->on_device = error == CUDA_SUCCESS && (type == CU_MEMORYTYPE_DEVICE || ret->managed);
	return error;
}

/* Checks that all bytes of the buffer are memory of the device. Memory that was mapped in parts has
 * several ranges. */
static pcclResult_t check_size(const struct gpu_driver *gpu, const struct pccl_buf *b, size_t bytes,
	const struct pccl_cuda_known *k)
{
	CUdeviceptr at = pccl_cuda_pointer(b->at), end = k->start + k->size;
	struct pccl_cuda_known last;

	if (k->size == 0 || (at >= k->start && end - at >= bytes))
		return pcclSuccess;
	if (pccl_cuda_ask(gpu->cuPointerGetAttributes, b->at + bytes - 1, true, &last) ==
			CUDA_SUCCESS &&
		last.on_device && last.start != k->start)
		return pcclSuccess;
	return pccl_fail(pcclInvalidArgument,
		"%s: the memory at %p on CUDA device %d ends after %llu bytes, and the call needs "
		"%zu",
		b->name, (void *)b->at, k->device, (unsigned long long)(end - at), bytes);
}

pcclResult_t pccl_cuda_examine(const struct gpu_driver *gpu, const struct pccl_buf *b, size_t bytes,
	struct pccl_cuda_known *ret)
{
	CUresult error = pccl_cuda_ask(gpu->cuPointerGetAttributes, b->at, true, ret);

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
	struct pccl_cuda_known k;

	return pccl_cuda_examine(
		((struct pccl_cuda_use *)(void *)b->use)->context->gpu, b, bytes, &k);
}
