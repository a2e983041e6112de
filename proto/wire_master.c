/* SPDX-License-Identifier: MIT
 *
 * Encodes and decodes the messages between agents and the master by their tables. A message is the
 * only field of a Message (ccoip.proto), and the number of this field is the type of the message.
 */
#include "proto/wire_master.h"

#include <stddef.h>

#include "proto/ccoip.pb-c.h"
#include "proto/wire_arena.h"
#include "proto/wire_frame.h"
#include "proto/wire_master_tables.h"

/* The protobuf structs of a well-formed message need up to 10 times the bytes of the message. */
#define MEMORY_FACTOR 16

#define ENTRY(type, name) [WM_##type] = &wm_##name##_table,

const struct wire_table *const wire_master_tables[] = {WM_TABLES(ENTRY)};
const size_t wire_master_n_tables = sizeof wire_master_tables / sizeof(void *);

/* Returns NULL if there is no such type. */
static const struct wire_table *table_of(enum wm_type t)
{
	return (size_t)t < wire_master_n_tables ? wire_master_tables[t] : NULL;
}

size_t wire_master_size(enum wm_type t)
{
	const struct wire_table *table = table_of(t);

	return offsetof(struct wm_msg, u) + (table != NULL ? table->size : 0);
}

void wire_master_clear(struct wm_msg *m)
{
	const struct wire_table *table = table_of(m->type);

	if (table != NULL)
		wire_table_clear(table, &m->u);
	m->type = (enum wm_type)0;
}

const char *wire_master_type_name(enum wm_type t)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(&ccoip__message__descriptor, (unsigned)t);

	return field != NULL ? field->name : "unknown";
}

bool wire_master_is_secret(const struct wm_msg *m)
{
	switch (m->type) {
	case WM_HELLO: /* a hello of another version has only versions, and will be refused */
		return m->u.hello.version_min <= WM_VERSION_MAX &&
		       m->u.hello.version_max >= WM_VERSION_MIN;
	case WM_JOIN:
	case WM_ROUND:
	case WM_MEASURE:
		return true;
	case WM_OP_START:
		return m->u.op_start.is_sync;
	default:
		return false;
	}
}

int wire_master_encode(const struct wm_msg *m, uint8_t **ret, size_t *ret_len)
{
	const struct wire_table *table = table_of(m->type);
	int rc;

	if (table == NULL)
		return CC_ERR_INVAL;
	rc = wire_table_encode(
		table, (uint32_t)m->type, &m->u, WIRE_FRAME_HDR, WIRE_FRAME_MAX, ret, ret_len);
	if (rc == 0)
		wire_frame_put(*ret, WIRE_KIND_MASTER, (uint32_t)(*ret_len - WIRE_FRAME_HDR));
	return rc;
}

static bool get_varint(const uint8_t **p, const uint8_t *end, size_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; *p < end && shift < 28; shift += 7) {
		uint8_t b = *(*p)++;

		*ret |= (size_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return true;
	}
	return false;
}

/* Returns the table of the only field of Message, and sets *p and *len to the contents of this
 * field, and *type to its number. Returns NULL if Message does not have exactly one field of a
 * known type. */
static const struct wire_table *only_field(const uint8_t **p, size_t *len, enum wm_type *type)
{
	const uint8_t *at = *p, *end = *p + *len;
	size_t key, n;

	if (!get_varint(&at, end, &key) || key % 8 != WIRE_TYPE_LENGTH ||
		!get_varint(&at, end, &n) || n != (size_t)(end - at))
		return NULL;
	*p = at;
	*len = n;
	*type = (enum wm_type)(key / 8);
	return table_of(*type);
}

/* Decodes a Message of any form. */
static int decode_whole(const uint8_t *p, size_t len, struct wm_msg *ret, const char **why)
{
	const struct wire_table *table;
	struct wire_arena arena;
	const Ccoip__Message *m;
	int rc = 0;

	m = wire_arena_unpack(&arena, &ccoip__message__descriptor, p, len, MEMORY_FACTOR, &rc, why);
	table = m != NULL ? table_of((enum wm_type)m->kind_case) : NULL;
	if (table != NULL) {
		ret->type = (enum wm_type)m->kind_case;
		memset(&ret->u, 0, table->size);
		/* All kinds share one union of pointers. */
		rc = wire_table_read(table, m->hello, &ret->u, why);
	} else if (m != NULL) {
		rc = wire_bad(why, "message.kind: not one that this version knows");
	}
	wire_arena_free(&arena);
	return rc;
}

/* If the Message has exactly one field, the contents of the field are decoded directly. This is
 * faster, because protobuf-c would check Message for every kind. */
int wire_master_decode(const uint8_t *payload, size_t len, struct wm_msg *ret, const char **why)
{
	const struct wire_table *table;
	const uint8_t *p = payload;
	size_t n = len;
	int rc;

	ret->type = (enum wm_type)0;
	if (len > WIRE_FRAME_MAX) {
		*why = "message: must be at most 1 MiB";
		return CC_ERR_LIMIT;
	}
	table = only_field(&p, &n, &ret->type);
	if (table != NULL)
		rc = wire_table_decode(table, p, n, MEMORY_FACTOR, &ret->u, why);
	else
		rc = decode_whole(payload, len, ret, why);
	if (rc != 0)
		wire_master_clear(ret);
	return rc;
}
