/* SPDX-License-Identifier: MIT */
#ifndef QNT_H
#define QNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/krn.h"

/*
 * Quantization of floating-point arrays for the network. The unit is a segment: `n` consecutive
 * elements become qnt_wire_size bytes, which contain all scales that are needed to decode them. n
 * is at most 2^31.
 *
 * Pure code, like krn.h. All instruction sets of all architectures give the same bytes for the same
 * numbers, and the same numbers for the same bytes. Any bytes can be decoded without undefined
 * behaviour.
 *
 * The kernels compute in an accumulator type: fp64 for elements of KRN_F64, fp32 for KRN_F16,
 * KRN_BF16 and KRN_F32 (qnt_acc_dtype). Each operation of the formulas below is one IEEE operation
 * in this type, rounded to nearest even, never fused. (Multiplications by powers of two are
 * operations, too.) x is a number, q its code, x' the decoded number. NaN is the NaN of krn.h. All
 * numbers on the wire are little-endian.
 *
 * round(t) is the integer nearest to t, ties to even. With noise (stochastic rounding), round(t) is
 * the integer nearest to t + u, ties to even, where u in (-1/2, 1/2) is computed from the key and
 * the index of the element alone (qnt_noise_at). So its mean is t, as exactly as the accumulator
 * type can represent t + u, and 0 stays 0. Only integers can be rounded stochastically: all codes
 * of QNT_MIN_MAX and QNT_ZERO_POINT, and QNT_I8 and QNT_I4 of QNT_BLOCK.
 *
 * Limits of the accumulator type:
 *
 *              tiny     big    emin   emax
 *      fp32   2^-60    2^64    -126    127
 *      fp64  2^-500   2^512   -1022   1023
 *
 * QNT_CAST, to QNT_F16 or QNT_BF16: x' is x rounded to the nearest number of the code. Numbers that
 * are too large become infinity. fp64 is first rounded to fp32. NaN stays NaN, infinity stays
 * infinity. The bytes are the codes.
 *
 * QNT_MIN_MAX, to QNT_U8, QNT_I8, QNT_U16 or QNT_I16: q is in 0 .. L, where L = 2^bits - 1. lo and
 * hi are the least and the greatest number of the segment; zero counts as +0. Let
 *
 *      s = 1/2 if hi - lo is infinite; big if 0 < |hi - lo| < tiny; otherwise 1
 *      base = lo * s, d = hi * s - base, step = d / L, inverse = L / d, or 0 if d is 0
 *
 * (With s no step overflows or loses digits; 1/s is exact.) Then
 *
 *      q = round((x * s - base) * inverse), at least 0 and at most L
 *      x' = (q * step + base) * (1/s), but hi if q = L
 *
 * Without noise the least and the greatest number are decoded exactly. If x' is encoded again, the
 * same numbers are decoded, unless step is as small as the distance of two neighbouring numbers of
 * the accumulator type near lo or hi. If all numbers are equal, x' = x. The bytes are lo and hi
 * (numbers of the accumulator type), and the codes. If lo or hi is NaN or infinite, all x' are NaN.
 *
 * QNT_ZERO_POINT, to the same codes: the range is extended to contain 0. So 0 is decoded exactly:
 *
 *      lo = the least number, or 0 if it is positive; hi = the greatest, or 0 if it is negative
 *      k = L - 1 if lo < 0 and hi > 0, otherwise L
 *      scale = hi / k - lo / k, but at least 2^emin
 *      z = the least integer from (-lo) * (1 / scale) on, but at most L
 *      p = round(x * (1 / scale)), at least -z and at most L - z, and such that p * scale is finite
 *      q = p + z
 *      x' = (q - z) * scale + 0
 *
 * (With k steps there is room for rounding z up, so that lo and hi are inside of the range of the
 * codes.) The bytes are scale (accumulator type), z (int32) and the codes. If scale is NaN or
 * infinite, or z is not in 0 .. L, all x' are NaN.
 *
 * The codes of both schemes have the bits of q (QNT_U8, QNT_U16) or of q - 2^(bits - 1) (QNT_I8,
 * QNT_I16).
 *
 * QNT_BLOCK, to QNT_I8, QNT_I4, QNT_N4, QNT_E4M3 or QNT_E5M2: each `block` elements have a scale of
 * 16 bits, fp16 or bf16. (The last block may be shorter.) 2^e is common to the segment, so that the
 * scales use the range of their type whatever the magnitude of the numbers. The values of the
 * codes:
 *
 *                 M    c
 *      QNT_I8   127   20   -127 .. 127
 *      QNT_I4     7   16   -7 .. 7, two codes per byte
 *      QNT_N4     1   14   the 16 levels of qnt_normal_levels, ascending, two codes per byte
 *      QNT_E4M3 448   22   fp8 with 4 exponent bits (bias 7), without infinity
 *      QNT_E5M2 57344 29   fp8 with 5 exponent bits (bias 15)
 *
 * Let A be the largest magnitude of all blocks, and a that of one block. Then
 *
 *      e = floor(log2 A) - c, but at least emin
 *      scale = (a * 2^-e) * (clip / M), at least 2^-24 (fp16) or 2^-100 (bf16), rounded up to the
 *              type of the scales; the next smaller scale if (M * scale) * 2^e is infinite; 0 if
 *              a is 0
 *      t = (x * 2^-e) * (1 / scale)
 *      q = the code with the value nearest to t: QNT_I8 and QNT_I4: round(t), at least -M and at
 *              most M; QNT_N4: of two nearest levels the lower one; fp8: ties to even
 *      x' = (value(q) * scale) * 2^e
 *
 * Without clipping (clip, see qnt_clip, is 1) the error of t is at most half of the distance of two
 * values, because the scale is rounded up. (For numbers near the largest one of the accumulator
 * type it may be 1/1000 of M, with bf16 1/128.)
 *
 * A block with NaN or infinity has the scale NaN and code bytes 0, and does not count for A. In a
 * block of zeros the codes are those of +0. The bytes are e (int32), the scales (uint16 each) and
 * the codes. A code of QNT_I8 is an int8. In a byte with two codes the low half holds the code of
 * element j of the block, and the high half that of element j + (m + 1) / 2, where m is the number
 * of elements in the block. (The last half is 0 if m is odd.) A code of QNT_I4 is the value modulo
 * 16, a code of QNT_N4 the index of the level. All x' of a block are NaN if its scale is NaN or
 * infinite, or if e is not in emin .. emax. The code values -128 (QNT_I8) and -8 (QNT_I4) are not
 * written, but decoded; x' is NaN for the codes 0x7f (QNT_E4M3) and 0x7c .. 0x7f (QNT_E5M2), with
 * or without the sign.
 *
 * NaN and infinity: if a block (QNT_BLOCK) or a segment (QNT_MIN_MAX, QNT_ZERO_POINT) contains one,
 * all of its elements are decoded as NaN. Other blocks are not affected. A segment of QNT_MIN_MAX
 * then has NaN for lo and hi, one of QNT_ZERO_POINT the scale NaN and z = 0. All code bytes are 0.
 */

