/* SPDX-License-Identifier: MIT */
/*
 * The SIMD variants, for fp32, written once in the compilers' vector extensions: qnt_avx2.c,
 * qnt_avx512.c and qnt_neon.c include this file after krn_simd.h, and after defining
 *
 *   QNT_VEC_VARIANT          the name of the struct qnt_variant to define
 *   QNT_VEC_WIDEN_8(p)       a vu32 of as many bytes at p
 *   QNT_VEC_WIDEN_16(p)      a vu32 of as many 16-bit words at p
 *   QNT_VEC_NARROW_8(p, v)   stores the low byte of each element of a vu32 at p
 *   QNT_VEC_NARROW_16(p, v)  stores the low 16 bits
 *   QNT_VEC_MIN(a, b)        the smaller of two elements of vi32
 *   QNT_VEC_MAX(a, b)        the larger one
 *   QNT_VEC_EVEN(a, b)       the elements of a, and then of b, with an even index
 *   QNT_VEC_ODD(a, b)        those with an odd index
 *   QNT_VEC_LOOKUP(table, i) a vf32: for each element of the vi32 i (0 .. 15) a float of the table
 *   QNT_VEC_LOOKUP_IN(table, i, half)
 *                            the same, if all i are in 0 .. 7 (half 0) or in 8 .. 15 (half 1)
 *
 * Numbers that do not fill a vector, and a last block that is shorter, are left to qnt_scalar.
 */
#include <string.h>

#include "kernels/qnt_impl.h"

#define LANES     ((size_t)KRN_VEC_BYTES / 4)
#define MAGNITUDE INT32_MAX /* of the bits of an fp32 */

/* 1.5 * 2^23. The last bit of a number between 2^23 and 2^24 has the value 1. So adding ROUNDER
 * rounds a number of up to 2^22 to an integer, and the low bits of the sum are this integer in
 * two's complement. */
#define ROUNDER 0x1.8p23f

/* The vector extensions have no minimum or maximum, and gcc would use two instructions for each.
 */
INLINE vi32 least_of(vi32 a, vi32 b)
{
	return (vi32)QNT_VEC_MIN(a, b);
}

INLINE vi32 most_of(vi32 a, vi32 b)
{
	return (vi32)QNT_VEC_MAX(a, b);
}

INLINE vi32 all_i32(int32_t x)
{
	return (vi32){0} + x;
}

INLINE vf32 all_f32(float x)
{
	return (vf32)all_i32((int32_t)krn_f32_bits(x));
}

INLINE vf32 load(const float *x)
{
	vf32 v;

	memcpy(&v, x, sizeof(v));
	return v;
}

INLINE void store(float *x, vf32 v)
{
	memcpy(x, &v, sizeof(v));
}

/* Noise. */

struct noise {
	vu32 first;     /* lower halves of the indexes of elements 0, 1, ... */
	vu32 low, high; /* halves of the key */
};

INLINE void noise_init(struct noise *noise, const struct qnt_noise *from)
{
	uint64_t k = qnt_noise_key(from->key, from->first);
	uint32_t first[LANES];

	for (size_t i = 0; i < LANES; i++)
		first[i] = (uint32_t)(from->first + i);
	memcpy(&noise->first, first, sizeof(first));
	noise->low = (vu32){0} + (uint32_t)k;
	noise->high = (vu32){0} + (uint32_t)(k >> 32);
}

/* Returns the noise of the elements from index i on. */
INLINE vf32 noise_get(const struct noise *noise, size_t i)
{
	vu32 w = (noise->first + (uint32_t)i) ^ noise->low;

	w = (w ^ w >> 16) * UINT32_C(0x7feb352d);
	w = ((w ^ w >> 15) + noise->high) * UINT32_C(0x846ca68b);
	return __builtin_convertvector((vi32)w >> 7 | 1, vf32) * 0x1p-25f;
}

/* Rounds |t| < 2^22 to integers. If noise is NULL, they are the nearest integers. */
INLINE vi32 round_codes(vf32 t, const struct noise *noise, size_t i)
{
	if (noise)
		t += noise_get(noise, i);
	return (vi32)(t + ROUNDER) - (int32_t)krn_f32_bits(ROUNDER);
}

INLINE vi32 limit(vi32 x, int32_t least, int32_t most)
{
	return least_of(most_of(x, all_i32(least)), all_i32(most));
}

