/* SPDX-License-Identifier: MIT */
#include "proto/shm_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cc_err.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

#define MANY WIRE_TENSORS_MAX

static struct sample_manifest m;

/* Makes three tensors "a", "b" and "bc". The second one lies in region 2. */
static void setup(void)
{
	struct tl_rng r = tl_rng_new(1);

	sample_manifest(&r, 3, &m);
	memcpy(m.names, "abbc", 4);
	m.h->names_len = 4;
	m.e[0] = (struct shm_state_entry){
		.count = 10, .bytes = 40, .name_len = 1, .dtype = 10, .hash = 7};
	m.e[1] = (struct shm_state_entry){.count = 65537,
		.bytes = 65537,
		.name_off = 1,
		.name_len = 1,
		.first_leaf = 1,
		.region = 2,
		.region_off = 2 * 1048576 - 65537,
		.flags = SHM_STATE_MAY_DIFFER};
	m.e[2] = (struct shm_state_entry){
		.name_off = 2, .name_len = 2, .dtype = 11, .first_leaf = 3};
	m.h->n_leaves = 3;
	m.vote.bytes = 65577;
}

static void teardown(void)
{
	sample_manifest_free(&m);
}

static struct shm_state taken(void)
{
	struct shm_state s;
	char why[SHM_TEXT] = "";

	ck_assert_msg(shm_state_get(m.map, &m.lim, &s, why) == 0, "%s", why);
	return s;
}

static void accepted(void)
{
	struct shm_state s = taken();

	shm_state_clear(&s);
	ck_assert_ptr_null(s.tensors);
}

static void refused(const char *expected)
{
	struct shm_state s, was;
	char why[SHM_TEXT];

	memset(&s, 0x5a, sizeof s);
	was = s;
	memset(why, 'x', sizeof why);
	ck_assert_int_eq(shm_state_get(m.map, &m.lim, &s, why), CC_ERR_INVAL);
	ck_assert_ptr_nonnull(memchr(why, '\0', sizeof why));
	ck_assert_str_eq(why, expected);
	ck_assert_mem_eq(&s, &was, sizeof s);
}

START_TEST(valid_manifest_is_taken_over)
{
	struct shm_state s = taken();
	const struct shm_state_tensor *t = s.tensors;
	char name[8];

	ck_assert_uint_eq(s.n_tensors, 3);
	ck_assert_uint_eq(s.n_leaves, 3);
	ck_assert_uint_eq(s.bytes, 65577);
	ck_assert_uint_eq(s.leaves_off, m.h->leaves_off);
	ck_assert_uint_eq(s.window_off, m.h->window_off);
	ck_assert_uint_eq(t[0].count, 10);
	ck_assert_uint_eq(t[0].bytes, 40);
	ck_assert_uint_eq(t[0].dtype, 10);
	ck_assert_uint_eq(t[0].hash, 7);
	ck_assert_uint_eq(t[0].region, 0);
	ck_assert(!t[0].may_differ);
	ck_assert_uint_eq(t[1].first_leaf, 1);
	ck_assert_uint_eq(t[1].region, 2);
	ck_assert_uint_eq(t[1].region_off, 2 * 1048576 - 65537);
	ck_assert(t[1].may_differ);
	ck_assert_uint_eq(t[2].bytes, 0);
	ck_assert_uint_eq(t[2].first_leaf, 3);
	ck_assert_str_eq(shm_state_name(m.map, &t[2], name, sizeof name), "bc");
	ck_assert_str_eq(shm_state_name(m.map, &t[2], name, 2), "b");
	m.names[2] = '\n'; /* the shim may overwrite names */
	ck_assert_str_eq(shm_state_name(m.map, &t[2], name, sizeof name), "?c");
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t hash;

		memcpy(&hash, m.map + m.h->leaves_off + 8 * i, sizeof hash);
		ck_assert_uint_eq(shm_state_leaf(m.map, &s, i), hash);
	}
	shm_state_clear(&s);
}
END_TEST

