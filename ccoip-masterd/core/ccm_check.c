/* SPDX-License-Identifier: MIT
 *
 * The invariants: counters against recounts, states against flags, rings, operations. For tests and
 * the simulator. The cost grows with the size of the state.
 */
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

#define REQUIRE(cond, text)                                                                        \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return text;                                                               \
	} while (0)

struct counts {
	uint32_t peers, accepted, asleep, votes[WIRE_BALLOTS], blocked_ops, crossed;
};

/* Does p wait for `what`? The operation may be gone, so `what` is only compared. */
static bool waits_for(const struct ccm_peer *p, const struct ccm_op *what)
{
	const struct ccm_op *o;

	DL_FOREACH (p->membership->group->ops, o)
		if (o == what)
			return o->seq == 0 && o->n_waiting > 0 && ccm_op_voted(o, p);
	return false;
}

/* Checks the votes of p, and the operations that p waits for. */
static const char *check_peer_votes(const struct ccm_peer *p)
{
	const struct ccm_op *o;
	uint32_t voted = 0, running = 0, k;

	DL_FOREACH (p->membership->group->ops, o) {
		if (!ccm_op_voted(o, p))
			continue;
		voted++;
		running += o->seq != 0;
	}
	REQUIRE(p->n_ops == voted, "a peer's count of operations is wrong");
	REQUIRE(p->n_running == running, "a peer's count of running operations is wrong");
	REQUIRE(!p->waits_on || (p->phase == CCM_PEER_ACCEPTED && waits_for(p, p->waits_on)),
		"a peer waits for an operation that it has not voted for, or that has started");
	REQUIRE(!p->waits_on_any || (p->waits_on && running == 0),
		"a peer waits until any of its operations ends, but it has none, or one of them "
		"runs");
	for (k = 0; k < WIRE_BALLOTS; k++)
		REQUIRE(!p->voted[k] || !wire_ballot_kinds[k].is_exclusive || running == 0,
			"a peer has sent an exclusive vote while one of its operations runs");
	return NULL;
}

static bool has_voted(const struct ccm_peer *p)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (p->voted[k])
			return true;
	return false;
}

static void add_votes(uint32_t to[WIRE_BALLOTS], const uint32_t votes[WIRE_BALLOTS])
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		to[k] += votes[k];
}

static bool takes_part(const struct ccm *m, const struct ccm_peer *p)
{
	return p->n_ops > 0 || has_voted(p) || ccm_in_round(m, p->round);
}

static const char *check_peer(const struct ccm *m, const struct ccm_peer *p)
{
	bool accepted = p->phase == CCM_PEER_ACCEPTED,
	     disconnected = p->membership->agent->disconnected;
	const char *bad;

	REQUIRE(ccm_peer_find(m, &p->id) == p, "a peer is not found by its id");
	REQUIRE(p->state == ccm_peer_state(m, p), "a peer's state does not follow from its flags");
	REQUIRE(accepted || (!has_voted(p) && p->n_ops == 0), "a registered peer has voted");
	bad = check_peer_votes(p);
	if (bad)
		return bad;
	if (ccm_in_round(m, p->round))
		REQUIRE(m->round.accept || accepted, "a registered peer is in a rewiring round");
	else if (m->round.active)
		REQUIRE(!accepted || disconnected || m->rewire,
			"an accepted peer is not in the round");
	if (disconnected)
		REQUIRE(accepted && !takes_part(m, p), "a disconnected peer takes part");
	return NULL;
}

static const char *check_membership_peers(
	const struct ccm *m, const struct ccm_membership *s, struct counts *ret)
{
	const struct ccm_peer *p;
	uint32_t candidates = 0, k;
	const char *bad;

	DL_FOREACH (s->peers, p) {
		REQUIRE(p->membership == s, "a peer is in another host membership");
		REQUIRE(p->phase == CCM_PEER_REGISTERED || ret->accepted == ret->peers,
			"a registered peer comes before an accepted one");
		ret->peers++;
		ret->accepted += p->phase == CCM_PEER_ACCEPTED;
		ret->asleep += p->phase == CCM_PEER_REGISTERED && p->stopped_ns;
		for (k = 0; k < WIRE_BALLOTS; k++)
			ret->votes[k] += p->voted[k];
		candidates += ccm_in_round(m, p->round);
		bad = check_peer(m, p);
		if (bad)
			return bad;
	}
	if (m->round.active)
		REQUIRE(candidates == 0 || candidates == s->n_candidates,
			"a host membership's count of candidates is wrong");
	return NULL;
}

