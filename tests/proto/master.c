/* SPDX-License-Identifier: MIT
 *
 * Tests of the codec of the messages between agents and the master.
 */
#include "tests/proto/master_check.h"
#include "tests/proto/suites.h"

START_TEST(messages_survive_encoding_and_decoding)
{
	struct tl_rng r = tl_rng_new(1);

	for (int i = 0; i < 40; i++) {
		for (size_t t = 0; t < sample_master_n_types; t++) {
			struct wm_msg m;

			sample_master(&r, sample_master_types[t], &m);
			accepted(&m);
			wire_master_clear(&m);
		}
	}
}
END_TEST

START_TEST(cut_message_is_refused)
{
	struct tl_rng r = tl_rng_new(2);

	for (size_t t = 0; t < sample_master_n_types; t++) {
		struct wm_msg m, got;
		struct bytes b;
		const char *why;

		sample_master(&r, sample_master_types[t], &m);
		b = encode(&m);
		for (size_t len = 0; len < b.len && len < 3000; len++) {
			uint8_t *cut = malloc(len > 0 ? len : 1);

			ck_assert_ptr_nonnull(cut);
			memcpy(cut, b.p, len);
			why = NULL;
			/* The outermost length includes every byte, so no cut message is valid. */
			ck_assert_int_eq(wire_master_decode(cut, len, &got, &why), CC_ERR_PROTO);
			ck_assert_ptr_nonnull(why);
			free(cut);
		}
		free(b.p);
		wire_master_clear(&m);
	}
}
END_TEST

/* If damaged bytes decode to a message, the message is valid: it survives encoding and decoding. */
START_TEST(damaged_message_is_refused_or_decodes_to_a_valid_one)
{
	struct tl_rng r = tl_rng_new(3);
	int decoded = 0;

	for (int i = 0; i < 3000; i++) {
		size_t t = tl_range(&r, 0, sample_master_n_types - 1);
		struct wm_msg m, got;
		struct bytes b;
		const char *why;

		sample_master(&r, sample_master_types[t], &m);
		b = encode(&m);
		for (uint64_t n = tl_range(&r, 1, 4); n > 0; n--)
			b.p[tl_range(&r, 0, (b.len < 64 ? b.len : 64) - 1)] = (uint8_t)tl_u64(&r);
		if (wire_master_decode(b.p, b.len, &got, &why) == 0) {
			decoded++;
			accepted(&got);
			wire_master_clear(&got);
		}
		free(b.p);
		wire_master_clear(&m);
	}
	ck_assert_int_gt(decoded, 50);
}
END_TEST

/* Each eager operation sends some of these messages. To be fast, the decoder must not write the
 * whole struct, which has room for the largest messages. */
START_TEST(small_messages_leave_the_rest_of_the_struct_untouched)
{
	static const enum wm_type types[] = {WM_OP_VOTE, WM_OP_REPORT, WM_OP_START, WM_OP_DONE};
	struct tl_rng r = tl_rng_new(9);

	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		struct wm_msg m, got;
		const uint8_t *end = (const uint8_t *)(&got + 1);
		struct bytes b;
		const char *why = "";

		sample_master(&r, types[t], &m);
		b = encode(&m);
		memset(&got, 0xa5, sizeof got);
		ck_assert_int_eq(wire_master_decode(b.p, b.len, &got, &why), 0);
		wire_master_clear(&got);
		ck_assert_uint_lt(wire_master_size(types[t]), sizeof got / 2);
		for (const uint8_t *p = (uint8_t *)&got + wire_master_size(types[t]); p < end; p++)
			ck_assert_uint_eq(*p, 0xa5);
		free(b.p);
		wire_master_clear(&m);
	}
}
END_TEST

/* Decodes bytes that the encoder would not write. */
static int decode_raw(const void *p, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	int rc;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, len);
	rc = wire_master_decode(copy, len, got, why);
	free(copy);
	return rc;
}

