/* SPDX-License-Identifier: MIT */
/*
 * Compares every variant of quantization that this CPU supports with tests/kernels/qnt_ref.c.
 * qnt_errors.c tests what follows from the definition.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/qnt.h"
#include "tests/kernels/krn_ref.h"
#include "tests/kernels/qnt_ref.h"
#include "tests/kernels/qnt_sample.h"
#include "tests/kernels/suites.h"

#define GUARD      ((size_t)64)
#define GUARD_BYTE 0xa5
/* An emulator takes a hundred times as long (tests/kernels/neon.sh). */
#ifdef EMULATED
#define STEP 3u
#else
#define STEP 1u
#endif

#define FOR_EACH_ISA(isa)                                                                          \
	for (enum krn_isa isa = KRN_ISA_SCALAR; (isa) < KRN_ISA_COUNT; (isa)++)                    \
		if (krn_isa_supported(isa))

static void fail_sample(const struct sample *s, enum krn_isa isa, const char *what, size_t at)
{
	ck_abort_msg("%s: %s differ at %zu (dtype %d scheme %d code %d block %u bf16 %d hint %d "
		     "stochastic %d, %zu elements)",
		krn_isa_name(isa), what, at, (int)s->f.dtype, (int)s->f.scheme, (int)s->f.code,
		(unsigned)s->f.block, s->f.bf16_scale, (int)s->f.hint, s->f.stochastic, s->n);
}

static void require_same(const struct sample *s, enum krn_isa isa, const char *what,
	const void *got, const void *expected, size_t bytes)
{
	const unsigned char *a = got, *b = expected;

	if (bytes == 0 || memcmp(a, b, bytes) == 0)
		return;
	for (size_t i = 0; i < bytes; i++)
		if (a[i] != b[i])
			fail_sample(s, isa, what, i);
}

/* Encodes to an odd address in memory of exactly the right size, for AddressSanitizer. */
static void check_encode(const struct sample *s, enum krn_isa isa, bool adopt)
{
	size_t size = s->n * acc_size(&s->f);
	unsigned char *area = allocate(s->bytes + 2 * GUARD + 1);
	unsigned char *wire = area + GUARD + 1;
	void *acc = allocate(size);

	memset(area, GUARD_BYTE, s->bytes + 2 * GUARD + 1);
	memcpy(acc, s->acc, size);
	qnt_encode_isa(isa, &s->f, wire, acc, s->n, adopt, s->f.stochastic ? &s->noise : NULL);
	require_same(s, isa, "encoded bytes", wire, s->wire, s->bytes);
	require_same(s, isa, adopt ? "adopted bytes" : "sources", acc, adopt ? s->decoded : s->acc,
		size);
	for (size_t i = 0; i < GUARD; i++)
		REQUIRE(area[i] == GUARD_BYTE && wire[s->bytes + i] == GUARD_BYTE);
	free(acc);
	free(area);
}

static void check_decode(const struct sample *s, enum krn_isa isa)
{
	size_t size = s->n * acc_size(&s->f);
	unsigned char *area = allocate(s->bytes + 1);
	void *acc = allocate(size);

	memcpy(area + 1, s->wire, s->bytes);
	qnt_decode_isa(isa, &s->f, acc, area + 1, s->n);
	require_same(s, isa, "decoded bytes", acc, s->decoded, size);
	free(acc);
	free(area);
}

static void check_reduce(const struct sample *s, enum krn_isa isa, enum krn_op op)
{
	enum krn_dtype t = qnt_acc_dtype(&s->f);
	size_t size = s->n * acc_size(&s->f);
	void *acc = allocate(size), *expected = allocate(size);
	const void *const srcs[] = {expected, s->decoded};
	uint64_t seed = s->n;

	for (size_t i = 0; i < s->n; i++)
		ref_set(t, acc, i, random_number(t, SPRINKLED, i, &seed));
	memcpy(expected, acc, size);
	krn_reduce_isa(KRN_ISA_SCALAR, t, op, expected, srcs, 2, s->n);
	qnt_decode_reduce_isa(isa, &s->f, op, acc, s->wire, s->n);
	require_same(s, isa, "reduced bytes", acc, expected, size);
	free(expected);
	free(acc);
}

static void check_sample(const struct sample *s, unsigned round)
{
	FOR_EACH_ISA(isa)
	{
		check_encode(s, isa, false);
		check_encode(s, isa, true);
		check_decode(s, isa);
		check_reduce(s, isa, (enum krn_op)(round % KRN_OP_COUNT));
	}
}

