/* SPDX-License-Identifier: MIT
 *
 * The project's matrix files: pcclctl(1) has the format.
 */
#include <stdio.h>

#include "common/cc_err.h"
#include "topology/tpl_internal.h"
#include "topology/tpl_text.h"

#define RATE_MAX 1e15 /* bit/s */
#define TRIP_MAX 1e6  /* seconds */

struct unit {
	const char *name;
	double factor;
};

static const struct unit rate_units[] = {
	{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {NULL, 0}};
static const struct unit trip_units[] = {{"us", 1e-6}, {"ms", 1e-3}, {NULL, 0}};

struct table {
	const char *name;
	const struct unit *units;
	const char *unit_names;
	double most;   /* in the unit of the result */
	bool diagonal; /* the numbers of the diagonal are written as "-" */
};

static const struct table rates = {
	"rates", rate_units, "bit/s, kbit/s, Mbit/s and Gbit/s", RATE_MAX, true};
static const struct table trips = {"round-trips", trip_units, "us and ms", TRIP_MAX, true};
static const struct table caps = {
	"caps", rate_units, "bit/s, kbit/s, Mbit/s and Gbit/s", RATE_MAX, false};

/* ---- hosts ---- */

static int take_name(struct tpl_text *t, struct tpl_matrix *m, const struct tpl_word *w)
{
	if (m->n == TPL_HOSTS_MAX)
		return tpl_text_fail(t, "hosts has more than %u names", TPL_HOSTS_MAX);
	if (w->len >= TPL_NAME_SIZE)
		return tpl_text_fail(t, "the name of host %u has %zu bytes, it may have at most %u",
			m->n + 1, w->len, TPL_NAME_SIZE - 1);
	for (size_t i = 0; i < w->len; i++)
		if ((unsigned char)w->p[i] <= ' ' || w->p[i] == 127)
			return tpl_text_fail(t,
				"the name of host %u contains the byte %u, which is no part of a "
				"name",
				m->n + 1, (unsigned char)w->p[i]);
	for (uint32_t i = 0; i < m->n; i++)
		if (tpl_word_is(w, m->name[i]))
			return tpl_text_fail(t, "hosts %u and %u have the same name: %.*s", i + 1,
				m->n + 1, TPL_WORD_ARGS(w));
	memcpy(m->name[m->n], w->p, w->len);
	m->n++;
	return 0;
}

/* Parses "hosts NAME..." or "hosts NUMBER". */
static int parse_hosts(struct tpl_text *t, struct tpl_matrix *m)
{
	struct tpl_word first, w;
	int err = 0;

	if (m->n > 0)
		return tpl_text_fail(t, "there are two sections hosts");
	m->name = cc_must_zalloc(TPL_HOSTS_MAX, sizeof *m->name);
	if (!tpl_text_word(t, &first))
		return tpl_text_fail(t, "hosts needs names, or a number from %u to %u",
			TPL_HOSTS_MIN, TPL_HOSTS_MAX);
	if (!tpl_text_word(t, &w)) {
		if (!tpl_word_hosts(&first, &m->n))
			return tpl_text_fail(t,
				"hosts is \"%.*s\", it must be names of at least two hosts, or a "
				"number from %u to %u",
				TPL_WORD_ARGS(&first), TPL_HOSTS_MIN, TPL_HOSTS_MAX);
		for (uint32_t i = 0; i < m->n; i++)
			(void)snprintf(m->name[i], TPL_NAME_SIZE, "%u", i);
		return 0;
	}
	err = take_name(t, m, &first);
	do {
		if (err == 0)
			err = take_name(t, m, &w);
	} while (err == 0 && tpl_text_word(t, &w));
	return err;
}

/* ---- tables ---- */

static int parse_unit(struct tpl_text *t, const struct table *table, double *ret_factor)
{
	struct tpl_word w, more;

	if (!tpl_text_word(t, &w))
		return tpl_text_fail(t, "%s needs a unit: %s", table->name, table->unit_names);
	if (tpl_text_word(t, &more))
		return tpl_text_fail(t,
			"after the unit of %s there is \"%.*s\": the rows begin in the "
			"next line",
			table->name, TPL_WORD_ARGS(&more));
	for (const struct unit *u = table->units; u->name; u++)
		if (tpl_word_is(&w, u->name)) {
			*ret_factor = u->factor;
			return 0;
		}
	return tpl_text_fail(t, "%s has no unit \"%.*s\": the units are %s", table->name,
		TPL_WORD_ARGS(&w), table->unit_names);
}

static int parse_number(struct tpl_text *t, const struct table *table, const struct tpl_word *w,
	uint32_t at[2], double factor, double *ret)
{
	bool own = table->diagonal && at[0] == at[1];

	*ret = 0;
	if (own && tpl_word_is(w, "-"))
		return 0;
	if (!own && table->diagonal && tpl_word_is(w, "-"))
		return tpl_text_fail(t,
			"row %u of %s has \"-\" in column %u, but \"-\" stands only in the "
			"diagonal; "
			"0 means that there is no link",
			at[0] + 1, table->name, at[1] + 1);
	if (!tpl_word_number(w, table->most / factor, ret))
		return tpl_text_fail(t,
			"row %u of %s has \"%.*s\" in column %u, it must be a number from 0 to %g",
			at[0] + 1, table->name, TPL_WORD_ARGS(w), at[1] + 1, table->most / factor);
	*ret = own ? 0 : *ret * factor;
	return 0;
}

/* Goes to the next line with a word. */
static bool next_words(struct tpl_text *t, struct tpl_word *ret)
{
	while (tpl_text_line(t))
		if (tpl_text_word(t, ret))
			return true;
	return false;
}

static int parse_row(struct tpl_text *t, const struct table *table, uint32_t row, uint32_t cols,
	double factor, double *ret)
{
	struct tpl_word w;
	bool more = next_words(t, &w);
	uint32_t at[2] = {row, 0};
	int err = 0;

	if (!more)
		return tpl_text_fail(t, "the file ends before row %u of %s", row + 1, table->name);
	for (; more && at[1] < cols && err == 0; at[1]++) {
		err = parse_number(t, table, &w, at, factor, &ret[at[1]]);
		more = tpl_text_word(t, &w);
	}
	if (err < 0)
		return err;
	if (more || at[1] < cols)
		return tpl_text_fail(t, "row %u of %s has %s than %u numbers", row + 1, table->name,
			more ? "more" : "fewer", cols);
	return 0;
}

/* Parses the unit and the rows of a table. The diagonal becomes 0. */
static int parse_table(struct tpl_text *t, const struct tpl_matrix *m, const struct table *table,
	uint32_t cols, double **ret)
{
	double factor = 1;
	int err;

	if (m->n == 0)
		return tpl_text_fail(t, "the section hosts must come before %s", table->name);
	if (*ret)
		return tpl_text_fail(t, "there are two sections %s", table->name);
	err = parse_unit(t, table, &factor);
	if (err < 0)
		return err;
	*ret = cc_must_zalloc((size_t)m->n * cols, sizeof **ret);
	for (uint32_t i = 0; i < m->n && err == 0; i++)
		err = parse_row(t, table, i, cols, factor, *ret + (size_t)i * cols);
	return err;
}

static int parse_caps(struct tpl_text *t, struct tpl_matrix *m)
{
	double *both = NULL;
	int err;

	if (m->out)
		return tpl_text_fail(t, "there are two sections caps");
	err = parse_table(t, m, &caps, 2, &both);
	if (err == 0) {
		m->out = cc_must_zalloc(m->n, sizeof *m->out);
		m->in = cc_must_zalloc(m->n, sizeof *m->in);
		for (uint32_t i = 0; i < m->n; i++) {
			m->out[i] = both[(size_t)i * 2];
			m->in[i] = both[(size_t)i * 2 + 1];
		}
	}
	free(both);
	return err;
}

/* ---- the file ---- */

static int parse_section(struct tpl_text *t, struct tpl_matrix *m, const struct tpl_word *w)
{
	if (tpl_word_is(w, "hosts"))
		return parse_hosts(t, m);
	if (tpl_word_is(w, "rates"))
		return parse_table(t, m, &rates, m->n, &m->rate);
	if (tpl_word_is(w, "round-trips"))
		return parse_table(t, m, &trips, m->n, &m->trip);
	if (tpl_word_is(w, "caps"))
		return parse_caps(t, m);
	return tpl_text_fail(t,
		"\"%.*s\" begins no section; the sections are hosts, rates, round-trips and caps",
		TPL_WORD_ARGS(w));
}

static int parse_sections(struct tpl_text *t, struct tpl_matrix *m)
{
	struct tpl_word w;
	int err = 0;

	while (err == 0 && next_words(t, &w))
		err = parse_section(t, m, &w);
	if (err == 0 && m->n == 0)
		return tpl_text_fail(t, "the file ends before the section hosts");
	if (err == 0 && !m->rate)
		return tpl_text_fail(t, "the file ends before the section rates");
	return err;
}

/* TSPLIB files begin with one of these words. */
static bool is_tsplib(const char *text, size_t len)
{
	static const char *const words[] = {"NAME", "TYPE", "COMMENT", "DIMENSION", "EDGE_WEIGHT"};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (len >= strlen(words[i]) && memcmp(text, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

int tpl_matrix_parse(const char *text, size_t len, struct tpl_matrix *ret, char why[TPL_WHY_SIZE])
{
	bool tsplib = is_tsplib(text, len);
	struct tpl_text t = {
		.at = text, .end = text + len, .comment = tsplib ? '\0' : '#', .why = why};
	struct tpl_matrix m = {.n = 0};
	int err = tsplib ? tpl_tsplib_parse(&t, &m) : parse_sections(&t, &m);

	if (err < 0)
		tpl_matrix_clear(&m);
	else
		*ret = m;
	return err;
}

void tpl_matrix_clear(struct tpl_matrix *m)
{
	free(m->name);
	free(m->rate);
	free(m->trip);
	free(m->out);
	free(m->in);
	free(m->cost);
	*m = (struct tpl_matrix){.n = 0};
}
