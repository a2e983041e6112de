/* SPDX-License-Identifier: MIT */
#include "common/cc_route.h"

#include "common/cc_rings.h"

/* Above this size an unquantized operation takes the ring: all routes send the same number of
 * bytes, and the ring needs no memory for partial sums. Measured in bench/RESULTS.md,
 * "Several hosts and routes". */
#define FEW_HOPS_MAX (UINT64_C(1) << 20)
/* The messages of a direct exchange grow with the square of the hosts. Eight hosts were measured;
 * the limit was chosen. */
#define DIRECT_HOSTS 8u

enum cc_algo cc_route_choose(uint32_t hosts, uint64_t bytes, bool quantized)
{
	if (hosts < 3)
		return CC_ALGO_RING;
	/* An eager operation quantizes each operand only once, whatever the route. */
	if (quantized && !cc_route_is_eager(bytes, hosts))
		return CC_ALGO_DIRECT;
	if (bytes > FEW_HOPS_MAX)
		return CC_ALGO_RING;
	return hosts <= DIRECT_HOSTS ? CC_ALGO_DIRECT : CC_ALGO_TREE;
}

uint32_t cc_route_before(const struct cc_route *r, uint32_t pos, uint32_t distance)
{
	return pos >= distance ? pos - distance : pos + (r->hosts - distance);
}

uint32_t cc_route_after(const struct cc_route *r, uint32_t pos, uint32_t distance)
{
	return cc_route_before(r, pos, distance == 0 ? 0 : r->hosts - distance);
}

static uint32_t highest_power(uint32_t n)
{
	return n == 0 ? 0 : UINT32_C(1) << (31 - __builtin_clz(n));
}

/* Returns the host after `pos` on the ring of the chunk. */
static uint32_t next_on_ring(const struct cc_route *r, uint32_t chunk, uint32_t pos)
{
	uint32_t ring;

	if (r->algo != CC_ALGO_RINGS)
		return cc_route_after(r, pos, 1);
	ring = chunk / r->hosts;
	return r->rings->order[ring][cc_route_after(r, r->rings->at[ring][pos], 1)];
}

/* Returns the host before `pos` on the ring of the chunk. */
static uint32_t last_on_ring(const struct cc_route *r, uint32_t chunk, uint32_t pos)
{
	uint32_t ring;

	if (r->algo != CC_ALGO_RINGS)
		return cc_route_before(r, pos, 1);
	ring = chunk / r->hosts;
	return r->rings->order[ring][cc_route_before(r, r->rings->at[ring][pos], 1)];
}

uint32_t cc_route_owner(const struct cc_route *r, uint32_t chunk)
{
	uint32_t at = r->hosts - 1 - chunk % r->hosts;

	return r->algo == CC_ALGO_RINGS ? r->rings->order[chunk / r->hosts][at] : at;
}

uint32_t cc_route_parent(const struct cc_route *r, uint32_t chunk, uint32_t pos)
{
	uint32_t owner = cc_route_owner(r, chunk);

	if (pos == owner)
		return CC_ROUTE_NONE;
	switch (r->algo) {
	case CC_ALGO_DIRECT:
		return owner;
	case CC_ALGO_TREE:
		return cc_route_before(r, pos, highest_power(cc_route_before(r, pos, owner)));
	default:
		return next_on_ring(r, chunk, pos);
	}
}

/* Inserts a position into an ascending list of n positions. */
static uint32_t insert(uint32_t *list, uint32_t n, uint32_t pos)
{
	uint32_t i = n;

	for (; i > 0 && list[i - 1] > pos; i--)
		list[i] = list[i - 1];
	list[i] = pos;
	return n + 1;
}

/* Writes the hosts below `pos` in the tree of the algorithm, which must not be a chain. */
static uint32_t below(const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t *ret)
{
	uint32_t owner = cc_route_owner(r, chunk), distance = cc_route_before(r, pos, owner), n = 0;

	if (r->algo == CC_ALGO_DIRECT) {
		for (uint32_t p = 0; pos == owner && p < r->hosts; p++)
			if (p != owner)
				ret[n++] = p;
		return n;
	}
	for (uint32_t step = distance == 0 ? 1 : 2 * highest_power(distance);
		distance + step < r->hosts; step *= 2)
		n = insert(ret, n, cc_route_after(r, pos, step));
	return n;
}

uint32_t cc_route_children(
	const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t ret[CC_ROUTE_FANOUT_MAX])
{
	if (!cc_route_is_chain(r->algo))
		return below(r, chunk, pos, ret);
	if (r->hosts == 1)
		return 0;
	ret[0] = last_on_ring(r, chunk, pos);
	/* The chain begins after the owner. */
	return ret[0] != cc_route_owner(r, chunk);
}

uint32_t cc_route_source(const struct cc_route *r, uint32_t chunk, uint32_t pos)
{
	if (!cc_route_is_chain(r->algo))
		return cc_route_parent(r, chunk, pos);
	return pos == cc_route_owner(r, chunk) ? CC_ROUTE_NONE : last_on_ring(r, chunk, pos);
}

uint32_t cc_route_targets(
	const struct cc_route *r, uint32_t chunk, uint32_t pos, uint32_t ret[CC_ROUTE_FANOUT_MAX])
{
	if (!cc_route_is_chain(r->algo))
		return below(r, chunk, pos, ret);
	if (r->hosts == 1)
		return 0;
	ret[0] = next_on_ring(r, chunk, pos);
	return ret[0] != cc_route_owner(r, chunk);
}

uint32_t cc_route_sender(const struct cc_route *r, uint32_t pos, uint32_t origin)
{
	switch (r->algo) {
	case CC_ALGO_DIRECT:
		return origin;
	case CC_ALGO_TREE:
		return cc_route_before(r, pos, highest_power(cc_route_before(r, pos, origin)));
	default:
		return cc_route_before(r, pos, 1);
	}
}

uint32_t cc_route_step(const struct cc_route *r, uint32_t step)
{
	uint64_t n = UINT64_C(1) << step;

	if (n >= r->hosts)
		return 0;
	return n < r->hosts - n ? (uint32_t)n : (uint32_t)(r->hosts - n);
}
