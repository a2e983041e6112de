/* SPDX-License-Identifier: MIT
 *
 * The tables of the messages between pcclctl and the daemons, and their rules.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/admin.pb-c.h"
#include "proto/wire_admin.h"
#include "proto/wire_frame.h"
#include "proto/wire_table.h"
#include "proto/wire_text.h"

/* This is enough for a table that contains only empty texts. */
#define MEMORY_FACTOR 64

#define F(s, m, ...)             WIRE_FIELD(struct wa_##s, #m, m, __VA_ARGS__)
#define TABLE(s, message, lines) WIRE_TABLE(struct wa_##s, admin__##message##__descriptor, lines)
#define ADDRESS(path)            NAME(path ": must be at most 63 bytes without control characters")
#define SHORT_NAME(path)         NAME(path ": must be at most 31 bytes without control characters")
#define WORD(path)               .kind = WIRE_WORD, .text = path ": must be 1 to 31 of a-z 0-9 _"
#define VERSIONS(path)           path ".version_min: must be 1 to version_max, which must be at most 65535"
#define WORDS_DIFFER(path)       UNIQUE(32, path ".name: must be unique")

/* ---- requests ---- */

CONDITION(request_versions, struct wa_request,
	wire_versions(m->version_min, m->version_max, WA_VERSION_MIN, WA_VERSION_MAX))
CONDITION(sets_master, struct wa_request, m->verb == WA_SET_MASTER)
CONDITION(names_master, struct wa_request, m->from[0] != '\0' || m->run != 0)
CONDITION(forces_reset, struct wa_request, m->verb == WA_RESET && m->force)

static const struct wire_field set_master_fields[] = {
	F(request, from, ADDRESS("request.set_master.from")),
	F(request, to, ADDRESS("request.set_master.to")),
	F(request, now, BOOL),
	F(request, run, U32,
		RULE(names_master, "request.set_master.from: must not be empty without run")),
};
static const struct wire_table set_master = {TABLE(request, set_master, set_master_fields)};

static const struct wire_field reset_fields[] = {F(request, force, BOOL)};
static const struct wire_table reset = {TABLE(request, reset, reset_fields)};

static int after_request(void *plain, const char **why)
{
	struct wa_request *q = plain;

	(void)why;
	q->force = forces_reset(q);
	return 0;
}

static const struct wire_field request_fields[] = {
	F(request, version_min, U32),
	F(request, version_max, U32, RULE(request_versions, VERSIONS("request"))),
	F(request, verb,
		U32_IN(WA_STATUS, WA_PROGRESS, "request.verb: not one that this version knows")),
	{.name = "set_master",
		MESSAGE(set_master),
		.text = "request.set_master: must be there",
		.when = sets_master},
	{.name = "reset", MESSAGE(reset), .when = forces_reset},
};
const struct wire_table wire_admin_request = {
	TABLE(request, request, request_fields), .after = after_request};

/* ---- tables of replies ---- */

static bool is_text(const struct wa_table *t, size_t cell)
{
	return t->col[cell % t->n_cols].kind == WA_KIND_TEXT;
}

static size_t count_cells(const struct wa_table *t, bool text)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->n_cols; i++)
		n += is_text(t, i) == text ? t->n_rows : 0;
	return n;
}

static void put_numbers(struct wire_writer *w, uint32_t field, const void *plain)
{
	const struct wa_table *t = plain;
	size_t before = wire_written(w);

	for (size_t i = (size_t)t->n_rows * t->n_cols; i-- > 0;)
		if (!is_text(t, i))
			wire_write_varint(w, t->cells[i].number);
	if (wire_written(w) > before)
		wire_write_head(w, field, before);
}

static void put_texts(struct wire_writer *w, uint32_t field, const void *plain)
{
	const struct wa_table *t = plain;

	for (size_t i = (size_t)t->n_rows * t->n_cols; i-- > 0;) {
		size_t before = wire_written(w);

		if (!is_text(t, i))
			continue;
		if (t->cells[i].text != NULL)
			wire_write_text(w, t->cells[i].text, strlen(t->cells[i].text));
		wire_write_head(w, field, before);
	}
}

static int get_numbers(const void *p, void *plain, const char **why)
{
	const Admin__Table *from = p;
	struct wa_table *t = plain;
	const uint64_t *number = from->numbers;

	if (from->n_texts != count_cells(t, true))
		return wire_bad(why, "reply.tables.texts: must be rows * columns of text");
	if (from->n_numbers != count_cells(t, false))
		return wire_bad(why, "reply.tables.numbers: must be rows * columns of numbers");
	/* From here on the counts are not larger than the number of received values. */
	t->cells = calloc((size_t)t->n_rows * t->n_cols + 1, sizeof *t->cells);
	if (t->cells == NULL)
		return wire_no_memory(why);
	t->cap_rows = t->n_rows;
	for (size_t i = 0; i < (size_t)t->n_rows * t->n_cols; i++) {
		if (is_text(t, i))
			continue;
		t->cells[i].number = *number++;
		if (t->col[i % t->n_cols].kind == WA_KIND_BOOL && t->cells[i].number > 1)
			return wire_bad(why, "reply.tables.numbers: must be 0 or 1 for a bool");
	}
	return 0;
}

