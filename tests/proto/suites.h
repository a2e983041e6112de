/* SPDX-License-Identifier: MIT */
#ifndef PROTO_SUITES_H
#define PROTO_SUITES_H

#include "tests/runner.h"

#define SUITES(X)                                                                                  \
	X(admin)                                                                                   \
	X(frame)                                                                                   \
	X(journal)                                                                                 \
	X(link)                                                                                    \
	X(local)                                                                                   \
	X(master)                                                                                  \
	X(master_limits)                                                                           \
	X(master_resume)                                                                           \
	X(master_sync)                                                                             \
	X(names)                                                                                   \
	X(nomem)                                                                                   \
	X(quant)                                                                                   \
	X(result)                                                                                  \
	X(shm_state)                                                                               \
	X(state)                                                                                   \
	X(submit)                                                                                  \
	X(table)

SUITES(RUNNER_DECLARE)

#endif
