/* SPDX-License-Identifier: MIT */
/*
 * The reference. It handles one element after the other. The other variants are tested against it,
 * and use it for fp64, for the last elements of a segment, and for the last block if it is short.
 * The code prefers plainness to speed: it computes in fp64 and rounds each result (qnt_once).
 */
#include <math.h>

#include "kernels/krn_half.h"
#include "kernels/qnt_impl.h"

static double get(bool f64, const void *acc, size_t i)
{
	return f64 ? ((const double *)acc)[i] : (double)((const float *)acc)[i];
}

static void put(bool f64, void *acc, size_t i, double x)
{
	if (f64)
		((double *)acc)[i] = x;
	else
		((float *)acc)[i] = (float)x;
}

/* Rounds to an integer. i is the index of the element in the array. */
static double round_code(bool f64, double t, const struct qnt_noise *noise, size_t i)
{
	if (noise)
		t = qnt_once(f64, t + (double)qnt_noise_at(noise->key, noise->first + i));
	return qnt_nearest(t);
}

/* The code of element i. `bits` is 8 or 16. */
static uint32_t get_code(const unsigned char *codes, size_t i, unsigned bits)
{
	return bits == 8 ? codes[i] : codes[2 * i] | (uint32_t)codes[2 * i + 1] << 8;
}

static void put_code(unsigned char *codes, size_t i, unsigned bits, uint32_t code)
{
	if (bits == 8) {
		codes[i] = (unsigned char)code;
	} else {
		codes[2 * i] = (unsigned char)code;
		codes[2 * i + 1] = (unsigned char)(code >> 8);
	}
}

static double limit(double x, double least, double most)
{
	x = x > least ? x : least;
	return x < most ? x : most;
}

/* QNT_MIN_MAX, QNT_ZERO_POINT. */

static bool scalar_range(bool f64, const void *acc, size_t n, double *ret_lo, double *ret_hi)
{
	double lo = (double)INFINITY, hi = (double)-INFINITY;

	for (size_t i = 0; i < n; i++) {
		double x = get(f64, acc, i);

		if (!isfinite(x))
			return false;
		lo = x < lo ? x : lo;
		hi = x > hi ? x : hi;
	}
	*ret_lo = lo;
	*ret_hi = hi;
	return true;
}

static void scalar_encode_linear(const struct qnt_linear *l, unsigned char *codes, const void *acc,
	size_t n, const struct qnt_noise *noise)
{
	for (size_t i = 0; i < n; i++) {
		double distance =
			qnt_once(l->f64, qnt_once(l->f64, get(l->f64, acc, i) * l->s) - l->base);
		double t = qnt_once(l->f64, distance * l->inverse);
		double p = limit(round_code(l->f64, t, noise, i), l->least, l->most);
		uint32_t code = (uint32_t)((int32_t)p + l->zero) ^ l->flip;

		put_code(codes, i, l->bits, code);
	}
}

static void scalar_decode_linear(
	const struct qnt_linear *l, void *acc, const unsigned char *codes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int32_t q = (int32_t)(get_code(codes, i, l->bits) ^ l->flip);
		double x;

		x = qnt_once(l->f64, (double)(q - l->zero) * l->step);
		x = qnt_once(l->f64, x + l->base);
		x = qnt_once(l->f64, x * l->unscale);
		put(l->f64, acc, i, q == l->top_code ? l->top : x);
	}
}

/* QNT_BLOCK. */

/* Returns the largest magnitude, or infinity if there is a NaN. */
static double block_largest(bool f64, const void *acc, size_t n)
{
	double largest = 0;

	for (size_t i = 0; i < n; i++) {
		double x = fabs(get(f64, acc, i));

		if (!isfinite(x))
			return (double)INFINITY;
		largest = x > largest ? x : largest;
	}
	return largest;
}

static double scalar_largest(bool f64, const void *acc, size_t n, uint32_t block)
{
	double largest = 0;

	for (size_t i = 0; i < n; i += block) {
		double x =
			block_largest(f64, qnt_element(f64, acc, i), n - i < block ? n - i : block);

		if (x > largest && x < (double)INFINITY)
			largest = x;
	}
	return largest;
}