enum qnt_scheme {
	QNT_CAST,
	QNT_MIN_MAX,
	QNT_ZERO_POINT,
	QNT_BLOCK,
};

enum qnt_code {
	QNT_U8,
	QNT_I8,
	QNT_U16,
	QNT_I16,
	QNT_F16,
	QNT_BF16,
	QNT_I4,
	QNT_N4,
	QNT_E4M3,
	QNT_E5M2,
	QNT_CODE_COUNT
};

/* The expected distribution of the elements of a block: normal with mean 0, or uniform in an
 * interval around 0. */
enum qnt_hint { QNT_HINT_NONE, QNT_HINT_NORMAL, QNT_HINT_UNIFORM, QNT_HINT_COUNT };

#define QNT_BLOCK_MIN 32u
#define QNT_BLOCK_MAX 1024u

struct qnt_format {
	enum krn_dtype dtype; /* of the elements: KRN_F16, KRN_BF16, KRN_F32 or KRN_F64 */
	enum qnt_scheme scheme;
	enum qnt_code code;
	/* QNT_BLOCK; 0 for the other schemes: */
	uint32_t
		block; /* elements for each scale; a power of two, QNT_BLOCK_MIN .. QNT_BLOCK_MAX */
	bool bf16_scale; /* the scales are bf16, not fp16 */
	enum qnt_hint hint;
	/* Round stochastically. */
	bool stochastic;
};

/* Is this a format that the functions below accept? */
bool qnt_format_valid(const struct qnt_format *f);

/* Returns KRN_F64 or KRN_F32. The accumulator arrays below have elements of this type. */
enum krn_dtype qnt_acc_dtype(const struct qnt_format *f);

/* Returns the bytes of a segment of n elements; 0 if n is 0. */
size_t qnt_wire_size(const struct qnt_format *f, size_t n);

/* The noise of stochastic rounding. */
struct qnt_noise {
	uint64_t key;   /* differs for each operation, host and phase */
	uint64_t first; /* index of the segment's first element in the operation */
};

