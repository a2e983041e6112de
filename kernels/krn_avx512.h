/* SPDX-License-Identifier: MIT */
/* The macros of krn_simd.h for one instruction set. */
#ifndef KRN_AVX512_H
#define KRN_AVX512_H

#include <immintrin.h>

#define KRN_VEC_BYTES     64
#define KRN_VEC_F16_UP(h) _mm512_cvtph_ps((__m256i)(h))
/* A mask for all lanes. The form without a mask causes a warning inside gcc's macro at -O0. */
#define KRN_VEC_F16_DOWN(f) _mm512_maskz_cvtps_ph((__mmask16)0xffff, (f), _MM_FROUND_TO_NEAREST_INT)

#endif
