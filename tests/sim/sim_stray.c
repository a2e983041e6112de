/* SPDX-License-Identifier: MIT
 *
 * Programs that stray from the plan: they vote or ask when the others do not, as newcomers do, or
 * launch an operation that no other program launches. No program may wait for ever because of that.
 * A call that could still meet the calls of the others must not be answered alone.
 */
#include <inttypes.h>

#include "tests/sim/sim.h"

#define SLEEP (50 * SIM_MS) /* how long a caller waits before its agent is told that it waits */

bool sim_strays(const struct sim *s)
{
	return s->strays || s->overruled > 0;
}

bool sim_stray(struct sim *s, struct sim_peer *p)
{
	uint32_t what;

	if (!s->strays || p->strayed || p->call.type || sim_peer_alone(p))
		return false;
	p->strayed = true;
	what = sim_rnd(s, 10);
	if (what >= WIRE_BALLOTS)
		return false;
	p->stray = true;
	p->asking = what == WIRE_PENDING;
	s->seen[SEEN_STRAYED]++;
	sim_trace(s, "p%u: strays", p->no);
	sim_shim_call(s, p, SIM_VOTE(what));
	return true;
}

/* Adds the operation only if the others wait for this program in an operation of the step. */
void sim_stray_launch(struct sim *s, struct sim_peer *p)
{
	const struct sim_step *st = &p->steps[p->step];
	uint32_t free_tags = s->n_tags - st->n_ops;

	if (!s->strays || (st->n_ops == 0 && !st->sync) || free_tags == 0 || sim_peer_alone(p) ||
		!sim_chance(s, 10))
		return;
	p->mistaken = true;
	p->ops[st->n_ops + sim_rnd(s, free_tags)].wanted = true;
	s->seen[SEEN_STRAYED]++;
	sim_trace(s, "p%u: strays", p->no);
}

bool sim_stray_may_leave(const struct sim_peer *p)
{
	return p->rude && p->iterations == 1;
}

void sim_stray_await(struct sim *s, struct sim_peer *p, uint32_t tag)
{
	if (p->ops[tag].waited || sim_stray_may_leave(p) || p->ops[tag].state != OP_PENDING)
		return;
	sim_schedule(s, s->now + SLEEP,
		(struct sim_event){.kind = SIM_EV_ASLEEP,
			.host = p->proc->host,
			.peer = p->no,
			.session = p->proc->session,
			.tag = tag,
			.seq = p->ops[tag].since});
}

void sim_stray_asleep(struct sim *s, const struct sim_event *ev)
{
	struct sim_peer *p = &s->peers[ev->peer];
	const struct sim_op *o = &p->ops[ev->tag];
	struct agt_event e = {.type = AGT_EV_ASLEEP, .comm = p->comm, .slot = o->slot};

	if (sim_op_is_up(s, p, ev->session) && o->state == OP_PENDING && o->taken &&
		o->since == ev->seq && p->phase == PEER_STEPS && p->waits &&
		p->await[p->awaited] == ev->tag)
		sim_host_step(s, &s->hosts[p->proc->host], &e);
}

/* Returns the number of operations in flight. taken: the agent has all of them. */
static uint32_t count_pending(const struct sim_peer *p, bool *taken)
{
	uint32_t i, n = 0;

	*taken = true;
	for (i = 0; i < SIM_OPS; i++) {
		n += p->ops[i].state == OP_PENDING;
		*taken &= p->ops[i].state != OP_PENDING || p->ops[i].taken;
	}
	return n;
}

/* The agent may learn of this wait after some operations have ended or started. But it must not
 * learn of it after another launch. */
void sim_stray_await_any(struct sim *s, struct sim_peer *p)
{
	bool taken;
	uint32_t n = count_pending(p, &taken);

	if (sim_stray_may_leave(p))
		return;
	sim_schedule(s, s->now + SLEEP,
		(struct sim_event){.kind = SIM_EV_ASLEEP_ANY,
			.host = p->proc->host,
			.peer = p->no,
			.session = p->proc->session,
			.seq = p->n_launches,
			.code = n});
}

