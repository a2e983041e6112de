/* SPDX-License-Identifier: MIT */
#include "proto/wire_state.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

static const char *why;

static const struct wst_request good = {.kind = WST_BLOCK,
	.id = 0x01020304,
	.group = 0x05060708,
	.seq = UINT64_C(0x8000000000000009),
	.tensor = 0xabcde,
	.first = UINT64_C(0xfffffff0),
	.n = 16,
	.without = UINT64_C(0x8000000000000002)};

START_TEST(requests_and_answers_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(1);
	uint8_t buf[WST_HDR_SIZE];

	for (int i = 0; i < 5000; i++) {
		struct wst_request q = sample_state_request(&r), q2;
		struct wst_answer a = sample_state_answer(&r), a2;

		wst_request_put(buf, &q);
		ck_assert_int_eq(wst_request_get(buf, &q2, &why), 0);
		ck_assert(same_state_request(&q, &q2));
		wst_answer_put(buf, &a);
		ck_assert_int_eq(wst_answer_get(buf, &a2, &why), 0);
		ck_assert(same_state_request(&a.req, &a2.req));
		ck_assert_uint_eq(a.status, a2.status);
		ck_assert_uint_eq(a.member, a2.member);
		ck_assert_uint_eq(a.len, a2.len);
	}
}
END_TEST

/* The expected bytes come from PROTOCOL.md. */
START_TEST(answer_has_the_documented_layout)
{
	uint8_t expected[WST_HDR_SIZE] = {'P', 'C', 'S', 'T', 3, 0, 0, 0, /**/
		4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 0, 0, 0, 0, 0, 0x80,        /**/
		0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xde, 0xbc, 0x0a, 0, 16, 0, 0, 0};
	struct wst_answer a = {.req = good, .status = WST_OK, .member = 9, .len = 0xf0001};
	uint8_t buf[WST_HDR_SIZE];

	expected[48] = 2;
	expected[55] = 0x80;
	wst_request_put(buf, &good);
	ck_assert_mem_eq(buf, expected, sizeof buf);
	wst_answer_put(buf, &a);
	expected[6] = 9;
	expected[40] = 1;
	expected[42] = 0xf;
	ck_assert_mem_eq(buf, expected, sizeof buf);
	a.status = WST_GONE;
	a.len = 0;
	a.member = 0;
	wst_answer_put(buf, &a);
	expected[5] = 2;
	expected[6] = 0;
	expected[40] = expected[42] = 0;
	ck_assert_mem_eq(buf, expected, sizeof buf);
}
END_TEST

