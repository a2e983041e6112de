/* SPDX-License-Identifier: MIT */
#include "proto/wire_admin.h"

#include <string.h>

#include "common/cc_err.h"
#include "proto/wire_frame.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

static const char *why;

/* Decodes a copy of exactly this size, so that a sanitizer detects every read beyond the end. */
static int decode_reply(const uint8_t *p, size_t len, struct wa_reply *ret)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, len);
	why = NULL;
	rc = wire_admin_decode_reply(copy, len, ret, &why);
	ck_assert((rc == 0) == (why == NULL));
	free(copy);
	return rc;
}

static int pass_reply(const struct wa_reply *r, struct wa_reply *ret)
{
	uint8_t *frame;
	size_t len;
	int rc;

	ck_assert_int_eq(wire_admin_encode_reply(r, &frame, &len), 0);
	ck_assert_int_eq(wire_frame_peek(frame, len, WIRE_KIND_ADMIN), (int)(len - WIRE_FRAME_HDR));
	rc = decode_reply(frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR, ret);
	free(frame);
	return rc;
}

static void accepted(const struct wa_reply *r)
{
	struct wa_reply got;

	ck_assert_msg(pass_reply(r, &got) == 0, "%s", why);
	ck_assert(same_admin_reply(r, &got));
	wa_reply_clear(&got);
}

static void refused(const struct wa_reply *r, const char *text)
{
	struct wa_reply got = {.version = 4711};

	ck_assert_int_eq(pass_reply(r, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, text);
	ck_assert_uint_eq(got.version, 4711);
}

START_TEST(replies_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(1);

	for (int i = 0; i < 200; i++) {
		struct wa_reply a;

		sample_admin_reply(&r, &a);
		accepted(&a);
		wa_reply_clear(&a);
	}
}
END_TEST

START_TEST(cut_reply_is_refused)
{
	struct tl_rng r = tl_rng_new(2);

	for (int i = 0; i < 5; i++) {
		struct wa_reply a, got;
		uint8_t *frame;
		size_t len;

		sample_admin_reply(&r, &a);
		ck_assert_int_eq(wire_admin_encode_reply(&a, &frame, &len), 0);
		len -= WIRE_FRAME_HDR;
		for (size_t n = 0; n < len && n < 2000; n++) {
			if (decode_reply(frame + WIRE_FRAME_HDR, n, &got) == 0) {
				accepted(&got);
				wa_reply_clear(&got);
			}
		}
		free(frame);
		wa_reply_clear(&a);
	}
}
END_TEST

static int pass_request(const struct wa_request *q, struct wa_request *ret)
{
	uint8_t *frame;
	size_t len;
	int rc;

	ck_assert_int_eq(wire_admin_encode_request(q, &frame, &len), 0);
	ck_assert_int_eq(wire_frame_peek(frame, len, WIRE_KIND_ADMIN), (int)(len - WIRE_FRAME_HDR));
	why = NULL;
	rc = wire_admin_decode_request(frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR, ret, &why);
	free(frame);
	return rc;
}

START_TEST(requests_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(3);
	struct wa_request q = {0}, got;

	for (int i = 0; i < 100; i++) {
		for (int verb = WA_STATUS; verb <= WA_PROGRESS; verb++) {
			sample_admin_request(&r, (enum wa_verb)verb, &q);
			ck_assert_msg(pass_request(&q, &got) == 0, "%s", why);
			ck_assert(same_admin_request(&q, &got));
		}
	}
	q.verb = (enum wa_verb)(WA_PROGRESS + 1);
	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, "request.verb: not one that this version knows");
	q.verb = (enum wa_verb)0;
	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
	/* If a request offers only unknown versions, nothing but their range is decoded. */
	q.version_min = WA_VERSION_MAX + 1;
	ck_assert_int_eq(pass_request(&q, &got), 0);
	ck_assert_uint_eq(got.version_min, q.version_min);
	q.version_max = WA_VERSION_MAX;
	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
	q.version_min = 0;
	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
	q = (struct wa_request){.version_min = 1, .version_max = 65536, .verb = WA_OPS};
	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
}
END_TEST

