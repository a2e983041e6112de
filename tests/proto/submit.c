/* SPDX-License-Identifier: MIT */
#include "proto/shm_submit.h"

#include <stdio.h>
#include <string.h>

#include "common/cc_err.h"
#include "kernels/krn.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

#define REGION  ((uint64_t)8192)
#define LARGEST ((uint64_t)1 << 48)

/* An all-reduce: the maximum of 1000 doubles. Operand and output are registered and lie in one
 * region. */
static const struct shm_sqe good = {.slot = 5,
	.flags = SHM_SQE_IN_REGISTERED | SHM_SQE_OUT_REGISTERED,
	.tag = UINT64_MAX,
	.count = 1000,
	.dtype = 11,
	.op = 3,
	.in_region = 17,
	.in_off = 192,
	.in_start = 800,
	.in_second = 1600,
	.out_region = 18,
	.out_off = 64};
static const struct shm_submit_limits limits = {
	.busy = ~((uint64_t)1 << 5), .in_size = REGION, .out_size = REGION};

static struct shm_submission taken(const struct shm_sqe *e, const struct shm_submit_limits *lim)
{
	struct shm_submission ret;
	char why[SHM_TEXT] = "";
	int err = shm_submission_get(e, lim, &ret, why);

	ck_assert_msg(err == 0, "%d: %s", err, why);
	return ret;
}

static void refused_by(
	const struct shm_sqe *e, const struct shm_submit_limits *lim, int err, const char *expected)
{
	struct shm_submission ret, was;
	char why[SHM_TEXT];

	memset(&ret, 0x5a, sizeof ret);
	was = ret;
	memset(why, 'x', sizeof why);
	ck_assert_int_eq(shm_submission_get(e, lim, &ret, why), err);
	ck_assert_ptr_nonnull(memchr(why, '\0', sizeof why));
	ck_assert_str_eq(why, expected);
	ck_assert_mem_eq(&ret, &was, sizeof ret);
}

static void refused(struct shm_sqe e, const char *expected)
{
	refused_by(&e, &limits, CC_ERR_INVAL, expected);
}

START_TEST(valid_submission_is_taken_over)
{
	struct shm_submission s = taken(&good, &limits);
	const struct shm_submission expected = {.slot = 5,
		.dtype = 11,
		.op = 3,
		.tag = UINT64_MAX,
		.count = 1000,
		.bytes = 8000,
		.in_registered = true,
		.out_registered = true,
		.in_off = 192,
		.in_start = 800,
		.in_second = 1600,
		.out_off = 64};

	ck_assert(same_submission(&s, &expected));
}
END_TEST

START_TEST(random_submissions_are_accepted)
{
	struct tl_rng r = tl_rng_new(1);

	for (int i = 0; i < 20000; i++) {
		struct shm_submit_limits lim;
		struct shm_sqe e = sample_entry(&r, &lim);
		struct shm_submission s = taken(&e, &lim);

		ck_assert_uint_eq(s.slot, e.slot);
		ck_assert_uint_eq(s.tag, e.tag);
		ck_assert_uint_eq(s.bytes, e.count * sample_dtype_size(e.dtype));
		ck_assert_int_eq(s.in_registered, (e.flags & SHM_SQE_IN_REGISTERED) != 0);
		ck_assert_int_eq(s.out_registered, (e.flags & SHM_SQE_OUT_REGISTERED) != 0);
		ck_assert_uint_eq(s.out_off, s.out_registered ? e.out_off : 0);
	}
}
END_TEST

START_TEST(slot_must_exist_and_be_free)
{
	struct shm_submit_limits lim = {.in_size = REGION, .out_size = REGION};
	struct shm_sqe e = good;

	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		char text[64];

		e.slot = i;
		lim.busy = ~((uint64_t)1 << i);
		ck_assert_uint_eq(taken(&e, &lim).slot, i);
		lim.busy = (uint64_t)1 << i;
		snprintf(text, sizeof text, "slot %u is in use", (unsigned)i);
		refused_by(&e, &lim, CC_ERR_PROTO, text);
	}
	lim.busy = 0;
	e.slot = SHM_SLOTS;
	refused_by(&e, &lim, CC_ERR_PROTO, "slot 64 does not exist");
	e.slot = UINT32_MAX;
	e.dtype = 99; /* the slot is checked first */
	refused_by(&e, &lim, CC_ERR_PROTO, "slot 4294967295 does not exist");
}
END_TEST

