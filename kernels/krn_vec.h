/* SPDX-License-Identifier: MIT */
/*
 * The SIMD kernels, written once in the compilers' vector extensions and compiled once for each
 * instruction set: krn_avx2.c, krn_avx512.c and krn_neon.c include this file after the macros of
 * krn_simd.h, and after defining
 *
 *   KRN_VEC_VARIANT  the name of the struct krn_variant to define
 *
 * Three ideas bring 60 combinations of type and operation down to 24 loops:
 *
 *  - Sum and product of integers do not depend on the sign, so there is one loop per width.
 *  - Max and Min become the maximum of signed integers ("pick"). These integers are keys that are
 *    computed from the bits of the elements. They have the order of the elements, or the reverse
 *    order for Min. The key of an integer needs only an XOR, so there is one loop per width. Floats
 *    have one loop per type.
 *  - A loop uses three functions of its type: "up" converts at each load, another one combines two
 *    elements, and "down" converts back at the only store. So f16 is f32 with other conversions.
 */
#include <string.h>

#include "kernels/krn_impl.h"
#include "kernels/krn_simd.h"

/* Narrow vectors. Their elements are computed in a wider type. A narrow vector has as many elements
 * as a full vector of the wider type. */
typedef uint32_t vhu32 VEC(KRN_VEC_BYTES / 2); /* 32-bit integers, divided in fp64 */
typedef int32_t vhi32 VEC(KRN_VEC_BYTES / 2);

/*
 * bf16, computed in fp32. A vector of bf16 is treated as 32-bit words with two elements each, in
 * the lower and in the upper half. So no element has to move.
 */
struct vbf16 {
	vf32 lower, upper;
};

#define SAME(x, key)   (x)
#define ADD(a, b)      ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define XOR_8(x, key)  ((x) ^ (int8_t)(key))
#define XOR_16(x, key) ((x) ^ (int16_t)(key))
#define XOR_32(x, key) ((x) ^ (int32_t)(key))
#define XOR_64(x, key) ((x) ^ (key))

INLINE struct vbf16 bf16_up(vu32 x)
{
	return (struct vbf16){(vf32)(x << 16), (vf32)(x & UINT32_C(0xffff0000))};
}

INLINE vu32 bf16_down(struct vbf16 f)
{
	return (bf16_round(f.lower) >> 16) | (bf16_round(f.upper) & UINT32_C(0xffff0000));
}

INLINE struct vbf16 bf16_add(struct vbf16 a, struct vbf16 b)
{
	return (struct vbf16){a.lower + b.lower, a.upper + b.upper};
}

INLINE struct vbf16 bf16_multiply(struct vbf16 a, struct vbf16 b)
{
	return (struct vbf16){a.lower * b.lower, a.upper * b.upper};
}

#define F32_DOWN(f, key)  f32_down(f)
#define F64_DOWN(f, key)  f64_down(f)
#define F16_UP(h, key)    KRN_VEC_F16_UP(h)
#define F16_DOWN(f, key)  ((vh16)KRN_VEC_F16_DOWN(f32_down(f)))
#define BF16_UP(x, key)   bf16_up(x)
#define BF16_DOWN(f, key) bf16_down(f)

/*
 * `mem` is the vector type in memory, and `acc` is the type of the accumulators, which stay in
 * registers. The loop handles four accumulators at a time, so it loads the pointers of the sources
 * only once for four vectors. The last vectors and the remainder pass through a zeroed vector on
 * the stack.
 */
