/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/core/ccm_caps.h"

#include <stdlib.h>

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
	if (is_nearly(at_once, x->sum, 20) && at_once < x->sum)
		return x->sum;
	return at_once > x->fastest ? at_once : x->fastest;
}

bool ccm_cap_is_suspect(const struct ccm_links *x, uint64_t at_once)
{
	if (is_nearly(at_once, x->sum, 20))
		return false;
	return !is_nearly(x->second, x->fastest, 20) || !is_nearly(at_once, x->fastest, 10) ||
	       !is_nearly(x->fastest, at_once, 10);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

uint64_t ccm_cap_middle(uint64_t *values, uint32_t n)
{
	uint32_t zeros = 0;

	qsort(values, n, sizeof *values, by_value);
	while (zeros < n && values[zeros] == 0)
		zeros++;
	return zeros < n ? values[zeros + (n - zeros) / 2] : 0;
}

void ccm_suspects_add(struct ccm_suspects *x, uint32_t host, uint64_t cap)
{
	uint32_t k;

	if (x->n == CCM_HOST_ROUNDS_MAX && cap >= x->caps[x->n - 1])
		return;
	x->n += x->n < CCM_HOST_ROUNDS_MAX;
	for (k = x->n - 1; k > 0 && x->caps[k - 1] > cap; k--) {
		x->caps[k] = x->caps[k - 1];
		x->hosts[k] = x->hosts[k - 1];
	}
	x->caps[k] = cap;
	x->hosts[k] = host;
}

uint32_t ccm_host_rounds(const struct ccm_suspects *out, const struct ccm_suspects *in,
	struct ccm_host_round ret[CCM_HOST_ROUNDS_MAX])
{
	uint32_t n = out->n > in->n ? out->n : in->n, i, next;

	for (i = 0; i < n; i++) {
		ret[i].out = i < out->n ? out->hosts[i] : CCM_NO_HOST;
		ret[i].in = i < in->n ? in->hosts[i] : CCM_NO_HOST;
	}
	if (n == 1 && ret[0].out == ret[0].in) {
		ret[1] = (struct ccm_host_round){.out = CCM_NO_HOST, .in = ret[0].in};
		ret[0].in = CCM_NO_HOST;
		return 2;
	}
	/* A host is in each list once. So after an exchange neither of the two rounds has the same
	 * host twice. */
	for (i = 0; i < n; i++) {
		if (ret[i].out != ret[i].in)
			continue;
		next = (i + 1) % n;
		ret[i].in = ret[next].in;
		ret[next].in = ret[i].out;
	}
	return n;
}