/* Formats and sizes. */

START_TEST(formats_that_make_no_sense_are_refused)
{
	static const struct qnt_format good[] = {
		{KRN_F32, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_BF16, QNT_BLOCK, QNT_I4, 32, true, QNT_HINT_UNIFORM, true},
		{KRN_F64, QNT_BLOCK, QNT_E5M2, 1024, false, QNT_HINT_NONE, false},
		{KRN_F16, QNT_CAST, QNT_F16, 0, false, QNT_HINT_NONE, false},
		{KRN_F32, QNT_MIN_MAX, QNT_U16, 0, false, QNT_HINT_NONE, true},
	};
	static const struct qnt_format bad[] = {
		{KRN_I32, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{(enum krn_dtype)100, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, (enum qnt_scheme)4, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, (enum qnt_scheme) - 1, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_MIN_MAX, QNT_I8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_U8, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_F16, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_CODE_COUNT, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, (enum qnt_code) - 1, 256, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_I8, 0, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_I8, 16, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_I8, 96, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_I8, 2048, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_BLOCK, QNT_I8, 256, false, QNT_HINT_COUNT, false},
		{KRN_F32, QNT_BLOCK, QNT_N4, 256, false, QNT_HINT_NONE, true},
		{KRN_F32, QNT_BLOCK, QNT_E4M3, 256, false, QNT_HINT_NONE, true},
		{KRN_F32, QNT_CAST, QNT_F16, 32, false, QNT_HINT_NONE, false},
		{KRN_F32, QNT_CAST, QNT_F16, 0, true, QNT_HINT_NONE, false},
		{KRN_F32, QNT_CAST, QNT_F16, 0, false, QNT_HINT_NORMAL, false},
		{KRN_F32, QNT_CAST, QNT_F16, 0, false, QNT_HINT_NONE, true},
		{KRN_F32, QNT_CAST, QNT_U8, 0, false, QNT_HINT_NONE, false},
		{KRN_F32, QNT_MIN_MAX, QNT_F16, 0, false, QNT_HINT_NONE, false},
		{KRN_F32, QNT_ZERO_POINT, QNT_I4, 0, false, QNT_HINT_NONE, false},
	};

	for (size_t i = 0; i < COUNT_OF(good); i++)
		ck_assert(qnt_format_valid(&good[i]));
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		ck_assert(!qnt_format_valid(&bad[i]));
}
END_TEST

START_TEST(formats_are_counted)
{
	struct qnt_format formats[MAX_FORMATS];

	for (int i = 0; i < FAMILIES; i++) {
		bool integer = families[i].code == QNT_I8 || families[i].code == QNT_I4;
		unsigned n = list_formats(&families[i], formats);

		if (families[i].scheme == QNT_CAST)
			ck_assert_uint_eq(n, 4);
		else if (families[i].scheme == QNT_BLOCK)
			/* 4 types of elements, 6 blocks, 2 types of scales, 3 hints, noise */
			ck_assert_uint_eq(n, integer ? 288 : 144);
		else
			ck_assert_uint_eq(n, 8);
	}
}
END_TEST

START_TEST(segments_have_their_sizes)
{
	struct qnt_format f = {.dtype = KRN_F32, .scheme = QNT_CAST, .code = QNT_BF16};

	ck_assert_uint_eq(qnt_wire_size(&f, 0), 0);
	ck_assert_uint_eq(qnt_wire_size(&f, 7), 14);
	ck_assert_int_eq(qnt_acc_dtype(&f), KRN_F32);
	f = linear_format(QNT_MIN_MAX, QNT_U8);
	ck_assert_uint_eq(qnt_wire_size(&f, 0), 0);
	ck_assert_uint_eq(qnt_wire_size(&f, 7), 8 + 7);
	f.dtype = KRN_F64;
	ck_assert_int_eq(qnt_acc_dtype(&f), KRN_F64);
	ck_assert_uint_eq(qnt_wire_size(&f, 7), 16 + 7);
	f = linear_format(QNT_ZERO_POINT, QNT_I16);
	ck_assert_uint_eq(qnt_wire_size(&f, 7), 8 + 14);
	f.dtype = KRN_F64;
	ck_assert_uint_eq(qnt_wire_size(&f, 7), 12 + 14);
	f = block_format(QNT_E5M2, 64, QNT_HINT_NONE);
	ck_assert_uint_eq(qnt_wire_size(&f, 0), 0);
	ck_assert_uint_eq(qnt_wire_size(&f, 1), 4 + 2 + 1);
	ck_assert_uint_eq(qnt_wire_size(&f, 64), 4 + 2 + 64);
	ck_assert_uint_eq(qnt_wire_size(&f, 65), 4 + 4 + 65);
	f = block_format(QNT_N4, 32, QNT_HINT_NONE);
	ck_assert_uint_eq(qnt_wire_size(&f, 1), 4 + 2 + 1);
	ck_assert_uint_eq(qnt_wire_size(&f, 35), 4 + 4 + 16 + 2);
}
END_TEST

START_TEST(empty_segments_are_accepted)
{
	struct qnt_format formats[MAX_FORMATS];

	for (int i = 0; i < FAMILIES; i++) {
		list_formats(&families[i], formats);
		FOR_EACH_ISA(isa)
		{
			qnt_encode_isa(isa, &formats[0], NULL, NULL, 0, true, NULL);
			qnt_decode_isa(isa, &formats[0], NULL, NULL, 0);
			qnt_decode_reduce_isa(isa, &formats[0], KRN_SUM, NULL, NULL, 0);
		}
		qnt_load(&formats[0], NULL, NULL, 0);
		qnt_store(&formats[0], NULL, NULL, 0);
	}
}
END_TEST

START_TEST(variants_are_printed)
{
	FOR_EACH_ISA(isa)
	{
		printf("qnt: testing %s\n", krn_isa_name(isa));
	}
}
END_TEST

START_TEST(levels_and_clips_are_in_range)
{
	const float *levels = qnt_normal_levels();
	bool zero = false;

	ck_assert_float_eq(levels[0], -1);
	ck_assert_float_eq(levels[15], 1);
	for (int i = 0; i < 15; i++) {
		ck_assert(levels[i] < levels[i + 1]);
		ck_assert((double)levels[i] * 4096 == rint((double)levels[i] * 4096));
		zero |= levels[i] == 0;
	}
	ck_assert(zero);
	for (int i = 0; i < QNT_CODE_COUNT * QNT_HINT_COUNT * 6; i++) {
		enum qnt_code code = (enum qnt_code)(i % QNT_CODE_COUNT);
		enum qnt_hint hint = (enum qnt_hint)(i / QNT_CODE_COUNT % QNT_HINT_COUNT);
		float clip = qnt_clip(code, 32u << i / QNT_CODE_COUNT / QNT_HINT_COUNT, hint);
		bool one = hint == QNT_HINT_NONE || code == QNT_I8;

		ck_assert(one ? clip == 1 : clip > 0.7f && clip <= 1);
	}
	ck_assert(qnt_clip(QNT_I4, 32, QNT_HINT_NORMAL) > qnt_clip(QNT_I4, 64, QNT_HINT_NORMAL));
}
END_TEST

/* In the following loop tests _i is the family. */

START_TEST(segments_equal_the_reference)
{
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 1000 + (uint64_t)_i;
	unsigned round = 0;

	for (unsigned k = 0; k < count; k++) {
		size_t group = ref_qnt_group(&formats[k], 64);
		/* AVX-512 handles 16 whole blocks at a time. */
		const size_t sizes[] = {1, 2, 3, group - 1, group, group + 1, 2 * group + 13,
			3 * group - 15, (group > 64 ? 3 : 35) * group + 7};

		for (size_t i = 0; i < COUNT_OF(sizes) && !is_twin(&formats[k]); i++) {
			struct sample sample;

			sample_init(&sample, &formats[k], sizes[i]);
			sample_fill(&sample, (enum flavour)(round % FLAVOUR_COUNT), &seed);
			check_sample(&sample, round / FLAVOUR_COUNT);
			sample_free(&sample);
			round++;
		}
	}
}
END_TEST

START_TEST(segments_of_all_flavours_equal_the_reference)
{
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 2000 + (uint64_t)_i;

	for (unsigned k = 0; k < count; k++) {
		/* For all other formats the previous test is enough. */
		if (formats[k].block > 32 || is_twin(&formats[k]))
			continue;
		for (int flavour = 0; flavour < FLAVOUR_COUNT; flavour++) {
			struct sample sample;

			sample_init(&sample, &formats[k], 331);
			for (unsigned round = 0; round < 3; round += STEP) {
				sample_fill(&sample, (enum flavour)flavour, &seed);
				check_sample(&sample, round + (unsigned)flavour);
			}
			sample_free(&sample);
		}
	}
}
END_TEST

/* Replaces the first bytes with likely values: numbers near 1, and integers near 0. */
static void tame(struct sample *s, uint64_t *seed)
{
	enum krn_dtype t = qnt_acc_dtype(&s->f);

	if (s->f.scheme == QNT_BLOCK) {
		ref_set(KRN_I32, s->wire, 0, (uint64_t)(int64_t)(ref_random(seed) % 300) - 150);
	} else if (s->f.scheme != QNT_CAST) {
		ref_set(t, s->wire, 0, random_number(t, NORMAL, 0, seed));
		if (s->f.scheme == QNT_MIN_MAX)
			ref_set(t, s->wire, 1, random_number(t, NORMAL, 0, seed));
		else
			ref_set(KRN_I32, s->wire + acc_size(&s->f), 0, ref_random(seed) % 300);
	}
}

START_TEST(any_bytes_are_decoded)
{
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);
	uint64_t seed = 3000 + (uint64_t)_i;

	for (unsigned k = 0; k < count; k++) {
		size_t group = ref_qnt_group(&formats[k], 32);
		struct sample sample;

		if (is_twin(&formats[k]))
			continue;
		sample_init(&sample, &formats[k], (group > 32 ? 1 : 17) * group + 19);
		for (unsigned round = 0; round < 8; round += STEP) {
			for (size_t i = 0; i < sample.bytes; i++)
				sample.wire[i] = (unsigned char)ref_random(&seed);
			if (round > 1)
				tame(&sample, &seed);
			ref_qnt_decode(&sample.f, sample.decoded, sample.wire, sample.n);
			FOR_EACH_ISA(isa)
			{
				check_decode(&sample, isa);
				check_reduce(&sample, isa, (enum krn_op)(round % KRN_OP_COUNT));
			}
		}
		sample_free(&sample);
	}
}
END_TEST

