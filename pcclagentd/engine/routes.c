/* SPDX-License-Identifier: MIT
 *
 * The part of the routes that one host has in a transfer: from which hosts it receives each chunk,
 * and the lanes to the hosts to which it sends.
 */
#include <stdlib.h>

#include "common/cc_err.h"
#include "pcclagentd/engine/eng_internal.h"

/* Partial sums of a chunk with one child go to the buffer of their stream, not to the inbox. */
static uint32_t count_inputs(const struct eng_xfer_spec *spec, uint32_t n_children)
{
	return n_children > 1 ? n_children * spec->plan.segs_per_chunk : 0;
}

/* Returns the bytes of the longest segment on the network, rounded up to a cache line. */
static uint64_t segment_bytes(const struct eng_xfer_spec *spec)
{
	uint64_t longest = cc_plan_longest(&spec->plan);
	uint64_t sum = longest * spec->plan.esize, result = 0;

	if (spec->quant.on) {
		sum = qnt_wire_size(&spec->quant.sum, longest);
		result = qnt_wire_size(&spec->quant.result, longest);
	}
	return ((sum > result ? sum : result) + 63) / 64 * 64;
}

uint64_t eng_scratch_size(const struct eng_xfer_spec *spec)
{
	struct cc_route route = eng_route_of(spec);
	uint32_t children[CC_ROUTE_FANOUT_MAX];
	uint64_t n = 0;

	for (uint32_t c = 0; c < spec->plan.n_chunks; c++)
		n += count_inputs(spec, cc_route_children(&route, c, spec->pos, children));
	if (spec->quant.on && spec->plan.hosts > 1)
		n += spec->plan.n_segs;
	return n > 0 ? n * segment_bytes(spec) : 0;
}

static void free_chunks(struct eng_routes *r)
{
	free(r->chunks);
	free(r->lanes);
	free(r->targets);
	free(r->origins);
}

/* A host has no more lanes, targets or origins than there are chunks. */
static int grow_chunks(struct eng_routes *r, uint32_t chunks)
{
	if (chunks <= r->cap_chunks)
		return 0;
	free_chunks(r);
	r->cap_chunks = 0;
	r->chunks = calloc(chunks, sizeof *r->chunks);
	r->lanes = calloc(chunks, sizeof *r->lanes);
	r->targets = calloc(chunks, sizeof *r->targets);
	r->origins = calloc(chunks, sizeof *r->origins);
	if (!r->chunks || !r->lanes || !r->targets || !r->origins)
		return CC_ERR_NOMEM;
	r->cap_chunks = chunks;
	return 0;
}

static uint32_t lane_to(
	struct eng_routes *r, const struct eng_xfer_spec *spec, uint32_t chunk, uint32_t pos)
{
	uint32_t ring = spec->route == CC_ALGO_RINGS ? chunk / spec->plan.hosts : 0, i = 0;

	while (i < r->n_lanes && (r->lanes[i].ring != ring || r->lanes[i].pos != pos))
		i++;
	if (i == r->n_lanes)
		r->lanes[r->n_lanes++] =
			(struct eng_lane){.ring = ring, .pos = pos, .link = spec->peers[pos].link};
	return i;
}

static void add_chunk(struct eng_routes *r, const struct eng_xfer_spec *spec, uint32_t chunk)
{
	uint32_t list[CC_ROUTE_FANOUT_MAX], segs = spec->plan.segs_per_chunk;
	struct cc_route route = eng_route_of(spec);
	struct eng_chunk *c = &r->chunks[chunk], *before = chunk > 0 ? c - 1 : NULL;
	uint32_t parent = cc_route_parent(&route, chunk, spec->pos);

	c->n_children = cc_route_children(&route, chunk, spec->pos, list);
	c->first_input = r->n_inputs;
	r->n_inputs += count_inputs(spec, c->n_children);
	c->parent = parent == CC_ROUTE_NONE ? ENG_NO_LANE : lane_to(r, spec, chunk, parent);
	if (c->parent != ENG_NO_LANE && c->n_children > 0)
		r->lanes[c->parent].cap += segs;
	else if (c->parent != ENG_NO_LANE)
		r->lanes[c->parent].n_origins++;
	c->first_target = before ? before->first_target + before->n_targets : 0;
	c->n_targets = cc_route_targets(&route, chunk, spec->pos, list);
	for (uint32_t i = 0; i < c->n_targets; i++) {
		uint32_t lane = lane_to(r, spec, chunk, list[i]);

		r->targets[c->first_target + i] = lane;
		r->lanes[lane].cap += segs;
	}
}

/* Divides the memory of the queues among the lanes. */
static int share_queue(struct eng_routes *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_lanes; i++)
		n += r->lanes[i].cap;
	if (n > r->cap_queue) {
		free(r->queue);
		r->cap_queue = 0;
		r->queue = malloc(n * sizeof *r->queue);
		if (!r->queue)
			return CC_ERR_NOMEM;
		r->cap_queue = n;
	}
	n = 0;
	for (uint32_t i = 0; i < r->n_lanes; i++) {
		r->lanes[i].queue = r->queue + n;
		n += r->lanes[i].cap;
	}
	return 0;
}

/* Lists the chunks that start here. On one ring, they are sent in the order in which processes copy
 * them: the chunk that this host sends first, and then those behind it. */
static void list_origins(struct eng_routes *r, const struct eng_xfer_spec *spec)
{
	uint32_t first = cc_plan_first_chunk(&spec->plan, spec->pos), n = 0;

	for (uint32_t i = 0; i < r->n_lanes; i++) {
		r->lanes[i].origins = r->origins + n;
		n += r->lanes[i].n_origins;
		r->lanes[i].n_origins = 0;
	}
	for (uint32_t i = spec->plan.n_chunks; i-- > 0;) {
		uint32_t chunk = (first + i) % spec->plan.n_chunks;
		const struct eng_chunk *c = &r->chunks[chunk];
		struct eng_lane *l;

		if (c->n_children > 0 || c->parent == ENG_NO_LANE)
			continue;
		l = &r->lanes[c->parent];
		l->origins[l->n_origins++] = (struct eng_origin){.chunk = chunk};
	}
}

/* Do the rings and the plan fit each other? */
static bool rings_fit(const struct eng_xfer_spec *spec)
{
	const struct cc_rings *r = spec->rings;
	uint32_t hosts = spec->plan.hosts, planned = spec->plan.n_chunks / hosts;

	if (spec->route == CC_ALGO_RINGS)
		return r && r->hosts == hosts && r->n == planned;
	return planned == 1 || hosts == 1;
}

int eng_routes_setup(struct eng_routes *r, const struct eng_xfer_spec *spec)
{
	if (spec->route != CC_ALGO_RING && spec->plan.hosts > CC_ROUTE_HOSTS_MAX)
		return CC_ERR_LIMIT;
	if (!rings_fit(spec))
		return CC_ERR_INVAL;
	if (grow_chunks(r, spec->plan.n_chunks) < 0)
		return CC_ERR_NOMEM;
	r->n_lanes = 0;
	r->turn = 0;
	r->n_inputs = 0;
	r->segment_bytes = segment_bytes(spec);
	for (uint32_t c = 0; c < spec->plan.n_chunks; c++)
		add_chunk(r, spec, c);
	list_origins(r, spec);
	return share_queue(r);
}

void eng_routes_free(struct eng_routes *r)
{
	free_chunks(r);
	free(r->queue);
	*r = (struct eng_routes){0};
}
