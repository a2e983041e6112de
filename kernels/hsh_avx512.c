/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx512f. */
#include <immintrin.h>

#define HSH_VEC_ABSORB hsh_absorb_avx512
#define HSH_VEC_BYTES  64
/* A mask for all lanes. The forms without a mask cause warnings inside gcc's headers at -O0. */
#define HSH_VEC_UPPER(x)                                                                           \
	_mm512_maskz_shuffle_epi32((__mmask16)0xffff, (__m512i)(x), (_MM_PERM_ENUM)0xf5)
#define HSH_VEC_MULTIPLY(x, y) _mm512_maskz_mul_epu32((__mmask8)0xff, (__m512i)(x), (__m512i)(y))

#include "kernels/hsh_vec.h"
