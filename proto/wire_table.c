/* SPDX-License-Identifier: MIT */
#include "proto/wire_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/cc_addr.h"
#include "common/cc_id.h"
#include "common/cc_zalloc.h"
#include "proto/wire_arena.h"
#include "proto/wire_text.h"

#define FIRST_SIZE 2048u /* most messages fit into a buffer of this size on the stack */
#define FEW        32u   /* elements that are compared in pairs, instead of sorted */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digests are copied as they are");

static const void *at(const void *base, size_t offset)
{
	return (const uint8_t *)base + offset;
}

static void *at_mut(void *base, size_t offset)
{
	return (uint8_t *)base + offset;
}

static void *pointer_at(const void *base, size_t offset)
{
	void *p;

	memcpy(&p, at(base, offset), sizeof p);
	return p;
}

static bool is_number(const struct wire_field *f)
{
	return f->kind <= WIRE_FIXED64;
}

/* The size of an id or a key is a multiple of 8. */
static bool is_zero(const uint8_t *p, size_t size)
{
	uint64_t any = 0, v;

	for (; size > 0; size -= sizeof v, p += sizeof v) {
		memcpy(&v, p, sizeof v);
		any |= v;
	}
	return any == 0;
}

/* ---- encoding ---- */

static void put_fields(struct wire_writer *w, const struct wire_table *t, const void *plain);

static void put_message(
	struct wire_writer *w, uint32_t field, const struct wire_table *t, const void *plain)
{
	size_t before = wire_written(w);

	put_fields(w, t, plain);
	wire_write_head(w, field, before);
}

