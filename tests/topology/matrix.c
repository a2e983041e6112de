/* SPDX-License-Identifier: MIT
 *
 * Files with rates or costs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cc_err.h"
#include "tests/topology/brute.h"
#include "tests/topology/suites.h"

static char why[TPL_WHY_SIZE];
static struct tpl_matrix m;

static void parse(const char *text)
{
	ck_assert_msg(tpl_matrix_parse(text, strlen(text), &m, why) == 0, "%s", why);
}

START_TEST(all_sections_are_read)
{
	parse("# three hosts\n"
	      "\n"
	      "hosts a b.example c_3   # names\n"
	      "rates Mbit/s\n"
	      "-\t100  2.5e2\r\n"
	      "# between rows\n"
	      "  0 - 1\n"
	      "3 4 -\n"
	      "round-trips ms\n"
	      "- 1 2\n"
	      "3 - 0.5\n"
	      "5 6 -\n"
	      "caps Gbit/s\n"
	      "1 2\n"
	      "0 4\n"
	      "5 6"); /* the last line has no end */
	ck_assert_uint_eq(m.n, 3);
	ck_assert_str_eq(m.name[1], "b.example");
	ck_assert_str_eq(m.name[2], "c_3");
	ck_assert(m.rate[0] == 0 && m.rate[1] == 1e8 && m.rate[2] == 2.5e8);
	ck_assert(m.rate[3] == 0 && m.rate[7] == 4e6);
	ck_assert_double_eq_tol(m.trip[1], 1e-3, 1e-15);
	ck_assert_double_eq_tol(m.trip[5], 5e-4, 1e-15);
	ck_assert(m.out[0] == 1e9 && m.in[0] == 2e9 && m.out[1] == 0 && m.in[2] == 6e9);
	ck_assert_ptr_null(m.cost);
	tpl_matrix_clear(&m);
}
END_TEST

START_TEST(hosts_can_be_a_number)
{
	parse("hosts 2\nrates bit/s\n0 7\n8 0\n");
	ck_assert_uint_eq(m.n, 2);
	ck_assert_str_eq(m.name[0], "0");
	ck_assert_str_eq(m.name[1], "1");
	ck_assert(m.rate[1] == 7 && m.rate[2] == 8);
	ck_assert_ptr_null(m.trip);
	ck_assert_ptr_null(m.out);
	tpl_matrix_clear(&m);
}
END_TEST

START_TEST(tsplib_files_are_read)
{
	parse("NAME : x # 1\n"
	      "COMMENT: TYPE: TSP\n"
	      "TYPE: ATSP\n"
	      "DIMENSION: 3\n"
	      "EDGE_WEIGHT_TYPE : EXPLICIT\n"
	      "EDGE_WEIGHT_FORMAT: FULL_MATRIX \n"
	      "EDGE_WEIGHT_SECTION\n"
	      " 9999 1 2\n"
	      " 3 9999\n"
	      " 4 5 6 9999\n"
	      "EOF\n");
	ck_assert_uint_eq(m.n, 3);
	ck_assert_str_eq(m.name[2], "3");
	ck_assert(m.cost[1] == 1 && m.cost[2] == 2 && m.cost[3] == 3 && m.cost[7] == 6);
	ck_assert_ptr_null(m.rate);
	tpl_matrix_clear(&m);
}
END_TEST

#define HEAD                                                                                       \
	"TYPE: ATSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"

