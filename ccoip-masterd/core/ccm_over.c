/* SPDX-License-Identifier: MIT
 *
 * The end of a run. An operator resets it, so that the next run starts from nothing; or the program
 * that this master belongs to ends it.
 */
#include "ccoip-masterd/core/ccm_sync.h"

void ccm_run_reset(struct ccm *m, const char *why)
{
	struct ccm_peer *p, *next;

	if (m->stale)
		return;
	if (m->recovering)
		ccm_resume_end(m);
	HASH_ITER (hh, m->peers, p, next) {
		if (p->membership->agent->disconnected)
			ccm_disconnected_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_MASTER_CONNECTION_FAILED, "%s", why);
	}
	ccm_revisions_free(m);
	ccm_journal_members(m);
}

void ccm_run_end(struct ccm *m, const char *why)
{
	struct ccm_agent *a, *next;

	ccm_copy(m->over, sizeof m->over, why);
	HASH_ITER (hh, m->agents, a, next)
		ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED, "%s", why);
}

/* Kicks agents that come back after the end of the run, once they have named their peers. An agent
 * that is refused earlier would believe that this master is stale, and look for another one. */
void ccm_run_end_go_on(struct ccm *m)
{
	struct ccm_agent *a, *next;

	if (!m->over[0])
		return;
	HASH_ITER (hh, m->agents, a, next)
		if (a->greeted && !a->hello_deferred && !a->resuming)
			ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED, "%s", m->over);
}
