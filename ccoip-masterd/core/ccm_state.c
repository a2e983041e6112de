/* SPDX-License-Identifier: MIT
 *
 * Named states and the transitions between them. A peer's state follows from its flags; nothing
 * else writes it.
 */
#include "ccoip-masterd/core/ccm_internal.h"
#include "common/cc_sm.h"

#define TO(s) CC_SM_TO(s)

#define IDLE       CCM_IDLE
#define VOTING     CCM_VOTE_ACCEPT_NEW_PEERS
#define REWIRING   CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS
#define CONNECTING CCM_CONNECTING_TO_PEERS
#define RUNNING    CCM_COLLECTIVE_COMMUNICATIONS_RUNNING
#define OPT_VOTING CCM_VOTE_OPTIMIZE_TOPOLOGY
#define OPTIMIZING CCM_OPTIMIZE_TOPOLOGY
#define OPT_FAILED CCM_OPTIMIZE_TOPOLOGY_FAILED

/* A peer gives an exclusive vote only while none of its operations runs, so RUNNING and a vote
 * never follow each other. */
static const struct cc_sm_state peer_states[] = {
	[IDLE] = {"IDLE",
		TO(VOTING) | TO(REWIRING) | TO(CONNECTING) | TO(RUNNING) | TO(OPT_VOTING)},
	[VOTING] = {"VOTE_ACCEPT_NEW_PEERS",
		TO(IDLE) | TO(REWIRING) | TO(CONNECTING) | TO(OPT_VOTING)},
	[REWIRING] = {"VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS",
		TO(IDLE) | TO(VOTING) | TO(RUNNING) | TO(OPT_VOTING) | TO(OPTIMIZING) |
			TO(OPT_FAILED)},
	[CONNECTING] = {"CONNECTING_TO_PEERS", TO(IDLE) | TO(VOTING) | TO(OPT_VOTING)},
	[RUNNING] = {"COLLECTIVE_COMMUNICATIONS_RUNNING", TO(IDLE) | TO(REWIRING)},
	[OPT_VOTING] = {"VOTE_OPTIMIZE_TOPOLOGY", TO(IDLE) | TO(VOTING) | TO(REWIRING) |
							  TO(CONNECTING) | TO(OPTIMIZING) |
							  TO(OPT_FAILED)},
	[OPTIMIZING] = {"OPTIMIZE_TOPOLOGY",
		TO(IDLE) | TO(REWIRING) | TO(OPT_VOTING) | TO(OPT_FAILED)},
	[OPT_FAILED] = {"OPTIMIZE_TOPOLOGY_FAILED", TO(IDLE) | TO(VOTING) | TO(REWIRING) |
							    TO(CONNECTING) | TO(RUNNING) |
							    TO(OPT_VOTING)},
};
static const struct cc_sm peer_machine =
	CC_SM(peer_states, "a peer changed to a state that its previous state does not allow");

static const struct cc_sm_state op_states[] = {
	[CCM_VOTE_INITIATE_COLLECTIVE_COMMS] = {"VOTE_INITIATE_COLLECTIVE_COMMS",
		TO(CCM_PERFORM_COLLECTIVE_COMMS)},
	[CCM_PERFORM_COLLECTIVE_COMMS] = {"PERFORM_COLLECTIVE_COMMS",
		TO(CCM_VOTE_COMPLETE_COLLECTIVE_COMMS)},
	[CCM_VOTE_COMPLETE_COLLECTIVE_COMMS] = {"VOTE_COMPLETE_COLLECTIVE_COMMS", 0},
};
static const struct cc_sm op_machine =
	CC_SM(op_states, "an operation changed to a state that its previous state does not allow");

const char *ccm_phase_name(enum ccm_connection_phase p)
{
	return p == CCM_PEER_ACCEPTED ? "PEER_ACCEPTED" : "PEER_REGISTERED";
}

const char *ccm_state_name(enum ccm_connection_state s)
{
	return cc_sm_name(&peer_machine, s);
}

const char *ccm_collective_name(enum ccm_collective_state s)
{
	return cc_sm_name(&op_machine, s);
}

static bool is_optimizing(const struct ccm *m)
{
	return m->optimize.phase != CCM_OPTIMIZE_NONE && m->optimize.phase != CCM_OPTIMIZE_FAILED;
}

enum ccm_connection_state ccm_peer_state(const struct ccm *m, const struct ccm_peer *p)
{
	if (ccm_in_round(m, p->round))
		return m->round.accept ? CONNECTING : REWIRING;
	if (p->voted[WIRE_TOPOLOGY])
		return VOTING;
	if (p->voted[WIRE_OPTIMIZE])
		return is_optimizing(m) ? OPTIMIZING : OPT_VOTING;
	if (p->n_running > 0)
		return RUNNING;
	return p->optimize_failed ? OPT_FAILED : IDLE;
}

void ccm_peer_refresh(struct ccm *m, struct ccm_peer *p)
{
	enum ccm_connection_state s = ccm_peer_state(m, p);
	char label[3 * WM_NAME_MAX];

	if (s == p->state)
		return;
	cc_sm_move(&peer_machine, p->state, s, &m->broken);
	if (ccm_logs(m, CCM_LOG_DEBUG))
		ccm_log(m, CCM_LOG_DEBUG, "%s: %s -> %s", ccm_peer_label(p, label),
			ccm_state_name(p->state), ccm_state_name(s));
	p->state = s;
	p->state_since = m->now;
}

void ccm_op_set_state(struct ccm *m, struct ccm_op *o, enum ccm_collective_state s)
{
	cc_sm_move(&op_machine, o->state, s, &m->broken);
	if (ccm_logs(m, CCM_LOG_DEBUG))
		ccm_log(m, CCM_LOG_DEBUG, "group %u tag %llu seq %llu: %s -> %s", o->group->id,
			(unsigned long long)o->key.tag, (unsigned long long)o->seq,
			ccm_collective_name(o->state), ccm_collective_name(s));
	o->state = s;
	o->changed_ns = m->now;
}
