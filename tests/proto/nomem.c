/* SPDX-License-Identifier: MIT
 *
 * Every allocation of the codecs fails once. Each failure returns CC_ERR_NOMEM, leaks nothing
 * (which a build with AddressSanitizer checks), and leaves the outputs unchanged. In addition,
 * these tests check that the memory that a decoder uses is bounded, whatever the message contains.
 * The program is linked with --wrap for the four functions below.
 */
#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_frame.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

static long fail_at = -1; /* number of allocations before the failing one; -1: none fails */
static bool failed;
static size_t allocated; /* bytes from malloc since this counter was set to 0 */

static bool fails(void)
{
	if (fail_at < 0 || fail_at-- > 0)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	allocated += size;
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

static void arm(long n)
{
	fail_at = n;
	failed = false;
}

/* Checks that the armed failure was reported. Returns false if the armed failure did not happen,
 * because there were too few allocations. */
static bool reported(int rc)
{
	fail_at = -1;
	ck_assert_int_eq(rc, failed ? CC_ERR_NOMEM : 0);
	return failed;
}

static void encode_decode(const struct wm_msg *m)
{
	uint8_t *frame = NULL;
	const char *why = NULL;
	struct wm_msg got = {.type = WM_HEARTBEAT};
	size_t len = 0;
	long n = 0;

	do
		arm(n++);
	while (reported(wire_master_encode(m, &frame, &len)));
	n = 0;
	for (;;) {
		arm(n++);
		if (!reported(wire_master_decode(
			    frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR, &got, &why)))
			break;
		ck_assert_uint_eq(got.type, 0);
		ck_assert_str_eq(why, "message: no memory to decode it");
	}
	ck_assert(same_master(m, &got));
	wire_master_clear(&got);
	free(frame);
}

START_TEST(codec_of_master_messages_survives_lack_of_memory)
{
	struct tl_rng r = tl_rng_new(1);

	for (int i = 0; i < 10; i++) {
		for (size_t t = 0; t < sample_master_n_types; t++) {
			struct wm_msg m;

			sample_master(&r, sample_master_types[t], &m);
			if (m.type != WM_ROUND || m.u.round.n_rings < 20)
				encode_decode(&m);
			wire_master_clear(&m);
		}
	}
}
END_TEST

START_TEST(codec_of_admin_messages_survives_lack_of_memory)
{
	struct tl_rng r = tl_rng_new(2);

	for (int i = 0; i < 10; i++) {
		struct wa_reply a, got = {.version = 77};
		uint8_t *frame = NULL;
		const char *why = NULL;
		size_t len = 0;
		long n = 0;

		sample_admin_reply(&r, &a);
		do
			arm(n++);
		while (reported(wire_admin_encode_reply(&a, &frame, &len)));
		n = 0;
		do {
			ck_assert_uint_eq(got.version, 77);
			arm(n++);
		} while (reported(wire_admin_decode_reply(
			frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR, &got, &why)));
		ck_assert(same_admin_reply(&a, &got));
		wa_reply_clear(&got);
		wa_reply_clear(&a);
		free(frame);
	}
}
END_TEST

START_TEST(builder_of_replies_survives_lack_of_memory)
{
	for (long n = 0;; n++) {
		struct wa_reply r = {.version_min = 1, .version_max = 1, .version = 1};
		struct wa_table *t;
		uint8_t *frame = NULL;
		size_t len = 0;

		arm(n);
		t = wa_table_add(&r, "t");
		wa_col_add(t, "c", WA_KIND_TEXT);
		for (int i = 0; i < 40; i++) {
			wa_row_add(t);
			wa_set_text(t, 0, "%d", i);
		}
		if (!reported(wire_admin_encode_reply(&r, &frame, &len))) {
			free(frame);
			wa_reply_clear(&r);
			break;
		}
		ck_assert_ptr_null(frame);
		wa_reply_clear(&r);
	}
}
END_TEST

/* Decoding a frame of half a million empty addresses would need 60 times its size. A frame of
 * rounds that are merged again and again would need memory without a bound. */
START_TEST(decoding_needs_a_bounded_amount_of_memory)
{
	/* The head of a hello of 2^20 - 4 bytes, and a whole round with an empty ring. */
	static const uint8_t hello[4] = {0x0a, 0xfc, 0xff, 0x3f}, round[5] = {0x92, 2, 2, 0x1a, 0};
	size_t len = WIRE_FRAME_MAX - WIRE_FRAME_MAX % sizeof round;
	uint8_t *p = malloc(WIRE_FRAME_MAX);
	const char *why = NULL;
	struct wm_msg m;

	ck_assert_ptr_nonnull(p);
	memcpy(p, hello, sizeof hello);
	for (size_t i = sizeof hello; i < WIRE_FRAME_MAX; i++)
		p[i] = i % 2 == 0 ? 0x3a : 0;
	allocated = 0;
	ck_assert_int_eq(wire_master_decode(p, WIRE_FRAME_MAX, &m, &why), CC_ERR_LIMIT);
	ck_assert_str_eq(why, "message: more fields than any valid one has");
	ck_assert_uint_le(allocated, 20u << 20);
	for (size_t i = 0; i < len; i += sizeof round)
		memcpy(p + i, round, sizeof round);
	allocated = 0;
	ck_assert_int_eq(wire_master_decode(p, len, &m, &why), CC_ERR_LIMIT);
	ck_assert_uint_le(allocated, 20u << 20);
	free(p);
}
END_TEST

Suite *nomem_suite(void)
{
	Suite *s = suite_create("nomem");
	TCase *tc = tcase_create("nomem");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, codec_of_master_messages_survives_lack_of_memory);
	tcase_add_test(tc, codec_of_admin_messages_survives_lack_of_memory);
	tcase_add_test(tc, builder_of_replies_survives_lack_of_memory);
	tcase_add_test(tc, decoding_needs_a_bounded_amount_of_memory);
	suite_add_tcase(s, tc);
	return s;
}
