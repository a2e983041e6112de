/* SPDX-License-Identifier: MIT
 *
 * Connections between agents and the master: bytes in order, through the real codec, with delays.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire_frame.h"
#include "tests/sim/sim.h"

uint32_t sim_conn_number(const struct sim_host *h, uint32_t run)
{
	return (h->no + 1) * SIM_RUNS + run;
}

static struct sim_conn *conn_by_number(struct sim *s, uint32_t conn, struct sim_host **host)
{
	struct sim_host *h = &s->hosts[conn / SIM_RUNS - 1];

	*host = h;
	return &h->conns[conn % SIM_RUNS];
}

static uint64_t in_order(struct sim *s, uint64_t *last)
{
	uint64_t at = s->now + sim_delay(s);

	*last = at > *last ? at : *last + 1;
	return *last;
}

void sim_connect(struct sim *s, struct sim_host *h, uint32_t run)
{
	if (run >= SIM_RUNS) {
		sim_fail(s, "host %u opens its run %u: too many", h->no, run);
		return;
	}
	h->conns[run].used = true;
	sim_schedule(s, s->now + sim_delay(s),
		(struct sim_event){.kind = SIM_EV_CONNECT, .host = h->no, .run = run});
}

void sim_connected(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct sim_conn *c = &h->conns[ev->run];
	struct agt_event down = {.type = AGT_EV_MASTER_DOWN, .run = ev->run};
	struct agt_event up = {.type = AGT_EV_MASTER_UP, .run = ev->run};
	struct ccm_event open = {.type = CCM_EV_OPEN, .conn = sim_conn_number(h, ev->run)};

	if (c->agent_closed)
		return;
	if (s->faults.master_refuses) {
		c->agent_closed = c->master_closed = true;
		down.text = "Connection refused";
		sim_host_step(s, h, &down);
		return;
	}
	c->open = true;
	open.addr = (struct cc_addr){
		.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)(h->no + 1)}, .port = 40000};
	sim_master_step(s, &open);
	sim_host_step(s, h, &up);
}

static void encode(struct sim *s, const struct wm_msg *m, struct sim_event *ev)
{
	if (wire_master_encode(m, &ev->bytes, &ev->len) < 0)
		sim_fail(s, "%s cannot be encoded", wire_master_type_name(m->type));
}

void sim_send_to_master(struct sim *s, struct sim_host *h, uint32_t run, const struct wm_msg *m)
{
	struct sim_event ev = {.kind = SIM_EV_TO_MASTER, .host = h->no, .run = run};
	struct sim_conn *c = &h->conns[run];

	if (!c->open || c->agent_closed)
		sim_fail(s, "host %u sends on run %u, which is not open", h->no, run);
	encode(s, m, &ev);
	sim_trace(s, "host %u run %u: -> %s", h->no, run, wire_master_type_name(m->type));
	sim_schedule(s, in_order(s, &c->to_master), ev);
}

static void learn(struct sim_world *w, const struct wm_world *m)
{
	uint32_t i;

	*w = (struct sim_world){.known = true};
	w->global = m->global;
	w->groups = m->groups;
	w->largest = m->largest;
	for (i = 0; i < m->n; i++)
		w->group[m->own[i].group] = m->own[i].world;
}

static void send_to_agent(struct sim *s, const struct ccm_action *x)
{
	struct sim_event ev = {.kind = SIM_EV_TO_AGENT};
	struct sim_host *h;
	struct sim_conn *c = conn_by_number(s, x->conn, &h);

	if (!c->open || c->master_closed) {
		sim_fail(s, "the master sends %s on a closed connection",
			wire_master_type_name(x->msg.type));
		return;
	}
	if (x->msg.type == WM_COMMIT)
		learn(&c->sent, &x->msg.u.commit.world);
	else if (x->msg.type == WM_WORLD)
		learn(&c->sent, &x->msg.u.world);
	ev.world = c->sent;
	ev.host = h->no;
	ev.run = x->conn % SIM_RUNS;
	encode(s, &x->msg, &ev);
	sim_trace(s, "master: -> host %u %s", h->no, wire_master_type_name(x->msg.type));
	sim_schedule(s, in_order(s, &c->to_agent), ev);
}

static void master_closes(struct sim *s, const struct ccm_action *x)
{
	struct sim_host *h;
	struct sim_conn *c = conn_by_number(s, x->conn, &h);

	sim_trace(s, "master: closes host %u: %s", h->no, x->text);
	c->master_closed = true;
	sim_schedule(s, in_order(s, &c->to_agent),
		(struct sim_event){
			.kind = SIM_EV_AGENT_SEES_END, .host = h->no, .run = x->conn % SIM_RUNS});
}

struct census {
	uint32_t n[SIM_GROUPS];
	uint32_t local[SIM_HOSTS];
	struct sim *s;
};

static void count_peer(void *arg, const struct ccm_peer_info *p)
{
	struct census *c = arg;
	const struct sim_host *h = sim_host_by_id(c->s, &p->agent);

	if (p->phase != CCM_PEER_ACCEPTED)
		return;
	c->n[p->group]++;
	if (h)
		c->local[h->no]++;
}

/* What the master told each agent last must be what it knows. */
static void check_worlds(struct sim *s)
{
	struct census c = {.s = s};
	unsigned i, g;
	uint32_t run;

	ccm_each_peer(s->m, s->now, count_peer, &c);
	for (i = 0; i < s->n_hosts; i++) {
		const struct sim_host *h = &s->hosts[i];

		for (run = 1; run < SIM_RUNS && h->conns[run].used && c.local[i]; run++) {
			const struct sim_conn *x = &h->conns[run];

			if (!x->sent.known || x->master_closed || x->agent_closed)
				continue;
			for (g = 0; g < SIM_GROUPS; g++)
				if (x->sent.group[g] && x->sent.group[g] != c.n[g])
					sim_fail(s,
						"host %u was told %u peers in group %u, it has %u",
						i, x->sent.group[g], g, c.n[g]);
		}
	}
}

