/* SPDX-License-Identifier: MIT */
/*
 * Vectors of one instruction set, and the conversions of their elements, in the compilers' vector
 * extensions. krn_vec.h and qnt_vec.h are written with them. A file that is compiled for one
 * instruction set first includes krn_avx2.h, krn_avx512.h or krn_neon.h, which define
 *
 *   KRN_VEC_BYTES        the width of a vector
 *   KRN_VEC_F16_UP(h)    f16 to fp32: from a vh16 (see below) to a vf32, exactly
 *   KRN_VEC_F16_DOWN(f)  back, rounding to nearest even
 */
#ifndef KRN_SIMD_H
#define KRN_SIMD_H

#include <stdint.h>

#include "kernels/krn_half.h"

#define INLINE static inline __attribute__((always_inline))

/* Full vectors. A name consists of v, the kind of number, and the bits of an element. */
#define VEC(bytes) __attribute__((vector_size(bytes)))
typedef uint8_t vu8 VEC(KRN_VEC_BYTES);
typedef uint16_t vu16 VEC(KRN_VEC_BYTES);
typedef uint32_t vu32 VEC(KRN_VEC_BYTES);
typedef uint64_t vu64 VEC(KRN_VEC_BYTES);
typedef int8_t vi8 VEC(KRN_VEC_BYTES);
typedef int16_t vi16 VEC(KRN_VEC_BYTES);
typedef int32_t vi32 VEC(KRN_VEC_BYTES);
typedef int64_t vi64 VEC(KRN_VEC_BYTES);
typedef float vf32 VEC(KRN_VEC_BYTES);
typedef double vf64 VEC(KRN_VEC_BYTES);

/* 16-bit elements that are computed in fp32: as many as a full vector of fp32 has. */
typedef uint16_t vh16 VEC(KRN_VEC_BYTES / 2);

/* For each element: mask ? a : b. The mask's elements are all ones or zero. */
#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

#define DEFINE_MAX(bits)                                                                           \
	INLINE vi##bits max_##bits(vi##bits a, vi##bits b)                                         \
	{                                                                                          \
		vi##bits mask = (vi##bits)(a > b);                                                 \
                                                                                                   \
		return SELECT(mask, a, b);                                                         \
	}
DEFINE_MAX(8)
DEFINE_MAX(16)
DEFINE_MAX(32)
DEFINE_MAX(64)

/*
 * Convert the bits of floats to keys and back. Read as signed integers, positive floats are in
 * order, and negative floats are in reverse order. The inversion of their magnitude bits corrects
 * this, and -0 is then just below +0. `flip` (0, or -1 for Min) reverses the whole order. NaNs
 * become the largest key, which no number has.
 */
#define DEFINE_FLOAT_KEY(type, bits, inf, nan)                                                     \
	INLINE vi##bits type##_to_key(vi##bits x, int64_t flip)                                    \
	{                                                                                          \
		const vi##bits top = (vi##bits){0} + INT##bits##_MAX;                              \
		const vi##bits infinity = (vi##bits){0} + (int##bits##_t)(inf);                    \
		vi##bits is_nan = (vi##bits)((x & top) > infinity);                                \
		vi##bits negative = (vi##bits)(x < (vi##bits){0});                                 \
                                                                                                   \
		x ^= (negative & top) ^ (int##bits##_t)flip;                                       \
		return SELECT(is_nan, top, x);                                                     \
	}                                                                                          \
	INLINE vi##bits type##_from_key(vi##bits key, int64_t flip)                                \
	{                                                                                          \
		const vi##bits top = (vi##bits){0} + INT##bits##_MAX;                              \
		const vi##bits quiet = (vi##bits){0} + (int##bits##_t)(nan);                       \
		vi##bits is_nan = (vi##bits)(key == top);                                          \
		vi##bits x = key ^ (int##bits##_t)flip;                                            \
                                                                                                   \
		x ^= (vi##bits)(x < (vi##bits){0}) & top;                                          \
		return SELECT(is_nan, quiet, x);                                                   \
	}
DEFINE_FLOAT_KEY(f16, 16, KRN_INF_F16, KRN_NAN_F16)
DEFINE_FLOAT_KEY(bf16, 16, KRN_INF_BF16, KRN_NAN_BF16)
DEFINE_FLOAT_KEY(f32, 32, KRN_INF_F32, KRN_NAN_F32)
DEFINE_FLOAT_KEY(f64, 64, KRN_INF_F64, KRN_NAN_F64)

/* Replaces every NaN of an arithmetic result by the one NaN. Only NaN differs from itself. */
#define DEFINE_FLOAT_DOWN(type, bits, nan)                                                         \
	INLINE v##type type##_down(v##type f)                                                      \
	{                                                                                          \
		const vi##bits quiet = (vi##bits){0} + (int##bits##_t)(nan);                       \
		vi##bits is_nan = (vi##bits)(f != f);                                              \
                                                                                                   \
		return (v##type)SELECT(is_nan, quiet, (vi##bits)f);                                \
	}
DEFINE_FLOAT_DOWN(f32, 32, KRN_NAN_F32)
DEFINE_FLOAT_DOWN(f64, 64, KRN_NAN_F64)

/* Rounds to bf16. The result is in the upper half of each word. */
INLINE vu32 bf16_round(vf32 f)
{
	vu32 x = (vu32)f32_down(f);

	return x + ((x >> 16) & 1) + 0x7fff;
}

#endif
