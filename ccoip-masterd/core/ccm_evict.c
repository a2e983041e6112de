/* SPDX-License-Identifier: MIT
 *
 * Acts on rounds that failed: kicks newcomers that are at fault, records pairs of members that
 * rings avoid from now on, and evicts a member when no ring is left.
 */
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* The longest quoted part of the agent's text, which names a cause for each address. With this
 * limit and names of usual length, the reason fits into the SHM_TEXT bytes that callers get, except
 * for the end of the advice. */
#define CAUSE_MAX 96u

/* Returns the length of the part of the cause that is quoted. It ends at a ';' if possible, so that
 * no address is cut in the middle. */
static size_t cause_len(const char *text)
{
	size_t len = strlen(text);

	if (len <= CAUSE_MAX)
		return len;
	for (len = CAUSE_MAX; len > 0; len--)
		if (text[len] == ';')
			return len;
	return CAUSE_MAX;
}

/* Returns the family of all addresses at which `to` can reach `a`; 0 if there are several families,
 * or no address. */
static uint8_t only_family(const struct ccm_agent *a, const struct ccm_agent *to)
{
	struct wm_endpoint e;
	uint8_t family = 0;
	uint32_t i;

	ccm_agent_endpoint(a, to, &e);
	for (i = 0; i < e.n_addrs; i++) {
		if (family && e.addrs[i].family != family)
			return 0;
		family = e.addrs[i].family;
	}
	return family;
}

/* Do the two hosts have no address family in common? Advertised addresses do not show this: an
 * agent can open connections from other addresses. */
static bool share_no_family(const struct ccm_agent *from, const struct ccm_agent *to)
{
	uint8_t mine, theirs;

	if (from->hello.advertised)
		return false;
	mine = only_family(from, to);
	theirs = only_family(to, from);
	return mine && theirs && mine != theirs;
}

static const char *family_name(bool four)
{
	return four ? "IPv4" : "IPv6";
}

/* Writes the reason for both hosts: first the facts, then the advice, which may be cut. */
void ccm_reach_reason(char *dst, size_t size, const struct ccm_agent *from,
	const struct ccm_agent *to, bool limit, const char *text)
{
	const char *name = from ? from->hello.name : "", *other = to ? to->hello.name : "";
	size_t len = cause_len(text);
	const char *more = text[len] ? "; ..." : "";

	if (limit) { /* the ports are not the cause */
		ccm_print(dst, size, "no link from host %s to host %s: %s", name, other, text);
		return;
	}
	if (from && to && share_no_family(from, to)) {
		bool four = only_family(from, to) == CC_INET4;

		ccm_print(dst, size,
			"host %s could not reach host %s (%.*s%s): host %s has only %s addresses, "
			"and host %s only %s ones: give the hosts of a run addresses of one family",
			name, other, (int)len, text, more, name, family_name(four), other,
			family_name(!four));
		return;
	}
	ccm_print(dst, size,
		"host %s could not reach host %s (%.*s%s): if no packets are lost, open the "
		"latter's ports or set --advertise (PCCL_ADVERTISE) and restart its agent (a "
		"private one ends 30 s after its last process)",
		name, other, (int)len, text, more);
}

static struct ccm_agent *agent_by_id(const struct ccm *m, const struct cc_id *id)
{
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, id, sizeof *id, a);
	return a;
}

static void count_suspects(struct ccm *m)
{
	struct ccm_agent *a, *to;
	uint32_t i;

	for (a = m->agents; a; a = a->hh.next)
		a->suspect_from = a->suspect_to = 0;
	for (a = m->agents; a; a = a->hh.next) {
		if (a->round != m->last_round)
			continue;
		for (i = 0; i < a->n_failures; i++) {
			to = agent_by_id(m, &a->failures[i].agent);
			if (!to)
				continue;
			a->suspect_from++;
			to->suspect_to++;
		}
	}
}