START_TEST(entry_for_a_refused_call_needs_no_parameters)
{
	struct shm_sqe e = {
		.slot = 5, .flags = SHM_SQE_REFUSED, .tag = 9, .generation = 2, .refused = 7};
	struct shm_submit_limits lim = limits;
	struct shm_submission s = taken(&e, &limits);

	ck_assert_uint_eq(s.refused, 7);
	ck_assert_uint_eq(s.slot, 5);
	ck_assert_uint_eq(s.tag, 9);
	ck_assert_uint_eq(s.generation, 2);
	ck_assert(!s.is_sync);
	e.refused = 0;
	refused_by(&e, &limits, CC_ERR_INVAL, "refused: 0, must be 1 to 255");
	e.refused = 256;
	refused_by(&e, &limits, CC_ERR_INVAL, "refused: 256, must be 1 to 255");
	e.refused = 7;
	e.flags |= SHM_SQE_IN_REGISTERED;
	refused_by(&e, &limits, CC_ERR_INVAL, "flags: unknown bits 0x1");
	e.flags = SHM_SQE_REFUSED | SHM_SQE_SYNC;
	refused_by(&e, &limits, CC_ERR_INVAL, "tag: must be 0");
	e.tag = 0;
	ck_assert(taken(&e, &limits).is_sync);
	lim.busy = UINT64_MAX;
	refused_by(&e, &lim, CC_ERR_PROTO, "slot 5 is in use");
}
END_TEST

START_TEST(unknown_types_and_operations_are_refused)
{
	struct shm_sqe e = good;

	e.in_start = e.in_second = 0;
	for (e.dtype = 0; e.dtype < KRN_DTYPE_COUNT; e.dtype++)
		for (e.op = 0; e.op < KRN_OP_COUNT; e.op++)
			ck_assert_uint_eq(taken(&e, &limits).bytes,
				1000 * krn_dtype_size((enum krn_dtype)e.dtype));
	e.op = 0;
	refused(e, "data type: 12 is not one of the 12 pcclDataType_t");
	e.dtype = UINT32_MAX;
	refused(e, "data type: 4294967295 is not one of the 12 pcclDataType_t");
	e.dtype = 0;
	e.op = 5;
	refused(e, "operation: 5 is not one of the 5 pcclRedOp_t");
	e.op = UINT32_MAX;
	refused(e, "operation: 4294967295 is not one of the 5 pcclRedOp_t");
	e.dtype = KRN_F64;
	e.quant_algo = 1 | WIRE_QUANT_FEEDBACK;
	for (e.op = 0; e.op < 2; e.op++)
		ck_assert_uint_eq(taken(&e, &limits).quant.algo, e.quant_algo);
	refused(e, "error feedback is only for sum and avg, not for prod");
	e.op = 4;
	refused(e, "error feedback is only for sum and avg, not for min");
	e.dtype = 0;
	e.quant_algo = 1;
	refused(e, "uint8 elements cannot be quantized to uint8 by minmax");
	e.quant_algo = UINT32_MAX;
	refused(e, "there is no quantization algorithm -1");
}
END_TEST

START_TEST(unknown_flags_are_refused)
{
	struct shm_sqe e = good;

	for (unsigned bit = 3; bit < 32; bit++) {
		char text[64];

		if ((1u << bit) &
			(SHM_SQE_OUT_DISPOSABLE | SHM_SQE_MAIN | SHM_SQE_WAITED | SHM_SQE_REFUSED))
			continue;
		e.flags = good.flags | 1u << bit;
		snprintf(text, sizeof text, "flags: unknown bits %#x", 1u << bit);
		refused(e, text);
	}
	e = good, e.flags |= SHM_SQE_MAIN;
	ck_assert(taken(&e, &limits).by_main && !taken(&e, &limits).waited);
	e = good, e.flags |= SHM_SQE_WAITED;
	ck_assert(!taken(&e, &limits).by_main && taken(&e, &limits).waited);
	e = good, e.flags = 0;
	ck_assert(!taken(&e, &limits).in_registered && !taken(&e, &limits).out_registered);
	e = good, e.flags = SHM_SQE_IN_REGISTERED;
	ck_assert(taken(&e, &limits).in_registered && !taken(&e, &limits).out_registered);
	e = good, e.flags = SHM_SQE_OUT_REGISTERED;
	ck_assert(!taken(&e, &limits).in_registered && taken(&e, &limits).out_registered);
}
END_TEST

