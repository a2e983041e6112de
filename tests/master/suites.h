/* SPDX-License-Identifier: MIT */
#ifndef MASTER_SUITES_H
#define MASTER_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(disconnect)                                                                              \
	X(spec)                                                                                    \
	X(breaks)                                                                                  \
	X(busy)                                                                                    \
	X(caps)                                                                                    \
	X(elect)                                                                                   \
	X(elect_again)                                                                             \
	X(endpoints)                                                                               \
	X(evil)                                                                                    \
	X(leaves)                                                                                  \
	X(members)                                                                                 \
	X(mesh)                                                                                    \
	X(must)                                                                                    \
	X(newcomers)                                                                               \
	X(optimize)                                                                                \
	X(ops)                                                                                     \
	X(over)                                                                                    \
	X(plan)                                                                                    \
	X(random)                                                                                  \
	X(rates)                                                                                   \
	X(record)                                                                                  \
	X(restore)                                                                                 \
	X(resume)                                                                                  \
	X(resume_ops)                                                                              \
	X(resume_rounds)                                                                           \
	X(return )                                                                                 \
	X(rounds)                                                                                  \
	X(runs)                                                                                    \
	X(scale)                                                                                   \
	X(schedule)                                                                                \
	X(silence)                                                                                 \
	X(standstill)                                                                              \
	X(store)                                                                                   \
	X(unmet)                                                                                   \
	X(sync)                                                                                    \
	X(sync_disconnect)                                                                         \
	X(sync_loss)                                                                               \
	X(sync_resume)                                                                             \
	X(waits)

SUITES(RUNNER_DECLARE)

#endif
