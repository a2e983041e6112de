/* SPDX-License-Identifier: MIT
 *
 * The agent's network: its TCP ports and addresses, the links of each run in both directions,
 * probes, and measurements. The agent has one struct net, and one struct net_run for each run. Used
 * by the loop thread.
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
struct net_in_link; /* a link that another agent has opened to this one */
struct net_guest;   /* a connection whose hello is proven, but not answered yet */

/* Opens the three ports. Logs an error and returns NULL if that fails. */
struct net *net_new(struct base *b);
/* Closes the ports, so that the next agent can have them. */
void net_stop(struct net *n);
void net_free(struct net *n); /* to be called after all runs are freed; accepts NULL */
void net_tick(struct net *n, uint64_t now);

struct net_stats {
	uint32_t half_open;
	uint16_t port_shared_state, port_p2p, port_benchmark;
	/* addresses that are advertised; those above the limit */
	uint32_t addresses, addresses_left_out;
};
void net_get_stats(const struct net *n, struct net_stats *ret);

/* ---- services ---- */

/*
 * A service that is offered on a port. `accept` gets a guest that belongs to a run, and refuses or
 * welcomes it by one of the functions below. `arg`: as passed to net_run_new for this run.
 */
struct net_service {
	enum wlk_service id;
	void (*accept)(void *arg, struct net_guest *g);
};
/* Offers a service. `service` must stay valid as long as `n`. */
void net_serve(struct net *n, const struct net_service *service);

const struct wlk_hello *net_guest_hello(const struct net_guest *g);
/* Refuses the guest. `g` must not be used after this. */
void net_guest_refuse(struct net_guest *g, enum wlk_code code, const char *text);
/* Welcomes the guest and returns its socket, which the caller then owns, or -1 if the connection
 * broke. `g` must not be used after this. */
int net_guest_welcome(struct net_guest *g, uint64_t features, const struct cc_id *nonce);

/* ---- addresses ---- */

/* Returns the advertised addresses and ports, as the core knows them. */
const struct wm_addresses *net_addresses(const struct net *n);
/* Determines the addresses again, and sends an event to the core if they have changed. */
void net_addresses_refresh(struct net *n);
/* Sorts addresses of another host by their chance of success: addresses in networks of chosen
 * interfaces of this host, addresses in other networks of this host, all others, and finally
 * addresses of this host itself. Addresses of one kind keep their order. */
void net_addresses_sort(const struct net *net, struct cc_addr *v, uint32_t n);
/* Has this host lost the address, while it has other addresses? Then everything that uses the lost
 * address should start again with another address. `last` remembers the last answer, so that many
 * calls for the same address check it only once. It is zero at first. */
struct net_lost_address {
	struct cc_addr addr;
	bool gone;
	char text[128]; /* if `gone`: a sentence that names the lost address */
};
bool net_address_is_lost(struct net_lost_address *last, const struct cc_addr *addr);

/* ---- runs ---- */

struct net_run_ops {
	/* Does an operation in progress use the outbound link with this number? */
	bool (*uses_link)(void *arg, uint32_t link);
	/* Returns the round trip to the master in us; 0: unknown. */
	uint32_t (*master_trip_us)(void *arg);
	/* Takes over the stream of an inbound link for the eager path. The callee owns `fd` from
	 * now on, also if it fails. Returns NULL if there is no memory. */
	void *(*eager_open)(void *arg, struct net_in_link *l, const struct cc_id *peer, int fd);
	void (*eager_close)(void *stream); /* the link has ended */
};

/* `arg`: passed to the functions of `ops`, and to net_service.accept. */
struct net_run *net_run_new(struct net *n, uint32_t id, const struct net_run_ops *ops, void *arg);
void net_run_free(struct net_run *r);
void net_run_tick(struct net_run *r, uint64_t now);
/* Lets agents connect to the run from now on. The engine must outlive the run. */
void net_run_ready(struct net_run *r, const struct cc_id *run_id, struct eng *eng);
/* Refuses agents that connect to the run from now on. */
void net_run_close(struct net_run *r);
void net_run_set_bounds(struct net_run *r, const struct cc_bounds *b);
void net_run_set_reached(struct net_run *r, const struct cc_addr *master);
/* Adds a key that proves the hellos of agents that the master has told to connect here. Keeps the
 * last few keys. */
