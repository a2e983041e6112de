/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "common/cc_sm.h"
#include "tests/common/suites.h"

enum door { OPEN, CLOSED, LOCKED };

static const struct cc_sm_state door_states[] = {
	[OPEN] = {"open", CC_SM_TO(CLOSED)},
	[CLOSED] = {"closed", CC_SM_TO(OPEN) | CC_SM_TO(LOCKED)},
	[LOCKED] = {"locked", CC_SM_TO(CLOSED)},
};
static const struct cc_sm door = CC_SM(door_states, "a door made a wrong move");

START_TEST(only_moves_of_the_table_are_allowed)
{
	static const bool allowed[3][3] = {
		{false, true, false}, {true, false, true}, {false, true, false}};

	for (uint32_t from = 0; from < 3; from++) {
		for (uint32_t to = 0; to < 3; to++) {
			const char *broken = NULL;

			cc_sm_move(&door, from, to, &broken);
			ck_assert(allowed[from][to] == (broken == NULL));
		}
	}
}
END_TEST

START_TEST(first_wrong_move_is_remembered)
{
	const char *broken = NULL;

	cc_sm_move(&door, OPEN, LOCKED, &broken);
	cc_sm_move(&door, LOCKED, CLOSED, &broken);
	ck_assert_str_eq(broken, "a door made a wrong move");
}
END_TEST

START_TEST(numbers_that_are_no_states_are_wrong)
{
	const char *broken = NULL;

	cc_sm_move(&door, OPEN, 3, &broken);
	ck_assert_ptr_nonnull(broken);
	broken = NULL;
	cc_sm_move(&door, 33, CLOSED, &broken);
	ck_assert_ptr_nonnull(broken);
	ck_assert_str_eq(cc_sm_name(&door, LOCKED), "locked");
	ck_assert_str_eq(cc_sm_name(&door, 3), "?");
}
END_TEST

Suite *sm_suite(void)
{
	Suite *s = suite_create("sm");
	TCase *tc = tcase_create("sm");

	tcase_add_test(tc, only_moves_of_the_table_are_allowed);
	tcase_add_test(tc, first_wrong_move_is_remembered);
	tcase_add_test(tc, numbers_that_are_no_states_are_wrong);
	suite_add_tcase(s, tc);
	return s;
}
