/* SPDX-License-Identifier: MIT */
/*
 * Compares every variant of the reduction kernels that this CPU supports with
 * tests/kernels/krn_ref.c.
 */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/krn.h"
#include "kernels/krn_half.h"
#include "tests/kernels/krn_ref.h"
#include "tests/kernels/suites.h"

#define MAX_SOURCES 9
#define GUARD       ((size_t)64)
#define GUARD_BYTE  0xa5

#define FOR_EACH_ISA(isa)                                                                          \
	for (enum krn_isa isa = KRN_ISA_SCALAR; (isa) < KRN_ISA_COUNT; (isa)++)                    \
		if (krn_isa_supported(isa))

/* Sources, and the result that krn_reduce must compute. For a shorter count, a prefix of the result
 * is expected. */
struct sample {
	enum krn_dtype t;
	enum krn_op op;
	unsigned nsrc;
	size_t count;
	unsigned char *sources[MAX_SOURCES];
	unsigned char *expected;
};

enum flavour { ORDINARY, MIXED, RAW, FLAVOUR_COUNT };

static uint64_t random_element(enum krn_dtype t, enum flavour flavour, uint64_t *seed)
{
	uint64_t r = ref_random(seed);

	if (flavour == MIXED && r % 16 == 0) {
		uint64_t specials[REF_MAX_SPECIALS];
		unsigned n = ref_specials(t, specials);

		return specials[(r >> 32) % n];
	}
	if (flavour != RAW && ref_is_float(t)) /* in (-2, 2) */
		return ref_encode(t, (double)(int64_t)r * 0x1p-62);
	return r;
}

static void sample_init(
	struct sample *sample, enum krn_dtype t, enum krn_op op, unsigned nsrc, size_t count)
{
	size_t bytes = count * krn_dtype_size(t);

	*sample = (struct sample){.t = t, .op = op, .nsrc = nsrc, .count = count};
	for (unsigned s = 0; s < nsrc; s++) {
		sample->sources[s] = malloc(bytes);
		ck_assert_ptr_nonnull(sample->sources[s]);
	}
	sample->expected = malloc(bytes);
	ck_assert_ptr_nonnull(sample->expected);
}

static void sample_free(struct sample *sample)
{
	for (unsigned s = 0; s < sample->nsrc; s++)
		free(sample->sources[s]);
	free(sample->expected);
}

static void sample_expect(struct sample *sample)
{
	uint64_t elements[MAX_SOURCES];

	for (size_t i = 0; i < sample->count; i++) {
		for (unsigned s = 0; s < sample->nsrc; s++)
			elements[s] = ref_get(sample->t, sample->sources[s], i);
		ref_set(sample->t, sample->expected, i,
			sample->nsrc == 1
				? elements[0]
				: ref_reduce(sample->t, sample->op, elements, sample->nsrc));
	}
}

static void sample_fill(struct sample *sample, enum flavour flavour, uint64_t *seed)
{
	for (unsigned s = 0; s < sample->nsrc; s++)
		for (size_t i = 0; i < sample->count; i++)
			ref_set(sample->t, sample->sources[s], i,
				random_element(sample->t, flavour, seed));
	sample_expect(sample);
}

static void assert_elements(
	const struct sample *sample, enum krn_isa isa, const void *got, size_t count)
{
	if (count == 0 || memcmp(got, sample->expected, count * krn_dtype_size(sample->t)) == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t is = ref_get(sample->t, got, i);
		uint64_t must = ref_get(sample->t, sample->expected, i);

		if (is == must)
			continue;
		ck_abort_msg("%s: type %d op %d, %u sources, element %zu of %zu (%" PRIx64
			     ", %" PRIx64 ", ...): %" PRIx64 " instead of %" PRIx64,
			krn_isa_name(isa), (int)sample->t, (int)sample->op, sample->nsrc, i, count,
			ref_get(sample->t, sample->sources[0], i),
			sample->nsrc > 1 ? ref_get(sample->t, sample->sources[1], i) : 0, is, must);
	}
}

static void assert_guard(const unsigned char *guard)
{
	for (size_t i = 0; i < GUARD; i++)
		REQUIRE(guard[i] == GUARD_BYTE);
}

/*
 * Reduces the first `count` elements and checks the result. The sources are copied to odd addresses
 * in memory of exactly their size, for AddressSanitizer. `alias` is the index of the source that is
 * also dst, or nsrc for none.
 */
