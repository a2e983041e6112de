/* SPDX-License-Identifier: MIT */
#ifndef CUDA_SUITES_H
#define CUDA_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(emulation)                                                                               \
	X(gpu_check)                                                                               \
	X(gpu_hash)

SUITES(RUNNER_DECLARE)

#endif
