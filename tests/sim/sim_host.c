/* SPDX-License-Identifier: MIT
 *
 * Agents: steps, actions, start and death.
 */
#include <string.h>

#include "tests/sim/sim_sync.h"

struct sim_host *sim_host_by_id(struct sim *s, const struct cc_id *id)
{
	unsigned i;

	for (i = 0; i < s->n_hosts; i++)
		if (cc_id_eq(&s->hosts[i].id, id))
			return &s->hosts[i];
	return NULL;
}

uint32_t sim_host_run(const struct sim_host *h, const struct cc_id *id)
{
	uint32_t run;

	for (run = h->last_run; run > 0 && h->alive; run--)
		if (h->runs[run].ready && !h->runs[run].over && cc_id_eq(&h->runs[run].id, id))
			return run;
	return 0;
}

void sim_host_start(struct sim *s, unsigned no)
{
	struct sim_host *h = &s->hosts[no];
	struct agt_config cfg = {.addresses = {.port_p2p = 48150,
					 .port_shared_state = 48149,
					 .port_benchmark = 48151,
					 .n_addrs = 1}};
	uint32_t life = h->life + 1, slow = h->slow;
	unsigned i;

	if (h->alive)
		return;
	memset(h, 0, sizeof *h);
	h->no = no;
	h->life = life;
	h->slow = slow;
	h->id = sim_new_id(s, 0xa0);
	h->clock = sim_new_clock(s);
	cfg.agent = h->id;
	cfg.name[0] = 'h';
	cfg.name[1] = (char)('0' + no);
	cfg.addresses.addrs[0] =
		(struct cc_addr){.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)(no + 1)}};
	cfg.master_lease_ms = s->master_lease_ms;
	h->a = agt_new(&cfg);
	h->alive = true;
	sim_trace(s, "h%u: agent h%u.%u starts", no, no, life);
	for (i = 0; i < SIM_ADDRS && s->configured; i++)
		if (s->moved[i] >= 0)
			sim_set_master(s, h, i, (unsigned)s->moved[i]);
	sim_schedule(s, s->now + sim_rnd(s, 80) * SIM_MS,
		(struct sim_event){.kind = SIM_EV_AGENT_TICK, .host = no, .life = life});
}

static void run_over(struct sim *s, struct sim_host *h, uint32_t run)
{
	struct sim_run *r = &h->runs[run];

	if (r->over)
		sim_fail(s, "host %u closes its run %u twice", h->no, run);
	r->over = true;
	sim_agent_closes(s, h, run);
	sim_links_drop(s, h, run);
}

static void run_ready(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	struct sim_run *r = &h->runs[x->run];

	if (r->ready)
		sim_fail(s, "host %u: run %u is made ready twice", h->no, x->run);
	r->ready = true;
	r->id = x->id;
}

/* In the simulator no operand arrives before its operation has started, so nothing has to be kept
 * or dropped. */
static void carry_out_xfer(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	if (x->type == AGT_ACT_XFER_START)
		sim_xfer_start(s, h, x);
	else if (x->type == AGT_ACT_XFER_CANCEL)
		sim_xfer_cancel(s, h, x);
	else if (x->type == AGT_ACT_XFER_ROLLBACK)
		sim_xfer_rollback(s, h, x);
	else if (x->type == AGT_ACT_XFER_FREE)
		sim_xfer_free(s, h, x);
}

static void carry_out(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	switch (x->type) {
	case AGT_ACT_REPLY:
		sim_shim_reply(s, h, x);
		break;
	case AGT_ACT_SESSION_END:
		sim_shim_goodbye(s, h, x);
		break;
	case AGT_ACT_COMM_OPEN:
		sim_shim_opened(s, h, x);
		break;
	case AGT_ACT_COMM_CLOSE:
		break;
	case AGT_ACT_ATTRS:
		sim_shim_attrs(s, h, x);
		break;
	case AGT_ACT_COMPLETE:
		sim_op_complete(s, h, x);
		break;
	case AGT_ACT_MASTER_OPEN:
		sim_connect(s, h, x->run, &x->addr);
		break;
	case AGT_ACT_MASTER_DROP:
		sim_agent_closes(s, h, x->run);
		break;
	case AGT_ACT_MASTER_SEND:
		sim_send_to_master(s, h, x->run, &x->u.msg);
		break;
	case AGT_ACT_MASTER_CLOSE:
		run_over(s, h, x->run);
		break;
	case AGT_ACT_RUN_READY:
		run_ready(s, h, x);
		break;
	case AGT_ACT_LINK_OPEN:
		sim_link_open(s, h, x);
		break;
	case AGT_ACT_PROBE:
		sim_probe(s, h, x);
		break;
	case AGT_ACT_MEASURE:
		sim_measure(s, h, x);
		break;
	case AGT_ACT_MEASURE_STOP:
	case AGT_ACT_MEASURE_BUSY:
		sim_measure_stop(h, x);
		break;
	case AGT_ACT_LINK_CLOSE:
		sim_link_close(s, h, x);
		break;
	case AGT_ACT_XFER_START:
	case AGT_ACT_XFER_CANCEL:
	case AGT_ACT_XFER_ROLLBACK:
	case AGT_ACT_XFER_EXPECT:
	case AGT_ACT_XFER_FORGET:
	case AGT_ACT_XFER_SKIP:
	case AGT_ACT_XFER_FREE:
		carry_out_xfer(s, h, x);
		break;
	case AGT_ACT_SYNC_START:
		sim_sync_start(s, h, x);
		break;
	case AGT_ACT_SYNC_DROP:
		sim_sync_drop(s, h, x);
		break;
	case AGT_ACT_SYNC_CANCEL:
		sim_sync_cancel(s, h, x);
		break;
	case AGT_ACT_SYNC_FREE:
		sim_sync_free(s, h, x);
		break;
	case AGT_ACT_LOG:
		sim_trace(s, "h%u: %s", h->no, x->u.text);
		sim_check_log(s, x->u.text);
		break;
	}
}

