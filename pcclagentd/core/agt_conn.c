/* SPDX-License-Identifier: MIT
 *
 * The addresses at which the master of a run is sought, and the attempts to connect to them.
 */
#include <stdio.h>
#include <string.h>

#include "pcclagentd/core/agt_internal.h"

#define LONGER_MAX 2u /* how often the timeout of an address is doubled */

struct addrs {
	uint32_t n;
	struct cc_addr v[AGT_MASTER_ADDRS_MAX];
};

static bool addrs_have(const struct addrs *p, const struct cc_addr *addr)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (cc_addr_eq(&p->v[i], addr))
			return true;
	return false;
}

static void addrs_add(struct addrs *p, const struct cc_addr *addr)
{
	if (addr->family && p->n < AGT_MASTER_ADDRS_MAX && !addrs_have(p, addr))
		p->v[p->n++] = *addr;
}

static const struct agt_moved *moved_find(const struct agt *a, const struct cc_addr *from)
{
	uint32_t i;

	for (i = 0; i < a->n_masters; i++)
		if (cc_addr_eq(&a->masters[i].from, from))
			return &a->masters[i];
	return NULL;
}

/* Returns the addresses at which the master of r may be, best first: where it was reached last, its
 * own addresses, and the new addresses that were set for these. Addresses that the master is said
 * to have left come last, because a master that still answers there is probably stale. */
static struct addrs addrs_of(const struct agt *a, const struct agt_run *r)
{
	struct addrs p = {.n = 0}, ret = {.n = 0};
	uint32_t i;

	addrs_add(&p, &r->reached);
	addrs_add(&p, &r->addr);
	for (i = 0; i < r->n_aliases; i++)
		addrs_add(&p, &r->aliases[i]);
	addrs_add(&p, &r->moved);
	for (i = 0; i < p.n; i++) {
		const struct agt_moved *m = moved_find(a, &p.v[i]);

		if (m)
			addrs_add(&p, &m->to);
	}
	for (i = 0; i < p.n; i++)
		if (!moved_find(a, &p.v[i]))
			addrs_add(&ret, &p.v[i]);
	while (i-- > 0)
		addrs_add(&ret, &p.v[i]);
	return ret;
}

void agt_conn_open(struct agt *a, struct agt_run *r, const struct cc_addr *addr)
{
	struct agt_action *x = agt_emit(a, AGT_ACT_MASTER_OPEN);

	x->run = r->id;
	x->addr = *addr;
	r->connect_addr = *addr;
	r->connecting = true;
	r->connect_ns = a->now;
	r->path_ms = 0;
	r->taken = r->foreign = false;
}

void agt_conn_next(struct agt *a, struct agt_run *r)
{
	struct addrs p = addrs_of(a, r);

	agt_conn_open(a, r, &p.v[r->n_connects++ % p.n]);
}

void agt_conn_redirected(const struct agt *a, struct agt_run *r)
{
	struct addrs p = addrs_of(a, r);

	r->n_connects = cc_addr_eq(&p.v[0], &r->reached);
}

void agt_conn_alias(struct agt_run *r, const struct cc_addr *addr)
{
	if (!agt_run_has_addr(r, addr) && r->n_aliases < AGT_ALIASES_MAX)
		r->aliases[r->n_aliases++] = *addr;
}

/* Publishes the address of r's master if it has changed: the address where the master was reached,
 * or the new address that was set in its place. The peers keep the published address for their next
 * agent. */
static void tell_master_addr(struct agt *a, struct agt_run *r)
{
	const struct cc_addr *at = r->reached.family ? &r->reached : &r->addr;
	const struct agt_moved *m = moved_find(a, at);
	struct agt_comm *c;

	if (m)
		at = &m->to;
	else if (r->moved.family && !agt_run_has_addr(r, &r->moved))
		at = &r->moved; /* the master was not reached there yet */
	if (cc_addr_eq(&r->at, at))
		return;
	r->at = *at;
	DL_FOREACH2 (r->comms, c, next_r)
		agt_comm_publish(a, c);
}

void agt_conn_reached(struct agt *a, struct agt_run *r)
{
	r->connecting = false;
	r->short_ns = 0;
	r->n_connects = r->n_refused = r->n_silent = 0;
	r->backoff_ms = 0;
	if (!cc_addr_eq(&r->reached, &r->connect_addr))
		r->hinted = false;
	r->reached = r->connect_addr;
	agt_conn_alias(r, &r->connect_addr);
	tell_master_addr(a, r);
}

static void try_later(struct agt *a, struct agt_run *r, bool open)
{
	if (open)
		agt_emit(a, AGT_ACT_MASTER_DROP)->run = r->id;
	r->backoff_ms = r->backoff_ms ? r->backoff_ms * 2 : AGT_RECONNECT_MIN;
	if (r->backoff_ms > AGT_RECONNECT_MAX)
		r->backoff_ms = AGT_RECONNECT_MAX;
	r->connecting = false;
	r->connect_ns = a->now + (uint64_t)r->backoff_ms * AGT_NS_PER_MS;
}

