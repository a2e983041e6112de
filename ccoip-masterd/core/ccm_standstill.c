/* SPDX-License-Identifier: MIT
 *
 * Links that take data and do not deliver it. A forwarder between two hosts (a container's proxy, a
 * tunnel) acknowledges data that it has not passed on. So when it stands still, the kernels at both
 * ends do not notice. But agents report how much they have sent and received of an operation at a
 * standstill. Data that one host sent long ago, and that the next host lacks, will not arrive.
 */
#include <inttypes.h>

#include "ccoip-masterd/core/ccm_internal.h"

static uint64_t bound_ns(
	const struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	return m->cfg.bounds.ms[CC_BOUND_STREAM] * CCM_NS_PER_MS +
	       2 * (from->life.path_ns + to->life.path_ns);
}

/* Has the previous host sent more than was received here, and all of it long ago? */
static bool is_overdue(
	const struct ccm *m, const struct ccm_part *prev, uint64_t received, uint64_t bound)
{
	if (prev->reported)
		return ccm_age(m->now, prev->reported_ns) >= bound;
	return prev->sent > received;
}

static const struct ccm_membership *membership_beside(
	const struct ccm_membership *s, uint32_t steps)
{
	return s->group->ring[(s->pos + steps) % s->group->n_ring];
}

static void say_lost(struct ccm *m, struct ccm_agent *a, const struct ccm_agent *prev, uint32_t ms)
{
	struct wm_link_lost l = {.agent = prev->hello.agent, .inbound = true};

	ccm_print(l.text, sizeof l.text,
		"sent data was acknowledged but has not arrived for %.1f s: check proxies and "
		"forwarders between the hosts",
		(double)ms / 1000);
	ccm_link_lost(m, a, &l);
}

void ccm_standstill(struct ccm *m, struct ccm_agent *a, const struct wm_standstill *x)
{
	uint64_t still_ns = x->ms * CCM_NS_PER_MS;
	const struct ccm_membership *s, *prev, *next;
	struct ccm_part *part;
	struct ccm_op *o;

	HASH_FIND(hh_seq, m->started, &x->seq, sizeof x->seq, o);
	s = o ? ccm_membership_of(m, a, o->group->id) : NULL;
	if (!s || o->sync || !s->in_ring || s->group->n_ring < 2 || s->slot >= o->n_parts ||
		m->round.active)
		return;
	part = &o->parts[s->slot];
	next = membership_beside(s, 1);
	prev = membership_beside(s, s->group->n_ring - 1);
	if (!part->membership || part->reported || prev->slot >= o->n_parts ||
		!o->parts[prev->slot].membership)
		return;
	if (still_ns >= bound_ns(m, a, next->agent))
		part->sent = x->sent;
	if (still_ns >= bound_ns(m, prev->agent, a) &&
		is_overdue(m, &o->parts[prev->slot], x->received, bound_ns(m, prev->agent, a)))
		say_lost(m, a, prev->agent, x->ms);
}
