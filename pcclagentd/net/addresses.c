/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/net/net_internal.h"
#include "pcclagentd/net/names.h"

#define INTERFACES_MAX 1024u
#define INTERFACE_SIZE 16u /* bytes of a name, with NUL */
#define REFRESH_NS     BASE_MS(3000)

/* ---- addresses of this host ---- */

struct found {
	struct wm_addresses a;
	uint32_t left_out;
	char missing[256]; /* address specs that match no address of this host */
};

static void add(struct found *f, struct cc_addr addr)
{
	for (uint32_t i = 0; i < f->a.n_addrs; i++)
		if (cc_addr_eq(&f->a.addrs[i], &addr))
			return;
	if (f->a.n_addrs == WM_ADDRS_MAX)
		f->left_out++;
	else
		f->a.addrs[f->a.n_addrs++] = addr;
}

static uint32_t list_interfaces(struct cc_interface *v)
{
	int n = cc_interfaces(v, INTERFACES_MAX);

	return n < 0 ? 0 : (uint32_t)n > INTERFACES_MAX ? INTERFACES_MAX : (uint32_t)n;
}

/* Writes an address, without the port if it is 0. */
static const char *say(const struct cc_addr *a, char buf[CC_ADDR_STR_SIZE])
{
	cc_addr_str(a, buf);
	if (a->port == 0)
		*strrchr(buf, ':') = '\0';
	return buf;
}

static void add_missing(struct found *f, const struct place *p)
{
	size_t len = strlen(f->missing);
	const char *comma = len ? ", " : "";
	char addr[CC_ADDR_STR_SIZE], *to = f->missing + len;

	if (p->kind == ADDR_SPEC_INTERFACE)
		(void)snprintf(to, sizeof f->missing - len, "%s%s", comma, p->name);
	else
		(void)snprintf(to, sizeof f->missing - len, "%s%s/%u", comma, say(&p->addr, addr),
			p->kind == ADDR_SPEC_NET     ? p->bits
			: p->addr.family == CC_INET4 ? 32u
						     : 128u);
}

/* Adds this host's addresses that match the address spec. */
static void add_own(
	struct found *f, const struct place *p, const struct cc_interface *own, uint32_t n)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!addr_spec_has(p, &own[i]))
			continue;
		add(f, own[i].addr);
		any = true;
	}
	if (!any)
		add_missing(f, p);
}

static void add_host(struct found *f, const struct net *net, const struct place *p)
{
	const struct cc_addr *v = NULL;
	uint32_t n = net_names_get(net->names, p, &v);

	for (uint32_t i = 0; i < n; i++)
		add(f, v[i]);
}

/* Adds the addresses of the option `advertise`. They may belong to other hosts, such as routers. */
static void add_advertised(
	struct found *f, const struct net *net, const struct cc_interface *own, uint32_t n)
{
	for (uint32_t k = 0; k < net->base->cfg.advertise.n; k++) {
		const struct place *p = &net->base->cfg.advertise.v[k];

		if (p->kind == ADDR_SPEC_ADDR)
			add(f, p->addr);
		else if (p->kind == ADDR_SPEC_NAME)
			add_host(f, net, p);
		else
			add_own(f, p, own, n);
	}
}

static uint16_t port_of(uint16_t advertised, uint16_t own)
{
	return advertised ? advertised : own;
}

static void find_out(const struct net *net, struct found *ret)
{
	static struct cc_interface own[INTERFACES_MAX];
	const struct agentd_config *c = &net->base->cfg;
	const struct addrs *p = c->advertise.n ? &c->advertise : &c->interfaces;
	uint32_t n = list_interfaces(own);
	struct net_stats s;

	*ret = (struct found){.a.advertised = p->n > 0};
	if (p == &c->advertise)
		add_advertised(ret, net, own, n);
	else if (p->n > 0)
		for (uint32_t k = 0; k < p->n; k++)
			add_own(ret, &p->v[k], own, n);
	else
		for (uint32_t i = 0; i < n; i++)
			add(ret, own[i].addr);
	net_get_stats(net, &s);
	ret->a.port_p2p = port_of(c->advertise_port_p2p, s.port_p2p);
	ret->a.port_shared_state = port_of(c->advertise_port_shared_state, s.port_shared_state);
	ret->a.port_benchmark = port_of(c->advertise_port_benchmark, s.port_benchmark);
}

