/* SPDX-License-Identifier: MIT */
#include "pcclagentd/net/estimate.h"

#define US_PER_MS     UINT64_C(1000)
#define BITS_PER_BYTE 8.0
#define US_PER_S      1e6
#define PARTS_LEAST   8u  /* a measurement has at least this number of windows */
#define PARTS_MOST    32u /* and at most this number */
#define FLAT          2u  /* windows without growth that end the slow start */
#define HALF          (NET_STEADY / 2)

static double rate_of(uint64_t bytes, const struct net_point *a, const struct net_point *b)
{
	return b->us > a->us ? (double)bytes / (double)(b->us - a->us) : 0;
}

static double rate(const struct net_point *a, const struct net_point *b)
{
	return rate_of(b->bytes - a->bytes, a, b);
}

static uint64_t window(uint32_t longest_ms, uint32_t trip_us)
{
	uint64_t all = longest_ms * US_PER_MS, w = all / PARTS_MOST;

	if (w < trip_us)
		w = trip_us;
	if (w > all / PARTS_LEAST)
		w = all / PARTS_LEAST;
	return w < NET_WINDOW_MS * US_PER_MS ? NET_WINDOW_MS * US_PER_MS : w;
}

void net_estimate_begin(struct net_estimate *e, const struct net_point *first, uint32_t longest_ms,
	uint32_t trip_us)
{
	*e = (struct net_estimate){
		.window_us = window(longest_ms, trip_us), .points = {*first}, .last = *first};
}

/* Window `i` has ended: has the slow start ended with it? */
static void look(struct net_estimate *e, uint32_t i)
{
	double r = rate(&e->points[i], &e->points[i + 1]);

	e->flat = r > NET_GROWTH * e->peak ? 0 : e->flat + 1;
	if (r > e->peak)
		e->peak = r;
	if (i + 1 >= HALF && rate(&e->points[i + 1 - HALF], &e->points[i + 1]) > e->best)
		e->best = rate(&e->points[i + 1 - HALF], &e->points[i + 1]);
	if (e->started || e->flat < FLAT)
		return;
	e->started = true;
	e->steady = i + 1 - FLAT;
}

void net_estimate_add(struct net_estimate *e, const struct net_point *p)
{
	e->last = *p;
	if (e->n == NET_WINDOWS || p->us - e->points[e->n].us < e->window_us)
		return;
	e->points[++e->n] = *p;
	look(e, e->n - 1);
}

static bool differ(double a, double b)
{
	double more = a > b ? a : b, less = a > b ? b : a;

	return more - less > NET_DIFFERENCE * more;
}

bool net_estimate_is_stable(const struct net_estimate *e)
{
	const struct net_point *end = &e->points[e->n];

	return e->started && e->n - e->steady >= NET_STEADY &&
	       !differ(rate(end - HALF, end), rate(end - NET_STEADY, end - HALF)) &&
	       e->best <= NET_GROWTH * rate(end - NET_STEADY, end);
}

static const struct net_point *last_quarter(const struct net_estimate *e)
{
	uint32_t i = e->n - e->n / 4;

	/* The part after the last complete window alone may be very short. */
	if (i == e->n && i > 0)
		i--;
	return &e->points[i];
}

/* Returns where the part of the measurement begins that counts if the rate is not stable. */
static const struct net_point *start(const struct net_estimate *e)
{
	const struct net_point *quarter = last_quarter(e), *half = &e->points[e->n / 2];

	if (!e->started)
		return quarter;
	if (e->n / 2 < e->steady)
		half = &e->points[e->steady];
	if (half > quarter || rate(quarter, &e->last) > NET_GROWTH * rate(half, &e->last))
		return quarter;
	return half;
}

/* The part of the measurement that counts. */
struct part {
	const struct net_point *from, *to;
};

static struct part part(const struct net_estimate *e)
{
	const struct net_point *end = &e->points[e->n];

	if (net_estimate_is_stable(e))
		return (struct part){.from = end - NET_STEADY, .to = end};
	return (struct part){.from = start(e), .to = &e->last};
}

static uint64_t bits_per_s(double bytes_per_us)
{
	double bits = bytes_per_us * BITS_PER_BYTE * US_PER_S;

	return bits < (double)INT64_MAX ? (uint64_t)bits : INT64_MAX;
}

uint64_t net_estimate_rate(const struct net_estimate *e)
{
	struct part p = part(e);

	return bits_per_s(rate(p.from, p.to));
}

uint64_t net_estimate_rate_of_all(const struct net_estimate *e)
{
	struct part p = part(e);
	double best = 0;

	for (uint32_t i = e->steady + HALF; e->started && i <= e->n; i++) {
		const struct net_point *from = &e->points[i - HALF], *to = &e->points[i];
		double r = rate_of(to->all - from->all, from, to);

		best = r > best ? r : best;
	}
	return bits_per_s(best > 0 ? best : rate_of(p.to->all - p.from->all, p.from, p.to));
}
