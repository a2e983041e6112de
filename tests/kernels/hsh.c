/* SPDX-License-Identifier: MIT */
/*
 * Tests every variant of the hash that this CPU supports. The hashes must equal the vectors of
 * hsh_reference.py, all variants must agree, and the hash must have good quality.
 */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/hsh.h"
#include "tests/kernels/hsh_vectors.h"
#include "tests/kernels/krn_ref.h"
#include "tests/kernels/suites.h"

#define MAX_BYTES ((size_t)262144)
#define STRIPE    ((size_t)128)
#define BLOCK     ((size_t)2048)

#define FOR_EACH_ISA(isa)                                                                          \
	for (enum hsh_isa isa = HSH_ISA_SCALAR; (isa) < HSH_ISA_COUNT; (isa)++)                    \
		if (hsh_isa_supported(isa))

static unsigned char *allocate(size_t bytes)
{
	unsigned char *p = malloc(bytes);

	ck_assert_ptr_nonnull(p);
	return p;
}

static unsigned char *random_bytes(size_t bytes, uint64_t *seed)
{
	unsigned char *p = allocate(bytes);

	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(ref_random(seed) >> 32);
	return p;
}

/* Does the same as pattern() of hsh_reference.py. */
static unsigned char *pattern(size_t bytes)
{
	unsigned char *p = allocate(bytes);

	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(((uint32_t)i * UINT32_C(0x9e3779b1)) >> 24);
	return p;
}

START_TEST(variants_are_supported_and_named)
{
	FOR_EACH_ISA(isa)
	printf("hsh: testing %s\n", hsh_isa_name(isa));
	ck_assert(hsh_isa_supported(HSH_ISA_SCALAR));
	ck_assert(!hsh_isa_supported(HSH_ISA_COUNT));
	ck_assert(hsh_isa_supported(hsh_isa_current()));
	ck_assert_str_eq(hsh_isa_name(HSH_ISA_SCALAR), "scalar");
	ck_assert_str_eq(hsh_isa_name(HSH_ISA_AVX512), "avx512");
	ck_assert_str_eq(hsh_isa_name(HSH_ISA_COUNT), "unknown");
	for (int isa = (int)hsh_isa_current() + 1; isa < HSH_ISA_COUNT; isa++)
		ck_assert(!hsh_isa_supported((enum hsh_isa)isa));
}
END_TEST

START_TEST(hashes_equal_the_reference_vectors)
{
	unsigned char *data = pattern(MAX_BYTES);

	FOR_EACH_ISA(isa)
	for (size_t i = 0; i < sizeof(hsh_vectors) / sizeof(hsh_vectors[0]); i++)
		ck_assert_uint_eq(
			hsh_hash_isa(isa, data, hsh_vectors[i].bytes, hsh_vectors[i].seed),
			hsh_vectors[i].hash);
	free(data);
}
END_TEST

START_TEST(tensor_hashes_equal_the_reference_vectors)
{
	unsigned char *data = pattern(MAX_BYTES);
	uint64_t leaves[MAX_BYTES / HSH_LEAF];

	for (size_t i = 0; i < sizeof(hsh_tensor_vectors) / sizeof(hsh_tensor_vectors[0]); i++) {
		size_t bytes = hsh_tensor_vectors[i].bytes;

		hsh_leaves(hsh_leaf, data, bytes, 0, UINT64_MAX, leaves);
		ck_assert_uint_eq(hsh_tensor(leaves, bytes), hsh_tensor_vectors[i].hash);
	}
	free(data);
}
END_TEST

START_TEST(empty_input_has_the_reference_hash)
{
	FOR_EACH_ISA(isa)
	ck_assert_uint_eq(hsh_hash_isa(isa, NULL, 0, 0), hsh_vectors[0].hash);
	ck_assert_uint_eq(hsh_hash(NULL, 0, 0), hsh_vectors[0].hash);
	ck_assert_uint_eq(hsh_tensor(NULL, 0), hsh_vectors[0].hash);
}
END_TEST

