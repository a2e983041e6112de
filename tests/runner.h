/* SPDX-License-Identifier: MIT
 *
 * One test program per folder: main.c hands the list of suites.h to runner_main. A suite is a file
 * NAME.c with a function NAME_suite. The list is a macro, so that the names, the declarations and
 * the table come from one place:
 *
 *     #define SUITES(X) X(attach) X(queue)
 *     SUITES(RUNNER_DECLARE)
 *
 *     static const struct runner_suite suites[] = {SUITES(RUNNER_ENTRY)};
 */
#ifndef RUNNER_H
#define RUNNER_H

#include <check.h>
#include <stddef.h>

struct runner_suite {
	const char *name;
	Suite *(*make)(void); /* returns NULL if the suite cannot run here */
};

#define RUNNER_DECLARE(name) Suite *name##_suite(void);
#define RUNNER_ENTRY(name)   {#name, name##_suite},

/* Runs the suites that the arguments name, or all. `--list` prints the names.
 * CK_RUN_SUITE and CK_RUN_CASE select as well. Returns the exit status: failure also if nothing was
 * selected, 77 if no selected suite can run here. */
int runner_main(int argc, char **argv, const struct runner_suite *suites, size_t n_suites);

#endif
