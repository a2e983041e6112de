/* SPDX-License-Identifier: MIT
 *
 * The agent's loop around its core. Everything that happens becomes an event; the actions that the
 * core returns are carried out here.
 */
#include "pcclagentd/agentd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_must.h"
#include "common/cc_sys.h"
#include "pcclagentd/agentd_internal.h"

#define STOP_NS BASE_MS(100) /* time for the last messages to masters */

/* ---- actions ---- */

static void carry_out(void *arg, struct agt_action *a)
{
	struct agentd *d = arg;

	switch (a->type) {
	case AGT_ACT_REPLY:
		loc_session_reply(d->loc, a->session, &a->u.reply, NULL, 0);
		break;
	case AGT_ACT_SESSION_END:
		loc_session_drop(d->loc, a->session, a->u.reply.code, "%s", a->u.reply.text);
		break;
	case AGT_ACT_COMM_OPEN:
		loc_comm_open(d->loc, a->session, a->comm, &a->u.open.reply, &a->u.open.attrs);
		break;
	case AGT_ACT_COMM_CLOSE:
		loc_comm_close(d->loc, a->comm);
		break;
	case AGT_ACT_ATTRS:
		loc_comm_publish(d->loc, a->comm, &a->u.attrs);
		break;
	case AGT_ACT_COMPLETE:
		loc_comm_complete(d->loc, a->comm, a->slot, &a->u.done);
		break;
	case AGT_ACT_MASTER_OPEN:
		op_run_open(d->ops, a->run, &a->addr);
		break;
	case AGT_ACT_MASTER_DROP:
		op_run_drop(d->ops, a->run);
		break;
	case AGT_ACT_MASTER_SEND:
		op_run_send(d->ops, a->run, &a->u.msg);
		break;
	case AGT_ACT_MASTER_CLOSE:
		op_run_close(d->ops, a->run);
		break;
	case AGT_ACT_RUN_READY:
		op_run_ready(d->ops, a->run, &a->id);
		break;
	case AGT_ACT_LOG:
		cc_log((int)a->level, "%s", a->u.text);
		break;
	default:
		op_run_carry_out(d->ops, a);
	}
}

static uint32_t stamp(void *arg, const struct agt_event *ev)
{
	const struct agentd *d = arg;

	/* While the event waits, the core may drop this connection or order another connection. */
	return ev->type == AGT_EV_MASTER_DOWN ? op_run_attempt(d->ops, ev->run) : 0;
}

/* ---- time ---- */

#define QUIET_AFTER 20u /* ticks */
#define AT_ONCE_MS  1u

static bool is_quiet(const struct agentd *d)
{
	return !d->base.stopping && op_is_quiet(d->ops) && agt_is_quiet(d->base.core);
}

/* Sets the interval of ticks. Ticks are rare while the agent is quiet, because each tick wakes a
 * CPU. When votes of a run start to wait for a peer, the next tick comes at once: the peer may be a
 * process of this host that was stopped long ago. */
static void keep_time(struct agentd *d)
{
	uint32_t ms = BASE_TICK_MS;

	if (!is_quiet(d))
		d->quiet_ticks = 0;
	if (d->quiet_ticks >= QUIET_AFTER)
		ms = AGT_QUIET_TICK_MS;
	else if (d->base.quiet && agt_is_awaited(d->base.core))
		ms = AT_ONCE_MS;
	d->base.quiet = ms == AGT_QUIET_TICK_MS;
	if (ms != d->tick_ms)
		cc_timer_set(d->tick, ms);
	d->tick_ms = ms;
}

static void after(void *arg)
{
	struct agentd *d = arg;

	if (d->base.quiet)
		keep_time(d);
}

static const struct ev_ops ev_ops = {.carry_out = carry_out, .stamp = stamp, .after = after};

void agentd_look(struct agentd *d)
{
	if (!d->base.quiet)
		return;
	ev_hold(&d->base); /* so that no session is closed during the checks */
	loc_session_look(d->loc);
	ev_release(&d->base);
	keep_time(d);
}

static void look(void *arg)
{
	agentd_look(arg);
}

