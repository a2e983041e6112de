/* SPDX-License-Identifier: MIT */
#include "kernels/qnt.h"

#include <math.h>

#include "kernels/krn_half.h"
#include "kernels/qnt_impl.h"

static const struct qnt_variant *const variants[KRN_ISA_COUNT] = {
	[KRN_ISA_SCALAR] = &qnt_scalar,
#if defined(__x86_64__)
	[KRN_ISA_AVX2] = &qnt_avx2,
	[KRN_ISA_AVX512] = &qnt_avx512,
#elif defined(__aarch64__)
	[KRN_ISA_NEON] = &qnt_neon,
#endif
};

/* The number of elements that qnt_decode_reduce decodes at a time. They are whole blocks, and they
 * fit into the cache. */
#define PART ((size_t)QNT_BLOCK_MAX)

/* Limits of the accumulator type, see qnt.h. */
static const struct limits {
	double tiny, big;
	int emin, emax;
} limits_f32 = {0x1p-60, 0x1p64, -126, 127}, limits_f64 = {0x1p-500, 0x1p512, -1022, 1023};

/* The numbers M and c of the codes of QNT_BLOCK. M is 0 for the other codes. */
static const struct {
	float m;
	int c;
} block_codes[QNT_CODE_COUNT] = {
	[QNT_I8] = {127, 20},
	[QNT_I4] = {7, 16},
	[QNT_N4] = {1, 14},
	[QNT_E4M3] = {448, 22},
	[QNT_E5M2] = {57344, 29},
};

/* The bits of the codes of QNT_MIN_MAX and QNT_ZERO_POINT. 0 for the other codes. */
static const unsigned char code_bits[QNT_CODE_COUNT] = {
	[QNT_U8] = 8,
	[QNT_I8] = 8,
	[QNT_U16] = 16,
	[QNT_I16] = 16,
};

/* Formats. */

static bool block_format_valid(const struct qnt_format *f)
{
	bool integer = f->code == QNT_I8 || f->code == QNT_I4;

	return block_codes[f->code].m > 0 && f->block >= QNT_BLOCK_MIN &&
	       f->block <= QNT_BLOCK_MAX && (f->block & (f->block - 1)) == 0 &&
	       (unsigned)f->hint < QNT_HINT_COUNT && (integer || !f->stochastic);
}

bool qnt_format_valid(const struct qnt_format *f)
{
	bool typed = f->dtype == KRN_F16 || f->dtype == KRN_BF16 || f->dtype == KRN_F32 ||
		     f->dtype == KRN_F64;
	bool no_block = f->block == 0 && !f->bf16_scale && f->hint == QNT_HINT_NONE;

	if (!typed || (unsigned)f->code >= QNT_CODE_COUNT)
		return false;
	switch (f->scheme) {
	case QNT_CAST:
		return no_block && !f->stochastic && (f->code == QNT_F16 || f->code == QNT_BF16);
	case QNT_MIN_MAX:
	case QNT_ZERO_POINT:
		return no_block && code_bits[f->code] > 0;
	case QNT_BLOCK:
		return block_format_valid(f);
	default:
		return false;
	}
}

static bool is_f64(const struct qnt_format *f)
{
	return f->dtype == KRN_F64;
}

enum krn_dtype qnt_acc_dtype(const struct qnt_format *f)
{
	return is_f64(f) ? KRN_F64 : KRN_F32;
}

static size_t acc_size(const struct qnt_format *f)
{
	return is_f64(f) ? sizeof(double) : sizeof(float);
}

static size_t block_count(const struct qnt_format *f, size_t n)
{
	return n / f->block + (n % f->block > 0);
}

size_t qnt_wire_size(const struct qnt_format *f, size_t n)
{
	if (n == 0)
		return 0;
	switch (f->scheme) {
	case QNT_MIN_MAX:
		return 2 * acc_size(f) + n * code_bits[f->code] / 8;
	case QNT_ZERO_POINT:
		return acc_size(f) + sizeof(int32_t) + n * code_bits[f->code] / 8;
	case QNT_BLOCK:
		return sizeof(int32_t) + block_count(f, n) * sizeof(uint16_t) +
		       qnt_block_bytes(f->code, n);
	default:
		return n * sizeof(uint16_t);
	}
}

