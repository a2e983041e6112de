/* SPDX-License-Identifier: MIT */
#include "pcclctl/dot.h"

#include <inttypes.h>
#include <string.h>

#include "common/cc_err.h"
#include "pcclctl/print.h"

static const struct wa_table *find_table(const struct wa_reply *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_tables; i++)
		if (strcmp(r->tables[i].name, name) == 0)
			return &r->tables[i];
	return NULL;
}

/* Returns the cell of a row in the column of this name; an empty one if there is no such column. */
static const struct wa_cell *find_cell(const struct wa_table *t, uint32_t row, const char *name)
{
	static const struct wa_cell none = {.number = WA_UNKNOWN};

	for (uint32_t i = 0; i < t->n_cols; i++)
		if (strcmp(t->col[i].name, name) == 0)
			return &t->cells[(size_t)row * t->n_cols + i];
	return &none;
}

/* Prints a text in quotes. */
static void put_text(FILE *f, const struct wa_cell *c)
{
	fputc('"', f);
	for (const char *s = c->text ? c->text : ""; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

static void put_link(FILE *f, const struct wa_table *t, uint32_t row)
{
	static const char *const colours[] = {"blue", "red", "darkgreen", "orange"};
	const struct wa_cell *slow = find_cell(t, row, "bottleneck");
	uint64_t ring = find_cell(t, row, "ring")->number;
	uint64_t rate = find_cell(t, row, "rate")->number;
	char buf[PRINT_VALUE_SIZE] = "";

	fputs("\t\t", f);
	put_text(f, find_cell(t, row, "host"));
	fputs(" -> ", f);
	put_text(f, find_cell(t, row, "next"));
	if (rate != WA_UNKNOWN)
		print_bits((double)rate, buf);
	fprintf(f, " [label=\"%s\", color=%s%s]\n", buf,
		colours[(ring + 3) % (sizeof colours / sizeof colours[0])],
		slow->text && slow->text[0] ? ", style=bold" : "");
}

int print_dot(FILE *f, const struct wa_reply *r)
{
	const struct wa_table *t = find_table(r, "rings");
	uint64_t group = WA_UNKNOWN;

	if (!t)
		return CC_ERR_NOENT;
	fputs("digraph topology {\n", f);
	for (uint32_t row = 0; row < t->n_rows; row++) {
		uint64_t own = find_cell(t, row, "group")->number;

		if (own != group)
			fprintf(f,
				"%s\tsubgraph cluster_%" PRIu64 " {\n\t\tlabel=\"group %" PRIu64
				"\"\n",
				row > 0 ? "\t}\n" : "", own, own);
		group = own;
		put_link(f, t, row);
	}
	fprintf(f, "%s}\n", t->n_rows > 0 ? "\t}\n" : "");
	return 0;
}
