/* SPDX-License-Identifier: MIT
 *
 * Calls that can never meet. A vote can end if every peer concerned has given it or may still give
 * it. A peer may still give a vote if it waits for nothing, for a vote that can end, or for any of
 * several operations of which one can end. Votes that cannot end by this rule wait for each other,
 * and only an answer lets their peers continue. Nothing is decided while a round or a takeover is
 * in progress, or while an agent is disconnected, because its peers may vote otherwise when they
 * are back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_sync.h"

/* After this number of answers in a row to a peer that does nothing else, the next answer waits for
 * a tick, so that a loop of such calls does not keep the master busy. */
#define ALONE_MAX 4u
/* After this number of answers, the peer is assumed to wait for an act of peers that wait for
 * it. */
#define ALONE_HOPELESS 100u
#define NAMED_MAX      3u /* calls that the sentence names */

/* A peer can ask for pending peers all the time while another of its threads launches operations.
 * If the peer has done nothing for this time, its threads are assumed to wait for each other. */
#define THREADS_NS (UINT64_C(2000) * CCM_NS_PER_MS)

/* The votes that can end. For operations see ccm_op.meets. */
struct ends {
	bool ballot[WIRE_BALLOTS];
	bool any; /* some peer waits until any of its operations ends */
};

/* ---- waiting peers, as votes come and go ---- */

static void count_op(struct ccm *m, struct ccm_group *g, bool more)
{
	if (more) {
		m->n_waited_ops++;
		m->n_crossed += ++g->n_waited_ops == 2;
	} else {
		m->n_waited_ops--;
		m->n_crossed -= g->n_waited_ops-- == 2;
	}
}

void ccm_unmet_waits_for(struct ccm *m, struct ccm_op *o, struct ccm_peer *p, uint32_t kind)
{
	p->acted_ns = m->now;
	p->helper |= kind == WM_WAIT_FOR_HELPER;
	if (p->waits_on_any) /* its wait has ended */
		ccm_unmet_unblock(m, p->waits_on, p);
	if (kind == WM_WAIT_FOR_NONE || o->seq || p->waits_on)
		return;
	p->waits_on = o;
	p->waits_on_main = kind == WM_WAIT_FOR_MAIN;
	if (o->n_waiting++ == 0)
		count_op(m, o->group, true);
	m->stuck_news = true;
}

void ccm_unmet_unblock(struct ccm *m, struct ccm_op *o, struct ccm_peer *p)
{
	if (p->waits_on != o && !p->waits_on_any)
		return;
	o = p->waits_on;
	p->acted_ns = m->now;
	p->waits_on = NULL;
	p->waits_on_any = false;
	if (--o->n_waiting == 0)
		count_op(m, o->group, false);
	m->stuck_news = true;
}

void ccm_unmet_release(struct ccm *m, const struct ccm_op *o, struct ccm_peer *p)
{
	p->acted_ns = m->now;
	if (p->waits_on && p->waits_on != o && p->waits_on_any)
		ccm_unmet_unblock(m, p->waits_on, p);
	if (p->waits_on != o)
		return;
	p->waits_on = NULL;
	p->waits_on_any = false;
}

void ccm_unmet_forget(struct ccm *m, struct ccm_op *o)
{
	if (o->n_waiting > 0)
		count_op(m, o->group, false);
	o->n_waiting = 0;
	m->stuck_news = true;
}

void ccm_peer_waits_for(struct ccm *m, struct ccm_agent *a, const struct wm_waits_for *b)
{
	struct ccm_peer *p = ccm_peer_of(m, a, &b->peer, "a report of a waiting call");
	struct ccm_op_key key = {.tag = b->tag};
	struct ccm_op *o;

	if (!p)
		return;
	if (m->recovering) /* the vote is not counted yet */
		p->raw_waits_for = *b;
	/* If one of the operations that the agent knows has started or ended, the peer continues.
	 * No vote is missing, because all votes were sent before this message. */
	if (b->any > 0 && (p->n_running > 0 || p->n_ops != b->any))
		return;
	key.group = p->membership->group->id;
	HASH_FIND(hh, m->ops, &key, sizeof key, o);
	if (!o || !ccm_op_voted(o, p)) /* the operation has ended meanwhile */
		return;
	ccm_unmet_waits_for(m, o, p, b->kind);
	p->waits_on_any = b->any > 0 && p->waits_on;
}

