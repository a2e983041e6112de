/* SPDX-License-Identifier: MIT
 *
 * The names of the states, and the transitions that are allowed. A forbidden transition is recorded
 * for agt_check: it is a bug of this core, whatever the input was.
 */
#include "pcclagentd/core/agt_internal.h"

#define TO(s) (1u << (s))

static const char *const comm_names[AGT_COMM_STATES] = {
	[AGT_COMM_NEW] = "new",
	[AGT_COMM_JOINING] = "joining",
	[AGT_COMM_REGISTERED] = "registered",
	[AGT_COMM_ACCEPTED] = "accepted",
	[AGT_COMM_LOST] = "lost",
	[AGT_COMM_LEAVING] = "leaving",
};

static const unsigned comm_next[AGT_COMM_STATES] = {
	[AGT_COMM_NEW] = TO(AGT_COMM_JOINING) | TO(AGT_COMM_LEAVING),
	[AGT_COMM_JOINING] = TO(AGT_COMM_REGISTERED) | TO(AGT_COMM_NEW) | TO(AGT_COMM_LEAVING),
	[AGT_COMM_REGISTERED] = TO(AGT_COMM_ACCEPTED) | TO(AGT_COMM_JOINING) | TO(AGT_COMM_NEW) |
				TO(AGT_COMM_LEAVING),
	[AGT_COMM_ACCEPTED] = TO(AGT_COMM_LOST) | TO(AGT_COMM_LEAVING),
	[AGT_COMM_LOST] = TO(AGT_COMM_JOINING) | TO(AGT_COMM_LEAVING),
};

static const char *const run_names[AGT_RUN_STATES] = {
	[AGT_RUN_CONNECTING] = "connecting",
	[AGT_RUN_GREETING] = "greeting",
	[AGT_RUN_UP] = "up",
	[AGT_RUN_ORPHAN] = "orphan",
	[AGT_RUN_RESUMING] = "resuming",
	[AGT_RUN_OVER] = "over",
};

static const unsigned run_next[AGT_RUN_STATES] = {
	[AGT_RUN_CONNECTING] = TO(AGT_RUN_GREETING) | TO(AGT_RUN_OVER),
	[AGT_RUN_GREETING] = TO(AGT_RUN_UP) | TO(AGT_RUN_CONNECTING) | TO(AGT_RUN_OVER),
	[AGT_RUN_UP] = TO(AGT_RUN_ORPHAN) | TO(AGT_RUN_OVER),
	[AGT_RUN_ORPHAN] = TO(AGT_RUN_RESUMING) | TO(AGT_RUN_OVER),
	[AGT_RUN_RESUMING] = TO(AGT_RUN_UP) | TO(AGT_RUN_ORPHAN) | TO(AGT_RUN_OVER),
};

static const char *const op_names[AGT_OP_STATES] = {
	[AGT_OP_COLLECTING] = "collecting",
	[AGT_OP_VOTING] = "voting",
	[AGT_OP_RUNNING] = "running",
	[AGT_OP_REPORTED] = "reported",
	[AGT_OP_CANCELLING] = "cancelling",
};

static const unsigned op_next[AGT_OP_STATES] = {
	[AGT_OP_COLLECTING] = TO(AGT_OP_VOTING),
	[AGT_OP_VOTING] = TO(AGT_OP_RUNNING) | TO(AGT_OP_REPORTED) | TO(AGT_OP_CANCELLING),
	[AGT_OP_RUNNING] = TO(AGT_OP_REPORTED) | TO(AGT_OP_CANCELLING),
	[AGT_OP_REPORTED] = TO(AGT_OP_CANCELLING) | TO(AGT_OP_VOTING),
};

static const char *const link_names[AGT_LINK_STATES] = {
	[AGT_LINK_OPENING] = "opening",
	[AGT_LINK_UP] = "up",
	[AGT_LINK_FAILED] = "failed",
};

static const unsigned link_next[AGT_LINK_STATES] = {
	[AGT_LINK_OPENING] = TO(AGT_LINK_UP) | TO(AGT_LINK_FAILED),
	[AGT_LINK_UP] = TO(AGT_LINK_OPENING),
	[AGT_LINK_FAILED] = TO(AGT_LINK_OPENING),
};

void agt_comm_set_state(struct agt *a, struct agt_comm *c, enum agt_comm_state s)
{
	if (!(comm_next[c->state] & TO(s)))
		a->broken = "a communicator made a transition that is not allowed";
	c->state = s;
}

void agt_run_set_state(struct agt *a, struct agt_run *r, enum agt_run_state s)
{
	char addr[CC_ADDR_STR_SIZE];

	if (!(run_next[r->state] & TO(s)))
		a->broken = "a run made a transition that is not allowed";
	agt_log(a, AGT_LOG_DEBUG, "run %u, master %s: %s -> %s", r->id, cc_addr_str(&r->addr, addr),
		run_names[r->state], run_names[s]);
	r->state = s;
	r->since_ns = a->now;
}

void agt_op_set_state(struct agt *a, struct agt_op *o, enum agt_op_state s)
{
	if (!(op_next[o->state] & TO(s)))
		a->broken = "an operation made a transition that is not allowed";
	o->state = s;
}

void agt_link_set_state(struct agt *a, struct agt_link *l, enum agt_link_state s)
{
	if (!(link_next[l->state] & TO(s)))
		a->broken = "a link made a transition that is not allowed";
	l->state = s;
}

const char *agt_comm_state_name(enum agt_comm_state s)
{
	return comm_names[s];
}

const char *agt_run_state_name(enum agt_run_state s)
{
	return run_names[s];
}

const char *agt_op_state_name(enum agt_op_state s)
{
	return op_names[s];
}

const char *agt_link_state_name(enum agt_link_state s)
{
	return link_names[s];
}