START_TEST(wrong_files_are_refused)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "line 0: the file ends before the section hosts"},
		{"# nothing\n", "line 1: the file ends before the section hosts"},
		{"hosts a b\n", "line 1: the file ends before the section rates"},
		{"rates bit/s\n", "line 1: the section hosts must come before rates"},
		{"nodes 2\n", "line 1: \"nodes\" begins no section; the sections are hosts"},
		{"hosts\n", "line 1: hosts needs names, or a number from 2 to 1024"},
		{"hosts 1\n", "line 1: hosts is \"1\", it must be names of at least two hosts"},
		{"hosts a\n", "line 1: hosts is \"a\", it must be names of at least two hosts"},
		{"hosts 1025\n", "or a number from 2 to 1024"},
		{"hosts a b a\n", "line 1: hosts 1 and 3 have the same name: a"},
		{"hosts a b\nhosts a b\n", "line 2: there are two sections hosts"},
		{"hosts a \x01z\n", "line 1: the name of host 2 contains the byte 1"},
		{"hosts a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n",
			"line 1: the name of host 2 has 65 bytes, it may have at most 63"},
		{"hosts a b\nrates\n",
			"line 2: rates needs a unit: bit/s, kbit/s, Mbit/s and Gbit/s"},
		{"hosts a b\nrates mbit/s\n", "line 2: rates has no unit \"mbit/s\""},
		{"hosts a b\nrates bit/s - 1\n", "line 2: after the unit of rates there is \"-\""},
		{"hosts a b\nrates bit/s\n- 1\n", "line 3: the file ends before row 2 of rates"},
		{"hosts a b\nrates bit/s\n- 1\n2\n",
			"line 4: row 2 of rates has fewer than 2 numbers"},
		{"hosts a b\nrates bit/s\n- 1 5\n2 -\n",
			"line 3: row 1 of rates has more than 2 numbers"},
		{"hosts a b\nrates bit/s\n- x\n2 -\n", "line 3: row 1 of rates has \"x\" in column "
						       "2, it must be a number from 0 to 1e+15"},
		{"hosts a b\nrates Gbit/s\n- 1e7\n2 -\n", "it must be a number from 0 to 1e+06"},
		{"hosts a b\nrates bit/s\n- -1\n2 -\n", "has \"-1\" in column 2"},
		{"hosts a b\nrates bit/s\n- inf\n2 -\n", "has \"inf\" in column 2"},
		{"hosts a b\nrates bit/s\n- 0x1\n2 -\n", "has \"0x1\" in column 2"},
		{"hosts a b\nrates bit/s\n- 1e\n2 -\n", "has \"1e\" in column 2"},
		{"hosts a b\nrates bit/s\n- -\n2 -\n", "line 3: row 1 of rates has \"-\" in column "
						       "2, but \"-\" stands only in the diagonal"},
		{"hosts a b\nrates bit/s\n- 1\n1 -\nrates bit/s\n",
			"line 5: there are two sections rates"},
		{"hosts a b\nrates bit/s\n- 1\n1 -\nround-trips s\n",
			"line 5: round-trips has no unit \"s\": the units are us and ms"},
		{"hosts a b\nrates bit/s\n- 1\n1 -\ncaps bit/s\n1 1\n- 1\n",
			"line 7: row 2 of caps has \"-\" in column 1, it must be a number"},
		{"hosts a b\nrates bit/s\n- 1\n1 -\ncaps bit/s\n1 1\n1 1\ncaps bit/s\n",
			"line 8: there are two sections caps"},
		{"TYPE: TSP\n", "line 1: TYPE is \"TSP\", it must be ATSP"},
		{"DIMENSION: 1\n",
			"line 1: DIMENSION is \"1\", it must be a number from 2 to 1024"},
		{"DIMENSION:\n", "line 1: DIMENSION is \"\""},
		{"EDGE_WEIGHT_TYPE: EUC_2D\n", "it must be EXPLICIT"},
		{"EDGE_WEIGHT_FORMAT: UPPER_ROW\n", "it must be FULL_MATRIX"},
		{"TYPE: ATSP\nEDGE_WEIGHT_SECTION\n", "line 2: DIMENSION is missing"},
		{"TYPE: ATSP\nDIMENSION: 2\nEDGE_WEIGHT_SECTION\n",
			"line 3: EDGE_WEIGHT_TYPE is missing"},
		{HEAD, "line 4: the file ends before EDGE_WEIGHT_SECTION"},
		{HEAD "EDGE_WEIGHT_SECTION\n0 1\n2\n",
			"line 7: the file ends before row 2, column 2 of the matrix"},
		{HEAD "EDGE_WEIGHT_SECTION\n0 -1\n", "line 6: row 1 of the matrix has \"-1\" in "
						     "column 2, it must be a number from 0 to "
						     "1e+12"},
		{HEAD "EDGE_WEIGHT_SECTION\n0 1\n1 0\n5\n",
			"line 8: after the matrix of 2 rows there is \"5\""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int err = tpl_matrix_parse(cases[i].text, strlen(cases[i].text), &m, why);

		ck_assert_msg(err == CC_ERR_INVAL, "%s", cases[i].text);
		ck_assert_msg(strstr(why, cases[i].why), "%s: %s", cases[i].text, why);
	}
}
END_TEST

/* Words of any length are quoted in errors, which have a fixed size. */
START_TEST(long_words_are_cut_in_errors)
{
	char text[400] = "hosts a b\nrates ";

	memset(text + strlen(text), 'x', 300);
	ck_assert_int_eq(tpl_matrix_parse(text, strlen(text), &m, why), CC_ERR_INVAL);
	ck_assert_ptr_nonnull(strstr(why, "xxx\": the units are"));
}
END_TEST

START_TEST(files_have_at_most_1024_hosts)
{
	char *text = malloc(16384);
	size_t len;

	ck_assert_ptr_nonnull(text);
	len = (size_t)sprintf(text, "hosts ");
	for (unsigned i = 0; i <= TPL_HOSTS_MAX; i++)
		len += (size_t)sprintf(text + len, "h%u ", i);
	ck_assert_int_eq(tpl_matrix_parse(text, len, &m, why), CC_ERR_INVAL);
	ck_assert_ptr_nonnull(strstr(why, "line 1: hosts has more than 1024 names"));
	free(text);
}
END_TEST

Suite *matrix_suite(void)
{
	const TTest *const tests[] = {all_sections_are_read, hosts_can_be_a_number,
		tsplib_files_are_read, wrong_files_are_refused, long_words_are_cut_in_errors,
		files_have_at_most_1024_hosts};
	Suite *s = suite_create("matrix");
	TCase *c = tcase_create("matrix");

	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return s;
}