/* The range of numbers. */

static bool vec_range(bool f64, const void *acc, size_t n, double *ret_lo, double *ret_hi)
{
	const float *x = acc;
	vi32 lo = all_i32(INT32_MAX), hi = all_i32(INT32_MIN);
	float numbers[2 * LANES];
	size_t i = 0;
	double rest_lo, rest_hi;

	for (; n - i >= LANES; i += LANES) {
		vi32 key = f32_to_key((vi32)load(x + i), 0);

		lo = least_of(lo, key);
		hi = most_of(hi, key);
	}
	if (i == 0)
		return qnt_scalar.range(f64, x, n, ret_lo, ret_hi);
	store(numbers, (vf32)f32_from_key(lo, 0));
	store(numbers + LANES, (vf32)f32_from_key(hi, 0));
	if (!qnt_scalar.range(f64, numbers, 2 * LANES, ret_lo, ret_hi))
		return false;
	if (i == n)
		return true;
	if (!qnt_scalar.range(f64, x + i, n - i, &rest_lo, &rest_hi))
		return false;
	*ret_lo = rest_lo < *ret_lo ? rest_lo : *ret_lo;
	*ret_hi = rest_hi > *ret_hi ? rest_hi : *ret_hi;
	return true;
}

/* Returns the bits of the largest magnitude in each lane. n is a multiple of 2 * LANES. */
INLINE vi32 largest_bits(const float *x, size_t n)
{
	vi32 a = {0}, b = {0};

	for (size_t i = 0; i < n; i += 2 * LANES) {
		a = most_of(a, (vi32)load(x + i) & MAGNITUDE);
		b = most_of(b, (vi32)load(x + i + LANES) & MAGNITUDE);
	}
	return most_of(a, b);
}

static double vec_largest(bool f64, const void *acc, size_t n, uint32_t block)
{
	const float *x = acc;
	size_t whole = n - n % (2 * LANES);
	vi32 lanes = largest_bits(x, whole);
	int32_t largest = 0;
	int32_t bits[LANES];

	memcpy(bits, &lanes, sizeof(bits));
	for (size_t i = 0; i < LANES; i++)
		largest = bits[i] > largest ? bits[i] : largest;
	for (size_t i = whole; i < n; i++) {
		int32_t rest = (int32_t)(krn_f32_bits(x[i]) & MAGNITUDE);

		largest = rest > largest ? rest : largest;
	}
	if (largest < KRN_INF_F32)
		return (double)krn_f32_from_bits((uint32_t)largest);
	return qnt_scalar.largest(f64, x, n, block);
}

/* QNT_MIN_MAX, QNT_ZERO_POINT. */

INLINE vu32 widen(const unsigned char *codes, unsigned bits)
{
	return bits == 8 ? (vu32)QNT_VEC_WIDEN_8(codes) : (vu32)QNT_VEC_WIDEN_16(codes);
}

INLINE void narrow(unsigned char *codes, vu32 v, unsigned bits)
{
	if (bits == 8)
		QNT_VEC_NARROW_8(codes, v);
	else
		QNT_VEC_NARROW_16(codes, v);
}

/* Returns the number of encoded elements. `bits` and `noise` are constants when this is inlined. */
INLINE size_t encode_linear(const struct qnt_linear *l, unsigned char *codes, const float *x,
	size_t n, unsigned bits, const struct noise *noise)
{
	const vf32 s = all_f32((float)l->s), base = all_f32((float)l->base);
	const vf32 inverse = all_f32((float)l->inverse);
	const int32_t least = l->least, most = l->most, zero = l->zero;
	const uint32_t flip = l->flip;
	size_t i = 0;

	for (; n - i >= LANES; i += LANES) {
		vf32 t = (load(x + i) * s - base) * inverse;
		vi32 q = limit(round_codes(t, noise, i), least, most) + zero;

		narrow(codes + i * bits / 8, (vu32)q ^ flip, bits);
	}
	return i;
}

