/* SPDX-License-Identifier: MIT
 *
 * The arguments and results of gpu_check.h, for kernels and for the CPU. FUNCTION is how the
 * functions are declared.
 */
#ifndef KERNELS_CUDA_CHECK_VALUE_H
#define KERNELS_CUDA_CHECK_VALUE_H

#include <stdint.h>
#include <string.h>

#include "kernels/krn_half.h"

/* Scatters the bits. Different arguments give different results. */
FUNCTION uint32_t gpu_check_scatter(uint32_t bits)
{
	bits = (bits ^ bits >> 16) * UINT32_C(0x85ebca6b);
	return bits ^ bits >> 13;
}

/* Returns a number from 1 to 2. */
FUNCTION uint32_t gpu_check_factor(uint32_t bits)
{
	return UINT32_C(0x3f800000) | gpu_check_scatter(bits) >> 9;
}

/* Returns a number with the exponent of the argument and another sign and significand. */
FUNCTION uint32_t gpu_check_summand(uint32_t bits)
{
	return (bits & UINT32_C(0x7f800000)) | (gpu_check_scatter(bits + 1) & UINT32_C(0x807fffff));
}

/* Return the result, or if it is a NaN the one that is hashed. */
FUNCTION uint32_t gpu_check_result_32(uint32_t bits)
{
	return (bits & 0x7fffffff) > KRN_INF_F32 ? KRN_NAN_F32 : bits;
}

FUNCTION uint16_t gpu_check_result_f16(uint16_t bits)
{
	return (bits & 0x7fff) > KRN_INF_F16 ? KRN_NAN_F16 : bits;
}

FUNCTION uint16_t gpu_check_result_bf16(uint16_t bits)
{
	return (bits & 0x7fff) > KRN_INF_BF16 ? KRN_NAN_BF16 : bits;
}

#endif
