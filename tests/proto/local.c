/* SPDX-License-Identifier: MIT */
#include "proto/wire_local.h"

#include <string.h>

#include "common/cc_err.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

static const char *why;

/* Decodes a copy of exactly this size, so that a sanitizer detects every read beyond the end. */
static int get_request(const uint8_t *p, size_t len, struct wl_request *ret)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, len);
	why = NULL;
	rc = wire_local_get_request(copy, len, ret, &why);
	ck_assert((rc == 0) == (why == NULL));
	free(copy);
	return rc;
}

static int get_reply(const uint8_t *p, size_t len, struct wl_reply *ret)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, len);
	why = NULL;
	rc = wire_local_get_reply(copy, len, ret, &why);
	ck_assert((rc == 0) == (why == NULL));
	free(copy);
	return rc;
}

/* Encodes and decodes a request. Returns the result of the decoder. */
static int pass_request(const struct wl_request *q, struct wl_request *ret)
{
	uint8_t buf[WL_PACKET_MAX];
	int len = wire_local_put_request(q, buf);

	ck_assert_int_gt(len, 0);
	return get_request(buf, (size_t)len, ret);
}

static void accepted(const struct wl_request *q)
{
	struct wl_request got;

	ck_assert_msg(pass_request(q, &got) == 0, "%s", why);
	ck_assert(same_request(q, &got));
}

static void refused(const struct wl_request *q, const char *field)
{
	struct wl_request got = {.req_id = 4711};

	ck_assert_int_eq(pass_request(q, &got), CC_ERR_PROTO);
	ck_assert_msg(strncmp(why, field, strlen(field)) == 0 && why[strlen(field)] == ':',
		"expected %s, got \"%s\"", field, why);
	ck_assert_uint_eq(got.req_id, 4711);
}

START_TEST(requests_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(1);
	struct wl_request q;

	for (int i = 0; i < 500; i++) {
		for (int type = WL_HELLO; type <= WL_REGION_ADOPT; type++) {
			sample_request(&r, (enum wl_type)type, &q);
			accepted(&q);
		}
	}
}
END_TEST

START_TEST(replies_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(2);
	uint8_t buf[WL_PACKET_MAX];
	struct wl_reply p, got;
	int len;

	for (int i = 0; i < 2000; i++) {
		sample_reply(&r, &p);
		len = wire_local_put_reply(&p, buf);
		ck_assert_int_ge(len, 0);
		ck_assert_msg(get_reply(buf, (size_t)len, &got) == 0, "%s", why);
		ck_assert(same_reply(&p, &got));
	}
}
END_TEST

START_TEST(cut_packet_is_refused)
{
	struct tl_rng r = tl_rng_new(3);
	uint8_t buf[WL_PACKET_MAX];
	struct wl_request q, got;
	struct wl_reply p, got_reply;
	int len;

	for (int i = 0; i < 20; i++) {
		for (int type = WL_HELLO; type <= WL_REGION_ADOPT; type++) {
			sample_request(&r, (enum wl_type)type, &q);
			len = wire_local_put_request(&q, buf);
			/* The req_id is the last field, so every cut packet is refused. */
			for (int n = 0; n < len; n++)
				ck_assert_int_eq(get_request(buf, (size_t)n, &got), CC_ERR_PROTO);
		}
		sample_reply(&r, &p);
		len = wire_local_put_reply(&p, buf);
		for (int n = 0; n < len; n++)
			if (get_reply(buf, (size_t)n, &got_reply) == 0)
				ck_assert_int_ge(wire_local_put_reply(&got_reply, buf), 0);
	}
}
END_TEST

