/* SPDX-License-Identifier: MIT
 *
 * The agent's network: its TCP ports and addresses, the links of each run in both directions, and
 * probes. One struct net for the agent, one struct net_run for each run. Loop thread.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_bounds.h"
#include "pcclagentd/core/agt.h"
#include "pcclagentd/engine/engine.h"
#include "proto/wire_link.h"

struct base;

struct net;
struct net_run;
struct net_in_link; /* streams that another agent opened to this one */
struct net_guest;   /* a connection whose hello is proven, and not answered yet */

/* Opens the three ports. NULL, with the reason logged. */
struct net *net_new(struct base *b);
/* The next agent can have the ports: nobody connects here any more. */
void net_stop(struct net *n);
void net_free(struct net *n); /* all runs are gone; NULL is fine */
void net_tick(struct net *n, uint64_t now);

struct net_stats {
	uint32_t half_open;
	uint16_t port_shared_state, port_p2p, port_benchmark;
	uint32_t addresses, addresses_left_out; /* told to others; more than they can be told */
};
void net_get_stats(const struct net *n, struct net_stats *ret);

/* ---- services ---- */

/*
 * What is offered on a port. accept: the guest is of a run whose net_run_new had this arg, and is
 * to be refused or welcomed, by one of the functions below.
 */
struct net_service {
	enum wlk_service id;
	void (*accept)(void *arg, struct net_guest *g);
};
/* service stays the caller's, as long as the net. */
void net_serve(struct net *n, const struct net_service *service);

const struct wlk_hello *net_guest_hello(const struct net_guest *g);
/* The guest is gone afterwards. */
void net_guest_refuse(struct net_guest *g, enum wlk_code code, const char *text);
/* Its socket, which is the caller's then, after the answer; -1: it broke. The guest is gone. */
int net_guest_welcome(struct net_guest *g, uint64_t features, const struct cc_id *nonce);

/* ---- addresses ---- */

const struct wm_addresses *net_addresses(const struct net *n); /* as the core knows them */
/* Finds them out anew; the core is told if there is something new. */
void net_addresses_refresh(struct net *n);
/* Sorts addresses of another host: first those in networks that this host has, of interfaces that
 * were chosen before others, then all others; last those that this host has itself, which are
 * seldom meant. Otherwise the order stays. */
void net_addresses_sort(const struct net *n, struct cc_addr *v, uint32_t count);
/* This host has lost the address, and has others: what uses it should begin anew with one of these.
 * Asked for the same one time and again it looks but once; zero `last` before. text: says so. */
struct net_lost_address {
	struct cc_addr addr;
	bool gone;
	char text[128];
};
bool net_address_is_lost(struct net_lost_address *last, const struct cc_addr *addr);

/* ---- runs ---- */

struct net_run_ops {
	/* Does an operation under way use the outbound link with this number? */
	bool (*uses_link)(void *arg, uint32_t link);
	/* Round trip to the master, us; 0: not known. */
	uint32_t (*master_trip_us)(void *arg);
	/* An inbound link has its stream for small operands, which is the callee's from now on,
	 * also on failure. NULL: no memory. */
	void *(*eager_open)(void *arg, struct net_in_link *l, const struct cc_id *peer, int fd);
	void (*eager_close)(void *stream); /* the link is gone */
};

/* arg: of the ops, and of services. */
struct net_run *net_run_new(struct net *n, uint32_t id, const struct net_run_ops *ops, void *arg);
void net_run_free(struct net_run *r);
void net_run_tick(struct net_run *r, uint64_t now);
/* Agents may connect to it from now on. Its engine must outlive it. */
void net_run_ready(struct net_run *r, const struct cc_id *run_id, struct eng *eng);
void net_run_close(struct net_run *r); /* no more */
void net_run_set_bounds(struct net_run *r, const struct cc_bounds *b);
void net_run_set_reached(struct net_run *r, const struct cc_addr *master);
/* Hellos of agents that this master sends are proven by the key; a few earlier ones stay good. */
void net_run_add_key(struct net_run *r, const struct cc_key *key);
/* The links of this round are in use: hellos of earlier ones are old. */
void net_run_committed(struct net_run *r, uint64_t round);
/* Links with an address that this host has lost are broken. */
void net_run_leave_lost(struct net_run *r, struct net_lost_address *last);
bool net_run_has_links(const struct net_run *r);
bool net_run_probes(const struct net_run *r); /* are any under way? */

struct net_run_stats {
	uint32_t links_in, links_out, streams;
};
void net_run_get_stats(const struct net_run *r, struct net_run_stats *ret);

/* ---- links ---- */

void net_link_open(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams);
void net_link_close(struct net_run *r, const struct cc_id *peer);
/* The number of an established link, 0 if there is none. */
uint32_t net_link_number(const struct net_run *r, const struct cc_id *peer);
/* What the engine says of a link's streams: broken, or when the other host was heard. */
void net_link_broken(struct net_run *r, const struct eng_event *e);
void net_link_heard(struct net_run *r, const struct eng_event *e);
/* To the stream for small operands of the link with this number, if it is there. If it takes no
 * more, the link is broken, but not at once: nothing is told to the core meanwhile. The payload is
 * read until done is called, in any case. */
void net_link_send(struct net_run *r, uint32_t num, const uint8_t hdr[WLK_DATA_SIZE],
	const uint8_t *payload, size_t len,
	void (*done)(const void *payload, size_t len, void *arg), void *arg);
/* An operation has ended: the engine may forget links that nothing uses now. */
void net_links_sweep(struct net_run *r);
/* The stream for small operands has ended; text: why. ended: the other agent has closed it. */
void net_in_link_down(struct net_in_link *l, bool ended, const char *text);

/* Another agent, by both links with it where there are two. */
struct net_neighbour {
	const char *host;  /* its name, "": not known */
	uint64_t heard_ns; /* when its system sent something; 0: not known */
	bool congested;    /* it takes no more data */
};
struct net_neighbour net_neighbour(const struct net_run *r, const struct cc_id *peer);
/* Has the engine find out about its links: net_link_heard follows. Once for each `now`. */
void net_neighbour_probe(struct net_run *r, const struct cc_id *peer, uint64_t now);
/* The place in cc_tcp_sizes of the largest segments that pass; CC_TCP_SIZES: none. */
uint32_t net_segments(const struct net_run *r, const struct cc_id *agent);

/* Can a link be opened? Answered by AGT_EV_PROBED. */
void net_probe(struct net_run *r, const struct wm_probe *m);

#endif