static void bytes_are(const uint8_t *buf, const char *expected)
{
	struct wst_request got = {.id = 77};

	if (expected == NULL) {
		ck_assert_int_eq(wst_request_get(buf, &got, &why), 0);
		return;
	}
	ck_assert_int_eq(wst_request_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
	ck_assert_uint_eq(got.id, 77);
}

static void request_is(const struct wst_request *q, const char *expected)
{
	uint8_t buf[WST_HDR_SIZE];

	wst_request_put(buf, q);
	bytes_are(buf, expected);
}

START_TEST(limits_of_requests_are_enforced)
{
	struct wst_request q = good;

	request_is(&q, NULL);
	q.first++;
	request_is(&q, "request.first: first + n must be at most 2^32");
	q.first = UINT64_MAX;
	request_is(&q, "request.first: first + n must be at most 2^32");
	q = good;
	q.n = 17;
	request_is(&q, "request.n: must be 1 to 16");
	q.n = 0;
	request_is(&q, "request.n: must be 1 to 16");
	q = good;
	q.kind = WST_LEAVES;
	q.first = 0;
	q.n = 65536;
	request_is(&q, NULL);
	q.n++;
	request_is(&q, "request.n: must be 1 to 65536");
	q.n = 0;
	request_is(&q, "request.n: must be 1 to 65536");
	q = good;
	q.tensor = 1048575;
	request_is(&q, NULL);
	q.tensor++;
	request_is(&q, "request.tensor: must be below 1048576");
	q = good;
	q.seq = 0;
	request_is(&q, "request.seq: must be at least 1");
	q = good;
	q.kind = 0;
	request_is(&q, "request.kind: must be 1 to 3");
	q.kind = 4;
	request_is(&q, "request.kind: must be 1 to 3");
}
END_TEST

START_TEST(limits_of_tensor_requests_are_enforced)
{
	struct wst_request q = good;

	q.kind = WST_TENSORS;
	request_is(&q, "request.first: must be 0");
	q.first = 0;
	q.tensor = 1048560;
	request_is(&q, NULL);
	q.n++;
	request_is(&q, "request.tensor: tensor + n must be at most 1048576");
	q.tensor = 0;
	q.n = 65536;
	request_is(&q, NULL);
}
END_TEST

/* Changing any byte of a header changes the result. */
START_TEST(every_byte_of_a_request_is_checked)
{
	uint8_t buf[WST_HDR_SIZE];

	wst_request_put(buf, &good);
	for (size_t i = 0; i < 4; i++) {
		buf[i] ^= 1;
		bytes_are(buf, "request.magic: must be PCST");
		buf[i] ^= 1;
	}
	for (size_t i = 5; i < sizeof buf; i++) {
		if ((i >= 8 && i < 40) || (i >= 48 && i < 56))
			continue;
		buf[i] = 0x80;
		bytes_are(buf, "request.reserved: must be zero");
		buf[i] = 0;
	}
	bytes_are(buf, NULL);
}
END_TEST

static void answer_is(const struct wst_answer *a, const char *expected)
{
	uint8_t buf[WST_HDR_SIZE];
	struct wst_answer got = {.len = 77};

	wst_answer_put(buf, a);
	if (expected == NULL) {
		ck_assert_int_eq(wst_answer_get(buf, &got, &why), 0);
		return;
	}
	ck_assert_int_eq(wst_answer_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
	ck_assert_uint_eq(got.len, 77);
}

#define BLOCK_LEN "answer.len: must be the length of n leaves, the last of which may be shorter"

START_TEST(limits_of_answers_are_enforced)
{
	struct wst_answer a = {.req = good, .len = 16 * WIRE_LEAF};

	answer_is(&a, NULL);
	a.len++;
	answer_is(&a, BLOCK_LEN);
	a.len = 15 * WIRE_LEAF;
	answer_is(&a, BLOCK_LEN);
	a.len++;
	answer_is(&a, NULL);
	a.status = 3;
	answer_is(&a, "answer.status: must be 0 to 2");
	a.status = WST_NOT_YET;
	answer_is(&a, "answer.len: must be 0 without success");
	a.len = 0;
	answer_is(&a, NULL);
	a.member = 1;
	answer_is(&a, "answer.member: must be 0 to 64, and 0 without success");
	a.member = 0;
	a.status = WST_OK;
	answer_is(&a, BLOCK_LEN);
	a.req.n = 1;
	answer_is(&a, BLOCK_LEN);
	a.req.kind = WST_LEAVES;
	answer_is(&a, "answer.len: must be 8 for each hash");
	a.len = 8;
	answer_is(&a, NULL);
	a.req.n = 65536;
	a.req.first = 0;
	answer_is(&a, "answer.len: must be 8 for each hash");
	a.len = 524288;
	answer_is(&a, NULL);
	a.member = 64;
	answer_is(&a, NULL);
	a.member++;
	answer_is(&a, "answer.member: must be 0 to 64, and 0 without success");
	a.member = 0;
	a.req.seq = 0;
	answer_is(&a, "request.seq: must be at least 1");
}
END_TEST

/* An answer has bytes that must be zero in a request. */
START_TEST(answer_is_refused_as_a_request)
{
	struct wst_answer a = {.req = good, .len = WIRE_LEAF * 16};
	uint8_t buf[WST_HDR_SIZE];

	wst_answer_put(buf, &a);
	bytes_are(buf, "request.reserved: must be zero");
	buf[7] = 1;
	ck_assert_int_eq(wst_answer_get(buf, &a, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "request.reserved: must be zero");
	buf[7] = 0;
	buf[44] = 1;
	ck_assert_int_eq(wst_answer_get(buf, &a, &why), CC_ERR_PROTO);
}
END_TEST

START_TEST(leaves_and_their_bytes_are_counted)
{
	struct tl_rng r = tl_rng_new(2);

	ck_assert_uint_eq(wire_leaf_count(0), 0);
	ck_assert_uint_eq(wire_leaf_count(1), 1);
	ck_assert_uint_eq(wire_leaf_count(65536), 1);
	ck_assert_uint_eq(wire_leaf_count(65537), 2);
	ck_assert_uint_eq(wire_leaf_count(WIRE_STATE_MAX), WIRE_LEAVES_MAX);
	ck_assert_uint_eq(wire_leaf_bytes(0, 0, 1), 0);
	ck_assert_uint_eq(wire_leaf_bytes(65537, 0, 2), 65537);
	ck_assert_uint_eq(wire_leaf_bytes(65537, 1, 1), 1);
	ck_assert_uint_eq(wire_leaf_bytes(65537, 0, 1), 65536);
	ck_assert_uint_eq(wire_leaf_bytes(65537, 1, 2), 0);
	ck_assert_uint_eq(wire_leaf_bytes(65537, UINT64_MAX, 2), 0);
	ck_assert_uint_eq(wire_leaf_bytes(65537, 0, 0), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t bytes = tl_magnitude(&r, 48), sum = 0, n, at, step;

		n = wire_leaf_count(bytes);
		if (n > 1000)
			continue;
		for (at = 0; at < n; at += step) {
			step = tl_range(&r, 1, n - at);
			sum += wire_leaf_bytes(bytes, at, step);
		}
		ck_assert_uint_eq(sum, bytes);
	}
}
END_TEST

Suite *state_suite(void)
{
	Suite *s = suite_create("state");
	TCase *tc = tcase_create("state");

	tcase_add_test(tc, requests_and_answers_survive_encoding_and_decoding);
	tcase_add_test(tc, answer_has_the_documented_layout);
	tcase_add_test(tc, limits_of_requests_are_enforced);
	tcase_add_test(tc, limits_of_tensor_requests_are_enforced);
	tcase_add_test(tc, every_byte_of_a_request_is_checked);
	tcase_add_test(tc, limits_of_answers_are_enforced);
	tcase_add_test(tc, answer_is_refused_as_a_request);
	tcase_add_test(tc, leaves_and_their_bytes_are_counted);
	suite_add_tcase(s, tc);
	return s;
}
