/* SPDX-License-Identifier: MIT
 *
 * The agent daemon as a library: main.c and the tests make one of these. Everything runs in the
 * thread that calls agentd_run; the engines' threads are inside.
 */
#ifndef AGENTD_H
#define AGENTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "pcclagentd/addresses.h"
#include "proto/wire_master.h"

#define AGENTD_PORT_BUMP 100u /* how far a taken port moves up */

#define AGENTD_MASTERS_MAX 64u

struct agentd_master { /* the master at `from` is, or will be, at `to` */
	struct cc_addr from, to;
};

struct agentd_masters {
	uint32_t n;
	struct agentd_master v[AGENTD_MASTERS_MAX];
};

struct agentd_config {
	char name[WM_NAME_MAX]; /* of this host, for logs and tables */
	int session_fd;         /* listening SOCK_SEQPACKET socket, owned by the agent */
	int admin_fd;           /* listening SOCK_STREAM socket, owned by the agent; -1: none */
	struct cc_addr bind;    /* address of the TCP ports; port is ignored */
	uint16_t port_shared_state, port_p2p, port_benchmark; /* 0: any free port */
	bool gives_ports;         /* to another agent that wants them: this one is private */
	struct places advertise;  /* where this host is reached; none: its interfaces' addresses */
	struct places interfaces; /* those that data is to take; none: all */
	/* Ports that others are told, where they are not those that the agent listens on; or 0. */
	uint16_t advertise_port_shared_state, advertise_port_p2p, advertise_port_benchmark;
	uint64_t mem_total, mem_per_user; /* bytes of shared memory; 0: half of the RAM, or
					   * of what the cgroup has */
	uint64_t mem_own;   /* bytes of its own memory that users may cause, tables of shared state
			     * above all; 0: half of what the cgroup has */
	bool mem_of_cgroup; /* one of them follows from the cgroup's limit; agentd_new sets it */
	uint32_t sessions_per_user, comms_per_user;
	uint32_t connect_timeout_ms; /* to reach a master */
	uint32_t place_timeout_ms;   /* one of the places where it may be */
	uint32_t master_grace_ms;    /* that a run outlives its master */
	uint32_t hash_type;          /* of shared state: enum wm_hash_type */
	uint32_t stopped_timeout_ms; /* after which a stopped process counts as lost */
	uint32_t beat_timeout_ms;    /* after which one that does not answer counts as stopped */
	struct agentd_masters masters;
	uint32_t idle_exit_ms; /* end when no session was there for this long; 0: never */
};

/* Everything but the sockets and the name gets its default. */
void agentd_config_init(struct agentd_config *c);

struct agentd;

/* Opens the TCP ports. NULL, with the reason logged; the descriptors in cfg are closed then. */
struct agentd *agentd_new(const struct agentd_config *cfg);
/* Runs until agentd_stop or the idle time is over. 0, or CC_ERR_* after a failure. */
int agentd_run(struct agentd *d);
/* Ends orderly: masters get what was sent to them, processes a goodbye, so that they come back by
 * the next agent; then agentd_run returns. Loop thread. */
void agentd_stop(struct agentd *d, const char *why);
void agentd_free(struct agentd *d);

/* These replace what the configuration said so far of where masters are. Loop thread. */
void agentd_set_masters(struct agentd *d, const struct agentd_masters *m);

/* Calls fn in the loop when the signal arrives. 0 or CC_ERR_*. */
int agentd_on_signal(struct agentd *d, int signo, void (*fn)(void *arg, int signo), void *arg);
/* Calls fn every interval_ms while the agent runs. 0 or CC_ERR_NOMEM. */
int agentd_every(struct agentd *d, uint32_t interval_ms, void (*fn)(void *arg), void *arg);

struct agentd_stats {
	uint32_t sessions, comms, runs, ops;
	uint32_t regions, results, transfers, syncs;
	uint32_t links_in, links_out, half_open;
	uint32_t streams; /* of these links: connections */
	uint64_t mem_used, mem_limit;
	uint16_t port_shared_state, port_p2p, port_benchmark;
};
void agentd_get_stats(const struct agentd *d, struct agentd_stats *ret);

#endif
