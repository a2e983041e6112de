/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include "tests/runner.h"

#define SUITES(X) X(bench) X(quant)

SUITES(RUNNER_DECLARE)

#endif
