/* SPDX-License-Identifier: MIT
 *
 * Structures and functions that the files of this folder share:
 *
 *   net.c          the ports, services, and runs
 *   port.c         a port
 *   guest.c        connections that have not yet sent a proven hello
 *   in_link.c      inbound links; refuses repeated hellos
 *   link.c         outbound links that are established
 *   opening.c      outbound links that are being opened
 *   try.c          a stream of an outbound link that is being opened
 *   probe.c        probes: could a link be opened?
 *   measure_out.c  measurements: sends to other agents
 *   measure_in.c   measurements: receives from other agents
 *   estimate.c     the rate that follows from the reports of a receiver
 *   narrow.c       the segment sizes that pass to each agent
 *   addresses.c    addresses of this host, to be advertised
 *   names.c        host names that are advertised
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
struct pair; /* measure_out.c */

struct net {
	struct base *base;
	struct port ports[NET_PORTS];
	const struct net_service *services[NET_SERVICES]; /* by id */
	struct net_guest *guests;
	uint32_t n_guests;
	struct names *names; /* NULL: no host names are advertised */
	struct wm_addresses addresses;
	uint32_t addresses_left_out; /* addresses above the limit, which are not advertised */
	bool addresses_known;
	uint64_t addresses_ns; /* when the addresses were last determined */
	struct net_run *runs;
	uint32_t next_link;
	uint64_t next_hello; /* the number of the last hello for a link */
	/* measure_in.c: where the kernel could write bytes that are discarded; it does not. */
	void *discarded;
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
	struct cc_bounds bounds; /* as sent by the last master */
	struct cc_addr reached;  /* address at which the master was reached */
	/* The agent's keys from its connections to masters of this run, the latest key first. Other
	 * agents may still use earlier keys. */
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
	struct measure *measure; /* measure_out.c; NULL: none is in progress */
	struct intake *intake;   /* measure_in.c; NULL before the first measurement */
	struct net_run *prev, *next;
};

/* The state of a link, from the engine; 0: unknown. */
struct link_health {
	uint64_t probed_ns; /* when the engine was last asked */
	uint64_t heard_ns;  /* when the other host's kernel last sent something */
	bool congested;     /* outbound: the other host does not take the data */
};

/* A connection that has not sent its hello, whose hello is being checked, or that was refused and
 * waits until the other agent has read the answer. */
struct net_guest {
	struct port *port;
	int fd;
	struct cc_watch *watch;
	struct cc_addr from;
	uint64_t deadline;
	/* `lingering`: it was refused. `bulk`: it exchanges the bytes of a probe. */
	bool lingering, bulk;
	uint32_t have, discarded; /* bytes of the hello; bytes received after it */
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello hello; /* valid when `buf` is complete */
	struct cc_key key;      /* the key that proves the hello, if `run` is set */
	struct net_run *run;
	struct net_guest *prev, *next;
};

/* ---- guest.c ---- */

void net_guest_accept(void *arg, int fd);
/* The agent lacks a resource to accept the connection: refuses it at once, before its hello. */
void net_guest_shortage(void *arg, int fd, int error, const char *limit);
void net_guests_tick(struct net *n, uint64_t now);
void net_guests_free(struct net *n);

/* ---- in_link.c ---- */

extern const struct net_service net_p2p;
/* Returns the inbound link with this number, or NULL. */
struct net_in_link *net_in_link_find(const struct net_run *r, uint32_t num);
struct net_in_link *net_in_link_of(const struct net_run *r, const struct cc_id *peer);
uint32_t net_in_link_num(const struct net_in_link *l);
struct link_health *net_in_link_health(struct net_in_link *l);
void net_in_link_broken(struct net_in_link *l, const struct eng_event *e);
void net_in_links_leave(struct net_run *r, struct net_lost_address *last);
void net_in_links_free(struct net_run *r);
/* Returns the number of streams of all inbound links. */
uint32_t net_in_link_streams(const struct net_run *r);
/* Does a key of the run prove the hello? If so, *ret_key is the key derived from it. */
bool net_run_proves(const struct net_run *r, const struct wlk_hello *h,
	const uint8_t buf[WLK_HELLO_SIZE], struct cc_key *ret_key);

