/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SUITES_H
#define ENGINE_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(engine)                                                                                  \
	X(blocked)                                                                                 \
	X(life)                                                                                    \
	X(quant)                                                                                   \
	X(rate)                                                                                    \
	X(result_mode)                                                                             \
	X(rings)

SUITES(RUNNER_DECLARE)

#endif
