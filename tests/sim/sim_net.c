/* SPDX-License-Identifier: MIT
 *
 * Connections between agents and masters: bytes in order, through the real codec, with delays. An
 * end may die or break, or may wrongly believe that the other end is there.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire_frame.h"
#include "tests/sim/sim.h"

struct sim_conn *sim_conn(struct sim *s, uint32_t no)
{
	return s->conns[no - 1];
}

static struct sim_conn *conn_new(struct sim *s)
{
	struct sim_conn *c = calloc(1, sizeof *c);

	if (s->n_conns == s->cap_conns) {
		s->cap_conns = s->cap_conns ? 2 * s->cap_conns : 64;
		/* An array of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
		s->conns = reallocarray(s->conns, s->cap_conns, sizeof *s->conns);
	}
	if (!c || !s->conns)
		abort();
	s->conns[s->n_conns++] = c;
	c->no = s->n_conns;
	c->agent_until = c->master_until = UINT64_MAX;
	return c;
}

void sim_conns_free(struct sim *s)
{
	uint32_t i;

	for (i = 0; i < s->n_conns; i++)
		free(s->conns[i]);
	free(s->conns);
}

static uint64_t in_order(struct sim *s, uint64_t *last)
{
	uint64_t at = s->now + sim_delay(s);

	*last = at > *last ? at : *last + 1;
	return *last;
}

static struct sim_event event(const struct sim_conn *c, enum sim_kind kind)
{
	return (struct sim_event){
		.kind = kind, .conn = c->no, .host = c->host, .life = c->life, .master = c->master};
}

void sim_connect(struct sim *s, struct sim_host *h, uint32_t run, const struct cc_addr *addr)
{
	struct sim_conn *c;

	if (run >= SIM_RUNS) {
		sim_fail(s, "host %u opens its run %u: too many", h->no, run);
		return;
	}
	sim_agent_closes(s, h, run); /* closes an earlier connection */
	c = conn_new(s);
	c->host = h->no;
	c->life = h->life;
	c->run = run;
	c->addr = *addr;
	c->agent_open = true;
	h->runs[run].conn = c->no;
	if (run > h->last_run)
		h->last_run = run;
	sim_schedule(s, in_order(s, &c->to_agent), event(c, SIM_EV_CONNECTED));
}

static void tell_down(struct sim *s, struct sim_conn *c, const char *text)
{
	struct agt_event down = {.type = AGT_EV_MASTER_DOWN, .run = c->run, .text = text};
	struct sim_host *h = &s->hosts[c->host];

	c->agent_open = false;
	if (h->runs[c->run].conn == c->no)
		h->runs[c->run].conn = 0;
	sim_trace(s, "h%u run %u: the connection to the master is gone: %s", c->host, c->run, text);
	sim_host_step(s, h, &down);
}

static bool agent_there(const struct sim *s, const struct sim_conn *c)
{
	return c->agent_open && s->hosts[c->host].alive && s->hosts[c->host].life == c->life;
}

void sim_connected(struct sim *s, const struct sim_event *ev)
{
	struct sim_conn *c = sim_conn(s, ev->conn);
	struct agt_event up = {.type = AGT_EV_MASTER_UP, .run = c->run};
	int addr = sim_master_addr_no(&c->addr);

	if (!agent_there(s, c))
		return;
	if (addr >= 0 && s->parted[c->host][addr]) {
		/* the kernel tries for a while */
		if (s->now < ev->due + 3 * SIM_S && ev->gen < 30) {
			struct sim_event again = event(c, SIM_EV_CONNECTED);

			again.gen = ev->gen + 1;
			sim_schedule(s, s->now + 100 * SIM_MS, again);
			return;
		}
		tell_down(s, c, "Connection timed out");
		return;
	}
	if (addr < 0 || s->at[addr] < 0 || s->master_refuses) {
		tell_down(s, c, "Connection refused");
		return;
	}
	c->master = (unsigned)s->at[addr];
	c->made = c->master_open = true;
	sim_schedule(s, in_order(s, &c->to_master), event(c, SIM_EV_MASTER_OPEN));
	sim_trace(s, "h%u run %u: connected to %s", c->host, c->run, sim_name_master(s, c->master));
	sim_host_step(s, &s->hosts[c->host], &up);
}

static bool master_there(const struct sim *s, const struct sim_conn *c)
{
	return c->master_open && s->masters[c->master].alive;
}

void sim_accept(struct sim *s, const struct sim_event *ev)
{
	struct sim_conn *c = sim_conn(s, ev->conn);
	struct ccm_event open = {.type = CCM_EV_OPEN, .conn = c->no};

	if (!master_there(s, c))
		return;
	open.addr = (struct cc_addr){
		.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)(c->host + 1)}, .port = 40000};
	sim_master_step(s, c->master, &open);
}

