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
	*e = (struct net_estimate){.window_us = window(longest_ms, trip_us),
		.points = {*first},
		.last = *first,
		.first_us = UINT64_MAX,
		.start_us = UINT64_MAX};
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

void net_estimate_add(struct net_estimate *e, const struct net_point *p, uint64_t at_us)
{
	e->last = *p;
	e->last_us = at_us;
	if (at_us < e->first_us)
		e->first_us = at_us;
	/* The report with the least delay tells when the receiver's time began. */
	if (at_us - p->us < e->start_us)
		e->start_us = at_us - p->us;
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

uint32_t net_estimate_confidence(const struct net_estimate *e)
{
	struct part p = part(e);
	uint32_t begin = (uint32_t)(p.from - e->points), percent;
	double least = 0, most = 0;

	if (!e->started || e->n < begin + NET_STEADY)
		return NET_LEAST_CONFIDENCE;
	for (uint32_t i = begin + HALF; i <= e->n; i++) {
		double r = rate(&e->points[i - HALF], &e->points[i]);

		least = r < least || i == begin + HALF ? r : least;
		most = r > most ? r : most;
	}
	percent = most > 0 ? (uint32_t)(100 * least / most) : 0;
	return percent > NET_LEAST_CONFIDENCE ? percent : NET_LEAST_CONFIDENCE;
}

uint64_t net_estimate_rate_of_all(const struct net_estimate *e)
{
	struct part p = part(e);
	double best = 0;

	/* The first window also has what came from other agents before. */
	for (uint32_t i = 1 + HALF; i <= e->n; i++) {
		const struct net_point *from = &e->points[i - HALF], *to = &e->points[i];
		double r = rate_of(to->all - from->all, from, to);

		best = r > best ? r : best;
	}
	return bits_per_s(best > 0 ? best : rate_of(p.to->all - p.from->all, p.from, p.to));
}

/* Returns the bytes that had arrived at a time of this agent's clock, as if the rate were constant
 * between two points. */
static double bytes_at(const struct net_estimate *e, uint64_t at_us)
{
	uint64_t us = at_us - e->start_us;
	uint32_t i = 1;

	while (i < e->n && e->points[i].us < us)
		i++;
	if (us < e->points[i - 1].us)
		us = e->points[i - 1].us;
	if (us > e->points[i].us)
		us = e->points[i].us;
	return (double)e->points[i - 1].bytes +
	       rate(&e->points[i - 1], &e->points[i]) * (double)(us - e->points[i - 1].us);
}

static double bytes_in(const struct net_estimate *e, uint64_t from_us, uint64_t us)
{
	return bytes_at(e, from_us + us) - bytes_at(e, from_us);
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Finds the time of this agent's clock in which all paths sent. Never longer than the reports have
 * taken to come, whatever times they name. */
static void common_time(
	struct net_estimate *const *e, uint32_t n, uint64_t *from_us, uint64_t *to_us)
{
	*from_us = 0;
	*to_us = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		*from_us = most(*from_us, most(e[i]->start_us, e[i]->first_us));
		*to_us = least(
			*to_us, least(e[i]->start_us + e[i]->points[e[i]->n].us, e[i]->last_us));
	}
}

static uint64_t longest_window(struct net_estimate *const *e, uint32_t n)
{
	uint64_t us = 0;

	for (uint32_t i = 0; i < n; i++)
		us = most(us, e[i]->window_us);
	return us;
}

void net_estimate_rates_at_once(struct net_estimate *const *e, uint32_t n, uint64_t *ret)
{
	uint64_t step = longest_window(e, n), us = HALF * step, from, to, best_from = 0;
	double best = 0;

	if (n == 0)
		return;
	common_time(e, n, &from, &to);
	from += step; /* queues fill */
	us = most(us, from < to ? (to - from) / 4 : 0);
	for (; from < to && us <= to - from; from += step) {
		double sum = 0;

		for (uint32_t i = 0; i < n; i++)
			sum += bytes_in(e[i], from, us);
		best_from = sum > best ? from : best_from;
		best = sum > best ? sum : best;
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i] = best > 0 ? bits_per_s(bytes_in(e[i], best_from, us) / (double)us)
				  : net_estimate_rate(e[i]);
}