static void check_idle(struct agentd *d, uint64_t now)
{
	uint32_t ms = d->base.cfg.idle_exit_ms;

	if (ms && loc_idle_ns(d->loc, now) > BASE_MS(ms))
		agentd_stop(d, "the agent is idle");
}

static void on_tick(void *arg)
{
	struct agentd *d = arg;
	struct agt_event ev = {.type = AGT_EV_TICK};
	uint64_t now = cc_now_ns();

	/* Events wait during these ticks, so that no object is closed while a tick uses it. */
	ev_hold(&d->base);
	loc_session_tick(d->loc, now);
	net_tick(d->net, now);
	op_tick(d->ops, now);
	loc_result_tick(d->loc, now);
	ev_release_with(&d->base, &ev);
	if (d->base.stopping && now >= d->stop_at_ns)
		cc_loop_stop(d->base.loop);
	else if (!d->base.stopping)
		check_idle(d, now);
	d->quiet_ticks++;
	keep_time(d);
}

/* ---- life ---- */

static void make_core(struct agentd *d)
{
	const struct agentd_config *c = &d->base.cfg;
	struct agt_config a = {
		.agent = d->base.id,
		.max_comms_per_uid = c->comms_per_user,
		.connect_timeout_ms = c->connect_timeout_ms,
		.master_addr_timeout_ms = c->master_addr_timeout_ms,
		.master_lease_ms = c->master_lease_ms,
		.stopped_ms = c->stopped_timeout_ms,
	};

	net_addresses_refresh(d->net);
	a.addresses = *net_addresses(d->net);
	rep_copy_text(a.name, sizeof a.name, c->name);
	d->base.core = agt_new(&a);
}

static const struct agentd_master *find_master(
	const struct agentd_masters *m, const struct cc_addr *from)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (cc_addr_eq(&m->v[i].from, from))
			return &m->v[i];
	return NULL;
}

/* Sends only the changed addresses to the core, because pcclctl may have set newer addresses of the
 * other masters. */
void agentd_set_masters(struct agentd *d, const struct agentd_masters *m)
{
	struct agentd_masters old = d->base.cfg.masters;
	struct agt_event ev = {.type = AGT_EV_SET_MASTER};

	d->base.cfg.masters = *m;
	for (uint32_t i = 0; i < old.n; i++) {
		if (find_master(m, &old.v[i].from))
			continue;
		ev.from = old.v[i].from;
		ev_post(&d->base, &ev);
	}
	for (uint32_t i = 0; i < m->n; i++) {
		const struct agentd_master *was = find_master(&old, &m->v[i].from);

		if (was && cc_addr_eq(&was->to, &m->v[i].to))
			continue;
		ev.from = m->v[i].from;
		ev.to = m->v[i].to;
		ev_post(&d->base, &ev);
	}
}

void agentd_get_stats(const struct agentd *d, struct agentd_stats *ret)
{
	struct agt_status core;
	struct loc_stats loc;
	struct net_stats net;
	struct op_stats ops;

	agt_get_status(d->base.core, &core);
	loc_get_stats(d->loc, &loc);
	net_get_stats(d->net, &net);
	op_get_stats(d->ops, &ops);
	*ret = (struct agentd_stats){
		.sessions = loc.sessions,
		.comms = loc.comms,
		.runs = ops.runs,
		.ops = core.ops,
		.regions = loc.regions,
		.results = loc.results,
		.transfers = ops.xfers,
		.syncs = ops.syncs,
		.links_in = ops.links.links_in,
		.links_out = ops.links.links_out,
		.half_open = net.half_open,
		.streams = ops.links.streams,
		.measuring = ops.links.measuring,
		.mem_used = loc.mem_used,
		.mem_limit = d->base.cfg.mem_total,
		.port_shared_state = net.port_shared_state,
		.port_p2p = net.port_p2p,
		.port_benchmark = net.port_benchmark,
		.addresses = net.addresses,
		.addresses_left_out = net.addresses_left_out,
	};
}

static void get_stats(void *arg, struct agentd_stats *ret)
{
	agentd_get_stats(arg, ret);
}

/* Creates the parts, from the lowest to the highest. Returns -1 on failure, after logging the
 * reason or setting errno to it. */
