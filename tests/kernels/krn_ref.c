/* SPDX-License-Identifier: MIT */
#include "tests/kernels/krn_ref.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 int128;

static const struct format {
	int bits;
	bool is_signed;
	int mantissa; /* number of mantissa bits in memory; 0 for an integer */
} formats[KRN_DTYPE_COUNT] = {
	[KRN_U8] = {8, false, 0},
	[KRN_I8] = {8, true, 0},
	[KRN_I16] = {16, true, 0},
	[KRN_U16] = {16, false, 0},
	[KRN_U32] = {32, false, 0},
	[KRN_I32] = {32, true, 0},
	[KRN_U64] = {64, false, 0},
	[KRN_I64] = {64, true, 0},
	[KRN_F16] = {16, true, 10},
	[KRN_BF16] = {16, true, 7},
	[KRN_F32] = {32, true, 23},
	[KRN_F64] = {64, true, 52},
};

/* Returns a mask of the lowest `bits` bits (1 to 64). */
static uint64_t ones(int bits)
{
	return UINT64_MAX >> (64 - bits);
}

bool ref_is_float(enum krn_dtype t)
{
	return formats[t].mantissa > 0;
}

uint64_t ref_get(enum krn_dtype t, const void *array, size_t i)
{
	size_t size = (size_t)formats[t].bits / 8;
	uint64_t bits = 0;

	for (size_t byte = 0; byte < size; byte++)
		bits |= (uint64_t)((const unsigned char *)array)[i * size + byte] << (8 * byte);
	return bits;
}

void ref_set(enum krn_dtype t, void *array, size_t i, uint64_t bits)
{
	size_t size = (size_t)formats[t].bits / 8;

	for (size_t byte = 0; byte < size; byte++)
		((unsigned char *)array)[i * size + byte] = (unsigned char)(bits >> (8 * byte));
}

/* Integers. */

static int128 to_int128(enum krn_dtype t, uint64_t bits)
{
	int128 value = (int128)bits;

	if (formats[t].is_signed && (bits >> (formats[t].bits - 1)))
		value -= (int128)1 << formats[t].bits;
	return value;
}

static uint64_t reduce_integers(
	enum krn_dtype t, enum krn_op op, const uint64_t *elements, unsigned n)
{
	uint64_t mask = ones(formats[t].bits);
	int128 a = to_int128(t, elements[0]);

	for (unsigned i = 1; i < n; i++) {
		int128 b = to_int128(t, elements[i]);

		if (op == KRN_SUM || op == KRN_AVG)
			a += b;
		else if (op == KRN_PROD) /* cut at each step, so the factors have at most 64 bits */
			a = (int128)((uint64_t)a * (uint64_t)b & mask);
		else if (op == KRN_MAX ? b > a : b < a)
			a = b;
	}
	return (uint64_t)a & mask;
}

/* Floats. */

static int exponent_bits(enum krn_dtype t)
{
	return formats[t].bits - 1 - formats[t].mantissa;
}

/* Returns the exponent of the smallest normal number. */
static int min_exponent(enum krn_dtype t)
{
	return 2 - (1 << (exponent_bits(t) - 1));
}

double ref_decode(enum krn_dtype t, uint64_t bits)
{
	int mantissa_bits = formats[t].mantissa;
	uint64_t mantissa = bits & ones(mantissa_bits);
	int exponent = (int)((bits >> mantissa_bits) & ones(exponent_bits(t)));
	double magnitude;

	if (exponent == (1 << exponent_bits(t)) - 1)
		magnitude = mantissa ? (double)NAN : (double)INFINITY;
	else if (exponent == 0)
		magnitude = ldexp((double)mantissa, min_exponent(t) - mantissa_bits);
	else
		magnitude = ldexp((double)(mantissa + (UINT64_C(1) << mantissa_bits)),
			min_exponent(t) + exponent - 1 - mantissa_bits);
	return (bits >> (formats[t].bits - 1)) != 0 ? -magnitude : magnitude;
}