/* ---- link.c ---- */

/* Opens the connection of a probe. `segments`: the size of its segments, an index of cc_tcp_sizes.
 * net_probe_reached or net_probe_failed follows, perhaps before this returns. */
void net_link_probe(struct net_run *r, struct probe *p, const struct wm_endpoint *to,
	enum wlk_service service, uint32_t segments);
void net_links_leave(struct net_run *r, struct net_lost_address *last);
void net_links_tick(struct net_run *r, uint64_t now);
void net_links_free(struct net_run *r);
uint32_t net_link_count(const struct net_run *r);
/* Returns the number of streams of all established outbound links. */
uint32_t net_link_streams(const struct net_run *r);

/* ---- probe.c ---- */

/* The other agent has answered the hello on `fd`, which the probe now owns. `bulk`: the other agent
 * can exchange the bytes of a probe. The probe may be freed when this returns. */
void net_probe_reached(struct probe *p, enum wlk_service service, int fd, bool bulk);
void net_probe_failed(struct probe *p, uint32_t code, const char *text);
/* Probes the path of a link, then opens the link with this number of streams. If the probe fails,
 * AGT_EV_LINK_FAILED follows. */
void net_probe_for_link(struct net_run *r, const struct wm_endpoint *to, uint32_t n_streams);
/* Ends the probe for a link to this agent, if there is one. The link is not opened. */
void net_probe_cancel(struct net_run *r, const struct cc_id *peer);
/* Sends the bytes of a probe and the end of the stream. */
bool net_probe_send_bulk(int fd);
/* Writes why no link to a host is opened: segments of no size pass. */
void net_probe_narrow_text(char *text, size_t size);
void net_probes_tick(struct net_run *r, uint64_t now);
/* To be called after net_links_free. */
void net_probes_free(struct net_run *r);

/* ---- opening.c ---- */

/* Opens the connections of a pair, as those of a link. net_pair_connected or net_pair_failed
 * follows, perhaps before this returns. */
void net_link_for_pair(
	struct net_run *r, struct pair *p, const struct wm_endpoint *to, uint32_t n_streams);

/* ---- measure_out.c ---- */

/* The connections are open: the pair owns the sockets, one for each stream. */
void net_pair_connected(struct pair *p, const int *fds);
void net_pair_failed(struct pair *p, uint32_t code, const char *text);
/* Begins to measure the rates to the agents of `to`. There must be no measurement. */
void net_measure_out(struct net_run *r, const struct wm_measure *order);
/* Ends the measurement without an event, if there is one. `number`: only if it has this number; 0:
 * any. */
void net_measure_out_stop(struct net_run *r, uint64_t number);
/* Return the number of open connections. */
uint32_t net_measure_out_streams(const struct net_run *r);
uint32_t net_measure_in_streams(const struct net_run *r);

/* ---- measure_in.c ---- */

extern const struct net_service net_benchmark;
/* Receives only from the agents of `from` in this measurement. */
void net_measure_in(struct net_run *r, const struct wm_measure *m);
/* Ends the measurement. `number`: only if it has this number; 0: any. */
void net_measure_in_stop(struct net_run *r, uint64_t number);
/* Ends the measurement with this number, and asks the agents of `from` to end it. */
void net_measure_in_busy(struct net_run *r, uint64_t number);
/* The agent has another key, so another connection to a master, which counts measurements anew. */
void net_measure_in_reset(struct net_run *r);
void net_measure_in_free(struct net_run *r);

/* ---- addresses.c ---- */

void net_addresses_tick(struct net *n, uint64_t now);

#endif