static void vec_encode_linear(const struct qnt_linear *l, unsigned char *codes, const void *acc,
	size_t n, const struct qnt_noise *noise)
{
	const float *x = acc;
	struct qnt_noise rest = {0, 0};
	struct noise lanes;
	size_t done;

	if (noise) {
		noise_init(&lanes, noise);
		done = l->bits == 8 ? encode_linear(l, codes, x, n, 8, &lanes)
				    : encode_linear(l, codes, x, n, 16, &lanes);
		rest = (struct qnt_noise){noise->key, noise->first + done};
	} else {
		done = l->bits == 8 ? encode_linear(l, codes, x, n, 8, NULL)
				    : encode_linear(l, codes, x, n, 16, NULL);
	}
	qnt_scalar.encode_linear(
		l, codes + done * l->bits / 8, x + done, n - done, noise ? &rest : NULL);
}

INLINE size_t decode_linear(
	const struct qnt_linear *l, float *x, const unsigned char *codes, size_t n, unsigned bits)
{
	const vf32 step = all_f32((float)l->step), base = all_f32((float)l->base);
	const vf32 unscale = all_f32((float)l->unscale), top = all_f32((float)l->top);
	const int32_t top_code = l->top_code, zero = l->zero;
	const uint32_t flip = l->flip;
	size_t i = 0;

	for (; n - i >= LANES; i += LANES) {
		vi32 q = (vi32)(widen(codes + i * bits / 8, bits) ^ flip);
		vi32 is_top = (vi32)(q == top_code);
		vf32 p = __builtin_convertvector(q - zero, vf32);
		vf32 y = (p * step + base) * unscale;

		store(x + i, (vf32)SELECT(is_top, (vi32)top, (vi32)y));
	}
	return i;
}

static void vec_decode_linear(
	const struct qnt_linear *l, void *acc, const unsigned char *codes, size_t n)
{
	float *x = acc;
	size_t done =
		l->bits == 8 ? decode_linear(l, x, codes, n, 8) : decode_linear(l, x, codes, n, 16);

	qnt_scalar.decode_linear(l, x + done, codes + done * l->bits / 8, n - done);
}

/* QNT_BLOCK: values and codes. `code` is a constant when these functions are inlined. */

/*
 * Returns the index of the level next to t. The limits of the levels' ranges are in `tree`, a
 * binary search tree: node i has the children 2 i and 2 i + 1. Four steps lead to 16 + the index.
 */
INLINE vu32 encode_n4(vf32 t, const float *tree)
{
	vi32 i = all_i32(1);

#pragma GCC unroll 4
	for (int level = 0; level < 4; level++)
		i = 2 * i - (vi32)(t > QNT_VEC_LOOKUP_IN(tree, i, level == 3));
	return (vu32)(i - 16);
}

/* Writes the tree. The nodes of one depth (`first` nodes, from number `first` on) divide the levels
 * into equal ranges, and each node holds the limit in the middle of its range. */
static void n4_tree(float *tree)
{
	tree[0] = 0;
	for (unsigned first = 1; first < 16; first *= 2) {
		for (unsigned i = 0; i < first; i++) {
			unsigned level = (2 * i + 1) * 8 / first;

			tree[first + i] = (qnt_levels[level - 1] + qnt_levels[level]) / 2;
		}
	}
}

/* See the comment in qnt_scalar.c. */
INLINE vu32 encode_fp8(struct qnt_fp8 type, vf32 t)
{
	const int32_t least = (int32_t)krn_f32_bits(type.unit * (float)(1 << type.mantissa));
	vi32 magnitude =
		least_of((vi32)t & MAGNITUDE, all_i32((int32_t)krn_f32_bits(type.largest)));
	vi32 power = most_of(magnitude & KRN_INF_F32, all_i32(least));
	vf32 shift = (vf32)(power + ((23 - type.mantissa) << 23));
	vi32 units = (vi32)((vf32)magnitude + shift) - (vi32)shift;
	vu32 sign = ((vu32)t >> 24) & 0x80;

	return (vu32)(units + ((power - least) >> (23 - type.mantissa))) | sign;
}

INLINE vf32 decode_fp8(struct qnt_fp8 type, vu32 code)
{
	vi32 magnitude = (vi32)(code & 0x7f);
	vi32 is_nan = (vi32)(magnitude >= (int32_t)type.nan);
	vi32 is_small = (vi32)(magnitude < (int32_t)(1 << type.mantissa));
	vf32 small = __builtin_convertvector(magnitude, vf32) * type.unit;
	vi32 normal = (magnitude << (23 - type.mantissa)) + (int32_t)(type.bias << 23);
	vi32 x = SELECT(is_small, (vi32)small, normal) | (vi32)((code & 0x80) << 24);

	return (vf32)SELECT(is_nan, all_i32(KRN_NAN_F32), x);
}