static uint64_t number(enum wire_field_kind kind, const void *p)
{
	switch (kind) {
	case WIRE_BOOL:
		return *(const bool *)p;
	case WIRE_U16:
		return *(const uint16_t *)p;
	case WIRE_U32:
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

/* Writes the value of bytes or of a string. An empty value has no bytes. */
static void put_data(struct wire_writer *w, const struct wire_field *f, const void *p)
{
	const struct cc_addr *addr = p;

	switch (f->kind) {
	case WIRE_BYTES:
		wire_write_bytes(w, p, f->size);
		break;
	case WIRE_ID:
	case WIRE_ID_OR_NONE:
		if (!is_zero(p, f->size))
			wire_write_bytes(w, p, f->size);
		break;
	case WIRE_IP:
		if (addr->family == CC_INET4 || addr->family == CC_INET6)
			wire_write_bytes(w, addr->ip, addr->family == CC_INET4 ? 4 : 16);
		break;
	default:
		wire_write_text(w, p, strnlen(p, f->size));
		break;
	}
}

static void put_number(
	struct wire_writer *w, const struct wire_field *f, uint32_t field, const void *p)
{
	uint64_t v = number(f->kind, p);

	if (v == 0)
		return;
	if (f->kind == WIRE_FIXED64) {
		wire_write_fixed64(w, v);
		wire_write_key(w, field, WIRE_TYPE_64BIT);
	} else {
		wire_write_varint(w, v);
		wire_write_key(w, field, WIRE_TYPE_VARINT);
	}
}

/* Writes the elements of a list, the last one first. Numbers are packed into one value. */
static void put_list(
	struct wire_writer *w, const struct wire_field *f, uint32_t field, const void *plain)
{
	const uint8_t *v = f->owned ? pointer_at(plain, f->at) : at(plain, f->at);
	uint32_t n = *(const uint32_t *)at(plain, f->count);
	size_t packed = wire_written(w);

	while (n-- > 0) {
		const uint8_t *p = v + (size_t)n * f->stride;
		size_t before = wire_written(w);

		if (f->of != NULL) {
			put_message(w, field, f->of, p);
		} else if (is_number(f->item)) {
			wire_write_varint(w, number(f->item->kind, p + f->item->at));
		} else {
			put_data(w, f->item, p + f->item->at);
			wire_write_head(w, field, before);
		}
	}
	if (f->of == NULL && is_number(f->item) && wire_written(w) > packed)
		wire_write_head(w, field, packed);
}

static void put_numbers(
	struct wire_writer *w, const struct wire_field *f, uint32_t field, const void *plain)
{
	const uint64_t *v = at(plain, f->at);
	size_t before = wire_written(w);

	for (size_t i = f->size / sizeof *v; i-- > 0;)
		wire_write_varint(w, v[i]);
	wire_write_head(w, field, before);
}

static void put_field(
	struct wire_writer *w, const struct wire_field *f, uint32_t field, const void *plain)
{
	const void *p = at(plain, f->at);
	size_t before = wire_written(w);

	switch (f->kind) {
	case WIRE_MESSAGE:
		put_message(w, field, f->of, p);
		break;
	case WIRE_CASE:
		if (*(const uint32_t *)p == field)
			put_message(w, field, f->of, plain);
		break;
	case WIRE_LIST:
		put_list(w, f, field, plain);
		break;
	case WIRE_NUMBERS:
		put_numbers(w, f, field, plain);
		break;
	case WIRE_OTHER:
		f->put(w, field, plain);
		break;
	default:
		put_data(w, f, p);
		if (wire_written(w) > before)
			wire_write_head(w, field, before);
		break;
	}
}

static void put_fields(struct wire_writer *w, const struct wire_table *t, const void *plain)
{
	const ProtobufCFieldDescriptor *d = t->pb->fields + t->n;
	const struct wire_field *f = t->fields + t->n;

	while (f > t->fields) {
		f--;
		d--;
		if (f->when != NULL && !f->when(plain))
			continue;
		if (is_number(f))
			put_number(w, f, d->id, at(plain, f->at));
		else
			put_field(w, f, d->id, plain);
	}
}

int wire_table_encode(const struct wire_table *t, uint32_t field, const void *plain, size_t head,
	size_t max, uint8_t **ret, size_t *ret_len)
{
	uint8_t first[FIRST_SIZE], *p;
	struct wire_writer w;
	int rc;

	wire_writer_init(&w, first, sizeof first, max);
	put_fields(&w, t, plain);
	if (field != 0)
		wire_write_head(&w, field, 0);
	rc = w.err;
	if (rc != 0)
		goto out;
	p = malloc(head + wire_written(&w));
	if (p == NULL) {
		rc = CC_ERR_NOMEM;
		goto out;
	}
	memcpy(p + head, w.at, wire_written(&w));
	*ret = p;
	*ret_len = head + wire_written(&w);
out:
	wire_writer_free(&w);
	return rc;
}

int wire_table_encode_to(const struct wire_table *t, const void *plain, uint8_t *buf, size_t size)
{
	struct wire_writer w;

	/* As the buffer holds `max` bytes, the writer allocates nothing. */
	wire_writer_init(&w, buf, size, size);
	put_fields(&w, t, plain);
	if (w.err != 0)
		return w.err;
	memmove(buf, w.at, wire_written(&w));
	return (int)wire_written(&w);
}

/* ---- decoding ---- */

static int get_bytes(
	const struct wire_field *f, const ProtobufCBinaryData *b, void *to, const char **why)
{
	if (f->kind == WIRE_ID_OR_NONE && b->len == 0)
		return 0;
	if (b->len != f->size || (f->kind != WIRE_BYTES && is_zero(b->data, f->size)))
		return wire_bad(why, f->text);
	memcpy(to, b->data, f->size);
	return 0;
}

static int get_ip(const struct wire_field *f, const ProtobufCBinaryData *b, struct cc_addr *to,
	const char **why)
{
	if (b->len != 4 && b->len != 16)
		return wire_bad(why, f->text);
	to->family = b->len == 4 ? CC_INET4 : CC_INET6;
	memcpy(to->ip, b->data, b->len);
	return 0;
}

static int get_string(const struct wire_field *f, const char *s, char *to, const char **why)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	size_t len = strlen(s);

	if (len >= f->size || (f->kind == WIRE_NAME && !wire_text_is_clean(s)) ||
		(f->kind == WIRE_WORD && (len == 0 || strspn(s, word) != len)))
		return wire_bad(why, f->text);
	wire_text_clean(to, s, len);
	return 0;
}

/* `from` is a member of the struct of protobuf-c. */
static inline int get_number(
	const struct wire_field *f, const void *from, void *to, const char **why)
{
	uint64_t v = f->kind >= WIRE_U64 ? *(const uint64_t *)from : *(const uint32_t *)from;

	if (v < f->min || v > f->max)
		return wire_bad(why, f->text);
	if (f->kind >= WIRE_U64)
		*(uint64_t *)to = v;
	else if (f->kind == WIRE_U32)
		*(uint32_t *)to = (uint32_t)v;
	else if (f->kind == WIRE_BOOL)
		*(bool *)to = v != 0;
	else
		*(uint16_t *)to = (uint16_t)v;
	return 0;
}

/* Reads a value that is not a message. */
static int get_item(const struct wire_field *f, const void *from, void *to, const char **why)
{
	switch (f->kind) {
	case WIRE_IP:
		return get_ip(f, from, to, why);
	case WIRE_TEXT:
	case WIRE_NAME:
	case WIRE_WORD:
		return get_string(f, pointer_at(from, 0), to, why);
	case WIRE_BYTES:
	case WIRE_ID:
	case WIRE_ID_OR_NONE:
		return get_bytes(f, from, to, why);
	default:
		return get_number(f, from, to, why);
	}
}

static int get_message(const struct wire_field *f, const void *p, void *plain, const char **why)
{
	int rc;

	if (p == NULL)
		return f->text == NULL ? 0 : wire_bad(why, f->text);
	rc = wire_table_read(f->of, p, plain, why);
	if (rc != 0 && *why == NULL)
		*why = f->each;
	return rc;
}

/* Returns the bytes of a value in a repeated field of protobuf-c. */
static size_t item_size(enum wire_field_kind kind)
{
	switch (kind) {
	case WIRE_U16:
	case WIRE_U32:
		return sizeof(uint32_t);
	case WIRE_U64:
		return sizeof(uint64_t);
	default:
		return sizeof(ProtobufCBinaryData);
	}
}

static int get_elements(
	const struct wire_field *f, const void *v, size_t n, uint8_t *to, const char **why)
{
	size_t size = f->of == NULL ? item_size(f->item->kind) : 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++, to += f->stride) {
		if (f->of != NULL)
			rc = get_message(f, ((void *const *)v)[i], to, why);
		else
			rc = get_item(f->item, at(v, i * size), to + f->item->at, why);
	}
	return rc;
}

