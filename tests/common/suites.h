/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SUITES_H
#define COMMON_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(addr)                                                                                    \
	X(basics)                                                                                  \
	X(conn)                                                                                    \
	X(detect)                                                                                  \
	X(limit)                                                                                   \
	X(log)                                                                                     \
	X(loop)                                                                                    \
	X(memory)                                                                                  \
	X(must)                                                                                    \
	X(options)                                                                                 \
	X(plan)                                                                                    \
	X(rings)                                                                                   \
	X(route)                                                                                   \
	X(seal)                                                                                    \
	X(service)                                                                                 \
	X(shm)                                                                                     \
	X(sm)                                                                                      \
	X(sys)

SUITES(RUNNER_DECLARE)

#endif
