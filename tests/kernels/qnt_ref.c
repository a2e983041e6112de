/* SPDX-License-Identifier: MIT */
#include "tests/kernels/qnt_ref.h"

#include <math.h>
#include <string.h>

#include "tests/kernels/krn_ref.h"

/* A format, and what follows from its accumulator type. */
struct ref {
	const struct qnt_format *f;
	enum krn_dtype type;
	size_t size; /* of a number */
	double tiny, big;
	int emin, emax;
};

static struct ref ref_init(const struct qnt_format *f)
{
	if (f->dtype == KRN_F64)
		return (struct ref){f, KRN_F64, 8, ldexp(1, -500), ldexp(1, 512), -1022, 1023};
	return (struct ref){f, KRN_F32, 4, ldexp(1, -60), ldexp(1, 64), -126, 127};
}

/* The operations of the accumulator type. */

static double add(const struct ref *r, double a, double b)
{
	return r->type == KRN_F64 ? a + b : (double)((float)a + (float)b);
}

static double multiply(const struct ref *r, double a, double b)
{
	return r->type == KRN_F64 ? a * b : (double)((float)a * (float)b);
}

static double divide(const struct ref *r, double a, double b)
{
	return r->type == KRN_F64 ? a / b : (double)((float)a / (float)b);
}

static double get_number(const struct ref *r, const void *array, size_t i)
{
	return ref_decode(r->type, ref_get(r->type, array, i));
}

static void set_number(const struct ref *r, void *array, size_t i, double x)
{
	ref_set(r->type, array, i, ref_encode(r->type, x));
}

/* Noise and rounding. */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

double ref_qnt_noise(uint64_t key, uint64_t index)
{
	uint64_t k = mix(mix(key + UINT64_C(0x9e3779b97f4a7c15)) + (index >> 32));
	uint32_t w = (uint32_t)((index ^ k) % (UINT64_C(1) << 32));

	w ^= w >> 16;
	w *= UINT32_C(0x7feb352d);
	w ^= w >> 15;
	w += (uint32_t)(k >> 32);
	w *= UINT32_C(0x846ca68b);
	return (2 * floor((int32_t)w / 256.0) + 1) * ldexp(1, -25);
}

static double round_to(const struct ref *r, double t, const struct qnt_noise *noise, size_t i)
{
	if (!r->f->stochastic)
		return rint(t);
	return rint(add(r, t, ref_qnt_noise(noise->key, noise->first + i)));
}

static double between(double x, double least, double most)
{
	return fmin(fmax(x, least), most);
}

/* Returns whether every number of an array is finite. If so, finds the least and the greatest
 * number. */
static bool find_range(
	const struct ref *r, const void *acc, size_t n, double *ret_lo, double *ret_hi)
{
	*ret_lo = (double)INFINITY;
	*ret_hi = (double)-INFINITY;
	for (size_t i = 0; i < n; i++) {
		double x = get_number(r, acc, i);

		if (!isfinite(x))
			return false;
		*ret_lo = fmin(*ret_lo, x);
		*ret_hi = fmax(*ret_hi, x);
	}
	return true;
}

/* QNT_MIN_MAX and QNT_ZERO_POINT. */

static unsigned code_size(const struct qnt_format *f)
{
	return f->code == QNT_U8 || f->code == QNT_I8 ? 1 : 2;
}

static double last_code(const struct qnt_format *f)
{
	return code_size(f) == 1 ? 255 : 65535;
}

/* Returns q minus its code: the shift of a signed code, or 0 for an unsigned code. */
static double code_shift(const struct qnt_format *f)
{
	if (f->code == QNT_I8)
		return 128;
	return f->code == QNT_I16 ? 32768 : 0;
}

static void set_code(const struct qnt_format *f, unsigned char *codes, size_t i, double q)
{
	int32_t code = (int32_t)(q - code_shift(f));

	for (size_t byte = 0; byte < code_size(f); byte++)
		codes[i * code_size(f) + byte] = (unsigned char)((uint32_t)code >> (8 * byte));
}

static double get_code(const struct qnt_format *f, const unsigned char *codes, size_t i)
{
	switch (f->code) {
	case QNT_U8:
		return codes[i];
	case QNT_I8:
		return (codes[i] < 128 ? codes[i] : codes[i] - 256) + 128;
	case QNT_U16:
		return codes[2 * i] + 256 * codes[2 * i + 1];
	default:
		return (double)(int16_t)(codes[2 * i] + 256 * codes[2 * i + 1]) + 32768;
	}
}

static double choose_s(const struct ref *r, double lo, double hi)
{
	double distance = fabs(add(r, hi, -lo));

	if (isinf(distance))
		return 0.5;
	return distance > 0 && distance < r->tiny ? r->big : 1;
}

