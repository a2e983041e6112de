/* SPDX-License-Identifier: MIT
 *
 * Copies of results, with and without the caches, and exchanges. They change exactly the bytes
 * asked for, at any alignment.
 */
#include <stdint.h>
#include <string.h>

#include "libpccl-shim/copy.h"
#include "tests/common/testlib.h"
#include "tests/shim/suites.h"

#define MOST   ((size_t)3 * 16384 + 500)
#define AROUND ((size_t)256)
#define LARGE  ((size_t)1 << 30)

static uint8_t src[MOST + AROUND], dst[MOST + 2 * AROUND], expected[MOST + 2 * AROUND];

static void one(size_t n, size_t from, size_t to, size_t whole)
{
	memset(dst, 0xee, sizeof dst);
	memset(expected, 0xee, sizeof expected);
	for (size_t i = 0; i < n; i++)
		expected[AROUND + to + i] = src[from + i];
	pccl_copy_out(dst + AROUND + to, src + from, n, whole);
	ck_assert_msg(memcmp(dst, expected, sizeof dst) == 0, "%zu bytes from %zu to %zu, of %zu",
		n, from, to, whole);
}

START_TEST(a_copy_writes_exactly_the_bytes_asked_for)
{
	static const size_t sizes[] = {
		0, 1, 3, 63, 64, 65, 127, 4096, 16383, 16384, 16385, 32768, MOST - 1, MOST};

	for (size_t i = 0; i < sizeof src; i++)
		src[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 14));
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (size_t from = 0; from < 70; from += 23)
			for (size_t to = 0; to < 130; to += 13) {
				one(sizes[k], from, to, LARGE);
				one(sizes[k], from, to, sizes[k]);
			}
}
END_TEST

static uint8_t left[MOST + 2 * AROUND], right[MOST + 2 * AROUND];
static uint8_t left_was[MOST + 2 * AROUND], right_was[MOST + 2 * AROUND];

static void exchange(size_t n, size_t a, size_t b)
{
	memcpy(left, left_was, sizeof left);
	memcpy(right, right_was, sizeof right);
	pccl_copy_swap(left + a, right + b, n);
	ck_assert_msg(memcmp(left, left_was, a) == 0 && memcmp(left + a, right_was + b, n) == 0 &&
			      memcmp(left + a + n, left_was + a + n, sizeof left - a - n) == 0 &&
			      memcmp(right, right_was, b) == 0 &&
			      memcmp(right + b, left_was + a, n) == 0 &&
			      memcmp(right + b + n, right_was + b + n, sizeof right - b - n) == 0,
		"%zu bytes at %zu and %zu", n, a, b);
}

START_TEST(an_exchange_changes_exactly_both_ranges)
{
	static const size_t sizes[] = {
		0, 1, 63, 64, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 16385, MOST - 1, MOST};

	for (size_t i = 0; i < sizeof left; i++) {
		left_was[i] = (uint8_t)(i * 31 + (i >> 8) * 7);
		right_was[i] = (uint8_t)(i * 17 + (i >> 8) * 3 + 1);
	}
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (size_t a = 0; a < 70; a += 23)
			for (size_t b = 0; b < 130; b += 13)
				exchange(sizes[k], a, b);
}
END_TEST

Suite *copy_suite(void)
{
	Suite *s = suite_create("copy");
	TCase *t = tcase_create("copy");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_copy_writes_exactly_the_bytes_asked_for);
	tcase_add_test(t, an_exchange_changes_exactly_both_ranges);
	suite_add_tcase(s, t);
	return s;
}