static bool is_same(const struct wm_addresses *a, const struct wm_addresses *b)
{
	if (a->n_addrs != b->n_addrs || a->port_p2p != b->port_p2p ||
		a->port_shared_state != b->port_shared_state ||
		a->port_benchmark != b->port_benchmark)
		return false;
	for (uint32_t i = 0; i < a->n_addrs; i++)
		if (!cc_addr_eq(&a->addrs[i], &b->addrs[i]))
			return false;
	return true;
}

static void log_addresses(const struct found *f)
{
	char text[WM_TEXT_MAX] = "", addr[CC_ADDR_STR_SIZE];
	size_t len = 0;

	for (uint32_t i = 0; i < f->a.n_addrs && len < sizeof text - CC_ADDR_STR_SIZE; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? ", " : "",
			say(&f->a.addrs[i], addr));
	if (f->a.n_addrs == 0)
		cc_log(f->a.advertised ? CC_LOG_WARNING : CC_LOG_INFO,
			"this host has no address that it can advertise");
	else
		cc_log(CC_LOG_INFO, "advertised addresses: %s%s", text,
			len >= sizeof text - CC_ADDR_STR_SIZE ? ", ..." : "");
	if (f->missing[0])
		cc_log(CC_LOG_WARNING,
			"this host has no address in %s: if this is a mistake, correct the "
			"setting advertise or interfaces",
			f->missing);
	if (f->left_out > 0)
		cc_log(CC_LOG_WARNING,
			"%u more addresses of this host are not advertised because the limit is "
			"%u: choose addresses with interfaces or advertise",
			f->left_out, WM_ADDRS_MAX);
}

void net_addresses_refresh(struct net *net)
{
	struct agt_event ev = {.type = AGT_EV_ADDRESSES, .addresses = &net->addresses};
	struct found f;

	net->addresses_ns = cc_now_ns();
	net_names_look(net->names);
	find_out(net, &f);
	net->addresses_left_out = f.left_out;
	if (net->addresses_known && is_same(&f.a, &net->addresses))
		return;
	net->addresses_known = true;
	net->addresses = f.a;
	log_addresses(&f);
	if (net->base->core)
		ev_post(net->base, &ev);
}

void net_addresses_tick(struct net *net, uint64_t now)
{
	if ((net->runs || net->names) && now - net->addresses_ns >= REFRESH_NS)
		net_addresses_refresh(net);
}

bool net_address_is_lost(struct net_lost_address *last, const struct cc_addr *addr)
{
	struct cc_addr a = *addr;
	char text[CC_ADDR_STR_SIZE];

	a.port = 0;
	if (a.family == 0 || cc_addr_eq(&a, &last->addr))
		return a.family != 0 && last->gone;
	last->addr = a;
	last->gone = cc_addr_has_left(&a);
	if (last->gone)
		(void)snprintf(last->text, sizeof last->text,
			"this host has lost its address %s and connects again with another one",
			say(&a, text));
	return last->gone;
}

/* ---- addresses of other hosts ---- */

enum rank { RANK_CHOSEN, RANK_NEAR, RANK_REMOTE, RANK_OWN };

static enum rank rank_of(
	const struct net *net, const struct cc_addr *a, const struct cc_interface *own, uint32_t n)
{
	enum rank r = RANK_REMOTE;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t whole = own[i].addr.family == CC_INET4 ? 32 : 128;

		if (cc_addr_in_net(a, &own[i].addr, whole))
			return RANK_OWN;
		if (own[i].bits == 0 || !cc_addr_in_net(a, &own[i].addr, own[i].bits))
			continue;
		if (r == RANK_REMOTE)
			r = RANK_NEAR;
		for (uint32_t k = 0; k < net->base->cfg.interfaces.n; k++)
			if (addr_spec_has(&net->base->cfg.interfaces.v[k], &own[i]))
				r = RANK_CHOSEN;
	}
	return r;
}

void net_addresses_sort(const struct net *net, struct cc_addr *v, uint32_t n)
{
	static struct cc_interface own[INTERFACES_MAX];
	struct cc_addr sorted[WM_ADDRS_MAX];
	enum rank rank[WM_ADDRS_MAX];
	uint32_t n_own, k = 0;

	if (n < 2 || n > WM_ADDRS_MAX)
		return;
	n_own = list_interfaces(own);
	for (uint32_t i = 0; i < n; i++)
		rank[i] = rank_of(net, &v[i], own, n_own);
	for (int r = RANK_CHOSEN; r <= RANK_OWN; r++)
		for (uint32_t i = 0; i < n; i++)
			if (rank[i] == (enum rank)r)
				sorted[k++] = v[i];
	memcpy(v, sorted, n * sizeof *v);
}
