/* SPDX-License-Identifier: MIT
 *
 * Links that take data and do not deliver it. A forwarder between two hosts (a container's proxy, a
 * tunnel) acknowledges data that it has not passed on. So when it stands still, the kernels at both
 * ends do not notice. But agents report how much they have sent and received of an operation at a
 * standstill. Data that one host sent long ago, and that the next host lacks, will not arrive.
 */
#include <inttypes.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* A standstill is reported every second. An older report does not count. */
#define STILL_FOR_NS (3000 * CCM_NS_PER_MS)

static uint64_t bound_ns(
	const struct ccm *m, const struct ccm_agent *from, const struct ccm_agent *to)
{
	return m->cfg.bounds.ms[CC_BOUND_STREAM] * CCM_NS_PER_MS +
	       2 * (from->life.path_ns + to->life.path_ns);
}

/* Had the previous host already sent, long ago, more than the next host has received now? */
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

/* Does every host stand still, although no host waits for a process of its own? The hosts that have
 * reported their part did this long ago. Then no host can go on. */
static bool all_stand_still(const struct ccm *m, const struct ccm_op *o)
{
	uint32_t i;

	for (i = 0; i < o->n_parts; i++) {
		const struct ccm_part *p = &o->parts[i];
		uint64_t bound = m->cfg.bounds.ms[CC_BOUND_STREAM] * CCM_NS_PER_MS;

		if (!p->membership)
			continue;
		if (p->reported ? ccm_age(m->now, p->reported_ns) < bound
				: !p->still_ns || ccm_age(m->now, p->still_ns) > STILL_FOR_NS)
			return false;
	}
	return true;
}

/* On other routes than the ring, the bytes of a host do not belong to one link. If all hosts stand
 * still, the group takes the ring from now on, where the lost link can be found. */
static void routed_standstill(struct ccm *m, struct ccm_op *o, struct ccm_part *part)
{
	struct ccm_group *g = o->group;

	part->still_ns = m->now;
	if (!all_stand_still(m, o))
		return;
	ccm_mesh_reset(g);
	ccm_group_interrupt(m, g,
		"sent data was acknowledged but has not arrived on one of the links between the "
		"hosts: check proxies and forwarders");
}

static void ring_standstill(struct ccm *m, struct ccm_op *o, const struct ccm_membership *s,
	const struct wm_standstill *x)
{
	const struct ccm_membership *next = membership_beside(s, 1);
	const struct ccm_membership *prev = membership_beside(s, s->group->n_ring - 1);
	uint64_t still_ns = x->ms * CCM_NS_PER_MS;
	struct ccm_agent *a = s->agent;

	if (prev->slot >= o->n_parts || !o->parts[prev->slot].membership)
		return;
	if (still_ns >= bound_ns(m, a, next->agent))
		o->parts[s->slot].sent = x->sent;
	if (still_ns >= bound_ns(m, prev->agent, a) &&
		is_overdue(m, &o->parts[prev->slot], x->received, bound_ns(m, prev->agent, a)))
		say_lost(m, a, prev->agent, x->ms);
}

void ccm_standstill(struct ccm *m, struct ccm_agent *a, const struct wm_standstill *x)
{
	const struct ccm_membership *s;
	struct ccm_part *part;
	struct ccm_op *o;

	HASH_FIND(hh_seq, m->started, &x->seq, sizeof x->seq, o);
	s = o ? ccm_membership_of(m, a, o->group->id) : NULL;
	if (!s || o->sync || !s->in_ring || s->group->n_ring < 2 || s->slot >= o->n_parts ||
		m->round.active)
		return;
	part = &o->parts[s->slot];
	if (!part->membership || part->reported)
		return;
	if (o->route == CC_ALGO_RING)
		ring_standstill(m, o, s, x);
	else
		routed_standstill(m, o, part);
}
