/* SPDX-License-Identifier: MIT
 *
 * The plan of an all-reduce: chunks, each of which consists of segments. Agents and shims compute
 * the plan independently from the same few numbers, so it must not depend on anything else. Pure.
 *
 * An operand is cut into one part for each ring of the operation; most operations have one ring
 * (cc_rings.h). Part r of n has the elements from S(r) * count / S(n) on, where S(r) is the sum of
 * the shares before r. Each part is cut into `hosts` chunks: chunk j of a part of c elements holds
 * the elements [j * c / hosts, (j + 1) * c / hosts) of the part. Chunks are numbered over all
 * parts: chunk i belongs to part i / hosts.
 *
 * All chunks have the same number of segments, so segments of a small part are short. Segments are
 * numbered over the whole operation: segment i belongs to chunk i / segs_per_chunk. A segment may
 * be empty (fewer elements than segments); an empty segment is never sent and counts as done.
 *
 * On the ring, chunk j starts at position (hosts - j) % hosts, so a host at position p needs its
 * local input in the order of chunks j0 = (hosts - p) % hosts, j0 + 1, ... modulo hosts: ascending
 * offsets with one wrap-around (cc_plan_first_byte).
 * cc_route.h describes which host sends which chunk to which host.
 */
#ifndef CC_PLAN_H
#define CC_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cc_rings.h"

#define CC_PLAN_SEGMENT_MAX ((size_t)256 * 1024) /* bytes; the default segment size */
#define CC_PLAN_SEGMENT_MIN ((size_t)8 * 1024)

struct cc_plan {
	uint64_t count;          /* elements of the operation */
	uint32_t esize;          /* bytes per element */
	uint32_t hosts;          /* ring size, >= 1 */
	uint32_t n_chunks;       /* hosts * rings */
	uint32_t segs_per_chunk; /* >= 1 */
	uint32_t n_segs;         /* n_chunks * segs_per_chunk */
	/* The first element of the part of each ring. Behind the last part: count. */
	uint64_t part[CC_RINGS_MAX + 1];
};

struct cc_span {
	uint64_t off; /* bytes from the start of the operand */
	uint64_t len; /* bytes, a multiple of esize; may be 0 */
};

/*
 * Computes the plan for one ring. segment_max is in bytes, as sent by the master. Returns 0, or
 * CC_ERR_INVAL if count * esize overflows or exceeds 2^48, or an argument is 0, or there would be
 * more than 2^31 segments. Then *p is unchanged.
 */
int cc_plan_init(
	struct cc_plan *p, uint64_t count, uint32_t esize, uint32_t hosts, size_t segment_max);
/* Does the same for one ring per share. CC_ERR_INVAL also if a share behind a 0 is not 0. */
int cc_plan_init_shares(struct cc_plan *p, uint64_t count, uint32_t esize, uint32_t hosts,
	size_t segment_max, const struct cc_shares *shares);
struct cc_span cc_plan_segment(const struct cc_plan *p, uint32_t seg);
struct cc_span cc_plan_chunk(const struct cc_plan *p, uint32_t chunk);
/* Returns a number of elements that no segment exceeds. */
uint64_t cc_plan_longest(const struct cc_plan *p);
/* Returns the chunk that position pos sends first on the ring. */
static inline uint32_t cc_plan_first_chunk(const struct cc_plan *p, uint32_t pos)
{
	return (p->hosts - pos % p->hosts) % p->hosts;
}
/* Returns the offset of the first input byte that position pos needs on the ring. */
uint64_t cc_plan_first_byte(const struct cc_plan *p, uint32_t pos);

#endif
