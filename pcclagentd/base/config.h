/* SPDX-License-Identifier: MIT
 *
 * The agent's configuration, from options and files. options.c has the defaults.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cc_addr.h"
#include "pcclagentd/base/addr_spec.h"
#include "proto/wire_master.h"

#define AGENTD_PORT_BUMP 100u /* if a port is in use, up to this many higher ports are tried */

#define AGENTD_MASTERS_MAX 64u

struct agentd_master { /* the master with address `from` is at `to`, or will be */
	struct cc_addr from, to;
};

struct agentd_masters {
	uint32_t n;
	struct agentd_master v[AGENTD_MASTERS_MAX];
};

struct agentd_config {
	char name[WM_NAME_MAX]; /* the name of this host, for logs and tables */
	int session_fd;         /* listening SOCK_SEQPACKET socket, owned by the agent */
	int admin_fd;           /* listening SOCK_STREAM socket, owned by the agent; -1: none */
	struct cc_addr bind;    /* address of the TCP ports; port is ignored */
	uint16_t port_shared_state, port_p2p, port_benchmark; /* 0: any free port */
	/* This agent is private, so it gives its ports to any other agent that wants them. */
	bool gives_ports;
	/* The addresses at which other hosts reach this host; none: the addresses of its
	 * interfaces. */
	struct addrs advertise;
	struct addrs interfaces; /* the interfaces that data uses; none: all */
	/* The ports to which other hosts connect, if these differ from the ports on which the agent
	 * listens; otherwise 0. */
	uint16_t advertise_port_shared_state, advertise_port_p2p, advertise_port_benchmark;
	/* Bytes of shared memory; 0: half of the RAM, or half of the cgroup's limit. */
	uint64_t mem_total, mem_per_user;
	/* Bytes of memory that the agent itself may take for users, mostly for tables of shared
	 * state; 0: half of the cgroup's limit. */
	uint64_t mem_own;
	/* mem_total or mem_per_user was set from the cgroup's limit; agentd_new sets this flag */
	bool mem_of_cgroup;
	uint32_t sessions_per_user, comms_per_user;
	uint32_t connect_timeout_ms;     /* time to reach a master */
	uint32_t master_addr_timeout_ms; /* time to reach one address of a master */
	uint32_t master_lease_ms;        /* how long a run is kept without a master */
	uint32_t hash_type;              /* enum wm_hash_type, for shared state */
	uint32_t stopped_timeout_ms;     /* a process that is stopped for longer counts as lost */
	uint32_t beat_timeout_ms; /* a process that does not answer for longer counts as stopped */
	struct agentd_masters masters;
	uint32_t idle_exit_ms; /* the agent ends if it has had no session for this long; 0: never */
};

/* Sets the limits on memory that are 0, from the memory of this host or of the cgroup. */
void agentd_config_limits(struct agentd_config *c);

#endif