START_TEST(variants_agree)
{
	uint64_t seed = 1;
	unsigned char *data = random_bytes(MAX_BYTES + 64, &seed);

	for (unsigned i = 0; i < 3000; i++) {
		/* Most inputs are short, and some have several leaves. */
		size_t bytes = ref_random(&seed) % ((size_t)1 << (1 + i % 18));
		size_t at = ref_random(&seed) % 64;
		uint64_t s = ref_random(&seed);
		uint64_t expected = hsh_hash_isa(HSH_ISA_SCALAR, data + at, bytes, s);

		FOR_EACH_ISA(isa)
		REQUIRE(hsh_hash_isa(isa, data + at, bytes, s) == expected);
		REQUIRE(hsh_hash(data + at, bytes, s) == expected);
	}
	free(data);
}
END_TEST

START_TEST(alignment_does_not_matter)
{
	uint64_t seed = 2;
	unsigned char *data = random_bytes(5000, &seed);
	unsigned char *copy = allocate(5000 + 64);

	FOR_EACH_ISA(isa)
	for (size_t bytes = 0; bytes < 5000; bytes += bytes < 300 ? 1 : 611) {
		uint64_t expected = hsh_hash_isa(isa, data, bytes, 7);

		for (size_t at = 0; at < 64; at++) {
			memcpy(copy + at, data, bytes);
			REQUIRE(hsh_hash_isa(isa, copy + at, bytes, 7) == expected);
		}
	}
	free(copy);
	free(data);
}
END_TEST

/* The input lies between two pages that cannot be read. */
START_TEST(hash_reads_only_its_input)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages = aligned_alloc(page, 4 * page);
	unsigned char *data = pages + page;

	ck_assert_ptr_nonnull(pages);
	memset(data, 0, 2 * page);
	ck_assert_int_eq(mprotect(pages, page, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(data + 2 * page, page, PROT_NONE), 0);
	FOR_EACH_ISA(isa)
	for (size_t bytes = 0; bytes <= 2 * page; bytes++)
		REQUIRE(hsh_hash_isa(isa, data, bytes, 0) ==
			hsh_hash_isa(isa, data + 2 * page - bytes, bytes, 0));
	ck_assert_int_eq(mprotect(pages, 4 * page, PROT_READ | PROT_WRITE), 0);
	free(pages);
}
END_TEST

START_TEST(ranges_of_leaves_are_hashed)
{
	const uint64_t sentinel = 0x5555;
	uint64_t seed = 3, all[5], some[5];
	size_t bytes = 3 * HSH_LEAF + 1001;
	unsigned char *data = random_bytes(bytes, &seed);

	ck_assert_uint_eq(hsh_leaf_count(0), 0);
	ck_assert_uint_eq(hsh_leaf_count(1), 1);
	ck_assert_uint_eq(hsh_leaf_count(HSH_LEAF), 1);
	ck_assert_uint_eq(hsh_leaf_count(HSH_LEAF + 1), 2);
	ck_assert_uint_eq(hsh_leaf_count(UINT64_MAX), (uint64_t)1 << 48);
	for (unsigned i = 0; i < 5; i++)
		all[i] = sentinel;
	hsh_leaves(hsh_leaf, data, bytes, 0, 5, all);
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_uint_eq(
			all[i], hsh_hash(data + i * HSH_LEAF, i < 3 ? HSH_LEAF : (size_t)1001, i));
	ck_assert_uint_eq(all[4], sentinel);
	/* Tests all ranges of leaves, also ranges beyond the last leaf. */
	for (uint64_t first = 0; first <= 5; first++)
		for (uint64_t n = 0; n <= 5; n++) {
			for (unsigned i = 0; i < 5; i++)
				some[i] = sentinel;
			hsh_leaves(hsh_leaf, data, bytes, first, n, some);
			for (uint64_t i = 0; i < 5; i++)
				ck_assert_uint_eq(some[i],
					i < n && first + i < 4 ? all[first + i] : sentinel);
		}
	free(data);
}
END_TEST