/* The first bytes are values that an attacker might choose: special numbers, and integers next to a
 * limit. */
START_TEST(any_first_bytes_are_decoded)
{
	static const int32_t words[] = {0, 1, -1, 254, 255, 256, 65535, 65536, INT32_MAX, INT32_MIN,
		-126, -127, 127, 128, -1022, -1023, 1023, 1024};
	struct qnt_format formats[MAX_FORMATS];
	uint64_t specials[REF_MAX_SPECIALS];
	uint64_t seed = 4000 + (uint64_t)_i;
	struct sample sample;

	list_formats(&families[_i], formats);
	for (unsigned k = 0; k < 4; k++) {
		enum krn_dtype t = qnt_acc_dtype(&formats[k]);
		unsigned n = ref_specials(t, specials);

		sample_init(&sample, &formats[k], 53);
		for (unsigned i = 0; i < n * n; i++) {
			for (size_t byte = 0; byte < sample.bytes; byte++)
				sample.wire[byte] = (unsigned char)ref_random(&seed);
			sample.wire[sample.bytes - 1] |= 0x80 | 0x7f;
			if (sample.f.scheme == QNT_MIN_MAX)
				ref_set(t, sample.wire, 1, specials[i / n]);
			if (sample.f.scheme == QNT_MIN_MAX || sample.f.scheme == QNT_ZERO_POINT)
				ref_set(t, sample.wire, 0, specials[i % n]);
			if (sample.f.scheme == QNT_ZERO_POINT)
				ref_set(KRN_I32, sample.wire + acc_size(&sample.f), 0,
					(uint64_t)words[i % COUNT_OF(words)]);
			if (sample.f.scheme == QNT_BLOCK)
				ref_set(KRN_I32, sample.wire, 0,
					(uint64_t)words[i % COUNT_OF(words)]);
			ref_qnt_decode(&sample.f, sample.decoded, sample.wire, sample.n);
			FOR_EACH_ISA(isa)
			{
				check_decode(&sample, isa);
			}
		}
		sample_free(&sample);
	}
}
END_TEST

