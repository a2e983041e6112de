/* SPDX-License-Identifier: MIT
 *
 * The names of the states, and the transitions that are allowed. A forbidden transition is recorded
 * for agt_check: it is a bug of this core, whatever the input was.
 */
#include "common/cc_sm.h"
#include "pcclagentd/core/agt_internal.h"

#define TO(s) CC_SM_TO(AGT_##s)

static const struct cc_sm_state comm_states[AGT_COMM_STATES] = {
	[AGT_COMM_NEW] = {"new", TO(COMM_JOINING) | TO(COMM_LEAVING)},
	[AGT_COMM_JOINING] = {"joining", TO(COMM_REGISTERED) | TO(COMM_NEW) | TO(COMM_LEAVING)},
	[AGT_COMM_REGISTERED] = {"registered",
		TO(COMM_ACCEPTED) | TO(COMM_JOINING) | TO(COMM_NEW) | TO(COMM_LEAVING)},
	[AGT_COMM_ACCEPTED] = {"accepted", TO(COMM_LOST) | TO(COMM_LEAVING)},
	[AGT_COMM_LOST] = {"lost", TO(COMM_JOINING) | TO(COMM_LEAVING)},
	[AGT_COMM_LEAVING] = {"leaving", 0},
};
static const struct cc_sm comm_machine =
	CC_SM(comm_states, "a communicator made a transition that is not allowed");

static const struct cc_sm_state run_states[AGT_RUN_STATES] = {
	[AGT_RUN_CONNECTING] = {"connecting", TO(RUN_GREETING) | TO(RUN_OVER)},
	[AGT_RUN_GREETING] = {"greeting", TO(RUN_UP) | TO(RUN_CONNECTING) | TO(RUN_OVER)},
	[AGT_RUN_UP] = {"up", TO(RUN_ORPHAN) | TO(RUN_OVER)},
	[AGT_RUN_ORPHAN] = {"orphan", TO(RUN_RESUMING) | TO(RUN_OVER)},
	[AGT_RUN_RESUMING] = {"resuming", TO(RUN_UP) | TO(RUN_ORPHAN) | TO(RUN_OVER)},
	[AGT_RUN_OVER] = {"over", 0},
};
static const struct cc_sm run_machine =
	CC_SM(run_states, "a run made a transition that is not allowed");

static const struct cc_sm_state op_states[AGT_OP_STATES] = {
	[AGT_OP_COLLECTING] = {"collecting", TO(OP_VOTING)},
	[AGT_OP_VOTING] = {"voting", TO(OP_RUNNING) | TO(OP_REPORTED) | TO(OP_CANCELLING)},
	[AGT_OP_RUNNING] = {"running", TO(OP_REPORTED) | TO(OP_CANCELLING)},
	[AGT_OP_REPORTED] = {"reported", TO(OP_CANCELLING) | TO(OP_VOTING)},
	[AGT_OP_CANCELLING] = {"cancelling", 0},
};
static const struct cc_sm op_machine =
	CC_SM(op_states, "an operation made a transition that is not allowed");

static const struct cc_sm_state link_states[AGT_LINK_STATES] = {
	[AGT_LINK_OPENING] = {"opening", TO(LINK_UP) | TO(LINK_FAILED)},
	[AGT_LINK_UP] = {"up", TO(LINK_OPENING)},
	[AGT_LINK_FAILED] = {"failed", TO(LINK_OPENING)},
};
static const struct cc_sm link_machine =
	CC_SM(link_states, "a link made a transition that is not allowed");

void agt_comm_set_state(struct agt *a, struct agt_comm *c, enum agt_comm_state s)
{
	cc_sm_move(&comm_machine, c->state, s, &a->broken);
	c->state = s;
}

void agt_run_set_state(struct agt *a, struct agt_run *r, enum agt_run_state s)
{
	char addr[CC_ADDR_STR_SIZE];

	cc_sm_move(&run_machine, r->state, s, &a->broken);
	agt_log(a, AGT_LOG_DEBUG, "run %u, master %s: %s -> %s", r->id, cc_addr_str(&r->addr, addr),
		cc_sm_name(&run_machine, r->state), cc_sm_name(&run_machine, s));
	r->state = s;
	r->since_ns = a->now;
}

void agt_op_set_state(struct agt *a, struct agt_op *o, enum agt_op_state s)
{
	cc_sm_move(&op_machine, o->state, s, &a->broken);
	o->state = s;
}

void agt_link_set_state(struct agt *a, struct agt_link *l, enum agt_link_state s)
{
	cc_sm_move(&link_machine, l->state, s, &a->broken);
	l->state = s;
}

const char *agt_comm_state_name(enum agt_comm_state s)
{
	return cc_sm_name(&comm_machine, s);
}

const char *agt_run_state_name(enum agt_run_state s)
{
	return cc_sm_name(&run_machine, s);
}

const char *agt_op_state_name(enum agt_op_state s)
{
	return cc_sm_name(&op_machine, s);
}

const char *agt_link_state_name(enum agt_link_state s)
{
	return cc_sm_name(&link_machine, s);
}
