/* SPDX-License-Identifier: MIT */
#include "pcclagentd/addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/io.h"
#include "pcclagentd/names.h"

#define INTERFACES_MAX 1024u
#define INTERFACE_SIZE 16u /* bytes of a name, with NUL */
#define REFRESH_NS     MS(3000)

/* ---- what the operator names ---- */

static bool parse_number(const char *text, unsigned max, unsigned *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v > max)
		return false;
	*ret = (unsigned)v;
	return true;
}

static bool parse_net(const char *text, const char *slash, struct place *ret)
{
	char addr[CC_ADDR_STR_SIZE];
	unsigned bits;

	if ((size_t)(slash - text) >= sizeof addr)
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (cc_addr_parse(addr, 0, &ret->addr) < 0 || ret->addr.port != 0 ||
		!parse_number(slash + 1, ret->addr.family == CC_INET4 ? 32u : 128u, &bits))
		return false;
	ret->kind = PLACE_NET;
	ret->bits = (uint8_t)bits;
	return true;
}

static const char *check_net(const struct cc_addr *a)
{
	return cc_addr_is_link_local(a) ? cc_addr_flaw(a) : NULL;
}

#define HOST_WORD_MAX 63u

static const char bad_port[] = "a port is from 1 to 65535";

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Its last word begins with a letter: eth0.100 is an interface, and 192.0.2.999 nothing at all. */
static bool is_host_name(const char *text)
{
	const char *dot = memrchr(text, '.', strcspn(text, ":"));

	return dot && dot[1] != '\0' && strchr(LETTERS, dot[1]);
}

static bool is_word(const char *text, size_t len)
{
	return len >= 1 && len <= HOST_WORD_MAX && text[0] != '-' && text[len - 1] != '-';
}

static const char *parse_host(const char *text, struct place *ret)
{
	size_t len = strspn(text, LETTERS "0123456789-.");
	unsigned port = 0;

	if (len == 0 || len >= sizeof ret->name)
		return "";
	if (text[len] != '\0' &&
		(text[len] != ':' || !parse_number(text + len + 1, UINT16_MAX, &port) || port == 0))
		return text[len] == ':' ? bad_port : "";
	ret->kind = PLACE_NAME;
	ret->addr.port = (uint16_t)port;
	memcpy(ret->name, text, len);
	ret->name[len] = '\0';
	for (const char *word = ret->name;; word += strcspn(word, ".") + 1) {
		size_t n = strcspn(word, ".");

		if (!is_word(word, n))
			return "between the dots of a host name are 1 to 63 letters, digits and "
			       "hyphens, which neither begin nor end with a hyphen";
		if (word[n] == '\0')
			return NULL;
	}
}

static const char *parse_name(const char *text, struct place *ret)
{
	size_t len = strlen(text);

	if (is_host_name(text))
		return parse_host(text, ret);
	if (len >= INTERFACE_SIZE || !*text || !strchr(LETTERS, *text) ||
		text[strcspn(text, "/: \t")] != '\0')
		return "";
	ret->kind = PLACE_INTERFACE;
	memcpy(ret->name, text, len + 1);
	return NULL;
}

static const char *parse(const char *text, struct place *ret)
{
	const char *slash = strchr(text, '/');
	struct cc_addr other;

	*ret = (struct place){.kind = PLACE_ADDR};
	if (slash)
		return parse_net(text, slash, ret) ? check_net(&ret->addr) : "";
	if (cc_addr_parse(text, 0, &ret->addr) < 0)
		return parse_name(text, ret);
	/* Without a port it has the one that it is given here. */
	if (cc_addr_parse(text, 1, &other) == 0 && other.port == 0)
		return bad_port;
	return cc_addr_flaw(&ret->addr);
}

bool place_parse(const char *text, struct place *ret, const char **ret_why)
{
	*ret_why = parse(text, ret);
	return !*ret_why;
}

bool place_has(const struct place *p, const struct cc_interface *i)
{
	struct cc_addr a = p->addr;

	if (p->kind == PLACE_NAME)
		return false;
	if (p->kind == PLACE_INTERFACE)
		return strcmp(p->name, i->name) == 0;
	a.port = 0;
	return cc_addr_in_net(&i->addr, &a,
		p->kind == PLACE_NET   ? p->bits
		: a.family == CC_INET4 ? 32
				       : 128);
}

/* ---- what there is ---- */

struct found {
	struct wm_addresses a;
	uint32_t left_out;
	char missing[256]; /* places in which this host has no address */
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

/* Without a port where there is none. */
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

	if (p->kind == PLACE_INTERFACE)
		(void)snprintf(to, sizeof f->missing - len, "%s%s", comma, p->name);
	else
		(void)snprintf(to, sizeof f->missing - len, "%s%s/%u", comma, say(&p->addr, addr),
			p->kind == PLACE_NET         ? p->bits
			: p->addr.family == CC_INET4 ? 32
						     : 128);
}

