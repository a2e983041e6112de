/* SPDX-License-Identifier: MIT */
#include "topology/tpl_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cc_err.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool tpl_text_line(struct tpl_text *t)
{
	if (t->line > 0)
		t->at = t->line_end < t->end ? t->line_end + 1 : t->end;
	if (t->at == t->end)
		return false;
	t->line_end = memchr(t->at, '\n', (size_t)(t->end - t->at));
	if (!t->line_end)
		t->line_end = t->end;
	t->line++;
	return true;
}

bool tpl_text_word(struct tpl_text *t, struct tpl_word *ret)
{
	const char *p = t->at;

	while (p < t->line_end && is_blank(*p))
		p++;
	if (p < t->line_end && t->comment && *p == t->comment)
		p = t->line_end;
	ret->p = p;
	while (p < t->line_end && !is_blank(*p))
		p++;
	ret->len = (size_t)(p - ret->p);
	t->at = p;
	return ret->len > 0;
}

bool tpl_word_is(const struct tpl_word *w, const char *text)
{
	return w->len == strlen(text) && memcmp(w->p, text, w->len) == 0;
}

bool tpl_word_number(const struct tpl_word *w, double most, double *ret)
{
	char buf[64], *end;
	double v;

	if (w->len == 0 || w->len >= sizeof buf)
		return false;
	memcpy(buf, w->p, w->len);
	buf[w->len] = '\0';
	/* Refuses a sign in front, "inf", "nan" and "0x1". */
	if (strspn(buf, "0123456789.eE+-") != w->len || buf[0] == '-' || buf[0] == '+')
		return false;
	v = strtod(buf, &end);
	if (*end || end == buf || !(v >= 0 && v <= most))
		return false;
	*ret = v;
	return true;
}

bool tpl_word_hosts(const struct tpl_word *w, uint32_t *ret)
{
	double v;

	for (size_t i = 0; i < w->len; i++)
		if (w->p[i] < '0' || w->p[i] > '9')
			return false;
	if (!tpl_word_number(w, TPL_HOSTS_MAX, &v) || v < TPL_HOSTS_MIN)
		return false;
	*ret = (uint32_t)v;
	return true;
}

int tpl_text_fail(struct tpl_text *t, const char *fmt, ...)
{
	int len = snprintf(t->why, TPL_WHY_SIZE, "line %u: ", t->line);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(t->why + len, TPL_WHY_SIZE - (size_t)len, fmt, ap);
	va_end(ap);
	return CC_ERR_INVAL;
}
