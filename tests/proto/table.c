/* SPDX-License-Identifier: MIT
 *
 * Compares every table with the descriptor of its message, and every encoded message with the one
 * that protobuf-c writes. A field of a .proto file that has no line in its table, or that no sample
 * sets, is a failure.
 */
#include "proto/wire_table.h"

#include <stdio.h>
#include <string.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "proto/ccoip.pb-c.h"
#include "proto/wire_frame.h"
#include "proto/wire_journal.h"
#include "tests/proto/sample.h"
#include "tests/proto/suites.h"

#define FIELDS_MAX 1024

/* ---- tables and descriptors ---- */

/* The protobuf type of each kind, and the size of the struct member for it. 0: any size. */
static const struct {
	ProtobufCType type, other_type;
	uint32_t size;
} kinds[] = {
	[WIRE_BOOL] = {PROTOBUF_C_TYPE_BOOL, PROTOBUF_C_TYPE_BOOL, sizeof(bool)},
	[WIRE_U16] = {PROTOBUF_C_TYPE_UINT32, PROTOBUF_C_TYPE_UINT32, 2},
	[WIRE_U32] = {PROTOBUF_C_TYPE_UINT32, PROTOBUF_C_TYPE_ENUM, 4},
	[WIRE_U64] = {PROTOBUF_C_TYPE_UINT64, PROTOBUF_C_TYPE_UINT64, 8},
	[WIRE_FIXED64] = {PROTOBUF_C_TYPE_FIXED64, PROTOBUF_C_TYPE_FIXED64, 8},
	[WIRE_BYTES] = {PROTOBUF_C_TYPE_BYTES, PROTOBUF_C_TYPE_BYTES, 0},
	[WIRE_ID] = {PROTOBUF_C_TYPE_BYTES, PROTOBUF_C_TYPE_BYTES, 0},
	[WIRE_ID_OR_NONE] = {PROTOBUF_C_TYPE_BYTES, PROTOBUF_C_TYPE_BYTES, 0},
	[WIRE_IP] = {PROTOBUF_C_TYPE_BYTES, PROTOBUF_C_TYPE_BYTES, sizeof(struct cc_addr)},
	[WIRE_TEXT] = {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_STRING, 0},
	[WIRE_NAME] = {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_STRING, 0},
	[WIRE_WORD] = {PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_STRING, 0},
	[WIRE_MESSAGE] = {PROTOBUF_C_TYPE_MESSAGE, PROTOBUF_C_TYPE_MESSAGE, 0},
	[WIRE_CASE] = {PROTOBUF_C_TYPE_MESSAGE, PROTOBUF_C_TYPE_MESSAGE, 4},
};

static void check_table(const struct wire_table *t);

static bool is_data(const struct wire_field *f)
{
	return f->kind == WIRE_BYTES || f->kind == WIRE_ID || f->kind == WIRE_ID_OR_NONE;
}

/* If a message has fields that are refused without a text, the outer field has the text. */
static void check_inner(const struct wire_field *f, const ProtobufCFieldDescriptor *d)
{
	for (uint32_t i = 0; i < f->of->n; i++) {
		const struct wire_field *x = &f->of->fields[i];
		bool any = x->of != NULL || x->kind == WIRE_BOOL || x->kind == WIRE_OTHER ||
			   x->kind == WIRE_NUMBERS || (x->min == 0 && x->max >= UINT32_MAX);

		ck_assert_msg(any || x->text != NULL || f->each != NULL, "%s: no text for %s",
			d->name, x->name);
	}
	ck_assert_msg(f->of->pb == d->descriptor, "%s: message", d->name);
	check_table(f->of);
}

static void check_value(const struct wire_field *f, const ProtobufCFieldDescriptor *d)
{
	ck_assert_msg(d->type == kinds[f->kind].type || d->type == kinds[f->kind].other_type,
		"%s: type", d->name);
	if (kinds[f->kind].size != 0 && f->size != 0)
		ck_assert_msg(f->size == kinds[f->kind].size, "%s: size", d->name);
	if (is_data(f))
		ck_assert_msg(f->size == sizeof(struct cc_id) || f->size == sizeof(struct cc_key),
			"%s: size", d->name);
	if (f->of != NULL)
		check_inner(f, d);
}

