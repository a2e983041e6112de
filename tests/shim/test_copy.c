/* SPDX-License-Identifier: MIT
 *
 * Copies of results, past the caches and not: exactly the bytes asked for, wherever they lie.
 */
#include <stdint.h>
#include <string.h>

#include "libpccl-shim/copy.h"
#include "tests/common/testlib.h"

#define MOST   ((size_t)3 * 16384 + 500)
#define AROUND 256u
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

START_TEST(what_is_asked_for_and_nothing_else)
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

int main(void)
{
	Suite *s = suite_create("copy");
	TCase *t = tcase_create("copy");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, what_is_asked_for_and_nothing_else);
	suite_add_tcase(s, t);
	return tl_run(s);
}
