/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx2 -mf16c. */
#include <immintrin.h>

#define KRN_VEC_VARIANT     krn_avx2
#define KRN_VEC_BYTES       32
#define KRN_VEC_F16_UP(h)   _mm256_cvtph_ps((__m128i)(h))
#define KRN_VEC_F16_DOWN(f) _mm256_cvtps_ph((f), _MM_FROUND_TO_NEAREST_INT)

#include "kernels/krn_vec.h"