START_TEST(every_code_is_decoded_and_encoded)
{
	const struct qnt_format f = block_format(families[_i].code, 256, QNT_HINT_NONE);
	struct sample sample;

	if (families[_i].scheme != QNT_BLOCK)
		return;
	sample_init(&sample, &f, 256);
	ref_set(KRN_I32, sample.wire, 0, 0);
	ref_set(KRN_F16, sample.wire + 4, 0, ref_encode(KRN_F16, 1));
	for (size_t i = 0; i < sample.bytes - 6; i++)
		sample.wire[6 + i] = (unsigned char)i;
	ref_qnt_decode(&f, sample.decoded, sample.wire, 256);
	FOR_EACH_ISA(isa)
	{
		check_decode(&sample, isa);
	}
	/* Encodes the middle between each value and the next value, and the numbers next to each
	 * middle. */
	for (size_t i = 0; i < 256; i++) {
		float x = ((float *)sample.decoded)[i];
		float next = ((float *)sample.decoded)[i < 255 ? i + 1 : i];

		x = isnan(x) ? 448 : x;
		next = isnan(next) ? x : next;
		((float *)sample.acc)[i] = (x + next) / 2;
	}
	for (int round = 0; round < 3; round++) {
		sample_expect(&sample);
		check_sample(&sample, 0);
		for (size_t i = 0; i < 256; i++) {
			float *x = (float *)sample.acc + i;

			*x = nextafterf(*x, round == 0 ? -FLT_MAX : FLT_MAX);
			if (round == 1)
				*x = nextafterf(*x, FLT_MAX);
		}
	}
	sample_free(&sample);
}
END_TEST

