/* SPDX-License-Identifier: MIT
 *
 * The reports about the links between all hosts of a ring that the master may rely on. Checked: it
 * chooses another route than the ring only if every member has reported, over the connection that
 * it has now, that its links are up: after the commit of the ring, and after it got each
 * WM_LINK_REOPEN for a link of this ring. The rings of a plan need only the links of the plan. An
 * attempt that has started keeps its route under the next master.
 */
#include <inttypes.h>

#include "tests/sim/sim.h"

static bool has(const struct sim_others *x, const struct cc_id *agent)
{
	uint32_t i;

	for (i = 0; i < x->n; i++)
		if (cc_id_eq(&x->v[i], agent))
			return true;
	return false;
}

static void put_in_force(const struct sim_conn *c, struct sim_mesh *x)
{
	bool more = false;
	uint32_t i;

	if (x->planned.n == 0 && !x->known)
		return;
	for (i = 0; i < x->planned.n; i++)
		more |= !has(&x->others, &x->planned.v[i]);
	/* A report of more links than the new ring has is still valid. A master that takes a run
	 * over gets reports about a ring that another master has committed. */
	if (x->planned.n == 0 || (more && x->known)) {
		x->since = c->commits_sent;
		x->up = false;
	}
	x->others = x->planned;
	x->known = true;
	x->plan_since = c->commits_sent;
	x->plan_up = false;
}

static void commit(struct sim_conn *c)
{
	uint32_t g;

	c->commits_sent++;
	for (g = 0; g < SIM_GROUPS; g++)
		put_in_force(c, &c->mesh[g]);
}

static void plan(struct sim_conn *c, const struct wm_round *r)
{
	uint32_t i, k;

	for (i = 0; i < r->n_rings; i++) {
		const struct wm_ring *g = &r->rings[i];
		struct sim_others *x = &c->mesh[g->group].planned;

		x->n = 0;
		if (g->n_others == 0)
			continue;
		x->v[x->n++] = g->next.agent;
		for (k = 0; k < g->n_others && x->n < SIM_HOSTS; k++)
			x->v[x->n++] = g->others[k].agent;
	}
}

struct places {
	const struct cc_id *agent;
	bool in[SIM_GROUPS];
};

static void note_place(void *arg, const struct ccm_peer_info *p)
{
	struct places *x = arg;

	x->in[p->group] |= p->rank >= 0 && cc_id_eq(&p->agent, x->agent);
}

/* The link to this agent is lost at the agent's end, in all groups that have both hosts. If it is a
 * link of the ring, a round opens it again. */
static void reopen(
	struct sim *s, const struct sim_master *m, struct sim_conn *c, const struct cc_id *agent)
{
	struct places x = {.agent = agent};
	uint32_t g;

	c->reopens_sent++;
	ccm_each_peer(m->m, sim_clock_now(s, &m->clock), note_place, &x);
	for (g = 0; g < SIM_GROUPS; g++) {
		struct sim_others *o = &c->mesh[g].others;

		if (x.in[g] && !(o->n > 0 && cc_id_eq(&o->v[0], agent)))
			c->mesh[g].up = c->mesh[g].plan_up = false;
	}
}

static void check_up(struct sim *s, const struct sim_master *m, const struct sim_conn *c,
	uint32_t group, uint32_t route, uint64_t seq)
{
	const struct sim_mesh *x = &c->mesh[group];

	if (route != CC_ALGO_RING && !(route == CC_ALGO_RINGS ? x->plan_up : x->up))
		sim_fail(s,
			"%s chooses route %u for seq %" PRIu64
			" of group %u, but h%u has not reported that its links are up",
			sim_name_master(s, m->no), route, seq, group, c->host);
}

static void check_start(struct sim *s, const struct sim_master *m, const struct sim_conn *c,
	const struct wm_op_start *x)
{
	const struct sim_part *p = sim_xfer_first(s, &m->id, x->seq);

	if (x->is_sync)
		return;
	if (!p) {
		check_up(s, m, c, x->group, x->route, x->seq);
		return;
	}
	/* two masters may use the same number */
	if (m->superseded || m->behind || sim_is_split(s) || p->x.epoch != x->epoch ||
		p->x.tag != x->tag || p->x.group != x->group)
		return;
	s->seen[SEEN_TAKEN_OVER] += x->route != CC_ALGO_RING;
	if (p->x.route != x->route)
		sim_fail(s,
			"%s starts seq %" PRIu64
			" on route %u on h%u, but h%u has started it on route %u",
			sim_name_master(s, m->no), x->seq, x->route, c->host, p->host, p->x.route);
}

void sim_mesh_sent(
	struct sim *s, const struct sim_master *m, struct sim_conn *c, const struct wm_msg *msg)
{
	const struct sim_part *p;

	switch (msg->type) {
	case WM_ROUND:
		plan(c, &msg->u.round);
		sim_plan_sent(s, m, c, &msg->u.round);
		break;
	case WM_COMMIT:
		commit(c);
		break;
	case WM_LINK_REOPEN:
		reopen(s, m, c, &msg->u.link_reopen.agent);
		break;
	case WM_OP_START:
		check_start(s, m, c, &msg->u.op_start);
		break;
	case WM_OP_DONE:
		p = sim_xfer_first(s, &m->id, msg->u.op_done.seq);
		if (p && msg->u.op_done.next)
			check_up(s, m, c, p->x.group, msg->u.op_done.next_route,
				msg->u.op_done.next);
		break;
	default:
		break;
	}
}

void sim_mesh_got(struct sim_conn *c, const struct wm_msg *msg)
{
	c->commits_got += msg->type == WM_COMMIT;
	c->reopens_got += msg->type == WM_LINK_REOPEN;
}

void sim_mesh_reports(const struct sim_conn *c, struct sim_event *ev)
{
	ev->gen = c->reopens_got;
	ev->code = c->commits_got;
}

void sim_mesh_reported(struct sim_conn *c, const struct sim_event *ev, const struct wm_mesh *x)
{
	struct sim_mesh *g = &c->mesh[x->group];

	g->up = x->up && ev->gen == c->reopens_sent && ev->code >= g->since;
	g->plan_up = x->plan_up && ev->gen == c->reopens_sent && ev->code >= g->plan_since;
}

int sim_mesh_half_open(const struct sim *s)
{
	uint32_t i, g;

	for (i = s->n_conns; i-- > 0;) {
		const struct sim_conn *c = s->conns[i];

		for (g = 0; g < SIM_GROUPS && c->made && c->agent_open && c->master_open; g++)
			if (c->mesh[g].others.n > 0 && !c->mesh[g].up)
				return (int)c->host;
	}
	return -1;
}
