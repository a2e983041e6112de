/* SPDX-License-Identifier: MIT */
/* The macros of krn_simd.h for one instruction set. */
#ifndef KRN_AVX2_H
#define KRN_AVX2_H

#include <immintrin.h>

#define KRN_VEC_BYTES       32
#define KRN_VEC_F16_UP(h)   _mm256_cvtph_ps((__m128i)(h))
#define KRN_VEC_F16_DOWN(f) _mm256_cvtps_ph((f), _MM_FROUND_TO_NEAREST_INT)

#endif
