/* SPDX-License-Identifier: MIT
 *
 * Named states and the transitions between them. A peer's state follows from its flags; nothing
 * else writes it.
 */
#include "ccoip-masterd/core/ccm_internal.h"

#define BIT(s) (1u << (s))

#define IDLE       CCM_IDLE
#define VOTING     CCM_VOTE_ACCEPT_NEW_PEERS
#define REWIRING   CCM_VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS
#define CONNECTING CCM_CONNECTING_TO_PEERS
#define RUNNING    CCM_COLLECTIVE_COMMUNICATIONS_RUNNING

/* The states that may follow each state. No peer votes on the topology while its operations run, so
 * RUNNING and VOTING never follow each other. */
static const unsigned peer_next[] = {
	[IDLE] = BIT(VOTING) | BIT(REWIRING) | BIT(CONNECTING) | BIT(RUNNING),
	[VOTING] = BIT(IDLE) | BIT(REWIRING) | BIT(CONNECTING),
	[REWIRING] = BIT(IDLE) | BIT(VOTING) | BIT(RUNNING),
	[CONNECTING] = BIT(IDLE) | BIT(VOTING),
	[RUNNING] = BIT(IDLE) | BIT(REWIRING),
};

static const unsigned op_next[] = {
	[CCM_VOTE_INITIATE_COLLECTIVE_COMMS] = BIT(CCM_PERFORM_COLLECTIVE_COMMS),
	[CCM_PERFORM_COLLECTIVE_COMMS] = BIT(CCM_VOTE_COMPLETE_COLLECTIVE_COMMS),
	[CCM_VOTE_COMPLETE_COLLECTIVE_COMMS] = 0,
};

const char *ccm_phase_name(enum ccm_connection_phase p)
{
	return p == CCM_PEER_ACCEPTED ? "PEER_ACCEPTED" : "PEER_REGISTERED";
}

const char *ccm_state_name(enum ccm_connection_state s)
{
	static const char *const names[] = {
		[IDLE] = "IDLE",
		[VOTING] = "VOTE_ACCEPT_NEW_PEERS",
		[REWIRING] = "VOTE_NO_NEW_PEERS_ESTABLISH_P2P_CONNECTIONS",
		[CONNECTING] = "CONNECTING_TO_PEERS",
		[RUNNING] = "COLLECTIVE_COMMUNICATIONS_RUNNING",
	};

	return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

const char *ccm_collective_name(enum ccm_collective_state s)
{
	static const char *const names[] = {
		[CCM_VOTE_INITIATE_COLLECTIVE_COMMS] = "VOTE_INITIATE_COLLECTIVE_COMMS",
		[CCM_PERFORM_COLLECTIVE_COMMS] = "PERFORM_COLLECTIVE_COMMS",
		[CCM_VOTE_COMPLETE_COLLECTIVE_COMMS] = "VOTE_COMPLETE_COLLECTIVE_COMMS",
	};

	return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "?";
}

enum ccm_connection_state ccm_peer_state(const struct ccm *m, const struct ccm_peer *p)
{
	if (ccm_in_round(m, p->round))
		return m->round.accept ? CONNECTING : REWIRING;
	if (p->topo_voted)
		return VOTING;
	return p->n_running > 0 ? RUNNING : IDLE;
}

void ccm_peer_refresh(struct ccm *m, struct ccm_peer *p)
{
	enum ccm_connection_state s = ccm_peer_state(m, p);
	char label[3 * WM_NAME_MAX];

	if (s == p->state)
		return;
	if (!(peer_next[p->state] & BIT(s)))
		m->broken = "a peer changed to a state that must not follow";
	if (ccm_logs(m, CCM_LOG_DEBUG))
		ccm_log(m, CCM_LOG_DEBUG, "%s: %s -> %s", ccm_peer_label(p, label),
			ccm_state_name(p->state), ccm_state_name(s));
	p->state = s;
	p->state_since = m->now;
}

void ccm_op_set_state(struct ccm *m, struct ccm_op *o, enum ccm_collective_state s)
{
	if (!(op_next[o->state] & BIT(s)))
		m->broken = "an operation changed to a state that must not follow";
	if (ccm_logs(m, CCM_LOG_DEBUG))
		ccm_log(m, CCM_LOG_DEBUG, "group %u tag %llu seq %llu: %s -> %s", o->group->id,
			(unsigned long long)o->key.tag, (unsigned long long)o->seq,
			ccm_collective_name(o->state), ccm_collective_name(s));
	o->state = s;
	o->changed_ns = m->now;
}
