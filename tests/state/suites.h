/* SPDX-License-Identifier: MIT */
#ifndef STATE_SUITES_H
#define STATE_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(drop)                                                                                    \
	X(diff)                                                                                    \
	X(loss)                                                                                    \
	X(pace)                                                                                    \
	X(parts)                                                                                   \
	X(state)                                                                                   \
	X(strangers)                                                                               \
	X(threads)

SUITES(RUNNER_DECLARE)

#endif
