/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share:
 *
 *   net.c        the ports, services, and runs
 *   port.c       one port
 *   guest.c      connections until they have said a good hello
 *   in_link.c    inbound links
 *   link.c       outbound ones; opening.c, try.c until they are established
 *   probe.c      whether a link could be opened
 *   narrow.c     which segments pass to which agents
 *   addresses.c  where this host is reached, names.c host names for that
 */
#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

#include "common/cc_addr.h"
#include "common/cc_err.h"
#include "common/cc_id.h"
#include "common/cc_log.h"
#include "common/cc_loop.h"
#include "common/cc_seal.h"
#include "common/cc_sys.h"
#include "pcclagentd/base/base.h"
#include "pcclagentd/net/narrow.h"
#include "pcclagentd/net/net.h"
#include "pcclagentd/net/port.h"
#include "proto/wire_codes.h"
#include "proto/wire_master.h"

enum { NET_PORTS = 3, NET_SERVICES = WLK_BENCHMARK + 1 };

struct names;

struct net {
	struct base *base;
	struct port ports[NET_PORTS];
	const struct net_service *services[NET_SERVICES]; /* by id */
	struct net_guest *guests;
	uint32_t n_guests;
	struct names *names; /* NULL: none are advertised */
	struct wm_addresses addresses;
	uint32_t addresses_left_out; /* more than others can be told */
	bool addresses_known;
	uint64_t addresses_ns; /* when they were found out */
	struct net_run *runs;
	uint32_t next_link;
	uint64_t next_hello; /* numbers the hellos of links */
};

#define NET_RUN_KEYS 4u

struct net_run {
	struct net *net;
	uint32_t id;
	const struct net_run_ops *ops;
	void *arg;
	bool ready;
	struct cc_id run_id;
	struct eng *eng;
	struct cc_bounds bounds; /* as the last master has told them */
	struct cc_addr reached;  /* address at which the master was reached */
	/* The agent's keys by its connections to the masters of this run, the last one first: the
	 * others were told of the earlier ones, too. */
	struct cc_key keys[NET_RUN_KEYS];
	uint32_t n_keys;
	uint64_t committed;     /* round of the links in use */
	struct caller *callers; /* in_link.c: agents that opened links */
	struct net_in_link *in_links;
	uint32_t n_in_links;
	struct out_link *out_links;
	struct dead_link *dead_links;
	struct narrow *narrow;
	struct probe *probes;
	struct net_run *prev, *next;
};

/* What the engine has found out about a link; 0: not yet. */
struct link_health {
	uint64_t probed_ns;
	uint64_t heard_ns; /* the other host's system sent something */
	bool congested;    /* outbound: it does not take what is there to be sent */
};

/* A connection without its hello, one whose hello is judged, or one that was refused and lingers.
 */
struct net_guest {
	struct port *port;
	int fd;
	struct cc_watch *watch;
	struct cc_addr from;
	uint64_t deadline;
	bool lingering, bulk; /* bulk: it exchanges the bytes of a probe */
	uint32_t have, discarded;
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello hello; /* once it is proven, with the key by which it is */
	struct cc_key key;
	struct net_run *run;
	struct net_guest *prev, *next;
};

/* ---- guest.c ---- */

void net_guest_accept(void *port, int fd);
/* The other end need not wait to hear that no hello is answered here now. */
void net_guest_shortage(void *port, int fd, int error, const char *limit);
void net_guests_tick(struct net *n, uint64_t now);
void net_guests_free(struct net *n);

/* ---- in_link.c ---- */

extern const struct net_service net_p2p;
/* By its number; NULL: there is none. */
struct net_in_link *net_in_link_find(const struct net_run *r, uint32_t num);
struct net_in_link *net_in_link_of(const struct net_run *r, const struct cc_id *peer);
uint32_t net_in_link_num(const struct net_in_link *l);
struct link_health *net_in_link_health(struct net_in_link *l);
void net_in_link_broken(struct net_in_link *l, const struct eng_event *e);
void net_in_links_leave(struct net_run *r, struct net_lost_address *last);
void net_in_links_free(struct net_run *r);
/* Connections of all of them. */
uint32_t net_in_link_streams(const struct net_run *r);
/* Does a key of the run prove the hello? It is in *ret_key then. */
bool net_run_proves(const struct net_run *r, const struct wlk_hello *h,
	const uint8_t buf[WLK_HELLO_SIZE], struct cc_key *ret_key);

/* ---- link.c ---- */

/* A connection of a probe, with segments of a size in cc_tcp_sizes: net_probe_reached or
 * net_probe_failed follows, also before this returns. */
void net_link_probe(struct net_run *r, struct probe *p, const struct wm_endpoint *to,
	enum wlk_service service, uint32_t segments);
void net_links_leave(struct net_run *r, struct net_lost_address *last);
void net_links_tick(struct net_run *r, uint64_t now);
void net_links_free(struct net_run *r);
uint32_t net_link_count(const struct net_run *r);
/* Connections of those that are up. */
uint32_t net_link_streams(const struct net_run *r);

/* ---- probe.c ---- */

/* The other agent has answered the hello on fd, which is the probe's now. bulk: it exchanges bytes.
 * The probe may be gone when this returns. */
void net_probe_reached(struct probe *p, enum wlk_service service, int fd, bool bulk);
void net_probe_failed(struct probe *p, uint32_t code, const char *text);
/* Sends what nobody reads and the end of the stream, on a socket that has room. */
bool net_probe_send_bulk(int fd);
/* Why a host is not connected to which no segments get through. */
void net_probe_narrow_text(char *text, size_t size);
void net_probes_tick(struct net_run *r, uint64_t now);
/* After the links. */
void net_probes_free(struct net_run *r);

/* ---- addresses.c ---- */

void net_addresses_tick(struct net *n, uint64_t now);

#endif