/* The largest operand of each type is accepted. One more element is refused, and so is a count
 * whose size in bytes overflows 64 bits to a small number. */
START_TEST(limit_of_the_count_is_enforced)
{
	struct shm_submit_limits lim = {.in_size = UINT64_MAX, .out_size = UINT64_MAX};
	struct shm_sqe e = good;

	for (e.dtype = 0; e.dtype < 12; e.dtype++) {
		uint64_t size = sample_dtype_size(e.dtype), bad[4];

		e.count = LARGEST / size;
		ck_assert_uint_eq(taken(&e, &lim).bytes, LARGEST);
		bad[0] = e.count + 1;
		bad[1] = UINT64_MAX;
		bad[2] = UINT64_MAX / size + 1;
		bad[3] = (uint64_t)1 << 63;
		for (int i = 0; i < 4; i++) {
			char text[80];

			if (size == 1 && i == 2)
				continue; /* the number does not exist */
			e.count = bad[i];
			snprintf(text, sizeof text, "count: %llu elements are more than 2^48 bytes",
				(unsigned long long)e.count);
			refused_by(&e, &lim, CC_ERR_INVAL, text);
		}
	}
	e = good;
	e.in_start = e.in_second = 0;
	e.count = 1;
	ck_assert_uint_eq(taken(&e, &limits).bytes, 8);
	e.count = 0;
	refused(e, "count: must be at least 1");
}
END_TEST

START_TEST(unknown_regions_are_refused)
{
	struct shm_submit_limits lim = limits;
	struct shm_sqe e = good;

	lim.in_size = 0;
	refused_by(&e, &lim, CC_ERR_INVAL, "in_region: this process has no memory region 17");
	lim = limits;
	lim.out_size = 0;
	refused_by(&e, &lim, CC_ERR_INVAL, "out_region: this process has no memory region 18");
	e.flags = SHM_SQE_IN_REGISTERED; /* then out_off is ignored */
	e.out_off = UINT64_MAX;
	ck_assert_uint_eq(taken(&e, &lim).out_off, 0);
}
END_TEST

START_TEST(operand_and_output_must_lie_in_their_regions)
{
	static const struct {
		uint64_t off;
		const char *text;
	} bad[] = {
		{193, "8000 bytes at offset 193 do not"},
		{REGION, "8000 bytes at offset 8192 do not"},
		{REGION + 1, "8000 bytes at offset 8193 do not"},
		{(uint64_t)1 << 63, "8000 bytes at offset 9223372036854775808 do not"},
		{UINT64_MAX - 7999, "8000 bytes at offset 18446744073709543616 do not"},
		{UINT64_MAX, "8000 bytes at offset 18446744073709551615 do not"},
	};
	char text[SHM_TEXT];
	struct shm_sqe e = good;

	e.in_off = e.out_off = REGION - 8000;
	taken(&e, &limits);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		e = good;
		e.in_off = bad[i].off;
		snprintf(text, sizeof text, "in_off: %s lie in region 17 of 8192 bytes",
			bad[i].text);
		refused(e, text);
		e = good;
		e.out_off = bad[i].off;
		snprintf(text, sizeof text, "out_off: %s lie in region 18 of 8192 bytes",
			bad[i].text);
		refused(e, text);
	}
	e = good;
	e.in_off = 0;
	e.count = REGION / 8;
	e.flags = 0;
	taken(&e, &limits);
	e.count++;
	refused(e, "in_off: 8200 bytes at offset 0 do not lie in region 17 of 8192 bytes");
}
END_TEST

