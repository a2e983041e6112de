/* SPDX-License-Identifier: MIT
 *
 * Connections: hello, silence, the end; how an agent is reached.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

struct ccm_agent *ccm_agent_find(const struct ccm *m, uint32_t conn)
{
	struct ccm_agent *a = m->by_conn[conn % CCM_CONNS];

	if (!a || a->conn != conn)
		HASH_FIND(hh, m->agents, &conn, sizeof conn, a);
	return a;
}

void ccm_agent_unhash(struct ccm *m, struct ccm_agent *a)
{
	HASH_DELETE(hh, m->agents, a);
	if (m->by_conn[a->conn % CCM_CONNS] == a)
		m->by_conn[a->conn % CCM_CONNS] = NULL;
}

void ccm_agent_open(struct ccm *m, const struct ccm_event *ev)
{
	struct ccm_agent *a;

	if (ccm_agent_find(m, ev->conn)) {
		ccm_log(m, CCM_LOG_ERR, "connection number %u was opened twice", ev->conn);
		return;
	}
	a = cc_must_zalloc(1, sizeof *a);
	a->conn = ev->conn;
	a->no = ++m->last_agent;
	a->from = ev->addr;
	a->local = ev->local;
	a->spoke_ns = m->now;
	cc_detect_init(&a->life, m->cfg.heartbeat_ms, m->cfg.timeout_ms, m->now);
	cc_detect_path(&a->life, ev->path_ms);
	HASH_ADD(hh, m->agents, conn, sizeof a->conn, a);
	m->by_conn[a->conn % CCM_CONNS] = a;
}

const char *ccm_agent_label(const struct ccm_agent *a, char *buf, size_t size)
{
	char addr[CC_ADDR_STR_SIZE];

	(void)cc_addr_str(&a->from, addr);
	if (a->greeted)
		ccm_print(buf, size, "%s (%s)", a->hello.name, addr);
	else
		ccm_print(buf, size, "%s", addr);
	return buf;
}

void ccm_agent_bury(struct ccm *m, struct ccm_agent *a)
{
	if (a->disconnected)
		DL_DELETE2(m->disconnected, a, prev_ab, next_ab);
	else
		ccm_agent_unhash(m, a);
	if (a->claimed)
		HASH_DELETE(hh_id, m->by_id, a);
	ccm_pairs_forget(m, a->no);
	ccm_probes_forget(m, a->no);
	ccm_resuming_set(m, a, false);
	a->claimed = false;
	a->dead = true;
	a->next_dead = m->dead;
	m->dead = a;
}

static void remove_peers(struct ccm *m, struct ccm_agent *a, const char *why)
{
	struct ccm_membership *s;
	struct ccm_peer *p, *next;

	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH_SAFE (s->peers, p, next)
			ccm_peer_remove(m, p, why);
}

void ccm_agent_lost(struct ccm *m, struct ccm_agent *a, const char *text)
{
	char label[2 * WM_NAME_MAX], why[WM_TEXT_MAX], clean[WM_TEXT_MAX];

	ccm_copy(clean, sizeof clean, text ? text : "connection closed");
	ccm_log(m, a->n_accepted ? CCM_LOG_WARNING : CCM_LOG_INFO, "agent %s, %u peers: %s",
		ccm_agent_label(a, label, sizeof label), a->n_peers, clean);
	ccm_print(why, sizeof why, "its agent is gone: %s", clean);
	remove_peers(m, a, why);
	ccm_agent_bury(m, a);
}

static void refuse(struct ccm *m, struct ccm_agent *a, uint32_t code, const char *text)
{
	struct wm_refuse *r = &ccm_send(m, a, WM_REFUSE)->u.refuse;

	r->version_min = WM_VERSION_MIN;
	r->version_max = WM_VERSION_MAX;
	r->code = code;
	ccm_print(r->text, sizeof r->text, "%s", text);
	ccm_close(m, a->conn, text);
}

void ccm_agent_kick(struct ccm *m, struct ccm_agent *a, uint32_t code, const char *fmt, ...)
{
	char label[2 * WM_NAME_MAX], text[WM_TEXT_MAX];
	struct ccm_peer *p, *next;
	struct ccm_membership *s;
	va_list ap;

	if (a->dead)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ccm_log_agent(m, a, CCM_LOG_WARNING, "agent %s is refused: %s",
		ccm_agent_label(a, label, sizeof label), text);
	DL_FOREACH2 (a->memberships, s, next_a)
		DL_FOREACH_SAFE (s->peers, p, next)
			ccm_peer_kick(m, p, code, "%s", text);
	refuse(m, a, code, text);
	ccm_agent_bury(m, a);
}

void ccm_agent_redirect(struct ccm *m, struct ccm_agent *a, const char *text)
{
	refuse(m, a, WIRE_MASTER_CONNECTION_FAILED, text);
	ccm_agent_disconnected(m, a, text);
}

void ccm_agent_cut_half_open(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_agent *old;

	HASH_FIND(hh_id, m->by_id, &a->hello.agent, sizeof a->hello.agent, old);
	if (!old || old == a)
		return;
	ccm_close(m, old->conn, "the agent has come back on another connection");
	ccm_agent_disconnected(m, old, "it has come back on another connection");
}

void ccm_agent_ack(struct ccm *m, struct ccm_agent *a)
{
	struct wm_hello_ack *ack = &ccm_send(m, a, WM_HELLO_ACK)->u.hello_ack;
	uint32_t version = a->hello.version_max;
	char label[2 * WM_NAME_MAX];

	ack->version = version < WM_VERSION_MAX ? version : WM_VERSION_MAX;
	ack->features = a->hello.features & WM_FEATURES;
	ack->run = m->cfg.run;
	ack->heartbeat_ms = m->cfg.heartbeat_ms;
	ack->timeout_ms = m->cfg.timeout_ms;
	ack->segment_max = m->cfg.segment_max;
	ack->bounds = m->cfg.bounds;
	ack->term = m->term;
	ack->resume = a->resuming;
	m->acked |= a->resuming;
	a->reopens = 0;
	a->acked_ns = m->now;
	ccm_log(m, CCM_LOG_INFO, "agent %s connected", ccm_agent_label(a, label, sizeof label));
}

void ccm_agent_hello(struct ccm *m, struct ccm_agent *a, const struct wm_hello *h)
{
	if (a->greeted) {
		ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
			"protocol violation: a second hello on one connection");
		return;
	}
	if (h->version_min > WM_VERSION_MAX || h->version_max < WM_VERSION_MIN ||
		h->version_min > h->version_max) {
		ccm_agent_kick(m, a, WIRE_VERSION_MISMATCH,
			"protocol versions do not overlap: agent speaks %u to %u, this master %u "
			"to %u",
			h->version_min, h->version_max, WM_VERSION_MIN, WM_VERSION_MAX);
		return;
	}
	a->hello = *h;
	ccm_copy(a->hello.name, sizeof a->hello.name, h->name);
	a->greeted = true;
	ccm_resume_hello(m, a);
}

void ccm_agent_addresses(struct ccm_agent *a, const struct wm_addresses *x)
{
	struct wm_hello *h = &a->hello;

	h->advertised = x->advertised;
	h->n_addrs = x->n_addrs;
	memcpy(h->addrs, x->addrs, sizeof h->addrs);
	h->port_p2p = x->port_p2p;
	h->port_shared_state = x->port_shared_state;
	h->port_benchmark = x->port_benchmark;
	a->moved = true;
}

static void check_silence(struct ccm *m)
{
	struct ccm_agent *a, *tmp;

	HASH_ITER (hh, m->agents, a, tmp) {
		/* An agent sends nothing before its hello is answered. */
		if (a->hello_deferred || !cc_detect_gone(&a->life, m->now))
			continue;
		if (a->greeted)
			ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
				"the agent on %s has been silent for %.1f s, bound %.1f s",
				a->hello.name, (double)cc_detect_silence(&a->life, m->now) / 1e9,
				(double)cc_detect_bound(&a->life) / 1e9);
		else
			ccm_agent_kick(m, a, WIRE_MASTER_CONNECTION_FAILED,
				"no hello came within %u ms", m->cfg.timeout_ms);
	}
}