const float *qnt_normal_levels(void)
{
	return qnt_levels;
}

float qnt_clip(enum qnt_code code, uint32_t block, enum qnt_hint hint)
{
	unsigned log2_block = 0;
	float clip;

	while (block >> log2_block > QNT_BLOCK_MIN)
		log2_block++;
	clip = qnt_clips[hint][code][log2_block];
	return clip > 0 ? clip : 1;
}

float qnt_noise_at(uint64_t key, uint64_t index)
{
	return qnt_noise_number(qnt_noise_key(key, index), index);
}

/* Parameters of segments. */

static const struct limits *limits_of(bool f64)
{
	return f64 ? &limits_f64 : &limits_f32;
}

/* Returns the NaN of krn.h. */
static double quiet_nan(void)
{
	uint64_t bits = KRN_NAN_F64;
	double nan;

	memcpy(&nan, &bits, sizeof(nan));
	return nan;
}

/* Returns 2^e with an exponent of a normal fp64. */
static double power_of_two(int e)
{
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	double power;

	memcpy(&power, &bits, sizeof(power));
	return power;
}

/* Returns floor(log2 x) of a number that is not negative, or -1023 if it is smaller than 2^-1022.
 */
static int exponent(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (int)(bits >> 52) - 1023;
}

/* Initializes the parameters that decode everything as NaN. */
static void linear_init(struct qnt_linear *l, const struct qnt_format *f)
{
	*l = (struct qnt_linear){.f64 = is_f64(f), .bits = code_bits[f->code]};
	l->flip = f->code == QNT_I8 || f->code == QNT_I16 ? UINT32_C(1) << (l->bits - 1) : 0;
	l->s = 1;
	l->unscale = 1;
	l->step = quiet_nan();
	l->top_code = -1;
}

static int32_t greatest_code(const struct qnt_linear *l)
{
	return (int32_t)((UINT32_C(1) << l->bits) - 1);
}

static void min_max_params(struct qnt_linear *l, const struct qnt_format *f, double lo, double hi)
{
	const struct limits *limits = limits_of(is_f64(f));
	double distance = qnt_once(is_f64(f), hi - lo);
	double d;

	linear_init(l, f);
	if (!isfinite(lo) || !isfinite(hi))
		return;
	if (isinf(distance))
		l->s = 0.5;
	else if (distance != 0 && fabs(distance) < limits->tiny)
		l->s = limits->big;
	l->unscale = 1 / l->s;
	l->base = qnt_once(l->f64, lo * l->s);
	d = qnt_once(l->f64, qnt_once(l->f64, hi * l->s) - l->base);
	l->most = greatest_code(l);
	l->step = qnt_once(l->f64, d / l->most);
	l->inverse = d == 0 ? 0 : qnt_once(l->f64, l->most / d);
	l->top_code = l->most;
	l->top = hi;
}

static void zero_point_params(
	struct qnt_linear *l, const struct qnt_format *f, double scale, int32_t z)
{
	linear_init(l, f);
	if (!isfinite(scale) || z < 0 || z > greatest_code(l))
		return;
	l->step = scale;
	l->zero = z;
}

/* Chooses scale and z for numbers between lo and hi, and completes the parameters for encoding. */
static void zero_point_choose(
	struct qnt_linear *l, const struct qnt_format *f, double lo, double hi)
{
	bool f64 = is_f64(f);
	int32_t most = (int32_t)(UINT32_C(1) << code_bits[f->code]) - 1;
	int32_t steps = lo < 0 && hi > 0 ? most - 1 : most;
	double scale, inverse, wanted, z;

	lo = lo > 0 ? 0 : lo;
	hi = hi < 0 ? 0 : hi;
	scale = qnt_once(f64, qnt_once(f64, hi / steps) - qnt_once(f64, lo / steps));
	if (scale < power_of_two(limits_of(f64)->emin))
		scale = power_of_two(limits_of(f64)->emin);
	inverse = qnt_once(f64, 1 / scale);
	wanted = qnt_once(f64, -lo * inverse);
	z = qnt_nearest(wanted);
	z += z < wanted;
	zero_point_params(l, f, scale, z < most ? (int32_t)z : most);
	l->inverse = inverse;
	l->least = -l->zero;
	l->most = most - l->zero;
	while (isinf(qnt_once(f64, l->least * scale)))
		l->least++;
	while (isinf(qnt_once(f64, l->most * scale)))
		l->most--;
}