uint64_t ref_encode(enum krn_dtype t, double value)
{
	int mantissa_bits = formats[t].mantissa;
	uint64_t infinity = ones(exponent_bits(t)) << mantissa_bits;
	uint64_t sign = signbit(value) ? UINT64_C(1) << (formats[t].bits - 1) : 0;
	double magnitude = fabs(value);
	int exponent;
	uint64_t units;

	if (isnan(value))
		return infinity | UINT64_C(1) << (mantissa_bits - 1);
	if (isinf(value))
		return sign | infinity;
	frexp(magnitude, &exponent); /* magnitude in [0.5, 1) times 2^exponent */
	exponent--;
	if (magnitude == 0 || exponent < min_exponent(t))
		exponent = min_exponent(t);
	/* The magnitude in units of the last place. If rounding reaches the next binade, the carry
	 * increases the exponent. A carry out of the last binade gives infinity. */
	units = (uint64_t)rint(ldexp(magnitude, mantissa_bits - exponent));
	if (exponent > -min_exponent(t) + 1)
		return sign | infinity;
	return sign | (((uint64_t)(exponent - min_exponent(t)) << mantissa_bits) + units);
}

static bool comes_before(double a, double b)
{
	return a < b || (a == b && signbit(a) && !signbit(b));
}

static double combine(double a, double b, enum krn_op op)
{
	if (op == KRN_SUM || op == KRN_AVG)
		return a + b;
	if (op == KRN_PROD)
		return a * b;
	if (isnan(a) || isnan(b))
		return (double)NAN;
	return comes_before(a, b) == (op == KRN_MAX) ? b : a;
}

static uint64_t reduce_floats(
	enum krn_dtype t, enum krn_op op, const uint64_t *elements, unsigned n)
{
	/* A sum, product or quotient of fp32 may be rounded to fp64 first and then to fp32. The
	 * result is the same as with one rounding, because 53 >= 2 * 24 + 2. */
	enum krn_dtype step = t == KRN_F64 ? KRN_F64 : KRN_F32;
	double a = ref_decode(t, elements[0]);

	for (unsigned i = 1; i < n; i++)
		a = ref_decode(step, ref_encode(step, combine(a, ref_decode(t, elements[i]), op)));
	return ref_encode(t, a);
}

uint64_t ref_reduce(enum krn_dtype t, enum krn_op op, const uint64_t *elements, unsigned n)
{
	if (ref_is_float(t))
		return reduce_floats(t, op, elements, n);
	return reduce_integers(t, op, elements, n);
}

uint64_t ref_divide(enum krn_dtype t, uint64_t element, uint32_t divisor)
{
	enum krn_dtype step = t == KRN_F64 ? KRN_F64 : KRN_F32;
	double d;

	if (!ref_is_float(t))
		return (uint64_t)(to_int128(t, element) / divisor) & ones(formats[t].bits);
	d = ref_decode(step, ref_encode(step, divisor));
	return ref_encode(t, ref_decode(step, ref_encode(step, ref_decode(t, element) / d)));
}

unsigned ref_specials(enum krn_dtype t, uint64_t *elements)
{
	int m = formats[t].mantissa;
	uint64_t top = UINT64_C(1) << (formats[t].bits - 1);
	unsigned n = 0;

	if (!ref_is_float(t)) {
		const uint64_t integers[] = {0, 1, 2, ones(formats[t].bits), top, top - 1, top + 1,
			UINT64_C(0x5555555555555555) & ones(formats[t].bits)};

		memcpy(elements, integers, sizeof(integers));
		return sizeof(integers) / sizeof(integers[0]);
	}
	for (int negative = 0; negative < 2; negative++) {
		uint64_t infinity = ones(exponent_bits(t)) << m;
		const uint64_t floats[] = {
			0,                /* zero */
			1,                /* smallest subnormal */
			ones(m),          /* largest subnormal */
			UINT64_C(1) << m, /* smallest normal */
			(UINT64_C(1) << m) + 1, ref_encode(t, 1), ref_encode(t, 1.5),
			infinity - 1,                      /* largest finite */
			infinity, infinity | 1,            /* signalling NaN */
			infinity | UINT64_C(1) << (m - 1), /* quiet NaN */
			infinity | ones(m),                /* with payload */
		};

		for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
			elements[n++] = floats[i] | (negative ? top : 0);
	}
	return n;
}

uint64_t ref_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
