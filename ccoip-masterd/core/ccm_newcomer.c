/* SPDX-License-Identifier: MIT
 *
 * Newcomers of a run that has members: finds those that a round can admit. Members wait during a
 * round, so no round begins with a link that nobody has tried. Agents probe the links that a ring
 * with the newcomers would have, while everything else continues.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

/* A newcomer that takes longer is slow: other newcomers do not wait for it. */
#define SLOW_MS 1000u
#define MANY    64u
/* The largest number of slow newcomers of one group that are tried at the same time, each in a ring
 * of its own. */
#define SLOW_MAX 32u
/* For this time after a failure, a newcomer is tried at other positions in the ring. */
#define PROBING_MS 5000u
/* The largest number of probes at a time around members that do not reach each other. */
#define AROUND_MAX 4096u
/* A newcomer is refused when this number of its links to members have failed. */
#define FAILURES 3u
/* A probe is repeated after this time. Its old result is used until the answer comes. */
#define KNOWN_MS 15000u
/* The backoff after a failed probe, for which no member has waited. */
#define SHUN_MIN_MS 500u
#define SHUN_MAX_MS 8000u
/* The backoff after a failed round, for which all members have waited. */
#define SHUN_ROUND_MIN_MS 4000u
#define SHUN_ROUND_MAX_MS 60000u
#define SHUNNED_MAX       256u
/* The failures of a host are remembered for this time after its admission. */
#define TRIAL_MS 60000u
/* The backoff of all newcomers after the second spoiled round. */
#define SHUT_MIN_MS 4000u
#define SHUT_MAX_MS 30000u
/* Spoiled rounds beyond this number are not counted. */
#define SPOILT_MAX 5u
/* After this time one spoiled round is not counted any more. */
#define FORGIVE_MS 60000u

/* ---- probes ---- */

static struct ccm_probe *probe_find(const struct ccm *m, uint64_t from, uint64_t to)
{
	struct ccm_pair_key key = {from, to};
	struct ccm_probe *p;

	HASH_FIND(hh, m->probes, &key, sizeof key, p);
	return p;
}

static void probe_free(struct ccm *m, struct ccm_probe *p)
{
	m->n_probing -= p->number != 0;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->probes, p);
	free(p);
}

void ccm_probes_free(struct ccm *m)
{
	struct ccm_shunned *s, *next;

	while (m->probes)
		probe_free(m, m->probes);
	DL_FOREACH_SAFE (m->shunned, s, next)
		free(s);
	m->shunned = NULL;
}

void ccm_probes_forget(struct ccm *m, uint64_t agent_no)
{
	struct ccm_probe *p, *tmp;

	HASH_ITER (hh, m->probes, p, tmp)
		if (p->key.from == agent_no || p->key.to == agent_no)
			probe_free(m, p);
}

void ccm_probes_void(struct ccm *m, uint64_t one, uint64_t other)
{
	struct ccm_probe *p = probe_find(m, one, other), *back = probe_find(m, other, one);

	if (p)
		p->good = false;
	if (back)
		back->good = false;
	m->newcomers = true;
}

bool ccm_probe_failed(
	const struct ccm *m, const struct ccm_membership *from, const struct ccm_membership *to)
{
	const struct ccm_probe *p;

	if (!m->probes || m->n_accepted == 0 || (from->n_accepted > 0 && to->n_accepted > 0))
		return false;
	p = probe_find(m, from->agent->no, to->agent->no);
	return p && p->failed;
}

static struct ccm_probe *probe_get(struct ccm *m, uint64_t from, uint64_t to)
{
	struct ccm_probe *p = probe_find(m, from, to);

	if (p)
		return p;
	p = cc_must_zalloc(1, sizeof *p);
	p->key = (struct ccm_pair_key){from, to};
	HASH_ADD(hh, m->probes, key, sizeof p->key, p);
	return p;
}

/* Does the probe prove a link from s to t? A probe between two members does not test the port for
 * shared state, which a newcomer needs. */
static bool probe_tells(
	const struct ccm_probe *p, const struct ccm_membership *s, const struct ccm_membership *t)
{
	return p->good && (!p->members || (s->n_accepted > 0 && t->n_accepted > 0));
}

/* Probes the link from s to t, unless the result is known or a probe is under way. Also probes t's
 * port for shared state, unless both are members. */