START_TEST(copying_order_must_lie_in_the_operand)
{
	struct shm_sqe e = good;

	for (e.in_start = 0, e.in_second = 8000; e.in_start <= 8000; e.in_start += 8)
		ck_assert_uint_eq(taken(&e, &limits).in_start, e.in_start);
	for (e.in_start = e.in_second = 0; e.in_second <= 8000; e.in_second += 8)
		ck_assert_uint_eq(taken(&e, &limits).in_second, e.in_second);
	e.in_second = 8001;
	refused(e, "in_second: 8001 is beyond the 8000 bytes");
	e.in_second = UINT64_MAX;
	refused(e, "in_second: 18446744073709551615 is beyond the 8000 bytes");
	e.in_second = 800, e.in_start = 808;
	refused(e, "in_start: 808 is beyond in_second, 800");
	e.in_start = UINT64_MAX;
	refused(e, "in_start: 18446744073709551615 is beyond in_second, 800");
	for (e.in_start = 1; e.in_start < 8; e.in_start++) {
		char text[64];

		snprintf(text, sizeof text, "in_start: %u is within an element of 8 bytes",
			(unsigned)e.in_start);
		refused(e, text);
	}
	e.in_start = 0, e.in_second = 4;
	refused(e, "in_second: 4 is within an element of 8 bytes");
}
END_TEST

START_TEST(limits_of_windows_are_enforced)
{
	struct shm_submit_limits lim = limits;
	struct shm_sqe e = good;

	e.flags = 0;
	e.in_off = e.in_start = e.in_second = 0;
	e.count = 1000000;
	e.window = 2;
	lim.in_size = 2 * CC_PLAN_SEGMENT_MAX;
	ck_assert_uint_eq(taken(&e, &lim).window, 2);
	lim.in_size--;
	refused_by(&e, &lim, CC_ERR_INVAL,
		"in_off: 524288 bytes at offset 0 do not lie in region 17 of 524287 bytes");
	lim.in_size = UINT64_MAX;
	e.window = SHM_WINDOW_MAX;
	ck_assert_uint_eq(taken(&e, &lim).window, SHM_WINDOW_MAX);
	e.window++;
	refused_by(&e, &lim, CC_ERR_INVAL, "window: 1025 segments, must be at most 1024");
	e.window = 1, e.in_second = 8;
	refused_by(&e, &lim, CC_ERR_INVAL,
		"window: only for operands that are staged from their beginning");
	e.in_second = 0, e.flags = SHM_SQE_IN_REGISTERED;
	refused_by(&e, &lim, CC_ERR_INVAL,
		"window: only for operands that are staged from their beginning");
}
END_TEST

/* A disposable output must not overlap the operand. */
START_TEST(operand_is_never_disposable)
{
	struct shm_sqe e = good;

	e.count = 10; /* 80 bytes */
	e.in_start = e.in_second = 0;
	e.flags |= SHM_SQE_OUT_DISPOSABLE;
	ck_assert(taken(&e, &limits).out_disposable);
	ck_assert(!taken(&good, &limits).out_disposable);
	e.out_region = e.in_region;
	for (e.out_off = e.in_off - 79; e.out_off < e.in_off + 80; e.out_off++)
		refused(e, "out_off: the output overlaps the operand, which must be kept");
	ck_assert(taken(&e, &limits).out_disposable);
	e.out_off = e.in_off - 80;
	ck_assert(taken(&e, &limits).out_disposable);
	e.flags &= ~(uint32_t)SHM_SQE_OUT_REGISTERED;
	refused(e, "flags: an output must be registered to be disposable");
}
END_TEST

/* A synchronization of 9 tensors with 300 bytes. */
static const struct shm_sqe good_sync = {.slot = 5,
	.flags = SHM_SQE_SYNC,
	.sync = {.keys = {1, 2},
		.content = {3, 4},
		.region = 17,
		.revision = UINT64_MAX,
		.bytes = 300,
		.n_tensors = 9,
		.strategy = 2,
		.hash_type = 1,
		.torn = 1},
	.generation = 6};

START_TEST(valid_synchronizations_are_accepted)
{
	struct tl_rng r = tl_rng_new(3);
	struct shm_submission s = taken(&good_sync, &limits);
	const struct shm_submission expected = {.slot = 5,
		.generation = 6,
		.by_main = true,
		.waited = true,
		.is_sync = true,
		.sync = {.revision = UINT64_MAX,
			.strategy = WM_STRATEGY_SEND_ONLY,
			.hash_type = WM_HASH_SIMPLE,
			.keys = {.hi = 1, .lo = 2},
			.content = {.hi = 3, .lo = 4},
			.n_tensors = 9,
			.bytes = 300,
			.torn = true}};

	ck_assert(same_submission(&s, &expected));
	for (int i = 0; i < 2000; i++) {
		struct shm_submit_limits lim;
		struct shm_sqe e = sample_sync_entry(&r, &lim);

		s = taken(&e, &lim);
		ck_assert(s.is_sync);
		ck_assert_uint_eq(s.sync.revision, e.sync.revision);
		ck_assert_uint_eq(s.sync.content.lo, e.sync.content[1]);
		ck_assert_uint_eq(s.sync.torn, e.sync.torn);
		ck_assert(s.synced == ((e.flags & SHM_SQE_SYNCED) != 0));
		ck_assert_uint_eq(s.generation, e.generation);
		ck_assert_uint_eq(s.count, 0);
		/* in_region and sync.region name the same field. */
		ck_assert_uint_eq(e.in_region, e.sync.region);
	}
}
END_TEST