START_TEST(limits_of_requests_are_enforced)
{
	struct tl_rng r = tl_rng_new(4);
	struct wl_request q;

	sample_request(&r, WL_COMM_CONNECT, &q);
	q.req_id = 0;
	refused(&q, "request.req_id");
	sample_request(&r, WL_HELLO, &q);
	q.version_min = 0;
	refused(&q, "hello.version_min");
	q.version_min = 2;
	q.version_max = 1;
	refused(&q, "hello.version_min");
	q.version_max = 65536;
	refused(&q, "hello.version_min");
	sample_request(&r, WL_COMM_CREATE, &q);
	q.pool_size = 64;
	accepted(&q);
	q.pool_size = 65;
	refused(&q, "comm_create.pool_size");
	sample_request(&r, WL_COMM_CREATE, &q);
	q.master.port = 0;
	refused(&q, "comm_create.master");
	q.master.port = 1;
	accepted(&q);
	q.master.family = 0;
	refused(&q, "comm_create.master");
	sample_request(&r, WL_COMM_CREATE, &q);
	q.master_addr = q.master;
	accepted(&q);
	q.master_addr.port = 0;
	refused(&q, "comm_create.master_addr");
	q.master_addr = (struct cc_addr){.family = 0};
	accepted(&q);
	sample_request(&r, WL_REGION_ALLOC, &q);
	q.size = 0;
	refused(&q, "region_alloc.size");
	q.size = (uint64_t)1 << 48;
	accepted(&q);
	q.size++;
	refused(&q, "region_alloc.size");
	sample_request(&r, WL_REGION_ALLOC, &q);
	q.use = 0;
	refused(&q, "region_alloc.use");
	q.use = WL_REGION_STATE;
	accepted(&q);
	q.use++;
	refused(&q, "region_alloc.use");
	sample_request(&r, WL_REGION_ADOPT, &q);
	q.size = 0;
	refused(&q, "region_adopt.size");
	q.size = (uint64_t)1 << 48;
	accepted(&q);
	q.size++;
	refused(&q, "region_adopt.size");
}
END_TEST

START_TEST(limits_of_peer_ids_and_votes_are_enforced)
{
	static const struct cc_id zero;
	struct tl_rng r = tl_rng_new(5);
	struct wl_request q;

	sample_request(&r, WL_COMM_CONNECT, &q);
	q.peer = zero;
	refused(&q, "comm_connect.peer");
	sample_request(&r, WL_COMM_CONNECT, &q);
	q.token = zero;
	refused(&q, "comm_connect.token");
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.peer = zero;
	refused(&q, "comm_attach.peer");
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.token = zero;
	refused(&q, "comm_attach.token");
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.run = zero;
	refused(&q, "comm_attach.run");
}
END_TEST

START_TEST(limits_of_comm_attach_are_enforced)
{
	struct tl_rng r = tl_rng_new(6);
	struct wl_request q;

	sample_request(&r, WL_COMM_ATTACH, &q);
	q.pool_size = 64;
	accepted(&q);
	q.pool_size = 65;
	refused(&q, "comm_attach.pool_size");
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.master.port = 0;
	refused(&q, "comm_attach.master");
	q.master.port = 1;
	q.master.family = 0;
	refused(&q, "comm_attach.master");
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.master_addr = q.master;
	accepted(&q);
	q.master_addr.port = 0;
	refused(&q, "comm_attach.master_addr");
	q.master_addr = (struct cc_addr){.family = 0};
	accepted(&q);
	sample_request(&r, WL_COMM_ATTACH, &q);
	q.n_seqs = WL_SEQS_MAX;
	for (uint32_t i = 0; i < WL_SEQS_MAX; i++)
		q.seqs[i] = UINT64_MAX;
	accepted(&q);
	q.n_succeeded = WL_SEQS_MAX;
	accepted(&q);
	q.n_succeeded++;
	refused(&q, "comm_attach.succeeded");
	q.n_succeeded = 0;
	q.seqs[WL_SEQS_MAX - 1] = 0;
	refused(&q, "comm_attach.seqs");
}
END_TEST