static int get_list(
	const struct wire_field *f, const void *v, size_t n, void *plain, const char **why)
{
	uint32_t *count = at_mut(plain, f->count);
	uint8_t *to = at_mut(plain, f->at);
	int rc;

	if (f->parallel ? n != *count : n < f->min || n > f->max)
		return wire_bad(why, f->text);
	if (n == 0)
		return 0;
	if (f->owned && !f->parallel) {
		void *fresh = cc_zalloc(n, f->stride);

		if (fresh == NULL)
			return wire_no_memory(why);
		memcpy(to, &fresh, sizeof fresh);
	}
	*count = (uint32_t)n;
	if (f->owned)
		to = pointer_at(to, 0);
	rc = get_elements(f, v, n, to, why);
	if (rc == 0 && f->key != 0 && wire_keys_repeat(to, n, f->stride, f->key))
		return wire_bad(why, f->twice);
	return rc;
}

static void get_numbers(const struct wire_field *f, const uint64_t *v, size_t n, uint64_t *to)
{
	for (size_t i = 0; i < n && i < f->size / sizeof *to; i++)
		to[i] = v[i];
}

/* `d` is the descriptor of the field, and p the struct of protobuf-c. */
static int get_field(const struct wire_field *f, const ProtobufCFieldDescriptor *d, const void *p,
	void *plain, const char **why)
{
	const void *from = at(p, d->offset);
	void *to = at_mut(plain, f->at);

	switch (f->kind) {
	case WIRE_MESSAGE:
		return get_message(f, pointer_at(from, 0), to, why);
	case WIRE_CASE:
		if (*(const uint32_t *)at(p, d->quantifier_offset) != d->id)
			return 0;
		*(uint32_t *)to = d->id;
		return get_message(f, pointer_at(from, 0), plain, why);
	case WIRE_LIST:
		return get_list(f, pointer_at(from, 0),
			*(const size_t *)at(p, d->quantifier_offset), plain, why);
	case WIRE_NUMBERS:
		get_numbers(
			f, pointer_at(from, 0), *(const size_t *)at(p, d->quantifier_offset), to);
		return 0;
	case WIRE_OTHER:
		return f->get(p, plain, why);
	default:
		return get_item(f, from, to, why);
	}
}

