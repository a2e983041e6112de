/* SPDX-License-Identifier: MIT */
#ifndef QNT_IMPL_H
#define QNT_IMPL_H

#include <float.h>
#include <string.h>

#include "kernels/qnt.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is read as it lies in memory");
/* The value is 16 with a native _Float16, which is not used here. */
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16,
	"float expressions must be evaluated in float");

/*
 * The parameters of a segment. They are numbers of the accumulator type, kept as fp64. Their names,
 * and those of the formulas, are those of qnt.h.
 */

/* QNT_MIN_MAX and QNT_ZERO_POINT: with p = q - zero,
 *      p = round((x * s - base) * inverse), at least `least` and at most `most`
 *      x' = (p * step + base) * unscale, but `top` if q = top_code
 */
struct qnt_linear {
	bool f64;
	unsigned bits; /* of a code: 8 or 16 */
	uint32_t flip; /* code XOR q */
	int32_t zero;
	double s, base, inverse;
	int32_t least, most;
	double step, unscale;
	int32_t top_code; /* -1: none */
	double top;
};

/* QNT_BLOCK */
struct qnt_blocks {
	bool f64;
	enum qnt_code code;
	uint32_t block;
	bool bf16_scale;
	double up, down; /* 2^e, 2^-e */
	double most;     /* M */
	double factor;   /* clip / M */
};

/* Does a byte hold two codes of QNT_BLOCK? */
static inline bool qnt_two_codes(enum qnt_code code)
{
	return code == QNT_I4 || code == QNT_N4;
}

/* Returns the bytes of the codes of a block of m elements. */
static inline size_t qnt_block_bytes(enum qnt_code code, size_t m)
{
	return qnt_two_codes(code) ? (m + 1) / 2 : m;
}

/*
 * One variant of the kernels. `f64` tells the type of the numbers `acc`; all variants except the
 * scalar one are called for fp32 only. `noise` is NULL if the format is not stochastic. The upper
 * half of the index is the same for all of the elements. n is at least 1.
 */
struct qnt_variant {
	/* Finds the least and the greatest number (zero may have any sign). Returns false if there
	 * is a NaN or an infinity. */
	bool (*range)(bool f64, const void *acc, size_t n, double *ret_lo, double *ret_hi);
	/* Returns the largest magnitude of all blocks without NaN and infinity. */
	double (*largest)(bool f64, const void *acc, size_t n, uint32_t block);
	void (*encode_linear)(const struct qnt_linear *l, unsigned char *codes, const void *acc,
		size_t n, const struct qnt_noise *noise);
	void (*decode_linear)(
		const struct qnt_linear *l, void *acc, const unsigned char *codes, size_t n);
	/* `scales` and `codes` are those of the first of these elements. */
	void (*encode_blocks)(const struct qnt_blocks *b, unsigned char *scales,
		unsigned char *codes, const void *acc, size_t n, const struct qnt_noise *noise);
	void (*decode_blocks)(const struct qnt_blocks *b, void *acc, const unsigned char *scales,
		const unsigned char *codes, size_t n);
	/* Convert fp32 to QNT_F16 or QNT_BF16, and back. */
	void (*to_half)(enum qnt_code code, unsigned char *half, const float *x, size_t n);
	void (*from_half)(enum qnt_code code, float *x, const unsigned char *half, size_t n);
};

extern const struct qnt_variant qnt_scalar;
#if defined(__x86_64__)
extern const struct qnt_variant qnt_avx2;
extern const struct qnt_variant qnt_avx512;
#elif defined(__aarch64__)
extern const struct qnt_variant qnt_neon;
#endif

/* qnt_normal_levels */
extern const float qnt_levels[16];
/* Clipping factors; the last index is log2(block / QNT_BLOCK_MIN). 0 means 1. */
extern const float qnt_clips[QNT_HINT_COUNT][QNT_CODE_COUNT][6];

/* The scale of a block that is not all zeros is at least this. */
#define QNT_LEAST_F16_SCALE  0x1p-24f
#define QNT_LEAST_BF16_SCALE 0x1p-100f

/* The code bytes of a block of zeros. */
#define QNT_ZEROS(code) ((code) == QNT_N4 ? 0x77 : 0)

/*
 * An fp8 type. A magnitude of n units (n < 2^mantissa) has the code n. The bits of larger numbers
 * are the upper bits of fp32 with an exponent that is larger by `bias`. Codes from `nan` on are
 * NaN.
 */
struct qnt_fp8 {
	int mantissa; /* bits */
	uint32_t bias;
	float unit, largest;
	uint32_t nan;
};

#define QNT_E4M3_TYPE ((struct qnt_fp8){3, 120, 0x1p-9f, 448, 0x7f})
#define QNT_E5M2_TYPE ((struct qnt_fp8){2, 112, 0x1p-16f, 57344, 0x7c})

/* Noise: the parts of qnt_noise_at. The key k is the same for 2^32 indexes. */

static inline uint64_t qnt_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t qnt_noise_key(uint64_t key, uint64_t index)
{
	return qnt_mix(qnt_mix(key + UINT64_C(0x9e3779b97f4a7c15)) + (index >> 32));
}

static inline float qnt_noise_number(uint64_t k, uint64_t index)
{
	uint32_t w = (uint32_t)(index ^ k);

	w = (w ^ w >> 16) * UINT32_C(0x7feb352d);
	w = ((w ^ w >> 15) + (uint32_t)(k >> 32)) * UINT32_C(0x846ca68b);
	return (float)((int32_t)w >> 7 | 1) * 0x1p-25f;
}

/* Returns the address of element i of an array of the accumulator type. */
static inline const void *qnt_element(bool f64, const void *acc, size_t i)
{
	return (const unsigned char *)acc + i * (f64 ? sizeof(double) : sizeof(float));
}

/* Rounds the result of one operation in fp64 to the accumulator type. Both roundings together are
 * the one of the operation in fp32, because 53 >= 2 * 24 + 2. */
static inline double qnt_once(bool f64, double x)
{
	return f64 ? x : (double)(float)x;
}

/* Returns the integer nearest to t, ties to even. |t| < 2^51 */
static inline double qnt_nearest(double t)
{
	return (t + 0x1.8p52) - 0x1.8p52;
}

#endif