void sim_stray_asleep_any(struct sim *s, const struct sim_event *ev)
{
	struct sim_peer *p = &s->peers[ev->peer];
	struct agt_event e = {.type = AGT_EV_ASLEEP_ANY, .comm = p->comm, .n_ops = ev->code};
	bool taken;

	(void)count_pending(p, &taken);
	if (!sim_op_is_up(s, p, ev->session) || !taken || p->n_launches != ev->seq)
		return;
	s->seen[SEEN_ANY]++;
	sim_host_step(s, &s->hosts[p->proc->host], &e);
}

/* ---- calls that a master answers because they can never meet others ---- */

struct census {
	struct sim *s;
	const struct wm_unmet *u;
	/* the accepted peers concerned, and those of them that are in this call */
	uint32_t n, same;
	unsigned free; /* a peer that waits for nothing; SIM_PEERS: none */
};

static const struct sim_peer *find(const struct sim *s, const struct cc_id *id)
{
	unsigned i;

	for (i = 0; i < s->n_peers; i++)
		if (cc_id_eq(&s->peers[i].id, id))
			return &s->peers[i];
	return NULL;
}

static bool is_op(const struct wm_unmet *u)
{
	return u->kind == WM_WAIT_OP || u->kind == WM_WAIT_SYNC;
}

static bool is_in(const struct sim_peer *p, const struct wm_unmet *u)
{
	switch (u->kind) {
	case WM_WAIT_BALLOT:
		return p->call.type == SIM_VOTE(u->ballot);
	case WM_WAIT_SYNC:
		return p->ops[SIM_SYNC].state == OP_PENDING;
	default:
		return u->tag < SIM_TAGS && p->ops[u->tag].state == OP_PENDING;
	}
}

static bool waits(const struct sim_peer *p)
{
	uint32_t i;

	if (p->waits && sim_peer_awaits_any(p)) {
		for (i = 0; i < SIM_OPS; i++)
			if (p->ops[i].state == OP_DONE)
				return false;
		return true;
	}
	if (p->call.type || p->waits || p->held)
		return true;
	for (i = 0; i < SIM_OPS; i++)
		if (p->ops[i].state == OP_PENDING && (p->ops[i].waited || i == SIM_SYNC))
			return true;
	return false;
}

/* Has the peer's agent died? Until the master notices the death, it relies on the agent's earlier
 * messages. */
static bool is_outdated(struct sim *s, const struct ccm_peer_info *i)
{
	const struct sim_host *h = sim_host_by_id(s, &i->agent);

	return !h || !h->alive;
}

static void count(void *arg, const struct ccm_peer_info *i)
{
	struct census *c = arg;
	const struct sim_peer *p = find(c->s, &i->peer);

	if (i->phase != CCM_PEER_ACCEPTED || (is_op(c->u) && i->group != c->u->group))
		return;
	c->n++;
	if (!p || !p->proc->alive || p->phase == PEER_ENDED)
		return; /* its program does not call any more */
	if (is_outdated(c->s, i))
		return;
	c->same += is_in(p, c->u);
	if (!waits(p))
		c->free = p->no;
}

void sim_stray_check(struct sim *s, const struct sim_master *m, const struct wm_unmet *u)
{
	struct census c = {.s = s, .u = u, .free = SIM_PEERS};

	s->unmet++;
	if (m->superseded || s->two_masters)
		return;
	if (!sim_strays(s))
		sim_fail(s,
			"a call is answered as if it could not meet others, but no program strays");
	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), count, &c);
	if (c.same == c.n)
		sim_fail(s, "a call is answered alone, although all %u peers make it", c.n);
	if (is_op(u) && c.free < SIM_PEERS)
		sim_fail(s, "an operation is refused, although p%u may still call it", c.free);
}