static float scale_value(const struct qnt_blocks *b, uint16_t scale)
{
	float value = b->bf16_scale ? krn_bf16_to_f32(scale) : krn_f16_to_f32(scale);

	return isinf(value) ? krn_f32_from_bits(KRN_NAN_F32) : value;
}

/* Chooses the scale of a block with this largest magnitude. */
static uint16_t choose_scale(const struct qnt_blocks *b, double largest)
{
	double least = (double)(b->bf16_scale ? QNT_LEAST_BF16_SCALE : QNT_LEAST_F16_SCALE);
	double wanted = qnt_once(b->f64, qnt_once(b->f64, largest * b->down) * b->factor);
	uint16_t scale;

	if (largest == 0)
		return 0;
	if (largest == (double)INFINITY)
		return b->bf16_scale ? KRN_NAN_BF16 : KRN_NAN_F16;
	wanted = wanted > least ? wanted : least;
	/* The result is one of the two 16-bit numbers next to `wanted`, although the conversion
	 * rounds twice. */
	scale = b->bf16_scale ? krn_f32_to_bf16((float)wanted) : krn_f32_to_f16((float)wanted);
	if ((double)scale_value(b, scale) < wanted)
		scale++;
	if (isinf(qnt_once(b->f64, b->most * (double)scale_value(b, scale) * b->up)))
		scale--;
	return scale;
}

static uint32_t encode_n4(double t)
{
	uint32_t code = 0;

	while (code < 15 && t > ((double)qnt_levels[code] + (double)qnt_levels[code + 1]) / 2)
		code++;
	return code;
}

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static double from_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static uint32_t encode_fp8(struct qnt_fp8 type, double t)
{
	const uint64_t exponent_mask = UINT64_C(0x7ff) << 52;
	double magnitude = fabs(t) < (double)type.largest ? fabs(t) : (double)type.largest;
	double smallest_normal = (double)type.unit * (1 << type.mantissa);
	uint64_t least = bits_of(smallest_normal);
	uint64_t power = bits_of(magnitude) & exponent_mask;
	double shift, units;

	if (power < least)
		power = least;
	/* The last bit of `shift` is the last bit of the fp8 number. So the addition rounds to the
	 * number of units, and the low bits of the result count them. */
	shift = from_bits(power + ((uint64_t)(52 - type.mantissa) << 52));
	units = magnitude + shift;
	return (uint32_t)((power - least) >> (52 - type.mantissa)) +
	       (uint32_t)(bits_of(units) - bits_of(shift)) + (signbit(t) ? 0x80 : 0);
}

static double decode_fp8(struct qnt_fp8 type, uint32_t code)
{
	uint32_t magnitude = code & 0x7f;
	float x;

	if (magnitude >= type.nan)
		return (double)krn_f32_from_bits(KRN_NAN_F32);
	if (magnitude < 1u << type.mantissa)
		x = (float)magnitude * type.unit;
	else
		x = krn_f32_from_bits((magnitude << (23 - type.mantissa)) + (type.bias << 23));
	return (double)(code & 0x80 ? -x : x);
}

static uint32_t encode_one(
	const struct qnt_blocks *b, double t, const struct qnt_noise *noise, size_t i)
{
	switch (b->code) {
	case QNT_I4:
		return (uint32_t)(int32_t)limit(round_code(b->f64, t, noise, i), -7, 7) & 15;
	case QNT_N4:
		return encode_n4(t);
	case QNT_E4M3:
		return encode_fp8(QNT_E4M3_TYPE, t);
	case QNT_E5M2:
		return encode_fp8(QNT_E5M2_TYPE, t);
	default:
		return (uint32_t)(int32_t)limit(round_code(b->f64, t, noise, i), -127, 127);
	}
}

static double decode_one(enum qnt_code code, uint32_t byte)
{
	switch (code) {
	case QNT_I4:
		return (double)((int32_t)(byte ^ 8) - 8);
	case QNT_N4:
		return (double)qnt_levels[byte];
	case QNT_E4M3:
		return decode_fp8(QNT_E4M3_TYPE, byte);
	case QNT_E5M2:
		return decode_fp8(QNT_E5M2_TYPE, byte);
	default:
		return (double)(int8_t)byte;
	}
}