static void probe_ask(struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t)
{
	struct ccm_probe *p = probe_get(m, s->agent->no, t->agent->no);
	struct wm_probe *x;

	if (p->number || p->failed ||
		(probe_tells(p, s, t) && ccm_age(m->now, p->known_ns) < KNOWN_MS * CCM_NS_PER_MS))
		return;
	x = &ccm_send(m, s->agent, WM_PROBE)->u.probe;
	p->number = x->number = m->cfg.first_number + ++m->last_probe;
	p->asked_ns = m->now;
	m->n_probing++;
	ccm_agent_endpoint(t->agent, s->agent, &x->to);
	p->good = probe_tells(p, s, t); /* the old result is used until the answer comes */
	p->members = s->n_accepted > 0 && t->n_accepted > 0;
	if (!p->members)
		ccm_agent_endpoint_state(t->agent, s->agent, &x->state);
}

/* Probes the link from s to t. An old result does not count: a link that was proven before the
 * search for a ring began may have broken since. */
static void probe_anew(
	struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t)
{
	struct ccm_probe *p = probe_find(m, s->agent->no, t->agent->no);

	if (ccm_pair_has_failed(m, s->agent->no, t->agent->no) || m->n_probing >= AROUND_MAX)
		return;
	if (p && (!m->reorder_ns || p->known_ns < m->reorder_ns))
		p->good = false;
	probe_ask(m, s, t);
}

static void probe_with(
	struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *but)
{
	const struct ccm_membership *t;

	DL_FOREACH2 (s->group->memberships, t, next_g) {
		if (t == s || t == but || t->n_accepted == 0 || t->agent->disconnected)
			continue;
		probe_anew(m, s, t);
		probe_anew(m, t, s);
	}
}

void ccm_probe_around(struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t)
{
	uint32_t x = s->agent->suspect_from + s->agent->suspect_to;
	uint32_t y = t->agent->suspect_from + t->agent->suspect_to;

	if (x >= y)
		probe_with(m, s, t);
	if (y >= x)
		probe_with(m, t, s);
}

static struct ccm_agent *agent_by_no(const struct ccm *m, uint64_t no)
{
	struct ccm_agent *a;

	for (a = m->agents; a && a->no != no; a = a->hh.next)
		;
	return a;
}

static bool is_member(const struct ccm_agent *a)
{
	return a && a->n_accepted > 0;
}

static void probe_end(struct ccm *m, struct ccm_probe *p, bool ok, bool limit, const char *text)
{
	const struct ccm_agent *from = agent_by_no(m, p->key.from);
	const struct ccm_agent *to = agent_by_no(m, p->key.to);

	if (p->members && !(is_member(from) && is_member(to))) {
		probe_free(m, p); /* the link is gone; it is probed again if necessary */
		m->newcomers = true;
		return;
	}
	m->n_probing--;
	p->number = 0;
	p->good = ok;
	p->failed = !ok;
	p->limit = limit;
	p->known_ns = m->now;
	if (ok)
		return;
	ccm_reach_reason(p->text, sizeof p->text, from, to, limit, text);
	ccm_log(m, CCM_LOG_INFO, "a probe has failed: %s", p->text);
	if (!p->members)
		return;
	if (!limit)
		ccm_pair_add(m, p->key.from, p->key.to, p->text);
	probe_free(m, p);
}

void ccm_probed(struct ccm *m, const struct ccm_agent *a, const struct wm_probed *v)
{
	char text[WM_TEXT_MAX];
	struct ccm_probe *p;

	for (p = m->probes; p; p = p->hh.next)
		if (p->number == v->number && p->key.from == a->no)
			break;
	if (!p)
		return;
	ccm_copy(text, sizeof text, v->text);
	probe_end(m, p, v->ok, v->limit, text);
	/* If there are many newcomers, good answers are handled together: with the last answer, or
	 * with the next tick. */
	m->newcomers |= m->n_probing == 0 || m->n_registered <= MANY || !v->ok;
}

/* Ends probes that take longer than two rounds. A probe takes more round trips than a round, but no
 * member waits for it. */
void ccm_newcomer_tick(struct ccm *m)
{
	struct ccm_probe *p, *tmp;
	uint64_t bound;

	m->newcomers = true;
	if (m->n_probing == 0)
		return;
	bound = UINT64_C(2) * (m->cfg.bounds.ms[CC_BOUND_ROUND] + ccm_paths_ms(m)) * CCM_NS_PER_MS;
	HASH_ITER (hh, m->probes, p, tmp)
		if (p->number && ccm_age(m->now, p->asked_ns) > bound)
			probe_end(m, p, false, false,
				"it did not answer within the time of two rounds");
}

