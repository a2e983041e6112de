/* SPDX-License-Identifier: MIT
 *
 * Construction, events in, and settling at the end of each step.
 */
#include <stdlib.h>

#include "ccoip-masterd/core/ccm_internal.h"
#include "ccoip-masterd/core/ccm_record.h"
#include "ccoip-masterd/core/ccm_sync.h"

static uint32_t or_default(uint32_t v, uint32_t def)
{
	return v ? v : def;
}

struct ccm *ccm_new(const struct ccm_config *cfg)
{
	struct ccm *m = cc_must_zalloc(1, sizeof *m);

	m->cfg = *cfg;
	m->cfg.timeout_ms = or_default(cfg->timeout_ms, 2800);
	m->cfg.heartbeat_ms = or_default(cfg->heartbeat_ms, m->cfg.timeout_ms * 5 / 28);
	cc_bounds_complete(&m->cfg.bounds);
	m->cfg.recovery_ms = or_default(cfg->recovery_ms, 3000);
	m->cfg.agent_lease_ms = or_default(cfg->agent_lease_ms, 5000);
	m->cfg.benchmark_ms = or_default(cfg->benchmark_ms, 1000);
	m->cfg.max_peers = or_default(cfg->max_peers, 65536);
	m->cfg.log_level = or_default(cfg->log_level, CCM_LOG_INFO);
	cc_detect_init(&m->any, m->cfg.heartbeat_ms, m->cfg.timeout_ms, 0);
	m->term = 1;
	m->born_run = cfg->run;
	m->optimize.last_number = cfg->first_number;
	return m;
}

static void free_agents(struct ccm *m)
{
	struct ccm_agent *a = m->agents, *next;

	HASH_CLEAR(hh_id, m->by_id);
	HASH_CLEAR(hh, m->agents);
	for (; a; a = next) {
		next = a->hh.next;
		ccm_snapshot_free(a);
		free(a->failures);
		free(a);
	}
	for (a = m->disconnected; a; a = next) {
		next = a->next_ab;
		ccm_snapshot_free(a);
		free(a->failures);
		free(a);
	}
	for (a = m->dead; a; a = next) { /* buried in the step that abandons this run */
		next = a->next_dead;
		ccm_snapshot_free(a);
		free(a->failures);
		free(a);
	}
}

static void free_groups(struct ccm *m)
{
	struct ccm_group *g, *g_next;
	struct ccm_op *o, *o_next;

	HASH_CLEAR(hh_seq, m->started);
	HASH_CLEAR(hh_spec, m->spec_ops);
	HASH_CLEAR(hh, m->ops);
	g = m->groups;
	HASH_CLEAR(hh, m->groups);
	for (; g; g = g_next) {
		g_next = g->hh.next;
		for (o = g->ops; o; o = o_next) {
			o_next = o->next;
			ccm_op_free(o);
		}
		ccm_group_free(g);
	}
}

void ccm_free(struct ccm *m)
{
	struct ccm_peer *p, *p_next;
	struct ccm_membership *s, *s_next;
	struct ccm_pair *x, *x_next;
	struct ccm_lost *l, *l_next;

	if (!m)
		return;
	free_groups(m);
	p = m->peers;
	HASH_CLEAR(hh, m->peers);
	for (; p; p = p_next) {
		p_next = p->hh.next;
		free(p);
	}
	s = m->memberships;
	HASH_CLEAR(hh, m->memberships);
	for (; s; s = s_next) {
		s_next = s->hh.next;
		free(s);
	}
	x = m->pairs;
	HASH_CLEAR(hh, m->pairs);
	for (; x; x = x_next) {
		x_next = x->hh.next;
		free(x);
	}
	ccm_breaks_free(m);
	ccm_probes_free(m);
	l = m->gone;
	HASH_CLEAR(hh, m->gone);
	for (; l; l = l_next) {
		l_next = l->hh.next;
		free(l);
	}
	free_agents(m);
	ccm_measure_free(m);
	ccm_rates_free(m);
	ccm_records_free(m);
	ccm_revisions_free(m);
	wire_journal_clear(&m->saved);
	wire_journal_clear(&m->saved_rates);
	free(m->unsaved);
	free(m->taken);
	free(m->ended);
	free(m);
}

uint32_t ccm_tick_ms(const struct ccm *m)
{
	return m->cfg.heartbeat_ms / 2;
}

/* Learns from the snapshot of an agent that came too late for the recovery, or that came back. */
static void learn(struct ccm *m, const struct ccm_agent *a, const struct wm_resume *r)
{
	if (a->n_accepted > 0) /* the ballots of an agent without members do not concern this run */
		ccm_ballot_learn(m, r->ballots);
	if (cc_id_is_zero(&a->hello.run_key)) /* the agent has no state of its own */
		return;
	ccm_at_least(&m->heard_epoch, r->epoch);
	ccm_at_least(&m->last_seq, r->last_seq);
	ccm_revisions_add(m, a, &r->view);
}