/*
 * Returns u in (-1/2, 1/2), an odd multiple of 2^-25, for the element with this index. The
 * definition:
 *
 *      k = mix(mix(key + 0x9e3779b97f4a7c15) + (index >> 32)), modulo 2^64, where mix is
 *          x ^= x >> 30; x *= 0xbf58476d1ce4e5b9; x ^= x >> 27; x *= 0x94d049bb133111eb; x ^= x >>
 * 31 w = (index ^ k) modulo 2^32 w ^= w >> 16; w *= 0x7feb352d; w ^= w >> 15; w += k >> 32; w *=
 * 0x846ca68b u = (2 * floor(w / 2^8) + 1) * 2^-25, where w is a signed number in two's complement
 */
float qnt_noise_at(uint64_t key, uint64_t index);

/*
 * Encodes n numbers of the array `acc` into `wire` (qnt_wire_size bytes, no alignment). `noise` may
 * be NULL if the format is not stochastic. With `adopt` each x of `acc` is replaced by x', as
 * decoding would give it. Arrays of the accumulator type are aligned to their elements and do not
 * overlap `wire`.
 */
void qnt_encode(const struct qnt_format *f, void *wire, void *acc, size_t n, bool adopt,
	const struct qnt_noise *noise);

/* The destination of the loss of an encoding. The loss of x is (x - x') * factor, in the
 * accumulator type, or 0 if this is NaN or infinite. */
struct qnt_loss {
	void *to;        /* n numbers of the accumulator type */
	void *buffer;    /* work space for n numbers: the loss is added to the numbers at `to`.
			    NULL: the loss replaces the numbers at `to` */
	uint32_t factor; /* at least 1 */
};
/* Encodes like qnt_encode with `adopt`, and writes the loss. */
void qnt_encode_loss(const struct qnt_format *f, void *wire, void *acc, size_t n,
	const struct qnt_noise *noise, const struct qnt_loss *l);

/* acc[i] = x'[i] */
void qnt_decode(const struct qnt_format *f, void *acc, const void *wire, size_t n);

/* acc[i] = acc[i] op x'[i]. The result is that of krn_reduce in the accumulator type, with the
 * sources acc and x'. Decodes and accumulates in one pass. */
void qnt_decode_reduce(
	const struct qnt_format *f, enum krn_op op, void *acc, const void *wire, size_t n);

/*
 * Convert n elements of type f->dtype at `src` to the accumulator type, and back. `src` and `dst`
 * need no alignment. KRN_F32 and KRN_F64 are copied. KRN_F16 and KRN_BF16: every NaN becomes the
 * NaN of krn.h. Back: rounds to nearest even; a number that is too large becomes infinity.
 */
void qnt_load(const struct qnt_format *f, void *acc, const void *src, size_t n);
void qnt_store(const struct qnt_format *f, void *dst, const void *acc, size_t n);

/*
 * Returns the 16 values of QNT_N4, ascending: -1, 0, 1 and multiples of 2^-12 between them. They
 * give the least expected square error for normal numbers in blocks of 32 with the factor of
 * qnt_clip. (Quantiles of the normal distribution have a larger error. 16 symmetric levels, without
 * 0, would reduce the error by 0.6 %.)
 */
const float *qnt_normal_levels(void);

/*
 * Returns the clipping factor of QNT_BLOCK: at most 1. It minimizes the expected square error of
 * numbers with the distribution of the hint. It is 1 without a hint, and for codes with which a
 * factor would reduce the error by less than 1 %: QNT_I8, and fp8 with normal numbers. It reduces
 * the error by 3 % (QNT_I4) and 1 % (QNT_N4) for normal numbers in blocks of 32, by 19 % and 11 %
 * in blocks of 1024. tests/kernels/qnt_model.py computes the levels and factors.
 */
float qnt_clip(enum qnt_code code, uint32_t block, enum qnt_hint hint);

/* Do the same as the functions above with the given variant, which must be supported
 * (krn_isa_supported). */
void qnt_encode_isa(enum krn_isa isa, const struct qnt_format *f, void *wire, void *acc, size_t n,
	bool adopt, const struct qnt_noise *noise);
void qnt_decode_isa(
	enum krn_isa isa, const struct qnt_format *f, void *acc, const void *wire, size_t n);
void qnt_decode_reduce_isa(enum krn_isa isa, const struct qnt_format *f, enum krn_op op, void *acc,
	const void *wire, size_t n);

#endif
