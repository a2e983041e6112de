/* SPDX-License-Identifier: MIT
 *
 * Properties of cc_plan. Segments cover the operand without gaps, also if it is divided among
 * several rings.
 */
#include "common/cc_plan.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/common/suites.h"
#include "tests/common/testlib.h"

#define BYTES_MAX ((uint64_t)1 << 48)

__extension__ typedef unsigned __int128 u128;

/* Checks that the segments [from, to) follow each other without a gap. Returns the end of the last
 * one. An assertion for each segment would take most of the time of all tests in this folder. */
static uint64_t check_run(const struct cc_plan *p, uint32_t from, uint32_t to, size_t segment_max)
{
	uint64_t at = cc_plan_segment(p, from).off;
	uint32_t i, wrong = to;

	for (i = from; i < to; i++) {
		struct cc_span s = cc_plan_segment(p, i);

		if (wrong == to && (s.off != at || s.len % p->esize != 0 || s.len > segment_max ||
					   s.len > cc_plan_longest(p) * p->esize))
			wrong = i;
		at += s.len;
	}
	ck_assert_msg(wrong == to, "segment %u of %u", wrong, p->n_segs);
	return at;
}

static void check_chunk(const struct cc_plan *p, uint32_t chunk)
{
	struct cc_span c = cc_plan_chunk(p, chunk);
	uint32_t ring = chunk / p->hosts, j = chunk % p->hosts;
	u128 elements = p->part[ring + 1] - p->part[ring];
	u128 first = p->part[ring] + j * elements / p->hosts;
	u128 end = p->part[ring] + (j + (u128)1) * elements / p->hosts;
	struct cc_span s = cc_plan_segment(p, chunk * p->segs_per_chunk);
	struct cc_span l = cc_plan_segment(p, (chunk + 1) * p->segs_per_chunk - 1);

	ck_assert_uint_eq(c.off, (uint64_t)first * p->esize);
	ck_assert_uint_eq(c.len, (uint64_t)(end - first) * p->esize);
	ck_assert_uint_eq(s.off, c.off);
	ck_assert_uint_eq(l.off + l.len, c.off + c.len);
}

/* Checks all segments of a small plan, and samples of a large plan. */
static void check_plan(struct tl_rng *r, const struct cc_plan *p, size_t segment_max)
{
	struct cc_span last = cc_plan_segment(p, p->n_segs - 1);

	ck_assert_uint_eq(p->n_segs, (uint64_t)p->n_chunks * p->segs_per_chunk);
	ck_assert_uint_eq(cc_plan_segment(p, 0).off, 0);
	ck_assert_uint_eq(last.off + last.len, p->count * p->esize);
	ck_assert_uint_eq(cc_plan_segment(p, p->n_segs).len, 0);
	ck_assert_uint_eq(cc_plan_chunk(p, p->n_chunks).len, 0);
	if (p->n_segs <= 2000) {
		ck_assert_uint_eq(check_run(p, 0, p->n_segs, segment_max), p->count * p->esize);
		for (uint32_t j = 0; j < p->n_chunks; j++)
			check_chunk(p, j);
		return;
	}
	for (int i = 0; i < 20; i++) {
		uint32_t from = (uint32_t)tl_range(r, 0, p->n_segs - 100);

		check_run(p, from, from + 100, segment_max);
		check_chunk(p, (uint32_t)tl_range(r, 0, p->n_chunks - 1));
	}
}

START_TEST(segments_cover_the_operand_without_gaps)
{
	static const uint32_t esizes[] = {1, 2, 4, 8};
	struct tl_rng r = tl_rng_new(1);
	int planned = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t esize = esizes[tl_range(&r, 0, 3)];
		uint64_t count = 1 + tl_magnitude(&r, 48) % (BYTES_MAX / esize);
		uint32_t hosts = 1 + (uint32_t)tl_magnitude(&r, 17) % 65536;
		size_t max = 64 + tl_magnitude(&r, 22);
		struct cc_plan p;

		if (cc_plan_init(&p, count, esize, hosts, max) != 0) {
			/* A plan may only be refused if it has too many segments. */
			ck_assert_uint_gt(
				count / hosts / (max / esize) + 2, ((uint64_t)1 << 31) / hosts);
			continue;
		}
		planned++;
		check_plan(&r, &p, max);
	}
	ck_assert_int_gt(planned, 3000);
}
END_TEST

