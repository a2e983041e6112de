/* SPDX-License-Identifier: MIT */
/*
 * The conversions that a GPU has, for emulated kernels. They share no code with kernels/krn_half.h:
 * floats are multiples of a unit, and the C library rounds to a whole number of them. A NaN gets
 * bits that an NVIDIA GPU gives, not those that are hashed.
 */
#include <math.h>
#include <stdint.h>

uint16_t gpu_to_f16(float x);
uint16_t gpu_to_bf16(float x);
float gpu_from_f16(uint16_t bits);
float gpu_from_bf16(uint16_t bits);

/* A format: bits of the significand that are stored, and the smallest exponent of a normal number.
 */
struct format {
	int stored, least;
	uint16_t infinity, nan;
};

static const struct format f16 = {10, -14, 0x7c00, 0x7fff};
static const struct format bf16 = {7, -126, 0x7f80, 0x7fff};

static uint16_t encode(const struct format *f, float x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	int exponent = 0;
	double units;

	if (isnan(x))
		return f->nan;
	if (isinf(x))
		return (uint16_t)(sign | f->infinity);
	(void)frexp(x, &exponent);
	exponent--; /* 2^exponent <= |x| */
	if (x == 0 || exponent < f->least)
		exponent = f->least;
	units = nearbyint(ldexp(fabs((double)x), f->stored - exponent));
	/* The bits of numbers count units, over all exponents. A carry is a step to the next
	 * exponent. */
	units += ldexp(exponent - f->least, f->stored);
	return (uint16_t)(sign | (units < f->infinity ? (uint16_t)units : f->infinity));
}

static float decode(const struct format *f, uint16_t bits)
{
	uint16_t magnitude = bits & 0x7fff;
	double units = magnitude & ((1 << f->stored) - 1), x;
	int exponent = magnitude >> f->stored;

	if (magnitude > f->infinity)
		return NAN;
	if (exponent > 0)
		units += 1 << f->stored;
	else
		exponent = 1;
	x = magnitude == f->infinity ? INFINITY : ldexp(units, exponent - 1 + f->least - f->stored);
	return (float)(bits & 0x8000 ? -x : x);
}

uint16_t gpu_to_f16(float x)
{
	return encode(&f16, x);
}

uint16_t gpu_to_bf16(float x)
{
	return encode(&bf16, x);
}

float gpu_from_f16(uint16_t bits)
{
	return decode(&f16, bits);
}

float gpu_from_bf16(uint16_t bits)
{
	return decode(&bf16, bits);
}
