/* SPDX-License-Identifier: MIT
 *
 * Figures of the whole agent.
 */
#ifndef STATS_H
#define STATS_H

#include <stdint.h>

struct agentd_stats {
	uint32_t sessions, comms, runs, ops;
	uint32_t regions, results, transfers, syncs;
	uint32_t links_in, links_out, half_open;
	uint32_t streams; /* of these links: connections */
	uint64_t mem_used, mem_limit;
	uint16_t port_shared_state, port_p2p, port_benchmark;
	uint32_t addresses, addresses_left_out; /* told to others; more than they can be told */
};

#endif
