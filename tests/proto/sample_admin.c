/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/proto/sample.h"

void sample_admin_request(struct tl_rng *r, enum wa_verb verb, struct wa_request *ret)
{
	*ret = (struct wa_request){
		.version_min = WA_VERSION_MIN,
		.version_max = (uint32_t)tl_range(r, WA_VERSION_MAX, UINT16_MAX),
		.verb = verb,
	};
	ret->force = verb == WA_RESET && tl_range(r, 0, 1) == 1;
	if (verb != WA_SET_MASTER)
		return;
	sample_text(r, ret->from, sizeof ret->from);
	sample_text(r, ret->to, sizeof ret->to);
	ret->now = tl_range(r, 0, 1) == 1;
	ret->run = (uint32_t)tl_magnitude(r, 32);
	if (ret->from[0] == '\0' && ret->run == 0)
		ret->run = 1;
}

bool same_admin_request(const struct wa_request *a, const struct wa_request *b)
{
	return a->version_min == b->version_min && a->version_max == b->version_max &&
	       a->verb == b->verb && strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 &&
	       a->now == b->now && a->run == b->run && a->force == b->force;
}

static void table(struct tl_rng *r, struct wa_table *t)
{
	char name[32], text[WA_TEXT_MAX];
	uint64_t n_cols = tl_range(r, 1, WA_COLS_MAX), n_rows = tl_magnitude(r, 6);

	for (uint64_t i = 0; i < n_cols; i++) {
		snprintf(name, sizeof name, "col_%u", (unsigned)i);
		wa_col_add(t, name, (enum wa_kind)tl_range(r, WA_KIND_TEXT, WA_KIND_BITS));
	}
	for (uint64_t row = 0; row < n_rows; row++) {
		wa_row_add(t);
		for (uint32_t i = 0; i < n_cols; i++) {
			if (t->col[i].kind == WA_KIND_TEXT) {
				sample_text(r, text, (size_t)tl_range(r, 1, 16));
				wa_set_text(t, i, "%s", text);
			} else {
				wa_set_number(t, i,
					tl_magnitude(r, t->col[i].kind == WA_KIND_BOOL ? 1 : 64));
			}
		}
	}
}

void sample_admin_reply(struct tl_rng *r, struct wa_reply *ret)
{
	uint64_t n_tables = tl_range(r, 0, 3);
	char name[32];

	*ret = (struct wa_reply){
		.version_min = (uint32_t)tl_range(r, 1, 9),
		.version_max = (uint32_t)tl_range(r, 9, UINT16_MAX),
	};
	sample_text(r, ret->daemon, sizeof ret->daemon);
	sample_text(r, ret->software, sizeof ret->software);
	sample_text(r, ret->error, sizeof ret->error);
	ret->denied = tl_range(r, 0, 1);
	if (tl_range(r, 0, 9) == 0)
		return;
	ret->version = WA_VERSION_MAX;
	for (uint64_t i = 0; i < n_tables; i++) {
		snprintf(name, sizeof name, "table%u", (unsigned)i);
		table(r, wa_table_add(ret, name));
	}
}

static bool same_table(const struct wa_table *a, const struct wa_table *b)
{
	if (strcmp(a->name, b->name) != 0 || a->n_cols != b->n_cols || a->n_rows != b->n_rows)
		return false;
	for (uint32_t i = 0; i < a->n_cols; i++)
		if (strcmp(a->col[i].name, b->col[i].name) != 0 || a->col[i].kind != b->col[i].kind)
			return false;
	for (size_t i = 0; i < (size_t)a->n_rows * a->n_cols; i++) {
		const char *x = a->cells[i].text, *y = b->cells[i].text;

		if (a->cells[i].number != b->cells[i].number ||
			strcmp(x != NULL ? x : "", y != NULL ? y : "") != 0)
			return false;
	}
	return true;
}

bool same_admin_reply(const struct wa_reply *a, const struct wa_reply *b)
{
	if (a->version_min != b->version_min || a->version_max != b->version_max ||
		a->version != b->version || strcmp(a->daemon, b->daemon) != 0 ||
		strcmp(a->software, b->software) != 0 || strcmp(a->error, b->error) != 0 ||
		a->denied != b->denied || a->n_tables != b->n_tables)
		return false;
	for (uint32_t i = 0; i < a->n_tables; i++)
		if (!same_table(&a->tables[i], &b->tables[i]))
			return false;
	return true;
}
