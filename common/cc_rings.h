/* SPDX-License-Identifier: MIT
 *
 * The rings of an operation that is divided over several rings of the same hosts (CC_ALGO_RINGS in
 * cc_route.h). Each ring visits the hosts in its own order, and reduces its own part of the
 * operand. The parts have the sizes of the shares. Pure.
 */
#ifndef CC_RINGS_H
#define CC_RINGS_H

#include <stdint.h>

#include "common/cc_route.h"

#define CC_RINGS_MAX 4

/* The relative sizes of the parts of an operand, one part for each ring: those before the first 0.
 * All 0: the operand has one part. */
struct cc_shares {
	uint16_t of[CC_RINGS_MAX];
};

/* Hosts are named by their position in the ring of their group. Ring r is the cycle order[r][0] ->
 * order[r][1] -> ... -> order[r][hosts - 1] -> order[r][0]. */
struct cc_rings {
	uint32_t n;                   /* 1 .. CC_RINGS_MAX; entries of other rings are not used */
	uint32_t hosts;               /* 1 .. CC_ROUTE_HOSTS_MAX */
	uint16_t share[CC_RINGS_MAX]; /* relative sizes of the parts, > 0 */
	uint8_t order[CC_RINGS_MAX][CC_ROUTE_HOSTS_MAX]; /* the hosts of each ring */
	uint8_t at[CC_RINGS_MAX][CC_ROUTE_HOSTS_MAX];    /* the inverse: at[r][order[r][i]] == i */
};

/* Checks the rings, which may come from another host, and fills in `at`. Returns 0, or CC_ERR_INVAL
 * if a number is beyond its limits or an order does not have each host once. */
int cc_rings_complete(struct cc_rings *r);
/* NULL: all shares are 0. */
struct cc_shares cc_rings_shares(const struct cc_rings *r);

/* Shares as one number, with the share of ring r in the bits from 16 * r on. */
uint64_t cc_shares_pack(const struct cc_shares *s);
struct cc_shares cc_shares_unpack(uint64_t v);

#endif