static void sample_check(
	const struct sample *sample, enum krn_isa isa, size_t count, unsigned alias, uint64_t *seed)
{
	size_t bytes = count * krn_dtype_size(sample->t);
	size_t shift = ref_random(seed) % 16;
	unsigned char *area = malloc(shift + bytes + 2 * GUARD);
	unsigned char *dst = area + shift + GUARD;
	unsigned char *copies[MAX_SOURCES];
	const void *srcs[MAX_SOURCES];

	REQUIRE(area);
	memset(area, GUARD_BYTE, shift + bytes + 2 * GUARD);
	for (unsigned s = 0; s < sample->nsrc; s++) {
		shift = ref_random(seed) % 16;
		copies[s] = malloc(shift + bytes + 1);
		REQUIRE(copies[s]);
		srcs[s] = s == alias ? dst : copies[s] + shift + 1;
		memcpy(s == alias ? dst : copies[s] + shift + 1, sample->sources[s], bytes);
	}
	krn_reduce_isa(isa, sample->t, sample->op, dst, srcs, sample->nsrc, count);
	assert_elements(sample, isa, dst, count);
	assert_guard(dst - GUARD);
	assert_guard(dst + bytes);
	for (unsigned s = 0; s < sample->nsrc; s++) {
		if (s != alias)
			REQUIRE(memcmp(srcs[s], sample->sources[s], bytes) == 0);
		free(copies[s]);
	}
	free(area);
}

START_TEST(each_type_has_its_size)
{
	static const size_t expected[KRN_DTYPE_COUNT] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

	for (int t = 0; t < KRN_DTYPE_COUNT; t++)
		ck_assert_uint_eq(krn_dtype_size((enum krn_dtype)t), expected[t]);
	ck_assert_uint_eq(krn_dtype_size(KRN_DTYPE_COUNT), 0);
	ck_assert_uint_eq(krn_dtype_size((enum krn_dtype)1000000), 0);
}
END_TEST

START_TEST(variants_are_supported_and_named)
{
	enum krn_isa current = krn_isa_current();

	ck_assert(krn_isa_supported(KRN_ISA_SCALAR));
	ck_assert(krn_isa_supported(current));
	ck_assert_int_eq(krn_isa_current(), current);
	FOR_EACH_ISA(isa)
	{
		printf("krn: testing %s\n", krn_isa_name(isa));
		ck_assert(isa <= current);
	}
	ck_assert(!krn_isa_supported(KRN_ISA_COUNT));
	ck_assert_str_eq(krn_isa_name(KRN_ISA_SCALAR), "scalar");
	ck_assert_str_eq(krn_isa_name(KRN_ISA_NEON), "neon");
	ck_assert_str_eq(krn_isa_name(KRN_ISA_COUNT), "unknown");
#if defined(__aarch64__)
	ck_assert_int_eq(current, KRN_ISA_NEON);
#endif
}
END_TEST

START_TEST(empty_arrays_are_accepted)
{
	const void *const srcs[] = {NULL, NULL};

	FOR_EACH_ISA(isa)
	{
		for (enum krn_dtype t = KRN_U8; t < KRN_DTYPE_COUNT; t++) {
			krn_reduce_isa(isa, t, KRN_SUM, NULL, srcs, 1, 0);
			krn_reduce_isa(isa, t, KRN_SUM, NULL, srcs, 2, 0);
			krn_divide_isa(isa, t, NULL, 0, 1);
			krn_divide_isa(isa, t, NULL, 0, 2);
		}
	}
}
END_TEST

START_TEST(chosen_variant_reduces_and_divides)
{
	float a[3] = {1, 2, 3};
	float b[3] = {10, 20, 30};
	const void *const srcs[] = {a, b};

	krn_reduce(KRN_F32, KRN_AVG, a, srcs, 2, 3);
	krn_divide(KRN_F32, a, 3, 2);
	ck_assert_float_eq(a[0], 5.5f);
	ck_assert_float_eq(a[1], 11.0f);
	ck_assert_float_eq(a[2], 16.5f);
}
END_TEST

/* In loop tests _i is type * KRN_OP_COUNT + op. */

