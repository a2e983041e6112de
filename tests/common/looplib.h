/* SPDX-License-Identifier: MIT
 *
 * A loop of its own for each test.
 */
#ifndef LOOPLIB_H
#define LOOPLIB_H

#include "common/cc_loop.h"
#include "tests/common/testlib.h"

extern struct cc_loop *loop;

/* The checked fixture. */
void loop_setup(void);
void loop_teardown(void);
/* Of a timer: ends the run. */
void loop_stop(void *arg);
/* Runs what is due, and what that makes due. */
void loop_turn(void);

#endif
