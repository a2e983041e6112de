/* SPDX-License-Identifier: MIT
 *
 * Reads the text of a file: lines, words and numbers, with the number of the line for errors.
 */
#ifndef TPL_TEXT_H
#define TPL_TEXT_H

#include "topology/tpl.h"

struct tpl_text {
	const char *at, *end; /* the rest of the text */
	const char *line_end;
	uint32_t line; /* from 1; 0 before the first line */
	char comment;  /* begins a comment in a word's place; '\0': there are no comments */
	char *why;     /* TPL_WHY_SIZE bytes */
};

struct tpl_word {
	const char *p;
	size_t len;
};

/* Goes to the next line. Returns whether there is one. */
bool tpl_text_line(struct tpl_text *t);
/* Takes the next word of the line. Returns whether there is one. */
bool tpl_text_word(struct tpl_text *t, struct tpl_word *ret);
bool tpl_word_is(const struct tpl_word *w, const char *text);
/* Parses a decimal number from 0 to `most`, without a sign. */
bool tpl_word_number(const struct tpl_word *w, double most, double *ret);
/* Parses a number of hosts. */
bool tpl_word_hosts(const struct tpl_word *w, uint32_t *ret);

/* Writes "line N: " and the sentence. Returns CC_ERR_INVAL. */
int tpl_text_fail(struct tpl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For "%.*s" in errors: a part of the word that is short enough. */
#define TPL_WORD_ARGS(w) (int)((w)->len < 40 ? (w)->len : 40), (w)->p

/* Parse a file of one format. The contract is that of tpl_matrix_parse, but the caller clears *m
 * also after an error. */
int tpl_tsplib_parse(struct tpl_text *t, struct tpl_matrix *m);

#endif
