/* SPDX-License-Identifier: MIT
 *
 * Functions of the maths library of CUDA, evaluated for all values of their argument: the kernels
 * of `pcclctl gpu-check`. Hosts and kernels include this header.
 *
 * Definition of the hash of a function: the results for the arguments with the bits 0, 1, 2, ...
 * are an array of words of 32 or 16 bits, little-endian. Every NaN is the positive quiet NaN
 * without payload (0x7fc00000; fp16: 0x7e00; bf16: 0x7fc0). The hash is the `simplehash` of this
 * array as a tensor (hsh_leaf, hsh_tensor). So the order in which threads compute has no effect.
 *
 * Functions with more than one argument compute the others from the bits of the first one:
 * gpu_check_factor gives numbers from 1 to 2, gpu_check_summand numbers with the exponent of the
 * first argument, so that sums cancel and must be rounded.
 *
 * To evaluate: launch the kernel pccl_gpu_check_NAME for a part of the arguments, and
 * pccl_gpu_hash_leaves for its results.
 */
#ifndef KERNELS_CUDA_GPU_CHECK_H
#define KERNELS_CUDA_GPU_CHECK_H

#include <stdint.h>

#define GPU_CHECK_THREADS 256
/* The arguments of one launch: whole leaves of results. */
#define GPU_CHECK_PART (UINT32_C(1) << 24)

/* The classes of functions: how many bits the argument has, and the result. */
#define GPU_CHECK_32_32(X, name, text) X(name, 32, 32, text)
#define GPU_CHECK_32_16(X, name, text) X(name, 32, 16, text)
#define GPU_CHECK_16_32(X, name, text) X(name, 16, 32, text)

/* IEEE 754 defines the bits of these results, except that it leaves the bits of a NaN open. x is
 * the argument. */
#define GPU_CHECK_EXACT(X)                                                                         \
	GPU_CHECK_32_16(X, f32_to_f16, "fp32 to fp16, to nearest even")                            \
	GPU_CHECK_32_16(X, f32_to_bf16, "fp32 to bf16, to nearest even")                           \
	GPU_CHECK_16_32(X, f16_to_f32, "fp16 to fp32")                                             \
	GPU_CHECK_16_32(X, bf16_to_f32, "bf16 to fp32")                                            \
	GPU_CHECK_32_32(X, sqrtf, "sqrtf(x)")                                                      \
	GPU_CHECK_32_32(X, reciprocal, "1 / x")                                                    \
	GPU_CHECK_32_32(X, division, "x / factor")                                                 \
	GPU_CHECK_32_32(X, fmaf, "fmaf(x, factor, summand)")

/* The library of CUDA defines these results. */
#define GPU_CHECK_LIBRARY(X)                                                                       \
	GPU_CHECK_32_32(X, rsqrtf, "rsqrtf(x)")                                                    \
	GPU_CHECK_32_32(X, expf, "expf(x)")                                                        \
	GPU_CHECK_32_32(X, exp2f, "exp2f(x)")                                                      \
	GPU_CHECK_32_32(X, expm1f, "expm1f(x)")                                                    \
	GPU_CHECK_32_32(X, logf, "logf(x)")                                                        \
	GPU_CHECK_32_32(X, log2f, "log2f(x)")                                                      \
	GPU_CHECK_32_32(X, log1pf, "log1pf(x)")                                                    \
	GPU_CHECK_32_32(X, sinf, "sinf(x)")                                                        \
	GPU_CHECK_32_32(X, cosf, "cosf(x)")                                                        \
	GPU_CHECK_32_32(X, tanhf, "tanhf(x)")                                                      \
	GPU_CHECK_32_32(X, erff, "erff(x)")                                                        \
	GPU_CHECK_32_32(X, powf_3, "powf(x, 3)")                                                   \
	GPU_CHECK_32_32(X, powf_1_5, "powf(x, 1.5)")                                               \
	GPU_CHECK_32_32(X, powf_of_0_9, "powf(0.9, x)")

#define GPU_CHECK_FUNCTIONS(X) GPU_CHECK_EXACT(X) GPU_CHECK_LIBRARY(X)

struct gpu_check_args {
	uint64_t results; /* address on the device: uint32_t[n] or uint16_t[n] */
	uint32_t first;   /* the bits of the first argument */
	uint32_t n;       /* arguments */
};

/* The fat binary of the kernels, for cuModuleLoadData. Only builds with --with-cuda have it. */
extern const unsigned char pccl_gpu_check_fatbin[];

#endif