static void encode(struct sim *s, const struct wm_msg *m, struct sim_event *ev)
{
	if (wire_master_encode(m, &ev->bytes, &ev->len) < 0)
		sim_fail(s, "%s cannot be encoded", wire_master_type_name(m->type));
}

void sim_send_to_master(struct sim *s, struct sim_host *h, uint32_t run, const struct wm_msg *m)
{
	struct sim_conn *c = h->runs[run].conn ? sim_conn(s, h->runs[run].conn) : NULL;
	struct sim_event ev;

	if (!c || !c->made || !c->agent_open) {
		sim_fail(s, "host %u sends %s on run %u, which has no connection", h->no,
			wire_master_type_name(m->type), run);
		return;
	}
	if (m->type != WM_HELLO && m->type != WM_REFUSE)
		sim_check_obeys(s, h, c);
	sim_trace(s, "h%u run %u -> %s: %s", h->no, run, sim_name_master(s, c->master),
		sim_text_msg(s, m));
	ev = event(c, SIM_EV_TO_MASTER);
	encode(s, m, &ev);
	if (m->type == WM_MESH)
		sim_mesh_reports(c, &ev);
	sim_schedule(s, in_order(s, &c->to_master), ev);
}

static void learn(struct sim_view *w, const struct wm_view *m)
{
	uint32_t i;

	*w = (struct sim_view){.known = true};
	w->global = m->global;
	w->groups = m->groups;
	w->largest = m->largest;
	w->view_id = m->view_id;
	for (i = 0; i < m->n; i++)
		w->group[m->own[i].group] = m->own[i].world_size;
}

/* Checks that a decision about an operation comes after a view. The view names all losses before
 * the decision, so an agent that knows the decision knows the losses, too. */
static void check_order(struct sim *s, struct sim_conn *c, const struct wm_msg *msg)
{
	c->viewed |= msg->type == WM_COMMIT || msg->type == WM_VIEW;
	if (!c->viewed && (msg->type == WM_OP_START || msg->type == WM_OP_DONE ||
				  msg->type == WM_OP_ABORT || msg->type == WM_OP_OUTCOMES))
		sim_fail(s, "%s sends %s to h%u before any view", sim_name_master(s, c->master),
			wire_master_type_name(msg->type), c->host);
}

void sim_send_to_agent(struct sim *s, unsigned master, uint32_t conn, const struct wm_msg *msg)
{
	struct sim_conn *c = sim_conn(s, conn);
	struct sim_event ev = event(c, SIM_EV_TO_AGENT);
	struct sim_master *m = &s->masters[master];

	if (c->master != master || !c->master_open) {
		sim_fail(s, "master %u sends %s on a closed connection", master,
			wire_master_type_name(msg->type));
		return;
	}
	if (msg->type == WM_COMMIT) {
		learn(&c->sent, &msg->u.commit.view);
		sim_check_told(s, m, &c->sent);
	} else if (msg->type == WM_VIEW) {
		learn(&c->sent, &msg->u.view);
		sim_check_told(s, m, &c->sent);
	} else if (msg->type == WM_HELLO_ACK) {
		if (m->term && m->term > msg->u.hello_ack.term)
			sim_fail(s, "the term of master %u goes back", master);
		m->term = msg->u.hello_ack.term;
		m->id = msg->u.hello_ack.run;
		s->resumes += msg->u.hello_ack.resume;
		c->said = !msg->u.hello_ack.resume;
	}
	check_order(s, c, msg);
	sim_mesh_sent(s, m, c, msg);
	ev.view = c->sent;
	encode(s, msg, &ev);
	sim_trace(s, "%s -> h%u: %s", sim_name_master(s, master), c->host, sim_text_msg(s, msg));
	sim_schedule(s, in_order(s, &c->to_agent), ev);
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
	struct sim_conn *c = sim_conn(s, ev->conn);
	struct ccm_event e = {.type = CCM_EV_MSG, .conn = c->no};
	struct wm_msg m;

	if (!master_there(s, c) || c->cut || ev->due > c->master_until || decode(s, ev, &m) < 0)
		return;
	e.msg = &m;
	sim_trace(s, "%s <- h%u: %s", sim_name_master(s, c->master), c->host, sim_text_msg(s, &m));
	if (m.type == WM_HELLO)
		c->in_use = sim_check_in_use(&s->masters[c->master]);
	if (m.type == WM_OP_REPORT && m.u.op_report.silent && s->silent_since == 0)
		s->silent_since = s->now;
	if (m.type == WM_MESH)
		sim_mesh_reported(c, ev, &m.u.mesh);
	sim_master_step(s, c->master, &e);
	if (m.type == WM_RESUME) {
		c->said = true;
		sim_xfers_back(s);
	}
	wire_master_clear(&m);
}