/* Own addresses in the place. */
static void add_own(
	struct found *f, const struct place *p, const struct cc_interface *own, uint32_t n)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!place_has(p, &own[i]))
			continue;
		add(f, own[i].addr);
		any = true;
	}
	if (!any)
		add_missing(f, p);
}

static void add_host(struct found *f, const struct agentd *d, const struct place *p)
{
	const struct cc_addr *v = NULL;
	uint32_t n = names_get(d->names, p, &v);

	for (uint32_t i = 0; i < n; i++)
		add(f, v[i]);
}

/* What is advertised need not be an address of this host's. */
static void add_advertised(
	struct found *f, const struct agentd *d, const struct cc_interface *own, uint32_t n)
{
	for (uint32_t k = 0; k < d->cfg.advertise.n; k++) {
		const struct place *p = &d->cfg.advertise.v[k];

		if (p->kind == PLACE_ADDR)
			add(f, p->addr);
		else if (p->kind == PLACE_NAME)
			add_host(f, d, p);
		else
			add_own(f, p, own, n);
	}
}

static uint16_t port_of(uint16_t advertised, uint16_t own)
{
	return advertised ? advertised : own;
}

static void find_out(const struct agentd *d, struct found *ret)
{
	static struct cc_interface own[INTERFACES_MAX];
	const struct agentd_config *c = &d->cfg;
	const struct places *p = c->advertise.n ? &c->advertise : &c->interfaces;
	uint32_t n = list_interfaces(own);
	struct agentd_stats s;

	*ret = (struct found){.a.advertised = p->n > 0};
	if (p == &c->advertise)
		add_advertised(ret, d, own, n);
	else if (p->n > 0)
		for (uint32_t k = 0; k < p->n; k++)
			add_own(ret, &p->v[k], own, n);
	else
		for (uint32_t i = 0; i < n; i++)
			add(ret, own[i].addr);
	ports_get(d, &s);
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
			"this host has no address that others could be told");
	else
		cc_log(CC_LOG_INFO, "addresses told to others: %s%s", text,
			len >= sizeof text - CC_ADDR_STR_SIZE ? ", ..." : "");
	if (f->missing[0])
		cc_log(CC_LOG_WARNING,
			"this host has no address in %s, which advertise or interfaces name: "
			"correct these if that is a mistake",
			f->missing);
	if (f->left_out > 0)
		cc_log(CC_LOG_WARNING,
			"%u more addresses of this host are told nobody, as the limit is %u: name "
			"those that count with interfaces or advertise",
			f->left_out, WM_ADDRS_MAX);
}

void addresses_refresh(struct agentd *d)
{
	struct agt_event ev = {.type = AGT_EV_ADDRESSES, .addresses = &d->addresses};
	struct found f;

	d->addresses_ns = cc_now_ns();
	names_look(d->names);
	find_out(d, &f);
	d->addresses_left_out = f.left_out;
	if (d->addresses_known && is_same(&f.a, &d->addresses))
		return;
	d->addresses_known = true;
	d->addresses = f.a;
	log_addresses(&f);
	if (d->core)
		agentd_feed(d, &ev);
}

void addresses_tick(struct agentd *d, uint64_t now)
{
	if ((d->runs || d->names) && now - d->addresses_ns >= REFRESH_NS)
		addresses_refresh(d);
}

bool address_is_gone(struct last_address *last, const struct cc_addr *addr)
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
			"this host has its address %s no longer, and begins anew with another one",
			say(&a, text));
	return last->gone;
}

/* ---- those of others ---- */

enum rank { RANK_CHOSEN, RANK_NEAR, RANK_FAR, RANK_OWN };

static enum rank rank_of(
	const struct agentd *d, const struct cc_addr *a, const struct cc_interface *own, uint32_t n)
{
	enum rank r = RANK_FAR;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t whole = own[i].addr.family == CC_INET4 ? 32 : 128;

		if (cc_addr_in_net(a, &own[i].addr, whole))
			return RANK_OWN;
		if (own[i].bits == 0 || !cc_addr_in_net(a, &own[i].addr, own[i].bits))
			continue;
		if (r == RANK_FAR)
			r = RANK_NEAR;
		for (uint32_t k = 0; k < d->cfg.interfaces.n; k++)
			if (place_has(&d->cfg.interfaces.v[k], &own[i]))
				r = RANK_CHOSEN;
	}
	return r;
}

void addresses_sort(const struct agentd *d, struct cc_addr *v, uint32_t n)
{
	static struct cc_interface own[INTERFACES_MAX];
	struct cc_addr sorted[WM_ADDRS_MAX];
	enum rank rank[WM_ADDRS_MAX];
	uint32_t n_own, k = 0;

	if (n < 2 || n > WM_ADDRS_MAX)
		return;
	n_own = list_interfaces(own);
	for (uint32_t i = 0; i < n; i++)
		rank[i] = rank_of(d, &v[i], own, n_own);
	for (int r = RANK_CHOSEN; r <= RANK_OWN; r++)
		for (uint32_t i = 0; i < n; i++)
			if (rank[i] == (enum rank)r)
				sorted[k++] = v[i];
	memcpy(v, sorted, n * sizeof *v);
}
