/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/net.h"

#include <stdlib.h>
#include <string.h>

#include "pcclagentd/net/names.h"
#include "pcclagentd/net/net_internal.h"

enum { SHARED_STATE, P2P, BENCHMARK };

static int open_ports(struct net *n)
{
	const struct agentd_config *c = &n->base->cfg;
	const struct {
		enum wlk_service service;
		uint16_t wanted;
	} v[NET_PORTS] = {[SHARED_STATE] = {WLK_SHARED_STATE, c->port_shared_state},
		[P2P] = {WLK_P2P, c->port_p2p},
		[BENCHMARK] = {WLK_BENCHMARK, c->port_benchmark}};

	for (int i = 0; i < NET_PORTS; i++) {
		int err = net_port_open(&n->ports[i], n, v[i].service, v[i].wanted,
			net_guest_accept, net_guest_shortage);

		if (err < 0)
			return err;
	}
	cc_log(CC_LOG_INFO, "ports: p2p %u, shared state %u, benchmark %u", n->ports[P2P].number,
		n->ports[SHARED_STATE].number, n->ports[BENCHMARK].number);
	return 0;
}

struct net *net_new(struct base *b)
{
	struct net *n = calloc(1, sizeof *n);

	if (!n)
		rep_out_of_memory("the agent");
	n->base = b;
	net_serve(n, &net_p2p);
	net_serve(n, &net_benchmark);
	if (open_ports(n) < 0) {
		net_free(n);
		return NULL;
	}
	n->names = net_names_new(&b->cfg.advertise);
	return n;
}

void net_stop(struct net *n)
{
	for (int i = 0; i < NET_PORTS; i++)
		net_port_close(&n->ports[i]);
}

void net_free(struct net *n)
{
	if (!n)
		return;
	net_guests_free(n);
	net_stop(n);
	net_names_free(n->names);
	free(n->discarded);
	free(n);
}

void net_tick(struct net *n, uint64_t now)
{
	net_guests_tick(n, now);
	net_addresses_tick(n, now);
}

void net_get_stats(const struct net *n, struct net_stats *ret)
{
	*ret = (struct net_stats){.half_open = n->n_guests,
		.port_shared_state = n->ports[SHARED_STATE].number,
		.port_p2p = n->ports[P2P].number,
		.port_benchmark = n->ports[BENCHMARK].number,
		.addresses = n->addresses.n_addrs,
		.addresses_left_out = n->addresses_left_out};
}

void net_serve(struct net *n, const struct net_service *service)
{
	n->services[service->id] = service;
}

const struct wm_addresses *net_addresses(const struct net *n)
{
	return &n->addresses;
}

/* ---- measurements ---- */

void net_measure(struct net_run *r, const struct wm_measure *m)
{
	net_measure_out_stop(r, 0);
	net_measure_in(r, m);
	if (m->n_to > 0)
		net_measure_out(r, m);
}

void net_measure_stop(struct net_run *r, uint64_t number)
{
	net_measure_out_stop(r, number);
	net_measure_in_stop(r, number);
}

void net_measure_busy(struct net_run *r, uint64_t number)
{
	net_measure_out_stop(r, number);
	net_measure_in_busy(r, number);
}

/* ---- runs ---- */

struct net_run *net_run_new(struct net *n, uint32_t id, const struct net_run_ops *ops, void *arg)
{
	struct net_run *r = calloc(1, sizeof *r);

	if (!r)
		rep_out_of_memory("runs");
	*r = (struct net_run){.net = n, .id = id, .ops = ops, .arg = arg};
	cc_bounds_complete(&r->bounds);
	DL_APPEND(n->runs, r);
	return r;
}

void net_run_free(struct net_run *r)
{
	DL_DELETE(r->net->runs, r);
	net_measure_out_stop(r, 0);
	net_links_free(r);
	net_probes_free(r);
	net_measure_in_free(r);
	net_in_links_free(r);
	net_links_sweep(r);
	free(r);
}

void net_run_tick(struct net_run *r, uint64_t now)
{
	net_links_tick(r, now);
	net_probes_tick(r, now);
}

void net_run_ready(struct net_run *r, const struct cc_id *run_id, struct eng *eng)
{
	r->run_id = *run_id;
	r->eng = eng;
	r->ready = eng != NULL;
}

void net_run_close(struct net_run *r)
{
	r->ready = false;
	net_measure_out_stop(r, 0);
	net_measure_in_stop(r, 0);
}

void net_run_set_bounds(struct net_run *r, const struct cc_bounds *b)
{
	r->bounds = *b;
}

void net_run_set_reached(struct net_run *r, const struct cc_addr *master)
{
	r->reached = *master;
}

void net_run_add_key(struct net_run *r, const struct cc_key *key)
{
	memmove(r->keys + 1, r->keys, (NET_RUN_KEYS - 1) * sizeof r->keys[0]);
	r->keys[0] = *key;
	if (r->n_keys < NET_RUN_KEYS)
		r->n_keys++;
	net_measure_in_reset(r);
}

void net_run_committed(struct net_run *r, uint64_t round)
{
	r->committed = round;
}

void net_run_leave_lost(struct net_run *r, struct net_lost_address *last)
{
	net_links_leave(r, last);
	net_in_links_leave(r, last);
}

bool net_run_has_links(const struct net_run *r)
{
	return r->out_links || r->in_links;
}

bool net_run_is_probing(const struct net_run *r)
{
	return r->probes || r->measure;
}

void net_run_get_stats(const struct net_run *r, struct net_run_stats *ret)
{
	*ret = (struct net_run_stats){.links_in = r->n_in_links,
		.links_out = net_link_count(r),
		.streams = net_link_streams(r) + net_in_link_streams(r),
		.measuring = net_measure_out_streams(r) + net_measure_in_streams(r)};
}