/* Returns the newcomer that is at fault if the link s -> t fails, or NULL if both are members. */
static struct ccm_membership *newcomer_at_fault(struct ccm_membership *s, struct ccm_membership *t)
{
	const struct ccm_agent *a = s->agent, *b = t->agent;

	if (s->n_accepted > 0 && t->n_accepted > 0)
		return NULL;
	if (s->n_accepted > 0)
		return t;
	if (t->n_accepted > 0)
		return s;
	return a->suspect_from + a->suspect_to > b->suspect_from + b->suspect_to ? s : t;
}

/* Adds s to the list of memberships whose peers will be kicked. */
static void evict(
	struct ccm_membership *s, bool limit, const char *reason, struct ccm_membership **evicted)
{
	s->evict_why = cc_must_zalloc(1, WM_TEXT_MAX);
	s->evicted = true;
	s->short_of = limit;
	ccm_print(s->evict_why, WM_TEXT_MAX, "%s", reason);
	s->next_evicted = *evicted;
	*evicted = s;
}

/* Judges the failed link from s to the next host in the ring. */
static void judge_link(struct ccm *m, struct ccm_membership *s, const struct wm_failure *f,
	struct ccm_membership **evicted)
{
	struct ccm_group *g = s->group;
	struct ccm_membership *t = g->next_ring[(s->next_pos + 1) % g->n_next];
	struct ccm_membership *victim = newcomer_at_fault(s, t);
	char reason[WM_TEXT_MAX], text[WM_TEXT_MAX];

	ccm_copy(text, sizeof text, f->text);
	ccm_reach_reason(reason, sizeof reason, s->agent, t->agent, f->limit, text);
	if (!victim) {
		ccm_log(m, CCM_LOG_WARNING, "round %llu, group %u: %s",
			(unsigned long long)m->last_round, g->id, reason);
		ccm_pair_add(m, s->agent->no, t->agent->no, reason);
		ccm_probe_around(m, s, t);
		g->failed = true;
		m->rewire = true;
	} else if (!victim->evicted) {
		evict(victim, f->limit, reason, evicted);
	}
}

static void judge_agent(struct ccm *m, struct ccm_agent *a, struct ccm_membership **evicted)
{
	const struct ccm_agent *next;
	struct ccm_membership *s;
	uint32_t i;

	DL_FOREACH2 (a->memberships, s, next_a) {
		if (s->n_candidates == 0 || s->group->n_next < 2)
			continue;
		next = s->group->next_ring[(s->next_pos + 1) % s->group->n_next]->agent;
		for (i = 0; i < a->n_failures; i++) {
			if (!cc_id_eq(&next->hello.agent, &a->failures[i].agent))
				continue;
			judge_link(m, s, &a->failures[i], evicted);
			break;
		}
	}
}

static void kick_evicted(struct ccm *m, struct ccm_membership *s)
{
	struct ccm_peer *p, *next;
	uint32_t failed = s->short_of ? WIRE_OUT_OF_MEMORY : WIRE_RANK_CONNECTION_FAILED;

	if (s->n_accepted == 0)
		ccm_newcomer_failed(m, s->agent, true);
	else
		ccm_newcomer_put_out(m, s->agent);
	DL_FOREACH_SAFE (s->peers, p, next)
		ccm_peer_kick(m, p,
			p->phase == CCM_PEER_ACCEPTED ? WIRE_RANK_CONNECTION_LOST : failed, "%s",
			s->evict_why);
	s->evicted = false;
	free(s->evict_why);
	s->evict_why = NULL;
}

static uint32_t search_ms(const struct ccm *m)
{
	return CCM_SEARCH_MS(m->cfg.bounds.ms[CC_BOUND_ROUND] + ccm_paths_ms(m));
}

/* Members could not reach each other in this round. If another round takes as long as this one,
 * will it end too late? */
static bool no_time_is_left(struct ccm *m)
{
	if (!m->reorder_ns)
		m->reorder_ns = m->round.since_ns;
	return ccm_age(m->now, m->reorder_ns) + ccm_age(m->now, m->round.since_ns) >
	       search_ms(m) * CCM_NS_PER_MS;
}

