/* SPDX-License-Identifier: MIT */
#include "common/cc_rings.h"

#include "common/cc_err.h"

/* Inverts the order of a ring. Returns false if it does not have each host once. */
static bool invert(uint32_t hosts, const uint8_t *order, uint8_t *ret)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < hosts; i++) {
		if (order[i] >= hosts || (seen >> order[i] & 1))
			return false;
		seen |= UINT64_C(1) << order[i];
		ret[order[i]] = (uint8_t)i;
	}
	return true;
}

int cc_rings_complete(struct cc_rings *r)
{
	if (r->n < 1 || r->n > CC_RINGS_MAX || r->hosts < 1 || r->hosts > CC_ROUTE_HOSTS_MAX)
		return CC_ERR_INVAL;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->share[i] == 0 || !invert(r->hosts, r->order[i], r->at[i]))
			return CC_ERR_INVAL;
	return 0;
}

struct cc_shares cc_rings_shares(const struct cc_rings *r)
{
	struct cc_shares s = {{0}};

	for (uint32_t i = 0; r && i < r->n; i++)
		s.of[i] = r->share[i];
	return s;
}

uint64_t cc_shares_pack(const struct cc_shares *s)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < CC_RINGS_MAX; i++)
		v |= (uint64_t)s->of[i] << 16 * i;
	return v;
}

struct cc_shares cc_shares_unpack(uint64_t v)
{
	struct cc_shares s;

	for (uint32_t i = 0; i < CC_RINGS_MAX; i++)
		s.of[i] = (uint16_t)(v >> 16 * i);
	return s;
}
