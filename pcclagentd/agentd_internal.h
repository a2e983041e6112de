/* SPDX-License-Identifier: MIT
 *
 * The parts of an agent, for agentd.c and for tests that check one of them.
 */
#ifndef AGENTD_INTERNAL_H
#define AGENTD_INTERNAL_H

#include "pcclagentd/admin/adm.h"
#include "pcclagentd/agentd.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/local/local.h"
#include "pcclagentd/net/net.h"
#include "pcclagentd/ops/ops.h"

struct agentd {
	struct base base;
	struct loc *loc;
	struct net *net;
	struct ops *ops;
	struct adm *admin;
	struct cc_timer *tick, *extra_timer;
	uint32_t tick_ms;     /* interval of ticks */
	uint32_t quiet_ticks; /* ticks in a row with nothing in progress */
	uint64_t stop_at_ns;
};

/* Checks at once which processes are stopped. While the agent is quiet, its regular checks are too
 * rare for pcclctl. */
void agentd_look(struct agentd *d);

#endif
