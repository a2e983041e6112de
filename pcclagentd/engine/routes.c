/* SPDX-License-Identifier: MIT
 *
 * The part of the routes that one host has in a transfer: from which hosts it receives each chunk,
 * and the lanes to the hosts to which it sends.
 */
#include <stdlib.h>

#include "common/cc_err.h"
#include "pcclagentd/engine/eng_internal.h"

static struct cc_route route_of(const struct eng_xfer_spec *spec)
{
	return (struct cc_route){.algo = spec->route, .hosts = spec->plan.hosts};
}

/* Partial sums of a chunk with one child go to the buffer of their stream, not to the inbox. */
static uint32_t count_inputs(const struct eng_xfer_spec *spec, uint32_t n_children)
{
	return n_children > 1 ? n_children * spec->plan.segs_per_chunk : 0;
}

/* Returns the bytes of the longest segment on the network, rounded up to a cache line. */
static uint64_t segment_bytes(const struct eng_xfer_spec *spec)
{
	uint64_t longest = spec->plan.count / spec->plan.n_segs + 1;
	uint64_t sum = longest * spec->plan.esize, result = 0;

	if (spec->quant.on) {
		sum = qnt_wire_size(&spec->quant.sum, longest);
		result = qnt_wire_size(&spec->quant.result, longest);
	}
	return ((sum > result ? sum : result) + 63) / 64 * 64;
}

uint64_t eng_scratch_size(const struct eng_xfer_spec *spec)
{
	struct cc_route route = route_of(spec);
	uint32_t children[CC_ROUTE_FANOUT_MAX];
	uint64_t n = 0;

	for (uint32_t c = 0; c < spec->plan.hosts; c++)
		n += count_inputs(spec, cc_route_children(&route, c, spec->pos, children));
	if (spec->quant.on && spec->plan.hosts > 1)
		n += spec->plan.n_segs;
	return n > 0 ? n * segment_bytes(spec) : 0;
}

static int grow_hosts(struct eng_routes *r, uint32_t hosts)
{
	if (hosts <= r->cap_hosts)
		return 0;
	eng_routes_free(r);
	r->chunks = calloc(hosts, sizeof *r->chunks);
	r->lanes = calloc(hosts, sizeof *r->lanes);
	r->targets = calloc(hosts, sizeof *r->targets);
	if (!r->chunks || !r->lanes || !r->targets)
		return CC_ERR_NOMEM;
	r->cap_hosts = hosts;
	return 0;
}

static uint32_t lane_to(struct eng_routes *r, const struct eng_xfer_spec *spec, uint32_t pos)
{
	uint32_t i = 0;

	while (i < r->n_lanes && r->lanes[i].pos != pos)
		i++;
	if (i == r->n_lanes)
		r->lanes[r->n_lanes++] = (struct eng_lane){.pos = pos,
			.link = spec->peers[pos].link,
			.origin_chunk = cc_plan_first_chunk(&spec->plan, spec->pos),
			.chunks_left = spec->plan.hosts};
	return i;
}

static void add_chunk(struct eng_routes *r, const struct eng_xfer_spec *spec, uint32_t chunk)
{
	uint32_t list[CC_ROUTE_FANOUT_MAX], segs = spec->plan.segs_per_chunk;
	struct cc_route route = route_of(spec);
	struct eng_chunk *c = &r->chunks[chunk], *before = chunk > 0 ? c - 1 : NULL;
	uint32_t parent = cc_route_parent(&route, chunk, spec->pos);

	c->n_children = cc_route_children(&route, chunk, spec->pos, list);
	c->first_input = r->n_inputs;
	r->n_inputs += count_inputs(spec, c->n_children);
	c->parent = parent == CC_ROUTE_NONE ? ENG_NO_LANE : lane_to(r, spec, parent);
	if (c->parent != ENG_NO_LANE && c->n_children > 0)
		r->lanes[c->parent].cap += segs;
	c->first_target = before ? before->first_target + before->n_targets : 0;
	c->n_targets = cc_route_targets(&route, chunk, spec->pos, list);
	for (uint32_t i = 0; i < c->n_targets; i++) {
		uint32_t lane = lane_to(r, spec, list[i]);

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

int eng_routes_setup(struct eng_routes *r, const struct eng_xfer_spec *spec)
{
	uint32_t hosts = spec->plan.hosts;

	if (spec->route != CC_ALGO_RING && hosts > CC_ROUTE_HOSTS_MAX)
		return CC_ERR_LIMIT;
	if (grow_hosts(r, hosts) < 0)
		return CC_ERR_NOMEM;
	r->n_lanes = 0;
	r->n_inputs = 0;
	r->segment_bytes = segment_bytes(spec);
	for (uint32_t c = 0; c < hosts; c++)
		add_chunk(r, spec, c);
	return share_queue(r);
}

void eng_routes_free(struct eng_routes *r)
{
	free(r->chunks);
	free(r->lanes);
	free(r->targets);
	free(r->queue);
	*r = (struct eng_routes){0};
}
