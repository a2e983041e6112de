/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/core/ccm_caps.h"

/* Is `a` less than `b` by at most one part in `part`? */
static bool is_nearly(uint64_t a, uint64_t b, uint64_t part)
{
	return a >= b - b / part;
}

void ccm_links_add(struct ccm_links *x, uint64_t rate)
{
	x->sum += rate;
	if (rate > x->fastest) {
		x->second = x->fastest;
		x->fastest = rate;
	} else if (rate > x->second) {
		x->second = rate;
	}
}

uint64_t ccm_cap_of(const struct ccm_links *x, uint64_t at_once)
{
	if (is_nearly(at_once, x->sum, 10) && at_once < x->sum)
		return x->sum;
	return at_once > x->fastest ? at_once : x->fastest;
}

bool ccm_cap_is_suspect(const struct ccm_links *x, uint64_t at_once)
{
	if (is_nearly(at_once, x->sum, 10))
		return false;
	return !is_nearly(x->second, x->fastest, 20) || !is_nearly(at_once, x->fastest, 10) ||
	       !is_nearly(x->fastest, at_once, 10);
}
