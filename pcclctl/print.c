/* SPDX-License-Identifier: MIT */
#include "pcclctl/print.h"

#include <ctype.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "common/cc_err.h"

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

/* ---- values ---- */

const char *print_bytes(uint64_t n, char buf[PRINT_VALUE_SIZE])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n / 1024;
	size_t i = 0;

	if (n < 1024) {
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 " B", n);
		return buf;
	}
	/* A value that would be rounded to 1024.0 is printed in the next unit. */
	while (v >= 1023.95 && i + 1 < sizeof units / sizeof units[0]) {
		v /= 1024;
		i++;
	}
	snprintf(buf, PRINT_VALUE_SIZE, "%.1f %s", v, units[i]);
	return buf;
}

const char *print_duration(uint64_t ns, char buf[PRINT_VALUE_SIZE])
{
	uint64_t s = ns / 1000000000u;

	if (ns < 1000)
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 " ns", ns);
	else if (ns < 999950)
		snprintf(buf, PRINT_VALUE_SIZE, "%.1f us", (double)ns / 1e3);
	else if (ns < 999950000)
		snprintf(buf, PRINT_VALUE_SIZE, "%.1f ms", (double)ns / 1e6);
	else if (s < 60)
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 ".%" PRIu64 " s", s,
			ns / 100000000u % 10);
	else if (s < 3600)
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 " h %02" PRIu64 " min", s / 3600,
			s / 60 % 60);
	else
		snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64 " d %02" PRIu64 " h", s / 86400,
			s / 3600 % 24);
	return buf;
}

const char *print_bits(double rate, char buf[PRINT_VALUE_SIZE])
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	size_t i = 0;

	while (rate >= 1000 && i + 1 < sizeof units / sizeof units[0]) {
		rate /= 1000;
		i++;
	}
	snprintf(buf, PRINT_VALUE_SIZE, "%.4g %s", rate, units[i]);
	return buf;
}

static const struct wa_cell *cell(const struct wa_table *t, uint32_t row, uint32_t col)
{
	return &t->cells[(size_t)row * t->n_cols + col];
}

static const char *value(
	const struct wa_table *t, uint32_t row, uint32_t col, char buf[PRINT_VALUE_SIZE])
{
	const struct wa_cell *c = cell(t, row, col);
	char bytes[PRINT_VALUE_SIZE];

	switch (t->col[col].kind) {
	case WA_KIND_TEXT:
		return c->text && c->text[0] ? c->text : "-";
	case WA_KIND_BYTES:
		return print_bytes(c->number, buf);
	case WA_KIND_RATE:
		if (c->number == WA_UNKNOWN)
			return "-";
		snprintf(buf, PRINT_VALUE_SIZE, "%s/s", print_bytes(c->number, bytes));
		return buf;
	case WA_KIND_BITS:
		return c->number == WA_UNKNOWN ? "-" : print_bits((double)c->number, buf);
	case WA_KIND_NS:
		return c->number == WA_UNKNOWN ? "-" : print_duration(c->number, buf);
	case WA_KIND_BOOL:
		return c->number ? "yes" : "no";
	case WA_KIND_COUNT:
		break;
	}
	snprintf(buf, PRINT_VALUE_SIZE, "%" PRIu64, c->number);
	return buf;
}

