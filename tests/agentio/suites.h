/* SPDX-License-Identifier: MIT */
#ifndef AGENTIO_SUITES_H
#define AGENTIO_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(algo)                                                                                    \
	X(attach)                                                                                  \
	X(findings)                                                                                \
	X(hello)                                                                                   \
	X(kept)                                                                                    \
	X(link)                                                                                    \
	X(manifest)                                                                                \
	X(narrow)                                                                                  \
	X(options)                                                                                 \
	X(place)                                                                                   \
	X(process)                                                                                 \
	X(queue)                                                                                   \
	X(redial)                                                                                  \
	X(region)                                                                                  \
	X(session)                                                                                 \
	X(small)                                                                                   \
	X(stop)                                                                                    \
	X(sync)

SUITES(RUNNER_DECLARE)

#endif