static void block_params(struct qnt_blocks *b, const struct qnt_format *f, int32_t e)
{
	const struct limits *limits = limits_of(is_f64(f));
	float clip = qnt_clip(f->code, f->block, f->hint);

	*b = (struct qnt_blocks){
		.f64 = is_f64(f), .code = f->code, .block = f->block, .bf16_scale = f->bf16_scale};
	b->most = (double)block_codes[f->code].m;
	b->factor = qnt_once(b->f64, (double)clip / b->most);
	b->up = e < limits->emin || e > limits->emax ? quiet_nan() : power_of_two(e);
	b->down = 1 / b->up;
}

static int32_t choose_exponent(const struct qnt_format *f, double largest)
{
	int e = exponent(largest) - block_codes[f->code].c;
	int emin = limits_of(is_f64(f))->emin;

	return e > emin ? e : emin;
}

/* Numbers of the accumulator type on the wire. */

static double get_number(bool f64, const unsigned char *p)
{
	double d;
	float s;

	if (f64) {
		memcpy(&d, p, sizeof(d));
		return d;
	}
	memcpy(&s, p, sizeof(s));
	return (double)s;
}

static unsigned char *put_number(bool f64, unsigned char *p, double x)
{
	float s = (float)x;

	if (f64)
		memcpy(p, &x, sizeof(x));
	else
		memcpy(p, &s, sizeof(s));
	return p + (f64 ? sizeof(x) : sizeof(s));
}

/* Encoding. */

static const struct qnt_variant *variant_of(enum krn_isa isa, bool f64)
{
	return f64 ? &qnt_scalar : variants[isa];
}

static void encode_cast(enum krn_isa isa, const struct qnt_format *f, unsigned char *wire,
	const void *acc, size_t n)
{
	const double *x = acc;
	float rounded[PART];

	if (!is_f64(f)) {
		variants[isa]->to_half(f->code, wire, acc, n);
		return;
	}
	for (size_t i = 0; i < n; i += PART) {
		size_t m = n - i < PART ? n - i : PART;

		for (size_t j = 0; j < m; j++)
			rounded[j] = (float)x[i + j];
		variants[isa]->to_half(f->code, wire + i * sizeof(uint16_t), rounded, m);
	}
}

/* Returns how many of n elements have the same upper half of the index as the first one. */
static size_t before_wrap(const struct qnt_noise *noise, size_t n)
{
	uint64_t left = (UINT64_C(1) << 32) - (uint32_t)noise->first;

	return left < n ? (size_t)left : n;
}

static struct qnt_noise noise_from(const struct qnt_noise *noise, size_t i)
{
	return (struct qnt_noise){noise->key, noise->first + i};
}

/* Encodes the codes of QNT_MIN_MAX or QNT_ZERO_POINT. */
static void encode_linear_codes(const struct qnt_variant *v, const struct qnt_linear *l,
	unsigned char *codes, const void *acc, size_t n, const struct qnt_noise *noise)
{
	size_t m = noise ? before_wrap(noise, n) : n;
	struct qnt_noise rest;

	v->encode_linear(l, codes, acc, m, noise);
	if (m == n)
		return;
	rest = noise_from(noise, m);
	v->encode_linear(l, codes + m * l->bits / 8, qnt_element(l->f64, acc, m), n - m, &rest);
}