START_TEST(plans_beyond_the_limits_are_refused)
{
	struct cc_plan p = {.n_segs = 77};
	size_t max = CC_PLAN_SEGMENT_MAX;

	ck_assert_int_eq(cc_plan_init(&p, 0, 4, 2, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, 1, 0, 2, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, 1, 4, 0, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, 1, 4, 2, 0), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, 1, 8, 2, 7), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, BYTES_MAX / 8 + 1, 8, 2, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, UINT64_MAX / 4, 8, 2, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, UINT64_MAX, 1, 1, max), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, BYTES_MAX, 1, 1, (1u << 17) - 1), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init(&p, 1, 1, (1u << 31) + 1, max), CC_ERR_INVAL);
	ck_assert_uint_eq(p.n_segs, 77);
	ck_assert_int_eq(cc_plan_init(&p, BYTES_MAX, 1, 1, 1u << 17), 0);
	ck_assert_uint_eq(p.n_segs, 1u << 31);
	ck_assert_int_eq(cc_plan_init(&p, BYTES_MAX / 8, 8, 65536, max), 0);
	ck_assert_int_eq(cc_plan_init(&p, 1, 1, 1u << 31, max), 0);
	ck_assert_int_eq(cc_plan_init(&p, 1, 8, 1, 8), 0);
	ck_assert_uint_eq(p.n_segs, 1);
}
END_TEST

/* Checks that the parts have the sizes of the shares, up to one element. */
static void check_parts(const struct cc_plan *p, const struct cc_shares *s, uint32_t rings)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < rings; i++)
		all += s->of[i];
	ck_assert_uint_eq(p->part[0], 0);
	ck_assert_uint_eq(p->part[rings], p->count);
	for (uint32_t i = 0; i < rings; i++) {
		u128 exact = (u128)p->count * s->of[i] / all;
		uint64_t part = p->part[i + 1] - p->part[i];

		ck_assert_uint_le(p->part[i], p->part[i + 1]);
		ck_assert_uint_le(part, (uint64_t)exact + 1);
		ck_assert_uint_ge(part + 1, (uint64_t)exact);
	}
}

static struct cc_shares random_shares(struct tl_rng *r, uint32_t rings)
{
	static const struct cc_shares extreme[CC_RINGS_MAX + 1] = {[2] = {{1, 65535}},
		[3] = {{65535, 1, 65535}},
		[4] = {{65535, 65535, 65535, 65535}}};
	struct cc_shares s = {{0}};

	if (tl_range(r, 0, 3) == 0 && extreme[rings].of[0] > 0)
		return extreme[rings];
	for (uint32_t i = 0; i < rings; i++)
		s.of[i] = (uint16_t)(1 + tl_magnitude(r, 16) % UINT16_MAX);
	return s;
}

START_TEST(operands_of_several_rings_are_covered_without_gaps)
{
	static const uint32_t esizes[] = {1, 2, 4, 8};
	struct tl_rng r = tl_rng_new(2);
	int planned = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t esize = esizes[tl_range(&r, 0, 3)];
		uint64_t count = 1 + tl_magnitude(&r, 48) % (BYTES_MAX / esize);
		uint32_t hosts = (uint32_t)tl_range(&r, 1, CC_ROUTE_HOSTS_MAX);
		uint32_t rings = (uint32_t)tl_range(&r, 1, CC_RINGS_MAX);
		size_t max = 64 + tl_magnitude(&r, 22);
		struct cc_shares s = random_shares(&r, rings);
		struct cc_plan p;

		if (cc_plan_init_shares(&p, count, esize, hosts, max, &s) != 0)
			continue; /* too many segments */
		planned++;
		ck_assert_uint_eq(p.n_chunks, (uint64_t)hosts * rings);
		check_parts(&p, &s, rings);
		check_plan(&r, &p, max);
	}
	ck_assert_int_gt(planned, 3000);
}
END_TEST

/* The number of segments follows from the longest chunk, and the segments of a short part are
 * short. */
START_TEST(longest_chunk_determines_the_number_of_segments)
{
	const struct cc_shares s = {{1, 3}};
	struct cc_plan p, whole;

	ck_assert_int_eq(cc_plan_init_shares(&p, 4000000, 4, 5, 65536, &s), 0);
	ck_assert_int_eq(cc_plan_init(&whole, 3000000, 4, 5, 65536), 0);
	ck_assert_uint_eq(p.segs_per_chunk, whole.segs_per_chunk);
	ck_assert_uint_eq(cc_plan_chunk(&p, 4).len, 800000);
	ck_assert_uint_eq(cc_plan_chunk(&p, 5).off, 4000000);
	ck_assert_uint_eq(cc_plan_chunk(&p, 5).len, 2400000);
	ck_assert_uint_le(cc_plan_segment(&p, 0).len, 800000 / p.segs_per_chunk + 4);
}
END_TEST

START_TEST(plan_of_one_share_is_that_of_one_ring)
{
	struct tl_rng r = tl_rng_new(7);

	for (int i = 0; i < 2000; i++) {
		struct cc_shares s = {{(uint16_t)(tl_magnitude(&r, 16))}};
		uint64_t count = 1 + tl_magnitude(&r, 40);
		uint32_t hosts = 1 + (uint32_t)tl_magnitude(&r, 17);
		size_t max = 64 + tl_magnitude(&r, 22);
		struct cc_plan one, p;
		int err = cc_plan_init(&one, count, 4, hosts, max);

		ck_assert_int_eq(cc_plan_init_shares(&p, count, 4, hosts, max, &s), err);
		if (err != 0)
			continue;
		ck_assert(one.n_chunks == hosts && p.n_chunks == hosts);
		ck_assert_uint_eq(p.segs_per_chunk, one.segs_per_chunk);
		ck_assert_uint_eq(p.n_segs, one.n_segs);
		ck_assert_mem_eq(p.part, one.part, sizeof p.part);
	}
}
END_TEST

