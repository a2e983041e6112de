/* SPDX-License-Identifier: MIT
 *
 * Numbers of the whole agent.
 */
#ifndef STATS_H
#define STATS_H

#include <stdint.h>

struct agentd_stats {
	uint32_t sessions, comms, runs, ops;
	uint32_t regions, results, transfers, syncs;
	uint32_t links_in, links_out, half_open;
	uint32_t streams;   /* TCP connections of these links */
	uint32_t measuring; /* TCP connections of measurements */
	uint64_t mem_used, mem_limit;
	uint16_t port_shared_state, port_p2p, port_benchmark;
	/* The numbers of addresses that are sent to other agents, and of those that do not fit into
	 * the message. */
	uint32_t addresses, addresses_left_out;
};

#endif