START_TEST(digest_consists_of_two_hashes)
{
	uint64_t digest[2], changed[2];
	unsigned char data[40] = {1, 2, 3};

	hsh_digest(data, sizeof(data), digest);
	ck_assert_uint_eq(digest[0], hsh_hash(data, sizeof(data), 1));
	ck_assert_uint_eq(digest[1], hsh_hash(data, sizeof(data), 2));
	data[39] = 1;
	hsh_digest(data, sizeof(data), changed);
	ck_assert_uint_ne(digest[0], changed[0]);
	ck_assert_uint_ne(digest[1], changed[1]);
}
END_TEST

START_TEST(every_bit_of_the_input_changes_the_hash)
{
	static const size_t sizes[] = {1, 7, 8, 100, 128, 129, 2048, 2050, 5000};
	uint64_t seed = 4;

	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i / 2];
		unsigned char *data = random_bytes(bytes, &seed);
		uint64_t h;

		if (i % 2)
			memset(data, 0, bytes);
		h = hsh_hash(data, bytes, 0);
		for (size_t bit = 0; bit < bytes * 8; bit++) {
			data[bit / 8] ^= (unsigned char)(1U << bit % 8);
			REQUIRE(hsh_hash(data, bytes, 0) != h);
			data[bit / 8] ^= (unsigned char)(1U << bit % 8);
		}
		REQUIRE(hsh_hash(data, bytes, 0) == h);
		for (unsigned bit = 0; bit < 64; bit++)
			REQUIRE(hsh_hash(data, bytes, (uint64_t)1 << bit) != h);
		free(data);
	}
}
END_TEST

/* Exchanges two parts of `bytes` bytes. */
static void swap(unsigned char *x, unsigned char *y, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = x[i];

		x[i] = y[i];
		y[i] = c;
	}
}

/* Any two different parts of the same size are exchanged. The sizes go from one byte to a leaf. */
START_TEST(order_of_parts_changes_the_hash)
{
	static const size_t units[] = {1, 4, 8, STRIPE, BLOCK, 16384, HSH_LEAF};
	size_t unit = units[_i];
	size_t bytes = unit < 16 ? 2 * BLOCK : unit == STRIPE ? 4 * BLOCK : 16 * unit;
	size_t n = bytes / unit;
	uint64_t seed = 5, h;
	unsigned char *data;

	if (unit == HSH_LEAF)
		bytes = (n = 4) * unit;
	data = random_bytes(bytes, &seed);
	h = hsh_hash(data, bytes, 0);
	for (size_t x = 0; x < n; x++)
		for (size_t y = x + 1; y < n && (unit > 8 || y <= x + 300); y++) {
			if (memcmp(data + x * unit, data + y * unit, unit) == 0)
				continue;
			swap(data + x * unit, data + y * unit, unit);
			REQUIRE(hsh_hash(data, bytes, 0) != h);
			swap(data + x * unit, data + y * unit, unit);
		}
	/* Exchanges two lanes in all stripes. */
	for (size_t x = 0; x < 16; x++)
		for (size_t y = x + 1; y < 16; y++) {
			for (size_t at = 0; at < bytes; at += STRIPE)
				swap(data + at + x * 8, data + at + y * 8, 8);
			REQUIRE(hsh_hash(data, bytes, 0) != h);
			for (size_t at = 0; at < bytes; at += STRIPE)
				swap(data + at + x * 8, data + at + y * 8, 8);
		}
	REQUIRE(hsh_hash(data, bytes, 0) == h);
	free(data);
}
END_TEST

START_TEST(order_of_leaves_changes_the_tensor_hash)
{
	size_t bytes = 4 * HSH_LEAF;
	uint64_t seed = 6, before[4], after[4], h;
	unsigned char *data = random_bytes(bytes, &seed);

	hsh_leaves(hsh_leaf, data, bytes, 0, 4, before);
	h = hsh_tensor(before, bytes);
	ck_assert_uint_ne(h, hsh_tensor(before, bytes - 1));
	for (size_t x = 0; x < 4; x++)
		for (size_t y = x + 1; y < 4; y++) {
			swap(data + x * HSH_LEAF, data + y * HSH_LEAF, HSH_LEAF);
			hsh_leaves(hsh_leaf, data, bytes, 0, 4, after);
			ck_assert_uint_ne(after[x], before[y]);
			ck_assert_uint_ne(after[y], before[x]);
			ck_assert_uint_ne(hsh_tensor(after, bytes), h);
			swap(data + x * HSH_LEAF, data + y * HSH_LEAF, HSH_LEAF);
		}
	/* Equal leaves with different numbers have different hashes, too. */
	memset(data, 0, bytes);
	hsh_leaves(hsh_leaf, data, bytes, 0, 4, before);
	ck_assert_uint_ne(before[0], before[1]);
	free(data);
}
END_TEST

