/* SPDX-License-Identifier: MIT
 *
 * Ballots: their votes and answers (docs/protocol/votes.md). ccm_unmet.c answers votes that can
 * never meet.
 */
#include "ccoip-masterd/core/ccm_internal.h"

void ccm_ballot_numbers(const struct ccm *m, uint64_t ret[WIRE_BALLOTS])
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		ret[k] = m->ballots[k].number;
}

void ccm_ballots_skip(struct ccm *m)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		m->ballots[k].number += ccm_unheard(m);
}

bool ccm_ballot_bars(const struct ccm_group *g)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (g->n_votes[k] > 0 && wire_ballot_kinds[k].is_exclusive)
			return true;
	return false;
}

enum wire_ballot ccm_ballot_open(const struct ccm *m)
{
	uint32_t k = 0;

	while (k < WIRE_BALLOTS && m->ballots[k].n_votes == 0)
		k++;
	return (enum wire_ballot)k;
}

/* ---- votes ---- */

static void take_back(struct ccm *m, struct ccm_peer *p, enum wire_ballot kind)
{
	p->voted[kind] = false;
	p->membership->group->n_votes[kind]--;
	m->ballots[kind].n_votes--;
}

void ccm_ballot_withdraw(struct ccm *m, struct ccm_peer *p)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (p->voted[k])
			take_back(m, p, (enum wire_ballot)k);
}

void ccm_ballot_release(struct ccm *m, struct ccm_peer *p, enum wire_ballot kind)
{
	take_back(m, p, kind);
	p->acted_ns = m->now;
	ccm_peer_refresh(m, p);
}

/* Counts the vote of p. */
static void count(struct ccm *m, struct ccm_peer *p, enum wire_ballot kind)
{
	struct ccm_ballot *b = &m->ballots[kind];

	p->voted[kind] = true;
	p->optimize_failed = false;
	p->acted_ns = m->now;
	p->membership->group->n_votes[kind]++;
	if (b->n_votes++ == 0)
		b->since_ns = m->now;
	m->stuck_news = true;
	ccm_peer_refresh(m, p);
}

/* Returns the kind of the exclusive vote of p that has no answer yet, or NULL. */
static const struct wire_ballot_kind *exclusive_vote(const struct ccm_peer *p)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (p->voted[k] && wire_ballot_kinds[k].is_exclusive)
			return &wire_ballot_kinds[k];
	return NULL;
}

/* Returns true if p may vote now. Otherwise kicks p. */
static bool may_vote(struct ccm *m, struct ccm_peer *p, enum wire_ballot kind)
{
	const struct wire_ballot_kind *x = &wire_ballot_kinds[kind], *other = exclusive_vote(p);

	if (p->voted[kind])
		ccm_peer_violation(m, p, "it sent a %s twice", x->name);
	else if (x->is_exclusive && other)
		ccm_peer_violation(
			m, p, "it sent a %s while it waited in a %s", x->name, other->name);
	else if (x->is_exclusive && p->n_ops > 0)
		ccm_peer_violation(
			m, p, "it sent a %s with %u operations outstanding", x->name, p->n_ops);
	else
		return true;
	return false;
}

/* ---- the ends of ballots ---- */

static void fill_end(const struct ccm *m, enum wire_ballot kind, struct wm_ballot_end *x)
{
	x->kind = kind;
	x->number = m->ballots[kind].number;
	ccm_print(x->text, sizeof x->text, "%s", m->ballots[kind].text);
}

/* Tells `a` again how the last ballot has ended. */
static void tell_again(struct ccm *m, struct ccm_agent *a, enum wire_ballot kind)
{
	struct wm_view totals;

	if (kind == WIRE_TOPOLOGY) {
		ccm_view_totals(m, &totals);
		(void)ccm_commit_new(m, a, &totals);
	} else {
		fill_end(m, kind, &ccm_send(m, a, WM_BALLOT_END)->u.ballot_end);
	}
}

static void tell_commits(struct ccm *m)
{
	struct wm_commit *c = NULL;
	struct wm_view totals;
	struct ccm_agent *a;

	ccm_view_totals(m, &totals);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			c = ccm_commit_to(m, a, &totals, true, c);
}

static void tell_end(struct ccm *m, enum wire_ballot kind)
{
	struct ccm_agent *a;

	fill_end(m, kind, &ccm_send_all(m, WM_BALLOT_END)->u.ballot_end);
	for (a = m->agents; a; a = a->hh.next)
		if (a->n_accepted > 0)
			ccm_send_to(m, a);
}