/* Encodes the m elements of a block, from index `from` on. */
static void encode_block(const struct qnt_blocks *b, uint16_t scale, unsigned char *codes,
	const void *acc, size_t from, size_t m, const struct qnt_noise *noise)
{
	size_t bytes = qnt_block_bytes(b->code, m);
	double inverse = qnt_once(b->f64, 1 / (double)scale_value(b, scale));

	memset(codes, 0, bytes);
	for (size_t j = 0; j < m; j++) {
		double x = qnt_once(b->f64, get(b->f64, acc, from + j) * b->down);
		uint32_t code = encode_one(b, qnt_once(b->f64, x * inverse), noise, from + j);

		if (j < bytes)
			codes[j] = (unsigned char)code;
		else
			codes[j - bytes] |= (unsigned char)(code << 4);
	}
}

/* Writes the codes of a block of m zeros, or of one with NaN or infinity. */
static void encode_unscaled(enum qnt_code code, bool zeros, unsigned char *codes, size_t m)
{
	size_t bytes = qnt_block_bytes(code, m);

	memset(codes, zeros ? QNT_ZEROS(code) : 0, bytes);
	if (qnt_two_codes(code) && m % 2 > 0)
		codes[bytes - 1] &= 0x0f;
}

static void scalar_encode_blocks(const struct qnt_blocks *b, unsigned char *scales,
	unsigned char *codes, const void *acc, size_t n, const struct qnt_noise *noise)
{
	for (size_t from = 0; from < n; from += b->block) {
		size_t m = n - from < b->block ? n - from : b->block;
		double largest = block_largest(b->f64, qnt_element(b->f64, acc, from), m);
		uint16_t scale = choose_scale(b, largest);

		memcpy(scales, &scale, sizeof(scale));
		if (largest == 0 || largest == (double)INFINITY)
			encode_unscaled(b->code, largest == 0, codes, m);
		else
			encode_block(b, scale, codes, acc, from, m, noise);
		scales += sizeof(scale);
		codes += qnt_block_bytes(b->code, m);
	}
}

static void scalar_decode_blocks(const struct qnt_blocks *b, void *acc, const unsigned char *scales,
	const unsigned char *codes, size_t n)
{
	for (size_t from = 0; from < n; from += b->block) {
		size_t m = n - from < b->block ? n - from : b->block;
		size_t bytes = qnt_block_bytes(b->code, m);
		uint32_t mask = qnt_two_codes(b->code) ? 0x0f : 0xff;
		uint16_t scale;
		double value;

		memcpy(&scale, scales, sizeof(scale));
		value = (double)scale_value(b, scale);
		for (size_t j = 0; j < m; j++) {
			uint32_t byte = j < bytes ? codes[j] : codes[j - bytes] >> 4;
			double x = decode_one(b->code, byte & mask);

			x = qnt_once(b->f64, x * value);
			put(b->f64, acc, from + j, qnt_once(b->f64, x * b->up));
		}
		scales += sizeof(scale);
		codes += bytes;
	}
}

/* Halves. */

static void scalar_to_half(enum qnt_code code, unsigned char *half, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h = code == QNT_F16 ? krn_f32_to_f16(x[i]) : krn_f32_to_bf16(x[i]);

		memcpy(half + i * sizeof(h), &h, sizeof(h));
	}
}

static void scalar_from_half(enum qnt_code code, float *x, const unsigned char *half, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h;

		memcpy(&h, half + i * sizeof(h), sizeof(h));
		x[i] = code == QNT_F16 ? krn_f16_to_f32(h) : krn_bf16_to_f32(h);
	}
}

const struct qnt_variant qnt_scalar = {scalar_range, scalar_largest, scalar_encode_linear,
	scalar_decode_linear, scalar_encode_blocks, scalar_decode_blocks, scalar_to_half,
	scalar_from_half};