static bool sought_for(
	const struct agt *a, const struct agt_run *r, const struct agt_comm *c, uint64_t ns)
{
	return a->now - c->wait_ns >= ns && a->now - r->sought_ns >= ns;
}

/* Ends the connects of newcomers that have waited for `waited_ns` while no master was found. Peers
 * that attach keep waiting for their master. With waited_ns != 0, a master may still appear before
 * the time is up: it may be starting, perhaps behind a port forward that already accepts
 * connections. */
static void connects_fail(
	struct agt *a, struct agt_run *r, const struct agt_end_status *v, uint64_t waited_ns)
{
	struct agt_comm *c, *next;

	DL_FOREACH_SAFE2 (r->comms, c, next, next_r)
		if (!c->attach && sought_for(a, r, c, waited_ns))
			agt_run_lose(a, c, AGT_EXIT_DOWN, v);
	if (r->n_comms == 0) {
		agt_log(a, AGT_LOG_WARNING, "%s", v->text);
		agt_run_over(a, r, v);
	}
}

static void set_unreached(const struct agt_run *r, const char *why, struct agt_end_status *ret)
{
	char addr[CC_ADDR_STR_SIZE];

	agt_end_status_set(ret, WIRE_MASTER_CONNECTION_FAILED,
		"cannot reach the master at %s (%s): is ccoip-masterd running there?",
		cc_addr_str(&r->connect_addr, addr), why);
}

void agt_conn_failed(struct agt *a, struct agt_run *r, const char *why, bool open)
{
	struct agt_end_status v;

	set_unreached(r, why, &v);
	agt_conn_refused(a, r, &v, open);
}

void agt_conn_refused(struct agt *a, struct agt_run *r, const struct agt_end_status *v, bool open)
{
	bool answered = r->foreign || (r->state == AGT_RUN_GREETING && open);
	struct addrs p = addrs_of(a, r);

	if (agt_run_orphaned(r)) {
		if (r->state == AGT_RUN_RESUMING)
			agt_run_set_state(a, r, AGT_RUN_ORPHAN);
		try_later(a, r, open);
		return;
	}
	if (r->state == AGT_RUN_GREETING) {
		agt_run_set_state(a, r, AGT_RUN_CONNECTING);
		if (open)
			r->sought_ns = a->now;
	}
	if (++r->n_refused < p.n) {
		agt_conn_next(a, r);
		return;
	}
	connects_fail(a, r, v, answered ? 0 : (uint64_t)a->cfg.connect_timeout_ms * AGT_NS_PER_MS);
	if (r->state != AGT_RUN_OVER)
		try_later(a, r, open);
}

static void lease_over(struct agt *a, struct agt_run *r)
{
	char addr[CC_ADDR_STR_SIZE];
	struct agt_end_status v;

	agt_end_status_set(&v, WIRE_MASTER_CONNECTION_FAILED,
		"lost the master at %s (%.100s), and no other master has taken the run over within "
		"%.1f s: call pcclConnect again when there is a master",
		cc_addr_str(&r->addr, addr), r->why, (double)a->cfg.master_lease_ms / 1e3);
	agt_log(a, AGT_LOG_WARNING, "%s", v.text);
	agt_run_over(a, r, &v);
}

static uint32_t least(uint32_t x, uint32_t y)
{
	return x < y ? x : y;
}

/* Does r wait for a connection to be accepted? */
static bool is_connect_addr(const struct agt_run *r)
{
	return r->state == AGT_RUN_CONNECTING || r->state == AGT_RUN_ORPHAN;
}

/* Returns the time that one address has to accept the connection, in ms. A new attempt is better
 * than waiting: the kernel repeats its own attempts ever more seldom, and the master may be at
 * another address. But no round trip has been measured yet, and it may be longer than this time. So
 * when no address has answered, the next attempt at each address gets twice the time. */
static uint32_t master_addr_ms(const struct agt *a, const struct agt_run *r)
{
	uint32_t longer = r->n_silent / addrs_of(a, r).n;

	return a->cfg.master_addr_timeout_ms << least(longer, LONGER_MAX);
}

/* Returns the time that one address has to answer, in ms. A master that has accepted the connection
 * may have reasons to answer the hello late; but a master that was up a moment ago has no such
 * reason. */
static uint32_t attempt_ms(const struct agt *a, const struct agt_run *r)
{
	uint32_t limit = a->cfg.connect_timeout_ms;

	if (is_connect_addr(r))
		limit = least(limit, master_addr_ms(a, r));
	else if (agt_run_orphaned(r))
		limit = least(limit, r->timeout_ms);
	return limit + r->path_ms;
}

