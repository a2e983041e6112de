/* SPDX-License-Identifier: MIT
 *
 * The agent's configuration, as options and files have said. Its defaults are in options.c.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "pcclagentd/base/addr_spec.h"
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
	bool gives_ports;        /* to another agent that wants them: this one is private */
	struct addrs advertise;  /* where this host is reached; none: its interfaces' addresses */
	struct addrs interfaces; /* those that data is to take; none: all */
	/* Ports that others are told, where they are not those that the agent listens on; or 0. */
	uint16_t advertise_port_shared_state, advertise_port_p2p, advertise_port_benchmark;
	uint64_t mem_total, mem_per_user; /* bytes of shared memory; 0: half of the RAM, or
					   * of what the cgroup has */
	uint64_t mem_own;   /* bytes of its own memory that users may cause, tables of shared state
			     * above all; 0: half of what the cgroup has */
	bool mem_of_cgroup; /* one of them follows from the cgroup's limit; agentd_new sets it */
	uint32_t sessions_per_user, comms_per_user;
	uint32_t connect_timeout_ms;     /* to reach a master */
	uint32_t master_addr_timeout_ms; /* one of the places where it may be */
	uint32_t master_lease_ms;        /* that a run outlives its master */
	uint32_t hash_type;              /* of shared state: enum wm_hash_type */
	uint32_t stopped_timeout_ms;     /* after which a stopped process counts as lost */
	uint32_t beat_timeout_ms; /* after which one that does not answer counts as stopped */
	struct agentd_masters masters;
	uint32_t idle_exit_ms; /* end when no session was there for this long; 0: never */
};

/* Limits on memory that were not set follow from that of this host, or of the cgroup. */
void agentd_config_limits(struct agentd_config *c);

#endif
