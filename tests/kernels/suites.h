/* SPDX-License-Identifier: MIT */
#ifndef KERNELS_SUITES_H
#define KERNELS_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(hsh)                                                                                     \
	X(hsh_run)                                                                                 \
	X(krn)                                                                                     \
	X(qnt)                                                                                     \
	X(qnt_errors)

SUITES(RUNNER_DECLARE)

#endif