static bool is_beside(const struct ccm_peer *p, const struct ccm_peer *q)
{
	return p != q && p->thread != 0 && p->thread == q->thread;
}

void ccm_unmet_thread(struct ccm *m, struct ccm_peer *p, uint64_t thread)
{
	const struct ccm_membership *s;
	struct ccm_peer *q;

	p->thread = thread;
	p->shares = false;
	m->stuck_news = true;
	if (thread == 0)
		return;
	DL_FOREACH2 (p->membership->agent->memberships, s, next_a)
		DL_FOREACH (s->peers, q)
			if (is_beside(p, q))
				p->shares = q->shares = m->shares = true;
}

/* ---- the rule ---- */

/* Can a wait of p end? Sets *waits if p waits. `main`: only p's main thread counts, otherwise every
 * thread that launches operations. */
static bool wait_ends(const struct ends *e, const struct ccm_peer *p, bool main, bool *waits)
{
	uint32_t k;

	if (p->phase != CCM_PEER_ACCEPTED) { /* a newcomer in pcclConnect */
		*waits = true;
		return e->ballot[WIRE_TOPOLOGY];
	}
	for (k = 0; k < WIRE_BALLOTS; k++) {
		*waits |= p->voted[k];
		if (p->voted[k] && e->ballot[k])
			return true;
	}
	if (!p->waits_on || (main && !p->waits_on_main))
		return false;
	*waits = true;
	return p->waits_on_any ? p->any_meets : p->waits_on->meets;
}

/* May another thread of p still act while one waits? Only the time up to the last message of p's
 * host counts, because a vote of p may be lost with the host's connection. */
static bool thread_may_act(const struct ccm_peer *p)
{
	return p->n_running > 0 ||
	       ccm_age(p->membership->agent->spoke_ns, p->acted_ns) < THREADS_NS;
}

/* Has p sent an exclusive vote, or one of another kind? */
static bool has_voted(const struct ccm_peer *p, bool exclusive)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (p->voted[k] && wire_ballot_kinds[k].is_exclusive == exclusive)
			return true;
	return false;
}

/* May p still do something by itself? */
static bool moves(const struct ends *e, const struct ccm_peer *p)
{
	const struct ccm_membership *s;
	const struct ccm_peer *q;
	bool waits = false;

	if (p->stopped_ns || p->membership->agent->disconnected || wait_ends(e, p, false, &waits))
		return true;
	if (p->helper && has_voted(p, false) && !p->waits_on && thread_may_act(p))
		return true;
	if (!p->shares)
		return !waits;
	DL_FOREACH2 (p->membership->agent->memberships, s, next_a)
		DL_FOREACH (s->peers, q)
			if (is_beside(p, q) && wait_ends(e, q, true, &waits))
				return true;
	return !waits;
}

/* May p's main thread still send a vote that is not exclusive, while another thread waits for an
 * operation? */
static bool may_vote_beside(const struct ccm_peer *p)
{
	return p->waits_on && !p->waits_on_main && !has_voted(p, true) && !p->shares &&
	       thread_may_act(p);
}

static bool ballot_ends(const struct ccm *m, const struct ends *e, uint32_t kind)
{
	bool exclusive = wire_ballot_kinds[kind].is_exclusive;
	const struct ccm_peer *p;

	for (p = m->peers; p; p = p->hh.next) {
		if (p->phase != CCM_PEER_ACCEPTED)
			continue;
		if (p->voted[kind] || (!exclusive && may_vote_beside(p)))
			continue;
		if (!moves(e, p))
			return false;
	}
	return true;
}

static bool op_ends(const struct ends *e, const struct ccm_op *o)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++) /* o starts only after an exclusive vote */
		if (o->group->n_votes[k] > 0 && wire_ballot_kinds[k].is_exclusive && !e->ballot[k])
			return false;
	DL_FOREACH2 (o->group->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			if (p->phase == CCM_PEER_ACCEPTED && !ccm_op_voted(o, p) && !moves(e, p))
				return false;
	return true;
}

