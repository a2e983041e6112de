/* SPDX-License-Identifier: MIT */
#include "proto/wire_frame.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

static const uint8_t header[WIRE_FRAME_HDR] = {
	'P', 'C', 'C', 'F', 1, 0, WIRE_KIND_MASTER, 0, 0x10, 0x32, 0x04, 0};

START_TEST(header_has_the_documented_layout)
{
	uint8_t hdr[WIRE_FRAME_HDR];

	wire_frame_put(hdr, WIRE_KIND_MASTER, 0x43210);
	ck_assert_mem_eq(hdr, header, sizeof hdr);
	ck_assert_int_eq(wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_MASTER), 0x43210);
}
END_TEST

START_TEST(incomplete_header_needs_more_bytes)
{
	for (size_t len = 0; len < sizeof header; len++)
		ck_assert_int_eq(wire_frame_peek(header, len, WIRE_KIND_MASTER), CC_ERR_AGAIN);
}
END_TEST

/* A wrong byte is refused at once, without waiting for the bytes after it. */
START_TEST(wrong_header_byte_is_refused_when_it_arrives)
{
	static const struct {
		size_t at;
		int err;
		size_t seen_with;
	} field[] = {
		{0, CC_ERR_PROTO, 1},
		{1, CC_ERR_PROTO, 2},
		{2, CC_ERR_PROTO, 3},
		{3, CC_ERR_PROTO, 4},
		{4, CC_ERR_VERSION, 6},
		{5, CC_ERR_VERSION, 6},
		{6, CC_ERR_PROTO, 8},
		{7, CC_ERR_PROTO, 8},
		{11, CC_ERR_LIMIT, 12},
	};

	for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
		uint8_t hdr[WIRE_FRAME_HDR];

		memcpy(hdr, header, sizeof hdr);
		hdr[field[i].at] ^= 0x80;
		for (size_t len = 0; len <= sizeof hdr; len++)
			ck_assert_int_eq(wire_frame_peek(hdr, len, WIRE_KIND_MASTER),
				len >= field[i].seen_with ? field[i].err : CC_ERR_AGAIN);
	}
}
END_TEST

START_TEST(length_above_the_limit_is_refused)
{
	uint8_t hdr[WIRE_FRAME_HDR];

	wire_frame_put(hdr, WIRE_KIND_ADMIN, WIRE_FRAME_MAX);
	ck_assert_int_eq(wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN), WIRE_FRAME_MAX);
	wire_frame_put(hdr, WIRE_KIND_ADMIN, WIRE_FRAME_MAX + 1);
	ck_assert_int_eq(wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN), CC_ERR_LIMIT);
	wire_frame_put(hdr, WIRE_KIND_ADMIN, UINT32_MAX);
	ck_assert_int_eq(wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN), CC_ERR_LIMIT);
	wire_frame_put(hdr, WIRE_KIND_ADMIN, 0);
	ck_assert_int_eq(wire_frame_peek(hdr, sizeof hdr, WIRE_KIND_ADMIN), 0);
}
END_TEST

START_TEST(header_of_another_kind_is_refused)
{
	ck_assert_int_eq(wire_frame_peek(header, sizeof header, WIRE_KIND_ADMIN), CC_ERR_PROTO);
}
END_TEST

/* Reads messages from a stream as a connection does. */
struct reader {
	uint8_t buf[4096];
	size_t len;
	const struct wm_msg *expected;
	size_t n_expected, n_read;
};

static void reader_feed(struct reader *x, const uint8_t *p, size_t len)
{
	const char *why = "";
	struct wm_msg m;
	int n;

	ck_assert_uint_le(len, sizeof x->buf - x->len);
	memcpy(x->buf + x->len, p, len);
	x->len += len;
	for (;;) {
		n = wire_frame_peek(x->buf, x->len, WIRE_KIND_MASTER);
		if (n == CC_ERR_AGAIN || (n >= 0 && x->len < WIRE_FRAME_HDR + (size_t)n))
			return;
		ck_assert_int_ge(n, 0);
		ck_assert_int_eq(
			wire_master_decode(x->buf + WIRE_FRAME_HDR, (size_t)n, &m, &why), 0);
		ck_assert_uint_lt(x->n_read, x->n_expected);
		ck_assert(same_master(&m, &x->expected[x->n_read++]));
		wire_master_clear(&m);
		x->len -= WIRE_FRAME_HDR + (size_t)n;
		memmove(x->buf, x->buf + WIRE_FRAME_HDR + (size_t)n, x->len);
	}
}

static void reader_end(const struct reader *x)
{
	ck_assert_uint_eq(x->n_read, x->n_expected);
	ck_assert_uint_eq(x->len, 0);
}

#define N_FRAMES 3

/* Frames arrive whole if the stream is cut at any two places, not cut, or cut after each byte. */
START_TEST(cut_and_joined_frames_arrive_whole)
{
	static const enum wm_type types[N_FRAMES] = {WM_OP_DONE, WM_HEARTBEAT, WM_LEAVE};
	struct wm_msg m[N_FRAMES];
	struct tl_rng r = tl_rng_new(1);
	uint8_t stream[256];
	size_t len = 0;

	for (size_t i = 0; i < N_FRAMES; i++) {
		uint8_t *frame;
		size_t n;

		sample_master(&r, types[i], &m[i]);
		ck_assert_int_eq(wire_master_encode(&m[i], &frame, &n), 0);
		ck_assert_uint_le(n, sizeof stream - len);
		memcpy(stream + len, frame, n);
		len += n;
		free(frame);
	}
	for (size_t a = 0; a <= len; a++) {
		for (size_t b = a; b <= len; b++) {
			struct reader x = {.expected = m, .n_expected = N_FRAMES};

			reader_feed(&x, stream, a);
			reader_feed(&x, stream + a, b - a);
			reader_feed(&x, stream + b, len - b);
			reader_end(&x);
		}
	}
	for (size_t step = 1; step <= len; step++) {
		struct reader x = {.expected = m, .n_expected = N_FRAMES};

		for (size_t at = 0; at < len; at += step)
			reader_feed(&x, stream + at, step < len - at ? step : len - at);
		reader_end(&x);
	}
}
END_TEST

Suite *frame_suite(void)
{
	Suite *s = suite_create("frame");
	TCase *tc = tcase_create("frame");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, header_has_the_documented_layout);
	tcase_add_test(tc, incomplete_header_needs_more_bytes);
	tcase_add_test(tc, wrong_header_byte_is_refused_when_it_arrives);
	tcase_add_test(tc, length_above_the_limit_is_refused);
	tcase_add_test(tc, header_of_another_kind_is_refused);
	tcase_add_test(tc, cut_and_joined_frames_arrive_whole);
	suite_add_tcase(s, tc);
	return s;
}