START_TEST(random_manifests_are_accepted)
{
	struct tl_rng r = tl_rng_new(2);

	for (uint32_t n = 0; n < 200; n += 1 + n / 4) {
		struct shm_state s;

		sample_manifest_free(&m);
		sample_manifest(&r, n, &m);
		s = taken();
		ck_assert_uint_eq(s.n_tensors, n);
		for (uint32_t i = 0; i < n; i++) {
			ck_assert_uint_eq(s.tensors[i].count, m.e[i].count);
			ck_assert_uint_eq(s.tensors[i].hash, m.e[i].hash);
			ck_assert_uint_eq(s.tensors[i].name_len, m.e[i].name_len);
		}
		shm_state_clear(&s);
	}
}
END_TEST

START_TEST(limits_of_the_header_are_enforced)
{
	const struct shm_state_header good = *m.h;

	m.h->magic++;
	refused("magic: must be PCSM");
	*m.h = good;
	m.h->version = 1;
	refused("version: 1, this agent knows 2");
	*m.h = good;
	m.h->n_tensors = 1048577;
	refused("n_tensors: 1048577, must be at most 1048576");
	m.h->n_tensors = UINT64_MAX;
	refused("n_tensors: 18446744073709551615, must be at most 1048576");
	m.h->n_tensors = 2;
	refused("n_tensors: 2 in the manifest, 3 in the submission");
	*m.h = good;
	m.h->n_leaves = 4;
	refused("n_leaves: 4, the tensors have 3 leaves");
	m.h->n_leaves = 2;
	refused("n_leaves: 2, the tensors have 3 leaves");
	*m.h = good;
	m.vote.bytes++;
	refused("bytes: 65577 in the manifest, 65578 in the submission");
	m.vote.bytes--;
	accepted();
}
END_TEST

/* Each table must lie in the region after the fixed part, and must be aligned. */
START_TEST(tables_outside_of_the_region_are_refused)
{
	const struct shm_state_header good = *m.h;
	const uint64_t size = m.lim.size;
	char text[SHM_TEXT];

	m.lim.size = SHM_STATE_TABLES - 1;
	snprintf(text, sizeof text, "region: %u bytes are too few", SHM_STATE_TABLES - 1);
	refused(text);
	m.lim.size = size - 1;
	snprintf(text, sizeof text,
		"window_off: 16 times 262144 bytes at %llu do not lie in the region of %llu bytes",
		(unsigned long long)good.window_off, (unsigned long long)size - 1);
	refused(text);
	m.lim.size = size;
	m.h->tensors_off = SHM_STATE_TABLES - 8;
	snprintf(text, sizeof text, "tensors_off: %u, must be a multiple of 8 and at least %u",
		SHM_STATE_TABLES - 8, SHM_STATE_TABLES);
	refused(text);
	m.h->tensors_off = size - 2 * sizeof *m.e;
	snprintf(text, sizeof text,
		"tensors_off: 3 times 64 bytes at %llu do not lie in the region of %llu bytes",
		(unsigned long long)m.h->tensors_off, (unsigned long long)size);
	refused(text);
	*m.h = good;
	m.h->tensors_off++;
	snprintf(text, sizeof text, "tensors_off: %llu, must be a multiple of 8 and at least %u",
		(unsigned long long)m.h->tensors_off, SHM_STATE_TABLES);
	refused(text);
	*m.h = good;
	m.h->leaves_off += 4;
	snprintf(text, sizeof text, "leaves_off: %llu, must be a multiple of 8 and at least %u",
		(unsigned long long)m.h->leaves_off, SHM_STATE_TABLES);
	refused(text);
	*m.h = good;
	m.h->window_off += 8;
	snprintf(text, sizeof text, "window_off: %llu, must be a multiple of 4096 and at least %u",
		(unsigned long long)m.h->window_off, SHM_STATE_TABLES);
	refused(text);
}
END_TEST