static bool names(const char *text, uint64_t limit)
{
	char decimal[32], power[32];
	int log = 0;

	while (limit >> log > 1)
		log++;
	snprintf(decimal, sizeof decimal, "%ju", (uintmax_t)limit);
	snprintf(power, sizeof power, "2^%d", limit >> log << log == limit ? log : log + 1);
	return strstr(text, decimal) != NULL || strstr(text, power) != NULL;
}

/* A text that states limits names them. */
static void check_limits(const struct wire_field *f, const char *name)
{
	bool unlimited = f->max == (f->kind == WIRE_U64 ? UINT64_MAX : UINT32_MAX);

	if ((f->kind > WIRE_U64 && f->kind != WIRE_LIST) || f->text == NULL ||
		strstr(f->text, "must be") == NULL)
		return;
	ck_assert_msg(unlimited || names(f->text, f->max), "%s: \"%s\" does not name %ju", name,
		f->text, (uintmax_t)f->max);
	ck_assert_msg(f->min == 0 || names(f->text, f->min), "%s: \"%s\" does not name %ju", name,
		f->text, (uintmax_t)f->min);
}

/* A text begins with the path of the field. */
static void check_path(const struct wire_field *f, const char *name)
{
	const char *end = f->text != NULL ? strchr(f->text, ':') : NULL;
	size_t len = strlen(name);

	if (f->text == NULL || f->kind == WIRE_LIST)
		return;
	ck_assert_ptr_nonnull(end);
	ck_assert_msg(end - f->text > (ptrdiff_t)len && end[-(ptrdiff_t)len - 1] == '.' &&
			      memcmp(end - len, name, len) == 0,
		"%s: \"%s\"", name, f->text);
}

static void check_list(const struct wire_field *f, const ProtobufCFieldDescriptor *d)
{
	const struct wire_field *first = f->of != NULL ? f->of->fields : f->item;

	ck_assert_int_eq(d->label, PROTOBUF_C_LABEL_REPEATED);
	ck_assert_msg((f->of != NULL) != (f->item != NULL), "%s: elements", d->name);
	if (f->of != NULL) {
		ck_assert_uint_eq(f->of->size, f->stride);
		check_inner(f, d);
	} else {
		check_value(f->item, d);
		check_limits(f->item, d->name);
	}
	if (f->key == 0)
		return;
	ck_assert_uint_eq(first->at, 0);
	ck_assert_uint_eq(first->size, f->key);
	ck_assert_uint_le(f->max, f->key <= sizeof(struct cc_id) ? WIRE_UNIQUE_MAX : 32);
	ck_assert_ptr_nonnull(f->twice);
}

static void check_numbers(const struct wire_field *f, const ProtobufCFieldDescriptor *d)
{
	ck_assert_int_eq(d->label, PROTOBUF_C_LABEL_REPEATED);
	ck_assert_int_eq(d->type, PROTOBUF_C_TYPE_UINT64);
	ck_assert_uint_eq(f->size % sizeof(uint64_t), 0);
}

static bool owns(const struct wire_field *f)
{
	return (f->kind == WIRE_LIST && f->owned) || (f->of != NULL && f->of->owns);
}

static void check_table(const struct wire_table *t)
{
	bool any = false;

	ck_assert_msg(t->n == t->pb->n_fields, "%s has %u fields, its table %u", t->pb->name,
		t->pb->n_fields, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct wire_field *f = &t->fields[i];
		const ProtobufCFieldDescriptor *d = &t->pb->fields[i];

		ck_assert_msg(strcmp(f->name, d->name) == 0, "%s: %s is in the line of %s",
			t->pb->name, f->name, d->name);
		if (f->kind == WIRE_LIST)
			check_list(f, d);
		else if (f->kind == WIRE_NUMBERS)
			check_numbers(f, d);
		else if (f->kind != WIRE_OTHER)
			check_value(f, d);
		if (f->kind != WIRE_OTHER && !f->parallel)
			check_limits(f, d->name);
		check_path(f, d->name);
		ck_assert_msg((f->rule == NULL) == (f->unruly == NULL), "%s: rule", d->name);
		any |= owns(f);
	}
	ck_assert_msg(t->owns == any, "%s: owns", t->pb->name);
}

