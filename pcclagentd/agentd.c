/* SPDX-License-Identifier: MIT
 *
 * The agent's loop around its core: what happens becomes an event, what the core answers is carried
 * out here.
 */
#include "pcclagentd/agentd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "common/cc_limit.h"
#include "common/cc_memory.h"
#include "daemon/cc_admin.h"
#include "pcclagentd/io.h"
#include "pcclagentd/names.h"

#define STOP_NS          MS(100) /* for last words to masters to go out */
#define COMPLAINTS_BURST 20u
#define COMPLAINT_NS     MS(500)

void agentd_out_of_memory(const char *what)
{
	cc_limit_end(what);
}

uint32_t agentd_shortage(const char *what, const char *call, char *text, size_t size)
{
	char limit[CC_LIMIT_TEXT];

	if (cc_limit_is_refusal(errno))
		cc_limit_call_text(call, errno, 0, limit, sizeof limit);
	else
		cc_limit_text_of(call, errno, limit, sizeof limit);
	snprintf(text, size, "%s: %s", what, limit);
	return cc_limit_is_of(call, errno) ? WIRE_OUT_OF_MEMORY : WIRE_INTERNAL_ERROR;
}

void agentd_copy_text(char *dst, size_t size, const char *src)
{
	size_t n = strnlen(src, size - 1);

	memcpy(dst, src, n);
	dst[n] = '\0';
}

void agentd_complain(struct agentd *d, int level, const char *fmt, ...)
{
	uint64_t now = cc_now_ns(), more = (now - d->complain_refill_ns) / COMPLAINT_NS;
	char line[768];
	va_list ap;

	if (more > 0) {
		d->complain_refill_ns = now;
		d->complain_tokens = more + d->complain_tokens > COMPLAINTS_BURST
					     ? COMPLAINTS_BURST
					     : (uint32_t)more + d->complain_tokens;
	}
	if (d->complain_tokens == 0) {
		if (d->complain_dropped++ == 0 || level < d->complain_level)
			d->complain_level = level;
		return;
	}
	d->complain_tokens--;
	if (d->complain_dropped > 0)
		cc_log(d->complain_level, "%" PRIu32 " similar lines left out",
			d->complain_dropped);
	d->complain_dropped = 0;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	cc_log(level, "%s", line);
}

/* ---- actions ---- */