static void encode_linear(enum krn_isa isa, const struct qnt_format *f, unsigned char *wire,
	const void *acc, size_t n, const struct qnt_noise *noise)
{
	bool f64 = is_f64(f);
	const struct qnt_variant *v = variant_of(isa, f64);
	struct qnt_linear l;
	double lo, hi;
	bool finite = v->range(f64, acc, n, &lo, &hi);

	/* A zero becomes +0. */
	lo = finite ? lo + 0 : quiet_nan();
	hi = finite ? hi + 0 : quiet_nan();
	if (f->scheme == QNT_MIN_MAX) {
		min_max_params(&l, f, lo, hi);
		wire = put_number(f64, wire, lo);
		wire = put_number(f64, wire, hi);
	} else {
		if (finite)
			zero_point_choose(&l, f, lo, hi);
		else
			linear_init(&l, f);
		wire = put_number(f64, wire, l.step);
		memcpy(wire, &l.zero, sizeof(l.zero));
		wire += sizeof(l.zero);
	}
	if (finite)
		encode_linear_codes(v, &l, wire, acc, n, noise);
	else
		memset(wire, 0, n * l.bits / 8);
}

/* If the upper half of the index changes in a block, the scalar variant encodes this block. */
static void encode_noisy_blocks(const struct qnt_variant *v, const struct qnt_blocks *b,
	unsigned char *scales, unsigned char *codes, const void *acc, size_t n,
	const struct qnt_noise *noise)
{
	size_t m;

	for (size_t i = 0; i < n; i += m) {
		struct qnt_noise part = noise_from(noise, i);
		const struct qnt_variant *piece = v;

		m = before_wrap(&part, n - i);
		if (m < n - i)
			m -= m % b->block;
		if (m == 0) {
			m = n - i < b->block ? n - i : b->block;
			piece = &qnt_scalar;
		}
		piece->encode_blocks(b, scales + i / b->block * sizeof(uint16_t),
			codes + qnt_block_bytes(b->code, i), qnt_element(b->f64, acc, i), m, &part);
	}
}

static void encode_blocks(enum krn_isa isa, const struct qnt_format *f, unsigned char *wire,
	const void *acc, size_t n, const struct qnt_noise *noise)
{
	bool f64 = is_f64(f);
	const struct qnt_variant *v = variant_of(isa, f64);
	int32_t e = choose_exponent(f, v->largest(f64, acc, n, f->block));
	unsigned char *scales = wire + sizeof(e);
	unsigned char *codes = scales + block_count(f, n) * sizeof(uint16_t);
	struct qnt_blocks b;

	memcpy(wire, &e, sizeof(e));
	block_params(&b, f, e);
	if (noise)
		encode_noisy_blocks(v, &b, scales, codes, acc, n, noise);
	else
		v->encode_blocks(&b, scales, codes, acc, n, NULL);
}

void qnt_encode_isa(enum krn_isa isa, const struct qnt_format *f, void *wire, void *acc, size_t n,
	bool adopt, const struct qnt_noise *noise)
{
	if (n == 0)
		return;
	noise = f->stochastic ? noise : NULL;
	if (f->scheme == QNT_CAST)
		encode_cast(isa, f, wire, acc, n);
	else if (f->scheme == QNT_BLOCK)
		encode_blocks(isa, f, wire, acc, n, noise);
	else
		encode_linear(isa, f, wire, acc, n, noise);
	if (adopt)
		qnt_decode_isa(isa, f, acc, wire, n);
}

/* Decoding. */

/* A segment on the wire, and what its first bytes say. */
struct segment {
	const struct qnt_format *f;
	enum krn_isa isa;
	const unsigned char *scales, *codes;
	struct qnt_linear linear;
	struct qnt_blocks blocks;
};

static void segment_init(struct segment *segment, enum krn_isa isa, const struct qnt_format *f,
	const unsigned char *wire, size_t n)
{
	size_t size = acc_size(f);
	int32_t word;

	segment->f = f;
	segment->isa = isa;
	segment->scales = NULL;
	segment->codes = wire;
	switch (f->scheme) {
	case QNT_MIN_MAX:
		min_max_params(&segment->linear, f, get_number(is_f64(f), wire),
			get_number(is_f64(f), wire + size));
		segment->codes = wire + 2 * size;
		break;
	case QNT_ZERO_POINT:
		memcpy(&word, wire + size, sizeof(word));
		zero_point_params(&segment->linear, f, get_number(is_f64(f), wire), word);
		segment->codes = wire + size + sizeof(word);
		break;
	case QNT_BLOCK:
		memcpy(&word, wire, sizeof(word));
		block_params(&segment->blocks, f, word);
		segment->scales = wire + sizeof(word);
		segment->codes = segment->scales + block_count(f, n) * sizeof(uint16_t);
		break;
	default:
		break;
	}
}

