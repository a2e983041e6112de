/* SPDX-License-Identifier: MIT
 *
 * How much each stream is asked for ahead of what has come.
 *
 * What is under way on a stream is rate * time (Little's law), of which rate * shortest time is
 * what its path holds by itself; the rest waits somewhere. Streams are to have equally much
 * waiting. At a bottleneck all wait for the same time, so where it is one that sources have in
 * common, near the receiver, they come to the same rate, however far away they are; whoever has a
 * narrower one of its own has its bytes waiting there, and the others take what it leaves. Nobody
 * is held back further than to what keeps a bottleneck busy, so no rate is lost by it. (As TCP
 * Vegas, Brakmo and Peterson 1995, and FAST TCP, Jin, Wei and Low 2004. Like LEDBAT, RFC 6817, it
 * aims at a time that is added to the shortest one.)
 *
 * Not all that waits does so at the bottleneck: senders' TCP lets in only so much, and not of each
 * the same. So those that have given more than others are to have less waiting, and others more.
 */
#include "pcclagentd/state/pace.h"
#include "proto/wire_state.h"

/* To be waiting: as much as comes in this time. A port's buffer, and what a busy host may take
 * until it goes on. */
#define WAIT_NS ((uint64_t)30 * 1000000)
/* Bytes, at least: in all; and of a stream, where a leaf comes while the next one is asked for. */
#define ALL_MIN    ((uint64_t)2 << 20)
#define WINDOW_MIN ((uint64_t)2 * WIRE_LEAF)
#define WINDOW_MAX ((uint64_t)16 << 20)
/* Of a source that is not ahead of the others, and of one that is so by its part of all. */
#define WEIGHT_MAX 8u
#define WEIGHT_MIN 3u

uint64_t ste_pace_all(uint64_t rate, uint64_t base_ns)
{
	/* On a long path TCP needs more than double of what is under way, to get faster. */
	uint64_t wait_ns = 2 * base_ns > WAIT_NS ? 2 * base_ns : WAIT_NS;
	uint64_t all = rate / 1000 * (wait_ns / 1000) / 1000;

	return all > ALL_MIN ? all : ALL_MIN;
}

static uint64_t weight(uint64_t bytes, uint64_t mean, uint64_t slack)
{
	uint64_t over = bytes > mean ? bytes - mean : 0;

	if (over >= slack)
		return WEIGHT_MIN * slack;
	return WEIGHT_MAX * slack - (WEIGHT_MAX - WEIGHT_MIN) * over;
}

void ste_pace_share(struct ste_load *v, uint32_t n, uint64_t all)
{
	uint64_t mean = 0, slack, sum = 0;
	uint32_t active = 0;

	for (uint32_t i = 0; i < n; i++) {
		active += v[i].streams > 0;
		mean += v[i].streams > 0 ? v[i].bytes : 0;
	}
	if (active == 0)
		return;
	mean /= active;
	slack = all / active;
	for (uint32_t i = 0; i < n; i++)
		sum += weight(v[i].bytes, mean, slack) * v[i].streams;
	for (uint32_t i = 0; i < n; i++) {
		double part = (double)weight(v[i].bytes, mean, slack) / (double)sum;

		v[i].waiting = (uint64_t)((double)all * part);
		if (v[i].waiting < WINDOW_MIN)
			v[i].waiting = WINDOW_MIN;
	}
}

uint64_t ste_pace_window(uint64_t window, const struct ste_came *c, uint64_t waiting)
{
	uint64_t waited = c->ahead - c->ahead * c->base_ns / c->took_ns, goal;

	if (waited >= waiting / 2)
		goal = c->ahead - waited + waiting;
	else
		goal = 2 * c->ahead > window ? 2 * c->ahead : window;
	/* Double or nothing within a round at most. */
	if (goal > window)
		window += goal - window < c->len ? goal - window : c->len;
	else
		window -= window - goal < c->len ? window - goal : c->len;
	if (window < WINDOW_MIN)
		return WINDOW_MIN;
	return window < WINDOW_MAX ? window : WINDOW_MAX;
}

uint32_t ste_pace_leaves(const struct ste_rest *r)
{
	uint64_t known = r->known > 0 ? r->rates / r->known : 1, n = r->window / 2;
	double rates = (double)r->rates + (double)known * (r->streams - r->known);
	double part = (double)(r->rate > 0 ? r->rate : known) / rates;
	uint64_t most = (uint64_t)((double)r->bytes * part);

	if (r->ahead == 0)
		most += WIRE_LEAF;
	else if (r->ahead >= r->window || r->ahead >= most)
		return 0;
	most -= r->ahead;
	n = (n < most ? n : most) / WIRE_LEAF;
	if (n < 1)
		return 1;
	return n < WST_BLOCK_MAX ? (uint32_t)n : WST_BLOCK_MAX;
}
