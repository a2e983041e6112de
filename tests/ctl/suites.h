/* SPDX-License-Identifier: MIT */
#ifndef CTL_SUITES_H
#define CTL_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(journal)                                                                                 \
	X(masterd)                                                                                 \
	X(pcclctl)

SUITES(RUNNER_DECLARE)

#endif
