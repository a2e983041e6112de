/* SPDX-License-Identifier: MIT */
#ifndef SHIM_SUITES_H
#define SHIM_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(backlog)                                                                                 \
	X(codes)                                                                                   \
	X(connect)                                                                                 \
	X(copy)                                                                                    \
	X(fail)                                                                                    \
	X(interrupt)                                                                               \
	X(later)                                                                                   \
	X(master)                                                                                  \
	X(multi)                                                                                   \
	X(operand)                                                                                 \
	X(result_mode)                                                                             \
	X(reduce)                                                                                  \
	X(resume_comms)                                                                            \
	X(resume_ops)                                                                              \
	X(resume_storm)                                                                            \
	X(session)                                                                                 \
	X(spawn)                                                                                   \
	X(state_manifest)                                                                          \
	X(state_seen)                                                                              \
	X(state_sync)                                                                              \
	X(view)

SUITES(RUNNER_DECLARE)

#endif