START_TEST(tables_of_master_messages_agree_with_descriptors)
{
	const ProtobufCMessageDescriptor *message = &ccoip__message__descriptor;

	for (unsigned i = 0; i < message->n_fields; i++) {
		const ProtobufCFieldDescriptor *d = &message->fields[i];

		ck_assert_uint_lt(d->id, wire_master_n_tables);
		ck_assert_msg(wire_master_tables[d->id] != NULL, "%s has no table", d->name);
		ck_assert_msg(wire_master_tables[d->id]->pb == d->descriptor, "%s", d->name);
		check_table(wire_master_tables[d->id]);
	}
}
END_TEST

/* ---- encoded samples ---- */

/* The fields that a sample has set. */
static const ProtobufCFieldDescriptor *set[FIELDS_MAX];
static size_t n_set;

static bool is_set(const ProtobufCFieldDescriptor *d)
{
	for (size_t i = 0; i < n_set; i++)
		if (set[i] == d)
			return true;
	return false;
}

static bool is_default(const ProtobufCFieldDescriptor *d, const void *p)
{
	switch (d->type) {
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_ENUM:
		return *(const uint32_t *)p == 0;
	case PROTOBUF_C_TYPE_STRING:
		return **(char *const *)p == '\0';
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(void *const *)p == NULL;
	default: /* also bytes, which begin with their length */
		return *(const uint64_t *)p == 0;
	}
}

static void note_set(const ProtobufCMessage *m);

static void note_field(const ProtobufCFieldDescriptor *d, const ProtobufCMessage *m)
{
	const uint8_t *p = (const uint8_t *)m + d->offset, *n = (const uint8_t *)m;
	bool is_list = d->label == PROTOBUF_C_LABEL_REPEATED;
	ProtobufCMessage *const *v;
	size_t count = 1;

	n += d->quantifier_offset;
	if (is_list)
		count = *(const size_t *)n;
	if ((d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *(const uint32_t *)n != d->id)
		return;
	if (count == 0 || (!is_list && is_default(d, p)))
		return;
	if (!is_set(d)) {
		ck_assert_uint_lt(n_set, FIELDS_MAX);
		set[n_set++] = d;
	}
	if (d->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	v = is_list ? *(ProtobufCMessage *const *const *)p : (ProtobufCMessage *const *)p;
	for (size_t i = 0; i < count; i++)
		note_set(v[i]);
}

static void note_set(const ProtobufCMessage *m)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++)
		note_field(&m->descriptor->fields[i], m);
}

/* Checks that protobuf-c would write the same bytes, and notes the fields that are set. */
static void note_sample(const ProtobufCMessageDescriptor *type, const uint8_t *p, size_t len)
{
	ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, len, p);
	uint8_t *again = malloc(len + 1);

	ck_assert_ptr_nonnull(m);
	ck_assert_ptr_nonnull(again);
	ck_assert_uint_eq(protobuf_c_message_get_packed_size(m), len);
	ck_assert_uint_eq(protobuf_c_message_pack(m, again), len);
	ck_assert_mem_eq(again, p, len);
	note_set(m);
	protobuf_c_message_free_unpacked(m, NULL);
	free(again);
}

/* Checks that samples have set each field of a message, and of the messages in it. */
static void all_set(const ProtobufCMessageDescriptor *type)
{
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *d = &type->fields[i];

		ck_assert_msg(is_set(d), "no sample sets %s of %s", d->name, type->name);
		if (d->type == PROTOBUF_C_TYPE_MESSAGE)
			all_set(d->descriptor);
	}
}

START_TEST(encoded_master_messages_are_those_of_protobuf_c)
{
	struct tl_rng r = tl_rng_new(11);

	for (int i = 0; i < 80; i++) {
		for (size_t t = 0; t < sample_master_n_types; t++) {
			uint8_t *frame;
			struct wm_msg m;
			size_t len;

			sample_master(&r, sample_master_types[t], &m);
			ck_assert_int_eq(wire_master_encode(&m, &frame, &len), 0);
			note_sample(&ccoip__message__descriptor, frame + WIRE_FRAME_HDR,
				len - WIRE_FRAME_HDR);
			free(frame);
			wire_master_clear(&m);
		}
	}
	all_set(&ccoip__message__descriptor);
}
END_TEST

