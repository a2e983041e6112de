/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl. */
#include "kernels/krn_avx512.h"
#include "kernels/krn_simd.h"

#define QNT_VEC_VARIANT qnt_avx512

/* A mask for all lanes. The forms without a mask cause warnings inside gcc's headers at -O0. */
#define ALL ((__mmask16)0xffff)

#define QNT_VEC_WIDEN_8(p)      _mm512_maskz_cvtepu8_epi32(ALL, _mm_loadu_si128((const void *)(p)))
#define QNT_VEC_WIDEN_16(p)     _mm512_maskz_cvtepu16_epi32(ALL, _mm256_loadu_si256((const void *)(p)))
#define QNT_VEC_NARROW_8(p, v)  _mm512_mask_cvtepi32_storeu_epi8((p), ALL, (__m512i)(v))
#define QNT_VEC_NARROW_16(p, v) _mm512_mask_cvtepi32_storeu_epi16((p), ALL, (__m512i)(v))
#define QNT_VEC_MIN(a, b)       _mm512_maskz_min_epi32(ALL, (__m512i)(a), (__m512i)(b))
#define QNT_VEC_MAX(a, b)       _mm512_maskz_max_epi32(ALL, (__m512i)(a), (__m512i)(b))
#define QNT_VEC_LOOKUP(table, i)                                                                   \
	_mm512_maskz_permutexvar_ps(ALL, (__m512i)(i), _mm512_loadu_ps(table))
#define QNT_VEC_LOOKUP_IN(table, i, half) QNT_VEC_LOOKUP((table), (i))
#define QNT_VEC_EVEN(a, b)                                                                         \
	__builtin_shufflevector((a), (b), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define QNT_VEC_ODD(a, b)                                                                          \
	__builtin_shufflevector((a), (b), 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)

#include "kernels/qnt_vec.h"
