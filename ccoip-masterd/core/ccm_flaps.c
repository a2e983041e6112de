/* SPDX-License-Identifier: MIT
 *
 * Flapping agents: their connections break again and again. They come back each time, but the
 * connection breaks before they receive the answer that their peers wait for. For example, a path
 * carries only the first bytes of each connection. Each break ends operations of other members with
 * an error, but no lease ever expires.
 */
#include "ccoip-masterd/core/ccm_internal.h"

void ccm_flaps_over(struct ccm_agent *a)
{
	a->flaps.n = 0;
}

void ccm_flaps_vote(struct ccm_agent *a, const struct wm_ballot_vote *v)
{
	uint64_t *last = &a->flaps.ballots[v->kind];

	if (v->number <= *last)
		return;
	*last = v->number;
	ccm_flaps_over(a);
}

void ccm_flaps_move(struct ccm_agent *a, const struct ccm_agent *from)
{
	const struct ccm_flaps *x = &from->flaps;
	uint32_t k;

	if (x->n > a->flaps.n) {
		a->flaps.n = x->n;
		a->flaps.first_ns = x->first_ns;
	}
	for (k = 0; k < WIRE_BALLOTS; k++)
		ccm_at_least(&a->flaps.ballots[k], x->ballots[k]);
}

/* Has the connection of `a` lasted, so that earlier breaks do not count? An agent that receives no
 * heartbeats closes its connection earlier. */
static bool has_lasted(const struct ccm *m, const struct ccm_agent *a)
{
	uint64_t ns = m->cfg.timeout_ms * CCM_NS_PER_MS + a->life.path_ns;

	return ccm_age(m->now, a->acked_ns) > CCM_FLAP_TIMES * ns;
}

bool ccm_flaps_count(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_flaps *x = &a->flaps;

	if (m->recovering)
		return false;
	if (has_lasted(m, a))
		x->n = 0;
	if (x->n++ == 0)
		x->first_ns = m->now;
	return x->n >= CCM_FLAPS_MAX &&
	       ccm_age(m->now, x->first_ns) >= m->cfg.agent_lease_ms * CCM_NS_PER_MS;
}

void ccm_flaps_end(struct ccm *m, struct ccm_agent *a)
{
	char text[WM_TEXT_MAX];

	ccm_print(text, sizeof text,
		"its connection to the master broke %u times within %.1f s, and no call of its "
		"peers ended in that time",
		a->flaps.n, (double)ccm_age(m->now, a->flaps.first_ns) / 1e9);
	ccm_newcomer_failed(m, a, true); /* it may come back as a newcomer */
	ccm_agent_lost(m, a, text);
}