/* The packet has more seqs than the encoder can write. */
START_TEST(number_of_seqs_in_comm_attach_is_limited)
{
	/* comm_attach with the master 1.1.1.1:1 and three ids; its length is filled in below. */
	uint8_t raw[256] = {0x4a, 0xff, 0x01, 0x0a, 8, 0x0a, 4, 1, 1, 1, 1, 0x10, 1};
	struct wl_request got;
	size_t at = 13;

	for (uint8_t field = 4; field <= 6; field++) {
		raw[at++] = (uint8_t)(field << 3 | 2);
		raw[at++] = 16;
		memset(raw + at, field, 16);
		at += 16;
	}
	raw[at++] = 0x52;
	raw[at++] = WL_SEQS_MAX;
	memset(raw + at, 1, WL_SEQS_MAX + 1);
	for (size_t n = WL_SEQS_MAX; n <= WL_SEQS_MAX + 1; n++) {
		raw[at - 1] = (uint8_t)n;
		raw[1] = (uint8_t)((at + n - 3) | 0x80);
		raw[2] = (uint8_t)((at + n - 3) >> 7);
		raw[at + n] = 0x78;
		raw[at + n + 1] = 1;
		if (n == WL_SEQS_MAX) {
			ck_assert_int_eq(get_request(raw, at + n + 2, &got), 0);
			ck_assert_uint_eq(got.n_seqs, n);
		} else {
			ck_assert_int_eq(get_request(raw, at + n + 2, &got), CC_ERR_PROTO);
			ck_assert_str_eq(why, "comm_attach.seqs: must be at most 64");
		}
	}
}
END_TEST

START_TEST(only_the_versions_of_an_unknown_hello_are_decoded)
{
	struct wl_request q = {
		.type = WL_HELLO,
		.req_id = 1,
		.version_min = WL_VERSION_MAX + 1,
		.version_max = WL_VERSION_MAX + 4,
		.features = 3,
		.name = "later",
	};
	struct wl_request got;

	ck_assert_int_eq(pass_request(&q, &got), 0);
	ck_assert_uint_eq(got.version_min, q.version_min);
	ck_assert_uint_eq(got.version_max, q.version_max);
	ck_assert_str_eq(got.name, "");
}
END_TEST

START_TEST(limits_of_replies_are_enforced)
{
	static const struct {
		struct wl_reply r;
		const char *why;
	} row[] = {
		{{.code = 255, .size = (uint64_t)1 << 48, .version_max = 65535}, NULL},
		{{.code = 256}, "reply.code: must be at most 255"},
		{{.version_min = 2, .version_max = 1},
			"reply.version_max: must be version_min to 65535"},
		{{.version_max = 65536}, "reply.version_max: must be version_min to 65535"},
		{{.version = 65536}, "reply.version: must be at most 65535"},
		{{.size = ((uint64_t)1 << 48) + 1}, "reply.size: must be at most 2^48"},
		{{.comm = 1, .region = 9, .size = 1}, NULL},
		{{.comm = 1, .region = 9},
			"reply: a region that was not requested must have a size and no code"},
		{{.comm = 1, .region = 9, .size = 1, .code = 8},
			"reply: a region that was not requested must have a size and no code"},
	};
	uint8_t buf[WL_PACKET_MAX];
	struct wl_reply got;

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		int len = wire_local_put_reply(&row[i].r, buf);

		ck_assert_int_gt(len, 0);
		if (row[i].why == NULL) {
			ck_assert_int_eq(get_reply(buf, (size_t)len, &got), 0);
			continue;
		}
		ck_assert_int_eq(get_reply(buf, (size_t)len, &got), CC_ERR_PROTO);
		ck_assert_str_eq(why, row[i].why);
	}
}
END_TEST

