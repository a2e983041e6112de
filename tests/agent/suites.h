/* SPDX-License-Identifier: MIT */
#ifndef AGENT_SUITES_H
#define AGENT_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(spec)                                                                                    \
	X(attach)                                                                                  \
	X(end)                                                                                     \
	X(leave)                                                                                   \
	X(measure)                                                                                 \
	X(mesh)                                                                                    \
	X(must)                                                                                    \
	X(op)                                                                                      \
	X(plan)                                                                                    \
	X(quiet)                                                                                   \
	X(random)                                                                                  \
	X(resume)                                                                                  \
	X(round)                                                                                   \
	X(run)                                                                                     \
	X(connect)                                                                                 \
	X(session)                                                                                 \
	X(unmet)                                                                                   \
	X(sync)                                                                                    \
	X(sync_end)                                                                                \
	X(wait)

SUITES(RUNNER_DECLARE)

#endif
