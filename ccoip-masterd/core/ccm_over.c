/* SPDX-License-Identifier: MIT
 *
 * The end of a run by somebody's word: an operator's, who wants the next one to begin anew, or that
 * of the program that this master belongs to.
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
		if (p->seat->agent->absent)
			ccm_absent_remove(m, p, why);
		else
			ccm_peer_kick(m, p, WIRE_MASTER_CONNECTION_FAILED, "%s", why);
	}
	ccm_revisions_free(m);
	ccm_journal_members(m);
}

void ccm_run_end(struct ccm *m, const char *why)
{
	struct ccm_agent *a, *next;

	HASH_ITER (hh, m->agents, a, next)
		ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED, "%s", why);
}
