/* SPDX-License-Identifier: MIT
 *
 * Random numbers, clocks, and the schedule, which is a heap ordered by time and then by number.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/sim.h"

uint32_t sim_rnd(struct sim *s, uint32_t n)
{
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	return (uint32_t)((s->rng * 0x2545f4914f6cdd1du >> 32) % n);
}

bool sim_chance(struct sim *s, uint32_t percent)
{
	return sim_rnd(s, 100) < percent;
}

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t sim_hash(const struct sim *s, uint64_t a, uint64_t b, uint64_t c)
{
	return mix(mix(mix(mix(s->seed) ^ a) ^ b) ^ c);
}

struct cc_id sim_new_id(struct sim *s, uint8_t kind)
{
	struct cc_id id = {.b = {kind}};
	uint32_t i;

	s->last_id++;
	for (i = 0; i < 4; i++)
		id.b[1 + i] = (uint8_t)(s->last_id >> (8 * i));
	id.b[15] = 1;
	return id;
}

struct sim_clock sim_new_clock(struct sim *s)
{
	return (struct sim_clock){
		.zero = (1 + sim_rnd(s, 1000)) * SIM_S, .rate = 900 + sim_rnd(s, 201)};
}

uint64_t sim_clock_now(const struct sim *s, const struct sim_clock *c)
{
	return c->zero + (s->now - SIM_S) / 1000 * c->rate;
}

uint64_t sim_delay(struct sim *s)
{
	uint32_t kind = sim_rnd(s, 100);

	if (kind < 70)
		return (50 + sim_rnd(s, 500)) * SIM_US;
	if (kind < 98)
		return (500 + sim_rnd(s, 5000)) * SIM_US;
	return (5000 + sim_rnd(s, 60000)) * SIM_US;
}

static bool earlier(const struct sim_event *x, const struct sim_event *y)
{
	return x->at < y->at || (x->at == y->at && x->no < y->no);
}

static void swap(struct sim_event *x, struct sim_event *y)
{
	struct sim_event t = *x;

	*x = *y;
	*y = t;
}

void sim_schedule(struct sim *s, uint64_t at, struct sim_event ev)
{
	size_t i = s->n_events;

	if (s->n_events == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 256;
		s->heap = reallocarray(s->heap, s->cap, sizeof *s->heap);
		if (!s->heap)
			abort();
	}
	ev.at = at;
	if (ev.no == 0) {
		ev.no = ++s->next_no;
		ev.due = at;
	}
	s->heap[s->n_events++] = ev;
	for (; i > 0 && earlier(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

bool sim_next(struct sim *s, struct sim_event *ret)
{
	size_t i = 0, c;

	if (s->n_events == 0)
		return false;
	*ret = s->heap[0];
	s->heap[0] = s->heap[--s->n_events];
	while ((c = 2 * i + 1) < s->n_events) {
		if (c + 1 < s->n_events && earlier(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!earlier(&s->heap[c], &s->heap[i]))
			break;
		swap(&s->heap[c], &s->heap[i]);
		i = c;
	}
	return true;
}

void sim_events_free(struct sim *s)
{
	size_t i;

	for (i = 0; i < s->n_events; i++)
		free(s->heap[i].bytes);
	free(s->heap);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failure[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(s->failure, sizeof s->failure, fmt, ap);
	va_end(ap);
	sim_trace(s, "FAILURE: %s", s->failure);
}