#define DEFINE_REDUCE(name, mem, acc, up, combine, down)                                           \
	INLINE acc name##_load(const void *src, size_t offset, int64_t key)                        \
	{                                                                                          \
		mem m;                                                                             \
                                                                                                   \
		(void)key;                                                                         \
		memcpy(&m, (const unsigned char *)src + offset, sizeof(m));                        \
		return up(m, key);                                                                 \
	}                                                                                          \
	INLINE acc name##_load_part(const void *src, size_t offset, size_t n, int64_t key)         \
	{                                                                                          \
		mem m = {0};                                                                       \
                                                                                                   \
		(void)key;                                                                         \
		memcpy(&m, (const unsigned char *)src + offset, n);                                \
		return up(m, key);                                                                 \
	}                                                                                          \
	INLINE void name##_store(unsigned char *dst, acc a, size_t n, int64_t key)                 \
	{                                                                                          \
		mem m = down(a, key);                                                              \
                                                                                                   \
		(void)key;                                                                         \
		memcpy(dst, &m, n);                                                                \
	}                                                                                          \
	static void name(unsigned char *dst, const void *const *srcs, unsigned nsrc, size_t bytes, \
		int64_t key)                                                                       \
	{                                                                                          \
		const size_t w = sizeof(mem);                                                      \
		size_t i = 0;                                                                      \
                                                                                                   \
		for (; bytes - i >= 4 * w; i += 4 * w) {                                           \
			acc a = name##_load(srcs[0], i, key);                                      \
			acc b = name##_load(srcs[0], i + w, key);                                  \
			acc c = name##_load(srcs[0], i + 2 * w, key);                              \
			acc d = name##_load(srcs[0], i + 3 * w, key);                              \
                                                                                                   \
			for (unsigned s = 1; s < nsrc; s++) {                                      \
				a = combine(a, name##_load(srcs[s], i, key));                      \
				b = combine(b, name##_load(srcs[s], i + w, key));                  \
				c = combine(c, name##_load(srcs[s], i + 2 * w, key));              \
				d = combine(d, name##_load(srcs[s], i + 3 * w, key));              \
			}                                                                          \
			name##_store(dst + i, a, w, key);                                          \
			name##_store(dst + i + w, b, w, key);                                      \
			name##_store(dst + i + 2 * w, c, w, key);                                  \
			name##_store(dst + i + 3 * w, d, w, key);                                  \
		}                                                                                  \
		while (i < bytes) {                                                                \
			size_t n = bytes - i < w ? bytes - i : w;                                  \
			acc a = name##_load_part(srcs[0], i, n, key);                              \
                                                                                                   \
			for (unsigned s = 1; s < nsrc; s++)                                        \
				a = combine(a, name##_load_part(srcs[s], i, n, key));              \
			name##_store(dst + i, a, n, key);                                          \
			i += n;                                                                    \
		}                                                                                  \
	}

DEFINE_REDUCE(sum_8, vu8, vu8, SAME, ADD, SAME)
DEFINE_REDUCE(sum_16, vu16, vu16, SAME, ADD, SAME)
DEFINE_REDUCE(sum_32, vu32, vu32, SAME, ADD, SAME)
DEFINE_REDUCE(sum_64, vu64, vu64, SAME, ADD, SAME)
DEFINE_REDUCE(sum_f16, vh16, vf32, F16_UP, ADD, F16_DOWN)
DEFINE_REDUCE(sum_bf16, vu32, struct vbf16, BF16_UP, bf16_add, BF16_DOWN)
DEFINE_REDUCE(sum_f32, vf32, vf32, SAME, ADD, F32_DOWN)
DEFINE_REDUCE(sum_f64, vf64, vf64, SAME, ADD, F64_DOWN)

DEFINE_REDUCE(prod_8, vu8, vu8, SAME, MULTIPLY, SAME)
DEFINE_REDUCE(prod_16, vu16, vu16, SAME, MULTIPLY, SAME)
DEFINE_REDUCE(prod_32, vu32, vu32, SAME, MULTIPLY, SAME)
DEFINE_REDUCE(prod_64, vu64, vu64, SAME, MULTIPLY, SAME)
DEFINE_REDUCE(prod_f16, vh16, vf32, F16_UP, MULTIPLY, F16_DOWN)
DEFINE_REDUCE(prod_bf16, vu32, struct vbf16, BF16_UP, bf16_multiply, BF16_DOWN)
DEFINE_REDUCE(prod_f32, vf32, vf32, SAME, MULTIPLY, F32_DOWN)
DEFINE_REDUCE(prod_f64, vf64, vf64, SAME, MULTIPLY, F64_DOWN)

DEFINE_REDUCE(pick_8, vi8, vi8, XOR_8, max_8, XOR_8)
DEFINE_REDUCE(pick_16, vi16, vi16, XOR_16, max_16, XOR_16)
DEFINE_REDUCE(pick_32, vi32, vi32, XOR_32, max_32, XOR_32)
DEFINE_REDUCE(pick_64, vi64, vi64, XOR_64, max_64, XOR_64)
DEFINE_REDUCE(pick_f16, vi16, vi16, f16_to_key, max_16, f16_from_key)
DEFINE_REDUCE(pick_bf16, vi16, vi16, bf16_to_key, max_16, bf16_from_key)
DEFINE_REDUCE(pick_f32, vi32, vi32, f32_to_key, max_32, f32_from_key)
DEFINE_REDUCE(pick_f64, vi64, vi64, f64_to_key, max_64, f64_from_key)

/*
 * Division. Integers of up to 32 bits are divided as floats that hold each dividend exactly and
 * have at least 8 bits more than it. So the quotient cannot be rounded up to the next integer, and
 * truncation gives the exact result. A divisor may be larger than every dividend, and the float may
 * round it. The quotient is then still below 1. divisor is at least 2, so all quotients fit into
 * signed 32-bit integers.
 */

/* Divides small integers. A word of 32 bits has several elements, which are handled one after the
 * other. `word` (vi32 or vu32) selects whether their sign is extended. */
#define DEFINE_QUOTIENT_SMALL(type, bits, word)                                                    \
	INLINE vu32 quotient_##type(vu32 x, uint32_t divisor)                                      \
	{                                                                                          \
		vu32 result = {0};                                                                 \
                                                                                                   \
		for (int shift = 0; shift < 32; shift += (bits)) {                                 \
			word one = (word)(x << (32 - (bits)-shift)) >> (32 - (bits));              \
			vf32 f = __builtin_convertvector((vi32)one, vf32) / (float)divisor;        \
			vu32 q = (vu32) __builtin_convertvector(f, vi32);                          \
                                                                                                   \
			result |= (q & ((UINT32_C(1) << (bits)) - 1)) << shift;                    \
		}                                                                                  \
		return result;                                                                     \
	}
DEFINE_QUOTIENT_SMALL(u8, 8, vu32)
DEFINE_QUOTIENT_SMALL(i8, 8, vi32)
DEFINE_QUOTIENT_SMALL(u16, 16, vu32)
DEFINE_QUOTIENT_SMALL(i16, 16, vi32)

INLINE vhi32 quotient_i32(vhi32 x, uint32_t divisor)
{
	vf64 f = __builtin_convertvector(x, vf64);

	return __builtin_convertvector(f / (double)divisor, vhi32);
}

INLINE vhu32 quotient_u32(vhu32 x, uint32_t divisor)
{
	/* All instruction sets can convert signed integers, but not unsigned ones. */
	vf64 f = __builtin_convertvector((vhi32)(x ^ UINT32_C(0x80000000)), vf64) + 0x1p31;

	return (vhu32) __builtin_convertvector(f / (double)divisor, vhi32);
}

INLINE vh16 quotient_f16(vh16 x, uint32_t divisor)
{
	return F16_DOWN(KRN_VEC_F16_UP(x) / (float)divisor, 0);
}

INLINE vu32 quotient_bf16(vu32 x, uint32_t divisor)
{
	struct vbf16 f = bf16_up(x);

	return bf16_down((struct vbf16){f.lower / (float)divisor, f.upper / (float)divisor});
}

INLINE vf32 quotient_f32(vf32 x, uint32_t divisor)
{
	return f32_down(x / (float)divisor);
}

INLINE vf64 quotient_f64(vf64 x, uint32_t divisor)
{
	return f64_down(x / (double)divisor);
}

#define DEFINE_DIVIDE(type, mem)                                                                   \
	static void divide_##type(unsigned char *buf, size_t bytes, uint32_t divisor)              \
	{                                                                                          \
		mem m;                                                                             \
                                                                                                   \
		for (; bytes >= sizeof(m); bytes -= sizeof(m), buf += sizeof(m)) {                 \
			memcpy(&m, buf, sizeof(m));                                                \
			m = quotient_##type(m, divisor);                                           \
			memcpy(buf, &m, sizeof(m));                                                \
		}                                                                                  \
		if (bytes == 0)                                                                    \
			return;                                                                    \
		m = (mem){0};                                                                      \
		memcpy(&m, buf, bytes);                                                            \
		m = quotient_##type(m, divisor);                                                   \
		memcpy(buf, &m, bytes);                                                            \
	}
DEFINE_DIVIDE(u8, vu32)
DEFINE_DIVIDE(i8, vu32)
DEFINE_DIVIDE(i16, vu32)
DEFINE_DIVIDE(u16, vu32)
DEFINE_DIVIDE(u32, vhu32)
DEFINE_DIVIDE(i32, vhi32)
DEFINE_DIVIDE(f16, vh16)
DEFINE_DIVIDE(bf16, vu32)
DEFINE_DIVIDE(f32, vf32)
DEFINE_DIVIDE(f64, vf64)

typedef void reduce_fn(
	unsigned char *dst, const void *const *srcs, unsigned nsrc, size_t bytes, int64_t key);

static const struct {
	reduce_fn *sum, *prod, *pick;
	int64_t max_key, min_key; /* keys for `pick`, cut to the width of an element */
	/* NULL: no SIMD for this type */
	void (*divide)(unsigned char *buf, size_t bytes, uint32_t divisor);
} kernels[KRN_DTYPE_COUNT] = {
	[KRN_U8] = {sum_8, prod_8, pick_8, INT8_MIN, INT8_MAX, divide_u8},
	[KRN_I8] = {sum_8, prod_8, pick_8, 0, -1, divide_i8},
	[KRN_I16] = {sum_16, prod_16, pick_16, 0, -1, divide_i16},
	[KRN_U16] = {sum_16, prod_16, pick_16, INT16_MIN, INT16_MAX, divide_u16},
	[KRN_U32] = {sum_32, prod_32, pick_32, INT32_MIN, INT32_MAX, divide_u32},
	[KRN_I32] = {sum_32, prod_32, pick_32, 0, -1, divide_i32},
	[KRN_U64] = {sum_64, prod_64, pick_64, INT64_MIN, INT64_MAX, NULL},
	[KRN_I64] = {sum_64, prod_64, pick_64, 0, -1, NULL},
	[KRN_F16] = {sum_f16, prod_f16, pick_f16, 0, -1, divide_f16},
	[KRN_BF16] = {sum_bf16, prod_bf16, pick_bf16, 0, -1, divide_bf16},
	[KRN_F32] = {sum_f32, prod_f32, pick_f32, 0, -1, divide_f32},
	[KRN_F64] = {sum_f64, prod_f64, pick_f64, 0, -1, divide_f64},
};

static void vec_reduce(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs,
	unsigned nsrc, size_t count)
{
	size_t bytes = count * krn_dtype_size(t);

	switch (op) {
	case KRN_PROD:
		kernels[t].prod(dst, srcs, nsrc, bytes, 0);
		break;
	case KRN_MAX:
		kernels[t].pick(dst, srcs, nsrc, bytes, kernels[t].max_key);
		break;
	case KRN_MIN:
		kernels[t].pick(dst, srcs, nsrc, bytes, kernels[t].min_key);
		break;
	default:
		kernels[t].sum(dst, srcs, nsrc, bytes, 0);
		break;
	}
}

static void vec_divide(enum krn_dtype t, void *buf, size_t count, uint32_t divisor)
{
	if (kernels[t].divide)
		kernels[t].divide(buf, count * krn_dtype_size(t), divisor);
	else
		krn_scalar.divide(t, buf, count, divisor);
}

const struct krn_variant KRN_VEC_VARIANT = {vec_reduce, vec_divide};
