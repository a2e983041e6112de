/* SPDX-License-Identifier: MIT */
#include "pccl-bench/device.h"

#ifdef HAVE_CUDA

#include <stdio.h>

#include "kernels/cuda/driver.h"

static const struct gpu_driver *gpu;
static char sentence[GPU_TEXT];

static const char *fail(const char *function, CUresult error)
{
	(void)snprintf(sentence, sizeof sentence, "%s failed with %s", function,
		gpu_driver_error(gpu, error));
	return sentence;
}

/* Makes a context current, which stays current in this thread. */
static const char *start(uint32_t rank)
{
	CUcontext ctx;
	CUresult error;
	int devices;

	if (gpu)
		return NULL;
	gpu = gpu_driver_start(sentence);
	if (!gpu)
		return sentence;
	error = gpu->cuDeviceGetCount(&devices);
	if (error != CUDA_SUCCESS || devices < 1)
		return fail("cuDeviceGetCount", error);
	error = gpu->cuDevicePrimaryCtxRetain(&ctx, (int)(rank % (uint32_t)devices));
	if (error != CUDA_SUCCESS)
		return fail("cuDevicePrimaryCtxRetain", error);
	error = gpu->cuCtxPushCurrent(ctx);
	return error == CUDA_SUCCESS ? NULL : fail("cuCtxPushCurrent", error);
}

const char *bch_device_alloc(uint32_t rank, size_t size, uint8_t **ret)
{
	const char *why = start(rank);
	CUdeviceptr at;
	CUresult error;

	if (why)
		return why;
	error = gpu->cuMemAlloc(&at, size);
	if (error != CUDA_SUCCESS)
		return fail("cuMemAlloc", error);
	*ret = (uint8_t *)(uintptr_t)at;
	return NULL;
}

const char *bch_device_free(uint8_t *device)
{
	CUresult error = device ? gpu->cuMemFree((CUdeviceptr)(uintptr_t)device) : CUDA_SUCCESS;

	return error == CUDA_SUCCESS ? NULL : fail("cuMemFree", error);
}

const char *bch_device_push(uint8_t *device, const void *host, size_t size)
{
	CUresult error = CUDA_SUCCESS;

	if (device)
		error = gpu->cuMemcpyHtoD((CUdeviceptr)(uintptr_t)device, host, size);
	return error == CUDA_SUCCESS ? NULL : fail("cuMemcpyHtoD", error);
}

const char *bch_device_pull(void *host, const uint8_t *device, size_t size)
{
	CUresult error = CUDA_SUCCESS;

	if (device)
		error = gpu->cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, size);
	return error == CUDA_SUCCESS ? NULL : fail("cuMemcpyDtoH", error);
}

#else

const char *bch_device_alloc(uint32_t rank, size_t size, uint8_t **ret)
{
	(void)rank;
	(void)size;
	(void)ret;
	return "--memory cuda: this program was built without CUDA: configure it with --with-cuda";
}

const char *bch_device_free(uint8_t *device)
{
	(void)device;
	return NULL;
}

const char *bch_device_push(uint8_t *device, const void *host, size_t size)
{
	(void)device;
	(void)host;
	(void)size;
	return NULL;
}

const char *bch_device_pull(void *host, const uint8_t *device, size_t size)
{
	(void)host;
	(void)device;
	(void)size;
	return NULL;
}

#endif
