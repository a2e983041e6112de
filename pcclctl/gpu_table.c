/* SPDX-License-Identifier: MIT */
#include "pcclctl/gpu_table.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_must.h"

#define HASH_DIGITS 16
#define BLANKS      " \t\r\n"

/* Adds a row. Returns false if one of the words is wrong. */
static bool add_row(
	struct ctl_gpu_table *t, const char *function, const char *architecture, const char *hash)
{
	struct ctl_gpu_row *r;

	if (!function || !architecture || !hash || strlen(function) >= sizeof r->function ||
		strlen(architecture) >= sizeof r->architecture || strlen(hash) != HASH_DIGITS ||
		strspn(hash, "0123456789abcdef") != HASH_DIGITS)
		return false;
	if (t->n == t->cap)
		t->row = cc_must_grow(t->row, &t->cap, t->n + 1, sizeof *t->row);
	r = &t->row[t->n++];
	strcpy(r->function, function);
	strcpy(r->architecture, architecture);
	r->hash = strtoull(hash, NULL, 16);
	return true;
}

/* ---- text ---- */

/* Parses a line, which ends with '\0'. Empty lines, comments and the heading have no row. */
static bool parse_line(char *line, struct ctl_gpu_table *t)
{
	char *at, *word = strtok_r(line, " \t\r", &at), *architecture, *hash;

	if (!word || *word == '#' || strcmp(word, "function") == 0)
		return true;
	architecture = strtok_r(NULL, " \t\r", &at);
	hash = strtok_r(NULL, " \t\r", &at);
	return add_row(t, word, architecture, hash);
}

static int parse_text(const char *text, struct ctl_gpu_table *t)
{
	char *copy = cc_must_zalloc(strlen(text) + 1, 1), *line = copy, *end;
	int number = 1, wrong = 0;

	strcpy(copy, text);
	for (; line && !wrong; line = end, number++) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (!parse_line(line, t))
			wrong = number;
	}
	free(copy);
	return wrong;
}

/* ---- JSON ---- */

static const char *string_of(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : NULL;
}

static bool add_functions(struct ctl_gpu_table *t, struct json_object *o)
{
	struct json_object *functions, *f;

	if (!json_object_object_get_ex(o, "functions", &functions) ||
		!json_object_is_type(functions, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(functions); i++) {
		f = json_object_array_get_idx(functions, i);
		if (!add_row(t, string_of(f, "function"), string_of(f, "architecture"),
			    string_of(f, "hash")))
			return false;
	}
	return true;
}

/* Parses the texts of several hosts, one after the other. */
static int parse_json(const char *text, struct ctl_gpu_table *t)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *o;
	bool right = tokener != NULL;

	while (right && text[strspn(text, BLANKS)] != '\0') {
		o = json_tokener_parse_ex(tokener, text, (int)strlen(text));
		right = json_tokener_get_error(tokener) == json_tokener_success &&
			add_functions(t, o);
		json_object_put(o);
		text += json_tokener_get_parse_end(tokener);
		json_tokener_reset(tokener);
	}
	if (tokener)
		json_tokener_free(tokener);
	return right ? 0 : -1;
}

int ctl_gpu_table_parse(const char *text, struct ctl_gpu_table *ret)
{
	return text[strspn(text, BLANKS)] == '{' ? parse_json(text, ret) : parse_text(text, ret);
}

void ctl_gpu_table_clear(struct ctl_gpu_table *t)
{
	free(t->row);
	*t = (struct ctl_gpu_table){.n = 0};
}

enum ctl_gpu_match ctl_gpu_table_compare(const struct ctl_gpu_table *t, const char *function,
	const char *architecture, uint64_t hash)
{
	enum ctl_gpu_match match = CTL_GPU_UNKNOWN;

	for (size_t i = 0; i < t->n; i++) {
		const struct ctl_gpu_row *r = &t->row[i];

		if (strcmp(r->function, function) != 0 ||
			(architecture && strcmp(r->architecture, "*") != 0 &&
				strcmp(r->architecture, architecture) != 0))
			continue;
		if (r->hash != hash)
			return CTL_GPU_DIFFERS;
		match = CTL_GPU_EQUAL;
	}
	return match;
}
