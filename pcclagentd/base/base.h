/* SPDX-License-Identifier: MIT
 *
 * What every part of the agent's loop is given: configuration, identity, loop, and the way into the
 * core. The daemon (agentd.c) makes one; all its fields are only read by the parts.
 */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_loop.h"
#include "common/cc_seal.h"
#include "pcclagentd/base/config.h"
#include "pcclagentd/base/events.h"
#include "pcclagentd/base/report.h"
#include "pcclagentd/core/agt.h"

#define BASE_TICK_MS 50u
#define BASE_MS(n)   ((uint64_t)(n)*1000000u)

struct base {
	struct agentd_config cfg;
	struct cc_identity *identity;
	struct cc_id id; /* follows from it */
	struct cc_loop *loop;
	struct agt *core; /* to be asked; events reach it by ev_post */
	struct events *events;
	struct report report;
	bool stopping; /* the agent ends: nothing new is begun */
	bool quiet;    /* nothing is under way: ticks come every AGT_QUIET_TICK_MS */
};

#endif
