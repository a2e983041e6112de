/* SPDX-License-Identifier: MIT
 *
 * A separate loop for each test.
 */
#ifndef LOOPLIB_H
#define LOOPLIB_H

#include "common/cc_loop.h"
#include "tests/common/testlib.h"

extern struct cc_loop *loop;

/* The checked fixture, which makes and frees the loop. */
void loop_setup(void);
void loop_teardown(void);
/* A callback of a timer that stops the loop. */
void loop_stop(void *arg);
/* Runs all callbacks that are due, and the callbacks that become due by them. */
void loop_turn(void);

#endif
