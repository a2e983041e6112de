/* SPDX-License-Identifier: MIT
 *
 * The agent's I/O with a fake engine, against hostile processes, masters and peers.
 */
#include <stdlib.h>

#include "tests/agentio/suites.h"

int main(void)
{
	SRunner *r = srunner_create(region_suite());
	int failed;

	srunner_add_suite(r, session_suite());
	srunner_add_suite(r, queue_suite());
	srunner_add_suite(r, hello_suite());
	srunner_add_suite(r, link_suite());
	srunner_add_suite(r, options_suite());
	srunner_add_suite(r, attach_suite());
	srunner_add_suite(r, process_suite());
	srunner_add_suite(r, redial_suite());
	srunner_add_suite(r, stop_suite());
	srunner_add_suite(r, manifest_suite());
	srunner_add_suite(r, sync_suite());
	srunner_add_suite(r, small_suite());
	srunner_add_suite(r, findings_suite());
	srunner_add_suite(r, kept_suite());
	srunner_add_suite(r, place_suite());
	srunner_add_suite(r, narrow_suite());
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
