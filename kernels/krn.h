/* SPDX-License-Identifier: MIT */
#ifndef KRN_H
#define KRN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Element-wise reductions over arrays, for 12 data types and 5 operations. There is a plain scalar
 * reference, and SIMD variants are chosen at run time.
 *
 * Pure code: no I/O, no allocation, no locks, and no state except the cached choice of the
 * instruction set. Every function may be called from any thread. The caller must ensure that no
 * other thread uses the arrays during the call.
 *
 * The result depends only on the arguments. All instruction sets of all architectures give the same
 * bits for the same sources in the same order:
 *
 *  - Integers: sum and product wrap modulo 2^n, where n is the width of the type.
 *  - KRN_F32, KRN_F64: each step is one IEEE operation, rounded to nearest even, never fused.
 *  - KRN_F16, KRN_BF16: all sources of one call are converted to fp32 (exact), combined in fp32
 *    from left to right, and rounded once, to nearest even, into dst. Hence one call with three
 *    sources may differ from two calls with two sources each. A result that is too large for the
 *    type becomes infinity.
 *  - Subnormal numbers are kept, as inputs and as results.
 *  - Max and Min: a NaN in any source makes the result NaN; -0 is less than +0.
 *  - A NaN that any operation computes is the positive quiet NaN without payload
 *    (0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000).
 *  - krn_reduce with one source and krn_divide by 1 only copy, and keep all bits.
 *
 * The thread must have the default floating-point environment: rounding to nearest, and no flush to
 * zero.
 */

/* The public interface and the wires use the same numbers. */
enum krn_dtype {
	KRN_U8 = 0,
	KRN_I8 = 1,
	KRN_I16 = 2,
	KRN_U16 = 3,
	KRN_U32 = 4,
	KRN_I32 = 5,
	KRN_U64 = 6,
	KRN_I64 = 7,
	KRN_F16 = 8,  /* IEEE binary16 */
	KRN_BF16 = 9, /* upper half of an IEEE binary32 */
	KRN_F32 = 10,
	KRN_F64 = 11,
	KRN_DTYPE_COUNT
};

enum krn_op {
	KRN_SUM = 0,
	KRN_AVG = 1, /* accumulates like KRN_SUM; krn_divide completes it */
	KRN_PROD = 2,
	KRN_MAX = 3,
	KRN_MIN = 4,
	KRN_OP_COUNT
};

/* Instruction sets. SCALAR is the reference, and every CPU supports it. */
enum krn_isa {
	KRN_ISA_SCALAR,
	KRN_ISA_AVX2,   /* with F16C */
	KRN_ISA_AVX512, /* F, BW, DQ, VL */
	KRN_ISA_NEON,
	KRN_ISA_COUNT
};

/* Returns the bytes of one element, or 0 for a value that is not a type. */
size_t krn_dtype_size(enum krn_dtype t);

/*
 * dst[i] = srcs[0][i] op srcs[1][i] op ... srcs[nsrc - 1][i], from left to right, in one pass over
 * memory. nsrc is at least 1. With nsrc 1 this is a copy.
 *
 * count is in elements and may be 0. dst may be equal to one of the sources, but must not overlap a
 * source in another way. Sources may overlap or be equal. No pointer needs alignment. No other
 * memory than `count` elements is read or written.
 *
 * t and op must be valid. The caller must check received values with krn_dtype_size and
 * KRN_OP_COUNT.
 */
void krn_reduce(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs, unsigned nsrc,
	size_t count);

/*
 * Divides count elements of buf in place by the number of contributions. This is the last step of
 * KRN_AVG, which must be done once, on the complete sum. divisor is at least 1.
 *
 * Quotients of signed integers are truncated toward zero. The division does not recover losses of
 * the sum: an integer that has wrapped is divided as it is, and a half-precision sum that became
 * infinite stays infinite. KRN_F16 and KRN_BF16 divide in fp32 and round once. For them and for
 * KRN_F32 the divisor is first rounded to fp32, which makes a difference from 2^24 on.
 */
void krn_divide(enum krn_dtype t, void *buf, size_t count, uint32_t divisor);

/* Does this build contain the variant, and can this CPU run it? Returns false for a value out of
 * range. */
bool krn_isa_supported(enum krn_isa isa);

/* Returns the lower-case name for logs and status, or "unknown" for a value out of range. */
const char *krn_isa_name(enum krn_isa isa);

/* Returns the variant that krn_reduce and krn_divide use. It is the best supported one, and is
 * chosen once. */
enum krn_isa krn_isa_current(void);

/* Do the same as krn_reduce and krn_divide with the given variant, which must be supported. */
void krn_reduce_isa(enum krn_isa isa, enum krn_dtype t, enum krn_op op, void *dst,
	const void *const *srcs, unsigned nsrc, size_t count);
void krn_divide_isa(enum krn_isa isa, enum krn_dtype t, void *buf, size_t count, uint32_t divisor);

#endif
