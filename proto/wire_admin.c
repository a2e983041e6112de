/* SPDX-License-Identifier: MIT
 *
 * Builds replies, and encodes requests and replies. wire_admin_decode.c decodes them.
 */
#include "proto/wire_admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"
#include "proto/admin.pb-c.h"
#include "proto/wire_frame.h"
#include "proto/wire_pb.h"

struct wa_table *wa_table_add(struct wa_reply *r, const char *name)
{
	struct wa_table *t;

	if (r->n_tables == WA_TABLES_MAX) {
		r->err = CC_ERR_LIMIT;
		return NULL;
	}
	if (r->tables == NULL)
		r->tables = calloc(WA_TABLES_MAX, sizeof *r->tables);
	if (r->tables == NULL) {
		r->err = CC_ERR_NOMEM;
		return NULL;
	}
	t = &r->tables[r->n_tables++];
	snprintf(t->name, sizeof t->name, "%s", name);
	return t;
}

void wa_col_add(struct wa_table *t, const char *name, enum wa_kind kind)
{
	if (t == NULL)
		return;
	if (t->n_rows > 0) {
		t->err = CC_ERR_STATE;
		return;
	}
	if (t->n_cols == WA_COLS_MAX) {
		t->err = CC_ERR_LIMIT;
		return;
	}
	snprintf(t->col[t->n_cols].name, sizeof t->col[0].name, "%s", name);
	t->col[t->n_cols++].kind = kind;
}

struct wa_table *wa_table_with(
	struct wa_reply *r, const char *name, const struct wa_column *cols, size_t n)
{
	struct wa_table *t = wa_table_add(r, name);

	for (size_t i = 0; i < n; i++)
		wa_col_add(t, cols[i].name, cols[i].kind);
	return t;
}

/* Makes room for another row. */
static int grow(struct wa_table *t)
{
	uint32_t cap = t->cap_rows == 0 ? 16 : t->cap_rows * 2;
	struct wa_cell *cells;

	if (t->n_rows == WA_ROWS_MAX || t->n_cols == 0)
		return CC_ERR_LIMIT;
	if (t->n_rows < t->cap_rows)
		return 0;
	cells = realloc(t->cells, (size_t)cap * t->n_cols * sizeof *cells);
	if (cells == NULL)
		return CC_ERR_NOMEM;
	t->cells = cells;
	t->cap_rows = cap;
	return 0;
}

void wa_row_add(struct wa_table *t)
{
	if (t == NULL || t->err != 0)
		return;
	t->err = grow(t);
	if (t->err != 0)
		return;
	memset(&t->cells[(size_t)t->n_rows * t->n_cols], 0, t->n_cols * sizeof *t->cells);
	t->n_rows++;
}

/* Returns the cell of the last row in this column, or NULL if the column does not have the kind
 * that `text` says. */
static struct wa_cell *last_cell(struct wa_table *t, uint32_t col, bool text)
{
	if (t == NULL || t->err != 0)
		return NULL;
	if (col >= t->n_cols || t->n_rows == 0 || (t->col[col].kind == WA_KIND_TEXT) != text) {
		t->err = CC_ERR_INVAL;
		return NULL;
	}
	return &t->cells[(size_t)(t->n_rows - 1) * t->n_cols + col];
}

void wa_set_number(struct wa_table *t, uint32_t col, uint64_t v)
{
	struct wa_cell *c = last_cell(t, col, false);

	if (c != NULL)
		c->number = v;
}