static void encode_min_max(const struct ref *r, unsigned char *wire, const void *acc, size_t n,
	const struct qnt_noise *noise)
{
	double most = last_code(r->f);
	double lo, hi, s, base, d, inverse;

	if (!find_range(r, acc, n, &lo, &hi)) {
		set_number(r, wire, 0, (double)NAN);
		set_number(r, wire, 1, (double)NAN);
		return;
	}
	set_number(r, wire, 0, lo == 0 ? 0 : lo);
	set_number(r, wire, 1, hi == 0 ? 0 : hi);
	s = choose_s(r, lo, hi);
	base = multiply(r, lo, s);
	d = add(r, multiply(r, hi, s), -base);
	inverse = d == 0 ? 0 : divide(r, most, d);
	for (size_t i = 0; i < n; i++) {
		double distance = add(r, multiply(r, get_number(r, acc, i), s), -base);
		double t = multiply(r, distance, inverse);

		set_code(r->f, wire + 2 * r->size, i, between(round_to(r, t, noise, i), 0, most));
	}
}

static void decode_min_max(const struct ref *r, void *acc, const unsigned char *wire, size_t n)
{
	double lo = get_number(r, wire, 0), hi = get_number(r, wire, 1);
	double s = choose_s(r, lo, hi);
	double base = multiply(r, lo, s);
	double step = divide(r, add(r, multiply(r, hi, s), -base), last_code(r->f));

	for (size_t i = 0; i < n; i++) {
		double q = get_code(r->f, wire + 2 * r->size, i);
		double x = multiply(r, add(r, multiply(r, q, step), base), 1 / s);

		if (q == last_code(r->f))
			x = hi;
		set_number(r, acc, i, isfinite(lo) && isfinite(hi) ? x : (double)NAN);
	}
}

static void encode_zero_point(const struct ref *r, unsigned char *wire, const void *acc, size_t n,
	const struct qnt_noise *noise)
{
	double most = last_code(r->f);
	double lo, hi, k, scale, inverse, z, p_least, p_most;

	if (!find_range(r, acc, n, &lo, &hi)) {
		set_number(r, wire, 0, (double)NAN);
		return;
	}
	lo = fmin(lo, 0);
	hi = fmax(hi, 0);
	k = lo < 0 && hi > 0 ? most - 1 : most;
	scale = add(r, divide(r, hi, k), -divide(r, lo, k));
	scale = fmax(scale, ldexp(1, r->emin));
	inverse = divide(r, 1, scale);
	z = fmin(ceil(multiply(r, -lo, inverse)), most);
	set_number(r, wire, 0, scale);
	ref_set(KRN_I32, wire + r->size, 0, (uint64_t)z);
	p_least = -z;
	while (isinf(multiply(r, p_least, scale)))
		p_least++;
	p_most = most - z;
	while (isinf(multiply(r, p_most, scale)))
		p_most--;
	for (size_t i = 0; i < n; i++) {
		double t = multiply(r, get_number(r, acc, i), inverse);
		double p = between(round_to(r, t, noise, i), p_least, p_most);

		set_code(r->f, wire + r->size + 4, i, p + z);
	}
}

static void decode_zero_point(const struct ref *r, void *acc, const unsigned char *wire, size_t n)
{
	double scale = get_number(r, wire, 0);
	double z = (double)(int32_t)ref_get(KRN_I32, wire + r->size, 0);
	bool valid = isfinite(scale) && z >= 0 && z <= last_code(r->f);

	for (size_t i = 0; i < n; i++) {
		double q = get_code(r->f, wire + r->size + 4, i);
		double x = multiply(r, q - z, scale) + 0;

		set_number(r, acc, i, valid ? x : (double)NAN);
	}
}

/* QNT_BLOCK. */

static double largest_value(enum qnt_code code)
{
	switch (code) {
	case QNT_I8:
		return 127;
	case QNT_I4:
		return 7;
	case QNT_N4:
		return 1;
	case QNT_E4M3:
		return 448;
	default:
		return 57344;
	}
}

/* Returns c. */
static int exponent_of(enum qnt_code code)
{
	switch (code) {
	case QNT_I8:
		return 20;
	case QNT_I4:
		return 16;
	case QNT_N4:
		return 14;
	case QNT_E4M3:
		return 22;
	default:
		return 29;
	}
}

