/* SPDX-License-Identifier: MIT
 *
 * Agents: events in, actions carried out.
 */
#include <string.h>

#include "tests/sim/sim.h"

struct sim_host *sim_host_by_id(struct sim *s, const struct cc_id *id)
{
	unsigned i;

	for (i = 0; i < s->n_hosts; i++)
		if (cc_id_eq(&s->hosts[i].id, id))
			return &s->hosts[i];
	return NULL;
}

uint32_t sim_host_run(const struct sim_host *h)
{
	uint32_t run;

	for (run = SIM_RUNS - 1; run > 0; run--)
		if (h->conns[run].ready && !h->conns[run].over && h->alive)
			return run;
	return 0;
}

void sim_host_start(struct sim *s, unsigned no)
{
	struct sim_host *h = &s->hosts[no];
	struct agt_config cfg = {.port_p2p = 48150, .n_addrs = 1};

	memset(h, 0, sizeof *h);
	h->no = no;
	h->id = (struct cc_id){.b = {0xa0, (uint8_t)no}};
	cfg.agent = h->id;
	cfg.name[0] = 'h';
	cfg.name[1] = (char)('0' + no);
	cfg.addrs[0] = (struct cc_addr){.family = CC_INET4, .ip = {10, 0, 0, (uint8_t)(no + 1)}};
	h->a = agt_new(&cfg);
	h->alive = h->a != NULL;
	sim_schedule(s, s->now + sim_rnd(s, 100) * SIM_MS,
		(struct sim_event){.kind = SIM_EV_AGENT_TICK, .host = no});
}

static void master_over(struct sim *s, struct sim_host *h, uint32_t run)
{
	struct sim_conn *c = &h->conns[run];

	if (c->over)
		sim_fail(s, "host %u closes its run %u twice", h->no, run);
	c->over = true;
	sim_agent_closes(s, h, run);
	sim_links_drop(s, h, run);
}

static void carry_out(struct sim *s, struct sim_host *h, const struct agt_action *x)
{
	switch (x->type) {
	case AGT_ACT_REPLY:
		sim_peer_reply(s, h, x);
		break;
	case AGT_ACT_COMM_OPEN:
		sim_peer_created(s, h, x);
		break;
	case AGT_ACT_SESSION_END:
	case AGT_ACT_COMM_CLOSE:
		break;
	case AGT_ACT_ATTRS:
		sim_peer_attrs(s, h, x);
		break;
	case AGT_ACT_COMPLETE:
		sim_peer_complete(s, h, x);
		break;
	case AGT_ACT_MASTER_OPEN:
		sim_connect(s, h, x->run);
		break;
	case AGT_ACT_MASTER_DROP:
		sim_agent_closes(s, h, x->run);
		break;
	case AGT_ACT_MASTER_SEND:
		sim_send_to_master(s, h, x->run, &x->u.msg);
		break;
	case AGT_ACT_MASTER_CLOSE:
		master_over(s, h, x->run);
		break;
	case AGT_ACT_RUN_READY:
		h->conns[x->run].ready = true;
		break;
	case AGT_ACT_LINK_OPEN:
		sim_link_open(s, h, x);
		break;
	case AGT_ACT_LINK_CLOSE:
		sim_link_close(s, h, x);
		break;
	case AGT_ACT_XFER_START:
		sim_xfer_start(s, h, x);
		break;
	case AGT_ACT_XFER_CANCEL:
		sim_xfer_cancel(s, h, x);
		break;
	case AGT_ACT_XFER_SKIP: /* no early segments here */
		break;
	case AGT_ACT_XFER_FREE:
		sim_xfer_free(s, h, x);
		break;
	case AGT_ACT_LOG:
		sim_trace(s, "host %u: %s", h->no, x->u.text);
		break;
	}
}

void sim_host_step(struct sim *s, struct sim_host *h, const struct agt_event *ev)
{
	struct agt_actions acts = {0};
	const char *wrong;
	size_t i;

	if (!h->alive)
		return;
	if (agt_step(h->a, ev, s->now, &acts) < 0)
		sim_fail(s, "host %u has no memory", h->no);
	wrong = agt_check(h->a);
	if (wrong)
		sim_fail(s, "the invariant of host %u is broken: %s", h->no, wrong);
	for (i = 0; i < acts.n && !s->failure[0]; i++)
		carry_out(s, h, &acts.v[i]);
	agt_actions_free(&acts);
}

void sim_host_kill(struct sim *s, struct sim_host *h)
{
	unsigned i;
	uint32_t run;

	if (!h->alive)
		return;
	sim_trace(s, "fault: the agent of host %u dies", h->no);
	h->alive = false;
	agt_free(h->a);
	h->a = NULL;
	for (i = 0; i < s->n_procs; i++)
		if (s->procs[i].host == h->no)
			sim_proc_kill(s, &s->procs[i]);
	for (run = 1; run < SIM_RUNS; run++)
		if (h->conns[run].used)
			sim_agent_closes(s, h, run);
	sim_data_host_died(s, h);
}