START_TEST(limits_of_synchronizations_are_enforced)
{
	struct shm_submit_limits lim = limits;
	struct shm_sqe e = good_sync;

	e.slot = SHM_SLOTS;
	refused_by(&e, &limits, CC_ERR_PROTO, "slot 64 does not exist");
	e = good_sync;
	e.flags |= SHM_SQE_IN_REGISTERED;
	refused(e, "flags: unknown bits 0x1");
	e.flags = SHM_SQE_SYNC | 1u << 31;
	refused(e, "flags: unknown bits 0x80000000");
	e.flags = SHM_SQE_SYNC | SHM_SQE_SYNCED | SHM_SQE_OUT_REGISTERED;
	refused(e, "flags: unknown bits 0x2");
	e = good_sync;
	e.sync.torn = 2;
	refused(e, "torn: 2, must be 0 or 1");
	e = good_sync;
	e.tag = 1;
	refused(e, "tag: must be 0");
	lim.in_size = 0;
	refused_by(&good_sync, &lim, CC_ERR_INVAL, "region: this process has no memory region 17");
	e = good_sync;
	e.sync.strategy = 3;
	refused(e, "strategy: 3 is not one of the 3 pcclSharedStateSyncStrategy_t");
	e = good_sync;
	e.sync.hash_type = 0;
	refused(e, "hash_type: 0, must be 1 to 255");
	e.sync.hash_type = 256;
	refused(e, "hash_type: 256, must be 1 to 255");
	e = good_sync;
	e.sync.n_tensors = 1048576;
	taken(&e, &limits);
	e.sync.n_tensors++;
	refused(e, "count: 1048577 tensors, must be at most 1048576");
	e = good_sync;
	e.sync.bytes = LARGEST;
	taken(&e, &limits);
	e.sync.bytes++;
	refused(e, "tensors: 281474976710657 bytes in all are more than 2^48");
}
END_TEST

/* Fields without a meaning are ignored. */
START_TEST(unused_fields_are_ignored)
{
	struct shm_sqe e = good;
	struct shm_submission a = taken(&good, &limits), b;

	e.src_hint = e.quant_dtype = UINT32_MAX;
	memset(e.pad, 0xff, sizeof e.pad);
	b = taken(&e, &limits);
	ck_assert(same_submission(&a, &b));
}
END_TEST

Suite *submit_suite(void)
{
	Suite *s = suite_create("submit");
	TCase *tc = tcase_create("submit");

	tcase_add_test(tc, valid_submission_is_taken_over);
	tcase_add_test(tc, random_submissions_are_accepted);
	tcase_add_test(tc, valid_synchronizations_are_accepted);
	tcase_add_test(tc, limits_of_synchronizations_are_enforced);
	tcase_add_test(tc, slot_must_exist_and_be_free);
	tcase_add_test(tc, unknown_types_and_operations_are_refused);
	tcase_add_test(tc, entry_for_a_refused_call_needs_no_parameters);
	tcase_add_test(tc, unknown_flags_are_refused);
	tcase_add_test(tc, limit_of_the_count_is_enforced);
	tcase_add_test(tc, unknown_regions_are_refused);
	tcase_add_test(tc, operand_and_output_must_lie_in_their_regions);
	tcase_add_test(tc, copying_order_must_lie_in_the_operand);
	tcase_add_test(tc, limits_of_windows_are_enforced);
	tcase_add_test(tc, operand_is_never_disposable);
	tcase_add_test(tc, unused_fields_are_ignored);
	suite_add_tcase(s, tc);
	return s;
}