/* Kicks agents whose snapshots take too long, because rounds wait for them. */
static void check_resuming(struct ccm *m)
{
	struct ccm_agent *a, *tmp;
	uint32_t ms;

	if (m->n_resuming == 0)
		return;
	ms = m->cfg.bounds.ms[CC_BOUND_ROUND] + ccm_paths_ms(m);
	HASH_ITER (hh, m->agents, a, tmp)
		if (a->resuming && !a->hello_deferred &&
			ccm_age(m->now, a->acked_ns) > ms * CCM_NS_PER_MS)
			ccm_agent_kick(m, a, WIRE_RANK_CONNECTION_LOST,
				"the agent on %s did not complete its snapshot of the run within "
				"%u ms",
				a->hello.name, ms);
}

/* Restarts all bounds after a suspension, because messages that agents sent meanwhile have not been
 * read yet. */
static void forgive_pause(struct ccm *m, uint64_t ns)
{
	struct ccm_agent *a;

	ccm_log(m, CCM_LOG_WARNING,
		"the master was suspended for %.1f s: all bounds start again from now",
		(double)ns / 1e9);
	for (a = m->agents; a; a = a->hh.next) {
		cc_detect_pause(&a->life, m->now);
		a->acked_ns = m->now;
	}
	DL_FOREACH2 (m->disconnected, a, next_ab)
		a->disconnected_ns = m->now;
	m->round.since_ns = m->woke_ns = m->now;
	if (m->recover_ns)
		m->recover_ns = m->now;
}

