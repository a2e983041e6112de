/* SPDX-License-Identifier: MIT */
/*
 * The kernels of gpu_check.h: one for each function. A thread computes every n-th result, where n
 * is the number of threads.
 */
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/gpu_check.h"

#define FUNCTION GPU_FUNCTION
#include "kernels/cuda/check_value.h"

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

GPU_FUNCTION float from_bits(uint32_t bits)
{
	return __uint_as_float(bits);
}

GPU_FUNCTION uint32_t to_bits(float x)
{
	return __float_as_uint(x);
}

GPU_FUNCTION uint16_t to_f16(float x)
{
	return __half_as_ushort(__float2half_rn(x));
}

GPU_FUNCTION uint16_t to_bf16(float x)
{
	return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

GPU_FUNCTION float from_f16(uint16_t bits)
{
	return __half2float(__ushort_as_half(bits));
}

GPU_FUNCTION float from_bf16(uint16_t bits)
{
	return __bfloat162float(__ushort_as_bfloat16(bits));
}

#else

/* The emulation takes the functions of the C library, and conversions of its own. */
#include <math.h>

uint16_t gpu_to_f16(float x);
uint16_t gpu_to_bf16(float x);
float gpu_from_f16(uint16_t bits);
float gpu_from_bf16(uint16_t bits);

#define from_bits krn_f32_from_bits
#define to_bits   krn_f32_bits
#define to_f16    gpu_to_f16
#define to_bf16   gpu_to_bf16
#define from_f16  gpu_from_f16
#define from_bf16 gpu_from_bf16

GPU_FUNCTION float rsqrtf(float x)
{
	return 1 / sqrtf(x);
}

#endif

/* The results for the argument with these bits. */

GPU_FUNCTION uint16_t f32_to_f16(uint32_t bits)
{
	return gpu_check_result_f16(to_f16(from_bits(bits)));
}

GPU_FUNCTION uint16_t f32_to_bf16(uint32_t bits)
{
	return gpu_check_result_bf16(to_bf16(from_bits(bits)));
}

GPU_FUNCTION uint32_t f16_to_f32(uint32_t bits)
{
	return gpu_check_result_32(to_bits(from_f16((uint16_t)bits)));
}

GPU_FUNCTION uint32_t bf16_to_f32(uint32_t bits)
{
	return gpu_check_result_32(to_bits(from_bf16((uint16_t)bits)));
}

/* Defines a function by an expression in x, y (the factor) and z (the summand). */
#define VALUE(name, expression)                                                                    \
	GPU_FUNCTION uint32_t value_##name(uint32_t bits)                                          \
	{                                                                                          \
		float x = from_bits(bits), y = from_bits(gpu_check_factor(bits));                  \
		float z = from_bits(gpu_check_summand(bits));                                      \
                                                                                                   \
		(void)y, (void)z;                                                                  \
		return gpu_check_result_32(to_bits(expression));                                   \
	}

VALUE(sqrtf, sqrtf(x))
VALUE(reciprocal, 1 / x)
VALUE(division, x / y)
VALUE(fmaf, fmaf(x, y, z))
VALUE(rsqrtf, rsqrtf(x))
VALUE(expf, expf(x))
VALUE(exp2f, exp2f(x))
VALUE(expm1f, expm1f(x))
VALUE(logf, logf(x))
VALUE(log2f, log2f(x))
VALUE(log1pf, log1pf(x))
VALUE(sinf, sinf(x))
VALUE(cosf, cosf(x))
VALUE(tanhf, tanhf(x))
VALUE(erff, erff(x))
VALUE(powf_3, powf(x, 3))
VALUE(powf_1_5, powf(x, 1.5f))
VALUE(powf_of_0_9, powf(0.9f, x))

#define value_f32_to_f16  f32_to_f16
#define value_f32_to_bf16 f32_to_bf16
#define value_f16_to_f32  f16_to_f32
#define value_bf16_to_f32 bf16_to_f32

#define KERNEL(name, argument, result, text)                                                       \
	GPU_KERNEL(pccl_gpu_check_##name, GPU_CHECK_THREADS, struct gpu_check_args)                \
	{                                                                                          \
		uint##result##_t *results = (uint##result##_t *)(uintptr_t)args.results;           \
		uint32_t step = gpu_blocks() * GPU_CHECK_THREADS;                                  \
		uint32_t i = gpu_block() * GPU_CHECK_THREADS + gpu_thread();                       \
                                                                                                   \
		for (; i < args.n; i += step)                                                      \
			results[i] = value_##name(args.first + i);                                 \
	}

GPU_CHECK_FUNCTIONS(KERNEL)