struct encoder {
	vf32 down;
	const float *tree; /* of QNT_N4 */
	const struct noise *noise;
};

/* Encodes the elements from index i on. The bits above those of a code are not 0. */
INLINE vu32 encode_lanes(
	enum qnt_code code, const struct encoder *c, vf32 inverse, const float *x, size_t i)
{
	vf32 t = load(x + i) * c->down * inverse;

	switch (code) {
	case QNT_I4:
		return (vu32)limit(round_codes(t, c->noise, i), -7, 7);
	case QNT_N4:
		return encode_n4(t, c->tree);
	case QNT_E4M3:
		return encode_fp8(QNT_E4M3_TYPE, t);
	case QNT_E5M2:
		return encode_fp8(QNT_E5M2_TYPE, t);
	default:
		return (vu32)limit(round_codes(t, c->noise, i), -127, 127);
	}
}

/* Returns the value of the code in the low bits. `shift` (0 or 4) is the place of a 4-bit code. */
INLINE vf32 decode_lanes(enum qnt_code code, vu32 byte, int shift)
{
	switch (code) {
	case QNT_I4:
		return __builtin_convertvector((vi32)(byte << (28 - shift)) >> 28, vf32);
	case QNT_N4:
		return QNT_VEC_LOOKUP(qnt_levels, (vi32)((byte >> shift) & 15));
	case QNT_E4M3:
		return decode_fp8(QNT_E4M3_TYPE, byte);
	case QNT_E5M2:
		return decode_fp8(QNT_E5M2_TYPE, byte);
	default:
		return __builtin_convertvector((vi32)(byte << 24) >> 24, vf32);
	}
}

/* QNT_BLOCK: scales. They are computed for LANES blocks at a time. */

/* Element i of the result is the largest element of v[i]. Overwrites v. */
INLINE vi32 largest_of_each(vi32 *v)
{
#pragma GCC unroll 8
	for (size_t n = LANES; n > 1; n /= 2) {
#pragma GCC unroll 8
		for (size_t i = 0; i < n / 2; i++) {
			vi32 a = v[2 * i], b = v[2 * i + 1];

			v[i] = most_of(QNT_VEC_EVEN(a, b), QNT_VEC_ODD(a, b));
		}
	}
	return v[0];
}

/* Returns the values of scales, with NaN for infinity. */
INLINE vf32 scale_values(vu32 scales, bool bf16)
{
	vf32 value = bf16 ? (vf32)(scales << 16)
			  : (vf32)KRN_VEC_F16_UP(__builtin_convertvector(scales, vh16));
	vi32 finite = (vi32)(((vi32)value & MAGNITUDE) < KRN_INF_F32);

	return (vf32)SELECT(finite, (vi32)value, all_i32(KRN_NAN_F32));
}

/* Returns the scales of blocks with these largest magnitudes. */
INLINE vu32 choose_scales(const struct qnt_blocks *b, vi32 largest)
{
	const float least = b->bf16_scale ? QNT_LEAST_BF16_SCALE : QNT_LEAST_F16_SCALE;
	const int32_t nan = b->bf16_scale ? KRN_NAN_BF16 : KRN_NAN_F16;
	vi32 is_finite = (vi32)(largest < KRN_INF_F32);
	vi32 is_zero = (vi32)(largest == 0);
	vf32 wanted = (vf32)largest * (float)b->down * (float)b->factor;
	vf32 most;
	vi32 scale;

	wanted = (vf32)most_of((vi32)wanted, all_i32((int32_t)krn_f32_bits(least)));
	scale = b->bf16_scale
			? (vi32)(bf16_round(wanted) >> 16)
			: (vi32) __builtin_convertvector((vh16)KRN_VEC_F16_DOWN(wanted), vu32);
	scale -= (vi32)(scale_values((vu32)scale, b->bf16_scale) < wanted);
	most = scale_values((vu32)scale, b->bf16_scale) * (float)b->most * (float)b->up;
	scale += (vi32)((vi32)most == KRN_INF_F32);
	return (vu32)(SELECT(is_finite, scale, all_i32(nan)) & ~is_zero);
}

/* Writes the scales of the n <= LANES blocks at x, and 1 / scale, or 0 if the codes of the block
 * are not used. */