static bool is_ignored(const struct wire_field *f, const void *plain)
{
	bool may_be_missing = f->kind == WIRE_MESSAGE && f->text == NULL;

	return !may_be_missing && !f->when(plain);
}

static int check_rule(const struct wire_field *f, const void *plain, const char **why)
{
	int result = f->rule(plain);

	if (result == 0)
		return wire_bad(why, f->unruly);
	return result == WIRE_IGNORE_REST ? result : 0;
}

int wire_table_read(const struct wire_table *t, const void *p, void *plain, const char **why)
{
	const struct wire_field *f = t->fields, *end = f + t->n;
	const ProtobufCFieldDescriptor *d = t->pb->fields;
	int rc = t->before != NULL ? t->before(p, plain, why) : 0;

	for (; rc == 0 && f < end; f++, d++) {
		if (f->when != NULL && is_ignored(f, plain))
			continue;
		if (is_number(f))
			rc = get_number(f, at(p, d->offset), at_mut(plain, f->at), why);
		else
			rc = get_field(f, d, p, plain, why);
		if (rc == 0 && f->rule != NULL)
			rc = check_rule(f, plain, why);
	}
	if (rc == 0 && t->after != NULL)
		rc = t->after(plain, why);
	return rc == WIRE_IGNORE_REST ? 0 : rc;
}

int wire_table_decode(const struct wire_table *t, const uint8_t *p, size_t len, size_t factor,
	void *plain, const char **why)
{
	struct wire_arena arena;
	const void *m;
	int rc = 0;

	memset(plain, 0, t->size);
	m = wire_arena_unpack(&arena, t->pb, p, len, factor, &rc, why);
	if (m != NULL)
		rc = wire_table_read(t, m, plain, why);
	wire_arena_free(&arena);
	return rc;
}

static void clear_list(const struct wire_field *f, void *plain)
{
	uint32_t *count = at_mut(plain, f->count);
	uint8_t *v = pointer_at(plain, f->at);

	for (uint32_t i = 0; f->of != NULL && f->of->owns && i < *count; i++)
		wire_table_clear(f->of, v + (size_t)i * f->stride);
	free(v);
	memset(at_mut(plain, f->at), 0, sizeof v);
	*count = 0;
}

void wire_table_clear(const struct wire_table *t, void *plain)
{
	const struct wire_field *f = t->fields, *end = f + (t->owns ? t->n : 0);

	for (; f < end; f++) {
		if (f->kind == WIRE_MESSAGE)
			wire_table_clear(f->of, at_mut(plain, f->at));
		else if (f->kind == WIRE_LIST && f->owned && !f->parallel)
			clear_list(f, plain);
	}
}

/* ---- rules ---- */

int wire_versions(uint32_t min, uint32_t max, uint32_t known_min, uint32_t known_max)
{
	if (min < 1 || max < min || max > UINT16_MAX)
		return 0;
	return min <= known_max && max >= known_min ? 1 : WIRE_IGNORE_REST;
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct cc_id));
}

static bool ids_repeat(const void *v, size_t n, size_t stride, size_t key)
{
	struct cc_id sorted[WIRE_UNIQUE_MAX];

	memset(sorted, 0, n * sizeof sorted[0]);
	for (size_t i = 0; i < n; i++)
		memcpy(&sorted[i], at(v, i * stride), key);
	qsort(sorted, n, sizeof sorted[0], compare_ids);
	for (size_t i = 1; i < n; i++)
		if (compare_ids(&sorted[i - 1], &sorted[i]) == 0)
			return true;
	return false;
}

bool wire_keys_repeat(const void *v, size_t n, size_t stride, size_t key)
{
	if (n > FEW)
		return ids_repeat(v, n, stride, key);
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (memcmp(at(v, i * stride), at(v, k * stride), key) == 0)
				return true;
	return false;
}
