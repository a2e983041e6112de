/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx2. */
#include <immintrin.h>

#define HSH_VEC_ABSORB         hsh_absorb_avx2
#define HSH_VEC_BYTES          32
#define HSH_VEC_UPPER(x)       _mm256_shuffle_epi32((__m256i)(x), 0xf5)
#define HSH_VEC_MULTIPLY(x, y) _mm256_mul_epu32((__m256i)(x), (__m256i)(y))

#include "kernels/hsh_vec.h"
