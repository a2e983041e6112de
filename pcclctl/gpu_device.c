/* SPDX-License-Identifier: MIT */
#include "pcclctl/gpu_device.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cc_must.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/gpu_check.h"
#include "kernels/cuda/gpu_hash.h"
#include "kernels/hsh.h"

#define PARTS_AT_ONCE 8 /* between two calls of `progress` */

struct ctl_gpu_device {
	const struct gpu_driver *gpu;
	unsigned number, multiprocessors;
	CUdevice device;
	CUmodule check, hash;
	CUfunction hash_kernel;
	CUdeviceptr results, leaves;
	bool retained;
	char name[128], architecture[16];
	char *why;
};

/* Returns whether a call of the driver has succeeded. If not, writes the sentence. */
static bool succeeded(const struct ctl_gpu_device *d, CUresult error, const char *function)
{
	if (error == CUDA_SUCCESS)
		return true;
	snprintf(d->why, CTL_GPU_WHY_SIZE, "CUDA device %u: %s returned %s", d->number, function,
		gpu_driver_error(d->gpu, error));
	return false;
}

#define CALL(d, function, ...) succeeded(d, (d)->gpu->function(__VA_ARGS__), #function)

/* ---- open and close ---- */

static bool find_device(struct ctl_gpu_device *d)
{
	int n = 0, major = 0, minor = 0, multiprocessors = 0;

	if (!CALL(d, cuDeviceGetCount, &n))
		return false;
	if (d->number >= (unsigned)n) {
		snprintf(d->why, CTL_GPU_WHY_SIZE,
			"there is no CUDA device %u: this host has %d, numbered from 0", d->number,
			n);
		return false;
	}
	if (!CALL(d, cuDeviceGet, &d->device, (int)d->number) ||
		!CALL(d, cuDeviceGetName, d->name, sizeof d->name, d->device) ||
		!CALL(d, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
			d->device) ||
		!CALL(d, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
			d->device) ||
		!CALL(d, cuDeviceGetAttribute, &multiprocessors,
			CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->device))
		return false;
	d->multiprocessors = multiprocessors > 0 ? (unsigned)multiprocessors : 1;
	snprintf(d->architecture, sizeof d->architecture, "sm_%d%d", major, minor);
	return true;
}

static bool prepare(struct ctl_gpu_device *d)
{
	size_t leaves = (size_t)(UINT64_C(1) << 32) * sizeof(uint32_t) / HSH_LEAF;
	CUcontext context;

	if (!find_device(d) || !CALL(d, cuDevicePrimaryCtxRetain, &context, d->device))
		return false;
	d->retained = true;
	return CALL(d, cuCtxPushCurrent, context) &&
	       CALL(d, cuModuleLoadData, &d->check, pccl_gpu_check_fatbin) &&
	       CALL(d, cuModuleLoadData, &d->hash, pccl_gpu_fatbin) &&
	       CALL(d, cuModuleGetFunction, &d->hash_kernel, d->hash, GPU_HASH_KERNEL) &&
	       CALL(d, cuMemAlloc, &d->results, GPU_CHECK_PART * sizeof(uint32_t)) &&
	       CALL(d, cuMemAlloc, &d->leaves, leaves * sizeof(uint64_t));
}

struct ctl_gpu_device *ctl_gpu_open(unsigned device, char why[CTL_GPU_WHY_SIZE])
{
	const struct gpu_driver *gpu = gpu_driver_start(why);
	struct ctl_gpu_device *d;

	if (!gpu)
		return NULL;
	d = cc_must_zalloc(1, sizeof *d);
	d->gpu = gpu;
	d->number = device;
	d->why = why;
	if (prepare(d))
		return d;
	ctl_gpu_close(d);
	return NULL;
}

/* Failures do not matter here: the process ends. */
void ctl_gpu_close(struct ctl_gpu_device *d)
{
	CUcontext context;

	if (d->leaves)
		(void)d->gpu->cuMemFree(d->leaves);
	if (d->results)
		(void)d->gpu->cuMemFree(d->results);
	if (d->hash)
		(void)d->gpu->cuModuleUnload(d->hash);
	if (d->check)
		(void)d->gpu->cuModuleUnload(d->check);
	if (d->retained) {
		(void)d->gpu->cuCtxPopCurrent(&context);
		(void)d->gpu->cuDevicePrimaryCtxRelease(d->device);
	}
	free(d);
}

const char *ctl_gpu_name(const struct ctl_gpu_device *d)
{
	return d->name;
}

const char *ctl_gpu_architecture(const struct ctl_gpu_device *d)
{
	return d->architecture;
}

/* ---- evaluate ---- */

/* Starts the kernels for n arguments from `first` on, which begin a leaf. */
static bool start_part(struct ctl_gpu_device *d, const struct gpu_check_function *f,
	CUfunction kernel, uint64_t first, uint32_t n)
{
	uint64_t leaf = gpu_check_leaves(f, first);
	struct gpu_check_args check = {.results = d->results, .first = (uint32_t)first, .n = n};
	struct gpu_hash_args hash = {.leaves = d->leaves + leaf * sizeof(uint64_t)};
	unsigned blocks = d->multiprocessors * GPU_HASH_RESIDENT;

	gpu_hash_add(&hash, d->results, (uint64_t)n * (f->result / 8), leaf);
	return CALL(d, cuLaunchKernel, kernel, blocks, 1, 1, GPU_CHECK_THREADS, 1, 1, 0, NULL,
		       (void *[]){&check}, NULL) &&
	       CALL(d, cuLaunchKernel, d->hash_kernel,
		       gpu_hash_grid(hash.n_leaves, d->multiprocessors), 1, 1, GPU_HASH_THREADS, 1,
		       1, GPU_HASH_SHARED, NULL, (void *[]){&hash}, NULL);
}

bool ctl_gpu_evaluate(struct ctl_gpu_device *d, const struct gpu_check_function *f,
	void (*progress)(const struct gpu_check_function *f, unsigned percent), uint64_t *ret_hash,
	char why[CTL_GPU_WHY_SIZE])
{
	uint64_t n = gpu_check_arguments(f), leaves = gpu_check_leaves(f, n), *hashes;
	CUfunction kernel;
	bool ok;

	d->why = why;
	if (!CALL(d, cuModuleGetFunction, &kernel, d->check, f->kernel))
		return false;
	ok = true;
	for (uint64_t first = 0, part = 1; ok && first < n; first += GPU_CHECK_PART, part++) {
		uint64_t left = n - first;

		ok = start_part(d, f, kernel, first,
			left < GPU_CHECK_PART ? (uint32_t)left : GPU_CHECK_PART);
		if (ok && part % PARTS_AT_ONCE == 0) {
			ok = CALL(d, cuCtxSynchronize, );
			progress(f, (unsigned)(100 * first / n));
		}
	}
	if (!ok)
		return false;
	hashes = cc_must_zalloc(leaves, sizeof *hashes);
	ok = CALL(d, cuMemcpyDtoH, hashes, d->leaves, leaves * sizeof *hashes);
	if (ok)
		*ret_hash = hsh_tensor(hashes, n * (f->result / 8));
	free(hashes);
	return ok;
}