START_TEST(reduced_short_arrays_equal_the_reference)
{
	enum krn_dtype t = (enum krn_dtype)(_i / KRN_OP_COUNT);
	enum krn_op op = (enum krn_op)(_i % KRN_OP_COUNT);
	uint64_t seed = 1000 + (uint64_t)_i;
	struct sample sample;

	for (unsigned nsrc = 1; nsrc <= MAX_SOURCES; nsrc++) {
		sample_init(&sample, t, op, nsrc, 67);
		for (enum flavour flavour = 0; flavour < FLAVOUR_COUNT; flavour++) {
			sample_fill(&sample, flavour, &seed);
			FOR_EACH_ISA(isa)
			{
				/* Tests every length, and every alias at least six times. */
				for (unsigned count = 0; count <= 67; count++)
					sample_check(
						&sample, isa, count, count % (nsrc + 1), &seed);
			}
		}
		sample_free(&sample);
	}
}
END_TEST

START_TEST(reduced_long_arrays_equal_the_reference)
{
	static const size_t counts[] = {127, 257, 1021, 8191, 100003};
	static const unsigned nsrcs[] = {1, 2, 3, 8};
	enum krn_dtype t = (enum krn_dtype)(_i / KRN_OP_COUNT);
	enum krn_op op = (enum krn_op)(_i % KRN_OP_COUNT);
	uint64_t seed = 2000 + (uint64_t)_i;
	struct sample sample;

	for (size_t n = 0; n < sizeof(nsrcs) / sizeof(nsrcs[0]); n++) {
		/* The longest array is tested only with the most important number of sources. */
		size_t longest = nsrcs[n] == 2 ? 4 : 3;

		sample_init(&sample, t, op, nsrcs[n], counts[longest]);
		sample_fill(&sample, (enum flavour)(n % FLAVOUR_COUNT), &seed);
		for (size_t c = 0; c <= longest; c++) {
			FOR_EACH_ISA(isa)
			{
				sample_check(&sample, isa, counts[c], (unsigned)c % (nsrcs[n] + 1),
					&seed);
			}
		}
		sample_free(&sample);
	}
}
END_TEST

/* Tests all triples and pairs of special values, because the order of NaN, inf and 0 matters. */
START_TEST(reduced_special_values_equal_the_reference)
{
	enum krn_dtype t = (enum krn_dtype)(_i / KRN_OP_COUNT);
	enum krn_op op = (enum krn_op)(_i % KRN_OP_COUNT);
	uint64_t seed = 3000 + (uint64_t)_i;
	uint64_t specials[REF_MAX_SPECIALS];
	unsigned n = ref_specials(t, specials);
	struct sample sample;

	for (unsigned nsrc = 2; nsrc <= 3; nsrc++) {
		sample_init(&sample, t, op, nsrc, (size_t)n * n * n);
		for (size_t i = 0; i < sample.count; i++) {
			ref_set(t, sample.sources[0], i, specials[i % n]);
			ref_set(t, sample.sources[1], i, specials[i / n % n]);
			if (nsrc == 3)
				ref_set(t, sample.sources[2], i, specials[i / n / n]);
		}
		sample_expect(&sample);
		FOR_EACH_ISA(isa)
		{
			sample_check(&sample, isa, sample.count, nsrc, &seed);
		}
		sample_free(&sample);
	}
}
END_TEST

/* Divides `count` elements at an odd address with each variant, and checks the quotients. */
static void check_divide(enum krn_dtype t, const uint64_t *elements, size_t count, uint32_t divisor)
{
	size_t bytes = count * krn_dtype_size(t);
	unsigned char *area = malloc(bytes + 2 * GUARD + 1);
	unsigned char *buf = area + GUARD + 1;

	REQUIRE(area);
	FOR_EACH_ISA(isa)
	{
		memset(area, GUARD_BYTE, bytes + 2 * GUARD + 1);
		for (size_t i = 0; i < count; i++)
			ref_set(t, buf, i, elements[i]);
		krn_divide_isa(isa, t, buf, count, divisor);
		for (size_t i = 0; i < count; i++) {
			uint64_t is = ref_get(t, buf, i);
			uint64_t must = ref_divide(t, elements[i], divisor);

			if (is == must)
				continue;
			ck_abort_msg("%s: type %d, %" PRIx64 " / %" PRIu32 ": %" PRIx64
				     " instead of %" PRIx64,
				krn_isa_name(isa), (int)t, elements[i], divisor, is, must);
		}
		assert_guard(buf - GUARD);
		assert_guard(buf + bytes);
	}
	free(area);
}

