/* SPDX-License-Identifier: MIT
 *
 * Computes how many bytes each stream requests ahead of the bytes that have arrived.
 *
 * The bytes under way on a stream are rate * time (Little's law). Of these bytes, the path itself
 * holds rate * shortest time. The rest waits in queues. The aim is that all streams have the same
 * number of bytes waiting. At a bottleneck all bytes wait for the same time. So if the sources
 * share a bottleneck near the receiver, they reach the same rate at any distance. If a source has a
 * narrower bottleneck of its own, its bytes wait there, and the other sources use the rate that it
 * leaves. A stream always has enough bytes waiting to keep its bottleneck busy, so no rate is lost.
 * (TCP Vegas, Brakmo and Peterson 1995, and FAST TCP, Jin, Wei and Low 2004, work like this. Like
 * LEDBAT, RFC 6817, the algorithm aims at a certain delay on top of the shortest time.)
 *
 * Some of the bytes do not wait at the bottleneck, because the TCP of a sender limits the bytes
 * under way, and each TCP has another limit. So a source that has sent more than others gets fewer
 * bytes waiting, and the others get more.
 */
#include "pcclagentd/state/pace.h"
#include "proto/wire_state.h"

/* As many bytes wait as arrive in this time. This time covers the buffer of a switch port, and the
 * delays of a busy host. */
#define WAIT_NS ((uint64_t)30 * 1000000)
/* The smallest number of bytes that wait, on all streams together and on one stream. A stream
 * receives a leaf while it requests the next one. */
#define ALL_MIN    ((uint64_t)2 << 20)
#define WINDOW_MIN ((uint64_t)2 * WIRE_LEAF)
#define WINDOW_MAX ((uint64_t)16 << 20)
/* A source that has sent no more than the mean has the largest weight. A source has the smallest
 * weight if the bytes that it has sent exceed the mean by at least an equal share of all waiting
 * bytes. */
#define WEIGHT_MAX 8u
#define WEIGHT_MIN 3u

uint64_t ste_pace_all(uint64_t rate, uint64_t base_ns)
{
	/* On a long path, TCP speeds up only if more than twice the bytes that the path holds are
	 * under way. */
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
	/* In the time of one answer the window can double, or shrink to the minimum. */
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
