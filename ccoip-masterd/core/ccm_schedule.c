/* SPDX-License-Identifier: MIT
 *
 * Edges are taken by the distance from `from` to `to`, modulo the number of hosts. Edges of equal
 * distance fit into one round, or into two if this distance is half of the number. Each edge goes
 * into the first round that has room for it.
 */
#include "ccoip-masterd/core/ccm_schedule.h"

#include <stdlib.h>

#include "common/cc_must.h"

struct timetable {
	uint32_t hosts, rounds;
	/* By round and host: the host at the other end, plus one; 0: none. */
	uint16_t *sends, *receives;
};

static uint32_t take_round(struct timetable *t, const struct ccm_edge *e)
{
	uint32_t r = 0;
	size_t row;

	for (;; r++) {
		row = (size_t)r * t->hosts;
		if (!t->sends[row + e->from] && !t->receives[row + e->to] &&
			t->sends[row + e->to] != e->from + 1)
			break;
	}
	t->sends[row + e->from] = (uint16_t)(e->to + 1);
	t->receives[row + e->to] = (uint16_t)(e->from + 1);
	if (r + 1 > t->rounds)
		t->rounds = r + 1;
	return r;
}

/* Sorts by counting: edges with equal keys keep their order. */
static void sort(struct ccm_edge *v, uint32_t n, uint32_t keys,
	uint32_t (*key)(const struct ccm_edge *e, uint32_t hosts), uint32_t hosts)
{
	struct ccm_edge *copy = cc_must_copy(v, n, sizeof *v);
	uint32_t *at = cc_must_zalloc((size_t)keys + 1, sizeof *at), i;

	for (i = 0; i < n; i++)
		at[key(&v[i], hosts) + 1]++;
	for (i = 0; i < keys; i++)
		at[i + 1] += at[i];
	for (i = 0; i < n; i++)
		v[at[key(&copy[i], hosts)]++] = copy[i];
	free(copy);
	free(at);
}

static uint32_t distance(const struct ccm_edge *e, uint32_t hosts)
{
	return (e->to + hosts - e->from) % hosts;
}

static uint32_t round_of(const struct ccm_edge *e, uint32_t hosts)
{
	(void)hosts;
	return e->round;
}

uint32_t ccm_schedule(struct ccm_edge *v, uint32_t n, uint32_t hosts)
{
	/* An edge cannot be in a round with less than 2 * hosts others, so a round of these is
	 * free.
	 */
	size_t size = (size_t)2 * hosts * hosts;
	struct timetable t = {.hosts = hosts};
	uint32_t i;

	t.sends = cc_must_zalloc(size, sizeof *t.sends);
	t.receives = cc_must_zalloc(size, sizeof *t.receives);
	sort(v, n, hosts, distance, hosts);
	for (i = 0; i < n; i++)
		v[i].round = take_round(&t, &v[i]);
	sort(v, n, t.rounds, round_of, hosts);
	free(t.sends);
	free(t.receives);
	return t.rounds;
}