/*
 * When one bit of many inputs is flipped, each bit of the hash must flip in half of them. With 4096
 * inputs this fraction has a standard deviation of 0.0078. The tolerance of 0.05 is more than six
 * standard deviations. Chance exceeds it about once in 10^9 cases, and there are 64 cases for each
 * flipped bit.
 */
#define AVALANCHE_INPUTS    4096
#define AVALANCHE_TOLERANCE (AVALANCHE_INPUTS / 20)

static const struct avalanche {
	size_t bytes;
	unsigned bits; /* number of flipped bits, spread over the input */
	bool counter;  /* inputs are a counter followed by zeros, not random bytes */
} avalanches[] = {
	{1, 8, false},
	{4, 32, false},
	{8, 64, false},
	{8, 64, true},
	{16, 128, true},
	{31, 248, false},
	{128, 256, false},
	{128, 256, true},
	{200, 200, false},
	{2048, 64, true},
	{4096, 64, false},
	{65536, 6, true},
};

/* Counts, for each of the 64 bits of the hash, the inputs for which this bit flipped. */
static void count_flips(unsigned flips[64], uint64_t difference)
{
	for (unsigned i = 0; i < 64; i++)
		flips[i] += (unsigned)(difference >> i & 1);
}

static void require_half(const unsigned flips[64])
{
	for (unsigned i = 0; i < 64; i++) {
		REQUIRE(flips[i] >= AVALANCHE_INPUTS / 2 - AVALANCHE_TOLERANCE);
		REQUIRE(flips[i] <= AVALANCHE_INPUTS / 2 + AVALANCHE_TOLERANCE);
	}
}

START_TEST(each_input_bit_flips_half_of_the_hash_bits)
{
	const struct avalanche *c = &avalanches[_i];
	unsigned(*flips)[64] = calloc(c->bits, sizeof(*flips));
	unsigned char *data = calloc(1, c->bytes);
	uint64_t seed = 7;

	ck_assert_ptr_nonnull(flips);
	ck_assert_ptr_nonnull(data);
	for (uint64_t i = 0; i < AVALANCHE_INPUTS; i++) {
		/* A single byte has too few values, so short inputs use different seeds. */
		uint64_t s = c->bytes < 4 ? i : 0, h;

		if (c->counter)
			memcpy(data, &i, sizeof(i));
		for (size_t b = 0; b < c->bytes && !c->counter; b++)
			data[b] = (unsigned char)(ref_random(&seed) >> 32);
		h = hsh_hash(data, c->bytes, s);
		for (size_t k = 0; k < c->bits; k++) {
			size_t bit = c->bits == c->bytes * 8
					     ? k
					     : k * (c->bytes * 8 - 1) / (c->bits - 1);

			data[bit / 8] ^= (unsigned char)(1U << bit % 8);
			count_flips(flips[k], h ^ hsh_hash(data, c->bytes, s));
			data[bit / 8] ^= (unsigned char)(1U << bit % 8);
		}
	}
	for (unsigned k = 0; k < c->bits; k++)
		require_half(flips[k]);
	free(data);
	free(flips);
}
END_TEST

START_TEST(each_seed_bit_flips_half_of_the_hash_bits)
{
	unsigned flips[64][64] = {{0}};
	unsigned char data[24] = {0};

	for (uint64_t i = 0; i < AVALANCHE_INPUTS; i++)
		for (unsigned bit = 0; bit < 64; bit++)
			count_flips(flips[bit],
				hsh_hash(data, sizeof(data), i) ^
					hsh_hash(data, sizeof(data), i ^ (uint64_t)1 << bit));
	for (unsigned bit = 0; bit < 64; bit++)
		require_half(flips[bit]);
}
END_TEST