INLINE void encode_scales(const struct qnt_blocks *b, unsigned char *scales, float *inverses,
	const float *x, size_t n)
{
	unsigned char bytes[2 * LANES];
	vi32 largest[LANES];
	vi32 used, result;
	vu32 scale;

	for (size_t k = 0; k < LANES; k++)
		largest[k] = k < n ? largest_bits(x + k * b->block, b->block) : (vi32){0};
	result = largest_of_each(largest);
	scale = choose_scales(b, result);
	used = (vi32)(result > 0) & (vi32)(result < KRN_INF_F32);
	store(inverses, (vf32)(used & (vi32)(1 / scale_values(scale, b->bf16_scale))));
	QNT_VEC_NARROW_16(bytes, scale);
	memcpy(scales, bytes, 2 * n);
}

/* QNT_BLOCK: loops. */

INLINE void encode_block(enum qnt_code code, const struct encoder *c, float inverse,
	unsigned char *codes, const float *x, size_t from, size_t block)
{
	const vf32 lanes = all_f32(inverse);
	size_t bytes = qnt_block_bytes(code, block);

	for (size_t j = 0; j < bytes; j += LANES) {
		vu32 v = encode_lanes(code, c, lanes, x, from + j);

		if (qnt_two_codes(code))
			v = (v & 15) | encode_lanes(code, c, lanes, x, from + bytes + j) << 4;
		QNT_VEC_NARROW_8(codes + j, v);
	}
}

INLINE bool is_zero(const unsigned char *scale)
{
	return scale[0] == 0 && scale[1] == 0;
}

/* Encodes n whole blocks. */
INLINE void encode_blocks(enum qnt_code code, const struct qnt_blocks *b, const struct noise *noise,
	unsigned char *scales, unsigned char *codes, const float *x, size_t n)
{
	const size_t block = b->block, bytes = qnt_block_bytes(code, block);
	float tree[16], inverses[LANES];
	struct encoder c = {all_f32((float)b->down), tree, noise};

	if (code == QNT_N4)
		n4_tree(tree);
	for (size_t first = 0; first < n; first += LANES) {
		size_t m = n - first < LANES ? n - first : LANES;

		encode_scales(b, scales + 2 * first, inverses, x + first * block, m);
		for (size_t k = 0; k < m; k++) {
			size_t at = first + k;

			if (inverses[k] != 0)
				encode_block(code, &c, inverses[k], codes + at * bytes, x,
					at * block, block);
			else
				memset(codes + at * bytes,
					is_zero(scales + 2 * at) ? QNT_ZEROS(code) : 0, bytes);
		}
	}
}

INLINE void decode_block(enum qnt_code code, float scale, vf32 up, float *x,
	const unsigned char *codes, size_t block)
{
	const vf32 lanes = all_f32(scale);
	size_t bytes = qnt_block_bytes(code, block);

	for (size_t j = 0; j < bytes; j += LANES) {
		vu32 byte = (vu32)QNT_VEC_WIDEN_8(codes + j);

		store(x + j, decode_lanes(code, byte, 0) * lanes * up);
		if (qnt_two_codes(code))
			store(x + bytes + j, decode_lanes(code, byte, 4) * lanes * up);
	}
}

/* Decodes n whole blocks. */
INLINE void decode_blocks(enum qnt_code code, const struct qnt_blocks *b, float *x,
	const unsigned char *scales, const unsigned char *codes, size_t n)
{
	const size_t block = b->block, bytes = qnt_block_bytes(code, block);
	const vf32 up = all_f32((float)b->up);
	float values[LANES];

	for (size_t first = 0; first < n; first += LANES) {
		size_t m = n - first < LANES ? n - first : LANES;
		unsigned char words[2 * LANES] = {0};

		memcpy(words, scales + 2 * first, 2 * m);
		store(values, scale_values((vu32)QNT_VEC_WIDEN_16(words), b->bf16_scale));
		for (size_t k = first; k < first + m; k++)
			decode_block(code, values[k - first], up, x + k * block, codes + k * bytes,
				block);
	}
}

