/* SPDX-License-Identifier: MIT */
#include "kernels/krn_neon.h"
#include "kernels/krn_simd.h"

#include <string.h>

#define QNT_VEC_VARIANT qnt_neon

#define QNT_VEC_WIDEN_8(p)                widen_8(p)
#define QNT_VEC_WIDEN_16(p)               vmovl_u16(vld1_u16((const void *)(p)))
#define QNT_VEC_NARROW_8(p, v)            narrow_8((p), (uint32x4_t)(v))
#define QNT_VEC_NARROW_16(p, v)           vst1_u16((void *)(p), vmovn_u32((uint32x4_t)(v)))
#define QNT_VEC_MIN(a, b)                 vminq_s32((int32x4_t)(a), (int32x4_t)(b))
#define QNT_VEC_MAX(a, b)                 vmaxq_s32((int32x4_t)(a), (int32x4_t)(b))
#define QNT_VEC_LOOKUP(table, i)          lookup((table), (uint32x4_t)(i))
#define QNT_VEC_LOOKUP_IN(table, i, half) QNT_VEC_LOOKUP((table), (i))
#define QNT_VEC_EVEN(a, b)                __builtin_shufflevector((a), (b), 0, 2, 4, 6)
#define QNT_VEC_ODD(a, b)                 __builtin_shufflevector((a), (b), 1, 3, 5, 7)

INLINE uint32x4_t widen_8(const unsigned char *p)
{
	uint32_t bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)))));
}

INLINE void narrow_8(unsigned char *p, uint32x4_t v)
{
	uint16x4_t words = vmovn_u32(v);
	uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
	uint32_t lower = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);

	memcpy(p, &lower, sizeof(lower));
}

/* The instruction looks up bytes. So each index becomes the indexes of the four bytes of a float.
 */
INLINE vf32 lookup(const float *table, uint32x4_t i)
{
	uint8x16x4_t bytes = vld1q_u8_x4((const void *)table);
	uint32x4_t selected = i * 0x04040404 + 0x03020100;

	return (vf32)vqtbl4q_u8(bytes, vreinterpretq_u8_u32(selected));
}

#include "kernels/qnt_vec.h"