/* ---- hosts that failed ---- */

static bool is_host(const struct ccm_shunned *s, const struct ccm_agent *a)
{
	const struct wm_hello *h = &a->hello;
	uint32_t i;

	if (s->port_p2p != h->port_p2p || s->n_addrs != h->n_addrs ||
		strcmp(s->name, h->name) != 0 ||
		memcmp(s->from.ip, a->from.ip, sizeof s->from.ip) != 0)
		return false;
	for (i = 0; i < s->n_addrs; i++)
		if (!cc_addr_eq(&s->addrs[i], &h->addrs[i]))
			return false;
	return true;
}

static void shunned_free(struct ccm *m, struct ccm_shunned *s)
{
	DL_DELETE(m->shunned, s);
	m->n_shunned--;
	free(s);
}

static bool is_on_trial(const struct ccm *m, uint64_t admitted_ns)
{
	return admitted_ns && ccm_age(m->now, admitted_ns) < TRIAL_MS * CCM_NS_PER_MS;
}

/* Finds the record of a's host, or NULL. Frees the record if the host has passed its trial. */
static struct ccm_shunned *shunned_find(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_shunned *s;

	DL_FOREACH (m->shunned, s)
		if (is_host(s, a))
			break;
	if (!s || !s->admitted_ns || is_on_trial(m, s->admitted_ns))
		return s;
	shunned_free(m, s);
	return NULL;
}

static struct ccm_shunned *shunned_new(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_shunned *s = cc_must_zalloc(1, sizeof *s);

	if (m->n_shunned == SHUNNED_MAX)
		shunned_free(m, m->shunned);
	ccm_print(s->name, sizeof s->name, "%s", a->hello.name);
	s->from = a->from;
	s->port_p2p = a->hello.port_p2p;
	s->n_addrs = a->hello.n_addrs;
	memcpy(s->addrs, a->hello.addrs, sizeof s->addrs);
	DL_APPEND(m->shunned, s);
	m->n_shunned++;
	return s;
}

/* Returns `least`, doubled for every failure after the first one; at most `most`. */
static uint32_t back_off_ms(uint32_t failures, uint32_t least, uint32_t most)
{
	uint64_t ms = (uint64_t)least << (failures > 16 ? 16 : failures - 1);

	return ms > most ? most : (uint32_t)ms;
}

/* ---- rounds that newcomers have spoiled ---- */

static uint32_t n_spoilt(const struct ccm *m)
{
	uint64_t forgiven = ccm_age(m->now, m->spoilt.ns) / (FORGIVE_MS * CCM_NS_PER_MS);

	return forgiven < m->spoilt.n ? m->spoilt.n - (uint32_t)forgiven : 0;
}

/* Are newcomers admitted one at a time? A newcomer that spoils rounds may have another name and
 * address each time, so this holds for all newcomers. */
static bool is_wary(const struct ccm *m)
{
	return n_spoilt(m) > 1;
}

void ccm_round_spoilt(struct ccm *m)
{
	struct ccm_group *g;
	uint32_t n, ms;

	if (m->n_accepted == 0 || m->spoilt.round == m->last_round)
		return;
	n = n_spoilt(m) + 1;
	m->spoilt.n = n < SPOILT_MAX ? n : SPOILT_MAX;
	m->spoilt.round = m->last_round;
	m->spoilt.ns = m->now;
	if (n < 2)
		return;
	ms = back_off_ms(m->spoilt.n - 1, SHUT_MIN_MS, SHUT_MAX_MS);
	m->spoilt.until_ns = m->now + ms * CCM_NS_PER_MS;
	for (g = m->groups; g; g = g->hh.next)
		(void)ccm_newcomers_doubt(g);
	ccm_log(m, CCM_LOG_WARNING,
		"connection rounds have failed again because of newcomers: no other newcomer is "
		"admitted for %.1f s, and then one at a time",
		ms / 1e3);
}

uint32_t ccm_round_patience_ms(const struct ccm *m, const struct ccm_agent *a)
{
	bool short_of_it = a->n_accepted == 0 && n_spoilt(m) > 0;

	/* After a spoiled round a newcomer gets only the time for opening one link. */
	return m->cfg.bounds.ms[short_of_it ? CC_BOUND_NEW_LINK : CC_BOUND_ROUND];
}