/* Returns the value of an fp8 code without sign. */
static double fp8_magnitude(enum qnt_code code, int bits)
{
	int mantissa_bits = code == QNT_E4M3 ? 3 : 2;
	int bias = code == QNT_E4M3 ? 7 : 15;
	int exponent = bits >> mantissa_bits;
	int mantissa = bits - (exponent << mantissa_bits);

	if (bits >= (code == QNT_E4M3 ? 0x7f : 0x7c))
		return (double)NAN;
	if (exponent == 0)
		return ldexp(mantissa, 1 - bias - mantissa_bits);
	return ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static double code_value(enum qnt_code code, unsigned char bits)
{
	switch (code) {
	case QNT_I8:
		return bits < 128 ? bits : bits - 256;
	case QNT_I4:
		return bits < 8 ? bits : bits - 16;
	case QNT_N4:
		return (double)qnt_normal_levels()[bits];
	default:
		return bits < 128 ? fp8_magnitude(code, bits) : -fp8_magnitude(code, bits - 128);
	}
}

static int nearest_level(double t)
{
	int best = 0;

	for (int i = 1; i < 16; i++) {
		if (fabs(code_value(QNT_N4, (unsigned char)i) - t) <
			fabs(code_value(QNT_N4, (unsigned char)best) - t))
			best = i;
	}
	return best;
}

static int nearest_fp8(enum qnt_code code, double t)
{
	int last = code == QNT_E4M3 ? 0x7e : 0x7b;
	int low = 0, high = last;
	double below, above;

	/* Search the last magnitude that is not above t, and its successor. */
	while (low < high) {
		int middle = (low + high + 1) / 2;

		if (fp8_magnitude(code, middle) <= fabs(t))
			low = middle;
		else
			high = middle - 1;
	}
	high = low < last ? low + 1 : last;
	below = fabs(t) - fp8_magnitude(code, low);
	above = fp8_magnitude(code, high) - fabs(t);
	if (above < below || (above == below && high % 2 == 0))
		low = high;
	return signbit(t) ? low + 128 : low;
}

static unsigned choose_code(const struct ref *r, double t, const struct qnt_noise *noise, size_t i)
{
	double m = largest_value(r->f->code);

	switch (r->f->code) {
	case QNT_I8:
		return (unsigned)(int)between(round_to(r, t, noise, i), -m, m) & 255;
	case QNT_I4:
		return (unsigned)(int)between(round_to(r, t, noise, i), -m, m) & 15;
	case QNT_N4:
		return (unsigned)nearest_level(t);
	default:
		return (unsigned)nearest_fp8(r->f->code, t);
	}
}

static enum krn_dtype scale_type(const struct qnt_format *f)
{
	return f->bf16_scale ? KRN_BF16 : KRN_F16;
}

static double scale_value(const struct qnt_format *f, uint64_t scale)
{
	double value = ref_decode(scale_type(f), scale);

	return isfinite(value) ? value : (double)NAN;
}

/* Returns the least scale that is not below `wanted`, or the next smaller scale if numbers would
 * become infinite with it. */
static uint64_t scale_from(const struct ref *r, double wanted, double up)
{
	const struct qnt_format *f = r->f;
	uint64_t scale = ref_encode(scale_type(f), wanted);

	while (scale_value(f, scale) < wanted)
		scale++;
	while (scale > 0 && scale_value(f, scale - 1) >= wanted)
		scale--;
	if (isinf(multiply(r, multiply(r, largest_value(f->code), scale_value(f, scale)), up)))
		scale--;
	return scale;
}

static bool two_codes(const struct qnt_format *f)
{
	return f->code == QNT_I4 || f->code == QNT_N4;
}

/* Returns the index of the byte that has element j of a block of m elements. *ret_shift: the
 * position of the element's bits in this byte. */
static size_t place(const struct qnt_format *f, size_t j, size_t m, unsigned *ret_shift)
{
	size_t half = (m + 1) / 2;

	*ret_shift = two_codes(f) && j >= half ? 4 : 0;
	return two_codes(f) && j >= half ? j - half : j;
}

size_t ref_qnt_group(const struct qnt_format *f, size_t n)
{
	return f->scheme == QNT_BLOCK ? f->block : n;
}

/* Encodes the m elements of a block, from index `from` on. */
static void encode_block(const struct ref *r, int e, unsigned char *ret_scale, unsigned char *codes,
	const void *acc, size_t from, size_t m, const struct qnt_noise *noise)
{
	double clip = (double)qnt_clip(r->f->code, r->f->block, r->f->hint);
	double factor = divide(r, clip, largest_value(r->f->code));
	double least = ldexp(1, r->f->bf16_scale ? -100 : -24);
	double lo, hi, a, scale;

	if (!find_range(r, (const unsigned char *)acc + from * r->size, m, &lo, &hi)) {
		ref_set(scale_type(r->f), ret_scale, 0, ref_encode(scale_type(r->f), (double)NAN));
		return;
	}
	a = fmax(fabs(lo), fabs(hi));
	scale = multiply(r, multiply(r, a, ldexp(1, -e)), factor);
	if (a > 0)
		ref_set(scale_type(r->f), ret_scale, 0,
			scale_from(r, fmax(scale, least), ldexp(1, e)));
	scale = scale_value(r->f, ref_get(scale_type(r->f), ret_scale, 0));
	for (size_t j = 0; j < m; j++) {
		double x = multiply(r, get_number(r, acc, from + j), ldexp(1, -e));
		double t = a > 0 ? multiply(r, x, divide(r, 1, scale)) : 0;
		unsigned code = choose_code(r, t, noise, from + j);
		unsigned shift;
		size_t byte = place(r->f, j, m, &shift);

		codes[byte] |= (unsigned char)(code << shift);
	}
}

static size_t blocks_of(const struct qnt_format *f, size_t n)
{
	return (n + f->block - 1) / f->block;
}

static void encode_blocks(const struct ref *r, unsigned char *wire, const void *acc, size_t n,
	const struct qnt_noise *noise)
{
	unsigned char *scales = wire + 4, *codes = scales + 2 * blocks_of(r->f, n);
	size_t block = r->f->block;
	double largest = 0, lo, hi;
	int e;

	for (size_t from = 0; from < n; from += block) {
		if (find_range(r, (const unsigned char *)acc + from * r->size,
			    n - from < block ? n - from : block, &lo, &hi))
			largest = fmax(largest, fmax(fabs(lo), fabs(hi)));
	}
	frexp(largest, &e); /* largest = 0.5 .. 1 times 2^e */
	e = e - 1 - exponent_of(r->f->code);
	e = largest == 0 || e < r->emin ? r->emin : e;
	ref_set(KRN_I32, wire, 0, (uint64_t)e);
	for (size_t from = 0; from < n; from += block) {
		size_t m = n - from < block ? n - from : block;

		encode_block(r, e, scales, codes, acc, from, m, noise);
		scales += 2;
		codes += two_codes(r->f) ? (m + 1) / 2 : m;
	}
}

static void decode_blocks(const struct ref *r, void *acc, const unsigned char *wire, size_t n)
{
	const unsigned char *scales = wire + 4, *codes = scales + 2 * blocks_of(r->f, n);
	int32_t e = (int32_t)ref_get(KRN_I32, wire, 0);
	double up = e >= r->emin && e <= r->emax ? ldexp(1, e) : (double)NAN;

	for (size_t i = 0; i < n; i++) {
		size_t first = i - i % r->f->block;
		size_t m = n - first < r->f->block ? n - first : r->f->block;
		double scale =
			scale_value(r->f, ref_get(scale_type(r->f), scales, i / r->f->block));
		unsigned shift;
		size_t byte = place(r->f, i % r->f->block, m, &shift);
		unsigned code = codes[(two_codes(r->f) ? first / 2 : first) + byte] >> shift;
		double value =
			code_value(r->f->code, (unsigned char)(two_codes(r->f) ? code & 15 : code));

		set_number(r, acc, i, multiply(r, multiply(r, value, scale), up));
	}
}

/* QNT_CAST. */

static enum krn_dtype cast_type(const struct qnt_format *f)
{
	return f->code == QNT_F16 ? KRN_F16 : KRN_BF16;
}

void ref_qnt_encode(const struct qnt_format *f, unsigned char *wire, const void *acc, size_t n,
	const struct qnt_noise *noise)
{
	struct ref r = ref_init(f);

	memset(wire, 0, qnt_wire_size(f, n));
	switch (f->scheme) {
	case QNT_MIN_MAX:
		encode_min_max(&r, wire, acc, n, noise);
		break;
	case QNT_ZERO_POINT:
		encode_zero_point(&r, wire, acc, n, noise);
		break;
	case QNT_BLOCK:
		encode_blocks(&r, wire, acc, n, noise);
		break;
	default:
		for (size_t i = 0; i < n; i++) {
			double x = (double)(float)get_number(&r, acc, i);

			ref_set(cast_type(f), wire, i, ref_encode(cast_type(f), x));
		}
		break;
	}
}

void ref_qnt_decode(const struct qnt_format *f, void *acc, const unsigned char *wire, size_t n)
{
	struct ref r = ref_init(f);

	switch (f->scheme) {
	case QNT_MIN_MAX:
		decode_min_max(&r, acc, wire, n);
		break;
	case QNT_ZERO_POINT:
		decode_zero_point(&r, acc, wire, n);
		break;
	case QNT_BLOCK:
		decode_blocks(&r, acc, wire, n);
		break;
	default:
		for (size_t i = 0; i < n; i++)
			set_number(&r, acc, i,
				ref_decode(cast_type(f), ref_get(cast_type(f), wire, i)));
		break;
	}
}