void wa_set_text(struct wa_table *t, uint32_t col, const char *fmt, ...)
{
	struct wa_cell *c = last_cell(t, col, true);
	char text[WA_TEXT_MAX];
	va_list ap;

	if (c == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	free(c->text);
	c->text = strdup(text);
	if (c->text == NULL)
		t->err = CC_ERR_NOMEM;
}

void wa_reply_clear(struct wa_reply *r)
{
	for (uint32_t i = 0; i < r->n_tables; i++) {
		struct wa_table *t = &r->tables[i];

		for (size_t k = 0; k < (size_t)t->n_rows * t->n_cols; k++)
			free(t->cells[k].text);
		free(t->cells);
	}
	free(r->tables);
	*r = (struct wa_reply){0};
}

static int put_cells(struct wire_arena *a, const struct wa_table *t, Admin__Table *p)
{
	size_t n_cells = (size_t)t->n_rows * t->n_cols, n_texts = 0, n_numbers = 0;

	for (uint32_t i = 0; i < t->n_cols; i++)
		n_texts += t->col[i].kind == WA_KIND_TEXT ? t->n_rows : 0;
	p->texts = wire_arena_take_pointers(a, n_texts);
	p->numbers = wire_arena_take(a, n_cells - n_texts, sizeof *p->numbers);
	if (p->texts == NULL || p->numbers == NULL)
		return a->err;
	p->n_texts = n_texts;
	p->n_numbers = n_cells - n_texts;
	n_texts = 0;
	for (size_t i = 0; i < n_cells; i++) {
		const struct wa_cell *c = &t->cells[i];
		const char *text = c->text != NULL ? c->text : "";

		if (t->col[i % t->n_cols].kind == WA_KIND_TEXT)
			p->texts[n_texts++] = wire_put_text(a, text, strlen(text));
		else
			p->numbers[n_numbers++] = c->number;
	}
	return a->err;
}

static int put_table(struct wire_arena *a, const struct wa_table *t, Admin__Table *p)
{
	Admin__Column *v = wire_arena_take(a, t->n_cols, sizeof *v);

	admin__table__init(p);
	if (t->err != 0)
		return t->err;
	p->name = wire_put_text(a, t->name, sizeof t->name);
	p->rows = t->n_rows;
	p->columns = wire_arena_take_pointers(a, t->n_cols);
	if (v == NULL || p->columns == NULL)
		return a->err;
	p->n_columns = t->n_cols;
	for (uint32_t i = 0; i < t->n_cols; i++) {
		p->columns[i] = &v[i];
		admin__column__init(&v[i]);
		v[i].name = wire_put_text(a, t->col[i].name, sizeof t->col[i].name);
		v[i].kind = (Admin__Kind)t->col[i].kind;
	}
	return put_cells(a, t, p);
}

static int put_reply(struct wire_arena *a, const struct wa_reply *r, Admin__Reply *p)
{
	Admin__Table *v = wire_arena_take(a, r->n_tables, sizeof *v);
	int rc = r->err;

	admin__reply__init(p);
	p->version_min = r->version_min;
	p->version_max = r->version_max;
	p->version = r->version;
	p->daemon = wire_put_text(a, r->daemon, sizeof r->daemon);
	p->software = wire_put_text(a, r->software, sizeof r->software);
	p->error = wire_put_text(a, r->error, sizeof r->error);
	p->denied = r->denied;
	p->tables = wire_arena_take_pointers(a, r->n_tables);
	if (v == NULL || p->tables == NULL)
		return a->err;
	p->n_tables = r->n_tables;
	for (uint32_t i = 0; rc == 0 && i < r->n_tables; i++) {
		p->tables[i] = &v[i];
		rc = put_table(a, &r->tables[i], &v[i]);
	}
	return rc != 0 ? rc : a->err;
}

static int pack_frame(const ProtobufCMessage *p, uint8_t **ret, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(p);
	uint8_t *frame;

	if (len > WIRE_FRAME_MAX)
		return CC_ERR_LIMIT;
	frame = malloc(WIRE_FRAME_HDR + len);
	if (frame == NULL)
		return CC_ERR_NOMEM;
	wire_frame_put(frame, WIRE_KIND_ADMIN, (uint32_t)len);
	protobuf_c_message_pack(p, frame + WIRE_FRAME_HDR);
	*ret = frame;
	*ret_len = WIRE_FRAME_HDR + len;
	return 0;
}

int wire_admin_encode_request(const struct wa_request *q, uint8_t **ret, size_t *ret_len)
{
	Admin__Request p = ADMIN__REQUEST__INIT;
	Admin__SetMaster set_master = ADMIN__SET_MASTER__INIT;
	Admin__Reset reset = ADMIN__RESET__INIT;
	struct wire_arena arena;
	int rc;

	wire_arena_init(&arena, SIZE_MAX);
	p.version_min = q->version_min;
	p.version_max = q->version_max;
	p.verb = (Admin__Verb)q->verb;
	if (q->verb == WA_SET_MASTER) {
		p.set_master = &set_master;
		set_master.from = wire_put_text(&arena, q->from, sizeof q->from);
		set_master.to = wire_put_text(&arena, q->to, sizeof q->to);
		set_master.now = q->now;
		set_master.run = q->run;
	}
	if (q->verb == WA_RESET && q->force) {
		p.reset = &reset;
		reset.force = true;
	}
	rc = arena.err;
	if (rc == 0)
		rc = pack_frame(&p.base, ret, ret_len);
	wire_arena_free(&arena);
	return rc;
}

int wire_admin_encode_reply(const struct wa_reply *r, uint8_t **ret, size_t *ret_len)
{
	struct wire_arena arena;
	Admin__Reply p;
	int rc;

	wire_arena_init(&arena, SIZE_MAX);
	rc = put_reply(&arena, r, &p);
	if (rc == 0)
		rc = pack_frame(&p.base, ret, ret_len);
	wire_arena_free(&arena);
	return rc;
}
