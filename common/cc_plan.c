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

/* Cuts the operand into one part per ring. Returns the number of rings, or 0 if the shares are
 * wrong. */
static uint32_t divide(struct cc_plan *p, const struct cc_shares *shares)
{
	uint32_t n = 0, all = 0, before = 0;

	for (uint32_t i = 0; i < CC_RINGS_MAX; i++) {
		if (shares->of[i] > 0 && n < i)
			return 0;
		n += shares->of[i] > 0;
		all += shares->of[i];
	}
	for (uint32_t i = 0; i < n; i++) {
		p->part[i] = cut(p->count, all, before);
		before += shares->of[i];
	}
	n = n > 0 ? n : 1;
	p->part[n] = p->count;
	return n;
}

/* Returns the elements of the longest part. */
static uint64_t longest_part(const struct cc_plan *p, uint32_t rings)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < rings; i++)
		if (p->part[i + 1] - p->part[i] > longest)
			longest = p->part[i + 1] - p->part[i];
	return longest;
}

int cc_plan_init_shares(struct cc_plan *p, uint64_t count, uint32_t esize, uint32_t hosts,
	size_t segment_max, const struct cc_shares *shares)
{
	const struct pipeline *line = hosts > 2 ? &more_hosts : &few_hosts;
	struct cc_plan new = {.count = count, .esize = esize, .hosts = hosts};
	uint64_t longest, segs, pieces, chunks;
	uint32_t rings;

	if (count == 0 || esize == 0 || hosts == 0 || segment_max < esize)
		return CC_ERR_INVAL;
	if (count > BYTES_MAX / esize)
		return CC_ERR_INVAL;
	rings = divide(&new, shares);
	if (rings == 0)
		return CC_ERR_INVAL;
	longest = div_up(longest_part(&new, rings), hosts);
	segs = div_up(longest, segment_max / esize);
	pieces = longest / div_up(line->least, esize);
	if (pieces > line->segs)
		pieces = line->segs;
	if (segs < pieces)
		segs = pieces;
	chunks = (uint64_t)hosts * rings;
	if (segs > N_SEGS_MAX / chunks)
		return CC_ERR_INVAL;
	new.n_chunks = (uint32_t)chunks;
	new.segs_per_chunk = (uint32_t)segs;
	new.n_segs = (uint32_t)(segs * chunks);
	*p = new;
	return 0;
}

int cc_plan_init(
	struct cc_plan *p, uint64_t count, uint32_t esize, uint32_t hosts, size_t segment_max)
{
	const struct cc_shares one = {{0}};

	return cc_plan_init_shares(p, count, esize, hosts, segment_max, &one);
}

uint64_t cc_plan_longest(const struct cc_plan *p)
{
	return longest_part(p, p->n_chunks / p->hosts) / p->hosts / p->segs_per_chunk + 1;
}

struct cc_span cc_plan_chunk(const struct cc_plan *p, uint32_t chunk)
{
	uint64_t from, n, first, end;
	uint32_t ring = 0;

	if (chunk >= p->n_chunks)
		return (struct cc_span){0};
	/* Nearly all operations have one ring, so the division is avoided. */
	if (chunk >= p->hosts) {
		ring = chunk / p->hosts;
		chunk -= ring * p->hosts;
	}
	from = p->part[ring];
	n = p->part[ring + 1] - from;
	first = from + cut(n, p->hosts, chunk);
	end = from + cut(n, p->hosts, (uint64_t)chunk + 1);
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
