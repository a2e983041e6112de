/* SPDX-License-Identifier: MIT
 *
 * The driver of CUDA, opened at run time. No program links it. This header needs cuda.h, so only
 * code that is built with --with-cuda includes it.
 *
 * The members of struct gpu_driver have the names of the driver's functions, and cuda.h turns both
 * into the versions that it declares: gpu->cuMemAlloc(...) calls cuMemAlloc_v2. A driver of CUDA
 * 11.0 or later has all that are not optional. Any thread may call all functions. Nothing calls
 * cuInit except gpu_driver_start.
 */
#ifndef KERNELS_CUDA_DRIVER_H
#define KERNELS_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#define GPU_TEXT 256 /* room for a sentence of this header */

#define GPU_DRIVER_FUNCTIONS(F)                                                                    \
	F(cuInit)                                                                                  \
	F(cuDriverGetVersion)                                                                      \
	F(cuGetErrorName)                                                                          \
	F(cuGetErrorString)                                                                        \
	F(cuDeviceGet)                                                                             \
	F(cuDeviceGetAttribute)                                                                    \
	F(cuDeviceGetCount)                                                                        \
	F(cuDeviceGetName)                                                                         \
	F(cuDevicePrimaryCtxRetain)                                                                \
	F(cuDevicePrimaryCtxRelease)                                                               \
	F(cuCtxGetCurrent)                                                                         \
	F(cuCtxGetDevice)                                                                          \
	F(cuCtxPopCurrent)                                                                         \
	F(cuCtxPushCurrent)                                                                        \
	F(cuCtxSynchronize)                                                                        \
	F(cuPointerGetAttribute)                                                                   \
	F(cuPointerGetAttributes)                                                                  \
	F(cuMemAlloc)                                                                              \
	F(cuMemAllocManaged)                                                                       \
	F(cuMemFree)                                                                               \
	F(cuMemHostRegister)                                                                       \
	F(cuMemHostUnregister)                                                                     \
	F(cuMemcpyDtoDAsync)                                                                       \
	F(cuMemcpyDtoH)                                                                            \
	F(cuMemcpyDtoHAsync)                                                                       \
	F(cuMemcpyHtoD)                                                                            \
	F(cuMemcpyHtoDAsync)                                                                       \
	F(cuMemsetD8)                                                                              \
	F(cuMemsetD8Async)                                                                         \
	F(cuStreamCreate)                                                                          \
	F(cuStreamDestroy)                                                                         \
	F(cuStreamGetCtx)                                                                          \
	F(cuStreamQuery)                                                                           \
	F(cuStreamSynchronize)                                                                     \
	F(cuStreamWaitEvent)                                                                       \
	F(cuEventCreate)                                                                           \
	F(cuEventDestroy)                                                                          \
	F(cuEventQuery)                                                                            \
	F(cuEventRecord)                                                                           \
	F(cuEventSynchronize)                                                                      \
	F(cuModuleLoadData)                                                                        \
	F(cuModuleUnload)                                                                          \
	F(cuModuleGetFunction)                                                                     \
	F(cuLaunchKernel)

/* Functions of later drivers. The members are NULL with an older driver. */
#define GPU_DRIVER_OPTIONAL(F) F(cuCtxGetId)

#define GPU_DRIVER_MEMBER(name) __typeof__(name) *name;

struct gpu_driver {
	GPU_DRIVER_FUNCTIONS(GPU_DRIVER_MEMBER)
	GPU_DRIVER_OPTIONAL(GPU_DRIVER_MEMBER)
};

/* The function that tells what memory is at an address. */
typedef __typeof__(cuPointerGetAttributes) gpu_driver_ask;

/* Opens libcuda.so.1, which is never closed. Returns NULL on failure; then `why` is a sentence. */
const struct gpu_driver *gpu_driver_open(char why[GPU_TEXT]);
/* As gpu_driver_open, and calls cuInit. */
const struct gpu_driver *gpu_driver_start(char why[GPU_TEXT]);
/*
 * Returns the driver if this process has loaded it already, or NULL. Loads nothing, and opens no
 * file in a process without CUDA. As long as the process loads no further library, a call costs a
 * few nanoseconds.
 */
const struct gpu_driver *gpu_driver_loaded(void);
/* As gpu_driver_loaded, but returns cuPointerGetAttributes, even if the driver lacks functions of
 * struct gpu_driver. gpu_driver_open then says which one is missing. */
gpu_driver_ask *gpu_driver_loaded_ask(void);
/* Returns the name of the driver's error, such as CUDA_ERROR_INVALID_VALUE. Never NULL. */
const char *gpu_driver_error(const struct gpu_driver *gpu, CUresult error);

#endif
