/* SPDX-License-Identifier: MIT
 *
 * Builds replies. wire_admin_tables.c encodes and decodes them.
 */
#include "proto/wire_admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"

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

		for (size_t k = 0; t->cells != NULL && k < (size_t)t->n_rows * t->n_cols; k++)
			free(t->cells[k].text);
		free(t->cells);
	}
	free(r->tables);
	*r = (struct wa_reply){0};
}
