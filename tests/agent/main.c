/* SPDX-License-Identifier: MIT
 *
 * Runs all suites of the agent's core.
 */
#include "tests/agent/fixture.h"

int main(void)
{
	SRunner *r = srunner_create(session_suite());
	int failed;

	srunner_add_suite(r, run_suite());
	srunner_add_suite(r, round_suite());
	srunner_add_suite(r, op_suite());
	srunner_add_suite(r, ahead_suite());
	srunner_add_suite(r, end_suite());
	srunner_add_suite(r, leave_suite());
	srunner_add_suite(r, resume_suite());
	srunner_add_suite(r, seek_suite());
	srunner_add_suite(r, wait_suite());
	srunner_add_suite(r, stuck_suite());
	srunner_add_suite(r, quiet_suite());
	srunner_add_suite(r, sync_suite());
	srunner_add_suite(r, sync_end_suite());
	srunner_add_suite(r, attach_suite());
	srunner_add_suite(r, random_suite());
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