/* Encodes and decodes a segment of normal numbers, of which the number at index `at` is not finite.
 */
static void check_confined(const struct qnt_format *f, double special, size_t at)
{
	enum { COUNT = 1200 };
	enum krn_dtype t = qnt_acc_dtype(f);
	size_t group = ref_qnt_group(f, COUNT);
	uint64_t seed = 10000;
	struct sample sample;

	sample_init(&sample, f, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		ref_set(t, sample.acc, i, random_number(t, NORMAL, i, &seed));
	ref_set(t, sample.acc, at, ref_encode(t, special));
	sample_expect(&sample);
	check_sample(&sample, 0);
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t got = ref_get(t, sample.decoded, i);
		double x = number(f, sample.acc, i);

		if (f->scheme == QNT_CAST && i == at)
			REQUIRE(got == ref_encode(t, special));
		else if (f->scheme != QNT_CAST && i / group == at / group)
			REQUIRE(got == ref_encode(t, (double)NAN));
		else
			REQUIRE(fabs(ref_decode(t, got) - x) < 0.5);
	}
	sample_free(&sample);
}

START_TEST(nan_and_infinity_are_confined)
{
	static const size_t places[] = {0, 31, 32, 700, 1199};
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);

	for (unsigned k = 0; k < count; k++) {
		const struct qnt_format *f = &formats[k];

		if (f->hint != QNT_HINT_NONE || f->stochastic || is_twin(f))
			continue;
		for (size_t i = 0; i < COUNT_OF(places); i += STEP) {
			check_confined(f, (double)NAN, places[i]);
			check_confined(
				f, i % 2 > 0 ? (double)INFINITY : (double)-INFINITY, places[i]);
		}
	}
}
END_TEST

/* Returns (before - after) * factor + more, in the accumulator type. */
static double loss_of(enum krn_dtype t, double before, double after, uint32_t factor, double more)
{
	double d;

	if (t == KRN_F64) {
		d = (before - after) * factor;
		d += more;
	} else {
		float x = (float)before - (float)after;

		x *= (float)factor;
		x += (float)more;
		d = (double)x;
	}
	return isfinite(d) ? d : 0;
}

/* Checks the loss that qnt_encode_loss writes. If `more` is true, the loss is added to other
 * numbers. */
static void check_loss(const struct qnt_format *f, enum flavour flavour, uint32_t factor, bool more)
{
	enum { COUNT = 1003 };
	enum krn_dtype t = qnt_acc_dtype(f);
	size_t bytes = COUNT * acc_size(f), size = qnt_wire_size(f, COUNT);
	uint8_t *want = allocate(size), *wire = allocate(size);
	void *before = allocate(bytes), *after = allocate(bytes), *acc = allocate(bytes);
	void *loss = allocate(bytes), *old = allocate(bytes), *buffer = allocate(bytes);
	struct qnt_noise noise = {.key = 7, .first = 100};
	struct qnt_loss l = {.to = loss, .factor = factor, .buffer = more ? buffer : NULL};
	uint64_t seed = 77;

	for (size_t i = 0; i < COUNT; i++) {
		ref_set(t, before, i, random_number(t, flavour, i, &seed));
		ref_set(t, old, i, random_number(t, NORMAL, i, &seed));
	}
	memcpy(after, before, bytes);
	memcpy(acc, before, bytes);
	memcpy(loss, old, bytes);
	qnt_encode(f, want, after, COUNT, true, &noise);
	qnt_encode_loss(f, wire, acc, COUNT, &noise, &l);
	REQUIRE(memcmp(wire, want, size) == 0);
	REQUIRE(memcmp(acc, after, bytes) == 0);
	for (size_t i = 0; i < COUNT; i++) {
		double x = loss_of(t, number(f, before, i), number(f, after, i), factor,
			more ? number(f, old, i) : 0);

		REQUIRE(number(f, loss, i) == x);
	}
	free(want);
	free(wire);
	free(before);
	free(after);
	free(acc);
	free(loss);
	free(old);
	free(buffer);
}