void sim_to_agent(struct sim *s, const struct sim_event *ev)
{
	struct sim_conn *c = sim_conn(s, ev->conn);
	struct agt_event e = {.type = AGT_EV_MASTER_MSG, .run = c->run};
	struct sim_host *h = &s->hosts[c->host];
	struct sim_run *r = &h->runs[c->run];
	struct wm_msg m;

	if (!agent_there(s, c) || c->cut || ev->due > c->agent_until || decode(s, ev, &m) < 0)
		return;
	e.msg = &m;
	sim_trace(s, "h%u run %u <- %s: %s", h->no, c->run, sim_name_master(s, c->master),
		sim_text_msg(s, &m));
	if (m.type == WM_HELLO_ACK) {
		c->term = m.u.hello_ack.term;
		c->run_id = m.u.hello_ack.run;
	}
	if (ev->view.known)
		r->heard = ev->view;
	sim_mesh_got(c, &m);
	sim_host_step(s, h, &e);
	/* The agent goes on with this master. From now on it may not obey an older one. */
	if (m.type == WM_HELLO_ACK && h->alive && r->conn == c->no && c->term > r->term)
		r->term = c->term;
	wire_master_clear(&m);
}

void sim_agent_closes(struct sim *s, struct sim_host *h, uint32_t run)
{
	struct sim_conn *c = h->runs[run].conn ? sim_conn(s, h->runs[run].conn) : NULL;

	h->runs[run].conn = 0;
	if (!c || !c->agent_open)
		return;
	c->agent_open = false;
	c->vain = c->made && s->masters[c->master].frozen_until > s->now;
	if (c->made && !c->cut)
		sim_schedule(s, in_order(s, &c->to_master), event(c, SIM_EV_MASTER_SEES_END));
}

void sim_master_closes(struct sim *s, unsigned master, const struct ccm_action *x)
{
	struct sim_conn *c = sim_conn(s, x->conn);

	sim_trace(s, "%s closes h%u: %s", sim_name_master(s, master), c->host, x->text);
	if (c->master != master || !c->master_open)
		sim_fail(s, "master %u closes a closed connection", master);
	c->master_open = false;
	if (!c->cut)
		sim_schedule(s, in_order(s, &c->to_agent), event(c, SIM_EV_AGENT_SEES_END));
}

void sim_conn_cut(struct sim *s, struct sim_conn *c, bool agent, bool master)
{
	if (!c->made || c->cut || !c->agent_open || !c->master_open)
		return;
	sim_trace(s, "fault: the connection of h%u to %s breaks; %s", c->host,
		sim_name_master(s, c->master),
		agent && master ? "both ends notice"
		: agent         ? "only the agent notices"
		: master        ? "only the master notices"
				: "neither end notices");
	c->cut = true;
	if (agent)
		sim_schedule(s, in_order(s, &c->to_agent), event(c, SIM_EV_AGENT_SEES_END));
	if (master)
		sim_schedule(s, in_order(s, &c->to_master), event(c, SIM_EV_MASTER_SEES_END));
}

void sim_conn_agent_died(struct sim *s, struct sim_conn *c, bool silent)
{
	if (!c->agent_open)
		return;
	c->agent_open = false;
	if (!c->made || c->cut)
		return;
	if (silent) {
		c->cut = true;
		return;
	}
	/* part of its earlier messages may still arrive */
	c->master_until = s->now + sim_delay(s);
	sim_schedule(s, c->master_until, event(c, SIM_EV_MASTER_SEES_END));
}

void sim_conn_master_died(struct sim *s, struct sim_conn *c)
{
	if (!c->master_open)
		return;
	c->master_open = false;
	if (c->cut || !c->agent_open)
		return;
	c->agent_until =
		s->masters[c->master].arrives ? in_order(s, &c->to_agent) : s->now + sim_delay(s);
	sim_schedule(s, c->agent_until, event(c, SIM_EV_AGENT_SEES_END));
}

void sim_conn_end(struct sim *s, const struct sim_event *ev)
{
	struct sim_conn *c = sim_conn(s, ev->conn);
	struct ccm_event closed = {.type = CCM_EV_CLOSED, .conn = c->no};

	if (ev->kind == SIM_EV_AGENT_SEES_END) {
		if (agent_there(s, c))
			tell_down(s, c, "Connection reset by peer");
		return;
	}
	if (!master_there(s, c))
		return;
	c->master_open = false;
	closed.text = "Connection reset by peer";
	sim_trace(s, "%s: the connection of h%u is gone", sim_name_master(s, c->master), c->host);
	sim_master_step(s, c->master, &closed);
}