void sim_master_step(struct sim *s, const struct ccm_event *ev)
{
	const char *wrong;
	size_t i;

	ccm_actions_clear(&s->m_acts);
	if (ccm_step(s->m, ev, s->now, &s->m_acts) < 0)
		sim_fail(s, "the master has no memory");
	wrong = ccm_check(s->m);
	if (wrong)
		sim_fail(s, "the master's invariant is broken: %s", wrong);
	for (i = 0; i < s->m_acts.n && !s->failure[0]; i++) {
		const struct ccm_action *x = &s->m_acts.v[i];

		if (x->type == CCM_ACT_SEND)
			send_to_agent(s, x);
		else if (x->type == CCM_ACT_CLOSE)
			master_closes(s, x);
		else
			sim_trace(s, "master: %s", x->text);
	}
	if (ev->type != CCM_EV_TICK)
		check_worlds(s);
}

static int decode(struct sim *s, const struct sim_event *ev, struct wm_msg *m)
{
	const char *why;
	int rc = wire_master_decode(ev->bytes + WIRE_FRAME_HDR, ev->len - WIRE_FRAME_HDR, m, &why);

	if (rc < 0)
		sim_fail(s, "a message cannot be decoded: %s", why);
	return rc;
}

void sim_to_master(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct ccm_event e = {.type = CCM_EV_MSG, .conn = sim_conn_number(h, ev->run)};
	struct wm_msg m;

	if (h->conns[ev->run].master_closed || decode(s, ev, &m) < 0)
		return;
	e.msg = &m;
	sim_master_step(s, &e);
	wire_master_clear(&m);
}

void sim_to_agent(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct agt_event e = {.type = AGT_EV_MASTER_MSG, .run = ev->run};
	struct wm_msg m;

	if (h->conns[ev->run].agent_closed || decode(s, ev, &m) < 0)
		return;
	e.msg = &m;
	sim_trace(s, "host %u run %u: <- %s", h->no, ev->run, wire_master_type_name(m.type));
	h->conns[ev->run].heard = ev->world;
	sim_host_step(s, h, &e);
	wire_master_clear(&m);
}

void sim_agent_closes(struct sim *s, struct sim_host *h, uint32_t run)
{
	struct sim_conn *c = &h->conns[run];

	if (c->agent_closed)
		return;
	c->agent_closed = true;
	if (c->open)
		sim_schedule(s, in_order(s, &c->to_master),
			(struct sim_event){
				.kind = SIM_EV_MASTER_SEES_END, .host = h->no, .run = run});
}

void sim_conn_cut(struct sim *s, struct sim_host *h, uint32_t run)
{
	struct sim_conn *c = &h->conns[run];

	sim_trace(s, "fault: the connection of host %u to the master breaks", h->no);
	sim_schedule(s, in_order(s, &c->to_master),
		(struct sim_event){.kind = SIM_EV_MASTER_SEES_END, .host = h->no, .run = run});
	sim_schedule(s, in_order(s, &c->to_agent),
		(struct sim_event){.kind = SIM_EV_AGENT_SEES_END, .host = h->no, .run = run});
}

void sim_conn_end(struct sim *s, const struct sim_event *ev)
{
	struct sim_host *h = &s->hosts[ev->host];
	struct sim_conn *c = &h->conns[ev->run];
	struct ccm_event closed = {.type = CCM_EV_CLOSED, .conn = sim_conn_number(h, ev->run)};
	struct agt_event down = {.type = AGT_EV_MASTER_DOWN, .run = ev->run};

	if (ev->kind == SIM_EV_MASTER_SEES_END && !c->master_closed) {
		c->master_closed = true;
		closed.text = "Connection reset by peer";
		sim_master_step(s, &closed);
	} else if (ev->kind == SIM_EV_AGENT_SEES_END && !c->agent_closed) {
		c->agent_closed = true;
		down.text = "Connection reset by peer";
		sim_host_step(s, h, &down);
	}
}
