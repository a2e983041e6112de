/* SPDX-License-Identifier: MIT
 *
 * Exhausted memory in a core. A program with this file is linked with --wrap for malloc, calloc and
 * realloc, and for the core's step, whose wrapper calls exhaust_core.
 */
#ifndef TESTS_EXHAUST_H
#define TESTS_EXHAUST_H

#include <stdbool.h>

/* Allocations can fail only between exhaust_core(true) and exhaust_core(false), because the test
 * allocates, too. */
void exhaust_core(bool within);
/* Runs fn in child processes. In each child process a different allocation of the core fails. This
 * failure must reach the handler of cc_must.h. Returns the number of allocations. */
long exhaust(void (*fn)(void));

#endif