/* Ends the connects of newcomers when the search for a master takes too long. */
static void check_sought(struct agt *a, struct agt_run *r)
{
	uint32_t limit = a->cfg.connect_timeout_ms;
	struct agt_end_status v;
	char why[160];

	if (r->state != AGT_RUN_CONNECTING || !r->connecting)
		return;
	(void)snprintf(why, sizeof why,
		"%s within the %u ms of connect_timeout_ms, an option of pcclagentd",
		r->taken ? "the connection was accepted, but no answer came" : "no connection",
		limit);
	set_unreached(r, why, &v);
	connects_fail(a, r, &v, (uint64_t)limit * AGT_NS_PER_MS);
}

void agt_conn_tick(struct agt *a, struct agt_run *r)
{
	uint32_t limit = attempt_ms(a, r);
	char why[WM_TEXT_MAX];

	/* If this process stood still, the lease is extended by that time. */
	if (a->tick_ns && a->now - a->tick_ns > AGT_STOOD_STILL_NS)
		r->lease_ns += a->now - a->tick_ns;
	if (agt_run_orphaned(r) && a->now > r->lease_ns &&
		a->now - r->lease_ns >= (uint64_t)a->cfg.master_lease_ms * AGT_NS_PER_MS) {
		lease_over(a, r);
		return;
	}
	check_sought(a, r);
	if (r->state == AGT_RUN_OVER || a->now < r->connect_ns)
		return;
	if (!r->connecting) {
		agt_conn_next(a, r);
	} else if (is_connect_addr(r) &&
		   a->now - r->connect_ns >= (uint64_t)limit * AGT_NS_PER_MS) {
		r->n_refused = 0;
		r->n_silent++;
		agt_conn_next(a, r);
	} else if (a->now - r->connect_ns >= (uint64_t)limit * AGT_NS_PER_MS) {
		(void)snprintf(why, sizeof why,
			"no answer within %u ms, though the connection was accepted: a master of "
			"PCCL 1.0, another program or a stopped ccoip-masterd may listen there",
			limit);
		agt_conn_failed(a, r, why, true);
	}
}

void agt_conn_taken(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r = agt_run_find(a, ev->run);

	if (!r || !r->connecting || !is_connect_addr(r))
		return;
	r->connect_ns = a->now;
	r->taken = true;
	r->path_ms = ev->path_ms;
}

/* Stores the new address of a master; it is used for later runs as well. */
static void moved_set(struct agt *a, const struct agt_event *ev)
{
	struct agt_moved *m = a->masters;
	char addr[CC_ADDR_STR_SIZE];

	while (m < a->masters + a->n_masters && !cc_addr_eq(&m->from, &ev->from))
		m++;
	if (m < a->masters + a->n_masters) {
		if (ev->to.family)
			m->to = ev->to;
		else
			*m = a->masters[--a->n_masters];
	} else if (ev->to.family && a->n_masters == AGT_MASTERS_MAX) {
		agt_log(a, AGT_LOG_ERR,
			"the new address of the master %s is not stored: the limit is %u addresses",
			cc_addr_str(&ev->from, addr), AGT_MASTERS_MAX);
	} else if (ev->to.family) {
		*m = (struct agt_moved){.from = ev->from, .to = ev->to};
		a->n_masters++;
	}
	/* The master is at `to` now, so an entry that moves a master away from `to` is removed. */
	for (m = a->masters; m < a->masters + a->n_masters; m++)
		if (cc_addr_eq(&m->from, &ev->to)) {
			*m = a->masters[--a->n_masters];
			break;
		}
}

static void send_there(struct agt *a, struct agt_run *r, const struct agt_event *ev)
{
	if (r->state == AGT_RUN_UP && ev->now && ev->to.family)
		agt_orphan(a, r, "another address was set for it", true);
	if (r->state == AGT_RUN_UP || !ev->to.family)
		return;
	if (r->state == AGT_RUN_RESUMING)
		agt_run_set_state(a, r, AGT_RUN_ORPHAN);
	else if (r->state == AGT_RUN_GREETING)
		agt_run_set_state(a, r, AGT_RUN_CONNECTING);
	r->sought_ns = a->now;
	agt_conn_open(a, r, &ev->to);
}

void agt_conn_set_master(struct agt *a, const struct agt_event *ev)
{
	struct agt_run *r;

	if (!ev->run)
		moved_set(a, ev);
	for (r = a->runs; r; r = r->hh.next) {
		struct addrs p = addrs_of(a, r);

		r->master_set = r->state != AGT_RUN_OVER &&
				(ev->run ? r->id == ev->run : addrs_have(&p, &ev->from));
		if (!r->master_set)
			continue;
		if (ev->run)
			r->moved = ev->to;
		if (cc_addr_eq(&r->reached, &ev->to))
			r->hinted = false;
		tell_master_addr(a, r);
		send_there(a, r, ev);
	}
}