void ccm_ballot_end(struct ccm *m, enum wire_ballot kind, uint64_t number)
{
	struct ccm_group *g;
	struct ccm_peer *p;

	m->ballots[kind].number = number;
	m->ballots[kind].text[0] = '\0';
	for (p = m->peers; p; p = p->hh.next) {
		if (!p->voted[kind])
			continue;
		ccm_ballot_release(m, p, kind);
		p->n_alone = 0;
	}
	if (!wire_ballot_kinds[kind].is_exclusive)
		return;
	for (g = m->groups; g; g = g->hh.next)
		g->generation_sent = false; /* the vote settles all losses before it */
}

/* Raises the number to that of a ballot that another master has ended. */
static void raise_to(struct ccm *m, enum wire_ballot kind, uint64_t number)
{
	bool voted = m->ballots[kind].n_votes > 0;

	ccm_ballot_end(m, kind, number);
	if (!voted)
		return;
	if (kind == WIRE_TOPOLOGY)
		tell_commits(m);
	else
		tell_end(m, kind);
}

/* May a number be higher than ours? The agents that could have reported it may have died with the
 * last master. */
static bool may_raise(const struct ccm *m, uint64_t number)
{
	return m->recovered && number < CCM_NUMBER_MAX;
}

/* Has the same ballot ended with another answer here? The run cannot use both answers. */
static bool answered_otherwise(const struct ccm *m, enum wire_ballot kind, uint64_t number)
{
	uint64_t ours = m->ballots[kind].number;

	return number != ours && wire_ballot_count(number) == wire_ballot_count(ours);
}

void ccm_ballot_raise(struct ccm *m, const uint64_t numbers[WIRE_BALLOTS])
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		ccm_at_least(&m->ballots[k].number, numbers[k]);
}

void ccm_ballot_learn(struct ccm *m, const uint64_t numbers[WIRE_BALLOTS])
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++) {
		enum wire_ballot kind = (enum wire_ballot)k;

		if (numbers[k] > m->ballots[k].number && may_raise(m, numbers[k]) &&
			!answered_otherwise(m, kind, numbers[k]))
			raise_to(m, kind, numbers[k]);
	}
}

void ccm_ballot_vote(struct ccm *m, struct ccm_agent *a, const struct wm_ballot_vote *v)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &v->peer, "a vote");
	const char *name = wire_ballot_kinds[v->kind].name;
	uint64_t ours = m->ballots[v->kind].number;

	if (!p)
		return;
	if (p->phase != CCM_PEER_ACCEPTED) {
		ccm_peer_violation(m, p, "it sent a %s before it was accepted", name);
	} else if (answered_otherwise(m, v->kind, v->number)) {
		ccm_peer_kick(m, p, WIRE_RANK_CONNECTION_LOST, "%s", CCM_ANSWERED_OTHERWISE);
	} else if (v->number < ours) {
		tell_again(m, a, v->kind);
	} else if (v->number > ours && !may_raise(m, v->number)) {
		ccm_peer_violation(m, p, "it sent a %s with a wrong ballot number", name);
	} else if (may_vote(m, p, v->kind)) {
		if (v->number > ours)
			raise_to(m, v->kind, v->number);
		ccm_flaps_vote(a, v);
		count(m, p, v->kind);
	}
}

void ccm_ballot_answer(struct ccm *m, enum wire_ballot kind, bool answer, const char *text)
{
	struct ccm_ballot *b = &m->ballots[kind];

	ccm_ballot_end(m, kind, wire_ballot_next(b->number, answer));
	ccm_print(b->text, sizeof b->text, "%s", text);
	tell_end(m, kind);
}

bool ccm_topology_agreed(const struct ccm *m)
{
	if (m->n_accepted == 0)
		return ccm_newcomers_ready(m) > 0;
	return m->ballots[WIRE_TOPOLOGY].n_votes == m->n_accepted;
}

/* Returns the answer of a ballot for which all peers have voted. */
static bool find_answer(const struct ccm *m, enum wire_ballot kind)
{
	switch (kind) {
	case WIRE_PENDING:
		return ccm_newcomers_ready(m) > 0;
	default:
		return false;
	}
}

bool ccm_ballots_settle(struct ccm *m)
{
	uint32_t k;

	/* An answer waits for a commit that gives all agents the same view, because an agent that
	 * has come back may not know of a loss. */
	if (m->rewire || m->round.active || ccm_round_waits(m))
		return false;
	for (k = WIRE_TOPOLOGY + 1; k < WIRE_BALLOTS; k++) {
		enum wire_ballot kind = (enum wire_ballot)k;
		const struct ccm_ballot *b = &m->ballots[k];

		if (kind == WIRE_OPTIMIZE || b->n_votes == 0 || b->n_votes < m->n_accepted)
			continue;
		ccm_ballot_answer(m, kind, find_answer(m, kind), "");
	}
	ccm_optimize_settle(m);
	return m->rewire;
}