/* Shares come from shared memory, too. */
START_TEST(wrong_shares_are_refused)
{
	static const struct cc_shares wrong[] = {
		{{0, 1}}, {{1, 0, 1}}, {{0, 0, 0, 9}}, {{1, 1, 0, 1}}};
	const struct cc_shares four = {{1, 1, 1, 1}};
	struct cc_plan p = {.n_segs = 77};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ck_assert_int_eq(
			cc_plan_init_shares(&p, 1000, 4, 3, 4096, &wrong[i]), CC_ERR_INVAL);
	/* hosts * 4 exceeds 32 bits, or there are too many segments. */
	ck_assert_int_eq(cc_plan_init_shares(&p, 1, 4, 1u << 30, 4, &four), CC_ERR_INVAL);
	ck_assert_int_eq(cc_plan_init_shares(&p, 1, 4, UINT32_MAX, 4, &four), CC_ERR_INVAL);
	ck_assert_uint_eq(p.n_segs, 77);
	ck_assert_int_eq(cc_plan_init_shares(&p, 1, 4, 1u << 29, 4, &four), 0);
	ck_assert_uint_eq(p.n_segs, 1u << 31);
}
END_TEST

static uint32_t segs(uint64_t bytes, uint32_t hosts)
{
	struct cc_plan p;

	ck_assert_int_eq(cc_plan_init(&p, bytes / 4, 4, hosts, CC_PLAN_SEGMENT_MAX), 0);
	return p.segs_per_chunk;
}

START_TEST(chunk_size_determines_the_number_of_segments)
{
	const uint64_t min = CC_PLAN_SEGMENT_MIN, max = CC_PLAN_SEGMENT_MAX;

	/* A chunk whose halves would be too small has one segment. */
	ck_assert_uint_eq(segs(4, 2), 1);
	ck_assert_uint_eq(segs(2 * min, 2), 1);
	ck_assert_uint_eq(segs(2 * (2 * min) - 8, 2), 1);
	/* A larger chunk has up to eight segments, each of at least the minimum size. */
	ck_assert_uint_eq(segs(2 * (2 * min), 2), 2);
	ck_assert_uint_eq(segs(2 * (3 * min), 2), 3);
	ck_assert_uint_eq(segs(2 * (8 * min) - 8, 2), 7);
	ck_assert_uint_eq(segs(2 * (8 * min), 2), 8);
	ck_assert_uint_eq(segs(2 * (8 * max), 2), 8);
	/* For still larger chunks the maximum size of a segment determines the number. */
	ck_assert_uint_eq(segs(2 * (8 * max) + 8, 2), 9);
	ck_assert_uint_eq(segs((uint64_t)1 << 30, 1), 4096);
	/* With more hosts a chunk has up to two segments, each of at least 128 KiB. */
	ck_assert_uint_eq(segs(3 * (256 << 10) - 12, 3), 1);
	ck_assert_uint_eq(segs(3ull * (256 << 10), 3), 2);
	ck_assert_uint_eq(segs(3 * (2 * max), 3), 2);
	ck_assert_uint_eq(segs(3 * (2 * max) + 12, 3), 3);
}
END_TEST

#define RING_MAX 9

/* A host needs its input in ascending order, beginning at first_byte, with one wrap-around. */
START_TEST(input_is_needed_in_ascending_order)
{
	for (uint32_t hosts = 1; hosts <= RING_MAX; hosts++) {
		struct cc_plan p;

		ck_assert_int_eq(cc_plan_init(&p, 1000, 4, hosts, 64), 0);
		for (uint32_t pos = 0; pos < hosts; pos++) {
			uint64_t at = cc_plan_first_byte(&p, pos);

			for (uint32_t i = 0; i < hosts; i++) {
				uint32_t chunk = (cc_plan_first_chunk(&p, pos) + i) % hosts;
				struct cc_span s = cc_plan_chunk(&p, chunk);

				ck_assert_uint_eq(s.off, at % 4000);
				at = s.off + s.len;
			}
		}
	}
}
END_TEST

Suite *plan_suite(void)
{
	Suite *s = suite_create("plan");
	TCase *tc = tcase_create("plan");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, segments_cover_the_operand_without_gaps);
	tcase_add_test(tc, operands_of_several_rings_are_covered_without_gaps);
	tcase_add_test(tc, longest_chunk_determines_the_number_of_segments);
	tcase_add_test(tc, plan_of_one_share_is_that_of_one_ring);
	tcase_add_test(tc, wrong_shares_are_refused);
	tcase_add_test(tc, plans_beyond_the_limits_are_refused);
	tcase_add_test(tc, chunk_size_determines_the_number_of_segments);
	tcase_add_test(tc, input_is_needed_in_ascending_order);
	suite_add_tcase(s, tc);
	return s;
}
