/* SPDX-License-Identifier: MIT
 *
 * Tests of cc_err and cc_id.
 */
#include <string.h>

#include "common/cc_err.h"
#include "common/cc_id.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

START_TEST(each_error_has_its_own_text)
{
	for (int a = CC_ERR_TIMEOUT; a <= CC_OK; a++) {
		ck_assert_str_ne(cc_err_str(a), cc_err_str(1));
		for (int b = a + 1; b <= CC_OK; b++)
			ck_assert_str_ne(cc_err_str(a), cc_err_str(b));
	}
	ck_assert_str_eq(cc_err_str(-1000), cc_err_str(1));
}
END_TEST

START_TEST(ids_are_written_in_hexadecimal)
{
	struct cc_id id = {{0x00, 0x1f, 0xa0, 0xff, 0x42}};
	char full[CC_ID_STR_SIZE], brief[CC_ID_SHORT_SIZE];

	ck_assert_str_eq(cc_id_str(&id, full), "001fa0ff420000000000000000000000");
	ck_assert_str_eq(cc_id_short(&id, brief), "001fa0ff");
}
END_TEST

START_TEST(ids_are_compared_by_all_bytes)
{
	struct cc_id a = {{0}}, b = {{0}};

	ck_assert(cc_id_is_zero(&a));
	ck_assert(cc_id_eq(&a, &b));
	b.b[15] = 1;
	ck_assert(!cc_id_is_zero(&b));
	ck_assert(!cc_id_eq(&a, &b));
}
END_TEST

Suite *basics_suite(void)
{
	Suite *s = suite_create("basics");
	TCase *tc = tcase_create("basics");

	tcase_add_test(tc, each_error_has_its_own_text);
	tcase_add_test(tc, ids_are_written_in_hexadecimal);
	tcase_add_test(tc, ids_are_compared_by_all_bytes);
	suite_add_tcase(s, tc);
	return s;
}