/* Sums and products of these offsets and numbers would wrap around. */
START_TEST(numbers_that_would_overflow_are_refused)
{
	const struct shm_state_header good = *m.h;
	char text[SHM_TEXT], lies[80];
	unsigned long long size = m.lim.size;

	snprintf(lies, sizeof lies, "do not lie in the region of %llu bytes", size);
	m.h->names_off = UINT64_MAX;
	snprintf(text, sizeof text, "names_off: 4 times 1 bytes at 18446744073709551615 %s", lies);
	refused(text);
	*m.h = good;
	m.h->names_len = UINT64_MAX - good.names_off + 1;
	snprintf(text, sizeof text, "names_off: %llu times 1 bytes at %llu %s",
		(unsigned long long)m.h->names_len, (unsigned long long)good.names_off, lies);
	refused(text);
	*m.h = good;
	m.h->n_leaves = (uint64_t)1 << 61;
	snprintf(text, sizeof text, "leaves_off: 2305843009213693952 times 8 bytes at %llu %s",
		(unsigned long long)good.leaves_off, lies);
	refused(text);
	*m.h = good;
	m.h->window_off = UINT64_MAX - 4095;
	snprintf(text, sizeof text, "window_off: 16 times 262144 bytes at 18446744073709547520 %s",
		lies);
	refused(text);
}
END_TEST

START_TEST(names_are_valid_sorted_and_unique)
{
	m.e[2].name_len = 0;
	refused("tensor 2: name: 0 bytes, must be 1 to 1024");
	m.e[2].name_len = 1025;
	refused("tensor 2: name: 1025 bytes, must be 1 to 1024");
	m.e[2].name_len = UINT32_MAX;
	refused("tensor 2: name: 4294967295 bytes, must be 1 to 1024");
	m.e[2].name_len = 3;
	refused("tensor 2: name_off: 3 bytes at 2 do not lie in the names of 4 bytes");
	m.e[2].name_off = UINT64_MAX;
	refused("tensor 2: name_off: 3 bytes at 18446744073709551615 do not lie in the names of 4 "
		"bytes");
	m.e[2].name_off = 2;
	m.e[2].name_len = 1;
	refused("tensor 2: name: \"b\" appears twice");
	m.e[2].name_off = 0;
	refused("tensor 2: name: \"a\" is not in order");
	m.e[1].name_off = 2;
	m.e[1].name_len = 2;
	m.e[2].name_off = 1;
	refused("tensor 2: name: \"b\" is not in order");
	m.e[1].name_len = 1;
	m.e[2].name_off = 2;
	m.e[2].name_len = 2;
	accepted();
	m.names[3] = '\0';
	refused("tensor 2: name: must not contain a zero byte");
	m.names[3] = '\xff'; /* bytes are compared as unsigned numbers */
	accepted();
	m.names[0] = '\x80';
	refused("tensor 1: name: \"b\" is not in order");
}
END_TEST

START_TEST(names_of_the_largest_length_are_accepted)
{
	struct tl_rng r = tl_rng_new(3);
	char *long_ones;

	sample_manifest_free(&m);
	sample_manifest(&r, 400, &m);
	long_ones = m.names + m.h->names_len;
	m.e[398].name_off = m.h->names_len;
	m.e[399].name_off = m.h->names_len + 1;
	m.e[398].name_len = m.e[399].name_len = 1024;
	m.h->names_len += 1025; /* overlaps the leaf hashes, which does not matter here */
	memset(long_ones, 'n', 1025);
	long_ones[1024] = 'o';
	accepted();
	long_ones[1024] = 'n';
	/* The name in the error is cut, so that it fits. */
	refused("tensor 399: name: "
		"\"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\" appears "
		"twice");
}
END_TEST

START_TEST(wrong_types_sizes_and_flags_are_refused)
{
	const struct shm_state_entry good = m.e[1];

	m.e[1].dtype = 12;
	refused("tensor 1: dtype: 12 is not one of the 12 pcclDataType_t");
	m.e[1].dtype = UINT16_MAX;
	refused("tensor 1: dtype: 65535 is not one of the 12 pcclDataType_t");
	m.e[1] = good;
	m.e[1].flags = 2;
	refused("tensor 1: flags: unknown bits 0x2");
	m.e[1] = good;
	m.e[1].count++;
	refused("tensor 1: bytes: 65537 do not match 65538 elements of 1");
	m.e[1] = good;
	m.e[1].dtype = 2;
	refused("tensor 1: bytes: 65537 do not match 65537 elements of 2");
	m.e[2].count = (uint64_t)1 << 61; /* times 8 overflows to 0 */
	m.e[1] = good;
	refused("tensor 2: bytes: 0 do not match 2305843009213693952 elements of 8");
	m.e[2].count = 0;
	m.e[1].first_leaf = 0;
	refused("tensor 1: first_leaf: 0, the tensors before it have 1 leaves");
	m.e[1].first_leaf = 2;
	refused("tensor 1: first_leaf: 2, the tensors before it have 1 leaves");
	m.e[1] = good;
	accepted();
}
END_TEST

