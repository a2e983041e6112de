/* SPDX-License-Identifier: MIT
 *
 * The routes of an all-reduce: for each algorithm, which host sends which chunk to which host.
 * Hosts are named by their position in the ring of their group. Pure.
 *
 * The hosts form a tree for each chunk, and the owner of the chunk is its root. In the reduce phase
 * a host adds the partial sums of its children to its own operand, and sends the sum to its parent.
 * The sum of the owner is the result. In the gather phase the owner sends the result to its
 * targets, and each of them sends it on to its own targets.
 *
 *  - CC_ALGO_RING: the tree is a chain along the ring. The gather phase goes on along the ring. A
 *    host sends only to the next host. hosts - 1 hops in each phase.
 *  - CC_ALGO_DIRECT: all hosts are children of the owner. One hop in each phase.
 *  - CC_ALGO_TREE: a host at distance r > 0 after the owner is a child of the host at distance
 *    r - 2^k, where 2^k is the highest power of two in r. floor(log2(hosts)) hops in each phase,
 *    and a host sends only to the hosts 2^k before it (reduce) and after it (gather). The number of
 *    hosts need not be a power of two. This is the schedule of J. L. Traeff, "Optimal,
 *    Non-pipelined Reduce-scatter and Allreduce Algorithms" (2024).
 *  - CC_ALGO_RINGS: up to four rings of all hosts, each in its own order (cc_rings.h). Each ring
 *    has `hosts` chunks, and reduces and distributes them like CC_ALGO_RING. So a host sends only
 *    to the next host of each ring. hosts - 1 hops in each phase.
 *
 * With CC_ALGO_DIRECT and CC_ALGO_TREE the results go down the same tree in which the partial sums
 * went up.
 */
#ifndef CC_ROUTE_H
#define CC_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum cc_algo {
	CC_ALGO_RING = 0,
	CC_ALGO_DIRECT = 1,
	CC_ALGO_TREE = 2,
	CC_ALGO_RINGS = 3,
	CC_ALGO_COUNT,
	/* The number of routes that need no struct cc_rings: all before CC_ALGO_RINGS. */
	CC_ALGO_FIXED_COUNT = CC_ALGO_RINGS
};

struct cc_rings;

struct cc_route {
	enum cc_algo algo;
	uint32_t hosts; /* >= 1; at most CC_ROUTE_HOSTS_MAX, except for the ring */
	/* Only for CC_ALGO_RINGS: rings of the same number of hosts, from cc_rings_complete. Chunks
	 * must be below rings->n * hosts. */
	const struct cc_rings *rings;
};

/* The most hosts of a group whose operations may take another route than the ring. Each host of
 * such a group has links to all other hosts of the group. */
#define CC_ROUTE_HOSTS_MAX 64u
/* The most children, or targets, of a host for one chunk. */
#define CC_ROUTE_FANOUT_MAX (CC_ROUTE_HOSTS_MAX - 1)
#define CC_ROUTE_NONE       UINT32_MAX

/* Chooses the route of an operation. All hosts of its group have links to each other. `bytes` is
 * the size of an operand. Only the master calls this, and sends the route to all hosts. */
enum cc_algo cc_route_choose(uint32_t hosts, uint64_t bytes, bool quantized);
/* Does each chunk go from host to host along a ring? Then a host has at most one child. */
static inline bool cc_route_is_chain(enum cc_algo algo)
{
	return algo == CC_ALGO_RING || algo == CC_ALGO_RINGS;
}

/* Returns the position that computes the result of the chunk. It is the same for all algorithms
 * except CC_ALGO_RINGS. */
uint32_t cc_route_owner(const struct cc_route *r, uint32_t chunk);
/* Returns the position to which `pos` sends its partial sum, or CC_ROUTE_NONE for the owner. */
uint32_t cc_route_parent(const struct cc_route *r, uint32_t chunk, uint32_t pos);
/* Writes the positions that send a partial sum to `pos`, in ascending order. Returns their number.
 */
uint32_t cc_route_children(
	const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t ret[CC_ROUTE_FANOUT_MAX]);
/* Returns the position that sends the result to `pos`, or CC_ROUTE_NONE for the owner. */
uint32_t cc_route_source(const struct cc_route *r, uint32_t chunk, uint32_t pos);
/* Writes the positions to which `pos` sends the result. Returns their number. */
uint32_t cc_route_targets(
	const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t ret[CC_ROUTE_FANOUT_MAX]);

/*
 * Eager operations: each host collects the operands of all hosts. The loop thread of the agent
 * carries them out.
 *
 *  - CC_ALGO_RING: a host sends each operand on to the next host.
 *  - CC_ALGO_DIRECT: a host sends its operand to all other hosts.
 *  - CC_ALGO_TREE: in step k = 0, 1, ..., a host sends the operands of the 2^k hosts that end with
 *    itself to the host 2^k after it. It leaves out operands that the receiving host already has.
 *    (J. Bruck et al., "Efficient Algorithms for All-to-All Communications", 1997.)
 *
 * A small operand is not worth dividing, so no master starts an eager operation with CC_ALGO_RINGS.
 * If one does, all hosts take CC_ALGO_RING.
 */

/* Returns a size limit in bytes for eager operations on a ring of `hosts` hosts. If the agent waits
 * for a staged operand of at most this size, the shim rings the submission doorbell, too. */
static inline uint64_t cc_route_eager_max(uint32_t hosts)
{
	return (uint64_t)(hosts == 2 ? 1024 : 512) << 10;
}

/* Is an operation of `bytes` bytes eager? All hosts get the same answer. On two hosts the eager
 * path sends no more bytes than the normal path. On more hosts it sends more, so there all operands
 * together must not exceed the limit. */
static inline bool cc_route_is_eager(uint64_t bytes, uint32_t hosts)
{
	return bytes <= cc_route_eager_max(hosts) / (hosts == 2 ? 1 : hosts);
}

/* Returns the position from which `pos` receives the operand of `origin`, another host. */
uint32_t cc_route_sender(const struct cc_route *r, uint32_t pos, uint32_t origin);
/* CC_ALGO_TREE: returns the number of operands that a host sends in this step; 0: there is no such
 * step. The operands are those of the hosts pos, pos - 1, ... They go to the host pos + 2^step. */
uint32_t cc_route_step(const struct cc_route *r, uint32_t step);
/* Returns the position `distance` (below hosts) after `pos`, or before it. */
uint32_t cc_route_after(const struct cc_route *r, uint32_t pos, uint32_t distance);
uint32_t cc_route_before(const struct cc_route *r, uint32_t pos, uint32_t distance);

#endif
