/* SPDX-License-Identifier: MIT */
#include "proto/wire_link.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

static const char *why;

START_TEST(link_headers_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(1);
	uint8_t hello[WLK_HELLO_SIZE], ack[WLK_ACK_SIZE], data[WLK_DATA_SIZE];

	for (int i = 0; i < 5000; i++) {
		struct wlk_hello h = sample_link_hello(&r), h2;
		struct wlk_ack a = sample_link_ack(&r), a2;
		struct wlk_data d = sample_link_data(&r), d2;

		wlk_hello_put(hello, &h);
		ck_assert_int_eq(wlk_hello_get(hello, &h2, &why), 0);
		ck_assert(same_link_hello(&h, &h2));
		wlk_ack_put(ack, &a);
		ck_assert_int_eq(wlk_ack_get(ack, &a2, &why), 0);
		ck_assert(same_link_ack(&a, &a2));
		wlk_data_put(data, &d);
		ck_assert_int_eq(wlk_data_get(data, &d2, &why), 0);
		ck_assert(same_link_data(&d, &d2));
	}
}
END_TEST

/* The expected bytes come from PROTOCOL.md. */
START_TEST(data_header_has_the_documented_layout)
{
	static const uint8_t expected[WLK_DATA_SIZE] = {'P', 'C', 'L', 'K', 2, 0, 0, 0, /**/
		4, 3, 2, 1, 8, 7, 6, 5, 1, 0, 0, 0, 0, 0, 0, 0x80,                      /**/
		2, 0, 0, 0, 0, 0, 0, 0x90, 3, 0, 0, 0, 0, 0, 0, 0xa0,                   /**/
		9, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0x40, 0};
	struct wlk_data d = {
		.phase = WLK_GATHER,
		.group = 0x01020304,
		.seg = 0x05060708,
		.epoch = UINT64_C(0x8000000000000001),
		.seq = UINT64_C(0x9000000000000002),
		.tag = UINT64_C(0xa000000000000003),
		.offset = UINT64_C(0x800000000009),
		.len = WLK_LEN_MAX,
	};
	uint8_t buf[WLK_DATA_SIZE];

	wlk_data_put(buf, &d);
	ck_assert_mem_eq(buf, expected, sizeof buf);
}
END_TEST

