/* SPDX-License-Identifier: MIT */
#include "proto/wire_text.h"

#include <stdint.h>
#include <string.h>

/* Decodes the sequence of n bytes at s. Returns its code point, or 0 if a byte after the first is
 * not a continuation byte. */
static uint32_t code_point(const uint8_t *s, size_t n, uint32_t lead)
{
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		lead = lead << 6 | (s[i] & 0x3fu);
	}
	return lead;
}

/* The forms of sequences with several bytes. The bits of the first byte select the form. Code
 * points below min are control characters, or need a shorter sequence. */
static const struct form {
	uint8_t mask, lead, len;
	uint32_t min, max;
} forms[] = {
	{0xe0, 0xc0, 2, 0xa0, 0x7ff},
	{0xf0, 0xe0, 3, 0x800, 0xffff},
	{0xf8, 0xf0, 4, 0x10000, 0x10ffff},
};

static bool is_surrogate(uint32_t c)
{
	return c >= 0xd800 && c <= 0xdfff;
}

/* Returns the length of the clean character at the beginning of text, or 0 if it is not clean.
 * `left` is the number of bytes that may be read. */
static size_t clean_len(const char *text, size_t left)
{
	const uint8_t *s = (const uint8_t *)text;
	const struct form *f;
	uint32_t c;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	for (f = forms; f < forms + sizeof forms / sizeof *forms; f++) {
		if ((s[0] & f->mask) != f->lead)
			continue;
		if (left < f->len)
			return 0;
		c = code_point(s, f->len, s[0] & (uint8_t)~f->mask);
		return c >= f->min && c <= f->max && !is_surrogate(c) ? f->len : 0;
	}
	return 0;
}

bool wire_text_is_clean(const char *s)
{
	size_t left = strlen(s), n;

	for (; left > 0; s += n, left -= n) {
		n = clean_len(s, left);
		if (n == 0)
			return false;
	}
	return true;
}

void wire_text_copy(char *dst, const char *s, size_t len)
{
	size_t n;

	for (; len > 0; s += n, dst += n, len -= n) {
		n = clean_len(s, len);
		if (n > 1)
			memcpy(dst, s, n);
		else
			*dst = n == 1 ? *s : '?';
		n += n == 0;
	}
}

void wire_text_clean(char *dst, const char *s, size_t len)
{
	len = strnlen(s, len);
	wire_text_copy(dst, s, len);
	dst[len] = '\0';
}
