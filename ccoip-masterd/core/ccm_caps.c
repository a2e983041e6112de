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
	if (is_nearly(at_once, x->sum, 20))
		return x->sum;
	return at_once > x->fastest ? at_once : x->fastest;
}

uint64_t ccm_cap_if_sure(const struct ccm_links *x, uint64_t at_once)
{
	if (is_nearly(at_once, x->sum, 20))
		return x->sum;
	if (is_nearly(x->second, x->fastest, 100) && is_nearly(at_once, x->fastest, 10) &&
		is_nearly(x->fastest, at_once, 10))
		return x->fastest;
	return 0;
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

/* The suspect hosts, and the rates of all links. */
struct choice {
	const struct ccm_suspects *out, *in;
	const uint64_t *rates;
	uint32_t n_hosts;
};

/* Returns the highest known value of the cap of a suspect host. */
static uint64_t cap_known(const struct ccm_suspects *x, uint32_t host)
{
	uint32_t i = 0;

	while (i < x->n && x->hosts[i] != host)
		i++;
	return i < x->n ? x->caps[i] : 0;
}

/* Returns how much a host lacks of its cap if its links carry `sum` in all, but one of them, with
 * this rate, carries nothing. */
static uint64_t lacking(uint64_t cap, uint64_t sum, uint64_t rate)
{
	return cap > sum - rate ? cap - (sum - rate) : 0;
}

/* Returns what the two hosts of a round lack because they share the link from `out` to `in`. */
static uint64_t lack_of(const struct choice *c, uint32_t out, uint32_t in)
{
	uint64_t sent = 0, received = 0, rate, n = c->n_hosts;

	if (out == CCM_NO_HOST || in == CCM_NO_HOST)
		return 0;
	rate = c->rates[out * n + in];
	for (uint32_t i = 0; i < n; i++) {
		sent += c->rates[out * n + i];
		received += c->rates[i * n + in];
	}
	return lacking(cap_known(c->out, out), sent, rate) +
	       lacking(cap_known(c->in, in), received, rate);
}

/* Two rounds exchange the hosts that receive if they lack less then. Returns whether they did. */
static bool exchange(const struct choice *c, struct ccm_host_round *a, struct ccm_host_round *b)
{
	uint32_t in = a->in;

	if (a->out == b->in || b->out == a->in ||
		lack_of(c, a->out, b->in) + lack_of(c, b->out, a->in) >=
			lack_of(c, a->out, a->in) + lack_of(c, b->out, b->in))
		return false;
	a->in = b->in;
	b->in = in;
	return true;
}

static void lessen_lack(const struct choice *c, struct ccm_host_round *rounds, uint32_t n)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < i; k++)
				changed |= exchange(c, &rounds[i], &rounds[k]);
	}
}

uint32_t ccm_host_rounds(const struct ccm_suspects *out, const struct ccm_suspects *in,
	const uint64_t *rates, uint32_t n_hosts, struct ccm_host_round ret[CCM_HOST_ROUNDS_MAX])
{
	const struct choice c = {out, in, rates, n_hosts};
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
	lessen_lack(&c, ret, n);
	return n;
}
