/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runner.h"

#define SKIPPED 77 /* automake's exit status for a skipped test */

static const struct runner_suite *find(
	const struct runner_suite *suites, size_t n_suites, const char *name)
{
	for (size_t i = 0; i < n_suites; i++)
		if (strcmp(suites[i].name, name) == 0)
			return &suites[i];
	return NULL;
}

static unsigned add(SRunner *r, const struct runner_suite *x)
{
	Suite *s = x->make();

	if (s)
		srunner_add_suite(r, s);
	else
		printf("%s: cannot run here, skipped\n", x->name);
	return s != NULL;
}

static int run(SRunner *r, unsigned n_added)
{
	if (n_added == 0)
		return SKIPPED;
	srunner_run_all(r, CK_ENV);
	if (srunner_ntests_run(r) == 0) {
		fprintf(stderr, "CK_RUN_SUITE and CK_RUN_CASE select no test case\n");
		return EXIT_FAILURE;
	}
	return srunner_ntests_failed(r) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int runner_main(int argc, char **argv, const struct runner_suite *suites, size_t n_suites)
{
	const struct runner_suite *x;
	unsigned n_added = 0;
	SRunner *r;
	int status;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < n_suites; i++)
			puts(suites[i].name);
		return EXIT_SUCCESS;
	}
	r = srunner_create(NULL);
	for (size_t i = 0; argc == 1 && i < n_suites; i++)
		n_added += add(r, &suites[i]);
	for (int i = 1; i < argc; i++) {
		x = find(suites, n_suites, argv[i]);
		if (!x) {
			fprintf(stderr, "%s: no suite is called %s\n", argv[0], argv[i]);
			srunner_free(r);
			return EXIT_FAILURE;
		}
		n_added += add(r, x);
	}
	status = run(r, n_added);
	srunner_free(r);
	return status;
}