START_TEST(encoded_packets_are_those_of_protobuf_c)
{
	struct tl_rng r = tl_rng_new(12);
	uint8_t buf[WL_PACKET_MAX];

	check_table(&wire_local_request);
	check_table(&wire_local_reply);
	for (int i = 0; i < 40; i++) {
		struct wl_reply reply;

		for (int type = WL_HELLO; type <= WL_REGION_ADOPT; type++) {
			struct wl_request q;

			sample_request(&r, (enum wl_type)type, &q);
			note_sample(wire_local_request.pb, buf,
				(size_t)wire_local_put_request(&q, buf));
		}
		sample_reply(&r, &reply);
		note_sample(wire_local_reply.pb, buf, (size_t)wire_local_put_reply(&reply, buf));
	}
	all_set(wire_local_request.pb);
	all_set(wire_local_reply.pb);
}
END_TEST

START_TEST(encoded_records_are_those_of_protobuf_c)
{
	struct wj_revision revision = {.group = 1, .revision = 2, .lost = true};
	struct wj_member member = {.peer = {{1}},
		.token = {{2}},
		.agent = {{3}},
		.group = 4,
		.host = "h",
		.name = "n",
		.pid = 5};
	struct wj_host hosts[2] = {{.agent = {{1}},
					   .name = "h",
					   .addr = {.family = CC_INET4, .ip = {10}, .port = 3},
					   .out = 4,
					   .in = 5,
					   .caps_age_s = 6,
					   .caps_source = 1,
					   .caps_confidence = 2,
					   .caps_stale = true},
		{.agent = {{2}}, .addr = {.family = CC_INET6, .ip = {1}}}};
	struct wj_rate rates[2] = {{.from = 1,
					   .to = 0,
					   .rate = 2,
					   .trip_us = 3,
					   .age_s = 4,
					   .confidence = 5,
					   .source = WJ_SOURCE_MAX,
					   .stale = true},
		{.to = 1}};
	struct wj_record record = {.run = {{1}},
		.run_key = {{2}},
		.term = 3,
		.epoch = 4,
		.round = 5,
		.last_seq = 6,
		.ballots = {7, 8, 9},
		.view_id = 9,
		.generation = 10,
		.n = 1,
		.members = &member,
		.n_revisions = 1,
		.revisions = &revision,
		.n_hosts = 2,
		.hosts = hosts,
		.n_rates = 2,
		.rates = rates,
		.written_s = 11};
	uint8_t *p;
	size_t len;

	check_table(&wire_journal_record);
	for (int type = WJ_RUN; type <= WJ_RATES; type++) {
		record.type = (enum wj_type)type;
		ck_assert_int_eq(wire_journal_encode(&record, &p, &len), 0);
		note_sample(wire_journal_record.pb, p + WJ_RECORD_HDR, len - WJ_RECORD_HDR);
		free(p);
	}
	all_set(wire_journal_record.pb);
}
END_TEST

START_TEST(encoded_admin_messages_are_those_of_protobuf_c)
{
	struct tl_rng r = tl_rng_new(13);
	uint8_t *frame;
	size_t len;

	check_table(&wire_admin_request);
	check_table(&wire_admin_reply);
	for (int i = 0; i < 40; i++) {
		struct wa_reply reply;

		for (int verb = WA_STATUS; verb <= WA_PROGRESS; verb++) {
			struct wa_request q;

			sample_admin_request(&r, (enum wa_verb)verb, &q);
			ck_assert_int_eq(wire_admin_encode_request(&q, &frame, &len), 0);
			note_sample(wire_admin_request.pb, frame + WIRE_FRAME_HDR,
				len - WIRE_FRAME_HDR);
			free(frame);
		}
		sample_admin_reply(&r, &reply);
		ck_assert_int_eq(wire_admin_encode_reply(&reply, &frame, &len), 0);
		note_sample(wire_admin_reply.pb, frame + WIRE_FRAME_HDR, len - WIRE_FRAME_HDR);
		free(frame);
		wa_reply_clear(&reply);
	}
	all_set(wire_admin_request.pb);
	all_set(wire_admin_reply.pb);
}
END_TEST

Suite *table_suite(void)
{
	Suite *s = suite_create("table");
	TCase *tc = tcase_create("table");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, tables_of_master_messages_agree_with_descriptors);
	tcase_add_test(tc, encoded_master_messages_are_those_of_protobuf_c);
	tcase_add_test(tc, encoded_packets_are_those_of_protobuf_c);
	tcase_add_test(tc, encoded_records_are_those_of_protobuf_c);
	tcase_add_test(tc, encoded_admin_messages_are_those_of_protobuf_c);
	suite_add_tcase(s, tc);
	return s;
}
