/* SPDX-License-Identifier: MIT */
#ifndef KRN_H
#define KRN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Element-wise reductions over arrays: 12 data types, 5 operations, a plain scalar reference and
 * SIMD variants chosen at run time.
 *
 * Pure code: no I/O, no allocation, no locks, no state but the cached choice of instruction set.
 * Every function may be called from any thread; the caller sees to it that no other thread touches
 * the arrays meanwhile.
 *
 * The result depends on the arguments alone. All instruction sets of all architectures give the
 * same bits for the same sources in the same order:
 *
 *  - Integers: sum and product wrap modulo 2^n, n being the width of the type.
 *  - KRN_F32, KRN_F64: each step is one IEEE operation, rounded to nearest even, never fused.
 *  - KRN_F16, KRN_BF16: all sources of one call are converted to fp32 (exact), combined in fp32
 *    from left to right, and rounded once, to nearest even, into dst. Hence one call with three
 *    sources may differ from two calls with two. Too large for the type: infinity.
 *  - Subnormal numbers are kept, on the way in and out.
 *  - Max and Min: a NaN in any source makes the result NaN; -0 is less than +0.
 *  - A NaN that is computed, by whichever operation, is the positive quiet NaN without payload
 *    (0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000).
 *  - Copies, that is krn_reduce with one source and krn_divide by 1, leave all bits alone.
 *
 * The thread must have the floating-point environment that a program starts with: rounding to
 * nearest, no flush to zero.
 */

/* The numbers are those of the public interface and of the wire. */
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

/* SCALAR is the reference and is supported everywhere. */
enum krn_isa {
	KRN_ISA_SCALAR,
	KRN_ISA_AVX2,   /* with F16C */
	KRN_ISA_AVX512, /* F, BW, DQ, VL */
	KRN_ISA_NEON,
	KRN_ISA_COUNT
};

/* Bytes of one element; 0 for a value that is no type. */
size_t krn_dtype_size(enum krn_dtype t);

/*
 * dst[i] = srcs[0][i] op srcs[1][i] op ... srcs[nsrc - 1][i], from left to right, in one pass over
 * memory. nsrc is at least 1; with 1 it is a copy.
 *
 * count is in elements and may be 0. dst may be the same pointer as any of the sources; apart from
 * that dst must not overlap them. Sources may overlap or be the same. No pointer needs alignment.
 * Nothing is read or written beyond count elements.
 *
 * t and op must be valid: check what came from outside with krn_dtype_size and KRN_OP_COUNT.
 */
void krn_reduce(enum krn_dtype t, enum krn_op op, void *dst, const void *const *srcs, unsigned nsrc,
	size_t count);

/*
 * Divides count elements of buf in place by the number of contributions: the last step of KRN_AVG,
 * to be done once, on the complete sum. divisor is at least 1.
 *
 * Signed integers truncate toward zero. What the sum lost is not recovered: an integer that wrapped
 * is divided as it is, and a half-precision sum that became infinite stays so. KRN_F16 and KRN_BF16
 * divide in fp32 and round once; for them and for KRN_F32 the divisor is first rounded to fp32,
 * which matters from 2^24 up.
 */
void krn_divide(enum krn_dtype t, void *buf, size_t count, uint32_t divisor);

/* Whether this build has the variant and this CPU can run it. False for a value out of range. */
bool krn_isa_supported(enum krn_isa isa);

/* Lower-case name, for logs and status; "unknown" for a value out of range. */
const char *krn_isa_name(enum krn_isa isa);

/* The variant that krn_reduce and krn_divide use: the best that is supported, chosen once. */
enum krn_isa krn_isa_current(void);

/* As krn_reduce and krn_divide, by the given variant, which must be supported. */
void krn_reduce_isa(enum krn_isa isa, enum krn_dtype t, enum krn_op op, void *dst,
	const void *const *srcs, unsigned nsrc, size_t count);
void krn_divide_isa(enum krn_isa isa, enum krn_dtype t, void *buf, size_t count, uint32_t divisor);

#endif
