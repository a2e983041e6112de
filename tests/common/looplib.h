/* SPDX-License-Identifier: MIT
 *
 * A separate loop for each test.
 */
#ifndef LOOPLIB_H
#define LOOPLIB_H

#include "common/cc_loop.h"
#include "tests/common/testlib.h"

extern struct cc_loop *loop;

/* A checked fixture for libcheck: makes and frees `loop`. */
void loop_setup(void);
void loop_teardown(void);
/* A callback of a timer that stops the loop. */
void loop_stop(void *arg);
/* Runs all callbacks that are due, and also those that become due while these callbacks run. */
void loop_turn(void);

#endif