void net_run_add_key(struct net_run *r, const struct cc_key *key);
/* The links of this round are in use: hellos of earlier rounds are refused from now on. */
void net_run_committed(struct net_run *r, uint64_t round);
/* Breaks links whose local address this host has lost. */
void net_run_leave_lost(struct net_run *r, struct net_lost_address *last);
bool net_run_has_links(const struct net_run *r);
/* Are probes or measurements in progress? */
bool net_run_is_probing(const struct net_run *r);

struct net_run_stats {
	uint32_t links_in, links_out, streams;
	uint32_t measuring; /* connections of measurements, in both directions */
};
void net_run_get_stats(const struct net_run *r, struct net_run_stats *ret);

/* ---- links ---- */

/* Opens a link, which replaces an older link to the same agent. AGT_EV_LINK_UP or
 * AGT_EV_LINK_FAILED follows. `probe`: the path is probed before. */
void net_link_open(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams, bool probe);
void net_link_close(struct net_run *r, const struct cc_id *peer);
/* Returns the number of the established link to the peer, or 0. */
uint32_t net_link_number(const struct net_run *r, const struct cc_id *peer);
/* Handle events of the engine about a link. net_link_broken: the link has broken; net_link_heard:
 * the time of the other host's last sign of life; net_link_rate: what the link has carried. */
void net_link_broken(struct net_run *r, const struct eng_event *e);
void net_link_heard(struct net_run *r, const struct eng_event *e);
void net_link_rate(struct net_run *r, const struct eng_event *e);
/* Sends an operand of the eager path on the link with this number, if it exists. If the stream
 * takes no more data, the link is broken by the next tick, not during this call. `payload` must
 * stay valid until `done` is called, and `done` is always called. */
void net_link_send(struct net_run *r, uint32_t num, const uint8_t hdr[WLK_DATA_SIZE],
	const uint8_t *payload, size_t len,
	void (*done)(const void *payload, size_t len, void *arg), void *arg);
/* An operation has ended: closes old links that no operation uses any longer. */
void net_links_sweep(struct net_run *r);
/* The link's stream for the eager path has ended: ends the link. `text`: the reason. `ended`: the
 * other agent has closed the stream. */
void net_in_link_down(struct net_in_link *l, bool ended, const char *text);

/* The state of another agent, from the links with it in both directions. */
struct net_neighbour {
	const char *host;  /* name of its host; "": unknown */
	uint64_t heard_ns; /* when its kernel last sent something; 0: unknown */
	bool congested;    /* it takes no more data */
};
struct net_neighbour net_neighbour(const struct net_run *r, const struct cc_id *peer);
/* Requests the state of both links from the engine: net_link_heard follows. At most one request for
 * each value of `now`. */
void net_neighbour_probe(struct net_run *r, const struct cc_id *peer, uint64_t now);
/* Returns the largest segment size that passes to `agent`, as an index of cc_tcp_sizes, or
 * CC_TCP_SIZES if segments of no size pass. */
uint32_t net_segments(const struct net_run *r, const struct cc_id *agent);

/* Probes whether a link could be opened. AGT_EV_PROBED follows. */
void net_probe(struct net_run *r, const struct wm_probe *m);

/* ---- measurements ---- */

/* Measures the rates to the agents of m->to, and lets those of m->from measure the rates to this
 * agent. Replaces the measurement before. If there is a `to`, AGT_EV_MEASURED follows after m->ms
 * plus the time for new connections at the latest. */
void net_measure(struct net_run *r, const struct wm_measure *m);
/* Ends the measurement with this number. No event follows. */
void net_measure_stop(struct net_run *r, uint64_t number);
/* The same, and tells the agents of `from` that they must measure later. */
void net_measure_busy(struct net_run *r, uint64_t number);

#endif