void ccm_newcomer_failed(struct ccm *m, struct ccm_agent *a, bool round)
{
	struct ccm_shunned *s = shunned_find(m, a);
	uint32_t ms;

	if (round)
		ccm_round_spoilt(m);
	if (!s)
		s = shunned_new(m, a);
	if (round)
		ms = back_off_ms(++s->rounds, SHUN_ROUND_MIN_MS, SHUN_ROUND_MAX_MS);
	else
		ms = back_off_ms(++s->probes, SHUN_MIN_MS, SHUN_MAX_MS);
	s->admitted_ns = 0;
	s->until_ns = m->now + ms * CCM_NS_PER_MS;
	a->shunned = true;
	a->shunned_ns = s->until_ns;
}

void ccm_newcomer_joins(struct ccm *m, struct ccm_agent *a)
{
	struct ccm_shunned *s = shunned_find(m, a);

	m->newcomers = true;
	a->shunned = s != NULL;
	a->shunned_ns = s ? s->until_ns : 0;
}

void ccm_newcomer_moves(struct ccm *m, struct ccm_agent *a)
{
	ccm_probes_forget(m, a->no);
	ccm_newcomer_joins(m, a);
}

void ccm_newcomer_accepted(struct ccm *m, const struct ccm_membership *membership)
{
	struct ccm_agent *a = membership->agent;
	struct ccm_shunned *s = m->shunned ? shunned_find(m, a) : NULL;

	a->shunned = false;
	if (!membership->ready || a->n_accepted > 1)
		return;
	a->admitted_ns = m->now;
	if (s)
		s->admitted_ns = m->now;
}

bool ccm_newcomer_on_trial(const struct ccm *m, const struct ccm_agent *a)
{
	return is_on_trial(m, a->admitted_ns);
}

void ccm_newcomer_put_out(struct ccm *m, struct ccm_agent *a)
{
	if (!is_on_trial(m, a->admitted_ns))
		return;
	a->admitted_ns = 0;
	ccm_newcomer_failed(m, a, true);
}

void ccm_probes_keep(struct ccm *m)
{
	struct ccm_probe *p, *tmp;

	HASH_ITER (hh, m->probes, p, tmp) {
		if (!p->failed || !is_member(agent_by_no(m, p->key.from)) ||
			!is_member(agent_by_no(m, p->key.to)))
			continue;
		ccm_pair_doubtful(m, p->key.from, p->key.to, p->text);
		probe_free(m, p);
	}
}

/* ---- possible rings ---- */

enum ring_state { RING_PROVEN = 0, RING_UNPROVEN, RING_IMPOSSIBLE };

/* Counts the registered peers of s whose processes run. If a round admitted a stopped peer, all
 * others would wait for it in the next vote. */
static uint32_t awake(const struct ccm_membership *s)
{
	return s->n_peers - s->n_accepted - s->n_asleep;
}

static bool is_new(const struct ccm_membership *s)
{
	return s->n_accepted == 0 && awake(s) > 0;
}

static bool is_shunned(const struct ccm *m, const struct ccm_membership *s)
{
	return m->now < m->spoilt.until_ns || (s->agent->shunned && m->now < s->agent->shunned_ns);
}

static bool is_fresh(const struct ccm *m, const struct ccm_membership *s)
{
	return is_new(s) && !s->ready && !s->slow && !is_shunned(m, s);
}

static bool is_proven(
	const struct ccm *m, const struct ccm_membership *s, const struct ccm_membership *t)
{
	const struct ccm_probe *p;

	if (s->n_accepted > 0 && t->n_accepted > 0)
		return true;
	p = probe_find(m, s->agent->no, t->agent->no);
	return p && probe_tells(p, s, t);
}

/* Does s belong to the ring that is tried? `fresh`: the ring contains all fresh newcomers. `one`:
 * the newcomer that the ring contains in any case, or NULL. */
static bool is_tried(const struct ccm *m, const struct ccm_membership *s, bool fresh,
	const struct ccm_membership *one)
{
	if (s->n_accepted > 0)
		return !s->agent->disconnected;
	return is_new(s) && (s->ready || s == one || (fresh && is_fresh(m, s)));
}

