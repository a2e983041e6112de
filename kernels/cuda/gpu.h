/* SPDX-License-Identifier: MIT
 *
 * The functions that a kernel needs from the machine that runs it. Only kernels include this
 * header. nvcc compiles it for a GPU. A C compiler compiles it for the emulation in
 * tests/cuda/emulate.c. So the tests run the source that runs on a GPU.
 *
 * A kernel is written in what C and C++ have in common:
 *
 *     GPU_KERNEL(pccl_gpu_name, 256, struct name_args)
 *     {
 *             GPU_SHARED(uint64_t, sums);
 *             ...
 *     }
 *
 * Its only parameter is `args`. 256 is the number of threads of a block. Grids and blocks have one
 * dimension. Threads of a block share the bytes that the launch asks for. Functions that only
 * kernels call are GPU_FUNCTION.
 */
#ifndef KERNELS_CUDA_GPU_H
#define KERNELS_CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_WARP 32 /* threads */

/* 16 bytes. */
struct gpu_vector {
	uint32_t w[4];
};

#if defined(__CUDACC__)

/* Lets C++ read headers of C. */
#define _Static_assert static_assert
#define _Alignas(n) alignas(n)

#define GPU_KERNEL(name, threads, type)                                                            \
	extern "C" __global__ void __launch_bounds__(threads)                                      \
		name(const __grid_constant__ type args)
#define GPU_FUNCTION static __device__ __forceinline__
/* Declares `name`, the memory that the threads of a block share, aligned to 16 bytes. */
#define GPU_SHARED(type, name)                                                                     \
	extern __shared__ __align__(16) unsigned char gpu_shared_bytes[];                          \
	type *name = (type *)gpu_shared_bytes

#define GPU_PRAGMA(text) _Pragma(#text)
/* Before a loop: the compiler lets n turns of it run at once. */
#define GPU_UNROLL(n) GPU_PRAGMA(unroll n)

/* The number of this thread in its block, the number of this block, and the number of blocks. */
GPU_FUNCTION uint32_t gpu_thread(void)
{
	return threadIdx.x;
}

GPU_FUNCTION uint32_t gpu_block(void)
{
	return blockIdx.x;
}

GPU_FUNCTION uint32_t gpu_blocks(void)
{
	return gridDim.x;
}

/* Waits until all threads of the block are here. What they wrote to shared memory is visible then.
 */
GPU_FUNCTION void gpu_barrier(void)
{
	__syncthreads();
}

/* Returns the value that the thread with the number `this thread ^ mask` gives. All threads of the
 * warp call this. */
GPU_FUNCTION uint64_t gpu_shuffle_xor(uint64_t value, uint32_t mask)
{
	return __shfl_xor_sync(0xffffffff, value, mask);
}

/* These load from memory of the device that nobody writes during the launch: 16 bytes from an
 * address that is a multiple of 16, 4 bytes from a multiple of 4, and one byte. */
GPU_FUNCTION struct gpu_vector gpu_load_vector(const void *at)
{
	uint4 v = __ldg((const uint4 *)at);
	struct gpu_vector r = {{v.x, v.y, v.z, v.w}};

	return r;
}

GPU_FUNCTION uint32_t gpu_load_word(const void *at)
{
	return __ldg((const unsigned *)at);
}

GPU_FUNCTION uint8_t gpu_load_byte(const void *at)
{
	return __ldg((const unsigned char *)at);
}

#else

#include <string.h>

/* The emulation calls NAME_run for each thread. */
#define GPU_KERNEL(name, threads, type)                                                            \
	static void name(const type args);                                                         \
	void name##_run(void **parameters);                                                        \
	void name##_run(void **parameters)                                                         \
	{                                                                                          \
		name(*(const type *)parameters[0]);                                                \
	}                                                                                          \
	static void name(const type args)
#define GPU_FUNCTION           static inline
#define GPU_SHARED(type, name) type *name = gpu_shared()
#define GPU_UNROLL(n)

/* The emulation has these functions. */
uint32_t gpu_thread(void);
uint32_t gpu_block(void);
uint32_t gpu_blocks(void);
void gpu_barrier(void);
uint64_t gpu_shuffle_xor(uint64_t value, uint32_t mask);
void *gpu_shared(void);
/* Ends the launch with a sentence, as a fault of the device does. */
_Noreturn void gpu_fault(const char *sentence);

GPU_FUNCTION struct gpu_vector gpu_load_vector(const void *at)
{
	struct gpu_vector v;

	if ((uintptr_t)at % sizeof(v) != 0)
		gpu_fault("a kernel loads a vector from an address that is not a multiple of 16");
	memcpy(&v, at, sizeof(v));
	return v;
}

GPU_FUNCTION uint32_t gpu_load_word(const void *at)
{
	uint32_t w;

	if ((uintptr_t)at % sizeof(w) != 0)
		gpu_fault("a kernel loads a word from an address that is not a multiple of 4");
	memcpy(&w, at, sizeof(w));
	return w;
}

GPU_FUNCTION uint8_t gpu_load_byte(const void *at)
{
	return *(const uint8_t *)at;
}

#endif

#endif