static void tick_in(struct sim *s, const struct sim_host *h, uint32_t ms)
{
	sim_schedule(s, s->now + ms * SIM_MS,
		(struct sim_event){.kind = SIM_EV_AGENT_TICK,
			.host = h->no,
			.life = h->life,
			.gen = h->ticks});
}

/* An agent without work ticks and looks at its processes rarely. When it gets work, it does both
 * immediately. */
static void keep_time(struct sim *s, struct sim_host *h)
{
	bool was_quiet = h->quiet;
	unsigned i;

	if (!h->alive)
		return;
	h->quiet = agt_is_quiet(h->a);
	if (!was_quiet || h->quiet)
		return;
	h->ticks++;
	tick_in(s, h, agt_is_awaited(h->a) ? 1 : 90);
	for (i = 0; i < s->n_procs; i++)
		if (s->procs[i].host == h->no && s->procs[i].stopped && !s->procs[i].told)
			sim_schedule(s, s->now + (1 + sim_rnd(s, 250)) * SIM_MS,
				(struct sim_event){.kind = SIM_EV_STOPPED,
					.host = h->no,
					.proc = i,
					.code = 1});
}

void sim_host_step(struct sim *s, struct sim_host *h, const struct agt_event *ev)
{
	struct agt_actions acts = {0};
	const char *wrong;
	size_t i;

	if (!h->alive)
		return;
	agt_step(h->a, ev, sim_clock_now(s, &h->clock), &acts);
	wrong = agt_check(h->a);
	if (wrong)
		sim_fail(s, "the invariant of the agent of host %u is broken: %s", h->no, wrong);
	for (i = 0; i < acts.n && !s->failure[0]; i++)
		carry_out(s, h, &acts.v[i]);
	agt_actions_free(&acts);
	keep_time(s, h);
}

/* Agents look at stopped processes before each tick, so that a process that runs again is not
 * lost. */
static void look_at_stopped(struct sim *s, struct sim_host *h)
{
	struct agt_event runs = {.type = AGT_EV_SESSION_STOPPED};
	unsigned i;

	for (i = 0; i < s->n_procs; i++) {
		struct sim_proc *q = &s->procs[i];

		if (!q->told || q->stopped || q->host != h->no || q->life != h->life ||
			q->state != SESSION_OPEN)
			continue;
		q->told = false;
		runs.session = q->session;
		sim_host_step(s, h, &runs);
	}
}

void sim_host_tick(struct sim *s, const struct sim_event *ev)
{
	struct agt_event tick = {.type = AGT_EV_TICK};
	struct sim_host *h = &s->hosts[ev->host];

	if (!h->alive || h->life != ev->life || h->ticks != ev->gen)
		return;
	look_at_stopped(s, h);
	sim_host_step(s, h, &tick);
	if (sim_chance(s, 2))
		sim_carried(s, h);
	if (h->ticks == ev->gen)
		tick_in(s, h, h->quiet ? AGT_QUIET_TICK_MS : 90);
}

void sim_host_end(struct sim *s, struct sim_host *h)
{
	struct agt_event ev = {.type = AGT_EV_END};
	unsigned i;

	if (!h->alive)
		return;
	sim_trace(s, "fault: agent h%u.%u is told to end", h->no, h->life);
	sim_xfers_host_died(s, h);
	sim_host_step(s, h, &ev);
	/* Events from now on have no effect on it. */
	ev.type = AGT_EV_SESSION_CLOSED;
	for (i = 0; i < s->n_procs; i++) {
		const struct sim_proc *q = &s->procs[i];

		ev.session = q->session;
		if (q->host == h->no && q->life == h->life && q->state == SESSION_OPEN)
			sim_host_step(s, h, &ev);
	}
	sim_host_kill(s, h, false);
}

void sim_host_kill(struct sim *s, struct sim_host *h, bool silent)
{
	uint32_t run;
	unsigned i;

	if (!h->alive)
		return;
	sim_trace(s, "fault: %s h%u.%u dies", silent ? "host" : "agent", h->no, h->life);
	s->agent_deaths++;
	h->alive = false;
	h->frozen_until = 0;
	agt_free(h->a);
	h->a = NULL;
	for (run = 1; run <= h->last_run; run++)
		if (h->runs[run].conn)
			sim_conn_agent_died(s, sim_conn(s, h->runs[run].conn), silent);
	sim_xfers_host_died(s, h);
	sim_links_host_died(s, h, silent);
	if (!silent) {
		sim_shim_agent_died(s, h);
		return;
	}
	for (i = 0; i < s->n_procs; i++)
		if (s->procs[i].host == h->no)
			sim_proc_kill(s, &s->procs[i], true);
}
