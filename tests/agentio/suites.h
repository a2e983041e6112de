/* SPDX-License-Identifier: MIT */
#ifndef AGENTIO_SUITES_H
#define AGENTIO_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(algo)                                                                                    \
	X(attach)                                                                                  \
	X(diff)                                                                                    \
	X(estimate)                                                                                \
	X(feedback)                                                                                \
	X(hello)                                                                                   \
	X(kept)                                                                                    \
	X(link)                                                                                    \
	X(manifest)                                                                                \
	X(measure)                                                                                 \
	X(mesh_link)                                                                               \
	X(narrow)                                                                                  \
	X(options)                                                                                 \
	X(result_mode)                                                                             \
	X(process)                                                                                 \
	X(quiet)                                                                                   \
	X(queue)                                                                                   \
	X(reconnect)                                                                               \
	X(region)                                                                                  \
	X(session)                                                                                 \
	X(eager)                                                                                   \
	X(eager_routes)                                                                            \
	X(stop)                                                                                    \
	X(sync)

SUITES(RUNNER_DECLARE)

#endif