START_TEST(message_of_an_unknown_kind_is_refused)
{
	static const uint8_t other[] = {0x82, 0x06, 2, 0x08, 1}; /* field 96 */
	struct wm_msg got;
	const char *why = NULL;

	ck_assert_int_eq(decode_raw("", 0, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "message.kind: not one that this version knows");
	ck_assert_int_eq(decode_raw(other, sizeof other, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "message.kind: not one that this version knows");
}
END_TEST

/* The encoder writes a key of zeros as an empty field. */
START_TEST(key_of_zeros_is_refused)
{
	uint8_t msg[37] = {0x82, 0x03, 34, 0x0a, 32}; /* knock_ack with a share */
	struct wm_msg got;
	const char *why = NULL;

	ck_assert_int_eq(decode_raw(msg, sizeof msg, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "knock_ack.share: must be 32 bytes, not all zero");
	msg[36] = 1;
	ck_assert_int_eq(decode_raw(msg, sizeof msg, &got, &why), 0);
	ck_assert_uint_eq(got.u.knock_ack.share.b[31], 1);
	wire_master_clear(&got);
}
END_TEST

START_TEST(unknown_fields_are_ignored)
{
	/* op_done with seq 5 and fields 9 and 10, in a message with field 99 */
	static const uint8_t msg[] = {
		0xba, 0x02, 8, 0x08, 5, 0x48, 7, 0x52, 2, 'h', 'i', 0x9a, 0x06, 1, 'x'};
	struct wm_msg got;
	const char *why = "";

	ck_assert_msg(decode_raw(msg, sizeof msg, &got, &why) == 0, "%s", why);
	ck_assert_uint_eq(got.type, WM_OP_DONE);
	ck_assert_uint_eq(got.u.op_done.seq, 5);
}
END_TEST

/* If a Message has only one field, the contents of the field are decoded directly. The results must
 * be the same as those of decoding the whole Message. */
START_TEST(unusual_encodings_are_decoded_or_refused)
{
	static const struct {
		uint8_t len, bytes[14];
		bool good;
	} v[] = {
		{5, {0xba, 0x02, 2, 0x08, 5}, true},
		/* Numbers with more bytes than needed. */
		{8, {0xba, 0x82, 0x00, 0x82, 0x80, 0x00, 0x08, 5}, true},
		{8, {0xba, 0x02, 0x82, 0x80, 0x80, 0x00, 0x08, 5}, true},
		{9, {0xba, 0x02, 0x82, 0x80, 0x80, 0x80, 0x00, 0x08, 5}, true},
		{9, {0x82, 0x03, 0, 0xba, 0x02, 2, 0x08, 5}, false}, /* bytes after the kind */
		/* If there are several kinds, the last one counts. */
		{8, {0x82, 0x03, 0, 0xba, 0x02, 2, 0x08, 5}, true},
		{10, {0xba, 0x02, 2, 0x08, 4, 0xba, 0x02, 2, 0x08, 5}, true},
		{8, {0xba, 0x02, 2, 0x08, 5, 0x82, 0x03, 0}, false},
		{5, {0xba, 0x02, 1, 0x08, 5}, false},
		{5, {0xba, 0x02, 3, 0x08, 5}, false},
		{4, {0xba, 0x02, 2, 0x08}, false},
		{3, {0xba, 0x02, 0}, false}, /* well-formed, but its number is missing */
		{2, {0xba, 0x02}, false},
		{1, {0xba}, false},
		{4, {0xb8, 0x02, 0x08, 5}, false}, /* fields of another type */
		{4, {0xbb, 0x02, 0x08, 5}, false},
		{5, {0xbd, 0x02, 2, 0x08, 5}, false},
		{4, {0x02, 2, 0x08, 5}, false},
	};

	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct wm_msg got;
		const char *why = NULL;
		int rc = decode_raw(v[i].bytes, v[i].len, &got, &why);

		ck_assert_msg(rc == (v[i].good ? 0 : CC_ERR_PROTO), "%zu: %d: %s", i, rc, why);
		if (!v[i].good)
			continue;
		ck_assert_uint_eq(got.type, WM_OP_DONE);
		ck_assert_uint_eq(got.u.op_done.seq, 5);
	}
}
END_TEST

START_TEST(id_of_another_size_is_refused)
{
	for (uint8_t n = 0; n <= 40; n++) {
		uint8_t msg[64] = {0x22, (uint8_t)(2 + n), 0x0a, n};
		struct wm_msg got;
		const char *why = NULL;

		memset(msg + 4, 'i', n);
		ck_assert_int_eq(decode_raw(msg, 4u + n, &got, &why), n == 16 ? 0 : CC_ERR_PROTO);
		if (n != 16)
			ck_assert_str_eq(why, "ballot_vote.peer: must be 16 bytes, not all zero");
	}
}
END_TEST

/* Decodes a kick with an id, a code and this text. */
static int decode_kick(const char *text, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t msg[600] = {0xca, 0x02};
	size_t inner = 18 + 2 + 3 + len, at = 2;

	msg[at++] = (uint8_t)(inner | 0x80);
	msg[at++] = (uint8_t)(inner >> 7);
	msg[at++] = 0x0a;
	msg[at++] = 16;
	memset(msg + at, 1, 16);
	at += 16;
	msg[at++] = 0x10;
	msg[at++] = 8;
	msg[at++] = 0x1a;
	msg[at++] = (uint8_t)(len | 0x80);
	msg[at++] = (uint8_t)(len >> 7);
	memcpy(msg + at, text, len);
	return decode_raw(msg, at + len, got, why);
}

START_TEST(texts_are_limited_and_cleaned)
{
	static const char dirty[] = "a\x01\n\x7f\xc2\x9b\xc2\xa0\xff\xc0\x80\xed\xa0\x80\xe2\x82";
	char longest[WM_TEXT_MAX];
	struct wm_msg got;
	const char *why = "";

	ck_assert_msg(decode_kick(dirty, strlen(dirty), &got, &why) == 0, "%s", why);
	ck_assert_str_eq(got.u.kick.text, "a?????\xc2\xa0????????");
	ck_assert_uint_eq(got.u.kick.code, 8);
	memset(longest, 'x', sizeof longest);
	ck_assert_int_eq(decode_kick(longest, WM_TEXT_MAX - 1, &got, &why), 0);
	ck_assert_uint_eq(strlen(got.u.kick.text), WM_TEXT_MAX - 1);
	ck_assert_int_eq(decode_kick(longest, WM_TEXT_MAX, &got, &why), CC_ERR_PROTO);
	ck_assert_str_eq(why, "kick.text: must be at most 383 bytes");
}
END_TEST

/* Decodes a join with an id, a token, a pool size and this name. */
static int decode_join(const char *name, size_t len, struct wm_msg *got, const char **why)
{
	uint8_t msg[128] = {0x12, (uint8_t)(18 + 18 + 2 + 2 + len), 0x0a, 16};
	static const uint8_t pool[] = {0x18, 1};

	memset(msg + 4, 1, 16);
	msg[20] = 0x32;
	msg[21] = 16;
	memset(msg + 22, 1, 16);
	memcpy(msg + 38, pool, sizeof pool);
	msg[40] = 0x2a;
	msg[41] = (uint8_t)len;
	memcpy(msg + 42, name, len);
	return decode_raw(msg, 42 + len, got, why);
}

START_TEST(unclean_names_are_refused)
{
	static const char *const good[] = {"", "host-1", "h\xc3\xb6st", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x1b[2J", "a\tb", "\x7f", "\xc2\x80", "\xc1\xbf", "\xc3",
		"\xe0\x9f\xbf", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80"};
	char longest[WM_NAME_MAX];
	struct wm_msg got;
	const char *why = "";

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		ck_assert_int_eq(decode_join(good[i], strlen(good[i]), &got, &why), 0);
		ck_assert_str_eq(got.u.join.name, good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert_int_eq(decode_join(bad[i], strlen(bad[i]), &got, &why), CC_ERR_PROTO);
		ck_assert_int_eq(strncmp(why, "join.name: ", 11), 0);
	}
	memset(longest, 'x', sizeof longest);
	ck_assert_int_eq(decode_join(longest, WM_NAME_MAX - 1, &got, &why), 0);
	ck_assert_int_eq(decode_join(longest, WM_NAME_MAX, &got, &why), CC_ERR_PROTO);
}
END_TEST

/* A frame full of the smallest elements is refused before it takes much memory or time. */
START_TEST(endless_repetition_of_small_elements_is_refused)
{
	static const uint8_t pattern[][4] = {
		{0x3a, 0, 0x3a, 0}, /* field 7, empty: addresses of a hello */
		{0x1a, 0, 0x1a, 0}, /* 3: rings */
		{0x12, 0, 0x12, 0}, /* 2: failures */
		{0x22, 0, 0x22, 0}, /* 4: peers, views */
		{0x08, 1, 0x08, 1}, /* 1: numbers */
		{0x7a, 0, 0x7a, 0}, /* 15: unknown everywhere */
	};
	static const uint8_t ring[5] = {0x92, 2, 2, 0x1a, 0}; /* a round with an empty ring */
	size_t len = WIRE_FRAME_MAX;
	uint8_t *p = malloc(len);
	struct wm_msg got;
	const char *why;

	ck_assert_ptr_nonnull(p);
	for (size_t k = 0; k < sizeof pattern / sizeof pattern[0]; k++) {
		for (uint32_t field = 1; field <= 42; field++) {
			uint32_t tag = field << 3 | 2, n = (uint32_t)len - 5;
			uint8_t *at = p;

			*at++ = (uint8_t)(tag | 0x80);
			*at++ = (uint8_t)(tag >> 7);
			*at++ = (uint8_t)(n | 0x80);
			*at++ = (uint8_t)(n >> 7 | 0x80);
			*at++ = (uint8_t)(n >> 14);
			for (size_t i = 5; i < len; i++)
				p[i] = pattern[k][(i - 5) % 4];
			why = NULL;
			ck_assert_int_ne(wire_master_decode(p, len, &got, &why), 0);
			ck_assert_ptr_nonnull(why);
		}
	}
	/* The same part is repeated. The decoder merges each part with the parts before it. */
	len -= len % sizeof ring;
	for (size_t i = 0; i < len; i += sizeof ring)
		memcpy(p + i, ring, sizeof ring);
	ck_assert_int_ne(wire_master_decode(p, len, &got, &why), 0);
	free(p);
}
END_TEST

START_TEST(message_longer_than_a_frame_is_refused)
{
	uint8_t *p = calloc(1, WIRE_FRAME_MAX + 1);
	struct wm_msg got;
	const char *why = NULL;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(wire_master_decode(p, WIRE_FRAME_MAX + 1, &got, &why), CC_ERR_LIMIT);
	ck_assert_str_eq(why, "message: must be at most 1 MiB");
	free(p);
}
END_TEST

START_TEST(each_message_type_has_its_own_name)
{
	for (size_t i = 0; i < sample_master_n_types; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(wire_master_type_name(sample_master_types[i]),
				wire_master_type_name(sample_master_types[k]));
	ck_assert_str_eq(wire_master_type_name((enum wm_type)0), "unknown");
}
END_TEST

Suite *master_suite(void)
{
	Suite *s = suite_create("master");
	TCase *tc = tcase_create("codec");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, messages_survive_encoding_and_decoding);
	tcase_add_test(tc, cut_message_is_refused);
	tcase_add_test(tc, damaged_message_is_refused_or_decodes_to_a_valid_one);
	tcase_add_test(tc, small_messages_leave_the_rest_of_the_struct_untouched);
	tcase_add_test(tc, message_of_an_unknown_kind_is_refused);
	tcase_add_test(tc, key_of_zeros_is_refused);
	tcase_add_test(tc, unknown_fields_are_ignored);
	tcase_add_test(tc, unusual_encodings_are_decoded_or_refused);
	tcase_add_test(tc, id_of_another_size_is_refused);
	tcase_add_test(tc, texts_are_limited_and_cleaned);
	tcase_add_test(tc, unclean_names_are_refused);
	tcase_add_test(tc, endless_repetition_of_small_elements_is_refused);
	tcase_add_test(tc, message_longer_than_a_frame_is_refused);
	tcase_add_test(tc, each_message_type_has_its_own_name);
	suite_add_tcase(s, tc);
	return s;
}
