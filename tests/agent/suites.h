/* SPDX-License-Identifier: MIT */
#ifndef AGENT_SUITES_H
#define AGENT_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(ahead)                                                                                   \
	X(attach)                                                                                  \
	X(end)                                                                                     \
	X(leave)                                                                                   \
	X(op)                                                                                      \
	X(quiet)                                                                                   \
	X(random)                                                                                  \
	X(resume)                                                                                  \
	X(round)                                                                                   \
	X(run)                                                                                     \
	X(seek)                                                                                    \
	X(session)                                                                                 \
	X(stuck)                                                                                   \
	X(sync)                                                                                    \
	X(sync_end)                                                                                \
	X(wait)

SUITES(RUNNER_DECLARE)

#endif
