/* SPDX-License-Identifier: MIT */
#ifndef TOPOLOGY_SUITES_H
#define TOPOLOGY_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(atsp)                                                                                    \
	X(matrix)                                                                                  \
	X(neck)                                                                                    \
	X(plan)                                                                                    \
	X(rate)                                                                                    \
	X(solver)                                                                                  \
	X(sum)                                                                                     \
	X(time)

SUITES(RUNNER_DECLARE)

#endif