void ccm_round_judge(struct ccm *m)
{
	struct ccm_membership *evicted = NULL;
	struct ccm_agent *a;
	struct ccm_group *g;
	bool failed = false, late;

	count_suspects(m);
	for (a = m->agents; a; a = a->hh.next)
		if (a->round == m->last_round && a->n_failures > 0)
			judge_agent(m, a, &evicted);
	for (; evicted; evicted = evicted->next_evicted)
		kick_evicted(m, evicted);
	for (g = m->groups; g; g = g->hh.next)
		failed = failed || g->failed;
	late = failed && no_time_is_left(m);
	for (g = m->groups; g; g = g->hh.next)
		g->failed = g->failed && late;
	ccm_groups_judge(m, late);
}

static bool is_worse(const struct ccm_membership *s, const struct ccm_membership *than)
{
	uint32_t x = s->suspect_from + s->suspect_to, y;

	if (!than)
		return x > 0;
	y = than->suspect_from + than->suspect_to;
	return x > y || (x == y && s->suspect_to >= than->suspect_to);
}

/* Returns the membership with the most failed pairs in g, or NULL. */
static struct ccm_membership *worst_of(struct ccm *m, struct ccm_group *g)
{
	struct ccm_membership *s, *t, *worst = NULL;
	struct ccm_pair *p;

	DL_FOREACH2 (g->memberships, s, next_g)
		s->suspect_from = s->suspect_to = 0;
	for (p = m->pairs; p; p = p->hh.next) {
		s = ccm_membership_find(m, p->key.from, g->id);
		t = ccm_membership_find(m, p->key.to, g->id);
		if (!s || !t || p->state != CCM_PAIR_FAILED) /* other pairs do not exclude a ring */
			continue;
		s->suspect_from++;
		t->suspect_to++;
	}
	DL_FOREACH2 (g->memberships, s, next_g)
		if (is_worse(s, worst))
			worst = s;
	return worst;
}

static void evict_worst(
	struct ccm *m, struct ccm_group *g, bool late, struct ccm_membership **evicted)
{
	struct ccm_membership *worst = worst_of(m, g);
	char reason[WM_TEXT_MAX], which[32];
	const struct ccm_pair *p;

	if (!worst)
		return;
	for (p = m->pairs; p; p = p->hh.next)
		if (p->state == CCM_PAIR_FAILED &&
			(p->key.from == worst->key.agent_no || p->key.to == worst->key.agent_no))
			break;
	if (late)
		ccm_print(which, sizeof which, "was found in %.1f s",
			(double)ccm_age(m->now, m->reorder_ns) / 1e9);
	else
		ccm_print(which, sizeof which, "is possible");
	ccm_print(reason, sizeof reason, "no ring of group %u %s: %s", g->id, which,
		p ? p->text : "");
	evict(worst, false, reason, evicted);
}

static void kick_members(struct ccm *m, struct ccm_membership *evicted)
{
	for (; evicted; evicted = evicted->next_evicted) {
		/* One failure must cause only one error for each peer. */
		if (evicted->group->generation_sent && !evicted->group->lost)
			ccm_op_withdraw(m, evicted);
		kick_evicted(m, evicted);
	}
}

void ccm_agent_put_out(struct ccm *m, struct ccm_agent *a, const char *reason)
{
	struct ccm_membership *evicted = NULL, *s;

	DL_FOREACH2 (a->memberships, s, next_a)
		if (s->n_accepted > 0)
			evict(s, false, reason, &evicted);
	kick_members(m, evicted);
}

void ccm_groups_judge(struct ccm *m, bool late)
{
	struct ccm_membership *evicted = NULL;
	struct ccm_group *g;

	/* All groups are judged before the first kick, because a kick puts the host's failed pairs
	 * in doubt. */
	for (g = m->groups; g; g = g->hh.next) {
		if (g->failed)
			evict_worst(m, g, late, &evicted);
		g->failed = false;
	}
	kick_members(m, evicted);
}
