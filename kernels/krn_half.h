/* SPDX-License-Identifier: MIT */
#ifndef KRN_HALF_H
#define KRN_HALF_H

#include <stdint.h>
#include <string.h>

/*
 * Conversions of the two 16-bit float formats, one element at a time, for the scalar reference. The
 * conversion to fp32 is exact. The conversion to 16 bits rounds to nearest even. Every NaN becomes
 * the positive quiet NaN without payload.
 */

#define KRN_NAN_F16  UINT16_C(0x7e00)
#define KRN_NAN_BF16 UINT16_C(0x7fc0)
#define KRN_NAN_F32  UINT32_C(0x7fc00000)
#define KRN_NAN_F64  UINT64_C(0x7ff8000000000000)

#define KRN_INF_F16  0x7c00
#define KRN_INF_BF16 0x7f80
#define KRN_INF_F32  0x7f800000
#define KRN_INF_F64  0x7ff0000000000000

static inline float krn_f32_from_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t krn_f32_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline float krn_f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t magnitude = h & 0x7fff;

	if (magnitude > KRN_INF_F16)
		return krn_f32_from_bits(KRN_NAN_F32);
	if (magnitude == KRN_INF_F16)
		return krn_f32_from_bits(sign | KRN_INF_F32);
	if (magnitude < 0x0400) /* zero or subnormal: a multiple of 2^-24 */
		return krn_f32_from_bits(sign | krn_f32_bits((float)magnitude * 0x1p-24f));
	/* The exponent is the same, but the bias differs by 127 - 15. */
	return krn_f32_from_bits(sign | ((magnitude << 13) + (UINT32_C(112) << 23)));
}

static inline uint16_t krn_f32_to_f16(float f)
{
	uint32_t bits = krn_f32_bits(f);
	uint32_t sign = (bits >> 16) & 0x8000;
	uint32_t magnitude = bits & 0x7fffffff;

	if (magnitude > KRN_INF_F32)
		return KRN_NAN_F16;
	if (magnitude >= krn_f32_bits(65520.0f)) /* halfway between the largest number and 2^16 */
		return (uint16_t)(sign | KRN_INF_F16);
	if (magnitude < krn_f32_bits(0x1p-14f)) {
		/* The last bit of fp32 numbers in [0.5, 1) is 2^-24, which is also the unit of
		 * f16's subnormals. So the addition rounds to this unit, and the low bits of the
		 * result count units. */
		magnitude = krn_f32_bits(krn_f32_from_bits(magnitude) + 0.5f) - krn_f32_bits(0.5f);
		return (uint16_t)(sign | magnitude);
	}
	magnitude += 0x0fff + ((magnitude >> 13) & 1);
	return (uint16_t)(sign | ((magnitude - (UINT32_C(112) << 23)) >> 13));
}

static inline float krn_bf16_to_f32(uint16_t h)
{
	if ((h & 0x7fff) > KRN_INF_BF16)
		return krn_f32_from_bits(KRN_NAN_F32);
	return krn_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t krn_f32_to_bf16(float f)
{
	uint32_t bits = krn_f32_bits(f);

	if ((bits & 0x7fffffff) > KRN_INF_F32)
		return KRN_NAN_BF16;
	/* A carry out of the largest number correctly gives infinity. */
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#endif