static int compare(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

#define MANY ((size_t)1 << 20)

/* Writes the i-th of 2^20 similar inputs and returns its size. */
static size_t related(unsigned kind, unsigned char *data, size_t i)
{
	uint32_t words[2] = {(uint32_t)(i >> 10), (uint32_t)(i & 1023)};
	size_t bits = 8 * BLOCK;

	switch (kind) {
	case 0: /* counters */
		memcpy(data, &i, sizeof(i));
		return 8;
	case 1: /* counters in the upper half of the second lane of a whole block */
		memcpy(data + 12, &i, 4);
		return BLOCK;
	case 2: /* zeros of different length */
		return i / 16;
	case 3: /* two bits of a block */
		data[i % bits / 8] ^= (unsigned char)(1U << i % 8);
		bits = (i % bits + 1 + i / bits * 251) % bits;
		data[bits / 8] ^= (unsigned char)(1U << bits % 8);
		return BLOCK;
	case 4: /* one word grows by i, and the same word of the next block shrinks by i */
		memcpy(data + 64, &i, 4);
		i = (size_t)0 - i;
		memcpy(data + 64 + BLOCK, &i, 4);
		return 2 * BLOCK;
	default: /* small floats in two lanes */
		memcpy(data + 8, words, 4);
		memcpy(data + 16, words + 1, 4);
		return 256;
	}
}

/* Among 2^20 random numbers of 64 bits, two are equal with a probability of 2^-25. */
START_TEST(similar_inputs_have_different_hashes)
{
	uint64_t *hashes = malloc(MANY * sizeof(*hashes));
	unsigned char *data = allocate(MANY / 16);
	size_t different = 0;

	ck_assert_ptr_nonnull(hashes);
	memset(data, 0, MANY / 16);
	for (size_t i = 0; i < MANY; i++) {
		size_t bytes = related((unsigned)_i, data, i);

		/* Zeros are hashed with sixteen different seeds. */
		hashes[i] = hsh_hash(data, bytes, _i == 2 ? i % 16 : 0);
		if (_i != 2)
			memset(data, 0, bytes);
	}
	qsort(hashes, MANY, sizeof(*hashes), compare);
	for (size_t i = 1; i < MANY; i++)
		different += hashes[i] != hashes[i - 1];
	ck_assert_uint_eq(different + 1, MANY);
	free(data);
	free(hashes);
}
END_TEST

Suite *hsh_suite(void)
{
	Suite *suite = suite_create("hsh");
	TCase *value = tcase_create("value");
	TCase *quality = tcase_create("quality");

	tcase_set_timeout(value, 120);
	tcase_add_test(value, variants_are_supported_and_named);
	tcase_add_test(value, hashes_equal_the_reference_vectors);
	tcase_add_test(value, tensor_hashes_equal_the_reference_vectors);
	tcase_add_test(value, empty_input_has_the_reference_hash);
	tcase_add_test(value, variants_agree);
	tcase_add_test(value, alignment_does_not_matter);
	tcase_add_test(value, hash_reads_only_its_input);
	tcase_add_test(value, ranges_of_leaves_are_hashed);
	tcase_add_test(value, digest_consists_of_two_hashes);
	suite_add_tcase(suite, value);

	tcase_set_timeout(quality, 120);
	tcase_add_test(quality, every_bit_of_the_input_changes_the_hash);
	tcase_add_loop_test(quality, order_of_parts_changes_the_hash, 0, 7);
	tcase_add_test(quality, order_of_leaves_changes_the_tensor_hash);
	tcase_add_loop_test(quality, each_input_bit_flips_half_of_the_hash_bits, 0,
		(int)(sizeof(avalanches) / sizeof(avalanches[0])));
	tcase_add_test(quality, each_seed_bit_flips_half_of_the_hash_bits);
	tcase_add_loop_test(quality, similar_inputs_have_different_hashes, 0, 6);
	suite_add_tcase(suite, quality);
	return suite;
}