START_TEST(encoding_writes_or_adds_the_loss)
{
	static const enum flavour flavours[] = {NORMAL, SPRINKLED, LARGE, RAW};
	struct qnt_format formats[MAX_FORMATS];
	unsigned count = list_formats(&families[_i], formats);

	for (unsigned k = 0; k < count; k++)
		for (size_t i = 0; !is_twin(&formats[k]) && i < COUNT_OF(flavours); i += STEP) {
			check_loss(&formats[k], flavours[i], 1, false);
			if (STEP == 1)
				check_loss(&formats[k], flavours[i], 5, false);
			check_loss(&formats[k], flavours[i], 1 + 2 * (k % 2), true);
		}
}
END_TEST

/* The conversions of elements. */

START_TEST(elements_are_loaded_and_stored)
{
	struct qnt_format f = linear_format(QNT_MIN_MAX, QNT_U8);
	enum krn_dtype t = float_dtypes[_i];
	uint64_t seed = 11000 + (uint64_t)_i;

	f.dtype = t;
	for (size_t n = 1; n < 80; n++) {
		enum krn_dtype acc_type = qnt_acc_dtype(&f);
		unsigned char *elements = allocate(n * krn_dtype_size(t) + 1);
		void *acc = allocate(n * acc_size(&f));

		for (size_t i = 0; i < n; i++)
			ref_set(t, elements + 1, i, ref_random(&seed));
		qnt_load(&f, acc, elements + 1, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t element = ref_get(t, elements + 1, i);
			uint64_t expected = t == acc_type
						    ? element
						    : ref_encode(KRN_F32, ref_decode(t, element));

			REQUIRE(ref_get(acc_type, acc, i) == expected);
			ref_set(acc_type, acc, i,
				random_number(
					acc_type, (enum flavour)(i % FLAVOUR_COUNT), i, &seed));
		}
		qnt_store(&f, elements + 1, acc, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t x = ref_get(acc_type, acc, i);
			uint64_t expected =
				t == acc_type ? x : ref_encode(t, ref_decode(KRN_F32, x));

			REQUIRE(ref_get(t, elements + 1, i) == expected);
		}
		free(acc);
		free(elements);
	}
}
END_TEST

Suite *qnt_suite(void)
{
	Suite *suite = suite_create("qnt");
	TCase *format = tcase_create("format");
	TCase *reference = tcase_create("reference");

	tcase_add_test(format, formats_that_make_no_sense_are_refused);
	tcase_add_test(format, formats_are_counted);
	tcase_add_test(format, segments_have_their_sizes);
	tcase_add_test(format, empty_segments_are_accepted);
	tcase_add_test(format, levels_and_clips_are_in_range);
	suite_add_tcase(suite, format);

	tcase_set_timeout(reference, 120);
	tcase_add_test(reference, variants_are_printed);
	tcase_add_loop_test(reference, segments_equal_the_reference, 0, FAMILIES);
	tcase_add_loop_test(reference, segments_of_all_flavours_equal_the_reference, 0, FAMILIES);
	tcase_add_loop_test(reference, any_bytes_are_decoded, 0, FAMILIES);
	tcase_add_loop_test(reference, any_first_bytes_are_decoded, 0, FAMILIES);
	tcase_add_loop_test(reference, every_code_is_decoded_and_encoded, 0, FAMILIES);
	tcase_add_loop_test(reference, nan_and_infinity_are_confined, 0, FAMILIES);
	tcase_add_loop_test(reference, encoding_writes_or_adds_the_loss, 0, FAMILIES);
	tcase_add_loop_test(reference, elements_are_loaded_and_stored, 0, 4);
	suite_add_tcase(suite, reference);
	return suite;
}