void ccm_agent_pause(struct ccm *m, uint32_t gone)
{
	uint64_t ns = m->tick_ns ? ccm_age(m->now, m->tick_ns) : 0;
	uint64_t unheard = m->beat_ns ? ccm_age(m->now, m->beat_ns) : ns;
	/* One beat is added, because the clocks of agents may be faster. */
	uint64_t beat = m->cfg.heartbeat_ms * CCM_NS_PER_MS;

	if (!cc_detect_blind(&m->any, ns))
		return;
	m->tick_ns = m->now;
	/* Agents may have abandoned this master: they have gone to another master, or they wait for
	 * the next one. */
	if (unheard + beat > m->any.min_ns && m->n_accepted > 0 && !m->recovering) {
		ccm_log(m, CCM_LOG_WARNING,
			"the master was suspended for %.1f s: it takes over its run again",
			(double)ns / 1e9);
		ccm_restart(m, gone, "the master was suspended: every agent must connect again");
	} else {
		forgive_pause(m, ns);
	}
}

/* Did `a` fall silent together with the other remote hosts? If so, its last message came at most
 * two heartbeats before the last message from any of them: an agent looks at least once in a
 * heartbeat whether the last one was a heartbeat ago. */
static bool fell_silent_with_all(const struct ccm *m, const struct ccm_agent *a)
{
	return ccm_age(m->heard_ns, a->spoke_ns) <= 2 * m->cfg.heartbeat_ms * CCM_NS_PER_MS;
}

void ccm_agent_heard(struct ccm *m, struct ccm_agent *a)
{
	uint64_t ns = m->heard_ns ? ccm_age(m->now, m->heard_ns) : 0;
	struct ccm_agent *x;

	if (!a->local) {
		/* For `a` itself, the silence is measured below. */
		for (x = cc_detect_blind(&m->any, ns) ? m->agents : NULL; x; x = x->hh.next)
			if (!x->local && x != a && fell_silent_with_all(m, x))
				cc_detect_pause(&x->life, m->now);
		m->heard_ns = m->now;
	}
	a->spoke_ns = m->now;
	cc_detect_heard(&a->life, m->now);
}

/* Is `a` silent? If a remote host connects (`reached`), agents may already have abandoned this
 * master. An agent has missed at most one heartbeat more than this master, and its clock may be
 * faster, so two heartbeats are added to the silence. */
static bool is_silent(const struct ccm *m, struct ccm_agent *a, bool reached)
{
	uint64_t beat = m->cfg.heartbeat_ms * CCM_NS_PER_MS;

	return reached ? cc_detect_silence(&a->life, m->now) + 2 * beat > m->any.min_ns
		       : cc_detect_gone(&a->life, m->now);
}

