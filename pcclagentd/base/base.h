/* SPDX-License-Identifier: MIT
 *
 * The services that every part of the agent's loop gets: configuration, identity, loop, and the
 * functions to reach the core. The daemon (agentd.c) makes one; the parts only read its fields.
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
	struct cc_id id; /* agent id; follows from the identity */
	struct cc_loop *loop;
	struct agt *core; /* only for queries; ev_post delivers events to the core */
	struct events *events;
	struct report report;
	bool stopping; /* the agent ends: nothing new is started */
	bool quiet;    /* nothing is in progress: ticks come every AGT_QUIET_TICK_MS */
};

#endif