/* The state has its largest size, in one tensor and in two. Its leaf hashes do not exist. */
START_TEST(largest_state_is_accepted)
{
	m.e[0].dtype = 0;
	m.e[0].count = m.e[0].bytes = WIRE_STATE_MAX + 1;
	refused("tensor 0: bytes: 281474976710657 do not match 281474976710657 elements of 1");
	m.e[0].count = m.e[0].bytes = WIRE_STATE_MAX - 65536;
	m.e[1].first_leaf = WIRE_LEAVES_MAX - 1;
	refused("tensor 1: bytes: more than 2^48 in all");
	m.e[1].count = m.e[1].bytes = 65536;
	m.e[2].first_leaf = WIRE_LEAVES_MAX;
	refused("n_leaves: 3, the tensors have 4294967296 leaves");
}
END_TEST

START_TEST(tensor_must_lie_in_its_region)
{
	m.e[1].region_off++;
	refused("tensor 1: region_off: 65537 bytes at 2031616 do not lie in region 2 of 2097152 "
		"bytes");
	m.e[1].region_off = UINT64_MAX;
	refused("tensor 1: region_off: 65537 bytes at 18446744073709551615 do not lie in region 2 "
		"of 2097152 bytes");
	m.e[1].region = 9;
	refused("tensor 1: region: this process has no registered memory 9");
	m.e[1].region = 0;
	refused("tensor 1: region: this process has no registered memory 0");
	m.e[1].region_off = 0;
	accepted();
	m.e[2].region = 1;
	m.e[2].region_off = 1048576; /* tensor 2 is empty */
	accepted();
	m.e[2].region_off++;
	refused("tensor 2: region_off: 0 bytes at 1048577 do not lie in region 1 of 1048576 bytes");
}
END_TEST

START_TEST(manifest_without_tensors_is_accepted)
{
	struct tl_rng r = tl_rng_new(4);
	struct shm_state s;

	sample_manifest_free(&m);
	sample_manifest(&r, 0, &m);
	s = taken();
	ck_assert_uint_eq(s.n_tensors, 0);
	ck_assert_ptr_nonnull(s.tensors);
	shm_state_clear(&s);
}
END_TEST

/* The names of the tensors differ only at their ends. */
START_TEST(checking_the_largest_number_of_tensors_is_fast)
{
	struct tl_rng r = tl_rng_new(5);
	struct shm_state_header h;
	struct timespec a, b;
	uint64_t size;
	struct shm_state s;

	sample_manifest_free(&m);
	sample_manifest(&r, 0, &m);
	ck_assert_int_eq(shm_state_plan(MANY, MANY * 64ull, 0, &h, &size), 0);
	free(m.map);
	m.map = aligned_alloc(SHM_STATE_PAGE, size);
	ck_assert_ptr_nonnull(m.map);
	memcpy(m.map, &h, sizeof h);
	for (uint32_t i = 0; i < MANY; i++) {
		struct shm_state_entry e = {.name_off = i * 64ull, .name_len = 64};
		char name[65];

		snprintf(name, sizeof name, "%064u", (unsigned)i);
		memcpy(m.map + h.names_off + i * 64ull, name, 64);
		memcpy(m.map + h.tensors_off + i * sizeof e, &e, sizeof e);
	}
	m.vote = (struct wm_sync_vote){.n_tensors = MANY};
	m.lim.size = size;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	s = taken();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	ck_assert_uint_eq(s.n_tensors, MANY);
	ck_assert_int_lt(b.tv_sec - a.tv_sec, 5);
	shm_state_clear(&s);
}
END_TEST