static void carry_out_run(struct agentd *d, struct agt_action *a)
{
	struct run *r = run_find(d, a->run);

	if (!r)
		return;
	switch (a->type) {
	case AGT_ACT_LINK_OPEN:
		out_link_open(r, &a->u.endpoint, a->n_streams);
		break;
	case AGT_ACT_PROBE:
		probe_start(r, &a->u.probe);
		break;
	case AGT_ACT_LINK_CLOSE:
		out_link_close(r, &a->u.endpoint.agent);
		break;
	case AGT_ACT_XFER_START:
		xfer_start(r, &a->u.xfer);
		break;
	case AGT_ACT_XFER_RETRACT:
		xfer_retract(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_EXPECT:
		small_expect(r, a->u.xfer.seq, a->u.xfer.hosts, &a->u.xfer.prev);
		break;
	case AGT_ACT_XFER_FORGET:
		small_forget(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_SKIP:
		xfer_skip(r, a->u.xfer.seq);
		break;
	case AGT_ACT_XFER_CANCEL:
		xfer_cancel(r, a->u.xfer.seq);
		break;
	case AGT_ACT_SYNC_START:
		sync_start(r, &a->u.sync);
		break;
	case AGT_ACT_SYNC_DROP:
		sync_drop(r, a->u.sync.seq, a->comm);
		break;
	case AGT_ACT_SYNC_CANCEL:
		sync_cancel(r, a->u.sync.seq);
		break;
	case AGT_ACT_SYNC_FREE:
		sync_free(r, a->u.sync.seq);
		break;
	default:
		xfer_free(r, a->u.xfer.seq);
	}
}

static void carry_out(struct agentd *d, struct agt_action *a)
{
	switch (a->type) {
	case AGT_ACT_REPLY:
		session_reply(d, a->session, &a->u.reply, NULL, 0);
		break;
	case AGT_ACT_SESSION_END:
		session_drop(d, a->session, a->u.reply.code, "%s", a->u.reply.text);
		break;
	case AGT_ACT_COMM_OPEN:
		comm_open(d, a->session, a->comm, &a->u.open.reply, &a->u.open.attrs);
		break;
	case AGT_ACT_COMM_CLOSE:
		comm_close(d, a->comm);
		break;
	case AGT_ACT_ATTRS:
		comm_publish(d, a->comm, &a->u.attrs);
		break;
	case AGT_ACT_COMPLETE:
		comm_complete(d, a->comm, a->slot, &a->u.done);
		break;
	case AGT_ACT_MASTER_OPEN:
		run_open(d, a->run, &a->addr);
		break;
	case AGT_ACT_MASTER_DROP:
		run_drop(d, a->run);
		break;
	case AGT_ACT_MASTER_SEND:
		run_send(d, a->run, &a->u.msg);
		break;
	case AGT_ACT_MASTER_CLOSE:
		run_close(d, a->run);
		break;
	case AGT_ACT_RUN_READY:
		run_ready(d, a->run, &a->id);
		break;
	case AGT_ACT_LOG:
		cc_log((int)a->level, "%s", a->u.text);
		break;
	default:
		carry_out_run(d, a);
	}
}

static void step(struct agentd *d, const struct agt_event *ev)
{
	if (agt_step(d->core, ev, cc_now_ns(), &d->acts) < 0)
		agentd_out_of_memory("the agent's core");
	for (size_t i = 0; i < d->acts.n; i++)
		carry_out(d, &d->acts.v[i]);
	agt_actions_clear(&d->acts);
}

static uint32_t attempt_of(struct agentd *d, const struct agt_event *ev)
{
	const struct run *r = ev->type == AGT_EV_MASTER_DOWN ? run_find(d, ev->run) : NULL;

	return r ? r->attempt : 0;
}

/* With what their texts say. */
static struct agt_sync_result *copy_results(const struct agt_event *ev)
{
	size_t texts = (size_t)ev->n_results * WM_TEXT_MAX;
	struct agt_sync_result *v = malloc(ev->n_results * sizeof *v + texts);
	char *text;

	if (!v)
		agentd_out_of_memory("events");
	text = (char *)(v + ev->n_results);
	for (uint32_t i = 0; i < ev->n_results; i++, text += WM_TEXT_MAX) {
		v[i] = ev->results[i];
		if (!v[i].text)
			continue;
		agentd_copy_text(text, WM_TEXT_MAX, v[i].text);
		v[i].text = text;
	}
	return v;
}

static void later_free(struct later *l)
{
	free(l->results);
	free(l);
}

static void put_off(struct agentd *d, const struct agt_event *ev)
{
	struct later *l = malloc(sizeof *l);

	if (!l)
		agentd_out_of_memory("events");
	l->results = NULL;
	l->ev = *ev;
	l->attempt = attempt_of(d, ev);
	if (ev->text) {
		agentd_copy_text(l->text, sizeof l->text, ev->text);
		l->ev.text = l->text;
	}
	if (ev->n_results > 0)
		l->ev.results = l->results = copy_results(ev);
	LL_APPEND(d->later, l);
}

static void step_put_off(struct agentd *d)
{
	while (d->later) {
		struct later *l = d->later;

		LL_DELETE(d->later, l);
		/* The core may have dropped that connection meanwhile, or ordered another. */
		if (l->attempt == attempt_of(d, &l->ev))
			step(d, &l->ev);
		later_free(l);
	}
}

static void keep_time(struct agentd *d);

void agentd_feed(struct agentd *d, const struct agt_event *ev)
{
	if (d->stepping) {
		put_off(d, ev);
		return;
	}
	d->stepping = true;
	step(d, ev);
	step_put_off(d);
	d->stepping = false;
	if (d->quiet)
		keep_time(d);
}

/* ---- time ---- */

#define QUIET_AFTER 20u /* ticks */
#define AT_ONCE_MS  1u

static bool is_quiet(const struct agentd *d)
{
	const struct run *r;

	for (r = d->runs; r; r = r->hh.next)
		if (r->xfers || r->syncs || r->probes)
			return false;
	return !d->stopping && agt_is_quiet(d->core);
}

/* Each tick wakes a CPU. Who begins to be awaited may have been stopped long ago. */
static void keep_time(struct agentd *d)
{
	uint32_t ms = TICK_MS;

	if (!is_quiet(d))
		d->quiet_ticks = 0;
	if (d->quiet_ticks >= QUIET_AFTER)
		ms = AGT_QUIET_TICK_MS;
	else if (d->quiet && agt_is_awaited(d->core))
		ms = AT_ONCE_MS;
	d->quiet = ms == AGT_QUIET_TICK_MS;
	if (ms != d->tick_ms)
		cc_timer_set(d->tick, ms);
	d->tick_ms = ms;
}

void agentd_look(struct agentd *d)
{
	if (!d->quiet)
		return;
	d->stepping = true; /* so that no session is closed under our feet */
	session_look(d);
	step_put_off(d);
	d->stepping = false;
	keep_time(d);
}

static void check_idle(struct agentd *d, uint64_t now)
{
	if (d->sessions)
		d->last_session_ns = now;
	else if (d->cfg.idle_exit_ms && now - d->last_session_ns > MS(d->cfg.idle_exit_ms))
		agentd_stop(d, "the agent is idle");
}

static void on_tick(void *arg)
{
	struct agentd *d = arg;
	struct agt_event ev = {.type = AGT_EV_TICK};
	uint64_t now = cc_now_ns();

	/* What comes up meanwhile waits, so that nothing is closed under our feet. */
	d->stepping = true;
	session_tick(d, now);
	ports_tick(d, now);
	addresses_tick(d, now);
	run_tick(d, now);
	progress_tick(d, now);
	result_tick(d, now);
	d->stepping = false;
	agentd_feed(d, &ev);
	if (d->stopping && now >= d->stop_at_ns)
		cc_loop_stop(d->loop);
	else if (!d->stopping)
		check_idle(d, now);
	d->quiet_ticks++;
	keep_time(d);
}

/* ---- life ---- */

void agentd_config_init(struct agentd_config *c)
{
	*c = (struct agentd_config){
		.session_fd = -1,
		.admin_fd = -1,
		.bind = {.family = CC_INET6},
		.port_shared_state = 48149,
		.port_p2p = 48150,
		.port_benchmark = 48151,
		.sessions_per_user = 1024,
		.comms_per_user = 1024,
		.connect_timeout_ms = 10000,
		.place_timeout_ms = 1000,
		.master_grace_ms = 60000,
		.stopped_timeout_ms = 10000,
		.beat_timeout_ms = 3000,
		.hash_type = WM_HASH_SIMPLE,
	};
}

static void default_limits(struct agentd_config *c)
{
	char where[CC_MEMORY_WHERE];
	uint64_t half = (uint64_t)1 << 32, cgroup = cc_memory_cgroup("", where);
	struct sysinfo si;

	if (sysinfo(&si) == 0)
		half = (uint64_t)si.totalram * si.mem_unit / 2;
	if (cgroup / 2 < half && (c->mem_total == 0 || c->mem_per_user == 0)) {
		half = cgroup / 2;
		c->mem_of_cgroup = true;
		cc_log(CC_LOG_NOTICE,
			"%s is %" PRIu64 " MiB: half of it is what may be shared, where mem_total "
			"or mem_per_user does not say otherwise",
			where, cgroup >> 20);
	}
	if (c->mem_own == 0)
		c->mem_own = cgroup / 2;
	if (c->mem_total == 0)
		c->mem_total = half;
	if (c->mem_per_user == 0)
		c->mem_per_user = half;
}

static int make_core(struct agentd *d)
{
	struct agt_config a = {
		.agent = d->id,
		.max_comms_per_uid = d->cfg.comms_per_user,
		.connect_timeout_ms = d->cfg.connect_timeout_ms,
		.place_timeout_ms = d->cfg.place_timeout_ms,
		.master_grace_ms = d->cfg.master_grace_ms,
		.stopped_ms = d->cfg.stopped_timeout_ms,
	};

	d->names = names_new(&d->cfg.advertise);
	addresses_refresh(d);
	a.addresses = d->addresses;
	agentd_copy_text(a.name, sizeof a.name, d->cfg.name);
	d->core = agt_new(&a);
	return d->core ? 0 : CC_ERR_NOMEM;
}

static const struct agentd_master *find_master(
	const struct agentd_masters *m, const struct cc_addr *from)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (cc_addr_eq(&m->v[i].from, from))
			return &m->v[i];
	return NULL;
}

/* Only what has changed: pcclctl may have said something newer of the others. */
void agentd_set_masters(struct agentd *d, const struct agentd_masters *m)
{
	struct agentd_masters old = d->cfg.masters;
	struct agt_event ev = {.type = AGT_EV_SET_MASTER};

	d->cfg.masters = *m;
	for (uint32_t i = 0; i < old.n; i++) {
		if (find_master(m, &old.v[i].from))
			continue;
		ev.from = old.v[i].from;
		agentd_feed(d, &ev);
	}
	for (uint32_t i = 0; i < m->n; i++) {
		const struct agentd_master *was = find_master(&old, &m->v[i].from);

		if (was && cc_addr_eq(&was->to, &m->v[i].to))
			continue;
		ev.from = m->v[i].from;
		ev.to = m->v[i].to;
		agentd_feed(d, &ev);
	}
}

struct agentd *agentd_new(const struct agentd_config *cfg)
{
	struct agentd *d = calloc(1, sizeof *d);
	char why[WL_TEXT_MAX];
	int error;

	if (!d)
		agentd_out_of_memory("the agent");
	d->cfg = *cfg;
	d->cfg.masters.n = 0;
	default_limits(&d->cfg);
	d->identity = cc_identity_new();
	if (!d->identity)
		agentd_out_of_memory("the agent");
	cc_seal_id_of(cc_identity_share(d->identity), &d->id);
	d->last_session_ns = cc_now_ns();
	d->complain_tokens = COMPLAINTS_BURST;
	d->loop = cc_loop_new();
	if (!manifest_leaf_fn(d, cfg->hash_type, why)) {
		cc_log(CC_LOG_ERR, "%s", why);
		goto err;
	}
	if (!d->loop || checks_open(d) < 0 || ports_open(d) < 0 || make_core(d) < 0)
		goto err;
	d->tick_ms = TICK_MS;
	d->tick = cc_timer_new(d->loop, d->tick_ms, on_tick, d);
	if (!d->tick || session_listen(d) < 0)
		goto err;
	if (d->cfg.admin_fd >= 0 && admin_listen(d) < 0)
		goto err;
	agentd_set_masters(d, &cfg->masters);
	return d;
err:
	error = errno;
	cc_limit_log("the agent cannot start");
	agentd_free(d);
	errno = error;
	return NULL;
}

int agentd_run(struct agentd *d)
{
	return cc_loop_run(d->loop);
}

void agentd_stop(struct agentd *d, const char *why)
{
	static const struct agt_event end = {.type = AGT_EV_END};

	if (d->stopping)
		return;
	cc_log(CC_LOG_INFO, "ending: %s", why);
	d->stopping = true;
	cc_listener_free(d->session_listener);
	d->session_listener = NULL;
	ports_stop(d);
	cc_admin_free(d->admin);
	d->admin = NULL;
	d->stepping = true;
	session_close_gone(d);
	step_put_off(d);
	d->stepping = false;
	/* As if it was killed: no thread works on memory that processes have back. */
	run_halt_all(d);
	agentd_feed(d, &end);
	session_goodbye_all(d, why);
	comm_free_all(d);
	d->stop_at_ns = cc_now_ns() + STOP_NS;
}

void agentd_free(struct agentd *d)
{
	d->stepping = true; /* the core hears no more */
	cc_admin_free(d->admin);
	cc_listener_free(d->session_listener);
	session_free_all(d);
	checks_free(d);
	run_free_all(d);
	comm_free_all(d);
	result_free_all(d);
	ports_close(d);
	names_free(d->names);
	while (d->later) {
		struct later *l = d->later;

		LL_DELETE(d->later, l);
		later_free(l);
	}
	agt_actions_free(&d->acts);
	if (d->core)
		agt_free(d->core);
	cc_identity_free(d->identity);
	cc_timer_free(d->tick);
	cc_timer_free(d->extra_timer);
	if (d->loop)
		cc_loop_free(d->loop);
	if (d->cfg.session_fd >= 0)
		close(d->cfg.session_fd);
	if (d->cfg.admin_fd >= 0)
		close(d->cfg.admin_fd);
	free(d);
}

int agentd_on_signal(struct agentd *d, int signo, void (*fn)(void *arg, int signo), void *arg)
{
	return cc_loop_signal(d->loop, signo, fn, arg);
}

int agentd_every(struct agentd *d, uint32_t interval_ms, void (*fn)(void *arg), void *arg)
{
	d->extra_timer = cc_timer_new(d->loop, interval_ms, fn, arg);
	return d->extra_timer ? 0 : CC_ERR_NOMEM;
}

void agentd_get_stats(const struct agentd *d, struct agentd_stats *ret)
{
	const struct run *r, *tmp;
	const struct result *res;
	struct agt_status core;
	int n;

	*ret = (struct agentd_stats){
		.sessions = HASH_COUNT(d->sessions),
		.comms = HASH_COUNT(d->comms),
		.runs = HASH_COUNT(d->runs),
		.regions = d->n_regions,
		.mem_used = d->mem_used,
		.mem_limit = d->cfg.mem_total,
	};
	agt_get_status(d->core, &core);
	ret->ops = core.ops;
	ports_get(d, ret);
	DL_COUNT(d->results, res, n);
	ret->results = (uint32_t)n;
	HASH_ITER (hh, d->runs, r, tmp) {
		ret->transfers += HASH_COUNT(r->xfers);
		ret->syncs += HASH_COUNT(r->syncs);
		ret->links_out += out_link_count(r);
		ret->links_in += r->n_in_links;
		ret->streams += out_link_streams(r) + in_link_streams(r);
	}
}