static void hello_is(const struct wlk_hello *h, const char *expected)
{
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello got = {.stream = 77};

	wlk_hello_put(buf, h);
	if (expected == NULL) {
		ck_assert_int_eq(wlk_hello_get(buf, &got, &why), 0);
		return;
	}
	ck_assert_int_eq(wlk_hello_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
	ck_assert_uint_eq(got.stream, 77);
}

START_TEST(limits_of_the_hello_are_enforced)
{
	struct tl_rng r = tl_rng_new(2);
	struct wlk_hello h, good = sample_link_hello(&r);

	good.n_streams = 64;
	good.stream = 63;
	hello_is(&good, NULL);
	h = good;
	h.n_streams = 65;
	hello_is(&h, "hello.n_streams: must be 1 to 64");
	h.n_streams = 63;
	hello_is(&h, "hello.stream: must be below n_streams");
	h.service = WLK_P2P;
	h.stream = WLK_STREAM_EAGER;
	hello_is(&h, NULL);
	h.stream = WLK_STREAM_PROBE;
	hello_is(&h, NULL);
	h.service = WLK_BENCHMARK;
	hello_is(&h, "hello.stream: must be below n_streams");
	h.service = WLK_SHARED_STATE;
	hello_is(&h, NULL);
	h.stream = WLK_STREAM_EAGER;
	hello_is(&h, "hello.stream: must be below n_streams");
	h = good;
	h.n_streams = 0;
	hello_is(&h, "hello.n_streams: must be 1 to 64");
	h = good;
	h.service = 0;
	hello_is(&h, "hello.service: must be 1 to 3");
	h.service = 4;
	hello_is(&h, "hello.service: must be 1 to 3");
	h = good;
	h.from = (struct cc_id){{0}};
	hello_is(&h, "hello.from: must not be zero");
	h = good;
	h.version_min = 0;
	hello_is(&h, "hello.version_min: must be 1 to hello.version_max");
	h.version_min = 3;
	h.version_max = 2;
	hello_is(&h, "hello.version_min: must be 1 to hello.version_max");
}
END_TEST

/* If a hello offers only unknown versions, nothing but their range is decoded. */
START_TEST(only_the_versions_of_an_unknown_hello_are_decoded)
{
	static const uint8_t start[8] = {'P', 'C', 'L', 'K', 3, 0, 9, 0};
	uint8_t buf[WLK_HELLO_SIZE];
	struct wlk_hello got;

	memset(buf, 0xff, sizeof buf);
	memcpy(buf, start, sizeof start);
	ck_assert_int_eq(wlk_hello_get(buf, &got, &why), 0);
	ck_assert_uint_eq(got.version_min, 3);
	ck_assert_uint_eq(got.version_max, 9);
	ck_assert_uint_eq(got.service, 0);
}
END_TEST

static void ack_is(const struct wlk_ack *a, const char *expected)
{
	uint8_t buf[WLK_ACK_SIZE];
	struct wlk_ack got;

	wlk_ack_put(buf, a);
	if (expected == NULL) {
		ck_assert_int_eq(wlk_ack_get(buf, &got, &why), 0);
		return;
	}
	ck_assert_int_eq(wlk_ack_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
}

#define TEXT_AT 32

START_TEST(limits_of_the_answer_are_enforced)
{
	struct wlk_ack a = {.version_min = 2, .version_max = 2, .version = 2};
	uint8_t buf[WLK_ACK_SIZE];
	struct wlk_ack got;

	ack_is(&a, NULL);
	a.version = 3;
	ack_is(&a, "ack.version: not one of those offered");
	a.version = 0;
	ack_is(&a, "ack.version: not one of those offered");
	a.code = WLK_REFUSED_LIMIT;
	ack_is(&a, NULL);
	a.version = 2;
	ack_is(&a, "ack.version: must be 0 in a refusal");
	a.version = 0;
	a.code = WLK_REFUSED_LIMIT + 1;
	ack_is(&a, "ack.code: must be 0 to 5");
	a.code = WLK_REFUSED_VERSION;
	a.version_min = 3;
	ack_is(&a, "ack.version_min: must be 1 to ack.version_max");
	a.version_max = 3;
	ack_is(&a, NULL);
	wlk_ack_put(buf, &a);
	memset(buf + TEXT_AT, 'x', WLK_TEXT_MAX - 1);
	ck_assert_int_eq(wlk_ack_get(buf, &got, &why), 0);
	ck_assert_uint_eq(strlen(got.text), WLK_TEXT_MAX - 1);
	buf[TEXT_AT + WLK_TEXT_MAX - 1] = 'x';
	ck_assert_int_eq(wlk_ack_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "ack.text: must be at most 175 bytes");
	buf[TEXT_AT + WLK_TEXT_MAX - 3] = 0x1b;
	buf[TEXT_AT + WLK_TEXT_MAX - 2] = 0;
	ck_assert_int_eq(wlk_ack_get(buf, &got, &why), 0);
	ck_assert_int_eq(got.text[WLK_TEXT_MAX - 3], '?');
}
END_TEST

static void data_is(const struct wlk_data *d, const char *expected)
{
	uint8_t buf[WLK_DATA_SIZE];
	struct wlk_data got;

	wlk_data_put(buf, d);
	if (expected == NULL) {
		ck_assert_int_eq(wlk_data_get(buf, &got, &why), 0);
		return;
	}
	ck_assert_int_eq(wlk_data_get(buf, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, expected);
}

START_TEST(limits_of_the_data_header_are_enforced)
{
	struct wlk_data d = {.phase = WLK_REDUCE, .len = 1};

	data_is(&d, NULL);
	d.phase = WLK_EAGER;
	data_is(&d, NULL);
	d.len = 0;
	data_is(&d, "data.len: must be 1 to 4194304");
	d.len = WLK_LEN_MAX;
	data_is(&d, NULL);
	d.offset = ((uint64_t)1 << 48) - WLK_LEN_MAX;
	data_is(&d, NULL);
	d.offset++;
	data_is(&d, "data.offset: offset + len must be at most 2^48");
	d.offset = UINT64_MAX;
	data_is(&d, "data.offset: offset + len must be at most 2^48");
	d.len = WLK_LEN_MAX + 1;
	data_is(&d, "data.len: must be 1 to 4194304");
	d = (struct wlk_data){.phase = 0, .len = 1};
	data_is(&d, "data.phase: must be 1 to 3");
	d.phase = 4;
	data_is(&d, "data.phase: must be 1 to 3");
}
END_TEST

/* Bytes of a data header that have no meaning yet must be zero. */
START_TEST(reserved_bytes_of_a_data_header_must_be_zero)
{
	static const size_t reserved[] = {5, 6, 7, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
	struct wlk_data d = {.phase = WLK_REDUCE, .len = 1}, got;
	uint8_t buf[WLK_DATA_SIZE];

	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
		wlk_data_put(buf, &d);
		buf[reserved[i]] = 0x80;
		ck_assert_int_eq(wlk_data_get(buf, &got, &why), CC_ERR_PROTO);
		ck_assert_str_eq(why, "data.reserved: must be zero");
	}
}
END_TEST

START_TEST(wrong_magic_is_refused)
{
	uint8_t hello[WLK_HELLO_SIZE], ack[WLK_ACK_SIZE], data[WLK_DATA_SIZE];
	struct tl_rng r = tl_rng_new(3);
	struct wlk_hello h = sample_link_hello(&r);
	struct wlk_ack a = sample_link_ack(&r);
	struct wlk_data d = sample_link_data(&r);

	wlk_hello_put(hello, &h);
	wlk_ack_put(ack, &a);
	wlk_data_put(data, &d);
	for (size_t i = 0; i < 4; i++) {
		hello[i] ^= 1;
		ack[i] ^= 1;
		data[i] ^= 1;
		ck_assert_int_eq(wlk_hello_get(hello, &h, &why), CC_ERR_PROTO);
		ck_assert_str_eq(why, "hello.magic: must be PCLK");
		ck_assert_int_eq(wlk_ack_get(ack, &a, &why), CC_ERR_PROTO);
		ck_assert_str_eq(why, "ack.magic: must be PCLK");
		ck_assert_int_eq(wlk_data_get(data, &d, &why), CC_ERR_PROTO);
		ck_assert_str_eq(why, "data.magic: must be PCLK");
		hello[i] ^= 1;
		ack[i] ^= 1;
		data[i] ^= 1;
	}
}
END_TEST

START_TEST(count_has_the_documented_layout)
{
	static const uint8_t right[WLK_COUNT_SIZE] = {1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0, 0, 0, 0, 0,
		0, 9, 0xd, 0xe, 0, 0, 0, 0, 0, 0xf, 0xa, 0xb, 0, 0, 0, 0, 0, 0xc, 1};
	struct wlk_count c = {.bytes = 0x0807060504030201,
		.us = 0x09000000000000ff,
		.arrived = 0x0f00000000000e0d,
		.all = 0x0c00000000000b0a,
		.busy = true};
	struct wlk_count got;
	uint8_t buf[WLK_COUNT_SIZE];

	wlk_count_put(buf, &c);
	ck_assert_mem_eq(buf, right, sizeof right);
	wlk_count_get(right, &got);
	ck_assert_uint_eq(got.bytes, c.bytes);
	ck_assert_uint_eq(got.us, c.us);
	ck_assert_uint_eq(got.arrived, c.arrived);
	ck_assert_uint_eq(got.all, c.all);
	ck_assert(got.busy);
}
END_TEST

Suite *link_suite(void)
{
	Suite *s = suite_create("link");
	TCase *tc = tcase_create("link");

	tcase_add_test(tc, link_headers_survive_encoding_and_decoding);
	tcase_add_test(tc, data_header_has_the_documented_layout);
	tcase_add_test(tc, limits_of_the_hello_are_enforced);
	tcase_add_test(tc, only_the_versions_of_an_unknown_hello_are_decoded);
	tcase_add_test(tc, limits_of_the_answer_are_enforced);
	tcase_add_test(tc, limits_of_the_data_header_are_enforced);
	tcase_add_test(tc, reserved_bytes_of_a_data_header_must_be_zero);
	tcase_add_test(tc, wrong_magic_is_refused);
	tcase_add_test(tc, count_has_the_documented_layout);
	suite_add_tcase(s, tc);
	return s;
}
