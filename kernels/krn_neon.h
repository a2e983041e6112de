/* SPDX-License-Identifier: MIT */
/* The macros of krn_simd.h for one instruction set. */
#ifndef KRN_NEON_H
#define KRN_NEON_H

#include <arm_neon.h>

#define KRN_VEC_BYTES       16
#define KRN_VEC_F16_UP(h)   ((vf32)vcvt_f32_f16((float16x4_t)(h)))
#define KRN_VEC_F16_DOWN(f) vcvt_f16_f32((float32x4_t)(f))

#endif