/* May s be outside the ring although it has accepted peers? They may be disconnected, or the ring
 * is about to be rewired. */
static bool may_be_outside(const struct ccm *m, const struct ccm_membership *s)
{
	return s->agent->disconnected || m->rewire || m->round.active || m->recovering;
}

static const char *check_membership_ring(const struct ccm *m, const struct ccm_membership *s)
{
	REQUIRE(!s->in_ring || (s->pos < s->group->n_ring && s->group->ring[s->pos] == s),
		"a host membership is not at its position in the ring");
	REQUIRE(!s->in_ring || (s->n_accepted > 0 && !s->agent->disconnected),
		"a host membership is in the ring without connected peers");
	REQUIRE(s->in_ring || s->n_accepted == 0 || may_be_outside(m, s),
		"a host membership with accepted peers is not in the ring");
	return NULL;
}

static const char *check_membership(
	const struct ccm *m, const struct ccm_membership *s, struct counts *ret)
{
	struct counts c = {0};
	const char *bad;

	REQUIRE(ccm_membership_find(m, s->agent->no, s->group->id) == s,
		"a host membership is not found");
	bad = check_membership_peers(m, s, &c);
	if (bad)
		return bad;
	REQUIRE(c.peers > 0, "a host membership without peers");
	REQUIRE(s->n_peers == c.peers, "a host membership's count of peers is wrong");
	REQUIRE(s->n_accepted == c.accepted,
		"a host membership's count of accepted peers is wrong");
	REQUIRE(s->n_asleep == c.asleep, "a host membership's count of stopped newcomers is wrong");
	REQUIRE(s->agent->claimed || s->agent->disconnected,
		"a host membership of an agent that does not hold its id");
	ret->peers += c.peers;
	ret->accepted += c.accepted;
	ret->asleep += c.asleep;
	add_votes(ret->votes, c.votes);
	return check_membership_ring(m, s);
}

static const char *check_sync(const struct ccm_op *o)
{
	const struct ccm_sync *y = o->sync;
	const struct ccm_op *x;
	uint32_t i;

	REQUIRE(o->group->sync == o, "a group has two synchronizations");
	REQUIRE(o->key.is_sync && o->key.tag == 0,
		"a synchronization has the key of another operation");
	REQUIRE(y->n_sync_peers >= o->n_words * 64, "a synchronization has no room for candidates");
	if (o->seq == 0)
		return NULL;
	DL_FOREACH (o->group->ops, x)
		REQUIRE(x == o || x->seq == 0, "an operation runs beside a synchronization");
	for (i = 0; i < o->n_parts; i++)
		REQUIRE(!o->parts[i].membership || o->parts[i].start_sent,
			"an agent was not told that a synchronization has started");
	REQUIRE(ccm_sync_has_holder(o), "no peer has the elected contents");
	REQUIRE(y->revision < UINT64_MAX, "a revision without a successor is elected");
	REQUIRE(ccm_revision_of(o->group) == 0 || ccm_revision_of(o->group) == y->revision,
		"a revision is elected that is not expected");
	return NULL;
}

static const char *check_part(const struct ccm_op *o, uint32_t i, uint32_t *waiting)
{
	const struct ccm_part *part = &o->parts[i];
	const struct ccm_peer *p;
	uint32_t n = 0;

	REQUIRE(part->membership->group == o->group,
		"an operation has a host membership of another group");
	REQUIRE(part->membership->slot == i,
		"a host membership is in a wrong part of an operation");
	DL_FOREACH (part->membership->peers, p) {
		n += ccm_op_voted(o, p);
		*waiting += p->waits_on == o;
	}
	REQUIRE(n == part->n_votes && n > 0, "a host membership's count of votes is wrong");
	return NULL;
}

static uint32_t bits_set(const uint64_t *words, uint32_t n)
{
	uint32_t i, bits = 0;
	uint64_t word;

	for (i = 0; i < n; i++)
		for (word = words[i]; word; word &= word - 1)
			bits++;
	return bits;
}