/* Are all links of newcomers in this ring proven? Sends the probes that are missing. */
static bool ring_is_proven(struct ccm *m, struct ccm_membership *const *ring, uint32_t n)
{
	bool proven = true;
	uint32_t i;

	for (i = 0; n > 1 && i < n; i++) {
		const struct ccm_membership *s = ring[i], *t = ring[(i + 1) % n];

		proven &= is_proven(m, s, t);
		if (s->n_accepted == 0 || t->n_accepted == 0)
			probe_ask(m, s, t);
	}
	return proven;
}

/* Tries a ring that contains g's members and g's ready newcomers, and in addition all fresh
 * newcomers (if `fresh` is set) or the newcomer `one`. Sends the probes that are missing. */
static enum ring_state try_ring(
	struct ccm *m, const struct ccm_group *g, bool fresh, const struct ccm_membership *one)
{
	struct ccm_membership **v = ccm_memberships_new(2 * g->n_memberships), **ring, *s;
	enum ring_state state;
	uint32_t n = 0;

	ring = v + g->n_memberships;
	DL_FOREACH2 (g->memberships, s, next_g)
		if (is_tried(m, s, fresh, one))
			v[n++] = s;
	if (ccm_ring_order(m, v, n, ring))
		state = ring_is_proven(m, ring, n) ? RING_PROVEN : RING_UNPROVEN;
	else /* or the search was not finished */
		state = m->ring_work > 0 ? RING_IMPOSSIBLE : RING_UNPROVEN;
	free(v);
	return state;
}

static void set_ready(struct ccm *m, const struct ccm_group *g)
{
	struct ccm_membership *s;

	DL_FOREACH2 (g->memberships, s, next_g)
		if (is_fresh(m, s))
			s->ready = true;
}

/* Counts the failed links between s and hosts that are in the ring or ready. *ret is one of them.
 * Recent failures do not count: a host that could not be reached may have died, and its death may
 * be reported soon. */
static uint32_t failures(
	const struct ccm *m, const struct ccm_membership *s, const struct ccm_probe **ret)
{
	const struct ccm_membership *t;
	const struct ccm_probe *p;
	uint64_t no = s->agent->no;
	uint32_t n = 0;

	for (p = m->probes; p; p = p->hh.next) {
		if (!p->failed || (p->key.from != no && p->key.to != no) ||
			ccm_age(m->now, p->known_ns) < m->cfg.evict_delay_ms * CCM_NS_PER_MS)
			continue;
		t = ccm_membership_find(
			m, p->key.from == no ? p->key.to : p->key.from, s->group->id);
		if (!t || (t->n_accepted == 0 && !t->ready))
			continue;
		n++;
		*ret = p;
	}
	return n;
}

static void refuse(struct ccm *m, struct ccm_membership *s, const struct ccm_probe *why)
{
	struct ccm_peer *p, *next;
	uint32_t code = why->limit ? WIRE_OUT_OF_MEMORY : WIRE_RANK_CONNECTION_FAILED;
	char text[WM_TEXT_MAX];

	ccm_print(text, sizeof text, "%s", why->text);
	ccm_newcomer_failed(m, s->agent, false);
	ccm_probes_forget(m, s->agent->no);
	s->probed_ns = 0;
	DL_FOREACH_SAFE (s->peers, p, next)
		ccm_peer_kick(m, p, code, "%s", text);
}

static void settle_slow(struct ccm *m, struct ccm_membership *s)
{
	enum ring_state state = try_ring(m, s->group, false, s);
	const struct ccm_probe *why = NULL;
	uint32_t n;

	if (state == RING_PROVEN) {
		s->ready = true;
		return;
	}
	n = failures(m, s, &why);
	if (n >= FAILURES ||
		(n > 0 && (state == RING_IMPOSSIBLE ||
				  ccm_age(m->now, s->probed_ns) > PROBING_MS * CCM_NS_PER_MS)))
		refuse(m, s, why);
}

/* Records when the probes of new newcomers begin, and marks slow newcomers. Returns the number of
 * newcomers that are tried together. */
static uint32_t count_fresh(struct ccm *m, struct ccm_group *g)
{
	struct ccm_membership *s;
	uint32_t n = 0;

	DL_FOREACH2 (g->memberships, s, next_g) {
		if (!is_new(s) || s->ready || is_shunned(m, s))
			continue;
		if (!s->probed_ns) {
			s->probed_ns = m->now;
			s->slow = s->agent->shunned;
		}
		s->slow |= is_wary(m) || ccm_age(m->now, s->probed_ns) > SLOW_MS * CCM_NS_PER_MS;
		n += !s->slow;
	}
	return n;
}

