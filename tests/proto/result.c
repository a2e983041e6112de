/* SPDX-License-Identifier: MIT */
#include "proto/shm_result.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/common/testlib.h"
#include "tests/proto/suites.h"

#define REGION ((uint64_t)65536)

static const struct shm_result_limits limits = {.count = 10000, .esize = 4};
static const struct shm_result_words good = {
	.mode = SHM_RESULT_AREA, .hosts = 3, .segment_max = 8192, .off = 64, .flags_off = 40064};

static struct shm_result taken(const struct shm_result_words *w)
{
	struct shm_result r;
	const char *why = "";

	ck_assert_msg(shm_result_get(w, &limits, &r, &why) == 0, "%s", why);
	return r;
}

static void refused(
	struct shm_result_words w, const struct shm_result_limits *lim, const char *expected)
{
	struct shm_result r, was;
	const char *why = NULL;

	memset(&r, 0x5a, sizeof r);
	was = r;
	ck_assert_int_eq(shm_result_get(&w, lim, &r, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
	ck_assert_mem_eq(&r, &was, sizeof r);
}

START_TEST(valid_result_words_are_taken_over)
{
	struct shm_result r = taken(&good);

	ck_assert_uint_eq(r.mode, SHM_RESULT_AREA);
	ck_assert_uint_eq(r.plan.count, 10000);
	ck_assert_uint_eq(r.plan.esize, 4);
	ck_assert_uint_eq(r.plan.hosts, 3);
	ck_assert_uint_eq(r.off, 64);
	ck_assert_uint_eq(r.flags_off, 40064);
}
END_TEST

START_TEST(modes_must_match_the_operation)
{
	struct shm_result_limits registered = limits, staged = limits;
	struct shm_result_words w = good;
	struct shm_result r;
	const char *why;

	registered.out_registered = true;
	ck_assert_int_eq(shm_result_get(&w, &registered, &r, &why), 0);
	w.mode = SHM_RESULT_UNDO;
	ck_assert_int_eq(shm_result_get(&w, &registered, &r, &why), 0);
	ck_assert_uint_eq(r.mode, SHM_RESULT_UNDO);
	refused(w, &limits, "mode");
	w.mode = SHM_RESULT_NONE, refused(w, &registered, "mode");
	w.mode = SHM_RESULT_DIRECT;
	ck_assert_int_eq(shm_result_get(&w, &registered, &r, &why), 0);
	refused(w, &limits, "mode");
	w.mode = SHM_RESULT_STAGED, refused(w, &registered, "mode");
	staged.staged = true;
	ck_assert_int_eq(shm_result_get(&w, &staged, &r, &why), 0);
	ck_assert_uint_eq(r.mode, SHM_RESULT_STAGED);
	w.mode = 5, refused(w, &registered, "mode");
	w.mode = UINT32_MAX, refused(w, &registered, "mode");
}
END_TEST

START_TEST(invalid_segment_sizes_are_refused)
{
	struct shm_result_words w = good;

	w.hosts = 0, refused(w, &limits, "segments");
	w = good, w.segment_max = 0, refused(w, &limits, "segments");
	w.segment_max = 3, refused(w, &limits, "segments");
	w.segment_max = 4;
	ck_assert_uint_ge(taken(&w).plan.n_segs, 10000);
	w = good, w.hosts = 1u << 31;
	ck_assert_uint_eq(taken(&w).plan.n_segs, 1u << 31);
	w.hosts++, refused(w, &limits, "segments");
	w.hosts = UINT32_MAX, refused(w, &limits, "segments");
}
END_TEST

/* The shares decide how many segments there are. */
START_TEST(shares_belong_to_the_plan)
{
	struct shm_result_words w = good;
	const uint32_t n = taken(&good).plan.n_segs;
	struct shm_result r;

	w.shares = 5;
	ck_assert_uint_eq(taken(&w).plan.n_segs, n);
	w.shares = 2 << 16 | 1;
	r = taken(&w);
	ck_assert_uint_eq(r.plan.n_chunks, 6);
	ck_assert_uint_eq(r.plan.part[1], 3333);
	ck_assert_uint_gt(r.plan.n_segs, n);
	w.shares = UINT64_MAX;
	ck_assert_uint_eq(taken(&w).plan.n_chunks, 12);
	w.shares = UINT64_C(1) << 16, refused(w, &limits, "segments");
	w.shares = UINT64_C(1) << 48 | 1, refused(w, &limits, "segments");
	w.shares = UINT64_C(0x0001000100010001), w.hosts = 1u << 30;
	refused(w, &limits, "segments");
}
END_TEST

static void fits(const struct shm_result *r, uint64_t region_size, bool expected)
{
	const char *why = NULL;

	ck_assert_int_eq(shm_result_fits(r, region_size, &why), expected ? 0 : CC_ERR_PROTO);
	if (!expected)
		ck_assert_str_eq(why, "offsets");
}

START_TEST(result_and_flags_must_lie_in_the_region)
{
	struct shm_result r = taken(&good), s = r;
	uint32_t n = r.plan.n_segs;

	fits(&r, REGION, true);
	fits(&r, 40064 + n, true);
	fits(&r, 40064 + n - 1, false);
	fits(&r, 0, false);
	s = r, s.off = REGION - 40000, fits(&s, REGION, true);
	s.off++, fits(&s, REGION, false);
	s.off = REGION + 1, fits(&s, REGION, false);
	s.off = UINT64_MAX - 39999, fits(&s, REGION, false); /* the end is 2^64 */
	s.off = UINT64_MAX, fits(&s, REGION, false);
	s = r, s.flags_off = REGION - n, fits(&s, REGION, true);
	s.flags_off++, fits(&s, REGION, false);
	s.flags_off = REGION + 1, fits(&s, REGION, false);
	s.flags_off = UINT64_MAX - n + 1, fits(&s, REGION, false);
	s.flags_off = UINT64_MAX, fits(&s, REGION, false);
}
END_TEST

/* The result does not lie in the region, so only the flags must fit. */
START_TEST(result_outside_of_the_region_needs_only_flags)
{
	static const enum shm_result_mode elsewhere[] = {SHM_RESULT_STAGED, SHM_RESULT_DIRECT};
	struct shm_result r = taken(&good), s;
	uint32_t n = r.plan.n_segs;

	for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
		r.mode = elsewhere[i];
		s = r, s.off = UINT64_MAX, fits(&s, REGION, true);
		s.flags_off = 0, fits(&s, n, true);
		fits(&s, n - 1, false);
		s.flags_off = 1, fits(&s, n, false);
		s.flags_off = UINT64_MAX - n + 1, fits(&s, REGION, false);
		s.flags_off = UINT64_MAX, fits(&s, REGION, false);
	}
	r.mode = SHM_RESULT_UNDO, r.flags_off = 0;
	fits(&r, 64 + 40000, true);
	fits(&r, 64 + 40000 - 1, false);
}
END_TEST

Suite *result_suite(void)
{
	Suite *s = suite_create("result");
	TCase *tc = tcase_create("result");

	tcase_add_test(tc, valid_result_words_are_taken_over);
	tcase_add_test(tc, modes_must_match_the_operation);
	tcase_add_test(tc, invalid_segment_sizes_are_refused);
	tcase_add_test(tc, shares_belong_to_the_plan);
	tcase_add_test(tc, result_and_flags_must_lie_in_the_region);
	tcase_add_test(tc, result_outside_of_the_region_needs_only_flags);
	suite_add_tcase(s, tc);
	return s;
}