/* Returns the number of terminal columns of a UTF-8 text. */
static int width_of(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void put_spaces(FILE *f, int n)
{
	if (n > 0)
		fprintf(f, "%*s", n, "");
}

/* ---- for people ---- */

static void print_record(FILE *f, const struct wa_table *t, const struct print_style *style)
{
	char buf[PRINT_VALUE_SIZE];
	int width = 0;

	for (uint32_t i = 0; i < t->n_cols; i++)
		if (width_of(t->col[i].name) > width)
			width = width_of(t->col[i].name);
	for (uint32_t i = 0; i < t->n_cols; i++) {
		fprintf(f, "%s%s:%s", style->colour ? BOLD : "", t->col[i].name,
			style->colour ? PLAIN : "");
		put_spaces(f, width - width_of(t->col[i].name) + 1);
		fprintf(f, "%s\n", value(t, 0, i, buf));
	}
}

static bool is_left(const struct wa_table *t, uint32_t col)
{
	return t->col[col].kind == WA_KIND_TEXT || t->col[col].kind == WA_KIND_BOOL;
}

static void put_field(
	FILE *f, const struct wa_table *t, uint32_t col, const char *text, const int *widths)
{
	int fill = widths[col] - width_of(text);

	if (col > 0)
		fputs("  ", f);
	if (!is_left(t, col))
		put_spaces(f, fill);
	fputs(text, f);
	if (is_left(t, col) && col + 1 < t->n_cols)
		put_spaces(f, fill);
}

static void print_columns(FILE *f, const struct wa_table *t, const struct print_style *style)
{
	char buf[PRINT_VALUE_SIZE], head[WA_COLS_MAX][sizeof t->col[0].name] = {{0}};
	int widths[WA_COLS_MAX] = {0};

	for (uint32_t i = 0; i < t->n_cols; i++) {
		for (size_t k = 0; t->col[i].name[k]; k++)
			head[i][k] = (char)toupper((unsigned char)t->col[i].name[k]);
		widths[i] = width_of(head[i]);
		for (uint32_t row = 0; row < t->n_rows; row++) {
			int w = width_of(value(t, row, i, buf));

			widths[i] = w > widths[i] ? w : widths[i];
		}
	}
	fputs(style->colour ? BOLD : "", f);
	for (uint32_t i = 0; i < t->n_cols; i++)
		put_field(f, t, i, head[i], widths);
	fprintf(f, "%s\n", style->colour ? PLAIN : "");
	for (uint32_t row = 0; row < t->n_rows; row++) {
		for (uint32_t i = 0; i < t->n_cols; i++)
			put_field(f, t, i, value(t, row, i, buf), widths);
		fputc('\n', f);
	}
}

void print_tables(FILE *f, const struct wa_reply *r, const struct print_style *style)
{
	if (style->daemon)
		fprintf(f, "%s %s\n", r->daemon, r->software);
	for (uint32_t i = 0; i < r->n_tables; i++) {
		const struct wa_table *t = &r->tables[i];

		if (i > 0)
			fputc('\n', f);
		if (r->n_tables > 1)
			fprintf(f, "%s\n", t->name);
		if (t->n_rows == 0)
			fprintf(f, "no %s\n", t->name);
		else if (i == 0 && t->n_rows == 1 && style->record)
			print_record(f, t, style);
		else
			print_columns(f, t, style);
	}
}

/* ---- for programs ---- */

/* Adds `v` and takes it over. Returns whether this succeeded. */
static bool add(struct json_object *o, const char *key, struct json_object *v)
{
	if (v && json_object_object_add(o, key, v) == 0)
		return true;
	json_object_put(v);
	return false;
}

static struct json_object *cell_json(enum wa_kind kind, const struct wa_cell *c)
{
	switch (kind) {
	case WA_KIND_TEXT:
		return json_object_new_string(c->text ? c->text : "");
	case WA_KIND_BOOL:
		return json_object_new_boolean(c->number != 0);
	case WA_KIND_COUNT:
	case WA_KIND_BYTES:
	case WA_KIND_NS:
	case WA_KIND_RATE:
	case WA_KIND_BITS:
		break;
	}
	return json_object_new_uint64(c->number);
}

static bool add_cell(
	struct json_object *o, const char *key, enum wa_kind kind, const struct wa_cell *c)
{
	if ((kind == WA_KIND_NS || kind == WA_KIND_RATE || kind == WA_KIND_BITS) &&
		c->number == WA_UNKNOWN)
		return json_object_object_add(o, key, NULL) == 0;
	return add(o, key, cell_json(kind, c));
}

static bool add_row(struct json_object *rows, const struct wa_table *t, uint32_t row)
{
	struct json_object *o = json_object_new_object();
	bool ok = o != NULL;

	for (uint32_t i = 0; ok && i < t->n_cols; i++)
		ok = add_cell(o, t->col[i].name, t->col[i].kind, cell(t, row, i));
	if (ok && json_object_array_add(rows, o) == 0)
		return true;
	json_object_put(o);
	return false;
}

static bool add_table(struct json_object *root, const struct wa_table *t)
{
	struct json_object *rows = json_object_new_array();

	if (!rows || !add(root, t->name, rows))
		return false;
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (!add_row(rows, t, i))
			return false;
	return true;
}

int print_json(FILE *f, const struct wa_reply *r)
{
	struct json_object *root = json_object_new_object();
	const char *text = NULL;
	bool ok = root && add(root, "daemon", json_object_new_string(r->daemon)) &&
		  add(root, "version", json_object_new_string(r->software));

	for (uint32_t i = 0; ok && i < r->n_tables; i++)
		ok = add_table(root, &r->tables[i]);
	if (ok)
		text = json_object_to_json_string_ext(
			root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(f, "%s\n", text);
	json_object_put(root);
	return text ? 0 : CC_ERR_NOMEM;
}