static int make_parts(struct agentd *d)
{
	static const struct adm_ops adm_ops = {.get_stats = get_stats, .look = look};
	struct base *b = &d->base;

	d->loc = loc_new(b);
	d->net = d->loc ? net_new(b) : NULL;
	if (!d->net)
		return -1;
	make_core(d);
	d->ops = op_new(b, d->loc, d->net);
	d->tick_ms = BASE_TICK_MS;
	d->tick = cc_timer_new(b->loop, d->tick_ms, on_tick, d);
	if (!d->tick || loc_session_listen(d->loc) < 0)
		return -1;
	if (b->cfg.admin_fd >= 0)
		d->admin = adm_new(b, d->ops, &adm_ops, d);
	return b->cfg.admin_fd < 0 || d->admin ? 0 : -1;
}

static void on_exhausted(void)
{
	rep_out_of_memory("the agent's core");
}

struct agentd *agentd_new(const struct agentd_config *cfg)
{
	struct agentd *d = calloc(1, sizeof *d);
	int error;

	cc_must_on_exhausted(on_exhausted);
	if (!d)
		rep_out_of_memory("the agent");
	d->base.cfg = *cfg;
	d->base.cfg.masters.n = 0;
	agentd_config_limits(&d->base.cfg);
	d->base.identity = cc_identity_new();
	if (!d->base.identity)
		rep_out_of_memory("the agent");
	cc_seal_id_of(cc_identity_share(d->base.identity), &d->base.id);
	d->base.report.tokens = REP_BURST;
	d->base.events = ev_new(&ev_ops, d);
	d->base.loop = cc_loop_new();
	if (d->base.loop && make_parts(d) == 0) {
		agentd_set_masters(d, &cfg->masters);
		return d;
	}
	error = errno;
	cc_limit_log("the agent cannot start");
	agentd_free(d);
	errno = error;
	return NULL;
}

int agentd_run(struct agentd *d)
{
	return cc_loop_run(d->base.loop);
}

void agentd_stop(struct agentd *d, const char *why)
{
	static const struct agt_event end = {.type = AGT_EV_END};

	if (d->base.stopping)
		return;
	cc_log(CC_LOG_INFO, "ending: %s", why);
	d->base.stopping = true;
	loc_session_stop_listening(d->loc);
	net_stop(d->net);
	adm_free(d->admin);
	d->admin = NULL;
	ev_hold(&d->base);
	loc_session_close_gone(d->loc);
	ev_release(&d->base);
	/* From here on, no thread uses the processes' memory. So the processes may use it again, as
	 * if the agent had been killed. */
	op_halt(d->ops);
	ev_post(&d->base, &end);
	loc_session_goodbye_all(d->loc, why);
	loc_comm_close_all(d->loc);
	d->stop_at_ns = cc_now_ns() + STOP_NS;
}

void agentd_free(struct agentd *d)
{
	struct base *b = &d->base;

	ev_hold(b); /* the core gets no more events */
	adm_free(d->admin);
	if (d->loc)
		loc_stop(d->loc);
	if (d->ops)
		op_halt(d->ops);
	if (d->loc)
		loc_comm_close_all(d->loc);
	op_free(d->ops);
	net_free(d->net);
	ev_free(b->events);
	if (b->core)
		agt_free(b->core);
	cc_identity_free(b->identity);
	cc_timer_free(d->tick);
	cc_timer_free(d->extra_timer);
	if (b->loop)
		cc_loop_free(b->loop);
	loc_free(d->loc); /* after the loop: its unsent data lies in regions of d->loc */
	if (b->cfg.session_fd >= 0)
		close(b->cfg.session_fd);
	if (b->cfg.admin_fd >= 0)
		close(b->cfg.admin_fd);
	free(d);
}

int agentd_on_signal(struct agentd *d, int signo, void (*fn)(void *arg, int signo), void *arg)
{
	return cc_loop_signal(d->base.loop, signo, fn, arg);
}

int agentd_every(struct agentd *d, uint32_t interval_ms, void (*fn)(void *arg), void *arg)
{
	d->extra_timer = cc_timer_new(d->base.loop, interval_ms, fn, arg);
	return d->extra_timer ? 0 : CC_ERR_NOMEM;
}