static int get_texts(const void *p, void *plain, const char **why)
{
	char *const *text = ((const Admin__Table *)p)->texts;
	struct wa_table *t = plain;

	for (size_t i = 0; i < (size_t)t->n_rows * t->n_cols; i++) {
		size_t len;

		if (!is_text(t, i))
			continue;
		len = strlen(*text);
		if (len >= WA_TEXT_MAX)
			return wire_bad(why, "reply.tables.texts: must be at most 511 bytes");
		t->cells[i].text = malloc(len + 1);
		if (t->cells[i].text == NULL)
			return wire_no_memory(why);
		wire_text_clean(t->cells[i].text, *text++, len);
	}
	return 0;
}

static const struct wire_field column_fields[] = {
	F(col, name, WORD("reply.tables.columns.name")),
	F(col, kind,
		U32_IN(WA_KIND_TEXT, WA_KIND_BITS, "reply.tables.columns.kind: must be 1 to 7")),
};
static const struct wire_table column = {TABLE(col, column, column_fields)};

static const struct wire_field table_fields[] = {
	F(table, name, WORD("reply.tables.name")),
	WIRE_LIST_FIELD(struct wa_table, "columns", col, n_cols, LIST_OF(column),
		IN(1, WA_COLS_MAX, "reply.tables.columns: must be 1 to 24"),
		WORDS_DIFFER("reply.tables.columns")),
	WIRE_FIELD(struct wa_table, "rows", n_rows,
		U32_IN(0, WA_ROWS_MAX, "reply.tables.rows: must be at most 100000")),
	{.name = "numbers", .kind = WIRE_OTHER, .put = put_numbers, .get = get_numbers},
	{.name = "texts", .kind = WIRE_OTHER, .put = put_texts, .get = get_texts},
};
static const struct wire_table table = {TABLE(table, table, table_fields)};

/* ---- replies ---- */

CONDITION(reply_versions, struct wa_reply,
	wire_versions(m->version_min, m->version_max, 1, UINT16_MAX))
CONDITION(has_version, struct wa_reply, m->version != 0)

static int before_reply(const void *p, void *plain, const char **why)
{
	const Admin__Reply *from = p;

	(void)plain;
	if (from->version == 0 ||
		wire_versions(from->version, from->version, WA_VERSION_MIN, WA_VERSION_MAX) == 1)
		return 0;
	*why = "reply.version: not one of those offered";
	return CC_ERR_VERSION;
}

static const struct wire_field reply_fields[] = {
	F(reply, version_min, U32),
	F(reply, version_max, U32, RULE(reply_versions, VERSIONS("reply"))),
	F(reply, version, U32),
	F(reply, daemon, SHORT_NAME("reply.daemon")),
	F(reply, software, SHORT_NAME("reply.software")),
	F(reply, error, TEXT("reply.error: must be at most 511 bytes")),
	WIRE_LIST_FIELD(struct wa_reply, "tables", tables, n_tables, LIST_OF(table), .owned = true,
		.when = has_version, IN(0, WA_TABLES_MAX, "reply.tables: must be at most 16"),
		WORDS_DIFFER("reply.tables")),
	F(reply, denied, BOOL),
};
const struct wire_table wire_admin_reply = {
	TABLE(reply, reply, reply_fields), .owns = true, .before = before_reply};

/* ---- frames ---- */

static int encode(const struct wire_table *t, const void *plain, uint8_t **ret, size_t *ret_len)
{
	int rc = wire_table_encode(t, 0, plain, WIRE_FRAME_HDR, WIRE_FRAME_MAX, ret, ret_len);

	if (rc == 0)
		wire_frame_put(*ret, WIRE_KIND_ADMIN, (uint32_t)(*ret_len - WIRE_FRAME_HDR));
	return rc;
}

int wire_admin_encode_request(const struct wa_request *q, uint8_t **ret, size_t *ret_len)
{
	return encode(&wire_admin_request, q, ret, ret_len);
}

int wire_admin_encode_reply(const struct wa_reply *r, uint8_t **ret, size_t *ret_len)
{
	int rc = r->err;

	for (uint32_t i = 0; rc == 0 && i < r->n_tables; i++)
		rc = r->tables[i].err;
	return rc != 0 ? rc : encode(&wire_admin_reply, r, ret, ret_len);
}

static int decode(
	const struct wire_table *t, const uint8_t *p, size_t len, void *ret, const char **why)
{
	if (len <= WIRE_FRAME_MAX)
		return wire_table_decode(t, p, len, MEMORY_FACTOR, ret, why);
	memset(ret, 0, t->size);
	*why = "message: must be at most 1 MiB";
	return CC_ERR_LIMIT;
}

int wire_admin_decode_request(
	const uint8_t *p, size_t len, struct wa_request *ret, const char **why)
{
	struct wa_request q;
	int rc = decode(&wire_admin_request, p, len, &q, why);

	if (rc == 0)
		*ret = q;
	return rc;
}

int wire_admin_decode_reply(const uint8_t *p, size_t len, struct wa_reply *ret, const char **why)
{
	struct wa_reply r;
	int rc = decode(&wire_admin_reply, p, len, &r, why);

	if (rc == 0)
		*ret = r;
	else
		wa_reply_clear(&r);
	return rc;
}