#define DEFINE_BLOCKS(code)                                                                        \
	static void encode_##code(const struct qnt_blocks *b, unsigned char *scales,               \
		unsigned char *codes, const float *x, size_t n)                                    \
	{                                                                                          \
		encode_blocks(code, b, NULL, scales, codes, x, n);                                 \
	}                                                                                          \
	static void decode_##code(const struct qnt_blocks *b, float *x,                            \
		const unsigned char *scales, const unsigned char *codes, size_t n)                 \
	{                                                                                          \
		decode_blocks(code, b, x, scales, codes, n);                                       \
	}
DEFINE_BLOCKS(QNT_I8)
DEFINE_BLOCKS(QNT_I4)
DEFINE_BLOCKS(QNT_N4)
DEFINE_BLOCKS(QNT_E4M3)
DEFINE_BLOCKS(QNT_E5M2)

static const struct {
	void (*encode)(const struct qnt_blocks *b, unsigned char *scales, unsigned char *codes,
		const float *x, size_t n);
	void (*decode)(const struct qnt_blocks *b, float *x, const unsigned char *scales,
		const unsigned char *codes, size_t n);
} block_loops[QNT_CODE_COUNT] = {
	[QNT_I8] = {encode_QNT_I8, decode_QNT_I8},
	[QNT_I4] = {encode_QNT_I4, decode_QNT_I4},
	[QNT_N4] = {encode_QNT_N4, decode_QNT_N4},
	[QNT_E4M3] = {encode_QNT_E4M3, decode_QNT_E4M3},
	[QNT_E5M2] = {encode_QNT_E5M2, decode_QNT_E5M2},
};

static void vec_encode_blocks(const struct qnt_blocks *b, unsigned char *scales,
	unsigned char *codes, const void *acc, size_t n, const struct qnt_noise *noise)
{
	const float *x = acc;
	size_t blocks = n / b->block, done = blocks * b->block;
	struct qnt_noise rest = {0, 0};
	struct noise lanes;

	if (!noise) {
		block_loops[b->code].encode(b, scales, codes, x, blocks);
	} else {
		rest = (struct qnt_noise){noise->key, noise->first + done};
		noise_init(&lanes, noise);
		if (b->code == QNT_I8)
			encode_blocks(QNT_I8, b, &lanes, scales, codes, x, blocks);
		else
			encode_blocks(QNT_I4, b, &lanes, scales, codes, x, blocks);
	}
	qnt_scalar.encode_blocks(b, scales + 2 * blocks, codes + qnt_block_bytes(b->code, done),
		x + done, n - done, noise ? &rest : NULL);
}

static void vec_decode_blocks(const struct qnt_blocks *b, void *acc, const unsigned char *scales,
	const unsigned char *codes, size_t n)
{
	float *x = acc;
	size_t blocks = n / b->block, done = blocks * b->block;

	block_loops[b->code].decode(b, x, scales, codes, blocks);
	qnt_scalar.decode_blocks(
		b, x + done, scales + 2 * blocks, codes + qnt_block_bytes(b->code, done), n - done);
}

/* Halves. */

static void vec_to_half(enum qnt_code code, unsigned char *half, const float *x, size_t n)
{
	size_t i = 0;

	if (code == QNT_BF16) {
		for (; n - i >= LANES; i += LANES)
			QNT_VEC_NARROW_16(half + 2 * i, bf16_round(load(x + i)) >> 16);
	} else {
		for (; n - i >= LANES; i += LANES) {
			vh16 h = (vh16)KRN_VEC_F16_DOWN(f32_down(load(x + i)));

			memcpy(half + 2 * i, &h, sizeof(h));
		}
	}
	qnt_scalar.to_half(code, half + 2 * i, x + i, n - i);
}

static void vec_from_half(enum qnt_code code, float *x, const unsigned char *half, size_t n)
{
	size_t i = 0;

	if (code == QNT_BF16) {
		for (; n - i >= LANES; i += LANES)
			store(x + i, f32_down((vf32)((vu32)QNT_VEC_WIDEN_16(half + 2 * i) << 16)));
	} else {
		for (; n - i >= LANES; i += LANES) {
			vh16 h;

			memcpy(&h, half + 2 * i, sizeof(h));
			store(x + i, f32_down((vf32)KRN_VEC_F16_UP(h)));
		}
	}
	qnt_scalar.from_half(code, x + i, half + 2 * i, n - i);
}

const struct qnt_variant QNT_VEC_VARIANT = {vec_range, vec_largest, vec_encode_linear,
	vec_decode_linear, vec_encode_blocks, vec_decode_blocks, vec_to_half, vec_from_half};