static void set_meets(struct ccm_op *o)
{
	const struct ccm_membership *s;
	struct ccm_peer *p;

	o->meets = true;
	DL_FOREACH2 (o->group->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			p->any_meets |= p->waits_on_any && ccm_op_voted(o, p);
}

static bool grow_ops(const struct ends *e, struct ccm_op *list)
{
	struct ccm_op *o;
	bool grown = false;

	DL_FOREACH2 (list, o, next_w) {
		if (o->meets || (o->n_waiting == 0 && !e->any) || !op_ends(e, o))
			continue;
		set_meets(o);
		grown = true;
	}
	return grown;
}

/* Finds all votes that can end. The remaining votes are the largest set of which no vote can
 * end. */
static void find_ends(struct ccm *m, struct ends *e)
{
	struct ccm_peer *p;
	struct ccm_op *o;
	uint32_t k;
	bool grown;

	*e = (struct ends){.any = false};
	for (p = m->peers; p; p = p->hh.next) {
		p->any_meets = false;
		e->any |= p->waits_on_any;
	}
	DL_FOREACH2 (m->fresh, o, next_w)
		o->meets = false;
	DL_FOREACH2 (m->late, o, next_w)
		o->meets = false;
	do {
		grown = grow_ops(e, m->fresh);
		grown |= grow_ops(e, m->late);
		for (k = 0; k < WIRE_BALLOTS; k++)
			if (!e->ballot[k] && ballot_ends(m, e, k))
				e->ballot[k] = grown = true;
	} while (grown);
}

/* Are there two calls that could wait for each other? */
static bool is_worth_it(const struct ccm *m)
{
	uint32_t k, open = 0;

	for (k = 0; k < WIRE_BALLOTS; k++)
		open += m->ballots[k].n_votes > 0;
	return open > 1 || (open > 0 && m->n_waited_ops > 0) || m->n_crossed > 0 ||
	       (m->shares && m->n_accepted > 0);
}

static bool may_decide(const struct ccm *m)
{
	return !m->recovering && !m->round.active && !m->rewire && m->n_disconnected == 0 &&
	       !m->lost && !ccm_round_waits(m);
}

/* ---- the answers ---- */

/* Adds p to the message *last to its agent, or to a new one if *last is NULL or full. No other
 * action may come between two calls. */
static void add_unmet(struct ccm *m, const struct ccm_agent *a, const struct wm_unmet *what,
	struct wm_unmet **last, const struct ccm_peer *p)
{
	uint32_t room = a->n_accepted < WM_PEERS_MAX ? a->n_accepted : WM_PEERS_MAX;

	if (!*last || (*last)->n_peers == room) {
		*last = &ccm_send(m, a, WM_UNMET)->u.unmet;
		**last = *what;
		(*last)->peers = cc_must_zalloc(room, sizeof *(*last)->peers);
	}
	(*last)->peers[(*last)->n_peers++] = p->id;
}

/* Has each peer with this vote been answered n times? */
static bool all_answered(const struct ccm *m, uint32_t kind, uint32_t n)
{
	const struct ccm_peer *p;

	for (p = m->peers; p; p = p->hh.next)
		if (p->voted[kind] && p->n_alone < n)
			return false;
	return true;
}

/* Must the next answer to peers with this vote wait for a tick? */
static bool is_patient(const struct ccm *m, uint32_t kind)
{
	return !m->ticking && all_answered(m, kind, ALONE_MAX);
}

/* Do the peers that have voted do nothing but vote? */
static bool is_hopeless(const struct ccm *m)
{
	uint32_t k;

	for (k = 0; k < WIRE_BALLOTS; k++)
		if (!all_answered(m, k, ALONE_HOPELESS))
			return false;
	return m->ticking;
}

/* Answers the peers that have voted. The ballot does not end; their votes are void, as if the peers
 * had not voted. Returns false if the answer waits for a tick. */
static bool answer_votes(struct ccm *m, enum wire_ballot kind, bool answer)
{
	struct wm_unmet what = {.kind = WM_WAIT_BALLOT, .ballot = kind, .answer = answer};
	uint32_t votes = m->ballots[kind].n_votes;
	struct ccm_agent *a;
	struct ccm_membership *s;
	struct ccm_peer *p;
	struct wm_unmet *last;

	if (is_patient(m, kind))
		return false;
	for (a = m->agents; a; a = a->hh.next) {
		last = NULL;
		DL_FOREACH2 (a->memberships, s, next_a)
			DL_FOREACH (s->peers, p)
				if (p->voted[kind])
					add_unmet(m, a, &what, &last, p);
	}
	for (p = m->peers; p; p = p->hh.next) {
		if (!p->voted[kind])
			continue;
		ccm_ballot_release(m, p, kind);
		if (p->n_alone < ALONE_HOPELESS)
			p->n_alone++;
	}
	ccm_log(m, CCM_LOG_DEBUG, "the %s ends for %u of %u peers: the others wait for them",
		wire_ballot_kinds[kind].name, votes, m->n_accepted);
	return true;
}

/* Refuses a newcomer that waits for a vote which its own thread would have to give as another
 * peer. */
static bool refuse_newcomer(struct ccm *m, const struct ends *e)
{
	char label[3 * WM_NAME_MAX];
	struct ccm_peer *p, *q;
	struct ccm_membership *s;

	for (p = m->shares ? m->peers : NULL; p; p = p->hh.next) {
		if (p->phase == CCM_PEER_ACCEPTED || !p->shares)
			continue;
		DL_FOREACH2 (p->membership->agent->memberships, s, next_a)
			DL_FOREACH (s->peers, q)
				if (is_beside(p, q) && q->phase == CCM_PEER_ACCEPTED &&
					!q->voted[WIRE_TOPOLOGY] && !moves(e, q)) {
					ccm_peer_kick(m, p, WIRE_INVALID_USAGE,
						"pcclConnect waits for a vote of %s, a "
						"communicator of the same thread: use one thread "
						"for each communicator of a run",
						ccm_peer_label(q, label));
					return true;
				}
	}
	return false;
}

static const struct ccm_peer *who_waits(const struct ccm_op *o)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (o->group->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			if (p->waits_on == o)
				return p;
	return NULL;
}

static void name_op(const struct ccm_op *o, bool first, char *text, size_t size)
{
	const struct ccm_peer *p = who_waits(o);
	char label[3 * WM_NAME_MAX], more[32] = "";

	if (o->n_waiting > 1)
		ccm_print(more, sizeof more, " and %u more", o->n_waiting - 1);
	if (first)
		ccm_append(text, size, "these calls wait for each other: ");
	else
		ccm_append(text, size, ", ");
	if (o->sync)
		ccm_append(text, size, "synchronization of group %u", o->group->id);
	else
		ccm_append(text, size, "all-reduce of tag %" PRIu64 " in group %u", o->key.tag,
			o->group->id);
	if (p)
		ccm_append(text, size, " (%s%s)", ccm_peer_label(p, label), more);
}

/* Names the peers that have done nothing else for a hundred answers. */
static void name_voters(const struct ccm *m, uint32_t kind, char *text, size_t size)
{
	char label[3 * WM_NAME_MAX], more[32] = "";
	const struct ccm_peer *p, *first = NULL;
	uint32_t n = 0;

	for (p = m->peers; p; p = p->hh.next) {
		if (!p->voted[kind])
			continue;
		first = first ? first : p;
		n++;
	}
	if (!first)
		return;
	if (n > 1)
		ccm_print(more, sizeof more, " and %u more", n - 1);
	ccm_append(text, size, ", %s, %u times (%s%s)", wire_ballot_kinds[kind].call,
		ALONE_HOPELESS, ccm_peer_label(first, label), more);
}

static void end_op(struct ccm *m, struct ccm_op *o, const char *text)
{
	struct wm_unmet what = {.kind = o->sync ? WM_WAIT_SYNC : WM_WAIT_OP,
		.group = o->group->id,
		.tag = o->key.tag,
		.generation = o->generation,
		.code = WIRE_INVALID_USAGE};
	struct wm_unmet *last;
	struct ccm_peer *p;
	uint32_t i;

	ccm_print(what.text, sizeof what.text, "%s", text);
	for (i = 0; i < o->n_parts; i++) {
		last = NULL;
		if (!o->parts[i].membership)
			continue;
		DL_FOREACH (o->parts[i].membership->peers, p)
			if (ccm_op_voted(o, p))
				add_unmet(m, p->membership->agent, &what, &last, p);
	}
	m->ops_aborted++;
	ccm_spec_void(o);
	ccm_sync_answer(m, o);
	ccm_op_drop(m, o);
}

/* Can no peer of g continue? A peer that can continue would call alone after the others were
 * refused, so the master waits for it. */
static bool all_stuck(const struct ends *e, const struct ccm_group *g)
{
	const struct ccm_membership *s;
	const struct ccm_peer *p;

	DL_FOREACH2 (g->memberships, s, next_g)
		DL_FOREACH (s->peers, p)
			if (p->phase == CCM_PEER_ACCEPTED && moves(e, p))
				return false;
	return true;
}

static uint32_t take_ended(const struct ends *e, struct ccm_op *list, struct ccm_op **v, uint32_t n)
{
	struct ccm_op *o;

	DL_FOREACH2 (list, o, next_w)
		if (!o->meets && all_stuck(e, o->group) && !op_ends(e, o))
			v[n++] = o;
	return n;
}

/* Ends all operations of groups in which no peer can continue, so that none of the peers goes on to
 * wait for the next operation. */
static bool end_operations(struct ccm *m, const struct ends *e)
{
	struct ccm_op **v, *o;
	char text[WM_TEXT_MAX] = "";
	uint32_t i, n = 0, named = 0, waiting = 0;

	DL_COUNT2(m->fresh, o, n, next_w);
	DL_COUNT2(m->late, o, i, next_w);
	v = cc_must_zalloc((size_t)n + i, sizeof(struct ccm_op *));
	n = take_ended(e, m->fresh, v, 0);
	n = take_ended(e, m->late, v, n);
	for (i = 0; i < n; i++) {
		waiting += v[i]->n_waiting > 0;
		if (v[i]->n_waiting > 0 && named < NAMED_MAX)
			name_op(v[i], named++ == 0, text, sizeof text);
	}
	if (waiting > named)
		ccm_append(text, sizeof text, " and %u more", waiting - named);
	if (waiting > 0) {
		for (i = 0; i < WIRE_BALLOTS; i++)
			if (!e->ballot[i])
				name_voters(m, i, text, sizeof text);
		ccm_log(m, CCM_LOG_WARNING, "%s", text);
	}
	for (i = 0; i < n && waiting > 0; i++)
		end_op(m, v[i], text);
	free(v);
	return waiting > 0;
}

static bool is_stuck_op(const struct ccm_op *list)
{
	const struct ccm_op *o;

	DL_FOREACH2 (list, o, next_w)
		if (o->n_waiting > 0 && !o->meets)
			return true;
	return false;
}

/* May peers that ask for pending peers be told to join the topology vote, which then admits
 * newcomers? Not while an operation waits for them: a loop that updates while peers are pending
 * would never reach the operation. */
static bool may_admit(const struct ccm *m)
{
	return ccm_newcomers_ready(m) > 0 && !is_stuck_op(m->fresh) && !is_stuck_op(m->late);
}

static bool is_stuck(const struct ccm *m, const struct ends *e, enum wire_ballot kind)
{
	return m->ballots[kind].n_votes > 0 && !e->ballot[kind];
}

/* Answers all votes that cannot end. Their peers continue, and may meet the others. */
static bool answer_stuck(struct ccm *m, const struct ends *e)
{
	bool answered = false;
	uint32_t k;

	if (is_stuck(m, e, WIRE_TOPOLOGY) && is_stuck(m, e, WIRE_PENDING) && may_admit(m))
		return answer_votes(m, WIRE_PENDING, true);
	for (k = 0; k < WIRE_BALLOTS; k++)
		if (is_stuck(m, e, (enum wire_ballot)k))
			answered |= answer_votes(
				m, (enum wire_ballot)k, wire_ballot_kinds[k].unmet_answer);
	return answered;
}

static bool decide(struct ccm *m)
{
	struct ends e;
	uint32_t k = 0;

	find_ends(m, &e);
	if (refuse_newcomer(m, &e))
		return true;
	while (k < WIRE_BALLOTS && !is_stuck(m, &e, (enum wire_ballot)k))
		k++;
	if (k < WIRE_BALLOTS && !is_hopeless(m))
		return answer_stuck(m, &e);
	return end_operations(m, &e);
}

bool ccm_unmet_settle(struct ccm *m)
{
	if (!m->stuck_news || !may_decide(m))
		return false;
	m->stuck_news = false;
	return is_worth_it(m) && decide(m);
}