START_TEST(plan_computes_offsets_and_size)
{
	struct shm_state_header h;
	uint64_t size;

	ck_assert_int_eq(shm_state_plan(0, 0, 0, &h, &size), 0);
	ck_assert_uint_eq(h.tensors_off, SHM_STATE_TABLES);
	ck_assert_uint_eq(size, 4096 + 16 * 262144);
	ck_assert_int_eq(shm_state_plan(1048576, (uint64_t)1 << 30, ((uint64_t)1 << 32) + 1048576,
				 &h, &size),
		0);
	ck_assert_uint_lt(size, (uint64_t)1 << 36);
	ck_assert_int_eq(shm_state_plan(1048577, 0, 0, &h, &size), CC_ERR_LIMIT);
	ck_assert_int_eq(shm_state_plan(1, ((uint64_t)1 << 30) + 1, 0, &h, &size), CC_ERR_LIMIT);
	ck_assert_int_eq(shm_state_plan(1, 1, UINT64_MAX, &h, &size), CC_ERR_LIMIT);
}
END_TEST

START_TEST(text_of_the_keys_digest_has_the_documented_layout)
{
	static const uint8_t expected[] = {
		2, 0, 0, 0, 'w', '1', 11, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 1, 0, 0, 0};
	struct shm_state_entry e = {.name_len = 2,
		.dtype = 11,
		.count = UINT64_C(0x0102030405060708),
		.flags = SHM_STATE_MAY_DIFFER,
		.hash = 77};
	char name[WIRE_TENSOR_NAME_MAX];
	uint8_t buf[SHM_STATE_KEY_MAX];

	memset(name, 'n', sizeof name);
	ck_assert_uint_eq(shm_state_key_put(buf, &e, "w1"), sizeof expected);
	ck_assert_mem_eq(buf, expected, sizeof expected);
	e.name_len = sizeof name;
	ck_assert_uint_eq(shm_state_key_put(buf, &e, name), SHM_STATE_KEY_MAX);
}
END_TEST

START_TEST(invalid_commands_are_refused)
{
	const struct shm_state_command good = {
		.op = SHM_STATE_READ, .slot = 15, .len = 262144, .off = 1000};
	struct shm_state_command c = good;

	ck_assert(shm_state_command_fits(&c, 263144));
	ck_assert(!shm_state_command_fits(&c, 263143));
	ck_assert(!shm_state_command_fits(&c, 0));
	c.from = 1; /* only allowed for WRITE, and at the beginning of a leaf */
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c.op = SHM_STATE_WRITE;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c.off = UINT64_C(3) * 65536;
	ck_assert(shm_state_command_fits(&c, UINT64_MAX));
	c.off = 1000;
	c.from = 0;
	ck_assert(shm_state_command_fits(&c, UINT64_MAX));
	c.op = 0;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c.op = 3;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c = good;
	c.slot = 16;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c = good;
	c.len = 262145;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c.len = 0;
	ck_assert(!shm_state_command_fits(&c, UINT64_MAX));
	c = good;
	c.off = UINT64_MAX;
	ck_assert(!shm_state_command_fits(&c, 263144));
	c.off = UINT64_MAX - 262143; /* off + len overflows to 0 */
	ck_assert(!shm_state_command_fits(&c, 263144));
}
END_TEST

Suite *shm_state_suite(void)
{
	Suite *s = suite_create("shm_state");
	TCase *tc = tcase_create("shm_state");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, valid_manifest_is_taken_over);
	tcase_add_test(tc, random_manifests_are_accepted);
	tcase_add_test(tc, limits_of_the_header_are_enforced);
	tcase_add_test(tc, tables_outside_of_the_region_are_refused);
	tcase_add_test(tc, numbers_that_would_overflow_are_refused);
	tcase_add_test(tc, names_are_valid_sorted_and_unique);
	tcase_add_test(tc, names_of_the_largest_length_are_accepted);
	tcase_add_test(tc, wrong_types_sizes_and_flags_are_refused);
	tcase_add_test(tc, largest_state_is_accepted);
	tcase_add_test(tc, tensor_must_lie_in_its_region);
	tcase_add_test(tc, manifest_without_tensors_is_accepted);
	tcase_add_test(tc, checking_the_largest_number_of_tensors_is_fast);
	tcase_add_test(tc, plan_computes_offsets_and_size);
	tcase_add_test(tc, text_of_the_keys_digest_has_the_documented_layout);
	tcase_add_test(tc, invalid_commands_are_refused);
	suite_add_tcase(s, tc);
	return s;
}
