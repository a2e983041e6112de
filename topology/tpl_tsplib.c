/* SPDX-License-Identifier: MIT
 *
 * Files of TSPLIB (Reinelt: TSPLIB, a traveling salesman problem library, 1991), as far as they
 * describe an asymmetric problem by a full matrix.
 */
#include <stdio.h>

#include "common/cc_err.h"
#include "topology/tpl_internal.h"
#include "topology/tpl_text.h"

#define COST_MAX 1e12

/* The keywords whose values matter. */
static const struct {
	const char *key, *value;
} required[] = {
	{"TYPE", "ATSP"},
	{"EDGE_WEIGHT_TYPE", "EXPLICIT"},
	{"EDGE_WEIGHT_FORMAT", "FULL_MATRIX"},
};
#define N_REQUIRED (sizeof required / sizeof required[0])

/* Splits a line "KEY: VALUE" or "KEY". */
static void split(struct tpl_text *t, struct tpl_word *ret_key, struct tpl_word *ret_value)
{
	const char *colon = memchr(t->at, ':', (size_t)(t->line_end - t->at));
	const char *line_end = t->line_end;

	t->line_end = colon ? colon : line_end;
	(void)tpl_text_word(t, ret_key);
	t->line_end = line_end;
	if (colon)
		t->at = colon + 1;
	(void)tpl_text_word(t, ret_value);
}

static int parse_value(struct tpl_text *t, struct tpl_matrix *m, const struct tpl_word *key,
	const struct tpl_word *value, bool seen[N_REQUIRED])
{
	if (tpl_word_is(key, "DIMENSION") && !tpl_word_hosts(value, &m->n))
		return tpl_text_fail(t, "DIMENSION is \"%.*s\", it must be a number from %u to %u",
			TPL_WORD_ARGS(value), TPL_HOSTS_MIN, TPL_HOSTS_MAX);
	for (size_t i = 0; i < N_REQUIRED; i++) {
		if (!tpl_word_is(key, required[i].key))
			continue;
		if (!tpl_word_is(value, required[i].value))
			return tpl_text_fail(t, "%s is \"%.*s\", it must be %s", required[i].key,
				TPL_WORD_ARGS(value), required[i].value);
		seen[i] = true;
	}
	return 0;
}

/* Parses the lines before the matrix. */
static int parse_head(struct tpl_text *t, struct tpl_matrix *m)
{
	bool seen[N_REQUIRED] = {false};
	struct tpl_word key = {NULL, 0}, value;
	int err = 0;

	while (err == 0 && tpl_text_line(t)) {
		split(t, &key, &value);
		if (tpl_word_is(&key, "EDGE_WEIGHT_SECTION"))
			break;
		err = parse_value(t, m, &key, &value, seen);
	}
	if (err < 0)
		return err;
	if (!tpl_word_is(&key, "EDGE_WEIGHT_SECTION"))
		return tpl_text_fail(t, "the file ends before EDGE_WEIGHT_SECTION");
	if (m->n == 0)
		return tpl_text_fail(t, "DIMENSION is missing before EDGE_WEIGHT_SECTION");
	for (size_t i = 0; i < N_REQUIRED; i++)
		if (!seen[i])
			return tpl_text_fail(
				t, "%s is missing before EDGE_WEIGHT_SECTION", required[i].key);
	return 0;
}

/* Takes the next word, of this line or a later one. */
static bool next_word(struct tpl_text *t, struct tpl_word *ret)
{
	while (!tpl_text_word(t, ret))
		if (!tpl_text_line(t))
			return false;
	return true;
}

static int parse_costs(struct tpl_text *t, struct tpl_matrix *m)
{
	struct tpl_word w;

	for (uint32_t k = 0; k < m->n * m->n; k++) {
		if (!next_word(t, &w))
			return tpl_text_fail(t,
				"the file ends before row %u, column %u of the matrix",
				k / m->n + 1, k % m->n + 1);
		if (k % (m->n + 1) != 0 && !tpl_word_number(&w, COST_MAX, &m->cost[k]))
			return tpl_text_fail(t,
				"row %u of the matrix has \"%.*s\" in column %u, it must be a "
				"number "
				"from 0 to %g",
				k / m->n + 1, TPL_WORD_ARGS(&w), k % m->n + 1, COST_MAX);
	}
	if (next_word(t, &w) && !tpl_word_is(&w, "EOF"))
		return tpl_text_fail(t, "after the matrix of %u rows there is \"%.*s\"", m->n,
			TPL_WORD_ARGS(&w));
	return 0;
}

int tpl_tsplib_parse(struct tpl_text *t, struct tpl_matrix *m)
{
	int err = parse_head(t, m);

	if (err < 0)
		return err;
	m->name = cc_must_zalloc(m->n, sizeof *m->name);
	for (uint32_t i = 0; i < m->n; i++)
		(void)snprintf(m->name[i], TPL_NAME_SIZE, "%u", i + 1);
	m->cost = cc_must_zalloc((size_t)m->n * m->n, sizeof *m->cost);
	return parse_costs(t, m);
}