START_TEST(text_of_a_reply_is_limited_and_cleaned)
{
	uint8_t buf[WL_PACKET_MAX] = {0x1a, 0x80, 0x04};
	struct wl_reply got;

	memset(buf + 3, '\t', 512);
	ck_assert_int_eq(get_reply(buf, 3 + 512, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, "reply.text: must be at most 511 bytes");
	buf[1] = 0xff;
	buf[2] = 0x03;
	ck_assert_int_eq(get_reply(buf, 3 + 511, &got), 0);
	ck_assert_uint_eq(strspn(got.text, "?"), 511);
}
END_TEST

START_TEST(view_of_a_reply_is_decoded)
{
	/* field 17: version, global */
	uint8_t buf[] = {0x8a, 1, 4, 0x08, 1, 0x10, 3};
	struct wl_reply got;

	ck_assert_int_eq(get_reply(buf, sizeof buf, &got), 0);
	ck_assert_uint_eq(got.view.view_id, 1);
	ck_assert_uint_eq(got.view.global, 3);
	buf[4] = 0;
	ck_assert_int_eq(get_reply(buf, sizeof buf, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, "reply.view.view_id: must be at least 1");
	ck_assert_int_eq(get_reply(buf, 0, &got), 0);
	ck_assert_uint_eq(got.view.view_id, 0);
}
END_TEST

START_TEST(run_of_a_reply_must_be_an_id)
{
	uint8_t buf[2 + 17] = {0x62, 15};
	struct wl_reply got;

	memset(buf + 2, 1, 17);
	ck_assert_int_eq(get_reply(buf, 2 + 15, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, "reply.run: must be empty, or 16 bytes that are not all zero");
	buf[1] = 17;
	ck_assert_int_eq(get_reply(buf, 2 + 17, &got), CC_ERR_PROTO);
	buf[1] = 16;
	ck_assert_int_eq(get_reply(buf, 2 + 16, &got), 0);
	memset(buf + 2, 0, 16);
	ck_assert_int_eq(get_reply(buf, 2 + 16, &got), CC_ERR_PROTO);
}
END_TEST

START_TEST(malformed_packets_are_refused)
{
	static const uint8_t other[] = {0x82, 0x06, 2, 0x08, 1, 0x78, 1}; /* field 96, req_id 1 */
	uint8_t *large = calloc(1, WL_PACKET_MAX + 1);
	struct wl_request q;
	struct wl_reply p;

	ck_assert_ptr_nonnull(large);
	ck_assert_int_eq(get_request(other, 0, &q), CC_ERR_PROTO);
	ck_assert_int_eq(get_request(other, sizeof other, &q), CC_ERR_PROTO);
	ck_assert_str_eq(why, "request.kind: not one that this version knows");
	ck_assert_int_eq(get_request(large, WL_PACKET_MAX + 1, &q), CC_ERR_LIMIT);
	ck_assert_int_eq(get_reply(large, WL_PACKET_MAX + 1, &p), CC_ERR_LIMIT);
	ck_assert_str_eq(why, "packet: must be at most 4096 bytes");
	free(large);
}
END_TEST

START_TEST(encoder_refuses_unknown_types_and_cleans_names)
{
	struct wl_request q = {.type = (enum wl_type)12, .req_id = 1}, got;
	uint8_t buf[WL_PACKET_MAX];

	ck_assert_int_eq(wire_local_put_request(&q, buf), CC_ERR_INVAL);
	/* A program may have any name. */
	q = (struct wl_request){.type = WL_HELLO,
		.req_id = 1,
		.version_min = WL_VERSION_MIN,
		.version_max = WL_VERSION_MAX};
	memset(q.name, '\r', sizeof q.name - 1);
	ck_assert_int_eq(pass_request(&q, &got), 0);
	ck_assert_uint_eq(strspn(got.name, "?"), WL_NAME_MAX - 1);
}
END_TEST

Suite *local_suite(void)
{
	Suite *s = suite_create("local");
	TCase *tc = tcase_create("local");

	tcase_add_test(tc, requests_survive_encoding_and_decoding);
	tcase_add_test(tc, replies_survive_encoding_and_decoding);
	tcase_add_test(tc, cut_packet_is_refused);
	tcase_add_test(tc, limits_of_requests_are_enforced);
	tcase_add_test(tc, limits_of_peer_ids_and_votes_are_enforced);
	tcase_add_test(tc, limits_of_comm_attach_are_enforced);
	tcase_add_test(tc, number_of_seqs_in_comm_attach_is_limited);
	tcase_add_test(tc, only_the_versions_of_an_unknown_hello_are_decoded);
	tcase_add_test(tc, limits_of_replies_are_enforced);
	tcase_add_test(tc, text_of_a_reply_is_limited_and_cleaned);
	tcase_add_test(tc, run_of_a_reply_must_be_an_id);
	tcase_add_test(tc, view_of_a_reply_is_decoded);
	tcase_add_test(tc, malformed_packets_are_refused);
	tcase_add_test(tc, encoder_refuses_unknown_types_and_cleans_names);
	suite_add_tcase(s, tc);
	return s;
}