static void settle_fresh(struct ccm *m, struct ccm_group *g)
{
	enum ring_state state = try_ring(m, g, true, NULL);
	struct ccm_membership *s;

	if (state == RING_PROVEN)
		set_ready(m, g);
	DL_FOREACH2 (g->memberships, s, next_g)
		if (state == RING_IMPOSSIBLE && is_fresh(m, s))
			s->slow = true;
}

bool ccm_newcomers_doubt(struct ccm_group *g)
{
	struct ccm_membership *s;
	bool any = false;

	DL_FOREACH2 (g->memberships, s, next_g) {
		any |= s->n_accepted == 0 && s->ready;
		s->ready = false;
	}
	return any;
}

/* May another newcomer be tried? */
static bool has_room(const struct ccm *m)
{
	return m->ring_work > 0 && (!is_wary(m) || ccm_newcomers_ready(m) == 0);
}

static void settle_group(struct ccm *m, struct ccm_group *g)
{
	struct ccm_membership *s;
	uint32_t n = 0;

	/* Members may have come or gone, so that links to other neighbours are needed. */
	if (try_ring(m, g, false, NULL) != RING_PROVEN)
		(void)ccm_newcomers_doubt(g);
	if (count_fresh(m, g) > 0)
		settle_fresh(m, g);
	DL_FOREACH2 (g->memberships, s, next_g) {
		if (!is_new(s) || s->ready || !s->slow || is_shunned(m, s))
			continue;
		if (++n > SLOW_MAX || !has_room(m))
			break;
		settle_slow(m, s);
	}
}

/* Frees the answered probes when no newcomers are left. Probes that are still under way may be
 * between members, so they stay. */
static void probes_end(struct ccm *m)
{
	struct ccm_probe *p, *tmp;

	HASH_ITER (hh, m->probes, p, tmp)
		if (!p->number)
			/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses the list */
			probe_free(m, p);
}

void ccm_newcomers_settle(struct ccm *m)
{
	struct ccm_group *g;

	if (!m->newcomers || m->round.active)
		return;
	m->newcomers = false;
	m->ring_work = CCM_TOUR_WORK; /* for all groups together */
	if (m->n_registered == 0)
		probes_end(m);
	if (m->n_registered == 0 || m->n_accepted == m->n_disconnected)
		return;
	for (g = m->groups; g; g = g->hh.next)
		if (g->n_peers > g->n_accepted)
			settle_group(m, g);
}

bool ccm_membership_ready(const struct ccm *m, const struct ccm_membership *s)
{
	return m->n_accepted == 0 || s->n_accepted > 0 || s->ready;
}

uint32_t ccm_membership_newcomers(const struct ccm *m, const struct ccm_membership *s)
{
	return ccm_membership_ready(m, s) ? awake(s) : 0;
}

uint32_t ccm_newcomers_ready(const struct ccm *m)
{
	const struct ccm_membership *s;
	uint32_t n = 0;

	if (m->n_registered == m->n_asleep || m->n_accepted == 0)
		return m->n_registered - m->n_asleep;
	for (s = m->memberships; s; s = s->hh.next)
		n += ccm_membership_newcomers(m, s);
	return n;
}

void ccm_newcomers_name(const struct ccm *m, uint64_t now, char *text, size_t size)
{
	const struct ccm_probe *p = m->probes;
	const struct ccm_membership *s;

	if (m->n_asleep > 0) {
		ccm_print(text, size, "waiting for stopped newcomers to run again: ");
		ccm_name_asleep(m, now, text, size);
	}
	if (m->n_registered > m->n_asleep)
		ccm_append(text, size, "%sprobing whether %u newcomers can be reached",
			m->n_asleep > 0 ? "; " : "", m->n_registered - m->n_asleep);
	if (now < m->spoilt.until_ns)
		ccm_append(text, size,
			"; rounds have failed because of newcomers, the next newcomer is admitted "
			"in %.1f s",
			(double)(m->spoilt.until_ns - now) / 1e9);
	for (s = m->memberships; s; s = s->hh.next)
		if (is_new(s) && s->agent->shunned && now < s->agent->shunned_ns)
			ccm_append(text, size,
				"; newcomers on %s could not be admitted, the next attempt is in "
				"%.1f s",
				s->agent->hello.name, (double)(s->agent->shunned_ns - now) / 1e9);
	while (p && !p->failed)
		p = p->hh.next;
	if (p)
		ccm_append(text, size, "; %s", p->text);
}