static void dispatch(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg)
{
	switch (msg->type) {
	case WM_HELLO:
		ccm_agent_hello(m, a, &msg->u.hello);
		break;
	case WM_JOIN:
		ccm_member_join(m, a, &msg->u.join);
		break;
	case WM_LEAVE:
		ccm_member_leave(m, a, &msg->u.leave);
		break;
	case WM_BALLOT_VOTE:
		ccm_ballot_vote(m, a, &msg->u.ballot_vote);
		break;
	case WM_OP_VOTE:
		ccm_op_vote(m, a, &msg->u.op_vote);
		break;
	case WM_OP_REPORT:
		ccm_op_report(m, a, &msg->u.op_report);
		break;
	case WM_STANDSTILL:
		ccm_standstill(m, a, &msg->u.standstill);
		break;
	case WM_LINK_LOST:
		ccm_link_lost(m, a, &msg->u.link_lost);
		break;
	case WM_MESH:
		ccm_mesh_report(m, a, &msg->u.mesh);
		break;
	case WM_ROUND_REPORT:
		ccm_round_report(m, a, &msg->u.round_report);
		break;
	case WM_HEARTBEAT:
		break;
	case WM_RESUME:
		ccm_resuming_set(m, a, false);
		if (a->knows_run)
			learn(m, a, &msg->u.resume);
		ccm_outcomes_compare(m, a, &msg->u.resume);
		/* The commit that the agent's peers wait for may take a while. Without the view,
		 * the peers would not know of losses, and would repeat calls that fail because of
		 * them. */
		ccm_view_catch_up(m, a);
		break;
	case WM_WAITS_FOR:
		ccm_peer_waits_for(m, a, &msg->u.waits_for);
		break;
	case WM_ADDRESSES:
		ccm_agent_addresses(a, &msg->u.addresses);
		ccm_newcomer_moves(m, a);
		break;
	case WM_MEASURED:
		ccm_measure_take(m, a, &msg->u.measured);
		break;
	case WM_RATES:
		if (msg->u.rates.passive)
			ccm_rates_carried(m, a, &msg->u.rates);
		else
			ccm_rates_learn(m, a, &msg->u.rates);
		break;
	case WM_PROBED:
		ccm_probed(m, a, &msg->u.probed);
		break;
	case WM_STOPPED:
		ccm_peer_stopped(m, a, &msg->u.stopped);
		break;
	case WM_OP_QUERY:
		ccm_op_query(m, a, &msg->u.op_query);
		break;
	case WM_REFUSE: /* the last message of an agent that ends */
		ccm_close(m, a->conn, "the agent has announced its end");
		ccm_agent_lost(m, a, msg->u.refuse.text);
		break;
	default:
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a message of type %d, which only a master sends",
			(int)msg->type);
		break;
	}
}

static void message(struct ccm *m, struct ccm_agent *a, const struct wm_msg *msg)
{
	ccm_agent_heard(m, a);
	if (m->recovering && a->greeted) {
		m->look |= msg->type == WM_JOIN || msg->type == WM_LEAVE ||
			   msg->type == WM_RESUME || msg->type == WM_REFUSE;
		if (ccm_resume_msg(m, a, msg))
			return;
	}
	if (a->greeted || msg->type == WM_HELLO || msg->type == WM_REFUSE)
		dispatch(m, a, msg);
	else
		ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED,
			"protocol violation: the first message must be a hello");
}

void ccm_settle(struct ccm *m)
{
	bool again;

	if (!ccm_resume_settle(m)) {
		ccm_reap(m);
		return;
	}
	do {
		do {
			ccm_optimize_watch(m);
			ccm_newcomers_settle(m);
			ccm_loss_announce(m);
			ccm_reap(m);
		} while (ccm_round_settle(m));
		again = ccm_ballots_settle(m);
		ccm_op_settle(m); /* an election may kick peers */
	} while (again || m->lost || ccm_unmet_settle(m));
	ccm_leaves_answer(m);
}

static void closed(struct ccm *m, struct ccm_agent *a, const struct ccm_event *ev)
{
	if (a && ev->refused)
		ccm_agent_lost(m, a, ev->text);
	else if (a)
		ccm_agent_disconnected(m, a, ev->text);
	m->look = true;
}

/* Handles ev. `a`: the agent of its connection, or NULL. */
static void handle(struct ccm *m, struct ccm_agent *a, const struct ccm_event *ev)
{
	switch (ev->type) {
	case CCM_EV_OPEN:
		ccm_agent_open(m, ev);
		break;
	case CCM_EV_CLOSED:
		closed(m, a, ev);
		break;
	case CCM_EV_MSG:
		if (a && ev->msg->type == WM_HEARTBEAT)
			cc_detect_path(&a->life, ev->path_ms);
		if (a)
			message(m, a, ev->msg);
		break;
	case CCM_EV_RESET:
		ccm_run_reset(m, ev->text);
		break;
	case CCM_EV_END:
		ccm_run_end(m, ev->text);
		break;
	case CCM_EV_MEASURE:
		ccm_rates_forget(m);
		break;
	case CCM_EV_SOLVED:
		ccm_optimize_solved(m, ev->solution);
		break;
	case CCM_EV_TICK:
		ccm_agent_tick(m);
		ccm_disconnected_tick(m);
		m->look = true;
		ccm_round_tick(m);
		ccm_measure_tick(m);
		ccm_newcomer_tick(m);
		ccm_store_tick(m);
		break;
	}
}

void ccm_step(struct ccm *m, const struct ccm_event *ev, uint64_t now_ns, struct ccm_actions *out)
{
	struct ccm_agent *a;

	m->out = out;
	m->ticking = ev->type == CCM_EV_TICK;
	m->stuck_news |= m->ticking;
	if (now_ns > m->now)
		m->now = now_ns;
	ccm_agent_pause(m, ev->type == CCM_EV_CLOSED ? ev->conn : 0);
	if (ev->type == CCM_EV_TICK || (ev->type == CCM_EV_OPEN && !ev->local))
		ccm_agent_reach(m, ev->type == CCM_EV_OPEN);
	a = ev->conn ? ccm_agent_find(m, ev->conn) : NULL;
	/* This may answer hellos, but not on the connection whose end is reported now. */
	if (ev->type != CCM_EV_CLOSED)
		ccm_resume_step(m);
	handle(m, a, ev);
	ccm_run_end_go_on(m);
	ccm_settle(m);
	if (ev->type == CCM_EV_TICK)
		ccm_waits_tick(m);
	m->out = NULL;
}
