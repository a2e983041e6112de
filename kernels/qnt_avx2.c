/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx2 -mf16c. */
#include "kernels/krn_avx2.h"
#include "kernels/krn_simd.h"

#define QNT_VEC_VARIANT qnt_avx2

#define QNT_VEC_WIDEN_8(p)                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p)))
#define QNT_VEC_WIDEN_16(p)               _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p)))
#define QNT_VEC_NARROW_8(p, v)            narrow_8((p), (__m256i)(v))
#define QNT_VEC_NARROW_16(p, v)           narrow_16((p), (__m256i)(v))
#define QNT_VEC_MIN(a, b)                 _mm256_min_epi32((__m256i)(a), (__m256i)(b))
#define QNT_VEC_MAX(a, b)                 _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define QNT_VEC_LOOKUP(table, i)          lookup((table), (__m256i)(i))
#define QNT_VEC_LOOKUP_IN(table, i, half) lookup_half((table) + ((half) ? 8 : 0), (__m256i)(i))
#define QNT_VEC_EVEN(a, b)                __builtin_shufflevector((a), (b), 0, 2, 4, 6, 8, 10, 12, 14)
#define QNT_VEC_ODD(a, b)                 __builtin_shufflevector((a), (b), 1, 3, 5, 7, 9, 11, 13, 15)

INLINE void narrow_8(void *p, __m256i v)
{
	/* selects the low byte of each element, in each half of v */
	const __m256i low = _mm256_set1_epi32(0x0c080400);
	__m256i bytes = _mm256_shuffle_epi8(v, low);
	__m128i upper = _mm256_extracti128_si256(bytes, 1);

	_mm_storel_epi64(p, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), upper));
}

INLINE void narrow_16(void *p, __m256i v)
{
	const __m256i low = _mm256_set1_epi64x(0x0d0c090805040100);
	__m256i words = _mm256_shuffle_epi8(v, low);
	__m128i upper = _mm256_extracti128_si256(words, 1);

	_mm_storeu_si128(p, _mm_unpacklo_epi64(_mm256_castsi256_si128(words), upper));
}

/* A permutation has 8 elements and uses the lowest three bits of an index. */
INLINE vf32 lookup_half(const float *half, __m256i i)
{
	return _mm256_permutevar8x32_ps(_mm256_loadu_ps(half), i);
}

/* The fourth bit of the index, moved to the sign, selects the half of the table. */
INLINE vf32 lookup(const float *table, __m256i i)
{
	__m256 lower = lookup_half(table, i), upper = lookup_half(table + 8, i);

	return _mm256_blendv_ps(lower, upper, _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}

#include "kernels/qnt_vec.h"
