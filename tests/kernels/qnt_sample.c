/* SPDX-License-Identifier: MIT */
#include "tests/kernels/qnt_sample.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/kernels/krn_ref.h"
#include "tests/kernels/qnt_ref.h"

/* Formats. */

const struct qnt_family families[FAMILIES] = {
	{QNT_CAST, QNT_F16},
	{QNT_CAST, QNT_BF16},
	{QNT_MIN_MAX, QNT_U8},
	{QNT_MIN_MAX, QNT_I8},
	{QNT_MIN_MAX, QNT_U16},
	{QNT_MIN_MAX, QNT_I16},
	{QNT_ZERO_POINT, QNT_U8},
	{QNT_ZERO_POINT, QNT_I8},
	{QNT_ZERO_POINT, QNT_U16},
	{QNT_ZERO_POINT, QNT_I16},
	{QNT_BLOCK, QNT_I8},
	{QNT_BLOCK, QNT_I4},
	{QNT_BLOCK, QNT_N4},
	{QNT_BLOCK, QNT_E4M3},
	{QNT_BLOCK, QNT_E5M2},
};

const enum krn_dtype float_dtypes[4] = {KRN_F16, KRN_BF16, KRN_F32, KRN_F64};

unsigned list_formats(const struct qnt_family *family, struct qnt_format *formats)
{
	static const uint32_t blocks[] = {0, 32, 64, 128, 256, 512, 1024};
	unsigned n = 0;

	for (unsigned i = 0; i < 4 * COUNT_OF(blocks) * 2 * QNT_HINT_COUNT * 2; i++) {
		unsigned rest = i / 4;
		struct qnt_format f = {.dtype = float_dtypes[i % 4],
			.scheme = family->scheme,
			.code = family->code};

		f.block = blocks[rest % COUNT_OF(blocks)];
		rest /= COUNT_OF(blocks);
		f.bf16_scale = rest % 2 > 0;
		rest /= 2;
		f.hint = (enum qnt_hint)(rest % QNT_HINT_COUNT);
		f.stochastic = rest / QNT_HINT_COUNT > 0;
		if (!qnt_format_valid(&f))
			continue;
		REQUIRE(n < MAX_FORMATS);
		formats[n++] = f;
	}
	return n;
}

struct qnt_format block_format(enum qnt_code code, uint32_t block, enum qnt_hint hint)
{
	return (struct qnt_format){KRN_F32, QNT_BLOCK, code, block, false, hint, false};
}

struct qnt_format linear_format(enum qnt_scheme scheme, enum qnt_code code)
{
	return (struct qnt_format){.dtype = KRN_F32, .scheme = scheme, .code = code};
}

bool is_twin(const struct qnt_format *f)
{
	return (f->dtype == KRN_F16 || f->dtype == KRN_BF16) && f->hint != QNT_HINT_NONE;
}

/* Numbers. */

static double random_unit(uint64_t *seed)
{
	return ((double)(ref_random(seed) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(uint64_t *seed)
{
	double radius = sqrt(-2 * log(random_unit(seed)));

	return radius * cos(2 * acos(-1.0) * random_unit(seed));
}

static uint64_t random_special(enum krn_dtype t, uint64_t *seed)
{
	uint64_t specials[REF_MAX_SPECIALS];
	unsigned n = ref_specials(t, specials);

	return specials[ref_random(seed) % n];
}

uint64_t random_number(enum krn_dtype t, enum flavour flavour, size_t i, uint64_t *seed)
{
	uint64_t sign = ref_random(seed) << 63 >> (t == KRN_F64 ? 0 : 32);
	uint64_t bits = ref_random(seed) >> (t == KRN_F64 ? 0 : 32);
	double largest = t == KRN_F64 ? DBL_MAX : (double)FLT_MAX;

	switch (flavour) {
	case OFFSET:
		return ref_encode(t, 1000 + random_unit(seed));
	case SPRINKLED:
		if (bits % 64 == 0)
			return random_special(t, seed);
		break;
	case BITS:
		return isfinite(ref_decode(t, bits)) ? bits : sign;
	case LARGE:
		return ref_encode(t, (random_unit(seed) < 0.1 ? 1 : random_unit(seed)) * largest) |
		       sign;
	case SUBNORMAL:
		return bits % 1000 | sign;
	case EQUAL:
		return ref_encode(t, -1.7);
	case SPARSE:
		if (i / 40 % 4 > 0)
			return sign;
		break;
	case RAW:
		return bits;
	default:
		break;
	}
	return ref_encode(t, random_normal(seed));
}

size_t acc_size(const struct qnt_format *f)
{
	return krn_dtype_size(qnt_acc_dtype(f));
}

double number(const struct qnt_format *f, const void *acc, size_t i)
{
	return ref_decode(qnt_acc_dtype(f), ref_get(qnt_acc_dtype(f), acc, i));
}

void *allocate(size_t bytes)
{
	void *p = malloc(bytes > 0 ? bytes : 1);

	REQUIRE(p);
	return p;
}

void sample_init(struct sample *s, const struct qnt_format *f, size_t n)
{
	*s = (struct sample){.f = *f, .n = n, .bytes = qnt_wire_size(f, n)};
	s->acc = allocate(n * acc_size(f));
	s->decoded = allocate(n * acc_size(f));
	s->wire = allocate(s->bytes);
}

void sample_free(struct sample *s)
{
	free(s->acc);
	free(s->decoded);
	free(s->wire);
}

void sample_expect(struct sample *s)
{
	ref_qnt_encode(&s->f, s->wire, s->acc, s->n, &s->noise);
	ref_qnt_decode(&s->f, s->decoded, s->wire, s->n);
}

void sample_fill(struct sample *s, enum flavour flavour, uint64_t *seed)
{
	enum krn_dtype t = qnt_acc_dtype(&s->f);

	s->noise.key = ref_random(seed);
	/* Sometimes the lower half of the index wraps in the segment. */
	s->noise.first = (ref_random(seed) % 1000 << 32) - ref_random(seed) % (2 * s->n);
	for (size_t i = 0; i < s->n; i++)
		ref_set(t, s->acc, i, random_number(t, flavour, i, seed));
	sample_expect(s);
}