static const char *check_op_counts(const struct ccm_op *o)
{
	uint32_t i, votes = 0, voters = 0, reported = 0, waiting = 0;
	const char *bad;

	for (i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].membership)
			continue;
		bad = check_part(o, i, &waiting);
		if (bad)
			return bad;
		votes += o->parts[i].n_votes;
		voters++;
		reported += o->parts[i].reported;
	}
	REQUIRE(votes == o->n_votes && bits_set(o->voted, o->n_words) == votes,
		"an operation's count of votes is wrong");
	REQUIRE(waiting == o->n_waiting, "an operation's count of peers that wait for it is wrong");
	REQUIRE(voters == o->n_voters, "an operation's count of voters is wrong");
	REQUIRE(reported == o->n_reported, "an operation's count of reports is wrong");
	return NULL;
}

static const char *check_started(const struct ccm *m, const struct ccm_op *o)
{
	uint32_t disconnected = ccm_sync_count_disconnected(o);

	REQUIRE(o->group->n_disconnected <= disconnected,
		"an operation runs although a disconnected peer takes part in it");
	REQUIRE(o->seq <= m->last_seq, "an operation has a number that was never assigned");
	REQUIRE(o->n_votes + disconnected == o->group->n_accepted && !o->abort_code,
		"an operation runs without all votes");
	REQUIRE(o->n_reported < o->n_voters,
		"all agents have reported on an operation that is not done");
	return NULL;
}

static const char *check_ready(const struct ccm *m, const struct ccm_op *o)
{
	REQUIRE(m->round.active || ccm_ballot_bars(o->group) || ccm_round_waits(m) ||
			ccm_sync_excludes(o),
		"a ready operation was not started");
	REQUIRE(o->n_votes == o->group->n_accepted, "an operation is ready without all votes");
	return NULL;
}

static const char *check_op(const struct ccm *m, const struct ccm_op *o)
{
	const struct ccm_group *g = o->group;
	const char *bad = check_op_counts(o);

	if (bad)
		return bad;
	REQUIRE(g->n_accepted > 1 || o->sync, "an operation in a group of one");
	REQUIRE(o->generation == g->generation, "an operation outlived a loss");
	REQUIRE((o->seq != 0) == (o->state != CCM_VOTE_INITIATE_COLLECTIVE_COMMS),
		"an operation's state and its number disagree");
	REQUIRE(o->state != CCM_VOTE_COMPLETE_COLLECTIVE_COMMS || o->n_reported > 0 || o->sync,
		"an operation is complete without a report");
	REQUIRE(o->seq != 0 || o->n_votes < g->n_accepted || o->ready,
		"an operation with all votes waits for nothing");
	if (o->seq)
		bad = check_started(m, o);
	if (!bad && o->ready)
		bad = check_ready(m, o);
	return !bad && o->sync ? check_sync(o) : bad;
}

static const char *check_group(const struct ccm *m, const struct ccm_group *g, struct counts *all)
{
	const struct ccm_membership *s;
	const struct ccm_op *o;
	struct counts c = {0};
	uint32_t memberships = 0, ring = 0, disconnected = 0, waiting = 0;
	const char *bad;

	REQUIRE(!g->lost && !g->failed && !g->halt, "a group's mark was not cleared");
	REQUIRE(g->last == ccm_revision_find(m, g->id), "a group has forgotten its revision");
	REQUIRE(!g->sync || g->sync->sync, "a group's synchronization is another operation");
	DL_FOREACH2 (g->memberships, s, next_g) {
		REQUIRE(s->group == g, "a host membership is in another group");
		memberships++;
		ring += s->in_ring;
		disconnected += s->agent->disconnected ? s->n_accepted : 0;
		bad = check_membership(m, s, &c);
		if (bad)
			return bad;
	}
	DL_FOREACH (g->ops, o) {
		waiting += o->n_waiting > 0;
		bad = check_op(m, o);
		if (bad)
			return bad;
	}
	REQUIRE(memberships > 0 && memberships == g->n_memberships,
		"a group's count of host memberships is wrong");
	REQUIRE(ring == g->n_ring, "a ring has a wrong number of host memberships");
	REQUIRE(disconnected == g->n_disconnected,
		"a group's count of disconnected peers is wrong");
	REQUIRE(waiting == g->n_waited_ops,
		"a group's count of operations that peers wait for is wrong");
	REQUIRE(c.peers == g->n_peers, "a group's count of peers is wrong");
	REQUIRE(c.accepted == g->n_accepted, "a group's count of accepted peers is wrong");
	REQUIRE(memcmp(c.votes, g->n_votes, sizeof c.votes) == 0,
		"a group's count of votes is wrong");
	REQUIRE(g->peer_slots.n - g->peer_slots.n_free == c.accepted, "peer slots were lost");
	REQUIRE(g->membership_slots.n - g->membership_slots.n_free == memberships,
		"slots of host memberships were lost");
	all->peers += c.peers;
	all->asleep += c.asleep;
	all->accepted += c.accepted;
	add_votes(all->votes, c.votes);
	all->blocked_ops += waiting;
	all->crossed += waiting > 1;
	return NULL;
}

