/* SPDX-License-Identifier: MIT
 *
 * The parts of an agent, for agentd.c and for tests that look at one of them.
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
	uint32_t tick_ms;     /* until the next tick */
	uint32_t quiet_ticks; /* in a row with nothing under way */
	uint64_t stop_at_ns;
};

/* Processes are looked at now. While all is quiet that is done too seldom for who asks. */
void agentd_look(struct agentd *d);

#endif