static const uint32_t divisors[] = {2, 3, 4, 5, 7, 10, 64, 127, 128, 129, 255, 256, 257, 1000,
	32767, 32768, 32769, 65535, 65536, 65537, 16777217, 2147483647, UINT32_C(2147483648),
	UINT32_C(2147483649), UINT32_C(4294967295)};
#define DIVISORS (sizeof(divisors) / sizeof(divisors[0]))

/* _i is the type. The elements are random, special, or next to a multiple of the divisor. */
START_TEST(quotients_equal_the_reference)
{
	enum { COUNT = 331 };
	enum krn_dtype t = (enum krn_dtype)_i;
	uint64_t seed = 4000 + (uint64_t)_i;
	uint64_t mask = UINT64_MAX >> (64 - 8 * krn_dtype_size(t));
	uint64_t elements[COUNT + REF_MAX_SPECIALS];

	for (size_t d = 0; d < DIVISORS; d++) {
		unsigned n = ref_specials(t, elements);

		for (size_t i = 0; i < COUNT; i++) {
			elements[n + i] = random_element(t, (enum flavour)(i % 3), &seed) & mask;
			if (!ref_is_float(t) && i % 2 == 0) {
				elements[n + i] -= elements[n + i] % divisors[d];
				elements[n + i] = (elements[n + i] + i % 3 - 1) & mask;
			}
		}
		check_divide(t, elements, n + COUNT, divisors[d]);
		for (size_t count = 0; count < 67; count++)
			check_divide(t, elements + d, count, divisors[d]);
	}
}
END_TEST

START_TEST(quotients_of_small_integers_equal_the_reference)
{
	static uint64_t elements[65536];

	for (size_t i = 0; i < 65536; i++)
		elements[i] = i;
	for (uint32_t divisor = 2; divisor < 300; divisor++) {
		check_divide(KRN_U8, elements, 256, divisor);
		check_divide(KRN_I8, elements, 256, divisor);
	}
	for (size_t d = 0; d < DIVISORS; d++) {
		check_divide(KRN_U16, elements, 65536, divisors[d]);
		check_divide(KRN_I16, elements, 65536, divisors[d]);
	}
}
END_TEST

START_TEST(division_by_one_keeps_all_bits)
{
	const uint16_t signalling[2] = {0x7c01, 0xfc01};
	uint16_t buf[2];

	FOR_EACH_ISA(isa)
	{
		memcpy(buf, signalling, sizeof(buf));
		krn_divide_isa(isa, KRN_F16, buf, 2, 1);
		ck_assert(memcmp(buf, signalling, sizeof(buf)) == 0);
	}
}
END_TEST

static bool is_nan_16(enum krn_dtype t, uint16_t bits)
{
	return (bits & 0x7fff) > (t == KRN_F16 ? 0x7c00 : 0x7f80);
}

/* Converts every f16 and bf16 to the wider type and back: x + -0 and 1 * x must give x. */
START_TEST(half_precision_values_survive_conversion)
{
	static uint16_t x[65536], neutral[65536], got[65536];
	static const enum krn_dtype types[] = {KRN_F16, KRN_BF16};
	const void *const srcs[] = {x, neutral};

	for (uint32_t i = 0; i < 65536; i++)
		x[i] = (uint16_t)i;
	for (size_t k = 0; k < 2; k++) {
		enum krn_dtype t = types[k];
		uint16_t nan = (uint16_t)ref_encode(t, (double)NAN);

		FOR_EACH_ISA(isa)
		{
			for (int op = KRN_SUM; op <= KRN_PROD; op += KRN_PROD - KRN_SUM) {
				uint64_t one = op == KRN_SUM ? 0x8000 : ref_encode(t, 1);

				for (size_t i = 0; i < 65536; i++)
					neutral[i] = (uint16_t)one;
				krn_reduce_isa(isa, t, (enum krn_op)op, got, srcs, 2, 65536);
				for (size_t i = 0; i < 65536; i++)
					REQUIRE(got[i] == (is_nan_16(t, x[i]) ? nan : x[i]));
			}
		}
	}
}
END_TEST

/* Products of two half-precision numbers have twice as many digits, so all cases of rounding occur.
 */
