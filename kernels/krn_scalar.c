/* SPDX-License-Identifier: MIT */
/*
 * The reference variant. It handles one element after the other, with the names of krn.h. The other
 * variants are tested against the reference, and a CPU that supports none of them uses the
 * reference. The code is simple rather than fast.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/krn_half.h"
#include "kernels/krn_impl.h"

/* Compilers with a native _Float16 define the value 16; this file does not use _Float16. */
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16,
	"float expressions must be evaluated in float");

/* Integers wrap, because they are computed modulo 2^64 and then cut to the width of the type. */
#define INTEGER_COMBINE(name, type)                                                                \
	static type combine_##name(enum krn_op op, type a, type b)                                 \
	{                                                                                          \
		switch (op) {                                                                      \
		case KRN_PROD:                                                                     \
			return (type)((uint64_t)a * (uint64_t)b);                                  \
		case KRN_MAX:                                                                      \
			return a > b ? a : b;                                                      \
		case KRN_MIN:                                                                      \
			return a < b ? a : b;                                                      \
		default:                                                                           \
			return (type)((uint64_t)a + (uint64_t)b);                                  \
		}                                                                                  \
	}

#define FLOAT_COMBINE(name, type)                                                                  \
	static type combine_##name(enum krn_op op, type a, type b)                                 \
	{                                                                                          \
		switch (op) {                                                                      \
		case KRN_PROD:                                                                     \
			return a * b;                                                              \
		case KRN_MAX:                                                                      \
			if (isnan(a) || isnan(b))                                                  \
				return (type)NAN;                                                  \
			if (a == b)                                                                \
				return signbit(a) ? b : a;                                         \
			return a > b ? a : b;                                                      \
		case KRN_MIN:                                                                      \
			if (isnan(a) || isnan(b))                                                  \
				return (type)NAN;                                                  \
			if (a == b)                                                                \
				return signbit(a) ? a : b;                                         \
			return a < b ? a : b;                                                      \
		default:                                                                           \
			return a + b;                                                              \
		}                                                                                  \
	}

INTEGER_COMBINE(u8, uint8_t)
INTEGER_COMBINE(i8, int8_t)
INTEGER_COMBINE(i16, int16_t)
INTEGER_COMBINE(u16, uint16_t)
INTEGER_COMBINE(u32, uint32_t)
INTEGER_COMBINE(i32, int32_t)
INTEGER_COMBINE(u64, uint64_t)
INTEGER_COMBINE(i64, int64_t)
FLOAT_COMBINE(f32, float)
FLOAT_COMBINE(f64, double)

/* Conversions from the type in memory to the type of the computation, and back. */
#define SAME(x) (x)

static float canonical_f32(float f)
{
	return isnan(f) ? krn_f32_from_bits(KRN_NAN_F32) : f;
}

static double canonical_f64(double d)
{
	uint64_t bits = KRN_NAN_F64;

	if (isnan(d))
		memcpy(&d, &bits, sizeof(d));
	return d;
}

/*
 * `mem` is the type in memory. `acc` is the type of the accumulator; `up` converts from mem to acc,
 * and `down` converts back. Quotients are computed in `wide`, which can hold all values of acc and,
 * if it is an integer, all divisors.
 */
#define KERNEL(name, mem, acc, wide, up, down, combine)                                            \
	static void reduce_##name(enum krn_op op, unsigned char *dst, const void *const *srcs,     \
		unsigned nsrc, size_t count)                                                       \
	{                                                                                          \
		for (size_t i = 0; i < count; i++) {                                               \
			mem x;                                                                     \
			acc a;                                                                     \
                                                                                                   \
			memcpy(&x, (const unsigned char *)srcs[0] + i * sizeof(x), sizeof(x));     \
			a = up(x);                                                                 \
			for (unsigned s = 1; s < nsrc; s++) {                                      \
				memcpy(&x, (const unsigned char *)srcs[s] + i * sizeof(x),         \
					sizeof(x));                                                \
				a = combine(op, a, up(x));                                         \
			}                                                                          \
			x = down(a);                                                               \
			memcpy(dst + i * sizeof(x), &x, sizeof(x));                                \
		}                                                                                  \
	}                                                                                          \
	static void divide_##name(unsigned char *buf, size_t count, uint32_t divisor)              \
	{                                                                                          \
		for (size_t i = 0; i < count; i++) {                                               \
			mem x;                                                                     \
                                                                                                   \
			memcpy(&x, buf + i * sizeof(x), sizeof(x));                                \
			x = down((acc)((wide)up(x) / (wide)divisor));                              \
			memcpy(buf + i * sizeof(x), &x, sizeof(x));                                \
		}                                                                                  \
	}

KERNEL(u8, uint8_t, uint8_t, uint64_t, SAME, SAME, combine_u8)
KERNEL(i8, int8_t, int8_t, int64_t, SAME, SAME, combine_i8)
KERNEL(i16, int16_t, int16_t, int64_t, SAME, SAME, combine_i16)
KERNEL(u16, uint16_t, uint16_t, uint64_t, SAME, SAME, combine_u16)
KERNEL(u32, uint32_t, uint32_t, uint64_t, SAME, SAME, combine_u32)
KERNEL(i32, int32_t, int32_t, int64_t, SAME, SAME, combine_i32)
KERNEL(u64, uint64_t, uint64_t, uint64_t, SAME, SAME, combine_u64)
KERNEL(i64, int64_t, int64_t, int64_t, SAME, SAME, combine_i64)
KERNEL(f16, uint16_t, float, float, krn_f16_to_f32, krn_f32_to_f16, combine_f32)
KERNEL(bf16, uint16_t, float, float, krn_bf16_to_f32, krn_f32_to_bf16, combine_f32)
KERNEL(f32, float, float, float, SAME, canonical_f32, combine_f32)
KERNEL(f64, double, double, double, SAME, canonical_f64, combine_f64)

static const struct {
	void (*reduce)(enum krn_op op, unsigned char *dst, const void *const *srcs, unsigned nsrc,
		size_t count);
	void (*divide)(unsigned char *buf, size_t count, uint32_t divisor);
} kernels[KRN_DTYPE_COUNT] = {
	[KRN_U8] = {reduce_u8, divide_u8},
	[KRN_I8] = {reduce_i8, divide_i8},
	[KRN_I16] = {reduce_i16, divide_i16},
	[KRN_U16] = {reduce_u16, divide_u16},
	[KRN_U32] = {reduce_u32, divide_u32},
	[KRN_I32] = {reduce_i32, divide_i32},
	[KRN_U64] = {reduce_u64, divide_u64},
	[KRN_I64] = {reduce_i64, divide_i64},
	[KRN_F16] = {reduce_f16, divide_f16},
	[KRN_BF16] = {reduce_bf16, divide_bf16},
	[KRN_F32] = {reduce_f32, divide_f32},
	[KRN_F64] = {reduce_f64, divide_f64},
};

static void scalar_reduce(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs,
	unsigned nsrc, size_t count)
{
	kernels[t].reduce(op, dst, srcs, nsrc, count);
}

static void scalar_divide(enum krn_dtype t, void *buf, size_t count, uint32_t divisor)
{
	kernels[t].divide(buf, count, divisor);
}

const struct krn_variant krn_scalar = {scalar_reduce, scalar_divide};
