/* SPDX-License-Identifier: MIT */
#include "common/cc_plan.h"

#include "common/cc_err.h"

#define BYTES_MAX  ((uint64_t)1 << 48)
#define N_SEGS_MAX ((uint64_t)1 << 31)
/* A chunk has at least `segs` segments, or fewer if a segment would be smaller than `least` bytes.
 * So a host sends some segments of the chunk while other segments of the chunk arrive. With more
 * than two hosts, a host sends one chunk while another chunk arrives, and small segments would only
 * cost system calls: in bench/LOG.md, 256 KiB between four hosts take half of the time with one
 * segment instead of eight. */
struct pipeline {
	uint32_t segs, least;
};
static const struct pipeline few_hosts = {8, CC_PLAN_SEGMENT_MIN}, more_hosts = {2, 128 << 10};

/* Returns floor(i * n / parts) for i <= parts < 2^32 and any n. Avoids the product, which would
 * overflow. */
static uint64_t cut(uint64_t n, uint64_t parts, uint64_t i)
{
	return i * (n / parts) + i * (n % parts) / parts;
}

static uint64_t div_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

int cc_plan_init(
	struct cc_plan *p, uint64_t count, uint32_t esize, uint32_t hosts, size_t segment_max)
{
	const struct pipeline *line = hosts > 2 ? &more_hosts : &few_hosts;
	uint64_t longest, segs, pieces;

	if (count == 0 || esize == 0 || hosts == 0 || segment_max < esize)
		return CC_ERR_INVAL;
	if (count > BYTES_MAX / esize)
		return CC_ERR_INVAL;
	longest = div_up(count, hosts);
	segs = div_up(longest, segment_max / esize);
	pieces = longest / div_up(line->least, esize);
	if (pieces > line->segs)
		pieces = line->segs;
	if (segs < pieces)
		segs = pieces;
	if (segs > N_SEGS_MAX / hosts)
		return CC_ERR_INVAL;
	*p = (struct cc_plan){
		.count = count,
		.esize = esize,
		.hosts = hosts,
		.segs_per_chunk = (uint32_t)segs,
		.n_segs = (uint32_t)(segs * hosts),
	};
	return 0;
}

struct cc_span cc_plan_chunk(const struct cc_plan *p, uint32_t chunk)
{
	uint64_t first, end;

	if (chunk >= p->hosts)
		return (struct cc_span){0};
	first = cut(p->count, p->hosts, chunk);
	end = cut(p->count, p->hosts, (uint64_t)chunk + 1);
	return (struct cc_span){.off = first * p->esize, .len = (end - first) * p->esize};
}

struct cc_span cc_plan_segment(const struct cc_plan *p, uint32_t seg)
{
	struct cc_span chunk;
	uint64_t n, i, first, end;

	/* The number may come from another host. A number that is out of range gets an empty span.
	 */
	if (seg >= p->n_segs)
		return (struct cc_span){0};
	chunk = cc_plan_chunk(p, seg / p->segs_per_chunk);
	n = chunk.len / p->esize;
	i = seg % p->segs_per_chunk;
	first = cut(n, p->segs_per_chunk, i);
	end = cut(n, p->segs_per_chunk, i + 1);
	return (struct cc_span){
		.off = chunk.off + first * p->esize,
		.len = (end - first) * p->esize,
	};
}

uint64_t cc_plan_first_byte(const struct cc_plan *p, uint32_t pos)
{
	return cc_plan_chunk(p, cc_plan_first_chunk(p, pos)).off;
}