START_TEST(limits_of_set_master_are_enforced)
{
	struct wa_request q = {.version_min = 1, .version_max = 1, .verb = WA_SET_MASTER}, got;
	/* Versions 1 to 1, verb 4, and arguments of 66 bytes with one address of 64 bytes. */
	uint8_t raw[8 + 66] = {8, 1, 16, 1, 24, 4, 0x22, 66, 0x0a, 64};

	ck_assert_int_eq(pass_request(&q, &got), CC_ERR_PROTO);
	ck_assert_str_eq(why, "request.set_master.from: must not be empty without run");
	q.run = 1;
	ck_assert_int_eq(pass_request(&q, &got), 0);
	q.run = 0;
	strcpy(q.from, "[::1]:48148");
	ck_assert_int_eq(pass_request(&q, &got), 0);
	/* Another verb ignores the arguments. */
	q.verb = WA_OPS;
	q.now = true;
	ck_assert_int_eq(pass_request(&q, &got), 0);
	ck_assert_str_eq(got.from, "");
	ck_assert(!got.now);

	memset(raw + 10, 'a', 64);
	ck_assert_int_eq(wire_admin_decode_request(raw, sizeof raw, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why,
		"request.set_master.from: must be at most 63 bytes without control characters");
	raw[8] = 0x12;
	ck_assert_int_eq(wire_admin_decode_request(raw, sizeof raw, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(
		why, "request.set_master.to: must be at most 63 bytes without control characters");
	raw[7] = 65;
	raw[9] = 63;
	raw[10] = '\n';
	ck_assert_int_eq(wire_admin_decode_request(raw, sizeof raw - 1, &got, &why), CC_ERR_PROTO);
	raw[8] = 0x0a;
	ck_assert_int_eq(wire_admin_decode_request(raw, sizeof raw - 1, &got, &why), CC_ERR_PROTO);
	raw[10] = 'a';
	ck_assert_int_eq(wire_admin_decode_request(raw, sizeof raw - 1, &got, &why), 0);
	ck_assert_uint_eq(strlen(got.from), 63);
	ck_assert_int_eq(wire_admin_decode_request(raw, 6, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "request.set_master: must be there");
}
END_TEST

/* Returns a valid reply with one table of two columns and two rows. */
static struct wa_reply small(void)
{
	struct wa_reply r = {.version_min = 1, .version_max = 1, .version = 1};
	struct wa_table *t = wa_table_add(&r, "peers");

	wa_col_add(t, "name", WA_KIND_TEXT);
	wa_col_add(t, "alive", WA_KIND_BOOL);
	wa_row_add(t);
	wa_set_text(t, 0, "%s-%d", "host", 1);
	wa_set_number(t, 1, 1);
	wa_row_add(t);
	return r;
}

START_TEST(builder_makes_a_valid_reply)
{
	struct wa_reply r = small(), got;

	accepted(&r);
	wa_set_text(&r.tables[0], 0, "a");
	wa_set_text(&r.tables[0], 0, "b\nc");
	ck_assert_int_eq(pass_reply(&r, &got), 0);
	ck_assert_str_eq(got.tables[0].cells[0].text, "host-1");
	ck_assert_uint_eq(got.tables[0].cells[1].number, 1);
	ck_assert_str_eq(got.tables[0].cells[2].text, "b?c");
	ck_assert_uint_eq(got.tables[0].cells[3].number, 0);
	wa_reply_clear(&got);
	wa_reply_clear(&r);
	ck_assert_uint_eq(r.n_tables, 0);
}
END_TEST

START_TEST(limits_of_replies_are_enforced)
{
	static const char key[] = "reply.tables.name: must be 1 to 31 of a-z 0-9 _";
	static const char col[] = "reply.tables.columns.name: must be 1 to 31 of a-z 0-9 _";
	struct wa_reply r = small();
	struct wa_table *t = &r.tables[0];

	strcpy(t->name, "");
	refused(&r, key);
	strcpy(t->name, "Peers");
	refused(&r, key);
	strcpy(t->name, "peers");
	strcpy(t->col[0].name, "a b");
	refused(&r, col);
	strcpy(t->col[0].name, "alive");
	refused(&r, "reply.tables.columns.name: must be unique");
	strcpy(t->col[0].name, "name");
	t->cells[1].number = 2;
	refused(&r, "reply.tables.numbers: must be 0 or 1 for a bool");
	t->col[1].kind = (enum wa_kind)(WA_KIND_BITS + 1);
	refused(&r, "reply.tables.columns.kind: must be 1 to 7");
	t->col[1].kind = (enum wa_kind)0;
	refused(&r, "reply.tables.columns.kind: must be 1 to 7");
	t->col[1].kind = WA_KIND_RATE;
	accepted(&r);
	t->col[1].kind = WA_KIND_BITS;
	accepted(&r);
	t->col[1].kind = WA_KIND_NS;
	t->cells[1].number = WA_UNKNOWN;
	accepted(&r);
	r.version_max = 65536;
	refused(&r, "reply.version_min: must be 1 to version_max, which must be at most 65535");
	wa_reply_clear(&r);
}
END_TEST

START_TEST(reply_of_another_version_is_refused)
{
	struct wa_reply r = small(), got;

	r.version = WA_VERSION_MAX + 1;
	ck_assert_int_eq(pass_reply(&r, &got), CC_ERR_VERSION);
	ck_assert_str_eq(why, "reply.version: not one of those offered");
	r.version = 0;
	strcpy(r.error, "too old");
	ck_assert_int_eq(pass_reply(&r, &got), 0);
	ck_assert_str_eq(got.error, "too old");
	ck_assert_uint_eq(got.n_tables, 0);
	wa_reply_clear(&got);
	wa_reply_clear(&r);
}
END_TEST

/* Checks that the encoder returns the error that the builder has remembered. */
static void building_failed(struct wa_reply *r, int err)
{
	uint8_t *frame = NULL;
	size_t len;

	ck_assert_int_eq(wire_admin_encode_reply(r, &frame, &len), err);
	ck_assert_ptr_null(frame);
	wa_reply_clear(r);
}

START_TEST(errors_of_the_builder_are_returned_by_the_encoder)
{
	struct wa_reply r = small();

	wa_col_add(&r.tables[0], "late", WA_KIND_COUNT);
	building_failed(&r, CC_ERR_STATE);
	r = small();
	wa_set_number(&r.tables[0], 0, 1);
	building_failed(&r, CC_ERR_INVAL);
	r = small();
	wa_set_text(&r.tables[0], 1, "text");
	building_failed(&r, CC_ERR_INVAL);
	r = small();
	wa_set_number(&r.tables[0], 2, 1);
	building_failed(&r, CC_ERR_INVAL);
	r = small();
	wa_set_number(wa_table_add(&r, "empty"), 0, 1);
	building_failed(&r, CC_ERR_INVAL);
	r = small();
	wa_row_add(wa_table_add(&r, "no_columns"));
	building_failed(&r, CC_ERR_LIMIT);
}
END_TEST

START_TEST(limits_of_the_builder_are_enforced)
{
	struct wa_reply r = {.version_min = 1, .version_max = 1, .version = 1};
	struct wa_table *t = wa_table_add(&r, "t");

	for (unsigned i = 0; i < WA_COLS_MAX; i++)
		wa_col_add(t, (char[]){'c', (char)('a' + i), '\0'}, WA_KIND_TEXT);
	accepted(&r);
	wa_col_add(t, "more", WA_KIND_TEXT);
	building_failed(&r, CC_ERR_LIMIT);
	r = small();
	for (unsigned i = 1; i < WA_TABLES_MAX; i++)
		wa_col_add(wa_table_add(&r, (char[]){(char)('a' + i), '\0'}), "c", WA_KIND_COUNT);
	accepted(&r);
	/* The other functions of the builder accept a missing table. */
	t = wa_table_add(&r, "more");
	ck_assert_ptr_null(t);
	wa_col_add(t, "c", WA_KIND_TEXT);
	wa_row_add(t);
	wa_set_number(t, 0, 1);
	wa_set_text(t, 0, "x");
	building_failed(&r, CC_ERR_LIMIT);
}
END_TEST

/* Rows of empty texts and small numbers are the smallest rows. Replies with them must decode up to
 * the limit of rows. */
START_TEST(limits_of_rows_are_enforced)
{
	struct wa_reply r = {.version_min = 1, .version_max = 1, .version = 1};
	struct wa_table *t = wa_table_add(&r, "rows");

	wa_col_add(t, "text", WA_KIND_TEXT);
	wa_col_add(t, "text_too", WA_KIND_TEXT);
	wa_col_add(t, "number", WA_KIND_COUNT);
	for (unsigned i = 0; i < WA_ROWS_MAX; i++)
		wa_row_add(t);
	accepted(&r);
	wa_row_add(t);
	building_failed(&r, CC_ERR_LIMIT);
}
END_TEST

START_TEST(reply_larger_than_a_frame_is_refused)
{
	struct wa_reply r = {.version_min = 1, .version_max = 1, .version = 1};
	struct wa_table *t = wa_table_add(&r, "rows");

	wa_col_add(t, "text", WA_KIND_TEXT);
	for (unsigned i = 0; i < WIRE_FRAME_MAX / WA_TEXT_MAX + 2; i++) {
		wa_row_add(t);
		wa_set_text(t, 0, "%600d", 1);
	}
	building_failed(&r, CC_ERR_LIMIT);
}
END_TEST

/* The tables have counts that do not match their contents. */
START_TEST(tables_with_wrong_counts_are_refused)
{
	/* Versions 1 to 1, version 1 chosen, and one table "t" with column "c". Rows and cells
	 * follow. */
	static const uint8_t head[] = {
		8, 1, 16, 1, 24, 1, 0x3a, 0, 0x0a, 1, 't', 0x12, 5, 0x0a, 1, 'c', 0x10};
	static const struct {
		uint8_t kind, cells[8];
		size_t len;
		const char *why;
	} row[] = {
		{2, {0x18, 1, 0x22, 1, 7}, 5, NULL},
		{2, {0x18, 1, 0x20, 7}, 4, NULL},
		{1, {0x18, 1, 0x2a, 1, 'x'}, 5, NULL},
		{2, {0x18, 2, 0x22, 1, 7}, 5,
			"reply.tables.numbers: must be rows * columns of numbers"},
		{2, {0x18, 0, 0x22, 1, 7}, 5,
			"reply.tables.numbers: must be rows * columns of numbers"},
		{1, {0x18, 1, 0x22, 1, 7}, 5, "reply.tables.texts: must be rows * columns of text"},
		{2, {0x18, 1, 0x22, 1, 7, 0x2a, 0}, 7,
			"reply.tables.texts: must be rows * columns of text"},
		{2, {0x18, 0xa1, 0x8d, 6}, 4, "reply.tables.rows: must be at most 100000"},
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		uint8_t msg[sizeof head + 1 + sizeof row[0].cells];
		struct wa_reply got;

		memcpy(msg, head, sizeof head);
		msg[sizeof head] = row[i].kind;
		memcpy(msg + sizeof head + 1, row[i].cells, row[i].len);
		msg[7] = (uint8_t)(sizeof head - 8 + 1 + row[i].len);
		if (decode_reply(msg, sizeof head + 1 + row[i].len, &got) == 0) {
			ck_assert_ptr_null(row[i].why);
			wa_reply_clear(&got);
		} else {
			ck_assert_ptr_nonnull(row[i].why);
			ck_assert_str_eq(why, row[i].why);
		}
	}
}
END_TEST

START_TEST(message_longer_than_a_frame_is_refused)
{
	uint8_t *p = calloc(1, WIRE_FRAME_MAX + 1);
	struct wa_request q;
	struct wa_reply r;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(wire_admin_decode_request(p, WIRE_FRAME_MAX + 1, &q, &why), CC_ERR_LIMIT);
	ck_assert_int_eq(wire_admin_decode_reply(p, WIRE_FRAME_MAX + 1, &r, &why), CC_ERR_LIMIT);
	free(p);
}
END_TEST

Suite *admin_suite(void)
{
	Suite *s = suite_create("admin");
	TCase *tc = tcase_create("admin");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, replies_survive_encoding_and_decoding);
	tcase_add_test(tc, cut_reply_is_refused);
	tcase_add_test(tc, requests_survive_encoding_and_decoding);
	tcase_add_test(tc, limits_of_set_master_are_enforced);
	tcase_add_test(tc, builder_makes_a_valid_reply);
	tcase_add_test(tc, limits_of_replies_are_enforced);
	tcase_add_test(tc, reply_of_another_version_is_refused);
	tcase_add_test(tc, errors_of_the_builder_are_returned_by_the_encoder);
	tcase_add_test(tc, limits_of_the_builder_are_enforced);
	tcase_add_test(tc, limits_of_rows_are_enforced);
	tcase_add_test(tc, reply_larger_than_a_frame_is_refused);
	tcase_add_test(tc, tables_with_wrong_counts_are_refused);
	tcase_add_test(tc, message_longer_than_a_frame_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