static const char *check_agent(const struct ccm_agent *a)
{
	uint32_t peers = 0, accepted = 0, n = 0;
	const struct ccm_membership *s;

	DL_FOREACH2 (a->memberships, s, next_a) {
		n++;
		peers += s->n_peers;
		accepted += s->n_accepted;
	}
	REQUIRE(!a->dead, "a dead agent is still listed");
	REQUIRE(a->greeted || n == 0, "an agent has host memberships without a hello");
	REQUIRE(n == a->n_memberships, "an agent's count of host memberships is wrong");
	REQUIRE(peers == a->n_peers, "an agent's count of peers is wrong");
	REQUIRE(accepted == a->n_accepted, "an agent's count of accepted peers is wrong");
	return NULL;
}

static const char *check_agents(const struct ccm *m)
{
	uint32_t memberships = 0, claimed = 0, in_round = 0, reported = 0, disconnected = 0,
		 resuming = 0;
	const struct ccm_agent *a;
	const char *bad;

	DL_FOREACH2 (m->disconnected, a, next_ab) {
		bad = check_agent(a);
		if (bad)
			return bad;
		REQUIRE(a->disconnected && !a->claimed, "a disconnected agent is not marked");
		REQUIRE(a->n_accepted > 0, "a disconnected agent without peers");
		REQUIRE(!a->next_ab || a->disconnected_ns <= a->next_ab->disconnected_ns,
			"disconnected agents are out of order");
		memberships += a->n_memberships;
		disconnected += a->n_accepted;
	}
	REQUIRE(disconnected == m->n_disconnected, "the count of disconnected peers is wrong");
	for (a = m->agents; a; a = a->hh.next) {
		bad = check_agent(a);
		if (bad)
			return bad;
		REQUIRE(!a->disconnected, "a disconnected agent is listed as present");
		REQUIRE(m->recovering || !a->snapshot, "a snapshot was left over");
		REQUIRE(m->recovering || m->adopting || !a->hello_deferred,
			"a hello was not answered");
		resuming += a->resuming;
		memberships += a->n_memberships;
		claimed += a->claimed;
		in_round += ccm_in_round(m, a->round);
		reported += ccm_in_round(m, a->round) && a->reported;
	}
	REQUIRE(memberships == HASH_COUNT(m->memberships),
		"the agents' counts of host memberships do not add up to the total");
	REQUIRE(resuming == m->n_resuming, "the count of resuming agents is wrong");
	REQUIRE(claimed == HASH_CNT(hh_id, m->by_id), "agents are not found by their ids");
	if (m->round.active) {
		REQUIRE(in_round == m->round.n_agents, "a round's count of agents is wrong");
		REQUIRE(reported == m->round.n_reported, "a round's count of reports is wrong");
		REQUIRE(in_round > 0 && (reported < in_round) == (m->round.failed_ns == 0),
			"a round waits for no agent");
	}
	return NULL;
}

static bool are_members(const struct ccm *m, const struct ccm_pair_key *key)
{
	const struct ccm_agent *a;
	uint32_t known = 0;

	for (a = m->agents; a; a = a->hh.next)
		known += a->n_accepted > 0 && (a->no == key->from || a->no == key->to);
	return known == 2;
}

static const char *check_pairs(const struct ccm *m)
{
	const struct ccm_pair *x;
	const struct ccm_break *b;

	for (x = m->pairs; x; x = x->hh.next)
		REQUIRE(are_members(m, &x->key),
			"a failed pair of agents that are not both members");
	for (b = m->breaks; b; b = b->hh.next)
		REQUIRE(are_members(m, &b->key), "breaks between agents that are not both members");
	return NULL;
}

static bool is_permutation(const struct cc_rings *x, const struct ccm_group *g, uint32_t ring)
{
	uint64_t seen = 0;
	uint32_t i;

	for (i = 0; i < x->hosts; i++)
		seen |= UINT64_C(1) << x->order[ring][i];
	return x->hosts > 0 && x->hosts == g->n_ring && seen == UINT64_MAX >> (64 - x->hosts);
}

