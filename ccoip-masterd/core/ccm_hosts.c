/* SPDX-License-Identifier: MIT
 *
 * The hosts in the bandwidth store. Each start of an agent has a new id, so the id alone would lose
 * what is known of a host. Therefore the name of a host and the address of its agent name it, too.
 */
#include <stdlib.h>
#include <string.h>

#include "ccoip-masterd/core/ccm_internal.h"

struct ccm_store_host *ccm_host_find(const struct ccm *m, const struct cc_id *agent)
{
	struct ccm_store_host *x;

	HASH_FIND(hh, m->store.hosts, agent, sizeof *agent, x);
	return x;
}

/* All bytes of a key count, including those between its members. */
static struct ccm_host_key make_key(const char *name, const struct cc_addr *from, uint16_t port)
{
	struct ccm_host_key ret;

	memset(&ret, 0, sizeof ret);
	ccm_copy(ret.name, sizeof ret.name, name);
	ret.addr.family = from->family;
	memcpy(ret.addr.ip, from->ip, sizeof ret.addr.ip);
	ret.addr.port = port;
	return ret;
}

void ccm_host_name(const struct ccm_agent *a, struct wm_host *ret)
{
	ccm_copy(ret->name, sizeof ret->name, a->hello.name);
	ret->addr = a->from;
	ret->addr.port = a->hello.port_p2p;
}

static struct ccm_store_host *find_place(const struct ccm *m, const struct ccm_host_key *key)
{
	struct ccm_store_host *x;

	HASH_FIND(hh_key, m->store.places, key, sizeof *key, x);
	return x;
}

static void leave_place(struct ccm *m, struct ccm_store_host *x)
{
	if (x->placed)
		HASH_DELETE(hh_key, m->store.places, x);
	x->placed = false;
}

void ccm_host_place(struct ccm *m, struct ccm_store_host *x, const char *name,
	const struct cc_addr *from, uint16_t port)
{
	struct ccm_host_key key = make_key(name, from, port);

	if (x->placed || !from->family || find_place(m, &key))
		return;
	memcpy(&x->key, &key, sizeof key);
	HASH_ADD(hh_key, m->store.places, key, sizeof x->key, x);
	x->placed = true;
}

static struct ccm_agent *connected(const struct ccm *m, const struct cc_id *agent)
{
	struct ccm_agent *a;

	HASH_FIND(hh_id, m->by_id, agent, sizeof *agent, a);
	return a;
}

/* Is this the host of the agent? */
static bool is_host_of(const struct wm_host *h, const struct ccm_agent *a)
{
	struct wm_host own;

	ccm_host_name(a, &own);
	return strcmp(own.name, h->name) == 0 && cc_addr_eq(&own.addr, &h->addr);
}

const struct cc_id *ccm_host_agent(
	const struct ccm *m, const struct cc_id *agent, const struct wm_host *h)
{
	const struct ccm_agent *a;

	if (!h->addr.family || connected(m, agent))
		return agent;
	for (a = m->by_id; a; a = a->hh_id.next)
		if (is_host_of(h, a))
			return &a->hello.agent;
	return agent;
}

struct ccm_store_host *ccm_host_get(struct ccm *m, const struct cc_id *agent)
{
	struct ccm_store_host *x = ccm_host_find(m, agent);

	if (x)
		return x;
	x = cc_must_zalloc(1, sizeof *x);
	x->agent = *agent;
	HASH_ADD(hh, m->store.hosts, agent, sizeof x->agent, x);
	if (connected(m, agent))
		ccm_host_continue(m, connected(m, agent));
	return x;
}

void ccm_host_release(struct ccm *m, struct ccm_store_host *x)
{
	if (x->n_rates > 0 || x->has_cap)
		return;
	leave_place(m, x);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): analyzer loses track of the list */
	HASH_DELETE(hh, m->store.hosts, x);
	free(x);
}

void ccm_host_continue(struct ccm *m, const struct ccm_agent *a)
{
	struct ccm_host_key key = make_key(a->hello.name, &a->from, a->hello.port_p2p);
	struct ccm_store_host *old = find_place(m, &key), *own = ccm_host_find(m, &a->hello.agent);

	if (old && (old == own || connected(m, &old->agent)))
		return;
	if (old && !own) {
		HASH_DELETE(hh, m->store.hosts, old);
		old->agent = a->hello.agent;
		HASH_ADD(hh, m->store.hosts, agent, sizeof old->agent, old);
		return;
	}
	if (old)
		leave_place(m, old); /* what is known of the new agent is newer */
	if (own)
		ccm_host_place(m, own, a->hello.name, &a->from, a->hello.port_p2p);
}