static bool is_cut_off(struct ccm *m, bool reached)
{
	bool silent = false, members_here = false;
	struct ccm_agent *a;
	uint32_t others = 0;

	for (a = m->agents; a; a = a->hh.next) {
		if (!a->greeted)
			continue;
		if (a->local) {
			members_here |= a->n_accepted > 0;
			continue;
		}
		others++;
		silent |=
			a->n_accepted > 0 && fell_silent_with_all(m, a) && is_silent(m, a, reached);
	}
	DL_FOREACH2 (m->disconnected, a, next_ab)
		others += !a->local;
	return silent && (others > 1 || !members_here);
}

void ccm_agent_reach(struct ccm *m, bool reached)
{
	/* While recovering, a host that connects changes nothing: the wait for missing members is
	 * bounded. */
	if ((m->recovering && reached) || !is_cut_off(m, reached))
		return;
	if (m->recovering) {
		ccm_resume_cut_off(m);
		return;
	}
	ccm_log(m, CCM_LOG_WARNING,
		"the master has received nothing from remote hosts for %.1f s and assumes that its "
		"own network is down: it takes over its run again",
		(double)ccm_age(m->now, m->heard_ns) / 1e9);
	ccm_restart(m, 0, "the master's network was down: every agent must connect again");
	m->cut_off_ns = m->now;
}

/* The beginning of a wait for votes is reported at once, the end of the wait only with the next
 * regular heartbeat. */
static bool beat_is_due(const struct ccm *m, bool awaited)
{
	return (awaited && !m->awaited) || !m->beat_ns ||
	       ccm_age(m->now, m->beat_ns) >= m->cfg.heartbeat_ms * CCM_NS_PER_MS;
}

void ccm_agent_tick(struct ccm *m)
{
	bool awaited = ccm_waits_any(m);
	struct ccm_agent *a;

	m->tick_ns = m->now;
	check_silence(m);
	check_resuming(m);
	if (!beat_is_due(m, awaited))
		return;
	m->beat_ns = m->now;
	m->awaited = awaited;
	ccm_send_all(m, WM_HEARTBEAT)->u.heartbeat.awaited = awaited;
	for (a = m->agents; a; a = a->hh.next)
		if (a->greeted && !a->hello_deferred)
			ccm_send_to(m, a);
}

static void add_addr(struct wm_endpoint *e, const struct cc_addr *addr, uint16_t port)
{
	struct cc_addr x = *addr;
	uint32_t i;

	x.port = port;
	for (i = 0; i < e->n_addrs; i++)
		if (cc_addr_eq(&e->addrs[i], &x))
			return;
	if (e->n_addrs < WM_ADDRS_MAX && x.family && !cc_addr_is_any(&x))
		e->addrs[e->n_addrs++] = x;
}

/* Describes how `to` reaches `a`. `p2p`: a port that is advertised with an address replaces
 * `port`. */
static void endpoint(const struct ccm_agent *a, const struct ccm_agent *to, uint16_t port, bool p2p,
	struct wm_endpoint *ret)
{
	const struct wm_hello *h = &a->hello;
	bool advertised = h->advertised && h->n_addrs > 0;
	uint32_t i;

	*ret = (struct wm_endpoint){.agent = h->agent, .port = port, .conn = a->conn};
	ccm_print(ret->name, sizeof ret->name, "%s", h->name);
	if (!advertised && !cc_addr_is_loopback(&a->from))
		add_addr(ret, &a->from, port);
	if (!advertised && cc_addr_is_loopback(&a->from)) {
		ret->at_master = true;
		if (cc_addr_is_loopback(&to->from))
			add_addr(ret, &a->from, port);
	}
	for (i = 0; i < h->n_addrs && i < WM_ADDRS_MAX; i++)
		add_addr(ret, &h->addrs[i],
			p2p && advertised && h->addrs[i].port ? h->addrs[i].port : port);
}

void ccm_agent_endpoint(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret)
{
	endpoint(a, to, a->hello.port_p2p, true, ret);
}

void ccm_agent_endpoint_state(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret)
{
	endpoint(a, to, a->hello.port_shared_state, false, ret);
}

void ccm_agent_endpoint_benchmark(
	const struct ccm_agent *a, const struct ccm_agent *to, struct wm_endpoint *ret)
{
	endpoint(a, to, a->hello.port_benchmark, false, ret);
}