static void decode_cast(
	const struct segment *segment, void *acc, const unsigned char *codes, size_t n)
{
	const struct qnt_variant *v = variants[segment->isa];
	float decoded[PART];
	double *x = acc;

	if (!is_f64(segment->f)) {
		v->from_half(segment->f->code, acc, codes, n);
		return;
	}
	for (size_t i = 0; i < n; i += PART) {
		size_t m = n - i < PART ? n - i : PART;

		v->from_half(segment->f->code, decoded, codes + i * sizeof(uint16_t), m);
		for (size_t j = 0; j < m; j++)
			x[i + j] = (double)decoded[j];
	}
}

/* Decodes n elements from index `from` on, which begins a block. */
static void segment_decode(const struct segment *segment, size_t from, void *acc, size_t n)
{
	const struct qnt_format *f = segment->f;
	const struct qnt_variant *v = variant_of(segment->isa, is_f64(f));

	switch (f->scheme) {
	case QNT_CAST:
		decode_cast(segment, acc, segment->codes + from * sizeof(uint16_t), n);
		break;
	case QNT_BLOCK:
		v->decode_blocks(&segment->blocks, acc,
			segment->scales + from / f->block * sizeof(uint16_t),
			segment->codes + qnt_block_bytes(f->code, from), n);
		break;
	default:
		v->decode_linear(
			&segment->linear, acc, segment->codes + from * code_bits[f->code] / 8, n);
		break;
	}
}

void qnt_decode_isa(
	enum krn_isa isa, const struct qnt_format *f, void *acc, const void *wire, size_t n)
{
	struct segment segment;

	if (n == 0)
		return;
	segment_init(&segment, isa, f, wire, n);
	segment_decode(&segment, 0, acc, n);
}

void qnt_decode_reduce_isa(enum krn_isa isa, const struct qnt_format *f, enum krn_op op, void *acc,
	const void *wire, size_t n)
{
	union {
		float f32[PART];
		double f64[PART];
	} decoded;
	struct segment segment;

	if (n == 0)
		return;
	segment_init(&segment, isa, f, wire, n);
	for (size_t i = 0; i < n; i += PART) {
		size_t m = n - i < PART ? n - i : PART;
		unsigned char *a = (unsigned char *)acc + i * acc_size(f);
		const void *const srcs[] = {a, &decoded};

		segment_decode(&segment, i, &decoded, m);
		krn_reduce_isa(isa, qnt_acc_dtype(f), op, a, srcs, 2, m);
	}
}

void qnt_load(const struct qnt_format *f, void *acc, const void *src, size_t n)
{
	enum qnt_code code = f->dtype == KRN_F16 ? QNT_F16 : QNT_BF16;

	if (n == 0)
		return;
	if (f->dtype == KRN_F16 || f->dtype == KRN_BF16)
		variants[krn_isa_current()]->from_half(code, acc, src, n);
	else
		memcpy(acc, src, n * acc_size(f));
}

void qnt_store(const struct qnt_format *f, void *dst, const void *acc, size_t n)
{
	enum qnt_code code = f->dtype == KRN_F16 ? QNT_F16 : QNT_BF16;

	if (n == 0)
		return;
	if (f->dtype == KRN_F16 || f->dtype == KRN_BF16)
		variants[krn_isa_current()]->to_half(code, dst, acc, n);
	else
		memcpy(dst, acc, n * acc_size(f));
}

void qnt_encode(const struct qnt_format *f, void *wire, void *acc, size_t n, bool adopt,
	const struct qnt_noise *noise)
{
	qnt_encode_isa(krn_isa_current(), f, wire, acc, n, adopt, noise);
}

void qnt_decode(const struct qnt_format *f, void *acc, const void *wire, size_t n)
{
	qnt_decode_isa(krn_isa_current(), f, acc, wire, n);
}

void qnt_decode_reduce(
	const struct qnt_format *f, enum krn_op op, void *acc, const void *wire, size_t n)
{
	qnt_decode_reduce_isa(krn_isa_current(), f, op, acc, wire, n);
}