START_TEST(half_precision_products_are_rounded_correctly)
{
	enum krn_dtype t = _i == 0 ? KRN_F16 : KRN_BF16;
	uint64_t seed = 5000 + (uint64_t)_i;
	struct sample sample;

	sample_init(&sample, t, KRN_PROD, 2, 65536);
	for (unsigned round = 0; round < 4; round++) {
		for (size_t i = 0; i < 65536; i++) {
			ref_set(t, sample.sources[0], i, i);
			ref_set(t, sample.sources[1], i,
				random_element(t, round < 3 ? ORDINARY : RAW, &seed));
		}
		sample_expect(&sample);
		FOR_EACH_ISA(isa)
		{
			sample_check(&sample, isa, 65536, 2, &seed);
		}
	}
	sample_free(&sample);
}
END_TEST

static void check_conversions(uint32_t bits)
{
	double value = ref_decode(KRN_F32, bits);
	uint16_t f16 = krn_f32_to_f16(krn_f32_from_bits(bits));
	uint16_t bf16 = krn_f32_to_bf16(krn_f32_from_bits(bits));

	if (f16 != ref_encode(KRN_F16, value) || bf16 != ref_encode(KRN_BF16, value))
		ck_abort_msg(
			"fp32 %" PRIx32 " to f16 %x, bf16 %x", bits, (unsigned)f16, (unsigned)bf16);
}

START_TEST(half_precision_conversions_equal_the_reference)
{
	uint64_t seed = 6000;

	for (uint32_t h = 0; h < 65536; h++) {
		uint32_t f16 = krn_f32_bits(krn_f16_to_f32((uint16_t)h));
		uint32_t bf16 = krn_f32_bits(krn_bf16_to_f32((uint16_t)h));

		REQUIRE(f16 == ref_encode(KRN_F32, ref_decode(KRN_F16, h)));
		REQUIRE(bf16 == ref_encode(KRN_F32, ref_decode(KRN_BF16, h)));
		/* Checks numbers around each value, and around the middle between this and the next
		 * value. */
		for (uint32_t near = 0; near < 3; near++) {
			check_conversions(f16 + near - 1);
			check_conversions(f16 + 0x1000 + near - 1);
			check_conversions(bf16 + near - 1);
			check_conversions(bf16 + 0x8000 + near - 1);
		}
	}
	/* In the subnormal range the middles lie at odd multiples of 2^-25. */
	for (uint32_t units = 1; units < 2048; units += 2) {
		uint32_t middle = krn_f32_bits((float)units * 0x1p-25f);

		for (uint32_t near = 0; near < 3; near++)
			check_conversions(middle + near - 1);
	}
	for (unsigned i = 0; i < 500000; i++)
		check_conversions((uint32_t)ref_random(&seed));
}
END_TEST

Suite *krn_suite(void)
{
	Suite *suite = suite_create("krn");
	TCase *interface = tcase_create("interface");
	TCase *reduce = tcase_create("reduce");
	TCase *division = tcase_create("divide");
	TCase *half = tcase_create("half");

	tcase_add_test(interface, each_type_has_its_size);
	tcase_add_test(interface, variants_are_supported_and_named);
	tcase_add_test(interface, empty_arrays_are_accepted);
	tcase_add_test(interface, chosen_variant_reduces_and_divides);
	suite_add_tcase(suite, interface);

	tcase_set_timeout(reduce, 120);
	tcase_add_loop_test(reduce, reduced_short_arrays_equal_the_reference, 0,
		KRN_DTYPE_COUNT * KRN_OP_COUNT);
	tcase_add_loop_test(
		reduce, reduced_long_arrays_equal_the_reference, 0, KRN_DTYPE_COUNT * KRN_OP_COUNT);
	tcase_add_loop_test(reduce, reduced_special_values_equal_the_reference, 0,
		KRN_DTYPE_COUNT * KRN_OP_COUNT);
	suite_add_tcase(suite, reduce);

	tcase_set_timeout(division, 120);
	tcase_add_loop_test(division, quotients_equal_the_reference, 0, KRN_DTYPE_COUNT);
	tcase_add_test(division, quotients_of_small_integers_equal_the_reference);
	tcase_add_test(division, division_by_one_keeps_all_bits);
	suite_add_tcase(suite, division);

	tcase_set_timeout(half, 120);
	tcase_add_test(half, half_precision_values_survive_conversion);
	tcase_add_loop_test(half, half_precision_products_are_rounded_correctly, 0, 2);
	tcase_add_test(half, half_precision_conversions_equal_the_reference);
	suite_add_tcase(suite, half);
	return suite;
}
