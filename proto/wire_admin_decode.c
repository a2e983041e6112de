/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/admin.pb-c.h"
#include "proto/wire_admin.h"
#include "proto/wire_frame.h"
#include "proto/wire_pb.h"
#include "proto/wire_text.h"

/* This is enough for a table that contains only empty texts. */
#define MEMORY_FACTOR 64

#define ADDRESS_LIMIT "must be at most 63 bytes without control characters"
#define VERSION_LIMIT "must be 1 to version_max, which must be at most 65535"

static int no_memory(const char **why)
{
	*why = "message: no memory to decode it";
	return CC_ERR_NOMEM;
}

/* Decodes a name that is a key in JSON and a word on a command line. */
static int get_key(char *dst, size_t size, const char *s, const char **why, const char *text)
{
	size_t len = strlen(s);

	if (len < 1 || len >= size || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
		return wire_bad(why, text);
	memcpy(dst, s, len + 1);
	return 0;
}

static int get_columns(const Admin__Table *p, struct wa_table *t, const char **why)
{
	if (p->n_columns < 1 || p->n_columns > WA_COLS_MAX)
		return wire_bad(why, "reply.tables.columns: must be 1 to 24");
	for (size_t i = 0; i < p->n_columns; i++) {
		const Admin__Column *c = p->columns[i];

		if (get_key(t->col[i].name, sizeof t->col[i].name, c->name, why,
			    "reply.tables.columns.name: must be 1 to 31 of a-z 0-9 _") != 0)
			return CC_ERR_PROTO;
		if (c->kind < ADMIN__KIND__TEXT || c->kind > ADMIN__KIND__RATE)
			return wire_bad(why, "reply.tables.columns.kind: must be 1 to 6");
		t->col[i].kind = (enum wa_kind)c->kind;
		for (size_t k = 0; k < i; k++)
			if (strcmp(t->col[k].name, t->col[i].name) == 0)
				return wire_bad(why, "reply.tables.columns.name: must differ");
	}
	t->n_cols = (uint32_t)p->n_columns;
	return 0;
}

static int get_cell(enum wa_kind kind, const Admin__Table *p, size_t *text, size_t *number,
	struct wa_cell *c, const char **why)
{
	size_t len;

	if (kind != WA_KIND_TEXT) {
		c->number = p->numbers[(*number)++];
		if (kind == WA_KIND_BOOL && c->number > 1)
			return wire_bad(why, "reply.tables.numbers: must be 0 or 1 for a bool");
		return 0;
	}
	len = strlen(p->texts[*text]);
	if (len >= WA_TEXT_MAX)
		return wire_bad(why, "reply.tables.texts: must be at most 511 bytes");
	c->text = malloc(len + 1);
	if (c->text == NULL)
		return no_memory(why);
	wire_text_clean(c->text, p->texts[(*text)++], len);
	return 0;
}

static int get_cells(const Admin__Table *p, struct wa_table *t, const char **why)
{
	size_t n_cells, n_texts = 0, text = 0, number = 0;
	int rc = 0;

	if (p->rows > WA_ROWS_MAX)
		return wire_bad(why, "reply.tables.rows: must be at most 100000");
	n_cells = (size_t)p->rows * t->n_cols;
	for (uint32_t i = 0; i < t->n_cols; i++)
		n_texts += t->col[i].kind == WA_KIND_TEXT ? p->rows : 0;
	if (p->n_texts != n_texts)
		return wire_bad(why, "reply.tables.texts: must be rows * columns of text");
	if (p->n_numbers != n_cells - n_texts)
		return wire_bad(why, "reply.tables.numbers: must be rows * columns of numbers");
	/* From here on the counts are not larger than the number of received values. */
	t->cells = calloc(n_cells + 1, sizeof *t->cells);
	if (t->cells == NULL)
		return no_memory(why);
	t->n_rows = t->cap_rows = p->rows;
	for (size_t i = 0; rc == 0 && i < n_cells; i++)
		rc = get_cell(t->col[i % t->n_cols].kind, p, &text, &number, &t->cells[i], why);
	return rc;
}

static int get_tables(const Admin__Reply *p, struct wa_reply *r, const char **why)
{
	int rc = 0;

	if (p->n_tables > WA_TABLES_MAX)
		return wire_bad(why, "reply.tables: must be at most 16");
	r->tables = calloc(WA_TABLES_MAX, sizeof *r->tables);
	if (r->tables == NULL)
		return no_memory(why);
	for (size_t i = 0; rc == 0 && i < p->n_tables; i++) {
		struct wa_table *t = &r->tables[r->n_tables++];

		rc = get_key(t->name, sizeof t->name, p->tables[i]->name, why,
			"reply.tables.name: must be 1 to 31 of a-z 0-9 _");
		for (size_t k = 0; rc == 0 && k < i; k++)
			if (strcmp(r->tables[k].name, t->name) == 0)
				rc = wire_bad(why, "reply.tables.name: must differ");
		if (rc == 0)
			rc = get_columns(p->tables[i], t, why);
		if (rc == 0)
			rc = get_cells(p->tables[i], t, why);
	}
	return rc;
}

static bool known_version(uint32_t min, uint32_t max)
{
	return min <= WA_VERSION_MAX && max >= WA_VERSION_MIN;
}

static int get_reply(const Admin__Reply *p, struct wa_reply *r, const char **why)
{
	int rc;

	r->version_min = p->version_min;
	r->version_max = p->version_max;
	rc = wire_check_versions(
		p->version_min, p->version_max, why, "reply.version_min: " VERSION_LIMIT);
	if (rc == 0)
		rc = wire_get_name(r->daemon, sizeof r->daemon, p->daemon, why,
			"reply.daemon: must be at most 31 bytes without control characters");
	if (rc == 0)
		rc = wire_get_name(r->software, sizeof r->software, p->software, why,
			"reply.software: must be at most 31 bytes without control characters");
	if (rc == 0)
		rc = wire_get_text(r->error, sizeof r->error, p->error, why,
			"reply.error: must be at most 511 bytes");
	if (rc != 0)
		return rc;
	r->denied = p->denied;
	if (p->version == 0)
		return 0;
	if (!known_version(p->version, p->version)) {
		*why = "reply.version: not one of those offered";
		return CC_ERR_VERSION;
	}
	r->version = p->version;
	return get_tables(p, r, why);
}

static int get_set_master(const Admin__SetMaster *p, struct wa_request *q, const char **why)
{
	int rc;

	if (p == NULL)
		return wire_bad(why, "request.set_master: must be there");
	rc = wire_get_name(
		q->from, sizeof q->from, p->from, why, "request.set_master.from: " ADDRESS_LIMIT);
	if (rc == 0)
		rc = wire_get_name(
			q->to, sizeof q->to, p->to, why, "request.set_master.to: " ADDRESS_LIMIT);
	if (rc != 0)
		return rc;
	if (q->from[0] == '\0' && p->run == 0)
		return wire_bad(why, "request.set_master.from: must not be empty without run");
	q->now = p->now;
	q->run = p->run;
	return 0;
}

static int get_request(const Admin__Request *p, struct wa_request *q, const char **why)
{
	int rc = wire_check_versions(
		p->version_min, p->version_max, why, "request.version_min: " VERSION_LIMIT);

	if (rc != 0)
		return rc;
	q->version_min = p->version_min;
	q->version_max = p->version_max;
	/* A request of another version is not checked further, because the daemon refuses it. */
	if (!known_version(p->version_min, p->version_max))
		return 0;
	if (p->verb < ADMIN__VERB__STATUS || p->verb > ADMIN__VERB__RESET)
		return wire_bad(why, "request.verb: not one that this version knows");
	q->verb = (enum wa_verb)p->verb;
	q->force = q->verb == WA_RESET && p->reset != NULL && p->reset->force;
	return q->verb == WA_SET_MASTER ? get_set_master(p->set_master, q, why) : 0;
}

static int check_length(size_t len, const char **why)
{
	if (len <= WIRE_FRAME_MAX)
		return 0;
	*why = "message: must be at most 1 MiB";
	return CC_ERR_LIMIT;
}

int wire_admin_decode_request(
	const uint8_t *p, size_t len, struct wa_request *ret, const char **why)
{
	struct wa_request q = {0};
	struct wire_arena arena;
	Admin__Request *m;
	int rc;

	rc = check_length(len, why);
	if (rc != 0)
		return rc;
	m = wire_arena_unpack(&arena, &admin__request__descriptor, p, len, MEMORY_FACTOR, &rc, why);
	if (m != NULL)
		rc = get_request(m, &q, why);
	wire_arena_free(&arena);
	if (rc == 0)
		*ret = q;
	return rc;
}

int wire_admin_decode_reply(const uint8_t *p, size_t len, struct wa_reply *ret, const char **why)
{
	struct wa_reply r = {0};
	struct wire_arena arena;
	Admin__Reply *m;
	int rc;

	rc = check_length(len, why);
	if (rc != 0)
		return rc;
	m = wire_arena_unpack(&arena, &admin__reply__descriptor, p, len, MEMORY_FACTOR, &rc, why);
	if (m != NULL)
		rc = get_reply(m, &r, why);
	wire_arena_free(&arena);
	if (rc == 0)
		*ret = r;
	else
		wa_reply_clear(&r);
	return rc;
}