/* May an optimization have nothing to do now? */
static bool optimization_pauses(const struct ccm *m)
{
	return ccm_round_waits(m) != NULL || m->optimize.paused_ns > 0;
}

static const char *check_optimize(const struct ccm *m)
{
	const struct ccm_optimize *x = &m->optimize;
	bool waits = optimization_pauses(m);
	uint32_t proposed = 0, measuring = 0, i;
	const struct ccm_group *g;
	const struct ccm_agent *a;

	for (a = m->agents; a; a = a->hh.next)
		measuring += a->measuring;
	for (g = m->groups; g; g = g->hh.next) {
		proposed += g->proposed;
		for (i = 0; g->rings && !m->rewire && !m->changed && i < g->rings->n; i++)
			REQUIRE(is_permutation(g->rings, g, i),
				"a ring is no permutation of hosts");
	}
	REQUIRE(proposed == m->n_proposed, "the count of proposals is wrong");
	REQUIRE(measuring == 0 || x->phase == CCM_OPTIMIZE_MEASURING,
		"a measurement goes on without an optimization");
	REQUIRE(x->phase != CCM_OPTIMIZE_MEASURING ||
			(measuring == x->n_waiting && (measuring > 0 || waits)),
		"the count of measurements is wrong");
	REQUIRE(x->phase != CCM_OPTIMIZE_SOLVING || x->n_problems > 0 || waits,
		"no solution is awaited");
	REQUIRE(x->phase != CCM_OPTIMIZE_REWIRING || m->n_proposed > 0, "no plan is proposed");
	REQUIRE(x->phase == CCM_OPTIMIZE_MEASURING || !x->edges, "edges are kept");
	return NULL;
}

/* Checks that every decision that is due was made. */
static const char *check_due(const struct ccm *m)
{
	uint32_t k;

	REQUIRE(!m->rewire || m->n_accepted == m->n_disconnected, "no round rewires the ring");
	REQUIRE(m->n_accepted > 0 || ccm_newcomers_ready(m) == 0,
		"the first peers are not admitted");
	for (k = 0; k < WIRE_BALLOTS; k++)
		REQUIRE((k != WIRE_TOPOLOGY && m->rewire) || m->ballots[k].n_votes == 0 ||
				(k == WIRE_OPTIMIZE && m->optimize.phase != CCM_OPTIMIZE_NONE) ||
				m->ballots[k].n_votes < m->n_accepted,
			"a complete ballot has no answer");
	return NULL;
}

static const char *check_run(const struct ccm *m)
{
	const char *bad = NULL;
	uint32_t k, votes = 0;

	REQUIRE(!m->reap && !m->dead && !m->lost, "something was left unsettled");
	REQUIRE(!m->round.active || !m->round.stale, "a stale round goes on");
	for (k = 0; k < WIRE_BALLOTS; k++)
		votes += m->ballots[k].n_votes;
	REQUIRE(!m->recovering || !(m->round.active || m->ops || votes > 0),
		"a round, an operation or a vote is in progress while recovering");
	REQUIRE(!m->stale || (!m->peers && !m->recovering), "a stale master has peers");
	if (!m->recovering && !m->round.active && !ccm_round_waits(m))
		bad = check_due(m);
	if (!bad)
		bad = check_optimize(m);
	return bad ? bad : check_pairs(m);
}

const char *ccm_check(const struct ccm *m)
{
	const struct ccm_group *g;
	struct counts c = {0};
	const char *bad;
	uint32_t k;

	REQUIRE(!m->broken, m->broken);
	for (g = m->groups; g; g = g->hh.next) {
		bad = check_group(m, g, &c);
		if (bad)
			return bad;
	}
	REQUIRE(c.peers == HASH_COUNT(m->peers), "peers are not with their groups");
	REQUIRE(c.accepted == m->n_accepted, "the count of accepted peers is wrong");
	REQUIRE(c.peers - c.accepted == m->n_registered, "the count of registered peers is wrong");
	REQUIRE(c.asleep == m->n_asleep, "the count of stopped newcomers is wrong");
	for (k = 0; k < WIRE_BALLOTS; k++)
		REQUIRE(c.votes[k] == m->ballots[k].n_votes, "the count of votes is wrong");
	REQUIRE(c.blocked_ops == m->n_waited_ops && c.crossed == m->n_crossed,
		"the count of operations that peers wait for is wrong");
	bad = check_agents(m);
	return bad ? bad : check_run(m);
}
